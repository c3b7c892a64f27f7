"""Messages about a matrix, serialized once and filled in place."""

from __future__ import annotations

import array
from collections.abc import Sequence
from typing import Any

from builtin_interfaces.msg import Time
from delassus_msgs.msg import DelassusMatrix, Layout, Summary
from delassus_msgs_py import SerializedMessage, compute_layout_id
from geometry_msgs.msg import Pose
from rclpy.serialization import serialize_message

from delassus.conditioning.monitor import Examination
from delassus.model import Transform
from delassus.problem import Problem
from delassus.recent import Recent
from delassus_ros.inputs.findings import Reason
from delassus_ros.ros.arrival import write_stamp

_AXES = {"contact": DelassusMatrix.AXES_CONTACT, "world": DelassusMatrix.AXES_WORLD}


def make_layout(problem: Problem, stamp: Time, world_frame: str = "", more: str = "") -> Layout:
    """Return the message with the meaning of the rows of matrices.

    Parameters
    ----------
    world_frame : name of the world frame for a floating base with axes ``"world"``.
    more : text of all settings besides the problem on which matrices depend.
    """
    robot, contacts = problem.robot, problem.contacts
    layout = Layout()
    layout.header.stamp = stamp
    layout.header.frame_id = axes_frame(problem, world_frame)
    layout.robot = robot.name
    layout.base = robot.base
    layout.contacts = list(contacts.names)
    layout.frames = [contact.frame_names for contact in contacts]
    layout.placements = [_pose(contact.placement) for contact in contacts]
    layout.selections = [
        value for contact in contacts for value in contact.stated_selection.ravel().tolist()
    ]
    layout.kinds = [contact.kind_name for contact in contacts]
    layout.row_offsets = list(contacts.row_offsets)
    layout.joints = list(robot.joint_names)
    layout.axes = _AXES[problem.axes]
    layout.layout_id = compute_layout_id(layout, f"{_of_matrix(problem).digest} {more}")
    return layout


def _of_matrix(problem: Problem) -> Problem:
    """Return the problem with the matrix as its only output; more outputs do not change it."""
    return Problem(problem.robot, problem.contacts, problem.axes)


def _pose(placement: Transform) -> Pose:
    """Return a pose as a message."""
    pose = Pose()
    position, orientation = pose.position, pose.orientation
    position.x, position.y, position.z = placement.translation.tolist()
    orientation.x, orientation.y, orientation.z, orientation.w = placement.quaternion().tolist()
    return pose


def axes_frame(problem: Problem, world_frame: str = "") -> str:
    """Return the frame along whose axes the rows are; empty with axes ``"contact"``.

    A fixed base has its root link welded to the world, so that the link's axes are the
    world's, and its name is one that tf knows.
    """
    if problem.axes == "contact":
        return ""
    if problem.robot.base == "floating":
        return world_frame
    return next(iter(problem.robot.frames))


_STAMP = ("header.stamp.sec", "header.stamp.nanosec")
_CHANGING = {
    "stamp": _STAMP,
    "number": ("sequence", "contacts_stamp.sec", "contacts_stamp.nanosec"),
    "judgement": (
        "validity", "reasons", "conditioning", "rank", "structural_rank", "condition",
        "damping_mode", "damping",
    ),
    "times": ("compute_time", "input_age"),
}  # fmt: skip
"""Numbers that differ from one matrix to the next, except the matrix."""


_MOST_WIRES = 256
_OK, _DEGRADED = DelassusMatrix.VALIDITY_OK, DelassusMatrix.VALIDITY_DEGRADED


class _Wire:
    """Bytes of a message, with a view of the matrix in them."""

    def __init__(self, message: DelassusMatrix) -> None:
        m = message.row_offsets[-1]
        message.matrix = array.array("d", bytes(8 * m * m))
        self.data = SerializedMessage(message, _CHANGING, ("matrix",))
        self.matrix = self.data.arrays["matrix"].reshape(m, m)


class MatrixOutput:
    """Serialized messages of a layout: those with a matrix, and INVALID ones.

    Attributes
    ----------
    sequence : number of the last message, superseded instants included.
    """

    def __init__(self, layout: Layout) -> None:
        self.sequence = 0
        self._kinds = dict(zip(layout.contacts, layout.kinds, strict=True))
        self._valid = _message_of(layout)
        self._invalid = _message_of(layout)
        self._contacts_stamp = (0, 0)
        # The messages of a set of contacts are kept: contacts come and go.
        self._made: Recent[tuple[object, ...], _Wire] = Recent(_MOST_WIRES)
        self._wire: _Wire | None = None
        # The first serialization in a process loads libraries, which takes longer than a tick.
        self.set_contacts((), (0,))
        self._find_wire()

    def set_algorithm(self, name: str) -> None:
        """Set the name of the algorithm of the next matrices."""
        self._valid.algorithm = name
        self._wire = None

    def set_contacts(self, contacts: Sequence[str], row_offsets: Sequence[int]) -> None:
        """Set the contacts of the next matrices, in the order of their rows."""
        message = self._valid
        message.contacts = list(contacts)
        message.kinds = [self._kinds[contact] for contact in contacts]
        message.row_offsets = list(row_offsets)
        self._wire = None

    def set_status(self, status: list[int]) -> None:
        """Set the status of the contacts of the next matrices."""
        if list(self._valid.status) != status:
            self._valid.status = status
            self._wire = None

    def set_contacts_stamp(self, stamp: Time) -> None:
        """Set the stamp of the set of active contacts."""
        self._contacts_stamp = (stamp.sec, stamp.nanosec)
        self._invalid.contacts_stamp = stamp

    def matrix(
        self,
        stamp: int,
        compute_time: float,
        seen: Examination,
        reasons: Reason,
        degraded: bool,
        input_age: float,
    ) -> bytes:
        """Return the serialized message of a solution; only its numbers are written anew.

        Parameters
        ----------
        stamp : stamp of the joint positions [ns].
        compute_time : time that the solution took [s].
        seen : examination of the solution, with the matrix to publish.
        reasons, degraded : reasons of the message, and whether they make it DEGRADED.
        input_age : age of the joint positions [s]; NaN if unknown.
        """
        wire = self._wire or self._find_wire()
        self.sequence += 1
        data = wire.data
        data.set("stamp", *divmod(stamp, 1_000_000_000))
        data.set("number", self.sequence, *self._contacts_stamp)
        data.set(
            "judgement", _DEGRADED if degraded else _OK, reasons, seen.conditioning, seen.rank,
            seen.structural_rank, seen.condition, seen.damping_mode, seen.damping,
        )  # fmt: skip
        data.set("times", compute_time, input_age)
        wire.matrix[...] = seen.matrix
        return data.to_bytes()

    def _find_wire(self) -> _Wire:
        """Return the bytes for the present fields, made at their first use and then kept."""
        message = self._valid
        key = tuple(message.contacts), tuple(message.status), message.algorithm
        wire = self._made.get(key)
        if wire is None:
            wire = _Wire(message)
            self._made.put(key, wire)
        self._wire = wire
        return wire

    def invalid(self, stamp: int, reasons: Reason, input_age: float) -> bytes:
        """Return the serialized INVALID message; the stamp is in ns."""
        message = self._invalid
        self.sequence += 1
        message.sequence = self.sequence
        write_stamp(message.header.stamp, stamp)
        message.reasons = int(reasons)
        message.input_age = input_age
        data: bytes = serialize_message(message)
        return data


def _message_of(layout: Layout) -> DelassusMatrix:
    """Return an INVALID message with the fields that never change."""
    message = DelassusMatrix()
    message.header.frame_id = layout.header.frame_id
    message.layout_id = layout.layout_id
    message.axes = layout.axes
    message.validity = DelassusMatrix.VALIDITY_INVALID
    message.conditioning = DelassusMatrix.CONDITIONING_UNKNOWN
    message.damping_mode = DelassusMatrix.DAMPING_NONE
    return message


_SUMMARY = {
    "stamp": _STAMP,
    "numbers": (
        "sequence", "validity", "reasons", "conditioning", "rows", "rank", "structural_rank",
        "largest_eigenvalue", "smallest_eigenvalue", "condition", "characteristic_length",
        "exact", "damping_mode", "damping", "compute_time", "input_age", "latency", "published",
        "invalid", "superseded", "overruns",
    ),
}  # fmt: skip
"""All numbers of a summary, in the order of the message."""


class SummaryOutput:
    """Serialized summaries of a layout's matrices.

    Parameters
    ----------
    characteristic_length : as in
        :class:`~delassus.conditioning.monitor.ConditionSettings` [m].

    Raises
    ------
    MessageError
        If the middleware serializes messages differently than expected.
    """

    def __init__(self, layout: Layout, characteristic_length: float) -> None:
        self._length = characteristic_length
        message = Summary()
        message.header.frame_id = layout.header.frame_id
        self._data = SerializedMessage(message, _SUMMARY)

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
        stamp : stamp of the matrix: seconds and nanoseconds.
        sequence, validity, reasons : fields of the matrix.
        rows : number of rows of the matrix; 0 without a matrix.
        seen : examination of the matrix; None without a matrix.
        times : compute_time, input_age and latency [s].
        counts : numbers of matrices, INVALID messages, superseded joint states and overruns.
        """
        self._data.set("stamp", *stamp)
        if seen is None or seen.condition < 0:
            ranks = (rows, -1, -1) if seen is None else (rows, seen.rank, seen.structural_rank)
            known: tuple[Any, ...] = (0, *ranks, -1.0, -1.0, -1.0, self._length, False)
        else:
            known = (
                seen.conditioning, rows, seen.rank, seen.structural_rank, seen.largest,
                seen.smallest, seen.condition, self._length, True,
            )  # fmt: skip
        damping = (0, 0.0) if seen is None else (seen.damping_mode, seen.damping)
        self._data.set("numbers", sequence, validity, reasons, *known, *damping, *times, *counts)
        return self._data.to_bytes()
