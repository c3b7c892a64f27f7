"""Messages with the time that they have waited, in callbacks and outside of them."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.subscription import Subscription

Take = Callable[[Any, int], None]
"""Takes a message (of a raw subscription its bytes), and how long before it was sent [ns]."""

_TWO = inspect.Signature(
    [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in ("message", "info")]
)


def delay_of(info: Mapping[str, Any]) -> int:
    """Return how long ago a message was sent [ns], by the clocks of the two hosts.

    It may have waited: where its publisher keeps it for late subscribers, in a queue, or while
    this process was stopped. 0 where the middleware does not tell, or the sender is ahead.
    """
    sent = info.get("source_timestamp") or 0
    return max(time.time_ns() - sent, 0) if sent > 0 else 0


def with_delay(take: Take) -> Callable[..., None]:
    """Return the callback of a subscription, which rclpy gives the message's information."""

    def callback(*given: Any) -> None:
        # Of rclpy's executors, that for events passes both on as one argument.
        message, info = given[0] if len(given) == 1 else given
        take(message, delay_of(info))

    # By which rclpy tells what to pass.
    callback.__signature__ = _TWO  # type: ignore[attr-defined]
    return callback


def take(subscription: Subscription) -> tuple[Any, int] | None:
    """Return the oldest message that waits in a subscription's queue and its delay, or None."""
    handle = subscription.handle
    with handle:
        taken = handle.take_message(subscription.msg_type, subscription.raw)
    return None if taken is None else (taken[0], delay_of(taken[1]))
