"""Estimates for joint states: what has come of each sensor, checked, and what follows from it.

Knows no ROS. Stamps and times are integers, ns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from delassus_ros.contacts import Contact
from delassus_ros.dynamics import GRAVITY
from delassus_ros.errors import NumericalError, RobotError
from delassus_ros.estimator.settings import EstimatorSettings, joints_of
from delassus_ros.measured import Accelerometer, SparseDynamics
from delassus_ros.measured.quantities import Quantity
from delassus_ros.model import WORLD, Robot
from delassus_ros.model.spatial import Array
from delassus_ros.node.inputs.arrival import Arrival
from delassus_ros.node.inputs.joints import Gate, JointGate
from delassus_ros.node.inputs.motion import MotionInput
from delassus_ros.node.inputs.orientation import OrientationInput
from delassus_ros.node.reasons import Complaint, InputHealth, Limits, Reason, Validity
from delassus_ros.problem import Problem


class Sensor:
    """The numbers that came last of a sensor.

    Parameters
    ----------
    name : in words.
    size : how many numbers.
    reasons : bits for missing, invalid and stale.
    timeout : age above which they are too old [s].

    Attributes
    ----------
    values : the numbers.
    """

    def __init__(
        self, name: str, size: int, reasons: tuple[Reason, Reason, Reason], timeout: float
    ) -> None:
        self.name, self.values, self._timeout = name, np.zeros(size), timeout
        self._missing, self._invalid, self._stale = reasons
        self.forget()

    def forget(self) -> None:
        """Be as before the first."""
        self._arrival = Arrival()
        self._complaint: Complaint | None = Complaint(
            self._missing, f"nothing has come from the {self.name} yet"
        )

    def read(self, values: Sequence[float], now: int) -> None:
        """Take the next numbers."""
        self._arrival.note(now)
        taken = np.asarray(values, dtype=np.float64)
        if np.isfinite(taken).all():
            self.values[...] = taken
            self._complaint = None
        else:
            shown = ", ".join(f"{value:.6g}" for value in taken.tolist())
            text = f"the {self.name} says {shown}; expected finite numbers"
            self._complaint = Complaint(self._invalid, text)

    def complaint(self, now: int) -> Complaint | None:
        """Return why there is nothing to compute with, or None if there is."""
        if self._complaint is not None:
            return self._complaint
        if not self._arrival.within(1e9 * self._timeout, now):
            return Complaint(
                self._stale,
                f"what the {self.name} says is {self._arrival.age(now):.4g} s old, at most "
                f"{self._timeout:g} s are allowed (input_timeout)",
            )
        return None

    def health(self, now: int) -> InputHealth:
        """Return what is known of it, but for its topic."""
        age, complaint = self._arrival.age(now), self._complaint
        received = self._arrival.since(now) is not None
        text = complaint.text if received and complaint is not None else ""
        return InputHealth(self.name, "", 0, age, age, self._timeout, received, text)


@dataclass(frozen=True)
class Answer:
    """What there is to say for a joint state.

    Attributes
    ----------
    stamp : of the joint state [ns]; 0 if it has none.
    validity, reasons, text : as in the message.
    numbers : what follows from all that is measured, as
        :meth:`~delassus_ros.measured.SparseDynamics.solve_flat` gives it; None if INVALID.
    """

    stamp: int
    validity: Validity
    reasons: Reason
    text: str
    numbers: Array | None = None


class Estimation:
    """Takes what sensors say and estimates at every joint state.

    Parameters
    ----------
    robot : whose joint states come; of its loops and couplings all joints have to be measured.
    settings : what is known and wanted.

    Attributes
    ----------
    system : what is known and wanted, posed.
    joints : with independent rates, but for a floating base.
    gate, base : what checks joint states and a floating base's odometry; base is None if fixed.
    wrenches : sensors by name of what is pushed.
    imu : the inertial sensor; None without one.
    last : the latest answer; None before the first.

    Raises
    ------
    UnobservableError
        If what is known is not enough.
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
        self.gate = JointGate(robot, limits.max_skew, limits.input_timeout)
        timeout = settings.input_timeout
        self.base = OrientationInput(robot, timeout=timeout) if floating else None
        # Rates, torques and gravity, as for free accelerations.
        frame = next((f.name for f in robot.frames.values() if f.body != WORLD), None)
        if frame is None:
            raise RobotError(f"robot {robot.name!r} has no frame on a body that moves")
        problem = Problem(robot, [Contact("any", frame, "point")], outputs=("G", "qdd0"))
        source = "effort" if settings.effort_sigma else "zero"
        self._motion = MotionInput(problem, source, GRAVITY, self.base, timeout)
        self._inputs = {port.name: np.zeros(port.shape) for port in problem.inputs}
        self._past: deque[tuple[int, Array]] = deque()
        self.wrenches = {
            each.name: Sensor(
                f"sensor of {each.name}", 6,
                (Reason.WRENCH_MISSING, Reason.WRENCH_INVALID, Reason.WRENCH_STALE), timeout,
            )
            for each in settings.pushed if each.sensor
        }  # fmt: skip
        reasons = Reason.IMU_MISSING, Reason.IMU_INVALID, Reason.IMU_STALE
        self.imu = Sensor("inertial sensor", 3, reasons, timeout) if settings.imu_frame else None
        places = self._places()
        self._y = np.zeros(sum(self.system.given.values()))
        # What of a sensor goes where in y.
        self._read = [
            (places[quantity], self.wrenches[each.name], list(quantity.rows))
            for each in settings.pushed if each.sensor
            for quantity in each.quantities
        ]  # fmt: skip
        if self.imu is not None:
            place = places[Accelerometer(settings.imu_frame)]
            self._read.append((place, self.imu, [0, 1, 2]))
        self.last: Answer | None = None
        self._went_out: int | None = None

    def forget(self, now: int) -> None:
        """Begin anew, as when activated."""
        self.gate.forget(now)
        self._motion.forget()
        self._past.clear()
        for sensor in self._sensors:
            sensor.forget()
        if self.base is not None:
            self.base.forget()
        self.last = self._went_out = None

    @property
    def _sensors(self) -> list[Sensor]:
        return [*self.wrenches.values(), *([self.imu] if self.imu is not None else [])]

    def answer(
        self,
        names: Sequence[str],
        stamp: int,
        positions: Array,
        motion: tuple[Array, Array],
        now: int,
    ) -> Answer | None:
        """Take a joint state; return what there is to say, None where others make up for it.

        Also None where the rate leaves it out.

        Parameters
        ----------
        names : of its joints.
        stamp : 0 or less if it has none.
        positions : of the joints [rad, m].
        motion : their velocities and efforts; each may be empty.
        now : time of the node's clock.
        """
        q = self._inputs["q"]
        verdict = self.gate.read(names, stamp, positions, now, q, 0, motion)
        if verdict.gate is Gate.WAITING:
            return None
        if verdict.gate is Gate.REFUSED:
            return self._say(verdict.stamp, verdict.reasons, verdict.text, now)
        self._motion.take(self.gate.joints, self.gate.motion)
        complaint = self._motion.write(verdict.stamp, now, self._inputs)
        for sensor in self._sensors:
            complaint = complaint or sensor.complaint(now)
        accelerations = None if complaint else self._accelerations(verdict.stamp or now)
        if complaint is None and accelerations is None:
            text = f"rates have not come for {self.settings.window:g} s yet (acceleration.window)"
            complaint = Complaint(Reason.NO_ACCELERATION, text)
        if complaint is not None or accelerations is None:
            reasons = verdict.reasons | (complaint.reason if complaint else Reason.NONE)
            return self._say(verdict.stamp, reasons, complaint.text if complaint else "", now)
        if self._is_early(now):
            return None
        self._fill(accelerations)
        try:
            numbers = self.system.solve_flat(
                q, self._inputs["rates"], self._y, self._inputs["gravity"]
            )
        except NumericalError as error:
            return self._say(verdict.stamp, Reason.SOLVER_FAILED, str(error), now)
        return self._say(verdict.stamp, verdict.reasons, verdict.text, now, numbers)

    def _is_early(self, now: int) -> bool:
        """Return whether the latest estimate went out less than a period of the rate ago."""
        if not self.settings.rate or self.last is None or self.last.numbers is None:
            return False
        # A tenth of a period early is in time: instants do not come evenly.
        return now - (self._went_out or 0) < 0.9e9 / self.settings.rate

    def silence(self, now: int) -> Answer | None:
        """Return what to say where nothing has come for long; None if nothing is expected."""
        since = np.inf if self._went_out is None else now - self._went_out
        verdict = self.gate.silence(now, since)
        if verdict is None or since < 1e9 * self.settings.input_timeout:
            return None
        return self._say(verdict.stamp, verdict.reasons, verdict.text, now)

    def _say(
        self, stamp: int, reasons: Reason, text: str, now: int, numbers: Array | None = None
    ) -> Answer:
        validity = Validity.INVALID if numbers is None else Validity.OK
        if numbers is not None and reasons:
            validity = Validity.DEGRADED
        self._went_out = now
        self.last = Answer(stamp, validity, reasons, text, numbers)
        return self.last

    def _accelerations(self, stamp: int) -> Array | None:
        """Return the difference quotient of the rates; None as long as they do not reach back."""
        past, rates = self._past, self._inputs["rates"].copy()
        if past and stamp <= past[-1][0]:
            # Time was set back.
            past.clear()
        past.append((stamp, rates))
        window = max(1, round(1e9 * self.settings.window))
        while len(past) > 2 and stamp - past[1][0] >= window:
            past.popleft()
        first, before = past[0]
        # Not over a pause, of which nobody knows what happened.
        if stamp - first < window or stamp - first > window + 1e9 * self.settings.input_timeout:
            return None
        return np.asarray((rates - before) / (1e-9 * (stamp - first)))

    def _places(self) -> dict[Quantity, slice]:
        """Return where in y each quantity's values are."""
        found, first = {}, 0
        for quantity, size in self.system.given.items():
            found[quantity] = slice(first, first + size)
            first += size
        return found

    def _fill(self, accelerations: Array) -> None:
        """Write y: accelerations and torques, which are in the order of the rates, and sensors."""
        y, n = self._y, len(accelerations)
        y[:n] = accelerations
        if self.settings.effort_sigma:
            torques = self._inputs["torques"][n - len(self.joints) :]
            y[n : n + len(torques)] = torques
        for place, sensor, part in self._read:
            y[place] = sensor.values[part]
