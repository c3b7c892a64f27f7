"""The wrench cone of a surface has the 16 faces that are published, and forces at a minimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from delassus import ForceSolver, ForceStatus, InputError, solve_contacts
from delassus.contact_forces.rows import ConeRows
from delassus.model.spatial import Array

SIZES = (0.22, 0.12)


def _faces(w: Array, mu: float) -> Array:
    """Return by how much the 16 inequalities of Caron, Pham and Nakamura (2015) hold."""
    X, Y = np.array(SIZES) / 2
    fx, fy, fz, tx, ty, tz = w
    k = mu / np.sqrt(2.0)  # inner pyramids of four sides
    signs = [(a, b) for a in (1, -1) for b in (1, -1)]
    sides = [k * fz - s * v for s in (1, -1) for v in (fx, fy)]
    tips = [arm * fz - s * t for s in (1, -1) for arm, t in ((Y, tx), (X, ty))]
    most = k * (X + Y) * fz
    turn = [most - tz - a * (Y * fx + k * tx) - b * (X * fy + k * ty) for a, b in signs]
    back = [most + tz - a * (Y * fx - k * tx) - b * (X * fy - k * ty) for a, b in signs]
    return np.array([*sides, *tips, *turn, *back])


def test_edges_and_faces_are_one_cone() -> None:
    from scipy.optimize import nnls
    random = np.random.default_rng(0)
    for mu in (0.2, 0.9):
        edges = ConeRows.of(["surface"], mu, SIZES, surface_cone="wrench").matrix()
        assert edges.shape == (6, 16)
        touched = np.zeros(16, int)
        for edge in edges.T:
            slack = _faces(edge, mu)
            assert slack.min() >= -1e-12
            touched += np.abs(slack) < 1e-12
        assert (touched >= 5).all()  # each face holds the edges that span it
        inside = 0
        for _ in range(150):
            w = 0.4 * random.normal(size=6) * [mu, mu, 0.0, 0.06, 0.11, 0.1 * mu]
            w[2] = 1.0
            x, missing = nnls(edges, w)
            assert (missing < 1e-9) == (_faces(w, mu).min() >= -1e-9)
            inside += missing < 1e-9
        assert 15 < inside < 135


def _problem(seed: int) -> tuple[Array, Array]:
    random = np.random.default_rng(seed)
    J = random.normal(size=(12, 20)) * np.tile([1, 1, 1, 0.2, 0.2, 0.2], 2)[:, None]
    a0 = J @ random.normal(size=20)
    a0[[2, 8]] -= random.choice([0.0, 6.0])
    return J @ J.T, a0


def test_forces_are_the_minimum_in_the_cone() -> None:
    from scipy.optimize import nnls
    slides = 0
    for seed in range(20):
        G, a0 = _problem(seed)
        mu = float(np.random.default_rng(seed).uniform(0.1, 1.0))
        options: dict[str, Any] = {"friction": mu, "kinds": "surface", "dimensions": SIZES}
        found = solve_contacts(G, a0, surface_cone="wrench", **options)
        assert found.status == ForceStatus.SOLVED and sum(found.steps) <= 60
        assert found.cone_forces.shape == (32,) and (found.cone_forces >= 0.0).all()
        w = found.forces
        slack = np.concatenate([_faces(w[:6], mu), _faces(w[6:], mu)])
        assert slack.min() >= -1e-9 * max(1.0, np.abs(w).max())
        L = np.linalg.cholesky(G)
        V = ConeRows.of(["surface"] * 2, mu, SIZES, surface_cone="wrench").matrix()
        x, _ = nnls(L.T @ V, -np.linalg.solve(L, a0), maxiter=5000)
        np.testing.assert_allclose(w, V @ x, atol=1e-7 * max(1.0, np.abs(w).max()))
        # Exact cones at the corners hold this cone: their minimum is not above.
        exact = solve_contacts(G, a0, law="convex", **options).forces
        energy, least = (0.5 * f @ G @ f + a0 @ f for f in (w, exact))
        assert least <= energy + 1e-9
        slides += energy - least > 1e-3 * abs(least)
    assert slides >= 3


def test_a_start_is_along_the_edges() -> None:
    G, a0 = _problem(3)
    solver = ForceSolver(["surface"] * 2, 0.6, dimensions=SIZES, surface_cone="wrench")
    cold = solver.solve(G, a0)
    warm = solver.solve(G, 1.0001 * a0, start=cold.cone_forces)
    assert warm.status == ForceStatus.SOLVED and sum(warm.steps) <= sum(cold.steps)


@pytest.mark.parametrize("what", ["compliance", "restitution"])
def test_what_corners_alone_have_is_refused(what: str) -> None:
    words = f"contact 0 is a surface with {what}, which acts at its corners; expected surface_cone"
    options: dict[str, Any] = {"dimensions": SIZES, "surface_cone": "wrench", what: 0.5}
    with pytest.raises(InputError, match=words):
        solve_contacts(np.eye(6), np.ones(6), friction=0.5, kinds="surface", **options)
