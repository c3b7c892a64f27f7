"""Ball joints as chains of revolute joints: their joints, angles and rates.

A ball joint is three revolute joints about the axes of its frame, x, y and z, one after the other.
At a second angle of ±90° the first and third axis are one, and the chain has no third freedom: M
is singular there. Rounding errors of G grow with the inverse square of the distance from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from delassus.errors import RobotError
from delassus.model.joint import Joint, JointKind
from delassus.model.mechanism import Mechanism
from delassus.model.spatial import Array, Transform, rotation_about

BALL = "XYZ"
"""Axes of the chain that a ball joint becomes."""
SMALLEST_COSINE = 1e-6
"""Least cosine of the second angle at which rates of the chain are computed [1]."""
LEAST_DISTANCE = 1e-2
"""Distance of the second angle from the singular one below which G is refused, as its cosine [1]:
0.6°, where rounding errors of G are up to 2e-9."""


def chain(name: str, letters: str, parent: int, placement: Transform, first: int) -> list[Joint]:
    """Return the revolute joints about axes of one frame that a joint becomes.

    Parameters
    ----------
    name : of the joint; its parts are ``name_X`` and so on.
    letters : the axes in their order.
    parent, placement : of the first joint.
    first : index that the first joint gets in the robot.
    """
    joints = []
    for k, letter in enumerate(letters):
        axis = np.eye(3)["XYZ".index(letter)]
        joints.append(Joint(f"{name}_{letter}", JointKind.REVOLUTE, parent, placement, axis))
        parent, placement = first + k, Transform()
    return joints


def angles_of(rotation: Array, letters: str = BALL) -> Array:
    """Return the angles [rad] of a rotation (3, 3) about three different axes in their order.

    The second is between −90° and 90°; where it is one of them, the third is 0.
    """
    i, j, k = ("XYZ".index(letter) for letter in letters)
    even = 1.0 if letters in ("XYZ", "YZX", "ZXY") else -1.0
    flat = float(np.hypot(rotation[i, i], rotation[i, j]))
    second = np.arctan2(even * rotation[i, k], flat)
    if flat < SMALLEST_COSINE**2:
        return np.array([np.arctan2(even * rotation[k, j], rotation[j, j]), second, 0.0])
    first = np.arctan2(-even * rotation[j, k], rotation[k, k])
    return np.array([first, second, np.arctan2(-even * rotation[i, j], rotation[i, i])])


def rotation_of(angles: Array, letters: str = BALL) -> Array:
    """Return the rotation (3, 3) of angles [rad] about axes in their order."""
    rotation: Array = np.eye(3)
    for angle, letter in zip(angles.tolist(), letters, strict=True):
        rotation = rotation @ rotation_about(np.eye(3)["XYZ".index(letter)], angle)
    return rotation


def rates_to_angular(angles: Array, letters: str = BALL) -> Array:
    """Return E (3, 3) with ω = E ȧ: the angular velocity in the axes of the moved body."""
    columns, after = np.zeros((3, 3)), np.eye(3)
    for k in (2, 1, 0):
        columns[:, k] = after["XYZ".index(letters[k])]
        after = np.asarray(rotation_of(angles[k : k + 1], letters[k]) @ after)
    return columns


def angular_to_rates(angles: Array, what: str, letters: str) -> Array:
    """Return the inverse (3, 3) of :func:`rates_to_angular`.

    Raises
    ------
    RobotError
        If the second angle is a right angle; names the joint, `what`.
    """
    if abs(float(np.cos(angles[1]))) < SMALLEST_COSINE:
        raise RobotError(
            f"joint {what!r} is a chain of three revolute joints whose second angle is "
            f"{np.degrees(angles[1]):.4g}°, where its first and third axis are one; expected less "
            "than 90°: turn the frame of the joint in the model"
        )
    inverse: Array = np.asarray(np.linalg.inv(rates_to_angular(angles, letters)), np.float64)
    return inverse


@dataclass(frozen=True)
class BallJoint:
    """A chain of three revolute joints about one point, without a mass between them.

    Attributes
    ----------
    joints : names of the three joints.
    position : index in q of the second angle.
    sine, cosine : factors of sine and cosine of the second angle. The sum is the distance from the
        singular angle: the sine of the angle between the first and the third axis.
    """

    joints: tuple[str, str, str]
    position: int
    sine: float
    cosine: float

    def margin(self, sine: Any, cosine: Any) -> Any:
        """Return the squared distance from the singular angle, less the least one.

        Parameters
        ----------
        sine, cosine : of the second angle, of any kind of scalars.
        """
        distance = self.sine * sine + self.cosine * cosine
        return distance * distance - LEAST_DISTANCE**2


def ball_joints(robot: Mechanism) -> list[BallJoint]:
    """Return the chains of ball joints of a robot."""
    found = []
    for k, third in enumerate(robot.joints):
        chained = _ball_ending_at(robot, k)
        if chained is None:
            continue
        first, second = (robot.joints[i] for i in chained)

        # The third axis turns about the second one, which is normal to both: a product of axes is
        # the sine of the second angle but for a constant angle.
        before, after = second.placement.rotation, third.placement.rotation @ third.axis
        at_zero, at_right = (
            float(first.axis @ before @ second.motion(angle).rotation @ after)
            for angle in (0.0, np.pi / 2)
        )
        factors = [0.0 if abs(x) < SMALLEST_COSINE**2 else x for x in (-at_zero, at_right)]
        names = first.name, second.name, third.name
        found.append(BallJoint(names, robot.q_offsets[chained[1]], *factors))
    return found


def at_singular_angle(balls: Iterable[BallJoint], q: ArrayLike) -> str:
    """Return a text about the first ball joint whose chain is singular at q; empty for none.

    Parameters
    ----------
    q : (nq,) [rad, m].
    """
    positions = np.asarray(q, dtype=np.float64)
    for ball in balls:
        angle = float(positions[ball.position])
        if ball.margin(np.sin(angle), np.cos(angle)) <= 0.0:
            first, second, third = ball.joints
            return (
                f"joints {first!r}, {second!r} and {third!r} are the chain of a ball joint, whose "
                f"second angle is {np.degrees(angle):.6g}°, within 0.6° of the angle where the "
                "first and the third axis are one: turn the frame of the joint in the model by 90°"
            )
    return ""


def _ball_ending_at(robot: Mechanism, k: int) -> tuple[int, int] | None:
    """Return the first two joints of a ball joint's chain whose third one is k, or None."""
    j = robot.joints[k].parent
    i = robot.joints[j].parent if j >= 0 else -1
    if i < 0:
        return None
    first, second, third = (robot.joints[n] for n in (i, j, k))
    if first.armature or third.armature:
        return None
    for lower, upper, body in ((second, first, i), (third, second, j)):
        if not (
            lower.kind is upper.kind is JointKind.REVOLUTE
            and robot.bodies[body].inertia.mass == 0.0
            and not lower.placement.translation.any()
            and abs(upper.axis @ lower.placement.rotation @ lower.axis) < SMALLEST_COSINE
        ):
            return None
    return i, j
