"""Quantities of a task under held contacts as arrays, by machine code of the projection."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from delassus.compiler.loops import CompiledLoops, compiled_loops
from delassus.model.spatial import Array
from delassus.task_inertia import projection

_INT, _POINTER = ctypes.c_int64, ctypes.c_void_p
_SIGNATURES: dict[str, list[type]] = {
    "hold": [_INT] * 4 + [_POINTER] * 7,
    "held_vector": [_INT] * 3 + [_POINTER] * 8,
    "held_rows": [_INT] * 4 + [_POINTER] * 8,
    "held_columns": [_INT] * 5 + [_POINTER] * 8,
    "held_motions": [_INT] * 2 + [_POINTER] * 3,
    "task_space_at": [_POINTER] * 4,
}


@cache
def machine_code() -> CompiledLoops:
    """Return the public functions of the projection."""
    return compiled_loops((projection,), _SIGNATURES, _sample)


def _sample(calls: Mapping[str, Callable[..., int]], seed: int) -> bytes:
    """Return the results of a random task of three rows under six contact rows, as bytes."""
    random = np.random.default_rng(seed)
    J = random.normal(size=(9, 12))
    code = TaskCode(J @ J.T, 12, np.arange(3), np.arange(3, 9), np.ones(9), 6, 3, calls)
    code.bind(J, J.T.copy(), random.normal(size=12), *random.normal(size=(2, 9)))
    status = code.run()
    results = (getattr(code.arrays, name) for name in TaskArrays.__dataclass_fields__)
    return bytes([status]) + b"".join(array.tobytes() for array in results if array is not None)


@dataclass(slots=True, eq=False)
class TaskArrays:
    """Quantities of a task under held contacts; None where the problem lacks an output.

    Attributes
    ----------
    matrix : (t, t) G_t|c, accelerations of the task per task force.
    inertia : (t, t) its inverse at the structural rank.
    jbar : (n, t) J̄, task accelerations → accelerations that keep the contacts.
    null_space : (n, n) projection on motions that move neither task nor contacts.
    bias_force : (t,) effects of velocity and gravity on the task.
    free_acceleration : (t,) of the task under the torques, without task forces.
    """

    matrix: Array
    inertia: Array
    jbar: Array | None = None
    null_space: Array | None = None
    bias_force: Array | None = None
    free_acceleration: Array | None = None


class TaskCode:
    """The projection of one task at fixed addresses; :meth:`run` creates no array.

    Parameters
    ----------
    G : (m, m) matrix of all rows, C-contiguous; read at each run.
    n : number of velocities.
    task, contacts : rows of G.
    scales : (m,) factors that give all rows the unit of linear rows.
    contact_rank, task_rank : structural ranks of the contacts, and of the task under them.
    calls : functions of the machine code; None for :func:`machine_code`.

    Attributes
    ----------
    arrays : the results.
    """

    def __init__(
        self,
        G: Array,
        n: int,
        task: Sequence[int] | NDArray[np.int64],
        contacts: Sequence[int] | NDArray[np.int64],
        scales: Array,
        contact_rank: int,
        task_rank: int,
        calls: Mapping[str, Callable[..., int]] | None = None,
    ) -> None:
        t, c = len(task), len(contacts)
        self._call = (machine_code().calls if calls is None else calls)["task_space_at"]
        self._sizes = len(G), n, t, c, contact_rank, task_rank
        rows = np.concatenate([np.asarray(task, np.int64), np.asarray(contacts, np.int64)])
        self._first = rows, np.ascontiguousarray(scales), G
        self._work = np.zeros(projection.work_size(n, t, c)), np.zeros(c + t, np.int64)
        self.arrays = TaskArrays(np.zeros((t, t)), np.zeros((t, t)))
        self.bind(None, None, None, None, None)

    def bind(
        self,
        J: Array | None,
        response: Array | None,
        h: Array | None,
        JdotV: Array | None,
        a0: Array | None,
    ) -> None:
        """Choose further outputs of the kernel, C-contiguous; None where the problem lacks one."""
        _, n, t, *_ = self._sizes
        arrays, wanted = self.arrays, projection.INERTIA
        if response is not None:
            wanted += projection.JBAR
            arrays.jbar = np.zeros((n, t))
            if J is not None:
                wanted += projection.NULL_SPACE
                arrays.null_space = np.zeros((n, n))
            if h is not None and JdotV is not None:
                wanted += projection.BIAS
                arrays.bias_force = np.zeros(t)
        if a0 is not None:
            wanted += projection.FREE
            arrays.free_acceleration = np.zeros(t)
        rows, scales, G = self._first
        work, order = self._work
        # Attributes keep the memory alive that the places refer to.
        self._blocks = (
            scales, G, J, response, h, JdotV, a0, arrays.matrix, arrays.inertia, arrays.jbar,
            arrays.null_space, arrays.bias_force, arrays.free_acceleration, work,
        )  # fmt: skip
        base = scales.ctypes.data
        places = [0 if b is None else (b.ctypes.data - base) // 8 for b in self._blocks]
        self._binding = np.array([wanted, *self._sizes, *places], np.int64)
        # Converted once: ctypes would convert numbers at each call.
        addresses = (self._binding.ctypes.data, base, rows.ctypes.data, order.ctypes.data)
        self._arguments = tuple(map(_POINTER, addresses))

    def run(self) -> int:
        """Compute; return 0, or the status NOT_FINITE."""
        return self._call(*self._arguments)

    def invalidate(self) -> None:
        """Make all results NaN."""
        for name in TaskArrays.__dataclass_fields__:
            array = getattr(self.arrays, name)
            if array is not None:
                array.fill(np.nan)


class HeldOutputs:
    """Outputs of a kernel under held contacts: projections of G, J, M⁻¹Jᵀ, a⁰, J̇ẏ and ÿ.

    Parameters
    ----------
    G : (m, m) matrix of all rows.
    task, contacts : rows of G.
    scales : (m,) factors that give all rows the unit of linear rows.
    rank : structural rank of the contacts.

    Attributes
    ----------
    matrix : (t, t) G_t|c.
    """

    def __init__(
        self, G: Array, task: Sequence[int], contacts: Sequence[int], scales: Array, rank: int
    ) -> None:
        m, t, c = len(G), len(task), len(contacts)
        self._calls = machine_code().calls
        self._rows = np.array([*task, *contacts], np.int64)
        self._scales = np.ascontiguousarray(scales)
        L, self._V, self._order = np.zeros((c, c)), np.zeros((c, t)), np.zeros(c, np.int64)
        self.matrix = np.zeros((t, t))
        self._factors = self._rows, self._scales, L, self._V, self._order
        self._r = self._run(
            "hold", m, t, c, rank, self._rows, self._scales, np.ascontiguousarray(G), self.matrix,
            L, self._V, self._order,
        )  # fmt: skip
        self._shape = m, t, c

    def _run(self, name: str, *arguments: int | NDArray[np.generic]) -> int:
        words = (a if isinstance(a, int) else a.ctypes.data for a in arguments)
        return self._calls[name](*words)

    def vector(self, a: Array) -> tuple[Array, Array]:
        """Return L⁻¹ S a_p (r,) and a_t|c (t,) for values a (m,) of all rows."""
        _, t, c = self._shape
        y, out = np.zeros(self._r), np.zeros(t)
        self._run("held_vector", t, c, self._r, *self._factors, np.ascontiguousarray(a), y, out)
        return y, out

    def rows(self, J: Array) -> tuple[Array, Array]:
        """Return L⁻¹ S J_p (r, n) and J_t|c (t, n) for J (m, n)."""
        (_, t, c), n = self._shape, J.shape[1]
        Y, out = np.zeros((self._r, n)), np.zeros((t, n))
        self._run("held_rows", n, t, c, self._r, *self._factors, np.ascontiguousarray(J), Y, out)
        return Y, out

    def columns(self, response: Array) -> tuple[Array, Array]:
        """Return L⁻¹ S J_p M⁻¹ (r, n) and M⁻¹ J_t|cᵀ (n, t) for M⁻¹Jᵀ (n, m)."""
        (m, t, c), n = self._shape, len(response)
        W, out = np.zeros((self._r, n)), np.zeros((n, t))
        response = np.ascontiguousarray(response)
        self._run("held_columns", m, n, t, c, self._r, *self._factors, response, W, out)
        return W, out

    def motions(self, W: Array, Y: Array) -> Array:
        """Return N_c (n, n), the projection on motions that the contacts allow."""
        n = W.shape[1]
        out = np.zeros((n, n))
        self._run("held_motions", n, self._r, W, Y, out)
        return out
