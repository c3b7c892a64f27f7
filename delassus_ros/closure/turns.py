"""Whole turns after which a mechanism is as it was.

A crank that goes all the way round comes back to where it was, with all that hangs on it; a motor
geared to it is then some turns on. Where that way can be gone from the reference, a path leads
from every configuration on the branch to the same one any number of turns on: back to the
reference, round as often, and forth again. So nobody has to go it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, tau

import numpy as np

from delassus_ros.closure.path import MOST_CALLS, Way, WholeTurns
from delassus_ros.closure.status import ClosureStatus
from delassus_ros.closure.step import curved_joints
from delassus_ros.model.clusters import Cluster, clusters_of
from delassus_ros.model.robot import JointKind, Robot
from delassus_ros.model.spatial import Array

_SAME = 1e-9
"""Joints this near to a whole turn have made it; what is left adds up over turns [rad or m]."""
_TIED = 1e-9
"""Share of a joint's motion that is rounding."""


def whole_turns(
    way: Way, robot: Robot, reference: Array, room: Array, revolving: Array
) -> WholeTurns:
    """Return the whole turns of each given position, as far as they can be gone.

    Goes at most 400 reaches from the reference for each one, the others held. Positions of joints
    that turn without an end, in no coupling, get none: they need no path.

    Parameters
    ----------
    way : goes to given positions; its branch is at the reference before and behind.
    robot : the robot.
    reference : (nq,) closed.
    room : (k,) how far apart the limits of the given positions are [rad or m].
    revolving : (nq,) to which entries of q whole turns make no difference.
    """
    count = len(way.entries)
    found = WholeTurns(np.full(count, inf), np.zeros((count, robot.nq)))
    for cluster in clusters_of(robot):
        if cluster.is_constant:
            continue  # Without loops any way is gone at once.
        around = _Around(robot, cluster)
        held = [joint for joint in cluster.joints if robot.q_offsets[joint] in way.entries]
        for joint in held:
            entry = robot.q_offsets[joint]
            k = list(way.entries).index(entry)
            unit = inf if way.turns[k] else around.unit(joint, held)
            if unit == inf or unit > room[k]:
                continue
            shift = around.shift(way, reference, k, unit)
            if shift is not None:
                found.periods[k] = shift[entry]
                # Others stay near 0 where they may.
                found.shifts[k] = np.where(revolving, 0.0, shift)
                found.shifts[k, entry] = shift[entry]
    way.branch.resume(way.branch.reference)
    return found


class _Around:
    """What it is for the joints of a cluster to come round."""

    def __init__(self, robot: Robot, cluster: Cluster) -> None:
        self._robot, self._cluster = robot, cluster
        functions = {name for each in cluster.functions for name in each.tied}
        curved = curved_joints(robot, cluster)
        # Revolute joints of loops may be whole turns on, others have to be where they were.
        self._turning = [
            joint
            for joint in curved
            if robot.joints[joint].kind is JointKind.REVOLUTE
            and robot.joints[joint].name not in functions
        ]
        self._still = [joint for joint in curved if joint not in self._turning]

    def unit(self, joint: int, held: Sequence[int]) -> float:
        """Return how far a held joint goes while one in a loop makes a turn [rad or m].

        Infinite if it moves none by couplings alone, or one that cannot come round.
        """
        if joint in self._turning or joint in self._still:
            return tau if joint in self._turning else inf
        rates = self._rates(joint, held)
        if any(rates.get(other, 0.0) > _TIED for other in self._still):
            return inf
        turns = [rates[other] for other in self._turning if rates.get(other, 0.0) > _TIED]
        return tau / max(turns, default=0.0) if turns else inf

    def shift(self, way: Way, reference: Array, k: int, unit: float) -> Array | None:
        """Go units from the reference until all is as it was.

        Returns
        -------
        (nq,) how far joints of loops and the given one are then on, or None if they do not get
        there. What is only coupled, and not held, follows from anywhere.
        """
        entries = list(way.entries)
        turning = [self._robot.q_offsets[joint] for joint in self._turning]
        still = [self._robot.q_offsets[joint] for joint in self._still]
        good, wanted = reference.copy(), reference[entries]
        way.branch.resume(way.branch.reference)
        for count in range(1, 1 + int(MOST_CALLS * way.reach[k] / unit)):
            wanted[k] = reference[entries[k]] + count * unit
            if way.walk(good, wanted) is not ClosureStatus.OK:
                return None
            way.branch.accept()
            np.copyto(good, way.q)
            moved = good - reference
            shift = np.zeros(len(reference))
            shift[turning] = tau * np.rint(moved[turning] / tau)
            if np.abs((moved - shift)[turning + still]).max() <= _SAME:
                shift[entries[k]] = count * unit
                return shift
        return None

    def _rates(self, joint: int, held: Sequence[int]) -> dict[int, float]:
        """Return by how much a held joint moves those that couplings alone tie to held ones."""
        joints = self._cluster.joints
        column = {self._robot.joints[each].name: i for i, each in enumerate(joints)}
        rows = np.zeros((len(self._cluster.couplings), len(joints)))
        for row, coupling in zip(rows, self._cluster.couplings, strict=True):
            largest = max(abs(factor) for _, factor in coupling.ratios)
            for name, factor in coupling.ratios:
                row[column[name]] = factor / largest
        every = np.eye(len(joints))
        equations = np.concatenate([every[[joints.index(each) for each in held]], rows]).T
        # Each joint as a sum of held ones and couplings, where it is one.
        shares = np.linalg.lstsq(equations, every, rcond=None)[0]
        left = np.abs(equations @ shares - every).max(axis=0)
        own = np.abs(shares[list(held).index(joint)])
        return {each: float(own[i]) for i, each in enumerate(joints) if left[i] <= _TIED}
