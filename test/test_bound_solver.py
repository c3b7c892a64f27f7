"""Bound solvers: status instead of errors, contact switches, and no allocation."""

from __future__ import annotations

import enum
import gc
import sys
import tracemalloc

import numpy as np
import pytest
from small import massless_problem, problem

from delassus_ros import DelassusSolver
from delassus_ros import bound_solver as solver_module
from delassus_ros.algorithms import Status
from delassus_ros.compiler import kernel as kernel_module
from delassus_ros.errors import InputError

Q = np.array([0.3, -1.1, 0.7])


@pytest.fixture(scope="module")
def solver() -> DelassusSolver:
    return DelassusSolver(problem(), cache=False)


def test_a_bound_solver_reports_by_status_and_recovers(solver) -> None:
    bound = solver.bind()
    bound.inputs["q"][:] = Q
    expected = bound.solve().matrix.copy()
    for some in (("c0", "c1", "c2"), ("c0", "c2")):
        bound.activate(some)
        bound.inputs["q"][1] = np.nan
        solution = bound.solve()
        assert solution.status is Status.NOT_FINITE
        assert np.isnan(solution.matrix).all()
        assert solution.matrix.shape[0] == solution.row_offsets[-1] > 0
        bound.inputs["q"][1] = Q[1]
        assert bound.solve().status is Status.OK
        assert np.array_equal(bound.solve().block("c0", "c2"), expected[:3, 9:])
    singular = DelassusSolver(massless_problem(), cache=False).bind()
    singular.inputs["q"][:] = 0.3, 0.0
    assert singular.solve().status is Status.NOT_POSITIVE_DEFINITE
    assert np.isnan(singular.solve().matrix).all()


def test_a_refused_active_set_leaves_the_present_one(solver) -> None:
    bound = solver.bind()
    bound.inputs["q"][:] = Q
    bound.activate(["c0", "c2"])
    before = bound.solve().matrix.copy()
    for refused in (["c0", "nose"], ["c1", "c1"]):
        with pytest.raises(InputError):
            bound.activate(refused)
        assert bound.solve().contacts == ("c0", "c2")
        assert np.array_equal(bound.solve().matrix, before)


def test_a_bound_solver_outlives_its_solver() -> None:
    bound = DelassusSolver(problem(), cache=False).bind()
    gc.collect()
    bound.inputs["q"][:] = Q
    expected = DelassusSolver(problem(), cache=False).solve(Q).matrix
    assert np.array_equal(bound.solve().matrix, expected)


def test_inputs_of_a_bound_solver_cannot_be_swapped(solver) -> None:
    with pytest.raises(TypeError):
        solver.bind().inputs["q"] = Q


class Counted(np.ndarray):
    """Arrays that count how many arrays are made from them."""

    made = 0

    def __array_finalize__(self, source) -> None:
        Counted.made += 1


def test_a_bound_solve_makes_no_array_and_memory_stays(solver, monkeypatch) -> None:
    plain = kernel_module.aligned_zeros
    monkeypatch.setattr(kernel_module, "aligned_zeros", lambda n: plain(n).view(Counted))
    bound = solver.bind()
    assert Counted.made > 0
    q = bound.inputs["q"]
    sets = [("c0", "c1", "c2"), ("c2", "c0"), (), ("c1",)]

    def cycle() -> None:
        for active in sets:
            bound.activate(active)
            for value in (0.3, -0.7):
                q[0] = value
                bound.solve()
        q[0] = np.nan
        bound.solve()
        q[0] = 0.1

    cycle()
    made = Counted.made
    tracemalloc.start()
    try:
        for _ in range(100):
            cycle()
        numpy_data = [tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)]
        arrays = len(tracemalloc.take_snapshot().filter_traces(numpy_data).traces)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100_000 // 9 + 1):
            cycle()
        gc.collect()
        growth = tracemalloc.get_traced_memory()[0] - before
        arrays_after = len(tracemalloc.take_snapshot().filter_traces(numpy_data).traces)
    finally:
        tracemalloc.stop()
    assert Counted.made == made
    assert arrays_after == arrays
    # Not per call: the last result holds other objects than the one before the measurement.
    assert growth < 500


def test_a_bound_solve_calls_nothing_that_could_make_an_array(solver) -> None:
    """Not even one that is thrown away again: the only numpy call fills with NaN on failure."""
    bound = solver.bind()
    bound.inputs["q"][:] = Q
    called: set[str] = set()

    def profile(frame, event, arg) -> None:
        if event == "c_call":
            called.add(arg.__name__)
        elif event == "call" and frame.f_code.co_filename != solver_module.__file__:
            called.add(frame.f_code.co_filename)

    for active in (("c0", "c1", "c2"), ("c0", "c2")):
        for value, allowed in ((0.3, {"perf_counter"}), (np.nan, {"perf_counter", "fill"})):
            bound.activate(active)
            bound.inputs["q"][0] = value
            bound.solve()
            called.clear()
            sys.setprofile(profile)
            try:
                bound.solve()
            finally:
                sys.setprofile(None)
            assert called - {"setprofile", enum.__file__} <= allowed
