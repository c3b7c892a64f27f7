"""Messages with the time at which they were sent, in callbacks and outside of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from rclpy.subscription import Subscription

Take = Callable[[Any, int, int], None]
"""Takes a message (of a raw subscription its bytes), when it was sent, see :func:`sent_at`, and
which of its publisher's messages it is, see :func:`count_of`."""

_TWO = inspect.Signature(
    [inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY) for name in ("message", "info")]
)


def sent_at(info: Mapping[str, Any]) -> int:
    """Return when a message was sent, by the system's clock of its publisher [ns].

    It may have waited since: where its publisher keeps it for late subscribers, in a queue, or
    while this process was stopped. 0 where the middleware does not tell.
    """
    return info.get("source_timestamp") or 0


def count_of(info: Mapping[str, Any]) -> int:
    """Return which of its publisher's messages a message is; 0 where the middleware is silent.

    One publisher counts up, so a number that is not above the one before is another publisher's.
    """
    return info.get("publication_sequence_number") or 0


def with_time_sent(take: Take) -> Callable[..., None]:
    """Return the callback of a subscription, which rclpy gives the message's information."""

    def callback(*given: Any) -> None:
        # Of rclpy's executors, that for events passes both on as one argument.
        message, info = given[0] if len(given) == 1 else given
        take(message, sent_at(info), count_of(info))

    # By which rclpy tells what to pass.
    callback.__signature__ = _TWO  # type: ignore[attr-defined]
    return callback


def take(subscription: Subscription) -> tuple[Any, int, int] | None:
    """Return the oldest message that waits in a subscription, when it was sent and its number."""
    handle = subscription.handle
    with handle:
        taken = handle.take_message(subscription.msg_type, subscription.raw)
    return None if taken is None else (taken[0], sent_at(taken[1]), count_of(taken[1]))
