"""From a trace to LLVM IR: one straight-line function for one configuration.

C ABI: ``int32_t kernel(const double *in, double *out, double *work)``, re-entrant, without
static storage. The return value is a :class:`~delassus_ros.algorithms.base.Status`.
"""

from __future__ import annotations

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
    Node,
    operands,
)
from delassus_ros.compiler.ir import Writer, literal, pointer
from delassus_ros.compiler.trace import Trace

KERNEL = "delassus_kernel"
SLICE = "delassus_slice"

# Contraction to fused multiply-add is allowed, reassociation never.
_BINARY = {
    ADD: "fadd contract",
    SUB: "fsub contract",
    MUL: "fmul contract",
    DIV: "fdiv",
}


def module(trace: Trace, checked: list[int]) -> str:
    """Return the IR of a module with the kernel and the slicing routine.

    Parameters
    ----------
    trace : what to compute.
    checked : positions in the output block whose sum must be finite for the result to be
        valid (the diagonal of G bounds the rest of it).
    """
    return "\n".join(
        [
            _kernel(trace, checked),
            _slice(),
            sincos.declarations(),
            "declare double @llvm.sqrt.f64(double)",
            "",
        ]
    )


def _kernel(trace: Trace, checked: list[int]) -> str:
    w = Writer()
    names: dict[int, str] = {}
    nodes = trace.graph.nodes
    angles, early = _early_angles(trace)
    for i in early:
        names[i] = _instruction(w, nodes[i], names)
    turned = sincos.sincos_of_all(w, [names[a] for a in angles])
    for angle, (s, c) in zip(angles, turned, strict=True):
        names.update(_named_pair(trace, angle, s, c))
    for i in trace.live:
        if i not in names:
            names[i] = _instruction(w, nodes[i], names)
    for position, i in enumerate(trace.outputs):
        w.store(names[i], "%out", position)
    _return_status(w, trace, names, checked)
    p = pointer()
    head = (
        f"define i32 @{KERNEL}({p} noalias nocapture readonly %in, "
        f"{p} noalias nocapture %out, {p} noalias nocapture %work) {{"
    )
    return "\n".join([head, "entry:", *w.lines, "}"])


def _early_angles(trace: Trace) -> tuple[list[int], list[int]]:
    """Return the angles that depend on no other sine or cosine, and the nodes they need."""
    nodes = trace.graph.nodes
    turned: set[int] = set()
    angles: dict[int, None] = {}
    for i in trace.live:
        if nodes[i][0] in (SIN, COS):
            if nodes[i][1] not in turned:
                angles[nodes[i][1]] = None
            turned.add(i)
        elif any(operand in turned for operand in operands(nodes[i])):
            turned.add(i)
    return list(angles), trace.graph.live(list(angles))


def _named_pair(trace: Trace, angle: int, s: str, c: str) -> dict[int, str]:
    """Return the names of the sin and cos nodes of an angle that exist in the graph."""
    graph = trace.graph
    found = {}
    for kind, name in ((SIN, s), (COS, c)):
        index = graph.find(kind, angle)
        if index is not None:
            found[index] = name
    return found


def _instruction(w: Writer, node: Node, names: dict[int, str]) -> str:
    """Emit one node and return the name of its value."""
    kind = node[0]
    if kind == INPUT:
        return w.load("%in", node[1])
    if kind == CONSTANT:
        return literal(node[1])
    arguments = [names[operand] for operand in operands(node)]
    if kind in _BINARY:
        return w.let(f"{_BINARY[kind]} double {arguments[0]}, {arguments[1]}")
    return _OTHERS[kind](w, *arguments)


def _select(w: Writer, x: str, positive: str, otherwise: str) -> str:
    condition = w.let(f"fcmp ogt double {x}, {literal(0.0)}")
    return w.let(f"select i1 {condition}, double {positive}, double {otherwise}")


_OTHERS: dict[str, Callable[..., str]] = {
    NEG: lambda w, x: w.let(f"fneg double {x}"),
    SQRT: lambda w, x: w.let(f"call double @llvm.sqrt.f64(double {x})"),
    # Sines of expressions that contain sines are rare: straight to libm.
    SIN: lambda w, x: w.let(f"call double @sin(double {x})"),
    COS: lambda w, x: w.let(f"call double @cos(double {x})"),
    SELECT: _select,
}


def _return_status(w: Writer, trace: Trace, names: dict[int, str], checked: list[int]) -> None:
    """Return NOT_POSITIVE_DEFINITE, NOT_FINITE or OK."""

    def minimum(a: str, b: str) -> str:
        return w.let(f"select i1 {w.let(f'fcmp olt double {a}, {b}')}, double {a}, double {b}")

    def add(a: str, b: str) -> str:
        return w.let(f"fadd double {a}, {b}")

    status = str(int(Status.OK))
    if checked:
        total = _reduce([names[trace.outputs[position]] for position in checked], add)
        # x − x is 0 for finite x and NaN otherwise.
        zero = w.let(f"fsub double {total}, {total}")
        finite = w.let(f"fcmp oeq double {zero}, {literal(0.0)}")
        status = w.let(f"select i1 {finite}, i32 {status}, i32 {int(Status.NOT_FINITE)}")
    if trace.guards:
        smallest = _reduce([names[guard.index] for guard in trace.guards], minimum)
        failed = w.let(f"fcmp ole double {smallest}, {literal(0.0)}")
        status = w.let(
            f"select i1 {failed}, i32 {int(Status.NOT_POSITIVE_DEFINITE)}, i32 {status}"
        )
    w.do(f"ret i32 {status}")


def _reduce(values: list[str], combine: Callable[[str, str], str]) -> str:
    """Combine values pairwise, in a shallow tree."""
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [combine(a, b) for a, b in pairs] + values[len(values) & ~1 :]
    return values[0]


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
