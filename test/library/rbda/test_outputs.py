"""J and M⁻¹Jᵀ: against body Jacobians and the mass matrix, Pinocchio, and G itself."""

from __future__ import annotations

import numpy as np
import pytest
import robots

from delassus import Contact, DelassusSolver, Problem, Robot, Transform
from delassus.errors import AlgorithmError, InputError, ProblemError
from delassus.model import WORLD, Body, Frame, Joint, JointKind
from delassus.testing.random_trees import random_inertia

EVERYTHING = {"G", "J", "MinvJT"}
def test_active_contacts_choose_rows_and_columns():
    robot = Robot.from_urdf(robots.quadruped())
    feet = [Contact(leg, f"{leg}_FOOT") for leg in robots.LEGS]
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


@pytest.mark.needs("pinocchio")
def test_the_pinocchio_back_end_says_that_it_has_none():
    robot = Robot.from_urdf(robots.quadruped())
    problem = Problem(robot, [Contact("LF", "LF_FOOT")], outputs={"J"})
    with pytest.raises(AlgorithmError, match="only G, not J"):
        DelassusSolver(problem, "pinocchio")
