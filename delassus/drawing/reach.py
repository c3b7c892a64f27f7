"""Inverse kinematics of one contact: the joints that bring it to a pose, within their limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from delassus.drawing.scene import DrawnRobot, quaternion_of
from delassus.errors import InputError
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.solver.solver import DelassusSolver

_STEPS = 12
"""Largest number of steps towards a pose."""
_LONGEST_STEP = 0.3
"""Largest change of a joint in a step [rad, m]."""
_DAMPING = 1e-2
"""First damping of least squares [m]; it grows where a step does not come nearer."""
_ANGULAR = 0.2
"""Length by which angular errors of surfaces are weighed against linear ones [m]."""
_CLOSE = 1e-6
"""Distance from the pose at which the steps end [m]."""


class Reach:
    """Moves joints such that a contact reaches a pose, by damped least squares on its Jacobian.

    Parameters
    ----------
    problem : the robot and its contacts.
    ranges : smallest and largest position of joints by name [rad, m].
    q_at : returns q (nq,), with closed loops, at positions of these joints by name; raises
        InputError where loops do not close.

    Raises
    ------
    DelassusError
        If the Jacobian cannot be computed for this robot.
    """

    def __init__(
        self,
        problem: Problem,
        ranges: Mapping[str, tuple[float, float]],
        q_at: Callable[[Mapping[str, float]], Array],
    ) -> None:
        asked = Problem(problem.robot, problem.contacts, "contact", ("J",))
        self._solver, self._drawn = DelassusSolver(asked, "auto"), DrawnRobot.of(problem)
        self._joints = [name for name in ranges if name in asked.velocities]
        self._q_at = q_at
        limits = [ranges[name] for name in self._joints]
        self._lower, self._upper = np.array(limits).reshape(-1, 2).T
        self._columns = [asked.velocities.index(name) for name in self._joints]

    def pose(self, contact: str, positions: Mapping[str, float]) -> Array:
        """Return the pose (4, 4) of a contact in the root link."""
        return self._drawn.pose(self._drawn.poses(self._q_at(positions)), contact)

    def moved(
        self, contact: str, target: Array, positions: Mapping[str, float]
    ) -> dict[str, float]:
        """Return positions of the joints nearer to a pose of a contact [rad, m].

        Steps end where they come no nearer, as at limits, and where loops do not close; there
        are none from positions where loops do not close.

        Parameters
        ----------
        target : (4, 4) pose in the root link; of points the position counts alone.
        """
        def linearized(x: Array) -> tuple[Array, Array]:
            moved = dict(zip(self._joints, x.tolist(), strict=True))
            return self._linearized(contact, target, self._q_at({**positions, **moved}))

        x = np.array([positions[name] for name in self._joints])
        try:
            error, J = linearized(x)
        except InputError:
            return {}
        damping = _DAMPING
        for _ in range(_STEPS):
            distance = float(np.linalg.norm(error))
            if distance < _CLOSE:
                break
            tried = np.clip(x + self._step(error, J, x, damping), self._lower, self._upper)
            try:
                found, at = linearized(tried)
            except InputError:
                break
            if np.linalg.norm(found) < distance:
                x, error, J, damping = tried, found, at, _DAMPING
            else:
                damping *= 10.0
        return dict(zip(self._joints, x.tolist(), strict=True))

    def _step(self, error: Array, J: Array, x: Array, damping: float) -> Array:
        """Return a step of the joints (n,), none of which leaves its limits from one of them."""
        free = np.ones(len(x), dtype=bool)
        for _ in range(2):
            A = J * free
            step: Array = A.T @ np.linalg.solve(A @ A.T + damping**2 * np.eye(len(A)), error)
            free &= ~((x <= self._lower) & (step < 0.0) | (x >= self._upper) & (step > 0.0))
        step *= free
        return step * min(1.0, _LONGEST_STEP / max(float(np.abs(step).max(initial=0.0)), 1e-12))

    def _linearized(self, contact: str, target: Array, q: Array) -> tuple[Array, Array]:
        """Return the error (m,) of a contact in its axes [m], and its Jacobian (m, joints)."""
        pose = self._drawn.pose(self._drawn.poses(q), contact)
        J = self._solver.solve(q, active=[contact]).output("J")[:, self._columns]
        error = pose[:3, :3].T @ (target[:3, 3] - pose[:3, 3])
        if len(J) == 3:
            return error, J
        turn = _rotation_vector(pose[:3, :3].T @ target[:3, :3])
        weights = np.repeat((1.0, _ANGULAR), 3)
        return np.concatenate([error, _ANGULAR * turn]), weights[:, None] * J


def _rotation_vector(rotation: Array) -> Array:
    """Return the axis of a rotation (3, 3), as long as its angle [rad]."""
    *vector, w = quaternion_of(rotation).tolist()
    sine = float(np.linalg.norm(vector))
    angle = 2.0 * np.arctan2(sine, abs(w)) * np.sign(w or 1.0)
    return np.array(vector) * (angle / sine if sine > 1e-12 else 2.0)
