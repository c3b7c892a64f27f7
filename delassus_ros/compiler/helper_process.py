"""The child process of a :class:`~delassus_ros.compiler.helper.Helper`.

``python -m delassus_ros.compiler.helper_process`` reads a module on standard input and writes its
object file on standard output. It ends with its parent, however that ends.
"""

from __future__ import annotations

import os
import sys

from delassus_ros.compiler import child
from delassus_ros.compiler.jit import compile_ir


def main() -> None:
    """Compile the module on standard input."""
    child.end_with_parent()
    # What anything prints must not mix with the answer.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answer:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        answer.write(compile_ir(sys.stdin.buffer.read().decode()))


if __name__ == "__main__":
    main()
