"""Taking messages from a subscription outside of its callback."""

from __future__ import annotations

from typing import Any

from rclpy.subscription import Subscription


def take(subscription: Subscription) -> Any:
    """Return the oldest message that waits in a subscription's queue, or None.

    Of a raw subscription it is the serialized message.
    """
    handle = subscription.handle
    with handle:
        taken = handle.take_message(subscription.msg_type, subscription.raw)
    return None if taken is None else taken[0]
