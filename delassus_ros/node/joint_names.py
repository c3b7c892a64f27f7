"""One list of joint names as a publisher sends it, and where the robot's joints are in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from delassus_ros.compiler.kernel import Array
from delassus_ros.node.reasons import Complaint, Reason

_SHOWN = 5
LONGEST = 100
"""Characters of a name from a message that are said."""


class JointNames:
    """The places of a robot's joints among the names of joint states.

    Parameters
    ----------
    names : names of the joints of the joint states.
    joints : names of the robot's joints, in the order of q.

    Attributes
    ----------
    names : the names.
    count : how many there are.
    targets : (k,) which entries of q the joint states have.
    places : (k,) where in the joint state these are.
    is_complete, is_foreign : they have all of the robot's joints, or others alone.
    refusal : why such joint states cannot be used, or None.
    """

    __slots__ = (
        "count", "is_complete", "is_foreign", "names", "places", "refusal", "targets", "_joints"
    )  # fmt: skip

    def __init__(self, names: Sequence[str], joints: Sequence[str]) -> None:
        self.names = names
        self.count = len(names)
        self._joints = joints
        place = {name: i for i, name in enumerate(names)}
        present = [i for i, joint in enumerate(joints) if joint in place]
        self.targets = np.array(present, dtype=np.intp)
        self.places = np.array([place[joints[i]] for i in present], dtype=np.intp)
        self.is_complete = len(present) == len(joints)
        self.is_foreign = bool(names and joints) and not present
        self.refusal = self._refusal(present, len(place))

    def _refusal(self, present: Sequence[int], different: int) -> Complaint | None:
        if not self.count and self._joints:
            return Complaint(*self.missing())
        if different < self.count:
            names = list(self.names)
            twice = [self._joints[i] for i in present if names.count(self._joints[i]) > 1]
            if twice:
                return Complaint(
                    Reason.JOINT_DUPLICATED,
                    f"the joint state has {listed('joint', twice)} more than once",
                )
        return None

    def missing(self, others: Sequence[str] = ()) -> tuple[Reason, str]:
        """Return what there is to say about joints that are not there, nor among `others`."""
        known = {*self.names, *others}
        missing = [joint for joint in self._joints if joint not in known]
        return (
            Reason.JOINT_MISSING,
            f"the joint state lacks {listed('joint', missing)}; it has {listed('', self.names)}",
        )

    def not_finite(self, taken: Array) -> tuple[Reason, str]:
        """Return what there is to say about positions (k,) of which some are not finite."""
        found = np.flatnonzero(~np.isfinite(taken))
        shown = ", ".join(
            f"{self._joints[self.targets[k]]!r} is {taken[k]}" for k in found[:_SHOWN]
        )
        more = f" and {found.size - _SHOWN} more" if found.size > _SHOWN else ""
        return (
            Reason.JOINT_NOT_FINITE,
            f"the position of joint {shown}{more}; expected finite numbers",
        )


def size_mismatch(names: Sequence[str], positions: int) -> tuple[Reason, str]:
    """Return what there is to say about another number of positions than of names."""
    text = f"the joint state has {len(names)} names but {positions} positions"
    if positions < len(names):
        text += f"; the first joint without one is {names[positions][:LONGEST]!r}"
    return Reason.JOINT_SIZE_MISMATCH, text


def listed(what: str, names: Sequence[str]) -> str:
    """Return e.g. ``joints 'a', 'b' and 7 more``."""
    plural = "s" if what and len(names) > 1 else ""
    shown = ", ".join(repr(name[:LONGEST]) for name in names[:_SHOWN]) or "none"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{what}{plural} {shown}{more}".strip()
