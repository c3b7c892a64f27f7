"""Batches of configurations, for :meth:`DelassusSolver.solve_batch`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.arguments import count
from delassus.compiler.ir.input_rules import InputRules
from delassus.compiler.runtime.batch_kernel import BatchKernel, Layout
from delassus.contact_forces.forces import ForceOptions
from delassus.contact_forces.results import BatchContactForces
from delassus.errors import InputError, listed, unknown
from delassus.model.spatial import Array
from delassus.outputs import OutputArrays, row_of
from delassus.problem import Problem
from delassus.scalars.ports import Status, views
from delassus.solver.friction import accelerations_and_velocities, active_solver
from delassus.solver.inputs import Given, InputCheck

if TYPE_CHECKING:
    from typing_extensions import Unpack

LAYOUTS: tuple[Layout, ...] = ("rows", "columns")
_REMEMBERED = 64
"""Number of sets of active contacts whose rows are cached; n contacts have 2ⁿ sets."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BatchSolution(OutputArrays):
    """Delassus matrices of many configurations; compared by identity.

    The arrays are data of their own; threads may share a solution.

    Attributes
    ----------
    matrix : (N, k, k), or (k, k, N) with columns; NaN where the status is not OK.
    status : (N,) int32, a :class:`~delassus.scalars.ports.Status` per configuration.
    contacts : the active contacts, in the order of their rows.
    row_offsets : first row of each active contact, then k.
    secondary : the problem's outputs besides G by name, as in
        :class:`~delassus.solver.solution.Solution`, with the axis of configurations of the
        matrix; NaN where the status is not OK.
    problem : the problem.
    layout : "rows" or "columns", the place of the axis of configurations.
    """

    matrix: Array
    status: NDArray[np.int32]
    contacts: tuple[str, ...]
    row_offsets: tuple[int, ...]
    secondary: dict[str, Array] = field(default_factory=dict)
    problem: Problem | None = None
    layout: Layout = "rows"

    def contact_forces(
        self,
        friction: ArrayLike | Mapping[str, float] | None = None,
        **options: Unpack[ForceOptions],
    ) -> BatchContactForces:
        """Return the forces of the active contacts under friction, per configuration.

        :meth:`Solution.contact_forces <delassus.solver.solution.Solution.contact_forces>`
        describes the parameters; the bits are those of its result for the same G and a0.
        Configurations whose status is not OK have NOT_FINITE forces. Arrays have the axis of
        configurations first, whatever the layout of the matrices.

        Raises
        ------
        InputError
            If ``a0`` or a coefficient is missing, an argument is of wrong shape, or a contact is a
            selection.
        """
        G, (a0, v) = self.matrix, accelerations_and_velocities(self)
        if self.layout == "columns":
            G, a0, v = np.moveaxis(G, -1, 0), a0.T, v.T
        solver = active_solver(self.problem, self.contacts, friction, options)
        return replace(solver.solve_batch(G, a0, velocities=v), contacts=self.contacts)

    def __repr__(self) -> str:
        """Return a summary in one line: counts, shape and contacts."""
        failed = int(np.count_nonzero(self.status))
        return (
            f"<BatchSolution of {len(self.status)} configurations, {failed} failed, "
            f"{self.matrix.shape} for {listed('contact', self.contacts)}>"
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Active:
    """Values of the kernel for a set of active contacts.

    Attributes
    ----------
    names, row_offsets : as in :class:`BatchSolution`.
    pick : indices of the values of their rows and columns, row-major; then of the outputs
        besides G.
    shapes : shapes of the outputs besides G by name, in the order of `pick`.
    """

    names: tuple[str, ...]
    row_offsets: tuple[int, ...]
    pick: NDArray[np.int64]
    shapes: dict[str, tuple[int, ...]]


class BatchSolver:
    """Runs the batch kernel of a problem on arrays.

    Parameters
    ----------
    problem : the problem.
    kernel : batch kernel of the problem.
    check : check of the problem's inputs.
    """

    def __init__(self, problem: Problem, kernel: BatchKernel, check: InputCheck) -> None:
        self._problem = problem
        self._kernel = kernel
        self._check = check
        self._rules = InputRules.of(problem.inputs, problem.robot)
        self._active: dict[tuple[int, ...], _Active] = {}

    def solve(
        self,
        given: Given,
        active: Iterable[str] | None,
        threads: int,
        layout: Layout,
        out: Array | None,
    ) -> BatchSolution:
        """Compute all configurations; see :meth:`DelassusSolver.solve_batch`."""
        if layout not in LAYOUTS:
            raise InputError(unknown("layout", str(layout), LAYOUTS))
        threads = count("threads", threads)
        inputs = self._check.batch(given, columns=layout == "columns")
        n = inputs.shape[0 if layout == "rows" else 1]
        contact_set = self._problem.contacts
        indices = contact_set.indices(contact_set.names if active is None else active)
        contacts = self._active.get(indices)
        if contacts is None:
            # Another thread may clear the cache at any time.
            if len(self._active) >= _REMEMBERED:
                self._active.clear()
            contacts = self._active[indices] = self._active_contacts(indices)
        k, rows = contacts.row_offsets[-1], layout == "rows"
        shape = (n, k, k) if rows else (k, k, n)
        matrix = _output(out, shape, inputs)
        status = np.zeros(n, dtype=np.int32)
        size = contacts.pick.shape[0]
        values = matrix
        if contacts.shapes:
            values = np.empty((n, size) if rows else (size, n))
        if n and size:
            flat = values.reshape((n, -1) if rows else (-1, n))
            self._kernel.run(inputs, flat, status, contacts.pick, layout, threads)
        elif n:
            status[:] = self._rules.statuses(inputs if rows else inputs.T)
        if np.count_nonzero(status):  # in half of the time of any()
            failed = status != Status.OK
            values[failed if rows else (..., failed)] = np.nan
        secondary: dict[str, Array] = {}
        first = k * k
        if contacts.shapes:
            matrix[...] = (values[:, :first] if rows else values[:first]).reshape(shape)
        for name, part in contacts.shapes.items():
            last = first + math.prod(part)
            own = values[:, first:last] if rows else values[first:last]
            secondary[name] = own.reshape((n, *part) if rows else (*part, n))
            first = last
        return BatchSolution(
            matrix, status, contacts.names, contacts.row_offsets, secondary, self._problem, layout
        )

    def _active_contacts(self, indices: tuple[int, ...]) -> _Active:
        contact_set = self._problem.contacts
        offsets = contact_set.row_offsets
        active_offsets = [0]
        for i in indices:
            active_offsets.append(active_offsets[-1] + contact_set[i].rows)
        rows = [r for i in indices for r in range(offsets[i], offsets[i + 1])]
        values = views(self._kernel.unique, self._problem.outputs)
        for name in values:
            for axis in row_of(name).row_axes:
                values[name] = values[name].take(rows, axis=axis)
        matrix = values.pop("G")
        shapes = {name: full.shape for name, full in values.items()}
        pick = np.concatenate([full.ravel() for full in (matrix, *values.values())])
        names = tuple(contact_set[i].name for i in indices)
        return _Active(names, tuple(active_offsets), pick, shapes)


def _output(out: Array | None, shape: tuple[int, ...], inputs: Array) -> Array:
    """Return the array to write to: `out` after a check, or a new one.

    Parameters
    ----------
    inputs : the array that the kernel reads while it writes, contiguous.
    """
    if out is None:
        return np.empty(shape)
    wrong = _wrong(out, shape, inputs)
    if wrong:
        raise InputError(
            f"out must be a writeable, C-contiguous float64 array of shape {shape} in separate "
            f"memory; it is {wrong}"
        )
    return out


def _wrong(out: Array, shape: tuple[int, ...], inputs: Array) -> str:
    """Return the reason why an array cannot take the result; empty if it can."""
    if not isinstance(out, np.ndarray):
        return f"no numpy array but {type(out).__name__}"
    if out.shape != shape or out.dtype != np.float64:
        return f"{out.dtype} of shape {out.shape}"
    if not out.flags.writeable:
        return "read-only"
    if not (out.flags.c_contiguous and out.flags.aligned):
        return f"not contiguous, with strides {out.strides}, or not aligned"
    # Bounds are enough: both are contiguous.
    return "in the memory of the inputs" if np.may_share_memory(out, inputs) else ""
