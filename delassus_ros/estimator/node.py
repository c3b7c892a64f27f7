"""The lifecycle node ``delassus_estimator``: torques and wrenches with covariance, live."""

from __future__ import annotations

import math
import time
from contextlib import ExitStack
from typing import Any

from delassus_msgs.msg import Estimate

from delassus_ros.estimator.estimation import ESTIMATE, Estimation
from delassus_ros.estimator.settings import PARAMETERS, EstimatorSettings, parameters_of
from delassus_ros.inputs.findings import names_of
from delassus_ros.ros.diagnostics import DiagnosticPublisher, Entry, entries_of_inputs
from delassus_ros.ros.executor import run_until_stopped
from delassus_ros.ros.health import Level
from delassus_ros.ros.lifecycle_program import LifecycleProgram
from delassus_ros.ros.parameters import declare, warn_of_unknown_overrides
from delassus_ros.ros.program import Program
from delassus_ros.ros.publishers import Publishers
from delassus_ros.ros.qos import OUTPUTS
from delassus_ros.ros.realtime import RealtimeSettings
from delassus_ros.ros.stream import Stream
from delassus_ros.ros.timers import now_of
from delassus_ros.ros.topics import FEW, JOINTS

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
        self._stream: Stream | None = None
        self._undo = ExitStack()
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
        robot = settings.robot(self.wait_for_description())
        estimation = Estimation(robot, settings, now_of(self), self._warn)
        system = estimation.system
        operations = system.operations.total
        self.get_logger().info(
            f"{estimation.robot.name}: {system.equations} equations for {system.unknowns} "
            f"unknowns, {operations} operations, ready in {time.perf_counter() - begun:.2f} s"
        )
        # If one part fails, the parts before it are closed.
        with ExitStack() as undo:
            publishers = Publishers(self, self._warn, {ESTIMATE: (Estimate, OUTPUTS)})
            undo.callback(publishers.close)
            self._stream = Stream(
                self, self._warn, estimation, publishers, math.inf, 0.0, settings.input_timeout,
                RealtimeSettings(hold_garbage=False), {JOINTS: FEW},
            )  # fmt: skip
            undo.callback(self._stream.stop)
            diagnostics = DiagnosticPublisher(self, values["diagnostics_period"], self._entries)
            undo.callback(diagnostics.close)
            self._estimation, self._undo = estimation, undo.pop_all()

    def activate(self) -> None:
        """Subscribe, and publish from now on."""
        self._configured()[1].start()

    def deactivate(self) -> str:
        """Stop publishing; compiled code stays."""
        estimation, stream = self._configured()
        stream.stop()
        return f"published {estimation.published} estimates"

    def unconfigure(self) -> None:
        """Drop the robot, and destroy the publishers."""
        self._undo.close()
        self._estimation = self._stream = None

    def _known(self) -> list[str]:
        return [*PARAMETERS, *parameters_of(self.get_parameter("wrenches.names").value)]

    def _configured(self) -> tuple[Estimation, Stream]:
        if self._estimation is None or self._stream is None:
            raise RuntimeError("the node is not configured")
        return self._estimation, self._stream

    def _entries(self) -> tuple[list[Entry], str]:
        estimation, stream = self._configured()
        healths = estimation.healths()
        found = list(entries_of_inputs(self, healths, stream.subscriptions, self._mismatches))
        last = estimation.last
        if not stream.active:
            found.append(Entry("estimate", Level.OK, "the node is not active"))
        elif last is None:
            found.append(Entry("estimate", Level.STALE, "there is none yet"))
        else:
            text = last.text or "estimated"
            p50, p99 = stream.timing.latency.quantiles(0.5, 0.99)
            values = {
                "reasons": names_of(last.reasons),
                "published": str(estimation.published),
                "time p50 [ms]": f"{1e3 * p50:.4g}",
                "time p99 [ms]": f"{1e3 * p99:.4g}",
            }
            found.append(Entry("estimate", last.validity.level, text, values))
        return found, estimation.robot.name


main = Program("delassus_estimator", EstimatorNode, run_until_stopped, _HELP)

if __name__ == "__main__":
    main.end_process()
