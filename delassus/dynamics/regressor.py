"""The regressor Y of inverse dynamics: Y(q, ẏ, ÿ) π are the torques of the inertias π.

Of each body ten parameters about the origin of its frame, in its axes, in Pinocchio's order:
mass m, first moments m cx, m cy, m cz, and moments of inertia Ixx, Ixy, Iyy, Ixz, Iyz, Izz. With
clusters the columns are those of the spanning tree's bodies, projected by Eᵀ: what M. Chignoli,
N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for Systems with
Kinematic Loops", names as future work. Armatures are no inertias of bodies: torques are Y π, those
of the armatures, and those against springs, dampers and gravity compensation.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from delassus.arguments import numbers
from delassus.dynamics.matrices import link_jacobians
from delassus.errors import InputError
from delassus.model.robot import WORLD, Robot
from delassus.model.spatial import Array, Inertia, Transform
from delassus.problem import Problem
from delassus.rbda.frames import built
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.rotors import spanning
from delassus.rbda.spatial import cross, force_cross
from delassus.scalars.functions import Vector, dot, identity, plus, zeros
from delassus.scalars.ports import Inputs

PARAMETERS = ("m", "mcx", "mcy", "mcz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Names of a body's inertial parameters, in the order of their columns."""
_PAIRS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
"""Rows and columns of the moments of inertia."""


def regressor(tree: RobotTree, x: Inputs) -> Vector:
    """Return Y (n, 10 bodies), flat.

    Parameters
    ----------
    tree : a spanning tree, with inertias as they are in the robot.
    """
    motion = tree.motion({**x, "wrenches": [0.0] * 6 * len(tree.problem.wrenches)})
    a, _ = motion.accelerations(list(x["accelerations"]))
    bodies = len(tree.problem.robot.joints)
    Y = zeros(tree.size, len(PARAMETERS) * bodies)
    jacobians = link_jacobians(motion)
    for body, (i, pose) in _links(tree.problem).items():
        J, _ = jacobians[i]
        forces = _forces(_in_body(pose, motion.v[i]), _in_body(pose, a[i]))
        for k, column in J.items():
            moved = _in_body(pose, column)
            for p, force in enumerate(forces, start=len(PARAMETERS) * body):
                Y[k][p] = dot(moved, force)
    return [value for row in Y for value in row]


def inertial_parameters(robot: Robot) -> Array:
    """Return π (10 bodies,) of a robot, in the order of the regressor's columns."""
    found = []
    for body in robot.bodies:
        inertia = body.inertia
        moments = [inertia.rotational[r, c] for r, c in _PAIRS]
        found.append(np.array([inertia.mass, *inertia.moment, *moments]))
    return np.concatenate(found)


def with_inertial_parameters(robot: Robot, parameters: ArrayLike) -> Robot:
    """Return the robot with other inertias.

    Parameters
    ----------
    parameters : π (10 bodies,), in the order of :func:`inertial_parameters`.

    Raises
    ------
    InputError
        If `parameters` are no numbers or of another shape.
    """
    given = numbers("parameters", parameters)
    if given.shape != (len(PARAMETERS) * len(robot.bodies),):
        raise InputError(
            f"parameters have shape {given.shape}, expected "
            f"({len(PARAMETERS) * len(robot.bodies)},): {len(PARAMETERS)} per body"
        )
    bodies = []
    for body, values in zip(robot.bodies, given.reshape(-1, len(PARAMETERS)), strict=True):
        rotational = np.zeros((3, 3))
        for (r, c), value in zip(_PAIRS, values[4:], strict=True):
            rotational[r, c] = rotational[c, r] = value
        bodies.append(replace(body, inertia=Inertia(values[0], values[1:4], rotational)))
    return robot.replaced(bodies=tuple(bodies))


def _links(problem: Problem) -> dict[int, tuple[int, Transform]]:
    """Return per body its link, and the pose of the link's frame in the body's frame."""
    robot = problem.robot
    if robot.is_closed:
        robot = spanning(robot).robot
    same = Problem(robot, problem.contacts, problem.axes, wrenches=problem.wrenches)
    placed = built(same, regrouped=False)[1]
    return {body: place for body, place in placed.items() if body != WORLD}


def _in_body(pose: Transform, u: Vector) -> Vector:
    """Return a motion of a link's frame in the frame of its body, angular first."""
    R, p = pose.rotation.tolist(), pose.translation.tolist()
    angular = [dot(row, u[:3]) for row in R]
    return angular + plus([dot(row, u[3:]) for row in R], cross(p, angular))


def _forces(v: Vector, a: Vector) -> list[Vector]:
    """Return the forces H a + v ×* H v on a body per unit of each inertial parameter."""
    pairs = zip(_momenta(v), _momenta(a), strict=True)
    return [plus(rate, force_cross(v, momentum)) for momentum, rate in pairs]


def _momenta(u: Vector) -> list[Vector]:
    """Return H u per unit of each inertial parameter, at a motion u."""
    angular, linear = u[:3], u[3:]
    found = [[0.0] * 3 + linear]
    for axis in identity(3):
        found.append(cross(axis, linear) + cross(angular, axis))
    for r, c in _PAIRS:
        moment: Vector = [0.0] * 3
        moment[r] = angular[c]
        moment[c] = angular[r]
        found.append(moment + [0.0] * 3)
    return found
