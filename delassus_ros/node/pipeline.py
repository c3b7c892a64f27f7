"""From joint states and contacts to matrices: one tick, between the messages."""

from __future__ import annotations

import math
from collections.abc import Callable

from builtin_interfaces.msg import Time
from delassus_msgs.msg import ActiveContacts, Layout

from delassus_ros.algorithms.base import Status
from delassus_ros.node.contact_input import ContactInput
from delassus_ros.node.joint_input import JointInput
from delassus_ros.node.joint_state_bytes import JointPositions, JointStateReader
from delassus_ros.node.matrix_output import MatrixOutput
from delassus_ros.node.reasons import Reason
from delassus_ros.solver import DelassusSolver

_FAILURES = {
    Status.NOT_POSITIVE_DEFINITE: Reason.SOLVER_FAILED,
    Status.NOT_FINITE: Reason.RESULT_NOT_FINITE,
    Status.FAILED: Reason.SOLVER_FAILED,
    Status.SINGULAR_LOOP: Reason.SOLVER_FAILED,
}


class Pipeline:
    """Turns each joint state into the message to publish for it.

    Parameters
    ----------
    solver : computes the matrices.
    layout : what their rows mean.
    all_rows : put every contact into each matrix, whether active or not; matrices then come
        also before the first set of active contacts.
    now : time of the node's clock [ns].
    warn : takes the kind of a warning and its text.

    Attributes
    ----------
    published, refused, superseded : number of joint states with a matrix, of those answered by
        INVALID, and of those passed over because a newer one was there.

    Raises
    ------
    RobotError
        If the robot has joints whose positions a joint state cannot carry.
    """

    def __init__(
        self,
        solver: DelassusSolver,
        layout: Layout,
        all_rows: bool,
        now: Callable[[], int],
        warn: Callable[[str, str], object],
    ) -> None:
        self.published = 0
        self.refused = 0
        self.superseded = 0
        contacts = solver.problem.contacts
        self._reader = JointStateReader()
        self._joints = JointInput(solver.problem.robot)
        self._contacts = ContactInput(contacts)
        self._always = contacts.names if all_rows else None
        self._output = MatrixOutput(layout)
        self._now = now
        self._warn = warn
        self.set_solver(solver)

    @property
    def algorithm(self) -> str:
        """Name of the algorithm in use."""
        return self._algorithm

    def set_solver(self, solver: DelassusSolver) -> None:
        """Compute with this solver of the same problem from the next joint state on."""
        self._algorithm = solver.algorithm
        self._solver = solver.bind()
        self._q = self._solver.inputs["q"]
        self._output.set_algorithm(solver.algorithm)
        self._activate()

    def set_contacts(self, message: ActiveContacts) -> None:
        """Use this set of active contacts from the next joint state on."""
        before = self._contacts.active
        complaint = self._contacts.read(message.names, message.status)
        if complaint is not None:
            self._warn(complaint.reason.name or "contacts", complaint.text)
        self._output.set_contacts_stamp(message.header.stamp)
        if self._contacts.active != before:
            self._activate()
        else:
            self._set_status()

    def forget_contacts(self) -> None:
        """Be without a set of active contacts until the next one comes."""
        self._contacts.forget()
        self._output.set_contacts_stamp(Time())
        self._activate()

    def answer(self, joint_state: bytes) -> bytes:
        """Return the serialized DelassusMatrix for a serialized JointState.

        Raises
        ------
        RuntimeError
            If the bytes are no joint state.
        """
        state = self._reader.read(joint_state)
        contacts = self._contacts
        reasons = contacts.reasons
        if not (state.sec or state.nanosec):
            reasons |= Reason.STAMP_INVALID
            self._warn("stamp", "joint states have no stamp: age and order cannot be told")
        complaint = self._joints.read(state.names, state.values, self._q)
        if complaint is not None:
            self._warn(complaint.reason.name or "joints", complaint.text)
            return self._refuse(state, reasons | complaint.reason)
        if self._selected() is None:
            if contacts.reasons is Reason.NO_CONTACTS_RECEIVED:
                self._warn("contacts", "no set of active contacts has arrived yet")
            return self._refuse(state, reasons)
        solution = self._solver.solve()
        if solution.status is not Status.OK:
            status = solution.status
            self._warn("solver", f"{self._algorithm} failed: {status.name} at q = {self._q}")
            return self._refuse(state, reasons | _FAILURES[status])
        self.published += 1
        degraded = (
            contacts.degraded or contacts.active is None or bool(reasons & Reason.STAMP_INVALID)
        )
        return self._output.matrix(state, solution, reasons, degraded, self._age(state))

    def supersede(self, count: int) -> None:
        """Note that this many joint states were passed over."""
        self.superseded += count
        self._output.sequence += count

    def _selected(self) -> tuple[str, ...] | None:
        """Return the contacts whose rows are published, or None if that is not known yet."""
        return self._contacts.active if self._always is None else self._always

    def _activate(self) -> None:
        selected = self._selected()
        if selected is None:
            return
        self._solver.activate(selected)
        solution = self._solver.solution
        self._output.set_contacts(solution.contacts, solution.row_offsets)
        self._set_status()

    def _set_status(self) -> None:
        self._output.set_status(self._contacts.status(self._solver.solution.contacts))

    def _refuse(self, state: JointPositions, reasons: Reason) -> bytes:
        self.refused += 1
        return self._output.invalid(state, reasons, self._age(state))

    def _age(self, state: JointPositions) -> float:
        """Return the age of an input, s; NaN without a stamp."""
        if not (state.sec or state.nanosec):
            return math.nan
        return 1e-9 * float(self._now() - state.sec * 1_000_000_000 - state.nanosec)
