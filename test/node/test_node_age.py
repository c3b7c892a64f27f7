"""What is old stays old: whoever subscribes, stops, is stopped or sets a clock.

The publishers here hang: they are alive, and what they sent last is kept for whoever subscribes.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import robots
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from node_support import (
    FEET,
    INVALID,
    OK,
)
from rclpy.parameter import Parameter
from rclpy.time import Time
from ros_support import NodeProcess, stamp_of

from delassus_ros.node.inputs.arrival import SystemClock, delay_since
from delassus_ros.node.system.queue import sent_at

CONFIG = Path(__file__).resolve().parents[2] / "config"
TIMEOUT = 0.5
STALE = DelassusMatrix.REASON_CONTACTS_STALE
STAMPS = {"stamped": True, "without a stamp": False}


def touch(graph, stamped: bool) -> int:
    """Send a set of contacts; return when that was at the latest, by the system's clock [ns]."""
    if stamped:
        return graph.touch(FEET)
    message = ActiveContacts(names=list(FEET), status=[ActiveContacts.ACTIVE] * len(FEET))
    graph._contacts.publish(message)
    return time.time_ns()


def until(graph, seconds: float, action: Callable[[], object]) -> None:
    """Do something every few milliseconds for so long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        action()
        graph.executor.spin_once(timeout_sec=0.005)


def valid(graph, robot, q, stamped: bool) -> int:
    """Have valid matrices, and the publisher of contacts hang; return when it began to [ns]."""
    sent = 0

    def is_valid(answer: DelassusMatrix) -> bool:
        nonlocal sent
        sent = touch(graph, stamped)
        return answer.validity == OK

    graph.ask_until(is_valid, robot.joint_names, q)
    return sent


def check(graph, sent: int) -> None:
    """Nothing was valid when the contacts were older than they may be."""
    # A message that was computed in time may be looked at later.
    late = [m for m in graph.matrices if stamp_of(m) > sent + 1e9 * (TIMEOUT + 0.05)]
    assert late and {m.validity for m in late} == {INVALID}
    assert any(m.reasons & STALE for m in late)


@pytest.mark.parametrize("stamped", STAMPS.values(), ids=STAMPS)
def test_deactivating_and_activating(graph, start, robot, q, stamped) -> None:
    node = start(contacts_timeout=TIMEOUT)
    sent = valid(graph, robot, q, stamped)
    until(graph, TIMEOUT + 0.1, lambda: graph.move(robot.joint_names, q))
    for _ in range(2):
        node.trigger_deactivate()
        node.trigger_activate()
        graph.ask_until(lambda m: m.reasons & STALE, robot.joint_names, q)
        until(graph, 0.2, lambda: graph.move(robot.joint_names, q))
    check(graph, sent)
    # A set that is sent anew counts.
    valid(graph, robot, q, stamped)


@pytest.mark.parametrize("stamped", STAMPS.values(), ids=STAMPS)
def test_another_robot(graph, start, urdf, robot, q, stamped) -> None:
    node = start(contacts_timeout=TIMEOUT)
    sent = valid(graph, robot, q, stamped)
    first = graph.matrices[-1].layout_id
    until(graph, TIMEOUT + 0.1, lambda: graph.move(robot.joint_names, q))
    another = urdf.replace('mass value="', 'mass value="1', 1)
    assert node.set_parameters([Parameter("robot_description", value=another)])[0].successful
    graph.ask_until(lambda m: m.layout_id != first, robot.joint_names, q)
    until(graph, 0.3, lambda: graph.move(robot.joint_names, q))
    check(graph, sent)
    assert graph.matrices[-1].layout_id != first


@pytest.mark.parametrize("stamped", STAMPS.values(), ids=STAMPS)
def test_a_node_that_was_stopped_for_a_while(graph, robot, q, stamped) -> None:
    """What has waited in the middleware meanwhile is not of the present."""
    arguments = ["--params-file", str(CONFIG / "quadruped.yaml")]
    with NodeProcess(arguments, graph.domain) as node:
        graph.describe(robots.unlimited())
        valid(graph, robot, q, stamped)
        os.kill(node.process.pid, signal.SIGSTOP)
        try:
            # The last word of the publisher of contacts; joint states go on.
            sent = touch(graph, stamped)
            until(graph, 1.5, lambda: graph.move(robot.joint_names, q))
        finally:
            os.kill(node.process.pid, signal.SIGCONT)
        graph.ask_until(lambda m: m.reasons & STALE, robot.joint_names, q)
        until(graph, 0.7, lambda: graph.move(robot.joint_names, q))
        check(graph, sent)
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


def test_only_steps_back_of_the_system_clock_count(monkeypatch) -> None:
    clock = {"time_ns": 10**18, "monotonic_ns": 10**15}
    for name in clock:
        monkeypatch.setattr(time, name, lambda name=name: clock[name])
    system = SystemClock()
    for system_step, steady_step, expected in (
        (10**9, 10**9, 0),
        (-2 * 10**9, 10**6, 2 * 10**9 + 10**6),
        (10**9, 10**9, 0),
        (3600 * 10**9, 10**6, 0),
        (10**9 - 5_000_000, 10**9, 0),
    ):
        clock["time_ns"] += system_step
        clock["monotonic_ns"] += steady_step
        assert system.set_back() == expected


def test_a_pause_between_two_clocks_is_no_step(monkeypatch) -> None:
    """Whichever of the looks at the clock it falls into."""
    reads = itertools.count()
    paused_at = set(range(2, 60, 7))
    clock = {"time_ns": 10**18, "monotonic_ns": 10**15}

    def read(name: str) -> int:
        if next(reads) in paused_at:
            clock["time_ns"] += 10**9
            clock["monotonic_ns"] += 10**9
        return clock[name]

    for name in clock:
        monkeypatch.setattr(time, name, lambda name=name: read(name))
    system = SystemClock()
    assert [system.set_back() for _ in range(12)] == [0] * 12
    assert next(reads) > 50
    clock["time_ns"] -= 2 * 10**9
    assert system.set_back() >= 2 * 10**9


@pytest.mark.parametrize(
    ("info", "delay"),
    [
        ({"source_timestamp": 10**18 - 7}, 7),
        ({"source_timestamp": 10**18 + 7}, 0),
        ({"source_timestamp": 0}, 0),
        ({"source_timestamp": None}, 0),
        ({}, 0),
    ],
)
def test_delay_of_a_message(info, delay) -> None:
    assert delay_since(sent_at(info), 10**18) == delay


def test_whole_joint_states_that_are_replaced_by_parts(graph, start, robot, q) -> None:
    """Also where positions never grow old: silence is never healthy."""
    start(input_timeout=0.0)
    graph.touch(FEET)
    graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    names = list(robot.joint_names)
    already = len(graph.matrices)

    def answered() -> bool:
        for part in (slice(6), slice(6, None)):
            graph.move(names[part], q[part])
        return any(m.validity == OK for m in graph.matrices[already:])

    graph.until(answered, "matrix from two parts")


def test_a_part_that_never_comes_again_is_said(graph, start, robot, q) -> None:
    start(input_timeout=0.0)
    graph.touch(FEET)
    names = list(robot.joint_names)

    def both() -> bool:
        for part in (slice(6), slice(6, None)):
            graph.move(names[part], q[part])
        return any(m.validity == OK for m in graph.matrices)

    graph.until(both, "matrix from two parts")
    already = len(graph.matrices)

    def one() -> bool:
        graph.move(names[:6], q[:6])
        return any(m.reasons & DelassusMatrix.REASON_INPUT_STALE for m in graph.matrices[already:])

    graph.until(one, "word about the part that is missing")
    graph.wait_for_log("joint states come, but no matrix follows from them: joints 'LH_HAA'")


def test_descriptions_have_no_age(graph, start, urdf, robot, q) -> None:
    """A description that was published long ago is the robot's all the same."""
    graph.describe(urdf)
    until(graph, 0.7, lambda: None)
    start(robot_description="")
    graph.touch(FEET)
    assert graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
