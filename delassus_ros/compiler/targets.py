"""Targets of exported kernels: which are known to work, and what the oldest processor has."""

from __future__ import annotations

import re

from delassus_ros.errors import InputError

ARCHITECTURES = (
    "aarch64", "arm", "ppc64le", "riscv32", "riscv64", "thumb", "wasm32", "x86", "x86-64",
)  # fmt: skip
"""Names by LLVM of architectures whose objects need only what they should. For others LLVM may
end the process, or make an object that no linker takes."""
_SYSTEM = re.compile(r"(linux|none|windows|freebsd|netbsd|openbsd|wasi)")


def is_x86(triple: str) -> bool:
    """Return whether a target is an x86 processor, of 32 or 64 bits."""
    return triple.startswith(("x86_64", "amd64", "i386", "i486", "i586", "i686"))


def has_few_registers(triple: str, features: str) -> bool:
    """Return whether a target has 16 vector registers at most: x86 below AVX-512.

    Parameters
    ----------
    features : as far as they are named; a processor's name may stand for more.
    """
    return is_x86(triple) and "+avx512f" not in features.split(",")


def check_architecture(triple: str, architecture: str) -> None:
    """Refuse an architecture that is not known to work.

    Parameters
    ----------
    triple : what was asked for.
    architecture : its name by LLVM.

    Raises
    ------
    InputError
        Names those that are.
    """
    if architecture not in ARCHITECTURES:
        raise InputError(
            f"target {triple!r}: kernels are not known to work on {architecture}; architectures: "
            f"{', '.join(ARCHITECTURES)}"
        )


def full_triple(triple: str) -> str:
    """Return a triple with its vendor, which may be left out.

    LLVM's library takes the second word for the vendor whatever it is. Without a system and its
    calling convention, ``arm-linux-gnueabihf`` would pass doubles in the wrong registers.
    """
    first, *others = triple.split("-")
    if others and _SYSTEM.match(others[0]):
        others.insert(0, "unknown")
    return "-".join([first, *others])


def oldest_features(triple: str) -> str:
    """Return what every processor of a target has, where LLVM assumes less.

    The calling convention of ``eabihf`` and of RISC-V with a system passes doubles in
    floating-point registers. On microcontrollers these may be of single precision. Without SSE2,
    arithmetic is not that of doubles.
    """
    architecture, _, rest = full_triple(triple).partition("-")
    bare = "-none-" in f"-{rest}-"
    if architecture.startswith(("arm", "thumb")) and rest.endswith("eabihf"):
        return "+vfp2sp" if bare else "+vfp2"
    if architecture.startswith("riscv") and _SYSTEM.search(rest) and not bare:
        return "+m,+a,+f,+d,+c"
    return "+sse2" if re.fullmatch(r"i[3-6]86", architecture) else ""
