"""The matrix of a robot with closed loops by its definition."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delassus_ros.algorithms.dense import mass_matrix_and_jacobian
from delassus_ros.model.clusters import Cluster, clusters_of
from delassus_ros.model.robot import JointKind, Robot
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem
from delassus_ros.rbda.constraints import constraint_jacobian

_RANK = 1e-9
"""Relative size below which a singular value of the constraints is zero."""


def definition(problem: Problem, inputs: dict[str, Array]) -> Array:
    """Return G = J N (Nᵀ M N)⁻¹ Nᵀ Jᵀ, N a basis of the motions that all constraints allow.

    Dense, in floats; it shares neither trees nor loop Jacobians with the cluster algorithms.
    """
    values = {name: array.ravel().tolist() for name, array in inputs.items()}
    M, J = (np.array(each, dtype=float) for each in mass_matrix_and_jacobian(problem, values))
    N = _allowed(problem.robot, inputs["q"])
    JN = J.reshape(-1, problem.robot.nv) @ N
    return np.asarray(JN @ np.linalg.solve(N.T @ M @ N, JN.T))


def _allowed(robot: Robot, q: Array) -> Array:
    """Return an orthonormal basis (nv, freedoms) of the null space of all constraint rows."""
    rows = [row for cluster in clusters_of(robot) for row in _rows(robot, cluster, q)]
    if not rows:
        return np.eye(robot.nv)
    _, sizes, vectors = np.linalg.svd(np.array(rows))
    rank = int(np.sum(sizes > _RANK * sizes[0]))
    return np.asarray(vectors[rank:].T)


def _rows(robot: Robot, cluster: Cluster, q: Array) -> Iterator[Array]:
    if cluster.is_ordinary:
        return
    kinds: list[JointKind] = [joint.kind for joint in robot.joints]
    columns = [sum(kind.nv for kind in kinds[:i]) for i in cluster.joints]
    for row in constraint_jacobian(robot, cluster, q.tolist()):
        whole = np.zeros(robot.nv)
        whole[columns] = row
        yield whole / np.linalg.norm(whole) if whole.any() else whole
