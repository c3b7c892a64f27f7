"""Joints: their kinds, and one joint of a tree with its placement, axis, armature, spring."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from delassus.arguments import instance, number, text, whole
from delassus.errors import RobotError
from delassus.model.spatial import Array, Transform, checked, rotation_about

WORLD = -1
"""Parent index of joints, and body index of frames, that belong to the world."""
INDEX = "the index of a body, or WORLD"
"""Expected values of a joint's parent and a frame's body, for messages."""
UNIT_TOLERANCE = 1e-9
"""Largest difference between 1 and the length of a joint axis."""
JOINT = "Joint('knee', JointKind.REVOLUTE, parent=0)"
"""The call that makes a joint, for messages."""


class JointKind(Enum):
    """Kind of a moving joint; `nq` entries of q, `nv` degrees of freedom."""

    REVOLUTE = ("revolute", 1, 1)
    """Also continuous. q: angle [rad] about the axis."""
    PRISMATIC = ("prismatic", 1, 1)
    """q: displacement [m] along the axis."""
    PLANAR = ("planar", 3, 3)
    """q: x, y [m] in the plane normal to the axis, then the angle [rad] about it."""
    FLOATING = ("floating", 7, 6)
    """Inside the tree. q: x, y, z [m], quaternion x, y, z, w."""
    ROOT = ("root", 0, 6)
    """The free-flyer of a floating base: six freedoms, no entry in q."""

    def __init__(self, label: str, nq: int, nv: int) -> None:
        self.label = label
        self.nq = nq
        self.nv = nv


SINGLE = (JointKind.REVOLUTE, JointKind.PRISMATIC)
"""Kinds with one freedom, about or along an axis: they may have an armature, spring and damper."""


def root_name(taken: Container[str]) -> str:
    """Return ``"root"``, or the first of root_joint, root_joint_2, … that no joint has."""
    name, count = "root", 1
    while name in taken:
        name = "root_joint" if count == 1 else f"root_joint_{count}"
        count += 1
    return name


@dataclass(frozen=True, eq=False)
class Joint:
    """Joint i, which moves body i.

    Attributes
    ----------
    name : as in the URDF; ``"root"`` for the free-flyer.
    kind : see :class:`JointKind`.
    parent : index of the parent body, or :data:`WORLD`.
    placement : pose of the joint frame in the parent body's frame at q = 0.
    axis : (3,) unit vector in the joint frame (normal of the plane for planar joints).
        A planar joint's x and y directions are those of the smallest rotation that takes
        the joint frame's z axis to `axis`.
    armature : inertia [kg·m²] or mass [kg] added at the joint; negative where the inertia of the
        bodies includes rotors in full.
    lower, upper : position limits [rad or m], infinite without limits.
    velocity, effort : limits of the rate [rad/s or m/s] and of the torque or force [N·m or N],
        infinite without one. G does not depend on these; the node detects implausible joint
        states by them.
    stiffness : of a spring between the parent body and the moved body [N·m/rad or N/m]; its torque
        is −stiffness · (q − spring_reference).
    spring_reference : position at which this spring has no torque [rad or m].
    damping : viscous friction of the joint [N·m·s/rad or N·s/m]; its torque is −damping · q̇.

    Raises
    ------
    RobotError
        If the name is no text, the kind no JointKind, the parent no whole number, the placement no
        Transform, the axis not a unit vector, the armature, spring or damping not finite, or the
        limits no numbers in order. If a planar or free joint has stiffness or damping.
    """

    name: str
    kind: JointKind
    parent: int
    placement: Transform = field(default_factory=Transform)
    axis: Array = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    armature: float = 0.0
    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    effort: float = np.inf
    stiffness: float = 0.0
    spring_reference: float = 0.0
    damping: float = 0.0

    def __post_init__(self) -> None:
        what = f"joint {self.name!r}"
        text(f"{what}: its name", self.name, JOINT, RobotError)
        instance(f"{what}: kind", self.kind, JointKind, "JointKind.REVOLUTE", RobotError)
        parent = whole(f"{what}: parent", self.parent, INDEX, RobotError)
        object.__setattr__(self, "parent", parent)
        instance(f"{what}: placement", self.placement, Transform, "Transform()", RobotError)
        object.__setattr__(self, "axis", checked(f"{what}: axis", self.axis, (3,), RobotError))
        # Written so that NaN fails as well.
        if not abs(float(np.linalg.norm(self.axis)) - 1.0) <= UNIT_TOLERANCE:
            raise RobotError(f"{what}: axis {self.axis} must be a unit vector")
        finite = ("armature", "stiffness", "spring_reference", "damping")
        for name in (*finite, "lower", "upper", "velocity", "effort"):
            value = number(f"{what}: {name}", getattr(self, name), RobotError)
            object.__setattr__(self, name, value)
            if name in finite and not np.isfinite(value):
                raise RobotError(f"{what}: {name} is {value}; expected a finite number")
        if self.is_passive and self.kind not in SINGLE:
            raise RobotError(
                f"{what}: stiffness and damping are defined for revolute and prismatic joints, "
                f"this one is {self.kind.label}"
            )
        for name in ("velocity", "effort"):
            if not getattr(self, name) > 0.0:
                raise RobotError(
                    f"{what}: {name} limit is {getattr(self, name)}; expected a positive number, "
                    "infinite for none"
                )
        if not self.lower <= self.upper:
            raise RobotError(
                f"{what}: limits must have lower <= upper, got {self.lower} and {self.upper}"
            )

    @property
    def is_passive(self) -> bool:
        """Whether a spring or damper acts at the joint."""
        return bool(self.stiffness or self.damping)

    def motion(self, value: float) -> Transform:
        """Return the pose of the body of a revolute or prismatic joint in the joint's frame."""
        if self.kind is JointKind.PRISMATIC:
            return Transform(translation=value * self.axis)
        return Transform(rotation_about(self.axis, value))
