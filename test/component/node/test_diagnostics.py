"""What the node tells an operator."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from delassus.conditioning.monitor import Conditioning, Damping, Examination
from delassus_ros.inputs.findings import Findings, Reason, Validity, names_of
from delassus_ros.node.diagnostics import of_algorithm, of_matrix, of_timing
from delassus_ros.ros.diagnostics import Entry, of_input, qos_mismatch, to_message
from delassus_ros.ros.health import InputHealth, Level, Mismatch
from delassus_ros.ros.realtime import Outcome
from delassus_ros.ros.timing import Timing

HEALTHY = InputHealth(
    "joint states", "/joint_states", publishers=1, age=0.002, silence=0.001, timeout=0.5,
    received=True, counts={"superseded": 3},
)  # fmt: skip
SEEN = Examination(
    Conditioning.OK, 12, 12, 10.0, 0.5, 20.0, np.zeros((12, 12)), Damping.NONE, 0.0
)


@pytest.mark.parametrize(
    ("change", "level", "words"),
    [
        ({}, Level.OK, "in time"),
        ({"warning": "lacks joint 'a'"}, Level.WARN, "lacks joint 'a'"),
        ({"age": 0.7}, Level.STALE, "the latest is 0.7 s old (publishers: 1)"),
        ({"age": 0.7, "warning": "0.7 s old"}, Level.STALE, "0.7 s old"),
        ({"silence": 12.34}, Level.STALE, "the latest came 12.34 s ago (publishers: 1)"),
        (
            {"silence": 3.0, "warning": "'LF' twice", "incompatible": Mismatch(["DEADLINE"])},
            Level.STALE,
            "the latest came 3 s ago (publishers: 1): 'LF' twice; a publisher of /joint_states "
            "offers an incompatible QoS (DEADLINE): change it there",
        ),
        (
            {"received": False, "warning": "the joint states have 'x'"},
            Level.STALE,
            "nothing of use has come on /joint_states, whose publishers are 1: the joint states "
            "have 'x'",
        ),
        ({"received": False, "publishers": 0}, Level.STALE, "no node publishes /joint_states"),
        (
            {"received": False, "publishers": 2},
            Level.STALE,
            "nothing has come on /joint_states, whose publishers are 2",
        ),
        (
            {"received": False, "incompatible": Mismatch(["RELIABILITY"], ["/a", "/b/c"])},
            Level.ERROR,
            "nothing has come on /joint_states, whose publishers are 1: a publisher of "
            "/joint_states (nodes '/a', '/b/c') offers an incompatible QoS (RELIABILITY): change "
            "it there, or by "
            "qos_overrides./joint_states.subscription.reliability",
        ),
        (
            {"incompatible": Mismatch(["LIVELINESS"])},
            Level.WARN,
            "a publisher of /joint_states offers an incompatible QoS (LIVELINESS): change it "
            "there",
        ),
        ({"age": math.nan, "silence": math.nan}, Level.OK, "in time"),
    ],
)
def test_inputs(change, level, words) -> None:
    entry = of_input(replace(HEALTHY, **change))
    assert (entry.name, entry.level) == ("joint states", level)
    assert entry.message == words
    assert entry.values["superseded"] == "3"
    assert entry.values["age [s]"] == (
        "unknown" if "age" in change and math.isnan(change["age"]) else
        f"{change.get('age', 0.002):g}"
    )  # fmt: skip


def test_parameters_are_advised_only_where_they_help() -> None:
    both = qos_mismatch("/a", "publisher", Mismatch(["RELIABILITY", "DEADLINE"]))
    assert both == (
        "/a requests an incompatible QoS (RELIABILITY, DEADLINE): change it there, or by "
        "qos_overrides./a.publisher.reliability and qos_overrides./a.publisher.deadline"
    )
    other = qos_mismatch("/a", "publisher", Mismatch(["RELIABILITY", "DURABILITY"], ["/b"]))
    assert other == (
        "/a (node '/b') requests an incompatible QoS (RELIABILITY, DURABILITY): change it there"
    )


def found(validity: Validity, reasons: Reason, text: str = "") -> Findings:
    findings = Findings()
    findings.add(reasons, text, validity)
    return findings


def test_valid_matrix() -> None:
    entry = of_matrix(found(Validity.OK, Reason.NONE), 12, SEEN)
    assert (entry.level, entry.message) == (Level.OK, "valid")
    assert entry.values["rank"] == "12 of at most 12"
    assert entry.values["condition"] == "20"
    assert entry.values["reasons"] == "none"


def test_weak_matrix_is_a_warning() -> None:
    weak = replace(SEEN, conditioning=Conditioning.SINGULAR, rank=11, condition=math.inf)
    entry = of_matrix(found(Validity.OK, Reason.NONE), 12, weak)
    assert entry.level is Level.WARN
    assert entry.message == "the matrix is SINGULAR: condition inf, rank 11 of at most 12"


def test_damping_is_said() -> None:
    damped = replace(SEEN, damping_mode=Damping.SELECTIVE, damping=0.01)
    entry = of_matrix(found(Validity.OK, Reason.DAMPED), 12, damped)
    assert (entry.level, entry.message) == (Level.OK, "valid, with damping of 0.01 1/kg")
    assert entry.values["damping"] == "selective"


@pytest.mark.parametrize(
    ("validity", "level"), [(Validity.DEGRADED, Level.WARN), (Validity.INVALID, Level.ERROR)]
)
def test_trouble_is_said_in_words_or_by_name(validity, level) -> None:
    reasons = Reason.JOINT_MISSING | Reason.STAMP_INVALID
    entry = of_matrix(found(validity, reasons), 0, None)
    assert (entry.level, entry.message) == (level, "JOINT_MISSING + STAMP_INVALID")
    findings = found(validity, reasons, "lacks joint 'a'")
    assert of_matrix(findings, 0, None).message == "lacks joint 'a'"


def test_timing() -> None:
    timing = Timing(deadline=1e-3, period=0.001)
    for i in range(100):
        timing.begin(i * 1e-3, i * 1e-3)
        timing.end(i * 1e-3 + 2e-4)
    done = Outcome(True, "all memory is locked into RAM")
    entry = of_timing(timing, 1000.0, 0, 0, [done])
    assert (entry.level, entry.message) == (Level.OK, "in time")
    assert float(entry.values["latency p99 [ms]"]) == pytest.approx(0.2, rel=0.03)
    assert entry.values["rate [1/s]"] == "1000"
    assert entry.values["real-time"] == done.text
    entry = of_timing(timing, 900.0, 7, 2, [Outcome(False, "no real-time priority 5"), done])
    assert entry.level is Level.WARN
    assert entry.message == (
        "7 overruns of the deadline of 1 ms; 2 instants left out; no real-time priority 5"
    )


def test_nothing_measured_yet() -> None:
    entry = of_timing(Timing(), math.nan, 0, 0, [])
    assert entry.values["latency p50 [ms]"] == "unknown"
    assert entry.values["real-time"] == "nothing asked for"


@pytest.mark.parametrize(
    ("arguments", "level", "words"),
    [
        (("efpa", "efpa", "efpa", False, "x", ""), Level.OK, "efpa"),
        (("efpa", "efpa", "dense", True, "x", ""), Level.OK, "efpa; dense is being built"),
        (("efpa", "efpa", "dense", False, "x", ""), Level.OK, "efpa; dense comes with x"),
        (("dense", "efpa", "efpa", False, "x", ""), Level.WARN, "dense stands in for efpa"),
        (
            ("dense", "efpa", "ltl", True, "x", ""),
            Level.WARN,
            "dense stands in for efpa; ltl is being built",
        ),
        (
            ("dense", "efpa", "dense", False, "x", ""),
            Level.WARN,
            "dense stands in for efpa; dense comes with x",
        ),
        (("efpa", "efpa", "efpa", False, "x", "no room"), Level.WARN, "efpa goes on: no room"),
    ],
)
def test_algorithm(arguments, level, words) -> None:
    entry = of_algorithm(*arguments)
    assert (entry.level, entry.message) == (level, words)


def test_names_of_reasons_are_those_of_the_message() -> None:
    import delassus_msgs.msg as messages
    assert names_of(Reason.NONE) == "none"
    for reason in Reason:
        if reason:
            assert names_of(reason) == reason.name
            kinds = messages.DelassusMatrix, messages.ContactDynamics, messages.Estimate
            name = f"REASON_{reason.name}"
            (kind,) = (kind for kind in kinds if hasattr(kind, name))
            assert getattr(kind, name) == reason
    for validity in Validity:
        assert getattr(messages.DelassusMatrix, f"VALIDITY_{validity.name}") == validity


def test_message() -> None:
    import builtin_interfaces.msg as time
    import diagnostic_msgs.msg as messages
    entries = [of_input(HEALTHY), Entry("matrix", Level.ERROR, "no")]
    message = to_message(entries, time.Time(sec=5), "/left/delassus_node", "quadruped")
    assert message.header.stamp.sec == 5
    assert [status.name for status in message.status] == [
        "left/delassus_node: joint states",
        "left/delassus_node: matrix",
    ]
    assert [status.level for status in message.status] == [
        messages.DiagnosticStatus.OK,
        messages.DiagnosticStatus.ERROR,
    ]
    assert {status.hardware_id for status in message.status} == {"quadruped"}
    pairs = {pair.key: pair.value for pair in message.status[0].values}
    assert pairs == dict(entries[0].values)
    for level in Level:
        assert getattr(messages.DiagnosticStatus, level.name) == bytes([level])
