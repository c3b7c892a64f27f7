"""The benchmarks: every routine that is timed computes the right matrix. No time is asserted."""

from __future__ import annotations

import itertools
import re
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from benchmarks import (
    casadi_peer,
    cases,
    compilers,
    contenders,
    measure,
    ours,
    pinocchio_peer,
    scaling,
    targets,
    timing,
)
from benchmarks.cases import AbsentError, Case
from benchmarks.compare import TOLERANCE, WrongResultError
from benchmarks.pinocchio_peer import PinocchioProblem
from benchmarks.timing import Timing
from delassus import Problem
from delassus.compiler.runtime.batch_kernel import Layout
from delassus.testing import SIMPLE, random_problem
from delassus.testing.conformance import relative_error, textbook


@pytest.fixture(scope="module", params=["quadruped", 14, 28])
def problem(request: pytest.FixtureRequest) -> Problem:
    """Return a robot with joints about x, y and z, or a random tree with points and surfaces."""
    if request.param == "quadruped":
        return cases.quadruped()
    return random_problem(request.param, SIMPLE)


def needs_compiler() -> None:
    try:
        compilers.find()
    except AbsentError as error:
        pytest.skip(str(error))


def error_of(problem: Problem, i: int, matrix: np.ndarray) -> float:
    expected = textbook(problem, {"q": cases.pool(problem)[i]})
    return relative_error(problem, matrix, expected)


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("auto", "pv_osimr") else pytest.param(name, marks=pytest.mark.slow)
        for name in ours.traced_names()
    ],
)
def test_kernel_called_by_address_computes_the_matrix(problem, name):
    built = ours.build(problem, name, cases.pool(problem))
    for i in (0, 5):
        assert error_of(problem, i, built.routine.matrix(i)) < TOLERANCE
    assert built.kernel.operations == ours.operations(problem, name)


def test_calls_from_python_compute_the_matrix_of_their_argument(problem):
    inputs = cases.pool(problem)
    built = ours.build(problem, ours.CHOSEN, inputs)
    calls = ours.python_calls(problem, built, ours.CHOSEN)
    assert set(calls) == {"BoundSolver.solve", "kernel.bind().run", "DelassusSolver.solve"}
    for call in calls.values():
        for i in (7, 2):
            assert error_of(problem, i, call(inputs[i])) < TOLERANCE


@pytest.mark.parametrize("layout", measure.LAYOUTS)
def test_batches_compute_the_matrix_of_each_configuration(problem, layout: Layout):
    needs_compiler()
    inputs = cases.pool(problem, 37)  # a last block that is not full
    batch = ours.Batch(problem, ours.CHOSEN)
    pairs = [batch.resident(inputs, layout)]
    pairs += [batch.from_numpy(inputs, layout, threads) for threads in (1, 2)]
    for matrices, sample in pairs:
        assert matrices.shape == (37, problem.contacts.rows, problem.contacts.rows)
        assert (sample(2) > 0).all()
        for i in (0, 20, 36):
            assert error_of(problem, i, matrices[i]) < TOLERANCE


def test_samplers_in_c_run_through_all_inputs_and_leave_the_last_matrix(problem):
    needs_compiler()
    inputs = cases.pool(problem)
    routine = ours.build(problem, "pv_osimr", inputs).routine
    m = routine.rows
    for sample, last in (
        (timing.warm(routine), cases.POOL - 1),
        (timing.cold(routine, 1 << 16), 4),  # one call per sample
    ):
        routine.out.fill(np.nan)
        times = sample(5)
        assert times.shape == (5,)
        assert (times > 0).all() and (times < 1.0).all()
        assert error_of(problem, last, routine.out.reshape(m, m)) < TOLERANCE
    out = np.zeros((cases.POOL, m, m))
    timing.each(routine, inputs, out)(1)
    assert max(error_of(problem, i, out[i]) for i in range(cases.POOL)) < TOLERANCE


def test_measuring_keeps_the_least_and_the_middle_of_all_samples(monkeypatch):
    calls = []
    # How many samples there are follows from how long they take: 10 us between two looks.
    monkeypatch.setattr(timing.time, "perf_counter", itertools.count(0.0, 1e-5).__next__)

    def sample(n: int) -> np.ndarray:
        calls.append(n)
        return np.linspace(1.0, 3.0, n) if n > 1 else np.array([2.0])

    found = timing.measure({"one": sample, "other": lambda n: 2 * sample(n)}, seconds=1e-3)
    assert found["one"].minimum == pytest.approx(1.0)
    assert found["one"].median == pytest.approx(2.0)
    assert found["one"].ratio(found["other"]) == Timing(pytest.approx(2.0), pytest.approx(2.0))


@pytest.mark.needs("casadi")
def test_casadi_computes_the_matrix(problem):
    needs_compiler()
    library = casadi_peer.compilation(problem).library()
    routine = casadi_peer.routine(library, cases.pool(problem), problem.contacts.rows)
    for i in (0, 5):
        assert error_of(problem, i, routine.matrix(i)) < TOLERANCE


@pytest.mark.needs("pinocchio")
def test_pinocchio_from_python_computes_the_matrix_of_its_argument(problem):
    peer = PinocchioProblem(problem)
    inputs = peer.configurations(cases.pool(problem))
    for route in pinocchio_peer.routes(peer).values():
        for i in (7, 2):
            assert error_of(problem, i, route.read(route.call(inputs[i]))) < TOLERANCE


@pytest.mark.needs("pinocchio")
def test_pinocchio_s_model_is_depth_first_about_its_own_axes():
    model = PinocchioProblem(random_problem(28, SIMPLE)).model
    for i in range(2, model.njoints):
        ancestors = {i - 1}
        parent = i - 1
        while parent:
            parent = model.parents[parent]
            ancestors.add(parent)
        assert model.parents[i] in ancestors
    kinds = {joint.shortname() for joint in list(model.joints)[1:]}
    assert not any("Unaligned" in kind for kind in kinds)


@pytest.mark.needs("pinocchio")
def test_contacts_that_pinocchio_does_not_have_are_named():
    with pytest.raises(AbsentError, match="no peer for selections"):
        PinocchioProblem(random_problem(3, SIMPLE))


@pytest.mark.needs("pinocchio")
@pytest.mark.slow
def test_pinocchio_in_cpp_computes_the_matrix(problem):
    needs_compiler()
    try:
        library = pinocchio_peer.compilation().library()
    except AbsentError as error:
        if "compilation failed" in str(error):
            raise
        pytest.skip(str(error))
    peer = PinocchioProblem(problem)
    inputs = peer.configurations(cases.pool(problem))
    found = pinocchio_peer.routines(library, peer, problem.contacts.rows, inputs)
    assert set(found) == set(pinocchio_peer.ROUTES)
    # In turns: they share what they compute in.
    for i in (0, 5, 2):
        for name, routine in found.items():
            assert error_of(problem, i, routine.matrix(i)) < TOLERANCE, name


def test_parts_of_the_cpp_peer_have_their_functions():
    """`make bench ARGS=--quick` compiles the first part alone."""
    source = Path(pinocchio_peer.__file__).with_name("pinocchio_peer.cpp").read_text("utf-8")
    found = {}
    for part, text in re.findall(r"^#ifdef (PEER_\w+)\n(.*?)^#endif", source, re.DOTALL | re.M):
        for name in re.findall(r"^EXPORTED int32_t (\w+)", text, re.MULTILINE):
            found[name] = part
    (first,) = pinocchio_peer.EFPA
    by_part = {
        first: [pinocchio_peer.ROUTES["computeDelassusMatrix"]],
        "PEER_ROUTES": list(pinocchio_peer.ROUTES.values())[1:],
        pinocchio_peer.OUTPUTS_PART[0]: pinocchio_peer.ALL.values(),
        pinocchio_peer.DYNAMICS_PART[0]: pinocchio_peer.DYNAMICS.values(),
    }
    assert found == {name: part for part, names in by_part.items() for name in names}
    assert pinocchio_peer.ALL_ROUTES == (first, "PEER_ROUTES")


def test_waiting_for_a_compiler_is_told():
    class Process:
        left = 2

        def communicate(self, timeout):
            assert timeout == compilers.WAIT_S <= 10.0
            self.left -= 1
            if self.left >= 0:
                raise subprocess.TimeoutExpired("c++", timeout)
            return b"done", None

    told = []
    assert compilers.waited(Process(), time.perf_counter() - 60.0, told.append) == b"done"
    assert len(told) == 2
    assert all(re.fullmatch(r"still compiling, \d{2,} s so far", text) for text in told)


def test_a_wrong_matrix_ends_the_run(monkeypatch):
    case = Case("quadruped", "quadruped", "quadruped", cases.quadruped)
    monkeypatch.setattr(contenders, "textbook", lambda problem, inputs: np.eye(12))
    with pytest.raises(WrongResultError, match="quadruped: .* differs from the defin"):
        contenders.Contenders(case, cases.quadruped(), ("auto",), 10**6).finish(None)


def test_too_large_a_kernel_is_left_out_with_its_count():
    case = Case("quadruped", "quadruped", "quadruped", cases.quadruped)
    made = contenders.Contenders(case, cases.quadruped(), ("auto", "pv_osimr"), 10)
    assert set(made.routines) == {"auto"}
    assert f"pv_osimr: not compiled, {made.operations['pv_osimr']} operations" in made.notes


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: case.name)
def test_cases_have_the_rows_that_their_label_says(case):
    try:
        problem = case.load()
    except AbsentError as error:
        pytest.skip(str(error))
    assert case.label.endswith(f"m={problem.contacts.rows}")
    assert (case.family == "arm") == (problem.robot.base == "fixed")


def test_exponent_is_the_slope_of_the_larger_half():
    assert scaling.exponent({x: 3.0 * x**2 for x in (1, 2, 4, 8)}) == pytest.approx(2.0)
    bent = {1: 100.0, 2: 100.0, 4: 4.0, 8: 8.0, 16: 16.0}
    assert scaling.exponent(bent) == pytest.approx(1.0)
    assert scaling.exponent({1: 1.0, 2: 2.0}) is None


@pytest.mark.parametrize("series", scaling.SERIES, ids=lambda series: series.name)
def test_problems_grow_by_their_size(series):
    small, large = (series.make(x) for x in series.sizes[:2])
    step = series.sizes[1] - series.sizes[0]
    if series.name == "contacts":
        assert large.contacts.rows - small.contacts.rows == step
        assert large.robot.nq == small.robot.nq
    else:
        assert large.robot.nq - small.robot.nq == step
        assert large.contacts.rows == small.contacts.rows


def result_of(warm: dict[str, Timing]) -> measure.Result:
    result = measure.Result(cases.CASES[2], joints=12, rows=12)
    assert result.case.family == "quadruped"
    result.warm = warm
    return result


def test_claims_take_the_best_route_and_need_both_ratios():
    warm = {
        ours.CHOSEN: Timing(1.0, 2.0),
        "C++ one": Timing(30.0, 41.0),
        "C++ other": Timing(25.0, 60.0),
        "CasADi": Timing(1.5, 2.5),
    }
    claim = targets.case_claims(result_of(warm), is_clang=True)[0]
    assert claim.found == "25.0 / 20.5"
    assert claim.holds
    warm["C++ one"] = Timing(30.0, 39.0)
    assert targets.case_claims(result_of(warm), is_clang=True)[0].holds is False
    # With another compiler than clang nothing is claimed.
    assert targets.case_claims(result_of(warm), is_clang=False)[0].holds is None


def test_growth_is_claimed_only_up_to_the_largest_size():
    series = scaling.SERIES[0]
    linear = {x: 2.0 * x for x in series.sizes}
    shorter = {x: 1.0 * x for x in series.sizes[:-1]}
    curves = {
        "auto": scaling.Curve(linear, linear),
        "pv_osimr": scaling.Curve({x: x**1.1 for x in series.sizes}, shorter),
        scaling.PEER: scaling.Curve(minima={x: 3.0 * x for x in series.sizes}),
    }
    claims = targets.growth_claims(scaling.Growth(series, curves))
    assert [claim.holds for claim in claims] == [True, True, True, False, False, False]
    assert claims[2].found == "1.5 at 500"
    assert claims[4].found == f"1.00, ends at {series.sizes[-2]}"
