"""Bad descriptions, algorithms and transitions come in floods, and the log stays readable."""

from __future__ import annotations

import time

import pytest
from node_support import (
    Manager,
    set_parameters,
    state_of,
)
from ros_support import Graph

TIMES = 8
pytestmark = pytest.mark.usefixtures("no_second_line")


def settle(graph: Graph) -> None:
    """Let all that was logged arrive."""
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        graph.executor.spin_once(timeout_sec=0.02)


def said(graph: Graph, words: str) -> int:
    return sum(words in line for line in graph.log)


@pytest.mark.parametrize("active", [True, False])
def test_a_flood_of_bad_descriptions(graph, start, urdf, active) -> None:
    """Also before the first good one, while the node waits for one to start with."""
    node = start(robot_description="")
    if active:
        graph.describe(urdf)
        graph.until(lambda: state_of(node) == "active", "activation")
    for number in range(TIMES):
        bad = f'<robot name="bad{number}"/>'
        graph.describe(bad)
        graph.until(lambda bad=bad: node._description.text == bad, "arrival of the description")
        if active:
            change = node._configuration.change
            graph.until(lambda c=change: not c.building and c.failures, "its refusal")
    settle(graph)
    words = "cannot change the robot description" if active else "cannot configure: "
    assert said(graph, words) == 1
    # It is not deaf.
    graph.describe(urdf + "\n")
    graph.until(lambda: state_of(node) == "active", "activation")
    assert node._configuration is not None


def test_a_flood_of_algorithms_that_cannot_be_made(graph, start, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no more of it")

    node = start(rows="all")
    monkeypatch.setattr("delassus_ros.node.configuration.make_solver", fail)
    change = node._configuration.change
    for _ in range(TIMES):
        set_parameters(node, algorithm="dense")
        graph.until(lambda: not change.building, "failure of the change")
        assert node.get_parameter("algorithm").value == "pv_osimr"
    settle(graph)
    assert said(graph, "cannot change the algorithm to 'dense'") == 1
    assert "no more of it" in change.failures["algorithm"]


def test_a_flood_of_impossible_transitions(graph, start) -> None:
    start()
    manager = Manager(graph)
    for number in range(TIMES):
        assert not manager.change(label=f"ascend{number}")
    settle(graph)
    assert said(graph, "refused the transition") == 1


def test_what_is_told_to_configure_is_answered_each_time(graph, start) -> None:
    node = start(robot_description="<robot", autostart=False)
    for _ in range(3):
        node.trigger_configure()
    settle(graph)
    assert said(graph, "cannot configure: ") == 3
