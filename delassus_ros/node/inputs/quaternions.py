"""Unit quaternions x, y, z, w on plain numbers, which are faster than arrays of four."""

from __future__ import annotations

import math
from collections.abc import Sequence

Quaternion = tuple[float, float, float, float]
Vector3 = tuple[float, float, float]


def times_conjugate(a: Sequence[float], b: Quaternion) -> Quaternion:
    """Return a b* of quaternions x, y, z, w."""
    ax, ay, az, aw = a
    bx, by, bz, bw = b
    return (
        -aw * bx + ax * bw - ay * bz + az * by,
        -aw * by + ax * bz + ay * bw - az * bx,
        -aw * bz - ax * by + ay * bx + az * bw,
        aw * bw + ax * bx + ay * by + az * bz,
    )


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
    x, y, z, w = q
    return turned(v, (-x, -y, -z, w))


def carried_on(q: Quaternion, rates: Vector3, time: float) -> Quaternion:
    """Return an orientation after a time [s] of constant angular velocity in the body's axes."""
    speed = math.hypot(*rates)
    factor = -math.sin(0.5 * speed * time) / speed
    x, y, z = rates
    return times_conjugate(q, (factor * x, factor * y, factor * z, math.cos(0.5 * speed * time)))


def normalized(a: Quaternion) -> Quaternion:
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
