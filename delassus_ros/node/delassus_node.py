"""The lifecycle node: its states, its parameters and its robot description."""

from __future__ import annotations

import time
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rclpy.lifecycle import (
    LifecycleState,
    TransitionCallbackReturn,
)
from rclpy.parameter import Parameter

from delassus.errors import unknown
from delassus_ros.node.computation import Computation
from delassus_ros.node.configuration import Configuration
from delassus_ros.node.declared_parameters import (
    declare_contacts,
    declare_parameters,
    refuse_misspelt_contacts,
    suited,
    values_of,
)
from delassus_ros.node.parameters import OPERATION_PARAMETERS, Operation, Settings
from delassus_ros.node.refusals import ALGORITHM, DESCRIPTION, refusal
from delassus_ros.node.services import ListService
from delassus_ros.ros.lifecycle_program import LifecycleProgram
from delassus_ros.ros.logs import LogBridge
from delassus_ros.ros.parameters import overrides_of
from delassus_ros.ros.rclpy_nodes import logged
from delassus_ros.ros.timers import STEADY, now_of

_WORLD_FRAME = "orientation.world_frame"


class DelassusNode(LifecycleProgram):
    """Publishes the Delassus matrix of every joint state while active.

    Configuring reads the parameters and the robot description and compiles the kernel;
    activating subscribes to joint states and contacts.

    Parameters
    ----------
    **options : further arguments of :class:`rclpy.node.Node`.

    Raises
    ------
    rclpy.exceptions.ParameterException
        If a parameter has a value of the wrong type or out of range.
    InputError
        If a QoS override of the robot description has a value that the policy cannot have, or a
        parameter is below its lower bound.
    """

    def __init__(self, **options: Any) -> None:
        self._configuration: Configuration | None = None
        self._starter: Any = None
        self._log_bridge: LogBridge | None = None
        super().__init__("delassus_node", **options)
        self.add_pre_set_parameters_callback(suited)
        self.add_on_set_parameters_callback(self._check_parameters)
        self.add_post_set_parameters_callback(self._follow_parameters)

    def declare(self) -> None:
        """Declare all parameters, including those of the listed contacts."""
        self._log_bridge = LogBridge(self._log)
        self._log_bridge.install()
        # Parameters that were set, even if to their defaults.
        self._given = set(overrides_of(self))
        self._overrides = declare_parameters(self)
        self._list = ListService(self, self._computation)

    def _start_soon(self) -> None:
        """Start by a timer: a client that sets one parameter may set more right after it."""
        if self._starter is None:
            self._starter = self.create_timer(0.0, self._start_now, clock=STEADY)

    def _start_now(self) -> None:
        starter, self._starter = self._starter, None
        if starter is not None:
            self.destroy_timer(starter)
            self.start()

    def destroy_node(self) -> None:
        """Release all resources, including the process of a running build."""
        if self._log_bridge is not None:
            self._log_bridge.remove()
        super().destroy_node()

    # Transitions.

    def activate(self) -> None:
        """Subscribe, and publish from now on."""
        self._configured().activate()

    def deactivate(self) -> str:
        """Stop publishing; the kernel stays."""
        configuration = self._configured()
        configuration.deactivate()
        tick = configuration.computation.tick
        return (
            f"published {tick.published} matrices and {tick.refused} times INVALID; "
            f"{tick.superseded} joint states were superseded by newer ones"
        )

    def unconfigure(self) -> None:
        """Forget the robot and its kernels."""
        configuration, self._configuration = self._configuration, None
        if configuration is not None:
            configuration.close()

    @logged
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Release all resources; the node cannot be configured again."""
        self._list.close()
        return super().on_shutdown(state)

    def configure(self) -> None:
        """Read the parameters and the robot, and compile the kernel."""
        start = time.perf_counter()
        values = values_of(self)
        refuse_misspelt_contacts(overrides_of(self), values["contacts.names"])
        settings = Settings.from_parameters(values)
        operation = Operation.from_parameters(values)
        description = self.wait_for_description()
        computation = Computation.make(
            settings, description, operation.limits, now_of(self), self._warn
        )
        self.get_logger().info(
            f"{computation.summary}, ready in {time.perf_counter() - start:.2f} s"
        )
        if "imu" in computation.tick.topics:
            self._warn_of_world_frame(settings)
        self._configuration = Configuration(
            self, self._warn, self._mismatches, operation, computation
        )

    def _warn_of_world_frame(self, settings: Settings) -> None:
        """Warn if the reference frame of an inertial sensor is not set: its messages lack it."""
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

    def on_description(self) -> None:
        """Start, or change to another description."""
        if self._autostart:
            self.start()
        elif self._configuration is not None:
            self._configuration.change.follow({DESCRIPTION})

    # Parameters.

    def set_parameters_atomically(self, parameter_list: list[Parameter]) -> SetParametersResult:
        """Set all parameters or none; the answer names an unknown parameter."""
        wanted = [parameter.name for parameter in parameter_list]
        undeclared = [name for name in wanted if not self.has_parameter(name)]
        if undeclared:
            known = self.list_parameters([], 0).names
            reason = unknown("parameter", undeclared[0], known)
            return SetParametersResult(successful=False, reason=reason)
        return super().set_parameters_atomically(parameter_list)

    def _check_parameters(self, changes: list[Parameter]) -> SetParametersResult:
        """Refuse all changes if one of them is impossible."""
        computation = self._computation()
        reason = refusal(self, changes, self._overrides, computation, self._description)
        return SetParametersResult(successful=reason is None, reason=reason or "")

    def _follow_parameters(self, changes: list[Parameter]) -> None:
        names = {change.name for change in changes}
        self._given |= names
        if "contacts.names" in names:
            declare_contacts(self)
        configuration = self._configuration
        if configuration is None:
            if self._autostart and DESCRIPTION in names:
                self._start_soon()
            return
        if names & OPERATION_PARAMETERS.keys():
            configuration.set_operation(Operation.from_parameters(values_of(self)))
        if names & {DESCRIPTION, ALGORITHM}:
            configuration.change.follow(names)
