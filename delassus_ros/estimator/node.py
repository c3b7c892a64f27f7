"""The lifecycle node ``delassus_estimator``: torques and wrenches with covariance, live."""

from __future__ import annotations

import time
from array import array
from functools import partial
from typing import Any

import numpy as np
from delassus_msgs.msg import Estimate
from geometry_msgs.msg import Vector3, Wrench

from delassus_ros.estimator.estimation import Answer, Estimation
from delassus_ros.estimator.settings import PARAMETERS, EstimatorSettings, parameters_of
from delassus_ros.inputs.findings import Reason, Validity, names_of
from delassus_ros.inputs.joint_state_bytes import JointStateReader
from delassus_ros.model.spatial import Array
from delassus_ros.ros.arrival import delay_since, stamp_of, write_stamp
from delassus_ros.ros.diagnostics import Entry, Level, Report, entries_of_inputs
from delassus_ros.ros.executor import run_until_stopped
from delassus_ros.ros.lifecycle_program import LifecycleProgram
from delassus_ros.ros.messages import deserialized
from delassus_ros.ros.parameters import declare, warn_of_unknown_overrides
from delassus_ros.ros.program import Program
from delassus_ros.ros.qos import OUTPUTS, advertise
from delassus_ros.ros.queue import OnMessage
from delassus_ros.ros.reception import Reception
from delassus_ros.ros.timers import STEADY
from delassus_ros.ros.timing import Times
from delassus_ros.ros.topics import FEW, JOINTS, topic_of

_WATCH_PERIOD_S = 0.05
"""Time between checks for silence [s]."""
_LEVELS = {
    Validity.OK: Level.OK, Validity.DEGRADED: Level.WARN, Validity.INVALID: Level.ERROR
}  # fmt: skip

_HELP = """\
usage: delassus_estimator [--ros-args ...]

Estimates joint torques and external wrenches of a robot, with covariance, from its measurements,
for every joint state.

subscribes  joint_states       sensor_msgs/JointState, with velocities and, as torques, efforts
            odometry           nav_msgs/Odometry: of a floating base
            imu                sensor_msgs/Imu: with imu.frame
            wrenches/<name>    geometry_msgs/WrenchStamped: with wrenches.<name>.sensor
            robot_description  std_msgs/String (latched), unless set as a parameter
publishes   ~/estimate         delassus_msgs/Estimate
            /diagnostics       diagnostic_msgs/DiagnosticArray

It is a lifecycle node; the parameter autostart configures and activates it. If the measurements do
not determine the torques and wrenches, configuring fails, and the error names the open direction.

example     delassus_estimator --ros-args -p autostart:=true -p 'wrenches.names:=[LF, RF]' \\
                -p wrenches.LF.frame:=LF_FOOT -p wrenches.RF.frame:=RF_FOOT
"""


class EstimatorNode(LifecycleProgram):
    """Publishes an estimate for every joint state while active.

    Configuring reads parameters and robot description and compiles; activating subscribes.

    Parameters
    ----------
    **options : further arguments of :class:`rclpy.node.Node`.

    Raises
    ------
    rclpy.exceptions.ParameterException
        If a parameter has a value of the wrong type or out of range.
    """

    def __init__(self, **options: Any) -> None:
        self._estimation: Estimation | None = None
        self._reception = Reception(
            self, lambda kind, text: self._warn(kind, text), self._forget, self._set_clock_step,
            self._on_fault,
        )  # fmt: skip
        self._publisher: Any = None
        self._report: Report | None = None
        self._watch: Any = None
        self._reader = JointStateReader()
        self._sequence, self._times = 0, Times()
        super().__init__("delassus_estimator", **options)

    def declare(self) -> None:
        """Declare all parameters, including those of the listed wrenches."""
        for name, setting in PARAMETERS.items():
            declare(self, name, setting)
        for name, setting in parameters_of(self.get_parameter("wrenches.names").value).items():
            declare(self, name, setting)
        warn_of_unknown_overrides(self, self.list_parameters([], 0).names)

    def on_description(self) -> None:
        """Start, or warn of another description."""
        if self._autostart:
            self.start()
        elif self._estimation is not None:
            self._warn("description", "another robot description has come: configure anew for it")

    # Transitions.

    def configure(self) -> None:
        """Read the parameters and the robot, pose the problem and compile it."""
        begun = time.perf_counter()
        values = {name: self.get_parameter(name).value for name in self._known()}
        settings = EstimatorSettings.from_parameters(values)
        estimation = Estimation(settings.robot(self.wait_for_description()), settings)
        system = estimation.system
        operations = system.operations.total
        self.get_logger().info(
            f"{estimation.robot.name}: {system.equations} equations for {system.unknowns} "
            f"unknowns, {operations} operations, ready in {time.perf_counter() - begun:.2f} s"
        )
        self._estimation = estimation
        self._sequence, self._filled = 0, _Filling(estimation)
        self._publisher = advertise(self, Estimate, "~/estimate", OUTPUTS)
        self._report = Report(self, values["diagnostics_period"], self._entries)

    def activate(self) -> None:
        """Subscribe, and publish from now on."""
        estimation = self._configured()
        estimation.reset(self._now())
        callbacks: dict[str, OnMessage] = {
            topic: partial(self._on_message, topic) for topic in estimation.by_topic
        }
        self._reception.start({**callbacks, JOINTS: self._on_joints}, {JOINTS: FEW})
        estimation.set_topics(self._reception.full_names)
        self._watch = self.create_timer(
            _WATCH_PERIOD_S, self._reception.surviving(self._look), clock=STEADY
        )

    def deactivate(self) -> str:
        """Stop publishing; compiled code stays."""
        self._unsubscribe()
        return f"published {self._sequence} estimates"

    def unconfigure(self) -> None:
        """Drop the robot, and destroy the publishers."""
        self._unsubscribe()
        self._estimation = None
        report, self._report = self._report, None
        if report is not None:
            report.close()
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            self.destroy_publisher(publisher)

    def _unsubscribe(self) -> None:
        self._reception.stop()
        watch, self._watch = self._watch, None
        if watch is not None:
            self.destroy_timer(watch)

    def _known(self) -> list[str]:
        return [*PARAMETERS, *parameters_of(self.get_parameter("wrenches.names").value)]

    def _configured(self) -> Estimation:
        if self._estimation is None:
            raise RuntimeError("the node is not configured")
        return self._estimation

    # Inputs and outputs.

    def _now(self) -> int:
        now: int = self.get_clock().now().nanoseconds
        return now

    def _arrived(self, sent: int) -> tuple[int, int]:
        """Return the time of the node's clock, and the time since a message was sent [ns].

        The clocks are read in this order: a pause between the two reads makes the message older,
        never younger.
        """
        now = self._now()
        return now, delay_since(sent, time.time_ns())

    def _on_joints(self, data: bytes, sent: int, count: int) -> None:
        """Answer the newest waiting joint state; older ones are used for the accelerations."""
        begun = time.perf_counter()
        *older, newest = self._reception.waiting(JOINTS, data, sent, count)
        for item in older:
            self._reception.reading(self._take_in, *item)
        if older:
            # The newest messages of the base and the sensors wait as well.
            self._reception.catch_up(JOINTS)
        self._reception.reading(self._take_in, *newest)
        answer = self._configured().answer_kept(self._now())
        if answer is not None:
            self._publish(answer, begun)

    def _take_in(self, data: bytes, sent: int, count: int) -> None:
        state = self._reader.read(data)
        self._configured().take_in(
            state.names, stamp_of(state.sec, state.nanosec), state.values, state.motion,
            *self._arrived(sent), count,
        )  # fmt: skip

    def _on_message(self, name: str, data: bytes, sent: int, count: int) -> None:
        topic = topic_of(name)
        message = deserialized(data, topic.kind, topic.what)
        warning = self._configured().read(name, message, *self._arrived(sent), count)
        if warning is not None:
            self._warn(name, warning.text)

    def _forget(self) -> None:
        """Drop all inputs after a jump of the clock."""
        if self._estimation is not None:
            self._estimation.reset(self._now())

    def _set_clock_step(self, step: int) -> None:
        if self._estimation is not None:
            self._estimation.set_clock_step(step)

    def _on_fault(self, text: str) -> None:
        """Drop all inputs and publish INVALID after a fault of this program."""
        self._forget()
        answer = Answer(0, Validity.INVALID, Reason.SOLVER_FAILED, text)
        self._publish(answer, time.perf_counter())

    def _look(self) -> None:
        if self._estimation is not None:
            answer = self._estimation.silence(self._now())
            if answer is not None:
                self._publish(answer, time.perf_counter())

    def _publish(self, answer: Answer, begun: float) -> None:
        message = Estimate(
            sequence=self._sequence,
            validity=int(answer.validity),
            reasons=int(answer.reasons),
            text=answer.text,
        )
        write_stamp(message.header.stamp, answer.stamp)
        if answer.text:
            self._warn(names_of(answer.reasons), answer.text)
        if answer.numbers is not None:
            self._filled.fill(message, answer.numbers)
            took = time.perf_counter() - begun
            message.compute_time = took
            self._times.add(took)
        self._sequence += 1
        self._publisher.publish(message)

    def _entries(self) -> tuple[list[Entry], str]:
        estimation = self._configured()
        healths = estimation.healths(self._now())
        subscriptions = self._reception.subscriptions
        found = list(entries_of_inputs(self, healths, subscriptions, self._mismatches))
        last = estimation.last
        if not self._reception.active:
            found.append(Entry("estimate", Level.OK, "the node is not active"))
        elif last is None:
            found.append(Entry("estimate", Level.STALE, "there is none yet"))
        else:
            words = last.text or "estimated"
            p50, p99 = self._times.quantiles(0.5, 0.99)
            values = {
                "reasons": names_of(last.reasons),
                "published": str(self._sequence),
                "time p50 [ms]": f"{1e3 * p50:.4g}",
                "time p99 [ms]": f"{1e3 * p99:.4g}",
            }
            found.append(Entry("estimate", _LEVELS[last.validity], words, values))
        return found, estimation.robot.name


class _Filling:
    """Fills messages with the numbers of an estimate.

    Parameters
    ----------
    estimation : estimation that computes the numbers.
    """

    def __init__(self, estimation: Estimation) -> None:
        self._estimation = estimation
        self._joints = list(estimation.joints)
        self._frames = [pushed.frame for pushed in estimation.settings.pushed]
        n, wrenches = len(self._joints), len(self._frames)
        values = n + 6 * wrenches
        self._torques, self._wrenches = slice(0, n), slice(n, values)
        # Variances are lower triangles by row: one number per torque, 21 numbers per wrench, which
        # become full 6 x 6 blocks.
        self._variances = slice(values, values + n)
        lower = np.zeros((6, 6), dtype=np.intp)
        lower[np.tril_indices(6)] = range(21)
        block = np.maximum(lower, lower.T).ravel()
        self._covariances = np.concatenate(
            [values + n + 21 * k + block for k in range(wrenches)] or [np.empty(0, np.intp)]
        )
        self._squared, self._redundant = estimation.system.squared_at, estimation.system.redundant

    def fill(self, message: Estimate, numbers: Array) -> None:
        """Write the numbers of an estimate to a message."""
        message.joints, message.frames = self._joints, self._frames
        message.torques = _array(numbers[self._torques])
        message.torque_variances = _array(numbers[self._variances])
        wrenches: list[Wrench] = []
        for fx, fy, fz, mx, my, mz in numbers[self._wrenches].reshape(-1, 6).tolist():
            force, torque = Vector3(x=fx, y=fy, z=fz), Vector3(x=mx, y=my, z=mz)
            wrenches.append(Wrench(force=force, torque=torque))
        message.wrenches = wrenches
        message.wrench_covariances = _array(numbers[self._covariances])
        message.squared, message.redundant = float(numbers[self._squared]), self._redundant


def _array(values: Array) -> array[float]:
    return array("d", values.tobytes())


main = Program("delassus_estimator", EstimatorNode, run_until_stopped, _HELP)

if __name__ == "__main__":
    main.end_process()
