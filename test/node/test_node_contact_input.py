"""Sets of active contacts, and what is said about bad ones."""

from __future__ import annotations

import math

import counted
import pytest
from delassus_msgs.msg import ActiveContacts

from delassus_ros import Contact, ContactSet
from delassus_ros.errors import InputError
from delassus_ros.node.inputs.contacts import ContactInput
from delassus_ros.node.reasons import Reason

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
    contacts.reset()
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


def test_several_unknown_contacts_those_that_touch_first(contacts) -> None:
    names = ["LF", "arm", "LFF", "RFF"]
    warning = contacts.read(names, [ACTIVE, INACTIVE, SLIPPING, ACTIVE])
    assert warning.text == (
        "unknown contact 'LFF'; did you mean 'LF'? contacts: LF, RF, LH, RH; unknown, too: 'RFF', "
        "'arm' (the matrix lacks the rows of those that are active)"
    )
    warning = contacts.read(names, [ACTIVE, INACTIVE, INACTIVE, UNKNOWN])
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
        warning = contacts.read(names, [ACTIVE] * 4 + [status] * 400)
    assert searches == ["finger_0"]
    assert "'finger_5' and 394 more" in warning.text
    assert len(warning.text) < 250
    assert contacts.active == FEET
    assert contacts.degraded is (status == ACTIVE)


def test_a_long_unknown_name_is_cut(contacts, searches) -> None:
    warning = contacts.read([10_000 * "LF", 10_000 * "RF"], [ACTIVE, ACTIVE])
    assert warning.text.startswith("unknown contact 'LFLF")
    assert len(warning.text) < 400
    assert not searches


@pytest.mark.parametrize(
    ("count", "status"), [(1, 9), (2, ACTIVE)], ids=["no such status", "listed twice"]
)
def test_a_long_name_of_a_contradictory_set_is_cut(contacts, count, status) -> None:
    warning = contacts.read(count * [10_000 * "LF"], count * [status])
    assert f"contact '{50 * 'LF'}' " in warning.text
    assert len(warning.text) < 400


def test_other_unknown_contacts_each_time_end_the_searches(contacts, searches) -> None:
    for k in range(1000):
        warning = contacts.read(["LF", f"finger_{k}"], [ACTIVE, ACTIVE])
        assert warning.text.startswith(f"unknown contact 'finger_{k}'")
    assert len(searches) == 64
    # Those that were known before keep what was found for them.
    assert "; contacts: LF" in contacts.read(["finger_3"], [ACTIVE]).text
    assert len(searches) == 64


def test_set_that_is_not_repeated_gets_too_old() -> None:
    contacts = ContactInput(ContactSet([Contact("LF", "LF_FOOT")]), timeout=0.5)
    second = 1_000_000_000
    assert contacts.stale(9 * second) is None
    contacts.read(["LF"], [ACTIVE], now=10 * second)
    assert contacts.stale(10 * second + second // 2) is None
    warning = contacts.stale(11 * second)
    assert warning.reason is Reason.CONTACTS_STALE
    assert "for 1 s, at most 0.5 s are allowed (contacts_timeout)" in warning.text
    contacts.read(["LF"], [ACTIVE], now=11 * second)
    assert contacts.stale(11 * second) is None
    # No contact at all is as good a set as any.
    contacts.read([], [], now=12 * second)
    assert contacts.stale(13 * second).reason is Reason.CONTACTS_STALE
    contacts.set_timeout(2.0)
    assert contacts.stale(13 * second) is None
    # A clock that was set back, one that has not begun, and a set that was refused.
    assert contacts.stale(second) is None
    assert contacts.stale(0) is None
    contacts.read(["LF"], [9], now=12 * second)
    assert contacts.stale(99 * second) is None


def test_a_set_that_is_refused_has_arrived(contacts) -> None:
    second = 1_000_000_000
    assert math.isnan(contacts.latest.age(3 * second))
    contacts.read(FEET, [ACTIVE] * 4, now=5 * second)
    contacts.read(["LF", "LF"], [ACTIVE, ACTIVE], now=7 * second)
    assert contacts.latest.age(10 * second) == 3.0
    contacts.restart(9 * second)
    assert contacts.latest.age(10 * second) == 1.0
    contacts.reset()
    assert math.isnan(contacts.latest.age(10 * second))


def test_without_timeout_no_set_is_too_old(contacts) -> None:
    contacts.read(["LF"], [ACTIVE], now=1)
    assert contacts.stale(10**18) is None


def test_clock_set_back_keeps_nothing_alive(contacts) -> None:
    second = 10**9
    contacts.set_timeout(0.5)
    contacts.read(["LF"], [ACTIVE], 5000 * second)
    back = 1400 * second
    assert contacts.stale(back) is None
    assert contacts.stale(back + second // 2) is None
    assert contacts.stale(back + second).reason is Reason.CONTACTS_STALE
    # A set that was refused is as old in the diagnostics.
    contacts.read(["LF"], [], 5000 * second)
    assert contacts.latest.age(back) == 0.0
    assert contacts.latest.age(back + 2 * second) == 2.0


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_timeout_must_be_positive(contacts, timeout) -> None:
    with pytest.raises(InputError, match="contacts timeout is"):
        contacts.set_timeout(timeout)


def test_a_set_is_as_old_as_its_stamp(contacts) -> None:
    """One that is repeated with the stamp of the last change says nothing about the present."""
    contacts.set_timeout(0.5)
    now = 10**18
    assert contacts.read(["LF"], [ACTIVE], now, now - 400_000_000) is None
    assert contacts.stale(now) is None
    warning = contacts.stale(now + 200_000_000)
    assert warning is not None and warning.reason is Reason.CONTACTS_STALE
    assert "the set of active contacts is 0.6 s old by its stamp" in warning.text
    assert contacts.latest.age(now + 200_000_000) == pytest.approx(0.6)
    # One that is ahead of the clock makes nothing younger, and none counts from when it was sent.
    for stamp, delay in ((now + 10**10, 0), (0, 0), (0, 400_000_000)):
        contacts.read(["LF"], [ACTIVE], now, stamp, delay)
        late = now + 500_000_001 - delay
        assert contacts.stale(late - 1) is None
        warning = contacts.stale(late)
        assert warning is not None and "no set of active contacts has come" in warning.text
