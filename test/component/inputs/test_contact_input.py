"""Sets of active contacts, and what is said about bad ones."""

from __future__ import annotations

from collections.abc import Sequence

import counted
import pytest
from delassus_msgs.msg import ActiveContacts

from delassus import Contact, ContactSet
from delassus_ros.inputs.contacts import NO_SET, ContactInput
from delassus_ros.inputs.findings import Finding, Validity

UNKNOWN, INACTIVE = ActiveContacts.UNKNOWN, ActiveContacts.INACTIVE
ACTIVE, SLIPPING = ActiveContacts.ACTIVE, ActiveContacts.SLIPPING
FEET = ("LF", "RF", "LH", "RH")


@pytest.fixture(name="contacts")
def make_contacts() -> ContactInput:
    return ContactInput(ContactSet(Contact(name, frame=f"{name}_FOOT") for name in FEET))


def read(contacts: ContactInput, names: Sequence[str], status: Sequence[int]) -> Finding | None:
    """Let the input take a set without a stamp, while its clock has no time."""
    return contacts.accept(ActiveContacts(names=names, status=status), 0)


def test_before_the_first_set(contacts) -> None:
    assert contacts.active is None
    assert contacts.finding is NO_SET
    assert contacts.status(FEET) == [UNKNOWN] * 4


def test_status_of_listed_and_unlisted_contacts(contacts) -> None:
    read(contacts, ["RH", "LF", "LH"], [SLIPPING, ACTIVE, UNKNOWN])
    assert contacts.status(FEET) == [ACTIVE, INACTIVE, UNKNOWN, SLIPPING]
    read(contacts, ["LF", "LF"], [ACTIVE, ACTIVE])
    assert contacts.status(FEET) == [UNKNOWN] * 4


def test_older_set_is_used_after_a_refused_one_alone(contacts) -> None:
    """No newer set is in use then, so that the older one was not overtaken."""
    sets = [(10, ["LF"]), (9, ["RF"]), (10, ["LF", "LF"]), (9, ["RF"])]
    active = []
    for second, names in sets:
        message = ActiveContacts(names=names, status=[ACTIVE] * len(names))
        message.header.stamp.sec = second
        contacts.accept(message, 10_100_000_000)
        active.append(contacts.active)
    assert active == [("LF",), ("LF",), None, ("RF",)]


def test_forgetting_is_as_before_the_first_set(contacts) -> None:
    read(contacts, ["LF", "arm"], [ACTIVE, ACTIVE])
    contacts.reset()
    assert contacts.active is None
    assert contacts.finding is NO_SET
    assert contacts.status(FEET) == [UNKNOWN] * 4


def test_active_and_slipping_count(contacts) -> None:
    assert read(contacts, FEET, [ACTIVE, UNKNOWN, SLIPPING, INACTIVE]) is None
    assert contacts.active == ("LF", "LH")
    assert contacts.finding is None


def test_a_set_replaces_the_one_before_as_a_whole(contacts) -> None:
    read(contacts, FEET, [ACTIVE] * 4)
    assert read(contacts, ["RF"], [ACTIVE]) is None
    assert contacts.active == ("RF",)
    assert read(contacts, [], []) is None
    assert contacts.active == ()


def test_several_unknown_contacts_those_that_touch_first(contacts) -> None:
    names = ["LF", "arm", "LFF", "RFF"]
    warning = read(contacts, names, [ACTIVE, INACTIVE, SLIPPING, ACTIVE])
    assert warning.text == (
        "unknown contact 'LFF'; did you mean 'LF'? contacts: LF, RF, LH, RH; unknown, too: 'RFF', "
        "'arm' (the matrix lacks the rows of those that are active)"
    )
    warning = read(contacts, names, [ACTIVE, INACTIVE, INACTIVE, UNKNOWN])
    assert warning.text == (
        "unknown contact 'arm'; contacts: LF, RF, LH, RH; unknown, too: 'LFF', 'RFF' "
        "(ignored, as none is active)"
    )


@pytest.fixture(name="searches")
def make_searches(monkeypatch) -> list[str]:
    return counted.searches(monkeypatch)


@pytest.mark.parametrize("status", [ACTIVE, INACTIVE])
def test_many_unknown_contacts_take_one_search_and_a_line(contacts, searches, status) -> None:
    names = [*FEET, *(f"finger_{k}" for k in range(400))]
    for _ in range(100):
        warning = read(contacts, names, [ACTIVE] * 4 + [status] * 400)
    assert searches == ["finger_0"]
    assert "'finger_5' and 394 more" in warning.text
    assert len(warning.text) < 250
    assert contacts.active == FEET
    validity = Validity.DEGRADED if status == ACTIVE else Validity.OK
    assert contacts.finding.validity is validity


def test_a_long_unknown_name_is_cut(contacts, searches) -> None:
    warning = read(contacts, [10_000 * "LF", 10_000 * "RF"], [ACTIVE, ACTIVE])
    assert warning.text.startswith("unknown contact 'LFLF")
    assert len(warning.text) < 400
    assert not searches


@pytest.mark.parametrize(
    ("count", "status"), [(1, 9), (2, ACTIVE)], ids=["no such status", "listed twice"]
)
def test_a_long_name_of_a_contradictory_set_is_cut(contacts, count, status) -> None:
    warning = read(contacts, count * [10_000 * "LF"], count * [status])
    assert f"contact '{50 * 'LF'}' " in warning.text
    assert len(warning.text) < 400


def test_other_unknown_contacts_each_time_end_the_searches(contacts, searches) -> None:
    for k in range(1000):
        warning = read(contacts, ["LF", f"finger_{k}"], [ACTIVE, ACTIVE])
        assert warning.text.startswith(f"unknown contact 'finger_{k}'")
    assert len(searches) == 64
    # Those that were known before keep what was found for them.
    assert "; contacts: LF" in read(contacts, ["finger_3"], [ACTIVE]).text
    assert len(searches) == 64


@pytest.mark.parametrize(
    ("computed", "words"),
    [(False, "its publisher has to repeat it"), (True, "it follows from joint states, which")],
)
def test_a_set_that_is_too_old_names_what_has_to_come(computed: bool, words: str) -> None:
    """A set that the node makes itself has no publisher."""
    names = ContactSet(Contact(name, frame=f"{name}_FOOT") for name in FEET)
    contacts = ContactInput(names, 0.5, computed)
    message = ActiveContacts(names=FEET, status=[ACTIVE] * 4)
    message.header.stamp.sec = 10
    contacts.accept(message, 10_100_000_000)
    stale = contacts.stale(11_000_000_000)
    assert stale is not None and words in stale.text and "contacts_timeout" in stale.text
