"""SQLite files of rosbag2: after a crash, without metadata, alone, and made to do harm."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from recordings_support import PARAMETERS, Recorded, bag, walk
from rosbags.rosbag2 import StoragePlugin

from delassus_ros.recordings.episode import Task, map_episode
from delassus_ros.recordings.recorded_file import RecordingError
from delassus_ros.recordings.recording import Recording

JOINTS = {"/joint_states"}
DATED = "{0}_walk_2026_02_02-10_{0:02}"
KEPT = 40
"""Messages that are in the database itself; those after them are in its log."""


def states(messages: list[Recorded]) -> list[tuple[int, bytes]]:
    return [(m.time, m.data) for m in messages if m.topic in JOINTS]


def read(path: Path) -> tuple[list[tuple[int, bytes]], list[str]]:
    recording = Recording(path)
    return [(m.time, m.data) for m in recording.messages(JOINTS)], list(recording.damage)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def crashed(tmp_path: Path, messages: list[Recorded], journal: str) -> Path:
    """Return a folder as a recorder leaves it that was killed while it wrote."""
    folder = bag(tmp_path / "run", messages, StoragePlugin.SQLITE3)
    (file,) = folder.glob("*.db3")
    late = messages[KEPT].time
    with sqlite3.connect(file) as database:
        rows = database.execute(
            "select topic_id, timestamp, data from messages where timestamp >= ?", (late,)
        ).fetchall()
        assert rows
        database.execute("delete from messages where timestamp >= ?", (late,))
    database.close()
    database = sqlite3.connect(file, isolation_level=None)
    database.execute(f"pragma journal_mode = {journal}")
    database.execute("pragma cache_spill = 1")
    database.execute("pragma cache_size = 1")
    database.execute("begin")
    database.executemany("insert into messages(topic_id, timestamp, data) values (?, ?, ?)", rows)
    if journal == "wal":
        database.execute("commit")
    # What lies on the disk now is what a crash leaves; the folder is copied with its logs.
    left = tmp_path / "left" / "run"
    shutil.copytree(folder, left)
    database.close()
    assert {file.suffix for file in left.iterdir()} >= {".db3", ".yaml"}
    return left


def test_the_log_that_a_crash_left_is_read_and_the_recording_stays(tmp_path: Path) -> None:
    messages = list(walk(100))
    folder = crashed(tmp_path, messages, "wal")
    (file,) = folder.glob("*.db3")
    assert file.with_name(file.name + "-wal").stat().st_size
    before = contents(folder)
    assert read(folder) == (states(messages), [])
    assert read(file) == (states(messages), [])
    assert contents(folder) == before


def test_a_transaction_that_was_not_ended_is_rolled_back(tmp_path: Path) -> None:
    """The database itself has half of it, by which it would be damaged."""
    messages = list(walk(3000))
    folder = crashed(tmp_path, messages, "delete")
    (file,) = folder.glob("*.db3")
    assert file.with_name(file.name + "-journal").stat().st_size
    before = contents(folder)
    found, damage = read(folder)
    assert found == states(messages[:KEPT])
    (words,) = damage
    assert f"counts 3000 messages of /joint_states, of which {len(found)} are there" in words
    assert contents(folder) == before


@pytest.mark.parametrize("storage", [StoragePlugin.SQLITE3, StoragePlugin.MCAP])
def test_messages_that_the_metadata_counts_and_are_not_there(tmp_path: Path, storage) -> None:
    """As where the log of a crash was not copied with the database."""
    messages = list(walk(100))
    folder = bag(tmp_path / "run", messages, storage)
    metadata = folder / "metadata.yaml"
    text = metadata.read_text()
    assert text.count("message_count: 100") == 1
    metadata.write_text(text.replace("message_count: 100", "message_count: 109"))
    found, damage = read(folder)
    assert found == states(messages)
    assert damage == [
        f"{metadata} counts 109 messages of /joint_states, of which 100 are there"
    ]
    assert not list(Recording(folder).messages({"/nothing"}))


@pytest.mark.parametrize("storage", [StoragePlugin.SQLITE3, StoragePlugin.MCAP])
@pytest.mark.parametrize("name", ["walk_{0}", "{0}_walk_2026_02_02-10_{0:02}_59", DATED])
def test_a_folder_without_metadata_is_read(tmp_path: Path, storage, name: str) -> None:
    messages = list(walk(90))
    (tmp_path / "run").mkdir()
    files = []
    for k in range(11):
        part = messages[8 * k :] if k == 10 else messages[8 * k : 8 * k + 8]
        (file,) = [
            each
            for each in bag(tmp_path / f"part{k}", part, storage).iterdir()
            if each.suffix != ".yaml"
        ]
        files.append(shutil.move(file, tmp_path / "run" / f"{name.format(k)}{file.suffix}"))
    recording = Recording(tmp_path / "run")
    # By number, not by name: 10 comes after 9.
    assert recording.files == files
    assert states(list(recording.messages())) == states(messages) and not recording.damage
    episode = map_episode(tmp_path / "run", Task(PARAMETERS, str(tmp_path / "out")))
    assert episode.matrices == 90 and not episode.error
    assert "has no metadata.yaml with its files, as where a rec" in str(episode.warnings)
    for left in ("", "rosbag2_bagfile_information: {version: 9, relative_file_paths: []}\n"):
        (tmp_path / "run" / "metadata.yaml").write_text(left)
        assert Recording(tmp_path / "run").files == files and Recording(tmp_path / "run").remark
    (tmp_path / "run" / "metadata.yaml").unlink()
    episode = map_episode(tmp_path / "run", Task(PARAMETERS, str(tmp_path / "run")))
    assert "outputs are not written into a recording" in episode.error
    # Files are read by time, not in the order in which they are listed or numbered.
    paths = ", ".join(file.name for file in reversed(files))
    listed = f"rosbag2_bagfile_information: {{version: 9, relative_file_paths: [{paths}]}}\n"
    (tmp_path / "run" / "metadata.yaml").write_text(listed)
    recording = Recording(tmp_path / "run")
    assert states(list(recording.messages())) == states(messages) and not recording.damage
    assert recording.first("/joint_states") == messages[2].data
    assert map_episode(tmp_path / "run", Task(PARAMETERS, str(tmp_path / "listed"))).matrices == 90
    (tmp_path / "run" / "metadata.yaml").unlink()
    other = "0_walk_2026_02_03-10_00" if name == DATED else "other"
    shutil.copy(files[0], tmp_path / "run" / f"{other}{files[0].suffix}")
    with pytest.raises(RecordingError, match=f"files of several recordings, .*'{other}"):
        Recording(tmp_path / "run")


def test_a_database_alone_is_read(tmp_path: Path) -> None:
    messages = list(walk(50))
    (file,) = bag(tmp_path / "run", messages, StoragePlugin.SQLITE3).glob("*.db3")
    shutil.move(file, tmp_path / "alone.db3")
    episode = map_episode(tmp_path / "alone.db3", Task(PARAMETERS, str(tmp_path / "out")))
    assert (episode.matrices, episode.error, episode.damage) == (50, "", [])
    assert [Path(each).name for each in episode.files] == ["alone.parquet", "alone.mcap"]


def test_a_database_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    messages = list(walk(20))
    folder = bag(tmp_path / "run", messages, StoragePlugin.SQLITE3)
    before = contents(folder)
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555)
    assert read(folder) == (states(messages), [])
    folder.chmod(0o755)
    assert contents(folder) == before


def endless(database: sqlite3.Connection) -> None:
    """Have a view instead of the messages, whose rows have no end."""
    database.execute("alter table messages rename to others")
    database.execute(
        "create view messages as with recursive count(n) as (select 1 union all select n + 1 from "
        "count) select n as id, 1 as topic_id, n as timestamp, x'00' as data from count"
    )


def untidy(database: sqlite3.Connection) -> None:
    database.execute("update messages set data = 'text' where id = 5")
    database.execute("update messages set data = 7, timestamp = 1.5 where id = 6")
    database.execute("update messages set timestamp = -5 where id = 7")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (endless, "not a database of rosbag2: it has no table 'messages' with data, timestamp, t"),
        (lambda d: d.execute("drop table topics"), "it has no table 'topics' with id, name, "),
        (
            lambda d: d.execute("alter table topics rename column type to kind"),
            "it has no table 'topics' with id, name, serialization_format, type",
        ),
    ],
)
def test_what_is_no_database_of_rosbag2_is_refused(
    tmp_path: Path, change: Callable[[sqlite3.Connection], object], words: str
) -> None:
    folder = bag(tmp_path / "run", list(walk(20)), StoragePlugin.SQLITE3)
    (file,) = folder.glob("*.db3")
    with sqlite3.connect(file) as database:
        change(database)
    with pytest.raises(RecordingError, match=words):
        Recording(folder).scan()


def test_rows_of_other_types_are_left_out(tmp_path: Path) -> None:
    messages = list(walk(20))
    folder = bag(tmp_path / "run", messages, StoragePlugin.SQLITE3)
    (file,) = folder.glob("*.db3")
    with sqlite3.connect(file) as database:
        untidy(database)
    recording = Recording(folder)
    assert len(list(recording.messages())) == len(messages) - 3
    assert "2 messages are left out: their time is no integer" in recording.damage[0]
    assert "1 messages are left out: the times at which they were recorded, -5 ns" in (
        recording.damage[1]
    )
