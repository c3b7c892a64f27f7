"""C-RNEA and C-ABA: each other's inverse, and against Pinocchio on the spanning tree."""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mpmath
import numpy as np
import pytest
import robots
from cluster_robots import Builder, coupled, random_problem
from on_floats import DynamicsOnFloats
from oracles import GRAVITY
from oracles.cases import PARALLELOGRAMS, closed_parallelogram
from seeds import seeds

import delassus.testing.mpmath_numbers  # noqa: F401 (mpmath numbers as scalars)
from delassus import Robot
from delassus.dynamics import Dynamics, methods
from delassus.errors import InputError, NumericalError, RobotError
from delassus.model import WORLD, Frame, JointKind, Transform
from delassus.model.clusters import clusters_of
from delassus.rbda.cluster_motion import ClusterMotion
from delassus.rbda.constraints import loop_jacobian
from delassus.rbda.dynamics import c_aba, c_rnea
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.trees import spanning_tree, tree_of
from delassus.scalars.functions import Vector
from delassus.testing import random_problem as random_open_problem

LOOPS = ("grbda_four_bar", "grbda_six_bar", "grbda_planar_leg_linkage")


def geared(seed: int) -> Robot:
    return random_problem(seed).robot


def state(robot: Robot, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return random q, rates and accelerations (or torques)."""
    rng, size = np.random.default_rng(seed), RobotTree(robot).size
    q = coupled(robot, rng.uniform(-1, 1, robot.nq))
    return q, rng.normal(size=size), rng.normal(size=size)


@pytest.mark.parametrize("seed", seeds(30, every=3))
def test_forward_undoes_inverse_dynamics_of_geared_robots(seed: int) -> None:
    robot = geared(seed)
    assert_identity(robot, *state(robot, seed))


@pytest.mark.parametrize("seed", range(5))
def test_forward_undoes_inverse_dynamics_of_open_chains(seed: int) -> None:
    robot = random_open_problem(seed).robot
    assert_identity(robot, *state(robot, seed))


@pytest.mark.parametrize("name", LOOPS)
def test_forward_undoes_inverse_dynamics_of_loops(name: str) -> None:
    robot = Robot.from_urdf(robots.shared(name), "fixed")
    assert_identity(robot, *state(robot, 3))


def assert_identity(robot: Robot, q: np.ndarray, rates: np.ndarray, torques: np.ndarray) -> None:
    x = {"q": q.tolist(), "rates": rates.tolist(), "gravity": GRAVITY.tolist()}
    motion = RobotTree(robot).motion(x)
    accelerations = c_aba(motion, torques.tolist()).independent
    again = c_rnea(motion, motion.accelerations(accelerations))
    assert np.linalg.norm(np.array(again) - torques) < 1e-9 * np.linalg.norm(torques)


@pytest.mark.parametrize("seed", seeds(20, every=3))
def test_inverse_dynamics_of_geared_robots_agree_with_pinocchio(seed: int) -> None:
    robot = geared(seed)
    assert_agrees_with_pinocchio(robot, *state(robot, seed))


@pytest.mark.parametrize("seed", range(5))
def test_inverse_dynamics_of_open_chains_agree_with_pinocchio(seed: int) -> None:
    robot = random_open_problem(seed).robot
    assert_agrees_with_pinocchio(robot, *state(robot, seed))


@pytest.mark.parametrize("name", PARALLELOGRAMS)
def test_inverse_dynamics_of_loops_agree_with_pinocchio(name: str) -> None:
    """With the acceleration that E ẏ has while q moves, from differences of fifty digits."""
    robot = Robot.from_urdf(robots.shared(name), "fixed")
    _, rates, accelerations = state(robot, 1)
    assert_agrees_with_pinocchio(robot, closed_parallelogram(robot, name), rates, accelerations)


def assert_agrees_with_pinocchio(
    robot: Robot, q: np.ndarray, rates: np.ndarray, accelerations: np.ndarray
) -> None:
    from oracles.pinocchio_models import PinocchioDynamics

    E, gamma = loop_motion(robot, q, rates)
    expected = E.T @ PinocchioDynamics(robot, q).inverse(E @ rates, E @ accelerations + gamma)
    x = {"q": q.tolist(), "rates": rates.tolist(), "gravity": GRAVITY.tolist()}
    for build in (tree_of, spanning_tree):
        motion = RobotTree(robot, build=build).motion(x)
        found = c_rnea(motion, motion.accelerations(accelerations.tolist()))
        assert np.linalg.norm(np.array(found) - expected) < 1e-9 * np.linalg.norm(expected)
        again = np.array(c_aba(motion, expected.tolist()).independent)
        assert np.linalg.norm(again - accelerations) < 1e-9 * np.linalg.norm(accelerations)


def loop_motion(robot: Robot, q: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return E (nv, ny) of all joints, and Ė ẏ."""
    first, column = [], 0
    for joint in robot.joints:
        first.append(column)
        column += joint.kind.nv
    independent = sorted(i for c in clusters_of(robot) for i in c.independent)
    places, size = {}, 0
    for i in independent:
        places[i], size = size, size + robot.joints[i].kind.nv
    E, gamma = np.zeros((robot.nv, size)), np.zeros(robot.nv)
    for cluster in clusters_of(robot):
        if cluster.is_ordinary:
            i = cluster.joints[0]
            for k in range(robot.joints[i].kind.nv):
                E[first[i] + k, places[i] + k] = 1.0
            continue
        own = [places[i] for i in cluster.independent]
        rows = [first[i] for i in cluster.joints]
        E[np.ix_(rows, own)] = np.array(loop_jacobian(cluster, q.tolist()), dtype=float)
        with mpmath.workdps(50):
            h = mpmath.mpf(10) ** -20
            moved = []
            for sign in (1, -1):
                there = [mpmath.mpf(value) for value in q]
                for i, row in zip(cluster.joints, E[rows], strict=True):
                    there[robot.q_offsets[i]] += sign * h * mpmath.mpf(float(row @ rates))
                moved.append(loop_jacobian(cluster, there))
            slopes = [[float((a - b) / (2 * h)) for a, b in zip(*pair, strict=True)]
                      for pair in zip(*moved, strict=True)]  # fmt: skip
        gamma[rows] = np.array(slopes) @ rates[own]
    return E, gamma


@pytest.mark.parametrize("name", PARALLELOGRAMS)
def test_linkages_move_as_pinocchios_constraint_dynamics_say(name: str) -> None:
    import pinocchio as pin
    from oracles.pinocchio_models import PinocchioDynamics

    robot = Robot.from_urdf(robots.shared(name), "fixed")
    q = closed_parallelogram(robot, name)
    peer = PinocchioDynamics(robot, q)
    model, data = peer.model, peer.data
    dynamics = DynamicsOnFloats(robot)
    rng = np.random.default_rng(2)
    rates, torques = rng.normal(size=dynamics.size), rng.normal(size=dynamics.size)
    E, gamma = loop_motion(robot, q, rates)
    expected = E @ dynamics.forward(q, rates, torques, GRAVITY) + gamma

    constraints = [
        pin.RigidConstraintModel(
            pin.ContactType.CONTACT_3D, model,
            *peer.place(loop.predecessor, loop.predecessor_placement),
            *peer.place(loop.successor, loop.successor_placement), pin.ReferenceFrame.LOCAL,
        )
        for loop in robot.loops
    ]  # fmt: skip
    known = [constraint.createData() for constraint in constraints]
    # Pinocchio 4 wants the constraints' data here, too.
    newer = int(pin.__version__.split(".")[0]) >= 4
    pin.initConstraintDynamics(model, data, constraints, *([known] if newer else []))
    # Torques of the independent joints alone.
    tau = np.zeros(model.nv)
    for joint, torque in zip(dynamics.joints, torques, strict=True):
        tau[model.idx_vs[model.getJointId(joint)]] = torque
    proximal = pin.ProximalSettings(1e-14, 1e-10, 100)
    found = pin.constraintDynamics(
        model, data, peer.q, E @ rates, tau, constraints, known, proximal
    )
    assert np.linalg.norm(found - expected) < 1e-9 * np.linalg.norm(expected)


@pytest.mark.parametrize("robot", [geared(2), geared(5)], ids=["floating", "fixed"])
def test_compiled_dynamics_are_those_on_floats(robot: Robot) -> None:
    q, rates, other = state(robot, 7)
    x = {"q": q.tolist(), "rates": rates.tolist(), "gravity": GRAVITY.tolist()}
    dynamics, tree = Dynamics(robot), RobotTree(robot)
    assert (dynamics.joints, dynamics.size) == (tree.joints, tree.size)
    motion = tree.motion(x)
    expected = np.array(c_rnea(motion, motion.accelerations(other.tolist())))
    found = dynamics.inverse(q, rates, other, GRAVITY)
    assert np.linalg.norm(found - expected) < 1e-12 * np.linalg.norm(expected)
    expected = np.array(c_aba(motion, other.tolist()).independent)
    found = dynamics.forward(q, rates, other, GRAVITY)
    assert np.linalg.norm(found - expected) < 1e-10 * np.linalg.norm(expected)


def test_compiled_dynamics_of_a_loop() -> None:
    robot = Robot.from_urdf(robots.shared("grbda_planar_leg_linkage"), "fixed")
    q = closed_parallelogram(robot, "grbda_planar_leg_linkage")
    _, rates, torques = state(robot, 2)
    dynamics = Dynamics(robot)
    accelerations = dynamics.forward(q, rates, torques)
    again = dynamics.inverse(q, rates, accelerations)
    assert np.linalg.norm(again - torques) < 1e-9 * np.linalg.norm(torques)


def test_what_cannot_be_computed_is_said() -> None:
    build = Builder(1)
    build.gear(WORLD)
    dynamics = Dynamics(build.robot())
    with pytest.raises(InputError, match=r"'rates' has shape \(2,\), expected \(1,\)"):
        dynamics.inverse([0.0, 0.0], [0.0, 0.0], [0.0])
    with pytest.raises(InputError, match=r"'q' has shape \(1, 2\), expected \(2,\)"):
        dynamics.inverse([[0.0, 0.0]], [0.0], [0.0])
    with pytest.raises(NumericalError, match="not finite"):
        dynamics.forward([0.1, 0.0], [0.0], [np.nan])
    still = Robot("still", [], [], [Frame("base", WORLD, Transform())])
    with pytest.raises(RobotError, match="robot 'still' has no body that moves"):
        Dynamics(still)
    found = build.robot()
    bare = Robot("bare", found.joints, found.bodies, [], found.couplings)
    with pytest.raises(RobotError, match="robot 'bare' has no frame on a body that moves"):
        Dynamics(bare)
    build.add(0, kind=JointKind.FLOATING)
    with pytest.raises(RobotError, match="'j2' is floating inside the tree"):
        RobotTree(build.robot())


def test_compiled_dynamics_are_kept_on_disk(
    own_kernels: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robot = geared(2)
    q, rates, other = state(robot, 7)
    first = Dynamics(robot)
    expected = first.forward(q, rates, other), first.inverse(q, rates, other)
    files = sorted(own_kernels.iterdir())
    assert len(files) == 2
    # What is not there to be traced cannot be traced again.
    for name in ("c_rnea", "c_aba"):
        monkeypatch.setattr(methods, name, refuses)
    again = Dynamics(robot)
    np.testing.assert_array_equal(again.forward(q, rates, other), expected[0])
    np.testing.assert_array_equal(again.inverse(q, rates, other), expected[1])
    assert again.operations("forward") == first.operations("forward")
    with pytest.raises(RuntimeError, match="traced"):
        Dynamics(geared(5)).forward(*state(geared(5), 1))
    with pytest.raises(RuntimeError, match="traced"):
        Dynamics(robot, cache=False).forward(q, rates, other)


def refuses(motion: ClusterMotion, known: Vector) -> Vector:
    raise RuntimeError("traced")


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_of_compiled_dynamics_are_of_the_same_robot(copied) -> None:
    robot = geared(2)
    first = Dynamics(robot)
    expected = first.forward(*state(robot, 7))
    again = copied(first)
    assert again.joints == first.joints
    uncached = copied(Dynamics(robot, cache=False))
    assert uncached._key("forward") is None, "whether the cache is used is copied, too"
    np.testing.assert_array_equal(again.forward(*state(robot, 7)), expected)


def test_several_threads_share_compiled_dynamics() -> None:
    """Every thread gets the result of its own inputs, from the first call on."""
    robot = geared(5)
    dynamics = Dynamics(robot)
    states = [state(robot, seed) for seed in range(4)]
    alone = Dynamics(robot)
    expected = [alone.forward(*each) for each in states]
    start = threading.Barrier(len(states))

    def work(k: int) -> bool:
        start.wait()
        return all(np.array_equal(dynamics.forward(*states[k]), expected[k]) for _ in range(500))

    with ThreadPoolExecutor(len(states)) as pool:
        assert all(pool.map(work, range(len(states))))
