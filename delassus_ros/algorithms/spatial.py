"""Spatial algebra over scalars, angular first, in the axis-aligned frames of the tree.

Spatial vectors are lists of six scalars [angular, linear]. Transforms use what the tree
guarantees: a joint rotates about a coordinate axis, and the constant rotation is often the
identity. Source of the formulas: Featherstone, Rigid Body Dynamics Algorithms, ch. 2 and A.4.
"""

from __future__ import annotations

from collections.abc import Callable

from delassus_ros.algorithms.base import Inputs
from delassus_ros.algorithms.scalars import (
    Matrix,
    Scalar,
    Vector,
    dot,
    identity,
    matmul,
    sincos,
    transpose,
    zeros,
)
from delassus_ros.algorithms.tree import NO_ENTRY, ContactRows, Link, Tree
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem


def cross_matrix(v: Vector) -> Matrix:
    """Return [v×]."""
    x, y, z = v
    return [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]


class SpatialInertia:
    """A symmetric 6×6 inertia [[A, B], [Bᵀ, C]] (rigid or articulated).

    A is the angular, C the linear block; both are symmetric and stored in full.
    """

    __slots__ = ("A", "B", "C")

    def __init__(self, a: Matrix, b: Matrix, c: Matrix) -> None:
        self.A, self.B, self.C = a, b, c

    @classmethod
    def of(cls, link: Link) -> SpatialInertia:
        """Return the rigid-body inertia H_i of a link."""
        m = link.mass
        mass = [[m if i == j else 0.0 for j in range(3)] for i in range(3)]
        return cls([list(row) for row in link.rotational], cross_matrix(link.moment), mass)

    def __add__(self, other: SpatialInertia) -> SpatialInertia:
        return SpatialInertia(
            _symmetric(lambda i, j: self.A[i][j] + other.A[i][j]),
            [[self.B[i][j] + other.B[i][j] for j in range(3)] for i in range(3)],
            _symmetric(lambda i, j: self.C[i][j] + other.C[i][j]),
        )

    def column(self, k: int) -> Vector:
        """Return column k: H S for the unit direction S = e_k."""
        if k < 3:
            return [self.A[i][k] for i in range(3)] + [self.B[k][j] for j in range(3)]
        return [self.B[i][k - 3] for i in range(3)] + [self.C[i][k - 3] for i in range(3)]

    def minus_outer(self, u: Vector, v: Vector, k: int, known: Vector) -> SpatialInertia:
        """Return H − u vᵀ, symmetric; its row and column k are known to be `known`."""

        def entry(h: Scalar, i: int, j: int) -> Scalar:
            if k in (i, j):
                return known[j if i == k else i]
            return h - u[i] * v[j]

        return SpatialInertia(
            _symmetric(lambda i, j: entry(self.A[i][j], i, j)),
            [[entry(self.B[i][j], i, 3 + j) for j in range(3)] for i in range(3)],
            _symmetric(lambda i, j: entry(self.C[i][j], 3 + i, 3 + j)),
        )

    def matrix(self) -> Matrix:
        """Return the full 6×6 matrix."""
        bt = transpose(self.B)
        return [self.A[i] + self.B[i] for i in range(3)] + [bt[i] + self.C[i] for i in range(3)]


class JointTransform:
    """The spatial transform between link i and its parent at the present q.

    Rotation Rot(axis, q) about the joint axis, then the constant rotation, then the offset.
    """

    __slots__ = ("_axis", "_cos", "_offset", "_rotation", "_sin")

    def __init__(self, link: Link, x: Inputs) -> None:
        self._axis = link.axis
        self._rotation = link.rotation
        self._offset: Vector = list(link.translation)
        self._sin: Scalar = 0.0
        self._cos: Scalar = 1.0
        if link.motion == "revolute":
            self._sin, self._cos = sincos(x["q"][link.q_index] * link.sign)
        elif link.motion == "prismatic":
            displacement = x["q"][link.q_index] * link.sign
            direction = [
                float(i == link.axis) if link.rotation is None else link.rotation[i][link.axis]
                for i in range(3)
            ]
            self._offset = [
                p + d * displacement for p, d in zip(link.translation, direction, strict=True)
            ]

    def force_to_parent(self, f: Vector) -> Vector:
        """Return a force of the child (or a row of K, which maps its twist) in the parent."""
        moment, force = self.rotate(f[:3]), self.rotate(f[3:])
        p = cross_matrix(self._offset)
        return [moment[i] + dot(p[i], force) for i in range(3)] + force

    def motion_to_child(self, a: Vector) -> Vector:
        """Return a twist or acceleration of the parent in the child."""
        angular = a[:3]
        p = cross_matrix(self._offset)
        linear = [
            _accumulate(v, [-entry for entry in row], angular)
            for v, row in zip(a[3:], p, strict=True)
        ]
        return self.rotate_back(angular) + self.rotate_back(linear)

    def inertia_to_parent(self, h: SpatialInertia) -> SpatialInertia:
        """Return a symmetric inertia of the child in the parent's frame."""
        return _shifted(
            SpatialInertia(
                self._congruence(_rotated_symmetric(h.A, self._axis, self._sin, self._cos)),
                self._congruence(_rotated(h.B, self._axis, self._sin, self._cos), False),
                self._congruence(_rotated_symmetric(h.C, self._axis, self._sin, self._cos)),
            ),
            self._offset,
        )

    def rotate(self, v: Vector) -> Vector:
        """Return a 3-vector of the child in the parent's axes."""
        k = self._axis
        a, b = (k + 1) % 3, (k + 2) % 3
        turned = list(v)
        turned[a] = self._cos * v[a] - self._sin * v[b]
        turned[b] = self._sin * v[a] + self._cos * v[b]
        if self._rotation is None:
            return turned
        return [dot(row, turned) for row in self._rotation]

    def rotate_back(self, v: Vector) -> Vector:
        """Return a 3-vector of the parent in the child's axes."""
        if self._rotation is not None:
            v = [dot(column, v) for column in transpose(self._rotation)]
        k = self._axis
        a, b = (k + 1) % 3, (k + 2) % 3
        turned = list(v)
        turned[a] = self._cos * v[a] + self._sin * v[b]
        turned[b] = self._cos * v[b] - self._sin * v[a]
        return turned

    def _congruence(self, a: Matrix, symmetric: bool = True) -> Matrix:
        """Return R a Rᵀ for the constant rotation R."""
        r = self._rotation
        if r is None:
            return a
        ra = matmul(r, a)
        if not symmetric:
            return matmul(ra, transpose(r))
        return _symmetric(lambda i, j: dot(ra[i], r[j]))


def _symmetric(entry: Callable[[int, int], Scalar]) -> Matrix:
    """Return the symmetric 3×3 matrix of the upper-triangle function `entry(i, j)`."""
    m = zeros(3, 3)
    for i in range(3):
        for j in range(i, 3):
            m[i][j] = m[j][i] = entry(i, j)
    return m


def _rotated_symmetric(m: Matrix, k: int, s: Scalar, c: Scalar) -> Matrix:
    """Return R m Rᵀ, m symmetric, R a rotation about coordinate axis k.

    With d = m_aa − m_bb and w = 2 m_ab, the turned block is m_aa − s·t, m_bb + s·t and
    m_ab + s·u for t = s·d + c·w and u = c·d − s·w: fewer products than two rotations.
    """
    a, b = (k + 1) % 3, (k + 2) % 3
    d, w = m[a][a] - m[b][b], m[a][b] + m[a][b]
    t, u = s * d + c * w, c * d - s * w
    out = zeros(3, 3)
    out[k][k] = m[k][k]
    out[a][a], out[b][b] = m[a][a] - s * t, m[b][b] + s * t
    out[a][b] = out[b][a] = m[a][b] + s * u
    out[a][k] = out[k][a] = c * m[a][k] - s * m[b][k]
    out[b][k] = out[k][b] = s * m[a][k] + c * m[b][k]
    return out


def _rotated(m: Matrix, k: int, s: Scalar, c: Scalar) -> Matrix:
    """Return R m Rᵀ for a general m; the same trick as for symmetric ones."""
    a, b = (k + 1) % 3, (k + 2) % 3
    d, w = m[a][a] - m[b][b], m[a][b] + m[b][a]
    st, su = s * (s * d + c * w), s * (c * d - s * w)
    out = zeros(3, 3)
    out[k][k] = m[k][k]
    out[a][a], out[b][b] = m[a][a] - st, m[b][b] + st
    out[a][b], out[b][a] = m[a][b] + su, m[b][a] + su
    out[a][k], out[b][k] = c * m[a][k] - s * m[b][k], s * m[a][k] + c * m[b][k]
    out[k][a], out[k][b] = c * m[k][a] - s * m[k][b], s * m[k][a] + c * m[k][b]
    return out


def _shifted(h: SpatialInertia, p: Vector) -> SpatialInertia:
    """Return `h` about an origin from which its own origin lies at +p."""
    px = cross_matrix(p)
    b = [[_accumulate(h.B[i][j], px[i], [h.C[k][j] for k in range(3)]) for j in range(3)]
         for i in range(3)]  # fmt: skip

    def angular(i: int, j: int) -> Scalar:
        # A' = A + p× Bᵀ + B' (p×)ᵀ
        return _accumulate(_accumulate(h.A[i][j], px[i], h.B[j]), b[i], px[j])

    return SpatialInertia(_symmetric(angular), b, h.C)


def _accumulate(start: Scalar, u: Vector, v: Vector) -> Scalar:
    """Return start + uᵀv, summed in the order that fuses into multiply-adds."""
    for a, b in zip(u, v, strict=True):
        start = start + a * b
    return start


def contact_rows(problem: Problem, x: Inputs) -> dict[int, Matrix]:
    """Return per contact its rows K (k×6): link twist, angular first → contact acceleration.

    This is the one place where the API's linear-first order and the choice of axes meet the
    angular-first order of the algorithms. The selection applies after the axes are chosen.
    """
    tree = Tree.of(problem)
    rotations = _world_rotations(tree, x) if problem.axes == "world" else {}
    rows: dict[int, Matrix] = {}
    for i, link in enumerate(tree.links):
        for contact in link.contacts:
            if problem.axes == "contact":
                rows[contact.index] = (contact.selection @ contact.motion).tolist()
            else:
                rows[contact.index] = _world_rows(contact, rotations[i])
    return rows


def _world_rows(contact: ContactRows, rotation: Matrix) -> Matrix:
    """Return the rows of a contact in world axes; `rotation` is link axes → world axes."""
    turn = matmul(rotation, contact.to_link.tolist())
    motion = contact.motion.tolist()
    turned = matmul(turn, motion[:3]) + matmul(turn, motion[3:])
    return matmul(contact.selection.tolist(), turned)


def _world_rotations(tree: Tree, x: Inputs) -> dict[int, Matrix]:
    """Return link axes → world axes for every link on the way to a contact."""
    needed: set[int] = set()
    for i, link in enumerate(tree.links):
        j = i if link.contacts else WORLD
        while j != WORLD and j not in needed:
            needed.add(j)
            j = tree.links[j].parent
    rotations: dict[int, Matrix] = {WORLD: identity(3)}
    for i in sorted(needed):
        link = tree.links[i]
        if link.motion == "free":
            root = link.q_index == NO_ENTRY
            first = link.q_index + 3
            turn = rotation_of_quaternion(
                list(x["base_orientation"] if root else x["q"][first : first + 4])
            )
            if link.rotation is not None:
                turn = matmul(link.rotation, turn)
        else:
            joint = JointTransform(link, x)
            turn = transpose([joint.rotate(unit) for unit in identity(3)])
        rotations[i] = matmul(rotations[link.parent], turn)
    return rotations


def rotation_of_quaternion(q: Vector) -> Matrix:
    """Return the rotation matrix of a quaternion x, y, z, w of any norm but zero."""
    x, y, z, w = q
    scale = 2.0 / dot(q, q)
    sx, sy, sz = scale * x, scale * y, scale * z
    return [
        [1.0 - (sy * y + sz * z), sx * y - sz * w, sx * z + sy * w],
        [sx * y + sz * w, 1.0 - (sx * x + sz * z), sy * z - sx * w],
        [sx * z - sy * w, sy * z + sx * w, 1.0 - (sx * x + sy * y)],
    ]
