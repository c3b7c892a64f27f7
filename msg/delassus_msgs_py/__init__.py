"""numpy conversions for the messages of delassus_msgs."""

from __future__ import annotations

from .contacts import active_names
from .dynamics import DynamicsReader, ReceivedDynamics, dynamics_to_numpy, numpy_to_dynamics
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
from .reasons import reason_names
from .serialized import SerializedMessage

__all__ = [
    "DynamicsReader",
    "MatrixReader",
    "MatrixWriter",
    "MessageError",
    "ReceivedDynamics",
    "ReceivedMatrix",
    "SerializedMessage",
    "active_names",
    "compute_layout_id",
    "contact_block",
    "contact_rows",
    "dynamics_to_numpy",
    "matrix_to_numpy",
    "numpy_to_dynamics",
    "numpy_to_matrix",
    "reason_names",
]
