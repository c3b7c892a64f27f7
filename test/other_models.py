"""Matrices of robots from Pinocchio and MuJoCo models, compared with these libraries."""

from __future__ import annotations

import numpy as np
from on_floats import solver_on_floats

from delassus_ros import Contact, Problem, Robot


def matrix(robot: Robot, frames: list[str], positions: dict[str, float]) -> np.ndarray:
    problem = Problem(robot, [Contact(name, name, "surface") for name in frames])
    return solver_on_floats(problem, "auto").solve(robot.q(positions)).matrix


def of_pinocchio(model, frames: list[str], positions: dict[str, float]) -> np.ndarray:
    import pinocchio as pin

    data, q = model.createData(), pin.neutral(model)
    for name, value in positions.items():
        joint = model.joints[model.getJointId(name)]
        if joint.nq == 2:
            q[joint.idx_q : joint.idx_q + 2] = np.cos(value), np.sin(value)
        else:
            q[joint.idx_q] = value
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    M = pin.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    numbers = [model.getFrameId(name) for name in frames]
    J = np.vstack([pin.getFrameJacobian(model, data, k, pin.LOCAL) for k in numbers])
    return J @ np.linalg.solve(M, J.T)


def of_mujoco(model, frames: list[str], positions: dict[str, float], qpos=None) -> np.ndarray:
    """Return G of frames with the names of bodies or sites, along their axes, loops counted.

    Parameters
    ----------
    positions : of joints with a name; the others are at `qpos`.
    """
    import mujoco

    data = mujoco.MjData(model)
    if qpos is not None:
        data.qpos[:] = qpos
    for name, value in positions.items():
        data.qpos[model.joint(name).qposadr[0]] = value
    mujoco.mj_forward(model, data)
    inverse = np.zeros((model.nv, model.nv))
    # As the signature of mj_fullM changed between versions.
    mujoco.mj_solveM(model, data, inverse, np.eye(model.nv))
    J = np.zeros((6 * len(frames), model.nv))
    for k, name in enumerate(frames):
        linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        if mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, name) >= 0:
            number = model.site(name).id
            mujoco.mj_jacSite(model, data, linear, angular, number)
            R = data.site_xmat[number].reshape(3, 3)
        else:
            number = model.body(name).id
            mujoco.mj_jacBody(model, data, linear, angular, number)
            R = data.xmat[number].reshape(3, 3)
        J[6 * k : 6 * k + 3], J[6 * k + 3 : 6 * k + 6] = R.T @ linear, R.T @ angular
    if data.ne:
        C = data.efc_J.reshape(-1, model.nv)[: data.ne]
        S = C @ inverse @ C.T
        inverse = inverse - inverse @ C.T @ np.linalg.pinv(S, 1e-10) @ C @ inverse
    return J @ inverse @ J.T
