"""Where sensors are on a robot: fixed on its root link, or carried by the joints between.

Plain floats: a path has a few joints, and arrays of three numbers take longer to make than to use.
Quaternions are x, y, z, w.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from delassus.model import Robot
from delassus.model.joint import Joint, JointKind
from delassus.model.spatial import Array, Transform
from delassus_ros.inputs.quaternions import (
    IDENTITY,
    Quaternion,
    Vector3,
    about,
    cross,
    times,
    turned,
)

_ZERO: Vector3 = (0.0, 0.0, 0.0)
_CARRYING = (JointKind.REVOLUTE, JointKind.PRISMATIC)


class FrameMotion(NamedTuple):
    """Pose and velocity of a frame relative to the root link, in the axes of the root link.

    Attributes
    ----------
    rotation : unit quaternion from the axes of the frame to those of the root link.
    place, velocity : of the origin of the frame [m, m/s].
    rates : angular velocity [rad/s].
    """

    rotation: Quaternion
    place: Vector3
    velocity: Vector3 = _ZERO
    rates: Vector3 = _ZERO


class Mounting:
    """A frame of a robot with a floating base, seen from the root link.

    Parameters
    ----------
    path : bodies from below the root link to the body of the frame; all of them on revolute or
        prismatic joints.
    placement : pose of the frame in that body.

    Attributes
    ----------
    joints : names of the joints between the root link and the frame; none for a fixed frame.
    """

    def __init__(self, robot: Robot, path: Sequence[int], placement: Transform) -> None:
        joints = [robot.joints[body] for body in path]
        self.joints = tuple(joint.name for joint in joints)
        rows = {name: k for k, name in enumerate(robot.joint_names)}
        # Per joint: its pose in the body that carries it, and its places in q and in the rates.
        self._steps: list[tuple[FrameMotion, Joint, Vector3, int, int]] = [
            (_fixed(joint.placement), joint, _vector(joint.axis), robot.q_offsets[body],
             rows[joint.name])
            for body, joint in zip(path, joints, strict=True)
        ]  # fmt: skip
        self._end = _fixed(placement)

    def at(self, q: Array | None = None, rates: Array | None = None) -> FrameMotion:
        """Return pose and velocity of the frame.

        Parameters
        ----------
        q : (nq,) joint positions; not needed for a fixed frame.
        rates : (joints,) joint rates in the order of ``robot.joint_names``; zero if None.
        """
        if q is None or not self._steps:
            return self._end
        turn, place, velocity, spin = IDENTITY, _ZERO, _ZERO, _ZERO
        for fixed, joint, axis, entry, row in self._steps:
            arm = turned(fixed.place, turn)
            velocity = _sum(velocity, cross(spin, arm))
            place, turn = _sum(place, arm), times(turn, fixed.rotation)
            direction, value = turned(axis, turn), float(q[entry])
            rate = 0.0 if rates is None else float(rates[row])
            if joint.kind is JointKind.REVOLUTE:
                spin = _sum(spin, direction, rate)
                turn = times(turn, about(axis, value))
            else:
                way = _sum(_ZERO, direction, value)
                velocity = _sum(_sum(velocity, cross(spin, way)), direction, rate)
                place = _sum(place, way)
        arm = turned(self._end.place, turn)
        velocity, place = _sum(velocity, cross(spin, arm)), _sum(place, arm)
        return FrameMotion(times(turn, self._end.rotation), place, velocity, spin)


def mountings(robot: Robot) -> Mapping[str, Mounting]:
    """Return the frames that revolute and prismatic joints carry on a floating root link, by name.

    Frames that are fixed on the root link come first.
    """
    if robot.base != "floating":
        return {}
    found = {}
    for name, frame in robot.frames.items():
        path = robot.path(frame.body)[::-1]
        if path[:1] == [0] and all(robot.joints[i].kind in _CARRYING for i in path[1:]):
            found[name] = Mounting(robot, path[1:], frame.placement)
    return dict(sorted(found.items(), key=lambda item: bool(item[1].joints)))


def _fixed(pose: Transform) -> FrameMotion:
    x, y, z, w = pose.quaternion().tolist()
    return FrameMotion((x, y, z, w), _vector(pose.translation))


def _vector(values: Array) -> Vector3:
    x, y, z = values.tolist()
    return x, y, z


def _sum(a: Vector3, b: Vector3, factor: float = 1.0) -> Vector3:
    return a[0] + factor * b[0], a[1] + factor * b[1], a[2] + factor * b[2]
