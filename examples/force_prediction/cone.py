"""The quadratic program whose solution are the contact forces."""

from __future__ import annotations

import clarabel
import numpy as np
import numpy.typing as npt
from scipy import sparse

FloatArray = npt.NDArray[np.float64]

_TOLERANCE = 1e-10  # of Clarabel, relative; its default 1e-8 is seen in small forces


class NoForcesError(RuntimeError):
    """The program was not solved."""


def forces_in_cones(H: FloatArray, b: FloatArray, friction: float) -> FloatArray:
    """Return the forces f that minimise ½ fᵀ H f + bᵀ f, each in its round friction cone.

    Where no cone is active, H f + b = 0: the contacts accelerate as wanted. Where a foot would
    have to pull or to stick harder than friction allows, the nearest motion in the sense of
    H⁻¹ results (Gauss's principle).

    Parameters
    ----------
    H : (3k, 3k) Delassus matrix of k points plus compliance, 1/kg; positive definite.
    b : (3k,) acceleration of the points without contact forces minus the wanted one, m/s².
    friction : coefficient of friction.

    Returns
    -------
    (k, 3) forces on the robot, N; x and y along the floor, z along its normal.

    Raises
    ------
    NoForcesError
        The solver gave up; the message has its status.
    """
    k = len(b) // 3
    if k == 0:
        return np.zeros((0, 3))
    # Clarabel wants s = -A f in its cones {s: s₀ ≥ |(s₁, s₂)|}, here s = (friction·z, x, y).
    to_cone = np.array([[0.0, 0.0, friction], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = _TOLERANCE
    solution = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(H)),
        b,
        sparse.csc_matrix(np.kron(np.eye(k), -to_cone)),
        np.zeros(3 * k),
        [clarabel.SecondOrderConeT(3)] * k,
        settings,
    ).solve()
    # AlmostSolved has missed the tolerance above, by little.
    if solution.status not in (
        clarabel.SolverStatus.Solved,
        clarabel.SolverStatus.AlmostSolved,
    ):
        raise NoForcesError(f"Clarabel ended with status {solution.status}")
    return np.array(solution.x).reshape(k, 3)
