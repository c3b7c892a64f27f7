"""Positions and velocities of robots from and to MuJoCo's qpos and qvel, joints by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from delassus_ros.arguments import sized
from delassus_ros.errors import RobotError
from delassus_ros.model.reading.mujoco import pose_of
from delassus_ros.model.robot import Joint, JointKind, Robot
from delassus_ros.model.spatial import Array


def positions_from(robot: Robot, model: Any, qpos: Array) -> tuple[Array, Array | None]:
    """Return a robot's q (nq,), and the pose of its floating base (7,): x, y, z, quaternion xyzw.

    Parameters
    ----------
    qpos : of a mujoco.MjData (model.nq,).

    Raises
    ------
    RobotError
        If it has another size, or the model lacks one of the robot's joints.
    """
    taken = sized("qpos", qpos, model.nq, "the model's", RobotError)
    found, base = robot.neutral(), None
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        first = _address(robot, model, joint)
        if joint.kind is JointKind.ROOT:
            base = _pose_of(taken[first : first + 7])
        elif joint.kind is JointKind.FLOATING:
            found[offset : offset + 7] = _pose_of(taken[first : first + 7])
        else:
            found[offset] = taken[first]
    return found, base


def positions_to(robot: Robot, model: Any, q: Array, base: Array | None = None) -> Array:
    """Return MuJoCo's qpos (model.nq,); the inverse of :func:`positions_from`.

    Joints of the model that the robot lacks stay at qpos0, and so does a base that is not given.

    Raises
    ------
    RobotError
        If q has another size, or the model lacks one of the robot's joints.
    """
    given = sized("q", q, robot.nq, "the robot's", RobotError)
    found: Array = np.array(model.qpos0)
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        first = _address(robot, model, joint)
        if joint.kind in (JointKind.ROOT, JointKind.FLOATING):
            pose = base if joint.kind is JointKind.ROOT else given[offset : offset + 7]
            if pose is not None:
                x, y, z, w = np.asarray(pose)[3:].tolist()
                found[first : first + 7] = [*np.asarray(pose)[:3].tolist(), w, x, y, z]
        else:
            found[first] = given[offset]
    return found


def velocities_from(robot: Robot, model: Any, qpos: Array, qvel: Array) -> Array:
    """Return a robot's velocities (nv,); see :meth:`Robot.v_from_mujoco`."""
    sized("qpos", qpos, model.nq, "the model's", RobotError)
    taken = sized("qvel", qvel, model.nv, "the model's", RobotError)
    found = np.zeros(robot.nv)
    for joint, offset in zip(robot.joints, robot.v_offsets, strict=True):
        at = _velocity_address(robot, model, joint)
        values = taken[at : at + joint.kind.nv].copy()
        if joint.kind in (JointKind.ROOT, JointKind.FLOATING):
            values[:3] = _axes_of(robot, model, joint, qpos).T @ values[:3]
        found[offset : offset + joint.kind.nv] = values
    return found


def velocities_to(robot: Robot, model: Any, qpos: Array, v: Array) -> Array:
    """Return MuJoCo's qvel (model.nv,) at qpos; the inverse of :func:`velocities_from`.

    Joints of the model that the robot lacks are at rest.
    """
    sized("qpos", qpos, model.nq, "the model's", RobotError)
    given = sized("v", v, robot.nv, "the robot's", RobotError)
    found = np.zeros(model.nv)
    for joint, offset in zip(robot.joints, robot.v_offsets, strict=True):
        at = _velocity_address(robot, model, joint)
        values = given[offset : offset + joint.kind.nv].copy()
        if joint.kind in (JointKind.ROOT, JointKind.FLOATING):
            values[:3] = _axes_of(robot, model, joint, qpos) @ values[:3]
        found[at : at + joint.kind.nv] = values
    return found


def _axes_of(robot: Robot, model: Any, joint: Joint, qpos: Array) -> Array:
    """Return the axes of the body that a free joint moves, as columns."""
    first = _address(robot, model, joint)
    return pose_of(np.zeros(3), np.asarray(qpos)[first + 3 : first + 7]).rotation


def _velocity_address(robot: Robot, model: Any, joint: Joint) -> int:
    """Return where a joint is in qvel."""
    first = _address(robot, model, joint)
    return int(model.jnt_dofadr[np.flatnonzero(model.jnt_qposadr == first)[0]])


def _pose_of(values: Array) -> Array:
    w, x, y, z = values[3:].tolist()
    return np.array([*values[:3].tolist(), x, y, z, w])


def _address(robot: Robot, model: Any, joint: Joint) -> int:
    """Return where a joint is in qpos; that of a floating base is the first."""
    import mujoco

    if joint.kind is JointKind.ROOT:
        return 0
    number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_JOINT, joint.name)
    if number < 0:
        names = ", ".join(model.joint(j).name for j in range(model.njnt))
        raise RobotError(
            f"the model has no joint {joint.name!r} of robot {robot.name!r}; it has: {names}"
        )
    return int(model.jnt_qposadr[number])
