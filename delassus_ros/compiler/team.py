"""Threads that share a batch, awake for a moment after each.

Waking a thread takes as long as a thousand configurations of an arm. So a thread that has done
its part looks out for the next one for a moment before it sleeps, as those of OpenMP do. It looks
and computes in machine code of its own, without the GIL: what it is to do stands in a letter box,
where the caller's thread, which takes a part itself, waits for the answer.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache

from delassus_ros.compiler.ir import pointer
from delassus_ros.compiler.jit import LoadedCode, compile_ir
from delassus_ros.compiler.kernel import aligned_zeros

ARGUMENTS = 9
"""Arguments of a function that a team calls, each of 64 bits."""

_AWAKE = 5e-4
"""How long a thread looks at a time [s]; it sleeps after two times. Without a pause between
looks: a hypervisor may take a processor that pauses often away from its guest."""
_COUNTED = 200_000
"""Looks of which is measured how long they take: some 0.1 ms, beside which a call is short."""
_NAP = 1e-4
"""Between looks of a caller whose own part was much shorter than the others' [s]."""
_POSTED, _DONE, _FUNCTION = 0, 8, 16
"""Entries of a letter box: the numbers of the letters posted and done, on cache lines of their
own, and the address of the function, 0 to end the thread; its arguments follow."""
_SIZE = _FUNCTION + 1 + ARGUMENTS

_CODE = """
; Does what is posted. Returns 0 when there is nothing new for a while, 1 when it is to end.
define i64 @serve({p64} %box, i64 %looks) {{
entry:
  %posted = getelementptr i64, {p64} %box, i64 {posted}
  %done = getelementptr i64, {p64} %box, i64 {done}
  br label %first
first:
  br label %look
look:
  %k = phi i64 [ %looks, %first ], [ %less, %rest ]
  %p = load atomic volatile i64, {p64} %posted acquire, align 8
  %d = load i64, {p64} %done, align 8
  %nothing = icmp eq i64 %p, %d
  br i1 %nothing, label %rest, label %work
rest:
  %less = sub i64 %k, 1
  %over = icmp eq i64 %less, 0
  br i1 %over, label %sleep, label %look
work:
  %place = getelementptr i64, {p64} %box, i64 {function}
  %address = load i64, {p64} %place, align 8
  %last = icmp eq i64 %address, 0
  br i1 %last, label %end, label %call
call:
{load}
  %f = inttoptr i64 %address to {type}
  call void %f({values})
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
; Returns 1 when the letter is done, 0 if it is not after a while.
define i64 @answered({p64} %box, i64 %looks) {{
entry:
  %posted = getelementptr i64, {p64} %box, i64 {posted}
  %done = getelementptr i64, {p64} %box, i64 {done}
  %p = load i64, {p64} %posted, align 8
  br label %look
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
    """The machine code, as functions of a letter box that release the GIL."""

    def __init__(self) -> None:
        numbers = range(ARGUMENTS)
        source = _CODE.format(
            p64=pointer("i64"),
            posted=_POSTED,
            done=_DONE,
            function=_FUNCTION,
            type=pointer(f"void ({', '.join(['i64'] * ARGUMENTS)})"),
            load="\n".join(
                f"  %a{k} = getelementptr i64, {pointer('i64')} %place, i64 {1 + k}\n"
                f"  %v{k} = load i64, {pointer('i64')} %a{k}, align 8"
                for k in numbers
            ),
            values=", ".join(f"i64 %v{k}" for k in numbers),
        )
        self._code = LoadedCode(compile_ir(source))
        number = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
        self.serve = number(self._code.address("serve"))
        self.answered = number(self._code.address("answered"))
        self.looks = self._measured()
        self.post = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._code.address("post"))

    def _measured(self) -> int:
        """Return how many looks at an empty letter box take the time that a thread is awake."""
        box, times = aligned_zeros(_SIZE), []
        for _ in range(3):
            start = time.perf_counter()
            self.serve(box.ctypes.data, _COUNTED)
            times.append(time.perf_counter() - start)
        return round(_COUNTED * _AWAKE / min(times))


@lru_cache(maxsize=1)
def _calls() -> _Calls:
    return _Calls()


class _Member(threading.Thread):
    """A thread and its letter box."""

    def __init__(self) -> None:
        super().__init__(name="delassus_batch", daemon=True)
        self._calls = _calls()
        self._memory = aligned_zeros(_SIZE)
        self._box = self._memory.ctypes.data
        self._letter = (ctypes.c_int64 * (1 + ARGUMENTS)).from_address(self._box + 8 * _FUNCTION)
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

    def post(self, function: int, arguments: Sequence[int]) -> None:
        """Have a function called; what was posted before must be done."""
        self._letter[:] = [function, *arguments]
        self._calls.post(self._box)
        if self._asleep:
            self._asleep = False
            self._called.set()

    def is_done(self) -> bool:
        """Return whether what was posted is done, or still is not after a while."""
        if self._calls.answered(self._box, self._calls.looks):
            return True
        # An interrupted call may have posted without waking it.
        self._called.set()
        return False


def processors() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_idle: list[_Member] = []
"""Those of which nobody waits for anything."""


def together(function: int, letters: Sequence[Sequence[int]], own: Callable[[], None]) -> None:
    """Call a function in a thread for each of `letters`, and `own` in this one meanwhile.

    All calls are over when this returns or raises, whatever `own` raises and whoever interrupts.

    Parameters
    ----------
    function : address of a function of :data:`ARGUMENTS` integers or pointers, without a result.
    letters : its arguments, for each thread.
    """
    members: list[_Member] = []
    try:
        for arguments in letters:
            try:
                members.append(_idle.pop())
            except IndexError:
                members.append(_Member())
            members[-1].post(function, arguments)
        own()
    finally:
        try:
            _finish(members)
        finally:
            _idle.extend(members)


def _finish(members: list[_Member]) -> None:
    """Wait until all have done what was posted; what a signal raises meanwhile, comes after."""
    waiting = list(members)
    interrupt: BaseException | None = None
    while waiting:
        try:
            if waiting[-1].is_done():
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
        member.post(0, (0,) * ARGUMENTS)
    for member in ending:
        member.join()


# A fork leaves its child the members without their threads.
os.register_at_fork(after_in_child=_idle.clear)
