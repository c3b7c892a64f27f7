"""The LLVM IR of a table of calls: its functions, its arrays, and the loop over its entries."""

from __future__ import annotations

from collections.abc import Iterable

from delassus.compiler.codegen.input_checks import checked_status
from delassus.compiler.codegen.llvm_text import Writer, literal, pointer, splat, vector_type
from delassus.compiler.codegen.writer import KernelWriter, head
from delassus.compiler.ir.program import Instruction
from delassus.compiler.passes.calls import Function, Table
from delassus.scalars.ports import Status


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
        # Last: the status of the inputs explains a failure of the outputs.
        w = Writer()
        status = checked_status(table.inputs, w, status, width)
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
