"""Whether an input comes from one source, and joint states from one robot.

Knows no ROS. Stamps and times are integers, ns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from delassus_ros.model import Robot
from delassus_ros.model.joint import JointKind

_MARGIN = 3.0
"""Times its velocity limit a joint may move: published limits are often those of a controller."""
_JITTER = 5_000_000
"""How far the time between two measurements may differ from that of their stamps [ns]."""
_LATCHED = 1_000_000_000
"""For so long after a contradiction matrices are in doubt: any may be the other source's [ns]."""
_GONE = 10_000_000_000
"""A publisher that was silent for so long has ended [ns]."""
_MOST_LOST = 100
"""So many messages of one publisher may be lost between two that come."""
_MOST_SOURCES = 4
_SLOWEST = {JointKind.REVOLUTE: 1.0, JointKind.PRISMATIC: 0.1}
"""No velocity limit counts for less [rad/s, m/s]: some are of a controller, or placeholders."""


@dataclass(slots=True)
class _Source:
    """A publisher: the count of its latest message, what marks it, and when it was heard [ns]."""

    count: int
    mark: object
    heard: int

    def gap(self, count: int, mark: object) -> int:
        """Return how many messages on a message would be; more than may be lost if it is not."""
        if not count:
            return 0 if self.mark is mark else 2 * _MOST_LOST
        gap = count - self.count
        return gap if 0 < gap <= _MOST_LOST else 2 * _MOST_LOST


class PublisherWatch:
    """Tells two publishers that take turns on a topic from one, and from one that is restarted.

    The middleware counts the messages of each publisher, so a count that goes on from an earlier
    one is of the same publisher. Where the middleware is silent, something that one publisher does
    not change may tell. A new publisher is no fault, as one may have been restarted; one that was
    heard before goes on beside another.
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
        now : time of the node's clock.
        count : which of its publisher's messages it is; 0 where the middleware does not tell.
        mark : what changes with the publisher; looked at without a count alone. None for nothing.
        """
        if not count and mark is None:
            return False
        before, found, least = self._current, None, _MOST_LOST + 1
        for each in self._sources:
            gap = each.gap(count, mark)
            # Of two that fit alike, the one that was heard last goes on.
            if gap < least or (gap == least and each is before):
                found, least = each, gap
        if found is None:
            found = _Source(count, mark, now)
            self._sources = [*self._sources[1 - _MOST_SOURCES :], found]
        elif found is not before and now - found.heard <= _GONE:
            self._until = now + _LATCHED
        found.count, found.heard = count, now
        self._current = found
        return bool(count) and found is before

    def two(self, now: int) -> bool:
        """Return whether two publishers were there within the last second."""
        return now < self._until


def two_publishers(topic: str, what: str) -> str:
    """Return the words for two publishers that send the same.

    Parameters
    ----------
    topic : its full name.
    what : what both send.
    """
    return (
        f"two publishers of {topic} send {what}, and nothing tells which of them is right; end "
        "one of the two"
    )


class SourceWatch:
    """Looks at the joint states that make a q, one after the other.

    Three things tell that they come from two sources: two q of one stamp that differ, unless one
    publisher is known to send both; a publisher that changes and changes back, by the middleware's
    count of its messages or, where that is silent, by the order of names; and a joint that moves
    faster than three times its velocity limit. Positions of joints without position limits are
    compared modulo a turn.

    Parameters
    ----------
    robot : its joints have the velocity limits.
    joints : names of the joints, in the order of q.

    Attributes
    ----------
    topic : full name of the topic, for words about it.
    """

    def __init__(self, robot: Robot, joints: Sequence[str]) -> None:
        self.topic = "/joint_states"
        self._joints = joints
        by_name = {joint.name: joint for joint in robot.joints}
        own = [by_name[name] for name in joints]
        fastest = np.array(
            [_MARGIN * max(joint.velocity, _SLOWEST.get(joint.kind, 0.0)) for joint in own]
        )
        self._slowness = 1.0 / fastest
        """Time that each joint needs at least for 1 rad or m [s]; 0 without a velocity limit."""
        self._turns = np.array(
            [joint.kind is JointKind.REVOLUTE and joint.upper == math.inf for joint in own],
            dtype=np.bool_,
        )
        self._slowest = float(self._slowness.max(initial=0.0))
        self.reset()

    def reset(self) -> None:
        """Begin anew, as when time has jumped."""
        self._publishers = PublisherWatch()
        self._q: Sequence[float] = ()
        self._stamp = self._doubtful_until = 0
        self._text = ""

    def look(
        self,
        stamp: int,
        q: Sequence[float],
        now: int,
        step: int,
        names: object = None,
        count: int = 0,
    ) -> str:
        """Take the next q; return why it may be of another source, or an empty string.

        Parameters
        ----------
        stamp : of the joint state; 0 if it has none.
        q : n positions [rad, m]; kept until the next.
        now : time of the node's clock.
        step : longest step of simulated time, within which stamps do not change.
        names : what stands for the order of names; None if joint states are merged.
        count : which of its publisher's messages it is; 0 where the middleware does not tell.
        """
        passed, before = stamp - self._stamp, self._q
        comparable = self._stamp > 0 and passed >= 0
        is_repeated = comparable and passed == 0 and q == before
        goes_on = names is None
        if names is not None and not is_repeated:
            goes_on = self._publishers.note(now, count, names)
        if comparable and not is_repeated:
            if passed == 0 and not (step or goes_on):
                self._doubt(now, self._of_one_stamp(q))
            else:
                allowed = 1e-9 * (passed + _JITTER + step)
                # No entry is larger than the norm, which is quicker to tell.
                if self._slowest * math.dist(q, before) > allowed:
                    self._check_jump(q, now, allowed, passed)
        self._q, self._stamp = q, stamp
        if now < self._doubtful_until:
            return self._text
        return two_publishers(self.topic, "all joints") if self._publishers.two(now) else ""

    def contradicts(
        self, places: Sequence[int], values: Sequence[float], stamp: int, now: int
    ) -> str:
        """Return why positions of some joints do not fit the last q, or an empty string.

        They do not where no joint can move from the one to the other in the time between.

        Parameters
        ----------
        places : which entries of q they are.
        values : the positions [rad, m].
        stamp : of the positions; 0 if they have none.
        now : time of the node's clock.
        """
        apart = abs(stamp - self._stamp) if stamp > 0 and self._stamp > 0 else 0
        if self._q:
            for k, value in zip(places, values, strict=True):
                if abs(value - self._q[k]) * self._slowness[k] > 1e-9 * (apart + _JITTER):
                    self._doubt(
                        now,
                        f"two publishers of {self.topic} contradict each other: joint "
                        f"{self._joints[k]!r} is at {self._q[k]:.6g} and at {value:.6g}; end one "
                        "of the two",
                    )
                    break
        return self._text if now < self._doubtful_until else ""

    def _check_jump(self, q: Sequence[float], now: int, allowed: float, passed: int) -> None:
        """Look for a joint that has moved too fast."""
        moved = np.subtract(q, self._q)
        turns = self._turns
        moved[turns] -= 2.0 * np.pi * np.round(moved[turns] / (2.0 * np.pi))
        times = np.abs(moved) * self._slowness
        k = int(times.argmax())
        if times[k] > allowed:
            limit = 1.0 / (_MARGIN * self._slowness[k])
            self._doubt(
                now,
                f"joint {self._joints[k]!r} moved by {moved[k]:.4g} within {1e-9 * passed:.4g} s, "
                f"and its velocity limit is {limit:.4g} per s: two publishers of {self.topic}, "
                "a robot that was put elsewhere, or a sensor that jumps",
            )

    def _of_one_stamp(self, q: Sequence[float]) -> str:
        k = int(np.abs(np.subtract(q, self._q)).argmax())
        return (
            f"two publishers of {self.topic} contradict each other: at one stamp joint "
            f"{self._joints[k]!r} is at {self._q[k]:.6g} and at {q[k]:.6g}; end one of the two"
        )

    def _doubt(self, now: int, text: str) -> None:
        self._doubtful_until, self._text = now + _LATCHED, text
