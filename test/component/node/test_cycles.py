"""Life cycles leave nothing behind, counted over many; several nodes in one process."""

from __future__ import annotations

import gc
import itertools
import logging
import statistics
import weakref
from collections import Counter
from pathlib import Path

import pytest
from allocated import allocated
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs_py import matrix_to_numpy
from node_support import (
    FEET,
    OK,
    relative_error,
    set_parameters,
    solve,
    state_of,
)
from processes import wait_until
from rclpy.clock import JumpHandle
from rclpy.exceptions import InvalidParameterTypeException
from ros_support import LATCHED, children, overrides, stamp_of
from sensor_msgs.msg import JointState

from delassus.compiler.runtime.kernel import Kernel
from delassus_ros.node.configuration import Configuration
from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.node.tick import DelassusTick
from delassus_ros.ros.logs import LogBridge

CYCLES = 10
_WATCHED = (Configuration, JumpHandle, Kernel, DelassusTick)


def census(node: DelassusNode) -> dict[str, int]:
    """Count what a life cycle could leave behind."""
    gc.collect()
    alive = Counter(type(thing).__name__ for thing in gc.get_objects() if type(thing) in _WATCHED)
    return {
        **{kind.__name__: alive[kind.__name__] for kind in _WATCHED},
        "threads": len(list(Path("/proc/self/task").iterdir())),
        "files": len(list(Path("/proc/self/fd").iterdir())),
        "children": len(children()),
        "publishers": len(list(node.publishers)),
        "subscriptions": len(list(node.subscriptions)),
        "services": len(list(node.services)),
        "timers": len(list(node.timers)),
        "waitables": len(list(node.waitables)),
    }


def test_many_life_cycles_leave_nothing_behind(graph, start, urdf, robot, q) -> None:
    """No thread, file, timer, subscription, kernel or memory."""
    node = start(autostart=False, realtime__hold_garbage=True)
    made = [kind.__name__ for kind in (Configuration, Kernel, DelassusTick)]
    # A test that failed before in this process keeps what its traceback names.
    others = census(node)

    def cycle() -> None:
        graph.touch(FEET)
        node.trigger_configure()
        node.trigger_activate()
        graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
        node.trigger_deactivate()
        node.trigger_cleanup()
        assert state_of(node) == "unconfigured"
        # What the test itself keeps is not the node's.
        del graph.matrices[:-1]

    def gone() -> bool:
        """The executor lets go of what was destroyed only when it comes by."""
        counts = census(node)
        return all(counts[name] == others[name] for name in made)

    for _ in range(5):
        cycle()
    graph.until(gone, "end of what was configured")
    before, sizes = census(node), [allocated()]
    assert before["timers"] == others["timers"] == 1
    for _ in range(CYCLES):
        cycle()
        sizes.append(allocated())
    graph.until(lambda: census(node) == before, f"return to {before}")
    # Not the sum, as one cycle or another lets something of the middleware grow for good. rclpy
    # keeps some 100 weak references of each.
    assert statistics.median(b - a for a, b in itertools.pairwise(sizes)) < 30_000
    assert relative_error(matrix_to_numpy(graph.matrices[-1]), solve(urdf, q)) < 1e-10


def test_what_waits_in_the_executor_when_all_is_destroyed_ends_nothing(
    graph, start, robot, q
) -> None:
    """Timers that were due and messages that had come, of a configuration that is gone."""
    node = start(
        diagnostics_period=0.05, rate=1000.0, input_timeout=0.004, autostart=False,
        realtime__hold_garbage=True,
    )  # fmt: skip

    def due() -> bool:
        """Whether the timers of a period of 50 ms or less are due."""
        return len([timer for timer in node.timers if timer.is_ready()]) >= 3

    for _ in range(10):
        node.trigger_configure()
        node.trigger_activate()
        configuration = node._configuration
        timers = [timer.callback for timer in node.timers]
        inputs = [s.callback for s in node.subscriptions if s.topic_name == "/joint_states"]
        assert len(timers) == 6 and len(inputs) == 1
        graph.touch(FEET)
        graph.move(robot.joint_names, q)
        wait_until(due, "three timers that are due")
        node.trigger_deactivate()
        node.trigger_cleanup()
        # What the executor would call at worst.
        for callback in timers:
            callback()
        inputs[0]((b"", {}))
        configuration.change._handover.poll()
        for _ in range(20):
            graph.executor.spin_once(timeout_sec=0.0)
    assert state_of(node) == "unconfigured"
    assert not [line for line in graph.log if "cannot change" in line or "fault of" in line]


def test_a_destroyed_node_is_gone(graph, start) -> None:
    node = start(realtime__hold_garbage=True)
    graph.executor.remove_node(node)
    graph.nodes.remove(node)
    assert state_of(node) == "active"
    gone = weakref.ref(node._configuration)
    node.destroy_node()
    gc.collect()
    assert gone() is None
    assert gc.isenabled()


@pytest.mark.parametrize("state", ["unconfigured", "active"])
def test_a_destroyed_node_is_in_no_graph(graph, start, state) -> None:
    """It leaves at once, not when garbage is collected."""

    def seen() -> bool:
        return "delassus_node" in graph.peer.get_node_names()

    gc.disable()
    try:
        node = start(autostart=state == "active")
        assert state_of(node) == state
        graph.until(seen, "node")
        graph.nodes.remove(node)
        graph.executor.remove_node(node)
        node.destroy_node()
        graph.until(lambda: not seen(), "end of the node")
    finally:
        gc.enable()


def test_a_node_that_cannot_be_made_leaves_nothing_behind(graph) -> None:
    handlers = list(logging.getLogger("delassus").handlers)
    with pytest.raises(InvalidParameterTypeException):
        DelassusNode(context=graph.context, parameter_overrides=overrides({"rate": "often"}))
    assert logging.getLogger("delassus").handlers == handlers


def test_several_nodes_in_one_process(graph, start, urdf, robot, q) -> None:
    """Two namespaces, two configurations; each is right, and survives the other's end."""
    answers: dict[str, list[DelassusMatrix]] = {"one": [], "two": []}
    joints, contacts, nodes = {}, {}, {}
    feet = {"one": ["LF", "RH"], "two": ["RF"]}
    sent: dict[str, dict[int, float]] = {"one": {}, "two": {}}
    for space, names in feet.items():
        joints[space] = graph.peer.create_publisher(JointState, f"/{space}/joint_states", 10)
        contacts[space] = graph.peer.create_publisher(
            ActiveContacts, f"/{space}/active_contacts", LATCHED
        )
        graph.peer.create_subscription(
            DelassusMatrix, f"/{space}/delassus_node/delassus", answers[space].append, 100
        )
        contacts[space].publish(
            ActiveContacts(names=names, status=[ActiveContacts.ACTIVE] * len(names))
        )
        algorithm = "pv_osimr" if space == "one" else "efpa"
        nodes[space] = start(space, names, algorithm=algorithm, realtime__hold_garbage=True)

    def ask(space: str, scale: float) -> None:
        message = JointState(name=list(robot.joint_names), position=[scale * x for x in q])
        mine = set()

        def answered() -> bool:
            message.header.stamp = graph.peer.get_clock().now().to_msg()
            mine.add(stamp_of(message))
            sent[space][stamp_of(message)] = scale
            joints[space].publish(message)
            graph.executor.spin_once(timeout_sec=0.05)
            return any(m.validity == OK and stamp_of(m) in mine for m in answers[space])

        graph.until(answered, f"matrix of {space}")

    for scale in (1.0, -0.5, 0.25):
        for space in feet:
            ask(space, scale)
    # Parameters are each node's own.
    set_parameters(nodes["one"], max_skew=0.25)
    assert nodes["two"].get_parameter("max_skew").value == 0.005
    # Automatic garbage collection comes back with the end of the last one, as the log does.
    nodes["one"].trigger_deactivate()
    nodes["one"].trigger_cleanup()
    assert not gc.isenabled()
    assert LogBridge._SOURCE.level == logging.INFO
    ask("two", 0.75)
    nodes["two"].trigger_deactivate()
    assert gc.isenabled()
    for space, messages in answers.items():
        for message in (m for m in messages if m.validity == OK):
            # What was sent to the other is not answered here.
            scale = sent[space][stamp_of(message)]
            expected = solve(urdf, [scale * x for x in q], tuple(feet[space]))
            assert list(message.contacts) == feet[space]
            assert relative_error(matrix_to_numpy(message), expected) < 1e-10


def test_log_bridges_of_several_nodes() -> None:
    source = LogBridge._SOURCE
    lines: list[tuple[str, str]] = []

    class Logger:
        def __init__(self, name: str) -> None:
            self._name = name

        def info(self, text: str) -> None:
            lines.append((self._name, text))

    before, installed = source.level, LogBridge._installed
    first, second = LogBridge(Logger("first")), LogBridge(Logger("second"))
    first.install()
    second.install()
    first.remove()
    first.remove()
    logging.getLogger("delassus.test").info("still heard")
    second.remove()
    assert lines == [("second", "still heard")]
    assert (source.level, LogBridge._installed) == (before, installed)
