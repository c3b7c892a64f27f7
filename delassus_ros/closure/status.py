"""What can be said of a solution for closed loops."""

from __future__ import annotations

from enum import IntEnum


class ClosureStatus(IntEnum):
    """Outcome of a call; only OK and CONTRADICTION come with a q that may be used."""

    OK = 0
    CONTRADICTION = 1
    """A warning: the loops are closed, but a measured dependent joint is elsewhere."""
    NOT_FINITE = 2
    """A measured position is NaN or infinite."""
    UNREACHABLE = 3
    """The measured positions cannot be closed on the branch of the reference."""
    SINGULAR = 4
    """The unknown joints do not follow from the measured ones there."""
    WRONG_BRANCH = 5
    """The measured positions close the loops on another branch than the reference: mirrored."""
    OUTSIDE_LIMITS = 6
    """An unknown joint would be outside its limits."""
    NOT_CLOSED = 7
    """A loop does not close to the tolerance, as when its redundant rows contradict."""

    @property
    def is_valid(self) -> bool:
        """Whether q may be used."""
        return self <= ClosureStatus.CONTRADICTION
