"""The threads that share a batch: all is done once, whatever happens, and none is left."""

from __future__ import annotations

import ctypes
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hanging import HANG_S
from processes import wait_until

from delassus.compiler.runtime import team
from delassus.compiler.runtime.kernel import aligned_zeros
from delassus.compiler.runtime.team import _AWAKE_S, _calls
from delassus.compiler.runtime.team_loops import BOX_SIZE, END, post, serve, settled, share
from delassus.compiler.runtime.team_loops import Job as Entry

FUNCTION = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 9)
WIDTH = 8
IN, IN_STEP, OUT, OUT_STEP, STATUS = 10_000, 3, 2_000_000, 5, 7_000_000


@dataclass
class Job:
    """A job whose parts are noted.

    Attributes
    ----------
    parts : the first configuration and the number of each part.
    threads, works : those that have worked at it.
    during : is called at each part.
    """

    n: int
    threads_wanted: int = 2
    during: Callable[[], object] = lambda: None
    parts: list[tuple[int, int]] = field(default_factory=list)
    threads: set[int] = field(default_factory=set)
    works: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._function = FUNCTION(self._part)
        values = {
            "function": ctypes.cast(self._function, ctypes.c_void_p).value,
            "in": IN, "in_stride": 11, "in_step": IN_STEP,
            "out": OUT, "out_stride": 12, "out_step": OUT_STEP,
            "status": STATUS, "n": self.n, "pick": 13, "picked": 14, "width": WIDTH,
            "part": 2 * WIDTH, "share": 2 * self.threads_wanted, "next": 0,
        }  # fmt: skip
        self._entries = (ctypes.c_int64 * len(Entry))(*(values[e.name.lower()] for e in Entry))

    @property
    def address(self) -> int:
        """Where its entries are."""
        return ctypes.addressof(self._entries)

    def do(self) -> None:
        """Have it done; threads are told apart by their work areas, 1, 2, ..."""
        team.together(self.address, range(1, 1 + self.threads_wanted))

    def _part(self, *arguments: int) -> None:
        at_in, in_stride, at_out, out_stride, at_status, count, pick, picked, work = arguments
        assert (in_stride, out_stride, pick, picked) == (11, 12, 13, 14)
        first = (at_status - STATUS) // 4
        assert at_in == IN + 8 * IN_STEP * first and at_out == OUT + 8 * OUT_STEP * first
        self.parts.append((first, count))
        self.threads.add(threading.get_ident())
        self.works.add((threading.get_ident(), work))
        self.during()

    def check(self) -> None:
        """All is done once; parts are whole vectors, but that the last one may go back for it."""
        end = 0
        for first, count in sorted(self.parts, key=sum):
            assert count >= WIDTH
            assert first == end or (first == self.n - WIDTH < end)
            end = first + count
        assert end == self.n
        assert len(self.works) == len(self.threads) == len({work for _, work in self.works})


def joint(n: int = 400) -> Job:
    """Return a job whose first part waits until another thread works at it."""
    job = Job(n)
    job.during = lambda: wait_until(lambda: len(job.threads) == 2, "second thread")
    return job


@pytest.mark.parametrize("n", [WIDTH, 2 * WIDTH, 33, 100, 1000, 4096, 4097, 4103])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_all_is_done_once(threads: int, n: int) -> None:
    for _ in range(20):
        job = Job(n, threads)
        job.do()
        job.check()


def test_parts_become_smaller() -> None:
    job = Job(4096, 2)
    team.together(job.address, [1])
    assert [count for _, count in job.parts[:3]] == [1024, 768, 576]
    assert job.parts[-1][1] == 2 * WIDTH


@pytest.mark.parametrize("n", [WIDTH, 33, 4103])
def test_the_parts_are_those_of_the_loop_as_python(n: int) -> None:
    compiled, interpreted = Job(n), Job(n)
    team.together(compiled.address, [1])
    share(np.array(interpreted._entries, np.int64), 1)
    assert interpreted.parts == compiled.parts
    assert interpreted.works == compiled.works


def test_the_mailbox_as_python() -> None:
    box, job = np.zeros(BOX_SIZE, np.int64), Job(400)
    post(box, job.address, 1)
    assert settled(box, 1) and serve(box, 3) == 0
    assert not job.parts, "it was taken back"
    post(box, job.address, 1)
    assert serve(box, 3) == 0 and settled(box, 1)
    job.check()
    post(box, END, 0)
    assert serve(box, 3) == 1


def test_threads_stay_for_the_next_call_asleep_or_awake() -> None:
    threads = set()
    for turn in range(40):
        if turn == 20:
            wait_until(lambda: all(each._asleep for each in team._idle), "threads that sleep")
        job = joint()
        job.do()
        job.check()
        threads |= job.threads
    assert len(threads) == 2 and threading.get_ident() in threads


def test_a_thread_looks_as_long_as_it_says() -> None:
    """A fifth at least: the processor may be faster by now; a busy one makes it longer."""
    box, times = aligned_zeros(BOX_SIZE), []
    for _ in range(5):
        start = time.perf_counter()
        assert _calls().serve(box.ctypes.data, _calls().polls) == 0
        times.append(time.perf_counter() - start)
    assert max(times) >= 0.2 * _AWAKE_S


class Ears(threading.Event):
    """What a thread sleeps on that only `wake` wakes: its processor is somebody else's.

    Attributes
    ----------
    naps : how often it has gone to sleep.
    """

    def __init__(self) -> None:
        super().__init__()
        self.naps = 0

    def wait(self, timeout: float | None = None) -> bool:
        self.naps += 1
        return super().wait(timeout)

    def set(self) -> None:
        """Do nothing."""

    def wake(self) -> None:
        super().set()


@pytest.fixture(name="ears")
def make_ears(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ears]:
    """Have one idle thread, asleep and not to be woken; these are its ears."""
    joint().do()
    member, ears = team._idle[-1], Ears()
    before = member._called
    monkeypatch.setattr(team, "_idle", [member])
    monkeypatch.setattr(member, "_called", ears)
    # It may have slept before.
    before.set()
    wait_until(lambda: ears.naps == 1, "first nap")
    yield ears
    monkeypatch.undo()
    ears.wake()


def test_nobody_waits_for_a_thread_that_does_not_come(ears: Ears) -> None:
    members = list(team._idle)
    job = Job(400)
    job.do()
    job.check()
    assert job.threads == {threading.get_ident()}
    assert team._idle == members and ears.naps == 1


def test_what_was_taken_back_is_done_by_nobody(ears: Ears) -> None:
    job = Job(400)
    job.do()
    ears.wake()
    wait_until(lambda: ears.naps == 2, "second nap")
    job.check()
    assert job.threads == {threading.get_ident()}
    # It takes the next one.
    after = joint()
    after.during = lambda: (
        ears.wake(),
        wait_until(lambda: len(after.threads) == 2, "second thread"),
    )
    after.do()
    after.check()


def test_a_caller_that_is_interrupted_waits_for_those_who_work() -> None:
    """Else they would read and write arrays that are no longer there."""
    main, ended, job = threading.get_ident(), [], Job(2 * 2 * WIDTH)
    left = threading.Event()

    def work() -> None:
        wait_until(lambda: len(job.threads) == 2, "second thread")
        if threading.get_ident() == main:
            left.set()
        else:
            left.wait(HANG_S)
            for _ in range(3):
                # The interrupted call waits meanwhile: nothing tells when it does.
                time.sleep(0.05)
                signal.pthread_kill(main, signal.SIGINT)
            ended.append(True)

    job.during = work
    idle = len(team._idle)
    # Programs that ran in this process before may have left it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            job.do()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended
    # The thread is there for the next call.
    assert len(team._idle) == max(idle, 1)


def test_callers_do_not_meet() -> None:
    def call(_: int) -> None:
        for n in range(200, 400):
            job = Job(n, 3)
            job.do()
            job.check()

    with ThreadPoolExecutor(max_workers=4) as pool:
        list(pool.map(call, range(4)))


@pytest.mark.parametrize("pause", [0.0, 0.05])
def test_a_process_ends_while_they_look_and_while_they_sleep(pause: float) -> None:
    program = f"""
import time
import numpy as np
from small import problem
from delassus import DelassusSolver
from delassus.compiler.runtime import batch_kernel, team
batch_kernel.processors = lambda: 4
solver = DelassusSolver(problem())
solver.solve_batch(np.zeros((4096, solver.problem.robot.nq)), threads=4)
assert team._idle
time.sleep({pause})
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        timeout=HANG_S,
        capture_output=True,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
