"""Placements of moving contacts as inputs: single, bound and batch calls, and exported kernels."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from c_programs import built, numbers_of
from oracles import textbook
from oracles.cases import OFF
from small import walker

from delassus import Contact, DelassusSolver, Problem, algorithms
from delassus.compiler.export import export
from delassus.errors import InputError
from delassus.testing.conformance import fixed_there, relative_error

TOLERANCE = 1e-10
Q = np.array([0.3, -1.1, 0.7])
TURN = np.array([0.1, -0.5, 0.3, 0.8]) / np.linalg.norm([0.1, -0.5, 0.3, 0.8])


def mixed(axes: str = "contact") -> Problem:
    """Return a small problem: a contact that moves, one that also turns, and a fixed one."""
    contacts = [
        Contact("rolls", "foot0", "point", OFF, "position"),
        Contact("fixed", "foot1", [[0, 0, 1, 0, 0, 0]], OFF),
        Contact("turns", "foot2", "surface", OFF, "pose"),
    ]
    return Problem(walker(), contacts, axes)


@pytest.fixture(scope="module")
def solver() -> DelassusSolver:
    return DelassusSolver(mixed())


def test_contacts_are_at_their_own_places_until_they_are_placed(solver) -> None:
    fixed = DelassusSolver(fixed_there(solver.problem, {})).solve(Q).matrix
    assert relative_error(solver.problem, solver.solve(Q).matrix, fixed) < 1e-14
    bound = solver.bind()
    bound.inputs["q"][:] = Q
    assert np.array_equal(bound.solve().matrix, solver.solve(Q).matrix)


def test_what_is_not_named_is_at_its_own_place_in_every_call(solver) -> None:
    before = solver.solve(Q).matrix
    for layout in ("rows", "columns"):
        given = np.array([Q]) if layout == "rows" else Q[:, np.newaxis].copy()
        batch = solver.solve_batch(given, ["turns"], layout=layout).matrix
        assert np.allclose(batch.reshape(6, 6), before[4:, 4:], rtol=1e-12)
    moved = solver.solve(Q, contact_positions={"rolls": [1.0, 2.0, 3.0]}).matrix
    assert not np.allclose(moved[:3, :3], before[:3, :3])
    assert np.array_equal(moved[3:, 3:], before[3:, 3:])
    assert np.array_equal(solver.solve(Q, contact_positions={}).matrix, before)
    turned = solver.solve(Q, contact_orientations={"turns": TURN}).matrix
    assert np.array_equal(turned[:4, :4], before[:4, :4])
    x = {
        "q": Q,
        "contact_positions": np.array([OFF.translation, OFF.translation]),
        "contact_orientations": np.array([TURN]),
    }
    assert relative_error(solver.problem, turned, textbook.outputs(solver.problem, x)["G"]) < 1e-12


def test_active_contacts_take_placements_too(solver) -> None:
    given = {"contact_positions": {"rolls": (0.3, 0.1, 0.2), "turns": (0.0, 0.2, 0.1)}}
    full = solver.solve(Q, **given).matrix
    some = solver.solve(Q, active=["turns"], **given)
    assert np.array_equal(some.matrix, full[4:, 4:])


def test_placements_of_problems_without_moving_contacts_are_refused() -> None:
    contacts = [Contact("tip", "foot0", moving="position")]
    one = {"tip": [0.0, 0.0, 0.0, 1.0]}
    for problem, given, words in (
        (Problem(walker(), [Contact("tip", "foot0")]), {"contact_positions": one},
         "input 'contact_positions' is not used by this problem; inputs: q; no contact has "
         "moving='position' or 'pose'"),
        (Problem(walker(), contacts), {"contact_orientations": one},
         "inputs: q, contact_positions; no contact has moving='pose'"),
        (mixed("world"), {"contact_orientations": one}, "rows in world axes do not depend on it"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=re.escape(words)):
            DelassusSolver(problem).solve(Q, **given)


@pytest.mark.needs("pinocchio")
def test_a_problem_with_moving_contacts_can_be_solved_by_several_threads_and_back_ends() -> None:
    problem = mixed("world")
    orientation = {"base_orientation": TURN}
    positions = {"turns": np.array([0.4, 0.0, -0.2])}
    results = [
        DelassusSolver(problem, name).solve(Q, contact_positions=positions, **orientation)
        for name in ("pinocchio", "dense", "pv_osimr")
    ]
    for result in results[1:]:
        assert relative_error(problem, result.matrix, results[0].matrix) < TOLERANCE


def test_a_bound_solver_has_each_contact_s_part_of_the_inputs(solver) -> None:
    bound = solver.bind()
    assert list(bound.contact_positions) == ["rolls", "turns"]
    assert list(bound.contact_orientations) == ["turns"]
    assert np.array_equal(bound.contact_positions["rolls"], OFF.translation)
    assert np.allclose(bound.contact_orientations["turns"], OFF.quaternion())
    assert bound.inputs["contact_positions"].shape == (2, 3)
    bound.inputs["q"][:] = Q
    bound.contact_positions["rolls"][:] = 0.1, 0.2, 0.3
    bound.contact_orientations["turns"][:] = TURN
    expected = solver.solve(Q, contact_positions={"rolls": (0.1, 0.2, 0.3)},
                            contact_orientations={"turns": TURN})  # fmt: skip
    assert np.array_equal(bound.solve().matrix, expected.matrix)
    other = solver.bind()
    assert np.array_equal(other.contact_positions["rolls"], OFF.translation)


def test_what_is_assigned_to_a_contact_reaches_the_kernel(solver) -> None:
    bound = solver.bind()
    bound.inputs["q"] = Q
    for place in ((0.1, 0.2, 0.3), np.array([-0.2, 0.0, 0.4])):
        bound.contact_positions["rolls"] = place
        bound.contact_orientations["turns"] = TURN
        expected = solver.solve(Q, contact_positions={"rolls": place},
                                contact_orientations={"turns": TURN})  # fmt: skip
        assert np.array_equal(bound.solve().matrix, expected.matrix)
        assert np.array_equal(bound.inputs["contact_positions"][0], place)


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_a_batch_of_no_configurations(solver, layout: str) -> None:
    Q_none = np.zeros((0, 3) if layout == "rows" else (3, 0))
    m = solver.problem.contacts.rows
    shape = (0, m, m) if layout == "rows" else (m, m, 0)
    for given in ({}, {"contact_positions": {"rolls": (0.1, 0.2, 0.3)}}):
        assert solver.solve_batch(Q_none, layout=layout, **given).matrix.shape == shape


def test_refused_batches(solver) -> None:
    Q_all = np.tile(Q, (5, 1))
    for given, words in (
        ({"contact_positions": {"rolls": np.zeros((4, 3))}},
         r"\['rolls'\] has shape \(4, 3\), expected \(3,\) or \(5, 3\)"),
        ({"contact_orientations": {"turns": np.vstack([[TURN] * 3, [2 * TURN] * 2])}},
         r"configuration 3: contact_orientations\['turns'\] has norm 2"),
        ({"contact_orientations": {"turns": 2 * TURN}}, r"^contact_orientations\['turns'\] has n"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=words):
            solver.solve_batch(Q_all, **given)
    with pytest.raises(InputError, match=r"has shape \(5, 3\), expected \(3,\) or \(3, 5\)"):
        solver.solve_batch(
            Q_all.T, layout="columns", contact_positions={"rolls": np.zeros((5, 3))}
        )
    P = np.zeros((5, 3))
    P[2, 1] = np.nan
    status = solver.solve_batch(Q_all, contact_positions={"rolls": P}).status
    assert np.flatnonzero(status).tolist() == [2]


def test_exported_kernels_say_which_contact_moves_and_where_it_begins(tmp_path: Path) -> None:
    problem = mixed()
    exported = export(problem, algorithms.get("pv_osimr"), "robot")
    for line in (
        "ROBOT_IN_CONTACT_POSITIONS = 3,", "ROBOT_IN_CONTACT_POSITIONS_SIZE = 6,",
        "ROBOT_IN_CONTACT_ORIENTATIONS = 9,", "ROBOT_IN_SIZE = 13,",
        'static const char *const robot_moving[2] = {"rolls", "turns"};',
        "static const double robot_contact_positions[6] = {0.05, -0.1, 0.2, 0.05, -0.1, 0.2};",
        'static const char *const robot_turning[1] = {"turns"};',
    ):  # fmt: skip
        assert line in exported.header
    source = """
#include <stdio.h>
#include <string.h>
#include "robot.h"
int main(void) {
  double in[ROBOT_IN_SIZE] = {0.3, -1.1, 0.7}, out[ROBOT_OUT_SIZE], work[ROBOT_WORK_SIZE + 1];
  memcpy(in + ROBOT_IN_CONTACT_POSITIONS, robot_contact_positions,
         sizeof robot_contact_positions);
  memcpy(in + ROBOT_IN_CONTACT_ORIENTATIONS, robot_contact_orientations,
         sizeof robot_contact_orientations);
  for (int step = 0; step < 2; ++step) {
    if (robot_kernel(in, out, work) != ROBOT_OK) return 1;
    for (int i = 0; i < ROBOT_OUT_SIZE; ++i) printf("%.17g ", out[i]);
    printf("\\n");
    in[ROBOT_IN_CONTACT_POSITIONS + 1] = 0.75; /* y of "rolls" */
  }
  return strcmp(robot_moving[0], "rolls") || strcmp(robot_turning[0], "turns");
}
"""
    printed = np.split(numbers_of(built(tmp_path, source, robot=exported)), 2)
    solver = DelassusSolver(problem)
    assert np.array_equal(printed[0], solver.solve(Q).matrix.ravel())
    moved = solver.solve(Q, contact_positions={"rolls": (0.05, 0.75, 0.2)}).matrix
    assert np.array_equal(printed[1], moved.ravel())


def test_kernels_with_moving_contacts_are_kept_and_loaded(own_kernels: Path) -> None:
    problem = mixed()
    first = DelassusSolver(problem)
    files = sorted(own_kernels.iterdir())
    assert files
    again = DelassusSolver(mixed())
    assert sorted(own_kernels.iterdir()) == files
    given = {"contact_positions": {"rolls": (0.4, 0.0, 0.1)}}
    assert np.array_equal(again.solve(Q, **given).matrix, first.solve(Q, **given).matrix)
    assert np.array_equal(
        again.solve_batch([Q], **given).matrix, first.solve_batch([Q], **given).matrix
    )
