"""MuJoCo's accelerations: with elliptic cones those of the convex law with its compliance.

With normals alone, and friction against the velocities as applied forces, they are those of
contacts that slide. MuJoCo's own friction is no peer of these: its convex law lifts contacts off
with μ times their slip, at any stiffness and step.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import mujoco
import numpy as np
import pytest
from oracles import mujoco_models
from robots import LEGS

from delassus import (
    Contact,
    DelassusSolver,
    ForceStatus,
    Problem,
    Robot,
    solve_contacts,
)
from delassus.model.spatial import Array, Transform
from delassus.robots.built_in import demo_urdf, humanoid

RADIUS_M, FRICTION, BENT = 0.02, 0.6, (0.0, 0.7, -1.4)


def _scene(robot: Robot, contacts: Sequence[Contact], condim: int = 3) -> Any:
    """Return the model of a robot with balls at its contacts over a floor; all count as near."""
    spec = mujoco_models.specification(robot)
    for contact in contacts:
        frame = robot.frames[contact.frame]
        spec.body(f"body{frame.body}").add_geom(
            name=contact.name, type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[RADIUS_M, 0, 0],
            pos=(frame.placement @ contact.placement).translation.tolist(),
            friction=[FRICTION, 0, 0], condim=condim, contype=1, conaffinity=2, margin=0.3,
        )  # fmt: skip
    spec.worldbody.add_geom(
        name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], contype=2, conaffinity=1,
        friction=[FRICTION, 0, 0], condim=condim,
    )  # fmt: skip
    model = spec.compile()
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.iterations, model.opt.tolerance = 200, 0.0
    model.opt.ls_iterations, model.opt.ls_tolerance = 100, 1e-8
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_WARMSTART
    return model


def _touching(
    model: Any, data: Any, robot: Robot, contacts: Sequence[Contact]
) -> tuple[list[Any], dict[str, Array]]:
    """Return MuJoCo's contacts in the order of ours, and their points in their frames."""
    by_name = {model.geom(g).name: c for c in data.contact for g in c.geom}
    found, positions = [], {}
    for contact in contacts:
        found.append(by_name[contact.name])
        frame = robot.frames[contact.frame]
        body = model.body(f"body{frame.body}").id
        point = data.xmat[body].reshape(3, 3).T @ (found[-1].pos - data.xpos[body])
        placed = frame.placement
        positions[contact.name] = placed.rotation.T @ (point - placed.translation)
    return found, positions


def test_accelerations_of_mujoco() -> None:
    robot = Robot.from_urdf(demo_urdf().encode())
    feet = [Contact(leg, f"{leg}_FOOT", moving="position") for leg in LEGS]
    problem = Problem(robot, feet, axes="world", outputs=["a0", "qdd0", "MinvJT"])
    solver, n = DelassusSolver(problem), len(problem.velocities)
    model = _scene(robot, feet)
    data = mujoco.MjData(model)
    random = np.random.default_rng(4)
    regimes: set[str] = set()
    for _ in range(20):
        q = np.tile(BENT, 4) + random.uniform(-0.1, 0.1, 12)
        torques = np.zeros(n)
        torques[6:] = random.normal(scale=25.0, size=n - 6)
        mujoco_models.set_positions(data, robot, q)
        data.qpos[2], data.qpos[3:7] = 0.35, [1, 0, 0, 0]
        data.qvel[:] = 0.0
        data.qfrc_applied[:] = torques
        mujoco.mj_forward(model, data)
        contacts, positions = _touching(model, data, robot, feet)
        rows = np.array([c.efc_address for c in contacts])
        R = data.efc_R[rows[:, None] + [0, 1, 2]]
        np.testing.assert_allclose(R, R[:, :1] * np.ones(3), rtol=1e-12)
        s = solver.solve(
            q, base_orientation=[0, 0, 0, 1], rates=np.zeros(n), torques=torques,
            gravity=[0, 0, -9.81], contact_positions=positions,
        )  # fmt: skip
        # At rest a0 has no J'v; MuJoCo's springs pull the normals.
        a0 = s.a0.copy()
        a0[2::3] -= data.efc_aref[rows]
        found = solve_contacts(
            s.matrix, a0, friction=FRICTION, law="convex", compliance=R[:, 0], tolerance=1e-12
        )
        assert found.status == ForceStatus.SOLVED
        ours = s.accelerations(found.forces)
        f = found.forces.reshape(4, 3)
        tangential, limit = np.hypot(f[:, 0], f[:, 1]), FRICTION * f[:, 2]
        regimes |= {
            "open" if force[2] == 0 else "slides" if t > 0.9999 * most else "holds"
            for force, t, most in zip(f, tangential, limit, strict=True)
        }
        np.testing.assert_allclose(ours, data.qacc, atol=1e-9 * np.abs(data.qacc).max())
    assert regimes == {"open", "slides", "holds"}


def _standing(robot: str) -> tuple[Robot, list[Contact], Array]:
    """Return a robot, its contacts and its posture: points, or corners of soles."""
    if robot == "quadruped":
        model = Robot.from_urdf(demo_urdf().encode())
        feet = [Contact(leg, f"{leg}_FOOT", moving="position") for leg in LEGS]
        return model, feet, np.tile(BENT, 4)
    model = Robot.from_urdf(humanoid.humanoid_urdf().encode())
    corners = [
        Contact(
            f"{name}{i}", frame, moving="position",
            placement=Transform.from_xyz_rpy((x, y, 0.0), (0, 0, 0)),
        )
        for name, frame in humanoid.FEET.items()
        for i, (x, y) in enumerate(product(*([-s / 2, s / 2] for s in humanoid.SOLE)))
    ]  # fmt: skip
    posture = [humanoid.POSTURE.get(name, 0.0) for name in model.joint_names]
    return model, corners, np.array(posture)


@pytest.mark.parametrize("robot", ["quadruped", "humanoid"])
def test_contacts_that_slide_as_mujoco_has_it(robot: str) -> None:
    own, contacts, posture = _standing(robot)
    problem = Problem(own, contacts, axes="world", outputs=["a0", "JdotV", "J", "qdd0", "MinvJT"])
    solver, n = DelassusSolver(problem), len(problem.velocities)
    model, random = _scene(own, contacts, condim=1), np.random.default_rng(5)
    data, many, mu = mujoco.MjData(model), len(contacts), 0.3
    pushing = 0
    for _ in range(10):
        q = posture + random.uniform(-0.05, 0.05, len(posture))
        torques, rates = np.zeros(n), random.normal(scale=0.3, size=n)
        torques[6:] = random.normal(scale=5.0, size=n - 6)
        rates[:2] = 2.0 * random.choice([-1.0, 1.0], 2)
        mujoco_models.set_positions(data, own, q)
        data.qpos[2], data.qpos[3:7], data.qvel[:] = 1.0, [1, 0, 0, 0], rates
        data.qfrc_applied[:] = torques
        mujoco.mj_kinematics(model, data)
        lowest = min(data.geom(c.name).xpos[2] for c in contacts)
        data.qpos[2] -= lowest - RADIUS_M
        mujoco.mj_forward(model, data)
        near, positions = _touching(model, data, own, contacts)
        s = solver.solve(
            q, base_orientation=[0, 0, 0, 1], rates=rates, torques=torques,
            gravity=[0, 0, -9.81], contact_positions=positions,
        )  # fmt: skip
        rows = np.array([c.efc_address for c in near])
        v = s.output("v").reshape(many, 3)
        slip = v[:, :2] / np.linalg.norm(v[:, :2], axis=1)[:, None]
        bodies = [model.body(f"body{own.frames[c.frame].body}").id for c in contacts]
        normals = np.full(many, np.inf)
        for _ in range(300):
            before, normals = normals, data.efc_force[rows].copy()
            if np.abs(normals - before).max() <= 1e-12 * np.abs(normals).max():
                break
            data.qfrc_applied[:] = torques
            for c, body, force, along in zip(near, bodies, normals, slip, strict=True):
                push = np.array([*(-mu * force * along), 0.0])
                mujoco.mj_applyFT(
                    model, data, push, np.zeros(3), c.pos, body, data.qfrc_applied
                )  # fmt: skip
            mujoco.mj_forward(model, data)
        # MuJoCo's contacts have springs and no J'v, its base velocities are along world axes.
        turned = np.zeros(n)
        turned[:3] = np.cross(rates[3:6], rates[:3])
        J_turned = s.output("J") @ turned
        a0 = s.output("a0") - s.output("JdotV") + J_turned
        a0[2::3] -= data.efc_aref[rows]
        found = solve_contacts(
            s.matrix, a0, friction=mu, compliance=data.efc_R[rows], tolerance=1e-12,
            velocities=s.output("v"), leave_speed=10.0, strike_speed=10.0,
        )  # fmt: skip
        assert found.status == ForceStatus.SOLVED, found.fault
        f = found.forces.reshape(many, 3)
        size = np.abs(normals).max()
        np.testing.assert_allclose(f[:, 2], normals, atol=1e-9 * size)
        np.testing.assert_allclose(f[:, :2], -mu * normals[:, None] * slip, atol=1e-9 * size)
        ours = s.output("qdd0") + s.output("MinvJT") @ found.forces + turned
        np.testing.assert_allclose(ours, data.qacc, atol=1e-9 * np.abs(data.qacc).max())
        pushing += int((normals > 0).sum())
    assert pushing > 20
