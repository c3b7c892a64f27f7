"""Batches of contact problems: the bits of single solves, and a status per problem."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest
import robots
from friction import random_problem
from hanging import HANG_S

from delassus import Contact, DelassusSolver, InputError, Problem, Robot
from delassus.contact_forces import (
    BatchContactForces,
    ContactForces,
    ForceSolver,
    ForceStatus,
    solve_contacts,
    solve_contacts_batch,
)
from delassus.contact_forces.machine_code import machine_code


def _same_bits(batch: BatchContactForces, singles: list[ContactForces]) -> None:
    for name in ("forces", "accelerations", "residual", "cone_forces", "steps"):
        single = np.array([getattr(found, name) for found in singles])
        assert getattr(batch, name).tobytes() == single.tobytes(), name
    assert [ForceStatus(status) for status in batch.status] == [f.status for f in singles]
    assert batch.law.tolist() == [found.law for found in singles]


@pytest.mark.parametrize("law", ["auto", "coulomb", "convex"])
def test_a_batch_has_the_bits_of_single_solves(law: Any) -> None:
    problems = [random_problem(seed, rank=6 if seed % 5 == 4 else None) for seed in range(40)]
    G, a0 = (np.array(parts) for parts in zip(*problems, strict=True))
    G[3, 0, 1] += 1e-7  # G need not be symmetric
    mu = [0.3, 0.6, 0.9, 0.0]
    batch = solve_contacts_batch(G, a0, friction=mu, law=law)
    _same_bits(batch, [solve_contacts(*p, friction=mu, law=law) for p in zip(G, a0, strict=True)])
    starts = batch.cone_forces[::-1]
    solver = ForceSolver(["point"] * 4, mu, law=law)
    singles = [solver.solve(*each) for each in zip(G, a0, starts, strict=True)]
    _same_bits(solver.solve_batch(G, a0, starts), singles)


def test_a_status_per_problem() -> None:
    G, a0 = np.array([np.eye(2)] * 4), np.array([[1.0, -1.0]] * 4)
    G[1] = [[1.0, 1.0], [1.0, 1.0]]  # two rows that hold the same, at different accelerations
    a0[2, 0] = np.nan
    G[3, 1, 1] = np.inf
    found = solve_contacts_batch(G, a0, friction=0.0, kinds="bilateral")
    solved, infeasible, bad = ForceStatus.SOLVED, ForceStatus.INFEASIBLE, ForceStatus.NOT_FINITE
    assert found.status.tolist() == [solved, infeasible, bad, bad]
    np.testing.assert_allclose(found.forces[0], [-1.0, 1.0], atol=1e-9)
    assert not found.forces[2:].any() and (found.residual[2:] == -1.0).all()


def test_surfaces_and_no_problems() -> None:
    J = np.random.default_rng(5).normal(size=(3, 12, 20))
    G, a0 = J @ J.transpose(0, 2, 1), np.random.default_rng(6).normal(size=(3, 12))
    options: dict[str, Any] = {"friction": 0.7, "kinds": "surface", "dimensions": (0.2, 0.1)}
    batch = solve_contacts_batch(G, a0, **options)
    _same_bits(batch, [solve_contacts(*p, **options) for p in zip(G, a0, strict=True)])
    assert batch.cone_forces.shape == (3, 24)
    none = solve_contacts_batch(np.zeros((0, 12, 12)), np.zeros((0, 12)), **options)
    assert none.forces.shape == (0, 12) and none.steps.shape == (0, 3)


def test_python_runs_while_a_batch_is_solved() -> None:
    """Four threads solve at once, with their own solvers, and get the same bits."""
    # Functions of this kind of ctypes run without the interpreter's lock, PYFUNCTYPE's with it.
    kind: Any = ctypes.CFUNCTYPE(None)
    for call in machine_code().calls.values():
        assert type(call)._flags_ == kind._flags_  # type: ignore[attr-defined]
    G, a0 = (np.array(parts) for parts in zip(*map(random_problem, range(50)), strict=True))
    expected = solve_contacts_batch(G, a0, friction=0.5)
    found: list[BatchContactForces] = []
    threads = [
        threading.Thread(target=lambda: found.append(solve_contacts_batch(G, a0, friction=0.5)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert [batch.forces.tobytes() for batch in found] == [expected.forces.tobytes()] * 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((np.zeros((2, 3, 3)), np.zeros(3)), r"G has shape \(2, 3, 3\) and a0 \(3,\); expected"),
        ((np.zeros((2, 3, 3)), np.zeros((3, 3))), r"expected \(N, 3, 3\) and \(N, 3\), the rows"),
        ((np.zeros((2, 3, 3)), np.zeros((2, 3)), np.zeros((2, 4))), r"start has shape \(2, 4\)"),
        ((np.zeros((1, 3, 3)), "text"), "a0 is 'text'; expected numbers"),
    ],
)
def test_batches_that_are_refused(arguments: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        ForceSolver(["point"], 0.5).solve_batch(*arguments)


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_forces_of_a_batch_solution(layout: Any) -> None:
    robot = Robot.from_urdf(robots.quadruped())
    feet = [Contact(leg, f"{leg}_FOOT") for leg in robots.LEGS]
    problem = Problem(robot, feet, axes="world", outputs=["a0"])
    random, n, count = np.random.default_rng(1), len(problem.velocities), 6
    inputs = {
        "q": random.uniform(-1, 1, (count, robot.nq)), "torques": random.normal(size=(count, n)),
        "base_orientation": np.tile([0.0, 0, 0, 1], (count, 1)), "rates": np.zeros((count, n)),
        "gravity": np.tile([0, 0, -9.81], (count, 1)),
    }  # fmt: skip
    inputs["q"][2, 0] = np.nan
    solver, active = DelassusSolver(problem), ["RF", "LH"]
    given = dict(inputs) if layout == "rows" else {name: x.T.copy() for name, x in inputs.items()}
    batch = solver.solve_batch(given.pop("q"), active=active, layout=layout, **given)
    found = batch.contact_forces({"LH": 0.4, "RF": 0.8})
    assert found.contacts == ("RF", "LH")
    matrix, a0 = batch.matrix, batch.output("a0")
    if layout == "columns":
        matrix, a0 = np.moveaxis(matrix, -1, 0), a0.T
    mu = [0.8, 0.4]
    singles = [solve_contacts(*each, friction=mu) for each in zip(matrix, a0, strict=True)]
    _same_bits(found, singles)
    assert [bool(s == ForceStatus.NOT_FINITE) for s in found.status] == [i == 2 for i in range(6)]
    for i in (0, 5):
        single = solver.solve(**{name: x[i] for name, x in inputs.items()}, active=active)
        one = single.contact_forces({"LH": 0.4, "RF": 0.8})
        np.testing.assert_allclose(found.forces[i], one.forces, rtol=1e-9, atol=1e-9)


def test_a_batch_solution_without_a0_says_how_to_ask() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    batch = DelassusSolver(Problem(robot, [Contact("LF", "LF_FOOT")])).solve_batch(
        np.zeros((2, robot.nq))
    )
    with pytest.raises(InputError, match="this needs the output 'a0'"):
        batch.contact_forces(0.5)
