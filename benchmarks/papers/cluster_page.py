"""The cluster paper's page: tables II to IV, figures 9 to 14, and what it claims."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from benchmarks.papers import chains, cluster_claims, cluster_figures, clusters, leg
from benchmarks.papers.claim import Claim
from benchmarks.papers.kept import Kept
from benchmarks.papers.page import Part, published

_QUICK = ("cheetah6",)
_SECONDS, _QUICK_SECONDS = 0.3, 0.01
"""Time to measure each method of a robot [s]."""
_QUICK_MOTION = 0.05
"""Duration of the leg's motion [s]."""


def parts(kept: Kept, quick: bool) -> Mapping[str, list[Part]]:
    """Return the parts of the page by place; a quick run has one robot and short chains."""
    return {
        "tables": [partial(_tables, kept, quick)],
        "chains": [partial(_chains, kept, quick)],
        "leg": [lambda: leg.lines(_leg(kept, quick))],
        "measured": [partial(_measured, kept, quick)],
    }


def figures(kept: Kept) -> dict[str, Figure]:
    """Return the figures of a whole run by the name of their file."""
    return {
        "clusters_robots": cluster_figures.robots(_found(kept, False)),
        "clusters_chains": cluster_figures.chains(_random(kept, False)["kinds"]),
        "clusters_leg": cluster_figures.leg_errors(_leg(kept, False)),
    }


def claims(kept: Kept) -> list[Claim]:
    """Return the claims with their verdicts, of a whole run."""
    return [
        *cluster_claims.of_tables(_found(kept, False), published("clusters")),
        *cluster_claims.of_chains(_random(kept, False)["kinds"]),
        *cluster_claims.of_leg(_leg(kept, False)),
    ]


def _found(kept: Kept, quick: bool) -> list[clusters.Found]:
    names = _QUICK if quick else tuple(clusters.ROBOTS)
    return clusters.tables(kept, names, _QUICK_SECONDS if quick else _SECONDS)


def _random(kept: Kept, quick: bool) -> dict[str, Any]:
    return chains.found(kept, chains.QUICK if quick else chains.Size())


def _leg(kept: Kept, quick: bool) -> dict[str, Any]:
    duration = _QUICK_MOTION if quick else leg.DURATION
    found: dict[str, Any] = kept.of(f"figure 14, {duration:g} s", partial(leg.measured, duration))
    return found


def _tables(kept: Kept, quick: bool) -> Iterator[str]:
    for found in _found(kept, quick):
        yield from clusters.lines(found, published("clusters"))
    yield from clusters.library(published("clusters"))


def _chains(kept: Kept, quick: bool) -> Iterator[str]:
    size = chains.QUICK if quick else chains.Size()
    return chains.lines(_random(kept, quick)["kinds"], size)


def _measured(kept: Kept, quick: bool) -> Iterator[str]:
    machines = set(_random(kept, quick)["measured"])
    for found in _found(kept, quick):
        machines |= found.measured
    yield f"Times were measured on {'; '.join(sorted(machines))}."
