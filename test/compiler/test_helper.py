"""A child process compiles part of the code, and nothing else changes."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import robots
from child_processes import ended

from delassus_ros import Contact, Problem, Robot
from delassus_ros.algorithms import get
from delassus_ros.compiler import child, code_generator, emit, helper, jit
from delassus_ros.compiler.build import batch_kernel_for, kernel_for
from delassus_ros.compiler.cached_code import samples, stored_kernel
from delassus_ros.compiler.helper import Helper, helper_for
from delassus_ros.compiler.parts import Lengths
from delassus_ros.compiler.trace import trace
from delassus_ros.errors import CompilerError

ALGORITHM = get("pv_osimr")
ALONE = {kernel_for: 2, batch_kernel_for: 1}
"""Object files of this process: of a program and of what is around every kernel; a batch's loop is
with its program."""
EMPTY = "define void @empty() {\n  ret void\n}\n"


@pytest.fixture(scope="module")
def quadruped() -> Problem:
    robot = Robot.from_urdf(robots.quadruped())
    return Problem(robot, [Contact(foot, foot) for foot in ("LF_FOOT", "RF_FOOT", "LH_FOOT")])


@pytest.fixture
def short_counts_as_long(monkeypatch) -> None:
    monkeypatch.setattr(helper, "_LONG", 0)
    monkeypatch.setattr(helper, "processors", lambda: 2)
    for name in ("SINGLE", "BATCH"):
        monkeypatch.setattr(emit, name, Lengths(longest=100, length=100))


def results(kernel, problem) -> list[bytes]:
    return [sample.result() for sample in samples(kernel, problem, 0)]


@pytest.mark.parametrize("build", [kernel_for, batch_kernel_for])
def test_code_of_two_processes_computes_the_same(
    quadruped, short_counts_as_long, build, monkeypatch
) -> None:
    of_two = build(quadruped, ALGORITHM, use_cache=False)
    assert len(jit._objects(of_two.code)) == ALONE[build] + 1
    monkeypatch.setattr(helper, "processors", lambda: 1)
    of_one = build(quadruped, ALGORITHM, use_cache=False)
    assert len(jit._objects(of_one.code)) == ALONE[build]
    assert results(of_two, quadruped) == results(of_one, quadruped)


def test_code_of_two_processes_is_stored_and_loaded(quadruped, short_counts_as_long) -> None:
    kernel = kernel_for(quadruped, ALGORITHM, use_cache=False)
    stored = stored_kernel(quadruped, ALGORITHM.name)
    loaded = stored.unpacked(stored.packed(kernel))
    assert loaded.code == kernel.code
    assert results(loaded, quadruped) == results(kernel, quadruped)


@pytest.mark.parametrize("build", [kernel_for, batch_kernel_for])
def test_a_program_of_one_part_needs_no_help(
    quadruped, short_counts_as_long, monkeypatch, build
) -> None:
    for name in ("SINGLE", "BATCH"):
        monkeypatch.setattr(emit, name, Lengths(longest=10_000, length=10_000))
    kernel = build(quadruped, ALGORITHM, use_cache=False)
    assert len(jit._objects(kernel.code)) == ALONE[build]


def test_the_child_imports_nothing_but_llvm() -> None:
    """What the package imports takes several times longer than to start without."""
    code = (
        "import runpy, sys\n"
        f"runpy.run_path({code_generator.__file__!r}, run_name='__main__')\n"
        "heavy = [m for m in sys.modules if m.split('.')[0] in ('delassus_ros', 'numpy')]\n"
        "print(heavy, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code, *helper._command()[-2:]], input=EMPTY.encode(),
        capture_output=True, check=True,
        **child.surroundings(),
    )  # fmt: skip
    assert done.stderr.decode().strip() == "[]"
    assert jit.LoadedCode(done.stdout).address("empty")


def test_modules_beside_the_childs_program_do_not_stand_in_for_those_of_python(tmp_path) -> None:
    program = tmp_path / "code_generator.py"
    program.write_bytes(Path(code_generator.__file__).read_bytes())
    for name in ("select", "functools", "llvmlite"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('another one')\n")
    done = subprocess.run(
        [sys.executable, "-S", str(program), *helper._command()[-2:]], input=EMPTY.encode(),
        stdout=subprocess.PIPE, check=True,
        **child.surroundings(),
    )  # fmt: skip
    assert jit.LoadedCode(done.stdout).address("empty")


@pytest.mark.parametrize("program", [None, "", "/opt/robot/controller"])
def test_a_program_that_embeds_python_is_not_started_again(
    quadruped, short_counts_as_long, monkeypatch, program
) -> None:
    monkeypatch.setattr(sys, "executable", program)
    with helper_for(trace(quadruped, ALGORITHM)) as none:
        assert none is None


def test_a_child_that_cannot_be_started_is_not_needed(
    quadruped, short_counts_as_long, monkeypatch, caplog
) -> None:
    monkeypatch.setattr(helper, "_command", lambda: ["/nowhere/python3"])
    kernel = kernel_for(quadruped, ALGORITHM, use_cache=False)
    assert len(jit._objects(kernel.code)) == ALONE[kernel_for]
    assert "no child process to compile half of a long program: [Errno 2]" in caplog.text


def test_no_room_for_the_files_of_a_child(
    quadruped, short_counts_as_long, monkeypatch, caplog
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    with helper_for(trace(quadruped, ALGORITHM)) as none:
        assert none is None
    assert "/nowhere" in caplog.text


def test_a_child_does_not_outlive_its_parent() -> None:
    """Not even where another process holds the pipe that it reads."""
    code = (
        "import os, time\n"
        "from delassus_ros.compiler.helper import Helper\n"
        "process = Helper()._process\n"
        "os.set_inheritable(process.stdin.fileno(), True)\n"
        "other = os.spawnlp(os.P_NOWAIT, 'sleep', 'sleep', '60')\n"
        "print(process.pid, other, flush=True)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, **child.surroundings()
    ) as parent:
        pid, other = map(int, parent.stdout.readline().split())
        try:
            wait_until(lambda: output(pid, 1) == output(pid, 2), "the child reads")
            parent.kill()
            wait_until(lambda: ended(pid), "the child has ended")
            assert not ended(other)
        finally:
            parent.kill()
            os.kill(other, signal.SIGKILL)


def output(pid: int, number: int) -> str:
    """Return the file behind a descriptor of a process."""
    return os.readlink(f"/proc/{pid}/fd/{number}")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.005)


def test_a_short_trace_gets_no_child(monkeypatch) -> None:
    robot = Robot.from_urdf(robots.quadruped())
    short = trace(Problem(robot, [Contact("LF", "LF_FOOT")]), ALGORITHM)
    assert short.operations.total < helper._LONG
    monkeypatch.setattr(helper, "processors", lambda: 2)
    with helper_for(short) as none:
        assert none is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise SystemExit(3)", "exit status 3 and no whole object file; compiling here: "),
        ("input(); raise SystemExit('no room left')", "exit status 1 and no .* no room left"),
        (
            "import os, sys; sys.stdin.read(); os.write(1, b'\\x7fELF'); os.abort()",
            "exit status -6 and no whole object file",
        ),
        ("import sys; print(sys.stdin.read()); sys.exit(0)", "exit status 0 and no whole object"),
    ],
)
def test_what_a_child_fails_to_compile_is_compiled_here(
    quadruped, short_counts_as_long, monkeypatch, caplog, code, words
) -> None:
    monkeypatch.setattr(helper, "_command", lambda: [sys.executable, "-c", code])
    kernel = kernel_for(quadruped, ALGORITHM, use_cache=False)
    assert len(jit._objects(kernel.code)) == ALONE[kernel_for] + 1
    (record,) = [record for record in caplog.records if record.name == helper.__name__]
    assert re.search(words, record.getMessage())


def test_what_llvm_refuses_is_an_error() -> None:
    with pytest.raises(CompilerError, match="LLVM refused the generated code: "):
        with closing(Helper()) as found:
            found.give("nonsense")
            found.objects()


def test_the_child_is_ended_whatever_happens(quadruped, short_counts_as_long) -> None:
    with pytest.raises(KeyboardInterrupt):
        with helper_for(trace(quadruped, ALGORITHM)) as found:
            found.give(EMPTY)
            raise KeyboardInterrupt
    assert found._process.returncode is not None


def test_a_child_that_got_nothing_gives_nothing() -> None:
    with closing(Helper()) as found:
        assert found.objects() == []
    assert found._process.returncode is not None


def test_joined_objects_that_are_damaged_are_refused() -> None:
    whole = jit.joined([jit.compile_ir(EMPTY), jit.compile_ir(EMPTY.replace("empty", "other"))])
    assert jit.LoadedCode(whole).address("other")
    for code in (whole[:-1], whole[:20], jit.joined([whole, whole])):
        with pytest.raises(CompilerError, match="compiled code cannot be loaded"):
            jit.LoadedCode(code)


def test_matrices_are_those_of_the_definition(quadruped, short_counts_as_long) -> None:
    q = np.linspace(-1.0, 1.0, 12)
    dense = kernel_for(quadruped, get("dense"), use_cache=False).bind()
    ours = kernel_for(quadruped, ALGORITHM, use_cache=False).bind()
    for bound in (dense, ours):
        bound.inputs["q"][...] = q
        assert bound.run() == 0
    assert np.allclose(ours.outputs["G"], dense.outputs["G"], rtol=1e-11, atol=1e-13)
