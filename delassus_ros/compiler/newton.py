"""Compiled Newton iterations: a traced step, and the loop around it.

The step is traced like an algorithm. The loop is a few lines of IR, the same for every step, so
that one foreign call moves a configuration to where the measured positions want it. Code is
cached on disk as that of other kernels is.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from enum import IntEnum
from functools import partial

import numpy as np

from delassus_ros.compiler.cache.cached_code import CachedCode, check_against_floats
from delassus_ros.compiler.codegen.emit import KERNEL
from delassus_ros.compiler.codegen.llvm_text import pointer
from delassus_ros.compiler.codegen.writer import KernelWriter, declarations
from delassus_ros.compiler.ir.trace import Trace
from delassus_ros.compiler.passes.vectorize import scalar_program
from delassus_ros.compiler.runtime.jit import LoadedCode, compile_ir
from delassus_ros.compiler.runtime.kernel import aligned_zeros
from delassus_ros.errors import CompilerError
from delassus_ros.model.spatial import Array
from delassus_ros.scalars.functions import Scalar, Vector
from delassus_ros.scalars.graph import Graph
from delassus_ros.scalars.ports import Status

TRACK = "delassus_track"
_TRACK_TYPE = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)


class Outcome(IntEnum):
    """What :attr:`BoundNewton.run` returns besides a :class:`Status`."""

    FAR = -1
    """A measured position is out of reach of one call, or NaN; q is as it was."""
    UNSAFE = -2
    """The steps did not shrink as they do near a solution: they may lead to another one."""
    NOT_CONVERGED = -3
    """The steps did not become small."""


class NewtonStep(ABC):
    """What is compiled: a step, as a function over scalars.

    Attributes
    ----------
    nq : length of q.
    unknown : entries of q that the step changes.
    results : how many more numbers there are besides the step and its length.
    """

    nq: int
    unknown: tuple[int, ...]
    results: int

    @abstractmethod
    def evaluate(self, q: Sequence[Scalar]) -> Vector:
        """Return the change of each unknown, the length of the step, then the results."""

    @abstractmethod
    def sample(self, random: np.random.Generator) -> Array:
        """Return a q (nq,) at which the step makes sense."""

    @abstractmethod
    def to_bytes(self) -> bytes:
        """Return canonical bytes of all that the step depends on."""


class Newton:
    """Machine code of a Newton iteration; re-entrant.

    Attributes
    ----------
    step : what it was made of.
    code : the object file.
    """

    def __init__(self, step: NewtonStep, code: bytes) -> None:
        self.step = step
        self.code = code
        self._loaded = LoadedCode(code)
        self.call = _TRACK_TYPE(self._loaded.address(TRACK))


class BoundNewton:
    """A Newton iteration with buffers of its own; a call creates no array.

    Attributes
    ----------
    q : (nq,) the configuration; where the last call left it.
    measured : (k,) positions to be reached.
    run : moves the measured entries of q to `measured`, then the unknown ones by Newton steps
        until these are small. Returns 0, a :class:`Status` or an :class:`Outcome`; unless it
        is 0 or FAR, q is somewhere in between.
    results : what the step returned at the last q.

    Parameters
    ----------
    newton : the code.
    measured : size of `measured`.
    given : (entry of q, entry of `measured`) of the positions that hold.
    reach : per given position, how far from q it may be [rad or m].
    longest : longest step.
    contraction : each step must be shorter than this share of the step before.
    tolerance : the iteration ends behind a step of at most this length.
    iterations : most steps.
    """

    def __init__(
        self,
        newton: Newton,
        measured: int,
        given: Sequence[tuple[int, int]],
        reach: Sequence[float],
        longest: float,
        contraction: float,
        tolerance: float,
        iterations: int,
    ) -> None:
        step = newton.step
        unknown = len(step.unknown)
        self._newton = newton  # owns the code that is called
        self.q = aligned_zeros(step.nq)
        self.measured = aligned_zeros(measured)
        self._out = aligned_zeros(unknown + 1 + step.results)
        self.results = self._out[unknown + 1 :]
        self._numbers = array("d", [longest, tolerance, contraction, *reach])
        # One entry more, for there is no address of an empty array.
        self._targets = array("q", [*(target for target, _ in given), 0])
        self._sources = array("q", [*(source for _, source in given), 0])
        self._unknown = array("q", [*step.unknown, 0])
        self._binding = array(
            "q",
            [
                self.q.ctypes.data, self._out.ctypes.data, self.measured.ctypes.data,
                self._targets.buffer_info()[0], self._sources.buffer_info()[0], len(given),
                self._unknown.buffer_info()[0], unknown,
                self._numbers.buffer_info()[0], iterations,
            ],
        )  # fmt: skip
        self.run = partial(newton.call, self._binding.buffer_info()[0])


def newton_for(step: NewtonStep, use_cache: bool = True) -> Newton:
    """Return the compiled iteration of a step, from the disk cache where it is there.

    Raises
    ------
    CompilerError
        If the compiled step differs from the step on floats, or LLVM fails.
    """

    def make() -> Newton:
        newton = Newton(step, compile_ir(_module(step)))
        _check_against_floats(newton)
        return newton

    stored: CachedCode[Newton] = CachedCode(
        "Newton iteration",
        step.to_bytes(),
        parts=lambda newton: (newton.code, {}),
        load=lambda code, _: Newton(step, code),
        result=_result,
    )
    return stored.kept(stored.key() if use_cache else None, make)


def _module(step: NewtonStep) -> str:
    graph = Graph()
    results = step.evaluate([graph.input(k) for k in range(step.nq)])
    expected = len(step.unknown) + 1 + step.results
    if len(results) != expected:
        raise CompilerError(f"a Newton step returned {len(results)} numbers, not {expected}")
    program = scalar_program(
        Trace.of(graph, [graph.index_of(each) for each in results]), list(range(expected))
    )
    return "\n".join([KernelWriter(program).text(KERNEL), _track(), declarations(), ""])


def _ran(newton: Newton, seed: int) -> tuple[Array, int, Array]:
    """Return a sample, and status and numbers of the step there."""
    step = newton.step
    bound = BoundNewton(newton, 1, [], [], np.inf, np.inf, np.inf, 0)
    bound.q[...] = q = step.sample(np.random.default_rng(seed))
    return q, bound.run(), bound._out


def _result(newton: Newton, seed: int) -> bytes:
    _, status, numbers = _ran(newton, seed)
    return status.to_bytes(4, "little", signed=True) + numbers.tobytes()


def _check_against_floats(newton: Newton) -> None:
    q, status, numbers = _ran(newton, seed=0)
    check_against_floats(
        "a compiled Newton step",
        status,
        {"result": numbers},
        lambda: {"result": newton.step.evaluate(q.tolist())},
    )


def _track() -> str:
    """Return ``int32 track(const int64 *binding)``; :class:`BoundNewton` has the binding."""
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
