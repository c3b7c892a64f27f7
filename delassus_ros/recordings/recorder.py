"""Records the topics of a running graph to MCAP, without ``ros2 bag``.

Messages are received as bytes and written unchanged, with their times of publishing and of
arrival. The recorder is made for the topics of robots and nodes, not for cameras.
"""

from __future__ import annotations

import importlib
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from delassus.errors import DelassusError, InputError
from delassus_ros.recordings.writer import RecordingWriter, definition, type_name
from delassus_ros.ros.arrival import delay_since
from delassus_ros.ros.queue import pop

_TOPICS_PERIOD_S = 0.5
"""Time between checks for new topics, and between flushes of the file [s]."""
_QUEUES_PERIOD_S = 0.005
"""Time between checks of empty queues for messages [s]."""
_DEPTH = 2000
_MESSAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*/msg/[A-Za-z][A-Za-z0-9_]*", re.ASCII)
NOT_WANTED = re.compile(r"/(rosout|parameter_events)$|/_|/transition_event$")


@dataclass(frozen=True)
class _Offer:
    """QoS that publishers offer: reliable delivery; the latest message for late subscribers."""

    reliable: bool
    latched: bool

    @classmethod
    def of_all(cls, profiles: Iterable[QoSProfile]) -> _Offer:
        """Return the QoS that all of some publishers offer."""
        offers = [
            cls(
                profile.reliability is ReliabilityPolicy.RELIABLE,
                profile.durability is DurabilityPolicy.TRANSIENT_LOCAL,
            )
            for profile in profiles
        ]
        return cls(all(one.reliable for one in offers), all(one.latched for one in offers))

    def exceeds(self, other: _Offer) -> bool:
        """Whether a subscription with this QoS is incompatible with a publisher with `other`."""
        return self.least(other) != self

    def least(self, other: _Offer) -> _Offer:
        """Return the QoS that both offer."""
        return _Offer(self.reliable and other.reliable, self.latched and other.latched)

    def profile(self) -> QoSProfile:
        """Return the profile of a subscription."""
        profile = QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
        if self.reliable:
            profile.reliability = ReliabilityPolicy.RELIABLE
        if self.latched:
            profile.durability = DurabilityPolicy.TRANSIENT_LOCAL
        return profile


@dataclass(frozen=True)
class _Source:
    """A recorded topic."""

    kind: type[Any]
    subscription: Any
    offer: _Offer


class Recorder:
    """Records the messages of topics.

    Parameters
    ----------
    node : node of the subscriptions, which need not be spun.
    wanted : returns whether a topic is recorded, by its full name.

    Attributes
    ----------
    counts : number of messages by topic.
    unknown : topics whose type is not installed, or has no definition.

    Raises
    ------
    InputError
        If the file exists, which is never overwritten, or cannot be created.
    """

    def __init__(self, node: Node, path: Path, wanted: Callable[[str], bool]) -> None:
        self.counts: dict[str, int] = {}
        self.unknown: dict[str, str] = {}
        self._node, self._wanted = node, wanted
        self._latched: set[str] = set()
        self._path = path
        try:
            self._writer = RecordingWriter(path, self._latched, live=True)
        except FileExistsError as error:
            raise InputError(f"{path} is there already, and recordings replace nothing") from error
        except OSError as error:
            raise InputError(f"{path} cannot be written: {error.strerror}") from error
        self._sources: dict[str, _Source] = {}
        self._looked = 0.0

    def record(self, stop: Callable[[], bool]) -> None:
        """Record until `stop` returns true; the file keeps its messages whatever happens.

        Raises
        ------
        InputError
            If the file cannot be written, e.g. on a full disk.
        """
        try:
            try:
                while not stop():
                    if time.monotonic() - self._looked > _TOPICS_PERIOD_S:
                        self._look()
                        self._writer.flush()
                    if not self._take():
                        time.sleep(_QUEUES_PERIOD_S)
                self._take()
            finally:
                self._writer.close()
        except OSError as error:
            raise InputError(
                f"{self._path} cannot be written on: {error.strerror}; what has come before is in "
                "it, without an end"
            ) from error

    def _look(self) -> None:
        """Subscribe to new topics, and again to topics whose publishers offer less now."""
        self._looked = time.monotonic()
        for topic, kinds in self._node.get_topic_names_and_types():
            if topic in self.unknown or not self._wanted(topic):
                continue
            publishers = self._node.get_publishers_info_by_topic(topic)
            if not publishers:
                continue
            offer = _Offer.of_all(publisher.qos_profile for publisher in publishers)
            source = self._sources.get(topic)
            if source is None:
                try:
                    kind = _kind(kinds[0])
                except (ImportError, AttributeError, ValueError, DelassusError):
                    self.unknown[topic] = kinds[0]
                    continue
                self.counts[topic] = 0
            elif source.offer.exceeds(offer):
                kind, offer = source.kind, source.offer.least(offer)
                self._take()
                self._node.destroy_subscription(source.subscription)
            else:
                continue
            if offer.latched:
                self._latched.add(topic)
            subscription = self._node.create_subscription(
                kind, topic, _nothing, offer.profile(), raw=True
            )
            self._sources[topic] = _Source(kind, subscription, offer)

    def _take(self) -> int:
        """Write the waiting messages; return their number."""
        count = 0
        for topic, source in self._sources.items():
            kind = type_name(source.kind)
            for data, sent, _ in iter(partial(pop, source.subscription), None):
                now = time.time_ns()
                self._writer.write_bytes(topic, now, data, kind, now - delay_since(sent, now))
                self.counts[topic] += 1
                count += 1
        return count


def _nothing(_: object) -> None:
    """Ignore the message: the recorder reads queues without an executor."""


def _kind(name: str) -> type[Any]:
    """Return the class of a message; import only packages that define messages.

    The name of the type is that of the publisher, and may be any text.
    """
    if not _MESSAGE.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a message")
    definition(name)
    package, part, kind = name.split("/")
    found: type[Any] = getattr(importlib.import_module(f"{package}.{part}"), kind)
    return found
