"""The closure for control loops: a fixed set of measured joints and preallocated buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import tau
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from delassus.arguments import numbers
from delassus.closure.path import Branch, ClosureStatus, Path, whole_turns
from delassus.closure.plan import Plan
from delassus.closure.step import ClosureStep
from delassus.compiler.newton import BoundNewton, Newton
from delassus.errors import InputError
from delassus.model.spatial import Array

_LONGEST_NEWTON_STEP = 0.5
"""Longest step of an unknown joint in a loop [rad, or the loop's size]."""
_CONTRACTION = 0.1
"""Ratio of consecutive Newton steps below which the iteration stays with the solution near its
start: where the first step shrinks to a quarter, no other solution is near (P. Deuflhard, Newton
Methods for Nonlinear Problems, ch. 5)."""
_SMALL = 1e-8
"""Length of the step that ends the iteration [rad, or the loop's size]; the error is then about
the square of this length."""
_NEWTON_ITERATIONS = 20
"""Largest number of Newton steps of an iteration after its first step."""
_LIMIT = 1e-6
"""Largest distance of a joint beyond its limits [rad or m]."""


class BoundClosure:
    """A closure for fixed measured joints, for control loops; one per thread.

    A call starts from the last valid result. While joints in loops move less than 0.1 rad
    between calls, a call creates no array; longer moves are divided into parts. Whole turns of a
    crank that is coupled or has limits, and of a motor geared to a crank, are skipped where they
    are possible, which the constructor finds out from the reference.

    The work of a call is bounded for all measurements: one Newton iteration of at most 21 steps
    for short moves, and at most 1202 iterations: 400 on each of three paths, from the last result,
    from the reference, and, for continuous joints, in the other direction.

    Attributes
    ----------
    names : the measured joints; a joint with several entries in q is repeated per entry.
    q : (nq,) result of :meth:`solve`; NaN unless the status is valid.
    residual : largest constraint row at q; NaN unless the status is valid.
    about : loop or joint at fault, with numbers; empty for OK.
    """

    def __init__(self, newton: Newton, step: ClosureStep, plan: Plan) -> None:
        self._plan, self._step = plan, step
        self._newton = BoundNewton(
            newton,
            len(plan.slots),
            list(zip(plan.entries, plan.held, strict=True)),
            plan.reach.tolist(),
            _LONGEST_NEWTON_STEP,
            _CONTRACTION,
            _SMALL,
            _NEWTON_ITERATIONS,
        )
        self.names = tuple(plan.names[slot] for slot in plan.slots)
        self._measured = np.full(len(plan.slots), np.nan)
        self.q = np.full(len(plan.reference), np.nan)
        self.residual = np.nan
        self.about = ""
        self._last = plan.reference.copy()
        # Joints that are only coupled follow in one step from any start, but keep the rounding of
        # the start: they start from the reference, not from a result that may be very large.
        self._start_there = np.ones(len(self.q), dtype=np.bool_)
        self._start_there[list(step.coupled)] = False
        self._rows = len(step.row_names)
        self._sizes = np.zeros(self._rows)
        self._found, kept = np.split(self._newton.q, [len(self.q)])
        self._branch = Branch(
            self._newton.results[self._rows :], kept, step.at_reference()[self._rows :]
        )
        self._state = self._branch.reference.copy()
        way = Path(plan, self._newton, self._found, self._branch)
        self._way = replace(way, whole=whole_turns(way, step.robot))
        # The limits of a joint that is only coupled are those of the joints that it follows.
        self._limits = _Limits(
            plan, [entry for entry in step.unknown if entry not in step.coupled]
        )
        self._others = _Others(plan)

    @property
    def measured(self) -> Array:
        """Positions of :attr:`names`, NaN, to be filled before :meth:`solve` [rad, m].

        Assigning copies numbers into the array, and raises InputError for values that are not
        numbers of this shape; values that are not finite set the status NOT_FINITE.
        """
        return self._measured

    @measured.setter
    def measured(self, values: ArrayLike) -> None:
        array = numbers("measured", values, f"{len(self.names)} positions, one for each name")
        if array.shape != self._measured.shape:
            raise InputError(
                f"measured has shape {array.shape}, expected {self._measured.shape}: one position "
                f"for each of {', '.join(self.names)}"
            )
        self._measured[...] = array

    def __reduce__(self) -> NoReturn:
        """Refuse copies and pickling: the machine code refers to the addresses of the arrays.

        Raises
        ------
        InputError
            Always; names the object that can be copied.
        """
        raise InputError(
            "a BoundClosure cannot be copied or pickled; copy or pickle its Closure and bind that"
        )

    def solve(self) -> ClosureStatus:
        """Compute q for :attr:`measured`; never raises."""
        newton = self._newton
        self.about = ""
        np.copyto(newton.measured, self._measured)
        np.copyto(self._found, self._last)
        if newton.run() or not self._branch.goes_on():
            status = self._go()
            if status is not ClosureStatus.OK:
                return self._refused(status)
        return self._judged()

    def reset(self) -> None:
        """Start the next call from the reference."""
        np.copyto(self._last, self._plan.reference)
        np.copyto(self._state, self._branch.reference)
        self._branch.resume(self._state)

    def _go(self) -> ClosureStatus:
        """Follow a path in parts: from the last result, else from the reference, else around."""
        if not np.isfinite(self._measured).all():
            k = int(np.flatnonzero(~np.isfinite(self._measured))[0])
            self.about = f"joint {self.names[k]!r}: {self._measured[k]}"
            return ClosureStatus.NOT_FINITE
        way, plan = self._way, self._plan
        found = [way.go(self._last, self._measured)]
        for around in (False, True)[: 1 + bool(plan.turns.any())]:
            if found[-1] is not ClosureStatus.OK:
                self._branch.resume(self._branch.reference)
                found.append(way.go(plan.reference, self._measured, around))
        if found[-1] is ClosureStatus.OK:
            return ClosureStatus.OK
        far = way.too_far(plan.reference, self._measured)
        self.about = self._worst() if far is None else self._too_far(far)
        singular = ClosureStatus.SINGULAR in found
        failure = ClosureStatus.SINGULAR if singular else ClosureStatus.UNREACHABLE
        return self._mirrored(None) or failure

    def _too_far(self, k: int) -> str:
        """Return the message that a held position is out of reach of one call."""
        plan, source = self._plan, self._plan.held[k]
        entry = plan.slots[source]
        return (
            f"{plan.tie(entry)}: joint {plan.names[entry]!r}: {self._measured[source]:.6g} is "
            f"farther from the reference than one call goes"
        )

    def _worst(self) -> str:
        """Return the name of the constraint that failed last."""
        sizes = np.abs(self._newton.results[: self._rows])
        if sizes.max() > self._plan.tolerance or not np.isfinite(sizes).all():
            return self._step.row_names[int(np.nanargmax(sizes))]
        return self._plan.clusters[self._branch.worst()][1]

    def _mirrored(self, found: Array | None) -> ClosureStatus | None:
        """Return WRONG_BRANCH if a completely measured cluster is closed on another branch.

        Parameters
        ----------
        found : (nq,) closed configuration on the reference's branch; None if there is none.
        """
        plan = self._plan
        q = plan.reference.copy()
        q[list(plan.slots)] = self._measured
        sizes = np.abs(self._step.residuals(q))
        way = np.full(q.shape, np.inf) if found is None else np.abs(plan.between(q, found))
        first = 0
        for (entries, what), count in zip(plan.clusters, self._step.row_counts, strict=True):
            largest = float(sizes[first : first + count].max())
            first += count
            away = float(way[list(entries)].max())
            if set(entries) <= set(plan.slots) and largest <= plan.agreement < away:
                self.about = f"{what}: closed, but on another branch than the reference"
                return ClosureStatus.WRONG_BRANCH
        return None

    def _judged(self) -> ClosureStatus:
        """Return the status of the configuration that the Newton iteration found."""
        found, plan = self._found, self._plan
        largest = self._largest()
        # A second run reduces the rounding errors of large positions.
        if not largest <= plan.tolerance and not self._newton.run() and self._branch.goes_on():
            largest = self._largest()
        if not largest <= plan.tolerance:
            self.about = self._worst()
            return self._refused(ClosureStatus.NOT_CLOSED)
        self.about = self._limits.complaint(found)
        if self.about:
            return self._refused(ClosureStatus.OUTSIDE_LIMITS)
        np.copyto(self._last, found, where=self._start_there)
        self._branch.accept()
        np.copyto(self._state, self._branch.state)
        status = ClosureStatus.OK
        self.about = self._others.complaint(self._measured, found)
        if self.about:
            if not np.isfinite(self._measured).all():
                return self._refused(ClosureStatus.NOT_FINITE)
            status = self._mirrored(found) or ClosureStatus.CONTRADICTION
            if not status.is_valid:
                return self._refused(status)
        np.copyto(self.q, found)
        self.residual = largest
        return status

    def _largest(self) -> float:
        """Return the largest constraint row at the present configuration of the iteration."""
        if not self._rows:
            return 0.0
        np.abs(self._newton.results[: self._rows], self._sizes)
        return float(self._sizes.max())

    def _refused(self, status: ClosureStatus) -> ClosureStatus:
        self.q.fill(np.nan)
        self.residual = np.nan
        self._branch.resume(self._state)
        return status


class _Limits:
    """The limits of joints of loops and functions, by their entries of q."""

    def __init__(self, plan: Plan, entries: Sequence[int]) -> None:
        self._plan = plan
        self._entries = np.array(entries, dtype=np.intp)
        self._lower = plan.lower[self._entries] - _LIMIT
        self._upper = plan.upper[self._entries] + _LIMIT
        self._values = np.zeros(len(entries))
        self._outside = np.zeros(len(entries), dtype=np.bool_)

    def complaint(self, q: Array) -> str:
        """Return the message for a joint outside its limits, or an empty text.

        Joints that are inside their limits after whole turns are turned back.
        """
        for bound, compare in ((self._lower, np.less), (self._upper, np.greater)):
            q.take(self._entries, out=self._values, mode="clip")
            compare(self._values, bound, self._outside)
            if self._outside.any():
                for k in np.flatnonzero(self._outside):
                    about = self._turned_back(q, int(self._entries[k]))
                    if about:
                        return about
        return ""

    def _turned_back(self, q: Array, entry: int) -> str:
        plan = self._plan
        lower, upper = float(plan.lower[entry]), float(plan.upper[entry])
        if plan.revolving[entry]:
            middle = 0.5 * (lower + upper)
            middle = middle if np.isfinite(middle) else float(np.clip(0.0, lower, upper))
            nearest = q[entry] - tau * np.round((q[entry] - middle) / tau)
            if lower - _LIMIT <= nearest <= upper + _LIMIT:
                q[entry] = nearest
                return ""
        what = plan.tie(entry)
        return (
            f"{what}: joint {plan.names[entry]!r}: {q[entry]:.6g} is not in "
            f"[{lower:.6g}, {upper:.6g}]"
        )


class _Others:
    """Measured joints that are not held: their positions must agree with the result."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        others = [k for k in range(len(plan.slots)) if k not in set(plan.held)]
        self._sources = np.array(others, dtype=np.intp)
        self._entries = np.array([plan.slots[k] for k in others], dtype=np.intp)
        self._turn = np.where(plan.revolving[self._entries], tau, 0.0)
        self._rate = np.where(plan.revolving[self._entries], 1.0 / tau, 0.0)
        self._seen, self._found, self._turns = (np.zeros(len(others)) for _ in range(3))

    def complaint(self, measured: Array, q: Array) -> str:
        """Return the message for a joint that contradicts the result, or an empty text."""
        if not self._sources.size:
            return ""
        away, turns = self._seen, self._turns
        measured.take(self._sources, out=away, mode="clip")
        q.take(self._entries, out=self._found, mode="clip")
        np.subtract(away, self._found, away)
        np.multiply(away, self._rate, turns)
        np.rint(turns, turns)
        np.multiply(turns, self._turn, turns)
        np.subtract(away, turns, away)
        np.abs(away, away)
        k = int(away.argmax())
        if away[k] <= self._plan.agreement:
            return ""
        entry = int(self._entries[k])
        return (
            f"{self._plan.tie(entry)}: joint {self._plan.names[entry]!r} is measured "
            f"{away[k]:.3g} from where the others put it"
        )
