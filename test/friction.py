"""Contact problems for tests, and the laws of friction written plainly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
from robots import LEGS

from delassus import Contact, DelassusSolver, Problem, Robot, Solution
from delassus.model.spatial import Array

PUBLIC = Path(__file__).resolve().parents[2] / "shared" / "contact_problems"



def public(name: str) -> tuple[Array, Array, Array]:
    """Return W, q and mu of a public problem with rows x, y, normal."""
    path = PUBLIC / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"no ../shared/contact_problems/{name}.npz beside the repository")
    file = np.load(path)
    count = len(file["mu"])
    rows = (3 * np.arange(count)[:, None] + [1, 2, 0]).ravel()
    return file["W"][np.ix_(rows, rows)], file["q"][rows], file["mu"].astype(float)


def random_problem(seed: int, contacts: int = 4, rank: int | None = None) -> tuple[Array, Array]:
    """Return G and a0 of points that fall and slide; of full rank unless told otherwise."""
    random = np.random.default_rng(seed)
    rows = 3 * contacts
    J = random.normal(size=(rows, rows + 6 if rank is None else rank))
    G = J @ J.T / J.shape[1]
    # In the range of J, so that forces can stop every contact.
    a0 = J @ random.normal(size=J.shape[1])
    return 0.5 * (G + G.T), a0


def nearest(mu: float, x: Array) -> Array:
    """Return the nearest point of the cone |x_T| <= mu x_z."""
    t = float(np.hypot(x[0], x[1]))
    if mu * t <= -x[2]:
        return np.zeros(3)
    if t <= mu * x[2]:
        return x
    normal = (mu * t + x[2]) / (1 + mu**2)
    return np.array([mu * normal * x[0] / t, mu * normal * x[1] / t, normal])


def residual(G: Array, a0: Array, mu: Array, f: Array, law: str = "coulomb") -> float:
    """Return |f - P(f - u~)| over |a0| of point contacts, in scaled rows."""
    scales = np.repeat(1 / np.sqrt(np.diag(G).reshape(-1, 3).mean(axis=1)), 3)
    u, f = scales * (G @ f + a0), f / scales
    total = 0.0
    for contact, coefficient in enumerate(mu):
        rows = slice(3 * contact, 3 * contact + 3)
        speed = u[rows].copy()
        if law == "coulomb":
            speed[2] += coefficient * np.hypot(speed[0], speed[1])
        total += float(np.sum((f[rows] - nearest(coefficient, f[rows] - speed)) ** 2))
    return float(np.sqrt(total) / np.linalg.norm(scales * a0))


def moving_residual(
    G: Array, a0: Array, kinds: Sequence[str], mu: Array, f: Array, v: Array,
    law: str = "coulomb", strike: float = 0.1,
) -> float:  # fmt: skip
    """Return how far forces are from their laws, each condition on its own scale, over |a0|.

    Contacts slide and leave above 0.1 m/s. Rows are scaled by contact; those of contacts that
    leave do not count in |a0|.
    """
    sizes = [3 if kind == "point" else 1 for kind in kinds]
    first = np.cumsum([0, *sizes])
    s, counted = np.zeros(len(a0)), np.ones(len(a0), bool)
    for kind, at, end in zip(kinds, first, first[1:], strict=False):
        s[at:end] = 1 / np.sqrt(np.diag(G)[at:end].mean())
        counted[at:end] = kind == "bilateral" or v[end - 1] <= 0.1
    size = float(np.linalg.norm((s * a0)[counted])) or 1.0
    forces, speeds = f / s / size, s * (G @ f + a0) / size
    off: list[float] = []
    for kind, friction, at, end in zip(kinds, mu, first, first[1:], strict=False):
        F, u, w = forces[at:end], speeds[at:end], v[at:end]
        if kind == "bilateral":
            off.append(u[0])
            continue
        assert w[-1] >= -strike
        if w[-1] > 0.1:
            off += F.tolist()
            continue
        slip = np.hypot(w[0], w[1]) if kind == "point" else 0.0
        if slip > 0.1:
            off += [min(F[2], u[2]), *(F[:2] + friction * F[2] * w[:2] / slip)]
        elif kind == "point" and law == "convex":
            off += (F - nearest(friction, F - u)).tolist()
        else:
            off.append(min(F[-1], u[-1]))
            if kind == "point":
                aim, radius = F[:2] - u[:2], friction * max(F[2], 0.0)
                reach = np.hypot(*aim)
                off += (F[:2] - aim * min(1.0, radius / reach if reach > 0 else 1.0)).tolist()
    return float(np.linalg.norm(off))


def feet_problem(**cones: dict[str, Any]) -> Problem:
    """Return the quadruped on its feet, with friction and normals of some of them."""
    feet = [Contact(leg, f"{leg}_FOOT", **cones.get(leg, {})) for leg in LEGS]
    robot = Robot.from_urdf(robots.quadruped())
    return Problem(robot, feet, axes="world", outputs=["a0", "qdd0", "MinvJT"])


def standing_inputs(problem: Problem) -> dict[str, Any]:
    """Return the inputs of a quadruped that stands with bent legs and without torques."""
    bent = {f"{leg}_{joint}": x for leg in LEGS for joint, x in (("HFE", 0.7), ("KFE", -1.4))}
    n = len(problem.velocities)
    return {
        "q": problem.robot.q(bent), "base_orientation": [0.0, 0.0, 0.0, 1.0],
        "rates": np.zeros(n), "torques": np.zeros(n), "gravity": [0.0, 0.0, -9.81],
    }  # fmt: skip


def standing(active: Sequence[str], **cones: dict[str, Any]) -> Solution:
    """Return the solution of that quadruped on some of its feet."""
    problem = feet_problem(**cones)
    return DelassusSolver(problem).solve(**standing_inputs(problem), active=active)


def pinocchio_forces(G: Array, a0: Array, friction: float) -> Array:
    """Return the forces of points by Pinocchio's ADMM solver, under Coulomb's law."""
    import pinocchio as pin
    if not hasattr(pin, "ADMMConstraintSolver"):
        pytest.skip("this Pinocchio has no ADMMConstraintSolver")
    model = pin.buildSampleModelHumanoidRandom()
    models, data = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for _ in range(len(a0) // 3):
        point = pin.PointContactConstraintModel(model, 1)
        point.setFriction(friction)
        models.append(pin.ConstraintModel(point))
        data.append(models[len(models) - 1].createData())
    settings, result = pin.ADMMSolverSettings(), pin.ADMMSolverResult()
    for name in ("feasibility", "complementarity"):
        setattr(settings, f"relative_{name}_tol", 1e-10)
        setattr(settings, f"absolute_{name}_tol", 1e-12)
    settings.max_iterations, settings.solve_ncp = 5000, True
    solver = pin.ADMMConstraintSolver(len(a0))
    assert solver.solve(pin.DelassusOperatorDense(G), a0.copy(), models, data, settings, result)
    forces: Array = np.array(result.retrieveConstraintImpulses()).ravel()
    return forces
