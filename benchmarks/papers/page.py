"""Pages of ``make papers``: prose with places for tables, the paper's claims with their verdicts.

``published.yaml`` has the numbers and claims of the papers, ``benchmarks/texts`` the prose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from matplotlib.figure import Figure

from benchmarks import machine
from benchmarks.pages import Places, Table, table
from benchmarks.papers.kept import Kept

_PUBLISHED = Path(__file__).with_name("published.yaml")
REPRODUCES, DOES_NOT, DEPENDS = "reproduces", "**does not**", "depends on "

@cache
def published(paper: str) -> Mapping[str, Any]:
    """Return the numbers and claims printed in a paper."""
    found: dict[str, Mapping[str, Any]] = yaml.safe_load(_PUBLISHED.read_bytes())
    return found[paper]


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

    @classmethod
    def of(
        cls, paper: str, name: str, holds: bool | str, found: str, words: Mapping[str, str] = {}
    ) -> Claim:
        """Return a claim of ``published.yaml``, see :data:`Findings`."""
        listed = published(paper)["claims"][name]
        claim, printed, reason, remark = (
            listed.get(part, "").format(**{**published(paper), **words})
            for part in ("claim", "printed", "reason", "remark")
        )
        verdict = DEPENDS + holds if isinstance(holds, str) else (DOES_NOT, REPRODUCES)[holds]
        return cls(claim, printed, found, verdict, remark or (reason if holds is not True else ""))


Findings = Iterator[tuple[str, bool | str, str] | tuple[str, bool | str, str, Mapping[str, str]]]
"""Key of a claim in ``published.yaml``, whether it reproduces or on what that depends, the numbers
found, and words that the listed texts leave open."""


def claims_table(claims: Iterable[Claim]) -> Table:
    """Return a table of claims."""
    return table(("claim", "printed", "here", "verdict", "likely reason"), claims, None)


def tally(claims: Iterable[Claim]) -> tuple[int, int, int, int]:
    """Return the number of claims, and of those that reproduce, depend, and do not."""
    verdicts = [claim.verdict for claim in claims]
    depending = sum(verdict.startswith(DEPENDS) for verdict in verdicts)
    return len(verdicts), verdicts.count(REPRODUCES), depending, verdicts.count(DOES_NOT)


def summary(claims: Iterable[Claim]) -> str:
    """Return the sentence that counts a page's claims by their verdict."""
    number, reproduced, depending, failed = tally(claims)
    return (
        f"**Verdict**: of {number} claims {reproduced} reproduced, "
        f"{depending} dependent on conditions that the paper leaves open, "
        f"{failed} not reproduced; [summary of all papers](verdicts.md)."
    )


@dataclass(frozen=True)
class Page:
    """A page, about a paper or about all of them.

    Attributes
    ----------
    name : of its file.
    places_of : (results, whether the run is quick) → results by place, claims aside.
    figures : results of a whole run → figures by name.
    findings : results of a whole run → what it finds of the paper's claims.
    title : of the paper, for the summary of verdicts.
    """

    name: str
    places_of: Callable[[Kept, bool], Places]
    figures: Callable[[Kept], Mapping[str, Figure]] = lambda kept: {}
    findings: Callable[[Kept], Findings] | None = None
    title: str = ""

    def claims(self, kept: Kept) -> list[Claim]:
        """Return the paper's claims with their verdicts, of a whole run."""
        found = self.findings(kept) if self.findings else ()
        return [Claim.of(self.name, *each) for each in found]

    def places(self, kept: Kept, quick: bool) -> Places:
        """Return the results of the page by place; a quick run has no verdicts."""
        found = {"run": run(), **self.places_of(kept, quick)}
        if self.findings is None:
            return found
        if quick:
            return found | {"claims": "", "summary": "A quick run has no verdicts."}
        claims = self.claims(kept)
        return found | {"claims": claims_table(claims), "summary": summary(claims)}


def under_headings(results: Mapping[str, object], level: str = "##") -> Iterator[object]:
    """Yield results below their headings."""
    for heading, result in results.items():
        yield from (f"{level} {heading}", result)


def run() -> str:
    """Return the sentence on the run that writes a page: command, date and machine."""
    versions = machine.versions(("numpy", "scipy"))
    return (
        f"Every number was computed by the run of `make papers` that wrote this page: "
        f"{machine.day()}, {machine.processor()}, {versions}."
    )


def percent(value: float) -> str:
    """Return a signed share [%]."""
    return f"{value:+.1f} %".replace("-", "−")


def comparison(first: float, second: float) -> str:
    """Return two numbers and how much more the first is."""
    return f"{number(first)} / {number(second)}, {percent(100.0 * (first / second - 1.0))}"


def number(value: float) -> str:
    """Return a number without digits that it does not have."""
    return f"{value:.0f}" if value == int(value) else f"{value:g}"
