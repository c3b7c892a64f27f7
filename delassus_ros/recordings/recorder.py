"""Records the topics of a running graph to MCAP, where there is no ``ros2 bag``.

Messages are taken as bytes and written as they are, with the times at which they were published
and came. Meant for the topics of robots and nodes, not for cameras.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from delassus_ros.errors import InputError
from delassus_ros.node.queue import take
from delassus_ros.recordings.writer import RecordingWriter, type_name

_LOOK = 0.5  # s between looks for new topics
_PERIOD = 0.005  # s between looks for messages
_DEPTH = 2000
_CHUNK = 1 << 14
"""Bytes that are compressed together, and lost together with a process that is killed."""
NOT_WANTED = re.compile(r"/(rosout|parameter_events)$|/_|/transition_event$")


class Recorder:
    """Records what comes on topics.

    Parameters
    ----------
    node : to subscribe with; nobody has to spin it.
    path : new file to write.
    wanted : tells by its full name whether a topic is recorded.

    Attributes
    ----------
    counts : messages by topic.
    unknown : topics whose type is not installed.

    Raises
    ------
    InputError
        If the file is there already: nothing is replaced.
    """

    def __init__(self, node: Node, path: Path, wanted: Callable[[str], bool]) -> None:
        self.counts: dict[str, int] = {}
        self.unknown: dict[str, str] = {}
        self._node, self._wanted = node, wanted
        self._latched: set[str] = set()
        self._path = path
        try:
            self._writer = RecordingWriter(path, self._latched, _CHUNK, live=True)
        except FileExistsError as error:
            raise InputError(f"{path} is there already, and recordings replace nothing") from error
        self._sources: dict[str, tuple[Any, str]] = {}
        self._looked = 0.0

    def record(self, stop: Callable[[], bool]) -> None:
        """Record until it is told to stop; whatever happens, the file keeps what has come.

        Raises
        ------
        InputError
            If the file cannot be written on, as the disk is full.
        """
        try:
            while not stop():
                if time.monotonic() - self._looked > _LOOK:
                    self._look()
                    self._writer.flush()
                if not self._take():
                    time.sleep(_PERIOD)
            self._take()
            self._writer.close()
        except OSError as error:
            raise InputError(
                f"{self._path} cannot be written on: {error.strerror}; what has come before is in "
                "it, without an end"
            ) from error

    def _look(self) -> None:
        """Subscribe to topics that there are by now."""
        self._looked = time.monotonic()
        for topic, kinds in self._node.get_topic_names_and_types():
            if topic in self._sources or topic in self.unknown or not self._wanted(topic):
                continue
            try:
                kind = _kind(kinds[0])
            except (ImportError, AttributeError, ValueError):
                self.unknown[topic] = kinds[0]
                continue
            offered = [each.qos_profile for each in self._node.get_publishers_info_by_topic(topic)]
            if not offered:
                continue
            qos = _matching(offered)
            if qos.durability is DurabilityPolicy.TRANSIENT_LOCAL:
                self._latched.add(topic)
            source = self._node.create_subscription(kind, topic, _nothing, qos, raw=True)
            self._sources[topic] = source, type_name(kind)
            self.counts[topic] = 0

    def _take(self) -> int:
        """Write what has come; return how many messages that were."""
        count = 0
        for topic, (source, kind) in self._sources.items():
            for data, delay in iter(partial(take, source), None):
                now = time.time_ns()
                self._writer.write_bytes(topic, now, data, kind, now - delay)
                self.counts[topic] += 1
                count += 1
        return count


def _matching(offered: Sequence[QoSProfile]) -> QoSProfile:
    """Return the most that all publishers of a topic offer."""
    reliable = all(each.reliability is ReliabilityPolicy.RELIABLE for each in offered)
    latched = all(each.durability is DurabilityPolicy.TRANSIENT_LOCAL for each in offered)
    return QoSProfile(
        depth=_DEPTH,
        reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
        durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
    )


def _nothing(_: object) -> None:
    """Take nothing: messages are taken without an executor."""


def _kind(name: str) -> type[Any]:
    package, part, kind = name.split("/")
    found: type[Any] = getattr(importlib.import_module(f"{package}.{part}"), kind)
    return found
