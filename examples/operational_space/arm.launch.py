"""Start the arm that wipes a surface: plant, delassus_node and operational-space controller.

Usage: ros2 launch examples/operational_space/arm.launch.py surface:=curved realtime:=true
"""

import sys
from pathlib import Path

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument
from launch.substitutions import LaunchConfiguration, PythonExpression

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from control.launching import scene  # noqa: E402

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
    argument = DeclareLaunchArgument(
        "surface",
        default_value="flat",
        choices=["flat", "curved"],
        description="Surface that is wiped: a plane, or a cylinder.",
    )
    surface = LaunchConfiguration("surface")
    robot = PythonExpression(["'arm' if '", surface, "' == 'flat' else 'arm_on_cylinder'"])
    plant = {"robot": robot, **DRIVES}
    return scene(HERE, [argument], plant, ["-p", ["surface:=", surface]])
