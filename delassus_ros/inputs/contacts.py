"""From a message about contacts to the set of active contacts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from delassus_msgs.msg import ActiveContacts

from delassus.contacts import ContactSet
from delassus.errors import SAID, UnknownNames, listed
from delassus_ros.inputs.findings import Finding, Reason, Validity, joined
from delassus_ros.inputs.input import Faults, LatestInput, Words
from delassus_ros.ros.arrival import too_old

_WORDS = Words(
    "active contacts", "the set of active contacts", "is", "contacts_timeout",
    "no set of active contacts has arrived yet",
)  # fmt: skip
_FAULTS = Faults(Reason.NO_CONTACTS_RECEIVED, Reason.CONTACTS_MALFORMED, Reason.CONTACTS_STALE)
NO_SET = Finding(Reason.NO_CONTACTS_RECEIVED, _WORDS.missing)
"""The finding before the first set."""
_IN_CONTACT = (ActiveContacts.ACTIVE, ActiveContacts.SLIPPING)
STATUS = {
    getattr(ActiveContacts, name): name for name in ("UNKNOWN", "INACTIVE", "ACTIVE", "SLIPPING")
}
"""Names of the values of a status."""


class ContactInput(LatestInput[Mapping[str, int]]):
    """The set of active contacts.

    A set replaces the previous set as a whole, unless the previous set has a newer stamp. A set
    that contradicts itself is refused, and there is no valid set until the next good message.

    Parameters
    ----------
    timeout : age above which a set is too old [s]; infinite for never. The age counts from the
        stamp, or from the time of sending where the message has no stamp.
    computed : whether the node makes the sets itself, at joint states, instead of a publisher.

    Attributes
    ----------
    active : names of the active contacts; None without a valid set.
    finding : finding that matrices of the present set carry, e.g. an active contact outside the
        layout, whose rows the matrix lacks; None for none. INVALID without a valid set.
    """

    topic = "active_contacts"
    needs_stamp = False

    def __init__(
        self, contacts: ContactSet, timeout: float = math.inf, computed: bool = False
    ) -> None:
        self._computed = computed
        self._known = dict.fromkeys(contacts.names)
        self._unknown_names = UnknownNames("contact", self._known)
        super().__init__(_WORDS, _FAULTS, timeout)

    def reset(self) -> None:
        """Return to the state before the first set."""
        super().reset()
        self._without(NO_SET)

    def restart(self, now: int) -> None:
        """Count the age of the present set from now on, e.g. after the clock was set."""
        self.latest.restart(now)

    def _without(self, finding: Finding) -> None:
        self.active: tuple[str, ...] | None = None
        self.finding: Finding | None = finding
        self._status: Mapping[str, int] = {}

    @property
    def text(self) -> str:
        """Fault of the latest set, in words; empty for none."""
        return "" if self.finding in (None, NO_SET) else self.finding.text

    def withhold(self, finding: Finding) -> None:
        """Drop the set, for a reason that the source gives."""
        self._without(replace(finding, reason=Reason.NO_CONTACTS_RECEIVED | finding.reason))
        self.latest.taken = 0

    def add_doubt(self, finding: Finding) -> None:
        """Mark the present set as doubtful, for a reason that the source gives."""
        self.finding = joined(self.finding, finding)

    def stale(self, now: int) -> Finding | None:
        """Return the finding about a present set that is too old, or None."""
        latest = self.latest
        if self.active is None or latest.within(self.timeout, now):
            return None
        silence = latest.silence(now)
        text = f"no set of active contacts has come for {silence:.3g} s"
        if silence <= self.timeout:
            text = (
                f"the set of active contacts is {latest.age(now):.4g} s old by its stamp; "
                f"{too_old(latest.age(now))}"
            )
        remedy = "its publisher has to repeat it at 10 Hz or more, always with a new stamp"
        if self._computed:
            remedy = "it follows from joint states, which have to come in this time"
        return Finding(
            Reason.CONTACTS_STALE,
            f"{text}, at most {self.timeout:g} s are allowed (contacts_timeout); {remedy}",
        )

    def status(self, contacts: Sequence[str]) -> list[int]:
        """Return the status of these contacts in the present set."""
        unlisted = ActiveContacts.UNKNOWN if self.active is None else ActiveContacts.INACTIVE
        return [self._status.get(name, unlisted) for name in contacts]

    def repeat(self, stamp: int, now: int) -> None:
        """Accept the present set again, with a stamp that is not older than its last one [ns]."""
        self.latest.note(stamp, now)
        self.latest.accept()

    def _parse(self, message: Any) -> Mapping[str, int] | Finding:
        """Return the status by name of a delassus_msgs/ActiveContacts, or why it is refused."""
        names, status = message.names, message.status
        return contradiction(names, status) or dict(zip(names, status, strict=True))

    def _drop(self, fault: Finding) -> None:
        self._without(fault)
        self.latest.stamp = 0

    def _keep(self, contents: Mapping[str, int], stamp: int, now: int) -> Finding | None:
        self.finding, self._status = None, contents
        touching = [name for name, value in contents.items() if value in _IN_CONTACT]
        self.active = tuple(name for name in touching if name in self._known)
        unknown = [name for name in contents if name not in self._known]
        if not unknown:
            return None
        lacks_rows = len(self.active) < len(touching)
        if lacks_rows:
            # Contacts in touch come first: the matrix lacks their rows.
            unknown.sort(key=lambda name: contents[name] not in _IN_CONTACT)
        validity = Validity.DEGRADED if lacks_rows else Validity.OK
        text = self._unknown(unknown, lacks_rows)
        self.finding = Finding(Reason.UNKNOWN_CONTACT, text, validity)
        return self.finding

    def _unknown(self, unknown: Sequence[str], lacks_rows: bool) -> str:
        """Return the text about at least one name outside the layout."""
        first, *others = unknown
        text = self._unknown_names.words(first)
        if others:
            text += f"; unknown, too: {listed('', others)}"
        if lacks_rows:
            rows = "the rows of those that are active" if others else "its rows"
            return f"{text} (the matrix lacks {rows})"
        ignored = "ignored, as none is active" if others else "ignored, as it is not active"
        return f"{text} ({ignored})"


def contradiction(names: Sequence[str], status: Sequence[int]) -> Finding | None:
    """Return why a set of delassus_msgs/ActiveContacts is refused, or None."""
    if len(names) != len(status):
        return Finding(
            Reason.CONTACTS_MALFORMED,
            f"the set of active contacts has {len(names)} names but {len(status)} status "
            "values; it is refused",
        )
    for name, value in zip(names, status, strict=True):
        if value not in STATUS:
            expected = ", ".join(f"{word}={number}" for number, word in STATUS.items())
            return Finding(
                Reason.CONTACTS_MALFORMED,
                f"contact {name[:SAID]!r} has status {value}; expected one of {expected}; "
                "the set is refused",
            )
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        return Finding(
            Reason.DUPLICATE_CONTACT,
            f"contact {twice[0][:SAID]!r} is listed more than once among the active ones; "
            "the set is refused",
        )
    return None
