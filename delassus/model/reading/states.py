"""Positions and velocities of a robot to and from a model of another library, joints by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from delassus.arguments import sized
from delassus.errors import RobotError
from delassus.model.chains import (
    angles_of,
    angular_to_rates,
    rates_to_angular,
    rotation_of,
)
from delassus.model.joint import Joint, JointKind
from delassus.model.mechanism import Mechanism
from delassus.model.spatial import Array, check_unit_norm

QUATERNION = "a unit quaternion x, y, z, w"
"""Four numbers of a pose, for messages."""
AXIS_TOLERANCE = 1e-6
"""Largest difference of two unit axes of one joint, per component: files print few digits."""


@dataclass(frozen=True, eq=False)
class Tie:
    """A joint of the robot, or the chain that stands for a ball joint, and the model's joint.

    Attributes
    ----------
    joint : the joint; the first one of a chain.
    number : of the model's joint.
    q, v : entries in the robot's q and v.
    ball : name of the model's ball joint, and the axes of the chain; None for a single joint.
    """

    joint: Joint
    number: int
    q: slice
    v: slice
    ball: tuple[str, str] | None = None


class StateMap(ABC):
    """Positions and velocities of a robot to and from those of one model of another library.

    Joints correspond by name, and the three joints ``name_X``, ``name_Y`` and ``name_Z`` of the
    robot to a ball joint ``name`` of the model. The floating base of the robot corresponds to the
    free joint of the model that carries the robot's first joint or, without joints, the base's
    link.

    Parameters
    ----------
    robot : the robot.
    model : the model of the other library.

    Attributes
    ----------
    robot, model : the two sides.
    ties : the joints of both, in the order of the robot.

    Raises
    ------
    RobotError
        If the model lacks a joint of the robot, moves it along another axis or by another kind of
        joint, or has no free joint for the robot's floating base; names the joint.
    """

    POSITIONS: ClassVar[str]
    """Name of the model's positions in messages."""
    VELOCITIES: ClassVar[str]
    """Name of the model's velocities in messages."""

    def __init__(self, robot: Mechanism, model: Any) -> None:
        self.robot = robot
        self.model = model
        self._nq = model.nq
        self._by_name = self._joint_numbers()
        self.ties = tuple(self._tied())
        single = (JointKind.REVOLUTE, JointKind.PRISMATIC)
        self._locked = {
            self._by_name[name]: value
            for name, value in robot.locked.items()
            if name in self._by_name and self._motion_of(self._by_name[name])[0] in single
        }

    def is_of(self, model: Any) -> bool:
        """Return whether this map is of a model, which has got no more joints since."""
        return self.model is model and self._nq == model.nq

    def positions_from(self, positions: ArrayLike) -> tuple[Array, Array | None]:
        """Return the robot's q (nq,) and the pose of its floating base.

        The pose (7,) is x, y, z [m] and a unit quaternion x, y, z, w; None for a fixed base.

        Parameters
        ----------
        positions : of the model (model.nq,).

        Raises
        ------
        RobotError
            If `positions` have another size, or numbers that are no rotation; if they contradict
            a joint that the model holds and the robot lacks. Names the joint.
        """
        theirs = self._checked(positions)
        q, base = self.robot.neutral(), None
        for tie in self.ties:
            if tie.ball is not None:
                q[tie.q] = angles_of(self._rotation(tie.number, theirs), tie.ball[1])
                continue
            values = self._position(tie.joint, tie.number, theirs)
            if tie.joint.kind is JointKind.ROOT:
                base = values
            else:
                q[tie.q] = values
        return q, base

    def positions_to(self, q: ArrayLike, base: ArrayLike | None = None) -> Array:
        """Return the model's positions (model.nq,); the inverse of :meth:`positions_from`.

        Joints that the robot has locked are where it has them. Other joints that only the model
        has, and a base without a pose, keep the model's reference.

        Raises
        ------
        RobotError
            If `q` has another size, or `base` is no pose, or the robot has no floating base.
        """
        ours = sized("q", q, self.robot.nq, "the robot's", RobotError)
        pose = _base_pose(self.robot, base)
        positions = self._reference()
        for number, value in self._locked.items():
            self._write_locked(number, np.array([value]), positions)
        for tie in self.ties:
            if tie.ball is not None:
                rotation = rotation_of(ours[tie.q], tie.ball[1])
                self._write_rotation(tie.number, rotation, positions)
                continue
            values = pose if tie.joint.kind is JointKind.ROOT else ours[tie.q]
            if values is not None:
                self._write_position(tie.joint, tie.number, values, positions)
        return positions

    def velocities_from(self, positions: ArrayLike, velocities: ArrayLike) -> Array:
        """Return the robot's velocities (nv,) of the model's at its positions.

        Raises
        ------
        RobotError
            If `velocities` have another size, or as :meth:`positions_from`.
        """
        at = self._checked(positions)
        theirs = sized(self.VELOCITIES, velocities, self.model.nv, "the model's", RobotError)
        v = np.zeros(self.robot.nv)
        for tie in self.ties:
            if tie.ball is None:
                v[tie.v] = self._velocity(tie.joint, tie.number, at, theirs)
            else:
                angles = angles_of(self._rotation(tie.number, at), tie.ball[1])
                E = angular_to_rates(angles, *tie.ball)
                v[tie.v] = E @ theirs[self._angular(tie.number)]
        return v

    def velocities_to(self, positions: ArrayLike, v: ArrayLike) -> Array:
        """Return the model's velocities (model.nv,); the inverse of :meth:`velocities_from`.

        Joints that only the model has are at rest.

        Raises
        ------
        RobotError
            If `v` has another size, or as :meth:`positions_from`.
        """
        at = self._checked(positions)
        ours = sized("v", v, self.robot.nv, "the robot's", RobotError)
        velocities = np.zeros(self.model.nv)
        for tie in self.ties:
            values = ours[tie.v].copy()
            if tie.ball is None:
                self._write_velocity(tie.joint, tie.number, at, values, velocities)
            else:
                angles = angles_of(self._rotation(tie.number, at), tie.ball[1])
                E = rates_to_angular(angles, tie.ball[1])
                velocities[self._angular(tie.number)] = E @ values
        return velocities

    def _checked(self, positions: ArrayLike) -> Array:
        """Return the model's positions after a check; :meth:`positions_from` says of what."""
        found = sized(self.POSITIONS, positions, self.model.nq, "the model's", RobotError)
        self._check(found)
        return found

    def _tied(self) -> Iterator[Tie]:
        """Yield the joints of the robot, the three of a ball joint together."""
        robot = self.robot
        left = list(zip(robot.joints, robot.q_offsets, robot.v_offsets, strict=True))
        while left:
            joint, q, v = left.pop(0)
            entries = slice(q, q + joint.kind.nq), slice(v, v + joint.kind.nv)
            if joint.kind is JointKind.ROOT:
                yield Tie(joint, self._floating_base(), *entries)
                continue
            name, _, letter = joint.name.rpartition("_")
            chain = [joint, *(each for each, _, _ in left[:2])]
            letters = letter + "".join(each.name.rpartition("_")[2] for each in chain[1:])
            is_chain = joint.name not in self._by_name and self._is_ball(name)
            if is_chain and [each.name for each in chain] == [f"{name}_{one}" for one in letters]:
                _check_chain(chain, name, letters)
                del left[:2]
                ball = (name, letters)
                yield Tie(joint, self._by_name[name], slice(q, q + 3), slice(v, v + 3), ball)
                continue
            yield Tie(joint, self._checked_number(joint), *entries)

    def _checked_number(self, joint: Joint) -> int:
        """Return the number of a joint in the model; refuse one that moves in another way."""
        number = self._number_of(joint.name)
        kind, axis, what = self._motion_of(number)
        is_along = kind is JointKind.FLOATING or bool(
            np.abs(np.subtract(axis, joint.axis)).max() < AXIS_TOLERANCE
        )
        if kind is joint.kind and is_along:
            return number
        raise RobotError(
            f"joint {joint.name!r} of the robot is {joint.kind.label} with axis "
            f"{joint.axis.tolist()}, that of the model is {what} with axis {list(axis)}; expected "
            "the same, as of a robot that was read from the model"
        )

    def _number_of(self, name: str) -> int:
        """Return the number of a joint in the model."""
        if name not in self._by_name:
            raise RobotError(
                f"the model has no joint {name!r} of robot {self.robot.name!r}; it has: "
                f"{', '.join(self._by_name)}"
            )
        return self._by_name[name]

    def _floating_base(self) -> int:
        """Return the number of the free joint that carries the robot's base."""
        robot = self.robot
        carried = next((joint.name for joint in robot.joints if joint.parent == 0), None)
        links = [name for name, frame in robot.frames.items() if frame.body == 0]
        if carried is not None:
            number = self._free_joint_carrying(self._number_of(carried))
        else:
            number = self._free_joint_of(links)
        if number is not None:
            return number
        expected = f"that carries joint {carried!r}" if carried else f"of one of {links}"
        free = [name for name, j in self._by_name.items() if self._is_free(j)]
        raise RobotError(
            f"robot {robot.name!r} has a floating base; expected a free joint of the model "
            f"{expected}; its free joints: {', '.join(free) or 'none'}. A robot with base='fixed' "
            "needs none"
        )

    @abstractmethod
    def _joint_numbers(self) -> Mapping[str, int]:
        """Return the number of each joint of the model by its name."""

    @abstractmethod
    def _motion_of(self, number: int) -> tuple[JointKind | None, Sequence[float], str]:
        """Return kind and axis of the model's joint, and the type that the model calls it.

        The kind is None for a type that no robot has.
        """

    @abstractmethod
    def _is_ball(self, name: str) -> bool:
        """Return whether the model has a ball joint of this name."""

    @abstractmethod
    def _rotation(self, number: int, positions: Array) -> Array:
        """Return the rotation (3, 3) of a ball joint."""

    @abstractmethod
    def _write_rotation(self, number: int, rotation: Array, positions: Array) -> None:
        """Write the rotation of a ball joint to `positions`."""

    @abstractmethod
    def _angular(self, number: int) -> slice:
        """Return the entries of a ball joint's angular velocity, in the axes of its body."""

    @abstractmethod
    def _is_free(self, number: int) -> bool:
        """Return whether a joint of the model has six freedoms."""

    @abstractmethod
    def _free_joint_carrying(self, number: int) -> int | None:
        """Return the free joint that carries a joint, None without one."""

    @abstractmethod
    def _free_joint_of(self, links: Collection[str]) -> int | None:
        """Return the first free joint that moves one of these links, None without one."""

    @abstractmethod
    def _reference(self) -> Array:
        """Return the positions (model.nq,) that the model has without a state; a new array."""

    @abstractmethod
    def _check(self, positions: Array) -> None:
        """Refuse positions of the model that are no rotation, or contradict a held joint."""

    @abstractmethod
    def _write_locked(self, number: int, values: Array, positions: Array) -> None:
        """Write the position of a revolute or prismatic joint that the robot has locked."""

    @abstractmethod
    def _position(self, joint: Joint, number: int, positions: Array) -> Array:
        """Return the entries of q of one joint, or a new array of the pose (7,) of the base."""

    @abstractmethod
    def _write_position(
        self, joint: Joint, number: int, values: Array, positions: Array
    ) -> None:
        """Write the entries of q of one joint, or the pose (7,) of the base, to `positions`."""

    @abstractmethod
    def _velocity(self, joint: Joint, number: int, positions: Array, velocities: Array) -> Array:
        """Return the velocities of one joint of the robot."""

    @abstractmethod
    def _write_velocity(
        self, joint: Joint, number: int, positions: Array, values: Array, velocities: Array
    ) -> None:
        """Write the velocities of one joint, an array that may be changed, to `velocities`."""


def _check_chain(chain: Sequence[Joint], name: str, letters: str) -> None:
    """Refuse joints that are called as the chain of a ball joint, but are no such chain."""
    kinds = {joint.kind for joint in chain}
    axes = [joint.axis.tolist() for joint in chain]
    wanted = [np.eye(3)["XYZ".index(each)].tolist() for each in letters if each in "XYZ"]
    if sorted(letters) != ["X", "Y", "Z"] or kinds != {JointKind.REVOLUTE} or axes != wanted:
        raise RobotError(
            f"joint {name!r} of the model is a ball joint; expected three revolute joints "
            f"{name}_X, {name}_Y and {name}_Z about these axes, as of a robot that was read from "
            "the model"
        )


def _base_pose(robot: Mechanism, base: ArrayLike | None) -> Array | None:
    """Return the checked pose (7,) of a floating base."""
    if base is None:
        return None
    if robot.base == "fixed":
        raise RobotError(f"base is given, but the base of robot {robot.name!r} is fixed")
    pose = sized("base", base, 7, "x, y, z and a quaternion x, y, z, w", RobotError)
    check_unit_norm("base[3:7]", pose[3:], QUATERNION, RobotError)
    return pose
