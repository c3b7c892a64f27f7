"""Programs in C and C++ around exported code, built as users build them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def built(
    folder: Path,
    source: str,
    compiler: str = "gcc",
    options: tuple[str, ...] = (),
    **exported: Any,
) -> Path:
    """Return a program of a source text; skip the test where the compiler is missing.

    Parameters
    ----------
    compiler : ``"gcc"`` takes the source for C99, ``"g++"`` for C++.
    exported : objects with their headers, by the name of the header.
    """
    found = shutil.which(compiler)
    if found is None:
        pytest.skip(f"{compiler} is not installed")
    for name, each in exported.items():
        (folder / f"{name}.o").write_bytes(each.object_file)
        (folder / f"{name}.h").write_text(each.header, encoding="utf-8")
    (folder / "program.c").write_text(source, encoding="utf-8")
    as_source = ["-std=c99"] if compiler == "gcc" else ["-x", "c++"]
    subprocess.run(
        [found, "-Wall", "-Wextra", "-Werror", "-pedantic", *options, *as_source, "program.c",
         "-x", "none", *(f"{name}.o" for name in exported), "-lm", "-o", "program"],
        cwd=folder, check=True,
    )  # fmt: skip
    return folder / "program"


def numbers_of(program: Path, *given: Any) -> np.ndarray:
    """Return the numbers that a program prints for the numbers that it reads."""
    text = " ".join(repr(float(x)) for part in given for x in np.ravel(part))
    done = subprocess.run([program], input=text, capture_output=True, text=True, check=True)
    return np.array(done.stdout.split(), float)
