"""Start a simulated robot, delassus_node and the monitor that compares them.

Usage: ros2 launch delassus_ros demo.launch.py robot:=geared
"""

from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    GroupAction,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    Shutdown,
)
from launch.event_handlers import OnProcessIO
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare


def generate_launch_description() -> LaunchDescription:
    """Return the three nodes; all end when the simulator or the monitor ends."""
    share = FindPackageShare("delassus_ros")
    robot = LaunchConfiguration("robot")
    namespace = LaunchConfiguration("namespace")
    include = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(
            PathJoinSubstitution([share, "launch", "delassus.launch.py"])
        ),
        # All arguments of the demo: otherwise those of an including file would count.
        launch_arguments={
            "params_file": [PathJoinSubstitution([share, "config", robot]), ".yaml"],
            "robot_description_file": "",
            "xacro_arguments": "",
            "robot_description_topic": "robot_description",
            "name": "delassus_node",
            "namespace": namespace,
            "algorithm": LaunchConfiguration("algorithm"),
            "autostart": "true",
            "use_sim_time": "false",
            "log_level": LaunchConfiguration("log_level"),
            "enclave": "/delassus/delassus_node",
            # Last, as params_file has the robot of the demo.
            "robot": "",
        }.items(),
    )
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "robot",
                default_value="quadruped",
                choices=["quadruped", "geared"],
                description="Robot: a quadruped, or a quadruped with geared joints and a four-bar "
                "on its trunk (geared).",
            ),
            DeclareLaunchArgument(
                "algorithm",
                default_value="",
                description="Algorithm of the node; if empty, that of the robot's parameters.",
            ),
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="Namespace of all nodes and of their topics.",
            ),
            DeclareLaunchArgument(
                "log_level",
                default_value="info",
                choices=["debug", "info", "warn", "error", "fatal"],
                description="Least severity of the log lines of delassus_node.",
            ),
            # In a separate scope: the arguments of delassus.launch.py stay apart from those of a
            # file that includes the demo. In a function: --show-args does not list them.
            # Before the other nodes: nodes that were started before an argument is refused would
            # go on.
            OpaqueFunction(function=lambda _: [GroupAction([include])]),
            RegisterEventHandler(OnProcessIO(on_stdout=_end, on_stderr=_end)),
            Node(
                package="delassus_ros",
                executable="delassus_simulator",
                name="simulator",
                namespace=namespace,
                parameters=[{"robot": robot}],
                ros_arguments=["--enclave", "/delassus/simulator"],
                output="screen",
                on_exit=Shutdown(reason="the simulator has ended"),
            ),
            Node(
                package="delassus_ros",
                executable="delassus_monitor",
                name="delassus_monitor",
                namespace=namespace,
                remappings=[
                    ("delassus", "delassus_node/delassus"),
                    ("reference", "simulator/reference"),
                ],
                ros_arguments=["--enclave", "/delassus/delassus_monitor"],
                output="screen",
                emulate_tty=True,
                on_exit=Shutdown(reason="the monitor has ended"),
            ),
        ]
    )


def _end(event) -> None:
    """End with the error of a node that cannot be configured: the live view would hide it."""
    for line in event.text.decode(errors="replace").splitlines():
        if "cannot configure: " in line:
            raise RuntimeError(line)
