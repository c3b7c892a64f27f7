"""Which parts of a problem are alike: limbs of the same build, entries of G, rows of G.

Entries of the inputs and results of a function of a robot's joints belong to joints; results are
alike that relate corresponding joints of alike limbs, a row to a column of the same limb, say.
This only proposes; the lane pass checks on the graph that expressions really have one shape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, pairwise, product

from delassus.model.mechanism import builds_of
from delassus.model.robot import WORLD, Robot
from delassus.problem import Problem
from delassus.scalars.ports import places

Owners = Sequence[int | None]
"""Per entry of an axis the joint that it belongs to; None: to none."""


@dataclass(frozen=True)
class LimbGroup:
    """Subtrees of the same build.

    Attributes
    ----------
    inputs : per limb, the positions in the input block of its joints' coordinates and of its
        contacts' placements.
    contacts : per limb, the indices of its contacts, alike from limb to limb.
    """

    inputs: tuple[frozenset[int], ...]
    contacts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Likeness:
    """Which parts of a function are alike, as far as is known.

    Attributes
    ----------
    groups : limbs of the same build.
    outputs : lists of positions in the output block whose expressions may have one shape.
    rows : rows of a matrix as positions in the output block, -1 for entries to be left out.
    """

    groups: Sequence[LimbGroup] = ()
    outputs: Sequence[list[int]] = ()
    rows: Sequence[list[int]] = ()


def likeness_of(problem: Problem) -> Likeness:
    """Return which parts of the outputs of a problem are alike."""
    groups = limb_groups(problem)
    return Likeness(groups, alike_outputs(problem, groups), matrix_rows(problem))


def limb_groups(problem: Problem) -> list[LimbGroup]:
    """Return groups of two or more disjoint alike subtrees, largest groups first.

    A group inside the limbs of an equally large group is left out: packing the outer limbs
    packs it as well.
    """
    robot = problem.robot
    contacts: dict[int, list[int]] = defaultdict(list)
    for index, contact in enumerate(problem.contacts):
        if len(contact.ends) == 1:
            contacts[robot.frames[contact.frame].body].append(index)
    marks = [
        tuple((problem.contacts[c].rows, problem.contacts[c].moving) for c in contacts[i])
        for i in range(len(robot.joints))
    ]
    placements = _placements(problem)
    return [
        LimbGroup(
            tuple(
                frozenset(
                    robot.q_offsets[k] + offset
                    for k in limb
                    for offset in range(robot.joints[k].kind.nq)
                )
                | {position for k in limb for c in contacts[k] for position in placements[c]}
                for limb in limbs
            ),
            tuple(tuple(c for k in limb for c in contacts[k]) for limb in limbs),
        )
        for limbs in alike_subtrees(robot, marks)
    ]


def alike_subtrees(robot: Robot, marks: Sequence[Hashable]) -> list[list[list[int]]]:
    """Return groups of two or more disjoint alike subtrees, largest groups first.

    Parameters
    ----------
    marks : per joint what else has to be equal.

    Returns
    -------
    Per group and subtree its joints, in corresponding orders.
    """
    children: dict[int, list[int]] = defaultdict(list)
    for i, joint in enumerate(robot.joints):
        children[joint.parent].append(i)
    has_armature = [joint.armature > 0 for joint in robot.joints]
    builds = builds_of(robot.joints, list(zip(has_armature, marks, strict=True)))
    members: dict[int, list[int]] = {}
    for i in reversed(range(len(robot.joints))):
        members[i] = [i] + [k for child in children[i] for k in members[child]]
    alike: dict[int, list[int]] = defaultdict(list)
    for i, build in enumerate(builds):
        alike[build].append(i)
    groups = []
    for roots in alike.values():
        disjoint = [i for i in roots if not any(i in members[k] for k in roots if k != i)]
        parents = {robot.joints[i].parent for i in disjoint}
        if len(disjoint) > 1 and not _implied(parents, disjoint, alike, builds):
            groups.append([members[i] for i in disjoint])
    return sorted(groups, key=lambda group: -len(group))


def outer_limbs(groups: Sequence[LimbGroup]) -> list[list[int]]:
    """Return groups of limbs none of which is inside another, each as a bit set of its inputs."""
    taken = 0
    found = []
    for group in sorted(groups, key=lambda group: -max(map(len, group.inputs))):
        masks = [sum(1 << position for position in inputs) for inputs in group.inputs]
        free = [mask for mask in masks if not mask & taken]
        if len(free) > 1:
            found.append(free)
            taken |= sum(free)
    return found


def _placements(problem: Problem) -> list[list[int]]:
    """Return per contact the positions in the input block of what moves it."""
    found: dict[str, list[int]] = {contact.name: [] for contact in problem.contacts}
    for port, place in places(problem.inputs):
        for k, name in enumerate(problem.placed.get(port.name, ())):
            first = place.start + k * port.shape[1]
            found[name] += range(first, first + port.shape[1])
    return list(found.values())


def _implied(
    parents: set[int], roots: list[int], alike: dict[int, list[int]], builds: list[int]
) -> bool:
    """Return True if each root hangs alone on one of as many alike parents."""
    if WORLD in parents or len(parents) < len(roots):
        return False
    shared = {builds[parent] for parent in parents}
    return len(shared) == 1 and len(alike[next(iter(shared))]) == len(roots)


def alike_outputs(problem: Problem, groups: list[LimbGroup]) -> list[list[int]]:
    """Return lists of positions in the output block whose expressions may have one shape."""
    proposals: list[list[int]] = []
    start = _start_of_matrix(problem)
    for group in groups:
        proposals += _blocks(problem, group, start, problem.contacts.rows)
    for group, other in combinations(groups, 2):
        proposals += _blocks_between(problem, group, other, start, problem.contacts.rows)
    return proposals


def _start_of_matrix(problem: Problem) -> int:
    """Return the position of G in the output block."""
    return int(next(p.start for port, p in places(problem.outputs) if port.name == "G"))


def _blocks(problem: Problem, group: LimbGroup, start: int, m: int) -> list[list[int]]:
    """Return the alike entries of the blocks of G between the contacts of a group's limbs."""
    limbs = range(len(group.contacts))
    same = [(i, i) for i in limbs]
    crossed = [(i, k) for i in limbs for k in limbs if i < k]
    proposals = []
    for a in range(len(group.contacts[0])):
        for b in range(len(group.contacts[0])):
            for pairs in (same, crossed):
                if pairs is same and a > b:
                    continue
                contacts = [(group.contacts[i][a], group.contacts[k][b]) for i, k in pairs]
                if not contacts:
                    continue
                entries = _entries(problem, contacts, start, m)
                # Of a contact with itself the upper triangle.
                proposals += [e for r, s, e in entries if pairs is crossed or a != b or s >= r]
    return proposals


def _blocks_between(
    problem: Problem, group: LimbGroup, other: LimbGroup, start: int, m: int
) -> list[list[int]]:
    """Return the alike entries of the blocks of G between the contacts of two groups' limbs."""
    if set(chain(*group.contacts)) & set(chain(*other.contacts)):
        return []
    proposals = []
    for a, b in product(range(len(group.contacts[0])), range(len(other.contacts[0]))):
        pairs = [(one[a], two[b]) for one in group.contacts for two in other.contacts]
        proposals += [entries for _, _, entries in _entries(problem, pairs, start, m)]
    return proposals


def _entries(
    problem: Problem, pairs: list[tuple[int, int]], start: int, m: int
) -> Iterator[tuple[int, int, list[int]]]:
    """Yield row and column in the blocks of some pairs of contacts, and the entries there."""
    offsets = problem.contacts.row_offsets
    rows, columns = (problem.contacts[c].rows for c in pairs[0])
    for r, s in product(range(rows), range(columns)):
        yield r, s, [start + (offsets[i] + r) * m + offsets[k] + s for i, k in pairs]


def matrix_rows(problem: Problem) -> list[list[int]]:
    """Return the rows of the blocks of G between two contacts, as positions in the output block.

    Entries before the diagonal, which are those behind it, are -1.
    """
    offsets = problem.contacts.row_offsets
    found: list[list[int]] = []
    start, m = _start_of_matrix(problem), problem.contacts.rows
    for row in range(m):
        for first, end in pairwise(offsets):
            if end > row:
                entries = range(first, end)
                found.append([start + row * m + c if c >= row else -1 for c in entries])
    return found


def likeness_of_function(
    robot: Robot, inputs: Owners, results: Sequence[Sequence[Owners]]
) -> Likeness:
    """Return which parts of a function are alike.

    Parameters
    ----------
    inputs : of the input block.
    results : per array in the block of results, in order, the owners along each of its axes.
    """
    entries: dict[int, list[int]] = defaultdict(list)
    for position, joint in enumerate(inputs):
        if joint is not None:
            entries[joint].append(position)
    subtrees = alike_subtrees(robot, [len(entries[i]) for i in range(len(robot.joints))])
    groups, proposals = [], []
    for limbs in subtrees:
        inside = tuple(frozenset(p for joint in limb for p in entries[joint]) for limb in limbs)
        groups.append(LimbGroup(inside, tuple(() for _ in limbs)))
        proposals += _proposals(limbs, results)
    return Likeness(groups, proposals)


def _proposals(
    limbs: Sequence[Sequence[int]], results: Sequence[Sequence[Owners]]
) -> list[list[int]]:
    """Return lists of positions of results that relate corresponding joints of limbs."""
    place = {joint: (k, j) for k, limb in enumerate(limbs) for j, joint in enumerate(limb)}
    found: dict[object, list[int]] = defaultdict(list)
    position = 0
    for number, axes in enumerate(results):
        labelled = [_labels(owners, place) for owners in axes]
        for labels in product(*labelled):
            numbers = [limb for limb, _ in labels if limb is not None]
            if numbers:
                # Which axes have the same limb, whichever it is.
                pattern = tuple(
                    None if limb is None else numbers.index(limb) for limb, _ in labels
                )
                found[number, pattern, tuple(rest for _, rest in labels)].append(position)
            position += 1
    return [positions for positions in found.values() if len(positions) > 1]


def _labels(
    owners: Owners, place: dict[int, tuple[int, int]]
) -> list[tuple[int | None, tuple[object, ...]]]:
    """Return per entry its limb, and what is equal for corresponding entries of all limbs."""
    seen: dict[int | None, int] = defaultdict(int)
    labels: list[tuple[int | None, tuple[object, ...]]] = []
    for joint in owners:
        limb, inside = (None, joint) if joint not in place else place[joint]
        labels.append((limb, (inside, seen[joint])))
        seen[joint] += 1
    return labels
