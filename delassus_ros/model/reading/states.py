"""What the states of Pinocchio's and MuJoCo's models are checked by: the base, joints by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.arguments import sized
from delassus_ros.errors import RobotError
from delassus_ros.model.robot import Joint, JointKind, Robot
from delassus_ros.model.spatial import Array

_AXIS = 1e-6
"""How far axes of the same joint may be apart: files print few digits."""
_UNIT = 1e-3
"""How far the norm of a quaternion may be from 1."""


def base_pose(robot: Robot, base: ArrayLike | None) -> Array | None:
    """Return the pose (7,) of a floating base that a caller gives.

    Raises
    ------
    RobotError
        If it is no position and unit quaternion x, y, z, w, or the robot's base is fixed.
    """
    if base is None:
        return None
    if robot.base == "fixed":
        raise RobotError(f"base is given, but the base of robot {robot.name!r} is fixed")
    pose = sized("base", base, 7, "x, y, z and a quaternion x, y, z, w", RobotError)
    norm = float(np.linalg.norm(pose[3:]))
    # Written so that NaN fails as well.
    if not abs(norm - 1.0) <= _UNIT:
        raise RobotError(f"base[3:7] has norm {norm:.4g}; expected a unit quaternion x, y, z, w")
    return pose


def on_base(robot: Robot) -> str | None:
    """Return the first joint on a floating base, if there is one."""
    return next((joint.name for joint in robot.joints if joint.parent == 0), None)


def links_of_base(robot: Robot) -> list[str]:
    """Return the frames of a floating base's link."""
    return [name for name, frame in robot.frames.items() if frame.body == 0]


def no_base(robot: Robot, free: Sequence[str]) -> RobotError:
    """Return the error of a model that has nothing where a robot's floating base is.

    Parameters
    ----------
    free : the free joints that the model has.
    """
    carried = on_base(robot)
    above = f"that carries joint {carried!r}" if carried else f"of one of {links_of_base(robot)}"
    return RobotError(
        f"robot {robot.name!r} has a floating base; expected a free joint of the model {above}; "
        f"its free joints: {', '.join(free) or 'none'}. A robot with base='fixed' needs none"
    )


def number_of(robot: Robot, name: str, numbers: Mapping[str, int]) -> int:
    """Return the number of a joint in a model.

    Raises
    ------
    RobotError
        If the model lacks it.
    """
    if name not in numbers:
        raise RobotError(
            f"the model has no joint {name!r} of robot {robot.name!r}; it has: "
            f"{', '.join(numbers)}"
        )
    return numbers[name]


def kept(find: Callable[[Robot, Any], list[int]]) -> Callable[[Robot, Any], list[int]]:
    """Keep what is found for the latest model of a robot: controllers convert states each tick."""
    latest: WeakKeyDictionary[Robot, tuple[Any, int, list[int]]] = WeakKeyDictionary()

    @wraps(find)
    def found(robot: Robot, model: Any) -> list[int]:
        before = latest.get(robot)
        if before is not None and before[0] is model and before[1] == model.nq:
            return before[2]
        numbers = find(robot, model)
        latest[robot] = model, model.nq, numbers
        return numbers

    return found


def check_alike(joint: Joint, kind: JointKind | None, axis: Sequence[float], what: str) -> None:
    """Refuse a joint of a model that moves otherwise than the robot's of the same name.

    Parameters
    ----------
    kind, axis : how that of the model moves, None for kinds that no robot has.
    what : what the model calls it.
    """
    along = kind is JointKind.FLOATING or np.abs(np.subtract(axis, joint.axis)).max() < _AXIS
    if kind is joint.kind and along:
        return
    raise RobotError(
        f"joint {joint.name!r} of the robot is {joint.kind.label} with axis "
        f"{joint.axis.tolist()}, that of the model is {what} with axis {list(axis)}; expected "
        "the same, as of a robot that was read from the model"
    )
