"""From contact force and foot speed to a contact state that does not chatter."""

from __future__ import annotations

from enum import IntEnum


class TouchState(IntEnum):
    """State of a contact; the values are those of ``delassus_msgs/ActiveContacts``."""

    UNKNOWN = 0
    INACTIVE = 1
    ACTIVE = 2
    SLIPPING = 3

    @property
    def touches(self) -> bool:
        """Whether the contact carries force: it is ACTIVE or SLIPPING."""
        return self >= TouchState.ACTIVE


class TouchFilter:
    """Contact state of one foot, with hysteresis on the force and a debounce on every change.

    Parameters
    ----------
    force_on, force_off
        Normal force above which the foot begins to touch, and below which it ceases to, N.
    slip_speed
        Speed of the contact point along the floor above which it slips, m/s.
    debounce
        Number of consecutive updates a new state has to last before it counts.
    """

    def __init__(
        self,
        force_on: float = 2.0,
        force_off: float = 0.5,
        slip_speed: float = 0.05,
        debounce: int = 5,
    ) -> None:
        self._force_on = force_on
        self._force_off = force_off
        self._slip_speed = slip_speed
        self._debounce = debounce
        self._candidate = TouchState.UNKNOWN
        self._count = 0
        self.state = TouchState.UNKNOWN

    def update(self, force: float, speed: float) -> TouchState:
        """Take one sample and return the state.

        Parameters
        ----------
        force
            Normal force, N.
        speed
            Speed of the contact point along the floor, m/s.
        """
        threshold = self._force_off if self.state.touches else self._force_on
        if force <= threshold:
            seen = TouchState.INACTIVE
        elif speed > self._slip_speed:
            seen = TouchState.SLIPPING
        else:
            seen = TouchState.ACTIVE
        if seen != self._candidate:
            self._candidate = seen
            self._count = 0
        self._count += 1
        if self._count >= self._debounce:
            self.state = seen
        return self.state
