"""The active contacts of the next matrix, by a topic, by a schedule, or by estimated forces."""

from __future__ import annotations

import math
from collections.abc import Callable
from time import monotonic_ns
from typing import Any

from builtin_interfaces.msg import Time
from delassus_msgs.msg import ActiveContacts, EstimatedContacts
from geometry_msgs.msg import Vector3, Wrench

from delassus.conditioning.monitor import ConditionMonitor
from delassus.model.spatial import Array
from delassus.solver.bound import BoundSolver
from delassus_ros.inputs.contact_estimator import ContactEstimator
from delassus_ros.inputs.contacts import NO_SET, ContactInput
from delassus_ros.inputs.findings import Finding, Findings, Validity
from delassus_ros.inputs.inputs import Inputs
from delassus_ros.inputs.placements import PlacementInput
from delassus_ros.inputs.schedule import ScheduleInput
from delassus_ros.node.matrix import MatrixOutput
from delassus_ros.ros.arrival import write_stamp
from delassus_ros.ros.messages import deserialized
from delassus_ros.ros.topics import CONTACTS, SCHEDULE, topic_of

SETS = (CONTACTS, SCHEDULE)
"""Topics whose publishers need not repeat a message without a timeout."""
# Members under module names: a look-up in the enumeration takes as long as a few additions.
_INVALID, _DEGRADED = Validity.INVALID, Validity.DEGRADED


class PresentContacts:
    """Selects the rows of the next matrix by the active contacts, and places moving contacts.

    Parameters
    ----------
    inputs : inputs of the node, to which the next three belong.
    contacts : the set of active contacts, which a schedule and estimated forces set as well.
    schedule : the planned contacts, which determine the active ones; None without a schedule.
    placements : placements of the contacts that move; None if no contact moves.
    estimator : estimates the active contacts; None without an estimate.
    solver, monitor, output : compute, examine and write the selected rows.
    always : contacts of every matrix, whether active or not; None for the active ones.

    Attributes
    ----------
    is_computed : whether :meth:`update` sets the active contacts, not a topic.
    """

    def __init__(
        self,
        inputs: Inputs,
        contacts: ContactInput,
        schedule: ScheduleInput | None,
        placements: PlacementInput | None,
        estimator: ContactEstimator | None,
        solver: BoundSolver,
        monitor: ConditionMonitor,
        output: MatrixOutput,
        always: tuple[str, ...] | None,
        warn: Callable[[str, str], object],
    ) -> None:
        self._inputs, self._warn = inputs, warn
        self._contacts, self._schedule, self.placements = contacts, schedule, placements
        self._estimator = estimator
        self.is_computed = estimator is not None or schedule is not None
        self._solver, self._monitor, self._output = solver, monitor, output
        self._always = always
        self._is_stale = False
        self._mode: Any = None
        """The mode of the schedule whose contacts are in use."""
        self._messages: dict[str, tuple[bytes, int]] = {}
        """The latest message of each topic of :data:`SETS`, and its time of sending by the
        monotonic clock [ns]."""

    def set_solver(self, solver: BoundSolver) -> None:
        """Select the rows of this solver from now on."""
        self._solver = solver
        self._select()

    def set_timeout(self, timeout: float) -> None:
        """Set the age above which contacts and placements are too old [s]."""
        for entry in (self._contacts, self._schedule, self.placements):
            if entry is not None:
                entry.timeout = timeout

    def at(self, now: int) -> tuple[str, ...] | None:
        """Return the active contacts; None if no set has come, or it is refused or too old."""
        return None if self._contacts.stale(now) else self._contacts.active

    @property
    def touching(self) -> tuple[str, ...] | None:
        """The active contacts of the latest matrix; None while unknown."""
        return None if self._is_stale else self._contacts.active

    # Beginnings.

    def reset(self) -> None:
        """Drop contacts and placements, and the messages that :meth:`repeat` reads."""
        self._messages.clear()
        self.drop()

    def drop(self) -> None:
        """Drop contacts, schedule and placements until new ones arrive."""
        for entry in (self._contacts, self._schedule, self.placements):
            if entry is not None:
                entry.reset()
        self._without_contacts()

    def clock_jumped(self) -> None:
        """Drop contacts with a timeout, whose publisher repeats them, and the estimated forces."""
        if self._contacts.timeout < math.inf:
            self.drop()
        if self._estimator is not None:
            self._estimator.reset()

    def take_over(self, before: PresentContacts) -> None:
        """Adopt the messages and the placements of another robot's contacts."""
        self._messages = before._messages
        if self.placements is not None and before.placements is not None:
            self.placements.adopt(before.placements)

    # Messages of the topics, and the other sources.

    def read(self, topic: str, data: bytes, now: int, delay: int, count: int = 0) -> None:
        """Read a message of a topic of :data:`SETS`, and keep its bytes for :meth:`repeat`.

        A message during which the program fails is not kept, nor is the message before it.
        """
        known, entry = topic_of(topic), self._inputs.by_topic[topic]
        message = deserialized(data, known.kind, known.what)
        self._messages.pop(topic, None)
        entry.note_publisher(now, count)
        if topic == CONTACTS:
            self._set(message, now, delay)
        else:
            self._inputs.accept(entry, message, now, delay)
        self._messages[topic] = data, monotonic_ns() - delay

    def repeat(self, now: int) -> None:
        """Read the latest set or schedule of contacts again, with its time of sending."""
        try:
            for topic, (data, sent) in [*self._messages.items()]:
                self.read(topic, data, now, monotonic_ns() - sent)
        except BaseException:
            self.drop()
            raise

    def update(self, q: Array, stamp: int, now: int) -> None:
        """Set the active contacts at a joint state by the estimated forces or the schedule."""
        if self._estimator is not None:
            self._estimate(self._estimator, q, stamp, now)
        if self._schedule is not None:
            self._follow(self._schedule, stamp, now)

    def _estimate(self, estimator: ContactEstimator, q: Array, stamp: int, now: int) -> None:
        inputs = self._inputs
        finding = estimator.update(q, stamp, now, inputs.max_skew, inputs.clock_step)
        if finding is not None:
            self._withhold(finding)
            return
        message = ActiveContacts(names=estimator.contacts.names, status=estimator.status)
        write_stamp(message.header.stamp, stamp)
        self._set(message, now)
        if estimator.doubt is not None:
            self._contacts.add_doubt(estimator.doubt)

    def _follow(self, schedule: ScheduleInput, stamp: int, now: int) -> None:
        mode = schedule.at(stamp, now)
        if isinstance(mode, Finding):
            self._withhold(mode)
            return
        write_stamp(mode.header.stamp, stamp)
        if mode is self._mode and stamp >= self._contacts.latest.taken:
            # The set is in use already, which spares the greater part of the time of a new set.
            self._contacts.repeat(stamp, now)
            self._output.set_contacts_stamp(mode.header.stamp)
        else:
            self._set(mode, now)
            self._mode = mode

    def _set(self, message: ActiveContacts, now: int, delay: int = 0) -> None:
        """Use a set of active contacts from the next matrix on."""
        before = self._contacts.active
        self._inputs.accept(self._contacts, message, now, delay)
        self._is_stale = False
        self._output.set_contacts_stamp(message.header.stamp)
        if self._contacts.active != before:
            self._select()
        else:
            self._set_status()

    def _withhold(self, finding: Finding) -> None:
        """Be without contacts, for a reason that their source gives."""
        self._warn(finding.kind, finding.text)
        self._contacts.withhold(finding)
        self._without_contacts()

    def _without_contacts(self) -> None:
        self._is_stale, self._mode = False, None
        self._output.set_contacts_stamp(Time())
        self._select()

    # The next matrix.

    def judge(self, now: int, findings: Findings) -> None:
        """Add the findings of the set of active contacts; log those of this instant."""
        contacts, inputs = self._contacts, self._inputs
        if contacts.finding is not None:
            # Any other finding was logged when the set was read.
            self._add(contacts.finding, findings, contacts.finding is NO_SET)
        stale = contacts.stale(now)
        if (stale is not None) is not self._is_stale:
            self._is_stale = not self._is_stale
            self._set_status()
        if stale is not None:
            self._add(stale, findings, True)
        if contacts.active is not None:
            # Without doubt_of, as a call per tick counts.
            finding = contacts.doubt(now, inputs.max_skew, inputs.clock_step)
            if finding is not None:
                self._warn(finding.kind, finding.text)
                findings.include(finding)

    def _add(self, finding: Finding, findings: Findings, is_new: bool) -> None:
        if is_new:
            self._warn(finding.kind, finding.text)
        validity = finding.validity
        if self._always is not None and validity is _INVALID:
            # The matrix has the rows of all contacts, whichever are active.
            validity = _DEGRADED
        findings.add(finding.reason, finding.text, validity)

    def finding_of(self, placements: PlacementInput, now: int) -> Finding | None:
        """Return why placements of active contacts are unusable or in doubt, or None."""
        active, inputs = self._contacts.active or (), self._inputs
        return placements.fault_of(active, now) or placements.doubt_of(
            active, now, inputs.max_skew, inputs.clock_step
        )

    def _select(self) -> None:
        """Select the rows of the contacts, if they are known."""
        selected = self._contacts.active if self._always is None else self._always
        if selected is None:
            return
        self._solver.activate(selected)
        self._monitor.activate(selected)
        solution = self._solver.solution
        self._output.set_contacts(solution.contacts, solution.row_offsets)
        self._set_status()

    def _set_status(self) -> None:
        contacts = self._solver.solution.contacts
        if self._is_stale:
            self._output.set_status([ActiveContacts.UNKNOWN] * len(contacts))
        else:
            self._output.set_status(self._contacts.status(contacts))


def estimated_contacts(estimator: ContactEstimator, frame: str) -> EstimatedContacts:
    """Return the latest estimate as a message, in the frame of the rows."""
    message = EstimatedContacts(
        names=estimator.contacts.names, status=estimator.status,
        probability=estimator.probability.tolist(),
    )  # fmt: skip
    write_stamp(message.header.stamp, estimator.stamp)
    message.header.frame_id = frame
    message.wrenches = [
        Wrench(force=Vector3(x=fx, y=fy, z=fz), torque=Vector3(x=mx, y=my, z=mz))
        for fx, fy, fz, mx, my, mz in estimator.wrenches().tolist()
    ]
    return message
