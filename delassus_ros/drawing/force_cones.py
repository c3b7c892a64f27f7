"""Contact forces in their friction cones: shares of the cone, and the surface of a cone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from delassus_ros.model.spatial import Array

BOUNDARY = 0.999
"""Share of its cone from which a force counts as sliding: the solve is exact to 1e-6."""


@dataclass(frozen=True)
class ForceInCone:
    """Force of a contact, split along its normal.

    Attributes
    ----------
    normal : part along the normal [N].
    sideways : norm of the part across the normal [N].
    share : share of the largest sideways force that friction allows; NaN without normal force.
    """

    normal: float
    sideways: float
    share: float

    @property
    def slides(self) -> bool:
        """Whether the force is at the boundary of its cone."""
        return self.share >= BOUNDARY

    @classmethod
    def of(cls, force: Array, normal: Array, friction: float) -> ForceInCone:
        """Return the parts of a force.

        Parameters
        ----------
        force, normal : (3,) force [N] and unit normal in the same axes.
        friction : coefficient of friction.
        """
        pushes = float(force @ normal)
        sideways = float(np.linalg.norm(force - pushes * normal))
        if not pushes > 0.0:
            share = np.nan
        elif friction > 0.0:
            share = sideways / (friction * pushes)
        else:
            # A contact without friction has no cone but its normal, and always slides.
            share = 1.0
        return cls(pushes, sideways, share)
