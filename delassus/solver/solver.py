"""The solver: configuration and active contacts in, Delassus matrix out."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeAlias

from numpy.typing import ArrayLike

from delassus import algorithms
from delassus.algorithms.registry import TracedAlgorithm, evaluate
from delassus.arguments import instance, sized
from delassus.compiler.build import batch_kernel_for, kernel_for
from delassus.compiler.ir.trace import decided, trace
from delassus.compiler.runtime.batch_kernel import Layout
from delassus.compiler.runtime.kernel import Kernel
from delassus.errors import AlgorithmError, InputError, NumericalError, ProblemError
from delassus.model.chains import at_singular_angle, ball_joints
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.rbda.constraints import largest_residual
from delassus.scalars.counts import OperationCount
from delassus.scalars.ports import Status
from delassus.solver.batch import BatchSolution, BatchSolver
from delassus.solver.bound import BoundSolver
from delassus.solver.inputs import InputCheck
from delassus.solver.solution import Solution
from delassus.solver.structural_rank import Structure

_OK = Status.OK
"""Looking up a member of an enumeration takes as long as half of a small kernel."""
_LARGEST_GAP = 1e-8
"""Largest constraint row of a closed robot, as for :class:`~delassus.closure.Closure`."""
_PROBLEM = "Problem(robot, [Contact('LF', frame='LF_FOOT')])"
"""Example of a call that makes a problem, for messages."""


_new = object.__new__

_Binding: TypeAlias = tuple[Callable[..., Solution], Solution, "array[float]", BoundSolver]
"""The method ``solve`` of a bound solver, its solution with the record of its compute time, and
the bound solver itself."""


class _Local(threading.local):
    """The binding of a thread; None until the thread's first call."""

    binding: _Binding | None = None


class DelassusSolver:
    """Computes the Delassus matrix of a problem; thread-safe.

    A copied or pickled solver becomes another solver of the same problem, whose kernel is loaded
    from the disk cache or compiled anew.

    Parameters
    ----------
    problem : the problem to solve.
    algorithm : name of a registered algorithm, or an alias; see
        :func:`delassus.algorithms.names` and :func:`delassus.algorithms.aliases`.
    cache : use the disk cache of compiled kernels.
    prebuilt : the kernel of this problem and algorithm, if available; see
        :mod:`delassus.compiler.worker`.

    Raises
    ------
    AlgorithmError
        For an unknown algorithm, or an algorithm that refuses the problem.
    CompilerError
        If compilation fails.
    ProblemError
        If `problem` is not a Problem.
    """

    def __init__(
        self,
        problem: Problem,
        algorithm: str = "pv_osimr",
        cache: bool = True,
        prebuilt: Kernel | None = None,
    ) -> None:
        self._problem = instance("problem", problem, Problem, _PROBLEM, ProblemError)
        self._algorithm = algorithms.get(algorithm)
        self._name = algorithms.spelling(algorithm)
        if prebuilt is None:
            prebuilt = kernel_for(problem, self._algorithm, use_cache=cache)
        elif (prebuilt.inputs, prebuilt.outputs) != (problem.inputs, problem.outputs):
            raise InputError(
                f"prebuilt has inputs {prebuilt.inputs} and outputs {prebuilt.outputs}; expected "
                f"{problem.inputs} and {problem.outputs}, of this problem"
            )
        self._kernel = prebuilt
        name = self._algorithm.name
        self._structure = Structure(problem, partial(BoundSolver, problem, self._kernel, name))
        self._is_approximate = self._algorithm.approximates(problem)
        self._check = InputCheck(problem)
        self._names = problem.contacts.names
        self._only_q = len(problem.inputs) == 1
        self._local = _Local()
        self._lock = threading.Lock()
        self._cache = cache
        self._batch: BatchSolver | None = None

    def __repr__(self) -> str:
        """Return robot, contacts and algorithm."""
        return f"DelassusSolver({self._problem!r}, {self.algorithm!r})"

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self._problem

    @property
    def algorithm(self) -> str:
        """Name or alias of the algorithm as requested, in the registry's spelling."""
        return self._name

    @property
    def is_approximate(self) -> bool:
        """Whether G differs from J M⁻¹ Jᵀ by more than rounding, as an approximation does."""
        return self._is_approximate

    @property
    def operations(self) -> OperationCount | None:
        """Operation count of the kernel; None for back ends that cannot be counted."""
        return self._kernel.operations

    @property
    def generic_operations(self) -> OperationCount | None:
        """Operation count with unknown constants of the robot, the papers' measure.

        Only operations that depend on the inputs count: operations on constants are done once.
        Unknowns are the constants of the tree of the algorithms; `dense`, which reads the robot
        itself, uses the known constants. Traced at the first access. None for back ends that
        cannot be counted.
        """
        if not isinstance(self._algorithm, TracedAlgorithm):
            return None
        return trace(self._problem, self._algorithm, generic=True).operations

    def structural_rank(self, contacts: Iterable[str]) -> int:
        """Return the largest rank that the matrix of these contacts has in any posture.

        Raises
        ------
        InputError
            For an unknown contact or a contact named twice.
        """
        return self._structure.rank(contacts)

    def bind(self) -> BoundSolver:
        """Return a solver with preallocated buffers and all contacts active.

        Raises
        ------
        AlgorithmError
            If a back end cannot be prepared for the problem.
        """
        return BoundSolver(self._problem, self._kernel, self._name, self._structure)

    def use(self, bound: BoundSolver) -> None:
        """Let :meth:`solve` of this thread use a bound solver that another thread made.

        A thread's first :meth:`solve` otherwise makes a bound solver, which may take long for a
        back end.

        Parameters
        ----------
        bound : result of :meth:`bind` of this solver that is not used elsewhere.

        Raises
        ------
        InputError
            If `bound` is no bound solver, or belongs to another solver.
        """
        instance("bound", bound, BoundSolver, "solver.bind()", InputError)
        if bound.kernel is not self._kernel:
            raise InputError(
                "bound is of another solver; expected what bind() of this solver returned"
            )
        self._adopt(bound)

    def solve(
        self,
        q: ArrayLike,
        active: Iterable[str] | None = None,
        base_orientation: ArrayLike | None = None,
        contact_positions: Mapping[str, ArrayLike] | None = None,
        contact_orientations: Mapping[str, ArrayLike] | None = None,
        rates: ArrayLike | None = None,
        torques: ArrayLike | None = None,
        gravity: ArrayLike | None = None,
        wrenches: Mapping[str, ArrayLike] | ArrayLike | None = None,
        check: bool = False,
    ) -> Solution:
        """Compute G, and the problem's other outputs, once.

        With couplings or loops, q must close the robot (:class:`~delassus.closure.Closure`
        computes such a q): couplings are checked in every call, loops only with `check`.

        Parameters
        ----------
        q : (nq,) joint positions [rad, m], in the order of ``robot.joint_names``, none beyond
            10⁶ rad or m, where angles are rounded by some 1e-10 rad. Couplings must hold to 1e-6
            of 1 plus the size of their terms (:mod:`delassus.model.couplings`).
        active : names of the active contacts; all if None.
        base_orientation : (4,) unit quaternion x, y, z, w of the root link in the world; only
            with ``axes="world"`` and a floating base.
        contact_positions : positions (3,) of moving contacts in their frames [m], by name;
            contacts that are not named keep the placement of the contact set.
        contact_orientations : unit quaternions (4,) x, y, z, w from the contact's axes to its
            frame's, by name of contacts with ``moving="pose"``; with ``axes="contact"``.
        rates, torques, gravity : (n,), (n,), (3,) for outputs that need them; see
            :attr:`Problem.inputs <delassus.problem.Problem.inputs>`.
        wrenches : external wrenches (6,) by frame, or (w, 6); frames not named have zero wrenches.
        check : refuse a q that does not close the robot's couplings, loops and functions to 1e-8
            [m, rad or units of a coupling]; takes longer than the computation of the matrix.

        Returns
        -------
        A :class:`Solution` with separate arrays and status OK.

        Raises
        ------
        InputError
            For a q of wrong size, with entries that are not finite or too far, at which a coupling
            does not hold, or, with `check`, a loop; if `active` is no list of names or has an
            unknown contact; for a missing or superfluous base orientation, a placement of a
            contact that does not move, or a quaternion that is not of unit norm; names the entry
            and its deviation.
        AlgorithmError
            If a back end cannot be prepared for the problem, at a thread's first call.
        NumericalError
            If M is not positive definite or a loop is singular at q, naming the joint or loop, or
            if a back end fails.
        """
        if check:
            self._check_closed(q)
        compute, solution, record, bound = self._local.binding or self._adopt(self.bind())
        if active is None:
            if solution.contacts is not self._names:
                bound.activate(self._names)
        # For arrays, != returns an array.
        elif not isinstance(active, tuple) or active != solution.contacts:
            bound.activate(active)
        plain = (
            self._only_q
            and base_orientation is None
            and contact_positions is None
            and contact_orientations is None
            and rates is None
            and torques is None
            and gravity is None
            and wrenches is None
            and q is not None
        )
        # The status of a plain call also shows whether q is finite and has unit quaternions.
        if plain and compute(q).status is _OK:
            if solution.secondary:
                return solution.copy()
            # Solution.copy without its calls, which are 7 % of solve() for an arm.
            found = _new(Solution)
            found.matrix = solution.matrix.copy()
            found.status = _OK
            found.contacts = solution.contacts
            found.row_offsets = solution.row_offsets
            found.algorithm = solution.algorithm
            found.compute_time = record[0]
            found.secondary = solution.secondary
            found.problem = solution.problem
            found.structure = solution.structure
            return found
        arguments = {
            "q": q,
            "base_orientation": base_orientation,
            "contact_positions": contact_positions,
            "contact_orientations": contact_orientations,
            "rates": rates,
            "torques": torques,
            "gravity": gravity,
            "wrenches": wrenches,
        }
        for name, values in self._check.single(arguments).items():
            bound.inputs[name][...] = values
        if not plain:
            compute()
        if solution.status is not _OK:
            raise self._failed(bound)
        return solution.copy()

    def evaluate(self, inputs: Mapping[str, Any], active: Iterable[str] | None = None) -> Solution:
        """Compute as :meth:`solve` does, with inputs by name, and seeds of derivatives.

        Parameters
        ----------
        inputs : values by name of :attr:`Problem.inputs <delassus.problem.Problem.inputs>`, as
            the arguments of :meth:`solve`.
        active : names of the active contacts; all if None. Seeds ``X_bar`` have the rows of all
            contacts.

        Raises
        ------
        InputError, AlgorithmError, NumericalError
            As :meth:`solve`.
        """
        bound = (self._local.binding or self._adopt(self.bind()))[-1]
        bound.activate(self._names if active is None else active)
        for name, values in self._check.single(inputs).items():
            bound.inputs[name][...] = values
        if bound.solve().status is not _OK:
            raise self._failed(bound)
        return bound.solution.copy()

    def solve_batch(
        self,
        Q: ArrayLike,
        active: Iterable[str] | None = None,
        threads: int = 1,
        base_orientation: ArrayLike | None = None,
        layout: Layout = "rows",
        out: Array | None = None,
        contact_positions: Mapping[str, ArrayLike] | None = None,
        contact_orientations: Mapping[str, ArrayLike] | None = None,
        rates: ArrayLike | None = None,
        torques: ArrayLike | None = None,
        gravity: ArrayLike | None = None,
        wrenches: Mapping[str, ArrayLike] | ArrayLike | None = None,
    ) -> BatchSolution:
        """Compute G, and the problem's other outputs, at many configurations; releases the GIL.

        Several configurations are computed per instruction. With couplings or loops, every q must
        close the robot (:class:`~delassus.closure.Closure` computes such a q): couplings that
        do not hold set the status, loops are not checked.

        Parameters
        ----------
        Q : (N, nq) joint positions [rad, m]; not copied if it is contiguous float64.
        active : names of the active contacts, the same for all; all if None.
        threads : number of threads that share the work, at most one per processor; without free
            processors the calling thread does all work. Worker threads then poll for the next
            call for 1 ms, since waking a thread takes long.
        base_orientation : (N, 4) unit quaternions x, y, z, w; with ``axes="world"`` and a
            floating base.
        layout : ``"rows"``, or ``"columns"`` for structures of arrays: Q is then (nq, N),
            base_orientation (4, N) and the result (k, k, N). Columns are slower than rows for
            thousands of configurations or large k, where columns are far apart in memory.
        out : array for G, writeable, C-contiguous, float64 and without memory in common with the
            inputs; a new array if None.
        contact_positions, contact_orientations : placements of moving contacts by name, as in
            :meth:`solve`: one for all configurations, or (N, 3) and (N, 4), with columns (3, N)
            and (4, N).
        rates, torques, gravity : as in :meth:`solve`, one for all configurations, or (N, n),
            (N, n) and (N, 3), with columns (n, N) and (3, N).
        wrenches : by frame for all configurations, or (w, 6), or (N, 6 w), with columns (6 w, N).

        Returns
        -------
        A :class:`BatchSolution` with a status per configuration, which also reports singular
        loops, open couplings and far positions; results of failed configurations are NaN.

        Raises
        ------
        InputError
            For wrong shapes or names, a quaternion that is not of unit norm, a number of threads
            that is no positive whole number, or an `out` that cannot be written to.
        AlgorithmError
            If the algorithm is a numeric back end, which has no batch kernel.
        """
        arguments = {
            "q": Q,
            "base_orientation": base_orientation,
            "contact_positions": contact_positions,
            "contact_orientations": contact_orientations,
            "rates": rates,
            "torques": torques,
            "gravity": gravity,
            "wrenches": wrenches,
        }
        return (self._batch or self._batch_solver()).solve(arguments, active, threads, layout, out)

    def evaluate_batch(
        self,
        inputs: Mapping[str, Any],
        active: Iterable[str] | None = None,
        threads: int = 1,
    ) -> BatchSolution:
        """Compute as :meth:`solve_batch` does, with inputs by name, and seeds of derivatives.

        Parameters
        ----------
        inputs : values by name, as for :meth:`evaluate`, one for all configurations or N; ``q`` is
            (N, nq), ``X_bar`` (N, …) in the shape of output X.
        active, threads : as for :meth:`solve_batch`.

        Raises
        ------
        InputError, AlgorithmError
            As :meth:`solve_batch`.
        """
        return (self._batch or self._batch_solver()).solve(inputs, active, threads, "rows", None)

    def _batch_solver(self) -> BatchSolver:
        """Return the solver of batches; other threads wait for the compiler."""
        with self._lock:
            if self._batch is None:
                if not isinstance(self._algorithm, TracedAlgorithm):
                    raise AlgorithmError(
                        f"algorithm {self.algorithm!r} is a numeric back end and cannot compute "
                        "batches; call solve() for each configuration"
                    )
                kernel = batch_kernel_for(self._problem, self._algorithm, self._cache)
                self._batch = BatchSolver(self._problem, kernel, self._check)
        return self._batch

    def __reduce__(self) -> tuple[type[DelassusSolver], tuple[object, ...]]:
        """Pickle by the arguments of the constructor; machine code is not pickled."""
        return type(self), (self._problem, self._name, self._cache)

    def _check_closed(self, q: ArrayLike) -> None:
        """Refuse a configuration that does not close the robot."""
        robot = self._problem.robot
        position = sized("q", q, robot.nq, f"robot {robot.name!r}'s", InputError)
        worst, what = largest_residual(robot, position.tolist())
        if not worst <= _LARGEST_GAP:
            raise InputError(
                f"q does not close the robot: {what} is off by {worst:.3g}, at most "
                f"{_LARGEST_GAP:g} is allowed; Closure(robot).solve(positions by joint) finds a q "
                "that does"
            )

    def _adopt(self, bound: BoundSolver) -> _Binding:
        """Let this thread use a bound solver from now on."""
        binding = bound.solve, bound.solution, bound._record, bound
        self._local.binding = binding
        return binding

    def _failed(self, bound: BoundSolver) -> NumericalError:
        """Return the error of a status, or refuse the positions that cause it."""
        q = bound.inputs["q"]
        self._check.refuse_positions(q)
        error = self._numerical_error(bound.solution.status, bound)
        cause = at_singular_angle(ball_joints(self._problem.robot), q)
        return NumericalError(f"{error}; {cause}") if cause else error

    def _numerical_error(self, status: Status, bound: BoundSolver) -> NumericalError:
        """Return the error with the joint at fault, which a computation on floats finds."""
        if isinstance(self._algorithm, TracedAlgorithm):
            values = {name: array_.ravel().tolist() for name, array_ in bound.inputs.items()}
            try:
                problem = decided(self._problem, self._algorithm)
                evaluate(problem, self._algorithm, values)
            except NumericalError as error:
                return error
            except (ZeroDivisionError, OverflowError) as error:
                return NumericalError(f"{self.algorithm}: {error} at q = {values['q']}")
        hint = " (its log says why)" if status is Status.FAILED else ""
        return NumericalError(f"{self.algorithm}: {status.name}{hint} at q = {bound.inputs['q']}")
