"""Detection of several sources of one input, e.g. joint states of two robots.

Knows no ROS.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delassus.model import Robot
from delassus.model.joint import JointKind
from delassus.model.ranges import LEAST_LIMITS

_MARGIN = 3.0
"""Plausible velocity of a joint in units of its limit: limits are often those of a controller."""
_JITTER_NS = 5_000_000
"""Largest error of the time between two measurements by their stamps [ns]."""
_DOUBT_NS = 1_000_000_000
"""Time after a contradiction for which matrices are in doubt [ns]."""
_GONE_NS = 10_000_000_000
"""Silence after which a publisher is assumed to have ended [ns]."""
_MOST_LOST = 100
"""Largest number of messages of one publisher that may be lost between two received ones."""
_MOST_SOURCES = 4
Entries = NDArray[np.intp]
"""Indices of some of a robot's joints."""


@dataclass(slots=True)
class _Source:
    """A publisher: count of its latest message, its mark, and time of that message [ns]."""

    count: int
    mark: object
    last_message: int

    def gap(self, count: int, mark: object) -> int:
        """Return the distance of a message to the latest one, in messages.

        The distance is above :data:`_MOST_LOST` if the message is not of this publisher.
        """
        if not count:
            return 0 if self.mark is mark else 2 * _MOST_LOST
        gap = count - self.count
        return gap if 0 < gap <= _MOST_LOST else 2 * _MOST_LOST


class PublisherWatch:
    """Detects two publishers that take turns on a topic; a restarted publisher is no fault.

    The middleware numbers the messages of a publisher, so a number that follows an earlier number
    belongs to the same publisher. Without such numbers, a mark that a publisher does not change
    identifies it. A new publisher may be a restarted one; a publisher that comes back after a
    message of another is a second publisher.
    """

    __slots__ = ("_current", "_sources", "_until")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew, as when time has jumped."""
        self._sources: list[_Source] = []
        self._current: _Source | None = None
        self._until = 0

    def note(self, now: int, count: int, mark: object = None) -> bool:
        """Note a message; return whether it is known to be of the same publisher as the last one.

        Parameters
        ----------
        mark : object that identifies the publisher if `count` is 0; None for no mark.
        """
        if not count and mark is None:
            return False
        before, found, least = self._current, None, _MOST_LOST + 1
        for source in self._sources:
            gap = source.gap(count, mark)
            # Of two sources with equal gaps, the one of the last message is taken.
            if gap < least or (gap == least and source is before):
                found, least = source, gap
        if found is None:
            found = _Source(count, mark, now)
            self._sources = [*self._sources[1 - _MOST_SOURCES :], found]
        elif found is not before and now - found.last_message <= _GONE_NS:
            self._until = now + _DOUBT_NS
        found.count, found.last_message = count, now
        self._current = found
        return bool(count) and found is before

    def two(self, now: int) -> bool:
        """Return whether two publishers took turns within the last 1 s."""
        return now < self._until


def two_publishers(topic: str, what: str) -> str:
    """Return the text about two publishers of the same data.

    Parameters
    ----------
    topic : full name of the topic.
    """
    return (
        f"two publishers of {topic} send {what}, and nothing tells which of them is right; end "
        "one of the two"
    )


class SourceWatch:
    """Compares successive q, to detect joint states of two sources.

    Two sources are reported in three cases: two q of one stamp differ, unless one publisher is
    known to have sent both; publishers take turns, by the middleware's numbers of messages or,
    without such numbers, by the order of names; a joint moves faster than three times its
    velocity limit. Positions of joints without position limits are compared modulo a turn.
    Positions of different sets of measured joints are not compared.

    Parameters
    ----------
    robot : robot with the velocity limits; each of its joints has one position.
    sufficient : the joints that a message needs to be used alone, in words.

    Attributes
    ----------
    topic : full name of the topic in messages.
    """

    def __init__(self, robot: Robot, sufficient: str) -> None:
        self.topic = "/joint_states"
        self._joints, self._sufficient = robot.joint_names, sufficient
        joints = [joint for joint in robot.joints if joint.kind.nq]
        fastest = np.array(
            [
                _MARGIN * max(joint.velocity, LEAST_LIMITS.get(joint.kind, (0.0,))[0])
                for joint in joints
            ]
        )
        self._slowness = 1.0 / fastest
        """Shortest plausible time per motion of a joint [s/rad, s/m]; 0 without a limit."""
        self._turns = np.array(
            [joint.kind is JointKind.REVOLUTE and joint.upper == math.inf for joint in joints],
            dtype=np.bool_,
        )
        self._slowest = float(self._slowness.max(initial=0.0))
        self.reset()

    def reset(self) -> None:
        """Begin anew, as when time has jumped."""
        self._publishers = PublisherWatch()
        self._q: Sequence[float] = ()
        self._members: Entries = np.empty(0, dtype=np.intp)
        self._stamp = self._doubtful_until = 0
        self._text = ""

    def check(
        self,
        stamp: int,
        q: Sequence[float],
        members: Entries,
        now: int,
        step: int,
        names: object = None,
        count: int = 0,
    ) -> str:
        """Return why the next q may be of another source, or an empty string.

        Parameters
        ----------
        q : k positions [rad, m]; stored until the next call.
        members : (k,) index of their joints; the same object for the same set of joints.
        step : longest step of simulated time, within which stamps do not change.
        names : object that identifies the order of names; None for merged joint states.
        """
        passed, before = stamp - self._stamp, self._q
        comparable = self._stamp > 0 and passed >= 0 and members is self._members
        is_repeated = comparable and passed == 0 and q == before
        goes_on = names is None
        if names is not None and not is_repeated:
            goes_on = self._publishers.note(now, count, names)
        if comparable and not is_repeated:
            if passed == 0 and not (step or goes_on):
                self._doubt(now, self._of_one_stamp(q))
            else:
                allowed = 1e-9 * (passed + _JITTER_NS + step)
                # No entry is larger than the norm, which is faster to compute.
                if self._slowest * math.dist(q, before) > allowed:
                    self._check_jump(q, now, allowed, passed)
        self._q, self._stamp, self._members = q, stamp, members
        if now < self._doubtful_until:
            return self._text
        return two_publishers(self.topic, self._sufficient) if self._publishers.two(now) else ""

    def contradicts(
        self, members: Entries, values: Sequence[float], stamp: int, now: int
    ) -> str:
        """Return why positions of some joints do not fit the last q, or an empty string.

        Positions do not fit if a joint cannot move that far in the time between the two stamps.

        Parameters
        ----------
        members : (k,) index of the joints.
        values : k positions [rad, m].
        """
        apart = abs(stamp - self._stamp) if stamp > 0 and self._stamp > 0 else 0
        known = dict(zip(self._members.tolist(), self._q, strict=True))
        for k, value in zip(members.tolist(), values, strict=True):
            last = known.get(k, value)
            if abs(value - last) * self._slowness[k] > 1e-9 * (apart + _JITTER_NS):
                self._doubt(
                    now,
                    f"two publishers of {self.topic} contradict each other: joint "
                    f"{self._joints[k]!r} is at {last:.6g} and at {value:.6g}; end one of the two",
                )
                break
        return self._text if now < self._doubtful_until else ""

    def _check_jump(self, q: Sequence[float], now: int, allowed: float, passed: int) -> None:
        """Detect a joint that has moved too fast."""
        moved, slowness = np.subtract(q, self._q), self._slowness[self._members]
        turns = self._turns[self._members]
        moved[turns] -= 2.0 * np.pi * np.round(moved[turns] / (2.0 * np.pi))
        times = np.abs(moved) * slowness
        k = int(times.argmax())
        if times[k] > allowed:
            limit = 1.0 / (_MARGIN * slowness[k])
            self._doubt(
                now,
                f"joint {self._name(k)!r} moved by {moved[k]:.4g} within {1e-9 * passed:.4g} s, "
                f"and its velocity limit is {limit:.4g} per s: two publishers of {self.topic}, "
                "a robot that was put elsewhere, or a sensor that jumps",
            )

    def _of_one_stamp(self, q: Sequence[float]) -> str:
        k = int(np.abs(np.subtract(q, self._q)).argmax())
        return (
            f"two publishers of {self.topic} contradict each other: at one stamp joint "
            f"{self._name(k)!r} is at {self._q[k]:.6g} and at {q[k]:.6g}; end one of the two"
        )

    def _name(self, k: int) -> str:
        """Return the joint of an entry of the last q."""
        return self._joints[int(self._members[k])]

    def _doubt(self, now: int, text: str) -> None:
        self._doubtful_until, self._text = now + _DOUBT_NS, text
