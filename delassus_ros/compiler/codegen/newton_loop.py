"""The LLVM IR of the loop around a traced Newton step."""

from __future__ import annotations

from enum import IntEnum

from delassus_ros.compiler.codegen.emit import KERNEL
from delassus_ros.compiler.codegen.llvm_text import pointer
from delassus_ros.scalars.ports import Status

TRACK = "delassus_track"


class Outcome(IntEnum):
    """What :attr:`BoundNewton.run` returns besides a :class:`Status`."""

    FAR = -1
    """A measured position is out of reach of one call, or NaN; q is as it was."""
    UNSAFE = -2
    """The steps did not shrink as they do near a solution: they may lead to another one."""
    NOT_CONVERGED = -3
    """The steps did not become small."""


def newton_loop() -> str:
    """Return ``int32 track(const int64 *binding)``.

    The binding is that of :class:`~delassus_ros.compiler.newton.BoundNewton`.
    """
    p, pi = pointer(), pointer("i64")
    fields = (
        ("q", p), ("out", p), ("measured", p), ("targets", pi), ("sources", pi), ("given", ""),
        ("unknown", pi), ("unknowns", ""), ("numbers", p), ("iterations", ""),
    )  # fmt: skip
    loads = []
    for i, (name, kind) in enumerate(fields):
        loads.append(f"  %p{i} = getelementptr inbounds i64, {pi} %binding, i64 {i}")
        loads.append(f"  %{name}_ = load i64, {pi} %p{i}, align 8")
        if kind:
            loads.append(f"  %{name} = inttoptr i64 %{name}_ to {kind}")

    def at(result: str, base: str, index: str) -> str:
        """Return the lines that load base[index]."""
        integer = base in ("targets", "sources", "unknown")
        element, kind = ("i64", pi) if integer else ("double", p)
        return (
            f"  %{result}_at = getelementptr inbounds {element}, {kind} %{base}, i64 {index}\n"
            f"  %{result} = load {element}, {kind} %{result}_at, align 8"
        )

    return f"""
define i32 @{TRACK}({pi} %binding) {{
entry:
{chr(10).join(loads)}
{at("longest", "numbers", "0")}
{at("tolerance", "numbers", "1")}
{at("contraction", "numbers", "2")}
  %any = icmp sgt i64 %given_, 0
  br i1 %any, label %near, label %iterate
near:
  %k = phi i64 [ 0, %entry ], [ %k1, %nearer ]
{at("near_target", "targets", "%k")}
{at("near_source", "sources", "%k")}
{at("present", "q", "%near_target")}
{at("wanted", "measured", "%near_source")}
  %behind = add i64 %k, 3
{at("reach", "numbers", "%behind")}
  %way = fsub double %wanted, %present
  %distance = call double @llvm.fabs.f64(double %way)
  %within = fcmp ole double %distance, %reach
  br i1 %within, label %nearer, label %far
nearer:
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %given_
  br i1 %more, label %near, label %copy
copy:
  %c = phi i64 [ 0, %nearer ], [ %c1, %copy ]
{at("copy_target", "targets", "%c")}
{at("copy_source", "sources", "%c")}
{at("value", "measured", "%copy_source")}
  %entry_of_q = getelementptr inbounds double, {p} %q, i64 %copy_target
  store double %value, {p} %entry_of_q, align 8
  %c1 = add i64 %c, 1
  %copy_more = icmp slt i64 %c1, %given_
  br i1 %copy_more, label %copy, label %iterate
iterate:
  %i = phi i64 [ 0, %entry ], [ 0, %copy ], [ %i1, %updated ]
  %small = phi i1 [ false, %entry ], [ false, %copy ], [ %now_small, %updated ]
  %most = phi double [ %longest, %entry ], [ %longest, %copy ], [ %next_most, %updated ]
  %status = call i32 @{KERNEL}({p} %q, {p} %out, {p} null)
  %good = icmp eq i32 %status, {int(Status.OK)}
  br i1 %good, label %stepped, label %failed
stepped:
  %last = icmp sge i64 %i, %iterations_
  %enough = or i1 %small, %last
  br i1 %enough, label %done, label %measure
measure:
{at("length", "out", "%unknowns_")}
  %now_small = fcmp ole double %length, %tolerance
  %shrinking = fcmp ole double %length, %most
  %safe = or i1 %now_small, %shrinking
  %next_most = fmul double %length, %contraction
  %movable = icmp sgt i64 %unknowns_, 0
  br i1 %safe, label %move, label %unsafe
move:
  br i1 %movable, label %update, label %updated
update:
  %u = phi i64 [ 0, %move ], [ %u1, %update ]
{at("change", "out", "%u")}
{at("index", "unknown", "%u")}
{at("old", "q", "%index")}
  %new = fadd double %old, %change
  store double %new, {p} %old_at, align 8
  %u1 = add i64 %u, 1
  %update_more = icmp slt i64 %u1, %unknowns_
  br i1 %update_more, label %update, label %updated
updated:
  %i1 = add i64 %i, 1
  br label %iterate
done:
  %unfinished = xor i1 %small, true
  %wanted_steps = icmp sgt i64 %iterations_, 0
  %short = and i1 %unfinished, %wanted_steps
  %result = select i1 %short, i32 {int(Outcome.NOT_CONVERGED)}, i32 {int(Status.OK)}
  ret i32 %result
failed:
  ret i32 %status
far:
  ret i32 {int(Outcome.FAR)}
unsafe:
  ret i32 {int(Outcome.UNSAFE)}
}}"""
