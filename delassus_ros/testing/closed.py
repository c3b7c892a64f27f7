"""Robots with closed loops: configurations that close them, and G by the definition there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from delassus_ros.algorithms.constraints import constraint_jacobian
from delassus_ros.algorithms.dense import mass_matrix_and_jacobian
from delassus_ros.closure import Closure
from delassus_ros.compiler.samples import sample_inputs
from delassus_ros.errors import NumericalError
from delassus_ros.model.clusters import Cluster, clusters_of
from delassus_ros.model.robot import JointKind, Robot
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem

_WIDEST = 0.5
"""How far from the reference a loop's independent joints are moved [rad or m] at most."""
_SHRINK, _LEAST = 0.9, 1e-3
"""What is left of that after each configuration that does not close, and where trying ends."""
_RANK = 1e-9
"""Relative size below which a singular value of the constraints is zero."""


def closed_inputs(
    problem: Problem, count: int, seed: int = 0, closure: Closure | None = None
) -> list[dict[str, Array]]:
    """Return random inputs whose q closes the loops; any q of an open robot does.

    Ordinary joints are anywhere within ±π, those that couplings tie as well as far as the limits
    of the joints that they turn allow, independent joints of loops near the reference.

    Parameters
    ----------
    closure : the robot's, where it has a reference of its own.

    Raises
    ------
    RobotError
        If a loop does not close at the reference.
    NumericalError
        If the loops hardly ever close near it.
    """
    if not problem.robot.is_closed:
        return [sample_inputs(problem.inputs, problem, seed + k) for k in range(count)]
    closure = closure or Closure(problem.robot)
    found: list[dict[str, Array]] = []
    share = 1.0
    while len(found) < count and share > _LEAST:
        inputs = sample_inputs(problem.inputs, problem, seed)
        result = closure.solve(_measured(problem.robot, closure.reference, inputs["q"], share))
        if result.status.is_valid:
            found.append(inputs | {"q": result.q})
        else:
            share *= _SHRINK
        seed += 1
    if len(found) == count:
        return found
    raise NumericalError(
        f"robot {problem.robot.name!r}: only {len(found)} of {count} configurations close its "
        f"loops near the reference; the last try: {result.status.name.lower()}: {result.about}"
    )


def _measured(robot: Robot, reference: Array, q: Array, share: float) -> dict[str, Any]:
    """Return positions of the independent joints: a share of those in q, around a reference."""
    measured: dict[str, Any] = {}
    for cluster in clusters_of(robot):
        for i in cluster.independent:
            joint = robot.joints[i]
            at = slice(robot.q_offsets[i], robot.q_offsets[i] + joint.kind.nq)
            if cluster.is_ordinary:
                measured[joint.name] = q[at]
            elif cluster.is_constant:
                measured[joint.name] = share * q[at]
            else:
                measured[joint.name] = reference[at] + share * _WIDEST * q[at] / np.pi
    return {name: value for name, value in measured.items() if value.size}


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
