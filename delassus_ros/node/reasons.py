"""Why a matrix is missing or to be used with care: the reason bits this node sets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


class Reason(IntFlag):
    """Bits of ``DelassusMatrix.reasons``, named as there; usable without ROS."""

    NONE = 0
    NO_CONTACTS_RECEIVED = 1
    UNKNOWN_CONTACT = 4
    DUPLICATE_CONTACT = 8
    CONTACTS_MALFORMED = 16
    JOINT_MISSING = 64
    JOINT_NOT_FINITE = 128
    JOINT_SIZE_MISMATCH = 256
    JOINT_DUPLICATED = 512
    STAMP_INVALID = 4096
    SOLVER_FAILED = 4194304
    RESULT_NOT_FINITE = 8388608


@dataclass(frozen=True)
class Complaint:
    """What is wrong with an input.

    Attributes
    ----------
    reason : the bit (or bits) for the message.
    text : the same in words, naming the joint or contact.
    """

    reason: Reason
    text: str
