"""The summary of all papers' claims, and counts above published ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from benchmarks.operation_counts import LARGEST, PAPER_NAMES
from benchmarks.pages import row, table_head
from benchmarks.papers.claim import DEPENDS, DOES_NOT, REPRODUCES, claims_table
from benchmarks.papers.kept import Kept
from benchmarks.papers.markdown import comparison
from benchmarks.papers.osimr import count, is_plotted, recounted
from benchmarks.papers.page import Page, Part


def _summary(kept: Kept, pages: Sequence[Page]) -> Iterator[str]:
    yield from table_head(("paper", "claims", "reproduce", "depend on …", "do not"))
    for page in pages:
        if page.claims is None:
            continue
        verdicts = [claim.verdict for claim in page.claims(kept)]
        depending = sum(verdict.startswith(DEPENDS) for verdict in verdicts)
        numbers = (verdicts.count(REPRODUCES), depending, verdicts.count(DOES_NOT))
        yield row((f"[{page.title}]({page.name}.md)", len(verdicts), *numbers))


def _claims(kept: Kept, page: Page) -> Iterator[str]:
    assert page.claims is not None
    yield from ("", f"## {page.title}", "", *claims_table(page.claims(kept)))
    yield from ("", f"Tables and figures: [{page.title}]({page.name}.md).")


def _above(kept: Kept, name: str) -> Iterator[str]:
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
            yield row((name, f"`{algorithm}`", *cells, *[""] * (2 - len(cells))))


def _is_counted(name: str, algorithm: str) -> bool:
    published = recounted()[name].published.get(PAPER_NAMES[algorithm])
    return published is not None and (published <= LARGEST or is_plotted(name, algorithm))


def _not_counted() -> Iterator[str]:
    """Yield the sentence on the counts that are too large for this run."""
    every = [(name, each) for name in recounted() for each in PAPER_NAMES
             if PAPER_NAMES[each] in recounted()[name].published]  # fmt: skip
    left = [f"{name}, `{each}`" for name, each in every if not _is_counted(name, each)]
    yield ""
    yield (
        f"{len(every) - len(left)} published counts were compared; counts above {LARGEST} take "
        f"minutes each and were not: {'; '.join(left)}."
    )


def parts(pages: Sequence[Page], kept: Kept, quick: bool) -> Mapping[str, list[Part]]:
    """Return the parts of the page; a quick run has a mechanism.

    Parameters
    ----------
    pages : of all papers.
    """
    told = [page for page in pages if page.claims is not None]
    names = list(recounted())[: 1 if quick else None]
    above: list[str] = table_head(("mechanism", "algorithm", "generic", "specialised"), 2)
    return {
        "summary": [] if quick else [partial(_summary, kept, told)],
        "claims": [] if quick else [partial(_claims, kept, page) for page in told],
        "above": [lambda: above, *(partial(_above, kept, name) for name in names), _not_counted],
    }
