"""Records the topics of a running graph to MCAP, where there is no ``ros2 bag``.

Messages are taken as bytes and written as they are, with the times at which they were published
and came. Meant for the topics of robots and nodes, not for cameras.
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

from delassus_ros.errors import DelassusError, InputError
from delassus_ros.node.inputs.arrival import delay_since
from delassus_ros.node.system.queue import pop
from delassus_ros.recordings.writer import RecordingWriter, definition, type_name

_LOOK = 0.5  # s between looks for new topics, and until what has come is in the file
_PERIOD = 0.005  # s between looks for messages
_DEPTH = 2000
_MESSAGE = re.compile(r"[A-Za-z][A-Za-z0-9_]*/msg/[A-Za-z][A-Za-z0-9_]*", re.ASCII)
NOT_WANTED = re.compile(r"/(rosout|parameter_events)$|/_|/transition_event$")


@dataclass(frozen=True)
class _Offer:
    """What publishers offer: that nothing is lost, and that late subscribers get the latest."""

    reliable: bool
    latched: bool

    @classmethod
    def of_all(cls, profiles: Iterable[QoSProfile]) -> _Offer:
        """Return what all of some publishers offer."""
        each = [
            cls(
                profile.reliability is ReliabilityPolicy.RELIABLE,
                profile.durability is DurabilityPolicy.TRANSIENT_LOCAL,
            )
            for profile in profiles
        ]
        return cls(all(one.reliable for one in each), all(one.latched for one in each))

    def exceeds(self, other: _Offer) -> bool:
        """Whether a subscription with this policy gets nothing from a publisher with the other."""
        return self.least(other) != self

    def least(self, other: _Offer) -> _Offer:
        """Return what both offer."""
        return _Offer(self.reliable and other.reliable, self.latched and other.latched)

    def profile(self) -> QoSProfile:
        """Return what to subscribe with."""
        profile = QoSProfile(depth=_DEPTH, reliability=ReliabilityPolicy.BEST_EFFORT)
        if self.reliable:
            profile.reliability = ReliabilityPolicy.RELIABLE
        if self.latched:
            profile.durability = DurabilityPolicy.TRANSIENT_LOCAL
        return profile


@dataclass(frozen=True)
class _Source:
    """A topic that is recorded."""

    kind: type[Any]
    subscription: Any
    offer: _Offer


class Recorder:
    """Records what comes on topics.

    Parameters
    ----------
    node : of the subscriptions; it need not be spun.
    path : new file to write.
    wanted : tells by its full name whether a topic is recorded.

    Attributes
    ----------
    counts : messages by topic.
    unknown : topics whose type is not installed, or has no definition.

    Raises
    ------
    InputError
        If the file is there already, as nothing is replaced, or cannot be made.
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
        """Record until it is told to stop; whatever happens, the file keeps what has come.

        Raises
        ------
        InputError
            If the file cannot be written on, as the disk is full.
        """
        try:
            try:
                while not stop():
                    if time.monotonic() - self._looked > _LOOK:
                        self._look()
                        self._writer.flush()
                    if not self._take():
                        time.sleep(_PERIOD)
                self._take()
            finally:
                self._writer.close()
        except OSError as error:
            raise InputError(
                f"{self._path} cannot be written on: {error.strerror}; what has come before is in "
                "it, without an end"
            ) from error

    def _look(self) -> None:
        """Subscribe to topics that there are by now; where publishers offer less now, anew."""
        self._looked = time.monotonic()
        for topic, kinds in self._node.get_topic_names_and_types():
            if topic in self.unknown or not self._wanted(topic):
                continue
            publishers = self._node.get_publishers_info_by_topic(topic)
            if not publishers:
                continue
            offer = _Offer.of_all(each.qos_profile for each in publishers)
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
        """Write what has come; return how many messages that were."""
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
    """Take nothing: messages are taken without an executor."""


def _kind(name: str) -> type[Any]:
    """Return the class of a message; imports no package but of those that define messages.

    The name comes from the publisher.
    """
    if not _MESSAGE.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a message")
    definition(name)
    package, part, kind = name.split("/")
    found: type[Any] = getattr(importlib.import_module(f"{package}.{part}"), kind)
    return found
