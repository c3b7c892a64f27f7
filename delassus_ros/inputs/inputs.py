"""Latest inputs of a pipeline and their ages: joint states, contacts, base, torques."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from delassus_ros.closure import Closure
from delassus_ros.inputs.contacts import ContactInput
from delassus_ros.inputs.findings import Finding, LastAnswer, Reason
from delassus_ros.inputs.input import Input
from delassus_ros.inputs.joint_state_bytes import JointStateReader
from delassus_ros.inputs.joints import Gate, InputStatus, JointGate
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.motion import MotionInput
from delassus_ros.inputs.orientation import OrientationInput
from delassus_ros.inputs.placements import PlacementInput
from delassus_ros.inputs.schedule import ScheduleInput
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem
from delassus_ros.ros.arrival import age_of, stamp_of
from delassus_ros.ros.health import InputHealth
from delassus_ros.ros.topics import JOINTS

_IGNORED, _REFUSED = Gate.IGNORED, Gate.REFUSED
"""Members under module names: a look-up in the enumeration takes as long as a few additions."""


@dataclass(slots=True)
class TickStatus:
    """Status of all inputs of a matrix; overwritten by that of the next tick.

    Attributes
    ----------
    reasons, text : reasons of the message, as bits and in words; empty for none.
    missing : whether an input is missing that a matrix needs.
    doubtful : whether inputs besides the joint state make the matrix DEGRADED.
    stale : whether the set of contacts is too old.
    """

    reasons: Reason = Reason.NONE
    text: str = ""
    missing: bool = False
    doubtful: bool = False
    stale: bool = False


class Inputs:
    """The latest inputs of a problem.

    Parameters
    ----------
    problem : problem of the matrices.
    warn : takes the kind of a warning and its text.
    limits : limits of the inputs.
    closure : closure of a robot with couplings or loops.
    source : the base's orientation and twist; None if no output needs them.
    motion : velocities and efforts; None if no output needs them.
    observed : velocities and efforts of the contact estimator; None without an estimator.
    schedule : the contacts to come; None without a schedule.

    Attributes
    ----------
    contacts : the set of active contacts.
    placements : placements of the moving contacts; None without moving contacts.
    by_topic : all inputs except the joint states, by the name of their topic.
    kept : status of the joint state that waits for its matrix; IGNORED if none waits.

    Raises
    ------
    RobotError
        If the robot has joints whose positions a joint state cannot carry.
    InputError
        If a limit is out of range.
    """

    def __init__(
        self,
        problem: Problem,
        warn: Callable[[str, str], object],
        limits: Limits,
        closure: Closure | None,
        source: OrientationInput | None,
        motion: MotionInput | None = None,
        observed: MotionInput | None = None,
        schedule: ScheduleInput | None = None,
    ) -> None:
        self._warn = warn
        self._reader = JointStateReader()
        self._gate = JointGate(problem.robot, limits.max_skew, limits.input_timeout, closure)
        self.contacts = ContactInput(problem.contacts, limits.contacts_timeout)
        moves = bool(problem.moving)
        self.placements = PlacementInput(problem, limits.contacts_timeout) if moves else None
        self._source = source
        self._turns_rows = any(port.name == "base_orientation" for port in problem.inputs)
        self._motion = motion
        self._moving = [source for source in (motion, observed) if source is not None]
        torques = None if motion is None else motion.torques
        self._schedule = schedule
        inputs: list[Input | None] = [self.contacts, schedule, self.placements, source, torques]
        self.by_topic: Mapping[str, Input] = {
            entry.topic: entry for entry in inputs if entry is not None
        }
        self.kept = InputStatus(_IGNORED, 0, math.nan, Reason.NONE, "")
        self._limits = limits
        self.clock_step = 0
        self._tick_status = TickStatus()
        self._silence = ""

    def set_limits(self, limits: Limits) -> None:
        """Change the limits; raises InputError, and changes none, if one is out of range."""
        before = self._limits
        try:
            self._apply(limits)
        except BaseException:
            self._apply(before)
            raise

    def _apply(self, limits: Limits) -> None:
        self._gate.set_limits(limits.max_skew, limits.input_timeout)
        self.contacts.set_timeout(limits.contacts_timeout)
        if self._schedule is not None:
            self._schedule.timeout = limits.contacts_timeout
        if self.placements is not None:
            self.placements.timeout = limits.contacts_timeout
        if self._motion is not None and self._motion.torques is not None:
            self._motion.torques.timeout = limits.input_timeout
        self._limits = limits

    def set_clock_step(self, step: int) -> None:
        """Set the longest step of simulated time [ns]; stamps may be ahead by one step."""
        self._gate.set_clock_step(step)
        self.clock_step = step

    def set_topics(self, full: Mapping[str, str]) -> None:
        """Set the full names of the topics for messages, by their names before remapping."""
        self._gate.set_topic(full[JOINTS])
        for topic, entry in self.by_topic.items():
            entry.full_topic = full.get(topic, "")

    def reset_contacts(self) -> None:
        """Drop the active contacts and the placements of moving contacts until new ones come."""
        self.contacts.reset()
        if self._schedule is not None:
            self._schedule.reset()
        if self.placements is not None:
            self.placements.reset()

    def restart(self, now: int) -> None:
        """Drop joint states, orientation and torques; the age of contacts counts from now on.

        Parameters
        ----------
        now : time of the node's clock from now on [ns].
        """
        self._gate.reset(now)
        self.kept.gate, self.kept.text = _IGNORED, ""
        for entry in self.by_topic.values():
            entry.restart(now)

    # Messages.

    def read(self, topic: str, message: Any, now: int, delay: int, count: int = 0) -> None:
        """Take a message of a topic; warn of its faults.

        Parameters
        ----------
        topic : name of the topic before remapping.
        message : message of the topic's type.
        now : time of the node's clock [ns].
        delay : time between sending and `now` [ns].
        count : number of the message among those of its publisher; 0 if unknown.
        """
        found = self.by_topic.get(topic)
        if found is None:
            return
        found.note_publisher(now, count)
        warning = found.take(message, now, delay)
        if warning is None and found.latest.jumped:
            # At once: the next message may come before a matrix is computed with this one.
            warning = self._caveat(found, now)
            if warning is not None:
                self._warn(f"stamp of the {found.words.name}", warning.text)
        elif warning is not None and found is not self._source:
            self.warn_of(warning)

    def write_motion(
        self, stamp: int, now: int, inputs: Mapping[str, Array]
    ) -> Finding | None:
        """Write the motion inputs of secondary outputs at a stamp [ns]; return their fault."""
        if self._motion is None:
            return None
        warning = self._motion.write(
            stamp, now, inputs, self._limits.max_skew, self.clock_step
        )
        if warning is not None:
            self.warn_of(warning)
        elif self._motion.caveat is not None:
            self._warn(self._motion.in_doubt, self._motion.caveat.text)
        return warning

    def write_orientation(self, stamp: int, target: Array, q: Array) -> None:
        """Write the base's orientation x, y, z, w at the joint positions (nq,) of a stamp [ns].

        The orientation is that last received if the stamp is 0.
        """
        if self._source is not None:
            self._source.write(stamp, target, q)

    def read_joints(
        self, joint_state: bytes, now: int, delay: int, q: Array, count: int = 0
    ) -> tuple[bool, bool]:
        """Take a serialized joint state.

        Parameters
        ----------
        joint_state : sensor_msgs/JointState.
        now : time of the node's clock [ns].
        delay : time between sending and `now` [ns].
        q : (nq,) is written to.
        count : number of the message among those of its publisher; 0 if unknown.

        Returns
        -------
        Whether the joint state is to be answered, and whether it replaces one that waited for
        its answer.

        Raises
        ------
        UnreadableError
            If the bytes are not a joint state.
        """
        state = self._reader.read(joint_state)
        stamp = stamp_of(state.sec, state.nanosec)
        gate = self._gate
        motion = state.motion if self._moving else ()
        status = gate.read(state.names, stamp, state.values, now, q, delay, motion, count)
        if status.gate is Gate.READY:
            for moving in self._moving:
                moving.take(gate.measured.joints, gate.measured.motion)
        if status.text:
            self._say(status)
        if status.gate is _IGNORED:
            return False, False
        self._silence = ""
        kept = self.kept
        passed_over = kept.gate is not _IGNORED
        # A jump is reported once, so the report is kept when a newer message replaces this one.
        jumped = passed_over and kept.text and kept.reasons & Reason.STAMP_JUMPED_BACK
        kept.gate, kept.stamp, kept.age = status.gate, status.stamp, status.age
        kept.reasons = status.reasons
        kept.text = status.text or (kept.text if jumped else "")
        if jumped:
            kept.reasons |= jumped
        return True, passed_over

    # Time.

    def grow_old(self, now: int) -> None:
        """Update the age of the waiting joint state, and refuse it if it is too old."""
        kept = self.kept
        if kept.gate is Gate.READY:
            kept.age = age_of(kept.stamp, now)
            if kept.age > self._limits.input_timeout:
                kept.gate = _REFUSED
                kept.reasons |= Reason.INPUT_STALE
                kept.text = (
                    f"the joint positions were {kept.age:.4g} s old when their turn came, at most "
                    f"{self._limits.input_timeout:g} s are allowed (input_timeout)"
                )
                self._say(kept)

    def silence(self, now: int, since: float) -> InputStatus | None:
        """Return why no matrix was published for `since` ns; None if none is expected."""
        gate = self._gate
        if self.kept.gate is not _IGNORED and gate.last_arrival.within(
            gate.publisher_timeout_ns, now
        ):
            # The waiting joint state is answered at the next instant of a slow fixed rate.
            return None
        status = gate.silence(now, since)
        if status is not None:
            self._silence = status.text
            self._warn("silence", status.text)
        return status

    def tick_status(self, status: InputStatus, now: int, all_rows: bool) -> TickStatus:
        """Return the status of joint positions, contacts and orientation; warn of faults.

        Parameters
        ----------
        status : status of the joint positions, already reported.
        all_rows : whether matrices are computed without a set of active contacts.
        """
        contacts, tick = self.contacts, self._tick_status
        reasons, text = contacts.reasons, status.text or contacts.text
        if status.reasons:
            reasons |= status.reasons
        missing = contacts.active is None and not all_rows
        stale = contacts.stale(now)
        if stale is not None:
            self.warn_of(stale)
            reasons |= stale.reason
            text = text or stale.text
            missing = missing or not all_rows
        tick.stale = tick.doubtful = stale is not None
        if contacts.active is not None:
            # Without _caveat, as a call per tick counts.
            caveat = contacts.caveat(now, self._limits.max_skew, self.clock_step)
            if caveat is not None:
                self._warn(f"stamp of the {contacts.words.name}", caveat.text)
                reasons |= caveat.reason
                text, tick.doubtful = text or caveat.text, True
        if self._source is not None and self._turns_rows:
            warning, usable = self._of_orientation(self._source, status.stamp, now)
            missing = missing or not usable
            if warning is not None:
                reasons |= warning.reason
                text, tick.doubtful = text or warning.text, True
        if self.placements is not None:
            active = contacts.active or ()
            warning = self.placements.warning_of(active, now)
            if warning is not None:
                self.warn_of(warning)
                missing = True
            else:
                limits = self._limits
                warning = self.placements.caveat_of(
                    active, now, limits.max_skew, self.clock_step
                )
                if warning is not None:
                    self._warn("stamp of the contact placements", warning.text)
                    tick.doubtful = True
            if warning is not None:
                reasons |= warning.reason
                text = text or warning.text
        if not text and contacts.reasons is Reason.NO_CONTACTS_RECEIVED:
            text = "no set of active contacts has arrived yet"
            self._warn("contacts", text)
        tick.reasons, tick.text, tick.missing = reasons, text, missing
        return tick

    def _of_orientation(
        self, source: OrientationInput, stamp: int, now: int
    ) -> tuple[Finding | None, bool]:
        """Return the warning about the orientation at a stamp [ns], and whether it is usable."""
        warning = source.warning(now)
        if warning is not None:
            self.warn_of(warning)
            return warning, False
        caveat = self._caveat(source, now, stamp)
        if caveat is not None:
            # A separate kind of warning: joint states have the same reasons.
            self._warn(f"stamp of the {source.words.name}", caveat.text)
        return caveat, True

    def warn_of(self, warning: Finding) -> None:
        """Log a warning of an input."""
        self._warn(warning.reason.name or "input", warning.text)

    def _caveat(self, source: Input, now: int, stamp: int = 0) -> Finding | None:
        return source.caveat(now, self._limits.max_skew, self.clock_step, stamp)

    def _say(self, status: InputStatus) -> None:
        # A separate kind of warning, independent of the remaining reasons.
        unstamped = status.reasons == Reason.STAMP_INVALID
        self._warn("stamp" if unstamped else status.reasons.name or "joints", status.text)

    # Reports, without full names and publishers of topics, which the caller adds.

    def healths(self, last: LastAnswer, now: int) -> dict[str, InputHealth]:
        """Return the health of the inputs by topic; the joint states come last.

        Parameters
        ----------
        last : the last answer, which has the stamp of the joint states.
        now : time of the node's clock [ns].
        """
        found = {topic: entry.health(now) for topic, entry in self.by_topic.items()}
        for topic, entry in self.by_topic.items():
            if found[topic].received and not found[topic].warning:
                caveat = self._caveat(entry, now, self.kept.stamp)
                if caveat is not None:
                    found[topic] = replace(found[topic], warning=caveat.text)
        found[JOINTS] = self._joints_health(last, now)
        return found

    def _joints_health(self, last: LastAnswer, now: int) -> InputHealth:
        arrival, timeout = self._gate.last_arrival, self._limits.input_timeout
        age, silence = arrival.age(now, last.stamp_ns), arrival.age(now)
        received = arrival.since(now) is not None
        if not received or silence > timeout:
            # The last answer reports the silence; this text gives the likely cause.
            foreign = self._gate.foreign_joints_text
            text = f"{foreign}, none of the robot's joints" if foreign else ""
        else:
            # Joint states come; the fault is that no matrix follows from them.
            text = self._silence or self.kept.text
        return InputHealth("joint states", "", 0, age, silence, timeout, received, text)
