"""From a message about contacts to the set of active ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from delassus_msgs.msg import ActiveContacts

from delassus_ros.contacts import ContactSet
from delassus_ros.errors import SAID, InputError, UnknownNames, listed
from delassus_ros.node.inputs.arrival import Arrival
from delassus_ros.node.reasons import Complaint, Reason

_IN_CONTACT = (ActiveContacts.ACTIVE, ActiveContacts.SLIPPING)
_STATUS = {
    getattr(ActiveContacts, name): name for name in ("UNKNOWN", "INACTIVE", "ACTIVE", "SLIPPING")
}


class ContactInput:
    """Which contacts of the layout are active.

    A set replaces the one before it as a whole. One that contradicts itself is refused: nobody
    can tell what it means, so there is no active set until the next good one.

    Parameters
    ----------
    contacts : all contacts that may be active.
    timeout : age after which a set is too old [s]; infinite for never. It counts from its stamp,
        and without one from when it was sent.

    Attributes
    ----------
    active : names of the active contacts; None if there is no set to go by.
    reasons : what there is to say about the present set.
    degraded : a contact outside the layout is in contact, so that the matrix lacks its rows.
    """

    def __init__(self, contacts: ContactSet, timeout: float = math.inf) -> None:
        self._known = dict.fromkeys(contacts.names)
        self._strangers = UnknownNames("contact", self._known)
        self._arrival = Arrival()
        self.set_timeout(timeout)
        self.forget()

    def set_timeout(self, timeout: float) -> None:
        """Change the timeout [s].

        Raises
        ------
        InputError
            If it is not positive.
        """
        if not timeout > 0.0:
            raise InputError(f"contacts timeout is {timeout}; expected a positive time in s")
        self._timeout = timeout * 1e9

    def forget(self) -> None:
        """Have no set to go by, as before the first one."""
        self.active: tuple[str, ...] | None = None
        self.reasons = Reason.NO_CONTACTS_RECEIVED
        self.degraded = False
        self._status: Mapping[str, int] = {}
        self._stamp = 0
        self._arrival.forget()

    def restart(self, now: int) -> None:
        """Let the present set count as new, as when the clock was set."""
        self._stamp = 0
        self._arrival.restart(now)

    def age(self, now: int) -> float:
        """Return the age of the latest set, refused or not [s]; NaN if none has come."""
        return self._arrival.age(now, self._stamp)

    def stale(self, now: int) -> Complaint | None:
        """Return what there is to say if the present set is too old, or None.

        Parameters
        ----------
        now : time of the node's clock [ns]; 0 while that has no time yet.
        """
        if self.active is None or self._arrival.within(self._timeout, now, self._stamp):
            return None
        silence = self._arrival.age(now)
        text = f"no set of active contacts has come for {silence:.3g} s"
        if silence <= 1e-9 * self._timeout:
            text = (
                f"the set of active contacts is {self.age(now):.4g} s old by its stamp, or the "
                "clock of its host is another one"
            )
        return Complaint(
            Reason.CONTACTS_STALE,
            f"{text}, at most {1e-9 * self._timeout:g} s are allowed (contacts_timeout); who "
            "publishes it has to repeat it at 10 Hz or more, with a new stamp each time",
        )

    def status(self, contacts: Sequence[str]) -> list[int]:
        """Return the status of each of these contacts of the layout in the present set."""
        unlisted = ActiveContacts.UNKNOWN if self.active is None else ActiveContacts.INACTIVE
        return [self._status.get(name, unlisted) for name in contacts]

    def read(
        self,
        names: Sequence[str],
        status: Sequence[int],
        now: int = 0,
        stamp: int = 0,
        delay: int = 0,
    ) -> Complaint | None:
        """Take a set of contacts with one status each, as in delassus_msgs/ActiveContacts.

        Parameters
        ----------
        now : time of the node's clock [ns]; 0 while that has no time yet: then the set counts
            from when it is first used afterwards.
        stamp : its stamp [ns]; 0 or less if it has none.
        delay : how long before it was sent [ns].

        Returns
        -------
        None, or what is wrong with it.
        """
        complaint = self._contradiction(names, status)
        if complaint is not None:
            self.forget()
            self.reasons = complaint.reason
            self._arrival.note(now, delay)
            return complaint
        self._stamp = max(stamp, 0)
        self._arrival.note(now, delay)
        self._status = dict(zip(names, status, strict=True))
        touching = [
            name for name, value in zip(names, status, strict=True) if value in _IN_CONTACT
        ]
        self.active = tuple(name for name in touching if name in self._known)
        strangers = [name for name in names if name not in self._known]
        self.degraded = len(self.active) < len(touching)
        if not strangers:
            self.reasons = Reason.NONE
            return None
        self.reasons = Reason.UNKNOWN_CONTACT
        if self.degraded:
            # First those whose rows are missed.
            strangers.sort(key=lambda name: self._status[name] not in _IN_CONTACT)
        return Complaint(Reason.UNKNOWN_CONTACT, self._unknown(strangers))

    def _unknown(self, strangers: Sequence[str]) -> str:
        """Return what there is to say about names outside the layout, of at least one."""
        first, *others = strangers
        text = self._strangers.words(first)
        if others:
            text += f"; unknown, too: {listed('', others)}"
        if self.degraded:
            rows = "the rows of those that are active" if others else "its rows"
            return f"{text} (the matrix lacks {rows})"
        ignored = "ignored, as none is active" if others else "ignored, as it is not active"
        return f"{text} ({ignored})"

    def _contradiction(self, names: Sequence[str], status: Sequence[int]) -> Complaint | None:
        if len(names) != len(status):
            return Complaint(
                Reason.CONTACTS_MALFORMED,
                f"the set of active contacts has {len(names)} names but {len(status)} status "
                "values; it is refused",
            )
        for name, value in zip(names, status, strict=True):
            if value not in _STATUS:
                expected = ", ".join(f"{word}={number}" for number, word in _STATUS.items())
                return Complaint(
                    Reason.CONTACTS_MALFORMED,
                    f"contact {name[:SAID]!r} has status {value}; expected one of {expected}; "
                    "the set is refused",
                )
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            return Complaint(
                Reason.DUPLICATE_CONTACT,
                f"contact {twice[0][:SAID]!r} is listed more than once among the active ones; "
                "the set is refused",
            )
        return None
