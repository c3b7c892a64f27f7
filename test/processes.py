"""Child processes of tests: programs with what they write, and the one loop that waits."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import pytest
from hanging import HANG_S

ROOT = Path(__file__).resolve().parents[1]

_POLL_S = 0.01


def wait_until(
    condition: Callable[[], Any],
    what: str,
    fault: Callable[[], str | None] = lambda: None,
    report: Callable[[], str] = lambda: "",
    idle: Callable[[], object] = lambda: time.sleep(_POLL_S),
) -> Any:
    """Return the value of a condition once it holds; fail the test after `HANG_S`.

    Parameters
    ----------
    condition : called again and again.
    what : the thing waited for, in the words of the failure.
    fault : returns the reason to stop waiting, or None.
    report : returns what the failure quotes.
    idle : called between two looks; lets events come, or time pass.
    """
    deadline = time.monotonic() + HANG_S
    while True:
        # Before the condition: what a program writes last is there when the program has ended.
        reason = fault()
        if time.monotonic() > deadline:
            reason = reason or f"waited for {HANG_S:g} s"
        if value := condition():
            return value
        if reason:
            pytest.fail(f"no {what}: {reason}\n{report()}")
        idle()


class Program:
    """A program in a process of its own; ended, by its id, with the block.

    The modules of this source tree, its examples and tools are importable there.

    Parameters
    ----------
    *command : argument vector.
    domain : ROS domain, heard on this machine alone; that of this process by default.
    environment : variables besides those of this process.
    apart : whether standard error is kept apart from standard output.
    **options : of `subprocess.Popen`.
    """

    def __init__(
        self,
        *command: str | Path,
        domain: int | None = None,
        environment: Mapping[str, str] | None = None,
        apart: bool = False,
        **options: Any,
    ) -> None:
        paths = [str(ROOT), *(str(ROOT / name) for name in ("examples", "tools"))]
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        if before := os.environ.get("PYTHONPATH"):
            variables["PYTHONPATH"] += os.pathsep + before
        if domain is not None:
            variables["ROS_DOMAIN_ID"] = str(domain)
            variables["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
        self._files = [tempfile.TemporaryFile() for _ in range(2 if apart else 1)]
        streams = {
            "stdin": subprocess.DEVNULL, "stdout": self._files[0], "stderr": self._files[-1]
        }  # fmt: skip
        self.process = subprocess.Popen(
            command, env=variables | dict(environment or {}), **(streams | options)
        )

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for file in self._files:
            file.close()

    @property
    def output(self) -> str:
        """Standard output so far, with standard error unless that is apart."""
        return _content(self._files[0])

    @property
    def errors(self) -> str:
        """Standard error so far, with standard output unless that is apart."""
        return _content(self._files[-1])

    @property
    def lines(self) -> list[str]:
        """The lines of the output so far."""
        return self.output.splitlines()

    def report(self) -> str:
        """Return all that the program has written so far."""
        return "".join(map(_content, self._files))

    def fault(self) -> str | None:
        """Return why there is nothing to wait for, if the program has ended."""
        status = self.process.poll()
        return None if status is None else f"the program has ended, status {status}"

    def until(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait for a condition and return its value; fail the test if the program ends first."""
        return wait_until(condition, what, self.fault, self.report)

    def wait_for(self, words: str) -> None:
        """Wait until the output has these words."""
        self.until(lambda: words in self.report(), f"{words!r} in the output")

    def stop(self, number: int = signal.SIGINT) -> int:
        """Send a signal and return the exit status; fail the test if the process stays."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Return the exit status once it has ended; fail the test if it does not."""
        try:
            return self.process.wait(HANG_S)
        except subprocess.TimeoutExpired:
            return int(pytest.fail(f"the program did not end; its output:\n{self.report()}"))

    def child(self, words: str) -> int:
        """Return the id of the child process with these words in its command line."""
        (found,) = [
            pid
            for pid in children_of(self.process.pid)
            if words in Path(f"/proc/{pid}/cmdline").read_text()
        ]
        return found


def python(*arguments: str | Path, **options: Any) -> Program:
    """Start Python with these arguments; the options are those of `Program`."""
    return Program(sys.executable, "-u", *arguments, **options)


def ros_program(module: str, *arguments: str, **options: Any) -> Program:
    """Start a module as a program, with arguments after ``--ros-args``."""
    return python("-m", module, "--ros-args", *arguments, **options)


def node_program(*arguments: str, domain: int, **options: Any) -> Program:
    """Start delassus_node in a ROS domain, with arguments after ``--ros-args``."""
    return ros_program("delassus_ros.node.main", *arguments, domain=domain, **options)


def _content(file: IO[bytes]) -> str:
    # Without a seek, as the process writes where this one's place in the file is.
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode(errors="replace")


@functools.lru_cache(maxsize=1)
def may_use_fifo() -> bool:
    """Whether this user may use SCHED_FIFO: tried in a process, which need not take it back."""
    code = (
        "import os; "
        "os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(7))"
    )
    with python("-c", code) as tried:
        return tried.wait() == 0


def children_of(pid: int | str) -> list[int]:
    """Return the ids of the child processes of a process, or of ``"self"`` (Linux)."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        # A thread that has ended meanwhile has none.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += map(int, (task / "children").read_text().split())
    return found


def ended(pid: int) -> bool:
    """Whether a process has ended; it may be a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
