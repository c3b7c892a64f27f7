"""Diagnostics of the node: entries with a level, a text and numbers.

Entries are separate where the remedies are: inputs, matrix, timing, algorithm, robot, output.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from time import perf_counter

from rclpy.lifecycle import LifecycleNode

from delassus.algorithms import spelling
from delassus.conditioning.monitor import Conditioning, Examination
from delassus.errors import listed
from delassus_ros.inputs.findings import Findings, Validity, names_of
from delassus_ros.node.change import Change
from delassus_ros.node.computation import Computation
from delassus_ros.node.refusals import ALGORITHM, DESCRIPTION
from delassus_ros.node.tick import MATRIX
from delassus_ros.ros.diagnostics import Entry, entries_of_inputs, number, qos_mismatch
from delassus_ros.ros.health import Level
from delassus_ros.ros.publishers import Publishers
from delassus_ros.ros.qos import Mismatches
from delassus_ros.ros.realtime import Outcome
from delassus_ros.ros.stream import Stream
from delassus_ros.ros.timing import Times, Timing


def _of_findings(name: str, findings: Findings) -> Entry:
    """Return the entry of a message with these findings; without a text if it is valid."""
    validity, reasons = findings.validity, names_of(findings.reasons)
    text = findings.text or ("" if validity is Validity.OK else reasons)
    return Entry(name, validity.level, text, {"validity": validity.name, "reasons": reasons})


def of_matrix(findings: Findings, rows: int, seen: Examination | None) -> Entry:
    """Return the entry of the latest matrix.

    Parameters
    ----------
    seen : examination of the matrix; None without a matrix.
    """
    entry = _of_findings("matrix", findings)
    level, message, values = entry.level, entry.message, {**entry.values, "rows": str(rows)}
    if seen is not None:
        values |= {
            "conditioning": seen.conditioning.name,
            "condition": number(seen.condition),
            "largest eigenvalue [1/kg]": number(seen.largest),
            "smallest eigenvalue [1/kg]": number(seen.smallest),
            "rank": f"{seen.rank} of at most {seen.structural_rank}",
            "damping": seen.damping_mode.name.lower(),
            "damping amount [1/kg]": number(seen.damping),
        }
        if seen.conditioning >= Conditioning.WEAK:
            level = max(level, Level.WARN)
            message = message or (
                f"the matrix is {seen.conditioning.name}: condition {number(seen.condition)}, "
                f"rank {seen.rank} of at most {seen.structural_rank}"
            )
        if seen.damping and not message:
            message = f"valid, with damping of {number(seen.damping)} 1/kg"
    return Entry("matrix", level, message or "valid", values)


def of_dynamics(findings: Findings) -> Entry:
    """Return the entry of the secondary outputs."""
    entry = _of_findings("dynamics", findings)
    return replace(entry, message=entry.message or "valid")


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
    """
    refused = [outcome.text for outcome in realtime if not outcome.done]
    warnings = []
    if overruns:
        warnings.append(
            f"{overruns} overruns of the deadline of {number(1e3 * timing.deadline)} ms"
        )
    if missed:
        warnings.append(f"{missed} instants left out")
    warnings += refused
    values = {
        "rate [1/s]": number(rate),
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


def _of_times(name: str, times: Times) -> dict[str, str]:
    p50, p99 = times.quantiles(0.5, 0.99)
    return {
        f"{name} p50 [ms]": number(1e3 * p50),
        f"{name} p99 [ms]": number(1e3 * p99),
        f"{name} max [ms]": number(1e3 * times.largest),
    }


class DiagnosticEntries:
    """Diagnostic entries of a configured node."""

    def __init__(
        self,
        node: LifecycleNode,
        mismatches: Mismatches,
        stream: Stream,
        publishers: Publishers,
        change: Change,
    ) -> None:
        self._node = node
        self._mismatches = mismatches
        self._stream = stream
        self._publishers = publishers
        self._change = change
        self.restart()

    def restart(self) -> None:
        """Reset the counts at activation, as the stream does with its counts."""
        self._overruns = self._missed = 0

    def entries(self, computation: Computation) -> list[Entry]:
        """Return the present entries."""
        change = self._change
        found: list[Entry] = []
        if self._stream.active:
            healths = computation.tick.healths()
            found += entries_of_inputs(
                self._node, healths, self._stream.subscriptions, self._mismatches
            )
            last = computation.tick.last
            found.append(of_matrix(last, last.rows, last.examination))
            dynamics = computation.tick.dynamics
            if dynamics is not None:
                found.append(of_dynamics(dynamics))
            found.append(self._of_timing())
        else:
            found.append(Entry("matrix", Level.OK, "the node is not active"))
        found += [
            of_algorithm(
                computation.tick.algorithm,
                computation.solver.algorithm,
                spelling(self._node.get_parameter(ALGORITHM).value),
                change.building is not None and not change.builds_robot,
                "the robot that is being built" if change.builds_robot else "activation",
                change.failures.get(ALGORITHM, ""),
            ),
            self._of_robot(computation),
            self._of_outputs(),
        ]
        return found

    def _of_timing(self) -> Entry:
        stream, timing = self._stream, self._stream.timing
        overruns, missed = timing.overruns - self._overruns, stream.missed - self._missed
        self._overruns, self._missed = timing.overruns, stream.missed
        rate = timing.rate(perf_counter())
        return of_timing(timing, rate, overruns, missed, stream.realtime)

    def _of_robot(self, computation: Computation) -> Entry:
        robot, failure = computation.problem.robot.name, self._change.failures.get(DESCRIPTION)
        if failure is not None:
            text = f"{robot} goes on, the new description is refused: {failure}"
            return Entry("robot", Level.WARN, text)
        text = f"{robot}; another one is being built" if self._change.builds_robot else robot
        return Entry("robot", Level.OK, text)

    def _of_outputs(self) -> Entry:
        publishers, topic = self._publishers, self._publishers.topics[MATRIX]
        warnings = [
            f"a subscriber of {qos_mismatch(topic, 'publisher', mismatch)}"
            for topic in publishers.topics.values()
            if (mismatch := self._mismatches.at(topic)) is not None
        ]
        values = {"topic": topic}
        level = Level.WARN if warnings else Level.OK
        others = self._further_publishers(topic)
        if others:
            level = Level.ERROR
            warnings.insert(
                0,
                f"{listed('node', others)} publishes on {topic}, too: readers cannot "
                "tell whose matrices they get; end it, or remap one of the two",
            )
        return Entry("output", level, "; ".join(warnings) or "offered", values)

    def _further_publishers(self, topic: str) -> list[str]:
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
