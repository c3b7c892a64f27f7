"""EFPA: the extended-force-propagator algorithm, over joints and clusters; O(n + m d + m²).

P. Wensing, R. Featherstone, D. E. Orin, "A Reduced-Order Recursive Algorithm for the
Computation of the Operational-Space Inertia Matrix", ICRA 2012; here in the notation of
Algorithm 2 of A. S. Sathya, W. Decré, J. Swevers, "PV-OSIMr", IEEE RA-L, 2024.

With cluster joints it is C-EFPA of M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive
Rigid-Body Dynamics Algorithms for Systems with Kinematic Loops". That paper stacks the bodies of
a cluster in 6N×6N matrices; the same step is taken here at the link that carries the cluster, by
:class:`~delassus.rbda.cluster_propagation.ClusterPropagator`.

As published in 2012, ``efpa_strict``, every contact is an end effector of six rows, and the frame
of a floating base is on the axis of a privileged child. ``efpa`` propagates the rows of the
contacts alone, and has the frame on a child's axis only where no other limb has the same build.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from delassus.algorithms.registry import TracedAlgorithm, register, without_clusters
from delassus.model.robot import WORLD
from delassus.problem import Problem
from delassus.rbda.momentum import contact_matrix
from delassus.rbda.propagation import (
    FreeBody,
    JointPropagator,
    add_products,
    articulated_joints,
    fill,
)
from delassus.rbda.spatial import contact_rows
from delassus.rbda.tree import ContactRows, Tree, rows_of
from delassus.rbda.trees import tree_of
from delassus.rbda.unknown_constants import structure
from delassus.scalars.functions import Matrix, dot, matmul, transpose, zeros
from delassus.scalars.ports import Inputs, Outputs

Rows: TypeAlias = "list[dict[int, Matrix]]"
"""Per link, the rows of each contact that the link supports, by the contact's index."""


@register("efpa", clusters=True, aliases=("c_efpa",))
def efpa(tree: Tree, K_own: dict[int, Matrix], x: Inputs) -> Matrix:
    """EFPA, Algorithm 2 of Sathya, Decré and Swevers (2024); C-EFPA of Chignoli et al."""
    joints, K, KSD = propagators(tree, K_own, x)
    OmegaK = accelerations(tree, joints, K, KSD)
    G = zeros(tree.rows, tree.rows)
    for first, second, block in blocks(tree, K, OmegaK):
        fill(G, rows_of(first), rows_of(second), block)
    return G


@register("efpa_strict")
class StrictEfpa(TracedAlgorithm):
    """EFPA, Table I of Wensing et al. (2012): six rows per contact, base on a child's axis."""

    def supports(self, problem: Problem) -> str | None:
        """Refuse clusters; see the base class."""
        return without_clusters(problem)

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        whole = end_effectors(problem)
        tree = structure(tree_of(whole, on_child_axis=True))
        G = efpa(tree, contact_rows(whole, tree, x), x)
        return {"G": _selected(problem, whole, contact_matrix(whole, tree, x, G))}


def end_effectors(problem: Problem) -> Problem:
    """Return a problem with the end effectors of the paper: all six rows of each contact."""
    contacts = [contact.with_all_rows for contact in problem.contacts]
    return Problem(problem.robot, contacts, problem.axes)


def _selected(problem: Problem, whole: Problem, G: Matrix) -> Matrix:
    """Return the rows and columns of G that a problem's contacts select."""
    factors: list[dict[int, float]] = []
    for contact, first in zip(problem.contacts, whole.contacts.row_offsets, strict=False):
        selection = contact.selection if contact.ends else np.eye(contact.rows)
        for row in selection.tolist():
            factors.append({first + k: factor for k, factor in enumerate(row) if factor})
    size = len(factors)
    found = zeros(size, size)
    for r, left in enumerate(factors):
        half = [dot(list(left.values()), [G[k][c] for k in left]) for c in range(len(G))]
        for s, right in enumerate(factors[r:], start=r):
            found[r][s] = found[s][r] = dot([half[k] for k in right], list(right.values()))
    return found


def propagators(
    tree: Tree, K_own: dict[int, Matrix], x: Inputs
) -> tuple[list[JointPropagator], Rows, Rows]:
    """Inwards: return the joints, leaves first, K_j at every link of j's path, and K_j S D⁻¹.

    Lines 2 to 7; equations (10) and (11) of Wensing et al., whose propagators are ᵏX_i = K.
    """
    K: Rows = [{} for _ in tree.links]
    for i, link in enumerate(tree.links):
        K[i] = {contact.index: K_own[contact.index] for contact in link.contacts}
    joints = []
    KSD: Rows = [{} for _ in tree.links]
    for joint in articulated_joints(tree, x):  # lines 3 to 5
        joints.append(joint)
        if isinstance(joint, FreeBody):
            continue
        for i in joint.links:
            for j, rows in K[i].items():  # lines 6 and 7
                moved, _, KSD[i][j] = joint.to_parent(rows, i)
                if joint.parent != WORLD:
                    K[joint.parent][j] = moved
    return joints, K, KSD


def accelerations(tree: Tree, joints: list[JointPropagator], K: Rows, KSD: Rows) -> Rows:
    """Outwards: return the columns of ⁰Ω_i ⁱK_jᵀ, accelerations of link i per force at j.

    Lines 8 to 10; equation (13) of Wensing et al., Λ⁻¹_ij.
    """
    OmegaK: Rows = [{} for _ in tree.links]
    for joint in reversed(joints):
        if isinstance(joint, FreeBody):
            i = joint.i
            OmegaK[i] = {j: [joint.solve(row) for row in rows] for j, rows in K[i].items()}
            continue
        for j, KSD_j in [pair for i in joint.links for pair in KSD[i].items()]:
            above = zeros(len(KSD_j), 6)
            if joint.parent != WORLD:
                above = OmegaK[joint.parent][j]
            for a, ksd in zip(above, KSD_j, strict=True):
                for i, b in joint.accelerations(a, ksd).items():
                    OmegaK[i].setdefault(j, []).append(b)
    return OmegaK


def blocks(tree: Tree, K: Rows, OmegaK: Rows) -> Iterator[tuple[ContactRows, ContactRows, Matrix]]:
    """Yield the blocks of G: lines 11 and 12; equation (14) of Wensing et al. off the diagonal."""
    contacts = [contact for link in tree.links for contact in link.contacts]
    for number, first in enumerate(contacts):
        size = len(rows_of(first))
        for second in contacts[number:]:
            i = tree.closest_common_ancestor(first.index, second.index)
            if i == WORLD:
                continue
            if first is second:
                block = zeros(size, size)
                add_products(block, K[i][first.index], OmegaK[i][first.index])
            else:
                block = matmul(K[i][first.index], transpose(OmegaK[i][second.index]))
            yield first, second, block
