"""Start delassus_node twice, with two algorithms on the same inputs, and compare the matrices.

Usage: ros2 launch delassus_ros compare.launch.py first:=pv_osimr second:=efpa params_file:=...
       ros2 launch delassus_ros compare.launch.py robot:=quadruped      needs no robot

The node delassus_compare logs the agreement once a second, publishes it on /diagnostics, and the
relative errors of the pairs of matrices on delassus_compare/relative_error.
"""

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    GroupAction,
    IncludeLaunchDescription,
    OpaqueFunction,
    Shutdown,
)
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare

_SHARE = FindPackageShare("delassus_ros")
_SIDES = ("first", "second")
_PASSED_ON = ("robot_description_file", "xacro_arguments", "robot_description_topic")


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments, and a function that makes the nodes from their values."""
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "first",
                default_value="",
                description="Algorithm of the first node; if empty, the algorithm of the "
                "parameter file.",
            ),
            DeclareLaunchArgument(
                "second",
                default_value="ltl",
                description="Algorithm of the second node; 'delassus list' shows the choices. "
                "The default supports every robot, also with closed loops.",
            ),
            DeclareLaunchArgument(
                "robot",
                default_value="",
                choices=["", "quadruped", "geared"],
                description="Simulated demo robot; if empty, another program publishes joint "
                "states.",
            ),
            DeclareLaunchArgument(
                "params_file",
                default_value="",
                description="Parameters of both nodes, under /**; if empty, those of the robot, "
                "else of the quadruped. Both nodes start by themselves, also with autostart "
                "false.",
            ),
            DeclareLaunchArgument(
                "robot_description_file",
                default_value="",
                description="URDF or xacro file; if empty, the description comes from the topic.",
            ),
            DeclareLaunchArgument(
                "xacro_arguments",
                default_value="",
                description="Arguments of the xacro file: 'name:=value name:=value'.",
            ),
            DeclareLaunchArgument(
                "robot_description_topic",
                default_value="robot_description",
                description="Topic of the robot description, used if there is no file.",
            ),
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="Namespace of all nodes and of their topics.",
            ),
            DeclareLaunchArgument(
                "tolerance",
                default_value="1e-9",
                description="Largest relative error that counts as agreement, from 0 to 1.",
            ),
            OpaqueFunction(function=_nodes),
        ]
    )


def _nodes(context) -> list:
    """Return the nodes for the values of the arguments."""

    def value(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    tolerance = _tolerance(value("tolerance"))
    actions = []
    config = PathJoinSubstitution([_SHARE, "config", f"{value('robot') or 'quadruped'}.yaml"])
    source = PathJoinSubstitution([_SHARE, "launch", "delassus.launch.py"])
    for side in _SIDES:
        arguments = {
            "name": f"delassus_{side}",
            "namespace": value("namespace"),
            "algorithm": value(side),
            # With autostart: no lifecycle manager knows the names of these nodes.
            "autostart": "true",
            "params_file": value("params_file") or config,
            # Arguments of this file reach the included one, which means another robot by it.
            "robot": "",
            **{name: value(name) for name in _PASSED_ON},
        }
        if value("robot"):
            # The simulator publishes no /clock.
            arguments["use_sim_time"] = "false"
        include = IncludeLaunchDescription(
            PythonLaunchDescriptionSource(source), launch_arguments=arguments.items()
        )
        # In separate scopes: the two nodes do not share arguments.
        actions.append(GroupAction([include]))
    # After the two nodes: a node that was started before one of their files is refused would go
    # on.
    if value("robot"):
        actions.append(
            Node(
                package="delassus_ros",
                executable="delassus_simulator",
                name="simulator",
                namespace=value("namespace"),
                parameters=[{"robot": value("robot"), "reference": False}],
                output="screen",
                on_exit=Shutdown(reason="the simulator has ended"),
            )
        )
    actions.append(
        Node(
            package="delassus_ros",
            executable="delassus_compare",
            name="delassus_compare",
            namespace=value("namespace"),
            parameters=[{"tolerance": tolerance}],
            remappings=[(side, f"delassus_{side}/delassus") for side in _SIDES],
            output="screen",
            on_exit=Shutdown(reason="the comparison has ended"),
        )
    )
    return actions


def _tolerance(text: str) -> float:
    """Return the value of the argument as a number."""
    try:
        tolerance = float(text)
    except ValueError:
        tolerance = -1.0
    if not 0.0 <= tolerance <= 1.0:
        raise RuntimeError(f"tolerance: {text!r} is no number from 0 to 1")
    return tolerance
