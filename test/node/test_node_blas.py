"""Threads of linear algebra: limited, absent, or said that they are not."""

from __future__ import annotations

import ctypes
import inspect
import os
import subprocess
import sys

import numpy as np
import pytest

from delassus_ros.node.system import realtime as blas

linux = pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="needs Linux")
pytestmark = linux


def loads(monkeypatch, *names: str, has_call: bool = False) -> None:
    """Let these libraries be those of the process, with or without a call for their threads."""
    real = ctypes.CDLL(None)
    monkeypatch.setattr(blas, "_loaded", lambda word: [n for n in names if word in n])
    monkeypatch.setattr(blas.ctypes, "CDLL", lambda _: real)
    # A function of the C library that takes an integer stands in for it.
    monkeypatch.setattr(blas, "_CALLS", ("abs",) if has_call else ("no_such",))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def blas_threads() -> int | None:
    """Return how many threads numpy's OpenBLAS uses; None if there is no OpenBLAS."""
    for path in blas._loaded("openblas"):
        for name in blas._CALLS:
            query = getattr(ctypes.CDLL(path), name.replace("_set_", "_get_"), None)
            if query is not None:
                query.argtypes, query.restype = [], ctypes.c_int
                return int(query())
    return None


def test_numpys_own_has_one_thread_or_none_at_all() -> None:
    code = (
        "import ctypes, numpy; from delassus_ros.node.system import realtime as blas\n"
        f"{inspect.getsource(blas_threads)}\n"
        "outcome = blas.limit_blas_threads()\n"
        "print(outcome.done, blas_threads(), outcome.text, sep='|')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert np.ones(2) @ np.ones(2) == 2.0
    if blas._loaded("openblas"):
        assert done.stdout.strip() == "True|1|linear algebra runs in the calling thread"
    elif not any(blas._loaded(other) for other in blas._OTHERS):
        assert done.stdout.startswith("True|None|linear algebra: no library known to have")


def test_a_reference_blas_is_nothing_to_warn_of(monkeypatch) -> None:
    loads(monkeypatch, "/usr/lib/x86_64-linux-gnu/blas/libblas.so.3.11.0")
    outcome = blas.limit_blas_threads()
    assert outcome.done
    assert outcome.text == "linear algebra: no library known to have threads is loaded"


def test_each_openblas_is_limited(monkeypatch) -> None:
    loads(monkeypatch, "/np/libscipy_openblas64_-1.so", "/sp/libopenblas.so")
    limited: list[str] = []
    monkeypatch.setattr(blas, "_limit", lambda path: not limited.append(path))
    outcome = blas.limit_blas_threads()
    assert outcome.done and outcome.text == "linear algebra runs in the calling thread"
    assert limited == ["/np/libscipy_openblas64_-1.so", "/sp/libopenblas.so"]


@pytest.mark.parametrize(
    ("libraries", "named"),
    [
        (["/lib/libopenblas.so.0"], "libopenblas.so.0"),
        (["/lib/libmkl_rt.so.2"], "libmkl_rt.so.2"),
        (["/lib/libblis.so.4", "/lib/libblas.so.3"], "libblis.so.4"),
    ],
)
def test_one_that_cannot_be_limited_is_named_with_what_helps(
    monkeypatch, libraries, named
) -> None:
    loads(monkeypatch, *libraries)
    outcome = blas.limit_blas_threads()
    assert not outcome.done
    assert f"may use threads of its own: {named} is loaded" in outcome.text
    assert "set OMP_NUM_THREADS=1" in outcome.text
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    outcome = blas.limit_blas_threads()
    assert outcome.done and outcome.text == "linear algebra runs in the calling thread"


def test_an_openblas_with_the_call_is_limited_and_without_is_not(monkeypatch) -> None:
    loads(monkeypatch, "/lib/libopenblas.so.0", has_call=True)
    assert blas.limit_blas_threads().done
    loads(monkeypatch, "/lib/libopenblas.so.0")
    assert not blas.limit_blas_threads().done


def test_without_a_list_of_libraries_there_is_none(monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise PermissionError

    monkeypatch.setattr(blas.Path, "read_text", refuse)
    assert blas._loaded("openblas") == []
    assert blas.limit_blas_threads().done
