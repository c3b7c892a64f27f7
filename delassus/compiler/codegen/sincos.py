"""sin and cos of a vector of doubles as LLVM IR: no call, no table, within 2 ulp.

Cody–Waite reduction to [−π/4, π/4]: π/2 is split in parts of which all but the last have 33
bits, so that k·part is exact for |k| < 2²⁰ with and without fused multiply-add. Then the
polynomials of FDLIBM (Sun Microsystems, 1993). Angles beyond :data:`LIMIT` go through libm.
"""

from __future__ import annotations

from collections.abc import Sequence

from delassus.compiler.codegen.llvm_text import Writer, literal, pointer, splat, vector_type

LIMIT = 1.0e6
"""Largest |angle| [rad] of the fast path; k stays below 2²⁰ there."""

WIDTHS = (1, 2, 4, 8)

_FAR = "delassus_far_sincos"

_TWO_OVER_PI = 0.63661977236758134308
_HALF_PI = (
    1.57079632673412561417e00,
    6.07710050630396597660e-11,
    2.02226624871116645580e-21,
    8.47842766036889956997e-32,
)
_ROUND = 6755399441055744.0
"""1.5 · 2⁵²: adding it rounds to an integer, which is then in the low bits."""
_SIN = (
    1.58969099521155010221e-10,
    -2.50507602534068634195e-08,
    2.75573137070700676789e-06,
    -1.98412698298579493134e-04,
    8.33333333332248946124e-03,
    -1.66666666666666324348e-01,
)
_COS = (
    -1.13596475577881948265e-11,
    2.08757232129817482790e-09,
    -2.75573143513906633035e-07,
    2.48015872894767294178e-05,
    -1.38888888888741095749e-03,
    4.16666666666666019037e-02,
)


def declarations() -> str:
    """Return the declarations that the emitted code needs."""
    lines = ["declare double @sin(double)", "declare double @cos(double)", _far_function()]
    for width in WIDTHS:
        v = vector_type(width)
        lines.append(f"declare {v} @llvm.fmuladd.{suffix(width)}({v}, {v}, {v})")
        lines.append(f"declare {v} @llvm.fabs.{suffix(width)}({v})")
    lines.append('!0 = !{!"branch_weights", i32 1, i32 100000}')
    return "\n".join(lines)


def _far_function() -> str:
    """Return the IR of the slow path: sin and cos of n doubles by libm."""
    p = pointer()
    return f"""
define internal void @{_FAR}({p} %x, {p} %s, {p} %c, i64 %n) noinline cold {{
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %px = getelementptr inbounds double, {p} %x, i64 %i
  %ps = getelementptr inbounds double, {p} %s, i64 %i
  %pc = getelementptr inbounds double, {p} %c, i64 %i
  %angle = load double, {p} %px, align 8
  %sine = call double @sin(double %angle)
  %cosine = call double @cos(double %angle)
  store double %sine, {p} %ps, align 8
  store double %cosine, {p} %pc, align 8
  %i1 = add i64 %i, 1
  %more = icmp slt i64 %i1, %n
  br i1 %more, label %next, label %done
done:
  ret void
}}"""


def sincos_of_vectors(w: Writer, vectors: Sequence[tuple[str, int]]) -> list[tuple[str, str]]:
    """Emit sin and cos of (vector, width) pairs; must come in the function's entry block.

    One branch guards the slow path of all. It replaces only the lanes beyond LIMIT, so that a
    lane's result does not depend on its neighbours.
    """
    fast = [_polynomials(w, x, width) for x, width in vectors]
    masks = [_outside(w, x, width) for x, width in vectors]
    outside = "false"
    for mask, (_, width) in zip(masks, vectors, strict=True):
        outside = w.let(f"or i1 {outside}, {w.any(mask, width)}")
    # Stack slots are made in the entry block, where they cost nothing.
    buffers = [
        [w.let(f"alloca {vector_type(width)}, align 64") for _ in range(3)] for _, width in vectors
    ]
    w.do(f"br i1 {outside}, label %far, label %turned, !prof !0")
    w.label("far")
    slow = []
    for (x, width), slots, mask, near in zip(vectors, buffers, masks, fast, strict=True):
        v, i1 = vector_type(width), vector_type(width, "i1")
        library = _library(w, x, width, slots)
        slow.append(
            [
                w.let(f"select {i1} {mask}, {v} {a}, {v} {b}")
                for a, b in zip(library, near, strict=True)
            ]
        )
    w.do("br label %turned")
    w.label("turned")
    merged = []
    for (_, width), near, far in zip(vectors, fast, slow, strict=True):
        v = vector_type(width)
        s, c = (
            w.let(f"phi {v} [ {a}, %entry ], [ {b}, %far ]")
            for a, b in zip(near, far, strict=True)
        )
        merged.append((s, c))
    return merged


def suffix(width: int) -> str:
    """Return the suffix of an LLVM intrinsic for this width."""
    return "f64" if width == 1 else f"v{width}f64"


def _outside(w: Writer, x: str, width: int) -> str:
    """Return a mask: |x| is above LIMIT or NaN."""
    v = vector_type(width)
    magnitude = w.let(f"call {v} @llvm.fabs.{suffix(width)}({v} {x})")
    return w.let(f"fcmp ugt {v} {magnitude}, {splat(literal(LIMIT), width)}")


def _library(w: Writer, x: str, width: int, buffers: list[str]) -> tuple[str, str]:
    """Return sin and cos through libm, by a call that keeps the cold path small."""
    v = vector_type(width)
    typed = pointer(v)
    w.do(f"store {v} {x}, {typed} {buffers[0]}, align 64")
    scalars = [w.let(f"bitcast {typed} {buffer} to {pointer()}") for buffer in buffers]
    arguments = ", ".join(f"{pointer()} {scalar}" for scalar in scalars)
    w.do(f"call void @{_FAR}({arguments}, i64 {width})")
    s, c = (w.let(f"load {v}, {typed} {buffer}, align 64") for buffer in buffers[1:])
    return s, c


def _polynomials(w: Writer, x: str, width: int) -> tuple[str, str]:
    """Return sin and cos for |x| <= LIMIT."""
    v, iv = vector_type(width), vector_type(width, "i64")

    def k(value: float) -> str:
        return splat(literal(value), width)

    def fma(a: str, b: str, c: str) -> str:
        return w.let(f"call {v} @llvm.fmuladd.{suffix(width)}({v} {a}, {v} {b}, {v} {c})")

    def horner(coefficients: Sequence[float], z: str) -> str:
        result = k(coefficients[0])
        for coefficient in coefficients[1:]:
            result = fma(result, z, k(coefficient))
        return result

    shifted = fma(x, k(_TWO_OVER_PI), k(_ROUND))
    quadrant = w.let(f"bitcast {v} {shifted} to {iv}")
    turns = w.let(f"fsub {v} {shifted}, {k(_ROUND)}")
    leading = fma(turns, k(-_HALF_PI[1]), fma(turns, k(-_HALF_PI[0]), x))
    # Added to the sine at its end, so that r is not rounded twice in it.
    rest = fma(turns, k(-_HALF_PI[3]), w.let(f"fmul {v} {turns}, {k(-_HALF_PI[2])}"))
    r = w.let(f"fadd {v} {leading}, {rest}")
    z = w.let(f"fmul {v} {r}, {r}")
    rz = w.let(f"fmul {v} {r}, {z}")
    sine = w.let(f"fadd {v} {leading}, {fma(rz, horner(_SIN, z), rest)}")
    cosine = horner((*_COS, -0.5, 1.0), z)

    odd = w.let(f"trunc {iv} {quadrant} to {vector_type(width, 'i1')}")
    i1 = vector_type(width, "i1")
    s = w.let(f"select {i1} {odd}, {v} {cosine}, {v} {sine}")
    c = w.let(f"select {i1} {odd}, {v} {sine}, {v} {cosine}")

    def signed(value: str, quarter: str) -> str:
        """Flip the sign where bit 1 of the quadrant is set."""
        bit = w.let(f"and {iv} {quarter}, {splat('2', width, 'i64')}")
        sign = w.let(f"shl {iv} {bit}, {splat('62', width, 'i64')}")
        bits = w.let(f"bitcast {v} {value} to {iv}")
        return w.let(f"bitcast {iv} " + w.let(f"xor {iv} {bits}, {sign}") + f" to {v}")

    next_quadrant = w.let(f"add {iv} {quadrant}, {splat('1', width, 'i64')}")
    return signed(s, quadrant), signed(c, next_quadrant)
