"""Pages of benchmarks: tables in Markdown, cells of times, sections under headings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.timing import Timing

TEXTS = Path(__file__).with_name("texts")
"""Prose of pages, with places for tables in braces."""
ABSENT = "–"
"""The cell of what was not measured."""
QUICK = "\n\n**A quick run: too few repetitions for any claim.**"
"""Paragraph of the pages of a quick run."""


def filled(text: Path, **places: object) -> str:
    """Return a text with what stands at its places."""
    return text.read_text(encoding="utf-8").format(**places)


def table(
    head: Sequence[str], rows: Iterable[Iterable[object]], words: int | None = 1
) -> str:
    """Return a Markdown table, all columns after the first `words` aligned right (None: none)."""
    return "\n".join([*table_head(head, words), *map(row, rows)])


def table_head(head: Iterable[str], words: int | None = 1) -> list[str]:
    """Return the first two lines of a table, as :func:`table` has them."""
    names = list(head)
    left = len(names) if words is None else words
    return [row(names), "|" + "---|" * left + "---:|" * (len(names) - left)]


def row(cells: Iterable[object]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def short(value: float) -> str:
    """Return a number with three digits, or without a fraction."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"


def cell(timing: Timing | None, unit: float = 1e-6) -> str:
    """Return minimum / median of times in this unit [s], or of a ratio with the unit 1."""
    if timing is None:
        return ABSENT
    return f"{short(timing.minimum / unit)} / {short(timing.median / unit)}"


def times_by_case(times: Mapping[str, Mapping[str, Timing]], head: str, of: str) -> str:
    """Return a table with a row per case: a column per contender, and ratios of medians.

    Parameters
    ----------
    times : by case and contender; all cases have the contenders of the first one.
    head : heading of the first column.
    of : heading of the last column, how many times longer the fastest of the others takes.
    """
    names = list(next(iter(times.values())))
    rows = []
    for case, by_name in times.items():
        own, *others = by_name.values()
        ratio = min(each.median for each in others) / own.median
        rows.append([case, *map(cell, by_name.values()), f"{ratio:.1f}"])
    return table([head, *names, of], rows)


def about_machine(*more: tuple[str, str]) -> str:
    """Return a table of the processor, its caches, more and versions."""
    known = (("processor", machine.processor()), ("caches", machine.caches()))
    return table(("", ""), (*known, *more, ("versions", machine.versions())), words=2)


def made_on(*remarks: str, packages: Sequence[str] | None = None) -> str:
    """Return a list of remarks, the processor and versions."""
    known = machine.versions() if packages is None else machine.versions(tuple(packages))
    return "\n".join(f"- {line}" for line in (*remarks, machine.processor(), known))


def document(*sections: tuple[str, str]) -> str:
    """Return a page of headings and texts; the first heading is the page's."""
    parts = [f"{'##' if k else '#'} {head}\n\n{text}" for k, (head, text) in enumerate(sections)]
    return "\n\n".join(parts) + "\n"
