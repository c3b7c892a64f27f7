"""Rough operation counts of the published algorithms, from the shape of a robot alone.

They tell `auto` which algorithms are too far off to be worth a trace. Where the constants come
from:

- To carry a row over a joint takes 23 to 50 operations on the robots of ``benchmarks/``, mostly
  26; of these 16 turn and shift it to the parent, or 32 where the axes are not parallel. PV-OSIM
  (30 per row and joint) does it once, EFPA (60) inwards and outwards, KJR (350 per link) with the
  columns and then the rows of Ω_ii, and then with each row of G over about half of the links that
  are not on its own way (15).
- A rank-1 update of a symmetric r × r matrix takes about r² operations, the product of m rows with
  their halves at the root six times as much, in KJR with full blocks a little less.
- LTL's are fitted: to carry a column of M or a row of J over a joint, where the zeros of both and
  the joints that feel nothing are left out.

The sweep over the inertias is left out of PV-OSIM and EFPA. The results are 0.5 to 2 times the
counts of those robots and of the stems and chains there, for LTL 0.85 to 1.7 times; only on the
UR5, with its parallel axes, they are up to 3 times too large.
"""

from __future__ import annotations

from delassus_ros.algorithms.tree import Tree
from delassus_ros.model.robot import WORLD


def estimates(tree: Tree) -> dict[str, float]:
    """Return roughly how many operations the published algorithms need."""
    rows = [0] * len(tree.links)
    sizes: list[tuple[int, int]] = []
    for i, link in enumerate(tree.links):
        for contact in link.contacts:
            k = len(contact.selection)
            sizes.append((k, i))
            for j in tree.path(i):
                rows[j] += k
    roots = {tree.root_of(i) for i in tree.link_of.values()}
    # Others share no joint with the contacts.
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
    """Return roughly how many operations LTL needs.

    What is done in joint space is counted as if all blocks were full. To carry something over a
    joint costs less where the next axis is parallel, as in fingers; on a world that does not move
    the least, since half of a column's entries then meet no joint that feels them.

    Parameters
    ----------
    moved : links of the contacts' tree.
    rows : per link, the rows of contacts on it and beyond.
    sizes : per contact, its rows and its link.
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
    """Return per step from a link to its root whether it has constant turns: axes not parallel."""
    links = (tree.links[j] for j in tree.path(i))
    return [bool(link.turns) for link in links if link.parent != WORLD and link.motion != "free"]
