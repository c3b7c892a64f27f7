"""Results of other software and of the definition, in this package's order and velocities.

``outputs(problem, inputs)`` of each module returns expected outputs by name.
"""

from __future__ import annotations

import numpy as np

from delassus import Problem, Robot

GRAVITY = np.array([1.0, -2.0, -9.0])
"""Along no axis of a base [m/s²]."""


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    """Return the relative error by Frobenius norms."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected, dtype=float)
    return float(np.linalg.norm(found - expected) / max(np.linalg.norm(expected), 1e-300))


def symmetric(upper: np.ndarray) -> np.ndarray:
    """Return the matrix of which only the upper triangle is given."""
    return np.triu(upper) + np.triu(upper, 1).T


def independent_columns(problem: Problem) -> list[int]:
    """Return the entries of v (nv,) that are independent, in the order of the outputs."""
    columns = columns_of(problem.robot)
    names = dict.fromkeys(problem.velocities)
    return [k for name in names for k in range(columns[name].start, columns[name].stop)]


def columns_of(robot: Robot) -> dict[str, slice]:
    """Return each joint's entries of v (nv,), by name."""
    starts = zip(robot.joints, robot.v_offsets, strict=True)
    return {joint.name: slice(start, start + joint.kind.nv) for joint, start in starts}


def coupling_rows(robot: Robot) -> np.ndarray:
    """Return the constraint rows (couplings, nv) of the couplings."""
    columns = columns_of(robot)
    rows = np.zeros((len(robot.couplings), robot.nv))
    for row, coupling in zip(rows, robot.couplings, strict=True):
        for name, ratio in coupling.ratios:
            row[columns[name]] = ratio
    return rows


def eliminate(K: np.ndarray, free: list[int]) -> np.ndarray:
    """Return E (nv, n): the velocities v = E ẏ that the rows K allow, ẏ those of `free`."""
    E = np.zeros((K.shape[1], len(free)))
    E[free, np.arange(len(free))] = 1.0
    bound = np.setdiff1d(np.arange(K.shape[1]), free)
    E[bound] = dependent(K, free, K[:, free])[bound]
    assert np.abs(K @ E).max(initial=0.0) < 1e-9 * max(1.0, np.abs(K).max(initial=0.0)) * max(
        1.0, np.abs(E).max()
    ), "the velocities are no independent ones"
    return E


def dependent(K: np.ndarray, free: list[int], rows: np.ndarray) -> np.ndarray:
    """Return v (nv, …) of K v = -rows whose entries `free` are zero; K may be redundant."""
    found = np.zeros((K.shape[1], *rows.shape[1:]))
    bound = np.setdiff1d(np.arange(K.shape[1]), free)
    if len(bound):
        found[bound] = -np.linalg.lstsq(K[:, bound], rows, rcond=1e-9)[0]
    return found


def responses(M: np.ndarray, J: np.ndarray) -> dict[str, np.ndarray]:
    """Return M, J, M⁻¹Jᵀ and G."""
    MinvJT = np.linalg.solve(M, J.T)
    return {"M": M, "J": J, "MinvJT": MinvJT, "G": J @ MinvJT}
