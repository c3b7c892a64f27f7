"""The cluster paper's page: its methods agree, its numbers are today's, its verdicts hold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.linalg import norm
from on_floats import solver_on_floats
from paper_tables import method_rows

from benchmarks import pages
from benchmarks.cases import BESIDE
from benchmarks.papers import (
    chains,
    cluster_claims,
    cluster_figures,
    clusters,
    leg,
)
from benchmarks.papers.arrays import at_all
from benchmarks.papers.clusters import verdict
from benchmarks.papers.kept import Kept
from benchmarks.papers.methods import APPROXIMATIONS, contenders, in_process, random_states
from benchmarks.papers.page import published
from delassus import Problem, Robot, algorithms
from delassus.algorithms.dense import definition
from delassus.errors import RobotError
from delassus.model.clusters import clusters_of
from delassus.rbda.trees import tree_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "papers" / "clusters.md"
needs_robots = pytest.mark.skipif(
    not BESIDE.is_dir(), reason="no ../shared/robots beside the repository"
)


@pytest.mark.parametrize("kind", chains.KINDS)
def test_chains_are_those_of_the_paper(kind: str) -> None:
    for seed in range(5):
        robot = chains.random_chain(kind, 6, seed).robot
        sizes = [len(cluster.joints) for cluster in clusters_of(robot)]
        assert sizes == ([2] * 6 if kind == "gears" else [4] * 3)
        turned = [len(coupling.ratios) - 1 for coupling in robot.couplings]
        assert turned == ([1] * 6 if kind == "gears" else [1, 2] * 3)
        ratios = {-ratio for coupling in robot.couplings for _, ratio in coupling.ratios[1:]}
        assert ratios <= {float(a * b) for a in range(1, 6) for b in range(1, 6)}
        assert all(robot.bodies[joint].inertia.mass < 1e-4 for joint in _rotors(robot))
    first, again, other = (chains.random_chain(kind, 6, seed).robot for seed in (0, 0, 1))
    assert first.to_bytes() == again.to_bytes() != other.to_bytes()


def _rotors(robot: Robot) -> Iterator[int]:
    for cluster in clusters_of(robot):
        yield from cluster.dependent


@pytest.mark.parametrize("kind", chains.KINDS)
def test_methods_on_arrays_are_those_on_numbers(kind: str) -> None:
    """At all states at once as at each, exact methods the same and approximate ones not."""
    problem = chains.random_chain(kind, 4, 0)
    states = random_states(
        problem, np.array([s["q"] for s in chains.States.random(4, 1, 3).of(problem, 0)])
    )
    for quantity in ("inverse", "forward", "matrix"):
        exact = None
        for name, method in contenders(problem, quantity):
            found = at_all(method.evaluate, states)
            for state, row in zip(states, found, strict=True):
                np.testing.assert_array_equal(row, np.array(method.evaluate(state), float))
            exact = found if exact is None else exact
            apart = norm(found - exact, axis=1) / norm(exact, axis=1)
            assert (apart.min() > 1e-6) if name in APPROXIMATIONS else (apart.max() < 1e-12), name
        if quantity == "matrix":
            for state, row in zip(states, exact, strict=True):
                G = definition(problem, {"q": np.array(state["q"])})
                assert norm(row - G.ravel()) < 1e-10 * norm(G)


def test_the_approximate_matrix_is_that_of_reflected_inertia() -> None:
    """Two ways to it: EFPA of the independent tree, and the registered approximation."""
    problem = chains.random_chain("belts", 4, 1)
    (state,) = chains.States.random(4, 1, 1).of(problem, 0)
    (method,) = (m for name, m in contenders(problem, "matrix") if name == "approximate")
    G = algorithms.get("reflected_inertia").evaluate(problem, {"q": state["q"]})["G"]
    np.testing.assert_allclose(method.evaluate(state), np.ravel(G), rtol=1e-10)


class Counted:
    """A function that counts its calls and is ended, once, at one of them."""

    def __init__(self, function: Callable[..., Any], ended: int) -> None:
        self.function, self.ended, self.calls = function, ended, 0

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        if self.calls == self.ended:
            raise KeyboardInterrupt
        return self.function(*arguments)


def test_an_interrupted_run_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its results are those of a run in one piece."""
    size = chains.Size((2,), 1, 2, 0)
    whole = chains.found(Kept(tmp_path / "whole.json"), size)
    path = tmp_path / "parts.json"
    counted = Counted(chains.counted, 2)
    monkeypatch.setattr(chains, "counted", counted)
    with pytest.raises(KeyboardInterrupt):
        chains.found(Kept(path), size)
    before = counted.calls
    assert chains.found(Kept(path), size) == whole
    assert counted.calls - before == 1


def test_many_results_are_computed_by_processes_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "build" / "kept.json"
    calls = {f"{k}": (k, 1) for k in range(-20, 0)}
    kept = Kept(path)
    assert kept.of("-3", lambda: 7.0) == 7.0
    found = Kept(path).all_of(calls, max)
    assert found == {key: (7.0 if key == "-3" else 1) for key in calls}
    with pytest.raises(TypeError):
        Kept(path).all_of({**calls, **{f"wrong {k}": (None, 1) for k in range(9)}}, max)
    assert Kept(path).of("-20", lambda: 0) == 1
    Kept(path).end()
    assert not path.exists()


@pytest.mark.parametrize("kind", chains.KINDS)
def test_both_implementations_of_the_models_agree(kind: str) -> None:
    found = chains.counted(kind, 6, 2, 3)
    assert max(found["apart"].values()) < 1e-11
    fewest = {
        quantity: min(counts, key=lambda name: counts[name][0])
        for quantity, counts in found["operations"].items()
    }
    assert fewest == {"forward": "approximate", "matrix": "projection"}
    errors = chains.errors(kind, 6, 2, 3)
    assert all((1e-6 < e < 1e-2) if kind == "gears" else (1e-3 < e < 3.0) for e in errors.values())


@needs_robots
def test_the_toe_moves_as_the_contact_at_the_toe() -> None:
    one = leg.Leg.load()
    problem = Problem(one.robot, [leg.TOE], axes="world", outputs={"J"})
    y, rates = (np.random.default_rng(k).uniform(-0.5, 0.5, (1, 5)) for k in range(2))
    step = 1e-6
    speed = (one.toe(y + step * rates) - one.toe(y - step * rates)) / (2.0 * step)
    J = solver_on_floats(problem).solve((y @ one.ratios.T)[0]).J
    np.testing.assert_allclose(J @ rates[0], speed[0], atol=1e-7)


@needs_robots
def test_the_leg_follows_its_path_under_exact_torques_alone() -> None:
    """The error of torques that are constant during a step falls with the step."""
    one = leg.Leg.load()
    t, y, rates, accelerations = leg.trajectory(0.75, 0.1)
    apart = {}
    for name in leg.METHODS:
        for every in (1, 4):
            torques = one.torques(name, y[::every], rates[::every], accelerations[::every])
            moved = one.rolled_out(y[:1], rates[:1], torques[:, None], every * leg.STEP)
            apart[name, every] = norm(one.toe(moved[-1]) - one.toe(y[-1:]))
    assert 2.0 < apart["c_rnea", 4] / apart["c_rnea", 1] < 6.0
    assert apart["c_rnea", 1] < 1e-4 < 1e-3 < apart["approximate", 1] < apart["unconstrained", 1]
    assert len(t) == 201


def test_a_verdict_is_by_operations() -> None:
    """Times of processes that disagree change no verdict, and stand beside it."""
    assert verdict(30.0, 40.0) == "reproduces"
    assert verdict(30.0, 50.0) == "does not"
    counts = {"c_rnea": 100, "projected": 100}
    times = [{"c_rnea": 1.0, "projected": ratio} for ratio in (1.866, 0.9)]
    found = clusters.Found(clusters.TABLES[0], {"chain12": counts}, {"chain12": times})
    holds, words = cluster_claims._on_all(found, "projected")
    assert holds is False
    assert words.endswith("times: on 0 of 1, processes disagree on 1")
    assert clusters.between(found.slower("chain12", "projected")) == "−10.0 % to +86.6 %"
    assert clusters.agreement([found]).startswith("Of 1 relative times 1 differ in sign")
    agreeing = replace(found, times={"chain12": [times[0], {"c_rnea": 2.0, "projected": 3.7}]})
    assert clusters.agreement([agreeing]).startswith("Of 1 relative times 0 differ")
    costs = {
        "efpa": {2: 3.0, 4: 3.0, 6: 5.0, 8: 6.0},
        "projection": {2: 2.0, 4: 4.0, 6: 4.0, 8: 9.0},
    }
    assert cluster_claims.crossing(costs) == 8
    assert cluster_claims.crossing({"efpa": {2: 3.0}, "projection": {2: 3.0}}) is None


def test_the_verdicts_of_the_page_are_those_of_its_numbers() -> None:
    rows = method_rows(PAGE)
    printed = published("clusters")
    labels = list(clusters.ROBOTS.values())
    assert {robot for _, robot, _ in rows} == set(labels)
    for (table, robot, method), row in rows.items():
        reference = {"II": "c_rnea", "III": "c_aba", "IV": "efpa"}[table]
        told = printed[table].get(method)
        if told is not None:
            assert row.printed == told[labels.index(robot)]
        if method == reference:
            continue
        base = rows[table, robot, reference].operations
        assert row.relative == round(100.0 * (row.operations / base - 1.0), 1)
        assert row.verdict == ("" if row.printed is None else verdict(row.printed, row.relative))


def test_every_claim_of_the_page_has_a_verdict() -> None:
    (claims,) = pages.tables(PAGE, "claims")
    assert len(claims.rows) == 23
    for claim in claims.rows:
        assert len(claim) == 5, claim
        assert claim[3].split(" on ")[0] in ("reproduces", "depends", "**does not**"), claim


def test_the_reading_of_the_page_holds() -> None:
    rows = method_rows(PAGE)
    relative = {key: row.relative for key, row in rows.items()}
    for robot in clusters.ROBOTS.values():
        chain = robot.endswith("chain 12")
        projected = relative["II", robot, "projected"]
        assert (projected == 0.0) if chain else (projected > 5.0)
        assert relative["III", robot, "lagrange"] > relative["III", robot, "projection"] > 10.0
        cheapest = min(
            (row.operations, method)
            for (table, name, method), row in rows.items()
            if (table, name) == ("IV", robot) and method != "approximate"
        )
        assert cheapest[1] == "pv_osimr"
        assert (relative["IV", robot, "projection"] < 0.0) is (robot != "JVRC-1")
        assert relative["IV", robot, "dense_inverse"] > 0.0
        assert (relative["IV", robot, "dense_cholesky"] < 0.0) is chain
    assert relative["II", "Mini Cheetah", "approximate"] == 0.0
    for table in ("II", "III"):
        assert abs(relative[table, "MIT Humanoid", "approximate"]) < 2.0


def test_figures_name_their_axes_and_differ_in_grey() -> None:
    names = chains.QUANTITIES["forward"]
    costs = {name: {n: float(n * (k + 1)) for n in (2, 4)} for k, name in enumerate(names)}
    told = {"operations": costs, "times": costs}
    table = {kind: {"forward": told, "matrix": told} for kind in chains.KINDS}
    drawn = cluster_figures.chains(table)
    for axes in drawn.axes:
        assert axes.get_xlabel() == "links" and axes.get_ylabel() in ("operations", "µs")
        styles = [(line.get_linestyle(), line.get_marker()) for line in axes.lines]
        assert len(set(styles)) == len(names)
    found = {
        "t": [0.0, 1.0], "torques": {j: dict.fromkeys(leg.METHODS, [0.0, 1.0]) for j in
                                     ("ankle", "knee")},
        "drift": {str(f): dict.fromkeys(leg.METHODS, [0.0, 0.1]) for f in leg.FREQUENCIES},
    }  # fmt: skip
    labels = [axes.get_ylabel() for axes in cluster_figures.leg_errors(found).axes]
    assert labels == ["joint torque [N·m]"] * 2 + ["distance from the intended path [m]"]


@needs_robots
def test_the_counts_of_the_page_are_todays() -> None:
    rows = method_rows(PAGE)
    problem = clusters.loaded("cheetah6").problem
    for table in clusters.TABLES:
        for name, method in contenders(problem, table.quantity):
            assert rows[table.number, "Mini Cheetah", name].operations == method.count()


@needs_robots
def test_no_cluster_is_left_of_mini_cheetah() -> None:
    assert not tree_of(clusters.loaded("cheetah6").problem).clusters


@needs_robots
def test_approximations_take_the_links_of_tello() -> None:
    problem, near = clusters.loaded("tello6").problem, clusters.near("tello6")
    with pytest.raises(RobotError, match="carries other bodies"):
        dict(contenders(problem, "inverse", ["approximate"]))
    dependent = [near.robot.joints[i].name for i in _rotors(near.robot)]
    assert len(dependent) == len(list(_rotors(problem.robot)))
    assert all("rotor" in name for name in dependent)
    assert clusters.near("mit6") is clusters.loaded("mit6").problem
    q = clusters.loaded("tello6").pool()[0]
    for each in (problem, near):
        G = definition(each, {"q": q})
        np.testing.assert_allclose(G, definition(problem, {"q": q}), rtol=1e-9, atol=1e-9)


def test_times_come_from_a_process_of_their_own() -> None:
    assert in_process(os.getpid) != os.getpid()
