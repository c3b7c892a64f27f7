"""Claims of papers with their verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from benchmarks.pages import row, table_head

REPRODUCES, DOES_NOT, DEPENDS = "reproduces", "**does not**", "depends on "


class Claim(NamedTuple):
    """A claim of a paper with its verdict.

    Attributes
    ----------
    claim : the words of the paper, with their place.
    printed : the printed number; empty where there is none.
    found : the numbers of this run.
    verdict : :data:`REPRODUCES`, :data:`DOES_NOT`, or :data:`DEPENDS` and on what.
    reason : the likely reason of a difference.
    """

    claim: str
    printed: str
    found: str
    verdict: str
    reason: str


def claims_table(claims: Iterable[Claim]) -> list[str]:
    """Return the lines of a table of claims."""
    heads = ("claim", "printed", "here", "verdict", "likely reason")
    return [*table_head(heads, None), *map(row, claims)]


def summary(claims: Iterable[Claim]) -> str:
    """Return the sentence that counts a page's claims by their verdict."""
    verdicts = [claim.verdict for claim in claims]
    depending = sum(verdict.startswith(DEPENDS) for verdict in verdicts)
    return (
        f"**Verdict**: of {len(verdicts)} claims {verdicts.count(REPRODUCES)} reproduced, "
        f"{depending} dependent on conditions that the paper leaves open, "
        f"{verdicts.count(DOES_NOT)} not reproduced; [summary of all papers](verdicts.md)."
    )
