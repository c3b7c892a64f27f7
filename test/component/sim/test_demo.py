"""The demo and its nodes, end to end, in processes of their own."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs_py import matrix_to_numpy
from hanging import HANG_S
from processes import ROOT, Program, children_of, ended, python
from ros_domains import new_domain
from ros_support import LATCHED, Domain, overrides, stamp_of
from seeds import but_slow
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus.errors import DelassusError
from delassus.robots.built_in import ROBOTS, demo_urdf
from delassus_ros.monitor.monitor_node import MonitorNode
from delassus_ros.sim import demo
from delassus_ros.sim.quadruped import stepping_quadruped

FAKE = Path(__file__).parents[2] / "fake_delassus_node.py"

Start = Callable[..., Program]


@pytest.fixture(name="start")
def make_start() -> Iterator[Start]:
    """Start Python with these arguments, in a domain of its own; all end with the test."""
    with ExitStack() as stack:

        def start(*arguments: str | Path, domain: int | None = None, **extra: str) -> Program:
            number = new_domain() if domain is None else domain
            return stack.enter_context(python(*arguments, domain=number, environment=extra))

        yield start


def fake_demo(start: Start, seconds: float, *fake: str, first_limit: float = HANG_S) -> Program:
    """Run the demo with the fake node in place of delassus_node."""
    code = (
        "import sys\n"
        "from delassus_ros.sim import demo\n"
        "from delassus.programs.processes import Command\n"
        "from pathlib import Path\n"
        "simulator = demo.demo_commands(Path('unused'))[0]\n"
        # The whole demo, below, has the full rate.
        "simulator.arguments.extend(['-p', 'rate:=200'])\n"
        f"fake = Command('delassus_node', [sys.executable, {str(FAKE)!r}, *{list(fake)!r}])\n"
        f"sys.exit(demo.run([simulator, fake], {seconds!r}, {first_limit!r}))\n"
    )
    return start("-c", code)


# --- the demo with a fake node ----------------------------------------------------------------


@pytest.mark.slow
def test_demo_passes_when_matrices_agree(start: Start) -> None:
    """Ends by itself, status 0, with the figures of the run."""
    program = fake_demo(start, 3.0)
    assert program.wait() == 0, program.output
    assert program.lines[-1] == "OK: all matrices agree with the physics engine"
    summary = program.lines[-2]
    assert re.match(r"\d+\.\d s, \d+ Hz: \d+ matrices, of m = .*\b12 \(\d+ times\)", summary)
    assert re.search(r"\b[1-9]\d* compared, worst error 0.0e\+00", summary)
    lines = [line for line in program.lines if line.startswith("active contacts: ")]
    assert lines
    assert "\x1b" not in program.output


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("wrong", r"fault: \d+ of \d+ matrices disagree with the reference \(tolerance 1e-09"),
        # Those that test_agreement.py finds without processes.
        pytest.param(
            "wrong-set", r"fault: \d+ matrices are of other contacts than the active ones",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "lossy", r"fault: of \d+ joint states without an answer, [1-9]\d* are not among",
            marks=pytest.mark.slow,
        ),
    ],
)  # fmt: skip
def test_demo_fails_on_any_disagreement(start: Start, fault: str, words: str) -> None:
    """A run that began well, then was wrong by 1e-8, of the wrong contacts, or had holes."""
    program = fake_demo(start, 2.0, "--fault", fault, "--after", "60")
    assert program.wait() == 1, program.output
    assert re.search(words, program.output)
    assert ("fault: first: stamp " in program.output) == (fault != "lossy")
    assert program.lines[-1] == "FAIL" or "FAIL" in program.lines


@pytest.mark.parametrize(("fault", "count"), [
    ("invalid", r"[1-9]\d*"), pytest.param("silent", "0", marks=pytest.mark.slow),
])  # fmt: skip
def test_demo_fails_without_matrices(start: Start, fault: str, count: str) -> None:
    """Only INVALID messages, or none: says what it saw, and what the nodes said last."""
    # On a busy machine it takes them longer to find each other.
    for limit in (6, 40, 400):
        program = fake_demo(start, 2.0, "--fault", fault, first_limit=float(limit))
        assert program.wait() == 1, program.output
        if re.search(rf"fault: {count} INVALID", program.output):
            break
    assert f"fault: no matrix arrived within {limit} s" in program.lines
    assert re.search(rf"fault: {count} INVALID", program.output)
    if fault == "invalid":
        assert "INVALID (NOT_CONFIGURED: " in program.output
    assert "1 on /delassus_node/delassus" in program.output
    assert "--- simulator (exit status 0), last output:" in program.output


def test_demo_tells_of_a_node_that_died(start: Start) -> None:
    """Name, status and last words of the node; not a wait for the end."""
    program = fake_demo(start, HANG_S, "--fault", "die", "--after", "100")
    assert program.wait() == 1
    assert "fault: delassus_node ended by itself with status 3" in program.lines
    assert "--- delassus_node (exit status 3), last output:" in program.lines
    assert "the fake node dies on purpose" in program.lines


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_demo_stops_cleanly_on_signals(start: Start, number: int) -> None:
    """Verdict and status as at its own end, no traceback, no process left."""
    program = fake_demo(start, 1e9)
    program.wait_for("compared")
    children = children_of(program.process.pid)
    assert len(children) == 2
    assert program.stop(number) == 0, program.output
    assert program.lines[-1] == "OK: all matrices agree with the physics engine"
    assert "Traceback" not in program.output
    assert "had to kill" not in program.output
    assert all(ended(pid) for pid in children)


def test_demo_interrupted_before_the_first_matrix_fails(start: Start) -> None:
    """Stopped before anything was compared: no success."""
    program = fake_demo(start, 1e9, "--fault", "silent")
    program.wait_for("waiting for the first matrix")
    assert program.stop(signal.SIGINT) == 1
    assert "fault: no matrix arrived" in program.lines
    # Whether they have found each other by then or not.
    assert re.search(r"publishers: .*\b[01] on /delassus_node/delassus", program.output)
    assert "Traceback" not in program.output


# --- the demo's own arguments -----------------------------------------------------------------


def test_demo_help_tells_how_to_end_it(start: Start) -> None:
    """The options, the variable and the exit status."""
    program = start("-m", "delassus_ros.sim.demo", "--help")
    assert program.wait() == 0, program.output
    for word in ("--seconds", "DEMO_SECONDS", "--params-file", "Exit status", "ROS_DOMAIN_ID"):
        assert word in program.output


@pytest.mark.parametrize("seconds", ["five", "-1", "0", "nan"])
def test_demo_refuses_a_bad_time(seconds: str, monkeypatch, capsys) -> None:
    """From the environment as from the command line."""
    monkeypatch.setenv("DEMO_SECONDS", seconds)
    for arguments in ([], [f"--seconds={seconds}"]):
        with pytest.raises(SystemExit) as ended:
            demo.main(arguments)
        assert ended.value.code == 2
        assert f"'{seconds}' is not a positive number of seconds" in capsys.readouterr().err


def test_demo_names_a_parameter_file_that_does_not_exist(start: Start) -> None:
    """The file, and no start."""
    program = start("-m", "delassus_ros.sim.demo", "--params-file", "nowhere.yaml")
    assert program.wait() == 2
    assert program.lines == ["delassus_demo: --params-file nowhere.yaml: no such file"]


def test_demo_finds_its_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the source tree or beside the installed package, else where ROS packages are."""
    # The file of the installed package is a copy of that of the source tree.
    assert demo.find_config().read_text() == (ROOT / "config" / "quadruped.yaml").read_text()
    monkeypatch.setattr(demo, "_SOURCE", tmp_path / "source")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "python"))
    prefixes = [tmp_path / "other", tmp_path / "install"]
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join(map(str, prefixes)))
    with pytest.raises(
        DelassusError, match=r"no quadruped.yaml found; looked for .*--params-file"
    ):
        demo.find_config()
    installed = prefixes[1] / "share" / "delassus_ros" / "config" / "quadruped.yaml"
    installed.parent.mkdir(parents=True)
    installed.touch()
    assert demo.find_config() == installed


def test_demo_keeps_the_users_ros_graph() -> None:
    """A domain of its own, but not where one was chosen."""
    own = demo.demo_environment({})
    assert 1 <= int(own["ROS_DOMAIN_ID"]) <= 101
    assert own["ROS_AUTOMATIC_DISCOVERY_RANGE"] == "LOCALHOST"
    assert Path(own["FASTRTPS_DEFAULT_PROFILES_FILE"]).is_file()
    assert own["FASTDDS_DEFAULT_PROFILES_FILE"] == own["FASTRTPS_DEFAULT_PROFILES_FILE"]
    chosen = {
        "ROS_DOMAIN_ID": "7",
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET",
        "FASTDDS_DEFAULT_PROFILES_FILE": "/my/profiles.xml",
    }
    assert demo.demo_environment(chosen) == chosen


# --- the simulator node -----------------------------------------------------------------------

SIMULATOR = ("-m", "delassus_ros.sim.simulator_node", "--ros-args", "-p")


class Listener(Domain):
    """Collects what the simulator publishes."""

    def __init__(self) -> None:
        super().__init__()
        self.joints: list[JointState] = []
        self.contacts: list[ActiveContacts] = []
        self.references: list[DelassusMatrix] = []
        self.descriptions: list[String] = []
        for kind, topic, store, qos in (
            (JointState, "joint_states", self.joints, 1000),
            (DelassusMatrix, "simulator/reference", self.references, 1000),
            (ActiveContacts, "active_contacts", self.contacts, LATCHED),
            (String, "robot_description", self.descriptions, LATCHED),
        ):
            self.peer.create_subscription(kind, topic, store.append, qos)


@pytest.fixture(name="listener")
def make_listener() -> Iterator[Listener]:
    with Listener() as listener:
        yield listener


def test_simulator_publishes_what_a_robot_would(start: Start, listener) -> None:
    """Topics, names, order, stamps, latching, pace, and the reference of each joint state."""
    node = listener
    program = start(*SIMULATOR, "rate:=200", domain=node.domain)
    node.until(lambda: len(node.joints) >= 300 and len(node.references) >= 300, "joint states")
    node.until(lambda: len(node.contacts) >= 3 and len(node.descriptions) == 1, "contacts")
    assert node.descriptions[0].data == demo_urdf()

    own = stepping_quadruped().joint_names
    for joints in node.joints:
        assert joints.name == sorted([*own, "gripper"])
        assert len(joints.position) == len(joints.velocity) == len(joints.effort) == 13
    stamps = [stamp_of(joints) for joints in node.joints]
    assert all(later > earlier for earlier, later in zip(stamps, stamps[1:], strict=False))

    # The set is repeated; its stamps are those of joint states.
    times = [stamp_of(contacts) for contacts in node.contacts]
    assert all(later > earlier for earlier, later in zip(times, times[1:], strict=False))
    for contacts in node.contacts:
        assert list(contacts.names) == ["LF", "RF", "LH", "RH"]
        assert len(contacts.status) == 4

    by_stamp = {stamp_of(reference): reference for reference in node.references}
    simulation = stepping_quadruped()
    places = [sorted([*own, "gripper"]).index(name) for name in own]
    checked = 0
    for joints in node.joints:
        reference = by_stamp.get(stamp_of(joints))
        if reference is None:
            continue
        simulation._data.qpos[7:] = np.array(joints.position)[places]
        expected = simulation.reference_all()
        difference = np.linalg.norm(matrix_to_numpy(reference) - expected)
        assert difference <= 1e-12 * np.linalg.norm(expected)
        assert list(reference.contacts) == ["LF", "RF", "LH", "RH"]
        checked += 1
    assert checked >= 100

    # Its joints move no faster than in the simulation; delays beyond 10 ms are not made good.
    ticks = node.references[-1].sequence - node.references[0].sequence
    elapsed = 1e-9 * (stamp_of(node.references[-1]) - stamp_of(node.references[0]))
    assert 0.005 * ticks - 0.02 < elapsed

    assert program.stop(signal.SIGTERM) == 0, program.output
    assert "Traceback" not in program.output


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("rate:=300", "parameter 'rate' is 300; expected a divisor of 1000"),
        pytest.param("rate:=0", "rate", marks=pytest.mark.slow),
        pytest.param("reference:=5", "reference", marks=pytest.mark.slow),
    ],
)
def test_simulator_refuses_bad_parameters(start: Start, parameter: str, words: str) -> None:
    """The parameter and the reason, in one line."""
    program = start(*SIMULATOR, parameter)
    assert program.wait() == 1
    assert words in program.output
    assert "Traceback" not in program.output


def test_simulator_without_reference(start: Start, listener) -> None:
    """Joint states come, the topic does not exist."""
    start(*SIMULATOR, "rate:=100", "-p", "reference:=false", domain=listener.domain)
    listener.until(lambda: len(listener.joints) >= 20, "joint states")
    assert listener.peer.count_publishers("simulator/reference") == 0
    assert listener.references == []


# --- the monitor node -------------------------------------------------------------------------


def test_monitor_by_itself(start: Start) -> None:
    """Relative topic names, remapped; told to stop, it sums up and judges."""
    remap = ["-r", "delassus:=delassus_node/delassus", "-r", "reference:=simulator/reference"]
    domain = new_domain()
    start(*SIMULATOR, "rate:=200", domain=domain)
    start(FAKE, "--fault", "wrong", "--after", "300", domain=domain)
    program = start("-m", "delassus_ros.monitor.monitor_node", "--ros-args", *remap, domain=domain)
    program.wait_for("DISAGREE")
    assert re.search(r"rate: [1-9]\d* Hz; latency: p50 \d+\.\d\d ms", program.output)
    assert program.stop(signal.SIGTERM) == 1
    assert re.search(r"^\d+ matrices, of m = ", program.output, re.MULTILINE)
    assert "matrices disagree with the reference" in program.output
    assert "Traceback" not in program.output


class Monitored(Domain):
    """A monitor in this process, and a publisher of matrices for it."""

    def __init__(self, **parameters: Any) -> None:
        super().__init__()
        self.monitor = MonitorNode(context=self.context, parameter_overrides=overrides(parameters))
        # It takes its messages itself.
        self.nodes.append(self.monitor)
        self.publisher = self.peer.create_publisher(DelassusMatrix, "delassus", 10)
        self.until(self.publisher.get_subscription_count, "subscription")


@pytest.mark.parametrize("simulated", [False, True])
def test_monitor_knows_no_latency_in_simulated_time(simulated: bool) -> None:
    """Messages arrive in another time than that of their stamps."""
    with Monitored(use_sim_time=simulated) as monitored:
        monitor = monitored.monitor
        monitored.publisher.publish(
            DelassusMatrix(row_offsets=[0], validity=DelassusMatrix.VALIDITY_OK, sequence=1)
        )
        monitored.until(lambda: monitor.poll() or monitor.agreement.matrices == 1, "matrix")
        assert ("latency p50 unknown, p99 unknown" in monitor.summary()) is simulated


def test_monitor_reports_messages_that_contradict_themselves() -> None:
    """The first of them, in words, and it counts against the run."""
    with Monitored() as monitored:
        monitor, matrices = monitored.monitor, monitored.publisher
        publisher = monitored.peer.create_publisher(ActiveContacts, "active_contacts", LATCHED)
        publisher.publish(ActiveContacts(names=["LF", "RF"], status=[2]))
        reasons = DelassusMatrix.REASON_JOINT_MISSING | DelassusMatrix.REASON_JOINT_NOT_FINITE
        matrices.publish(DelassusMatrix(sequence=1, validity=77))
        matrices.publish(DelassusMatrix(sequence=1, reasons=reasons))

        def arrived() -> bool:
            monitor.poll()
            return monitor.malformed is not None and monitor.agreement.invalid.total() == 1

        monitored.until(arrived, "messages")
        faults = monitor.faults()
        assert any("2 names and 1 status values" in fault for fault in faults)
        assert "1 INVALID (JOINT_MISSING + JOINT_NOT_FINITE: 1)" in faults
        assert any("publishers: 1 on /active_contacts" in fault for fault in faults)


# --- the demo itself --------------------------------------------------------------------------


@pytest.mark.needs("llvmlite")
@pytest.mark.parametrize("robot", but_slow(ROBOTS, "geared"))
def test_whole_demo(start: Start, robot: str) -> None:
    """The whole of it, with delassus_node: matrices of 2, 3 and 4 feet, agreeing to 1e-9."""
    for seconds in ("6", "24", "96"):
        program = start("-m", "delassus_ros.sim.demo", "--robot", robot, DEMO_SECONDS=seconds)
        status = program.wait()
        sizes = set(re.findall(r"\b(\d+) \(\d+ times\)", program.output))
        # Where the machine simulates at a part of the pace, not every set of feet has its turn.
        if status or sizes == {"6", "9", "12"}:
            break
    assert status == 0, program.output
    assert program.lines[-1] == "OK: all matrices agree with the physics engine"
    assert sizes == {"6", "9", "12"}


@pytest.mark.needs("llvmlite")
@pytest.mark.slow
def test_the_demo_bears_a_node_that_is_held_up(start: Start) -> None:
    """For longer than the middleware keeps joint states of 1 kHz: those that it loses are told."""
    program = start("-m", "delassus_ros.sim.demo", DEMO_SECONDS="1e9")
    program.wait_for("compared")
    node = program.child("delassus_ros.node.main")
    os.kill(node, signal.SIGSTOP)
    # A line each second.
    enough = len(program.lines) + 4
    program.until(lambda: len(program.lines) >= enough, "lines")
    os.kill(node, signal.SIGCONT)
    before = compared(program)
    program.until(lambda: compared(program) > before + 200, "comparisons")
    assert program.stop(signal.SIGINT) == 0, program.output
    assert re.search(r"[1-9]\d{2,} joint states unanswered", program.lines[-2]), program.output


def compared(program: Program) -> int:
    """Return how many matrices were compared, by the newest line."""
    counts = re.findall(r"(\d+) compared", program.output)
    return int(counts[-1]) if counts else 0


def test_two_demos_are_in_two_domains() -> None:
    """Beside each other, and beside tests, which claim theirs likewise."""
    code = (
        "import signal\n"
        "from delassus_ros.sim.demo import demo_environment\n"
        "print(demo_environment({})['ROS_DOMAIN_ID'], flush=True)\n"
        "signal.pause()\n"
    )
    with python("-c", code) as one, python("-c", code) as other:
        for each in (one, other):
            each.until(lambda each=each: each.output.endswith("\n"), "domain")
        assert len({int(one.output), int(other.output), new_domain()}) == 3
