"""The inputs of a node: joint states, and the latest message of every other topic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from delassus.closure import Closure
from delassus.model import Robot
from delassus.model.spatial import Array
from delassus_ros.inputs.findings import Finding, Reason
from delassus_ros.inputs.input import Input
from delassus_ros.inputs.joint_state_bytes import JointStateReader
from delassus_ros.inputs.joints import Gate, InputStatus, JointGate
from delassus_ros.inputs.motion import MotionInput
from delassus_ros.ros.arrival import age_of, stamp_of
from delassus_ros.ros.health import InputHealth
from delassus_ros.ros.messages import deserialized
from delassus_ros.ros.topics import JOINTS, topic_of

_IGNORED, _REFUSED, _READY = Gate.IGNORED, Gate.REFUSED, Gate.READY
"""Members under module names: a look-up in the enumeration takes as long as a few additions."""


class Inputs:
    """The joint states and the latest message of every other topic of a node.

    Parameters
    ----------
    closure : computes the joints that are not measured; None for an open chain.
    entries : inputs of the topics other than the joint states; None for one that is not used.
    motions : users of the velocities and efforts of the joint states.
    max_skew, timeout : as for :class:`~delassus_ros.inputs.joints.JointGate` [s].

    Attributes
    ----------
    by_topic : inputs of the topics other than the joint states, by topic before remapping.
    waiting : status of the joint state that waits for its answer; IGNORED if none waits.

    Raises
    ------
    RobotError
        If the robot has joints whose positions a joint state cannot carry.
    """

    def __init__(
        self,
        robot: Robot,
        closure: Closure | None,
        entries: Iterable[Input | None],
        motions: Iterable[MotionInput | None],
        warn: Callable[[str, str], object],
        max_skew: float,
        timeout: float,
    ) -> None:
        self._warn = warn
        self._reader = JointStateReader()
        self.gate = JointGate(robot, max_skew, timeout, closure)
        self.by_topic: Mapping[str, Input] = {
            entry.topic: entry for entry in entries if entry is not None
        }
        self._motions = [motion for motion in motions if motion is not None]
        self.waiting = InputStatus(_IGNORED, 0, math.nan, Reason.NONE, "")
        self.clock_step = 0
        self.max_skew, self._timeout = max_skew, timeout
        self._silence = ""

    def set_limits(self, max_skew: float, timeout: float) -> None:
        """Change the limits of the joint states [s]."""
        self.gate.set_limits(max_skew, timeout)
        self.max_skew, self._timeout = max_skew, timeout

    def set_clock_step(self, step: int) -> None:
        """Set the longest step of simulated time [ns]; stamps may be ahead by one step."""
        self.gate.set_clock_step(step)
        self.clock_step = step

    def set_topics(self, full: Mapping[str, str]) -> None:
        """Set the full names of the topics for messages, by their names before remapping."""
        self.gate.set_topic(full[JOINTS])
        for topic, entry in self.by_topic.items():
            entry.full_topic = full.get(topic, "")

    def restart(self, now: int) -> None:
        """Drop all inputs with a time; the age of contacts counts from now on [ns]."""
        self.gate.reset(now)
        self.waiting.gate, self.waiting.text = _IGNORED, ""
        for entry in self.by_topic.values():
            entry.restart(now)

    # Messages.

    def read(self, topic: str, data: bytes, now: int, delay: int, count: int = 0) -> None:
        """Read a message of a topic other than the joint states; log its fault.

        Raises
        ------
        UnreadableError
            If the bytes are not such a message.
        """
        entry = self.by_topic.get(topic)
        if entry is None:
            return
        known = topic_of(topic)
        message = deserialized(data, known.kind, known.what)
        entry.note_publisher(now, count)
        self.accept(entry, message, now, delay)

    def accept(self, entry: Input, message: Any, now: int, delay: int = 0) -> None:
        """Pass a message to an input; log its fault."""
        finding = entry.accept(message, now, delay)
        if finding is None and entry.latest.jumped:
            # At once: the next message may come before a joint state.
            finding = self.doubt_of(entry, now)
        if finding is not None:
            self._warn(finding.kind, finding.text)

    def read_joints(
        self, data: bytes, now: int, delay: int, q: Array, count: int = 0
    ) -> tuple[bool, bool]:
        """Read a serialized sensor_msgs/JointState, which waits for its answer; log its fault.

        Parameters
        ----------
        q : (nq,) is written to.

        Returns
        -------
        Whether the joint state is to be answered, and whether it replaces one that waited.

        Raises
        ------
        UnreadableError
            If the bytes are not a joint state.
        """
        state, gate = self._reader.read(data), self.gate
        stamp = stamp_of(state.sec, state.nanosec)
        motion = state.motion if self._motions else ()
        status = gate.read(state.names, stamp, state.values, now, q, delay, motion, count)
        if status.gate is _READY:
            for user in self._motions:
                user.accept(gate.measured.joints, gate.measured.motion)
        if status.text:
            self._warn_of_joints(status)
        if status.gate is _IGNORED:
            return False, False
        self._silence = ""
        waiting = self.waiting
        replaces = waiting.gate is not _IGNORED
        # A jump is reported once, so the report is kept when a newer message replaces this one.
        jumped = replaces and waiting.text and waiting.reasons & Reason.STAMP_JUMPED_BACK
        waiting.gate, waiting.stamp, waiting.age = status.gate, status.stamp, status.age
        waiting.reasons = status.reasons
        waiting.text = status.text or (waiting.text if jumped else "")
        if jumped:
            waiting.reasons |= jumped
        return True, replaces

    # Time.

    def update_age(self, now: int) -> None:
        """Update the age of the waiting joint state, and refuse it if it is too old."""
        waiting = self.waiting
        if waiting.gate is not _READY:
            return
        waiting.age = age_of(waiting.stamp, now)
        if waiting.age > self._timeout:
            waiting.gate = _REFUSED
            waiting.reasons |= Reason.INPUT_STALE
            waiting.text = (
                f"the joint positions were {waiting.age:.4g} s old when their turn came, at most "
                f"{self._timeout:g} s are allowed (input_timeout)"
            )
            self._warn_of_joints(waiting)

    def silence(self, now: int, since: float) -> InputStatus | None:
        """Return why no answer was published for `since` ns; None if none is expected."""
        gate = self.gate
        is_recent = gate.last_arrival.within(gate.publisher_timeout_ns, now)
        if is_recent and self.waiting.gate is not _IGNORED:
            # The waiting joint state is answered at the next instant of a slow fixed rate.
            return None
        status = gate.silence(now, since)
        if status is not None:
            self._silence = status.text
            self._warn("silence", status.text)
        return status

    def doubt_of(self, entry: Input, now: int, stamp: int = 0) -> Finding | None:
        """Return why an input is in doubt at the stamp of joint positions [ns], or None."""
        return entry.doubt(now, self.max_skew, self.clock_step, stamp)

    def _warn_of_joints(self, status: InputStatus) -> None:
        # A separate kind of warning, independent of the remaining reasons.
        unstamped = status.reasons == Reason.STAMP_INVALID
        self._warn("stamp" if unstamped else status.reasons.name or "joints", status.text)

    # Reports, without full names and publishers of topics, which the caller adds.

    def healths(self, now: int, stamp: int) -> dict[str, InputHealth]:
        """Return the health of the inputs by topic; the joint states come last.

        Parameters
        ----------
        stamp : of the joint states of the last answer [ns].
        """
        found = {topic: entry.health(now) for topic, entry in self.by_topic.items()}
        for topic, entry in self.by_topic.items():
            if found[topic].received and not found[topic].warning:
                finding = self.doubt_of(entry, now, self.waiting.stamp)
                if finding is not None:
                    found[topic] = replace(found[topic], warning=finding.text)
        found[JOINTS] = self._health_of_joints(now, stamp)
        return found

    def _health_of_joints(self, now: int, stamp: int) -> InputHealth:
        arrival = self.gate.last_arrival
        age, silence = arrival.age(now, stamp), arrival.age(now)
        received = arrival.since(now) is not None
        if not received or silence > self._timeout:
            # The last answer reports the silence; this text gives the likely cause.
            foreign = self.gate.foreign_joints_text
            text = f"{foreign}, none of the robot's joints" if foreign else ""
        else:
            # Joint states come; the fault is that no answer follows from them.
            text = self._silence or self.waiting.text
        return InputHealth(
            "joint states", "", 0, age, silence, self._timeout, received, text
        )
