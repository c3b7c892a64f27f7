"""The messages that leave the node, made once and filled in place."""

from __future__ import annotations

from collections.abc import Sequence

from builtin_interfaces.msg import Time
from delassus_msgs.msg import DelassusMatrix, Layout
from delassus_msgs_py import MatrixWriter, SerializedMessage, compute_layout_id
from geometry_msgs.msg import Pose

from delassus_ros.bound_solver import Solution
from delassus_ros.model import Transform
from delassus_ros.node.reasons import Reason
from delassus_ros.problem import Problem

_AXES = {"contact": DelassusMatrix.AXES_CONTACT, "world": DelassusMatrix.AXES_WORLD}


def make_layout(problem: Problem, stamp: Time) -> Layout:
    """Return the message that says what the rows of the matrices mean."""
    robot, contacts = problem.robot, problem.contacts
    layout = Layout()
    layout.header.stamp = stamp
    layout.header.frame_id = axes_frame(problem)
    layout.robot = robot.name
    layout.base = robot.base
    layout.contacts = list(contacts.names)
    layout.frames = [contact.frame for contact in contacts]
    layout.placements = [_pose(contact.placement) for contact in contacts]
    layout.selections = [
        value
        for contact in contacts
        if contact.kind_name == "selection"
        for value in contact.selection.ravel().tolist()
    ]
    layout.kinds = [contact.kind_name for contact in contacts]
    layout.row_offsets = list(contacts.row_offsets)
    layout.joints = list(robot.joint_names)
    layout.axes = _AXES[problem.axes]
    layout.layout_id = compute_layout_id(layout)
    return layout


def _pose(placement: Transform) -> Pose:
    """Return a pose as a message."""
    pose = Pose()
    position, orientation = pose.position, pose.orientation
    position.x, position.y, position.z = placement.translation.tolist()
    orientation.x, orientation.y, orientation.z, orientation.w = placement.quaternion().tolist()
    return pose


def axes_frame(problem: Problem) -> str:
    """Return the frame along whose axes the rows are; empty with axes ``"contact"``.

    A fixed base has its root link welded to the world, so that the link's axes are the
    world's, and its name is one that tf knows.
    """
    return "" if problem.axes == "contact" else next(iter(problem.robot.frames))


_CHANGING = {
    "header.stamp.sec": "i",
    "header.stamp.nanosec": "I",
    "sequence": "Q",
    "contacts_stamp.sec": "i",
    "contacts_stamp.nanosec": "I",
    "compute_time": "d",
    "input_age": "d",
}
"""Numbers that differ from one matrix to the next, the matrix itself apart."""


class MatrixOutput:
    """One message for matrices and one for INVALID, both of a layout.

    Parameters
    ----------
    layout : what the rows mean.

    Attributes
    ----------
    sequence : number of the last message, superseded instants included.
    """

    def __init__(self, layout: Layout) -> None:
        self.sequence = 0
        self._kinds = dict(zip(layout.contacts, layout.kinds, strict=True))
        self._writer = MatrixWriter(_message_of(layout))
        self._valid = self._writer.msg
        self._invalid = _message_of(layout)
        # The bytes of the present matrix's message; None after a change of any other field.
        self._bytes: SerializedMessage | None = None

    def set_algorithm(self, name: str) -> None:
        """Name the algorithm of the matrices from now on."""
        self._valid.algorithm = name
        self._bytes = None

    def set_contacts(self, contacts: Sequence[str], row_offsets: Sequence[int]) -> None:
        """Set the contacts of the matrices from now on, in the order of their rows."""
        message = self._valid
        message.contacts = list(contacts)
        message.kinds = [self._kinds[contact] for contact in contacts]
        message.row_offsets = list(row_offsets)
        self._writer.resize(row_offsets[-1])
        self._bytes = None

    def set_status(self, status: list[int]) -> None:
        """Set the status of each contact of the matrices from now on."""
        if list(self._valid.status) != status:
            self._valid.status = status
            self._bytes = None

    def set_contacts_stamp(self, stamp: Time) -> None:
        """Set the stamp of the set of active contacts."""
        self._valid.contacts_stamp = stamp
        self._invalid.contacts_stamp = stamp

    def matrix(
        self, stamp: Time, solution: Solution, reasons: Reason, degraded: bool, input_age: float
    ) -> DelassusMatrix:
        """Return the message of a solution; it is overwritten by the next."""
        message = self._valid
        self.sequence += 1
        message.sequence = self.sequence
        message.header.stamp = stamp
        validity = DelassusMatrix.VALIDITY_DEGRADED if degraded else DelassusMatrix.VALIDITY_OK
        if message.reasons != reasons or message.validity != validity:
            message.reasons, message.validity = int(reasons), validity
            self._bytes = None
        self._writer.view[...] = solution.matrix
        message.compute_time = solution.compute_time
        message.input_age = input_age
        return message

    def to_bytes(self) -> bytes:
        """Return the last message of :meth:`matrix`, serialized; only its numbers are new."""
        message, wire = self._valid, self._bytes
        if wire is None:
            wire = self._bytes = SerializedMessage(message, _CHANGING, ("matrix",))
        stamp, contacts_stamp = message.header.stamp, message.contacts_stamp
        wire.set("header.stamp.sec", stamp.sec)
        wire.set("header.stamp.nanosec", stamp.nanosec)
        wire.set("contacts_stamp.sec", contacts_stamp.sec)
        wire.set("contacts_stamp.nanosec", contacts_stamp.nanosec)
        wire.set("sequence", message.sequence)
        wire.set("compute_time", message.compute_time)
        wire.set("input_age", message.input_age)
        wire.arrays["matrix"][...] = self._writer.view.ravel()
        return wire.to_bytes()

    def invalid(self, stamp: Time, reasons: Reason, input_age: float) -> DelassusMatrix:
        """Return the message that there is no matrix; it is overwritten by the next."""
        message = self._invalid
        self.sequence += 1
        message.sequence = self.sequence
        message.header.stamp = stamp
        message.reasons = int(reasons)
        message.input_age = input_age
        return message


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
