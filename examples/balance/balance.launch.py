"""Start the balancing humanoid: plant, delassus_node and controller.

Usage: ros2 launch examples/balance/balance.launch.py push_every:=5.0
"""

import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

HERE = Path(__file__).resolve().parent
# Matrices of some rows are no work for threads, which would only take the processors away.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}


def generate_launch_description() -> LaunchDescription:
    """Return the three nodes; all end when one does."""
    pushes = ParameterValue(LaunchConfiguration("push_every"), value_type=float)
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "push_every", default_value="0.0", description="Time between pushes [s]; 0: none."
            ),
            Node(
                package="delassus_ros",
                executable="delassus_plant",
                parameters=[{"robot": "humanoid", "push_every": pushes, "push_force": 0.05}],
                additional_env=ENVIRONMENT,
                on_exit=Shutdown(),
                output="screen",
            ),
            Node(
                package="delassus_ros",
                executable="delassus_node",
                parameters=[str(HERE / "node.yaml")],
                additional_env=ENVIRONMENT,
                on_exit=Shutdown(),
                output="screen",
            ),
            ExecuteProcess(
                cmd=[sys.executable, "-m", "balance.node"],
                cwd=str(HERE.parent),
                additional_env=ENVIRONMENT,
                on_exit=Shutdown(),
                output="screen",
            ),
        ]
    )
