"""The child process of a :class:`~delassus_ros.compiler.helper.Helper`.

``python -m delassus_ros.compiler.helper_process`` reads a module on standard input and writes its
object file on standard output.
"""

from __future__ import annotations

import sys

from delassus_ros.compiler.jit import compile_ir


def main() -> None:
    """Compile the module on standard input."""
    sys.stdout.buffer.write(compile_ir(sys.stdin.buffer.read().decode()))


if __name__ == "__main__":
    main()
