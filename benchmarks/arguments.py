"""Command lines of benchmarks: ``--help``, and ``--output`` for the place of the page."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_output(parser: argparse.ArgumentParser, default: Path, what: str = "the page") -> None:
    """Add the option of the file or folder that is written."""
    root = Path(__file__).resolve().parents[1]
    shown = default.relative_to(root) if default.is_relative_to(root) else default
    parser.add_argument(
        "--output", "--out", type=Path, default=default, metavar="PATH",
        help=f"path of {what} that is written (default: {shown} of this repository)",
    )  # fmt: skip


def output_of(module: str, doc: str | None, default: Path) -> Path:
    """Return the page that a benchmark without other options writes; ends at ``--help``.

    Parameters
    ----------
    module : name of the benchmark, for the usage line.
    doc : docstring of the benchmark; its first line is the description.
    """
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{module}", description=(doc or "").partition("\n")[0]
    )
    add_output(parser, default)
    output: Path = parser.parse_args().output
    return output
