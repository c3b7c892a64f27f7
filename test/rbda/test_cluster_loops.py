"""Cluster algorithms on robots read from URDF+: couplings, and loops that depend on q."""

from __future__ import annotations

from functools import cache

import cluster_oracle
import numpy as np
import pytest
import robots
from cluster_robots import contact_jacobian
from linkages import along_x
from on_floats import solver_on_floats
from rigid_body import mass_matrix, velocity_index

from delassus_ros import Contact, Problem, Robot, algorithms
from delassus_ros.algorithms.dense import definition
from delassus_ros.closure import Closure
from delassus_ros.model import (
    WORLD,
    Body,
    Frame,
    Inertia,
    Joint,
    JointKind,
    Loop,
    LoopKind,
    Transform,
)
from delassus_ros.model.clusters import clusters_of
from delassus_ros.rbda.constraints import constraint_jacobian
from delassus_ros.rbda.trees import tree_of

EXACT = ("auto", "efpa", "pv_osimr", "ltl")


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize("name", cluster_oracle.FILES)
def test_urdf_plus_agrees_with_the_papers_library(name: str, algorithm: str) -> None:
    problem = cluster_oracle.from_urdf(name)
    solver = solver_on_floats(problem, algorithm)
    for state in cluster_oracle.states(name):
        G = solver.solve(cluster_oracle.positions_from_urdf(problem, name, state)).matrix
        expected = cluster_oracle.expected(name, state)
        assert np.linalg.norm(G - expected) < 1e-9 * np.linalg.norm(expected)


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize("name", ["urdf_four_bar", "urdf_planar_leg_linkage"])
def test_both_ends_of_a_loop_accelerate_alike(name: str, algorithm: str) -> None:
    robot = cluster_oracle.from_urdf(name).robot
    (loop,) = robot.loops
    frame_of = {frame.body: frame for frame in robot.frames.values()}
    contacts = []
    for end, body, placement in (
        ("predecessor", loop.predecessor, loop.predecessor_placement),
        ("successor", loop.successor, loop.successor_placement),
    ):
        frame = frame_of[body]
        on_frame = frame.placement.inverse() @ placement
        contacts.append(Contact(end, frame.name, "point", on_frame))
    problem = Problem(robot, contacts, axes="world")
    solver = solver_on_floats(problem, algorithm)
    for state in cluster_oracle.states(name):
        G = solver.solve(cluster_oracle.positions_from_urdf(problem, name, state)).matrix
        assert np.linalg.norm(G) > 0.0
        assert np.linalg.norm(G[:3] - G[3:]) < 1e-8 * np.linalg.norm(G)


@pytest.mark.parametrize("name", ["kjr", "pv_osim", "dense"])
def test_open_chain_algorithms_refuse_loops(name: str) -> None:
    reason = algorithms.get(name).supports(cluster_oracle.from_urdf("urdf_four_bar"))
    assert reason is not None and "open chains" in reason


def test_a_planar_leg_has_one_cluster_of_three_links() -> None:
    (cluster,) = tree_of(cluster_oracle.from_urdf("urdf_planar_leg_linkage")).clusters
    assert len(cluster.links) == 3 and cluster.freedoms == 1 and callable(cluster.jacobian)


@cache
def digit_like() -> Problem:
    """Return two legs with three rods each, closed by 6D loops; the rods' ends touch."""
    path = robots.shared("epr_digit_like_2legs")
    robot = Robot.from_urdf(path, "floating", loops=path.with_suffix(".yaml"))
    assert len(robot.loops) == 6
    carriers = {joint.parent for joint in robot.joints}
    frames = {frame.body: frame.name for frame in robot.frames.values()}
    tips = [i for i in range(len(robot.joints)) if i not in carriers][::6]
    return Problem(robot, [Contact(f"c{i}", frames[i], "surface") for i in tips])


@cache
def closed_configurations(robot: Robot, count: int) -> list[np.ndarray]:
    """Return closed configurations around the reference."""
    closure, rng = Closure(robot), np.random.default_rng(0)
    independent = {i for cluster in clusters_of(robot) for i in cluster.independent}
    names = [robot.joints[i].name for i in sorted(independent) if robot.joints[i].kind.nq == 1]
    places = {name: robot.joint_names.index(name) for name in names}
    found = []
    for _ in range(count):
        measured = {
            name: float(closure.reference[place] + rng.uniform(-0.05, 0.05))
            for name, place in places.items()
        }
        result = closure.solve(measured)
        assert result.residual < 1e-9
        found.append(np.array(result.q))
    return found


def null_space_reference(problem: Problem, q: np.ndarray) -> np.ndarray:
    """Return J N (Nᵀ M N)⁻¹ Nᵀ Jᵀ, N the null space of all constraint rows, redundant or not."""
    robot = problem.robot
    _, sizes, turned = np.linalg.svd(constraint_rows(robot, q))
    N = turned[int(np.sum(sizes > 1e-7)) :].T
    JN = contact_jacobian(problem, {"q": q}) @ N
    return np.asarray(JN @ np.linalg.solve(N.T @ mass_matrix(robot, q) @ N, JN.T))


def constraint_rows(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return K (rows, nv) of all loops."""
    columns = velocity_index(robot)
    rows = []
    for cluster in clusters_of(robot):
        if not cluster.is_ordinary:
            own = np.array(constraint_jacobian(robot, cluster, q.tolist()), dtype=float)
            K = np.zeros((len(own), robot.nv))
            K[:, [columns[robot.joints[i].name].start for i in cluster.joints]] = own
            rows.append(K)
    return np.vstack(rows)


@pytest.mark.parametrize(
    "name",
    ["auto", "pv_osimr"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("efpa", "ltl")],
)
def test_a_digit_like_robot_agrees_with_the_dense_equations(name: str) -> None:
    problem = digit_like()
    solver = solver_on_floats(problem, name)
    for q in closed_configurations(problem.robot, 3):
        expected = null_space_reference(problem, q)
        G = solver.solve(q).matrix
        assert np.linalg.norm(G - expected) < 1e-9 * np.linalg.norm(expected)


@pytest.mark.parametrize(
    "name",
    ["auto", "pv_osimr"]
    + [pytest.param(name, marks=pytest.mark.slow) for name in ("efpa", "ltl")],
)
def test_other_outputs_of_loops_are_of_the_independent_velocities(name: str) -> None:
    given = digit_like()
    problem = Problem(given.robot, given.contacts, outputs=("J", "MinvJT"))
    robot = problem.robot
    columns = velocity_index(robot)
    free = np.concatenate([np.arange(robot.nv)[columns[joint]] for joint in
                           dict.fromkeys(problem.velocities)])  # fmt: skip
    bound = np.setdiff1d(np.arange(robot.nv), free)
    solver = solver_on_floats(problem, name)
    for q in closed_configurations(robot, 3)[:2]:
        K = constraint_rows(robot, q)
        E = np.zeros((robot.nv, len(free)))
        E[free, np.arange(len(free))] = 1.0
        E[bound] = -np.linalg.lstsq(K[:, bound], K[:, free], rcond=None)[0]
        E[:6, :6] = np.roll(np.eye(6), 3, axis=0)
        JE, M = contact_jacobian(problem, {"q": q}) @ E, E.T @ mass_matrix(robot, q) @ E
        solution = solver.solve(q)
        W = np.linalg.solve(M, JE.T)
        assert np.linalg.norm(solution.J - JE) < 1e-9 * np.linalg.norm(JE)
        assert np.linalg.norm(solution.MinvJT - W) < 1e-9 * np.linalg.norm(W)


@pytest.mark.parametrize("name", EXACT)
def test_tello_with_its_published_functions(name: str) -> None:
    """The loop Jacobian of the differentials is derived and computed in the kernel."""
    oracle = "tello_with_arms_1ee"
    problem = cluster_oracle.with_differentials(cluster_oracle.problem_of(oracle))
    varying = [c for c in tree_of(problem).clusters if callable(c.jacobian)]
    assert [(len(c.links), c.freedoms) for c in varying] == [(4, 2)] * 4
    solver = solver_on_floats(problem, name)
    for state in cluster_oracle.states(oracle):
        G = solver.solve(cluster_oracle.positions(oracle, state)).matrix
        expected = cluster_oracle.expected(oracle, state)
        assert np.linalg.norm(G - expected) < 1e-9 * np.linalg.norm(expected)


@pytest.mark.parametrize("algorithm", EXACT)
def test_a_ball_joint_between_oblique_slides(algorithm: str) -> None:
    """Constants of two rows, too small for pivots, come to either row."""
    axes = np.array([[-1, 3, -3], [0, 4, -2], [2, -4, 4], [4, 1, 2]], float)
    kinds = [JointKind.PRISMATIC] * 3 + [JointKind.REVOLUTE]
    joints = [
        Joint(f"j{i}", kind, parent, along_x(x), axis / np.linalg.norm(axis))
        for i, (kind, parent, x, axis) in enumerate(
            zip(kinds, (WORLD, WORLD, 1, 2), (0, 0, 0, 4), axes, strict=True)
        )
    ]
    bodies = [Body(f"b{i}", Inertia.from_com(1, np.zeros(3), np.eye(3))) for i in range(4)]
    ends = (Transform(np.eye(3), np.array([x, 0, 2])) for x in (2.0, -2.0))
    loop = Loop("ball", LoopKind.POINT, 0, 3, *ends)
    robot = Robot("slides", joints, bodies, [Frame("tip", 3, Transform())], (), [loop])
    problem = Problem(robot, [Contact("tip", "tip")])
    q = np.zeros(4)
    expected = definition(problem, {"q": q})
    found = solver_on_floats(problem, algorithm).solve(q).matrix
    assert np.linalg.norm(found - expected) <= 1e-13 * np.linalg.norm(expected)
