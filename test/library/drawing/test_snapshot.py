"""Snapshots for the viewer: forces that hold a robot, and the numbers of its matrix."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest
import robots
from wheels import RADIUS, wheeled

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.contact_forces import ForceStatus
from delassus.drawing.snapshot import GRAVITY, SnapshotSolver, force_problem, holding_torques
from delassus.model.reading.xml import parse_xml
from delassus.robots.built_in.humanoid import FEET, POSTURE, SOLE, humanoid_urdf
from delassus.robots.proposals import proposals
from delassus.robots.shapes import LinkShapes
from delassus.robots.wheels import lowest_points

LEGS = ("LF", "RF", "LH", "RH")


@pytest.fixture(scope="module")
def quadruped() -> Problem:
    robot = Robot.from_urdf(robots.quadruped())
    return Problem(robot, [Contact(leg, f"{leg}_FOOT") for leg in LEGS])


def bent(robot: Robot) -> np.ndarray:
    legs = {"LF": (0.6, -1.2), "RF": (0.5, -1.1), "LH": (0.7, -1.3), "RH": (0.6, -1.2)}
    pairs = {f"{leg}_{joint}": value for leg, values in legs.items()
             for joint, value in zip(("HFE", "KFE"), values, strict=True)}  # fmt: skip
    return robot.q(pairs)


def test_a_snapshot_has_the_matrix_of_the_active_contacts(quadruped: Problem) -> None:
    solver = DelassusSolver(quadruped, "auto")
    q = bent(quadruped.robot)
    found = SnapshotSolver(solver).snapshot(q, ["LF", "RH"])
    G = solver.solve(q, active=["LF", "RH"]).matrix
    assert [placed.name for placed in found.scene.contacts] == ["LF", "RH"]
    masses = 1.0 / np.linalg.eigvalsh(G[:3, :3])[::-1]
    np.testing.assert_allclose(found.scene.contacts[0].mass.masses, masses, rtol=1e-9)
    values = np.linalg.eigvalsh(G)
    assert found.facts["rank"] == "6 of 6 rows"
    assert float(found.facts["condition"]) == pytest.approx(values[-1] / values[0], rel=1e-3)
    nothing = SnapshotSolver(solver).snapshot(q, [])
    assert nothing.facts == {"matrix": "no contact is active"} and not nothing.scene.contacts


def test_forces_carry_the_weight_and_keep_the_posture(quadruped: Problem) -> None:
    solver = DelassusSolver(force_problem(quadruped), "auto")
    q = bent(quadruped.robot)
    found = SnapshotSolver(solver, friction=0.7).snapshot(q, LEGS)
    total = sum(force.force for force in found.forces)
    mass = sum(body.inertia.mass for body in quadruped.robot.bodies)
    np.testing.assert_allclose(total, [0.0, 0.0, 9.81 * mass], atol=1e-6)
    for force in found.forces:
        assert np.hypot(*force.force[:2]) <= 0.7 * force.force[2] + 1e-9
    assert found.facts["contact forces"].startswith("SOLVED")
    assert "slide" not in found.facts["contact forces"]


def test_torques_hold_all_joints(quadruped: Problem) -> None:
    problem = Problem(quadruped.robot, quadruped.contacts, "world",
                      ["J", "a0", "h", "qdd0", "MinvJT"])  # fmt: skip
    solver = DelassusSolver(problem, "auto")
    q, rest = bent(problem.robot), np.zeros(len(problem.velocities))
    upright = {"base_orientation": (0.0, 0.0, 0.0, 1.0), "gravity": GRAVITY, "rates": rest}
    torques, held = holding_torques(solver.solve(q, torques=rest, **upright), floating=True)
    assert held and not torques[:6].any()
    solution = solver.solve(q, torques=torques, **upright)
    forces = solution.contact_forces(0.7)
    assert forces.status is ForceStatus.SOLVED
    np.testing.assert_allclose(solution.accelerations(forces.forces), 0.0, atol=1e-6)
    # One foot cannot hold the robot.
    alone = solver.solve(q, active=["LF"], torques=rest, **upright)
    assert not holding_torques(alone, floating=True)[1]


def test_robot_that_tips_over_is_told_why(quadruped: Problem) -> None:
    snapshots = SnapshotSolver(DelassusSolver(force_problem(quadruped), "auto"), friction=0.7)
    q = bent(quadruped.robot)
    for active, words in (
        (["LF"], "with these contacts the robot tips over: one point cannot hold it"),
        (["LF", "RH"], "with these contacts the robot tips over: two points cannot hold it"),
    ):
        assert snapshots.snapshot(q, active).facts["contact forces"].endswith(words)
    # With its feet far behind, the robot falls on its head.
    legs = {f"{leg}_{joint}": angle for leg in LEGS
            for joint, angle in (("HFE", 1.3), ("KFE", -0.3))}  # fmt: skip
    back = quadruped.robot.q(legs)
    words = snapshots.snapshot(back, LEGS).facts["contact forces"]
    found = re.search(r"tips over: its centre of mass is (\S+) m outside of the area", words)
    assert found is not None, words
    poses = snapshots.drawn_robot.poses(back)
    feet = np.array([snapshots.drawn_robot.pose(poses, leg)[:3, 3] for leg in LEGS])
    bodies = quadruped.robot.bodies
    along_x = sum(pose[0, :3] @ body.inertia.moment + body.inertia.mass * pose[0, 3]
                  for body, pose in zip(bodies, poses, strict=True))  # fmt: skip
    centre = along_x / sum(body.inertia.mass for body in bodies)
    outside = max(feet[:, 0].min() - centre, centre - feet[:, 0].max())
    assert float(found[1]) == pytest.approx(outside, rel=0.05)


def test_wheels_are_drawn_and_carry_at_their_lowest_points() -> None:
    text = wheeled()
    robot = Robot.from_urdf(text)
    description = parse_xml(text)
    ends = proposals(robot, LinkShapes.of_urdf(robot, description))
    problem = Problem(robot, [end.contact() for end in ends])
    for wanted, friction in ((problem, None), (force_problem(problem), 0.7)):
        snapshots = SnapshotSolver(
            DelassusSolver(wanted, "auto"), friction,
            places=partial(lowest_points, robot, problem.contacts),
        )  # fmt: skip
        for turn in (0.0, 2.0):
            q = robot.q({"left_axle": turn, "right_axle": -turn})
            found = snapshots.snapshot(q, problem.contacts.names)
            places = {placed.name: placed.centre for placed in found.scene.contacts}
            np.testing.assert_allclose(places["left_wheel"], (0, 0.22, -0.4 - RADIUS), atol=1e-4)
            assert snapshots.standing(q) == ["left_wheel", "right_wheel"]


def test_forces_of_soles_are_at_their_centres_of_pressure() -> None:
    robot = Robot.from_urdf(humanoid_urdf())
    problem = Problem(robot, [Contact(name, frame, "surface") for name, frame in FEET.items()])
    solver = DelassusSolver(force_problem(problem), "auto")
    soles = dict.fromkeys(FEET, SOLE)
    found = SnapshotSolver(solver, 0.7, soles).snapshot(robot.q(POSTURE), tuple(FEET))
    assert found.facts["contact forces"].startswith("SOLVED")
    for force, placed in zip(found.forces, found.scene.contacts, strict=True):
        x, y, z = np.abs(force.point - placed.centre)
        assert x <= SOLE[0] / 2 + 1e-9 and y <= SOLE[1] / 2 + 1e-9 and z == 0.0
    total = sum(force.force[2] for force in found.forces)
    moments = sum(np.cross(force.point, force.force) for force in found.forces)
    mass = sum(body.inertia.mass for body in robot.bodies)
    assert total == pytest.approx(9.81 * mass, rel=1e-6)
    # The resultant passes through the centre of mass: the moment about it has no part in x, y.
    poses = SnapshotSolver(solver).drawn_robot.poses(robot.q(POSTURE))
    centre = sum(body.inertia.moment @ pose[:3, :3].T + body.inertia.mass * pose[:3, 3]
                 for body, pose in zip(robot.bodies, poses, strict=True)) / mass  # fmt: skip
    np.testing.assert_allclose(moments[:2], np.cross(centre, [0, 0, total])[:2], atol=1e-4)
