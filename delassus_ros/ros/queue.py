"""Messages with their time of sending, in callbacks and from the queues of subscriptions."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.subscription import Subscription

OnMessage = Callable[[Any, int, int], None]
"""Callback of a subscription, called with a message (bytes for a raw subscription), its time of
sending (see :func:`sent_at`) and its number (see :func:`count_of`)."""

_TWO = inspect.Signature(
    [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in ("message", "info")]
)


def sent_at(info: Mapping[str, Any]) -> int:
    """Return the time at which a message was sent, by the system clock of its publisher [ns].

    The message may have waited since then: at a publisher that keeps it for late subscribers, in a
    queue, or while this process was stopped. 0 if the middleware has no such time.
    """
    return info.get("source_timestamp") or 0


def count_of(info: Mapping[str, Any]) -> int:
    """Return the number of a message among those of its publisher; 0 if the middleware has none.

    Numbers of one publisher ascend: a number that is not above the one before it belongs to a
    message of another publisher.
    """
    return info.get("publication_sequence_number") or 0


def with_time_sent(on_message: OnMessage) -> Callable[..., None]:
    """Return a callback for rclpy, which is called with a message and its information."""

    def callback(*arguments: Any) -> None:
        # Work-around (message information): https://github.com/ros2/rclpy/pull/922 gave callbacks
        # two arguments; the events executor of rclpy 7.1.6 passes them as one tuple.
        message, info = arguments[0] if len(arguments) == 1 else arguments
        on_message(message, sent_at(info), count_of(info))

    # rclpy chooses the arguments by the signature.
    callback.__signature__ = _TWO  # type: ignore[attr-defined]
    return callback


def pop(subscription: Subscription) -> tuple[Any, int, int] | None:
    """Remove and return the oldest message of a queue, its time of sending and its number."""
    handle = subscription.handle
    with handle:
        taken = handle.take_message(subscription.msg_type, subscription.raw)
    return None if taken is None else (taken[0], sent_at(taken[1]), count_of(taken[1]))
