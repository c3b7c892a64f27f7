"""Records the topics of a running graph to MCAP, where there is no ``ros2 bag``.

Messages are taken as bytes and written as they are, with the times at which they were published
and came. Meant for the topics of robots and nodes, not for cameras.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from delassus_ros.node.queue import take
from delassus_ros.recordings.writer import RecordingWriter, type_name

_LOOK = 0.5  # s between looks for new topics
_PERIOD = 0.005  # s between looks for messages
_DEPTH = 2000
LATCHED = ("robot_description", "layout", "active_contacts")
"""Last parts of the names of topics that keep their latest message for late subscribers."""
NOT_WANTED = re.compile(r"/(rosout|parameter_events)$|/_|/transition_event$")


class Recorder:
    """Records what comes on topics.

    Parameters
    ----------
    node : to subscribe with; nobody has to spin it.
    path : file to write.
    wanted : tells by its full name whether a topic is recorded.

    Attributes
    ----------
    counts : messages by topic.
    unknown : topics whose type is not installed.
    """

    def __init__(self, node: Node, path: Path, wanted: Callable[[str], bool]) -> None:
        self.counts: dict[str, int] = {}
        self.unknown: dict[str, str] = {}
        self._node, self._wanted = node, wanted
        self._latched: set[str] = set()
        self._writer = RecordingWriter(path, self._latched)
        self._sources: dict[str, tuple[Any, str]] = {}
        self._looked = 0.0

    def record(self, stop: Callable[[], bool]) -> None:
        """Record until it is told to stop, then give the file its name."""
        try:
            while not stop():
                if time.monotonic() - self._looked > _LOOK:
                    self._look()
                if not self._take():
                    time.sleep(_PERIOD)
            self._take()
        except BaseException:
            self._writer.discard()
            raise
        self._writer.close()

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
            qos = QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
            if topic.rpartition("/")[2] in LATCHED:
                self._latched.add(topic)
                qos.reliability = ReliabilityPolicy.RELIABLE
                qos.durability = DurabilityPolicy.TRANSIENT_LOCAL
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


def _nothing(_: object) -> None:
    """Take nothing: messages are taken without an executor."""


def _kind(name: str) -> type[Any]:
    package, part, kind = name.split("/")
    found: type[Any] = getattr(importlib.import_module(f"{package}.{part}"), kind)
    return found
