"""Pages of ``make papers``: their parts, computed one after the other, verdicts and text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from matplotlib.figure import Figure

from benchmarks import machine
from benchmarks.papers.claim import Claim, claims_table, summary
from benchmarks.papers.kept import Kept

_PUBLISHED = Path(__file__).with_name("published.yaml")
TEXTS = Path(__file__).with_name("texts")
"""The pages' prose, with the places of their tables."""

Part: TypeAlias = Callable[[], Iterable[str]]
"""Computes some lines of a page."""


def published(paper: str) -> Mapping[str, Any]:
    """Return the numbers printed in a paper."""
    found: dict[str, Mapping[str, Any]] = yaml.safe_load(_PUBLISHED.read_text(encoding="utf-8"))
    return found[paper]


def _no_figures(kept: Kept) -> Mapping[str, Figure]:
    return {}


@dataclass(frozen=True)
class Page:
    """A page about a paper.

    Attributes
    ----------
    name : of its file.
    parts : (results, whether the run is quick) → parts of the page by place: ``tables`` for the
        place ``{tables}`` of the text.
    figures : results of a whole run → figures by name.
    claims : results of a whole run → the paper's claims with their verdicts.
    title : of the paper, for the summary of verdicts.
    """

    name: str
    parts: Callable[[Kept, bool], Mapping[str, list[Part]]]
    figures: Callable[[Kept], Mapping[str, Figure]] = _no_figures
    claims: Callable[[Kept], list[Claim]] | None = None
    title: str = ""

    def text(self, lines: Mapping[str, list[str]], kept: Kept, quick: bool) -> str:
        """Return the page with its lines by place; a quick run has no verdicts."""
        text = (TEXTS / f"{self.name}.md").read_text(encoding="utf-8")
        places = {"run": [run()], **lines}
        if self.claims is not None:
            claims = [] if quick else self.claims(kept)
            places |= {"claims": [], "summary": ["A quick run has no verdicts."]}
            if claims:
                places |= {"claims": claims_table(claims), "summary": [summary(claims)]}
        for place, found in places.items():
            text = text.replace(f"{{{place}}}", "\n".join(found).strip())
        return text


def run() -> str:
    """Return the sentence on the run that writes a page: command, date and machine."""
    versions = machine.versions(("numpy", "scipy"))
    return (
        f"Every number was computed by the run of `make papers` that wrote this page: "
        f"{date.today().isoformat()}, {machine.processor()}, {versions}."
    )
