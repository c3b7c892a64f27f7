"""Clusters: the smallest groups of joints that contain each coupling and each loop.

Joint i moves body i, so a cluster is a set of joints as well as of bodies. Seen as one joint
that moves all its bodies, a cluster makes an ordinary tree of a robot with closed loops. Which of
its joints are independent coordinates is checked where it is stated, else chosen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from delassus.errors import RobotError
from delassus.model.constraint_rows import ROWS
from delassus.model.constraints import (
    Coupling,
    Loop,
    LoopKind,
    RowLoop,
)
from delassus.model.joint import JointKind
from delassus.model.joint_group import WORDS, Constraint, JointGroup, joints_of
from delassus.model.loops import LoopClosure, closed_jacobians
from delassus.model.mechanism import Frame, Mechanism, MechanismT
from delassus.model.spatial import Array, Transform, rotation_between

CACHED_ROBOTS = 32
"""Number of robots whose clusters are cached; finding the clusters takes milliseconds."""


@dataclass(frozen=True, eq=False)
class Cluster(JointGroup):
    """Joints that constrain each other, and the bodies they move, with their coordinates.

    Attributes
    ----------
    independent : joints whose positions are independent coordinates, in increasing order;
        the positions of the remaining joints of the cluster follow from these.
    """

    independent: tuple[int, ...] = ()

    @property
    def parent(self) -> int:
        """The body that carries the cluster, or WORLD.

        The parent of a body of the cluster is this body, or a body of the cluster.
        """
        return self.robot.joints[self.joints[0]].parent

    @property
    def dependent(self) -> tuple[int, ...]:
        """Joints whose positions follow from the independent joints, in increasing order."""
        return tuple(joint for joint in self.joints if joint not in self.independent)

    @property
    def is_constant(self) -> bool:
        """Whether its loop Jacobian ∂q/∂y is the same in every configuration."""
        return not (self.loops or self.functions)


@lru_cache(maxsize=CACHED_ROBOTS)
def clusters_of(robot: Mechanism) -> tuple[Cluster, ...]:
    """Return the clusters of a robot; a joint is in exactly one cluster.

    The body that carries a cluster is in an earlier cluster. Independent coordinates are
    those that the robot states for a cluster; without a statement they are chosen, see
    :func:`~delassus.model.clusters.independent_joints`.

    Raises
    ------
    RobotError
        If a cluster has joints with more than one degree of freedom, its constraints
        contradict each other or cannot be closed, or the stated independent joints of the
        cluster have the wrong number or do not determine its other joints. Names the constraints.
    """
    return tuple(
        Cluster(**vars(group), independent=independent_joints(group)) for group in groups_of(robot)
    )


def groups_of(robot: Mechanism) -> tuple[JointGroup, ...]:
    """Return the joints and constraints of each cluster, without its coordinates.

    Raises
    ------
    RobotError
        If a joint with more than one degree of freedom is in a group; names the constraint.
    """
    indices = {joint.name: i for i, joint in enumerate(robot.joints)}
    tied: list[tuple[Constraint, list[int]]] = []
    for coupling in robot.couplings:
        tied.append((coupling, _coupled(robot, [indices[name] for name, _ in coupling.ratios])))
    for loop in robot.loops:
        tied.append((loop, joints_of(robot, loop)))
    for function in robot.functions:
        tied.append((function, _coupled(robot, [indices[name] for name in function.tied])))
    groups = _Groups(len(robot.joints))
    for constraint, joints in tied:
        _check_single(robot, constraint, joints)
        groups.join(joints)
    constraints: dict[int, list[Constraint]] = {}
    for constraint, joints in tied:
        constraints.setdefault(groups.leader(joints[0]), []).append(constraint)
    return tuple(
        _group(robot, joints, constraints.get(leader, ()))
        for leader, joints in groups.joints().items()
    )


def _group(
    robot: Mechanism, joints: Iterable[int], constraints: Iterable[Constraint]
) -> JointGroup:
    couplings, loops, functions = [], [], []
    for constraint in constraints:
        if isinstance(constraint, Coupling):
            couplings.append(constraint)
        elif isinstance(constraint, Loop):
            loops.append(constraint)
        else:
            functions.append(constraint)
    return JointGroup(robot, tuple(joints), tuple(couplings), tuple(loops), tuple(functions))


def velocity_offsets(robot: Mechanism) -> dict[int, int]:
    """Return per joint with independent velocities the index of its first one: model order.

    In a robot without couplings and loops all joints are independent.
    """
    independent = sorted(joint for each in clusters_of(robot) for joint in each.independent)
    offsets, size = {}, 0
    for joint in independent:
        offsets[joint] = size
        size += robot.joints[joint].kind.nv
    return offsets


class _Groups:
    """Disjoint groups of joints; the leader of a group is its first joint."""

    def __init__(self, count: int) -> None:
        self._above = list(range(count))

    def leader(self, joint: int) -> int:
        while self._above[joint] != joint:
            self._above[joint] = self._above[self._above[joint]]
            joint = self._above[joint]
        return joint

    def join(self, joints: Iterable[int]) -> None:
        leaders = {self.leader(joint) for joint in joints}
        for leader in leaders:
            self._above[leader] = min(leaders)

    def joints(self) -> dict[int, list[int]]:
        """Return the joints of each group by its leader, both in increasing order."""
        groups: dict[int, list[int]] = {}
        for joint in range(len(self._above)):
            groups.setdefault(self.leader(joint), []).append(joint)
        return groups


def _check_single(robot: Mechanism, constraint: Constraint, joints: list[int]) -> None:
    what = WORDS[type(constraint)]
    for index in joints:
        joint = robot.joints[index]
        if joint.kind is JointKind.ROOT:
            raise RobotError(
                f"{what} {constraint.name!r} ties the floating base to the world: read the "
                "robot with base='fixed', or make it a contact"
            )
        if joint.kind.nv != 1:
            raise RobotError(
                f"{what} {constraint.name!r} goes through joint {joint.name!r}, which is "
                f"{joint.kind.label}: only revolute and prismatic joints can be in a loop"
            )


def _coupled(robot: Mechanism, joints: list[int]) -> list[int]:
    """Return coupled joints and the joints between these and the body that carries all.

    Without the joints between, a cluster would carry parts of itself.
    """
    paths = [robot.path(joint) for joint in joints]
    # A coupled joint's body cannot be the carrier: paths start at the parents.
    carriers = set(paths[0][1:]).intersection(*(path[1:] for path in paths[1:]))
    return sorted(set().union(*paths) - carriers)


RANK_TOLERANCE = 1e-4
"""Singular values of a constraint Jacobian, relative to the largest, below which rows are
redundant: a planar four-bar closed by a hinge has three redundant rows, up to rounded angles."""
OPENING_TOLERANCE = 1e-3
"""Largest rate at which a motion may open a constraint through rows that were taken for redundant,
relative to the rates of the constraint's joints."""
STILL_TOLERANCE = 1e-7
"""Rates of joints, relative to the largest rate of the cluster, below which a joint stands
still."""
SAME_TOLERANCE = 1e-9
"""Relative difference of factors below which two couplings are the same equation."""
_SMALLEST_PIVOT = 1e-6
"""Factor of a joint, relative to the row's largest, below which a wish does not make the joint
dependent."""


def independent_joints(group: JointGroup, motors: Iterable[int] = ()) -> tuple[int, ...]:
    """Return the independent joints of a cluster, increasing.

    Joints that the robot states for this cluster are checked. Without a statement joints are
    chosen: `motors` as far as possible become independent; the first joint of a coupling and the
    dependent joints of a function become dependent where possible; of the remaining joints those
    become dependent that close the loops best, at a configuration that closes the loops.

    Raises
    ------
    RobotError
        If couplings contradict each other, no configuration that closes the loops is found,
        the stated joints are too few, too many or do not determine the remaining joints, or the
        number of redundant equations is unclear.
    """
    if group.is_ordinary:
        return group.joints
    regular, rank = _regular_jacobians(group)
    jacobians = [jacobian for _, jacobian in regular]
    stated = set(group.robot.independent)
    independent = tuple(
        joint for joint in group.joints if group.robot.joints[joint].name in stated
    )
    if independent:
        _check_stated(group, independent, rank, jacobians)
    else:
        best = max(jacobians, key=lambda each: _singular_values(each)[rank - 1])
        dependent = _dependent_columns(group, best, rank, set(motors))
        independent = tuple(joint for i, joint in enumerate(group.joints) if i not in dependent)
    _check_kept(group, jacobians, independent)
    return independent


def groups_of_rows(robot: Mechanism) -> list[JointGroup]:
    """Return the clusters whose loops may be closed by rows: those of loops alone."""
    return [
        group
        for group in groups_of(robot)
        if group.loops and not (group.couplings or group.functions)
    ]


def with_row_loops(robot: MechanismT, groups: Iterable[JointGroup] | None = None) -> MechanismT:
    """Return the robot with loops closed by rows.

    Of a loop's rows those are kept that are independent of the rows before, at a configuration
    that closes the cluster.

    Parameters
    ----------
    groups : the clusters whose loops are closed by rows, some or all of :func:`groups_of_rows`;
        None for all.
    """
    frames, rows, opened = list(robot.frames.values()), list(robot.row_loops), set()
    for group in groups_of_rows(robot) if groups is None else groups:
        candidates, rank = _regular_jacobians(group)
        _, jacobian = max(candidates, key=lambda each: _singular_values(each[1])[rank - 1])
        kept = _independent_rows(jacobian, rank)
        first = 0
        for loop in group.loops:
            own = [k - first for k in kept if first <= k < first + loop.kind.rows]
            first += loop.kind.rows
            opened.add(loop.name)
            axes = Transform(rotation_between((0.0, 0.0, 1.0), loop.axis))
            ends = []
            for end in ("predecessor", "successor"):
                name = f"{loop.name}/{end}"
                placement = getattr(loop, f"{end}_placement") @ axes
                frames.append(Frame(name, getattr(loop, end), placement))
                ends.append(name)
            # Rows of a loop are angular first.
            selection = np.roll(np.eye(6), 3, axis=1)[[ROWS[loop.kind][k] for k in own]]
            rows.append(RowLoop(loop.name, ends[0], ends[1], selection, loop))
    return robot.replaced(
        frames=frames,
        loops=[loop for loop in robot.loops if loop.name not in opened],
        row_loops=rows,
        cheapest_loops=False,
    )


def _independent_rows(jacobian: Array, rank: int) -> list[int]:
    """Return as many rows as the rank, chosen by largest remainder, ascending."""
    rest, chosen = jacobian.copy(), []
    for _ in range(rank):
        row = int(np.argmax(np.linalg.norm(rest, axis=1)))
        unit = rest[row] / np.linalg.norm(rest[row])
        rest = rest - np.outer(rest @ unit, unit)
        rest[row] = 0.0
        chosen.append(row)
    return sorted(chosen)


def null_motions(group: JointGroup) -> tuple[LoopClosure, Array, Array]:
    """Return the closure of a cluster, a regular q, and the motions free at that q as columns.

    Raises
    ------
    RobotError
        As for :func:`independent_joints`.
    """
    candidates, rank = _regular_jacobians(group)
    q, jacobian = max(candidates, key=lambda each: _singular_values(each[1])[rank - 1])
    return LoopClosure(group), q, np.linalg.svd(jacobian)[2][rank:].T


def _regular_jacobians(group: JointGroup) -> tuple[list[tuple[Array, Array]], int]:
    """Return closed configurations with their constraint Jacobians, and the rank of the Jacobians.

    Configurations with a smaller rank than the largest (singular ones) are left out.
    """
    _check_consistent(group)
    closure = LoopClosure(group)
    if group.loops or group.functions:
        candidates = closed_jacobians(closure)
        if not candidates:
            raise RobotError(_not_closed(group, closure))
    else:
        candidates = [(closure.reference(), closure.jacobian(closure.reference()))]
    candidates = _evenly(group, closure, candidates)
    # The motor of a fine screw counts as much as the slide that the screw moves.
    linear = group.is_linear
    ranks = [_rank(np.where(linear, _even(jacobian), jacobian)) for _, jacobian in candidates]
    rank = max(ranks)
    if rank == len(group.joints):
        raise RobotError(
            f"{group.described()}: joints {group.names(group.joints)} cannot move; if they "
            "should, the frames of a loop may not be aligned as its type asks: give it one "
            "with fewer rows; else make the joints fixed, or lock them, too, at positions that "
            "close the loop"
        )
    return [each for each, found in zip(candidates, ranks, strict=True) if found == rank], rank


def _evenly(
    group: JointGroup, closure: LoopClosure, candidates: list[tuple[Array, Array]]
) -> list[tuple[Array, Array]]:
    """Return the candidates with functions in units that make their largest slopes 1.

    Rows of loops and couplings have slopes of that size; a function may have any unit.
    """
    rows = [each[1] for each in group.blocks()[len(group.couplings) + len(group.loops) :]]
    scale = np.ones(len(candidates[0][1]))
    for row in (k for block in rows for k in range(block.start, block.stop)):
        scale[row] = max(float(np.abs(jacobian[row]).max()) for _, jacobian in candidates) or 1.0
    return [(q, jacobian / scale[:, None]) for q, jacobian in candidates]


def openings(rows: Array, motions: Array, is_coupling: bool) -> Array:
    """Return the rate at which each motion opens a constraint, relative to that of its joints.

    Parameters
    ----------
    rows : (r, joints) the constraint's rows of the Jacobian; lengths in units of the loop's size.
    motions : (joints, m) rates of the joints; rates of slides in units of the loop's size.
    is_coupling : whether rates count by the factors of the rows alone, however small. Rows of a
        loop may be rounding alone, hence they count relative to the rates of the joints.
    """
    if not rows.any():
        return np.zeros(motions.shape[1])
    opened = np.abs(rows @ motions).max(axis=0)
    rates = (np.abs(rows) @ np.abs(motions)).max(axis=0)
    if not is_coupling:
        rates = np.maximum(rates, np.abs(motions[rows.any(axis=0)]).max(axis=0))
    # Rates of joints that stand still are rounding of motions elsewhere in the cluster.
    still = STILL_TOLERANCE * np.abs(rows).max() * np.abs(motions).max(axis=0)
    return np.asarray(opened / np.maximum(rates, still))


def _check_kept(group: JointGroup, regular: list[Array], independent: tuple[int, ...]) -> None:
    """Refuse motions of the independent joints that open a constraint: all rows must hold.

    Rows that were taken for redundant are checked here, one constraint at a time.
    """
    lead = [i for i, joint in enumerate(group.joints) if joint in independent]
    follow = [i for i, joint in enumerate(group.joints) if joint not in independent]

    def regularity(jacobian: Array) -> float:
        return float(_singular_values(_even(jacobian[:, follow])).min(initial=1.0))

    jacobian = max(regular, key=regularity)
    columns, lengths = _even(jacobian[:, follow]), _lengths(jacobian[:, follow])
    motions = np.eye(len(group.joints))[:, lead]
    motions[follow] = -np.linalg.lstsq(columns, jacobian[:, lead], rcond=SAME_TOLERANCE)[0]
    motions[follow] /= lengths[:, None]
    for number, (what, rows) in enumerate(group.blocks()):
        opened = openings(jacobian[rows], motions, number < len(group.couplings))
        if opened.max(initial=0.0) > OPENING_TOLERANCE:
            joint = independent[int(np.argmax(opened))]
            raise RobotError(
                f"{group.described()}: it cannot be told how many of the equations are "
                f"redundant: where joint {group.names([joint])} moves, {what} opens at "
                f"{opened.max():.3g} of the rate of its joints; check its frames and the factors "
                "of couplings"
            )


def _check_consistent(group: JointGroup) -> None:
    """Refuse a coupling that contradicts earlier couplings, or nearly repeats them."""
    rows = group.coupling_rows()
    for count, coupling in enumerate(group.couplings, start=1):
        factors, constants = rows[:count, :-1], rows[:count, -1]
        others = ", ".join(repr(each.name) for each in group.couplings[: count - 1])
        if _rank(_even(factors), SAME_TOLERANCE) > _rank(_even(factors)):
            raise RobotError(
                f"coupling {coupling.name!r} says nearly, but not quite, what these say together: "
                f"{others}; leave it out if it means the same, or write the factors with more "
                f"digits, so that they differ by less than {SAME_TOLERANCE:g}; if it means "
                "something else, make its joints fixed"
            )
        solution = np.linalg.lstsq(factors, -constants, rcond=RANK_TOLERANCE)[0]
        gap = np.abs(factors @ solution + constants).max()
        if gap > RANK_TOLERANCE * (1.0 + np.abs(constants).max()):
            raise RobotError(
                f"coupling {coupling.name!r} contradicts what these say together: {others}; "
                "the same joints would have different offsets"
            )


def _not_closed(group: JointGroup, closure: LoopClosure) -> str:
    """Return the message for a group that does not close; names a loop that cannot close alone."""
    (name, gap), joints, others = closure.worst(), list(group.joints), ""
    suspects = group
    for loop in group.loops:
        by_itself = replace(group, couplings=(), loops=(loop,), functions=())
        alone = LoopClosure(by_itself)
        if closed_jacobians(alone):
            continue
        if len(group.loops) + len(group.couplings) + len(group.functions) > 1:
            others = ", not even without the others"
        (name, gap), joints, suspects = alone.worst(), joints_of(group.robot, loop), by_itself
        break
    points = tuple(replace(loop, kind=LoopKind.POINT) for loop in suspects.loops)
    hint = ""
    if any(loop.kind is not LoopKind.POINT for loop in suspects.loops) and closed_jacobians(
        LoopClosure(replace(suspects, loops=points))
    ):
        label = LoopKind.POINT.label
        loops = f"as a {label} it" if len(points) == 1 else f"with all loops as {label}s it"
        hint = f"; {loops} would, so it is a matter of directions"
    return (
        f"{name} does not close{others}: a gap of {gap:.3g} (m or rad) remains at the best "
        f"configuration found of joints {group.names(joints)}; check its frames, its type and "
        f"the joints{hint}"
    )


def _singular_values(jacobian: Array) -> Array:
    return np.asarray(np.linalg.svd(jacobian, compute_uv=False))


def _rank(jacobian: Array, tolerance: float = RANK_TOLERANCE) -> int:
    if not jacobian.size:
        return 0
    values = _singular_values(jacobian)
    return int(np.sum(values > tolerance * values[0]))


def _even(jacobian: Array) -> Array:
    """Return the columns scaled to length 1: a high gear ratio is no loss of rank."""
    return np.asarray(jacobian / _lengths(jacobian))


def _lengths(jacobian: Array) -> Array:
    """Return the lengths of the columns, 1 for columns of zeros."""
    lengths = np.linalg.norm(jacobian, axis=0)
    return np.where(lengths > RANK_TOLERANCE**2, lengths, 1.0)


def _check_stated(
    group: JointGroup, independent: tuple[int, ...], rank: int, regular: list[Array]
) -> None:
    what = group.described()
    needed = len(group.joints) - rank
    if len(independent) != needed:
        raise RobotError(
            f"{what}: {len(independent)} independent joints are stated "
            f"({group.names(independent)}), but the {len(group.joints)} joints "
            f"{group.names(group.joints)} need {needed}"
        )
    dependent = [i for i, joint in enumerate(group.joints) if joint not in independent]
    if all(_rank(_even(jacobian[:, dependent])) < rank for jacobian in regular):
        raise RobotError(
            f"{what}: joints {group.names(group.joints[i] for i in dependent)} cannot close "
            f"it: they do not follow from the independent joints {group.names(independent)}"
        )


def _dependent_columns(
    group: JointGroup, jacobian: Array, rank: int, motors: set[int]
) -> set[int]:
    """Return the columns to be eliminated, by Gauss-Jordan with preferences.

    `jacobian` has the rows of the couplings first and of the functions last.
    """
    left, lengths = jacobian.copy(), np.minimum(_lengths(jacobian), 1.0)
    columns = group.columns
    spared = np.array([joint in motors for joint in group.joints])
    dependent: set[int] = set()
    rest = list(range(len(left)))
    wished = [(row, each.ratios[0][0]) for row, each in enumerate(group.couplings)]
    row = len(left) - sum(function.rows for function in group.functions)
    for function in group.functions:
        wished += [(row + k, name) for k, name in enumerate(function.dependent)]
        row += function.rows
    for row, name in wished:
        sizes = np.abs(left[row])
        if (sizes / lengths).max() <= RANK_TOLERANCE:
            continue
        column = columns[name]
        if spared[column] or sizes[column] <= _SMALLEST_PIVOT * sizes.max():
            column = _last_largest(_unspared(sizes, spared))
        _eliminate(left, row, column)
        dependent.add(column)
        rest.remove(row)
    while len(dependent) < rank:
        sizes = _unspared(np.abs(left[rest]), spared)
        row = rest[int(np.argmax(sizes.max(axis=1)))]
        column = _last_largest(_unspared(np.abs(left[row]), spared))
        _eliminate(left, row, column)
        dependent.add(column)
        rest.remove(row)
    return dependent


def _unspared(sizes: Array, spared: Array) -> Array:
    """Return the sizes with 0 for spared columns; unchanged if only spared columns have a size."""
    others = np.where(spared, 0.0, sizes)
    return others if others.max() > RANK_TOLERANCE else sizes


def _last_largest(sizes: Array) -> int:
    """Return the last index of the largest size: joints further out become dependent first."""
    return int(np.flatnonzero(sizes >= sizes.max() * (1.0 - RANK_TOLERANCE))[-1])


def _eliminate(matrix: Array, row: int, column: int) -> None:
    """Make `column` zero in all other rows, and clear the pivot row."""
    factors = matrix[:, column] / matrix[row, column]
    factors[row] = 0.0
    matrix -= np.outer(factors, matrix[row])
    matrix[:, column] = 0.0
    matrix[row] = 0.0
