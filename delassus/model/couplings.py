"""Linear couplings as rows over q: whether they hold, and positions of the joints that follow."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from delassus.model.clusters import Cluster, clusters_of
from delassus.model.mechanism import Mechanism
from delassus.model.spatial import Array

TOLERANCE = 1e-6
"""Largest residual of a coupling, relative to 1 plus the sum of its terms: positions in single
precision, and positions printed with six digits, are accepted."""
DETERMINED = 1e-9
"""Free share of a joint's motion below which the named joints determine the joint."""


@dataclass(frozen=True)
class CouplingRow:
    """A coupling over q: Σ factor · q[entry] + offset = 0, the largest factor ±1.

    Attributes
    ----------
    name : name of the coupling.
    entries : indices in q of the tied positions.
    factors : their factors, in the same order.
    offset : the constant part, in the unit of the joint with the largest factor.
    """

    name: str
    entries: tuple[int, ...]
    factors: tuple[float, ...]
    offset: float

    def gap(self, q: Sequence[float]) -> float:
        """Return the residual; NaN where a position is not finite."""
        terms = (f * q[entry] for f, entry in zip(self.factors, self.entries, strict=True))
        return abs(sum(terms, self.offset))

    def allowed(self, q: Sequence[float]) -> float:
        """Return the largest accepted residual: rounding of the terms."""
        terms = (abs(f * q[entry]) for f, entry in zip(self.factors, self.entries, strict=True))
        return TOLERANCE * sum(terms, 1.0 + abs(self.offset))


def coupling_rows(robot: Mechanism) -> tuple[CouplingRow, ...]:
    """Return the couplings of a robot in their order, couplings of joints in loops included."""
    return _rows(robot) if robot.couplings else ()


@lru_cache(maxsize=32)
def _rows(robot: Mechanism) -> tuple[CouplingRow, ...]:
    """Return the couplings as rows; cached for the latest robots."""
    offsets = {
        joint.name: offset for joint, offset in zip(robot.joints, robot.q_offsets, strict=True)
    }
    rows = []
    for coupling in robot.couplings:
        largest = max(abs(factor) for _, factor in coupling.ratios)
        entries = tuple(offsets[name] for name, _ in coupling.ratios)
        factors = tuple(factor / largest for _, factor in coupling.ratios)
        rows.append(CouplingRow(coupling.name, entries, factors, coupling.offset / largest))
    return tuple(rows)


def open_coupling(robot: Mechanism, q: Sequence[float]) -> str:
    """Return a text on the coupling with the largest residual at q (nq,): residual and positions.

    The text is empty if all couplings hold.
    """
    worst, gap = None, 0.0
    for row in coupling_rows(robot):
        size = row.gap(q)
        if not size <= row.allowed(q) and not size <= gap:
            worst, gap = row, size
    if worst is None:
        return ""
    entries = zip(robot.q_offsets, robot.joints, strict=True)
    names = {entry: joint.name for entry, joint in entries if joint.kind.nq}
    positions = ", ".join(f"{names[entry]!r}: {q[entry]:.6g}" for entry in worst.entries)
    return f"coupling {worst.name!r} is off by {gap:.3g} at {positions}"


def follow(robot: Mechanism, q: Array, named: Collection[str]) -> set[str]:
    """Move joints of q so that couplings hold; return the joints that the named joints determine.

    Dependent joints are moved; if these are named, the other joints that are not named. If too
    many are named, no joint is moved. Joints of loops follow their couplings, which closes no
    loop.

    Parameters
    ----------
    q : (nq,), written to.
    named : joints that keep their positions.
    """
    determined: set[str] = set()
    if robot.couplings:
        for cluster in clusters_of(robot):
            if cluster.couplings:
                determined |= _followed(robot, cluster, q, named)
    return determined


def _followed(robot: Mechanism, cluster: Cluster, q: Array, named: Collection[str]) -> set[str]:
    rows = cluster.coupling_rows()
    A, offset = rows[:, :-1], rows[:, -1]
    entries = cluster.entries
    names = [robot.joints[joint].name for joint in cluster.joints]
    free = [k for k, name in enumerate(names) if name not in named]
    followers = [k for k in free if cluster.joints[k] in cluster.dependent]
    for moved in (followers, free):
        x = q[entries]
        x[moved] -= np.linalg.lstsq(A[:, moved], A @ x + offset, rcond=None)[0]
        if (np.abs(A @ x + offset) <= TOLERANCE * (1.0 + np.abs(A) @ np.abs(x))).all():
            q[entries] = x
            break
    left = np.eye(len(free)) - np.linalg.pinv(A[:, free]) @ A[:, free]
    return {names[k] for k, own in zip(free, left.diagonal(), strict=True) if own < DETERMINED}
