"""Start the walking quadruped: plant, delassus_node and whole-body controller.

Usage: ros2 launch examples/whole_body_control/walk.launch.py push_every:=5.0 realtime:=true
"""

import sys
from pathlib import Path

from launch import LaunchDescription

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from control.launching import pushes, scene  # noqa: E402


def generate_launch_description() -> LaunchDescription:
    """Return the three nodes; all end when one does."""
    argument, push_every = pushes()
    return scene(HERE, [argument], {"push_every": push_every})
