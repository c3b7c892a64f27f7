"""A process of its own that builds one kernel, so that a control loop is not disturbed.

``python -m delassus_ros.compiler.worker`` reads a pickled (Problem, algorithm name) on standard
input and writes a pickled (payload, error) on standard output: the kernel as bytes for
``DelassusSolver(prebuilt=…)``, or the text of the error.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

from delassus_ros import algorithms
from delassus_ros.algorithms.base import TracedAlgorithm
from delassus_ros.compiler.build import serialized_kernel
from delassus_ros.errors import CompilerError, DelassusError
from delassus_ros.problem import Problem

_NICENESS = 10


class BackgroundBuild:
    """A build running in a child process at low priority.

    Parameters
    ----------
    problem : what to compute.
    algorithm : name of a traced algorithm; numeric back ends need no build.
    """

    def __init__(self, problem: Problem, algorithm: str) -> None:
        self.algorithm = algorithm
        self._process = subprocess.Popen(
            [sys.executable, "-m", "delassus_ros.compiler.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._output = b""
        # The child reads all of its input before it writes, so this cannot block for good.
        stdin = self._process.stdin
        if stdin is not None:
            stdin.write(pickle.dumps((problem, algorithm)))
            stdin.close()
        if self._process.stdout is not None:
            os.set_blocking(self._process.stdout.fileno(), False)

    def poll(self) -> bytes | None:
        """Return the kernel's bytes once the build is done, None before; never blocks.

        Raises
        ------
        CompilerError
            If the build failed; the message is the child's.
        """
        stdout = self._process.stdout
        while stdout is not None:
            chunk = stdout.read(1 << 20)
            if not chunk:
                break
            self._output += chunk
        if self._process.poll() is None or stdout is None:
            return None
        self._output += stdout.read() or b""
        if self._process.returncode != 0 or not self._output:
            raise CompilerError(
                f"building {self.algorithm!r} ended with exit status {self._process.returncode}"
            )
        payload, error = pickle.loads(self._output)
        if error is not None:
            raise CompilerError(f"building {self.algorithm!r} failed: {error}")
        return bytes(payload)

    def cancel(self) -> None:
        """End the child, if it still runs, and wait for it."""
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def main() -> None:
    """Build what standard input asks for."""
    os.nice(_NICENESS)
    problem, name = pickle.load(sys.stdin.buffer)
    payload, failure = None, None
    try:
        algorithm = algorithms.get(name)
        if not isinstance(algorithm, TracedAlgorithm):
            raise CompilerError(f"algorithm {name!r} is a numeric back end: nothing to build")
        payload = serialized_kernel(problem, algorithm)
    except DelassusError as error:
        failure = str(error)
    sys.stdout.buffer.write(pickle.dumps((payload, failure)))


if __name__ == "__main__":
    main()
