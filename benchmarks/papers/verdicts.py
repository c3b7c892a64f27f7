"""The summary of all papers' claims, and counts above those of the recount.

Claims are those of the papers' pages as they stand in the folder that is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from benchmarks.operation_counts import LARGEST, PAPER_NAMES
from benchmarks.pages import Block, Places, Table, table, tables
from benchmarks.papers.kept import Kept
from benchmarks.papers.osimr import count, is_plotted, recounted
from benchmarks.papers.page import Claim, Page, comparison, tally


def _summary(claims: Mapping[Page, Table]) -> Table:
    rows = (
        (f"[{page.title}]({page.name}.md)", *tally(Claim(*cells) for cells in found.rows))
        for page, found in claims.items()
    )
    return table(("paper", "claims", "reproduce", "depend on …", "do not"), rows)


def _claims(page: Page, claims: Table) -> list[Block]:
    link = f"Tables and figures: [{page.title}]({page.name}.md)."
    return [f"## {page.title}", claims, link]


def _above(kept: Kept, name: str) -> Iterator[tuple[str, ...]]:
    """Yield rows of a mechanism whose count exceeds the recount's."""
    told = recounted()[name].recount
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
    theirs = recounted()[name].recount.get(PAPER_NAMES[algorithm])
    return theirs is not None and (theirs <= LARGEST or is_plotted(name, algorithm))


def _not_counted() -> str:
    """Return the sentence on the counts that are too large for this run."""
    every = [(name, each) for name in recounted() for each in PAPER_NAMES
             if PAPER_NAMES[each] in recounted()[name].recount]  # fmt: skip
    left = [f"{name}, `{each}`" for name, each in every if not _is_counted(name, each)]
    return (
        f"{len(every) - len(left)} counts were compared; counts above {LARGEST} take "
        f"minutes each and were not: {'; '.join(left)}."
    )


def places(pages: Sequence[Page], kept: Kept, quick: bool) -> Places:
    """Return the results of the page by place; a quick run has a mechanism.

    Parameters
    ----------
    pages : of all papers, which are written before.
    """
    told = {} if quick else {
        page: tables(kept.folder / f"{page.name}.md", "claims")[0] for page in pages
    }  # fmt: skip
    names = list(recounted())[: 1 if quick else None]
    above = [row for name in names for row in _above(kept, name)]
    return {
        "summary": _summary(told) if told else "",
        "claims": [_claims(page, claims) for page, claims in told.items()],
        "above": [
            table(("mechanism", "algorithm", "generic", "specialised"), above, 2), _not_counted(),
        ],
    }  # fmt: skip
