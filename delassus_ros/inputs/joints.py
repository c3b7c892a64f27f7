"""The gate from joint states to the solver: completeness, ages and values are checked.

Knows no ROS: names, stamps and positions go in; q and a status come out. Stamps and times are
integers, ns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from delassus_ros.errors import NAMED, SAID, InputError, RobotError, listed, unknown
from delassus_ros.inputs.findings import Finding, Reason
from delassus_ros.inputs.limits import LONGEST_TRUST_S, Limits
from delassus_ros.inputs.sources import PublisherWatch, SourceWatch, two_publishers
from delassus_ros.model import Robot
from delassus_ros.model.ranges import FARTHEST, PlausibleRanges
from delassus_ros.model.spatial import Array
from delassus_ros.ros.arrival import (
    Arrival,
    age_of,
    ahead_of_clock,
    backward_jump,
    too_old,
)

_MOST_LAYOUTS = 16
"""Different lists of names that are remembered; a robot has a few publishers."""
Motion = tuple[()] | tuple[Array, Array]
"""Velocities and efforts of a joint state, or nothing."""


class Gate(Enum):
    """How a joint state is used."""

    READY = "A matrix is computed."
    IGNORED = "Other publishers send the missing joints, or the message is of another robot."
    REFUSED = "An INVALID message is published."


@dataclass(slots=True)
class InputStatus:
    """Status of a joint state; overwritten by that of the next one.

    Attributes
    ----------
    gate : how the joint state is used.
    stamp : stamp of the oldest part [ns]; 0 for a joint state without a stamp.
    age : age of the oldest part [s], negative if its clock is ahead; NaN if it is unknown.
    reasons : bits of the message; with READY they make it DEGRADED.
    text : the reasons in words; empty for none.
    """

    gate: Gate
    stamp: int
    age: float
    reasons: Reason
    text: str


class JointGate:
    """Lets joint states through from which a matrix can be computed.

    A joint state with all of the robot's joints passes alone. Joint states with some of the
    joints, from several publishers, are merged: q is complete once every joint has come since the
    previous q, and has the newest position of every joint. While another publisher sends all
    joints, incomplete messages are ignored. Joints that the robot lacks are ignored, too, and
    messages without positions (velocities or efforts alone) while other messages bring positions.

    Parameters
    ----------
    robot : robot whose joints all have one position, as joint states have no room for more.
    max_skew : largest difference of the stamps of the parts of one q, and largest distance by
        which a stamp may be ahead of the clock, beyond one step of the clock [s].
    timeout : age above which positions are too old [s]; infinite for never.
    joints : names of the required joints, in the order of q; by default all of the robot's. With
        closed loops only the measured joints.

    Attributes
    ----------
    heard : arrival of the last joint state with any of the joints, unless ignored for lack of
        positions.
    others : time for which the present publishers are relied on [ns].
    aside : why the last ignored joint state, for which other publishers made up, was ignored.
    last_stamp : stamp of the last q that passed or was too old [ns]; 0 if there is none.
    joints : names of the required joints, in the order of q.
    motion : (2, n) velocities and efforts of the last q that passed; NaN where none came.
    sources : detects joint states of several sources.
    whole_stamp : stamp of the last joint state with all joints, in any order [ns]; 0 if there is
        none.

    Raises
    ------
    RobotError
        If a joint has several positions (planar, floating); names it.
    InputError
        If a time is negative or not a number, the timeout is zero, or a joint is unknown.
    """

    def __init__(
        self,
        robot: Robot,
        max_skew: float = Limits.max_skew,
        timeout: float = Limits.input_timeout,
        joints: Sequence[str] | None = None,
    ) -> None:
        self.joints = self._joints = robot.joint_names if joints is None else tuple(joints)
        self.motion = np.full((2, len(self.joints)), np.nan)
        for name in self._joints:
            if name not in robot.joint_names:
                raise InputError(unknown("joint", name, robot.joint_names))
        for joint in robot.joints:
            if joint.kind.nq > 1 and joint.name in self._joints:
                raise RobotError(
                    f"joint {joint.name!r} is {joint.kind.label}: it has {joint.kind.nq} "
                    "positions, but sensor_msgs/JointState carries one for each joint; make it "
                    "fixed, or split it into revolute and prismatic joints"
                )
        self._status = InputStatus(Gate.IGNORED, 0, math.nan, Reason.NONE, "")
        self._clock_step = 0
        self.sources = SourceWatch(robot, self._joints)
        self._ranges = PlausibleRanges(robot, self._joints)
        self.set_limits(max_skew, timeout)
        self.reset(0)

    def set_limits(self, max_skew: float, timeout: float) -> None:
        """Change the limits from the next joint state on.

        Raises
        ------
        InputError
            If a time is negative or not a number, or the timeout is zero.
        """
        if not 0.0 <= max_skew < math.inf or not timeout > 0.0:
            raise InputError(
                f"max_skew is {max_skew} s and timeout {timeout} s; expected a finite skew of at "
                "least 0 and a positive timeout, infinite for none"
            )
        self._max_skew = round(max_skew * 1e9)
        self._timeout = timeout * 1e9
        self.others = 1e9 * min(timeout, LONGEST_TRUST_S)
        self.set_clock_step(self._clock_step)

    def set_clock_step(self, step: int) -> None:
        """Set the longest step of simulated time [ns]; stamps may be ahead by one step more."""
        self._clock_step = step
        self._most_ahead = self._max_skew + step

    def set_topic(self, topic: str) -> None:
        """Set the name of the joint states' topic in messages."""
        self.sources.topic = topic

    def reset(self, now: int) -> None:
        """Return to the initial state, at activation or after a jump of time (simulation reset).

        Parameters
        ----------
        now : time of the node's clock; silence counts from here.
        """
        n = len(self._joints)
        self._known: dict[tuple[str, ...], JointNames] = {}
        self._part = JointNames([], self._joints)
        # Values, motion, stamp and arrival by joint, from the last message that had the joint.
        self._values = np.zeros(n)
        self._motion = np.full((2, n), np.nan)
        self._stamps = np.zeros(n, dtype=np.int64)
        self._arrivals = np.full(n, Arrival())
        self._seen = np.zeros(n, dtype=np.bool_)
        self._fresh = np.zeros(n, dtype=np.bool_)
        self._jumped, self._jump_text = Reason.NONE, ""
        self.aside = Finding(Reason.NONE, "")
        self._whole, self._merged = Arrival(), Arrival()
        self.heard, self._begun = Arrival(), Arrival(now)
        self.sources.reset()
        self.last_stamp = self.whole_stamp = 0

    def read(
        self,
        names: Sequence[str],
        stamp: int,
        values: Array,
        now: int,
        q: Array,
        delay: int = 0,
        motion: Motion = (),
        count: int = 0,
    ) -> InputStatus:
        """Take the next joint state.

        Parameters
        ----------
        names : names of the joints; fastest if it is the same list object as before.
        stamp : stamp of the joint state; 0 or less if it has none.
        values : (n,) positions [rad, m].
        now : time of the node's clock; 0 while the clock has no time (simulation).
        q : (nq,) is written to, and holds all joints if the status is READY.
        delay : time between sending and `now` [ns].
        motion : velocities [rad/s, m/s] and efforts [N·m, N]; empty where no output needs them.
        count : number of the message among those of its publisher; 0 if unknown.
        """
        part = self._part
        if names is not part.names:
            part = self._part = self._look_up(names)
        if part.is_foreign or part.refusal is not None or len(values) != part.count:
            return self._unusable(part, stamp, len(values), now, delay)
        self.heard.note(now, delay)
        if not part.is_complete:
            return self._merge(part, stamp, values, now, q, delay, motion, count)
        # The places are in range; mode="clip" spares take() a buffer for the output.
        values.take(part.places, out=q, mode="clip")
        if motion:
            part.write_motion(motion, self.motion)
        # One norm checks all entries at once, which is much cheaper: NaN and infinity stay in a
        # norm, and no entry is larger than the norm.
        entries = q.tolist()
        near = math.hypot(*entries) <= FARTHEST
        if not (near or np.isfinite(q).all()):
            return self._refuse(stamp, now, *part.not_finite(q))
        self._whole.note(now, delay)
        age = now - stamp
        before, self.whole_stamp = self.whole_stamp, stamp
        doubt = self.sources.look(stamp, entries, now, self._clock_step, part, count)
        if (
            near
            and not doubt
            and 0 < before <= stamp
            and -self._most_ahead <= age <= self._timeout
            and self._ranges.outside(q) < 0
        ):
            self.last_stamp = stamp
            status = self._status
            status.gate, status.stamp, status.age = Gate.READY, stamp, 1e-9 * age
            status.reasons, status.text = Reason.NONE, ""
            return status
        return self._pass(stamp, now, delay, q, *_jump(before, stamp), doubt)

    def pass_over(
        self, stamp: int, now: int, delay: int, reason: Reason, text: str
    ) -> InputStatus:
        """Ignore a joint state without positions if other messages bring them; else refuse it."""
        if self._has_others(now):
            text += "; the message is ignored, as other publishers send positions"
            return self._put_aside(stamp, now, reason, text)
        self.heard.note(now, delay)
        return self._refuse(stamp, now, reason, text)

    @property
    def strangers(self) -> str:
        """Text about joint states that have none of the robot's joints; empty for none."""
        if not self._part.is_foreign:
            return ""
        return f"the joint states have {listed('', self._part.names)}"

    def silence(self, now: int, since: float) -> InputStatus | None:
        """Return why no matrix was published for long; None if none is expected.

        The time since the last published message counts, not the messages that come.

        Parameters
        ----------
        now : time of the node's clock.
        since : time since the last published message [ns]; infinite if there was none.
        """
        last = self.heard.since(now)
        heard = last is not None
        if last is not None and last < since and last <= self.others:
            return self._fruitless(now)
        counted = self.heard if heard else self._begun
        # Time before the clock started or was set back does not count as silence.
        if counted.within(self._timeout, now):
            return None
        what = "no joint state any more" if heard else "no joint state"
        if self._part.is_foreign:
            what += " with joints of the robot"
        reason = Reason.INPUT_STALE if heard else Reason.NO_JOINT_STATE
        text = f"{what} for {counted.age(now):.3g} s"
        if self.strangers:
            text += f"; {self.strangers}"
        return self._refuse(self.last_stamp, now, reason, text)

    def _fruitless(self, now: int) -> InputStatus:
        """Return the status where joint states come and no matrix follows from them."""
        waited = np.flatnonzero(~self._fresh)
        if self._fresh.any() and len(waited):
            reason, text = Reason.INPUT_STALE, self._absent(waited.tolist(), now)
        else:
            reason, text = self.aside.reason, self.aside.text
        return self._refuse(
            self.last_stamp, now, reason or Reason.JOINT_MISSING,
            f"joint states come, but no matrix follows from them: {text}",
        )  # fmt: skip

    def _look_up(self, names: Sequence[str]) -> JointNames:
        key = tuple(names)
        part = self._known.get(key)
        if part is None:
            if len(self._known) >= _MOST_LAYOUTS:
                self._known.clear()
            part = self._known[key] = JointNames(names, self._joints)
        # The same names may come in a new list object every time.
        part.names = names
        return part

    def _unusable(
        self, part: JointNames, stamp: int, positions: int, now: int, delay: int
    ) -> InputStatus:
        """Return the status of a joint state that has no usable positions."""
        if part.is_foreign:
            return self._say(
                Gate.IGNORED, stamp, now, Reason.NONE,
                f"the joint state has none of the robot's joints; it has {listed('', part.names)}",
            )  # fmt: skip
        if not part.count and positions:
            return self.pass_over(
                stamp, now, delay, Reason.JOINT_MISSING,
                f"the joint state has {positions} positions but no names, so nothing tells whose "
                f"they are: its publisher has to name them; {listed('joint', self._joints)}",
            )  # fmt: skip
        if not part.count:
            return self.pass_over(stamp, now, delay, *part.missing())
        if not positions:
            return self.pass_over(stamp, now, delay, *size_mismatch(part.names, 0))
        self.heard.note(now, delay)
        if part.refusal is not None:
            return self._refuse(stamp, now, part.refusal.reason, part.refusal.text)
        return self._refuse(stamp, now, *size_mismatch(part.names, positions))

    def _merge(
        self,
        part: JointNames,
        stamp: int,
        values: Array,
        now: int,
        q: Array,
        delay: int,
        motion: Motion,
        count: int,
    ) -> InputStatus:
        """Take a part of the joints."""
        joints, targets = self._joints, part.targets
        part.publishers.note(now, count)
        taken = values[part.places]
        if not np.isfinite(taken).all():
            self._fresh[targets] = False
            return self._refuse(stamp, now, *part.not_finite(taken))
        # By joint: the order of a publisher's joints may change from message to message.
        reason, text = _jump(int(self._stamps[targets].max()), stamp)
        if reason:
            self._jumped, self._jump_text = reason, text
            # Positions from before the jump are from another time.
            self._fresh[self._stamps > stamp + self._max_skew] = False
        self._values[targets], self._stamps[targets] = taken, max(stamp, 0)
        part.write_motion(motion, self._motion)
        self._arrivals[targets] = Arrival(now, delay)
        self._seen[targets] = self._fresh[targets] = True
        seen = self._seen.all()
        reason, text = (
            (Reason.NONE, "")
            if seen
            else part.missing([joints[i] for i in np.flatnonzero(self._seen)])
        )
        if self._has_whole(now):
            self.sources.contradicts(targets.tolist(), taken.tolist(), stamp, now)
            if text:
                text += "; the message is ignored, as another publisher sends all joints"
            return self._put_aside(stamp, now, reason, text)
        if not seen:
            return self._refuse(stamp, now, reason, text)
        oldest, newest = int(self._stamps.min()), int(self._stamps.max())
        if oldest <= 0:
            # Without a stamp, the age counts from the arrival.
            self._fresh[self._away(now)] = False
        if not self._fresh.all():
            return self._wait(stamp, now)
        if oldest > 0 and newest - oldest > self._max_skew:
            late = self._stamps < newest - self._max_skew
            self._fresh[late] = False
            names = [joints[i] for i in np.flatnonzero(late)]
            return self._refuse(
                oldest, now, Reason.INPUT_SKEWED,
                f"{listed('joint', names)} came {1e-6 * (newest - oldest):.4g} ms older than the "
                f"rest; at most {1e-6 * self._max_skew:g} ms are allowed (max_skew)",
            )  # fmt: skip
        self._merged.note(now, delay)
        q[...] = self._values
        self.motion[...] = self._motion
        self._fresh[...] = False
        reason, text = self._jumped, self._jump_text
        self._jumped, self._jump_text = Reason.NONE, ""
        doubt = self.sources.look(oldest, q.tolist(), now, self._clock_step)
        two = next((part for part in self._known.values() if part.publishers.two(now)), None)
        if two is not None:
            doubt = doubt or two_publishers(self.sources.topic, listed("joint", two.names))
        return self._pass(oldest, now, 0, q, reason, text, doubt)

    def _wait(self, stamp: int, now: int) -> InputStatus:
        """Wait for the other parts, unless they have been away for too long."""
        away = self._away(now)
        if away:
            oldest = int(self._stamps[away].min())
            return self._refuse(oldest, now, Reason.INPUT_STALE, self._absent(away, now))
        return self._say(Gate.IGNORED, stamp, now, Reason.NONE, "")

    def _absent(self, places: Sequence[int], now: int) -> str:
        """Return the text about joints that have come before and are missing now."""
        names = [self._joints[i] for i in places]
        longest = max(self._arrivals[i].age(now) for i in places)
        return f"{listed('joint', names)} did not come for {longest:.3g} s"

    def _away(self, now: int) -> list[int]:
        """Return the joints whose last part came too long ago."""
        timeout = self._timeout
        return [i for i, at in enumerate(self._arrivals) if not at.within(timeout, now)]

    def _put_aside(self, stamp: int, now: int, reason: Reason, text: str) -> InputStatus:
        """Ignore a joint state, and keep the reason for the report of a later silence."""
        if text:
            self.aside = Finding(reason, text)
        return self._say(Gate.IGNORED, stamp, now, Reason.NONE, text)

    def _has_whole(self, now: int) -> bool:
        """Whether joint states with all joints have come recently."""
        return self._whole.within(self.others, now)

    def _has_others(self, now: int) -> bool:
        """Whether joint states that make a q have come recently."""
        # Both are evaluated, as within() may start the count of an age.
        recent = [last.within(self.others, now) for last in (self._whole, self._merged)]
        return any(recent)

    def _pass(
        self,
        stamp: int,
        now: int,
        delay: int,
        q: Array,
        reasons: Reason,
        text: str,
        doubt: str,
    ) -> InputStatus:
        """Let a recent q through; `doubt` is the reason why it may be from another source."""
        if doubt:
            reasons |= Reason.SOURCES_CONTRADICT
            text = doubt
        outside = self._ranges.outside(q)
        if outside >= 0:
            reasons |= Reason.JOINT_OUTSIDE_LIMITS
            text = text or self._outside(q)
        far = np.flatnonzero(np.abs(q) > FARTHEST)
        if far.size:
            names = [self._joints[i] for i in far]
            reasons |= Reason.JOINT_FAR
            text = (
                f"the position of {listed('joint', names)} is {q[far[0]]:.6g}, beyond "
                f"{FARTHEST:g} rad or m: angles are rounded there; home or reset the joint"
            )
        if stamp <= 0:
            if delay > self._timeout:
                return self._refuse(
                    0, now, reasons | Reason.STAMP_INVALID | Reason.INPUT_STALE,
                    f"the joint positions have no valid stamp and were sent {1e-9 * delay:.4g} s "
                    f"ago, at most {1e-9 * self._timeout:g} s are allowed (input_timeout)",
                )  # fmt: skip
            return self._say(
                Gate.READY, 0, now, reasons | Reason.STAMP_INVALID,
                text or "joint states have no valid stamp: age and order cannot be told",
            )  # fmt: skip
        self.last_stamp = stamp
        age = now - stamp
        if now > 0 and age > self._timeout:
            return self._refuse(
                stamp, now, reasons | Reason.INPUT_STALE,
                f"the joint positions are {1e-9 * age:.4g} s old, at most "
                f"{1e-9 * self._timeout:g} s are allowed (input_timeout); {too_old(1e-9 * age)}",
            )  # fmt: skip
        if now > 0 and age < -self._most_ahead:
            reasons |= Reason.STAMP_IN_FUTURE
            words = ahead_of_clock(-1e-9 * age, self._clock_step)
            text = f"the stamps of the joint states are {words}"
        return self._say(Gate.READY, stamp, now, reasons, text)

    def _outside(self, q: Array) -> str:
        """Return the text about positions that the joints cannot have."""
        first, *others = self._ranges.all_outside(q).tolist()
        more = f" ({len(others)} more joints likewise)" if others else ""
        return (
            f"{self._ranges.words(first, float(q[first]))}{more}: it was not homed, or it is in "
            "degrees"
        )

    def _refuse(self, stamp: int, now: int, reasons: Reason, text: str) -> InputStatus:
        return self._say(Gate.REFUSED, max(stamp, 0), now, reasons, text)

    def _say(self, gate: Gate, stamp: int, now: int, reasons: Reason, text: str) -> InputStatus:
        status = self._status
        status.gate, status.stamp, status.reasons, status.text = gate, stamp, reasons, text
        status.age = age_of(stamp, now)
        return status


def _jump(before: int, stamp: int) -> tuple[Reason, str]:
    """Return the reason and text for a stamp before that of the last joint state, if any."""
    if not 0 < stamp < before:
        return Reason.NONE, ""
    jump = backward_jump(before - stamp, "or two nodes publish the same joints")
    return Reason.STAMP_JUMPED_BACK, f"the stamps of the joint states jumped back by {jump}"


class JointNames:
    """The places of a robot's joints among the names of joint states.

    Parameters
    ----------
    names : names of the joints of the joint states.
    joints : names of the robot's joints, in the order of q.

    Attributes
    ----------
    names : the names.
    count : number of names.
    targets : (k,) entries of q that the joint states have.
    places : (k,) index of these entries in the joint state.
    is_complete, is_foreign : whether all of the robot's joints are among the names, or none.
    refusal : why such joint states cannot be used, or None.
    publishers : detects two publishers of such joint states.
    """

    __slots__ = (
        "count", "is_complete", "is_foreign", "names", "places", "publishers", "refusal",
        "targets", "_joints",
    )  # fmt: skip

    def __init__(self, names: Sequence[str], joints: Sequence[str]) -> None:
        self.names = names
        self.count = len(names)
        self.publishers = PublisherWatch()
        self._joints = joints
        place = {name: i for i, name in enumerate(names)}
        present = [i for i, joint in enumerate(joints) if joint in place]
        self.targets = np.array(present, dtype=np.intp)
        self.places = np.array([place[joints[i]] for i in present], dtype=np.intp)
        self.is_complete = len(present) == len(joints)
        self.is_foreign = bool(names and joints) and not present
        self.refusal = self._refusal(present, len(place))

    def _refusal(self, present: Sequence[int], different: int) -> Finding | None:
        if not self.count and self._joints:
            return Finding(*self.missing())
        if different < self.count:
            names = list(self.names)
            twice = [self._joints[i] for i in present if names.count(self._joints[i]) > 1]
            if twice:
                return Finding(
                    Reason.JOINT_DUPLICATED,
                    f"the joint state has {listed('joint', twice)} more than once",
                )
        return None

    def write_motion(self, motion: Motion, target: Array) -> None:
        """Write velocities and efforts to `target` (2, n); NaN if a list has another length."""
        for row, values in zip(target, motion, strict=False):
            row[self.targets] = values[self.places] if len(values) == self.count else math.nan

    def missing(self, others: Sequence[str] = ()) -> tuple[Reason, str]:
        """Return the reason and text for joints that are neither here nor among `others`."""
        known = {*self.names, *others}
        missing = [joint for joint in self._joints if joint not in known]
        return (
            Reason.JOINT_MISSING,
            f"the joint state lacks {listed('joint', missing)}; it has {listed('', self.names)}",
        )

    def not_finite(self, taken: Array) -> tuple[Reason, str]:
        """Return the reason and text for positions (k,) of which some are not finite."""
        found = np.flatnonzero(~np.isfinite(taken))
        shown = ", ".join(
            f"{self._joints[self.targets[k]]!r} is {taken[k]}" for k in found[:NAMED]
        )
        more = f" and {found.size - NAMED} more" if found.size > NAMED else ""
        return (
            Reason.JOINT_NOT_FINITE,
            f"the position of joint {shown}{more}; expected finite numbers",
        )


def size_mismatch(names: Sequence[str], positions: int) -> tuple[Reason, str]:
    """Return the reason and text for different numbers of names and positions."""
    text = f"the joint state has {len(names)} names but {positions} positions"
    if positions < len(names):
        text += f"; the first joint without one is {names[positions][:SAID]!r}"
    return Reason.JOINT_SIZE_MISMATCH, text
