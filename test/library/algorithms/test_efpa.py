"""EFPA as published: six rows per end effector, and the base on the axis of a privileged child."""

from __future__ import annotations

import numpy as np
import pytest
from on_floats import flat

from benchmarks.mechanisms import Links, points, rotation
from delassus import CenterOfMass, Contact, Problem, RelativeContact, Robot, algorithms
from delassus.compiler.ir.trace import trace
from delassus.rbda.trees import tree_of
from delassus.samples import random_inputs
from delassus.testing import ALL, random_problem

EFPA, STRICT = algorithms.get("efpa"), algorithms.get("efpa_strict")


def both(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    x = flat(random_inputs(problem, seed))
    efpa, strict = (np.array(each.evaluate(problem, x)["G"]) for each in (EFPA, STRICT))
    return efpa, strict


@pytest.mark.parametrize("axes", ["contact", "world"])
def test_the_published_form_has_the_matrix_of_efpa(axes) -> None:
    """Contacts of one to six rows, fixed and moving; dense selections."""
    rows = set()
    for seed in range(12):
        problem = random_problem(seed, ALL, axes=axes)
        rows |= {contact.rows for contact in problem.contacts}
        efpa, strict = both(problem, seed)
        assert (strict == strict.T).all(), seed
        assert np.abs(strict - efpa).max() <= 1e-12 * np.abs(efpa).max(), seed
    assert {3, 6} < rows


def quadruped() -> Robot:
    """Return a floating body with four limbs of one build."""
    build = Links()
    places = ((0.3, 0.1, 0.2), (0.25, -0.12, 0.21), (-0.3, 0.15, 0.22), (-0.35, -0.08, 0.23))
    for place in places:
        build.chain(0, 3, rotation((1.0, 0.0, 0.0), np.pi / 2), np.array(place))
    return build.robot("quadruped")


FEET = ("link3", "link6", "link9", "link12")


def test_rows_of_several_links_and_of_the_robot() -> None:
    robot = quadruped()
    contacts = [
        Contact("foot", "link3", np.random.default_rng(0).normal(size=(2, 6))),
        RelativeContact("grip", "link6", "link9"), CenterOfMass("com"),
    ]  # fmt: skip
    efpa, strict = both(Problem(robot, contacts), 0)
    assert np.abs(strict - efpa).max() <= 1e-13 * np.abs(efpa).max()


def test_the_base_is_on_the_axis_of_a_child_among_limbs_of_one_build() -> None:
    """The child then turns about a fixed axis of the base: without offset and constant turn."""
    problem = Problem(quadruped(), points(FEET))

    def privileged(tree) -> list[int]:
        return [
            i for i, link in enumerate(tree.links)
            if link.parent == 0 and not link.turns and not any(link.offset)
        ]  # fmt: skip

    assert privileged(tree_of(problem)) == []
    tree = tree_of(problem, on_child_axis=True)
    assert len(privileged(tree)) == 1


def test_the_privileged_child_is_cheaper_and_six_rows_are_dearer() -> None:
    robot = quadruped()

    def counts(problem: Problem) -> list[int]:
        return [trace(problem, a, generic=True).operations.total for a in (EFPA, STRICT)]

    efpa, strict = counts(Problem(robot, [Contact(foot, foot, "surface") for foot in FEET]))
    assert 0.9 * efpa < strict < 0.98 * efpa
    # One dense row per foot: efpa propagates one, the published form six.
    row = np.random.default_rng(0).normal(size=(1, 6))
    efpa, strict = counts(Problem(robot, [Contact(foot, foot, row) for foot in FEET]))
    assert strict > 2.0 * efpa
