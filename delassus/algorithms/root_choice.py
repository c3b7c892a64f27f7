"""Roots of a floating robot that may be the cheapest, by the rows that pass the joints.

A propagation passes min(6, rows beyond) rows over every joint, so the sum over all joints is a
cost of the root. The sum changes by one joint's share from a body to the next, so that all roots
are compared in O(n). Bodies with the least sum are connected. Along a chain of these bodies only
the constants of link frames and armatures differ, while at its ends and where branches meet the
rows at the root itself differ: a search by exact count starts from those bodies and walks from
body to body (``docs/clusters.md``).
"""

from __future__ import annotations

from typing import NamedTuple

from delassus.model.mechanism import builds_of
from delassus.problem import Problem
from delassus.rbda.roots import REVERSIBLE
from delassus.rbda.trees import roots_of

_BRANCHES = 3
"""Number of neighbours with rows from which on branches meet at a body."""
_FULL = 6
"""Rows of an extended propagator: more rows beyond a joint cost no more."""


class Roots(NamedTuple):
    """Bodies with the least sum of rows, one for alike limbs.

    Attributes
    ----------
    starts : ends of chains of these bodies, and bodies where branches meet; without the base.
    beside : per body, the bodies of its neighbours.
    """

    starts: list[int]
    beside: dict[int, list[int]]


def candidate_roots(problem: Problem, contacts: frozenset[int]) -> Roots:
    """Return the bodies that may be the cheapest root of the base's tree.

    Parameters
    ----------
    contacts : indices of the ends of contacts on the base's tree.
    """
    robot = problem.robot
    beyond = [0] * len(robot.joints)
    for k in contacts:
        _, contact = problem.ends[k]
        for body in robot.path(robot.frames[contact.frame].body):
            beyond[body] += contact.rows
    rows = beyond[0]
    steps = {0: 0}
    neighbours: dict[int, list[int]] = {0: []}
    branches = [0] * len(robot.joints)
    for body, joint in enumerate(robot.joints):
        parent = joint.parent
        if parent not in steps or joint.kind not in REVERSIBLE:
            continue
        steps[body] = steps[parent] + min(_FULL, rows - beyond[body]) - min(_FULL, beyond[body])
        neighbours[parent].append(body)
        neighbours[body] = [parent]
        for end in (body, parent):
            branches[end] += 0 < beyond[body] < rows
    roots = set(roots_of(problem))
    least = min(steps[body] for body in roots)
    tied = [body for body in steps if steps[body] == least and body in roots]
    meetings = [body for body in tied if branches[body] >= _BRANCHES]
    ends = [body for body in tied if sum(steps[k] == least for k in neighbours[body]) < 2]
    shapes, alike = builds_of(robot.joints, beyond, ordered=False), dict[tuple[int, ...], int]()
    first = {
        body: alike.setdefault(tuple(shapes[i] for i in robot.path(body)), body) for body in tied
    }
    beside = {body: {first[k] for k in neighbours[body] if k in first} for body in alike.values()}
    return Roots(
        list(dict.fromkeys(first[body] for body in (*meetings, *ends) if first[body])),
        {body: sorted(near) for body, near in beside.items()},
    )
