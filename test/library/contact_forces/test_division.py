"""Redundant contacts: Coulomb's law, and a division of forces that prefers no contact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from friction import residual
from hypothesis import given
from hypothesis import strategies as st

from delassus.contact_forces import (
    ContactForces,
    ForceSolver,
    ForceStatus,
    solve_contacts,
)
from delassus.model.spatial import Array

CORNERS = np.array([[0.1, 0.05], [0.1, -0.05], [-0.1, 0.05], [-0.1, -0.05]])
"""Of a sole of 0.2 m by 0.1 m."""


def rigid_body(
    points: Array, height: float, push: Array, at: float = 0.0, mass: float = 2.0
) -> tuple[Array, Array]:
    """Return G and a0 of points under a box of 0.2 m, 0.1 m, 0.6 m.

    Parameters
    ----------
    points : (n, 2) below the centre of mass, m. height : of the centre of mass above them, m.
    push : force, N, on a line `at` above the centre of mass, m.
    """
    x, y, z = 0.2, 0.1, 0.6
    inertia = mass / 12 * np.array([y**2 + z**2, x**2 + z**2, x**2 + y**2])
    inverse = np.diag(1 / np.concatenate([[mass] * 3, inertia]))
    J = np.vstack([np.hstack([np.eye(3), -_cross([*p, -height])]) for p in points])
    wrench = np.concatenate([push + [0.0, 0.0, -9.81 * mass], np.cross([0.0, 0.0, at], push)])
    return J @ inverse @ J.T, J @ inverse @ wrench


def sole(height: float, push: Array, at: float) -> tuple[Array, Array]:
    """Return G (6, 6) and a0 of the sole of that box."""
    G, a0 = rigid_body(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), height, push, at)
    # Angular accelerations are differences of those of three points, 1 m apart.
    to_twist = np.zeros((6, 9))
    to_twist[:3, :3] = np.eye(3)
    to_twist[3, [8, 2]] = to_twist[5, [4, 1]] = 1.0, -1.0
    to_twist[4, [5, 2]] = -1.0, 1.0
    return to_twist @ G @ to_twist.T, to_twist @ a0


def _cross(v: Any) -> Array:
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def humanoid_like(seed: int, feet: int = 2) -> tuple[Array, Array]:
    """Return G (6 n, 6 n) of full rank and a0 of soles that fall, slide and turn."""
    random = np.random.default_rng(seed)
    scale = np.diag(np.tile([0.4] * 3 + [3.2] * 3, feet))
    J = scale @ random.normal(size=(6 * feet, 6 * feet + 8))
    falls = np.tile([0.0, 0.0, -9.81, 0.0, 0.0, 0.0], feet)
    return J @ J.T, J @ random.normal(size=6 * feet + 8) * 3 + falls


def of_corners(G: Array, a0: Array, soles: Array) -> tuple[Array, Array]:
    """Return G and a0 of the points at the corners of soles."""
    W = np.zeros((len(a0), 12 * (len(a0) // 6)))
    for foot in range(len(a0) // 6):
        for c, (x, y) in enumerate(soles):
            part = np.vstack([np.eye(3), _cross([x, y, 0.0])])
            W[6 * foot : 6 * foot + 6, 12 * foot + 3 * c : 12 * foot + 3 * c + 3] = part
    return W.T @ G @ W, W.T @ a0


def test_a_pushed_box_slides_and_does_not_lift_off() -> None:
    """Its centre of mass is 0.3 m high, and the push 0.3 m above the ground."""
    G, a0 = sole(0.3, np.array([5.886, 0.0, 0.0]), 0.0)
    found = solve_contacts(G, a0, friction=0.2, kinds="surface", dimensions=(0.2, 0.1))
    assert found.status == ForceStatus.SOLVED and found.law == "coulomb"
    np.testing.assert_allclose(found.accelerations[2:], 0.0, atol=1e-7)
    assert found.accelerations[0] == pytest.approx(5.886 / 2 - 0.2 * 9.81)
    lifted = solve_contacts(
        G, a0, friction=0.2, kinds="surface", dimensions=(0.2, 0.1), law="convex"
    )
    assert lifted.accelerations[2] > 0.1


def test_a_cube_slides_down_a_wall_without_leaving_it() -> None:
    """A sole whose normal is level; 10 N press it on the wall, and gravity pulls it down."""
    G, a0 = sole(0.05, np.array([0.0, 0.0, 19.62 - 10.0]), 0.0)
    a0[0] -= 9.81
    found = solve_contacts(G, a0, friction=0.3, kinds="surface", dimensions=(0.2, 0.1))
    assert found.status == ForceStatus.SOLVED
    assert abs(found.accelerations[2]) <= 1e-9 and found.forces[2] == pytest.approx(10.0)
    assert found.accelerations[0] == pytest.approx(-9.81 + 0.3 * 10.0 / 2)


def test_forces_of_contacts_that_hold_are_those_of_least_norm() -> None:
    G, a0 = rigid_body(np.vstack([CORNERS, [[0.02, 0.03]]]), 0.3, np.array([1.0, -0.5, 0.0]))
    found = solve_contacts(G, a0, friction=1.0)
    least = -np.linalg.pinv(G, rcond=1e-10) @ a0
    np.testing.assert_allclose(found.forces, least, atol=1e-9 * np.abs(least).max())
    assert found.division is not None and found.division.equal
    assert found.division.contacts == (0, 1, 2, 3, 4)
    assert (found.division.rank, found.division.rows) == (6, 15)


def test_symmetric_problems_have_symmetric_forces() -> None:
    for push, friction in ((0.0, 0.3), (3.0, 0.5), (9.0, 0.2)):
        G, a0 = rigid_body(CORNERS, 0.3, np.array([push, 0.0, 0.0]), at=-0.3)
        f = solve_contacts(G, a0, friction=friction).forces.reshape(4, 3)
        assert f[:, 2].sum() == pytest.approx(19.62)
        mirrored = f[[1, 0, 3, 2]] * [1.0, -1.0, 1.0]
        np.testing.assert_allclose(f, mirrored, atol=1e-9 * np.abs(f).max())
        if push == 0.0:
            np.testing.assert_allclose(f, [[0.0, 0.0, 4.905]] * 4, atol=1e-9)


def test_the_pressure_under_a_sliding_block_is_linear() -> None:
    """Sliding corners have the same compliance, too: forces are those of a plane."""
    G, a0 = rigid_body(CORNERS, 0.1, np.zeros(3))
    found = solve_contacts(G, a0, friction=0.3, velocities=np.tile([1.0, 0.0, 0.0], 4))
    # Friction of 0.3 m g at 0.1 m tips the block forward, by 0.03 m of its half length 0.1 m.
    front, rear = 4.905 * 1.3, 4.905 * 0.7
    expected = np.array([front, front, rear, rear])
    f = found.forces.reshape(4, 3)
    np.testing.assert_allclose(f[:, 2], expected, atol=1e-9)
    np.testing.assert_allclose(f[:, 0], -0.3 * expected, atol=1e-9)
    assert found.division is not None and (found.division.rank, found.division.rows) == (3, 4)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.1, 0.3, 0.6, 0.8, 1.2]))
def test_the_order_of_contacts_changes_no_force(seed: int, friction: float) -> None:
    G, a0 = of_corners(*humanoid_like(seed), CORNERS)
    random = np.random.default_rng(seed)
    first = solve_contacts(G, a0, friction=friction)
    if first.status != ForceStatus.SOLVED or first.division is None:
        return
    order = random.permutation(8)
    rows = (3 * order[:, None] + np.arange(3)).ravel()
    other = solve_contacts(G[np.ix_(rows, rows)], a0[rows], friction=friction)
    size = np.abs(first.forces).max()
    np.testing.assert_allclose(other.forces, first.forces[rows], atol=1e-9 * size)
    assert residual(G, a0, np.full(8, friction), first.forces) <= 2e-10


@pytest.mark.parametrize("law", ["coulomb", "convex"])
def test_a_start_changes_steps_and_no_force(law: Any) -> None:
    for seed in range(20):
        G, a0 = humanoid_like(seed)
        solver = ForceSolver(["surface"] * 2, 0.6, dimensions=(0.2, 0.1), law=law)
        cold = solver.solve(G, a0)
        size = np.abs(cold.cone_forces).max()
        near = cold.cone_forces * np.random.default_rng(seed).uniform(0.5, 1.5, 24)
        for start in (cold.cone_forces, near):
            warm = solver.solve(G, a0, start=start)
            assert warm.status == cold.status == ForceStatus.SOLVED
            np.testing.assert_allclose(warm.cone_forces, cold.cone_forces, atol=1e-8 * size)


def test_a_surface_and_points_at_its_corners_have_the_same_forces() -> None:
    for seed in range(5):
        G, a0 = humanoid_like(seed)
        whole = solve_contacts(G, a0, friction=0.5, kinds="surface", dimensions=(0.2, 0.1))
        points = solve_contacts(*of_corners(G, a0, CORNERS), friction=0.5)
        size = np.abs(points.forces).max()
        np.testing.assert_allclose(whole.cone_forces, points.forces, atol=1e-9 * size)


def _on_points(G: Array, a0: Array, **options: Any) -> ContactForces:
    found = solve_contacts(G, a0, friction=0.3, **options)
    assert found.status == ForceStatus.SOLVED and found.law == "coulomb"
    return found


def test_forces_do_not_jump_where_g_becomes_singular() -> None:
    """Four sliding points of a body, with a compliance that falls from tick to tick."""
    G, a0 = rigid_body(CORNERS, 0.3, np.array([9.0, 4.0, 0.0]), at=0.02)
    last = _on_points(G, a0)
    for exponent in range(14, 1, -1):
        soft = 10.0**-exponent
        found = _on_points(G + soft * np.eye(12), a0)
        size = max(np.abs(found.forces).max(), np.abs(found.accelerations).max())
        change = max(
            np.abs(found.forces - last.forces).max(),
            np.abs(found.accelerations - last.accelerations).max(),
        )
        assert change <= (1e-6 + 50.0 * soft) * size
        last = found


def test_the_division_is_the_limit_of_equal_compliance() -> None:
    compared = 0
    for seed in range(30):
        G, a0 = of_corners(*humanoid_like(seed), CORNERS)
        rigid = solve_contacts(G, a0, friction=0.6)
        if rigid.division is None:
            continue
        assert rigid.division.equal
        compared += 1
        soft = solve_contacts(G, a0, friction=0.6, compliance=1e-7)
        size = np.abs(rigid.forces).max()
        np.testing.assert_allclose(soft.forces, rigid.forces, atol=1e-5 * size)
    assert compared >= 10


def test_contacts_that_are_not_redundant_have_no_division() -> None:
    found = solve_contacts(np.eye(3), [0.0, 0.0, -1.0], friction=0.5)
    assert found.division is None
    G, a0 = rigid_body(CORNERS, 0.3, np.zeros(3))
    # A box that tips over its front edge: two corners of four push, along one line.
    G, a0 = rigid_body(CORNERS, 0.3, np.array([8.0, 0.0, 0.0]), at=0.1)
    tipping = solve_contacts(G, a0, friction=0.9)
    assert tipping.division is None or set(tipping.division.contacts) <= {0, 1}
