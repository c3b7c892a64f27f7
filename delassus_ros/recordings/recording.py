"""Reading a recording in order of time, whole or damaged, in memory that does not grow with it.

MCAP files are read from beginning to end; chunks that are damaged are left out and said, with file
and offset. Folders that rosbag2 writes, with MCAP or SQLite files, are read file by file.
"""

from __future__ import annotations

import heapq
import sqlite3
import struct
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

import yaml
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.reader import make_reader
from mcap.records import Channel, Chunk, McapRecord, Schema
from mcap.records import Message as McapMessage
from mcap.stream_reader import breakup_chunk

from delassus_ros.errors import DelassusError

WINDOW = 100_000_000
"""Messages that were written so much out of order are put into order [ns]; what is further back is
a clock that was set back."""
_DAMAGE = (McapError, ValueError, RuntimeError, struct.error, zstandard.ZstdError)
"""What readers of records and decompressors raise; of LZ4 it is a RuntimeError."""
_MAGIC = b"\x89MCAP0\r\n"
_HEAD = struct.Struct("<BQ")
_LARGEST = 1 << 30
"""Bytes of the largest record that is read, and that a chunk may hold: recorders write less."""


class RecordingError(DelassusError):
    """A recording that cannot be read, or has not what is needed; names file, topic and type."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A message as it was recorded.

    Attributes
    ----------
    time, sent : when it was recorded, and when it was published [ns].
    topic : full name.
    data : serialized, in CDR.
    """

    time: int
    sent: int
    topic: str
    data: bytes


class Recording:
    """A recording: an ``.mcap`` file, or a folder as rosbag2 writes it.

    Parameters
    ----------
    path : file or folder.

    Attributes
    ----------
    path : as given.
    files : the files that it is in, in order.
    size : of all of them [bytes].
    topics : type per topic; those that have been met so far.
    damage : what the latest :meth:`messages` could not read, each with file and offset.
    position : bytes that have been read so far, of MCAP files.

    Raises
    ------
    RecordingError
        If there is no such file, or it is no recording.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.topics: dict[str, str] = {}
        self.damage: list[str] = []
        self.position = 0
        self._scanned = False
        self.files = _files(path)
        self.size = sum(file.stat().st_size for file in self.files)

    def scan(self) -> dict[str, str]:
        """Return the type of each topic; a file that is damaged is read to its end for that."""
        if self._scanned:
            return self.topics
        self._scanned = True
        for file in self.files:
            if file.suffix == ".mcap" and not self._summarized(file):
                for _ in self._mcap(file, ()):
                    pass
        if any(file.suffix != ".mcap" for file in self.files):
            for _ in self._rosbag2(()):
                pass
        return self.topics

    def _summarized(self, path: Path) -> bool:
        """Take the topics from the summary at the end of a file, if it has one."""
        with path.open("rb") as file:
            try:
                summary = make_reader(file).get_summary()
            except _DAMAGE:
                return False
            if summary is None or not summary.channels:
                return False
            for channel in summary.channels.values():
                schema = summary.schemas.get(channel.schema_id)
                if channel.message_encoding == "cdr" and schema is not None:
                    self.topics[channel.topic] = schema.name
        return True

    def first(self, topic: str) -> bytes | None:
        """Return the first message of a topic, as it was written; None if there is none."""
        if topic not in self.scan():
            return None
        return next((message.data for message in self._as_written({topic})), None)

    def messages(self, topics: Container[str] | None = None) -> Iterator[Recorded]:
        """Yield the messages of some topics in order of time; of all topics if None is given.

        A clock that was set back, by more than :data:`WINDOW`, stays so: what was recorded after
        it comes after what was before.
        """
        self.position = 0
        self.damage.clear()
        waiting: list[tuple[int, int, Recorded]] = []
        newest = 0
        for number, message in enumerate(self._as_written(topics)):
            if message.time < newest - WINDOW:
                yield from _drained(waiting)
                newest = message.time
            newest = max(newest, message.time)
            heapq.heappush(waiting, (message.time, number, message))
            while waiting[0][0] < newest - WINDOW:
                yield heapq.heappop(waiting)[2]
        yield from _drained(waiting)

    def _as_written(self, topics: Container[str] | None) -> Iterator[Recorded]:
        if any(file.suffix != ".mcap" for file in self.files):
            yield from self._rosbag2(topics)
            return
        for file in self.files:
            yield from self._mcap(file, topics)

    def _rosbag2(self, topics: Container[str] | None) -> Iterator[Recorded]:
        """Yield what the package rosbags reads: SQLite files, compressed or not."""
        from rosbags.rosbag2 import Reader, ReaderError

        folder = self.path if self.path.is_dir() else self.path.parent
        try:
            with Reader(folder) as reader:
                self.topics |= {each.topic: each.msgtype for each in reader.connections}
                wanted = [c for c in reader.connections if topics is None or c.topic in topics]
                for connection, time, data in reader.messages(connections=wanted):
                    yield Recorded(time, time, connection.topic, bytes(data))
        except (ReaderError, sqlite3.DatabaseError) as error:
            self.damage.append(f"{folder}: {error}")

    def _mcap(self, path: Path, topics: Container[str] | None) -> Iterator[Recorded]:
        schemas: dict[int, str] = {}
        names: dict[int, str] = {}
        before = self.position
        with path.open("rb") as file:
            for record in self._records(path, file):
                match record:
                    case Schema():
                        schemas[record.id] = record.name
                    case Channel():
                        names[record.id] = record.topic
                        if record.message_encoding == "cdr":
                            self.topics[record.topic] = schemas.get(record.schema_id, "")
                    case McapMessage():
                        self.position = before + file.tell()
                        topic = names.get(record.channel_id)
                        if topic is not None and (topics is None or topic in topics):
                            time, sent = record.log_time, record.publish_time
                            yield Recorded(time, sent, topic, record.data)

    def _records(self, path: Path, file: IO[bytes]) -> Iterator[McapRecord]:
        """Yield the records of a file, those of chunks among them."""
        readers: dict[int, Callable[[ReadDataStream, int], McapRecord]] = {
            Opcode.SCHEMA: lambda stream, _: Schema.read(stream),
            Opcode.CHANNEL: lambda stream, _: Channel.read(stream),
            Opcode.MESSAGE: McapMessage.read,
        }
        if file.read(len(_MAGIC)) != _MAGIC:
            raise RecordingError(f"{path}: not an MCAP file; its first bytes are others")
        size = path.stat().st_size
        while True:
            offset = file.tell()
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                self.damage.append(f"{path}: ends at byte {offset}, without an MCAP file's end")
                return
            opcode, length = _HEAD.unpack(head)
            if opcode in (Opcode.FOOTER, Opcode.DATA_END):
                return
            if length > min(_LARGEST, size - file.tell()):
                self.damage.append(f"{path}: ends within the record at byte {offset}")
                return
            content = file.read(length)
            stream = ReadDataStream(BytesIO(content))
            try:
                if opcode == Opcode.CHUNK:
                    yield from _opened(Chunk.read(stream))
                elif opcode in readers:
                    yield readers[opcode](stream, length)
            except _DAMAGE as error:
                self.damage.append(f"{path}: the record at byte {offset} is damaged: {error}")


def _opened(chunk: Chunk) -> list[McapRecord]:
    if chunk.uncompressed_size > _LARGEST:
        raise ValueError(f"it says that it holds {chunk.uncompressed_size} bytes")
    return breakup_chunk(chunk, validate_crc=True)


def _drained(waiting: list[tuple[int, int, Recorded]]) -> Iterator[Recorded]:
    while waiting:
        yield heapq.heappop(waiting)[2]


def _files(path: Path) -> list[Path]:
    """Return the files of a recording."""
    if not path.exists():
        raise RecordingError(f"there is no recording {path}")
    if path.is_file():
        if path.suffix not in (".mcap", ".db3"):
            raise RecordingError(
                f"{path}: expected a recording, an .mcap file or a folder with metadata.yaml"
            )
        return [path]
    metadata = path / "metadata.yaml"
    if not metadata.is_file():
        raise RecordingError(f"{path}: a folder without metadata.yaml is no recording of rosbag2")
    about = yaml.safe_load(metadata.read_text(encoding="utf-8"))
    try:
        names = about["rosbag2_bagfile_information"]["relative_file_paths"]
        files = [path / name for name in names]
    except (TypeError, KeyError) as error:
        words = f"{metadata}: no relative_file_paths of a rosbag2 recording"
        raise RecordingError(words) from error
    absent = [str(file) for file in files if not file.is_file()]
    if absent:
        raise RecordingError(f"{metadata} names files that are not there: {', '.join(absent)}")
    return files
