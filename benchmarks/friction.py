"""Time of contact forces beside Pinocchio's ADMM and a pyramid by daqp, called from Python.

``python -m benchmarks.friction`` prints medians of one process, in which all take turns.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from delassus_ros import ForceSolver

CONTACTS, FRICTION, SIDES = 4, 0.6, 8
ROUNDS = 40


def random_problem(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return G (12, 12) and a0 (12,) of four points that fall and slide."""
    random = np.random.default_rng(seed)
    J = random.normal(size=(12, 18))
    G = J @ J.T / 18
    return 0.5 * (G + G.T), J @ random.normal(size=18)


def pyramid(sides: int, friction: float, contacts: int) -> NDArray[np.float64]:
    """Return A with A f <= 0 for forces in the inner pyramids with so many sides."""
    angles = (2 * np.arange(sides) + 1) * np.pi / sides
    block = np.column_stack([
        np.cos(angles), np.sin(angles), np.full(sides, -friction * np.cos(np.pi / sides)),
    ])  # fmt: skip
    return np.kron(np.eye(contacts), block)


def peers() -> dict[str, Callable[[Any, Any], Any]]:
    """Return the solvers that are installed, by name."""
    found: dict[str, Callable[[Any, Any], Any]] = {}
    for tolerance in (1e-10, 1e-6):
        solver = ForceSolver(["point"] * CONTACTS, FRICTION, law="coulomb", tolerance=tolerance)
        found[f"ForceSolver.solve, {tolerance:g}"] = solver.solve
    try:
        import daqp

        A = pyramid(SIDES, FRICTION, CONTACTS)
        upper, lower = np.zeros(len(A)), np.full(len(A), -1e30)
        sense = np.zeros(len(A), np.int32)
        found[f"daqp, {SIDES} sides"] = lambda G, a0: daqp.solve(G, a0, A, upper, lower, sense)
    except ImportError:
        print("daqp is not installed")
    try:
        import pinocchio as pin

        for tolerance in (1e-10, 1e-6):
            found[f"Pinocchio ADMM, {tolerance:g}"] = _admm(pin, tolerance)
    except (ImportError, AttributeError):
        print("no Pinocchio with ADMMConstraintSolver is installed")
    return found


def _admm(pin: Any, tolerance: float) -> Callable[[Any, Any], Any]:
    model = pin.buildSampleModelHumanoidRandom()
    models, data = pin.StdVec_ConstraintModel(), pin.StdVec_ConstraintData()
    for _ in range(CONTACTS):
        point = pin.PointContactConstraintModel(model, 1)
        point.setFriction(FRICTION)
        models.append(pin.ConstraintModel(point))
        data.append(models[len(models) - 1].createData())
    settings, result = pin.ADMMSolverSettings(), pin.ADMMSolverResult()
    for name in ("feasibility", "complementarity"):
        setattr(settings, f"relative_{name}_tol", tolerance)
        setattr(settings, f"absolute_{name}_tol", 1e-2 * tolerance)
    settings.max_iterations, settings.solve_ncp = 5000, True

    def solve(G: Any, a0: Any) -> Any:
        # A solver per problem: one that is used twice begins with the forces of the first.
        return pin.ADMMConstraintSolver(3 * CONTACTS).solve(
            pin.DelassusOperatorDense(G), a0, models, data, settings, result
        )

    return solve


def main() -> None:
    """Print the median time of a call of each solver."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=50)
    problems = [random_problem(seed) for seed in range(parser.parse_args().problems)]
    solvers = peers()
    times: dict[str, list[float]] = {name: [] for name in solvers}
    for G, a0 in problems:
        best = dict.fromkeys(solvers, np.inf)
        for _ in range(ROUNDS):
            for name, solve in solvers.items():
                solve(G, a0)
                start = time.perf_counter()
                solve(G, a0)
                best[name] = min(best[name], time.perf_counter() - start)
        for name, seconds in best.items():
            times[name].append(seconds)
    ours = statistics.median(next(iter(times.values())))
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:30} {1e6 * median:8.1f} us   {median / ours:6.2f} times the first")


if __name__ == "__main__":
    main()
