"""How the programs with a ROS node start and end: one line where something refuses to."""

from __future__ import annotations

import importlib
import os
import signal
from importlib import import_module

import pytest
from rclpy.exceptions import NameValidationException, ParameterException
from rclpy.node import Node
from rclpy.utilities import ok
from ros_domains import new_domain

from delassus import Robot
from delassus.errors import InputError
from delassus.robots.built_in import demo_urdf
from delassus_ros.ros.program import run_program

pytestmark = pytest.mark.needs("delassus_msgs")

PROGRAMS = {
    "delassus_node": "delassus_ros.node.main",
    "delassus_simulator": "delassus_ros.sim.simulator_node",
    "delassus_monitor": "delassus_ros.monitor.monitor_node",
    "delassus_compare": "delassus_ros.monitor.compare_node",
}

COMMENTED = "<!-- trunk: a box -->" + demo_urdf()


@pytest.fixture(autouse=True)
def own_domain(monkeypatch) -> None:
    monkeypatch.setenv("ROS_DOMAIN_ID", str(new_domain()))


def never(node: object, stopping: object) -> int:
    raise AssertionError("there is nothing to run")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-p"], "-p flag"),
        (["-r", "__ns:=bad-ns"], "__ns:=bad-ns"),
        (["-r", "__node:=a-b"], "__node:=a-b"),
        (["--params-file", "nowhere.yaml"], "nowhere.yaml"),
        (["-p", "use_sim_time:=3"], "use_sim_time"),
        (["--unheard-of"], "--unheard-of"),
    ],
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_bad_ros_arguments_end_a_program_with_one_line(capsys, name, arguments, words) -> None:
    if name == "delassus_simulator":
        import_module("mujoco")
    program = importlib.import_module(PROGRAMS[name])
    assert program.main([name, "--ros-args", *arguments]) == 1
    out, error = capsys.readouterr()
    assert not out
    assert error.startswith(f"{name}: ")
    assert words in error
    assert error.count("\n") == 1
    assert not ok()


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (f"robot_description:={COMMENTED}", "to a launch file as robot_description_file:=PATH"),
        (f"arm.robot_description:={COMMENTED}", "in a parameter file as a block"),
        ("base:=a: b", """put it in quotes, as in -p base:='"a: b"'"""),
    ],
)
@pytest.mark.parametrize("flag", ["-p", "--param"])
def test_a_value_that_is_no_yaml_is_named_with_what_to_do(capsys, flag, given, advice) -> None:
    assert run_program("program", never, never, ["program", "--ros-args", flag, given]) == 1
    error = capsys.readouterr().err
    name = given.partition(":=")[0]
    assert error.startswith(f"program: parameter {name!r}: ROS reads values on the command line")
    assert "a colon before a space is the usual reason, in a comment of XML" in error
    assert advice in error
    assert error.count("\n") == 1 and len(error) < 500


def test_a_description_whose_comments_have_no_colons_is_a_value_of_yaml() -> None:
    made: list[Node] = []

    def make() -> Node:
        made.append(Node("robot"))
        made[0].declare_parameter("robot_description", "")
        return made[0]

    def run(node: Node, stopping) -> int:
        text = node.get_parameter("robot_description").value
        assert Robot.from_urdf(text).to_bytes() == Robot.from_urdf(demo_urdf()).to_bytes()
        return 0

    value = f"robot_description:={demo_urdf()}"
    assert run_program("program", make, run, ["program", "--ros-args", "-p", value]) == 0


@pytest.mark.parametrize(
    "refusal",
    [
        InputError("it is\nimpossible"),
        ParameterException("it is\nimpossible", "rate"),
        NameValidationException("node name", "it is\nimpossible", "", 0),
    ],
)
def test_a_node_that_cannot_be_made_ends_its_program_with_one_line(capsys, refusal) -> None:
    def make() -> Node:
        assert ok()
        raise refusal

    assert run_program("program", make, never, []) == 1
    assert not ok()
    error = capsys.readouterr().err
    assert error.startswith("program: ")
    assert "it is impossible" in error
    assert error.count("\n") == 1


def test_the_status_is_that_of_the_run_and_signals_ask_it_to_stop() -> None:
    def run(node: Node, stopping) -> int:
        assert node.get_name() == "renamed"
        assert not stopping()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopping()
        assert ok()
        return 7

    arguments = ["program", "--ros-args", "-r", "__node:=renamed"]
    assert run_program("program", lambda: Node("named"), run, arguments) == 7
    assert not ok()


def test_what_goes_wrong_in_the_run_is_raised(capsys) -> None:
    def run(node: Node, stopping) -> int:
        raise InputError("a fault")

    with pytest.raises(InputError, match="a fault"):
        run_program("program", lambda: Node("named"), run, [])
    assert not ok()
    assert not capsys.readouterr().err


def test_help_needs_no_ros(capsys) -> None:
    assert run_program("program", never, never, ["program", "-h"], "usage: program\n") == 0
    assert capsys.readouterr().out == "usage: program\n"


def test_arguments_that_are_not_for_ros_are_refused(capsys) -> None:
    """A parameter file without --ros-args before it would be passed over in silence."""
    arguments = ["program", "--params-file", "robot.yaml", "--ros-args", "-p", "rate:=1.0"]
    assert run_program("program", never, never, arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("program: unknown argument '--params-file'; all are ROS's")
    assert error.count("\n") == 1
    assert not ok()
