"""The comparison of two nodes: its books, and the node that keeps them."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import ReceivedMatrix
from processes import Program, python
from received_matrices import received_matrix

from delassus.recent import Recent
from delassus_ros.monitor.pairing import Instants
from delassus_ros.monitor.pairs import Pairs

MATRIX = np.array([[2.0, 0.3, 0.1], [0.3, 3.0, 0.2], [0.1, 0.2, 4.0]])


def answer(stamp: int, scale: float = 1.0, contacts_stamp: int = 5) -> ReceivedMatrix:
    return received_matrix(
        stamp, ("LF",), (0, 3), scale * MATRIX, contacts_stamp=contacts_stamp, algorithm="dense",
        compute_time=1e-5,
    )  # fmt: skip


def invalid(stamp: int, contacts_stamp: int = 5) -> ReceivedMatrix:
    nothing = DelassusMatrix.VALIDITY_INVALID
    return received_matrix(stamp, contacts_stamp=contacts_stamp, validity=nothing)


# --- what has one stamp -----------------------------------------------------------------------


def test_a_further_entry_drops_the_oldest() -> None:
    recent: Recent[str, int] = Recent(2)
    assert recent.put("a", 1) is recent.put("b", 2) is recent.put("a", 3) is None
    assert recent.put("c", 4) == ("a", 3)
    assert recent == {"b": 2, "c": 4}


def test_parts_of_a_stamp_come_together_in_any_order() -> None:
    instants: Instants[str, int] = Instants(("a", "b"), 500)
    assert instants.add(1, "a", 1) is None
    assert instants.add(2, "b", 4) is None
    assert instants.add(1, "b", 2) == {"a": 1, "b": 2}
    assert instants.add(2, "a", 3) == {"a": 3, "b": 4}
    assert instants.incomplete == 0


def test_a_complete_stamp_gives_up_older_ones() -> None:
    instants: Instants[str, int] = Instants(("a", "b", "c"), 500)
    for part in ("a", "b"):
        instants.add(1, part, 0)
    instants.add(3, "a", 0)
    assert not any(instants.add(2, part, 0) for part in ("a", "b"))
    assert (instants.waiting("a"), instants.waiting("b"), instants.waiting("c")) == (3, 2, 0)
    assert instants.add(2, "c", 5) == {"a": 0, "b": 0, "c": 5}
    assert (instants.incomplete, instants.missed) == (1, {"a": 1, "b": 1})
    assert instants.waiting("a") == 1


def test_the_oldest_of_too_many_incomplete_stamps_is_given_up() -> None:
    instants: Instants[str, int] = Instants(("a", "b"), 500)
    for stamp in range(2000):
        assert instants.add(stamp, "a", stamp) is None
    assert (instants.incomplete, instants.missed) == (1500, {"a": 1500})
    assert instants.waiting("a") == 500
    assert instants.add(1999, "b", 0) == {"a": 1999, "b": 0}


# --- the books --------------------------------------------------------------------------------


def test_equal_matrices_agree_in_either_order() -> None:
    pairs = Pairs()
    assert pairs.add(0, answer(1)) is None
    assert pairs.add(1, answer(1)) == 0.0
    assert pairs.add(1, answer(2, 1.0 + 1e-12)) is None
    assert pairs.add(0, answer(2)) == pytest.approx(1e-12, rel=1e-3)
    assert (pairs.compared, pairs.disagreed, pairs.faults()) == (2, 0, [])
    assert pairs.compute_time(0) == pairs.compute_time(1) == 1e-5
    assert "dense (10.0 µs) and dense (10.0 µs): 2 pairs, 0 disagree" in pairs.words()


@pytest.mark.parametrize("scale", [1.0 + 1e-8, math.nan])
def test_disagreement_is_counted_and_named(scale: float) -> None:
    pairs = Pairs()
    for stamp in (1, 2):
        pairs.add(0, answer(stamp))
    pairs.add(1, answer(1, scale))
    pairs.add(1, answer(2))
    assert (pairs.compared, pairs.disagreed) == (2, 1)
    assert "1 of 2 pairs disagree (tolerance 1e-09, worst " in pairs.faults()[0]
    assert pairs.faults()[1].startswith("first: stamp 1: contacts LF, relative error ")


def test_a_tolerance_of_its_own() -> None:
    pairs = Pairs(tolerance=1e-6)
    pairs.add(0, answer(1))
    pairs.add(1, answer(1, 1.0 + 1e-8))
    assert pairs.faults() == []


def test_what_is_passed_over_by_one_is_left_alone() -> None:
    pairs = Pairs()
    for stamp in (1, 2, 3):
        pairs.add(0, answer(stamp))
    pairs.add(1, answer(3))
    assert (pairs.compared, pairs.unpaired) == (1, (2, 0))
    assert pairs.faults() == []


def test_waiting_is_bounded() -> None:
    pairs = Pairs()
    for stamp in range(6000):
        pairs.add(1, answer(stamp))
    assert pairs.unpaired == (0, 1000)
    assert pairs.faults() == [
        "no two matrices could be compared; messages left alone: 0 of the first, 6000 of the "
        "second"
    ]


def test_only_one_matrix_is_a_fault_for_the_same_contacts() -> None:
    pairs = Pairs()
    for side, first in enumerate((answer(1), invalid(1))):
        pairs.add(side, first)
    for side in (0, 1):
        pairs.add(side, answer(2))
        pairs.add(side, invalid(3))
    assert pairs.one_sided == 1
    assert pairs.faults()[0] == "1 times only one of the two had a matrix"
    assert pairs.faults()[1] == "first: stamp 1: INVALID from the second, not from the other"


def test_a_change_of_contacts_that_one_heard_first_is_no_fault() -> None:
    pairs = Pairs()
    for stamp, other in ((1, answer(1, contacts_stamp=6)), (2, invalid(2, 0)), (3, answer(3))):
        pairs.add(0, answer(stamp))
        pairs.add(1, other)
    assert (pairs.unlike, pairs.compared, pairs.faults()) == (2, 1, [])


# --- the node ---------------------------------------------------------------------------------


class Talkers:
    """Two publishers of matrices, and a listener to what the node says of them."""

    def __init__(self) -> None:
        from delassus_msgs.msg import DelassusMatrix
        from diagnostic_msgs.msg import DiagnosticArray
        from ros_support import Domain
        from std_msgs.msg import Float64

        self.ros = Domain()
        self.kind = DelassusMatrix
        self.until, peer = self.ros.until, self.ros.peer
        self.outputs = [peer.create_publisher(DelassusMatrix, topic, 10) for topic in ("a", "b")]
        self.errors: list[float] = []
        self.diagnostics: list[Any] = []
        peer.create_subscription(
            Float64, "delassus_compare/relative_error", lambda m: self.errors.append(m.data), 10
        )
        peer.create_subscription(
            DiagnosticArray, "/diagnostics", lambda m: self.diagnostics.extend(m.status), 10
        )

    def message(self, stamp: int, scale: float = 1.0, **fields: Any) -> Any:
        given = {
            "contacts": ["LF"],
            "kinds": ["point"],
            "status": [2],
            "row_offsets": [0, 3],
            "matrix": (scale * MATRIX).ravel().tolist(),
            "validity": self.kind.VALIDITY_OK,
            "algorithm": "dense",
            "compute_time": 2e-5,
        }
        message = self.kind(**{**given, **fields})
        message.header.stamp.sec = stamp
        return message


@pytest.fixture(name="talkers")
def make_talkers() -> Iterator[Talkers]:
    talkers = Talkers()
    with talkers.ros:
        yield talkers


def compare_node(*arguments: str, **options: Any) -> Program:
    return python("-m", "delassus_ros.monitor.compare_node", *arguments, apart=True, **options)


def beside(talkers: Talkers, *arguments: str) -> Program:
    """Run the node beside the talkers."""
    remaps = ("--ros-args", "-r", "first:=a", "-r", "second:=b")
    program = compare_node(*remaps, *arguments, domain=talkers.ros.domain)
    talkers.ros.fault, talkers.ros.report = program.fault, program.report
    return program


@pytest.fixture(name="compare")
def make_compare(talkers: Talkers) -> Iterator[Program]:
    with beside(talkers) as program:
        yield program


def connect(talkers: Talkers, heard: Callable[[], Any] | None = None) -> None:
    """Publish pairs until the first comparison, or what is asked for, comes back.

    Stamps are below 1000.
    """
    stamps = iter(range(1, 1000))
    due = 0.0

    def compared() -> bool:
        nonlocal due
        if time.monotonic() > due:
            due = time.monotonic() + 1.0
            stamp = next(stamps)
            for output in talkers.outputs:
                output.publish(talkers.message(stamp))
        return bool(talkers.errors and (heard is None or heard()))

    talkers.until(compared, "comparison")


def values_of(status: Any) -> dict[str, str]:
    return {item.key: item.value for item in status.values}


def test_node_reports_agreement_then_disagreement(talkers: Talkers, compare: Program) -> None:
    from diagnostic_msgs.msg import DiagnosticStatus

    # Until it says so: where nothing came in between, the next report is of a silence.
    connect(
        talkers,
        lambda: [s for s in talkers.diagnostics if s.level == DiagnosticStatus.OK],
    )
    good = next(s for s in talkers.diagnostics if s.level == DiagnosticStatus.OK)
    assert (good.name, good.message) == ("delassus_compare: agreement", "the two agree")
    values = values_of(good)
    assert values["first algorithm"] == values["second algorithm"] == "dense"
    assert int(values["pairs compared"]) >= 1
    assert values["pairs that disagree"] == "0"
    assert float(values["second compute time [s]"]) == 2e-5

    talkers.outputs[0].publish(talkers.message(2000))
    talkers.outputs[1].publish(talkers.message(2000, 1.001))
    # Pairs of the beginning may still come.
    talkers.until(
        lambda: any(e == pytest.approx(1e-3, rel=1e-6) for e in talkers.errors),
        "error of the pair",
    )
    talkers.until(
        lambda: [s for s in talkers.diagnostics if s.level == DiagnosticStatus.ERROR], "alarm"
    )
    # It is what is wrong now, not what once was: nothing comes any more.
    talkers.until(
        lambda: talkers.diagnostics[-1].level == DiagnosticStatus.STALE, "word of the silence"
    )
    assert compare.stop(signal.SIGINT) == 1, compare.report()
    assert "1 disagree, worst error 1.0e-03" in compare.output
    assert "pairs disagree (tolerance 1e-09, worst 1.0e-03)" in compare.errors
    assert "fault: first: stamp 2000000000000: contacts LF" in compare.errors
    assert "Traceback" not in compare.errors


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_node_ends_well_when_all_agreed(talkers: Talkers, compare: Program, number: int) -> None:
    connect(talkers)
    assert compare.stop(number) == 0, compare.report()
    assert ", 0 disagree, worst error 0.0e+00; 0 one-sided" in compare.output
    assert "Traceback" not in compare.errors


def test_node_names_a_message_that_contradicts_itself(talkers: Talkers, compare: Program) -> None:
    connect(talkers)
    talkers.outputs[0].publish(talkers.message(2000, row_offsets=[0, 4]))
    talkers.outputs[1].publish(talkers.message(2000, validity=77))
    for output in talkers.outputs:
        output.publish(talkers.message(2500, matrix=[math.nan] * 9))
    for output, scale in zip(talkers.outputs, (1.0, 1.0 + 1e-10), strict=True):
        output.publish(talkers.message(3000, scale))
    # The others have no error at all.
    talkers.until(lambda: any(talkers.errors), "pair behind the bad message")
    assert compare.stop(signal.SIGTERM) == 1, compare.report()
    assert "fault: malformed message: " in compare.errors


def test_monitor_takes_a_second_node_as_reference(talkers: Talkers) -> None:
    """By its own name and topics."""
    words = ("-r", "reference:=a", "-r", "delassus:=b", "-r", "__node:=delassus_compare")
    with python(
        "-m", "delassus_ros.monitor.monitor_node", "--ros-args", *words,
        "-p", "reference_source:=node", domain=talkers.ros.domain, apart=True,
    ) as program:  # fmt: skip
        talkers.ros.fault, talkers.ros.report = program.fault, program.report
        connect(talkers)
        talkers.outputs[1].publish(talkers.message(2000, 1.001))
        talkers.outputs[0].publish(talkers.message(2000))
        talkers.until(lambda: max(talkers.errors) > 9e-4, "error of the pair")
        assert program.stop(signal.SIGTERM) == 1, program.report()
        assert "1 disagree, worst error 1.0e-03" in program.output


@pytest.mark.needs("rclpy", "delassus_msgs")
def test_unknown_source_of_references_refused() -> None:
    words = ("--ros-args", "-p", "reference_source:=moon")
    with python("-m", "delassus_ros.monitor.monitor_node", *words) as program:
        assert program.wait() == 1
        assert "unknown reference_source 'moon'" in program.report()


def test_node_that_saw_nothing_fails_and_says_so(talkers: Talkers, compare: Program) -> None:
    talkers.until(lambda: talkers.diagnostics, "report")
    assert compare.stop(signal.SIGTERM) == 1, compare.report()
    assert "fault: no two matrices could be compared" in compare.errors


def test_diagnostics_of_a_namespace_go_where_aggregators_look(talkers: Talkers) -> None:
    with beside(talkers, "-r", "__ns:=/both"):
        talkers.until(lambda: talkers.diagnostics, "report")
        assert talkers.diagnostics[0].name == "both/delassus_compare: agreement"


@pytest.mark.needs("rclpy", "diagnostic_msgs")
def test_help_tells_topics_and_exit_status() -> None:
    with compare_node("--help") as program:
        assert program.wait() == 0
        for word in ("first, second", "/diagnostics", "~/relative_error", "Exit status"):
            assert word in program.output


@pytest.mark.needs("rclpy", "diagnostic_msgs")
def test_bad_tolerance_is_refused_in_one_line() -> None:
    with compare_node("--ros-args", "-p", "tolerance:=-1.0") as program:
        assert program.wait() == 1
        assert "tolerance" in program.errors.splitlines()[-1]
        assert "Traceback" not in program.errors
