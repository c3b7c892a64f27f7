"""The demo: simulator, delassus_node and monitor together, with a verdict at the end."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from delassus.errors import DelassusError
from delassus.programs.command_line import duration
from delassus.programs.processes import Command, Programs
from delassus.programs.stopping import StopRequest
from delassus.robots.built_in import ROBOTS
from delassus_ros.monitor.agreement import Agreement
from delassus_ros.ros.domains import own_domains
from delassus_ros.ros.needs import ROS, missing_ros

_FIRST_LIMIT = 300.0  # s until the first matrix that can be compared, on any machine
_TOPICS = {"delassus": "delassus_node/delassus", "reference": "simulator/reference"}
# The first variable is read up to Fast DDS 2, the second by later versions.
_FAST_DDS_PROFILES = ("FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE")
_SOURCE = Path(__file__).resolve().parents[2]


def find_config(robot: str = ROBOTS[0]) -> Path:
    """Return the parameter file of a demo robot: in the source tree, else installed."""
    prefixes = [p for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
    config = Path("config") / f"{robot}.yaml"
    places = [_SOURCE / config]
    for prefix in [*prefixes, sys.prefix]:
        places.append(Path(prefix) / "share" / "delassus_ros" / config)
    for place in places:
        if place.is_file():
            return place
    raise DelassusError(
        f"no {config.name} found; looked for {', '.join(str(place) for place in places)}; "
        "name one with --params-file"
    )


def demo_commands(
    config: Path, robot: str = ROBOTS[0], recording: Path | None = None
) -> list[Command]:
    """Return the commands of the demo: two nodes, and optionally a recorder of their topics."""

    def node(module: str, *arguments: str) -> list[str]:
        return [sys.executable, "-m", module, "--ros-args", *arguments]

    commands = [
        Command("simulator", node("delassus_ros.sim.simulator_node", "-p", f"robot:={robot}")),
        Command("delassus_node", node("delassus_ros.node.main", "--params-file", str(config))),
    ]
    if recording is not None:
        record = [sys.executable, "-m", "delassus_ros.verbs.main", "record", "-o", str(recording)]
        commands.append(Command("recorder", record))
    return commands


def demo_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the demo's processes; variables that are set are unchanged.

    The processes use a separate ROS graph on this machine, with fast discovery.
    """
    variables = dict(environment)
    variables.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    if "ROS_DOMAIN_ID" not in variables:
        try:
            variables["ROS_DOMAIN_ID"] = str(own_domains()[0])
        except DelassusError:
            # All domains are taken: a domain that is probably unused at this moment.
            variables["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 101)
    if not any(name in variables for name in _FAST_DDS_PROFILES):
        profiles = str(Path(__file__).with_name("fastdds.xml"))
        variables.update(dict.fromkeys(_FAST_DDS_PROFILES, profiles))
    return variables


class _Clock:
    """End of the demo: on request, after the wanted time of comparisons, or at a fault.

    A fault is a late comparison, or a child process that has ended. The time begins with the first
    comparison, as topics are discovered at different times.
    """

    def __init__(self, seconds: float, first_limit: float, stop: StopRequest) -> None:
        self._stop = stop
        self._seconds = seconds
        self._limit = first_limit
        self._start = time.monotonic()
        self._first: float | None = None
        self.fault: str | None = None

    @property
    def elapsed(self) -> float:
        """Time since the first comparison [s]."""
        return 0.0 if self._first is None else time.monotonic() - self._first

    def proceed(self, agreement: Agreement, children: Programs) -> bool:
        """Return whether to continue; sets `fault` at a fault."""
        if self._stop.requested:
            return False
        now = time.monotonic()
        gone = children.dead()
        if gone:
            self.fault = ", ".join(
                f"{child.name} ended by itself with status {child.status}" for child in gone
            )
        elif self._first is None and agreement.compared:
            self._first = now
        elif self._first is None and now - self._start > self._limit:
            what = "matrix could be compared" if agreement.matrices else "matrix arrived"
            self.fault = f"no {what} within {self._limit:g} s"
        elif self._first is not None and now - self._first >= self._seconds:
            return False
        return self.fault is None


def run(commands: Sequence[Command], seconds: float, first_limit: float = _FIRST_LIMIT) -> int:
    """Start the commands, compare their matrices, stop the commands, and return a verdict.

    Parameters
    ----------
    commands
        The nodes to start; they publish ``/delassus_node/delassus`` and ``/simulator/reference``.
    seconds
        Time from the first comparison to the end [s]; infinite: until interrupted.
    first_limit
        Longest time until the first comparison [s].

    Returns
    -------
    int
        0 if matrices arrived and agreed with the reference, else 1.
    """
    with StopRequest() as stop:
        return _run(commands, _Clock(seconds, first_limit, stop))


def _run(commands: Sequence[Command], clock: _Clock) -> int:
    # Imported here, as these modules need ROS, which the command has checked by now, and as the
    # import is slow and must follow the installation of signal handlers.
    from delassus_ros.monitor.monitor_node import MonitorNode, watch
    from delassus_ros.ros.program import ros

    environment = demo_environment(os.environ)
    os.environ.update(environment)
    names = ", ".join(command.name for command in commands)
    print(f"starting {names} in ROS domain {environment['ROS_DOMAIN_ID']}", flush=True)
    with Programs(commands, environment) as children:
        with ros([]):
            node = MonitorNode(_TOPICS)
            agreement = node.agreement
            watch(node, lambda: clock.proceed(agreement, children))
            elapsed = clock.elapsed
            faults = ([clock.fault] if clock.fault else []) + node.faults()
        killed = children.stop()
        if clock.fault:
            print(children.report(), file=sys.stderr)
        if killed:
            print(f"had to kill {', '.join(killed)}: deaf to SIGINT, SIGTERM", file=sys.stderr)
    rate = agreement.compared / elapsed if elapsed > 0.0 else 0.0
    print(f"{elapsed:.1f} s, {rate:.0f} Hz: {node.summary()}")
    for fault in faults:
        print(f"fault: {fault}", file=sys.stderr)
    print("FAIL" if faults else "OK: all matrices agree with the physics engine", flush=True)
    return 1 if faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="delassus_demo",
        description="Simulate a small robot, run delassus_node, which publishes its Delassus "
        "matrix at 1 kHz, and compare every matrix with that of the physics engine. Ctrl-C ends "
        "the demo.",
        epilog="Exit status: 0 if matrices arrived and agreed to a relative 1e-9; 1 if not; 2 if "
        "the demo could not start. The demo has a ROS domain of its own unless ROS_DOMAIN_ID and "
        "ROS_AUTOMATIC_DISCOVERY_RANGE are set.",
    )
    parser.add_argument(
        "--seconds",
        type=duration,
        default=os.environ.get("DEMO_SECONDS") or "inf",
        help="duration from the first matrix to the end [s] "
        "(default: the environment variable DEMO_SECONDS, else until Ctrl-C)",
    )
    parser.add_argument(
        "--robot",
        choices=ROBOTS,
        default=ROBOTS[0],
        help="a quadruped, or (geared) a quadruped with geared joints and a four-bar on its trunk "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--params-file",
        type=Path,
        help="ROS parameters of delassus_node (default: the installed file of that robot)",
    )
    parser.add_argument(
        "--record", type=Path, metavar="FILE.mcap", help="recording of all topics that is written"
    )
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return the exit status."""
    options = _parser().parse_args(arguments)
    fault = missing_ros("delassus_demo", *ROS, "mujoco", "rich")
    if fault is not None:
        print(fault, file=sys.stderr)
        return 2
    try:
        config = options.params_file or find_config(options.robot)
        if not config.is_file():
            raise DelassusError(f"--params-file {config}: no such file")
        if options.record is not None and options.record.exists():
            raise DelassusError(f"--record {options.record} is there already; name another file")
    except DelassusError as error:
        print(f"delassus_demo: {error}", file=sys.stderr)
        return 2
    return run(demo_commands(config, options.robot, options.record), options.seconds)


if __name__ == "__main__":
    sys.exit(main())
