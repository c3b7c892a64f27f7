"""Identifiable inertial parameters: what torques tell of the inertias of a robot's bodies.

Torques are Y π, and the rows of Y span the same space at any sufficient number of random states:
π enters through B π alone, the base parameters, and what is orthogonal to the rows changes no
torque. M. Gautier, "Numerical Calculation of the Base Inertial Parameters of Robots", Journal of
Robotic Systems 8(4), 1991, takes the rank from a matrix of stacked regressors and independent
columns by a factorisation with pivoting; so does this module, clusters included, the future work
of M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for
Systems with Kinematic Loops".

Columns of a body are scaled to one norm first, so that the rank does not depend on units. The rank
is where the ratio of two consecutive singular values is largest, and that ratio has to be at least
:data:`CLEAR_GAP`, else the mechanism is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from delassus.errors import NumericalError
from delassus.model.spatial import Array

CLEAR_GAP = 1e6
"""Least ratio of the last singular value that counts to the first one that does not."""
_ROUNDING_SHARE = 1e-9
"""Entries of B below this share of the largest are zero but for rounding."""


@dataclass(frozen=True)
class IdentifiableParameters:
    """The parameters that torques depend on, and changes of inertias that no torque shows.

    For all states Y π = ``Y[:, columns] @ B @ π``.

    Attributes
    ----------
    columns : (r,) indices of independent columns of Y.
    names : (r,) body and parameter of each, as ``"shin Ixx"``; B π adds to it what is dependent.
    B : (r, 10 bodies) π → base parameters; the identity at `columns`.
    null_space : (10 bodies, 10 bodies − r) orthonormal columns; adding multiples of them to π
        changes no torque.
    gap : ratio of the singular values on both sides of the rank; inf if all parameters are
        identifiable.
    """

    columns: tuple[int, ...]
    names: tuple[str, ...]
    B: Array
    null_space: Array
    gap: float

    @property
    def rank(self) -> int:
        """Number r of base parameters."""
        return len(self.columns)


def identifiable(stacked: Array, names: list[str]) -> IdentifiableParameters:
    """Return the identifiable parameters of stacked regressors (rows, 10 bodies).

    Raises
    ------
    NumericalError
        If there are fewer rows than columns that are not zero; names both numbers. If the rank is
        not clear; names the singular values.
    """
    scales = np.linalg.norm(stacked, axis=0)
    present = scales > _ROUNDING_SHARE * scales.max(initial=0.0)
    scales = np.where(present, scales, 1.0)
    count = int(present.sum())
    if len(stacked) < count:
        raise NumericalError(
            f"the states give {len(stacked)} rows of regressors for {count} inertial parameters "
            f"with nonzero columns; expected at least {count} rows: pass more configurations q"
        )
    # The triangular factor has the singular values and right directions of all rows.
    reduced = np.linalg.qr(np.where(present, stacked / scales, 0.0), mode="r")
    values, directions = np.linalg.svd(reduced)[1:]
    rank, gap = _rank(values, count)
    rows, unseen = directions[:rank], directions[rank:]
    columns = sorted(_pivots(rows))
    B = np.linalg.solve(rows[:, columns], rows)
    # From scaled parameters to those in their units.
    B *= scales / scales[columns, None]
    B[np.abs(B) < _ROUNDING_SHARE * np.abs(B).max(initial=0.0)] = 0.0
    null_space = np.linalg.qr(unseen.T / scales[:, None])[0]
    return IdentifiableParameters(
        tuple(columns), tuple(names[k] for k in columns), B, null_space, gap
    )


def _rank(values: Array, present: int) -> tuple[int, float]:
    """Return the rank and the ratio of singular values there."""
    values = values[:present]
    if not present:
        return 0, np.inf
    # Below rounding all values are alike.
    floor = np.finfo(float).eps * values[0]
    ratios = values[:-1] / np.maximum(values[1:], floor)
    k = int(np.argmax(ratios)) if len(ratios) else 0
    if len(ratios) and ratios[k] >= CLEAR_GAP:
        return k + 1, float(ratios[k])
    if values[-1] >= values[0] / CLEAR_GAP:
        return present, np.inf
    raise NumericalError(
        "the number of identifiable parameters is not clear: the largest step of singular values "
        f"is from {values[k]:.1e} to {values[k + 1]:.1e}, expected a ratio of {CLEAR_GAP:.0e}"
    )


def _pivots(rows: Array) -> list[int]:
    """Return independent columns of a matrix of full row rank, the longest remainders first."""
    rest = rows.copy()
    found: list[int] = []
    for _ in range(len(rows)):
        k = int(np.argmax(np.linalg.norm(rest, axis=0)))
        found.append(k)
        unit = rest[:, k] / np.linalg.norm(rest[:, k])
        rest -= np.outer(unit, unit @ rest)
    return found
