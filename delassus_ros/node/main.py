"""Runs the node in a process of its own."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import rclpy
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import ok, try_shutdown

from delassus_ros.errors import DelassusError
from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.node.throttle import Throttle
from delassus_ros.stopping import StopRequest

RCLError = rclpy_implementation.RCLError
InvalidHandle = rclpy_implementation.InvalidHandle

_HELP = """\
usage: delassus_node [--ros-args ...]

Publishes the Delassus matrix G = J inv(M) J^T of a robot for each of its joint states.

subscribes  joint_states       sensor_msgs/JointState
            active_contacts    delassus_msgs/ActiveContacts (latched)
            robot_description  std_msgs/String (latched), unless given as a parameter
            odometry or imu    nav_msgs/Odometry, sensor_msgs/Imu: with axes "world" and a
                               floating base
publishes   ~/delassus         delassus_msgs/DelassusMatrix
            ~/layout           delassus_msgs/Layout (latched)
            ~/summary          delassus_msgs/Summary: its numbers, for plotters
            /diagnostics       diagnostic_msgs/DiagnosticArray
answers     ~/compute          delassus_msgs/Compute: the matrix at other joint positions
            ~/list_algorithms  delassus_msgs/ListAlgorithms

It is a lifecycle node; the parameter autostart configures and activates it by itself.
config/quadruped.yaml explains every parameter; of a running node,
'ros2 param describe delassus_node <parameter>' does.

example     delassus_node --ros-args --params-file config/quadruped.yaml -p algorithm:=dense
"""


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until it is told to stop; return the exit status."""
    arguments = sys.argv if args is None else list(args)
    if not {"-h", "--help"}.isdisjoint(arguments):
        print(_HELP, end="")
        return 0
    if not hasattr(Node, "add_post_set_parameters_callback"):
        return _fail("this rclpy is too old; ROS 2 Jazzy or newer is needed")
    with StopRequest() as stop:
        try:
            # What rclpy does on a signal would pull the context away from under the executor.
            rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
        except RuntimeError as error:
            # A parameter file or an argument that rcl cannot read.
            return _fail(str(error))
        try:
            node = DelassusNode()
        except (DelassusError, ParameterException, NameValidationException, RCLError) as error:
            # RCLError: the middleware refuses, as it has not the keys that ROS_SECURITY_* asks
            # for, say.
            try_shutdown()
            return _fail(str(error))
        try:
            _run(node, stop)
        finally:
            try_shutdown()
    return 0


def _fail(reason: str) -> int:
    """Say in one line why there is no node; return the exit status."""
    print(f"delassus_node: {' '.join(reason.split())}", file=sys.stderr)
    return 1


def make_executor(node: Node) -> Executor:
    """Return the events executor, or, where rclpy has none, one that always works."""
    try:
        from rclpy.experimental.events_executor import EventsExecutor
    except ImportError:
        node.get_logger().warning(
            "this rclpy has no events executor; SingleThreadedExecutor is used, with more latency"
        )
        return SingleThreadedExecutor()
    return EventsExecutor()


def _run(node: DelassusNode, stop: StopRequest) -> None:
    """Run the node until it is told to stop; then destroy it."""
    node.stopping = lambda: stop.requested
    say = Throttle(lambda text: node.get_logger().error(text))
    executor = make_executor(node)
    try:
        executor.add_node(node)
        node.start()
        # Not spin(), which would not look at the request.
        while ok() and not stop.requested:
            try:
                executor.spin_once(timeout_sec=0.25)
            except InvalidHandle:
                # A request or timer that was in the queue when a transition destroyed its end.
                node.get_logger().debug("an event of something destroyed is left out")
            except Exception:
                # In a callback of which nobody else takes care: diagnostics, say, or parameters.
                say("fault", f"a fault of this program, which goes on:\n{traceback.format_exc()}")
    finally:
        # In this order: an events executor that is destroyed with a node still in it aborts.
        executor.shutdown()
        node.destroy_node()


if __name__ == "__main__":
    sys.exit(main())
