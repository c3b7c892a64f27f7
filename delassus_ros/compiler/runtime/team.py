"""Threads that share a batch, awake for a moment after each.

Waking a thread takes as long as a thousand configurations of an arm: two threads of an ordinary
pool compute 4096 configurations at 0.6 to 1.5 times the speed of one, these at 1.6 to 2.0. So a
thread that has done its part looks out for the next one for a moment before it sleeps, as those of
OpenMP do. It looks and computes in machine code, without the GIL. The caller's thread works as
well, and when nothing is left it waits for those alone that have begun: where the others'
processors are taken, it does all by itself.

A job is a block of 64-bit integers, the same for all who work at it: the batch kernel's function,
its arguments, and how far the configurations are given away. Whoever works takes a part of what is
left, as large as its share of half of that, until nothing is: who comes late takes less, and
nobody waits for long. A letter box is where a thread is told of a job.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Sequence
from functools import lru_cache

from delassus_ros.compiler.codegen.llvm_text import pointer
from delassus_ros.compiler.runtime.jit import LoadedCode, compile_ir
from delassus_ros.compiler.runtime.kernel import aligned_zeros

_SOON = 10
"""A caller looks this many times shorter than a thread before it naps: the parts that are left are
small."""
_NAP = 1e-4
"""Between looks of a caller whose own part was much shorter than the others' [s]."""
JOB = (
    "function", "in", "in_stride", "in_step", "out", "out_stride", "out_step", "status", "n",
    "pick", "picked", "width", "part", "share", "next",
)  # fmt: skip
"""Entries of a job: a function of :mod:`delassus_ros.compiler.codegen.batch` and its arguments;
the steps from one configuration to the next, in doubles; configurations per vector and in the
smallest part; twice the number of threads; the first configuration that nobody has taken, 0 at
first."""
_POSTED, _TAKEN, _DONE, _LETTER = 0, 8, 16, 24
"""Entries of a letter box: the numbers of the letters posted, taken and done, each on a cache line
of its own, and the letter: addresses of the job, 0 to end the thread, and of a work area."""
_BOX = _LETTER + 2
_AWAKE = 5e-4
"""How long a thread looks at a time [s]; it sleeps after two times. Without a pause between
looks: a hypervisor may take a processor that pauses often away from its guest."""
_COUNTED = 200_000
"""Looks of which is measured how long they take: some 0.1 ms, beside which a call is short."""

_SHARE = """
; Works at a job until nothing of it is left.
define void @share({p64} %job, i64 %work) {{
entry:
{entries}
  %next_at = getelementptr i64, {p64} %job, i64 {next}
  %last_vector = sub i64 %n, %width
  %f = inttoptr i64 %function to {type}
  br label %look
look:
  %seen = load atomic i64, {p64} %next_at monotonic, align 8
  br label %take
take:
  %start = phi i64 [ %seen, %look ], [ %other, %size ]
  %left = sub i64 %n, %start
  %any = icmp sgt i64 %left, 0
  br i1 %any, label %size, label %end
size:
  %fair = udiv i64 %left, %share
  %over = urem i64 %fair, %part
  %whole = sub i64 %fair, %over
  %small = icmp eq i64 %whole, 0
  %taken = select i1 %small, i64 %part, i64 %whole
  %after = add i64 %start, %taken
  %pair = cmpxchg {p64} %next_at, i64 %start, i64 %after monotonic monotonic
  %other = extractvalue {{ i64, i1 }} %pair, 0
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %run, label %take
run:
  ; A part has at least one whole vector: the last one may overlap its neighbour.
  %beyond = icmp sgt i64 %after, %n
  %last = select i1 %beyond, i64 %n, i64 %after
  %late = icmp sgt i64 %start, %last_vector
  %first = select i1 %late, i64 %last_vector, i64 %start
  %count = sub i64 %last, %first
  %in_skipped = mul i64 %first, %in_step
  %in_bytes = shl i64 %in_skipped, 3
  %in_at = add i64 %in, %in_bytes
  %out_skipped = mul i64 %first, %out_step
  %out_bytes = shl i64 %out_skipped, 3
  %out_at = add i64 %out, %out_bytes
  %status_bytes = shl i64 %first, 2
  %status_at = add i64 %status, %status_bytes
  call void %f(i64 %in_at, i64 %in_stride, i64 %out_at, i64 %out_stride, i64 %status_at,
               i64 %count, i64 %pick, i64 %picked, i64 %work)
  br label %look
end:
  ret void
}}
"""
_LETTERS = """
; Does what is posted. Returns 0 when there is nothing new for a while, 1 when it is to end.
define i64 @serve({p64} %box, i64 %looks) {{
entry:
  %posted = getelementptr i64, {p64} %box, i64 {posted}
  %taken = getelementptr i64, {p64} %box, i64 {taken}
  %done = getelementptr i64, {p64} %box, i64 {done}
  br label %first
first:
  br label %look
look:
  %k = phi i64 [ %looks, %first ], [ %less, %rest ]
  %p = load atomic volatile i64, {p64} %posted acquire, align 8
  %t = load atomic volatile i64, {p64} %taken monotonic, align 8
  %nothing = icmp eq i64 %p, %t
  br i1 %nothing, label %rest, label %take
rest:
  %less = sub i64 %k, 1
  %over = icmp eq i64 %less, 0
  br i1 %over, label %sleep, label %look
take:
  ; From the number before, as %p may be of a letter that has been taken back.
  %before = sub i64 %p, 1
  %pair = cmpxchg {p64} %taken, i64 %before, i64 %p acq_rel monotonic
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %read, label %first
read:
  %job_at = getelementptr i64, {p64} %box, i64 {letter}
  %job = load i64, {p64} %job_at, align 8
  %work_at = getelementptr i64, {p64} %job_at, i64 1
  %work = load i64, {p64} %work_at, align 8
  %last = icmp eq i64 %job, 0
  br i1 %last, label %end, label %work_on
work_on:
  %address = inttoptr i64 %job to {p64}
  call void @share({p64} %address, i64 %work)
  store atomic i64 %p, {p64} %done release, align 8
  br label %first
sleep:
  ret i64 0
end:
  ret i64 1
}}
; Says that the letter in the box is complete.
define void @post({p64} %box) {{
  %posted = getelementptr i64, {p64} %box, i64 {posted}
  %p = load i64, {p64} %posted, align 8
  %next = add i64 %p, 1
  store atomic i64 %next, {p64} %posted release, align 8
  ret void
}}
; Takes the letter back, if nobody has taken it yet. Returns 1 when it is done or taken back, 0 if
; it is neither after a while.
define i64 @settled({p64} %box, i64 %looks) {{
entry:
  %posted = getelementptr i64, {p64} %box, i64 {posted}
  %taken = getelementptr i64, {p64} %box, i64 {taken}
  %done = getelementptr i64, {p64} %box, i64 {done}
  %p = load i64, {p64} %posted, align 8
  %before = sub i64 %p, 1
  %pair = cmpxchg {p64} %taken, i64 %before, i64 %p acq_rel monotonic
  %back = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %back, label %withdrawn, label %look
withdrawn:
  store atomic i64 %p, {p64} %done release, align 8
  br label %yes
look:
  %k = phi i64 [ %looks, %entry ], [ %less, %rest ]
  %d = load atomic volatile i64, {p64} %done acquire, align 8
  %all = icmp eq i64 %p, %d
  br i1 %all, label %yes, label %rest
rest:
  %less = sub i64 %k, 1
  %over = icmp eq i64 %less, 0
  br i1 %over, label %no, label %look
yes:
  ret i64 1
no:
  ret i64 0
}}
"""


class _Calls:
    """The machine code, as functions that release the GIL.

    Attributes
    ----------
    share : works at a job; takes its address and that of a work area.
    serve, post, settled : take the address of a letter box, the first and the last a number of
        looks; see the code.
    looks : how many of them, at an empty letter box, take the time that a thread is awake.
    """

    def __init__(self) -> None:
        p64 = pointer("i64")
        entries = "\n".join(
            f"  %{name}_at0 = getelementptr i64, {p64} %job, i64 {k}\n"
            f"  %{name} = load i64, {p64} %{name}_at0, align 8"
            for k, name in enumerate(JOB[:-1])
        )
        kernel = pointer(f"void ({', '.join(['i64'] * 9)})")
        source = _SHARE.format(p64=p64, entries=entries, next=len(JOB) - 1, type=kernel)
        source += _LETTERS.format(
            p64=p64, posted=_POSTED, taken=_TAKEN, done=_DONE, letter=_LETTER
        )
        self._code = LoadedCode(compile_ir(source))
        address, number = ctypes.c_void_p, ctypes.c_int64
        looking = ctypes.CFUNCTYPE(number, address, number)
        self.serve = looking(self._code.address("serve"))
        self.settled = looking(self._code.address("settled"))
        self.post = ctypes.CFUNCTYPE(None, address)(self._code.address("post"))
        self.share = ctypes.CFUNCTYPE(None, address, address)(self._code.address("share"))
        self.looks = self._measured()

    def _measured(self) -> int:
        box, times = aligned_zeros(_BOX), []
        for _ in range(3):
            start = time.perf_counter()
            self.serve(box.ctypes.data, _COUNTED)
            times.append(time.perf_counter() - start)
        return round(_COUNTED * _AWAKE / min(times))


@lru_cache(maxsize=1)
def _calls() -> _Calls:
    """Return the machine code, compiled once."""
    return _Calls()


class _Member(threading.Thread):
    """A thread and its letter box."""

    def __init__(self) -> None:
        super().__init__(name="delassus_batch", daemon=True)
        self._calls = _calls()
        self._memory = aligned_zeros(_BOX)
        self._box = self._memory.ctypes.data
        self._letter = (ctypes.c_int64 * 2).from_address(self._box + 8 * _LETTER)
        self._asleep = False
        self._called = threading.Event()
        self.start()

    def run(self) -> None:
        """Do what is posted; sleep after a while without."""
        while not self._calls.serve(self._box, self._calls.looks):
            self._asleep = True
            # What was posted before the line above woke nobody.
            if self._calls.serve(self._box, self._calls.looks):
                return
            self._called.wait()
            self._called.clear()
            self._asleep = False

    def post(self, job: int, work: int) -> None:
        """Have it work at a job, by addresses; what was posted before must be settled."""
        self._letter[0], self._letter[1] = job, work
        self._calls.post(self._box)
        if self._asleep:
            self._called.set()

    def is_settled(self) -> bool:
        """Return whether it is done with its job, or will not begin; take back what it has not."""
        return bool(self._calls.settled(self._box, self._calls.looks // _SOON))


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_idle: list[_Member] = []
"""Those of which nobody waits for anything."""


def together(job: int, works: Sequence[int]) -> None:
    """Work at a job in this thread, and in others as far as they come in time.

    It is done, and nobody works at it any more, when this returns or raises, whoever interrupts.

    Parameters
    ----------
    job : address of its entries, :data:`JOB`.
    works : addresses of work areas, one for each thread.
    """
    members: list[_Member] = []
    try:
        for work in works[1:]:
            try:
                members.append(_idle.pop())
            except IndexError:
                members.append(_Member())
            members[-1].post(job, work)
        _calls().share(job, works[0])
    finally:
        try:
            _finish(members)
        finally:
            _idle.extend(members)


def _finish(members: list[_Member]) -> None:
    """Wait until nobody works any more; what a signal raises meanwhile, comes after."""
    waiting = list(members)
    interrupt: BaseException | None = None
    while waiting:
        try:
            if waiting[-1].is_settled():
                waiting.pop()
            else:
                time.sleep(_NAP)
        except BaseException as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


@atexit.register
def _end() -> None:
    """End all threads, before the machine code that they run goes."""
    ending = list(_idle)
    _idle.clear()
    for member in ending:
        member.post(0, 0)
    for member in ending:
        member.join()


# A fork leaves its child the members without their threads.
os.register_at_fork(after_in_child=_idle.clear)
