"""The parts of the node that exist from configure to cleanup."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from delassus_msgs.msg import (
    ContactDynamics,
    DelassusMatrix,
    EstimatedContacts,
    Layout,
    Summary,
)

from delassus.algorithms import registered
from delassus.errors import AlgorithmError
from delassus.problem import Problem
from delassus.solver.solver import DelassusSolver
from delassus_ros.inputs.findings import Reason
from delassus_ros.node.change import Change, Target
from delassus_ros.node.computation import Computation, make_solver
from delassus_ros.node.diagnostics import DiagnosticEntries
from delassus_ros.node.horizon import Horizon
from delassus_ros.node.parameters import Operation, Settings
from delassus_ros.node.refusals import ALGORITHM, refusal_of_algorithm
from delassus_ros.node.services import ComputeService
from delassus_ros.node.tick import DYNAMICS, ESTIMATED, LAYOUT, MATRIX, SUMMARY
from delassus_ros.ros.diagnostics import DiagnosticPublisher, Entry
from delassus_ros.ros.lifecycle_program import LifecycleProgram
from delassus_ros.ros.logs import LoopLog, Throttle
from delassus_ros.ros.publishers import Publishers
from delassus_ros.ros.qos import OUTPUTS, Mismatches
from delassus_ros.ros.stream import Stream
from delassus_ros.ros.timers import now_of
from delassus_ros.ros.topics import LATCHED

Warn = Callable[[str, str], object]


class Configuration:
    """Publishers, stream, services, changes and diagnostics of a configured node.

    Attributes
    ----------
    operation : the present limits, rate and real-time use.
    change : follows the robot description and the parameter ``algorithm``.
    """

    def __init__(
        self,
        node: LifecycleProgram,
        warn: Warn,
        mismatches: Mismatches,
        operation: Operation,
        computation: Computation,
    ) -> None:
        self.operation = operation
        self._node = node
        self._warn = warn
        self._log = LoopLog(node.get_logger())
        self._fail = Throttle(self._log.error)
        self._retired: DelassusSolver | None = None
        """Solver that the next background thread frees: a tick has no time for that."""
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
                node, warn, computation.tick, self._publishers, operation.deadline,
                operation.rate, operation.limits.patience, operation.realtime,
            )  # fmt: skip
            undo.callback(self.stream.stop)
            self._compute = ComputeService(node, warn, computation, operation.limits.condition)
            undo.callback(self._compute.close)
            undo.callback(Horizon(node, warn, self._compute).close)
            self._set_stand_in(computation)
            self.change = Change(node, self.stream, computation, self._build, self._adopt)
            undo.callback(self.change.close)
            self._diagnostic_entries = DiagnosticEntries(
                node, mismatches, self.stream, self._publishers, self.change
            )
            self._diagnostics = DiagnosticPublisher(
                node, operation.diagnostics_period, self._entries
            )
            undo.callback(self._diagnostics.close)
            self._undo = undo.pop_all()

    @property
    def computation(self) -> Computation:
        """The present problem, solvers and tick."""
        return self.change.present

    def close(self) -> None:
        """Close all parts."""
        self._undo.close()

    def activate(self) -> None:
        """Start the stream."""
        self._publish_layout()
        self._diagnostic_entries.restart()
        self.stream.start()
        self.change.follow({ALGORITHM})
        sources = " and ".join(self.stream.topic_names)
        matrices = self._publishers.topics[MATRIX]
        self._node.get_logger().info(f"active: from {sources} to {matrices}")

    def deactivate(self) -> None:
        """Stop the stream; the kernel stays."""
        self.stream.stop()
        if not self.change.builds_robot:
            self.change.close()
            self._retired = None

    def set_operation(self, operation: Operation) -> None:
        """Use other limits, rate and reports from the next joint state on."""
        before, self.operation = self.operation, operation
        self.stream.timing.deadline = operation.deadline
        self.stream.set_patience(operation.limits.patience)
        self.computation.tick.limits = operation.limits
        condition = operation.limits.condition
        if condition != before.limits.condition:
            self._compute.set_condition(condition)
        if operation.diagnostics_period != before.diagnostics_period:
            self._diagnostics.set_period(operation.diagnostics_period)

    def stand_in(self) -> None:
        """Use the fallback from the next joint state on, if the computation has one."""
        tick, fallback = self.computation.tick, self.computation.fallback
        failed = tick.algorithm
        # Under another name the same algorithm would fail again.
        if fallback is None or registered(failed) == registered(fallback.algorithm):
            return
        tick.set_solver(fallback, Reason.FALLBACK_ALGORITHM)
        self._compute.set_solver(fallback)
        self._fail(
            "stand in",
            f"{failed!r} failed: {fallback.algorithm!r} stands in for it until the parameter "
            "'algorithm' is set again or the node is activated",
        )

    def _build(
        self, target: Target, settings: Settings | None, cancelled: threading.Event
    ) -> Computation:
        """Return the computation of a target; called by a background thread."""
        self._retired = None
        if settings is None:
            present = self.computation
            solver = make_solver(present.problem, target.algorithm, cancelled)
            present.tick.bindings.of(solver)
            computation = replace(present, solver=solver)
        else:
            computation = self._computation_of(target.description, settings, cancelled)
        self._compute.prepare(computation.solver)
        return computation

    def _computation_of(
        self, description: str, settings: Settings, cancelled: threading.Event
    ) -> Computation:
        """Return the computation of another description."""

        def solver_of(problem: Problem, algorithm: str) -> DelassusSolver:
            reason = refusal_of_algorithm(algorithm, problem)
            if reason is not None:
                raise AlgorithmError(reason)
            # The first build compiles the closure of a closed robot as well.
            closed = problem.robot.clustered.is_closed and algorithm == settings.algorithm
            return make_solver(problem, algorithm, cancelled, settings.closure if closed else None)

        limits, now = self.operation.limits, now_of(self._node)
        return Computation.make(settings, description, limits, now, self._warn, solver_of)

    def _adopt(self, before: Computation) -> None:
        """Use the present computation from the next joint state on."""
        if self.computation.tick is before.tick:
            self._adopt_solver(self.computation, before)
        else:
            self._adopt_robot(self.computation, before)

    def _adopt_solver(self, computation: Computation, before: Computation) -> None:
        active, self._retired = before.tick.algorithm, before.solver
        computation.tick.set_solver(computation.solver)
        self._compute.set_computation(computation)
        self._log.info(f"algorithm changed from {active!r} to {computation.solver.algorithm!r}")

    def _adopt_robot(self, computation: Computation, before: Computation) -> None:
        # The limits may have changed since it was made.
        computation.tick.limits = self.operation.limits
        self._set_stand_in(computation)
        self._compute.set_computation(computation)
        if self.stream.active:
            self._publish_layout()
        self.stream.exchange(computation.tick)
        computation.tick.take_over(before.tick)
        if self.stream.active:
            # Subscribers get this message before the first matrix of the other robot.
            messages = computation.tick.announce(self._publishers.wanted)
            self.stream.publish_unasked(messages)
        self._log.info(
            f"robot description changed from that of {before.problem.robot.name} to "
            f"{computation.summary}"
        )

    def _set_stand_in(self, computation: Computation) -> None:
        """Ask after each answer for failures if a fallback can replace the algorithm."""
        has_fallback = computation.fallback is not None
        self.stream.on_failure = self.stand_in if has_fallback else None

    def _publish_layout(self) -> None:
        """Publish the meaning of the rows, latched: it holds from now on."""
        layout = self.computation.layout
        layout.header.stamp = self._node.get_clock().now().to_msg()
        self._publishers.publish(LAYOUT, layout)

    def _entries(self) -> tuple[list[Entry], str]:
        entries = self._diagnostic_entries.entries(self.computation)
        return entries, self.computation.problem.robot.name
