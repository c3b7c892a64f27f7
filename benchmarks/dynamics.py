"""Inverse and forward dynamics and their derivatives, beside Pinocchio and the methods for loops.

``python -m benchmarks.dynamics`` times :class:`~delassus_ros.dynamics.Dynamics` and writes
``docs/benchmarks/dynamics.md``: on open robots beside Pinocchio in C++ and from Python, on robots
with gears, belts and loops C-RNEA and C-ABA beside the methods that the cluster paper compares
them with. All are in one process, contenders in turns; results are compared before.
"""

from __future__ import annotations

import ctypes
import datetime
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import compilers, machine, pinocchio_cpp, timing
from benchmarks.arguments import output_of
from benchmarks.cases import AbsentError, Case, chosen
from benchmarks.cluster_cases import ClusterCase
from benchmarks.clusters import chosen as chosen_clusters
from benchmarks.contenders import WrongResultError
from benchmarks.pinocchio_model import PinocchioProblem, pinocchio
from benchmarks.timing import Routine, Timing, measure, python
from delassus_ros.compiler.function import BoundFunction
from delassus_ros.dynamics import GRAVITY, Dynamics
from delassus_ros.model.robot import Robot
from delassus_ros.model.spatial import Array

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
    def ratio(self) -> Timing | None:
        """How many times longer the fastest contender takes; None without one."""
        ours, *others = self.times.values()
        if not others:
            return None
        return ours.ratio(Timing(min(t.minimum for t in others), min(t.median for t in others)))


def routine(bound: BoundFunction, inputs: Array) -> Routine:
    """Return a bound function for C loops; `inputs` (count, inputs) in the order of its ports."""
    return Routine(
        bound.address, inputs, 1, bound.work.ctypes.data, keep=bound, size=bound.result.size
    )


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
        mine = routine(bound, np.ascontiguousarray(inputs))
        size = bound.result.size
        contenders = {"ours": mine}
        if library is not None:
            contenders |= pinocchio_cpp.dynamics(library, theirs, stated, size, names)
        for name, each in contenders.items():
            _compare(f"{case.label}: {name}", function, mine, each, order)
        count = dynamics.operations(function).total
        times = measure({name: timing.warm(each) for name, each in contenders.items()}, seconds)
        calls = {
            "ours": python(_bound_call(bound, inputs.shape[1]), inputs),
            "Pinocchio": python(_their_call(theirs, function), stated),
        }
        yield Measured(
            case.label, case.family, function, {"": count}, times, measure(calls, seconds)
        )


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


def _compare(what: str, function: str, ours: Routine, other: Routine, order: Array) -> None:
    """Compare results of all states; Pinocchio's matrices are column by column."""
    n = len(order)
    for i in range(len(ours.inputs)):
        expected, found = ours.results(i), other.results(i)
        if expected is None or found is None:
            raise WrongResultError(f"{what}: refused")
        if other is not ours and function.endswith("derivatives"):
            turned = expected.reshape(3, n, n)[:, order][:, :, order]
            columns = found.reshape(3, n, n).transpose(0, 2, 1)
            pairs = [*zip(columns[:2], turned[:2], strict=True)]
            pairs.append((np.triu(columns[2]), np.triu(turned[2])))
        else:
            pairs = [(found, expected if other is ours else expected[order])]
        for value, wanted in pairs:
            error = np.linalg.norm(value - wanted) / np.linalg.norm(wanted)
            if not error <= _TOLERANCE:
                raise WrongResultError(f"{what}: differs by {error:.1e}")


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
        contenders = {
            method: routine(dynamics.bind(function, method), inputs) for method in methods
        }
        first = contenders[methods[0]]
        for method, each in contenders.items():
            order = np.arange(dynamics.size)
            _compare(f"{case.label}: {method}", function, first, each, order)
        counts = {method: dynamics.operations(function, method).total for method in methods}
        times = measure({name: timing.warm(each) for name, each in contenders.items()}, seconds)
        yield Measured(case.label, "closed", function, counts, times)
    for function in ("inverse_derivatives", "forward_derivatives"):
        each = routine(dynamics.bind(function), inputs)
        count = dynamics.operations(function).total
        times = measure({"closed form": timing.warm(each)}, seconds)
        yield Measured(case.label, "closed", function, {"closed form": count}, times)


def page(
    opened: list[Measured], closed: list[Measured], remarks: list[str], day: str
) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# Inverse and forward dynamics, and their derivatives"
    yield ""
    yield "Written by `python -m benchmarks.dynamics`. Everything is in one process, contenders in"
    yield "turns, another random state at each call; the results agree to 1e-8 before they are"
    yield "timed. Cells are minimum / median [µs] of calls in C, ratios by minimum / by median."
    yield ""
    yield f"- {day}; {machine.processor()}"
    yield f"- {machine.compiler()}"
    yield f"- {machine.versions()}"
    yield from (f"- {remark}" for remark in remarks)
    yield ""
    yield "## Open robots, beside Pinocchio"
    yield ""
    yield "*C++* is the faster of Pinocchio's conventions, compiled from the headers of its wheel"
    yield "for this processor, joints turned so that each is about x, y or z; *from Python* are"
    yield "bound calls with all inputs copied, and Pinocchio's bindings."
    yield ""
    yield (
        "| robot | function | operations | ours | C++ | C++ / ours | target "
        "| from Python, ours | from Python, Pinocchio | ratio |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for one in opened:
        ours, *others = one.times.values()
        ratio, target = one.ratio, TARGETS[one.function].get(one.family)
        best = "–"
        if ratio is not None:
            best = _us(Timing(min(t.minimum for t in others), min(t.median for t in others)))
        own, their = one.python.values()
        held = "–" if target is None else f"≥ {target:g}: {_held(ratio, target)}"
        yield (
            f"| {one.robot.partition(',')[0]} | `{one.function}` | {one.operations['']} "
            f"| {_us(ours)} | {best} | {_ratio(ratio)} | {held} "
            f"| {_us(own)} | {_us(their)} | {_ratio(own.ratio(their))} |"
        )
    yield ""
    yield "## Robots with gears, belts and loops"
    yield ""
    yield "All methods are compiled by this package. Ratios are to C-RNEA or C-ABA; the cluster"
    yield "paper's own times are in [its page](../papers/clusters.md)."
    yield ""
    yield "| robot | function | method | operations | time | ratio |"
    yield "|---|---|---|---|---|---|"
    for one in closed:
        first, *_ = one.times.values()
        for method, time in one.times.items():
            yield (
                f"| {one.robot.rpartition(', m=')[0]} | `{one.function}` | {method} "
                f"| {one.operations[method]} | {_us(time)} | {_ratio(first.ratio(time))} |"
            )
    yield ""


def _us(time: Timing) -> str:
    return f"{1e6 * time.minimum:.2f} / {1e6 * time.median:.2f}"


def _ratio(ratio: Timing | None) -> str:
    return "–" if ratio is None else f"{ratio.minimum:.1f} / {ratio.median:.1f}"


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
    for case in (*chosen(opened), *chosen_clusters(closed)):
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
        library = pinocchio_cpp.compilation().library()
        if not compilers.find().is_clang:
            notes.append("without clang, with which Pinocchio is faster")
    except AbsentError as error:
        notes.append(f"Pinocchio in C++ is left out: {error}")
    opened, closed, remarks = run(OPEN, CLOSED, 0.5, library)
    day = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    lines = page(opened, closed, [*notes, *remarks], day)
    output.write_text("\n".join(lines), encoding="utf-8")
    print(output)


if __name__ == "__main__":
    main()
