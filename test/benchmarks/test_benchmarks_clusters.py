"""The benchmarks of robots with loops: what is timed is right, and claims say what was found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import (
    cluster_cases,
    cluster_report,
    clusters,
    compilers,
    machine_speed,
    mechanisms,
    oracle,
    ours,
    scaling,
)
from benchmarks.cases import AbsentError
from benchmarks.cluster_cases import CLUSTER_CASES, Closed, Published
from benchmarks.compare import WrongResultError
from benchmarks.machine_speed import THERE, MachineSpeed
from benchmarks.timing import Timing
from delassus.algorithms.dense import definition
from delassus.compiler.ir.trace import trace
from delassus.model.clusters import clusters_of

BY_NAME = {case.name: case for case in CLUSTER_CASES}
SAME = MachineSpeed(THERE)
UNKNOWN = MachineSpeed(reason="no peer here")


def loaded(name: str) -> Closed:
    try:
        return BY_NAME[name].load()
    except AbsentError as error:
        pytest.skip(str(error))


def needs_compiler() -> None:
    try:
        compilers.find()
    except AbsentError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", BY_NAME)
def test_cases_have_the_rows_of_their_label_and_close_at_all_configurations(name):
    closed = loaded(name)
    assert BY_NAME[name].label.endswith(f"m={closed.problem.contacts.rows}")
    pool = closed.pool(5)
    assert pool.shape == (5, closed.problem.robot.nq)
    assert len({q.tobytes() for q in pool}) == 5
    again = closed.pool(5)
    assert np.array_equal(pool, again)


@pytest.mark.parametrize("name", BY_NAME)
def test_the_definition_is_what_the_papers_library_printed(name):
    closed = loaded(name)
    for q, expected in closed.states:
        G = definition(closed.problem, {"q": q})
        assert np.linalg.norm(G - expected) < 1e-10 * np.linalg.norm(expected)


def test_robots_with_more_contacts_agree_where_the_library_has_rows():
    closed = loaded("mit24")
    states = oracle.states("mit_humanoid_1ee", closed.problem.robot)
    for q, expected in states:
        G = definition(closed.problem, {"q": q})[:6, :6]
        assert np.linalg.norm(G - expected) < 1e-10 * np.linalg.norm(expected)


@pytest.mark.parametrize("loose", [False, True])
def test_gears_of_round_rotors_leave_an_ordinary_tree(loose):
    problem = mechanisms.geared_chain(4, contacts=2, loose=loose)
    assert problem.contacts.rows == 12
    assert [len(cluster.joints) for cluster in clusters_of(problem.robot)] == [2] * 4
    assert (ours.traced("kjr").supports(problem) is None) == (not loose)


def test_belts_are_clusters_of_four():
    problem = mechanisms.belt_chain(6)
    found = [(len(c.joints), len(c.independent)) for c in clusters_of(problem.robot)]
    assert found == [(4, 2)] * 3


@pytest.mark.parametrize("algorithm", clusters.ALGORITHMS)
@pytest.mark.parametrize("name", ["fourbar", "planarleg", "tello6"])
def test_loops_that_depend_on_q_are_counted_with_unknown_constants(name, algorithm):
    problem = loaded(name).problem
    counts = [
        trace(problem, ours.traced(algorithm), generic=generic).operations.total
        for generic in (True, False)
    ]
    assert 0 < counts[1] < 1.2 * counts[0]
    assert counts[0] < 1.2 * counts[1]


def test_a_wrong_matrix_ends_the_run(monkeypatch):
    needs_compiler()
    case = replace(BY_NAME["chain15"], load=lambda: Closed(mechanisms.geared_chain(3)))
    monkeypatch.setattr(clusters, "definition", lambda problem, inputs: np.eye(6))
    with pytest.raises(WrongResultError, match="geared chain 3: efpa differs from"):
        clusters.measured(case, seconds=1e-3)


def test_a_wrong_state_of_the_library_ends_the_run():
    needs_compiler()
    problem = mechanisms.geared_chain(3)
    case = replace(
        BY_NAME["chain15"],
        load=lambda: Closed(problem, [(np.zeros(problem.robot.nq), np.eye(6))]),
    )
    with pytest.raises(WrongResultError, match="differs from the paper's library"):
        clusters.measured(case, seconds=1e-3)


def result_of(**changes) -> clusters.ClusterResult:
    case = replace(
        BY_NAME["chain12"], published=Published(40e-6, 20e-6), prototype=100, beats_projection=True
    )
    result = clusters.ClusterResult(case, joints=24, freedoms=12)
    result.counts = {"efpa": 100, "pv_osimr": 90, "ltl": 92, "auto": 90}
    result.generic = dict(result.counts)
    times = {"efpa": 1.3, "pv_osimr": 1.1, "ltl": 1.0, "auto": 1.05}
    result.warm = {name: Timing(t * 0.9e-6, t * 1e-6) for name, t in times.items()}
    result.batch = dict(result.warm)
    for name, value in changes.items():
        getattr(result, name).update(value)
    return result


def outcome(result: clusters.ClusterResult, speed: MachineSpeed = SAME) -> dict[str, bool | None]:
    run = clusters.Run(False, speed, [result])
    return {claim.what: claim.holds for claim in cluster_report.claims(run)}


def test_claims_hold_at_their_limits_and_not_beyond():
    at = outcome(result_of())
    assert len(at) == 6 and all(at.values())
    more = outcome(result_of(counts={"pv_osimr": 91}))
    assert [what for what, holds in more.items() if not holds] == ["operations, pv_osimr / efpa"]
    assert not outcome(result_of(counts={"auto": 91}))["operations, auto / best other"]
    equal = outcome(result_of(counts={"ltl": 90}))
    assert not equal["operations, pv_osimr / ltl"]
    prototype = result_of(counts={"efpa": 200, "pv_osimr": 101})
    assert not outcome(prototype)["operations, pv_osimr / its prototype"]
    slow = outcome(result_of(warm={"efpa": Timing(1e-6, 1.4e-6)}))
    assert not slow["the library's C-EFPA / efpa"]
    late = outcome(result_of(warm={"ltl": Timing(1e-6, 1.06e-6)}))
    assert not late["the library's C-EFPA / the best of ours"]


@pytest.mark.parametrize(("slower", "holds"), [(0.99, False), (1.0, True), (2.0, True)])
def test_the_papers_times_are_taken_to_this_machine(slower, holds):
    speed = MachineSpeed({name: slower * time for name, time in THERE.items()})
    made = outcome(result_of(warm={"efpa": Timing(1e-6, 1.3333e-6)}), speed)
    assert made["the library's C-EFPA / efpa"] is holds


def test_without_the_peer_no_ratio_to_the_paper_is_claimed():
    made = outcome(result_of(), UNKNOWN)
    assert {what: holds for what, holds in made.items() if holds is None} == {
        "the library's C-EFPA / efpa": None, "the library's C-EFPA / the best of ours": None
    }  # fmt: skip


def test_the_machines_speed_is_the_least_there_is_evidence_of():
    names = list(THERE)
    one = MachineSpeed({n: (2.0 if n == names[0] else 1.2) * THERE[n] for n in names})
    other = MachineSpeed({n: (1.1 if n == names[1] else 3.0) * THERE[n] for n in names})
    least = one.least(other)
    assert least.here[names[1]] == pytest.approx(1.1 * THERE[names[1]])
    assert least.here[names[0]] == pytest.approx(2.0 * THERE[names[0]])
    assert (one.factor, least.factor) == (pytest.approx(1.2), pytest.approx(1.1))
    assert one.least(UNKNOWN) is one and UNKNOWN.least(one) is one
    assert UNKNOWN.least(UNKNOWN).factor is None


def test_a_machine_without_clang_is_not_compared(monkeypatch):
    gcc = compilers.Compiler("gcc", "g++", "g++ 12", is_clang=False)
    monkeypatch.setattr(compilers, "find", lambda: gcc)
    speed = machine_speed.measured(1e-3)
    assert speed.factor is None and "clang" in speed.reason


def test_growth_is_claimed_of_what_is_linear():
    curves = {
        name: scaling.Curve({x: float(x) for x in clusters.CHAIN.sizes}, {6: 1e-7})
        for name in clusters.ALGORITHMS
    }
    run = clusters.Run(False, SAME, growths=[scaling.Growth(clusters.CHAIN, curves)])
    made = cluster_report.claims(run)
    assert {claim.where.rpartition(", ")[2] for claim in made} == set(cluster_report.GROWING)
    assert {claim.what for claim in made} == {"exponent of the count"}
    assert {claim.holds for claim in made} == {True}
    for curve in curves.values():
        curve.counts[200] *= 2.0
    made = cluster_report.claims(run)
    assert {claim.holds for claim in made} == {False}


def test_the_counts_grow_with_clusters_as_they_should():
    series = replace(clusters.CHAIN, sizes=(12, 25, 50), algorithms=("pv_osimr", "ltl"))
    grown = {
        name: {x: float(ours.operations(series.make(x), name).total) for x in series.sizes}
        for name in series.algorithms
    }
    assert scaling.exponent(grown["pv_osimr"]) == pytest.approx(1.1, abs=0.1)
    assert scaling.exponent(grown["ltl"]) > 1.8


@pytest.mark.parametrize("series", [clusters.CHAIN, clusters.ROWS], ids=lambda s: s.name)
def test_problems_grow_by_their_size(series):
    small, large = (series.make(x) for x in series.sizes[:2])
    if series is clusters.CHAIN:
        assert (small.robot.nq, large.robot.nq) == (2 * series.sizes[0], 2 * series.sizes[1])
    else:
        assert [small.contacts.rows, large.contacts.rows] == list(series.sizes[:2])


def test_the_librarys_projection_is_faster_than_its_c_efpa():
    """On every robot; the paper prints the opposite, see docs/papers/verdicts.md."""
    for case in cluster_cases.CLUSTER_CASES:
        if case.published is not None:
            assert 20e-6 < case.published.ltl < case.published.efpa < 150e-6
