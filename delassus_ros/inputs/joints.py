"""The gate from joint states to the solver: measured joints are assembled, checked and closed.

Knows no ROS: names, stamps and positions go in; q and a status come out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from delassus.closure import BoundClosure, Closure
from delassus.errors import DelassusError, InputError, RobotError, listed
from delassus.model import Robot
from delassus.model.ranges import FARTHEST, PlausibleRanges
from delassus.model.spatial import Array
from delassus_ros.inputs.closed_joints import BoundClosures, finding_of
from delassus_ros.inputs.findings import Finding, Reason
from delassus_ros.inputs.joint_names import JointMotion, JointNames, missing, size_mismatch
from delassus_ros.inputs.limits import LONGEST_TRUST_S, Limits
from delassus_ros.inputs.sources import Entries, PublisherWatch, SourceWatch, two_publishers
from delassus_ros.ros.arrival import (
    Arrival,
    age_of,
    ahead_of_clock,
    backward_jump,
    too_old,
)

_MOST_LAYOUTS = 16
"""Different lists of names that are remembered; a robot has a few publishers."""
_MOST_SETS = 64
"""Sets of joints that are remembered; a robot has a few publishers."""
_NONE = Finding(Reason.NONE, "")


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


class MeasuredJoints:
    """A set of measured joints from which q follows.

    Parameters
    ----------
    joints : names of the measured joints, in the order of q.
    bound : computes q from their positions; None for an open chain, whose joints are all measured.

    Attributes
    ----------
    members : (k,) entries of q of the measured joints.
    motion : (2, k) their velocities [rad/s, m/s] and efforts [N·m, N] with the last q that passed;
        NaN where none arrived.
    """

    __slots__ = ("bound", "joints", "members", "motion", "ranges")

    def __init__(self, robot: Robot, joints: tuple[str, ...], bound: BoundClosure | None) -> None:
        self.joints, self.bound = joints, bound
        self.members = JointNames(joints, robot.joint_names).targets
        self.ranges = PlausibleRanges(robot, joints)
        self.motion = np.full((2, len(joints)), np.nan)


class _Layout(JointNames):
    """The joint states with one list of names.

    Attributes
    ----------
    measured : the set of their joints if q follows from it; None if it does not, or is unknown.
    publishers : detects two publishers of such joint states.
    """

    __slots__ = ("measured", "publishers")

    def __init__(self, names: Sequence[str], joints: Sequence[str]) -> None:
        super().__init__(names, joints)
        self.measured: MeasuredJoints | None = None
        self.publishers = PublisherWatch()


class JointGate:
    """Accepts joint states from which a matrix can be computed.

    A joint state whose joints suffice for q is used alone: all joints of an open chain, or, with
    closed loops, joints from which all remaining joints follow. Other joint states, from several
    publishers, are merged: q is complete once every measured joint has come since the previous q,
    and has the newest position of every joint. While another publisher sends sufficient joints,
    insufficient messages are ignored. Joints that the robot lacks are ignored, too, and messages
    without positions (velocities or efforts alone) while other messages bring positions.

    With closed loops, the code for measured joints other than the independent ones or all of them
    is compiled at their first message; see
    :class:`~delassus_ros.inputs.closed_joints.BoundClosures`. A set of joints whose code cannot
    be compiled is refused until :meth:`reset`.

    Parameters
    ----------
    robot : robot whose joints all have one position, as joint states have no room for more.
    max_skew : largest difference of the stamps of the parts of one q, and largest distance by
        which a stamp may be ahead of the clock, beyond one step of the clock [s].
    closure : computes the joints that are not measured; None for an open chain.

    Attributes
    ----------
    last_arrival : arrival of the last joint state with any of the joints, unless ignored for lack
        of positions.
    publisher_timeout_ns : time for which the present publishers are relied on [ns].
    last_stamp : stamp of the last q that passed or was too old [ns]; 0 if there is none.
    measured : the joints in use; before the first message all joints, or the independent ones.
    whole_stamp : stamp of the last joint state that was used alone [ns]; 0 if there is none.

    Raises
    ------
    RobotError
        If a joint has several positions (planar, floating); names it.
    CompilerError
        If the code for the independent joints or for all joints cannot be made.
    """

    def __init__(
        self,
        robot: Robot,
        max_skew: float = Limits.max_skew,
        timeout: float = Limits.input_timeout,
        closure: Closure | None = None,
    ) -> None:
        for joint in robot.joints:
            if joint.kind.nq > 1:
                raise RobotError(
                    f"joint {joint.name!r} is {joint.kind.label}: it has {joint.kind.nq} "
                    "positions, but sensor_msgs/JointState carries one for each joint; make it "
                    "fixed, or split it into revolute and prismatic joints"
                )
        self._robot, self._joints = robot, robot.joint_names
        self._status = InputStatus(Gate.IGNORED, 0, math.nan, Reason.NONE, "")
        self._clock_step = 0
        self.set_limits(max_skew, timeout)
        self._sets: dict[tuple[str, ...], MeasuredJoints | Finding] = {}
        if closure is None:
            self._closures, self._sufficient = None, "all joints"
            self._first = MeasuredJoints(robot, self._joints, None)
        else:
            self._closures = BoundClosures(closure)
            self._sufficient = "joints from which all remaining joints follow"
            bound = self._closures.of(closure.independent)
            self._first = MeasuredJoints(robot, closure.independent, bound)
        self.sources = SourceWatch(robot, self._sufficient)
        self.reset(0)

    def set_limits(self, max_skew: float, timeout: float) -> None:
        """Change the limits from the next joint state on [s]."""
        self._max_skew = round(max_skew * 1e9)
        self._timeout = timeout * 1e9
        self.publisher_timeout_ns = 1e9 * min(timeout, LONGEST_TRUST_S)
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

        Silence counts from `now`.
        """
        n = len(self._joints)
        self._layouts: dict[tuple[str, ...], _Layout] = {}
        self._layout = _Layout([], self._joints)
        # Values, motion, stamp and arrival by joint, from the last part that had the joint.
        self._values = np.zeros(n)
        self._motion = np.full((2, n), np.nan)
        self._stamps = np.zeros(n, dtype=np.int64)
        self._arrivals = np.full(n, Arrival())
        self._seen = np.zeros(n, dtype=np.bool_)
        self._fresh = np.zeros(n, dtype=np.bool_)
        self._jumped = self.ignored_reason = _NONE
        self._whole, self._merged = Arrival(), Arrival()
        self.last_arrival, self._begun = Arrival(), Arrival(now)
        self.sources.reset()
        self.last_stamp = self.whole_stamp = 0
        # Sets are made anew, with closures at the reference.
        if self._first.bound is not None:
            self._first.bound.reset()
        self.measured = self._first
        self._sets = {self._first.joints: self._first}

    def read(
        self,
        names: Sequence[str],
        stamp: int,
        values: Array,
        now: int,
        q: Array,
        delay: int = 0,
        motion: JointMotion = (),
        count: int = 0,
    ) -> InputStatus:
        """Return the status of the next joint state.

        Parameters
        ----------
        names : names of the joints; fastest if it is the same list object as before.
        values : (n,) positions [rad, m].
        q : (nq,) is written to, and holds all joints if the status is READY.
        motion : velocities [rad/s, m/s] and efforts [N·m, N]; empty where no output needs them.
        """
        layout = self._layout
        if names is not layout.names:
            layout = self._layout = self._look_up(names)
        if layout.is_foreign or layout.refusal is not None or len(values) != layout.count:
            return self._unusable(layout, stamp, len(values), now, delay)
        self.last_arrival.note(now, delay)
        measured = layout.measured or self._determined_by(layout)
        if measured is None:
            return self._merge(layout, stamp, values, now, q, delay, motion, count)
        bound = measured.bound
        positions = q if bound is None else bound.measured
        # The places are in range; mode="clip" spares take() a buffer for the output.
        values.take(layout.places, out=positions, mode="clip")
        if motion:
            layout.write_motion(motion, measured.motion)
        # One norm checks all entries at once, which is much cheaper: NaN and infinity stay in a
        # norm, and no entry is larger than the norm.
        entries = positions.tolist()
        near = math.hypot(*entries) <= FARTHEST
        if not (near or np.isfinite(positions).all()):
            return self._refuse(stamp, now, layout.not_finite(positions))
        self.measured = measured
        self._whole.note(now, delay)
        age = now - stamp
        before, self.whole_stamp = self.whole_stamp, stamp
        doubt = self.sources.check(
            stamp, entries, measured.members, now, self._clock_step, layout, count
        )
        if (
            near
            and not doubt
            and 0 < before <= stamp
            and -self._most_ahead <= age <= self._timeout
            and measured.ranges.outside(positions) < 0
        ):
            self.last_stamp = stamp
            status = self._status
            status.gate, status.stamp, status.age = Gate.READY, stamp, 1e-9 * age
            status.reasons, status.text = Reason.NONE, ""
            return status if bound is None else self._close(bound, status, q)
        return self._accept(measured, stamp, now, delay, positions, _jump(before, stamp), doubt, q)

    @property
    def foreign_joints_text(self) -> str:
        """Text about joint states that have none of the robot's joints; empty for none."""
        if not self._layout.is_foreign:
            return ""
        return f"the joint states have {listed('', self._layout.names)}"

    def silence(self, now: int, since: float) -> InputStatus | None:
        """Return why no matrix was published for long; None if none is expected.

        The time since the last published message counts, not the messages that come.

        Parameters
        ----------
        since : time since the last published message [ns]; infinite if there was none.
        """
        last = self.last_arrival.since(now)
        received = last is not None
        if last is not None and last < since and last <= self.publisher_timeout_ns:
            return self._no_result_status(now)
        counted = self.last_arrival if received else self._begun
        # Time before the clock started or was set back does not count as silence.
        if counted.within(self._timeout, now):
            return None
        what = "no joint state any more" if received else "no joint state"
        if self._layout.is_foreign:
            what += " with joints of the robot"
        reason = Reason.INPUT_STALE if received else Reason.NO_JOINT_STATE
        text = f"{what} for {counted.age(now):.3g} s"
        if self.foreign_joints_text:
            text += f"; {self.foreign_joints_text}"
        return self._refuse(self.last_stamp, now, Finding(reason, text))

    def _no_result_status(self, now: int) -> InputStatus:
        """Return the status if joint states arrive and no matrix follows from them."""
        members = self.measured.members
        fresh = self._fresh[members]
        finding = self.ignored_reason
        # Joints that have come in whole joint states alone have no age.
        if fresh.any() and not fresh.all() and self._seen[members].all():
            finding = self._absent(members[~fresh], now)
        text = f"joint states come, but no matrix follows from them: {finding.text}"
        reason = finding.reason or Reason.JOINT_MISSING
        return self._refuse(self.last_stamp, now, Finding(reason, text))

    def _look_up(self, names: Sequence[str]) -> _Layout:
        key = tuple(names)
        layout = self._layouts.get(key)
        if layout is None:
            if len(self._layouts) >= _MOST_LAYOUTS:
                self._layouts.clear()
            layout = self._layouts[key] = _Layout(names, self._joints)
        # The same names may come in a new list object every time.
        layout.names = names
        return layout

    def _determined_by(self, layout: _Layout) -> MeasuredJoints | None:
        """Return the set of a joint state's joints if q follows from it, else None."""
        if self._closures is not None:
            found = self._set_of(layout.joints)
            layout.measured = found if isinstance(found, MeasuredJoints) else None
        elif layout.is_complete:
            layout.measured = self._first
        return layout.measured

    def _set_of(self, joints: tuple[str, ...]) -> MeasuredJoints | Finding:
        """Return the set of these joints, in the order of q, or why q does not follow from it."""
        found = self._sets.get(joints)
        if found is None:
            found = self._sets[joints] = self._bind(joints)
            if len(self._sets) > _MOST_SETS:
                # A set in use is not made anew, as its closure starts from the last q.
                del self._sets[next(old for old in self._sets if old != self.measured.joints)]
        return found

    def _bind(self, joints: tuple[str, ...]) -> MeasuredJoints | Finding:
        assert self._closures is not None
        what = listed("joint", joints)
        try:
            bound = self._closures.of(joints)
        except InputError as error:
            return Finding(Reason.JOINT_MISSING, f"the joint states have {what} alone: {error}")
        except DelassusError as error:
            text = f"the remaining joints cannot be computed from measured {what}: {error}"
            return Finding(Reason.NOT_CONFIGURED, text)
        # The closure may have been used before, for a set that was dropped since.
        bound.reset()
        return MeasuredJoints(self._robot, joints, bound)

    def _unusable(
        self, layout: _Layout, stamp: int, positions: int, now: int, delay: int
    ) -> InputStatus:
        """Return the status of a joint state that has no usable positions."""
        names, required = layout.names, self.measured.joints
        if layout.is_foreign:
            text = f"the joint state has none of the robot's joints; it has {listed('', names)}"
            return self._set_status(Gate.IGNORED, stamp, now, Finding(Reason.NONE, text))
        if not positions or not layout.count:
            finding = size_mismatch(names, 0)
            if not layout.count:
                finding = missing(names, required)
            if positions:
                finding = Finding(
                    Reason.JOINT_MISSING,
                    f"the joint state has {positions} positions but no names, so nothing tells "
                    "whose they are: its publisher has to name them; "
                    f"{listed('joint', required)}",
                )
            if self._makes_matrices(now):
                return self._ignore(stamp, now, finding, "other publishers send positions")
            self.last_arrival.note(now, delay)
            return self._refuse(stamp, now, finding)
        self.last_arrival.note(now, delay)
        return self._refuse(stamp, now, layout.refusal or size_mismatch(names, positions))

    def _merge(
        self,
        layout: _Layout,
        stamp: int,
        values: Array,
        now: int,
        q: Array,
        delay: int,
        motion: JointMotion,
        count: int,
    ) -> InputStatus:
        """Merge a joint state from whose joints alone no q follows."""
        alone = self._sets.get(layout.joints)
        if isinstance(alone, Finding) and not self._needs(layout.joints, now):
            self.ignored_reason = alone
            failed = alone if alone.reason is Reason.NOT_CONFIGURED else _NONE
            return self._ignore(stamp, now, failed, "other messages give matrices")
        targets = layout.targets
        layout.publishers.note(now, count)
        taken = values[layout.places]
        if not np.isfinite(taken).all():
            self._fresh[targets] = False
            return self._refuse(stamp, now, layout.not_finite(taken))
        # By joint: the order of a publisher's joints may change from message to message.
        jump = _jump(int(self._stamps[targets].max()), stamp)
        if jump.reason:
            self._jumped = jump
            # Positions from before the jump are from another time.
            self._fresh[self._stamps > stamp + self._max_skew] = False
        self._values[targets], self._stamps[targets] = taken, max(stamp, 0)
        layout.write_motion(motion, self._motion, targets)
        self._arrivals[targets] = Arrival(now, delay)
        self._seen[targets] = self._fresh[targets] = True
        required = self._required(layout, now)
        if self._whole.within(self.publisher_timeout_ns, now):
            self.sources.contradicts(targets, taken.tolist(), stamp, now)
            lacking = required if isinstance(required, Finding) else _NONE
            return self._ignore(stamp, now, lacking, f"another publisher sends {self._sufficient}")
        if isinstance(required, Finding):
            return self._refuse(stamp, now, required)
        self.measured, members = required, required.members
        stamps = self._stamps[members]
        oldest, newest = int(stamps.min()), int(stamps.max())
        if oldest <= 0:
            # Without a stamp, the age counts from the arrival.
            self._fresh[self._away(members, now)] = False
        if not self._fresh[members].all():
            return self._wait(members, stamp, now)
        if oldest > 0 and newest - oldest > self._max_skew:
            late = members[stamps < newest - self._max_skew]
            self._fresh[late] = False
            return self._refuse(
                oldest, now,
                Finding(
                    Reason.INPUT_SKEWED,
                    f"{self._listed(late)} came {1e-6 * (newest - oldest):.4g} ms older than the "
                    f"rest; at most {1e-6 * self._max_skew:g} ms are allowed (max_skew)",
                ),
            )  # fmt: skip
        self._merged.note(now, delay)
        positions = q if required.bound is None else required.bound.measured
        positions[...] = self._values[members]
        required.motion[...] = self._motion[:, members]
        self._fresh[...] = False
        jump, self._jumped = self._jumped, _NONE
        doubt = self.sources.check(oldest, positions.tolist(), members, now, self._clock_step)
        two = next((part for part in self._layouts.values() if part.publishers.two(now)), None)
        if two is not None:
            doubt = doubt or two_publishers(self.sources.topic, listed("joint", two.names))
        return self._accept(required, oldest, now, 0, positions, jump, doubt, q)

    def _needs(self, joints: Sequence[str], now: int) -> bool:
        """Whether joints may be a part of q: recent matrices, if any, are of other joints, too."""
        return set(joints).issubset(self.measured.joints) or not self._makes_matrices(now)

    def _required(self, layout: _Layout, now: int) -> MeasuredJoints | Finding:
        """Return the joints of the next merged q, or why none follows from the parts."""
        if self._closures is None:
            if self._seen.all():
                return self._first
            seen = [self._joints[i] for i in np.flatnonzero(self._seen)]
            return missing(layout.names, self._joints, seen)
        if self._merged.within(self.publisher_timeout_ns, now):
            return self.measured
        away = self._away(np.arange(len(self._joints)), now)
        absent = {*away.tolist()}.difference(layout.targets.tolist())
        return self._set_of(tuple(n for i, n in enumerate(self._joints) if i not in absent))

    def _wait(self, members: Entries, stamp: int, now: int) -> InputStatus:
        """Wait for the other parts, unless they have been away for too long."""
        away = self._away(members, now)
        if len(away):
            oldest = int(self._stamps[away].min())
            return self._refuse(oldest, now, self._absent(away, now))
        return self._set_status(Gate.IGNORED, stamp, now, _NONE)

    def _absent(self, members: Entries, now: int) -> Finding:
        """Return the finding for joints that have come before and are missing now."""
        longest = max(at.age(now) for at in self._arrivals[members])
        text = f"{self._listed(members)} did not come for {longest:.3g} s"
        return Finding(Reason.INPUT_STALE, text)

    def _away(self, members: Entries, now: int) -> Entries:
        """Return those of the joints whose last part arrived too long ago."""
        timeout = self._timeout
        recent = [at.within(timeout, now) for at in self._arrivals[members]]
        return members[~np.array(recent, dtype=np.bool_)]

    def _listed(self, members: Entries) -> str:
        return listed("joint", [self._joints[i] for i in members])

    def _ignore(self, stamp: int, now: int, finding: Finding, why: str) -> InputStatus:
        """Ignore a joint state, and keep the finding for the report of a later silence."""
        if not finding.text:
            return self._set_status(Gate.IGNORED, stamp, now, _NONE)
        text = f"{finding.text}; the message is ignored, as {why}"
        self.ignored_reason = Finding(finding.reason, text)
        return self._set_status(Gate.IGNORED, stamp, now, Finding(Reason.NONE, text))

    def _makes_matrices(self, now: int) -> bool:
        """Whether joint states that make a q have come recently."""
        # Both are evaluated, as within() may start the count of an age.
        timeout = self.publisher_timeout_ns
        recent = [last.within(timeout, now) for last in (self._whole, self._merged)]
        return any(recent)

    def _accept(
        self,
        measured: MeasuredJoints,
        stamp: int,
        now: int,
        delay: int,
        positions: Array,
        jump: Finding,
        doubt: str,
        q: Array,
    ) -> InputStatus:
        """Let recent positions through; `doubt` is why they may be from another source."""
        reasons, text = jump.reason, jump.text
        if doubt:
            reasons |= Reason.SOURCES_CONTRADICT
            text = doubt
        if measured.ranges.outside(positions) >= 0:
            reasons |= Reason.JOINT_OUTSIDE_LIMITS
            text = text or _outside(measured.ranges, positions)
        far = np.flatnonzero(np.abs(positions) > FARTHEST)
        if far.size:
            reasons |= Reason.JOINT_FAR
            text = (
                f"the position of {self._listed(measured.members[far])} is "
                f"{positions[far[0]]:.6g}, beyond {FARTHEST:g} rad or m: angles are rounded "
                "there; home or reset the joint"
            )
        age = now - stamp
        if stamp <= 0:
            reasons |= Reason.STAMP_INVALID
            text = text or "joint states have no valid stamp: age and order cannot be told"
            if delay > self._timeout:
                text = (
                    f"the joint positions have no valid stamp and were sent {1e-9 * delay:.4g} s "
                    f"ago, at most {1e-9 * self._timeout:g} s are allowed (input_timeout)"
                )
                return self._refuse(0, now, Finding(reasons | Reason.INPUT_STALE, text))
        else:
            self.last_stamp = stamp
            if now > 0 and age > self._timeout:
                text = (
                    f"the joint positions are {1e-9 * age:.4g} s old, at most "
                    f"{1e-9 * self._timeout:g} s are allowed (input_timeout); "
                    f"{too_old(1e-9 * age)}"
                )
                return self._refuse(stamp, now, Finding(reasons | Reason.INPUT_STALE, text))
            if now > 0 and age < -self._most_ahead:
                reasons |= Reason.STAMP_IN_FUTURE
                ahead = ahead_of_clock(-1e-9 * age, self._clock_step)
                text = f"the stamps of the joint states are {ahead}"
        status = self._set_status(Gate.READY, max(stamp, 0), now, Finding(reasons, text))
        return status if measured.bound is None else self._close(measured.bound, status, q)

    def _close(self, bound: BoundClosure, status: InputStatus, q: Array) -> InputStatus:
        """Write q from the measured joints, or refuse them."""
        closure_status = bound.solve()
        if closure_status.is_valid:
            np.copyto(q, bound.q)
        finding = finding_of(bound, closure_status)
        if finding is not None:
            status.reasons |= finding.reason
            status.text = finding.text
            if not closure_status.is_valid:
                status.gate = Gate.REFUSED
        return status

    def _refuse(self, stamp: int, now: int, finding: Finding) -> InputStatus:
        return self._set_status(Gate.REFUSED, max(stamp, 0), now, finding)

    def _set_status(self, gate: Gate, stamp: int, now: int, finding: Finding) -> InputStatus:
        status = self._status
        status.gate, status.stamp, status.age = gate, stamp, age_of(stamp, now)
        status.reasons, status.text = finding.reason, finding.text
        return status


def _jump(before: int, stamp: int) -> Finding:
    """Return the finding for a stamp before that of the last joint state, if any."""
    if not 0 < stamp < before:
        return _NONE
    jump = backward_jump(before - stamp, "or two nodes publish the same joints")
    text = f"the stamps of the joint states jumped back by {jump}"
    return Finding(Reason.STAMP_JUMPED_BACK, text)


def _outside(ranges: PlausibleRanges, positions: Array) -> str:
    """Return the text about positions that the joints cannot have."""
    first, *others = ranges.all_outside(positions).tolist()
    more = f" ({len(others)} more joints likewise)" if others else ""
    words = ranges.words(first, float(positions[first]))
    return f"{words}{more}: it was not homed, or it is in degrees"
