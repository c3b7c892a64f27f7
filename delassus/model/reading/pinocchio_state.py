"""Positions and velocities of a robot to and from Pinocchio's q and v."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from delassus.errors import RobotError
from delassus.model.chains import SMALLEST_COSINE, angles_of
from delassus.model.joint import Joint, JointKind
from delassus.model.mechanism import Mechanism
from delassus.model.reading.pinocchio import model_of
from delassus.model.reading.pinocchio_joints import (
    FREE_FLYER,
    SPHERICAL,
    Part,
    parts_of,
    position_of,
    unit_entries,
    write_position,
)
from delassus.model.reading.states import QUATERNION, StateMap
from delassus.model.spatial import (
    Array,
    Transform,
    check_unit_norm,
    rotation_from_quaternion,
)


class PinocchioMap(StateMap):
    """Positions and velocities to and from those of one pinocchio.Model.

    A joint without bounds, and the angle of a planar joint, is a cosine and a sine in Pinocchio. A
    mimicking joint has neither position nor velocity there: both follow from its primary's.

    Raises
    ------
    RobotError
        As :class:`~delassus.model.reading.states.StateMap`, and if `model` is neither a
        pinocchio.Model nor a pinocchio.RobotWrapper.
    """

    POSITIONS = "q"
    VELOCITIES = "v"

    def __init__(self, robot: Mechanism, model: Any) -> None:
        super().__init__(robot, model_of(model))
        parts = [self._parts[tie.number] for tie in self.ties]
        entries = [(part.name, unit_entries(part)) for part in parts]
        self._units = [(name, place) for name, place in entries if place is not None]

    def is_of(self, model: Any) -> bool:
        """Return whether this map is of a model, or of a RobotWrapper's, without new joints."""
        return super().is_of(model_of(model))

    def _joint_numbers(self) -> Mapping[str, int]:
        neutral = self._reference()
        found = [
            (j, part)
            for j in range(1, self.model.njoints)
            for part in parts_of(self.model, j, neutral)
        ]
        self._joint_of = [j for j, _ in found]
        self._parts = [part for _, part in found]
        return {part.name: k for k, part in enumerate(self._parts)}

    def _motion_of(self, number: int) -> tuple[JointKind | None, Sequence[float], str]:
        part = self._parts[number]
        return part.kind, part.axis, part.what

    def _is_ball(self, name: str) -> bool:
        return name in self._by_name and self._parts[self._by_name[name]].kind is None

    def _is_free(self, number: int) -> bool:
        return self._parts[number].is_free

    def _free_joint_carrying(self, number: int) -> int | None:
        free = {self._joint_of[k]: k for k, part in enumerate(self._parts) if part.is_free}
        j = int(self.model.parents[self._joint_of[number]])
        while j and j not in free:
            j = int(self.model.parents[j])
        return free.get(j)

    def _free_joint_of(self, links: Collection[str]) -> int | None:
        free = {self._joint_of[k]: k for k, part in enumerate(self._parts) if part.is_free}
        for frame in self.model.frames:
            if frame.name in links and frame.parentJoint in free:
                return free[frame.parentJoint]
        return None

    def _reference(self) -> Array:
        import pinocchio as pin

        neutral: Array = pin.neutral(self.model)
        return neutral

    def _check(self, positions: Array) -> None:
        for name, place in self._units:
            is_angle = place.stop - place.start == 2
            expected = "cosine and sine of an angle" if is_angle else QUATERNION
            what = f"q[{place.start}:{place.stop}] (joint {name!r})"
            check_unit_norm(what, positions[place], expected, RobotError)

    def _write_locked(self, number: int, values: Array, positions: Array) -> None:
        write_position(self._parts[number], values, positions)

    def _position(self, joint: Joint, number: int, positions: Array) -> Array:
        part = self._parts[number]
        if not part.is_free:
            return position_of(part, positions)
        if part.what == FREE_FLYER:
            return np.array(positions[part.q])
        pose = self._computed(part, positions).M
        place = Transform(pose.rotation, pose.translation)
        return np.array([*place.translation, *place.quaternion()])

    def _write_position(
        self, joint: Joint, number: int, values: Array, positions: Array
    ) -> None:
        part = self._parts[number]
        if not part.is_free:
            write_position(part, values, positions)
        elif part.what == FREE_FLYER:
            positions[part.q] = values
        else:
            self._write_pose(part, values, positions)

    def _write_pose(self, part: Part, values: Array, positions: Array) -> None:
        """Write the pose (7,) of a composite of a translation and a rotation."""
        (_, first), (turn, second) = zip(
            part.joint.extract().joints, part.joint.extract().jointPlacements, strict=True
        )
        rotation = rotation_from_quaternion(values[3:])
        # pose = first · translation · second · rotation
        between = first.rotation @ second.rotation
        own = between.T @ rotation
        start = part.q.start
        offset = first.translation + first.rotation @ second.translation
        positions[start : start + 3] = first.rotation.T @ (values[:3] - offset)
        entries = slice(turn.idx_q, turn.idx_q + turn.nq)
        if turn.shortname() == SPHERICAL:
            positions[entries] = Transform(own).quaternion()
        else:
            positions[entries] = angles_of(own, "ZYX")

    def _computed(self, part: Part, positions: Array) -> Any:
        """Return Pinocchio's data of a joint at positions."""
        data = part.joint.createData()
        part.joint.calc(data, positions)
        return data

    def _velocity(self, joint: Joint, number: int, positions: Array, velocities: Array) -> Array:
        part = self._parts[number]
        values: Array = velocities[part.v].copy()
        if part.leading is not None:
            values *= part.leading.scaling
        elif joint.kind is JointKind.PLANAR:
            values[:2] = _axes_in_plane(part.joint, positions) @ values[:2]
        elif part.is_free and part.what != FREE_FLYER:
            values = np.asarray(self._computed(part, positions).S) @ values
        return values

    def _write_velocity(
        self, joint: Joint, number: int, positions: Array, values: Array, velocities: Array
    ) -> None:
        part = self._parts[number]
        if part.leading is not None:
            return
        if joint.kind is JointKind.PLANAR:
            values[:2] = _axes_in_plane(part.joint, positions).T @ values[:2]
        elif part.is_free and part.what != FREE_FLYER:
            values = self._coordinates(part, positions, values)
        velocities[part.v] = values

    def _coordinates(self, part: Part, positions: Array, twist: Array) -> Array:
        """Return the velocities (6,) of a composite root that has a twist (6,) in its own axes."""
        S = np.asarray(self._computed(part, positions).S)
        if abs(float(np.linalg.det(S))) < SMALLEST_COSINE:
            raise RobotError(
                f"joint {part.name!r} has angles about z, y and x, of which the second is 90° "
                "here, where two of them are one; expected a free-flyer, or another orientation"
            )
        found: Array = np.linalg.solve(S, twist)
        return found

    def _rotation(self, number: int, positions: Array) -> Array:
        return rotation_from_quaternion(positions[self._parts[number].q])

    def _write_rotation(self, number: int, rotation: Array, positions: Array) -> None:
        positions[self._parts[number].q] = Transform(rotation).quaternion()

    def _angular(self, number: int) -> slice:
        return self._parts[number].v


def _axes_in_plane(joint: Any, q: Array) -> Array:
    """Return the axes (2, 2), as columns, along which a planar joint has its velocities."""
    cosine, sine = q[joint.idx_q + 2 : joint.idx_q + 4].tolist()
    return np.array([[cosine, -sine], [sine, cosine]])
