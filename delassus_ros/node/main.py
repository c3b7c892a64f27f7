"""Runs the node in a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from rclpy.node import Node

from delassus_ros.errors import DelassusError
from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.node.program import run_program
from delassus_ros.node.spinning import spin
from delassus_ros.stopping import StopRequest

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
