"""From a Delassus matrix and the motion of the feet to the contact forces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from delassus import ForceStatus, solve_contacts
from force_prediction.floors import Floor
from force_prediction.free_motion import FootMotion
from force_prediction.touch import touch

FloatArray = npt.NDArray[np.float64]


class NoForcesError(RuntimeError):
    """No forces obey the law of contact, or the solver did not find them."""


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

    Raises
    ------
    NoForcesError
        The message has the status of ``solve_contacts``.
    """
    forces = np.zeros((len(feet), 3))
    touches = [touch(i, foot, radius, at_centre) for i, foot in enumerate(feet)]
    touches = [t for t in touches if t.gap < 0.0]
    if not touches:
        return forces
    X = block_diag(*(t.rows for t in touches))
    own = [row for t in touches for row in range(6 * t.foot, 6 * t.foot + 6)]
    G = X @ matrix[np.ix_(own, own)] @ X.T
    found = solve_contacts(
        G, np.concatenate([floor.misfit(t) for t in touches]), friction=friction,
        law="convex", compliance=[floor.compliance(t) for t in touches],
    )  # fmt: skip
    if found.status not in (ForceStatus.SOLVED, ForceStatus.INACCURATE):
        raise NoForcesError(f"contact forces are {found.status.name}")
    forces[[t.foot for t in touches]] = found.forces.reshape(-1, 3)
    return forces
