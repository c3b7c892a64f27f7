"""Large systems: a table of calls (what is run, in which order, on what), and its LLVM IR.

Values are kept in the work area, each at a place of its own. An entry of the table calls either a
routine, for which it lists the places of its operands, its constants and, by its position, the
place of its results; or a part, straight-line code for the few nodes that are not in routines.
Such nodes are put together in as few parts as their dependence on calls allows: sines and
cosines of the joints first, in vectors. The code grows with the number of routines only, the
tables with the number of calls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from delassus_ros.compiler.codegen.llvm_text import Writer, literal, pointer, splat, vector_type
from delassus_ros.compiler.codegen.writer import KernelWriter, head
from delassus_ros.compiler.ir.input_rules import InputRules
from delassus_ros.compiler.ir.program import (
    ANGLES,
    COSINES,
    EXTRACT,
    LOAD,
    SINES,
    Instruction,
    Program,
    padded,
)
from delassus_ros.compiler.ir.trace import Trace
from delassus_ros.compiler.passes.partition import Part
from delassus_ros.scalars.graph import CALL, CONSTANT, COS, INPUT, RESULT, SIN
from delassus_ros.scalars.ports import Status

_LENGTH = 1000
"""Nodes per part."""
_ANGLES = 64
"""Angles per part that turns them."""


@dataclass(frozen=True)
class Function:
    """Something to call: a routine or a part.

    Attributes
    ----------
    part : its instructions; the inputs of a routine are its operands, then its constants.
    scalars, constants, results : how many operands and results a call has; none for a part.
    is_routine : whether it is one.
    """

    part: Part
    scalars: int = 0
    constants: int = 0
    results: int = 0
    is_routine: bool = False


@dataclass
class Table:
    """All calls of a kernel, in order.

    Attributes
    ----------
    functions : what is called.
    calls : the function of each call, by number.
    scalars : places of the operands of all calls.
    constants : constants of all calls.
    first_result : place of the first result; those of all calls follow each other.
    size : places in the work area.
    outputs, guards, regular, checked, inputs : as in a program, by places.
    """

    functions: list[Function] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    scalars: list[int] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    first_result: int = 0
    size: int = 0
    outputs: list[int] = field(default_factory=list)
    guards: list[int] = field(default_factory=list)
    regular: list[int] = field(default_factory=list)
    checked: list[int] = field(default_factory=list)
    inputs: InputRules | None = None


def table_of(trace: Trace, checked: list[int], block: int) -> Table:
    """Return the table of a trace with calls.

    Parameters
    ----------
    checked : positions in the output block whose sum must be finite.
    block : most angles in one vector.
    """
    return _Builder(trace, block).run(checked)


class _Builder:
    """Sorts the nodes of a trace into parts and calls."""

    def __init__(self, trace: Trace, block: int) -> None:
        self._trace, self._block = trace, block
        self._nodes, self._operands = trace.graph.nodes, trace.graph.operands
        self._table = Table()
        # Per plain node the part that computes it; per stored one, and per result, its place.
        self._home: dict[int, int] = {}
        self._place: dict[int, int] = {}
        # Nodes of each part, and whether they are sines and cosines; a call by its node.
        self._parts: list[tuple[list[int], bool]] = []
        self._order: list[tuple[bool, int]] = []

    def run(self, checked: list[int]) -> Table:
        """Return the table."""
        trace, table = self._trace, self._table
        self._arrange()
        self._choose_places()
        for number, (nodes, turned) in enumerate(self._parts):
            part = self._turning(nodes) if turned else self._straight(nodes, number)
            table.functions.append(Function(part))
        known: dict[int, int] = {}
        for is_call, item in self._order:
            if not is_call:
                table.calls.append(item)
                continue
            _, routine, scalars, constants = self._nodes[item]
            if routine not in known:
                known[routine] = len(table.functions)
                table.functions.append(self._function(routine))
            table.calls.append(known[routine])
            table.scalars += [self._place[n] for n in scalars]
            table.constants += constants
        table.outputs = [self._place[n] for n in trace.outputs]
        for guard in trace.guards:
            singular = guard.status is Status.SINGULAR_LOOP
            (table.regular if singular else table.guards).append(self._place[guard.index])
        table.checked = [table.outputs[position] for position in checked]
        table.inputs = trace.inputs
        return table

    def _arrange(self) -> None:
        """Put nodes into stages: in each one, parts, then calls, which may need each other."""
        stage: dict[int, int] = {}
        plain: dict[int, list[int]] = {}
        calls: dict[int, list[int]] = {}
        flat: set[int] = set()  # neither calls nor sines nor cosines below
        for i in self._trace.live:
            kind, below = self._nodes[i][0], self._operands[i]
            # What needs the result of a call comes after all calls of that stage, unless it is
            # a call itself.
            stage[i] = max(
                (stage[n] + (kind != CALL and self._nodes[n][0] == RESULT) for n in below),
                default=0,
            )
            if kind == CALL:
                calls.setdefault(stage[i], []).append(i)
            elif kind != RESULT:
                if kind not in (SIN, COS) and flat.issuperset(below):
                    flat.add(i)
                if kind not in (INPUT, CONSTANT):
                    plain.setdefault(stage[i], []).append(i)
        turned = [
            i
            for i in plain.get(0, [])
            if self._nodes[i][0] in (SIN, COS) and self._nodes[i][1] in flat
        ]
        first = set(turned)
        self._add_parts([i for i in plain.get(0, []) if i in flat])
        by_angle: dict[int, list[int]] = {}
        for i in turned:
            by_angle.setdefault(self._nodes[i][1], []).append(i)
        angles = list(by_angle)
        for start in range(0, len(angles), _ANGLES):
            together = angles[start : start + _ANGLES]
            self._add_part([i for angle in together for i in by_angle[angle]], turned=True)
        for s in range(max(stage.values()) + 1):
            rest = plain.get(s, [])
            self._add_parts([i for i in rest if i not in first and (s or i not in flat)])
            self._order += [(True, i) for i in calls.get(s, [])]

    def _add_parts(self, nodes: list[int]) -> None:
        for start in range(0, len(nodes), _LENGTH):
            self._add_part(nodes[start : start + _LENGTH], turned=False)

    def _add_part(self, nodes: list[int], turned: bool) -> None:
        number = len(self._parts)
        self._parts.append((nodes, turned))
        self._order.append((False, number))
        for i in nodes:
            self._home[i] = number

    def _choose_places(self) -> None:
        """Give a place to every value that is needed where it is not computed."""
        nodes, trace = self._nodes, self._trace
        wanted: dict[int, None] = {}
        for i in trace.live:
            for n in self._operands[i]:
                elsewhere = self._home.get(i) != self._home.get(n)
                if nodes[i][0] == CALL or (elsewhere and n in self._home):
                    wanted[n] = None
        for n in (*trace.outputs, *(guard.index for guard in trace.guards)):
            wanted[n] = None
        loose = [n for n in wanted if n not in self._home and nodes[n][0] != RESULT]
        if loose:
            # Inputs and constants that calls take or that are results: a part copies them.
            self._parts.append((loose, False))
            self._order.insert(0, (False, len(self._parts) - 1))
        for n in wanted:
            if nodes[n][0] != RESULT:
                self._place[n] = len(self._place)
        self._table.first_result = size = len(self._place)
        first: dict[int, int] = {}
        for is_call, i in self._order:
            if is_call:
                first[i] = size
                size += len(trace.graph.routines[nodes[i][1]].outputs)
        for i in trace.live:
            if nodes[i][0] == RESULT:
                self._place[i] = first[nodes[i][1]] + nodes[i][2]
        self._table.size = size

    def _straight(self, members: list[int], number: int) -> Part:
        """Return a part for plain nodes."""
        part = Part()
        known: dict[int, int] = {}
        for i in members:
            self._value(part, known, i, number)
        part.stores = [(known[i], self._place[i]) for i in members if i in self._place]
        return part

    def _value(self, part: Part, known: dict[int, int], i: int, number: int) -> int:
        """Return the position of a value in a part."""
        if i in known:
            return known[i]
        node = self._nodes[i]
        if node[0] == INPUT:
            instruction = Instruction(INPUT, 1, lanes=(node[1],))
        elif node[0] == CONSTANT:
            instruction = Instruction(CONSTANT, 1, constant=(node[1],))
        elif self._home.get(i) == number:
            below = tuple(self._value(part, known, n, number) for n in self._operands[i])
            instruction = Instruction(node[0], 1, below)
        else:
            instruction = Instruction(LOAD, 1, lanes=(self._place[i],))
        part.program.instructions.append(instruction)
        known[i] = len(part.program.instructions) - 1
        return known[i]

    def _turning(self, members: list[int]) -> Part:
        """Return a part for sines and cosines."""
        part = Part()
        code = part.program.instructions
        angles = list(dict.fromkeys(self._nodes[i][1] for i in members))
        known: dict[int, int] = {}
        arguments = tuple(self._value(part, known, angle, -1) for angle in angles)
        sizes = tuple(
            min(self._block, len(angles) - start) for start in range(0, len(angles), self._block)
        )
        code.append(Instruction(ANGLES, 1, arguments, lanes=sizes))
        for i in members:
            block, lane = divmod(angles.index(self._nodes[i][1]), self._block)
            kind = SINES if self._nodes[i][0] == SIN else COSINES
            width = padded(sizes[block])
            code.append(Instruction(kind, width, lanes=(block,)))
            if width > 1:
                code.append(Instruction(EXTRACT, 1, (len(code) - 1,), lanes=(lane,)))
            if i in self._place:
                part.stores.append((len(code) - 1, self._place[i]))
        return part

    def _function(self, number: int) -> Function:
        """Return a routine as a function."""
        routine = self._trace.graph.routines[number]
        nodes, operands = routine.graph.nodes, routine.graph.operands
        program, position = Program(), {}
        for i in routine.graph.live(routine.outputs):
            node = nodes[i]
            position[i] = len(program.instructions)
            if node[0] == INPUT:
                program.instructions.append(Instruction(INPUT, 1, lanes=(node[1],)))
            elif node[0] == CONSTANT:
                program.instructions.append(Instruction(CONSTANT, 1, constant=(node[1],)))
            else:
                below = tuple(position[n] for n in operands[i])
                program.instructions.append(Instruction(node[0], 1, below))
        outputs = [(position[n], entry) for entry, n in enumerate(routine.outputs)]
        return Function(
            Part(program, [], outputs),
            routine.scalars, routine.constants, len(routine.outputs), True,
        )  # fmt: skip


def table_functions(table: Table, name: str, configurations: int = 1) -> list[str]:
    """Return the functions of a table, the whole one under this name."""
    texts = []
    for k, function in enumerate(table.functions):
        if function.is_routine:
            writer = _RoutineWriter(function, configurations)
            texts.append(writer.routine_text(f"{name}_routine{k}"))
        else:
            plain = KernelWriter(function.part, configurations)
            texts.append(plain.text(f"{name}_part{k}", last=False))
    width = configurations
    texts += [
        _numbers(f"{name}_calls", table.calls),
        # Offsets of the first of `configurations` values.
        _numbers(f"{name}_scalars", (place * width for place in table.scalars)),
        _numbers(f"{name}_outputs", (place * width for place in table.outputs)),
        _numbers(f"{name}_guards", (place * width for place in table.guards)),
        _numbers(f"{name}_regular", (place * width for place in table.regular)),
        _numbers(f"{name}_checked", (place * width for place in table.checked)),
        _doubles(f"{name}_constants", table.constants),
    ]
    return [*texts, _loop(table, name, configurations)]


class _RoutineWriter(KernelWriter):
    """Writes a routine: ``void routine(scalars, constants, work, results)``."""

    def __init__(self, function: Function, configurations: int) -> None:
        super().__init__(function.part, configurations)
        self._scalars = function.scalars

    def routine_text(self, name: str) -> str:
        """Return the function, under this name."""
        self._write()
        p = pointer()
        begin = (
            f"define internal void @{name}({pointer('i32')} noalias nocapture readonly %scalars, "
            f"{p} noalias nocapture readonly %constants, {p} noalias nocapture readonly %work, "
            f"{p} noalias nocapture %out) noinline {{"
        )
        return "\n".join([begin, "entry:", *self._w.lines, "  ret void", "}"])

    def _input(self, instruction: Instruction, _: list[str]) -> str:
        w, width, k = self._w, self._configurations, instruction.lanes[0]
        if k >= self._scalars:
            return w.pack([w.load("%constants", k - self._scalars)] * width, width)
        p32 = pointer("i32")
        at = w.let(f"getelementptr inbounds i32, {p32} %scalars, i64 {k}")
        offset = w.let(f"zext i32 {w.let(f'load i32, {p32} {at}, align 4')} to i64")
        address = w.let(f"getelementptr inbounds double, {pointer()} %work, i64 {offset}")
        return w.load(address, 0, width)


def _array(name: str, element: str, values: list[str]) -> str:
    # An empty table keeps one entry, which nothing reads.
    values = values or [f"{element} 0" if element == "i32" else f"{element} 0.0"]
    size = f"[{len(values)} x {element}]"
    return f"@{name} = internal unnamed_addr constant {size} [{', '.join(values)}], align 64"


def _numbers(name: str, values: Iterable[int]) -> str:
    return _array(name, "i32", [f"i32 {value}" for value in values])


def _doubles(name: str, values: Iterable[float]) -> str:
    return _array(name, "double", [f"double {literal(value)}" for value in values])


def _start(name: str, element: str, count: int) -> str:
    """Return the address of the first entry of a table."""
    size = f"[{max(count, 1)} x {element}]"
    return f"getelementptr inbounds ({size}, {pointer(size)} @{name}, i64 0, i64 0)"


def _loop(table: Table, name: str, configurations: int) -> str:
    """Return the kernel: the calls in turn, then the results and the status."""
    width, p, p32 = configurations, pointer(), pointer("i32")
    scalars, constants = (
        _start(f"{name}_scalars", "i32", len(table.scalars)),
        _start(f"{name}_constants", "double", len(table.constants)),
    )
    calls = _start(f"{name}_calls", "i32", len(table.calls))
    numbers = range(len(table.functions))
    lines = [
        f"  %first = getelementptr inbounds double, {p} %work, i64 {table.first_result * width}",
        "  br label %call",
        "call:",
        "  %c = phi i64 [ 0, %entry ], [ %c1, %called ]",
        f"  %scalars = phi {p32} [ {scalars}, %entry ], [ %scalars1, %called ]",
        f"  %constants = phi {p} [ {constants}, %entry ], [ %constants1, %called ]",
        f"  %results = phi {p} [ %first, %entry ], [ %results1, %called ]",
        f"  %at = getelementptr inbounds i32, {p32} {calls}, i64 %c",
        f"  %function = load i32, {p32} %at, align 4",
        "  switch i32 %function, label %f0 [ "
        + " ".join(f"i32 {k}, label %f{k}" for k in numbers)
        + " ]",
    ]
    for k, function in enumerate(table.functions):
        lines.append(f"f{k}:")
        if function.is_routine:
            lines.append(
                f"  call void @{name}_routine{k}({p32} %scalars, {p} %constants, {p} %work, "
                f"{p} %results)"
            )
        else:
            lines.append(f"  call void @{name}_part{k}({p} %in, {p} %out, {p} %work)")
        lines.append("  br label %called")

    def steps(taken: list[int]) -> str:
        return ", ".join(f"[ {n}, %f{k} ]" for k, n in enumerate(taken))

    functions = table.functions
    lines += [
        "called:",
        f"  %ds = phi i64 {steps([f.scalars for f in functions])}",
        f"  %dc = phi i64 {steps([f.constants for f in functions])}",
        f"  %dr = phi i64 {steps([f.results * width for f in functions])}",
        f"  %scalars1 = getelementptr inbounds i32, {p32} %scalars, i64 %ds",
        f"  %constants1 = getelementptr inbounds double, {p} %constants, i64 %dc",
        f"  %results1 = getelementptr inbounds double, {p} %results, i64 %dr",
        "  %c1 = add i64 %c, 1",
        f"  %more = icmp ult i64 %c1, {len(table.calls)}",
        "  br i1 %more, label %call, label %end_call",
        "end_call:",
    ]
    lines += _copied(table, name, width)
    lines += _status(table, name, width)
    begin = head(name, width, returns=True, public=width == 1)
    return "\n".join([begin, "entry:", *lines, "}"])


def _walk(
    what: str, name: str, count: int, width: int, body: list[str], carried: str = ""
) -> list[str]:
    """Return a loop over a table of places, with each value as ``%<what>_value``.

    Parameters
    ----------
    body : what is done with the value.
    carried : a phi, if anything is carried along.
    """
    p32, v = pointer("i32"), vector_type(width)
    table = _start(f"{name}_{what}", "i32", count)
    typed = pointer(v)
    return [
        f"  br label %{what}",
        f"{what}:",
        f"  %{what}_i = phi i64 [ 0, %before_{what} ], [ %{what}_i1, %{what} ]",
        *([carried] if carried else []),
        f"  %{what}_at = getelementptr inbounds i32, {p32} {table}, i64 %{what}_i",
        f"  %{what}_place = load i32, {p32} %{what}_at, align 4",
        f"  %{what}_offset = zext i32 %{what}_place to i64",
        f"  %{what}_from = getelementptr inbounds double, {pointer()} %work, i64 %{what}_offset",
        f"  %{what}_cast = bitcast {pointer()} %{what}_from to {typed}",
        f"  %{what}_value = load {v}, {typed} %{what}_cast, align 8",
        *body,
        f"  %{what}_i1 = add i64 %{what}_i, 1",
        f"  %{what}_more = icmp ult i64 %{what}_i1, {count}",
        f"  br i1 %{what}_more, label %{what}, label %after_{what}",
        f"after_{what}:",
    ]


def _copied(table: Table, name: str, width: int) -> list[str]:
    """Return the loop that writes the output block."""
    v, p = vector_type(width), pointer()
    typed = pointer(v)
    body = [
        f"  %to_offset = mul i64 %outputs_i, {width}",
        f"  %to = getelementptr inbounds double, {p} %out, i64 %to_offset",
        f"  %to_cast = bitcast {p} %to to {typed}",
        f"  store {v} %outputs_value, {typed} %to_cast, align 8",
    ]
    return [
        "  br label %before_outputs",
        "before_outputs:",
        *_walk("outputs", name, len(table.outputs), width, body),
    ]


def _status(table: Table, name: str, width: int) -> list[str]:
    """Return the loops over what must be positive and what must be finite, and the status."""
    v, i1, i32 = (vector_type(width, element) for element in ("double", "i1", "i32"))
    zero, most = splat(literal(0.0), width), splat(literal(float("inf")), width)

    def code(status: Status) -> str:
        return splat(str(int(status)), width, "i32")

    def carried(what: str, start: str) -> str:
        return f"  %{what}_so_far = phi {v} [ {start}, %before_{what} ], [ %{what}_next, %{what} ]"

    lines: list[str] = []
    status = code(Status.OK)
    if table.checked:
        body = [f"  %checked_next = fadd {v} %checked_so_far, %checked_value"]
        lines += ["  br label %before_checked", "before_checked:"]
        lines += _walk("checked", name, len(table.checked), width, body, carried("checked", zero))
        lines += [
            # x − x is 0 for finite x and NaN otherwise.
            f"  %rest = fsub {v} %checked_next, %checked_next",
            f"  %finite = fcmp oeq {v} %rest, {zero}",
            f"  %checked_status = select {i1} %finite, {i32} {status}, "
            f"{i32} {code(Status.NOT_FINITE)}",
        ]
        status = "%checked_status"
    for what, values, failure in (
        ("guards", table.guards, Status.NOT_POSITIVE_DEFINITE),
        ("regular", table.regular, Status.SINGULAR_LOOP),
    ):
        if not values:
            continue
        body = [
            f"  %{what}_less = fcmp olt {v} %{what}_value, %{what}_so_far",
            f"  %{what}_next = select {i1} %{what}_less, {v} %{what}_value, {v} %{what}_so_far",
        ]
        lines += [f"  br label %before_{what}", f"before_{what}:"]
        lines += _walk(what, name, len(values), width, body, carried(what, most))
        lines += [
            f"  %{what}_failed = fcmp ole {v} %{what}_next, {zero}",
            f"  %{what}_status = select {i1} %{what}_failed, {i32} {code(failure)}, "
            f"{i32} {status}",
        ]
        status = f"%{what}_status"
    if table.inputs is not None:
        # Last, as it explains the others.
        w = Writer()
        status = table.inputs.write(w, status, width)
        lines += w.lines
    if width == 1:
        return [*lines, f"  ret i32 {status}"]
    typed = pointer(i32)
    return [
        *lines,
        f"  %status_cast = bitcast {pointer('i32')} %status to {typed}",
        f"  store {i32} {status}, {typed} %status_cast, align 4",
        "  ret void",
    ]
