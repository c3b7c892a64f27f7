"""Loops that are closed by rows of G and eliminated again, beside loops as clusters."""

from __future__ import annotations

import numpy as np
import pytest
import robots

from delassus_ros import Contact, DelassusSolver, Problem, Robot, Transform, algorithms
from delassus_ros.compiler.ir.trace import trace
from delassus_ros.errors import ProblemError, RobotError
from delassus_ros.model import WORLD, Body, Frame, Joint, JointKind
from delassus_ros.model.clusters import groups_of, with_row_loops
from delassus_ros.model.constraints import Loop, LoopKind
from delassus_ros.model.loops import LoopClosure, closed_jacobians
from delassus_ros.testing.random_trees import random_inertia

TOLERANCE = 1e-9


def closed_positions(robot: Robot) -> list[np.ndarray]:
    """Return regular configurations that close all loops."""
    found = [robot.neutral() for _ in range(3)]
    for group in groups_of(robot):
        if not group.loops:
            continue
        closure = LoopClosure(group)
        for q, (closed, _) in zip(found, closed_jacobians(closure)[1:4], strict=True):
            for joint, value in zip(group.joints, closed * closure._units, strict=True):
                q[robot.q_offsets[joint]] = value
    return found


def error(G: object, expected: object) -> float:
    found, right = np.array(G, dtype=float), np.array(expected, dtype=float)
    return float(np.linalg.norm(found - right) / np.linalg.norm(right))


def grasp(links: int) -> Robot:
    """Return two arms of as many links on a floating trunk, whose hands hold a bar."""
    rng = np.random.default_rng(0)
    joints = [Joint("root", JointKind.ROOT, WORLD)]
    for k in range(2 * links):
        side = -1.0 if k < links else 1.0
        place = Transform.from_xyz_rpy((0.2, 0.05, 0.0), (0.4, -0.3, 0.5))
        if k % links == 0:
            place = Transform.from_xyz_rpy((0.0, 0.2 * side, 0.3), (0.0, 0.0, 0.0))
        parent = len(joints) - 1 if k % links else 0
        joints.append(Joint(f"j{k}", JointKind.REVOLUTE, parent, place))
    bodies = [Body(joint.name, random_inertia(rng)) for joint in joints]
    frames = [Frame(f"f{i}", i, Transform()) for i in range(len(joints))]
    robot = Robot("grasp", joints, bodies, frames)
    return robot.with_constraints(loops=[Loop("bar", LoopKind.WELD, links, 2 * links)])


@pytest.mark.parametrize(
    ("name", "rows"), [("grbda_four_bar", 2), ("grbda_six_bar", None)]
)  # fmt: skip
def test_published_loops(name: str, rows: int | None) -> None:
    clusters = Robot.from_urdf(robots.shared(name), base="fixed")
    by_rows = Robot.from_urdf(robots.shared(name), base="fixed", loops_as="rows")
    assert by_rows.row_loops
    assert not by_rows.loops
    assert rows is None or sum(len(loop.selection) for loop in by_rows.row_loops) == rows
    frame = [frame.name for frame in clusters.frames.values() if frame.body != WORLD][-1]
    contacts = [Contact("c", frame, "surface")]
    for q in closed_positions(clusters):
        x = {"q": q.tolist()}
        expected = algorithms.get("pv_osimr").evaluate(Problem(clusters, contacts), x)["G"]
        for algorithm in ("pv_osimr", "pv_osim", "ltl", "dense"):
            found = algorithms.get(algorithm).evaluate(Problem(by_rows, contacts), x)["G"]
            assert error(found, expected) < TOLERANCE, algorithm


def test_a_grasp_of_two_hands() -> None:
    clusters = grasp(7)
    by_rows = with_row_loops(clusters)
    assert [len(loop.selection) for loop in by_rows.row_loops] == [6]
    contacts = [Contact("elbow", "f3"), Contact("hand", "f14", "surface")]
    problem = Problem(by_rows, contacts)
    solver = DelassusSolver(problem, "auto")
    for q in closed_positions(clusters):
        x = {"q": q.tolist()}
        expected = algorithms.get("ltl").evaluate(Problem(clusters, contacts), x)["G"]
        assert error(solver.solve(q).matrix, expected) < TOLERANCE
        assert (
            error(solver.solve(q, active=["hand"]).matrix, np.array(expected)[3:, 3:]) < TOLERANCE
        )


def test_operations_of_a_long_loop_are_linear_in_the_joints() -> None:
    def count(robot: Robot) -> int:
        problem = Problem(robot, [Contact("hand", f"f{len(robot.joints) - 1}", "surface")])
        return trace(problem, algorithms.get("pv_osimr")).operations.total

    rows = [count(with_row_loops(grasp(links))) for links in (8, 10, 12, 14)]
    steps = np.diff(rows)
    assert np.ptp(steps) < 0.05 * steps.mean(), rows
    assert rows[2] < count(grasp(12))


def test_refused() -> None:
    with pytest.raises(RobotError, match="unknown loops_as 'row'"):
        Robot.from_urdf(robots.quadruped(), loops_as="row")
    with pytest.raises(ProblemError, match="closed by rows"):
        Problem(with_row_loops(grasp(7)), [Contact("hand", "f14")], outputs=["J"])
    plain = Robot.from_urdf(robots.quadruped(), loops_as="rows")
    assert plain.to_bytes() == Robot.from_urdf(robots.quadruped()).to_bytes()
