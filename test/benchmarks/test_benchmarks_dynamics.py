"""The benchmark of dynamics: it runs, compares results before it times, and writes its rows."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import small
from linkages import closed_four_bar, four_bar

from benchmarks import dynamics, ours
from benchmarks.cases import Case
from benchmarks.compare import WrongResultError
from benchmarks.timing import Timing
from delassus import Contact, Problem
from delassus.dynamics import Dynamics

pytestmark = pytest.mark.needs("pinocchio")

SECONDS = 0.001


def test_open_robots_are_timed_beside_pinocchio() -> None:
    """Without a compiler of C++ from Python alone."""
    robot = small.walker(floating=False, legs=1)
    case = Case("tiny", "tiny, m=3", "quadruped", lambda: Problem(robot, [Contact("c", "foot0")]))
    found = list(dynamics.measured_open(case, None, SECONDS))
    assert [one.function for one in found] == list(dynamics.TARGETS)
    assert all(one.ratio is None and len(one.python) == 2 for one in found)
    rows = dynamics.places(found, [], [], "day")["open"].rows
    assert [(row[0], len(row)) for row in rows] == [("tiny", 10)] * len(found)
    assert all("not measured" in row[6] for row in rows)


def test_robots_with_loops_are_timed_by_every_exact_method() -> None:
    q = np.array([closed_four_bar(0.1 * k) for k in range(3)])
    closed = SimpleNamespace(
        problem=Problem(four_bar(), [Contact("tip", "tip", "surface")]), pool=lambda count: q
    )
    case = SimpleNamespace(load=lambda: closed, label="four-bar, m=6")
    found = list(dynamics.measured_closed(case, SECONDS))
    inverse, forward = found[:2]
    assert list(inverse.times) == ["c_rnea", "projected"]
    assert list(forward.times) == ["c_aba", "projection", "lagrange"]
    rows = dynamics.places([], found, [], "day")["closed"].rows
    assert [row[0] for row in rows] == ["four-bar"] * 7


def test_ratios_are_to_the_faster_contender_and_held_by_both_numbers() -> None:
    times = {"ours": Timing(1e-6, 2e-6), "a": Timing(8e-6, 9e-6), "b": Timing(7e-6, 2e-5)}
    one = dynamics.Measured("robot, m=3", "quadruped", "forward", {"": 5}, times, times)
    ratio = one.ratio
    assert ratio is not None
    assert (round(ratio.minimum, 6), round(ratio.median, 6)) == (7.0, 4.5)
    two = {"ours": Timing(1e-6, 1e-6), "Pinocchio": Timing(2e-6, 2e-6)}
    shown = dynamics.Measured("robot, m=3", "quadruped", "forward", {"": 5}, times, two)
    (row,) = dynamics.places([shown], [], [], "day")["open"].rows
    assert row[6] == "≥ 6: **no**"


def test_wrong_results_are_not_timed() -> None:
    bound = Dynamics(four_bar()).bind("inverse")
    inputs = dynamics.states(
        four_bar(), 1, np.array([closed_four_bar(0.3 + 0.2 * k) for k in (0, 1)])
    )
    routines = {
        name: ours.bound_routine(bound, np.ascontiguousarray(given))
        for name, given in (("ours", inputs), ("theirs", inputs[::-1]))
    }
    contenders = {
        name: (each, dynamics._results(each, "inverse")) for name, each in routines.items()
    }
    with pytest.raises(WrongResultError, match="four-bar: theirs differs from ours by"):
        dynamics._times("four-bar", contenders, SECONDS)


def test_derivatives_by_pinocchio_are_read_in_our_order() -> None:
    """Its matrices are column by column, the third one has its upper triangle."""
    order = np.array([2, 0, 1])
    slope, other, mass = np.random.default_rng(0).normal(size=(3, 3, 3))
    mass = mass + mass.T
    turned = [matrix[order][:, order] for matrix in (slope, other, mass)]
    turned[2] = np.triu(turned[2])
    block = np.concatenate([matrix.ravel(order="F") for matrix in turned])
    theirs = SimpleNamespace(results=lambda i: block, size=27)
    found = dynamics._results(theirs, "forward_derivatives", order)(0)
    np.testing.assert_array_equal(found, [slope, other, mass])
    torques = SimpleNamespace(results=lambda i: np.array([7.0, 5.0, 6.0]), size=3)
    np.testing.assert_array_equal(dynamics._results(torques, "inverse", order)(0), [[5, 6, 7]])
