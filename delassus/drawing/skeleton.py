"""Where the bodies and frames of a robot are, as seen from its root link."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
from numpy.typing import ArrayLike

from delassus.model.couplings import follow
from delassus.model.joint import WORLD, Joint, JointKind
from delassus.model.positions import q_of
from delassus.model.robot import Robot
from delassus.model.spatial import (
    Array,
    Transform,
    rotation_between,
    rotation_from_quaternion,
    skew,
)


class Skeleton:
    """The kinematics of a robot, for all of its bodies at once."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        placements = [homogeneous(joint.placement) for joint in robot.joints]
        self._placements = np.array(placements).reshape(-1, 4, 4)
        turning = [
            i for i, joint in enumerate(robot.joints) if joint.kind.nq == joint.kind.nv == 1
        ]
        self._single = np.array(turning, dtype=np.intp)
        joints = [robot.joints[i] for i in turning]
        self._entries = np.array([robot.q_offsets[i] for i in turning], dtype=np.intp)
        revolute = np.array([joint.kind is JointKind.REVOLUTE for joint in joints], dtype=float)
        axes = np.array([joint.axis for joint in joints]).reshape(-1, 3)
        self._slide = axes * (1.0 - revolute)[:, None]
        self._w = np.array([skew(axis) for axis in axes]).reshape(-1, 3, 3)
        self._w *= revolute[:, None, None]
        self._ww = self._w @ self._w
        self._others = [
            (i, joint, slice(offset, offset + joint.kind.nq))
            for i, (joint, offset) in enumerate(zip(robot.joints, robot.q_offsets, strict=True))
            if i not in set(turning)
        ]
        self._frames = {name: homogeneous(frame.placement) for name, frame in robot.frames.items()}
        # Without the frames of loops closed by rows, which are no ends of limbs.
        self._last = {frame.body: name for name, frame in robot.clustered.frames.items()}

    def poses(self, q: Array) -> Array:
        """Return the pose (bodies, 4, 4) of each body in the root link at positions q [rad, m]."""
        values = q[self._entries]
        motions = np.zeros((len(self._placements), 4, 4))
        motions[:, 3, 3] = 1.0
        sine, cosine = np.sin(values)[:, None, None], np.cos(values)[:, None, None]
        motions[self._single, :3, :3] = np.eye(3) + sine * self._w + (1.0 - cosine) * self._ww
        motions[self._single, :3, 3] = values[:, None] * self._slide
        for i, joint, entries in self._others:
            motions[i] = homogeneous(_motion(joint, q[entries]))
        poses: Array = self._placements @ motions
        for i, joint in enumerate(self._robot.joints):
            if joint.parent != WORLD:
                poses[i] = poses[joint.parent] @ poses[i]
        return poses

    def frame(self, poses: Array, name: str) -> Array:
        """Return the pose (4, 4) of a frame in the root link, from the poses of bodies."""
        body, pose = self._robot.frames[name].body, self._frames[name]
        return pose if body == WORLD else poses[body] @ pose

    def bones(
        self, poses: Array, bodies: Collection[int] | None = None
    ) -> list[tuple[Array, Array]]:
        """Return the ends (3,) of lines that show the robot: between joints, and to end frames.

        Parameters
        ----------
        bodies : the bodies that are shown; None for all of them.
        """
        robot, lines = self._robot, []
        parents = {joint.parent for joint in robot.joints}
        shown = {WORLD, *range(len(robot.joints))} if bodies is None else bodies
        for i, joint in enumerate(robot.joints):
            if joint.kind is not JointKind.ROOT and joint.parent in shown:
                above = np.zeros(3) if joint.parent == WORLD else poses[joint.parent, :3, 3]
                lines.append((above, poses[i, :3, 3]))
            if i in shown and i not in parents and i in self._last:
                lines.append((poses[i, :3, 3], self.frame(poses, self._last[i])[:3, 3]))
        return lines


def size_of(points: ArrayLike) -> float:
    """Return the largest extent [m] of points (…, 3), such as bones; 1 m for no extent."""
    found = np.reshape(points, (-1, 3))
    return float(np.ptp(found, axis=0).max() if len(found) else 0.0) or 1.0


def homogeneous(pose: Transform) -> Array:
    """Return a pose as a homogeneous matrix (4, 4)."""
    found = np.eye(4)
    found[:3, :3], found[:3, 3] = pose.rotation, pose.translation
    return found


def completed(robot: Robot, given: Mapping[str, float]) -> tuple[Array, list[str]]:
    """Return the positions (nq,) of all joints, and the names of joints with unknown position.

    Missing positions follow from couplings, such as mimic joints, where these determine them; all
    other joints are neutral.

    Parameters
    ----------
    given : positions of joints by name; joints of other robots are ignored.
    """
    names = {joint.name for joint in robot.joints if joint.kind.nq == 1}
    known = {name: value for name, value in given.items() if name in names}
    q = q_of(robot, known)
    return q, sorted(names - known.keys() - follow(robot, q, known.keys()))


def _motion(joint: Joint, q: Array) -> Transform:
    """Return the pose of a body by its joint with several positions, or without any."""
    if joint.kind is JointKind.ROOT:
        return Transform()
    if joint.kind is JointKind.FLOATING:
        return Transform(rotation_from_quaternion(q[3:]), q[:3])
    plane = Transform(rotation_between((0.0, 0.0, 1.0), joint.axis))
    cosine, sine = np.cos(q[2]), np.sin(q[2])
    turn = np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
    return plane @ Transform(turn, np.array([q[0], q[1], 0.0])) @ plane.inverse()
