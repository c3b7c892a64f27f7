"""The lifecycle node of rclpy without its defects."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.lifecycle import (
    LifecycleNode,
    LifecyclePublisher,
    LifecycleState,
    TransitionCallbackReturn,
)
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription

from delassus_ros.errors import SAID
from delassus_ros.node.system.logs import LoopLog, Throttle

_Transition = Callable[[Any, LifecycleState], TransitionCallbackReturn]


class EventlessNode(LifecycleNode):
    """Its publishers and subscriptions, rclpy's own too, have no handlers of QoS events.

    rclpy would give each some by default. Those of rclpy's events executor outlive their end in
    its queue: where a transition destroys it meanwhile, the process ends by a signal. To take
    the event of a deadline can block for ever, as Fast DDS locks in another order where it
    notes that one was missed.

    Attributes
    ----------
    stopping : returns whether the process is to end; may be set by who runs it.
    """

    stopping: Callable[[], bool]

    def start(self) -> None:
        """With autostart, configure and activate."""
        raise NotImplementedError

    def destroy_node(self) -> None:
        """Destroy the node, and the state machine that rclpy would leave to the garbage collector.

        It holds the node's handle: for that long, a destroyed node would be in the ROS graph.
        """
        super().destroy_node()
        self._state_machine.destroy_when_not_in_use()

    def create_publisher(self, *arguments: Any, **options: Any) -> Publisher:
        """Return a new publisher, as :meth:`rclpy.node.Node.create_publisher` does."""
        return super().create_publisher(*arguments, **{**options, **_publisher()})

    def create_lifecycle_publisher(self, *arguments: Any, **options: Any) -> LifecyclePublisher:
        """Return a new publisher that is silent while the node is inactive."""
        made: LifecyclePublisher = super().create_lifecycle_publisher(
            *arguments, **{**options, **_publisher()}
        )
        return made

    def create_subscription(self, *arguments: Any, **options: Any) -> Subscription:
        """Return a new subscription, as :meth:`rclpy.node.Node.create_subscription` does."""
        events = SubscriptionEventCallbacks(use_default_callbacks=False)
        return super().create_subscription(*arguments, **{**options, "event_callbacks": events})


def _publisher() -> dict[str, Any]:
    return {"event_callbacks": PublisherEventCallbacks(use_default_callbacks=False)}


def logged(transition: _Transition) -> _Transition:
    """Log what a transition raises; rclpy goes to on_error without a word."""

    @functools.wraps(transition)
    def said(node: LifecycleNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception:
            node.get_logger().error(f"{transition.__name__} failed:\n{traceback.format_exc()}")
            raise

    return said


def refuse_impossible_changes(node: LifecycleNode) -> None:
    """Answer requests for transitions that the present state lacks; say which ones it has.

    rclpy raises where the executor spins, so that whoever asked waits for ever.
    """
    service = node._service_change_state
    change = service.callback
    warn = Throttle(LoopLog(node.get_logger()).warning)

    def answer(request: Any, response: Any) -> Any:
        machine = node._state_machine
        possible = {number: label for number, label, *_ in machine.available_transitions}
        wanted = request.transition
        # A label goes before the number, as in rclpy.
        known = wanted.label in possible.values() if wanted.label else wanted.id in possible
        if known:
            return change(request, response)
        warn(
            "transition",
            f"refused the transition {wanted.label[:SAID] or wanted.id!r}: "
            f"in the state {machine.current_state[1]!r} there are: {', '.join(possible.values())}",
        )
        response.success = False
        return response

    service.callback = answer
