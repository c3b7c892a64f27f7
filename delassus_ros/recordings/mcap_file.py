"""Reading one MCAP file, as far as it is whole.

The index at the end of a file has the places of its chunks, which are read in order of time,
whatever else is damaged. Without an index (a file that was cut off), or with a damaged index,
records are read in the order in which they were written. Damaged parts are left out and reported
with file and offset.
"""

from __future__ import annotations

import heapq
import struct
import zlib
from collections.abc import Callable, Container, Iterator, Sequence, Set
from dataclasses import replace
from io import BytesIO
from typing import IO

import numpy as np
import zstandard
from mcap.data_stream import ReadDataStream
from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.reader import SeekingReader
from mcap.records import Channel, Chunk, ChunkIndex, McapRecord, Schema
from mcap.records import Message as McapMessage
from mcap.stream_reader import breakup_chunk
from mcap.summary import Summary

from delassus_ros.recordings.compression import allowed, expanded
from delassus_ros.recordings.recorded_file import Recorded, RecordedFile, RecordingError

WINDOW = 100_000_000
"""Messages that are out of order by up to this time are sorted [ns]; a larger step back in time is
a clock that was set back."""
_DAMAGE = (McapError, ValueError, RuntimeError, OverflowError, struct.error, zstandard.ZstdError)
"""Errors of the readers of records and of decompressors; LZ4 raises a RuntimeError."""
_MAGIC = b"\x89MCAP0\r\n"
_HEAD = struct.Struct("<BQ")
_INDEX_HEAD = 6
"""Bytes of an index of messages before its pairs of time and offset, of 16 bytes."""
_FOOTER = struct.Struct("<QQI")
_LARGEST = 1 << 30
"""Size of the largest record that is read, and of the content of a chunk [bytes]; recorders write
less."""
_LARGEST_SUMMARY = 1 << 26
"""Size of the largest summary that is read [bytes]: an index of 100 000 chunks has some 30 MiB."""
_END = {Opcode.DATA_END: 4, Opcode.FOOTER: 20}
"""Length of the records at the end of a file's data [bytes]."""
_NO_RECORD = 0
"""Opcode of no record: a file system leaves zeros in places that were not written."""


class McapFile(RecordedFile):
    """An MCAP file."""

    def begin(self) -> int | None:
        """Return the time of the earliest message by the summary, else of the first message."""
        with self._path.open("rb") as file:
            summary = self._summary(file)
        statistics = None if summary is None else summary.statistics
        if statistics is not None and statistics.message_count:
            return int(statistics.message_start_time)
        return super().begin()

    def messages(self, topics: Container[str] | None) -> Iterator[Recorded]:
        """Yield the messages of some topics, or of all, in order of time by the index.

        Without an index, or where messages of one topic go back in time by more than
        :data:`WINDOW`, messages have the order in which they were written.
        """
        with self._path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise RecordingError(
                    f"{self._shown}: not an MCAP file; its first bytes differ"
                )
            summary = self._summary(file)
            names = {
                number: channel.topic
                for number, channel in (summary.channels if summary else {}).items()
                if topics is None or channel.topic in topics
            }
            if summary is None or (names and not summary.chunk_indexes):
                file.seek(len(_MAGIC))
                yield from self._as_written(file, topics)
            elif names:
                yield from self._indexed(file, summary, names)

    def _summary(self, file: IO[bytes]) -> Summary | None:
        """Return the summary if it is undamaged, and note the topics that have messages."""
        end = self._size - len(_MAGIC)
        if end < _FOOTER.size:
            return None
        file.seek(end - _FOOTER.size)
        begin, _, crc = _FOOTER.unpack(file.read(_FOOTER.size))
        if not 0 < self._size - begin <= _LARGEST_SUMMARY:
            return None
        file.seek(begin)
        # The checksum covers all bytes before it.
        if crc and zlib.crc32(file.read(end - 4 - begin)) != crc:
            return None
        file.seek(0)
        try:
            summary = SeekingReader(file, record_size_limit=_LARGEST_SUMMARY).get_summary()
        except _DAMAGE:
            return None
        if summary is None or not summary.channels:
            return None
        schemas = {channel.schema_id for channel in summary.channels.values()} - {0}
        # Fast writers omit the checksum. The index is accepted if its offsets lead to chunks.
        is_whole = crc or all(
            self._head(file, chunk.chunk_start_offset) == (Opcode.CHUNK, chunk.chunk_length - 9)
            for chunk in summary.chunk_indexes
        )
        if not is_whole or not schemas <= summary.schemas.keys():
            return None
        counts = summary.statistics.channel_message_counts if summary.statistics else None
        for number, channel in summary.channels.items():
            schema = summary.schemas.get(channel.schema_id)
            if counts is None or counts.get(number, 0):
                self._found.note(
                    channel.topic, channel.message_encoding, "" if schema is None else schema.name
                )
        return summary

    # Reading by the index.

    def _indexed(
        self, file: IO[bytes], summary: Summary, names: dict[int, str]
    ) -> Iterator[Recorded]:
        reported, count = len(self._found.damage), 0
        for message in self._ordered(file, summary, names):
            count += 1
            yield message
        said = summary.statistics.channel_message_counts if summary.statistics else {}
        expected = sum(said.get(number, 0) for number in names)
        if count < expected and len(self._found.damage) == reported:
            self._damaged(f"only {count} messages of the {expected} it counts")

    def _ordered(
        self, file: IO[bytes], summary: Summary, names: dict[int, str]
    ) -> Iterator[Recorded]:
        chunks = [
            chunk
            for chunk in sorted(summary.chunk_indexes, key=lambda index: index.chunk_start_offset)
            if not chunk.message_index_offsets or names.keys() & chunk.message_index_offsets
        ]
        if self._goes_back(file, chunks, names.keys()):
            for chunk in chunks:
                yield from self._chunk(file, chunk, names)
            return
        chunks.sort(key=lambda index: index.message_start_time)
        waiting: list[tuple[int, int, int, Recorded]] = []
        for chunk in chunks:
            while waiting and waiting[0][0] < chunk.message_start_time:
                yield heapq.heappop(waiting)[-1]
            for number, message in enumerate(self._chunk(file, chunk, names)):
                heapq.heappush(waiting, (message.time, chunk.chunk_start_offset, number, message))
        while waiting:
            yield heapq.heappop(waiting)[-1]

    def _goes_back(
        self, file: IO[bytes], chunks: Sequence[ChunkIndex], wanted: Set[int]
    ) -> bool:
        """Return whether times decrease within one topic, or the index lacks times of messages."""
        newest: dict[int, int] = {}
        for chunk in chunks:
            if not chunk.message_index_offsets:
                return True
            for channel in wanted & chunk.message_index_offsets.keys():
                times = self._times(file, chunk.message_index_offsets[channel])
                if times is None:
                    return True
                before = np.maximum.accumulate(np.append(newest.get(channel, 0), times))
                if (times < before[:-1] - WINDOW).any():
                    return True
                newest[channel] = int(before[-1])
        return False

    def _times(self, file: IO[bytes], offset: int) -> np.ndarray | None:
        """Return the times of a chunk's messages of a channel, in order of writing [ns]."""
        content = self._record(file, offset, Opcode.MESSAGE_INDEX)
        if content is None or len(content) % 16 != _INDEX_HEAD:
            return None
        pairs = np.frombuffer(content, "<i8", offset=_INDEX_HEAD).reshape(-1, 2)
        times: np.ndarray = pairs[np.argsort(pairs[:, 1], kind="stable"), 0]
        return times

    def _chunk(self, file: IO[bytes], chunk: ChunkIndex, names: dict[int, str]) -> list[Recorded]:
        """Return the messages of a chunk; none if it is damaged."""
        offset = chunk.chunk_start_offset
        content = self._record(file, offset, Opcode.CHUNK)
        self.position += chunk.chunk_length + chunk.message_index_length
        if content is None or len(content) != chunk.chunk_length - _HEAD.size:
            self._damaged(
                f"the record at byte {offset} is damaged: not the chunk that the index says"
            )
            return []
        try:
            records = _opened(Chunk.read(ReadDataStream(BytesIO(content))))
        except _DAMAGE as error:
            self._damaged(f"the record at byte {offset} is damaged: {error}")
            return []
        return [
            Recorded(record.log_time, record.publish_time, names[record.channel_id], record.data)
            for record in records
            if isinstance(record, McapMessage) and record.channel_id in names
        ]

    def _record(self, file: IO[bytes], offset: int, opcode: Opcode) -> bytes | None:
        """Return the content of a record; None if there is no such record at the offset."""
        found, length = self._head(file, offset)
        if found != opcode or length > min(_LARGEST, self._size - file.tell()):
            return None
        return file.read(length)

    def _head(self, file: IO[bytes], offset: int) -> tuple[int, int]:
        """Return the opcode and the length of the record at an offset; zeros beyond the end."""
        if offset > self._size - _HEAD.size:
            return 0, 0
        file.seek(offset)
        opcode, length = _HEAD.unpack(file.read(_HEAD.size))
        return opcode, length

    # Reading without an index.

    def _as_written(self, file: IO[bytes], topics: Container[str] | None) -> Iterator[Recorded]:
        schemas: dict[int, str] = {}
        names: dict[int, str] = {}
        kinds: dict[int, tuple[str, str]] = {}
        strange = 0
        for record in self._records(file):
            match record:
                case Schema():
                    schemas[record.id] = record.name
                case Channel():
                    names[record.id] = record.topic
                    kinds[record.id] = (
                        record.message_encoding, schemas.get(record.schema_id, "")
                    )  # fmt: skip
                case McapMessage():
                    self.position = file.tell()
                    topic = names.get(record.channel_id)
                    if topic is None:
                        strange += 1
                        continue
                    if record.channel_id in kinds:
                        self._found.note(topic, *kinds.pop(record.channel_id))
                    if topics is None or topic in topics:
                        yield Recorded(record.log_time, record.publish_time, topic, record.data)
        if strange:
            self._damaged(
                f"{strange} messages are left out: their channels were in damaged records"
            )

    def _records(self, file: IO[bytes]) -> Iterator[McapRecord]:
        """Yield the records of a file, including those inside chunks."""
        readers: dict[int, Callable[[ReadDataStream, int], McapRecord]] = {
            Opcode.SCHEMA: lambda stream, _: Schema.read(stream),
            Opcode.CHANNEL: lambda stream, _: Channel.read(stream),
            Opcode.MESSAGE: McapMessage.read,
        }
        while True:
            offset = file.tell()
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                self._damaged(f"ends at byte {offset}, without an MCAP file's end")
                return
            opcode, length = _HEAD.unpack(head)
            if _END.get(opcode) == length:
                return
            if opcode == _NO_RECORD:
                self._damaged(f"ends at byte {offset}: there are zeros instead of a record")
                return
            if length > min(_LARGEST, self._size - file.tell()):
                self._damaged(f"ends within the record at byte {offset}")
                return
            content = file.read(length)
            stream = ReadDataStream(BytesIO(content))
            try:
                if opcode == Opcode.CHUNK:
                    yield from _opened(Chunk.read(stream))
                elif opcode in readers:
                    yield readers[opcode](stream, length)
            except _DAMAGE as error:
                self._damaged(f"the record at byte {offset} is damaged: {error}")


def _opened(chunk: Chunk) -> list[McapRecord]:
    size = chunk.uncompressed_size
    if size > min(_LARGEST, allowed(len(chunk.data))):
        raise ValueError(f"it says that it holds {size} bytes in {len(chunk.data)}")
    content = expanded(chunk.data, chunk.compression, size)
    return breakup_chunk(replace(chunk, compression="", data=content), validate_crc=True)
