"""Several nodes in one loop, which neither life cycles under load nor faults end."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import pytest
import rclpy
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs_py import matrix_to_numpy
from hanging import HANG_S
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from node_support import (
    OK,
    relative_error,
    solve,
)
from ros_support import LATCHED, Graph, overrides
from sensor_msgs.msg import JointState

from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.ros.executor import executing, spin

CYCLE = ("deactivate", "cleanup", "configure", "activate")
CYCLES = 5


class Driver:
    """Sends joint states to two nodes, and leads them through life cycles, one after the other.

    It is asked in the loop whether to stop, and so works there.
    """

    def __init__(self, peer: Any, joints: list[str], q: list[float]) -> None:
        self._peer = peer
        self._limit = peer.get_clock().now().nanoseconds + int(4e9 * HANG_S)
        self._states = JointState(name=joints, position=q)
        self._joints = {}
        self._clients = {}
        self.answers: Counter[str] = Counter()
        self.matrices: dict[str, DelassusMatrix] = {}
        self.done = {"one": 0, "two": 0}
        self.failed: list[str] = []
        self._pending: dict[str, Any] = {}
        self._contacts = {}
        for space in self.done:
            self._joints[space] = peer.create_publisher(JointState, f"/{space}/joint_states", 10)
            publisher = peer.create_publisher(ActiveContacts, f"/{space}/active_contacts", LATCHED)
            publisher.publish(ActiveContacts(names=["LF"], status=[ActiveContacts.ACTIVE]))
            self._contacts[space] = publisher
            self._clients[space] = peer.create_client(
                ChangeState, f"/{space}/delassus_node/change_state"
            )
            peer.create_subscription(
                DelassusMatrix,
                f"/{space}/delassus_node/delassus",
                lambda message, space=space: self._on_matrix(space, message),
                100,
            )
        # Wakes the loop a thousand times per second.
        peer.create_timer(0.001, self._send)

    def stop(self) -> bool:
        """Go on, and return whether all is done."""
        for space, done in self.done.items():
            # Each change comes while joint states come and matrices go.
            if space not in self._pending and done < len(CYCLE) * CYCLES and self._is_at(space):
                label = CYCLE[done % len(CYCLE)]
                request = ChangeState.Request(transition=Transition(label=label))
                self._pending[space] = self._clients[space].call_async(request)
            elif space in self._pending and self._pending[space].done():
                if not self._pending.pop(space).result().success:
                    self.failed.append(f"{space}: {CYCLE[done % len(CYCLE)]}")
                self.done[space] += 1
                self.answers[space] = 0
        return self._is_over() or self._peer.get_clock().now().nanoseconds > self._limit

    def _is_at(self, space: str) -> bool:
        active = self.done[space] % len(CYCLE) == 0
        return self._clients[space].service_is_ready() and (not active or self.answers[space] > 0)

    def _is_over(self) -> bool:
        enough = len(CYCLE) * CYCLES
        return all(n == enough and self.answers[space] for space, n in self.done.items())

    def _send(self) -> None:
        self._states.header.stamp = self._peer.get_clock().now().to_msg()
        for publisher in self._joints.values():
            publisher.publish(self._states)

    def _on_matrix(self, space: str, message: DelassusMatrix) -> None:
        if message.validity == OK:
            self.answers[space] += 1
            self.matrices[space] = message


@pytest.fixture(name="graph")
def make_graph(capfd) -> Any:
    with Graph(capfd) as graph:
        yield graph


@pytest.mark.parametrize("events", [True, False])
def test_life_cycles_under_load_of_two_nodes_in_one_loop(
    graph, urdf, robot, q, events, monkeypatch
) -> None:
    """With each of the executors that the loop may have."""
    if not events:
        monkeypatch.setitem(sys.modules, "rclpy.experimental.events_executor", None)
    parameters = {
        "autostart": True, "robot_description": urdf, "contacts_timeout": 0.0,
        "contacts.names": ["LF"], "contacts.LF.frame": "LF_FOOT",
    }  # fmt: skip
    nodes = [
        DelassusNode(
            context=graph.context, namespace=space, parameter_overrides=overrides(parameters)
        )
        for space in ("one", "two")
    ]
    peer = rclpy.create_node("driver", context=graph.context)
    driver = Driver(peer, list(robot.joint_names), list(q))
    spin([*nodes, peer], driver.stop)
    assert driver.failed == []
    assert driver.done == {"one": len(CYCLE) * CYCLES, "two": len(CYCLE) * CYCLES}
    expected = solve(urdf, q, ("LF",))
    for message in driver.matrices.values():
        assert relative_error(matrix_to_numpy(message), expected) < 1e-10
    assert not [line for line in graph.log if "a fault of this program" in line]


def test_nodes_are_destroyed_and_the_executor_ended_whatever_happens(graph) -> None:
    nodes = [rclpy.create_node(name, context=graph.context) for name in ("one", "two")]
    with pytest.raises(ZeroDivisionError), executing(nodes) as executor:
        assert set(executor.get_nodes()) == set(nodes)
        raise ZeroDivisionError
    for node in nodes:
        with pytest.raises(RuntimeError):
            node.create_publisher(JointState, "anything", 1)


def test_the_loop_ends_with_the_context(graph) -> None:
    asked = []

    def stopping() -> bool:
        asked.append(None)
        rclpy.shutdown(context=graph.context)
        return False

    spin([rclpy.create_node("one", context=graph.context)], stopping)
    assert len(asked) == 1
