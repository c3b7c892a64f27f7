"""The test of a kernel's inputs: one that is NaN or infinite need not show in the result."""

from __future__ import annotations

from delassus_ros.compiler.ir import Writer, literal, splat, vector_type

_WIDEST = 8


def not_finite(w: Writer, inputs: int, configurations: int) -> str:
    """Write the test of the input block ``%in`` and return its result, an i1 per configuration.

    Parameters
    ----------
    inputs : how many there are, at least one.
    configurations : that every input is a vector of.
    """
    # x·0 is 0 for finite x and NaN otherwise, and no sum of zeros overflows.
    size = 1 if configurations > 1 else min(_WIDEST, 1 << inputs.bit_length() - 1)
    lanes = size * configurations
    v, zero = vector_type(lanes), splat(literal(0.0), lanes)
    products = [
        w.let(f"fmul {v} {w.load('%in', start * configurations, lanes)}, {zero}")
        # The last ones may come twice.
        for start in dict.fromkeys(min(k, inputs - size) for k in range(0, inputs, size))
    ]
    while len(products) > 1:
        pairs = zip(products[::2], products[1::2], strict=False)
        sums = [w.let(f"fadd contract {v} {a}, {b}") for a, b in pairs]
        products = sums + products[len(products) & ~1 :]
    found = w.let(f"fcmp uno {v} {products[0]}, {zero}")
    if size == 1:
        return found
    bits = w.let(f"bitcast {vector_type(size, 'i1')} {found} to i{size}")
    return w.let(f"icmp ne i{size} {bits}, 0")
