"""From the parts of a program to a module of LLVM IR: the kernel of one problem.

C ABI: ``int32_t kernel(const double *in, double *out, double *work)``, re-entrant, without
static storage. The return value is a :class:`~delassus.scalars.ports.Status`; `work` holds
as many doubles as :data:`WORK_SIZE` says. Long programs are several functions, see
:mod:`delassus.compiler.passes.partition`, those of large systems tables of calls, see
:mod:`delassus.compiler.passes.calls`.

In this process, kernels on x86 fetch their own code first when they have not run for a while. A
control loop calls a kernel once per millisecond, and what runs meanwhile takes its code out of the
caches. Straight-line code is then waited for line by line: of humanoids, calls out of cold caches
took 7 to 35 % longer. The processor's cycle counter gives the time since the last call; reading it
costs some nanoseconds.
"""

from __future__ import annotations

from dataclasses import dataclass

from delassus.compiler.codegen import python_call
from delassus.compiler.codegen.calls import table_functions
from delassus.compiler.codegen.llvm_text import pointer
from delassus.compiler.codegen.target import LLVM_VERSION, host_triple, is_x86
from delassus.compiler.codegen.writer import declarations, head, in_turn, part_functions
from delassus.compiler.ir.program import CACHE_LINE_BYTES, Part
from delassus.compiler.passes.calls import Table
from delassus.compiler.passes.partition import work_size
from delassus.scalars.ports import Status

KERNEL = "delassus_kernel"
SLICE = "delassus_slice"
CALL = "delassus_call"
"""Kernel and slice in one call with one argument, see :func:`_call`."""

WORK_SIZE = "delassus_work_size"
"""A function without arguments: the doubles of `work` that the kernel needs."""


_IDLE_CYCLES = 1 << 18
"""Cycles since the last call, about 0.1 ms, after which code may have left the caches."""
_MOST_CODE_BYTES = 1 << 20
"""Bytes of code above which a linker must have put something else into it."""


@dataclass(frozen=True)
class Module:
    """IR of a kernel.

    Attributes
    ----------
    ir : the module.
    work_size : doubles of scratch that a call needs.
    """

    ir: str
    work_size: int


def module(code: list[Part] | Table) -> Module:
    """Return the module of a kernel for this process; :func:`around` goes with it.

    Where every program may read the cycle counter, the kernel fetches its code, see above.
    """
    if isinstance(code, Table) or not is_x86(host_triple()):
        texts, size = functions(code, KERNEL)
    else:
        body = f"{KERNEL}_body"
        texts, size = functions(code, body, public=False)
        texts = [*_marked(texts, body), _fetching(KERNEL, body, size)]
        size += 1
    texts.append(f"define i64 @{WORK_SIZE}() {{\n  ret i64 {size}\n}}")
    return Module("\n".join([*texts, declarations(), ""]), size)


def around() -> str:
    """Return the module of what is around every kernel: what Python calls."""
    p = pointer()
    kernel = f"declare i32 @{KERNEL}({p}, {p}, {p})"
    return "\n".join([kernel, _slice(SLICE), _call(), python_call.functions(CALL), ""])


def bare_module(code: list[Part] | Table, kernel: str, slicer: str) -> Module:
    """Return the module with the kernel and the slicing routine alone, under these names."""
    texts, size = functions(code, kernel)
    return Module("\n".join([*texts, _slice(slicer), declarations(), ""]), size)


def functions(code: list[Part] | Table, name: str, public: bool = True) -> tuple[list[str], int]:
    """Return the functions of a kernel for one configuration, and its work size.

    Parameters
    ----------
    name : of the function that computes all.
    public : whether the function that computes all is seen from outside; that of a table is.
    """
    if isinstance(code, Table):
        return table_functions(code, name), code.size
    texts, names = part_functions(code, name, 1, public)
    together = [in_turn(names, name, public)] if len(names) > 1 else []
    return [*texts, *together], work_size(code)


def stages(code: list[Part] | Table, name: str, width: int) -> tuple[list[str], list[str], int]:
    """Return the functions that compute vectors of configurations, one after the other.

    Parameters
    ----------
    name : what their names begin with.
    width : configurations per vector.

    Returns
    -------
    The functions, the names of those to be called in turn, and the work size per configuration.
    """
    if isinstance(code, Table):
        return table_functions(code, name, width), [name], code.size
    return *part_functions(code, name, width), work_size(code)


def _marked(texts: list[str], body: str) -> list[str]:
    """Return functions between two empty ones, which tell where the code of `body` is."""
    begin, end = (
        f"define internal void @{body}_{name}() {{\nentry:\n  ret void\n}}"
        for name in ("begin", "end")
    )
    return [begin, *texts, end]


def _fetching(name: str, body: str, place: int) -> str:
    """Return the kernel `name`: `body`, whose code is fetched before if the last call is long ago.

    Parameters
    ----------
    body : name of the function that computes, among functions that are marked.
    place : in the work area, of the cycle at which the last call began. Where the area is new
        it is anything; at worst, code is fetched that is there.
    """
    p, p64, p8 = pointer(), pointer("i64"), pointer("i8")
    ports = f"({p} %in, {p} %out, {p} %work)"
    mark = pointer("void ()")
    prefetch = f"@llvm.prefetch.p0{'' if LLVM_VERSION[0] >= 16 else 'i8'}"
    lines = [
        "declare i64 @llvm.readcyclecounter()",
        f"declare void {prefetch}({p8}, i32, i32, i32)",
        head(name, 1, returns=True, public=True),
        "entry:",
        "  %now = call i64 @llvm.readcyclecounter()",
        f"  %place = getelementptr double, {p} %work, i64 {place}",
        f"  %slot = bitcast {p} %place to {p64}",
        f"  %before = load i64, {p64} %slot, align 8",
        f"  store i64 %now, {p64} %slot, align 8",
        "  %since = sub i64 %now, %before",
        f"  %busy = icmp ult i64 %since, {_IDLE_CYCLES}",
        "  br i1 %busy, label %compute, label %fetch",
        "fetch:",
        f"  %code = bitcast {mark} @{body}_begin to {p8}",
        f"  %begin = ptrtoint {mark} @{body}_begin to i64",
        f"  %end = ptrtoint {mark} @{body}_end to i64",
        "  %bytes = sub i64 %end, %begin",
        # Also where a linker has turned them round.
        f"  %fits = icmp ult i64 %bytes, {_MOST_CODE_BYTES}",
        "  br i1 %fits, label %line, label %compute",
        "line:",
        "  %at = phi i64 [ 0, %fetch ], [ %next, %line ]",
        f"  %line_at = getelementptr i8, {p8} %code, i64 %at",
        # To be read, and to be kept as near as possible.
        f"  call void {prefetch}({p8} %line_at, i32 0, i32 3, i32 1)",
        f"  %next = add i64 %at, {CACHE_LINE_BYTES}",
        "  %more = icmp ult i64 %next, %bytes",
        "  br i1 %more, label %line, label %compute",
        "compute:",
        f"  %status = tail call i32 @{body}{ports}",
        "  ret i32 %status",
        "}",
    ]
    return "\n".join(lines)


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
