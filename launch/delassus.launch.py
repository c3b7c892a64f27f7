"""Start delassus_node for a robot.

Usage: ros2 launch delassus_ros delassus.launch.py params_file:=... robot_description_file:=...
"""

from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare


def generate_launch_description() -> LaunchDescription:
    """Declare the arguments, and make the node of their values."""
    quadruped = PathJoinSubstitution(
        [FindPackageShare("delassus_ros"), "config", "quadruped.yaml"]
    )
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "params_file",
                default_value=quadruped,
                description="Parameters of the node: base, axes, contacts; see config/.",
            ),
            DeclareLaunchArgument(
                "robot_description_file",
                default_value="",
                description="URDF or xacro file; if empty, the node takes the description "
                "from the topic robot_description.",
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="Namespace of the node."
            ),
            DeclareLaunchArgument(
                "autostart",
                default_value="true",
                choices=["true", "false"],
                description="Configure and activate by itself; false where a lifecycle manager "
                "does this.",
            ),
            DeclareLaunchArgument(
                "algorithm",
                default_value="",
                description="Algorithm; if empty, that of the parameter file.",
            ),
            DeclareLaunchArgument(
                "log_level",
                default_value="info",
                choices=["debug", "info", "warn", "error", "fatal"],
                description="Least severity of what the node logs.",
            ),
            OpaqueFunction(function=_node),
        ]
    )


def _node(context) -> list[Node]:
    """Return the node, once the values of the arguments are known."""

    def value(name: str) -> str:
        return LaunchConfiguration(name).perform(context)

    # Later parameters win over those of the file.
    given = {"autostart": value("autostart") == "true"}
    if value("algorithm"):
        given["algorithm"] = value("algorithm")
    if value("robot_description_file"):
        urdf = _urdf(Path(value("robot_description_file")))
        # As a string: launch would otherwise try to read the text as YAML.
        given["robot_description"] = ParameterValue(urdf, value_type=str)
    return [
        Node(
            package="delassus_ros",
            executable="delassus_node",
            name="delassus_node",
            namespace=value("namespace"),
            parameters=[value("params_file"), given],
            ros_arguments=["--log-level", value("log_level")],
            output="screen",
        )
    ]


def _urdf(file: Path) -> str:
    """Return the URDF text of a file, after xacro if it is one."""
    if not file.is_file():
        raise RuntimeError(f"robot_description_file: there is no file {file}")
    if file.suffix != ".xacro":
        return file.read_text(encoding="utf-8")
    try:
        import xacro
    except ImportError as error:
        raise RuntimeError(
            f"robot_description_file {file} needs xacro, which is not installed "
            "(apt install ros-$ROS_DISTRO-xacro); or give the URDF itself"
        ) from error
    return xacro.process_file(str(file)).toxml()
