"""The robot that the command line names: a URDF, an MJCF, or a robot of this package."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from delassus_ros.cli.bases import base_of
from delassus_ros.cli.proposals import Limbs, Proposal, mujoco_shapes, pose_of, urdf_shapes
from delassus_ros.errors import InputError
from delassus_ros.model.reading.mujoco import compiled
from delassus_ros.model.reading.source import located
from delassus_ros.model.reading.xml import parse_xml
from delassus_ros.model.robot import Robot
from delassus_ros.needs import missing
from delassus_ros.sim import ROBOTS, demo_urdf
from delassus_ros.sim.arm import arm_urdf
from delassus_ros.sim.humanoid import humanoid_urdf

BUILT_IN: dict[str, Callable[[], str]] = {
    **{name: partial(demo_urdf, name) for name in ROBOTS},
    "humanoid": humanoid_urdf,
    "arm": arm_urdf,
}
"""Robots that come with the package, by name, as URDF."""


@dataclass(frozen=True, eq=False)
class Description:
    """A robot with the description that it was read from.

    Attributes
    ----------
    robot : the robot.
    document : root element of the URDF or MJCF.
    folder : folder of the file; None for text from a pipe or a built-in robot.
    model : the compiled mujoco.MjModel of an MJCF; None of a URDF.
    """

    robot: Robot
    document: Element
    folder: Path | None = None
    model: Any = None

    def proposals(self) -> list[Proposal]:
        """Return possible contacts: one per limb."""
        return Limbs(self.robot).proposals(
            urdf_shapes(self.document) if self.model is None else mujoco_shapes(self.model)
        )

    def fingers(self) -> dict[str, float]:
        """Return positions at which the joints of fingers are proposed to be locked, by name."""
        pose = pose_of(self.robot)
        return {name: pose[name] for name in Limbs(self.robot).fingers if name in pose}

    def refuse_mjcf(self) -> None:
        """Refuse a robot of MJCF, for the node.

        Raises
        ------
        InputError
            If the robot is described by MJCF.
        """
        if self.model is not None:
            raise InputError(
                f"robot {self.robot.name!r} is described by MJCF, and delassus_node reads URDF; "
                "expected a URDF or xacro file"
            )


def described_by(
    source: str,
    base: str | None,
    loops: str | None,
    loops_as: str = "clusters",
    passive: bool = True,
) -> Description:
    """Return the robot of a file, or a built-in robot.

    If a base is assumed to be fixed, a line on standard error says so.

    Parameters
    ----------
    source : path of a URDF, xacro or MJCF file, or a name of :data:`BUILT_IN`.
    base : ``"floating"``, ``"fixed"``, or None for the likely one.
    loops : path of a file with loops, or None.
    loops_as : how loops are closed; see :meth:`Robot.with_loops_as`.
    passive : whether springs, dampers and gravity compensation count.

    Raises
    ------
    InputError
        If the source is a recording, or `base` or `loops` contradict an MJCF.
    RobotError
        If the robot cannot be read.
    """
    if source.endswith((".mcap", ".db3", ".bag")):
        raise InputError(
            f"{source} is a recording: first 'delassus bag {source} -o out' makes tables of its "
            "matrices"
        )
    is_file = Path(source).exists()
    if source in BUILT_IN and not is_file:
        document = parse_xml(BUILT_IN[source]())
    else:
        document = parse_xml(located(source))
    folder = Path(source).resolve().parent if Path(source).is_file() else None
    if document.tag == "mujoco":
        return _of_mjcf(source, document, folder, base, loops, loops_as, passive)
    if base is None:
        held = base_of(document)
        base = held.base
        if base == "fixed":
            other = "" if held.surely else "; else say --base floating"
            print(f"taken as --base fixed, as {held.why}{other}", file=sys.stderr)
    robot = Robot.from_urdf(
        ElementTree.tostring(document), "fixed" if base == "fixed" else "floating", loops=loops,
        loops_as=loops_as, passive=passive,
    )  # fmt: skip
    return Description(robot, document, folder)


def _of_mjcf(
    source: str,
    document: Element,
    folder: Path | None,
    base: str | None,
    loops: str | None,
    loops_as: str,
    passive: bool,
) -> Description:
    lacking = missing("delassus with MJCF", "mujoco")
    if lacking is not None:
        raise InputError(lacking)
    if loops is not None:
        raise InputError(
            f"--loops is of use with URDF alone; equalities of {source} are its loops"
        )
    model = compiled(source)
    robot = Robot.from_mujoco(model, loops_as, passive)
    if base not in (None, robot.base):
        joint = "has no" if robot.base == "fixed" else "has a"
        raise InputError(
            f"--base {base}: the first body of {source} {joint} free joint, which makes its base "
            f"{robot.base}"
        )
    return Description(robot, document, folder, model)
