"""Estimates at joint states, from the checked inputs of all sensors.

Stamps and times are integers, ns.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import replace
from time import perf_counter

import numpy as np
from delassus_msgs.msg import Estimate

from delassus.closure import Closure
from delassus.contacts import Contact
from delassus.dynamics import GRAVITY
from delassus.errors import NumericalError, RobotError
from delassus.measured import Accelerometer, SparseDynamics
from delassus.measured.quantities import Quantity
from delassus.measured.rate_change import RateChange
from delassus.model import WORLD, Robot
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus_ros.estimator.consistency import Consistency
from delassus_ros.estimator.output import EstimateOutput
from delassus_ros.estimator.sensors import InertialSensor, Sensor, WrenchSensor
from delassus_ros.estimator.settings import EstimatorSettings, joints_of
from delassus_ros.inputs.findings import Finding, Findings, Reason, Validity, names_of
from delassus_ros.inputs.inputs import Inputs
from delassus_ros.inputs.joints import Gate, InputStatus
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.motion import MotionInput
from delassus_ros.inputs.orientation import OrientationInput
from delassus_ros.ros.health import InputHealth
from delassus_ros.ros.stream import Messages, Tick
from delassus_ros.ros.topics import JOINTS

ESTIMATE = "~/estimate"
"""Topic of the messages, before remapping."""


class LastEstimate(Findings):
    """The latest estimate and its findings.

    Attributes
    ----------
    stamp : stamp of the joint state [ns]; 0 if it has none.
    numbers : estimate, a result of :meth:`~delassus.measured.SparseDynamics.solve_flat`; None
        if INVALID.
    """

    __slots__ = ("numbers", "stamp")

    def __init__(self, stamp: int = 0) -> None:
        super().__init__()
        self.stamp = stamp
        self.numbers: Array | None = None


class Estimation(Tick):
    """Stores the latest inputs of all sensors and estimates at every joint state.

    Parameters
    ----------
    robot : robot of the joint states; all joints of its loops and couplings have to be measured.

    Attributes
    ----------
    joints : joints with independent rates, without a floating base.
    base : input of a floating base's odometry; None if the base is fixed.
    last : the latest estimate; None before the first.

    Raises
    ------
    UnobservableError
        If the known quantities do not determine the wanted ones.
    ProblemError
        If a frame is unknown.
    RobotError
        If no frame is on a body that moves, or a joint's position is no single number.
    """

    def __init__(
        self,
        robot: Robot,
        settings: EstimatorSettings,
        now: Callable[[], int],
        warn: Callable[[str, str], object],
    ) -> None:
        super().__init__(now)
        self.settings, self.robot = settings, robot
        self.system: SparseDynamics = settings.system(robot)
        joints = joints_of(robot)
        floating = robot.base == "floating"
        self.joints = tuple(joints[1:] if floating else joints)
        timeout, world = settings.input_timeout, settings.world_frame
        self.base = OrientationInput(robot, world=world, timeout=timeout) if floating else None
        if self.base is not None:
            self.base.words = replace(self.base.words, timeout="input_timeout")
        # A problem whose inputs are rates, torques and gravity.
        some = next((f.name for f in robot.frames.values() if f.body != WORLD), None)
        if some is None:
            raise RobotError(f"robot {robot.name!r} has no frame on a body that moves")
        problem = Problem(robot, [Contact("any", some, "point")], outputs=("G", "qdd0"))
        source = "effort" if settings.effort_sigma else "zero"
        self._motion = MotionInput(problem, source, GRAVITY, self.base, timeout)
        self._kernel_inputs = {port.name: np.zeros(port.shape) for port in problem.inputs}
        self._change = RateChange(settings.window)
        wrenches = {
            pushed.name: WrenchSensor(pushed.name, pushed.frame, robot, timeout)
            for pushed in settings.pushed if pushed.sensor
        }  # fmt: skip
        frame = settings.imu_frame
        imu = InertialSensor(frame, robot, timeout) if frame else None
        self.sensors: list[Sensor] = [*wrenches.values(), *filter(None, [imu])]
        self._warn = warn
        self.inputs: Inputs = Inputs(
            robot, Closure(problem) if robot.is_closed else None, (self.base, *self.sensors),
            (self._motion,), warn, Limits.max_skew, timeout,
        )  # fmt: skip
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
        self._output = EstimateOutput(
            self.system, self.joints, [pushed.frame for pushed in settings.pushed]
        )
        self._skipped = Findings()
        """Findings of joint states that have no message of their own, for the next estimate."""
        self._begin_state()

    def _begin_state(self) -> None:
        self._change.reset()
        self._skipped.clear()
        self._motion_fault: Finding | None = None
        self._accelerations: Array | None = None
        self._arrived = 0.0
        """Arrival of the latest joint state, by :func:`time.perf_counter` [s]."""
        self.last_publication.reset()
        self.last: LastEstimate | None = None

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics to subscribe to; the joint states come last."""
        return (*self.inputs.by_topic, JOINTS)

    @property
    def published(self) -> int:
        """Number of messages since the node was configured."""
        return self._output.sequence

    def begin(self) -> None:
        """Return to the initial state, at activation of the node."""
        self.clock_jumped()

    def end(self) -> None:
        """Drop all inputs."""
        self.clock_jumped()

    def clock_jumped(self) -> None:
        """Drop all inputs, which all have a time."""
        self.inputs.restart(self._now())
        self._begin_state()

    def fault(self, text: str) -> Messages:
        """Drop all inputs after a fault of this program, and yield the INVALID message."""
        self.clock_jumped()
        last = LastEstimate()
        last.add(Reason.SOLVER_FAILED, text, Validity.INVALID)
        yield ESTIMATE, self._message(last, self._now())

    def read(self, topic: str, data: bytes, sent: int = 0, count: int = 0) -> bool:
        """Read a message, for the next estimate; see :meth:`Tick.read`.

        The velocities of all joint states count for the accelerations of the next estimate.
        """
        now, delay = self.arrival(sent)
        if topic != JOINTS:
            self.inputs.read(topic, data, now, delay, count)
            return False
        self._arrived = perf_counter()
        inputs, waiting = self._kernel_inputs, self.inputs.waiting
        before = waiting.reasons, waiting.text
        is_skipped = waiting.gate is Gate.READY
        is_due, _ = self.inputs.read_joints(data, now, delay, inputs["q"], count)
        if not is_due:
            return False
        if is_skipped:
            self._skipped.add(*before, Validity.DEGRADED)
        self._motion_fault = self._accelerations = None
        if waiting.gate is Gate.READY:
            fault = self._motion.write(
                waiting.stamp, now, inputs, clock_step=self.inputs.clock_step
            )
            if fault is None and self._motion.implausible is not None:
                fault = replace(self._motion.implausible, validity=Validity.INVALID)
                self._change.reset()
            if fault is None:
                self._accelerations = self._change.add(waiting.stamp or now, inputs["rates"])
            self._motion_fault = fault
        return True

    def answer(self, wanted: Container[str] = (), at_once: bool = False) -> Messages:
        """Yield the estimate for the newest joint state that was read.

        There is none if another publisher sends the missing joints, or if the rate omits the joint
        state.
        """
        waiting = self.inputs.waiting
        if waiting.gate is Gate.IGNORED:
            return
        now = self._now()
        if not at_once:
            self.inputs.update_age(now)
        found = self._estimate(waiting, now)
        waiting.gate = Gate.IGNORED
        if found is not None:
            yield ESTIMATE, self._message(found, now)

    def watch(self, wanted: Container[str] = ()) -> Messages:
        """Yield the INVALID message about a long silence, if there is one."""
        now = self._now()
        since = self.silence_beyond(self.settings.input_timeout, now)
        status = None if since is None else self.inputs.silence(now, since)
        if status is not None:
            found = LastEstimate(status.stamp)
            found.add(status.reasons, status.text, Validity.INVALID)
            yield ESTIMATE, self._message(found, now)

    def _estimate(self, status: InputStatus, now: int) -> LastEstimate | None:
        """Return the estimate for a joint state; None if the rate omits it."""
        found = LastEstimate(status.stamp)
        if status.gate is Gate.REFUSED:
            found.add(status.reasons, status.text, Validity.INVALID)
            return found
        measured = self._measured_accelerations(now)
        if isinstance(measured, Finding):
            found.include(measured)
            found.add(status.reasons, status.text, Validity.INVALID)
            return found
        if self._is_early(now):
            self._skipped.add(status.reasons, status.text, Validity.DEGRADED)
            return None
        self._fill(measured)
        inputs = self._kernel_inputs
        try:
            numbers = self.system.solve_flat(
                inputs["q"], inputs["rates"], self._y, inputs["gravity"]
            )
        except NumericalError as error:
            found.add(status.reasons | Reason.SOLVER_FAILED, str(error), Validity.INVALID)
            return found
        for reasons, text in (
            (status.reasons, status.text), (self._skipped.reasons, self._skipped.text)
        ):  # fmt: skip
            if reasons:
                found.add(reasons, text, Validity.DEGRADED)
        self._skipped.clear()
        for doubt in self._doubts(numbers, now):
            found.include(doubt)
        found.numbers = numbers
        return found

    def _measured_accelerations(self, now: int) -> Array | Finding:
        """Return the accelerations, or why they or an input of the estimate are missing."""
        if self._motion_fault is not None:
            return self._motion_fault
        for sensor in self.sensors:
            fault = sensor.fault(now)
            if fault is not None:
                return fault
        if self._accelerations is None:
            text = f"rates have not come for {self.settings.window:g} s yet (acceleration.window)"
            return Finding(Reason.NO_ACCELERATION, text)
        return self._accelerations

    def _doubts(self, numbers: Array, now: int) -> Iterator[Finding]:
        """Yield the reasons for which an estimate is DEGRADED."""
        if self._motion.doubt is not None:
            yield self._motion.doubt
        for sensor in self.sensors:
            finding = self.inputs.doubt_of(sensor, now)
            if finding is not None:
                yield finding
        contradiction = self._consistency.contradiction(numbers)
        if contradiction is not None:
            yield contradiction

    def _is_early(self, now: int) -> bool:
        """Return whether the latest estimate was published less than a period of the rate ago."""
        if not self.settings.rate or self.last is None or self.last.numbers is None:
            return False
        # A tolerance of a tenth of a period: joint states do not come evenly.
        return self.silence_beyond(0.9 / self.settings.rate, now) is None

    def _message(self, found: LastEstimate, now: int) -> Estimate:
        """Return the message of an estimate; log its findings."""
        self.last_publication.note(now)
        self.last = found
        if found.text:
            self._warn(names_of(found.reasons), found.text)
        took = perf_counter() - self._arrived
        return self._output.message(found.stamp, found, found.numbers, took)

    def healths(self) -> dict[str, InputHealth]:
        """Return the health of the inputs by topic; the joint states come last."""
        stamp = 0 if self.last is None else self.last.stamp
        return self.inputs.healths(self._now(), stamp)

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
            torques = self._kernel_inputs["torques"][n - len(self.joints) :]
            y[n : n + len(torques)] = torques
        for place, sensor, part in self._read:
            y[place] = sensor.values[part]
