"""delassus_node on real topics: matrices, refusals, robot descriptions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import ActiveContacts, DelassusMatrix, Layout
from delassus_msgs_py import matrix_to_numpy
from faults import BY_NAME
from node_support import (
    DEGRADED,
    FEET,
    OK,
    relative_error,
    set_parameters,
    solve,
    state_of,
)
from rclpy.serialization import serialize_message
from ros_support import LATCHED, nanoseconds, stamp_of
from sensor_msgs.msg import JointState

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus_ros.node.delassus_node import DelassusNode

# --- matrices ---------------------------------------------------------------------------------


def test_matrix_is_that_of_the_solvers(graph, start, urdf, robot, q) -> None:
    start()
    graph.touch(FEET)
    answer = graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    matrix = matrix_to_numpy(answer)
    np.testing.assert_array_equal(matrix, solve(urdf, q, algorithm="pv_osimr"))
    np.testing.assert_array_equal(matrix, matrix.T)
    assert relative_error(matrix, solve(urdf, q)) < 1e-12
    assert list(answer.contacts) == list(FEET)
    assert answer.algorithm == "pv_osimr"
    assert 0.0 < answer.input_age < 60.0


def test_any_joint_order_extra_joints_and_missing_velocities(graph, start, urdf, robot, q) -> None:
    start()
    graph.touch(FEET)
    names, positions = [*robot.joint_names, "gripper"], [*q, math.nan]
    rng = np.random.default_rng(1)
    expected = solve(urdf, q)
    for _ in range(3):
        order = rng.permutation(len(names))
        answer = graph.ask_until(
            lambda m: m.validity == OK,
            [names[i] for i in order],
            [positions[i] for i in order],
        )
        assert relative_error(matrix_to_numpy(answer), expected) < 1e-12
    answer = graph.ask(robot.joint_names, q, velocity=[math.nan] * 12, effort=[math.inf] * 12)
    assert relative_error(matrix_to_numpy(answer), expected) < 1e-12


def test_contacts_switch_from_one_joint_state_to_the_next(graph, ready, urdf, robot, q) -> None:
    ready()
    for active in (("LF", "RH"), ("RF",), FEET, ()):
        stamp = graph.touch(active)
        # The node has the set at the latest when it answers with its stamp.
        answer = graph.ask_until(
            lambda m, stamp=stamp: nanoseconds(m.contacts_stamp) == stamp, robot.joint_names, q
        )
        assert tuple(answer.contacts) == active
        assert answer.validity == OK
        expected = solve(urdf, q, active)
        np.testing.assert_allclose(matrix_to_numpy(answer), expected, rtol=0.0, atol=1e-12)


def test_slipping_counts_and_unknown_does_not(graph, start, robot, q) -> None:
    start()
    graph.touch(FEET, [ActiveContacts.SLIPPING, 0, 1, ActiveContacts.ACTIVE])
    answer = graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    assert list(answer.contacts) == ["LF", "RH"]
    assert list(answer.status) == [ActiveContacts.SLIPPING, ActiveContacts.ACTIVE]


def test_all_rows_are_of_fixed_size_and_need_no_contacts(graph, start, urdf, robot, q) -> None:
    start(rows="all")
    answer = graph.ask(robot.joint_names, q)
    assert answer.validity == DEGRADED
    assert answer.reasons == DelassusMatrix.REASON_NO_CONTACTS_RECEIVED
    assert list(answer.row_offsets) == [0, 3, 6, 9, 12]
    assert relative_error(matrix_to_numpy(answer), solve(urdf, q)) < 1e-12
    assert list(answer.status) == [ActiveContacts.UNKNOWN] * 4
    graph.touch(["RF"])
    answer = graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    inactive = ActiveContacts.INACTIVE
    assert list(answer.status) == [inactive, ActiveContacts.ACTIVE, inactive, inactive]


def test_world_axes_with_a_fixed_base(graph, start, urdf, robot, q) -> None:
    start(base="fixed", axes="world", rows="all")
    answer = graph.ask(robot.joint_names, q)
    assert answer.axes == DelassusMatrix.AXES_WORLD
    assert answer.header.frame_id == "base"
    contacts = [Contact(foot, frame=f"{foot}_FOOT") for foot in FEET]
    problem = Problem(Robot.from_urdf(urdf, base="fixed"), contacts, axes="world")
    expected = DelassusSolver(problem, "dense").solve(q).matrix
    assert relative_error(matrix_to_numpy(answer), expected) < 1e-10


# --- refusals: each is said, and the node goes on ---------------------------------------------


@pytest.mark.usefixtures("no_second_line")
def test_a_fault_of_joint_states(graph, start, robot, q) -> None:
    """A row of the table on real topics; the log has one line for all of the joint states."""
    fault = BY_NAME["joint_states: position nan"]
    start()
    graph.touch(FEET)
    names = list(robot.joint_names)
    graph.ask_until(lambda m: m.validity == OK, names, q)
    spoilt = [
        math.nan if name == "LH_HFE" else value for name, value in zip(names, q, strict=True)
    ]
    for _ in range(20):
        answer = graph.ask(names, spoilt)
        assert (answer.validity, answer.reasons) == (fault.validity, fault.reason)
        assert (len(answer.matrix), list(answer.contacts)) == (0, [])
    assert graph.ask(names, q).validity == OK
    graph.wait_for_log(fault.words)
    assert sum(fault.words in line for line in graph.log) == 1


def test_a_fault_of_contacts(graph, start, robot, q) -> None:
    """A row of the table on real topics."""
    fault = BY_NAME["active_contacts: a contact twice"]
    start()
    stamp = graph.touch(["LF", "LF"])
    answer = graph.ask_until(
        lambda m: nanoseconds(m.contacts_stamp) == stamp, robot.joint_names, q
    )
    assert (answer.validity, answer.reasons) == (fault.validity, fault.reason)
    assert not answer.contacts
    graph.wait_for_log(fault.words)
    graph.touch(FEET)
    graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)


def test_node_with_refused_parameters_lives_and_can_be_mended(graph, start, robot, q) -> None:
    node = start(contacts__LF__frame="LF_FOT")
    assert state_of(node) == "unconfigured"
    graph.wait_for_log("cannot configure: contact 'LF': unknown frame 'LF_FOT'")
    assert not [p for p in node.publishers if p.topic_name.endswith(("/delassus", "/layout"))]
    set_parameters(node, contacts__LF__frame="LF_FOOT", rows="all")
    node.start()
    assert state_of(node) == "active"
    assert graph.ask(robot.joint_names, q).validity == DEGRADED


def test_a_failed_configuration_leaves_no_publishers(graph, start, monkeypatch) -> None:
    made = DelassusNode.create_lifecycle_publisher

    def create(node: DelassusNode, kind: type, *others, **options):
        return 1 / 0 if kind is Layout else made(node, kind, *others, **options)

    with monkeypatch.context() as patch:
        patch.setattr(DelassusNode, "create_lifecycle_publisher", create)
        node = start()
    assert state_of(node) == "unconfigured"
    assert not [p for p in node.publishers if p.topic_name.endswith(("/delassus", "/layout"))]
    node.trigger_configure()
    assert state_of(node) == "inactive"


def test_a_fault_of_the_program_is_logged_and_leaves_a_node_that_lives(
    graph, start, monkeypatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("delassus_ros.node.computation.make_layout", lambda *_: 1 / 0)
        node = start()
    assert state_of(node) == "unconfigured"
    graph.wait_for_log("on_configure failed:")
    graph.wait_for_log("ZeroDivisionError")
    node.trigger_configure()
    assert state_of(node) == "inactive"


# --- robot description ------------------------------------------------------------------------


def test_description_by_topic_starts_the_node(graph, start, urdf, robot, q) -> None:
    node = start(robot_description="", rows="all")
    graph.wait_for_log("waiting for the robot description on /robot_description")
    assert state_of(node) == "unconfigured"
    graph.describe(urdf)
    graph.until(lambda: state_of(node) == "active", "activation")
    answer = graph.ask(robot.joint_names, q)
    assert relative_error(matrix_to_numpy(answer), solve(urdf, q)) < 1e-12


@pytest.mark.parametrize("simulated", [False, True])
def test_description_by_parameter_starts_the_node(graph, start, urdf, simulated) -> None:
    """Also where simulated time has not begun; what is set after it in one go counts."""
    node = start(robot_description="", use_sim_time=simulated)
    graph.wait_for_log("waiting for the robot description on /robot_description")
    timers = len(list(node.timers))

    def set_by_service(**values: Any) -> None:
        assert all(result.successful for result in graph.set_parameters(**values))

    set_by_service(robot_description="<robot")
    graph.wait_for_log("cannot configure: ")
    assert len(list(node.timers)) == timers
    set_by_service(robot_description=urdf, rows="all")
    graph.until(lambda: state_of(node) == "active", "activation")
    assert node.get_parameter("rows").value == "all"
    # Once: not again after it was cleaned up.
    node.trigger_deactivate()
    node.trigger_cleanup()
    set_by_service(robot_description=urdf)
    assert len(list(node.timers)) == timers
    assert state_of(node) == "unconfigured"


def test_description_by_parameter_without_autostart_waits(start, urdf) -> None:
    node = start(robot_description="", autostart=False)
    timers = list(node.timers)
    set_parameters(node, robot_description=urdf)
    assert list(node.timers) == timers


def test_description_that_was_published_before_the_node_came(graph, start, urdf) -> None:
    graph.describe(urdf)
    node = start(robot_description="")
    graph.until(lambda: state_of(node) == "active", "activation")


def test_configuring_by_hand_takes_the_latched_description(graph, start, urdf) -> None:
    graph.describe(urdf)
    node = start(robot_description="", autostart=False)
    node.trigger_configure()
    assert state_of(node) == "inactive"


def test_configuring_without_a_description_fails_with_the_topic(graph, start, monkeypatch) -> None:
    monkeypatch.setattr("delassus_ros.ros.lifecycle_program._DESCRIPTION_LIMIT_S", 0.2)
    node = start(robot_description="", autostart=False)
    node.trigger_configure()
    assert state_of(node) == "unconfigured"
    line = graph.wait_for_log("cannot configure: no robot description")
    assert "/robot_description within 0.2 s (publishers there: 1)" in line


def test_a_bad_description_is_followed_by_a_good_one(graph, start, urdf) -> None:
    node = start(robot_description="")
    graph.describe("<robot")
    graph.wait_for_log("cannot configure: ")
    assert state_of(node) == "unconfigured"
    graph.describe(urdf)
    graph.until(lambda: state_of(node) == "active", "activation")


# --- topics -----------------------------------------------------------------------------------


def test_late_subscriber_gets_the_layout(graph, start, robot, q) -> None:
    start(rows="all")
    answer = graph.ask(robot.joint_names, q)
    late: list[Layout] = []
    graph.peer.create_subscription(Layout, "delassus_node/layout", late.append, LATCHED)
    graph.until(lambda: late, "latched layout")
    assert late[0].layout_id == answer.layout_id
    assert list(late[0].joints) == list(robot.joint_names)
    assert list(late[0].frames) == [f"{foot}_FOOT" for foot in FEET]


def test_the_newest_of_waiting_joint_states_is_computed(graph, start, robot, q) -> None:
    node = start(rows="all")
    before = graph.ask(robot.joint_names, q)
    tick = node._configuration.computation.tick
    already, earlier = len(graph.matrices), tick.superseded
    stamps = [graph.move(robot.joint_names, q) for _ in range(10)]
    graph.until(lambda: stamp_of(graph.matrices[-1]) == stamps[-1], "answer to the last one")
    answers = graph.matrices[already:]
    assert [stamp_of(m) for m in answers] == sorted(stamp_of(m) for m in answers)
    # Every one is answered or accounted for, and nearly all waited while nobody spun.
    assert answers[-1].sequence - before.sequence == 10
    superseded = tick.superseded - earlier
    assert len(answers) + superseded == 10
    assert superseded > 0


@pytest.mark.parametrize("rate", [0.0, 200.0])
def test_contacts_between_joint_states_that_wait(graph, start, robot, q, rate) -> None:
    """The newest of them is answered: for the contacts that are active by then."""
    start(rate=rate)
    graph.touch(["LF", "RF"])
    graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    for names in (["LF"], ["RF", "LF"], []):
        graph.move(robot.joint_names, q)
        touched = graph.touch(names)
        stamp = graph.move(robot.joint_names, q)
        graph.until(lambda s=stamp: stamp_of(graph.matrices[-1]) == s, "answer")
        answer = graph.matrices[-1]
        assert (answer.validity, sorted(answer.contacts)) == (OK, sorted(names))
        assert nanoseconds(answer.contacts_stamp) == touched


def test_whole_ones_that_wait_are_not_superseded_by_parts(graph, start, robot, q) -> None:
    """Somebody else publishes some of the joints, none or other ones, behind each."""
    start(rows="all")
    graph.ask(robot.joint_names, q)
    velocities_alone = (["gripper"], []), (robot.joint_names, []), ([], [])
    for others in (*velocities_alone, (["gripper"], q[:1]), (robot.joint_names[:3], q[:3])):
        stamp = graph.move(robot.joint_names, q)
        graph.move(*others)
        graph.until(lambda s=stamp: stamp_of(graph.matrices[-1]) == s, "answer")
        assert graph.matrices[-1].validity == DEGRADED


def test_relative_names_follow_the_namespace(start) -> None:
    node = start("robot1")
    names = {name for name, _ in node.get_topic_names_and_types()}
    assert {
        "/robot1/joint_states",
        "/robot1/active_contacts",
        "/robot1/robot_description",
        "/robot1/delassus_node/delassus",
        "/robot1/delassus_node/layout",
    } <= names


def test_quality_of_service_and_overrides(graph, start) -> None:
    node = start(**{"qos_overrides__/joint_states__subscription__depth": 3})
    (joints,) = node.get_subscriptions_info_by_topic("/joint_states")
    (contacts,) = node.get_subscriptions_info_by_topic("/active_contacts")
    (layout,) = node.get_publishers_info_by_topic("/delassus_node/layout")
    assert joints.qos_profile.reliability.name == "BEST_EFFORT"
    assert (contacts.qos_profile.reliability.name, contacts.qos_profile.durability.name) == (
        "RELIABLE",
        "TRANSIENT_LOCAL",
    )
    assert layout.qos_profile.durability.name == "TRANSIENT_LOCAL"
    assert node.get_parameter("qos_overrides./joint_states.subscription.depth").value == 3
    # The override is that node's alone.
    other = start()
    assert other.get_parameter("qos_overrides./joint_states.subscription.depth").value == 1000


def test_the_queue_is_drained_with_a_bound(graph, start, robot, q, monkeypatch) -> None:
    """Whoever publishes faster than the node takes does not keep it from answering."""
    node = start(rows="all")
    graph.ask(robot.joint_names, q)
    endless = serialize_message(JointState(name=list(robot.joint_names), position=q))
    taken: list[bytes] = []

    def pop(subscription: object) -> bytes | None:
        if subscription is not node._configuration.stream.subscriptions["joint_states"]:
            return None
        taken.append(endless)
        assert len(taken) <= 1000
        return endless

    with monkeypatch.context() as patch:
        patch.setattr("delassus_ros.ros.reception.pop", pop)
        already = len(graph.matrices)
        graph.move(robot.joint_names, q)
        graph.until(lambda: len(graph.matrices) > already, "answer")
    assert len(taken) == 1000


def test_bytes_that_are_no_joint_state_are_dropped_with_a_warning(graph, ready, robot, q) -> None:
    node = ready()
    already = len(graph.matrices)
    subscription = node._configuration.stream.subscriptions["joint_states"]
    subscription.callback((b"\x00\x01\x00\x00nonsense", {}))
    graph.wait_for_log("a joint state cannot be read")
    assert len(graph.matrices) == already
    assert graph.ask(robot.joint_names, q).validity == OK
