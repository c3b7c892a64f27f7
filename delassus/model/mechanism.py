"""The data of a robot: an immutable tree of joints, their bodies, named frames and constraints.

:class:`Mechanism` is what the modules of this package read and change;
:class:`~delassus.model.robot.Robot` adds the readers, positions by name and conversions.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from delassus import arguments
from delassus.errors import RobotError, listed, unknown
from delassus.model.constraints import (
    COUPLING,
    FUNCTION,
    LOOP,
    Coupling,
    FunctionConstraint,
    Loop,
    RowLoop,
    check_constraints,
)
from delassus.model.joint import INDEX, JOINT, SINGLE, WORLD, Joint, JointKind
from delassus.model.spatial import Array, Inertia, Transform

_T = TypeVar("_T")
MechanismT = TypeVar("MechanismT", bound="Mechanism")
"""A class of mechanisms: that of a changed robot is the one of the original."""
Base = Literal["floating", "fixed"]
_BODY = "Body('shin', inertia)"
_FRAME = "Frame('foot', 0, Transform())"
"""Calls that make bodies and frames, for messages."""


@dataclass(frozen=True, eq=False)
class Body:
    """Body i, moved by joint i, with the links on fixed joints lumped in; in the frame of joint i.

    Attributes
    ----------
    name : name of the link.
    inertia : of the body, about the origin of its frame.
    compensated : the part of the inertia whose weight a force at its centre of mass holds: gravity
        compensation. Only its mass and moment have an effect, on free accelerations and bias
        forces; more than the whole inertia is allowed.

    Raises
    ------
    RobotError
        If the name is no text, or an inertia no Inertia.
    """

    name: str
    inertia: Inertia
    compensated: Inertia = field(default_factory=Inertia)

    def __post_init__(self) -> None:
        what = f"body {self.name!r}"
        arguments.text(f"{what}: its name", self.name, _BODY, RobotError)
        write = "Inertia.from_com(1.0, (0, 0, 0), np.eye(3))"
        arguments.instance(f"{what}: inertia", self.inertia, Inertia, write, RobotError)
        arguments.instance(f"{what}: compensated", self.compensated, Inertia, write, RobotError)

    @property
    def is_compensated(self) -> bool:
        """Whether gravity compensation acts on the body."""
        return bool(self.compensated.mass or self.compensated.moment.any())

    def lumped(self, other: Body, placement: Transform) -> Body:
        """Return this body with another one fixed to it, whose frame is at `placement`."""
        return replace(
            self,
            inertia=self.inertia + other.inertia.in_parent(placement),
            compensated=self.compensated + other.compensated.in_parent(placement),
        )


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame (a URDF link) fixed on a body.

    Attributes
    ----------
    name : name of the link.
    body : index of the body it moves with, or :data:`WORLD`.
    placement : pose in the body's frame (in the world for :data:`WORLD`).

    Raises
    ------
    RobotError
        If the name is no text, the body no whole number, or the placement no Transform.
    """

    name: str
    body: int
    placement: Transform

    def __post_init__(self) -> None:
        what = f"frame {self.name!r}"
        arguments.text(f"{what}: its name", self.name, _FRAME, RobotError)
        body = arguments.whole(f"{what}: body", self.body, INDEX, RobotError)
        object.__setattr__(self, "body", body)
        arguments.instance(f"{what}: placement", self.placement, Transform, _FRAME, RobotError)


class Mechanism:
    """Immutable tree of joints and bodies; parents come before children.

    Parameters
    ----------
    name : name of the robot.
    joints : joint i moves body i; ``joints[i].parent < i``.
    bodies : as many as joints.
    frames : named frames on the bodies.
    couplings, loops, functions : constraints that close the tree.
    independent : names of the joints whose positions are stated to be independent coordinates;
        in clusters without a statement they are chosen.
    row_loops : loops that are closed by rows.
    cheapest_loops : whether a kernel may close `loops` by rows where that needs fewer operations.
    locked : positions of joints that were locked, by name [rad, m]; only conversions of states
        read them.
    named_poses : positions of joints [rad, m] by the names of poses, such as ``home``.

    Raises
    ------
    RobotError
        If a parent does not precede its child, a free-flyer is not the first joint, a frame
        or loop is on a body that does not exist, a constraint or `independent` names an unknown
        joint, a name appears twice, the sizes differ, the name is no text, or a list has
        entries of another type.
    """

    def __init__(
        self,
        name: str,
        joints: Sequence[Joint],
        bodies: Sequence[Body],
        frames: Sequence[Frame],
        couplings: Sequence[Coupling] = (),
        loops: Sequence[Loop] = (),
        independent: Sequence[str] = (),
        functions: Sequence[FunctionConstraint] = (),
        row_loops: Sequence[RowLoop] = (),
        cheapest_loops: bool = False,
        locked: Mapping[str, float] = MappingProxyType({}),
        named_poses: Mapping[str, Mapping[str, ArrayLike]] = MappingProxyType({}),
    ) -> None:
        self._locked = arguments.by_joint("locked", locked, RobotError)
        self._named_poses = {pose: dict(positions) for pose, positions in named_poses.items()}
        self._row_loops = tuple(row_loops)
        self._cheapest_loops = cheapest_loops
        self._name = arguments.text("the name of the robot", name, "'robot'", RobotError)

        def listed(what: str, given: Sequence[_T], kind: type[_T], write: str) -> tuple[_T, ...]:
            return arguments.instances(f"robot {name!r}: {what}", given, kind, write, RobotError)

        self._joints = listed("joints", joints, Joint, JOINT)
        self._bodies = listed("bodies", bodies, Body, _BODY)
        self._couplings = listed("couplings", couplings, Coupling, COUPLING)
        self._loops = listed("loops", loops, Loop, LOOP)
        self._independent = arguments.names("independent", independent, RobotError)
        self._functions = listed("functions", functions, FunctionConstraint, FUNCTION)
        frames = listed("frames", frames, Frame, _FRAME)
        self._frames = MappingProxyType({frame.name: frame for frame in frames})
        self._check(frames)
        offsets, count = [], 0
        for joint in self._joints:
            offsets.append(count)
            count += joint.kind.nq
        self._q_offsets = tuple(offsets)
        self._nq = count

    def _check(self, frames: Sequence[Frame]) -> None:
        if len(self._joints) != len(self._bodies):
            raise RobotError(
                f"robot {self._name!r}: {len(self._joints)} joints but {len(self._bodies)} "
                "bodies; body i is moved by joint i, so there must be as many"
            )
        for what, names in (
            ("joint", [joint.name for joint in self._joints]),
            ("frame", [frame.name for frame in frames]),
            ("coupling, loop or constraint", [each.name for each in self._constraints()]),
        ):
            twice = sorted(name for name, count in Counter(names).items() if count > 1)
            if twice:
                raise RobotError(f"robot {self._name!r}: {what} {twice[0]!r} appears twice")
        for i, joint in enumerate(self._joints):
            if not WORLD <= joint.parent < i:
                raise RobotError(
                    f"joint {joint.name!r}: parent body {joint.parent} must come before body {i}"
                )
            if joint.kind is JointKind.ROOT and i > 0:
                raise RobotError(
                    f"joint {joint.name!r}: a free-flyer must be the first joint, this is {i}"
                )
        for frame in frames:
            if not WORLD <= frame.body < len(self._bodies):
                raise RobotError(
                    f"frame {frame.name!r}: there is no body {frame.body}, only "
                    f"{len(self._bodies)} bodies"
                )
        single = [joint.name for joint in self._joints if joint.kind.nv == 1]
        check_constraints(single, len(self._bodies), self._couplings, self._loops, self._functions)
        for name in self._independent:
            if name not in self.joint_names:
                raise RobotError(f"independent: {self.unknown_joint(name)}")

    def with_armature(self: MechanismT, armature: Mapping[str, float]) -> MechanismT:
        """Return the robot with these joint armatures [kg·m² or kg].

        Raises
        ------
        RobotError
            If `armature` is no mapping to numbers, for an unknown joint, a negative or non-finite
            value, or a joint with more than one degree of freedom.
        """
        joints = {joint.name: joint for joint in self._joints}
        for name, value in arguments.by_joint("armature", armature, RobotError).items():
            if name not in joints:
                raise RobotError(self.unknown_joint(name))
            if joints[name].kind not in SINGLE:
                raise RobotError(
                    f"joint {name!r}: armature is defined for revolute and prismatic joints, "
                    f"this one is {joints[name].kind.label}"
                )
            if not (np.isfinite(value) and value >= 0):
                raise RobotError(f"joint {name!r}: armature must be finite and >= 0, got {value}")
            joints[name] = replace(joints[name], armature=value)
        return self.replaced(joints=tuple(joints.values()))

    def without_passive(self: MechanismT) -> MechanismT:
        """Return the robot without springs, dampers and gravity compensation."""
        return self.replaced(
            joints=[
                replace(joint, stiffness=0.0, spring_reference=0.0, damping=0.0)
                for joint in self._joints
            ],
            bodies=[replace(body, compensated=Inertia()) for body in self._bodies],
        )

    def with_constraints(
        self: MechanismT,
        couplings: Sequence[Coupling] = (),
        loops: Sequence[Loop] = (),
        functions: Sequence[FunctionConstraint] = (),
        independent: Sequence[str] | None = None,
    ) -> MechanismT:
        """Return the robot with additional constraints.

        Parameters
        ----------
        independent : joints that are independent coordinates, instead of the stated ones.

        Raises
        ------
        RobotError
            If a name is unknown or appears twice, or a loop is on a body that does not exist.
        """
        return self.replaced(
            couplings=(*self._couplings, *couplings),
            loops=(*self._loops, *loops),
            functions=(*self._functions, *functions),
            independent=self._independent if independent is None else independent,
        )

    def replaced(self: MechanismT, **changes: Any) -> MechanismT:
        """Return the robot with some arguments of the constructor replaced."""
        return type(self)(**{**self._arguments(), **changes})

    def _arguments(self) -> dict[str, Any]:
        return {
            "name": self._name,
            "joints": self._joints,
            "bodies": self._bodies,
            "frames": tuple(self._frames.values()),
            "couplings": self._couplings,
            "loops": self._loops,
            "independent": self._independent,
            "functions": self._functions,
            "row_loops": self._row_loops,
            "cheapest_loops": self._cheapest_loops,
            "locked": self._locked,
            "named_poses": self._named_poses,
        }

    def _constraints(self) -> list[Coupling | Loop | FunctionConstraint]:
        return [*self._couplings, *self._loops, *self._functions]

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self._name

    @property
    def joints(self) -> tuple[Joint, ...]:
        """Moving joints, parents first; joint i moves body i."""
        return self._joints

    @property
    def bodies(self) -> tuple[Body, ...]:
        """Bodies, in the order of the joints."""
        return self._bodies

    @property
    def frames(self) -> Mapping[str, Frame]:
        """Frames by name: every link of the URDF."""
        return self._frames

    @property
    def couplings(self) -> tuple[Coupling, ...]:
        """Linear constraints between joints."""
        return self._couplings

    @property
    def loops(self) -> tuple[Loop, ...]:
        """Closures between bodies."""
        return self._loops

    @property
    def functions(self) -> tuple[FunctionConstraint, ...]:
        """Constraints between joints that are given as functions."""
        return self._functions

    @property
    def row_loops(self) -> tuple[RowLoop, ...]:
        """Loops that are closed by rows of the Delassus matrix."""
        return self._row_loops

    @property
    def clustered(self: MechanismT) -> MechanismT:
        """The robot with :attr:`row_loops` as clusters: the same joints and configurations."""
        if not self._row_loops:
            return self
        ends = {name for loop in self._row_loops for name in (loop.predecessor, loop.successor)}
        return self.replaced(
            frames=[frame for frame in self._frames.values() if frame.name not in ends],
            loops=[*self._loops, *(loop.loop for loop in self._row_loops)],
            row_loops=(),
        )

    @property
    def cheapest_loops(self) -> bool:
        """Whether a kernel may close :attr:`loops` by rows where that needs fewer operations."""
        return self._cheapest_loops

    @property
    def locked(self) -> Mapping[str, float]:
        """Positions of joints that were locked, by name [rad, m]."""
        return MappingProxyType(self._locked)

    @property
    def named_poses(self) -> Mapping[str, Mapping[str, ArrayLike]]:
        """Poses that the description names, such as ``home``: positions by joint [rad, m].

        A pose may leave joints out, and has at least one of the robot's.
        """
        names = set(self.joint_names)
        poses = {
            pose: {joint: position for joint, position in positions.items() if joint in names}
            for pose, positions in self._named_poses.items()
        }
        return MappingProxyType({pose: own for pose, own in poses.items() if own})

    @property
    def independent(self) -> tuple[str, ...]:
        """Joints that were stated to be independent coordinates."""
        return self._independent

    @property
    def is_closed(self) -> bool:
        """Whether couplings, loops or functions constrain the joints."""
        return bool(self._constraints())

    @property
    def is_passive(self) -> bool:
        """Whether springs, dampers or gravity compensation act on the robot."""
        joints, bodies = self._joints, self._bodies
        return any(each.is_passive for each in joints) or any(b.is_compensated for b in bodies)

    @property
    def base(self) -> Base:
        """``"floating"`` if the first joint is a free-flyer, else ``"fixed"``."""
        floating = bool(self._joints) and self._joints[0].kind is JointKind.ROOT
        return "floating" if floating else "fixed"

    def unknown_frame(self, name: str) -> str:
        """Return the message for an unknown frame; of a joint's name it names the joint's link."""
        for joint, body in zip(self._joints, self._bodies, strict=True):
            if joint.name == name and body.name in self._frames:
                return f"unknown frame {name!r}: this is a joint; its link is {body.name!r}"
        return unknown("frame", name, self._frames)

    def unknown_joint(self, name: str) -> str:
        """Return the message for an unknown joint; of a link's name it names the link's joint."""
        frame = self._frames.get(name)
        if frame is not None and frame.body != WORLD:
            joint = self._joints[frame.body].name
            return f"unknown joint {name!r}: this is a link; the joint that moves it is {joint!r}"
        return unknown("joint", name, self.joint_names)

    def path(self, body: int) -> list[int]:
        """Return the bodies from a body down to the root; an empty list for WORLD."""
        path = []
        while body != WORLD:
            path.append(body)
            body = self._joints[body].parent
        return path

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints that have entries in q, in the order of q."""
        return tuple(joint.name for joint in self._joints if joint.kind.nq)

    @property
    def nq(self) -> int:
        """Length of q."""
        return self._nq

    @property
    def nv(self) -> int:
        """Number of degrees of freedom, the free-flyer's six included."""
        return sum(joint.kind.nv for joint in self._joints)

    @property
    def q_offsets(self) -> tuple[int, ...]:
        """Index in q of each joint's first entry."""
        return self._q_offsets

    @property
    def v_offsets(self) -> tuple[int, ...]:
        """Index in the velocities (nv,) of each joint's first entry; a floating base's are first.

        With couplings or loops v still has the velocities of all joints.
        """
        return tuple(accumulate((j.kind.nv for j in self._joints[:-1]), initial=0))

    def neutral(self) -> Array:
        """Return the q (nq,) of all-zero joints; inner floating joints at identity."""
        q = np.zeros(self._nq)
        for joint, offset in zip(self._joints, self._q_offsets, strict=True):
            if joint.kind is JointKind.FLOATING:
                q[offset + 6] = 1.0
        return q

    def to_bytes(self) -> bytes:
        """Return canonical bytes of all data that outputs depend on; names of bodies excluded.

        Joint limits and named poses are excluded: limits may decide which joints of a loop are
        independent, which changes J, but not G.
        """
        parts = []
        for joint, body in zip(self._joints, self._bodies, strict=True):
            parts.append(f"{joint.name}\0{joint.kind.label}\0{joint.parent}\0".encode())
            parts.append(joint.placement.to_bytes() + joint.axis.tobytes())
            parts.append(np.float64(joint.armature).tobytes() + body.inertia.to_bytes())
            if joint.is_passive:
                law = joint.stiffness, joint.spring_reference, joint.damping
                parts.append(b"passive\0" + np.array(law).tobytes())
            if body.is_compensated:
                parts.append(b"compensated\0" + body.compensated.to_bytes())
        for frame in self._frames.values():
            parts.append(f"{frame.name}\0{frame.body}\0".encode() + frame.placement.to_bytes())
        parts += [constraint.to_bytes() for constraint in self._constraints()]
        parts.append("\0".join(self._independent).encode())
        parts += [loop.to_bytes() for loop in self._row_loops]
        parts += [b"cheapest loops"] if self._cheapest_loops else []
        return b"".join(parts)

    def __reduce__(self) -> tuple[type[Mechanism], tuple[object, ...]]:
        """Pickle by the arguments of the constructor."""
        return type(self), tuple(self._arguments().values())

    def __repr__(self) -> str:
        digest = hashlib.sha256(self.to_bytes()).hexdigest()[:8]
        return (
            f"{type(self).__name__}({self._name!r}, base={self.base!r}, "
            f"{listed('joint', self.joint_names)}, frames={len(self._frames)}, hash={digest})"
        )


def builds_of(
    joints: Sequence[Joint], marks: Sequence[Hashable], ordered: bool = True
) -> list[int]:
    """Return per joint a number that subtrees of the same build share.

    Parameters
    ----------
    joints : of a mechanism, parents first.
    marks : per joint what has to be equal besides the kind of joint and the builds of children.
    ordered : whether children have to be in the same order.
    """
    numbers: dict[Hashable, int] = {}
    builds = [0] * len(joints)
    children: list[list[int]] = [[] for _ in joints]
    for i in reversed(range(len(joints))):
        joint = joints[i]
        below = children[i] if ordered else sorted(children[i])
        builds[i] = numbers.setdefault((joint.kind, marks[i], *below), len(numbers))
        if joint.parent != WORLD:
            children[joint.parent].append(builds[i])
    return builds
