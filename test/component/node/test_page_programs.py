"""Programs of the pages, as copied to a file: they run beside a node, and end on Ctrl-C."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
from delassus_msgs.msg import ContactDynamics
from delassus_msgs_py import dynamics_to_numpy, matrix_to_numpy
from node_support import start_node
from processes import Program, python
from ros_support import Graph, graph_of_programs
from std_msgs.msg import Float64MultiArray

from delassus import Robot

DOCS = Path(__file__).resolve().parents[3] / "docs"
make_graph = pytest.fixture(name="graph")(graph_of_programs)


def program(page: str) -> str:
    """Return the one block of a page that is a program."""
    text = (DOCS / page).read_text(encoding="utf-8")
    (found,) = [b for b in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "spin(" in b]
    return found


def running(text: str, folder: Path) -> Program:
    """Run a program from a file."""
    file = folder / "program.py"
    file.write_text(text, encoding="utf-8")
    return python(file, apart=True)


def silence(messages: list[Any]) -> Callable[[], bool]:
    """Return a condition that holds once no message has come for longer than machines pause."""
    seen = [-1, 0.0]

    def holds() -> bool:
        if len(messages) != seen[0]:
            seen[:] = len(messages), time.monotonic()
        return time.monotonic() - seen[1] > 4.0

    return holds


def test_the_controller_publishes_the_forces_of_contacts_that_hold(graph: Graph, tmp_path) -> None:
    robot = Robot.from_urdf(robots.unlimited(), base="fixed")
    forces: list[Float64MultiArray] = []
    dynamics: list[ContactDynamics] = []
    peer = graph.peer
    peer.create_subscription(Float64MultiArray, "contact_forces", forces.append, 10)
    peer.create_subscription(ContactDynamics, "delassus_node/dynamics", dynamics.append, 100)
    node = start_node(
        graph, robots.unlimited(), feet=("LF", "RH"), base="fixed", outputs=["G", "a0"]
    )
    graph.touch(["LF", "RH"])
    q = np.tile([0.1, 0.7, -1.4], 4).tolist()
    rest = [0.0] * robot.nq
    with running(program("controllers.md"), tmp_path) as controller:

        def came() -> Any:
            assert controller.fault() is None, controller.report()
            graph.move(robot.joint_names, q, velocity=rest, effort=rest)
            return forces

        f = np.array(graph.until(came, "forces")[-1].data)
        # A message that is being published while Ctrl-C ends rclpy is an error of rclpy's.
        node.trigger_deactivate()
        graph.until(silence(forces), "silence")
        assert (controller.stop(), controller.errors) == (0, "")
    # Every state is the same, at rest, so the latest matrix is that of any force.
    G, a0 = matrix_to_numpy(graph.matrices[-1]), dynamics_to_numpy(dynamics[-1]).a0
    assert f.shape == (6,) and np.linalg.norm(a0) > 1.0
    np.testing.assert_allclose(G @ f, -a0, rtol=1e-8, atol=1e-9)


def test_two_nodes_run_in_one_process(graph: Graph, tmp_path) -> None:
    def names() -> set[str]:
        found = graph.peer.get_node_names_and_namespaces()
        return {space for name, space in found if name == "delassus_node"}

    with running(program("howto/real_time.md"), tmp_path) as both:
        graph.until(lambda: {"/left", "/right"} <= names(), "two nodes")
        assert both.stop() == 0 and "Traceback" not in both.errors, both.errors
