"""From a program to LLVM IR: one straight-line function for one configuration.

C ABI: ``int32_t kernel(const double *in, double *out, double *work)``, re-entrant, without
static storage. The return value is a :class:`~delassus_ros.algorithms.base.Status`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delassus_ros.algorithms.base import Status
from delassus_ros.compiler import python_call, sincos
from delassus_ros.compiler.graph import (
    ADD,
    CONSTANT,
    COS,
    DIV,
    INPUT,
    MUL,
    NEG,
    SELECT,
    SIN,
    SQRT,
    SUB,
)
from delassus_ros.compiler.ir import Writer, literal, pointer, splat, vector_type
from delassus_ros.compiler.program import (
    ANGLES,
    COSINES,
    EXTRACT,
    FLIP,
    GATHER,
    JOIN,
    SHUFFLE,
    SINES,
    SPLAT,
    Instruction,
    Program,
    padded,
)

KERNEL = "delassus_kernel"
SLICE = "delassus_slice"
CALL = "delassus_call"
"""Kernel and slice in one call with one argument, see :func:`_call`."""

# Contraction to fused multiply-add is allowed, reassociation never.
_BINARY = {ADD: "fadd contract", SUB: "fsub contract", MUL: "fmul contract", DIV: "fdiv"}


def module(program: Program, kernel: str = KERNEL, slicer: str = SLICE) -> str:
    """Return the IR of a module with the kernel and the slicing routine, under these names."""
    text = [KernelWriter(program).text(kernel), _slice(slicer)]
    if kernel == KERNEL:
        text += [_call(), python_call.functions(CALL)]
    return "\n".join([*text, declarations(), ""])


def declarations() -> str:
    """Return what every module needs besides its own functions."""
    lines = [sincos.declarations()]
    for width in sincos.WIDTHS:
        v = vector_type(width)
        lines.append(f"declare {v} @llvm.sqrt.{sincos.suffix(width)}({v})")
    return "\n".join(lines)


class KernelWriter:
    """Writes the function of a program.

    Parameters
    ----------
    program : what to compute.
    configurations : 1, or the number W of configurations that every value is a vector of. The
        program must then be without lanes, and the function is
        ``void block(const double *in, double *out, int32 *status)`` with inputs and outputs
        as vectors of W.
    """

    def __init__(self, program: Program, configurations: int = 1) -> None:
        self._program = program
        self._configurations = configurations
        self._w = Writer()
        self._names: list[str] = []
        self._turned: list[tuple[str, str]] = []
        self._writers: dict[str, Callable[[Instruction, list[str]], str]] = {
            INPUT: self._input,
            CONSTANT: self._constant,
            NEG: self._neg,
            SQRT: self._sqrt,
            SIN: self._library,
            COS: self._library,
            SELECT: self._select,
            SPLAT: self._splat,
            GATHER: self._gather,
            EXTRACT: self._extract,
            SHUFFLE: self._shuffle,
            JOIN: self._join,
            FLIP: self._flip,
            ANGLES: self._angles,
            SINES: lambda i, _: self._turned[i.lanes[0]][0],
            COSINES: lambda i, _: self._turned[i.lanes[0]][1],
        }

    def text(self, name: str) -> str:
        """Return the function, under this name."""
        for instruction in self._program.instructions:
            arguments = [self._names[k] for k in instruction.operands]
            self._names.append(self._instruction(instruction, arguments))
        width = self._configurations
        for position, k in enumerate(self._program.outputs):
            self._w.store(self._names[k], "%out", position * width, width)
        p = pointer()
        ports = f"{p} noalias nocapture readonly %in, {p} noalias nocapture %out"
        status = self._status()
        if width == 1:
            self._w.do(f"ret i32 {status}")
            head = f"define i32 @{name}({ports}, {p} noalias nocapture %work) {{"
        else:
            vi, p32 = vector_type(width, "i32"), pointer("i32")
            self._w.store_bits(f"{vi} {status}", f"{p32} %status", pointer(vi))
            self._w.do("ret void")
            head = f"define internal void @{name}({ports}, {p32} noalias nocapture %status) {{"
        return "\n".join([head, "entry:", *self._w.lines, "}"])

    def _width(self, instruction: Instruction) -> int:
        return instruction.width * self._configurations

    def _instruction(self, instruction: Instruction, arguments: list[str]) -> str:
        """Emit one instruction and return the name of its result."""
        operation = _BINARY.get(instruction.kind)
        if operation is not None:
            v = vector_type(self._width(instruction))
            return self._w.let(f"{operation} {v} {arguments[0]}, {arguments[1]}")
        return self._writers[instruction.kind](instruction, arguments)

    def _input(self, instruction: Instruction, _: list[str]) -> str:
        width = self._configurations
        return self._w.load("%in", instruction.lanes[0] * width, width)

    def _constant(self, instruction: Instruction, _: list[str]) -> str:
        if instruction.width == 1:
            return splat(literal(instruction.constant[0]), self._configurations)
        values = _filled(instruction.constant, instruction.width)
        return "<" + ", ".join(f"double {literal(value)}" for value in values) + ">"

    def _neg(self, instruction: Instruction, arguments: list[str]) -> str:
        return self._w.let(f"fneg {vector_type(self._width(instruction))} {arguments[0]}")

    def _sqrt(self, instruction: Instruction, arguments: list[str]) -> str:
        width = self._width(instruction)
        v = vector_type(width)
        return self._w.let(f"call {v} @llvm.sqrt.{sincos.suffix(width)}({v} {arguments[0]})")

    def _library(self, instruction: Instruction, arguments: list[str]) -> str:
        # Sines of expressions that contain sines are rare: straight to libm.
        width = self._width(instruction)
        results = [
            self._w.let(
                f"call double @{instruction.kind}"
                f"(double {self._w.lane(arguments[0], lane, width)})"
            )
            for lane in range(width)
        ]
        return self._w.pack(results, width)

    def _select(self, instruction: Instruction, arguments: list[str]) -> str:
        width = self._width(instruction)
        v, i1 = vector_type(width), vector_type(width, "i1")
        condition = self._w.let(f"fcmp ogt {v} {arguments[0]}, {splat(literal(0.0), width)}")
        return self._w.let(f"select {i1} {condition}, {v} {arguments[1]}, {v} {arguments[2]}")

    def _splat(self, instruction: Instruction, arguments: list[str]) -> str:
        width = instruction.width
        v = vector_type(width)
        first = self._w.let(f"insertelement {v} undef, double {arguments[0]}, i32 0")
        return self._w.let(
            f"shufflevector {v} {first}, {v} undef, {vector_type(width, 'i32')} zeroinitializer"
        )

    def _gather(self, instruction: Instruction, arguments: list[str]) -> str:
        return self._w.pack(arguments, instruction.width)

    def _extract(self, instruction: Instruction, arguments: list[str]) -> str:
        source = self._program.instructions[instruction.operands[0]]
        return self._w.lane(arguments[0], instruction.lanes[0], source.width)

    def _shuffle(self, instruction: Instruction, arguments: list[str]) -> str:
        source = vector_type(self._program.instructions[instruction.operands[0]].width)
        return self._w.let(
            f"shufflevector {source} {arguments[0]}, {source} undef, "
            f"{vector_type(instruction.width, 'i32')} "
            f"{_lane_numbers(_filled(instruction.lanes, instruction.width))}"
        )

    def _join(self, instruction: Instruction, arguments: list[str]) -> str:
        widths = [self._program.instructions[k].width for k in instruction.operands]
        common = max(widths)
        first, second = (
            self._extended(name, width, common)
            for name, width in zip(arguments, widths, strict=True)
        )
        shift = common - widths[0]
        lanes = [k + shift if k >= widths[0] else k for k in instruction.lanes]
        v = vector_type(common)
        return self._w.let(
            f"shufflevector {v} {first}, {v} {second}, "
            f"{vector_type(instruction.width, 'i32')} {_lane_numbers(lanes)}"
        )

    def _extended(self, name: str, width: int, wanted: int) -> str:
        """Return a vector with undefined lanes behind those of `name`."""
        if width == wanted:
            return name
        v = vector_type(width if width > 1 else wanted)
        if width == 1:
            return self._w.let(f"insertelement {v} undef, double {name}, i32 0")
        lanes = _lane_numbers([k if k < width else -1 for k in range(wanted)])
        return self._w.let(
            f"shufflevector {v} {name}, {v} undef, {vector_type(wanted, 'i32')} {lanes}"
        )

    def _flip(self, instruction: Instruction, arguments: list[str]) -> str:
        """Change signs by flipping sign bits: exact, and no constant is multiplied."""
        width = instruction.width
        v, iv = vector_type(width), vector_type(width, "i64")
        mask = ", ".join(
            f"i64 {-(1 << 63) if flipped else 0}" for flipped in _filled(instruction.lanes, width)
        )
        bits = self._w.let(f"bitcast {v} {arguments[0]} to {iv}")
        bits = self._w.let(f"xor {iv} {bits}, <{mask}>")
        return self._w.let(f"bitcast {iv} {bits} to {v}")

    def _angles(self, instruction: Instruction, arguments: list[str]) -> str:
        vectors, start = [], 0
        for size in instruction.lanes:
            width = padded(size)
            packed = self._w.pack(arguments[start : start + size], width)
            vectors.append((packed, width * self._configurations))
            start += size
        self._turned = sincos.sincos_of_vectors(self._w, vectors)
        return ""

    def _status(self) -> str:
        """Return a status, one per configuration; a singular loop comes before its effects."""
        width = self._configurations
        v, i1, i32 = (vector_type(width, element) for element in ("double", "i1", "i32"))

        def code(status: Status) -> str:
            return splat(str(int(status)), width, "i32")

        def minimum(a: str, b: str) -> str:
            smaller = self._w.let(f"fcmp olt {v} {a}, {b}")
            return self._w.let(f"select {i1} {smaller}, {v} {a}, {v} {b}")

        def add(a: str, b: str) -> str:
            return self._w.let(f"fadd {v} {a}, {b}")

        status = code(Status.OK)
        if self._program.checked:
            total = self._reduce(self._program.checked, add)
            # x − x is 0 for finite x and NaN otherwise.
            zero = self._w.let(f"fsub {v} {total}, {total}")
            finite = self._w.let(f"fcmp oeq {v} {zero}, {splat(literal(0.0), width)}")
            status = self._w.let(
                f"select {i1} {finite}, {i32} {status}, {i32} {code(Status.NOT_FINITE)}"
            )
        for values, failure in (
            (self._program.guards, Status.NOT_POSITIVE_DEFINITE),
            (self._program.regular, Status.SINGULAR_LOOP),
        ):
            if values:
                smallest = self._reduce(values, minimum)
                failed = self._w.let(f"fcmp ole {v} {smallest}, {splat(literal(0.0), width)}")
                status = self._w.let(
                    f"select {i1} {failed}, {i32} {code(failure)}, {i32} {status}"
                )
        return status

    def _reduce(self, values: list[int], combine: Callable[[str, str], str]) -> str:
        """Combine values pairwise, in a shallow tree."""
        names = [self._names[k] for k in values]
        while len(names) > 1:
            pairs = zip(names[::2], names[1::2], strict=False)
            names = [combine(a, b) for a, b in pairs] + names[len(names) & ~1 :]
        return names[0]


def _filled(values: tuple, width: int) -> tuple:  # type: ignore[type-arg]
    """Return `values` with the last one repeated up to `width`."""
    return values + values[-1:] * (width - len(values))


def _lane_numbers(lanes: Sequence[int]) -> str:
    """Return the mask of a shufflevector; -1 is any lane."""
    return "<" + ", ".join(f"i32 {k}" if k >= 0 else "i32 undef" for k in lanes) + ">"


def _slice(name: str) -> str:
    """Return ``void slice(const double *G, int64 m, const int64 *rows, int64 k, double *out)``.

    It copies the rows and columns `rows` (k of them) of the m×m matrix G to the k×k `out`.
    """
    p, pi = pointer(), pointer("i64")
    return f"""
define void @{name}({p} noalias nocapture readonly %G, i64 %m,
                     {pi} noalias nocapture readonly %rows, i64 %k, {p} noalias nocapture %out) {{
entry:
  %some = icmp sgt i64 %k, 0
  br i1 %some, label %row, label %done
row:
  %i = phi i64 [ 0, %entry ], [ %i1, %rowend ]
  %pi = getelementptr inbounds i64, {pi} %rows, i64 %i
  %ri = load i64, {pi} %pi, align 8
  %base = mul i64 %ri, %m
  %to = mul i64 %i, %k
  br label %column
column:
  %j = phi i64 [ 0, %row ], [ %j1, %column ]
  %pj = getelementptr inbounds i64, {pi} %rows, i64 %j
  %rj = load i64, {pi} %pj, align 8
  %from = add i64 %base, %rj
  %pg = getelementptr inbounds double, {p} %G, i64 %from
  %g = load double, {p} %pg, align 8
  %at = add i64 %to, %j
  %po = getelementptr inbounds double, {p} %out, i64 %at
  store double %g, {p} %po, align 8
  %j1 = add i64 %j, 1
  %more = icmp slt i64 %j1, %k
  br i1 %more, label %column, label %rowend
rowend:
  %i1 = add i64 %i, 1
  %again = icmp slt i64 %i1, %k
  br i1 %again, label %row, label %done
done:
  ret void
}}"""


def _call() -> str:
    """Return ``int32 call(const int64 *binding)``.

    The binding holds the addresses of in, out, work and G, the number m, the address of rows,
    the number k and the address of the k×k matrix of the active rows: one argument is what
    a built-in function of Python can carry with it, see :func:`python_call.functions`.
    """
    p, pi = pointer(), pointer("i64")
    names = ("in", "out", "work", "G", "m", "rows", "k", "active")
    loads = "\n".join(
        f"  %p{i} = getelementptr inbounds i64, {pi} %binding, i64 {i}\n"
        f"  %{name}_ = load i64, {pi} %p{i}, align 8"
        for i, name in enumerate(names)
    )
    casts = "\n".join(
        f"  %{name} = inttoptr i64 %{name}_ to {pi if name == 'rows' else p}"
        for name in names
        if name not in ("m", "k")
    )
    return f"""
define i32 @{CALL}({pi} %binding) {{
entry:
{loads}
{casts}
  %status = call i32 @{KERNEL}({p} %in, {p} %out, {p} %work)
  %ok = icmp eq i32 %status, {int(Status.OK)}
  %some = icmp slt i64 %k_, %m_
  %needed = and i1 %ok, %some
  br i1 %needed, label %take, label %done
take:
  call void @{SLICE}({p} %G, i64 %m_, {pi} %rows, i64 %k_, {p} %active)
  br label %done
done:
  ret i32 %status
}}"""
