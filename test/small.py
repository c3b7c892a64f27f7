"""Small robots whose kernels compile in milliseconds, and a traced algorithm that counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from delassus import BoundSolver, Contact, Problem, Robot, Transform
from delassus.algorithms import TracedAlgorithm
from delassus.algorithms.dense import Dense
from delassus.contacts import ContactSet
from delassus.model import WORLD, Body, Frame, Inertia, Joint, JointKind

BOX = Inertia.from_com(2.0, (0.05, -0.1, 0.2), np.diag([0.04, 0.05, 0.06]))


def walker(floating: bool = True, legs: int = 3, mass: float = 1.0) -> Robot:
    """Return a body with legs of one joint each, a foot frame on each leg."""
    root = [Joint("root", JointKind.ROOT, WORLD)] if floating else []
    start = Joint("waist", JointKind.REVOLUTE, WORLD, axis=np.array([0.0, 1.0, 0.0]))
    joints = root or [start]
    for leg in range(legs):
        at = Transform.from_xyz_rpy((0.2 * leg, 0.1, -0.1), (0.3 * leg, 0.2, 0.1))
        joints.append(Joint(f"hip{leg}", JointKind.REVOLUTE, 0, at))
    bodies = [Body(f"b{i}", BOX) for i in range(len(joints) - 1)]
    bodies.append(Body("last", Inertia.from_com(mass, (0, 0, 0.1), np.eye(3) * 0.03)))
    foot = Transform.from_xyz_rpy((0.1, 0.3, -0.2), (0.5, 0.0, 0.2))
    frames = [Frame("base", 0, Transform())]
    frames += [Frame(f"foot{leg}", leg + 1, foot) for leg in range(legs)]
    return Robot("walker", joints, bodies, frames)


def contacts(kinds: tuple[object, ...] = ("point", "surface", [[0, 0, 1, 0, 0, 0]])) -> ContactSet:
    """Return one contact per leg: c0, c1, …"""
    return ContactSet(Contact(f"c{i}", f"foot{i}", kind) for i, kind in enumerate(kinds))


def problem(**options) -> Problem:
    """Return the walker's problem: 10 rows in 3 contacts of 3, 6 and 1 rows."""
    return Problem(walker(), contacts(), **options)


def mixed_robot() -> Robot:
    """Return a chain with a planar joint, then a floating one, then a revolute one."""
    kinds = (JointKind.REVOLUTE, JointKind.PLANAR, JointKind.FLOATING, JointKind.REVOLUTE)
    shift = Transform.from_xyz_rpy((0.1, 0.2, 0.3), (0.2, 0.1, 0.4))
    joints = [Joint(f"j{i}", kind, i - 1, shift) for i, kind in enumerate(kinds)]
    bodies = [Body(f"b{i}", BOX) for i in range(4)]
    return Robot("mixed", joints, bodies, [Frame(f"f{i}", i, shift) for i in range(4)])


def feed(bound: BoundSolver, inputs: Mapping[str, Any]) -> BoundSolver:
    """Write inputs of a bound solver by name, and return it."""
    for name, values in inputs.items():
        bound.inputs[name] = values
    return bound


def tiny() -> Problem:
    """Return a problem that compiles as fast as any."""
    return Problem(walker(floating=False, legs=1), contacts(("point",)))


def massless_problem() -> Problem:
    """Return a problem whose mass matrix is singular at q = 0 and nowhere else."""
    joints = [
        Joint("yaw", JointKind.REVOLUTE, WORLD),
        Joint("reach", JointKind.PRISMATIC, 0, axis=np.array([1.0, 0.0, 0.0])),
    ]
    point = Inertia(1.0, np.zeros(3), np.zeros((3, 3)))
    bodies = [Body("arm", Inertia()), Body("mass", point)]
    robot = Robot("reacher", joints, bodies, [Frame("tip", 1, Transform())])
    return Problem(robot, [Contact("tip", "tip")])


_CORNERS = ((0.1, 0.05), (0.1, -0.05), (-0.1, 0.05), (-0.1, -0.05))


def flat_foot(points: int, frame: str = "foot1") -> list[Contact]:
    """Return up to four points in the plane of a frame: more rows than can be independent."""
    return [
        Contact(f"{frame}.{i}", frame, placement=Transform.from_xyz_rpy((x, y, 0), (0, 0, 0)))
        for i, (x, y) in enumerate(_CORNERS[:points])
    ]


class Counting(TracedAlgorithm):
    """The textbook, counting how often it is traced or run."""

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.calls = 0

    def evaluate(self, problem, x):
        self.calls += 1
        return Dense().evaluate(problem, x)
