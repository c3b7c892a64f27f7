"""From a URDF to a :class:`~delassus_ros.model.robot.Robot`: the tree of moving joints."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from delassus_ros.errors import RobotError
from delassus_ros.model.description import Description, JointDescription, describe
from delassus_ros.model.robot import WORLD, Base, Body, Frame, Joint, JointKind, Robot
from delassus_ros.model.spatial import Array, Inertia, Transform, skew
from delassus_ros.model.tree import Tree, listed
from delassus_ros.model.xml import parse_xml

PSD_TOLERANCE = 1e-6
"""How negative a body's principal inertia may be, relative to the largest one: published
inertias are rounded to a few digits."""
NOISE = 1e-12
"""Rotational inertia [kg·m²] taken for rounding, per kg and per kg·m² about the body's origin:
point masses come with noise of either sign."""


def read_urdf(source: str | bytes | Path, base: Base = "floating") -> Robot:
    """Read a URDF.

    Joints come depth first; at each link, in the order in which the document has them.
    Links on fixed joints are lumped into the body that carries them; every link stays as a
    frame. The frame of a moving link is the frame of its joint.

    With ``base="floating"`` the root link, with what is fixed to it, becomes body 0 on a
    free-flyer named ``"root"``. If the only joint that moves on it is a ``floating`` one, that
    joint already is the free-flyer: the root link is then the world. With ``base="fixed"`` the
    root link is welded to the world, and a ``floating`` joint has entries in q.

    Parameters
    ----------
    source : path of a file, or the XML itself (bytes, or text that starts with ``<``).
    base : ``"floating"`` or ``"fixed"``.

    Raises
    ------
    RobotError
        If the XML is broken or hostile, or the robot is not a tree or not physical; the
        message names the link or joint.
    """
    if base not in ("floating", "fixed"):
        raise RobotError(f"base must be 'floating' or 'fixed', got {base!r}")
    description = describe(parse_xml(source))
    tree = Tree(description)
    return _Assembly(description, tree, base).robot()


class _Assembly:
    """Moving joints, the links lumped on each of them and frames, put together depth first."""

    def __init__(self, description: Description, tree: Tree, base: Base) -> None:
        self._description = description
        self._tree = tree
        self._joints: list[Joint] = []
        self._lumped: list[list[tuple[str, Inertia]]] = []
        self._frames: list[Frame] = []
        moving = self._moving_on_root()
        self._free_flyer = None
        if base == "floating" and [joint.kind for joint in moving] == [JointKind.FLOATING]:
            self._free_flyer = moving[0]
        body = WORLD
        if base == "floating" and self._free_flyer is None:
            body = self._add_root()
        self._add_link(tree.root, body, Transform())
        self._walk(body)

    def robot(self) -> Robot:
        """Check the bodies and return the finished robot."""
        carrying = {joint.parent for joint in self._joints}
        bodies = []
        for i, (joint, lumped) in enumerate(zip(self._joints, self._lumped, strict=True)):
            inertia = sum((inertia for _, inertia in lumped), Inertia())
            if not (inertia.mass or inertia.rotational.any()):
                self._check_massless(joint, lumped[0][0], i in carrying)
            self._check_semidefinite(joint, inertia, lumped)
            bodies.append(Body(lumped[0][0], inertia))
        return Robot(self._description.name, self._joints, bodies, self._frames)

    def _moving_on_root(self) -> list[JointDescription]:
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
        return self._add_body(Joint(self._root_name(), JointKind.ROOT, WORLD))

    def _add_joint(
        self, joint: JointDescription, kind: JointKind, parent: int, placement: Transform
    ) -> int:
        return self._add_body(
            Joint(
                joint.name,
                kind,
                parent,
                placement,
                joint.axis,
                lower=joint.lower,
                upper=joint.upper,
            )
        )

    def _add_body(self, joint: Joint) -> int:
        self._joints.append(joint)
        self._lumped.append([])
        return len(self._joints) - 1

    def _add_link(self, link: str, body: int, placement: Transform) -> None:
        self._frames.append(Frame(link, body, placement))
        if body != WORLD:
            inertia = self._description.links[link].inertia
            self._lumped[body].append((link, inertia.in_parent(placement)))

    def _root_name(self) -> str:
        """Return ``"root"``, or the first of root_joint, root_joint_2, … no joint has."""
        taken = self._description.joints
        name, count = "root", 1
        while name in taken:
            name = "root_joint" if count == 1 else f"root_joint_{count}"
            count += 1
        return name

    def _check_massless(self, joint: Joint, link: str, carries: bool) -> None:
        """Refuse a body without any inertia where the mass matrix would be singular."""
        if joint.kind is JointKind.ROOT:
            names = listed([moving.name for moving in self._moving_on_root()]) or "none"
            raise RobotError(
                f"link {link!r}: the base floats but has no inertia, nor has any link fixed to "
                f"it (joints that move on it: {names}); give it an <inertial> or read the robot "
                "with base='fixed'"
            )
        if not carries:
            raise RobotError(
                f"link {link!r}: no inertia on the last link that joint {joint.name!r} moves, "
                "nor on links fixed to it; give it an <inertial> or make the joint fixed"
            )

    def _check_semidefinite(
        self, joint: Joint, inertia: Inertia, lumped: list[tuple[str, Inertia]]
    ) -> None:
        """Refuse a body that some rotation about its centre of mass would not resist.

        The triangle inequality is not asked for: published models break it. Nor are single
        links judged: those on fixed joints act through their body alone.
        """
        if _is_semidefinite(inertia):
            return
        link, worst = min(lumped, key=lambda part: float(_principal(part[1])[0]))
        shown = ", ".join(f"{value:.3g}" for value in _principal(worst))
        raise RobotError(
            f"link {link!r}: the inertia of the body that joint {joint.name!r} moves must be "
            f"positive semidefinite; principal inertias of this link: {shown} kg m^2"
        )


def _principal(inertia: Inertia) -> Array:
    """Return the principal inertias (3,) [kg·m²] about the centre of mass, smallest first."""
    h = skew(inertia.moment)
    about_com = inertia.rotational + (h @ h / inertia.mass if inertia.mass else 0.0)
    return np.asarray(np.linalg.eigvalsh(about_com), dtype=np.float64)


def _is_semidefinite(inertia: Inertia) -> bool:
    principal = _principal(inertia)
    noise = NOISE * (inertia.mass + np.abs(inertia.rotational).max())
    return bool(principal[0] >= -PSD_TOLERANCE * np.abs(principal).max() - noise)
