"""The expression graph: what is folded, what is shared, what is refused, and its values."""

from __future__ import annotations

import math
import random

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from toy import call, compiled, traced

from delassus.compiler.cache import cached_code as samples
from delassus.errors import CompilerError
from delassus.scalars import functions as scalars
from delassus.scalars.functions import positive, select, sincos, sqrt
from delassus.scalars.graph import NEG, SUB, Graph, Symbol


@pytest.fixture
def graph() -> Graph:
    return Graph()


@pytest.fixture
def xy(graph: Graph) -> tuple[Symbol, Symbol]:
    return graph.input(0), graph.input(1)


def same(a: object, b: object) -> bool:
    """Return True if two symbols are one node."""
    return isinstance(a, Symbol) and isinstance(b, Symbol) and a.index == b.index


def test_zero_and_one_vanish(graph, xy):
    x, _ = xy
    for zero in (0.0, -0.0, 0):
        assert (x * zero, zero * x) == (0.0, 0.0)
        assert same(x + zero, x) and same(zero + x, x)
        assert same(x - zero, x) and same(zero - x, -x)
        assert zero / x == 0.0
    assert same(1.0 * x, x) and same(x * 1, x) and same(x / 1.0, x) and same(+x, x)
    assert len(graph.nodes) == 3  # the inputs and −x


def test_signs_are_normalised(graph, xy):
    x, y = xy
    opposite = -x
    assert same(-opposite, x)
    assert same(-1.0 * x, -x)
    assert same(x + -y, x - y) and same(-y + x, x - y)
    assert same(x - -y, x + y)
    assert same(-(x - y), y - x)
    assert same(-x - y, -(x + y)) and same(-x + -y, -(x + y))
    assert same(-x * -y, x * y)
    assert same(-x * y, -(x * y)) and same(x * -y, -(x * y))
    assert same(-2.0 * -x, 2.0 * x)


def test_equal_expressions_are_one_node(graph, xy):
    x, y = xy
    assert same(x + y, y + x) and same(x * y, y * x)
    assert same(x * 2.0, 2.0 * x)
    assert same(sincos(x)[0], sincos(x)[0]) and same(sqrt(x), sqrt(x))
    assert same(select(x, y, 1.0), select(x, y, 1.0))
    assert same((x + y) * (x - y), (x - y) * (y + x))
    assert not same(x - y, y - x) and not same(x / y, y / x)
    assert not same(graph.input(0), graph.input(1)) and same(graph.input(0), x)


def test_a_product_and_its_opposite_need_one_multiplication() -> None:
    def formula(q):
        return [2.5 * q[0], -2.5 * q[0], q[0] * -2.5 + q[1]]

    assert traced(formula, 2, 3).operations.multiplications == 1


def test_constant_factors_are_merged(graph, xy):
    x, _ = xy
    assert same(2.0 * (3.0 * x), 6.0 * x)
    assert same(-2.0 * (3.0 * x), -6.0 * x)
    assert same((0.5 * x) * 2.0, x)
    assert same((-0.5 * x) * 2.0, -x)


@pytest.mark.parametrize(
    ("factor", "divisor"), [(1e-200, 1e-300), (1e-160, 1e-200), (1e200, 1e300)]
)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_constants_are_not_merged_out_of_range(factor, divisor, sign) -> None:
    def formula(q):
        return [sign * factor * (1.1 * factor * (q[0] / divisor))]

    _, value = call(compiled(formula, 1), [0.7])
    assert value[0] == pytest.approx(formula([0.7])[0], rel=1e-15, abs=0.0)


def test_truth_comparison_and_conversion_are_refused_with_a_way_out(xy):
    x, y = xy
    for attempt, words in (
        (lambda: bool(x), r"no truth value; use select\(x, positive, otherwise\)"),
        (lambda: 1.0 if x else 2.0, "no truth value"),
        (lambda: x == y, r"cannot be compared; use is_zero\(x\) or select"),
        (lambda: x != 0.0, "cannot be compared"),
        (lambda: x < y, "cannot be compared"),
        (lambda: x >= 1.0, "cannot be compared"),
        (lambda: max(x, 0.0), "cannot be compared"),
        (lambda: x in [y], "cannot be compared"),
        (lambda: float(x), "has no value; keep it a scalar"),
        (lambda: math.sin(x), "has no value"),
        (lambda: np.array([x], dtype=float), "has no value"),
        (lambda: {x}, "unhashable"),
    ):
        with pytest.raises(TypeError, match=words):
            attempt()


def test_division_by_a_constant_zero_is_an_error(xy):
    with pytest.raises(ZeroDivisionError):
        xy[0] / 0.0
    with pytest.raises(CompilerError, match="'toy' divides by a constant zero of 'toy'"):
        traced(lambda q: [q[0] / 0.0], 1)


def test_division_is_not_turned_into_a_product(graph, xy):
    """x/3 and x·(1/3) differ in the last bit."""
    x, y = xy
    assert not same(x / 3.0, x * (1.0 / 3.0))
    _, value = call(compiled(lambda q: [q[0] / 3.0, 7.0 / q[0], q[0] / q[1]], 2, 3), [5.0, 0.3])
    assert value.tolist() == [5.0 / 3.0, 7.0 / 5.0, 5.0 / 0.3]


def test_numpy_scalars_are_constants(xy):
    x, _ = xy
    assert same(np.float64(2.0) * x, x * 2.0)
    assert same(np.float64(2.0) + x, x + 2.0)
    assert np.float64(0.0) * x == 0.0


def test_select_and_square_root_by_value() -> None:
    def formula(q):
        return [select(q[0], 2.0 * q[1], -1.0), sqrt(q[1]), select(q[0], 3.0, q[1]), q[0]]

    kernel = compiled(lambda q: formula([q[0], q[1] * q[1]]), 2, 4)
    for x in (2.0, 1e-300, 0.0, -0.0, -3.0):
        _, value = call(kernel, [x, 1.7])
        assert value.tolist() == formula([x, 1.7 * 1.7])
    _, value = call(kernel, [math.nan, 1.7])
    assert value[0] == -1.0


def test_only_numbers_and_symbols_may_be_returned() -> None:
    for value in ("1", None, [1.0]):
        with pytest.raises(CompilerError, match=f"returned {type(value).__name__}; expected"):
            traced(lambda q, value=value: [value], 1)


def test_live_nodes_are_those_that_the_roots_need(graph, xy):
    x, y = xy
    wanted = (x + y) * x
    unused = sqrt(y)
    live = graph.live([wanted.index])
    assert unused.index not in live
    assert live == sorted(live)
    assert {k for i in live for k in graph.operands[i]} <= set(live)
    assert graph.live([]) == []


def test_guards_are_recorded(graph, xy):
    x, _ = xy
    assert positive(x, "the thing") is x
    assert [(guard.index, guard.what) for guard in graph.guards] == [(x.index, "the thing")]


# Random expressions: the machine code against the same formula on floats.


class Rounded:
    """A float with a bound of its rounding error, to first order (running error analysis)."""

    UNIT = 2.0**-53

    def __init__(self, value: float, error: float = 0.0) -> None:
        self.value = value
        self.error = error

    @classmethod
    def of(cls, other: object) -> Rounded:
        return other if isinstance(other, Rounded) else cls(float(other))  # type: ignore[arg-type]

    @classmethod
    def result(cls, value: float, propagated: float) -> Rounded:
        return cls(value, propagated * (1 + 1e-3) + cls.UNIT * abs(value) + 1e-300)

    def __neg__(self):
        return Rounded(-self.value, self.error)

    def __add__(self, other):
        b = Rounded.of(other)
        return Rounded.result(self.value + b.value, self.error + b.error)

    def __sub__(self, other):
        return self + -Rounded.of(other)

    def __rsub__(self, other):
        return Rounded.of(other) - self

    def __mul__(self, other):
        b = Rounded.of(other)
        error = abs(self.value) * b.error + abs(b.value) * self.error + self.error * b.error
        return Rounded.result(self.value * b.value, error)

    def __truediv__(self, other):
        b = Rounded.of(other)
        least = abs(b.value) - b.error
        if least <= 0.0:
            return Rounded(1.0, math.inf)
        quotient = self.value / b.value
        return Rounded.result(quotient, (self.error + abs(quotient) * b.error) / least)

    def __rtruediv__(self, other):
        return Rounded.of(other) / self

    __radd__, __rmul__ = __add__, __mul__


@scalars.sincos.register
def _(angle: Rounded):
    # Two units in the last place are four roundings.
    return tuple(
        Rounded(f(angle.value), angle.error + 4 * Rounded.UNIT) for f in (math.sin, math.cos)
    )


@scalars.sqrt.register
def _(x: Rounded):
    least = x.value - x.error
    if least <= 0.0:
        return Rounded(1.0, math.inf)
    return Rounded.result(math.sqrt(x.value), x.error / math.sqrt(least))


@scalars.select.register
def _(x: Rounded, positive, otherwise):
    chosen = Rounded.of(positive if x.value > 0 else otherwise)
    return chosen if abs(x.value) > x.error else Rounded(chosen.value, math.inf)


STEPS = (
    "add", "sub", "mul", "mul", "div", "neg", "sqrt", "sin", "cos", "select", "scale", "shift",
)  # fmt: skip
CONSTANTS = (0.0, 1.0, -1.0, 0.5, -0.3, 2.0, -7.25)
INPUTS, LENGTH, RESULTS = 3, 25, 6


def evaluate(steps, q):
    """Return the last values of a formula that is given as steps on a growing list."""
    values = list(q)
    for what, i, j, k in steps:
        a, b, c = values[i % len(values)], values[j % len(values)], CONSTANTS[k]
        # What is a constant may have no sine or root worth taking, and fold to a float.
        values.append(
            {
                "add": lambda a, b, c: a + b,
                "sub": lambda a, b, c: a - b,
                "mul": lambda a, b, c: a * b,
                "div": lambda a, b, c: a / (b * b + 0.25),
                "neg": lambda a, b, c: -a,
                "sqrt": lambda a, b, c: sqrt(a * a + 0.0625),
                "sin": lambda a, b, c: sincos(a)[0],
                "cos": lambda a, b, c: sincos(a)[1],
                "select": lambda a, b, c: select(a, b, c),
                "scale": lambda a, b, c: c * a,
                "shift": lambda a, b, c: c - a,
            }[what](a, b, c)
        )
    return values[-RESULTS:]


formulas = st.lists(
    st.tuples(
        st.sampled_from(STEPS),
        st.integers(0, 40),
        st.integers(0, 40),
        st.integers(0, len(CONSTANTS) - 1),
    ),
    min_size=LENGTH,
    max_size=LENGTH,
)
points = st.lists(st.floats(-4.0, 4.0), min_size=INPUTS, max_size=INPUTS)


@hypothesis.settings(max_examples=60)
@hypothesis.given(formulas, st.lists(points, min_size=3, max_size=3))
def test_random_formulas_run_as_on_floats(steps, qs):
    check_formula(steps, qs)


def test_many_mixed_formulas_run_as_on_floats() -> None:
    """Hypothesis prefers simple cases; these use every step in every formula."""
    rng = random.Random(0)
    checked = 0
    for _ in range(30):
        steps = [(what, *(rng.randrange(41) for _ in "ij"), rng.randrange(len(CONSTANTS)))
                 for what in 3 * STEPS]  # fmt: skip
        rng.shuffle(steps)
        qs = [[rng.uniform(-4, 4) for _ in range(INPUTS)] for _ in range(3)]
        checked += check_formula(steps, qs)
    assert checked > 300


def check_formula(steps, qs) -> int:
    """Compare a formula's kernel with floats; return how many values were compared."""
    with pytest.MonkeyPatch.context() as patch:
        # The comparison with floats that every build does knows nothing of cancellation.
        patch.setattr(samples, "SELF_CHECK", math.inf)
        kernel = compiled(lambda q: evaluate(steps, q), INPUTS, RESULTS)
    checked = 0
    for q in qs:
        expected = [Rounded.of(v) for v in evaluate(steps, [Rounded(v) for v in q])]
        status, values = call(kernel, q)
        assert status == 0
        for got, want in zip(values, expected, strict=True):
            if want.error < 1e-6 * (1.0 + abs(want.value)):
                assert abs(got - want.value) <= 2 * want.error, (steps, q)
                checked += 1
    return checked


def test_negation_leaves_no_node_behind_where_a_difference_does(graph, xy):
    x, y = xy
    assert graph.nodes[(-(x - y)).index][0] == SUB
    assert graph.nodes[(-(x + y)).index][0] == NEG
