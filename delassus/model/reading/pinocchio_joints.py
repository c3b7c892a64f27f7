"""The joints of a Pinocchio model as parts that a robot has: one table for reader and states."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from delassus.errors import RobotError
from delassus.model.joint import JointKind
from delassus.model.spatial import Array, Transform

MIMIC = "JointModelMimic"
FREE_FLYER = "JointModelFreeFlyer"
COMPOSITE = "JointModelComposite"
SPHERICAL = "JointModelSpherical"
_SUFFIXES = {
    "JointModelTranslation": ("PX", "PY", "PZ"),
    "JointModelSphericalZYX": ("Z", "Y", "X"),
    "JointModelUniversal": ("1", "2"),
}
"""Suffixes of the parts of joints that are single joints, one after the other."""
_TURNS = (SPHERICAL, "JointModelSphericalZYX")
DIRECTION_ROUNDING = 1e-12
"""Largest part of a joint's direction that counts as zero."""
_Z = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Leading:
    """Positions of a joint are scaling · (position of `joint`) + offset."""

    joint: str
    scaling: float
    offset: float


@dataclass(frozen=True, eq=False)
class Part:
    """A part of a Pinocchio joint, one after the other from the parent to the body.

    Attributes
    ----------
    name : of the joint of the robot.
    kind : of this joint; None for a ball, which becomes a chain.
    axis : (3,) unit vector in the part's frame.
    placement : of the part's frame in that of the part before, or of Pinocchio's joint.
    what : the type as Pinocchio calls it.
    joint : the object of Pinocchio that computes the motion.
    q, v : entries of Pinocchio's q and v; empty for a part that follows another one.
    leading : what the part follows; its q and v are those of the leading joint.
    """

    name: str
    kind: JointKind | None
    axis: tuple[float, ...]
    placement: Transform
    what: str
    joint: Any
    q: slice
    v: slice
    leading: Leading | None = field(default=None)

    @property
    def is_free(self) -> bool:
        """Whether the part has six freedoms."""
        return self.kind is JointKind.FLOATING


def parts_of(model: Any, j: int, neutral: Array) -> list[Part]:
    """Return the parts of joint j of a pinocchio.Model.

    A composite of a translation and a rotation on the universe is one part with six freedoms.

    Parameters
    ----------
    neutral : Pinocchio's neutral q.

    Raises
    ------
    RobotError
        If a joint has no counterpart; names it, its type and what may replace it.
    """
    name, joint = model.names[j], model.joints[j]
    if joint.shortname() == MIMIC:
        return [_mimic(model, j, joint, neutral)]
    if joint.shortname() != COMPOSITE:
        return _parts(name, joint, Transform(), neutral)
    composite = joint.extract()
    inner = list(zip(composite.joints, composite.jointPlacements, strict=True))
    if int(model.parents[j]) == 0 and _floats(inner):
        return [_whole(name, joint, JointKind.FLOATING, _Z)]
    found: list[Part] = []
    for k, (own, pose) in enumerate(inner):
        placement = Transform(pose.rotation, pose.translation)
        found += _parts(f"{name}_{k + 1}", own, placement, neutral)
    return found


def _floats(inner: list[tuple[Any, Any]]) -> bool:
    """Return whether the joints in a composite are a translation and a rotation in all axes."""
    names = [joint.shortname() for joint, _ in inner]
    return len(names) == 2 and names[0] == "JointModelTranslation" and names[1] in _TURNS


def _whole(
    name: str,
    joint: Any,
    kind: JointKind | None,
    axis: tuple[float, ...],
    placement: Transform | None = None,
    leading: Leading | None = None,
) -> Part:
    q = slice(joint.idx_q, joint.idx_q + joint.nq)
    v = slice(joint.idx_v, joint.idx_v + joint.nv)
    pose = Transform() if placement is None else placement
    return Part(name, kind, axis, pose, joint.shortname(), joint, q, v, leading)


def _parts(name: str, joint: Any, placement: Transform, neutral: Array) -> list[Part]:
    """Return the parts of a joint that is neither mimic nor composite."""
    short = joint.shortname()
    if short == FREE_FLYER:
        return [_whole(name, joint, JointKind.FLOATING, _Z, placement)]
    if short == "JointModelPlanar":
        return [_whole(name, joint, JointKind.PLANAR, _Z, placement)]
    if short == SPHERICAL:
        return [_whole(name, joint, None, _Z, placement)]
    if short in (COMPOSITE, "JointModelEllipsoid"):
        raise RobotError(
            f"joint {name!r} is a {short}, which has no counterpart here; expected single joints: "
            "write it as a chain of joints, with a FunctionConstraint for what ties them"
        )
    S = _directions(joint, neutral)
    if short in _SUFFIXES:
        names = [f"{name}_{suffix}" for suffix in _SUFFIXES[short]]
        return [
            _single(own, joint, S[:, k], placement if k == 0 else Transform(), k)
            for k, own in enumerate(names)
        ]
    linear, angular = S[:3, 0], S[3:, 0]
    turns, slides = (np.abs(each).max() >= DIRECTION_ROUNDING for each in (angular, linear))
    if not (turns and slides):
        return [_single(name, joint, S[:, 0], placement, 0)]
    axis = angular / np.linalg.norm(angular)
    pitch = float(linear @ axis)
    if np.abs(linear - pitch * axis).max() >= DIRECTION_ROUNDING:
        raise RobotError(
            f"joint {name!r} is a {short} whose motion is no screw about its own axis; expected "
            "revolute, prismatic and helical joints: move the joint's frame onto the axis"
        )
    slide = _whole(
        f"{name}_slide", joint, JointKind.PRISMATIC, tuple(axis.tolist()), placement,
        Leading(name, pitch, 0.0),
    )  # fmt: skip
    return [slide, _whole(name, joint, JointKind.REVOLUTE, tuple(axis.tolist()))]


def _directions(joint: Any, neutral: Array) -> Array:
    """Return the motion subspace (6, nv) of a joint at the neutral position."""
    data = joint.createData()
    joint.calc(data, neutral)
    return np.asarray(data.S, dtype=float).reshape(6, -1)


def _single(name: str, joint: Any, S: Array, placement: Transform, k: int) -> Part:
    """Return freedom k of a joint, along (6,) S, as a revolute or prismatic joint."""
    turns = np.abs(S[3:]).max() >= DIRECTION_ROUNDING
    direction = (S[3:] if turns else S[:3]).tolist()
    axis = tuple(each / math.hypot(*direction) for each in direction)
    kind = JointKind.REVOLUTE if turns else JointKind.PRISMATIC
    single = joint.nv == 1
    q = slice(joint.idx_q + k, joint.idx_q + (joint.nq if single else k + 1))
    v = slice(joint.idx_v + k, joint.idx_v + k + 1)
    return Part(name, kind, axis, placement, joint.shortname(), joint, q, v)


def _mimic(model: Any, j: int, joint: Any, neutral: Array) -> Part:
    """Return a joint that follows another one."""
    name, own = model.names[j], joint.extract()
    if not own.scaling:
        raise RobotError(
            f"joint {name!r} mimics another with multiplier 0, so that it does not move; "
            "expected another multiplier, or a fixed joint"
        )
    pairs = zip(model.mimicking_joints, model.mimicked_joints, strict=True)
    first = next(int(primary) for follower, primary in pairs if follower == j)
    # Pinocchio has the motion by the primary's position.
    S = _directions(joint, neutral)[:, 0] / own.scaling
    single = _single(name, joint, S, Transform(), 0)
    leader = model.joints[first]
    return Part(
        name, single.kind, single.axis, Transform(), joint.shortname(), joint,
        slice(leader.idx_q, leader.idx_q + leader.nq), slice(leader.idx_v, leader.idx_v + 1),
        Leading(model.names[first], float(own.scaling), float(own.offset)),
    )  # fmt: skip


def position_of(part: Part, q: Array) -> Array:
    """Return the entries of a robot's q of a part that is no ball and no free joint."""
    values = q[part.q]
    count = 1 if part.kind is not JointKind.PLANAR else JointKind.PLANAR.nq
    if len(values) != count:
        # Without bounds Pinocchio has cosine and sine of an angle.
        values = np.array([*values[:-2], np.arctan2(values[-1], values[-2])])
    if part.leading is not None:
        values = part.leading.scaling * values + part.leading.offset
    return values


def unit_entries(part: Part) -> slice | None:
    """Return the entries of Pinocchio's q of a part that have norm 1, None without such entries.

    A quaternion, or the cosine and sine of an angle.
    """
    size, end = part.q.stop - part.q.start, part.q.stop
    if part.is_free or part.kind is None:
        # A composite may end with three angles.
        return slice(end - 4, end) if size in (4, JointKind.FLOATING.nq) else None
    angle = JointKind.PLANAR.nq if part.kind is JointKind.PLANAR else 1
    return slice(end - 2, end) if size > angle else None


def write_position(part: Part, values: Array, q: Array) -> None:
    """Write the entries of Pinocchio's q; the inverse of :func:`position_of`."""
    if part.leading is not None:
        return
    if len(values) != part.q.stop - part.q.start:
        values = np.array([*values[:-1], np.cos(values[-1]), np.sin(values[-1])])
    q[part.q] = values
