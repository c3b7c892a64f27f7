"""The tree of a robot for dynamics without contacts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from delassus.contacts import Contact
from delassus.errors import RobotError
from delassus.model.clusters import clusters_of, velocity_offsets
from delassus.model.robot import WORLD, JointKind, Robot
from delassus.problem import Problem, beside_base
from delassus.rbda.cluster_motion import ClusterMotion
from delassus.rbda.tree import Tree
from delassus.rbda.trees import tree_of
from delassus.rbda.velocities import Velocities
from delassus.scalars.ports import Inputs


class RobotTree:
    """The tree of a robot with its clusters, and the columns of its independent rates.

    Parameters
    ----------
    robot : any robot without floating joints inside the tree.
    wrenches : names of frames that external wrenches act on.
    build : makes the tree of a problem; by default rotors are redistributed.

    Attributes
    ----------
    problem : a problem of the robot with one contact, whose place has no effect.
    tree : links and clusters.
    joints : names of the joints with independent rates, in the order of their columns: model
        order. A planar joint has three columns (ẋ, ẏ, θ̇), a floating base six: the root link's
        twist in its own axes, linear first.
    size : number n of independent rates.
    velocities : the columns by link.

    Raises
    ------
    RobotError
        If a joint inside the tree is floating, or on the world beside a floating base; names the
        joint. If no frame is on a body that moves, or a loop is closed by rows.
    ProblemError
        If a frame of `wrenches` does not exist, is named twice, or does not move.
    """

    def __init__(
        self,
        robot: Robot,
        wrenches: Sequence[str] = (),
        build: Callable[[Problem], Tree] = tree_of,
    ) -> None:
        for joint in robot.joints:
            if joint.kind is JointKind.FLOATING:
                raise RobotError(
                    f"joint {joint.name!r} is floating inside the tree, where dynamics are not "
                    "defined; make it the robot's base"
                )
        if robot.row_loops:
            raise RobotError(
                f"loop {robot.row_loops[0].name!r} is closed by rows, which dynamics do not have; "
                "write robot.clustered"
            )
        beside = beside_base(robot)
        if beside is not None:
            raise RobotError(
                f"joint {beside!r} is on the world beside the floating base, in whose axes "
                "gravity is given; take that tree apart by Robot.subtree, or outputs of a Problem "
                "with axes='world'"
            )
        moved = [frame for frame in robot.frames.values() if frame.body != WORLD]
        if not moved:
            raise RobotError(
                f"robot {robot.name!r} has no frame on a body that moves, which dynamics need: "
                "give it one"
                if robot.bodies
                else f"robot {robot.name!r} has no body that moves"
            )
        # A body with a contact stays where rotors are redistributed, so it had better be no rotor.
        dependent = {i for cluster in clusters_of(robot) for i in cluster.dependent}
        place = min(moved, key=lambda frame: frame.body in dependent)
        any_contact = [Contact("any", place.name, "point")]
        self.problem = problem = Problem(robot, any_contact, wrenches=wrenches)
        self.tree = build(problem)
        self.velocities = Velocities(problem, self.tree)
        self.size = len(problem.velocities)
        self.joints = tuple(robot.joints[i].name for i in velocity_offsets(robot))

    @cached_property
    def columns_by_joint(self) -> dict[str, list[int]]:
        """Columns of the independent rates of each joint of :attr:`joints`."""
        columns: dict[str, list[int]] = {}
        for k, name in enumerate(self.problem.velocities):
            columns.setdefault(name, []).append(k)
        return columns

    def motion(self, x: Inputs) -> ClusterMotion:
        """Return the links' motion at inputs; see :class:`ClusterMotion`."""
        return ClusterMotion(self.problem, self.tree, x)
