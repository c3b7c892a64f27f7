"""The ``<origin>`` of links, joints, loops and shapes: a place, with angles or a quaternion."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from delassus.errors import RobotError
from delassus.model.reading.numbers import floats
from delassus.model.spatial import (
    UNIT_QUATERNION_TOLERANCE,
    Transform,
    rotation_from_quaternion,
)


def origin_of(parent: Element, what: str, prefix: str = "") -> Transform:
    """Return the pose of the ``<origin>`` of an element; the identity without one.

    The rotation is ``rpy`` or, from URDF 1.1 on, ``quat_xyzw``, of which urdfdom refuses both.
    urdfdom makes a unit quaternion of every one; a quaternion of another norm is refused here.

    Parameters
    ----------
    what : the element in messages.
    prefix : the namespace of the document, as ElementTree writes it before tags.

    Raises
    ------
    RobotError
        If an attribute is not as many finite numbers as it must be, both rotations are given, or
        the quaternion has another norm than 1.
    """
    origin = parent.find(f"{prefix}origin")
    if origin is None:
        return Transform()
    xyz = floats(origin.get("xyz", "0 0 0"), 3, f"{what}: <origin xyz=…>")
    rpy = floats(origin.get("rpy", "0 0 0"), 3, f"{what}: <origin rpy=…>")
    written = origin.get("quat_xyzw")
    if written is None:
        return Transform.from_xyz_rpy(xyz, rpy)
    if "rpy" in origin.attrib:
        raise RobotError(f"{what}: <origin> has both rpy and quat_xyzw; one is meant")
    quaternion = floats(written, 4, f"{what}: <origin quat_xyzw=…>")
    norm = float(np.linalg.norm(quaternion))
    if not abs(norm - 1.0) <= UNIT_QUATERNION_TOLERANCE:
        raise RobotError(
            f"{what}: <origin quat_xyzw=…> has norm {norm:.6g}; expected a unit quaternion x, y, "
            "z, w"
        )
    return Transform(rotation_from_quaternion(quaternion), xyz)
