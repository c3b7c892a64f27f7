"""Compiled Newton iterations: a traced step, and the loop around it.

The step is traced like an algorithm. The loop (:mod:`~delassus.compiler.newton_loop`) is the
same for every step, so that one foreign call moves a configuration to where the measured positions
want it. Code is cached on disk as that of other kernels is.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from delassus.compiler import newton_loop
from delassus.compiler.cache.cached_code import CachedCode, check_against_floats
from delassus.compiler.codegen.emit import KERNEL
from delassus.compiler.codegen.loops import modules_ir
from delassus.compiler.codegen.writer import KernelWriter, declarations
from delassus.compiler.ir.trace import Trace
from delassus.compiler.passes.vectorize import scalar_program
from delassus.compiler.runtime.jit import LoadedCode, compile_ir, joined, optimized
from delassus.compiler.runtime.kernel import aligned_zeros
from delassus.errors import CompilerError
from delassus.model.spatial import Array
from delassus.scalars.functions import Scalar, Vector
from delassus.scalars.graph import Graph

_LOOP = newton_loop.track.__name__
_LOOP_TYPE = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


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
    code : the object files of the step and of the loop, joined.
    kernel : address of the step.
    """

    def __init__(self, step: NewtonStep, code: bytes) -> None:
        self.step = step
        self.code = code
        self._loaded = LoadedCode(code)
        self.kernel = self._loaded.address(KERNEL)
        self.call = _LOOP_TYPE(self._loaded.address(_LOOP))


class BoundNewton:
    """A Newton iteration with its buffers; a call creates no array.

    Attributes
    ----------
    q : (nq,) the configuration; where the last call left it.
    measured : (k,) positions to be reached.
    run : moves the measured entries of q to `measured`, then the unknown ones by Newton steps
        until these are small. Returns 0, a :class:`Status` or an
        :class:`~delassus.compiler.newton_loop.Outcome`; unless it is 0 or FAR, q is somewhere
        in between.
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
                newton.kernel,
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
        newton = Newton(step, joined([compile_ir(_module(step)), _loop()]))
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
        Trace.of(graph, [graph.index_of(value) for value in results]), list(range(expected))
    )
    return "\n".join([KernelWriter(program).text(KERNEL), declarations(), ""])


@lru_cache(maxsize=1)
def _loop() -> bytes:
    """Return the machine code of the loop around every step."""
    return compile_ir(optimized(modules_ir([newton_loop], [_LOOP])))


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
