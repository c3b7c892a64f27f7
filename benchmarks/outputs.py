"""The quantities of a controller in one call, beside the calls of Pinocchio that compute the same.

``python -m benchmarks.outputs`` counts and times robots and writes ``docs/benchmarks/outputs.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmarks import ours, pages, pinocchio_peer
from benchmarks.arguments import add_cases, add_output, parser_of
from benchmarks.cases import CASES, AbsentError, Case, pool
from benchmarks.compare import Contender, compare, from_python
from benchmarks.compare import in_c as compared_in_c
from benchmarks.pages import Places, cell, made_on, table
from benchmarks.pinocchio_peer import PinocchioProblem, pinocchio
from benchmarks.timing import Routine, Timing
from delassus import DelassusSolver, Problem
from delassus.model.spatial import Array
from delassus.samples import random_inputs

ALL = ("J", "JdotV", "M", "MinvJT", "a0", "h", "qdd0")
SETS = {"G": (), "G, a0, JdotV": ("JdotV", "a0"), "all": ALL}
"""Outputs beside G, by what the table calls them."""
CHOSEN = "auto"
DYNAMICS = ("MinvJT", "a0", "qdd0")
OUTPUT = Path(__file__).parents[1] / "docs" / "benchmarks" / "outputs.md"
_POOL = 16


@dataclass(frozen=True)
class Peer:
    """The same by Pinocchio from Python, with everything that can be made once made once.

    Attributes
    ----------
    outputs : takes Pinocchio's q; G, J, M, h, M⁻¹Jᵀ and accelerations of contacts.
    constrained : the same for accelerations under contacts that hold.
    """

    outputs: Callable[[Array], object]
    constrained: Callable[[Array], Array]


def peer(problem: PinocchioProblem, rates: Array, torques: Array) -> Peer:
    """Return Pinocchio's calls at these rates and torques, in its order of joints."""
    pin = pinocchio()
    model, other = problem.model, problem.model.createData()
    contacts, contact_data = problem.contacts, problem.contact_data
    ids = [
        model.addFrame(
            pin.Frame(
                f"contact {k}", contact.joint1_id, 0, contact.joint1_placement,
                pin.FrameType.OP_FRAME,
            )
        )
        for k, contact in enumerate(contacts)
    ]  # fmt: skip
    data = model.createData()
    sizes = [3 if contact.type == pin.ContactType.CONTACT_3D else 6 for contact in contacts]
    still = np.zeros(model.nv)
    pin.initConstraintDynamics(model, other, contacts, contact_data)
    settings = pin.ProximalSettings(1e-12, 0.0, 1)

    def outputs(q: Array) -> tuple[Array, ...]:
        M = pin.crba(model, data, q)
        h = pin.nle(model, data, q, rates)
        free = pin.aba(model, data, q, rates, torques)
        pin.computeJointJacobians(model, data, q)
        pin.forwardKinematics(model, data, q, rates, free)
        pin.updateFramePlacements(model, data)
        J = np.vstack(
            [
                pin.getFrameJacobian(model, data, k, pin.LOCAL)[:size]
                for k, size in zip(ids, sizes, strict=True)
            ]
        )
        a0 = [pin.getFrameAcceleration(model, data, k, pin.LOCAL) for k in ids]
        pin.forwardKinematics(model, data, q, rates, still)
        JdotV = [pin.getFrameAcceleration(model, data, k, pin.LOCAL) for k in ids]
        response = pin.computeMinverse(model, data, q) @ J.T
        return J @ response, J, M, h, response, np.array(a0), np.array(JdotV)

    def constrained(q: Array) -> Array:
        found: Array = pin.constraintDynamics(
            model, other, q, rates, torques, contacts, contact_data, settings
        )
        return found

    return Peer(outputs, constrained)


@dataclass(frozen=True)
class Result:
    """Measurements of a robot.

    Attributes
    ----------
    operations : of a call, by the names of :data:`SETS`.
    times : by routine, called from Python.
    kernels : by routine, called in C: ours, and routes of Pinocchio in C++; empty without a
        compiler.
    code_size : bytes of our kernel.
    """

    case: Case
    operations: dict[str, int]
    times: dict[str, Timing]
    kernels: dict[str, Timing]
    code_size: int


def measured(case: Case, seconds: float) -> Result:
    """Count and time a robot."""
    problem = case.load()
    operations: dict[str, int] = {}
    calls: dict[str, Callable[[Array], object]] = {}
    given: dict[str, Array] = {}
    for name, outputs in (*SETS.items(), ("constrained", DYNAMICS)):
        own = Problem(problem.robot, problem.contacts, problem.axes, outputs)
        solver = DelassusSolver(own, CHOSEN)
        bound = solver.bind()
        for port, values in random_inputs(own, 0).items():
            if port != "q":
                # The same for all of them, whatever else they take.
                bound.inputs[port] = given.setdefault(port, values)
        if name == "constrained":
            calls["bound.constrained_dynamics"] = lambda q, bound=bound: (
                bound.solve(q), bound.constrained_dynamics(),
            )  # fmt: skip
            continue
        operations[name] = 0 if solver.operations is None else solver.operations.total
        calls[f"bound, {name}"] = bound.solve
    Q = pool(problem, _POOL)
    theirs = PinocchioProblem(problem)
    n = theirs.model.nv
    theirs.model.gravity.linear = given["gravity"]
    rng = np.random.default_rng(0)
    by_pinocchio = peer(theirs, rng.normal(size=n), rng.normal(size=n))
    q_theirs = theirs.configurations(Q)
    timed = {name: from_python(call, Q) for name, call in calls.items()}
    timed["pin, all"] = from_python(by_pinocchio.outputs, q_theirs)
    timed["pin.constraintDynamics"] = from_python(by_pinocchio.constrained, q_theirs)
    states = {name: np.tile(given[name], (len(Q), 1)) for name in ("rates", "torques")} | {"q": Q}
    own = Problem(problem.robot, problem.contacts, problem.axes, ALL)
    kernels, size = in_c(case.label, own, states, seconds)
    return Result(case, operations, compare(case.label, timed, seconds), kernels, size)


def in_c(
    where: str, problem: Problem, states: Mapping[str, Array], seconds: float
) -> tuple[dict[str, Timing], int]:
    """Time the kernel of all outputs of a problem, and Pinocchio's routes to all outputs.

    Returns the times, and the bytes of the kernel; neither without a compiler.

    Parameters
    ----------
    where : label of the robot.
    problem : with the output a0.
    states : q, rates and torques, each (count, size).

    Raises
    ------
    WrongResultError
        If G or a0 differ.
    """
    try:
        parts = pinocchio_peer.OUTPUTS_PART
        library = pinocchio_peer.compilation(parts).library(print)
    except AbsentError as error:
        print(f"no kernels: {error}")
        return {}, 0
    theirs, count = PinocchioProblem(problem), len(states["q"])
    inputs = {**states, "gravity": np.tile([0.0, 0.0, -9.81], (count, 1))}
    block = np.ascontiguousarray(np.hstack([inputs[port.name] for port in problem.inputs]))
    moving = [theirs.motion(states[name]) for name in ("rates", "torques")]
    stated = np.ascontiguousarray(np.hstack([theirs.configurations(states["q"]), *moving]))
    mine, rows = ours.build(problem, CHOSEN, block), problem.contacts.rows
    sizes = {port.name: port.size for port in problem.outputs}
    names = list(sizes)
    first = sum(sizes[name] for name in names[: names.index("a0")])
    kernel = replace(mine.routine, size=sum(sizes.values()))
    contenders = {"kernel": _contender(kernel, first)}
    size = rows * (rows + 1)
    routines = pinocchio_peer.routines(
        library, theirs, rows, stated, pinocchio_peer.ALL, size
    )
    contenders |= {name: _contender(each, rows**2) for name, each in routines.items()}
    return compare(where, contenders, seconds), len(mine.kernel.code)


def _contender(routine: Routine, first: int) -> Contender:
    """Return a routine whose G and a0 are compared; `first` is the place of a0."""

    def results(i: int) -> list[Array]:
        G = routine.matrix(i)
        return [G, routine.out[first : first + routine.rows].copy()]

    return compared_in_c(routine, results)


def places(results: Sequence[Result]) -> Places:
    """Return the results of the page by place."""
    counts = [
        [r.case.label, *(f"{n} ({n / r.operations['G']:.2f})" for n in r.operations.values())]
        for r in results
    ]
    compared = [result for result in results if result.kernels]
    kernels = [*next((each.kernels for each in compared), []), "better route / kernel", "code"]
    times = [*results[0].times, "all", "constrained"]
    return {
        "run": made_on(),
        "operations": table(["robot", *SETS], counts),
        "kernels": table(["robot", *kernels], map(_kernel_row, compared)),
        "times": table(["robot", *times], map(_times_row, results)),
    }


def _kernel_row(result: Result) -> list[str]:
    own, *others = result.kernels.values()
    ratio = min(each.median for each in others) / own.median
    size = result.code_size
    code = f"{size / 1024:.0f} KiB, {1e-9 * size / own.median:.0f} B/ns"
    return [result.case.label, *map(cell, result.kernels.values()), f"{ratio:.1f}", code]


def _times_row(result: Result) -> list[str]:
    times = result.times
    ratios = [times[a].median / times[b].median for a, b in _COMPARED.items()]
    return [result.case.label, *map(cell, times.values()), *(f"{ratio:.1f}" for ratio in ratios)]


_COMPARED = {
    "pin, all": "bound, all",
    "pin.constraintDynamics": "bound.constrained_dynamics",
}
"""Names of ours by those of Pinocchio's."""

def main() -> None:
    """Run the cases and write the page."""
    parser = parser_of(".outputs", __doc__)
    add_cases(parser, CASES)
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="time of each routine [s] (default: 1)"
    )
    add_output(parser, OUTPUT)
    options = parser.parse_args()
    results = []
    for case in options.robots:
        try:
            results.append(measured(case, options.seconds))
        except AbsentError as error:
            print(f"{case.label}: {error}")
    pages.write(options.output, "benchmarks/outputs", places(results))
    print(options.output)


if __name__ == "__main__":
    main()
