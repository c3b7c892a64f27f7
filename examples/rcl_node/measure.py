"""Latency and processor time of the node in C beside those of delassus_node, in turns of 2 s.

``python measure.py ./delassus_rcl_node CONFIG.yaml ROBOT.urdf --rate 1000`` starts both nodes,
sends joint states to one at a time, and prints times from publishing a joint state to its matrix
and processor time per joint state [µs]. Times include the Python program that sends and receives.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import rclpy
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs_py import SerializedMessage
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from delassus import Robot
from delassus_ros.verbs.parameter_files import settings_of

NODES = {"C": "in_c", "Python": "in_python"}
TURN_S = 2.0
BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
STAMP = {"stamp": ("header.stamp.sec", "header.stamp.nanosec")}


def processor_time(process: subprocess.Popen[bytes]) -> float:
    """Return user and system time of a process so far [s]."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Client:
    """Sends joint states to the nodes and notes when their matrices come."""

    def __init__(self, config: str, urdf: Path) -> None:
        self.node = rclpy.create_node("measure", enable_rosout=False)
        self.executor = EventsExecutor()
        self.executor.add_node(self.node)
        robot = Robot.from_urdf(urdf)
        names = list(settings_of(config).contacts.names)
        active = ActiveContacts(names=names, status=[ActiveContacts.ACTIVE] * len(names))
        state = JointState(name=list(robot.joint_names), position=[0.0] * robot.nq)
        self.state = SerializedMessage(state, STAMP, ("position",))
        self.active = active
        self.sent = 0.0
        self.answer: bytes | None = None
        self.publishers, self.sets = {}, []
        for label, namespace in NODES.items():
            prefix = f"/{namespace}"
            self.publishers[label] = self.node.create_publisher(
                JointState, f"{prefix}/joint_states", BEST_EFFORT
            )
            self.sets.append(
                self.node.create_publisher(ActiveContacts, f"{prefix}/active_contacts", LATCHED)
            )
            topic = f"{prefix}/delassus_node/delassus"
            self.node.create_subscription(
                DelassusMatrix, topic, self.on_matrix, BEST_EFFORT, raw=True
            )

    def on_matrix(self, data: bytes) -> None:
        """Note the time of a matrix."""
        self.answer = data
        self.latencies.append(1e6 * (time.perf_counter() - self.sent))

    def touch(self) -> None:
        """Repeat the contacts."""
        now = time.time_ns()
        self.active.header.stamp.sec, self.active.header.stamp.nanosec = divmod(now, 10**9)
        for publisher in self.sets:
            publisher.publish(self.active)

    def turn(self, label: str, rate: float, seconds: float) -> list[float]:
        """Send joint states to one node for a time; return the latencies [µs]."""
        self.latencies: list[float] = []
        publisher, position = self.publishers[label], self.state.arrays["position"]
        begun, touched = time.perf_counter(), 0.0
        for k in range(round(rate * seconds)):
            due = begun + k / rate
            while (rest := due - time.perf_counter()) > 0:
                self.executor.spin_once(timeout_sec=rest)
            if time.perf_counter() - touched > 0.1:
                touched = time.perf_counter()
                self.touch()
            position[:] = 0.3 * np.sin(3e-3 * k + np.arange(position.size))
            self.state.set("stamp", *divmod(time.time_ns(), 10**9))
            self.sent = time.perf_counter()
            publisher.publish(self.state.to_bytes())
        until = time.perf_counter() + 0.1
        while (rest := until - time.perf_counter()) > 0:
            self.executor.spin_once(timeout_sec=rest)
        return self.latencies


def main() -> int:
    """Read the arguments, run both nodes and print a table."""
    parser = argparse.ArgumentParser("measure.py", description=__doc__)
    parser.add_argument("program", help="the compiled node")
    parser.add_argument("config", help="parameter file of delassus_node, with autostart")
    parser.add_argument("urdf", type=Path, help="the robot description")
    parser.add_argument("--rate", type=float, default=1000.0, help="joint states per second")
    parser.add_argument("--turns", type=int, default=5, help="turns of each node")
    options = parser.parse_args()
    description = f"robot_description:={options.urdf.read_text()}"
    python = [sys.executable, "-m", "delassus_ros.node.main"]
    more = ["--params-file", options.config, "-p", description]
    # numpy's LAPACK starts threads unless told otherwise; delassus_node does so by itself.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    rclpy.init()
    processes = {
        label: subprocess.Popen(
            [*command, "--ros-args", "-r", f"__ns:=/{NODES[label]}", *arguments], env=environment
        )
        for label, command, arguments in (("C", [options.program], []), ("Python", python, more))
    }
    try:
        client = Client(options.config, options.urdf)
        for label in NODES:
            for _ in range(30):
                client.turn(label, 100.0, 1.0)
                answer = client.answer
                if answer and deserialize_message(answer, DelassusMatrix).validity:
                    break
            else:
                print(f"the node in {label} does not answer", file=sys.stderr)
                return 1
            client.answer = None
        found: dict[str, list[float]] = {label: [] for label in NODES}
        used, sent = dict.fromkeys(NODES, 0.0), round(options.rate * TURN_S)
        for _ in range(options.turns):
            for label, process in processes.items():
                before = processor_time(process)
                found[label] += client.turn(label, options.rate, TURN_S)
                used[label] += processor_time(process) - before
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait()
    print(f"{options.rate:g} joint states per second, {options.turns} turns of {TURN_S:g} s")
    for label, latencies in found.items():
        p50, p999 = np.percentile(latencies, [50, 99.9])
        processor = 1e6 * used[label] / (options.turns * sent)
        print(
            f"{label:7} p50 {p50:6.0f} µs, p99.9 {p999:6.0f} µs, processor {processor:5.0f} µs, "
            f"answered {100 * len(latencies) / (options.turns * sent):.1f} %"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
