"""The largest rank that contacts can have on a robot: structure, told apart from posture.

Four points on one flat foot own twelve rows of which only six can ever be independent; that is
no fault of the posture. A structural rank is the rank at generic configurations: almost every
configuration has it, none has more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.algorithms.base import Status
from delassus_ros.arguments import count as whole
from delassus_ros.arguments import number, numbers
from delassus_ros.compiler.kernel import Array
from delassus_ros.contacts import ContactSet
from delassus_ros.errors import InputError, NumericalError, ProblemError
from delassus_ros.inputs import InputCheck
from delassus_ros.model.robot import JointKind, Robot
from delassus_ros.solver import DelassusSolver

if TYPE_CHECKING:
    from delassus_ros.closure import Closure

RANK_TOLERANCE = 1e-10
"""Eigenvalues below this fraction of the largest count as zero.

The computed matrix carries an error of about 1e-16 times the condition number of the mass
matrix, which is 1e3 to 1e5 for humanoids.
"""
_CACHED = 4096
"""Active sets whose rank is kept; 12 contacts have as many."""


def row_scales(contacts: ContactSet, characteristic_length: float) -> Array:
    """Return the factors (m,) that give all rows the unit of a linear one, 1/kg on the diagonal.

    Linear rows have factor 1, angular ones the characteristic length l: l times an angular
    velocity is the velocity of a point at that distance. A row of a selection that mixes both
    lies in between: |(a, b)| / |(a, b / l)| for its linear part a and angular part b.

    Raises
    ------
    InputError
        If the length is not a positive finite number.
    """
    if not 0.0 < number("characteristic_length", characteristic_length) < np.inf:
        raise InputError(
            f"characteristic_length is {characteristic_length}; expected a positive length in m"
        )
    rows = np.vstack([contact.selection for contact in contacts])
    units = np.array([1.0] * 3 + [1.0 / characteristic_length] * 3)
    scales: Array = np.linalg.norm(rows, axis=1) / np.linalg.norm(rows * units, axis=1)
    return scales


def numerical_rank(eigenvalues: Array, tolerance: float = RANK_TOLERANCE) -> int:
    """Return how many of the eigenvalues, ascending, are not zero beside the largest."""
    if not eigenvalues.size or not eigenvalues[-1] > 0:
        return 0
    return int(np.count_nonzero(eigenvalues > tolerance * eigenvalues[-1]))


def generic_matrices(
    solver: DelassusSolver,
    count: int = 3,
    seed: int = 0,
    configurations: ArrayLike | None = None,
) -> Array:
    """Return G of all contacts (count, m, m) at generic configurations.

    Parameters
    ----------
    solver : computes them.
    count : how many; one is enough but for chance.
    seed : of the random configurations, which keep to the joints' limits.
    configurations : (N, nq) to use instead. A robot with loops or couplings needs them, as its
        joints cannot be drawn independently of each other; see :func:`closed_configurations`.

    Raises
    ------
    ProblemError
        For a robot with loops or couplings without configurations.
    InputError
        If the configurations have the wrong shape or values, or `count` is no whole number from 1
        on.
    NumericalError
        If no matrix could be computed at any of them.
    """
    problem = solver.problem
    count = whole("count", count)
    rng = np.random.default_rng(seed)
    if configurations is not None:
        given = np.atleast_2d(numbers("configurations", configurations))
        if given.ndim != 2 or not len(given):
            raise InputError(
                f"configurations have shape {given.shape}, expected (N, {problem.robot.nq}) with "
                "N >= 1"
            )
        count = len(given)
    elif problem.robot.is_closed:
        raise ProblemError(
            f"robot {problem.robot.name!r} has loops or couplings, so that generic "
            "configurations cannot be drawn joint by joint; give configurations that close them"
        )
    else:
        # More than needed, as some may fail: a massless joint has postures without a matrix.
        given = np.array([_random_q(problem.robot, rng) for _ in range(10 * count)])
    world = any(port.name == "base_orientation" for port in problem.inputs)
    check = InputCheck(problem)
    bound = solver.bind()
    found: list[Array] = []
    for q in given:
        orientation = _random_quaternion(rng) if world else None
        inputs = check.single({"q": q, "base_orientation": orientation})
        for name, values in inputs.items():
            bound.inputs[name][...] = values
        solution = bound.solve()
        if solution.status is Status.OK:
            found.append(solution.matrix.copy())
        if len(found) == count:
            return np.stack(found)
    if not found:
        raise NumericalError(
            f"{solver.algorithm}: no matrix at any of {len(given)} generic configurations of "
            f"robot {problem.robot.name!r}; its mass matrix may be singular everywhere"
        )
    return np.stack(found)


def closed_configurations(closure: Closure, count: int = 3, seed: int = 0) -> Array:
    """Return random configurations (count, nq) at which a robot's loops are closed.

    They lie around the closure's reference, on its branch.

    Raises
    ------
    InputError
        If `count` is no whole number from 1 on.
    NumericalError
        If none is found.
    """
    count = whole("count", count)
    rng = np.random.default_rng(seed)
    found: list[Array] = []
    spread = 0.6
    for _ in range(20 * count):
        offset = rng.uniform(-spread, spread, closure.reference.size)
        result = closure.solve(closure.reference + offset)
        if result.status.is_valid:
            found.append(result.q)
            if len(found) == count:
                break
        else:
            spread *= 0.9
    if not found:
        raise NumericalError(
            f"robot {closure.robot.name!r}: no closed configuration besides the reference: "
            f"{result.status.name} {result.about}"
        )
    return np.stack(found)


class StructuralRank:
    """The structural rank of any set of active contacts, computed once per set.

    Parameters
    ----------
    matrices : (N, m, m) G of all contacts at generic configurations; see
        :func:`generic_matrices`.
    scales : (m,) factors of the rows; see :func:`row_scales`.

    Raises
    ------
    InputError
        If the matrices are no finite numbers, or the shapes do not fit.
    """

    def __init__(self, matrices: ArrayLike, scales: Array) -> None:
        given = numbers("generic matrices", matrices)
        m = scales.size
        if given.ndim != 3 or given.shape[0] < 1 or given.shape[1:] != (m, m):
            raise InputError(
                f"generic matrices have shape {given.shape}, expected (N, {m}, {m}) with N >= 1"
            )
        if not np.isfinite(given).all():
            raise InputError("generic matrices have entries that are not finite")
        self._matrices = given * np.outer(scales, scales)
        self._ranks: dict[tuple[int, ...], int] = {}

    def of(self, rows: Sequence[int]) -> int:
        """Return the rank of the matrix of these rows, numbered among those of all contacts."""
        key = tuple(rows)
        rank = self._ranks.get(key)
        if rank is None:
            if len(self._ranks) >= _CACHED:
                self._ranks.clear()
            rank = self._ranks[key] = self._rank(key)
        return rank

    def _rank(self, rows: tuple[int, ...]) -> int:
        if not rows:
            return 0
        blocks = self._matrices[:, np.array(rows)[:, np.newaxis], rows]
        return max(numerical_rank(eigenvalues) for eigenvalues in np.linalg.eigvalsh(blocks))


def _random_q(robot: Robot, rng: np.random.Generator) -> Array:
    """Return joint positions within their limits; without limits, up to a half turn or 1 m."""
    q = np.empty(robot.nq)
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        values = q[offset : offset + joint.kind.nq]
        if joint.kind is JointKind.FLOATING:
            values[:3], values[3:] = rng.uniform(-1.0, 1.0, 3), _random_quaternion(rng)
        elif joint.kind is JointKind.PLANAR:
            values[...] = rng.uniform(-1.0, 1.0, 3)
        elif joint.kind.nq:
            reach = np.pi if joint.kind is JointKind.REVOLUTE else 1.0
            low = joint.lower if np.isfinite(joint.lower) else min(-reach, joint.upper - reach)
            high = joint.upper if np.isfinite(joint.upper) else max(reach, low + reach)
            values[...] = rng.uniform(low, high)
    return q


def _random_quaternion(rng: np.random.Generator) -> Array:
    values = rng.normal(size=4)
    return np.asarray(values / np.linalg.norm(values))
