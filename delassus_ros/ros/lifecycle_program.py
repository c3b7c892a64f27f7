"""The life cycle of nodes that need a robot description."""

from __future__ import annotations

from typing import Any

from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn

from delassus.errors import DelassusError, RobotError
from delassus_ros.ros.description_topic import DescriptionTopic
from delassus_ros.ros.logs import LoopLog, Throttle
from delassus_ros.ros.qos import Mismatches, unused_overrides
from delassus_ros.ros.rclpy_nodes import (
    EventlessNode,
    logged,
    refuse_impossible_changes,
)

_DESCRIPTION_LIMIT_S = 5.0
"""Longest wait of the transition ``configure`` for the robot description [s]."""


class LifecycleProgram(EventlessNode):
    """A lifecycle node that configures itself, with autostart, once it has a robot description.

    A subclass has :meth:`declare` for its parameters, :meth:`configure`, :meth:`activate`,
    :meth:`deactivate` and :meth:`unconfigure` for its transitions, and :meth:`on_description`.

    Raises
    ------
    rclpy.exceptions.ParameterException
        If a parameter has a value of the wrong type or out of range.
    InputError
        If a QoS override of the robot description has a value that the policy cannot have.
    """

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        refuse_impossible_changes(self)
        self.stopping = lambda: not self.context.ok()
        self._log = LoopLog(self.get_logger())
        self._warn, self._fail = Throttle(self._log.warning), Throttle(self._log.error)
        try:
            self.declare()
            self._autostart: bool = self.get_parameter("autostart").value
            self._description = DescriptionTopic(
                self, self.on_description, lambda: self.stopping()
            )
            self._mismatches = Mismatches(self, self._warn)
        except BaseException:
            # The caller gets no node to destroy.
            self.destroy_node()
            raise

    # Methods of subclasses.

    def declare(self) -> None:
        """Declare the parameters, ``autostart`` and ``robot_description`` among them."""
        raise NotImplementedError

    def configure(self) -> None:
        """Prepare for the parameters; raise a DelassusError where that is impossible."""
        raise NotImplementedError

    def activate(self) -> None:
        """Begin to publish; raise a DelassusError where that is impossible."""
        raise NotImplementedError

    def deactivate(self) -> str:
        """Stop publishing; return what was published, in words."""
        raise NotImplementedError

    def unconfigure(self) -> None:
        """Release all that :meth:`configure` and :meth:`activate` have acquired so far."""
        raise NotImplementedError

    def on_description(self) -> None:
        """Follow a new description of the topic."""
        raise NotImplementedError

    # Life cycle.

    @property
    def wanted_description(self) -> str:
        """Robot description of the parameter, else of the topic; empty without both."""
        text: str = self.get_parameter("robot_description").value or self._description.text
        return text

    def wait_for_description(self) -> str:
        """Return the wanted description; wait for the topic if it is missing.

        Raises
        ------
        RobotError
            If no description comes in time.
        """
        text = self.wanted_description or self._description.wait(_DESCRIPTION_LIMIT_S)
        if not text:
            topic = self._description.topic
            raise RobotError(
                f"no robot description: the parameter 'robot_description' is empty and nothing "
                f"came on {topic} within {_DESCRIPTION_LIMIT_S:g} s (publishers there: "
                f"{self.count_publishers(topic)})"
            )
        return text

    def start(self) -> None:
        """With autostart, configure and activate as soon as there is a robot description."""
        if not self._autostart:
            self.get_logger().info(
                "unconfigured, waiting for a lifecycle manager; "
                "autostart: true configures by itself"
            )
            return
        if not self.wanted_description:
            topic = self._description.topic
            self.get_logger().info(f"waiting for the robot description on {topic}")
        elif self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()

    def destroy_node(self) -> None:
        """Release all resources, including the process of a running build."""
        self.unconfigure()
        super().destroy_node()

    @logged
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the parameters and the robot, and compile."""
        try:
            self.configure()
        except DelassusError as error:
            text = f"cannot configure: {error}"
            if self._autostart:
                # With autostart, the node tries again with every new description.
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
        try:
            self.activate()
        except DelassusError as error:
            self.deactivate()
            super().on_deactivate(state)
            self.get_logger().error(f"cannot activate: {error}")
            return TransitionCallbackReturn.FAILURE
        # All topics exist only now.
        for text in unused_overrides(self):
            self.get_logger().warning(f"{text}; it is ignored")
        return result

    @logged
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop publishing; compiled code stays."""
        self.get_logger().info(f"inactive: {self.deactivate()}")
        return super().on_deactivate(state)

    @logged
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Drop the robot; parameters and the description of the topic stay."""
        self.unconfigure()
        return super().on_cleanup(state)

    @logged
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release all resources; the node cannot be configured again."""
        self.unconfigure()
        self._autostart = False
        self._description.close()
        self._mismatches.close()
        return super().on_shutdown(state)

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Return to the state unconfigured."""
        self.unconfigure()
        return super().on_error(state)
