"""Plausible positions, velocities and efforts of joints: the one rule for refusals and warnings.

A position outside its joint's limits by more than a margin is an error of measurement: angles in
degrees, an encoder without homing, the column of another joint. G at such a position is computed
correctly, but for a configuration that the robot cannot have.

======================== ====================================================================
revolute, with limits    may be 0.5 rad outside: soft stops, calibration, limits that are rounded
prismatic, with limits   may be 0.02 m outside
without limits           may be anywhere up to :data:`FARTHEST`: wheels turn for days
limits without a range   (lower = upper, as 0 and 0 of a template) count as none
followers                of linear couplings are not checked; the joints that they follow are
planar, floating         have no limits
======================== ====================================================================

A velocity or an effort of more than ten times its joint's limit is an error of measurement, too:
degrees or counts per second, a motor's current, a sensor that failed. Differences of encoder
counts and impacts make single values of some times the limit. Limits that are smaller than those
of any robot are placeholders, for which :data:`LEAST_LIMITS` stand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from delassus.errors import InputError, unknown
from delassus.model.clusters import clusters_of
from delassus.model.joint import Joint, JointKind
from delassus.model.mechanism import Mechanism
from delassus.model.spatial import Array

FARTHEST = 1e6
"""Positions [rad, m] beyond which sums of angles are rounded by more than 1e-10 rad."""
MARGIN = {JointKind.REVOLUTE: 0.5, JointKind.PRISMATIC: 0.02}
"""Largest distance of a position from its joint's limits [rad, m]."""
MOTION_MARGIN = 10.0
"""Largest plausible velocities and efforts in units of their limits."""
LEAST_LIMITS = {JointKind.REVOLUTE: (1.0, 10.0), JointKind.PRISMATIC: (0.1, 10.0)}
"""Lower bounds of velocity limits [rad/s, m/s] and effort limits [N·m, N]."""
_UNITS = {JointKind.REVOLUTE: "rad", JointKind.PRISMATIC: "m"}
_MOTION_UNITS = {JointKind.REVOLUTE: ("rad/s", "N·m"), JointKind.PRISMATIC: ("m/s", "N")}


def angles(robot: Mechanism) -> NDArray[np.bool_]:
    """Return which entries of q are angles (nq,): those of revolute joints, and of planar ones."""
    found = np.zeros(robot.nq, dtype=np.bool_)
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.kind is JointKind.REVOLUTE:
            found[offset] = True
        elif joint.kind is JointKind.PLANAR:
            found[offset + 2] = True
    return found


class PlausibleRanges:
    """The plausible range of each joint position of a robot; for one thread.

    Parameters
    ----------
    robot : the robot, whose joints have limits.
    joints : names of joints with one position, in the order of the checked positions; all
        entries of q by default.
    margin : largest plausible distance of a position from the limits of its joint, per kind of
        joint [rad, m].

    Attributes
    ----------
    lower, upper : (n,) the ranges with their margins [rad, m]; infinite without limits.

    Raises
    ------
    InputError
        If a joint is unknown, or has several positions.
    RobotError
        If the robot's couplings contradict each other.
    """

    def __init__(
        self,
        robot: Mechanism,
        joints: Sequence[str] | None = None,
        margin: Mapping[JointKind, float] = MARGIN,
    ) -> None:
        followers = _followers(robot)
        self._joints: list[Joint] = []
        if joints is None:
            self._joints = [joint for joint in robot.joints for _ in range(joint.kind.nq)]
        else:
            single = {joint.name: joint for joint in robot.joints if joint.kind.nq == 1}
            for name in joints:
                if name not in single:
                    raise InputError(unknown("joint with one position", name, single, "joints"))
                self._joints.append(single[name])
        n = len(self._joints)
        self.lower, self.upper = np.full(n, -np.inf), np.full(n, np.inf)
        for k, joint in enumerate(self._joints):
            if joint.kind in MARGIN and joint.lower < joint.upper and joint.name not in followers:
                self.lower[k] = joint.lower - margin[joint.kind]
                self.upper[k] = joint.upper + margin[joint.kind]
        self._is_bounded = bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())
        # Searching a byte in memory is much faster than numpy's any().
        self._found = bytearray(2 * n)
        marks = np.frombuffer(self._found, dtype=np.bool_)
        self._below, self._above = marks[:n], marks[n:]

    def outside(self, positions: Array) -> int:
        """Return the index of the first implausible position, or -1; allocates no array.

        NaN passes; callers check for positions that are not finite.

        Parameters
        ----------
        positions : (n,) [rad, m].
        """
        if not self._is_bounded:
            return -1
        np.less(positions, self.lower, self._below)
        np.greater(positions, self.upper, self._above)
        k = self._found.find(1)
        return k if k < 0 else k % len(self.lower)

    def all_outside(self, positions: Array) -> NDArray[np.intp]:
        """Return the indices of all implausible positions."""
        return np.flatnonzero((positions < self.lower) | (positions > self.upper))

    def name(self, number: int) -> str:
        """Return the name of the joint of the position with this index."""
        return self._joints[number].name

    def is_angle(self, number: int) -> bool:
        """Return whether a position is an angle of a revolute joint, possibly in degrees."""
        return self._joints[number].kind is JointKind.REVOLUTE

    def words(self, number: int, position: float) -> str:
        """Return a sentence on an implausible position: joint, value and limits."""
        joint = self._joints[number]
        return (
            f"the position of joint {joint.name!r} is {position:.6g} {_UNITS[joint.kind]}, and "
            f"its limits are {joint.lower:.6g} and {joint.upper:.6g}"
        )


class PlausibleMotion:
    """The largest plausible velocity and effort of each joint of a robot.

    Parameters
    ----------
    robot : the robot, whose joints have limits.
    joints : names of joints with one position, in the order of the checked values.
    """

    def __init__(self, robot: Mechanism, joints: Sequence[str]) -> None:
        by_name = {joint.name: joint for joint in robot.joints}
        self._joints = [by_name[name] for name in joints]
        limits = [
            np.maximum((joint.velocity, joint.effort), LEAST_LIMITS.get(joint.kind, (0.0, 0.0)))
            for joint in self._joints
        ]
        self._largest = MOTION_MARGIN * np.reshape(limits, (-1, 2)).T
        self._least = self._largest.min(axis=1, initial=np.inf).tolist()

    def velocities_outside(self, values: Array) -> str:
        """Return a sentence on the first implausible velocity (n,); empty for none, or for NaN."""
        return self._outside(0, "velocity", values)

    def efforts_outside(self, values: Array) -> str:
        """Return a sentence on the first implausible effort (n,); empty for none, or for NaN."""
        return self._outside(1, "effort", values)

    def _outside(self, row: int, what: str, values: Array) -> str:
        # No entry is larger than the norm, which is computed in a third of the time.
        if math.hypot(*values.tolist()) <= self._least[row]:
            return ""
        found = np.flatnonzero(np.abs(values) > self._largest[row])
        if not found.size:
            return ""
        k, joint = found[0], self._joints[found[0]]
        more = f" ({found.size - 1} more joints likewise)" if found.size > 1 else ""
        unit = _MOTION_UNITS[joint.kind][row]
        return (
            f"the {what} of joint {joint.name!r} is {values[k]:.6g} {unit}, and at most "
            f"{self._largest[row, k]:.6g} {unit} are plausible by its limit{more}: it is in "
            "another unit, or its sensor has failed"
        )


def _followers(robot: Mechanism) -> set[str]:
    """Return the joints that follow from others by couplings alone."""
    if not robot.couplings:
        return set()
    return {
        robot.joints[i].name
        for cluster in clusters_of(robot)
        if cluster.is_constant
        for i in cluster.dependent
    }
