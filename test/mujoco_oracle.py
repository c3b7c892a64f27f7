"""MuJoCo as an oracle: a model built from a robot's data, G by mj_jac and a solve with M."""

from __future__ import annotations

import mujoco
import numpy as np

from delassus_ros.model import WORLD, JointKind, Robot
from delassus_ros.problem import Problem


def wxyz(rotation: np.ndarray) -> list[float]:
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(rotation).ravel())
    return quaternion.tolist()


def model_of(robot: Robot) -> mujoco.MjModel:
    """Return the MuJoCo model of a robot with revolute, prismatic and free root joints."""
    return specification(robot).compile()


def specification(robot: Robot) -> mujoco.MjSpec:
    """Return the MjSpec of the model."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.compiler.balanceinertia = False
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    bodies = {WORLD: spec.worldbody}
    for i, joint in enumerate(robot.joints):
        placement = joint.placement
        body = bodies[joint.parent].add_body(
            name=f"body{i}", pos=placement.translation.tolist(), quat=wxyz(placement.rotation)
        )
        inertia = robot.bodies[i].inertia
        com = inertia.moment / inertia.mass
        c = np.cross(np.eye(3), com)
        about_com = inertia.rotational + inertia.mass * c @ c
        principal, axes = np.linalg.eigh(about_com)
        axes[:, 0] *= np.linalg.det(axes)
        body.mass, body.ipos = inertia.mass, com.tolist()
        body.inertia, body.iquat = principal.tolist(), wxyz(axes)
        body.explicitinertial = True
        compensated = robot.bodies[i].compensated
        body.gravcomp = compensated.mass / inertia.mass
        np.testing.assert_allclose(compensated.moment, body.gravcomp * inertia.moment, rtol=1e-12)
        kind = {
            JointKind.ROOT: mujoco.mjtJoint.mjJNT_FREE,
            JointKind.REVOLUTE: mujoco.mjtJoint.mjJNT_HINGE,
            JointKind.PRISMATIC: mujoco.mjtJoint.mjJNT_SLIDE,
        }[joint.kind]
        if joint.kind is JointKind.ROOT:
            body.add_joint(name=joint.name, type=kind)
        else:
            # From MuJoCo 4 on, coefficients of polynomials.
            own = body.add_joint(
                name=joint.name, type=kind, axis=joint.axis.tolist(), armature=joint.armature
            )
            own.springref = joint.spring_reference
            own.stiffness = np.eye(1, np.size(own.stiffness))[0] * joint.stiffness
            own.damping = np.eye(1, np.size(own.damping))[0] * joint.damping
        bodies[i] = body
    return spec


def set_positions(data: mujoco.MjData, robot: Robot, q: np.ndarray) -> None:
    """Write q; a free root stays where it is."""
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.kind.nq:
            data.joint(joint.name).qpos[0] = q[offset]


def delassus(problem: Problem, q: np.ndarray) -> np.ndarray:
    """Return G in contact axes."""
    robot = problem.robot
    model = model_of(robot)
    data = mujoco.MjData(model)
    set_positions(data, robot, q)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_crb(model, data)
    mujoco.mj_factorM(model, data)
    J = contact_rows(problem, model, data)
    solved = np.zeros_like(J)
    mujoco.mj_solveM(model, data, solved, J)
    return J @ solved.T


def contact_rows(problem: Problem, model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    """Return the rows of all contacts in contact axes; `data` has its kinematics computed."""
    rows = []
    for contact in problem.contacts:
        frame = problem.robot.frames[contact.frame]
        pose = frame.placement @ contact.placement
        body = model.body(f"body{frame.body}").id
        turn = data.xmat[body].reshape(3, 3)
        point = data.xpos[body] + turn @ pose.translation
        linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, linear, angular, point, body)
        axes = (turn @ pose.rotation).T
        rows.append(contact.selection @ np.vstack([axes @ linear, axes @ angular]))
    return np.vstack(rows)
