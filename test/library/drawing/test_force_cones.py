"""Contact forces in their cones: shares, places, surfaces."""

from __future__ import annotations

import numpy as np
import pytest

from delassus import Transform
from delassus.drawing.force_cones import (
    ForceInCone,
    PlacedForce,
    cone_surface,
    force_scale,
    pressure,
)

Z = np.array([0.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("force", "normal", "friction", "parts", "slides"),
    [
        ([0.3, 0.4, 2.0], Z, 0.5, (2.0, 0.5, 0.5), False),
        ([0.6, 0.8, 2.0], Z, 0.5, (2.0, 1.0, 1.0), True),
        ([0.0, 0.0, 2.0], Z, 0.5, (2.0, 0.0, 0.0), False),
        ([0.0, 0.0, 2.0], Z, 0.0, (2.0, 0.0, 1.0), True),
        ([-2.0, 0.0, 1.0], -np.eye(3)[0], 2.0, (2.0, 1.0, 0.25), False),
        ([0.0, 0.0, 0.0], Z, 0.5, (0.0, 0.0, np.nan), False),
        ([np.nan] * 3, Z, 0.5, (np.nan, np.nan, np.nan), False),
    ],
)
def test_share_of_the_cone(force, normal, friction, parts, slides) -> None:
    found = ForceInCone.of(np.array(force), normal, friction)
    np.testing.assert_allclose((found.normal, found.sideways, found.share), parts, atol=1e-15)
    assert found.slides is slides


def test_a_surface_is_pushed_at_its_centre_of_pressure() -> None:
    at, force = np.array([0.05, -0.02, 0.0]), np.array([1.0, 2.0, 10.0])
    # The moment of a force at that point, less what friction twists.
    wrench = np.concatenate([force, np.cross(at, force)])
    np.testing.assert_allclose(pressure(wrench), at, atol=1e-15)
    assert not pressure(force).any() and not pressure(np.zeros(6)).any()
    pose = Transform.from_xyz_rpy((1, 2, 3), (0.4, 0, 0))
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = pose.rotation, pose.translation
    placed = PlacedForce.of("sole", matrix, pose.rotation, wrench, Z, 0.5)
    np.testing.assert_allclose(placed.point, pose.translation + pose.rotation @ at)
    np.testing.assert_allclose(placed.force, pose.rotation @ force)
    np.testing.assert_allclose(placed.normal, pose.rotation[:, 2])
    assert placed.parts == ForceInCone.of(force, Z, 0.5)


def test_the_surface_of_a_cone_is_where_friction_ends() -> None:
    vertices, faces = cone_surface(0.3, 0.8)
    assert not vertices[0].any()
    np.testing.assert_allclose(vertices[1:, 2], 0.3)
    np.testing.assert_allclose(np.hypot(vertices[1:, 0], vertices[1:, 1]), 0.8 * 0.3)
    # Each triangle has the tip and two neighbours of the rim, and all of the rim is covered.
    assert (faces[:, 0] == 0).all() and set(faces[:, 1]) == set(faces[:, 2])
    assert sorted(set(faces[:, 1])) == list(range(1, len(vertices)))
    edges = vertices[faces[:, 1]] - vertices[faces[:, 2]]
    assert np.linalg.norm(edges, axis=1).max() < 0.06


def test_largest_force_is_a_fifth_of_the_robot() -> None:
    forces = [np.array([0.0, 3.0, 4.0]), np.array([0.0, 0.0, 1.0])]
    assert force_scale(2.0, forces) == pytest.approx(0.08)
    assert force_scale(2.0, []) == force_scale(2.0, [np.zeros(3)]) == 0.0
