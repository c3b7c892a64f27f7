"""A floating robot's tree from another root: joints on the way are reversed.

G does not depend on which body of a floating robot has the free joint. For another root, a joint
between body p and its child i, with placement X and motion q along an axis s, becomes a joint from
i to p with motion q along −s, and the frame of body p moves to the joint, so that the pose of the
joint in its new parent is constant. The derivation is in ``docs/clusters.md``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from delassus.errors import RobotError
from delassus.model.robot import WORLD, Body, Frame, JointKind, Robot
from delassus.model.spatial import Transform

REVERSIBLE = (JointKind.REVOLUTE, JointKind.PRISMATIC)
"""Kinds of joints that can be reversed: one motion, whose direction has two signs."""


class Rerooted(NamedTuple):
    """The spanning tree of a robot from another root.

    Attributes
    ----------
    robot : the robot without constraints; its free-flyer moves the root.
    joints : per joint of `robot`, the index of the joint in the original robot.
    bodies : per body of the original robot, the index of the body in `robot`.
    shifts : per body of the original robot, the pose of its new frame in its original frame.
    """

    robot: Robot
    joints: tuple[int, ...]
    bodies: tuple[int, ...]
    shifts: tuple[Transform, ...]


def possible_roots(robot: Robot, fixed: Collection[int] = ()) -> list[int]:
    """Return the bodies that can be the root: those that reversible joints connect to the base.

    Parameters
    ----------
    fixed : joints that cannot be reversed.
    """
    if robot.base == "fixed":
        return []
    found = [0]
    for i, joint in enumerate(robot.joints):
        if joint.parent in found and joint.kind in REVERSIBLE and i not in fixed:
            found.append(i)
    return found


def rerooted(robot: Robot, root: int) -> Rerooted:
    """Return a robot's spanning tree with the free-flyer of its floating base at body `root`.

    Raises
    ------
    RobotError
        If a joint between the base and the root cannot be reversed; names the joint.
    """
    count = len(robot.joints)
    way = robot.path(root)
    # Per body: its joint and its parent in the new tree, and its new frame in its frame.
    joint_of, parent_of = list(range(count)), [joint.parent for joint in robot.joints]
    shifts = [Transform()] * count
    joint_of[root], parent_of[root] = 0, WORLD
    for i, above in zip(way, way[1:], strict=False):
        joint = robot.joints[i]
        if joint.kind not in REVERSIBLE:
            raise RobotError(
                f"body {robot.bodies[root].name!r} cannot be the root: joint {joint.name!r} on "
                f"the way from the base is {joint.kind.label}; expected revolute or prismatic ones"
            )
        joint_of[above], parent_of[above], shifts[above] = i, i, joint.placement
    order = _depth_first(parent_of, root) if root else list(range(count))
    number = {WORLD: WORLD, **{body: k for k, body in enumerate(order)}}
    joints, bodies = [], []
    for body in order:
        joint, own = robot.joints[joint_of[body]], robot.bodies[body]
        if joint_of[body] != body and body != root:
            # The placement is that of the reversed joint's body in its own new frame.
            joint = replace(joint, placement=shifts[parent_of[body]].inverse(), axis=-joint.axis)
        elif parent_of[body] != WORLD:
            placement = shifts[parent_of[body]].inverse() @ joint.placement
            joint = replace(joint, placement=placement)
        joints.append(replace(joint, parent=number[parent_of[body]]))
        moved = (each.in_parent(shifts[body].inverse()) for each in (own.inertia, own.compensated))
        bodies.append(Body(own.name, *moved))
    frames = [
        frame
        if frame.body == WORLD
        else Frame(frame.name, number[frame.body], shifts[frame.body].inverse() @ frame.placement)
        for frame in robot.frames.values()
    ]
    return Rerooted(
        Robot(robot.name, joints, bodies, frames, row_loops=robot.row_loops),
        tuple(joint_of[body] for body in order),
        tuple(number[body] for body in range(count)),
        tuple(shifts),
    )


def _depth_first(parents: list[int], root: int) -> list[int]:
    """Return the bodies, parents first and limb by limb; trees beside that of the root last."""
    children: dict[int, list[int]] = {}
    for body, parent in enumerate(parents):
        children.setdefault(parent, []).append(body)
    order: list[int] = []
    waiting = [body for body in children[WORLD][::-1] if body != root] + [root]
    while waiting:
        order.append(waiting.pop())
        waiting += children.get(order[-1], [])[::-1]
    return order
