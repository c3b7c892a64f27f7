"""What is made beside the control loop: one thing at a time, the last one that is wanted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="ROS 2 (rclpy) is not installed")

from delassus_ros.node import background, handover  # noqa: E402
from delassus_ros.node.handover import Handover  # noqa: E402

LIMIT = 20.0  # s


class Timers:
    """In place of a node; counts those that there are."""

    count = 0

    def create_timer(self, period: float, callback: Callable[[], None], clock: Any) -> object:
        self.count += 1
        return callback

    def destroy_timer(self, timer: object) -> None:
        self.count -= 1


class Work:
    """Something whose making takes until it is told to end."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.begun, self.end = threading.Event(), threading.Event()

    def __call__(self, unwanted: threading.Event) -> str:
        self.begun.set()
        assert self.end.wait(LIMIT)
        return self.name


@pytest.fixture
def done() -> list[str]:
    return []


@pytest.fixture
def hands(done: list[str]) -> Handover[str]:
    return Handover(Timers(), lambda action: action(), done.append, done.append)  # type: ignore[arg-type]


def finish(hands: Handover[str]) -> None:
    """Poll as the timer would, until all has been handed over."""
    for thread in hands._threads:
        thread.join(LIMIT)
    while hands.building:
        hands.poll()
        for thread in hands._threads:
            thread.join(LIMIT)


def test_of_many_that_follow_each_other_the_last_one_is_made(hands, done) -> None:
    works = [Work(f"work {k}") for k in range(8)]
    for work in works:
        hands.begin(work.name, work)
        hands.poll()
    assert works[0].begun.wait(LIMIT)
    assert len(hands._threads) == 1
    for work in works:
        work.end.set()
    finish(hands)
    assert done == ["work 7"]
    assert [work.begun.is_set() for work in works] == [True] + 6 * [False] + [True]


def test_what_does_not_end_is_not_waited_for_long(hands, done, monkeypatch) -> None:
    hanging, next_one = Work("hanging"), Work("next one")
    hands.begin(hanging.name, hanging)
    monkeypatch.setattr(handover, "PATIENCE", 0.0)
    hands.begin(next_one.name, next_one)
    assert next_one.begun.wait(LIMIT)
    next_one.end.set()
    hands._task.thread.join(LIMIT)
    hands.poll()
    assert done == ["next one"]
    hanging.end.set()
    finish(hands)
    assert done == ["next one"]


def test_what_waits_may_be_given_up(hands, done) -> None:
    first, second = Work("first"), Work("second")
    hands.begin(first.name, first)
    hands.begin(second.name, second)
    assert hands.building
    hands.give_up()
    assert not hands.building
    first.end.set()
    finish(hands)
    hands.poll()
    assert done == []
    assert not second.begun.is_set()


def test_something_ready_is_handed_over_without_a_thread(hands, done) -> None:
    before = threading.active_count()
    hands.offer("ready")
    assert done == ["ready"]
    assert not hands.building
    assert threading.active_count() == before
    assert hands._node.count == 0


def test_something_ready_is_handed_over_where_no_matrix_comes(done) -> None:
    hands = Handover(Timers(), lambda action: None, done.append, done.append)
    hands.offer("ready")
    assert done == []
    hands.poll()
    assert done == ["ready"]
    assert not hands.building


def test_threads_take_turns_more_often_while_one_works(hands) -> None:
    usual = sys.getswitchinterval()
    work = Work("work")
    hands.begin(work.name, work)
    # From before the thread begins, as somebody may wait for its turn already.
    assert sys.getswitchinterval() == pytest.approx(background._SWITCH)
    work.end.set()
    finish(hands)
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_a_thread_that_cannot_start_is_tried_again(hands, done, monkeypatch) -> None:
    def fail(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    usual = sys.getswitchinterval()
    work = Work("work")
    work.end.set()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError, match="new thread"):
            hands.begin(work.name, work)
    assert sys.getswitchinterval() == pytest.approx(usual)
    assert hands.building and hands._node.count == 1
    finish(hands)
    assert done == ["work"]
    assert hands._node.count == 0
