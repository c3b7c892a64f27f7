"""The error of this package."""

from __future__ import annotations

from delassus_msgs.msg import DelassusMatrix

INVALID = DelassusMatrix.VALIDITY_INVALID
WITH_VALUES = frozenset((DelassusMatrix.VALIDITY_DEGRADED, DelassusMatrix.VALIDITY_OK))
"""Validities of messages that have values, the same in all messages."""


class MessageError(ValueError):
    """A message contradicts itself, or does not hold what was asked of it."""


def check_validity(kind: str, validity: int) -> None:
    """Refuse a validity that is none: nobody knows what values are worth that carry it.

    Parameters
    ----------
    kind
        Name of the message.
    validity
        As in the message.

    Raises
    ------
    MessageError
        If it is none of the constants.

    """
    if validity != INVALID and validity not in WITH_VALUES:
        raise MessageError(
            f"{kind} has the validity {validity}; expected INVALID=0, DEGRADED=1 or OK=2"
        )
