"""Start the simulated quadruped, delassus_node and the monitor that compares them.

Usage: ros2 launch delassus_ros demo.launch.py
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, Shutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import Node
from launch_ros.substitutions import FindPackageShare


def generate_launch_description() -> LaunchDescription:
    """Return the three nodes; all end when one of simulator and monitor does."""
    share = FindPackageShare("delassus_ros")
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "algorithm", default_value="pv_osimr", description="Algorithm of the node."
            ),
            Node(
                package="delassus_ros",
                executable="delassus_simulator",
                name="simulator",
                output="screen",
                on_exit=Shutdown(reason="the simulator has ended"),
            ),
            IncludeLaunchDescription(
                PythonLaunchDescriptionSource(
                    PathJoinSubstitution([share, "launch", "delassus.launch.py"])
                ),
                launch_arguments={
                    "params_file": PathJoinSubstitution([share, "config", "quadruped.yaml"]),
                    "algorithm": LaunchConfiguration("algorithm"),
                }.items(),
            ),
            Node(
                package="delassus_ros",
                executable="delassus_monitor",
                name="delassus_monitor",
                remappings=[
                    ("delassus", "delassus_node/delassus"),
                    ("reference", "simulator/reference"),
                ],
                output="screen",
                emulate_tty=True,
                on_exit=Shutdown(reason="the monitor has ended"),
            ),
        ]
    )
