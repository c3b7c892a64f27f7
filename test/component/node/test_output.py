"""Messages: reasons, layout, and what a tick answers to joint states, without a node."""

from __future__ import annotations

import numpy as np
import pytest
import robots
from builtin_interfaces.msg import Time
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs_py import compute_layout_id, matrix_to_numpy
from failing import make_fail
from tick_support import DEGRADED, INVALID, MS, OK, START, Rig, said, to_message

from delassus import (
    Contact,
    DelassusSolver,
    Problem,
    RelativeContact,
    Robot,
    Transform,
    WeightedSum,
)
from delassus.scalars.ports import Status
from delassus_ros.inputs.findings import Reason
from delassus_ros.node.matrix import make_layout

FEET = ("LF", "RF", "LH", "RH")


def make_problem(axes: str = "contact", base: str = "floating") -> Problem:
    robot = Robot.from_urdf(robots.unlimited(), base=base)
    kinds = ("point", "surface", "point", np.eye(2, 6))
    contacts = [Contact(f, frame=f"{f}_FOOT", kind=k) for f, k in zip(FEET, kinds, strict=True)]
    return Problem(robot, contacts, axes=axes)


@pytest.fixture(name="solver", scope="module")
def make_solver() -> DelassusSolver:
    return DelassusSolver(make_problem())


@pytest.fixture(name="q")
def make_q(solver: DelassusSolver) -> np.ndarray:
    return np.random.default_rng(3).uniform(-1, 1, solver.problem.robot.nq)


@pytest.fixture(name="rig")
def make_rig(solver: DelassusSolver, q: np.ndarray) -> Rig:
    return Rig(solver, lambda _: dict(zip(solver.problem.robot.joint_names, q, strict=True)))


def test_layout_says_what_the_rows_mean(solver) -> None:
    layout = make_layout(solver.problem, Time(sec=3))
    assert layout.header.stamp.sec == 3
    assert layout.header.frame_id == ""
    assert layout.robot == "delassus_quadruped"
    assert layout.base == "floating"
    assert list(layout.contacts) == list(FEET)
    assert list(layout.frames) == [f"{foot}_FOOT" for foot in FEET]
    assert list(layout.kinds) == ["point", "surface", "point", "selection"]
    assert list(layout.row_offsets) == [0, 3, 9, 12, 14]
    assert list(layout.joints) == list(solver.problem.robot.joint_names)
    assert layout.axes == layout.AXES_CONTACT
    # Of the rows; behind that, of the robot.
    assert layout.layout_id[:16] == compute_layout_id(layout)
    assert len(layout.layout_id) == 32


def test_layout_of_a_relative_contact_names_both_frames() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    relative = RelativeContact("grip", "LF_FOOT", "RF_FOOT", "point")
    layout = make_layout(Problem(robot, [Contact("LH", "LH_FOOT"), relative]), Time())
    assert list(layout.frames) == ["LH_FOOT", "LF_FOOT RF_FOOT"]
    assert list(layout.kinds) == ["point", "relative"]
    assert list(layout.selections) == np.eye(3, 6).ravel().tolist()
    middle = WeightedSum("middle", {"LF_FOOT": 0.25, "RF_FOOT": 0.75})
    layout = make_layout(Problem(robot, [middle]), Time())
    assert (list(layout.frames), list(layout.kinds)) == (["LF_FOOT RF_FOOT"], ["weighted_sum"])
    rows = np.reshape(layout.selections, (3, 12))
    assert rows[0].tolist() == [0.25] + [0.0] * 5 + [0.75] + [0.0] * 5


def test_layout_with_world_axes_names_the_root_link() -> None:
    layout = make_layout(make_problem(axes="world", base="fixed"), Time(), "odom")
    assert layout.axes == layout.AXES_WORLD
    assert layout.header.frame_id == "base"


def test_layout_with_world_axes_of_a_floating_base_names_the_world() -> None:
    layout = make_layout(make_problem(axes="world"), Time(), "odom")
    assert layout.axes == layout.AXES_WORLD
    assert layout.header.frame_id == "odom"
    assert make_layout(make_problem(), Time(), "odom").header.frame_id == ""


def test_layout_id_is_of_the_rows_and_not_of_the_time(solver) -> None:
    first = make_layout(solver.problem, Time(sec=1)).layout_id
    assert make_layout(solver.problem, Time(sec=2)).layout_id == first
    other = Problem(solver.problem.robot, solver.problem.contacts[:3])
    assert make_layout(other, Time(sec=1)).layout_id != first


def test_layout_id_is_of_all_that_matrices_depend_on() -> None:
    """The same names, with another inertia, armature or reference."""
    problem = make_problem()
    first = make_layout(problem, Time()).layout_id
    text = robots.unlimited()
    heavier = text.replace('mass value="', 'mass value="1', 1)
    armature = {problem.robot.joint_names[0]: 0.01}
    ids = [
        make_layout(problem, Time(), more="another reference").layout_id,
        *(
            make_layout(Problem(other, problem.contacts), Time()).layout_id
            for other in (
                Robot.from_urdf(heavier.encode()),
                Robot.from_urdf(text.encode(), armature=armature),
            )
        ),
    ]
    assert len({first, *ids}) == 4
    assert {each[:16] for each in ids} == {first[:16]}
    assert make_layout(make_problem(), Time()).layout_id == first


def test_every_field_of_a_matrix(rig, solver, q) -> None:
    rig.touch("RH", "LF", at=-100)
    message = rig.send(at=-20)
    expected = solver.solve(q, active=("LF", "RH"))
    np.testing.assert_array_equal(matrix_to_numpy(message), expected.matrix)
    assert list(message.kinds) == ["point", "selection"]
    assert list(message.row_offsets) == [0, 3, 5]
    assert message.header.stamp == to_message(START - 20 * MS)
    assert message.header.frame_id == ""
    assert message.contacts_stamp == to_message(START - 100 * MS)
    assert message.axes == DelassusMatrix.AXES_CONTACT
    assert said(message) == (OK, Reason.NONE)
    assert message.conditioning == DelassusMatrix.CONDITIONING_OK
    assert (message.rank, message.structural_rank) == (5, 5)
    eigenvalues = np.linalg.eigvalsh(expected.matrix)
    assert message.condition == pytest.approx(eigenvalues[-1] / eigenvalues[0], rel=1e-9)
    assert (message.damping_mode, message.damping) == (DelassusMatrix.DAMPING_NONE, 0.0)
    assert message.algorithm == "pv_osimr"
    assert 0.0 < message.compute_time < 1.0
    assert message.input_age == pytest.approx(0.02)
    assert rig.warnings == []


def test_sequence_counts_matrices_invalid_and_superseded(rig) -> None:
    assert rig.send().sequence == 1
    rig.touch("LF")
    assert rig.send().sequence == 2
    for _ in range(3):
        rig.read("joint_states", rig.state())
    assert rig.send().sequence == 6
    tick = rig.tick
    assert (tick.published, tick.refused, tick.superseded) == (2, 1, 3)


def test_matrix_without_active_contacts_valid_and_empty(rig) -> None:
    rig.touch()
    message = rig.send()
    assert said(message) == (OK, Reason.NONE)
    assert (len(message.matrix), list(message.row_offsets)) == (0, [0])
    assert message.conditioning == DelassusMatrix.CONDITIONING_UNKNOWN
    assert (message.rank, message.structural_rank, message.condition) == (0, 0, -1.0)


def test_invalid_before_the_first_contacts(rig) -> None:
    message = rig.send()
    assert said(message) == (INVALID, Reason.NO_CONTACTS_RECEIVED)
    assert message.algorithm == ""
    assert message.header.stamp == to_message(START)
    assert message.contacts_stamp == Time()
    assert rig.warnings == [("NO_CONTACTS_RECEIVED", "no set of active contacts has arrived yet")]


def test_a_layout_says_where_contacts_are_and_what_selections_select() -> None:
    robot = Robot.from_urdf(robots.unlimited())
    turned = Transform.from_xyz_rpy((0.1, 0.2, 0.3), (0.0, 0.0, np.pi / 2))
    rows = np.eye(2, 6)
    contacts = [Contact("a", "LF_FOOT", "point", turned), Contact("b", "RF_FOOT", rows)]
    layout = make_layout(Problem(robot, contacts), Time())
    pose = layout.placements[0]
    assert (pose.position.x, pose.position.y, pose.position.z) == (0.1, 0.2, 0.3)
    quaternion = pose.orientation.x, pose.orientation.y, pose.orientation.z, pose.orientation.w
    np.testing.assert_allclose(quaternion, (0, 0, np.sqrt(0.5), np.sqrt(0.5)), atol=1e-15)
    np.testing.assert_array_equal(layout.selections, rows.ravel())
    moved = [Contact("a", "LF_FOOT"), Contact("b", "RF_FOOT", rows)]
    assert make_layout(Problem(robot, moved), Time()).layout_id != layout.layout_id


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status.NOT_POSITIVE_DEFINITE, Reason.SOLVER_FAILED),
        (Status.NOT_FINITE, Reason.RESULT_NOT_FINITE),
        (Status.FAILED, Reason.SOLVER_FAILED),
    ],
)
def test_failing_kernel_invalid(rig, monkeypatch, status, reason) -> None:
    rig.touch("LF")
    with monkeypatch.context() as patch:
        make_fail(patch, rig.tick._solver, status)
        assert said(rig.send()) == (INVALID, reason)
        assert f"pv_osimr failed: {status.name}" in rig.text
    assert said(rig.send()) == (OK, Reason.NONE)


@pytest.mark.parametrize("all_rows", [False, True])
def test_status_changes_while_the_active_contacts_stay(solver, all_rows) -> None:
    rig = Rig(solver, all_rows=all_rows)
    active, slipping = ActiveContacts.ACTIVE, ActiveContacts.SLIPPING
    for status in ((active, slipping), (slipping, slipping), (slipping, active)):
        rig.touch("RH", "LF", status=status)
        assert said(rig.send()) == (OK, Reason.NONE)


@pytest.mark.parametrize("all_rows", [False, True])
def test_contacts_dropped_by_reset(solver, all_rows) -> None:
    rig = Rig(solver, all_rows=all_rows)
    rig.touch("LF")
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.tick.end()
    message = rig.send()
    validity = DEGRADED if all_rows else INVALID
    assert said(message) == (validity, Reason.NO_CONTACTS_RECEIVED)
    assert message.contacts_stamp == Time()
    rig.touch("LF", at=1)
    message = rig.send()
    assert said(message) == (OK, Reason.NONE)
    assert message.contacts_stamp == to_message(START + MS)
