"""Messages: reasons, layout, and what a pipeline answers to joint states, without a node."""

from __future__ import annotations

import math

import numpy as np
import pytest
import robots
from builtin_interfaces.msg import Time
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs_py import compute_layout_id, matrix_to_numpy
from failing import make_fail
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

from delassus_ros import (
    Contact,
    DelassusSolver,
    Problem,
    RelativeContact,
    Robot,
    Transform,
    WeightedSum,
)
from delassus_ros.node.live.pipeline import Pipeline
from delassus_ros.node.outputs.matrix import make_layout
from delassus_ros.node.reasons import (
    Limits,
    Reason,
)
from delassus_ros.scalars.ports import Status

FEET = ("LF", "RF", "LH", "RH")
NOW = 12_000_000_000


def make_problem(axes: str = "contact", base: str = "floating") -> Problem:
    robot = Robot.from_urdf(robots.unlimited(), base=base)
    kinds = ("point", "surface", "point", np.eye(2, 6))
    contacts = [Contact(f, frame=f"{f}_FOOT", kind=k) for f, k in zip(FEET, kinds, strict=True)]
    return Problem(robot, contacts, axes=axes)


@pytest.fixture(name="solver", scope="module")
def make_solver() -> DelassusSolver:
    return DelassusSolver(make_problem())


class Bench:
    """A pipeline with its warnings."""

    def __init__(self, solver: DelassusSolver, all_rows: bool = False) -> None:
        self.warnings: list[tuple[str, str]] = []
        self.robot = solver.problem.robot
        self.layout = make_layout(solver.problem, Time(sec=3))
        self.pipeline = Pipeline(
            solver,
            self.layout,
            all_rows,
            lambda: NOW,
            lambda kind, text: self.warnings.append((kind, text)),
            Limits(input_timeout=5.0, contacts_timeout=5.0),
        )

    def touch(self, *names: str, sec: int = 9) -> None:
        message = ActiveContacts(names=list(names), status=[ActiveContacts.ACTIVE] * len(names))
        message.header.stamp.sec = sec
        self.pipeline.set_contacts(message)

    def compute(self, q: np.ndarray) -> DelassusMatrix:
        state = JointState(name=list(self.robot.joint_names), position=q.tolist())
        state.header.stamp.sec = 11
        return self.answer(state)

    def answer(self, state: JointState) -> DelassusMatrix:
        data = self.pipeline.answer(serialize_message(state))
        return deserialize_message(data, DelassusMatrix)


@pytest.fixture(name="bench")
def make_bench(solver: DelassusSolver) -> Bench:
    return Bench(solver)


@pytest.fixture(name="q")
def make_q(solver: DelassusSolver) -> np.ndarray:
    return np.random.default_rng(3).uniform(-1, 1, solver.problem.robot.nq)


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


def test_every_field_of_a_matrix(bench, solver, q) -> None:
    bench.touch("RH", "LF", sec=9)
    message = bench.compute(q)
    expected = solver.solve(q, active=("LF", "RH"))
    np.testing.assert_array_equal(matrix_to_numpy(message), expected.matrix)
    assert list(message.contacts) == ["LF", "RH"]
    assert list(message.kinds) == ["point", "selection"]
    assert list(message.row_offsets) == [0, 3, 5]
    assert message.header.stamp.sec == 11
    assert message.header.frame_id == ""
    assert message.contacts_stamp.sec == 9
    assert message.layout_id == bench.layout.layout_id
    assert message.axes == DelassusMatrix.AXES_CONTACT
    assert message.validity == DelassusMatrix.VALIDITY_OK
    assert message.reasons == 0
    assert message.conditioning == DelassusMatrix.CONDITIONING_OK
    assert (message.rank, message.structural_rank) == (5, 5)
    eigenvalues = np.linalg.eigvalsh(expected.matrix)
    assert message.condition == pytest.approx(eigenvalues[-1] / eigenvalues[0], rel=1e-9)
    assert list(message.status) == [ActiveContacts.ACTIVE] * 2
    assert (message.damping_mode, message.damping) == (DelassusMatrix.DAMPING_NONE, 0.0)
    assert message.algorithm == "pv_osimr"
    assert 0.0 < message.compute_time < 1.0
    assert message.input_age == pytest.approx(1.0)
    assert bench.warnings == []


def test_sequence_counts_matrices_invalid_and_superseded(bench, q) -> None:
    assert bench.compute(q).sequence == 1
    bench.touch("LF")
    assert bench.compute(q).sequence == 2
    bench.pipeline.supersede(3)
    assert bench.compute(q).sequence == 6
    pipeline = bench.pipeline
    assert (pipeline.published, pipeline.refused, pipeline.superseded) == (2, 1, 3)


def test_contacts_may_change_at_every_tick(bench, solver, q) -> None:
    for active in (("LF",), FEET, ("RF", "LH"), (), ("RH",), FEET):
        bench.touch(*active)
        message = bench.compute(q)
        expected = solver.solve(q, active=active)
        assert list(message.contacts) == list(active)
        np.testing.assert_array_equal(matrix_to_numpy(message), expected.matrix)


def test_no_active_contact_is_a_valid_empty_matrix(bench, q) -> None:
    bench.touch()
    message = bench.compute(q)
    assert message.validity == DelassusMatrix.VALIDITY_OK
    assert (len(message.matrix), list(message.row_offsets)) == (0, [0])
    assert message.conditioning == DelassusMatrix.CONDITIONING_UNKNOWN
    assert (message.rank, message.structural_rank, message.condition) == (0, 0, -1.0)


def test_invalid_before_the_first_contacts(bench, q) -> None:
    message = bench.compute(q)
    assert message.validity == DelassusMatrix.VALIDITY_INVALID
    assert message.reasons == DelassusMatrix.REASON_NO_CONTACTS_RECEIVED
    assert len(message.matrix) == 0
    assert message.algorithm == ""
    assert message.header.stamp.sec == 11
    assert message.layout_id == bench.layout.layout_id
    assert message.contacts_stamp == Time()
    assert bench.warnings == [("contacts", "no set of active contacts has arrived yet")]


def test_a_refused_joint_state_never_shows_the_last_matrix(bench, q) -> None:
    bench.touch("LF")
    assert len(bench.compute(q).matrix) == 9
    # Of one stamp, so what comes after it is what was there before.
    before, q[4] = q[4], math.nan
    message = bench.compute(q)
    assert message.validity == DelassusMatrix.VALIDITY_INVALID
    assert message.reasons == DelassusMatrix.REASON_JOINT_NOT_FINITE
    assert len(message.matrix) == 0
    assert message.contacts_stamp.sec == 9
    ((kind, text),) = bench.warnings
    assert kind == "JOINT_NOT_FINITE"
    assert "'RF_HFE' is nan" in text
    q[4] = before
    assert bench.compute(q).validity == DelassusMatrix.VALIDITY_OK


def test_reasons_add_up(bench, q) -> None:
    q[0] = math.inf
    message = bench.compute(q)
    assert message.reasons == (
        DelassusMatrix.REASON_NO_CONTACTS_RECEIVED | DelassusMatrix.REASON_JOINT_NOT_FINITE
    )


def test_all_rows_come_before_any_contacts_and_tell_which_are_active(solver, q) -> None:
    bench = Bench(solver, all_rows=True)
    message = bench.compute(q)
    assert message.validity == DelassusMatrix.VALIDITY_DEGRADED
    assert message.reasons == Reason.NO_CONTACTS_RECEIVED
    assert list(message.contacts) == list(FEET)
    assert list(message.status) == [ActiveContacts.UNKNOWN] * 4
    bench.touch("RF", "LH")
    message = bench.compute(q)
    assert (message.validity, message.reasons) == (DelassusMatrix.VALIDITY_OK, 0)
    assert list(message.contacts) == list(FEET)
    inactive, active = ActiveContacts.INACTIVE, ActiveContacts.ACTIVE
    assert list(message.status) == [inactive, active, active, inactive]
    np.testing.assert_array_equal(matrix_to_numpy(message), solver.solve(q).matrix)


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


def test_solvers_change_between_two_ticks(bench, solver, q) -> None:
    bench.touch("RF", "RH")
    before = matrix_to_numpy(bench.compute(q)).copy()
    bench.pipeline.set_solver(DelassusSolver(solver.problem, "dense"))
    message = bench.compute(q)
    assert message.algorithm == bench.pipeline.algorithm == "dense"
    assert list(message.contacts) == ["RF", "RH"]
    np.testing.assert_allclose(matrix_to_numpy(message), before, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (Status.NOT_POSITIVE_DEFINITE, DelassusMatrix.REASON_SOLVER_FAILED),
        (Status.NOT_FINITE, DelassusMatrix.REASON_RESULT_NOT_FINITE),
        (Status.FAILED, DelassusMatrix.REASON_SOLVER_FAILED),
    ],
)
def test_a_failing_kernel_is_invalid(bench, q, monkeypatch, status, reason) -> None:
    bench.touch("LF")
    with monkeypatch.context() as patch:
        make_fail(patch, bench.pipeline._solver, status)
        message = bench.compute(q)
        assert message.validity == DelassusMatrix.VALIDITY_INVALID
        assert message.reasons == reason
        assert len(message.matrix) == 0
        assert f"pv_osimr failed: {status.name}" in bench.warnings[0][1]
    assert bench.compute(q).validity == DelassusMatrix.VALIDITY_OK


def test_all_rows_are_degraded_while_the_set_is_refused(solver, q) -> None:
    bench = Bench(solver, all_rows=True)
    bench.touch("LF")
    assert bench.compute(q).validity == DelassusMatrix.VALIDITY_OK
    bench.touch("LF", "LF")
    message = bench.compute(q)
    assert message.validity == DelassusMatrix.VALIDITY_DEGRADED
    assert message.reasons == DelassusMatrix.REASON_DUPLICATE_CONTACT
    assert list(message.status) == [ActiveContacts.UNKNOWN] * 4


@pytest.mark.parametrize("all_rows", [False, True])
def test_status_is_that_of_the_set_also_when_the_active_contacts_stay(solver, q, all_rows) -> None:
    bench = Bench(solver, all_rows=all_rows)
    active, slipping = ActiveContacts.ACTIVE, ActiveContacts.SLIPPING
    for left, right in ((active, slipping), (slipping, slipping), (slipping, active)):
        bench.pipeline.set_contacts(ActiveContacts(names=["RH", "LF"], status=[right, left]))
        message = bench.compute(q)
        status = dict(zip(message.contacts, message.status, strict=True))
        others = {foot: ActiveContacts.INACTIVE for foot in ("RF", "LH")} if all_rows else {}
        assert status == {"LF": left, "RH": right, **others}


@pytest.mark.parametrize("all_rows", [False, True])
def test_forgotten_contacts_are_not_used(solver, q, all_rows) -> None:
    bench = Bench(solver, all_rows=all_rows)
    bench.touch("LF", sec=9)
    bench.compute(q)
    bench.pipeline.reset_contacts()
    message = bench.compute(q)
    assert message.validity == (
        DelassusMatrix.VALIDITY_DEGRADED if all_rows else DelassusMatrix.VALIDITY_INVALID
    )
    assert message.reasons == DelassusMatrix.REASON_NO_CONTACTS_RECEIVED
    assert message.contacts_stamp == Time()
    assert set(message.status) <= {ActiveContacts.UNKNOWN}
    bench.touch("LF", sec=10)
    message = bench.compute(q)
    assert (message.validity, message.contacts_stamp.sec) == (DelassusMatrix.VALIDITY_OK, 10)
