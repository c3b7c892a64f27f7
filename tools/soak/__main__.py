"""The soak run: a long run of delassus_node under load, compared with an echo node."""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from delassus.programs.command_line import positive
from delassus.programs.stopping import StopRequest
from delassus_ros.ros.needs import missing_ros

from .run import (
    SoakError,
    measure,
)
from .verdict import Limits

_NEEDED = ("rclpy", "delassus_msgs", "delassus_msgs_py", "lifecycle_msgs")


def run(
    seconds: float,
    rate: float,
    limits: Limits,
    more: Sequence[str] = (),
    swap: Sequence[str] = (),
    kill_readers: bool = False,
    outputs: Sequence[str] = (),
) -> int:
    """Make a run and print its results.

    Parameters
    ----------
    seconds
        Duration of the run [s]; a fifth is used for the echo node.
    rate
        Joint states per second.
    limits
        Limits of a run that passes.
    more
        Further ROS arguments of delassus_node.
    swap
        Algorithms to switch between, together with the node's; empty for no switches.
    kill_readers
        Start and kill further readers throughout the run.
    outputs
        Outputs of the node besides G; if not empty, a node with only G replaces the echo node.

    Returns
    -------
    int
        0 if all results are within the limits, else 1.
    """
    with StopRequest() as stop, tempfile.TemporaryDirectory(prefix="delassus_soak_") as folder:
        result = measure(
            Path(folder), seconds, rate, lambda: not stop.requested, more, swap, kill_readers,
            outputs,
        )  # fmt: skip
    faults = result.faults(limits)
    if stop.requested:
        faults.append("interrupted")
    for line in result.report():
        print(line)
    for fault in faults:
        print(f"fault: {fault}", file=sys.stderr)
    print("FAIL" if faults else "OK: all within the limits", flush=True)
    return 1 if faults else 0


def _names(text: str) -> tuple[str, ...]:
    """Parse a list of distinct names."""
    names = tuple(text.split(","))
    if not all(names) or len(set(names)) < len(names):
        raise argparse.ArgumentTypeError(
            f"{text!r}; expected different names with commas between them"
        )
    return names


_WITH_OUTPUTS = {"ratio": 1.6, "cpu": 40.0}
"""Default limits where the node publishes two messages per joint state."""
_LIMIT_HELP = {
    "ratio": "median time from joint state to matrix, and its 99th percentile, as multiples of "
    "those of the echo node",
    "p50": "median time from joint state to matrix [ms]",
    "p99": "99th percentile of the time from joint state to matrix [ms]",
    "cpu": "processor time of the node [%% of a core at 1 kHz]",
    "superseded": "joint states superseded by newer ones [%%]",
    "growth": "growth of the node's memory after the warm-up [MB]",
    "gap": "number of periods from one matrix to the next with --swap",
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="soak",
        description="Send joint states of a humanoid with 30 joints and 4 surface contacts (24 "
        "rows) in turns to delassus_node and to an echo node, which deserialises each joint state "
        "and publishes a message of the same size; account for every joint state, and compare the "
        "figures with limits.",
        epilog="Exit status: 0 if no matrix was lost, refused or wrong and all figures are within "
        "the limits; 1 if not; 2 if the run could not start. Arguments after -- are ROS arguments "
        'of delassus_node, as in: make soak ARGS="-- -p algorithm:=efpa"',
    )
    parser.add_argument(
        "--seconds",
        type=positive,
        default=os.environ.get("SOAK_SECONDS") or "600",
        help="duration [s] (default: the environment variable SOAK_SECONDS, else 600)",
    )
    parser.add_argument(
        "--rate", type=positive, default=1000.0, help="rate of joint states [1/s] (default: 1000)"
    )
    parser.add_argument(
        "--swap",
        type=_names,
        default=(),
        metavar="ALGORITHM[,...]",
        help="change the algorithm of the node as fast as possible, through these algorithms and "
        "the configured one in turn",
    )
    parser.add_argument(
        "--kill-readers",
        action="store_true",
        help="start further readers of the matrices, and kill or stop them, during the whole run",
    )
    parser.add_argument(
        "--outputs",
        type=_names,
        default=(),
        metavar="NAME[,...]",
        help="secondary outputs of the node, such as a0,JdotV,J,MinvJT,h; the node is then "
        "compared with a node that computes G alone instead of the echo node; "
        + " and ".join(f"--{name} is {value:g}" for name, value in _WITH_OUTPUTS.items())
        + " by default then",
    )
    limits = parser.add_argument_group("limits")
    for field in dataclasses.fields(Limits):
        default = "%(default)g" if math.isfinite(Limits.__dict__[field.name]) else "none"
        words = f"{_LIMIT_HELP[field.name]} (default: {default})"
        limits.add_argument(
            f"--{field.name}", type=positive, default=field.default, metavar="MOST", help=words
        )
    parser.add_argument("node", nargs="*", help=argparse.SUPPRESS)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the run; return the exit status."""
    options = _parser().parse_args(arguments)
    fault = missing_ros("soak", *_NEEDED)
    if fault is not None:
        print(fault, file=sys.stderr)
        return 2
    names = [field.name for field in dataclasses.fields(Limits)]
    for name, value in _WITH_OUTPUTS.items() if options.outputs else ():
        if getattr(options, name) == getattr(Limits, name):
            setattr(options, name, value)
    limits = Limits(**{name: getattr(options, name) for name in names})
    try:
        return run(
            options.seconds, options.rate, limits, options.node, options.swap,
            options.kill_readers, options.outputs,
        )  # fmt: skip
    except (SoakError, ProcessLookupError) as error:
        print(f"soak: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
