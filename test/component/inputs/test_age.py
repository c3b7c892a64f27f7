"""What is old stays old: whoever subscribes, stops, is stopped or sets a clock.

The publishers here hang: they are alive, and what they sent last is kept for whoever subscribes.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
import robots
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from node_support import (
    FEET,
    INVALID,
    OK,
    set_parameters,
)
from processes import node_program
from rclpy.time import Time
from ros_support import stamp_of

CONFIG = Path(__file__).resolve().parents[3] / "config"
TIMEOUT = 0.5
STALE = DelassusMatrix.REASON_CONTACTS_STALE
STAMPS = {"stamped": True, "without a stamp": False}


def touch(graph, stamped: bool) -> int:
    """Send a set of contacts; return when that was at the latest, by the system's clock [ns]."""
    if stamped:
        return graph.touch(FEET)
    message = ActiveContacts(names=list(FEET), status=[ActiveContacts.ACTIVE] * len(FEET))
    graph.contacts.publish(message)
    return time.time_ns()


def valid(graph, robot, q, stamped: bool) -> int:
    """Have valid matrices, and the publisher of contacts hang; return when it began to [ns]."""
    sent = 0

    def is_valid(answer: DelassusMatrix) -> bool:
        nonlocal sent
        sent = touch(graph, stamped)
        return answer.validity == OK

    graph.ask_until(is_valid, robot.joint_names, q)
    return sent


def assert_stale(graph, robot, q, sent: int) -> None:
    """Send joint states; none is valid when the contacts are older than they may be."""

    def late() -> list[DelassusMatrix]:
        # A message that was computed in time may be looked at later.
        return [m for m in graph.matrices if stamp_of(m) > sent + 1e9 * (TIMEOUT + 0.05)]

    already = len(late())
    graph.until(
        lambda: graph.move(robot.joint_names, q) and len(late()) >= already + 10, "late answers"
    )
    assert {m.validity for m in late()} == {INVALID}
    assert any(m.reasons & STALE for m in late())


@pytest.mark.parametrize("stamped", STAMPS.values(), ids=STAMPS)
def test_deactivating_and_activating(graph, start, robot, q, stamped) -> None:
    node = start(contacts_timeout=TIMEOUT)
    sent = valid(graph, robot, q, stamped)
    assert_stale(graph, robot, q, sent)
    for _ in range(2):
        node.trigger_deactivate()
        node.trigger_activate()
        assert_stale(graph, robot, q, sent)
    # A set that is sent anew counts.
    valid(graph, robot, q, stamped)


@pytest.mark.parametrize("stamped", STAMPS.values(), ids=STAMPS)
def test_another_robot(graph, start, urdf, robot, q, stamped) -> None:
    node = start(contacts_timeout=TIMEOUT)
    sent = valid(graph, robot, q, stamped)
    first = graph.matrices[-1].layout_id
    assert_stale(graph, robot, q, sent)
    another = urdf.replace('mass value="', 'mass value="1', 1)
    set_parameters(node, robot_description=another)
    graph.ask_until(lambda m: m.layout_id != first, robot.joint_names, q)
    assert_stale(graph, robot, q, sent)
    assert graph.matrices[-1].layout_id != first


@pytest.mark.parametrize("stamped", STAMPS.values(), ids=STAMPS)
def test_a_node_that_was_stopped_for_a_while(graph, robot, q, stamped) -> None:
    """What has waited in the middleware meanwhile is not of the present."""
    arguments = ["--params-file", str(CONFIG / "quadruped.yaml")]
    with node_program(*arguments, domain=graph.domain) as node:
        graph.describe(robots.unlimited())
        valid(graph, robot, q, stamped)
        os.kill(node.process.pid, signal.SIGSTOP)
        try:
            # The last word of the publisher of contacts; joint states go on.
            sent = touch(graph, stamped)
            old = sent + 2e9 * TIMEOUT
            graph.until(lambda: graph.move(robot.joint_names, q) > old, "contacts that are old")
        finally:
            os.kill(node.process.pid, signal.SIGCONT)
        assert_stale(graph, robot, q, sent)
        valid(graph, robot, q, stamped)
        assert node.stop() == 0


def test_a_system_clock_that_is_set_back(graph, start, robot, q, monkeypatch) -> None:
    """Contacts of another time are not used, whatever their stamps look like now."""
    node = start(contacts_timeout=TIMEOUT)
    sent = Time(nanoseconds=valid(graph, robot, q, stamped=True)).to_msg()
    # The last one that is on its way.
    graph.ask_until(lambda m: m.contacts_stamp == sent, robot.joint_names, q)
    steps = iter([3_000_000_000])
    monkeypatch.setattr(
        node._configuration.stream._reception._system_clock, "set_back", lambda: next(steps, 0)
    )
    answer = graph.ask_until(lambda m: m.validity == INVALID, robot.joint_names, q)
    assert answer.reasons == DelassusMatrix.REASON_NO_CONTACTS_RECEIVED
    graph.wait_for_log("the clock jumped by -3 s")
    valid(graph, robot, q, stamped=True)


def test_whole_joint_states_that_are_replaced_by_parts(graph, ready, robot, q) -> None:
    """Also where positions never grow old: silence is never healthy."""
    ready(input_timeout=0.0)
    names = list(robot.joint_names)
    already = len(graph.matrices)

    def answered() -> bool:
        for part in (slice(6), slice(6, None)):
            graph.move(names[part], q[part])
        return any(m.validity == OK for m in graph.matrices[already:])

    graph.until(answered, "matrix from two parts")
