"""The demo and its nodes, end to end, in processes of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
from hanging import HANG_S

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")
pytest.importorskip("mujoco", reason="the physics engine (extra 'sim') is not installed")
pytest.importorskip("delassus_msgs", reason="the message package delassus_msgs is not installed")

import rclpy  # noqa: E402
from child_processes import children_of, ended  # noqa: E402
from delassus_msgs.msg import ActiveContacts, DelassusMatrix  # noqa: E402
from delassus_msgs_py import matrix_to_numpy  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.node import Node  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: E402
from ros_domains import new_domain  # noqa: E402
from seeds import but_slow  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import String  # noqa: E402

from delassus_ros.errors import DelassusError  # noqa: E402
from delassus_ros.sim import ROBOTS, demo, demo_urdf  # noqa: E402
from delassus_ros.sim.quadruped import stepping_quadruped  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FAKE = Path(__file__).parents[1] / "fake_delassus_node.py"


def environment(**extra: str) -> dict[str, str]:
    """Environment of a child: this source tree first, and nothing of the user's ROS graph."""
    own = {k: v for k, v in os.environ.items() if k not in ("ROS_DOMAIN_ID", "DEMO_SECONDS")}
    own["PYTHONPATH"] = os.pathsep.join(p for p in (str(ROOT), own.get("PYTHONPATH", "")) if p)
    own["ROS_DOMAIN_ID"] = str(new_domain())
    return own | extra


class Program:
    """A child process whose lines are collected while it runs."""

    def __init__(self, arguments: list[str], **extra: str) -> None:
        self.lines: list[str] = []
        self.process = subprocess.Popen(
            [sys.executable, "-u", *arguments],
            env=environment(**extra),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(line.rstrip("\n") for line in self.process.stdout)

    @property
    def text(self) -> str:
        """Everything it said."""
        return "\n".join(self.lines)

    def finish(self) -> int:
        """Wait for its end and return the status."""
        status = self.process.wait(HANG_S)
        self._reader.join(HANG_S)
        return status

    def stop(self) -> None:
        """Kill it if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.finish()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(name="start")
def make_start() -> Iterator[Callable[..., Program]]:
    """Start programs; all end with the test."""
    programs: list[Program] = []

    def start(arguments: list[str], **extra: str) -> Program:
        programs.append(Program(arguments, **extra))
        return programs[-1]

    yield start
    for program in programs:
        program.stop()


def wait_for(condition: Callable[[], bool], program: Program | None = None) -> None:
    """Wait until a condition holds; fail after the limit or when the program is gone."""
    deadline = time.monotonic() + HANG_S
    while not condition():
        gone = program is not None and program.process.poll() is not None
        assert time.monotonic() < deadline and not gone, program.text if program else "in vain"
        time.sleep(0.01)


def fake_demo(seconds: float, *fake: str, first_limit: float = HANG_S) -> list[str]:
    """Arguments that run the demo with the fake node in place of delassus_node."""
    code = (
        "import sys\n"
        "from delassus_ros.sim import demo\n"
        "from delassus_ros.processes import Command\n"
        "from pathlib import Path\n"
        "simulator = demo.demo_commands(Path('unused'))[0]\n"
        # The whole demo, below, has the full rate.
        "simulator.arguments.extend(['-p', 'rate:=200'])\n"
        f"fake = Command('delassus_node', [sys.executable, {str(FAKE)!r}, *{list(fake)!r}])\n"
        f"sys.exit(demo.run([simulator, fake], {seconds!r}, {first_limit!r}))\n"
    )
    return ["-c", code]


# --- the demo with a fake node ----------------------------------------------------------------


@pytest.mark.slow
def test_demo_passes_when_matrices_agree(start: Callable[..., Program]) -> None:
    """Ends by itself, status 0, with the figures of the run."""
    program = start(fake_demo(3.0))
    assert program.finish() == 0, program.text
    assert program.lines[-1] == "OK: all matrices agree with the physics engine"
    summary = program.lines[-2]
    assert re.match(r"\d+\.\d s, \d+ Hz: \d+ matrices, of m = .*\b12 \(\d+ times\)", summary)
    assert re.search(r"\b[1-9]\d* compared, worst error 0.0e\+00", summary)
    lines = [line for line in program.lines if line.startswith("active contacts: ")]
    assert lines
    assert "\x1b" not in program.text


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
def test_demo_fails_on_any_disagreement(
    start: Callable[..., Program], fault: str, words: str
) -> None:
    """A run that began well, then was wrong by 1e-8, of the wrong contacts, or had holes."""
    program = start(fake_demo(2.0, "--fault", fault, "--after", "60"))
    assert program.finish() == 1, program.text
    assert re.search(words, program.text)
    assert ("fault: first: stamp " in program.text) == (fault != "lossy")
    assert program.lines[-1] == "FAIL" or "FAIL" in program.lines


@pytest.mark.parametrize(("fault", "count"), [
    ("invalid", r"[1-9]\d*"), pytest.param("silent", "0", marks=pytest.mark.slow),
])  # fmt: skip
def test_demo_fails_without_matrices(
    start: Callable[..., Program], fault: str, count: str
) -> None:
    """Only INVALID messages, or none: says what it saw, and what the nodes said last."""
    # On a busy machine it takes them longer to find each other.
    for limit in (6, 40, 400):
        program = start(fake_demo(2.0, "--fault", fault, first_limit=float(limit)))
        assert program.finish() == 1, program.text
        if re.search(rf"fault: {count} INVALID", program.text):
            break
    assert f"fault: no matrix arrived within {limit} s" in program.lines
    assert re.search(rf"fault: {count} INVALID", program.text)
    if fault == "invalid":
        assert "INVALID (NOT_CONFIGURED: " in program.text
    assert "1 on /delassus_node/delassus" in program.text
    assert "--- simulator (exit status 0), last output:" in program.text


def test_demo_tells_of_a_node_that_died(start: Callable[..., Program]) -> None:
    """Name, status and last words of the node; not a wait for the end."""
    program = start(fake_demo(HANG_S, "--fault", "die", "--after", "100"))
    assert program.finish() == 1
    assert "fault: delassus_node ended by itself with status 3" in program.lines
    assert "--- delassus_node (exit status 3), last output:" in program.lines
    assert "the fake node dies on purpose" in program.lines


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_demo_stops_cleanly_on_signals(start: Callable[..., Program], number: int) -> None:
    """Verdict and status as at its own end, no traceback, no process left."""
    program = start(fake_demo(1e9))
    wait_for(lambda: any("compared" in line for line in program.lines), program)
    children = children_of(program.process.pid)
    assert len(children) == 2
    program.process.send_signal(number)
    assert program.finish() == 0, program.text
    assert program.lines[-1] == "OK: all matrices agree with the physics engine"
    assert "Traceback" not in program.text
    assert "had to kill" not in program.text
    assert all(ended(pid) for pid in children)


def test_demo_interrupted_before_the_first_matrix_fails(start: Callable[..., Program]) -> None:
    """Stopped before anything was compared: no success."""
    program = start(fake_demo(1e9, "--fault", "silent"))
    wait_for(
        lambda: any("waiting for the first matrix" in line for line in program.lines), program
    )
    program.process.send_signal(signal.SIGINT)
    assert program.finish() == 1
    assert "fault: no matrix arrived" in program.lines
    # Whether they have found each other by then or not.
    assert re.search(r"publishers: .*\b[01] on /delassus_node/delassus", program.text)
    assert "Traceback" not in program.text


# --- the demo's own arguments -----------------------------------------------------------------


def test_demo_help_tells_how_to_end_it(start: Callable[..., Program]) -> None:
    """The options, the variable and the exit status."""
    program = start(["-m", "delassus_ros.sim.demo", "--help"])
    assert program.finish() == 0, program.text
    for word in ("--seconds", "DEMO_SECONDS", "--params-file", "Exit status", "ROS_DOMAIN_ID"):
        assert word in program.text


@pytest.mark.parametrize("seconds", ["five", "-1", "0", "nan"])
def test_demo_refuses_a_bad_time(seconds: str, monkeypatch, capsys) -> None:
    """From the environment as from the command line."""
    monkeypatch.setenv("DEMO_SECONDS", seconds)
    for arguments in ([], [f"--seconds={seconds}"]):
        with pytest.raises(SystemExit) as ended:
            demo.main(arguments)
        assert ended.value.code == 2
        assert f"'{seconds}' is not a positive number of seconds" in capsys.readouterr().err


def test_demo_names_a_parameter_file_that_does_not_exist(start: Callable[..., Program]) -> None:
    """The file, and no start."""
    program = start(["-m", "delassus_ros.sim.demo", "--params-file", "nowhere.yaml"])
    assert program.finish() == 2
    assert program.text == "delassus_demo: --params-file nowhere.yaml: no such file"


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

DOMAIN = str(new_domain())


class Listener(Node):
    """Collects what the simulator publishes."""

    def __init__(self, context: rclpy.Context) -> None:
        super().__init__("listener", context=context)
        self.joints: list[JointState] = []
        self.contacts: list[ActiveContacts] = []
        self.references: list[DelassusMatrix] = []
        self.descriptions: list[String] = []
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        for kind, topic, store, qos in (
            (JointState, "joint_states", self.joints, 1000),
            (DelassusMatrix, "simulator/reference", self.references, 1000),
            (ActiveContacts, "active_contacts", self.contacts, latched),
            (String, "robot_description", self.descriptions, latched),
        ):
            self.create_subscription(kind, topic, store.append, qos)


@pytest.fixture(name="listener")
def make_listener() -> Iterator[tuple[Listener, Callable[[Callable[[], bool]], None]]]:
    """Return a listener and a way to spin it until a condition holds."""
    context = rclpy.Context()
    rclpy.init(args=[], context=context, domain_id=int(DOMAIN))
    executor = SingleThreadedExecutor(context=context)
    listener = Listener(context)
    executor.add_node(listener)

    def spin_until(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + HANG_S
        while not condition():
            assert time.monotonic() < deadline, "waited in vain"
            executor.spin_once(timeout_sec=0.1)

    yield listener, spin_until
    executor.shutdown()
    listener.destroy_node()
    rclpy.shutdown(context=context)


def nanoseconds(message: JointState | DelassusMatrix | ActiveContacts) -> int:
    """Stamp of a message, ns."""
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def test_simulator_publishes_what_a_robot_would(start: Callable[..., Program], listener) -> None:
    """Topics, names, order, stamps, latching, pace, and the reference of each joint state."""
    node, spin_until = listener
    program = start(
        ["-m", "delassus_ros.sim.simulator_node", "--ros-args", "-p", "rate:=200"],
        ROS_DOMAIN_ID=DOMAIN,
    )
    spin_until(
        lambda: (
            len(node.joints) >= 300
            and len(node.references) >= 300
            and len(node.contacts) >= 3
            and len(node.descriptions) == 1
        )
    )
    assert node.descriptions[0].data == demo_urdf()

    own = stepping_quadruped().joint_names
    for joints in node.joints:
        assert joints.name == sorted([*own, "gripper"])
        assert len(joints.position) == len(joints.velocity) == len(joints.effort) == 13
    stamps = [nanoseconds(joints) for joints in node.joints]
    assert all(later > earlier for earlier, later in zip(stamps, stamps[1:], strict=False))

    # The set is repeated; its stamps are those of joint states.
    times = [nanoseconds(contacts) for contacts in node.contacts]
    assert all(later > earlier for earlier, later in zip(times, times[1:], strict=False))
    for contacts in node.contacts:
        assert list(contacts.names) == ["LF", "RF", "LH", "RH"]
        assert len(contacts.status) == 4

    by_stamp = {nanoseconds(reference): reference for reference in node.references}
    simulation = stepping_quadruped()
    places = [sorted([*own, "gripper"]).index(name) for name in own]
    checked = 0
    for joints in node.joints:
        reference = by_stamp.get(nanoseconds(joints))
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
    elapsed = 1e-9 * (nanoseconds(node.references[-1]) - nanoseconds(node.references[0]))
    assert 0.005 * ticks - 0.02 < elapsed

    program.process.send_signal(signal.SIGTERM)
    assert program.finish() == 0, program.text
    assert "Traceback" not in program.text


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        ("rate:=300", "parameter 'rate' is 300; expected a divisor of 1000"),
        pytest.param("rate:=0", "rate", marks=pytest.mark.slow),
        pytest.param("reference:=5", "reference", marks=pytest.mark.slow),
    ],
)
def test_simulator_refuses_bad_parameters(
    start: Callable[..., Program], parameter: str, words: str
) -> None:
    """The parameter and the reason, in one line."""
    program = start(
        ["-m", "delassus_ros.sim.simulator_node", "--ros-args", "-p", parameter],
        ROS_DOMAIN_ID=DOMAIN,
    )
    assert program.finish() == 1
    assert words in program.text
    assert "Traceback" not in program.text


def test_simulator_without_reference(start: Callable[..., Program], listener) -> None:
    """Joint states come, the topic does not exist."""
    node, spin_until = listener
    arguments = ["-p", "rate:=100", "-p", "reference:=false"]
    start(
        ["-m", "delassus_ros.sim.simulator_node", "--ros-args", *arguments], ROS_DOMAIN_ID=DOMAIN
    )
    spin_until(lambda: len(node.joints) >= 20)
    assert node.count_publishers("simulator/reference") == 0
    assert node.references == []


# --- the monitor node -------------------------------------------------------------------------


def test_monitor_by_itself(start: Callable[..., Program]) -> None:
    """Relative topic names, remapped; told to stop, it sums up and judges."""
    remap = ["-r", "delassus:=delassus_node/delassus", "-r", "reference:=simulator/reference"]
    simulator = ["-m", "delassus_ros.sim.simulator_node", "--ros-args", "-p", "rate:=200"]
    start(simulator, ROS_DOMAIN_ID=DOMAIN)
    start([str(FAKE), "--fault", "wrong", "--after", "300"], ROS_DOMAIN_ID=DOMAIN)
    program = start(
        ["-m", "delassus_ros.monitor.monitor_node", "--ros-args", *remap], ROS_DOMAIN_ID=DOMAIN
    )
    wait_for(lambda: "DISAGREE" in program.text, program)
    assert re.search(r"rate: [1-9]\d* Hz; latency: p50 \d+\.\d\d ms", program.text)
    program.process.send_signal(signal.SIGTERM)
    assert program.finish() == 1
    assert re.search(r"^\d+ matrices, of m = ", program.text, re.MULTILINE)
    assert "matrices disagree with the reference" in program.text
    assert "Traceback" not in program.text


@pytest.mark.parametrize("simulated", [False, True])
def test_monitor_knows_no_latency_in_simulated_time(simulated: bool) -> None:
    """Messages arrive in another time than that of their stamps."""
    from delassus_ros.monitor.monitor_node import MonitorNode

    context = rclpy.Context()
    rclpy.init(args=[], context=context, domain_id=int(DOMAIN))
    try:
        parameters = [Parameter("use_sim_time", value=simulated)]
        node = MonitorNode(context=context, parameter_overrides=parameters)
        matrices = node.create_publisher(DelassusMatrix, "delassus", 10)
        wait_for(lambda: matrices.get_subscription_count() == 1)
        matrices.publish(
            DelassusMatrix(row_offsets=[0], validity=DelassusMatrix.VALIDITY_OK, sequence=1)
        )
        wait_for(lambda: node.poll() or node.agreement.matrices == 1)
        assert ("latency p50 unknown, p99 unknown" in node.summary()) is simulated
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)


def test_monitor_reports_messages_that_contradict_themselves() -> None:
    """The first of them, in words, and it counts against the run."""
    from delassus_ros.monitor.monitor_node import MonitorNode

    context = rclpy.Context()
    rclpy.init(args=[], context=context, domain_id=int(DOMAIN))
    try:
        node = MonitorNode(context=context)
        latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        publisher = node.create_publisher(ActiveContacts, "active_contacts", latched)
        publisher.publish(ActiveContacts(names=["LF", "RF"], status=[2]))
        matrices = node.create_publisher(DelassusMatrix, "delassus", 10)
        wait_for(lambda: matrices.get_subscription_count() == 1)
        reasons = DelassusMatrix.REASON_JOINT_MISSING | DelassusMatrix.REASON_JOINT_NOT_FINITE
        matrices.publish(DelassusMatrix(sequence=1, validity=77))
        matrices.publish(DelassusMatrix(sequence=1, reasons=reasons))

        def arrived() -> bool:
            node.poll()
            return node.malformed is not None and node.agreement.invalid.total() == 1

        wait_for(arrived)
        faults = node.faults()
        assert any("2 names and 1 status values" in fault for fault in faults)
        assert "1 INVALID (JOINT_MISSING + JOINT_NOT_FINITE: 1)" in faults
        assert any("publishers: 1 on /active_contacts" in fault for fault in faults)
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)


# --- the demo itself --------------------------------------------------------------------------


@pytest.mark.parametrize("robot", but_slow(ROBOTS, "geared"))
def test_whole_demo(start: Callable[..., Program], robot: str) -> None:
    """The whole of it, with delassus_node: matrices of 2, 3 and 4 feet, agreeing to 1e-9."""
    pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    for seconds in ("6", "24", "96"):
        program = start(["-m", "delassus_ros.sim.demo", "--robot", robot], DEMO_SECONDS=seconds)
        status = program.finish()
        sizes = set(re.findall(r"\b(\d+) \(\d+ times\)", program.text))
        # Where the machine simulates at a part of the pace, not every set of feet has its turn.
        if status or sizes == {"6", "9", "12"}:
            break
    assert status == 0, program.text
    assert program.lines[-1] == "OK: all matrices agree with the physics engine"
    assert sizes == {"6", "9", "12"}


@pytest.mark.slow
def test_the_demo_bears_a_node_that_is_held_up(start: Callable[..., Program]) -> None:
    """For longer than the middleware keeps joint states of 1 kHz: those that it loses are told."""
    pytest.importorskip("llvmlite", reason="llvmlite is not installed")
    program = start(["-m", "delassus_ros.sim.demo"], DEMO_SECONDS="1e9")
    wait_for(lambda: any("compared" in line for line in program.lines), program)
    node = process_of(program, "delassus_ros.node.main")
    os.kill(node, signal.SIGSTOP)
    # A line each second.
    enough = len(program.lines) + 4
    wait_for(lambda: len(program.lines) >= enough, program)
    os.kill(node, signal.SIGCONT)
    before = compared(program)
    wait_for(lambda: compared(program) > before + 200, program)
    program.process.send_signal(signal.SIGINT)
    assert program.finish() == 0, program.text
    assert re.search(r"[1-9]\d{2,} joint states unanswered", program.lines[-2]), program.text


def process_of(program: Program, words: str) -> int:
    """Return the child process with these words in its command line."""
    (found,) = [
        pid
        for pid in children_of(program.process.pid)
        if words in Path(f"/proc/{pid}/cmdline").read_text()
    ]
    return found


def compared(program: Program) -> int:
    """Return how many matrices were compared, by the newest line."""
    counts = re.findall(r"(\d+) compared", program.text)
    return int(counts[-1]) if counts else 0


def test_two_demos_are_in_two_domains() -> None:
    """Beside each other, and beside tests, which claim theirs likewise."""
    code = (
        "import sys\n"
        "from delassus_ros.sim.demo import demo_environment\n"
        "print(demo_environment({})['ROS_DOMAIN_ID'], flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code]
    with ExitStack() as stack:
        demos = [
            stack.enter_context(
                subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            )
            for _ in range(2)
        ]
        told = [int(each.stdout.readline()) for each in demos]
        assert len({*told, new_domain()}) == 3
        for each in demos:
            each.stdin.close()
