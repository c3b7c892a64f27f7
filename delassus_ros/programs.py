"""Where the programs on the command line begin: before what they need is imported."""

from __future__ import annotations

import signal
import sys
from importlib import import_module

from delassus_ros.sim.needs import without

ROS = ("rclpy", "delassus_msgs", "delassus_msgs_py")


def delassus() -> int:
    """Run ``delassus``."""
    try:
        return _main("delassus_ros.cli.main")
    except KeyboardInterrupt:
        # At any time, while modules are imported too; the status that shells give it.
        return 128 + signal.SIGINT


def compare() -> int:
    """Run ``delassus_compare``."""
    return _node("delassus_compare", "delassus_ros.sim.compare_node")


def monitor() -> int:
    """Run ``delassus_monitor``."""
    return _node("delassus_monitor", "delassus_ros.sim.monitor_node")


def node() -> int:
    """Run ``delassus_node``."""
    return _node("delassus_node", "delassus_ros.node.main")


def simulator() -> int:
    """Run ``delassus_simulator``."""
    return _node("delassus_simulator", "delassus_ros.sim.simulator_node")


def _node(program: str, module: str) -> int:
    fault = without(program, *ROS)
    if fault is not None:
        print(fault, file=sys.stderr)
        return 1
    return _main(module)


def _main(module: str) -> int:
    status: int = import_module(module).main()
    return status
