"""What a kernel asks of its inputs: finite numbers, near positions, couplings that hold.

The tests of inputs are not part of the traced program, so operation counts do not include them; a
robot without couplings has no coupling to test. Their result is a status: for one configuration,
for vectors of configurations, and on arrays for back ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from delassus_ros.compiler.codegen.llvm_text import Writer, literal, splat, vector_type
from delassus_ros.compiler.codegen.sincos import suffix
from delassus_ros.model.couplings import TOLERANCE, CouplingRow, coupling_rows
from delassus_ros.model.ranges import FARTHEST
from delassus_ros.model.robot import Robot
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Port
from delassus_ros.scalars.ports import Status

_WIDEST = 8


@dataclass(frozen=True)
class InputRules:
    """What the numbers of an input block have to be.

    Attributes
    ----------
    size : how many there are, all of which must be finite.
    first, count : which of them are positions, of which none may be beyond
        :data:`~delassus_ros.model.ranges.FARTHEST`.
    couplings : rows over the positions that must hold.
    """

    size: int
    first: int = 0
    count: int = 0
    couplings: tuple[CouplingRow, ...] = ()

    @classmethod
    def of(cls, ports: Sequence[Port], robot: Robot | None = None) -> InputRules:
        """Return the rules of an input block; positions are what the port ``q`` holds.

        Parameters
        ----------
        robot : whose couplings must hold.
        """
        size = first = count = 0
        for port in ports:
            if port.name == "q":
                first, count = size, port.size
            size += port.size
        return cls(size, first, count, () if robot is None else coupling_rows(robot))

    def write(self, w: Writer, status: str, width: int) -> str:
        """Write the test of the input block ``%in`` and return the status, which it may change.

        What most inputs pass costs a multiplication and an addition for each of them, and for
        each coupling; only what does not pass is looked at again.

        Parameters
        ----------
        status : of the outputs, one per configuration.
        width : configurations that every input is a vector of.
        """
        unusual = [found for found in (self._large(w, width), self._off(w, width)) if found]
        if not unusual:
            return status
        i32 = vector_type(width, "i32")
        either = unusual[0] if len(unusual) == 1 else w.let(f"or i1 {unusual[0]}, {unusual[1]}")
        w.do("br label %usual_inputs")
        w.label("usual_inputs")
        w.do(f"br i1 {either}, label %unusual_inputs, label %known_inputs, !prof !0")
        w.label("unusual_inputs")
        explained = self._explained(w, status, width)
        w.do("br label %known_inputs")
        w.label("known_inputs")
        return w.let(f"phi {i32} [ {status}, %usual_inputs ], [ {explained}, %unusual_inputs ]")

    def _large(self, w: Writer, width: int) -> str:
        """Write whether any input may be too far or not finite, an i1 for all configurations."""
        end = self.first + self.count
        lanes, squared = _blocks(self.first, self.count, width)
        v = vector_type(lanes)
        # The last ones may be added twice.
        total = _reduced(w, [_square(w, w.load("%in", k, lanes), v) for k in squared], v)
        found = total and _any(
            w, w.let(f"fcmp ugt {v} {total}, {splat(literal(FARTHEST**2), lanes)}"), lanes
        )
        for first, count in ((0, self.first), (end, self.size - end)):
            lanes, starts = _blocks(first, count, width)
            v, zero = vector_type(lanes), splat(literal(0.0), lanes)
            # x·0 is 0 for finite x and NaN otherwise, and no sum of zeros overflows.
            products = [w.let(f"fmul {v} {w.load('%in', k, lanes)}, {zero}") for k in starts]
            total = _reduced(w, products, v)
            if total:
                wrong = _any(w, w.let(f"fcmp uno {v} {total}, {zero}"), lanes)
                found = w.let(f"or i1 {found}, {wrong}") if found else wrong
        return found

    def _off(self, w: Writer, width: int) -> str:
        """Write whether any coupling may not hold, an i1 for all configurations."""
        v = vector_type(width)
        total = _reduced(w, [_square(w, gap, v) for gap, _ in self._gaps(w, width)], v)
        return total and _any(
            w, w.let(f"fcmp ugt {v} {total}, {splat(literal(TOLERANCE**2), width)}"), width
        )

    def _gaps(self, w: Writer, width: int) -> Iterator[tuple[str, list[str]]]:
        """Write how far each coupling is from 0, and yield that with its terms."""
        v = vector_type(width)
        for row in self.couplings:
            gap, terms = splat(literal(row.offset), width), []
            for entry, factor in zip(row.entries, row.factors, strict=True):
                x = w.load("%in", (self.first + entry) * width, width)
                terms.append(w.let(f"fmul contract {v} {x}, {splat(literal(factor), width)}"))
                gap = w.let(f"fadd contract {v} {gap}, {terms[-1]}")
            yield gap, terms

    def _explained(self, w: Writer, status: str, width: int) -> str:
        """Write what the status is where something is unusual; what comes last explains best."""
        v, i1, i32 = (vector_type(width, element) for element in ("double", "i1", "i32"))

        def told(wrong: str, found: Status) -> None:
            nonlocal status
            code = splat(str(int(found)), width, "i32")
            status = w.let(f"select {i1} {wrong}, {i32} {code}, {i32} {status}")

        for row, (gap, terms) in zip(self.couplings, self._gaps(w, width), strict=True):
            size = splat(literal(1.0 + abs(row.offset)), width)
            for term in terms:
                size = w.let(f"fadd {v} {size}, {_absolute(w, term, width)}")
            most = w.let(f"fmul {v} {size}, {splat(literal(TOLERANCE), width)}")
            told(w.let(f"fcmp ogt {v} {_absolute(w, gap, width)}, {most}"), Status.NOT_CLOSED)
        near, largest = (splat(literal(value), width) for value in (FARTHEST, sys.float_info.max))
        sizes = [_absolute(w, w.load("%in", k * width, width), width) for k in range(self.size)]
        for size in sizes[self.first : self.first + self.count]:
            told(w.let(f"fcmp ogt {v} {size}, {near}"), Status.TOO_FAR)
        for size in sizes:
            told(w.let(f"fcmp ugt {v} {size}, {largest}"), Status.NOT_FINITE)
        return status

    def statuses(self, inputs: Array) -> NDArray[np.int32]:
        """Return a status for each row of an array (N, size)."""
        found = np.zeros(len(inputs), dtype=np.int32)
        q = inputs[:, self.first : self.first + self.count]
        # Of numbers that are not finite the last one tells.
        with np.errstate(invalid="ignore", over="ignore"):
            for row in self.couplings:
                factors = np.array(row.factors)
                terms = q[:, row.entries] * factors
                size = 1.0 + abs(row.offset) + np.abs(terms).sum(axis=1)
                is_open = np.abs(terms.sum(axis=1) + row.offset) > TOLERANCE * size
                found[is_open] = Status.NOT_CLOSED
            found[(np.abs(q) > FARTHEST).any(axis=1)] = Status.TOO_FAR
        found[~np.isfinite(inputs).all(axis=1)] = Status.NOT_FINITE
        return found


def _blocks(first: int, count: int, width: int) -> tuple[int, list[int]]:
    """Return doubles per load, and where loads begin that have all of some inputs.

    Of vectors of configurations it is one input per load; else as many as a register holds, and
    the last ones may come twice.
    """
    if not count:
        return width, []
    if width > 1:
        return width, [k * width for k in range(first, first + count)]
    lanes = min(_WIDEST, 1 << count.bit_length() - 1)
    last = first + count - lanes
    return lanes, list(dict.fromkeys(min(k, last) for k in range(first, first + count, lanes)))


def _square(w: Writer, value: str, v: str) -> str:
    return w.let(f"fmul contract {v} {value}, {value}")


def _reduced(w: Writer, values: list[str], v: str) -> str:
    """Add values pairwise, in a shallow tree; empty if there are none."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        sums = [w.let(f"fadd contract {v} {a}, {b}") for a, b in pairs]
        values = sums + values[len(values) & ~1 :]
    return values[0] if values else ""


def _any(w: Writer, found: str, lanes: int) -> str:
    """Return whether any lane is true, an i1."""
    if lanes == 1:
        return found
    bits = w.let(f"bitcast {vector_type(lanes, 'i1')} {found} to i{lanes}")
    return w.let(f"icmp ne i{lanes} {bits}, 0")


def _absolute(w: Writer, value: str, width: int) -> str:
    v = vector_type(width)
    return w.let(f"call {v} @llvm.fabs.{suffix(width)}({v} {value})")
