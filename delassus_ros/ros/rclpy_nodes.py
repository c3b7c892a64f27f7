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

from delassus.errors import SAID
from delassus_ros.ros.logs import LoopLog, Throttle

_Transition = Callable[[Any, LifecycleState], TransitionCallbackReturn]


# Work-around (event handlers): https://github.com/ros2/rclpy/issues/1644, open; seen with rclpy
# 7.1.6. The blocking handler of deadlines was seen with Fast DDS 2.14.5; the test omits it.
class EventlessNode(LifecycleNode):
    """A lifecycle node whose publishers and subscriptions have no handlers of QoS events.

    By default rclpy adds handlers to all publishers and subscriptions, including those of
    parameters and of the log. Events of a handler wait in the queue of rclpy's events executor; if
    a transition destroys the publisher meanwhile, the process ends by a signal. Reading the event
    of a deadline can block for ever: Fast DDS acquires two locks in another order when it notes a
    missed deadline.

    Attributes
    ----------
    stopping : returns whether the process is to end; set by the program that runs the node.
    """

    stopping: Callable[[], bool]

    def start(self) -> None:
        """Configure and activate the node if ``autostart`` is set."""
        raise NotImplementedError

    def destroy_node(self) -> None:
        """Destroy the node, and the state machine that rclpy leaves to the garbage collector.

        The state machine holds the node's handle, which keeps a destroyed node in the ROS graph.
        """
        super().destroy_node()
        # Work-around (state machine): no upstream issue known; seen with rclpy 7.1.6.
        # https://github.com/ros2/rclpy/issues/1710 is the same defect of plain nodes, in later
        # versions.
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
    """Log exceptions of a transition, which rclpy does not."""

    @functools.wraps(transition)
    def logging(node: LifecycleNode, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except Exception:
            node.get_logger().error(f"{transition.__name__} failed:\n{traceback.format_exc()}")
            raise

    return logging


# Work-around (invalid transition): https://github.com/ros2/rclpy/issues/1209, mended by
# https://github.com/ros2/rclpy/pull/1319 after Jazzy; seen with rclpy 7.1.6.
def refuse_impossible_changes(node: LifecycleNode) -> None:
    """Refuse requests for transitions that the present state lacks; log the possible ones.

    Without this function, rclpy raises in the executor, and the client waits for ever.
    """
    service = node._service_change_state
    change = service.callback
    warn = Throttle(LoopLog(node.get_logger()).warning)

    def answer(request: Any, response: Any) -> Any:
        machine = node._state_machine
        possible = {number: label for number, label, *_ in machine.available_transitions}
        wanted = request.transition
        # A label overrides the number, as in rclpy.
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
