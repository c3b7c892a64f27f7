"""numpy conversions for the messages of delassus_msgs."""

from __future__ import annotations

from .contacts import active_names
from .errors import MessageError
from .layout import compute_layout_id
from .matrix import (
    MatrixWriter,
    contact_block,
    contact_rows,
    matrix_to_numpy,
    numpy_to_matrix,
)
from .matrix_reader import MatrixReader, ReceivedMatrix
from .serialized import SerializedMessage

__all__ = [
    "MatrixReader",
    "MatrixWriter",
    "MessageError",
    "ReceivedMatrix",
    "SerializedMessage",
    "active_names",
    "compute_layout_id",
    "contact_block",
    "contact_rows",
    "matrix_to_numpy",
    "numpy_to_matrix",
]
