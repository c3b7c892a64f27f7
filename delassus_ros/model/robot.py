"""The robot: an immutable tree of moving joints, the bodies they carry and named frames."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros import arguments
from delassus_ros.errors import RobotError, listed, unknown
from delassus_ros.model.constraints import (
    COUPLING,
    FUNCTION,
    LOOP,
    Coupling,
    FunctionConstraint,
    Loop,
    check_constraints,
)
from delassus_ros.model.joint import INDEX, JOINT, WORLD, Joint, JointKind
from delassus_ros.model.spatial import Array, Inertia, Transform

__all__ = ["FROM_URDF", "WORLD", "Base", "Body", "Frame", "Joint", "JointKind", "Robot"]

_T = TypeVar("_T")
Base = Literal["floating", "fixed"]
FROM_URDF = "Robot.from_urdf('robot.urdf')"
"""The call that makes a robot, for messages."""
_BODY = "Body('shin', inertia)"
_FRAME = "Frame('foot', 0, Transform())"
"""Calls that make what a robot has, for messages."""


@dataclass(frozen=True, eq=False)
class Body:
    """Body i: what joint i moves, links on fixed joints lumped in; frame of joint i.

    Raises
    ------
    RobotError
        If the name is no text, or the inertia no Inertia.
    """

    name: str
    inertia: Inertia

    def __post_init__(self) -> None:
        what = f"body {self.name!r}"
        arguments.text(f"{what}: its name", self.name, _BODY, RobotError)
        write = "Inertia.from_com(1.0, (0, 0, 0), np.eye(3))"
        arguments.instance(f"{what}: inertia", self.inertia, Inertia, write, RobotError)


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


class Robot:
    """Immutable tree of joints and bodies; parents come before children.

    Parameters
    ----------
    name : name of the robot.
    joints : joint i moves body i; ``joints[i].parent < i``.
    bodies : as many as joints.
    frames : named frames on the bodies.
    couplings, loops, functions : what closes the tree, if anything.
    independent : names of the joints whose positions are independent coordinates, where that
        was stated; else they are chosen.

    Raises
    ------
    RobotError
        If a parent does not precede its child, a free-flyer is not the first joint, a frame
        or loop is on a body that does not exist, a constraint or `independent` names an unknown
        joint, a name appears twice, the sizes differ, the name is no text, or a list has
        something else in it.
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
    ) -> None:
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
                raise RobotError(f"independent: {unknown('joint', name, self.joint_names)}")

    @classmethod
    def from_urdf(
        cls,
        source: str | bytes | Path,
        base: Base = "floating",
        armature: Mapping[str, float] | None = None,
        loops: str | Path | Mapping[str, Any] | None = None,
        functions: Sequence[FunctionConstraint] = (),
    ) -> Robot:
        """Read a robot from a URDF file or from URDF text.

        Couplings and loops of URDF+ and ``<mimic>`` joints are part of it. Angles of an
        ``<origin rpy>`` within 2e-11 rad of a multiple of π/2 are that multiple: files print
        π/2 as 1.57079632679. A reader that takes them as printed agrees to that many digits.

        Parameters
        ----------
        source : path of a file, one in a ROS package (``package://my_robot/urdf/my_robot.urdf``)
            or one of xacro, where that is installed; or the XML itself (text that starts with
            ``<``).
        base : ``"floating"`` puts a free-flyer under the root link, ``"fixed"`` welds the
            root link to the world.
        armature : per joint name, rotor inertia seen at the joint [kg·m² or kg]. Where it is
            positive, the last link of a limb need not have inertia.
        loops : loops, couplings, rotors and joint types that the URDF cannot say: the path of
            a YAML file, YAML text or its content. :mod:`delassus_ros.model.reading.yaml` shows
            its form.
        functions : constraints between joints that no file can say, such as differentials.

        Raises
        ------
        RobotError
            If the XML or YAML is broken or hostile, the robot is not physical, or as in
            :meth:`with_armature`; the message names the link, joint, coupling or loop.
        """
        from delassus_ros.model.reading.urdf import read_urdf

        return read_urdf(source, base, loops, armature, functions)

    @classmethod
    def from_pinocchio(cls, model: Any) -> Robot:
        """Return the robot of a pinocchio.Model; see :mod:`delassus_ros.model.reading.pinocchio`.

        A pinocchio.RobotWrapper may stand for its model, here and in conversions.

        Raises
        ------
        RobotError
            If a joint has no counterpart; names it and its type. If it is no model.
        """
        from delassus_ros.model.reading.pinocchio import read_pinocchio

        return read_pinocchio(model)

    @classmethod
    def from_mujoco(cls, source: Any) -> Robot:
        """Return the robot of a mujoco.MjModel or MjSpec, or of what MuJoCo compiles.

        That is the path of a file of MJCF or URDF, or its text, which starts with ``<``. See
        :mod:`delassus_ros.model.reading.mujoco`.

        Raises
        ------
        RobotError
            If a joint or an active equality has no counterpart; names it. If MuJoCo cannot compile
            the source, or it is something else.
        """
        from delassus_ros.model.reading.mujoco import read_mujoco

        return read_mujoco(source)

    def with_armature(self, armature: Mapping[str, float]) -> Robot:
        """Return the same robot with these joint armatures [kg·m² or kg].

        Raises
        ------
        RobotError
            If it is no mapping to numbers, for an unknown joint, a negative or non-finite value,
            or a joint with more than one degree of freedom.
        """
        joints = {joint.name: joint for joint in self._joints}
        for name, value in arguments.by_joint("armature", armature, RobotError).items():
            if name not in joints:
                raise RobotError(unknown("joint", name, self.joint_names))
            if joints[name].kind not in (JointKind.REVOLUTE, JointKind.PRISMATIC):
                raise RobotError(
                    f"joint {name!r}: armature is defined for revolute and prismatic joints, "
                    f"this one is {joints[name].kind.label}"
                )
            if not (np.isfinite(value) and value >= 0):
                raise RobotError(f"joint {name!r}: armature must be finite and >= 0, got {value}")
            joints[name] = replace(joints[name], armature=value)
        return self.replaced(joints=tuple(joints.values()))

    def with_constraints(
        self,
        couplings: Sequence[Coupling] = (),
        loops: Sequence[Loop] = (),
        functions: Sequence[FunctionConstraint] = (),
        independent: Sequence[str] | None = None,
    ) -> Robot:
        """Return the same robot with these constraints besides its own.

        Parameters
        ----------
        independent : joints that are independent coordinates, instead of those stated so far.

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

    def lock(self, positions: Mapping[str, float]) -> Robot:
        """Return the robot with some joints held where they are: bodies lumped, frames kept.

        Joints that a coupling determines by those are not held by themselves: name them as well,
        and all joints of a loop that cannot move any more, at positions that close it.

        Parameters
        ----------
        positions : of revolute and prismatic joints by name [rad, m].

        Raises
        ------
        RobotError
            If a joint is unknown or of another kind, a position not finite, a function constrains
            one of the joints, a coupling is left with one joint, or a coupling or loop that is
            held is not closed.

        Warns
        -----
        DelassusWarning
            For a position far outside the limits of its joint, see
            :mod:`~delassus_ros.model.ranges`; not of a robot with couplings or loops.
        """
        from delassus_ros.model.edit import locked

        return locked(self, positions)

    def q(self, positions: Mapping[str, ArrayLike], default: float = 0.0) -> Array:
        """Return the q (nq,) with these positions, by name of the joints.

        Joints that couplings tie to those that are named go where these put them, and so do all
        others that are coupled. Loops stay open; :class:`~delassus_ros.closure.Closure` closes
        them.

        Parameters
        ----------
        positions : [rad, m]: a number for revolute and prismatic joints, a list for those with
            several entries in q (planar x, y, θ; floating x, y, z, quaternion x, y, z, w).
        default : of the other revolute and prismatic joints; all else is as in :meth:`neutral`.

        Raises
        ------
        RobotError
            If there is no such joint; lists the joints in order. If something is no number, or
            a joint has more or fewer of them. If there are no names.

        Warns
        -----
        DelassusWarning
            For a position far outside the limits of its joint, see
            :mod:`~delassus_ros.model.ranges`: an angle in degrees, say. For a loop of joints
            that are named that is left open, and where positions do not fit a coupling.
        """
        from delassus_ros.model.positions import checked_q_of

        return checked_q_of(self, positions, default)

    def v(
        self,
        rates: Mapping[str, ArrayLike],
        twist: Sequence[float] | Array | None = None,
        default: float = 0.0,
    ) -> Array:
        """Return the velocities (nv,) of all joints, by name; a floating base's twist first.

        Of robots with couplings or loops, ``Problem.rates`` takes the input ``rates`` from them.

        Parameters
        ----------
        rates : [rad/s, m/s]: a number for revolute and prismatic joints, a list for those with
            several velocities (ẋ, ẏ, θ̇ of a planar one, the twist of a floating one in its own
            axes, linear first).
        twist : (6,) of the floating base in its own axes, linear first; at rest if None.
        default : of the other revolute and prismatic joints; all else is at rest.

        Raises
        ------
        RobotError
            If there is no such joint; lists the joints in order. If something is no number, or
            a joint has more or fewer of them. If there are no names. If there is a twist but no
            floating base, or it has another size.
        """
        from delassus_ros.model.positions import v_of

        return v_of(self, rates, twist, default)

    def q_from_pinocchio(self, model: Any, q: Array) -> tuple[Array, Array | None]:
        """Return q (nq,) of Pinocchio's, joints by name, and the base's pose (7,), None if fixed.

        The base is the free-flyer that carries the robot's first joint or link.

        Raises
        ------
        RobotError
            If q has another size, or the model lacks a joint or moves it otherwise; names it.
        """
        from delassus_ros.model.reading.pinocchio import positions_from

        return positions_from(self, model, q)

    def q_to_pinocchio(self, model: Any, q: Array, base: Array | None = None) -> Array:
        """Return Pinocchio's q of this robot's and the pose of its base: x, y, z, x, y, z, w.

        Raises
        ------
        RobotError
            As for :meth:`q_from_pinocchio`, and if the base is no pose or the robot has none.
        """
        from delassus_ros.model.reading.pinocchio import positions_to

        return positions_to(self, model, q, base)

    def q_from_mujoco(self, model: Any, qpos: Array) -> tuple[Array, Array | None]:
        """Return q (nq,) of MuJoCo's qpos, joints by name, and the base's pose, None if fixed.

        The pose (7,) has its quaternion x, y, z, w. The base is the free joint that carries the
        robot's first joint or link.

        Raises
        ------
        RobotError
            If qpos has another size, or the model lacks a joint or moves it otherwise; names it.
        """
        from delassus_ros.model.reading.mujoco_state import positions_from

        return positions_from(self, model, qpos)

    def q_to_mujoco(self, model: Any, q: Array, base: Array | None = None) -> Array:
        """Return MuJoCo's qpos of this robot's q and the pose of its base: x, y, z, x, y, z, w.

        Raises
        ------
        RobotError
            As for :meth:`q_from_mujoco`, and if the base is no pose or the robot has none.
        """
        from delassus_ros.model.reading.mujoco_state import positions_to

        return positions_to(self, model, q, base)

    def v_from_pinocchio(self, model: Any, q: Array, v: Array) -> Array:
        """Return the velocities (nv,), as of :meth:`v`, of Pinocchio's at its q, joints by name.

        Those of planar joints are along axes that turn there, hence q.

        Raises
        ------
        RobotError
            As for :meth:`q_from_pinocchio`, and if v has another size.
        """
        from delassus_ros.model.reading.pinocchio import velocities_from

        return velocities_from(self, model, q, v)

    def v_to_pinocchio(self, model: Any, q: Array, v: Array) -> Array:
        """Return Pinocchio's v at its q of this robot's velocities (nv,), as of :meth:`v`.

        Raises
        ------
        RobotError
            As for :meth:`v_from_pinocchio`.
        """
        from delassus_ros.model.reading.pinocchio import velocities_to

        return velocities_to(self, model, q, v)

    def v_from_mujoco(self, model: Any, qpos: Array, qvel: Array) -> Array:
        """Return the velocities (nv,), as of :meth:`v`, of MuJoCo's qvel, joints by name.

        MuJoCo has linear velocities of free joints in the axes of the world, hence qpos.

        Raises
        ------
        RobotError
            As for :meth:`q_from_mujoco`, and if qvel has another size.
        """
        from delassus_ros.model.reading.mujoco_state import velocities_from

        return velocities_from(self, model, qpos, qvel)

    def v_to_mujoco(self, model: Any, qpos: Array, v: Array) -> Array:
        """Return MuJoCo's qvel at qpos of this robot's velocities (nv,), as of :meth:`v`.

        Raises
        ------
        RobotError
            As for :meth:`v_from_mujoco`.
        """
        from delassus_ros.model.reading.mujoco_state import velocities_to

        return velocities_to(self, model, qpos, v)

    def subtree(self, joint: str) -> Robot:
        """Return what a joint carries as a robot of its own, on the world where its parent was.

        Parameters
        ----------
        joint : name of the first joint of a limb; it is the first of the new robot as well.

        Raises
        ------
        RobotError
            If there is no such joint, it is a floating base, or a coupling, loop or function is
            between the limb and the rest.
        """
        from delassus_ros.model.edit import subtree

        return subtree(self, joint)

    def replaced(self, **changes: Any) -> Robot:
        """Return the robot with other arguments of the constructor."""
        return Robot(**{**self._arguments(), **changes})

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
    def independent(self) -> tuple[str, ...]:
        """Joints that were stated to be independent coordinates."""
        return self._independent

    @property
    def is_closed(self) -> bool:
        """Whether couplings, loops or functions constrain the joints."""
        return bool(self._constraints())

    @property
    def base(self) -> Base:
        """``"floating"`` if the first joint is a free-flyer, else ``"fixed"``."""
        floating = bool(self._joints) and self._joints[0].kind is JointKind.ROOT
        return "floating" if floating else "fixed"

    def path(self, body: int) -> list[int]:
        """Return a body, the one that carries it, and so on to the root; none for WORLD."""
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

        With couplings or loops these are of all joints, not of the independent ones alone.
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
        """Return canonical bytes of everything G depends on; display names of bodies excluded.

        Joint limits are not in them: they may decide which joints of a loop are independent, on
        which J depends, but not G.
        """
        parts = []
        for joint, body in zip(self._joints, self._bodies, strict=True):
            parts.append(f"{joint.name}\0{joint.kind.label}\0{joint.parent}\0".encode())
            parts.append(joint.placement.to_bytes() + joint.axis.tobytes())
            parts.append(np.float64(joint.armature).tobytes() + body.inertia.to_bytes())
        for frame in self._frames.values():
            parts.append(f"{frame.name}\0{frame.body}\0".encode() + frame.placement.to_bytes())
        parts += [constraint.to_bytes() for constraint in self._constraints()]
        parts.append("\0".join(self._independent).encode())
        return b"".join(parts)

    def __reduce__(self) -> tuple[type[Robot], tuple[object, ...]]:
        """Pickle by the arguments of the constructor."""
        return Robot, tuple(self._arguments().values())

    def __repr__(self) -> str:
        digest = hashlib.sha256(self.to_bytes()).hexdigest()[:8]
        return (
            f"Robot({self._name!r}, base={self.base!r}, {listed('joint', self.joint_names)}, "
            f"frames={len(self._frames)}, hash={digest})"
        )
