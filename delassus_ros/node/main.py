"""Runs the node in a process of its own: executors, and the loop until it is time to stop."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node

from delassus_ros.errors import DelassusError
from delassus_ros.node.delassus_node import DelassusNode, EventlessNode
from delassus_ros.node.system.logs import Throttle
from delassus_ros.ros_program import run_program
from delassus_ros.stopping import StopRequest

_HELP = """\
usage: delassus_node [--ros-args ...]

Publishes the Delassus matrix G = J inv(M) J^T of a robot for each of its joint states.

subscribes  joint_states       sensor_msgs/JointState
            active_contacts    delassus_msgs/ActiveContacts (latched), or with contacts.source
                               "force" nothing: contacts are told by the forces at them
            contact_placements delassus_msgs/ContactPlacements: of those that move on their links
            robot_description  std_msgs/String (latched), unless given as a parameter
            odometry or imu    nav_msgs/Odometry, sensor_msgs/Imu: of a floating base, with axes
                               "world", outputs of motion, or contacts by force
            joint_torques      sensor_msgs/JointState: with torques "topic"
publishes   ~/delassus         delassus_msgs/DelassusMatrix
            ~/layout           delassus_msgs/Layout (latched)
            ~/dynamics         delassus_msgs/ContactDynamics: what outputs names besides G
            ~/contacts         delassus_msgs/EstimatedContacts: with contacts.source "force"
            ~/summary          delassus_msgs/Summary: its numbers, for plotters
            /diagnostics       diagnostic_msgs/DiagnosticArray
answers     ~/compute          delassus_msgs/Compute: the matrix at other joint positions
            ~/list_algorithms  delassus_msgs/ListAlgorithms

It is a lifecycle node; the parameter autostart configures and activates it by itself.
config/quadruped.yaml explains every parameter; of a running node,
'ros2 param describe delassus_node <parameter>' does.

example     delassus_node --ros-args --params-file config/quadruped.yaml -p algorithm:=dense
"""


InvalidHandle = rclpy_implementation.InvalidHandle


def make_executor(node: Node) -> Executor:
    """Return the events executor, or, where rclpy has none, one that always works."""
    try:
        from rclpy.experimental.events_executor import EventsExecutor
    except ImportError:
        node.get_logger().warning(
            "this rclpy has no events executor; SingleThreadedExecutor is used, with more latency"
        )
        return SingleThreadedExecutor(context=node.context)
    return EventsExecutor(context=node.context)


@contextmanager
def executing(nodes: Sequence[Node]) -> Iterator[Executor]:
    """Have an executor with some nodes of one context while the block runs; then destroy them."""
    executor = make_executor(nodes[0])
    try:
        for node in nodes:
            executor.add_node(node)
        yield executor
    finally:
        # In this order: an events executor that is destroyed with a node still in it aborts.
        executor.shutdown()
        for node in nodes:
            node.destroy_node()


def spin(nodes: Sequence[Node], stopping: Callable[[], bool]) -> None:
    """Run nodes in the calling thread until it is time to stop; then destroy them.

    Those of this package start by themselves, where their parameter ``autostart`` says so.
    A fault in a callback is logged, and ends neither the loop nor a node.

    Parameters
    ----------
    nodes : at least one, of one context; of any kind.
    stopping : returns whether it is time; asked several times per second. The loop also ends with
        the context.
    """
    log = nodes[0].get_logger()
    say = Throttle(lambda text: log.error(text))
    with executing(nodes) as executor:
        for node in nodes:
            if isinstance(node, EventlessNode):
                node.stopping = stopping
                node.start()
        # Not spin(), which would not look at the request.
        while nodes[0].context.ok() and not stopping():
            try:
                executor.spin_once(timeout_sec=0.25)
            except InvalidHandle:
                # A request or timer that was in the queue when a transition destroyed its end.
                log.debug("an event of something destroyed is left out")
            except Exception:
                # In a callback of which nobody else takes care: diagnostics, say, or parameters.
                say("fault", f"a fault of this program, which goes on:\n{traceback.format_exc()}")


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until it is told to stop; return the exit status."""
    return run_program("delassus_node", _made, _run, args, _HELP)


def _made() -> DelassusNode:
    if not hasattr(Node, "add_post_set_parameters_callback"):
        raise DelassusError("this rclpy is too old; ROS 2 Jazzy or newer is needed")
    return DelassusNode()


def _run(node: DelassusNode, stopping: Callable[[], bool]) -> int:
    spin([node], stopping)
    return 0


if __name__ == "__main__":
    with StopRequest(last=True):
        sys.exit(main())
