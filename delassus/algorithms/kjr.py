"""KJR: inverse inertias spread outwards from the base, then across; O(n + m n + m²).

K. Kreutz-Delgado, A. Jain, G. Rodriguez, "Recursive Formulation of Operational Space Control",
The International Journal of Robotics Research 11(4), 1992, with the reuse of partial results of
K.-S. Chang, O. Khatib, "Efficient Recursive Algorithm for the Operational Space Inertia Matrix
of Branching Mechanisms", Advanced Robotics 14(8), 2001. The steps below are those of section
V.A of P. Wensing, R. Featherstone, D. E. Orin (ICRA 2012), where the algorithm is called RJKA:

1. inwards, articulated-body inertias;
2. outwards, Ω_ii = P_iᵀ Ω_pp P_i + S_i D_i⁻¹ S_iᵀ of every link i with parent p that supports
   a contact;
3. outwards from a link a where contacts meet, Ω_la = P_lᵀ Ω_pa, first to one contact, then, with
   the rows of that contact, to the other contact;
4. with the contacts' rows, G_jk = K_j Ω_jk K_kᵀ.
"""

from __future__ import annotations

from delassus.algorithms.registry import register
from delassus.model.robot import WORLD
from delassus.rbda.propagation import (
    FreeBody,
    Propagator,
    add_products,
    articulated_bodies,
    fill,
)
from delassus.rbda.tree import Tree, rows_of
from delassus.scalars.functions import Matrix, identity, matmul, transpose, zeros
from delassus.scalars.ports import Inputs


@register("kjr")
def kjr(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
    """Kreutz-Delgado, Jain and Rodriguez (1992) with the reuse of Chang and Khatib (2001)."""
    joints = {joint.i: joint for joint in articulated_bodies(tree, x)}
    Omega = inverse_inertias(tree, joints)
    contacts = [contact for link in tree.links for contact in link.contacts]
    down = _Down(joints)
    G = zeros(tree.rows, tree.rows)
    for number, k in enumerate(contacts):
        rows = rows_of(k)
        link = tree.link_of[k.index]
        block = zeros(len(rows), len(rows))
        add_products(block, matmul(K[k.index], Omega[link]), K[k.index])
        fill(G, rows, rows, block)
        # Per link a where other contacts meet k's path, the rows (Ω_ak K_kᵀ)ᵀ.
        met: dict[int, Matrix] = {}
        for j in contacts[:number]:
            a = tree.closest_common_ancestor(j.index, k.index)
            if a == WORLD:
                continue
            if a not in met:
                met[a] = matmul(K[k.index], transpose(down(Omega[a], a, link, ("Ω", a))))
            # Step 3 to the other contact; links shared by several contacts once.
            columns = down(met[a], a, tree.link_of[j.index], (k.index, a))
            fill(G, rows, rows_of(j), matmul(columns, transpose(K[j.index])))
    return G


def inverse_inertias(tree: Tree, joints: dict[int, Propagator | FreeBody]) -> list[Matrix]:
    """Step 2: Ω_ii (6, 6) of the links that support contacts."""
    Omega: list[Matrix] = [[] for _ in tree.links]
    for i in sorted(tree.supporting):
        joint = joints[i]
        if isinstance(joint, FreeBody):
            Omega[i] = [joint.solve(unit) for unit in identity(6)]
            continue
        above = zeros(6, 6) if joint.parent == WORLD else Omega[joint.parent]
        # P_iᵀ Ω_pp, then · P_i; only the upper half of the product.
        half = transpose([joint.to_child(column) for column in above])
        full = [joint.to_child(row) for row in half]
        Omega[i] = [[full[min(r, s)][max(r, s)] for s in range(6)] for r in range(6)]
        Omega[i][joint.S][joint.S] = Omega[i][joint.S][joint.S] + joint.D_inverse
    return Omega


class _Down:
    """Step 3: carries accelerations from a link to a descendant; partial results are reused."""

    def __init__(self, joints: dict[int, Propagator | FreeBody]) -> None:
        # A free body is a root: nothing is carried to it.
        self._joints = {i: joint for i, joint in joints.items() if isinstance(joint, Propagator)}
        self._known: dict[tuple[object, int], Matrix] = {}

    def __call__(self, accelerations: Matrix, a: int, link: int, key: object) -> Matrix:
        """Return `accelerations` of link a, one per row, at `link`; `key` identifies them."""
        path = []
        while link != a and (key, link) not in self._known:
            path.append(self._joints[link])
            link = path[-1].parent
        found = accelerations if link == a else self._known[key, link]
        for joint in reversed(path):
            found = self._known[key, joint.i] = [joint.to_child(row) for row in found]
        return found
