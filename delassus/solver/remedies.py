"""Texts about inputs of the wrong kind or shape: the call to write instead.

Only errors compute these texts; a call with valid inputs does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from delassus.errors import NAMED
from delassus.outputs import row_of
from delassus.problem import Problem
from delassus.scalars.ports import Port

_POSE = 7
"""Number of entries of a floating base in the positions of Pinocchio and MuJoCo."""
_TWIST = 6
"""Number of velocities of a floating base."""
_QUATERNION_OF = {
    (3, 3): "a rotation matrix R has one: Transform(R).quaternion()",
    (3,): "roll, pitch and yaw have one: Transform.from_xyz_rpy(rpy=(0, 0, 0.3)).quaternion()",
}
"""Remedies for other forms of an orientation, by shape."""


def counted(names: Sequence[str]) -> str:
    """Return names for a message, e.g. ``root (6), hip, knee``, with counts of repetitions."""
    runs = [(name, len(list(same))) for name, same in groupby(names)]
    shown = ", ".join(name if n == 1 else f"{name} ({n})" for name, n in runs[:NAMED])
    more = sum(n for _, n in runs[NAMED:])
    return f"{shown} and {more} more" if more else shown


def of_missing(problem: Problem, port: Port) -> str:
    """Return the reason why a problem needs an input, and its value at rest."""
    if port.name == "base_orientation":
        return "; rows in world axes need it: [0, 0, 0, 1] if the root link's axes are the world's"
    needing = [out.name for out in problem.outputs if port.name in row_of(out.name).needs]
    if not needing:
        return ""
    values = {"gravity": "[0, 0, -9.81]", "wrenches": "{}"}
    rest = values.get(port.name, f"numpy.zeros({port.size})")
    return f"; output {needing[0]!r} needs it, at rest {rest}"


def of_mapping(problem: Problem, port: Port, given: object) -> str:
    """Return the call that makes an array of a mapping by joint; empty for other values."""
    if not isinstance(given, Mapping):
        return ""
    if port.name == "q":
        return "; by joint, write robot.q({…})"
    if port.name == "rates":
        return "; by joint, write problem.rates(robot.v({…}))"
    if port.name == "torques":
        return f"; velocities: {counted(problem.velocities)}"
    return ""


def of_shape(problem: Problem, port: Port, shape: tuple[int, ...], many: bool) -> str:
    """Return the remedy for an input of another shape.

    Parameters
    ----------
    many : whether the input is of several configurations.
    """
    robot, size = problem.robot, shape[-1] if shape else 0
    if port.name == "q":
        if not many and len(shape) == 2 and size == robot.nq:
            return "; many configurations: solve_batch(Q)"
        if many and shape == (robot.nq,):
            return "; one configuration: solve(q)"
        order = f"; joints: {', '.join(robot.joint_names)}"
        if robot.base == "floating" and size == robot.nq + _POSE:
            return (
                "; positions of Pinocchio and MuJoCo begin with the base's pose: write "
                f"robot.q_from_pinocchio(model, q) or robot.q_from_mujoco(model, qpos){order}"
            )
        return order
    if port.name in ("base_orientation", "contact_orientations"):
        return f"; {_QUATERNION_OF[shape]}" if shape in _QUATERNION_OF else ""
    if port.name == "gravity" and shape == ():
        return "; write [0, 0, -9.81]"
    if port.name not in ("rates", "torques"):
        return ""
    order = f"; velocities: {counted(problem.velocities)}"
    if size == robot.nv:
        return f"{order}; Problem.rates(v) takes them from those of all joints"
    if robot.base == "floating" and size == port.size - _TWIST:
        whose = "twist" if port.name == "rates" else "wrench"
        return f"{order}; the base's {whose} is missing: numpy.concatenate([numpy.zeros(6), …])"
    return order
