"""Planned contacts: a schedule of modes, and the mode at the time of a joint state."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from typing import Any

from delassus_msgs.msg import ActiveContacts

from delassus.errors import SAID
from delassus_ros.inputs.contacts import STATUS
from delassus_ros.inputs.findings import Finding, Reason
from delassus_ros.inputs.input import Faults, LatestInput, Words, stamp_in
from delassus_ros.ros.arrival import LATEST_S, TIMES

_WORDS = Words(
    "contact schedule", "the schedule of contacts", "is", "contacts_timeout",
    "no schedule of contacts has arrived yet",
)  # fmt: skip
_FAULTS = Faults(Reason.NO_CONTACTS_RECEIVED, Reason.CONTACTS_MALFORMED, Reason.CONTACTS_STALE)


class ScheduleInput(LatestInput[Any]):
    """The latest schedule of contacts.

    A schedule replaces the previous one as a whole, unless the previous one has a newer stamp. A
    schedule that contradicts itself is refused, and there is none until the next good one: the
    plan has changed in a way that is not known.

    Parameters
    ----------
    timeout : longest time since the latest schedule was sent [s]; infinite for any time. A planner
        that has ended is no longer followed, whatever its last schedule contains.
    """

    topic = "contact_schedule"
    needs_stamp = False
    ages_by_stamp = False
    """A schedule is made for future times: its age counts from sending."""

    def __init__(self, timeout: float = math.inf) -> None:
        super().__init__(_WORDS, _FAULTS, timeout)

    def reset(self) -> None:
        """Return to the state before the first schedule."""
        super().reset()
        self._starts: list[int] = []
        self._names: list[str] = []
        self._status: list[list[int]] = []
        self._modes: dict[int, ActiveContacts | Finding] = {}
        self._end = self._stamp = 0

    def restart(self, now: int) -> None:
        """Drop the schedule: its times are of a clock that was set."""
        self.reset()

    def _is_overtaken(self, stamp: int, now: int) -> bool:
        """Whether a schedule is older than the one in use, however long ago that came."""
        return self._finding is None and 0 < stamp < self._stamp <= now

    def _parse(self, message: Any) -> Any | Finding:
        """Return a delassus_msgs/ContactSchedule, or why it is refused."""
        fault = self._fault(message, stamp_in(message))
        return message if fault is None else Finding(self.faults.invalid, fault)

    def _keep(self, contents: Any, stamp: int, now: int) -> None:
        count, size = len(contents.times), len(contents.names)
        self._stamp = stamp
        self._starts = [stamp + round(1e9 * time) for time in contents.times]
        self._end = stamp + round(1e9 * contents.end)
        values, self._names = list(contents.status), list(contents.names)
        self._status = [values[size * k : size * (k + 1)] for k in range(count)]
        self._modes = {}

    def _fault(self, message: Any, stamp: int) -> str | None:
        """Return why a schedule is refused, or None."""
        times, names, status = message.times, message.names, message.status
        what = "the schedule of contacts"
        if stamp <= 0:
            return f"{what} has no stamp, from which its times would count; it is refused"
        if not len(times):
            return f"{what} has no modes; it is refused"
        if len(status) != len(times) * len(names):
            return (
                f"{what} has {len(status)} status values; expected {len(times) * len(names)}, for "
                f"{len(times)} modes of {len(names)} contacts; it is refused"
            )
        ends = [*times, message.end]
        # Written so that NaN is refused.
        wrong = next((time for time in ends if not abs(time) < LATEST_S), None)
        if wrong is not None:
            return f"{what} has time {wrong:g} s; {TIMES}; it is refused"
        for k, (begin, end) in enumerate(zip(ends, ends[1:], strict=False)):
            if not begin < end:
                return (
                    f"{what}: mode {k} begins at {begin:.6g} s and ends at {end:.6g} s: modes "
                    "overlap; it is refused"
                )
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            return f"{what} lists contact {twice[0][:SAID]!r} more than once; it is refused"
        unknown = next((value for value in status if value not in STATUS), None)
        if unknown is not None:
            expected = ", ".join(f"{word}={number}" for number, word in STATUS.items())
            return f"{what} has status {unknown}; expected one of {expected}; it is refused"
        return None

    def at(self, time: int, now: int) -> ActiveContacts | Finding:
        """Return the contacts at a time, or why they are not known.

        All times within a mode of a schedule give the same object, whose stamp is the caller's.

        Parameters
        ----------
        time : stamp of the joint positions [ns].
        """
        if self._finding is not None:
            return self._finding
        if not self.latest.within(self.timeout, now):
            return Finding(
                Reason.CONTACTS_STALE,
                f"no schedule of contacts has come for {self.latest.silence(now):.3g} s, at most "
                f"{self.timeout:g} s are allowed (contacts_timeout); its publisher has to repeat "
                "it",
            )
        if not self._starts[0] <= time < self._end:
            late = time >= self._end
            by = (time - self._end if late else self._starts[0] - time) / 1e9
            place = "ended" if late else "begins"
            return Finding(
                Reason.CONTACTS_STALE,
                f"the schedule of contacts {place} {by:.3g} s {'before' if late else 'after'} "
                "the joint state: nothing is known about the contacts there",
            )
        mode = bisect_right(self._starts, time) - 1
        if mode not in self._modes:
            # Most modes of a long plan are replaced by the next plan before they begin.
            self._modes[mode] = _mode(self._names, self._status[mode])
        return self._modes[mode]


def _mode(names: list[str], status: list[int]) -> ActiveContacts | Finding:
    """Return the contacts of a mode, or why they are not known."""
    for name, value in zip(names, status, strict=True):
        if value == ActiveContacts.UNKNOWN:
            return Finding(
                Reason.NO_CONTACTS_RECEIVED,
                f"contact {name[:SAID]!r} is UNKNOWN in the present mode of the schedule",
            )
    return ActiveContacts(names=names, status=status)
