"""Start the balancing humanoid: plant, delassus_node and controller.

Usage: ros2 launch examples/balance/balance.launch.py push_every:=5.0 realtime:=true
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
    plant = {"robot": "humanoid", "push_every": push_every, "push_force": 0.05}
    return scene(HERE, [argument], plant)
