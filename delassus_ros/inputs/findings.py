"""Findings: why a matrix is missing or worse, as bits of the messages and in words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag

from delassus_ros.ros.health import Level


class Validity(IntEnum):
    """The values of ``DelassusMatrix.validity``."""

    INVALID = 0
    DEGRADED = 1
    OK = 2

    @property
    def level(self) -> Level:
        """Severity of a diagnostic entry about the message."""
        return Level(Validity.OK - self)


class Reason(IntFlag):
    """Bits of ``reasons`` in DelassusMatrix, ContactDynamics, Estimate, as there; without ROS."""

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
    # Bits of ContactDynamics alone.
    VELOCITY_MISSING = 1 << 32
    VELOCITY_NOT_FINITE = 1 << 33
    TORQUE_MISSING = 1 << 34
    TORQUE_INVALID = 1 << 35
    TORQUE_STALE = 1 << 36
    TWIST_INVALID = 1 << 37
    # Of Estimate alone.
    WRENCH_MISSING = 1 << 38
    WRENCH_INVALID = 1 << 39
    WRENCH_STALE = 1 << 40
    IMU_MISSING = 1 << 41
    IMU_INVALID = 1 << 42
    IMU_STALE = 1 << 43
    NO_ACCELERATION = 1 << 44
    # Bits of all three messages.
    PLACEMENT_MISSING = 1 << 45
    PLACEMENT_INVALID = 1 << 46
    PLACEMENT_STALE = 1 << 47
    SOURCES_CONTRADICT = 1 << 48
    JOINT_OUTSIDE_LIMITS = 1 << 49
    # Of Estimate alone.
    SENSORS_CONTRADICT = 1 << 50
    # Of ContactDynamics alone.
    FORCES_INFEASIBLE = 1 << 51
    FORCES_NOT_CONVERGED = 1 << 52
    FORCES_INACCURATE = 1 << 53
    FORCES_STRIKING = 1 << 54
    FORCES_JAMMED = 1 << 55


def names_of(reasons: Reason) -> str:
    """Return e.g. ``JOINT_MISSING + STAMP_INVALID``; ``none`` for no reason."""
    names = [reason.name for reason in Reason if reason and reason in reasons]
    return " + ".join(name for name in names if name) or "none"


@dataclass(frozen=True)
class Finding:
    """A fault of an input or of a result.

    Attributes
    ----------
    text : the fault in words, with the name of the joint or contact.
    validity : highest validity of a message that depends on the input or the result.
    subject : name of the input, where several inputs have the same reasons.
    """

    reason: Reason
    text: str
    validity: Validity = Validity.INVALID
    subject: str = ""

    @property
    def kind(self) -> str:
        """The kind of a warning about the fault, for logs that repeat no kind too often."""
        return f"{self.subject} {self.reason.name or 'input'}".lstrip()


def doubtful(reason: Reason, text: str, subject: str = "") -> Finding:
    """Return a finding that makes a message DEGRADED."""
    return Finding(reason, text, Validity.DEGRADED, subject)


def joined(*findings: Finding | None) -> Finding | None:
    """Return one finding with the reasons of several and the text of the first; None without."""
    found = [finding for finding in findings if finding is not None]
    if len(found) < 2:
        return found[0] if found else None
    reasons = Reason.NONE
    for finding in found:
        reasons |= finding.reason
    validity = min(finding.validity for finding in found)
    return Finding(reasons, found[0].text, validity, found[0].subject)


class Findings:
    """The findings of one message: its validity, its reasons, and the text of the first one.

    Attributes
    ----------
    validity : lowest validity of the findings; OK without findings.
    text : the first text; empty for none.
    """

    __slots__ = ("reasons", "text", "validity")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Return to the state without findings."""
        self.validity, self.reasons, self.text = Validity.OK, Reason.NONE, ""

    def copy(self, other: Findings) -> None:
        """Have the findings of another message."""
        self.validity, self.reasons, self.text = other.validity, other.reasons, other.text

    def add(self, reason: Reason, text: str, validity: Validity) -> None:
        """Add a finding by its parts."""
        self.reasons |= reason
        self.text = self.text or text
        if validity < self.validity:
            self.validity = validity

    def include(self, finding: Finding) -> None:
        """Add a finding."""
        self.add(finding.reason, finding.text, finding.validity)
