"""delassus_node in a process of its own: starting, stopping, and the files in config/."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import robots

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("delassus_msgs", reason="the message package delassus_msgs is not installed")

from delassus_msgs.msg import DelassusMatrix  # noqa: E402
from ros_support import Child, Graph, new_domain  # noqa: E402

from delassus_ros import Robot  # noqa: E402

CONFIG = Path(__file__).resolve().parents[1] / "config"
FEET = ["LF", "RF", "LH", "RH"]
SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(scope="module", autouse=True)
def own_surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep to this machine, and share one fresh cache of kernels."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(name="graph")
def make_graph(capfd: pytest.CaptureFixture[str]) -> Iterator[Graph]:
    with Graph(capfd) as graph:
        yield graph


@pytest.mark.parametrize("number", SIGNALS)
def test_signals_end_a_waiting_node_cleanly(number) -> None:
    with Child(["--params-file", str(CONFIG / "quadruped.yaml")], new_domain()) as node:
        node.wait_for("waiting for the robot description")
        assert node.stop(number) == 0, node.output
        assert "Traceback" not in node.output


@pytest.mark.parametrize("number", SIGNALS)
def test_signals_end_a_busy_node_cleanly(graph, number) -> None:
    robot = Robot.from_urdf(robots.quadruped())
    q = robot.neutral().tolist()
    arguments = ["--params-file", str(CONFIG / "quadruped.yaml")]
    with Child(arguments, graph.domain) as node:
        graph.describe(robots.quadruped().read_text(encoding="utf-8"))
        graph.touch(FEET)
        answer = graph.ask_until(
            lambda m: m.validity == DelassusMatrix.VALIDITY_OK, robot.joint_names, q
        )
        assert list(answer.contacts) == FEET
        # Joint states go on coming while the signal arrives.
        stop = threading.Event()

        def chatter() -> None:
            while not stop.wait(0.0005):
                graph.move(robot.joint_names, q)

        thread = threading.Thread(target=chatter)
        thread.start()
        try:
            status = node.stop(number)
        finally:
            stop.set()
            thread.join()
        assert status == 0, node.output
        assert "Traceback" not in node.output


def test_a_signal_ends_a_build_as_well(graph) -> None:
    """The process that compiles must not stay behind."""
    from rclpy.parameter import Parameter
    from rclpy.parameter_client import AsyncParameterClient

    arguments = ["--params-file", str(CONFIG / "quadruped.yaml")]
    with Child(arguments, graph.domain, {"XDG_CACHE_HOME": "/nonexistent"}) as node:
        graph.describe(robots.quadruped().read_text(encoding="utf-8"))
        node.wait_for("active: from ")
        client = AsyncParameterClient(graph.peer, "delassus_node")
        graph.until(client.services_are_ready, "parameter services")
        future = client.set_parameters([Parameter("algorithm", value="dense")])
        graph.until(future.done, "answer of the service")
        assert future.result().results[0].successful
        builds = children_of(node.process.pid)
        assert len(builds) == 1
        assert node.stop(signal.SIGTERM) == 0, node.output
        assert not [pid for pid in builds if Path(f"/proc/{pid}").exists()]


def children_of(pid: int) -> list[int]:
    return [
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    ]


def test_a_parameter_of_the_wrong_type_ends_the_node_with_its_name() -> None:
    with Child(["-p", "contacts.names:=3"], new_domain()) as node:
        assert node.wait() == 1
        assert "delassus_node: " in node.output
        assert "contacts.names" in node.output
        assert "STRING_ARRAY" in node.output
        assert "Traceback" not in node.output


def test_a_cache_that_cannot_be_written_is_announced(graph) -> None:
    arguments = ["--params-file", str(CONFIG / "quadruped.yaml")]
    with Child(arguments, graph.domain, {"XDG_CACHE_HOME": "/proc/nothing"}) as node:
        graph.describe(robots.quadruped().read_text(encoding="utf-8"))
        node.wait_for("active: from ")
        assert "cache" in node.output
        assert node.stop() == 0, node.output
