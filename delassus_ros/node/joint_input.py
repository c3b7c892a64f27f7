"""From the names and positions of a joint state to q, in any order and with extra joints."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.compiler.kernel import Array
from delassus_ros.errors import RobotError
from delassus_ros.model import Robot
from delassus_ros.node.reasons import Complaint, Reason

_SHOWN = 5


class JointInput:
    """Picks a robot's joints out of joint states.

    The places of the joints are kept from one joint state to the next and looked up again only
    when the names change. Joints that the robot does not have are ignored.

    Parameters
    ----------
    robot : its joints all have one position, as joint states have no room for more.

    Raises
    ------
    RobotError
        If a joint has several positions (planar, floating); names it.
    """

    def __init__(self, robot: Robot) -> None:
        for joint in robot.joints:
            if joint.kind.nq > 1:
                raise RobotError(
                    f"joint {joint.name!r} is {joint.kind.label}: it has {joint.kind.nq} "
                    "positions, but sensor_msgs/JointState carries one for each joint; make it "
                    "fixed, or split it into revolute and prismatic joints"
                )
        self._joints = robot.joint_names
        self._names: list[str] = []
        self._places = np.empty(0, dtype=np.intp)
        self._refusal: Complaint | None = None
        self._look_up([])

    def read(self, names: Sequence[str], positions: ArrayLike, q: Array) -> Complaint | None:
        """Write the positions of the robot's joints to q.

        Parameters
        ----------
        names : names of the joints of the joint state.
        positions : their positions [rad, m].
        q : (nq,) is written to; what it holds after a complaint is not specified.

        Returns
        -------
        None, or why the joint state is refused.
        """
        values = np.asarray(positions, dtype=np.float64)
        if len(names) != len(values):
            return self._size_mismatch(names, len(values))
        if names != self._names:
            self._look_up(names)
        if self._refusal is not None:
            return self._refusal
        # The places are in range; mode="clip" spares take() a buffer for the output.
        values.take(self._places, out=q, mode="clip")
        # NaN and infinity stay in a sum, which is much cheaper than asking for each.
        if math.isfinite(sum(q.tolist())) or np.isfinite(q).all():
            return None
        return self._not_finite(q)

    def _look_up(self, names: Sequence[str]) -> None:
        """Find the places of the robot's joints among `names`, or why that cannot be done."""
        self._names = list(names)
        place = {name: i for i, name in enumerate(names)}
        self._refusal = None
        missing = [joint for joint in self._joints if joint not in place]
        if missing:
            self._refusal = Complaint(
                Reason.JOINT_MISSING,
                f"the joint state lacks {_listed('joint', missing)}; it has {_listed('', names)}",
            )
            return
        if len(place) != len(names):
            twice = [joint for joint in self._joints if self._names.count(joint) > 1]
            if twice:
                self._refusal = Complaint(
                    Reason.JOINT_DUPLICATED,
                    f"the joint state has {_listed('joint', twice)} more than once",
                )
                return
        self._places = np.array([place[joint] for joint in self._joints], dtype=np.intp)

    def _size_mismatch(self, names: Sequence[str], positions: int) -> Complaint:
        text = f"the joint state has {len(names)} names but {positions} positions"
        if positions < len(names):
            text += f"; the first joint without one is {names[positions]!r}"
        return Complaint(Reason.JOINT_SIZE_MISMATCH, text)

    def _not_finite(self, q: Array) -> Complaint:
        found = np.flatnonzero(~np.isfinite(q))
        shown = ", ".join(f"{self._joints[k]!r} is {q[k]}" for k in found[:_SHOWN])
        more = f" and {found.size - _SHOWN} more" if found.size > _SHOWN else ""
        return Complaint(
            Reason.JOINT_NOT_FINITE,
            f"the position of joint {shown}{more}; expected finite numbers",
        )


def _listed(what: str, names: Sequence[str]) -> str:
    """Return e.g. ``joints 'a', 'b' and 7 more``."""
    plural = "s" if what and len(names) > 1 else ""
    shown = ", ".join(repr(name) for name in names[:_SHOWN]) or "none"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{what}{plural} {shown}{more}".strip()
