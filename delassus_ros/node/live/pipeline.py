"""From joint states and contacts to matrices: one tick, between the messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from time import perf_counter, time_ns
from typing import Any
from weakref import WeakKeyDictionary

from builtin_interfaces.msg import Time
from delassus_msgs.msg import ActiveContacts, Layout

from delassus_ros.closure import Closure
from delassus_ros.conditioning.monitor import Conditioning, ConditionMonitor
from delassus_ros.conditioning.structural_rank import (
    closed_configurations,
    generic_matrices,
)
from delassus_ros.errors import ProblemError
from delassus_ros.inputs.contact_estimator import ContactEstimator
from delassus_ros.inputs.findings import Finding, LastAnswer, Reason, Validity
from delassus_ros.inputs.inputs import Inputs, TickStatus
from delassus_ros.inputs.joints import Gate, InputStatus
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.motion import MotionInput
from delassus_ros.inputs.orientation import OrientationInput
from delassus_ros.inputs.schedule import ScheduleInput
from delassus_ros.model.chains import at_singular_angle, ball_joints
from delassus_ros.model.spatial import Array
from delassus_ros.node.outputs.dynamics import DynamicsOutput
from delassus_ros.node.outputs.forces import ForceOutput, JudgedForces
from delassus_ros.node.outputs.matrix import MatrixOutput
from delassus_ros.ros.arrival import Arrival, delay_since, write_stamp
from delassus_ros.ros.health import InputHealth
from delassus_ros.ros.topics import CONTACTS, JOINTS
from delassus_ros.scalars.ports import Status
from delassus_ros.solver.bound import BoundSolver
from delassus_ros.solver.solution import Solution
from delassus_ros.solver.solver import DelassusSolver


class Bindings:
    """Bindings of solvers, kept as long as their solver lives."""

    def __init__(self) -> None:
        self._made: WeakKeyDictionary[DelassusSolver, BoundSolver] = WeakKeyDictionary()

    def of(self, solver: DelassusSolver) -> BoundSolver:
        """Return the binding of a solver, made at the first call.

        The thread of the first call may be another than the thread that computes.

        Raises
        ------
        AlgorithmError
            If the algorithm cannot be prepared for the problem.
        """
        bound = self._made.get(solver)
        if bound is None:
            bound = self._made[solver] = solver.bind()
        return bound


_FAILURES = {
    Status.NOT_POSITIVE_DEFINITE: Reason.SOLVER_FAILED,
    Status.NOT_FINITE: Reason.RESULT_NOT_FINITE,
    Status.FAILED: Reason.SOLVER_FAILED,
    Status.SINGULAR_LOOP: Reason.LOOP_SINGULAR,
    Status.NOT_CLOSED: Reason.LOOP_NOT_CLOSED,
    Status.NOT_UNIT: Reason.ORIENTATION_INVALID,
}
WATCHES = 10
"""Number of checks for silence within the time that silence may last."""
_ORIENTATION = "base_orientation"
# Members under module names: a look-up in the enumeration takes as long as a few additions.
_IGNORED, _REFUSED, _WEAK = Gate.IGNORED, Gate.REFUSED, Conditioning.WEAK
_OK, _VALID, _DEGRADED = Status.OK, Validity.OK, Validity.DEGRADED


class Pipeline:
    """Turns joint states into messages with matrices.

    Parameters
    ----------
    solver : solver of the matrices.
    layout : meaning of the rows.
    all_rows : put all contacts into every matrix, whether active or not; matrices are then
        computed also without a set of active contacts.
    now : time of the node's clock [ns].
    warn : takes the kind of a warning and its text.
    limits : limits of the inputs and thresholds; may be changed at any time.
    closure : closure of a robot with couplings or loops.
    orientation : orientation and twist of a floating base; None if no output needs them.
    motion : velocities and efforts; None if no output needs them.
    estimator : estimates the active contacts instead of a topic; None for the topic.
    schedule : the contacts to come, which tell the active ones; None without a schedule.
    secondary : messages of the secondary outputs; None without such outputs.

    Attributes
    ----------
    published, refused, superseded : number of joint states answered by a matrix, answered by
        INVALID (a silence counts as one), and skipped for a newer one; since :meth:`begin`.
    due : instant of :func:`time.perf_counter` after which a matrix is late [s].
    last : state of the last published message.
    structural : matrices of all contacts at generic configurations; see
        :func:`~delassus_ros.conditioning.structural_rank.generic_matrices`.
    bindings : bindings of the solvers.
    system_now : time of the system clock [ns], with which times of sending are compared.

    Raises
    ------
    RobotError
        If the robot has joints whose positions a joint state cannot carry.
    ProblemError
        If the closure or the orientation is missing.
    InputError
        If a limit is out of range.
    NumericalError
        If the solver fails at all of the generic configurations.
    """

    def __init__(
        self,
        solver: DelassusSolver,
        layout: Layout,
        all_rows: bool,
        now: Callable[[], int],
        warn: Callable[[str, str], object],
        limits: Limits | None = None,
        closure: Closure | None = None,
        orientation: OrientationInput | None = None,
        motion: MotionInput | None = None,
        secondary: DynamicsOutput | None = None,
        estimator: ContactEstimator | None = None,
        schedule: ScheduleInput | None = None,
    ) -> None:
        problem = solver.problem
        self._balls = ball_joints(problem.robot)
        if orientation is None and any(port.name == _ORIENTATION for port in problem.inputs):
            raise ProblemError("axes 'world' with base 'floating' needs an orientation input")
        limits = Limits() if limits is None else limits
        self.published = self.refused = self.superseded = 0
        self.due = math.inf
        self.last = LastAnswer()
        self._now, self._warn = now, warn
        self.system_now: Callable[[], int] = time_ns
        self._set_limits(limits)
        observed = None if estimator is None else estimator.motion
        self._inputs = Inputs(
            problem, warn, limits, closure, orientation, motion, observed, schedule
        )
        self.estimator, self._schedule = estimator, schedule
        self._secondary, self._motion = secondary, motion
        self._unmoved: Finding | None = None
        self._matrix_of: tuple[Solution, Array] | None = None
        self._contacts = self._inputs.contacts
        self._placements = self._inputs.placements
        self._turns_rows = any(port.name == _ORIENTATION for port in problem.inputs)
        configurations = None if closure is None else closed_configurations(closure)
        self.structural = generic_matrices(solver, configurations=configurations)
        self._monitor = ConditionMonitor(problem, self.structural, limits.condition)
        self._always = problem.contacts.names if all_rows else None
        self._stale = False
        self._mode: Any = None
        """The mode of the schedule whose contacts are in use."""
        self._went = Arrival()
        self._output = MatrixOutput(layout)
        self._q = solver.problem.robot.neutral()
        self.bindings = Bindings()
        self.set_solver(solver)
        self.clock_jumped()

    @property
    def algorithm(self) -> str:
        """Name of the algorithm in use."""
        return self._algorithm

    @property
    def sequence(self) -> int:
        """Number of the last message, superseded instants included."""
        return self._output.sequence

    @property
    def inputs(self) -> Mapping[str, Array]:
        """Inputs of the latest matrix by port; overwritten by the next joint state."""
        return self._solver.inputs

    @property
    def present_contacts(self) -> tuple[str, ...] | None:
        """The active contacts; None if no set has come, or if it was refused or is too old."""
        return None if self._contacts.stale(self._now()) else self._contacts.active

    @property
    def limits(self) -> Limits:
        """The limits in force.

        If a limit is out of range, the setter raises InputError and changes nothing.
        """
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        self._inputs.set_limits(limits)
        if limits.condition != self._limits.condition:
            self._monitor.settings = limits.condition
        self._set_limits(limits)

    def _set_limits(self, limits: Limits) -> None:
        self._limits = limits
        self._patience = 1e9 * limits.patience * (1.0 - 1.0 / WATCHES)

    def set_solver(self, solver: DelassusSolver, reason: Reason = Reason.NONE) -> None:
        """Compute with this solver of the same problem from the next joint state on.

        Parameters
        ----------
        solver : solver of the matrices; adopted without delay if :attr:`bindings` has it.
        reason : reason that all its matrices carry, e.g. that a fallback replaces an algorithm.
        """
        # First: if the binding fails, the present solver stays in use.
        bound = self.bindings.of(solver)
        before, self._q = self._q, bound.inputs["q"]
        # A joint state may be waiting for its matrix.
        self._q[...] = before
        self._solver, self._algorithm = bound, solver.algorithm
        self._is_approximate = solver.is_approximate
        self._solver_text = f"{solver.algorithm} stands in for the configured algorithm"
        if self._is_approximate:
            reason |= Reason.APPROXIMATE_ALGORITHM
            self._solver_text = f"{solver.algorithm} is an approximation for this robot"
        self._of_solver = reason
        self._output.set_algorithm(solver.algorithm)
        self._activate()

    # Inputs.

    def begin(self) -> None:
        """Return to the initial state, at activation of the node."""
        self.reset_contacts()
        self.clock_jumped()
        self._went.reset()
        self.last = LastAnswer()
        self.published = self.refused = self.superseded = 0

    def take_over(self, before: Pipeline) -> None:
        """Take over placements and counts of the pipeline that this one replaces."""
        if self._placements is not None and before._placements is not None:
            self._placements.adopt(before._placements)
        # A joint state that waits there is never answered.
        before.clock_jumped()
        self._output.sequence = before.sequence
        self.last.stamp_ns = before.last.stamp_ns
        self.published, self.refused = before.published, before.refused
        self.superseded = before.superseded

    def clock_jumped(self) -> None:
        """Drop all inputs with a time, e.g. when a simulation was reset.

        Contacts are dropped if they have a timeout, since their publisher then repeats them.
        """
        if self._inputs.kept.gate is not _IGNORED:
            self.supersede(1)
        if self._limits.contacts_timeout < math.inf:
            self.reset_contacts()
        self._inputs.restart(self._now())
        if self.estimator is not None:
            self.estimator.reset()
        if self._secondary is not None and self._secondary.forces is not None:
            self._secondary.forces.reset()

    def set_clock_step(self, step: int) -> None:
        """Set the longest step of simulated time [ns]; stamps may be ahead by one step."""
        self._inputs.set_clock_step(step)

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics to subscribe to; the joint states come last."""
        told = () if self.estimator is None and self._schedule is None else (CONTACTS,)
        return (*(topic for topic in self._inputs.by_topic if topic not in told), JOINTS)

    def set_topics(self, full: Mapping[str, str]) -> None:
        """Set the full names of the topics for messages, by their names before remapping."""
        self._inputs.set_topics(full)

    def read(self, topic: str, message: Any, sent: int = 0, count: int = 0) -> None:
        """Use a message of a topic from the next joint state on.

        Parameters
        ----------
        topic : name of the topic before remapping, except that of the joint states.
        message : message of the topic's type.
        sent : time of sending, by the system clock of the publisher [ns]; 0 if unknown.
        count : number of the message among those of its publisher; 0 if unknown.
        """
        if topic == CONTACTS:
            self.set_contacts(message, sent, count)
        else:
            self._inputs.read(topic, message, *self._arrived(sent), count)

    def set_contacts(self, message: ActiveContacts, sent: int = 0, count: int = 0) -> None:
        """Use this set of active contacts from the next joint state on; see :meth:`read`."""
        before = self._contacts.active
        self._inputs.read(CONTACTS, message, *self._arrived(sent), count)
        self._stale = False
        self._output.set_contacts_stamp(message.header.stamp)
        if self._contacts.active != before:
            self._activate()
        else:
            self._set_status()

    def reset_contacts(self) -> None:
        """Drop the set of active contacts until the next one comes."""
        self._inputs.reset_contacts()
        self._without_contacts()

    def _without_contacts(self) -> None:
        self._stale, self._mode = False, None
        self._output.set_contacts_stamp(Time())
        self._activate()

    def _arrived(self, sent: int) -> tuple[int, int]:
        """Return the time of the node's clock, and the time since a message was sent [ns].

        The clocks are read in this order: a pause between the two reads makes the message older,
        never younger.
        """
        now = self._now()
        return now, delay_since(sent, self.system_now())

    # Ticks.

    @property
    def positions(self) -> Array:
        """Positions (nq,) of the last accepted joint state [rad, m]; overwritten by the next."""
        return self._q

    def answer(self, joint_state: bytes, sent: int = 0, count: int = 0) -> bytes | None:
        """Return the serialized DelassusMatrix for a serialized JointState.

        Parameters
        ----------
        joint_state : serialized sensor_msgs/JointState.
        sent : time of sending, by the system clock of the publisher [ns]; 0 if unknown.
        count : number of the message among those of its publisher; 0 if unknown.

        Returns
        -------
        The message; None if the joint state is ignored, or is an incomplete part.

        Raises
        ------
        UnreadableError
            If the bytes are not a joint state.
        """
        now, delay = self._arrived(sent)
        _, superseded = self._inputs.read_joints(joint_state, now, delay, self._q, count)
        if superseded:
            self.supersede(superseded)
        return self._publishable(now)

    def take_in(self, joint_state: bytes, sent: int = 0, count: int = 0) -> bool:
        """Take a joint state, which :meth:`answer_kept` answers unless a newer one comes first.

        Parameters
        ----------
        joint_state, sent, count : as for :meth:`answer`.

        Returns
        -------
        Whether it is to be answered; False if it is ignored, or is an incomplete part.

        Raises
        ------
        UnreadableError
            If the bytes are not a joint state.
        """
        now, delay = self._arrived(sent)
        taken, superseded = self._inputs.read_joints(joint_state, now, delay, self._q, count)
        if superseded:
            self.supersede(superseded)
        return taken

    def answer_kept(self) -> bytes | None:
        """Return the message for the joint state that waits for its answer; None without one."""
        now = self._now()
        self._inputs.grow_old(now)
        return self._publishable(now)

    def secondary_outputs(self) -> bytes | None:
        """Return the message of the secondary outputs; None without such outputs.

        To be called before the next joint state is answered. The message is INVALID if the matrix
        is, or if an input of the motion is missing.
        """
        output, last = self._secondary, self.last
        if output is None:
            return None
        if self._matrix_of is None:
            return output.invalid(last.stamp_ns, self.sequence, last.reasons, last.text)
        warning = self._unmoved
        if warning is not None:
            reasons = last.reasons | warning.reason
            return output.invalid(last.stamp_ns, self.sequence, reasons, warning.text)
        solution, matrix = self._matrix_of
        reasons, text, degraded = last.reasons, last.text, last.validity is _DEGRADED
        if self._motion is not None and self._motion.caveat is not None:
            caveat = self._motion.caveat
            reasons, text, degraded = reasons | caveat.reason, text or caveat.text, True
        forces = None if output.forces is None else self._forces(output.forces, solution)
        return output.message(
            last.stamp_ns, self.sequence, solution, matrix, reasons, text, degraded,
            self._limits, forces,
        )  # fmt: skip

    def _forces(self, output: ForceOutput, solution: Solution) -> JudgedForces:
        """Return the contact forces of the latest matrix."""
        touching: tuple[str, ...] | None = None
        if self._always is not None:
            touching = self._contacts.active
            if touching is None or self._stale:
                return output.unknown(solution, self._limits.forces)
        forces = output.solve(solution, touching, self._limits.forces)
        if forces.warning is not None:
            self._warn("forces", forces.warning.text)
        return forces

    @property
    def latest_motion(self) -> tuple[Solution, Array] | None:
        """Solution of the latest matrix and its velocities (n,); None if either is unknown."""
        if self._matrix_of is None or self._unmoved is not None or self._motion is None:
            return None
        return self._matrix_of[0], self._solver.inputs["rates"]

    @property
    def secondary_state(self) -> tuple[Validity, Reason, str] | None:
        """Validity, reasons and text of the latest secondary outputs; None without outputs."""
        output = self._secondary
        return None if output is None else (output.validity, output.reasons, output.text)

    def watch(self) -> bytes | None:
        """Return the INVALID message about a long silence; None without a silence.

        To be called :data:`WATCHES` times per
        :attr:`~delassus_ros.inputs.limits.Limits.patience`, so that a message is published at
        least once per that time.
        """
        now = self._now()
        since = self._went.since(now)
        if since is not None and since <= self._patience:
            return None
        status = self._inputs.silence(now, math.inf if since is None else since)
        return None if status is None else self._message(status, now)

    def fault(self, text: str) -> bytes:
        """Return the INVALID message about a fault of this program, with the reason in words."""
        return self._say(Reason.SOLVER_FAILED, text)

    def announce(self) -> bytes:
        """Return the INVALID message that separates the matrices of two robots."""
        text = "another robot description is in use from here on"
        return self._say(Reason.ROBOT_CHANGED, text, self.last.stamp_ns)

    def _say(self, reason: Reason, text: str, stamp: int = 0) -> bytes:
        """Return a message that answers no joint state."""
        status = InputStatus(_REFUSED, stamp, math.nan, Reason.NONE, text)
        return self._invalid(status, reason, text)

    def supersede(self, count: int) -> None:
        """Count joint states that were skipped for a newer one."""
        self.superseded += count
        self._output.sequence += count

    def _publishable(self, now: int) -> bytes | None:
        kept = self._inputs.kept
        if kept.gate is _IGNORED:
            return None
        answer = self._message(kept, now)
        kept.gate = _IGNORED
        return answer

    def _message(self, status: InputStatus, now: int) -> bytes:
        """Return the message for a status of the joint positions."""
        self._went.note(now)
        if self.estimator is not None and status.gate is Gate.READY:
            self._tell_contacts(self.estimator, status.stamp, now)
        if self._schedule is not None and status.gate is Gate.READY:
            self._tell_scheduled(self._schedule, status.stamp, now)
        tick = self._inputs.tick_status(status, now, self._always is not None)
        if tick.stale is not self._stale:
            self._stale = tick.stale
            self._set_status()
        if tick.missing or status.gate is _REFUSED:
            return self._invalid(status, tick.reasons, tick.text)
        if self._placements is not None:
            self._placements.write(self._solver.inputs)
        if self._turns_rows:
            target = self._solver.inputs[_ORIENTATION]
            self._inputs.write_orientation(status.stamp, target, self._q)
        if self._motion is not None:
            self._unmoved = self._inputs.write_motion(status.stamp, now, self._solver.inputs)
        solution = self._solver.solve()
        if solution.status is Status.TOO_FAR:
            # The text of the gate names the joint.
            return self._invalid(status, tick.reasons | Reason.JOINT_FAR, tick.text)
        if solution.status is not _OK:
            text = f"{self._algorithm} failed: {solution.status.name} at q = {self._q}"
            cause = at_singular_angle(self._balls, self._q)
            text = f"{text}; {cause}" if cause else text
            self._warn("solver", text)
            return self._invalid(status, tick.reasons | _FAILURES[solution.status], text)
        return self._matrix(status, solution, tick)

    def _tell_contacts(self, estimator: ContactEstimator, stamp: int, now: int) -> None:
        """Set the active contacts by the estimated forces."""
        limits, step = self._limits, self._inputs.clock_step
        warning = estimator.update(self._q, stamp, now, limits.max_skew, step)
        if warning is not None:
            self._withhold(warning)
            return
        message = ActiveContacts(names=estimator.contacts.names, status=estimator.status)
        self._tell(message, stamp)
        if estimator.caveat is not None:
            self._contacts.doubt(estimator.caveat)

    def _tell_scheduled(self, schedule: ScheduleInput, stamp: int, now: int) -> None:
        """Set the active contacts to those of the schedule at the joint state."""
        found = schedule.at(stamp, now)
        if isinstance(found, Finding):
            self._withhold(found)
        elif found is self._mode and stamp >= self._contacts.latest.taken:
            # The set is in use already, which spares the greater part of the time of a new set.
            write_stamp(found.header.stamp, stamp)
            self._contacts.repeat(stamp, now)
            self._output.set_contacts_stamp(found.header.stamp)
        else:
            self._tell(found, stamp)
            self._mode = found

    def _withhold(self, warning: Finding) -> None:
        """Be without contacts, for a reason that their source gives."""
        self._inputs.warn_of(warning)
        self._contacts.withhold(warning)
        self._without_contacts()

    def _tell(self, message: ActiveContacts, stamp: int) -> None:
        """Set the active contacts, known at a stamp [ns]."""
        write_stamp(message.header.stamp, stamp)
        self.set_contacts(message)

    def _matrix(self, status: InputStatus, solution: Solution, tick: TickStatus) -> bytes:
        """Return the message with a matrix."""
        seen = self._monitor.examine(solution.matrix)
        reasons, text = tick.reasons, tick.text
        if self._of_solver:
            reasons |= self._of_solver
            text = text or self._solver_text
        if seen.damping:
            reasons |= Reason.DAMPED
        if seen.conditioning >= _WEAK:
            reasons |= Reason.ILL_CONDITIONED
        if perf_counter() > self.due:
            reasons |= Reason.OVERRUN
        degraded = (
            tick.doubtful
            or self._is_approximate
            or self._contacts.degraded
            or self._contacts.active is None
            or bool(status.reasons)
        )
        self.published += 1
        last = self.last
        last.validity = _DEGRADED if degraded else _VALID
        last.reasons, last.text, last.examination = reasons, text, seen
        last.stamp_ns, last.age = status.stamp, status.age
        last.rows, last.contacts = len(solution.matrix), solution.contacts
        last.compute_time = seconds = solution.compute_time
        self._matrix_of = solution, seen.matrix
        return self._output.matrix(status.stamp, seconds, seen, reasons, degraded, status.age)

    def _invalid(self, status: InputStatus, reasons: Reason, text: str) -> bytes:
        self.refused += 1
        last = self.last
        last.validity, last.reasons, last.text = Validity.INVALID, reasons, text
        last.stamp_ns, last.age = status.stamp, status.age
        last.examination, last.rows, last.contacts = None, 0, ()
        last.compute_time = 0.0
        self._matrix_of = None
        return self._output.invalid(status.stamp, reasons, status.age)

    # Contacts.

    def _activate(self) -> None:
        active = self._contacts.active
        selected = active if self._always is None else self._always
        if selected is None:
            return
        self._solver.activate(selected)
        self._monitor.activate(selected)
        solution = self._solver.solution
        self._output.set_contacts(solution.contacts, solution.row_offsets)
        self._set_status()

    def _set_status(self) -> None:
        contacts = self._solver.solution.contacts
        if self._stale:
            self._output.set_status([ActiveContacts.UNKNOWN] * len(contacts))
        else:
            self._output.set_status(self._contacts.status(contacts))

    # Reports.

    def healths(self) -> dict[str, InputHealth]:
        """Return the health of the inputs, by their topics before remapping."""
        found = self._inputs.healths(self.last, self._now())
        return {topic: found[topic] for topic in self.topics}
