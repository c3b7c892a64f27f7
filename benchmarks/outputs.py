"""All that a controller needs in one call, beside the calls of Pinocchio that give the same.

``python -m benchmarks.outputs`` counts and times robots and writes ``docs/benchmarks/outputs.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import machine
from benchmarks.cases import CASES, AbsentError, Case, pool
from benchmarks.pinocchio_model import PinocchioProblem, pinocchio
from benchmarks.timing import Timing, measure, python
from delassus_ros import DelassusSolver, Problem
from delassus_ros.model.spatial import Array
from delassus_ros.samples import random_inputs

ALL = ("J", "JdotV", "M", "MinvJT", "a0", "h", "qdd0")
SETS = {"G": (), "G, a0, JdotV": ("JdotV", "a0"), "all": ALL}
"""Outputs beside G, by what the table calls them."""
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
    """What was found for a robot.

    Attributes
    ----------
    operations : of a call, by the names of :data:`SETS`.
    times : by routine.
    """

    case: Case
    operations: dict[str, int]
    times: dict[str, Timing]


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
    return Result(case, operations, measure(samplers, seconds))


def page(results: list[Result]) -> Iterator[str]:
    """Yield the lines of the page."""
    yield "# All that a controller needs, in one call"
    yield ""
    yield "Written by `python -m benchmarks.outputs`. *All* is G, J, M⁻¹Jᵀ, M, h, J̇ẏ, a⁰ and the"
    yield "free accelerations; what each is, and how to use it: [controllers](../controllers.md)."
    yield "Agreement with Pinocchio is a matter of the tests (`test_motion.py`,"
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
    yield "The last two columns are how many times longer Pinocchio takes, by median."
    yield ""


def main() -> None:
    """Run the cases and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robots", metavar="NAME,…", default="", help="cases (default: all)")
    parser.add_argument("--seconds", type=float, default=1.0, help="per routine (default: 1)")
    parser.add_argument("--out", type=Path, default=OUTPUT, help="the page")
    options = parser.parse_args()
    wanted = options.robots.split(",") if options.robots else [case.name for case in CASES]
    results = []
    for case in CASES:
        if case.name in wanted:
            try:
                results.append(measured(case, options.seconds))
            except AbsentError as error:
                print(f"{case.label}: {error}")
    options.out.write_text("\n".join(page(results)), encoding="utf-8")
    print(options.out)


if __name__ == "__main__":
    main()
