"""Clusters: the smallest groups of joints that contain each coupling and each loop.

Joint i moves body i, so a cluster is a set of joints as well as of bodies. Seen as one joint
that moves all its bodies, a cluster makes an ordinary tree of a robot with closed loops.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from delassus_ros.errors import RobotError
from delassus_ros.model.constraints import Coupling, FunctionConstraint, Loop
from delassus_ros.model.independents import independent_joints
from delassus_ros.model.members import Constraint, Members
from delassus_ros.model.robot import JointKind, Robot

_WORDS: dict[type[Constraint], str] = {
    Coupling: "coupling",
    Loop: "loop",
    FunctionConstraint: "constraint",
}
_KEPT = 32
"""Robots whose clusters are remembered: to find them again takes milliseconds."""


@dataclass(frozen=True, eq=False)
class Cluster(Members):
    """Joints that constrain each other, and the bodies they move, with their coordinates.

    Attributes
    ----------
    independent : joints whose positions are independent coordinates, in increasing order;
        the other joints of the cluster follow from them.
    """

    independent: tuple[int, ...] = ()

    @property
    def parent(self) -> int:
        """The body that carries the cluster, or WORLD.

        The parent of every body of the cluster is this one or in the cluster.
        """
        return self.robot.joints[self.joints[0]].parent

    @property
    def dependent(self) -> tuple[int, ...]:
        """Joints that follow from the independent ones, in increasing order."""
        return tuple(joint for joint in self.joints if joint not in self.independent)

    @property
    def is_constant(self) -> bool:
        """Whether its loop Jacobian ∂q/∂y is the same in every configuration."""
        return not (self.loops or self.functions)


@lru_cache(maxsize=_KEPT)
def clusters_of(robot: Robot) -> tuple[Cluster, ...]:
    """Return the clusters of a robot: every joint is in exactly one.

    The body that carries a cluster is in an earlier cluster. Independent coordinates are
    those that the robot states for a cluster; where it states none, they are chosen, see
    :func:`~delassus_ros.model.independents.independent_joints`.

    Raises
    ------
    RobotError
        If a cluster has joints with more than one degree of freedom, its constraints
        contradict each other or cannot be closed, or the independent joints that are stated
        for it are of wrong number or do not determine the others. Names the constraints.
    """
    return tuple(
        Cluster(**vars(members), independent=independent_joints(members))
        for members in groups_of(robot)
    )


def groups_of(robot: Robot) -> tuple[Members, ...]:
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
        tied.append((loop, _looped(robot, loop)))
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
        _members(robot, joints, constraints.get(leader, ()))
        for leader, joints in groups.members().items()
    )


def _members(robot: Robot, joints: Iterable[int], constraints: Iterable[Constraint]) -> Members:
    couplings, loops, functions = [], [], []
    for constraint in constraints:
        if isinstance(constraint, Coupling):
            couplings.append(constraint)
        elif isinstance(constraint, Loop):
            loops.append(constraint)
        else:
            functions.append(constraint)
    return Members(robot, tuple(joints), tuple(couplings), tuple(loops), tuple(functions))


def velocity_offsets(robot: Robot) -> dict[int, int]:
    """Return per joint with independent velocities the index of its first one: model order.

    Those of a robot without couplings and loops are all joints.
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

    def members(self) -> dict[int, list[int]]:
        """Return the joints of each group by its leader, both in increasing order."""
        groups: dict[int, list[int]] = {}
        for joint in range(len(self._above)):
            groups.setdefault(self.leader(joint), []).append(joint)
        return groups


def _check_single(robot: Robot, constraint: Constraint, joints: list[int]) -> None:
    what = _WORDS[type(constraint)]
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


def _coupled(robot: Robot, joints: list[int]) -> list[int]:
    """Return coupled joints and those between them and the body that carries them all.

    Without the latter a cluster would carry parts of itself.
    """
    paths = [robot.path(joint) for joint in joints]
    # The carrier is no coupled joint's own body: it starts at their parents.
    carriers = set(paths[0][1:]).intersection(*(path[1:] for path in paths[1:]))
    return sorted(set().union(*paths) - carriers)


def _looped(robot: Robot, loop: Loop) -> list[int]:
    """Return the joints on the two branches from the nearest common ancestor of a loop's ends.

    These joints, the predecessor's branch down and the successor's up, are the loop.
    """
    branches = (robot.path(loop.predecessor), robot.path(loop.successor))
    return sorted(set(branches[0]) ^ set(branches[1]))
