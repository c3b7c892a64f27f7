"""Operations and times of derivatives of G, beside differences and Pinocchio, in one run.

``python -m benchmarks.gradients`` prints the two tables of ``docs/gradients.md``. Times are the
least processor times of calls from Python, in interleaved rounds: bound solvers of G, of G with
vjp, and of ∂G/∂y in closed form; then central differences by one call of ``solve_batch`` with 2 nq
configurations, and Pinocchio's constraint dynamics with their derivatives, which give ∂q̈ and ∂λ
in q, rates and torques instead of ∂G/∂q.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from benchmarks import cases, ours
from benchmarks.pinocchio_model import PinocchioProblem, pinocchio
from delassus_ros import BoundSolver, DelassusSolver, Problem
from delassus_ros.gradients import Gradients
from delassus_ros.model.spatial import Array

NAMES = ("panda", "ur5", "anymal", "go1", "talos", "atlas24")
ROUNDS = 30
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


def calls(problem: Problem) -> dict[str, Call]:
    """Return what is timed, by name."""
    gradients = Gradients(problem)
    products = gradients.solver("q_bar").bind()
    m = problem.contacts.rows
    products.inputs["G_bar"][:] = np.random.default_rng(0).normal(size=(m, m))

    def bound(solver: BoundSolver) -> Call:
        return lambda q: solver.solve(q)

    return {
        "G": bound(DelassusSolver(problem).bind()),
        "vjp": bound(products),
        "dG": bound(gradients.solver("dG").bind()),
        "differences": differences(problem),
        "Pinocchio": by_pinocchio(problem),
    }


def times(problem: Problem, rounds: int) -> dict[str, float]:
    """Return the least processor time per call [s], of rounds through a pool of configurations."""
    pool, timed = [*cases.pool(problem)], calls(problem)
    least = dict.fromkeys(timed, float("inf"))
    for _ in range(rounds):
        for name, call in timed.items():
            start = time.process_time()
            for q in pool:
                call(q)
            least[name] = min(least[name], (time.process_time() - start) / len(pool))
    return least


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.gradients", description=(__doc__ or "").partition("\n")[0]
    )
    names = [case.name for case in cases.CASES]
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"among {', '.join(names)}")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="rounds of calls (%(default)s)")
    options = parser.parse_args()
    chosen = [case for case in cases.CASES if case.name in (options.cases or NAMES)]
    loaded = {case.label: case.load() for case in chosen}
    print("| robot, contacts | n | G | with vjp | with jvp | dG |\n|---|---|---|---|---|---|")
    for label, problem in loaded.items():
        G, *others = counts(problem)
        cells = " | ".join(f"{count} ({count / G:.2f})" for count in others)
        print(f"| {label} | {len(problem.velocities)} | {G} | {cells} |", flush=True)
    print("\n| [us] | G | vjp | dG | differences | Pinocchio |\n|---|---|---|---|---|---|")
    for label, problem in loaded.items():
        cells = " | ".join(f"{1e6 * t:.2f}" for t in times(problem, options.rounds).values())
        print(f"| {label} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
