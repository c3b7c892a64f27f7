"""Straight-line code of LLVM IR: the function of one part of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from delassus.compiler.codegen import sincos
from delassus.compiler.codegen.input_checks import checked_status
from delassus.compiler.codegen.llvm_text import (
    Writer,
    literal,
    pairwise,
    pointer,
    splat,
    vector_type,
)
from delassus.compiler.ir.program import (
    ANGLES,
    COSINES,
    EXTRACT,
    FLIP,
    GATHER,
    JOIN,
    LOAD,
    SHUFFLE,
    SINES,
    SPLAT,
    Instruction,
    Part,
    Program,
    padded,
    whole,
)
from delassus.compiler.passes.results import Run, Zip, pieces
from delassus.scalars.graph import (
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
from delassus.scalars.ports import Status

# Contraction to fused multiply-add is allowed, reassociation never.
_BINARY = {ADD: "fadd contract", SUB: "fsub contract", MUL: "fmul contract", DIV: "fdiv"}


def declarations() -> str:
    """Return what every module needs besides its own functions."""
    lines = [sincos.declarations()]
    for width in sincos.WIDTHS:
        v = vector_type(width)
        lines.append(f"declare {v} @llvm.sqrt.{sincos.suffix(width)}({v})")
    return "\n".join(lines)


class KernelWriter:
    """Writes the function of a part.

    Parameters
    ----------
    part : what to compute; a program is taken whole.
    configurations : 1, or the number W of configurations that every value is a vector of. The
        program must then be without lanes, and the function is
        ``void block(const double *in, double *out, double *work, int32 *status)`` with inputs
        and outputs as vectors of W.
    """

    def __init__(self, part: Part | Program, configurations: int = 1) -> None:
        self._part = part if isinstance(part, Part) else whole(part)
        self._program = self._part.program
        self._configurations = configurations
        self._w = Writer()
        self._names: list[str] = []
        self._turned: list[tuple[str, str]] = []
        self._writers: dict[str, Callable[[Instruction, list[str]], str]] = {
            INPUT: self._input,
            CONSTANT: self._constant,
            LOAD: self._load,
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

    def text(self, name: str, last: bool | None = None, public: bool | None = None) -> str:
        """Return the function, under this name.

        Parameters
        ----------
        last : whether a part is the last one, which gives the status; None for a whole program.
        public : whether functions of other modules call it; by default a whole program for one
            configuration.
        """
        self._write()
        width = self._configurations
        returns = last is not False
        end = "ret void"
        if returns:
            status = self._status()
            if width == 1:
                end = f"ret i32 {status}"
            else:
                vi, p32 = vector_type(width, "i32"), pointer("i32")
                self._w.store_bits(f"{vi} {status}", f"{p32} %status", pointer(vi))
        self._w.do(end)
        if public is None:
            public = last is None and width == 1
        begin = head(name, width, returns, public)
        return "\n".join([begin, "entry:", *self._w.lines, "}"])

    def _write(self) -> None:
        """Write the instructions; what they leave behind is stored as soon as it is there.

        What waited for the end of the function would be moved to the stack and back.
        """
        width = self._configurations
        places: dict[int, list[int]] = {}
        for k, place in self._part.stores:
            places.setdefault(k, []).append(place)
        results = pieces(self._part)
        for k, instruction in enumerate(self._program.instructions):
            arguments = [self._names[operand] for operand in instruction.operands]
            self._names.append(self._instruction(instruction, arguments))
            for place in places.get(k, ()):
                self._w.store(self._names[k], "%work", place * width, self._width(instruction))
            for piece in results.get(k, ()):
                self._store_run(piece) if isinstance(piece, Run) else self._store_zip(piece)

    def _store_run(self, run: Run) -> None:
        """Store lanes of a value."""
        name, width = self._names[run.value], self._program.instructions[run.value].width
        if run.count < width:
            name = self._picked(name, name, width, range(run.lane, run.lane + run.count))
        count = run.count * self._configurations
        self._w.store(name, "%out", run.entry * self._configurations, count)

    def _store_zip(self, zipped: Zip) -> None:
        """Store lanes of two vectors in pairs.

        A processor unpacks all even lanes of two vectors with one instruction, and all odd ones.
        """
        first, second = (self._names[value] for value in zipped.values)
        width = self._program.instructions[zipped.values[0]].width
        for odd in (0, 1):
            wanted = [(lane, entry) for lane, entry in zipped.entries if lane % 2 == odd]
            if not wanted:
                continue
            lanes = [lane + shift for lane in range(odd, width, 2) for shift in (0, width)]
            both = self._picked(first, second, width, lanes)
            for lane, entry in wanted:
                at = lane - odd
                pair = both if width == 2 else self._picked(both, both, width, (at, at + 1))
                self._w.store(pair, "%out", entry, 2)

    def _picked(self, first: str, second: str, width: int, lanes: Sequence[int]) -> str:
        """Return lanes of two vectors, one after the other, as a vector; of one, a scalar."""
        if len(lanes) == 1:
            return self._w.lane(first, lanes[0], width)
        v = vector_type(width)
        return self._w.let(
            f"shufflevector {v} {first}, {v} {second}, "
            f"{vector_type(len(lanes), 'i32')} {_lane_numbers(lanes)}"
        )

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

    def _load(self, instruction: Instruction, _: list[str]) -> str:
        width = self._configurations
        return self._w.load("%work", instruction.lanes[0] * width, self._width(instruction))

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

    def _of(self, positions: list[int]) -> list[str]:
        """Return the names of the values at some positions."""
        return [self._names[k] for k in positions]

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
            total = pairwise(self._of(self._program.checked), add)
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
                smallest = pairwise(self._of(values), minimum)
                failed = self._w.let(f"fcmp ole {v} {smallest}, {splat(literal(0.0), width)}")
                status = self._w.let(
                    f"select {i1} {failed}, {i32} {code(failure)}, {i32} {status}"
                )
        if self._program.inputs is not None:
            # Last: the status of the inputs explains a failure of the outputs.
            status = checked_status(self._program.inputs, self._w, status, width)
        return status


def _filled(values: tuple, width: int) -> tuple:  # type: ignore[type-arg]
    """Return `values` with the last one repeated up to `width`."""
    return values + values[-1:] * (width - len(values))


def _lane_numbers(lanes: Sequence[int]) -> str:
    """Return the mask of a shufflevector; -1 is any lane."""
    return "<" + ", ".join(f"i32 {k}" if k >= 0 else "i32 undef" for k in lanes) + ">"


def head(name: str, configurations: int, returns: bool, public: bool) -> str:
    """Return how a kernel, or a part of one, begins."""
    p = pointer()
    ports = [
        f"{p} noalias nocapture readonly %in",
        f"{p} noalias nocapture %out",
        f"{p} noalias nocapture %work",
    ]
    if returns and configurations > 1:
        ports.append(f"{pointer('i32')} noalias nocapture %status")
    kind = "i32" if returns and configurations == 1 else "void"
    linkage, attribute = ("", "") if public else ("internal ", " noinline")
    return f"define {linkage}{kind} @{name}({', '.join(ports)}){attribute} {{"


def part_functions(
    parts: list[Part], name: str, configurations: int = 1, public: bool | None = None
) -> tuple[list[str], list[str]]:
    """Return the functions of a program's parts, and their names, in their order.

    Parameters
    ----------
    name : of the part, if there is one only; else what their names begin with.
    configurations : see :class:`~delassus.compiler.codegen.writer.KernelWriter`.
    public : of a part that is the only one, see :meth:`KernelWriter.text`.
    """
    if len(parts) == 1:
        return [KernelWriter(parts[0], configurations).text(name, public=public)], [name]
    names = [f"{name}_part{k}" for k in range(len(parts))]
    texts = [
        KernelWriter(part, configurations).text(part_name, part is parts[-1])
        for part, part_name in zip(parts, names, strict=True)
    ]
    return texts, names


def in_turn(names: list[str], name: str, public: bool = True) -> str:
    """Return the function that calls the parts of a program for one configuration."""
    p = pointer()
    calls = [f"  call void @{part}({p} %in, {p} %out, {p} %work)" for part in names[:-1]]
    calls += [
        f"  %status = call i32 @{names[-1]}({p} %in, {p} %out, {p} %work)",
        "  ret i32 %status",
    ]
    begin = head(name, 1, returns=True, public=public)
    return "\n".join([begin, "entry:", *calls, "}"])
