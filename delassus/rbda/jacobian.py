"""The Jacobian of the ends of contacts on a tree."""

from __future__ import annotations

from delassus.model.robot import WORLD
from delassus.problem import Problem
from delassus.rbda.spatial import JointTransform
from delassus.rbda.tree import Tree
from delassus.rbda.unit_forces import rows_at_links
from delassus.rbda.velocities import Velocities, force_on_body
from delassus.scalars.functions import Matrix, Vector, zeros
from delassus.scalars.ports import Inputs
from delassus.scalars.steps import blocks, step


def jacobian_of_ends(problem: Problem, tree: Tree, x: Inputs) -> Matrix:
    """Return J (rows, n) of the ends of contacts, by propagating rows to the root."""
    velocities = Velocities(problem, tree)
    factors_of = velocities.rows(x)
    J = zeros(tree.rows, len(problem.velocities))
    # Per link: (number of the row in G, row at the link).
    arriving = rows_at_links(problem, tree, x)
    for i in reversed(range(len(tree.links))):
        link = tree.links[i]
        if not arriving[i]:
            continue
        if link.motion == "free":
            first = velocities.first[i]
            for r, row in arriving[i]:
                J[r][first : first + 6] = force_on_body(link, row)
            continue
        indices, factors = list(factors_of[i]), list(factors_of[i].values())
        joint, moves = JointTransform(link, x), link.parent != WORLD
        for block in blocks(len(arriving[i])):
            numbers = [r for r, _ in arriving[i][block]]
            rows = [row for _, row in arriving[i][block]]
            entries, moved = _felt(joint, rows, link.freedom, factors, moves)
            for r, values in zip(numbers, entries, strict=True):
                for k, value in zip(indices, values, strict=True):
                    J[r][k] = J[r][k] + value
            if moves:
                arriving[link.parent] += zip(numbers, moved, strict=True)
    return J


@step
def _felt(
    transform: JointTransform, rows: Matrix, S: int, factors: Vector, moves: bool
) -> tuple[Matrix, Matrix]:
    """Return the entries of rows in J for the velocities of a joint, and the rows at the parent.

    Parameters
    ----------
    moves : whether the link has a parent link.
    """
    entries = [[row[S] * factor for factor in factors] for row in rows]
    return entries, [transform.force_to_parent(row) for row in rows if moves]
