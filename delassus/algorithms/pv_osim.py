"""PV-OSIM: the Delassus matrix in two sweeps, by rank-1 updates per joint; O(n + m² d).

A. S. Sathya, H. Bruyninckx, W. Decré, G. Pipeleers, "Efficient Constrained Dynamics Algorithms
based on an Equivalent LQR Formulation using Gauss' Principle of Least Constraint", IEEE T-RO,
2024; here as Algorithm 1 of A. S. Sathya, W. Decré, J. Swevers, "PV-OSIMr", IEEE RA-L, 2024.
"""

from __future__ import annotations

from delassus.algorithms.registry import register
from delassus.model.robot import WORLD
from delassus.rbda.propagation import (
    FreeBody,
    add_products,
    articulated_bodies,
    block_diagonal,
    fill,
)
from delassus.rbda.tree import Tree, rows_of
from delassus.scalars.functions import Matrix, zeros
from delassus.scalars.ports import Inputs


@register("pv_osim")
def pv_osim(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
    """PV-OSIM, Algorithm 1 of Sathya, Decré and Swevers (2024)."""
    G = zeros(tree.rows, tree.rows)
    # Line 2. Results of links are appended to their parents' lists: K_A stacks the rows of all
    # supported contacts, L_A their inverse inertia so far.
    K_A: list[list[Matrix]] = [[] for _ in tree.links]
    L_A: list[list[Matrix]] = [[] for _ in tree.links]
    rows: list[list[int]] = [[] for _ in tree.links]
    for i, link in enumerate(tree.links):
        for contact in link.contacts:
            k = len(K[contact.index])
            K_A[i].append(K[contact.index])
            L_A[i].append(zeros(k, k))
            rows[i] += rows_of(contact)
    for joint in articulated_bodies(tree, x):
        i = joint.i
        if not rows[i]:
            continue
        K_i, L_i = [row for block in K_A[i] for row in block], block_diagonal(L_A[i])
        if isinstance(joint, FreeBody):
            # Lines 6 and 7 for six freedoms, S = 1 and D = H: L += K H⁻¹ Kᵀ.
            add_products(L_i, *joint.halves(K_i))
            fill(G, rows[i], rows[i], L_i)
            continue
        K_parent, KS, KSD = joint.to_parent(K_i, i)  # line 6
        add_products(L_i, KSD, KS)  # line 7
        if joint.parent == WORLD:
            fill(G, rows[i], rows[i], L_i)  # line 8
            continue
        K_A[joint.parent].append(K_parent)
        L_A[joint.parent].append(L_i)
        rows[joint.parent] += rows[i]
    return G
