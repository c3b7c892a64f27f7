"""Positions and velocities of robots from and to MuJoCo's qpos and qvel, joints by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.arguments import instance, sized
from delassus_ros.errors import RobotError
from delassus_ros.model.reading.mujoco import body_names, joint_names, pose_of
from delassus_ros.model.reading.states import (
    base_pose,
    check_alike,
    kept,
    links_of_base,
    no_base,
    number_of,
    on_base,
)
from delassus_ros.model.robot import Joint, JointKind, Robot
from delassus_ros.model.spatial import Array

_ROUNDING = 1e-12
_FREE = (JointKind.ROOT, JointKind.FLOATING)
_KINDS = {
    "mjJNT_HINGE": JointKind.REVOLUTE,
    "mjJNT_SLIDE": JointKind.PRISMATIC,
    "mjJNT_FREE": JointKind.FLOATING,
}


def positions_from(robot: Robot, model: Any, qpos: ArrayLike) -> tuple[Array, Array | None]:
    """Return a robot's q (nq,), and the pose of its floating base (7,): x, y, z, quaternion xyzw.

    Parameters
    ----------
    qpos : of a mujoco.MjData (model.nq,).

    Raises
    ------
    RobotError
        If it has another size or a quaternion of zeros, or the model lacks one of the robot's
        joints, has it of another kind or about another axis, or has nothing that floats where the
        robot's base does.
    """
    numbers = _joint_numbers(robot, model)
    taken = sized("qpos", qpos, model.nq, "the model's", RobotError)
    found, base = robot.neutral(), None
    for joint, offset, j in zip(robot.joints, robot.q_offsets, numbers, strict=True):
        first = int(model.jnt_qposadr[j])
        if joint.kind in _FREE:
            w, x, y, z = _quaternion(joint, taken, first).tolist()
            pose = np.array([*taken[first : first + 3].tolist(), x, y, z, w])
            if joint.kind is JointKind.ROOT:
                base = pose
            else:
                found[offset : offset + 7] = pose
        else:
            found[offset] = taken[first]
    return found, base


def positions_to(
    robot: Robot, model: Any, q: ArrayLike, base: ArrayLike | None = None
) -> Array:
    """Return MuJoCo's qpos (model.nq,); the inverse of :func:`positions_from`.

    Joints of the model that the robot lacks stay at qpos0, and so does a base that is not given.

    Raises
    ------
    RobotError
        If q has another size, the base is no pose or not there, or the model does not fit as in
        :func:`positions_from`.
    """
    numbers = _joint_numbers(robot, model)
    given = sized("q", q, robot.nq, "the robot's", RobotError)
    of_base = base_pose(robot, base)
    found: Array = np.array(model.qpos0)
    for joint, offset, j in zip(robot.joints, robot.q_offsets, numbers, strict=True):
        first = int(model.jnt_qposadr[j])
        if joint.kind in _FREE:
            pose = of_base if joint.kind is JointKind.ROOT else given[offset : offset + 7]
            if pose is not None:
                x, y, z, w = pose[3:].tolist()
                found[first : first + 7] = [*pose[:3].tolist(), w, x, y, z]
        else:
            found[first] = given[offset]
    return found


def velocities_from(robot: Robot, model: Any, qpos: ArrayLike, qvel: ArrayLike) -> Array:
    """Return a robot's velocities (nv,); see :meth:`Robot.v_from_mujoco`."""
    numbers = _joint_numbers(robot, model)
    places = sized("qpos", qpos, model.nq, "the model's", RobotError)
    taken = sized("qvel", qvel, model.nv, "the model's", RobotError)
    found = np.zeros(robot.nv)
    for joint, offset, j in zip(robot.joints, robot.v_offsets, numbers, strict=True):
        at = int(model.jnt_dofadr[j])
        values = taken[at : at + joint.kind.nv].copy()
        if joint.kind in _FREE:
            values[:3] = _axes_of(joint, places, int(model.jnt_qposadr[j])).T @ values[:3]
        found[offset : offset + joint.kind.nv] = values
    return found


def velocities_to(robot: Robot, model: Any, qpos: ArrayLike, v: ArrayLike) -> Array:
    """Return MuJoCo's qvel (model.nv,) at qpos; the inverse of :func:`velocities_from`.

    Joints of the model that the robot lacks are at rest.
    """
    numbers = _joint_numbers(robot, model)
    places = sized("qpos", qpos, model.nq, "the model's", RobotError)
    given = sized("v", v, robot.nv, "the robot's", RobotError)
    found = np.zeros(model.nv)
    for joint, offset, j in zip(robot.joints, robot.v_offsets, numbers, strict=True):
        at = int(model.jnt_dofadr[j])
        values = given[offset : offset + joint.kind.nv].copy()
        if joint.kind in _FREE:
            values[:3] = _axes_of(joint, places, int(model.jnt_qposadr[j])) @ values[:3]
        found[at : at + joint.kind.nv] = values
    return found


def _axes_of(joint: Joint, qpos: Array, first: int) -> Array:
    """Return the axes of the body that a free joint moves, as columns."""
    return pose_of(np.zeros(3), _quaternion(joint, qpos, first)).rotation


def _quaternion(joint: Joint, qpos: Array, first: int) -> Array:
    """Return the unit quaternion w, x, y, z of a free joint; MuJoCo's need not be of unit norm."""
    quaternion = qpos[first + 3 : first + 7]
    norm = float(np.linalg.norm(quaternion))
    if not norm:
        raise RobotError(
            f"qpos[{first + 3}:{first + 7}] (joint {joint.name!r}) is zero; expected a quaternion "
            "w, x, y, z"
        )
    # Left to the last bit where there is nothing to do.
    unit: Array = quaternion if abs(norm - 1.0) < _ROUNDING else quaternion / norm
    return unit


@kept
def _joint_numbers(robot: Robot, model: Any) -> list[int]:
    """Return MuJoCo's number of each of the robot's joints."""
    import mujoco

    instance("model", model, mujoco.MjModel, "mujoco.MjModel.from_xml_path(path)", RobotError)
    numbers = {name: j for j, name in enumerate(joint_names(model))}
    types, axes = model.jnt_type.tolist(), model.jnt_axis.tolist()
    found = []
    for joint in robot.joints:
        if joint.kind is JointKind.ROOT:
            found.append(_floating_base(robot, model, numbers))
            continue
        j = number_of(robot, joint.name, numbers)
        what = mujoco.mjtJoint(types[j]).name
        check_alike(joint, _KINDS.get(what), axes[j], what)
        found.append(j)
    return found


def _floating_base(robot: Robot, model: Any, numbers: Mapping[str, int]) -> int:
    """Return the free joint that carries what the robot's base carries."""
    import mujoco

    free = np.flatnonzero(model.jnt_type == int(mujoco.mjtJoint.mjJNT_FREE)).tolist()
    of_body = {int(model.jnt_bodyid[j]): int(j) for j in free}
    carried = on_base(robot)
    if carried is not None:
        b = int(model.jnt_bodyid[number_of(robot, carried, numbers)])
        while b and b not in of_body:
            b = int(model.body_parentid[b])
        if b:
            return of_body[b]
    else:
        names, links = body_names(model), links_of_base(robot)
        for b, j in of_body.items():
            if names[b] in links:
                return j
    raise no_base(robot, [name for name, j in numbers.items() if j in free])
