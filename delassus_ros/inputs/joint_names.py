"""Places of a robot's joints among the names of joint states, and the faults of such names."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from types import EllipsisType

import numpy as np
from numpy.typing import NDArray

from delassus.errors import NAMED, SAID, listed
from delassus.model.spatial import Array
from delassus_ros.inputs.findings import Finding, Reason

JointMotion = tuple[()] | tuple[Array, Array]
"""Velocities [rad/s, m/s] and efforts [N·m, N] of a joint state, or nothing."""


class JointNames:
    """The places of a robot's joints among the names of joint states.

    Parameters
    ----------
    joints : names of the robot's joints, in the order of q.

    Attributes
    ----------
    joints : (k,) the robot's joints among the names, in the order of q.
    targets : (k,) entries of q that the joint states have.
    places : (k,) index of these entries in the joint state.
    is_complete, is_foreign : whether all of the robot's joints are among the names, or none.
    refusal : why such joint states cannot be used, or None.
    """

    __slots__ = (
        "count", "is_complete", "is_foreign", "joints", "names", "places", "refusal", "targets",
        "_all",
    )  # fmt: skip

    def __init__(self, names: Sequence[str], joints: Sequence[str]) -> None:
        self.names = names
        self.count = len(names)
        self._all = joints
        place = {name: i for i, name in enumerate(names)}
        present = [i for i, joint in enumerate(joints) if joint in place]
        self.joints = tuple(joints[i] for i in present)
        self.targets = np.array(present, dtype=np.intp)
        self.places = np.array([place[joint] for joint in self.joints], dtype=np.intp)
        self.is_complete = len(present) == len(joints)
        self.is_foreign = bool(names and joints) and not present
        self.refusal = self._refusal(len(place))

    def _refusal(self, different: int) -> Finding | None:
        if not self.count and self._all:
            return missing(self.names, self._all)
        if different < self.count:
            names = list(self.names)
            twice = [joint for joint in self.joints if names.count(joint) > 1]
            if twice:
                return Finding(
                    Reason.JOINT_DUPLICATED,
                    f"the joint state has {listed('joint', twice)} more than once",
                )
        return None

    def write_motion(
        self, motion: JointMotion, target: Array, entries: NDArray[np.intp] | EllipsisType = ...
    ) -> None:
        """Write the motion of :attr:`joints` to these entries of `target` (2, n).

        Velocities or efforts of another number than the names become NaN.
        """
        for row, values in zip(target, motion, strict=False):
            row[entries] = values[self.places] if len(values) == self.count else math.nan

    def not_finite(self, positions: Array) -> Finding:
        """Return the finding for positions (k,) of :attr:`joints`, some of them not finite."""
        found = np.flatnonzero(~np.isfinite(positions))
        shown = ", ".join(f"{self.joints[k]!r} is {positions[k]}" for k in found[:NAMED])
        more = f" and {found.size - NAMED} more" if found.size > NAMED else ""
        return Finding(
            Reason.JOINT_NOT_FINITE,
            f"the position of joint {shown}{more}; expected finite numbers",
        )


def missing(
    names: Sequence[str], joints: Sequence[str], received: Collection[str] = ()
) -> Finding:
    """Return the finding for required joints that are neither in `names` nor in `received`."""
    known = {*names, *received}
    lacking = [joint for joint in joints if joint not in known]
    return Finding(
        Reason.JOINT_MISSING,
        f"the joint state lacks {listed('joint', lacking)}; it has {listed('', names)}",
    )


def size_mismatch(names: Sequence[str], positions: int) -> Finding:
    """Return the finding for different numbers of names and positions."""
    text = f"the joint state has {len(names)} names but {positions} positions"
    if positions < len(names):
        text += f"; the first joint without one is {names[positions][:SAID]!r}"
    return Finding(Reason.JOINT_SIZE_MISMATCH, text)
