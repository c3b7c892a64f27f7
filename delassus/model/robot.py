"""The robot: a mechanism with its readers, positions by joint name and state conversions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar
from xml.etree.ElementTree import Element

from numpy.typing import ArrayLike

from delassus.errors import DelassusWarning, RobotError, listed, unknown
from delassus.model.clusters import groups_of_rows, with_row_loops
from delassus.model.constraints import FunctionConstraint
from delassus.model.edit import locked, subtree
from delassus.model.joint import WORLD, Joint, JointKind
from delassus.model.mechanism import Base, Body, Frame, Mechanism
from delassus.model.positions import checked_q_of, v_of
from delassus.model.reading.mjcf import MJCF, compiled, compiled_text
from delassus.model.reading.mujoco import read_mujoco
from delassus.model.reading.mujoco_state import MujocoMap
from delassus.model.reading.pinocchio import read_pinocchio
from delassus.model.reading.pinocchio_state import PinocchioMap
from delassus.model.reading.poses import (
    group_states,
    keyframes,
    reference_configurations,
    with_poses,
)
from delassus.model.reading.source import document_of
from delassus.model.reading.states import StateMap
from delassus.model.reading.urdf import read_urdf
from delassus.model.spatial import Array

__all__ = ["FROM_URDF", "WORLD", "Base", "Body", "Frame", "Joint", "JointKind", "Robot"]

FROM_URDF = "Robot.from_urdf('robot.urdf')"
"""The call that makes a robot, for messages."""
_RobotT = TypeVar("_RobotT", bound="Robot")


LOOPS_AS = ("clusters", "rows", "cheapest")
"""Ways in which loops are closed."""


class Robot(Mechanism):
    """A robot that is read from a file or model, with positions and velocities by joint name.

    The parameters of the constructor and the data are those of
    :class:`~delassus.model.mechanism.Mechanism`. Immutable; threads may share it.
    """

    @classmethod
    def from_urdf(
        cls: type[_RobotT],
        source: str | bytes | Path | Element,
        base: Base = "floating",
        armature: Mapping[str, float] | None = None,
        loops: str | Path | Mapping[str, Any] | None = None,
        functions: Sequence[FunctionConstraint] = (),
        loops_as: str = "clusters",
        lock: Mapping[str, float] | None = None,
        xacro_arguments: Mapping[str, object] | None = None,
        passive: bool = True,
        srdf: str | Path | None = None,
    ) -> _RobotT:
        """Read a robot from a URDF file or from URDF text.

        Couplings and loops of URDF+ and ``<mimic>`` joints become constraints. Angles of an
        ``<origin rpy>`` within 2e-11 rad of a multiple of π/2 are rounded to that multiple: files
        print π/2 as 1.57079632679. Readers without this rounding agree to the printed digits.

        Parameters
        ----------
        source : path of a file, one in a ROS package (``package://my_robot/urdf/my_robot.urdf``)
            or one of xacro, where that is installed; or the XML itself (text that starts with
            ``<``, or its root element). A robot without a name is called as its file.
        base : ``"floating"`` puts a free-flyer under the root link, ``"fixed"`` welds the
            root link to the world.
        armature : rotor inertia at the joint [kg·m² or kg], by joint name. With a positive one the
            last link of a limb need not have inertia.
        loops : loops, couplings, rotors and joint types that URDF cannot express: the path of a
            YAML file, YAML text or its content, see :mod:`delassus.model.reading.yaml`.
        functions : constraints between joints as functions, such as differentials.
        loops_as : how loops are closed; see :meth:`with_loops_as`.
        lock : positions of joints that are locked, as for :meth:`lock`, before the robot is
            judged: links that no longer move need no inertia, and a locked joint may mimic one
            that does not exist.
        xacro_arguments : values of the arguments of a xacro file, by name.
        passive : whether dampers of joints, ``<dynamics damping>``, count; see
            :mod:`delassus.rbda.passive`.
        srdf : SRDF, as of MoveIt, whose group states are named poses, see :meth:`named`: the path
            of a file, or the XML itself. Joints that the robot lacks are left out.

        Raises
        ------
        RobotError
            If the XML or YAML is broken or hostile, the robot is not physical, an argument is
            unknown to xacro, or as in :meth:`with_armature` and :meth:`lock`; the message names
            the link, joint, coupling or loop.

        Warns
        -----
        DelassusWarning
            If the poses of `srdf` have no joint of the robot, as those of another robot.
        """
        document = document_of(source, xacro_arguments)
        robot = read_urdf(document, base, loops, armature, functions, cls, lock, passive)
        if srdf is not None:
            states = group_states(srdf)
            robot = with_poses(robot, states)
            if states and not robot.named_poses:
                words = f"{listed('pose', list(states))} of the SRDF: without a joint of the robot"
                warnings.warn(words, DelassusWarning, stacklevel=2)
        return robot.with_loops_as(loops_as)

    @classmethod
    def from_pinocchio(cls: type[_RobotT], model: Any, passive: bool = False) -> _RobotT:
        """Return the robot of a pinocchio.Model; see :mod:`delassus.model.reading.pinocchio`.

        A pinocchio.RobotWrapper may stand for its model, here and in conversions. Reference
        configurations are named poses, see :meth:`named`.

        Parameters
        ----------
        passive : whether dampers of joints, ``model.damping``, count. By default they do not, as
            in Pinocchio's own algorithms.

        Raises
        ------
        RobotError
            If a joint has no counterpart; names the joint and its type. If `model` is no model.
        """
        robot = read_pinocchio(model, cls, passive)
        return robot.replaced(named_poses=reference_configurations(robot, model))

    @classmethod
    def from_mujoco(
        cls: type[_RobotT], source: Any, loops_as: str = "clusters", passive: bool = True
    ) -> _RobotT:
        """Return the robot of a mujoco.MjModel or MjSpec, or of MJCF or URDF.

        MJCF and URDF are given as the path of a file, or as text, which starts with ``<``; MuJoCo
        compiles them. See :mod:`delassus.model.reading.mujoco`. Keyframes are named poses, see
        :meth:`named`.

        Parameters
        ----------
        loops_as : how loops of the equalities are closed; see :meth:`with_loops_as`.
        passive : whether springs, dampers and gravity compensation count; see
            :mod:`delassus.rbda.passive`.

        Raises
        ------
        RobotError
            If a joint or an active equality has no counterpart; names it. If MuJoCo cannot compile
            `source`, or `source` is of another type.
        """
        model = compiled(source)
        robot = read_mujoco(model, cls, passive)
        return robot.replaced(named_poses=keyframes(robot, model)).with_loops_as(loops_as)

    @classmethod
    def from_description(
        cls: type[_RobotT],
        text: str | bytes,
        base: Base = "floating",
        armature: Mapping[str, float] | None = None,
        loops: str | Path | Mapping[str, Any] | None = None,
        loops_as: str = "clusters",
        lock: Mapping[str, float] | None = None,
        passive: bool = True,
    ) -> _RobotT:
        """Return the robot of a description as text: URDF, or MJCF, which needs MuJoCo.

        Parameters
        ----------
        text : the XML. Other files are not read: meshes are left out, ``<include>`` is refused.
        base, armature, loops, loops_as, lock, passive : see :meth:`from_urdf`. MJCF has its own
            armatures and loops, and its first body a free joint or none.

        Raises
        ------
        RobotError
            As for :meth:`from_urdf` and :meth:`from_mujoco`; if `base`, `armature` or `loops`
            contradict an MJCF.
        """
        # As bytes: a text that does not look like XML would be read as the path of a file.
        text = text.encode() if isinstance(text, str) else text
        document = document_of(text)
        if document.tag != MJCF:
            return cls.from_urdf(
                document, base, armature, loops, loops_as=loops_as, lock=lock, passive=passive
            )
        for what, given in (("armature", armature), ("loops", loops)):
            if given:
                raise RobotError(
                    f"{what} is of use with URDF alone, and the robot is described by MJCF"
                )
        try:
            robot = cls.from_mujoco(compiled_text(text.decode()), passive=passive)
        except ImportError as error:
            raise RobotError(
                "the robot is described by MJCF, which needs MuJoCo: pip install mujoco"
            ) from error
        robot.expect_base(base)
        return (robot.lock(lock) if lock else robot).with_loops_as(loops_as)

    def expect_base(self, base: str | None) -> None:
        """Refuse another base than that of an MJCF; None expects nothing.

        Raises
        ------
        RobotError
            If `base` is another one.
        """
        if base not in (None, self.base):
            joint = "has no" if self.base == "fixed" else "has a"
            raise RobotError(
                f"base {base}: the first body of {self.name!r} {joint} free joint, which makes "
                f"its base {self.base}"
            )

    def with_loops_as(self: _RobotT, loops_as: str) -> _RobotT:
        """Return the robot with another way to close its loops.

        Parameters
        ----------
        loops_as : ``"clusters"`` couples the joints of a loop; ``"rows"`` closes it by rows of the
            Delassus matrix, which are eliminated again, as long loops need: all joints of the tree
            then have a velocity, and all algorithms take the robot. Loops in clusters with
            couplings stay there. ``"cheapest"`` is ``"clusters"``, but a kernel of G alone closes
            those loops by rows with which the algorithm needs fewer operations, and all of them
            where the algorithm is for open chains.

        Raises
        ------
        RobotError
            If the choice is unknown, or a loop does not close.
        """
        if loops_as not in LOOPS_AS:
            raise RobotError(unknown("loops_as", str(loops_as), LOOPS_AS, "choices"))
        robot = self.clustered.replaced(cheapest_loops=False)
        if loops_as == "rows":
            return with_row_loops(robot)
        if loops_as == "cheapest" and groups_of_rows(robot):
            return robot.replaced(cheapest_loops=True)
        return robot

    def lock(self: _RobotT, positions: Mapping[str, float]) -> _RobotT:
        """Return the robot with some joints locked: their bodies are lumped, all frames stay.

        Joints whose position couplings determine, such as joints that mimic a locked one, are
        locked there. All joints of a loop that can no longer move must be locked, at positions
        that close the loop.

        Parameters
        ----------
        positions : positions of revolute and prismatic joints [rad, m] by name, or by pattern:
            ``{"*finger*": 0.0, "index_finger": 0.3}``. The last one that fits a joint counts.

        Raises
        ------
        RobotError
            If a joint is unknown or of another kind, no joint fits a pattern, a position is not
            finite, a function constrains one of the joints, or a coupling or loop of locked joints
            is not closed.

        Warns
        -----
        DelassusWarning
            For a position far outside the limits of its joint, see
            :mod:`~delassus.model.ranges`; not of a robot with couplings or loops.
        """
        return _edited(self, partial(locked, positions=positions))

    def q(self, positions: Mapping[str, ArrayLike], default: float = 0.0) -> Array:
        """Return q (nq,) from positions by joint name.

        Coupled joints that are not named get the positions that their couplings determine. Loops
        stay open; :class:`~delassus.closure.Closure` closes loops.

        Parameters
        ----------
        positions : [rad, m]: a number for revolute and prismatic joints, a list for those with
            several entries in q (planar x, y, θ; floating x, y, z, quaternion x, y, z, w).
        default : position of the remaining revolute and prismatic joints [rad, m]; other joints
            are as in :meth:`neutral`.

        Raises
        ------
        RobotError
            If a joint is unknown; lists the joints in order. If a position is no number, or a
            joint has another count of numbers. If `positions` is no mapping.

        Warns
        -----
        DelassusWarning
            For a position far outside the limits of its joint, see
            :mod:`~delassus.model.ranges`, for instance an angle in degrees. For an open loop
            of named joints, and for positions that do not fit a coupling.
        """
        return checked_q_of(self, positions, default)

    def named(self, name: str) -> Array:
        """Return q (nq,) of a pose that the description names, as ``home``.

        Poses are keyframes of MJCF, a keyframe without a name being ``key 0`` with its number, and
        group states of SRDF; :attr:`named_poses` has their names. The pose of a floating base is
        no part of q. Joints that the pose leaves out, and loops, are as for :meth:`q`.

        Raises
        ------
        RobotError
            If no pose has this name; lists the names.

        Warns
        -----
        DelassusWarning
            As :meth:`q`.
        """
        poses = self.named_poses
        if name not in poses:
            raise RobotError(unknown("pose", str(name), poses))
        return checked_q_of(self, poses[name], 0.0)

    def v(
        self,
        rates: Mapping[str, ArrayLike],
        twist: Sequence[float] | Array | None = None,
        default: float = 0.0,
    ) -> Array:
        """Return the velocities (nv,) of all joints, by name; a floating base's twist first.

        For robots with couplings or loops, ``Problem.rates`` computes the input ``rates`` from v.

        Parameters
        ----------
        rates : [rad/s, m/s]: a number for revolute and prismatic joints, a list for those with
            several velocities (ẋ, ẏ, θ̇ of a planar one, the twist of a floating one in its own
            axes, linear first).
        twist : (6,) of the floating base in its own axes, linear first; at rest if None.
        default : rate of the remaining revolute and prismatic joints [rad/s, m/s]; other joints
            are at rest.

        Raises
        ------
        RobotError
            If a joint is unknown; lists the joints in order. If a rate is no number, or a joint
            has another count of numbers. If `rates` is no mapping. If `twist` is given for a
            fixed base, or has another size.
        """
        return v_of(self, rates, twist, default)

    def q_from_pinocchio(self, model: Any, q: Array) -> tuple[Array, Array | None]:
        """Return q (nq,) of Pinocchio's, joints by name, and the base's pose (7,), None if fixed.

        The base is the free-flyer that carries the robot's first joint or link.

        Raises
        ------
        RobotError
            If q has another size, or the model lacks a joint or moves it otherwise; names it.
        """
        return self._map(PinocchioMap, model).positions_from(q)

    def q_to_pinocchio(self, model: Any, q: Array, base: Array | None = None) -> Array:
        """Return Pinocchio's q of this robot's and the pose of its base: x, y, z, x, y, z, w.

        Raises
        ------
        RobotError
            As for :meth:`q_from_pinocchio`, and if the base is no pose or the robot has none.
        """
        return self._map(PinocchioMap, model).positions_to(q, base)

    def q_from_mujoco(self, model: Any, qpos: Array) -> tuple[Array, Array | None]:
        """Return q (nq,) of MuJoCo's qpos, joints by name, and the base's pose, None if fixed.

        The pose (7,) has its quaternion x, y, z, w. The base is the free joint that carries the
        robot's first joint or link.

        Raises
        ------
        RobotError
            If qpos has another size, or the model lacks a joint or moves it otherwise; names it.
        """
        return self._map(MujocoMap, model).positions_from(qpos)

    def q_to_mujoco(self, model: Any, q: Array, base: Array | None = None) -> Array:
        """Return MuJoCo's qpos of this robot's q and the pose of its base: x, y, z, x, y, z, w.

        Raises
        ------
        RobotError
            As for :meth:`q_from_mujoco`, and if the base is no pose or the robot has none.
        """
        return self._map(MujocoMap, model).positions_to(q, base)

    def v_from_pinocchio(self, model: Any, q: Array, v: Array) -> Array:
        """Return the velocities (nv,), as of :meth:`v`, of Pinocchio's at its q, joints by name.

        Those of planar joints are along axes that turn there, hence q.

        Raises
        ------
        RobotError
            As for :meth:`q_from_pinocchio`, and if v has another size.
        """
        return self._map(PinocchioMap, model).velocities_from(q, v)

    def v_to_pinocchio(self, model: Any, q: Array, v: Array) -> Array:
        """Return Pinocchio's v at its q of this robot's velocities (nv,), as of :meth:`v`.

        Raises
        ------
        RobotError
            As for :meth:`v_from_pinocchio`.
        """
        return self._map(PinocchioMap, model).velocities_to(q, v)

    def v_from_mujoco(self, model: Any, qpos: Array, qvel: Array) -> Array:
        """Return the velocities (nv,), as of :meth:`v`, of MuJoCo's qvel, joints by name.

        MuJoCo has linear velocities of free joints in the axes of the world, hence qpos.

        Raises
        ------
        RobotError
            As for :meth:`q_from_mujoco`, and if qvel has another size.
        """
        return self._map(MujocoMap, model).velocities_from(qpos, qvel)

    def v_to_mujoco(self, model: Any, qpos: Array, v: Array) -> Array:
        """Return MuJoCo's qvel at qpos of this robot's velocities (nv,), as of :meth:`v`.

        Raises
        ------
        RobotError
            As for :meth:`v_from_mujoco`.
        """
        return self._map(MujocoMap, model).velocities_to(qpos, v)

    def subtree(self: _RobotT, joint: str) -> _RobotT:
        """Return the part of the robot that a joint carries, mounted on the world.

        Parameters
        ----------
        joint : name of the first joint of a limb, which is the first joint of the new robot.

        Raises
        ------
        RobotError
            If the joint is unknown or a floating base, or a coupling, loop or function is between
            the limb and the rest of the robot.
        """
        return _edited(self, lambda robot: subtree(robot, joint))

    @cached_property
    def _maps(self) -> dict[type[StateMap], StateMap]:
        """The map of each library's latest model: controllers convert states at each tick."""
        return {}

    def _map(self, kind: type[StateMap], model: Any) -> StateMap:
        """Return the map of a model, that of the previous call if the model is the same."""
        found = self._maps.get(kind)
        if found is None or not found.is_of(model):
            found = self._maps[kind] = kind(self, model)
        return found


def _edited(robot: _RobotT, edit: Callable[[_RobotT], _RobotT]) -> _RobotT:
    """Return an edited robot, whose rows of loops are chosen anew."""
    found = edit(robot.clustered)
    return with_row_loops(found) if robot.row_loops else found
