"""Building in a child process: the same kernel, its errors, and no process left behind."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hanging import HANG_S
from processes import ended, wait_until
from small import contacts, problem, walker

from delassus import Contact, DelassusSolver, Problem, algorithms
from delassus.algorithms import registry
from delassus.compiler.build import cached_kernel
from delassus.compiler.cache import disk as cache
from delassus.compiler.cache.cached_code import stored_kernel
from delassus.compiler.runtime import child
from delassus.compiler.worker import BackgroundBuild
from delassus.errors import CompilerError

HERE = Path(__file__).parent
FOLDERS = (str(HERE), str(HERE.parents[1]))

Q = [0.3, -1.1, 0.7]


@pytest.fixture(autouse=True)
def private_cache(tmp_path, monkeypatch) -> None:
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def finished(build: BackgroundBuild, limit: float = 60.0) -> bytes:
    """Wait for a build, with a limit."""
    build._process.wait(limit)
    payload = build.poll()
    assert payload is not None
    return payload


def loaded(payload: bytes, algorithm: str = "pv_osimr") -> DelassusSolver:
    """Return the solver of a kernel that was built."""
    kernel = stored_kernel(problem(), algorithm).unpacked(payload)
    return DelassusSolver(problem(), algorithm, prebuilt=kernel)


def gone(pid: int) -> bool:
    """Return True if there is neither a process nor a zombie of this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_child_delivers_the_kernel_and_fills_the_cache() -> None:
    algorithm = algorithms.get("pv_osimr")
    assert cached_kernel(problem(), algorithm) is None
    build = BackgroundBuild(problem(), "pv_osimr")
    pid = build._process.pid
    payload = finished(build)
    assert build.poll() == payload, "it stays there until cancel()"
    build.cancel()
    assert gone(pid)
    kernel = cached_kernel(problem(), algorithm)
    assert kernel is not None and stored_kernel(problem(), "pv_osimr").packed(kernel) == payload
    here = DelassusSolver(problem())
    hit = BackgroundBuild(problem(), "pv_osimr")
    for each in (payload, finished(hit)):
        there = loaded(each)
        assert np.array_equal(here.solve(Q).matrix, there.solve(Q).matrix)
        assert here.operations == there.operations
    hit.cancel()
    assert len(list(cache.folder().iterdir())) == 1


def failure(algorithm: str) -> str:
    build = BackgroundBuild(problem(), algorithm)
    try:
        with pytest.raises(CompilerError) as caught:
            finished(build)
    finally:
        build.cancel()
    return str(caught.value)


def test_an_error_of_the_child_reaches_the_parent() -> None:
    assert failure("pv_osimrr").startswith(
        "building 'pv_osimrr' failed: unknown algorithm 'pv_osimrr'; did you mean 'pv_osimr'?"
    )


def test_a_numeric_back_end_is_nothing_to_build() -> None:
    if "pinocchio" not in registry.names():
        pytest.skip("Pinocchio is not installed")
    assert "'pinocchio' is a numeric back end: nothing to build" in failure("pinocchio")


def test_a_child_that_dies_is_reported_with_its_exit_status() -> None:
    build = BackgroundBuild(problem(), "pv_osimr")
    build._process.kill()
    build._process.wait()
    with pytest.raises(CompilerError, match="building 'pv_osimr' ended with exit status -9"):
        build.poll()
    build.cancel()


def test_what_a_dying_child_said_is_in_the_error(tmp_path, monkeypatch) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.stderr.write('x' * 9000 + 'the disk is full')\nimport os\nos._exit(3)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    said = failure("pv_osimr")
    assert said.startswith("building 'pv_osimr' ended with exit status 3: xxx")
    assert said.endswith("xxxthe disk is full") and len(said) < 3000


def test_unreadable_answers_refused() -> None:
    build = BackgroundBuild(problem(), "pv_osimr")
    try:
        build._process.wait(HANG_S)
        for answer in (b"", b"\x01", b"not an answer at all", b"\x00" * 8):
            build._output.seek(0)
            build._output.truncate()
            build._output.write(answer)
            words = "building 'pv_osimr' gave an unreadable answer"
            with pytest.raises(CompilerError, match=words):
                build.poll()
    finally:
        build.cancel()


def test_the_child_does_not_import_from_the_current_folder(tmp_path, monkeypatch) -> None:
    for name in ("delassus", "numpy", "pickle"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from here')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", os.environ.get("PYTHONPATH", "")]))
    build = BackgroundBuild(problem(), "pv_osimr")
    try:
        assert finished(build)
    finally:
        build.cancel()


def test_relative_import_paths_stay_what_they_are(tmp_path, monkeypatch, caplog) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "sitecustomize.py").write_text(
        "import sys\nsys.stderr.write('found by its relative path')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", f"here{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    caplog.set_level(logging.INFO, logger="delassus")
    build = BackgroundBuild(problem(), "pv_osimr")
    try:
        assert finished(build)
    finally:
        build.cancel()
    assert "building 'pv_osimr' succeeded and said: found by its relative path" in caplog.text


@pytest.mark.parametrize("moment", ["at once", "when it is done", "twice"])
def test_cancel_leaves_no_process_and_no_zombie(moment: str) -> None:
    build = BackgroundBuild(problem(), "pv_osimr")
    pid = build._process.pid
    if moment == "when it is done":
        finished(build)
    build.cancel()
    if moment == "twice":
        build.cancel()
    assert gone(pid)


def test_beginning_a_build_does_not_wait_for_the_child(monkeypatch) -> None:
    """A problem larger than the 64 KiB that a pipe takes, and a child that never reads."""
    monkeypatch.setattr(child, "command", lambda *_: ["sleep", "60"])
    frames = [Contact(f"c{i:04d}-{'x' * 200}", "foot0") for i in range(400)]
    build = BackgroundBuild(Problem(walker(), frames), "pv_osimr")
    try:
        assert build.poll() is None
    finally:
        build.cancel()


def test_what_plug_ins_print_does_not_disturb(tmp_path, monkeypatch) -> None:
    info = tmp_path / "loud-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[delassus.algorithms]\nloud = loud_module\n")
    (tmp_path / "loud_module.py").write_text("print('hello')\nimport os\nos.write(1, b'hello')\n")
    before = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{before}")
    build = BackgroundBuild(Problem(walker(), contacts()), "dense")
    try:
        payload = finished(build)
    finally:
        build.cancel()
    assert loaded(payload, "dense").solve(Q).matrix.shape == (10, 10)


def leave_a_note(problem: Problem) -> None:
    """What a build is asked to do besides: told apart by its robot."""
    folder = os.environ["XDG_CACHE_HOME"]
    with open(os.path.join(folder, "note"), "w", encoding="utf-8") as note:
        json.dump([os.getpid(), problem.robot.name, os.nice(0), [*os.sched_getaffinity(0)]], note)


def test_build_does_what_else_is_asked_nicely_on_all_processors(tmp_path, monkeypatch) -> None:
    """Its parent is kept to one processor, where there are two."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(FOLDERS))
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, [min(before)])
    try:
        build = BackgroundBuild(problem(), "pv_osimr", leave_a_note)
    finally:
        os.sched_setaffinity(0, before)
    pid = build._process.pid
    finished(build)
    build.cancel()
    *found, processors = json.loads((tmp_path / "note").read_text())
    assert found == [pid, problem().robot.name, min(os.nice(0) + 10, 19)]
    assert set(processors) >= before


def work_for_ever(_problem: Problem) -> None:
    """Say which process this is, and keep Python busy."""
    folder = os.environ["XDG_CACHE_HOME"]
    with open(os.path.join(folder, "note.new"), "w", encoding="utf-8") as note:
        note.write(str(os.getpid()))
    os.rename(note.name, os.path.join(folder, "note"))
    while True:
        pass


@pytest.mark.parametrize("forked", [False, True])
def test_a_build_does_not_outlive_who_wants_it(tmp_path, monkeypatch, forked) -> None:
    """Whoever is killed can end nothing; nor is its death that of the thread that began.

    What it has forked has all its files, and lives on.
    """
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(FOLDERS))
    code = (
        "import os, threading, time\n"
        "from small import problem\n"
        "from test_worker import BackgroundBuild, work_for_ever\n"
        "builds = []\n"
        "def begin():\n"
        "    builds.append(BackgroundBuild(problem(), 'pv_osimr', work_for_ever))\n"
        "thread = threading.Thread(target=begin)\n"
        "thread.start()\n"
        "thread.join()\n"
        f"other = os.fork() if {forked} else None\n"
        "print(other or '', flush=True) if other != 0 else None\n"
        "time.sleep(600)\n"
    )
    note = tmp_path / "note"
    pids: list[int] = []
    others: list[int] = []
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, **child.surroundings()
    ) as parent:
        try:
            others += map(int, parent.stdout.readline().split())
            assert len(others) == forked
            wait_until(note.exists, "sign that the build works")
            pids = [int(pid) for pid in note.read_text().split()]
            assert not any(ended(pid) for pid in pids), "the thread that began it has ended"
            parent.kill()
            wait_until(lambda: all(ended(pid) for pid in pids), "end of the build")
            assert not any(ended(pid) for pid in others)
        finally:
            parent.kill()
            for pid in (*pids, *others):
                if not ended(pid):
                    os.kill(pid, signal.SIGKILL)


def test_cancelling_ends_a_build_that_is_at_work(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(FOLDERS))
    build = BackgroundBuild(problem(), "pv_osimr", work_for_ever)
    note = tmp_path / "note"
    try:
        wait_until(note.exists, "sign that the build works")
    finally:
        build.cancel()
    wait_until(lambda: ended(int(note.read_text())), "end of the build")
