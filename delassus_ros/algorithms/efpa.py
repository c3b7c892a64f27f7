"""EFPA: the extended-force-propagator algorithm, over joints and clusters; O(n + m d + m²).

P. Wensing, R. Featherstone, D. E. Orin, "A Reduced-Order Recursive Algorithm for the
Computation of the Operational-Space Inertia Matrix", ICRA 2012; here in the notation of
Algorithm 2 of A. S. Sathya, W. Decré, J. Swevers, "PV-OSIMr", IEEE RA-L, 2024.

With cluster joints it is C-EFPA of M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive
Rigid-Body Dynamics Algorithms for Systems with Kinematic Loops". That paper stacks the bodies of
a cluster in 6N×6N matrices; the same step is taken here at the link that carries the cluster, by
:class:`~delassus_ros.rbda.cluster_propagation.ClusterPropagator`.
"""

from __future__ import annotations

from delassus_ros.algorithms.registry import register
from delassus_ros.model.robot import WORLD
from delassus_ros.rbda.propagation import FreeBody, add_products, articulated_joints, fill
from delassus_ros.rbda.tree import Tree, rows_of
from delassus_ros.scalars.functions import Matrix, matmul, transpose, zeros
from delassus_ros.scalars.ports import Inputs


@register("efpa", clusters=True, aliases=("c_efpa",))
def efpa(tree: Tree, K_own: dict[int, Matrix], x: Inputs) -> Matrix:
    """EFPA, Algorithm 2 of Sathya, Decré and Swevers (2024); C-EFPA of Chignoli et al."""
    contacts = [contact for link in tree.links for contact in link.contacts]
    # K[i][j]: the rows of contact j at link i, on the path from j to its root (line 2).
    K: list[dict[int, Matrix]] = [{} for _ in tree.links]
    for i, link in enumerate(tree.links):
        K[i] = {contact.index: K_own[contact.index] for contact in link.contacts}
    joints = []
    KSD: list[dict[int, Matrix]] = [{} for _ in tree.links]
    for joint in articulated_joints(tree, x):  # lines 3 to 5
        joints.append(joint)
        if isinstance(joint, FreeBody):
            continue
        for i in joint.links:
            for j, rows in K[i].items():  # lines 6 and 7
                moved, _, KSD[i][j] = joint.to_parent(rows, i)
                if joint.parent != WORLD:
                    K[joint.parent][j] = moved
    # OmegaK[i][j]: the columns of ⁰Ω_i ⁱK_jᵀ, accelerations of link i per force at j.
    OmegaK: list[dict[int, Matrix]] = [{} for _ in tree.links]
    for joint in reversed(joints):  # lines 8 to 10
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
    G = zeros(tree.rows, tree.rows)
    for number, first in enumerate(contacts):  # lines 11 and 12
        at = rows_of(first)
        for second in contacts[number:]:
            i = tree.closest_common_ancestor(first.index, second.index)
            if i == WORLD:
                continue
            if first is second:
                block = zeros(len(at), len(at))
                add_products(block, K[i][first.index], OmegaK[i][first.index])
            else:
                block = matmul(K[i][first.index], transpose(OmegaK[i][second.index]))
            fill(G, at, rows_of(second), block)
    return G
