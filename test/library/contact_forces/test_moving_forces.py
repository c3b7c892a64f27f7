"""Contacts that move: they slide, leave or strike by their velocities. Against formulas."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from friction import moving_residual, standing_inputs
from hypothesis import given
from hypothesis import strategies as st
from robots import LEGS

from delassus import Contact, DelassusSolver, InputError, Problem, Robot
from delassus.contact_forces import ForceSolver, ForceStatus, solve_contacts
from delassus.model.spatial import Array
from delassus.robots.built_in import demo_urdf

G_EARTH = 9.81
BLOCK = np.eye(3), np.array([0.0, 0.0, -G_EARTH])
"""G and a0 of a block of 1 kg on a point."""


@pytest.mark.parametrize(
    ("velocity", "forces"),
    [
        ((6.0, 0.0, 0.0), (-4.905, 0.0, 9.81)),
        ((0.0, -6.0, 0.0), (0.0, 4.905, 9.81)),
        ((-3.0, 4.0, 0.0), (2.943, -3.924, 9.81)),
        ((6.0, 0.0, 0.05), (-4.905, 0.0, 9.81)),
        ((0.0, 0.0, 2.0), (0.0, 0.0, 0.0)),
        ((6.0, 0.0, 2.0), (0.0, 0.0, 0.0)),
        ((0.05, 0.0, 0.0), (0.0, 0.0, 9.81)),
        ((0.0, 0.0, -0.05), (0.0, 0.0, 9.81)),
    ],
)
@pytest.mark.parametrize("law", ["coulomb", "convex"])
def test_a_block_slides_leaves_or_rests(velocity: Any, forces: Any, law: Any) -> None:
    found = solve_contacts(*BLOCK, friction=0.5, velocities=velocity, law=law)
    assert found.status == ForceStatus.SOLVED and found.residual <= 1e-10
    np.testing.assert_allclose(found.forces, forces, atol=1e-8)
    np.testing.assert_allclose(found.accelerations, BLOCK[1] + forces, atol=1e-8)


def test_contacts_that_strike_are_named() -> None:
    G, a0 = np.kron(np.eye(3), BLOCK[0]), np.tile(BLOCK[1], 3)
    v = np.array([0.0, 0.0, -2.0, 6.0, 0.0, 0.0, 1.0, 0.0, -0.3])
    found = solve_contacts(G, a0, friction=0.5, velocities=v)
    assert found.status == ForceStatus.STRIKING and found.contradiction == (0, 2)
    assert not found.forces.any() and np.isnan(found.accelerations).all()
    assert found.residual == -1.0 and not found.is_start
    slow = solve_contacts(G, a0, friction=0.5, velocities=v, strike_speed=0.5)
    assert slow.contradiction == (0,)


def test_friction_opposes_the_velocity_and_not_the_acceleration() -> None:
    found = solve_contacts(np.eye(3), [5.0, 0.0, -1.0], friction=0.5, velocities=[-1.0, 0, 0])
    np.testing.assert_allclose(found.forces, [0.5, 0.0, 1.0], atol=1e-9)
    np.testing.assert_allclose(found.accelerations, [5.5, 0.0, 0.0], atol=1e-9)


def test_a_sphere_slides_until_it_rolls() -> None:
    """The contact of a solid sphere of any mass slows by 7/2 μ g, its centre by μ g."""
    mass, radius = 3.0, 0.2
    inertia = 0.4 * mass * radius**2
    along, down = 1 / mass + radius**2 / inertia, 1 / mass
    found = solve_contacts(
        np.diag([along, along, down]), BLOCK[1], friction=0.3, velocities=[0.6, 0.8, 0.0]
    )
    weight = mass * G_EARTH
    np.testing.assert_allclose(found.forces, weight * np.array([-0.18, -0.24, 1.0]), rtol=1e-9)
    slowing = 3.5 * 0.3 * G_EARTH
    np.testing.assert_allclose(found.accelerations[:2], [-0.6 * slowing, -0.8 * slowing])


def _plate(height: float, length: float = 0.2, mass: float = 2.0) -> tuple[Array, Array, Array]:
    """Return G (6, 6) and a0 of the sole of a cube, and the inverse of its inertia."""
    inverse = np.diag(1 / np.array([mass] * 3 + [mass * length**2 / 6] * 3))
    x = np.array([[0.0, height, 0.0], [-height, 0.0, 0.0], [0.0, 0.0, 0.0]])
    # Velocity at the sole, below the centre of mass: v - ω × (0, 0, height).
    J = np.block([[np.eye(3), -x], [np.zeros((3, 3)), np.eye(3)]])
    return J @ inverse @ J.T, J @ [0.0, 0.0, -G_EARTH, 0.0, 0.0, 0.0], inverse


def _on_soles(G: Array, a0: Array, friction: float, v: Any, **options: Any) -> Any:
    return solve_contacts(
        G, a0, friction=friction, kinds="surface", dimensions=(0.2, 0.2), velocities=v, **options
    )


def test_a_cube_slides_flat_until_friction_tips_it() -> None:
    """It tips where μ times the height of the centre of mass exceeds half the sole's length."""
    G, a0, _ = _plate(0.1)
    flat = _on_soles(G, a0, 0.9, [1.0, 0, 0, 0, 0, 0])
    assert flat.status == ForceStatus.SOLVED
    np.testing.assert_allclose(flat.accelerations[2:], 0.0, atol=1e-7)
    weight = 2.0 * G_EARTH
    np.testing.assert_allclose(flat.forces[[0, 2]], [-0.9 * weight, weight], rtol=1e-9)
    assert flat.forces[4] == pytest.approx(-0.9 * weight * 0.1)  # the pressure moves forward
    tips = _on_soles(G, a0, 1.2, [1.0, 0, 0, 0, 0, 0])
    # The front edge alone pushes: g there is 1/m + x (x - μ h) / I.
    coupling = 0.5 + 0.1 * (0.1 - 1.2 * 0.1) * 6 / (2.0 * 0.2**2)
    normal = G_EARTH / coupling
    np.testing.assert_allclose(tips.forces[[0, 2]], [-1.2 * normal, normal], rtol=1e-8)
    assert tips.accelerations[4] > 1.0


def test_each_corner_of_a_turning_sole_slides_its_own_way() -> None:
    G, a0, inverse = _plate(0.1)
    spin = _on_soles(G, a0, 0.5, [0, 0, 0, 0, 0, 2.0])
    radius, weight = np.hypot(0.1, 0.1), 2.0 * G_EARTH
    np.testing.assert_allclose(spin.forces[[0, 1, 3, 4]], 0.0, atol=1e-8)
    np.testing.assert_allclose(spin.forces[[2, 5]], [weight, -0.5 * weight * radius])
    assert spin.accelerations[5] == pytest.approx(spin.forces[5] * inverse[5, 5])
    # About a corner that stays: this one is at rest, the other three slide.
    corner = _on_soles(G, a0, 0.5, [-0.2, 0.2, 0.0, 0.0, 0.0, 2.0])
    points = corner.cone_forces.reshape(4, 3)
    assert corner.status == ForceStatus.SOLVED
    at = np.array([[0.1, 0.1], [0.1, -0.1], [-0.1, 0.1], [-0.1, -0.1]])
    v = np.array([-0.2, 0.2]) + 2.0 * np.column_stack([-at[:, 1], at[:, 0]])
    for f, speed in zip(points, v, strict=True):
        size = np.hypot(*speed)
        if size > 0.1:
            np.testing.assert_allclose(f[:2], -0.5 * f[2] * speed / size, atol=1e-9)


def _rod(angle: float) -> Array:
    """Return G of the tip of a uniform rod of 1 kg and length 2 at an angle to the ground."""
    tip = np.array([-np.cos(angle), 0.0, -np.sin(angle)])  # from the centre of mass
    turn = np.array([-tip[2], 0.0, tip[0]])  # tangential and normal velocity per spin
    return np.diag([1.0, 1.0, 1.0]) + 3.0 * np.outer(turn, turn)


@pytest.mark.parametrize("friction", [0.5, 1.3, 1.34, 1.5, 3.0])
def test_painleves_rod_jams_by_its_formula(friction: float) -> None:
    """m g = 1 + 3 cos θ (cos θ - μ sin θ), which can be negative for μ > 4/3 alone."""
    jams = 0
    for angle in np.linspace(0.02, np.pi / 2 - 0.02, 200):
        coupling = 1 + 3 * np.cos(angle) * (np.cos(angle) - friction * np.sin(angle))
        if abs(coupling) < 1e-3:
            continue
        for a0 in (-G_EARTH, 2.0):
            found = solve_contacts(
                _rod(angle), [0.0, 0.0, a0], friction=friction, velocities=[-1.0, 0, 0]
            )
            back = solve_contacts(
                _rod(angle), [0.0, 0.0, a0], friction=friction, velocities=[1.0, 0, 0]
            )
            assert back.status == ForceStatus.SOLVED
            if coupling < 0.0:
                jams += 1
                assert found.status == ForceStatus.JAMMED and found.contradiction == (0,)
                assert not found.forces.any()
            else:
                normal = max(-a0, 0.0) / coupling
                expected = [friction * normal, 0.0, normal]
                assert found.status == ForceStatus.SOLVED
                np.testing.assert_allclose(found.forces, expected, rtol=1e-7, atol=1e-9)
    assert (jams > 0) == (friction > 4 / 3)


def test_rows_that_hold_are_eliminated_before_contacts_jam() -> None:
    """A hinge at the rod's other end leaves it cos θ (cos θ - μ sin θ), without the 1."""
    angle = 1.0
    tip = np.array([-np.cos(angle), 0.0, -np.sin(angle)])
    rows = np.array([
        [1.0, 0.0, -tip[2]], [0.0, 0.0, 0.0], [0.0, 1.0, tip[0]],  # the tip: x, y, z by x, z, spin
        [1.0, 0.0, tip[2]], [0.0, 1.0, -tip[0]],  # the other end
    ])  # fmt: skip
    G = rows @ np.diag([1.0, 1.0, 3.0]) @ rows.T
    a0 = rows @ [0.0, -G_EARTH, 0.0]
    G[1, 1] = 1.0
    kinds, v = ["point", "bilateral", "bilateral"], [-1.0, 0.0, 0.0, 0.0, 0.0]
    alone = solve_contacts(G[:3, :3], a0[:3], friction=1.0, velocities=v[:3])
    held = solve_contacts(G, a0, friction=1.0, kinds=kinds, velocities=v)
    assert (alone.status, held.status) == (ForceStatus.SOLVED, ForceStatus.JAMMED)
    less = solve_contacts(G, a0, friction=0.6, kinds=kinds, velocities=v)
    normal = G_EARTH * np.cos(angle) / (2 * np.cos(angle) - 1.2 * np.sin(angle))
    assert less.status == ForceStatus.SOLVED
    np.testing.assert_allclose(less.forces[:3], [0.6 * normal, 0.0, normal], rtol=1e-9)


def _by_enumeration(G: Array, a0: Array, mu: Array, v: Array) -> tuple[list[Array], bool]:
    """Return all forces of contacts that slide or leave, and whether their matrix is P."""
    normals, columns = [], []
    for c, (friction, speed) in enumerate(zip(mu, v, strict=True)):
        if speed[2] <= 0.1:
            normals.append(np.eye(len(a0))[3 * c + 2])
            slope = friction * speed[:2] / np.hypot(*speed[:2])
            columns.append(normals[-1] - slope @ np.eye(len(a0))[3 * c : 3 * c + 2])
    N, D = np.reshape(normals, (-1, len(a0))), np.reshape(columns, (-1, len(a0))).T
    A, b, m = N @ G @ D, N @ a0, len(N)
    found = []
    for pushes in product([False, True], repeat=m):
        rows = np.flatnonzero(pushes)
        z = np.zeros(m)
        if len(rows):
            z[rows] = -np.linalg.solve(A[np.ix_(rows, rows)], b[rows])
        if (z >= -1e-9).all() and (A @ z + b >= -1e-9).all():
            found.append(D @ z)
    minors = [
        np.linalg.det(A[np.ix_(rows, rows)])
        for size in range(1, m + 1)
        for rows in combinations(range(m), size)
    ]
    return found, all(minor > 0 for minor in minors)


@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_sliding_contacts_have_the_only_forces_of_an_enumeration(seed: int, count: int) -> None:
    random = np.random.default_rng(seed)
    J = random.normal(size=(3 * count, 3 * count + random.integers(0, 6)))
    G, a0 = J @ J.T / len(J), J @ random.normal(size=J.shape[1])
    mu, v = random.uniform(0.0, 1.5, count), random.normal(size=(count, 3))
    v[:, :2] *= 1 + 0.2 / np.hypot(v[:, 0], v[:, 1])[:, None]
    v[:, 2] = np.where(random.random(count) < 0.3, 1.0, 0.0)
    found = solve_contacts(G, a0, friction=mu, velocities=v.ravel())
    forces, is_unique = _by_enumeration(G, a0, mu, v)
    if found.status == ForceStatus.SOLVED:
        assert is_unique and len(forces) == 1
        np.testing.assert_allclose(found.forces, forces[0], atol=1e-7 * (1 + np.abs(forces).max()))
    else:
        assert found.status == ForceStatus.JAMMED and not is_unique


@given(st.integers(0, 2**32 - 1), st.sampled_from(["coulomb", "convex"]))
def test_solved_is_right_beside_contacts_that_move(seed: int, law: Any) -> None:
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 8))
    kinds = random.choice(["point", "unilateral", "bilateral"], count, p=[0.8, 0.1, 0.1]).tolist()
    sizes = [3 if kind == "point" else 1 for kind in kinds]
    n = sum(sizes)
    J = random.normal(size=(n, int(random.integers(max(1, n // 2), n + 6))))
    G, a0 = J @ J.T / n, J @ random.normal(size=J.shape[1])
    v, last = np.zeros(n), np.cumsum(sizes) - 1
    for row, kind in zip(last, kinds, strict=True):
        if kind == "point" and random.random() < 0.5:
            v[row - 2 : row] = random.normal(size=2)
        v[row] = 1.0 if random.random() < 0.2 else 0.0
    mu = random.uniform(0.0, 1.0, count)
    found = solve_contacts(G, a0, friction=mu, kinds=kinds, velocities=v, law=law)
    if found.status == ForceStatus.SOLVED:
        assert moving_residual(G, a0, kinds, mu, found.forces, v, law) <= 1e-9


def test_a_block_slides_to_a_stop_and_stays() -> None:
    """Steps of 1 ms; a contact is at rest below the change of velocity of one step."""
    step, friction, push = 1e-3, 0.5, 2.0
    v, x, at_rest = np.array([1.0, 0.0, 0.0]), 0.0, 0
    solver = ForceSolver(["point"], friction, slip_speed=friction * G_EARTH * step)
    for _ in range(1000):
        found = solver.solve(np.eye(3), [push, 0.0, -G_EARTH], velocities=v)
        assert found.status == ForceStatus.SOLVED
        if found.accelerations[0] == pytest.approx(0.0, abs=1e-9):
            assert found.forces[0] == pytest.approx(-push)
            at_rest += 1
        else:
            assert at_rest == 0 and found.forces[0] == pytest.approx(-friction * G_EARTH)
        v = v + step * found.accelerations
        x += step * v[0]
    slowing = friction * G_EARTH - push
    assert at_rest == pytest.approx(1000 - 1.0 / slowing / step, abs=5)
    assert x == pytest.approx(0.5 / slowing, abs=0.01)


def test_derivatives_of_contacts_that_move() -> None:
    random, compared = np.random.default_rng(3), 0
    for _ in range(30):
        J = random.normal(size=(12, 18))
        G, a0, h = J @ J.T / 18, J @ random.normal(size=18), 1e-6
        v = np.array([1.0, 0.5, 0.0, 0.0, 0.0, 1.0, *[0.0] * 6])
        solver = ForceSolver(["point"] * 4, 0.4, tolerance=1e-13)
        found = solver.solve(G, a0, velocities=v)
        if found.status != ForceStatus.SOLVED:
            continue
        derivative = solver.derivative(found)
        if derivative.margin < 1e-3:
            continue
        change = random.normal(size=12)
        ends = [solver.solve(G, a0 + s * h * change, velocities=v).forces for s in (1, -1)]
        difference = (ends[0] - ends[1]) / (2 * h)
        size = max(np.abs(difference).max(), 1e-3)
        np.testing.assert_allclose(derivative.H @ change, difference, atol=1e-6 * size)
        compared += 1
    assert compared >= 10


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"slip_speed": -1.0}, "slip_speed is -1; expected a velocity of 0 or more"),
        ({"strike_speed": np.nan}, "strike_speed is nan; expected a velocity of 0 or"),
        ({"restitution": 0.5}, "velocities decide the law of accelerations"),
        ({"velocities": [1.0]}, r"velocities has shape \(1,\); expected \(6,\)"),
        ({"surface_cone": "wrench"}, "a surface moves, and surface_cone 'wrench' is the law"),
    ],
)
def test_velocities_that_are_refused(arguments: dict[str, Any], words: str) -> None:
    v = arguments.pop("velocities", [1.0, 0, 0, 0, 0, 0])
    with pytest.raises(InputError, match=words):
        _on_soles(np.eye(6), -np.ones(6), 0.5, v, **arguments)


def test_a_wrench_cone_is_refused_in_a_loop_while_it_moves() -> None:
    solver = ForceSolver(["surface"], 0.5, dimensions=(0.2, 0.1), surface_cone="wrench")
    G, a0 = np.eye(6), np.array([0.0, 0.0, -1.0, 0.0, 0.0, 0.0])
    found = solver.solve_in_place(G, a0, None, np.array([1.0, 0, 0, 0, 0, 0]))
    assert found.status == ForceStatus.REFUSED and not found.forces.any()
    assert solver.solve_in_place(G, a0, None, np.zeros(6)).status == ForceStatus.SOLVED


@pytest.mark.parametrize(("axes", "law"), [("world", "coulomb"), ("contact", "convex")])
def test_a_quadruped_that_slides_has_the_same_forces_at_all_doors(axes: Any, law: Any) -> None:
    robot = Robot.from_urdf(demo_urdf().encode())
    feet = [Contact(leg, f"{leg}_FOOT") for leg in LEGS]
    solver = DelassusSolver(Problem(robot, feet, axes=axes, outputs=["a0"]))
    inputs = standing_inputs(solver.problem)
    if axes == "contact":  # G and a0 do not depend on the orientation
        del inputs["base_orientation"]
    rest = solver.solve(**inputs).contact_forces(0.3, law=law, slip_speed=0.5)
    inputs["rates"] = -np.eye(18)[0]  # 1 m/s backwards; from rest the feet slide forwards
    slides = solver.solve(**inputs)
    found = slides.contact_forces(0.3, law=law, slip_speed=0.5)
    f, v = found.forces.reshape(4, 3), slides.output("v").reshape(4, 3)
    assert found.status == ForceStatus.SOLVED and (np.hypot(v[:, 0], v[:, 1]) > 0.5).any()
    for force, w in zip(f, v, strict=True):
        slip = np.hypot(w[0], w[1])
        if slip > 0.5 and w[2] <= 0.1:
            np.testing.assert_allclose(force[:2], -0.3 * force[2] * w[:2] / slip, atol=1e-9)
    assert (f[:, 0] > 0.3).all() and (rest.forces[::3] < -0.3).all()
    bound = solver.bind()
    bound.set_friction(0.3, law=law, slip_speed=0.5)
    for name, values in inputs.items():
        if name != "q":
            bound.inputs[name] = values
    bound.solve(inputs["q"])
    np.testing.assert_array_equal(bound.contact_forces().forces, found.forces)
    many = {name: np.tile(value, (3, 1)) for name, value in inputs.items()}
    batch = solver.solve_batch(many.pop("q"), **many).contact_forces(0.3, law=law, slip_speed=0.5)
    np.testing.assert_array_equal(batch.forces, np.tile(found.forces, (3, 1)))
