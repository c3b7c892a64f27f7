"""Solvers on the same problems in turns: times, steps and residuals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.contact_problems.generator import ContactProblem
from benchmarks.contact_problems.peers import PEERS, Peer, Siconos
from benchmarks.contact_problems.residual import point_residual
from delassus.contact_forces import ForceSolver, ForceStatus
from delassus.model.spatial import Array

CALLS = 3
"""Timed calls per problem and solver; their median counts. Each follows a call that is not timed,
so that no solver is measured with cold caches."""
PUBLIC = "public problems"
"""Family of the public problems in the tables; they are not part of the data set."""


@dataclass
class Outcome:
    """Figures of one solver, one of each per problem."""

    peer: Peer
    families: list[str] = field(default_factory=list)
    residuals: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def of(self, family: str | None) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return which problems are of a family; all for None."""
        return np.array([family in (None, name) for name in self.families])


def measured(
    problems: Sequence[ContactProblem], say: Callable[[str], None]
) -> dict[tuple[str, str], Outcome]:
    """Return outcomes by law and name, of the solvers that are installed.

    Public problems are solved under Coulomb's law alone: with their asymmetric matrices, the
    convex law is not that of a minimum.
    """
    outcomes = [Outcome(peer) for peer in PEERS if peer.is_installed]
    for number, p in enumerate(problems):
        if number % 200 == 0:
            say(f"solvers: problem {number} of {len(problems)}")
        chosen = [o for o in outcomes if p.family != PUBLIC or o.peer.law == "coulomb"]
        calls = [outcome.peer.prepare(p) for outcome in chosen]
        taken: list[list[float]] = [[] for _ in calls]
        for turn in range(CALLS):
            for outcome, call, times in zip(chosen, calls, taken, strict=True):
                call()
                time, forces, steps = call()
                times.append(time)
                if turn == 0:
                    r = point_residual(p.G, p.a0, p.mu, forces, outcome.peer.law)
                    outcome.residuals.append(r if np.isfinite(r) else np.inf)
                    outcome.steps.append(steps)
                    outcome.families.append(p.family)
        for outcome, times in zip(chosen, taken, strict=True):
            outcome.times.append(float(np.median(times)))
    Siconos.end()
    return {(outcome.peer.law, outcome.peer.name): outcome for outcome in outcomes}


def steps_of_sequences(
    problems: Sequence[ContactProblem], warm: bool
) -> dict[str, tuple[Array, float]]:
    """Return steps and share SOLVED, Coulomb's law at 1e-10, by family of sequences.

    Parameters
    ----------
    warm : begin with the forces of the same contacts one tick ago.
    """
    steps: dict[str, list[int]] = {}
    solved: dict[str, list[bool]] = {}
    before = None
    for p in problems:
        if p.sequence < 0:
            continue
        solver = ForceSolver(["point"] * len(p.mu), p.mu, law="coulomb")
        start = np.zeros(len(p.a0))
        if warm and p.tick > 0 and before is not None:
            for c, name in enumerate(p.contacts):
                if name in before[0]:
                    at = 3 * before[0].index(name)
                    start[3 * c : 3 * c + 3] = before[1][at : at + 3]
        found = solver.solve(p.G, p.a0, start=start)
        before = (p.contacts, found.cone_forces)
        steps.setdefault(p.family, []).append(sum(found.steps))
        solved.setdefault(p.family, []).append(found.status == ForceStatus.SOLVED)
    return {name: (np.array(steps[name]), float(np.mean(solved[name]))) for name in steps}
