"""Reading a recording in order of time, whole or damaged, in memory that does not grow with it.

Recordings are MCAP files, and folders that rosbag2 writes, with MCAP or SQLite files.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

import yaml

from delassus_ros.recordings.mcap_file import WINDOW, McapFile, Recorded, RecordingError

_METADATA = "metadata.yaml"


class Recording:
    """A recording: an ``.mcap`` file, or a folder as rosbag2 writes it.

    Parameters
    ----------
    path : file or folder.

    Attributes
    ----------
    path : as given.
    name : of the file without its ending, or of the folder.
    files : the files that it is in, in order.
    size : of all of them [bytes].
    topics : type per topic with messages; those that have been met so far.
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
        self.name = name_of(path)
        self.size = sum(file.stat().st_size for file in self.files)
        # What is in messages that are compressed one by one, rosbags knows for MCAP as well.
        self._by_rosbags = any(file.suffix != ".mcap" for file in self.files) or (
            path.is_dir() and str(_about(path).get("compression_mode")).upper() == "MESSAGE"
        )

    def scan(self) -> dict[str, str]:
        """Return the type of each topic; a file that is damaged is read to its end for that."""
        if self._scanned:
            return self.topics
        self._scanned = True
        if self._by_rosbags:
            for _ in self._rosbag2(()):
                pass
            return self.topics
        for file in self.files:
            opened = McapFile(file, self.topics, self.damage)
            if not opened.summarized():
                for _ in opened.messages(()):
                    pass
        return self.topics

    def first(self, topic: str) -> bytes | None:
        """Return the first message of a topic; None if there is none."""
        if topic not in self.scan():
            return None
        return next((message.data for message in self._unsorted({topic})), None)

    def messages(self, topics: Container[str] | None = None) -> Iterator[Recorded]:
        """Yield the messages of some topics in order of time; of all topics if None is given.

        In MCAP files a clock that was set back, by more than :data:`WINDOW`, stays so: what was
        recorded after it comes after what was before.
        """
        self.position = 0
        self.damage.clear()
        waiting: list[tuple[int, int, Recorded]] = []
        newest = 0
        for number, message in enumerate(self._unsorted(topics)):
            if message.time < newest - WINDOW:
                yield from _drained(waiting)
                newest = message.time
            newest = max(newest, message.time)
            heapq.heappush(waiting, (message.time, number, message))
            while waiting[0][0] < newest - WINDOW:
                yield heapq.heappop(waiting)[2]
        yield from _drained(waiting)

    def _unsorted(self, topics: Container[str] | None) -> Iterator[Recorded]:
        if self._by_rosbags:
            yield from self._rosbag2(topics)
            return
        before = 0
        for file in self.files:
            opened = McapFile(file, self.topics, self.damage)
            for message in opened.messages(topics):
                self.position = before + opened.position
                yield message
            before += file.stat().st_size
            self.position = before

    def _rosbag2(self, topics: Container[str] | None) -> Iterator[Recorded]:
        """Yield in order of time what the package rosbags reads: SQLite, compressed messages."""
        from rosbags.rosbag2 import Reader

        try:
            with Reader(self.path) as reader:
                self.topics |= {c.topic: c.msgtype for c in reader.connections if c.msgcount}
                wanted = [c for c in reader.connections if topics is None or c.topic in topics]
                for connection, time, data in reader.messages(connections=wanted):
                    yield Recorded(time, time, connection.topic, bytes(data))
        except Exception as error:
            # Databases and decompressors, of several packages, raise errors of their own.
            self.damage.append(f"{self.path}: {error}")


def is_bag(folder: Path) -> bool:
    """Whether a folder is a recording of rosbag2."""
    return (folder / _METADATA).is_file()


def name_of(path: Path) -> str:
    """Return what outputs of a recording are called."""
    return path.stem if path.suffix == ".mcap" else path.name


def _drained(waiting: list[tuple[int, int, Recorded]]) -> Iterator[Recorded]:
    while waiting:
        yield heapq.heappop(waiting)[2]


def _about(folder: Path) -> Any:
    text = (folder / _METADATA).read_text(encoding="utf-8")
    return yaml.safe_load(text)["rosbag2_bagfile_information"]


def _files(path: Path) -> list[Path]:
    """Return the files of a recording."""
    if not path.exists():
        raise RecordingError(f"there is no recording {path}")
    if path.is_file():
        if path.suffix != ".mcap":
            hint = "; of a .db3 file give its folder" if path.suffix == ".db3" else ""
            raise RecordingError(
                f"{path}: expected a recording, an .mcap file or a folder with "
                f"metadata.yaml{hint}"
            )
        return [path]
    metadata = path / _METADATA
    if not is_bag(path):
        raise RecordingError(f"{path}: a folder without metadata.yaml is no recording of rosbag2")
    try:
        files = [path / name for name in _about(path)["relative_file_paths"]]
    except (OSError, ValueError, yaml.YAMLError, TypeError, KeyError) as error:
        words = f"{metadata}: no relative_file_paths of a rosbag2 recording"
        raise RecordingError(words) from error
    absent = [str(file) for file in files if not file.is_file()]
    if absent:
        raise RecordingError(f"{metadata} names files that are not there: {', '.join(absent)}")
    return files
