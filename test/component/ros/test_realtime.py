"""Scheduling, locked memory and garbage: done, or refused in words."""

from __future__ import annotations

import errno
import gc
import os
import resource
import subprocess
import sys
import textwrap
import weakref

import pytest
from hanging import HANG_S
from processes import may_use_fifo

from delassus_ros.ros import realtime
from delassus_ros.ros import realtime as memory_lock
from delassus_ros.ros.realtime import GarbageKeeper, RealtimeMode, RealtimeSettings

linux = pytest.mark.skipif(not hasattr(os, "sched_setscheduler"), reason="needs Linux")
pytestmark = linux


def in_child(code: str) -> str:
    """Return what the code prints in a process of its own, whose priority is nobody else's."""
    start = f"import os, gc\nfrom delassus_ros.ros import realtime\nHANG_S = {HANG_S}\n"
    text = start + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def refuse(number: int):
    def refuse(*_) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


def test_priority_is_refused_with_what_would_help(monkeypatch) -> None:
    monkeypatch.setattr(os, "sched_setscheduler", refuse(errno.EPERM))
    outcome = realtime.set_priority(80)
    assert not outcome.done
    assert "no real-time priority 80 (SCHED_FIFO): not permitted" in outcome.text
    assert "rtprio" in outcome.text


def test_priority_out_of_range() -> None:
    outcome = realtime.set_priority(100)
    assert not outcome.done
    assert "Invalid argument; expected 1 to 99, or 0" in outcome.text


def test_system_without_fifo(monkeypatch) -> None:
    monkeypatch.delattr(os, "sched_setscheduler")
    assert "this system has no SCHED_FIFO" in realtime.set_priority(1).text
    monkeypatch.delattr(os, "sched_setaffinity")
    assert "cannot do that" in realtime.set_processors([0]).text


@pytest.mark.usefixtures("fifo")
def test_priority_is_set_and_not_inherited() -> None:
    output = in_child(
        """
        import subprocess, sys
        outcome = realtime.set_priority(7)
        print(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO,
              os.sched_getparam(0).sched_priority, outcome.text, sep="|")
        ask = "import os; print(os.sched_getscheduler(0) == os.SCHED_OTHER)"
        subprocess.run([sys.executable, "-c", ask], check=True, timeout=HANG_S)
        """
    )
    # The child's answer comes first or last, as the two are buffered apart.
    lines = sorted(output.splitlines())
    assert lines[0] == "True"
    assert lines[1].startswith("True|7|real-time priority 7 (SCHED_FIFO)")


@pytest.mark.usefixtures("fifo")
def test_all_threads_follow_and_later_ones_do_not() -> None:
    output = in_child(
        """
        import threading
        stop = threading.Event()
        first = threading.Thread(target=stop.wait)
        first.start()
        realtime.set_priority(7)
        second = threading.Thread(target=stop.wait)
        second.start()
        def of(thread):
            return os.sched_getscheduler(thread.native_id) & ~os.SCHED_RESET_ON_FORK
        print(of(first) == os.SCHED_FIFO, of(second) == os.SCHED_OTHER)
        realtime.set_priority(0)
        print(of(first) == os.SCHED_OTHER)
        stop.set()
        """
    )
    assert output.splitlines() == ["True True", "True"]


def test_a_thread_that_has_ended_is_no_failure(monkeypatch) -> None:
    seen = []

    def change(thread: int) -> None:
        seen.append(thread)
        if thread:
            raise ProcessLookupError

    realtime._for_all_threads(change)
    assert seen[0] == 0
    monkeypatch.setattr(realtime.Path, "iterdir", refuse(errno.EACCES))
    seen.clear()
    realtime._for_all_threads(change)
    assert seen == [0]


@pytest.mark.usefixtures("fifo")
def test_back_to_normal_scheduling() -> None:
    output = in_child(
        """
        mode = realtime.RealtimeMode()
        mode.enter(realtime.RealtimeSettings(priority=3))
        outcomes = mode.leave()
        print(os.sched_getscheduler(0) == os.SCHED_OTHER, outcomes[0].text)
        """
    )
    assert output.startswith("True normal scheduling")


UNPRIVILEGED = """
    import resource, threading
    RESET = os.SCHED_RESET_ON_FORK
    def drop():
        # What a user has whom limits.conf allows real-time priority: no CAP_SYS_NICE.
        if os.getuid() == 0:
            os.setuid(65534)
    def policies():
        found = [int(thread) for thread in os.listdir("/proc/self/task")]
        return {(os.sched_getscheduler(t) & ~RESET, os.sched_getparam(t).sched_priority)
                for t in found}
    stop = threading.Event()
    other = threading.Thread(target=stop.wait)
    other.start()
"""


@pytest.mark.usefixtures("fifo")
def test_an_unprivileged_user_comes_back_to_normal_scheduling() -> None:
    """The flag for children, which Linux does not let it clear, stays."""
    output = in_child(
        UNPRIVILEGED
        + """
    mode = realtime.RealtimeMode()
    mode.enter(realtime.RealtimeSettings(priority=3, hold_garbage=False))
    print(policies() == {(os.SCHED_FIFO, 3)})
    drop()
    print([outcome.done for outcome in mode.leave()], policies() == {(os.SCHED_OTHER, 0)})
    print(bool(os.sched_getscheduler(0) & RESET), realtime.thread_priority())
    stop.set()
    """
    )
    assert output.splitlines() == ["True", "[True] True", "True 0"]


@pytest.mark.usefixtures("fifo")
def test_an_unprivileged_user_whom_limits_allow_it_may_again_and_again() -> None:
    output = in_child(
        UNPRIVILEGED
        + """
    if os.getuid() == 0:
        try:
            resource.setrlimit(resource.RLIMIT_RTPRIO, (10, 10))
        except (OSError, ValueError):
            print("no limit")
    drop()
    mode = realtime.RealtimeMode()
    for _ in range(3):
        entered = mode.enter(realtime.RealtimeSettings(priority=3, hold_garbage=False))
        inside = policies() == {(os.SCHED_FIFO, 3)}
        left = mode.leave()
        print(entered[-1].done, inside, left[0].done if left else None,
              policies() == {(os.SCHED_OTHER, 0)})
    stop.set()
    """
    )
    lines = output.splitlines()
    if lines[0] == "no limit":
        pytest.skip("not even root may raise the limit of real-time priorities here")
    assert lines == ["True True True True"] * 3


def test_the_flag_for_children_stays_where_it_cannot_be_cleared(monkeypatch) -> None:
    asked = []

    def note(thread: int, policy: int, _param: object) -> None:
        asked.append((thread, policy))
        if not policy & os.SCHED_RESET_ON_FORK:
            raise PermissionError(errno.EPERM, "not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", note)
    monkeypatch.setattr(realtime.Path, "iterdir", lambda _: [])
    outcome = realtime.set_priority(0)
    assert outcome.done and outcome.text.startswith("normal scheduling")
    assert asked == [(0, os.SCHED_OTHER), (0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK)]


def test_processors_are_kept_to_and_released() -> None:
    first = min(os.sched_getaffinity(0))
    output = in_child(
        f"""
        before = os.sched_getaffinity(0)
        outcome = realtime.set_processors([{first}])
        print(outcome.done, os.sched_getaffinity(0) == {{{first}}}, outcome.text, sep="|")
        print(realtime.set_processors([]).done, os.sched_getaffinity(0) >= before, sep="|")
        """
    )
    assert output.splitlines() == [
        f"True|True|runs on processors {first}",
        "True|True",
    ]


def test_mode_returns_to_the_processors_it_came_from() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("needs two processors")
    output = in_child(
        f"""
        os.sched_setaffinity(0, [{allowed[1]}])
        mode = realtime.RealtimeMode()
        mode.enter(realtime.RealtimeSettings(processors=({allowed[0]},), hold_garbage=False))
        inside = os.sched_getaffinity(0)
        mode.leave()
        print(inside, os.sched_getaffinity(0))
        """
    )
    assert output == f"{{{allowed[0]}}} {{{allowed[1]}}}"


def test_unknown_processor_is_named() -> None:
    before = os.sched_getaffinity(0)
    outcome = realtime.set_processors([0, 100_000])
    assert not outcome.done
    assert "there is no processor 100000; processors: 0 to" in outcome.text
    assert os.sched_getaffinity(0) == before


def test_processors_that_are_switched_off_do_not_hide_those_behind(monkeypatch) -> None:
    """Of eight the first four are off."""
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sysconf", lambda _: 8)
    allowed = set(range(4, 8))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(allowed))

    def change(thread: int, cpus) -> None:
        if not thread:
            allowed.intersection_update(cpus)

    monkeypatch.setattr(os, "sched_setaffinity", change)
    outcome = realtime.set_processors([6])
    assert (outcome.done, outcome.text) == (True, "runs on processors 6")


def test_going_back_to_processors_is_not_refused_for_their_number(monkeypatch) -> None:
    """Whatever numbers they have: they were in use."""
    given = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 400_000})
    monkeypatch.setattr(os, "sched_setaffinity", lambda thread, cpus: given.append(set(cpus)))
    mode = RealtimeMode()
    mode.enter(RealtimeSettings(processors=(0, 400_000), hold_garbage=False))
    given.clear()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    assert [outcome.done for outcome in mode.leave()] == [True]
    assert {0, 400_000} in given
    monkeypatch.setattr(os, "sched_setaffinity", refuse(errno.EINVAL))
    outcome = realtime.restore_processors([1])
    assert (outcome.done, outcome.text) == (False, "not back on processors 1: Invalid argument")


def test_processors_refused_by_the_system(monkeypatch) -> None:
    monkeypatch.setattr(os, "sched_setaffinity", refuse(errno.EINVAL))
    outcome = realtime.set_processors([0])
    assert not outcome.done
    assert "not kept to processors 0: Invalid argument" in outcome.text


def test_processors_taken_away_by_a_cgroup(monkeypatch) -> None:
    monkeypatch.setattr(os, "sysconf", lambda _: 4)
    calls = []

    def note(thread: int, cpus: list[int]) -> None:
        if not thread:
            calls.append(set(cpus))

    monkeypatch.setattr(os, "sched_setaffinity", note)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 2})
    outcome = realtime.set_processors([2, 3])
    assert not outcome.done
    assert "of these only 0, 2 are allowed here" in outcome.text
    assert calls == [{2, 3}, {0, 2}]


def test_memory_is_locked_where_that_is_permitted() -> None:
    output = in_child(
        """
        import resource
        if resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] != resource.RLIM_INFINITY \\
                and not realtime._has_capability(14):
            print("refused", realtime.lock_memory().text)
        else:
            locked = lambda: [l for l in open("/proc/self/status") if l.startswith("VmLck")][0]
            first = realtime.lock_memory()
            print("locked", first.done, int(locked().split()[1]) > 1000)
            print(realtime.unlock_memory().done, int(locked().split()[1]))
        """
    )
    assert output.startswith("refused memory not locked: this user may lock") or (
        output.splitlines() == ["locked True True", "True 0"]
    )


def test_memory_limit_is_refused_before_it_hurts(monkeypatch) -> None:
    monkeypatch.setattr(memory_lock, "_has_capability", lambda _: False)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8192 * 1024, 8192 * 1024))
    called = []
    monkeypatch.setattr(memory_lock, "_call_libc", lambda *a: called.append(a))
    outcome = realtime.lock_memory()
    assert not outcome.done
    assert "may lock 8192 kB" in outcome.text and "memlock unlimited" in outcome.text
    assert not called


def test_failure_of_the_c_library_in_words(monkeypatch) -> None:
    monkeypatch.setattr(memory_lock, "_has_capability", lambda _: True)
    monkeypatch.setattr(memory_lock, "_call_libc", lambda *_: "Cannot allocate memory")
    assert realtime.lock_memory().text == "memory not locked: Cannot allocate memory"
    assert realtime.unlock_memory().text == "memory not unlocked: Cannot allocate memory"


def test_calls_of_the_c_library() -> None:
    assert realtime._call_libc("nosuchfunction") == "this system has no nosuchfunction()"
    assert realtime._call_libc("close", -1) == "Bad file descriptor"


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_garbage_is_kept_until_there_is_time() -> None:
    keeper = GarbageKeeper()
    frozen = gc.get_freeze_count()
    try:
        assert keeper.hold().done
        assert not gc.isenabled() and gc.get_freeze_count() > frozen + 1000
        lost = weakref.ref(Cycle())
        keep = [[] for _ in range(5000)]
        assert lost() is not None
        assert keeper.idle()
        assert lost() is None
        assert not keeper.idle()
        assert len(keep) == 5000
        lost = weakref.ref(Cycle())
    finally:
        keeper.release()
    assert lost() is None
    assert gc.isenabled() and gc.get_freeze_count() <= frozen + 1000


def test_what_outlives_a_young_collection_is_found_later() -> None:
    keeper = GarbageKeeper()
    keeper.hold()
    try:
        survivor = Cycle()
        lost = weakref.ref(survivor)
        keep = []
        for _ in range(realtime._MIDDLE + 2):
            keep += [[] for _ in range(realtime._YOUNG + 10)]
            assert keeper.idle()
            survivor = None
        assert survivor is None and lost() is None
    finally:
        keeper.release()


def test_what_outlives_many_collections_is_found_once_a_minute() -> None:
    seconds = [1000.0]
    keeper = GarbageKeeper(lambda: seconds[0])
    assert not keeper.rest()
    keeper.hold()
    try:
        assert not keeper.rest()
        survivors = [Cycle() for _ in range(100)]
        lost = [weakref.ref(each) for each in survivors]
        # Into the oldest generation.
        gc.collect(0)
        gc.collect(1)
        survivors.clear()
        for _ in range(200):
            keep = [[] for _ in range(realtime._YOUNG + 10)]
            keeper.idle()
            del keep
        assert all(each() is not None for each in lost)
        seconds[0] += 59.0
        assert not keeper.rest()
        seconds[0] += 1.0
        assert keeper.rest()
        assert all(each() is None for each in lost)
        assert not keeper.rest()
    finally:
        keeper.release()


def test_garbage_of_two_nodes_in_one_process() -> None:
    first, second = GarbageKeeper(), GarbageKeeper()
    first.hold()
    first.hold()
    second.hold()
    first.release()
    assert not gc.isenabled()
    second.release()
    second.release()
    assert gc.isenabled()
    assert not first.idle()


def test_mode_does_what_is_asked_and_reports_all(monkeypatch) -> None:
    monkeypatch.setattr(os, "sched_setscheduler", refuse(errno.EPERM))
    mode = RealtimeMode()
    settings = RealtimeSettings(priority=10, processors=(100_000,))
    try:
        outcomes = mode.enter(settings)
        assert [outcome.done for outcome in outcomes][1:] == [True, False, False]
        assert "there is no processor 100000" in outcomes[2].text
        assert "not permitted" in outcomes[3].text
        assert not gc.isenabled()
        # Again: the first is undone, not piled up.
        mode.enter(settings)
    finally:
        undone = mode.leave()
    assert [outcome.text for outcome in undone] == ["garbage is collected as usual"]
    assert gc.isenabled()
    assert mode.leave() == []


def test_what_cannot_be_undone_is_said_when_entering_again(monkeypatch) -> None:
    mode = RealtimeMode()
    settings = RealtimeSettings(processors=(min(os.sched_getaffinity(0)),), hold_garbage=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(settings.processors))
    assert [outcome.done for outcome in mode.enter(settings)] == [True, True]
    monkeypatch.setattr(os, "sched_setaffinity", refuse(errno.EPERM))
    try:
        outcomes = mode.enter(settings)
    finally:
        mode.leave()
    assert [outcome.done for outcome in outcomes] == [False, True, False]
    assert "Operation not permitted" in outcomes[0].text


def test_mode_without_wishes_changes_no_scheduling() -> None:
    mode = RealtimeMode()
    before = os.sched_getscheduler(0), os.sched_getaffinity(0)
    try:
        outcomes = mode.enter(RealtimeSettings(hold_garbage=False))
        assert len(outcomes) == 1
        assert gc.isenabled()
    finally:
        mode.leave()
    assert (os.sched_getscheduler(0), os.sched_getaffinity(0)) == before


def test_the_latest_node_of_a_process_counts_and_leaves_what_it_found() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        pytest.skip("needs two processors")
    a, b = allowed[:2]
    fifo = int(may_use_fifo())
    output = in_child(
        f"""
        def now():
            return sorted(os.sched_getaffinity(0)), os.sched_getparam(0).sched_priority
        Settings = realtime.RealtimeSettings
        before = now()
        first, second = realtime.RealtimeMode(), realtime.RealtimeMode()
        first.enter(Settings(processors=({a},), priority={3 * fifo}))
        second.enter(Settings(processors=({b},), priority={5 * fifo}))
        print(now())
        second.leave()
        print(now(), gc.isenabled())
        first.leave()
        print(now() == before, gc.isenabled())
        """
    )
    expected = [f"{([b], 5 * fifo)}", f"{([a], 3 * fifo)} False", "True True"]
    assert output.splitlines() == expected


@pytest.mark.usefixtures("fifo")
def test_a_thread_that_is_waited_for_follows_just_below() -> None:
    """It does not wait for the rest of the machine; what it starts is normal."""
    output = in_child(
        """
        import subprocess, sys, threading
        realtime.set_priority(7)
        present = realtime.thread_priority()
        seen = []
        def run():
            seen.append(realtime.thread_priority())
            with realtime.following(present):
                seen.append(realtime.thread_priority())
                code = "import os; print(os.sched_getscheduler(0) == os.SCHED_OTHER)"
                seen.append(subprocess.run([sys.executable, "-c", code], stdout=-1).stdout.strip())
                ready.set()
                raised.wait(HANG_S)
                seen.append(realtime.thread_priority())
        thread = threading.Thread(target=run)
        ready, raised = threading.Event(), threading.Event()
        thread.start()
        ready.wait(HANG_S)
        realtime.set_priority(9)
        raised.set()
        thread.join()
        print(present, seen, realtime._followers)
        """
    )
    assert output == "7 [0, 6, b'True', 8] set()"
    before = realtime.thread_priority()
    with realtime.following(0):
        assert realtime.thread_priority() == before
