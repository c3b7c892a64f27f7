"""Places of the contacts' names in a picture: above their ellipsoids, none over another."""

from __future__ import annotations

import numpy as np

from delassus.drawing.ellipsoids import Lengths
from delassus.drawing.scene import Placed
from delassus.model.spatial import Array


def above(contact: Placed, lengths: Lengths) -> Array:
    """Return the point (3,) above a contact, as high as the top of the contact's ellipsoid [m]."""
    top = float(np.linalg.norm(contact.directions[2] * lengths.semi_axes(contact.mass)))
    return np.asarray(contact.centre + (0.0, 0.0, top))


def raised(places: Array, sizes: Array) -> Array:
    """Return how far each label (n,) is raised, so that no label covers another.

    Labels keep their order in height: the lowest one stays, and each further one is raised as far
    as the labels below it demand. All lengths have one unit, such as pixels.

    Parameters
    ----------
    places : (n, 2) middles of the lower edges of the labels, without raising.
    sizes : (n, 2) width and height of each label with the gap around it.
    """
    heights = places[:, 1].astype(float)
    placed: list[int] = []
    for k in np.argsort(heights, kind="stable").tolist():
        beside = np.abs(places[placed, 0] - places[k, 0])
        columns = [i for i, d in zip(placed, beside, strict=True)
                   if d < 0.5 * (sizes[i, 0] + sizes[k, 0])]  # fmt: skip
        # From the lowest up: a label that is raised may meet the next one.
        for i in sorted(columns, key=lambda i: float(heights[i])):
            if heights[i] < heights[k] + sizes[k, 1] and heights[k] < heights[i] + sizes[i, 1]:
                heights[k] = heights[i] + sizes[i, 1]
        placed.append(k)
    return np.asarray(heights - places[:, 1])
