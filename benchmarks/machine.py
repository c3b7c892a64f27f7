"""Description of the machine and its software; without a date, so that runs compare."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from datetime import datetime, timezone
from pathlib import Path

from benchmarks import compilers
from benchmarks.cases import AbsentError

_PACKAGES = ("numpy", "llvmlite", "pin", "cmeel-eigen", "casadi", "example-robot-data")


def processor() -> str:
    """Return the processor's name and the number of cores that may be used."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    return f"{name}, {len(os.sched_getaffinity(0))} cores"


def core() -> str:
    """Return the processor's name, and whether it has AVX-512."""
    name = processor().rpartition(", ")[0]
    info = Path("/proc/cpuinfo")
    wide = info.exists() and " avx512f" in info.read_text(encoding="utf-8")
    return f"{name}, {'' if wide else 'no '}AVX-512"


def caches() -> str:
    """Return the sizes of the first core's caches."""
    parts = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (
            (folder / item).read_text(encoding="utf-8").strip()
            for item in ("level", "type", "size")
        )
        parts.append(f"L{level} {kind.lower()} {size}")
    return ", ".join(parts) or "unknown"


def compiler() -> str:
    """Return the compiler's version, or why there is none."""
    try:
        found = compilers.find()
    except AbsentError as error:
        return str(error)
    return f"{found.version}, {' '.join(compilers.FLAGS)}"


def day() -> str:
    """Return the day in UTC, as ISO 8601 has it."""
    return datetime.now(timezone.utc).date().isoformat()


def versions(packages: tuple[str, ...] = _PACKAGES) -> str:
    """Return the versions of Python and of packages."""
    found = [f"Python {platform.python_version()}"]
    for name in packages:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)
