"""Inner pyramids with more and more sides have the exact cone's forces as their limit."""

from __future__ import annotations

import numpy as np
import pytest
from friction import random_problem

from benchmarks.friction import pyramid, pyramid_forces
from delassus import ForceStatus, solve_contacts
from delassus.model.spatial import Array

pytestmark = pytest.mark.needs("scipy")

SIDES = (4, 8, 16, 32, 64)


def _energy(G: Array, a0: Array, f: Array) -> float:
    return float(0.5 * f @ G @ f + a0 @ f)


@pytest.mark.parametrize("friction", [0.3, 0.9])
def test_pyramids_converge_to_the_exact_cone(friction: float) -> None:
    shares: dict[int, list[float]] = {sides: [] for sides in SIDES}
    for seed in range(30):
        G, a0 = random_problem(seed)
        exact = solve_contacts(G, a0, friction=friction, law="convex")
        assert exact.status == ForceStatus.SOLVED
        if not exact.forces.any():  # all contacts lift off, under every pyramid
            assert not pyramid_forces(G, a0, friction, 4).any()
            continue
        least = _energy(G, a0, exact.forces)
        before = np.inf
        for sides in SIDES:
            near = pyramid_forces(G, a0, friction, sides)
            energy = _energy(G, a0, near)
            # Pyramids of twice the sides hold those before, and the cone holds them all.
            assert least - 1e-9 * abs(least) <= energy <= before + 1e-9 * abs(least)
            before = energy
            size = np.linalg.norm(exact.forces)
            shares[sides].append(float(np.linalg.norm(near - exact.forces) / size))
            # The condition of a minimum: both f'Gf = -a0'f, as for every cone.
            assert near @ (G @ near + a0) == pytest.approx(0.0, abs=1e-9 * abs(least))
        assert before - least <= 1e-2 * abs(least)
    medians = [float(np.median(shares[sides])) for sides in SIDES]
    for coarse, fine in zip(medians, medians[1:], strict=False):
        assert fine < 0.7 * coarse
    assert max(shares[64]) < 0.05 and medians[-1] < 0.01


def test_the_pyramid_s_forces_obey_its_own_conditions() -> None:
    """Faces and edges are two descriptions of one pyramid; multipliers are not negative."""
    for seed in range(10):
        G, a0 = random_problem(seed)
        for sides in (4, 8, 16):
            f = pyramid_forces(G, a0, 0.6, sides)
            A = pyramid(sides, 0.6, 4)
            slack = A @ f
            assert slack.max() <= 1e-9
            angles = 2 * np.arange(sides) * np.pi / sides
            edges = np.vstack([0.6 * np.cos(angles), 0.6 * np.sin(angles), np.ones(sides)])
            # No edge of the pyramid takes off: u'v >= 0 for every edge v.
            u = (G @ f + a0).reshape(4, 3)
            assert (u @ edges).min() >= -1e-8


def test_forces_are_unique_where_g_is_regular() -> None:
    """Forces from starts far apart are the same; under redundancy accelerations alone are."""
    random = np.random.default_rng(0)
    for seed in range(10):
        G, a0 = random_problem(seed)
        found = [
            solve_contacts(G, a0, friction=0.6, law="convex", start=start).forces
            for start in (np.zeros(12), 10.0 * random.normal(size=12))
        ]
        np.testing.assert_allclose(found[0], found[1], atol=1e-6)
        twice = np.vstack([np.eye(12), np.eye(12)])
        many = [
            solve_contacts(
                twice @ G @ twice.T, twice @ a0, friction=0.6, law="convex", start=start
            ).accelerations
            for start in (np.zeros(24), 10.0 * random.normal(size=24))
        ]
        np.testing.assert_allclose(many[0], many[1], atol=1e-6)
