"""Configurations over time: of recordings and tables, as the viewer shows them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import robots

from delassus import Contact, InputError, Problem, Robot
from delassus.tables.joint_tables import Source
from delassus.tables.trajectory import configurations


@pytest.mark.needs("pyarrow")
def test_a_table_has_its_rows_as_times_or_its_time_stamps(tmp_path: Path) -> None:
    robot = Robot.from_urdf(robots.quadruped())
    problem = Problem(robot, [Contact("LF", "LF_FOOT")])
    Q = np.random.default_rng(0).uniform(-0.3, 0.3, (7, robot.nq))
    np.save(tmp_path / "q.npy", Q)
    seconds, found = configurations(Source(tmp_path / "q.npy"), problem)
    np.testing.assert_array_equal(seconds, np.arange(7.0))
    np.testing.assert_array_equal(found, Q)
    names = ",".join(robot.joint_names)
    rows = "\n".join(f"{0.1 * k}," + ",".join(map(repr, q.tolist())) for k, q in enumerate(Q))
    (tmp_path / "q.csv").write_text(f"timestamp,{names}\n{rows}\n")
    seconds, found = configurations(Source(tmp_path / "q.csv"), problem)
    np.testing.assert_allclose(seconds, 0.1 * np.arange(7.0))
    np.testing.assert_array_equal(found, Q)


def test_a_recording_has_its_joint_states_over_time(tmp_path: Path) -> None:
    for package in ("mcap", "rclpy", "delassus_msgs"):
        import_module(package)
    from recordings_support import BEGIN, STEP, positions, walk, write

    from delassus_ros.recordings.positions import recorded_positions

    robot = Robot.from_urdf(robots.quadruped())
    path = write(tmp_path / "run.mcap", walk(20))
    warnings: list[str] = []
    seconds, Q = recorded_positions(path, robot, warnings.extend)
    assert not warnings
    np.testing.assert_allclose(seconds, 1e-9 * STEP * np.arange(20), atol=1e-9)
    np.testing.assert_allclose(Q, [positions(BEGIN + k * STEP) for k in range(20)])
    arm = Robot.from_urdf(robots.example("panda_description/urdf/panda.urdf"), "fixed")
    with pytest.raises(InputError, match="no joint state has a joint of robot 'panda'"):
        recorded_positions(path, arm, warnings.extend)


def test_states_that_a_recording_lacks_are_reported_as_by_bag(tmp_path: Path) -> None:
    for package in ("mcap", "rclpy", "delassus_msgs", "pyarrow"):
        import_module(package)
    from recordings_support import BEGIN, JOINTS, PARAMETERS, STEP, at, positions, walk, write
    from sensor_msgs.msg import JointState

    from delassus_ros.recordings.episode import Task, map_episode
    from delassus_ros.recordings.positions import recorded_positions

    robot = Robot.from_urdf(robots.quadruped())
    messages = list(walk(400))
    strange = [[*positions(BEGIN)[:-1], np.nan], [0.0]]
    for k, q in enumerate(strange):
        messages.insert(k + 9, at(BEGIN + 2 * STEP + k, "/joint_states",
                                  JointState(name=JOINTS, position=q)))  # fmt: skip
    path = write(tmp_path / "run.mcap", messages, chunk=2048)
    path.write_bytes(path.read_bytes()[: 2 * path.stat().st_size // 3])
    warnings: list[str] = []
    _, Q = recorded_positions(path, robot, warnings.extend)
    assert 200 < len(Q) < 400
    damage = map_episode(path, Task(PARAMETERS, str(tmp_path / "out"))).damage
    left_out = f"{path}: 2 joint states are left out: they cannot be read, have no position per "
    assert warnings[:-1] == damage and len(damage) == 1 and warnings[-1].startswith(left_out)
