"""Two further kinds of scalars: duals, which carry derivatives, and the varying scalar.

Duals differentiate functions over scalars and may hold any kind of scalars: floats, mpmath
numbers or symbols. Structural zeros of a derivative stay the float 0.0. The varying scalar has no
value; a function evaluated on varying scalars shows which of its results are constant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from delassus.scalars import functions as scalars
from delassus.scalars.functions import Matrix, Scalar, Vector, identity


class Dual:
    """A scalar and its derivatives (forward mode).

    Attributes
    ----------
    value : the scalar.
    slopes : derivatives of the value, one per variable.
    level : number of the differentiation. A derivative that is differentiated in turn has
        variables of level 1 with values and slopes of level 0; for level 1, duals of level 0 are
        constants.
    """

    __slots__ = ("level", "slopes", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Scalar, slopes: Vector, level: int = 0) -> None:
        self.value = value
        self.slopes = slopes
        self.level = level

    def __bool__(self) -> bool:
        raise TypeError("a dual number has no truth value; use select(x, positive, otherwise)")

    def __eq__(self, other: object) -> bool:
        raise TypeError("dual numbers cannot be compared; use select(x, positive, otherwise)")

    __lt__ = __le__ = __gt__ = __ge__ = __eq__

    def __neg__(self) -> Dual:
        return Dual(-self.value, [-slope for slope in self.slopes], self.level)

    def __pos__(self) -> Dual:
        return self

    def __add__(self, other: Scalar) -> Dual:
        if isinstance(other, Dual) and other.level >= self.level:
            if other.level > self.level:
                return other + self
            return self._with(other, self.value + other.value, lambda a, b: a + b)
        return Dual(self.value + other, self.slopes, self.level)

    __radd__ = __add__

    def __sub__(self, other: Scalar) -> Dual:
        return self.__add__(-other)

    def __rsub__(self, other: Scalar) -> Dual:
        return self.__neg__().__add__(other)

    def __mul__(self, other: Scalar) -> Dual:
        if isinstance(other, Dual) and other.level >= self.level:
            if other.level > self.level:
                return other * self
            u, v = self.value, other.value
            return self._with(other, u * v, lambda a, b: a * v + u * b)
        return Dual(self.value * other, [slope * other for slope in self.slopes], self.level)

    __rmul__ = __mul__

    def __truediv__(self, other: Scalar) -> Dual:
        if isinstance(other, Dual) and other.level >= self.level:
            if other.level > self.level:
                return other.__rtruediv__(self)
            ratio, divisor = self.value / other.value, other.value
            return self._with(other, ratio, lambda a, b: (a - ratio * b) / divisor)
        return Dual(self.value / other, [slope / other for slope in self.slopes], self.level)

    def __rtruediv__(self, other: Scalar) -> Dual:
        return Dual(other, [0.0] * len(self.slopes), self.level) / self

    def _with(self, other: Dual, value: Scalar, rule: Callable[[Scalar, Scalar], Scalar]) -> Dual:
        pairs = zip(self.slopes, other.slopes, strict=True)
        return Dual(value, [rule(a, b) for a, b in pairs], self.level)


@scalars.sincos.register
def _(angle: Dual) -> tuple[Dual, Dual]:
    s, c = scalars.sincos(angle.value)
    return (
        Dual(s, [c * slope for slope in angle.slopes], angle.level),
        Dual(c, [-(s * slope) for slope in angle.slopes], angle.level),
    )


@scalars.sqrt.register
def _(x: Dual) -> Dual:
    root = scalars.sqrt(x.value)
    return Dual(root, [slope / (2.0 * root) for slope in x.slopes], x.level)


@scalars.select.register
def _(x: Dual, positive: Scalar, otherwise: Scalar) -> Dual:
    duals = [x, *(branch for branch in (positive, otherwise) if isinstance(branch, Dual))]
    highest = max(duals, key=lambda dual: dual.level)
    level, count = highest.level, len(highest.slopes)
    switch = x.value if x.level == level else x
    (a, a_slopes), (b, b_slopes) = (
        _parts(branch, count, level) for branch in (positive, otherwise)
    )
    slopes = [
        0.0 if scalars.is_zero(u) and scalars.is_zero(v) else scalars.select(switch, u, v)
        for u, v in zip(a_slopes, b_slopes, strict=True)
    ]
    return Dual(scalars.select(switch, a, b), slopes, level)


@scalars.positive.register
def _(x: Dual, what: str, of: Dual | None = None) -> Dual:
    owner = of.value if isinstance(of, Dual) else of
    return Dual(scalars.positive(x.value, what, owner), x.slopes, x.level)


@scalars.regular.register
def _(pivot: Dual, least: float, what: str) -> Dual:
    return Dual(scalars.regular(pivot.value, least, what), pivot.slopes, pivot.level)


def _parts(x: Scalar, count: int, level: int = 0) -> tuple[Scalar, Vector]:
    """Return value and derivatives of a dual of a level, or of a constant of this level."""
    if isinstance(x, Dual) and x.level == level:
        return x.value, x.slopes
    return x, [0.0] * count


def next_level(values: Iterable[Scalar]) -> int:
    """Return the level of a differentiation at values that may be duals themselves."""
    return 1 + max((value.level for value in values if isinstance(value, Dual)), default=-1)


def differentiated(
    function: Callable[[Vector], Sequence[Scalar]], at: Sequence[Scalar]
) -> tuple[Vector, Matrix]:
    """Return the values of a function over scalars, and its Jacobian.

    Parameters
    ----------
    function : list of n scalars → scalars.
    at : n scalars.

    Returns
    -------
    values : (r,); Jacobian : (r, n), structural zeros are the float 0.0.
    """
    n, level = len(at), next_level(at)
    variables = [Dual(x, slopes, level) for x, slopes in zip(at, identity(n), strict=True)]
    parts = [_parts(value, n, level) for value in function(list(variables))]
    return [value for value, _ in parts], [list(slopes) for _, slopes in parts]


class Varying:
    """A scalar without a value that is not constant; see :data:`VARYING`."""

    __slots__ = ()

    def _combined(self, other: Scalar) -> Varying:
        return self

    def _scaled(self, other: Scalar) -> Scalar:
        return 0.0 if scalars.is_zero(other) else self

    def __neg__(self) -> Varying:
        return self

    __pos__ = __neg__
    __add__ = __radd__ = __sub__ = __rsub__ = __truediv__ = _combined
    __mul__ = __rmul__ = __rtruediv__ = _scaled


VARYING = Varying()
"""Marks results that depend on the configuration; results that are floats are constant."""


@scalars.sincos.register
def _(angle: Varying) -> tuple[Varying, Varying]:
    return angle, angle


@scalars.sqrt.register
def _(x: Varying) -> Varying:
    return x


@scalars.select.register
def _(x: Varying, positive: Scalar, otherwise: Scalar) -> Varying:
    return x


@scalars.positive.register
def _(x: Varying, what: str, of: Scalar = None) -> Varying:
    return x


@scalars.regular.register
def _(pivot: Varying, least: float, what: str) -> Varying:
    return pivot
