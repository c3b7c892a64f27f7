"""Following the parameter ``algorithm`` while the node runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.parameter import Parameter

from delassus_ros.node.clocks import STEADY
from delassus_ros.node.exchange import Making, make_solver, yielding
from delassus_ros.node.pipeline import Pipeline
from delassus_ros.node.reasons import Reason
from delassus_ros.problem import Problem
from delassus_ros.solver import DelassusSolver

_POLL = 0.02  # s between looks at a solver in the making


class AlgorithmChange:
    """Brings the pipeline to the algorithm that the parameter names.

    The pipeline goes on with its present solver until the new one is ready; the exchange
    happens between two joint states. If it fails, the parameter goes back.

    Parameters
    ----------
    node : its parameter ``algorithm`` is followed.
    problem : what to compute.
    pipeline : gets the solvers.
    between : calls a function after the next matrix is published, if one is.
    changed : called with each new solver.
    solver : the one in use at first.
    fallback : stands in where the algorithm fails; None for nothing.

    Attributes
    ----------
    failure : why the last change failed; empty if it did not.
    """

    def __init__(
        self,
        node: Node,
        problem: Problem,
        pipeline: Pipeline,
        between: Callable[[Callable[[], None]], None],
        changed: Callable[[DelassusSolver], object],
        solver: DelassusSolver,
        fallback: DelassusSolver | None = None,
    ) -> None:
        self.failure = ""
        self._node = node
        self._problem = problem
        self._pipeline = pipeline
        self._between = between
        self._changed = changed
        self._solver = solver
        self._fallback = fallback
        self._making: Making[DelassusSolver] | None = None
        self._made_for = ""
        self._timer: Any = None
        self._offered = False

    @property
    def building(self) -> bool:
        """Whether a change has begun and not ended."""
        return self._making is not None

    @property
    def configured(self) -> str:
        """Name of the algorithm that is to compute; where another one does, it stands in."""
        return self._solver.algorithm

    def follow(self) -> None:
        """Look at the parameter and begin what it takes to follow it."""
        wanted = self._node.get_parameter("algorithm").value
        if self.building and self._made_for == wanted:
            return
        self.close()
        self.failure = ""
        # Where something stands in for it, it is to be tried again: made anew, as a back end may
        # have been left in any state.
        if wanted == self._solver.algorithm == self._pipeline.algorithm:
            return
        self._offered = False
        self._made_for = wanted
        self._making = Making(f"making {wanted}", lambda closed: self._made(wanted, closed))
        self._timer = self._node.create_timer(_POLL, self._poll, clock=STEADY)

    def stand_in(self) -> None:
        """Have the fallback compute from the next joint state on, unless it does."""
        failed = self._pipeline.algorithm
        if self._fallback is not None and failed != self._fallback.algorithm:
            self._pipeline.set_solver(self._fallback, Reason.FALLBACK_ALGORITHM)
            self._node.get_logger().error(
                f"{failed!r} failed: {self._fallback.algorithm!r} stands in for it until the "
                "parameter 'algorithm' is set again or the node is activated"
            )

    def close(self) -> None:
        """Give up an exchange that has begun, and end its process."""
        if self._making is not None:
            self._making.close()
        self._making = None
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None

    def _made(self, wanted: str, closed: threading.Event) -> DelassusSolver:
        """Return a solver that is ready to be used; called by another thread."""
        solver = make_solver(self._problem, wanted, closed)
        with yielding():
            self._pipeline.bindings.of(solver)
        return solver

    def _poll(self) -> None:
        making = self._making
        if making is None or not making.ready():
            return
        if self._offered:
            # No matrix has come since the last look.
            self._finish(making)
        else:
            self._offered = True
            self._between(lambda: self._finish(making))

    def _finish(self, making: Making[DelassusSolver]) -> None:
        """Make the exchange, unless it was given up meanwhile."""
        if making is not self._making:
            return
        before = self._pipeline.algorithm
        try:
            solver = making.result()
            self._pipeline.set_solver(solver)
        except Exception as error:
            # A plug-in is somebody else's code: whatever it raises, the old one goes on.
            wanted = self._made_for
            self.close()
            self._revert(wanted, error)
            return
        self._solver = solver
        self.close()
        self._changed(solver)
        self._node.get_logger().info(f"algorithm changed from {before!r} to {solver.algorithm!r}")

    def _revert(self, wanted: str, error: Exception) -> None:
        """Say what went wrong, and set the parameter to the algorithm in use."""
        before = self._solver.algorithm
        self._node.get_logger().error(
            f"cannot change the algorithm to {wanted!r}, {before!r} goes on: {error}"
        )
        self._node.set_parameters([Parameter("algorithm", value=before)])
        # Last, as setting the parameter is followed, too.
        self.failure = f"cannot change to {wanted!r}: {error}"
