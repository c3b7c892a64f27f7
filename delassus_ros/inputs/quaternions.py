"""Unit quaternions x, y, z, w on plain numbers, which are faster than arrays of four."""

from __future__ import annotations

import math
from collections.abc import Sequence

Quaternion = tuple[float, float, float, float]
Vector3 = tuple[float, float, float]

IDENTITY: Quaternion = (0.0, 0.0, 0.0, 1.0)


def times(a: Quaternion, b: Quaternion) -> Quaternion:
    """Return the product of two quaternions."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz,
    )


def conjugate(q: Quaternion) -> Quaternion:
    """Return the inverse of a unit quaternion."""
    x, y, z, w = q
    return -x, -y, -z, w


def about(axis: Vector3, angle: float) -> Quaternion:
    """Return the rotation by an angle [rad] about a unit vector."""
    sine = math.sin(0.5 * angle)
    return axis[0] * sine, axis[1] * sine, axis[2] * sine, math.cos(0.5 * angle)


def turned(v: Sequence[float], q: Quaternion) -> Vector3:
    """Return a vector turned by a unit quaternion."""
    vx, vy, vz = v
    x, y, z, w = q
    tx, ty, tz = 2 * (y * vz - z * vy), 2 * (z * vx - x * vz), 2 * (x * vy - y * vx)
    return (
        vx + w * tx + y * tz - z * ty,
        vy + w * ty + z * tx - x * tz,
        vz + w * tz + x * ty - y * tx,
    )


def turned_back(v: Sequence[float], q: Quaternion) -> Vector3:
    """Return a vector turned by the inverse of a unit quaternion."""
    return turned(v, conjugate(q))


def normalized(a: Sequence[float]) -> Quaternion:
    """Return a quaternion divided by its norm."""
    norm = math.hypot(*a)
    return (a[0] / norm, a[1] / norm, a[2] / norm, a[3] / norm)


def rotation_vector(q: Quaternion) -> Vector3:
    """Return the rotation vector of a unit quaternion, of at most half a turn [rad]."""
    x, y, z, w = q
    size = math.hypot(x, y, z)
    if size == 0.0:
        return (0.0, 0.0, 0.0)
    factor = 2.0 * math.atan2(math.copysign(size, w), abs(w)) / size
    return (factor * x, factor * y, factor * z)


def cross(a: Vector3, b: Vector3) -> Vector3:
    """Return a × b."""
    (ax, ay, az), (bx, by, bz) = a, b
    return ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
