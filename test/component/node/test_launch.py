"""The launch files, started as `ros2 launch` does."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
from delassus_msgs.msg import DelassusMatrix, Estimate, Layout
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from launch.launch_description_sources import (
    get_launch_description_from_python_launch_file,
)
from lifecycle_msgs.srv import GetState
from processes import ROOT, Program
from rcl_interfaces.srv import GetParameters
from rclpy.parameter import parameter_value_to_python
from ros_domains import new_domain
from ros_support import LATCHED, Graph
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus import Robot
from delassus_ros.verbs.main import main

DOMAIN = new_domain()


@pytest.fixture(scope="module", autouse=True)
def own_surroundings() -> Iterator[None]:
    """Let the launched nodes and the tests share a domain of this machine alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        patch.setenv("ROS_DOMAIN_ID", str(DOMAIN))
        yield


class Launch(Program):
    """A launch file in a process of its own, as `ros2 launch` runs it; ended with the block.

    Parameters
    ----------
    file : name of the launch file.
    **arguments : of the launch file.
    """

    def __init__(self, file: str, **arguments: str) -> None:
        code = (
            "import sys\n"
            "from launch import LaunchService\n"
            "from launch_support import included\n"
            "service = LaunchService()\n"
            f"service.include_launch_description(included({file!r}, **{arguments!r}))\n"
            "sys.exit(service.run())\n"
        )
        path = os.pathsep.join([str(ROOT / "test"), os.environ.get("PYTHONPATH", "")])
        # The launched nodes are those that are installed.
        environment = {"PYTHONPATH": path}
        super().__init__(
            sys.executable, "-c", code, environment=environment, start_new_session=True
        )

    def __exit__(self, *error: object) -> None:
        # Told by SIGINT, launch ends what it has started; by SIGTERM alone it leaves it behind.
        try:
            self.stop()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            super().__exit__(*error)


@contextlib.contextmanager
def launched(capfd: pytest.CaptureFixture[str], file: str, **arguments: str) -> Iterator[Graph]:
    """Launch a file; give the peer of what it starts, which does not wait when launch ends."""
    with Launch(file, **arguments) as launch, Graph(capfd, DOMAIN) as graph:
        graph.fault = launch.fault
        graph.report = launch.report
        yield graph


def parameters_with(folder: Path, autostart: str) -> str:
    """Write the quadruped's parameters with something else for autostart; return the file."""
    text = (ROOT / "config" / "quadruped.yaml").read_text(encoding="utf-8")
    assert "autostart: true\n" in text
    file = folder / "parameters.yaml"
    file.write_text(text.replace("autostart: true\n", autostart), encoding="utf-8")
    return str(file)


def parameters_of(graph: Graph, node: str, *names: str) -> list[Any]:
    request = GetParameters.Request(names=names)
    found = graph.call(GetParameters, f"{node}/get_parameters", request)
    return [parameter_value_to_python(value) for value in found.values]


def asked(graph: Graph, node: str) -> tuple[list[Any], str]:
    """Return what a node has for autostart, use_sim_time and algorithm, and its state."""
    values = parameters_of(graph, node, "autostart", "use_sim_time", "algorithm")
    state = graph.call(GetState, f"{node}/get_state", GetState.Request())
    return values, state.current_state.label


def test_delassus_launch_starts_the_node_by_itself(capfd) -> None:
    """For a URDF file, with another algorithm than the parameter file's."""
    robot = Robot.from_urdf(robots.quadruped())
    file = str(robots.quadruped())
    arguments = {"robot_description_file": file, "algorithm": "dense"}
    with launched(capfd, "delassus.launch.py", **arguments) as graph:

        def is_valid(answer: DelassusMatrix) -> bool:
            graph.touch(["LF", "RH"])
            return answer.validity == DelassusMatrix.VALIDITY_OK

        answer = graph.ask_until(is_valid, robot.joint_names, robot.neutral().tolist())
    assert list(answer.contacts) == ["LF", "RH"]
    assert answer.algorithm == "dense"


@pytest.mark.parametrize("name", robots.TEN)
def test_two_commands_from_a_urdf_to_a_node_that_is_ok(name: str, capfd, tmp_path: Path) -> None:
    load, base, _ = robots.TEN[name]
    urdf, file = str(load()), tmp_path / "my_robot.yaml"
    assert main(["config", urdf, "--base", base]) == 0
    file.write_text(capfd.readouterr().out)
    robot = Robot.from_urdf(Path(urdf), base)
    limits = {joint.name: (joint.lower, joint.upper) for joint in robot.joints}
    positions = [float(np.clip(0.1, *limits[name])) for name in robot.joint_names]
    arguments = {"robot_description_file": urdf, "params_file": str(file)}
    with launched(capfd, "delassus.launch.py", **arguments) as graph:
        contacts = graph.until(lambda: graph.layouts, "layout")[0].contacts

        def is_valid(answer: DelassusMatrix) -> bool:
            graph.touch(contacts)
            return answer.validity == DelassusMatrix.VALIDITY_OK

        answer = graph.ask_until(is_valid, robot.joint_names, positions)
    assert list(answer.contacts) == list(contacts) and answer.algorithm == "auto"


@pytest.mark.needs("xacro")
def test_delassus_launch_expands_xacro_with_arguments(capfd, tmp_path) -> None:
    file = tmp_path / "robot.urdf.xacro"
    file.write_text(
        '<robot name="$(arg name)" xmlns:xacro="http://www.ros.org/wiki/xacro">'
        '<xacro:arg name="name" default="nobody"/>'
        f'<xacro:include filename="{robots.quadruped()}"/></robot>'
    )
    arguments = {"robot_description_file": str(file), "xacro_arguments": "name:=somebody"}
    with launched(capfd, "delassus.launch.py", **arguments) as graph:
        layout = graph.until(lambda: graph.layouts, "layout")[0]
    assert layout.robot == "somebody"
    assert list(layout.contacts) == ["LF", "RF", "LH", "RH"]


@pytest.fixture
def supervised(tmp_path: Path) -> dict[str, str]:
    """Return arguments for a node that somebody else starts, on simulated time."""
    text = "autostart: false\n    use_sim_time: true\n"
    return {
        "robot_description_file": str(robots.quadruped()),
        "params_file": parameters_with(tmp_path, text),
    }


def test_delassus_launch_leaves_the_parameter_file_its_say(capfd, supervised) -> None:
    with launched(capfd, "delassus.launch.py", name="supervised", **supervised) as graph:
        assert asked(graph, "supervised") == ([False, True, "pv_osimr"], "unconfigured")


def test_delassus_launch_arguments_win_over_the_parameter_file(capfd, supervised) -> None:
    # As Nav2 writes them.
    own = {"name": "argued", "autostart": "True", "use_sim_time": "False"}
    with launched(capfd, "delassus.launch.py", **own, **supervised) as graph:
        values, _ = asked(graph, "argued")
        assert values == [True, False, "pv_osimr"]
        graph.until(lambda: asked(graph, "argued")[1] == "active", "active node")


def test_delassus_launch_takes_the_description_from_a_topic(capfd) -> None:
    """A node of another name, in a namespace, with the topic under another name."""
    layouts: list[Layout] = []
    arguments = {
        "name": "matrices", "namespace": "somewhere", "robot_description_topic": "description"
    }  # fmt: skip
    with launched(capfd, "delassus.launch.py", **arguments) as graph:
        graph.peer.create_subscription(
            Layout, "/somewhere/matrices/layout", layouts.append, LATCHED
        )
        publisher = graph.peer.create_publisher(String, "/somewhere/description", LATCHED)
        publisher.publish(String(data=robots.quadruped().read_text(encoding="utf-8")))
        graph.until(lambda: layouts, "layout")
    assert layouts[0].robot == "delassus_quadruped"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"robot_description_file": "/no.urdf"}, "robot_description_file: there is no file /no."),
        ({"params_file": "/no.yaml"}, "params_file: there is no file /no.yaml"),
        ({"robot": "go3"}, "robot: there is no 'go3'; robots: b2, ergocub, franka, g1, go2"),
        ({"robot": "go2", "params_file": "/no.yaml"}, "params_file and robot exclude each other"),
        ({"xacro_arguments": "a:=b"}, "xacro_arguments are given, but no robot_description_file"),
        (
            {"robot_description_file": str(robots.quadruped()), "xacro_arguments": "a:=b"},
            "does not end in .xacro",
        ),
        ({"autostart": "maybe"}, "autostart: 'maybe' is neither true nor false"),
        ({"use_sim_time": "yes"}, "use_sim_time: 'yes' is neither true nor false"),
    ],
)
def test_delassus_launch_refuses_what_it_cannot_do(arguments: dict[str, str], words: str) -> None:
    refused("delassus.launch.py", arguments, words)


def test_a_robot_comes_with_its_adapter(capfd) -> None:
    """The messages of go2's maker are not installed here: the adapter names their origin."""
    urdf = str(robots.example("go2_description/urdf/go2.urdf"))
    arguments = {"robot": "go2", "robot_description_file": urdf}
    with Launch("delassus.launch.py", **arguments) as launch, Graph(capfd, DOMAIN) as graph:
        graph.fault = launch.fault
        layout = graph.until(lambda: graph.layouts and graph.layouts[-1], "layout")
        assert list(layout.contacts) == ["FR", "FL", "RR", "RL"]
        words = "it comes from https://github.com/unitreerobotics/unitree_ros2"
        graph.until(lambda: words in launch.output, "line of the adapter")


def test_delassus_launch_names_a_robot_file_that_cannot_be_read(tmp_path: Path) -> None:
    empty, xacro = tmp_path / "empty.urdf", tmp_path / "bad.xacro"
    empty.write_text(" \n")
    file = {"robot_description_file": str(empty)}
    refused("delassus.launch.py", file, f"robot_description_file {empty} is empty")
    xacro.write_text('<robot name="r" xmlns:xacro="http://ros.org/xacro">${1 / 0}</robot>')
    file = {"robot_description_file": str(xacro)}
    refused("delassus.launch.py", file, f"robot_description_file {xacro}: xacro cannot expand it")


def test_estimator_launch_runs_beside_the_simulated_quadruped(capfd) -> None:
    told: list[Estimate] = []
    with launched(capfd, "estimator.launch.py", simulated="true") as graph:
        topic = "/delassus_estimator/estimate"
        graph.peer.create_subscription(Estimate, topic, told.append, 10)
        graph.until(
            lambda: told and told[-1].validity == Estimate.VALIDITY_OK, "valid estimate"
        )
    refused("estimator.launch.py", {"params_file": "/no.yaml"}, "there is no file /no.yaml")


@pytest.mark.parametrize(
    ("file", "controller", "arguments", "slack"),
    [
        ("whole_body_control/walk", "whole_body_controller", {"push_every": "1.0"}, 0.0),
        ("balance/balance", "balance_controller", {"realtime": "true"}, 0.004),
        ("operational_space/arm", "operational_space_controller", {"surface": "curved"}, 0.0),
    ],
)
def test_all_nodes_of_an_example_go_by_the_plants_clock(
    capfd, file: str, controller: str, arguments: dict[str, str], slack: float
) -> None:
    for module in ("mujoco", "pinocchio", "daqp"):
        import_module(module)
    commands: list[JointState] = []
    with launched(capfd, str(ROOT / "examples" / f"{file}.launch.py"), **arguments) as graph:
        graph.peer.create_subscription(JointState, "joint_commands", commands.append, 10)
        graph.until(lambda: len(commands) > 50, "commands")
        assert commands[-1].effort
        for node in ("delassus_node", controller):
            assert parameters_of(graph, node, "use_sim_time") == [True]
        assert parameters_of(graph, "plant", "lockstep", "slack") == [True, slack]
        # Of simulated time, which has begun anew.
        assert commands[-1].header.stamp.sec < 10**6


def test_a_refused_argument_leaves_no_simulator_behind() -> None:
    compared = {"robot": "quadruped", "params_file": "/no.yaml"}
    refused("compare.launch.py", compared, "params_file: there is no file /no.yaml")
    refused("demo.launch.py", {"log_level": "loud"}, "loud")


def test_the_demo_shows_the_arguments_that_it_takes() -> None:
    file = str(ROOT / "launch" / "demo.launch.py")
    description = get_launch_description_from_python_launch_file(file)
    shown = {argument.name for argument in description.get_launch_arguments()}
    assert shown == {"robot", "algorithm", "namespace", "log_level"}


@pytest.mark.parametrize("tolerance", ["small", "-1e-9", "2", "nan"])
def test_compare_launch_refuses_a_tolerance_that_is_none(tolerance: str) -> None:
    refused("compare.launch.py", {"tolerance": tolerance}, f"'{tolerance}' is no number")


def refused(file: str, arguments: dict[str, str], words: str) -> None:
    """Launch a file and expect it to end with an error, before a process is started."""
    with Launch(file, **arguments) as launch:
        assert launch.wait() == 1
        # What it has started and left behind, if anything, is of its group.
        with pytest.raises(ProcessLookupError):
            os.killpg(launch.process.pid, signal.SIGKILL)
        assert words in launch.output
        assert "process started" not in launch.output


def test_a_launch_that_ends_early_ends_the_wait_for_it(capfd, monkeypatch) -> None:
    """Where the package is not found, say: in seconds, with the reason."""
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    with (
        launched(capfd, "delassus.launch.py") as graph,
        pytest.raises(pytest.fail.Exception, match=r"the program has ended, status 1[^$]*AMENT_"),
    ):
        graph.until(lambda: graph.layouts, "layout")


@pytest.mark.needs("mujoco")
def test_the_live_view_ends_with_the_error_of_the_node() -> None:
    with Launch("demo.launch.py", algorithm="nonsense") as launch:
        assert launch.wait() == 1, launch.output
        last = launch.output[-3000:]
    assert re.search(r"cannot configure: unknown algorithm 'nonsense'", last), last


def test_compare_launch_publishes_agreement(capfd, tmp_path) -> None:
    """Two algorithms on the simulated quadruped, with parameters for a lifecycle manager."""
    arguments = {
        "robot": "quadruped", "second": "efpa", "namespace": "both",
        # For the nodes of whoever includes it.
        "use_sim_time": "True",
        "params_file": parameters_with(tmp_path, "autostart: false\n"),
    }  # fmt: skip
    with launched(capfd, "compare.launch.py", **arguments) as graph:
        assert agreement(graph, "both/delassus_compare") == ("pv_osimr", "efpa")


def test_compare_launch_takes_a_robot_with_loops(capfd) -> None:
    """The algorithms that it takes by itself, on the robot with a four-bar."""
    with launched(capfd, "compare.launch.py", robot="geared") as graph:
        assert agreement(graph, "delassus_compare") == ("pv_osimr", "ltl")


def agreement(graph: Graph, node: str) -> tuple[str, str]:
    """Wait until two nodes agree, and return their algorithms."""
    import_module("mujoco")
    reports: list[DiagnosticStatus] = []
    name = f"{node}: agreement"
    graph.peer.create_subscription(
        DiagnosticArray,
        "/diagnostics",
        lambda message: reports.extend(s for s in message.status if s.name == name),
        100,
    )
    graph.until(
        lambda: [report for report in reports if report.level == DiagnosticStatus.OK],
        "agreement of the two",
    )
    values = {item.key: item.value for item in reports[-1].values}
    assert int(values["pairs compared"]) > 0
    assert values["pairs that disagree"] == "0"
    assert float(values["worst relative error"]) < 1e-12
    return values["first algorithm"], values["second algorithm"]


@pytest.mark.needs("mujoco")
def test_demo_launch_publishes_matrices(capfd) -> None:
    with launched(capfd, "demo.launch.py") as graph:
        graph.until(
            lambda: [m for m in graph.matrices if m.validity == DelassusMatrix.VALIDITY_OK],
            "matrix of the demo",
        )


@pytest.mark.needs("mujoco")
def test_demo_launch_takes_a_namespace_and_nothing_else(capfd) -> None:
    """Included by a launch file with arguments of its own."""
    leaking = {"name": "somebody", "autostart": "False", "use_sim_time": "True"}
    matrices: list[DelassusMatrix] = []
    with launched(capfd, "demo.launch.py", namespace="robot1", **leaking) as graph:
        graph.peer.create_subscription(
            DelassusMatrix, "/robot1/delassus_node/delassus", matrices.append, 100
        )
        graph.until(
            lambda: [m for m in matrices if m.validity == DelassusMatrix.VALIDITY_OK],
            "matrix of the demo",
        )
        # A node is heard of by itself, maybe after what it publishes.
        expected = {("simulator", "/robot1"), ("delassus_monitor", "/robot1")}
        graph.until(
            lambda: expected <= set(graph.peer.get_node_names_and_namespaces()),
            "simulator and monitor in the namespace",
        )


@pytest.mark.needs("mujoco")
def test_demo_launch_takes_the_robot_and_its_parameters(capfd) -> None:
    with launched(capfd, "demo.launch.py", robot="geared") as graph:
        layout = graph.until(lambda: graph.layouts, "layout")[0]
    assert layout.robot == "delassus_quadruped_geared"
