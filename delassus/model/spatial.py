"""Rigid transforms and rigid-body inertias of constant numbers (model data, not traced)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from delassus.arguments import as_numbers, number, rotation_matrix, sized
from delassus.errors import DelassusError, GeometryError, RobotError
from delassus.scalars.functions import cross_matrix

CHARACTERISTIC_LENGTH_M = 0.1
"""Length that makes angular rows comparable with linear ones: 1 rad counts as 0.1 m."""
UNIT_QUATERNION_TOLERANCE = 1e-3
"""Largest difference between 1 and the norm of a quaternion that a caller passes."""
ORTHONORMAL_TOLERANCE = 1e-6
"""Largest error of a rotation's rows [1]: single precision passes, four printed digits do not."""
ORTHONORMAL_ROUNDING = 1e-14
"""Largest error of a rotation's rows [1] that is left; larger errors are removed."""
PRINTED_TOLERANCE = 2e-11
"""Sine or cosine of a printed angle that stands for 0 [1]: files write π/2 as 1.57079632679 and π
as 3.14159265359 or 3.14159265358, and mean axes along each other."""

SYMMETRY_TOLERANCE = 1e-6
"""Largest difference of mirrored entries of an inertia, in parts of its largest entry."""

Array = NDArray[np.float64]


def frozen(values: ArrayLike, shape: tuple[int, ...]) -> Array:
    """Return a read-only float64 copy of `values`.

    Raises
    ------
    TypeError, ValueError
        If they are no numbers of this shape.
    """
    # Adding zero makes a copy without negative zeros, which would give equal models
    # different bytes.
    array = as_numbers(values) + 0.0
    if array.shape != shape:
        raise ValueError(f"their shape is {array.shape}")
    array.setflags(write=False)
    return array


def skew(v: ArrayLike) -> Array:
    """Return the 3×3 matrix with ``skew(v) @ u == cross(v, u)``."""
    return np.array(cross_matrix(np.asarray(v, dtype=np.float64).tolist()))


def rotation_about(axis: ArrayLike, angle: float) -> Array:
    """Return the rotation by an angle [rad] about a unit axis (Rodrigues)."""
    w = skew(axis)
    return np.asarray(np.eye(3) + np.sin(angle) * w + (1.0 - np.cos(angle)) * w @ w)


def rotation_from_rpy(rpy: ArrayLike) -> Array:
    """Return R = Rz(yaw) Ry(pitch) Rx(roll), the URDF convention; angles in rad.

    An angle within 2e-11 of a multiple of π/2 is that multiple, see :data:`PRINTED_TOLERANCE`.
    """
    angles = sized("rpy", rpy, 3, "roll, pitch and yaw", GeometryError)
    cosines, sines = (
        np.where(np.abs(values) > PRINTED_TOLERANCE, values, 0.0)
        for values in (np.cos(angles), np.sin(angles))
    )
    (cr, cp, cy), (sr, sp, sy) = cosines, sines
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def rpy_from_rotation(rotation: Array) -> Array:
    """Return roll, pitch and yaw [rad] of a rotation; the inverse of :func:`rotation_from_rpy`.

    Where the pitch is a right angle, roll and yaw turn about the same axis: the roll is zero.
    """
    R = rotation
    flat = np.hypot(R[2, 1], R[2, 2])
    pitch = np.arctan2(-R[2, 0], flat)
    if flat < 1e-12:
        return np.array([0.0, pitch, np.arctan2(-R[0, 1], R[1, 1])])
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])


def rotation_from_quaternion(quaternion: ArrayLike) -> Array:
    """Return the rotation matrix (3, 3) of a quaternion x, y, z, w of any norm but 0.

    Raises
    ------
    GeometryError
        If the quaternion is not four numbers, or its norm is 0 or not finite.
    """
    given = sized("quaternion", quaternion, 4, "x, y, z, w", GeometryError)
    norm = float(np.linalg.norm(given))
    if not 0.0 < norm < np.inf:
        raise GeometryError(f"quaternion has norm {norm:g}; expected x, y, z, w of a rotation")
    x, y, z, w = (given / norm).tolist()
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def check_unit_norm(
    what: str, vector: Array, expected: str, error: type[DelassusError]
) -> None:
    """Refuse a vector whose norm is not 1 to :data:`UNIT_QUATERNION_TOLERANCE`, or NaN.

    Parameters
    ----------
    what, expected : name of the vector, and what it stands for, for the message.
    error : class of the error.

    Raises
    ------
    DelassusError
        Names the vector and its norm.
    """
    # For few numbers faster than numpy.
    norm = math.hypot(*vector.tolist())
    if not abs(norm - 1.0) <= UNIT_QUATERNION_TOLERANCE:
        raise error(f"{what} has norm {norm:.4g}; expected {expected}")


def rotation_between(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the smallest rotation that takes unit vector `a` to unit vector `b`."""
    u, v = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    cosine = float(u @ v)
    if cosine < -0.5:
        # Near opposite the formula below divides by zero: go through a half turn about the
        # same axis. For opposite vectors every axis perpendicular to u is as good.
        normal = np.cross(u, v)
        if np.linalg.norm(normal) < 1e-8:
            normal = np.cross(u, np.eye(3)[int(np.argmin(np.abs(u)))])
        normal -= (normal @ u) * u
        normal /= np.linalg.norm(normal)
        half_turn = 2.0 * np.outer(normal, normal) - np.eye(3)
        return rotation_between(-u, v) @ half_turn
    w = skew(np.cross(u, v))
    return np.eye(3) + w + w @ w / (1.0 + cosine)


def checked(
    what: str,
    values: ArrayLike,
    shape: tuple[int, ...],
    error: type[DelassusError] = GeometryError,
) -> Array:
    """Return :func:`frozen` values.

    Parameters
    ----------
    what : name of the values in messages.
    error : class of the error.

    Raises
    ------
    DelassusError
        If `values` are no numbers of this shape; the message shows the values.
    """
    try:
        return frozen(values, shape)
    except (TypeError, ValueError) as reason:
        raise error(f"{what} must be numbers of shape {shape}, got {values!r}") from reason


def _is_rotation(rows: list[list[float]]) -> bool:
    """Return True if the rows are orthonormal and right-handed; plain floats are fast here."""
    (a, b, c), (d, e, f), (g, h, i) = rows
    errors = (
        a * a + b * b + c * c - 1.0,
        d * d + e * e + f * f - 1.0,
        a * d + b * e + c * f,
        # The third row is the first times the second, which also rules out reflections.
        b * f - c * e - g,
        c * d - a * f - h,
        a * e - b * d - i,
    )
    # Not max(): what is not a number must not pass.
    return all(abs(error) <= ORTHONORMAL_TOLERANCE for error in errors)


def _orthonormalized(rotation: Array) -> Array:
    """Return the rotation nearest to a matrix; a matrix that is off by rounding is returned."""
    if np.abs(rotation @ rotation.T - np.eye(3)).max() < ORTHONORMAL_ROUNDING:
        return rotation
    left, _, right = np.linalg.svd(rotation)
    return frozen(left @ right, (3, 3))


_ROTATION_OF = {
    (3,): "; roll, pitch and yaw: write Transform.from_xyz_rpy(xyz, rpy)",
    (4,): "; a quaternion x, y, z, w: write Transform(rotation_from_quaternion(…), xyz), from "
    "delassus.model.spatial",
    (4, 4): "; a homogeneous matrix T: write Transform(T[:3, :3], T[:3, 3])",
}
"""Remedies for other forms of a rotation, by shape."""


def _checked_rotation(values: ArrayLike) -> Array:
    """Return a matrix (3, 3); for other forms of a rotation the message has the call to write."""
    given = rotation_matrix(values)
    try:
        return checked("rotation", given, (3, 3))
    except GeometryError as error:
        write = _ROTATION_OF.get(np.asarray(given, dtype=object).shape, "")
        raise GeometryError(f"{error}{write}") from error


@dataclass(frozen=True, eq=False)
class Transform:
    """Pose of a child frame in a parent frame.

    A point with coordinates x in the child has ``rotation @ x + translation`` in the parent.
    Immutable; threads may share it.

    Attributes
    ----------
    rotation : (3, 3), its columns are the child's axes in the parent, or a scipy Rotation.
    translation : (3,) [m], the child's origin in the parent.

    Raises
    ------
    GeometryError
        If the rotation is not orthonormal and right-handed within 1e-6 (the nearest one that is
        is taken), or if a number is not finite; says what was given.
    """

    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        rotation = _checked_rotation(self.rotation)
        translation = checked("translation", self.translation, (3,))
        if not all(map(math.isfinite, translation.tolist())):
            raise GeometryError(
                f"translation {translation.tolist()} has entries that are not finite"
            )
        if not _is_rotation(rotation.tolist()):
            raise GeometryError(
                f"rotation {rotation.tolist()} is not a rotation matrix; expected orthonormal "
                "columns with determinant 1"
            )
        self._set(_orthonormalized(rotation), translation)

    def _set(self, rotation: Array, translation: Array) -> None:
        object.__setattr__(self, "rotation", rotation)
        object.__setattr__(self, "translation", translation)

    @classmethod
    def _derived(cls, rotation: Array, translation: Array) -> Transform:
        """Return a transform computed from checked transforms, without another check."""
        derived = cls.__new__(cls)
        derived._set(frozen(rotation, (3, 3)), frozen(translation, (3,)))
        return derived

    @classmethod
    def from_xyz_rpy(cls, xyz: ArrayLike = (0, 0, 0), rpy: ArrayLike = (0, 0, 0)) -> Transform:
        """Return the pose of a URDF ``<origin xyz rpy>``; metres and radians.

        Raises
        ------
        GeometryError
            If one of them is not three finite numbers; says what was given.
        """
        return cls(rotation_from_rpy(checked("rpy", rpy, (3,))), checked("xyz", xyz, (3,)))

    def __matmul__(self, other: Transform) -> Transform:
        """Compose: the pose of `other`'s child in this parent."""
        return Transform._derived(
            self.rotation @ other.rotation,
            self.rotation @ other.translation + self.translation,
        )

    def inverse(self) -> Transform:
        """Return the pose of the parent in the child."""
        return Transform._derived(self.rotation.T, -self.rotation.T @ self.translation)

    def motion_to_child(self) -> Array:
        """Return X (6, 6), angular first: parent twist → child twist, each in own axes.

        Featherstone, Rigid Body Dynamics Algorithms, eq. 2.26.
        """
        e = self.rotation.T
        x = np.zeros((6, 6))
        x[:3, :3] = x[3:, 3:] = e
        x[3:, :3] = -e @ skew(self.translation)
        return x

    def quaternion(self) -> Array:
        """Return the rotation as a unit quaternion x, y, z, w with w >= 0."""
        r = self.rotation
        # K of Bar-Itzhack (2000): its dominant eigenvector is the quaternion, also of a
        # rotation matrix that is orthogonal to rounding only.
        k = np.zeros((4, 4))
        k[:3, :3] = r + r.T - np.trace(r) * np.eye(3)
        k[3] = r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1], np.trace(r)
        q = np.linalg.eigh(k)[1][:, -1]  # reads the lower triangle
        return np.asarray(q if q[3] >= 0 else -q)

    def to_bytes(self) -> bytes:
        """Return the canonical bytes (for hashing)."""
        return self.rotation.tobytes() + self.translation.tobytes()


@dataclass(frozen=True, eq=False)
class Inertia:
    """Rigid-body inertia about the origin of its body frame.

    Attributes
    ----------
    mass : m [kg].
    moment : (3,) m·c [kg·m], c the centre of mass.
    rotational : (3, 3) [kg·m²] about the frame's origin: I_c − m [c×][c×].

    Raises
    ------
    RobotError
        If they are not finite numbers of these shapes; says what was given.
    """

    mass: float = 0.0
    moment: Array = field(default_factory=lambda: np.zeros(3))
    rotational: Array = field(default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        mass = number("inertia: mass", self.mass, RobotError)
        moment = checked("inertia: moment", self.moment, (3,), RobotError)
        rotational = checked("inertia: rotational", self.rotational, (3, 3), RobotError)
        for what, values in (("mass", mass), ("moment", moment), ("rotational", rotational)):
            if not np.isfinite(values).all():
                raise RobotError(f"inertia: {what} is {values!r}; expected finite numbers")
        object.__setattr__(self, "mass", mass)
        object.__setattr__(self, "moment", moment)
        largest = float(np.abs(rotational).max())
        if np.abs(rotational - rotational.T).max() > SYMMETRY_TOLERANCE * largest:
            raise RobotError(
                f"inertia: rotational must be symmetric, with both triangles; got {rotational!r}"
            )
        object.__setattr__(self, "rotational", frozen((rotational + rotational.T) / 2, (3, 3)))

    @classmethod
    def from_com(cls, mass: float, com: ArrayLike, inertia: ArrayLike) -> Inertia:
        """Return the inertia of a body given about its centre of mass.

        Parameters
        ----------
        mass : [kg].
        com : (3,) [m] centre of mass in the body frame.
        inertia : (3, 3) [kg·m²] about the centre of mass, in the body frame's axes.

        Raises
        ------
        RobotError
            If they are not finite numbers of these shapes; says what was given.
        """
        m = number("inertia: mass", mass, RobotError)
        center = checked("inertia: centre of mass", com, (3,), RobotError)
        about_com = checked("inertia: about the centre of mass", inertia, (3, 3), RobotError)
        c = skew(center)
        return cls(m, m * center, about_com - m * c @ c)

    def __add__(self, other: Inertia) -> Inertia:
        """Lump two bodies given in the same frame."""
        return Inertia(
            self.mass + other.mass,
            self.moment + other.moment,
            self.rotational + other.rotational,
        )

    def in_parent(self, placement: Transform) -> Inertia:
        """Return the same body's inertia in the parent frame of `placement`."""
        r, p = placement.rotation, skew(placement.translation)
        h = skew(r @ self.moment)
        return Inertia(
            self.mass,
            r @ self.moment + self.mass * placement.translation,
            r @ self.rotational @ r.T - p @ h - h @ p - self.mass * p @ p,
        )

    def matrix(self) -> Array:
        """Return the spatial inertia (6, 6), angular first."""
        h = skew(self.moment)
        i = np.empty((6, 6))
        i[:3, :3] = self.rotational
        i[:3, 3:] = h
        i[3:, :3] = h.T
        i[3:, 3:] = self.mass * np.eye(3)
        return i

    def to_bytes(self) -> bytes:
        """Return the canonical bytes (for hashing)."""
        mass: bytes = np.float64(self.mass).tobytes()
        return mass + self.moment.tobytes() + self.rotational.tobytes()
