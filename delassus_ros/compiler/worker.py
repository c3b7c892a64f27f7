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
import tempfile

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
        # Files, not pipes: a pipe would make the caller wait until the child reads.
        self._output = tempfile.TemporaryFile()
        with tempfile.TemporaryFile() as given:
            given.write(pickle.dumps((problem, algorithm)))
            given.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "delassus_ros.compiler.worker"],
                stdin=given,
                stdout=self._output,
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
        if self._process.returncode != 0:
            raise CompilerError(
                f"building {self.algorithm!r} ended with exit status {self._process.returncode}"
            )
        self._output.seek(0)
        payload, error = pickle.load(self._output)
        if error is not None:
            raise CompilerError(f"building {self.algorithm!r} failed: {error}")
        return bytes(payload)

    def cancel(self) -> None:
        """End the child, if it still runs, and wait for it."""
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        self._output.close()


def main() -> None:
    """Build what standard input asks for."""
    os.nice(_NICENESS)
    # What plug-ins print while they are imported must not mix with the answer.
    answer = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    problem, name = pickle.load(sys.stdin.buffer)
    payload, failure = None, None
    try:
        algorithm = algorithms.get(name)
        if not isinstance(algorithm, TracedAlgorithm):
            raise CompilerError(f"algorithm {name!r} is a numeric back end: nothing to build")
        payload = serialized_kernel(problem, algorithm)
    except DelassusError as error:
        failure = str(error)
    with answer:
        pickle.dump((payload, failure), answer)


if __name__ == "__main__":
    main()
