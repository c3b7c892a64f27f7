"""Runs plant, delassus_node and controller, with a line per second and a verdict at the end."""

from __future__ import annotations

import argparse
import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from delassus_ros.node.main import executing
from delassus_ros.processes import Command, Programs
from delassus_ros.ros_program import ros
from delassus_ros.sim.demo import demo_environment
from delassus_ros.sim.plant_node import RECORDED
from delassus_ros.stopping import StopRequest

from .film import SUFFIXES, film_file, of_recording
from .node import NEWEST

_START_LIMIT = 60.0  # s until the first command
RATE = 500.0
"""Commands per second that are expected."""
_STAMP = struct.Struct("<iI")


class Watcher(Node):
    """Notes how often the robot is commanded, and how late; others add how it is.

    Attributes
    ----------
    delays : of what was sent, after the joint state that it is for [s].
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.delays: list[float] = []
        self.create_subscription(JointState, "joint_commands", self._on_command, NEWEST, raw=True)

    def _on_command(self, data: bytes) -> None:
        # The stamp follows the encapsulation.
        sec, nanosec = _STAMP.unpack_from(data, 4)
        self.delays.append(1e-9 * (time.time_ns() - sec * 10**9 - nanosec))

    @property
    def ended(self) -> bool:
        """Whether there is no use in going on."""
        return False

    def line(self) -> str:
        """Return how the robot is."""
        raise NotImplementedError

    def figures(self) -> list[str]:
        """Return the figures of the whole run, a line each."""
        raise NotImplementedError

    def faults(self) -> list[str]:
        """Return what is wrong with the run; empty if nothing is."""
        raise NotImplementedError


def parser(program: str, description: str, variable: str) -> argparse.ArgumentParser:
    """Return one with what all runs may be told; how long is in an environment variable, too."""
    made = argparse.ArgumentParser(prog=program, description=description)
    default = float(os.environ.get(variable) or "inf")
    words = f"then it ends by itself (default: {variable}, else never)"
    made.add_argument("--seconds", type=float, default=default, help=words)
    made.add_argument("--view", action="store_true", help="open MuJoCo's viewer")
    kinds = ", ".join(SUFFIXES)
    made.add_argument("--record", type=film_file, metavar="FILE", help=f"a film: {kinds} (strip)")
    for name, whose in (("plant", "the plant"), ("node", "delassus_node")):
        made.add_argument(
            f"--{name}",
            nargs="*",
            default=[],
            metavar="NAME:=VALUE",
            help=f"parameters of {whose}",
        )
    return made


def module(name: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module."""
    return [sys.executable, "-m", name, *arguments]


def commands(
    folder: Path,
    controller: str,
    plant: Sequence[str],
    node: Sequence[str],
    own: Sequence[str] = (),
) -> list[Command]:
    """Return the three processes.

    Parameters
    ----------
    folder : has node.yaml, the parameters of delassus_node.
    controller : module of the controller's node.
    plant, node, own : further parameters of plant, delassus_node and controller, ``name:=value``.
    """

    def set_to(parameters: Sequence[str]) -> list[str]:
        return [word for each in parameters for word in ("-p", each)]

    file = ("--ros-args", "--params-file", str(folder / "node.yaml"))
    return [
        Command("plant", module("delassus_ros.sim.plant_node", "--ros-args", *set_to(plant))),
        Command("delassus_node", module("delassus_ros.node.main", *file, *set_to(node))),
        Command("controller", module(controller, "--ros-args", *set_to(own))),
    ]


def run_example(
    name: str,
    folder: Path,
    options: argparse.Namespace,
    make: Callable[[], Watcher],
    robot: str,
    plant: Sequence[str] = (),
    own: Sequence[str] = (),
) -> int:
    """Run the example in a folder as the command line says; draw its film; return the status.

    Parameters
    ----------
    name : of the module of its node.
    folder, own : see :func:`commands`.
    options : of :func:`parser`.
    make : makes the watcher.
    robot : of the plant.
    plant : its parameters, before those of the command line.
    """
    with tempfile.TemporaryDirectory() as place:
        recording = Path(place) / "postures.npy"
        set_to = [f"robot:={robot}", *plant]
        set_to += ["view:=true"] if options.view else []
        set_to += [f"record:={recording}"] if options.record else []
        programs = commands(folder, name, [*set_to, *options.plant], options.node, own)
        status = run(programs, make, options.seconds)
        if (
            options.record
            and recording.exists()
            and of_recording(robot, recording, RECORDED, options.record)
        ):
            print(f"{options.record} shows it", flush=True)
    return status


def run(
    programs: Sequence[Command],
    make: Callable[[], Watcher],
    seconds: float,
    what: str = "commands",
    expected: float = RATE,
) -> int:
    """Start all, watch for so long from the first command on, and judge; return the status.

    Parameters
    ----------
    what, expected : what follows joint states, and how often per second.
    """
    environment: dict[str, str] = demo_environment(os.environ)
    examples = str(Path(__file__).resolve().parents[1])
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [examples, environment.get("PYTHONPATH", "")])
    )
    # Matrices of some rows are no work for threads, which would only take the processors away.
    environment.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.update(environment)
    with StopRequest() as stop, Programs(programs, environment) as children:
        print(f"starting in ROS domain {environment['ROS_DOMAIN_ID']}", flush=True)
        with ros([]):
            watcher = make()
            faults, watched = _watch(watcher, seconds, children, stop)
        rate = len(watcher.delays) / max(watched, 1e-9)
        if watcher.delays:
            faults += watcher.faults()
            if rate < 0.9 * expected:
                faults.append(f"{rate:.0f} {what} per second; expected {expected:.0f}: too busy")
        if faults:
            print(children.report(), file=sys.stderr)
    if watcher.delays:
        delay = 1e3 * np.quantile(watcher.delays, [0.5, 0.99])
        print(
            f"{rate:.0f} {what} per second, {delay[0]:.2f} ms after their joint states "
            f"(99 %: {delay[1]:.2f})"
        )
        print("\n".join(watcher.figures()))
    for fault in faults:
        print(f"fault: {fault}", file=sys.stderr)
    print("FAIL" if faults else "OK", flush=True)
    return 1 if faults else 0


def _watch(
    watcher: Watcher, seconds: float, children: Programs, stop: StopRequest
) -> tuple[list[str], float]:
    """Watch; return what was wrong meanwhile, and for how long [s]."""
    began, first, told = time.monotonic(), 0.0, 0.0
    with executing([watcher]) as executor:
        while not stop.requested:
            executor.spin_once(timeout_sec=0.1)
            now = time.monotonic()
            if watcher.delays and not first:
                first = told = now
            gone = children.dead()
            if gone:
                return [f"{gone[0].name} ended by itself"], now - first
            if not first and now - began > _START_LIMIT:
                return [f"nothing within {_START_LIMIT:g} s"], 0.0
            if first and (now - first > seconds or watcher.ended):
                break
            if first and now - told >= 1.0:
                told = now
                print(f"{now - first:5.1f} s  {watcher.line()}", flush=True)
    if not watcher.delays and not stop.requested:
        return ["nothing has come"], 0.0
    return [], time.monotonic() - first
