"""Contact forces beside pyramids and Pinocchio's ADMM: errors of forces, and times from Python.

``python -m benchmarks.friction`` prints errors where a foot of the demo robot slides, and medians
of times of one process, in which the solvers take turns; with ``--kernel`` the times of machine
code beside the kernel of G and a0.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import friction_kernel, timing
from delassus_ros import (
    Contact,
    ContactForces,
    DelassusSolver,
    ForceSolver,
    Problem,
    Robot,
    solve_contacts_batch,
)
from delassus_ros.drawing.figures import draw_friction, new_figure, save_for_page
from delassus_ros.drawing.skeleton import Skeleton, completed
from delassus_ros.model.reading.xml import parse_xml
from delassus_ros.sim import demo_urdf, humanoid

CONTACTS, FRICTION, SIDES = 4, 0.6, 8
SECONDS = 0.02
"""Time of each solver on one problem [s]."""


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


def pyramid_forces(
    G: NDArray[np.float64], a0: NDArray[np.float64], friction: float, sides: int
) -> NDArray[np.float64]:
    """Return the forces under the convex law in inner pyramids, by scipy's least squares.

    With the pyramids' edges V, f = V x, x >= 0 minimises the norm of L' V x + L^-1 a0, G = L L'.
    """
    from scipy.optimize import nnls

    angles = 2 * np.arange(sides) * np.pi / sides
    edges = np.vstack([friction * np.cos(angles), friction * np.sin(angles), np.ones(sides)])
    V, L = np.kron(np.eye(len(a0) // 3), edges), np.linalg.cholesky(G)
    x, _ = nnls(L.T @ V, -np.linalg.solve(L, a0), maxiter=100 * V.shape[1])
    return np.asarray(V @ x)


def sliding_robot(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return G (N, 12, 12) and a0 (N, 12) of the demo robot with random postures and torques."""
    robot = Robot.from_urdf(demo_urdf().encode())
    feet = [Contact(leg, f"{leg}_FOOT") for leg in ("LF", "RF", "LH", "RH")]
    problem = Problem(robot, feet, axes="world", outputs=["a0"])
    random, n = np.random.default_rng(0), len(problem.velocities)
    torques = random.normal(scale=20.0, size=(count, n))
    torques[:, :6] = 0.0
    batch = DelassusSolver(problem).solve_batch(
        np.tile([0.0, 0.7, -1.4], (count, 4)) + random.uniform(-0.3, 0.3, (count, 12)),
        base_orientation=np.tile([0.0, 0.0, 0.0, 1.0], (count, 1)), rates=np.zeros((count, n)),
        torques=torques, gravity=np.tile([0.0, 0.0, -9.81], (count, 1)),
    )  # fmt: skip
    return batch.matrix, batch.output("a0")


def errors(count: int = 200) -> dict[str, NDArray[np.float64]]:
    """Return errors of forces where a foot slides, by name, as shares of the norm of the forces.

    Pyramids are compared with the exact cone under the convex law, the convex law with Coulomb's.
    """
    found: dict[str, list[float]] = {}
    G, a0 = sliding_robot(count)
    coulomb = solve_contacts_batch(G, a0, friction=FRICTION, law="coulomb")
    convex = solve_contacts_batch(G, a0, friction=FRICTION, law="convex")
    for i in range(count):
        f, u = coulomb.forces[i].reshape(-1, 3), coulomb.accelerations[i].reshape(-1, 3)
        if not ((f[:, 2] > 1e-6) & (np.hypot(u[:, 0], u[:, 1]) > 1e-6)).any():
            continue
        found.setdefault("convex law", []).append(_share(convex.forces[i], coulomb.forces[i]))
        for sides in (4, 8, 16):
            near = pyramid_forces(G[i], a0[i], FRICTION, sides)
            found.setdefault(f"{sides} sides", []).append(_share(near, convex.forces[i]))
    return {name: np.array(values) for name, values in found.items()}


def standing_humanoid(
    floor: tuple[float, float],
) -> tuple[list[tuple[Any, Any]], NDArray[np.float64], ContactForces]:
    """Return bones, corners of the soles (8, 3) and forces of the humanoid with locked joints.

    Parameters
    ----------
    floor : acceleration of the floor along x and y, m/s².
    """
    robot, skeleton, poses = _standing()
    x, y = np.array(humanoid.SOLE) / 2
    corners = np.array([(x, y, 0, 1), (x, -y, 0, 1), (-x, y, 0, 1), (-x, -y, 0, 1)])
    points = [corners @ skeleton.frame(poses, frame)[:3].T for frame in humanoid.FEET.values()]
    locked = robot.lock(dict.fromkeys(_moved(robot), 0.0) | humanoid.POSTURE)
    feet = [Contact(name, frame, "surface") for name, frame in humanoid.FEET.items()]
    problem = Problem(locked, feet, axes="world", outputs=["a0"])
    n = len(problem.velocities)
    solution = DelassusSolver(problem).solve(
        locked.neutral(), base_orientation=[0, 0, 0, 1], rates=np.zeros(n), torques=np.zeros(n),
        gravity=[-floor[0], -floor[1], -9.81],
    )  # fmt: skip
    found = solution.contact_forces(FRICTION, dimensions=humanoid.SOLE)
    return skeleton.bones(poses), np.vstack(points), found


def _standing() -> tuple[Robot, Skeleton, NDArray[np.float64]]:
    """Return the humanoid, its skeleton, and the poses of its bodies where it stands."""
    robot = Robot.from_urdf(humanoid.humanoid_urdf().encode())
    q, _ = completed(robot, dict.fromkeys(_moved(robot), 0.0) | humanoid.POSTURE)
    skeleton = Skeleton(robot)
    return robot, skeleton, skeleton.poses(q)


def _moved(robot: Robot) -> list[str]:
    return [joint.name for joint in robot.joints if joint.kind.nq == 1]


def draw(path: Path) -> None:
    """Draw the humanoid on a floor that accelerates, with its forces in friction cones."""
    from delassus_ros.drawing.shapes import Shapes

    robot, _, poses = _standing()
    shapes = Shapes.of_urdf(robot, parse_xml(humanoid.humanoid_urdf().encode()), None)
    bones, points, found = standing_humanoid((-0.9, 0.7))
    figure, (axes,) = new_figure(1)
    forces = found.cone_forces.reshape(-1, 3)
    draw_friction(axes, bones, points, forces, FRICTION, shapes.points(poses))
    save_for_page(figure, path)


def _share(found: NDArray[np.float64], exact: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


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
    """Print errors of forces, and the median time of a call of each solver."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--problems", type=int, default=50, help="number of problems (default: 50)"
    )
    parser.add_argument(
        "--kernel",
        action="store_true",
        help="time only machine code beside the kernel of G and a0",
    )
    parser.add_argument(
        "--picture",
        type=Path,
        help="figure of the forces of a humanoid that is written, instead of times",
    )
    options = parser.parse_args()
    if options.picture:
        draw(options.picture)
        return
    if options.kernel:
        friction_kernel.say()
        return
    problems = [random_problem(seed) for seed in range(options.problems)]
    for name, shares in errors().items():
        median, worst = 100 * np.median(shares), 100 * shares.max()
        print(f"{name:30} force error {median:5.1f} % median, {worst:5.1f} % largest")
    solvers = peers()
    times: dict[str, list[float]] = {name: [] for name in solvers}
    for problem in problems:
        samplers = {
            name: timing.once(partial(solve, *problem), 1) for name, solve in solvers.items()
        }
        for name, found in timing.measure(samplers, SECONDS).items():
            times[name].append(found.minimum)
    ours = statistics.median(next(iter(times.values())))
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:30} {1e6 * median:8.1f} us   {median / ours:6.2f} times the first")


if __name__ == "__main__":
    main()
