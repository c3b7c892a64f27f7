"""Pages of benchmarks: prose with places, filled with results that stand in JSON beside the page.

``python -m benchmarks.pages`` fills all pages anew, without a measurement: after a change of their
prose in ``benchmarks/texts``, whose folders are those of ``docs``.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks import machine
from benchmarks.timing import Timing

TEXTS = Path(__file__).with_name("texts")
"""Prose of pages, with places for results in braces."""
DOCS = Path(__file__).resolve().parents[1] / "docs"
ABSENT = "–"
"""The cell of what was not measured."""
QUICK = "**A quick run: too few repetitions for any claim.**"
"""Paragraph of the pages of a quick run."""


@dataclass(frozen=True)
class Table:
    """A table of a page, printed as Markdown.

    Attributes
    ----------
    head, rows : cells.
    words : number of columns on the left that are aligned left; those that follow are numbers.
    """

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int

    def __str__(self) -> str:
        rule = "|" + "---|" * self.words + "---:|" * (len(self.head) - self.words)
        return "\n".join([row(self.head), rule, *map(row, self.rows)])

    def column(self, name: str) -> list[str]:
        """Return the cells of a column."""
        return [cells[self.head.index(name)] for cells in self.rows]


Block: TypeAlias = "str | Table"
"""A paragraph, a heading, a list or a table."""
Places: TypeAlias = Mapping[str, Any]
"""Results by their place in the prose: a block, or blocks in lists of any depth."""


def table(
    head: Iterable[object], rows: Iterable[Iterable[object]], words: int | None = 1
) -> Table:
    """Return a table, all columns after the first `words` aligned right (None: none)."""
    names = [str(name) for name in head]
    cells = [[str(cell) for cell in each] for each in rows]
    return Table(names, cells, len(names) if words is None else words)


def row(cells: Iterable[object]) -> str:
    """Return a line of a table."""
    return f"| {' | '.join(map(str, cells))} |"


def blocks(place: Any) -> Iterator[Block]:
    """Yield the blocks of a place in their order."""
    if isinstance(place, Iterable) and not isinstance(place, str):
        for each in place:
            yield from blocks(each)
    elif place != "":
        yield place if isinstance(place, Table) else str(place)


def filled(text: str, places: Places) -> str:
    """Return the page of a text (its path in :data:`TEXTS` without suffix) and its results.

    Paragraphs without results are left out.
    """
    prose = (TEXTS / f"{text}.md").read_text(encoding="utf-8")
    results = {name: "\n\n".join(map(str, blocks(place))) for name, place in places.items()}
    return re.sub(r"\n{3,}", "\n\n", prose.format(**results).rstrip()) + "\n"


def write(page: Path, text: str, places: Places) -> None:
    """Write a page, and its results beside it."""
    results = {name: list(blocks(place)) for name, place in places.items()}
    page.parent.mkdir(parents=True, exist_ok=True)
    page.with_suffix(".json").write_text(f"{_dumped(results)}\n", encoding="utf-8")
    page.write_text(filled(text, results), encoding="utf-8")


def read(page: Path) -> dict[str, list[Block]]:
    """Return the results of a page by place."""
    results: dict[str, list[Block]] = json.loads(
        page.with_suffix(".json").read_text(encoding="utf-8"),
        object_hook=lambda entry: Table(**entry) if "head" in entry else entry,
    )
    return results


def tables(page: Path, place: str) -> list[Table]:
    """Return the tables at a place of a page."""
    return [block for block in read(page)[place] if isinstance(block, Table)]


def _dumped(value: object) -> str:
    """Return JSON in which a row of a table, or a list of words, is one line."""
    if isinstance(value, Table):
        return _dumped(vars(value))
    if isinstance(value, Mapping):
        return "{\n" + ",\n".join(f"{_dumped(k)}: {_dumped(v)}" for k, v in value.items()) + "\n}"
    if isinstance(value, list) and not all(isinstance(each, str) for each in value):
        return "[\n" + ",\n".join(map(_dumped, value)) + "\n]"
    return json.dumps(value, ensure_ascii=False)


def short(value: float) -> str:
    """Return a number with three digits, or without a fraction."""
    return f"{value:.0f}" if value >= 99.5 else f"{value:.3g}"


def cell(timing: Timing | None, unit: float = 1e-6) -> str:
    """Return minimum / median of times in this unit [s], or of a ratio with the unit 1."""
    if timing is None:
        return ABSENT
    return f"{short(timing.minimum / unit)} / {short(timing.median / unit)}"


def times_by_case(times: Mapping[str, Mapping[str, Timing]], head: str, of: str) -> Table:
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


def about_machine(*more: tuple[str, str]) -> Table:
    """Return a table of the processor, its caches, more and versions."""
    known = (("processor", machine.processor()), ("caches", machine.caches()))
    return table(("", ""), (*known, *more, ("versions", machine.versions())), words=2)


def made_on(*remarks: str) -> str:
    """Return a list of remarks, the processor and versions."""
    known = (*remarks, machine.processor(), machine.versions())
    return "\n".join(f"- {line}" for line in known)


def main() -> None:
    """Fill all pages anew."""
    argparse.ArgumentParser(
        prog="python -m benchmarks.pages", description=(__doc__ or "").partition("\n\n")[2]
    ).parse_args()
    for text in sorted(TEXTS.rglob("*.md")):
        name = text.relative_to(TEXTS).with_suffix("")
        page = DOCS / f"{name}.md"
        page.write_text(filled(str(name), read(page)), encoding="utf-8")
        print(page)


if __name__ == "__main__":
    main()
