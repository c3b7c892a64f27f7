"""Machine code of the iteration, for this machine."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from delassus_ros.compiler.loops import CompiledLoops, compiled_loops
from delassus_ros.contact_forces import cones, elimination, interior, iteration, newton, sweeps

MODULES = (cones, elimination, sweeps, newton, interior, iteration)
"""Modules in the subset of Python that is compiled; a module calls only those before it."""
BUDGET = 172
"""Largest number of steps by construction: 12 sweeps and Newton steps, 100 steps of the interior
point and 10 times 6 steps of Newton between them."""
TOLERANCE = 1e-10
"""Residual at which forces are SOLVED, as a share of the norm of a0."""
_SOLVE = [*[ctypes.c_int64] * 5, ctypes.c_double, *[ctypes.c_void_p] * 14]
_PUBLIC = {"solve": _SOLVE, "solve_batch": [ctypes.c_int64, *_SOLVE, ctypes.c_void_p]}


@cache
def machine_code() -> CompiledLoops:
    """Return ``solve`` and ``solve_batch`` of the iteration."""
    return compiled_loops(MODULES, _PUBLIC, _sample)


def _sample(calls: Mapping[str, Callable[..., int]], seed: int) -> bytes:
    """Return the result of a random problem of four points, as bytes."""
    random = np.random.default_rng(seed)
    J = random.normal(size=(12, 18))
    G, a0 = J @ J.T / 18, random.normal(size=12)
    G[:] = 0.5 * (G + G.T)
    n = k = 12
    f, out, ray, info = np.zeros(k), np.zeros(2 * n), np.zeros(k), np.zeros(5)
    arrays: list[Any] = [
        np.full(4, cones.POINT, np.int64), np.full(4, 0.5), np.arange(k + 1), np.arange(k),
        np.ones(k), G, a0, np.zeros(k), f, out, out[n:], ray, info,
        np.zeros(iteration.work_size(k, n)), np.zeros(1, np.int64),
    ]  # fmt: skip
    addresses = [array.ctypes.data for array in arrays]
    law = seed % 2
    status = calls["solve"](n, k, 4, law, BUDGET, TOLERANCE, *addresses[:-1])
    first = bytes([status]) + f.tobytes() + out.tobytes() + info.tobytes()
    f[:] = 0.0
    calls["solve_batch"](1, n, k, 4, law, BUDGET, TOLERANCE, *addresses)
    return first + f.tobytes() + info.tobytes()
