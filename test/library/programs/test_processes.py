"""Child processes: output kept, stopped politely or by force, never orphaned."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from hanging import HANG_S
from processes import Program, ended, wait_until

from delassus.programs import processes
from delassus.programs.processes import Command, Programs

POLITE = "import signal; print('ready', flush=True); signal.pause()"
DEAF = (
    "import signal, time\n"
    "for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\n"
    "print('ready', flush=True)\n"
    "while True: time.sleep(60)"
)


def python(name: str, code: str) -> Command:
    """Return a command that runs Python code."""
    return Command(name, [sys.executable, "-c", code])


def test_children_end_with_the_block() -> None:
    """SIGINT ends the polite ones; the output is at hand until then."""
    with Programs([python("one", POLITE), python("two", POLITE)], os.environ) as children:
        wait_until(lambda: children.report().count("ready") == 2, "two that are ready")
        assert children.dead() == []
        pids = [child.pid for child in children._programs]
        assert not any(ended(pid) for pid in pids)
        assert children.stop() == []
        assert "KeyboardInterrupt" in children.report()
        assert children.stop() == []
    assert all(ended(pid) for pid in pids)


def test_children_end_when_the_block_fails() -> None:
    """An exception stops them too."""
    pids = []
    with pytest.raises(RuntimeError, match="in the block"):
        with Programs([python("one", POLITE)], os.environ) as children:
            wait_until(lambda: "ready" in children.report(), "word ready")
            pids = [child.pid for child in children._programs]
            raise RuntimeError("in the block")
    assert pids and all(ended(pid) for pid in pids)


def test_children_started_before_a_failed_start_are_stopped() -> None:
    """The second command does not exist: the first must not stay behind."""
    children = Programs([python("one", POLITE), Command("two", ["/does/not/exist"])], os.environ)
    with pytest.raises(FileNotFoundError, match="/does/not/exist"):
        children.__enter__()
    assert len(children._programs) == 1
    assert ended(children._programs[0].pid)


def test_deaf_child_is_killed_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """What ignores SIGINT and SIGTERM is killed; a polite neighbour is not."""
    monkeypatch.setattr(
        processes,
        "_STEPS",
        ((signal.SIGINT, 3.0), (signal.SIGTERM, 0.1), (signal.SIGKILL, HANG_S)),
    )
    with Programs([python("deaf", DEAF), python("polite", POLITE)], os.environ) as children:
        wait_until(lambda: children.report().count("ready") == 2, "two that are ready")
        assert children.stop() == ["deaf"]
        assert children._programs[0].status == -signal.SIGKILL
        assert children._programs[1].status != -signal.SIGKILL


def test_child_that_ended_is_reported_with_its_last_words() -> None:
    """Name, status and the tail of stdout and stderr, no more than asked for."""
    code = "print(*range(50), sep='\\n', flush=True); raise SystemExit('bad luck')"
    with Programs([python("doomed", code)], os.environ) as children:
        wait_until(lambda: len(children.dead()) == 1, "end")
        child = children.dead()[0]
        assert (child.name, child.status) == ("doomed", 1)
        assert child.tail(3).splitlines() == ["48", "49", "bad luck"]
        assert "--- doomed (exit status 1), last output:" in children.report()


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")


@LINUX
def test_memory_and_processor_time_are_those_of_the_child() -> None:
    code = (
        "import time\n"
        "before = bytearray(50_000_000)\n"
        "end = time.process_time() + 0.3\n"
        "while time.process_time() < end: pass\n"
        "print('ready', flush=True); time.sleep(60)"
    )
    with Programs([python("busy", code), python("idle", POLITE)], os.environ) as children:
        wait_until(lambda: "ready" in children["busy"].tail(), "word ready")
        wait_until(lambda: "ready" in children["idle"].tail(), "word ready")
        assert 50.0 < children["busy"].memory() - children["idle"].memory() + 5.0 < 100.0
        assert children["busy"].processor_time() >= 0.29
        assert children["idle"].processor_time() < children["busy"].processor_time()
        with pytest.raises(KeyError):
            children["nobody"]


@LINUX
def test_nothing_is_measured_of_a_child_that_ended() -> None:
    with Programs([python("gone", "pass")], os.environ) as children:
        wait_until(lambda: len(children.dead()) == 1, "end")
        for measure in (children["gone"].memory, children["gone"].processor_time):
            with pytest.raises(ProcessLookupError, match="gone has ended"):
                measure()


def test_children_hear_the_interrupt_that_their_parent_ignores() -> None:
    """As a parent does that a shell has put into the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Programs([python("one", POLITE)], os.environ) as children:
            wait_until(lambda: "ready" in children.report(), "word ready")
            assert children.stop() == []
            assert "KeyboardInterrupt" in children.report()
    finally:
        signal.signal(signal.SIGINT, before)


def test_looking_at_the_output_does_not_disturb_it() -> None:
    code = "for i in range(20000): print(i, flush=True)"
    with Programs([python("talker", code)], os.environ) as children:
        while not children.dead():
            children["talker"].tail()
        lines = children["talker"].tail(1000).splitlines()
    assert lines == [str(i) for i in range(20000 - len(lines), 20000)]


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells children of a parent's death"
)
def test_children_of_a_killed_parent_end() -> None:
    """SIGKILL leaves the parent no time to clean up; its children end all the same."""
    code = (
        "import os, sys, time\n"
        "from delassus.programs.processes import Programs, Command\n"
        f"child = Command('one', [sys.executable, '-c', {POLITE!r}])\n"
        "with Programs([child], os.environ) as children:\n"
        "    while 'ready' not in children.report(): time.sleep(0.01)\n"
        "    print(children._programs[0].pid, flush=True)\n"
        "    while True: time.sleep(60)\n"
    )
    with Program(sys.executable, "-c", code) as parent:
        parent.until(lambda: parent.output.endswith("\n"), "id of the child")
        pid = int(parent.output)
        assert not ended(pid)
    wait_until(lambda: ended(pid), "end of the child")
