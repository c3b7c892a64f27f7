"""What a pipeline is told and what it tells, apart from the messages."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from delassus_ros.conditioning import ConditionSettings, Examination
from delassus_ros.node.diagnostics import Validity
from delassus_ros.node.reasons import Reason

LONGEST_TRUST = 1.0
"""Time [s] for which those who send what makes a matrix are relied on, whatever the timeout: after
that others get their turn, and if nothing comes of them, that is said."""


@dataclass(frozen=True)
class Limits:
    """What inputs have to keep to, and how matrices are judged; may change between two ticks.

    Attributes
    ----------
    max_skew : how far stamps of joint states may be apart, or ahead of the clock beyond one of
        its steps [s].
    input_timeout : age above which joint positions are too old [s]; infinite for never.
    contacts_timeout : the same for the set of active contacts.
    condition : thresholds and damping.
    """

    max_skew: float = 0.005
    input_timeout: float = 0.5
    contacts_timeout: float = 0.5
    condition: ConditionSettings = field(default_factory=ConditionSettings)

    @property
    def patience(self) -> float:
        """Time after which something has to go out again, be it that there is no matrix [s]."""
        return self.input_timeout if self.input_timeout < math.inf else LONGEST_TRUST


@dataclass(slots=True)
class LastAnswer:
    """The latest message, for those who report; overwritten by the next.

    Attributes
    ----------
    validity, reasons : as published.
    text : what there is to complain of, in words; empty if there is nothing.
    stamp_ns, age : stamp of the joint positions [ns] and their age [s].
    examination : of the matrix, overwritten by the next; None if there is no matrix.
    rows : rows of the matrix.
    contacts : names of its contacts.
    compute_time : time that computing it took [s]; 0 if there is no matrix.
    """

    validity: Validity = Validity.INVALID
    reasons: Reason = Reason.NONE
    text: str = ""
    stamp_ns: int = 0
    age: float = math.nan
    examination: Examination | None = None
    rows: int = 0
    contacts: tuple[str, ...] = ()
    compute_time: float = 0.0
