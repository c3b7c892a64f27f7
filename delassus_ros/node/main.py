"""The program ``delassus_node``."""

from __future__ import annotations

from rclpy.node import Node

from delassus.errors import DelassusError
from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.ros.executor import executing, run_until_stopped, spin
from delassus_ros.ros.program import Program

__all__ = ["executing", "main", "spin"]

_HELP = """\
usage: delassus_node [--ros-args ...]

Publishes the Delassus matrix G = J inv(M) J^T of a robot for every joint state.

subscribes  joint_states       sensor_msgs/JointState
            active_contacts    delassus_msgs/ActiveContacts (latched), or with contacts.source
                               "force" nothing: active contacts are estimated from forces
            contact_schedule   delassus_msgs/ContactSchedule (latched): with contacts.source
                               "schedule" instead
            predicted_states   delassus_msgs/PredictedStates: a horizon, for ~/predicted_matrices
            contact_placements delassus_msgs/ContactPlacements: of contacts that move on links
            robot_description  std_msgs/String (latched), unless set as a parameter
            odometry or imu    nav_msgs/Odometry, sensor_msgs/Imu: of a floating base, with axes
                               "world", outputs of motion, or contacts by force
            joint_torques      sensor_msgs/JointState: with torques "topic"
publishes   ~/delassus         delassus_msgs/DelassusMatrix
            ~/layout           delassus_msgs/Layout (latched)
            ~/dynamics         delassus_msgs/ContactDynamics: the outputs besides G
            ~/contacts         delassus_msgs/EstimatedContacts: with contacts.source "force"
            ~/predicted_matrices delassus_msgs/PredictedMatrices: of predicted_states
            ~/summary          delassus_msgs/Summary: numbers of the matrix, for plotters
            /diagnostics       diagnostic_msgs/DiagnosticArray
answers     ~/compute          delassus_msgs/Compute: the matrix at other joint positions
            ~/compute_horizon  delassus_msgs/ComputeHorizon: those of many states at once
            ~/list_algorithms  delassus_msgs/ListAlgorithms

It is a lifecycle node; the parameter autostart configures and activates it.
config/quadruped.yaml explains all parameters; for a running node,
'ros2 param describe delassus_node <parameter>' prints the explanation.

example     delassus_node --ros-args --params-file config/quadruped.yaml -p algorithm:=dense
"""


def _made() -> DelassusNode:
    if not hasattr(Node, "add_post_set_parameters_callback"):
        raise DelassusError("this rclpy is too old; ROS 2 Jazzy or newer is needed")
    return DelassusNode()


main = Program("delassus_node", _made, run_until_stopped, _HELP)

if __name__ == "__main__":
    main.end_process()
