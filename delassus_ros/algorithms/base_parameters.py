"""Inertia that a joint cannot feel, counted with the parent link.

About a revolute joint the mass, its moment along the axis and a share of rotational inertia are
the same at every angle; along a prismatic joint the rotational inertia is. They are moved to the
parent, joint by joint, which changes nothing that can be felt: the base parameters of
W. Khalil, F. Bennis, IEEE Transactions on Robotics and Automation 11(3), 1995. The links'
inertias are then no longer those of bodies, and most masses are structural zeros.
"""

from __future__ import annotations

import numpy as np

from delassus_ros.algorithms.tree import Motion
from delassus_ros.model.spatial import Inertia


def unfelt(inertia: Inertia, motion: Motion, axis: int) -> Inertia:
    """Return the part of a link's inertia that is the same for the parent at every q.

    Parameters
    ----------
    motion, axis : of the joint: ``"revolute"`` or ``"prismatic"`` about or along a coordinate
        axis.
    """
    if motion == "prismatic":
        return Inertia(0.0, np.zeros(3), inertia.rotational)
    a, b = (axis + 1) % 3, (axis + 2) % 3
    moment, rotational = np.zeros(3), np.zeros((3, 3))
    moment[axis] = inertia.moment[axis]
    rotational[a, a] = rotational[b, b] = inertia.rotational[b, b]
    return Inertia(inertia.mass, moment, rotational)


def without(inertia: Inertia, part: Inertia) -> Inertia:
    """Return `inertia` less `part`."""
    return Inertia(
        inertia.mass - part.mass,
        inertia.moment - part.moment,
        inertia.rotational - part.rotational,
    )
