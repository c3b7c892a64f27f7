"""`delassus view --data`: a recording moves the page as it moves `delassus bag`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import recordings_support as support
from cli_support import QUADRUPED
from nav_msgs.msg import Odometry
from pyarrow import parquet
from recordings_support import BEGIN, FEET, JOINTS, JointState, Recorded, at

from delassus.cli.options import described
from delassus.cli.view import by_time, drawing
from delassus.drawing.shapes import Shapes
from delassus.drawing.snapshot import SnapshotSolver
from delassus.drawing.viewer import Viewer
from delassus_ros.recordings.episode import Task, map_episode
from delassus_ros.verbs.main import _parser
from delassus_ros.verbs.recorded import played

STEPS = 100
CONTACTS = [part for foot in FEET for part in ("--contact", f"{foot}={foot}_FOOT")]
TYPES = {**support.TYPES, "/odometry": "nav_msgs/msg/Odometry"}


def tilt(k: int) -> np.ndarray:
    """Return the orientation of the trunk in a step: it rolls slowly."""
    half = 0.002 * k
    return np.array([np.sin(half), 0.0, 0.0, np.cos(half)])


def efforts(k: int) -> np.ndarray:
    return 3.0 * np.sin(0.1 * k + np.arange(len(JOINTS)))


def walk(*parts: str) -> Iterator[Recorded]:
    """Yield a walk in which two feet touch at a time, with some parts of the robot's motion."""
    yield support.description()
    for k in range(STEPS):
        time = BEGIN + k * support.STEP
        if "contacts" in parts and k % 5 == 0:
            yield support.touching(time, *(("LF", "RH") if (k // 50) % 2 == 0 else ("RF", "LH")))
        if "odometry" in parts:
            odometry = Odometry(child_frame_id="base")
            odometry.header.frame_id = "odom"
            turn = odometry.pose.pose.orientation
            turn.x, turn.y, turn.z, turn.w = tilt(k).tolist()
            yield at(time, "/odometry", odometry)
        q = support.positions(time)
        message = JointState(name=JOINTS, position=q.tolist())
        if "efforts" in parts:
            message.velocity, message.effort = [0.1] * len(JOINTS), efforts(k).tolist()
        yield at(time, "/joint_states", message)


def options(path: Path, *more: str) -> argparse.Namespace:
    argv = ["view", QUADRUPED, "--data", str(path), "--no-browser", *more]
    return _parser().parse_args(argv)


def rows(path: Path, folder: Path, **more: object) -> list[dict]:
    """Return the rows of the table that `delassus bag` writes."""
    parameters = {**support.PARAMETERS, **more}
    columns = ("matrix", "forces") if "outputs" in more else ("matrix",)
    task = Task(parameters, str(folder), columns=columns, formats=("parquet",))
    episode = map_episode(path, task)
    assert not episode.error
    return parquet.read_table(episode.files[0]).to_pylist()


def test_boxes_robot_and_forces_follow_the_recording(tmp_path: Path, capsys) -> None:
    path = support.write(tmp_path / "run.mcap", walk("contacts", "odometry", "efforts"), TYPES)
    asked = options(path, *CONTACTS, "--forces", "0.5")
    found = played(asked, described(asked))
    expected = rows(path, tmp_path / "out", axes="world", outputs=["a0", "forces"], friction=0.5)
    assert found is not None and len(found.moments) == len(expected) == STEPS
    problem = found.solver.problem
    snapshots = SnapshotSolver(found.solver, 0.5)
    viewer = Viewer(problem.robot, Shapes(()), problem.contacts.names)
    try:
        at_slider = by_time(viewer, problem.robot, None, found.seconds, found.moments)
        draw = drawing(viewer, snapshots, at_slider)
        assert viewer.timeline is not None
        for k in (0, 10, 60, 99):
            viewer.timeline.slider.value = found.seconds[k]
            draw()
            row, moment = expected[k], found.moments[k]
            G = np.array(row["matrix"], dtype=float).reshape(12, 12)
            known = ~np.isnan(np.diag(G))
            touching = [foot for foot, touches in zip(FEET, known[::3], strict=True) if touches]
            assert viewer.active == touching == list(moment.active or ()) and len(touching) == 2
            base = viewer.server.scene.get_handle_by_name("/robot")
            np.testing.assert_allclose(np.roll(base.wxyz, -1), tilt(k), atol=1e-6)
            snapshot = snapshots.snapshot(moment, viewer.active)
            solution = found.solver.solve(moment.q, active=moment.active, **moment.inputs)
            expected_G = G[np.ix_(known, known)]
            np.testing.assert_allclose(solution.matrix, expected_G, rtol=1e-10, atol=1e-12)
            world = np.concatenate([snapshot.turn @ each.force for each in snapshot.forces])
            forces = np.array(row["forces"], dtype=float)[known]
            np.testing.assert_allclose(world, forces, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(moment.inputs["torques"][6:], efforts(k))
    finally:
        viewer.close()


def test_without_recorded_contacts_the_boxes_are_those_of_the_user(tmp_path: Path) -> None:
    path = support.write(tmp_path / "run.mcap", walk(), support.TYPES)
    asked = options(path, *CONTACTS, "--forces")
    found = played(asked, described(asked))
    assert found is not None
    assert {moment.active for moment in found.moments} == {None}
    # Without orientation and torques the robot stands level, and holds its pose.
    problem = found.solver.problem
    assert problem.axes == "contact" and [port.name for port in problem.outputs] == ["G"]


def test_reason_of_a_moment_without_matrix(tmp_path: Path) -> None:
    messages = [m for m in walk("contacts") if m.topic != "/active_contacts" or m.time == BEGIN]
    path = support.write(tmp_path / "run.mcap", messages, support.TYPES)
    asked = options(path, *CONTACTS)
    found = played(asked, described(asked))
    assert found is not None
    assert found.moments[0].active == ("LF", "RH") and not found.moments[0].warning
    last = found.moments[-1]
    assert last.active == () and "no set of active contacts has come" in last.warning
    facts = SnapshotSolver(found.solver).snapshot(last, ()).facts
    assert facts == {"matrix": last.warning}


def test_topics_alone_of_their_type_are_found(tmp_path: Path) -> None:
    renamed = [m if m.topic == "/robot_description" else
               Recorded(m.time, m.sent, f"/go{m.topic}", m.data) for m in walk("contacts")]
    types = {name if name == "/robot_description" else f"/go{name}": kind
             for name, kind in support.TYPES.items()}
    path = support.write(tmp_path / "run.mcap", renamed, types)
    asked = options(path, *CONTACTS)
    found = played(asked, described(asked))
    assert found is not None and found.moments[0].active == ("LF", "RH")


def test_where_no_state_has_a_matrix_the_joints_alone_move(tmp_path: Path, capsys) -> None:
    short = [support.description(), *(
        at(BEGIN + k * support.STEP, "/joint_states", JointState(name=["LF_KFE"], position=[-1.0]))
        for k in range(3)
    )]  # fmt: skip
    path = support.write(tmp_path / "run.mcap", short, support.TYPES)
    asked = options(path, *CONTACTS)
    assert played(asked, described(asked)) is None
    assert "the recording moves the joints alone: " in capsys.readouterr().err
    asked = options(path)
    assert played(asked, described(asked)) is None


def test_unknown_contact_of_a_recording_is_refused_with_a_remedy(tmp_path: Path) -> None:
    from delassus.errors import InputError

    path = support.write(tmp_path / "run.mcap", walk("contacts"), support.TYPES)
    asked = options(path)
    with pytest.raises(InputError, match="nothing says where its contacts LF, LH, RF, RH are on"):
        played(asked, described(asked))
