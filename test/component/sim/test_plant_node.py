"""delassus_plant in lockstep: its clock waits for answers, asks again, and says what it lacks."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from delassus_msgs.msg import DelassusMatrix, Estimate
from processes import Program, ros_program
from ros_domains import new_domain
from ros_support import Domain, stamp_of
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from delassus_ros.sim.demo import demo_environment

pytestmark = pytest.mark.needs("mujoco")

PERIOD = 2_000_000  # ns


def start(module: str, *arguments: str, domain: int) -> Program:
    """Start a module of the simulation, with arguments after ``--ros-args``."""
    environment = demo_environment({"ROS_DOMAIN_ID": str(domain)})
    return ros_program(f"delassus_ros.sim.{module}", *arguments, environment=environment)


class Scene(Domain):
    """The plant in lockstep, and a node that answers its joint states."""

    def __init__(self, *parameters: str, module: str = "plant_node") -> None:
        super().__init__()
        words = [word for each in ("lockstep:=true", *parameters) for word in ("-p", each)]
        self.plant = start(module, *words, domain=self.domain)
        self.fault, self.report = self.plant.fault, self.plant.report
        self.states: list[JointState] = []
        self.clocks: list[Clock] = []
        self.peer.create_subscription(JointState, "joint_states", self._on_state, 1000)
        self.peer.create_subscription(Clock, "/clock", self.clocks.append, 1000)
        self.commands = self.peer.create_publisher(JointState, "joint_commands", 10)
        topic = "delassus_estimator/estimate"
        self.estimates = self.peer.create_publisher(Estimate, topic, 10)
        topic = "delassus_node/delassus"
        self.matrices = self.peer.create_publisher(DelassusMatrix, topic, 10)
        self.answer: Callable[[JointState], Any] = lambda state: None

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        with self.plant:
            self.plant.stop()

    def _on_state(self, state: JointState) -> None:
        self.states.append(state)
        self.answer(state)

    def command(self, state: JointState) -> None:
        """Hold the robot as it is."""
        self.commands.publish(
            JointState(header=state.header, name=state.name, effort=[0.0] * len(state.name))
        )

    def nothing(self, state: JointState) -> None:
        """Command nothing."""
        self.commands.publish(JointState(header=state.header))

    def estimate(self, state: JointState) -> None:
        """Estimate nothing."""
        self.estimates.publish(Estimate(header=state.header))

    def matrix(self, state: JointState) -> None:
        """Compute nothing."""
        self.matrices.publish(DelassusMatrix(header=state.header))

    def go_on(self, count: int) -> None:
        """Wait for so many other joint states."""
        end = len(self.stamps) + count
        self.until(lambda: len(self.stamps) >= end, "joint states")

    def stands_still(self, answer: Callable[[JointState], Any]) -> int:
        """Answer for a while, then no more; return the stamp at which the clock stands still."""
        for _ in range(100):
            self.answer = answer
            self.go_on(50)
            self.answer = lambda state: None
            begun = len(self.stamps)
            self.until(lambda n=begun: self.repeated() >= 2 or len(self.stamps) > n + 100, "state")
            # Until an answer has got there, which takes its time at first, it does not wait.
            if self.repeated() >= 2:
                break
        return stamp_of(self.states[-1])

    @property
    def stamps(self) -> list[int]:
        """Of the joint states so far, each once [ns]."""
        return sorted({stamp_of(state) for state in self.states})

    def repeated(self) -> int:
        """Return how often the newest joint state has come again."""
        newest = stamp_of(self.states[-1]) if self.states else 0
        return sum(stamp_of(state) == newest for state in self.states) - 1


@pytest.fixture(name="scene")
def make_scene() -> Iterator[Scene]:
    with Scene() as scene:
        yield scene


def test_the_clock_stands_still_until_a_joint_state_is_answered(scene: Scene) -> None:
    still = scene.stands_still(scene.command)
    said = [state for state in scene.states if stamp_of(state) == still]
    # The same instant, with the same noise, and the time of it.
    assert all(state == said[0] for state in said)
    assert sum(stamp == still for stamp in map(time_of, scene.clocks)) >= 2
    # One answer lets it go on by one period.
    before = scene.states[-1]
    scene.command(before)
    scene.until(lambda: scene.repeated() >= 1 and scene.stamps[-1] > still, "another joint state")
    assert scene.stamps[-1] == still + PERIOD
    # One that commands nothing does as well; one of another clock does not.
    ahead = copy.deepcopy(scene.states[-1])
    ahead.header.stamp.sec += 10
    scene.command(ahead)
    repeated = scene.repeated()
    scene.until(lambda: scene.repeated() > repeated, "the same joint state again")
    assert scene.stamps[-1] == still + PERIOD
    scene.nothing(scene.states[-1])
    scene.until(lambda: scene.stamps[-1] > still + PERIOD, "another joint state")


def test_joint_states_without_answer_are_told_by_their_topic(scene: Scene) -> None:
    scene.stands_still(scene.command)
    words = "no answer on joint_commands for"
    scene.until(lambda: words in scene.plant.output, "word")
    assert "1 nodes publish joint_commands" in scene.plant.output


def test_drives_do_not_take_over_however_long_an_answer_takes(scene: Scene) -> None:
    """Twenty milliseconds without a command are those of the plant's clock."""
    scene.stands_still(scene.command)
    scene.stands_still(scene.command)
    assert "commands have stopped" not in scene.plant.output
    # But where nothing is commanded for so long by its clock.
    scene.answer = scene.nothing
    scene.nothing(scene.states[-1])
    scene.until(lambda: "commands have stopped, 1 times" in scene.plant.output, "word")


def test_answers_may_be_late_by_the_slack() -> None:
    with Scene("slack:=0.004") as scene:
        still = scene.stands_still(scene.command)
        scene.command(scene.states[-1])
        scene.until(lambda: scene.repeated() >= 2 and scene.stamps[-1] > still, "the next stop")
        # Two periods behind what is answered are allowed, and it stops at the third.
        assert scene.stamps[-1] == still + 3 * PERIOD


def test_estimates_may_be_the_answers() -> None:
    with Scene("answers:=estimates", "rate:=1000") as scene:
        still = scene.stands_still(scene.estimate)
        scene.estimate(scene.states[-1])
        scene.until(lambda: scene.repeated() >= 1 and scene.stamps[-1] > still, "the next stop")
        assert scene.stamps[-1] == still + PERIOD // 2


@pytest.mark.parametrize("robot", ["quadruped", "geared"])
def test_the_robots_of_the_demo_wait_for_matrices(robot: str) -> None:
    with Scene(f"robot:={robot}", "rate:=500", module="simulator_node") as scene:
        still = scene.stands_still(scene.matrix)
        scene.matrix(scene.states[-1])
        scene.until(lambda: scene.repeated() >= 1 and scene.stamps[-1] > still, "the next stop")
        assert scene.stamps[-1] == still + PERIOD
        assert "gripper" in scene.states[-1].name


def test_the_clock_is_not_faster_than_the_machines(scene: Scene) -> None:
    still = scene.stands_still(scene.command)
    began = time.monotonic_ns()
    scene.answer = scene.command
    scene.command(scene.states[-1])
    scene.go_on(300)
    # A delay of 20 ms is made good.
    assert scene.stamps[-1] - still < time.monotonic_ns() - began + 30e6


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("answers:=torques", "unknown answers 'torques'; choices: commands, estimates, matrices"),
        ("slack:=-0.1", "parameter 'slack' is -0.1; expected a time of 0 s or more"),
    ],
)
def test_bad_parameters_are_named(parameter: str, words: str) -> None:
    with start("plant_node", "-p", parameter, domain=new_domain()) as plant:
        assert plant.wait() == 1
        assert plant.output == f"delassus_plant: {words}\n"


def time_of(clock: Clock) -> int:
    return int(clock.clock.sec) * 10**9 + int(clock.clock.nanosec)
