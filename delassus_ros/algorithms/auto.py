"""Auto: the cheapest mixture of the published algorithms for each robot, by exact count.

Propagation algorithms leave two choices: the links at which the contacts' rows (rank-1 updates per
joint, PV-OSIM) are replaced by the six rows of an extended propagator (PV-OSIMr), and the order of
the products at such a node. For an independent tree (a free body, or a joint on the world, with
all links beyond) the propagation may cost more than the joint-space route (LTL), or than EFPA or
KJR, which form no products of propagators. The choice does not change the matrix. Candidates are
traced and counted with the robot's constants, except candidates that are far off by an estimate;
the candidate with fewest operations is taken. Decisions are made once per problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from delassus_ros.algorithms.counting import CheapestSearch, OperationCounter
from delassus_ros.algorithms.efpa import efpa
from delassus_ros.algorithms.kjr import kjr
from delassus_ros.algorithms.ltl import ltl
from delassus_ros.algorithms.pv_osimr import Nodes, delassus, wide_nodes
from delassus_ros.algorithms.registry import DelassusFunction, TracedAlgorithm, register
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem
from delassus_ros.rbda.spatial import contact_rows
from delassus_ros.rbda.tree import Tree, rows_of
from delassus_ros.rbda.trees import tree_of
from delassus_ros.scalars.functions import Matrix, zeros
from delassus_ros.scalars.ports import Inputs, Outputs
from delassus_ros.scalars.routines import is_large

WHOLE: dict[str, DelassusFunction] = {"ltl": ltl, "efpa": efpa, "kjr": kjr}
"""Routes without further choices; KJR takes only ordinary trees, EFPA and LTL also clusters."""

_ROUTE_BUDGET = 250_000
"""Operations traced in search of a decision for one independent tree, roughly."""
_FAR = 1.15
"""Ratio of estimated operations to the best count above which an algorithm is not counted."""
_SMALL = 2_000
"""Operations below which all algorithms are counted: estimates of small robots are rough."""
_DEEPEST = 60
"""Number of nodes up to which spreading through all nodes, a recursion, is considered."""


@dataclass(frozen=True)
class Route:
    """How the matrix of one independent tree is computed.

    Attributes
    ----------
    name : ``"propagation"`` or one of :data:`WHOLE`.
    nodes : nodes of the propagation.
    """

    name: str = "propagation"
    nodes: Nodes = Nodes()

    def __call__(self, tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
        """Return G of the tree's contacts."""
        if self.name in WHOLE:
            return WHOLE[self.name](tree, K, x)
        return delassus(tree, K, x, self.nodes)

    def neighbours(self, tree: Tree, meetings: frozenset[int]) -> Iterator[Route]:
        """Yield the routes that differ in one decision and in their operations.

        Parameters
        ----------
        meetings : the links that may become nodes.
        """
        links, couples, spreads = self.nodes.links, self.nodes.couples, self.nodes.spreads
        for i in sorted(meetings):
            yield _propagation(links ^ {i}, couples, spreads)
        for i in sorted(links):
            # For contacts alone K equals P: both decisions give the same products.
            if any(i in tree.path(j)[1:] for j in links):
                yield _propagation(links, couples, spreads ^ {i})
        if couples is None:
            yield _propagation(links, frozenset(), spreads)
            yield _propagation(links, links, spreads)
            return
        ways = {i: _last_link(tree, links, i) for i in links}
        for i in sorted(links):
            # Nodes that arrive together couple if any of these nodes couples.
            if not any(j != i and ways[j] == ways[i] for j in couples):
                yield _propagation(links, couples ^ {i}, spreads)


def _last_link(tree: Tree, links: frozenset[int], i: int) -> int:
    """Return the last link on the path of the rows of node i to the next node or the root."""
    path = tree.path(i)
    end = next((k for k, j in enumerate(path[1:], start=1) if j in links), len(path) - 1)
    return path[max(end - 1, 0)]


def _propagation(
    links: frozenset[int], couples: frozenset[int] | None, spreads: frozenset[int]
) -> Route:
    """Return a propagation; decisions for links that are not nodes are dropped."""
    if couples is not None:
        couples = (couples & links) if links else None
    return Route(nodes=Nodes(links, couples, spreads & links))


@register("auto")
class Auto(TracedAlgorithm):
    """The cheapest mixture of the other algorithms for each robot, by operation count."""

    clusters = True

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        return self.evaluate_on(problem, tree_of(problem), x)

    def evaluate_on(self, problem: Problem, tree: Tree, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        K = contact_rows(problem, tree, x)
        G = zeros(tree.rows, tree.rows)
        for contacts, route in decide(problem, tree.numbers is not None):
            part = tree.only(contacts)
            block = route(part, K, x)
            rows = [r for link in part.links for c in link.contacts for r in rows_of(c)]
            for r in rows:
                for s in rows:
                    G[r][s] = block[r][s]
        return {"G": G}


@lru_cache(maxsize=16)
def decide(problem: Problem, generic: bool) -> tuple[tuple[frozenset[int], Route], ...]:
    """Return the routes of the independent trees as (indices of the tree's contacts, route).

    Parameters
    ----------
    generic : count with the robot's constants unknown.
    """
    tree = tree_of(problem)
    groups: dict[int, set[int]] = {}
    for contact, link in tree.link_of.items():
        groups.setdefault(tree.root_of(link), set()).add(contact)
    return tuple(
        (frozenset(contacts), _cheapest(problem, tree.only(contacts), generic))
        for contacts in groups.values()
    )


def _cheapest(problem: Problem, tree: Tree, generic: bool) -> Route:
    """Return the best of the published routes, improved one decision at a time."""
    meetings = places(tree)
    search = CheapestSearch[Route](OperationCounter(problem, tree, generic), _ROUTE_BUDGET)
    nodes = wide_nodes(tree)
    pv_osimr = Route(nodes=Nodes(nodes))
    # Spreading downwards is a good start for trees with many nodes.
    spreading = Route(nodes=Nodes(nodes, nodes, nodes))
    starts = (pv_osimr, spreading) if 0 < len(nodes) <= _DEEPEST else (pv_osimr,)
    best = search.cheapest(starts)
    limit = _FAR * search.count(best)
    sizes = estimates(tree)
    if sizes["pv_osim"] < limit:
        best = search.cheapest((best, Route()))
    wholes = [
        Route(name)
        for name in WHOLE
        if (sizes[name] < limit or limit < _SMALL) and (tree.is_ordinary or name != "kjr")
    ]
    if not is_large(problem):  # a large problem has too many neighbours
        best = search.improved(best, lambda route: route.neighbours(tree, meetings))
    return search.cheapest((best, *wholes))


def places(tree: Tree) -> frozenset[int]:
    """Return the links at which more than six rows of several branches meet."""
    rows = [0] * len(tree.links)
    branches = [0] * len(tree.links)
    clustered = set()
    for joint in reversed(tree.joints):
        if len(joint.links) > 1:
            clustered.add(joint.parent)
        for i in joint.links:
            link = tree.links[i]
            rows[i] += sum(len(contact.selection) for contact in link.contacts)
            branches[i] += len(link.contacts)
            if joint.parent != WORLD and rows[i]:
                rows[joint.parent] += rows[i]
                branches[joint.parent] += 1
    # Rows that leave a cluster by several links arrive together, but have not met before.
    return frozenset(
        i
        for i, link in enumerate(tree.links)
        if rows[i] > 6 and (branches[i] > 1 or i in clustered) and link.motion != "free"
    )


def estimates(tree: Tree) -> dict[str, float]:
    """Return estimates of the operations of the published algorithms."""
    rows = [0] * len(tree.links)
    sizes: list[tuple[int, int]] = []
    for i, link in enumerate(tree.links):
        for contact in link.contacts:
            k = len(contact.selection)
            sizes.append((k, i))
            for j in tree.path(i):
                rows[j] += k
    roots = {tree.root_of(i) for i in tree.link_of.values()}
    # The remaining links share no joint with the contacts.
    moved = [i for i in range(len(tree.links)) if tree.root_of(i) in roots]
    m, links = sum(k for k, _ in sizes), len(tree.supporting)
    longest = max(len(tree.path(i)) for i in moved)
    return {
        "pv_osim": sum(r * r + 30.0 * r for r in rows) + 6.0 * m * m,
        "efpa": sum(60.0 * r for r in rows) + 6.0 * m * m,
        "kjr": 350.0 * links + 15.0 * m * (links - longest) + 5.0 * m * m,
        "ltl": _joint_space(tree, moved, rows, sizes),
    }


def _joint_space(
    tree: Tree, moved: list[int], rows: list[int], sizes: list[tuple[int, int]]
) -> float:
    """Return an estimate of the operations of LTL.

    Operations in joint space are counted as if all blocks were full. Propagation over a joint
    costs less where the next axis is parallel, as in fingers, and least on a fixed world, since
    half of a column's entries then meet no joint that they act on.

    Parameters
    ----------
    moved : links of the contacts' tree.
    rows : per link, the number of rows of contacts on the link and beyond.
    sizes : per contact, (rows, link).
    """
    free = any(tree.links[i].motion == "free" for i in moved)
    column, row = (15.0, 6.0) if free else (10.0, 3.0)
    above = {i: len(tree.path(i)) - 1 + 5 * free for i in moved}
    total = 0.0
    for i in moved:
        for a in range(6) if tree.links[i].motion == "free" else (above[i],):
            total += a * (a + 2.0) + rows[i] * (rows[i] + 1.0)
        steps = _steps(tree, i)
        total += sum(26.0 if turned else column for turned in steps)
        total += 20.0 if steps[:1] == [True] else 0.0
    for k, i in sizes:
        total += k * (above[i] + 1.0) ** 2
        total += k * sum(6.0 if turned else row for turned in _steps(tree, i))
    return total


def _steps(tree: Tree, i: int) -> list[bool]:
    """Return per step from a link to its root whether axes are not parallel (constant turns)."""
    links = (tree.links[j] for j in tree.path(i))
    return [bool(link.turns) for link in links if link.parent != WORLD and link.motion != "free"]
