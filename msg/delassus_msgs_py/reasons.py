"""Reasons of messages, by name."""

from __future__ import annotations

from typing import Protocol

from delassus_msgs.msg import ContactDynamics, DelassusMatrix, Estimate

_PREFIX = "REASON_"
_NAMES: dict[int, str] = {
    getattr(kind, name): name[len(_PREFIX) :]
    for kind in (DelassusMatrix, ContactDynamics, Estimate)
    for name in dir(kind)
    if name.startswith(_PREFIX)
}
"""Names by bit: a bit has one meaning in all messages."""


class WithReasons(Protocol):
    """DelassusMatrix, ContactDynamics, Summary and Estimate, by their field of reasons."""

    reasons: int


def reason_names(msg: WithReasons | int) -> tuple[str, ...]:
    """Return the names of the reasons of a message.

    Parameters
    ----------
    msg
        A message with reasons, or the reasons themselves, as an entry of those of
        PredictedMatrices.

    Returns
    -------
    tuple of str
        Names of the constants ``REASON_…`` without their beginning, in the order of their bits,
        such as ``"JOINT_MISSING"``; ``"BIT_63"`` for a bit without a name in these messages.

    """
    reasons = msg if isinstance(msg, int) else int(msg.reasons)
    bits = (1 << k for k in range(reasons.bit_length()))
    return tuple(
        _NAMES.get(bit, f"BIT_{bit.bit_length() - 1}") for bit in bits if reasons & bit
    )
