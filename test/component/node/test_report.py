"""delassus_node's diagnostics: what an operator sees, active or not."""

from __future__ import annotations

import math

import pytest
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from failing import make_fail
from node_support import (
    FEET,
    OK,
    set_parameters,
)
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from delassus.scalars.ports import Status
from delassus_ros.ros import realtime
from delassus_ros.ros.diagnostics import OVERRIDABLE
from delassus_ros.ros.realtime import (
    Outcome,
    RealtimeMode,
)

GOOD, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
ERROR, STALE = DiagnosticStatus.ERROR, DiagnosticStatus.STALE


class Reports:
    """What has come on /diagnostics."""

    def __init__(self, graph) -> None:
        self._graph = graph
        self.heard: list[DiagnosticArray] = []
        graph.peer.create_subscription(DiagnosticArray, "/diagnostics", self.heard.append, 10)

    def next(self) -> dict[str, DiagnosticStatus]:
        """Return the entries of a report that is yet to come, by name."""
        already = len(self.heard)
        self._graph.until(lambda: len(self.heard) > already, "diagnostics")
        return {status.name: status for status in self.heard[-1].status}

    def until(self, entry: str, level: bytes, words: str) -> DiagnosticStatus:
        """Return an entry once it is so."""
        found: list[DiagnosticStatus] = []

        def so() -> bool:
            found.append(self.next()[f"delassus_node: {entry}"])
            return found[-1].level == level and words in found[-1].message

        self._graph.until(so, f"{words!r} in the entry {entry!r}")
        return found[-1]


@pytest.fixture(name="reports")
def make_reports(graph) -> Reports:
    return Reports(graph)


def value_of(status: DiagnosticStatus, key: str) -> str:
    return next(pair.value for pair in status.values if pair.key == key)


def test_an_inactive_node_is_visible(graph, start, reports) -> None:
    node = start(diagnostics_period=0.05)
    node.trigger_deactivate()
    status = reports.until("matrix", GOOD, "the node is not active")
    assert status.hardware_id == "delassus_quadruped"
    assert reports.next()["delassus_node: algorithm"].message == "pv_osimr"
    node.trigger_cleanup()
    assert not [p for p in node.publishers if p.topic_name == "/diagnostics"]


def test_nodes_of_one_name_in_two_namespaces_are_told_apart(graph, start, reports) -> None:
    for namespace in ("", "left", "right/far"):
        start(namespace, diagnostics_period=0.05)
    prefixes = {"delassus_node", "left/delassus_node", "right/far/delassus_node"}

    def heard() -> set[str]:
        return {status.name for message in reports.heard for status in message.status}

    graph.until(lambda: {f"{prefix}: matrix" for prefix in prefixes} <= heard(), "three nodes")
    assert {name.partition(": ")[0] for name in heard()} == prefixes


def test_a_node_that_works(graph, start, reports, robot, q) -> None:
    start(diagnostics_period=0.05)
    reports.until("joint states", STALE, "nothing has come on /joint_states")
    graph.touch(FEET)

    def moving() -> bool:
        graph.ask(robot.joint_names, q)
        return reports.next()["delassus_node: timing"].level == GOOD

    graph.until(moving, "good timing")
    graph.ask(robot.joint_names, q)
    entries = reports.next()
    assert {name.partition(": ")[2] for name in entries} == {
        "joint states", "active contacts", "matrix", "timing", "algorithm", "robot", "output"
    }  # fmt: skip
    assert {entry.level for entry in entries.values()} == {GOOD}
    joints, matrix = entries["delassus_node: joint states"], entries["delassus_node: matrix"]
    assert (value_of(joints, "topic"), value_of(joints, "publishers")) == ("/joint_states", "1")
    assert 0.0 <= float(value_of(joints, "age [s]")) < 30.0
    assert value_of(matrix, "validity") == "OK"
    assert value_of(matrix, "rank") == "12 of at most 12"
    assert float(value_of(matrix, "condition")) > 1.0
    assert int(value_of(entries["delassus_node: timing"], "ticks")) > 0


def test_a_matrix_that_is_refused_is_an_error_with_its_words(
    graph, start, reports, robot, q
) -> None:
    start(diagnostics_period=0.05, rows="all", input_timeout=0.0)
    graph.ask(robot.joint_names[1:], q[1:])
    reports.until("matrix", ERROR, "the joint state lacks joint 'LF_HAA'")
    reports.until("joint states", WARN, "the joint state lacks joint 'LF_HAA'")
    graph.ask(robot.joint_names, q)
    # Contacts are unknown, which the other entry says.
    reports.until("joint states", GOOD, "in time")


def test_what_is_refused_all_the_time_is_named_and_then_its_silence(
    graph, start, reports, robot, q
) -> None:
    start(diagnostics_period=0.05, input_timeout=0.3, contacts_timeout=0.3)
    graph.ask_touching(FEET, robot.joint_names, q)

    def named() -> bool:
        graph.move(robot.joint_names, [math.nan, *q[1:]])
        graph.touch(["LF", "LF"])
        entries = reports.next()
        joints = entries["delassus_node: joint states"]
        contacts = entries["delassus_node: active contacts"]
        return (
            joints.message == "the position of joint 'LF_HAA' is nan; expected finite numbers"
            and contacts.message.startswith("contact 'LF' is listed more than once")
            and {joints.level, contacts.level} == {WARN}
        )

    graph.until(named, "names of what is wrong")
    reports.until("joint states", STALE, "s ago (publishers: 1)")
    status = reports.until("active contacts", STALE, "s ago (publishers: 1): contact 'LF' is")
    assert float(value_of(status, "silence [s]")) > 0.3


def test_an_incompatible_qos_is_said_while_its_publisher_is_there(
    graph, start, reports, robot, q
) -> None:
    start(
        diagnostics_period=0.05,
        input_timeout=0.3,
        rows="all",
        **{"qos_overrides__/joint_states__subscription__reliability": "reliable"},
    )

    def moving(level: bytes, words: str) -> bool:
        graph.move(robot.joint_names, q)
        joints = reports.next()["delassus_node: joint states"]
        return joints.level == level and words in joints.message

    graph.until(lambda: moving(GOOD, "in time"), "joint states")
    best_effort = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    other = graph.peer.create_publisher(JointState, "joint_states", best_effort)
    graph.until(lambda: moving(WARN, "incompatible QoS (RELIABILITY)"), "warning")
    # What the good one says has stopped: that matters more.
    status = reports.until("joint states", STALE, "s ago (publishers: 2): a publisher of")
    assert "incompatible QoS (RELIABILITY)" in status.message
    graph.peer.destroy_publisher(other)
    graph.until(lambda: moving(GOOD, "in time"), "joint states alone")
    reports.until("joint states", STALE, "s ago (publishers: 1)")


@pytest.mark.parametrize(
    ("kind", "topic", "qos", "policy"),
    [
        (ActiveContacts, "active_contacts", QoSProfile(depth=1), "DURABILITY"),
        (
            ActiveContacts,
            "active_contacts",
            QoSProfile(
                depth=1,
                reliability=ReliabilityPolicy.BEST_EFFORT,
                durability=DurabilityPolicy.TRANSIENT_LOCAL,
            ),
            "RELIABILITY",
        ),
    ],
)
def test_an_input_with_incompatible_qos_is_named(
    graph, start, reports, kind, topic, qos, policy
) -> None:
    node = start(diagnostics_period=0.05)
    graph.peer.create_publisher(kind, topic, qos)
    status = reports.until("active contacts", ERROR, f"incompatible QoS ({policy})")
    parameter = f"qos_overrides./{topic}.subscription.{policy.lower()}"
    assert node.has_parameter(parameter)
    assert status.message.endswith(f", or by {parameter}")
    assert f"a publisher of /{topic} (node '/peer') offers" in status.message
    graph.wait_for_log(f"no messages on /{topic} with node '/peer': a publisher of it offers")


def test_a_publisher_below_an_overridden_reliability_is_named(graph, start, reports) -> None:
    start(
        diagnostics_period=0.05,
        **{"qos_overrides__/joint_states__subscription__reliability": "reliable"},
    )
    best_effort = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
    graph.peer.create_publisher(JointState, "joint_states", best_effort)
    reports.until("joint states", ERROR, "incompatible QoS (RELIABILITY)")


def test_a_subscriber_with_incompatible_qos_is_named(graph, start, reports) -> None:
    node = start(diagnostics_period=0.05)
    for policy in OVERRIDABLE["publisher"]:
        output = "qos_overrides./delassus_node/delassus.publisher"
        assert node.has_parameter(f"{output}.{policy.lower()}")
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    subscription = graph.peer.create_subscription(
        DelassusMatrix, "delassus_node/delassus", lambda _: None, latched
    )
    status = reports.until("output", WARN, "requests an incompatible QoS (DURABILITY)")
    assert status.message.endswith("change it there")
    assert "a subscriber of /delassus_node/delassus (node '/peer') requests" in status.message
    graph.wait_for_log("with node '/peer': a subscriber of it requests an incompatible QoS")
    graph.peer.destroy_subscription(subscription)
    reports.until("output", GOOD, "offered")


def test_a_build_and_its_failure_are_said(graph, start, reports, monkeypatch, tmp_path) -> None:
    from delassus.algorithms import registry
    from delassus.algorithms.dense import Dense

    stranger = Dense()
    stranger.name = "stranger"
    monkeypatch.setitem(registry._registry, "stranger", stranger)
    node = start(diagnostics_period=0.05)
    change = node._configuration.change
    with monkeypatch.context() as patch:
        # Not to fail before it is said.
        patch.setattr(change._handover, "poll", lambda: None)
        set_parameters(node, algorithm="stranger")
        reports.until("algorithm", GOOD, "pv_osimr; stranger is being built")
    graph.until(lambda: change._handover.poll() or not change.building, "end of the change")
    reports.until("algorithm", WARN, "pv_osimr goes on: cannot change to 'stranger'")
    # A change that succeeds ends it.
    set_parameters(node, algorithm="pv_osimr")
    reports.until("algorithm", GOOD, "pv_osimr")


def test_an_algorithm_that_is_set_while_inactive_comes_with_activation(
    graph, start, reports
) -> None:
    node = start(diagnostics_period=0.05)
    node.trigger_deactivate()
    set_parameters(node, algorithm="dense")
    reports.until("algorithm", GOOD, "pv_osimr; dense comes with activation")
    node.trigger_activate()
    graph.until(
        lambda: reports.next()["delassus_node: algorithm"].message == "dense", "other algorithm"
    )


def test_an_algorithm_that_comes_with_another_robot_is_said(
    graph, start, reports, urdf, monkeypatch, tmp_path
) -> None:
    tmp_path.chmod(0o700)
    node = start(diagnostics_period=0.05)
    # Nothing is in this cache, so that it takes a while.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    other = urdf.replace('name="delassus_quadruped"', 'name="other"', 1)
    set_parameters(node, robot_description=other, algorithm="efpa")
    reports.until("algorithm", GOOD, "pv_osimr; efpa comes with the robot that is being built")
    graph.until(
        lambda: reports.next()["delassus_node: algorithm"].message == "efpa", "other algorithm"
    )


def test_only_what_stands_in_is_said_to(graph, start, reports, monkeypatch, robot, q) -> None:
    node = start(diagnostics_period=0.05, fallback="dense", rows="all")
    make_fail(monkeypatch, node._configuration.computation.tick._solver, Status.FAILED)
    graph.ask_until(lambda m: m.algorithm == "dense", robot.joint_names, q)
    reports.until("algorithm", WARN, "dense stands in for pv_osimr")
    node.trigger_deactivate()
    set_parameters(node, algorithm="efpa")
    reports.until("algorithm", WARN, "dense stands in for pv_osimr; efpa comes with activation")


def test_refused_real_time_use_reported_once_and_node_works(ready, graph, reports) -> None:
    ready(diagnostics_period=0.05, realtime__cpus=[100_000])
    reports.until("timing", WARN, "there is no processor 100000")
    graph.wait_for_log("not kept to processors 100000: there is no processor 100000")
    assert sum("processors 100000" in line for line in graph.log) == 1


def test_what_cannot_be_undone_of_real_time_use_is_said(graph, start, monkeypatch) -> None:
    node = start()
    leave = RealtimeMode.leave
    refused = Outcome(False, "memory not unlocked: no")
    monkeypatch.setattr(RealtimeMode, "leave", lambda mode: [*leave(mode), refused])
    node.trigger_deactivate()
    graph.wait_for_log("memory not unlocked: no")


def test_a_reference_blas_is_no_reason_to_warn(graph, start, reports, monkeypatch) -> None:
    monkeypatch.setattr(realtime, "threadpool_info", lambda: [])
    start(diagnostics_period=0.05)
    status = reports.until("timing", GOOD, "in time")
    assert "no library known to have threads is loaded" in value_of(status, "real-time")


def test_another_publisher_of_matrices_is_named(graph, start, reports) -> None:
    start(diagnostics_period=0.05)
    reports.until("output", GOOD, "offered")
    other = graph.peer.create_publisher(DelassusMatrix, "delassus_node/delassus", 10)
    reports.until("output", ERROR, "node '/peer' publishes on /delassus_node/delassus, too")
    graph.peer.destroy_publisher(other)
    reports.until("output", GOOD, "offered")


def test_joint_states_that_make_no_matrix_are_an_error(graph, start, robot, q, reports) -> None:
    """Whoever sends what: that all of it came in time is not what counts."""
    start(diagnostics_period=0.05, input_timeout=0.0)
    graph.touch(FEET)
    names = list(robot.joint_names)

    def both() -> bool:
        for part in (slice(6), slice(6, None)):
            graph.move(names[part], q[part])
        return any(m.validity == OK for m in graph.matrices)

    graph.until(both, "matrix from two parts")
    words = "joint states come, but no matrix follows from them"

    def one() -> bool:
        graph.move(names[:6], q[:6])
        entry = reports.next()["delassus_node: matrix"]
        return entry.level == ERROR and words in entry.message

    graph.until(one, "error about the part that does not come")
    graph.wait_for_log(f"{words}: joints 'LH_HAA'")
    # One of the two that come is no sign of health.
    graph.move(names[:6], q[:6])
    assert reports.until("joint states", WARN, words)
