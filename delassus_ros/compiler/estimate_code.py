"""Machine code of :mod:`delassus_ros.conditioning.estimate`, which says what it computes and why.

Sizes come when it runs, so that one piece of code, made once in a process, is for all matrices.
Through numpy the same takes 16 calls. Those are slow after a pause, when neither their code nor
their tables are in the caches any more, and a control loop always computes after a pause. Large
matrices, for which that is little, are turned by BLAS, whose blocks stay in the caches.
"""

from __future__ import annotations

from functools import lru_cache

from delassus_ros.compiler.ir import literal, pointer, vector_type
from delassus_ros.compiler.jit import LoadedCode, compile_ir
from delassus_ros.compiler.loops import LoopWriter
from delassus_ros.compiler.python_call import functions, link

WIDTH = 8
"""Doubles per vector; rows of what the code reads and writes are padded with zeros to these."""
ROWS_OF_WORK = 3
"""Rows of a matrix in the work area beside two matrices."""

_FUNCTION = "delassus_estimate"
_V = vector_type(WIDTH)
_D, _W = pointer(), pointer("i64")


def padded(k: int) -> int:
    """Return how many doubles a row of k takes."""
    return -(-k // WIDTH) * WIDTH


@lru_cache(maxsize=1)
def estimate_code(
    trusted: float, within: float, not_zero: float, smallest: float, largest: float,
    fresh: float, fresh_room: float,
) -> LoadedCode:  # fmt: skip
    """Return code with :func:`~delassus_ros.compiler.python_call.python_calls`.

    Its argument is the address of eight words: addresses of the matrix (k, k), of the
    eigenvectors V (k, padded(k)), of a work area of 2 k + :data:`ROWS_OF_WORK` such rows and of
    three results, then k, padded(k), the number of eigenvalues that are zero by structure, and
    whether (1) the rows from k on of the work area hold Vᵀ · matrix · V already. It returns 1 if
    the estimate is proven, else 0. The results are the largest and the smallest eigenvalue, and
    whether (1.0) the eigenvectors should be renewed.

    Parameters
    ----------
    trusted, within, not_zero, smallest, largest, fresh, fresh_room : constants of the estimate.
    """
    link()
    ir = estimate_ir(trusted, within, not_zero, smallest, largest, fresh, fresh_room)
    return LoadedCode(compile_ir(ir + functions(_FUNCTION)))


def estimate_ir(*constants: float) -> str:
    """Return the IR of the function alone; the constants are those of :func:`estimate_code`."""
    return _multiply() + _estimate(*constants)


def _multiply() -> str:
    """Return the IR of out = left · right; left[i, j] is at i · down + j · along."""
    w = LoopWriter()

    def row(i: str, _: list[str]) -> list[str]:
        start = w.let(f"mul i64 {i}, %down")
        target = w.let(f"mul i64 {i}, %padded")

        def block(c: str, _: list[str]) -> list[str]:
            def term(j: str, carried: list[str]) -> list[str]:
                step = w.let(f"mul i64 {j}, %along")
                factor = w.read("%left", w.let(f"add i64 {start}, {step}"))
                place = w.let(f"add i64 {w.let(f'mul i64 {j}, %padded')}, {c}")
                product = w.let(
                    f"fmul contract {_V} {w.spread(factor, WIDTH)}, "
                    f"{w.read('%right', place, WIDTH)}"
                )
                return [w.let(f"fadd contract {_V} {carried[0]}, {product}")]

            (total,) = w.loop(0, "%k", 1, [(_V, "zeroinitializer")], term)
            w.write(total, "%out", w.let(f"add i64 {target}, {c}"), WIDTH)
            return []

        w.loop(0, "%padded", WIDTH, [], block)
        return []

    w.loop(0, "%k", 1, [], row)
    w.do("ret void")
    arguments = f"{_D} %left, i64 %down, i64 %along, {_D} %right, {_D} %out, i64 %k, i64 %padded"
    body = "\n".join(w.lines)
    return f"define internal void @multiply({arguments}) {{\n{body}\n}}\n"


def _estimate(
    trusted: float, within: float, not_zero: float, smallest_number: float, largest_number: float,
    fresh: float, fresh_room: float,
) -> str:  # fmt: skip
    w = LoopWriter()

    def word(k: int) -> str:
        place = w.let(f"getelementptr i64, {_W} %words, i64 {k}")
        return w.let(f"load i64, {_W} {place}, align 8")

    def array(address: str) -> str:
        return w.let(f"inttoptr i64 {address} to {_D}")

    def both(first: str, second: str) -> str:
        return w.let(f"and i1 {first}, {second}")

    def require(condition: str) -> None:
        proceed = w.new_block()
        w.do(f"br i1 {condition}, label %{proceed}, label %no")
        w.label(proceed)

    def index(i: str, j: str) -> str:
        return w.let(f"add i64 {w.let(f'mul i64 {i}, {padded_k}')}, {j}")

    matrix, basis, work, results = (array(word(n)) for n in range(4))
    k, padded_k, zeros, is_turned = (word(n) for n in range(4, 8))
    size = w.let(f"mul i64 {k}, {padded_k}")
    both_squares = w.let(f"mul i64 {size}, 2")
    two_rows = w.let(f"mul i64 {padded_k}, 2")
    offsets = (
        size, both_squares, w.let(f"add i64 {both_squares}, {padded_k}"),
        w.let(f"add i64 {both_squares}, {two_rows}"),
    )  # fmt: skip
    turned, diagonal, weights, null = (
        w.let(f"getelementptr inbounds double, {_D} {work}, i64 {offset}") for offset in offsets
    )
    product = work
    w.write(literal(1.0), results, "2")
    turn, look = w.new_block(), w.new_block()
    w.do(f"br i1 {w.let(f'icmp eq i64 {is_turned}, 0')}, label %{turn}, label %{look}")
    w.label(turn)
    # The matrix times the eigenvectors, then those transposed times that.
    for left, down, along, right, out in (
        (matrix, k, "1", basis, product), (basis, "1", padded_k, product, turned),
    ):  # fmt: skip
        w.do(
            f"call void @multiply({_D} {left}, i64 {down}, i64 {along}, {_D} {right}, {_D} {out}, "
            f"i64 {k}, i64 {padded_k})"
        )
    w.do(f"br label %{look}")
    w.label(look)

    def split(i: str, carried: list[str]) -> list[str]:
        """Take the diagonal out; find the largest and the weakest regular entry."""
        most, least, at = carried
        place = index(i, i)
        entry = w.read(turned, place)
        w.write(literal(0.0), turned, place)
        w.write(entry, diagonal, i)
        more = w.let(f"fcmp ogt double {entry}, {most}")
        less = both(
            w.let(f"fcmp olt double {entry}, {least}"), w.let(f"icmp sge i64 {i}, {zeros}")
        )
        return [
            w.let(f"select i1 {more}, double {entry}, double {most}"),
            w.let(f"select i1 {less}, double {entry}, double {least}"),
            w.let(f"select i1 {less}, i64 {i}, i64 {at}"),
        ]

    infinity = float("inf")
    most, rayleigh, at = w.loop(
        0, k, 1, [("double", literal(-infinity)), ("double", literal(infinity)), ("i64", zeros)],
        split,
    )  # fmt: skip
    require(
        both(
            w.let(f"fcmp ogt double {most}, {literal(smallest_number)}"),
            w.let(f"fcmp olt double {most}, {literal(largest_number)}"),
        )
    )

    def fill(i: str, _: list[str]) -> list[str]:
        """Let the padding have no gap."""
        w.write(rayleigh, diagonal, i)
        return []

    w.loop(k, padded_k, 1, [], fill)
    ray = w.spread(rayleigh, WIDTH)
    with_zeros = w.let(f"icmp sgt i64 {zeros}, 0")

    def shift_by(c: str, carried: list[str]) -> list[str]:
        """Add twice the shift of the weakest entry by each neighbour: exact for two rows."""
        gap = w.let(f"fsub {_V} {w.read(diagonal, c, WIDTH)}, {ray}")
        beside = w.read(turned, index(at, c), WIDTH)
        twice = w.let(f"fadd {_V} {beside}, {beside}")
        squares = w.let(
            f"fadd {_V} {w.let(f'fmul {_V} {gap}, {gap}')}, {w.let(f'fmul {_V} {twice}, {twice}')}"
        )
        root = w.let(f"call {_V} @llvm.sqrt.v{WIDTH}f64({_V} {squares})")
        signed = w.let(f"call {_V} @llvm.copysign.v{WIDTH}f64({_V} {root}, {_V} {gap})")
        taken = w.let(f"select i1 {with_zeros}, {_V} {signed}, {_V} {root}")
        return [w.let(f"fadd {_V} {carried[0]}, {w.let(f'fsub {_V} {gap}, {taken}')}")]

    (shifts,) = w.loop(0, padded_k, WIDTH, [(_V, "zeroinitializer")], shift_by)
    half = w.let(f"fmul double {w.total(shifts, WIDTH)}, {literal(0.5)}")
    smallest = w.let(f"fadd double {rayleigh}, {half}")
    bound = w.let(f"fdiv double {smallest}, {literal(within)}")
    raised = w.let(f"fmul double {smallest}, {literal(within)}")
    floor = w.let(f"fmul double {most}, {literal(not_zero)}")
    for low, high, how in (
        (floor, smallest, "olt"), (rayleigh, raised, "ole"), (bound, rayleigh, "olt"),
    ):  # fmt: skip
        require(w.let(f"fcmp {how} double {low}, {high}"))

    def weigh(i: str, _: list[str]) -> list[str]:
        """Weigh the regular rows but for the weakest one, and mark the others."""
        regular = w.let(f"icmp sge i64 {i}, {zeros}")
        other = w.let(f"icmp ne i64 {i}, {at}")
        distance = w.let(f"fsub double {w.read(diagonal, i)}, {bound}")
        inverse = w.let(f"fdiv double {literal(1.0)}, {distance}")
        counts = both(regular, other)
        w.write(w.let(f"select i1 {counts}, double {inverse}, double {literal(0.0)}"), weights, i)
        w.write(
            w.let(f"select i1 {regular}, double {literal(0.0)}, double {literal(1.0)}"), null, i
        )
        return []

    w.loop(0, padded_k, 1, [], weigh)

    def add_row(i: str, carried: list[str]) -> list[str]:
        """Add what is beside the diagonal in a row: all, by weight, and in rows that are zero."""
        everything, weighted, remote, shift, null_shift = carried

        def add(c: str, sums: list[str]) -> list[str]:
            entry = w.read(turned, index(i, c), WIDTH)
            square = w.let(f"fmul {_V} {entry}, {entry}")
            weighed = w.let(f"fmul {_V} {square}, {w.read(weights, c, WIDTH)}")
            nulls = w.let(f"fmul {_V} {square}, {w.read(null, c, WIDTH)}")
            return [
                w.let(f"fadd {_V} {before}, {more}")
                for before, more in zip(sums, (square, weighed, nulls), strict=True)
            ]

        vectors = w.loop(0, padded_k, WIDTH, 3 * [(_V, "zeroinitializer")], add)
        whole, by_weight, by_null = (w.total(vector, WIDTH) for vector in vectors)
        own = w.let(f"fmul double {w.read(weights, i)}, {by_weight}")
        entry = w.read(diagonal, i)
        of_null = w.let(f"fadd double {by_null}, {w.let(f'fmul double {entry}, {entry}')}")
        marked = w.let(f"fmul double {w.read(null, i)}, {of_null}")
        here = w.let(f"icmp eq i64 {i}, {at}")
        return [
            w.let(f"fadd double {everything}, {whole}"),
            w.let(f"fadd double {weighted}, {own}"),
            w.let(f"fadd double {remote}, {marked}"),
            w.let(f"select i1 {here}, double {by_weight}, double {shift}"),
            w.let(f"select i1 {here}, double {by_null}, double {null_shift}"),
        ]

    nothing = ("double", literal(0.0))
    everything, weighted, remote, shift, null_shift = w.loop(0, k, 1, 5 * [nothing], add_row)
    limit = w.let(f"fmul double {most}, {literal(trusted)}")
    require(w.let(f"fcmp ole double {everything}, {w.let(f'fmul double {limit}, {limit}')}"))
    norm = w.let(f"call double @llvm.sqrt.f64(double {weighted})")
    room = w.let(
        f"fmul double {w.let(f'fsub double {literal(1.0)}, {norm}')}, "
        f"{w.let(f'fsub double {rayleigh}, {bound}')}"
    )
    require(w.let(f"fcmp olt double {shift}, {room}"))
    correction = w.let(f"fsub double {rayleigh}, {smallest}")
    little = w.let(f"fmul double {smallest}, {literal(fresh)}")
    enough = w.let(f"fmul double {room}, {literal(fresh_room)}")
    good = both(
        w.let(f"fcmp ole double {correction}, {little}"),
        w.let(f"fcmp ole double {shift}, {enough}"),
    )
    w.write(w.let(f"select i1 {good}, double {literal(0.0)}, double {literal(1.0)}"), results, "2")
    check, yes = w.new_block(), w.new_block()
    w.do(f"br i1 {with_zeros}, label %{check}, label %{yes}")
    w.label(check)
    above = w.let(
        f"fsub double {rayleigh}, {w.let(f'call double @llvm.sqrt.f64(double {remote})')}"
    )
    require(w.let(f"fcmp ogt double {above}, {literal(0.0)}"))
    highest = w.let(f"fadd double {rayleigh}, {w.let(f'fdiv double {null_shift}, {above}')}")
    require(w.let(f"fcmp ole double {highest}, {raised}"))
    w.do(f"br label %{yes}")
    w.label(yes)
    w.write(most, results, "0")
    w.write(smallest, results, "1")
    w.do("ret i32 1")
    w.label("no")
    w.do("ret i32 0")
    body = "\n".join(w.lines)
    return f"""
declare double @llvm.sqrt.f64(double)
declare {_V} @llvm.sqrt.v{WIDTH}f64({_V})
declare {_V} @llvm.copysign.v{WIDTH}f64({_V}, {_V})
declare double @llvm.vector.reduce.fadd.v{WIDTH}f64(double, {_V})

define i32 @{_FUNCTION}({_W} %words) {{
{body}
}}
"""
