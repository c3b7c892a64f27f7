"""Bound solvers: status instead of errors, contact switches, and no allocation."""

from __future__ import annotations

import copy
import enum
import gc
import inspect
import pickle
import sys
import time
import tracemalloc
from importlib import import_module

import numpy as np
import pytest
from small import massless_problem, problem

from delassus import BoundSolver, DelassusSolver
from delassus.algorithms import Status
from delassus.compiler.runtime import kernel as kernel_module
from delassus.errors import InputError
from delassus.solver import bound as solver_module

Q = np.array([0.3, -1.1, 0.7])


@pytest.fixture(scope="module")
def solver() -> DelassusSolver:
    return DelassusSolver(problem())


def test_singular_mass_matrix_has_its_status() -> None:
    singular = DelassusSolver(massless_problem()).bind()
    singular.inputs["q"][:] = 0.3, 0.0
    assert singular.solve().status is Status.NOT_POSITIVE_DEFINITE
    assert np.isnan(singular.solve().matrix).all()


def test_the_built_in_function_documents_itself(solver) -> None:
    solve = solver.bind().solve
    assert inspect.isbuiltin(solve)
    assert inspect.getdoc(solve) == inspect.getdoc(BoundSolver.solve)
    assert str(inspect.signature(solve)) == "(q=None, /)"


def test_joint_positions_as_an_argument(solver) -> None:
    bound = solver.bind()
    expected = {sign: solver.solve(sign * Q).matrix for sign in (1, -1)}
    assert np.array_equal(bound.solve(Q).matrix, expected[1])
    assert bound.inputs["q"].tolist() == Q.tolist()
    bound.activate(["c2", "c0"])
    rows = [0, 1, 2, 9]
    assert np.array_equal(bound.solve(-Q).matrix, expected[-1][np.ix_(rows, rows)])
    assert np.array_equal(bound.solve().matrix, bound.solve(-Q).matrix)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_bound_solvers_are_not_copied(solver, copied) -> None:
    bound = solver.bind()
    with pytest.raises(InputError, match="copy or pickle its DelassusSolver and bind that"):
        copied(bound)
    assert bound.solve(Q).status is Status.OK


def test_solutions_can_be_compared(solver) -> None:
    one, other = solver.solve([0.3, -0.2, 0.9]), solver.solve([0.3, -0.2, 0.9])
    assert one == one and one != other
    batch = solver.solve_batch([[0.3, -0.2, 0.9]])
    assert batch == batch and batch != solver.solve_batch([[0.3, -0.2, 0.9]])


def test_a_copy_of_a_solution_stays() -> None:
    bound = DelassusSolver(problem(outputs={"J", "MinvJT"})).bind()
    kept = bound.solve(Q).copy()
    values = [part.copy() for part in (kept.matrix, kept.J, kept.MinvJT)]
    bound.activate(["c1"])
    bound.solve(-Q)
    for part, value in zip((kept.matrix, kept.J, kept.MinvJT), values, strict=True):
        assert np.array_equal(part, value)
    assert kept.contacts == ("c0", "c1", "c2") and kept.row_offsets == (0, 3, 9, 10)
    assert (kept.status, kept.algorithm) == (Status.OK, "pv_osimr")
    assert 0.0 < kept.compute_time < 1.0


def test_a_compute_time_belongs_to_its_call(solver) -> None:
    bound = solver.bind()
    for q in (np.array(Q), list(Q), np.full(len(Q), np.nan), np.array(Q)):
        before = time.perf_counter()
        bound.solution.compute_time = 0.0
        taken = bound.solve(q).compute_time
        assert 0.0 < taken < time.perf_counter() - before
    copied = bound.solution.copy()
    bound.solution.compute_time = 7.0
    assert copied.compute_time == taken


def test_the_method_and_the_built_in_function_do_the_same(solver) -> None:
    """Python finds the function first; the method is what is documented."""
    bound = solver.bind()
    assert type(vars(bound)["solve"]).__name__ == "builtin_function_or_method"
    for active in (("c0", "c1", "c2"), ("c2", "c0"), ()):
        bound.activate(active)
        for q in (np.array(Q), list(Q), np.full(len(Q), np.inf), None, np.array(Q), None):
            fast = bound.solve(q).copy()
            slow = BoundSolver.solve(bound, q)
            assert slow is bound.solution
            assert (fast.status, fast.contacts) == (slow.status, slow.contacts)
            assert np.array_equal(fast.matrix, slow.matrix, equal_nan=True)
    with pytest.raises(TypeError, match="takes from 1 to 2 positional arguments but 3 were given"):
        bound.solve(Q, Q)


def test_outputs_follow_joint_positions_given_in_either_way() -> None:
    bound = DelassusSolver(problem(outputs={"J", "MinvJT"})).bind()
    bound.activate(["c1"])
    expected = [part.copy() for part in (bound.solve(Q).J, bound.solve(Q).MinvJT)]
    bound.solve(-Q)
    bound.solve(Q.tolist())
    assert np.array_equal(bound.solution.J, expected[0])
    assert np.array_equal(bound.solution.MinvJT, expected[1])


def test_a_bound_solver_outlives_its_solver() -> None:
    bound = DelassusSolver(problem()).bind()
    gc.collect()
    bound.inputs["q"][:] = Q
    expected = DelassusSolver(problem()).solve(Q).matrix
    assert np.array_equal(bound.solve().matrix, expected)


def test_what_is_assigned_to_an_input_is_copied_into_the_kernel_s_array(solver) -> None:
    bound = solver.bind()
    array, mine = bound.inputs["q"], Q.copy()
    bound.inputs["q"] = mine
    mine[:] = 9.0
    assert bound.inputs["q"] is array
    assert np.array_equal(bound.solve().matrix, solver.solve(Q).matrix)
    bound.inputs["q"] += 0.1
    assert np.array_equal(bound.solve().matrix, solver.solve(Q + 0.1).matrix)
    bound.inputs["q"] = [0.3, np.nan, 0.7]
    assert bound.solve().status is Status.NOT_FINITE


@pytest.mark.parametrize("name", ["inputs", "contact_positions", "contact_orientations"])
def test_arrays_of_a_bound_solver_cannot_be_swapped(solver, name) -> None:
    with pytest.raises(AttributeError, match=name):
        setattr(solver.bind(), name, {"q": Q})


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
    values = Q.copy()

    def cycle() -> None:
        for active in sets:
            bound.activate(active)
            for value in (0.3, -0.7):
                q[0] = value
                bound.solve()
                bound.solve(values)
        q[0] = np.nan
        bound.solve()
        q[0] = 0.1

    cycle()
    made = Counted.made
    tracemalloc.start()
    try:
        # Python 3.10 gives a function its caches at the 1024th call.
        for _ in range(1100):
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
    # Not per call, of which there are 100 000: the last result holds other objects than the one
    # before the measurement, and the interpreter keeps a few for reuse.
    assert growth < 5000


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
        for value, more in ((0.3, set()), (np.nan, {"perf_counter", "run", "fill"})):
            allowed = {"solve", *more}
            bound.activate(active)
            bound.inputs["q"][0] = value
            bound.solve()
            called.clear()
            # Others may have put functions beside the collector, which would be called here.
            gc.disable()
            sys.setprofile(profile)
            try:
                bound.solve()
            finally:
                sys.setprofile(None)
                gc.enable()
            assert called - {"setprofile", enum.__file__} <= allowed


def test_what_was_not_computed_yet_is_no_number(solver) -> None:
    bound = solver.bind()

    def is_not_computed() -> bool:
        not_finite = bound.solution.status is Status.NOT_FINITE
        return not_finite and bool(np.isnan(bound.solution.matrix).all())

    assert is_not_computed()
    # Positions that were never written are none.
    assert bound.solve().status is Status.NOT_FINITE
    first = bound.solve(Q).matrix.copy()
    for names in (["c1"], ["c2", "c0"]):
        bound.activate(names)
        assert bound.solution.contacts == tuple(sorted(names))
        assert is_not_computed()
        assert np.isfinite(bound.solve().matrix).all() and bound.solution.status is Status.OK
    bound.activate(solver.problem.contacts.names)
    assert is_not_computed()
    assert np.array_equal(bound.solve().matrix, first)
    assert bound.solution.status is Status.OK


def test_unknown_input_of_a_bound_solver_named(solver) -> None:
    bound = solver.bind()
    words = r"^inputs: unknown input 'Q'; did you mean 'q'\? inputs: q$"
    with pytest.raises(InputError, match=words) as caught:
        bound.inputs["Q"][:] = 0.0
    assert isinstance(caught.value, KeyError)
    with pytest.raises(InputError, match=words):
        bound.inputs["Q"] = Q
    assert list(bound.inputs) == ["q"]
    assert "Q" not in bound.inputs and bound.inputs.get("Q") is None


@pytest.mark.parametrize("algorithm", ["pv_osimr", "pinocchio"])
def test_contacts_in_the_call_are_refused_with_what_to_call(algorithm: str) -> None:
    if algorithm == "pinocchio":
        import_module("pinocchio")
    bound = DelassusSolver(problem(), algorithm).bind()
    with pytest.raises(InputError, match=r"BoundSolver.solve takes q alone, not active: choose"):
        bound.solve(Q, active=["LF"])
