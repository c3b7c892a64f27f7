"""From joint states and contacts to matrices, and what follows them: the tick of delassus_node."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from time import perf_counter
from weakref import WeakKeyDictionary

from delassus_msgs.msg import Layout

from delassus.closure import Closure
from delassus.conditioning.monitor import Conditioning, ConditionMonitor, Examination
from delassus.errors import ProblemError
from delassus.model.chains import at_singular_angle, ball_joints
from delassus.model.spatial import Array
from delassus.scalars.ports import Status
from delassus.solver.bound import BoundSolver
from delassus.solver.solution import Solution
from delassus.solver.solver import DelassusSolver
from delassus.solver.structural_rank import generic_matrices
from delassus_ros.inputs.contact_estimator import ContactEstimator
from delassus_ros.inputs.contacts import ContactInput
from delassus_ros.inputs.findings import Finding, Findings, Reason, Validity, doubtful
from delassus_ros.inputs.inputs import Inputs
from delassus_ros.inputs.joints import Gate, InputStatus
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.motion import MotionInput
from delassus_ros.inputs.orientation import OrientationInput
from delassus_ros.inputs.placements import PlacementInput
from delassus_ros.inputs.schedule import ScheduleInput
from delassus_ros.node.dynamics import DynamicsOutput
from delassus_ros.node.forces import ForceOutput, ForceResult
from delassus_ros.node.matrix import MatrixOutput, SummaryOutput
from delassus_ros.node.present_contacts import SETS, PresentContacts, estimated_contacts
from delassus_ros.ros.health import InputHealth
from delassus_ros.ros.stream import WATCHES, Messages, Tick
from delassus_ros.ros.topics import CONTACTS, JOINTS


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
_ALGORITHM_FAILED = Reason.SOLVER_FAILED | Reason.RESULT_NOT_FINITE
MATRIX, DYNAMICS, ESTIMATED, SUMMARY = "~/delassus", "~/dynamics", "~/contacts", "~/summary"
LAYOUT = "~/layout"
"""Topics of the messages, before remapping."""
_ORIENTATION = "base_orientation"
# Members under module names: a look-up in the enumeration takes as long as a few additions.
_IGNORED, _READY, _WEAK, _SOLVED = Gate.IGNORED, Gate.READY, Conditioning.WEAK, Status.OK
_INVALID, _DEGRADED, _VALID = Validity.INVALID, Validity.DEGRADED, Validity.OK
_NO_REASON = Reason.NONE


class LastAnswer(Findings):
    """The latest message and its findings, for summaries and diagnostics.

    Attributes
    ----------
    stamp_ns, age : stamp of the joint positions [ns] and their age [s].
    examination : examination of the matrix, overwritten by the next; None without a matrix.
    compute_time : time to compute the matrix [s]; 0 without a matrix.
    """

    __slots__ = ("age", "compute_time", "contacts", "examination", "rows", "stamp_ns")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Return to the state before the first message."""
        self.clear()
        self.validity = Validity.INVALID

    def clear(self) -> None:
        """Return to the state without findings and without a matrix."""
        # Without a call of the base class: a call per tick counts.
        self.validity, self.reasons, self.text = _VALID, _NO_REASON, ""
        self.stamp_ns, self.age = 0, math.nan
        self.examination: Examination | None = None
        self.rows, self.compute_time = 0, 0.0
        self.contacts: tuple[str, ...] = ()


class DelassusTick(Tick):
    """Turns joint states into messages with matrices.

    Parameters
    ----------
    all_rows : put all contacts into every matrix, whether active or not; matrices are then
        computed also without a set of active contacts.
    limits : limits of the inputs and thresholds; may be changed at any time.
    closure : closure of a robot with couplings or loops.
    orientation : orientation and twist of a floating base; None if no output needs them.
    motion : velocities and efforts; None if no output needs them.
    secondary : messages of the secondary outputs; None without such outputs.
    estimator : estimates the active contacts instead of a topic; None for the topic.
    schedule : the planned contacts, which determine the active ones; None without a schedule.

    Attributes
    ----------
    published, refused, superseded : number of joint states answered by a matrix, answered by
        INVALID (a silence counts as one), and skipped for a newer one; since :meth:`begin`.
    last : the last published message.
    structural : matrices of all contacts at generic configurations; see
        :func:`~delassus.solver.structural_rank.generic_matrices`.

    Raises
    ------
    RobotError
        If the robot has joints whose positions a joint state cannot carry.
    ProblemError
        If the closure or the orientation is missing.
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
        super().__init__(now)
        problem = solver.problem
        self._turns_rows = any(port.name == _ORIENTATION for port in problem.inputs)
        if orientation is None and self._turns_rows:
            raise ProblemError("axes 'world' with base 'floating' needs an orientation input")
        if closure is None and problem.robot.clustered.is_closed:
            raise ProblemError(
                f"robot {problem.robot.name!r} has loops or couplings: they need a closure, which "
                "computes the joints that are not measured"
            )
        self._limits = limits = Limits() if limits is None else limits
        self.published = self.refused = self.superseded = 0
        self.last = LastAnswer()
        self._warn = warn
        self._balls = ball_joints(problem.robot)
        self._orientation, self._motion = orientation, motion
        self.estimator, self._dynamics = estimator, secondary
        self._is_followed = estimator is not None or secondary is not None
        timeout = limits.contacts_timeout
        is_computed = estimator is not None or schedule is not None
        contacts = ContactInput(problem.contacts, timeout, is_computed)
        placements = PlacementInput(problem, timeout) if problem.moving else None
        torques = None if motion is None else motion.torques
        self.inputs: Inputs = Inputs(
            problem.robot, closure, (contacts, schedule, placements, orientation, torques),
            (motion, None if estimator is None else estimator.motion),
            warn, limits.max_skew, limits.input_timeout,
        )  # fmt: skip
        self._arrived = 0
        """Time of the node's clock when the latest joint state was read [ns]."""
        self._motion_fault: Finding | None = None
        self._matrix_of: tuple[Solution, Array] | None = None
        self.structural = generic_matrices(solver)
        self._monitor = ConditionMonitor(problem, self.structural, limits.condition)
        self._output = MatrixOutput(layout)
        self._summary = SummaryOutput(layout, limits.condition.characteristic_length)
        self._layout = layout
        self._q = problem.robot.neutral()
        self.bindings = Bindings()
        self._all_rows = all_rows
        self._contacts = PresentContacts(
            self.inputs, contacts, schedule, placements, estimator, self.bindings.of(solver),
            self._monitor, self._output, problem.contacts.names if all_rows else None, warn,
        )  # fmt: skip
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
    def kernel_inputs(self) -> Mapping[str, Array]:
        """Inputs of the latest matrix by port; overwritten by the next joint state."""
        return self._solver.inputs

    @property
    def positions(self) -> Array:
        """Positions (nq,) of the last accepted joint state [rad, m]; overwritten by the next."""
        return self._q

    @property
    def present_contacts(self) -> tuple[str, ...] | None:
        """The active contacts; None if no set has come, or if it was refused or is too old."""
        return self._contacts.at(self._now())

    @property
    def has_failed(self) -> bool:
        """Whether the algorithm has failed at the latest joint state."""
        return bool(self.last.reasons & _ALGORITHM_FAILED)

    @property
    def limits(self) -> Limits:
        """The limits in force."""
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        before, after = self._limits.condition, limits.condition
        self.inputs.set_limits(limits.max_skew, limits.input_timeout)
        self._contacts.set_timeout(limits.contacts_timeout)
        if self._motion is not None and self._motion.torques is not None:
            self._motion.torques.timeout = limits.input_timeout
        if after != before:
            self._monitor.settings = after
            self._summary = SummaryOutput(self._layout, after.characteristic_length)
        self._limits = limits

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
        self._of_solver: Finding | None = None
        if solver.is_approximate:
            text = f"{solver.algorithm} is an approximation for this robot"
            self._of_solver = doubtful(reason | Reason.APPROXIMATE_ALGORITHM, text)
        elif reason:
            text = f"{solver.algorithm} stands in for the configured algorithm"
            self._of_solver = Finding(reason, text, Validity.OK)
        self._output.set_algorithm(solver.algorithm)
        self._contacts.set_solver(bound)

    # Beginnings.

    @property
    def topics(self) -> tuple[str, ...]:
        """Names of the topics to subscribe to; the joint states come last."""
        computed = (CONTACTS,) if self._contacts.is_computed else ()
        return (*(topic for topic in self.inputs.by_topic if topic not in computed), JOINTS)

    def begin(self) -> None:
        """Return to the initial state, at activation of the node."""
        self.end()
        self.clock_jumped()
        self.last_publication.reset()
        self.last.reset()
        self.published = self.refused = self.superseded = 0

    def end(self) -> None:
        """Drop contacts and placements: a service must not use earlier ones as the present."""
        self._contacts.reset()

    def take_over(self, before: DelassusTick) -> None:
        """Adopt contacts, placements and counts of the tick that this one replaces."""
        self._contacts.take_over(before._contacts)
        # A joint state that waits there is never answered.
        before.clock_jumped()
        self._output.sequence = before.sequence
        self.last.stamp_ns = before.last.stamp_ns
        self.published, self.refused = before.published, before.refused
        self.superseded = before.superseded

    def announce(self, wanted: Container[str] = ()) -> Messages:
        """Yield the INVALID messages that separate the matrices of two robots.

        Then the latest set or schedule of contacts is used again, with its time of sending.
        """
        text = "another robot description is in use from here on"
        stamp = self.last.stamp_ns
        yield from self._without_joint_state(Reason.ROBOT_CHANGED, text, stamp, wanted)
        self._contacts.repeat(self._now())

    def clock_jumped(self) -> None:
        """Drop all inputs with a time, e.g. when a simulation was reset.

        Contacts are dropped if they have a timeout, since their publisher then repeats them.
        """
        if self.inputs.waiting.gate is not _IGNORED:
            self._supersede(1)
        self._contacts.clock_jumped()
        self.inputs.restart(self._now())
        if self._dynamics is not None and self._dynamics.forces is not None:
            self._dynamics.forces.reset()

    def fault(self, text: str) -> Messages:
        """Drop all inputs after a fault of this program, and yield the INVALID messages.

        A set or schedule of contacts without a timeout is then used again.
        """
        if self._limits.contacts_timeout < math.inf:
            self._contacts.reset()
        else:
            self._contacts.drop()
        self.clock_jumped()
        try:
            # Without a summary: the fault may be in the summary.
            yield from self._without_joint_state(Reason.SOLVER_FAILED, text, 0, ())
        finally:
            self._contacts.repeat(self._now())

    # Inputs.

    def read(self, topic: str, data: bytes, sent: int = 0, count: int = 0) -> bool:
        """Read a message, for the next answer; see :meth:`Tick.read`."""
        now, delay = self.arrival(sent)
        if topic == JOINTS:
            self._arrived = now
            is_due, replaces = self.inputs.read_joints(data, now, delay, self._q, count)
            if replaces:
                self._supersede(1)
            return is_due
        if topic in SETS:
            self._contacts.read(topic, data, now, delay, count)
        else:
            self.inputs.read(topic, data, now, delay, count)
        return False

    def _supersede(self, count: int) -> None:
        """Count joint states that were skipped for a newer one."""
        self.superseded += count
        self._output.sequence += count

    # Messages.

    def answer(self, wanted: Container[str] = (), at_once: bool = False) -> Messages:
        """Yield the messages for the joint state that waits: the matrix, then what follows it."""
        waiting = self.inputs.waiting
        if waiting.gate is _IGNORED:
            return
        now = self._arrived
        if not at_once:
            now = self._now()
            self.inputs.update_age(now)
        message = self._message(waiting, now)
        waiting.gate = _IGNORED
        yield MATRIX, message
        if wanted or self._is_followed:
            yield from self._following(wanted)

    def watch(self, wanted: Container[str] = ()) -> Messages:
        """Yield the INVALID messages about a long silence, if there is one.

        To be called :data:`~delassus_ros.ros.stream.WATCHES` times per
        :attr:`~delassus_ros.inputs.limits.Limits.patience`, so that a message is published at
        least once per that time.
        """
        now = self._now()
        since = self.silence_beyond(self._limits.patience * (1.0 - 1.0 / WATCHES), now)
        status = None if since is None else self.inputs.silence(now, since)
        if status is not None:
            yield MATRIX, self._message(status, now)
            yield from self._following(wanted)

    def _without_joint_state(
        self, reason: Reason, text: str, stamp: int, wanted: Container[str]
    ) -> Messages:
        """Yield the INVALID messages for a reason other than the inputs."""
        last = self.last
        last.clear()
        last.stamp_ns = stamp
        last.add(reason, text, Validity.INVALID)
        yield MATRIX, self._invalid()
        yield from self._following(wanted)

    def _message(self, status: InputStatus, now: int) -> bytes:
        """Return the DelassusMatrix for a status of the joint positions."""
        self.last_publication.note(now)
        last = self.last
        last.clear()
        last.stamp_ns, last.age = status.stamp, status.age
        is_ready, contacts = status.gate is _READY, self._contacts
        if is_ready and contacts.is_computed:
            contacts.update(self._q, status.stamp, now)
        if status.reasons or not is_ready:
            last.add(status.reasons, status.text, _DEGRADED if is_ready else _INVALID)
        contacts.judge(now, last)
        orientation = self._orientation if self._turns_rows else None
        if orientation is not None:
            finding = orientation.fault(now)
            finding = finding or self.inputs.doubt_of(orientation, now, status.stamp)
            if finding is not None:
                self._include(finding)
        placements = contacts.placements
        if placements is not None:
            finding = contacts.finding_of(placements, now)
            if finding is not None:
                self._include(finding)
        if last.validity is _INVALID:
            return self._invalid()
        inputs = self._solver.inputs
        if placements is not None:
            placements.write(inputs)
        if orientation is not None:
            orientation.write(status.stamp, inputs[_ORIENTATION], self._q)
        if self._motion is not None:
            self._motion_fault = self._motion.write(
                status.stamp, now, inputs, self._limits.max_skew, self.inputs.clock_step
            )
        solution = self._solver.solve()
        if solution.status is not _SOLVED:
            return self._unsolved(solution)
        return self._matrix(solution)

    def _include(self, finding: Finding) -> None:
        """Add a finding to the next message, and log it."""
        self._warn(finding.kind, finding.text)
        self.last.include(finding)

    def _unsolved(self, solution: Solution) -> bytes:
        """Return the INVALID message for a solution without a matrix."""
        if solution.status is Status.TOO_FAR:
            # The text of the gate names the joint.
            self.last.add(Reason.JOINT_FAR, "", _INVALID)
            return self._invalid()
        text = f"{self._algorithm} failed: {solution.status.name} at q = {self._q}"
        cause = at_singular_angle(self._balls, self._q)
        text = f"{text}; {cause}" if cause else text
        self._warn("solver", text)
        # The text of the inputs, if they have one, is about a matrix that does not come.
        self.last.text = text
        self.last.add(_FAILURES[solution.status], text, _INVALID)
        return self._invalid()

    def _matrix(self, solution: Solution) -> bytes:
        """Return the message with a matrix."""
        seen, last = self._monitor.examine(solution.matrix), self.last
        if self._of_solver is not None:
            last.include(self._of_solver)
        if seen.damping:
            last.reasons |= Reason.DAMPED
        if seen.conditioning >= _WEAK:
            last.reasons |= Reason.ILL_CONDITIONED
        if perf_counter() > self.due:
            last.reasons |= Reason.OVERRUN
        self.published += 1
        last.examination = seen
        last.rows, last.contacts = len(solution.matrix), solution.contacts
        last.compute_time = seconds = solution.compute_time
        self._matrix_of = solution, seen.matrix
        degraded = last.validity is _DEGRADED
        return self._output.matrix(
            last.stamp_ns, seconds, seen, last.reasons, degraded, last.age
        )

    def _invalid(self) -> bytes:
        """Return the INVALID message with the findings."""
        self.refused += 1
        self._matrix_of = None
        last = self.last
        return self._output.invalid(last.stamp_ns, last.reasons, last.age)

    # What follows the matrix.

    def _following(self, wanted: Container[str]) -> Messages:
        """Yield the messages that follow a matrix."""
        if self.estimator is not None and self.estimator.is_known:
            yield ESTIMATED, estimated_contacts(self.estimator, self._layout.header.frame_id)
        if self._dynamics is not None:
            yield DYNAMICS, self._dynamics_message(self._dynamics)
        if SUMMARY in wanted:
            last = self.last
            yield SUMMARY, self._summary.fill(
                divmod(last.stamp_ns, 1_000_000_000), self.sequence, last.validity, last.reasons,
                last.rows, last.examination, (last.compute_time, last.age, self.latency),
                (self.published, self.refused, self.superseded, self.overruns),
            )  # fmt: skip

    def _dynamics_message(self, output: DynamicsOutput) -> bytes:
        """Return the ContactDynamics: INVALID if the matrix is, or an input of the motion."""
        last, findings = self.last, output.findings
        findings.copy(last)
        if self._matrix_of is None:
            return output.invalid(last.stamp_ns, self.sequence)
        if self._motion_fault is not None:
            fault = self._motion_fault
            self._warn(fault.kind, fault.text)
            # The motion is the first reason for which these outputs are INVALID.
            findings.text = fault.text
            findings.include(fault)
            return output.invalid(last.stamp_ns, self.sequence)
        solution, matrix = self._matrix_of
        doubt = None if self._motion is None else self._motion.doubt
        if doubt is not None:
            self._warn(doubt.kind, doubt.text)
            findings.include(doubt)
        forces = None if output.forces is None else self._forces(output.forces, solution)
        return output.message(
            last.stamp_ns, self.sequence, solution, matrix, self._limits, forces
        )

    def _forces(self, output: ForceOutput, solution: Solution) -> ForceResult:
        """Return the contact forces of the latest matrix."""
        touching: tuple[str, ...] | None = None
        if self._all_rows:
            touching = self._contacts.touching
            if touching is None:
                return output.unknown(solution, self._limits.forces)
        forces = output.solve(solution, touching, self._limits.forces)
        if forces.finding is not None:
            self._warn("forces", forces.finding.text)
        return forces

    @property
    def latest_motion(self) -> tuple[Solution, Array] | None:
        """Solution of the latest matrix and its velocities (n,); None if either is unknown."""
        if self._matrix_of is None or self._motion_fault is not None or self._motion is None:
            return None
        return self._matrix_of[0], self._solver.inputs["rates"]

    @property
    def dynamics(self) -> Findings | None:
        """Findings of the latest secondary outputs; None without such outputs."""
        return None if self._dynamics is None else self._dynamics.findings

    # Reports.

    def healths(self) -> dict[str, InputHealth]:
        """Return the health of the inputs, by their topics before remapping."""
        found = self.inputs.healths(self._now(), self.last.stamp_ns)
        return {topic: found[topic] for topic in self.topics}
