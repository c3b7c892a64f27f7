"""The order of elimination: exact, no fill where there need be none, linear growth."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import robots
from cluster_robots import coupled
from numpy.typing import ArrayLike

import delassus.testing.mpmath_numbers  # noqa: F401 (mpmath numbers as scalars)
from delassus import Robot
from delassus.dynamics import Dynamics
from delassus.errors import NumericalError
from delassus.measured import (
    Accelerometer,
    ExternalWrench,
    JointAcceleration,
    JointTorque,
    Measurement,
    SparseDynamics,
)
from delassus.measured.quantities import Quantity
from delassus.measured.system import Equation, System
from delassus.model import WORLD
from delassus.rbda.symmetric_system import SymmetricSystem
from delassus.robots.built_in.humanoid import FEET, humanoid_urdf
from delassus.testing import random_problem


def chain(n: int) -> Robot:
    """Return a serial chain on the world whose axes turn from joint to joint."""
    links = "".join(
        f"<link name='l{k}'><inertial><origin xyz='0.1 0.02 0.05'/><mass value='{1 + 0.1 * k}'/>"
        "<inertia ixx='0.02' ixy='0.001' ixz='0' iyy='0.03' iyz='0.002' izz='0.025'/>"
        "</inertial></link>"
        for k in range(n)
    )
    joints = "".join(
        f"<joint name='j{k}' type='revolute'><parent link='{f'l{k - 1}' if k else 'base'}'/>"
        f"<child link='l{k}'/><origin xyz='0.2 0 0.1' rpy='0.9 0 0'/><axis xyz='0 0 1'/>"
        "<limit effort='1' velocity='1' lower='-3' upper='3'/></joint>"
        for k in range(n)
    )
    text = f"<robot name='chain'><link name='base'/>{links}{joints}</robot>"
    return Robot.from_urdf(text.encode(), "fixed")


def refined(rows: list[dict[int, mpmath.mpf]], right: np.ndarray) -> np.ndarray:
    """Solve linear equations in float64, again and again for what is left at full precision."""
    floats = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        for j, a in row.items():
            floats[i, j] = a
    inverse = np.linalg.inv(floats)
    solved = np.full(right.shape, mpmath.mpf(0), dtype=object)
    for _ in range(40):
        left = right - np.array([sum(a * solved[j] for j, a in row.items()) for row in rows])
        if max(map(abs, left.flat)) < 1e-42 * max(map(abs, right.flat)):
            return solved
        solved = solved + inverse @ left.astype(float)
    raise AssertionError("the refinement does not converge")


def dense_at_50_digits(
    robot: Robot, known: dict[Quantity, tuple[float, ArrayLike]], wanted: Quantity,
    q: np.ndarray, rates: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Return wanted values and covariance by dense least squares with exact constraints."""
    system = System(robot, [*known, wanted])
    with mpmath.workdps(50):
        numbers = {"q": q, "rates": rates, "gravity": np.array([0.0, 0.0, -9.81])}
        x = {name: [mpmath.mpf(v) for v in value.tolist()] for name, value in numbers.items()}
        instant = system.at(x)
        exact: list[Equation] = list(instant.equations())
        if system.spanning.tree.links[0].motion == "free":
            exact += [Equation({k: 1.0}, 0.0) for k in system.columns.torques[:6]]
        noisy: list[tuple[Equation, float]] = []
        for quantity, (sigma, values) in known.items():
            for (row, constant), y in zip(
                instant.reading(quantity), np.ravel(values).tolist(), strict=True
            ):
                equation = Equation(row, constant - mpmath.mpf(y))
                if sigma:
                    noisy.append((equation, sigma))
                else:
                    exact.append(equation)
        n = system.columns.size
        rows: list[dict[int, mpmath.mpf]] = [{} for _ in range(n + len(exact))]
        reading = instant.reading(wanted)
        right = np.full((len(rows), 1 + len(reading)), mpmath.mpf(0), dtype=object)

        def add(i: int, j: int, value: mpmath.mpf) -> None:
            rows[i][j] = rows[i].get(j, 0) + value

        for equation, sigma in noisy:
            w = 1 / mpmath.mpf(sigma) ** 2
            for i, a in equation.row.items():
                right[i, 0] -= w * a * equation.constant
                for j, b in equation.row.items():
                    add(i, j, w * a * b)
        for k, equation in enumerate(exact, start=n):
            right[k, 0] = -equation.constant
            for i, a in equation.row.items():
                add(i, k, a)
                add(k, i, a)
        for k, equation in enumerate(reading, start=1):
            for i, a in equation.row.items():
                right[i, k] = a
        solved = refined(rows, right)
        values = [
            sum((a * solved[i, 0] for i, a in eq.row.items()), eq.constant) for eq in reading
        ]
        spread = [[sum(a * solved[i, k + 1] for i, a in eq.row.items())
                   for k in range(len(reading))] for eq in reading]  # fmt: skip
        return np.array(values, dtype=float), np.array(spread, dtype=float)


@pytest.mark.parametrize("case", ["chain", "geared", "tree"])
def test_estimates_agree_with_least_squares_at_50_digits(case: str) -> None:
    if case == "chain":
        robot = chain(4)
    elif case == "geared":
        robot = Robot.from_urdf(robots.shared("grbda_mit_humanoid_leg"), "fixed")
    else:
        robot = random_problem(2).robot
    rng = np.random.default_rng(3)
    dynamics = Dynamics(robot)
    q, rates = coupled(robot, rng.uniform(-1, 1, robot.nq)), rng.normal(size=dynamics.size)
    joints = list(dict.fromkeys(dynamics.joints))
    frame = sorted(name for name, f in robot.frames.items() if f.body != WORLD)[-1]
    sizes = dynamics._tree.columns_by_joint
    known: dict[Quantity, tuple[float, ArrayLike]] = {}
    for number, joint in enumerate(joints):
        known[JointAcceleration(joint)] = (
            0.0 if number % 3 == 2 else 0.7,
            rng.normal(size=len(sizes[joint])),
        )
        if robot.base == "fixed" or number:
            known[JointTorque(joint)] = 0.3, rng.normal(size=len(sizes[joint]))
    known[ExternalWrench(frame, (0, 1, 2))] = 2.0, rng.normal(size=3)
    known[Accelerometer(frame)] = 0.05, rng.normal(size=3)
    wanted = ExternalWrench(frame)
    measured = [Measurement(quantity, sigma) for quantity, (sigma, _) in known.items()]
    known_moments = ExternalWrench(frame, (3, 4, 5))
    known[known_moments] = 1.0, rng.normal(size=3)
    measured.append(Measurement(known_moments, 1.0))
    system = SparseDynamics(robot, measured, [wanted])
    found = system.solve(q, rates, {k: v for k, (_, v) in known.items()})
    values, spread = dense_at_50_digits(robot, known, wanted, q, rates)
    assert np.linalg.norm(found.values[wanted] - values) < 1e-10 * np.linalg.norm(values)
    assert np.linalg.norm(found.covariances[wanted] - spread) < 1e-10 * np.linalg.norm(spread)


def of_all(robot: Robot, kind: type) -> list:
    return [kind(joint) for joint in dict.fromkeys(Dynamics(robot).joints)]


def counted(robot: Robot, known: type, wanted: type) -> int:
    measured = [Measurement(quantity) for quantity in of_all(robot, known)]
    if robot.base == "floating" and known is JointTorque:
        measured = measured[1:]
    system = SparseDynamics(robot, measured, of_all(robot, wanted), covariances=False)
    return system.operations.total


def test_inverse_dynamics_is_triangular_and_costs_what_c_rnea_does() -> None:
    robot = Robot.from_urdf(humanoid_urdf().encode())
    own = Dynamics(robot).operations("inverse").total
    count = counted(robot, JointAcceleration, JointTorque)
    assert own <= count <= 1.02 * own


def test_operations_grow_linearly_with_the_number_of_links() -> None:
    for known, wanted in ((JointAcceleration, JointTorque), (JointTorque, JointAcceleration)):
        each = [counted(chain(n), known, wanted) for n in (6, 12, 24)]
        assert each[2] - each[1] == pytest.approx(2 * (each[1] - each[0]), rel=0.02)


def test_orders_are_the_same_every_time_and_part_of_the_key() -> None:
    robot = chain(3)
    asked = of_all(robot, JointAcceleration)
    known = [Measurement(quantity) for quantity in of_all(robot, JointTorque)]
    first, again = (SparseDynamics(robot, known, asked) for _ in range(2))
    assert first.order == again.order and first._key() == again._key()
    other = SparseDynamics(robot, [Measurement(m.quantity, 0.1) for m in known[:1]] + known[1:],
                           asked)  # fmt: skip
    assert other._key() != first._key()


def test_where_what_is_known_is_not_enough_a_status_says_so() -> None:
    """All but the moments about the normals of two soles: too little where these are parallel."""
    robot = Robot.from_urdf(humanoid_urdf().encode())
    dynamics = Dynamics(robot)
    base, *joints = dict.fromkeys(dynamics.joints)
    accelerations = [Measurement(JointAcceleration(joint)) for joint in (base, *joints)]
    cells = [Measurement(ExternalWrench(sole, (0, 1, 2, 3, 4)), 1.0) for sole in FEET.values()]
    system = SparseDynamics(robot, [*accelerations, *cells], [JointTorque("left_thigh_joint")])
    values = {m.quantity: np.zeros(6 if m.quantity == accelerations[0].quantity else 1)
              for m in accelerations}  # fmt: skip
    values |= {m.quantity: np.zeros(5) for m in cells}
    bent = np.random.default_rng(0).uniform(-0.3, 0.3, robot.nq)
    assert system.solve(bent, np.zeros(36), values).values
    with pytest.raises(NumericalError, match="not sufficient at this configuration"):
        system.solve(np.zeros(robot.nq), np.zeros(36), values)


@pytest.mark.parametrize("seed", range(6))
def test_what_is_left_the_solution_and_the_inverse_are_those_of_dense_algebra(seed: int) -> None:
    rng, n = np.random.default_rng(seed), 10
    Z = rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < 0.7)
    Z = np.triu(Z) + np.triu(Z, 1).T
    Z[[1, 3], [1, 3]] = 0.0
    Z[0, 1] = Z[1, 0] = 1.0
    Z[2, 3] = Z[3, 2] = 2.0
    Z[[4, 6, 7], [4, 6, 7]] = 5.0
    r = rng.normal(size=n)
    system = SymmetricSystem()
    for i in range(n):
        for j in range(i, n):
            if Z[i, j]:
                system.add(i, j, float(Z[i, j]))
        system.add_right(i, float(r[i]))
    for pivot in ((0, 1), (3, 2), (4,), (6, 7), (5,)):
        system.eliminate(pivot)
    left = [8, 9]
    gone = list(range(8))
    schur = Z[np.ix_(left, left)] - Z[np.ix_(left, gone)] @ np.linalg.solve(
        Z[np.ix_(gone, gone)], Z[np.ix_(gone, left)]
    )
    found = [[system.rows[i].get(j, 0.0) for j in left] for i in left]
    np.testing.assert_allclose(found, schur, rtol=1e-9, atol=1e-9)
    system.eliminate((9, 8))
    x = [system.solution(k) for k in range(n)]
    np.testing.assert_allclose(x, np.linalg.solve(Z, r), rtol=1e-9, atol=1e-9)
    inverse = [[system.inverse(i, j) for j in range(n)] for i in range(n)]
    np.testing.assert_allclose(inverse, np.linalg.inv(Z), rtol=1e-8, atol=1e-8)
