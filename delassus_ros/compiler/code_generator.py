"""LLVM's code generator: from IR to an object file for this processor.

A program, too, for :mod:`delassus_ros.compiler.helper`: ``python -S code_generator.py PARENT
FOLDER`` reads IR on standard input and writes the object file on standard output, unless the
process with that number ends before it has given all; llvmlite is in the folder. Nothing else of
this package is imported, nor numpy, so that it is ready in a fraction of the time.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":
    # A program finds the modules beside it first, and some here are named as some of Python's.
    _here = os.path.dirname(os.path.abspath(__file__))
    sys.path = [path for path in sys.path if os.path.abspath(path) != _here] + sys.argv[2:3]

import select
from functools import lru_cache

OLDEST_LLVMLITE = (0, 41)

try:
    import llvmlite
    import llvmlite.binding as llvm
except ImportError as error:
    raise ImportError(
        "delassus_ros needs llvmlite to compile kernels: pip install 'llvmlite>=0.41' "
        "(Debian and Ubuntu: sudo apt install python3-llvmlite)"
    ) from error

if tuple(int(part) for part in llvmlite.__version__.split(".")[:2]) < OLDEST_LLVMLITE:
    raise ImportError(
        f"delassus_ros needs llvmlite 0.41 or newer, found {llvmlite.__version__}: "
        "pip install --upgrade 'llvmlite>=0.41'"
    )

__all__ = [
    "LLVM_VERSION", "host_features", "host_machine", "initialize", "llvm", "llvmlite",
    "object_file",
]  # fmt: skip

LLVM_VERSION: tuple[int, ...] = tuple(llvm.llvm_version_info)

_LOOK = 1000
"""Time between two looks at who the parent is [ms]."""


@lru_cache(maxsize=1)
def initialize() -> None:
    """Initialise LLVM once; needed up to llvmlite 0.44, refused as obsolete afterwards."""
    if LLVM_VERSION[0] < 20:
        llvm.initialize()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@lru_cache(maxsize=1)
def host_features() -> str:
    """Return this processor's feature string; full-width vectors are allowed."""
    features = llvm.get_host_cpu_features().flatten()
    return str(features).replace("+prefer-256-bit", "-prefer-256-bit")


def host_machine() -> llvm.TargetMachine:
    """Return LLVM's picture of this processor."""
    initialize()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=host_features(),
        opt=2,
        reloc="pic",
        codemodel="small",
        jit=True,
    )


def object_file(ir: str, machine: llvm.TargetMachine) -> bytes:
    """Return the object file of an IR module.

    The trace is already free of common sub-expressions and constants, so LLVM's middle end
    is skipped; its code generator selects, schedules and allocates.

    Raises
    ------
    RuntimeError
        If LLVM refuses the module.
    """
    module = llvm.parse_assembly(ir)
    module.verify()
    return bytes(machine.emit_object(module))


def main() -> None:
    """Compile the module on standard input."""
    # What anything prints must not mix with the answer.
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answer:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        machine = host_machine()
        answer.write(object_file(_standard_input(), machine))


def _standard_input() -> str:
    """Return all of standard input; end if the parent ends before it has given it.

    What the parent has forked may keep the pipe open for longer than the parent lives.
    """
    given, parent = sys.stdin.fileno(), int(sys.argv[1])
    parts: list[bytes] = []
    waiting = select.poll()
    waiting.register(given, select.POLLIN)
    while True:
        if waiting.poll(_LOOK):
            part = os.read(given, 1 << 20)
            if not part:
                return b"".join(parts).decode()
            parts.append(part)
        elif os.getppid() != parent:
            sys.exit("the process that wanted code compiled has ended")


if __name__ == "__main__":
    main()
