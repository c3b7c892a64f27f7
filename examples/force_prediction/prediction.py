"""From a Delassus matrix and the motion of the feet to the contact forces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from force_prediction.cone import forces_in_cones
from force_prediction.floors import Floor
from force_prediction.free_motion import FootMotion
from force_prediction.touch import touch

FloatArray = npt.NDArray[np.float64]


def predict(
    matrix: FloatArray,
    feet: Sequence[FootMotion],
    radius: float,
    friction: float,
    floor: Floor,
    at_centre: bool = False,
) -> FloatArray:
    """Predict the forces of a level floor on ball feet.

    Parameters
    ----------
    matrix : (6k, 6k) Delassus matrix of all feet as contacts of kind ``surface``: the 6 rows
        of a frame hold those of every point of its body.
    feet : (k) their motion.
    radius : of the balls, m.
    friction : coefficient of friction.
    floor : the law of contact.
    at_centre : take the rows of the balls' centres for those of the points that touch, which
        is wrong by the moment of friction about the centre; for comparison.

    Returns
    -------
    (k, 3) force on each foot along the axes of the world, N; zero without touch.
    """
    forces = np.zeros((len(feet), 3))
    touches = [touch(i, foot, radius, at_centre) for i, foot in enumerate(feet)]
    touches = [t for t in touches if t.gap < 0.0]
    if not touches:
        return forces
    X = block_diag(*(t.rows for t in touches))
    own = [row for t in touches for row in range(6 * t.foot, 6 * t.foot + 6)]
    G = X @ matrix[np.ix_(own, own)] @ X.T
    R = np.repeat([floor.compliance(t) for t in touches], 3)
    b = np.concatenate([floor.misfit(t) for t in touches])
    forces[[t.foot for t in touches]] = forces_in_cones(G + np.diag(R), b, friction)
    return forces
