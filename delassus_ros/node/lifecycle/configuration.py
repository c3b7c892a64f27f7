"""The parts of the node that exist from configure to cleanup."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from delassus_msgs.msg import (
    ContactDynamics,
    DelassusMatrix,
    EstimatedContacts,
    Layout,
    Summary,
)
from rclpy.lifecycle import LifecycleNode

from delassus_ros.node.lifecycle.changes import AlgorithmChange, DescriptionChange
from delassus_ros.node.lifecycle.computation import Computation
from delassus_ros.node.lifecycle.diagnostics import Account
from delassus_ros.node.lifecycle.horizon import Horizon
from delassus_ros.node.lifecycle.services import ComputeService
from delassus_ros.node.live.pipeline import DYNAMICS, ESTIMATED, LAYOUT, MATRIX, SUMMARY
from delassus_ros.node.settings import Operation, Settings
from delassus_ros.problem import Problem
from delassus_ros.ros.diagnostics import Entry, Report
from delassus_ros.ros.logs import LoopLog
from delassus_ros.ros.publishers import Publishers
from delassus_ros.ros.qos import OUTPUTS, Mismatches
from delassus_ros.ros.stream import Stream
from delassus_ros.ros.timers import now_of
from delassus_ros.ros.topics import LATCHED
from delassus_ros.solver.solver import DelassusSolver

Warn = Callable[[str, str], object]


class Configuration:
    """Publishers, stream, services, changes and diagnostics of a configured node.

    Parameters
    ----------
    node : the node.
    warn : takes the kind of a warning and its text.
    mismatches : QoS mismatches with other nodes.
    operation : limits, rate and real-time use.
    computation : problem, solvers and pipeline.
    adopted : called when a new robot description is in use.
    refused : called with the reason why a new robot description cannot be used.

    Attributes
    ----------
    operation, computation : the present ones.
    algorithm : follows the parameter ``algorithm``.
    description : follows the robot description.
    stream : answers joint states while the node is active.
    """

    def __init__(
        self,
        node: LifecycleNode,
        warn: Warn,
        mismatches: Mismatches,
        operation: Operation,
        computation: Computation,
        adopted: Callable[[], object],
        refused: Callable[[str], object],
    ) -> None:
        self.operation = operation
        self.computation = computation
        self._node = node
        self._warn = warn
        self._adopted = adopted
        # If one part fails, the parts before it are closed.
        with ExitStack() as undo:
            kinds = {MATRIX: DelassusMatrix, LAYOUT: Layout, SUMMARY: Summary}
            if computation.secondary:
                kinds[DYNAMICS] = ContactDynamics
            if computation.estimates:
                kinds[ESTIMATED] = EstimatedContacts
            qos = {LAYOUT: LATCHED}
            topics = {name: (kind, qos.get(name, OUTPUTS)) for name, kind in kinds.items()}
            self._publishers = Publishers(node, warn, topics, (SUMMARY,))
            undo.callback(self._publishers.close)
            self.stream = Stream(
                node, warn, computation.pipeline, self._publishers, operation.deadline,
                operation.rate, operation.limits.patience, operation.realtime,
            )  # fmt: skip
            undo.callback(self.stream.stop)
            self._compute = ComputeService(node, warn, computation, operation.limits.condition)
            undo.callback(self._compute.close)
            undo.callback(Horizon(node, warn, self._compute).close)
            self.algorithm = AlgorithmChange(
                node,
                computation,
                self.stream.handover(),
                self._compute.prepare,
                self._compute.set_solver,
            )
            undo.callback(self.algorithm.close)
            self._set_stand_in(computation)
            self.description = DescriptionChange(
                node, self.stream.handover(), self._make, self._adopt, refused
            )
            undo.callback(self.description.close)
            self._account = Account(
                node, mismatches, self.stream, self._publishers, self.description
            )
            self._report = Report(node, operation.diagnostics_period, self._entries)
            undo.callback(self._report.close)
            self._undo = undo.pop_all()

    def close(self) -> None:
        """Close all parts."""
        self._undo.close()

    def activate(self) -> None:
        """Start the stream."""
        self._publish_layout()
        self._account.restart()
        self.stream.start()
        if not self.description.building:
            # A change of the description includes the algorithm.
            self.algorithm.follow()
        sources = " and ".join(self.stream.topic_names)
        matrices = self._publishers.topics[MATRIX]
        self._node.get_logger().info(f"active: from {sources} to {matrices}")

    def deactivate(self) -> None:
        """Stop the stream; the kernel stays."""
        self.stream.stop()
        self.algorithm.close()

    def set_operation(self, operation: Operation) -> None:
        """Use other limits, rate and reports from the next joint state on."""
        before, self.operation = self.operation, operation
        self.stream.timing.deadline = operation.deadline
        self.stream.set_patience(operation.limits.patience)
        self.computation.pipeline.limits = operation.limits
        condition = operation.limits.condition
        if condition != before.limits.condition:
            self._compute.set_condition(condition)
        if operation.diagnostics_period != before.diagnostics_period:
            self._report.set_period(operation.diagnostics_period)

    def _make(
        self,
        settings: Settings,
        description: str,
        solver_of: Callable[[Problem, str], DelassusSolver],
    ) -> Computation:
        """Return the computation of a description; called by a background thread."""
        limits, now = self.operation.limits, now_of(self._node)
        computation = Computation.make(settings, description, limits, now, self._warn, solver_of)
        self._compute.prepare(computation.solver)
        return computation

    def _adopt(self, computation: Computation) -> None:
        """Use the computation of another description from the next joint state on."""
        before = self.computation
        # The limits may have changed since it was made.
        computation.pipeline.limits = self.operation.limits
        self.computation = computation
        self.algorithm.set_computation(computation)
        self._set_stand_in(computation)
        self._compute.set_computation(computation)
        if self.stream.active:
            self._publish_layout()
        self.stream.exchange(computation.pipeline)
        computation.pipeline.take_over(before.pipeline)
        if self.stream.active:
            # Subscribers get this message before the first matrix of the other robot.
            messages = computation.pipeline.announce(self._publishers.wanted)
            self.stream.publish_unasked(messages)
        self._adopted()
        LoopLog(self._node.get_logger()).info(
            f"robot description changed from that of {before.problem.robot.name} to "
            f"{computation.words}"
        )
        if self.stream.active:
            self.algorithm.follow()

    def _publish_layout(self) -> None:
        """Publish the meaning of the rows, latched: it holds from now on."""
        layout = self.computation.layout
        layout.header.stamp = self._node.get_clock().now().to_msg()
        self._publishers.publish(LAYOUT, layout)

    def _set_stand_in(self, computation: Computation) -> None:
        stand_in = self.algorithm.stand_in
        self.stream.on_failure = None if computation.fallback is None else stand_in

    def _entries(self) -> tuple[list[Entry], str]:
        entries = self._account.entries(self.computation, self.algorithm)
        return entries, self.computation.problem.robot.name
