"""The roles of joints in a closure: which are measured, which of these are held, which follow."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import tau

import numpy as np

from delassus.closure.step import curved_joints
from delassus.errors import InputError
from delassus.model.clusters import Cluster, clusters_of
from delassus.model.robot import JointKind, Robot
from delassus.model.spatial import Array
from delassus.rbda import constraints

_INDEPENDENT = 1e-3
"""Smallest independent share of the motion of a measured joint that counts as independent."""
_REACH = 0.1
"""Longest move of loop joints per Newton iteration [rad, or the loop's size]."""


class Plan:
    """The roles of the entries of q in a bound closure.

    Parameters
    ----------
    robot : the robot.
    measured : the measured joints, in the order of their numbers.
    held : the :func:`held_joints` among these.
    reference : (nq,) a closed configuration.
    tolerance : largest residual of a closed loop.
    agreement : largest distance of a measured dependent joint from the result [rad or m].

    Attributes
    ----------
    names : joint of each entry of q.
    slots : entry of q of each measured number.
    held : indices of measured numbers that are held; the remaining measured numbers are compared
        with the result.
    entries : entry of q of each held number.
    reach : per held number, the longest change per Newton iteration [rad or m].
    revolving : (nq,) whether whole turns of the entry have no effect: revolute, in no coupling
        or function.
    lower, upper : (nq,) limits.
    turns : per held number, whether its joint is continuous and revolving, and in a loop.
    clusters : per cluster with constraints, (entries of q, names of the constraints).
    """

    def __init__(
        self,
        robot: Robot,
        measured: Sequence[int],
        held: Collection[int],
        reference: Array,
        tolerance: float,
        agreement: float,
    ) -> None:
        self.reference, self.tolerance, self.agreement = reference, tolerance, agreement
        joints = [joint for joint in robot.joints for _ in range(joint.kind.nq)]
        self.names = [joint.name for joint in joints]
        numbers = [(joint, k) for joint in measured for k in range(robot.joints[joint].kind.nq)]
        self.slots = [robot.q_offsets[joint] + k for joint, k in numbers]
        self.held = [number for number, (joint, _) in enumerate(numbers) if joint in held]
        self.entries = [self.slots[number] for number in self.held]
        far = _reaches(robot, held, reference)
        self.reach = np.array([far[numbers[number][0]] for number in self.held])
        # A whole turn of any of these joints is another configuration.
        tied = {name for coupling in robot.couplings for name, _ in coupling.ratios}
        tied.update(name for function in robot.functions for name in function.tied)
        self.revolving = np.array([
            joint.kind is JointKind.REVOLUTE and joint.name not in tied for joint in joints
        ])  # fmt: skip
        self.lower = np.array([joint.lower for joint in joints])
        self.upper = np.array([joint.upper for joint in joints])
        endless = np.isinf(self.lower) & np.isinf(self.upper)
        # Only joints in loops have a reach; joints outside loops have no other direction.
        self.turns = (self.revolving & endless)[self.entries] & (self.reach < sys.float_info.max)
        self.clusters = [
            (cluster.entries, cluster.described())
            for cluster in clusters_of(robot)
            if not cluster.is_ordinary
        ]

    def tie(self, entry: int) -> str:
        """Return the constraints of the cluster of an entry of q; else the joint."""
        ties = (what for entries, what in self.clusters if entry in entries)
        return next(ties, f"joint {self.names[entry]!r}")

    def between(self, q: Array, other: Array) -> Array:
        """Return q − other, modulo whole turns of joints for which whole turns have no effect."""
        difference = q - other
        turns = np.round(difference / tau) * self.revolving
        return np.asarray(difference - tau * turns)


def held_joints(robot: Robot, measured: Sequence[int], motions: Mapping[int, Array]) -> set[int]:
    """Return the measured joints that are held and determine all remaining joints.

    Parameters
    ----------
    motions : :func:`motions_of` each cluster with constraints at the reference, by its number.

    Raises
    ------
    InputError
        If the measured joints do not determine the others; names joints to be measured, too.
    """
    clusters = clusters_of(robot)
    held = {cluster.joints[0] for cluster in clusters if cluster.is_ordinary}
    missing = [
        repr(robot.joints[joint].name)
        for joint in sorted(held)
        if robot.joints[joint].kind.nq and joint not in measured
    ]
    if missing:
        what = "joint" if len(missing) == 1 else "joints"
        are = "is" if len(missing) == 1 else "are"
        raise InputError(f"{what} {', '.join(missing)} {are} in no loop and must be measured")
    for number, of_cluster in motions.items():
        held.update(_determining_joints(clusters[number], measured, of_cluster))
    return held


def _determining_joints(
    cluster: Cluster, measured: Iterable[int], motions: Array
) -> tuple[int, ...]:
    """Return the measured joints that determine the other joints of a cluster.

    The result are the independent joints if all of these are measured; else the measured joints
    that determine most at the reference.
    """
    candidates = [joint for joint in cluster.joints if joint in set(measured)]
    if set(cluster.independent) <= set(candidates):
        return cluster.independent
    left = motions[[cluster.joints.index(joint) for joint in candidates]]
    chosen: list[int] = []
    for _ in cluster.independent:
        sizes = np.linalg.norm(left, axis=1)
        if not sizes.size or sizes.max() < _INDEPENDENT:
            joints = cluster.robot.joints
            names = [joints[joint].name for joint in candidates]
            others = [joints[joint].name for joint in cluster.joints if joint not in candidates]
            more = len(cluster.independent) - len(chosen)
            lack = (
                f"the measured joints {names} do not determine the others; measure {more} more"
                if names
                else f"none of its joints is measured; measure {more}"
            )
            raise InputError(f"{cluster.described()}: {lack} of {others}")
        k = int(np.argmax(sizes))
        chosen.append(candidates[k])
        direction = left[k] / sizes[k]
        left = left - np.outer(left @ direction, direction)
    return tuple(sorted(chosen))


def motions_of(cluster: Cluster, q: Array) -> Array:
    """Return orthonormal motions of the cluster (joints, degrees of freedom)."""
    E = np.array(constraints.loop_jacobian(cluster, q.tolist()), dtype=np.float64)
    # Joints in units of their largest motion: the speed of a rotor has no weight.
    return np.linalg.qr(E / np.linalg.norm(E, axis=1, keepdims=True).clip(1e-12))[0]


def _reaches(robot: Robot, held: Collection[int], reference: Array) -> dict[int, float]:
    """Return the longest move of the held joints in one Newton iteration [rad or m].

    The longest move changes joints of loops by 0.1 rad, or by 0.1 of the loop's size; joints that
    move no loop joint have the largest finite float: only NaN and infinity are refused.
    """
    far = {joint: sys.float_info.max for joint in held}
    for cluster in clusters_of(robot):
        curved = {} if cluster.is_ordinary else curved_joints(cluster)
        held_here = [joint for joint in cluster.joints if joint in held]
        if not curved:
            continue
        E = np.array(constraints.loop_jacobian(cluster, reference.tolist()), float)
        rows = {joint: E[k] for k, joint in enumerate(cluster.joints)}
        # Rates of all joints by those of the held_here ones.
        rates = E @ np.linalg.inv(np.array([rows[joint] for joint in held_here]))
        for column, joint in enumerate(held_here):
            if joint in curved:
                far[joint] = _REACH * curved[joint]
                continue
            moved = [
                abs(rates[k, column]) / curved[other]
                for k, other in enumerate(cluster.joints)
                if other in curved
            ]
            if max(moved) > 0.0:
                far[joint] = _REACH / max(moved)
    return far
