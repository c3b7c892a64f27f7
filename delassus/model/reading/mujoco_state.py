"""Positions and velocities of a robot to and from MuJoCo's qpos and qvel."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from delassus.arguments import instance
from delassus.errors import RobotError
from delassus.model.joint import Joint, JointKind
from delassus.model.mechanism import Mechanism
from delassus.model.reading.mujoco import body_names, held_joints, joint_names, pose_of
from delassus.model.reading.states import StateMap
from delassus.model.spatial import Array, Transform

UNIT_ROUNDING = 1e-12
"""Difference between 1 and a quaternion's norm below which the quaternion is not normalized: a
state that is converted to MuJoCo's and back stays the same to the last bit."""
HELD_TOLERANCE = 0.02
"""Largest distance of a joint from the position at which an equality holds the joint [rad, m]:
equalities of a simulator are soft."""
_FREE = (JointKind.ROOT, JointKind.FLOATING)
_KINDS = {
    "mjJNT_HINGE": JointKind.REVOLUTE,
    "mjJNT_SLIDE": JointKind.PRISMATIC,
    "mjJNT_FREE": JointKind.FLOATING,
}


class MujocoMap(StateMap):
    """Positions and velocities to and from those of one mujoco.MjModel.

    MuJoCo's quaternions are w, x, y, z and need not have unit norm. The linear velocity of a free
    joint is in the axes of the world.

    Raises
    ------
    RobotError
        As :class:`~delassus.model.reading.states.StateMap`, and if `model` is no MjModel.
    """

    POSITIONS = "qpos"
    VELOCITIES = "qvel"

    def __init__(self, robot: Mechanism, model: Any) -> None:
        import mujoco

        instance("model", model, mujoco.MjModel, "mujoco.MjModel.from_xml_path(path)", RobotError)
        super().__init__(robot, model)
        held = held_joints(model)
        self._held = {number: value for number, value in self._locked.items() if number in held}

    def _joint_numbers(self) -> Mapping[str, int]:
        return {name: j for j, name in enumerate(joint_names(self.model))}

    def _motion_of(self, number: int) -> tuple[JointKind | None, Sequence[float], str]:
        import mujoco

        what: str = mujoco.mjtJoint(int(self.model.jnt_type[number])).name
        return _KINDS.get(what), self.model.jnt_axis[number].tolist(), what

    def _is_ball(self, name: str) -> bool:
        import mujoco

        number = self._by_name.get(name, -1)
        ball = int(mujoco.mjtJoint.mjJNT_BALL)
        return number >= 0 and int(self.model.jnt_type[number]) == ball

    def _rotation(self, number: int, positions: Array) -> Array:
        first = int(self.model.jnt_qposadr[number])
        name = list(self._by_name)[number]
        return pose_of(np.zeros(3), _quaternion(name, positions, first)).rotation

    def _write_rotation(self, number: int, rotation: Array, positions: Array) -> None:
        first = int(self.model.jnt_qposadr[number])
        positions[first : first + 4] = np.roll(Transform(rotation).quaternion(), 1)

    def _angular(self, number: int) -> slice:
        first = int(self.model.jnt_dofadr[number])
        return slice(first, first + 3)

    def _is_free(self, number: int) -> bool:
        import mujoco

        return int(self.model.jnt_type[number]) == int(mujoco.mjtJoint.mjJNT_FREE)

    def _free_joints(self) -> dict[int, int]:
        """Return the free joint of each body that has one."""
        numbers = filter(self._is_free, self._by_name.values())
        return {int(self.model.jnt_bodyid[j]): j for j in numbers}

    def _free_joint_carrying(self, number: int) -> int | None:
        free, body = self._free_joints(), int(self.model.jnt_bodyid[number])
        while body and body not in free:
            body = int(self.model.body_parentid[body])
        return free.get(body)

    def _free_joint_of(self, links: Collection[str]) -> int | None:
        names = body_names(self.model)
        return next((j for body, j in self._free_joints().items() if names[body] in links), None)

    def _reference(self) -> Array:
        return np.array(self.model.qpos0)

    def _check(self, positions: Array) -> None:
        for number, value in self._held.items():
            entry = int(self.model.jnt_qposadr[number])
            if not abs(float(positions[entry]) - value) <= HELD_TOLERANCE:
                raise RobotError(
                    f"qpos[{entry}] (joint {list(self._by_name)[number]!r}) is "
                    f"{positions[entry]:.6g}, but an equality of the model holds this joint at "
                    f"{value:.6g}; expected that to {HELD_TOLERANCE:g} rad or m"
                )

    def _write_locked(self, number: int, values: Array, positions: Array) -> None:
        positions[int(self.model.jnt_qposadr[number])] = values[0]

    def _position(self, joint: Joint, number: int, positions: Array) -> Array:
        first = int(self.model.jnt_qposadr[number])
        if joint.kind not in _FREE:
            return positions[first : first + 1]
        w, x, y, z = _quaternion(joint.name, positions, first + 3).tolist()
        return np.array([*positions[first : first + 3].tolist(), x, y, z, w])

    def _write_position(
        self, joint: Joint, number: int, values: Array, positions: Array
    ) -> None:
        first = int(self.model.jnt_qposadr[number])
        if joint.kind in _FREE:
            x, y, z, w = values[3:].tolist()
            positions[first : first + 7] = [*values[:3].tolist(), w, x, y, z]
        else:
            positions[first] = values[0]

    def _velocity(self, joint: Joint, number: int, positions: Array, velocities: Array) -> Array:
        first = int(self.model.jnt_dofadr[number])
        values: Array = velocities[first : first + joint.kind.nv].copy()
        if joint.kind in _FREE:
            values[:3] = self._axes_of(joint, number, positions).T @ values[:3]
        return values

    def _write_velocity(
        self, joint: Joint, number: int, positions: Array, values: Array, velocities: Array
    ) -> None:
        if joint.kind in _FREE:
            values[:3] = self._axes_of(joint, number, positions) @ values[:3]
        first = int(self.model.jnt_dofadr[number])
        velocities[first : first + joint.kind.nv] = values

    def _axes_of(self, joint: Joint, number: int, positions: Array) -> Array:
        """Return the axes of the body that a free joint moves, as columns (3, 3)."""
        first = int(self.model.jnt_qposadr[number])
        quaternion = _quaternion(joint.name, positions, first + 3)
        return pose_of(np.zeros(3), quaternion).rotation


def _quaternion(joint: str, positions: Array, first: int) -> Array:
    """Return the unit quaternion w, x, y, z of a free or ball joint."""
    quaternion = positions[first : first + 4]
    norm = float(np.linalg.norm(quaternion))
    if not 0.0 < norm < np.inf:
        raise RobotError(
            f"qpos[{first}:{first + 4}] (joint {joint!r}) has norm {norm:g}; expected a "
            "quaternion w, x, y, z"
        )
    unit: Array = quaternion if abs(norm - 1.0) < UNIT_ROUNDING else quaternion / norm
    return unit
