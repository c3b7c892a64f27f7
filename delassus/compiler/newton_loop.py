"""The loop around a traced Newton step.

In the subset of Python that is compiled (:mod:`~delassus.compiler.codegen.loops`).
"""

from __future__ import annotations

from enum import IntEnum

from delassus.compiler.codegen.loops import Ints, doubles, ints, kernel
from delassus.scalars.ports import Status


class Outcome(IntEnum):
    """Result of :func:`track` besides a :class:`Status`."""

    FAR = -1
    """A measured position is out of reach of one call, or NaN; q is as it was."""
    UNSAFE = -2
    """The steps did not shrink as they do near a solution: they may lead to another one."""
    NOT_CONVERGED = -3
    """The steps did not become small."""


def track(binding: Ints) -> int:
    """Move q to the measured positions by Newton steps; return a Status or an Outcome.

    Parameters
    ----------
    binding : that of :class:`~delassus.compiler.newton.BoundNewton`.
    """
    step = binding[0]
    q, out, measured = doubles(binding[1]), doubles(binding[2]), doubles(binding[3])
    targets, sources, given = ints(binding[4]), ints(binding[5]), binding[6]
    unknown, unknowns = ints(binding[7]), binding[8]
    numbers, iterations = doubles(binding[9]), binding[10]
    longest, tolerance, contraction = numbers[0], numbers[1], numbers[2]
    reach = numbers[3:]

    for k in range(given):
        # A comparison with NaN is false.
        if not abs(measured[sources[k]] - q[targets[k]]) <= reach[k]:
            return Outcome.FAR
    for k in range(given):
        q[targets[k]] = measured[sources[k]]

    is_small, steps = False, 0
    while True:
        status = kernel(step, q, out)
        if status != Status.OK:
            return status
        if is_small or steps >= iterations:
            break
        length = out[unknowns]
        is_small = length <= tolerance
        if not (is_small or length <= longest):
            return Outcome.UNSAFE
        longest = length * contraction
        for k in range(unknowns):
            q[unknown[k]] += out[k]
        steps += 1
    return Status.OK if is_small or iterations == 0 else Outcome.NOT_CONVERGED
