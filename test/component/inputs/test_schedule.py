"""Contacts to come: the mode at the stamp of each joint state, and never one that is not known."""

from __future__ import annotations

import gc

import numpy as np
from delassus_msgs.msg import ActiveContacts, ContactSchedule
from tick_support import (
    DEGRADED,
    INVALID,
    MS,
    OK,
    TROT,
    ScheduleRig,
    mode,
    said,
    to_message,
)

from delassus_ros.inputs.findings import Finding, Reason
from delassus_ros.inputs.schedule import ScheduleInput

FEET = ("LF", "RF", "LH", "RH")
UNKNOWN, INACTIVE, ACTIVE, SLIPPING = range(4)


def test_the_topic_is_the_schedule_s() -> None:
    rig = ScheduleRig()
    assert "contact_schedule" in rig.tick.topics
    assert "active_contacts" not in rig.tick.topics


def test_the_mode_is_that_of_the_joint_state() -> None:
    rig = ScheduleRig()
    rig.plan()
    for k in range(16):
        assert rig.ask(mode(k // 4)).validity == OK, rig.text
        rig.wait(5.0)
    # The plan has ended.
    answer = rig.ask(None)
    assert said(answer) == (INVALID, Reason.NO_CONTACTS_RECEIVED | Reason.CONTACTS_STALE)
    assert "ended 0 s before the joint state" in rig.text
    rig.plan()
    assert rig.ask(mode(0)).validity == OK


def test_age_of_a_schedule_counts_from_sending() -> None:
    """Times to come of a plan that was stamped long ago are known as long as it is repeated."""
    schedule, now = ScheduleInput(0.5), 10_000 * MS
    plan = ContactSchedule(names=list(FEET), times=[0.0], end=60.0, status=[ACTIVE] * len(FEET))
    plan.header.stamp = to_message(1000 * MS)
    assert schedule.accept(plan, now) is None
    assert isinstance(schedule.at(now, now + 500 * MS), ActiveContacts)
    stale = schedule.at(now, now + 501 * MS)
    assert isinstance(stale, Finding) and stale.reason is Reason.CONTACTS_STALE


def test_a_message_is_made_of_a_mode_at_its_first_use_alone() -> None:
    def made() -> int:
        gc.collect()
        return sum(isinstance(each, ActiveContacts) for each in gc.get_objects())

    schedule, before, count = ScheduleInput(), made(), 50
    plan = ContactSchedule(
        names=list(FEET), times=[0.02 * k for k in range(count)], end=0.02 * count,
        status=[value for k in range(count) for value in TROT[k % 2]],
    )  # fmt: skip
    plan.header.stamp = to_message(1000 * MS)
    assert schedule.accept(plan, 1000 * MS) is None and made() == before
    first = schedule.at(1025 * MS, 1025 * MS)
    assert isinstance(first, ActiveContacts) and list(first.status) == list(TROT[1])
    assert schedule.at(1035 * MS, 1035 * MS) is first and made() == before + 1
    plan.status = [INACTIVE] * len(plan.status)
    assert schedule.accept(plan, 1036 * MS) is None
    second = schedule.at(1036 * MS, 1036 * MS)
    assert isinstance(second, ActiveContacts) and list(second.status) == [INACTIVE] * len(FEET)


def test_a_contact_slips_as_the_schedule_says() -> None:
    rig = ScheduleRig()
    rig.plan(at=-20.0)
    answer = rig.ask(mode(1))
    assert list(answer.status) == [ActiveContacts.ACTIVE, ActiveContacts.SLIPPING]


def test_before_the_first_schedule_and_before_its_beginning_nothing_is_known() -> None:
    rig = ScheduleRig()
    assert said(rig.ask(None)) == (INVALID, Reason.NO_CONTACTS_RECEIVED)
    assert "no schedule of contacts has arrived yet" in rig.text
    rig.plan(at=10.0)
    assert rig.ask(None).validity == INVALID
    assert "begins 0.01 s after the joint state" in rig.text
    rig.wait(10.0)
    assert rig.ask(mode(0)).validity == OK


def test_a_planner_that_has_ended_is_followed_no_longer() -> None:
    rig = ScheduleRig()
    long = {"times": [0.0], "end": 10.0, "status": list(TROT[0])}
    rig.plan(**long)
    rig.wait(490.0)
    assert rig.ask(mode(0)).validity == OK
    rig.wait(20.0)
    answer = rig.ask(None)
    assert said(answer) == (INVALID, Reason.NO_CONTACTS_RECEIVED | Reason.CONTACTS_STALE)
    assert "no schedule of contacts has come for 0.51 s" in rig.text
    unlimited = ScheduleRig(timeout=float("inf"))
    unlimited.plan(**long)
    unlimited.wait(9000.0)
    assert unlimited.ask(mode(0)).validity == OK


def test_unknown_contacts_are_never_ok() -> None:
    rig = ScheduleRig()
    rig.plan(names=["LF", "RF", "LH", "RX"])
    # The active contact RX has no rows.
    answer = rig.ask(("LF",))
    assert said(answer) == (DEGRADED, Reason.UNKNOWN_CONTACT) and "'RX'" in rig.text
    rig.plan(status=[ACTIVE, UNKNOWN, ACTIVE, ACTIVE] * 4)
    assert rig.ask(None).validity == INVALID
    assert "contact 'RF' is UNKNOWN in the present mode" in rig.text


def test_any_schedule_gives_known_contacts_or_none() -> None:
    """Random schedules, good and bad: an OK matrix has the contacts of the mode at its stamp."""
    rng = np.random.default_rng(0)
    rig, seen = ScheduleRig(), {OK: 0, INVALID: 0, DEGRADED: 0}
    for _ in range(200):
        times = np.round(np.cumsum(rng.uniform(-0.002, 0.03, 4)), 4)
        status = rng.choice(4, 16, p=[0.02, 0.4, 0.4, 0.18])
        start = rig.now + round(rng.uniform(-60.0, 20.0) * MS)
        end = float(times[-1] + rng.uniform(-0.002, 0.03))
        message = ContactSchedule(
            names=list(FEET), times=times.tolist(), end=end, status=status.tolist()
        )
        message.header.stamp = to_message(start)
        rig.tick.end()
        rig.read("contact_schedule", message)
        since = (rig.now - start) / 1e9
        bounds = [*times.tolist(), end]
        k = int(np.searchsorted(times, since, side="right")) - 1
        right = all(a < b for a, b in zip(bounds, bounds[1:], strict=False))
        known = right and k >= 0 and since < end and UNKNOWN not in status[4 * k : 4 * k + 4]
        expected = None
        if known:
            own = status[4 * k : 4 * k + 4]
            expected = tuple(f for f, s in zip(FEET, own, strict=True) if s != INACTIVE)
        answer = rig.ask(expected)
        assert answer.validity == (OK if known else INVALID), rig.text
        seen[answer.validity] += 1
        rig.wait(5.0)
    assert min(seen[OK], seen[INVALID]) > 20
