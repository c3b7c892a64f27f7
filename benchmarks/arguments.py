"""Command lines of benchmarks: cases, ``--quick``, and ``--output`` for the place of the page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.cases import chosen


def parser_of(module: str, doc: str | None) -> argparse.ArgumentParser:
    """Return the parser of ``python -m benchmarks.MODULE``, described by a docstring's first line.

    Parameters
    ----------
    module : name of the benchmark, with its dot; empty for all benchmarks.
    """
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks{module}", description=(doc or "").partition("\n")[0]
    )


def add_output(parser: argparse.ArgumentParser, default: Path, what: str = "the page") -> None:
    """Add the option of the file or folder that is written."""
    root = Path(__file__).resolve().parents[1]
    shown = default.relative_to(root) if default.is_relative_to(root) else default
    parser.add_argument(
        "--output", "--out", type=Path, default=default, metavar="PATH",
        help=f"path of {what} that is written (default: {shown} of this repository)",
    )  # fmt: skip


def add_cases(
    parser: argparse.ArgumentParser, cases: Sequence[Any], default: str | None = None
) -> None:
    """Add the option of the cases; `default` names them, separated by commas (None: all)."""

    def named(names: str) -> tuple[Any, ...]:
        try:
            return chosen(names, cases)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    known = ", ".join(case.name for case in cases)
    parser.add_argument(
        "--robots", type=named, metavar="NAME,...", default=chosen(default, cases),
        help=f"cases to run (default: {default or 'all'}), of {known}",
    )  # fmt: skip


def add_quick(parser: argparse.ArgumentParser, what: str) -> None:
    """Add ``--quick``, whose pages are not those of the documentation."""
    parser.add_argument(
        "--quick", action="store_true", help=f"{what}, as a test of the benchmark; its pages "
        "stand below build/quick unless --output names another folder",
    )  # fmt: skip


def folder_of(arguments: argparse.Namespace, default: Path) -> Path:
    """Return the folder of the pages, which a quick run has elsewhere than `default`."""
    output: Path = arguments.output
    if not arguments.quick or output != default:
        return output
    return Path(__file__).resolve().parents[1] / "build" / "quick" / default.name


def output_of(module: str, doc: str | None, default: Path) -> Path:
    """Return the page that a benchmark without other options writes; ends at ``--help``."""
    parser = parser_of(f".{module}", doc)
    add_output(parser, default)
    output: Path = parser.parse_args().output
    return output
