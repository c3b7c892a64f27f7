"""Times: routines of one C ABI, called in loops in C; everything else, called from Python.

All contenders of a comparison are timed in turns, a few samples each, so that a disturbance of
the machine meets all of them.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import compilers
from delassus.compiler.runtime.kernel import aligned_zeros
from delassus.model.spatial import Array

COLD_BYTES = {8 << 20: 2, 64 << 20: 4}
"""Bytes of memory walked between two calls to a cold routine: more than the second level of
most caches has, and more than the third; each with how much longer to measure, for the walk."""
_TURNS = 8
_LOOPS = 3
"""Passes through the pool per sample; hides the cost of looking at the clock."""

Sampler = Callable[[int], Array]
"""Takes a number of samples, returns that many times per call [s]."""


@dataclass(frozen=True)
class Timing:
    """Time per call [s]."""

    minimum: float
    median: float

    def ratio(self, other: Timing) -> Timing:
        """Return how many times longer the other takes, by minimum and by median."""
        return Timing(other.minimum / self.minimum, other.median / self.median)


def fastest(times: Iterable[Timing]) -> Timing | None:
    """Return the least minimum and the least median; None without any."""
    some = list(times)
    if not some:
        return None
    return Timing(min(t.minimum for t in some), min(t.median for t in some))


@dataclass(frozen=True)
class Routine:
    """A function ``int32_t f(const double *in, double *out, double *work)`` with its data.

    Attributes
    ----------
    address : of the function.
    inputs : (count, nq), what it is called with in turn.
    rows : m, rows and columns of its matrix.
    work : address of its work area or state.
    read : makes a matrix of its (m, m) output block: fills what it left out.
    keep : whatever must stay alive.
    size : doubles of its output block, which begins with the matrix; 0: the matrix is all.
    """

    address: int
    inputs: Array
    rows: int
    work: int = 0
    read: Callable[[Array], Array] = np.array
    keep: object = None
    size: int = 0
    out: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", aligned_zeros(self.size or self.rows**2))

    def matrix(self, i: int) -> Array:
        """Return the matrix (m, m) for input i."""
        return self.read(self.results(i)[: self.rows**2].reshape(self.rows, self.rows))

    def results(self, i: int) -> Array:
        """Return the output block for input i, NaN if the function refuses it."""
        function = ctypes.CFUNCTYPE(
            ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
        )(self.address)
        self.out.fill(0.0)
        status = function(self.inputs[i].ctypes.data, self.out.ctypes.data, self.work)
        return np.full_like(self.out, np.nan) if status else self.out.copy()


@dataclass(frozen=True)
class BatchCall:
    """A call of a batch kernel: its address and the arrays of its C ABI.

    Attributes
    ----------
    inputs, out : one row per configuration, or one column.
    status : (count,) int32.
    pick : which values go out.
    work : scratch area.
    keep : whatever must stay alive.
    """

    address: int
    inputs: Array
    out: Array
    status: NDArray[np.int32]
    pick: NDArray[np.int64]
    work: Array
    keep: object = None


@lru_cache(maxsize=1)
def _timer() -> ctypes.CDLL:
    source = Path(__file__).with_name("timer.c").read_text(encoding="utf-8")
    return compilers.Compilation(source).library()


def _run(function: str, samples: int, *arguments: int | Array | NDArray[Any]) -> Array:
    """Call a function of timer.c, all of whose arguments are sizes and addresses of arrays."""
    times = np.empty(samples)
    values = (*arguments, samples, times)
    numbers = [v.ctypes.data if isinstance(v, np.ndarray) else v for v in values]
    getattr(_timer(), function)(*map(ctypes.c_int64, numbers))
    return times


def warm(routine: Routine) -> Sampler:
    """Time calls one after the other, each with another input."""
    r = routine
    return lambda n: _run(
        "time_warm", n, r.address, r.inputs, *r.inputs.shape, r.out, r.work, _LOOPS
    )


def cold(routine: Routine, size: int) -> Sampler:
    """Time calls that each come after a walk through `size` bytes of other memory."""
    r, memory = routine, np.zeros(size, dtype=np.uint8)
    return lambda n: _run(
        "time_cold", n, r.address, r.inputs, *r.inputs.shape, r.out, r.work, memory, size
    )


def each(routine: Routine, inputs: Array, out: Array) -> Sampler:
    """Time a loop that keeps the matrix of every input, in ``out`` (count, m, m)."""
    r = routine
    return lambda n: _run(
        "time_each", n, r.address, inputs, *inputs.shape, out, r.rows**2, r.work, 1
    )


def batch(call: BatchCall) -> Sampler:
    """Time a batch kernel, called in C."""
    c = call
    return lambda n: _run(
        "time_batch", n, c.address, c.inputs, c.inputs.shape[1], c.out, c.out.shape[1], c.status,
        c.status.size, c.pick, c.pick.size, c.work, _LOOPS,
    )  # fmt: skip


def python(call: Callable[[Array], object], inputs: Array) -> Sampler:
    """Time a Python function, called for each row of `inputs` in turn."""
    rows = [*inputs]

    def sample(n: int) -> Array:
        times = np.empty(n)
        for k in range(n):
            start = time.perf_counter()
            for row in rows:
                call(row)
            times[k] = (time.perf_counter() - start) / len(rows)
        return times

    return sample


def once(call: Callable[[], object], per: int) -> Sampler:
    """Time a Python function that does the work of `per` calls."""

    def sample(n: int) -> Array:
        times = np.empty(n)
        for k in range(n):
            start = time.perf_counter()
            call()
            times[k] = (time.perf_counter() - start) / per
        return times

    return sample


def measure(samplers: Mapping[str, Sampler], seconds: float) -> dict[str, Timing]:
    """Return the times of all samplers, taken in turns; about `seconds` for each of them."""
    counts: dict[str, int] = {}
    for name, sample in samplers.items():
        sample(2)  # the first calls find nothing in the caches
        start = time.perf_counter()
        sample(2)
        one = (time.perf_counter() - start) / 2
        counts[name] = max(1, round(seconds / _TURNS / max(one, 1e-9)))
    times: dict[str, list[Array]] = {name: [] for name in samplers}
    for _ in range(_TURNS):
        for name, sample in samplers.items():
            times[name].append(sample(counts[name]))
    result = {}
    for name, parts in times.items():
        joined = np.concatenate(parts)
        result[name] = Timing(float(joined.min()), float(np.median(joined)))
    return result
