"""Delassus matrices: DelassusMatrix messages to and from numpy.

`DelassusMatrix.matrix` is an `array.array`, whose memory numpy can share: reading needs
no copy, and `MatrixWriter` fills a message in place.
"""

from __future__ import annotations

import array

import numpy as np
import numpy.typing as npt
from delassus_msgs.msg import DelassusMatrix

from .errors import MessageError, check_validity

_Matrix = npt.NDArray[np.float64]


def matrix_to_numpy(msg: DelassusMatrix) -> _Matrix:
    """Return the matrix of a message.

    Parameters
    ----------
    msg
        A message.

    Returns
    -------
    ndarray, shape (m, m)
        A view that shares memory with the message; shape (0, 0) if the message is INVALID
        or if no contact is active.

    Raises
    ------
    MessageError
        If row_offsets is not ascending from 0 with one entry more than contacts, if kinds,
        status and contacts differ in size, if the matrix does not have m*m values, if the
        message is INVALID and has a matrix all the same, or if its validity is none of the
        constants.

    """
    check_validity("DelassusMatrix", msg.validity)
    if msg.validity == DelassusMatrix.VALIDITY_INVALID:
        if len(msg.matrix):
            raise MessageError(
                f"DelassusMatrix is INVALID (reasons {msg.reasons:#x}), but has "
                f"{len(msg.matrix)} matrix values; expected none"
            )
        return np.empty((0, 0))
    m = _row_count(msg)
    if len(msg.matrix) != m * m:
        raise MessageError(
            f"DelassusMatrix has {len(msg.matrix)} matrix values; "
            f"expected {m * m}, as row_offsets end at m = {m}"
        )
    return np.asarray(msg.matrix, dtype=np.float64).reshape(m, m)


def numpy_to_matrix(msg: DelassusMatrix, G: npt.ArrayLike) -> None:
    """Set the matrix of a message to a copy of `G`; no other field changes.

    Parameters
    ----------
    msg
        The message to write to.
    G : shape (m, m)
        The matrix, in any memory layout.

    Raises
    ------
    MessageError
        If `G` is not square.

    """
    values = np.asarray(G, dtype=np.float64)
    if values.ndim != 2 or values.shape[0] != values.shape[1]:
        raise MessageError(f"expected a square matrix; got shape {values.shape}")
    # An array.array is taken over as it is; a list or ndarray would be checked one by one.
    msg.matrix = array.array("d", values.tobytes())


def contact_rows(msg: DelassusMatrix, contact: str) -> slice:
    """Return the rows (and columns) of a contact.

    Parameters
    ----------
    msg
        A message.
    contact
        Name of a contact in it.

    Returns
    -------
    slice
        Into the rows of `matrix_to_numpy(msg)`.

    Raises
    ------
    MessageError
        If the message does not have that contact, or if its row_offsets contradict it.

    """
    _row_count(msg)
    try:
        index = msg.contacts.index(contact)
    except ValueError:
        present = ", ".join(msg.contacts) or "none"
        raise MessageError(
            f"contact {contact!r} is not in this matrix; contacts: {present}"
        ) from None
    return slice(int(msg.row_offsets[index]), int(msg.row_offsets[index + 1]))


def contact_block(msg: DelassusMatrix, contact: str, other: str | None = None) -> _Matrix:
    """Return the block that couples two contacts.

    Parameters
    ----------
    msg
        A message.
    contact
        Name of the contact of the rows.
    other
        Name of the contact of the columns; by default `contact` itself.

    Returns
    -------
    ndarray, shape (rows of contact, rows of other)
        The acceleration of `contact` for a unit force at `other`; a view that shares
        memory with the message.

    Raises
    ------
    MessageError
        If the message has no matrix, contradicts itself or lacks one of the contacts.

    """
    if msg.validity == DelassusMatrix.VALIDITY_INVALID:
        raise MessageError(f"DelassusMatrix is INVALID (reasons {msg.reasons:#x})")
    rows = contact_rows(msg, contact)
    columns = rows if other is None else contact_rows(msg, other)
    return matrix_to_numpy(msg)[rows, columns]


class MatrixWriter:
    """A message whose matrix is filled in place, without making an array each time.

    Example::

        writer = MatrixWriter()
        writer.resize(12)
        writer.view[...] = G
        publisher.publish(writer.msg)

    Parameters
    ----------
    msg
        The message to write to; by default a new one. Its matrix becomes empty.

    Attributes
    ----------
    msg : DelassusMatrix
        The message. Set its other fields as usual, but leave `matrix` to the writer.
    view : ndarray, shape (m, m)
        The memory of `msg.matrix`; valid until the next `resize`.

    """

    def __init__(self, msg: DelassusMatrix | None = None) -> None:
        self.msg = DelassusMatrix() if msg is None else msg
        self.view: _Matrix
        self._make(0)

    def resize(self, m: int) -> None:
        """Make the matrix m by m. Costs nothing if it is; otherwise all values become zero.

        Parameters
        ----------
        m
            Number of rows; 0 for an empty matrix.

        Raises
        ------
        MessageError
            If `m` is negative.

        """
        if m < 0:
            raise MessageError(f"expected a number of rows of 0 or more; got {m}")
        if m != len(self.view):
            self._make(m)

    def _make(self, m: int) -> None:
        self.msg.matrix = array.array("d", bytes(8 * m * m))
        # From the message, as its setter may copy what it is given.
        self.view = np.asarray(self.msg.matrix, dtype=np.float64).reshape(m, m)


def _row_count(msg: DelassusMatrix) -> int:
    """Return m after checking that row_offsets, contacts, kinds and status agree."""
    count = len(msg.contacts)
    for name, values in (("kinds", msg.kinds), ("status", msg.status)):
        if len(values) != count:
            raise MessageError(
                f"DelassusMatrix has {len(values)} {name}; expected {count}, one for each contact"
            )
    offsets = msg.row_offsets
    if count == 0 and len(offsets) == 0:
        return 0
    if len(offsets) != count + 1:
        raise MessageError(
            f"DelassusMatrix has {len(offsets)} row_offsets; "
            f"expected {count + 1}, one more than contacts"
        )
    if offsets[0] != 0 or any(a >= b for a, b in zip(offsets, offsets[1:], strict=False)):
        raise MessageError(
            f"row_offsets of DelassusMatrix are {list(offsets)}; expected them to ascend from 0"
        )
    return int(offsets[-1])
