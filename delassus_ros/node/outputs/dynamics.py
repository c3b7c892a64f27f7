"""The messages of secondary outputs, serialized once and filled in place."""

from __future__ import annotations

import array
from collections.abc import Iterable

import numpy as np
from builtin_interfaces.msg import Time
from delassus_msgs.msg import ContactDynamics, DelassusMatrix, Layout
from delassus_msgs_py import SerializedMessage, numpy_to_dynamics
from rclpy.serialization import serialize_message

from delassus_ros.model.spatial import Array
from delassus_ros.node.reasons import Reason, Validity
from delassus_ros.outputs import OUTPUTS, secondary_outputs
from delassus_ros.problem import Problem
from delassus_ros.solver.contact_space import inertia
from delassus_ros.solver.solution import Solution

_CHANGING = {
    "stamp": ("header.stamp.sec", "header.stamp.nanosec"),
    "judgement": ("sequence", "validity", "reasons"),
}
_MOST_WIRES = 64


def blocks_of(
    solution: Solution, matrix: Array, names: Iterable[str], characteristic_length: float
) -> dict[str, Array]:
    """Return the blocks of a message by name.

    Parameters
    ----------
    solution : solution with the outputs that the names need.
    matrix : the published matrix, which may be damped.
    names : secondary outputs.
    characteristic_length : weight of angular against linear rows in the inverse [m].
    """
    wanted = tuple(names)
    found = {name: solution.output(name) for name in wanted if OUTPUTS[name].in_kernel}
    if len(found) < len(wanted):
        scales = solution.scales(characteristic_length)
        Lambda = inertia(matrix, scales, 0.0, solution.structural_rank)
        if "Lambda" in wanted:
            found["Lambda"] = Lambda
        if "Jbar" in wanted:
            found["Jbar"] = solution.output("MinvJT") @ Lambda
    return found


def fill(
    message: ContactDynamics, problem: Problem, layout: Layout, matrix: DelassusMatrix
) -> None:
    """Fill all fields of a message that follows a matrix, except blocks, validity and reasons."""
    message.header = matrix.header
    message.layout_id, message.sequence = layout.layout_id, matrix.sequence
    message.contacts, message.row_offsets = matrix.contacts, matrix.row_offsets
    message.axes = layout.axes
    message.velocities = list(problem.velocities)


class _Wire:
    """Bytes of a message, with views of the blocks in them."""

    def __init__(self, message: ContactDynamics, names: Iterable[str]) -> None:
        m, n = message.row_offsets[-1], len(message.velocities)
        shapes = {name: OUTPUTS[name].shape(m, n) for name in names}
        fields = {name: OUTPUTS[name].field for name in names}
        numpy_to_dynamics(message, {name: np.zeros(shape) for name, shape in shapes.items()})
        self.data = SerializedMessage(message, _CHANGING, tuple(fields.values()))
        self.blocks = {
            name: self.data.arrays[fields[name]].reshape(shape) for name, shape in shapes.items()
        }


class DynamicsOutput:
    """Serialized messages of the secondary outputs of a layout.

    Parameters
    ----------
    problem : problem of the matrices.
    layout : meaning of the rows.
    names : the secondary outputs of the messages.

    Attributes
    ----------
    validity, reasons, text : state of the latest message, for diagnostics.
    """

    def __init__(self, problem: Problem, layout: Layout, names: Iterable[str]) -> None:
        self._names = tuple(name for name in secondary_outputs() if name in set(names))
        self._velocities = list(problem.velocities)
        self._invalid = self._empty(layout)
        self._valid = self._empty(layout)
        self._valid.validity = ContactDynamics.VALIDITY_OK
        self._wires: dict[tuple[str, ...], _Wire] = {}
        self.validity, self.reasons, self.text = Validity.INVALID, Reason.NONE, ""

    def message(
        self,
        stamp: int,
        sequence: int,
        solution: Solution,
        matrix: Array,
        reasons: Reason,
        text: str,
        degraded: bool,
        characteristic_length: float,
    ) -> bytes:
        """Return the serialized message for a matrix.

        Parameters
        ----------
        stamp, sequence : stamp and number of the matrix.
        solution, matrix, characteristic_length : as for :func:`blocks_of`.
        reasons, degraded : reasons of the message, and whether they make it DEGRADED.
        text : the reasons in words.
        """
        wire = self._wires.get(solution.contacts) or self._make(solution)
        validity = Validity.DEGRADED if degraded else Validity.OK
        self.validity, self.reasons, self.text = validity, reasons, text
        wire.data.set("stamp", *divmod(stamp, 1_000_000_000))
        wire.data.set("judgement", sequence, validity, reasons)
        blocks = blocks_of(solution, matrix, self._names, characteristic_length)
        for name, target in wire.blocks.items():
            target[...] = blocks[name]
        return wire.data.to_bytes()

    def invalid(self, stamp: int, sequence: int, reasons: Reason, text: str) -> bytes:
        """Return the serialized INVALID message, with the reasons in words."""
        self.validity, self.reasons, self.text = Validity.INVALID, reasons, text
        message = self._invalid
        message.sequence, message.reasons = sequence, int(reasons)
        sec, nanosec = divmod(stamp, 1_000_000_000)
        message.header.stamp = Time(sec=sec, nanosec=nanosec)
        data: bytes = serialize_message(message)
        return data

    def _make(self, solution: Solution) -> _Wire:
        """Return the message of a set of contacts, made at its first use and then kept."""
        if len(self._wires) >= _MOST_WIRES:
            # The oldest entry is dropped.
            del self._wires[next(iter(self._wires))]
        self._valid.contacts = list(solution.contacts)
        self._valid.row_offsets = array.array("I", solution.row_offsets)
        wire = self._wires[solution.contacts] = _Wire(self._valid, self._names)
        return wire

    def _empty(self, layout: Layout) -> ContactDynamics:
        message = ContactDynamics()
        message.header.frame_id = layout.header.frame_id
        message.layout_id, message.axes = layout.layout_id, layout.axes
        message.velocities = self._velocities
        message.row_offsets = array.array("I", [0])
        return message
