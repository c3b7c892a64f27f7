"""From a program to LLVM IR: one straight-line function for one configuration.

C ABI: ``int32_t kernel(const double *in, double *out, double *work)``, re-entrant, without
static storage. The return value is a :class:`~delassus_ros.algorithms.base.Status`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from delassus_ros.algorithms.base import Status
from delassus_ros.compiler import sincos
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
    SHUFFLE,
    SINES,
    SPLAT,
    Instruction,
    Program,
)

KERNEL = "delassus_kernel"
SLICE = "delassus_slice"

# Contraction to fused multiply-add is allowed, reassociation never.
_BINARY = {ADD: "fadd contract", SUB: "fsub contract", MUL: "fmul contract", DIV: "fdiv"}


def module(program: Program) -> str:
    """Return the IR of a module with the kernel and the slicing routine."""
    declarations = [sincos.declarations()]
    for width in sincos.WIDTHS:
        v = vector_type(width)
        declarations.append(f"declare {v} @llvm.sqrt.{sincos.suffix(width)}({v})")
    return "\n".join([_Kernel(program).text(), _slice(), *declarations, ""])


class _Kernel:
    """Writes the kernel function of a program."""

    def __init__(self, program: Program) -> None:
        self._program = program
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
            FLIP: self._flip,
            ANGLES: self._angles,
            SINES: lambda i, _: self._turned[i.lanes[0]][0],
            COSINES: lambda i, _: self._turned[i.lanes[0]][1],
        }

    def text(self) -> str:
        """Return the function."""
        for instruction in self._program.instructions:
            arguments = [self._names[k] for k in instruction.operands]
            self._names.append(self._instruction(instruction, arguments))
        for position, k in enumerate(self._program.outputs):
            self._w.store(self._names[k], "%out", position)
        self._return_status()
        p = pointer()
        head = (
            f"define i32 @{KERNEL}({p} noalias nocapture readonly %in, "
            f"{p} noalias nocapture %out, {p} noalias nocapture %work) {{"
        )
        return "\n".join([head, "entry:", *self._w.lines, "}"])

    def _instruction(self, instruction: Instruction, arguments: list[str]) -> str:
        """Emit one instruction and return the name of its result."""
        operation = _BINARY.get(instruction.kind)
        if operation is not None:
            v = vector_type(instruction.width)
            return self._w.let(f"{operation} {v} {arguments[0]}, {arguments[1]}")
        return self._writers[instruction.kind](instruction, arguments)

    def _input(self, instruction: Instruction, _: list[str]) -> str:
        return self._w.load("%in", instruction.lanes[0])

    def _constant(self, instruction: Instruction, _: list[str]) -> str:
        if instruction.width == 1:
            return literal(instruction.constant[0])
        values = _filled(instruction.constant, instruction.width)
        return "<" + ", ".join(f"double {literal(value)}" for value in values) + ">"

    def _neg(self, instruction: Instruction, arguments: list[str]) -> str:
        return self._w.let(f"fneg {vector_type(instruction.width)} {arguments[0]}")

    def _sqrt(self, instruction: Instruction, arguments: list[str]) -> str:
        v = vector_type(instruction.width)
        suffix = sincos.suffix(instruction.width)
        return self._w.let(f"call {v} @llvm.sqrt.{suffix}({v} {arguments[0]})")

    def _library(self, instruction: Instruction, arguments: list[str]) -> str:
        # Sines of expressions that contain sines are rare: straight to libm.
        return self._w.let(f"call double @{instruction.kind}(double {arguments[0]})")

    def _select(self, instruction: Instruction, arguments: list[str]) -> str:
        v, i1 = vector_type(instruction.width), vector_type(instruction.width, "i1")
        zero = splat(literal(0.0), instruction.width)
        condition = self._w.let(f"fcmp ogt {v} {arguments[0]}, {zero}")
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
        lanes = ", ".join(f"i32 {k}" for k in _filled(instruction.lanes, instruction.width))
        return self._w.let(
            f"shufflevector {source} {arguments[0]}, {source} undef, "
            f"{vector_type(instruction.width, 'i32')} <{lanes}>"
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
        blocks, start = [], 0
        for size in instruction.lanes:
            blocks.append(arguments[start : start + size])
            start += size
        self._turned = sincos.sincos_of_blocks(self._w, blocks)
        return ""

    def _return_status(self) -> None:
        """Return NOT_POSITIVE_DEFINITE, NOT_FINITE or OK."""

        def minimum(v: str, i1: str, a: str, b: str) -> str:
            smaller = self._w.let(f"fcmp olt {v} {a}, {b}")
            return self._w.let(f"select {i1} {smaller}, {v} {a}, {v} {b}")

        def add(v: str, i1: str, a: str, b: str) -> str:
            return self._w.let(f"fadd {v} {a}, {b}")

        status = str(int(Status.OK))
        if self._program.checked:
            total = self._reduce(self._program.checked, add)
            # x − x is 0 for finite x and NaN otherwise.
            zero = self._w.let(f"fsub double {total}, {total}")
            finite = self._w.let(f"fcmp oeq double {zero}, {literal(0.0)}")
            not_finite = int(Status.NOT_FINITE)
            status = self._w.let(f"select i1 {finite}, i32 {status}, i32 {not_finite}")
        if self._program.guards:
            smallest = self._reduce(self._program.guards, minimum)
            failed = self._w.let(f"fcmp ole double {smallest}, {literal(0.0)}")
            code = int(Status.NOT_POSITIVE_DEFINITE)
            status = self._w.let(f"select i1 {failed}, i32 {code}, i32 {status}")
        self._w.do(f"ret i32 {status}")

    def _reduce(self, values: list[int], combine: Callable[[str, str, str, str], str]) -> str:
        """Combine scalars pairwise, in a shallow tree."""
        names = [self._names[k] for k in values]
        while len(names) > 1:
            pairs = zip(names[::2], names[1::2], strict=False)
            rest = names[len(names) & ~1 :]
            names = [combine("double", "i1", a, b) for a, b in pairs] + rest
        return names[0]


def _filled(values: tuple, width: int) -> tuple:  # type: ignore[type-arg]
    """Return `values` with the last one repeated up to `width`."""
    return values + values[-1:] * (width - len(values))


def _slice() -> str:
    """Return ``void slice(const double *G, int64 m, const int64 *rows, int64 k, double *out)``.

    It copies the rows and columns `rows` (k of them) of the m×m matrix G to the k×k `out`.
    """
    p, pi = pointer(), pointer("i64")
    return f"""
define void @{SLICE}({p} noalias nocapture readonly %G, i64 %m,
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
