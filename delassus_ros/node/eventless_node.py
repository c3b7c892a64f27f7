"""A lifecycle node without handlers of the middleware's QoS events."""

from __future__ import annotations

from typing import Any

from rclpy.event_handler import PublisherEventCallbacks, SubscriptionEventCallbacks
from rclpy.lifecycle import LifecycleNode, LifecyclePublisher
from rclpy.publisher import Publisher
from rclpy.subscription import Subscription


class EventlessNode(LifecycleNode):
    """Its publishers and subscriptions, rclpy's own too, have no handlers of QoS events.

    rclpy would give each some by default. Those of rclpy's events executor outlive their end in
    its queue: where a transition destroys it meanwhile, the process ends by a signal. To take
    the event of a deadline can block for ever, as Fast DDS locks in another order where it
    notes that one was missed.
    """

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
