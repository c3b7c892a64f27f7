"""Kernels that fetch their own code first when they have not run for a while.

A control loop calls a kernel once per millisecond, and what runs meanwhile takes its code out of
the caches. Straight-line code is then waited for line by line; asked for all at once, it is there
in half the time. Whether it is time for that is told by the processor's cycle counter, which
costs some nanoseconds.
"""

from __future__ import annotations

from delassus_ros.compiler.code_generator import LLVM_VERSION
from delassus_ros.compiler.ir import pointer
from delassus_ros.compiler.jit import is_x86
from delassus_ros.compiler.writer import head

_IDLE = 1 << 18
"""Cycles since the last call, about 0.1 ms, after which code may have left the caches."""
_LINE = 64
"""Bytes that are fetched at a time."""
_MOST = 1 << 20
"""Bytes of a stretch of code above which a linker must have put something else into it."""


def counts_cycles(triple: str) -> bool:
    """Return whether every program may read the cycle counter of a target's processor."""
    return is_x86(triple)


def marked(texts: list[str], stretch: str, public: bool = False) -> list[str]:
    """Return functions between two empty ones, which tell where their code is.

    Parameters
    ----------
    stretch : what this code is called.
    public : whether another module fetches it.
    """
    linkage = "" if public else "internal "
    begin, end = (
        f"define {linkage}void @{stretch}_{name}() {{\nentry:\n  ret void\n}}"
        for name in ("begin", "end")
    )
    return [begin, *texts, end]


def marks_of(stretch: str) -> str:
    """Return how a module declares the marks of a public stretch."""
    return f"declare void @{stretch}_begin()\ndeclare void @{stretch}_end()"


def fetching(name: str, body: str, stretches: list[str], place: int) -> str:
    """Return the kernel `name`: `body`, whose code is fetched before if the last call is long ago.

    Parameters
    ----------
    body : name of the function that computes.
    stretches : of code, see :func:`marked`.
    place : in the work area, of the cycle at which the last call began. Where the area is new
        it is anything; at worst, code is fetched that is there.
    """
    p, p64, p8 = pointer(), pointer("i64"), pointer("i8")
    ports = f"({p} %in, {p} %out, {p} %work)"
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
        f"  %busy = icmp ult i64 %since, {_IDLE}",
        "  br i1 %busy, label %compute, label %fetch0",
    ]
    mark = pointer("void ()")
    for k, stretch in enumerate(stretches):
        lines += [
            f"fetch{k}:",
            f"  %code{k} = bitcast {mark} @{stretch}_begin to {p8}",
            f"  %begin{k} = ptrtoint {mark} @{stretch}_begin to i64",
            f"  %end{k} = ptrtoint {mark} @{stretch}_end to i64",
            f"  %bytes{k} = sub i64 %end{k}, %begin{k}",
            # Also where a linker has turned them round.
            f"  %fits{k} = icmp ult i64 %bytes{k}, {_MOST}",
            f"  br i1 %fits{k}, label %line{k}, label %fetch{k + 1}",
            f"line{k}:",
            f"  %at{k} = phi i64 [ 0, %fetch{k} ], [ %next{k}, %line{k} ]",
            f"  %line_at{k} = getelementptr i8, {p8} %code{k}, i64 %at{k}",
            # To be read, and to be kept as near as possible.
            f"  call void {prefetch}({p8} %line_at{k}, i32 0, i32 3, i32 1)",
            f"  %next{k} = add i64 %at{k}, {_LINE}",
            f"  %more{k} = icmp ult i64 %next{k}, %bytes{k}",
            f"  br i1 %more{k}, label %line{k}, label %fetch{k + 1}",
        ]
    lines += [
        f"fetch{len(stretches)}:",
        "  br label %compute",
        "compute:",
        f"  %status = tail call i32 @{body}{ports}",
        "  ret i32 %status",
        "}",
    ]
    return "\n".join(lines)
