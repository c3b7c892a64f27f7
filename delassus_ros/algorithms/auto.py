"""Auto: the cheapest mixture of the published algorithms for each robot, by exact count.

Two questions are open in every propagation algorithm: at which links contacts' rows stop
travelling as they are (rank-1 updates per joint, PV-OSIM) and six rows of an extended propagator
travel for them (PV-OSIMr), and in which order the products at such a node are taken. The steps
over the joints may be taken in the links' frames or in those of their parents. And for each
independent tree (a free body, or a joint on the world, with what it carries) the propagation
may cost more than the joint-space route (LTL; with clusters, projection), or than EFPA or KJR,
which do not form products of propagators. Nothing of this changes the matrix. Candidates are
traced and counted, with the robot's constants, all but those that an estimate puts far off, and
the one with fewest operations is taken; a decision is made once per problem.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from delassus_ros.algorithms.base import Inputs, Outputs
from delassus_ros.algorithms.cost_estimates import estimates
from delassus_ros.algorithms.counting import OperationCounter, is_large
from delassus_ros.algorithms.efpa import efpa
from delassus_ros.algorithms.frames import tree_of
from delassus_ros.algorithms.kjr import kjr
from delassus_ros.algorithms.mixed_propagation import Decision, delassus, wide_nodes
from delassus_ros.algorithms.open_chain import ClusterAlgorithm
from delassus_ros.algorithms.projection import projection
from delassus_ros.algorithms.registry import register
from delassus_ros.algorithms.scalars import Matrix, zeros
from delassus_ros.algorithms.spatial import contact_rows
from delassus_ros.algorithms.step_frames import cheaper_at_carriers
from delassus_ros.algorithms.tree import Tree, rows_of
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem

Whole = Callable[[Tree, "dict[int, Matrix]", Inputs], Matrix]
WHOLE: dict[str, Whole] = {"ltl": projection, "efpa": efpa, "kjr": kjr}
"""Routes that leave nothing to decide; KJR takes ordinary trees alone, the others clusters too."""

_BUDGET = 250_000
"""Operations traced in search of a decision for one independent tree, roughly."""
_FAR = 1.15
"""Algorithms estimated at this many times the best count are not counted."""
_SMALL = 2_000
"""Operations below which all are counted: estimates of small robots are rough."""
_DEEPEST = 60
"""Nodes up to which spreading through all of them, a recursion, is considered."""


@dataclass(frozen=True)
class Route:
    """How the matrix of one independent tree is computed.

    Attributes
    ----------
    name : ``"propagation"`` or one of :data:`WHOLE`.
    decision : the propagation's.
    carried : links over whose joints the propagation steps in the frames of their parents.
    """

    name: str = "propagation"
    decision: Decision = Decision()
    carried: frozenset[int] = frozenset()

    def __call__(self, tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
        """Return G of the tree's contacts."""
        if self.name in WHOLE:
            return WHOLE[self.name](tree, K, x)
        return delassus(tree.at_carriers(self.carried), K, x, self.decision)

    def neighbours(self, tree: Tree, meetings: frozenset[int]) -> Iterator[Route]:
        """Yield the routes that differ in one decision, but for those that do the same.

        Parameters
        ----------
        meetings : the links that may open.
        """
        opens, couples, spreads = (
            self.decision.opens, self.decision.couples, self.decision.spreads,
        )  # fmt: skip
        for i in sorted(meetings):
            yield _propagation(opens ^ {i}, couples, spreads)
        for i in sorted(opens):
            # K of contacts alone is their P: either way the same products.
            if any(i in tree.path(j)[1:] for j in opens):
                yield _propagation(opens, couples, spreads ^ {i})
        if couples is None:
            yield _propagation(opens, frozenset(), spreads)
            yield _propagation(opens, opens, spreads)
            return
        ways = {i: _last_link(tree, opens, i) for i in opens}
        for i in sorted(opens):
            # Nodes that arrive together couple if one of them does.
            if not any(j != i and ways[j] == ways[i] for j in couples):
                yield _propagation(opens, couples ^ {i}, spreads)


def _last_link(tree: Tree, opens: frozenset[int], i: int) -> int:
    """Return the link by which the rows of node i come to the next node or the root."""
    path = tree.path(i)
    end = next((k for k, j in enumerate(path[1:], start=1) if j in opens), len(path) - 1)
    return path[max(end - 1, 0)]


def _propagation(
    opens: frozenset[int], couples: frozenset[int] | None, spreads: frozenset[int]
) -> Route:
    """Return a propagation; what is decided for links that are not nodes is left out."""
    if couples is not None:
        couples = (couples & opens) if opens else None
    return Route(decision=Decision(opens, couples, spreads & opens))


@register("auto")
class Auto(ClusterAlgorithm):
    """The cheapest mixture of the other algorithms for each robot, by operation count."""

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        tree = Tree.of(problem)
        K = contact_rows(problem, x)
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
    """Return the route of every independent tree, each named by its contacts' indices.

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
    counter = _Counter(problem, tree, generic)
    nodes = wide_nodes(tree)
    pv_osimr = Route(decision=Decision(nodes))
    # Spreading downwards is a good start where there are many nodes.
    spreading = Route(decision=Decision(nodes, nodes, nodes))
    starts = (pv_osimr, spreading) if 0 < len(nodes) <= _DEEPEST else (pv_osimr,)
    best = min(starts, key=counter)
    limit = _FAR * counter(best)
    sizes = estimates(tree)
    if sizes["pv_osim"] < limit:
        best = min((best, Route()), key=counter)
    wholes = [
        Route(name)
        for name in WHOLE
        if (sizes[name] < limit or limit < _SMALL) and (tree.is_ordinary or name != "kjr")
    ]
    if is_large(problem):
        # Its neighbours are too many, and steps at the carriers are not shared.
        return min((best, *wholes), key=counter)
    improved = True
    while improved:
        improved = False
        for route in best.neighbours(tree, meetings):
            if counter.spent > _BUDGET:
                break
            if counter(route) < counter(best):
                best, improved = route, True
                break
    carried = [cheaper_at_carriers(problem, tree)]
    if 2 * len(carried[0]) > len(tree.single):
        carried.append(tree.single)
    return min((best, *(replace(best, carried=links) for links in carried), *wholes), key=counter)


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
    # What leaves a cluster by several links arrives together, but has not met before.
    return frozenset(
        i
        for i, link in enumerate(tree.links)
        if rows[i] > 6 and (branches[i] > 1 or i in clustered) and link.motion != "free"
    )


class _Counter:
    """Counts the operations of routes for one tree, each once."""

    def __init__(self, problem: Problem, tree: Tree, generic: bool) -> None:
        self._count = OperationCounter(problem, tree, generic)
        self._known: dict[Route, int] = {}
        self.spent = 0

    def __call__(self, route: Route) -> int:
        if route not in self._known:
            self._known[route] = self._count(route)
            self.spent += self._known[route]
        return self._known[route]
