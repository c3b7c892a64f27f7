"""The quadratic program of both controllers that stand, by a solver of qpsolvers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import qpsolvers

Array = npt.NDArray[np.float64]
_EXCESS = 1e4
"""Cost of torques beyond the limits [1/(N m)]."""


class UnsolvedError(ValueError):
    """The solver has failed, as on numbers that are not finite."""


def least(
    P: Array,
    p: Array,
    cone: Array,
    bound: Array,
    slope: Array,
    base: Array,
    limits: Array,
    equal: Array | None,
    right: Array | None,
    solver: str,
) -> Array:
    """Return x with least ½ xᵀ P x + pᵀ x, cone x <= bound, equal x = right, in the limits.

    The torques are slope x + base. Where there is no other way, the limits are exceeded, by as
    little as possible: that costs more than anything else.

    Raises
    ------
    UnsolvedError
        If the solver fails.
    """
    n, k = len(p), len(base)
    if not n:
        return np.empty(0)
    inside = np.zeros((len(cone) + 2 * k + 1, n + 1))
    inside[: len(cone), :n] = cone
    inside[len(cone) : -1, :n] = np.vstack([slope, -slope])
    inside[len(cone) :, n] = -1.0
    within = np.concatenate([bound, limits - base, limits + base, [0.0]])
    if equal is not None:
        equal = np.hstack([equal, np.zeros((len(equal), 1))])
    larger = np.zeros((n + 1, n + 1))
    larger[:n, :n], larger[n, n] = P, 1.0
    problem = qpsolvers.Problem(larger, np.append(p, _EXCESS), inside, within, equal, right)
    solution = qpsolvers.solve_problem(problem, solver=solver)
    if not solution.found or solution.x is None or not np.isfinite(solution.x).all():
        raise UnsolvedError(f"{solver} finds no forces")
    return np.asarray(solution.x[:n])
