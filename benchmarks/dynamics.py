"""Inverse and forward dynamics and their derivatives, beside Pinocchio and the methods for loops.

``python -m benchmarks.dynamics`` times :class:`~delassus.dynamics.Dynamics` and writes
``docs/benchmarks/dynamics.md``: on open robots beside Pinocchio in C++ and from Python, on robots
with gears, belts and loops C-RNEA and C-ABA beside the methods that the cluster paper compares
them with. All are in one process, contenders in turns; results are compared before.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import compilers, machine, pages, pinocchio_peer
from benchmarks.arguments import output_of
from benchmarks.cases import AbsentError, Case, chosen
from benchmarks.cluster_cases import CLUSTER_CASES, ClusterCase
from benchmarks.compare import Results, compare, from_python, in_c
from benchmarks.ours import bound_routine
from benchmarks.pages import ABSENT, Places, Table, cell, made_on, table
from benchmarks.pinocchio_peer import PinocchioProblem, pinocchio, symmetric
from benchmarks.timing import Routine, Timing, fastest
from delassus.compiler.function import BoundFunction
from delassus.dynamics import GRAVITY, Dynamics
from delassus.model.robot import Robot
from delassus.model.spatial import Array

OUTPUT = Path(__file__).parents[1] / "docs" / "benchmarks" / "dynamics.md"
OPEN = "panda,quadruped,go1,anymal,talos,g1"
"""Open robots; arms, quadrupeds, humanoids."""
CLOSED = "chain12,belts12,cheetah6,mit6,tello6,jvrc6,planarleg"
"""Robots with gears, belts and loops, those of the cluster paper first."""
TARGETS: Mapping[str, Mapping[str, float]] = {
    "inverse": {"quadruped": 8.0, "humanoid": 4.0},
    "forward": {"quadruped": 6.0, "humanoid": 3.0},
    "inverse_derivatives": {"quadruped": 3.0, "humanoid": 3.0},
    "forward_derivatives": {"quadruped": 3.0, "humanoid": 3.0},
}
"""By how much each function has to be faster than Pinocchio in C++, by family of robots."""
METHODS = {
    "inverse": ("c_rnea", "projected"),
    "forward": ("c_aba", "projection", "lagrange"),
}
"""Exact methods by function."""
_CPP = {
    "inverse": ("rnea",),
    "forward": ("aba, LOCAL", "aba, WORLD"),
    "inverse_derivatives": ("computeRNEADerivatives",),
    "forward_derivatives": ("computeABADerivatives",),
}
_POOL = 16
_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Measured:
    """A function of one robot.

    Attributes
    ----------
    robot : its label.
    family : which targets apply.
    function : name of the method of :class:`Dynamics`.
    operations : of ours, by method; sines and cosines excluded.
    times : in C by contender, ours first.
    python : from Python, ours and Pinocchio's.
    """

    robot: str
    family: str
    function: str
    operations: dict[str, int]
    times: dict[str, Timing]
    python: dict[str, Timing] = field(default_factory=dict)

    @property
    def peer(self) -> Timing | None:
        """The least minimum and median of the other contenders; None without one."""
        _, *others = self.times.values()
        return fastest(others)

    @property
    def ratio(self) -> Timing | None:
        """How many times longer the fastest contender takes; None without one."""
        mine, *_ = self.times.values()
        return None if self.peer is None else mine.ratio(self.peer)


def states(robot: Robot, size: int, q: Array) -> Array:
    """Return q, random rates and accelerations or torques, and gravity, side by side."""
    random = np.random.default_rng(0)
    count = len(q)
    motion = random.uniform(-1.0, 1.0, (count, 2 * size))
    return np.hstack([q, motion, np.tile(GRAVITY, (count, 1))])


def measured_open(case: Case, library: ctypes.CDLL | None, seconds: float) -> Iterator[Measured]:
    """Time a robot's functions beside Pinocchio's.

    Raises
    ------
    WrongResultError
        If the results differ.
    """
    problem = case.load()
    robot, theirs = problem.robot, PinocchioProblem(problem)
    dynamics = Dynamics(robot)
    n = dynamics.size
    q = np.random.default_rng(1).uniform(-1.0, 1.0, (_POOL, robot.nq))
    inputs = states(robot, n, q)
    rates, given = inputs[:, robot.nq :][:, :n], inputs[:, robot.nq + n :][:, :n]
    stated = np.ascontiguousarray(
        np.hstack([theirs.configurations(q), theirs.motion(rates), theirs.motion(given)])
    )
    order = theirs.motion(np.arange(n, dtype=float)[None])[0].astype(int)
    for function, names in _CPP.items():
        bound = dynamics.bind(function)
        mine = bound_routine(bound, np.ascontiguousarray(inputs))
        contenders = {"ours": (mine, _results(mine, function))}
        if library is not None:
            functions = {name: pinocchio_peer.DYNAMICS[name] for name in names}
            peers = pinocchio_peer.routines(library, theirs, 1, stated, functions, mine.size)
            contenders |= {
                name: (each, _results(each, function, order)) for name, each in peers.items()
            }
        calls = {
            "ours": from_python(_bound_call(bound, inputs.shape[1]), inputs),
            "Pinocchio": from_python(_their_call(theirs, function), stated),
        }
        yield Measured(
            case.label,
            case.family,
            function,
            {"": dynamics.operations(function).total},
            _times(case.label, contenders, seconds),
            compare(case.label, calls, seconds),
        )


def _times(
    where: str, contenders: Mapping[str, tuple[Routine, Results]], seconds: float
) -> dict[str, Timing]:
    """Compare the results of all states, and time the routines."""
    count = min(len(each.inputs) for each, _ in contenders.values())
    timed = {name: in_c(*pair) for name, pair in contenders.items()}
    return compare(where, timed, seconds, _TOLERANCE, range(count))


def _bound_call(bound: BoundFunction, size: int) -> Callable[[Array], object]:
    """Return a call with all inputs copied from one row."""
    block = next(iter(bound.inputs.values())).base
    assert isinstance(block, np.ndarray)

    def call(row: Array) -> object:
        block[:size] = row
        return bound()

    return call


def _their_call(problem: PinocchioProblem, function: str) -> Callable[[Array], object]:
    pin, model = pinocchio(), problem.model
    data = model.createData()
    called = {
        "inverse": pin.rnea,
        "forward": pin.aba,
        "inverse_derivatives": pin.computeRNEADerivatives,
        "forward_derivatives": pin.computeABADerivatives,
    }[function]
    first, second = model.nq, model.nq + model.nv
    return lambda row: called(model, data, row[:first], row[first:second], row[second:])


def _results(routine: Routine, function: str, order: Array | None = None) -> Results:
    """Return what a routine computes, as matrices for derivatives.

    Parameters
    ----------
    order : places of Pinocchio's velocities in ours, for its routines: their matrices are column
        by column, and the third one has its upper triangle.
    """

    def results(i: int) -> Sequence[Array]:
        block = routine.results(i)
        if order is None:
            return _matrices(block) if function.endswith("derivatives") else [block]
        ours = np.argsort(order)
        if not function.endswith("derivatives"):
            return [block[ours]]
        *slopes, third = _matrices(block)
        turned = [*(slope.T for slope in slopes), symmetric(third.T)]
        return [matrix[ours][:, ours] for matrix in turned]

    return results


def _matrices(block: Array) -> list[Array]:
    """Return the three square matrices of a block."""
    size = round((block.size / 3) ** 0.5)
    return [*block.reshape(3, size, size)]


def measured_closed(case: ClusterCase, seconds: float) -> Iterator[Measured]:
    """Time the exact methods of inverse and forward dynamics of a robot with clusters.

    Raises
    ------
    WrongResultError
        If the results of two methods differ.
    """
    closed = case.load()
    robot = closed.problem.robot
    dynamics = Dynamics(robot)
    inputs = np.ascontiguousarray(states(robot, dynamics.size, closed.pool(_POOL)))
    for function, methods in METHODS.items():
        routines = {
            method: bound_routine(dynamics.bind(function, method), inputs) for method in methods
        }
        contenders = {name: (each, _results(each, function)) for name, each in routines.items()}
        counts = {method: dynamics.operations(function, method).total for method in methods}
        times = _times(case.label, contenders, seconds)
        yield Measured(case.label, "closed", function, counts, times)
    for function in ("inverse_derivatives", "forward_derivatives"):
        each = bound_routine(dynamics.bind(function), inputs)
        count = dynamics.operations(function).total
        times = compare(case.label, {"closed form": in_c(each, _results(each, function))}, seconds)
        yield Measured(case.label, "closed", function, {"closed form": count}, times)


def places(
    opened: list[Measured], closed: list[Measured], remarks: list[str], day: str
) -> Places:
    """Return the results of the page by place."""
    return {
        "run": made_on(day, machine.compiler(), *remarks),
        "open": table(_HEAD, map(_open_row, opened), 2),
        "closed": _closed_table(closed),
    }


_HEAD = ("robot", "function", "operations", "ours", "C++", "C++ / ours", "target",
         "from Python, ours", "from Python, Pinocchio", "ratio")  # fmt: skip


def _open_row(one: Measured) -> list[str]:
    mine, *_ = one.times.values()
    own, their = one.python.values()
    target = TARGETS[one.function].get(one.family)
    held = ABSENT if target is None else f"≥ {target:g}: {_held(one.ratio, target)}"
    return [
        one.robot.partition(",")[0], f"`{one.function}`", str(one.operations[""]), cell(mine),
        cell(one.peer), cell(one.ratio, 1.0), held, cell(own), cell(their),
        cell(own.ratio(their), 1.0),
    ]  # fmt: skip


def _closed_table(results: list[Measured]) -> Table:
    rows = []
    for one in results:
        first, *_ = one.times.values()
        robot = one.robot.rpartition(", m=")[0]
        rows += [
            [robot, f"`{one.function}`", method, str(one.operations[method]), cell(time),
             cell(first.ratio(time), 1.0)]
            for method, time in one.times.items()
        ]  # fmt: skip
    return table(["robot", "function", "method", "operations", "time", "ratio"], rows, 3)


def _held(ratio: Timing | None, target: float) -> str:
    if ratio is None:
        return "not measured"
    return "yes" if min(ratio.minimum, ratio.median) >= target else "**no**"


def run(
    opened: str, closed: str, seconds: float, library: ctypes.CDLL | None
) -> tuple[list[Measured], list[Measured], list[str]]:
    """Measure robots that are present; absent ones become remarks."""
    results: tuple[list[Measured], list[Measured]] = [], []
    remarks: list[str] = []
    for case in (*chosen(opened), *chosen(closed, CLUSTER_CASES)):
        print(case.label, flush=True)
        try:
            if isinstance(case, Case):
                results[0].extend(measured_open(case, library, seconds))
            else:
                results[1].extend(measured_closed(case, seconds))
        except AbsentError as error:
            remarks.append(f"{case.label}: left out, {error}")
    return *results, remarks


def main() -> None:
    """Time everything and write the page."""
    output = output_of("dynamics", __doc__, OUTPUT)
    notes, library = [], None
    try:
        library = pinocchio_peer.compilation(pinocchio_peer.DYNAMICS_PART).library(print)
        if not compilers.find().is_clang:
            notes.append("without clang, with which Pinocchio is faster")
    except AbsentError as error:
        notes.append(f"Pinocchio in C++ is left out: {error}")
    opened, closed, remarks = run(OPEN, CLOSED, 0.5, library)
    found = places(opened, closed, [*notes, *remarks], machine.day())
    pages.write(output, "benchmarks/dynamics", found)
    print(output)


if __name__ == "__main__":
    main()
