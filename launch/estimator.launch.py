"""Start delassus_estimator for a robot, or beside the simulated quadruped.

Usage: ros2 launch delassus_ros estimator.launch.py simulated:=true
       ros2 launch delassus_ros estimator.launch.py params_file:=... robot_description_file:=...

ros2 launch delassus_ros estimator.launch.py --show-args explains the arguments.
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from delassus_ros.sim.clock import SLACK_OF_ESTIMATES, USE_SIM_TIME, of_plant, realtime_argument


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments, and a function that makes the nodes from their values."""
    quadruped = PathJoinSubstitution(
        [FindPackageShare("delassus_ros"), "config", "estimator", "quadruped.yaml"]
    )
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "params_file",
                default_value=quadruped,
                description="Parameters of the node: measured and estimated quantities; see "
                "config/estimator.",
            ),
            DeclareLaunchArgument(
                "robot_description_file",
                default_value="",
                description="URDF; if empty, the node takes the description from the topic.",
            ),
            DeclareLaunchArgument(
                "name", default_value="delassus_estimator", description="Name of the node."
            ),
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="Namespace of the node and of its topics.",
            ),
            DeclareLaunchArgument(
                "simulated",
                default_value="false",
                choices=["true", "false"],
                description="Start a simulated quadruped as well, whose base is pushed at "
                "intervals.",
            ),
            DeclareLaunchArgument(**realtime_argument("estimate")),
            OpaqueFunction(function=_nodes),
        ]
    )


def _nodes(context) -> list[Node]:
    """Return the nodes for the values of the arguments."""

    def value(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    parameters = [value("params_file")]
    for name in ("params_file", "robot_description_file"):
        if value(name) and not Path(value(name)).is_file():
            raise RuntimeError(f"{name}: there is no file {value(name)}")
    if value("robot_description_file"):
        urdf = Path(value("robot_description_file")).read_text(encoding="utf-8")
        # As a string: launch would otherwise try to read the text as YAML.
        parameters.append({"robot_description": ParameterValue(urdf, value_type=str)})
    nodes = []
    if value("simulated") == "true":
        # Both nodes use the plant's clock.
        parameters.append(USE_SIM_TIME)
        clock = of_plant(value("realtime") == "true", SLACK_OF_ESTIMATES, "estimates")
        robot = {"rate": 1000, "push_every": 1.0, "velocity_noise": 0.02}
        nodes.append(
            Node(
                package="delassus_ros",
                executable="delassus_plant",
                namespace=value("namespace"),
                parameters=[{**robot, **clock}],
                remappings=[("delassus_estimator/estimate", f"{value('name')}/estimate")],
                on_exit=Shutdown(),
                output="screen",
            )
        )
    return [
        *nodes,
        Node(
            package="delassus_ros",
            executable="delassus_estimator",
            name=value("name"),
            namespace=value("namespace"),
            parameters=parameters,
            on_exit=Shutdown(),
            output="screen",
        ),
    ]
