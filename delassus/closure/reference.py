"""The reference configuration of a closure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from delassus.errors import NumericalError, RobotError
from delassus.model.clusters import OPENING_TOLERANCE, Cluster, clusters_of, openings
from delassus.model.loops import LoopClosure, closing_step
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.rbda import constraints

_LAST_GAP = 1e-12
"""Gap below which the iteration ends [m, sine of an angle, or unit of a coupling]."""
_STILL = 1e-10
"""Length of a step below which the iteration ends [rad or m]."""
_REFERENCE_ITERATIONS = 100
"""Largest number of Levenberg-Marquardt steps per start."""
_SCALES = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 3.0, 3.0)
"""Distances of the starts of the iteration from the stated positions [rad or m]."""
_LONGEST_REFERENCE_STEP = 0.3
"""Longest step of a nonlinear joint towards the reference [rad or m]."""


def reference_configuration(robot: Robot, stated: Mapping[str, float], tolerance: float) -> Array:
    """Return a closed q (nq,) from stated joint positions [rad, m]; other joints start at 0.

    Dependent joints are moved to close the loops, joints that are only coupled by any distance;
    where that is not enough, independent joints that are not stated are moved, too.

    Parameters
    ----------
    tolerance : largest constraint row of a closed loop, in its unit.

    Raises
    ------
    RobotError
        For an unknown joint, or if a loop does not close there, is singular there or its
        frames are turned against each other; names the loop.
    """
    q = robot.neutral()
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.kind.nq == 1:
            q[offset] = np.clip(0.0, joint.lower, joint.upper)
    offsets = dict(_entries(robot))
    for name, value in stated.items():
        if name not in offsets:
            raise RobotError(f"reference: {robot.unknown_joint(name)}")
        if not np.isfinite(value):
            raise RobotError(f"reference: the position {value} of joint {name!r} is not finite")
        q[offsets[name]] = value
    for cluster in clusters_of(robot):
        if not cluster.is_ordinary:
            _close(cluster, q, stated, tolerance)
            _check(cluster, q, tolerance)
    return q


def _entries(robot: Robot) -> list[tuple[str, int]]:
    """Return (name, entry in q) of the joints with one entry in q."""
    pairs = zip(robot.joints, robot.q_offsets, strict=True)
    return [(joint.name, offset) for joint, offset in pairs if joint.kind.nq == 1]


def _close(cluster: Cluster, q: Array, stated: Collection[str], tolerance: float) -> None:
    """Move joints of q until the cluster is closed: dependent joints, else also unstated ones.

    The first start that leads to a closed configuration decides the branch; near starts are tried
    first.
    """
    offsets = cluster.entries
    names = list(cluster.columns)
    dependent = [k for k, joint in enumerate(cluster.joints) if joint in cluster.dependent]
    unstated = [k for k, name in enumerate(names) if name not in stated]
    attempts = [dependent, sorted({*dependent, *unstated})]
    # A fixed seed: the same robot must always get the same reference.
    random = np.random.default_rng(0)
    start = q[offsets]
    for scale in _SCALES:
        away = scale * random.uniform(-1.0, 1.0, len(start))
        for moved in attempts:
            q[offsets] = start
            free = [k for k in moved if k in unstated] or moved
            q[[offsets[k] for k in free]] += away[free]
            if _gap(cluster, q, moved) <= tolerance:
                return
    q[offsets] = start
    _gap(cluster, q, dependent)


def _gap(cluster: Cluster, q: Array, moved: Sequence[int]) -> float:
    """Close the cluster by moving joints of q (numbers in the cluster); return the gap.

    Levenberg-Marquardt, first on gaps that detect large rotations, then on the constraint rows.
    Linear joints, see :attr:`JointGroup.is_linear`, follow the other joints by any distance.
    """
    entries = [cluster.entries[k] for k in moved]
    gaps = LoopClosure(cluster)
    linear = cluster.is_linear[list(moved)]
    # Functions, too, may involve rotors that have to turn far.
    longest = _LONGEST_REFERENCE_STEP if cluster.loops else np.inf
    for exact in (False, True):
        for _ in range(_REFERENCE_ITERATIONS):
            if exact:
                rows, K = rows_of(cluster, q)
            else:
                scaled = q[cluster.entries] / gaps.units
                rows, K = gaps.gap(scaled), gaps.jacobian(scaled) / gaps.units
            if float(np.linalg.norm(rows)) < _LAST_GAP:
                break
            step = closing_step(rows, K[:, list(moved)], linear, longest, each=True)
            q[entries] += step
            if np.abs(step[~linear]).max(initial=0.0) < _STILL:
                break
    return float(np.abs(rows_of(cluster, q)[0]).max())


def rows_of(cluster: Cluster, q: Array) -> tuple[Array, Array]:
    """Return the residual and K of a cluster on plain numbers."""
    rows, K = constraints.residual_and_jacobian(cluster, q.tolist(), metres=True)
    return np.array(rows, dtype=np.float64), np.array(K, dtype=np.float64)


def _check(cluster: Cluster, q: Array, tolerance: float) -> None:
    rows = rows_of(cluster, q)[0]
    worst = int(np.argmax(np.abs(rows)))
    advice = "state another one as reference={joint: position, …}"
    if not np.abs(rows[worst]) <= tolerance:
        name = cluster.row_names[worst]
        held = [cluster.robot.joints[joint].name for joint in cluster.independent]
        raise RobotError(
            f"{name} does not close at the reference configuration: a gap of "
            f"{abs(rows[worst]):.3g} remains, tolerance {tolerance:.3g}, with joints {held} where "
            f"they are; {advice}"
        )
    for loop in cluster.loops:
        if constraints.is_turned(cluster.robot, loop, q.tolist()):
            raise RobotError(
                f"loop {loop.name!r}: its frames are half a turn apart at the reference "
                f"configuration; {advice}"
            )
    try:
        E = np.array(constraints.loop_jacobian(cluster, q.tolist()), dtype=np.float64)
    except NumericalError as error:
        raise RobotError(f"reference configuration: {error}; {advice}") from error
    name, opened = _worst_opening(cluster, q, E)
    if opened > OPENING_TOLERANCE:
        raise RobotError(
            f"reference configuration: {name} does not stay closed: it opens at {opened:.3g} of "
            f"the rate of its joints where the independent ones move; {advice}"
        )


def _worst_opening(cluster: Cluster, q: Array, E: Array) -> tuple[str, float]:
    """Return name and rate of the constraint row that E violates most, redundant rows included."""
    K = np.array(constraints.constraint_jacobian(cluster, q.tolist(), metres=False), float)
    units = np.array([constraints.unit_of(cluster, joint) for joint in cluster.joints])
    worst = ("", 0.0)
    for number, (name, rows) in enumerate(cluster.blocks()):
        is_coupling = number < len(cluster.couplings)
        opened = float(openings(K[rows] * units, E / units[:, None], is_coupling).max(initial=0.0))
        worst = max(worst, (name, opened), key=lambda opening: opening[1])
    return worst
