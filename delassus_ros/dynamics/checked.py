"""Results of compiled dynamics, refused unless their status is OK."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.errors import NumericalError
from delassus_ros.model.couplings import open_coupling
from delassus_ros.model.robot import Robot
from delassus_ros.model.spatial import Array
from delassus_ros.scalars.ports import Status


def checked(robot: Robot, q: ArrayLike, values: Array, status: Status) -> Array:
    """Return `values`.

    Raises
    ------
    NumericalError
        Unless `status` is OK; names the reason, and the coupling that does not hold at `q`.
    """
    if status is not Status.OK:
        reason = status.name.lower().replace("_", " ")
        if status is Status.NOT_CLOSED:
            reason = f"{reason}: {open_coupling(robot, np.ravel(q).tolist())}"
        raise NumericalError(f"the dynamics cannot be computed at this configuration: {reason}")
    return values
