"""delassus_node in a process of its own: starting, stopping, and the files in config/."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
import robots
from processes import children_of, node_program, python
from rclpy.executors import SingleThreadedExecutor
from ros_domains import new_domain

from delassus import Robot
from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.node.main import main
from delassus_ros.ros.executor import make_executor, spin

CONFIG = Path(__file__).resolve().parents[3] / "config"
FEET = ["LF", "RF", "LH", "RH"]
SIGNALS = [signal.SIGINT, signal.SIGTERM]
ARGUMENTS = ["--params-file", str(CONFIG / "quadruped.yaml")]


@pytest.mark.parametrize("number", SIGNALS)
def test_signals_end_a_waiting_node_cleanly(number) -> None:
    with node_program(*ARGUMENTS, domain=new_domain()) as node:
        node.wait_for("waiting for the robot description")
        assert node.stop(number) == 0, node.output
        assert "Traceback" not in node.output


def test_many_signals_end_a_node_as_one_does() -> None:
    """Of the terminal, and once more of `ros2 launch`, which forwards them."""
    code = "import sys\nfrom delassus_ros.commands import node\nsys.exit(node())"
    with python("-c", code, "--ros-args", *ARGUMENTS, domain=new_domain()) as node:
        node.wait_for("waiting for the robot description")
        while node.process.poll() is None:
            node.process.send_signal(signal.SIGINT)
        assert node.process.returncode == 0, node.output
        assert "Traceback" not in node.output and "KeyboardInterrupt" not in node.output


@pytest.mark.usefixtures("no_second_line")
def test_a_fault_of_the_program_in_a_callback_does_not_end_the_process(graph, monkeypatch) -> None:
    """One that none of the node's own parts takes care of."""
    stop, faults = SimpleNamespace(requested=False), []

    def fail() -> None:
        faults.append(None)
        stop.requested = len(faults) == 3
        raise ZeroDivisionError("a fault")

    node = DelassusNode(context=graph.context)
    node.create_timer(0.01, fail)
    executor = type(graph.executor)(context=graph.context)
    monkeypatch.setattr("delassus_ros.ros.executor.make_executor", lambda node: executor)
    spin([node], lambda: stop.requested)
    assert len(faults) == 3
    graph.wait_for_log("ZeroDivisionError: a fault")
    assert sum("a fault of this program, which goes on" in line for line in graph.log) == 1


@pytest.mark.parametrize("number", SIGNALS)
def test_signals_end_a_busy_node_cleanly(graph, number) -> None:
    robot = Robot.from_urdf(robots.unlimited())
    q = robot.neutral().tolist()
    with node_program(*ARGUMENTS, domain=graph.domain) as node:
        graph.describe(robots.unlimited())
        answer = graph.ask_touching(FEET, robot.joint_names, q)
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


def test_a_signal_ends_a_build_as_well(graph, tmp_path: Path) -> None:
    """The process that compiles must not stay behind."""
    from rclpy.parameter import Parameter
    from rclpy.parameter_client import AsyncParameterClient

    no_folder = tmp_path / "file"
    no_folder.write_text("nothing can be kept below it, by root neither")
    cache = {"XDG_CACHE_HOME": str(no_folder / "below")}
    # One that does not end by itself: the first, which the node waits for, it makes alone.
    code = (
        "import sys\nfrom delassus.compiler.runtime import child\n"
        "from delassus_ros.commands import node\n"
        "child.command = lambda *_: ['sleep', '300']\nsys.exit(node())"
    )
    with python(
        "-c", code, "--ros-args", *ARGUMENTS, domain=graph.domain, environment=cache
    ) as node:
        graph.describe(robots.unlimited())
        node.wait_for("active: from ")
        client = AsyncParameterClient(graph.peer, "delassus_node")
        graph.until(client.services_are_ready, "parameter services")
        client.set_parameters([Parameter("algorithm", value="dense")])
        builds = graph.until(lambda: children_of(node.process.pid), "the process that compiles")
        assert node.stop(signal.SIGTERM) == 0, node.output
        assert not [pid for pid in builds if Path(f"/proc/{pid}").exists()]


def test_a_parameter_of_the_wrong_type_ends_the_node_with_its_name() -> None:
    with node_program("-p", "contacts.names:=3", domain=new_domain()) as node:
        assert node.wait() == 1
        assert "delassus_node: " in node.output
        assert "contacts.names" in node.output
        assert "STRING_ARRAY" in node.output
        assert "Traceback" not in node.output


def test_a_cache_that_cannot_be_written_is_announced(graph) -> None:
    nowhere = {"XDG_CACHE_HOME": "/proc/nothing"}
    with node_program(*ARGUMENTS, domain=graph.domain, environment=nowhere) as node:
        graph.describe(robots.unlimited())
        node.wait_for("active: from ")
        assert "cache" in node.output
        assert node.stop() == 0, node.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    # One of each kind starts a process in every run: no file, syntax, type, value and QoS.
    [
        (["--params-file", "nowhere.yaml"], "nowhere.yaml"),
        (["-p", "base"], "-p base"),
        (["-p", "base:=3"], "expecting type 'STRING'"),
        (["-p", "rate:=1e-12"], "parameter 'rate' is 1e-12; expected 0, or 0.001 to 10000"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (["-p", "base:=[]"], "'base' to '[]'"),
                (["-p", "rate:=true"], "expecting type 'DOUBLE'"),
                (["-p", "rate:=1e-300"], "'rate' is 1e-300; expected 0, or 0.001 to 10000"),
                (["-p", "diagnostics_period:=1e-6"], "expected 0, or 0.05 to 60"),
                (["-p", "contacts.names:=[a]", "-p", "contacts.a.xyz:=up"], "contacts.a.xyz"),
                (["-p", "qos_overrides./x:=["], "qos_overrides"),
            )
        ),
        (
            ["-p", "qos_overrides./robot_description.subscription.reliability:=foo"],
            "'qos_overrides./robot_description.subscription.reliability': unknown value 'foo'; "
            "values: system_default, reliable, best_effort",
        ),
    ],
)
def test_bad_arguments_end_the_node_with_one_line(arguments, words) -> None:
    with node_program(*arguments, domain=new_domain()) as node:
        assert node.wait() == 1
        (line,) = [line for line in node.lines if line.startswith("delassus_node: ")]
        assert words in line
        assert "Traceback" not in node.output


@pytest.mark.parametrize("keys", [False, True])
def test_without_security_where_it_is_enforced_the_node_says_so_in_a_line(tmp_path, keys) -> None:
    """With a folder for its keys, it is the middleware that refuses, and not ROS."""
    if keys:
        (tmp_path / "enclaves" / "node").mkdir(parents=True)
        for name in ("identity_ca.cert.pem", "cert.pem", "key.pem", "permissions_ca.cert.pem"):
            (tmp_path / "enclaves" / "node" / name).write_text("nothing")
        for name in ("governance.p7s", "permissions.p7s"):
            (tmp_path / "enclaves" / "node" / name).write_text("nothing")
    environment = {
        "ROS_SECURITY_KEYSTORE": str(tmp_path),
        "ROS_SECURITY_ENABLE": "true",
        "ROS_SECURITY_STRATEGY": "Enforce",
    }
    with node_program("--enclave", "/node", domain=new_domain(), environment=environment) as node:
        assert node.wait() == 1
        lines = [line for line in node.lines if line.startswith("delassus_node: ")]
        assert len(lines) == 1, node.output
        assert "Traceback" not in node.output


def test_a_parameter_file_that_mixes_numbers_ends_the_node_with_its_line(tmp_path) -> None:
    file = tmp_path / "mixed.yaml"
    file.write_text("/**:\n  ros__parameters:\n    armature: {values: [1, 2.5]}\n")
    with node_program("--params-file", str(file), domain=new_domain()) as node:
        assert node.wait() == 1
        assert "delassus_node: " in node.output
        assert "line_num" in node.output
        assert "Traceback" not in node.output


def test_help_names_topics_parameters_and_an_example(capsys) -> None:
    assert main(["delassus_node", "--help"]) == 0
    text = capsys.readouterr().out
    for word in ("joint_states", "active_contacts", "~/delassus", "quadruped.yaml", "example"):
        assert word in text


def test_an_old_rclpy_is_named(capsys, monkeypatch) -> None:
    monkeypatch.delattr("rclpy.node.Node.add_post_set_parameters_callback")
    assert main(["delassus_node"]) == 1
    assert "Jazzy or newer" in capsys.readouterr().err


def test_without_an_events_executor_another_one_is_taken(graph, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "rclpy.experimental.events_executor", None)
    executor = make_executor(graph.peer)
    assert type(executor) is SingleThreadedExecutor
    executor.shutdown()
    graph.wait_for_log("this rclpy has no events executor")
