"""From a program to a module of LLVM IR: the kernel of one problem.

C ABI: ``int32_t kernel(const double *in, double *out, double *work)``, re-entrant, without
static storage. The return value is a :class:`~delassus_ros.scalars.ports.Status`; `work` holds
as many doubles as :data:`WORK_SIZE` says, and is best left alone between calls, see
:mod:`delassus_ros.compiler.fetch`. Long programs are several functions, see
:mod:`delassus_ros.compiler.parts`, those of large systems tables of calls, see
:mod:`delassus_ros.compiler.tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from delassus_ros.compiler import python_call
from delassus_ros.compiler.code_generator import host_features, llvm
from delassus_ros.compiler.demand import on_demand
from delassus_ros.compiler.fetch import counts_cycles, fetching, marked, marks_of
from delassus_ros.compiler.ir import pointer
from delassus_ros.compiler.jit import has_few_registers
from delassus_ros.compiler.parts import (
    BATCH,
    LONG,
    LONG_OF_FEW,
    SINGLE,
    Lengths,
    Part,
    interleaved,
    split,
    work_size,
)
from delassus_ros.compiler.program import Program
from delassus_ros.compiler.tables import Table, table_functions
from delassus_ros.compiler.writer import declarations, in_turn, part_functions, parts_apart
from delassus_ros.scalars.ports import Status

KERNEL = "delassus_kernel"
SLICE = "delassus_slice"
CALL = "delassus_call"
"""Kernel and slice in one call with one argument, see :func:`_call`."""

Elsewhere = Callable[[str], None]
"""Takes a module to be compiled apart, see :class:`~delassus_ros.compiler.helper.Helper`."""

WORK_SIZE = "delassus_work_size"
"""A function without arguments: the doubles of `work` that the kernel needs."""


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


def module(program: Program | Table, elsewhere: Elsewhere | None = None) -> Module:
    """Return the module of a kernel for this process; :func:`around` goes with it.

    Parameters
    ----------
    elsewhere : gets part of a long program.
    """
    triple = llvm.get_process_triple()
    texts, size = _kernel(program, KERNEL, triple, host_features(), elsewhere)
    texts.append(f"define i64 @{WORK_SIZE}() {{\n  ret i64 {size}\n}}")
    return Module("\n".join([*texts, declarations(), ""]), size)


def around() -> str:
    """Return the module of what is around every kernel: what Python calls."""
    p = pointer()
    kernel = f"declare i32 @{KERNEL}({p}, {p}, {p})"
    return "\n".join([kernel, _slice(SLICE), _call(), python_call.functions(CALL), ""])


def bare_module(
    program: Program | Table, kernel: str, slicer: str, triple: str, features: str
) -> Module:
    """Return the module with the kernel and the slicing routine alone, under these names."""
    texts, size = _kernel(program, kernel, triple, features)
    return Module("\n".join([*texts, _slice(slicer), declarations(), ""]), size)


def _kernel(
    program: Program | Table,
    name: str,
    triple: str,
    features: str,
    elsewhere: Elsewhere | None = None,
) -> tuple[list[str], int]:
    """Return the same as :func:`functions`, of a kernel that fetches its code where it can."""
    long = LONG_OF_FEW if has_few_registers(triple, features) else LONG
    if isinstance(program, Table) or not counts_cycles(triple):
        return functions(program, name, elsewhere, long=long)
    body, apart = f"{name}_body", f"{name}_apart"
    stretches, declared = [body], []

    def elsewhere_marked(ir: str) -> None:
        stretches.append(apart)
        declared.append(marks_of(apart))
        assert elsewhere is not None
        elsewhere("\n".join(marked([ir], apart, public=True)))

    apart_to = elsewhere and elsewhere_marked
    texts, size = functions(program, body, apart_to, public=False, long=long)
    kernel = fetching(name, body, stretches, size)
    return [*declared, *marked(texts, body), kernel], size + 1


def functions(
    program: Program | Table,
    name: str,
    elsewhere: Elsewhere | None = None,
    public: bool = True,
    long: Lengths = LONG,
) -> tuple[list[str], int]:
    """Return the functions of a kernel for one configuration, and its work size.

    Parameters
    ----------
    name : of the function that computes all.
    elsewhere : gets half of the parts, which are then only declared.
    public : whether the function that computes all is seen from outside; that of a table is.
    long : from which length on parts are short and not interleaved.
    """
    if isinstance(program, Table):
        return table_functions(program, name), program.size
    program = on_demand(program)
    if len(program.instructions) > long.longest:
        # Not interleaved: values that wait would make the code longer.
        parts = split(program, long)
        ordered = iter(parts)
    else:
        parts = split(program, SINGLE)
        ordered = map(interleaved, parts)
    texts, names = _part_functions(parts, ordered, name, 1, elsewhere, public)
    together = [in_turn(names, name, public)] if len(names) > 1 else []
    return [*texts, *together], work_size(parts)


def stages(
    program: Program | Table, name: str, width: int, elsewhere: Elsewhere | None = None
) -> tuple[list[str], list[str], int]:
    """Return the functions that compute vectors of configurations, one after the other.

    Parameters
    ----------
    name : what their names begin with.
    width : configurations per vector.
    elsewhere : gets half of the parts, which are then only declared.

    Returns
    -------
    The functions, the names of those to be called in turn, and the work size per configuration.
    """
    if isinstance(program, Table):
        return table_functions(program, name, width), [name], program.size
    # Not interleaved: vectors of configurations keep a processor busy in any order.
    parts = split(on_demand(program), BATCH)
    return *_part_functions(parts, iter(parts), name, width, elsewhere), work_size(parts)


def _part_functions(
    parts: list[Part],
    ordered: Iterator[Part],
    name: str,
    configurations: int,
    elsewhere: Elsewhere | None,
    public: bool | None = None,
) -> tuple[list[str], list[str]]:
    """Return the functions of parts, and their names; half of them only declared."""
    declared: list[str] = []
    if elsewhere is not None and len(parts) > 1:
        first = list(islice(ordered, len(parts) // 2))
        texts, declared = parts_apart(first, name, configurations)
        elsewhere("\n".join([*texts, declarations(), ""]))
    texts, names = part_functions(list(ordered), name, configurations, len(declared), public)
    return [*declared, *texts], names


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
