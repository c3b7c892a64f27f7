"""Reading a recording in order of time, whole or damaged, in memory independent of its size.

Recordings are MCAP files, SQLite files of rosbag2, and folders of either, as rosbag2 writes them.
"""

from __future__ import annotations

import heapq
import re
import shlex
import shutil
import tempfile
import weakref
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import zstandard

from delassus.errors import RobotError, listed
from delassus.model.reading.yaml import load_yaml
from delassus_ros.recordings.compression import ZSTD_SUFFIX, expand_file, message_of
from delassus_ros.recordings.mcap_file import WINDOW, McapFile
from delassus_ros.recordings.recorded_file import Found, Recorded, RecordedFile, RecordingError
from delassus_ros.recordings.sqlite_file import SqliteFile, logs_of

_METADATA = "metadata.yaml"
_LARGEST_METADATA = 1 << 21
"""Size of the largest metadata.yaml that is read [bytes]; with 500 topics it has some 0.5 MiB."""
_LARGEST_MESSAGE = 1 << 30
"""Largest size of the content of a compressed message [bytes]."""
LATEST = 2**63 - 1
"""The latest time that a clock of ROS can give [ns]."""
_NAME = re.compile(
    r"(?P<name>.*?)(_(?P<number>[0-9]+))?(?P<kind>\.mcap|\.db3)(\.zstd)?", re.DOTALL
)
_DATED_NAME = re.compile(
    r"(?P<number>[0-9]+)_(?P<name>.*)_[0-9]{4}(_[0-9]{2}){2}-[0-9]{2}(_[0-9]{2}){1,2}"
    r"(?P<kind>\.mcap|\.db3)(\.zstd)?", re.DOTALL,
)  # fmt: skip
"""Names that rosbag2 gives since 2026: number, name, and local time of its start."""
_ROS_1 = b"#ROSBAG V"
_REINDEX = "'ros2 bag reindex' writes it anew, and without it the folder is read as well"


class Recording:
    """A recording: an ``.mcap`` or ``.db3`` file, or a folder as rosbag2 writes it.

    Parameters
    ----------
    path : file or folder.

    Attributes
    ----------
    path : file or folder.
    name : name of the file without its ending, or of the folder.
    files : files of the recording, in order.
    size : size of all files [bytes].
    topics : types of topics with messages, as far as read; empty for an unstated type.
    foreign : encodings of topics that differ from ROS 2's encoding.
    damage : texts about parts that the latest :meth:`messages` could not read, with file and
        offset.
    remark : further remark about the recording; empty for none.
    position : number of bytes that have been read so far.

    Raises
    ------
    RecordingError
        If the file does not exist, or is no recording.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found = Found()
        self.topics, self.foreign = self._found.topics, self._found.foreign
        self.damage = self._found.damage
        self.position = 0
        self._scanned = False
        about = _about(path) if is_bag(path) else {}
        self.files = _files(path, about)
        self._counts = _counts(about)
        self.remark = ""
        if path.is_dir() and not about:
            names = ", ".join(file.name for file in self.files)
            self.remark = (
                f"{path} has no {_METADATA} with its files, as where a recorder was killed: read "
                f"from {names}; nothing tells how many messages there should be"
            )
        self.name = name_of(path)
        self.size = sum(file.stat().st_size for file in self.files)
        self._copies: dict[Path, tuple[Path, str]] = {}

    @property
    def faults(self) -> list[str]:
        """Texts that every reader of the recording reports: the damage and the remark."""
        return [*self.damage, *filter(None, (self.remark,))]

    def scan(self) -> dict[str, str]:
        """Return the types of the topics; a damaged file is read to its end for them."""
        if not self._scanned:
            self._scanned = True
            for file in self.files:
                for _ in self._of_file(file, self._opened(file, self._found), ()):
                    pass
        return self.topics

    def first(self, topic: str) -> bytes | None:
        """Return the first message of a topic; None without a message."""
        if topic not in self.scan():
            return None
        return next((message.data for message in self._unsorted({topic})), None)

    def messages(self, topics: Container[str] | None = None) -> Iterator[Recorded]:
        """Yield the messages of some topics, or of all for None, in order of time.

        Files are read in order of their earliest messages. If the clock of an MCAP file was set
        back by more than :data:`WINDOW`, messages from after this step follow the messages
        from before.
        """
        self.position = 0
        self.damage.clear()
        waiting: list[tuple[int, int, Recorded]] = []
        newest = 0
        counts: Counter[str] = Counter()
        strange: list[int] = []
        for number, message in enumerate(self._unsorted(topics)):
            counts[message.topic] += 1
            if not 0 <= message.time <= LATEST:
                strange.append(message.time)
                continue
            if message.time < newest - WINDOW:
                yield from _drained(waiting)
                newest = message.time
            newest = max(newest, message.time)
            heapq.heappush(waiting, (message.time, number, message))
            while waiting[0][0] < newest - WINDOW:
                yield heapq.heappop(waiting)[2]
        yield from _drained(waiting)
        if strange:
            self.damage.append(
                f"{self.path}: {len(strange)} messages are left out: the times at which they were "
                f"recorded, {strange[0]} ns for one, are none of a clock of ROS, 0 to {LATEST} ns"
            )
        self._check_counts(counts, topics)

    def _check_counts(self, counts: Mapping[str, int], topics: Container[str] | None) -> None:
        """Note topics with fewer messages than the metadata counts, unless damage explains it."""
        if self.damage:
            return
        for topic, expected in self._counts.items():
            if (topics is None or topic in topics) and counts[topic] < expected:
                self.damage.append(
                    f"{self.path / _METADATA} counts {expected} messages of {topic}, of which "
                    f"{counts[topic]} are there"
                )

    @cached_property
    def _by_time(self) -> list[Path]:
        """Files in the order of their earliest messages."""
        if len(self.files) < 2:
            return self.files
        begins = {}
        for file in self.files:
            begin = None
            # A file that the system cannot read is reported with the messages that are missing.
            with suppress(OSError):
                begin = self._opened(file, Found()).begin()
            begins[file] = LATEST if begin is None else begin
        return sorted(self.files, key=begins.__getitem__)

    def _unsorted(self, topics: Container[str] | None) -> Iterator[Recorded]:
        before = damaged = 0
        for file in self._by_time:
            opened = self._opened(file, self._found)
            for message in self._of_file(file, opened, topics):
                self.position = before + opened.position
                try:
                    data = message_of(message.data, _LARGEST_MESSAGE)
                except (ValueError, zstandard.ZstdError) as error:
                    damaged += 1
                    if damaged == 1:
                        self.damage.append(
                            f"{file}: a message of {message.topic} is left out, and others like "
                            f"it: {error}"
                        )
                    continue
                yield message if data is message.data else replace(message, data=data)
            before += file.stat().st_size
            self.position = before

    def _of_file(
        self, file: Path, opened: RecordedFile, topics: Container[str] | None
    ) -> Iterator[Recorded]:
        """Yield the messages of a file, up to where the system cannot read it."""
        try:
            yield from opened.messages(topics)
        except OSError as error:
            self.damage.append(f"{file} cannot be read on: {error.strerror or error}")

    def _opened(self, file: Path, found: Found) -> RecordedFile:
        """Return the reader of a file."""
        readable, damage = self._readable(file)
        if damage:
            found.damage.append(damage)
        kind = McapFile if readable.suffix == ".mcap" else SqliteFile
        return kind(readable, found, file)

    def _readable(self, file: Path) -> tuple[Path, str]:
        """Return a file that can be read directly, and a text about its damage, or empty.

        The file is a copy if the recorded file is compressed or has a log.
        """
        if file in self._copies:
            return self._copies[file]
        is_compressed, logs, damage = file.name.endswith(ZSTD_SUFFIX), logs_of(file), ""
        if not is_compressed and not logs:
            return file, ""
        try:
            folder = Path(tempfile.mkdtemp(prefix="delassus_"))
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            copy = folder / file.name.removesuffix(ZSTD_SUFFIX)
            if is_compressed:
                text = expand_file(file, copy)
                damage = f"{file}: {text}" if text else ""
            else:
                for part in (file, *logs):
                    shutil.copyfile(part, folder / part.name)
        except OSError as error:
            raise RecordingError(
                f"{file} cannot be copied to {tempfile.gettempdir()}, where it would be "
                f"decompressed or merged with its log: {error.strerror}; TMPDIR names another "
                "folder"
            ) from error
        if damage and not copy.stat().st_size:
            raise RecordingError(damage)
        self._copies[file] = copy, damage
        return copy, damage


def is_bag(folder: Path) -> bool:
    """Whether a folder is a recording of rosbag2, with its metadata."""
    return (folder / _METADATA).is_file()


def name_of(path: Path) -> str:
    """Return the name of a recording's outputs, without an ending."""
    name = path.name.removesuffix(ZSTD_SUFFIX)
    return Path(name).stem if name.endswith((".mcap", ".db3")) else name


def _drained(waiting: list[tuple[int, int, Recorded]]) -> Iterator[Recorded]:
    while waiting:
        yield heapq.heappop(waiting)[2]


def _about(folder: Path) -> Mapping[str, Any]:
    """Return the metadata of a folder; empty if a crash left an empty file."""
    metadata = folder / _METADATA
    try:
        content = load_yaml(metadata, "metadata", most=_LARGEST_METADATA)
    except RobotError as error:  # the reader's, whatever it reads
        raise RecordingError(f"{error}; {_REINDEX}") from error
    found = content.get("rosbag2_bagfile_information") if isinstance(content, Mapping) else None
    about: Mapping[str, Any] = found if isinstance(found, Mapping) else {}
    names = about.get("relative_file_paths")
    if content is None or names == []:
        return {}
    if not names or not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise RecordingError(
            f"{metadata}: no relative_file_paths of a rosbag2 recording; {_REINDEX}"
        )
    return about


def _counts(about: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers of messages by topic in the metadata; empty if they are not stated."""
    try:
        return {
            str(entry["topic_metadata"]["name"]): int(entry["message_count"])
            for entry in about["topics_with_message_count"]
        }
    except (KeyError, TypeError, ValueError, OverflowError):
        return {}


def _files(path: Path, about: Mapping[str, Any]) -> list[Path]:
    """Return the files of a recording."""
    if not path.exists():
        raise RecordingError(f"there is no recording {path}")
    if about:
        return _named_files(path, about["relative_file_paths"])
    if path.is_dir():
        return _numbered_files(path)
    if not path.is_file():
        raise RecordingError(f"{path}: expected a recording, a regular file or a folder")
    if _is_of_ros_1(path):
        raise RecordingError(_converted(path))
    if _NAME.fullmatch(path.name) is None:
        raise RecordingError(
            f"{path}: expected a recording, an .mcap or .db3 file or a folder of rosbag2"
        )
    return [path]


def _named_files(folder: Path, names: list[str]) -> list[Path]:
    """Return the files that the metadata of a folder names."""
    files = []
    for name in names:
        relative = Path(name)
        if relative.is_absolute() or ".." in relative.parts:
            raise RecordingError(
                f"{folder / _METADATA} names the file {name!r}, which is outside of its folder"
            )
        # Old versions of rosbag2 put the folder before the name.
        file = folder / relative
        files.append(file if file.is_file() else folder / relative.name)
    absent = [str(file) for file in files if not file.is_file()]
    if absent:
        raise RecordingError(
            f"{folder / _METADATA} names files that are not there: {', '.join(absent)}"
        )
    strange = next((file for file in files if _NAME.fullmatch(file.name) is None), None)
    if strange is not None:
        raise RecordingError(
            f"{folder / _METADATA} names {strange.name!r}; expected .mcap and .db3 files"
        )
    return files


def _numbered_files(folder: Path) -> list[Path]:
    """Return the files of a folder without metadata, all of one recording, by their numbers."""
    matches = [
        (match, file)
        for file in folder.iterdir()
        if (match := _DATED_NAME.fullmatch(file.name) or _NAME.fullmatch(file.name))
        and file.is_file()
    ]
    if not matches:
        of_ros_1 = next((file for file in folder.glob("*.bag") if _is_of_ros_1(file)), None)
        raise RecordingError(
            f"{folder}: a folder with neither {_METADATA} nor .mcap or .db3 files is no recording "
            "of rosbag2"
            if of_ros_1 is None
            else _converted(of_ros_1)
        )
    kinds = sorted({match["name"] + match["kind"] for match, _ in matches})
    numbers = Counter(match["number"] for match, _ in matches)
    if len(kinds) == 1:
        kinds = sorted(file.name for match, file in matches if numbers[match["number"]] > 1)
    if len(kinds) > 1:
        raise RecordingError(
            f"{folder} has no {_METADATA} and files of several recordings, "
            f"{listed('', kinds)}: name one of the files, or give all to 'delassus bags'"
        )
    return [file for _, file in sorted(matches, key=lambda found: int(found[0]["number"] or -1))]


def _is_of_ros_1(file: Path) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(len(_ROS_1)) == _ROS_1


def _converted(file: Path) -> str:
    """Return the error text for a recording of ROS 1."""
    source, target = shlex.quote(str(file)), shlex.quote(file.stem)
    return (
        f"{file} is a recording of ROS 1, which is not read: 'pip install rosbags' and "
        f"'rosbags-convert --src {source} --dst {target}' make a folder {file.stem} that is"
    )
