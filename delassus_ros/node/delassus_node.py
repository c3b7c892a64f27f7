"""The lifecycle node: its states, its parameters and its robot description."""

from __future__ import annotations

import functools
import time
import traceback
from collections.abc import Callable, Set
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.lifecycle import (
    LifecycleNode,
    LifecyclePublisher,
    LifecycleState,
    TransitionCallbackReturn,
)
from rclpy.parameter import Parameter
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription

from delassus_ros.algorithms import spelling
from delassus_ros.errors import SAID, DelassusError, RobotError, unknown
from delassus_ros.node.lifecycle import parameters
from delassus_ros.node.lifecycle.computation import Computation
from delassus_ros.node.lifecycle.configuration import Configuration
from delassus_ros.node.lifecycle.description_topic import DescriptionTopic
from delassus_ros.node.lifecycle.refusals import ALGORITHM, DESCRIPTION, refusal
from delassus_ros.node.lifecycle.services import ListService
from delassus_ros.node.settings import OPERATION_PARAMETERS, Operation, Settings
from delassus_ros.node.system.logs import LogBridge, LoopLog, Throttle
from delassus_ros.node.system.overrides import overrides_of
from delassus_ros.node.system.qos import Mismatches, unused_overrides
from delassus_ros.node.system.timers import STEADY, now_of

_DESCRIPTION_LIMIT = 5.0  # s that configuring waits for the robot description
_WORLD_FRAME = "orientation.world_frame"

_Transition = Callable[[Any, LifecycleState], TransitionCallbackReturn]


class EventlessNode(LifecycleNode):
    """Its publishers and subscriptions, rclpy's own too, have no handlers of QoS events.

    rclpy would give each some by default. Those of rclpy's events executor outlive their end in
    its queue: where a transition destroys it meanwhile, the process ends by a signal. To take
    the event of a deadline can block for ever, as Fast DDS locks in another order where it
    notes that one was missed.

    Attributes
    ----------
    stopping : returns whether the process is to end; may be set by who runs it.
    """

    stopping: Callable[[], bool]

    def start(self) -> None:
        """With autostart, configure and activate."""
        raise NotImplementedError

    def destroy_node(self) -> None:
        """Destroy the node, and the state machine that rclpy would leave to the garbage collector.

        It holds the node's handle: for that long, a destroyed node would be in the ROS graph.
        """
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()

    def create_publisher(self, *arguments: Any, **options: Any) -> Publisher:
        """Return a new publisher, as :meth:`rclpy.node.Node.create_publisher` does."""
        return super().create_publisher(*arguments, **{**options, **_publisher()})

    def create_lifecycle_publisher(self, *arguments: Any, **options: Any) -> LifecyclePublisher:
        """Return a new publisher that is silent while the node is inactive."""
        made: LifecyclePublisher = super().create_lifecycle_publisher(
            *arguments, **{**options, **_publisher()}
        )
        return made

    def create_subscription(self, *arguments: Any, **options: Any) -> Subscription:
        """Return a new subscription, as :meth:`rclpy.node.Node.create_subscription` does."""
        events = SubscriptionEventCallbacks(use_default_callbacks=False)
        return super().create_subscription(*arguments, **{**options, "event_callbacks": events})


def _publisher() -> dict[str, Any]:
    return {"event_callbacks": PublisherEventCallbacks(use_default_callbacks=False)}


def logged(transition: _Transition) -> _Transition:
    """Log what a transition raises; rclpy goes to on_error without a word."""

    @functools.wraps(transition)
    def said(node: LifecycleNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception:
            node.get_logger().error(f"{transition.__name__} failed:\n{traceback.format_exc()}")
            raise

    return said


class DelassusNode(EventlessNode):
    """Publishes the Delassus matrix of each joint state while it is active.

    Configuring reads the parameters and the robot description and compiles the kernel;
    activating subscribes to joint states and contacts.

    Parameters
    ----------
    **options : further arguments of :class:`rclpy.node.Node`.

    Raises
    ------
    rclpy.exceptions.ParameterException
        If a parameter is given with a value of the wrong type or out of range.
    InputError
        If one that overrides the QoS of the robot description has a value that it cannot have,
        or one is too small to work.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("delassus_node", **options)
        refuse_impossible_changes(self)
        self.stopping = lambda: not self.context.ok()
        self._configuration: Configuration | None = None
        self._accepted: dict[str, str] = {}  # parameters by which it is computed
        self._starter: Any = None
        log = LoopLog(self.get_logger())
        self._warn, self._fail = Throttle(log.warning), Throttle(log.error)
        self._log_bridge = LogBridge(log)
        self._log_bridge.install()
        try:
            # Parameters that somebody has set, if only to their defaults.
            self._given = set(overrides_of(self))
            self._overrides = parameters.declare(self)
            self._autostart: bool = self.get_parameter("autostart").value
            self._description = DescriptionTopic(
                self, self._on_description, lambda: self.stopping()
            )
            self._mismatches = Mismatches(self, self._warn)
            self._list = ListService(self, self._computation)
        except BaseException:
            # Nobody gets a node to destroy.
            self.destroy_node()
            raise
        self.add_pre_set_parameters_callback(parameters.suited)
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._follow_parameters)

    def start(self) -> None:
        """With autostart, configure and activate as soon as there is a robot description."""
        if not self._autostart:
            return
        if not self._wanted_description():
            topic = self._description.topic
            self.get_logger().info(f"waiting for the robot description on {topic}")
        elif self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()

    def _start_soon(self) -> None:
        """Start in a callback of its own: who sets a parameter may be about to set others."""
        if self._starter is None:
            self._starter = self.create_timer(0.0, self._start_now, clock=STEADY)

    def _start_now(self) -> None:
        starter, self._starter = self._starter, None
        if starter is not None:
            self.destroy_timer(starter)
            self.start()

    def destroy_node(self) -> None:
        """Give back everything, the process of a running build included."""
        self._unconfigure()
        self._log_bridge.remove()
        super().destroy_node()

    # Transitions.

    @logged
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the parameters and the robot, and compile the kernel."""
        try:
            self._configuration = self._configure()
        except DelassusError as error:
            text = f"cannot configure: {error}"
            if self._autostart:
                # By itself it tries with each description that comes.
                self._fail("configure", text)
            else:
                self.get_logger().error(text)
            return TransitionCallbackReturn.FAILURE
        self._autostart = False
        return super().on_configure(state)

    @logged
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Subscribe, and publish from now on."""
        result = super().on_activate(state)
        configuration = self._configured()
        try:
            configuration.activate()
        except DelassusError as error:
            configuration.deactivate()
            super().on_deactivate(state)
            self.get_logger().error(f"cannot activate: {error}")
            return TransitionCallbackReturn.FAILURE
        # Only now are there all topics.
        for text in unused_overrides(self):
            self.get_logger().warning(f"{text}; it is ignored")
        return result

    @logged
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop publishing; the kernel stays."""
        configuration = self._configured()
        configuration.deactivate()
        pipeline = configuration.computation.pipeline
        self.get_logger().info(
            f"inactive: published {pipeline.published} matrices and {pipeline.refused} times "
            f"INVALID; {pipeline.superseded} joint states were superseded by newer ones"
        )
        return super().on_deactivate(state)

    @logged
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the robot; what was set by parameter or came by topic stays."""
        self._unconfigure()
        return super().on_cleanup(state)

    @logged
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Give back everything; there is no way back."""
        self._unconfigure()
        self._autostart = False
        self._description.close()
        self._list.close()
        self._mismatches.close()
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Go back to unconfigured."""
        self._unconfigure()
        return super().on_error(state)

    def _configure(self) -> Configuration:
        start = time.perf_counter()
        values = parameters.values(self)
        parameters.refuse_misspelt_contacts(overrides_of(self), values["contacts.names"])
        settings = Settings.from_parameters(values)
        operation = Operation.from_parameters(values)
        description = settings.robot_description or self._description.wait(_DESCRIPTION_LIMIT)
        if not description:
            topic = self._description.topic
            raise RobotError(
                f"no robot description: the parameter 'robot_description' is empty and nothing "
                f"came on {topic} within {_DESCRIPTION_LIMIT:g} s (publishers there: "
                f"{self.count_publishers(topic)})"
            )
        computation = Computation.make(
            settings, description, operation.limits, now_of(self), self._warn
        )
        self.get_logger().info(
            f"{computation.words}, ready in {time.perf_counter() - start:.2f} s"
        )
        if "imu" in computation.pipeline.topics:
            self._warn_of_world_frame(settings)
        self._accept()
        return Configuration(
            self,
            self._warn,
            self._mismatches,
            operation,
            computation,
            self._accept,
            self._keep,
        )

    def _warn_of_world_frame(self, settings: Settings) -> None:
        """Say that nobody has told what an inertial sensor is relative to: its messages do not."""
        if _WORLD_FRAME not in self._given:
            self.get_logger().warning(
                f"matrices are labelled with frame {settings.orientation_world_frame!r}, the "
                f"default of '{_WORLD_FRAME}', but an Imu does not say what its orientation is "
                f"relative to: set '{_WORLD_FRAME}' to that frame"
            )

    def _configured(self) -> Configuration:
        if self._configuration is None:
            raise RuntimeError("the node is not configured")
        return self._configuration

    def _computation(self) -> Computation | None:
        return None if self._configuration is None else self._configuration.computation

    def _unconfigure(self) -> None:
        configuration, self._configuration = self._configuration, None
        if configuration is not None:
            configuration.close()

    # The robot description and the algorithm.

    def _wanted_description(self) -> str:
        return self.get_parameter(DESCRIPTION).value or self._description.text

    def _on_description(self) -> None:
        if self._autostart:
            self.start()
        else:
            self._follow({DESCRIPTION})

    def _follow(self, names: Set[str]) -> None:
        """Change to the wanted robot description and algorithm, of which these may be new."""
        configuration = self._configuration
        if configuration is None:
            return
        if DESCRIPTION in names:
            self._follow_description(configuration)
            if configuration.description.building:
                # A robot to come brings its algorithm with it.
                configuration.algorithm.cancel()
                return
        self._follow_algorithm(configuration, ALGORITHM in names)

    def _follow_algorithm(self, configuration: Configuration, was_set: bool) -> None:
        wanted = self.get_parameter(ALGORITHM).value
        self._accepted[ALGORITHM] = wanted
        # One that was given up for a robot, or was to come with one, is wanted all the same if
        # that does not come.
        missing = spelling(wanted) != configuration.algorithm.configured
        if configuration.stream.active and (was_set or missing):
            configuration.algorithm.follow()

    def _follow_description(self, configuration: Configuration) -> None:
        wanted = self._wanted_description()
        if not wanted:
            return
        if wanted == configuration.computation.description:
            configuration.description.keep()
            self._accepted[DESCRIPTION] = self.get_parameter(DESCRIPTION).value
        else:
            settings = Settings.from_parameters(parameters.values(self))
            configuration.description.follow(wanted, settings)

    def _accept(self) -> None:
        """Note the parameters by which it is computed from now on."""
        self._accepted = {
            name: self.get_parameter(name).value for name in (DESCRIPTION, ALGORITHM)
        }

    def _keep(self, reason: str) -> None:
        """Say why another description cannot be used, and set back what came with it."""
        configuration = self._configured()
        robot = configuration.computation.problem.robot.name
        text = f"cannot change the robot description, {robot} goes on: {reason}"
        # Apart, as one set back by the parameter's fault may leave a bad one by topic.
        source = "parameter" if self.get_parameter(DESCRIPTION).value else "topic"
        self._fail(f"description by {source}", text)
        changes = [
            Parameter(name, value=value)
            for name, value in self._accepted.items()
            if self.get_parameter(name).value != value
        ]
        if changes:
            # Together, as each may go with the other alone.
            result = self.set_parameters_atomically(changes)
            if not result.successful:
                names = " and ".join(repr(change.name) for change in changes)
                text = f"{names} cannot be set back to what is in use: {result.reason}"
                self._fail("set back", text)
        if not configuration.description.building:
            self._follow_algorithm(configuration, was_set=False)

    # Parameters.

    def set_parameters_atomically(self, parameter_list: list[Parameter]) -> SetParametersResult:
        """Set parameters together, or none of them; an unknown one is refused by name."""
        wanted = [parameter.name for parameter in parameter_list]
        strangers = [name for name in wanted if not self.has_parameter(name)]
        if strangers:
            known = self.list_parameters([], 0).names
            reason = unknown("parameter", strangers[0], known)
            return SetParametersResult(successful=False, reason=reason)
        return super().set_parameters_atomically(parameter_list)

    def _check_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        """Refuse all changes if one of them cannot be made."""
        computation = self._computation()
        reason = refusal(self, changes, self._overrides, computation, self._description)
        return SetParametersResult(successful=reason is None, reason=reason or "")

    def _follow_parameters(self, changes: list[Parameter]) -> None:
        names = {change.name for change in changes}
        self._given |= names
        if "contacts.names" in names:
            parameters.declare_contacts(self)
        configuration = self._configuration
        if configuration is None:
            if self._autostart and DESCRIPTION in names:
                self._start_soon()
            return
        if names & OPERATION_PARAMETERS.keys():
            configuration.set_operation(Operation.from_parameters(parameters.values(self)))
        if names & {DESCRIPTION, ALGORITHM}:
            self._follow(names)


def refuse_impossible_changes(node: LifecycleNode) -> None:
    """Answer requests for transitions that the present state lacks; say which ones it has.

    rclpy raises where the executor spins, so that whoever asked waits for ever.
    """
    service = node._service_change_state
    change = service.callback
    warn = Throttle(LoopLog(node.get_logger()).warning)

    def answer(request: Any, response: Any) -> Any:
        machine = node._state_machine
        possible = {number: label for number, label, *_ in machine.available_transitions}
        wanted = request.transition
        # A label goes before the number, as in rclpy.
        known = wanted.label in possible.values() if wanted.label else wanted.id in possible
        if known:
            return change(request, response)
        warn(
            "transition",
            f"refused the transition {wanted.label[:SAID] or wanted.id!r}: "
            f"in the state {machine.current_state[1]!r} there are: {', '.join(possible.values())}",
        )
        response.success = False
        return response

    service.callback = answer
