"""Elimination: the Delassus matrix by the cheapest order of elimination that is found.

By Gauss's principle ½ Σ aᵀ H a + ½ q̈ᵀ A q̈ − λᵀ K a is stationary at the accelerations, with
a_i = X_i a_p(i) + S_i q̈_i. The conditions form a symmetric system (docs/elimination.md); when all
unknowns except λ are eliminated, −G remains. Accelerations and forces of links are eliminated from
the leaves to the roots, without a division. The place of the joints in the order is free: a joint
eliminated at its link makes articulated inertias (PV-OSIM); joints eliminated at the root keep
inertias rigid and leave the mass matrix (LTL); and a joint may be eliminated at any link between
the two. F. Nori, "Inverse, forward and other dynamic computations computationally optimized with
sparse matrix factorizations", looks for such orders among scalars (Problem 2, section V-D); here
the blocks are kept, which are symmetric.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

from delassus.algorithms.counting import CheapestSearch, OperationCounter, is_large
from delassus.algorithms.registry import TracedAlgorithm, register, without_clusters
from delassus.model.robot import WORLD
from delassus.problem import Problem
from delassus.rbda.momentum import contact_matrix
from delassus.rbda.propagation import FreeBody, Propagator, add_products
from delassus.rbda.spatial import (
    JointTransform,
    RigidInertia,
    SpatialInertia,
    contact_rows,
)
from delassus.rbda.tree import Tree, rows_of
from delassus.rbda.trees import tree_of
from delassus.scalars.functions import Matrix, Scalar, Vector, is_zero, positive, zeros
from delassus.scalars.ports import Inputs, Outputs

_ORDER_BUDGET = 1_000_000
"""Approximate number of operations traced in search of an order."""


@dataclass(frozen=True)
class JointPlaces:
    """The order of elimination: the places where joints are eliminated.

    Attributes
    ----------
    places : per link the link at which its joint is eliminated: the link itself or a link towards
        the root; WORLD: after all links.
    """

    places: tuple[int, ...]

    @classmethod
    def pv_osim(cls, tree: Tree) -> JointPlaces:
        """Return the order in which every joint is eliminated at its link."""
        return cls(tuple(range(len(tree.links))))

    @classmethod
    def ltl(cls, tree: Tree) -> JointPlaces:
        """Return the order in which all joints are eliminated at the root."""
        return cls(tuple(_way(tree, i)[-1] for i in range(len(tree.links))))

    def neighbours(self, tree: Tree) -> Iterator[JointPlaces]:
        """Yield orders with a joint after all links, or all joints beyond a link at that link."""
        for i in sorted(tree.supporting):
            end = _way(tree, i)[-1]
            if self.places[i] != end:
                yield self._with({i}, end)
        for place in range(len(tree.links)):
            beyond = {i for i in range(len(tree.links)) if place in tree.path(i)[1:]}
            if beyond:
                yield self._with(beyond, place)

    def _with(self, joints: set[int], place: int) -> JointPlaces:
        """Return the order with joints at another place."""
        return JointPlaces(
            tuple(place if i in joints else old for i, old in enumerate(self.places))
        )


def _way(tree: Tree, i: int) -> list[int]:
    """Return the places for the joint of link i: links up to a free body, or else WORLD."""
    way = tree.path(i)
    return way if tree.links[way[-1]].motion == "free" else [*way, WORLD]


@register("elimination")
class Elimination(TracedAlgorithm):
    """The cheapest order found in which accelerations, forces and joints are eliminated."""

    any_tree = True

    def supports(self, problem: Problem) -> str | None:
        """Refuse clusters; see the base class."""
        return without_clusters(problem)

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        return self.evaluate_on(problem, tree_of(problem), x)

    def evaluate_on(self, problem: Problem, tree: Tree, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        order = decide(problem, tree.numbers is not None, tree.numbers or tree)
        G = delassus(tree, contact_rows(problem, tree, x), x, order)
        return {"G": contact_matrix(problem, tree, x, G)}


@lru_cache(maxsize=16)
def decide(problem: Problem, generic: bool, tree: Tree) -> JointPlaces:
    """Return the order with fewest operations that the search finds, by exact count.

    Parameters
    ----------
    generic : count with the robot's constants unknown.
    tree : a tree of the problem, with its numbers.
    """
    counter = OperationCounter(problem, tree, generic)
    search = CheapestSearch[JointPlaces](
        lambda order: counter(partial(delassus, order=order)), _ORDER_BUDGET
    )
    best = search.cheapest((JointPlaces.pv_osim(tree), JointPlaces.ltl(tree)))
    if is_large(problem):  # a large problem has too many neighbours
        return best
    return search.improved(best, lambda order: order.neighbours(tree), restart=False)


def delassus(tree: Tree, K: dict[int, Matrix], x: Inputs, order: JointPlaces) -> Matrix:
    """Return G by elimination in an order."""
    state = EliminationState(tree, K, x)
    for i in reversed(range(len(tree.links))):
        for k in reversed(range(i + 1, len(tree.links))):
            if order.places[k] == i:
                state.eliminate(k, i)
        state.link(i, order.places[i] != i)
    for k in reversed(range(len(tree.links))):
        if order.places[k] == WORLD:
            state.eliminate(k, WORLD)
    return state.G


class EliminationState:
    """State of the elimination: rows of contacts and of waiting joints, inertias of links.

    Parameters
    ----------
    tree, K, x : as for every algorithm.

    Attributes
    ----------
    G : (m, m), the contribution of the eliminated unknowns.
    """

    def __init__(self, tree: Tree, K: dict[int, Matrix], x: Inputs) -> None:
        self.G = zeros(tree.rows, tree.rows)
        self._tree, self._x = tree, x
        self._inertia: list[RigidInertia | SpatialInertia] = [
            RigidInertia.of(link) for link in tree.links
        ]
        # Per link, the rows that act on its acceleration: K_j of contacts by their number, and
        # SᵀH of waiting joints by −1 − link.
        self._rows: list[dict[int, Vector]] = [{} for _ in tree.links]
        for i, link in enumerate(tree.links):
            for contact in link.contacts:
                self._rows[i].update(zip(rows_of(contact), K[contact.index], strict=True))
        # Between waiting joints, and between waiting joints and contacts.
        self._between: dict[int, dict[int, Scalar]] = {}

    def eliminate(self, k: int, i: int) -> None:
        """Eliminate the joint of link k, which waited, at link i or after all links."""
        joint = -1 - k
        coupled = self._between.pop(joint, {})
        pivot = coupled.pop(joint, None)
        if pivot is None:
            return
        name = self._tree.links[k].name
        d = 1.0 / positive(pivot, f"the inertia seen by joint {name!r}")
        F = self._rows[i].pop(joint) if i != WORLD else []
        present = {j: value for j, value in coupled.items() if not is_zero(value)}
        scaled = {j: value * d for j, value in present.items()}
        for j, factor in scaled.items():
            if j < 0:
                self._between[j].pop(joint)
            if F:
                row = self._rows[i][j]
                self._rows[i][j] = [r - factor * f for r, f in zip(row, F, strict=True)]
            for h, value in present.items():
                if h <= j:
                    # The row farther from the root is scaled, as for contacts: about an axis
                    # common to parent and child the products are then the same.
                    far, near = (scaled[h], present[j]) if j < 0 else (factor, value)
                    self._add(j, h, far * near)
        for j in coupled.keys() - present.keys():
            if j < 0:
                self._between[j].pop(joint)
        if F:
            H = self._inertia[i]
            whole = H.spatial() if isinstance(H, RigidInertia) else H
            self._inertia[i] = whole.minus_product([f * d for f in F], F)

    def _add(self, j: int, h: int, product: Scalar) -> None:
        """Add a product of two rows from an eliminated unknown, h ≤ j."""
        if h >= 0:
            self.G[j][h] = self.G[h][j] = self.G[j][h] + product
            return
        value = self._between[h].get(j, 0.0) - product
        self._between[h][j] = value
        if j < 0:
            self._between[j][h] = value

    def link(self, i: int, waits: bool) -> None:
        """Eliminate a link's acceleration and force, and its joint unless the joint waits."""
        link, H, rows = self._tree.links[i], self._inertia[i], self._rows[i]
        if not rows and not waits:
            self._without_rows(i)
            return
        whole = H.spatial() if isinstance(H, RigidInertia) else H
        if link.motion == "free":
            Z, Y = FreeBody(i, link, whole).halves(list(rows.values()))
            self._products([*rows], Z, Y)
            return
        if not waits:
            self._at_once(i, whole)
            return
        joint, S = -1 - i, link.freedom
        F = whole.column(S)
        between = {j: row[S] for j, row in rows.items()}
        for j, value in between.items():
            if j < 0:
                self._between[j][joint] = value
        self._between[joint] = {**between, joint: F[S] + link.armature}
        rows[joint] = F
        if link.parent == WORLD:
            return
        transform = JointTransform(link, self._x)
        for j, row in rows.items():
            self._rows[link.parent][j] = transform.force_to_parent(row)
        if isinstance(H, RigidInertia):
            self._carry(link.parent, transform.rigid_inertia_to_parent(H))
        else:
            self._carry(link.parent, transform.inertia_to_parent(H))

    def _without_rows(self, i: int) -> None:
        link, H = self._tree.links[i], self._inertia[i]
        if link.motion != "free" and link.parent != WORLD:
            whole = H.spatial() if isinstance(H, RigidInertia) else H
            moved = Propagator(i, link, whole, self._x).inertia_to_parent()
            self._carry(link.parent, moved)

    def _at_once(self, i: int, H: SpatialInertia) -> None:
        """Eliminate link i with its joint: the step of PV-OSIM."""
        link, rows = self._tree.links[i], self._rows[i]
        passing = Propagator(i, link, H, self._x)
        moved, KS, KSD = passing.to_parent(list(rows.values()), i)
        self._products([*rows], KSD, KS)
        if link.parent == WORLD:
            return
        self._rows[link.parent].update(zip(rows, moved, strict=True))
        self._carry(link.parent, passing.inertia_to_parent())

    def _products(self, rows: list[int], Z: Matrix, Y: Matrix) -> None:
        """Add the symmetric product Z Yᵀ between rows."""
        products = zeros(len(rows), len(rows))
        add_products(products, Z, Y)
        for r, j in enumerate(rows):
            for c, h in enumerate(rows):
                if h <= j:
                    self._add(j, h, products[r][c])

    def _carry(self, parent: int, moved: RigidInertia | SpatialInertia) -> None:
        """Add the inertia of a child to that of the parent link."""
        H = self._inertia[parent]
        if isinstance(H, RigidInertia) and isinstance(moved, RigidInertia):
            self._inertia[parent] = H + moved
            return
        whole, other = (h.spatial() if isinstance(h, RigidInertia) else h for h in (H, moved))
        self._inertia[parent] = whole + other
