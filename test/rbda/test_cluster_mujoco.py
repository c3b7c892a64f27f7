"""Closed robots against MuJoCo's equality constraints: G, inverse and forward dynamics."""

from __future__ import annotations

from functools import cache

import cluster_oracle
import numpy as np
import pytest
import robots
from cluster_robots import random_problem
from on_floats import DynamicsOnFloats, solver_on_floats
from test_cluster_dynamics import CLOSED, GRAVITY, closed, loop_motion

mujoco = pytest.importorskip("mujoco", reason="the physics engine (extra 'sim') is not installed")

from coupled import coupled  # noqa: E402
from mujoco_closed import ClosedModel, acceptable  # noqa: E402
from passive import with_passive  # noqa: E402

from delassus_ros import Contact, Problem, Robot  # noqa: E402
from delassus_ros.closure import Closure  # noqa: E402
from delassus_ros.model import WORLD  # noqa: E402
from delassus_ros.sim import demo_urdf  # noqa: E402

EXACT = ("auto", "efpa", "pv_osimr", "ltl")
LINKAGES = ("grbda_four_bar", "grbda_planar_leg_linkage")


def assert_agrees(problem: Problem, configurations: list[np.ndarray]) -> None:
    """Compare G of all algorithms with MuJoCo's."""
    model = ClosedModel(problem.robot)
    solvers = [solver_on_floats(problem, name) for name in EXACT]
    for q in configurations:
        model.move(q)
        assert model.gap() < 1e-10
        expected = model.delassus(problem)
        assert np.linalg.norm(expected) > 0.0
        for solver in solvers:
            G = solver.solve(q).matrix
            assert np.linalg.norm(G - expected) < 1e-9 * np.linalg.norm(expected)


def test_the_geared_demo_robot() -> None:
    """Twelve gears and a four-bar on the trunk; its feet and the tool of the four-bar touch."""
    robot = Robot.from_urdf(demo_urdf("geared"))
    feet = [Contact(f, f, "surface") for f in robot.frames if f.endswith("_FOOT")]
    problem = Problem(robot, [*feet, Contact("tool", "LIFT_TOOL", "surface")])
    assert len(problem.contacts) == 5
    closure, rng = Closure(robot), np.random.default_rng(1)
    found = []
    for _ in range(3):
        measured = {name: float(rng.uniform(-0.4, 0.4)) for name in robot.independent}
        found.append(np.array(closure.solve(measured).q))
    assert_agrees(problem, found)


@pytest.mark.parametrize("name", ["mini_cheetah_4ee", "mit_humanoid_1ee", "chain_PBT_4"])
def test_robots_of_the_paper_with_gears_and_belts(name: str) -> None:
    given = cluster_oracle.problem_of(name)
    problem = Problem(acceptable(given.robot), given.contacts)
    assert_agrees(problem, [cluster_oracle.positions(name, s) for s in (0, 1)])


@pytest.mark.parametrize("name", LINKAGES)
def test_linkages(name: str) -> None:
    robot = acceptable(Robot.from_urdf(robots.shared(name), "fixed"))
    carriers = {joint.parent for joint in robot.joints}
    frames = {frame.body: frame.name for frame in robot.frames.values() if frame.body != WORLD}
    tips = [frames[i] for i in range(len(robot.joints)) if i not in carriers]
    problem = Problem(robot, [Contact(tip, tip, "surface") for tip in tips])
    assert_agrees(problem, [closed(robot, name)])


@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(k, marks=pytest.mark.slow) for k in range(4, 25))]
)
def test_random_geared_robots(seed: int) -> None:
    problem, q = geared(seed)
    assert_agrees(problem, [q])


@cache
def demo() -> tuple[Problem, np.ndarray]:
    """Return the geared demo robot with a foot and the four-bar's tool, and a closed q."""
    robot = Robot.from_urdf(demo_urdf("geared"))
    contacts = [Contact(each, each, "surface") for each in ("LF_FOOT", "LIFT_TOOL")]
    result = Closure(robot).solve(dict.fromkeys(robot.independent, 0.2))
    return Problem(robot, contacts), np.array(result.q)


@cache
def geared(seed: int) -> tuple[Problem, np.ndarray]:
    given = random_problem(seed)
    robot = acceptable(given.robot)
    q = coupled(robot, np.random.default_rng(seed).uniform(-1.0, 1.0, robot.nq))
    return Problem(robot, given.contacts), q


@pytest.mark.parametrize(
    "which", ["demo", 3, *(pytest.param(k, marks=pytest.mark.slow) for k in (4, 8))]
)
def test_other_outputs(which: str | int) -> None:
    """J E and (Eᵀ M E)⁻¹ Eᵀ Jᵀ, with E from MuJoCo's equality rows."""
    plain, q = demo() if which == "demo" else geared(int(which))
    problem = Problem(plain.robot, plain.contacts, outputs=("J", "MinvJT"))
    model = ClosedModel(problem.robot)
    model.move(q)
    joints = problem.robot.joints
    starts = np.cumsum([0, *(joint.kind.nv for joint in joints)])
    names = [joint.name for joint in joints]
    spans = {name: range(starts[k], starts[k + 1]) for k, name in enumerate(names)}
    free = [k for name in dict.fromkeys(problem.velocities) for k in spans[name]]
    bound = np.setdiff1d(np.arange(starts[-1]), free)
    E = np.zeros((starts[-1], len(free)))
    E[free, np.arange(len(free))] = 1.0
    E[bound] = -np.linalg.lstsq(model.K[:, bound], model.K[:, free], rcond=1e-9)[0]
    J = model.contacts(problem) @ E
    W = np.linalg.solve(E.T @ model.M @ E, J.T)
    for name in EXACT:
        solution = solver_on_floats(problem, name).solve(q)
        assert np.linalg.norm(solution.J - J) < 1e-9 * np.linalg.norm(J)
        assert np.linalg.norm(solution.MinvJT - W) < 1e-9 * np.linalg.norm(W)


def assert_moves_alike(robot: Robot, q: np.ndarray, seed: int, passive: bool) -> None:
    """Compare both ways of the dynamics with M q̈ + h − τ of MuJoCo, which K only may hold."""
    robot = with_passive(robot, seed) if passive else robot
    dynamics, model = DynamicsOnFloats(robot), ClosedModel(robot)
    model.model.opt.gravity[:] = GRAVITY
    rng = np.random.default_rng(seed)
    rates, torques = rng.normal(size=dynamics.size), rng.normal(size=dynamics.size)
    E, gamma = loop_motion(robot, q, rates)
    accelerations = dynamics.forward(q, rates, torques, GRAVITY)
    model.move(q, E @ rates)
    assert np.abs(model.K @ E).max() < 1e-9 * max(1.0, np.abs(E).max())
    acceleration = E @ accelerations + gamma
    if robot.base == "floating":
        # MuJoCo's is the acceleration of the origin, not the spatial one.
        acceleration[:3] += np.cross(rates[3:6], rates[:3])
    found = E.T @ (model.M @ acceleration + model.bias)
    scale = np.linalg.norm(torques) + np.linalg.norm(E.T @ model.bias)
    assert np.linalg.norm(found - torques) < 1e-9 * scale
    again = dynamics.inverse(q, rates, accelerations, GRAVITY)
    assert np.linalg.norm(again - found) < 1e-9 * scale


PASSIVE = pytest.mark.parametrize("passive", [False, True], ids=["plain", "passive"])


@PASSIVE
@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(k, marks=pytest.mark.slow) for k in range(5, 15))]
)
def test_dynamics_of_random_geared_robots(seed: int, passive: bool) -> None:
    problem, q = geared(seed)
    assert_moves_alike(problem.robot, q, seed, passive)


@PASSIVE
@pytest.mark.parametrize("name", CLOSED)
def test_dynamics_of_linkages(name: str, passive: bool) -> None:
    robot = acceptable(Robot.from_urdf(robots.shared(name), "fixed"))
    assert_moves_alike(robot, closed(robot, name), 3, passive)


@PASSIVE
def test_dynamics_of_the_geared_demo_robot(passive: bool) -> None:
    problem, q = demo()
    assert_moves_alike(problem.robot, q, 5, passive)
