"""The numbers about each matrix for plotters, serialized once and filled in place."""

from __future__ import annotations

import struct
from typing import Any

from delassus_msgs.msg import Layout, Summary
from delassus_msgs_py import MessageError
from rclpy.serialization import deserialize_message, serialize_message

from delassus_ros.conditioning import Examination
from delassus_ros.node.reasons import Reason

_STAMP = struct.Struct("<iI")
_STAMP_AT = 4  # after the encapsulation
_FIELDS = (
    "sequence", "validity", "reasons", "conditioning", "rows", "rank", "structural_rank",
    "largest_eigenvalue", "smallest_eigenvalue", "condition", "characteristic_length", "exact",
    "damping_mode", "damping", "compute_time", "input_age", "latency", "published", "invalid",
    "superseded", "overruns",
)  # fmt: skip
# What follows the header, aligned as CDR does.
_NUMBERS = struct.Struct("<QB7xQB3xIii4d?B6x4d4Q")


class SummaryOutput:
    """Serialized summaries of a layout's matrices.

    Parameters
    ----------
    layout : what the rows mean.
    characteristic_length : as in
        :class:`~delassus_ros.conditioning.ConditionSettings` [m].

    Raises
    ------
    MessageError
        If this system serializes messages in another way than expected.
    """

    def __init__(self, layout: Layout, characteristic_length: float) -> None:
        self._length = characteristic_length
        message = Summary()
        message.header.frame_id = layout.header.frame_id
        self._buffer = bytearray(serialize_message(message))
        # The numbers are all that follows the only text.
        self._start = len(self._buffer) - _NUMBERS.size
        self._check()

    def fill(
        self,
        stamp: tuple[int, int],
        sequence: int,
        validity: int,
        reasons: Reason,
        rows: int,
        seen: Examination | None,
        times: tuple[float, float, float],
        counts: tuple[int, int, int, int],
    ) -> bytes:
        """Return the serialized summary of an instant.

        Parameters
        ----------
        stamp : seconds and nanoseconds, as published.
        sequence, validity, reasons : as published.
        rows : rows of the matrix; 0 if there is none.
        seen : its examination; None if there is none.
        times : compute_time, input_age and latency [s].
        counts : numbers of matrices, INVALID messages, superseded joint states and overruns.
        """
        _STAMP.pack_into(self._buffer, _STAMP_AT, *stamp)
        if seen is None or seen.condition < 0:
            ranks = (rows, -1, -1) if seen is None else (rows, seen.rank, seen.structural_rank)
            known: tuple[Any, ...] = (0, *ranks, -1.0, -1.0, -1.0, self._length, False)
        else:
            known = (
                seen.conditioning, rows, seen.rank, seen.structural_rank, seen.largest,
                seen.smallest, seen.condition, self._length, seen.exact,
            )  # fmt: skip
        damping = (0, 0.0) if seen is None else (seen.damping_mode, seen.damping)
        _NUMBERS.pack_into(
            self._buffer, self._start, sequence, validity, reasons, *known, *damping, *times,
            *counts,
        )  # fmt: skip
        return bytes(self._buffer)

    def _check(self) -> None:
        """Compare what is written here with what ROS reads."""
        values = [float(k) if k in (7, 8, 9, 10, 13, 14, 15, 16) else k for k in range(21)]
        values[_FIELDS.index("exact")] = True
        before = bytes(self._buffer)
        try:
            _NUMBERS.pack_into(self._buffer, self._start, *values)
            message = deserialize_message(bytes(self._buffer), Summary)
        except (RuntimeError, struct.error) as error:
            raise MessageError(
                f"Summary: its bytes are laid out in another way: {error}"
            ) from error
        wrong = [
            name
            for name, value in zip(_FIELDS, values, strict=True)
            if getattr(message, name) != value
        ]
        if wrong:
            raise MessageError(
                f"Summary: its bytes are laid out in another way: {wrong[0]} is not where it "
                "was expected"
            )
        self._buffer[:] = before
