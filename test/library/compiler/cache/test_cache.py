"""The disk cache of machine code: when it is used, where it is, several writers at once."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cache_support import key_of, stored, traced_again, works
from hanging import HANG_S
from small import Counting, contacts, problem, tiny, walker

from delassus import Problem, algorithms
from delassus.algorithms.registry import TreeAlgorithm
from delassus.compiler import kernel_for
from delassus.compiler.cache import cached_code
from delassus.compiler.cache import disk as cache
from delassus.compiler.cache.sources import Source
from delassus.compiler.runtime import packing
from delassus.samples import random_inputs


def test_a_hit_needs_no_trace_and_gives_the_same_kernel(own_kernels: Path) -> None:
    first = kernel_for(tiny(), Counting())
    again = Counting()
    second = kernel_for(tiny(), again)
    assert again.calls == 0
    assert second.operations == first.operations
    inputs = random_inputs(tiny(), 11)
    results = []
    for kernel in (first, second):
        bound = kernel.bind()
        bound.inputs["q"][...] = inputs["q"]
        assert bound.run() == 0
        results.append(bound.outputs["G"].copy())
    assert np.array_equal(*results)


def test_without_the_cache_nothing_is_read_or_written(own_kernels: Path) -> None:
    kernel_for(tiny(), Counting(), use_cache=False)
    assert not own_kernels.parent.exists()
    stored(own_kernels)
    algorithm = Counting()
    kernel_for(tiny(), algorithm, use_cache=False)
    assert algorithm.calls > 0


def test_folder_and_file_are_private_whatever_the_umask(own_kernels: Path) -> None:
    before = os.umask(0o002)
    try:
        file = stored(own_kernels)
        assert not traced_again()
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (own_kernels.parent, own_kernels, file)]
    assert modes == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_missing_parents_are_made_private_whatever_the_umask(
    tmp_path: Path, monkeypatch, umask: int
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "a" / "b" / "c"))
    before = os.umask(umask)
    try:
        cache.store("k", b"payload")
    finally:
        os.umask(before)
    assert cache.load("k") == b"payload"
    made = [tmp_path / part for part in ("a", "a/b", "a/b/c", "a/b/c/delassus")]
    assert [stat.S_IMODE(path.stat().st_mode) for path in made] == [0o700] * 4


def kept(own_kernels: Path) -> set[str]:
    return {path.name.removesuffix(".kernel") for path in own_kernels.iterdir()}


def aged(own_kernels: Path, *keys: str) -> None:
    """Make kernels look used long ago, the first one before the others."""
    for second, key in enumerate(keys, start=1):
        os.utime(own_kernels / f"{key}.kernel", (second, second))


def test_the_least_recently_used_kernels_go_beyond_a_number_of_files(
    own_kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "_FOLDER_MAX_FILES", 3)
    for key in "abc":
        cache.store(key, b"x")
    aged(own_kernels, "a", "b", "c")
    assert cache.load("a") == b"x", "which counts as a use"
    cache.store("d", b"x")
    assert kept(own_kernels) == {"a", "c", "d"}
    cache.store("d", b"y")
    assert kept(own_kernels) == {"a", "c", "d"}, "replacing one removes none"


def test_the_least_recently_used_kernels_go_beyond_a_size(own_kernels, monkeypatch) -> None:
    monkeypatch.setattr(cache, "_FOLDER_MAX_BYTES", 3_500)
    for key in "abc":
        cache.store(key, bytes(1000))
    aged(own_kernels, "b", "a", "c")
    cache.store("d", bytes(1000))
    assert kept(own_kernels) == {"a", "c", "d"}
    cache.store("e", bytes(5000))
    assert kept(own_kernels) == {"e"}, "what was just stored stays"


def test_nothing_but_kernels_is_removed(own_kernels, monkeypatch) -> None:
    monkeypatch.setattr(cache, "_FOLDER_MAX_FILES", 1)
    cache.store("a", b"x")
    (own_kernels / "notes.txt").write_text("mine")
    (own_kernels / "folder.kernel").mkdir()
    aged(own_kernels, "a")
    cache.store("b", b"x")
    assert kept(own_kernels) == {"b", "notes.txt", "folder"}


def test_a_kernel_that_cannot_be_removed_is_logged(own_kernels, monkeypatch, caplog) -> None:
    monkeypatch.setattr(cache, "_FOLDER_MAX_FILES", 1)
    cache.store("a", b"x")
    aged(own_kernels, "a")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", refuse)
        cache.store("b", b"x")
    assert "old kernels not removed from the cache: " in caplog.text
    assert cache.load("b") == b"x"


def test_everything_that_shapes_a_kernel_is_in_its_key(own_kernels: Path, monkeypatch) -> None:
    class Other(Counting):
        """Same module, so the same source."""

    def next_version() -> Counting:
        algorithm = Counting()
        algorithm.version = 2
        return algorithm

    plain = problem()
    keys = {
        key_of(this, algorithm)
        for this, algorithm in (
            (plain, Counting()),
            (Problem(walker(mass=1.1), contacts()), Counting()),
            (Problem(walker(floating=False), contacts()), Counting()),
            (Problem(walker(), contacts(("point", "point"))), Counting()),
            (problem(axes="world"), Counting()),
            (plain, next_version()),
            (plain, Counting("other")),
        )
    }
    assert len(keys) == 7
    assert key_of(problem(), Counting()) in keys
    with monkeypatch.context() as patch:
        patch.setattr(cached_code, "host_identity", lambda: "another processor")
        assert key_of(plain, Counting()) not in keys
    with monkeypatch.context() as patch:
        newer = Source(b"another version of this one", 0)
        patch.setattr(cached_code, "package_source", lambda: newer)
        assert key_of(plain, Counting()) not in keys


SOURCE = """
from delassus.algorithms.dense import Dense
class Mine(Dense):
    name = "mine"
"""


def test_an_algorithm_without_a_source_file_is_not_cached(own_kernels: Path, monkeypatch) -> None:
    scope: dict[str, type] = {"__name__": "nowhere"}
    exec(SOURCE, scope)
    assert works(kernel_for(tiny(), scope["Mine"]()))
    found = []
    for scale in (1.0, 2.0):
        # Two functions of one source.
        def ltl(tree, K, x, scale=scale):
            G = algorithms.get("pv_osim").function(tree, K, x)
            return [[scale * entry for entry in row] for row in G]

        mine = TreeAlgorithm(ltl, clusters=False, version=1)
        mine.name = "mine"
        bound = kernel_for(tiny(), mine).bind()
        assert bound.run() == 0
        found.append(bound.outputs["G"])
    np.testing.assert_allclose(found[1], 2.0 * found[0], rtol=1e-12)
    assert not own_kernels.exists()


def test_where_the_folder_is(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for given, expected in (
        (str(tmp_path / "x"), tmp_path / "x/delassus"),
        ("relative", tmp_path / ".cache/delassus"),
        ("", tmp_path / ".cache/delassus"),
    ):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert cache.folder() == expected
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.folder() == tmp_path / ".cache/delassus"


def test_pack_and_unpack() -> None:
    parts = [b"", b"a", bytes(1000), b"\0\xff"]
    assert packing.unpack(packing.pack(*parts)) == parts
    assert packing.unpack(b"") == []
    packed = packing.pack(b"abc", b"defg")
    for cut in range(1, len(packed)):
        if cut == 8 + 3:
            continue
        with pytest.raises(ValueError, match="truncated"):
            packing.unpack(packed[:cut])


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a Python that imports this package and these tests."""
    own = Path(__file__).parent
    paths = [str(own), str(own.parents[2]), str(Path(cache.__file__).parents[3])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **more}


def write_many(key: str, byte: int) -> None:
    """Store large payloads of one byte value, and read what is there in between."""
    for _ in range(20):
        cache.store(key, bytes([byte]) * 300_000)
        found = cache.load(key)
        if found is None or len(set(found)) != 1 or len(found) != 300_000:
            raise SystemExit(f"process {byte} read something that nobody wrote")


def test_many_writers_leave_one_valid_file(own_kernels: Path, caplog) -> None:
    code = "import sys; from test_cache import write_many; write_many('k', int(sys.argv[1]))"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(byte)], env=environment(), stderr=subprocess.PIPE
        )
        for byte in range(4)
    ]
    try:
        said = [writer.communicate(timeout=HANG_S)[1] for writer in writers]
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    assert [writer.returncode for writer in writers] == [0] * 4, said
    assert said == [b""] * 4
    assert [path.name for path in own_kernels.iterdir()] == ["k.kernel"]
    found = cache.load("k")
    assert found is not None and len(found) == 300_000
    assert not caplog.records


def test_many_threads_leave_one_valid_file(own_kernels: Path, caplog) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write_many, ["k"] * 4, range(4)))
    assert [path.name for path in own_kernels.iterdir()] == ["k.kernel"]
    assert not caplog.records


def test_another_process_hits(own_kernels: Path) -> None:
    stored(own_kernels)
    code = (
        "from small import Counting, tiny\n"
        "from delassus.compiler import kernel_for\n"
        "algorithm = Counting()\n"
        "kernel_for(tiny(), algorithm)\n"
        "raise SystemExit(algorithm.calls)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(PYTHONHASHSEED="7"))
    assert done.returncode == 0
