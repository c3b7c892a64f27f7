"""The robot that the command line names: a URDF, an MJCF, or a robot of this package."""

from __future__ import annotations

import fnmatch
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from delassus.closure import Closure
from delassus.errors import DelassusWarning, InputError, RobotError
from delassus.model.edit import to_lock
from delassus.model.reading.mjcf import MJCF, compiled, without_includes
from delassus.model.reading.poses import group_states, srdf_beside, with_poses
from delassus.model.reading.source import document_of
from delassus.model.robot import Robot
from delassus.programs.needs import missing
from delassus.robots.base import base_of
from delassus.robots.built_in import ROBOTS, demo_urdf
from delassus.robots.built_in.arm import arm_urdf
from delassus.robots.built_in.humanoid import humanoid_urdf
from delassus.robots.limbs import Limbs
from delassus.robots.pose import default_posture
from delassus.robots.proposals import Proposal, proposals
from delassus.robots.shapes import LinkShapes

BUILT_IN: dict[str, Callable[[], str]] = {
    **{name: partial(demo_urdf, name) for name in ROBOTS},
    "humanoid": humanoid_urdf,
    "arm": arm_urdf,
}
"""Robots in the package, by name, as URDF."""


@dataclass(frozen=True, eq=False)
class Description:
    """A robot with the description that it was read from.

    Attributes
    ----------
    document : root element of the URDF or MJCF.
    folder : folder of the file; None for text from a pipe or a built-in robot.
    model : the compiled mujoco.MjModel of an MJCF; None of a URDF.
    held : positions of locked joints by name [rad, m].
    """

    robot: Robot
    document: Element
    folder: Path | None = None
    model: Any = None
    held: Mapping[str, float] = field(default_factory=dict)
    held_why: str = ""

    @cached_property
    def limbs(self) -> Limbs:
        """The limbs of the robot."""
        return Limbs(self.robot)

    @cached_property
    def proposals(self) -> list[Proposal]:
        """Possible contacts: one per limb, and wheels."""
        if self.model is None:
            shapes = LinkShapes.of_urdf(self.robot.clustered, self.document, self.folder)
        else:
            shapes = LinkShapes.of_mujoco(self.model)
        return proposals(self.robot, shapes, self.limbs)

    def fingers(self) -> dict[str, float]:
        """Return the positions of the joints of fingers in the default posture, by name."""
        robot = self.robot
        closure = Closure(robot) if robot.clustered.is_closed else None
        q = default_posture(robot, closure).q
        offsets = dict(zip((joint.name for joint in robot.joints), robot.q_offsets, strict=True))
        return {name: float(q[offsets[name]]) for name in self.limbs.fingers}

    def locked(self, positions: Mapping[str, float], why: str) -> Description:
        """Return the description of the robot with locked joints.

        Parameters
        ----------
        positions : positions of the joints by name [rad, m].
        """
        return replace(
            self, robot=self.robot.lock(positions), held={**self.held, **positions}, held_why=why
        )

    @property
    def held_words(self) -> str:
        """Text about the number of locked joints and the reason."""
        count = len(self.held)
        return f"{count} joint{' is' if count == 1 else 's are'} locked by {self.held_why}"

    @property
    def finger_words(self) -> str:
        """Text about the number of moving joints of fingers, and the option that locks them."""
        count = len(self.limbs.fingers)
        words = "1 joint of a finger moves" if count == 1 else f"{count} joints of fingers move"
        return f"{words}; --lock fingers locks them, which changes the matrix"

    @property
    def text(self) -> str:
        """The description as text, without includes."""
        document = self.document
        if document.tag == MJCF:
            document = without_includes(document, self.folder or Path())
        return ElementTree.tostring(document, encoding="unicode")


def described_by(
    source: str,
    base: str | None,
    loops: str | None,
    loops_as: str = "clusters",
    lock: Mapping[str, float] | None = None,
    xacro_arguments: Mapping[str, str] | None = None,
    passive: bool = True,
    srdf: str | None = None,
) -> Description:
    """Return the robot of a file, or a built-in robot.

    If a base is assumed to be fixed, a line is written to standard error. Without `srdf`, group
    states of an SRDF file beside the URDF file are read, see
    :func:`~delassus.model.reading.poses.srdf_beside`.

    Parameters
    ----------
    source : path of a URDF, xacro or MJCF file, or a name of :data:`BUILT_IN`.
    base : ``"floating"``, ``"fixed"``, or None for the likely one.
    loops : path of a file with loops, or None.
    loops_as : how loops are closed; see :meth:`Robot.with_loops_as`.
    lock, xacro_arguments : see :meth:`Robot.from_urdf`.
    passive : whether springs, dampers and gravity compensation count.
    srdf : path of the SRDF file with poses of a URDF, or None.

    Raises
    ------
    InputError
        If the source is a recording, or `base`, `loops` or `srdf` contradict an MJCF.
    RobotError
        If the robot, or the file `srdf`, cannot be read.

    Warns
    -----
    DelassusWarning
        If an SRDF file beside the URDF file cannot be read.
    """
    if source.endswith((".mcap", ".db3", ".bag")):
        raise InputError(
            f"{source} is a recording: first 'delassus bag {source} -o out' makes tables of its "
            "matrices"
        )
    is_file = Path(source).exists()
    is_built_in = source in BUILT_IN and not is_file
    document = document_of(BUILT_IN[source]() if is_built_in else source, xacro_arguments)
    folder = Path(source).resolve().parent if Path(source).is_file() else None
    if document.tag == MJCF:
        if srdf is not None:
            raise InputError(
                f"--srdf is of use with URDF alone; keyframes of {source} are its poses"
            )
        found = _of_mjcf(source, document, folder, base, loops, loops_as, passive)
        return found.locked(to_lock(found.robot, lock), "--lock") if lock else found
    if base is None:
        held = base_of(document)
        base = held.base
        if base == "fixed":
            other = "" if held.surely else "; else say --base floating"
            print(f"taken as --base fixed, as {held.why}{other}", file=sys.stderr)
    robot = Robot.from_urdf(
        document, "fixed" if base == "fixed" else "floating", loops=loops, loops_as=loops_as,
        lock=lock, passive=passive, srdf=srdf,
    )  # fmt: skip
    if srdf is None and folder is not None:
        robot = _with_poses_beside(robot, folder / Path(source).name)
    return Description(robot, document, folder, None, _matching(document, lock or {}), "--lock")


def _with_poses_beside(robot: Robot, file: Path) -> Robot:
    """Return the robot of a URDF file with the poses of the SRDF file beside it."""
    srdf = srdf_beside(file)
    if srdf is None:
        return robot
    try:
        return with_poses(robot, group_states(srdf))
    except RobotError as error:
        warnings.warn(f"{error}; its poses are left out", DelassusWarning, stacklevel=3)
        return robot


def _matching(document: Element, lock: Mapping[str, float]) -> dict[str, float]:
    """Return positions by the names of joints of a URDF, of names and patterns."""
    names = [
        joint.get("name", "")
        for joint in document
        if joint.tag.rpartition("}")[2] == "joint" and joint.get("type") != "fixed"
    ]
    found: dict[str, float] = {}
    for name, value in lock.items():
        found |= dict.fromkeys([name] if name in names else fnmatch.filter(names, name), value)
    return found


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
    robot.expect_base(base)
    return Description(robot, document, folder, model)
