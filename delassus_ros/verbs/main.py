"""The command `delassus` with the verbs of nodes and recordings."""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from delassus.cli import main as library
from delassus.cli.component import Component, Played
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.robots.description import Description
from delassus_ros.ros.needs import require_ros
from delassus_ros.verbs.bag import BAG, BAGS
from delassus_ros.verbs.config import CONFIG
from delassus_ros.verbs.live import CONTACTS, RECORD, WATCH
from delassus_ros.verbs.parameter_files import exported
from delassus_ros.verbs.run import RUN, view_node

_EXAMPLES = """\
  delassus run my_robot.urdf
  delassus bag run.mcap --params my_robot.yaml -o out
"""


def _played(options: argparse.Namespace, description: Description) -> Played | None:
    require_ros("delassus view", "mcap")
    from delassus_ros.verbs.recorded import played

    return played(options, description)


def _positions(
    path: Path, robot: Robot, warn: Callable[[Sequence[str]], object]
) -> tuple[Array, Array]:
    require_ros("delassus view", "mcap", ros=("rclpy",))
    from delassus_ros.recordings.positions import recorded_positions

    return recorded_positions(path, robot, warn)


COMPONENT = Component(
    groups={"nodes": (RUN, CONFIG, WATCH, CONTACTS), "recordings": (RECORD, BAG, BAGS)},
    examples=_EXAMPLES,
    exported=exported,
    view_node=view_node,
    played=_played,
    positions=_positions,
)
"""What the ROS component adds to the command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status; see :func:`delassus.cli.main.run`."""
    return library.run(_parser(), argv)


def _parser() -> argparse.ArgumentParser:
    return library.parser_of(COMPONENT)


if __name__ == "__main__":
    sys.exit(main())
