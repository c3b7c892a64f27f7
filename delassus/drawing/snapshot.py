"""Snapshots of a robot at joint positions: its matrix, in numbers and ellipsoids, and forces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from delassus.conditioning.monitor import ConditionSettings, condition_of, scaled_eigenvalues
from delassus.drawing.force_cones import PlacedForce
from delassus.drawing.scene import DrawnRobot, Scene
from delassus.errors import DelassusError
from delassus.model.robot import Robot
from delassus.model.spatial import Array, Transform, rotation_from_quaternion
from delassus.problem import Problem
from delassus.solver.solution import Solution
from delassus.solver.solver import DelassusSolver
from delassus.solver.structural_rank import numerical_rank

GRAVITY = (0.0, 0.0, -9.81)
"""Gravity [m/s²] of a robot whose root link is level."""
_UPRIGHT = (0.0, 0.0, 0.0, 1.0)
_FORCE_OUTPUTS = ("J", "a0", "h")
_STILL = 1e-6
"""Contact acceleration below which a contact holds [m/s², rad/s²]."""
_LEVEL = 0.05
"""Height above the lowest contact up to which contacts stand, as a share of the robot's size."""
_SOLE = (0.2, 0.1)
"""Length and width of a surface without a shape [m]."""
_TIPS = "with these contacts the robot tips over"
_SIGNS = np.array([(1.0, 1.0), (1.0, -1.0), (-1.0, -1.0), (-1.0, 1.0)])
_AROUND = np.array([(np.cos(t), np.sin(t)) for t in np.linspace(0.0, 2.0 * np.pi, 360, False)])
"""Unit vectors (360, 2) all around."""


@dataclass(frozen=True, eq=False)
class Moment:
    """A state of a robot, of which a snapshot is made.

    Attributes
    ----------
    q : (nq,) joint positions [rad, m].
    active : names of the active contacts; None where the user chooses the contacts.
    inputs : inputs of the solver that are known besides q, by the names of their ports: a robot
        without them stands with its root link level and holds its posture.
    warning : why the state has no matrix, or is doubtful; empty if it is neither.
    """

    q: Array
    active: tuple[str, ...] | None = None
    inputs: Mapping[str, Array] = field(default_factory=dict)
    warning: str = ""


@dataclass(frozen=True)
class Snapshot:
    """A robot with its matrix at one configuration.

    Attributes
    ----------
    poses : (bodies, 4, 4) poses of bodies in the root link.
    scene : ellipsoids and couplings.
    facts : lines about the matrix, by label: rank, condition.
    forces : contact forces, if wanted.
    turn : (3, 3) orientation of the root link in the world.
    positions : positions of joints by name [rad, m], as ``Robot.q`` takes them.
    """

    poses: Array
    scene: Scene = field(default_factory=Scene)
    facts: Mapping[str, str] = field(default_factory=dict)
    forces: Sequence[PlacedForce] = ()
    turn: Array = field(default_factory=lambda: np.eye(3))
    positions: Mapping[str, float | list[float]] = field(default_factory=dict)


def force_problem(problem: Problem) -> Problem:
    """Return the problem with the outputs that contact forces need, along the world's axes.

    Raises
    ------
    ProblemError
        If the robot has no such outputs.
    """
    return Problem(problem.robot, problem.contacts, "world", _FORCE_OUTPUTS)


class SnapshotSolver:
    """Computes snapshots of a robot, whose root link is level unless its orientation is known.

    Parameters
    ----------
    solver : solver of the robot's problem; of :func:`force_problem` for contact forces.
    friction : coefficient of all contacts; None without contact forces.
    soles : length and width of surfaces without dimensions [m], by contact.
    places : returns placements of contacts that move on their links, by name, from the poses
        (4, 4) of frames in the root link; the other contacts stay where they are.

    Attributes
    ----------
    solver : the solver, which may be exchanged for one of the same problem.
    """

    def __init__(
        self,
        solver: DelassusSolver,
        friction: float | None = None,
        soles: Mapping[str, tuple[float, float]] | None = None,
        places: Callable[[Mapping[str, Array]], Mapping[str, Transform]] | None = None,
    ) -> None:
        self.solver, self._problem = solver, solver.problem
        self.friction = friction
        self._soles = {} if soles is None else dict(soles)
        self._places = places
        self.robot = self._problem.robot
        self.drawn_robot = DrawnRobot.of(self._problem)
        self._ports = {port.name for port in self._problem.inputs}

    def snapshot(self, moment: Moment | Array, active: Sequence[str]) -> Snapshot:
        """Return the robot at a moment, or at q (nq,), with its active contacts.

        Errors of the computation are among the facts: the robot is shown anyway.
        """
        moment = moment if isinstance(moment, Moment) else Moment(moment)
        poses = self.drawn_robot.poses(moment.q)
        upright = np.array(_UPRIGHT)
        turn = rotation_from_quaternion(moment.inputs.get("base_orientation", upright))
        bare = Snapshot(poses, turn=turn, positions=positions_of(self.robot, moment.q))
        if not active:
            words = moment.warning or "no contact is active"
            return replace(bare, facts={"matrix": words})
        try:
            solution, held = self._solved(moment, active, poses)
            scene = self._scene(moment.q, solution, turn)
            facts = facts_of(solution)
            forces: Sequence[PlacedForce] = ()
            if self.friction is not None and held is None:
                facts["contact forces"] = "torques and rates are unknown"
            elif self.friction is not None:
                forces, words = self._forces(moment.q, solution, turn, self.friction, bool(held))
                facts["contact forces"] = words
        except DelassusError as error:
            return replace(bare, facts={"matrix": str(error)})
        return replace(bare, scene=scene, facts=facts, forces=forces)

    def time(self, moment: Moment, calls: int) -> float:
        """Return the shortest time of some calls of the solver with all contacts [s]."""
        names, poses = self._problem.contacts.names, self.drawn_robot.poses(moment.q)
        return min(self._solved(moment, names, poses)[0].compute_time for _ in range(calls))

    def standing(self, q: Array) -> list[str]:
        """Return the contacts that stand on level ground at q: those as low as the lowest one.

        All contacts of a robot on a fixed base are returned.
        """
        contacts = self._problem.contacts
        if self.robot.base == "fixed":
            return list(contacts.names)
        poses = self.drawn_robot.poses(q)
        self._move(poses)
        heights = {c.name: float(self.drawn_robot.pose(poses, c.name)[2, 3]) for c in contacts}
        ground = min(heights.values()) + _LEVEL * self.drawn_robot.size
        return [name for name, height in heights.items() if height <= ground]

    def _move(self, poses: Array) -> Mapping[str, Transform]:
        """Return the placements of contacts that move, and draw these contacts there."""
        if self._places is None:
            return {}
        frames = {c.frame: self.drawn_robot.frame(poses, c.frame) for c in self._problem.contacts}
        placed = self._places(frames)
        for name, placement in placed.items():
            self.drawn_robot.move(name, placement)
        return placed

    def _scene(self, q: Array, solution: Solution, turn: Array) -> Scene:
        kinds = {contact.name: contact.kind_name for contact in self._problem.contacts}
        world = None if self._problem.axes == "contact" else turn.T
        return self.drawn_robot.scene(
            q, solution.contacts, solution.row_offsets,
            tuple(kinds[name] for name in solution.contacts), solution.matrix, world,
        )  # fmt: skip

    def _solved(
        self, moment: Moment, active: Sequence[str], poses: Array
    ) -> tuple[Solution, bool | None]:
        """Return the solution at a moment, and whether contact forces can hold the base.

        The torques are those of the moment, or hold the posture; None if they are not known.
        """
        known: dict[str, Any] = {k: v for k, v in moment.inputs.items() if k in self._ports}
        placed = self._move(poses)
        if placed:
            known["contact_positions"] = {name: p.translation for name, p in placed.items()}
        if placed and "contact_orientations" in self._ports:
            known["contact_orientations"] = {name: p.quaternion() for name, p in placed.items()}
        if "base_orientation" in self._ports:
            known.setdefault("base_orientation", _UPRIGHT)
        if self.friction is None or "torques" in known:
            return self.solver.solve(moment.q, active=active, **known), True
        rest = np.zeros(len(self._problem.velocities))
        known |= {"rates": rest, "gravity": GRAVITY}
        free = self.solver.solve(moment.q, active=active, torques=rest, **known)
        if not {"J", "h"} <= {port.name for port in self._problem.outputs}:
            return free, None
        torques, held = holding_torques(free, self._problem.robot.base == "floating")
        return self.solver.solve(moment.q, active=active, torques=torques, **known), held

    def _forces(
        self, q: Array, solution: Solution, turn: Array, friction: float, held: bool
    ) -> tuple[list[PlacedForce], str]:
        """Return the contact forces, and a text about their status."""
        names, offsets = solution.contacts, solution.row_offsets
        sizes = [self._soles.get(name, _SOLE) for name in names]
        found = solution.contact_forces(friction, dimensions=sizes)
        placed = self.drawn_robot.forces(
            q, names, offsets, found.forces, np.full(len(names), friction),
            np.tile((0.0, 0.0, 1.0), (len(names), 1)), turn.T,
        )  # fmt: skip
        words = f"{found.status.name}, residual {found.residual:.1e}"
        if not held:
            return placed, f"{words}; {_TIPS}: {_too_few(solution)} cannot hold it"
        if np.abs(found.accelerations).max(initial=0.0) <= _STILL:
            return placed, words
        outside = self._outside(solution, self.drawn_robot.poses(q), turn)
        if self.robot.base == "floating" and outside > 0.0:
            return placed, (
                f"{words}; {_TIPS}: its centre of mass is {outside:.2g} m outside of the area "
                "between them"
            )
        return placed, f"{words}; some contacts slide or lift off"

    def _outside(self, solution: Solution, poses: Array, turn: Array) -> float:
        """Return how far the centre of mass is outside of the area between the contacts [m].

        Both are seen from above; the distance is negative inside.
        """
        bodies = self.robot.bodies
        mass = sum(body.inertia.mass for body in bodies)
        centre = sum(pose[:3, :3] @ body.inertia.moment + body.inertia.mass * pose[:3, 3]
                     for body, pose in zip(bodies, poses, strict=True)) / mass  # fmt: skip
        contacts = {contact.name: contact for contact in self._problem.contacts}
        corners = []
        for name in solution.contacts:
            pose, contact = self.drawn_robot.pose(poses, name), contacts[name]
            half = np.zeros(2)
            if contact.kind_name == "surface":
                half = 0.5 * np.array(contact.dimensions or self._soles.get(name, _SOLE))
            corners += [pose[:3, 3] + pose[:3, :2] @ (half * signs) for signs in _SIGNS]
        offsets = (turn @ (centre - np.array(corners)).T)[:2]
        return float((_AROUND @ offsets).min(axis=1).max())


def positions_of(robot: Robot, q: Array) -> dict[str, float | list[float]]:
    """Return the positions of joints at q (nq,) by name [rad, m], as ``Robot.q`` takes them.

    Joints with several entries in q have a list.
    """
    found: dict[str, float | list[float]] = {}
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        entries = q[offset : offset + joint.kind.nq].tolist()
        if entries:
            found[joint.name] = entries if len(entries) > 1 else entries[0]
    return found


def _too_few(solution: Solution) -> str:
    """Return a text about the active contacts, e.g. ``two points``."""
    count = len(solution.contacts)
    if len(solution.matrix) != 3 * count:
        return "these contacts"
    return {1: "one point", 2: "two points"}.get(count, f"{count} points in a line")


def holding_torques(solution: Solution, floating: bool) -> tuple[Array, bool]:
    """Return torques (n,) that hold the posture against gravity, and whether they can.

    The contacts of a floating base carry it with the smallest forces; friction is not considered.
    """
    J, h = solution.output("J"), solution.output("h")
    torques = h.copy()
    if not floating:
        return torques, True
    forces, *_ = np.linalg.lstsq(J[:, :6].T, h[:6], rcond=None)
    torques -= J.T @ forces
    left = float(np.abs(torques[:6]).max())
    torques[:6] = 0.0
    return torques, left <= 1e-6 * float(np.abs(h[:6]).max())


def facts_of(solution: Solution) -> dict[str, str]:
    """Return texts about rank and condition of a matrix, as the node computes them by default."""
    scales = solution.scales(ConditionSettings().characteristic_length)
    eigenvalues = scaled_eigenvalues(solution.matrix, scales)
    rank, expected = numerical_rank(eigenvalues), solution.structural_rank()
    size = len(solution.matrix)
    condition = condition_of(eigenvalues[size - expected :]) if expected else np.inf
    rows = f"{rank} of {size} rows"
    if expected < size:
        rows += f", at most {expected}: contacts are redundant"
    words = "infinite: a singular posture" if np.isinf(condition) else f"{condition:.4g}"
    return {"rank": rows, "condition": words}
