"""Matrices as readers of messages return them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import ReceivedMatrix

_INVALID = ReceivedMatrix.of(DelassusMatrix())


def received_matrix(
    stamp: int,
    contacts: tuple[str, ...] = (),
    row_offsets: tuple[int, ...] = (0,),
    matrix: np.ndarray | None = None,
    **values: Any,
) -> ReceivedMatrix:
    """Return a matrix of contacts, valid unless `values` have another validity."""
    matrix = np.zeros((0, 0)) if matrix is None else matrix
    values = {"validity": DelassusMatrix.VALIDITY_OK, **values}
    return replace(
        _INVALID, stamp=stamp, contacts=contacts, row_offsets=row_offsets, matrix=matrix, **values
    )
