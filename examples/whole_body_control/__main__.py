"""A quadruped walks on the node's matrices: plant, delassus_node, controller, and a verdict.

``make walk``, or ``python -m whole_body_control`` from the folder ``examples``.
"""

from __future__ import annotations

import argparse
import os
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from delassus_ros.node.main import executing
from delassus_ros.processes import Command, Programs
from delassus_ros.ros_program import ros
from delassus_ros.sim.demo import demo_environment
from delassus_ros.stopping import StopRequest

_HERE = Path(__file__).resolve().parent
_NEWEST = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)
_START_LIMIT = 60.0  # s until the first command
_LOWEST, _UPRIGHT = 0.15, 0.7
_RATE = 500.0
_EVERY = 10  # of so many odometries one is looked at
_STAMP = struct.Struct("<iI")


class Watcher(Node):
    """Notes how the robot stands and how often it is commanded."""

    def __init__(self) -> None:
        super().__init__("walk_watcher")
        self.heights: list[float] = []
        self.uprights: list[float] = []
        self.delays: list[float] = []
        self.way = np.zeros(3)
        self._skipped = 0
        self.create_subscription(Odometry, "odometry", self._on_base, _NEWEST, raw=True)
        self.create_subscription(JointState, "joint_commands", self._on_command, _NEWEST, raw=True)

    def _on_base(self, data: bytes) -> None:
        self._skipped += 1
        if self._skipped % _EVERY:
            return
        message = deserialize_message(data, Odometry)
        p, o = message.pose.pose.position, message.pose.pose.orientation
        self.way = np.array([p.x, p.y, p.z])
        if self.delays:
            self.heights.append(p.z)
            self.uprights.append(o.w**2 - o.x**2 - o.y**2 + o.z**2)

    def _on_command(self, data: bytes) -> None:
        # The stamp follows the encapsulation.
        sec, nanosec = _STAMP.unpack_from(data, 4)
        self.delays.append(1e-9 * (time.time_ns() - sec * 10**9 - nanosec))

    @property
    def fell(self) -> bool:
        """Whether the robot ever lay, or was far from upright."""
        heights, uprights = self.heights or [1.0], self.uprights or [1.0]
        return min(heights) < _LOWEST or min(uprights) < _UPRIGHT


def commands(plant: Sequence[str], node: Sequence[str]) -> list[Command]:
    """Return the three nodes, with further ROS arguments of plant and delassus_node."""

    def module(name: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", name, *arguments]

    parameters = ("--ros-args", "--params-file", str(_HERE / "node.yaml"))
    return [
        Command("plant", module("delassus_ros.sim.plant_node", "--ros-args", *plant)),
        Command("delassus_node", module("delassus_ros.node.main", *parameters, *node)),
        Command("controller", module("whole_body_control.node")),
    ]


def watch(seconds: float, children: Programs, stop: StopRequest) -> tuple[Watcher, list[str]]:
    """Watch for so long from the first command on; return what was seen, and what was wrong."""
    watcher, faults = Watcher(), []
    began, first, told = time.monotonic(), 0.0, 0.0
    with executing([watcher]) as executor:
        while not stop.requested:
            executor.spin_once(timeout_sec=0.1)
            now = time.monotonic()
            if watcher.delays and not first:
                first = told = now
            if children.dead():
                faults.append(f"{children.dead()[0].name} ended by itself")
                break
            if not first and now - began > _START_LIMIT:
                faults.append(f"no command within {_START_LIMIT:g} s")
                break
            if first and (now - first > seconds or watcher.fell):
                break
            if first and now - told >= 1.0:
                told = now
                print(_line(watcher, now - first), flush=True)
    return watcher, faults


def _line(watcher: Watcher, seconds: float) -> str:
    x, y, z = watcher.way
    recent = watcher.delays[-500:]
    return (
        f"{seconds:5.1f} s  at {x:+.2f}, {y:+.2f}, height {z:.3f} m; "
        f"{len(watcher.delays) / seconds:.0f} commands per second, "
        f"{1e3 * float(np.median(recent)):.2f} ms after their joint states"
    )


def verdict(watcher: Watcher, seconds: float) -> list[str]:
    """Return what is wrong with a run; empty if nothing is."""
    if watcher.fell:
        return ["the robot fell"]
    rate = len(watcher.delays) / max(seconds, 1e-9)
    if rate < 0.9 * _RATE:
        return [f"{rate:.0f} commands per second; expected {_RATE:.0f}: the machine is too busy"]
    return []


def run(seconds: float, plant: Sequence[str], node: Sequence[str]) -> int:
    """Start all, watch, and judge; return the exit status."""
    environment: dict[str, str] = demo_environment(os.environ)
    path = [str(_HERE.parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    # Matrices of 18 rows are no work for threads, which would only take the processors away.
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.update(environment)
    with StopRequest() as stop, Programs(commands(plant, node), environment) as children:
        print(f"starting in ROS domain {environment['ROS_DOMAIN_ID']}", flush=True)
        began = time.monotonic()
        with ros([]):
            watcher, faults = watch(seconds, children, stop)
        walked = min(seconds, time.monotonic() - began)
        if not stop.requested or watcher.delays:
            faults += verdict(watcher, walked)
        words: Any = children["controller"].tail(3)
        print(words)
        if faults:
            print(children.report(), file=sys.stderr)
    if watcher.heights:
        print(
            f"height {min(watcher.heights):.3f} to {max(watcher.heights):.3f} m, at most "
            f"{np.degrees(np.arccos(min(min(watcher.uprights), 1.0))):.1f} degrees from upright"
        )
    for fault in faults:
        print(f"fault: {fault}", file=sys.stderr)
    print("FAIL" if faults else "OK: it did not fall", flush=True)
    return 1 if faults else 0


def main() -> int:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(
        prog="walk", description="A simulated quadruped walks on the matrices of delassus_node."
    )
    default = float(os.environ.get("WALK_SECONDS") or "inf")
    parser.add_argument("--seconds", type=float, default=default)
    parser.add_argument(
        "--plant", nargs="*", default=[], metavar="NAME:=VALUE", help="parameters of the plant"
    )
    parser.add_argument(
        "--node", nargs="*", default=[], metavar="NAME:=VALUE", help="of delassus_node"
    )
    options = parser.parse_args()
    given = [[w for p in values for w in ("-p", p)] for values in (options.plant, options.node)]
    return run(options.seconds, *given)


if __name__ == "__main__":
    sys.exit(main())
