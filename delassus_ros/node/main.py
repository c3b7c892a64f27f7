"""Runs the node in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import rclpy
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.utilities import ok, try_shutdown

from delassus_ros.node.delassus_node import DelassusNode

_HELP = """\
usage: delassus_node [--ros-args ...]

Publishes the Delassus matrix G = J inv(M) J^T of a robot for each of its joint states.

subscribes  joint_states       sensor_msgs/JointState
            active_contacts    delassus_msgs/ActiveContacts (latched)
            robot_description  std_msgs/String (latched), unless given as a parameter
publishes   ~/delassus         delassus_msgs/DelassusMatrix
            ~/layout           delassus_msgs/Layout (latched)

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
    try:
        rclpy.init(args=arguments)
    except RuntimeError as error:
        # A parameter file or an argument that rcl cannot read.
        return _fail(str(error))
    try:
        _run(DelassusNode())
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0
    except (ParameterException, NameValidationException) as error:
        return _fail(str(error))
    except RuntimeError:
        # A signal shuts ROS down also in the middle of a callback, which then may fail in many
        # ways. All other errors are real ones.
        if ok():
            raise
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


def _run(node: DelassusNode) -> None:
    """Run the node until ROS is shut down; then destroy it."""
    executor = make_executor(node)
    try:
        executor.add_node(node)
        node.start()
        # Not spin(): that of the events executor does not return when the process is told to
        # stop.
        while ok():
            executor.spin_once(timeout_sec=0.25)
    finally:
        # In this order: an events executor that is destroyed with a node still in it aborts.
        executor.shutdown()
        node.destroy_node()


if __name__ == "__main__":
    sys.exit(main())
