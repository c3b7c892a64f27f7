"""Whether an input comes from one source, and joint states from one robot.

Knows no ROS. Stamps and times are integers, ns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from delassus_ros.model import Robot
from delassus_ros.model.joint import JointKind

_MARGIN = 3.0
"""Times its velocity limit a joint may move: published limits are often those of a controller."""
_JITTER = 5_000_000
"""How far the time between two measurements may differ from that of their stamps [ns]."""
_LATCHED = 1_000_000_000
"""For so long after a contradiction matrices are in doubt: any may be the other source's [ns]."""
_ALTERNATING = 3_000_000_000
"""Two changes of the publisher within so long are no restart [ns]."""


class PublisherWatch:
    """Tells two publishers that take turns on a topic from one, and from one that is restarted.

    The middleware counts the messages of each publisher, so a count that does not rise is another
    publisher's. A first message is that of a restart, or of a publisher of one message, as a
    command line has it. Where the middleware is silent, something that one publisher does not
    change may tell. One change may be a restart whose first message was lost; a second one within
    3 s is not.
    """

    __slots__ = ("_changed", "_count", "_mark", "_until")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew, as when time has jumped."""
        self._count = self._changed = self._until = 0
        self._mark: object = None

    def note(self, now: int, count: int, mark: object = None) -> None:
        """Note a message.

        Parameters
        ----------
        now : time of the node's clock.
        count : which of its publisher's messages it is; 0 where the middleware does not tell.
        mark : what changes with the publisher; looked at without a count alone. None for nothing.
        """
        counted = count > 0 and self._count > 0
        if 1 < count <= self._count if counted else self._mark not in (None, mark):
            if self._changed and now - self._changed < _ALTERNATING:
                self._until = now + _LATCHED
            self._changed = now
        self._mark, self._count = mark, count

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

    Three things tell that they come from two sources: two q of one stamp that differ; a publisher
    that changes and changes back, by the middleware's count of its messages or, where that is
    silent, by the order of names; and a joint that moves faster than three times its velocity
    limit. Positions of joints without position limits are compared modulo a turn.

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
        fastest = np.array([_MARGIN * joint.velocity for joint in own])
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
        is_repeated = False
        if self._stamp > 0 and passed >= 0:
            if passed == 0 and not step:
                is_repeated = q == before
                if not is_repeated and names is not None:
                    self._doubt(now, self._of_one_stamp(q))
            else:
                allowed = 1e-9 * (passed + _JITTER + step)
                # No entry is larger than the norm, which is quicker to tell.
                if self._slowest * math.dist(q, before) > allowed:
                    self._check_jump(q, now, allowed, passed)
        if names is not None and not is_repeated:
            self._publishers.note(now, count, names)
        self._q, self._stamp = q, stamp
        if now < self._doubtful_until:
            return self._text
        return two_publishers(self.topic, "all joints") if self._publishers.two(now) else ""

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
