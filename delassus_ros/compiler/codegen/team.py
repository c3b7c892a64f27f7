"""The LLVM IR of threads that share a batch: the parts of a job, and the mailbox of a thread.

A job is a block of 64-bit integers, the same for all threads that work at it: the batch kernel's
function, its arguments, and how far the configurations are given away. A thread takes a part of
the configurations that are left, as large as its share of half of them, until none is left: a late
thread takes less, and no thread waits for long. Jobs are passed through one mailbox per thread.
"""

from __future__ import annotations

from delassus_ros.compiler.codegen.llvm_text import pointer

JOB = (
    "function", "in", "in_stride", "in_step", "out", "out_stride", "out_step", "status", "n",
    "pick", "picked", "width", "part", "share", "next",
)  # fmt: skip
"""Entries of a job: a function of :mod:`delassus_ros.compiler.codegen.batch` and its arguments;
the steps from one configuration to the next, in doubles; configurations per vector and in the
smallest part; twice the number of threads; the first configuration that no thread has taken,
0 at first."""
_POSTED, _TAKEN, _DONE, MESSAGE = 0, 8, 16, 24
"""Entries of a mailbox: the numbers of the messages posted, taken and done, on a cache line for
each number, and the message: addresses of the job (0 ends the thread) and of a work area."""
BOX = MESSAGE + 2

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
_MAILBOX = """
; Does what is posted. Returns 0 when there is nothing new for a while, 1 when it is to end.
define i64 @serve({p64} %box, i64 %polls) {{
entry:
  %posted = getelementptr i64, {p64} %box, i64 {posted}
  %taken = getelementptr i64, {p64} %box, i64 {taken}
  %done = getelementptr i64, {p64} %box, i64 {done}
  br label %first
first:
  br label %look
look:
  %k = phi i64 [ %polls, %first ], [ %less, %rest ]
  %p = load atomic volatile i64, {p64} %posted acquire, align 8
  %t = load atomic volatile i64, {p64} %taken monotonic, align 8
  %nothing = icmp eq i64 %p, %t
  br i1 %nothing, label %rest, label %take
rest:
  %less = sub i64 %k, 1
  %over = icmp eq i64 %less, 0
  br i1 %over, label %sleep, label %look
take:
  ; From the number before, as %p may be of a message that has been taken back.
  %before = sub i64 %p, 1
  %pair = cmpxchg {p64} %taken, i64 %before, i64 %p acq_rel monotonic
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %read, label %first
read:
  %job_at = getelementptr i64, {p64} %box, i64 {message}
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
; Says that the message in the mailbox is complete.
define void @post({p64} %box) {{
  %posted = getelementptr i64, {p64} %box, i64 {posted}
  %p = load i64, {p64} %posted, align 8
  %next = add i64 %p, 1
  store atomic i64 %next, {p64} %posted release, align 8
  ret void
}}
; Takes the message back, unless a thread has taken it. Returns 1 when the message is done or taken
; back, 0 if it is neither after a while.
define i64 @settled({p64} %box, i64 %polls) {{
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
  %k = phi i64 [ %polls, %entry ], [ %less, %rest ]
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


def module() -> str:
    """Return the module with the functions ``share``, ``serve``, ``post`` and ``settled``."""
    p64 = pointer("i64")
    entries = "\n".join(
        f"  %{name}_at0 = getelementptr i64, {p64} %job, i64 {k}\n"
        f"  %{name} = load i64, {p64} %{name}_at0, align 8"
        for k, name in enumerate(JOB[:-1])
    )
    kernel = pointer(f"void ({', '.join(['i64'] * 9)})")
    source = _SHARE.format(p64=p64, entries=entries, next=len(JOB) - 1, type=kernel)
    return source + _MAILBOX.format(
        p64=p64, posted=_POSTED, taken=_TAKEN, done=_DONE, message=MESSAGE
    )
