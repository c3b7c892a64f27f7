"""Methods that the cluster paper compares with, Coriolis matrices, gravity and regressors."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pinocchio as pin
import pytest
from cluster_robots import coupled, random_problem
from linkages import closed_four_bar, four_bar
from oracles import GRAVITY
from oracles.pinocchio_models import PinocchioDynamics
from passive import with_passive

from delassus import Robot
from delassus.dynamics import Dynamics
from delassus.dynamics.methods import FORWARD, INVERSE
from delassus.dynamics.regressor import PARAMETERS, inertial_parameters
from delassus.errors import InputError, RobotError
from delassus.model import Joint, JointKind, Transform
from delassus.model.clusters import clusters_of
from delassus.rbda.joint_space import mass_matrix
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.rotors import independent_tree
from delassus.rbda.trees import spanning_tree
from delassus.robots.built_in.arm import arm_urdf
from delassus.scalars.duals import Dual
from delassus.scalars.ports import Status
from delassus.testing import random_problem as random_open_problem

SMALL = 256
"""Bytes of a call's passing integers; an array takes more."""


def geared(seed: int) -> tuple[Robot, np.ndarray]:
    robot = random_problem(seed).robot
    return robot, coupled(robot, np.random.default_rng(seed).uniform(-1, 1, robot.nq))


def close(value: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert np.linalg.norm(value - expected) <= tolerance * np.linalg.norm(expected)


def random_motion(dynamics: Dynamics, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=dynamics.size), rng.normal(size=dynamics.size)


def assert_exact_methods_agree(robot: Robot, q: np.ndarray) -> None:
    dynamics = Dynamics(robot)
    rates, accelerations = random_motion(dynamics)
    torques = dynamics.inverse(q, rates, accelerations, GRAVITY)
    projected = dynamics.inverse(q, rates, accelerations, GRAVITY, method="projected")
    close(projected, torques, 1e-12)
    for method in ("c_aba", "projection", "lagrange"):
        found = dynamics.forward(q, rates, torques, GRAVITY, method=method)
        close(found, accelerations, 1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_exact_methods_agree_on_geared_robots(seed: int) -> None:
    assert_exact_methods_agree(*geared(seed))


@pytest.mark.parametrize("robot", [four_bar(), with_passive(four_bar(), 0)])
def test_exact_methods_agree_on_loops(robot: Robot) -> None:
    assert_exact_methods_agree(robot, np.array(closed_four_bar(0.7)))


def test_all_methods_agree_on_an_open_chain() -> None:
    robot = random_open_problem(1).robot
    dynamics = Dynamics(robot)
    q = np.random.default_rng(1).uniform(-1, 1, robot.nq)
    rates, accelerations = random_motion(dynamics)
    torques = dynamics.inverse(q, rates, accelerations, GRAVITY)
    for method in INVERSE:
        close(dynamics.inverse(q, rates, accelerations, GRAVITY, method=method), torques, 1e-12)
    for method in FORWARD:
        close(dynamics.forward(q, rates, torques, GRAVITY, method=method), accelerations, 1e-9)


@pytest.mark.parametrize("reflected", [True, False])
def test_approximate_methods_are_the_recursions_of_the_independent_tree(reflected: bool) -> None:
    robot, q = geared(0)
    dynamics = Dynamics(robot)
    rates, accelerations = random_motion(dynamics)
    independent = independent_tree(robot, reflected=reflected)
    kept = [robot.q_offsets[i] for i in independent.kept]
    assert len(kept) == robot.nq - len([i for c in clusters_of(robot) for i in c.dependent])
    torques = PinocchioDynamics(independent.robot, q[kept]).inverse(rates, accelerations)
    method = "approximate" if reflected else "unconstrained"
    found = dynamics.inverse(q, rates, accelerations, GRAVITY, method=method)
    close(found, torques, 1e-10)
    close(dynamics.forward(q, rates, torques, GRAVITY, method=method), accelerations, 1e-9)


@pytest.mark.parametrize("seed", [1, 3])
def test_coriolis_matrices_and_gravity_of_open_chains_agree_with_pinocchio(seed: int) -> None:
    robot = random_open_problem(seed).robot
    dynamics = Dynamics(robot)
    q = np.random.default_rng(seed).uniform(-1, 1, robot.nq)
    rates, _ = random_motion(dynamics)
    peer = PinocchioDynamics(robot, q)
    model, data, at = peer.model, peer.data, peer.q
    g = pin.computeGeneralizedGravity(model, data, at).copy()
    h = pin.nonLinearEffects(model, data, at, rates)
    close(dynamics.coriolis(q, rates) @ rates, h - g, 1e-10)
    close(dynamics.gravity_torques(q, GRAVITY), g, 1e-10)


def rate_of_mass_matrix(robot: Robot, q: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return Ṁ, the derivative of M along the motion, in dual numbers."""
    tree = RobotTree(robot, build=spanning_tree)
    motion = tree.motion({"q": q.tolist(), "rates": rates.tolist()})
    moving = q.tolist()
    for link, rate in zip(tree.tree.links, motion.rate, strict=True):
        if link.motion != "free":
            moving[link.q_index] = Dual(moving[link.q_index], [link.sign * rate])
    M = mass_matrix(tree.problem, tree.tree, {"q": moving})
    return np.array([[e.slopes[0] if isinstance(e, Dual) else 0.0 for e in row] for row in M])


@pytest.mark.parametrize("name", ["geared", "four-bar"])
def test_mass_rate_minus_twice_the_coriolis_matrix_is_skew(name: str) -> None:
    robot, q = geared(2) if name == "geared" else (four_bar(), np.array(closed_four_bar(0.7)))
    dynamics = Dynamics(robot)
    rates, _ = random_motion(dynamics)
    C = dynamics.coriolis(q, rates)
    torques = dynamics.inverse(q, rates, np.zeros(dynamics.size), np.zeros(3))
    close(C @ rates, torques, 1e-11)
    close(C + C.T, rate_of_mass_matrix(robot, q, rates), 1e-11)


def test_coriolis_matrices_at_unit_rates_are_christoffel_symbols() -> None:
    robot = Robot.from_urdf(arm_urdf().encode(), "fixed")
    dynamics, q = Dynamics(robot), np.linspace(-0.8, 0.9, robot.nq)
    units = np.eye(dynamics.size)
    slopes = np.stack([rate_of_mass_matrix(robot, q, unit) for unit in units], axis=-1)
    christoffel = 0.5 * (
        slopes + np.einsum("ikj->ijk", slopes) - np.einsum("jki->ijk", slopes)
    )
    found = np.stack([dynamics.coriolis(q, unit) for unit in units], axis=-1)
    assert np.abs(christoffel).max() > 0.1
    close(found, christoffel, 1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_regressors_give_the_torques_of_geared_robots(seed: int) -> None:
    robot, q = geared(seed)
    plain = robot.with_armature({joint.name: 0.0 for joint in robot.joints if joint.armature})
    dynamics = Dynamics(plain)
    rates, accelerations = random_motion(dynamics)
    Y = dynamics.regressor(q, rates, accelerations, GRAVITY)
    assert Y.shape == (dynamics.size, len(PARAMETERS) * len(robot.joints))
    close(
        Y @ inertial_parameters(plain), dynamics.inverse(q, rates, accelerations, GRAVITY), 1e-11
    )


def test_regressors_of_open_chains_agree_with_pinocchio() -> None:
    robot = random_open_problem(1).robot
    dynamics = Dynamics(robot)
    q = np.random.default_rng(1).uniform(-1, 1, robot.nq)
    rates, accelerations = random_motion(dynamics)
    peer = PinocchioDynamics(robot, q)
    inertias = list(peer.model.inertias)[1:]
    expected = pin.computeJointTorqueRegressor(
        peer.model, peer.data, peer.q, rates, accelerations
    ) @ np.concatenate([inertia.toDynamicParameters() for inertia in inertias])
    found = dynamics.regressor(q, rates, accelerations, GRAVITY) @ inertial_parameters(robot)
    close(found, expected, 1e-10)


def test_loops_are_left_out_of_the_independent_tree_or_refused_by_name() -> None:
    tool = Joint("tool", JointKind.REVOLUTE, 2, Transform())
    robot = four_bar(extra=(tool,))
    dynamics, q = Dynamics(robot), robot.neutral()
    with pytest.raises(RobotError, match="cannot be approximated by a reflected inertia"):
        dynamics.inverse(q, *random_motion(dynamics), method="unconstrained")


def test_unknown_methods_and_functions_are_named() -> None:
    dynamics = Dynamics(random_open_problem(1).robot)
    with pytest.raises(InputError, match="method 'lagrange'"):
        dynamics.bind("inverse", "lagrange")
    with pytest.raises(InputError, match="function 'backward'"):
        dynamics.bind("backward")


def test_bound_functions_allocate_nothing_and_equal_calls() -> None:
    robot, q = geared(0)
    dynamics = Dynamics(robot)
    rates, accelerations = random_motion(dynamics)
    bound = dynamics.bind("inverse")
    for name, values in {
        "q": q, "rates": rates, "accelerations": accelerations, "gravity": GRAVITY
    }.items():  # fmt: skip
        bound.inputs[name][...] = values
    assert bound() is Status.OK
    expected = dynamics.inverse(q, rates, accelerations, GRAVITY)
    assert bound.result.tobytes() == expected.tobytes()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        bound()
        now, peak = tracemalloc.get_traced_memory()
        assert now == before
        assert peak - before <= SMALL
    finally:
        tracemalloc.stop()
    bound.inputs["rates"][0] = np.nan
    assert bound() is Status.NOT_FINITE


@pytest.mark.parametrize("count", [2, 21])
def test_batches_equal_single_calls(count: int) -> None:
    robot, _ = geared(0)
    dynamics = Dynamics(robot)
    rng = np.random.default_rng(0)
    q = np.array([coupled(robot, rng.uniform(-1, 1, robot.nq)) for _ in range(count)])
    rates = rng.normal(size=(count, dynamics.size))
    torques = rng.normal(size=dynamics.size)
    q[1] = np.nan
    found, status = dynamics.batch("forward", q, rates, torques, GRAVITY, threads=2)
    assert found.shape == (count, dynamics.size)
    assert status[1] == Status.NOT_FINITE and np.isnan(found[1]).all()
    for k in {0, count - 1} - {1}:
        assert status[k] == Status.OK
        close(found[k], dynamics.forward(q[k], rates[k], torques, GRAVITY), 1e-12)
    with pytest.raises(InputError, match=r"'rates' has shape \(3,\)"):
        dynamics.batch("forward", q, rates[0, :3], torques, GRAVITY)
    with pytest.raises(InputError, match="differ in the number of configurations"):
        dynamics.batch("forward", q, np.ones((5, dynamics.size)), torques, GRAVITY)
