"""Subscriptions of an active node, whose callbacks survive faults, and steps of its clock."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.clock import ClockChange, JumpThreshold
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription

from delassus_ros.ros.arrival import ClockSteps, SystemClock
from delassus_ros.ros.messages import UnreadableError
from delassus_ros.ros.qos import subscribe
from delassus_ros.ros.queue import OnMessage, pop, with_time_sent
from delassus_ros.ros.topics import JOINT_STATES, topic_of

_JUMPS = JumpThreshold(
    min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=True
)
_MOST = JOINT_STATES.depth
"""Largest number of messages per read: a fast publisher may never leave the queue empty."""
_STEPS = JumpThreshold(
    min_forward=Duration(nanoseconds=1), min_backward=None, on_clock_change=False
)


class Reception:
    """The subscriptions of a node from :meth:`start` to :meth:`stop`.

    Messages arrive as bytes, with their time of sending. Topics are named as before remapping.

    Parameters
    ----------
    on_jump : called when the clock was set back or replaced: earlier inputs have no age.
    on_step : called with the longest step of simulated time [ns] when that changes.
    on_fault : called with the text of a fault of this program in a callback.

    Attributes
    ----------
    subscriptions : subscriptions by topic; empty while inactive.
    """

    def __init__(
        self,
        node: LifecycleNode,
        warn: Callable[[str, str], object],
        on_jump: Callable[[], object],
        on_step: Callable[[int], object],
        on_fault: Callable[[str], object],
    ) -> None:
        self.subscriptions: dict[str, Subscription] = {}
        self._callbacks: dict[str, OnMessage] = {}
        self._node, self._warn = node, warn
        self._on_jump, self._on_step, self._on_fault = on_jump, on_step, on_fault
        self._jumps: list[Any] = []
        self._steps = ClockSteps(False)
        self._system_clock = SystemClock()

    @property
    def active(self) -> bool:
        """Whether the node is subscribed."""
        return bool(self.subscriptions)

    @property
    def clock_step(self) -> int:
        """Longest step of simulated time [ns]; see :class:`ClockSteps`."""
        return self._steps.longest

    @property
    def topic_names(self) -> list[str]:
        """Full names of the subscribed topics."""
        return [source.topic_name for source in self.subscriptions.values()]

    @property
    def full_names(self) -> dict[str, str]:
        """Full names of the subscribed topics, by their names before remapping."""
        return {name: source.topic_name for name, source in self.subscriptions.items()}

    def start(
        self, callbacks: Mapping[str, OnMessage], qos: Mapping[str, QoSProfile] = {}
    ) -> None:
        """Subscribe.

        Parameters
        ----------
        callbacks : callbacks by topic, in the order of subscription.
        qos : QoS of topics that differs from that of :func:`topic_of`.
        """
        self._system_clock = SystemClock()
        clock: Any = self._node.get_clock()
        self._set_steps(ClockSteps(clock.ros_time_is_active))
        self._jumps = [
            # An exception that leaves one of these callbacks ends the process.
            clock.create_jump_callback(_JUMPS, post_callback=self._guarded(self._on_clock_jump)),
            clock.create_jump_callback(_STEPS, post_callback=self._guarded(self._on_clock_step)),
        ]
        self._callbacks = dict(callbacks)
        for name, on_message in callbacks.items():
            topic = topic_of(name)
            callback = with_time_sent(self.surviving(on_message))
            self.subscriptions[name] = subscribe(
                self._node, topic.kind, name, callback, qos.get(name, topic.qos), raw=True
            )

    def stop(self) -> None:
        """End all subscriptions."""
        subscriptions, self.subscriptions = self.subscriptions, {}
        for subscription in reversed(subscriptions.values()):
            self._node.destroy_subscription(subscription)
        while self._jumps:
            self._jumps.pop().unregister()

    def surviving(self, callback: Callable[..., None]) -> Callable[..., None]:
        """Return a callback in which a fault of this program does not end the node.

        The callback does nothing while the node is not subscribed.
        """

        def checked(*arguments: Any) -> None:
            if not self._steps.simulated and (back := self._system_clock.set_back()):
                self._report_jump(-back)
            callback(*arguments)

        return self._guarded(checked)

    def waiting(self, name: str, *message: Any) -> list[tuple[Any, int, int]]:
        """Return a message of a topic and the messages that wait behind it, oldest first."""
        found: list[Any] = [message]
        subscription = self.subscriptions.get(name)
        while subscription is not None and len(found) <= _MOST:
            newer = pop(subscription)
            if newer is None:
                break
            found.append(newer)
        return found

    def catch_up(self, name: str) -> None:
        """Process the waiting messages of all topics except one."""
        for other, subscription in self.subscriptions.items():
            if other == name:
                continue
            for _ in range(_MOST):
                message = pop(subscription)
                if message is None:
                    break
                self.reading(self._callbacks[other], *message)

    def reading(self, on_message: Callable[..., Any], *message: Any) -> Any:
        """Call the callback of a message; warn of bytes that are not such a message."""
        try:
            return on_message(*message)
        except UnreadableError as error:
            self._warn("bytes", str(error))
            return None

    def _guarded(self, callback: Callable[..., None]) -> Callable[..., None]:
        """Return a callback that raises nothing, and does nothing while inactive."""

        def guarded(*arguments: Any) -> None:
            if not self.active:
                # The event was in the executor's queue when the subscriptions ended.
                return
            try:
                self.reading(callback, *arguments)
            except Exception:
                text = f"a fault of this program; inputs are forgotten:\n{traceback.format_exc()}"
                self._warn("fault", text)
                try:
                    self._on_fault(text)
                except Exception:
                    self._warn(
                        "second fault",
                        "a fault of this program while it forgot its inputs:\n"
                        f"{traceback.format_exc()}",
                    )

        return guarded

    def _on_clock_jump(self, jump: Any) -> None:
        self._report_jump(jump.delta.nanoseconds)
        if jump.clock_change != ClockChange.ROS_TIME_NO_CHANGE:
            simulated = jump.clock_change == ClockChange.ROS_TIME_ACTIVATED
            self._set_steps(ClockSteps(simulated))

    def _report_jump(self, jump: int) -> None:
        """Report a jump of the clock [ns], after which inputs with a time are dropped."""
        self._warn(
            "clock",
            f"the clock jumped by {1e-9 * jump:+.6g} s or is another one now; inputs from before "
            "are forgotten",
        )
        self._on_jump()

    def _on_clock_step(self, step: Any) -> None:
        steps = self._steps
        before = steps.longest
        steps.add(step.delta.nanoseconds)
        if steps.longest != before:
            self._set_steps(steps)

    def _set_steps(self, steps: ClockSteps) -> None:
        self._steps = steps
        self._on_step(steps.longest)
