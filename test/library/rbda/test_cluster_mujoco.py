"""Inverse and forward dynamics of closed robots against MuJoCo's equality constraints."""

from __future__ import annotations

import numpy as np
import pytest
from on_floats import DynamicsOnFloats
from oracles import GRAVITY, cases
from oracles.mujoco_models import MujocoModel
from passive import with_passive
from test_cluster_dynamics import loop_motion

CASES = (
    *((cases.acceptable_trees, seed) for seed in range(5)),
    *(
        pytest.param(cases.acceptable_trees, seed, marks=pytest.mark.slow)
        for seed in range(5, 15)
    ),
    *((cases.linkages, name) for name in cases.PARALLELOGRAMS),
    (cases.geared_demo, 5),
)


@pytest.mark.parametrize("passive", [False, True], ids=["plain", "passive"])
@pytest.mark.parametrize(("case", "key"), CASES)
def test_dynamics_of_closed_robots(case, key, passive: bool) -> None:
    """Both ways of the dynamics with M q̈ + h − τ of MuJoCo, which K only may hold."""
    problem, inputs = case(key, ("G",))[0]
    q, seed = inputs["q"], key if isinstance(key, int) else 3
    robot = with_passive(problem.robot, seed) if passive else problem.robot
    dynamics, model = DynamicsOnFloats(robot), MujocoModel(robot)
    model.model.opt.gravity[:] = GRAVITY
    rng = np.random.default_rng(seed)
    rates, torques = rng.normal(size=dynamics.size), rng.normal(size=dynamics.size)
    E, gamma = loop_motion(robot, q, rates)
    accelerations = dynamics.forward(q, rates, torques, GRAVITY)
    model.move(q, E @ rates)
    assert np.abs(model.K @ E).max() < 1e-9 * max(1.0, np.abs(E).max())
    found = E.T @ (model.M @ (E @ accelerations + gamma) + model.bias)
    scale = np.linalg.norm(torques) + np.linalg.norm(E.T @ model.bias)
    assert np.linalg.norm(found - torques) < 1e-9 * scale
    again = dynamics.inverse(q, rates, accelerations, GRAVITY)
    assert np.linalg.norm(again - found) < 1e-9 * scale
