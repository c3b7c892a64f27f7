"""Effective masses, couplings and heat maps: what they are by definition, and their limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import robots

from delassus import Contact, DelassusSolver, Problem, Robot, Transform
from delassus.drawing.ellipsoids import EffectiveMass, Lengths, linear_blocks
from delassus.drawing.ellipsoids import coupling as of_masses
from delassus.drawing.heat_map import DECADES, heat_map, shares
from delassus.drawing.scene import Placed, Scene


def coupling(G: np.ndarray, one: slice, other: slice) -> float:
    masses = (EffectiveMass.of(G[rows, rows]) for rows in (one, other))
    return of_masses(*masses, G[one, other])


FEET = ("LF", "RF", "LH", "RH")


def quadruped(base: str = "floating", *more: Contact) -> np.ndarray:
    robot = Robot.from_urdf(robots.quadruped(), base)
    contacts = [*(Contact(foot, f"{foot}_FOOT") for foot in FEET), *more]
    solver = DelassusSolver(Problem(robot, contacts))
    return solver.solve(np.random.default_rng(0).uniform(-1, 1, robot.nq)).matrix


def test_along_its_directions_a_contact_feels_its_effective_masses() -> None:
    block = quadruped()[:3, :3]
    mass = EffectiveMass.of(block)
    assert np.linalg.det(mass.directions) > 0.99
    assert (np.diff(mass.masses) > 0).all()
    for m, direction in zip(mass.masses, mass.directions.T, strict=True):
        force = 7.0 * direction
        np.testing.assert_allclose(block @ force, force / m, atol=1e-12)
    np.testing.assert_allclose(
        Lengths(0.1, 100.0).semi_axes(mass), np.maximum(0.1 * mass.masses, 1.0), rtol=1e-12
    )


def test_where_nothing_moves_the_mass_is_infinite_and_drawn_at_its_longest() -> None:
    mass = EffectiveMass.of(np.diag([0.0, 0.5, 1e-17]))
    assert mass.masses.tolist()[0] == 2.0 and np.isinf(mass.masses[1:]).all()
    assert Lengths(0.02, 0.3).semi_axes(mass).tolist() == [0.04, 0.3, 0.3]


def test_lengths_fit_the_robot_and_know_what_they_cut() -> None:
    light, heavy = (EffectiveMass.of(np.diag(1.0 / np.array(m))) for m in ((2, 3, 4), (3, 5, 9)))
    lengths = Lengths.fitting(0.96, [heavy, light])
    assert lengths == Lengths(scale=0.03, longest=0.16)
    assert not lengths.cuts([light]) and lengths.cuts([light, heavy])
    held = EffectiveMass.of(np.zeros((3, 3)))
    assert Lengths.fitting(1.2, [held]) == Lengths(0.075, 0.2)


def test_the_title_of_a_robot_says_where_ellipsoids_are_cut() -> None:
    from delassus.drawing import figures
    bones = [(np.zeros(3), np.array([0.96, 0.0, 0.0]))]
    for masses, cut in (((2.0, 3.0, 4.0), ""), ((2.0, 3.0, 9.0), ", cut at 160 mm")):
        mass = EffectiveMass.of(np.diag(1.0 / np.array(masses)))
        _, (axes,) = figures.new_figure(1)
        placed = Placed("foot", np.zeros(3), mass, mass.directions)
        figures.draw_robot(axes, bones, Scene([placed]))
        said = f"effective mass: 1 kg is 30 mm{cut}; dashes: couplings"
        assert axes.get_title() == said


@pytest.mark.needs("scipy")
def test_a_robot_has_the_hulls_of_its_shapes_and_the_names_of_its_contacts(tmp_path: Path) -> None:
    from delassus.drawing import figures
    mass = EffectiveMass.of(np.eye(3))
    placed = Placed("left_foot", np.array([0.0, 0.0, -1.0]), mass, mass.directions)
    cube = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (2, 3)], dtype=float)
    flat = cube * [1.0, 1.0, 0.0]
    figure, (axes,) = figures.new_figure(1)
    figures.draw_robot(axes, [], Scene([placed]), [cube, flat])
    figures.save(figure, tmp_path / "robot.svg")
    assert ">left_foot</text>" in (tmp_path / "robot.svg").read_text(encoding="utf-8")
    figures.save_for_page(figure, tmp_path / "page.svg")
    assert (tmp_path / "page.svg").read_bytes() == (tmp_path / "robot.svg").read_bytes()
    low, high = axes.get_zlim()
    assert low < -1.0 and high >= 3.0
    # A cube has six sides of two triangles; flat points have no hull, and are left out.
    assert figures.hull(cube).shape == (12, 3, 3) and figures.hull(flat).shape == (0, 3, 3)


def test_couplings_that_are_drawn_are_seen() -> None:
    from delassus.drawing import figures
    mass = EffectiveMass.of(np.eye(3))
    placed = [Placed(str(k), np.array([k, 0.0, 0.0]), mass, mass.directions) for k in range(3)]
    _, (axes,) = figures.new_figure(1)
    couplings = {(1, 0): 0.03, (2, 0): 0.01, (2, 1): 1.0}
    figures.draw_robot(axes, [], Scene(placed, couplings))
    dashes = [line.get_linewidth() for line in axes.get_lines() if line.get_linestyle() == "--"]
    assert dashes == pytest.approx([1.09, 4.0])


def test_coupling_is_whole_for_one_point_and_none_across_a_fixed_base() -> None:
    same = quadruped("floating", Contact("again", "LF_FOOT"))
    assert coupling(same, slice(0, 3), slice(12, 15)) > 1.0 - 1e-9
    near = Contact("near", "LF_FOOT", placement=Transform(np.eye(3), np.array([0.01, 0, 0])))
    assert 0.9 < coupling(quadruped("floating", near), slice(0, 3), slice(12, 15)) <= 1.0
    assert coupling(quadruped("fixed"), slice(0, 3), slice(3, 6)) == 0.0
    between = coupling(quadruped(), slice(0, 3), slice(3, 6))
    assert 0.01 < between < 0.9


def test_coupling_does_not_depend_on_the_order_or_the_axes() -> None:
    G = quadruped()
    turn = Transform.from_xyz_rpy((0, 0, 0), (0.3, -0.5, 1.0)).rotation
    turned = np.kron(np.eye(4), turn) @ G @ np.kron(np.eye(4), turn).T
    one, other = slice(0, 3), slice(3, 6)
    expected = coupling(G, one, other)
    np.testing.assert_allclose(coupling(G, other, one), expected, rtol=1e-12)
    np.testing.assert_allclose(coupling(turned, one, other), expected, rtol=1e-12)


def test_contacts_with_all_linear_rows_are_drawn() -> None:
    blocks = linear_blocks(np.eye(11), (0, 3, 9, 11), ("point", "surface", "selection"))
    assert blocks == {0: slice(0, 3), 1: slice(3, 6)}
    assert linear_blocks(np.zeros((0, 0)), (0,), ()) == {}


def test_a_heat_map_goes_by_shares_without_units() -> None:
    G = np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 1e-9], [0.0, 1e-9, 1e-6]])
    expected = [[0.0, np.log10(0.5), -DECADES], [np.log10(0.5), 0.0, -DECADES],
                [-DECADES, -DECADES, 0.0]]  # fmt: skip
    np.testing.assert_allclose(shares(G), expected, atol=1e-12)
    picture = heat_map(G, (0, 2, 3), cell=4)
    assert picture.shape == (12, 12, 3) and picture.dtype == np.uint8
    # The line between two contacts, and entries to its sides.
    assert (picture[8, :] == 255).all() and (picture[:, 8] == 255).all()
    wide = heat_map(G, (0, 2, 3), cell=4, width=6)
    assert wide.shape == (12, 18, 3)
    assert (wide[:, 12] == 255).all() and (wide[8] == 255).all()
    np.testing.assert_array_equal(wide[1::4, 1::6], picture[1::4, 1::4])
    # What is no number is as nothing.
    G[0, 1] = G[1, 0] = np.nan
    G[2, 2] = np.inf
    assert shares(G)[0, 1] == shares(G)[2, 2] == -DECADES
    assert heat_map(G, (0, 2, 3)).shape == (24, 24, 3)
    G = np.array([[4.0, 1.0, 0.0], [1.0, 1.0, 1e-9], [0.0, 1e-9, 1e-6]])
    lightness = picture.astype(int).sum(axis=2)
    assert lightness[1, 1] > lightness[1, 5] > lightness[1, 11]
    # Other units of a row change nothing.
    scale = np.diag([1.0, 1e3, 1e-2])
    np.testing.assert_allclose(shares(scale @ G @ scale), shares(G), atol=1e-9)


def test_a_matrix_without_rows_is_a_picture_without_pixels() -> None:
    assert heat_map(np.zeros((0, 0)), (0,)).shape == (0, 0, 3)
