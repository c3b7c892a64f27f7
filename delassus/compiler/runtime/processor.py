"""Whether LLVM can compile for a target: its triple, its processor and its features.

LLVM ends the process for some names that are unknown to it, so a child process asks first.
"""

from __future__ import annotations

import difflib
import re
import resource
import subprocess
import sys

from delassus.compiler.codegen.target import check_architecture
from delassus.compiler.runtime import child
from delassus.compiler.runtime.jit import compile_for, target_of
from delassus.errors import InputError

_FEATURE = r"[+-](?!help\b)[\w.-]+"
_FEATURES = re.compile(rf"({_FEATURE}(,{_FEATURE})*)?")
_LISTED = re.compile(r"^  (\S+) +- ", re.MULTILINE)
"""A line of the list that LLVM prints for the processor ``help``."""
_UNKNOWN_FEATURE = re.compile(r"'(\S+)' is not a recognized feature")
_EMPTY = "define void @empty() {\n  ret void\n}"


def check_triple(triple: str) -> None:
    """Refuse a target that LLVM does not know, or whose kernels are not known to work.

    Raises
    ------
    InputError
        If LLVM does not know them; the message names the known ones.
    """
    check_architecture(triple, target_of(triple).name)


def check_processor(triple: str, cpu: str, features: str) -> None:
    """Refuse what LLVM cannot compile for.

    Parameters
    ----------
    triple, cpu, features : as LLVM has them; see :class:`~delassus.compiler.export.Target`.

    Raises
    ------
    InputError
        If LLVM does not know the triple, or not the processor or a feature for it, if they do
        not go together, or if kernels are not known to work on its architecture.
    """
    check_triple(triple)
    if not re.fullmatch(r"[\w.+-]*", cpu):
        raise InputError(f"processor {cpu!r} is no name; LLVM has names like cortex-a76")
    if not _FEATURES.fullmatch(features):
        raise InputError(f"features {features!r} are not of the form '+avx2,-fma'")
    status, said = _ask(triple, cpu, features)
    if cpu == "help" or f"'{cpu}' is not a recognized processor" in said:
        names = _LISTED.findall(_ask(triple, "help", "")[1].partition("Available features")[0])
        near = ", ".join(difflib.get_close_matches(cpu, names, n=3, cutoff=0.0))
        raise InputError(
            f"processor {cpu!r} is unknown to LLVM for {triple}; e.g. {near}; leave cpu out for "
            "the oldest of the target, or this machine's where no target is named"
        )
    unknown = _UNKNOWN_FEATURE.search(said)
    if unknown is not None:
        raise InputError(f"feature {unknown[1]!r} is unknown to LLVM for {triple}")
    if status:
        last = said.strip().rpartition("\n")[2] or f"exit status {status}"
        raise InputError(
            f"LLVM cannot compile for {triple}, processor {cpu or 'generic'!r}, features "
            f"{features!r}: {last}"
        )


def _ask(triple: str, cpu: str, features: str) -> tuple[int, str]:
    """Return the exit status of a child that compiles for this, and what LLVM said there."""
    done = subprocess.run(
        child.command(__name__, triple, cpu, features),
        stdin=subprocess.DEVNULL, capture_output=True, check=False, **child.surroundings(),
    )  # fmt: skip
    return done.returncode, done.stderr.decode(errors="replace")


def main() -> None:
    """Compile an empty function for what the command line names."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    compile_for(_EMPTY, *sys.argv[1:])


if __name__ == "__main__":
    main()
