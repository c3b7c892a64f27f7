"""Auto: the cheapest mixture of the published algorithms for each robot, by exact count.

For every independent tree (a free body, or a joint on the world, with all links beyond) the
following is chosen; no choice changes the matrix.

* The root of a floating base, any body (:mod:`delassus.algorithms.root_choice`).
* The nodes of the propagation: the links at which the contacts' rows (rank-1 updates per joint,
  PV-OSIM) are replaced by the six rows of an extended propagator (PV-OSIMr).
* The propagation, or the joint-space route (LTL), or EFPA or KJR, which form no products of
  propagators.

With further outputs it is chosen whether all outputs follow from the factors of M.

Candidates are traced and counted with the robot's constants, except candidates that are far off by
an estimate; the candidate with fewest operations is taken. Decisions are made once per problem.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from delassus.algorithms.counting import CheapestSearch, OperationCounter, is_large
from delassus.algorithms.efpa import efpa
from delassus.algorithms.kjr import kjr
from delassus.algorithms.ltl import ltl
from delassus.algorithms.pv_osimr import delassus, wide_nodes
from delassus.algorithms.registry import DelassusFunction, TracedAlgorithm, register
from delassus.algorithms.root_choice import Roots, candidate_roots
from delassus.model.robot import WORLD
from delassus.problem import Problem
from delassus.rbda.momentum import contact_matrix
from delassus.rbda.outputs import compute_outputs, outputs_by_factors
from delassus.rbda.spatial import contact_rows
from delassus.rbda.tree import NO_ENTRY, Tree, rows_of
from delassus.rbda.trees import tree_of
from delassus.rbda.unknown_constants import structure
from delassus.scalars.functions import Matrix, zeros
from delassus.scalars.ports import Inputs, Outputs

WHOLE: dict[str, DelassusFunction] = {"ltl": ltl, "efpa": efpa, "kjr": kjr}
"""Routes without further choices; KJR takes only ordinary trees, EFPA and LTL also clusters."""

_ROUTE_BUDGET = 250_000
"""Operations traced in search of the nodes of one independent tree, roughly."""
_ROOT_BUDGET = 300_000
"""Operations traced in search of the root of one independent tree, roughly."""
_FAR = 1.15
"""Ratio of estimated operations to the best count above which an algorithm is not counted."""
_FAR_OSIM = 1.5
"""The same ratio for PV-OSIM, whose estimate does not know the zeros of rows at a root."""
_SPREADING = range(4, 61)
"""Numbers of nested nodes where spreading, a recursion, is counted: robots have up to 3."""
_SMALL = 2_000
"""Operations below which all algorithms are counted: estimates of small robots are rough."""


@dataclass(frozen=True)
class Route:
    """How the matrix of one independent tree is computed.

    Attributes
    ----------
    name : ``"propagation"`` or one of :data:`WHOLE`.
    nodes : links that are nodes of the propagation.
    root : body with the free joint of a floating base; 0 is the base of the robot.
    spreads : see :func:`delassus.algorithms.pv_osimr.delassus`.
    """

    name: str = "propagation"
    nodes: frozenset[int] = frozenset()
    root: int = 0
    spreads: bool = False

    def __call__(self, tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
        """Return G of the tree's contacts."""
        if self.name in WHOLE:
            return WHOLE[self.name](tree, K, x)
        return delassus(tree, K, x, self.nodes, self.spreads)

    def neighbours(self, meetings: frozenset[int]) -> Iterator[Route]:
        """Yield the propagations that differ in one node.

        Parameters
        ----------
        meetings : the links that may become nodes.
        """
        for i in sorted(meetings):
            yield replace(self, nodes=self.nodes ^ {i})


@register("auto")
class Auto(TracedAlgorithm):
    """The cheapest mixture of the other algorithms for each robot, by operation count.

    Parameters
    ----------
    rooted : take any body as root of a floating robot; if False, its base.
    """

    clusters = True

    def __init__(self, rooted: bool = True) -> None:
        self._rooted = rooted

    def evaluate(self, problem: Problem, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        return self.evaluate_on(problem, tree_of(problem), x)

    def evaluate_on(self, problem: Problem, tree: Tree, x: Inputs) -> Outputs:
        """Compute G; see the base class."""
        plan = decide(problem, tree.numbers is not None, self._rooted)
        return plan(problem, tree, x)

    def variants(self, problem: Problem) -> tuple[TracedAlgorithm, ...]:
        """Return also the mixture from the base, around which more limbs may be alike.

        Alike limbs are computed side by side; the root makes one of them different.
        """
        if not self._rooted or not decide(problem.unseeded, False, True).is_rooted:
            return (self,)
        base = Auto(rooted=False)
        base.name = self.name
        return self, base


Routes: TypeAlias = "tuple[tuple[frozenset[int], Route], ...]"
"""Per independent tree the indices of its contacts, and the route."""


@dataclass(frozen=True)
class Plan:
    """How the outputs of a problem are computed.

    Attributes
    ----------
    routes : how G is computed; None for all outputs from the factors of M.
    """

    routes: Routes | None

    @property
    def is_rooted(self) -> bool:
        """Whether a root other than the base of the robot is taken."""
        return any(route.root for _, route in self.routes or ())

    def __call__(self, problem: Problem, tree: Tree, x: Inputs) -> Outputs:
        """Return G, and further outputs if all are computed from the factors."""
        if self.routes is None:
            return outputs_by_factors(problem, tree, x)
        return {"G": _combined(problem, tree, x, self.routes)}


def _combined(problem: Problem, tree: Tree, x: Inputs, routes: Routes) -> Matrix:
    """Return G by the routes of the independent trees."""
    G = zeros(tree.rows, tree.rows)
    for contacts, route in routes:
        traversed = structure(tree_of(problem, route.root)) if route.root else tree
        part = traversed.only(contacts)
        block = route(part, contact_rows(problem, traversed, x), x)
        rows = [r for link in part.links for c in link.contacts for r in rows_of(c)]
        for r in rows:
            for s in rows:
                G[r][s] = block[r][s]
    return contact_matrix(problem, tree, x, G)


@lru_cache(maxsize=16)
def decide(problem: Problem, generic: bool, rooted: bool = True) -> Plan:
    """Return the plan with the fewest operations for all outputs of the problem.

    Parameters
    ----------
    generic : count with the robot's constants unknown.
    rooted : take any body as root of a floating robot; if False, its base.
    """
    best = _routes(problem, generic, rooted)
    others = [port.name for port in problem.outputs if port.name != "G"]
    if not others:
        return Plan(best)
    # Further outputs are computed from the base of the robot, by propagation or from the factors
    # of M, and share the more with a G that is computed so.
    at_base = _routes(problem, generic, False) if Plan(best).is_rooted else best
    propagation = Route(nodes=wide_nodes(tree_of(problem)))
    propagated = tuple((contacts, propagation) for contacts, _ in best)
    plans = dict.fromkeys(map(Plan, (at_base, best, propagated)))
    # The factorisation has no steps that a large problem could share as routines.
    if not is_large(problem):
        plans[Plan(None)] = None
    counter = OperationCounter(problem, tree_of(problem), generic)

    def total(plan: Plan) -> int:
        def everything(tree: Tree, K: dict[int, Matrix], x: Inputs) -> Matrix:
            found = plan(problem, tree, x)
            found |= compute_outputs(problem, tree, x, [o for o in others if o not in found])
            return [np.ravel(np.array(value, dtype=object)).tolist() for value in found.values()]

        return counter(everything)

    return min(plans, key=total)


@lru_cache(maxsize=16)
def _routes(problem: Problem, generic: bool, rooted: bool) -> Routes:
    """Return the cheapest routes to G alone; with `rooted` from any root."""
    tree = tree_of(problem)
    groups: dict[int, set[int]] = {}
    for contact, link in tree.link_of.items():
        groups.setdefault(tree.root_of(link), set()).add(contact)
    return tuple(
        (
            frozenset(contacts),
            _Search(problem, frozenset(contacts), generic).cheapest(
                rooted and tree.links[link].q_index == NO_ENTRY
            ),
        )
        for link, contacts in groups.items()
    )


class _Search:
    """Search for the cheapest route of one independent tree.

    Parameters
    ----------
    contacts : indices of the contacts on the tree.
    generic : count with the robot's constants unknown.
    """

    def __init__(self, problem: Problem, contacts: frozenset[int], generic: bool) -> None:
        self._problem, self._contacts, self._generic = problem, contacts, generic
        self._counters: dict[int, OperationCounter] = {}
        self._search = CheapestSearch[Route](self._count, _ROUTE_BUDGET)

    def _tree(self, root: int) -> Tree:
        return tree_of(self._problem, root).only(self._contacts)

    def _count(self, route: Route) -> int:
        if route.root not in self._counters:
            self._counters[route.root] = OperationCounter(
                self._problem, tree_of(self._problem, route.root), self._generic
            )
        return self._counters[route.root](
            lambda tree, K, x: route(tree.only(self._contacts), K, x)
        )

    def cheapest(self, rooted: bool) -> Route:
        """Return the best of the published routes; with `rooted` from the best root."""
        tree, search = self._tree(0), self._search
        starts = self._starts(0)
        base = best = search.cheapest(starts)
        if rooted:
            roots = candidate_roots(self._problem, self._contacts)
            found = [base]
            for root in roots.starts:
                if search.spent < _ROOT_BUDGET:
                    found.append(search.cheapest(self._starts(root)))
            for number, route in enumerate(sorted(found, key=search.count)):
                if number and search.spent > _ROOT_BUDGET:
                    break
                if search.count(route) < _FAR * search.count(best):
                    route = search.improved(route, lambda near: self._beside(near, roots))
                best = search.cheapest((best, route))
        if not is_large(self._problem):  # a large problem has too many neighbours
            best = search.cheapest([self._improved(route) for route in {base, best}])
        # Estimates are meant to be compared with PV-OSIMr.
        limit, sizes = _FAR * search.count(starts[0] if best.root == 0 else best), estimates(tree)
        wholes = [
            Route(name)
            for name in WHOLE
            if (sizes[name] < limit or limit < _SMALL) and (tree.is_ordinary or name != "kjr")
        ]
        return search.cheapest((best, *wholes))

    def _starts(self, root: int) -> list[Route]:
        """Return PV-OSIMr from a root, and variants of it that differ and may be cheaper."""
        tree = self._tree(root)
        nodes = wide_nodes(tree)
        routes = [Route(nodes=nodes, root=root)]
        if max((len(nodes.intersection(tree.path(i))) for i in nodes), default=0) in _SPREADING:
            routes.append(Route(nodes=nodes, root=root, spreads=True))
        if nodes and estimates(tree)["pv_osim"] < _FAR_OSIM * self._search.count(routes[0]):
            routes.append(Route(root=root))
        return routes

    def _beside(self, route: Route, roots: Roots) -> Iterator[Route]:
        """Yield the routes of :meth:`_starts` from the neighbours of a route's root."""
        for root in roots.beside.get(route.root, ()):
            yield from self._starts(root)

    def _improved(self, route: Route) -> Route:
        """Return a propagation no node more or less of which saves operations."""
        meetings = places(self._tree(route.root))
        return self._search.improved(route, lambda other: other.neighbours(meetings))


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
