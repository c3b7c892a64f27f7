"""The largest rank that contacts can have on a robot: structure, told apart from posture.

Four points on one flat foot own twelve rows of which only six can ever be independent; that is
no fault of the posture. A structural rank is the rank at generic configurations, which moving
contacts' placements are part of: almost every configuration has it, none has more. It is a
matter of the model alone: joints whose limits leave no range, or hardly any, are moved all the
same, as the mass matrix lets them move and encoders may say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.arguments import count as whole
from delassus_ros.arguments import numbers
from delassus_ros.contacts import ContactSet, row_scales
from delassus_ros.errors import InputError, NumericalError, ProblemError
from delassus_ros.model.robot import JointKind, Robot
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem
from delassus_ros.scalars.ports import Status
from delassus_ros.solver.contact_space import RANK_TOLERANCE
from delassus_ros.solver.inputs import Given, InputCheck
from delassus_ros.solver.solver import DelassusSolver

if TYPE_CHECKING:
    from delassus_ros.closure import Closure

_NOISE = 1e-13
"""Diagonal entries below this fraction of the largest are rounding, given rows of like size."""
_LENGTH = 0.1
"""How much angular rows count beside linear ones, and how far contacts are moved [m]."""
_RANGE = 0.2
"""Least range that joints are drawn from [rad or m]."""
_CACHED = 4096
"""Active sets whose rank is kept; 12 contacts have as many."""


def unit_scales(contacts: ContactSet) -> Array:
    """Return the factors (m,) with which all rows are of norm 1, angular ones times 0.1 m.

    Whatever the units that a selection is written in, and the length that conditions are weighed
    by.
    """
    rows = np.vstack([contact.selection for contact in contacts])
    scales: Array = row_scales(contacts, _LENGTH) / np.linalg.norm(rows, axis=1)
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

    Moving contacts are placed at random within 0.1 m of their own places, turned in any way.

    Parameters
    ----------
    solver : computes them.
    count : how many; one is enough but for chance.
    seed : of the random configurations, which keep to the joints' limits where these leave a
        range of 0.2 rad or 0.2 m.
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
    check = InputCheck(problem)
    bound = solver.bind()
    found: list[Array] = []
    for q in given:
        inputs = check.single({"q": q, **_random_places(problem, rng)})
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
        result = closure.solve(_with_unit_quaternions(closure.robot, closure.reference + offset))
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


def _with_unit_quaternions(robot: Robot, q: Array) -> Array:
    for joint, start in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.kind is JointKind.FLOATING:
            q[start + 3 : start + 7] /= np.linalg.norm(q[start + 3 : start + 7])
    return q


class StructuralRank:
    """The structural rank of any set of active contacts, computed once per set.

    Parameters
    ----------
    matrices : (N, m, m) G of all contacts at generic configurations; see
        :func:`generic_matrices`.
    scales : (m,) factors that make rows comparable, so that one that is zero can be told from a
        small one; see :func:`unit_scales`. The rank depends on them no further.

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
            rank = self._rank(key)
            self._keep(key, rank)
        return rank

    def witness(self, rows: Sequence[int], rank: int) -> None:
        """Raise the rank of these rows to what a matrix of them was seen to have."""
        key = tuple(rows)
        self._keep(key, max(rank, self._ranks.get(key, 0)))

    def _keep(self, key: tuple[int, ...], rank: int) -> None:
        if len(self._ranks) >= _CACHED and key not in self._ranks:
            self._ranks.clear()
        self._ranks[key] = rank

    def _rank(self, rows: tuple[int, ...]) -> int:
        rank = 0
        for matrix in self._matrices:
            if rank == len(rows):
                break
            noise = _NOISE * float(matrix.diagonal().max())
            rank = max(rank, _rank_of(matrix[np.array(rows)[:, np.newaxis], rows], noise))
        return rank


def _rank_of(rest: Array, noise: float) -> int:
    """Return the rank of a positive semidefinite matrix (k, k), whatever the size of its rows.

    Cholesky's method: the next row is always the one of which those before leave the largest
    part. It counts if that part is more than a fraction of the row itself, and more than noise.

    Parameters
    ----------
    rest : the matrix, which is overwritten with what is left.
    noise : diagonal entries that are rounding.
    """
    left = rest.diagonal()
    own = left.copy()
    for rank in range(len(rest)):
        share = np.divide(left, own, out=np.zeros(len(rest)), where=left > noise)
        j = int(share.argmax())
        if not share[j] > RANK_TOLERANCE:
            return rank
        column = rest[j] / np.sqrt(left[j])
        rest -= np.outer(column, column)
    return len(rest)


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
            short = max(0.0, _RANGE - (high - low)) / 2
            values[...] = rng.uniform(low - short, high + short)
    return q


def _random_places(problem: Problem, rng: np.random.Generator) -> Given:
    """Return a random orientation of the base and random places of moving contacts, as inputs."""
    places: dict[str, Any] = {}
    own = {contact.name: contact.placement.translation for contact in problem.contacts}
    for port in problem.inputs:
        if port.name == "base_orientation":
            places[port.name] = _random_quaternion(rng)
        elif port.name == "contact_positions":
            reach = _LENGTH * np.ones(3)
            places[port.name] = {
                name: own[name] + rng.uniform(-reach, reach) for name in problem.moving
            }
        elif port.name == "contact_orientations":
            places[port.name] = {name: _random_quaternion(rng) for name in problem.turning}
        elif port.name != "q":
            # The matrix does not depend on how the robot moves.
            places[port.name] = np.zeros(port.shape)
    return places


def _random_quaternion(rng: np.random.Generator) -> Array:
    values = rng.normal(size=4)
    return np.asarray(values / np.linalg.norm(values))
