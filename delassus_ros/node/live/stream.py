"""From the subscriptions to the published matrices, while the node is active."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from time import monotonic_ns, perf_counter, time_ns
from typing import Any

from rclpy.lifecycle import LifecycleNode
from rclpy.subscription import Subscription

from delassus_ros.inputs.findings import Reason
from delassus_ros.node.live.pipeline import WATCHES, Pipeline
from delassus_ros.node.live.publishers import Outputs
from delassus_ros.node.settings import Operation
from delassus_ros.ros.arrival import delay_since
from delassus_ros.ros.messages import deserialized
from delassus_ros.ros.queue import OnMessage
from delassus_ros.ros.realtime import Outcome, RealtimeMode
from delassus_ros.ros.reception import Reception
from delassus_ros.ros.timers import STEADY
from delassus_ros.ros.timing import Schedule, Timing, timer_period
from delassus_ros.ros.topics import CONTACTS, JOINTS, SCHEDULE, topic_of

_SHORTEST_WATCH_PERIOD_S = 0.002
"""Shortest time between checks for silence [s]."""
_IDLE_PERIOD_S = 1.0
"""Time between garbage collections while no message is published [s]."""
_NO_INPUT_LATENCY_S = -1.0
"""Latency in the summary of a message without an input [s]."""
_SETS = (CONTACTS, SCHEDULE)
"""Topics whose publishers need not repeat a message without a timeout."""
_FAILURES = Reason.SOLVER_FAILED | Reason.RESULT_NOT_FINITE


class Stream:
    """Answers joint states from :meth:`start` to :meth:`stop`.

    Parameters
    ----------
    node : node with the subscriptions and the clock.
    warn : takes the kind of a warning and its text.
    pipeline : computes the messages.
    outputs : publishers of the messages.
    operation : limits, rate and real-time use.

    Attributes
    ----------
    timing : latency, jitter and overruns.
    missed : number of missed instants of a fixed rate.
    realtime : outcomes of the requests for real-time use.
    on_failure : called after the algorithm has failed; None for no call.
    """

    def __init__(
        self,
        node: LifecycleNode,
        warn: Callable[[str, str], object],
        pipeline: Pipeline,
        outputs: Outputs,
        operation: Operation,
    ) -> None:
        self.on_failure: Callable[[], object] | None = None
        self.realtime: list[Outcome] = []
        self._node = node
        self._warn = warn
        self._pipeline = pipeline
        self._outputs = outputs
        self._operation = operation
        period = 1.0 / operation.rate if operation.rate else None
        self.timing = Timing(operation.deadline, period)
        self._schedule: Schedule | None = None
        self._mode = RealtimeMode()
        self._watch_timer: Any = None
        self._rate_timer: Any = None
        self._idle_timer: Any = None
        self._reception = Reception(
            node, warn, self._on_jump, lambda step: self._pipeline.set_clock_step(step),
            self._on_fault,
        )  # fmt: skip
        self._after_matrix: Callable[[], object] | None = None
        self._latest_sets: dict[str, tuple[Any, int]] = {}
        """By topic of :data:`_SETS` the latest message, and its time of sending by the monotonic
        clock [ns]."""
        self._arrived = 0.0

    @property
    def active(self) -> bool:
        """Whether joint states are answered."""
        return self._reception.active

    @property
    def subscriptions(self) -> Mapping[str, Subscription]:
        """Subscriptions by topic before remapping; empty while inactive."""
        return self._reception.subscriptions

    @property
    def missed(self) -> int:
        """Number of missed instants of a fixed rate."""
        return 0 if self._schedule is None else self._schedule.missed

    @property
    def topic_names(self) -> list[str]:
        """Full names of the subscribed topics."""
        return self._reception.topic_names

    def start(self) -> None:
        """Subscribe, and answer joint states from now on."""
        self._schedule = None
        self.timing.clear()
        self._pipeline.begin()
        self._reception.start({name: self._callback_of(name) for name in self._pipeline.topics})
        self._pipeline.set_topics(self._reception.full_names)
        self._set_watch()
        if self._operation.rate:
            on_instant = self._reception.surviving(self._on_instant)
            period = 1.0 / self._operation.rate
            self._rate_timer = self._node.create_timer(period, on_instant, clock=STEADY)
        on_idle = self._reception.surviving(self._idle)
        self._idle_timer = self._node.create_timer(_IDLE_PERIOD_S, on_idle, clock=STEADY)
        # Last: the settings apply to all threads, including those of the middleware.
        self.realtime = self._mode.enter(self._operation.realtime)
        self._warn_of_refusals(self.realtime)
        done = "; ".join(outcome.text for outcome in self.realtime if outcome.done)
        self._node.get_logger().info(done)

    def stop(self) -> None:
        """End all subscriptions and timers, and leave real-time mode."""
        self._warn_of_refusals(self._mode.leave())
        self._end_watch()
        for timer in (self._rate_timer, self._idle_timer):
            if timer is not None:
                self._node.destroy_timer(timer)
        self._rate_timer = self._idle_timer = None
        self._after_matrix = None
        self._latest_sets.clear()
        self._reception.stop()
        # The service ~/compute must not use contacts from before as the present ones.
        self._pipeline.reset_contacts()

    def exchange(self, pipeline: Pipeline) -> None:
        """Use the pipeline of another robot from the next joint state on."""
        before, self._pipeline = self._pipeline, pipeline
        if self.active:
            pipeline.begin()
            pipeline.set_clock_step(self._reception.clock_step)
            pipeline.set_topics(self._reception.full_names)
        pipeline.take_over(before)
        if self.active:
            # Subscribers get this message before the first matrix of the other robot.
            self._say(pipeline.announce())
            self._take_sets_again()
            self.timing.pause()

    def after_matrix(self, action: Callable[[], object]) -> None:
        """Call a function once, after the next published matrix; replaces one that waits."""
        self._after_matrix = action

    def set_operation(self, operation: Operation) -> None:
        """Use other limits and another deadline from the next joint state on.

        Rate and real-time use do not change.
        """
        before, self._operation = self._operation, operation
        self.timing.deadline = operation.deadline
        self._pipeline.limits = operation.limits
        if self.active and operation.limits.input_timeout != before.limits.input_timeout:
            self._set_watch()

    def _callback_of(self, name: str) -> OnMessage:
        """Return the callback of a topic."""
        if name in _SETS:
            on_message = partial(self._on_message, name)
            return self._reception.surviving(on_message, self._on_fault_of_contacts)
        if name != JOINTS:
            return partial(self._on_message, name)
        return self._keep if self._operation.rate else self._on_joint_state

    def _take_sets_again(self) -> None:
        """Use the latest set or schedule of contacts again; its age goes on."""
        for name, (message, sent) in self._latest_sets.items():
            self._pipeline.read(name, message, time_ns() - (monotonic_ns() - sent))

    def _set_watch(self) -> None:
        self._end_watch()
        period = max(self._operation.limits.patience / WATCHES, _SHORTEST_WATCH_PERIOD_S)
        # The timer has a steady clock: with the node's clock, it would wait after a step back
        # until the clock has come to the old time again.
        watch = self._reception.surviving(self._watch)
        self._watch_timer = self._node.create_timer(period, watch, clock=STEADY)

    def _end_watch(self) -> None:
        if self._watch_timer is not None:
            self._node.destroy_timer(self._watch_timer)
            self._watch_timer = None

    def _warn_of_refusals(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            if not outcome.done:
                self._node.get_logger().warning(outcome.text)

    def _on_fault(self, text: str) -> None:
        """Drop all inputs after a fault: the next answers are INVALID until new inputs come.

        A set or schedule of contacts without a timeout is used again.
        """
        self._without_inputs(text)
        if self._operation.limits.contacts_timeout == math.inf:
            retake = self._reception.surviving(self._take_sets_again, self._on_fault_of_contacts)
            retake()
        else:
            self._latest_sets.clear()

    def _on_fault_of_contacts(self, text: str) -> None:
        """Drop all inputs after a fault in processing a set of contacts."""
        self._without_inputs(text)
        self._latest_sets.clear()

    def _without_inputs(self, text: str) -> None:
        self._pipeline.reset_contacts()
        self._pipeline.clock_jumped()
        # Without a summary: the fault may be in the summary.
        self._outputs.publish(self._pipeline.fault(text))
        self._outputs.publish_secondary(self._pipeline)

    # Inputs.

    def _on_joint_state(self, message: bytes, sent: int, count: int) -> None:
        arrived = perf_counter()
        pipeline = self._pipeline
        pipeline.due = arrived + self.timing.deadline
        waiting = self._reception.waiting(JOINTS, message, sent, count)
        if len(waiting) == 1:
            answer = pipeline.answer(message, sent, count)
        else:
            # All are processed: the last one may be unusable, or have some of the joints.
            for item in waiting:
                self._reception.reading(self._take_in, *item)
            self._reception.catch_up(JOINTS)
            answer = pipeline.answer_kept()
        if answer is not None:
            self.timing.begin(arrived, arrived)
            self._send(answer)

    def _keep(self, message: bytes, sent: int, count: int) -> None:
        """Take a joint state and those that wait behind it, in order."""
        waiting = self._reception.waiting(JOINTS, message, sent, count)
        for item in waiting:
            self._reception.reading(self._take_in, *item)
        if len(waiting) > 1:
            self._reception.catch_up(JOINTS)

    def _take_in(self, message: bytes, sent: int, count: int) -> None:
        if self._pipeline.take_in(message, sent, count):
            self._arrived = perf_counter()

    def _on_message(self, name: str, data: bytes, sent: int, count: int) -> None:
        """Take a message of any topic except the joint states."""
        topic = topic_of(name)
        message = deserialized(data, topic.kind, topic.what)
        if name in _SETS:
            self._latest_sets[name] = message, monotonic_ns() - delay_since(sent, time_ns())
        self._pipeline.read(name, message, sent, count)

    def _on_instant(self) -> None:
        """Answer the newest joint state since the last instant of a fixed rate."""
        began = perf_counter()
        if self._schedule is None:
            period = timer_period(self._operation.rate)
            # The schedule is half a period ahead, so that a slightly early timer misses nothing.
            self._schedule = Schedule(period, began - 0.5 * period)
        if not self._schedule.take(began):
            return
        self.timing.begin(began, self._arrived)
        self._pipeline.due = self._arrived + self.timing.deadline
        answer = self._pipeline.answer_kept()
        if answer is not None:
            self._send(answer)

    def _watch(self) -> None:
        """Publish INVALID while no matrix has been published for long."""
        answer = self._pipeline.watch()
        if answer is not None:
            self._say(answer)
            self.timing.pause()

    def _idle(self) -> None:
        """Collect garbage also while no matrix is published, and older garbage."""
        self._mode.idle()
        self._mode.rest()

    def _on_jump(self) -> None:
        """Drop all inputs with a time after a jump of the clock."""
        self._pipeline.clock_jumped()
        self.timing.pause()

    # Outputs.

    def _say(self, message: bytes) -> None:
        """Publish a message that does not answer a joint state."""
        self._outputs.publish(message)
        self._outputs.publish_secondary(self._pipeline)
        self._outputs.summarize(self._pipeline, _NO_INPUT_LATENCY_S, self.timing.overruns)

    def _send(self, answer: bytes) -> None:
        """Publish an answer, then do the work that is not urgent."""
        pipeline, timing = self._pipeline, self.timing
        self._outputs.publish(answer)
        latency = timing.end(perf_counter())
        self._outputs.publish_secondary(pipeline)
        self._outputs.summarize(pipeline, latency, timing.overruns)
        if self.on_failure is not None and pipeline.last.reasons & _FAILURES:
            self.on_failure()
        if self._after_matrix is not None:
            action, self._after_matrix = self._after_matrix, None
            action()
        self._mode.idle()
