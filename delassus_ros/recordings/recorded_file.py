"""Base of the files of a recording: messages, topics and damage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from delassus.errors import DelassusError

_CDR = "cdr"
"""Encoding of messages in ROS 2."""


class RecordingError(DelassusError):
    """A recording cannot be read, or lacks a topic or type; names file, topic and type."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded message.

    Attributes
    ----------
    time, sent : time of recording and time of publishing [ns].
    topic : full name of the topic.
    data : serialized message, in CDR.
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
    topics : types of topics with messages; empty for an unstated type.
    foreign : encodings of topics that differ from ROS 2's encoding.
    damage : texts about parts that cannot be read, with file and offset.
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
    found : collects topics and damage.
    shown : path in messages, if `path` is a copy.

    Attributes
    ----------
    position : number of bytes that have been read so far.
    """

    def __init__(self, path: Path, found: Found, shown: Path | None = None) -> None:
        self._path, self._shown, self._found = path, shown or path, found
        self._size = path.stat().st_size
        self.position = 0

    def begin(self) -> int | None:
        """Return the time of the first message [ns]; None without a message."""
        first = next(self.messages(None), None)
        return None if first is None else first.time

    @abstractmethod
    def messages(self, topics: Container[str] | None) -> Iterator[Recorded]:
        """Yield the messages of some topics, or of all; note the topics that have messages.

        With a summary in the file, topics are noted without reading the messages.
        """

    def _damaged(self, text: str) -> None:
        self._found.damage.append(f"{self._shown}: {text}")
