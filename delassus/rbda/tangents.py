"""Directions of the configuration: rates of the inputs q and base_orientation per velocity ẏ.

A joint with a quaternion, and a floating base, have the twist of the link in its body axes, linear
first, as direction. With couplings or loops, q̇ = E ẏ.
"""

from __future__ import annotations

from delassus.model.clusters import clusters_of, velocity_offsets
from delassus.model.robot import JointKind
from delassus.problem import Problem
from delassus.rbda.constraints import loop_jacobian
from delassus.rbda.spatial import rotation_of_quaternion
from delassus.scalars.duals import Dual
from delassus.scalars.functions import Scalar, Vector, dot
from delassus.scalars.ports import Inputs

Direction = dict[tuple[str, int], Scalar]
"""Rates of the entries of inputs, by name of the input and index; missing entries are constant."""


def directions(problem: Problem, x: Inputs) -> list[Direction]:
    """Return per independent velocity the rates of the inputs that it changes."""
    robot = problem.robot
    found: list[Direction] = [{} for _ in problem.velocities]
    offsets = velocity_offsets(robot)
    for cluster in clusters_of(robot):
        joint, first = robot.joints[cluster.joints[0]], offsets[cluster.independent[0]]
        place = robot.q_offsets[cluster.joints[0]]
        if not cluster.is_ordinary:
            E = loop_jacobian(cluster, x["q"])
            columns = [offsets[k] for k in cluster.independent]
            for k, row in zip(cluster.joints, E, strict=True):
                for column, value in zip(columns, row, strict=True):
                    found[column]["q", robot.q_offsets[k]] = value
        elif joint.kind is JointKind.ROOT:
            if "base_orientation" in x:
                _turn(found[first + 3 : first + 6], "base_orientation", 0, x)
        elif joint.kind is JointKind.FLOATING:
            rotation = rotation_of_quaternion(list(x["q"][place + 3 : place + 7]))
            for k in range(3):
                found[first + k] = {("q", place + i): rotation[i][k] for i in range(3)}
            _turn(found[first + 3 : first + 6], "q", place + 3, x)
        else:
            for k in range(joint.kind.nv):
                found[first + k]["q", place + k] = 1.0
    return found


def _turn(found: list[Direction], name: str, place: int, x: Inputs) -> None:
    """Write the rates of a quaternion x, y, z, w per angular velocity in body axes."""
    qx, qy, qz, qw = (0.5 * value for value in x[name][place : place + 4])
    rates = ((qw, qz, -qy, -qx), (-qz, qw, qx, -qy), (qy, -qx, qw, -qz))
    for direction, values in zip(found, rates, strict=True):
        direction |= {(name, place + i): value for i, value in enumerate(values)}


def along(problem: Problem, x: Inputs, velocities: Vector) -> Direction:
    """Return the rates of the inputs at velocities (n,)."""
    total: Direction = {}
    for direction, velocity in zip(directions(problem, x), velocities, strict=True):
        for entry, rate in direction.items():
            total[entry] = total.get(entry, 0.0) + rate * velocity
    return total


def with_all_slopes(problem: Problem, x: Inputs) -> dict[str, Vector]:
    """Return the inputs as duals with one slope per independent velocity."""
    n = len(problem.velocities)
    slopes: dict[tuple[str, int], Vector] = {}
    for k, direction in enumerate(directions(problem, x)):
        for entry, rate in direction.items():
            slopes.setdefault(entry, [0.0] * n)[k] = rate
    return with_slopes(x, slopes)


def with_slopes(x: Inputs, slopes: dict[tuple[str, int], Vector]) -> dict[str, Vector]:
    """Return the inputs with duals in the place of the entries that have slopes."""
    found = {name: list(values) for name, values in x.items()}
    for (name, i), values in slopes.items():
        found[name][i] = Dual(found[name][i], values)
    return found


def transposed(problem: Problem, x: Inputs, gradient: Direction) -> Vector:
    """Return the gradient along each velocity (n,) of a gradient by entries of inputs."""
    return [
        dot([rate for _, rate in direction.items()], [gradient.get(e, 0.0) for e in direction])
        for direction in directions(problem, x)
    ]
