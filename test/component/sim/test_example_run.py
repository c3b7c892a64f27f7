"""What runs and watches the examples: counts, verdicts, the line that moves, and a controller."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from control.answers import Answers
from control.comparison import ForceComparison
from control.floating import StandingNode
from control.node import ControlNode
from control.progress import Progress
from control.run import parser, run, run_example
from control.watcher import Watcher
from delassus_msgs.msg import ContactDynamics, DelassusMatrix, Layout
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from ros_domains import new_domain
from ros_support import node_in_own_domain
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from whole_body_control.example import EXAMPLE

from delassus.programs.processes import Command
from delassus.robots.built_in import demo_urdf

pytestmark = pytest.mark.needs("daqp")

MS = 10**6  # ns


# --- counts -----------------------------------------------------------------------------------


def answered(states: int, period: int, wall: int, late: int, skip: int = 0) -> Answers:
    """Return the books of joint states, each `wall` after the one before [ns]."""
    answers = Answers("commands")
    for k in range(states):
        stamp, sent = 10**11 + k * period, 10**18 + k * wall
        answers.ask(stamp, sent)
        if not skip or k % skip:
            answers.answer(stamp, sent + late)
    return answers


def test_a_slow_machine_is_measured_and_no_fault() -> None:
    answers = answered(1001, 2 * MS, 5 * MS, 4 * MS)
    assert answers.states == answers.count == 1001
    assert answers.seconds == pytest.approx(2.0) and answers.factor == pytest.approx(0.4)
    assert answers.faults() == []
    assert answers.words(realtime=False) == (
        "2.0 s in lockstep at 0.40 x real time: all 1001 joint states answered, 0 without "
        "commands; commands 4.00 ms after their joint states (99 %: 4.00)"
    )
    assert answers.words(realtime=True) == (
        "2.0 s on the clock: this machine reaches 200 of 500 commands per second, 4.00 ms after "
        "their joint states (99 %: 4.00); the plant ran at 0.40 x real time"
    )
    assert "250 of 500 commands" in answered(1000, 2 * MS, 2 * MS, MS, skip=2).words(True)


def test_what_comes_again_counts_once_and_from_the_first_time() -> None:
    answers = Answers("commands")
    answers.ask(100 * MS, 0)
    answers.answer(100 * MS, MS)
    answers.ask(102 * MS, 2 * MS)
    answers.ask(102 * MS, 502 * MS)
    for sent in (503 * MS, 504 * MS):
        answers.answer(102 * MS, sent)
    assert answers.count == answers.states == 2
    assert "(99 %: 4" in answers.words(True) and answers.factor == pytest.approx(2 / 502)


def test_an_answer_of_another_clock_is_none() -> None:
    answers = answered(1001, 2 * MS, 2 * MS, MS)
    answers.answer(1_800_000_000 * 10**9, 10**18 + 3 * 10**9)
    assert answers.seconds == pytest.approx(2.0) and answers.states == 1001


def test_joint_states_without_a_valid_matrix_are_a_fault() -> None:
    answers = Answers("commands")
    for k in range(100):
        answers.ask(k * MS + MS, k * MS)
        # Before the first command nothing counts.
        answers.answer(k * MS + MS, k * MS, refused=k < 10 or k >= 95)
    assert answers.states == 90 and answers.count == 85
    assert answers.faults() == ["5 of 90 joint states had no valid matrix"]


# --- the line that moves ----------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_one_line_moves_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "12")
    stream = Terminal()
    progress = Progress(stream)
    for text in ("one", "a text that is far too long"):
        progress.show(text)
    progress.close()
    progress.close()
    assert stream.getvalue() == "\r\x1b[Kone\r\x1b[Ka text that\n"


def test_elsewhere_there_is_a_line_now_and_then() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress.show("one")
    assert not progress.due
    progress.show("two")
    progress.close()
    assert stream.getvalue() == "one\ntwo\n"


# --- the run ----------------------------------------------------------------------------------


@pytest.mark.parametrize("parameter", ["lockstep:=true", "use_sim_time:=false", "rate=5"])
@pytest.mark.parametrize("option", ["--plant", "--node"])
def test_the_clock_is_one_option_for_all_nodes(option: str, parameter: str, capsys) -> None:
    own = parser("walk", "Walks.", "WALK_SECONDS")
    with pytest.raises(SystemExit):
        own.parse_args([option, parameter])
    words = "is not NAME:=VALUE" if parameter == "rate=5" else "is not for one node: all go by"
    assert words in capsys.readouterr().err
    assert own.parse_args([option, "rate:=5"])


@pytest.fixture(name="surroundings")
def make_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    monkeypatch.setenv("ROS_DOMAIN_ID", str(new_domain()))
    # What a run sets is gone after the test.
    for name, value in os.environ.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("publishes", "words"),
    [
        ("", "fault: no commands for 2 s: no node publishes joint_states"),
        ("joint_states", "fault: no commands for 2 s: no node publishes delassus_node/delassus"),
    ],
)
def test_a_run_names_the_topic_that_is_missing(
    publishes: str, words: str, surroundings: None, capfd
) -> None:
    code = (
        "import rclpy, sys\n"
        "from sensor_msgs.msg import JointState\n"
        "rclpy.init()\n"
        "node = rclpy.create_node('some')\n"
        "publishers = [node.create_publisher(JointState, name, 1) for name in sys.argv[1:]]\n"
        "rclpy.spin(node)\n"
    )
    some = Command("some", [sys.executable, "-c", code, *publishes.split()])
    options = argparse.Namespace(seconds=1.0, realtime=False)
    # Discovery takes its time on a busy machine: whoever publishes is known in the end.
    for limit in (2, 20, 200):
        status = run([some], lambda: Watcher("watcher"), options, limit=limit)
        told = capfd.readouterr()
        assert status == 1 and told.out.endswith("FAIL\n")
        if words.replace("2 s", f"{limit} s") in told.err:
            return
    pytest.fail(told.err)


# --- a controller -----------------------------------------------------------------------------


class Sent:
    """Stands in for a publisher."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, list[str], list[float]]] = []

    def publish(self, message: JointState) -> None:
        stamp = message.header.stamp
        when = stamp.sec * 10**9 + stamp.nanosec
        self.messages.append((when, list(message.name), list(message.effort)))


@pytest.fixture(name="node")
def make_node() -> Iterator[StandingNode]:
    with node_in_own_domain(partial(StandingNode, EXAMPLE)) as node:
        node._commands = Sent()
        yield node


NAMES = [f"{leg}_{part}" for leg in ("LF", "RF", "LH", "RH") for part in ("HAA", "HFE", "KFE")]
LAYOUT = Layout(layout_id=7, joints=NAMES, contacts=list(EXAMPLE.names))


def instant(kind: type, sequence: int, sec: int, invalid: bool, **fields: Any) -> bytes:
    message = kind(sequence=sequence, **fields)
    message.header.stamp.sec = sec
    message.validity = kind.VALIDITY_INVALID if invalid else kind.VALIDITY_OK
    return serialize_message(message)


def joints(sec: int) -> bytes:
    zeros = [0.0] * len(NAMES)
    message = JointState(name=NAMES, position=zeros, velocity=zeros, effort=zeros)
    message.header.stamp.sec = sec
    return serialize_message(message)


def test_an_invalid_matrix_commands_nothing(node: StandingNode) -> None:
    """Also one that came before the controller was ready, which ended it once."""
    node._on_base(serialize_message(Odometry()))
    node._on_matrix(instant(DelassusMatrix, 1, 5, True))
    node._on_dynamics(instant(ContactDynamics, 1, 5, True))
    node._on_layout(LAYOUT)
    node._on_description(String(data=demo_urdf()))
    node._on_joints(joints(5))
    assert node._commands.messages == [(5 * 10**9, [], [])]
    assert node.refused == 1


def test_joint_states_of_another_robot_are_passed_over(node: StandingNode) -> None:
    node._on_layout(LAYOUT)
    node._on_description(String(data=demo_urdf()))
    node._on_joints(serialize_message(JointState(name=["elbow"], position=[0.0])))
    assert not node._states
    node._on_joints(joints(5))
    assert list(node._states) == [5 * 10**9]


class Counting(ControlNode):
    """Commands how often it was asked."""

    def __init__(self) -> None:
        super().__init__("counting", ["LF"])
        self.asked: list[float] = []

    def prepare(self, urdf: str) -> None: ...

    def torques(self, q, velocity, matrix, rest, dt) -> np.ndarray:
        self.asked.append(dt)
        return np.full(len(q), float(len(self.asked)))

    def take(self, sequence: int, stamp: int) -> None:
        """Take a joint state of rest and its matrix."""
        valid = ContactDynamics.VALIDITY_OK
        self._states[stamp] = np.zeros(12), np.zeros(12)
        self._matrix = SimpleNamespace(sequence=sequence, validity=valid)
        self._waiting = SimpleNamespace(sequence=sequence, validity=valid, stamp=stamp)
        self._answer()


@pytest.fixture(name="counting")
def make_counting() -> Iterator[Counting]:
    with node_in_own_domain(Counting) as node:
        node._commands = Sent()
        node.joints, node._ready, node._command.name = tuple(NAMES), True, list(NAMES)
        yield node


def test_a_joint_state_that_comes_again_gets_the_same_command(counting: Counting) -> None:
    for sequence, stamp in enumerate([MS, MS, 3 * MS, 3 * MS]):
        counting.take(sequence, stamp)
    assert counting.asked == [0.0, pytest.approx(0.002)]
    wanted = [(MS, 1.0), (MS, 1.0), (3 * MS, 2.0), (3 * MS, 2.0)]
    assert [(when, effort[0]) for when, _, effort in counting._commands.messages] == wanted


def wrench(stamp: int, *force: float) -> bytes:
    message = WrenchStamped()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
    message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = force
    return serialize_message(message)


class Topics:
    """Takes subscriptions, and hands messages to their callbacks."""

    def __init__(self) -> None:
        self.takes: dict[str, Any] = {}

    def create_subscription(self, kind, topic, take, qos, raw=False) -> None:
        self.takes[topic] = take

    def simulate(self, stamp: int, *force: float) -> None:
        self.takes["plant/contact_force/LF"](wrench(stamp, *force))

    def predict(self, stamp: int, *force: float) -> None:
        self.takes["controller/predicted_force/LF"](wrench(stamp, *force))


def test_predicted_forces_are_compared_with_those_of_the_next_instant() -> None:
    topics = Topics()
    forces = ForceComparison(topics, "controller", ["LF", "RF"])
    assert sorted(topics.takes) == [
        "controller/predicted_force/LF", "controller/predicted_force/RF",
        "plant/contact_force/LF", "plant/contact_force/RF",
    ]  # fmt: skip
    assert forces.figures() == ["no force predicted by G could be compared with a simulated force"]
    # The plant repeats the instant at 4 ms, and the prediction for 6 ms comes before its force.
    for stamp, force in ((2, 90.0), (4, 50.0), (4, 50.0)):
        topics.simulate(stamp * MS, 0.0, 0.0, force)
    topics.predict(4 * MS, 0.0, 3.0, 100.0)
    topics.simulate(6 * MS, 0.0, 0.0, 100.0)
    topics.simulate(8 * MS, 0.0, 0.0, 20.0)
    # Nothing is known of the instant after 8 ms.
    topics.predict(8 * MS, 0.0, 0.0, 0.0)
    assert forces.figures() == [
        "forces predicted by G with friction off by 3.0 % rms of 100.0 N in 1 samples"
    ]
    topics.simulate(10 * MS, 0.0, 0.0, 100.0)
    (line,) = forces.figures()
    assert "off by 70.7 % rms of 100.0 N in 2 samples" in line


def test_every_tenth_command_has_predicted_forces(counting: Counting) -> None:
    told: list[WrenchStamped] = []
    counting._predictions = {"LF": SimpleNamespace(publish=told.append)}
    counting.predict = lambda: {"LF": np.array([1.0, 2.0, 10.0 * len(counting.asked)])}
    for sequence in range(1, 26):
        counting.take(sequence, sequence * MS)
    found = [(m.wrench.force.y, m.wrench.force.z) for m in told]
    assert found == [(2.0, 100.0), (2.0, 200.0)]
    assert counting.friction == 0.8


def test_the_controller_predicts_with_the_friction_of_the_plant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[Command] = []
    monkeypatch.setattr("control.run.run", lambda programs, *rest: started.extend(programs) or 0)
    options = parser("walk", "", "WALK_SECONDS").parse_args(["--plant", "friction:=0.3"])
    run_example("some.node", Path("."), options, lambda: None, "arm", ["friction:=0.2"])
    plant, _, controller = (program.arguments for program in started)
    # ROS takes the last of the same name.
    for arguments in (plant, controller):
        assert [x for x in arguments if x.startswith("friction")][-1] == "friction:=0.3"
