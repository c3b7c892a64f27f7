"""The C and C++ compiler, and shared libraries compiled on the spot, kept under ``build/``."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from benchmarks.cases import AbsentError
from delassus.compiler.codegen.target import host_identity

FOLDER = Path(__file__).resolve().parents[1] / "build" / "benchmarks"
WAIT_S = 10.0
"""Time between two words about a compiler that is waited for [s]."""
FLAGS = ("-O3", "-march=native", "-DNDEBUG", "-fPIC", "-shared")


@dataclass(frozen=True)
class Compiler:
    """A C and C++ compiler.

    Attributes
    ----------
    c, cpp : paths of the programs.
    version : its first line of ``--version``.
    is_clang : with another compiler Pinocchio is slower, and nothing is claimed.
    """

    c: str
    cpp: str
    version: str
    is_clang: bool


@lru_cache(maxsize=1)
def find() -> Compiler:
    """Return clang, or gcc where it is not installed.

    Raises
    ------
    AbsentError
        If there is neither.
    """
    for c, cpp in (("clang", "clang++"), ("gcc", "g++")):
        paths = shutil.which(c), shutil.which(cpp)
        if paths[0] is not None and paths[1] is not None:
            shown = subprocess.run(
                [paths[1], "--version"], capture_output=True, text=True, check=True
            ).stdout.splitlines()[0]
            return Compiler(paths[0], paths[1], shown, c == "clang")
    raise AbsentError("no C++ compiler: install clang (sudo apt install clang)")


class Compilation:
    """A shared library in the making; compiled once per source, flags and compiler.

    Parameters
    ----------
    source : the text; C, or C++ with `cpp`.
    flags : besides :data:`FLAGS`.
    depends : further dependencies of the result, such as the version of a library.
    """

    def __init__(
        self, source: str, cpp: bool = False, flags: Sequence[str] = (), depends: str = ""
    ) -> None:
        compiler = find()
        program = compiler.cpp if cpp else compiler.c
        options = [*FLAGS, *flags]
        text = "\0".join([source, compiler.version, host_identity(), depends, *options])
        digest = hashlib.sha256(text.encode()).hexdigest()[:20]
        self._library = FOLDER / f"{digest}.so"
        self._process: subprocess.Popen[bytes] | None = None
        self._started = time.perf_counter()
        if self._library.exists():
            return
        FOLDER.mkdir(parents=True, exist_ok=True)
        file = FOLDER / f"{digest}.{'cpp' if cpp else 'c'}"
        file.write_text(source, encoding="utf-8")
        # Under a name of its own, so that a half-written library is never taken for a whole one.
        self._unfinished = FOLDER / f"{digest}.{os.getpid()}.so"
        self._process = subprocess.Popen(
            [program, *options, str(file), "-o", str(self._unfinished), "-lm"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def library(self, say: Callable[[str], None] = lambda _: None) -> ctypes.CDLL:
        """Wait for the compiler and return the loaded library.

        Parameters
        ----------
        say : told every :data:`WAIT_S` how long the compiler has taken so far.

        Raises
        ------
        AbsentError
            If the compiler refused the source; the message ends with what it said.
        """
        if self._process is not None:
            said = waited(self._process, self._started, say)
            if self._process.returncode:
                raise AbsentError(f"compilation failed: {said.decode(errors='replace')[-2000:]}")
            self._unfinished.rename(self._library)
            self._process = None
        return ctypes.CDLL(str(self._library))


def waited(process: subprocess.Popen[bytes], started: float, say: Callable[[str], None]) -> bytes:
    """Return what a compiler printed until its end; `started` as of time.perf_counter()."""
    while True:
        try:
            return process.communicate(timeout=WAIT_S)[0]
        except subprocess.TimeoutExpired:
            say(f"still compiling, {time.perf_counter() - started:.0f} s so far")
