"""The data set of contact problems: deterministic, solved, read back equal; fuzzed ones hold."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import friction
import numpy as np
import pytest

from benchmarks.contact_problems import fuzz, writers
from benchmarks.contact_problems.generator import FAMILIES, ContactProblem, problems
from benchmarks.contact_problems.measure import Outcome, steps_of_sequences
from benchmarks.contact_problems.page import places
from benchmarks.contact_problems.peers import PEERS, pyramid
from benchmarks.contact_problems.residual import point_residual, residual
from benchmarks.contact_problems.solutions import LAWS, Solved, solutions
from benchmarks.pages import filled
from delassus.model.spatial import Array


@pytest.fixture(name="solved", scope="module")
def make_solved() -> list[Solved]:
    return solutions(problems(20))


def residual_at_rest(p: ContactProblem, f: Array, law: str) -> float:
    kinds, v = ["point"] * len(p.mu), np.zeros(len(p.a0))
    return friction.moving_residual(p.G, p.a0, kinds, p.mu, f, v, law)


def test_problems_are_deterministic(solved: list[Solved]) -> None:
    again = list(problems(20))
    assert len(again) == len(solved) == 20
    assert {p.family for p in again} == set(FAMILIES)
    for item, p in zip(solved, again, strict=True):
        assert item.problem.G.tobytes() == p.G.tobytes()
        assert item.problem.a0.tobytes() == p.a0.tobytes()
        assert item.problem.contacts == p.contacts and item.problem.tick == p.tick
    assert next(problems(20, seed=1)).a0.tobytes() != again[0].a0.tobytes()


def test_families_are_what_they_are_called(solved: list[Solved]) -> None:
    for item in solved:
        p = item.problem
        missing = len(p.a0) - np.linalg.matrix_rank(p.G)
        redundant = {"doubled": len(p.a0) // 2, "soles": 12, "swaying": 12, "soles and palms": 18}
        assert missing == {"stretched arm": 1, **redundant}.get(p.family, 0), p.family


def test_solutions_have_small_residuals(solved: list[Solved]) -> None:
    for item in solved:
        for law in LAWS:
            found, p = item.solutions[law], item.problem
            assert found.status == "SOLVED" and found.residual <= 1e-10
            plain = residual_at_rest(p, found.forces, law)
            assert plain == pytest.approx(found.residual, rel=1e-3, abs=1e-13)
            np.testing.assert_allclose(found.accelerations, p.G @ found.forces + p.a0, atol=1e-9)


def test_the_residual_sees_wrong_forces(solved: list[Solved]) -> None:
    for item in solved:
        p, f = item.problem, item.solutions["coulomb"].forces
        for wrong in (0.0 * f, 1.01 * f + 1.0, np.where(np.arange(len(f)) % 3 == 2, -1.0, 0.0)):
            r = point_residual(p.G, p.a0, p.mu, wrong, "coulomb")
            assert r == pytest.approx(residual_at_rest(p, wrong, "coulomb"))
            assert r > 1e-6 or np.allclose(f, wrong)
    G, a0 = np.eye(2), np.array([1.0, -1.0])
    for kinds, right in ((["bilateral"] * 2, [-1.0, 1.0]), (["unilateral"] * 2, [0.0, 1.0])):
        assert residual(G, a0, kinds, np.zeros(2), np.array(right), "coulomb") == 0.0
        assert residual(G, a0, kinds, np.zeros(2), np.array([0.5, 1.0]), "convex") > 0.1


def test_parquet_reads_back_equal(solved: list[Solved], tmp_path: Path) -> None:
    writers.write_parquet(tmp_path / "a.parquet", solved)
    for before, after in zip(solved, writers.read_parquet(tmp_path / "a.parquet"), strict=True):
        for name, value in vars(before.problem).items():
            assert np.array_equal(getattr(after.problem, name), value), name
        for law in LAWS:
            for name, value in vars(before.solutions[law]).items():
                assert np.array_equal(getattr(after.solutions[law], name), value), name


def test_fclib_reads_back_equal(solved: list[Solved], tmp_path: Path) -> None:
    import h5py
    for number, item in enumerate(solved):
        path, p = tmp_path / f"{number}.hdf5", item.problem
        writers.write_fclib(path, item)
        found, known = writers.read_fclib(path), item.solutions["coulomb"]
        expected = (p.G, p.a0, p.mu, known.accelerations, known.forces)
        for value, other in zip(found, expected, strict=True):
            assert np.array_equal(value, other)
        with h5py.File(path) as file:
            assert file["fclib_local/W/nz"][0] == -1
            assert file["fclib_local/W/nzmax"][0] == file["fclib_local/W/p"][-1] == p.G.size
            # Rows are normal first.
            assert file["fclib_local/vectors/q"][0] == p.a0[2]


def test_peers_solve_a_problem_that_holds(solved: list[Solved]) -> None:
    """Where nothing slides, the laws and pyramids agree."""
    items = [i for i in solved if i.problem.family in ("walking", "closed loops")]
    ran = Counter()
    for peer in PEERS:
        if peer.package == "siconos" or not peer.is_installed:
            continue
        for item in items:
            p = item.problem
            time, forces, _ = peer.prepare(p)()
            assert time > 0.0
            exact = item.solutions["convex"].forces
            np.testing.assert_allclose(forces, exact, atol=1e-3 * np.abs(exact).max())
            ran[peer.package] += 1
    assert ran["delassus_ros"] == 4 * len(items)
    A = pyramid(np.array([0.5]), 4)
    assert (A @ [0.5 * np.cos(np.pi / 4), 0.0, 1.0] <= 1e-12).all()
    assert (A @ [0.5, 0.0, 1.0]).max() > 0.1


def test_warm_sequences_take_no_more_steps() -> None:
    sequences = [p for p in problems(100) if p.sequence >= 0]
    cold, warm = (steps_of_sequences(sequences, start) for start in (False, True))
    assert set(cold) == {"walking", "closed loops", "swaying"}
    for family, (steps, share) in cold.items():
        assert share == warm[family][1] == 1.0
        assert warm[family][0].sum() < steps.sum()


def test_fuzzed_problems_are_never_wrong() -> None:
    found = fuzz.fuzz(0, 3000)
    assert not found.wrong and not found.not_finite and not found.over_budget
    assert found.worst <= fuzz.WRONG
    assert {twist for twist, _ in found.statuses} == set(fuzz.TWISTS)
    odd = found.statuses
    assert odd["infeasible", "SOLVED"] == 0 and odd["infeasible", "INFEASIBLE"] > 100
    assert [status for twist, status in odd if twist == "not finite"] == ["NOT_FINITE"]
    moving = ("STRIKING", "JAMMED")
    solvable = sum(n for (twist, s), n in odd.items() if twist == "range" and s not in moving)
    assert all(odd["range", status] > 10 for status in moving)
    assert odd["range", "SOLVED"] >= 0.99 * solvable


@pytest.mark.parametrize("number", [327_433, 416_745])
def test_immovable_contacts_that_leave_have_no_force(number: int) -> None:
    found = fuzz.fuzz(number, 1)
    assert found.statuses["tiny rows", "SOLVED"] == 1 and not found.wrong


def test_the_page_has_its_tables(solved: list[Solved]) -> None:
    outcomes = {}
    for peer in PEERS:
        if peer.package == "delassus_ros":
            count = len(solved)
            families = [item.problem.family for item in solved]
            residuals = [item.solutions[peer.law].residual for item in solved]
            outcomes[peer.law, peer.name] = Outcome(
                peer, families, residuals, [3] * count, [1e-6] * count
            )
    found = places(solved, outcomes, fuzz.fuzz(0, 100))
    text = filled("benchmarks/contact_problems", found)
    assert text.count("| ours, 1e-10 | 100 % | 100 % |") == 2
    for family in FAMILIES:
        assert text.count(f"\n| {family} |") >= 3
    assert "Not installed, and left out: clarabel, daqp, pinocchio, proxsuite, siconos." in text
