"""The geared demo robot: it walks like the other, its joints close, its reference is right."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from upright import is_upright

from delassus import Robot
from delassus.errors import InputError, RobotError
from delassus.model import Coupling, Loop, LoopKind
from delassus.robots.built_in import demo_urdf
from delassus_ros.sim.closing import Closing, add_equalities
from delassus_ros.sim.plant import Plant
from delassus_ros.sim.plants import make_plant
from delassus_ros.sim.quadruped import stepping_quadruped


@pytest.fixture(name="robot", scope="module")
def make_robot() -> Robot:
    return Robot.from_urdf(demo_urdf("geared"))


@pytest.fixture(name="simulation")
def make_simulation() -> Plant:
    return stepping_quadruped("geared")


def closed(model: mujoco.MjModel, robot: Robot, seed: int) -> np.ndarray:
    """Random positions that close."""
    rng = np.random.default_rng(seed)
    qpos = np.zeros(model.nq)
    qpos[7:] = rng.uniform(-0.5, 0.5, model.nq - 7)
    qpos[3:7] = rng.normal(size=4)
    qpos[3:7] /= np.linalg.norm(qpos[3:7])
    for name in ("LIFT_COUPLER", "LIFT_ROCKER"):
        qpos[model.joint(name).qposadr] = 0.0
    Closing(model, robot).close(qpos)
    return qpos


def test_demo_robots_are_named_when_unknown() -> None:
    with pytest.raises(RobotError, match="geard.*did you mean 'geared'"):
        demo_urdf("geard")


def test_robot_has_its_gears_and_its_four_bar(robot) -> None:
    assert len(robot.couplings) == 12
    assert [loop.name for loop in robot.loops] == ["LIFT"]
    assert len(robot.independent) == 13


def test_it_walks_and_swings_its_lift(simulation) -> None:
    sets, cranks = set(), []
    for _ in range(6000):
        simulation.step()
        assert is_upright(simulation)
        sets.add(simulation.active_contacts)
        cranks.append(simulation.q[-1])
    assert {len(names) for names in sets} >= {2, 3, 4}
    assert max(cranks) > 0.2 and min(cranks) < -0.2


@pytest.mark.parametrize("seed", range(5))
def test_closed_positions_satisfy_every_equality(robot, seed) -> None:
    """As MuJoCo itself sees its equality constraints."""
    model = stepping_quadruped("geared")._model
    data = mujoco.MjData(model)
    data.qpos[:] = closed(model, robot, seed)
    mujoco.mj_forward(model, data)
    equality = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    assert equality.sum() >= 14
    assert np.abs(data.efc_pos[equality]).max() < 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_velocity_map_spans_the_motions_that_the_equalities_allow(robot, seed) -> None:
    model = stepping_quadruped("geared")._model
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    data.qpos[:] = closed(model, robot, seed)
    mujoco.mj_forward(model, data)
    E = Closing(model, robot).velocity_map(data)
    rows = data.efc_J.reshape(-1, model.nv)
    equality = rows[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY]
    assert np.abs(equality @ E).max() < 1e-12
    assert np.linalg.matrix_rank(E) == E.shape[1] == model.nv - np.linalg.matrix_rank(equality)


@pytest.mark.parametrize("seed", range(3))
def test_reference_is_the_schur_complement_of_the_equalities(robot, simulation, seed) -> None:
    """With MuJoCo's own constraint rows K: J M⁻¹Jᵀ - J M⁻¹Kᵀ (K M⁻¹Kᵀ)⁺ K M⁻¹Jᵀ."""
    model = simulation._model
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    data.qpos[:] = closed(model, robot, seed)
    mujoco.mj_forward(model, data)
    rows = data.efc_J.reshape(-1, model.nv)
    K = rows[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY]
    # A rotor of 6e-5 kg·m² behind a gear of 12: rows of equal size keep the digits.
    M_inv_K = np.zeros_like(K)
    mujoco.mj_solveM(model, data, M_inv_K, K)
    J = []
    for frame in simulation.frames.values():
        body = model.body(frame).id
        block = np.zeros((3, model.nv))
        mujoco.mj_jac(model, data, block, None, data.xpos[body], body)
        J.append(data.xmat[body].reshape(3, 3).T @ block)
    J = np.concatenate(J)
    M_inv_J = np.zeros_like(J)
    mujoco.mj_solveM(model, data, M_inv_J, J)
    middle = np.linalg.pinv(K @ M_inv_K.T, rcond=1e-12, hermitian=True)
    coupling = J @ M_inv_K.T
    expected = J @ M_inv_J.T - coupling @ middle @ coupling.T
    found = simulation._reference.matrix(data.qpos)
    assert np.linalg.norm(found - expected) < 1e-10 * np.linalg.norm(expected)
    unconstrained = J @ M_inv_J.T
    assert np.linalg.norm(found - unconstrained) > 1e-3 * np.linalg.norm(expected)


def test_the_geared_robot_stands_on_torques_as_well() -> None:
    """Its drives are in the independent joints; without a command they hold them."""
    plant = make_plant("geared")
    assert len(plant.joint_names) == 13 and plant.takes_torques
    start = plant.q
    for _ in range(500):
        plant.step()
    assert is_upright(plant) and plant.silent
    np.testing.assert_allclose(plant.q, start, atol=0.05)
    assert plant.contact_forces()[:, 2].sum() == pytest.approx(plant.weight, rel=0.02)
    plant.command(np.full(13, 1.0))
    plant.step()
    assert not plant.silent
    np.testing.assert_allclose(plant.effort, 1.0)


def test_robots_that_step_take_no_torques(simulation) -> None:
    assert not simulation.takes_torques
    with pytest.raises(InputError, match="GaitDrives take no torques"):
        simulation.command(np.zeros(13))


def test_what_cannot_be_built_is_named(robot) -> None:
    spec = mujoco.MjSpec()
    three = Coupling("belt", (("a", 1.0), ("b", 1.0), ("c", 1.0)))
    weld = Loop("rod", LoopKind.WELD, 0, 1)
    for couplings, loops, message in (
        ([three], [], "'belt' is between 3 joints"),
        ([], [weld], "'rod' is of kind weld"),
    ):
        odd = Robot("odd", robot.joints, robot.bodies, list(robot.frames.values()))
        object.__setattr__(odd, "_couplings", couplings)
        object.__setattr__(odd, "_loops", loops)
        with pytest.raises(RobotError, match=message):
            add_equalities(spec, odd)


def test_a_lift_out_of_reach_is_named(robot) -> None:
    model = stepping_quadruped("geared")._model
    model.body("LIFT_ROCKER").pos[0] += 0.2
    qpos = np.zeros(model.nq)
    qpos[3] = 1.0
    with pytest.raises(RobotError, match="linkage 'LIFT' does not close"):
        Closing(model, robot).close(qpos)
