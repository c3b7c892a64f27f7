"""Positions and velocities of a robot to and from Pinocchio's q and v."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from delassus_ros.model.joint import Joint, JointKind
from delassus_ros.model.mechanism import Mechanism
from delassus_ros.model.reading.pinocchio import (
    FREE_FLYER,
    MIMIC,
    kind_and_axis,
    model_of,
    primary_of,
)
from delassus_ros.model.reading.states import StateMap
from delassus_ros.model.spatial import Array


class PinocchioMap(StateMap):
    """Positions and velocities to and from those of one pinocchio.Model.

    A joint without bounds, and the angle of a planar joint, is a cosine and a sine in Pinocchio. A
    mimicking joint has neither position nor velocity there: both follow from its primary's.

    Raises
    ------
    RobotError
        As :class:`~delassus_ros.model.reading.states.StateMap`, and if `model` is neither a
        pinocchio.Model nor a pinocchio.RobotWrapper.
    """

    POSITIONS = "q"
    VELOCITIES = "v"

    def __init__(self, robot: Mechanism, model: Any) -> None:
        super().__init__(robot, model_of(model))

    def is_of(self, model: Any) -> bool:
        """Return whether this map is of a model, or of a RobotWrapper's, without new joints."""
        return super().is_of(model_of(model))

    def _joint_numbers(self) -> Mapping[str, int]:
        return {name: j for j, name in enumerate(self.model.names) if j}

    def _motion_of(
        self, joint: Joint, number: int
    ) -> tuple[JointKind | None, Sequence[float], str]:
        theirs = self.model.joints[number]
        return *kind_and_axis(joint.name, theirs, self._reference()), theirs.shortname()

    def _is_free(self, number: int) -> bool:
        return bool(self.model.joints[number].shortname() == FREE_FLYER)

    def _free_joint_carrying(self, number: int) -> int | None:
        number = int(self.model.parents[number])
        while number and not self._is_free(number):
            number = int(self.model.parents[number])
        return number or None

    def _free_joint_of(self, links: Collection[str]) -> int | None:
        for frame in self.model.frames:
            if frame.name in links and self._is_free(frame.parentJoint):
                return int(frame.parentJoint)
        return None

    def _reference(self) -> Array:
        import pinocchio as pin

        neutral: Array = pin.neutral(self.model)
        return neutral

    def _position(self, joint: Joint, number: int, positions: Array) -> Array:
        theirs = self.model.joints[number]
        if theirs.shortname() == MIMIC:
            mimic, primary = theirs.extract(), self.model.joints[primary_of(self.model, number)]
            leading: Array = positions[primary.idx_q : primary.idx_q + primary.nq]
            return np.array([mimic.scaling * _with_angle(leading, 1)[0] + mimic.offset])
        values: Array = positions[theirs.idx_q : theirs.idx_q + theirs.nq]
        if joint.kind is JointKind.ROOT:
            return np.array(values)
        return _with_angle(values, joint.kind.nq)

    def _write_position(
        self, joint: Joint, number: int, values: Array, positions: Array
    ) -> None:
        theirs = self.model.joints[number]
        if theirs.shortname() == MIMIC:
            return
        if len(values) != theirs.nq:
            values = np.array([*values[:-1], np.cos(values[-1]), np.sin(values[-1])])
        positions[theirs.idx_q : theirs.idx_q + theirs.nq] = values

    def _velocity(self, joint: Joint, number: int, positions: Array, velocities: Array) -> Array:
        theirs = self.model.joints[number]
        if theirs.shortname() == MIMIC:
            first = self.model.joints[primary_of(self.model, number)].idx_v
            rates: Array = theirs.extract().scaling * velocities[first : first + 1]
            return rates
        values: Array = velocities[theirs.idx_v : theirs.idx_v + theirs.nv].copy()
        if joint.kind is JointKind.PLANAR:
            values[:2] = _axes_in_plane(theirs, positions) @ values[:2]
        return values

    def _write_velocity(
        self, joint: Joint, number: int, positions: Array, values: Array, velocities: Array
    ) -> None:
        theirs = self.model.joints[number]
        if theirs.shortname() == MIMIC:
            return
        if joint.kind is JointKind.PLANAR:
            values[:2] = _axes_in_plane(theirs, positions).T @ values[:2]
        velocities[theirs.idx_v : theirs.idx_v + theirs.nv] = values


def _with_angle(values: Array, count: int) -> Array:
    """Return `count` positions of a joint: cosine and sine at the end become their angle."""
    if len(values) == count:
        return values
    return np.array([*values[:-2], np.arctan2(values[-1], values[-2])])


def _axes_in_plane(joint: Any, q: Array) -> Array:
    """Return the axes (2, 2), as columns, along which a planar joint has its velocities."""
    cosine, sine = q[joint.idx_q + 2 : joint.idx_q + 4].tolist()
    return np.array([[cosine, -sine], [sine, cosine]])
