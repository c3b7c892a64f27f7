"""What the programs here need beyond the dependencies that rosdep installs."""

from __future__ import annotations

import importlib.util
import sys


def missing(program: str, *packages: str) -> str | None:
    """Return in one line which packages are not installed and what installs them, or None."""
    absent = [name for name in packages if importlib.util.find_spec(name) is None]
    if not absent:
        return None
    return (
        f"{program}: needs the Python package {' and '.join(absent)}, not installed for "
        f"{sys.executable}; 'pip install {' '.join(absent)}' with that Python installs it"
    )
