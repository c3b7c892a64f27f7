"""Problems with moving contacts, and their matrix by the definition in numpy."""

from __future__ import annotations

import numpy as np
import robots
from rigid_body import body_jacobians, body_poses, mass_matrix, quaternion_rotation
from small import walker

from delassus_ros import Contact, Problem, Robot, Transform

LEGS = ("LF", "RF", "LH", "RH")
PLACE = Transform.from_xyz_rpy((0.05, -0.1, 0.2), (0.3, -0.4, 0.5))
TURN = np.array([0.1, -0.5, 0.3, 0.8]) / np.linalg.norm([0.1, -0.5, 0.3, 0.8])


def flat(inputs: dict[str, np.ndarray]) -> dict[str, list[float]]:
    return {name: values.ravel().tolist() for name, values in inputs.items()}


def jacobian(problem: Problem, x: dict[str, np.ndarray]) -> np.ndarray:
    """Return J in numpy, with the contacts where `x` places them; velocities of rigid_body.py."""
    base = None
    if "base_orientation" in x:
        base = Transform(quaternion_rotation(x["base_orientation"]))
    poses = body_poses(problem.robot, x["q"], base)
    bodies = body_jacobians(problem.robot, x["q"])
    positions = dict(zip(problem.moving, x.get("contact_positions", ()), strict=True))
    turns = dict(zip(problem.turning, x.get("contact_orientations", ()), strict=True))
    rows = []
    for contact in problem.contacts:
        frame = problem.robot.frames[contact.frame]
        rotation, place = contact.placement.rotation, contact.placement.translation
        if contact.name in turns:
            rotation = quaternion_rotation(turns[contact.name])
        pose = frame.placement @ Transform(rotation, positions.get(contact.name, place))
        twist = pose.motion_to_child() @ bodies[frame.body]
        twist = np.vstack([twist[3:], twist[:3]])
        if problem.axes == "world":
            twist = np.kron(np.eye(2), (poses[frame.body] @ pose).rotation) @ twist
        rows.append(contact.selection @ twist)
    return np.vstack(rows)


def definition(problem: Problem, x: dict[str, np.ndarray]) -> np.ndarray:
    J = jacobian(problem, x)
    return J @ np.linalg.solve(mass_matrix(problem.robot, x["q"]), J.T)


def feet(axes: str = "contact", moving: str = "position", kind: str = "point") -> Problem:
    """Return the quadruped's problem with four moving feet."""
    robot = Robot.from_urdf(robots.quadruped())
    contacts = [Contact(leg, f"{leg}_FOOT", kind, PLACE, moving) for leg in LEGS]
    return Problem(robot, contacts, axes)


def mixed(axes: str = "contact") -> Problem:
    """Return a small problem: a contact that moves, one that also turns, and a fixed one."""
    contacts = [
        Contact("rolls", "foot0", "point", PLACE, "position"),
        Contact("fixed", "foot1", [[0, 0, 1, 0, 0, 0]], PLACE),
        Contact("turns", "foot2", "surface", PLACE, "pose"),
    ]
    return Problem(walker(), contacts, axes)
