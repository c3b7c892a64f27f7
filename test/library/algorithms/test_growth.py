"""How counts of operations grow: a table of problems, the axis of their size, and the bound."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
from cluster_robots import LOOSE, Builder, geared_chain
from oracles.counts import count, exponent, spread
from test_loops_as_rows import grasp
from test_several_links import arms

from benchmarks import mechanisms
from delassus import CentroidalMomentum, Contact, Problem, Robot, Transform, WeightedSum
from delassus.model import Body, Frame, Joint, JointKind
from delassus.model.clusters import with_row_loops
from delassus.testing.random_trees import random_inertia

Counts = Sequence[int]


def stem(links: int) -> Problem:
    """Return a stem with two surfaces."""
    return mechanisms.stem(links, 2, rotated=True)


def points_on_one_link(points: int) -> Problem:
    """Return a chain with points on its last link."""
    rng = np.random.default_rng(0)
    places = [Transform(np.eye(3), rng.normal(size=3)) for _ in range(points)]
    contacts = [Contact(f"c{k}", "link8", "point", place) for k, place in enumerate(places)]
    return Problem(mechanisms.chain(8, "tip").robot, contacts)


def arm(links: int, whole: bool, axes: str = "contact") -> Problem:
    """Return an arm with rows of all its links: a weighted sum, or the momentum at a contact."""
    rng = np.random.default_rng(0)
    place = Transform.from_xyz_rpy((0.2, 0.05, 0.1), (0.4, -0.3, 0.5))
    joints = [Joint(f"j{k}", JointKind.REVOLUTE, k - 1, place) for k in range(links)]
    bodies = [Body(f"b{k}", random_inertia(rng)) for k in range(links)]
    frames = [Frame(f"f{k}", k, Transform() if whole else place) for k in range(links)]
    robot = Robot("arm", joints, bodies, frames)
    if whole:
        return Problem(robot, [Contact("tip", f"f{links - 1}"), CentroidalMomentum("momentum")])
    total = WeightedSum("all", {frame.name: 1.0 / links for frame in frames})
    return Problem(robot, [total], axes)


def long_loop(links: int) -> Problem:
    """Return two arms whose hands hold a bar, the loop closed by rows."""
    return Problem(with_row_loops(grasp(links)), [Contact("hand", f"f{2 * links}", "surface")])


def geared_branches(links: int, branches: int, shape: str) -> Problem:
    """Return a geared chain of alike links with a 6D contact at its tip, or two on a stem."""
    build, tips, root = Builder(0, alike=True), [], -1
    for _ in range(links if branches == 1 else links // 2):
        root = build.gear(root, shape)
    for _ in range(branches):
        tip = root
        for _ in range(0 if branches == 1 else links // 4):
            tip = build.gear(tip, shape)
        tips.append(tip)
    return Problem(build.robot(), [Contact(f"c{tip}", f"f{tip}", "surface") for tip in tips])


def contacts_on_a_chain(links: int) -> Problem:
    """Return a long chain of geared links with a contact at every eighth link."""
    build, tip, contacts = Builder(3, alike=True), -1, []
    for k in range(links):
        tip = build.gear(tip, LOOSE)
        if k % 8 == 7:
            contacts.append(Contact(f"c{k}", f"f{tip}", "surface"))
    return Problem(build.robot(), contacts)


def power(b: float, bound: float) -> Callable[[Counts, Counts], bool]:
    """The exponent is within a bound of b."""
    return lambda sizes, counts: abs(exponent(sizes, counts) - b) < bound


def below(b: float) -> Callable[[Counts, Counts], bool]:
    """The exponent is below b."""
    return lambda sizes, counts: exponent(sizes, counts) < b


def equal_steps(bound: float) -> Callable[[Counts, Counts], bool]:
    """Equal steps of the size cost the same."""
    return lambda _, counts: spread(np.diff(counts)) < bound


def alike_links(sizes: Counts, counts: Counts) -> bool:
    """Each link costs the same, but the outermost, where fewer rows pass and inertia has zeros."""
    per_link = np.diff(counts) / np.diff(sizes)
    same = per_link[2:] == pytest.approx(per_link[1], rel=1e-2)
    return bool(same and per_link[0] < 1.2 * per_link[-1])


def second_differences(_: Counts, counts: Counts) -> bool:
    """Second differences are about the same; of a cubic they would double."""
    second = np.diff(counts, 2)
    return bool(0 < second.min() and second.max() < 1.15 * second.min())


SLOW = pytest.mark.slow
ONE, TWO = (2, 12, 24, 36), (4, 16, 28, 40)


def branches(number: int, shape: str) -> Callable[[int], Problem]:
    return partial(geared_branches, branches=number, shape=shape)


@pytest.mark.parametrize(
    ("make", "name", "sizes", "law"),
    [
        pytest.param(stem, "auto", (10, 20, 40, 80), power(1, 0.05), id="joints-auto", marks=SLOW),
        pytest.param(stem, "pv_osimr", (10, 20, 40, 80), power(1, 0.05), id="joints"),
        pytest.param(points_on_one_link, "auto", (32, 64, 128), power(2, 0.05), id="rows-auto",
                     marks=SLOW),
        pytest.param(points_on_one_link, "pv_osimr", (32, 64, 128), power(2, 0.05), id="rows"),
        pytest.param(arms, "pv_osimr", (8, 12, 16, 20), equal_steps(0.02), id="relative contact"),
        *(
            pytest.param(partial(arm, whole=False, axes=axes), "pv_osimr", (8, 12, 16, 20),
                         equal_steps(0.02), id=f"weighted sum of all links, {axes} axes")
            for axes in ("contact", "world")
        ),
        pytest.param(partial(arm, whole=True), "pv_osimr", (8, 12, 16, 20), equal_steps(0.02),
                     id="whole robot on the world"),
        pytest.param(long_loop, "pv_osimr", (8, 10, 12, 14), equal_steps(0.05), id="long loop"),
        *(
            pytest.param(branches(number, shape), "pv_osimr", sizes, alike_links,
                         id=f"clusters, {number} {shape}", marks=[SLOW] * (number == 2))
            for shape in ("round", LOOSE) for number, sizes in ((1, ONE), (2, TWO))
        ),
        *(
            pytest.param(branches(number, "round"), "pv_osimr", (4, 24, 48, 200), alike_links,
                         id=f"200 clusters, {number}", marks=[SLOW] * (number == 2))
            for number in (1, 2)
        ),
        *(
            pytest.param(lambda rows, shape=shape: geared_chain(6, rows, shape), "pv_osimr",
                         (4, 6, 8, 10, 12), second_differences, id=f"rows on clusters, {shape}")
            for shape in ("round", LOOSE)
        ),
        pytest.param(contacts_on_a_chain, "pv_osimr", (24, 48, 96), below(2.1),
                     id="rows at every eighth link"),
    ],
)  # fmt: skip
def test_growth(make, name, sizes, law) -> None:
    counts = [count(make(size), name) for size in sizes]
    assert law(sizes, counts), counts
