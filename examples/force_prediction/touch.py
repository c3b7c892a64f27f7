"""Ball feet on a level floor: the point that touches, and the rows that belong to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from force_prediction.free_motion import FootMotion

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Touch:
    """Where and how a ball touches the floor; vectors are along the axes of the world.

    Attributes
    ----------
    foot : which foot.
    gap : distance between ball and floor, m; negative while they touch.
    rows : (3, 6) from the 6 rows at the ball's centre to the 3 at the point that touches.
    velocity : (3,) of the ball at that point, m/s.
    free_acceleration : (3,) rate of that velocity without contact forces, m/s².
    free_acceleration_of_joints : (3,) the part J q̈ of it.
    """

    foot: int
    gap: float
    rows: FloatArray
    velocity: FloatArray
    free_acceleration: FloatArray
    free_acceleration_of_joints: FloatArray


def touch(foot: int, motion: FootMotion, radius: float, at_centre: bool = False) -> Touch:
    """Return the touch of a ball whose centre is the origin of a foot frame.

    The rows are those of the ball's velocity at the place that touches, d from its centre:
    v + ω × d = [R, -d× R] (linear; angular), with R the axes of the frame in the world. Ball and
    floor press into each other, and the place is taken midway between their surfaces, as by
    MuJoCo. As the ball rolls, d stays vertical: other than at a point marked on the ball, no
    ω × (ω × d) is in the acceleration.

    Parameters
    ----------
    foot : which foot.
    motion : of the foot frame.
    radius : of the ball, m.
    at_centre : leave d out, as if the forces went through the centre of the ball.
    """
    height = float(motion.position[2])
    gap = height - radius
    lever = 0.0 if at_centre else height - 0.5 * gap
    # d = (0, 0, -lever)
    cross = np.array([[0.0, lever, 0.0], [-lever, 0.0, 0.0], [0.0, 0.0, 0.0]])
    rows = np.hstack([motion.rotation, -cross @ motion.rotation])
    return Touch(
        foot,
        gap,
        rows,
        velocity=rows @ motion.velocity,
        free_acceleration=rows @ motion.free_acceleration,
        free_acceleration_of_joints=rows @ motion.free_acceleration_of_joints,
    )
