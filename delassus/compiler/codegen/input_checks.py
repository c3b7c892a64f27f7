"""The checks of a kernel's inputs as LLVM IR: the status of an input block.

The checks are not part of the traced program, so operation counts do not include them. The usual
input passes cheap tests; only an input that fails one of them is examined value by value.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from delassus.compiler.codegen.llvm_text import Writer, literal, pairwise, splat, vector_type
from delassus.compiler.codegen.sincos import suffix
from delassus.compiler.ir.input_rules import NORM_MIDDLE, NORM_RANGE, InputRules
from delassus.compiler.ir.program import WIDEST
from delassus.model.couplings import TOLERANCE
from delassus.model.ranges import FARTHEST
from delassus.scalars.ports import Status


def checked_status(rules: InputRules, w: Writer, status: str, width: int) -> str:
    """Write the test of the input block ``%in`` and return the status, which it may change.

    What most inputs pass costs a multiplication and an addition for each of them, for each
    coupling and for each entry of a quaternion; only what does not pass is looked at again.

    Parameters
    ----------
    status : of the outputs, one per configuration.
    width : configurations that every input is a vector of.
    """
    tests = _large(rules, w, width), _off(rules, w, width), *_turned(rules, w, width)
    either = pairwise([test for test in tests if test], lambda a, b: w.let(f"or i1 {a}, {b}"))
    if not either:
        return status
    i32 = vector_type(width, "i32")
    w.do("br label %usual_inputs")
    w.label("usual_inputs")
    w.do(f"br i1 {either}, label %unusual_inputs, label %known_inputs, !prof !0")
    w.label("unusual_inputs")
    explained = _explained(rules, w, status, width)
    w.do("br label %known_inputs")
    w.label("known_inputs")
    return w.let(f"phi {i32} [ {status}, %usual_inputs ], [ {explained}, %unusual_inputs ]")


def _large(rules: InputRules, w: Writer, width: int) -> str:
    """Write whether any input may be too far or not finite, an i1 for all configurations."""
    end = rules.first + rules.count
    lanes, squared = _blocks(rules.first, rules.count, width)
    v = vector_type(lanes)
    # The last ones may be added twice.
    total = _sum(w, [_square(w, w.load("%in", k, lanes), v) for k in squared], v)
    found = total and w.any(
        w.let(f"fcmp ugt {v} {total}, {splat(literal(FARTHEST**2), lanes)}"), lanes
    )
    for first, count in ((0, rules.first), (end, rules.size - end)):
        lanes, starts = _blocks(first, count, width)
        v, zero = vector_type(lanes), splat(literal(0.0), lanes)
        # x·0 is 0 for finite x and NaN otherwise, and no sum of zeros overflows.
        products = [w.let(f"fmul {v} {w.load('%in', k, lanes)}, {zero}") for k in starts]
        total = _sum(w, products, v)
        if total:
            wrong = w.any(w.let(f"fcmp uno {v} {total}, {zero}"), lanes)
            found = w.let(f"or i1 {found}, {wrong}") if found else wrong
    return found


def _off(rules: InputRules, w: Writer, width: int) -> str:
    """Write whether any coupling may not hold, an i1 for all configurations."""
    v = vector_type(width)
    total = _sum(w, [_square(w, gap, v) for gap, _ in _gaps(rules, w, width)], v)
    return total and w.any(
        w.let(f"fcmp ugt {v} {total}, {splat(literal(TOLERANCE**2), width)}"), width
    )


def _turned(rules: InputRules, w: Writer, width: int) -> Iterator[str]:
    """Write for each quaternion whether its norm may not be 1, an i1 for all configurations."""
    v = vector_type(width)
    for off in _norms(rules, w, width):
        yield w.any(w.let(f"fcmp ugt {v} {off}, {splat(literal(NORM_RANGE), width)}"), width)


def _norms(rules: InputRules, w: Writer, width: int) -> Iterator[str]:
    """Write how far the square of each quaternion's norm is from the middle of its range."""
    v = vector_type(width)
    for first in rules.quaternions:
        entries = (w.load("%in", k * width, width) for k in range(first, first + 4))
        square = _sum(w, [_square(w, entry, v) for entry in entries], v)
        off = w.let(f"fsub {v} {square}, {splat(literal(NORM_MIDDLE), width)}")
        yield _absolute(w, off, width)


def _gaps(rules: InputRules, w: Writer, width: int) -> Iterator[tuple[str, list[str]]]:
    """Write how far each coupling is from 0, and yield that with its terms."""
    v = vector_type(width)
    for row in rules.couplings:
        gap, terms = splat(literal(row.offset), width), []
        for entry, factor in zip(row.entries, row.factors, strict=True):
            x = w.load("%in", (rules.first + entry) * width, width)
            terms.append(w.let(f"fmul contract {v} {x}, {splat(literal(factor), width)}"))
            gap = w.let(f"fadd contract {v} {gap}, {terms[-1]}")
        yield gap, terms


def _explained(rules: InputRules, w: Writer, status: str, width: int) -> str:
    """Write what the status is where something is unusual; what comes last explains best."""
    v, i1, i32 = (vector_type(width, element) for element in ("double", "i1", "i32"))

    def told(wrong: str, found: Status) -> None:
        nonlocal status
        code = splat(str(int(found)), width, "i32")
        status = w.let(f"select {i1} {wrong}, {i32} {code}, {i32} {status}")

    for row, (gap, terms) in zip(rules.couplings, _gaps(rules, w, width), strict=True):
        size = splat(literal(1.0 + abs(row.offset)), width)
        for term in terms:
            size = w.let(f"fadd {v} {size}, {_absolute(w, term, width)}")
        most = w.let(f"fmul {v} {size}, {splat(literal(TOLERANCE), width)}")
        told(w.let(f"fcmp ogt {v} {_absolute(w, gap, width)}, {most}"), Status.NOT_CLOSED)
    for off in _norms(rules, w, width):
        wrong = w.let(f"fcmp ogt {v} {off}, {splat(literal(NORM_RANGE), width)}")
        told(wrong, Status.NOT_UNIT)
    near, largest = (splat(literal(value), width) for value in (FARTHEST, sys.float_info.max))
    sizes = [_absolute(w, w.load("%in", k * width, width), width) for k in range(rules.size)]
    for size in sizes[rules.first : rules.first + rules.count]:
        told(w.let(f"fcmp ogt {v} {size}, {near}"), Status.TOO_FAR)
    for size in sizes:
        told(w.let(f"fcmp ugt {v} {size}, {largest}"), Status.NOT_FINITE)
    return status


def _blocks(first: int, count: int, width: int) -> tuple[int, list[int]]:
    """Return doubles per load, and where loads begin that have all of some inputs.

    Of vectors of configurations it is one input per load; else as many as a register holds, and
    the last ones may come twice.
    """
    if not count:
        return width, []
    if width > 1:
        return width, [k * width for k in range(first, first + count)]
    lanes = min(WIDEST, 1 << count.bit_length() - 1)
    last = first + count - lanes
    return lanes, list(dict.fromkeys(min(k, last) for k in range(first, first + count, lanes)))


def _square(w: Writer, value: str, v: str) -> str:
    return w.let(f"fmul contract {v} {value}, {value}")


def _sum(w: Writer, values: list[str], v: str) -> str:
    """Return the sum of values; empty if there are none."""
    return pairwise(values, lambda a, b: w.let(f"fadd contract {v} {a}, {b}"))


def _absolute(w: Writer, value: str, width: int) -> str:
    v = vector_type(width)
    return w.let(f"call {v} @llvm.fabs.{suffix(width)}({v} {value})")
