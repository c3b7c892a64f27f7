"""The summary of all papers' claims, and counts above published ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.operation_counts import LARGEST, PAPER_NAMES
from benchmarks.pages import Block, Places, Table, table
from benchmarks.papers.kept import Kept
from benchmarks.papers.osimr import count, is_plotted, recounted
from benchmarks.papers.page import Page, claims_table, comparison, tally


def _summary(kept: Kept, pages: Sequence[Page]) -> Table:
    rows = ((f"[{page.title}]({page.name}.md)", *tally(page.claims(kept))) for page in pages)
    return table(("paper", "claims", "reproduce", "depend on …", "do not"), rows)


def _claims(kept: Kept, page: Page) -> list[Block]:
    return [
        f"## {page.title}", claims_table(page.claims(kept)),
        f"Tables and figures: [{page.title}]({page.name}.md).",
    ]  # fmt: skip


def _above(kept: Kept, name: str) -> Iterator[tuple[str, ...]]:
    """Yield rows of a mechanism whose count exceeds the released implementation's."""
    told = recounted()[name].published
    for algorithm, paper in PAPER_NAMES.items():
        if not _is_counted(name, algorithm):
            continue
        found = [count(kept, name, algorithm)]
        if told[paper] <= LARGEST:
            found.append(count(kept, name, algorithm, generic=False))
        if max(found) > told[paper]:
            cells = [comparison(each, told[paper]) for each in found]
            yield name, f"`{algorithm}`", *cells, *[""] * (2 - len(cells))


def _is_counted(name: str, algorithm: str) -> bool:
    published = recounted()[name].published.get(PAPER_NAMES[algorithm])
    return published is not None and (published <= LARGEST or is_plotted(name, algorithm))


def _not_counted() -> str:
    """Return the sentence on the counts that are too large for this run."""
    every = [(name, each) for name in recounted() for each in PAPER_NAMES
             if PAPER_NAMES[each] in recounted()[name].published]  # fmt: skip
    left = [f"{name}, `{each}`" for name, each in every if not _is_counted(name, each)]
    return (
        f"{len(every) - len(left)} published counts were compared; counts above {LARGEST} take "
        f"minutes each and were not: {'; '.join(left)}."
    )


def places(pages: Sequence[Page], kept: Kept, quick: bool) -> Places:
    """Return the results of the page by place; a quick run has a mechanism.

    Parameters
    ----------
    pages : of all papers.
    """
    told = [] if quick else pages
    names = list(recounted())[: 1 if quick else None]
    above = [row for name in names for row in _above(kept, name)]
    return {
        "summary": _summary(kept, told) if told else "",
        "claims": [_claims(kept, page) for page in told],
        "above": [
            table(("mechanism", "algorithm", "generic", "specialised"), above, 2), _not_counted(),
        ],
    }  # fmt: skip
