"""What is made beside the control loop: one thing at a time, the last one that is wanted."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from hanging import HANG_S

from delassus_ros.node.change import Handover
from delassus_ros.ros import background
from delassus_ros.ros.background import CANCEL_LIMIT_S, BackgroundTask, wait_for_end


class Timers:
    """In place of a node; counts its timers."""

    count = 0

    def get_logger(self) -> None:
        """Nothing is written: tests look at what is said."""

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

    def __call__(self, cancelled: threading.Event) -> str:
        self.begun.set()
        assert self.end.wait(HANG_S)
        return self.name


@pytest.fixture
def done() -> list[str]:
    return []


@pytest.fixture
def hands(done: list[str]) -> Handover[str]:
    return Handover(Timers(), lambda action: action(), done.append, done.append)  # type: ignore[arg-type]


def finish(hands: Handover[str]) -> None:
    """Poll as the timer would, until all has been handed over."""
    for task in hands._tasks:
        task.thread.join(HANG_S)
    while hands.building:
        hands.poll()
        for task in hands._tasks:
            task.thread.join(HANG_S)


def test_of_many_that_follow_each_other_the_last_one_is_made(hands, done) -> None:
    works = [Work(f"work {k}") for k in range(8)]
    for work in works:
        hands.begin(work.name, work)
        hands.poll()
    assert works[0].begun.wait(HANG_S)
    assert len(hands._tasks) == 1
    for work in works:
        work.end.set()
    finish(hands)
    assert done == ["work 7"]
    assert [work.begun.is_set() for work in works] == [True] + 6 * [False] + [True]


class Clock:
    """Time as the tests tell it."""

    def __init__(self) -> None:
        self.now = 100.0

        self.sleep, self.perf_counter = time.sleep, time.perf_counter

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(background, "time", found)
    return found


@pytest.fixture
def said(hands, monkeypatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(hands, "_report", found.append)
    return found


def test_what_does_not_end_is_left_alone_in_time(hands, done, clock, said) -> None:
    """However often something else is wanted meanwhile, and it holds up nothing any more."""
    hanging = Work("hanging")
    hands.begin(hanging.name, hanging)
    assert hanging.begun.wait(HANG_S)
    works = [Work(f"work {k}") for k in range(int(CANCEL_LIMIT_S) + 1)]
    for work in works:
        assert said == []
        # As the parameter is followed.
        hands.cancel()
        hands.begin(work.name, work)
        hands.poll()
        clock.now += 1.0
    hands.poll()
    assert works[-1].begun.wait(HANG_S)
    assert not any(work.begun.is_set() for work in works[:-1])
    words = f"hanging was given up but has not ended within {CANCEL_LIMIT_S:g} s: its thread is"
    assert [words in each for each in said] == [True]
    works[-1].end.set()
    hands._task.thread.join(HANG_S)
    hands.poll()
    assert done == [works[-1].name]
    # The next one has its turn at once.
    another = Work("another")
    hands.begin(another.name, another)
    assert another.begun.wait(HANG_S)
    another.end.set()
    hands._task.thread.join(HANG_S)
    hands.poll()
    assert done == [works[-1].name, "another"]
    # Nor is it waited for once more, nor spoken of.
    hands.close()
    assert len(said) == 1
    hanging.end.set()
    finish(hands)
    assert done == [works[-1].name, "another"]


def test_all_that_is_given_up_at_the_end_has_the_same_time(clock) -> None:
    works, said = [Work("first"), Work("second")], []
    tasks = [BackgroundTask(work.name, work) for work in works]
    works[1].end.set()
    joined = []
    for task in tasks:
        task.thread.join(HANG_S if task.thread.name == "second" else 0.0)
        task.thread.join = joined.append  # type: ignore[method-assign]
    clock.now += 1.0
    tasks[0].cancel()
    clock.now += CANCEL_LIMIT_S
    assert wait_for_end(tasks, said.append) == tasks[:1]
    assert joined == [0.0, CANCEL_LIMIT_S]
    assert len(said) == 1 and said[0].startswith("first was given up")
    assert wait_for_end(tasks, said.append) == tasks[:1]
    assert len(said) == 1
    works[0].end.set()
    del tasks[0].thread.join
    tasks[0].thread.join(HANG_S)
    assert wait_for_end(tasks, said.append) == []


def test_an_interrupt_when_a_thread_has_begun_is_undone_once(monkeypatch) -> None:
    usual = sys.getswitchinterval()
    work, other = Work("work"), Work("other")
    start = threading.Thread.start
    begun: list[threading.Thread] = []

    def interrupted(self: threading.Thread) -> None:
        start(self)
        begun.append(self)
        raise KeyboardInterrupt

    task = BackgroundTask(other.name, other)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            BackgroundTask(work.name, work)
    work.end.set()
    begun[0].join(HANG_S)
    # The other one still works.
    assert sys.getswitchinterval() == pytest.approx(background._SWITCH_INTERVAL_S)
    other.end.set()
    task.thread.join(HANG_S)
    assert sys.getswitchinterval() == pytest.approx(usual)


def test_what_waits_may_be_given_up(hands, done) -> None:
    first, second = Work("first"), Work("second")
    hands.begin(first.name, first)
    hands.begin(second.name, second)
    assert hands.building
    hands.cancel()
    assert not hands.building
    first.end.set()
    finish(hands)
    hands.poll()
    assert done == []
    assert not second.begun.is_set()


def test_a_part_is_adopted_where_no_matrix_comes(done) -> None:
    hands = Handover(Timers(), lambda action: None, done.append, done.append)
    work = Work("ready")
    work.end.set()
    hands.begin(work.name, work)
    hands._task.thread.join(HANG_S)
    hands.poll()
    assert done == []
    hands.poll()
    assert done == ["ready"]
    assert not hands.building
    assert hands._node.count == 0


def test_threads_take_turns_more_often_while_one_works(hands) -> None:
    usual = sys.getswitchinterval()
    work = Work("work")
    hands.begin(work.name, work)
    # From before the thread begins, as somebody may wait for its turn already.
    assert sys.getswitchinterval() == pytest.approx(background._SWITCH_INTERVAL_S)
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
