"""J and M⁻¹Jᵀ: against body Jacobians and the mass matrix, Pinocchio, and G itself."""

from __future__ import annotations

import numpy as np
import pytest
import robots
from rigid_body import body_jacobians, mass_matrix

from delassus_ros import Contact, DelassusSolver, Problem, Robot, Transform, algorithms
from delassus_ros.algorithms.registry import evaluate
from delassus_ros.errors import AlgorithmError, InputError, ProblemError
from delassus_ros.model import WORLD, Body, Frame, Joint, JointKind
from delassus_ros.samples import random_inputs
from delassus_ros.testing import SIMPLE, random_problem
from delassus_ros.testing.random_trees import random_inertia

EVERYTHING = {"G", "J", "MinvJT"}
TOLERANCE = 1e-10


def with_everything(problem: Problem) -> Problem:
    return Problem(problem.robot, problem.contacts, problem.axes, EVERYTHING)


def to_other_velocities(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return T: velocities of the outputs → those of rigid_body.py.

    There twists are angular first, and planar joints move along the child's axes.
    """
    T = np.zeros((robot.nv, robot.nv))
    column = 0
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        block = np.eye(joint.kind.nv)
        if joint.kind.nv == 6:
            block = np.roll(np.eye(6), 3, axis=0)
        elif joint.kind is JointKind.PLANAR:
            c, s = np.cos(q[offset + 2]), np.sin(q[offset + 2])
            block[:2, :2] = [[c, s], [-s, c]]
        T[column : column + joint.kind.nv, column : column + joint.kind.nv] = block
        column += joint.kind.nv
    return T


def contact_jacobian(problem: Problem, q: np.ndarray) -> np.ndarray:
    """Return J in contact axes by the bodies' Jacobians."""
    bodies = body_jacobians(problem.robot, q)
    rows = []
    for contact in problem.contacts:
        frame = problem.robot.frames[contact.frame]
        pose = frame.placement @ contact.placement
        twist = pose.motion_to_child() @ bodies[frame.body]
        rows.append(contact.selection @ np.vstack([twist[3:], twist[:3]]))
    return np.vstack(rows) @ to_other_velocities(problem.robot, q)


PLANAR = (*SIMPLE, JointKind.PLANAR)


@pytest.mark.parametrize("kinds", [SIMPLE, PLANAR], ids=["simple", "planar"])
def test_random_trees_on_floats(kinds):
    for seed in range(40):
        problem = with_everything(random_problem(seed, kinds))
        q = random_inputs(problem, seed)["q"]
        out = evaluate(problem, algorithms.get("pv_osimr"), {"q": q.tolist()})
        G, J, W = (np.array(out[name], dtype=float) for name in ("G", "J", "MinvJT"))
        expected = contact_jacobian(problem, q)
        assert np.linalg.norm(J - expected) <= TOLERANCE * np.linalg.norm(expected), seed
        assert np.linalg.norm(J @ W - G) <= TOLERANCE * np.linalg.norm(G), seed
        T = to_other_velocities(problem.robot, q)
        M = T.T @ mass_matrix(problem.robot, q) @ T
        assert np.linalg.norm(M @ W - J.T) <= 1e-9 * np.linalg.norm(J), seed


def test_world_axes_turn_the_rows():
    for seed in range(20):
        problem = with_everything(random_problem(seed, PLANAR, "world"))
        x = random_inputs(problem, seed)
        values = {name: array.tolist() for name, array in x.items()}
        out = evaluate(problem, algorithms.get("pv_osimr"), values)
        G, J, W = (np.array(out[name], dtype=float) for name in ("G", "J", "MinvJT"))
        assert np.linalg.norm(J @ W - G) <= TOLERANCE * np.linalg.norm(G)


def test_agrees_with_pinocchio_in_its_velocities():
    import pinocchio as pin
    path = robots.quadruped()
    robot = Robot.from_urdf(path)
    place = Transform.from_xyz_rpy((0.01, 0.02, 0.03), (0.2, 0.1, -0.3))
    feet = [Contact(f"{leg}_FOOT", f"{leg}_FOOT", "surface", place) for leg in ("LF", "RH")]
    problem = Problem(robot, feet, outputs=EVERYTHING)
    q = np.random.default_rng(1).uniform(-1, 1, robot.nq)
    solution = DelassusSolver(problem).solve(q)
    model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    data, pin_q = model.createData(), pin.neutral(model)
    columns = list(range(6))
    for name, value in zip(robot.joint_names, q, strict=True):
        pin_q[model.idx_qs[model.getJointId(name)]] = value
        columns.append(model.idx_vs[model.getJointId(name)])
    pin.computeJointJacobians(model, data, pin_q)
    rows = []
    for contact in feet:
        frame = model.frames[model.getFrameId(contact.frame)]
        pose = frame.placement * pin.SE3(np.array(place.rotation), np.array(place.translation))
        local = pin.getJointJacobian(model, data, frame.parentJoint, pin.LOCAL)
        rows.append(pose.toActionMatrixInverse() @ local)
    J = np.vstack(rows)[:, columns]
    upper = np.triu(pin.crba(model, data, pin_q))
    M = (upper + np.triu(upper, 1).T)[np.ix_(columns, columns)]
    assert np.abs(solution.J - J).max() < 1e-12
    assert np.abs(solution.MinvJT - np.linalg.solve(M, J.T)).max() < 1e-9


@pytest.mark.parametrize("name", ["dense", "pv_osimr", "ltl", "auto"])
def test_every_algorithm_has_them_compiled(name):
    problem = with_everything(random_problem(12, PLANAR, largest=8))
    q = random_inputs(problem, 3)["q"]
    solution = DelassusSolver(problem, name).solve(q)
    assert np.linalg.norm(solution.J @ solution.MinvJT - solution.matrix) <= (
        TOLERANCE * np.linalg.norm(solution.matrix)
    )


def test_active_contacts_choose_rows_and_columns():
    robot = Robot.from_urdf(robots.quadruped())
    feet = [Contact(leg, f"{leg}_FOOT") for leg in ("LF", "RF", "LH", "RH")]
    solver = DelassusSolver(Problem(robot, feet, outputs=EVERYTHING))
    q = np.random.default_rng(2).uniform(-1, 1, robot.nq)
    full, some = solver.solve(q), solver.solve(q, ("RH", "RF"))
    rows = [3, 4, 5, 9, 10, 11]
    assert np.array_equal(some.J, full.J[rows])
    assert np.array_equal(some.MinvJT, full.MinvJT[:, rows])
    bound = solver.bind()
    bound.inputs["q"][:] = q
    bound.activate(("RH", "RF"))
    assert np.array_equal(bound.solve().J, some.J)
    assert np.array_equal(bound.solve().MinvJT, some.MinvJT)
    bound.activate(("LF",))
    assert bound.solve().MinvJT.shape == (robot.nv, 3)
    assert np.array_equal(bound.solve().MinvJT, full.MinvJT[:, :3])


def test_without_them_there_are_none():
    robot = Robot.from_urdf(robots.quadruped())
    solution = DelassusSolver(Problem(robot, [Contact("LF", "LF_FOOT")])).solve(robot.neutral())
    for name in ("J", "MinvJT"):
        with pytest.raises(InputError, match=f"needs the output '{name}'"):
            getattr(solution, name)


def test_a_floating_joint_inside_the_tree_has_none():
    joints = [Joint("hinge", JointKind.REVOLUTE, WORLD), Joint("loose", JointKind.FLOATING, 0)]
    bodies = [Body(name, random_inertia(np.random.default_rng(0))) for name in ("a", "b")]
    robot = Robot("two", joints, bodies, [Frame("tip", 1, Transform())])
    with pytest.raises(ProblemError, match="'loose' is: make it the robot's base"):
        Problem(robot, [Contact("tip", "tip")], outputs={"J"})


def test_unknown_outputs_are_named():
    robot = Robot.from_urdf(robots.quadruped())
    with pytest.raises(ProblemError, match="unknown output 'Minv'; did you mean 'MinvJT'"):
        Problem(robot, [Contact("LF", "LF_FOOT")], outputs={"Minv"})


@pytest.mark.needs("pinocchio")
def test_the_pinocchio_back_end_says_that_it_has_none():
    robot = Robot.from_urdf(robots.quadruped())
    problem = Problem(robot, [Contact("LF", "LF_FOOT")], outputs={"J"})
    with pytest.raises(AlgorithmError, match="only G, not J"):
        DelassusSolver(problem, "pinocchio")
