"""Why a matrix is missing or to be used with care: the reason bits this node sets."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


class Reason(IntFlag):
    """Bits of ``DelassusMatrix.reasons``, named as there; usable without ROS."""

    NONE = 0
    NO_CONTACTS_RECEIVED = 1
    CONTACTS_STALE = 2
    UNKNOWN_CONTACT = 4
    DUPLICATE_CONTACT = 8
    CONTACTS_MALFORMED = 16
    NO_JOINT_STATE = 32
    JOINT_MISSING = 64
    JOINT_NOT_FINITE = 128
    JOINT_SIZE_MISMATCH = 256
    JOINT_DUPLICATED = 512
    INPUT_STALE = 1024
    INPUT_SKEWED = 2048
    STAMP_INVALID = 4096
    STAMP_JUMPED_BACK = 8192
    STAMP_IN_FUTURE = 16384
    ORIENTATION_MISSING = 32768
    ORIENTATION_INVALID = 65536
    ORIENTATION_STALE = 131072
    LOOP_NOT_CLOSED = 262144
    LOOP_WRONG_BRANCH = 524288
    LOOP_INCONSISTENT = 1048576
    LOOP_SINGULAR = 2097152
    SOLVER_FAILED = 4194304
    RESULT_NOT_FINITE = 8388608
    NOT_CONFIGURED = 16777216
    FALLBACK_ALGORITHM = 33554432
    APPROXIMATE_ALGORITHM = 67108864
    DAMPED = 134217728
    ILL_CONDITIONED = 268435456
    OVERRUN = 536870912
    JOINT_FAR = 1073741824
    ROBOT_CHANGED = 2147483648


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
