"""Snapshots of a robot at joint positions: its matrix, in numbers and ellipsoids, and forces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from delassus_ros.conditioning.monitor import ConditionSettings
from delassus_ros.conditioning.structural_rank import numerical_rank
from delassus_ros.drawing.force_cones import pressure
from delassus_ros.drawing.scene import Scene, Stage
from delassus_ros.errors import DelassusError
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem
from delassus_ros.solver.solution import Solution
from delassus_ros.solver.solver import DelassusSolver

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


@dataclass(frozen=True)
class DrawnForce:
    """A contact force in its friction cone, in the axes of the root link.

    Attributes
    ----------
    contact : name of the contact.
    point : (3,) centre of pressure [m].
    force : (3,) [N].
    friction : coefficient of friction.
    """

    contact: str
    point: Array
    force: Array
    friction: float


@dataclass(frozen=True)
class Snapshot:
    """A robot with its matrix at one configuration.

    Attributes
    ----------
    poses : (bodies, 4, 4) poses of bodies in the root link.
    scene : ellipsoids and couplings.
    facts : lines about the matrix, by label: rank, condition.
    forces : contact forces, if wanted.
    """

    poses: Array
    scene: Scene = field(default_factory=Scene)
    facts: Mapping[str, str] = field(default_factory=dict)
    forces: Sequence[DrawnForce] = ()


def force_problem(problem: Problem) -> Problem:
    """Return the problem with the outputs that contact forces need, along the world's axes.

    Raises
    ------
    ProblemError
        If the robot has no such outputs.
    """
    return Problem(problem.robot, problem.contacts, "world", _FORCE_OUTPUTS)


class Photographer:
    """Computes snapshots of a robot that stands with its root link level.

    Parameters
    ----------
    solver : solver of the robot's problem; of :func:`force_problem` for contact forces.
    friction : coefficient of all contacts; None without contact forces.
    soles : length and width of surfaces [m], by contact.

    Attributes
    ----------
    robot : the robot.
    stage : the stage on which its matrices are drawn.
    """

    def __init__(
        self,
        solver: DelassusSolver,
        friction: float | None = None,
        soles: Mapping[str, tuple[float, float]] | None = None,
    ) -> None:
        self._solver, self._problem = solver, solver.problem
        self.friction = friction
        self._soles = {} if soles is None else dict(soles)
        contacts = self._problem.contacts
        self.robot = self._problem.robot
        places = {c.name: (c.frame, c.placement) for c in contacts if c.ends}
        self.stage = Stage(self.robot, places)

    def snapshot(self, q: Array, active: Sequence[str]) -> Snapshot:
        """Return the robot at q (nq,) with its active contacts.

        Errors of the computation are among the facts: the robot is shown anyway.
        """
        poses = self.stage.poses(q)
        if not active:
            return Snapshot(poses, facts={"matrix": "no contact is active"})
        try:
            solution, held = self._solved(q, active)
            scene = self._scene(q, solution)
            facts = condition_of(solution)
            forces: Sequence[DrawnForce] = ()
            if self.friction is not None:
                forces, words = self._forces(solution, scene, self.friction)
                facts["contact forces"] = words if held else f"{words}; no forces hold the base"
        except DelassusError as error:
            return Snapshot(poses, facts={"matrix": str(error)})
        return Snapshot(poses, scene, facts, forces)

    def standing(self, q: Array) -> list[str]:
        """Return the contacts that stand on level ground at q: those as low as the lowest one.

        All contacts of a robot on a fixed base are returned.
        """
        contacts = self._problem.contacts
        if self.robot.base == "fixed":
            return list(contacts.names)
        poses = self.stage.poses(q)
        heights = {c.name: float(self.stage.pose(poses, c.name)[2, 3]) for c in contacts}
        ground = min(heights.values()) + _LEVEL * self.stage.size
        return [name for name, height in heights.items() if height <= ground]

    def _scene(self, q: Array, solution: Solution) -> Scene:
        kinds = {contact.name: contact.kind_name for contact in self._problem.contacts}
        world = None if self._problem.axes == "contact" else np.eye(3)
        return self.stage.scene(
            q, solution.contacts, solution.row_offsets,
            tuple(kinds[name] for name in solution.contacts), solution.matrix, world,
        )  # fmt: skip

    def _solved(self, q: Array, active: Sequence[str]) -> tuple[Solution, bool]:
        """Return the solution at rest, and whether contact forces can hold the base."""
        oriented = any(port.name == "base_orientation" for port in self._problem.inputs)
        upright = _UPRIGHT if oriented else None
        if self.friction is None:
            return self._solver.solve(q, active=active, base_orientation=upright), True
        rest = np.zeros(len(self._problem.velocities))
        free = self._solver.solve(
            q, active=active, base_orientation=upright, rates=rest, torques=rest, gravity=GRAVITY
        )
        torques, held = holding_torques(free, self._problem.robot.base == "floating")
        return self._solver.solve(
            q,
            active=active,
            base_orientation=upright,
            rates=rest,
            torques=torques,
            gravity=GRAVITY,
        ), held

    def _forces(
        self, solution: Solution, scene: Scene, friction: float
    ) -> tuple[list[DrawnForce], str]:
        """Return the contact forces, and their status in words."""
        names = solution.contacts
        sizes = [self._soles.get(name, _SOLE) for name in names]
        found = solution.contact_forces(friction, dimensions=sizes)
        drawn = []
        for k, name in enumerate(names):
            rows = found.forces[solution.row_offsets[k] : solution.row_offsets[k + 1]]
            centre = next(placed.centre for placed in scene.contacts if placed.name == name)
            drawn.append(DrawnForce(name, centre + pressure(rows), rows[:3], friction))
        words = f"{found.status.name}, residual {found.residual:.1e}"
        moves = np.abs(found.accelerations).max(initial=0.0) > _STILL
        return drawn, f"{words}; some contacts slide or lift off" if moves else words


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


def condition_of(solution: Solution) -> dict[str, str]:
    """Return rank and condition of a matrix in words, as the node computes them by default."""
    scales = solution.scales(ConditionSettings().characteristic_length)
    scaled = solution.matrix * np.outer(scales, scales)
    eigenvalues = np.asarray(np.linalg.eigvalsh(scaled), dtype=np.float64)
    rank, expected = numerical_rank(eigenvalues), solution.structural_rank()
    size = len(solution.matrix)
    condition = "infinite: a singular posture"
    if rank >= expected and expected:
        condition = f"{eigenvalues[-1] / eigenvalues[size - expected]:.4g}"
    rows = f"{rank} of {size} rows"
    if expected < size:
        rows += f", at most {expected}: contacts are redundant"
    return {"rank": rows, "condition": condition}
