"""MuJoCo's accelerations with elliptic cones are those of the convex law with its compliance."""

from __future__ import annotations

from typing import Any

import mujoco
import mujoco_oracle
import numpy as np

from delassus_ros import (
    Contact,
    DelassusSolver,
    ForceStatus,
    Problem,
    Robot,
    solve_contacts,
)
from delassus_ros.sim import demo_urdf

LEGS = ("LF", "RF", "LH", "RH")
RADIUS_M, FRICTION, BENT = 0.02, 0.6, (0.0, 0.7, -1.4)


def _scene(robot: Robot) -> Any:
    """Return the model of the robot with balls as feet over a floor; all balls count as near."""
    spec = mujoco_oracle.specification(robot)
    for leg in LEGS:
        frame = robot.frames[f"{leg}_FOOT"]
        spec.body(f"body{frame.body}").add_geom(
            name=leg, type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[RADIUS_M, 0, 0],
            pos=frame.placement.translation.tolist(), friction=[FRICTION, 0, 0], condim=3,
            contype=1, conaffinity=2, margin=0.3,
        )  # fmt: skip
    spec.worldbody.add_geom(
        name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], contype=2, conaffinity=1,
        friction=[FRICTION, 0, 0], condim=3,
    )  # fmt: skip
    model = spec.compile()
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
    model.opt.iterations, model.opt.tolerance = 200, 0.0
    model.opt.ls_iterations, model.opt.ls_tolerance = 100, 1e-8
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_WARMSTART
    return model


def test_accelerations_of_mujoco() -> None:
    robot = Robot.from_urdf(demo_urdf().encode())
    feet = [Contact(leg, f"{leg}_FOOT", moving="position") for leg in LEGS]
    problem = Problem(robot, feet, axes="world", outputs=["a0", "qdd0", "MinvJT"])
    solver, n = DelassusSolver(problem), len(problem.velocities)
    model = _scene(robot)
    data = mujoco.MjData(model)
    random = np.random.default_rng(4)
    regimes: set[str] = set()
    for _ in range(20):
        q = np.tile(BENT, 4) + random.uniform(-0.1, 0.1, 12)
        torques = np.zeros(n)
        torques[6:] = random.normal(scale=25.0, size=n - 6)
        mujoco_oracle.set_positions(data, robot, q)
        data.qpos[2], data.qpos[3:7] = 0.35, [1, 0, 0, 0]
        data.qvel[:] = 0.0
        data.qfrc_applied[:] = torques
        mujoco.mj_forward(model, data)
        by_leg = {model.geom(max(c.geom)).name: c for c in data.contact}
        by_leg |= {model.geom(min(c.geom)).name: c for c in data.contact}
        contacts = [by_leg[leg] for leg in LEGS]
        rows = np.array([c.efc_address for c in contacts])
        R = data.efc_R[rows[:, None] + [0, 1, 2]]
        np.testing.assert_allclose(R, R[:, :1] * np.ones(3), rtol=1e-12)
        positions = {}
        for leg, contact in zip(LEGS, contacts, strict=True):
            frame = robot.frames[f"{leg}_FOOT"]
            turn = data.xmat[model.body(f"body{frame.body}").id].reshape(3, 3)
            point = turn.T @ (contact.pos - data.xpos[model.body(f"body{frame.body}").id])
            inverse = frame.placement.rotation.T
            positions[leg] = inverse @ (point - frame.placement.translation)
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
