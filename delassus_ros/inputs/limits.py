"""Limits of the inputs and thresholds of the matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from delassus.conditioning.monitor import ConditionSettings
from delassus.solver.friction import ForceSettings

LONGEST_TRUST_S = 1.0
"""Longest time for which a publisher whose messages make matrices is relied on [s]. After it,
messages of other publishers are used, and a missing matrix is reported."""

ORIENTATION_TIMEOUT_S = 0.1
"""Age above which the orientation of a floating base is too old, by default [s]."""


@dataclass(frozen=True)
class Limits:
    """Limits of the inputs and thresholds for matrices; may change between two ticks.

    Attributes
    ----------
    max_skew : largest difference of the stamps of joint states, and largest distance of a stamp
        ahead of the clock, beyond one step of the clock [s].
    input_timeout : age above which joint positions are too old [s]; infinite for never.
    contacts_timeout : the same for the set of active contacts.
    forces : friction, law and velocities of the contact forces.
    """

    max_skew: float = 0.005
    input_timeout: float = 0.5
    contacts_timeout: float = 0.5
    condition: ConditionSettings = field(default_factory=ConditionSettings)
    forces: ForceSettings = field(default_factory=ForceSettings)

    @property
    def patience(self) -> float:
        """Time after which a message is published again, INVALID if there is no matrix [s]."""
        return self.input_timeout if self.input_timeout < math.inf else LONGEST_TRUST_S
