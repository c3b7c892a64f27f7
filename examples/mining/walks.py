"""Records simulated walks: ``python -m mining.walks --count 50 -o walks`` from ``examples``.

The quadruped of ``whole_body_control`` trots over floors of different friction, in a direction of
its own each time; in two of five walks it stretches its knees first. What a robot would publish is
recorded: joint states, contacts, odometry, its description. Whether a foot slides, the simulator
knows; a recording does not say it, and a file beside it does, to check what is found.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from control.simulate import run
from delassus_msgs.msg import ActiveContacts
from geometry_msgs.msg import Vector3
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from whole_body_control.example import EXAMPLE
from whole_body_control.gait import LEGS, Act

from delassus_ros.recordings.writer import RecordingWriter
from delassus_ros.sim.gait import TouchState
from delassus_ros.sim.plant import Plant, PlantSettings

BEGIN = 1_700_000_000_000_000_000
"""When the first walk began [ns]."""


def acts(number: int) -> list[Act]:
    """Return what the robot does in a walk."""
    rng = np.random.default_rng(number)
    heading = rng.uniform(-0.6, 0.6)
    speed = rng.uniform(0.15, 0.4)
    velocity = (float(speed * np.cos(heading)), float(0.4 * speed * np.sin(heading)))
    tall = [Act("rise", 0.5, height=0.09), Act("sink", 0.4)] if number % 5 < 2 else []
    return [Act("stand", 0.2), *tall, Act("trot", 60.0, velocity=velocity, trotting=True)]


def friction(number: int) -> float:
    """Return the friction of a walk's floor: one in three is wet."""
    return 0.2 if number % 3 == 0 else 0.8


def record(number: int, folder: Path, seconds: float) -> Path:
    """Record a walk, and beside it which feet slid, tick by tick."""
    path = folder / f"walk{number:03d}.mcap"
    writer = RecordingWriter(path, {"/robot_description"})
    begin = BEGIN + number * 3600 * 10**9
    times: list[int] = []
    slides: list[list[bool]] = []

    def look(plant: Plant, now: float) -> None:
        time = begin + round(1e9 * now)
        if not times:
            writer.write("/robot_description", time, String(data=plant.urdf))
        sensed, states = plant.sense(), plant.contact_states
        times.append(time)
        slides.append([state is TouchState.SLIPPING for state in states])
        contacts = ActiveContacts(names=list(LEGS))
        contacts.status = [
            ActiveContacts.ACTIVE if state.touches else ActiveContacts.INACTIVE for state in states
        ]
        odometry = Odometry(child_frame_id="base")
        odometry.header.frame_id = "odom"
        for name, value in zip("xyzw", sensed.orientation, strict=True):
            setattr(odometry.pose.pose.orientation, name, float(value))
        linear, angular = sensed.twist[:3].tolist(), sensed.twist[3:].tolist()
        odometry.twist.twist.linear = Vector3(**dict(zip("xyz", linear, strict=True)))
        odometry.twist.twist.angular = Vector3(**dict(zip("xyz", angular, strict=True)))
        joints = JointState(
            name=list(plant.joint_names), position=sensed.q.tolist(),
            velocity=sensed.velocity.tolist(), effort=sensed.effort.tolist(),
        )  # fmt: skip
        for topic, message in (
            ("/active_contacts", contacts), ("/odometry", odometry), ("/joint_states", joints),
        ):  # fmt: skip
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(time, 10**9)
            writer.write(topic, time, message)

    settings = PlantSettings(friction=friction(number), seed=number)
    run(EXAMPLE, seconds, acts(number), settings, look)
    writer.close()
    np.savez_compressed(path.with_suffix(".npz"), time=times, slides=slides)
    return path


def main() -> int:
    """Record all walks, as many at once as there are processors."""
    parser = argparse.ArgumentParser(description="Record simulated walks.")
    parser.add_argument(
        "--count", type=int, default=50, help="number of walks (default: %(default)s)"
    )
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="duration of a walk [s] (default: %(default)s)"
    )
    parser.add_argument(
        "-o", "--output", type=Path, default=Path("walks"), help="folder that is written"
    )
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    job = partial(record, folder=options.output, seconds=options.seconds)
    with ProcessPoolExecutor() as pool:
        for path in pool.map(job, range(options.count)):
            print(path, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
