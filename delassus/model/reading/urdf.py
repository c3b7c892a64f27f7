"""From a URDF to a mechanism: the steps in their order, and the assembly of joints and bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from delassus.errors import RobotError, unknown
from delassus.model.chains import chain
from delassus.model.clusters import clusters_of
from delassus.model.constraints import FunctionConstraint
from delassus.model.edit import locked, to_lock
from delassus.model.joint import SINGLE, WORLD, Joint, JointKind, root_name
from delassus.model.mechanism import Base, Body, Frame, MechanismT
from delassus.model.reading.bodies import check_bodies, links_of_bodies
from delassus.model.reading.check import checked
from delassus.model.reading.closing import closed, with_independents
from delassus.model.reading.description import (
    Description,
    JointDescription,
    describe,
)
from delassus.model.reading.link_tree import LinkTree
from delassus.model.reading.passive import warn_of_uncounted
from delassus.model.reading.transmissions import warn_of_unknown_rotors
from delassus.model.reading.yaml import SideFile, read_side_file
from delassus.model.spatial import Inertia, Transform


def read_urdf(
    document: Element,
    base: Base,
    loops: str | Path | Mapping[str, Any] | None,
    armature: Mapping[str, float] | None,
    functions: Sequence[FunctionConstraint],
    robot_type: type[MechanismT],
    lock: Mapping[str, float] | None = None,
    passive: bool = True,
) -> MechanismT:
    """Read a URDF.

    Joints come depth first; at each link, in the order in which the document has them; rotors
    of transmissions come last.
    Links on fixed joints are lumped into the body that carries them; every link stays as a
    frame. The frame of a moving link is the frame of its joint.

    With ``base="floating"`` the root link, with what is fixed to it, becomes body 0 on a
    free-flyer named ``"root"``. If the only joint that moves on it is a ``floating`` one, that
    joint already is the free-flyer: the root link is then the world. With ``base="fixed"`` the
    root link is welded to the world, and a ``floating`` joint has entries in q.

    Parameters
    ----------
    document : root element, see :func:`~delassus.model.reading.source.document_of`.
    base : ``"floating"`` or ``"fixed"``.
    loops : additions to the URDF, see :mod:`~delassus.model.reading.yaml`.
    armature : see :meth:`~delassus.model.mechanism.Mechanism.with_armature`.
    functions : constraints in addition to those of the files.
    robot_type : class of the result.
    lock : positions of joints that are locked before the robot is judged, by name or pattern; see
        :func:`~delassus.model.edit.locked`.
    passive : whether dampers of joints count; dry friction does not, which a warning says.

    Raises
    ------
    RobotError
        If the XML is broken or hostile, the joints do not make a tree, the robot is not
        physical, or what closes the tree or the armature does not fit it; the message names the
        link, joint, coupling or loop.
    """
    if base not in ("floating", "fixed"):
        raise RobotError(f"base must be 'floating' or 'fixed', got {base!r}")
    side = SideFile() if loops is None else read_side_file(loops)
    given = lock if isinstance(lock, Mapping) else {}
    locked_names = [name for name in given if isinstance(name, str)]
    description = with_joint_types(describe(checked(document, locked_names)), side)
    assembly = _Assembly(description, LinkTree(description), base)
    tree = assembly.tree(robot_type)
    held = to_lock(tree, lock or {})
    robot = closed(tree, description, side, functions, held)
    if armature is not None:
        robot = robot.with_armature(armature)
    if held:
        robot = locked(robot, held)
    lost = {*tree.joint_names} - {*robot.joint_names}
    robot = with_independents(robot, description.joints, side.motors, lost)
    warn_of_unknown_rotors(robot, description.transmissions, side.rotors)
    if passive:
        warn_of_uncounted(robot.name, _uncounted(description))
    else:
        robot = robot.without_passive()
    on_root = [joint.name for joint in assembly.moving_on_root()]
    check_bodies(robot, description.inertias, [n for n in on_root if n in robot.joint_names])
    if robot.is_closed:
        clusters_of(robot)  # raises, if the loops or the coordinates are wrong
    return robot


class _Assembly:
    """Moving joints and the frames of links, put together depth first."""

    def __init__(self, description: Description, tree: LinkTree, base: Base) -> None:
        self._description = description
        self._tree = tree
        self._joints: list[Joint] = []
        self._frames: list[Frame] = []
        moving = self.moving_on_root()
        self._free_flyer = None
        if base == "floating" and [joint.kind for joint in moving] == [JointKind.FLOATING]:
            self._free_flyer = moving[0]
        body = WORLD
        if base == "floating" and self._free_flyer is None:
            body = self._add_root()
        self._add_link(tree.root, body, Transform())
        self._walk(body)

    def tree(self, robot_type: type[MechanismT]) -> MechanismT:
        """Return the robot without constraints."""
        bodies = []
        links = links_of_bodies(self._frames, self._description.inertias, len(self._joints))
        for joint, lumped in zip(self._joints, links, strict=True):
            # Between the joints of a chain there is no link.
            name = lumped[0][0] if lumped else joint.name
            bodies.append(Body(name, sum((inertia for _, inertia in lumped), Inertia())))
        return robot_type(self._description.name, self._joints, bodies, self._frames)

    def moving_on_root(self) -> list[JointDescription]:
        """Return the joints that move on the root link or on what is fixed to it."""
        moving, pending = [], [self._tree.root]
        while pending:
            for joint in self._tree.joints_on[pending.pop()]:
                if joint.kind is None:
                    pending.append(joint.child)
                else:
                    moving.append(joint)
        return moving

    def _walk(self, root_body: int) -> None:
        # A stack, not recursion: a chain may be longer than Python's call stack.
        pending = [(joint, root_body, Transform()) for joint in self._on(self._tree.root)]
        while pending:
            joint, body, link_placement = pending.pop()
            placement = link_placement @ joint.origin
            if joint is self._free_flyer:
                body, placement = self._add_root(), Transform()
            elif joint.kind is not None:
                body, placement = self._add_joint(joint, joint.kind, body, placement), Transform()
            self._add_link(joint.child, body, placement)
            pending.extend((after, body, placement) for after in self._on(joint.child))

    def _on(self, link: str) -> Iterable[JointDescription]:
        """Return the joints on a link, last first, to be pushed on a stack."""
        return reversed(self._tree.joints_on[link])

    def _add_root(self) -> int:
        """Add the free-flyer; its pose is free, so its placement is the identity."""
        return self._add_body(Joint(root_name(self._description.joints), JointKind.ROOT, WORLD))

    def _add_joint(
        self, joint: JointDescription, kind: JointKind, parent: int, placement: Transform
    ) -> int:
        if joint.chain:
            for each in chain(joint.name, joint.chain, parent, placement, len(self._joints)):
                last = self._add_body(each)
            return last
        limits = {name: getattr(joint, name) for name in ("lower", "upper", "velocity", "effort")}
        damping = joint.damping if kind in SINGLE else 0.0
        return self._add_body(
            Joint(joint.name, kind, parent, placement, joint.axis, damping=damping, **limits)
        )

    def _add_body(self, joint: Joint) -> int:
        self._joints.append(joint)
        return len(self._joints) - 1

    def _add_link(self, link: str, body: int, placement: Transform) -> None:
        self._frames.append(Frame(link, body, placement))


def _uncounted(description: Description) -> dict[str, list[str]]:
    """Return the forces of joints that do not count; see :func:`warn_of_uncounted`."""
    joints = [joint for joint in description.joints.values() if joint.kind is not None]
    several = [joint for joint in joints if joint.chain or joint.kind not in SINGLE]
    return {
        "dry friction of joint": [joint.name for joint in joints if joint.friction],
        "damping of joint with several freedoms": [each.name for each in several if each.damping],
    }


def with_joint_types(description: Description, side: SideFile) -> Description:
    """Return the description with the joints as the side file has them."""
    joints = dict(description.joints)
    for name, letters in side.chains.items():
        if name not in joints:
            raise RobotError(f"joints: {unknown('joint', name, joints)}")
        if joints[name].mimic is not None:
            raise RobotError(f"joints: {name!r} has a <mimic>; it cannot be of another type")
        kind = JointKind.REVOLUTE if letters else None
        joints[name] = replace(
            joints[name], kind=kind, chain=letters, lower=-np.inf, upper=np.inf
        )
    return replace(description, joints=joints)
