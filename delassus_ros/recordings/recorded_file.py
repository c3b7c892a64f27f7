"""One file of a recording: how it is opened, and what its messages, topics and damage are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from delassus_ros.errors import DelassusError

_CDR = "cdr"
"""How ROS 2 encodes messages."""


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


@dataclass
class Found:
    """Topics and damage of a recording, as far as its files have been read.

    Attributes
    ----------
    topics : type per topic with messages; empty where the recording does not state the type.
    foreign : encoding per topic whose messages are not encoded as ROS 2 does.
    damage : parts that cannot be read, each with file and offset.
    """

    topics: dict[str, str] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)

    def note(self, topic: str, encoding: str, kind: str) -> None:
        """Add a topic."""
        if encoding == _CDR:
            self.topics[topic] = kind or self.topics.get(topic, "")
        else:
            self.foreign[topic] = encoding


class RecordedFile(ABC):
    """A file with messages.

    Parameters
    ----------
    path : of the file.
    found : topics and damage are added to it.
    shown : path in messages, where `path` is a copy.

    Attributes
    ----------
    position : bytes that have been read so far.
    """

    def __init__(self, path: Path, found: Found, shown: Path | None = None) -> None:
        self._path, self._shown, self._found = path, shown or path, found
        self._size = path.stat().st_size
        self.position = 0

    @abstractmethod
    def summarized(self) -> bool:
        """Take the topics without reading all messages; return whether the file allows that."""

    @abstractmethod
    def messages(self, topics: Container[str] | None) -> Iterator[Recorded]:
        """Yield the messages of some topics, or of all.

        Raises
        ------
        RecordingError
            If the file is no recording of its kind.
        """
