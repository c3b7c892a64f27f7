"""The solver: results, active contacts, failures, threads, and copies."""

from __future__ import annotations

import copy
import pickle
import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hanging import HANG_S
from linkages import closed_four_bar, four_bar
from oracles.textbook import body_jacobians, body_poses, mass_matrix, random_q
from small import BOX, contacts, massless_problem, mixed_robot, problem, walker

from delassus import Contact, DelassusSolver, Problem, Robot, Transform, algorithms
from delassus.algorithms import NumericAlgorithm, Status
from delassus.errors import InputError, NumericalError
from delassus.model import WORLD, Body, Frame, Joint, JointKind

Q = np.array([0.3, -1.1, 0.7])
TURN = np.array([0.1, -0.5, 0.3, 0.8]) / np.linalg.norm([0.1, -0.5, 0.3, 0.8])


@pytest.fixture(scope="module")
def solver() -> DelassusSolver:
    return DelassusSolver(problem())


def definition(this: Problem, q: np.ndarray, base: Transform | None = None) -> np.ndarray:
    """Return J M⁻¹ Jᵀ in numpy."""
    jacobians = body_jacobians(this.robot, q)
    poses = body_poses(this.robot, q, base)
    rows = []
    for contact in this.contacts:
        frame = this.robot.frames[contact.frame]
        place = frame.placement @ contact.placement
        twist = place.motion_to_child() @ jacobians[frame.body]
        twist = np.vstack([twist[3:], twist[:3]])
        if this.axes == "world":
            turn = (poses[frame.body] @ place).rotation
            twist = np.kron(np.eye(2), turn) @ twist
        rows.append(contact.selection @ twist)
    J = np.vstack(rows)
    return J @ np.linalg.solve(mass_matrix(this.robot, q), J.T)


def close(G: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.linalg.norm(G - expected) <= 1e-12 * np.linalg.norm(expected))


def test_solution_of_all_contacts(solver) -> None:
    solution = solver.solve(Q)
    assert close(solution.matrix, definition(solver.problem, Q))
    assert solution.status is Status.OK
    assert solution.contacts == ("c0", "c1", "c2")
    assert solution.row_offsets == (0, 3, 9, 10)
    assert solution.algorithm == solver.algorithm == "pv_osimr"
    assert 0.0 < solution.compute_time < 1.0
    assert solver.operations is not None and solver.operations.total > 100


@pytest.mark.parametrize(
    ("active", "rows"),
    [
        (("c0",), [0, 1, 2]),
        (("c2", "c0"), [0, 1, 2, 9]),
        (("c2",), [9]),
        (("c1", "c2"), [3, 4, 5, 6, 7, 8, 9]),
        (("c2", "c1", "c0"), list(range(10))),
        ((), []),
    ],
)
def test_active_contacts_in_any_order_are_blocks_in_the_order_of_the_set(solver, active, rows):
    full = solver.solve(Q).matrix
    solution = solver.solve(Q, active=active)
    assert np.array_equal(solution.matrix, full[np.ix_(rows, rows)])
    assert solution.matrix.shape == (len(rows), len(rows))
    assert solution.contacts == tuple(sorted(active))
    sizes = {"c0": 3, "c1": 6, "c2": 1}
    ends = np.cumsum([sizes[name] for name in sorted(active)]).tolist()
    assert solution.row_offsets == (0, *ends)


def test_large_numbers_are_finite(solver) -> None:
    large = np.array([1e6, -9e5, 3e5])
    assert np.isfinite(solver.solve(large).matrix).all()


def test_selections_of_any_accepted_size_scale_the_matrix(solver) -> None:
    sizes = np.array([1e9, 1.0, 1e-9])
    rows = [contacts(((size * np.eye(6)[:2]),) * 3)[i] for i, size in enumerate(sizes)]
    G = DelassusSolver(Problem(solver.problem.robot, rows)).solve(Q).matrix
    scales = np.repeat(sizes, 2)
    plain = contacts((np.eye(6)[:2],) * 3)
    expected = DelassusSolver(Problem(solver.problem.robot, plain)).solve(Q).matrix
    np.testing.assert_allclose(G / np.outer(scales, scales), expected, rtol=1e-9)


def test_arrays_of_names_will_do(solver) -> None:
    expected = solver.solve(Q).matrix
    for names in (["c0", "c1", "c2"], ["c2"]):
        solution = solver.solve(Q, active=np.array(names))
        assert solution.contacts == tuple(names)
    assert np.array_equal(solution.matrix, expected[-1:, -1:])


def test_any_iterable_of_names_will_do(solver) -> None:
    for active in (["c1"], {"c1"}, iter(["c1"]), {"c1": True}):
        assert solver.solve(Q, active=active).contacts == ("c1",)


def test_blocks_by_name(solver) -> None:
    full = solver.solve(Q)
    assert np.array_equal(full.block("c0", "c1"), full.matrix[0:3, 3:9])
    assert np.array_equal(full.block("c2", "c2"), full.matrix[9:, 9:])
    some = solver.solve(Q, active=["c2", "c0"])
    assert np.array_equal(some.block("c2", "c0"), full.block("c2", "c0"))
    with pytest.raises(InputError, match="contact 'c1' is not active; active contacts: c0, c2"):
        some.block("c0", "c1")
    with pytest.raises(InputError, match="active contacts: none"):
        solver.solve(Q, active=()).block("c0", "c0")


def test_solutions_are_independent(solver) -> None:
    first = solver.solve(Q)
    copy = first.matrix.copy()
    second = solver.solve(-Q, active=["c0"])
    assert np.array_equal(first.matrix, copy)
    second.matrix[:] = 7.0
    assert np.array_equal(solver.solve(Q).matrix, copy)


def test_world_axes_need_the_base_orientation() -> None:
    this = problem(axes="world")
    solver = DelassusSolver(this)
    q = TURN
    x, y, z, w = q
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    solution = solver.solve(Q, base_orientation=TURN)
    assert close(solution.matrix, definition(this, Q, Transform(rotation)))
    # Both signs of a quaternion are the same orientation; a little off the unit norm is rounding.
    assert close(solver.solve(Q, base_orientation=-TURN * (1 + 1e-5)).matrix, solution.matrix)


def test_world_axes_of_a_fixed_base_need_no_orientation() -> None:
    this = Problem(walker(floating=False), contacts(), axes="world")
    solver = DelassusSolver(this)
    q = np.array([0.2, *Q])
    assert close(solver.solve(q).matrix, definition(this, q))
    with pytest.raises(InputError, match="'base_orientation' is not used"):
        solver.solve(q, base_orientation=TURN)


def test_joints_with_several_entries() -> None:
    this = Problem(mixed_robot(), [Contact("c", "f3"), Contact("d", "f1")])
    q = random_q(this.robot, np.random.default_rng(1))
    assert close(DelassusSolver(this).solve(q).matrix, definition(this, q))


def test_a_single_body_has_no_joint_at_all() -> None:
    robot = Robot("box", [Joint("root", JointKind.ROOT, WORLD)], [Body("box", BOX)],
                  [Frame("corner", 0, Transform.from_xyz_rpy((0.1, 0.2, 0.3)))])  # fmt: skip
    this = Problem(robot, [Contact("corner", "corner", "surface")])
    for name in ("dense", "pv_osimr"):
        solver = DelassusSolver(this, name)
        assert close(solver.solve([]).matrix, definition(this, np.zeros(0)))
        assert close(solver.solve(robot.neutral()).matrix, definition(this, np.zeros(0)))


def test_a_singular_mass_matrix_is_an_error_that_names_the_joint() -> None:
    for name, words in (("pv_osimr", "joint 'yaw' is 0.0, expected > 0"), ("dense", "pivot 1")):
        solver = DelassusSolver(massless_problem(), name)
        assert close(solver.solve([0.3, 0.5]).matrix, definition(massless_problem(), [0.3, 0.5]))
        with pytest.raises(NumericalError, match=words):
            solver.solve([0.3, 0.0])
        assert solver.solve([0.3, 0.5]).status is Status.OK


# Threads.


def test_solve_runs_in_the_bound_solver_that_is_used(solver) -> None:
    own = solver.bind()
    solver.use(own)
    solver.solve(Q)
    assert np.array_equal(own.inputs["q"], Q), "which it computed with"


def test_threads_do_not_disturb_each_other(solver) -> None:
    rng = np.random.default_rng(2)
    names = solver.problem.contacts.names
    cases = [(rng.uniform(-3, 3, 3), names[: k % 4]) for k in range(64)]
    expected = [solver.solve(q, active).matrix for q, active in cases]
    barrier = threading.Barrier(4)

    def work(offset: int) -> bool:
        barrier.wait(HANG_S)
        order = [(k + 16 * offset) % 64 for k in range(64)] * 5
        return all(np.array_equal(solver.solve(*cases[k]).matrix, expected[k]) for k in order)

    before = sys.getswitchinterval()
    # As often as possible: a call takes far less than the usual 5 ms.
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(before)


# Back ends that compute on arrays.


@pytest.fixture
def numeric(own_algorithms):
    """Register a numeric back end for one test, and return the list of statuses it gives."""
    statuses: list[Status] = []

    @algorithms.register("numeric")
    class Numeric(NumericAlgorithm):
        """The definition in numpy."""

        def prepare(self, problem):
            def compute(inputs, outputs):
                outputs["G"][...] = definition(problem, inputs["q"])
                return statuses.pop() if statuses else Status.OK

            return compute

    return statuses


def test_a_numeric_back_end_behaves_like_a_compiled_one(numeric, solver) -> None:
    other = DelassusSolver(problem(), "numeric")
    assert other.operations is None
    for active in (None, ["c0", "c2"], ()):
        a, b = solver.solve(Q, active), other.solve(Q, active)
        assert (a.contacts, a.row_offsets) == (b.contacts, b.row_offsets)
        assert np.allclose(a.matrix, b.matrix, rtol=1e-11, atol=1e-13)
    numeric.append(Status.NOT_POSITIVE_DEFINITE)
    with pytest.raises(NumericalError, match="numeric: NOT_POSITIVE_DEFINITE at q = "):
        other.solve(Q)
    bound = other.bind()
    bound.inputs["q"][:] = np.nan
    assert bound.solve().status is Status.NOT_FINITE
    assert np.isnan(bound.solve().matrix).all()


@pytest.fixture
def failing(own_algorithms):
    """Register a back end that raises what it is given; None: it returns no status."""
    errors: list[Exception | None] = []

    @algorithms.register("failing")
    class Failing(NumericAlgorithm):
        """Raises."""

        def prepare(self, problem):
            def compute(inputs, outputs):
                outputs["G"][...] = 1.0
                if not errors:
                    return Status.OK
                error = errors.pop()
                if error is not None:
                    raise error

            return compute

    return errors


def test_a_back_end_that_raises_gives_a_status_and_is_logged_once(failing, caplog) -> None:
    solver = DelassusSolver(problem(), "failing")
    bound = solver.bind()
    bound.inputs["q"] = Q
    bound.activate(["c0"])
    for error in (RuntimeError("lost"), RuntimeError("again"), KeyError("other"), None):
        failing.append(error)
        solution = bound.solve()
        assert solution.status is Status.FAILED
        assert np.isnan(solution.matrix).all()
    said = [record.getMessage() for record in caplog.records]
    assert said == ["algorithm 'failing' failed; further errors of this kind are not logged"] * 3
    assert "RuntimeError: lost" in caplog.text and "again" not in caplog.text
    assert bound.solve().status is Status.OK
    failing.append(RuntimeError("lost"))
    with pytest.raises(NumericalError, match=r"failing: FAILED \(its log says why\) at q = "):
        solver.solve(Q)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_copies_of_a_solver_are_solvers_of_the_same_problem(copied, own_kernels) -> None:
    this = Problem(walker(legs=1), contacts(("point",)), axes="world")
    first, given = DelassusSolver(this, "ltl", cache=False), {"q": Q[:1], "base_orientation": TURN}
    expected = first.solve(**given).matrix
    again = copied(first)
    assert (again.problem, again.algorithm) == (first.problem, "ltl")
    assert not own_kernels.exists(), "whether the cache is used is copied, too"
    assert np.array_equal(first.solve(**given).matrix, expected)
    assert np.array_equal(again.solve(**given).matrix, expected)


def test_a_pickled_problem_gives_the_same_matrix(solver) -> None:
    again = pickle.loads(pickle.dumps(solver.problem))
    matrix = DelassusSolver(again, cache=False).solve(Q).matrix
    assert np.array_equal(matrix, solver.solve(Q).matrix)


def test_it_shows_what_it_is_of_in_a_line() -> None:
    solver = DelassusSolver(problem())
    shown = repr(solver)
    assert shown.startswith("DelassusSolver(Problem('walker', ") and shown.endswith("'pv_osimr')")
    q = problem().robot.neutral()
    bound = solver.bind()
    assert repr(bound).startswith("<BoundSolver by pv_osimr, active contact")
    solution = solver.solve(q)
    k = len(solution.matrix)
    assert repr(solution).startswith(f"<Solution OK, ({k}, {k}) for contact")
    batch = repr(solver.solve_batch([q, q]))
    assert batch.startswith(f"<BatchSolution of 2 configurations, 0 failed, (2, {k}, {k}) for ")
    assert all("\n" not in text and " at 0x" not in text for text in (shown, repr(bound), batch))


def test_a_q_that_does_not_close_a_robot_is_refused_where_that_is_asked_for() -> None:
    robot = four_bar()
    loops = DelassusSolver(Problem(robot, [Contact("tip", next(iter(robot.frames)))]))
    closed = np.array(closed_four_bar(1.1))
    given = loops.solve(closed, check=True)
    np.testing.assert_array_equal(given.matrix, loops.solve(closed).matrix)
    off = closed + [0.0, 0.01, 0.0]
    assert loops.solve(off).status is Status.OK
    loop = re.escape(robot.loops[0].name)
    with pytest.raises(
        InputError, match=rf"q does not close .*: loop '{loop}' is off by 0\.0\d+,"
    ):
        loops.solve(off, check=True)
    for k in range(3):
        with pytest.raises(InputError, match=r"off by nan"):
            loops.solve(np.where(np.arange(3) == k, np.nan, closed), check=True)


def test_an_open_robot_is_closed_at_every_q(solver) -> None:
    assert solver.solve(Q, check=True).status is Status.OK
    with pytest.raises(InputError, match=r"q has shape \(2,\); expected \(3,\), robot"):
        solver.solve(Q[:2], check=True)
