"""Matrices compared with references: relative errors, and the books of comparisons.

Matrices are compared by contact name.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from builtin_interfaces.msg import Time
from delassus_msgs_py import ReceivedMatrix

FloatArray = npt.NDArray[np.float64]

TOLERANCE = 1e-9
"""Largest relative error (Frobenius) that counts as agreement."""

WINDOW = 5000
"""Number of stored stamps whose counterpart is missing: 5 s at 1 kHz."""


def relative_error(sample: ReceivedMatrix, reference: ReceivedMatrix) -> float:
    """Return the Frobenius distance of a matrix to a block of a reference, relative to the block.

    Parameters
    ----------
    reference
        A matrix of at least the contacts of `sample`, in any order.

    Returns
    -------
    float
        0 without contacts; infinite if the reference lacks a contact or has another number of
        rows for a contact; NaN if an entry is NaN.
    """
    rows = _rows(sample.contacts, sample.row_offsets, reference.contacts, reference.row_offsets)
    if rows is None or sample.matrix.shape != (len(rows), len(rows)):
        return math.inf
    if not len(rows):
        return 0.0
    expected = reference.matrix[rows[:, np.newaxis], rows]
    difference = sample.matrix - expected
    return math.sqrt(np.vdot(difference, difference) / np.vdot(expected, expected))


@functools.lru_cache(maxsize=256)
def _rows(
    contacts: tuple[str, ...],
    offsets: tuple[int, ...],
    reference_contacts: tuple[str, ...],
    reference_offsets: tuple[int, ...],
) -> npt.NDArray[np.intp] | None:
    """Return the rows of the contacts in the reference; None if a contact is missing."""
    rows: list[int] = []
    for i, name in enumerate(contacts):
        if name not in reference_contacts:
            return None
        j = reference_contacts.index(name)
        block = range(reference_offsets[j], reference_offsets[j + 1])
        if len(block) != offsets[i + 1] - offsets[i]:
            return None
        rows += block
    return np.array(rows, dtype=np.intp)


class Comparisons:
    """Counts and errors of compared matrices since the start.

    Parameters
    ----------
    tolerance
        Largest relative error that counts as agreement.

    Attributes
    ----------
    compared
        Pairs of matrices of the same contacts, at least one, that were compared.
    disagreed
        Compared pairs with an error above the tolerance.
    worst
        Largest error; NaN counts as larger than all numbers.
    first_fault
        Text about the first disagreement or other fault; None without one.
    """

    def __init__(self, tolerance: float = TOLERANCE) -> None:
        self.tolerance = tolerance
        self.compared = 0
        self.disagreed = 0
        self.worst = 0.0
        self.first_fault: str | None = None

    def compare(
        self, sample: ReceivedMatrix, reference: ReceivedMatrix, between: str = ""
    ) -> float | None:
        """Count the error of a matrix and return it; None without contacts.

        Parameters
        ----------
        between
            Text about the compared matrices, which ends the fault's text.
        """
        if not sample.contacts:
            return None
        self.compared += 1
        error = relative_error(sample, reference)
        if math.isnan(error) or error > self.worst:
            self.worst = error
        if not error <= self.tolerance:
            self.disagreed += 1
            self.fault(
                f"stamp {sample.stamp}: contacts {', '.join(sample.contacts)}, relative error "
                f"{error:.1e}{between}"
            )
        return error

    def disagreement(self, what: str) -> str:
        """Return the number of disagreements and the worst error; `what` is subject and verb."""
        return (
            f"{self.disagreed} of {self.compared} {what} (tolerance {self.tolerance:g}, worst "
            f"{self.worst:.1e})"
        )

    def fault(self, words: str) -> None:
        """Store the text of the first fault."""
        if self.first_fault is None:
            self.first_fault = words


def nanoseconds(stamp: Time) -> int:
    """Return a stamp, ns."""
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)


def copy_of(received: ReceivedMatrix) -> ReceivedMatrix:
    """Return a received matrix that the next message does not overwrite."""
    return replace(received, matrix=np.array(received.matrix))
