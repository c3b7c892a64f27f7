"""Start the arm that wipes a surface: plant, delassus_node and operational-space controller.

Usage: ros2 launch examples/operational_space/arm.launch.py surface:=curved
"""

import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, Shutdown
from launch.substitutions import LaunchConfiguration, PythonExpression
from launch_ros.actions import Node

HERE = Path(__file__).resolve().parent
# Matrices of some rows are no work for threads, which would only take the processors away.
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1"}
# Drives hold the arm where it is while nothing is commanded, as brakes do.
DRIVES = {
    "armature": 0.05,
    "friction": 0.2,
    "on_silence": "hold",
    "holding": 3000.0,
    "braking": 60.0,
}


def generate_launch_description() -> LaunchDescription:
    """Return the three nodes; all end when one does."""
    surface = LaunchConfiguration("surface")
    robot = PythonExpression(["'arm' if '", surface, "' == 'flat' else 'arm_on_cylinder'"])
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "surface",
                default_value="flat",
                choices=["flat", "curved"],
                description="What is wiped: a plane, or a cylinder.",
            ),
            Node(
                package="delassus_ros",
                executable="delassus_plant",
                parameters=[{"robot": robot, **DRIVES}],
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
                cmd=[
                    sys.executable, "-m", "operational_space.node", "--ros-args",
                    "-p", ["surface:=", surface],
                ],
                cwd=str(HERE.parent),
                additional_env=ENVIRONMENT,
                on_exit=Shutdown(),
                output="screen",
            ),
        ]
    )  # fmt: skip
