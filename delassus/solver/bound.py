"""The solver for control loops, which allocates no memory."""

from __future__ import annotations

import ctypes
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from delassus.compiler.codegen.python_call import NOT_TAKEN
from delassus.compiler.loops import CompiledLoops, compiled_loops
from delassus.compiler.runtime.kernel import BoundKernel, Kernel, aligned_zeros
from delassus.contact_forces.forces import ForceOptions
from delassus.contact_forces.results import ContactForces
from delassus.contacts import ContactSet
from delassus.errors import InputError, listed
from delassus.model.spatial import Array
from delassus.outputs import row_of
from delassus.problem import Problem
from delassus.scalars.ports import Status
from delassus.solver import constrained_dynamics
from delassus.solver.bound_friction import BoundFriction
from delassus.solver.constrained_dynamics import OVERFLOWED, REDUNDANT, SOLVED
from delassus.solver.contact_space import CONTRADICTION, PROXIMAL, STEPS, is_settled
from delassus.solver.inputs import InputArrays, InputCheck
from delassus.solver.solution import Solution, task_names
from delassus.solver.structural_rank import Structure
from delassus.task_inertia import TaskArrays, TaskCode

if TYPE_CHECKING:
    from typing_extensions import Unpack

_OK = Status.OK
"""Looking up a member of an enumeration takes as long as half of a small kernel."""
_TIME, _FAILED = 0, 1
"""Entries of a solution's record, see
:func:`~delassus.compiler.runtime.python_call.python_solve`."""


class _BoundSolution(Solution):
    """A solution whose compute time is read from a record written by machine code."""

    __slots__ = ("record",)

    def __init__(self, matrix: Array, contacts: ContactSet, algorithm: str) -> None:
        self.record = array("d", [0.0, 1.0])
        names, offsets = contacts.names, contacts.row_offsets
        super().__init__(matrix, Status.NOT_FINITE, names, offsets, algorithm, 0.0)

    @property
    def compute_time(self) -> float:
        return self.record[_TIME]

    @compute_time.setter
    def compute_time(self, seconds: float) -> None:
        self.record[_TIME] = seconds


class BoundSolver:
    """A solver with preallocated buffers, for control loops; one per thread.

    A call creates no array: :meth:`solve` always returns the same :class:`Solution`, whose
    content is valid until the next call. Inputs that were never written are NaN, and set the
    status NOT_FINITE.

    Attributes
    ----------
    kernel : the kernel of the problem.
    solution : the result of :meth:`solve`, NOT_FINITE before the first one. Contacts and offsets
        follow :meth:`activate` at once; the solution is then NOT_FINITE until the next
        :meth:`solve`.
    """

    def __init__(
        self,
        problem: Problem,
        kernel: Kernel,
        algorithm: str,
        structure: Structure | None = None,
    ) -> None:
        self.kernel = kernel
        if structure is None:
            structure = Structure(problem, partial(BoundSolver, problem, kernel, algorithm))
        self._contact_set = problem.contacts
        bound = kernel.bind()
        self._computation = _Computation(problem, bound, algorithm, structure)
        self.solution: Solution = self._computation.solution
        self._record = self._computation.solution.record
        self._constrained: _ConstrainedDynamics | None = None
        self._friction: BoundFriction | None = None
        self._inputs = InputArrays("inputs", "input", bound.inputs)
        for name, values in bound.inputs.items():
            values[...] = problem.placements.get(name, np.nan)
        self._positions = self._by_contact("contact_positions", problem.moving)
        self._orientations = self._by_contact("contact_orientations", problem.turning)
        solve = self._computation.built_in()
        if solve is not None:
            # The machine code of the method below: attribute lookup finds it before the method.
            vars(self)["solve"] = solve

    def __repr__(self) -> str:
        """Return the algorithm and the active contacts."""
        solution = self.solution
        active = listed("contact", solution.contacts)
        return f"<BoundSolver by {solution.algorithm}, active {active}>"

    def __reduce__(self) -> NoReturn:
        """Refuse copies and pickling: the machine code refers to the addresses of the arrays.

        Raises
        ------
        InputError
            Always; names the object that can be copied.
        """
        raise InputError(
            "a BoundSolver cannot be copied or pickled; copy or pickle its DelassusSolver and "
            "bind that"
        )

    def _by_contact(self, port: str, names: Sequence[str]) -> InputArrays:
        """Return the rows of an input by contact."""
        rows = self._inputs.get(port, ())
        return InputArrays(port, "contact", dict(zip(names, rows, strict=True)))

    @property
    def inputs(self) -> InputArrays:
        """Arrays by port name (``q``, …) to be filled before :meth:`solve`.

        ``inputs["q"] = values`` copies as ``inputs["q"][...] = values`` does.
        """
        return self._inputs

    @property
    def contact_positions(self) -> InputArrays:
        """Positions (3,) of moving contacts in their frames [m], by contact; views of the inputs.

        Initially the contacts' placements; filled like :attr:`inputs`. Positions of inactive
        contacts must be finite, too.
        """
        return self._positions

    @property
    def contact_orientations(self) -> InputArrays:
        """Unit quaternions (4,) x, y, z, w of contacts with ``moving="pose"``, by contact.

        The quaternion maps the contact's axes to the axes of its frame.
        """
        return self._orientations

    def activate(self, contacts: Iterable[str]) -> None:
        """Choose the active contacts from the next :meth:`solve` on.

        Raises
        ------
        InputError
            For an unknown contact or a contact named twice; the active set is then unchanged.
        """
        contact_set = self._contact_set
        rows: list[int] = []
        offsets = [0]
        indices = contact_set.indices(contacts)
        for i in indices:
            rows += range(contact_set.row_offsets[i], contact_set.row_offsets[i + 1])
            offsets.append(len(rows))
        self._computation.select(rows)
        solution, names = self.solution, contact_set.names
        solution.contacts = (
            names if len(indices) == len(names) else tuple(names[i] for i in indices)
        )
        solution.row_offsets = tuple(offsets)
        self._constrained = None
        if self._friction is not None:
            self._friction.select()

    def constrained_dynamics(
        self, acceleration: ArrayLike | None = None, regularization: ArrayLike | None = None
    ) -> ConstrainedMotion:
        """Return contact forces and accelerations of the last :meth:`solve`.

        The results are those of
        :meth:`Solution.forces <delassus.solver.solution.Solution.forces>` and
        ``accelerations``, computed by machine code without a new array; where contacts are
        redundant, by several such steps, with some new arrays.

        Parameters
        ----------
        acceleration : (k,) wanted contact accelerations, or one number for all rows; None: the
            values of the last call, initially and after :meth:`activate` 0.
        regularization : (k,) R, or one number for all rows; None as for `acceleration`.

        Raises
        ------
        InputError
            If the problem lacks the output ``a0``, ``qdd0`` or ``MinvJT``, for values that are
            not numbers of this shape, or for a negative or infinite R.
        """
        if self._constrained is None:
            self._constrained = _ConstrainedDynamics(self.solution)
        return self._constrained.compute(acceleration, regularization)

    def set_friction(
        self,
        friction: ArrayLike | Mapping[str, float] | None = None,
        **options: Unpack[ForceOptions],
    ) -> None:
        """Choose the friction of all contacts for :meth:`contact_forces`.

        Friction, normal and dimensions are those of the contacts; where a contact has none, those
        of the arguments.

        Parameters
        ----------
        friction : coefficient μ of contacts that have none; or one for each contact of the
            problem, or by name, instead of the contacts'.
        options : arguments by name, those of
            :class:`~delassus.contact_forces.forces.ForceOptions`; those per contact are for
            all contacts of the problem.

        Raises
        ------
        InputError
            If the problem lacks the output ``a0``, an argument is wrong, or a contact is a
            selection; the friction is then unchanged.
        """
        self._friction = BoundFriction(self.solution, friction, options)

    def contact_forces(self, *, warm: bool = True) -> ContactForces:
        """Return the contact forces with friction of the last :meth:`solve`.

        The result is always the same object for the same active contacts, and its arrays are
        overwritten by the next call; ``copy()`` keeps them. Nothing is allocated but at the first
        call after :meth:`activate`. The forces have the bits of
        :meth:`Solution.contact_forces <delassus.solver.solution.Solution.contact_forces>`
        from the same start. The status is NOT_FINITE where that of the solution is not OK.

        Parameters
        ----------
        warm : begin with the forces of the last call, of the contacts that still touch, by name;
            contacts that were not active then begin with 0. False: begin with 0, so that the
            result depends on this solution alone.

        Raises
        ------
        InputError
            If no friction was set.
        """
        if self._friction is None:
            raise InputError("no friction was set; expected bound.set_friction(0.6) before")
        return self._friction.compute(warm)

    def task(self, task: Iterable[str] | str, given: Iterable[str] | str = ()) -> BoundTask:
        """Return the quantities of a task while contacts are held, after each :meth:`solve`.

        :meth:`Solution.task <delassus.solver.solution.Solution.task>` describes them;
        :meth:`BoundTask.compute` computes them by machine code without a new array.

        Parameters
        ----------
        task, given : names of contacts that are active when :meth:`BoundTask.compute` is called.

        Raises
        ------
        InputError
            If a contact is not active, is named twice, or is task and held.
        """
        return BoundTask(self.solution, task, given)

    def solve(self, q: ArrayLike | None = None, /, **others: object) -> Solution:
        """Compute G at the present inputs for the active contacts.

        Check :attr:`Solution.status` before using the matrix: the status also reports singular
        loops, couplings that do not hold and positions beyond 10⁶ rad or m. With loops, q must
        close the loops, which is not checked; :class:`~delassus.closure.Closure` computes
        such a q.

        Parameters
        ----------
        q : (nq,) joint positions [rad, m], written to ``inputs["q"]`` first; a contiguous numpy
            array of float64 is the fastest argument. None: the present inputs.

        Raises
        ------
        InputError
            If q is not numbers of this shape, or for further arguments; nothing is computed
            then. Numbers that are not finite set the status NOT_FINITE.
        """
        if others:
            _refuse(tuple(others))
        return self._computation.solve(q)


def _refuse(names: tuple[str, ...]) -> NoReturn:
    """Refuse arguments of :meth:`DelassusSolver.solve` that :meth:`BoundSolver.solve` lacks."""
    extra = ", ".join(names)
    raise InputError(
        f"BoundSolver.solve takes q alone, not {extra}: choose contacts by bound.activate(names) "
        "and fill bound.inputs by name before"
    )


class _Computation:
    """State of a bound solver; a separate class, so that no object refers to itself."""

    def __init__(
        self, problem: Problem, bound: BoundKernel, algorithm: str, structure: Structure
    ) -> None:
        self._check, self._q = InputCheck(problem), problem.inputs[0]
        self._bound = bound
        self.solution = _BoundSolution(bound.outputs["G"], problem.contacts, algorithm)
        self.solution.problem, self.solution.structure = problem, structure
        secondary = {name: array for name, array in bound.outputs.items() if name != "G"}
        self.solution.secondary = dict(secondary)
        self._slices: list[_Slices] = []
        self._whole: list[Array] = []
        bound.outputs["G"].fill(np.nan)
        for name, full in secondary.items():
            full.fill(np.nan)
            axes = row_of(name).row_axes
            if axes:
                self._slices.append(_Slices(name, full, axes))
            else:
                self._whole.append(full)

    def built_in(self) -> Callable[..., object] | None:
        """Return :meth:`solve` as a built-in function, or None without one."""
        if self.solution.secondary:
            return None
        return self._bound.solve(self.solution.record, self.solution, self.solve, _refuse)

    def select(self, rows: Sequence[int]) -> None:
        """Choose the rows of all outputs."""
        self.solution.status, self.solution.record[_FAILED] = Status.NOT_FINITE, 1.0
        self.solution.matrix = self._bound.select(rows)
        self.solution.matrix.fill(np.nan)
        for slices in self._slices:
            self.solution.secondary[slices.name] = slices.select(rows)
            slices.active.fill(np.nan)

    def solve(self, q: ArrayLike | None = None, /) -> Solution:
        """Compute; see :meth:`BoundSolver.solve`."""
        solution = self.solution
        start = perf_counter()
        status = self._bound.run() if q is None else self._bound.run_at(q)
        if status == NOT_TAKEN:
            self._bound.inputs["q"][...] = self._check.shaped(self._q, q)
            status = self._bound.run()
        solution.record[_FAILED] = float(status != _OK)
        if status:
            solution.status = Status(status)
            solution.matrix.fill(np.nan)
            for slices in self._slices:
                slices.active.fill(np.nan)
            for whole in self._whole:
                whole.fill(np.nan)
        else:
            solution.status = _OK
            for slices in self._slices:
                slices.take()
        solution.compute_time = perf_counter() - start
        return solution


# The docstring of a bound solver's built-in function.
_Computation.solve.__doc__ = BoundSolver.solve.__doc__


@dataclass(slots=True, eq=False)
class ConstrainedMotion:
    """Contact forces and accelerations of a robot; overwritten by the next call.

    Attributes
    ----------
    forces : (k,) contact forces.
    accelerations : (n,) of the independent velocities, under the torques and the forces.
    status : status of the solution; NOT_POSITIVE_DEFINITE if no forces give the wanted
        accelerations, NOT_FINITE on overflow. Forces and accelerations are NaN unless OK.
    """

    forces: Array
    accelerations: Array
    status: Status


@cache
def _constrained_code() -> CompiledLoops:
    def sample(calls: Mapping[str, Callable[..., int]], seed: int) -> bytes:
        random, (k, n) = np.random.default_rng(seed), (6, 9)
        J = random.normal(size=(k, n))
        sizes = k, k, k, n * k, n, k * k, k, n
        blocks = [J @ J.T, *(random.uniform(size=size) for size in sizes)]
        binding = array("q", [k, n, *(block.ctypes.data for block in blocks)])
        outcome = calls["constrained_dynamics"](binding.buffer_info()[0])
        return bytes([outcome]) + b"".join(block.tobytes() for block in blocks)

    public = {"constrained_dynamics": [ctypes.c_void_p]}
    return compiled_loops([constrained_dynamics], public, sample, holds_gil=True)


class _ConstrainedDynamics:
    """Constrained forward dynamics of a bound solution with its present contacts."""

    def __init__(self, solution: Solution) -> None:
        self._solution = solution
        a0, qdd0, response = (solution.output(name) for name in ("a0", "qdd0", "MinvJT"))
        n, k = response.shape
        self._wanted, self._regularization = aligned_zeros(k), aligned_zeros(k)
        L = aligned_zeros(k * k)
        self._motion = ConstrainedMotion(aligned_zeros(k), aligned_zeros(n), _OK)
        arrays = (
            solution.matrix, self._regularization, self._wanted, a0, response, qdd0, L,
            self._motion.forces, self._motion.accelerations,
        )  # fmt: skip
        self._arrays = arrays  # keeps the memory alive that the code reads
        self._a0, self._scales = a0, solution.scales()
        self._binding = array("q", [k, n, *(block.ctypes.data for block in arrays)])
        self._code = _constrained_code()
        function = self._code.calls["constrained_dynamics"]
        self._run = partial(function, self._binding.buffer_info()[0])

    def compute(
        self, acceleration: ArrayLike | None, regularization: ArrayLike | None
    ) -> ConstrainedMotion:
        """Compute; see :meth:`BoundSolver.constrained_dynamics`."""
        solution, motion = self._solution, self._motion
        if acceleration is not None:
            self._wanted[...] = solution.by_row("acceleration", acceleration)
        if regularization is not None:
            self._regularization[...] = solution.regularization_by_row(regularization)
        motion.status = solution.status
        if motion.status is _OK:
            outcome = self._run()
            if outcome == REDUNDANT and not self._run_redundant():
                motion.status = Status.NOT_POSITIVE_DEFINITE
            elif outcome == OVERFLOWED:
                motion.status = Status.NOT_FINITE
        if motion.status is not _OK:
            motion.forces.fill(np.nan)
            motion.accelerations.fill(np.nan)
        return motion

    def _run_redundant(self) -> bool:
        """Compute by proximal steps, as ``Solution.forces``; return whether forces were found."""
        R, wanted, f = self._regularization, self._wanted, self._motion.forces
        own_R, own_wanted = R.copy(), wanted.copy()
        G, scales = self._solution.matrix, self._scales
        weight = PROXIMAL * float(np.abs(G * np.outer(scales, scales)).sum(axis=1).max())
        step = weight / scales**2
        f.fill(0.0)
        before, last = f.copy(), np.inf
        R += step
        try:
            for _ in range(STEPS):
                np.multiply(step, f, wanted)
                wanted += own_wanted
                if self._run() != SOLVED:
                    return False
                change = float(np.linalg.norm((f - before) / scales))
                if is_settled(change, last, float(np.linalg.norm(f / scales))):
                    break
                last = change
                before[...] = f
        finally:
            R[...], wanted[...] = own_R, own_wanted
        right = (own_wanted - self._a0) * scales
        missing = np.linalg.norm((G @ f + own_R * f) * scales - right)
        # After an overflow the result is unknown.
        return bool(missing <= CONTRADICTION * np.linalg.norm(right) < np.inf)


class BoundTask:
    """A task under held contacts on a bound solution; made by :meth:`BoundSolver.task`.

    Attributes
    ----------
    status : status of the solution, or NOT_FINITE if a result overflows; results are NaN unless
        OK.
    """

    def __init__(
        self, solution: Solution, task: Iterable[str] | str, given: Iterable[str] | str
    ) -> None:
        self._solution = solution
        self._task, self._given = task_names(task, given, solution.contacts)
        self.status = solution.status
        self._bind()

    def _bind(self) -> None:
        """Choose rows and addresses for the present active contacts."""
        solution, found = self._solution, self._solution.secondary
        self._matrix, self._contacts = solution.matrix, solution.contacts
        self._task, self._given = task_names(self._task, self._given, solution.contacts)
        rows, contacts = solution.rows(self._task), solution.rows(self._given)
        rank, task_rank = len(contacts), len(rows)
        if solution.structure is not None:
            rank = solution.structure.rank(self._given)
            task_rank = solution.structure.rank((*self._given, *self._task)) - rank
        n = next((len(found[name]) for name in ("MinvJT", "h") if name in found), 0)
        self._code = TaskCode(
            solution.matrix, n, rows, contacts, solution.scales(), rank, task_rank
        )
        self._code.bind(*(found.get(name) for name in ("J", "MinvJT", "h", "JdotV", "a0")))

    def compute(self) -> TaskArrays:
        """Return the quantities at the last :meth:`BoundSolver.solve`; overwritten by each call.

        Raises
        ------
        InputError
            If a contact of the task, or a held contact, is not active any more.
        """
        solution = self._solution
        if solution.matrix is not self._matrix or solution.contacts != self._contacts:
            self._bind()
        self.status = solution.status
        if self.status is _OK and self._code.run():
            self.status = Status.NOT_FINITE
        if self.status is not _OK:
            self._code.invalidate()
        return self._code.arrays


class _Slices:
    """The rows and columns of the active contacts of one output, copied without allocating.

    Parameters
    ----------
    full : the output for all contacts.
    axes : the axes along which rows of contacts lie.
    """

    def __init__(self, name: str, full: Array, axes: Sequence[int]) -> None:
        self.name, self.active = name, full
        self._full = full
        numbers = np.arange(full.shape[axes[0]])
        self._numbers = [numbers[:k] for k in range(len(numbers) + 1)]
        self._chosen = numbers
        # One view per axis and size, made in advance, so that a switch of contacts allocates none.
        buffers = [aligned_zeros(full.size) for _ in axes]
        self._steps: list[list[tuple[int, Array]]] = [[] for _ in self._numbers]
        for k in range(len(numbers)):
            shape = list(full.shape)
            for axis, buffer in zip(axes, buffers, strict=True):
                shape[axis] = k
                self._steps[k].append((axis, buffer[: math.prod(shape)].reshape(shape)))
        self._present = self._steps[-1]

    def select(self, rows: Sequence[int]) -> Array:
        """Choose rows by number; return the array that :meth:`take` fills."""
        self._present, self._chosen = self._steps[len(rows)], self._numbers[len(rows)]
        for i, row in enumerate(rows):
            self._chosen[i] = row
        self.active = self._present[-1][1] if self._present else self._full
        return self.active

    def take(self) -> None:
        """Copy the chosen rows, along one axis after the other."""
        source = self._full
        for axis, target in self._present:
            # Rows are in range; with mode="clip" take() needs no buffer for the output.
            source.take(self._chosen, axis, target, "clip")
            source = target
