"""The node's pipeline over a recording: the matrices that the node would have published.

The clock is the recorded topic ``/clock`` if the recording has one, as for a node with
``use_sim_time``, else the times at which messages were recorded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import radians
from time import perf_counter

from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus.model.ranges import PlausibleRanges, angles
from delassus.model.spatial import Array
from delassus_ros.inputs.findings import Validity
from delassus_ros.node.computation import Computation
from delassus_ros.node.parameters import Operation, Settings
from delassus_ros.node.tick import DYNAMICS, MATRIX
from delassus_ros.recordings.contents import DESCRIPTION, KINDS, check_topics, topic_names
from delassus_ros.recordings.recorded_file import Recorded, RecordingError
from delassus_ros.recordings.recording import Recording
from delassus_ros.recordings.writer import type_name
from delassus_ros.ros.arrival import ClockSteps, stamp_of
from delassus_ros.ros.messages import UnreadableError, deserialized
from delassus_ros.ros.stream import WATCHES, Messages
from delassus_ros.ros.topics import CONTACTS, JOINTS

_LONGEST_DELAY_NS = 10_000_000_000
"""Longest time between publishing and recording [ns]; a longer one is due to another clock."""
_LONGEST_SILENCE_NS = 60_000_000_000
"""Longest silence that is replayed in full [ns]; a longer one is due to a clock that was set."""
CLOCK = "/clock"


@dataclass(frozen=True, slots=True)
class Answer:
    """Messages that the node would have published at an instant.

    Attributes
    ----------
    time : time in the recording [ns].
    matrix : serialized DelassusMatrix.
    secondary : serialized ContactDynamics; None without secondary outputs.
    """

    time: int
    matrix: bytes
    secondary: bytes | None


class Replay:
    """Answers the messages of a recording.

    Parameters
    ----------
    recording : recording with the messages.
    settings, operation : settings of the node; all joint states are answered, whatever the rate.
    description : URDF of the robot.
    remap : full names of topics that differ from the node's.
    degrees : whether angles of joint states, and their rates, are in degrees.

    Attributes
    ----------
    computation : computation with problem, layout and pipeline.
    topics : kinds of the topics that are read, by their full names.
    answering : time of the pipeline [s].
    computing : part of this time in the kernel [s].
    warnings : first text and number of warnings, by kind.

    Raises
    ------
    RecordingError
        If a necessary topic is missing, or has another type; names the existing topics.
    DelassusError
        If robot, contacts and parameters do not fit together.
    """

    def __init__(
        self,
        recording: Recording,
        settings: Settings,
        operation: Operation,
        description: str,
        remap: Mapping[str, str] | None = None,
        degrees: bool = False,
    ) -> None:
        self.warnings: dict[str, tuple[str, int]] = {}
        self.answering = self.computing = 0.0
        self._now = self._received = 0
        self.computation = Computation.make(
            settings, description, operation.limits, lambda: self._now, self._warn
        )
        self._pipeline = self.computation.tick
        self._pipeline.system_now = lambda: self._received
        robot = self.computation.problem.robot
        self._ranges = PlausibleRanges(robot)
        turned = angles(robot)
        self._angles = {
            joint.name
            for joint, offset in zip(robot.joints, robot.q_offsets, strict=True)
            if joint.kind.nq == 1 and turned[offset]
        }
        self._degrees = degrees
        self._recording = recording
        names = topic_names(remap or {})
        self.topics = {names[kind]: kind for kind in self._needed(settings)}
        for topic in check_topics(recording, self.topics):
            expected = type_name(KINDS[self.topics[topic]])
            self._warn(f"type of {topic}", f"{topic} has no type: it is read as {expected}")
        self._description = description
        # A description in the parameters overrides recorded ones.
        self._described = "" if settings.robot_description else names[DESCRIPTION]
        self._period = int(1e9 * operation.limits.patience / WATCHES)
        self._looked = 0

    def _needed(self, settings: Settings) -> list[str]:
        """Return the topics of the node, without contacts if these do not change the matrix."""
        others = [name for name in self._pipeline.topics if name != JOINTS]
        return [JOINTS, *(n for n in others if n != CONTACTS or settings.rows != "all")]

    def answers(self) -> Iterator[Answer]:
        """Yield the messages that the node would have published, in order."""
        topics = self._recording.scan()
        simulated = CLOCK in topics
        pipeline = self._pipeline
        pipeline.begin()
        steps = ClockSteps(simulated)
        pipeline.inputs.set_clock_step(steps.longest)
        wanted = {*self.topics, CLOCK, self._described}
        for message in self._recording.messages(wanted):
            try:
                yield from self._answers_to(message, simulated, steps)
            except UnreadableError as error:
                self._warn("bytes", str(error))

    def _answers_to(
        self, message: Recorded, simulated: bool, steps: ClockSteps
    ) -> Iterator[Answer]:
        """Take a message, and yield the answers to it."""
        if message.topic == self._described:
            self._check_description(message)
            return
        if message.topic == CLOCK:
            stamp = deserialized(message.data, Clock, "a time").clock
            yield from self._until(stamp_of(stamp.sec, stamp.nanosec), steps, message.time)
            return
        if not simulated:
            yield from self._until(message.time, steps, message.time)
        yield from self._answers_of(message, simulated)

    def _check_description(self, message: Recorded) -> None:
        text = deserialized(message.data, String, "a robot description").data
        if text != self._description:
            raise RecordingError(
                f"{self._recording.path}: another robot description on {self._described} at "
                f"{1e-9 * message.time:.3f} s; what is before it was answered. Where one robot of "
                "several is meant, --urdf says which"
            )

    def _until(self, now: int, steps: ClockSteps, time: int) -> Iterator[Answer]:
        """Advance the time, and yield the messages about silence meanwhile."""
        pipeline = self._pipeline
        step = now - self._now
        if step < 0:
            self._warn("clock", f"time goes back by {-1e-9 * step:.6g} s; inputs are forgotten")
            self._now = self._looked = now
            pipeline.clock_jumped()
            return
        if steps.simulated:
            # A node checks for silence meanwhile, too, but its clock stands still.
            self._now = now
            before = steps.longest
            steps.add(step)
            if steps.longest != before:
                pipeline.inputs.set_clock_step(steps.longest)
            yield from self._look(time)
            return
        if self._now == 0:
            self._now = self._looked = now
        last = self._now
        end = min(now, last + _LONGEST_SILENCE_NS)
        while self._looked + self._period < end:
            self._looked += self._period
            self._now = self._looked
            yield from self._look(self._now)
        if end < now:
            self._warn("gap", f"nothing was recorded for {1e-9 * (now - last):.6g} s")
            self._looked = now
        self._now = now

    def _look(self, time: int) -> Iterator[Answer]:
        yield from self._answer(time, self._pipeline.watch())

    def _answers_of(self, message: Recorded, simulated: bool) -> Iterator[Answer]:
        """Read a message, and yield the answer to it if it is a joint state."""
        pipeline, data = self._pipeline, message.data
        self._received = message.time
        waited = message.time - message.sent
        sent = message.sent if not simulated and 0 < waited < _LONGEST_DELAY_NS else 0
        kind = self.topics[message.topic]
        if kind == JOINTS:
            if self._degrees:
                data = self._in_radians(data)
            start = perf_counter()
            is_due = pipeline.read(JOINTS, data, sent)
            self.answering += perf_counter() - start
            if is_due:
                yield from self._answer(message.time, pipeline.answer())
            self._check_clock(simulated)
            return
        pipeline.read(kind, data, sent)

    def _in_radians(self, data: bytes) -> bytes:
        """Return a joint state with the angles of the robot's joints, and their rates, in rad."""
        state = deserialized(data, JointState, "a joint state")
        for values in (state.position, state.velocity):
            if len(values) == len(state.name):
                for k, name in enumerate(state.name):
                    if name in self._angles:
                        values[k] = radians(values[k])
        return bytes(serialize_message(state))

    def _judge(self, q: Array) -> None:
        """Warn of positions outside the plausible ranges, joint by joint."""
        if self._ranges.outside(q) < 0:
            return
        for k in self._ranges.all_outside(q).tolist():
            hint = ""
            if self._ranges.is_angle(k) and not self._degrees:
                hint = "; if angles were recorded in degrees, add --degrees"
            words = f"{self._ranges.words(k, q[k])}{hint}"
            self._warn(f"position of {self._ranges.name(k)}", words)

    def _check_clock(self, simulated: bool) -> None:
        """Warn of stamps of another clock than that of the replay, with a remedy."""
        stamp = self._pipeline.last.stamp_ns
        off = self._now - stamp
        if not stamp or abs(off) < _LONGEST_DELAY_NS:
            return
        side = "behind" if off > 0 else "ahead of"
        reference, advice = "the times of recording", (
            "as that of a simulation whose /clock was not recorded. Record /clock as well, or set "
            "the parameters input_timeout, contacts_timeout and orientation.timeout to 0, which "
            "leaves ages out"
        )
        if simulated:
            reference = CLOCK
            advice = "and its publisher does not use simulated time (use_sim_time)"
        self._warn(
            "another clock",
            f"the stamps of the joint states are {1e-9 * abs(off):.6g} s {side} {reference}: they "
            f"are of another clock, {advice}",
        )

    def _answer(self, time: int, messages: Messages) -> Iterator[Answer]:
        start = perf_counter()
        found = dict(messages)
        self.answering += perf_counter() - start
        if found:
            self.computing += self._pipeline.last.compute_time
            if self._pipeline.last.validity is not Validity.INVALID:
                self._judge(self._pipeline.positions)
            yield Answer(time, found[MATRIX], found.get(DYNAMICS))

    def _warn(self, kind: str, text: str) -> None:
        words, count = self.warnings.get(kind, (text, 0))
        self.warnings[kind] = words, count + 1
