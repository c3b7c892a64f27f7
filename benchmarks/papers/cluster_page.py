"""The cluster paper's page: tables II to IV, figures 9 to 14, and what it claims."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from benchmarks.pages import Places
from benchmarks.papers import chains, cluster_claims, cluster_figures, clusters, leg
from benchmarks.papers.kept import Kept
from benchmarks.papers.page import Findings, published


class _Run(NamedTuple):
    """What a run has: seconds and processes that measure a robot, duration of the motion [s]."""

    robots: tuple[str, ...] = tuple(clusters.ROBOTS)
    seconds: float = 0.3
    processes: int = clusters.PROCESSES
    size: chains.Size = chains.Size()
    duration: float = leg.DURATION

    def tables(self, kept: Kept) -> tuple[list[clusters.Found], set[str]]:
        return clusters.tables(kept, self.robots, self.seconds, self.processes)

    def chains(self, kept: Kept) -> dict[str, Any]:
        return chains.found(kept, self.size)

    def leg(self, kept: Kept) -> dict[str, Any]:
        key = f"figure 14, {self.duration:g} s"
        found: dict[str, Any] = kept.of(key, partial(leg.measured, self.duration))
        return found


_WHOLE, _QUICK = _Run(), _Run(("cheetah6",), 0.01, 1, chains.QUICK, 0.05)


def places(kept: Kept, quick: bool) -> Places:
    """Return the results of the page by place; a quick run has one robot and short chains."""
    run = _QUICK if quick else _WHOLE
    (tables, measured), random = run.tables(kept), run.chains(kept)
    machines = measured.union(random["measured"])
    return {
        "tables": clusters.results(tables, published("clusters")),
        "chains": chains.results(random["kinds"], run.size),
        "leg": leg.table_of(run.leg(kept)),
        "measured": f"Times were measured on {'; '.join(sorted(machines))}. "
        + clusters.agreement(tables),
    }


def figures(kept: Kept) -> dict[str, Figure]:
    """Return the figures of a whole run by the name of their file."""
    return {
        "clusters_robots": cluster_figures.robots(_WHOLE.tables(kept)[0]),
        "clusters_chains": cluster_figures.chains(_WHOLE.chains(kept)["kinds"]),
        "clusters_leg": cluster_figures.leg_errors(_WHOLE.leg(kept)),
    }


def findings(kept: Kept) -> Findings:
    """Yield what a whole run finds of the paper's claims."""
    yield from cluster_claims.of_tables(_WHOLE.tables(kept)[0], published("clusters"))
    yield from cluster_claims.of_chains(_WHOLE.chains(kept)["kinds"])
    yield from cluster_claims.of_leg(_WHOLE.leg(kept))
