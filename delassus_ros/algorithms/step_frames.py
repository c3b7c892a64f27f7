"""In which frame each step over a joint is taken: the link's, or that of the link it hangs on.

The step H − F D⁻¹ Fᵀ is the same in any frame. In the link's frame one direction is the joint's,
and what the joint takes away need not be computed there: but the transform to the parent then
meets a matrix without zeros. In the parent's frame it meets the link's own zeros, and where the
transform leaves the joint's column as it is, F comes for nothing. Which is cheaper depends on the
link's inertia, the joint's armature, the transform and the rows that pass: it is counted, joint by
joint from the leaves, in O(n).
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any, NamedTuple

from delassus_ros.algorithms.expressions.graph import Graph, Symbol
from delassus_ros.algorithms.expressions.operations import operations
from delassus_ros.algorithms.generic import specific_constants
from delassus_ros.algorithms.mixed_propagation import wide_nodes
from delassus_ros.algorithms.propagation import propagator
from delassus_ros.algorithms.scalars import Matrix, Scalar, identity, is_zero
from delassus_ros.algorithms.spatial import SpatialInertia, contact_rows
from delassus_ros.algorithms.steps import recorded
from delassus_ros.algorithms.tree import Link, Tree, TreeJoint
from delassus_ros.model.robot import WORLD
from delassus_ros.problem import Problem


class _Step(NamedTuple):
    """What leaves a joint, and the operations that this takes."""

    inertia: SpatialInertia
    rows: Matrix
    operations: int


class _Fresh:
    """A graph of its own, with inputs for what is known by its zeros only.

    Attributes
    ----------
    inputs : those of the problem.
    """

    def __init__(self, problem: Problem) -> None:
        self.graph, self._count = Graph(alone=True), 0
        self.inputs: dict[str, list[Scalar]] = {}
        for port in problem.inputs:
            self.inputs[port.name] = [self._next() for _ in range(port.size)]

    def _next(self) -> Scalar:
        self._count += 1
        return self.graph.input(self._count - 1)

    def scalar(self, value: Scalar) -> Scalar:
        """Return numbers as they are, and an input for anything else."""
        if isinstance(value, float):
            return value
        return self._next()

    def matrix(self, values: Matrix) -> Matrix:
        """Return the same for a matrix."""
        return [[self.scalar(value) for value in row] for row in values]

    def inertia(self, H: SpatialInertia) -> SpatialInertia:
        """Return the same for an inertia; what is symmetric stays so."""
        A, C = self.matrix(H.A), self.matrix(H.C)
        for m in (A, C):
            for i in range(3):
                for j in range(i):
                    m[i][j] = m[j][i]
        return SpatialInertia(A, self.matrix(H.B), C)


def in_cheapest_frames(problem: Problem, tree: Tree) -> Tree:
    """Return a tree of the problem with those steps at the carriers that are cheaper there."""
    return tree.at_carriers(cheaper_at_carriers(problem, tree.numbers or tree))


@lru_cache(maxsize=16)
def cheaper_at_carriers(problem: Problem, tree: Tree) -> frozenset[int]:
    """Return the links whose joints' steps need fewer operations at the links that carry them.

    The rows that pass are those of PV-OSIMr with nodes where more than six rows meet.
    """
    with specific_constants(), recorded(None):
        return _cheaper_at_carriers(problem, tree)


def _cheaper_at_carriers(problem: Problem, tree: Tree) -> frozenset[int]:
    opens, found = wide_nodes(tree), []
    known: dict[Hashable, tuple[_Step, bool]] = {}
    between = _Fresh(problem)
    with tree.in_place():
        K = contact_rows(problem, between.inputs)
    H = [SpatialInertia.of(link) for link in tree.links]
    arriving = [[row for c in link.contacts for row in K[c.index]] for link in tree.links]
    for joint in reversed(tree.joints):
        i, parent = joint.i, joint.parent
        if tree.links[i].motion == "free":
            continue
        for node in opens.intersection(joint.links):
            arriving[node] = identity(6)
        if joint.cluster is None:
            # Limbs of one build are counted once.
            shape = _shape([_felt(tree.links[i]), H[i].matrix(), arriving[i]])
            if shape not in known:
                own = _step(problem, tree, joint, H, arriving)
                at_carrier = joint._replace(cluster=tree.carried_step(i))
                other = _step(problem, tree, at_carrier, H, arriving)
                known[shape] = min((own, False), (other, True), key=lambda x: x[0].operations)
            step, carried = known[shape]
            if carried:
                found.append(i)
        else:
            step = _step(problem, tree, joint, H, arriving)
        if parent != WORLD:
            H[parent] = H[parent] + between.inertia(step.inertia)
            arriving[parent] = arriving[parent] + between.matrix(step.rows)
    return frozenset(found)


def _felt(link: Link) -> list[Any]:
    """Return what of a link a step depends on, besides its inertia."""
    return [
        str(link.motion), str(link.axis), str(link.parent == WORLD), link.sign, link.angle,
        link.offset, link.turns, link.armature, link.couple,
    ]  # fmt: skip


def _shape(value: Any) -> Hashable:
    """Return where values have zeros and ones of either sign, and how they are nested.

    A sign rarely changes what a step needs, and mirrored limbs had better be treated alike.
    """
    if isinstance(value, (list, tuple)):
        return tuple(_shape(entry) for entry in value)
    if isinstance(value, float):
        return abs(value) if value in (0.0, 1.0, -1.0) else None
    return value if isinstance(value, (int, str)) else ()


def _step(
    problem: Problem,
    tree: Tree,
    joint: TreeJoint,
    H: list[SpatialInertia],
    arriving: list[Matrix],
) -> _Step:
    """Return one step of the backward sweep, for scalars of which only the zeros are known."""
    fresh = _Fresh(problem)
    x = fresh.inputs
    known = list(H)
    for i in joint.links:
        known[i] = fresh.inertia(H[i])
    step = propagator(joint, tree, known, x)
    rows, results = [], []
    for i in joint.links:
        moved, *halves = step.to_parent(fresh.matrix(arriving[i]), i)
        rows += moved
        results += [value for part in (moved, *halves) for row in part for value in row]
    inertia = SpatialInertia([], [], [])
    if step.parent != WORLD:
        inertia = step.inertia_to_parent()
    entries = [value for row in inertia.matrix() for value in row] if inertia.A else []
    graph = fresh.graph
    outputs = [value.index for value in (*results, *entries) if isinstance(value, Symbol)]
    live, _ = graph.needed(outputs)
    count = operations(graph, live).total
    # What it adds to the carrier: every entry of a symmetric matrix once.
    count += (sum(not is_zero(value) for value in entries) + 6) // 2
    return _Step(inertia, rows, count)
