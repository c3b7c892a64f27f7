"""Recordings that a few bytes make huge: refused in words, with little memory and time."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import zstandard
from little_memory import run
from mcap.opcode import Opcode
from recordings_support import PARAMETERS, bag, walk, write
from rosbags.rosbag2 import StoragePlugin

from delassus_ros.recordings.compression import allowed, expand_file, expanded
from delassus_ros.recordings.recorded_file import RecordingError
from delassus_ros.recordings.recording import Recording

GIB = 1 << 30
MAGIC = b"\x89MCAP0\r\n"
FOOTER = struct.pack("<BQQQI", Opcode.FOOTER, 20, 8, 0, 0)
"""Says that the summary begins where the file does."""


def lz4_of_zeros(size: int) -> bytes:
    """Return a frame that holds so many zero bytes, in blocks of 4 MiB."""
    block = 4 << 20
    options = {"block_size": lz4.frame.BLOCKSIZE_MAX4MB, "block_linked": False}
    frame = lz4.frame.compress(bytes(block), store_size=False, **options)
    head = 7  # mark, flags, their checksum
    return frame[:head] + frame[head:-4] * (size // block) + frame[-4:]


def zstd_of_zeros(size: int) -> bytes:
    """Return a frame that holds so many zero bytes, and states it."""
    compressor = zstandard.ZstdCompressor().compressobj(size=size)
    piece = bytes(16 << 20)
    return b"".join(compressor.compress(piece) for _ in range(size // len(piece))) + (
        compressor.flush()
    )


def chunk(data: bytes, claimed: int, compression: bytes) -> bytes:
    """Return a chunk that claims to hold so many bytes."""
    content = struct.pack("<QQQII", 1, 1, claimed, 0, len(compression)) + compression
    content += struct.pack("<Q", len(data)) + data
    return struct.pack("<BQ", Opcode.CHUNK, len(content)) + content


def episodes(tmp_path: Path, *paths: Path) -> list[dict[str, Any]]:
    """Return what becomes of recordings in a process with little memory."""
    done = run(
        f"""
        import dataclasses, json
        from delassus_ros.recordings.episode import Task, map_episode
        from delassus.robots.built_in import demo_urdf
        task = Task({PARAMETERS!r}, {str(tmp_path / "out")!r}, demo_urdf(), formats=("parquet",))
        import mcap.reader, pyarrow.parquet
        limit()
        found = [map_episode(path, task) for path in {[str(path) for path in paths]!r}]
        print(json.dumps([dataclasses.asdict(each) for each in found]))
        """
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


CHUNKS = {
    "it holds more than 1000 bytes": ("lz4", 1000),
    f"it holds {4 * GIB} bytes, expected at most 1000": ("zstd", 1000),
    f"it says that it holds {GIB + 1} bytes": ("lz4", GIB + 1),
    f"it says that it holds {GIB} bytes in ": ("zstd", GIB),
    "its compression 'lzma' is unknown; expected 'zstd' or 'lz4'": ("lzma", 1000),
}
"""Compression and claimed size, by the words about a chunk of some GiB."""


def test_a_chunk_that_holds_more_than_it_claims(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.mcap", walk(60)).read_bytes()
    end = whole.index(struct.pack("<BQ", Opcode.DATA_END, 4))
    made = {"lz4": lz4_of_zeros(2 * GIB), "zstd": zstd_of_zeros(4 * GIB), "lzma": b"a"}
    paths = []
    for number, (compression, claimed) in enumerate(CHUNKS.values()):
        bomb = chunk(made[compression], claimed, compression.encode())
        paths.append(tmp_path / f"{number}.mcap")
        paths[-1].write_bytes(whole[:end] + bomb + whole[end : end + 13] + MAGIC)
    for episode, words in zip(episodes(tmp_path, *paths), CHUNKS, strict=True):
        assert (episode["matrices"], episode["error"]) == (60, "")
        (damage,) = episode["damage"]
        assert f"the record at byte {end} is damaged: {words}" in damage


def test_content_is_what_was_compressed_or_refused() -> None:
    data = os.urandom(1000) * 3
    for kind, compressed in (
        ("zstd", zstandard.ZstdCompressor().compress(data)),
        ("zstd", zstandard.ZstdCompressor(write_content_size=False).compress(data)),
        ("lz4", lz4.frame.compress(data)),
        ("lz4", lz4.frame.compress(data, store_size=False)),
        ("", data),
    ):
        assert expanded(compressed, kind, len(data)) == data
        if kind:
            for wrong, most in ((compressed, len(data) - 1), (compressed[:-9], len(data))):
                with pytest.raises((ValueError, RuntimeError, zstandard.ZstdError)):
                    expanded(wrong, kind, most)


def test_a_compressed_file_that_holds_far_more_than_its_size(tmp_path: Path) -> None:
    folder = bag(tmp_path / "run", list(walk(30)), StoragePlugin.MCAP)
    (file,) = folder.glob("*.mcap")
    bomb = file.with_name("run.mcap.zstd")
    bomb.write_bytes(zstd_of_zeros(GIB))
    text = expand_file(bomb, tmp_path / "content")
    assert text == f"it holds more than {allowed(0)} bytes, 100 times its own"
    assert (tmp_path / "content").stat().st_size <= allowed(0)


def test_messages_that_are_compressed_one_by_one_are_bounded(tmp_path: Path) -> None:
    messages = list(walk(30))
    path = write(tmp_path / "run.mcap", messages)
    huge = messages[-1].__class__(
        messages[-1].time + 1, messages[-1].time + 1, "/joint_states", zstd_of_zeros(2 * GIB)
    )
    recording = Recording(write(path, [*messages, huge]))
    assert list(recording.messages()) == messages
    assert "a message of /joint_states is left out, and others like it" in recording.damage[0]


BOMB = "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)


METADATA = {
    "it has the alias *a": BOMB + "rosbag2_bagfile_information: {relative_file_paths: *j}",
    "it has the alias *a; ": BOMB
    + "rosbag2_bagfile_information: {relative_file_paths: [run.mcap], compression_mode: *j}",
    "it is nested more than 10 deep": "a: " + 50 * "[" + 50 * "]",
    "is not YAML": "rosbag2_bagfile_information: !!python/object/apply:os.getcwd []",
    "is larger than 2097152 bytes": "# " + (2 << 20) * "x",
}


def test_metadata_that_would_become_huge(tmp_path: Path) -> None:
    paths = []
    for number, text in enumerate(METADATA.values()):
        paths.append(bag(tmp_path / str(number), list(walk(3)), StoragePlugin.MCAP))
        (paths[-1] / "metadata.yaml").write_text(text)
    for episode, path, words in zip(episodes(tmp_path, *paths), paths, METADATA, strict=True):
        assert f"metadata '{path}/metadata.yaml'" in episode["error"]
        assert words in episode["error"] and "ros2 bag reindex" in episode["error"]


@pytest.mark.parametrize("name", ["../run.mcap", "/etc/passwd", "a/../../run.mcap"])
def test_metadata_names_no_file_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    write(tmp_path / "run.mcap", walk(10))
    folder = bag(tmp_path / "run", list(walk(30)), StoragePlugin.MCAP)
    text = (folder / "metadata.yaml").read_text()
    (folder / "metadata.yaml").write_text(text.replace("- run.mcap", f"- {name}"))
    with pytest.raises(RecordingError, match="which is outside of its folder"):
        Recording(folder)


def test_metadata_of_old_versions_has_the_folder_before_the_name(tmp_path: Path) -> None:
    folder = bag(tmp_path / "run", list(walk(30)), StoragePlugin.MCAP)
    text = (folder / "metadata.yaml").read_text()
    (folder / "metadata.yaml").write_text(text.replace("- run.mcap", "- was/run.mcap"))
    assert Recording(folder).files == [folder / "run.mcap"]


def sparse(path: Path, head: bytes = b"", tail: bytes = b"") -> Path:
    """Make a file of 20 GiB of zeros that takes no room on the disk."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(20 * GIB)
        file.seek(-len(tail), os.SEEK_END)
        file.write(tail)
    assert path.stat().st_blocks * 512 < 1 << 20
    return path


def test_sparse_files_of_zeros(tmp_path: Path) -> None:
    (tmp_path / "metadata").mkdir()
    files = {
        "a.mcap": (b"", b"", "not an MCAP file"),
        "b.mcap": (MAGIC, b"", "no topic /joint_states"),
        "c.mcap": (MAGIC, FOOTER + MAGIC, "no topic /joint_states"),
        "d.db3": (b"", b"", "not an SQLite database"),
        "e.db3": (b"SQLite format 3\0", b"", "no topic /joint_states"),
        "metadata/metadata.yaml": (b"", b"", "is larger than 2097152 bytes"),
    }
    paths = [sparse(tmp_path / name, *ends) for name, (*ends, _) in files.items()]
    paths[-1] = paths[-1].parent
    for episode, (_, _, words) in zip(episodes(tmp_path, *paths), files.values(), strict=True):
        assert words in episode["error"]


def test_zeros_after_the_last_record_are_said_with_their_place(tmp_path: Path) -> None:
    """As a file system leaves them whose journal was replayed after a power cut."""
    messages = list(walk(60))
    path = write(tmp_path / "run.mcap", messages)
    whole = path.read_bytes()
    end = whole.index(struct.pack("<BQ", Opcode.DATA_END, 4))
    path.write_bytes(whole[:end] + bytes(10_000))
    recording = Recording(path)
    assert list(recording.messages()) == messages
    assert recording.damage == [
        f"{path}: ends at byte {end}: there are zeros instead of a record"
    ]
