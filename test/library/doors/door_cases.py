"""Problems for the doors, their matrices by the solver, and gradients by differences."""

from __future__ import annotations

import numpy as np
from small import contacts, walker

from delassus import DelassusSolver, Problem
from delassus.samples import random_inputs

PLAIN = Problem(walker(legs=2), contacts(("point", "surface")))
MOVING = Problem(walker(legs=2), contacts(("point", "surface")), "world", ["h", "a0"])


def sample(problem: Problem) -> dict[str, np.ndarray]:
    return random_inputs(problem, 3)


def weights(problem: Problem) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {port.name: rng.normal(size=port.shape) for port in problem.outputs}


def outputs(problem: Problem, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    solution = DelassusSolver(problem).solve(**inputs)
    return {port.name: solution.output(port.name) for port in problem.outputs}


def gradient(problem: Problem, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the gradient of the weighted sum of outputs by central differences, per entry."""
    bars, solver, step = weights(problem), DelassusSolver(problem), 1e-6

    def total(values: dict[str, np.ndarray]) -> float:
        solution = solver.solve(**values)
        return sum(float(np.sum(bar * solution.output(name))) for name, bar in bars.items())

    found = {}
    for name, values in inputs.items():
        found[name] = np.zeros(values.shape)
        for k in np.ndindex(values.shape):
            sides = []
            for sign in (1.0, -1.0):
                moved = {other: array.copy() for other, array in inputs.items()}
                moved[name][k] += sign * step
                sides.append(total(moved))
            found[name][k] = (sides[0] - sides[1]) / (2 * step)
    return found


def close(found, expected, tolerance: float = 1e-6) -> bool:
    found, expected = np.asarray(found), np.asarray(expected)
    return bool(np.abs(found - expected).max() <= tolerance * max(1.0, np.abs(expected).max()))
