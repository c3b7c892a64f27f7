"""Spatial algebra over scalars, angular first, in the axis-aligned frames of the tree.

Spatial vectors are lists of six scalars [angular, linear]. Transforms use what the tree
guarantees: a joint rotates about a coordinate axis, and the constant rotation is often the
identity. Source of the formulas: Featherstone, Rigid Body Dynamics Algorithms, ch. 2 and A.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from delassus.model.robot import WORLD
from delassus.problem import Problem
from delassus.rbda.tree import (
    NO_BASE,
    NO_ENTRY,
    ContactRows,
    Link,
    MovingPlacement,
    SharedRows,
    Tree,
    Turn,
)
from delassus.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    cross_matrix,
    dot,
    identity,
    is_zero,
    matmul,
    plus,
    sincos,
    transpose,
    zeros,
)
from delassus.scalars.ports import Inputs


def cross(u: Vector, v: Vector) -> Vector:
    """Return u × v as [u×] v, whose order of operations published counts have."""
    return [dot(row, v) for row in cross_matrix(u)]


def motion_cross(v: Vector, u: Vector) -> Vector:
    """Return v × u of motions, angular first."""
    return cross(v[:3], u[:3]) + plus(cross(v[:3], u[3:]), cross(v[3:], u[:3]))


def force_cross(v: Vector, f: Vector) -> Vector:
    """Return v ×* f of a motion and a force, angular first."""
    return plus(cross(v[:3], f[:3]), cross(v[3:], f[3:])) + cross(v[:3], f[3:])


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
        return RigidInertia.of(link).spatial()

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
        """Return H − u vᵀ, symmetric; row and column k of the result are `known`."""

        def entry(h: Scalar, i: int, j: int) -> Scalar:
            if k in (i, j):
                return known[j if i == k else i]
            return h - u[i] * v[j]

        return SpatialInertia(
            _symmetric(lambda i, j: entry(self.A[i][j], i, j)),
            [[entry(self.B[i][j], i, 3 + j) for j in range(3)] for i in range(3)],
            _symmetric(lambda i, j: entry(self.C[i][j], 3 + i, 3 + j)),
        )

    def times(self, a: Vector) -> Vector:
        """Return H a."""
        return [dot(row, a) for row in self.matrix()]

    def minus_product(self, u: Vector, v: Vector) -> SpatialInertia:
        """Return H − u vᵀ, symmetric."""
        return SpatialInertia(
            _symmetric(lambda i, j: self.A[i][j] - u[i] * v[j]),
            [[self.B[i][j] - u[i] * v[3 + j] for j in range(3)] for i in range(3)],
            _symmetric(lambda i, j: self.C[i][j] - u[3 + i] * v[3 + j]),
        )

    def matrix(self) -> Matrix:
        """Return the full 6×6 matrix."""
        bt = transpose(self.B)
        return [self.A[i] + self.B[i] for i in range(3)] + [bt[i] + self.C[i] for i in range(3)]


class RigidInertia:
    """A rigid-body inertia by its ten parameters; transforms map parameters to parameters.

    Attributes
    ----------
    mass : m [kg].
    moment : (3,) m·c [kg·m].
    rotational : (3, 3) symmetric, about the frame's origin [kg·m²].
    """

    __slots__ = ("mass", "moment", "rotational")

    def __init__(self, mass: Scalar, moment: Vector, rotational: Matrix) -> None:
        self.mass, self.moment, self.rotational = mass, moment, rotational

    @classmethod
    def of(cls, link: Link) -> RigidInertia:
        """Return the inertia of a link."""
        return cls(link.mass, list(link.moment), [list(row) for row in link.rotational])

    def __add__(self, other: RigidInertia) -> RigidInertia:
        return RigidInertia(
            self.mass + other.mass,
            [a + b for a, b in zip(self.moment, other.moment, strict=True)],
            _symmetric(lambda i, j: self.rotational[i][j] + other.rotational[i][j]),
        )

    def spatial(self) -> SpatialInertia:
        """Return the same inertia as a 6×6 matrix."""
        mass = [[self.mass if i == j else 0.0 for j in range(3)] for i in range(3)]
        return SpatialInertia(self.rotational, cross_matrix(self.moment), mass)


class JointTransform:
    """The spatial transform between link i and its parent at the present q.

    Rotation by the joint, then the offset, then the constant turns.
    """

    __slots__ = ("_offset", "_turns")

    def __init__(self, link: Link, x: Inputs) -> None:
        self._offset: Vector = list(link.offset)
        self._turns: tuple[Turn, ...] = link.turns
        joint = Turn(link.axis, 0.0, 1.0)
        if link.motion == "revolute":
            s, c = sincos(x["q"][link.q_index] + link.sign * link.angle)
            joint = Turn(link.axis, s if link.sign > 0 else -s, c)
        elif link.motion == "prismatic":
            # The constant part is zero, except on the world.
            q = x["q"][link.q_index] * link.sign
            self._offset[link.axis] = q + self._offset[link.axis]
        self._turns = (joint, *link.turns)

    def force_to_parent(self, f: Vector) -> Vector:
        """Return a force of the child (or a row of K, which maps its twist) in the parent."""
        joint, *turns = self._turns
        moment, force = _turned(joint, f[:3]), _turned(joint, f[3:])
        p = cross_matrix(self._offset)
        moment = [_accumulate(c, row, force) for c, row in zip(moment, p, strict=True)]
        for turn in turns:
            moment, force = _turned(turn, moment), _turned(turn, force)
        return moment + force

    def vector_to_parent(self, v: Vector) -> Vector:
        """Return a free vector (3,) of the child in the parent's axes."""
        for turn in self._turns:
            v = _turned(turn, v)
        return v

    def moving_to_parent(self, momentum: Vector, second: Matrix) -> tuple[Vector, Matrix]:
        """Return ∫ ṙ dm (3,) and ∫ ṙ rᵀ dm (3, 3) of the child in the parent's frame."""
        joint, *turns = self._turns
        momentum, second = _turned(joint, momentum), _turned_general(joint, second)
        second = [
            [w + u * o for w, o in zip(row, self._offset, strict=True)]
            for row, u in zip(second, momentum, strict=True)
        ]
        for turn in turns:
            momentum, second = _turned(turn, momentum), _turned_general(turn, second)
        return momentum, second

    def force_to_child(self, f: Vector) -> Vector:
        """Return a force of the parent (or a row of K, which maps its twist) in the child."""
        # A force about an origin changes as the twist with angular and linear parts exchanged.
        moved = self.motion_to_child(f[3:] + f[:3])
        return moved[3:] + moved[:3]

    def motion_to_child(self, a: Vector) -> Vector:
        """Return a twist or acceleration of the parent in the child."""
        joint, *turns = (Turn(k, -s, c) for k, s, c in self._turns)
        angular, linear = a[:3], a[3:]
        for turn in reversed(turns):
            angular, linear = _turned(turn, angular), _turned(turn, linear)
        # v + ω × p; row i of (p×)ᵀ = −p×.
        p = transpose(cross_matrix(self._offset))
        linear = [_accumulate(v, row, angular) for v, row in zip(linear, p, strict=True)]
        return _turned(joint, angular) + _turned(joint, linear)

    def motion_stages(self) -> list[Matrix]:
        """Return the turns and shifts (6, 6) of :meth:`motion_to_child`, first applied first."""
        joint, *turns = (Turn(k, -s, c) for k, s, c in self._turns)
        stages = [_turn_of_motion(turn) for turn in reversed(turns)]
        if not all(is_zero(o) for o in self._offset):
            shift = identity(6)
            for row, moment in zip(shift[3:], transpose(cross_matrix(self._offset)), strict=True):
                row[:3] = moment
            stages.append(shift)
        return [*stages, _turn_of_motion(joint)]

    def inertia_to_parent(self, h: SpatialInertia) -> SpatialInertia:
        """Return a symmetric inertia of the child in the parent's frame."""
        joint, *turns = self._turns
        h = _shifted(_turned_inertia(joint, h), self._offset)
        for turn in turns:
            h = _turned_inertia(turn, h)
        return h

    def rigid_inertia_to_parent(self, h: RigidInertia) -> RigidInertia:
        """Return a rigid-body inertia of the child in the parent's frame."""
        joint, *turns = self._turns
        moment = _turned(joint, h.moment)
        shifted = [c + h.mass * o for c, o in zip(moment, self._offset, strict=True)]
        # I' = I − p× h× − h'× p×, h' = h + m p: the parallel-axis theorem in these parameters.
        p, before, after = (cross_matrix(v) for v in (self._offset, moment, shifted))
        turned = _turned_symmetric(joint, h.rotational)
        rotational = _symmetric(
            lambda i, j: _accumulate(_accumulate(turned[i][j], p[i], before[j]), after[i], p[j])
        )
        for turn in turns:
            shifted, rotational = _turned(turn, shifted), _turned_symmetric(turn, rotational)
        return RigidInertia(h.mass, shifted, rotational)

    def rotation(self) -> Matrix:
        """Return the rotation matrix child → parent."""
        columns = identity(3)
        for turn in self._turns:
            columns = [_turned(turn, column) for column in columns]
        return transpose(columns)


def _symmetric(entry: Callable[[int, int], Scalar]) -> Matrix:
    """Return the symmetric 3×3 matrix of the upper-triangle function `entry(i, j)`."""
    m = zeros(3, 3)
    for i in range(3):
        for j in range(i, 3):
            m[i][j] = m[j][i] = entry(i, j)
    return m


def _turn_of_motion(turn: Turn) -> Matrix:
    """Return the rotation of angular and linear part (6, 6)."""
    rotation = transpose([_turned(turn, column) for column in identity(3)])
    none = [0.0, 0.0, 0.0]
    return [[*row, *none] for row in rotation] + [[*none, *row] for row in rotation]


def _turned(turn: Turn, v: Vector) -> Vector:
    """Return the 3-vector R v."""
    k, s, c = turn
    a, b = (k + 1) % 3, (k + 2) % 3
    out = list(v)
    out[a], out[b] = c * v[a] - s * v[b], s * v[a] + c * v[b]
    return out


def _turned_inertia(turn: Turn, h: SpatialInertia) -> SpatialInertia:
    """Return an inertia in turned axes."""
    return SpatialInertia(
        _turned_symmetric(turn, h.A), _turned_general(turn, h.B), _turned_symmetric(turn, h.C)
    )


def _turned_symmetric(turn: Turn, m: Matrix) -> Matrix:
    """Return R m Rᵀ, m symmetric.

    With d = m_aa − m_bb and w = 2 m_ab, the turned block is m_aa − s·t, m_bb + s·t and
    m_ab + s·u for t = s·d + c·w and u = c·d − s·w: fewer products than two rotations.
    """
    k, s, c = turn
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


def _turned_general(turn: Turn, m: Matrix) -> Matrix:
    """Return R m Rᵀ for a general m; saves products as :func:`_turned_symmetric` does."""
    k, s, c = turn
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
    """Return `h` about an origin from which the origin of `h` lies at +p."""
    px = cross_matrix(p)
    b = [[_accumulate(h.B[i][j], px[i], [h.C[k][j] for k in range(3)]) for j in range(3)]
         for i in range(3)]  # fmt: skip

    def angular(i: int, j: int) -> Scalar:
        # A' = A + p× Bᵀ + B' (p×)ᵀ
        return _accumulate(_accumulate(h.A[i][j], px[i], h.B[j]), b[i], px[j])

    return SpatialInertia(_symmetric(angular), b, h.C)


def _accumulate(start: Scalar, u: Vector, v: Vector) -> Scalar:
    """Return start + uᵀv, summed in an order that compiles to fused multiply-adds."""
    for a, b in zip(u, v, strict=True):
        start = start + a * b
    return start


def contact_rows(problem: Problem, tree: Tree, x: Inputs) -> dict[int, Matrix]:
    """Return per contact its rows K (k×6): link twist, angular first → contact acceleration.

    Only this function converts the API's linear-first order, the choice of axes and the
    placement of moving contacts to the angular-first order of the algorithms. The selection
    applies after the choice of axes.
    """
    rotations = world_rotations(tree, x) if problem.axes == "world" else {}
    rows: dict[int, Matrix] = {}
    for i, link in enumerate(tree.links):
        for contact in link.contacts:
            turn = rotations[i] if contact.in_world else None
            if contact.moving is not None:
                rows[contact.index] = _moving_rows(contact, contact.moving, x, turn)
            elif turn is None:
                rows[contact.index] = contact.K
            else:
                rows[contact.index] = turned_rows(contact, turn)
    for shared in tree.shared:
        rows.update(_rows_of_ends(tree, x, shared, rows))
    return rows


def _rows_of_ends(
    tree: Tree, x: Inputs, shared: SharedRows, rows: dict[int, Matrix]
) -> dict[int, Matrix]:
    """Return the weighted rows of the ends of a contact of several frames.

    Parameters
    ----------
    rows : rows of each end as of a contact of one frame.
    """
    found: dict[int, Matrix] = {}
    first, *others = shared.ends
    for end, weight in zip(shared.ends, shared.weights, strict=True):
        if end is None or end not in rows:
            continue  # a frame of the world, or an end of another tree
        K, contact = rows[end], tree.contact[end]
        if end in others and shared.together:
            at = WORLD if first is None else tree.link_of[first]
            K = shared.K if first is None else rows[first]
            K = carried_rows(tree, x, K, at, tree.link_of[end])
        elif end in others and first is not None and not contact.in_world:
            K = turned_rows(contact, rotation_to(tree, x, tree.contact[first], end))
        found[end] = K if weight == 1.0 else [[_scaled(k, weight) for k in row] for row in K]
    return found


def _scaled(value: Scalar, weight: float) -> Scalar:
    return -value if weight == -1.0 else weight * value


def rotation_to(tree: Tree, x: Inputs, contact: ContactRows, end: int) -> Matrix:
    """Return the rotation (3, 3) from the link of contact `end` to the axes of a contact."""
    none = [0.0, 0.0, 0.0]
    axes = [[*none, *axis] for axis in transpose(contact.to_link)]
    i, j = tree.link_of[contact.index], tree.link_of[end]
    return [row[3:] for row in carried_rows(tree, x, axes, i, j)]


def carried_rows(tree: Tree, x: Inputs, K: Matrix, first: int, second: int) -> Matrix:
    """Return rows on the twist of one link as rows on that of another, if both were one body."""
    up, down = ([] if i == WORLD else tree.path(i) for i in (first, second))
    for i in up:
        if i not in down:
            transform = JointTransform(tree.links[i], x)
            K = [transform.force_to_parent(row) for row in K]
    for i in reversed(down):
        if i not in up:
            transform = JointTransform(tree.links[i], x)
            K = [transform.force_to_child(row) for row in K]
    return K


def summed(tree: Tree, rows: Matrix) -> Matrix:
    """Return rows of G's contacts from the rows of their ends; zeros for those without ends."""
    if not tree.sums:
        return rows
    nothing: Vector = [0.0] * (len(rows[0]) if rows else 0)
    return [sum_of_rows([rows[k] for k in numbers] or [nothing]) for numbers in tree.sums]


def sum_of_rows(rows: Matrix) -> Vector:
    """Return the sum of rows."""
    total, *rest = rows
    for row in rest:
        total = [a + b for a, b in zip(total, row, strict=True)]
    return total


def summed_matrix(tree: Tree, G: Matrix) -> Matrix:
    """Return G of the contacts from G of their ends, symmetric to the last bit."""
    if not tree.sums:
        return G
    if not G:
        return zeros(len(tree.sums), len(tree.sums))
    found = summed(tree, transpose(summed(tree, G)))
    return [[found[min(r, c)][max(r, c)] for c in range(len(found))] for r in range(len(found))]


def turned_rows(contact: ContactRows, rotation: Matrix) -> Matrix:
    """Return the rows of a contact in axes to which `rotation` turns those of the link."""
    turn, motion = matmul(rotation, contact.to_link), contact.motion
    turned = matmul(turn, motion[:3]) + matmul(turn, motion[3:])
    return matmul(contact.selection, turned)


def _moving_rows(
    contact: ContactRows, moving: MovingPlacement, x: Inputs, rotation: Matrix | None
) -> Matrix:
    """Return the rows of a moving contact.

    Parameters
    ----------
    rotation : link axes → world axes; None for rows in the contact's axes.
    """
    at = list(x["contact_positions"][moving.position : moving.position + 3])
    p = [_accumulate(o, row, at) for o, row in zip(moving.origin, moving.rotation, strict=True)]
    # The axes of the contact's rows as unit vectors d of the link: d·(v + ω × p) and d·ω.
    if rotation is not None:
        axes = rotation
    elif moving.orientation is None:
        axes = transpose(contact.to_link)
    else:
        q = list(x["contact_orientations"][moving.orientation : moving.orientation + 4])
        axes = transpose(matmul(moving.rotation, rotation_of_quaternion(q)))
    cross = transpose(cross_matrix(p))
    moments = matmul(axes, cross)
    linear = [moment + axis for moment, axis in zip(moments, axes, strict=True)]
    return matmul(contact.selection, linear + [[*axis, 0.0, 0.0, 0.0] for axis in axes])


def world_rotations(tree: Tree, x: Inputs) -> dict[int, Matrix]:
    """Return link axes → world axes for the base and every link on the way to a contact."""
    needed: set[int] = set()
    for i, link in enumerate(tree.links):
        is_base = link.motion == "free" and link.q_index == NO_ENTRY
        j = i if link.contacts or is_base else WORLD
        while j != WORLD and j not in needed:
            needed.add(j)
            j = tree.links[j].parent
    rotations: dict[int, Matrix] = {WORLD: identity(3)}
    for i in sorted(needed):
        link = tree.links[i]
        if i in rotations:
            continue
        if link.motion != "free":
            turn = JointTransform(link, x).rotation()
        elif link.q_index != NO_ENTRY:
            first = link.q_index + 3
            turn = _free_rotation(link, list(x["q"][first : first + 4]))
        elif tree.base == NO_BASE:
            turn = _free_rotation(link, list(x["base_orientation"]))
        else:
            rotations.update(_towards_root(tree, x))
            continue
        rotations[i] = matmul(rotations[link.parent], turn)
    return rotations


def _free_rotation(link: Link, quaternion: Vector) -> Matrix:
    """Return the rotation from a link that moves freely to its parent; `link` has its axes."""
    turn = rotation_of_quaternion(quaternion)
    if link.placement is not None:
        turn = matmul(link.placement, turn)
    return turn if link.axes is None else matmul(turn, link.axes)


def _towards_root(tree: Tree, x: Inputs) -> dict[int, Matrix]:
    """Return link axes → world axes of the links from the robot's base to the tree's root."""
    way = tree.path(tree.base)
    base = replace(tree.links[tree.base], placement=tree.links[way[-1]].placement)
    rotations = {tree.base: _free_rotation(base, list(x["base_orientation"]))}
    for i, above in zip(way, way[1:], strict=False):
        back = transpose(JointTransform(tree.links[i], x).rotation())
        rotations[above] = matmul(rotations[i], back)
    return rotations


def rotation_of_quaternion(q: Vector) -> Matrix:
    """Return the rotation matrix of a quaternion x, y, z, w of any norm but zero.

    The result is NaN where the square of the norm overflows or underflows.
    """
    x, y, z, w = q
    half = 0.5 * dot(q, q)
    scale = 1.0 / half
    # Not the constant 1: infinity times zero makes NaN for a norm out of range.
    one = half * scale
    sx, sy, sz = scale * x, scale * y, scale * z
    return [
        [one - (sy * y + sz * z), sx * y - sz * w, sx * z + sy * w],
        [sx * y + sz * w, one - (sx * x + sz * z), sy * z - sx * w],
        [sx * z - sy * w, sy * z + sx * w, one - (sx * x + sy * y)],
    ]
