"""Derivatives of G and of the other outputs of a problem: products with them, and whole arrays.

Directions and gradients of the configuration have one entry per independent velocity
(:attr:`~delassus.problem.Problem.velocities`): of joints with a quaternion and of a floating
base along the twist in body axes; with loops along the independent joints.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from delassus.arguments import instance, numbers
from delassus.errors import InputError, NumericalError, ProblemError, unknown
from delassus.model.spatial import Array
from delassus.outputs import DIRECTIONS
from delassus.problem import Problem
from delassus.solver import BatchSolution, DelassusSolver, Solution

VARIABLES = ("q", *DIRECTIONS)
"""Inputs with respect to which outputs are differentiated."""


@dataclass(frozen=True, slots=True, eq=False)
class Derivative:
    """Outputs, and a product with their derivatives; with a first axis N in batches.

    Attributes
    ----------
    outputs : the problem's outputs by name.
    products : of :meth:`Gradients.jvp` the changes of the outputs by name, in their shapes; of
        :meth:`Gradients.vjp` the gradients by input: ``q`` (n,), ``rates`` (n,), ``torques``
        (n,), ``gravity`` (3,).
    """

    outputs: dict[str, Array]
    products: dict[str, Array]

    def __getitem__(self, name: str) -> Array:
        """Return a product by name.

        Raises
        ------
        InputError
            For an unknown name; lists the names.
        """
        if name not in self.products:
            raise InputError(unknown("product", name, self.products))
        return self.products[name]


class Gradients:
    """Derivatives of a problem's outputs, compiled at the first call of a method; thread-safe.

    Configurations are single, q of shape (nq,), or batches, (N, nq), which several configurations
    per instruction compute. Results of failed configurations of a batch are NaN.

    Parameters
    ----------
    problem : the problem, with G and any other outputs.
    algorithm : name of a traced algorithm.
    cache : use the disk cache of compiled kernels.

    Raises
    ------
    ProblemError
        If `problem` is no Problem, or has derivatives among its outputs.
    AlgorithmError
        At the first call, for an algorithm that is unknown, refuses the problem or is a back end.
    """

    def __init__(self, problem: Problem, algorithm: str = "pv_osimr", cache: bool = True) -> None:
        instance("problem", problem, Problem, "Problem(robot, contacts)", ProblemError)
        if problem.seeded or "dG" in {port.name for port in problem.outputs}:
            names = ", ".join(port.name for port in problem.outputs)
            raise ProblemError(f"problem has the outputs {names}; expected none of derivatives")
        self._problem, self._algorithm, self._cache = problem, algorithm, cache
        self._names = tuple(port.name for port in problem.outputs)
        self._solvers: dict[frozenset[str], DelassusSolver] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Gradients], tuple[object, ...]]:
        """Pickle by the arguments of the constructor; machine code is not pickled."""
        return type(self), (self._problem, self._algorithm, self._cache)

    @property
    def problem(self) -> Problem:
        """The problem."""
        return self._problem

    @property
    def variables(self) -> tuple[str, ...]:
        """Inputs with respect to which outputs are differentiated: ``q``, ``rates``, …."""
        inputs = {port.name for port in self._problem.inputs}
        return tuple(name for name in VARIABLES if name in inputs)

    def solver(self, *outputs: str) -> DelassusSolver:
        """Return the solver of the problem with other outputs, e.g. ``"G", "q_bar"``.

        Raises
        ------
        ProblemError
            For an unknown output.
        """
        names = frozenset(("G", *outputs))
        with self._lock:
            if names not in self._solvers:
                p = self._problem
                problem = Problem(p.robot, p.contacts, p.axes, names, p.wrenches)
                self._solvers[names] = DelassusSolver(problem, self._algorithm, self._cache)
            return self._solvers[names]

    def vjp(self, cotangents: Mapping[str, ArrayLike], q: ArrayLike, **inputs: Any) -> Derivative:
        """Return the gradients of Σ X̄ · X over outputs X, by reverse mode.

        The cost is some three times that of the outputs, whatever the number of joints.

        Parameters
        ----------
        cotangents : X̄ by output, in the shape of X with all contacts; zero if missing. In a
            batch one for all configurations, or N.
        q : (nq,) or (N, nq).
        inputs : further inputs of the problem, as for ``solve`` and ``solve_batch``.

        Raises
        ------
        InputError
            For an unknown output, or an input of wrong shape.
        NumericalError
            As ``solve``, for a single configuration.
        """
        for name in cotangents:
            if name not in self._names:
                raise InputError(f"cotangents: {unknown('output', name, self._names)}")
        seeds: dict[str, Any] = {}
        for port in self._problem.outputs:
            given = cotangents.get(port.name)
            seeds[f"{port.name}_bar"] = np.zeros(port.shape) if given is None else given
        names = tuple(f"{name}_bar" for name in self.variables)
        found = self._evaluate((*self._names, *names), {"q": q, **inputs, **seeds})
        products = {name.removesuffix("_bar"): found[name] for name in names}
        return Derivative({name: found[name] for name in self._names}, products)

    def jvp(self, tangents: Mapping[str, ArrayLike], q: ArrayLike, **inputs: Any) -> Derivative:
        """Return the changes of all outputs along a direction, by forward mode.

        Parameters
        ----------
        tangents : direction by input: ``q`` (n,) as independent velocities, ``rates`` (n,),
            ``torques`` (n,), ``gravity`` (3,); zero if missing. In a batch one for all
            configurations, or N.
        q, inputs : as for :meth:`vjp`.

        Raises
        ------
        InputError
            For an unknown input, or an input of wrong shape.
        NumericalError
            As ``solve``, for a single configuration.
        """
        for name in tangents:
            if name not in self.variables:
                raise InputError(f"tangents: {unknown('input', name, self.variables)}")
        return self._along(self._names, tangents, {"q": q, **inputs})

    def _along(
        self, outputs: tuple[str, ...], tangents: Mapping[str, ArrayLike], inputs: dict[str, Any]
    ) -> Derivative:
        """Return some outputs and their changes; see :meth:`jvp`."""
        names = (*outputs, *(f"{name}_dot" for name in outputs))
        taken = self.solver(*names).problem.inputs
        for port in taken:
            if port.name.endswith("along"):
                given = tangents.get(port.name.removesuffix("_along") if "_" in port.name else "q")
                inputs[port.name] = np.zeros(port.shape) if given is None else given
        found = self._evaluate(names, inputs)
        products = {name: found[f"{name}_dot"] for name in outputs}
        return Derivative({name: found[name] for name in outputs}, products)

    def matrix(self, q: ArrayLike, active: Iterable[str] | None = None, **inputs: Any) -> Array:
        """Return ∂G/∂y (n, k, k), or (N, n, k, k), in closed form.

        Parameters
        ----------
        q, inputs : as for :meth:`vjp`; inputs of other outputs are not used.
        active : names of the active contacts; all if None.

        Raises
        ------
        InputError, NumericalError
            As ``solve``.
        """
        return self._evaluate(("dG",), {"q": q, **inputs}, active)["dG"]

    def jacobian(self, output: str, variable: str, q: ArrayLike, **inputs: Any) -> Array:
        """Return the derivatives of one output with respect to one input.

        The n directions are one batch of :meth:`jvp`.

        Parameters
        ----------
        output : name of an output of the problem.
        variable : ``"q"``, ``"rates"``, ``"torques"`` or ``"gravity"``.
        q : (nq,).
        inputs : as for :meth:`vjp`; inputs of other outputs are not used.

        Returns
        -------
        An array in the shape of the output with one more axis, last, for the n velocities (3 axes
        of gravity).

        Raises
        ------
        InputError
            For an unknown output or input, an output that does not depend on the input, or an
            input of wrong shape.
        NumericalError
            If the outputs cannot be computed; names the status.
        """
        if output not in self._names:
            raise InputError(unknown("output", output, self._names))
        if variable not in self.variables:
            raise InputError(unknown("input", variable, self.variables))
        if variable not in {port.name for port in self.solver(output).problem.inputs}:
            raise InputError(f"output {output!r} does not depend on input {variable!r}")
        size = 3 if DIRECTIONS.get(variable) == "3" else len(self._problem.velocities)
        position = numbers("q", q)
        if position.ndim != 1:
            raise InputError(f"q has shape {position.shape}, expected ({self._problem.robot.nq},)")
        Q = np.broadcast_to(position, (size, len(position)))
        repeated = {
            name: np.broadcast_to(value, (size, *np.shape(value)))
            if name == "base_orientation" else value
            for name, value in inputs.items()
        }  # fmt: skip
        found = self._along((output,), {variable: np.eye(size)}, {"q": Q, **repeated})[output]
        if not np.isfinite(found).all():
            raise NumericalError(f"output {output!r} has no derivatives at this configuration")
        return np.moveaxis(found, 0, -1)

    def _evaluate(
        self,
        names: tuple[str, ...],
        inputs: dict[str, Any],
        active: Iterable[str] | None = None,
    ) -> dict[str, Array]:
        """Return outputs and products by name."""
        solver = self.solver(*names)
        taken = {port.name for port in solver.problem.inputs}
        unused = {port.name for port in self._problem.inputs} - taken
        inputs = {name: value for name, value in inputs.items() if name not in unused}
        found: Solution | BatchSolution
        if np.ndim(inputs["q"]) == 2:
            found = solver.evaluate_batch(inputs, active)
        else:
            found = solver.evaluate(inputs, active)
        return {"G": found.matrix, **found.secondary}
