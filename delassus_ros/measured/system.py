"""D(q) d + b(q, ẏ) = 0: everything that a robot's motion and forces have to obey.

F. Nori, "Sparse factorization for robot dynamics", with what it lacks: rotor inertias, floating
bases, couplings and loops. Per link i, in the frames of :mod:`delassus_ros.rbda.tree`,

    a_i − X_i a_p − S_i q̈_i = c_i
    f_i − H_i a_i − Σ X_jᵀ f_j + Σ K_eᵀ w_e = p_i
    τ − Eᵀ (Sᵀ f + A q̈) = 0,    q̈ = E ÿ + γ

with velocity products c, γ and p, gravity as a force on each link; w are the wrenches of the
surroundings on frames, K_e takes the link's twist to the frame's. The unknowns d are a, f, τ of
all links and joints and, what all of them follow from, ÿ and w.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from delassus_ros.model.robot import WORLD, Robot
from delassus_ros.model.spatial import Array
from delassus_ros.rbda.dynamics import ClusterMotion, Moving, motion_of_link
from delassus_ros.rbda.outputs import force_on_body
from delassus_ros.rbda.spatial import SpatialInertia
from delassus_ros.rbda.tree import Link
from delassus_ros.scalars.functions import Vector

_UNIT = np.eye(6)


@dataclass(frozen=True)
class Columns:
    """Where the unknowns are in d.

    Attributes
    ----------
    a, f : per link, the first of six.
    torques, accelerations : τ and ÿ by independent rate.
    wrenches : per frame, the first of six.
    size : of d.
    """

    a: list[int]
    f: list[int]
    torques: list[int]
    accelerations: list[int]
    wrenches: list[int]

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return 12 * len(self.a) + 2 * len(self.torques) + 6 * len(self.wrenches)

    @property
    def free(self) -> list[int]:
        """Columns of ÿ and w, from which all others follow."""
        return [*self.accelerations, *(k + row for k in self.wrenches for row in range(6))]


@dataclass(frozen=True)
class Instant:
    """The system at a configuration.

    Attributes
    ----------
    D, b : (rows, size), (rows,): D d + b = 0.
    moving : links at these positions and rates.
    """

    D: Array
    b: Array
    moving: Moving


class System:
    """The system of a robot.

    Parameters
    ----------
    robot : any robot without floating joints inside the tree.
    frames : with unknown wrenches.
    watched : frames whose accelerations are asked about.

    Attributes
    ----------
    motion : tree and independent rates.
    columns : of d.
    """

    def __init__(self, robot: Robot, frames: Sequence[str], watched: Sequence[str]) -> None:
        self.frames = tuple(frames)
        every = tuple(dict.fromkeys([*frames, *watched]))
        self.motion = ClusterMotion(robot, every)
        links, n = self.motion.tree.links, self.motion.size
        N, F = len(links), len(self.frames)
        self.columns = Columns(
            [6 * i for i in range(N)],
            [6 * (N + i) for i in range(N)],
            list(range(12 * N, 12 * N + n)),
            list(range(12 * N + n, 12 * N + 2 * n)),
            [12 * N + 2 * n + 6 * e for e in range(F)],
        )
        # Link and rows K of each frame.
        self._places = {
            every[index]: (i, np.array(K, dtype=float))
            for i, link in enumerate(links)
            for index, K in link.wrenches
        }
        self._all = len(every)

    def at(self, q: Array, rates: Array, gravity: Array) -> Instant:
        """Return D and b; gravity (3,) in the world's axes, of a free base in its root link's."""
        x = {"q": q.tolist(), "rates": rates.tolist(), "gravity": gravity.tolist()}
        moving = self.motion.at({**x, "wrenches": [0.0] * (6 * self._all)})
        at, links, n = self.columns, self.motion.tree.links, self.motion.size
        rows = 12 * len(links) + n
        D, b = np.zeros((rows, at.size)), np.zeros(rows)
        torque_rows = range(12 * len(links), rows)
        for i, link in enumerate(links):
            own, force = slice(at.a[i], at.a[i] + 6), slice(at.f[i], at.f[i] + 6)
            inertia = SpatialInertia.of(link)
            D[own, own] = D[force, force] = _UNIT
            D[force, own] = -np.array(inertia.matrix(), dtype=float)
            b[force] = -np.array(moving.bias(i, inertia), dtype=float)
            if link.motion == "free":
                base = slice(torque_rows[0], torque_rows[0] + 6)
                D[own, at.accelerations[0] : at.accelerations[0] + 6] = -_matrix(
                    motion_of_link, link
                )
                D[base, at.torques[0] : at.torques[0] + 6] = _UNIT
                D[base, force] = -_matrix(force_on_body, link)
                continue
            b[own] = -np.array(moving.c[i], dtype=float)
            S = at.a[i] + link.freedom
            for k, factor in moving.rows[i].items():
                D[S, at.accelerations[k]] = -factor
                D[torque_rows[k], at.f[i] + link.freedom] = -factor
                for j, other in moving.rows[i].items():
                    D[torque_rows[k], at.accelerations[j]] -= factor * link.armature * other
                b[torque_rows[k]] -= factor * link.armature * moving.gamma[i]
            for k in moving.rows[i]:
                D[torque_rows[k], at.torques[k]] = 1.0
            if link.parent != WORLD:
                X = np.array(
                    [moving.transforms[i].motion_to_child(unit) for unit in _UNIT.tolist()],
                    dtype=float,
                ).T
                above = slice(at.a[link.parent], at.a[link.parent] + 6)
                D[own, above] = -X
                D[slice(at.f[link.parent], at.f[link.parent] + 6), force] = -X.T
        for frame, first in zip(self.frames, at.wrenches, strict=True):
            i, K = self._places[frame]
            D[at.f[i] : at.f[i] + 6, first : first + 6] = K.T
        return Instant(D, b, moving)

    def acceleration(self, frame: str, instant: Instant) -> tuple[Array, Array]:
        """Return rows (6, size) and (6,) of a frame's spatial acceleration, linear first."""
        i, K = self._places[frame]
        rows = np.zeros((6, self.columns.size))
        rows[:, self.columns.a[i] : self.columns.a[i] + 6] = K
        return rows, np.zeros(6)

    def specific_force(self, frame: str, instant: Instant) -> tuple[Array, Array]:
        """Return rows (3, size) and (3,) of what an accelerometer in a frame measures."""
        i, K = self._places[frame]
        rows, zero = self.acceleration(frame, instant)
        twist = K @ np.array(instant.moving.v[i], dtype=float)
        gravity = K @ np.array(instant.moving.g[i], dtype=float)
        # Of a point, not of what flows through it: ω × v more than the spatial one.
        return rows[:3], zero[:3] + np.cross(twist[3:], twist[:3]) - gravity[:3]


def _matrix(function: Callable[[Link, Vector], Vector], link: Link) -> Array:
    """Return the matrix of a linear function of six numbers of a link."""
    columns = [function(link, unit) for unit in _UNIT.tolist()]
    return np.asarray(np.array(columns, dtype=float).T)
