"""Hybrid motion and force control in operational space, by the rows of one contact: the tool.

Five rows along the tool's own axes: its place and where it points; how it spins about the way it
points does not matter, and is left to the posture.

O. Khatib, "A unified approach for motion and force control of robot manipulators: the operational
space formulation", IEEE J. Robotics and Automation 3(1), 1987. All of Λ, J̄, J, J̇q̇ and h come
with one message of delassus_node; where Λ is damped, in the direction of a singular posture,
torques stay bounded and the other directions are as without.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from control.prediction import predicted

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Rows:
    """Outputs of the node for the tool at an instant.

    Attributes
    ----------
    G, Lambda : (5, 5); Λ is the inverse of G, damped.
    J, Jbar : (5, n) and (n, 5).
    JdotV : (5,), the derivative of components along axes that turn with the tool.
    h : (n,).
    """

    G: Array
    Lambda: Array
    J: Array
    Jbar: Array
    JdotV: Array
    h: Array


@dataclass(frozen=True)
class Tool:
    """Where the tool is and how it moves: place (3,), rotation (3, 3), twist (6,) in the world."""

    place: Array
    rotation: Array
    twist: Array

    def rows(self, six: Array) -> Array:
        """Return what is along the axes of the world by the tool's five rows."""
        return np.concatenate([self.rotation.T @ six[:3], (self.rotation.T @ six[3:])[:2]])


@dataclass(frozen=True)
class Task:
    """Targets of the tool at an instant.

    Attributes
    ----------
    acceleration : (6,) of the tool, linear first, along the axes of the world [m/s², rad/s²].
    wrench : (6,) that it is to press with and to resist, likewise [N, N m].
    posture : (n,) torques that only move what the tool does not feel [N m].
    """

    acceleration: Array
    wrench: Array
    posture: Array


def torques(rows: Rows, tool: Tool, task: Task) -> Array:
    """Return τ = Jᵀ (Λ a + μ + p + F) + Nᵀ τ⁰ (n,)."""
    own = own_acceleration(tool, task)
    bias = rows.Jbar.T @ rows.h - rows.Lambda @ rows.JdotV
    wrench = rows.Lambda @ tool.rows(own) + bias + tool.rows(task.wrench)
    felt = rows.J.T @ (rows.Jbar.T @ task.posture)
    return np.asarray(rows.J.T @ wrench + task.posture - felt)


def own_acceleration(tool: Tool, task: Task) -> Array:
    """Return the derivative of the twist's components along the tool's turning axes."""
    v, w = tool.twist[:3], tool.twist[3:]
    return np.asarray(task.acceleration - np.concatenate([np.cross(w, v), np.zeros(3)]))


def touchdown_speed(
    rows: Rows, tool: Tool, normal: Array, impulse: float, restitution: float = 0.0
) -> float:
    """Return how fast the tool may be along a normal, for an impulse no larger than this [N s].

    The effective mass along it is 1 / (nᵀ G n), and the impulse (1 + e) times that times speed.
    """
    n = tool.rotation.T @ normal
    mass = 1.0 / float(n @ rows.G[:3, :3] @ n)
    return impulse / ((1.0 + restitution) * mass)


def predicted_force(
    rows: Rows,
    velocity: Array,
    torques: Array,
    tool: Tool,
    normal: Array,
    friction: float,
    period: float,
) -> Array:
    """Return the force on the tool under torques, along the axes of the world (3,) [N].

    Friction opposes the sliding of the tool at the end of the period [s]: in the surface,
    accelerations are those that bring the tool to rest within the period, and those without
    contact.
    """
    linear = slice(0, 3)
    along = tool.rotation.T @ normal
    moves = rows.J[linear] @ velocity
    slides = moves - along * (along @ moves)
    # J̄ is M⁻¹ Jᵀ Λ, so that this is J M⁻¹ (τ - h), whatever the damping.
    free = np.linalg.solve(rows.Lambda, rows.Jbar.T @ (torques - rows.h)) + rows.JdotV
    a0 = free[linear] + slides / period
    (force,) = predicted(rows.G[linear, linear], a0, "point", [True], friction, normals=[along])
    return np.asarray(tool.rotation @ force)
