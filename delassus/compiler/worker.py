"""A child process that builds one kernel, so that a control loop is not disturbed.

``python -m delassus.compiler.worker`` reads a pickled (Problem, algorithm name, function or
None) on standard input and writes two packed parts on standard output: the kernel as bytes, which
:func:`~delassus.compiler.cache.cached_code.stored_kernel` loads, and the text of the error;
unless that is empty, the build has failed. A child ends with the process that started it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from typing import IO

from delassus import algorithms
from delassus.algorithms.registry import TracedAlgorithm
from delassus.compiler.build import serialized_kernel
from delassus.compiler.runtime import child, packing
from delassus.errors import CompilerError, DelassusError
from delassus.problem import Problem

_NICENESS = 10
_SHOWN_BYTES = 2000
"""Bytes of the child's standard error that are shown."""
_log = logging.getLogger(__name__)


class BackgroundBuild:
    """A build running in a child process at low priority, which ends with this process.

    Parameters
    ----------
    problem : what to compute.
    algorithm : name of a traced algorithm; numeric back ends need no build.
    warm : called with the problem in the child, to have it compile further things into the disk
        cache; it is pickled.
    """

    def __init__(
        self,
        problem: Problem,
        algorithm: str,
        warm: Callable[[Problem], object] | None = None,
    ) -> None:
        self.algorithm = algorithm
        # Files, not pipes: a pipe would make the caller wait until the child reads.
        self._output = tempfile.TemporaryFile()
        self._errors = tempfile.TemporaryFile()
        with tempfile.TemporaryFile() as request:
            request.write(pickle.dumps((problem, algorithm, warm)))
            request.seek(0)
            self._process = child.Child(
                "delassus.compiler.worker", request, self._output, self._errors
            )

    def poll(self) -> bytes | None:
        """Return the kernel's bytes once the build is done, None before; never blocks.

        Raises
        ------
        CompilerError
            If the build failed; the message is the child's.
        """
        if self._process.poll() is None:
            return None
        said = _tail(self._errors)
        if self._process.returncode != 0:
            raise CompilerError(
                f"building {self.algorithm!r} ended with exit status {self._process.returncode}"
                + (f": {said}" if said else "")
            )
        self._output.seek(0)
        try:
            payload, failure = packing.unpack(self._output.read())
        except ValueError as error:
            raise CompilerError(
                f"building {self.algorithm!r} gave an unreadable answer ({error})"
                + (f": {said}" if said else "")
            ) from error
        if failure:
            raise CompilerError(f"building {self.algorithm!r} failed: {failure.decode()}")
        if said:
            _log.info("building %r succeeded and said: %s", self.algorithm, said)
        return payload

    def cancel(self) -> None:
        """End the child, if it still runs, and wait for it."""
        self._process.close()
        self._output.close()
        self._errors.close()


def _tail(file: IO[bytes]) -> str:
    """Return the last part of what a file holds, as text."""
    file.seek(max(0, file.seek(0, os.SEEK_END) - _SHOWN_BYTES))
    return file.read().decode(errors="replace").strip()


def _take_all_processors() -> None:
    """Run on any processor: those inherited may be reserved for a control loop."""
    if hasattr(os, "sched_setaffinity"):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, range(os.cpu_count() or 1))


def main() -> None:
    """Build what standard input asks for."""
    child.end_with_parent()
    _take_all_processors()
    os.nice(_NICENESS)
    # What plug-ins print while they are imported must not mix with the answer.
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    problem, name, warm = pickle.load(sys.stdin.buffer)
    payload, failure = b"", ""
    try:
        algorithm = algorithms.get(name)
        if not isinstance(algorithm, TracedAlgorithm):
            raise CompilerError(f"algorithm {name!r} is a numeric back end: nothing to build")
        payload = serialized_kernel(problem, algorithm)
        if warm is not None:
            warm(problem)
    except DelassusError as error:
        failure = str(error)
    with answer:
        answer.write(packing.pack(payload, failure.encode()))


if __name__ == "__main__":
    main()
