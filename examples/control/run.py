"""Runs plant, delassus_node and controller, with a progress line and a verdict.

All go by the plant's clock. In lockstep, as they do by default, that stands still until each joint
state is answered, so that a slow machine takes longer and nothing else; with ``--realtime`` it
keeps to the machine's clock for as long as answers are late by no more than a bit.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from delassus.programs.processes import Command, Programs
from delassus.programs.stopping import StopRequest
from delassus_ros.ros.executor import executing
from delassus_ros.ros.program import ros
from delassus_ros.sim.clock import USE_SIM_TIME, of_plant
from delassus_ros.sim.demo import demo_environment
from delassus_ros.sim.plant_node import RECORDED

from .film import SUFFIXES, film_file, of_recording
from .progress import Progress
from .watcher import Watcher

_LIMIT = 300.0  # s without an answer, while all processes live, after which a run ends
_WAITING = 2.0  # s without an answer after which the progress line says so


def _parameter(text: str) -> str:
    """Return a parameter of a node, ``name:=value``.

    Raises
    ------
    ArgumentTypeError
        For other texts, and for what is the same for all nodes.
    """
    name, sign, _ = text.partition(":=")
    if not name or not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME:=VALUE")
    if name in {"lockstep", *USE_SIM_TIME}:
        raise argparse.ArgumentTypeError(
            f"{name} is not for one node: all go by the plant's clock, see --realtime"
        )
    return text


def parser(
    program: str, description: str, variable: str, other: str = "node", film: bool = True
) -> argparse.ArgumentParser:
    """Return one with what all runs may be told.

    Parameters
    ----------
    program, description : see :class:`argparse.ArgumentParser`.
    variable : of the environment, that says how long a run takes.
    other : the option for the parameters of the node that is not the plant.
    film : runs may be filmed.
    """
    made = argparse.ArgumentParser(prog=program, description=description)
    default = float(os.environ.get(variable) or "inf")
    words = f"duration by the clock of the plant [s] (default: {variable}, else until Ctrl-C)"
    made.add_argument("--seconds", type=float, default=default, help=words)
    made.add_argument(
        "--realtime",
        action="store_true",
        help="follow the clock of the machine, instead of waiting for the answers to "
        "joint states",
    )
    made.add_argument("--view", action="store_true", help="open MuJoCo's viewer")
    if film:
        kinds = ", ".join(SUFFIXES)
        words = f"film that is written: {kinds} (strip)"
        made.add_argument("--record", type=film_file, metavar="FILE", help=words)
    for name in ("plant", other):
        made.add_argument(
            f"--{name}",
            nargs="*",
            type=_parameter,
            default=[],
            metavar="NAME:=VALUE",
            help=f"parameters of delassus_{name}",
        )
    return made


def module(name: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module."""
    return [sys.executable, "-m", name, *arguments]


def assigned(parameters: Mapping[str, Any]) -> list[str]:
    """Return parameters as ``name:=value``, as the command line has them."""
    return [f"{name}:={json.dumps(value)}" for name, value in parameters.items()]


def set_to(parameters: Sequence[str]) -> list[str]:
    """Return the arguments of a node that set parameters, each ``name:=value``."""
    return [word for each in parameters for word in ("-p", each)]


def plant_command(clock: Mapping[str, Any], parameters: Sequence[str]) -> Command:
    """Return the process of the plant.

    Parameters
    ----------
    clock : see :func:`delassus_ros.sim.clock.of_plant`.
    parameters : further parameters of the plant, each ``name:=value``.
    """
    arguments = set_to([*assigned(clock), *parameters])
    return Command("plant", module("delassus_ros.sim.plant_node", "--ros-args", *arguments))


def commands(
    folder: Path,
    controller: str,
    plant: Sequence[str],
    node: Sequence[str],
    own: Sequence[str] = (),
    realtime: bool = False,
) -> list[Command]:
    """Return the three processes.

    Parameters
    ----------
    folder : has node.yaml, the parameters of delassus_node.
    controller : module of the controller's node.
    plant, node, own : further parameters of plant, delassus_node and controller, ``name:=value``.
    realtime : the plant keeps to the machine's clock.
    """
    file = ("--ros-args", "--params-file", str(folder / "node.yaml"))
    follow = assigned(USE_SIM_TIME)
    rest, more = set_to([*follow, *node]), set_to([*follow, *own])
    return [
        plant_command(of_plant(realtime), plant),
        Command("delassus_node", module("delassus_ros.node.main", *file, *rest)),
        Command("controller", module(controller, "--ros-args", *more)),
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
        given = [f"robot:={robot}", *plant]
        given += ["view:=true"] if options.view else []
        given += [f"record:={recording}"] if options.record else []
        given += options.plant
        # The controller predicts forces with the friction of the plant.
        own = [*own, *(each for each in given if each.startswith("friction:="))]
        programs = commands(folder, name, given, options.node, own, options.realtime)
        status = run(programs, make, options)
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
    options: argparse.Namespace,
    limit: float = _LIMIT,
) -> int:
    """Start all, watch for the plant's time from the first answer on, judge, return the status.

    Parameters
    ----------
    options : of :func:`parser`.
    limit : time without an answer after which the run ends [s].
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
            faults = _watch(watcher, options.seconds, limit, children, stop)
        answers = watcher.answers
        if answers.count:
            faults += answers.faults() + watcher.faults()
        if faults:
            print(children.report(), file=sys.stderr)
    if answers.count:
        print("\n".join([answers.words(options.realtime), *watcher.figures()]))
    for fault in faults:
        print(f"fault: {fault}", file=sys.stderr)
    print("FAIL" if faults else "OK", flush=True)
    return 1 if faults else 0


def _watch(
    watcher: Watcher, seconds: float, limit: float, children: Programs, stop: StopRequest
) -> list[str]:
    """Watch until the end of the run; return its faults."""
    answers, progress = watcher.answers, Progress()
    heard, last = time.monotonic(), 0
    try:
        with executing([watcher]) as executor:
            while not stop.requested:
                executor.spin_once(timeout_sec=0.1)
                now = time.monotonic()
                if answers.last != last:
                    heard, last = now, answers.last
                gone = children.dead()
                if gone:
                    return [f"{gone[0].name} ended by itself"]
                if now - heard > limit:
                    return [f"no {answers.what} for {limit:g} s: {watcher.lacks()}"]
                if answers.seconds >= seconds or watcher.ended:
                    break
                if progress.due:
                    progress.show(_line(watcher, now - heard, seconds))
            if not answers.count:
                return [f"no {answers.what} came: {watcher.lacks()}"]
    finally:
        progress.close()
    return []


def _line(watcher: Watcher, silence: float, seconds: float) -> str:
    """Return how a run is going; `silence` is the time since the last answer [s]."""
    answers = watcher.answers
    if silence > _WAITING or not answers.count:
        return f"waiting for {answers.what}, {silence:.0f} s: {watcher.lacks()}"
    end = "" if seconds == float("inf") else f" of {seconds:g}"
    return f"{answers.seconds:5.1f}{end} s  {answers.factor:.2f} x real time  {watcher.line()}"
