"""Wide rows: corresponding rows are combined, and no lane computes anything else than before."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import robots
from programs import run

from delassus import Contact, DelassusSolver, Problem, Robot, Transform, algorithms
from delassus.compiler.ir.program import Program
from delassus.compiler.ir.trace import trace
from delassus.compiler.passes.limbs import limb_groups, matrix_rows, outer_limbs
from delassus.compiler.passes.vectorize import scalar_program, vectorized
from delassus.compiler.passes.widen import widened
from delassus.testing import random_problem
from delassus.testing.conformance import relative_error, textbook

TRACED = [
    name
    for name in algorithms.names()
    if isinstance(algorithms.get(name), algorithms.TracedAlgorithm)
]


def unchanged(problem: Problem, program: Program) -> Program:
    """Return the widened program after a comparison, to the last bit, with the one before."""
    wide = widened(program, matrix_rows(problem), outer_limbs(limb_groups(problem)))
    inputs = np.random.default_rng(4).uniform(-2, 2, sum(port.size for port in problem.inputs))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(run(wide, inputs), run(program, inputs))
    return wide


def computing(program: Program) -> int:
    return sum(i.kind in ("add", "sub", "mul", "div") for i in program.instructions)


@pytest.mark.parametrize("name", TRACED)
@pytest.mark.parametrize("seed", range(4))
def test_each_lane_computes_what_its_instruction_computed(seed, name):
    problem = random_problem(seed, largest=10)
    if algorithms.get(name).supports(problem):
        pytest.skip(f"{name} does not solve this one")
    unchanged(problem, scalar_program(trace(problem, algorithms.get(name)), []))


@pytest.mark.parametrize("seed", range(4, 8))
def test_moving_contacts(seed):
    problem = random_problem(seed, largest=8, moving=True)
    unchanged(problem, scalar_program(trace(problem, algorithms.get("pv_osimr")), []))


def legs(limbs: int) -> Problem:
    """Our quadruped on some of its feet, all six directions of each held."""
    robot = Robot.from_urdf(robots.quadruped())
    feet = ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")[:limbs]
    return Problem(robot, [Contact(foot, foot, "surface") for foot in feet])


@pytest.mark.parametrize(("limbs", "share"), [(1, 0.87), (2, 0.70), (3, 0.60)])
def test_rows_of_a_surface_are_combined(limbs, share):
    problem = legs(limbs)
    before = scalar_program(trace(problem, algorithms.get("pv_osimr")), [])
    wide = unchanged(problem, before)
    # The leg's own part has no rows to combine: it weighs most where there is one leg.
    assert computing(wide) < share * computing(before)


def test_rows_of_alike_limbs_are_combined_on_top():
    problem = legs(2)
    traced = trace(problem, algorithms.get("pv_osimr"))
    program = vectorized(problem, traced, [])
    widths = [i.width for i in program.instructions if i.kind == "mul"]
    assert widths.count(8) > 50
    assert computing(program) < 0.45 * computing(scalar_program(traced, []))


@pytest.mark.parametrize("limbs", [1, 2, 4])
def test_compiled_kernels_agree_with_the_definition(limbs):
    problem = legs(limbs)
    q = np.random.default_rng(limbs).uniform(-2, 2, problem.robot.nq)
    found = DelassusSolver(problem, "pv_osimr").solve(q).matrix
    assert relative_error(problem, found, textbook(problem, {"q": q})) < 1e-11


def test_operands_come_first():
    problem = legs(2)
    program = vectorized(problem, trace(problem, algorithms.get("auto")), [])
    for k, instruction in enumerate(program.instructions):
        assert all(operand < k for operand in instruction.operands)


def test_rows_of_a_matrix_cover_the_upper_triangle_once():
    problem = legs(2)
    m = problem.contacts.rows
    found = [p for row in matrix_rows(problem) for p in row if p >= 0]
    assert sorted(found) == [r * m + c for r in range(m) for c in range(r, m)]
    offsets = problem.contacts.row_offsets
    lengths = {b - a for a, b in pairwise(offsets)}
    assert {len(row) for row in matrix_rows(problem)} == lengths


def test_limbs_that_differ_at_their_ends_are_combined():
    robot = Robot.from_urdf(robots.quadruped())
    # Feet at different places: one lower leg has a zero more than the other.
    feet = [
        Contact("LF", "LF_FOOT", "surface"),
        Contact("RF", "RF_FOOT", "surface", Transform(np.eye(3), np.array([0.0, 0.1, 0.2]))),
    ]
    problem = Problem(robot, feet)
    before = scalar_program(trace(problem, algorithms.get("pv_osimr")), [])
    rows_only = widened(before, matrix_rows(problem))
    assert computing(unchanged(problem, before)) < 0.9 * computing(rows_only)


def test_outer_limbs_share_no_inputs():
    problem = legs(4)
    (group,) = outer_limbs(limb_groups(problem))
    assert len(group) == 4
    assert sum(group) == group[0] | group[1] | group[2] | group[3]
