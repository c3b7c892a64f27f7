"""Cost of recordings: ``python -m benchmarks.recordings`` writes docs/benchmarks/recordings.md.

Recordings of the demo's quadruped on changing feet; all figures are from one run. Processor times
of stages are those that ``delassus bag`` prints.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from delassus_msgs.msg import ActiveContacts
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from benchmarks.arguments import output_of
from delassus_ros import Robot
from delassus_ros.recordings.writer import RecordingWriter
from delassus_ros.sim import demo_urdf

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "recordings.md"
PARAMETERS = Path(__file__).resolve().parents[1] / "config" / "quadruped.yaml"
MINUTES = (1, 10, 60)
RATE = 200
"""Joint states per second of long recordings."""
COUNT, SECONDS = 50, 4.0
"""Recordings of many, and how long each is, at 1 kHz."""


def record(path: Path, seconds: float, rate: int) -> Path:
    """Write a recording."""
    robot = Robot.from_urdf(demo_urdf().encode())
    joints = JointState(name=robot.joint_names)
    touching = ActiveContacts()
    writer = RecordingWriter(path, {"/robot_description"})
    begin = 1_700_000_000_000_000_000
    writer.write("/robot_description", begin, String(data=demo_urdf()))
    for k in range(round(seconds * rate)):
        now = begin + k * 1_000_000_000 // rate
        stamp = divmod(now, 1_000_000_000)
        if k % (rate // 20) == 0:
            names = ("LF", "RH") if k // rate % 2 else ("RF", "LH")
            touching.names, touching.status = list(names), [ActiveContacts.ACTIVE] * 2
            touching.header.stamp.sec, touching.header.stamp.nanosec = stamp
            writer.write("/active_contacts", now, touching)
        bend = 0.2 * np.sin(2.0 * np.pi * k / rate)
        joints.position = [0.05, 0.6 + bend, -1.2 - 2.0 * bend] * 4
        joints.header.stamp.sec, joints.header.stamp.nanosec = stamp
        writer.write("/joint_states", now, joints)
    writer.close()
    return path


def bag(path: Path, out: Path, *options: str) -> tuple[dict[str, object], float, float]:
    """Run ``delassus bag``; return what it says, how long it took [s], and its memory [MB]."""
    command = [sys.executable, "-m", "delassus_ros.cli.main", "bag", str(path), "--json",
               "--params", str(PARAMETERS), "-o", str(out), *options]  # fmt: skip
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    said, _ = process.communicate()
    took = time.perf_counter() - began
    found: dict[str, object] = json.loads(said)
    # Of all children so far; runs go from short to long, so that growth is seen.
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024.0
    return found, took, memory


def many(paths: list[Path], out: Path, workers: int) -> float:
    """Run ``delassus bags``; return how long it took [s]."""
    command = [sys.executable, "-m", "delassus_ros.cli.main", "bags", *map(str, paths),
               "--params", str(PARAMETERS), "-o", str(out), "--workers", str(workers)]  # fmt: skip
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> int:
    """Measure and write the page."""
    output = output_of("recordings", __doc__, PAGE)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        lines = ["| recording | messages | took [s] | messages/s | peak memory [MB] |",
                 "|---|---|---|---|---|"]  # fmt: skip
        for minutes in MINUTES:
            path = record(folder / f"{minutes}.mcap", 60.0 * minutes, RATE)
            found, took, memory = bag(path, folder / "long")
            count = 60 * minutes * (RATE + 20) + 1
            lines.append(
                f"| {minutes} min at {RATE} Hz | {count} | {took:.1f} | {count / took:.0f} "
                f"| {memory:.0f} |"
            )
            print(lines[-1], flush=True)
            path.unlink()
        path = record(folder / "fast.mcap", 60.0, 1000)
        found, took, _ = bag(path, folder / "fast")
        stages = found["took"]
        assert isinstance(stages, dict)
        total = float(stages["in all"])
        shares = ["| stage | s | share |", "|---|---|---|"]
        words = {"reading": "reading, putting in order", "answering": "gates, messages, monitor",
                 "computing": "the kernel", "writing": "writing MCAP and Parquet"}  # fmt: skip
        for name, text in words.items():
            shares.append(f"| {text} | {stages[name]:.2f} | {100 * stages[name] / total:.1f} % |")
        print("\n".join(shares), flush=True)
        paths = [record(folder / f"{k:03d}.mcap", SECONDS, 1000) for k in range(COUNT)]
        times = [many(paths, folder / f"many{workers}", workers) for workers in (1, 2)]
    messages = COUNT * round(SECONDS * 1020)
    processors = os.cpu_count() or 1
    output.write_text(
        "# Benchmark: recordings\n\n"
        "Written by `python -m benchmarks.recordings`, on one machine in one run: a quadruped on\n"
        f"changing feet, {processors} processors, to MCAP and Parquet.\n\n"
        "## One recording, however long\n\n" + "\n".join(lines) + "\n\n"
        f"## Where the time goes\n\nOne minute at 1 kHz, {60_000 / total:.0f} matrices per second:"
        "\n\n" + "\n".join(shares) + "\n\n"
        "## Many recordings\n\n"
        f"{COUNT} recordings of {SECONDS:g} s at 1 kHz, {messages} messages, by "
        "`delassus bags`:\n\n"
        "| workers | s | messages/s |\n|---|---|---|\n"
        f"| 1 | {times[0]:.1f} | {messages / times[0]:.0f} |\n"
        f"| 2 | {times[1]:.1f} | {messages / times[1]:.0f} |\n\n"
        f"Two workers are {times[0] / times[1]:.2f} times one.\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
