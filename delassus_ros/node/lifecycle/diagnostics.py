"""Diagnostics of the node: entries with a level, a text and numbers.

Entries are separate where the remedies are: inputs, matrix, timing, algorithm, robot, output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from time import perf_counter
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile

from delassus_ros.algorithms import spelling
from delassus_ros.conditioning.monitor import Conditioning, Examination
from delassus_ros.errors import listed
from delassus_ros.node.lifecycle.changes import AlgorithmChange, DescriptionChange
from delassus_ros.node.lifecycle.computation import Computation
from delassus_ros.node.live.publishers import Outputs
from delassus_ros.node.live.stream import Stream
from delassus_ros.node.live.timing import Times, Timing
from delassus_ros.node.reasons import InputHealth, Mismatch, Reason, Validity
from delassus_ros.node.system.qos import Mismatches
from delassus_ros.node.system.realtime import Outcome
from delassus_ros.node.system.timers import steady


class Level(IntEnum):
    """Severity; the values of ``diagnostic_msgs/DiagnosticStatus``."""

    OK = 0
    WARN = 1
    ERROR = 2
    STALE = 3


_OF_VALIDITY = {
    Validity.OK: Level.OK, Validity.DEGRADED: Level.WARN, Validity.INVALID: Level.ERROR
}  # fmt: skip


OVERRIDABLE: Mapping[str, Sequence[str]] = {
    "subscription": ("RELIABILITY", "DURABILITY"), "publisher": ("RELIABILITY", "DEADLINE")
}  # fmt: skip
"""QoS policies that may be incompatible and that parameters override, by kind of endpoint."""


_VERBS = {
    "subscription": "offers an incompatible QoS", "publisher": "requests an incompatible QoS"
}  # fmt: skip
"""Text about the endpoint of the other node, by kind of this node's endpoint."""


@dataclass(frozen=True)
class Entry:
    """A line of the diagnostics.

    Attributes
    ----------
    name : subject of the line, e.g. ``"matrix"``.
    level : severity.
    message : state in a few words.
    values : further numbers and names, as text by label.
    """

    name: str
    level: Level
    message: str
    values: Mapping[str, str] = field(default_factory=dict)


def of_input(health: InputHealth) -> Entry:
    """Return the entry of an input: whether messages come, and their fault."""
    topic = health.topic
    causes = [health.warning] if health.warning else []
    if health.incompatible:
        causes.append(f"a publisher of {qos_mismatch(topic, 'subscription', health.incompatible)}")
    state = ""
    if not health.received:
        level = Level.ERROR if health.incompatible else Level.STALE
        state = (
            f"nothing{' of use' if health.warning else ''} has come on {topic}, whose "
            f"publishers are {health.publishers}"
            if health.publishers
            else f"no node publishes {topic}"
        )
    elif health.silence > health.timeout:
        level = Level.STALE
        state = (
            f"the latest came {_number(health.silence)} s ago (publishers: {health.publishers})"
        )
    elif health.age > health.timeout:
        level = Level.STALE
        if not health.warning:
            state = f"the latest is {_number(health.age)} s old (publishers: {health.publishers})"
    elif causes:
        level = Level.WARN
    else:
        level, state = Level.OK, "in time"
    values = {
        "topic": topic,
        "publishers": str(health.publishers),
        "age [s]": _number(health.age),
        "silence [s]": _number(health.silence),
        "timeout [s]": _number(health.timeout),
        **{name: str(count) for name, count in health.counts.items()},
    }
    message = ": ".join(part for part in (state, "; ".join(causes)) if part)
    return Entry(health.name, level, message, values)


def qos_mismatch(topic: str, end: str, mismatch: Mismatch) -> str:
    """Return the text about an incompatible QoS, with the parameters of this node that help.

    Parameters
    ----------
    topic : full name of the topic.
    end : endpoint of this node: ``"subscription"`` or ``"publisher"``.
    mismatch : incompatible policies, and the nodes that have them.
    """
    policies = mismatch.policies
    whose = f"{topic} ({mismatch.nodes_text})" if mismatch.nodes else topic
    text = f"{whose} {_VERBS[end]} ({', '.join(policies)}): change it there"
    if not set(OVERRIDABLE[end]).issuperset(policies):
        return text
    names = [f"qos_overrides.{topic}.{end}.{policy.lower()}" for policy in policies]
    return f"{text}, or by {' and '.join(names)}"


def of_matrix(
    validity: Validity, reasons: Reason, text: str, rows: int, seen: Examination | None
) -> Entry:
    """Return the entry of the latest matrix.

    Parameters
    ----------
    validity, reasons : fields of the matrix.
    text : the last warning, in words; empty for none.
    rows : number of rows of the matrix.
    seen : examination of the matrix; None without a matrix.
    """
    level, message = _OF_VALIDITY[validity], text
    if validity is not Validity.OK and not message:
        message = names_of(reasons)
    values = {"validity": validity.name, "reasons": names_of(reasons), "rows": str(rows)}
    if seen is not None:
        values |= {
            "conditioning": seen.conditioning.name,
            "condition": _number(seen.condition),
            "largest eigenvalue [1/kg]": _number(seen.largest),
            "smallest eigenvalue [1/kg]": _number(seen.smallest),
            "rank": f"{seen.rank} of at most {seen.structural_rank}",
            "damping": seen.damping_mode.name.lower(),
            "damping amount [1/kg]": _number(seen.damping),
        }
        if seen.conditioning >= Conditioning.WEAK:
            level = max(level, Level.WARN)
            message = message or (
                f"the matrix is {seen.conditioning.name}: condition {_number(seen.condition)}, "
                f"rank {seen.rank} of at most {seen.structural_rank}"
            )
        if seen.damping and not message:
            message = f"valid, with damping of {_number(seen.damping)} 1/kg"
    return Entry("matrix", level, message or "valid", values)


def of_dynamics(validity: Validity, reasons: Reason, text: str) -> Entry:
    """Return the entry of the secondary outputs; see :func:`of_matrix`."""
    words = text or ("valid" if validity is Validity.OK else names_of(reasons))
    values = {"validity": validity.name, "reasons": names_of(reasons)}
    return Entry("dynamics", _OF_VALIDITY[validity], words, values)


def of_timing(
    timing: Timing, rate: float, overruns: int, missed: int, realtime: Iterable[Outcome]
) -> Entry:
    """Return the entry of the timing.

    Parameters
    ----------
    timing : measurements since activation.
    rate : matrices per second since the last entry [1/s].
    overruns, missed : number of ticks beyond the deadline and of missed instants since the last
        entry.
    realtime : outcomes of the requests for real-time use.
    """
    refused = [outcome.text for outcome in realtime if not outcome.done]
    warnings = []
    if overruns:
        warnings.append(
            f"{overruns} overruns of the deadline of {_number(1e3 * timing.deadline)} ms"
        )
    if missed:
        warnings.append(f"{missed} instants left out")
    warnings += refused
    values = {
        "rate [1/s]": _number(rate),
        **_of_times("latency", timing.latency),
        **_of_times("jitter", timing.jitter),
        "ticks": str(timing.ticks),
        "overruns": str(timing.overruns),
        "real-time": "; ".join(outcome.text for outcome in realtime) or "nothing asked for",
    }
    level = Level.WARN if warnings else Level.OK
    return Entry("timing", level, "; ".join(warnings) or "in time", values)


def of_algorithm(
    active: str, configured: str, wanted: str, building: bool, awaited: str, failure: str
) -> Entry:
    """Return the entry of the algorithm.

    Parameters
    ----------
    active : name of the algorithm in use, which may be a fallback.
    configured : name of the algorithm that was adopted last.
    wanted : name in the parameter.
    building : whether the kernel of the wanted algorithm is being built.
    awaited : event with which the wanted algorithm is built, if it is not being built.
    failure : why the last change failed; empty for no failure.
    """
    values = {"algorithm": active, "wanted": wanted}
    if failure:
        return Entry("algorithm", Level.WARN, f"{active} goes on: {failure}", values)
    level, text = Level.OK, active
    if active != configured:
        level, text = Level.WARN, f"{active} stands in for {configured}"
    if building:
        text += f"; {wanted} is being built"
    elif wanted != configured:
        text += f"; {wanted} comes with {awaited}"
    return Entry("algorithm", level, text, values)


def names_of(reasons: Reason) -> str:
    """Return e.g. ``JOINT_MISSING + STAMP_INVALID``; ``none`` for no reason."""
    names = [reason.name for reason in Reason if reason and reason in reasons]
    return " + ".join(name for name in names if name) or "none"


def to_message(entries: Iterable[Entry], stamp: Any, node: str, robot: str) -> DiagnosticArray:
    """Return a diagnostic_msgs/DiagnosticArray.

    Parameters
    ----------
    entries : lines of the message.
    stamp : builtin_interfaces/Time of the node's clock.
    node : full name of the node; without its slash it is the prefix of all names.
    robot : name of the robot, as hardware_id.
    """
    message = DiagnosticArray()
    message.header.stamp = stamp
    message.status = [
        DiagnosticStatus(
            level=bytes([entry.level]),
            name=f"{node.removeprefix('/')}: {entry.name}",
            message=entry.message,
            hardware_id=robot,
            values=[KeyValue(key=key, value=value) for key, value in entry.values.items()],
        )
        for entry in entries
    ]
    return message


def _of_times(name: str, times: Times) -> dict[str, str]:
    p50, p99 = times.quantiles(0.5, 0.99)
    return {
        f"{name} p50 [ms]": _number(1e3 * p50),
        f"{name} p99 [ms]": _number(1e3 * p99),
        f"{name} max [ms]": _number(1e3 * times.largest),
    }


def _number(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.4g}"


_QOS = QoSProfile(depth=10)


class Report:
    """Publishes ``/diagnostics``, with times by the node's clock.

    Parameters
    ----------
    node : the node that reports.
    period : steady time between two reports [s]; 0 for no reports.
    entries : returns the entries and the name of the robot.
    """

    def __init__(
        self,
        node: LifecycleNode,
        period: float,
        entries: Callable[[], tuple[list[Entry], str]],
    ) -> None:
        self._node = node
        self._entries = entries
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", _QOS)
        self._timer: Any = None
        self.set_period(period)

    def set_period(self, period: float) -> None:
        """Report at another period from now on [s]; 0 for no reports."""
        self._end_timer()
        if period > 0:
            self._timer = self._node.create_timer(period, self._report, clock=steady())

    def close(self) -> None:
        """End the reports."""
        self._end_timer()
        self._node.destroy_publisher(self._publisher)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None

    def _report(self) -> None:
        if self._timer is None:
            # The event was in the executor's queue when the timer ended.
            return
        entries, robot = self._entries()
        stamp = self._node.get_clock().now().to_msg()
        message = to_message(entries, stamp, self._node.get_fully_qualified_name(), robot)
        try:
            self._publisher.publish(message)
        except RuntimeError:
            # A signal may shut ROS down at any time; the message is then not needed.
            if self._node.context.ok():
                raise


class Account:
    """Diagnostic entries of a configured node.

    Parameters
    ----------
    node : the node.
    mismatches : endpoints with an incompatible QoS.
    stream : inputs and timing.
    outputs : publishers.
    description : change of the robot description.
    """

    def __init__(
        self,
        node: LifecycleNode,
        mismatches: Mismatches,
        stream: Stream,
        outputs: Outputs,
        description: DescriptionChange,
    ) -> None:
        self._node = node
        self._mismatches = mismatches
        self._stream = stream
        self._outputs = outputs
        self._description = description
        self.restart()

    def restart(self) -> None:
        """Reset the counts at activation, as the stream does with its counts."""
        self._overruns = self._missed = 0

    def entries(self, computation: Computation, change: AlgorithmChange) -> list[Entry]:
        """Return the present entries."""
        found: list[Entry] = []
        if self._stream.active:
            found += self._of_inputs(computation)
            last = computation.pipeline.last
            found.append(
                of_matrix(last.validity, last.reasons, last.text, last.rows, last.examination)
            )
            secondary = computation.pipeline.secondary_state
            if secondary is not None:
                found.append(of_dynamics(*secondary))
            found.append(self._of_timing())
        else:
            found.append(Entry("matrix", Level.OK, "the node is not active"))
        found += [
            of_algorithm(
                computation.pipeline.algorithm,
                change.configured,
                spelling(self._node.get_parameter("algorithm").value),
                change.building,
                "the robot that is being built" if self._description.building else "activation",
                change.failure,
            ),
            self._of_robot(computation),
            self._of_outputs(),
        ]
        return found

    def _of_inputs(self, computation: Computation) -> Iterator[Entry]:
        pipeline, stream = computation.pipeline, self._stream
        for name, health in pipeline.healths().items():
            subscription = stream.subscriptions.get(name)
            if subscription is not None:
                topic = subscription.topic_name
                yield of_input(
                    replace(
                        health,
                        topic=topic,
                        publishers=self._node.count_publishers(topic),
                        incompatible=self._mismatches.at(topic),
                    )
                )

    def _of_timing(self) -> Entry:
        stream, timing = self._stream, self._stream.timing
        overruns, missed = timing.overruns - self._overruns, stream.missed - self._missed
        self._overruns, self._missed = timing.overruns, stream.missed
        rate = timing.rate(perf_counter())
        return of_timing(timing, rate, overruns, missed, stream.realtime)

    def _of_robot(self, computation: Computation) -> Entry:
        robot, change = computation.problem.robot.name, self._description
        if change.failure:
            text = f"{robot} goes on, the new description is refused: {change.failure}"
            return Entry("robot", Level.WARN, text)
        text = f"{robot}; another one is being built" if change.building else robot
        return Entry("robot", Level.OK, text)

    def _of_outputs(self) -> Entry:
        outputs = self._outputs
        warnings = [
            f"a subscriber of {qos_mismatch(topic, 'publisher', mismatch)}"
            for topic in outputs.topics
            if (mismatch := self._mismatches.at(topic)) is not None
        ]
        values = {"topic": outputs.topic}
        level = Level.WARN if warnings else Level.OK
        others = self._others(outputs.topic)
        if others:
            level = Level.ERROR
            warnings.insert(
                0,
                f"{listed('node', others)} publishes on {outputs.topic}, too: readers cannot tell "
                "whose matrices they get; end it, or remap one of the two",
            )
        return Entry("output", level, "; ".join(warnings) or "offered", values)

    def _others(self, topic: str) -> list[str]:
        """Return the full names of further nodes that publish on a topic of this node."""
        node = self._node
        if node.count_publishers(topic) <= 1:
            return []
        found = [
            f"{end.node_namespace.rstrip('/')}/{end.node_name}"
            for end in node.get_publishers_info_by_topic(topic)
        ]
        # One entry is this node; a second node may have the same name.
        if node.get_fully_qualified_name() in found:
            found.remove(node.get_fully_qualified_name())
        return sorted(found)
