"""Base of the inputs: age and order of messages, and the checks before a message is used.

Knows no ROS. Ages are in s.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from delassus_ros.inputs.findings import Finding, Reason, doubtful
from delassus_ros.inputs.limits import LONGEST_TRUST_S
from delassus_ros.inputs.sources import PublisherWatch, two_publishers
from delassus_ros.ros.arrival import (
    Arrival,
    ahead_of_clock,
    backward_jump,
    stamp_of,
    too_old,
)
from delassus_ros.ros.health import InputHealth

V = TypeVar("V")
"""The checked contents of a message."""


class Latest:
    """Age and order of the messages of one source of data.

    The age counts from the stamp or from the time of sending, whichever is earlier; see
    :class:`~delassus_ros.ros.arrival.Arrival`.

    Attributes
    ----------
    stamp : of the latest message that was noted [ns]; 0 if it has none.
    taken : stamp of the latest message that was accepted [ns]; 0 before the first.
    jumped : distance by which the latest message is older than the accepted one [ns]; 0 if newer.
    ahead : how far the stamp was ahead of the node's clock on arrival [s]; negative behind it.
    is_stamped : whether the latest message has a stamp; True before the first.
    """

    __slots__ = ("_arrival", "_noted", "ahead", "is_stamped", "jumped", "stamp", "taken")

    def __init__(self) -> None:
        self._arrival, self._noted = Arrival(), 0
        self.reset()

    def reset(self) -> None:
        """Return to the state before the first message."""
        self._arrival.reset()
        self.stamp = self.taken = self.jumped = 0
        self.ahead, self.is_stamped = 0.0, True

    def restart(self, now: int) -> None:
        """Let the age of the latest message, if there is one, count from now on.

        For use after a step of the clock, which makes earlier stamps meaningless.
        """
        self._arrival.restart(now)
        self.stamp = self.taken = self.jumped = 0
        self.ahead = 0.0

    def note(self, stamp: int, now: int, delay: int = 0) -> None:
        """Note a message."""
        self._arrival.note(now, delay)
        self.stamp, self._noted, self.is_stamped = max(stamp, 0), now, stamp > 0
        # Without the time of sending, which a pause of this process makes too early.
        self.ahead = 1e-9 * (stamp - now) if stamp > 0 and now > 0 else 0.0

    def accept(self) -> None:
        """Note that the message last noted is in use from now on."""
        before, self.taken = self.taken, self.stamp
        self.jumped = before - self.stamp if 0 < self.stamp < before else 0

    def overtaken(self, stamp: int, now: int) -> bool:
        """Return whether a message newer than this stamp is in use, and note so.

        After 1 s without a newer message, or if the stamp in use is ahead of the clock, older
        stamps are accepted again: the clock of the source may have been set back.
        """
        newer = 0 < stamp < self.taken <= now
        if not newer or not self.within(LONGEST_TRUST_S, now):
            return False
        self.jumped, self._noted = self.taken - stamp, now
        return True

    @property
    def received(self) -> bool:
        """Whether a message has arrived."""
        return self._arrival.has_come

    def since(self, now: int) -> int | None:
        """Return the age [ns]; None before the first message."""
        return self._arrival.since(now, self.stamp)

    def age(self, now: int) -> float:
        """Return the age [s]; NaN before the first message, or while the clock has no time."""
        return self._arrival.age(now, self.stamp)

    def silence(self, now: int) -> float:
        """Return the time since the message was sent, whatever its stamp [s]; NaN likewise."""
        return self._arrival.age(now)

    def within(self, timeout: float, now: int) -> bool:
        """Whether a message has come that is at most `timeout` [s] old."""
        return self._arrival.within(1e9 * timeout, now, self.stamp)

    def doubt(
        self, subject: str, now: int, max_skew: float, clock_step: int, needs_stamp: bool
    ) -> Finding | None:
        """Return why the order or the age of the message is in doubt, or None.

        Parameters
        ----------
        subject : the data in words, e.g. ``"the torques"``.
        needs_stamp : whether a message without a stamp is in doubt.
        """
        if needs_stamp and not self.is_stamped:
            text = f"{subject} came without a valid stamp: the age cannot be told"
            return doubtful(Reason.STAMP_INVALID, text, subject)
        stamps = f"the stamps of {subject}"
        reasons, text = Reason.NONE, ""
        # The doubt ends after the same time for sources that repeat messages and for those that
        # do not.
        if self.jumped and now - self._noted <= 1e9 * LONGEST_TRUST_S:
            reasons = Reason.STAMP_JUMPED_BACK
            jump = backward_jump(self.jumped, "or two nodes publish them")
            text = f"{stamps} jumped back by {jump}"
        if self.ahead > max_skew + 1e-9 * clock_step:
            reasons |= Reason.STAMP_IN_FUTURE
            text = f"{stamps} are {ahead_of_clock(self.ahead, clock_step)}"
        return doubtful(reasons, text, subject) if reasons else None


@dataclass(frozen=True)
class Words:
    """How messages about an input name it.

    Attributes
    ----------
    name : the line of the diagnostics, e.g. ``"torques"``.
    subject : the subject of a sentence, e.g. ``"the torques"``.
    verb : ``"is"`` or ``"are"``.
    timeout : name of the parameter of the timeout.
    missing : sentence for an input that has yet to come.
    """

    name: str
    subject: str
    verb: str
    timeout: str
    missing: str


@dataclass(frozen=True)
class Faults:
    """Reasons for an input that is missing, refused or too old."""

    missing: Reason
    invalid: Reason
    stale: Reason


class Input(ABC):
    """The latest messages of a topic.

    Attributes
    ----------
    timeout : age above which the values are too old [s], infinite for never; may be set at any
        time.
    """

    topic = ""
    """Name of the topic before remapping."""
    full_topic = ""
    """Full name of the topic in messages; the name before remapping if empty."""
    needs_stamp = True
    """Whether the values are measurements at the stamp, so that a stamp without an age is a reason
    for doubt; otherwise the values hold from sending until the next message."""

    def __init__(self, words: Words, faults: Faults, timeout: float) -> None:
        self.words, self.faults, self.timeout = words, faults, timeout
        self.latest = Latest()
        self._publishers = PublisherWatch()
        self._finding: Finding | None = None
        self.reset()

    def reset(self) -> None:
        """Return to the state before the first message."""
        self.latest.reset()
        self._publishers.reset()
        self._finding = Finding(self.faults.missing, self.words.missing)

    def restart(self, now: int) -> None:
        """Return to the state before the first message, after a step of the clock."""
        self.reset()

    @abstractmethod
    def accept(self, message: Any, now: int, delay: int = 0) -> Finding | None:
        """Accept the next message, or return its fault."""

    def note_publisher(self, now: int, count: int) -> None:
        """Note the publisher's sequence number of the next message; 0 if unknown."""
        self._publishers.note(now, count)

    @property
    def text(self) -> str:
        """Fault of the latest message, in words; empty for none."""
        return "" if self._finding is None else self._finding.text

    def fault(self, now: int) -> Finding | None:
        """Return why there are no valid values, or None if there are."""
        if self._finding is not None:
            return self._finding
        if self.latest.within(self.timeout, now):
            return None
        words, age = self.words, self.latest.age(now)
        by_stamp = f"; {too_old(age)}" if self.latest.silence(now) <= self.timeout else ""
        return Finding(
            self.faults.stale,
            f"{words.subject} {words.verb} {age:.4g} s old, at most {self.timeout:g} s are "
            f"allowed ({words.timeout}){by_stamp}",
        )

    def doubt(
        self, now: int, max_skew: float, clock_step: int = 0, stamp: int = 0
    ) -> Finding | None:
        """Return why the values are to be used with care, or None.

        Parameters
        ----------
        stamp : of the joint positions that the values go with; 0 if they have none.
        """
        subject = self.words.subject
        if self._publishers.two(now):
            text = two_publishers(self.full_topic or self.topic, subject)
            return doubtful(Reason.SOURCES_CONTRADICT, text, subject)
        return self.latest.doubt(subject, now, max_skew, clock_step, self.needs_stamp)

    def health(self, now: int) -> InputHealth:
        """Return the health of the input, without the name of its topic."""
        latest = self.latest
        return InputHealth(
            self.words.name, "", 0, latest.age(now), latest.silence(now), self.timeout,
            latest.received, self.text if latest.received else "",
        )  # fmt: skip


class LatestInput(Input, Generic[V]):
    """The latest message of a topic, which replaces the previous message as a whole.

    A message that is older than the one in use is ignored. A message that is refused leaves the
    input without values until the next good one.
    """

    ages_by_stamp = True
    """Whether the age counts from the stamp where it is earlier than the time of sending."""

    def accept(self, message: Any, now: int, delay: int = 0) -> Finding | None:
        """Accept the next message; see :meth:`Input.accept`."""
        contents, stamp = self._parse(message), stamp_in(message)
        if self._is_overtaken(stamp, now):
            return None
        latest = self.latest
        latest.note(stamp if self.ages_by_stamp else 0, now, delay)
        if isinstance(contents, Finding):
            # No message is in use any more, so the next one cannot be older than it.
            latest.taken = 0
            self._finding = contents
            self._drop(contents)
            return contents
        latest.accept()
        self._finding = None
        return self._keep(contents, stamp, now)

    @abstractmethod
    def _parse(self, message: Any) -> V | Finding:
        """Return the contents of a message, or why it is refused."""

    @abstractmethod
    def _keep(self, contents: V, stamp: int, now: int) -> Finding | None:
        """Use the contents of a message from now on; return their fault, if any."""

    def _drop(self, fault: Finding) -> None:
        """Drop the values until the next good message."""

    def _is_overtaken(self, stamp: int, now: int) -> bool:
        """Whether a message with this stamp is older than the one in use, and note so."""
        return self.latest.overtaken(stamp, now)

    def _refused(self, text: str) -> Finding:
        """Return the finding for a message that is refused."""
        words = self.words
        return Finding(self.faults.invalid, f"{words.subject} {words.verb} refused: {text}")


def stamp_in(message: Any) -> int:
    """Return the stamp in the header of a message [ns]; 0 for a stamp that no clock gives."""
    at = message.header.stamp
    return stamp_of(at.sec, at.nanosec)


def shown(values: Any) -> str:
    """Return numbers in words."""
    return ", ".join(f"{value:.6g}" for value in values)
