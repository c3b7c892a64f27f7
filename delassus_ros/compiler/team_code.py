"""Machine code of the threads that share a batch: taking parts, and letters between threads.

It runs without the GIL. A job is a block of 64-bit integers, the same for all who work at it:
the batch kernel's function, its arguments, and how far the configurations are given away. Whoever
works takes a part of what is left, as large as its share of half of that, until nothing is: who
comes late takes less, and nobody waits for long. A letter box is where a thread is told of a job.
"""

from __future__ import annotations

import ctypes
import time
from functools import lru_cache

from delassus_ros.compiler.ir import pointer
from delassus_ros.compiler.jit import LoadedCode, compile_ir
from delassus_ros.compiler.kernel import aligned_zeros

JOB = (
    "function", "in", "in_stride", "in_step", "out", "out_stride", "out_step", "status", "n",
    "pick", "picked", "width", "part", "share", "next",
)  # fmt: skip
"""Entries of a job: a function of :mod:`delassus_ros.compiler.batch` and its arguments; the steps
from one configuration to the next, in doubles; configurations per vector and in the smallest part;
twice the number of threads; the first configuration that nobody has taken, 0 at first."""
POSTED, TAKEN, DONE, LETTER = 0, 8, 16, 24
"""Entries of a letter box: the numbers of the letters posted, taken and done, each on a cache line
of its own, and the letter: addresses of the job, 0 to end the thread, and of a work area."""
BOX = LETTER + 2
AWAKE = 5e-4
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


class Calls:
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
        source += _LETTERS.format(p64=p64, posted=POSTED, taken=TAKEN, done=DONE, letter=LETTER)
        self._code = LoadedCode(compile_ir(source))
        address, number = ctypes.c_void_p, ctypes.c_int64
        looking = ctypes.CFUNCTYPE(number, address, number)
        self.serve = looking(self._code.address("serve"))
        self.settled = looking(self._code.address("settled"))
        self.post = ctypes.CFUNCTYPE(None, address)(self._code.address("post"))
        self.share = ctypes.CFUNCTYPE(None, address, address)(self._code.address("share"))
        self.looks = self._measured()

    def _measured(self) -> int:
        box, times = aligned_zeros(BOX), []
        for _ in range(3):
            start = time.perf_counter()
            self.serve(box.ctypes.data, _COUNTED)
            times.append(time.perf_counter() - start)
        return round(_COUNTED * AWAKE / min(times))


@lru_cache(maxsize=1)
def calls() -> Calls:
    """Return the machine code, compiled once."""
    return Calls()
