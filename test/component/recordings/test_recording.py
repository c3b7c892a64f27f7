"""Reading recordings: in order of time, damaged ones as far as they go, and what is none."""

from __future__ import annotations

import re
import shutil
import sqlite3
import struct
import tracemalloc
from pathlib import Path

import pytest
from recordings_support import BEGIN, STEP, TYPES, bag, description, state, touching, walk, write
from rosbags.rosbag2 import CompressionMode, StoragePlugin

from delassus_ros.recordings.mcap_file import WINDOW
from delassus_ros.recordings.recorded_file import Recorded, RecordingError
from delassus_ros.recordings.recording import Recording

JOINTS = {"/joint_states"}

# Messages are compared with those that were written, never with others made alike: what a
# serialised message has for padding is whatever the memory held.


def test_all_messages_come_in_order(tmp_path: Path) -> None:
    messages = list(walk(200))
    recording = Recording(write(tmp_path / "run.mcap", messages))
    assert recording.scan() == {each: kind for each, kind in TYPES.items() if each != "/clock"}
    assert list(recording.messages()) == messages and not recording.damage
    assert list(recording.messages(JOINTS)) == [m for m in messages if m.topic in JOINTS]
    assert recording.position == recording.size
    assert recording.first("/robot_description") == messages[0].data
    assert recording.first("/nothing") is None


def test_what_is_written_a_little_late_comes_in_its_place(tmp_path: Path) -> None:
    times = [BEGIN + k * STEP for k in (0, 1, 3, 2, 4, 7, 5, 6)]
    recording = Recording(write(tmp_path / "run.mcap", map(state, times)))
    assert [message.time for message in recording.messages()] == sorted(times)


def test_a_clock_that_is_set_back_stays_so(tmp_path: Path) -> None:
    """What is after it is not mixed with what was before."""
    first = [BEGIN + k * STEP for k in range(30)]
    again = [time - 2 * WINDOW for time in first]
    recording = Recording(write(tmp_path / "run.mcap", map(state, first + again)))
    assert [message.time for message in recording.messages()] == first + again


@pytest.mark.parametrize("whole", [0.25, 0.6])
def test_a_file_that_was_cut_off_is_read_up_to_there(tmp_path: Path, whole: float) -> None:
    messages = list(walk(2000))
    path = write(tmp_path / "run.mcap", messages, chunk=4096)
    data = path.read_bytes()
    path.write_bytes(data[: int(whole * len(data))])
    recording = Recording(path)
    found = list(recording.messages(JOINTS))
    assert 0.8 * whole * 2000 < len(found) < 2000
    assert found == [m for m in messages if m.topic in JOINTS][: len(found)]
    (damage,) = recording.damage
    offset = int(damage.rpartition("byte ")[2].split(",")[0])
    assert str(path) in damage and 0 <= int(whole * len(data)) - offset < 5000
    path.write_bytes(data[:offset])  # between two records
    again = Recording(path)
    assert list(again.messages(JOINTS)) == found
    assert again.damage == [f"{path}: ends at byte {offset}, without an MCAP file's end"]
    assert set(recording.scan()) == {"/robot_description", "/joint_states", "/active_contacts"}


def chunk_of(data: bytes, share: float = 1.0 / 3.0) -> tuple[int, int]:
    """Return where the content of a chunk begins, at a share of all, and how long it is."""
    chunks, at = [], 8
    while at < len(data) - 8:
        opcode, length = struct.unpack_from("<BQ", data, at)
        chunks += [(at + 9, length)] if opcode == 6 else []
        at += 9 + length
    return chunks[int(share * len(chunks))]


def test_a_chunk_that_claims_to_be_huge_takes_no_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "run.mcap", walk(2000), chunk=4096)
    data = bytearray(path.read_bytes())
    struct.pack_into("<Q", data, chunk_of(data)[0] + 16, 2**40)
    path.write_bytes(data)
    recording = Recording(path)
    assert 1900 < len(list(recording.messages(JOINTS))) < 2000
    assert "says that it holds 1099511627776 bytes" in recording.damage[0]


def test_a_chunk_that_is_damaged_is_left_out(tmp_path: Path) -> None:
    messages = list(walk(2000))
    path = write(tmp_path / "run.mcap", messages, chunk=4096)
    data = bytearray(path.read_bytes())
    at, length = chunk_of(data)
    at += length // 2
    data[at : at + 4] = bytes(b ^ 0xFF for b in data[at : at + 4])
    path.write_bytes(data)
    recording = Recording(path)
    found = list(recording.messages(JOINTS))
    (damage,) = recording.damage
    assert f"{path}: the record at byte" in damage
    lost = [m for m in messages if m.topic in JOINTS and m not in found]
    assert 0 < len(lost) < 100
    # One hole, and all after it is there.
    assert lost[-1].time - lost[0].time == (len(lost) - 1) * STEP
    # Read again, it is not said twice.
    assert len(list(recording.messages(JOINTS))) == len(found) and len(recording.damage) == 1


def written_by_topic(messages: list[Recorded]) -> list[Recorded]:
    """Return messages as those write them who convert or merge recordings."""
    return sorted(messages, key=lambda m: (m.topic, m.time))


@pytest.mark.parametrize("chunk", [2048, 1 << 20])
def test_an_index_gives_the_order_of_time(tmp_path: Path, chunk: int) -> None:
    """Whoever wrote it in another order, however far apart."""
    messages = list(walk(500))
    path = write(tmp_path / "run.mcap", written_by_topic(messages), chunk=chunk)
    found = list(Recording(path).messages())
    assert sorted(found, key=repr) == sorted(messages, key=repr)
    assert [m.time for m in found] == sorted(m.time for m in messages)
    k = next(k for k, m in enumerate(messages) if k > 100 and m.topic == "/active_contacts")
    late = [*messages[:k], *messages[k + 1 : k + 15], messages[k], *messages[k + 15 :]]
    found = list(Recording(write(tmp_path / "late.mcap", late, chunk=chunk)).messages())
    assert [m.time for m in found] == sorted(m.time for m in messages)


def test_a_damaged_chunk_costs_itself_alone(tmp_path: Path) -> None:
    """The first one, where channels stand; its length; its opcode; and a footer anywhere."""
    messages = list(walk(2000))[1:]
    whole = write(tmp_path / "run.mcap", messages, chunk=4096).read_bytes()
    first, length = chunk_of(whole, 0.0)
    assert first == 8 + 9 + struct.unpack_from("<Q", whole, 9)[0] + 9
    changes = {
        "content": (first + length // 2, bytes([whole[first + length // 2] ^ 0xFF])),
        "length": (first - 8, struct.pack("<Q", length + 2**24)),
        "opcode": (first - 9, b"\x0f"),
        "skipped": (first - 9, b"\x07"),
    }
    for name, (at, data) in changes.items():
        path = tmp_path / f"{name}.mcap"
        path.write_bytes(whole[:at] + data + whole[at + len(data) :])
        recording = Recording(path)
        found = list(recording.messages())
        (damage,) = recording.damage
        assert f"{path}: the record at byte {first - 9} is damaged" in damage
        assert found == messages[-len(found) :] and 0 < len(messages) - len(found) < 100


@pytest.mark.parametrize("place", [0, 2**40, 2**64 - 1])
def test_a_damaged_footer_is_no_summary(tmp_path: Path, place: int) -> None:
    messages = list(walk(200))
    data = bytearray(write(tmp_path / "run.mcap", messages, chunk=4096).read_bytes())
    struct.pack_into("<Q", data, len(data) - 8 - 20, place)
    (tmp_path / "run.mcap").write_bytes(data)
    recording = Recording(tmp_path / "run.mcap")
    assert set(recording.scan()) == {m.topic for m in messages}
    assert list(recording.messages()) == messages


def test_a_summary_that_is_damaged_is_of_no_use(tmp_path: Path) -> None:
    """One bit of it may lead elsewhere; what it is of is read without it."""
    messages = list(walk(300))
    data = write(tmp_path / "run.mcap", messages, chunk=4096).read_bytes()
    (begin,) = struct.unpack_from("<Q", data, len(data) - 8 - 20)
    for at in range(begin, len(data) - 8 - 20, 53):
        changed = bytearray(data)
        changed[at] ^= 1 << (at % 8)
        (tmp_path / "run.mcap").write_bytes(changed)
        recording = Recording(tmp_path / "run.mcap")
        assert len(recording.scan()) == 3
        assert list(recording.messages()) == messages and not recording.damage, at


def test_an_index_without_a_sum_that_leads_nowhere_is_none(tmp_path: Path) -> None:
    """Fast writers leave the sum out."""
    messages = list(walk(300))
    data = bytearray(write(tmp_path / "run.mcap", messages, chunk=4096).read_bytes())
    struct.pack_into("<I", data, len(data) - 8 - 4, 0)
    (tmp_path / "run.mcap").write_bytes(data)
    assert list(Recording(tmp_path / "run.mcap").messages()) == messages
    # Of an index of a chunk, where it begins follows on opcode, length and two times.
    (begin,) = struct.unpack_from("<Q", data, len(data) - 8 - 20)
    place, length = begin, 0
    while data[place] != 8:
        (length,) = struct.unpack_from("<Q", data, place + 1)
        place += 9 + length
    data[place + 9 + 16] ^= 4
    (tmp_path / "run.mcap").write_bytes(data)
    recording = Recording(tmp_path / "run.mcap")
    assert list(recording.messages()) == messages and not recording.damage


def test_messages_that_are_counted_and_that_no_chunk_has_are_damage(tmp_path: Path) -> None:
    """The sum is left out, and the statistics count seven messages more on one channel."""
    messages = list(walk(300))
    path = write(tmp_path / "run.mcap", messages, chunk=4096)
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, len(data) - 8 - 4, 0)
    (place,) = struct.unpack_from("<Q", data, len(data) - 8 - 20)
    while data[place] != 11:
        place += 9 + struct.unpack_from("<Q", data, place + 1)[0]
    # After opcode and length: six totals, two times, the size of the table, a channel.
    at = place + 9 + 26 + 16 + 4 + 2
    struct.pack_into("<Q", data, at, struct.unpack_from("<Q", data, at)[0] + 7)
    path.write_bytes(data)
    recording = Recording(path)
    assert list(recording.messages()) == messages
    count = len(messages)
    assert recording.damage == [f"{path}: only {count} messages of the {count + 7} it counts"]


def test_a_topic_that_is_declared_and_never_comes_is_none_without_an_index(tmp_path: Path) -> None:
    """A clock above all, by which time would stand still."""
    path = bag(tmp_path / "run", list(walk(100)), StoragePlugin.MCAP) / "run.mcap"
    (tmp_path / "cut.mcap").write_bytes(path.read_bytes()[:-200])
    recording = Recording(tmp_path / "cut.mcap")
    assert recording.first("/robot_description") is not None
    assert "/clock" not in recording.scan() and "/joint_states" in recording.topics


def test_without_an_index_messages_of_lost_channels_are_counted(tmp_path: Path) -> None:
    messages = list(walk(500))[1:]
    data = bytearray(write(tmp_path / "run.mcap", messages, chunk=4096).read_bytes())
    at, length = chunk_of(data, 0.0)
    data[at + length // 2] ^= 0xFF
    (tmp_path / "run.mcap").write_bytes(data[: 2 * len(data) // 3])
    recording = Recording(tmp_path / "run.mcap")
    found = list(recording.messages())
    assert "the record at byte" in recording.damage[0]
    assert any("messages are left out: their channels" in d for d in recording.damage)
    assert len(found) < 0.7 * len(messages)


@pytest.mark.parametrize("storage", [StoragePlugin.SQLITE3, StoragePlugin.MCAP])
def test_folders_of_rosbag2(tmp_path: Path, storage: StoragePlugin) -> None:
    messages = list(walk(100))
    recording = Recording(bag(tmp_path / "run", messages, storage))
    # What was declared and never came is not there.
    assert recording.scan() == {each: kind for each, kind in TYPES.items() if each != "/clock"}
    found = list(recording.messages(JOINTS))
    assert [(m.time, m.data) for m in found] == [
        (m.time, m.data) for m in messages if m.topic in JOINTS
    ]
    assert recording.first("/robot_description") == messages[0].data


def test_a_folder_that_leaves_its_compression_open_is_not_compressed(tmp_path: Path) -> None:
    messages = list(walk(20))
    metadata = bag(tmp_path / "run", messages, StoragePlugin.MCAP) / "metadata.yaml"
    text, count = re.subn("compression_mode: .*", "compression_mode: null", metadata.read_text())
    assert count == 1
    metadata.write_text(text)
    assert list(Recording(tmp_path / "run").messages(JOINTS)) == [
        m for m in messages if m.topic in JOINTS
    ]


@pytest.mark.parametrize("storage", [StoragePlugin.SQLITE3, StoragePlugin.MCAP])
@pytest.mark.parametrize("mode", [CompressionMode.MESSAGE, CompressionMode.FILE])
def test_folders_that_are_compressed(tmp_path: Path, storage, mode) -> None:
    messages = list(walk(1500))
    folder = bag(tmp_path / "run", messages, storage, mode)
    recording = Recording(folder)
    assert [(m.time, m.data) for m in recording.messages(JOINTS)] == [
        (m.time, m.data) for m in messages if m.topic in JOINTS
    ]
    files = list(folder.glob("*.zstd"))
    assert len(files) == (mode is CompressionMode.FILE)
    for file in files:
        whole = file.read_bytes()
        file.write_bytes(whole[: 2 * len(whole) // 3])
        recording = Recording(folder)
        assert len(list(recording.messages(JOINTS))) < 1500
        assert "its compressed data ends early" in recording.damage[0]
        file.write_bytes(whole[:100])
        with pytest.raises(RecordingError, match="its compressed data ends early"):
            Recording(folder).scan()


def test_a_damaged_database_is_said(tmp_path: Path) -> None:
    folder = bag(tmp_path / "run", list(walk(3000)), StoragePlugin.SQLITE3)
    (file,) = folder.glob("*.db3")
    with sqlite3.connect(file) as database:
        (pages,) = database.execute("pragma page_count").fetchone()
    data = bytearray(file.read_bytes())
    page = len(data) // pages
    data[pages // 2 * page : (pages // 2 + 8) * page] = bytes([0xA5]) * (8 * page)
    file.write_bytes(data)
    recording = Recording(folder)
    found = list(recording.messages(JOINTS))
    assert len(found) < 3000 and any(str(folder) in each for each in recording.damage)


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "run.mcap"
    text.write_text("no recording")
    with pytest.raises(RecordingError, match="not an MCAP file"):
        list(Recording(text).messages())
    (tmp_path / "run.txt").write_text("")
    (tmp_path / "run.db3").write_text("")
    (tmp_path / "empty").mkdir()
    for path, words in (
        (tmp_path / "none.mcap", "there is no recording"),
        (tmp_path / "run.txt", "expected a recording, an .mcap or .db3 file or a folder"),
        (tmp_path / "run.db3", "not an SQLite database"),
        (tmp_path / "empty", "neither metadata.yaml nor .mcap or .db3 files"),
        (tmp_path, "files of several recordings, 'run.db3', 'run.mcap'"),
    ):
        with pytest.raises(RecordingError, match=words):
            Recording(path).scan()
    folder = bag(tmp_path / "bag", list(walk(3)), StoragePlugin.MCAP)
    (file,) = folder.glob("*.mcap")
    shutil.move(file, tmp_path / "elsewhere.mcap")
    with pytest.raises(RecordingError, match="names files that are not there"):
        Recording(folder)
    for text in ("a: 1", "a: [", "[]"):
        (folder / "metadata.yaml").write_text(text)
        with pytest.raises(RecordingError, match="ros2 bag reindex"):
            Recording(folder)


def test_memory_does_not_grow_with_the_recording(tmp_path: Path) -> None:
    """What waits is of some chunks; only the file's index is held whole, 1 kB per chunk of 64."""
    peaks, steps_of = [], (2000, 16000)
    for steps in steps_of:
        recording = Recording(write(tmp_path / f"{steps}.mcap", walk(steps)))
        tracemalloc.start()
        assert sum(1 for _ in recording.messages(JOINTS)) == steps
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 8 * (steps_of[1] - steps_of[0]), peaks


def test_other_messages_are_passed_over(tmp_path: Path) -> None:
    messages = [description(), touching(BEGIN, "LF"), state(BEGIN)]
    recording = Recording(write(tmp_path / "run.mcap", messages))
    assert [m.topic for m in recording.messages(JOINTS)] == ["/joint_states"]
