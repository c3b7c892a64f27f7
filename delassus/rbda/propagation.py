"""The backward sweep of the propagation algorithms: articulated bodies in local frames.

A joint is a :class:`Propagator`, the six freedoms of a :class:`FreeBody`, or, where gears, belts
or loops couple joints, a :class:`~delassus.rbda.cluster_propagation.ClusterPropagator`.

Equation and line numbers are those of the preprint of A. S. Sathya, W. Decré, J. Swevers,
"PV-OSIMr: A Lowest Order Complexity Algorithm for Computing the Delassus Matrix", IEEE RA-L, 2024;
the letter counts its lines differently. The sweep is lines 1 to 5 of Algorithms 1 and 2 and, in
Algorithm 3, lines 2 and 8 and the first half of line 9. Quantities of the paper are in the frame
of their link; quantities that move to the parent are transformed to its frame.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property, reduce
from typing import Any, TypeAlias, overload

from delassus.errors import AlgorithmError
from delassus.model.robot import WORLD
from delassus.rbda.cluster_propagation import ClusterPropagator
from delassus.rbda.spatial import JointTransform, SpatialInertia
from delassus.rbda.tree import Link, Tree, TreeJoint
from delassus.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    dot,
    forward_substitute,
    ldl,
    ldl_solve,
    positive,
)
from delassus.scalars.ports import Inputs
from delassus.scalars.steps import blocks, step


class Propagator:
    """The force propagator P_i = 1 − H_i S_i D_i⁻¹ S_iᵀ of a one-freedom joint, equation (8).

    Attributes
    ----------
    i : index of the link.
    links : the same as a list of one.
    parent : index of the parent link, or WORLD.
    S : index of the joint's unit direction in a spatial vector.
    H : H_i, the articulated inertia of the link.
    D_inverse : D_i⁻¹, equation (7) plus the joint's armature.
    HSD : (6,) H_i S_i D_i⁻¹.
    """

    __slots__ = (
        "D_inverse", "H", "HSD", "S", "_HS", "_armature", "_transform", "i", "links", "parent",
    )  # fmt: skip

    def __init__(self, i: int, link: Link, H: SpatialInertia, x: Inputs) -> None:
        self.i, self.links, self.parent, self.S = i, (i,), link.parent, link.freedom
        self._armature, self.H = link.armature, H
        self._HS = H.column(self.S)
        self.D_inverse, self.HSD = _eliminated(
            self._HS, self.S, link.armature, f"the inertia seen by joint {link.name!r}"
        )
        self._transform = JointTransform(link, x)

    def inertia_to_parent(self) -> SpatialInertia:
        """Return P_i H_i at the parent (line 5; of Algorithm 3, line 9)."""
        return _inertia_to_parent(
            self._transform, self.H, self._HS, self.HSD, self.S, self._armature
        )

    def to_parent(self, K: Matrix, link: int) -> tuple[Matrix, Matrix, Matrix]:
        """Return rows K P_iᵀ at the parent, K S and K S D⁻¹; `link` is index i.

        These are line 6 of Algorithm 1 and line 9 of Algorithm 3, and the factors that the next
        line of either multiplies.
        """
        if self.parent == WORLD:
            K_S = [[row[self.S]] for row in K]
            return [], K_S, [[ks * self.D_inverse] for (ks,) in K_S]
        moved: Matrix = []
        KS: Matrix = []
        KSD: Matrix = []
        for block in blocks(len(K)):
            parts = _rows_to_parent(
                self._transform, K[block], self.HSD, self.D_inverse, self.S, self._armature
            )
            for whole, part in zip((moved, KS, KSD), parts, strict=True):
                whole += part
        return moved, KS, KSD

    def to_child(self, a: Vector) -> Vector:
        """Return P_iᵀ a in this link for an acceleration `a` of the parent."""
        return _to_child(self._transform, a, self.HSD, self.D_inverse, self.S, self._armature)

    def accelerations(self, a: Vector, KSD: Vector) -> dict[int, Vector]:
        """Return P_iᵀ a + S D⁻¹ Sᵀ K_jᵀ, the acceleration due to a row of K, by link."""
        b = self.to_child(a)
        b[self.S] = b[self.S] + KSD[0]
        return {self.i: b}


@step
def _eliminated(HS: Vector, S: int, armature: Scalar, what: str) -> tuple[Scalar, Vector]:
    """Return D_i⁻¹ and H_i S_i D_i⁻¹; D_i is `what`."""
    D_inverse = 1.0 / positive(HS[S] + armature, what)
    return D_inverse, [h * D_inverse for h in HS]


@step
def _inertia_to_parent(
    transform: JointTransform,
    H: SpatialInertia,
    HS: Vector,
    HSD: Vector,
    S: int,
    armature: Scalar,
) -> SpatialInertia:
    """Return P_i H_i at the parent."""
    # Direction S keeps the share armature · D⁻¹, which is 1 − HS D⁻¹ without cancellation.
    kept = [armature * h for h in HSD]
    return transform.inertia_to_parent(H.minus_outer(HS, HSD, S, kept))


@step
def _rows_to_parent(
    transform: JointTransform,
    K: Matrix,
    HSD: Vector,
    D_inverse: Scalar,
    S: int,
    armature: Scalar,
) -> tuple[Matrix, Matrix, Matrix]:
    """Return K P_iᵀ at the parent, K S and K S D⁻¹."""
    KS = [[row[S]] for row in K]
    KSD = [[ks * D_inverse] for (ks,) in KS]
    moved = []
    for row, (ks,), (ksd,) in zip(K, KS, KSD, strict=True):
        through = [row[k] - ks * h for k, h in enumerate(HSD)]
        through[S] = armature * ksd
        moved.append(transform.force_to_parent(through))
    return moved, KS, KSD


@step
def _to_child(
    transform: JointTransform,
    a: Vector,
    HSD: Vector,
    D_inverse: Scalar,
    S: int,
    armature: Scalar,
) -> Vector:
    """Return P_iᵀ a."""
    moved = transform.motion_to_child(a)
    total = armature * D_inverse * moved[S]
    for k, h in enumerate(HSD):
        if k != S:
            total = total - h * moved[k]
    moved[S] = total
    return moved


class FreeBody:
    """A freely moving body, the root of a tree, with articulated inertia H = L D Lᵀ.

    H is factorised at first use. The order of elimination starts with the direction in which
    most rows are structurally zero.

    Attributes
    ----------
    i : index of the link.
    links : the same as a list of one.
    """

    def __init__(self, i: int, link: Link, H: SpatialInertia) -> None:
        self.i, self.links, self._name, self._H = i, (i,), link.name, H
        self._order = [link.axis, *(k for k in range(6) if k != link.axis)]

    @cached_property
    def _factors(self) -> tuple[Matrix, Vector]:
        H = self._H.matrix()
        ordered = [[H[r][c] for c in self._order] for r in self._order]
        return _factorised(ordered, f"the inertia of free body {self._name!r}")

    def halves(self, K: Matrix) -> tuple[Matrix, Matrix]:
        """Return Z, Y with Z_i Y_jᵀ = K_i H⁻¹ K_jᵀ."""
        L, D_inverse = self._factors
        Z: Matrix = []
        Y: Matrix = []
        for block in blocks(len(K)):
            ordered = [[row[k] for k in self._order] for row in K[block]]
            for whole, part in zip((Z, Y), _halves(L, D_inverse, ordered), strict=True):
                whole += part
        return Z, Y

    def solve(self, f: Vector) -> Vector:
        """Return the acceleration H⁻¹ f."""
        L, D_inverse = self._factors
        ordered = _solution(L, D_inverse, [f[k] for k in self._order])
        return [ordered[self._order.index(k)] for k in range(6)]


@step
def _halves(L: Matrix, D_inverse: Vector, K: Matrix) -> tuple[Matrix, Matrix]:
    """Return Z, Y with Z_i Y_jᵀ = K_i (L D Lᵀ)⁻¹ K_jᵀ."""
    Y = [forward_substitute(L, row) for row in K]
    return [[y * d for y, d in zip(row, D_inverse, strict=True)] for row in Y], Y


class CarriedJoint:
    """A joint of known acceleration: carries the links beyond as a rigid connection does.

    Attributes
    ----------
    i : index of the joint's first link.
    links : its links, children first.
    parent : index of the carrying link, or WORLD.
    H : articulated inertia per link, including the links of the joint that the link carries.
    """

    def __init__(self, joint: TreeJoint, tree: Tree, H: list[SpatialInertia], x: Inputs) -> None:
        """Store H (articulated inertias by link); entries of carrying links are updated."""
        self.i, self.links, self.parent = joint.i, joint.links[::-1], joint.parent
        self._arrived: list[SpatialInertia] = []
        for i in self.links:
            link = tree.links[i]
            if link.motion == "free" or link.parent == WORLD:
                continue
            moved = JointTransform(link, x).inertia_to_parent(H[i])
            if link.parent == self.parent:
                self._arrived.append(moved)
            else:
                H[link.parent] = H[link.parent] + moved
        self.H = {i: H[i] for i in self.links}

    def inertia_to_parent(self) -> SpatialInertia:
        """Return the articulated inertia of the joint's links at the carrying link."""
        return reduce(SpatialInertia.__add__, self._arrived)


_factorised = step(ldl)
_solution = step(ldl_solve)
_sum = step(SpatialInertia.__add__)


JointPropagator: TypeAlias = Propagator | ClusterPropagator | FreeBody


class InputsWithSweeps(dict[str, Sequence[Any]]):
    """Inputs that cache the backward sweeps of their trees, for trees that are swept again."""

    def __init__(self, x: Inputs) -> None:
        super().__init__(x)
        self.sweeps: dict[Hashable, list[JointPropagator | CarriedJoint]] = {}


@overload
def articulated_joints(tree: Tree, x: Inputs) -> Iterator[JointPropagator]: ...
@overload
def articulated_joints(
    tree: Tree, x: Inputs, carried: frozenset[int]
) -> Iterator[JointPropagator | CarriedJoint]: ...
def articulated_joints(
    tree: Tree, x: Inputs, carried: frozenset[int] = frozenset()
) -> Iterator[Any]:
    """Articulated-body inertias H_i, from the leaves to the roots.

    Yields every joint's propagator, children before parents, before its inertia moves on to
    the parent.

    Parameters
    ----------
    carried : first links of joints whose accelerations are known.
    """
    if not isinstance(x, InputsWithSweeps):
        yield from _articulated_joints(tree, x, carried)
        return
    key = tree.links, tree.clusters, carried
    if key not in x.sweeps:
        x.sweeps[key] = list(_articulated_joints(tree, x, carried))
    yield from x.sweeps[key]


def _articulated_joints(
    tree: Tree, x: Inputs, carried: frozenset[int]
) -> Iterator[JointPropagator | CarriedJoint]:
    H = [SpatialInertia.of(link) for link in tree.links]
    # Arriving inertias are summed before the link's inertia is added: the last operations of alike
    # limbs are then alike.
    arrived: dict[int, SpatialInertia] = {}
    for joint in reversed(tree.joints):
        for i in joint.links:
            if i in arrived:
                H[i] = _sum(arrived.pop(i), H[i])
        passing: Propagator | ClusterPropagator | CarriedJoint
        if joint.i in carried:
            passing = CarriedJoint(joint, tree, H, x)
        elif tree.links[joint.i].motion == "free":
            yield FreeBody(joint.i, tree.links[joint.i], H[joint.i])
            continue
        else:
            passing = propagator(joint, tree, H, x)
        yield passing
        if joint.parent != WORLD:
            moved, before = passing.inertia_to_parent(), arrived.get(joint.parent)
            arrived[joint.parent] = moved if before is None else _sum(before, moved)


def propagator(
    joint: TreeJoint, tree: Tree, H: list[SpatialInertia], x: Inputs
) -> Propagator | ClusterPropagator:
    """Return the propagator of a joint that does not move freely.

    Parameters
    ----------
    H : articulated inertias by link; of a cluster, entries of links that carry links are updated.
    """
    if joint.cluster is not None:
        return ClusterPropagator(joint.cluster, tree, H, x)
    return Propagator(joint.i, tree.links[joint.i], H[joint.i], x)


def articulated_bodies(tree: Tree, x: Inputs) -> Iterator[Propagator | FreeBody]:
    """Return the propagators of :func:`articulated_joints` for a tree without clusters."""
    for joint in articulated_joints(tree, x):
        if isinstance(joint, ClusterPropagator):
            names = ", ".join(repr(tree.links[i].name) for i in joint.links)
            raise AlgorithmError(f"joints {names} are coupled; expected a tree without clusters")
        yield joint


def add_products(a: Matrix, Z: Matrix, Y: Matrix) -> None:
    """Add Z Yᵀ, which is symmetric, to the symmetric matrix `a` in place."""
    cuts = blocks(len(a))
    for number, rows in enumerate(cuts):
        columns = slice(rows.start, rows.stop)
        block = _with_products([row[columns] for row in a[rows]], Z[rows], Y[columns])
        _write(a, rows.start, columns.start, block)
        for columns in cuts[number + 1 :]:
            block = _with_all_products([row[columns] for row in a[rows]], Z[rows], Y[columns])
            _write(a, rows.start, columns.start, block)


@step
def _with_products(a: Matrix, Z: Matrix, Y: Matrix) -> Matrix:
    """Return a + Z Yᵀ, both symmetric."""
    total = [list(row) for row in a]
    for i, z in enumerate(Z):
        for j in range(i, len(a)):
            total[i][j] = total[j][i] = a[i][j] + dot(z, Y[j])
    return total


@step
def _with_all_products(a: Matrix, Z: Matrix, Y: Matrix) -> Matrix:
    """Return a + Z Yᵀ."""
    return [
        [value + dot(z, y) for value, y in zip(row, Y, strict=True)]
        for row, z in zip(a, Z, strict=True)
    ]


def _write(a: Matrix, row: int, column: int, block: Matrix) -> None:
    """Write a block of the symmetric matrix `a`, and its mirror image."""
    for i, values in enumerate(block, start=row):
        for j, value in enumerate(values, start=column):
            a[i][j] = a[j][i] = value


def block_diagonal(blocks: list[Matrix]) -> Matrix:
    """Return the block-diagonal matrix of square blocks."""
    size = sum(len(block) for block in blocks)
    result = [[0.0] * size for _ in range(size)]
    first = 0
    for block in blocks:
        for row, values in enumerate(block):
            result[first + row][first : first + len(values)] = values
        first += len(block)
    return result


def fill(G: Matrix, rows: list[int], columns: list[int], block: Matrix) -> None:
    """Write a block of G and its mirror image."""
    for i, values in zip(rows, block, strict=True):
        for j, value in zip(columns, values, strict=True):
            G[i][j] = G[j][i] = value
