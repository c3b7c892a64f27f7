"""What the node tells an operator about itself, in words and numbers.

One entry for each thing that may go wrong, by what is to be done about it: its inputs, the
matrix, the timing, the algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from delassus_ros.conditioning import Conditioning, Examination
from delassus_ros.node.histogram import Histogram
from delassus_ros.node.joint_names import listed
from delassus_ros.node.outcome import Outcome
from delassus_ros.node.reasons import Reason
from delassus_ros.node.timing import Timing


class Level(IntEnum):
    """How bad it is; the values of ``diagnostic_msgs/DiagnosticStatus``."""

    OK = 0
    WARN = 1
    ERROR = 2
    STALE = 3


class Validity(IntEnum):
    """The values of ``DelassusMatrix.validity``."""

    INVALID = 0
    DEGRADED = 1
    OK = 2


_OF_VALIDITY = {
    Validity.OK: Level.OK, Validity.DEGRADED: Level.WARN, Validity.INVALID: Level.ERROR
}  # fmt: skip


OVERRIDABLE: Mapping[str, Sequence[str]] = {
    "subscription": ("RELIABILITY", "DURABILITY"), "publisher": ("RELIABILITY", "DEADLINE")
}  # fmt: skip
"""QoS policies that may not match, and that parameters of the node override, by kind of end."""


_VERBS = {
    "subscription": "offers an incompatible QoS", "publisher": "requests an incompatible QoS"
}  # fmt: skip
"""What others do, by kind of the node's own end."""


@dataclass(frozen=True)
class Entry:
    """One line of diagnostics.

    Attributes
    ----------
    name : what it is about.
    level : how bad it is.
    message : the same in a few words.
    values : numbers and names by what they are, as text.
    """

    name: str
    level: Level
    message: str
    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Mismatch:
    """Others at a topic that do not match.

    Attributes
    ----------
    policies : by which QoS policies.
    nodes : full names of the nodes they belong to, sorted; empty while none is known.
    """

    policies: Sequence[str]
    nodes: Sequence[str] = ()

    @property
    def nodes_text(self) -> str:
        """Return the nodes in words; ``one`` if none is known."""
        return listed("node", self.nodes) if self.nodes else "one"


@dataclass(frozen=True)
class InputHealth:
    """What is known of an input topic.

    Attributes
    ----------
    name : what it brings, e.g. ``"joint states"``.
    topic : its full name.
    publishers : how many there are.
    age : age of the latest input [s]; NaN if there is none or no time yet.
    silence : time since anything came, whether it was of use or not [s]; NaN likewise.
    timeout : age and silence above which it is too old [s].
    received : whether anything has come since the node was activated.
    complaint : what was wrong with the latest input, in words; empty if nothing was.
    incompatible : publishers that there are and that do not match; None if all do.
    counts : further numbers, by what they count.
    """

    name: str
    topic: str
    publishers: int
    age: float
    silence: float
    timeout: float
    received: bool
    complaint: str = ""
    incompatible: Mismatch | None = None
    counts: Mapping[str, int] = field(default_factory=dict)


def of_input(health: InputHealth) -> Entry:
    """Return the entry of an input: whether anything comes, and what is wrong with it."""
    topic = health.topic
    causes = [health.complaint] if health.complaint else []
    if health.incompatible:
        causes.append(f"a publisher of {qos_mismatch(topic, 'subscription', health.incompatible)}")
    state = ""
    if not health.received:
        level = Level.ERROR if health.incompatible else Level.STALE
        state = (
            f"nothing{' of use' if health.complaint else ''} has come on {topic}, whose "
            f"publishers are {health.publishers}"
            if health.publishers
            else f"nobody publishes {topic}"
        )
    elif health.silence > health.timeout:
        level = Level.STALE
        state = (
            f"the latest came {_number(health.silence)} s ago (publishers: {health.publishers})"
        )
    elif health.age > health.timeout:
        level = Level.STALE
        if not health.complaint:
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
    """Return what does not match at a topic, and where to change it: here, only if that helps.

    Parameters
    ----------
    topic : its full name.
    end : what this node has there: ``"subscription"`` or ``"publisher"``.
    mismatch : with whom and by what.
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
    validity, reasons : as published.
    text : the last complaint, in words; empty if there was none.
    rows : rows of the matrix.
    seen : its examination, or None if there was no matrix to examine.
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
            "eigenvalues": "exact" if seen.exact else "estimated",
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


def of_timing(
    timing: Timing, rate: float, overruns: int, missed: int, realtime: Iterable[Outcome]
) -> Entry:
    """Return the entry of the timing.

    Parameters
    ----------
    timing : what was measured since activation.
    rate : matrices per second since the last entry [1/s].
    overruns, missed : ticks beyond the deadline and instants left out since the last entry.
    realtime : what became of the requests for real-time use.
    """
    refused = [outcome.text for outcome in realtime if not outcome.done]
    complaints = []
    if overruns:
        complaints.append(
            f"{overruns} overruns of the deadline of {_number(1e3 * timing.deadline)} ms"
        )
    if missed:
        complaints.append(f"{missed} instants left out")
    complaints += refused
    values = {
        "rate [1/s]": _number(rate),
        **_of_histogram("latency", timing.latency),
        **_of_histogram("jitter", timing.jitter),
        "ticks": str(timing.ticks),
        "overruns": str(timing.overruns),
        "real-time": "; ".join(outcome.text for outcome in realtime) or "nothing asked for",
    }
    level = Level.WARN if complaints else Level.OK
    return Entry("timing", level, "; ".join(complaints) or "in time", values)


def of_algorithm(
    active: str, configured: str, wanted: str, building: bool, awaited: str, failure: str
) -> Entry:
    """Return the entry of the algorithm.

    Parameters
    ----------
    active : name of the algorithm that computes.
    configured : name of the one that is to compute; another one stands in for it.
    wanted : name that the parameter asks for.
    building : its kernel is being built.
    awaited : what it comes with, if it is not.
    failure : why the last change failed; empty if it did not.
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


def to_message(entries: Iterable[Entry], stamp: Any, node: str, robot: str) -> Any:
    """Return a diagnostic_msgs/DiagnosticArray.

    Parameters
    ----------
    entries : its lines.
    stamp : builtin_interfaces/Time of the node's clock.
    node : full name of the node, which begins the name of each line, without its slash.
    robot : name of the robot, as hardware_id.
    """
    # Here, so that everything else is usable without ROS.
    from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

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


def _of_histogram(name: str, times: Histogram) -> dict[str, str]:
    return {
        f"{name} p50 [ms]": _number(1e3 * times.quantile(0.5)),
        f"{name} p99 [ms]": _number(1e3 * times.quantile(0.99)),
        f"{name} max [ms]": _number(1e3 * times.largest),
    }


def _number(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.4g}"
