"""Services: matrices at requested configurations, beside the stream, and a list of algorithms.

:class:`OnDemand` computes with separate buffers, so that the buffers of the stream do not change.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from delassus_msgs.msg import (
    ActiveContacts,
    ContactDynamics,
    ContactPlacements,
    DelassusMatrix,
)
from delassus_msgs.srv import Compute, ListAlgorithms
from delassus_msgs_py import MessageError, numpy_to_dynamics, numpy_to_matrix
from rclpy.lifecycle import LifecycleNode

from delassus import algorithms
from delassus.conditioning.monitor import ConditionSettings
from delassus.errors import DelassusError, InputError
from delassus.problem import Problem
from delassus.solver.solver import DelassusSolver
from delassus_ros.inputs.placements import places_of
from delassus_ros.node.computation import Computation
from delassus_ros.node.dynamics import blocks_of, fill
from delassus_ros.node.forces import ForceOutput
from delassus_ros.node.on_demand import Answer, Motion, OnDemand, Places
from delassus_ros.node.refusals import reason_against
from delassus_ros.node.tick import Bindings


class ListService:
    """``~/list_algorithms``, in every state of the node.

    Parameters
    ----------
    computation : returns the present computation; None while the node is unconfigured.
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
        response.active = "" if computation is None else computation.tick.algorithm
        response.names = [algorithm.name for algorithm in found]
        response.applicable = [not algorithm.reason for algorithm in found]
        response.reasons = [algorithm.reason for algorithm in found]
        return response


def answered(
    name: str, warn: Callable[[str, str], object], answer: Callable[[Any, Any], None]
) -> Callable[[Any, Any], Any]:
    """Return the callback of a service whose client gets an answer whatever happens.

    Parameters
    ----------
    answer : fills in a response; its exceptions become the message of the response.
    """

    def callback(request: Any, response: Any) -> Any:
        try:
            answer(request, response)
        except (DelassusError, MessageError) as error:
            response.message = str(error)
        except Exception as error:
            # Without an answer, the client would wait for ever.
            warn(f"fault of {name}", f"a fault of this program:\n{traceback.format_exc()}")
            response.message = f"a fault of the node: {type(error).__name__}: {error}"
        else:
            response.success = True
        return response

    return callback


class ComputeService:
    """``~/compute``, from configure to cleanup."""

    def __init__(
        self,
        node: LifecycleNode,
        warn: Callable[[str, str], object],
        computation: Computation,
        condition: ConditionSettings,
    ) -> None:
        self._node = node
        self._computation = computation
        self._condition = condition
        self._bindings = Bindings()
        self.prepare(computation.solver)
        self.set_solver(computation.solver)
        answer = answered("compute", warn, self._answer)
        self._service = node.create_service(Compute, "~/compute", answer)

    def close(self) -> None:
        """End the service."""
        self._node.destroy_service(self._service)

    def set_computation(self, computation: Computation) -> None:
        """Use the computation of another robot from now on."""
        self._computation = computation
        self.set_solver(computation.solver)

    def set_condition(self, condition: ConditionSettings) -> None:
        """Use these thresholds from now on."""
        self._condition = condition
        self.set_solver(self._solver)

    def prepare(self, solver: DelassusSolver) -> None:
        """Bind a solver, which may take long; may be called by another thread."""
        self._bindings.of(solver)

    def set_solver(self, solver: DelassusSolver) -> None:
        """Use this solver from now on; :meth:`prepare` was called with it."""
        self._solver = solver
        # Made at the first request: a change of the algorithm happens between two ticks.
        self._on_demand: OnDemand | None = None

    def _answer(self, request: Any, response: Any) -> None:
        motion = Motion.of(
            request.joint_velocities, request.joint_torques, request.base_twist,
            request.base_orientation,
        )  # fmt: skip
        answer = self.answering().compute(
            request.joints, request.positions, self._contacts(request), motion,
            self._places(request.placements),
        )  # fmt: skip
        response.matrix = self._message(answer)
        response.dynamics = self._secondary(answer, response.matrix)
        response.largest_eigenvalue = answer.examination.largest
        response.smallest_eigenvalue = answer.examination.smallest

    def _places(self, message: ContactPlacements) -> Places:
        """Return positions and orientations of moving contacts, as inputs of the solver."""
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

    def _secondary(self, answer: Answer, matrix: DelassusMatrix) -> ContactDynamics:
        """Return the secondary outputs of a matrix; an INVALID message without outputs."""
        computation, message = self._computation, ContactDynamics()
        if not computation.secondary:
            return message
        fill(message, computation.problem, computation.layout, matrix)
        length, findings = self._condition.characteristic_length, answer.findings
        solution, forces = answer.solution, None
        message.validity = findings.validity
        if "forces" in computation.secondary:
            settings = computation.tick.limits.forces
            forces = ForceOutput(computation.problem).solve(solution, None, settings)
            forces.write(message)
            if forces.finding is not None:
                findings.include(forces.finding)
        message.validity, message.reasons = findings.validity, int(findings.reasons)
        blocks = blocks_of(solution, solution.matrix, computation.secondary, length, forces)
        numpy_to_dynamics(message, blocks)
        return message

    @property
    def computation(self) -> Computation:
        """The present computation."""
        return self._computation

    @property
    def condition(self) -> ConditionSettings:
        """Thresholds for the condition of matrices."""
        return self._condition

    def answering(self) -> OnDemand:
        """Return the computation of single states with the present solver."""
        if self._on_demand is None:
            computation = self._computation
            structural = computation.tick.structural
            self._solver.use(self._bindings.of(self._solver))
            self._on_demand = OnDemand(
                self._solver, structural, self._condition, computation.closures,
                computation.gravity,
            )  # fmt: skip
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
        present = self._computation.tick.present_contacts
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
            validity=answer.findings.validity,
            reasons=int(answer.findings.reasons),
            conditioning=seen.conditioning,
            rank=seen.rank,
            structural_rank=seen.structural_rank,
            condition=seen.condition,
            algorithm=solution.algorithm,
            compute_time=solution.compute_time,
        )
        message.header.stamp = self._node.get_clock().now().to_msg()
        message.header.frame_id = layout.header.frame_id
        numpy_to_matrix(message, solution.matrix)
        return message


@dataclass(frozen=True)
class Applicability:
    """Whether an algorithm can solve a problem; `reason` is the obstacle, or empty."""

    name: str
    reason: str


def list_algorithms(problem: Problem | None) -> list[Applicability]:
    """Return all names and aliases of algorithms, with the reason if one does not apply.

    Algorithms whose package is missing are included. Without a problem, all available algorithms
    apply.
    """
    found = [
        Applicability(name, (problem and reason_against(name, problem)) or "")
        for name in (*algorithms.names(), *algorithms.aliases())
    ]
    absent = [Applicability(name, reason) for name, reason in algorithms.unavailable().items()]
    return sorted(found + absent, key=lambda algorithm: algorithm.name)
