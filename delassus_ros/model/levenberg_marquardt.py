"""A step of joints that closes constraints: Levenberg-Marquardt, exact where they are linear."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from delassus_ros.model.spatial import Array

_ZERO = 1e-10
"""Singular values, relative to the largest, of linear columns that depend on each other."""


def closing_step(
    gap: Array,
    jacobian: Array,
    linear: NDArray[np.bool_],
    longest: float,
    each: bool = False,
) -> Array:
    """Return a step that makes the gap of constraints smaller.

    Linear joints take up whatever they can of the gap, however far they have to go for it: a
    rotor behind a gear, or the motor of a screw, turns hundreds of radians while its loop moves by
    one, and must not hold it back. What they leave is for the other joints, in a damped step.

    Parameters
    ----------
    gap : (rows,) constraint rows.
    jacobian : (rows, joints) their derivative.
    linear : (joints,) True for joints whose columns are the same in every configuration.
    longest : longest step of the other joints together, in the units of their columns.
    each : it is the longest step of each of them instead.

    Returns
    -------
    (joints,) the step; the least one of linear joints that say the same.
    """
    columns, curved = jacobian[:, linear], jacobian[:, ~linear]
    # At equal length: what turns a fine screw counts as much as what it moves.
    lengths = np.linalg.norm(columns, axis=0)
    lengths[lengths == 0.0] = 1.0
    columns = columns / lengths
    solve = np.linalg.pinv(columns, rcond=_ZERO)
    left = gap - columns @ (solve @ gap)
    curved_left = curved - columns @ (solve @ curved)
    # Damping by the squared gap keeps convergence quadratic at redundant rows.
    damping = min(float(left @ left), 1.0) * np.eye(curved.shape[1])
    normal = curved_left.T @ curved_left + damping
    moved = -np.linalg.lstsq(normal, curved_left.T @ left, rcond=1e-15)[0]
    length = float(np.abs(moved).max(initial=0.0) if each else np.linalg.norm(moved))
    if length > longest:
        moved *= longest / length
    step = np.zeros(len(linear))
    step[~linear] = moved
    step[linear] = -(solve @ (gap + curved @ moved)) / lengths
    return step
