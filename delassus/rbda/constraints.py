"""The constraints of a cluster over scalars: residual, its Jacobian K, the loop Jacobian E.

Paper: M. Chignoli et al., "Recursive Rigid-Body Dynamics Algorithms for Systems with Kinematic
Loops", section II-B. There φ(q) = 0 is the implicit constraint, equation (2), K = ∂φ/∂q, and
G = ∂q/∂y the Jacobian of the explicit constraint, equation (3), here :func:`loop_jacobian`:
K E = 0, and the rows of the independent joints are those of the identity.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from delassus.model.clusters import Cluster, clusters_of
from delassus.model.constraint_rows import function_rows, is_turned, loop_rows, sines, size_of
from delassus.model.joint_group import joints_of
from delassus.model.robot import JointKind, Robot
from delassus.rbda.elimination import Solved, solve, solve_exactly
from delassus.rbda.unknown_constants import constants, specific_constants
from delassus.scalars.duals import VARYING, Dual, next_level
from delassus.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    dot,
    identity,
    is_zero,
    matmul,
    transpose,
)

__all__ = [
    "Continuation",
    "LoopStep",
    "constraint_jacobian",
    "continuation",
    "is_turned",
    "largest_residual",
    "loop_jacobian",
    "newton_step",
    "residual",
    "residual_and_jacobian",
    "rows_that_count",
    "unit_of",
]


@dataclass(frozen=True, eq=False)
class LoopStep:
    """A Newton step towards closed loops.

    Attributes
    ----------
    step : change of each unknown [rad, m].
    residual : the rows before it, see :func:`residual`.
    determinant : changes its sign only where the other joints cease to determine the
        unknowns, if there are as many rows as unknowns; up to a constant factor.
    """

    step: Vector
    residual: Vector
    determinant: Scalar


@dataclass(frozen=True, eq=False)
class Continuation:
    """Relation of the rows of unknown joints to those of the previous configuration.

    Where rows are redundant, the rows that a Newton step uses change along the way, and so
    does their determinant. The determinant of Kᵀ(before) K is the sum, over all choices of
    rows, of the products of their determinants; it vanishes at the latest where K is singular.

    Attributes
    ----------
    determinant : determinant of Kᵀ(before) K.
    squared : determinant of Kᵀ K.
    rows : the entries of K, row by row; lengths in units of their loop's size.
    """

    determinant: Scalar
    squared: Scalar
    rows: Vector


def residual(cluster: Cluster, q: Sequence[Scalar]) -> Vector:
    """Return the constraint rows of a cluster: all 0 where it is closed.

    Parameters
    ----------
    q : (nq,) configuration of the spanning tree [rad, m].

    Returns
    -------
    One number per row: couplings in their order [units of their joints], then loops, linear
    rows first [m], then angular rows [sines of angles], then functions [the function's unit].
    """
    return residual_and_jacobian(cluster, q, metres=True)[0]


def largest_residual(robot: Robot, q: Sequence[float]) -> tuple[float, str]:
    """Return the largest constraint residual of a configuration, and the constraint's name.

    Parameters
    ----------
    q : (nq,) configuration of the spanning tree [rad, m].

    Returns
    -------
    The largest :func:`residual` in absolute value and the name of its constraint, as in
    messages; (0.0, "") for a robot without constraints.
    """
    worst, name = 0.0, ""
    for cluster in clusters_of(robot):
        if not cluster.is_ordinary:
            for value, what in zip(residual(cluster, q), cluster.row_names, strict=True):
                size = abs(float(value))
                if math.isnan(size):
                    return size, what
                if size > worst:
                    worst, name = size, what
    return worst, name


def constraint_jacobian(cluster: Cluster, q: Sequence[Scalar], metres: bool = True) -> Matrix:
    """Return K: the derivative of :func:`residual` by the positions of the cluster's joints.

    Parameters
    ----------
    q : (nq,) configuration of the spanning tree [rad, m].
    metres : gaps of loops are in metres; if False, in units of the size of the loop.

    Returns
    -------
    (rows, joints), columns in the order of ``cluster.joints``; exact also where the cluster
    is not closed. Entries that are zero in every configuration are the float 0.0.
    """
    return residual_and_jacobian(cluster, q, metres)[1]


def loop_bias(cluster: Cluster, q: Sequence[Scalar], rates: Sequence[Scalar]) -> Vector:
    """Return γ = Ė ẏ per joint of a cluster: the derivative of E ẏ in the direction of motion.

    Parameters
    ----------
    q : as for :func:`loop_jacobian`.
    rates : ẏ of the cluster's independent joints.
    """
    moving, motion, level = list(q), list(rates), next_level([*q, *rates])
    E = loop_jacobian(cluster, q)
    for joint, row in zip(cluster.joints, E, strict=True):
        position = cluster.robot.q_offsets[joint]
        moving[position] = Dual(moving[position], [dot(row, motion)], level)
    found = []
    for row in loop_jacobian(cluster, moving):
        slopes = [e.slopes[0] if isinstance(e, Dual) and e.level == level else 0.0 for e in row]
        found.append(dot(slopes, motion))
    return found


def loop_jacobian(cluster: Cluster, q: Sequence[Scalar]) -> Matrix:
    """Return E = ∂q/∂y: the joints of a cluster as functions of its independent joints.

    For couplings alone E is constant, exact and rounded once. Otherwise the dependent part is
    −K_d⁻¹ K_i with rows of K chosen at run time by the size of their pivots; redundant rows
    (a planar four-bar closed by six rows) are allowed.

    Parameters
    ----------
    q : (nq,) configuration of the spanning tree [rad, m]; only the cluster's joints matter.

    Returns
    -------
    (joints, independent joints), rows in the order of ``cluster.joints``; structural zeros and
    ones are floats.

    Raises
    ------
    NumericalError
        On numbers, if the cluster is singular at q; names its constraints. In a trace this is
        a check whose failure is the status SINGULAR_LOOP.
    """
    if cluster.is_ordinary:
        return identity(len(cluster.joints))
    columns = {joint: k for k, joint in enumerate(cluster.joints)}
    dependent = [columns[joint] for joint in cluster.joints if joint not in cluster.independent]
    independent = [columns[joint] for joint in cluster.independent]
    if cluster.is_constant:
        x = constants(cluster)(_constant_dependence(cluster))
    else:
        K, pattern = residual_and_jacobian(cluster, q)[1], _pattern(cluster)
        x = _solved(K, pattern, dependent, independent, cluster.described()).x
    E = [[0.0] * len(independent) for _ in columns]
    for row, k in enumerate(independent):
        E[k] = identity(len(independent))[row]
    for k, row_of_x in zip(dependent, x, strict=True):
        E[k] = list(row_of_x)
    return E


def newton_step(cluster: Cluster, unknown: Sequence[int], q: Sequence[Scalar]) -> LoopStep:
    """Return the Newton step that closes a cluster by moving the joints `unknown`.

    Raises
    ------
    NumericalError
        On numbers, if the other joints do not determine the unknown joints at q.
    """
    values, K = residual_and_jacobian(cluster, q)
    columns = [cluster.joints.index(joint) for joint in unknown]
    a, b = [[row[c] for c in columns] for row in K], [[-value] for value in values]
    pattern = [[row[c] for c in columns] for row in _pattern(cluster)]
    # The residual is constant only if it is always 0; rows of zeros are skipped.
    solved = solve(a, b, pattern, [[VARYING]] * len(b), cluster.described())
    step = [row[0] for row in solved.x]
    return LoopStep(step, residual(cluster, q), solved.determinant)


def continuation(
    cluster: Cluster,
    unknown: Sequence[int],
    before: Sequence[Scalar],
    q: Sequence[Scalar],
) -> Continuation:
    """Return the determinants that show whether unknown joints stay on the same branch.

    Parameters
    ----------
    before : :attr:`Continuation.rows` of the previous configuration.
    """
    rows = rows_that_count(cluster, unknown)
    columns = [cluster.joints.index(joint) for joint in unknown]
    K = residual_and_jacobian(cluster, q)[1]
    now = [[K[r][c] for c in columns] for r in rows]
    u = len(columns)
    then = [list(before[u * r : u * (r + 1)]) for r in range(len(rows))]
    # Both products use one pattern, which fixes the order of pivots and the determinants' signs.
    pattern: Matrix = [[VARYING] * u for _ in columns]
    none: Matrix = [[] for _ in columns]

    def determinant(a: Matrix, b: Matrix) -> Scalar:
        product, what = matmul(transpose(a), b), cluster.described()
        return solve(product, none, pattern, none, what, guarded=False).determinant

    return Continuation(
        determinant(then, now), determinant(now, now), [value for row in now for value in row]
    )


def rows_that_count(cluster: Cluster, unknown: Sequence[int]) -> list[int]:
    """Return the rows that depend on the joints `unknown` in some configuration."""
    columns = [cluster.joints.index(joint) for joint in unknown]
    pattern = _pattern(cluster)
    return [r for r, row in enumerate(pattern) if not all(is_zero(row[c]) for c in columns)]


def unit_of(cluster: Cluster, joint: int) -> float:
    """Return the move of a joint that counts as 1 [rad or m]: 1 rad, or the size of its loop.

    Of a prismatic joint the size of the smallest loop that contains the joint; outside of all
    loops of the cluster, of the largest loop; 1 m where the cluster has no loop.
    """
    robot = cluster.robot
    if robot.joints[joint].kind is JointKind.REVOLUTE:
        return 1.0
    sizes = {loop: size_of(robot, loop) for loop in cluster.loops}
    through = [size for loop, size in sizes.items() if joint in joints_of(robot, loop)]
    return min(through, default=max(sizes.values(), default=1.0))


def residual_and_jacobian(
    cluster: Cluster, q: Sequence[Scalar], metres: bool = False
) -> tuple[Vector, Matrix]:
    """Return :func:`residual` and :func:`constraint_jacobian`; lengths as for the latter."""
    robot = cluster.robot
    values: Vector = []
    K: Matrix = []
    for coupling in cluster.couplings:
        row = [*cluster.factors(coupling), coupling.offset]
        ((*ratios, offset),) = constants((robot, coupling))([row])
        positions = [q[entry] for entry in cluster.entries]
        values.append(offset + dot(ratios, positions))
        K.append(ratios)
    rows = []
    for loop in cluster.loops:
        unit = 1.0 if metres else size_of(robot, loop)
        scalars_of = constants((robot, loop, unit))
        rows.append(loop_rows(robot, loop, q, unit, sines, scalars_of))
    rows += [function_rows(robot, function, q) for function in cluster.functions]
    for gaps, slopes in rows:
        values += gaps
        K += [[row.get(joint, 0.0) for joint in cluster.joints] for row in slopes]
    return values, K


@lru_cache(maxsize=256)
def _pattern(cluster: Cluster) -> Matrix:
    """Return K with its constants, and the varying scalar for entries that depend on q."""
    with specific_constants():
        return residual_and_jacobian(cluster, [VARYING] * cluster.robot.nq)[1]


@lru_cache(maxsize=256)
def _constant_dependence(cluster: Cluster) -> Matrix:
    """Return the dependent rows of E of a cluster of couplings."""
    ratios = [cluster.factors(coupling) for coupling in cluster.couplings]
    split = [cluster.joints.index(joint) for joint in cluster.dependent]
    rest = [cluster.joints.index(joint) for joint in cluster.independent]
    a = [[row[k] for k in split] for row in ratios]
    b = [[-row[k] for k in rest] for row in ratios]
    return solve_exactly(a, b, cluster.described())


def _solved(
    K: Matrix, pattern: Matrix, dependent: list[int], independent: list[int], what: str
) -> Solved:
    def columns(matrix: Matrix, chosen: list[int], sign: float) -> Matrix:
        return [[row[k] * sign for k in chosen] for row in matrix]

    return solve(
        columns(K, dependent, 1.0),
        columns(K, independent, -1.0),
        columns(pattern, dependent, 1.0),
        columns(pattern, independent, -1.0),
        what,
    )
