"""What code is written for: this processor, the LLVM in use, and the names of targets."""

from __future__ import annotations

import re
from functools import lru_cache

from delassus.errors import InputError

OLDEST_LLVMLITE = (0, 41)

try:
    import llvmlite
    import llvmlite.binding as llvm
except ImportError as error:
    raise ImportError(
        "delassus needs llvmlite to compile kernels: pip install 'llvmlite>=0.41' "
        "(Debian and Ubuntu: sudo apt install python3-llvmlite)"
    ) from error

if tuple(int(part) for part in llvmlite.__version__.split(".")[:2]) < OLDEST_LLVMLITE:
    raise ImportError(
        f"delassus needs llvmlite 0.41 or newer, found {llvmlite.__version__}: "
        "pip install --upgrade 'llvmlite>=0.41'"
    )

LLVM_VERSION: tuple[int, ...] = tuple(llvm.llvm_version_info)


@lru_cache(maxsize=1)
def host_features() -> str:
    """Return this processor's feature string; full-width vectors are allowed."""
    features = llvm.get_host_cpu_features().flatten()
    return str(features).replace("+prefer-256-bit", "-prefer-256-bit")


def host_triple() -> str:
    """Return LLVM's name of what this process runs on."""
    return str(llvm.get_process_triple())


def host_cpu() -> str:
    """Return LLVM's name of this processor."""
    return str(llvm.get_host_cpu_name())


def host_identity() -> str:
    """Return what compiled code depends on besides its source: processor and LLVM."""
    version = ".".join(str(part) for part in LLVM_VERSION)
    return (
        f"llvmlite {llvmlite.__version__}; LLVM {version}; {host_triple()}; "
        f"{host_cpu()}; {host_features()}; "
        # Code that Python calls looks into its objects; builds of Python differ in them.
        f"objects of {object.__basicsize__} bytes"
    )


def host_width() -> int:
    """Return how many doubles a vector register of this processor holds."""
    features = host_features()
    if "+avx512f" in features:
        return 8
    return 4 if "+avx" in features else 2


ARCHITECTURES = (
    "aarch64", "arm", "ppc64le", "riscv32", "riscv64", "thumb", "wasm32", "x86", "x86-64",
)  # fmt: skip
"""LLVM's names of the architectures that kernels are known to work on. For further ones LLVM may
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
        For an unknown architecture; the message names the known ones.
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
    first, *rest = triple.split("-")
    if rest and _SYSTEM.match(rest[0]):
        rest.insert(0, "unknown")
    return "-".join([first, *rest])


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
