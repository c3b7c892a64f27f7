"""The monitor's books: matching by stamp, comparison by name, counts and verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pytest
from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import ReceivedMatrix
from received_matrices import received_matrix

from delassus_ros.monitor.agreement import Agreement
from delassus_ros.monitor.comparison import relative_error

FEET = ("LF", "RF", "LH", "RH")


def matrix_of(contacts: tuple[str, ...], stamp: int, contacts_stamp: int = 0) -> ReceivedMatrix:
    """Return a matrix whose entries depend on stamp and contact names, not on their order."""
    rng = np.random.default_rng(stamp)
    root = rng.normal(size=(12, 12))
    whole = root @ root.T
    rows = [3 * FEET.index(name) + k for name in contacts for k in range(3)]
    offsets = tuple(range(0, 3 * len(contacts) + 1, 3))
    matrix = whole[np.ix_(rows, rows)]
    return received_matrix(stamp, contacts, offsets, matrix, contacts_stamp=contacts_stamp)


def with_matrix(sample: ReceivedMatrix, matrix: np.ndarray) -> ReceivedMatrix:
    """Return the sample with another matrix."""
    return replace(sample, matrix=matrix)


def add(books: Agreement, sample: ReceivedMatrix, sequence: int, latency: float) -> None:
    """Add a matrix with a number."""
    books.add(replace(sample, sequence=sequence), latency)


def add_invalid(books: Agreement, stamp: int, sequence: int, reasons: int) -> None:
    """Add a message without a matrix."""
    invalid = DelassusMatrix.VALIDITY_INVALID
    sample = received_matrix(stamp, validity=invalid, sequence=sequence, reasons=reasons)
    books.add(sample, 1e-4)


def kept(references: Iterable[int] = (), answers: Mapping[int, int] | None = None) -> Agreement:
    """Return books with references of these stamps, and then matrices: numbers by stamp."""
    books = Agreement()
    for stamp in references:
        books.add_reference(matrix_of(FEET, stamp))
    answer(books, answers or {})
    return books


def answer(books: Agreement, numbers: Mapping[int, int]) -> None:
    """Add matrices of all feet: sequence numbers by stamp."""
    for stamp, number in numbers.items():
        add(books, matrix_of(FEET, stamp), number, 1e-4)


@pytest.mark.parametrize("contacts", [FEET, ("RH", "LF"), ("RF", "LH", "LF"), ()])
def test_comparison_goes_by_name_not_by_place(contacts: tuple[str, ...]) -> None:
    """Any subset in any order equals its block of the reference."""
    assert relative_error(matrix_of(contacts, 5), matrix_of(FEET, 5)) == 0.0


def test_comparison_sees_swapped_contacts() -> None:
    """Right numbers under the wrong names are an error."""
    right = matrix_of(("LF", "RH"), 5)
    swapped = received_matrix(5, ("RH", "LF"), right.row_offsets, right.matrix)
    assert relative_error(swapped, matrix_of(FEET, 5)) > 0.1


def test_comparison_is_relative_to_the_block() -> None:
    """An error of one part in a million is reported as that."""
    reference, sample = matrix_of(FEET, 5), matrix_of(("LF", "RH"), 5)
    scaled = with_matrix(sample, sample.matrix * (1.0 + 1e-6))
    assert relative_error(scaled, reference) == pytest.approx(1e-6, rel=1e-6)


def test_comparison_with_what_does_not_fit_is_infinite() -> None:
    """Unknown contact, other kind, wrong size; NaN stays NaN."""
    reference, sample = matrix_of(("LF", "RF"), 5), matrix_of(("LF",), 5)
    assert relative_error(matrix_of(("RH",), 5), reference) == math.inf
    assert relative_error(received_matrix(5, ("LF",), (0, 6), np.eye(6)), reference) == math.inf
    assert relative_error(with_matrix(sample, np.eye(2)), reference) == math.inf
    assert math.isnan(relative_error(with_matrix(sample, np.full((3, 3), math.nan)), reference))


@pytest.mark.parametrize("reference_first", [True, False])
def test_matrices_and_references_match_in_either_order(reference_first: bool) -> None:
    """The comparison happens when the second of the two arrives."""
    books = Agreement()
    steps = [
        lambda: books.add_reference(matrix_of(FEET, 7)),
        lambda: add(books, matrix_of(("LF", "RH"), 7), 1, 1e-4),
    ]
    for step in steps if reference_first else reversed(steps):
        assert books.compared == 0
        step()
    assert (books.matrices, books.compared, books.disagreed) == (1, 1, 0)
    assert books.sizes == {6: 1}
    assert books.faults() == []


@pytest.mark.parametrize("bad", [1.0 + 1e-8, math.nan, math.inf])
def test_disagreement_is_counted_and_described(bad: float) -> None:
    """One bad matrix among good ones spoils the verdict, NaN included."""
    books = Agreement()
    for stamp in range(1, 11):
        books.add_reference(matrix_of(FEET, stamp))
        sample = matrix_of(("LF", "RH"), stamp)
        factor = bad if stamp == 4 else 1.0
        add(books, with_matrix(sample, sample.matrix * factor), stamp, 1e-4)
    assert (books.compared, books.disagreed) == (10, 1)
    assert not books.worst <= 1e-9
    text = "; ".join(books.faults())
    assert "1 of 10 matrices disagree" in text
    assert "stamp 4: contacts LF, RH" in text


def test_worst_error_stays_nan() -> None:
    """A later finite error does not hide a NaN."""
    books = Agreement()
    for stamp, factor in ((1, math.nan), (2, 1.5)):
        books.add_reference(matrix_of(FEET, stamp))
        sample = matrix_of(FEET, stamp)
        add(books, with_matrix(sample, sample.matrix * factor), stamp, 1e-4)
    assert math.isnan(books.worst)
    assert books.disagreed == 2


def test_set_is_checked_by_its_stamp() -> None:
    """The contacts have to be those of the set the matrix says it is of, in any order."""
    books = Agreement()
    books.add_contacts(100, ("RH", "LF"))
    books.add_contacts(200, ("LF",))
    for sequence, (stamp, contacts, set_stamp) in enumerate(
        [
            (1, ("LF", "RH"), 100),
            (2, ("LF",), 200),
            (3, ("LF", "RH"), 999),
            (4, ("LF", "RH"), None),
        ]
    ):
        books.add_reference(matrix_of(FEET, stamp))
        add(books, matrix_of(contacts, stamp, set_stamp), sequence, 1e-4)
    assert books.wrong_set == 0
    add(books, matrix_of(("LF", "RH"), 5, 200), 9, 1e-4)
    assert books.wrong_set == 1
    assert "contacts LF, RH, active were LF" in "; ".join(books.faults())


def test_sequence_gaps_and_steps_back_are_counted() -> None:
    """Missing numbers are skipped ones; INVALID messages count in the same sequence."""
    books = Agreement()
    add_invalid(books, 1, 1, 32)
    answer(books, {2: 2, 3: 3, 7: 7})
    add_invalid(books, 8, 8, 64)
    assert (books.skipped, books.backwards, books.invalid) == (3, 0, {32: 1, 64: 1})
    answer(books, {9: 8})
    assert books.backwards == 1
    assert any("went back" in fault for fault in books.faults())


def test_unanswered_joint_states_are_those_between_matrices() -> None:
    """Before the first matrix and after the last, nothing is missing yet."""
    books = kept(range(1, 11))
    assert books.unanswered == 0
    answer(books, {3: 0, 4: 1, 6: 2, 8: 3})
    assert books.unanswered == 2  # 5 and 7


def test_old_stamps_are_dropped_and_still_counted() -> None:
    """The books do not grow with time, and nothing is forgotten in the counts."""
    books = Agreement()
    for stamp in range(1, 20001):
        books.add_reference(received_matrix(stamp))
        if stamp % 2:
            add(books, received_matrix(stamp), stamp, 1e-4)
        books.add_contacts(stamp, ())
    assert books.unanswered == 9999
    for stamp in range(30001, 40001):
        add(books, received_matrix(stamp, ("LF",), (0, 3), np.eye(3)), stamp, 1e-4)
    assert books.unreferenced == 5000  # the references of the others may still come
    books.add_reference(received_matrix(50000))
    assert books.unreferenced == 10000
    for stamp in range(60001, 65001):
        add(books, received_matrix(stamp, ("LF",), (0, 3), np.eye(3)), stamp, 1e-4)
    assert books.unreferenced == 10000
    kept = [books._references, books._waiting, books._sets]
    assert [len(table) for table in kept] == [5000, 5000, 5000]
    assert len(books._unanswered) <= 5000


def test_percentiles_of_all_and_of_the_recent() -> None:
    """Recent figures forget; overall ones do not."""
    books = Agreement()
    assert math.isnan(books.latency().p50)
    for sequence in range(4000):
        add(books, matrix_of((), 1), sequence, 1e-3 if sequence < 2000 else 3e-3)
    # Nobody knows.
    add(books, matrix_of((), 1), 4000, math.nan)
    assert books.latency().p50 == pytest.approx(2e-3)
    assert books.latency(recent=True).p50 == pytest.approx(3e-3)
    assert books.latency().p99 == pytest.approx(3e-3)


def test_verdict_needs_matrices_rows_and_references() -> None:
    """Silence, empty sets and missing references are no success."""
    books = Agreement()
    add_invalid(books, 1, 1, 32)
    assert books.faults() == ["no matrix arrived"]
    add(books, matrix_of((), 1), 2, 1e-4)
    assert books.faults() == ["no reference arrived"]
    books.add_reference(matrix_of(FEET, 2))
    assert books.faults() == ["no matrix had rows: no contact was ever active"]
    # Number 3 is missing: the joint state of stamp 2 was superseded.
    answer(books, {3: 4, 4: 5, 5: 6})
    books.add_reference(matrix_of(FEET, 6))
    assert books.faults() == ["only 0 matrices could be held against a reference; 3 had none"]
    for stamp in (4, 5):
        books.add_reference(matrix_of(FEET, stamp))
    assert books.faults() == []


def test_matrices_before_the_first_reference_are_not_held_against_the_run() -> None:
    """Topics are discovered one after the other."""
    books = kept(answers={stamp: stamp for stamp in range(1, 101)})
    for stamp in range(90, 101):
        books.add_reference(matrix_of(FEET, stamp))
    assert (books.matrices, books.compared, books.unreferenced) == (100, 11, 0)
    assert books.faults() == []


def test_joint_states_neither_answered_nor_superseded_are_a_fault() -> None:
    """From the first answer on; what comes after the last may still be on its way."""
    books = kept(range(1, 21), {5: 1, 8: 4})  # 6 and 7 were superseded
    assert (books.unanswered, books.skipped) == (2, 2)
    assert books.faults() == []
    answer(books, {11: 6})  # one of 9 and 10 got lost
    assert (books.unanswered, books.skipped) == (4, 3)
    assert books.faults() == [
        "of 4 joint states without an answer, 1 are not among the 3 that the sequence says were "
        "superseded"
    ]


def test_a_lost_answer_does_not_hide_behind_a_lost_reference() -> None:
    """As on a busy machine, which loses references, too."""
    # 6, 7 and 8 were superseded, 10 got lost.
    books = kept((*range(1, 6), *range(9, 21)), {5: 1, 9: 5, 11: 6})
    assert books.unanswered < books.skipped
    assert any(
        "of 1 joint states without an answer, 1 are not" in fault for fault in books.faults()
    )


@pytest.mark.parametrize(("pause", "lost"), [(300, 299), (500, 0)])
def test_what_is_lost_while_a_node_stands_still_is_no_fault(pause: int, lost: int) -> None:
    """The middleware keeps no more; within less than 0.4 s it does, and the loss is the node's."""
    ms = 1_000_000
    stamps = (100 * ms, (100 + pause) * ms, (101 + pause) * ms)
    books = kept(range(ms, 700 * ms, ms), dict(zip(stamps, (1, 2, 3), strict=True)))
    assert books.unanswered == pause - 1
    assert books._gaps.unaccounted(books._unanswered) == lost
    assert bool(books.faults()) is bool(lost)


def test_silence_takes_a_number_and_answers_nothing() -> None:
    """What comes after it may have been superseded by numbers before it."""
    books = kept(range(1, 11), {2: 1})
    add_invalid(books, 2, 4, 1024)  # 3 and 4 were superseded
    answer(books, {5: 5})
    assert (books.unanswered, books.skipped) == (2, 2)
    assert books.faults() == []


def test_silence_before_the_first_joint_state_answers_none() -> None:
    """The monitor may have found the simulator before the node has."""
    books = kept(range(1, 11))
    add_invalid(books, 0, 1, 32)
    answer(books, {7: 2, 8: 3})
    assert (books.unanswered, books.skipped) == (0, 0)
    assert books.faults() == []


def test_gaps_are_settled_before_they_are_forgotten() -> None:
    books = Agreement()
    lost = (3000, 3001, 9000)
    sequence = 0
    for stamp in range(1, 30001):
        books.add_reference(received_matrix(stamp))
        if stamp not in (*lost, 3500):
            # 3500 and one of the two are superseded.
            sequence += 2 if stamp in (3002, 3501) else 1
            add(books, received_matrix(stamp), sequence, 1e-4)
    assert (books.unanswered, books.skipped) == (4, 2)
    assert books._gaps.unaccounted(()) == 2
    assert len(books._gaps._ends) <= 10000


@pytest.mark.parametrize("reference_first", [True, False])
def test_invalid_is_an_answer(reference_first: bool) -> None:
    """A joint state that was refused is accounted for, in whichever order things arrive."""
    books = Agreement()
    for stamp in range(1, 6):
        steps = [
            lambda s=stamp: books.add_reference(matrix_of(FEET, s)),
            lambda s=stamp: (
                add_invalid(books, s, s, 64) if s == 3 else add(books, matrix_of(FEET, s), s, 1e-4)
            ),
        ]
        for step in steps if reference_first else reversed(steps):
            step()
    assert (books.matrices, books.compared, books.unanswered) == (4, 4, 0)
    assert books.faults() == []
