"""Which inputs and results of a function of a robot's joints are alike, limb by limb.

Entries of inputs and of results belong to joints. Results that relate corresponding joints of
alike limbs, a row to a column of the same limb, say, or of another one, are proposed to the lane
pass, which checks that their expressions have one shape.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import product

from delassus_ros.compiler.passes.limbs import Likeness, LimbGroup, alike_subtrees
from delassus_ros.model.robot import Robot

Owners = Sequence[int | None]
"""Per entry of an axis the joint that it belongs to; None: to none."""


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
