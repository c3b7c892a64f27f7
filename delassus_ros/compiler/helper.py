"""A child process that compiles half of a long program.

LLVM compiles one module at a time in a process, and of a long program that takes longer than all
that comes before. So as soon as a trace is known to be long a child is started, which is ready
by the time that the first half of the code is written. It runs
:mod:`delassus_ros.compiler.code_generator`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from delassus_ros.compiler import child, code_generator
from delassus_ros.compiler.jit import compile_ir, is_object
from delassus_ros.compiler.team import processors
from delassus_ros.compiler.trace import Trace

_LONG = 5000
"""Operations from which half of a program takes longer to compile than a child to start."""
_log = logging.getLogger(__name__)


class Helper:
    """A child process that compiles one module.

    Raises
    ------
    OSError
        If it cannot be started.
    """

    def __init__(self) -> None:
        self._given: str | None = None
        with contextlib.ExitStack() as opened:
            # Files, not pipes: a pipe would make the child wait until this process reads.
            self._output = opened.enter_context(tempfile.TemporaryFile())
            self._errors = opened.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(
                _command(), stdin=subprocess.PIPE, stdout=self._output, stderr=self._errors,
                **child.surroundings(),
            )  # fmt: skip
            self._files = opened.pop_all()

    def give(self, ir: str) -> None:
        """Have a module compiled."""
        self._given = ir
        stdin = self._process.stdin
        # The pipe of a child that has ended is broken; what became of it is asked below.
        with contextlib.suppress(BrokenPipeError):
            if stdin is not None:
                with stdin:
                    stdin.write(ir.encode())

    def objects(self) -> list[bytes]:
        """Return the object file of what was given, or none; where the child fails, from here.

        Raises
        ------
        CompilerError
            If LLVM refuses the module.
        """
        if self._given is None:
            return []
        status = self._process.wait()
        self._output.seek(0)
        code = self._output.read()
        # A child that died may have left a part, and a Python may print something when it starts.
        if status == 0 and is_object(code):
            return [code]
        self._errors.seek(0)
        _log.warning(
            "a child process that was to compile ended with exit status %d and no whole object "
            "file; compiling here: %s",
            status, self._errors.read().decode(errors="replace").strip(),
        )  # fmt: skip
        return [compile_ir(self._given)]

    def close(self) -> None:
        """End the child, whatever it is doing."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        self._files.close()


@contextmanager
def helper_for(trace: Trace) -> Iterator[Helper | None]:
    """Give a helper to whoever compiles a trace; None if it is short or there can be no other."""
    # Of routines there are few, however large the system.
    long = not trace.graph.routines and trace.operations.total >= _LONG
    helper = _started() if long and processors() > 1 and child.is_possible() else None
    try:
        yield helper
    finally:
        if helper is not None:
            helper.close()


def _started() -> Helper | None:
    try:
        return Helper()
    except OSError as error:
        _log.warning("no child process to compile half of a long program: %s", error)
        return None


def _command() -> list[str]:
    # Without site, which takes as long to import as LLVM's own modules where packages have hooks.
    folder = os.path.dirname(os.path.dirname(code_generator.llvmlite.__file__))
    return [sys.executable, "-S", code_generator.__file__, str(os.getpid()), folder]
