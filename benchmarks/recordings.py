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

from benchmarks import pages
from benchmarks.arguments import output_of
from benchmarks.pages import Places, table
from delassus import Robot
from delassus.robots.built_in import demo_urdf
from delassus_ros.recordings.writer import RecordingWriter

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


def delassus(*arguments: object) -> tuple[str, float]:
    """Run ``delassus`` with the parameters; return its output, and how long it took [s]."""
    command = [sys.executable, "-m", "delassus_ros.verbs.main", *map(str, arguments),
               "--params", str(PARAMETERS)]  # fmt: skip
    began = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout, time.perf_counter() - began


def main() -> int:
    """Measure and write the page."""
    output = output_of("recordings", __doc__, PAGE)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        long = [_long(folder, minutes) for minutes in MINUTES]
        path = record(folder / "fast.mcap", 60.0, 1000)
        printed, _ = delassus("bag", path, "--json", "-o", folder / "fast")
        paths = [record(folder / f"{k:03d}.mcap", SECONDS, 1000) for k in range(COUNT)]
        times = {
            n: delassus("bags", *paths, "-o", folder / f"many{n}", "--workers", n)[1]
            for n in (1, 2)
        }
    stages = json.loads(printed)["took"]
    pages.write(output, "benchmarks/recordings", places(long, stages, times))
    return 0


def _long(folder: Path, minutes: int) -> list[str]:
    """Return the row of a recording of so many minutes."""
    path = record(folder / f"{minutes}.mcap", 60.0 * minutes, RATE)
    _, took = delassus("bag", path, "--json", "-o", folder / "long")
    # Of all children so far; runs go from short to long, so that growth is seen.
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024.0  # MB
    path.unlink()
    count = 60 * minutes * (RATE + 20) + 1
    row = [f"{minutes} min at {RATE} Hz", str(count), f"{took:.1f}", f"{count / took:.0f}",
           f"{memory:.0f}"]  # fmt: skip
    print(*row, sep=", ", flush=True)
    return row


def places(long: list[list[str]], stages: dict[str, float], times: dict[int, float]) -> Places:
    """Return the results of the page by place.

    Parameters
    ----------
    long : rows of long recordings.
    stages : processor times of one minute at 1 kHz by stage [s].
    times : of many recordings by number of workers [s].
    """
    total, messages = stages["in all"], COUNT * round(SECONDS * 1020)
    shares = [
        [text, f"{stages[name]:.2f}", f"{100 * stages[name] / total:.1f} %"]
        for name, text in _STAGES.items()
    ]
    workers = [[n, f"{took:.1f}", f"{messages / took:.0f}"] for n, took in times.items()]
    return {
        "processors": os.cpu_count() or 1, "rate": f"{60_000 / total:.0f}", "count": COUNT,
        "seconds": f"{SECONDS:g}", "messages": messages,
        "long": table(_HEAD, long),
        "stages": table(["stage", "s", "share"], shares),
        "workers": table(["workers", "s", "messages/s"], workers, 0),
        "ratio": f"{times[1] / times[2]:.2f}",
    }  # fmt: skip


_HEAD = ("recording", "messages", "took [s]", "messages/s", "peak memory [MB]")
_STAGES = {
    "reading": "reading, putting in order",
    "answering": "gates, messages, monitor",
    "computing": "the kernel",
    "writing": "writing MCAP and Parquet",
}


if __name__ == "__main__":
    sys.exit(main())
