"""From the subscriptions to the published messages of a node, while the node is active."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from functools import partial
from time import perf_counter, time_ns
from typing import Any, Protocol

from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from delassus_ros.ros.arrival import Arrival, delay_since
from delassus_ros.ros.publishers import Publishers
from delassus_ros.ros.queue import OnMessage
from delassus_ros.ros.realtime import Outcome, RealtimeMode, RealtimeSettings
from delassus_ros.ros.reception import Reception
from delassus_ros.ros.timers import STEADY
from delassus_ros.ros.timing import Schedule, Timing, timer_period
from delassus_ros.ros.topics import JOINTS

WATCHES = 10
"""Number of checks for silence within the time that silence may last."""
_SHORTEST_WATCH_PERIOD_S = 0.002
"""Shortest time between checks for silence [s]."""
_IDLE_PERIOD_S = 1.0
"""Time between garbage collections while no message is published [s]."""
_NO_INPUT_LATENCY_S = -1.0
"""Latency of a message without an input [s]."""

Messages = Iterator[tuple[str, Any]]
"""Messages in the order of their urgency, each with the topic before remapping."""


class TickInputs(Protocol):
    """The inputs of a tick; see :class:`delassus_ros.inputs.inputs.Inputs`."""

    def set_clock_step(self, step: int) -> None:
        """Set the longest step of simulated time [ns]."""

    def set_topics(self, full: Mapping[str, str]) -> None:
        """Set the full names of the topics, by their names before remapping."""


class Tick(ABC):
    """Computes the messages that a node publishes from the bytes of its inputs.

    Attributes
    ----------
    system_now : time of the system clock [ns], with which times of sending are compared.
    due : instant of :func:`time.perf_counter` after which an answer is late [s].
    latency : time from the input to the publication of the latest answer [s]; -1 for a message
        that answers no input.
    last_publication : arrival of the latest message at its subscribers.
    """

    inputs: TickInputs

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self.system_now: Callable[[], int] = time_ns
        self.due = math.inf
        self.latency, self.overruns = _NO_INPUT_LATENCY_S, 0
        self.last_publication = Arrival()

    def arrival(self, sent: int) -> tuple[int, int]:
        """Return the time of the node's clock, and the time since a message was sent [ns].

        The clocks are read in this order: a pause between the two reads makes the message older,
        never younger.
        """
        now = self._now()
        return now, delay_since(sent, self.system_now())

    def silence_beyond(self, patience: float, now: int) -> float | None:
        """Return the time since the last message [ns], infinite before the first message.

        None within `patience` [s] of the last message.
        """
        since = self.last_publication.since(now)
        if since is None:
            return math.inf
        return since if since > 1e9 * patience else None

    @property
    @abstractmethod
    def topics(self) -> tuple[str, ...]:
        """Names of the topics to subscribe to; the joint states come last."""

    @property
    def has_failed(self) -> bool:
        """Whether the computation of the latest answer has failed."""
        return False

    @abstractmethod
    def begin(self) -> None:
        """Return to the initial state, at activation of the node."""

    @abstractmethod
    def end(self) -> None:
        """Drop inputs that must not be used while the node is inactive."""

    @abstractmethod
    def clock_jumped(self) -> None:
        """Drop all inputs with a time, e.g. when a simulation was reset."""

    @abstractmethod
    def read(self, topic: str, data: bytes, sent: int = 0, count: int = 0) -> bool:
        """Read a message for the next answer; return whether a joint state is to be answered.

        The topic is named as before remapping; `sent` and `count` are those of
        :data:`~delassus_ros.ros.queue.OnMessage`.

        Raises
        ------
        UnreadableError
            If the bytes are not such a message.
        """

    @abstractmethod
    def answer(self, wanted: Container[str] = (), at_once: bool = False) -> Messages:
        """Yield the messages for the joint state that waits for its answer, if there is one.

        Each message is computed when the caller requests the next one: the first message is
        published before the work for the second one begins.

        Parameters
        ----------
        wanted : optional topics that have a subscriber; without one they are not published.
        at_once : whether the joint state was read just before, so that its age still holds.
        """

    @abstractmethod
    def watch(self, wanted: Container[str] = ()) -> Messages:
        """Yield the INVALID messages about a long silence, if there is one."""

    @abstractmethod
    def fault(self, text: str) -> Messages:
        """Drop all inputs after a fault of this program, and yield the INVALID messages."""


class Stream:
    """Answers joint states from :meth:`start` to :meth:`stop`.

    Parameters
    ----------
    deadline : longest time from a joint state to its answer [s]; infinite for none.
    rate : answers per second [1/s]; 0 for an answer to every joint state.
    patience : time after which a silence is reported [s].
    qos : QoS of topics that differs from the usual one.

    Attributes
    ----------
    realtime : outcomes of the requests for real-time use.
    on_failure : called after the computation of an answer has failed; None for no call.
    """

    def __init__(
        self,
        node: LifecycleNode,
        warn: Callable[[str, str], object],
        tick: Tick,
        publishers: Publishers,
        deadline: float,
        rate: float,
        patience: float,
        realtime: RealtimeSettings,
        qos: Mapping[str, QoSProfile] = {},
    ) -> None:
        self.on_failure: Callable[[], object] | None = None
        self.realtime: list[Outcome] = []
        self._node, self._tick, self._publishers = node, tick, publishers
        self._rate, self._patience = rate, patience
        self._realtime, self._qos = realtime, qos
        self.timing = Timing(deadline, 1.0 / rate if rate else None)
        self._schedule: Schedule | None = None
        self._mode = RealtimeMode()
        self._watch_timer: Any = None
        self._rate_timer: Any = None
        self._idle_timer: Any = None
        self._reception = Reception(
            node, warn, self._on_jump, lambda step: self._tick.inputs.set_clock_step(step),
            self._on_fault,
        )  # fmt: skip
        self._after_answer: Callable[[], object] | None = None
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
        self._tick.begin()
        callbacks = {name: self._callback_of(name) for name in self._tick.topics}
        self._reception.start(callbacks, self._qos)
        self._tick.inputs.set_topics(self._reception.full_names)
        self._set_watch()
        if self._rate:
            on_instant = self._reception.surviving(self._on_instant)
            self._rate_timer = self._node.create_timer(1.0 / self._rate, on_instant, clock=STEADY)
        on_idle = self._reception.surviving(self._idle)
        self._idle_timer = self._node.create_timer(_IDLE_PERIOD_S, on_idle, clock=STEADY)
        # Last: the settings apply to all threads, including those of the middleware.
        self.realtime = self._mode.enter(self._realtime)
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
        self._after_answer = None
        self._reception.stop()
        self._tick.end()

    def exchange(self, tick: Tick) -> None:
        """Use another tick from the next joint state on."""
        self._tick = tick
        if self.active:
            tick.begin()
            tick.inputs.set_clock_step(self._reception.clock_step)
            tick.inputs.set_topics(self._reception.full_names)

    def after_answer(self, action: Callable[[], object]) -> None:
        """Call a function once, after the next answer; replaces one that waits."""
        self._after_answer = action

    def set_patience(self, patience: float) -> None:
        """Report a silence after another time from now on [s]."""
        changed = patience != self._patience
        self._patience = patience
        if self.active and changed:
            self._set_watch()

    def publish_unasked(self, messages: Messages) -> None:
        """Publish messages that answer no joint state."""
        self._tick.latency, self._tick.overruns = _NO_INPUT_LATENCY_S, self.timing.overruns
        for topic, message in messages:
            self._publishers.publish(topic, message)
            # The next interval is not one between two answers.
            self.timing.pause()

    def _callback_of(self, topic: str) -> OnMessage:
        """Return the callback of a topic."""
        if topic != JOINTS:
            return partial(self._tick_read, topic)
        return self._on_kept if self._rate else self._on_joint_state

    def _tick_read(self, topic: str, data: bytes, sent: int, count: int) -> None:
        self._tick.read(topic, data, sent, count)

    def _set_watch(self) -> None:
        self._end_watch()
        period = max(self._patience / WATCHES, _SHORTEST_WATCH_PERIOD_S)
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

    # Events.

    def _on_joint_state(self, data: bytes, sent: int, count: int) -> None:
        """Answer the newest of the waiting joint states."""
        arrived = perf_counter()
        self._tick.due = arrived + self.timing.deadline
        is_alone = self._keep(data, sent, count)
        self._publish(arrived, arrived, is_alone)

    def _on_kept(self, data: bytes, sent: int, count: int) -> None:
        """Read a joint state for the next instant of a fixed rate."""
        self._keep(data, sent, count)

    def _keep(self, data: bytes, sent: int, count: int) -> bool:
        """Read a joint state and the queue behind it; return whether the queue was empty.

        All are read, in order: the last joint state may be unusable, or have some of the joints.
        """
        *older, newest = self._reception.waiting(JOINTS, data, sent, count)
        for item in older:
            self._read_joints(*item)
        if older:
            # The newest messages of all other topics wait as well.
            self._reception.catch_up(JOINTS)
        self._read_joints(*newest)
        return not older

    def _read_joints(self, data: bytes, sent: int, count: int) -> None:
        if self._reception.reading(self._tick.read, JOINTS, data, sent, count):
            self._arrived = perf_counter()

    def _on_instant(self) -> None:
        """Answer the newest joint state since the last instant of a fixed rate."""
        began = perf_counter()
        if self._schedule is None:
            period = timer_period(self._rate)
            # The schedule is half a period ahead, so that a slightly early timer misses nothing.
            self._schedule = Schedule(period, began - 0.5 * period)
        if self._schedule.is_due(began):
            self._tick.due = self._arrived + self.timing.deadline
            self._publish(began, self._arrived)

    def _publish(self, began: float, arrived: float, at_once: bool = False) -> None:
        """Publish the answer, then do the work that is not urgent; both times are in s."""
        tick, publishers, timing = self._tick, self._publishers, self.timing
        messages = tick.answer(publishers.wanted, at_once)
        first = next(messages, None)
        if first is not None or self._rate:
            timing.begin(began, arrived)
        if first is None:
            return
        publishers.publish(*first)
        tick.latency, tick.overruns = timing.end(perf_counter()), timing.overruns
        for topic, message in messages:
            publishers.publish(topic, message)
        if self.on_failure is not None and tick.has_failed:
            self.on_failure()
        if self._after_answer is not None:
            action, self._after_answer = self._after_answer, None
            action()
        self._mode.idle()

    def _watch(self) -> None:
        """Publish INVALID while no answer has been published for long."""
        self.publish_unasked(self._tick.watch(self._publishers.wanted))

    def _idle(self) -> None:
        """Collect garbage also while no answer is published, and older garbage."""
        self._mode.idle()
        self._mode.rest()

    def _on_jump(self) -> None:
        """Drop all inputs with a time after a jump of the clock."""
        self._tick.clock_jumped()
        self.timing.pause()

    def _on_fault(self, text: str) -> None:
        """Drop all inputs after a fault: the next answers are INVALID until new inputs arrive."""
        self.publish_unasked(self._tick.fault(text))
