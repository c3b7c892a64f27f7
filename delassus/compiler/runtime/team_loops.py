"""Loops of threads that share a batch: the parts of a job, and the mailbox of a thread.

In the subset of Python that is compiled (:mod:`~delassus.compiler.codegen.loops`).

A thread takes a part of the configurations that are left, as large as its share of half of them,
until none is left: a late thread takes less, and no thread waits for long. Jobs are passed through
one mailbox per thread.
"""

from __future__ import annotations

from enum import IntEnum

from delassus.compiler.codegen.loops import Ints, call, compare_exchange, ints, seen


class Job(IntEnum):
    """Entries of a job, the same for all threads that work at it.

    A function of :mod:`~delassus.compiler.codegen.batch`, its arguments, and how far the
    configurations are given away.
    """

    FUNCTION = 0
    IN = 1
    IN_STRIDE = 2
    IN_STEP = 3
    """Doubles from one configuration to the next, as OUT_STEP."""
    OUT = 4
    OUT_STRIDE = 5
    OUT_STEP = 6
    STATUS = 7
    N = 8
    PICK = 9
    PICKED = 10
    WIDTH = 11
    """Configurations per vector."""
    PART = 12
    """Configurations of the smallest part."""
    SHARE = 13
    """Twice the number of threads."""
    NEXT = 14
    """First configuration that no thread has taken, 0 at first."""


class Box(IntEnum):
    """Entries of a mailbox; those that threads poll are on cache lines of their own."""

    JOB = 0
    """Address of a job that is posted and not taken; 0 for none."""
    WORK = 1
    """Address of a work area for the job."""
    BUSY = 8
    """1 from the time when a job is posted until it is done or taken back."""


BOX_SIZE = 16
"""Number of integers in a mailbox."""
END = -1
"""Posted in place of a job, it ends the thread."""


def share(job: Ints, work: int) -> None:
    """Work at a job until nothing of it is left."""
    n, part = job[Job.N], job[Job.PART]
    start = seen(job[Job.NEXT :])
    while start < n:
        taken = max(part, int((n - start) / (job[Job.SHARE] * part)) * part)
        found = compare_exchange(job[Job.NEXT :], start, start + taken)
        if found != start:
            start = found
            continue
        # A part has at least one whole vector: the last one may overlap its neighbour.
        first = min(start, n - job[Job.WIDTH])
        call(
            job[Job.FUNCTION],
            job[Job.IN] + 8 * first * job[Job.IN_STEP],
            job[Job.IN_STRIDE],
            job[Job.OUT] + 8 * first * job[Job.OUT_STEP],
            job[Job.OUT_STRIDE],
            job[Job.STATUS] + 4 * first,
            min(start + taken, n) - first,
            job[Job.PICK],
            job[Job.PICKED],
            work,
        )
        start = seen(job[Job.NEXT :])


def serve(box: Ints, polls: int) -> int:
    """Do what is posted; return 0 if that is nothing for so many polls, 1 to end the thread."""
    left = polls
    while left > 0:
        job = seen(box[Box.JOB :])
        if job != 0 and compare_exchange(box[Box.JOB :], job, 0) == job:
            if job == END:
                return 1
            share(ints(job), box[Box.WORK])
            compare_exchange(box[Box.BUSY :], 1, 0)
            left = polls
        else:
            left -= 1
    return 0


def post(box: Ints, job: int, work: int) -> None:
    """Post a job; the job before must be settled."""
    box[Box.WORK] = work
    box[Box.BUSY] = 1
    compare_exchange(box[Box.JOB :], 0, job)


def settled(box: Ints, polls: int) -> int:
    """Take a job back unless the thread has taken it.

    Returns 1 if the job is done or taken back, 0 if it is neither after so many polls.
    """
    job = seen(box[Box.JOB :])
    if job != 0 and compare_exchange(box[Box.JOB :], job, 0) == job:
        box[Box.BUSY] = 0
    for _ in range(polls):
        if seen(box[Box.BUSY :]) == 0:
            return 1
    return 0
