"""How often a publisher was later than the deadline that its QoS offers."""

from __future__ import annotations


class OfferedDeadline:
    """Counts each period of the deadline that passed without a message.

    Parameters
    ----------
    period : the deadline [ns].
    """

    def __init__(self, period: int) -> None:
        self._period = period
        self._since: int | None = None
        self._missed = 0

    def publish(self, now: int) -> None:
        """Note a message; the first one begins the count.

        Parameters
        ----------
        now : time of a steady clock [ns], like those of the others.
        """
        self._missed = self.missed(now)
        self._since = now

    def pause(self, now: int) -> None:
        """Count no more, until the next message."""
        self._missed = self.missed(now)
        self._since = None

    def missed(self, now: int) -> int:
        """Return how many periods have passed without a message so far."""
        if self._since is None:
            return self._missed
        return self._missed + max(0, now - self._since - 1) // self._period
