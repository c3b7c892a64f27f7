"""Machine code of the iteration, for this machine."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from delassus.compiler.loops import CompiledLoops, compiled_loops
from delassus.contact_forces import (
    cones,
    division,
    elimination,
    interior,
    iteration,
    motion,
    newton,
    proximal,
    stages,
    sweeps,
)

MODULES = (
    cones, elimination, sweeps, newton, interior, stages, division, proximal, motion, iteration,
)  # fmt: skip
"""Modules in the subset of Python that is compiled; a module calls only those before it."""
BUDGET = 240
"""Largest number of steps."""
TOLERANCE = 1e-10
"""Residual at which forces are SOLVED, as a share of the norm of a0."""
SPEED = 0.1
"""Velocity above which a contact slides, leaves or strikes [m/s]. Velocities of stance feet from
joint encoders and inertial sensors have noise of some 0.01 to 0.05 m/s."""
_PUBLIC: dict[str, list[Any]] = {
    "solve_block": [ctypes.c_void_p] * 2,
    "solve_batch": [ctypes.c_int64, *[ctypes.c_void_p] * 11],
}


@cache
def machine_code() -> CompiledLoops:
    """Return ``solve_block`` and ``solve_batch`` of the iteration."""
    return compiled_loops(MODULES, _PUBLIC, _sample)


def _sample(calls: Mapping[str, Callable[..., int]], seed: int) -> bytes:
    """Return the result of a random problem of four points, as bytes."""
    random = np.random.default_rng(seed)
    J = random.normal(size=(12, 18))
    G, a0 = J @ J.T / 18, random.normal(size=12)
    G[:] = 0.5 * (G + G.T)
    n = k = 12
    contacts, law = [cones.POINT] * 4, seed % 2
    sizes = [n, k, 4, law, BUDGET, 1 + cones.SPEEDS + 4 + 4 + 2 * k]
    whole = np.array([*sizes, *contacts, *range(k + 1), *range(k)], np.int64)
    v = np.array([*[0.0] * 8, 0.3, 0.4, 0.0, *[0.0] * (n - 11)])
    limits = [0.1] * cones.SPEEDS
    known = [
        TOLERANCE, *limits, *[0.5] * 4, *[0.1] * 4, *[1.0] * k, *[0.0] * k, *G.ravel(), *a0, *v,
    ]  # fmt: skip
    room = 2 * k + 2 * n + cones.INFO + iteration.work_size(k, n)
    values = np.array([*known, *[0.0] * room])
    status = calls["solve_block"](whole.ctypes.data, values.ctypes.data)
    first = bytes([status]) + values[len(known) :][: k + 2 * n].tobytes()
    results = [np.zeros(k), np.zeros(n), np.zeros(n), np.zeros(k), np.zeros(cones.INFO)]
    arrays = [whole, values, G, a0, v, *results, np.zeros(1, np.int64)]
    calls["solve_batch"](1, *(array.ctypes.data for array in arrays))
    return first + b"".join(array.tobytes() for array in results)
