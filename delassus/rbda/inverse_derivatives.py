"""Derivatives of C-RNEA in closed form, one sweep from the leaves to the root; O(n d).

A joint k that turns or moves further shifts the motion of all links beyond it: in axes that move
with these links, the acceleration of a material point r of velocity ṙ changes by

    δa(r) = Ψ̈(r) + 2 ψ̇ × ṙ   per δq,      δa(r) = 2 Ψ̇(r) + 2 S_ω × ṙ   per δq̇,
    Ψ̇ = v × S,   Ψ̈ = a × S + v × Ψ̇,   ψ̇ the angular part of Ψ̇,

S, Ψ̇ and Ψ̈ rigid motions: S. Singh, R. Russell, P. Wensing, "Efficient Analytical Derivatives of
Rigid-Body Dynamics Using Spatial Vector Algebra", IEEE RA-L, 2022. Summed over the links beyond a
joint, Ψ̈(r) meets their composite inertia I, and ω × ṙ a linear map D ω of twelve numbers,
P = ∫ ṙ dm and W = ∫ ṙ rᵀ dm: D ω = [(tr W) ω − W ω; ω × P]. The twelve take the place of the
paper's 6×6 matrices B. Forces and torques follow as

    g_k = I Ψ̈ + 2 D ψ̇ + S ×* f,   h_k = 2 (I Ψ̇ + D S_ω),   n_k = I S,   e_k = 2 Dᵀ S
    ∂τ_l/∂(q_k, q̇_k, q̈_k) = S_lᵀ (g_k, h_k, n_k)                         l on the way to the root,
    ∂τ_k/∂(q_l, q̇_l) = n_kᵀ Ψ̈_l + e_kᵀ ψ̇_l,  2 n_kᵀ Ψ̇_l + e_kᵀ S_l,ω.

Clusters (M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for
Systems with Kinematic Loops", whose future work this is) have q̇ = E ẏ and q̈ = E ÿ + γ. Along
y_k a joint changes by E_k, its rate by Ė_k and its acceleration by Ë_k, along ẏ_k its rate by E_k
and its acceleration by 2 Ė_k; τ_y = Eᵀ τ adds (∂E/∂y)ᵀ τ. Responses are summed per independent
velocity as soon as they meet, so that a cluster passes as many to its carrier as it has freedoms.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from delassus.model.robot import WORLD
from delassus.rbda.cluster_motion import Accelerations, ClusterMotion
from delassus.rbda.spatial import (
    JointTransform,
    RigidInertia,
    cross,
    force_cross,
    motion_cross,
)
from delassus.rbda.tangents import directions, with_slopes
from delassus.rbda.tree import Link
from delassus.rbda.velocities import force_on_body, motion_of_body, motion_of_link
from delassus.scalars.duals import Dual
from delassus.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    cross_matrix,
    dot,
    identity,
    plus,
    transpose,
    zeros,
)


@dataclass(frozen=True)
class BaseColumns:
    """Columns of a floating base: accelerations of the base, and further torques.

    A column of ∂τ/∂q is M times the acceleration, one of ∂τ/∂ẏ that and the torques.

    Attributes
    ----------
    first : first column of the base.
    by_q, by_rates : per column the acceleration of the base (6,), linear first.
    torques : per column the torques (n,) in ∂τ/∂ẏ.
    """

    first: int = 0
    by_q: dict[int, Vector] = field(default_factory=dict)
    by_rates: dict[int, Vector] = field(default_factory=dict)
    torques: dict[int, Vector] = field(default_factory=dict)


class InverseDerivatives(NamedTuple):
    """Derivatives of τ = ID(y, ẏ, ÿ), each (n, n).

    Attributes
    ----------
    by_q : along the independent velocities; of a floating base along its twist in body axes.
    by_rates : ∂τ/∂ẏ.
    inertia : ∂τ/∂ÿ = M.
    base : accelerations and further torques of the columns of a floating base.
    """

    by_q: Matrix
    by_rates: Matrix
    inertia: Matrix
    base: BaseColumns


@dataclass
class _Response:
    """Forces at a link, in its axes, of an independent velocity y_k of joints beyond the link.

    Attributes
    ----------
    by_q, by_rate, by_acceleration : (6,) forces from the links beyond per unit of y_k, ẏ_k, ÿ_k,
        angular first; `by_acceleration` is also τ_k per unit of the link's acceleration.
    turning : (3,) τ_k per unit of ω, for accelerations 2 ω × ṙ of the material points beyond.
    """

    by_q: Vector = field(default_factory=lambda: [0.0] * 6)
    by_rate: Vector = field(default_factory=lambda: [0.0] * 6)
    by_acceleration: Vector = field(default_factory=lambda: [0.0] * 6)
    turning: Vector = field(default_factory=lambda: [0.0] * 3)

    def plus(
        self, by_q: Vector, by_rate: Vector, by_acceleration: Vector, turning: Vector
    ) -> _Response:
        return _Response(
            plus(self.by_q, by_q),
            plus(self.by_rate, by_rate),
            plus(self.by_acceleration, by_acceleration),
            plus(self.turning, turning),
        )

    def to_parent(self, transform: JointTransform) -> _Response:
        return _Response(
            transform.force_to_parent(self.by_q),
            transform.force_to_parent(self.by_rate),
            transform.force_to_parent(self.by_acceleration),
            transform.vector_to_parent(self.turning),
        )


class _Moving(NamedTuple):
    """2 P and 2 W of the links beyond a joint, which give 2 D; see the module.

    Attributes
    ----------
    momentum : (3,) 2 ∫ ṙ dm.
    second : (3, 3) 2 ∫ ṙ rᵀ dm.
    """

    momentum: Vector
    second: Matrix

    @staticmethod
    def of(link: Link, v: Vector) -> _Moving:
        """Return those of one link at its velocity."""
        H, (angular, linear) = RigidInertia.of(link), (v[:3], v[3:])
        mass, moment = 2.0 * H.mass, [2.0 * c for c in H.moment]
        inertia = H.rotational
        # 2 ∫ r rᵀ dm of the moments of inertia.
        trace = inertia[0][0] + inertia[1][1] + inertia[2][2]
        spread = [
            [(trace if r == c else 0.0) - 2.0 * inertia[r][c] for c in range(3)] for r in range(3)
        ]
        turned = transpose([cross(angular, column) for column in transpose(spread)])
        return _Moving(
            plus([mass * u for u in linear], cross(angular, moment)),
            [plus(row, [u * c for c in moment]) for row, u in zip(turned, linear, strict=True)],
        )

    def plus(self, other: _Moving) -> _Moving:
        second = [plus(*rows) for rows in zip(self.second, other.second, strict=True)]
        return _Moving(plus(self.momentum, other.momentum), second)

    def to_parent(self, transform: JointTransform) -> _Moving:
        return _Moving(*transform.moving_to_parent(self.momentum, self.second))

    def forces(self, angular: Vector) -> Vector:
        """Return 2 D ω."""
        trace = self.second[0][0] + self.second[1][1] + self.second[2][2]
        moment = [
            trace * a - dot(row, angular) for a, row in zip(angular, self.second, strict=True)
        ]
        return moment + cross(angular, self.momentum)

    def turning(self, S: Vector) -> Vector:
        """Return 2 Dᵀ S."""
        trace = self.second[0][0] + self.second[1][1] + self.second[2][2]
        moment = [
            trace * a - dot(column, S[:3])
            for a, column in zip(S[:3], transpose(self.second), strict=True)
        ]
        return plus(moment, cross(self.momentum, S[3:]))


class _LoopRates(NamedTuple):
    """How E changes, per link and column k; without entries where E is constant.

    Attributes
    ----------
    changes : ∂E_k/∂y per link, by k and by the column that y belongs to.
    E_dot : Ė_k per link, the change of q̇ per y_k and half of that of q̈ per ẏ_k.
    E_ddot : Ë_k per link, the change of q̈ per y_k.
    """

    changes: list[dict[int, dict[int, Scalar]]]
    E_dot: list[dict[int, Scalar]]
    E_ddot: list[dict[int, Scalar]]


def inverse_derivatives(motion: ClusterMotion, accelerations: Accelerations) -> InverseDerivatives:
    """Return the derivatives of the torques of :func:`~delassus.rbda.dynamics.c_rnea`.

    Passive torques are not included; see :func:`delassus.rbda.passive.passive_slopes`.

    Parameters
    ----------
    accelerations : of :meth:`ClusterMotion.accelerations`; their independent part is kept.
    """
    return _Sweep(motion, accelerations).run()


class _Sweep:
    """The sweep from the leaves to the root."""

    def __init__(self, motion: ClusterMotion, accelerations: Accelerations) -> None:
        self.motion = motion
        self.a, self.ydd = accelerations
        links = motion.tree.links
        self.joint_accelerations = [
            motion.of_joint(i, self.ydd) + gamma for i, gamma in enumerate(motion.gamma)
        ]
        rest = [0.0] * 3
        self.f = [motion.inertia_force(i, a, rest) for i, a in enumerate(self.a)]
        for i, force in motion.external_forces.items():
            self.f[i] = [b - w for b, w in zip(self.f[i], force, strict=True)]
        self.composite = [RigidInertia.of(link) for link in links]
        self.moving = [_Moving.of(link, v) for link, v in zip(links, motion.v, strict=True)]
        self.responses: list[dict[int, _Response]] = [{} for _ in links]
        self.loops = _loop_rates(motion, self.ydd)
        n = len(motion.problem.velocities)
        self.found = InverseDerivatives(zeros(n, n), zeros(n, n), zeros(n, n), BaseColumns())

    def run(self) -> InverseDerivatives:
        links = self.motion.tree.links
        for i in reversed(range(len(links))):
            if links[i].motion == "free":
                self._base(i)
            else:
                self._joint(i)
        self._armature_between_joints()
        return self.found

    def _joint(self, i: int) -> None:
        motion, link, S = self.motion, self.motion.tree.links[i], self.motion.tree.links[i].freedom
        unit = [1.0 if k == S else 0.0 for k in range(6)]
        E, E_dot, E_ddot = motion.rows[i], self.loops.E_dot[i], self.loops.E_ddot[i]
        rate = motion_cross(motion.v[i], unit)
        acceleration = plus(motion_cross(self.a[i], unit), motion_cross(motion.v[i], rate))
        twice = [2.0 * value for value in rate]
        responses = self.responses[i]
        for k, beyond in responses.items():
            # Links beyond move: torques of this joint.
            for m, e in E.items():
                self._add(
                    m, k, e * beyond.by_q[S], e * beyond.by_rate[S], e * beyond.by_acceleration[S]
                )
            # This joint moves: torques of joints beyond.
            n = beyond.by_acceleration
            by_q = dot(n, acceleration) + dot(beyond.turning, rate[:3])
            by_rate = dot(n, twice) + dot(beyond.turning, unit[:3])
            for m, e in E.items():
                self._add_joint(k, m, 1.0, e, (by_q, by_rate, n[S]), i)
        H, moving = self.composite[i].spatial(), self.moving[i]
        by_acceleration = H.column(S)
        by_rate = plus(H.times(twice), moving.forces(unit[:3]))
        by_q = plus(H.times(acceleration), moving.forces(rate[:3]))
        own = by_q[S], by_rate[S], by_acceleration[S] + link.armature
        for m, left in E.items():
            for k, e in E.items():
                self._add_joint(m, k, left, e, own, i)
        self._add_changes(i)
        by_q = plus(by_q, force_cross(unit, self.f[i]))
        turning = moving.turning(unit)
        for k, e in E.items():
            d, dd = E_dot.get(k, 0.0), E_ddot.get(k, 0.0)
            responses[k] = responses.get(k, _Response()).plus(
                _combined((e, by_q), (d, by_rate), (dd, by_acceleration)),
                _combined((e, by_rate), (2.0 * d, by_acceleration)),
                _combined((e, by_acceleration)),
                _combined((e, turning)),
            )
        if link.parent != WORLD:
            self._pass(i)

    def _pass(self, i: int) -> None:
        """Pass forces, composite inertia and responses of link i to its parent."""
        motion, link = self.motion, self.motion.tree.links[i]
        p, transform = link.parent, motion.transforms[i]
        self.f[p] = plus(self.f[p], transform.force_to_parent(self.f[i]))
        self.f[p] = plus(self.f[p], motion.spin_force(i, self.joint_accelerations[i]))
        self.composite[p] += transform.rigid_inertia_to_parent(self.composite[i])
        self.moving[p] = self.moving[p].plus(self.moving[i].to_parent(transform))
        passed = {k: response.to_parent(transform) for k, response in self.responses[i].items()}
        couple = list(link.couple)
        if any(not isinstance(c, float) or c for c in couple):
            # The spin of a redistributed rotor, a moment on the parent that turns with it.
            spin = [c * motion.rate[i] for c in couple]
            second = [plus(*rows) for rows in zip(
                self.moving[p].second, cross_matrix(spin), strict=True
            )]  # fmt: skip
            self.moving[p] = self.moving[p]._replace(second=second)
            turned = cross(motion.v[p][:3], couple)
            rest = [0.0] * 3
            for k, e in motion.rows[i].items():
                d, dd = self.loops.E_dot[i].get(k, 0.0), self.loops.E_ddot[i].get(k, 0.0)
                passed[k] = passed[k].plus(
                    _combined((d, turned), (dd, couple)) + rest,
                    _combined((e, turned), (2.0 * d, couple)) + rest,
                    _combined((e, couple)) + rest,
                    _combined((e, turned)),
                )
        above = self.responses[p]
        for k, response in passed.items():
            above[k] = above[k].plus(*_parts(response)) if k in above else response

    def _base(self, i: int) -> None:
        """Add rows and columns of a floating base, whose turning turns gravity."""
        motion, link = self.motion, self.motion.tree.links[i]
        first, columns = motion.velocities.first[i], range(6)
        H, moving = self.composite[i].spatial(), self.moving[i]
        gravity = [0.0] * 3 + [-g for g in motion.gravity[i]]
        directions = [motion_of_link(link, unit) for unit in identity(6)]
        for k, beyond in self.responses[i].items():
            forces = (beyond.by_q, beyond.by_rate, beyond.by_acceleration)
            rows = [force_on_body(link, force) for force in forces]
            for r, values in enumerate(zip(*rows, strict=True), start=first):
                self._add(r, k, *values)
        base = BaseColumns(first)
        for c in columns:
            S = directions[c]
            turned, rate = motion_cross(gravity, S), motion_cross(motion.v[i], S)
            torques: Vector = [0.0] * len(self.found.inertia)
            for k, beyond in self.responses[i].items():
                n = beyond.by_acceleration
                torques[k] = dot(beyond.turning, S[:3])
                self._add(k, first + c, dot(n, turned), dot(n, rate) + torques[k], dot(n, S))
            turning = moving.forces(S[:3])
            torques[first : first + 6] = force_on_body(link, turning)
            forces = H.times(turned), plus(H.times(rate), turning), H.times(S)
            rows = [force_on_body(link, force) for force in forces]
            for r, values in enumerate(zip(*rows, strict=True), start=first):
                self._add(r, first + c, *values)
            base.by_q[first + c] = motion_of_body(link, turned)
            base.by_rates[first + c] = motion_of_body(link, rate)
            base.torques[first + c] = torques
        self.found = self.found._replace(base=base)

    def _add(self, m: int, k: int, by_q: Scalar, by_rate: Scalar, inertia: Scalar) -> None:
        for matrix, value in zip(self.found[:3], (by_q, by_rate, inertia), strict=True):
            matrix[m][k] = matrix[m][k] + value

    def _add_joint(
        self, m: int, k: int, left: Scalar, e: Scalar, by: Iterable[Scalar], i: int
    ) -> None:
        """Add to τ_m, per y_k, what the joint of link i changes.

        Parameters
        ----------
        left : factor of τ_m.
        e : E_k of the joint.
        by : changes per unit of the joint's position, rate and acceleration.
        """
        d, dd = self.loops.E_dot[i].get(k, 0.0), self.loops.E_ddot[i].get(k, 0.0)
        by_q, by_rate, by_acceleration = by
        self._add(
            m, k,
            left * (e * by_q + d * by_rate + dd * by_acceleration),
            left * (e * by_rate + 2.0 * d * by_acceleration),
            left * e * by_acceleration,
        )  # fmt: skip

    def _add_changes(self, i: int) -> None:
        """Add (∂E/∂y)ᵀ τ of a joint whose E changes."""
        if not self.loops.changes[i]:
            return
        motion, link = self.motion, self.motion.tree.links[i]
        torque = self.f[i][link.freedom] + link.armature * self.joint_accelerations[i]
        if link.parent != WORLD:
            torque = torque + dot(list(link.couple), self.a[link.parent][:3])
        for cluster in motion.tree.clusters:
            if i in cluster.links:
                row = cluster.armature[cluster.links.index(i)]
                torque = torque + dot(row, [self.joint_accelerations[j] for j in cluster.links])
        for m, changes in self.loops.changes[i].items():
            for k, change in changes.items():
                self.found.by_q[m][k] = self.found.by_q[m][k] + change * torque

    def _armature_between_joints(self) -> None:
        """Add the inertia between the joints of clusters."""
        rows = self.motion.rows
        for cluster in self.motion.tree.clusters:
            for i, row in zip(cluster.links, cluster.armature, strict=True):
                for j, inertia in zip(cluster.links, row, strict=True):
                    for m, left in rows[i].items():
                        for k, e in rows[j].items():
                            self._add_joint(m, k, left, e, (0.0, 0.0, inertia), j)


def _loop_rates(motion: ClusterMotion, ydd: Vector) -> _LoopRates:
    """Return how E of each link changes, by duals along the independent velocities."""
    empty: list[dict[int, dict[int, Scalar]]] = [{} for _ in motion.rows]
    found = _LoopRates(empty, [{} for _ in motion.rows], [{} for _ in motion.rows])
    columns = motion.velocities.varying
    if not columns:
        return found
    x = motion.x
    along = directions(motion.problem, x)
    slopes: dict[tuple[str, int], Vector] = {}
    for place, k in enumerate(columns):
        for entry, change in along[k].items():
            slopes.setdefault(entry, [0.0] * len(columns))[place] = change
    moved = with_slopes(x, slopes)
    rows, gamma = motion.velocities.rows(moved), motion.velocities.biases(moved)
    for i, row in enumerate(rows):
        own = [k for k in row if k in columns]
        if not own:
            continue
        by_y = {k: _slopes(gamma[i], columns).get(k, 0.0) for k in own}
        for m in own:
            change = _slopes(row[m], columns)
            found.changes[i][m] = {k: change.get(k, 0.0) for k in own}
        for k in own:
            changes = [found.changes[i][m][k] for m in own]
            found.E_dot[i][k] = dot(changes, [x["rates"][m] for m in own])
            found.E_ddot[i][k] = by_y[k] + dot(changes, [ydd[m] for m in own])
    return found


def _slopes(value: Scalar, columns: list[int]) -> dict[int, Scalar]:
    """Return the derivatives of a value by column."""
    return dict(zip(columns, value.slopes, strict=True)) if isinstance(value, Dual) else {}


def _parts(response: _Response) -> tuple[Vector, Vector, Vector, Vector]:
    return response.by_q, response.by_rate, response.by_acceleration, response.turning


def _combined(*terms: tuple[Scalar, Vector]) -> Vector:
    """Return a sum of multiples of vectors."""
    (factor, vector), *rest = terms
    total = [factor * value for value in vector]
    for factor, vector in rest:
        total = plus(total, [factor * value for value in vector])
    return total
