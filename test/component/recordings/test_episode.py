"""One recording to its files: right numbers, finished once, and words for whatever is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from delassus_msgs.msg import ContactDynamics, DelassusMatrix, Layout
from delassus_msgs_py import dynamics_to_numpy, matrix_to_numpy
from geometry_msgs.msg import Vector3
from nav_msgs.msg import Odometry
from pyarrow import parquet
from rclpy.serialization import deserialize_message
from recordings_support import (
    BEGIN,
    FEET,
    JOINTS,
    PARAMETERS,
    STEP,
    TYPES,
    at,
    clock,
    description,
    positions,
    state,
    touching,
    walk,
    write,
)  # fmt: skip
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.errors import InputError
from delassus.robots.built_in import demo_urdf
from delassus.robots.built_in.humanoid import humanoid_urdf
from delassus_ros.recordings import episode as episode_module
from delassus_ros.recordings.episode import Episode, Task, map_episode
from delassus_ros.recordings.recorded_file import Recorded
from delassus_ros.recordings.recording import Recording
from delassus_ros.recordings.writer import definition


@pytest.fixture(name="out")
def make_out(tmp_path: Path) -> Path:
    return tmp_path / "out"


@pytest.fixture(name="made")
def make_made(tmp_path: Path, out: Path) -> Callable[..., Episode]:
    """Return a function that writes messages as a recording and does a task for it."""

    def made(messages: list[Recorded], parameters=PARAMETERS, types=None, **options) -> Episode:
        path = write(tmp_path / "run.mcap", messages, types)
        return map_episode(path, Task(parameters, str(out), **options))

    return made


def test_the_table_has_the_matrices_of_the_library(made, out: Path) -> None:
    found = made(list(walk(120)), columns=("matrix", "effective_mass"))
    assert (found.error, found.matrices, found.invalid) == ("", 120, 0)
    table = parquet.read_table(out / "run.parquet")
    about = json.loads(table.schema.metadata[b"delassus"])
    assert about["contacts"] == list(FEET) and about["row_offsets"] == [0, 3, 6, 9, 12]
    robot = Robot.from_urdf(demo_urdf().encode())
    solver = DelassusSolver(Problem(robot, [Contact(f, f"{f}_FOOT") for f in FEET]))
    many = solver.solve_batch(np.array([positions(t) for t in table["stamp"].to_pylist()])).matrix
    matrices = np.array(table["matrix"].to_pylist()).reshape(-1, 12, 12)
    active = np.array(table["active"].to_pylist())
    assert {tuple(each) for each in active.tolist()} == {
        (True, False, False, True), (False, True, True, False),
    }  # fmt: skip
    rows = np.repeat(active, 3, axis=1)
    there = rows[:, :, None] & rows[:, None, :]
    assert np.isnan(matrices[~there]).all()
    np.testing.assert_allclose(matrices[there], many[there], rtol=1e-12, atol=1e-13)
    masses = np.array(table["effective_mass"].to_pylist()).reshape(-1, 4, 3)
    np.testing.assert_allclose(
        masses[0, 0], 1.0 / np.linalg.eigvalsh(many[0, :3, :3])[::-1], rtol=1e-9
    )
    scaled = np.linalg.cond(many[0][np.ix_(rows[0], rows[0])])
    assert table["condition"][0].as_py() == pytest.approx(scaled, rel=1e-6)
    assert table["timestamp"].to_pylist() == pytest.approx(1e-9 * STEP * np.arange(120))


def test_long_arrays_of_parameters_are_part_of_a_digest(tmp_path: Path) -> None:
    values = np.linspace(0.0, 1.0, 5000)
    (tmp_path / "run").mkdir()
    digests = set()
    for _ in range(2):
        digests.add(Task({"reference.positions": values}, "out").digest(tmp_path / "run"))
        values[2500] += 1e-9
    assert len(digests) == 2


def test_the_messages_can_be_read_by_others(made, out: Path) -> None:
    """By the definitions in the file, and as the table has them."""
    made(list(walk(60)))
    recording = Recording(out / "run.mcap")
    assert recording.scan() == {
        "/delassus_node/layout": "delassus_msgs/msg/Layout",
        "/delassus_node/delassus": "delassus_msgs/msg/DelassusMatrix",
    }
    messages = list(recording.messages())
    assert deserialize_message(messages[0].data, Layout).contacts == list(FEET)
    matrices = [m for m in messages if m.topic.endswith("/delassus")]
    assert len(matrices) == 60
    store = get_typestore(Stores.EMPTY)
    name = "delassus_msgs/msg/DelassusMatrix"
    store.register(get_types_from_msg(definition(name), name))
    table = parquet.read_table(out / "run.parquet")
    for number in (0, 59):
        data = matrices[number].data
        theirs = store.deserialize_cdr(data, name)
        mine = deserialize_message(data, DelassusMatrix)
        np.testing.assert_array_equal(theirs.matrix, mine.matrix)
        row = np.array(table["matrix"][number].as_py())
        np.testing.assert_array_equal(row[~np.isnan(row)], matrix_to_numpy(mine).ravel())


def test_impulses_stop_the_contacts(made, out: Path) -> None:
    parameters = {**PARAMETERS, "outputs": ["J", "a0"], "torques": "zero",
                  "orientation.source": "odometry"}  # fmt: skip
    rng = np.random.default_rng(1)
    rates, twist = rng.normal(size=12), rng.normal(size=6)
    messages = [description(), touching(BEGIN, "LF", "RH")]
    robot = Robot.from_urdf(demo_urdf().encode())
    for k in range(5):
        time = BEGIN + k * STEP
        odometry = Odometry(child_frame_id="base")
        odometry.header.frame_id = "odom"
        odometry.pose.pose.orientation.w = 1.0
        odometry.twist.twist.linear = Vector3(**dict(zip("xyz", twist[:3], strict=True)))
        odometry.twist.twist.angular = Vector3(**dict(zip("xyz", twist[3:], strict=True)))
        messages.append(at(time, "/odometry", odometry))
        q = positions(time)
        joints = JointState(name=robot.joint_names, position=q.tolist(), velocity=rates.tolist())
        messages.append(at(time, "/joint_states", joints))
    types = {**TYPES, "/odometry": "nav_msgs/msg/Odometry"}
    found = made(messages, parameters, types, columns=("matrix", "impulse"))
    assert (found.error, found.matrices) == ("", 5), found
    table = parquet.read_table(out / "run.parquet")
    impulse = np.array(table["impulse"][4].as_py())
    contacts = [Contact(f, f"{f}_FOOT") for f in FEET]
    solver = DelassusSolver(Problem(robot, contacts, outputs=["J", "MinvJT"]))
    moving = np.concatenate([twist, rates])
    s = solver.solve(positions(BEGIN + 4 * STEP), ("LF", "RH"))
    np.testing.assert_allclose(
        impulse[[0, 1, 2, 9, 10, 11]], s.impact(moving).impulse, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(s.matrix @ s.impact(moving).impulse, -s.J @ moving, rtol=1e-9)


def test_contact_forces_in_the_table_and_in_the_messages(made, out: Path) -> None:
    # The outputs of the test above, whose kernel is cached, and forces.
    parameters = {**PARAMETERS, "outputs": ["J", "a0", "forces"], "torques": "zero",
                  "friction": 0.5, "contacts.LF.friction": 0.2}  # fmt: skip
    rates = np.random.default_rng(1).normal(size=12)
    messages = [description()]
    for k in range(6):
        time = BEGIN + k * STEP
        messages.append(touching(time, *(("LF", "RH") if k < 3 else FEET)))
        odometry = Odometry(child_frame_id="base")
        odometry.header.frame_id, odometry.pose.pose.orientation.w = "odom", 1.0
        messages.append(at(time, "/odometry", odometry))
        # One without velocities has a matrix and no forces.
        velocity = rates.tolist() if k != 4 else []
        joints = JointState(name=JOINTS, position=positions(time).tolist(), velocity=velocity)
        messages.append(at(time, "/joint_states", joints))
    types = {**TYPES, "/odometry": "nav_msgs/msg/Odometry"}
    found = made(messages, parameters, types, columns=("matrix", "forces"))
    assert (found.error, found.matrices) == ("", 6), found
    table = parquet.read_table(out / "run.parquet")
    recorded = list(Recording(out / "run.mcap").messages())
    beside = [
        dynamics_to_numpy(deserialize_message(m.data, ContactDynamics))
        for m in recorded
        if m.topic.endswith("/dynamics")
    ]
    robot = Robot.from_urdf(demo_urdf().encode())
    mu = {foot: 0.2 if foot == "LF" else 0.5 for foot in FEET}
    contacts = [Contact(f, f"{f}_FOOT") for f in FEET]
    solver = DelassusSolver(Problem(robot, contacts, outputs=["J", "a0"]))
    last = None
    for k, (row, message) in enumerate(zip(table.to_pylist(), beside, strict=True)):
        forces, active = np.array(row["forces"]), ("LF", "RH") if k < 3 else FEET
        assert (row["validity"], row["active"]) == (2, [foot in active for foot in FEET])
        if k == 4:
            assert np.isnan(forces).all()
            assert (row["forces_status"], row["forces_validity"]) == (0, 0)
            assert (row["forces_law"], row["forces_residual"], message.validity) == (0, -1.0, 0)
            continue
        s = solver.solve(
            positions(BEGIN + k * STEP), active, rates=np.r_[np.zeros(6), rates],
            torques=np.zeros(18), gravity=[0, 0, -9.81],
        )  # fmt: skip
        last = s.contact_forces(mu, start=last)
        assert np.isnan(forces).tolist() == [foot not in active for foot in FEET for _ in range(3)]
        there = forces[~np.isnan(forces)]
        assert there.tobytes() == last.forces.tobytes() == message.forces.tobytes()
        assert row["forces_residual"] == last.residual == message.forces_residual
        assert (row["forces_status"], row["forces_validity"]) == (1, 2)
        assert row["forces_law"] == message.forces_law == (1 if last.law == "coulomb" else 2)
        assert message.friction.tolist() == [mu[foot] for foot in active]


def test_what_is_finished_is_not_done_twice(made, out: Path, tmp_path: Path, monkeypatch) -> None:
    messages = list(walk(30))
    first = made(messages)
    written = {file: file.stat().st_mtime_ns for file in out.iterdir()}
    assert not first.skipped and len(written) == 3
    again = map_episode(tmp_path / "run.mcap", Task(PARAMETERS, str(out)))
    assert again.skipped and again.matrices == 30
    assert {file: file.stat().st_mtime_ns for file in out.iterdir()} == written
    # Other parameters, another recording, or a file that is gone: it is done.
    assert not made(messages, {**PARAMETERS, "algorithm": "efpa"}).skipped
    assert not made(list(walk(31)), {**PARAMETERS, "algorithm": "efpa"}).skipped
    task = Task({**PARAMETERS, "algorithm": "efpa"}, str(out))
    (out / "run.parquet").unlink()
    assert not map_episode(tmp_path / "run.mcap", task).skipped
    # So is one of which a part is gone.
    for name in ("run.mcap", "run.parquet"):
        with (out / name).open("rb+") as file:
            file.truncate(100)
        found = map_episode(tmp_path / "run.mcap", task)
        assert not found.skipped and not found.error
    assert map_episode(tmp_path / "run.mcap", task).skipped


def path_of_table(folder: Path, recording: Path) -> Path:
    """Return a table of a recording, made for this."""
    out = folder / "table"
    map_episode(recording, Task(PARAMETERS, str(out), formats=("parquet",)))
    return out / f"{recording.stem}.parquet"


def test_nothing_of_others_is_overwritten(tmp_path: Path, out: Path) -> None:
    """Neither the recording, under whatever name it is given, nor what is beside it."""
    messages = list(walk(10))
    path = write(tmp_path / "run.mcap", messages)
    folder = tmp_path / "bag"
    folder.mkdir()
    (folder / "bag.mcap").write_bytes(path.read_bytes())
    about = {"rosbag2_bagfile_information": {"relative_file_paths": ["bag.mcap"]}}
    (folder / "metadata.yaml").write_text(json.dumps(about))
    for recording, target in (
        (path, tmp_path), (folder, folder), (folder, folder / "out"), (folder / "bag.mcap", folder)
    ):  # fmt: skip
        before = {file: file.read_bytes() for file in tmp_path.rglob("*.*") if file.is_file()}
        found = map_episode(recording, Task(PARAMETERS, str(target)))
        inside = "outputs are not written into a recording" in found.error
        assert inside or "run.mcap would be replaced, and is no output of" in found.error
        assert {f: f.read_bytes() for f in tmp_path.rglob("*.*") if f.is_file()} == before
    # Others of that name in the folder are as safe.
    for name, data in (("run.mcap", path.read_bytes()), ("run.parquet", b"text")):
        (tmp_path / "others").mkdir(exist_ok=True)
        (tmp_path / "others" / name).write_bytes(data)
        found = map_episode(path, Task(PARAMETERS, str(tmp_path / "others")))
        assert "would be replaced, and is no output of" in found.error
        assert (tmp_path / "others" / name).read_bytes() == data
        (tmp_path / "others" / name).unlink()
    other = parquet.read_table(path_of_table(tmp_path, path)).replace_schema_metadata()
    parquet.write_table(other, tmp_path / "others" / "run.parquet")
    found = map_episode(path, Task(PARAMETERS, str(tmp_path / "others")))
    assert "run.parquet would be replaced" in found.error
    # A table beside the recording is another thing.
    assert not map_episode(path, Task(PARAMETERS, str(tmp_path), formats=("parquet",))).error
    out.mkdir()
    (out / "run.json").mkdir()
    assert "is no report" in map_episode(path, Task(PARAMETERS, str(out))).error
    (out / "run.json").rmdir()
    for text in ('{"speed": 3}', "[]", "speed"):
        (out / "run.json").write_text(text)
        found = map_episode(path, Task(PARAMETERS, str(out)))
        assert "run.json would be replaced, and is no report of delassus bag" in found.error
        assert (out / "run.json").read_text() == text and len(list(out.iterdir())) == 1


def test_two_that_do_the_same_do_not_mix(made, tmp_path: Path, out: Path, monkeypatch) -> None:
    """As where an engine takes a worker for dead that only was not heard of."""
    path = write(tmp_path / "run.mcap", walk(60))
    task = Task(PARAMETERS, str(out))
    close = episode_module.McapOutput.close
    others: list[Episode] = []

    def close_late(output: episode_module.McapOutput) -> None:
        if not others:
            others.append(Episode(""))
            others.append(map_episode(path, task))
        close(output)

    monkeypatch.setattr(episode_module.McapOutput, "close", close_late)
    found = map_episode(path, task)
    assert (found.matrices, found.error) == (others[1].matrices, others[1].error) == (60, "")
    assert parquet.read_table(out / "run.parquet").num_rows == 60
    recording = Recording(out / "run.mcap")
    assert len(list(recording.messages())) == 61 and not recording.damage
    assert sorted(file.name for file in out.iterdir()) == ["run.json", "run.mcap", "run.parquet"]


def test_a_recording_that_became_another_leaves_no_report_of_the_first(made, out: Path) -> None:
    made(list(walk(20)))
    found = made([m for m in walk(20) if m.topic != "/joint_states"])
    report = json.loads((out / "run.json").read_text())
    assert report["error"] == found.error and not report["files"]


def test_a_fault_leaves_no_half_file(made, out: Path, monkeypatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(episode_module.ParquetOutput, "write", fail)
    assert made(list(walk(30))).error == f"{out} cannot be written to: no space left"
    assert list(out.iterdir()) == []


def test_matrices_without_rows_are_counted(made) -> None:
    messages = [m for m in walk(30) if m.topic != "/active_contacts"]
    found = made([messages[0], touching(BEGIN, "hand"), *messages[1:]])
    assert (found.matrices, found.empty, found.invalid) == (30, 30, 0)
    assert "unknown contact 'hand'" in "".join(words for words, _ in found.warnings.values())


@pytest.mark.parametrize("gap", [3600, 50 * 365 * 24 * 3600])
def test_a_clock_that_is_set_forward_is_no_silence_of_years(made, gap: int) -> None:
    later = [m for m in walk(40, begin=BEGIN + gap * 10**9) if m.topic != "/robot_description"]
    found = made([*walk(60), *later])
    assert found.matrices == 100 and 100 < found.invalid < 150
    words, count = found.warnings["gap"]
    assert words == f"nothing was recorded for {gap - 59 * 1e-9 * STEP:.6g} s" and count == 1


def test_time_that_goes_back_is_said(made) -> None:
    again = [message for message in walk(40) if message.topic != "/robot_description"]
    found = made([*walk(60), *again])
    words, count = found.warnings["clock"]
    assert "time goes back by 0.59 s; inputs are forgotten" in words and count == 1
    assert found.matrices + found.invalid == 100 and found.error == ""


def test_silence_is_said_as_the_node_says_it(made, out: Path) -> None:
    gap = [m for m in walk(200) if not 60 * STEP <= m.time - BEGIN < 160 * STEP]
    found = made(gap, {**PARAMETERS, "input_timeout": 0.1})
    assert found.matrices == 100 and 5 < found.invalid < 100
    assert "no joint state any more" in found.first_reason


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m: m.topic != "/joint_states", "no topic /joint_states; of type sensor_msgs/msg"),
        (lambda m: m.topic != "/active_contacts", "no topic /active_contacts; of type delassus_m"),
        (lambda m: m.topic != "/active_contacts", "with the parameter 'rows: all', matrices have"),
        (lambda m: m.topic != "/robot_description", "no robot on /robot_description; --urdf name"),
    ],
)
def test_missing_topics_are_named(made, out: Path, change, words: str) -> None:
    found = made([m for m in walk(30) if change(m)])
    assert words in found.error and "run.mcap" in found.error
    assert not out.exists() or not [f for f in out.iterdir() if f.suffix != ".json"]


def test_topics_that_are_called_otherwise(made) -> None:
    types = {**TYPES, "/arm/joint_states": TYPES["/joint_states"]}
    messages = [
        Recorded(m.time, m.sent, m.topic.replace("/joint_states", "/arm/joint_states"), m.data)
        for m in walk(30)
    ]
    words = "there are: /arm/joint_states; --remap joint_states:=NAME takes another"
    assert words in made(messages, types=types).error
    assert made(messages, types=types, remap={"joint_states": "/arm/joint_states"}).matrices == 30
    found = made(messages, types=types, remap={"joints": "/arm/joint_states"})
    assert "unknown topic of the node 'joints'; did you mean 'joint_states'?" in found.error


def test_a_topic_of_another_type(made) -> None:
    types = {**TYPES, "/joint_states": "std_msgs/msg/String"}
    messages = [
        at(m.time, m.topic, String(data="q")) if m.topic == "/joint_states" else m
        for m in walk(30)
    ]
    found = made(messages, types=types)
    assert "/joint_states is of type std_msgs/msg/String, expected sensor_msgs/msg" in found.error


def test_joints_that_are_not_the_robots(made) -> None:
    messages = [description(), touching(BEGIN, "LF")]
    for k in range(10):
        arm = JointState(name=["shoulder", "elbow"], position=[0.1, 0.2])
        messages.append(at(BEGIN + k * STEP, "/joint_states", arm))
    found = made(messages)
    assert (found.matrices, found.invalid, found.error) == (0, 0, "")
    words, count = found.warnings["NONE"]
    assert "none of the robot's joints; it has 'shoulder', 'elbow'" in words and count == 10


def test_two_robots_in_one_recording(made) -> None:
    second = description(BEGIN + 30 * STEP, humanoid_urdf())
    messages = sorted([*walk(60), second], key=lambda m: m.time)
    found = made(messages)
    assert "another robot description on /robot_description at 1700000000.300 s" in found.error
    assert 20 < found.matrices <= 31 and len(found.files) == 2
    # Whose is meant may be said.
    assert made(messages, description=demo_urdf()).matrices == 60
    assert made(messages, {**PARAMETERS, "robot_description": demo_urdf()}).matrices == 60


def test_a_robot_of_a_namespace(made) -> None:
    """Its topics are called otherwise, its description too; another robot's are there as well."""
    topics = ("joint_states", "active_contacts", "robot_description")
    types = {**TYPES, **{f"/two/{name}": TYPES[f"/{name}"] for name in topics}}
    own = [Recorded(m.time, m.sent, f"/two{m.topic}", m.data) for m in walk(30)]
    others = [description(BEGIN, humanoid_urdf()), touching(BEGIN, "left_sole")]
    remap = {name: f"/two/{name}" for name in topics}
    assert made([*others, *own], types=types, remap=remap).matrices == 30


def test_bytes_that_are_no_message_are_passed_over(made) -> None:
    messages = list(walk(30))
    messages[10] = Recorded(messages[10].time, messages[10].sent, "/joint_states", b"\0\1\0\0\1")
    found = made(messages)
    assert found.matrices == 29 and "cannot be read" in found.warnings["bytes"][0]
    clocks = [Recorded(m.time, m.sent, "/clock", clock(m.time).data) for m in walk(30)]
    clocks[5] = Recorded(clocks[5].time, clocks[5].sent, "/clock", b"")
    found = made(sorted([*walk(30), *clocks], key=lambda m: (m.time, m.topic != "/clock")))
    assert found.matrices == 30 and "a time cannot be read" in found.warnings["bytes"][0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": ("impulse",)}, "column 'impulse' needs the velocities of the contacts"),
        ({"columns": ("forces",)}, "column 'forces' needs forces among the parameter 'outputs'"),
        ({"columns": ("estimated_force",)}, "needs the parameter contacts.source: force"),
    ],
)
def test_outputs_that_cannot_be(made, out: Path, options, words: str) -> None:
    assert words in made(list(walk(3)), **options).error
    assert not [file for file in out.iterdir() if ".partial" in file.name]


def test_what_does_not_exist_is_refused_before_anything_is_read(out: Path) -> None:
    with pytest.raises(InputError, match="unknown format 'csv'; formats: parquet, mcap"):
        Task(PARAMETERS, str(out), formats=("csv",))
    with pytest.raises(InputError, match="unknown column 'matrx'; did you mean 'matrix'"):
        Task(PARAMETERS, str(out), columns=("matrx",))


def test_state_alone_gives_all_rows(made, out: Path) -> None:
    messages = [description(), *(state(BEGIN + k * STEP) for k in range(5))]
    assert made(messages, {**PARAMETERS, "rows": "all"}).matrices == 5
    table = parquet.read_table(out / "run.parquet")
    assert np.isfinite(np.array(table["matrix"].to_pylist())).all()
