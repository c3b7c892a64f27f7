"""Rigid transforms and inertias against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles.textbook import axis_rotation

from delassus.errors import GeometryError, RobotError
from delassus.model import Inertia, Transform
from delassus.model.spatial import rotation_between, rotation_from_rpy, skew

ORIGIN = (0, 0, 0)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a seeded generator."""
    return np.random.default_rng(1)


def random_transform(rng: np.random.Generator) -> Transform:
    """Return a pose with no special structure."""
    return Transform.from_xyz_rpy(rng.normal(size=3), rng.uniform(-3.0, 3.0, 3))


def cloud_inertia(points: np.ndarray, masses: np.ndarray) -> Inertia:
    """Return the inertia of point masses, from the definition of each moment."""
    rotational = sum(
        mass * (point @ point * np.eye(3) - np.outer(point, point))
        for mass, point in zip(masses, points, strict=True)
    )
    return Inertia(masses.sum(), masses @ points, rotational)


def test_skew_is_the_cross_product(rng: np.random.Generator) -> None:
    u, v = rng.normal(size=(2, 3))
    assert np.allclose(skew(u) @ v, np.cross(u, v), rtol=0, atol=1e-15)


def test_rpy_is_yaw_after_pitch_after_roll(rng: np.random.Generator) -> None:
    roll, pitch, yaw = rng.uniform(-3.0, 3.0, 3)
    x, y, z = np.eye(3)
    expected = axis_rotation(z, yaw) @ axis_rotation(y, pitch) @ axis_rotation(x, roll)
    assert np.allclose(rotation_from_rpy((roll, pitch, yaw)), expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize(
    ("printed", "quarters"),
    [
        ("1.57079632679", 1), ("-1.57079632679", -1), ("1.5707963268", 1), ("3.14159265359", 2),
        ("3.14159265358", 2), ("4.71238898038", 3), ("6.28318530718", 4),
    ],
)  # fmt: skip
def test_printed_multiples_of_a_quarter_turn_are_exact(
    printed: str, quarters: int, axis: int
) -> None:
    angles = np.zeros(3)
    angles[axis] = float(printed)
    exact = np.rint(axis_rotation(np.eye(3)[axis], quarters * np.pi / 2))
    assert np.array_equal(rotation_from_rpy(angles), exact)


@pytest.mark.parametrize("angle", [1e-9, -1e-10, np.pi / 2 + 1e-9, 3.1415926535, 1.5708])
def test_other_angles_are_taken_as_they_are(angle: float) -> None:
    turn = rotation_from_rpy((0.0, 0.0, angle))
    assert np.array_equal(turn[:2, 0], (np.cos(angle), np.sin(angle)))


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.3, 2.0, 2.2, 3.0, np.pi - 1e-6, np.pi - 1e-12])
def test_rotation_between_is_the_smallest_that_takes_a_to_b(
    angle: float, rng: np.random.Generator
) -> None:
    for _ in range(20):
        u, n = np.linalg.qr(rng.normal(size=(3, 2)))[0].T
        v = axis_rotation(n, angle) @ u
        r = rotation_between(u, v)
        assert np.allclose(r @ u, v, rtol=0, atol=1e-14)
        assert np.allclose(r @ r.T, np.eye(3), rtol=0, atol=1e-14)
        assert np.linalg.det(r) > 0
        # The smallest rotation turns by the angle between the two and not more. Near a half
        # turn the trace knows the angle only to the square root of the rounding.
        assert np.trace(r) == pytest.approx(1.0 + 2.0 * np.cos(angle), abs=1e-12)


def test_rotation_between_opposite_vectors() -> None:
    for u in np.vstack([np.eye(3), -np.eye(3)]):
        r = rotation_between(u, -u)
        assert np.allclose(r @ u, -u, rtol=0, atol=1e-15)
        assert np.allclose(r @ r.T, np.eye(3), rtol=0, atol=1e-15)
        assert np.linalg.det(r) == pytest.approx(1.0)


def test_transform_composes_and_inverts(rng: np.random.Generator) -> None:
    a, b = random_transform(rng), random_transform(rng)
    point = rng.normal(size=3)
    in_b = b.rotation @ point + b.translation
    composed = a @ b
    assert np.allclose(
        composed.rotation @ point + composed.translation,
        a.rotation @ in_b + a.translation,
        rtol=0,
        atol=1e-14,
    )
    identity = a @ a.inverse()
    assert np.allclose(identity.rotation, np.eye(3), rtol=0, atol=1e-15)
    assert np.allclose(identity.translation, 0.0, rtol=0, atol=1e-15)


TURN = rotation_from_rpy((0.3, -1.1, 2.0))


@pytest.mark.parametrize(
    "rotation",
    [
        2.0 * np.eye(3),
        np.zeros((3, 3)),
        np.diag([1.0, 1.0, -1.0]),
        -np.eye(3),
        TURN[:, [1, 0, 2]],
        TURN.round(4),
        TURN + 1e-5 * np.eye(3),
        np.array([[1.0, 0.1, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        np.full((3, 3), np.nan),
        np.where(np.eye(3) > 0, np.inf, 0.0),
    ],
)
def test_other_than_rotation_refused(rotation: np.ndarray) -> None:
    with pytest.raises(GeometryError, match="is not a rotation matrix; expected orthonormal") as e:
        Transform(rotation)
    assert str((rotation + 0.0).tolist()) in str(e.value)
    with pytest.raises(GeometryError):
        Transform(rotation.T, np.zeros(3))


@pytest.mark.parametrize(
    ("rotation", "translation", "words"),
    [
        (np.eye(3), (0.0, np.nan, 0.0), r"translation \[0.0, nan, 0.0\] has entries that are not"),
        (np.eye(3), (0.0, 0.0, -np.inf), "not finite"),
        (np.eye(3), (0.0, 0.0), r"translation must be numbers of shape \(3,\), got \(0.0, 0.0\)"),
        (np.eye(4), (0, 0, 0), r"rotation must be numbers of shape \(3, 3\), got array"),
        ("x", (0, 0, 0), r"rotation must be numbers of shape \(3, 3\), got 'x'"),
        (np.eye(3), None, "translation must be numbers"),
        # Of nine numbers in a row nobody knows whether they are rows or columns.
        (np.eye(3).ravel(), (0, 0, 0), r"must be numbers of shape \(3, 3\)"),
        (np.eye(3)[np.newaxis], (0, 0, 0), r"must be numbers of shape \(3, 3\)"),
    ],
)
def test_other_than_a_pose_refused(rotation, translation, words: str) -> None:
    with pytest.raises(GeometryError, match=words):
        Transform(rotation, translation)


def test_a_rotation_of_single_precision_is_one_and_stays_one() -> None:
    single = Transform(TURN.astype(np.float32))
    # Errors of rounding add up in products; what follows from good transforms is never refused.
    power = single
    for _ in range(200):
        power = power @ single
    assert np.linalg.norm(power.rotation @ power.rotation.T - np.eye(3)) < 1e-12
    assert np.array_equal(power.inverse().rotation, power.rotation.T)


def test_motion_to_child_moves_the_point_of_reference(rng: np.random.Generator) -> None:
    pose = random_transform(rng)
    angular, linear = rng.normal(size=(2, 3))
    twist = pose.motion_to_child() @ np.concatenate([angular, linear])
    at_child = linear + np.cross(angular, pose.translation)
    assert np.allclose(twist[:3], pose.rotation.T @ angular, rtol=0, atol=1e-14)
    assert np.allclose(twist[3:], pose.rotation.T @ at_child, rtol=0, atol=1e-14)


def test_inertia_from_com_and_in_parent_match_a_cloud_of_points(rng: np.random.Generator) -> None:
    points, masses = rng.normal(size=(12, 3)), rng.uniform(0.1, 2.0, 12)
    com = masses @ points / masses.sum()
    about_com = cloud_inertia(points - com, masses).rotational
    inertia = Inertia.from_com(masses.sum(), com, about_com)
    expected = cloud_inertia(points, masses)
    assert np.allclose(inertia.matrix(), expected.matrix(), rtol=0, atol=1e-12)

    pose = random_transform(rng)
    moved = cloud_inertia(points @ pose.rotation.T + pose.translation, masses)
    assert np.allclose(inertia.in_parent(pose).matrix(), moved.matrix(), rtol=0, atol=1e-12)


def test_lumping_adds_clouds(rng: np.random.Generator) -> None:
    points, masses = rng.normal(size=(12, 3)), rng.uniform(0.1, 2.0, 12)
    both = cloud_inertia(points[:5], masses[:5]) + cloud_inertia(points[5:], masses[5:])
    assert np.allclose(both.matrix(), cloud_inertia(points, masses).matrix(), rtol=0, atol=1e-12)


def test_inertia_matrix_gives_kinetic_energy(rng: np.random.Generator) -> None:
    points, masses = rng.normal(size=(12, 3)), rng.uniform(0.1, 2.0, 12)
    angular, linear = rng.normal(size=(2, 3))
    twist = np.concatenate([angular, linear])
    velocities = linear + np.cross(angular, points)
    energy = (masses * (velocities**2).sum(axis=1)).sum() / 2.0
    matrix = cloud_inertia(points, masses).matrix()
    assert twist @ matrix @ twist / 2.0 == pytest.approx(energy, rel=1e-13)


def test_numbers_are_read_only_copies() -> None:
    translation = np.ones(3)
    pose = Transform(np.eye(3), translation)
    translation[0] = 5.0
    assert pose.translation[0] == 1.0
    with pytest.raises(ValueError, match="read-only"):
        pose.translation[0] = 5.0
    with pytest.raises(ValueError, match="read-only"):
        Inertia().rotational[0, 0] = 5.0


def test_bytes_tell_apart_what_differs() -> None:
    assert Transform().to_bytes() == Transform.from_xyz_rpy().to_bytes()
    assert Transform().to_bytes() != Transform.from_xyz_rpy(xyz=(0, 0, 1e-12)).to_bytes()
    assert Inertia(1.0).to_bytes() != Inertia(2.0).to_bytes()


@pytest.mark.parametrize(
    ("make", "given", "words"),
    [
        (Inertia, ("x",), "inertia: mass is 'x'; expected a number"),
        (Inertia, (np.nan,), "inertia: mass is nan; expected finite numbers"),
        (Inertia, (1, [1, 2]), r"inertia: moment must be numbers of shape \(3,\), got \[1, 2\]"),
        (Inertia, (1, [0, 0, np.inf]), "inertia: moment is .*inf.*; expected finite numbers"),
        (Inertia, (1, ORIGIN, "I"), r"inertia: rotational must be numbers of shape \(3, 3\), got "
         "'I'"),
        (Inertia, (1, ORIGIN, np.ones(3)), r"inertia: rotational must be numbers of shape "
         r"\(3, 3\)"),
        (Inertia.from_com, ("x", ORIGIN, np.eye(3)), "inertia: mass is 'x'"),
        (Inertia.from_com, (1, (0, 0), np.eye(3)), "inertia: centre of mass must be numbers of "
         "shape"),
        (Inertia.from_com, (1, ORIGIN, 3.0), "inertia: about the centre of mass must be numbers "
         "of shape"),
        (Inertia.from_com, (1.0, ORIGIN, np.eye(3) + 0.2 * np.eye(3, k=1)),
         "must be symmetric, with both triangles"),
    ],
)  # fmt: skip
def test_inertia_refused(make: Any, given: tuple[Any, ...], words: str) -> None:
    with pytest.raises(RobotError, match=words):
        make(*given)


def test_quaternion_is_that_of_the_rotation():
    rng = np.random.default_rng(5)
    for angle in (0.0, 1e-9, 0.7, np.pi - 1e-9, np.pi):
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        w = skew(axis)
        rotation = np.eye(3) + np.sin(angle) * w + (1 - np.cos(angle)) * w @ w
        q = Transform(rotation, np.zeros(3)).quaternion()
        expected = np.append(np.sin(angle / 2) * axis, np.cos(angle / 2))
        assert q[3] >= 0
        # At half a turn the sign of the axis is free.
        assert min(np.abs(q - expected).max(), np.abs(q + expected).max()) < 1e-8


def test_rounding_of_an_inertia_made_symmetric() -> None:
    rounded = np.eye(3)
    rounded[0, 1] = 1e-9
    assert np.array_equal(Inertia(1.0, np.zeros(3), rounded).rotational[0], [1.0, 5e-10, 0.0])


@pytest.mark.parametrize("seed", range(5))
def test_a_rotation_that_is_nearly_one_becomes_one(seed: int) -> None:
    """In single precision, say: else its error is that of the matrix."""
    rng = np.random.default_rng(seed)
    exact = rotation_from_rpy(rng.uniform(-3, 3, 3))
    taken = Transform(exact.astype(np.float32)).rotation
    assert np.abs(taken @ taken.T - np.eye(3)).max() < 4e-15
    assert np.abs(taken - exact).max() < 1e-7
    assert np.array_equal(Transform(exact).rotation, exact + 0.0)
