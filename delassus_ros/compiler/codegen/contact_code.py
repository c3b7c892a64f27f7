"""Machine code of constrained forward dynamics, for a bound solver: forces and accelerations.

C ABI: ``int64 constrained(const int64 *binding)``; the binding holds the entries of
:data:`BINDING`. It factorises G + R = L Lᵀ, solves (G + R) f = a − a⁰ and adds M⁻¹Jᵀ f to the free
accelerations. The result is :data:`SOLVED`, :data:`REDUNDANT` if a pivot is not above a fraction
of its diagonal entry, as where rows are redundant or a number is none, or :data:`OVERFLOWED` if a
force or an acceleration is not finite. Loops, not straight-line code: the active contacts change.
"""

from __future__ import annotations

from collections.abc import Callable

from delassus_ros.compiler.codegen.llvm_text import Writer, literal, pointer

BINDING = (
    "G", "regularization", "wanted", "a0", "response", "qdd0", "L", "forces", "accelerations",
    "k", "n",
)  # fmt: skip
"""Addresses of G (k, k), R (k,), a (k,), a⁰ (k,), M⁻¹Jᵀ (n, k), free accelerations (n,), scratch
(k, k), f (k,) and ÿ (n,); then k and n."""
REDUNDANT, SOLVED, OVERFLOWED = 0, 1, 2
CONSTRAINED = "delassus_constrained"
F = "%forces"
_LEAST_PIVOT_SHARE = 1e-10
"""Least share of a diagonal entry that a pivot keeps."""


class _Loops(Writer):
    """Writes loops that carry a number."""

    def __init__(self) -> None:
        super().__init__()
        self._block, self._loops = "entry", 0

    def label(self, name: str) -> None:
        """Start a block; see the base class."""
        super().label(name)
        self._block = name

    def loop(self, first: str, end: str, start: str, body: Callable[[str, str], str]) -> str:
        """Emit x = start; for i = first … end − 1: x = body(i, x). Return x."""
        self._loops += 1
        name, before = f"loop{self._loops}", self._block
        self.do(f"br label %{name}")
        self.label(name)
        i, x = f"%{name}_i", f"%{name}_x"
        phis = len(self.lines)
        more = self.let(f"icmp slt i64 {i}, {end}")
        self.do(f"br i1 {more}, label %{name}_body, label %{name}_end")
        self.label(f"{name}_body")
        after = body(i, x)
        following = self.let(f"add i64 {i}, 1")
        self.lines[phis:phis] = [
            f"  {i} = phi i64 [ {first}, %{before} ], [ {following}, %{self._block} ]",
            f"  {x} = phi double [ {start}, %{before} ], [ {after}, %{self._block} ]",
        ]
        self.do(f"br label %{name}")
        self.label(f"{name}_end")
        return x

    def each(self, first: str, end: str, body: Callable[[str], None]) -> None:
        """Emit for i = first … end − 1: body(i)."""

        def carried(i: str, x: str) -> str:
            body(i)
            return x

        self.loop(first, end, literal(0.0), carried)

    def at(self, base: str, row: str, column: str = "", width: str = "%k") -> str:
        """Return the address of base[row], or of an entry of a matrix."""
        index = row
        if column:
            index = self.let(f"add i64 {self.let(f'mul i64 {row}, {width}')}, {column}")
        return self.let(f"getelementptr inbounds double, {pointer()} {base}, i64 {index}")

    def get(self, base: str, row: str, column: str = "") -> str:
        """Return base[row], or an entry of a matrix."""
        return self.let(f"load double, {pointer()} {self.at(base, row, column)}, align 8")

    def put(self, value: str, base: str, row: str, column: str = "") -> None:
        """Store it."""
        self.do(f"store double {value}, {pointer()} {self.at(base, row, column)}, align 8")

    def less_product(self, x: str, a: str, b: str) -> str:
        """Return x − a b."""
        return self.let(f"fsub contract double {x}, {self.let(f'fmul contract double {a}, {b}')}")


def module() -> str:
    """Return the module with the function :data:`CONSTRAINED`."""
    w = _Loops()
    p, pi = pointer(), pointer("i64")
    for k, name in enumerate(BINDING):
        at = w.let(f"getelementptr inbounds i64, {pi} %binding, i64 {k}")
        if name in ("k", "n"):
            w.do(f"%{name} = load i64, {pi} {at}, align 8")
        else:
            number = w.let(f"load i64, {pi} {at}, align 8")
            w.do(f"%{name} = inttoptr i64 {number} to {p}")
    _factorise(w)
    _solve(w)

    def accelerate(r: str, zero: str) -> str:
        def add(c: str, x: str) -> str:
            product = w.let(f"fmul contract double {w.get('%response', r, c)}, {w.get(F, c)}")
            return w.let(f"fadd contract double {x}, {product}")

        found = w.loop("0", "%k", w.get("%qdd0", r), add)
        w.put(found, "%accelerations", r)
        return _unless_finite(w, found, zero)

    zero = w.loop("0", "%n", literal(0.0), accelerate)
    zero = w.loop("0", "%k", zero, lambda i, x: _unless_finite(w, w.get(F, i), x))
    finite = w.let(f"fcmp oeq double {zero}, {literal(0.0)}")
    w.do(f"ret i64 {w.let(f'select i1 {finite}, i64 {SOLVED}, i64 {OVERFLOWED}')}")
    w.label("redundant")
    w.do(f"ret i64 {REDUNDANT}")
    lines = "\n".join(w.lines)
    return (
        "declare double @llvm.sqrt.f64(double)\n"
        f"define i64 @{CONSTRAINED}({pi} noalias nocapture readonly %binding) {{\n"
        f"entry:\n{lines}\n}}\n"
    )


def _unless_finite(w: _Loops, value: str, zero: str) -> str:
    """Return 0, or NaN once a value was not finite: x·0 is NaN then."""
    return w.let(f"fadd double {zero}, {w.let(f'fmul double {value}, {literal(0.0)}')}")


def _factorise(w: _Loops) -> None:
    """Emit L of G + R = L Lᵀ by rows, its diagonal inverted."""

    def row(i: str) -> None:
        def entry(j: str) -> None:
            total = w.loop(
                "0", j, w.get("%G", i, j),
                lambda t, x: w.less_product(x, w.get("%L", i, t), w.get("%L", j, t)),
            )  # fmt: skip
            w.put(w.let(f"fmul double {total}, {w.get('%L', j, j)}"), "%L", i, j)

        w.each("0", i, entry)
        g_ii = w.get("%G", i, i)
        diagonal = w.let(f"fadd double {g_ii}, {w.get('%regularization', i)}")

        def less_square(t: str, x: str) -> str:
            value = w.get("%L", i, t)
            return w.less_product(x, value, value)

        pivot = w.loop("0", i, diagonal, less_square)
        least = w.let(f"fmul double {diagonal}, {literal(_LEAST_PIVOT_SHARE)}")
        good = w.let(f"fcmp ogt double {pivot}, {least}")
        w.do(f"br i1 {good}, label %good, label %redundant")
        w.label("good")
        root = w.let(f"call double @llvm.sqrt.f64(double {pivot})")
        w.put(w.let(f"fdiv double {literal(1.0)}, {root}"), "%L", i, i)

    w.each("0", "%k", row)


def _solve(w: _Loops) -> None:
    """Emit L Lᵀ f = a − a⁰."""

    def forward(i: str) -> None:
        right = w.let(f"fsub double {w.get('%wanted', i)}, {w.get('%a0', i)}")
        rest = w.loop(
            "0", i, right, lambda t, x: w.less_product(x, w.get("%L", i, t), w.get(F, t))
        )
        w.put(w.let(f"fmul double {rest}, {w.get('%L', i, i)}"), F, i)

    w.each("0", "%k", forward)

    def backward(number: str) -> None:
        after = w.let(f"sub i64 %k, {number}")
        i = w.let(f"sub i64 {after}, 1")

        def less(t: str, x: str) -> str:
            return w.less_product(x, w.get("%L", t, i), w.get(F, t))

        rest = w.loop(after, "%k", w.get(F, i), less)
        w.put(w.let(f"fmul double {rest}, {w.get('%L', i, i)}"), F, i)

    w.each("0", "%k", backward)
