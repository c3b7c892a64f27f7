"""Contact forces beside pyramids and Pinocchio's ADMM: errors of forces, and times from Python.

``python -m benchmarks.friction`` prints errors where a foot of the demo robot slides, and medians
of times on random problems by the solvers of :mod:`benchmarks.contact_problems`, in turns; with
``--kernel`` the times of machine code beside the kernel of G and a0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import friction_kernel
from benchmarks.arguments import parser_of
from benchmarks.contact_problems.generator import ContactProblem
from benchmarks.contact_problems.measure import measured
from delassus import (
    Contact,
    ContactForces,
    DelassusSolver,
    Problem,
    Robot,
    solve_contacts_batch,
)
from delassus.drawing.figures import draw_friction, new_figure, save_for_page
from delassus.drawing.skeleton import Skeleton, completed
from delassus.model.reading.xml import parse_xml
from delassus.robots.built_in import demo_urdf, humanoid

CONTACTS, FRICTION = 4, 0.6


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
    from delassus.drawing.shapes import Shapes

    robot, _, poses = _standing()
    shapes = Shapes.of_urdf(robot, parse_xml(humanoid.humanoid_urdf().encode()), None)
    bones, points, found = standing_humanoid((-0.9, 0.7))
    figure, (axes,) = new_figure(1)
    forces = found.cone_forces.reshape(-1, 3)
    draw_friction(axes, bones, points, forces, FRICTION, shapes.points(poses))
    save_for_page(figure, path)


def _share(found: NDArray[np.float64], exact: NDArray[np.float64]) -> float:
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def main() -> None:
    """Print errors of forces, and the median time of a call of each solver."""
    parser = parser_of(".friction", __doc__)
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
    for name, shares in errors().items():
        median, worst = 100 * np.median(shares), 100 * shares.max()
        print(f"{name:30} force error {median:5.1f} % median, {worst:5.1f} % largest")
    contacts, mu = tuple(f"contact {k}" for k in range(CONTACTS)), np.full(CONTACTS, FRICTION)
    problems = [
        ContactProblem("random", "sliding", contacts, *random_problem(seed), mu)
        for seed in range(options.problems)
    ]
    outcomes = measured(problems, lambda text: None)
    ours = np.median(outcomes["coulomb", "ours, 1e-10"].times)
    for (law, name), outcome in outcomes.items():
        median = np.median(outcome.times)
        print(f"{f'{name}, {law}':30} {1e6 * median:8.1f} us   {median / ours:6.2f} times ours")


if __name__ == "__main__":
    main()
