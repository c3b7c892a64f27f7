"""Sets of active contacts, and what is said about bad ones."""

from __future__ import annotations

import pytest

pytest.importorskip("delassus_msgs", reason="the message package delassus_msgs is not installed")

from delassus_msgs.msg import ActiveContacts  # noqa: E402

from delassus_ros import Contact, ContactSet  # noqa: E402
from delassus_ros.node.contact_input import ContactInput  # noqa: E402
from delassus_ros.node.reasons import Reason  # noqa: E402

UNKNOWN, INACTIVE = ActiveContacts.UNKNOWN, ActiveContacts.INACTIVE
ACTIVE, SLIPPING = ActiveContacts.ACTIVE, ActiveContacts.SLIPPING
FEET = ("LF", "RF", "LH", "RH")


@pytest.fixture(name="contacts")
def make_contacts() -> ContactInput:
    return ContactInput(ContactSet(Contact(name, frame=f"{name}_FOOT") for name in FEET))


def test_before_the_first_set(contacts) -> None:
    assert contacts.active is None
    assert contacts.reasons is Reason.NO_CONTACTS_RECEIVED
    assert contacts.status(FEET) == [UNKNOWN] * 4


def test_status_of_listed_and_unlisted_contacts(contacts) -> None:
    contacts.read(["RH", "LF", "LH"], [SLIPPING, ACTIVE, UNKNOWN])
    assert contacts.status(FEET) == [ACTIVE, INACTIVE, UNKNOWN, SLIPPING]
    contacts.read(["LF", "LF"], [ACTIVE, ACTIVE])
    assert contacts.status(FEET) == [UNKNOWN] * 4


def test_forgetting_is_as_before_the_first_set(contacts) -> None:
    contacts.read(["LF", "arm"], [ACTIVE, ACTIVE])
    contacts.forget()
    assert contacts.active is None
    assert contacts.reasons is Reason.NO_CONTACTS_RECEIVED
    assert not contacts.degraded
    assert contacts.status(FEET) == [UNKNOWN] * 4


def test_active_and_slipping_count(contacts) -> None:
    assert contacts.read(FEET, [ACTIVE, UNKNOWN, SLIPPING, INACTIVE]) is None
    assert contacts.active == ("LF", "LH")
    assert contacts.reasons == Reason.NONE
    assert not contacts.degraded


def test_a_set_replaces_the_one_before_as_a_whole(contacts) -> None:
    contacts.read(FEET, [ACTIVE] * 4)
    assert contacts.read(["RF"], [ACTIVE]) is None
    assert contacts.active == ("RF",)
    assert contacts.read([], []) is None
    assert contacts.active == ()


def test_unknown_contact_that_touches_degrades(contacts) -> None:
    complaint = contacts.read(["LF", "LFF"], [ACTIVE, ACTIVE])
    assert complaint.reason is Reason.UNKNOWN_CONTACT
    assert "unknown contact 'LFF'; did you mean 'LF'? contacts: LF, RF, LH, RH" in complaint.text
    assert "the matrix lacks its rows" in complaint.text
    assert contacts.active == ("LF",)
    assert contacts.reasons is Reason.UNKNOWN_CONTACT
    assert contacts.degraded


def test_unknown_contact_that_does_not_touch_is_mentioned_only(contacts) -> None:
    complaint = contacts.read(["LF", "arm"], [ACTIVE, INACTIVE])
    assert "unknown contact 'arm'" in complaint.text
    assert contacts.active == ("LF",)
    assert contacts.reasons is Reason.UNKNOWN_CONTACT
    assert not contacts.degraded


@pytest.mark.parametrize(
    ("names", "status", "reason", "words"),
    [
        (["LF", "RF"], [ACTIVE], Reason.CONTACTS_MALFORMED, "2 names but 1 status"),
        (["LF", "RF"], [ACTIVE, 7], Reason.CONTACTS_MALFORMED, "'RF' has status 7; expected one"),
        (["LF", "LF"], [ACTIVE, ACTIVE], Reason.DUPLICATE_CONTACT, "'LF' is listed more than"),
    ],
)
def test_contradictory_sets_leave_no_active_set_until_a_good_one(
    contacts, names, status, reason, words
) -> None:
    contacts.read(FEET, [ACTIVE] * 4)
    complaint = contacts.read(names, status)
    assert complaint.reason is reason
    assert words in complaint.text
    assert contacts.active is None
    assert contacts.reasons is reason
    assert contacts.read(["LF"], [ACTIVE]) is None
    assert contacts.active == ("LF",)
    assert contacts.reasons is Reason.NONE
