"""The algorithm of a page: G is the same whichever is chosen, and its cost is shown."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import robots
import viser

from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.drawing import algorithm_choice
from delassus.drawing.algorithm_choice import AlgorithmChoice, accepted
from delassus.drawing.page_server import PageServer
from delassus.drawing.snapshot import Moment, SnapshotSolver
from delassus.errors import AlgorithmError

ARM = Problem(Robot.from_urdf(robots.shared("ur5"), "fixed"), [Contact("tool", "tool0")])
Q = np.array([0.1, -1.0, 1.2, 0.3, 0.7, -0.4])


@pytest.fixture(scope="module", name="gui")
def _gui() -> Iterator[viser.GuiApi]:
    page = PageServer("test", 0)
    try:
        yield page.viser.gui
    finally:
        page.close()


class Counted(SnapshotSolver):
    """A solver that counts its measurements of time."""

    measured = 0

    def time(self, moment: Moment, calls: int) -> float:
        self.measured += 1
        return super().time(moment, calls)


def choice_of(gui: viser.GuiApi, problem: Problem) -> tuple[AlgorithmChoice, Counted]:
    snapshots = Counted(DelassusSolver(problem, "auto"))
    return AlgorithmChoice(gui, snapshots, lambda: None), snapshots


def test_the_matrix_is_the_same_to_rounding_whichever_algorithm_is_chosen(gui) -> None:
    choice, snapshots = choice_of(gui, ARM)
    G = DelassusSolver(ARM, "dense").solve(Q).matrix
    names = choice.list.options
    assert {"auto", "dense", "pv_osimr", "ltl"} <= {*names} and choice.list.value == "auto"
    for name in names:
        choice.list.value = name
        choice.follow(Moment(Q))
        found = snapshots.snapshot(Q, ["tool"]).scene.G
        np.testing.assert_allclose(found, G, atol=1e-12 * np.abs(G).max())
        assert snapshots.solver.algorithm == name
        count = snapshots.solver.operations
        shown = "not counted" if count is None else f"{count.total} operations, "
        assert "one G: " in choice.words and " µs, " in choice.words and shown in choice.words


def test_time_is_measured_when_the_algorithm_changes_and_not_when_the_pose_does(gui) -> None:
    choice, snapshots = choice_of(gui, ARM)
    for name, count in (("auto", 1), ("auto", 1), ("ltl", 2), ("ltl", 2)):
        choice.list.value = name
        choice.follow(Moment(Q + 0.1 * count))
        assert snapshots.measured == count
    assert 0.0 < snapshots.time(Moment(Q), 3) < 1e-2


def test_algorithms_that_refuse_or_approximate_the_problem_are_no_choice() -> None:
    hand = Robot.from_urdf(robots.example("panda_description/urdf/panda.urdf"), "fixed")
    mimic = Problem(hand, [Contact("hand", "panda_hand")])
    assert algorithms.get("kjr").supports(mimic) is not None
    assert algorithms.get("reflected_inertia").approximates(mimic)
    assert set(accepted(ARM)) - set(accepted(mimic)) >= {"kjr", "reflected_inertia"}
    assert set(accepted(mimic)) >= {"auto", "ltl", "efpa"}


def test_an_algorithm_that_fails_leaves_the_former_one_in_use(gui, monkeypatch) -> None:
    choice, snapshots = choice_of(gui, ARM)
    choice.follow(Moment(Q))

    def fail(problem: Problem, name: str) -> DelassusSolver:
        raise AlgorithmError("no <kernel>")

    monkeypatch.setattr(algorithm_choice, "DelassusSolver", fail)
    choice.list.value = "ltl"
    choice.follow(Moment(Q))
    assert choice.list.value == snapshots.solver.algorithm == "auto"
    assert "ltl: no &lt;kernel&gt;" in choice.words
    choice.follow(Moment(Q))
    assert "ltl: no" in choice.words
