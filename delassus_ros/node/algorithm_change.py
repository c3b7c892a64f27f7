"""Following the parameter ``algorithm`` while the node runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.parameter import Parameter

from delassus_ros.node.exchange import Exchange
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
        self._exchange: Exchange | None = None
        self._timer: Any = None
        self._offered = False

    @property
    def building(self) -> bool:
        """Whether a change has begun and not ended."""
        return self._exchange is not None

    def follow(self) -> None:
        """Look at the parameter and begin what it takes to follow it."""
        wanted = self._node.get_parameter("algorithm").value
        if self._exchange is not None and self._exchange.algorithm == wanted:
            return
        self.close()
        self.failure = ""
        if wanted == self._solver.algorithm:
            if wanted != self._pipeline.algorithm:
                # Something stands in for it, and it is to be tried again.
                self._pipeline.set_solver(self._solver)
            return
        try:
            self._offered = False
            self._exchange = Exchange(self._problem, wanted)
        except Exception as error:
            # A plug-in is somebody else's code: whatever it raises, the old one goes on.
            self._revert(wanted, error)
            return
        self._timer = self._node.create_timer(_POLL, self._poll)

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
        if self._exchange is not None:
            self._exchange.close()
        self._exchange = None
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None

    def _poll(self) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        if not exchange.ready():
            return
        if self._offered:
            # No matrix has come since the last look.
            self._finish(exchange)
        else:
            self._offered = True
            self._between(lambda: self._finish(exchange))

    def _finish(self, exchange: Exchange) -> None:
        """Make the exchange, unless it was given up meanwhile."""
        if exchange is not self._exchange:
            return
        before = self._pipeline.algorithm
        try:
            solver = exchange.solver()
            self._pipeline.set_solver(solver)
        except Exception as error:
            # As above.
            self.close()
            self._revert(exchange.algorithm, error)
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
