"""Passive elements in machine code; formulas are compared with MuJoCo in test_motion_mujoco.py."""

from __future__ import annotations

import numpy as np
import pytest
from on_floats import solver_on_floats
from passive import with_passive
from small import contacts, walker

from delassus import DelassusSolver, Problem, algorithms
from delassus.samples import random_inputs

OUTPUTS = ("G", "JdotV", "a0", "h", "qdd0")
ROBOT, FEET = with_passive(walker(legs=2), 0), contacts(("point", "surface"))
TRACED = [name for name in algorithms.names() if name not in ("pinocchio", "reflected_inertia")]


@pytest.mark.parametrize("name", TRACED)
def test_single_bound_and_batch_calls_of_every_algorithm_count_passive_elements(name: str) -> None:
    problem = Problem(ROBOT, FEET, "world", OUTPUTS)
    x = random_inputs(problem, 0)
    solver, expected = DelassusSolver(problem, name), solver_on_floats(problem, "dense").solve(**x)
    solution, bound = solver.solve(**x), solver.bind()
    for port, values in x.items():
        bound.inputs[port][...] = values
    rows = {port: np.stack([values] * 3) for port, values in x.items()}
    many = solver.solve_batch(rows.pop("q"), **rows)
    for output in OUTPUTS:
        value = expected.output(output)
        np.testing.assert_allclose(solution.output(output), value, rtol=1e-10, atol=1e-10)
        np.testing.assert_array_equal(bound.solve().output(output), solution.output(output))
        np.testing.assert_allclose(many.output(output)[2], value, rtol=1e-10, atol=1e-10)


def test_only_outputs_of_torques_depend_on_passive_elements() -> None:
    problem = Problem(ROBOT, FEET, "world", OUTPUTS)
    plain = Problem(ROBOT.without_passive(), FEET, "world", OUTPUTS)
    assert problem.inputs == plain.inputs
    x = random_inputs(problem, 0)
    found, expected = (solver_on_floats(each).solve(**x) for each in (problem, plain))
    for output in OUTPUTS:
        same = np.array_equal(found.output(output), expected.output(output))
        assert same == (output in ("G", "JdotV")), output
    assert DelassusSolver(problem).operations.total > DelassusSolver(plain).operations.total
