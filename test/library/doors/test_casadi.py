"""The door to CasADi: expressions and kernels have the solver's matrices, and exact gradients."""

from __future__ import annotations

import casadi
import numpy as np
import pytest
from door_cases import MOVING, PLAIN, close, gradient, outputs, sample, weights
from oracles import paper_library

from delassus import AlgorithmError, InputError, Problem
from delassus.doors.casadi import casadi_function, casadi_kernel


@pytest.mark.parametrize("problem", [PLAIN, MOVING], ids=["G", "h and a0 in world axes"])
@pytest.mark.parametrize(
    "make",
    [casadi_function, lambda p: casadi_function(p, kind="MX"), casadi_kernel],
    ids=["SX", "MX", "kernel"],
)
def test_values_and_gradients(make, problem: Problem) -> None:
    function, inputs = make(problem), sample(problem)
    values = [inputs[port.name].ravel() for port in problem.inputs]
    found = function.call([casadi.DM(value) for value in values])
    for port, value in zip(problem.outputs, found, strict=True):
        expected = outputs(problem, inputs)[port.name]
        assert close(np.array(value).reshape(port.shape), expected, 1e-9)
    symbols = [casadi.MX.sym(port.name, port.size) for port in problem.inputs]
    results = dict(zip((p.name for p in problem.outputs), function.call(symbols), strict=True))
    total = sum(
        casadi.dot(results[name], casadi.DM(bar.reshape(results[name].shape)))
        for name, bar in weights(problem).items()
    )
    by_input = casadi.Function("g", symbols, [casadi.gradient(total, x) for x in symbols])
    expected = gradient(problem, inputs)
    for port, value in zip(problem.inputs, by_input.call(values), strict=True):
        assert close(np.array(value).reshape(port.shape), expected[port.name])


@pytest.mark.parametrize("algorithm", ["efpa", "ltl", "kjr", "pv_osim", "dense"])
def test_any_traced_algorithm(algorithm: str) -> None:
    q = sample(PLAIN)["q"]
    assert close(casadi_function(PLAIN, algorithm)(q), outputs(PLAIN, {"q": q})["G"], 1e-9)


def test_a_loop() -> None:
    state = next(iter(paper_library.states("urdf_four_bar")))
    problem = paper_library.problem_of("urdf_four_bar", state)
    q = paper_library.positions("urdf_four_bar", state)
    assert close(casadi_function(problem)(q), outputs(problem, {"q": q})["G"], 1e-9)


def test_second_derivatives_of_expressions_and_jacobians_of_kernels() -> None:
    q = casadi.SX.sym("q", 2)
    hessian, _ = casadi.hessian(casadi.trace(casadi_function(PLAIN)(q)), q)
    assert hessian.shape == (2, 2) and not hessian.is_zero()
    at = sample(PLAIN)["q"]
    exact, kernel = (make(PLAIN).jacobian()(at, 0) for make in (casadi_function, casadi_kernel))
    assert close(exact, kernel, 1e-9)


@pytest.mark.needs("pinocchio")
def test_back_ends_have_no_expressions() -> None:
    with pytest.raises(InputError, match="name 'while' is a keyword or reserved name of C"):
        casadi_kernel(PLAIN, name="while")
    with pytest.raises(AlgorithmError, match="numeric back end"):
        casadi_function(PLAIN, "pinocchio")
