"""The messages of secondary outputs, serialized once and filled in place."""

from __future__ import annotations

import array
from collections.abc import Iterable

import numpy as np
from delassus_msgs.msg import ContactDynamics, DelassusMatrix, Layout
from delassus_msgs_py import SerializedMessage, numpy_to_dynamics
from rclpy.serialization import serialize_message

from delassus.model.spatial import Array
from delassus.outputs import OUTPUTS, secondary_outputs
from delassus.problem import Problem
from delassus.recent import Recent
from delassus.solver.contact_space import inertia
from delassus.solver.solution import Solution
from delassus_ros.inputs.findings import Findings, Reason, Validity
from delassus_ros.inputs.limits import Limits
from delassus_ros.node.forces import NUMBERS, ForceOutput, ForceResult
from delassus_ros.ros.arrival import write_stamp

_CHANGING = {
    "stamp": ("header.stamp.sec", "header.stamp.nanosec"),
    "judgement": ("sequence", "validity", "reasons"),
    "forces": NUMBERS,
}
_MOST_WIRES = 64


def blocks_of(
    solution: Solution,
    matrix: Array,
    names: Iterable[str],
    characteristic_length: float,
    forces: ForceResult | None = None,
) -> dict[str, Array]:
    """Return the blocks of a message by name.

    Parameters
    ----------
    solution : solution with the outputs that the names need.
    matrix : the published matrix, which may be damped.
    names : secondary outputs.
    characteristic_length : weight of angular against linear rows in the inverse [m].
    forces : the contact forces, if they are among the names.
    """
    wanted = tuple(names)
    found = {name: solution.output(name) for name in wanted if OUTPUTS[name].in_kernel}
    if forces is not None:
        found["forces"] = forces.forces
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
    is_moving : whether velocities of the contacts are known, which they are not with an Imu.

    Attributes
    ----------
    findings : findings of the next message; of the latest one for diagnostics.
    forces : computes contact forces; None if they are not among the outputs.

    Raises
    ------
    InputError
        If forces are among the outputs, and a contact has no law of friction.
    """

    def __init__(
        self, problem: Problem, layout: Layout, names: Iterable[str], is_moving: bool = True
    ) -> None:
        self._names = tuple(name for name in secondary_outputs() if name in set(names))
        self.forces = ForceOutput(problem, is_moving) if "forces" in self._names else None
        self._force_settings = Limits().forces
        self._velocities = list(problem.velocities)
        self._invalid = self._empty(layout)
        self._valid = self._empty(layout)
        self._valid.validity = ContactDynamics.VALIDITY_OK
        self._wires: Recent[tuple[str, ...], _Wire] = Recent(_MOST_WIRES)
        self.findings = Findings()
        self.findings.add(Reason.NONE, "", Validity.INVALID)

    def message(
        self,
        stamp: int,
        sequence: int,
        solution: Solution,
        matrix: Array,
        limits: Limits,
        forces: ForceResult | None = None,
    ) -> bytes:
        """Return the serialized message for a matrix, with :attr:`findings`.

        Parameters
        ----------
        solution, matrix : as for :func:`blocks_of`.
        limits : settings of the inverse and of the forces.
        forces : the contact forces, if they are among the outputs.
        """
        if forces is not None and limits.forces != self._force_settings:
            # Messages have the friction of their contacts.
            self._force_settings = limits.forces
            self._wires.clear()
        findings = self.findings
        wire = self._wires.get(solution.contacts) or self._make(solution, forces)
        if forces is not None:
            wire.data.set("forces", *forces.numbers(findings.validity is not Validity.OK))
            if forces.finding is not None:
                findings.include(forces.finding)
        wire.data.set("stamp", *divmod(stamp, 1_000_000_000))
        wire.data.set("judgement", sequence, findings.validity, findings.reasons)
        length = limits.condition.characteristic_length
        blocks = blocks_of(solution, matrix, self._names, length, forces)
        for name, target in wire.blocks.items():
            target[...] = blocks[name]
        return wire.data.to_bytes()

    def invalid(self, stamp: int, sequence: int) -> bytes:
        """Return the serialized INVALID message, with :attr:`findings`."""
        message = self._invalid
        message.sequence, message.reasons = sequence, int(self.findings.reasons)
        write_stamp(message.header.stamp, stamp)
        data: bytes = serialize_message(message)
        return data

    def _make(self, solution: Solution, forces: ForceResult | None) -> _Wire:
        """Return the message of a set of contacts, made at its first use and then kept."""
        self._valid.contacts = list(solution.contacts)
        self._valid.row_offsets = array.array("I", solution.row_offsets)
        if forces is not None:
            forces.write(self._valid)
        wire = _Wire(self._valid, self._names)
        self._wires.put(solution.contacts, wire)
        return wire

    def _empty(self, layout: Layout) -> ContactDynamics:
        message = ContactDynamics()
        message.header.frame_id = layout.header.frame_id
        message.layout_id, message.axes = layout.layout_id, layout.axes
        message.velocities = self._velocities
        message.row_offsets = array.array("I", [0])
        return message
