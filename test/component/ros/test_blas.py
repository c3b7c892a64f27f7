"""Threads of linear algebra: limited, absent, or reported as unlimited."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hanging import HANG_S
from threadpoolctl import threadpool_info

from delassus_ros.ros import realtime

NUMPYS = [each for each in threadpool_info() if each["user_api"] == "blas"]


def library(path: str, threads: int | None, api: str = "blas") -> dict[str, object]:
    return {"user_api": api, "filepath": path, "num_threads": threads}


def loads(monkeypatch: pytest.MonkeyPatch, *libraries: dict[str, object]) -> list[object]:
    """Let these be the libraries of the process, whose threads no call changes."""
    calls: list[object] = []
    monkeypatch.setattr(
        realtime, "threadpool_limits", lambda limit, user_api: calls.append((limit, user_api))
    )
    monkeypatch.setattr(realtime, "threadpool_info", lambda: list(libraries))
    return calls


def test_numpys_own_has_one_thread_or_none_at_all() -> None:
    code = (
        "import numpy, threadpoolctl; from delassus_ros.ros import realtime\n"
        "outcome = realtime.limit_blas_threads()\n"
        "found = {each['num_threads'] for each in threadpoolctl.threadpool_info()\n"
        "         if each['user_api'] == 'blas'}\n"
        "print(outcome.done, found or set(), outcome.text, sep='|')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S, check=True
    )
    if NUMPYS:
        assert done.stdout.strip() == "True|{1}|linear algebra runs in the calling thread"
    else:
        assert done.stdout.startswith("True|set()|linear algebra: no library known to have")


def test_a_reference_blas_is_nothing_to_warn_of(monkeypatch: pytest.MonkeyPatch) -> None:
    loads(monkeypatch, library("/lib/libgomp.so.1", 8, "openmp"))
    outcome = realtime.limit_blas_threads()
    assert outcome.done
    assert outcome.text == "linear algebra: no library known to have threads is loaded"


def test_all_libraries_of_linear_algebra_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    libraries = [library("/np/libscipy_openblas64_-1.so", 1), library("/sp/libopenblas.so", 1)]
    calls = loads(monkeypatch, *libraries)
    outcome = realtime.limit_blas_threads()
    assert outcome.done and outcome.text == "linear algebra runs in the calling thread"
    assert calls == [(1, "blas")]


@pytest.mark.parametrize("threads", [4, None])
def test_one_that_cannot_be_limited_is_named_with_what_helps(
    monkeypatch: pytest.MonkeyPatch, threads: int | None
) -> None:
    loads(monkeypatch, library("/a/libopenblas.so", 1), library("/lib/libblis.so.4", threads))
    outcome = realtime.limit_blas_threads()
    assert not outcome.done
    assert "may use threads of its own: libblis.so.4 is loaded" in outcome.text
    assert "set OMP_NUM_THREADS=1" in outcome.text
