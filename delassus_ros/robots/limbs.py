"""Limbs of a robot from its description: contacts at their ends, fingers, wheels."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from delassus_ros.contacts import Contact
from delassus_ros.model.joint import WORLD, JointKind
from delassus_ros.model.reading.mujoco import body_names
from delassus_ros.model.reading.numbers import number, numbers_in
from delassus_ros.model.robot import Robot
from delassus_ros.model.spatial import Array, Transform
from delassus_ros.rbda.rotors import redistribute
from delassus_ros.robots.base import WHEEL, either

_FEW = 8
"""Number of ends up to which all are proposed; of more ends (e.g. fingers), those named below."""
_NAMED = ("foot", "sole", "toe", "ankle", "hand", "palm", "wrist", "tool", "gripper", "tcp")
_FLAT = ("sole", "hand", "palm", "wrist", "tool", "gripper", "tcp")
"""Parts of names of links that touch with a surface, used without a collision shape."""
_UNTOUCHED = re.compile(
    r"camera|optical|lidar|velodyne|laser|sensor|propeller|(?<![a-z])(imu|head|rotor)",
    re.IGNORECASE,
)
"""Names of links that are not meant to touch."""
_BEST = (
    "sole", "foot", "tcp|tool", "palm",
    "(?<![a-z])(ee|eef)(?![a-z])|effector|grasp|grip_site", "hand", "gripper", "wrist",
)  # fmt: skip
"""Names of the frames of a limb's last body, best first; the frame that touches is called so."""
_FINGER = re.compile(
    r"finger|thumb|knuckle|jaw|gripper(?!_?(base|link$|frame|palm|tool|center|yaw|roll|pitch))",
    re.IGNORECASE,
)
"""Names of joints and links of fingers and of the jaws of grippers."""
_LIGHT = 0.1
"""Share of the robot's mass below which a body that carries several joints is a hand."""
_LEVEL = 2e-3
"""Largest distance of spheres from a plane, and difference of their radii, for one sole [m]."""


RULE = (
    "Contacts are the ends of limbs, without fingers; wheels, cameras, further sensors, heads and",
    f"rotors are excluded. Of more than {_FEW} ends, those with {either(_NAMED)}",
    "in the name are contacts. A sphere is a point; several spheres in a plane, a box or a",
    f"cylinder are a surface. Without a shape, a frame with {either(_FLAT)}",
    "in the name is a surface.",
)
"""Rule of the proposed contacts, in lines."""


@dataclass(frozen=True)
class Proposal:
    """A frame that may touch.

    Attributes
    ----------
    frame : name of the frame.
    kind : ``"point"`` or ``"surface"``.
    why : reason for the kind, in a few words.
    chosen : whether the end is proposed as a contact.
    xyz : point of contact in the frame [m].
    """

    frame: str
    kind: str
    why: str
    chosen: bool
    xyz: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def contact(self) -> Contact:
        """Return the proposal as a contact with the name of its frame."""
        return Contact(self.frame, self.frame, self.kind, Transform.from_xyz_rpy(self.xyz))


@dataclass(frozen=True)
class _Shape:
    """A collision shape of a link: its kind, its centre, and the radius of a sphere [m]."""

    kind: str
    centre: Array | None
    radius: float


def proposals(robot: Robot, document: Element) -> list[Proposal]:
    """Return possible contacts: one per limb, at its sole, tool, palm or wrist.

    Parameters
    ----------
    document : robot description, a URDF, whose collision shapes determine the kinds.
    """
    return Limbs(robot).proposals(urdf_shapes(document))


class Limbs:
    """The ends of a robot's limbs, its hands and its wheels.

    A limb ends before its fingers: the joints of a gripper, and those below a light body that
    carries several joints.

    Parameters
    ----------
    robot : the robot.

    Attributes
    ----------
    ends : bodies at the ends of limbs.
    fingers : names of the joints of fingers, in the order of the robot's joints.
    wheels : names of the frames of wheels.
    """

    def __init__(self, robot: Robot) -> None:
        # Without the frames of loops closed by rows: ends do not depend on how loops are closed.
        self._robot = robot = robot.clustered
        kept = set(redistribute(robot).kept if robot.is_closed else range(len(robot.bodies)))
        self._frames: dict[int, list[str]] = {}
        for frame in robot.frames.values():
            self._frames.setdefault(frame.body, []).append(frame.name)
        self._children: dict[int, list[int]] = {i: [] for i in (WORLD, *range(len(robot.joints)))}
        for i, joint in enumerate(robot.joints):
            if i in kept:
                self._children[joint.parent].append(i)
        hands = self._hands()
        below = {body for hand in hands for body in self._below(hand)}
        self.fingers = [robot.joints[i].name for i in sorted(below) if robot.joints[i].kind.nq]
        leaves = [
            i for i in sorted(kept)
            if not self._children[i] and i in self._frames and not self._is_separate(i)
        ]  # fmt: skip
        rolling = {i for i in leaves if self._rolls(i)}
        self.wheels = [self._frames[i][0] for i in leaves if i in rolling]
        self.ends = [
            i for i in sorted(kept)
            if i in hands or (i in leaves and i not in below and i not in rolling)
        ]  # fmt: skip

    def proposals(self, shapes: Mapping[str, Sequence[_Shape]]) -> list[Proposal]:
        """Return the ends of limbs as contacts, with kinds by the collision shapes of links."""
        able = {self._frame(i): self._touches(i) for i in self.ends}
        some = [frame for frame, touches in able.items() if touches]
        few = some if len(some) <= _FEW else list(filter(_is_named, some)) or some[:_FEW]
        found = []
        for end in able:
            kind, why, xyz = _kind(self._robot, end, shapes)
            found.append(Proposal(end, kind, why, end in few, xyz))
        return found

    def _hands(self) -> set[int]:
        """Return the bodies that carry fingers, none of them below another one."""
        robot = self._robot
        total = sum(body.inertia.mass for body in robot.bodies)
        found: set[int] = set()
        for i, joint in enumerate(robot.joints):
            above = found & set(self._above(i))
            if joint.kind is JointKind.ROOT or above or not self._children[i]:
                continue
            if any(WHEEL.search(name) for name in self._frames.get(i, [])):
                continue
            below = self._below(i)
            gripping = not _FINGER.search(joint.name) and all(
                _FINGER.search(robot.joints[k].name) for k in self._children[i]
            )
            several = len(self._children[i]) > 1 and not any(map(self._rolls, below))
            mass = sum(robot.bodies[k].inertia.mass for k in (i, *below))
            if gripping or (several and mass < _LIGHT * total and self._touches(i)):
                found.add(i)
        return found

    def _above(self, body: int) -> list[int]:
        found = []
        while (body := self._robot.joints[body].parent) != WORLD:
            found.append(body)
        return found

    def _below(self, body: int) -> list[int]:
        """Return the bodies that a body carries."""
        found = list(self._children[body])
        for each in found:  # grows meanwhile
            found += self._children[each]
        return found

    def _is_separate(self, body: int) -> bool:
        """Return whether a body floats beside the robot, as a ball of a scene does."""
        kinds = {self._robot.joints[i].kind for i in (body, *self._above(body))}
        return JointKind.FLOATING in kinds

    def _rolls(self, body: int) -> bool:
        """Return whether a body is a wheel by its names."""
        names = [self._robot.joints[body].name, *self._frames.get(body, [])[:1]]
        return any(WHEEL.search(name) for name in names)

    def _frame(self, body: int) -> str:
        """Return the frame of a body that touches: the best name, else the last one."""
        names = self._frames.get(body) or [self._robot.joints[body].name]
        # A site with the name of its body is "name/site".
        names = [name for name in names if not name.endswith("/site")] or names
        able = [name for name in names if not _UNTOUCHED.search(name)] or names
        for word in _BEST:
            for name in able:
                if re.search(word, name, re.IGNORECASE) and not _FINGER.search(name):
                    return name
        plain = [name for name in able if not _FINGER.search(name)]
        return (plain or able)[-1]

    def _touches(self, body: int) -> bool:
        """Return whether a body is meant to touch: its first link is no sensor, e.g. a head."""
        frames = self._frames.get(body, [])
        return bool(frames) and not _UNTOUCHED.search(frames[0])


def _is_named(frame: str) -> bool:
    return any(word in frame.lower() for word in _NAMED)


def urdf_shapes(document: Element) -> dict[str, list[_Shape]]:
    """Return the collision shapes per link."""
    return {
        link.get("name", ""): [
            _Shape(shape.tag, *_measures(collision, shape))
            for collision in link.iterfind("collision")
            for shape in collision.iterfind("geometry/*")
        ]
        for link in document.iter("link")
    }


def mujoco_shapes(model: Any) -> dict[str, list[_Shape]]:
    """Return the shapes per body of a mujoco.MjModel that may touch."""
    import mujoco

    names, found = body_names(model), dict[str, list[_Shape]]()
    for g in range(model.ngeom):
        if model.geom_contype[g] or model.geom_conaffinity[g]:
            kind = mujoco.mjtGeom(int(model.geom_type[g])).name.removeprefix("mjGEOM_").lower()
            shape = _Shape(kind, model.geom_pos[g].copy(), float(model.geom_size[g, 0]))
            found.setdefault(names[int(model.geom_bodyid[g])], []).append(shape)
    return found


def _measures(collision: Element, shape: Element) -> tuple[Array | None, float]:
    """Return a shape's centre in its link and its radius [m]; None if they are unreadable."""
    origin = collision.find("origin")
    place = "0 0 0" if origin is None else origin.get("xyz", "0 0 0")
    try:
        return np.reshape(numbers_in(place), 3), number(shape.get("radius", "0"))
    except ValueError:
        # Dynamics need no shapes: errors in shapes are not reported.
        return None, 0.0


def _kind(
    robot: Robot, frame: str, shapes: Mapping[str, Sequence[_Shape]]
) -> tuple[str, str, tuple[float, float, float]]:
    """Return the kind of contact at a frame, the reason, and the point of contact in the frame."""
    links = [frame]
    if not shapes.get(frame):
        # Shapes of further links of the same body are used if the link has no shape.
        body = robot.frames[frame].body
        links = [name for name, other in robot.frames.items() if other.body == body]
    kinds = {shape.kind for name in links for shape in shapes.get(name, ())}
    here = (0.0, 0.0, 0.0)
    if kinds == {"sphere"}:
        sole = _sole(robot, frame, links, shapes)
        if sole is not None:
            return "surface", "spheres in a plane", sole
    flat_shapes = kinds & {"box", "cylinder"}
    balls = [(name, shape) for name in links for shape in shapes.get(name, ())
             if shape.kind == "sphere"]  # fmt: skip
    if balls and (kinds == {"sphere"} or (len(balls) == 1 and not flat_shapes)):
        return "point", "a sphere", _centre(robot, frame, *balls[0]) if len(balls) == 1 else here
    if flat_shapes and "sphere" not in kinds:
        return "surface", f"a {min(flat_shapes)}", here
    flat = any(word in frame.lower() for word in _FLAT)
    return ("surface", "by its name", here) if flat else ("point", "no shape says it", here)


def _centre(robot: Robot, frame: str, link: str, ball: _Shape) -> tuple[float, float, float]:
    """Return the centre of a sphere of a link, in a frame of the same body [m]."""
    if ball.centre is None:
        return 0.0, 0.0, 0.0
    frames = robot.frames
    between = frames[frame].placement.inverse() @ frames[link].placement
    x, y, z = (between @ Transform(translation=ball.centre)).translation.round(4) + 0.0
    return float(x), float(y), float(z)


def _sole(
    robot: Robot, frame: str, links: Sequence[str], shapes: Mapping[str, Sequence[_Shape]]
) -> tuple[float, float, float] | None:
    """Return the middle of the sole below three or more spheres, in a frame; None without one.

    The spheres have to lie in a plane. The sole is on the side of the plane away from the joint.
    """
    to_body = [(robot.frames[name].placement, shape)
               for name in links for shape in shapes.get(name, ())]  # fmt: skip
    radii = [shape.radius for _, shape in to_body]
    centres = [pose.rotation @ shape.centre + pose.translation
               for pose, shape in to_body if shape.centre is not None]  # fmt: skip
    if not 3 <= len(centres) == len(radii) or np.ptp(radii) > _LEVEL:
        return None
    middle = np.mean(centres, axis=0)
    _, (_, width, height), axes = np.linalg.svd(np.array(centres) - middle)
    if width <= _LEVEL or height > _LEVEL:
        return None
    normal = axes[2]
    away = 1.0 if normal @ middle >= 0.0 else -1.0
    on_body = Transform(np.eye(3), middle + away * np.mean(radii) * normal)
    x, y, z = (robot.frames[frame].placement.inverse() @ on_body).translation.round(4) + 0.0
    return float(x), float(y), float(z)
