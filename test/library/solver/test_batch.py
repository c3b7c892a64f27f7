"""Batches agree with single calls, whatever their size, layout, threads and active contacts."""

from __future__ import annotations

import gc
import multiprocessing
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import numpy as np
import pytest
import robots
import small
from hanging import HANG_S
from oracles.cases import feet

from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.compiler import build, kernel_for
from delassus.compiler.build import batch_kernel_for
from delassus.compiler.codegen import batch as compiler_batch
from delassus.compiler.codegen.batch import transpose
from delassus.compiler.codegen.llvm_text import Writer
from delassus.errors import AlgorithmError, InputError
from delassus.samples import random_inputs
from delassus.scalars.ports import Status
from delassus.solver.inputs import PLACEMENTS
from delassus.testing import ALL, random_problem


@pytest.fixture(scope="module")
def solver():
    robot = Robot.from_urdf(robots.quadruped())
    return DelassusSolver(Problem(robot, [Contact(foot, foot) for foot in robots.FEET]))


def random_q(n: int) -> np.ndarray:
    return np.random.default_rng(n).uniform(-2.0, 2.0, (n, 12))


def close(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.linalg.norm(a - b) <= 1e-12 * np.linalg.norm(b))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 3, 8, 9, 17, 100])
@pytest.mark.parametrize("active", [None, ("RH_FOOT", "LF_FOOT"), ("LH_FOOT",)])
def test_rows_and_columns_agree_with_single_calls(solver, n, threads, active):
    Q = random_q(n)
    rows = solver.solve_batch(Q, active, threads)
    columns = solver.solve_batch(np.ascontiguousarray(Q.T), active, threads, layout="columns")
    assert rows.status.tolist() == columns.status.tolist() == [Status.OK] * n
    for i in range(n):
        single = solver.solve(Q[i], active)
        assert close(rows.matrix[i], single.matrix)
        assert np.array_equal(rows.matrix[i], columns.matrix[..., i])
    assert rows.contacts == single.contacts
    assert rows.row_offsets == single.row_offsets


CASES: dict[str, Callable[[], Problem]] = {
    "further outputs": partial(small.problem, outputs=["J", "MinvJT", "a0", "h"]),
    "all joints, world axes": lambda: random_problem(6, ALL, "world"),
    "moving contacts": partial(feet, "contact", "pose"),
    "moving contacts, world axes": partial(feet, "world", "pose"),
    "large angles": small.problem,
}


@pytest.mark.parametrize("n", [1, 3, 19])
@pytest.mark.parametrize("name", CASES)
def test_batch_of_all_inputs_equals_single_calls(name, n):
    """The first moving contact has one position for all, the others one for each."""
    solver = DelassusSolver(CASES[name]())
    problem, samples = solver.problem, [random_inputs(solver.problem, seed) for seed in range(n)]
    if name == "large angles":
        # Two of them together are beyond what the fast path reduces.
        samples[-1]["q"] += 9e5
    many = {port: np.array([sample[port] for sample in samples]) for port in samples[0]}
    for port, contacts in zip(PLACEMENTS, (problem.moving, problem.turning), strict=True):
        if contacts:
            many[port][:, 0] = many[port][0, 0]
            for k, sample in enumerate(samples):
                sample[port] = dict(zip(contacts, many[port][k], strict=True))
            many[port] = dict(zip(contacts, np.moveaxis(many[port], 1, 0), strict=True))
            many[port][contacts[0]] = many[port][contacts[0]][0]

    def turned(values):
        if isinstance(values, dict):
            return {contact: turned(each) for contact, each in values.items()}
        return np.ascontiguousarray(values.T)

    for active in (None, problem.contacts.names[1:]):
        rows = solver.solve_batch(many["q"], active, 2, **without_q(many))
        given = {port: turned(values) for port, values in many.items()}
        columns = solver.solve_batch(given["q"], active, layout="columns", **without_q(given))
        assert rows.status.tolist() == columns.status.tolist() == [Status.OK] * n
        for k, sample in enumerate(samples):
            single = solver.solve(**sample, active=active)
            for port in problem.outputs:
                found = rows.output(port.name)[k]
                assert close(found, single.output(port.name))
                assert np.array_equal(found, columns.output(port.name)[..., k])
    missing = {port.name for port in problem.inputs} - {"q", *PLACEMENTS}
    for port in missing:
        with pytest.raises(InputError, match=f"'{port}' is missing"):
            solver.solve_batch(many["q"], **{**without_q(many), port: None})


def without_q(given):
    return {port: values for port, values in given.items() if port != "q"}


def test_output_that_the_problem_lacks_named(solver):
    with pytest.raises(InputError, match="needs the output 'MinvJT'"):
        _ = solver.solve_batch(random_q(2)).MinvJT


def test_a_bad_configuration_spoils_only_itself(solver):
    Q = random_q(40)
    good = solver.solve_batch(Q).matrix
    Q[13, 4] = np.nan
    Q[29, 0] = np.inf
    batch = solver.solve_batch(Q, threads=2)
    assert np.flatnonzero(batch.status).tolist() == [13, 29]
    assert np.isnan(batch.matrix[[13, 29]]).all()
    others = [i for i in range(40) if i not in (13, 29)]
    assert np.array_equal(batch.matrix[others], good[others])


def test_empty_batch_and_no_contact(solver):
    assert solver.solve_batch(np.empty((0, 12))).matrix.shape == (0, 12, 12)
    assert solver.solve_batch(random_q(5), active=()).matrix.shape == (5, 0, 0)


def test_result_is_written_to_out(solver):
    out = np.empty((20, 12, 12))
    assert solver.solve_batch(random_q(20), out=out).matrix is out
    for other in (np.empty((20, 12, 11)), np.empty((20, 12, 12), np.float32)):
        with pytest.raises(InputError, match=r"out must be .* shape \(20, 12, 12\)"):
            solver.solve_batch(random_q(20), out=other)


def test_out_that_cannot_be_written_to_is_refused(solver, tmp_path):
    Q = random_q(20)
    fixed = np.zeros((20, 12, 12))
    fixed.setflags(write=False)
    np.save(tmp_path / "out.npy", fixed)
    for out, words in (
        ([1], "it is no numpy array but list"),
        (fixed, "it is read-only"),
        (np.load(tmp_path / "out.npy", mmap_mode="r"), "it is read-only"),
        (np.zeros((12, 12, 20)).T, "it is not contiguous"),
        (np.zeros(2880 * 8 + 1, np.uint8)[1:].view(float).reshape(20, 12, 12), "not aligned"),
    ):
        with pytest.raises(InputError, match=words):
            solver.solve_batch(Q, out=out)
    assert not fixed.any()
    file = np.load(tmp_path / "out.npy", mmap_mode="r+")
    assert np.array_equal(solver.solve_batch(Q, out=file).matrix, solver.solve_batch(Q).matrix)


@pytest.mark.parametrize("width", [2, 4, 8])
def test_out_may_begin_anywhere_in_a_cache_line(solver, width, monkeypatch):
    if width > build.host_width():
        pytest.skip(f"this processor has no vectors of {width} doubles")
    monkeypatch.setattr(build, "host_width", lambda: width)
    single = kernel_for(solver.problem, algorithms.get("pv_osimr"))
    narrow = DelassusSolver(solver.problem, "pv_osimr", cache=False, prebuilt=single)
    sets = ((16, robots.FEET), (19, robots.FEET[:3]), (9, robots.FEET[1:2]))
    for layout, (n, active) in product(("rows", "columns"), sets):
        Q, m = random_q(n), 3 * len(active)
        given = Q if layout == "rows" else np.ascontiguousarray(Q.T)
        expected = narrow.solve_batch(given, active, layout=layout).matrix
        memory = np.empty(n * m * m + 10)
        for first in range(1, 9):
            memory[:] = np.nan
            out = memory[first : first + n * m * m].reshape(expected.shape)
            for threads in (1, 2):
                narrow.solve_batch(given, active, threads, layout=layout, out=out)
                assert np.array_equal(out, expected)
            assert np.isnan(memory[:first]).all()
            assert np.isnan(memory[first + n * m * m :]).all()
        last = expected[-1] if layout == "rows" else expected[..., -1]
        assert close(last, solver.solve(Q[n - 1], active).matrix)


def test_parts_of_long_programs_are_run_for_several_blocks(solver, monkeypatch):
    """Each with a scratch area of its own; any number of them gives the same."""
    algorithm = algorithms.get("pv_osimr")
    long, short = solver.problem, Problem(solver.problem.robot, [Contact("LF", "LF_FOOT")])
    sizes, single = {}, kernel_for(long, algorithm)
    for together in (1, 2, 3):
        monkeypatch.setattr(compiler_batch, "_BLOCKS_PER_PART", together)
        several = DelassusSolver(long, "pv_osimr", cache=False, prebuilt=single)
        for n in (8, 9, 16, 17, 24, 25, 41):
            Q = random_q(n)
            assert close(several.solve_batch(Q).matrix, [solver.solve(q).matrix for q in Q])
        kernels = several._batch._kernel, batch_kernel_for(short, algorithm, use_cache=False)
        sizes[together] = [kernel.work_size for kernel in kernels]
    one = sizes[1]
    assert sizes == {1: one, 2: [2 * one[0], one[1]], 3: [3 * one[0], one[1]]}


def test_batches_of_several_callers_do_not_meet(solver):
    batches = [random_q(n) for n in (50, 60, 70, 80)]
    expected = [solver.solve_batch(Q).matrix for Q in batches]

    def ten(Q):
        return [solver.solve_batch(Q, threads=2).matrix for _ in range(10)]

    with ThreadPoolExecutor(max_workers=4) as pool:
        for matrices, matrix in zip(pool.map(ten, batches), expected, strict=True):
            assert all(np.array_equal(each, matrix) for each in matrices)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_threads_are_there_after_a_fork(solver):
    Q = random_q(64)
    expected = solver.solve_batch(Q, threads=2).matrix

    def compare() -> None:
        sys.exit(not np.array_equal(solver.solve_batch(Q, threads=2).matrix, expected))

    child = multiprocessing.get_context("fork").Process(target=compare)
    child.start()
    child.join(HANG_S)
    ended = child.exitcode
    child.kill()
    child.join()
    assert ended == 0


def test_a_solver_that_is_dropped_takes_its_code_along(solver):
    """Without the collector of cycles, which a control loop keeps off."""
    own = DelassusSolver(solver.problem)
    own.solve_batch(random_q(20), robots.FEET[:2])
    kernel = weakref.ref(own._batch._kernel)
    gc.disable()
    try:
        del own
        assert kernel() is None
    finally:
        gc.enable()


def test_any_number_of_sets_of_contacts(solver):
    robot = solver.problem.robot
    contacts = [Contact(f"{foot}{k}", foot) for foot in robots.FEET for k in range(2)]
    many = DelassusSolver(Problem(robot, contacts))
    Q = random_q(8)
    for number in (*range(1, 256), 3):
        active = [contact.name for k, contact in enumerate(contacts) if number >> k & 1]
        batch = many.solve_batch(Q, active)
        assert batch.contacts == tuple(active)
    assert close(batch.matrix[5], many.solve(Q[5], active).matrix)
    assert len(many._batch._active) <= 64


class Forgetful(dict):
    """Empty again after every entry, as if another thread had cleared it just then."""

    def __setitem__(self, key, value):
        super().__setitem__(key, value)
        self.clear()


def test_sets_of_contacts_may_be_forgotten_by_another_thread(solver, monkeypatch):
    expected = solver.solve_batch(random_q(3), robots.FEET[:2]).matrix
    monkeypatch.setattr(solver._batch, "_active", Forgetful())
    assert np.array_equal(solver.solve_batch(random_q(3), robots.FEET[:2]).matrix, expected)


@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_out_in_the_memory_of_the_inputs_is_refused(solver, layout):
    n = 20
    memory = np.zeros(n * (144 + 12))
    shape, out_shape = ((n, 12), (n, 12, 12)) if layout == "rows" else ((12, n), (12, 12, n))
    Q = memory[: n * 12].reshape(shape)
    Q[:] = random_q(n) if layout == "rows" else random_q(n).T
    beside = memory[n * 12 :].reshape(out_shape)
    expected = solver.solve_batch(Q.copy(), layout=layout).matrix
    assert np.array_equal(solver.solve_batch(Q, layout=layout, out=beside).matrix, expected)
    for first in (0, 1, n * 12 - 1):
        over = memory[first : first + n * 144].reshape(out_shape)
        with pytest.raises(InputError, match="it is in the memory of the inputs"):
            solver.solve_batch(Q, layout=layout, out=over)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"Q": np.zeros(12)}, r"shape \(12,\), expected \(N, 12\)"),
        ({"threads": 0}, "threads is 0; expected a whole number, at"),
        ({"threads": "2"}, "threads is '2'; expected a whole number"),
        ({"threads": 1.5}, r"threads is 1\.5; expected a whole number"),
        ({"layout": "row"}, "unknown layout 'row'; did you mean 'rows'"),
    ],
)
def test_arguments_of_batches_alone_refused(solver, arguments, words):
    with pytest.raises(InputError, match=words):
        solver.solve_batch(**{"Q": np.zeros((4, 12)), **arguments})


@pytest.mark.needs("pinocchio")
def test_a_numeric_back_end_says_that_it_has_no_batches(solver):
    with pytest.raises(AlgorithmError, match="numeric back end"):
        DelassusSolver(solver.problem, "pinocchio").solve_batch(random_q(2))


def test_the_batch_kernel_comes_from_the_cache(solver, own_kernels, monkeypatch):
    Q = random_q(9)
    first = DelassusSolver(solver.problem).solve_batch(Q).matrix
    assert len(list(own_kernels.iterdir())) == 2, "beside that of single calls"
    monkeypatch.setattr("delassus.compiler.build.trace", None)  # a trace would now fail
    again = DelassusSolver(solver.problem).solve_batch(Q).matrix
    assert np.array_equal(first, again)


@pytest.mark.parametrize("width", [2, 4, 8])
def test_butterflies_transpose(width):
    """Read the emitted shuffles and carry them out."""
    w = Writer()
    values = {f"%r{i}": [(i, k) for k in range(width)] for i in range(width)}
    result = transpose(w, list(values))
    for line in w.lines:
        name, rest = line.split(" = ")
        a, b = _operands(rest)
        mask = [int(k) for k in rest.rsplit("<", 1)[1].rstrip(">").replace("i32", "").split(",")]
        both = values[a] + values[b]
        values[name.strip()] = [both[k] for k in mask]
    assert [values[name] for name in result] == [
        [(i, k) for i in range(width)] for k in range(width)
    ]


def _operands(shuffle: str) -> tuple[str, str]:
    names = [word.rstrip(",") for word in shuffle.split() if word.startswith("%")]
    return names[0], names[1]
