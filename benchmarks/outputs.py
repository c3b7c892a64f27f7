"""The quantities of a controller in one call, beside the calls of Pinocchio that compute the same.

``python -m benchmarks.outputs`` counts and times robots and writes ``docs/benchmarks/outputs.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import machine, ours, pinocchio_cpp, timing
from benchmarks.arguments import add_output
from benchmarks.cases import CASES, AbsentError, Case, pool
from benchmarks.pinocchio_model import PinocchioProblem, pinocchio
from benchmarks.timing import Timing, measure, python
from delassus_ros import DelassusSolver, Problem
from delassus_ros.model.spatial import Array
from delassus_ros.samples import random_inputs

ALL = ("J", "JdotV", "M", "MinvJT", "a0", "h", "qdd0")
SETS = {"G": (), "G, a0, JdotV": ("JdotV", "a0"), "all": ALL}
"""Outputs beside G, by what the table calls them."""
CHOSEN = "pv_osimr"
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
        solver = DelassusSolver(own)
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
    samplers = {name: python(call, Q) for name, call in calls.items()}
    theirs = PinocchioProblem(problem)
    n = theirs.model.nv
    theirs.model.gravity.linear = given["gravity"]
    rng = np.random.default_rng(0)
    by_pinocchio = peer(theirs, rng.normal(size=n), rng.normal(size=n))
    q_theirs = theirs.configurations(Q)
    samplers["pin, all"] = python(by_pinocchio.outputs, q_theirs)
    samplers["pin.constraintDynamics"] = python(by_pinocchio.constrained, q_theirs)
    kernels, size = in_c(problem, theirs, Q, given, seconds)
    return Result(case, operations, measure(samplers, seconds), kernels, size)


def in_c(
    problem: Problem,
    theirs: PinocchioProblem,
    Q: Array,
    given: dict[str, Array],
    seconds: float,
) -> tuple[dict[str, Timing], int]:
    """Time the kernel of all outputs, and Pinocchio's routes to them, once they agree.

    Returns the times, and the bytes of the kernel.

    Raises
    ------
    ValueError
        If they do not.
    """
    try:
        library = pinocchio_cpp.compilation().library()
    except AbsentError as error:
        print(f"no kernels: {error}")
        return {}, 0
    own = Problem(problem.robot, problem.contacts, problem.axes, ALL)
    motion = {name: np.tile(given[name], (len(Q), 1)) for name in ("rates", "torques")}
    moving = [theirs.motion(values) for values in motion.values()]
    stated = np.hstack([theirs.configurations(Q), *moving])
    inputs = {**motion, "gravity": np.tile([0.0, 0.0, -9.81], (len(Q), 1)), "q": Q}
    block = np.ascontiguousarray(np.hstack([inputs[port.name] for port in own.inputs]))
    mine = ours.build(own, CHOSEN, block)
    rows, places = problem.contacts.rows, {}
    for port in own.outputs:
        places[port.name] = sum(p.size for p in own.outputs[: len(places)])
    routines = pinocchio_cpp.all_outputs(library, theirs, rows, np.ascontiguousarray(stated))
    routine = timing.Routine(
        mine.routine.address, block, rows, mine.routine.work, keep=mine.routine.keep,
        size=sum(port.size for port in own.outputs),
    )  # fmt: skip
    G = routine.matrix(0)
    a0 = routine.out[places["a0"] : places["a0"] + rows].copy()
    for name, peer_of in routines.items():
        for found, expected in (
            (peer_of.matrix(0), G), (peer_of.out[rows**2 :], a0),
        ):  # fmt: skip
            error = np.linalg.norm(found - expected) / np.linalg.norm(expected)
            if not error < 1e-9:
                raise ValueError(f"{name}: differs by {error:.1e}")
    samplers = {"kernel": timing.warm(routine)}
    samplers |= {name: timing.warm(each) for name, each in routines.items()}
    return measure(samplers, seconds), len(mine.kernel.code)


def page(results: list[Result]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# Benchmark: outputs of a controller in one call"
    yield ""
    yield "Written by `python -m benchmarks.outputs`. *All* is G, J, M⁻¹Jᵀ, M, h, J̇ẏ, a⁰ and the"
    yield "free accelerations; what each is, and how to use it: [controllers](../controllers.md)."
    yield "Agreement with Pinocchio is a matter of the tests (`test_oracles.py`,"
    yield "`test_contact_space.py`)."
    yield ""
    yield from (f"- {line}" for line in (machine.processor(), machine.versions()))
    yield ""
    yield "## Operations"
    yield ""
    yield "| robot | G | G, a0, JdotV | all |"
    yield "|---|---|---|---|"
    for result in results:
        counts = result.operations
        cells = [f"{n} ({n / counts['G']:.2f})" for n in counts.values()]
        yield f"| {result.case.label} | {' | '.join(cells)} |"
    yield ""
    yield "In parentheses as multiples of G alone."
    yield ""
    compared = [result for result in results if result.kernels]
    if compared:
        yield "## The kernel beside Pinocchio's C++"
        yield ""
        yield "All outputs, called in C, in one run: minimum / median [us]. Pinocchio, compiled"
        yield "for this processor: crba, nonLinearEffects, forwardKinematics, contact Jacobians,"
        yield "and M⁻¹ by Eigen's dense LLT or by its own sparse factorisation; G and a⁰ agree to"
        yield "1e-9. Code that the first cache for instructions cannot hold bounds the kernel: its"
        yield "bytes per time are the same for all such robots."
        yield ""
        names = list(compared[0].kernels)
        yield f"| robot | {' | '.join(names)} | better route / kernel | code |"
        yield "|---|" + "---|" * (len(names) + 2)
        for result in compared:
            own, *others = result.kernels.values()
            best = min(each.median for each in others)
            cells = [
                f"{1e6 * t.minimum:.2f} / {1e6 * t.median:.2f}" for t in result.kernels.values()
            ]
            size = result.code_size
            code = f"{size / 1024:.0f} KiB, {1e-9 * size / own.median:.0f} B/ns"
            ratio = f"{best / own.median:.1f}"
            yield f"| {result.case.label} | {' | '.join(cells)} | {ratio} | {code} |"
        yield ""
    yield "## Times from Python"
    yield ""
    yield "Minimum / median [us], each call at another of 16 configurations, contenders in turns."
    yield "Pinocchio: crba, nle, aba, joint Jacobians, frame accelerations twice, computeMinverse"
    yield "and the products; and constraintDynamics with contacts that hold, in one iteration."
    yield ""
    names = list(results[0].times)
    yield f"| robot | {' | '.join(names)} | all | constrained |"
    yield "|---|" + "---|" * (len(names) + 2)
    for result in results:
        times = result.times
        cells = [f"{1e6 * t.minimum:.2f} / {1e6 * t.median:.2f}" for t in times.values()]
        ratios = [
            times[a].median / times[b].median
            for a, b in (
                ("pin, all", "bound, all"),
                ("pin.constraintDynamics", "bound.constrained_dynamics"),
            )
        ]
        yield f"| {result.case.label} | {' | '.join(cells)} | {ratios[0]:.1f} | {ratios[1]:.1f} |"
    yield ""
    yield "The last two columns are ratios of the median times of Pinocchio and of this package."
    yield ""


def main() -> None:
    """Run the cases and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robots", metavar="NAME,…", default="", help="robots (default: all)")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="time of each routine [s] (default: 1)"
    )
    add_output(parser, OUTPUT)
    options = parser.parse_args()
    wanted = options.robots.split(",") if options.robots else [case.name for case in CASES]
    results = []
    for case in CASES:
        if case.name in wanted:
            try:
                results.append(measured(case, options.seconds))
            except AbsentError as error:
                print(f"{case.label}: {error}")
    options.output.write_text("\n".join(page(results)), encoding="utf-8")
    print(options.output)


if __name__ == "__main__":
    main()
