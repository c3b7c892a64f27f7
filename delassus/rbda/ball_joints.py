"""The check of ball joints: near their singular angle M is singular, and G is rounding."""

from __future__ import annotations

from delassus.model.chains import LEAST_DISTANCE, ball_joints
from delassus.model.mechanism import Mechanism
from delassus.scalars.functions import positive, sincos
from delassus.scalars.ports import Inputs


def check_ball_joints(robot: Mechanism, x: Inputs) -> None:
    """Check that no ball joint is at its singular angle; results that depend on q are refused.

    Raises
    ------
    NumericalError
        On numbers; names the second joint of the chain.
    """
    for ball in ball_joints(robot):
        angle = x["q"][ball.position]
        least = f"{LEAST_DISTANCE**2:g}"
        what = f"the squared distance of {ball.joints[1]!r} from its singular angle, less {least},"
        positive(ball.margin(*sincos(angle)), what, angle)
