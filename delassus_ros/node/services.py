"""The services: matrices at other configurations, and which algorithms there are."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from delassus_msgs.srv import Compute, ListAlgorithms
from delassus_msgs_py import MessageError, numpy_to_matrix
from rclpy.lifecycle import LifecycleNode

from delassus_ros.conditioning import ConditionSettings
from delassus_ros.errors import DelassusError, InputError
from delassus_ros.node.bindings import Bindings
from delassus_ros.node.computation import Computation
from delassus_ros.node.on_demand import Answer, OnDemand, list_algorithms
from delassus_ros.node.reasons import Reason
from delassus_ros.solver import DelassusSolver

_BASE = "base_orientation"


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
                request.joints, request.positions, contacts, orientation
            )
            response.matrix = self._message(answer)
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
