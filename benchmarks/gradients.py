"""Operations and times of derivatives of G, beside differences and Pinocchio, in one run.

``python -m benchmarks.gradients`` prints the two tables of ``docs/gradients.md``. Times are the
least of calls from Python, contenders in turns: bound solvers of G, of G with vjp, and of ∂G/∂y
in closed form, whose G is compared first; then central differences by one call of ``solve_batch``
with 2 nq configurations, and Pinocchio's constraint dynamics with their derivatives, which give
∂q̈ and ∂λ in q, rates and torques instead of ∂G/∂q.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks import cases, ours
from benchmarks.arguments import add_cases, parser_of
from benchmarks.compare import compare, from_python
from benchmarks.pages import table
from benchmarks.pinocchio_peer import PinocchioProblem, pinocchio
from benchmarks.timing import Timing
from delassus import DelassusSolver, Problem
from delassus.gradients import Gradients
from delassus.model.spatial import Array

NAMES = "panda,ur5,anymal,go1,talos,atlas24"
SECONDS = 0.5
STEP = 1e-6
"""Step of the central differences [rad, m]."""
Call = Callable[[Array], object]


def counts(problem: Problem) -> list[int]:
    """Return the operations of G, and of G with vjp, with jvp and with dG."""
    variants = (("G",), ("G", "q_bar"), ("G", "G_dot"), ("dG",))
    return [
        ours.operations(
            Problem(problem.robot, problem.contacts, outputs=outputs), "pv_osimr"
        ).total
        for outputs in variants
    ]


def differences(problem: Problem) -> Call:
    """Return central differences of G by one call of the batch kernel."""
    solver, n = DelassusSolver(problem), problem.robot.nq
    steps = STEP * np.vstack([np.eye(n), -np.eye(n)])

    def call(q: Array) -> Array:
        G = solver.solve_batch(q + steps).matrix
        slopes: Array = (G[:n] - G[n:]) / (2 * STEP)
        return slopes

    return call


def by_pinocchio(problem: Problem) -> Call:
    """Return Pinocchio's constraint dynamics and their derivatives at rest, of its own q."""
    pin, peer = pinocchio(), PinocchioProblem(problem)
    model, data = peer.model, peer.model.createData()
    contacts, found = peer.contacts, peer.contact_data
    settings = pin.ProximalSettings(1e-12, 1e-6, 1)
    pin.initConstraintDynamics(model, data, contacts, found)
    rest = np.zeros(model.nv)

    def call(q: Array) -> None:
        at = peer.configurations(q[None])[0]
        pin.constraintDynamics(model, data, at, rest, rest, contacts, found, settings)
        pin.computeConstraintDynamicsDerivatives(model, data, contacts, found, settings)

    return call


def times(where: str, problem: Problem, seconds: float) -> dict[str, Timing]:
    """Return the times of calls from Python, `seconds` per contender."""
    gradients, pool = Gradients(problem), cases.pool(problem)
    products = gradients.solver("q_bar").bind()
    m = problem.contacts.rows
    products.inputs["G_bar"][:] = np.random.default_rng(0).normal(size=(m, m))
    bound = {
        "G": DelassusSolver(problem).bind(),
        "vjp": products,
        "dG": gradients.solver("dG").bind(),
    }
    contenders = {
        name: from_python(solver.solve, pool, lambda solution: [solution.matrix])
        for name, solver in bound.items()
    }
    contenders["differences"] = from_python(differences(problem), pool)
    contenders["Pinocchio"] = from_python(by_pinocchio(problem), pool)
    return compare(where, contenders, seconds)


def main() -> None:
    """Print the tables."""
    parser = parser_of(".gradients", __doc__)
    add_cases(parser, cases.CASES, NAMES)
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="time of each contender [s] (%(default)s)"
    )
    options = parser.parse_args()
    loaded = {case.label: case.load() for case in options.robots}
    rows = []
    for label, problem in loaded.items():
        G, *others = counts(problem)
        cells = [f"{count} ({count / G:.2f})" for count in others]
        rows.append([label, str(len(problem.velocities)), str(G), *cells])
    print(table(["robot, contacts", "n", "G", "with vjp", "with jvp", "dG"], rows))
    found = {label: times(label, problem, options.seconds) for label, problem in loaded.items()}
    names = next(iter(found.values()))
    rows = [
        [label, *(f"{1e6 * each.minimum:.2f}" for each in by_name.values())]
        for label, by_name in found.items()
    ]
    print(f"\n{table(['[us]', *names], rows)}")


if __name__ == "__main__":
    main()
