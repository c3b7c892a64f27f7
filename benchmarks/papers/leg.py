"""Figure 14 of the cluster paper: a leg's torques without rotors, and where they lead the toe.

Protocol of the authors' released experiment: the hip of the MIT Humanoid's leg is fixed, each of
its five joints follows 0.5 rad · sin(ω t) for 5 s, in steps of 0.5 ms, with ω = 2π · 0.25, 0.5,
0.75 and 1.5 rad/s. Torques are those of C-RNEA, and of the approximate and the unconstrained RNEA.
Then the exact leg moves under the torques of each, which are constant during a step, by C-ABA and
the classic Runge-Kutta method of order four.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from benchmarks.cases import beside
from benchmarks.pages import Table, table
from delassus import Contact, Robot, Transform
from delassus.dynamics import GRAVITY, Dynamics, LoopRates
from delassus.model.robot import WORLD
from delassus.model.spatial import Array

METHODS = ("c_rnea", "approximate", "unconstrained")
FREQUENCIES = (0.25, 0.5, 0.75, 1.5)
"""ω / 2π [Hz]."""
AMPLITUDE = 0.5
"""[rad]."""
STEP = 5e-4
"""[s]."""
DURATION = 5.0
"""[s]."""
PLOTTED = FREQUENCIES[-1]
"""Frequency of the torques that the figure shows [Hz]."""
TOE = Contact("toe", "ankle_link", "point", Transform(np.eye(3), np.array([0.1, 0.0, -0.041])))
JOINTS = ("hip_rz", "hip_rx", "hip_ry", "knee", "ankle")
"""Names on the page of the joints, hip first."""


@dataclass(frozen=True)
class Leg:
    """The leg with its kernels.

    Attributes
    ----------
    robot : the leg with its rotors, the hip fixed.
    """

    robot: Robot

    @classmethod
    def load(cls) -> Leg:
        """Return the leg of the MIT Humanoid; raises AbsentError where its URDF is absent."""
        return cls(Robot.from_urdf(beside("grbda_mit_humanoid_leg"), "fixed"))

    @cached_property
    def dynamics(self) -> Dynamics:
        """Return the dynamics by all methods."""
        return Dynamics(self.robot)

    @cached_property
    def ratios(self) -> Array:
        """Return E (nq, joints): positions of all joints by those of the independent ones."""
        return LoopRates(self.robot).jacobian(np.zeros(self.robot.nq))

    def torques(self, method: str, y: Array, rates: Array, accelerations: Array) -> Array:
        """Return the torques (N, joints) of states (N, joints) [N·m]."""
        given = y @ self.ratios.T, rates, accelerations, GRAVITY
        return self.dynamics.batch("inverse", *given, method=method)[0]

    def accelerations(self, y: Array, rates: Array, torques: Array) -> Array:
        """Return the accelerations (N, joints) of the exact leg [rad/s²]."""
        return self.dynamics.batch("forward", y @ self.ratios.T, rates, torques, GRAVITY)[0]

    def toe(self, y: Array) -> Array:
        """Return the positions (N, 3) of the toe [m]."""
        q = y @ self.ratios.T
        position = np.tile(TOE.placement.translation, (len(y), 1))
        joint = self.robot.frames[TOE.frame].body
        while joint != WORLD:
            moved = self.robot.joints[joint]
            turns = Rotation.from_rotvec(np.outer(q[:, self.robot.q_offsets[joint]], moved.axis))
            position = turns.apply(position) @ moved.placement.rotation.T
            position = position + moved.placement.translation
            joint = moved.parent
        return position

    def rolled_out(self, y: Array, rates: Array, torques: Array, step: float) -> Array:
        """Return the positions (steps, N, joints) of N motions under torques (steps, N, joints).

        Parameters
        ----------
        y, rates : (N, joints) at the beginning.
        step : [s].
        """
        found = np.empty_like(torques)
        for k, tau in enumerate(torques):
            found[k] = y
            slopes = [(rates, self.accelerations(y, rates, tau))]
            for share in (0.5, 0.5, 1.0):
                speed, change = slopes[-1]
                at = y + share * step * speed, rates + share * step * change
                slopes.append((at[1], self.accelerations(*at, tau)))
            weights = (1 / 6, 1 / 3, 1 / 3, 1 / 6)
            y = y + step * sum(w * s for w, (s, _) in zip(weights, slopes, strict=True))
            rates = rates + step * sum(w * a for w, (_, a) in zip(weights, slopes, strict=True))
        return found


def trajectory(frequency: float, duration: float) -> tuple[Array, Array, Array, Array]:
    """Return times (N,) [s], and positions, rates and accelerations (N, joints) of the motion."""
    t = np.arange(round(duration / STEP) + 1) * STEP
    w = 2.0 * np.pi * frequency
    ones = np.ones(len(JOINTS))
    sine, cosine = AMPLITUDE * np.sin(w * t), AMPLITUDE * np.cos(w * t)
    return t, np.outer(sine, ones), w * np.outer(cosine, ones), -(w**2) * np.outer(sine, ones)


def measured(duration: float = DURATION, every: int = 20) -> dict[str, Any]:
    """Return all numbers of the figure, ready for JSON.

    Parameters
    ----------
    duration : of the motions [s].
    every : steps between the points of curves.

    Returns
    -------
    ``t`` [s]; ``torques`` [N·m] of knee and ankle at :data:`PLOTTED` by joint and method;
    ``largest`` and ``rms`` [N·m], per frequency: of the exact torques by joint, and of the errors
    by method and joint; ``drift`` [m], per frequency and method the toe's distance from its path.
    """
    leg = Leg.load()
    found: dict[str, Any] = {"torques": {}, "largest": {}, "rms": {}, "drift": {}}
    starts, applied, paths = [], [], []
    for frequency in FREQUENCIES:
        t, y, rates, accelerations = trajectory(frequency, duration)
        torques = {name: leg.torques(name, y, rates, accelerations) for name in METHODS}
        exact = torques["c_rnea"]
        found["largest"][str(frequency)] = np.abs(exact).max(axis=0).tolist()
        found["rms"][str(frequency)] = {
            name: np.sqrt(np.mean((torques[name] - exact) ** 2, axis=0)).tolist()
            for name in METHODS[1:]
        }
        if frequency == PLOTTED:
            for joint in ("knee", "ankle"):
                column = JOINTS.index(joint)
                found["torques"][joint] = {
                    name: values[::every, column].tolist() for name, values in torques.items()
                }
        starts += [(y[0], rates[0])] * len(METHODS)
        applied += [torques[name] for name in METHODS]
        paths += [leg.toe(y)] * len(METHODS)
    began_y, began_rates = (np.array(values) for values in zip(*starts, strict=True))
    moved = leg.rolled_out(began_y, began_rates, np.stack(applied, axis=1), STEP)
    names = [(f, name) for f in FREQUENCIES for name in METHODS]
    for k, (frequency, name) in enumerate(names):
        distance = np.linalg.norm(leg.toe(moved[:, k]) - paths[k], axis=1)
        found["drift"].setdefault(str(frequency), {})[name] = distance[::every].tolist()
    found["t"] = t[::every].tolist()
    return found


def table_of(found: dict[str, Any]) -> Table:
    """Return the table of the figure."""
    largest, rms = found["largest"][str(PLOTTED)], found["rms"][str(PLOTTED)]
    rows = []
    for k, joint in enumerate(JOINTS):
        errors = [(rms[name][k], 100.0 * rms[name][k] / largest[k]) for name in METHODS[1:]]
        cells = (f"{error:.3g} ({share:.1f} %)" for error, share in errors)
        rows.append((joint, f"{largest[k]:.3g}", *cells))
    heads = (f"{name}, rms error" for name in METHODS[1:])
    return table((f"joint, at {PLOTTED} Hz", "largest torque", *heads), rows)
