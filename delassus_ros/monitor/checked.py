"""Matrices compared with references: relative errors, and the books of comparisons.

Matrices are compared by contact name. Only the last functions of this module use ROS.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from builtin_interfaces.msg import Time
from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import ReceivedMatrix

FloatArray = npt.NDArray[np.float64]

TOLERANCE = 1e-9
"""Largest relative error (Frobenius) that counts as agreement."""

WINDOW = 5000
"""Number of stored stamps whose counterpart is missing: 5 s at 1 kHz."""


@dataclass(frozen=True)
class CheckedMatrix:
    """A Delassus matrix with stamps and contacts for comparisons.

    Attributes
    ----------
    stamp
        Stamp of the joint state, ns.
    contacts
        Contact names in the order of the rows.
    offsets
        First rows of the contacts, then the number of rows: one entry more than contacts.
    matrix
        The matrix, (m, m).
    contacts_stamp
        Stamp of the matrix's set of active contacts [ns]; None without a set.
    valid
        Whether the message has a matrix: not INVALID.
    compute_time
        Time of the computation, s.
    condition
        Condition number by the message; -1 if unknown.
    """

    stamp: int
    contacts: tuple[str, ...]
    offsets: tuple[int, ...]
    matrix: FloatArray
    contacts_stamp: int | None = None
    valid: bool = True
    algorithm: str = ""
    compute_time: float = math.nan
    condition: float = -1.0


def relative_error(sample: CheckedMatrix, reference: CheckedMatrix) -> float:
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
    rows = _rows(sample.contacts, sample.offsets, reference.contacts, reference.offsets)
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
        self, sample: CheckedMatrix, reference: CheckedMatrix, between: str = ""
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


def checked_matrix_of(received: ReceivedMatrix) -> CheckedMatrix:
    """Return a copy of a received matrix for comparisons."""
    return CheckedMatrix(
        stamp=received.stamp,
        contacts=received.contacts,
        offsets=received.row_offsets,
        matrix=np.array(received.matrix),
        contacts_stamp=received.contacts_stamp or None,
        valid=received.validity != DelassusMatrix.VALIDITY_INVALID,
        algorithm=received.algorithm,
        compute_time=received.compute_time,
        condition=received.condition,
    )
