"""Following the parameter ``algorithm`` while the node runs."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node
from rclpy.parameter import Parameter

from delassus_ros.errors import DelassusError
from delassus_ros.node.exchange import Exchange
from delassus_ros.node.pipeline import Pipeline
from delassus_ros.problem import Problem

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
    """

    def __init__(self, node: Node, problem: Problem, pipeline: Pipeline) -> None:
        self._node = node
        self._problem = problem
        self._pipeline = pipeline
        self._exchange: Exchange | None = None
        self._timer: Any = None

    def follow(self) -> None:
        """Look at the parameter and begin what it takes to follow it."""
        wanted = self._node.get_parameter("algorithm").value
        if self._exchange is not None and self._exchange.algorithm == wanted:
            return
        self.close()
        if wanted != self._pipeline.algorithm:
            try:
                self._exchange = Exchange(self._problem, wanted)
            except (DelassusError, OSError) as error:
                self._revert(wanted, error)
                return
            self._timer = self._node.create_timer(_POLL, self._poll)

    def close(self) -> None:
        """Give up an exchange that has begun, and end its process."""
        if self._exchange is not None:
            self._exchange.close()
            self._node.destroy_timer(self._timer)
        self._exchange, self._timer = None, None

    def _poll(self) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        before = self._pipeline.algorithm
        try:
            solver = exchange.poll()
            if solver is None:
                return
            self._pipeline.set_solver(solver)
        except (DelassusError, OSError) as error:
            self.close()
            self._revert(exchange.algorithm, error)
            return
        self.close()
        self._node.get_logger().info(f"algorithm changed from {before!r} to {solver.algorithm!r}")

    def _revert(self, wanted: str, error: Exception) -> None:
        """Say what went wrong, and set the parameter to the algorithm in use."""
        before = self._pipeline.algorithm
        self._node.get_logger().error(
            f"cannot change the algorithm to {wanted!r}, {before!r} goes on: {error}"
        )
        self._node.set_parameters([Parameter("algorithm", value=before)])
