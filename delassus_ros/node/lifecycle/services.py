"""The services: matrices at other configurations beside the stream, and which algorithms exist.

The solver of :class:`OnDemand` computes with buffers of its own, so that the stream's are not
touched.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from delassus_msgs.msg import (
    ActiveContacts,
    ContactDynamics,
    ContactPlacements,
    DelassusMatrix,
)
from delassus_msgs.srv import Compute, ListAlgorithms
from delassus_msgs_py import MessageError, numpy_to_dynamics, numpy_to_matrix
from numpy.typing import ArrayLike
from rclpy.lifecycle import LifecycleNode

from delassus_ros import algorithms
from delassus_ros.conditioning.monitor import (
    ConditionMonitor,
    ConditionSettings,
    Damping,
    Examination,
)
from delassus_ros.dynamics import LoopRates
from delassus_ros.errors import DelassusError, InputError
from delassus_ros.model.spatial import Array
from delassus_ros.node.inputs.closed_joints import BoundClosures, warning_of
from delassus_ros.node.inputs.joints import JointNames, size_mismatch
from delassus_ros.node.inputs.orientation import turned_back
from delassus_ros.node.inputs.placements import places_of
from delassus_ros.node.lifecycle.computation import Computation
from delassus_ros.node.lifecycle.refusals import reason_against
from delassus_ros.node.live.pipeline import Bindings
from delassus_ros.node.outputs.dynamics import blocks_of, fill
from delassus_ros.node.reasons import InputWarning, Reason
from delassus_ros.problem import Problem
from delassus_ros.solver.inputs import check_unit
from delassus_ros.solver.solution import Solution
from delassus_ros.solver.solver import DelassusSolver

_BASE = "base_orientation"
Places = Mapping[str, Mapping[str, Sequence[float]]]
"""Positions and orientations of contacts by name, by the name of the solver's input."""


class ListService:
    """``~/list_algorithms``, in every state of the node.

    Parameters
    ----------
    node : the node that answers.
    computation : returns what is computed at present; None if nothing is.
    """

    def __init__(self, node: LifecycleNode, computation: Callable[[], Computation | None]) -> None:
        self._node = node
        self._computation = computation
        self._service = node.create_service(ListAlgorithms, "~/list_algorithms", self._answer)

    def close(self) -> None:
        """End the service."""
        self._node.destroy_service(self._service)

    def _answer(self, request: Any, response: Any) -> Any:
        computation = self._computation()
        problem = None if computation is None else computation.problem
        found = list_algorithms(problem)
        response.active = "" if computation is None else computation.pipeline.algorithm
        response.names = [each.name for each in found]
        response.applicable = [not each.reason for each in found]
        response.reasons = [each.reason for each in found]
        return response


class ComputeService:
    """``~/compute``, from configure to cleanup.

    Parameters
    ----------
    node : the node that answers.
    warn : takes the kind of a warning and its text.
    computation : what is computed.
    condition : thresholds.
    """

    def __init__(
        self,
        node: LifecycleNode,
        warn: Callable[[str, str], object],
        computation: Computation,
        condition: ConditionSettings,
    ) -> None:
        self._node = node
        self._warn = warn
        self._computation = computation
        self._condition = condition
        self._bindings = Bindings()
        self.prepare(computation.solver)
        self.set_solver(computation.solver)
        self._service = node.create_service(Compute, "~/compute", self._answer)

    def close(self) -> None:
        """End the service."""
        self._node.destroy_service(self._service)

    def set_computation(self, computation: Computation) -> None:
        """Answer for another robot from now on."""
        self._computation = computation
        self.set_solver(computation.solver)

    def set_condition(self, condition: ConditionSettings) -> None:
        """Judge by these thresholds from now on."""
        self._condition = condition
        self.set_solver(self._solver)

    def prepare(self, solver: DelassusSolver) -> None:
        """Make ready to compute with a solver; may take long, and be called by another thread."""
        self._bindings.of(solver)

    def set_solver(self, solver: DelassusSolver) -> None:
        """Compute with this solver, which was prepared, from now on."""
        self._solver = solver
        # Made when somebody asks: the change of an algorithm has no time for it.
        self._on_demand: OnDemand | None = None

    def _answer(self, request: Any, response: Any) -> Any:
        try:
            contacts = self._contacts(request)
            o = request.base_orientation
            needed = any(port.name == _BASE for port in self._computation.problem.inputs)
            orientation = (o.x, o.y, o.z, o.w) if needed else None
            answer = self._answering().compute(
                request.joints,
                request.positions,
                contacts,
                orientation,
                self._motion(request),
                self._places(request.placements),
            )
            response.matrix = self._message(answer)
            response.dynamics = self._secondary(answer, response.matrix)
        except (DelassusError, MessageError) as error:
            response.success = False
            response.message = str(error)
            return response
        except Exception as error:
            # Without an answer, whoever asks waits for ever.
            self._warn("fault of compute", f"a fault of this program:\n{traceback.format_exc()}")
            response.success = False
            response.message = f"a fault of the node: {type(error).__name__}: {error}"
            return response
        response.success = True
        response.largest_eigenvalue = answer.examination.largest
        response.smallest_eigenvalue = answer.examination.smallest
        return response

    def _places(self, message: ContactPlacements) -> Places:
        """Return where contacts are that move, as far as the problem's inputs are that."""
        names, problem = message.names, self._computation.problem
        positions, turns = places_of(message)
        if len(positions) != len(names):
            raise InputError(f"placements have {len(names)} names but {len(positions)} poses")
        if len(set(names)) < len(names):
            raise InputError("placements list a contact more than once")
        return {
            "contact_positions": dict(zip(names, positions, strict=True)),
            "contact_orientations": {
                name: turn
                for name, turn in zip(names, turns, strict=True)
                if name in problem.turning
            },
        }

    def _motion(self, request: Any) -> Motion:
        """Return how the robot moves in what is asked."""
        linear, angular = request.base_twist.linear, request.base_twist.angular
        o = request.base_orientation
        return Motion(
            request.joint_velocities, request.joint_torques,
            (linear.x, linear.y, linear.z, angular.x, angular.y, angular.z), (o.x, o.y, o.z, o.w),
            self._computation.gravity,
        )  # fmt: skip

    def _secondary(self, answer: Answer, matrix: DelassusMatrix) -> ContactDynamics:
        """Return the secondary outputs of a matrix; an INVALID message without outputs."""
        computation, message = self._computation, ContactDynamics()
        if not computation.secondary:
            return message
        fill(message, computation.problem, computation.layout, matrix)
        message.validity, message.reasons = matrix.validity, matrix.reasons
        length = self._condition.characteristic_length
        solution = answer.solution
        blocks = blocks_of(solution, solution.matrix, computation.secondary, length)
        numpy_to_dynamics(message, blocks)
        return message

    def _answering(self) -> OnDemand:
        if self._on_demand is None:
            computation = self._computation
            structural = computation.pipeline.structural
            self._solver.use(self._bindings.of(self._solver))
            self._on_demand = OnDemand(
                self._solver, structural, self._condition, computation.closures
            )
        return self._on_demand

    def _contacts(self, request: Any) -> tuple[str, ...]:
        if request.which_contacts == Compute.Request.CONTACTS_ALL:
            return self._computation.problem.contacts.names
        if request.which_contacts == Compute.Request.CONTACTS_LISTED:
            return tuple(request.contacts)
        if request.which_contacts != Compute.Request.CONTACTS_PRESENT:
            raise InputError(
                f"which_contacts is {request.which_contacts}; expected CONTACTS_PRESENT (0), "
                "CONTACTS_LISTED (1) or CONTACTS_ALL (2)"
            )
        present = self._computation.pipeline.present_contacts
        if present is None:
            raise InputError(
                "there is no present set of active contacts: none has arrived, it was refused or "
                "is too old, or the node is not active; ask for CONTACTS_LISTED or CONTACTS_ALL"
            )
        return present

    def _message(self, answer: Answer) -> DelassusMatrix:
        layout = self._computation.layout
        solution, seen = answer.solution, answer.examination
        kinds = dict(zip(layout.contacts, layout.kinds, strict=True))
        message = DelassusMatrix(
            layout_id=layout.layout_id,
            contacts=list(solution.contacts),
            kinds=[kinds[contact] for contact in solution.contacts],
            status=[ActiveContacts.ACTIVE] * len(solution.contacts),
            row_offsets=list(solution.row_offsets),
            axes=layout.axes,
            validity=(
                DelassusMatrix.VALIDITY_DEGRADED if answer.caveats else DelassusMatrix.VALIDITY_OK
            ),
            conditioning=seen.conditioning,
            rank=seen.rank,
            structural_rank=seen.structural_rank,
            condition=seen.condition,
            algorithm=solution.algorithm,
            compute_time=solution.compute_time,
        )
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.header.frame_id = layout.header.frame_id
        reasons = answer.caveats
        if seen.conditioning >= seen.conditioning.WEAK:
            reasons |= Reason.ILL_CONDITIONED
        message.reasons = int(reasons)
        numpy_to_matrix(message, solution.matrix)
        return message


@dataclass(frozen=True)
class Applicability:
    """Whether an algorithm can solve a problem.

    Attributes
    ----------
    name : name of the algorithm.
    reason : why not; empty if it can.
    """

    name: str
    reason: str


def list_algorithms(problem: Problem | None) -> list[Applicability]:
    """Return all names and aliases of algorithms, with the reason where one does not apply.

    Those whose package is missing are among them; without a problem all others apply.
    """
    found = [
        Applicability(name, (problem and reason_against(name, problem)) or "")
        for name in (*algorithms.names(), *algorithms.aliases())
    ]
    absent = [Applicability(name, reason) for name, reason in algorithms.unavailable().items()]
    return sorted(found + absent, key=lambda each: each.name)


@dataclass(frozen=True)
class Answer:
    """A matrix that somebody asked for, and what is known about it.

    Attributes
    ----------
    solution : the matrix.
    examination : its condition, exactly.
    caveats : why it is to be used with care; none, and it is right for what was asked.
    """

    solution: Solution
    examination: Examination
    caveats: Reason


@dataclass(frozen=True)
class Motion:
    """How a robot moves and is driven, as somebody asks.

    Attributes
    ----------
    velocities, torques : of the joints that positions are given of; or empty for zeros.
    twist : (6,) of a floating base's root link in its own axes, linear first.
    orientation : of that, a unit quaternion x, y, z, w.
    gravity : (3,) in the axes of the world.
    """

    velocities: ArrayLike
    torques: ArrayLike
    twist: Sequence[float]
    orientation: tuple[float, float, float, float]
    gravity: Sequence[float]


def _by_joint(what: str, given: ArrayLike, found: JointNames) -> Array:
    """Return numbers of the robot's joints that were given with their names, or zeros."""
    values = np.asarray(given, dtype=np.float64)
    if values.size not in (0, found.count):
        raise InputError(f"there are {found.count} joints but {values.size} {what}")
    return values[found.places] if values.size else np.zeros(len(found.places))


class OnDemand:
    """Computes matrices at configurations that somebody asks for.

    Parameters
    ----------
    solver : computes them.
    structural : matrices of all contacts at generic configurations; see
        :class:`~delassus_ros.conditioning.monitor.ConditionMonitor`.
    settings : thresholds; its damping is not applied.
    closures : find the joints that are not given, for a robot with couplings or loops; of no
        other use.
    """

    def __init__(
        self,
        solver: DelassusSolver,
        structural: Array,
        settings: ConditionSettings,
        closures: BoundClosures | None = None,
    ) -> None:
        self._solver = solver
        self._closures = closures
        robot, inputs = solver.problem.robot, solver.problem.inputs
        self._joints = robot.joint_names
        moves = any(port.name == "rates" for port in inputs)
        self._loops = LoopRates(robot) if moves and robot.is_closed else None
        # Hysteresis has no meaning between configurations that do not follow each other.
        plain = ConditionSettings(
            settings.characteristic_length, settings.weak, settings.singular, hysteresis=1.0,
            damping=Damping.NONE,
        )  # fmt: skip
        self._monitor = ConditionMonitor(solver.problem, structural, plain)

    def compute(
        self,
        names: Sequence[str],
        positions: ArrayLike,
        active: Iterable[str],
        base_orientation: ArrayLike | None = None,
        motion: Motion | None = None,
        places: Places | None = None,
    ) -> Answer:
        """Return the matrix and what is known about it.

        Parameters
        ----------
        names, positions : joints in any order, and their positions [rad, m]; all joints, or
            those of a robot with couplings or loops that the others follow from. Joints that
            the robot does not have are passed over.
        active : names of the active contacts.
        base_orientation : (4,) unit quaternion x, y, z, w; with world axes and a floating base.
        motion : how the robot moves and is driven; passed over where no output needs it.
        places : contact_positions and contact_orientations of
            :meth:`~delassus_ros.solver.solver.DelassusSolver.solve`; where the problem has them
            for contacts that are not in it.

        Raises
        ------
        InputError
            If a joint is missing or listed twice, numbers are missing or not finite, a contact
            is unknown, the orientation is missing, superfluous or no unit quaternion, or
            no positions of the other joints close the loops on the branch of the reference.
        NumericalError
            If the matrix cannot be computed there.
        BeingMadeError
            If the code for other joints than the independent ones or all of them is being made.
        """
        q, warning = self._q(names, np.asarray(positions, dtype=np.float64).ravel())
        wanted = list(active)
        others: dict[str, Any] = {} if motion is None else self._moving(names, q, motion)
        others |= {name: given for name, given in (places or {}).items() if given}
        solution = self._solver.solve(q, wanted, base_orientation, **others)
        self._monitor.activate(wanted)
        seen = self._monitor.examine(solution.matrix)
        caveats = Reason.NONE if warning is None else warning.reason
        if self._solver.is_approximate:
            caveats |= Reason.APPROXIMATE_ALGORITHM
        return Answer(solution, seen, caveats)

    def _moving(self, names: Sequence[str], q: Array, motion: Motion) -> dict[str, Any]:
        """Return rates, torques and gravity, as many as outputs need."""
        problem = self._solver.problem
        needed = {port.name for port in problem.inputs} & {"rates", "torques", "gravity"}
        if not needed:
            return {}
        found = JointNames(names, self._joints)
        rates = _by_joint("velocities", motion.velocities, found)
        torques = _by_joint("torques", motion.torques, found)
        if self._loops is not None:
            joints = [self._joints[i] for i in found.targets]
            rates = self._loops.independent(joints, rates, q)
            torques = self._loops.torques(joints, torques, q)
        gravity = motion.gravity
        if problem.robot.base == "floating":
            rates = np.concatenate([motion.twist, rates])
            torques = np.concatenate([np.zeros(6), torques])
            if problem.axes == "contact" and "gravity" in needed:
                check_unit("base_orientation", np.reshape(motion.orientation, (4, 1)), "")
                gravity = turned_back(gravity, motion.orientation)
        given = {"rates": rates, "torques": torques, "gravity": np.array(gravity)}
        return {name: given[name] for name in needed}

    def _q(self, names: Sequence[str], positions: Array) -> tuple[Array, InputWarning | None]:
        """Return the positions of all joints, and what there is to say about them."""
        found = JointNames(names, self._joints)
        if found.refusal is not None:
            raise InputError(found.refusal.text)
        if positions.size != found.count:
            raise InputError(size_mismatch(names, positions.size)[1])
        if self._closures is None and not found.is_complete:
            raise InputError(found.missing()[1])
        given = positions[found.places]
        if not np.isfinite(given).all():
            raise InputError(found.not_finite(given)[1])
        if self._closures is None:
            return given, None
        bound = self._closures.of(tuple(self._joints[i] for i in found.targets))
        # The answer depends on the question alone.
        bound.reset()
        bound.measured[...] = given
        status = bound.solve()
        warning = warning_of(bound, status)
        if warning is not None and not status.is_valid:
            raise InputError(warning.text)
        return bound.q.copy(), warning
