"""Recordings as other recorders make them: no types, no contacts, other clocks, ROS 1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from mcap.writer import Writer
from pyarrow import parquet
from recordings_support import BEGIN, PARAMETERS, STEP, TYPES, Recorded, clock, walk, write

from delassus.robots.built_in import demo_urdf
from delassus_ros.recordings.episode import Episode, Task, map_episode
from delassus_ros.recordings.recorded_file import RecordingError
from delassus_ros.recordings.recording import LATEST, Recording

CASES = Path(__file__).parents[4] / "shared" / "cases"
FOR_EVER = {"input_timeout": 0.0, "contacts_timeout": 0.0}


def made(path: Path, parameters: dict[str, object] | None = None, **options) -> Episode:
    task = Task({**PARAMETERS, **(parameters or {})}, str(path.parent / "out"), **options)
    return map_episode(path, task)


def without_types(path: Path, messages: Iterable[Recorded], encoding: str = "cdr") -> Path:
    """Write an MCAP file whose channels have no schema."""
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        channels = {topic: writer.register_channel(topic, encoding, 0) for topic in TYPES}
        for m in messages:
            writer.add_message(channels[m.topic], m.time, m.data, m.sent)
        writer.finish()
    return path


@pytest.mark.parametrize("whole", [True, False])
def test_channels_without_a_type_are_read_as_the_node_reads_them(
    tmp_path: Path, whole: bool
) -> None:
    path = without_types(tmp_path / "run.mcap", walk(60))
    if not whole:
        path.write_bytes(path.read_bytes()[:-100])
    episode = made(path)
    assert (episode.matrices, episode.invalid, episode.error) == (60, 0, "")
    said = [words for words, _ in episode.warnings.values()]
    assert "/joint_states has no type: it is read as sensor_msgs/msg/JointState" in said
    assert "/active_contacts has no type: it is read as delassus_msgs/msg/ActiveContacts" in said
    other = made(path, remap={"joint_states": "/arm/joint_states"})
    assert "no topic /arm/joint_states; of type sensor_msgs/msg/JointState" in other.error
    assert "without a type: /active_contacts, /joint_states, /robot_description" in other.error


def test_messages_that_are_encoded_otherwise_are_named(tmp_path: Path) -> None:
    path = without_types(tmp_path / "run.mcap", walk(10), encoding="ros1")
    words = "/joint_states is encoded as 'ros1'; expected 'cdr', as ROS 2 writes it; of type"
    assert words in made(path, description=demo_urdf()).error
    assert "/robot_description is encoded as 'ros1'" in made(path).error


def test_rows_of_all_contacts_need_no_topic(tmp_path: Path) -> None:
    messages = [m for m in walk(30) if m.topic != "/active_contacts"]
    path = write(tmp_path / "run.mcap", messages)
    assert "with the parameter 'rows: all', matrices have the rows of all" in made(path).error
    episode = made(path, {"rows": "all"})
    assert (episode.matrices, episode.empty, episode.error) == (30, 0, "")


@pytest.mark.parametrize("late", [-100_000, -1, 1 << 63, 0])
def test_times_that_no_clock_gives_are_left_out(tmp_path: Path, late: int) -> None:
    """A recorder's counter that ran over: 64 bits below and above zero, beyond 2**63, and zero."""
    messages = list(walk(60))
    strange = [
        replace(m, time=(late + k - 20) % 2**64, sent=(late + k - 20) % 2**64)
        if 20 <= k < 25 else m for k, m in enumerate(messages)
    ]  # fmt: skip
    path = write(tmp_path / "run.mcap", strange, chunk=2048)
    recording = Recording(path)
    found = list(recording.messages())
    expected = [m for m in strange if m.time <= LATEST]
    assert sorted(found, key=repr) == sorted(expected, key=repr)
    assert len(recording.damage) == (len(expected) < len(strange))
    episode = made(path)
    assert episode.matrices + episode.invalid >= 50 and not episode.error
    assert episode.damage == recording.damage
    if late:
        left_out = len(strange) - len(expected)
        assert f"{left_out} messages are left out: the times at which they were" in (
            episode.damage[0]
        )
    times = parquet.read_table(tmp_path / "out" / "run.parquet")["time"].to_pylist()
    assert len(times) == episode.matrices + episode.invalid and BEGIN + 50 * STEP in times


@pytest.mark.parametrize("off", [10**18, -BEGIN + STEP])
def test_stamps_of_another_clock_are_said_with_what_helps(tmp_path: Path, off: int) -> None:
    """Of a simulation, or of a host whose clock was not set."""
    messages = [
        m if m.topic == "/robot_description" else replace(m, time=m.time + off, sent=m.time + off)
        for m in walk(60)
    ]
    first, *others = messages
    path = write(tmp_path / "run.mcap", [replace(first, time=others[0].time), *others])
    side = "behind" if off > 0 else "ahead of"
    for parameters in ({}, FOR_EVER):
        episode = made(path, parameters)
        words, count = episode.warnings["another clock"]
        assert f"s {side} the times of recording: they are of another clock" in words
        assert "set the parameters input_timeout, contacts_timeout and orientation" in words
        assert count == 60 and not episode.error
    # What is said helps.
    assert (episode.matrices, episode.invalid) == (60, 0)


def test_stamps_of_another_clock_beside_a_recorded_clock(tmp_path: Path) -> None:
    messages = []
    for k, m in enumerate(walk(60)):
        messages += [clock(10**9 + k * STEP), m]
    times = [BEGIN + k * STEP // 2 for k in range(len(messages))]
    kept = [replace(m, time=time, sent=time) for m, time in zip(messages, times, strict=True)]
    episode = made(write(tmp_path / "run.mcap", kept))
    words, _ = episode.warnings["another clock"]
    assert "ahead of /clock: they are of another clock, and its publisher does not use" in words


@pytest.mark.parametrize("name", ["run.bag", "run.mcap", "folder"])
def test_a_recording_of_ros_1_is_named_with_the_way_out(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    file = path
    if name == "folder":
        path.mkdir()
        file = path / "run.bag"
    file.write_bytes(b"#ROSBAG V2.0\n" + bytes(4096))
    with pytest.raises(RecordingError, match="is a recording of ROS 1, which is") as error:
        Recording(path)
    assert f"rosbags-convert --src {file} --dst run" in str(error.value)


@pytest.mark.skipif(not CASES.is_dir(), reason="../shared/cases is not there")
def test_recordings_that_were_found_to_fail(tmp_path: Path) -> None:
    parameters = {"base": "fixed", "contacts.names": ["tip"], "contacts.tip.frame": "tip"}
    done = {
        name: map_episode(CASES / name, Task(parameters, str(tmp_path)))
        for name in ("rollover.mcap", "noschema.mcap", "bag_without_metadata", "simtime.mcap")
    }
    assert not any(episode.error for episode in done.values())
    assert [episode.matrices for episode in done.values()] == [290, 300, 300, 0]
    freed = map_episode(
        CASES / "simtime.mcap", Task({**parameters, **FOR_EVER}, str(tmp_path), again=True)
    )
    assert freed.matrices == 300
