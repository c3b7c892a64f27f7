"""The node's pipeline over a recording: the matrices that the node would have published.

Time is that of the recording: of its topic ``/clock`` if it has one, as for a node with
``use_sim_time``, else the time at which each message was recorded.
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

from delassus_ros.model.ranges import PlausibleRanges, angles
from delassus_ros.model.spatial import Array
from delassus_ros.node.inputs.arrival import ClockSteps, stamp_of
from delassus_ros.node.inputs.joint_state_bytes import UnreadableError, deserialized
from delassus_ros.node.inputs.topics import CONTACTS, JOINTS
from delassus_ros.node.lifecycle.computation import Computation
from delassus_ros.node.live.pipeline import WATCHES
from delassus_ros.node.reasons import Validity
from delassus_ros.node.settings import Operation, Settings
from delassus_ros.node.system.background import wait_for_end
from delassus_ros.recordings.contents import DESCRIPTION, KINDS, check_topics, topic_names
from delassus_ros.recordings.recorded_file import Recorded, RecordingError
from delassus_ros.recordings.recording import Recording
from delassus_ros.recordings.writer import type_name

_LONGEST_DELAY = 10_000_000_000
"""Ten seconds between publishing and recording are another clock, not a delay [ns]."""
_LONGEST_SILENCE = 60_000_000_000
"""So much of it is gone through as the node would; more is a clock that was set [ns]."""
CLOCK = "/clock"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the node would have published at an instant.

    Attributes
    ----------
    time : of the recording [ns].
    matrix : serialized DelassusMatrix.
    secondary : serialized ContactDynamics; None where outputs are not asked for.
    """

    time: int
    matrix: bytes
    secondary: bytes | None


class Replay:
    """Answers the messages of a recording.

    Parameters
    ----------
    recording : has the messages.
    settings, operation : of the node; every joint state is answered, also where a rate is set.
    description : of the robot, URDF.
    remap : full name per topic of the node that is called otherwise.
    degrees : angles of joint states, and their rates, are in degrees.

    Attributes
    ----------
    computation : with problem, layout and pipeline.
    topics : kind of each topic that is taken, by its full name.
    answering : seconds that the pipeline took.
    computing : seconds of it that the kernel took.
    warnings : first words of each kind of warning, and how often it came.

    Raises
    ------
    RecordingError
        If a topic that is needed is missing, or has another type; names those that there are.
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
        self._pipeline = self.computation.pipeline
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
        # Who names the robot means it, whatever else is recorded.
        self._described = "" if settings.robot_description else names[DESCRIPTION]
        self._period = int(1e9 * operation.limits.patience / WATCHES)
        self._looked = 0

    def _needed(self, settings: Settings) -> list[str]:
        """Return the topics that the node would subscribe to, but contacts that change nothing."""
        others = [name for name in self._pipeline.topics if name != JOINTS]
        return [JOINTS, *(n for n in others if n != CONTACTS or settings.rows != "all")]

    def answers(self) -> Iterator[Answer]:
        """Yield what the node would have published, in order."""
        topics = self._recording.scan()
        simulated = CLOCK in topics
        pipeline = self._pipeline
        pipeline.begin()
        steps = ClockSteps(simulated)
        pipeline.set_clock_step(steps.longest)
        wanted = {*self.topics, CLOCK, self._described}
        for message in self._recording.messages(wanted):
            try:
                yield from self._answers_to(message, simulated, steps)
            except UnreadableError as error:
                self._warn("bytes", str(error))

    def _answers_to(
        self, message: Recorded, simulated: bool, steps: ClockSteps
    ) -> Iterator[Answer]:
        """Take a message, and yield what is published because of it."""
        if message.topic == self._described:
            self._check_description(message)
            return
        if message.topic == CLOCK:
            stamp = deserialized(message.data, Clock, "a time").clock
            yield from self._until(stamp_of(stamp.sec, stamp.nanosec), steps, message.time)
            return
        if not simulated:
            yield from self._until(message.time, steps, message.time)
        answer = self._taken(message, simulated)
        if answer is not None:
            yield self._answer(message.time, answer)

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
            # The node looks at the clock as often, and finds it where it stands.
            self._now = now
            before = steps.longest
            steps.add(step)
            if steps.longest != before:
                pipeline.set_clock_step(steps.longest)
            yield from self._look(time)
            return
        if self._now == 0:
            self._now = self._looked = now
        last = self._now
        end = min(now, last + _LONGEST_SILENCE)
        while self._looked + self._period < end:
            self._looked += self._period
            self._now = self._looked
            yield from self._look(self._now)
        if end < now:
            self._warn("gap", f"nothing was recorded for {1e-9 * (now - last):.6g} s")
            self._looked = now
        self._now = now

    def _look(self, time: int) -> Iterator[Answer]:
        answer = self._pipeline.watch()
        if answer is not None:
            yield self._answer(time, answer)

    def _taken(self, message: Recorded, simulated: bool) -> bytes | None:
        """Take a message in; return the answer to a joint state."""
        pipeline, data = self._pipeline, message.data
        self._received = message.time
        waited = message.time - message.sent
        sent = message.sent if not simulated and 0 < waited < _LONGEST_DELAY else 0
        kind = self.topics[message.topic]
        if kind == JOINTS:
            if self._degrees:
                data = self._in_radians(data)
            start = perf_counter()
            answer = pipeline.answer(data, sent)
            self.answering += perf_counter() - start
            self.computing += pipeline.last.compute_time if answer is not None else 0.0
            if answer is not None and pipeline.last.validity is not Validity.INVALID:
                self._judge(pipeline.positions)
            self._wait_for_closures()
            self._check_clock(simulated)
            return answer
        taken = deserialized(data, KINDS[kind], f"a message of {message.topic}")
        pipeline.read(kind, taken, sent)
        return None

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
        """Warn of positions that cannot be, joint by joint."""
        if self._ranges.outside(q) < 0:
            return
        for k in self._ranges.all_outside(q).tolist():
            hint = ""
            if self._ranges.is_angle(k) and not self._degrees:
                hint = "; if angles were recorded in degrees, add --degrees"
            words = f"{self._ranges.words(k, q[k])}{hint}"
            self._warn(f"position of {self._ranges.name(k)}", words)

    def _check_clock(self, simulated: bool) -> None:
        """Warn of stamps of another clock than that of the replay, with what helps."""
        stamp = self._pipeline.last.stamp_ns
        off = self._now - stamp
        if not stamp or abs(off) < _LONGEST_DELAY:
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

    def _wait_for_closures(self) -> None:
        """Wait for code that the node builds in the background: a replay has no deadline."""
        tasks = [task for task in self._pipeline.tasks if not task.ended]
        if tasks:
            wait_for_end(tasks, lambda text: self._warn("closure", str(text)))

    def _answer(self, time: int, matrix: bytes) -> Answer:
        start = perf_counter()
        secondary = self._pipeline.secondary_outputs()
        self.answering += perf_counter() - start
        return Answer(time, matrix, secondary)

    def _warn(self, kind: str, text: str) -> None:
        words, count = self.warnings.get(kind, (text, 0))
        self.warnings[kind] = words, count + 1
