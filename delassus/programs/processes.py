"""Child processes that do not outlive this one, and the last lines of their output."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

_PR_SET_PDEATHSIG = 1
_TAIL = 16384  # bytes of output that are looked at
_STEPS = ((signal.SIGINT, 5.0), (signal.SIGTERM, 2.0), (signal.SIGKILL, 5.0))


@dataclass(frozen=True)
class Command:
    """A command line and its name in messages."""

    name: str
    arguments: Sequence[str]


class Process:
    """A running command whose output is stored.

    Parameters
    ----------
    environment
        All environment variables of the process.
    """

    def __init__(self, command: Command, environment: Mapping[str, str]) -> None:
        self.name = command.name
        self._output: IO[bytes] = tempfile.TemporaryFile()
        # In a new session: Ctrl-C in the terminal reaches the parent alone, which then stops the
        # children in order, and only once.
        self._process = subprocess.Popen(
            list(command.arguments),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_prepared(),
        )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def status(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._process.poll()

    def signal(self, number: int) -> None:
        """Send a signal; nothing happens if the process has ended."""
        self._process.send_signal(number)

    def wait(self, limit: float) -> bool:
        """Wait for the end at most this time [s]; return whether the process has ended."""
        try:
            self._process.wait(max(limit, 0.0))
        except subprocess.TimeoutExpired:
            return False
        return True

    def memory(self) -> float:
        """Return the resident memory of the process [MB] (Linux).

        Raises
        ------
        ProcessLookupError
            If the process has ended.
        """
        found = re.search(r"^VmRSS:\s+(\d+) kB$", self._read("status"), re.MULTILINE)
        if found is None:
            raise ProcessLookupError(f"{self.name} has ended")
        return float(found[1]) / 1024.0

    def processor_time(self) -> float:
        """Return the processor time that the process has used [s] (Linux).

        Raises
        ------
        ProcessLookupError
            If the process has ended.
        """
        fields = self._read("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / float(os.sysconf("SC_CLK_TCK"))

    def _read(self, file: str) -> str:
        """Return the text of a file of the process in /proc."""
        try:
            return Path(f"/proc/{self.pid}/{file}").read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise ProcessLookupError(f"{self.name} has ended") from error

    def tail(self, lines: int = 20) -> str:
        """Return the last lines of the output, stdout and stderr together."""
        # Without moving the file's offset, at which the process goes on to write.
        number = self._output.fileno()
        start = max(os.fstat(number).st_size - _TAIL, 0)
        text = os.pread(number, _TAIL, start).decode("utf-8", "replace")
        return "\n".join(text.splitlines()[-lines:])

    def close(self) -> None:
        """Drop the stored output."""
        self._output.close()


class Programs:
    """Commands that run during a block; all have ended after the block.

    Parameters
    ----------
    commands
        Commands in the order of starting; they are stopped in the reverse order.
    environment
        All environment variables of all commands.
    """

    def __init__(self, commands: Sequence[Command], environment: Mapping[str, str]) -> None:
        self._commands = commands
        self._environment = environment
        self._programs: list[Process] = []

    def __enter__(self) -> Programs:
        """Start all commands."""
        try:
            for command in self._commands:
                self._programs.append(Process(command, self._environment))
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop all commands."""
        self.stop()
        for child in self._programs:
            child.close()

    def __getitem__(self, name: str) -> Process:
        """Return the process of a name; KeyError if there is none."""
        return {child.name: child for child in self._programs}[name]

    def dead(self) -> list[Process]:
        """Return the processes that have ended by themselves."""
        return [child for child in self._programs if child.status is not None]

    def stop(self) -> list[str]:
        """Interrupt all processes, kill the remaining ones, and return the names of the killed."""
        killed: list[str] = []
        for number, limit in _STEPS:
            running = [child for child in reversed(self._programs) if child.status is None]
            if number == signal.SIGKILL:
                killed = [child.name for child in running]
            for child in running:
                child.signal(number)
            deadline = time.monotonic() + limit
            for child in running:
                child.wait(deadline - time.monotonic())
        return killed

    def report(self) -> str:
        """Return the last output of all processes, for a message about a failure."""
        parts = []
        for child in self._programs:
            status = "running" if child.status is None else f"exit status {child.status}"
            parts.append(f"--- {child.name} ({status}), last output:\n{child.tail() or '(none)'}")
        return "\n".join(parts)


def _prepared() -> Callable[[], None]:
    """Return the function that a child calls before it executes its program."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        # A shell makes background commands ignore this signal; children would inherit that.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGINT)

    return prepare
