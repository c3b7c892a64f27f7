"""Estimates at joint states, from the checked inputs of all sensors.

Knows no ROS. Stamps and times are integers, ns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from delassus_ros.closure import Closure
from delassus_ros.contacts import Contact
from delassus_ros.dynamics import GRAVITY
from delassus_ros.errors import NumericalError, RobotError
from delassus_ros.estimator.consistency import Consistency
from delassus_ros.estimator.sensors import InertialSensor, Sensor, WrenchSensor
from delassus_ros.estimator.settings import EstimatorSettings, joints_of
from delassus_ros.inputs.findings import Finding, Reason, Validity
from delassus_ros.inputs.input import Input
from delassus_ros.inputs.joints import Gate, InputStatus, JointGate
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.motion import MotionInput
from delassus_ros.inputs.orientation import OrientationInput
from delassus_ros.measured import Accelerometer, SparseDynamics
from delassus_ros.measured.quantities import Quantity
from delassus_ros.measured.rate_change import RateChange
from delassus_ros.model import WORLD, Robot
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem
from delassus_ros.ros.health import InputHealth
from delassus_ros.ros.topics import JOINTS

_NOTHING = Finding(Reason.NONE, "")


@dataclass(frozen=True)
class Answer:
    """Answer to a joint state.

    Attributes
    ----------
    stamp : stamp of the joint state [ns]; 0 if it has none.
    validity, reasons, text : fields of the message.
    numbers : estimate, a result of :meth:`~delassus_ros.measured.SparseDynamics.solve_flat`; None
        if INVALID.
    """

    stamp: int
    validity: Validity
    reasons: Reason
    text: str
    numbers: Array | None = None


class _Kept(NamedTuple):
    """A joint state that was taken in: its status, the fault of its motion, its accelerations."""

    status: InputStatus
    warning: Finding | None = None
    accelerations: Array | None = None


class Estimation:
    """Keeps the latest inputs of all sensors and estimates at every joint state.

    Parameters
    ----------
    robot : robot of the joint states; all joints of its loops and couplings have to be measured.
    settings : known and wanted quantities.

    Attributes
    ----------
    system : system of equations with the known and wanted quantities.
    joints : joints with independent rates, without a floating base.
    gate, base : inputs of joint states and of a floating base's odometry; base is None if fixed.
    sensors : force-torque sensors and the inertial sensor.
    by_topic : all inputs except the joint states, by the name of their topic.
    clock_step : longest step of simulated time [ns].
    last : the latest answer; None before the first.

    Raises
    ------
    UnobservableError
        If the known quantities do not determine the wanted ones.
    ProblemError
        If a frame is unknown.
    RobotError
        If no frame is on a body that moves, or a joint's position is no single number.
    """

    def __init__(self, robot: Robot, settings: EstimatorSettings) -> None:
        self.settings, self.robot = settings, robot
        self.system: SparseDynamics = settings.system(robot)
        joints = joints_of(robot)
        floating = robot.base == "floating"
        self.joints = tuple(joints[1:] if floating else joints)
        limits = Limits(input_timeout=settings.input_timeout)
        timeout, world = settings.input_timeout, settings.world_frame
        self.base = OrientationInput(robot, world=world, timeout=timeout) if floating else None
        if self.base is not None:
            self.base.words = replace(self.base.words, timeout="input_timeout")
        # A problem whose inputs are rates, torques and gravity.
        some = next((f.name for f in robot.frames.values() if f.body != WORLD), None)
        if some is None:
            raise RobotError(f"robot {robot.name!r} has no frame on a body that moves")
        problem = Problem(robot, [Contact("any", some, "point")], outputs=("G", "qdd0"))
        closure = Closure(problem) if robot.is_closed else None
        self.gate = JointGate(robot, limits.max_skew, limits.input_timeout, closure)
        source = "effort" if settings.effort_sigma else "zero"
        self._motion = MotionInput(problem, source, GRAVITY, self.base, timeout)
        self._inputs = {port.name: np.zeros(port.shape) for port in problem.inputs}
        self._change = RateChange(settings.window)
        wrenches = {
            pushed.name: WrenchSensor(pushed.name, pushed.frame, robot, timeout)
            for pushed in settings.pushed if pushed.sensor
        }  # fmt: skip
        frame = settings.imu_frame
        imu = InertialSensor(frame, robot, timeout) if frame else None
        self.sensors: list[Sensor] = [*wrenches.values(), *filter(None, [imu])]
        inputs: list[Input] = [*filter(None, [self.base]), *self.sensors]
        self.by_topic: Mapping[str, Input] = {entry.topic: entry for entry in inputs}
        self.clock_step = 0
        places = self._places()
        self._y = np.zeros(sum(self.system.given.values()))
        # Places in y, the sensor of these places, and the entries of its values.
        self._read: list[tuple[slice, Sensor, list[int]]] = [
            (places[quantity], wrenches[pushed.name], list(quantity.rows))
            for pushed in settings.pushed if pushed.sensor
            for quantity in pushed.quantities
        ]  # fmt: skip
        if imu is not None:
            self._read.append((places[Accelerometer(frame)], imu, [0, 1, 2]))
        self._consistency = Consistency(self.system, settings)
        self._unsaid = _NOTHING
        self._kept: _Kept | None = None
        self.last: Answer | None = None
        self._went_out: int | None = None

    def reset(self, now: int) -> None:
        """Return to the initial state, at activation of the node."""
        self.gate.reset(now)
        self._change.reset()
        for entry in self.by_topic.values():
            entry.reset()
        self._unsaid = _NOTHING
        self._kept = None
        self.last = self._went_out = None

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics to subscribe to; the joint states come last."""
        return (*self.by_topic, JOINTS)

    def set_clock_step(self, step: int) -> None:
        """Set the longest step of simulated time [ns]; stamps may be ahead by one step."""
        self.gate.set_clock_step(step)
        self.clock_step = step

    def set_topics(self, full: Mapping[str, str]) -> None:
        """Set the full names of the topics for messages, by their names before remapping."""
        self.gate.set_topic(full[JOINTS])
        for topic, entry in self.by_topic.items():
            entry.full_topic = full.get(topic, "")

    def read(
        self, topic: str, message: Any, now: int, delay: int = 0, count: int = 0
    ) -> Finding | None:
        """Take a message of a topic; return its fault, or None.

        Parameters
        ----------
        topic : name of the topic before remapping.
        message : message of the topic's type.
        now : time of the node's clock.
        delay : time between sending and `now`.
        count : number of the message among those of its publisher; 0 if unknown.
        """
        found = self.by_topic[topic]
        found.note_publisher(now, count)
        return found.take(message, now, delay)

    def answer(
        self,
        names: Sequence[str],
        stamp: int,
        positions: Array,
        motion: tuple[Array, Array],
        now: int,
        delay: int = 0,
        count: int = 0,
    ) -> Answer | None:
        """Take a joint state and return the answer to it; see :meth:`take_in`.

        Returns
        -------
        The estimate, or an INVALID answer; None if other publishers send the missing joints, or
        the rate omits this joint state.
        """
        self.take_in(names, stamp, positions, motion, now, delay, count)
        return self.answer_kept(now)

    def take_in(
        self,
        names: Sequence[str],
        stamp: int,
        positions: Array,
        motion: tuple[Array, Array],
        now: int,
        delay: int = 0,
        count: int = 0,
    ) -> None:
        """Take a joint state, which :meth:`answer_kept` answers unless a newer one is taken.

        Parameters
        ----------
        names : names of the joints.
        stamp : stamp of the joint state; 0 or less if it has none.
        positions : positions of the joints [rad, m].
        motion : velocities [rad/s, m/s] and efforts [N·m, N]; either may be empty.
        now : time of the node's clock.
        delay : time between sending and `now`.
        count : number of the message among those of its publisher; 0 if unknown.
        """
        q = self._inputs["q"]
        # A copy: the gate overwrites its status.
        status = replace(self.gate.read(names, stamp, positions, now, q, delay, motion, count))
        if status.gate is Gate.IGNORED:
            return
        before = self._kept
        if before is not None and before.status.gate is not Gate.REFUSED:
            self._keep_unsaid(before.status)
        if status.gate is Gate.REFUSED:
            self._kept = _Kept(status)
            return
        self._motion.take(self.gate.measured.joints, self.gate.measured.motion)
        warning = self._motion.write(
            status.stamp, now, self._inputs, clock_step=self.clock_step
        )
        if warning is None and self._motion.implausible is not None:
            warning = self._motion.implausible
            self._change.reset()
        accelerations = None
        if warning is None:
            accelerations = self._change.add(status.stamp or now, self._inputs["rates"])
        self._kept = _Kept(status, warning, accelerations)

    def answer_kept(self, now: int) -> Answer | None:
        """Return the answer to the newest joint state that was taken in.

        Parameters
        ----------
        now : time of the node's clock.

        Returns
        -------
        As :meth:`answer`; None also if no joint state was taken since the last call.
        """
        kept, self._kept = self._kept, None
        if kept is None:
            return None
        status, warning, accelerations = kept
        if status.gate is Gate.REFUSED:
            return self._say(status.stamp, status.reasons, status.text, now)
        for sensor in self.sensors:
            warning = warning or sensor.warning(now)
        if warning is None and accelerations is None:
            text = f"rates have not come for {self.settings.window:g} s yet (acceleration.window)"
            warning = Finding(Reason.NO_ACCELERATION, text)
        if warning is not None or accelerations is None:
            reasons = status.reasons | (warning.reason if warning else Reason.NONE)
            return self._say(status.stamp, reasons, warning.text if warning else "", now)
        if self._is_early(now):
            self._keep_unsaid(status)
            return None
        self._fill(accelerations)
        inputs = self._inputs
        try:
            numbers = self.system.solve_flat(
                inputs["q"], inputs["rates"], self._y, inputs["gravity"]
            )
        except NumericalError as error:
            return self._say(status.stamp, Reason.SOLVER_FAILED, str(error), now)
        reasons, text = status.reasons | self._unsaid.reason, status.text or self._unsaid.text
        self._unsaid = _NOTHING
        for doubt in self._doubts(numbers, now):
            reasons, text = reasons | doubt.reason, text or doubt.text
        return self._say(status.stamp, reasons, text, now, numbers)

    def _keep_unsaid(self, status: InputStatus) -> None:
        """Keep the reasons of a joint state without an answer for the next estimate."""
        unsaid = self._unsaid
        self._unsaid = Finding(unsaid.reason | status.reasons, unsaid.text or status.text)

    def _doubts(self, numbers: Array, now: int) -> Iterator[Finding]:
        """Yield the reasons for which an estimate is DEGRADED."""
        if self._motion.caveat is not None:
            yield self._motion.caveat
        for sensor in self.sensors:
            caveat = sensor.caveat(now, Limits.max_skew, self.clock_step)
            if caveat is not None:
                yield caveat
        contradiction = self._consistency.warning(numbers)
        if contradiction is not None:
            yield contradiction

    def _is_early(self, now: int) -> bool:
        """Return whether the latest estimate was published less than a period of the rate ago."""
        if not self.settings.rate or self.last is None or self.last.numbers is None:
            return False
        # A tolerance of a tenth of a period: joint states do not come evenly.
        return now - (self._went_out or 0) < 0.9e9 / self.settings.rate

    def silence(self, now: int) -> Answer | None:
        """Return the answer to a long silence; None if no joint state is expected."""
        since = np.inf if self._went_out is None else now - self._went_out
        status = self.gate.silence(now, since)
        if status is None or since < 1e9 * self.settings.input_timeout:
            return None
        return self._say(status.stamp, status.reasons, status.text, now)

    def _say(
        self, stamp: int, reasons: Reason, text: str, now: int, numbers: Array | None = None
    ) -> Answer:
        validity = Validity.INVALID if numbers is None else Validity.OK
        if numbers is not None and reasons:
            validity = Validity.DEGRADED
        self._went_out = now
        self.last = Answer(stamp, validity, reasons, text, numbers)
        return self.last

    def healths(self, now: int) -> dict[str, InputHealth]:
        """Return the health of the inputs by topic; the joint states come last."""
        found = {topic: entry.health(now) for topic, entry in self.by_topic.items()}
        arrival, foreign = self.gate.last_arrival, self.gate.foreign_joints_text
        text = f"{foreign}, none of the robot's joints" if foreign else ""
        found[JOINTS] = InputHealth(
            "joint states", "", 0, arrival.age(now), arrival.age(now), self.settings.input_timeout,
            arrival.has_come, text,
        )  # fmt: skip
        return found

    def _places(self) -> dict[Quantity, slice]:
        """Return the places in y of the quantities' values."""
        found, first = {}, 0
        for quantity, size in self.system.given.items():
            found[quantity] = slice(first, first + size)
            first += size
        return found

    def _fill(self, accelerations: Array) -> None:
        """Write y: accelerations and torques in the order of the rates, then sensors."""
        y, n = self._y, len(accelerations)
        y[:n] = accelerations
        if self.settings.effort_sigma:
            torques = self._inputs["torques"][n - len(self.joints) :]
            y[n : n + len(torques)] = torques
        for place, sensor, part in self._read:
            y[place] = sensor.values[part]
