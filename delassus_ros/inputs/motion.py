"""Motion of a robot: rates, torques and gravity, for the outputs that need them.

A fault of these inputs makes the secondary outputs INVALID. The matrix does not depend on them
and stays valid. Knows no ROS.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from delassus.dynamics import LoopRates
from delassus.errors import NAMED, NumericalError, UnknownNames
from delassus.model import Robot
from delassus.model.ranges import PlausibleMotion
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus_ros.inputs.findings import Finding, Reason, doubtful, joined
from delassus_ros.inputs.input import Faults, LatestInput, Words
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.orientation import OrientationInput
from delassus_ros.inputs.quaternions import IDENTITY, Quaternion, turned_back

FASTEST, STRONGEST = 1e6, 1e12
"""No joint has larger velocities [rad/s, m/s] or efforts [N·m, N]."""
_WORDS = Words(
    "torques", "the torques", "are", "input_timeout", "no torques have arrived yet"
)
_FAULTS = Faults(Reason.TORQUE_MISSING, Reason.TORQUE_INVALID, Reason.TORQUE_STALE)
_VELOCITY, _EFFORT = 0, 1
_BASE = 6


class TorqueInput(LatestInput[Array]):
    """The latest torques of the topic ``joint_torques``.

    Joints that a message does not list have zero torque.

    Attributes
    ----------
    values : (n,) torques of the joints [N·m, N].
    """

    topic = "joint_torques"

    def __init__(self, robot: Robot, timeout: float) -> None:
        joints = robot.joint_names
        self._place = {name: k for k, name in enumerate(joints)}
        self._unknown_names = UnknownNames("joint", joints)
        self._plausible = PlausibleMotion(robot, joints)
        self.values = np.zeros(len(joints))
        super().__init__(_WORDS, _FAULTS, timeout)

    def _parse(self, message: Any) -> Array | Finding:
        """Return the torques (n,) of a sensor_msgs/JointState, or why it is refused."""
        wrong = self._wrong(message.name, message.effort)
        if wrong:
            return self._refused(wrong)
        values = np.zeros(len(self.values))
        for name, effort in zip(message.name, message.effort, strict=True):
            values[self._place[name]] = effort
        return values

    def _keep(self, contents: Array, stamp: int, now: int) -> None:
        self.values[...] = contents

    def doubt(
        self, now: int, max_skew: float, clock_step: int = 0, stamp: int = 0
    ) -> Finding | None:
        """Return why the torques are in doubt, or None; see :meth:`Input.doubt`."""
        outside = _outside(self._plausible.efforts_outside(self.values))
        return joined(super().doubt(now, max_skew, clock_step, stamp), outside)

    def _wrong(self, names: Sequence[str], efforts: Sequence[float]) -> str:
        """Return the fault of torques, in words; empty for none."""
        if len(names) != len(efforts):
            return f"they have {len(names)} names but {len(efforts)} efforts"
        for name, effort in zip(names, efforts, strict=True):
            if name not in self._place:
                return self._unknown_names.words(name)
            if not abs(effort) <= STRONGEST:
                return f"that of joint {name!r} is {effort}; expected a finite number"
        return "a joint is listed more than once" if len(set(names)) < len(names) else ""


def _outside(text: str) -> Finding | None:
    """Return the finding about motion beyond the limits of joints; None for an empty text."""
    return doubtful(Reason.JOINT_OUTSIDE_LIMITS, text, "motion") if text else None


class MotionPorts:
    """Rates, torques and gravity of a problem, from the motion of measured joints.

    Parameters
    ----------
    gravity : (3,) [m/s²] along the axes of the world; of the root link for a fixed base.

    Attributes
    ----------
    needed : those of the inputs rates, torques and gravity that the problem has.
    first : number of rates of the base, which come first.
    turns_gravity : whether gravity depends on the orientation of the base.
    """

    def __init__(self, problem: Problem, gravity: Sequence[float]) -> None:
        robot = problem.robot
        self.needed = {port.name for port in problem.inputs} & {"rates", "torques", "gravity"}
        self.first = _BASE if robot.base == "floating" else 0
        self.turns_gravity = (
            self.first > 0 and problem.axes == "contact" and "gravity" in self.needed
        )
        self._gravity = tuple(gravity)
        is_closed = robot.clustered.is_closed and bool(self.needed)
        self.loops = LoopRates(robot) if is_closed else None

    def rates(self, joints: Sequence[str], velocities: Array, q: Array) -> Array:
        """Return the independent rates of the joints, from velocities of measured joints."""
        if self.loops is None:
            return velocities
        return self.loops.independent(joints, velocities, q)

    def torques(self, joints: Sequence[str], efforts: Array, q: Array) -> Array:
        """Return the torques of the independent rates, from efforts of joints."""
        if self.loops is None:
            return efforts
        return self.loops.torques(joints, efforts, q)

    def gravity(self, orientation: Quaternion) -> tuple[float, ...]:
        """Return gravity in the axes of the problem, for an orientation of the root link."""
        return turned_back(self._gravity, orientation) if self.turns_gravity else self._gravity


class MotionInput:
    """Writes rates, torques and gravity of an instant, as the outputs of a problem need them.

    Parameters
    ----------
    torques : ``"effort"`` for the efforts of the joint states, ``"zero"``, or ``"topic"`` for
        :attr:`torques`.
    gravity : (3,) [m/s²] along the axes of the world; of the root link for a fixed base.
    base : orientation and twist of a floating base; None for a fixed base.

    Attributes
    ----------
    torques : the torques of the topic; None unless `torques` is ``"topic"``.
    doubt : reason to doubt the values that were written last; None for no doubt.
    """

    def __init__(
        self,
        problem: Problem,
        torques: str,
        gravity: Sequence[float],
        base: OrientationInput | None,
        timeout: float,
    ) -> None:
        self._robot = robot = problem.robot
        self._names = robot.joint_names
        self._base = base
        self._source = torques
        self._ports = MotionPorts(problem, gravity)
        self._needed = self._ports.needed
        self.doubt: Finding | None = None
        self._joints: Sequence[str] = ()
        self._plausible = PlausibleMotion(robot, ())
        self._motion = np.full((2, len(robot.joint_names)), np.nan)
        needs_topic = torques == "topic" and "torques" in self._needed
        self.torques = TorqueInput(robot, timeout) if needs_topic else None

    def accept(self, joints: Sequence[str], motion: Array) -> None:
        """Store velocities and efforts (2, k) of joints whose positions have passed."""
        if joints is not self._joints:
            self._plausible = PlausibleMotion(self._robot, joints)
        if len(joints) == len(self._names):
            self._motion[...] = motion
        else:
            self._motion[:, : len(joints)] = motion
        self._joints = joints

    def write(
        self,
        stamp: int,
        now: int,
        inputs: Mapping[str, Array],
        max_skew: float = Limits.max_skew,
        clock_step: int = 0,
    ) -> Finding | None:
        """Write the motion to the inputs of a kernel; ``q`` is read from there.

        Returns
        -------
        None, or the fault of the motion. With a fault all values written are zero; the matrix is
        right in both cases.
        """
        self.doubt = joined(*self._doubts(stamp, now, max_skew, clock_step))
        try:
            finding = self._write(stamp, now, inputs)
        except NumericalError as error:
            finding = Finding(Reason.LOOP_SINGULAR, str(error))
        if finding is not None:
            for name in self._needed:
                inputs[name][...] = 0.0
        return finding

    def _write(self, stamp: int, now: int, inputs: Mapping[str, Array]) -> Finding | None:
        ports, k = self._ports, len(self._joints)
        velocities, efforts = self._motion[_VELOCITY, :k], self._motion[_EFFORT, :k]
        finding = self._of_base(inputs, velocities, now)
        if finding is not None:
            return finding
        if "rates" in self._needed:
            finding = self._refusal(velocities)
            if finding is not None:
                return finding
            inputs["rates"][ports.first :] = ports.rates(self._joints, velocities, inputs["q"])
        if "gravity" in self._needed:
            self._write_gravity(stamp, inputs)
        if "torques" in self._needed:
            return self._write_torques(efforts, now, inputs)
        return None

    @property
    def _base_in_use(self) -> OrientationInput | None:
        """The base's orientation and twist; None if neither is needed."""
        return self._base if "rates" in self._needed or self._ports.turns_gravity else None

    @property
    def implausible(self) -> Finding | None:
        """The doubt of motion beyond the limits of joints; None for any other doubt.

        Differences of velocities must not be formed with such motion.
        """
        doubt = self.doubt
        return doubt if doubt and doubt.reason & Reason.JOINT_OUTSIDE_LIMITS else None

    def _doubts(
        self, stamp: int, now: int, max_skew: float, clock_step: int
    ) -> Iterator[Finding | None]:
        """Yield the possible reasons to doubt the motion."""
        base = self._base_in_use
        for source in (base, self.torques):
            if source is not None:
                yield source.doubt(now, max_skew, clock_step, stamp)
        if base is not None and "rates" in self._needed:
            yield base.twist_doubt()
        yield self._implausible()

    def _implausible(self) -> Finding | None:
        """Return the finding about velocities and efforts far beyond the limits of joints."""
        text, k = "", len(self._joints)
        if "rates" in self._needed:
            text = self._plausible.velocities_outside(self._motion[_VELOCITY, :k])
        if self._source == "effort" and "torques" in self._needed and not text:
            text = self._plausible.efforts_outside(self._motion[_EFFORT, :k])
        return _outside(text)

    def _of_base(
        self, inputs: Mapping[str, Array], velocities: Array, now: int
    ) -> Finding | None:
        """Write the base's twist; return why the twist or the orientation is missing."""
        base = self._base_in_use
        if base is None:
            return None
        finding = base.fault(now)
        if finding is not None or "rates" not in self._needed:
            return finding
        q, rates = inputs["q"], velocities
        if base.carrying:
            finding = self._refusal(velocities)
            if finding is not None:
                return finding
            if self._ports.loops is not None:
                rates = self._ports.loops.of_joints(self._joints, velocities, q)
        return base.write_twist(inputs["rates"][:_BASE], q, rates)

    def _refusal(self, velocities: Array) -> Finding | None:
        if math.hypot(*velocities.tolist()) <= FASTEST:
            return None
        if np.isnan(velocities).all():
            return Finding(
                Reason.VELOCITY_MISSING,
                "the joint states do not have a velocity for each of their joints",
            )
        return Finding(
            Reason.VELOCITY_NOT_FINITE,
            f"the velocity of joint {self._wrong(velocities, FASTEST)}; expected finite numbers "
            f"below {FASTEST:g}",
        )

    def _wrong(self, values: Array, largest: float) -> str:
        found = np.flatnonzero(~(np.abs(values) <= largest))
        if not found.size:
            # All torques are within the range, but not their sum.
            found = np.array([int(np.abs(values).argmax())])
        shown = ", ".join(f"{self._joints[k]!r} is {values[k]:.6g}" for k in found[:NAMED])
        return shown + (f" and {found.size - NAMED} more" if found.size > NAMED else "")

    def _write_gravity(self, stamp: int, inputs: Mapping[str, Array]) -> None:
        turned = IDENTITY
        if self._base is not None and self._ports.turns_gravity:
            orientation = np.empty(4)
            self._base.write(stamp, orientation, inputs["q"])
            x, y, z, w = orientation.tolist()
            turned = x, y, z, w
        inputs["gravity"][...] = self._ports.gravity(turned)

    def _write_torques(
        self, efforts: Array, now: int, inputs: Mapping[str, Array]
    ) -> Finding | None:
        torques, joints = inputs["torques"], self._joints
        torques[...] = 0.0
        if self._source == "zero":
            return None
        if self.torques is not None:
            finding = self.torques.fault(now)
            efforts, joints = self.torques.values, self._names
            if finding is not None:
                return finding
        elif not math.hypot(*efforts.tolist()) <= STRONGEST:
            if np.isnan(efforts).all():
                return Finding(
                    Reason.TORQUE_MISSING,
                    "the joint states do not have an effort for each of their joints "
                    "(torques: effort)",
                )
            return Finding(
                Reason.TORQUE_INVALID,
                f"the effort of joint {self._wrong(efforts, STRONGEST)}; expected finite numbers",
            )
        torques[self._ports.first :] = self._ports.torques(joints, efforts, inputs["q"])
        return None
