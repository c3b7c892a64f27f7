"""The step over a cluster joint: several links whose rates follow from fewer independent ones.

A cluster joint is a joint with the motion subspaces of all its links. Its step is that of one
joint (:class:`~delassus.rbda.propagation.Propagator`), for several freedoms and taken
at the link that carries the cluster. With the loop Jacobian E, q̇ = E ẏ:

1. inside the cluster the composite-rigid-body algorithm on the articulated inertias of its links
   gives D_s, the inertia seen by the links' joints, F_s, the forces on the carrying link per
   joint acceleration, and κ_s = K S, the rates of the rows per joint rate;
2. D = Eᵀ D_s E, F = F_s E and κ = κ_s E;
3. H ← H − F D⁻¹ Fᵀ, K ← K − κ D⁻¹ Fᵀ and, for the matrix, Ω ← Ω + κ D⁻¹ κᵀ.

D and F D⁻¹ are the quantities (49) of M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive
Rigid-Body Dynamics Algorithms for Systems with Kinematic Loops", H the articulated inertia (55).
With one link and E = 1 these are equations (7), (8) and lines 8 to 10 of PV-OSIMr.
"""

from __future__ import annotations

from delassus.model.robot import WORLD
from delassus.rbda.spatial import JointTransform, SpatialInertia
from delassus.rbda.tree import LinkCluster, Tree
from delassus.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    back_substitute,
    dot,
    forward_substitute,
    ldl,
    matmul,
    transpose,
    zeros,
)
from delassus.scalars.ports import Inputs


class ClusterPropagator:
    """The force propagator of a cluster joint, with D = L diag(d) Lᵀ.

    Attributes
    ----------
    i : index of the cluster's first link.
    links : its links, children first.
    parent : index of the link that carries the cluster, or WORLD.
    freedoms : number of independent rates.
    E : (links, freedoms) the loop Jacobian, its rows in the order of the cluster's links.
    H : articulated inertia per link, without the contributions of other links of the cluster.
    transforms : between each link and its parent.
    """

    def __init__(
        self, cluster: LinkCluster, tree: Tree, H: list[SpatialInertia], x: Inputs
    ) -> None:
        """Store H (articulated inertias by link); entries of carrying links are updated."""
        self.i, self.parent = cluster.links[0], cluster.parent
        self.links, self.freedoms = cluster.links[::-1], cluster.freedoms
        self._column = {i: k for k, i in enumerate(cluster.links)}
        self._parents = {i: tree.links[i].parent for i in cluster.links}
        self._S = {i: tree.links[i].freedom for i in cluster.links}
        self.E = cluster.jacobian_at(x)
        self.transforms = {i: JointTransform(tree.links[i], x) for i in cluster.links}
        self.H = {i: H[i] for i in cluster.links}
        self._H = SpatialInertia(zeros(3, 3), zeros(3, 3), zeros(3, 3))
        D_s, F_s = self._composite(cluster, tree, H)
        E_t = transpose(self.E)
        names = ", ".join(repr(tree.links[i].name) for i in cluster.links)
        D = matmul(E_t, matmul(D_s, self.E))
        self._L, self._D_inverse = ldl(D, f"the inertia seen by the coupled joints {names}")
        # Rows of L⁻¹ Fᵀ and of D⁻¹ in the factorised form: F D⁻¹ Fᵀ = Σ uᵀ v.
        columns = transpose(matmul(E_t, F_s))
        halves = [forward_substitute(self._L, column) for column in columns]
        self._u = transpose(halves)
        self._v = [
            [value * d for value in row] for row, d in zip(self._u, self._D_inverse, strict=True)
        ]

    def _composite(
        self, cluster: LinkCluster, tree: Tree, H: list[SpatialInertia]
    ) -> tuple[Matrix, Matrix]:
        """Step 1: return D_s, and F_s by rows; stores the links' common inertia in `_H`."""
        D = [list(row) for row in cluster.armature]
        F = zeros(len(cluster.links), 6)
        for i in self.links:
            link, k = tree.links[i], self._column[i]
            f = H[i].column(link.freedom)
            D[k][k] = D[k][k] + f[link.freedom] + link.armature
            j = i
            while self._parents[j] != WORLD:
                f = self.transforms[j].force_to_parent(f)
                if j == i:
                    f = [a + c for a, c in zip(f, (*link.couple, 0.0, 0.0, 0.0), strict=True)]
                j = self._parents[j]
                if j == self.parent:
                    F[k] = f
                    break
                above = self._column[j]
                D[k][above] = D[above][k] = D[k][above] + f[self._S[j]]
            if link.parent == WORLD:
                continue
            moved = self.transforms[i].inertia_to_parent(H[i])
            if link.parent == self.parent:
                self._H = self._H + moved
            else:
                H[link.parent] = H[link.parent] + moved
        return D, F

    def inertia_to_parent(self) -> SpatialInertia:
        """Return H − F D⁻¹ Fᵀ of the whole cluster at the link that carries it."""
        H = self._H
        for u, v in zip(self._u, self._v, strict=True):
            H = H.minus_product(u, v)
        return H

    def to_parent(self, K: Matrix, link: int) -> tuple[Matrix, Matrix, Matrix]:
        """Return rows K of a link of the cluster at the carrying link, and Y, Z.

        Y_i Z_jᵀ is κ_i D⁻¹ κ_jᵀ, also for rows of different links.
        """
        moved, halves, scaled = [], [], []
        for row in K:
            rates: Vector = [0.0] * len(self._column)
            j = link
            while True:
                rates[self._column[j]] = row[self._S[j]]
                if self._parents[j] != WORLD:
                    row = self.transforms[j].force_to_parent(row)
                if self._parents[j] == self.parent:
                    break
                j = self._parents[j]
            kappa = [dot(rates, column) for column in transpose(self.E)]
            y = forward_substitute(self._L, kappa)
            for half, v in zip(y, self._v, strict=True):
                row = [value - half * b for value, b in zip(row, v, strict=True)]
            moved.append(row)
            halves.append(y)
            scaled.append([value * d for value, d in zip(y, self._D_inverse, strict=True)])
        return ([] if self.parent == WORLD else moved), halves, scaled

    def z_of_ground(self, tree: Tree, ground: Matrix) -> Matrix:
        """Return rows of Z for accelerations of the world, which carries the cluster.

        Parameters
        ----------
        ground : (k, 6) accelerations of the world.
        """
        H, F = dict(self.H), zeros(len(self.links), 6)
        for i in self.links:
            f, j = H[i].column(self._S[i]), i
            while j != WORLD:
                f, j = self.transforms[j].force_to_parent(f), self._parents[j]
            F[self._column[i]] = f
            above = tree.links[i].parent
            if above != WORLD:
                H[above] = H[above] + self.transforms[i].inertia_to_parent(H[i])
        columns = matmul(transpose(self.E), F)
        found = []
        for a in ground:
            y = forward_substitute(self._L, [-dot(row, a) for row in columns])
            found.append([value * d for value, d in zip(y, self._D_inverse, strict=True)])
        return found

    def accelerations(self, a: Vector, z: Vector) -> dict[int, Vector]:
        """Return the accelerations of all links due to a row of K.

        Parameters
        ----------
        a : acceleration of the carrying link.
        z : the row of Z.
        """
        rates = self.rates(a, z)
        found: dict[int, Vector] = {}
        for i in reversed(self.links):
            b = self.transforms[i].motion_to_child(found.get(self._parents[i], a))
            b[self._S[i]] = b[self._S[i]] + rates[i]
            found[i] = b
        return found

    def rates(self, a: Vector, z: Vector) -> dict[int, Scalar]:
        """Return E ÿ, the joint accelerations, with the arguments of `accelerations`."""
        independent = self.independent(a, z)
        return {i: dot(self.E[column], independent) for i, column in self._column.items()}

    def independent(self, a: Vector, z: Vector) -> Vector:
        """Return the independent accelerations ÿ, with the arguments of `accelerations`."""
        rates = [value - dot(v, a) for value, v in zip(z, self._v, strict=True)]
        return back_substitute(self._L, rates)

    def loads_to_parent(self, f: Vector, torques: Vector) -> tuple[Vector, Vector]:
        """Return f + F D⁻¹ u, the force on the carrying link, and z for ÿ.

        Parameters
        ----------
        f : (6,) force on the carrying link while all accelerations are zero.
        torques : u, the independent torques less those that hold the cluster at zero acceleration.
        """
        halves = forward_substitute(self._L, torques)
        for half, v in zip(halves, self._v, strict=True):
            f = [value + half * b for value, b in zip(f, v, strict=True)]
        return f, [half * d for half, d in zip(halves, self._D_inverse, strict=True)]
