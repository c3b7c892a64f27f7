"""Inputs that no matrix must come of, one row each, by every way that takes them.

Ways: `solve`, a bound solver, and batches of compiled code, alone and beside good configurations.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import robots
import small
from small import feed, flat_foot

from delassus import Contact, DelassusSolver, Problem, Robot, Status
from delassus.arguments import as_numbers
from delassus.compiler.ir.input_rules import InputRules
from delassus.contacts import ContactSet
from delassus.doors.batch_function import BatchFunction
from delassus.dynamics import Dynamics, LoopRates
from delassus.errors import InputError, NumericalError
from delassus.measured import JointAcceleration, JointTorque, Measurement, SparseDynamics
from delassus.model import JointKind
from delassus.model.couplings import coupling_rows, open_coupling
from delassus.samples import random_inputs
from delassus.testing.random_trees import ALL, random_problem

LEG = Path(__file__).resolve().parents[3] / "docs" / "geared_leg.urdf"
MOTION = ("h", "a0", "qdd0", "JdotV", "MinvJT", "J", "M")
Q = np.array([0.3, -1.1, 0.7])
TURN = np.array([0.1, -0.5, 0.3, 0.8]) / np.linalg.norm([0.1, -0.5, 0.3, 0.8])
MANY = 5
"""Number of configurations of a batch whose inputs are all wrong."""


def leg() -> Robot:
    """Return a leg of four joints, each with a gear to its motor."""
    return Robot.from_urdf(LEG, base="fixed")


def mixed() -> Problem:
    """Return a problem with a planar joint and a floating one."""
    return Problem(small.mixed_robot(), [Contact("tip", "f3")])


def moving() -> Problem:
    """Return the walker with a contact that moves, a fixed one, and one that also turns."""
    kinds = {"rolls": ("point", "position"), "fixed": ("point", "nothing"),
             "turns": ("surface", "pose")}  # fmt: skip
    contacts = [
        Contact(name, f"foot{k}", kind, moving=how)
        for k, (name, (kind, how)) in enumerate(kinds.items())
    ]
    return Problem(small.walker(), contacts)


class Row(NamedTuple):
    """An input, and what each way says of it.

    Parts of words are separated by "…"; a status counts instead of an error.

    Attributes
    ----------
    problem : name of the problem.
    given : the wrong ones of the arguments of `solve`.
    words : of the error of `solve`; of `bound.solve` the same.
    bound : of an assignment to the inputs of a bound solver, or the status of its solution.
    batch : of `solve_batch` with these inputs in all configurations, or in configuration "{}"; or
        the status of the configuration that has them.
    error : class of the error of `solve`.
    """

    problem: str
    given: dict[str, Any]
    words: str
    bound: str | Status
    batch: str | Status
    error: type[Exception] = InputError


def of_shape(problem: str, name: str, values: Any, size: int, remedy: str = "") -> Row:
    """Return the row of an input of wrong shape."""
    got = np.shape(values)
    return Row(
        problem, {name: values}, f"input {name!r} has shape {got}, expected ({size},){remedy}",
        f"inputs[{name!r}] has shape {got}, expected ({size},)",
        f"input {name!r} has shape {(MANY, *got)}, expected (N, {size})",
    )  # fmt: skip


def of_kind(values: Any, reason: str) -> Row:
    """Return the row of joint positions that are not numbers which a float holds."""
    return Row(
        "feet", {"q": values}, f"input 'q' must be numbers of shape (3,): …{reason}",
        f"inputs['q'] is …; expected numbers of shape (3,)…{reason}",
        f"input 'q' must be numbers of shape (N, 3): …{reason}",
    )  # fmt: skip


def of_active(names: Any, words: str) -> Row:
    """Return the row of names that are no active contacts."""
    return Row("feet", {"active": names}, words, words, words)


def of_norm(problem: str, name: str, values: Any, what: str, norm: str) -> Row:
    """Return the row of a quaternion whose norm is not 1."""
    words = f"{what} has norm {norm}, expected a unit quaternion x, y, z, w"
    batch = f"configuration {{}}: {words}"
    return Row(problem, {name: values}, words, Status.NOT_UNIT, batch)


def of_status(
    problem: str, given: dict[str, Any], words: str, status: Status = Status.NOT_FINITE,
    error: type[Exception] = InputError,
) -> Row:  # fmt: skip
    """Return the row of inputs that a bound solver and a batch take, with a status."""
    return Row(problem, given, words, status, status, error)


def of_place(given: dict[str, Any], words: str, bound: str, batch: str = "") -> Row:
    """Return the row of a placement of a contact."""
    return Row("moving", given, words, bound, batch or words)


def turned(values: Any, at: slice | int) -> np.ndarray:
    """Return the positions of the mixed robot with other values at some entries."""
    q = random_inputs(mixed(), 1)["q"]
    q[at] = values
    return q


def open_leg() -> Row:
    """Return the row of a gear whose motor does not follow."""
    robot = leg()
    joint, motor = (robot.joint_names[entry] for entry in coupling_rows(robot)[0].entries)
    q = robot.q({joint: 0.4})
    q[robot.joint_names.index(motor)] = 0.0
    words = f"the robot: coupling {robot.couplings[0].name!r} is off by … at …{joint!r}: 0.4…"
    return of_status("leg", {"q": q}, f"{words}; Robot.q(posit", Status.NOT_CLOSED)


PROBLEMS: dict[str, tuple[Callable[[], Problem], tuple[str, ...]]] = {
    "feet": (small.problem, ("pv_osimr", "ltl", "pinocchio")),
    "world": (partial(small.problem, axes="world"), ("pv_osimr",)),
    "mixed": (mixed, ("pv_osimr",)),
    "moving": (moving, ("pv_osimr",)),
    "leg": (
        lambda: Problem(leg(), [Contact("sole", "sole", "surface")]),
        ("ltl", "efpa", "pv_osimr", "auto"),
    ),
    "all outputs": (partial(small.problem, outputs=MOTION), ("pv_osimr", "ltl")),
    **{
        f"output {names}": (partial(small.problem, outputs=names.split()), ("pv_osimr",))
        for names in ("h", "a0", "qdd0", "JdotV", "h a0")
    },
}
"""Problems, and the algorithms that their rows with a status are tried with."""
ORDER = "; joints: hip0, hip1, hip2"
TEXT, NONE, LARGE = "they are text", "some of them are no numbers", "integers beyond 2**53"
ROWS = [
    Row("feet", {"q": None}, "input 'q' is missing; it has shape (3,)",
        "inputs['q'] is None; expected numbers of shape (3,)", "'q' must be numbers"),
    of_shape("feet", "q", Q[:2], 3, ORDER),
    of_shape("feet", "q", [Q], 3, "; many configurations: solve_batch(Q)"),
    of_shape("feet", "q", 0.5, 3),
    of_kind("abc", TEXT), of_kind(["a", "b", "c"], TEXT), of_kind(np.array(["1"] * 3), TEXT),
    of_kind(Q.tobytes(), TEXT), of_kind([b"3"] * 3, TEXT),
    of_kind([None] * 3, NONE), of_kind(np.array([1j, 0, 0], dtype=object), NONE),
    of_kind([1j, 0.0, 0.0], "they are complex128"),
    of_kind(np.array([1 + 2j, 0, 0]), "they are complex128"),
    of_kind([[1.0], [1.0, 2.0]], "inhomogeneous"),
    of_kind(np.ma.array(Q, mask=[True, False, False]), "some of them are masked"),
    *(of_kind([number] * 3, LARGE) for number in (2**62, -(2**63), 2**70, 10**400)),
    of_kind(np.array([2**64 - 1, 0, 0], dtype=np.uint64), LARGE),
    of_kind(np.array([2**70, 0, 0], dtype=object), LARGE),
    of_status("feet", {"q": [0, np.nan, np.inf]},
              "q[1] (joint 'hip1') is nan, expected a finite number"),
    of_status("feet", {"q": [0, 0, -np.inf]}, "q[2] (joint 'hip2') is -inf"),
    *(of_status("feet", {"q": [0.3, -0.2, far]},
                "q[2] (joint 'hip2') is …, beyond 1e+06 rad or m", Status.TOO_FAR)
      for far in (1e15, -1.0000001e6, 1e300)),
    Row("feet", {"base_orientation": TURN},
        "input 'base_orientation' is not used by this problem; inputs: q",
        "inputs: unknown input 'base_orientation'; inputs: q",
        "input 'base_orientation' is not used by this problem; inputs: q"),
    of_active(["c0", "c7"], "unknown contact 'c7'; contacts: c0, c1, c2"),
    of_active(["c0", "c0"], "contact 'c0' is given twice"),
    of_active("c0", "active contacts must be a list of names: write ['c0']"),
    of_active(3, "active contacts must be a list of names, got 3"),
    of_active([["c0"]], "active contacts must be a list of names, got ['c0'] in it"),
    of_active(np.array([["c0"], ["c1"]]), "active contacts must be a list of names, got"),
    Row("world", {"base_orientation": None},
        "input 'base_orientation' is missing; it has shape (4,)",
        "inputs['base_orientation'] is None", "input 'base_orientation' is missing"),
    of_shape("world", "base_orientation", TURN[:3], 4),
    of_norm("world", "base_orientation", 2 * TURN, "base_orientation", "2"),
    of_norm("world", "base_orientation", np.zeros(4), "base_orientation", "0"),
    of_norm("world", "base_orientation", 1e200 * TURN, "base_orientation", "inf"),
    of_status("world", {"base_orientation": [0, 0, np.nan, 1]}, "base_orientation[2] is nan"),
    of_status("world", {"base_orientation": [0, 0, np.inf, 1]}, "base_orientation[2] is inf"),
    *(of_status("mixed", {"q": turned(np.nan, entry)}, f"q[{entry}] (joint {joint!r}) is nan")
      for entry, joint in ((0, "j0"), (1, "j1"), (3, "j1"), (4, "j2"), (10, "j2"), (11, "j3"))),
    of_norm("mixed", "q", turned(0.0, slice(7, 11)), "q[7:11] (joint 'j2')", "0"),
    of_norm("mixed", "q", turned(2 * TURN, slice(7, 11)), "q[7:11] (joint 'j2')", "2"),
    Row("moving", {"contact_positions": [[1, 2, 3]]},
        "contact_positions must be a mapping from names of contacts to lists of 3 numbers, got",
        "inputs['contact_positions'] has shape (1, 3), expected (2, 3)",
        "contact_positions must be a mapping from names of contacts to lists of 3 numbers, got"),
    of_place({"contact_positions": {"role": [0, 0, 0]}},
             "contact_positions: unknown contact 'role'; did you mean 'rolls'? contacts: rolls, t",
             "contact_positions: unknown contact 'role'; did you"),
    of_place({"contact_positions": {"fixed": [0, 0, 0]}},
             "contact 'fixed' has moving='nothing'; contacts with this input: rolls, turns",
             "unknown contact 'fixed'; contacts: rolls, turns"),
    of_place({"contact_orientations": {"rolls": TURN}},
             "contact 'rolls' has moving='position'; contacts with this input: turns",
             "unknown contact 'rolls'; contacts: turns"),
    *(of_place({"contact_positions": {"rolls": np.zeros(shape)}},
               f"contact_positions['rolls'] has shape {shape}, expected (3,)",
               f"contact_positions['rolls'] has shape {shape}, expected (3,)",
               f"contact_positions['rolls'] has shape {shape}, expected (3,) or ({MANY}, 3)")
      for shape in ((2,), (4,), (1, 3))),
    of_place({"contact_positions": {"rolls": "abc"}},
             "contact_positions['rolls'] is 'abc'; expected 3 numbers",
             "contact_positions['rolls'] is 'abc'; expected numbers of shape (3,)"),
    of_norm("moving", "contact_orientations", {"turns": 2 * TURN},
            "contact_orientations['turns']", "2"),
    of_norm("moving", "contact_orientations", {"turns": 0 * TURN},
            "contact_orientations['turns']", "0"),
    of_norm("moving", "contact_orientations", {"turns": 1e200 * TURN},
            "contact_orientations['turns']", "inf"),
    *(of_status("moving", {"contact_positions": {"turns": [0, bad, 0]}},
                f"contact_positions['turns'] is [0.0, {bad}, 0.0], expected finite numbers")
      for bad in (np.nan, np.inf)),
    *(of_status("moving", {"contact_orientations": {"turns": [0, 0, bad, 1]}},
                f"contact_orientations['turns'] is [0.0, 0.0, {bad}, 1.0], expected finite num")
      for bad in (np.nan, np.inf)),
    open_leg(),
    *(of_status("all outputs", {name: large}, "NOT_FINITE", error=NumericalError)
      for name, large in (("rates", 1e200 * np.ones(9)), ("gravity", [1e308, -1e308, 1e308]),
                          ("torques", 1e308 * (-1.0) ** np.arange(9)))),
    *(of_status(name, {"rates": 1e200 * np.ones(9)}, "NOT_FINITE", error=NumericalError)
      for name in PROBLEMS if name.startswith("output ")),
]  # fmt: skip
TRIED = [
    pytest.param(row, algorithm, id=f"{row.problem}, {row.words:.50}, {algorithm}")
    for row in ROWS
    for algorithm in PROBLEMS[row.problem][1][: None if isinstance(row.bound, Status) else 1]
]
PLACEMENTS = {"contact_positions": np.zeros(3), "contact_orientations": np.array([0, 0, 0, 1.0])}
"""Inputs by contact, and where the contacts of the table are when nothing is given."""


@cache
def solver_of(problem: str, algorithm: str) -> DelassusSolver:
    """Return a solver of a problem of the table."""
    if algorithm == "pinocchio":
        import_module("pinocchio")
    return DelassusSolver(PROBLEMS[problem][0](), algorithm)


def good_inputs(problem: Problem) -> dict[str, Any]:
    """Return arguments of `solve` that are in order; those by contact are left out."""
    inputs = random_inputs(problem, 0)
    return {name: values for name, values in inputs.items() if name not in PLACEMENTS}


def assign(bound: Any, given: dict[str, Any]) -> None:
    """Give arguments of `solve` to a bound solver."""
    for name, values in given.items():
        if name == "active":
            bound.activate(values)
        elif name in PLACEMENTS and isinstance(values, dict):
            for contact, place in values.items():
                getattr(bound, name)[contact] = place
        else:
            bound.inputs[name] = values


def repeated(values: Any) -> Any:
    """Return a batch of the same values."""
    stack = np.ma.array if isinstance(values, np.ma.MaskedArray) else np.array
    return stack([values] * MANY) if isinstance(values, np.ndarray) else [values] * MANY


def all_alike(good: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments of a batch with the same inputs in all configurations."""
    return {
        name: values if name in ("active", *PLACEMENTS) or values is None and name != "q"
        else repeated(values)
        for name, values in (good | given).items()
    }  # fmt: skip


def one_wrong(
    good: dict[str, Any], given: dict[str, Any], k: int, count: int, layout: str = "rows"
) -> dict[str, Any]:
    """Return arguments of a batch with wrong inputs in configuration k."""

    def stacked(own: Any, wrong: Any) -> np.ndarray:
        found = np.tile(np.ravel(own).astype(float), (count, 1))
        found[k] = np.ravel(wrong)
        return found if layout == "rows" else np.ascontiguousarray(found.T)

    found: dict[str, Any] = {name: stacked(x, given.get(name, x)) for name, x in good.items()}
    for name in PLACEMENTS.keys() & given.keys():
        found[name] = {c: stacked(PLACEMENTS[name], x) for c, x in given[name].items()}
    return {**found, "layout": layout}


def solve_batch(solver: DelassusSolver, arguments: dict[str, Any], **options: Any) -> Any:
    """Solve a batch of arguments by name, those of `solve`."""
    others = {name: values for name, values in arguments.items() if name != "q"}
    return solver.solve_batch(arguments["q"], **others, **options)


def check_words(call: Callable[[], object], words: str, error: type[Exception]) -> None:
    """Require an error whose message, or whose cause, has these words."""
    with pytest.raises(error) as raised:
        call()
    told = f"{raised.value} ({raised.value.__cause__})"
    missing = [part for part in words.split("…") if part not in told]
    assert not missing, (missing, told)


@pytest.mark.filterwarnings("ignore:overflow|invalid:RuntimeWarning")
@pytest.mark.parametrize(("row", "algorithm"), TRIED)
def test_refused_by_solve(row: Row, algorithm: str) -> None:
    solver = solver_of(row.problem, algorithm)
    good = good_inputs(solver.problem)
    before = solver.solve(**good).matrix
    check_words(lambda: solver.solve(**(good | row.given)), row.words, row.error)
    assert np.array_equal(solver.solve(**good).matrix, before)


@pytest.mark.parametrize(("row", "algorithm"), TRIED)
def test_refused_by_bound_solver(row: Row, algorithm: str) -> None:
    """What cannot be assigned leaves inputs and active contacts as they are."""
    bound = solver_of(row.problem, algorithm).bind()
    assign(bound, good_inputs(bound.solution.problem))
    names = bound.solution.problem.contacts.names
    bound.activate(names[::2])
    before = bound.solve().copy()
    q = row.given.get("q")
    if not isinstance(row.bound, Status):
        check_words(lambda: assign(bound, row.given), row.bound, InputError)
        if q is not None:
            check_words(lambda: bound.solve(q), row.words, InputError)
        assert bound.solution.contacts == names[::2]
        assert np.array_equal(bound.solve().matrix, before.matrix)
        return
    for active in (names[::2], names):
        bound.activate(active)
        assign(bound, row.given)
        for s in (bound.solve(), bound.solve(None if q is None else np.array(q, dtype=float))):
            assert s.status is row.bound
            assert len(s.matrix) == s.row_offsets[-1] > 0
            assert all(np.isnan(s.output(port.name)).all() for port in s.problem.outputs)
        assign(bound, good_inputs(s.problem))
        for name in PLACEMENTS.keys() & row.given.keys():
            assign(bound, {name: {c: PLACEMENTS[name] for c in row.given[name]}})
        assert bound.solve().status is Status.OK
    bound.activate(names[::2])
    assert np.array_equal(bound.solve().matrix, before.matrix)


@pytest.mark.parametrize(("row", "algorithm"), [t for t in TRIED if "pinocchio" not in t.id])
def test_refused_by_batch(row: Row, algorithm: str) -> None:
    """One configuration spoils no other; a batch of one, and lanes beside good ones."""
    solver = solver_of(row.problem, algorithm)
    good = good_inputs(solver.problem)
    solve = partial(solve_batch, solver)
    for layout in ("rows", "columns"):
        if isinstance(row.batch, Status):
            for count, k in ((1, 0), (21, 0), (21, 20)):
                arguments = one_wrong(good, row.given, k, count, layout)
                batch = solve(arguments)
                assert Status(batch.status[k]) is row.batch
                assert np.count_nonzero(batch.status) == 1
                matrix = batch.matrix[k] if layout == "rows" else batch.matrix[..., k]
                assert np.isnan(matrix).all()
                if set(row.given) == {"q"}:
                    none = solve(arguments, active=())
                    assert np.array_equal(none.status, batch.status)
        elif "{}" in row.batch:
            arguments = one_wrong(good, row.given, 3, MANY, layout)
            check_words(lambda a=arguments: solve(a), row.batch.format(3), InputError)
    if isinstance(row.batch, str) and "{}" not in row.batch:
        check_words(lambda: solve(all_alike(good, row.given)), row.batch, InputError)


@pytest.mark.parametrize(
    "q",
    [
        [1, 0, 0], (True, False, False), [Fraction(1), Fraction(0), 0], np.array([1, 0, 0]),
        np.array([1, 0, 0], np.float32), np.ma.array([1.0, 0.0, 0.0], mask=False),
        np.repeat([1.0, 0.0, 0.0], 2)[::2], array("d", [1, 0, 0]),
        memoryview(np.array([1.0, 0.0, 0.0])), np.array([1, Fraction(0), 0.0], dtype=object),
    ],
    ids=lambda q: f"{type(q).__name__} {getattr(q, 'dtype', '')}",
)  # fmt: skip
def test_numbers_of_any_kind_taken(q: Any) -> None:
    solver = solver_of("feet", "pv_osimr")
    bound, expected = solver.bind(), solver.solve(np.array([1.0, 0.0, 0.0])).matrix
    assert np.array_equal(solver.solve(q).matrix, expected)
    assert np.array_equal(bound.solve(q).matrix, expected)
    bound.solve(Q)
    bound.inputs["q"] = q
    assert np.array_equal(bound.solve().matrix, expected)
    assert np.allclose(solver.solve_batch([q] * 3).matrix, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("algorithm", PROBLEMS["leg"][1])
def test_gear_closed_in_single_precision_taken(algorithm: str) -> None:
    solver, robot = solver_of("leg", algorithm), leg()
    joint = robot.joint_names[coupling_rows(robot)[0].entries[0]]
    assert solver.solve(robot.q({joint: 0.4}).astype(np.float32)).status is Status.OK


def test_each_coupling_is_looked_at_and_its_rounding_allowed() -> None:
    robot = leg()
    solver = DelassusSolver(Problem(robot, [Contact("sole", "sole")]), "pv_osimr")
    bound = solver.bind()
    rng = np.random.default_rng(0)
    for row in coupling_rows(robot):
        for _ in range(5):
            q = random_inputs(solver.problem, int(rng.integers(1000)))["q"]
            assert bound.solve(q).status is Status.OK and not open_coupling(robot, q.tolist())
            entry = row.entries[int(rng.integers(len(row.entries)))]
            for share, status in ((0.5, Status.OK), (1.5, Status.NOT_CLOSED)):
                moved = q.copy()
                factor = row.factors[row.entries.index(entry)]
                moved[entry] += share * row.allowed(q.tolist()) / factor
                assert bound.solve(moved).status is status
                assert bool(open_coupling(robot, moved.tolist())) == (status is not Status.OK)
    # Turned far, where rounding in single precision is more than a millionth of a radian.
    far = robot.q({robot.joint_names[coupling_rows(robot)[0].entries[0]]: 3e3})
    assert bound.solve(far.astype(np.float32).astype(float)).status is Status.OK
    assert open_coupling(robot, [np.nan] * robot.nq)


@pytest.mark.parametrize("algorithm", ["pv_osimr", "pinocchio"])
@pytest.mark.parametrize("port", ["base_orientation", "q", "contact_orientations"])
def test_quaternions_of_another_norm_have_a_status(port: str, algorithm: str) -> None:
    turning = port == "contact_orientations"
    problem = random_problem(16, moving=True) if turning else random_problem(2, ALL, "world")
    solver = DelassusSolver(problem, algorithm)
    bound = solver.bind()
    rules = InputRules.of(problem.inputs, problem.robot)
    batch = BatchFunction(problem).forward
    good = random_inputs(problem, 0)
    joints = zip(problem.robot.joints, problem.robot.q_offsets, strict=True)
    first = next((at + 3 for joint, at in joints if joint.kind is JointKind.FLOATING), 0)
    for factor, status in (
        (0.0, Status.NOT_UNIT), (1 - 1.1e-3, Status.NOT_UNIT), (1 - 0.9e-3, Status.OK),
        (1 + 0.9e-3, Status.OK), (1 + 1.1e-3, Status.NOT_UNIT), (2.0, Status.NOT_UNIT),
        (np.nan, Status.NOT_FINITE),
    ):  # fmt: skip
        feed(bound, good)
        turn = bound.inputs[port].reshape(-1)[first if port == "q" else 0 :][:4]
        turn *= factor
        block = np.concatenate([values.ravel() for values in bound.inputs.values()])
        s = bound.solve()
        assert s.status is status and bool(np.isnan(s.matrix).all()) == (status is not Status.OK)
        assert rules.statuses(block[np.newaxis]).tolist() == [status]
        # Machine code of several configurations at once, of which one is wrong.
        rows = np.tile(np.concatenate([values.ravel() for values in good.values()]), (9, 1))
        rows[4] = block
        found = np.empty((9, batch.size_out))
        batch(rows, found)
        assert np.isnan(found).any(axis=1).tolist() == [k == 4 and bool(status) for k in range(9)]
        given = {name: values.copy() for name, values in bound.inputs.items()}
        for name, contacts in zip(PLACEMENTS, (problem.moving, problem.turning), strict=True):
            if name in given:
                given[name] = dict(zip(contacts, given[name], strict=True))
        if status is Status.OK:
            assert solver.solve(**given).status is Status.OK
        else:
            words = "has norm" if status is Status.NOT_UNIT else "nan"
            check_words(lambda g=given: solver.solve(**g), words, InputError)
        for layout in ("rows", "columns") if algorithm == "pv_osimr" else ():
            arguments = one_wrong(good_inputs(problem), given, 3, MANY, layout)
            if status is Status.NOT_UNIT:
                words = "configuration 3: …has norm"
                check_words(lambda a=arguments: solve_batch(solver, a), words, InputError)
            else:
                many = solve_batch(solver, arguments)
                assert many.status.tolist() == [0, 0, 0, status, 0]


def test_rules_of_arrays_are_those_of_machine_code() -> None:
    robot = leg()
    problem = Problem(robot, [Contact("sole", "sole")])
    rules, solver = InputRules.of(problem.inputs, robot), DelassusSolver(problem)
    rng = np.random.default_rng(1)
    Q = np.array([random_inputs(problem, k)["q"] for k in range(400)])
    for q in Q[:300]:
        k = int(rng.integers(robot.nq))
        q[k] = rng.choice([q[k] * (1 + 10.0 ** -rng.integers(3, 9)), np.nan, np.inf, -3e6, 1e300])
    statuses = rules.statuses(Q)
    assert set(statuses.tolist()) >= {0, Status.NOT_CLOSED, Status.TOO_FAR, Status.NOT_FINITE}
    assert np.array_equal(solver.solve_batch(Q).status, statuses)
    bound = solver.bind()
    assert [int(bound.solve(q).status) for q in Q] == statuses.tolist()


def test_tables_of_calls_look_at_the_same(monkeypatch) -> None:
    """Large systems are compiled in another way, which small ones are made to take here."""
    monkeypatch.setattr("delassus.algorithms.counting._LARGE", 0)
    robot = leg()
    problem = Problem(robot, [Contact("sole", "sole")], outputs=["h"])
    solver = DelassusSolver(problem, "pv_osimr")
    bound, good = solver.bind(), random_inputs(problem, 0)
    for moved, value, status in (
        (0, 0.0, Status.OK), (0, 0.2, Status.NOT_CLOSED), (0, 3e6, Status.TOO_FAR),
        (0, np.inf, Status.NOT_FINITE), (0, 0.0, Status.OK),
    ):  # fmt: skip
        inputs = {name: values.copy() for name, values in good.items()}
        inputs["q"][moved] += value
        feed(bound, inputs)
        assert bound.solve().status is status
        batch = solver.solve_batch([inputs.pop("q")] * 9, **inputs)
        assert set(batch.status.tolist()) == {int(status)}
    bound.inputs["rates"] = 1e200 * np.ones(4)
    assert bound.solve().status is Status.NOT_FINITE


def test_an_open_robot_has_no_couplings_to_look_at() -> None:
    problem = small.problem()
    assert InputRules.of(problem.inputs, problem.robot).couplings == ()


def test_positions_near_the_bound_are_right() -> None:
    """All angles of a chain are added: G is Pinocchio's, to the rounding of 10⁶ rad."""
    import pinocchio as pin
    from oracles.pinocchio_models import of_pinocchio

    text = robots.panda()
    robot = Robot.from_urdf(text, "fixed")
    rng = np.random.default_rng(3)
    q = rng.uniform(-1.0, 1.0, robot.nq) + 999_999.0 * rng.choice([-1.0, 1.0], robot.nq)
    for name in ("panda_finger_joint1", "panda_finger_joint2"):
        q[robot.joint_names.index(name)] = 0.01
    G = DelassusSolver(Problem(robot, [Contact("hand", "panda_hand", "surface")])).solve(q).matrix
    positions = dict(zip(robot.joint_names, q.tolist(), strict=True))
    expected = of_pinocchio(pin.buildModelFromXML(text), ["panda_hand"], positions)
    assert np.linalg.norm(G - expected) < 1e-8 * np.linalg.norm(expected)


def test_contact_forces_that_overflow() -> None:
    problem = Problem(small.walker(), small.contacts(("point", "point")), outputs=MOTION)
    solver, inputs = DelassusSolver(problem), random_inputs(problem, 0)
    bound = feed(solver.bind(), inputs)
    bound.solve()
    s = solver.solve(**inputs)
    assert bound.constrained_dynamics(1.0).status is Status.OK
    found = bound.constrained_dynamics(1.7e308)
    assert found.status is Status.NOT_FINITE
    assert np.isnan(found.forces).all() and np.isnan(found.accelerations).all()
    assert bound.constrained_dynamics(1.0).status is Status.OK
    large = np.full(6, 1e308)
    for call, what in (
        (lambda: s.forces(1.7e308), "contact forces"),
        (lambda: s.accelerations(large), "the accelerations"),
        (lambda: s.impact(np.full(9, 1.7e308)), "the velocities of the contacts"),
    ):
        with pytest.raises(NumericalError, match=f"{what} would not be finite"):
            call()


def test_redundant_contact_forces_that_overflow() -> None:
    robot = Robot.from_urdf(robots.quadruped())
    problem = Problem(robot, ContactSet(flat_foot(4, "LF_FOOT")), outputs=MOTION)
    solver, inputs = DelassusSolver(problem), random_inputs(problem, 0)
    bound = feed(solver.bind(), inputs)
    bound.solve()
    assert bound.constrained_dynamics(1e250).status is not Status.OK
    with pytest.raises(NumericalError):
        solver.solve(**inputs).forces(1e250)


def test_dynamics_look_at_the_same() -> None:
    robot = leg()
    dynamics = Dynamics(robot)
    q, rest = robot.neutral(), np.zeros(dynamics.size)
    assert np.isfinite(dynamics.inverse(q, rest, rest)).all()
    away = q.copy()
    away[0] += 0.3
    far = robot.q({name: 2e6 for name in dynamics.joints})
    for call in (dynamics.inverse, dynamics.forward):
        with pytest.raises(NumericalError, match="not closed: coupling '.*' is off by"):
            call(away, rest, rest)
        with pytest.raises(NumericalError, match="too far"):
            call(far, rest, rest)
        with pytest.raises(NumericalError, match="not finite"):
            call(q, rest + 1e200, rest)
    with pytest.raises(NumericalError, match="not closed"):
        LoopRates(robot).jacobian(away)
    measured = SparseDynamics(
        robot,
        [Measurement(JointAcceleration(name), 0.1) for name in dynamics.joints],
        [JointTorque(name) for name in dynamics.joints],
    )
    values = {JointAcceleration(name): 0.0 for name in dynamics.joints}
    assert measured.solve(q, rest, values).values
    for at, rates, words in ((away, rest, "not closed: coupling"), (far, rest, "too far"),
                             (q, rest + 1e200, "not finite")):  # fmt: skip
        with pytest.raises(NumericalError, match=words):
            measured.solve(at, rates, values)
    with pytest.raises(InputError, match="expected numbers"):
        measured.solve(q, rest, {**values, JointAcceleration(dynamics.joints[0]): 1j})


def test_what_a_float_holds_is_taken() -> None:
    assert as_numbers([2**53, -(2**53)]).tolist() == [2.0**53, -(2.0**53)]
    assert as_numbers([Fraction(1, 2), True]).tolist() == [0.5, 1.0]
