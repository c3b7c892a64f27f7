"""The lifecycle node: connects topics and parameters with the pipeline."""

from __future__ import annotations

import copy
import functools
import time
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from delassus_msgs.msg import ActiveContacts, DelassusMatrix, Layout
from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import (
    LifecycleNode,
    LifecyclePublisher,
    LifecycleState,
    TransitionCallbackReturn,
)
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from delassus_ros.errors import DelassusError, RobotError
from delassus_ros.node import parameters
from delassus_ros.node.algorithm_change import AlgorithmChange
from delassus_ros.node.description import DescriptionTopic
from delassus_ros.node.exchange import refusal
from delassus_ros.node.log_bridge import LogBridge
from delassus_ros.node.matrix_output import make_layout
from delassus_ros.node.pipeline import Pipeline
from delassus_ros.node.queue import take
from delassus_ros.node.throttle import Throttle
from delassus_ros.problem import Problem
from delassus_ros.settings import Settings
from delassus_ros.solver import DelassusSolver

_DESCRIPTION_LIMIT = 5.0  # s that configuring waits for the robot description
# Room for a pause of 1 s at 1 kHz: what waits here is counted as superseded, what does not fit
# is lost without a trace.
_JOINT_STATES = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)
_LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
_MATRICES = QoSProfile(depth=10)


_Transition = Callable[["DelassusNode", LifecycleState], TransitionCallbackReturn]


def _logged(transition: _Transition) -> _Transition:
    """Log what a transition raises; rclpy goes to on_error without a word."""

    @functools.wraps(transition)
    def logged(node: DelassusNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception:
            node.get_logger().error(f"{transition.__name__} failed:\n{traceback.format_exc()}")
            raise

    return logged


@dataclass
class _Configuration:
    """What there is from configure to cleanup."""

    description: str
    problem: Problem
    layout: Layout
    pipeline: Pipeline
    algorithm: AlgorithmChange
    matrices: LifecyclePublisher
    layouts: LifecyclePublisher


class DelassusNode(LifecycleNode):
    """Publishes the Delassus matrix of each joint state while it is active.

    Configuring reads the parameters and the robot description and compiles the kernel;
    activating subscribes to joint states and contacts.

    Parameters
    ----------
    **options : further arguments of :class:`rclpy.node.Node`.

    Raises
    ------
    rclpy.exceptions.ParameterException
        If a parameter is given with a value of the wrong type.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(
            "delassus_node", automatically_declare_parameters_from_overrides=True, **options
        )
        self._configuration: _Configuration | None = None
        self._inputs: list[Subscription] = []
        self._warn = Throttle(lambda text: self.get_logger().warning(text))
        self._log_bridge = LogBridge(self.get_logger())
        self._log_bridge.install()
        parameters.declare(self)
        self._autostart: bool = self.get_parameter("autostart").value
        self._description = DescriptionTopic(self, self._on_description)
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._follow_parameters)

    def start(self) -> None:
        """With autostart, configure and activate as soon as there is a robot description."""
        if not self._autostart:
            return
        if not (self.get_parameter("robot_description").value or self._description.text):
            topic = self._description.topic
            self.get_logger().info(f"waiting for the robot description on {topic}")
        elif self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()

    def destroy_node(self) -> None:
        """Give back everything, the process of a running build included."""
        self._unconfigure()
        self._log_bridge.remove()
        super().destroy_node()

    # Transitions.

    @_logged
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the parameters and the robot, and compile the kernel."""
        try:
            self._configuration = self._configure()
        except DelassusError as error:
            self.get_logger().error(f"cannot configure: {error}")
            return TransitionCallbackReturn.FAILURE
        self._autostart = False
        return super().on_configure(state)

    @_logged
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Subscribe, and publish from now on."""
        result = super().on_activate(state)
        configuration = self._configured()
        configuration.layouts.publish(configuration.layout)
        # Latched: with the new subscription the last set comes again.
        self._subscribe(ActiveContacts, "active_contacts", self._on_contacts, _LATCHED)
        self._subscribe(JointState, "joint_states", self._on_joint_state, _JOINT_STATES, raw=True)
        configuration.algorithm.follow()
        sources = " and ".join(subscription.topic_name for subscription in self._inputs)
        self.get_logger().info(f"active: from {sources} to {configuration.matrices.topic_name}")
        return result

    @_logged
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop publishing; the kernel stays."""
        self._deactivate()
        pipeline = self._configured().pipeline
        # The contacts may change unheard; activating brings the latched set again.
        pipeline.forget_contacts()
        self.get_logger().info(
            f"inactive: published {pipeline.published} matrices and {pipeline.refused} times "
            f"INVALID; {pipeline.superseded} joint states were superseded by newer ones"
        )
        return super().on_deactivate(state)

    @_logged
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the robot; what was set by parameter or came by topic stays."""
        self._unconfigure()
        return super().on_cleanup(state)

    @_logged
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Give back everything; there is no way back."""
        self._unconfigure()
        self._autostart = False
        self._description.close()
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Go back to unconfigured."""
        self._unconfigure()
        return super().on_error(state)

    def _configure(self) -> _Configuration:
        start = time.perf_counter()
        settings = Settings.from_parameters(parameters.values(self))
        description = settings.robot_description or self._description.wait(_DESCRIPTION_LIMIT)
        if not description:
            topic = self._description.topic
            raise RobotError(
                f"no robot description: the parameter 'robot_description' is empty and nothing "
                f"came on {topic} within {_DESCRIPTION_LIMIT:g} s (publishers there: "
                f"{self.count_publishers(topic)})"
            )
        problem = settings.problem(description)
        solver = DelassusSolver(problem, settings.algorithm)
        now = self.get_clock().now
        layout = make_layout(problem, now().to_msg())
        all_rows = settings.rows == "all"
        pipeline = Pipeline(solver, layout, all_rows, lambda: now().nanoseconds, self._warn)
        algorithm = AlgorithmChange(self, problem, pipeline)
        self.get_logger().info(
            f"{problem.robot.name}: {len(problem.robot.joint_names)} joints, "
            f"{len(problem.contacts)} contacts ({problem.contacts.rows} rows), {_words(solver)}, "
            f"ready in {time.perf_counter() - start:.2f} s"
        )
        # Last, and both or none: nobody else would destroy them.
        with ExitStack() as undo:
            matrices = self._publisher(DelassusMatrix, "~/delassus", _MATRICES)
            undo.callback(self.destroy_lifecycle_publisher, matrices)
            layouts = self._publisher(Layout, "~/layout", _LATCHED)
            undo.pop_all()
        return _Configuration(description, problem, layout, pipeline, algorithm, matrices, layouts)

    def _configured(self) -> _Configuration:
        if self._configuration is None:
            raise RuntimeError("the node is not configured")
        return self._configuration

    def _deactivate(self) -> None:
        while self._inputs:
            self.destroy_subscription(self._inputs.pop())
        if self._configuration is not None:
            self._configuration.algorithm.close()

    def _unconfigure(self) -> None:
        self._deactivate()
        if self._configuration is not None:
            self.destroy_lifecycle_publisher(self._configuration.matrices)
            self.destroy_lifecycle_publisher(self._configuration.layouts)
        self._configuration = None

    def _publisher(self, kind: type, topic: str, qos: QoSProfile) -> LifecyclePublisher:
        options = QoSOverridingOptions.with_default_policies()
        publisher: LifecyclePublisher = self.create_lifecycle_publisher(
            # A copy, as rclpy writes overrides into what it is given.
            kind,
            topic,
            copy.copy(qos),
            qos_overriding_options=options,
        )
        return publisher

    def _subscribe(
        self,
        kind: type,
        topic: str,
        callback: Callable[[Any], None],
        qos: QoSProfile,
        raw: bool = False,
    ) -> None:
        options = QoSOverridingOptions.with_default_policies()
        self._inputs.append(
            self.create_subscription(
                kind, topic, callback, copy.copy(qos), qos_overriding_options=options, raw=raw
            )
        )

    # Topics.

    def _on_joint_state(self, message: bytes) -> None:
        configuration = self._configured()
        superseded = 0
        # What waits behind this message is newer; the last one counts. Not more than the queue
        # holds, as a fast publisher would never let it run empty.
        for _ in range(_JOINT_STATES.depth):
            newer = take(self._inputs[-1])
            if newer is None:
                break
            message = newer
            superseded += 1
        if superseded:
            configuration.pipeline.supersede(superseded)
        try:
            answer = configuration.pipeline.answer(message)
        except RuntimeError as error:
            self._warn("bytes", f"a joint state cannot be read: {error}")
            return
        try:
            configuration.matrices.publish(answer)
        except RuntimeError:
            # A signal may shut ROS down at any time; then nobody misses this message.
            if self.context.ok():
                raise

    def _on_contacts(self, message: ActiveContacts) -> None:
        self._configured().pipeline.set_contacts(message)

    def _on_description(self) -> None:
        if self._autostart:
            self.start()
        elif self._configuration is not None and not self.get_parameter("robot_description").value:
            if self._configuration.description != self._description.text:
                self.get_logger().warning(
                    "another robot description has arrived; it is used when the node is cleaned "
                    "up and configured again"
                )

    # Parameters.

    def _check_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        """Refuse all changes if one of them cannot be made."""
        problem = self._configuration.problem if self._configuration is not None else None
        for change in changes:
            if change.name == "algorithm":
                reason = refusal(change.value, problem)
            else:
                reason = parameters.refusal(change.name, change.value, problem is not None)
            if reason is not None:
                return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)

    def _follow_parameters(self, changes: list[Parameter]) -> None:
        names = {change.name for change in changes}
        if "contacts.names" in names:
            parameters.declare_contacts(self)
        if "algorithm" in names and self._configuration is not None and self._inputs:
            self._configuration.algorithm.follow()


def _words(solver: DelassusSolver) -> str:
    """Return the algorithm with the number of its operations, where they can be counted."""
    if solver.operations is None:
        return solver.algorithm
    return f"{solver.algorithm}, {solver.operations.total} operations"
