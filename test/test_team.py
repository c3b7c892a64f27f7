"""The threads that share a batch: what is posted is done, whatever happens, and none is left."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from delassus_ros.compiler import team
from delassus_ros.compiler.kernel import aligned_zeros

FUNCTION = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * team.ARGUMENTS)


def letter(number: int) -> tuple[int, ...]:
    """Return arguments that differ in every place."""
    return tuple(10 * number + k for k in range(team.ARGUMENTS))


def address(function: ctypes._CFuncPtr) -> int:
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.mark.parametrize("others", [0, 1, 3])
def test_all_are_called_with_their_arguments(others: int) -> None:
    called: list[tuple[int, ...]] = []
    function = FUNCTION(lambda *arguments: called.append(arguments))
    letters = [letter(k) for k in range(others)]
    team.together(address(function), letters, lambda: called.append(letter(others)))
    assert sorted(called) == [*letters, letter(others)]


def test_threads_stay_for_the_next_call_asleep_or_awake() -> None:
    called: list[int] = []
    function = FUNCTION(lambda *arguments: called.append(threading.get_ident()))
    for _ in range(100):
        team.together(address(function), [letter(0)], lambda: None)
    until(lambda: all(member._asleep for member in team._idle))
    for _ in range(100):
        team.together(address(function), [letter(0)], lambda: None)
    assert len(called) == 200 and len(set(called)) == 1
    assert called[0] != threading.get_ident()


def test_a_thread_looks_as_long_as_it_says() -> None:
    """A fifth at least: the processor may be faster by now; a busy one makes it longer."""
    calls, box, times = team._calls(), aligned_zeros(team._SIZE), []
    for _ in range(5):
        start = time.perf_counter()
        assert calls.serve(box.ctypes.data, calls.looks) == 0
        times.append(time.perf_counter() - start)
    assert max(times) >= 0.2 * team._AWAKE


def test_a_caller_that_fails_waits_for_the_others() -> None:
    """Else they would read and write arrays that are no longer there."""
    running, done = threading.Event(), []

    def slow(*_: int) -> None:
        running.set()
        time.sleep(0.1)
        done.append(True)

    def fails() -> None:
        assert running.wait(20.0)
        raise KeyboardInterrupt

    function = FUNCTION(slow)
    with pytest.raises(KeyboardInterrupt):
        team.together(address(function), [letter(0), letter(1)], fails)
    assert len(done) == 2


def test_an_interrupt_while_waiting_comes_after() -> None:
    main, done = threading.get_ident(), []

    def slow(*_: int) -> None:
        for _ in range(3):
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.05)
        done.append(True)

    function = FUNCTION(slow)
    idle = len(team._idle)
    with pytest.raises(KeyboardInterrupt):
        team.together(address(function), [letter(0)], lambda: None)
    assert done
    # The thread is there for the next call.
    assert len(team._idle) == max(idle, 1)


def test_callers_do_not_meet() -> None:
    def call(caller: int) -> bool:
        called: list[tuple[int, ...]] = []
        function = FUNCTION(lambda *arguments: called.append(arguments))
        for k in range(200):
            team.together(address(function), [letter(caller), letter(k)], lambda: None)
        expected = [letter(caller)] * 200 + [letter(k) for k in range(200)]
        return sorted(called) == sorted(expected)

    with ThreadPoolExecutor(max_workers=4) as pool:
        assert all(pool.map(call, range(4)))


@pytest.mark.parametrize("pause", [0.0, 0.05])
def test_a_process_ends_while_they_look_and_while_they_sleep(pause: float) -> None:
    program = f"""
import ctypes, time
from delassus_ros.compiler import team
function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * team.ARGUMENTS)(lambda *_: None)
team.together(ctypes.cast(function, ctypes.c_void_p).value, [range(9)] * 3, lambda: None)
time.sleep({pause})
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
