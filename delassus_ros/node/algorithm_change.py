"""Following the parameter ``algorithm`` while the node runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rclpy.node import Node
from rclpy.parameter import Parameter

from delassus_ros.algorithms import registered
from delassus_ros.node.computation import Computation
from delassus_ros.node.exchange import make_solver
from delassus_ros.node.handover import Handover
from delassus_ros.node.loop_log import LoopLog
from delassus_ros.node.reasons import Reason
from delassus_ros.node.throttle import Throttle
from delassus_ros.solver import DelassusSolver

_KEPT = 3
"""Solvers that are kept beside the one in use; a kernel takes some hundred kilobytes."""


class AlgorithmChange:
    """Brings the pipeline to the algorithm that the parameter names.

    The pipeline goes on with its present solver until the new one is ready; the exchange
    happens between two joint states. If it fails, the parameter goes back. The last few compiled
    ones that were in use are kept until the node is deactivated, to go back to within a tick.

    Parameters
    ----------
    node : its parameter ``algorithm`` is followed.
    computation : what is computed; its fallback stands in where the algorithm fails.
    between : calls a function after the next matrix is published, if one is.
    prepare : makes ready whatever else is to use a new solver; called by another thread.
    changed : called with each new solver.

    Attributes
    ----------
    failure : why the last change failed; empty if it did not.
    """

    def __init__(
        self,
        node: Node,
        computation: Computation,
        between: Callable[[Callable[[], None]], None],
        prepare: Callable[[DelassusSolver], object],
        changed: Callable[[DelassusSolver], object],
    ) -> None:
        self._node = node
        self._log = LoopLog(node.get_logger())
        self._fail = Throttle(self._log.error)
        self._prepare = prepare
        self._changed = changed
        self._handover = Handover(node, between, self._done, self._failed)
        self._kept: dict[str, DelassusSolver] = {}
        self._dropped: list[DelassusSolver] = []
        """No longer kept; the loop has no time to free machine code."""
        self.set_computation(computation)

    def set_computation(self, computation: Computation) -> None:
        """Follow for another robot; a change that has begun is given up."""
        self.failure = ""
        self._handover.give_up()
        self._kept.clear()
        self._computation = computation
        self._pipeline = computation.pipeline
        self._solver, self._fallback = computation.solver, computation.fallback
        self._wanted = self._solver.algorithm

    @property
    def building(self) -> bool:
        """Whether a change has begun and not ended."""
        return self._handover.building

    @property
    def configured(self) -> str:
        """Name of the algorithm that is to compute; where another one does, it stands in."""
        return self._solver.algorithm

    def follow(self) -> None:
        """Look at the parameter and begin what it takes to follow it."""
        wanted = registered(self._node.get_parameter("algorithm").value)
        if self.building and self._wanted == wanted:
            return
        self._handover.give_up()
        self.failure = ""
        # Where something stands in for it, it is to be tried again: made anew, as a back end may
        # have been left in any state.
        if wanted == self._solver.algorithm == self._pipeline.algorithm:
            return
        self._wanted = wanted
        kept = self._kept.get(wanted)
        if kept is not None:
            self._handover.offer(kept)
            return
        self._handover.begin(f"making {wanted}", lambda unwanted: self._made(wanted, unwanted))

    def stand_in(self) -> None:
        """Have the fallback compute from the next joint state on, unless it does."""
        failed = self._pipeline.algorithm
        if self._fallback is not None and failed != self._fallback.algorithm:
            self._pipeline.set_solver(self._fallback, Reason.FALLBACK_ALGORITHM)
            self._changed(self._fallback)
            self._fail(
                "stand in",
                f"{failed!r} failed: {self._fallback.algorithm!r} stands in for it until the "
                "parameter 'algorithm' is set again or the node is activated",
            )

    def give_up(self) -> None:
        """Give up a change that has begun; nobody waits for its thread."""
        self._handover.give_up()

    def close(self) -> None:
        """Give up a change that has begun, end its thread and process, and keep nothing."""
        self._handover.close()
        self._kept.clear()
        self._dropped.clear()

    def _made(self, wanted: str, unwanted: threading.Event) -> DelassusSolver:
        """Return a solver that is ready to be used; called by another thread."""
        self._dropped.clear()
        computation = self._computation
        solver = make_solver(computation.problem, wanted, unwanted)
        computation.pipeline.bindings.of(solver)
        self._prepare(solver)
        return solver

    def _done(self, solver: DelassusSolver) -> None:
        before = self._pipeline.algorithm
        self._pipeline.set_solver(solver)
        self._keep(self._solver, solver)
        self._solver = solver
        self._changed(solver)
        self._log.info(f"algorithm changed from {before!r} to {solver.algorithm!r}")

    def _keep(self, before: DelassusSolver, now: DelassusSolver) -> None:
        """Keep the solver that was in use until now, if it is machine code: that has no state."""
        self._kept.pop(now.algorithm, None)
        if before.operations is None or before.algorithm == now.algorithm:
            return
        self._kept[before.algorithm] = before
        if len(self._kept) > _KEPT:
            # The one that is not in use for longest.
            self._dropped.append(self._kept.pop(next(iter(self._kept))))

    def _failed(self, error: Exception) -> None:
        """Say what went wrong, and set the parameter to the algorithm that is configured."""
        wanted, configured = self._wanted, self._solver.algorithm
        self._fail(
            "change",
            f"cannot change the algorithm to {wanted!r}, {self._pipeline.algorithm!r} goes on: "
            f"{error}",
        )
        # It may have been set to another one meanwhile, which comes with another robot.
        if self._node.get_parameter("algorithm").value == wanted != configured:
            self._node.set_parameters([Parameter("algorithm", value=configured)])
        # Last, as setting the parameter is followed, too.
        self.failure = f"cannot change to {wanted!r}: {error}"
