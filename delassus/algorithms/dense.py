"""The textbook: G = J M⁻¹ Jᵀ with dense J and M, straight from the robot's own frames.

R. Featherstone, Rigid Body Dynamics Algorithms, Springer, 2008: M = Σ J_iᵀ I_i J_i (eq. 9.9
ff.) with body Jacobians J_i, then a Cholesky-type solve. O(n³ + m² n), and independent of the
recursive algorithms: it shares neither their tree nor their transforms.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from delassus.algorithms.registry import TracedAlgorithm, register
from delassus.contacts import Contact, RelativeContact
from delassus.model.clusters import Cluster, clusters_of
from delassus.model.robot import WORLD, Joint, JointKind, Robot
from delassus.model.spatial import Array, rotation_between
from delassus.problem import Problem
from delassus.rbda.constraints import constraint_jacobian
from delassus.rbda.row_loops import RowLoops
from delassus.rbda.spatial import rotation_of_quaternion
from delassus.scalars.functions import (
    Matrix,
    Vector,
    cross_matrix,
    dot,
    forward_substitute,
    identity,
    ldl,
    matmul,
    sincos,
    transpose,
    zeros,
)
from delassus.scalars.ports import Inputs, Outputs


@register("dense")
class Dense(TracedAlgorithm):
    """J M⁻¹ Jᵀ by the definition."""

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        mass_matrix, rows = mass_matrix_and_jacobian(problem, x)
        L, D_inverse = ldl(mass_matrix, "the mass matrix")
        Y = [forward_substitute(L, row) for row in rows]
        Z = [[y * d for y, d in zip(row, D_inverse, strict=True)] for row in Y]
        m = len(rows)
        G = zeros(m, m)
        for r in range(m):
            for s in range(r, m):
                G[r][s] = G[s][r] = dot(Z[r], Y[s])
        return {"G": RowLoops(problem, G).matrix}


def mass_matrix_and_jacobian(problem: Problem, x: Inputs) -> tuple[Matrix, Matrix]:
    """Return M (nv, nv) and J (m, nv) of the spanning tree, loops and couplings left aside."""
    robot = problem.robot
    jacobians: list[Matrix] = []
    places: list[tuple[Matrix, Vector]] = []  # rotations and origins of the bodies in the world
    mass_matrix = zeros(robot.nv, robot.nv)
    first = 0
    for i, joint in enumerate(robot.joints):
        q = x["q"][robot.q_offsets[i] : robot.q_offsets[i] + joint.kind.nq]
        rotation, translation, subspace = motion_of(joint, list(q))
        above = zeros(6, robot.nv) if joint.parent == WORLD else jacobians[joint.parent]
        J = matmul(motion_transform(rotation, translation), above)
        for column, direction in enumerate(subspace):
            for r in range(6):
                J[r][first + column] = J[r][first + column] + direction[r]
        jacobians.append(J)
        if joint.kind is JointKind.ROOT and "base_orientation" in x:
            rotation = rotation_of_quaternion(list(x["base_orientation"]))
        parent, start = (identity(3), [0.0] * 3) if joint.parent == WORLD else places[joint.parent]
        origin = [o + dot(row, translation) for o, row in zip(start, parent, strict=True)]
        places.append((matmul(parent, rotation), origin))
        inertia = robot.bodies[i].inertia.matrix().tolist()
        contribution = matmul(transpose(J), matmul(inertia, J))
        for r in range(robot.nv):
            for c in range(robot.nv):
                mass_matrix[r][c] = mass_matrix[r][c] + contribution[r][c]
        mass_matrix[first][first] = mass_matrix[first][first] + joint.armature
        first += joint.kind.nv
    return mass_matrix, contact_jacobian(problem, jacobians, places, x)


def motion_of(joint: Joint, q: Vector) -> tuple[Matrix, Vector, Matrix]:
    """Return the child's rotation and origin in the parent body, and Sᵀ in child axes."""
    axis = joint.axis.tolist()
    rotation: Matrix = identity(3)
    translation: Vector = [0.0, 0.0, 0.0]
    still = [0.0, 0.0, 0.0]
    if joint.kind is JointKind.REVOLUTE:
        rotation, subspace = about(axis, q[0]), [axis + still]
    elif joint.kind is JointKind.PRISMATIC:
        translation, subspace = [a * q[0] for a in axis], [still + axis]
    elif joint.kind is JointKind.PLANAR:
        plane = rotation_between((0.0, 0.0, 1.0), joint.axis).tolist()
        rotation = about(axis, q[2])
        translation = [plane[r][0] * q[0] + plane[r][1] * q[1] for r in range(3)]
        # The plane turned back into child axes: any basis of the same motions gives the same G.
        directions = transpose(plane)[:2]
        subspace = [still + directions[0], still + directions[1], axis + still]
    else:
        subspace = identity(6)
        if joint.kind is JointKind.FLOATING:
            rotation, translation = rotation_of_quaternion(q[3:]), q[:3]
    fixed = joint.placement
    moved = matmul([[v] for v in translation], [[1.0]])
    offset = matmul(fixed.rotation.tolist(), moved)
    origin = [offset[r][0] + float(fixed.translation[r]) for r in range(3)]
    return matmul(fixed.rotation.tolist(), rotation), origin, subspace


def about(axis: Vector, angle: object) -> Matrix:
    """Return the rotation about a unit axis, R = 1 + sin·[a×] + (1 − cos)·[a×]² (Rodrigues)."""
    s, c = sincos(angle)
    a = cross_matrix(axis)
    aa = matmul(a, a)
    one = identity(3)
    return [[one[r][k] + s * a[r][k] + (1.0 - c) * aa[r][k] for k in range(3)] for r in range(3)]


def motion_transform(rotation: Matrix, translation: Vector) -> Matrix:
    """Return X (6, 6), parent twist → child twist, for the child's pose in the parent."""
    E = transpose(rotation)
    lower = matmul(E, cross_matrix(translation))
    top = [E[r] + [0.0, 0.0, 0.0] for r in range(3)]
    return top + [[-value for value in lower[r]] + E[r] for r in range(3)]


def contact_jacobian(
    problem: Problem,
    jacobians: list[Matrix],
    places: list[tuple[Matrix, Vector]],
    x: Inputs,
) -> Matrix:
    """Return J (m, nv): rows linear first, in contact axes or world axes."""
    rows: Matrix = []
    for index, contact in enumerate(problem.rows_of_contacts):
        if not contact.ends:
            momentum = _momentum(problem, jacobians, places)
            rows += momentum if contact.rows == 6 else _velocity(problem, momentum)
            continue
        twists = [_twist(problem, end, jacobians, places, x) for end in contact.ends]
        rotation, _, twist = twists[0]
        if len(twists) > 1:
            twist = _combined(contact, twists)
        if problem.axes_of(index) == "world":
            twist = matmul(rotation, twist[:3]) + matmul(rotation, twist[3:])
        rows += matmul(contact.selection.tolist(), twist)
    return rows


def _combined(contact: Contact, twists: list[tuple[Matrix, Vector, Matrix]]) -> Matrix:
    """Return the weighted sum of the twists of a contact's frames, in the axes of the first.

    The twists of a relative contact are taken at the origin of the first frame.

    Parameters
    ----------
    twists : as of :func:`_twist`.
    """
    rotation, origin, first = twists[0]
    whole = [[contact.weights[0] * value for value in row] for row in first]
    for weight, (turned, place, twist) in zip(contact.weights[1:], twists[1:], strict=True):
        linear = twist[:3]
        if isinstance(contact, RelativeContact):
            arm = [[a - b] for a, b in zip(origin, place, strict=True)]
            in_b = [v for (v,) in matmul(transpose(turned), arm)]
            across = matmul(cross_matrix(in_b), twist[3:])
            linear = [
                [v - w for v, w in zip(*pair, strict=True)]
                for pair in zip(linear, across, strict=True)
            ]
        turn = matmul(transpose(rotation), turned)
        moved = matmul(turn, linear) + matmul(turn, twist[3:])
        whole = [
            [a + weight * b for a, b in zip(*pair, strict=True)]
            for pair in zip(whole, moved, strict=True)
        ]
    return whole


def _velocity(problem: Problem, momentum: Matrix) -> Matrix:
    """Return the rows of the velocity of the centre of mass from those of the momentum."""
    mass = sum(body.inertia.mass for body in problem.robot.bodies)
    return [[value / mass for value in row] for row in momentum[:3]]


def _momentum(
    problem: Problem, jacobians: list[Matrix], places: list[tuple[Matrix, Vector]]
) -> Matrix:
    """Return the centroidal momentum matrix (6, nv), linear first, in the axes of the problem."""
    bodies = problem.robot.bodies
    mass = sum(body.inertia.mass for body in bodies)
    center: Vector = [0.0, 0.0, 0.0]
    for body, (turn, origin) in zip(bodies, places, strict=True):
        h = body.inertia.moment.tolist()
        moved = [body.inertia.mass * o + dot(row, h) for o, row in zip(origin, turn, strict=True)]
        center = [c + m / mass for c, m in zip(center, moved, strict=True)]
    total = zeros(6, problem.robot.nv)
    for body, J, (turn, origin) in zip(bodies, jacobians, places, strict=True):
        own = matmul(body.inertia.matrix().tolist(), J)
        linear, angular = matmul(turn, own[3:]), matmul(turn, own[:3])
        lever = cross_matrix([o - c for o, c in zip(origin, center, strict=True)])
        about = [
            [a + b for a, b in zip(*pair, strict=True)]
            for pair in zip(angular, matmul(lever, linear), strict=True)
        ]
        total = [
            [a + b for a, b in zip(*pair, strict=True)]
            for pair in zip(total, linear + about, strict=True)
        ]
    if problem.axes == "world" or problem.robot.base == "fixed":
        return total
    back = transpose(places[0][0])
    return matmul(back, total[:3]) + matmul(back, total[3:])


def _twist(
    problem: Problem,
    contact: Contact,
    jacobians: list[Matrix],
    places: list[tuple[Matrix, Vector]],
    x: Inputs,
) -> tuple[Matrix, Vector, Matrix]:
    """Return a contact frame's rotation and origin in the world, and its twist in its axes."""
    body = problem.robot.frames[contact.frame].body
    rotation, translation = pose_of(problem, contact, x)
    if body == WORLD:
        return rotation, translation, zeros(6, problem.robot.nv)
    twist = matmul(motion_transform(rotation, translation), jacobians[body])
    turn, origin = places[body]
    moved = [o + dot(row, translation) for o, row in zip(origin, turn, strict=True)]
    return matmul(turn, rotation), moved, twist[3:] + twist[:3]


def pose_of(problem: Problem, contact: Contact, x: Inputs) -> tuple[Matrix, Vector]:
    """Return a contact's rotation and origin in its body."""
    frame = problem.robot.frames[contact.frame].placement
    pose = frame @ contact.placement
    rotation, translation = pose.rotation.tolist(), pose.translation.tolist()
    if contact.name in problem.moving:
        first = 3 * problem.moving.index(contact.name)
        position = [[value] for value in x["contact_positions"][first : first + 3]]
        moved = matmul(frame.rotation.tolist(), position)
        translation = [o + m for o, (m,) in zip(frame.translation.tolist(), moved, strict=True)]
    if contact.name in problem.turning:
        first = 4 * problem.turning.index(contact.name)
        turn = rotation_of_quaternion(list(x["contact_orientations"][first : first + 4]))
        rotation = matmul(frame.rotation.tolist(), turn)
    return rotation, translation


_RANK = 1e-9
"""Relative size below which a singular value of the constraints is zero."""


def definition(problem: Problem, inputs: dict[str, Array]) -> Array:
    """Return G = J N (Nᵀ M N)⁻¹ Nᵀ Jᵀ, N a basis of the motions that all constraints allow.

    Dense, in floats; it shares neither trees nor loop Jacobians with the cluster algorithms.
    """
    values = {name: array.ravel().tolist() for name, array in inputs.items()}
    M, J = (np.array(matrix, dtype=float) for matrix in mass_matrix_and_jacobian(problem, values))
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
    for row in constraint_jacobian(cluster, q.tolist()):
        whole = np.zeros(robot.nv)
        whole[columns] = row
        yield whole / np.linalg.norm(whole) if whole.any() else whole
