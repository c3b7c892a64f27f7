"""Kernels of an algorithm are not used again once its source, or a module beside it, changes."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cache_support import key_of
from hanging import HANG_S
from small import Counting, tiny
from test_cache import environment

from delassus import algorithms
from delassus.compiler.cache import sources
from delassus.compiler.cache.sources import algorithm_source, package_source

ALGORITHM = """
from delassus.algorithms.dense import Dense
from {helper} import scaled

class Mine(Dense):
    name = "mine"

    def evaluate(self, problem, x):
        return {{"G": scaled(super().evaluate(problem, x)["G"])}}
"""
HELPER = """
def scaled(G):
    return [[{factor} * entry for entry in row] for row in G]
"""
IN_A_PACKAGE = ("package/__init__.py", "package/sub/__init__.py", "package/sub/mine.py")
LAYOUTS = {
    "package": ((*IN_A_PACKAGE, "package/tools.py"), "package.sub.mine", "package.tools"),
    "folder below": (
        (*IN_A_PACKAGE, "package/sub/deep/__init__.py", "package/sub/deep/tools.py"),
        "package.sub.mine",
        "package.sub.deep.tools",
    ),
    "shared name": (
        ("shared/package/__init__.py", "shared/package/mine.py", "shared/package/tools.py"),
        "shared.package.mine",
        "shared.package.tools",
    ),
    "no package": (("mine.py", "tools.py"), "mine", "tools"),
}


def write(folder: Path, layout: str, factor: float) -> str:
    """Write an algorithm and its helper; return the module of the algorithm."""
    files, module, helper = LAYOUTS[layout]
    for name in files:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        texts = {
            "mine.py": ALGORITHM.format(helper=helper),
            "tools.py": HELPER.format(factor=factor),
        }
        file.write_text(texts.get(file.name, ""))
    return module


def first_entry(folder: Path, module: str) -> float:
    """Return G[0, 0] as a new process finds it, with the cache."""
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r}); from {module} import Mine; "
        "from small import tiny; from delassus.compiler import kernel_for; "
        "bound = kernel_for(tiny(), Mine()).bind(); bound.run(); print(bound.outputs['G'][0, 0])"
    )
    run = subprocess.run(
        [sys.executable, "-B", "-c", code],
        env=environment(), capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip
    assert not run.returncode, run.stderr
    return float(run.stdout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_helper_that_changes_is_seen(layout: str, tmp_path: Path, own_kernels: Path) -> None:
    module = write(tmp_path, layout, 1.0)
    one = first_entry(tmp_path, module)
    assert first_entry(tmp_path, module) == one
    assert len(list(own_kernels.iterdir())) == 1, "the second process took it from the cache"
    write(tmp_path, layout, 2.0)
    assert first_entry(tmp_path, module) == pytest.approx(2.0 * one)
    assert len(list(own_kernels.iterdir())) == 2


@pytest.mark.parametrize("times", ["new times", "times kept"])
@pytest.mark.parametrize("file", ["mine.py", "tools.py"])
def test_what_was_changed_since_this_process_began_is_not_cached(
    file: str, times: str, tmp_path: Path, monkeypatch, caplog
) -> None:
    """The process may have read the file before: it would keep the old kernel as the new one."""
    write(tmp_path, "no package", 1.0)
    monkeypatch.setattr(sources, "_STARTED_NS", _now(tmp_path))
    algorithm = imported(tmp_path, monkeypatch)
    assert key_of(tiny(), algorithm) is not None
    _now(tmp_path)
    (tmp_path / file).write_text((tmp_path / file).read_text() + "#")
    if times == "times kept":
        # As cp -p, rsync and installers do.
        os.utime(tmp_path / file, (1e9, 1e9))
    sources._beside.cache_clear()
    with caplog.at_level("INFO"):
        assert key_of(tiny(), algorithm) is None
    assert "kernel of mine not cached: its source has changed since this process" in caplog.text


def _now(folder: Path) -> int:
    """Return a time that is later than that of any file there, by the clock of files."""
    latest = max(file.stat().st_ctime_ns for file in folder.iterdir())
    clock = folder.parent / "clock"
    while True:
        clock.write_text("")
        if clock.stat().st_ctime_ns > latest:
            return clock.stat().st_ctime_ns


def imported(folder: Path, monkeypatch, module: str = "mine") -> algorithms.Algorithm:
    """Return an algorithm of a folder, imported anew."""
    monkeypatch.syspath_prepend(folder)
    for name in ("mine", "tools"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(module).Mine()


def test_the_same_source_elsewhere_has_the_same_hash(tmp_path: Path, monkeypatch) -> None:
    hashes = []
    for name, factor in (("a", 1.0), ("b", 1.0), ("c", 2.0)):
        (tmp_path / name).mkdir()
        write(tmp_path / name, "no package", factor)
        hashes.append(algorithm_source(imported(tmp_path / name, monkeypatch)).digest)
    assert hashes[0] == hashes[1] != hashes[2]
    (tmp_path / "b" / "mine.py").write_text((tmp_path / "b" / "mine.py").read_text() + "#")
    changed = algorithm_source(imported(tmp_path / "b", monkeypatch)).digest
    assert changed != hashes[1], "the file itself is read at each call"
    (tmp_path / "a" / ".#mine.py").symlink_to(tmp_path / "nowhere")
    sources._beside.cache_clear()
    assert algorithm_source(imported(tmp_path / "a", monkeypatch)).digest == hashes[0]


COMPILE_ALL = """
import os, pathlib, sys, time
import delassus, delassus.compiler.function
from delassus.compiler.build import batch_kernel_for, kernel_for
from small import Counting, tiny
from test_newton import Root, newton_for
from test_function import PORTS, CompiledFunction, example
root = pathlib.Path(delassus.__file__).parent
assert root.parent == pathlib.Path(sys.argv[1])
if sys.argv[2] != "as before":
    time.sleep(0.05)  # the clock of files is a coarse one
    file = root / "closure" / "step.py"
    file.write_text(file.read_text() + "#")
    if sys.argv[2] == "installed":
        os.utime(file, (1e9, 1e9))
kernel_for(tiny(), Counting())
batch_kernel_for(tiny(), Counting())
newton_for(Root())
CompiledFunction(example, PORTS, b"example")
"""


@pytest.mark.parametrize(("change", "count"), [("as before", 4), ("edited", 0), ("installed", 0)])
def test_what_was_imported_before_a_change_of_this_package_is_not_kept_after(
    change: str, count: int, tmp_path: Path, own_kernels: Path
) -> None:
    """New processes would take the old code for that of the new sources."""
    ours = Path(sources.__file__).parents[2]
    shutil.copytree(ours, tmp_path / ours.name, ignore=shutil.ignore_patterns("__pycache__"))
    own = Path(__file__).parent
    path = os.pathsep.join([str(tmp_path), *map(str, (own, *own.parents[:3]))])
    run = subprocess.run(
        [sys.executable, "-B", "-c", COMPILE_ALL, str(tmp_path), change],
        env=environment(PYTHONPATH=path),
        cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S,
    )  # fmt: skip
    assert not run.returncode, run.stderr
    assert len(list(own_kernels.rglob("*.kernel"))) == count


@pytest.mark.parametrize(
    "file",
    [
        "contacts.py", "problem.py", "model/joint.py", "model/reading/urdf.py", "scalars/graph.py",
        "rbda/spatial.py", "algorithms/ltl.py", "compiler/codegen/sincos.py", "closure/step.py",
    ],
)  # fmt: skip
def test_a_change_of_any_source_of_kernels_changes_the_hash(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Path(sources.__file__).parents[2]
    copy = tmp_path / ours.name
    shutil.copytree(ours, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(sources, "_OURS", copy)
    before = package_source.__wrapped__().digest
    assert package_source.__wrapped__().digest == before
    (copy / file).write_text((copy / file).read_text(encoding="utf-8") + "#", encoding="utf-8")
    assert package_source.__wrapped__().digest != before


def test_what_is_around_an_algorithm_is_read_once_and_ours_not_at_all(monkeypatch) -> None:
    package_source()
    algorithm_source(Counting())
    read: list[str] = []
    monkeypatch.setattr(Path, "read_bytes", lambda file: read.append(file.name) or b"")
    for algorithm in (Counting(), algorithms.get("pv_osimr"), algorithms.get("ltl")):
        assert key_of(tiny(), algorithm) is not None
    assert read == ["small.py", "pv_osimr.py", "ltl.py"]


def test_a_clock_that_is_behind_the_files_changes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a board without a battery, before it has asked for the time."""
    source = package_source()
    monkeypatch.setattr(sources, "_STARTED_NS", source.changed - 2)
    assert not source.is_what_runs
    monkeypatch.setattr(sources.time, "time_ns", lambda: source.changed - 1)
    assert source.is_what_runs
