"""Ball joints as chains of revolute joints: their joints, angles and rates.

A ball joint is three revolute joints about the axes of its frame, x, y and z, one after the other.
At a second angle of ±90° the first and third axis are one, and the chain has no third freedom: M
is singular there. Rounding errors of G grow with the inverse square of the distance from that
angle: at 1° they are 2e-10 of G for a foot on a floating base.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.errors import RobotError
from delassus_ros.model.joint import Joint, JointKind
from delassus_ros.model.mechanism import Mechanism
from delassus_ros.model.spatial import Array, Transform, skew

BALL = "XYZ"
"""Axes of the chain that a ball joint becomes."""
SMALLEST_COSINE = 1e-6
"""Least cosine of the second angle at which rates of the chain are computed [1]."""
_SINGULAR_COSINE = 1e-5
"""Cosine of the second angle below which a mass matrix may fail for the chain [1]: beside larger
inertias its smallest pivot is rounding."""


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
        w = skew(np.eye(3)["XYZ".index(letter)])
        rotation = rotation @ (np.eye(3) + np.sin(angle) * w + (1.0 - np.cos(angle)) * w @ w)
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


def at_singular_angle(robot: Mechanism, q: ArrayLike) -> str:
    """Return a text about the first chain of a ball joint that is singular at q; empty for none.

    Parameters
    ----------
    q : (nq,) [rad, m].
    """
    positions = np.asarray(q, dtype=np.float64)
    for k, third in enumerate(robot.joints):
        chained = _ball_ending_at(robot, k)
        if chained is None:
            continue
        i, j = chained
        first, second = robot.joints[i], robot.joints[j]
        angle = float(positions[robot.q_offsets[j]])
        turned = second.placement.rotation @ second.motion(angle).rotation
        along = float(first.axis @ turned @ third.placement.rotation @ third.axis)
        if 1.0 - along**2 < _SINGULAR_COSINE**2:
            return (
                f"joints {first.name!r}, {second.name!r} and {third.name!r} are the chain of a "
                f"ball joint, whose second angle is {np.degrees(angle):.6g}°, where the first and "
                "the third axis are one: turn the frame of the joint in the model by 90°"
            )
    return ""


def _ball_ending_at(robot: Mechanism, k: int) -> tuple[int, int] | None:
    """Return the first two joints of a ball joint's chain whose third one is k, or None."""
    j = robot.joints[k].parent
    i = robot.joints[j].parent if j >= 0 else -1
    if i < 0:
        return None
    first, second, third = (robot.joints[n] for n in (i, j, k))
    for lower, upper, body in ((second, first, i), (third, second, j)):
        if not (
            lower.kind is upper.kind is JointKind.REVOLUTE
            and robot.bodies[body].inertia.mass == 0.0
            and not lower.placement.translation.any()
            and abs(upper.axis @ lower.placement.rotation @ lower.axis) < SMALLEST_COSINE
        ):
            return None
    return i, j
