"""Impulses with friction and restitution: a ball by its formulas, and bounds of the energy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from friction import random_problem, residual
from hypothesis import given
from hypothesis import strategies as st

from delassus import (
    Contact,
    DelassusSolver,
    ForceStatus,
    Problem,
    Robot,
    Solution,
    solve_contacts,
)

MASS_KG, RADIUS_M = 2.0, 0.1
INERTIA = 0.4 * MASS_KG * RADIUS_M**2


def _ball() -> Solution:
    """Return a ball that touches level ground."""
    moments = " ".join(f'{axis}="{INERTIA}"' for axis in ("ixx", "iyy", "izz"))
    urdf = f"""<robot name="ball"><link name="ball"><inertial><mass value="{MASS_KG}"/>
      <inertia {moments} ixy="0" ixz="0" iyz="0"/></inertial></link><link name="bottom"/>
      <joint name="below" type="fixed"><parent link="ball"/><child link="bottom"/>
      <origin xyz="0 0 {-RADIUS_M}"/></joint></robot>"""
    robot = Robot.from_urdf(urdf.encode(), base="floating")
    problem = Problem(robot, [Contact("b", "bottom")], axes="world", outputs=["J", "MinvJT"])
    return DelassusSolver(problem).solve(robot.neutral(), base_orientation=[0, 0, 0, 1])


@pytest.mark.parametrize("spin", [-60.0, 0.0, 35.0, 200.0])
@pytest.mark.parametrize("e", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("mu", [0.0, 0.15, 0.8])
def test_a_ball_bounces_as_its_formulas_have_it(spin: float, e: float, mu: float) -> None:
    vx, vy, vz = 1.5, -0.4, -2.0
    ball = _ball()
    rates = np.array([vx, vy, vz, 0.0, spin, 0.0])
    found = ball.contact_impulses(rates, mu, e)
    assert found.status == ForceStatus.SOLVED
    normal = (1.0 + e) * MASS_KG * -vz
    slip = np.array([vx - RADIUS_M * spin, vy])  # of the point that touches
    sticking = -slip * MASS_KG * 2.0 / 7.0
    friction = sticking * min(1.0, mu * normal / np.linalg.norm(sticking))
    np.testing.assert_allclose(found.forces, [*friction, normal], atol=1e-8)
    after = rates + ball.MinvJT @ found.forces
    np.testing.assert_allclose(
        after[:3], np.array([vx, vy, 0]) + [*friction / MASS_KG, -e * vz], atol=1e-8
    )
    np.testing.assert_allclose(after[4], spin - RADIUS_M * friction[0] / INERTIA, atol=1e-6)
    np.testing.assert_allclose(ball.J @ after, found.accelerations, atol=1e-8)
    inertia = np.array([MASS_KG] * 3 + [INERTIA] * 3)
    change = 0.5 * inertia @ (after**2 - rates**2)
    assert 0.5 * found.forces @ (ball.J @ rates + found.accelerations) == pytest.approx(change)
    assert change <= 1e-9


@given(st.integers(0, 2**32 - 1), st.floats(0, 3), st.sampled_from(["coulomb", "convex"]))
def test_without_restitution_energy_never_grows(seed: int, mu: float, law: Any) -> None:
    G, v = random_problem(seed)
    found = solve_contacts(G, v, friction=mu, law=law)
    if found.status == ForceStatus.SOLVED:
        before = 0.5 * v @ np.linalg.solve(G, v)
        change = 0.5 * found.forces @ (v + found.accelerations)
        assert -before * (1 + 1e-9) <= change <= 1e-9 * before


@given(st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_energy_without_friction(seed: int, e: float) -> None:
    """Contacts that all approach lose 1 - e^2 of what they lose without restitution."""
    G, v = random_problem(seed)
    v[2::3] = -np.abs(v[2::3])
    plastic = solve_contacts(G, v, friction=0.0)
    found = solve_contacts(G, v, friction=0.0, restitution=e)
    lost = -0.5 * plastic.forces @ (v + plastic.accelerations)
    change = 0.5 * found.forces @ (v + found.accelerations)
    assert change == pytest.approx(-(1 - e * e) * lost, abs=1e-6 * lost)


def test_velocities_afterwards_obey_the_law_per_contact() -> None:
    mu, e = np.array([0.3, 0.5, 0.7, 0.9]), np.array([0.0, 0.3, 0.6, 1.0])
    hit = 0
    for seed in range(20):
        G, v = random_problem(seed)
        v[2::3] = -np.abs(v[2::3])
        found = solve_contacts(G, v, friction=mu, restitution=e, law="coulomb")
        assert found.status == ForceStatus.SOLVED
        np.testing.assert_allclose(found.accelerations, G @ found.forces + v, atol=1e-12)
        shifted = v.copy()
        shifted[2::3] *= 1 + e
        assert residual(G, shifted, mu, found.forces) <= 2e-10
        pushes = found.forces[2::3] > 1e-6
        leaves = found.accelerations[2::3]
        np.testing.assert_allclose(leaves[pushes], (-e * v[2::3])[pushes], atol=1e-8)
        hit += int(pushes.sum())
    assert hit >= 40


def test_contacts_that_leave_are_left_alone() -> None:
    found = solve_contacts(np.eye(3), [0.4, 0.0, 2.0], friction=0.5, restitution=1.0)
    assert not found.forces.any() and found.status == ForceStatus.SOLVED


def test_friction_and_restitution_by_name() -> None:
    ball = _ball()
    rates = [0.0, 0.0, -1.0, 0.0, 0.0, 0.0]
    found = ball.contact_impulses(rates, {"b": 0.5}, {"b": 0.5})
    assert found.contacts == ("b",) and found.forces[2] == pytest.approx(1.5 * MASS_KG)
