"""Contacts proposed for a robot: the ends of its limbs, and the shapes that touch there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from delassus.contacts import Contact, Moving
from delassus.model.robot import Robot
from delassus.model.spatial import Array, Transform, rpy_from_rotation
from delassus.robots.base import either
from delassus.robots.limbs import Limbs, is_finger
from delassus.robots.pose import pose_of
from delassus.robots.shapes import LinkShape, LinkShapes
from delassus.robots.wheels import Wheel

_FEW = 8
"""Number of ends up to which all are proposed; of more ends (e.g. fingers), those named below."""
_NAMED = ("foot", "sole", "toe", "ankle", "hand", "palm", "wrist", "tool", "gripper", "tcp")
_FLAT = ("sole", "palm")
"""Parts of names of links that touch with a surface, used without a collision shape."""
_LEVEL_M = 2e-3
"""Largest distance of spheres from a plane, and difference of their radii, for one sole [m]."""
_ALIGNED = np.cos(np.deg2rad(30.0))
"""Cosine of the angle between the vertical and an axis of a foot up to which the axis is meant."""
_BELOW = 0.5
"""Least share of the way from the root link to a foot that leads downwards."""
_BAND_M, _BAND = 3e-3, 0.1
"""Height of the lowest face: at least [m], and as a share of the height of the shape."""
_LONG_M, _NARROW_M, _SHARE = 0.05, 0.02, 0.6
"""Least length of the lowest face of a foot below one axis, width of a face that is a line [m],
and least share of the foot's length that the face has."""
_ANKLE = 2
"""Number of axes below which a foot is a surface whatever its shape."""
_ASSUMED_M = (0.2, 0.1)
"""Length and width of a foot below two axes whose shape is not known [m]."""
_HISSING = ("box", "mesh")
ASSUMED = "a point is assumed: this link has no collision box or sphere"
"""Reason of a point without a shape."""

FIXED_WHEEL = "a wheel of a base that is fixed"
"""Reason of a wheel that is no contact."""

RULE = (
    "Contacts are the ends of limbs, without fingers; cameras, further sensors, heads, torsos and",
    f"rotors are excluded. Of more than {_FEW} ends, those with {either(_NAMED)}",
    "in the name are contacts. A foot below two ankle axes is a surface on the lowest face of its",
    "shape. Elsewhere a sphere is a point; several spheres in a plane or a box are a surface.",
    f"Without a shape, a frame with {either(_FLAT)} in the name is a surface. A wheel of a",
    "floating base is a point at its lowest point, which moves on the wheel.",
)
"""Rule of the proposed contacts, in lines."""


@dataclass(frozen=True)
class Proposal:
    """A frame that may touch.

    Attributes
    ----------
    kind : ``"point"`` or ``"surface"``.
    chosen : whether the end is proposed as a contact.
    xyz : point of contact in the frame [m].
    rpy : orientation of the contact in the frame, whose z axis points away from the ground [rad].
    dimensions : length along x and width along y of a surface [m]; empty if they are not known.
    moving : ``"pose"`` for a wheel, whose lowest point moves on it, else ``"nothing"``.
    """

    frame: str
    kind: str
    why: str
    chosen: bool = True
    xyz: tuple[float, ...] = (0.0, 0.0, 0.0)
    rpy: tuple[float, ...] = (0.0, 0.0, 0.0)
    dimensions: tuple[float, ...] = ()
    moving: Moving = "nothing"

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the contact in delassus_node that are not defaults."""
        found: dict[str, Any] = {"kind": self.kind}
        found |= {part: list(values) for part in ("xyz", "rpy", "dimensions")
                  if any(values := getattr(self, part))}  # fmt: skip
        if self.moving != "nothing":
            found["moving"] = self.moving
        return found

    def contact(self) -> Contact:
        """Return the proposal as a contact with the name of its frame."""
        placement = Transform.from_xyz_rpy(self.xyz, self.rpy)
        return Contact(
            self.frame, self.frame, self.kind, placement, self.moving,
            dimensions=self.dimensions or None,
        )  # fmt: skip


def proposals(robot: Robot, shapes: LinkShapes, limbs: Limbs | None = None) -> list[Proposal]:
    """Return possible contacts: one per limb, at its sole, tool, palm or wrist, and wheels.

    Parameters
    ----------
    shapes : shapes of the links, which determine the kinds of contacts.
    """
    limbs = Limbs(robot) if limbs is None else limbs
    return _Proposer(limbs, shapes).proposals()


class _Proposer:
    """Determines contacts of a robot in a posture inside its limits, with the root link level."""

    def __init__(self, limbs: Limbs, shapes: LinkShapes) -> None:
        self._limbs, self._shapes, self._robot = limbs, shapes, limbs.robot
        q, offsets = self._robot.neutral(), self._robot.q_offsets
        entries = dict(zip((joint.name for joint in self._robot.joints), offsets, strict=True))
        for name, value in pose_of(self._robot).items():
            q[entries[name]] = value
        self._poses = limbs.skeleton.poses(q)

    def proposals(self) -> list[Proposal]:
        limbs = self._limbs
        able = [limbs.frame(i) for i in limbs.ends if limbs.touches(i)]
        few = able if len(able) <= _FEW else list(filter(_is_named, able)) or able[:_FEW]
        ends = [replace(self._end(i), chosen=limbs.frame(i) in few) for i in limbs.ends]
        return ends + [self._wheel(i) for i in limbs.wheels]

    def _end(self, body: int) -> Proposal:
        """Return the contact at the end of a limb."""
        frame, axes = self._limbs.frame(body), self._limbs.ankle_axes(body)
        links = [name for name in self._links(body) if name == frame or not is_finger(name)]
        found = self._foot(frame, links, axes) if axes else None
        # Shapes of further links of the same body are used if the link has no shape.
        return found or self._plain(frame, [frame] if self._touching([frame]) else links)

    def _links(self, body: int) -> list[str]:
        return [name for name, frame in self._robot.frames.items() if frame.body == body]

    def _foot(self, frame: str, links: Sequence[str], axes: int) -> Proposal | None:
        """Return the surface of a foot below an ankle; None if no surface is recognised."""
        place = self._limbs.skeleton.frame(self._poses, frame)[:3, 3]
        if -place[2] < _BELOW * np.linalg.norm(place):
            return None  # the root link is not level in this posture
        up = self._axis(frame, 2)
        turn = self._level(frame, up)
        shapes = [shape for _, shape in self._touching(links)]
        points, lacking = self._points(frame, links, -up), ""
        counts = Counter(each.kind for each in shapes if each.size or each.vertices is not None)
        if not len(points):
            counts = Counter(["mesh"])
            vertices, lacking = self._shapes.meshes(links)
            points = _in(self._robot, frame, vertices)
        if not len(points):
            if axes < _ANKLE:
                return None
            assumed = " x ".join(f"{edge:g}" for edge in _ASSUMED_M)
            why = (
                f"a foot below two ankle axes; {assumed} m at this frame are assumed, as {lacking}"
            )
            placement = Transform(turn)
            return _proposal(frame, "surface", why, placement, _ASSUMED_M)
        centre, size, whole = _lowest_face(points @ turn)
        least = _NARROW_M if axes >= _ANKLE else max(_LONG_M, _SHARE * float(max(whole)))
        if max(size) < least:
            return None
        length, width = (round(max(float(edge), _NARROW_M), 3) for edge in size)
        what = " and ".join(
            kind if count == 1 else f"{count} {kind}{'es' if kind in _HISSING else 's'}"
            for kind, count in sorted(counts.items())
        )
        why = f"the lowest face of its {what}"
        return _proposal(frame, "surface", why, Transform(turn, turn @ centre), (length, width))

    def _plain(self, frame: str, links: Sequence[str]) -> Proposal:
        """Return the contact of another end: a point, or a surface by shapes or names."""
        pairs = self._touching(links)
        kinds = {shape.kind for _, shape in pairs}
        if kinds == {"sphere"}:
            sole = self._sole(frame, pairs)
            if sole is not None:
                return _proposal(frame, "surface", "spheres in a plane", sole)
        balls = [pair for pair in pairs if pair[1].kind == "sphere"]
        alone = len(balls) == 1 and not kinds & {"box", "cylinder"}
        if balls and (kinds == {"sphere"} or alone):
            centres = [_in(self._robot, frame, self._centre(*ball)) for ball in balls]
            place = centres[0] if len(balls) == 1 and len(centres[0]) else np.zeros((1, 3))
            return _proposal(frame, "point", "a sphere", Transform(translation=place[0]))
        if "box" in kinds and "sphere" not in kinds:
            return _proposal(frame, "surface", "a box")
        if any(word in frame.lower() for word in _FLAT):
            return _proposal(frame, "surface", "by its name")
        if kinds & {"box", "sphere"}:
            several = " and ".join(sorted(kinds))
            return _proposal(frame, "point", f"a point is assumed: this link has {several} shapes")
        return _proposal(frame, "point", ASSUMED)

    def _wheel(self, body: int) -> Proposal:
        """Return the contact of a wheel: its lowest point, if the base floats."""
        frame = self._limbs.frame(body)
        if self._robot.base == "fixed":
            return Proposal(frame, "point", FIXED_WHEEL, chosen=False)
        wheel = Wheel(self._robot, frame)
        links = self._links(body)
        spokes = [self._points(frame, links, direction) for direction in wheel.across()]
        points = np.concatenate(spokes)
        if not len(points):
            points = _in(self._robot, frame, self._shapes.meshes(links)[0])
        pose = self._limbs.skeleton.frame(self._poses, frame)
        if not len(points) or not wheel.stands(pose):
            return Proposal(frame, "point", "a wheel whose radius is not known", chosen=False)
        radius, middle = wheel.measured(points)
        found = _proposal(
            frame, "point", f"a wheel of radius {radius:.3g} m, at its lowest point",
            wheel.lowest(pose, radius, middle),
        )  # fmt: skip
        return replace(found, moving="pose")

    def _touching(self, links: Sequence[str]) -> list[tuple[str, LinkShape]]:
        return [(name, shape) for name in links for shape in self._shapes.touching.get(name, ())]

    def _axis(self, frame: str, k: int) -> Array:
        """Return an axis of the root link in a frame (3,), or the axis of the frame near it."""
        axis: Array = self._limbs.skeleton.frame(self._poses, frame)[k, :3]
        nearest = int(np.argmax(np.abs(axis)))
        if abs(axis[nearest]) < _ALIGNED:
            return axis
        found: Array = np.sign(axis[nearest]) * np.eye(3)[nearest]
        return found

    def _level(self, frame: str, up: Array) -> Array:
        """Return the axes (3, 3) of a contact in a frame, as columns: z upwards, x forwards."""
        if up[2] == 1.0:
            return np.eye(3)
        forward = self._axis(frame, 0)
        forward = forward - (forward @ up) * up
        x = forward / np.linalg.norm(forward)
        return np.column_stack([x, np.cross(up, x), up]) + 0.0

    def _points(self, frame: str, links: Sequence[str], direction: Array) -> Array:
        """Return points (n, 3) of shapes in a frame, the farthest in a direction among them."""
        robot, found = self._robot, [np.empty((0, 3))]
        for name, shape in self._touching(links):
            between = robot.frames[frame].placement.inverse() @ robot.frames[name].placement
            points = shape.points(between.rotation.T @ direction)
            found.append(points @ between.rotation.T + between.translation)
        return np.concatenate(found)

    def _centre(self, link: str, shape: LinkShape) -> Array:
        """Return the centre (1, 3) of a shape in its body; none of an unreadable shape."""
        if shape.pose is None:
            return np.empty((0, 3))
        place = self._robot.frames[link].placement @ shape.pose
        return place.translation[np.newaxis]

    def _sole(self, frame: str, balls: Sequence[tuple[str, LinkShape]]) -> Transform | None:
        """Return the middle of the sole below three or more spheres, in a frame; None without one.

        The spheres have to lie in a plane. The sole is on the side of the plane away from the
        joint.
        """
        radii = [shape.size[0] for _, shape in balls if shape.size]
        centres = np.concatenate([self._centre(*ball) for ball in balls])
        if not 3 <= len(centres) == len(radii) == len(balls) or np.ptp(radii) > _LEVEL_M:
            return None
        middle = centres.mean(axis=0)
        _, (_, width, height), axes = np.linalg.svd(centres - middle)
        if width <= _LEVEL_M or height > _LEVEL_M:
            return None
        away = 1.0 if axes[2] @ middle >= 0.0 else -1.0
        on_body = middle + away * np.mean(radii) * axes[2]
        return Transform(translation=_in(self._robot, frame, on_body[np.newaxis])[0])


def _proposal(
    frame: str,
    kind: str,
    why: str,
    placement: Transform | None = None,
    dimensions: tuple[float, ...] = (),
) -> Proposal:
    """Return a proposal with a rounded placement."""
    placement = Transform() if placement is None else placement
    xyz = (placement.translation.round(4) + 0.0).tolist()
    rpy = (rpy_from_rotation(placement.rotation) + 0.0).tolist()
    return Proposal(frame, kind, why, True, tuple(xyz), tuple(rpy), dimensions)


def _in(robot: Robot, frame: str, points: Array) -> Array:
    """Return points (n, 3) of a frame's body in the frame."""
    back = robot.frames[frame].placement.inverse()
    found: Array = points @ back.rotation.T + back.translation
    return found


def _lowest_face(points: Array) -> tuple[Array, Array, Array]:
    """Return centre (3,) and edges (2,) of the lowest face of points (n, 3), and of all points."""
    heights = points[:, 2] - points[:, 2].min()
    face = points[heights <= max(_BAND_M, _BAND * heights.max())]
    low, high = face.min(axis=0), face.max(axis=0)
    centre = np.array([*(0.5 * (low + high))[:2], low[2]])
    return centre, (high - low)[:2], np.ptp(points, axis=0)[:2]


def _is_named(frame: str) -> bool:
    return any(word in frame.lower() for word in _NAMED)
