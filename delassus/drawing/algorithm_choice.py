"""The choice of the algorithm on a page, with the time and the operations of the chosen one."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import viser

from delassus import algorithms
from delassus.drawing.panel import small
from delassus.drawing.snapshot import Moment, SnapshotSolver
from delassus.errors import DelassusError
from delassus.problem import Problem
from delassus.solver.solver import DelassusSolver

_CALLS = 100
"""Number of calls of which the shortest time is shown."""


class AlgorithmChoice:
    """A drop-down list of the algorithms of a robot, which changes the solver of the snapshots.

    Parameters
    ----------
    changed : called when the user has chosen an algorithm.

    Attributes
    ----------
    list : the drop-down list.
    """

    def __init__(
        self, gui: viser.GuiApi, snapshots: SnapshotSolver, changed: Callable[[], object]
    ) -> None:
        self._snapshots, self._shown = snapshots, ""
        self.list = gui.add_dropdown(
            "algorithm", accepted(snapshots.solver.problem),
            initial_value=snapshots.solver.algorithm,
        )  # fmt: skip
        self._cost = gui.add_html("")
        self.list.on_update(lambda _: changed())

    @property
    def words(self) -> str:
        """The shown time and operations, as HTML."""
        return str(self._cost.content)

    def follow(self, moment: Moment) -> None:
        """Use the chosen algorithm, and show its cost at a moment, unless it is in use already.

        The kernel is compiled if it is not in the cache. An algorithm that fails leaves the
        former one in use; the page has the message.
        """
        name, before = self.list.value, self._snapshots.solver
        if name == self._shown:
            return
        self._cost.content = small(f"compiling {name} …")
        try:
            if name != before.algorithm:
                self._snapshots.solver = DelassusSolver(before.problem, name)
            words = cost_words(self._snapshots.solver, self._snapshots.time(moment, _CALLS))
        except DelassusError as error:
            words = f"{name}: {error}"
            self._snapshots.solver = before
            self.list.value = name = before.algorithm
        self._shown = name
        self._cost.content = small(html.escape(words))


def accepted(problem: Problem) -> Sequence[str]:
    """Return the names of the algorithms that compute the matrix of a problem to rounding."""
    found = {name: algorithms.get(name) for name in algorithms.names()}
    return [
        name
        for name, algorithm in found.items()
        if algorithm.supports(problem) is None and not algorithm.approximates(problem)
    ]


def cost_words(solver: DelassusSolver, seconds: float) -> str:
    """Return a text about the time of one call [s] and the operations of a solver."""
    outputs = ", ".join(port.name for port in solver.problem.outputs)
    count = solver.operations
    operations = (
        "operations are not counted for a back end" if count is None
        else f"{count.total} operations, {count.sines_cosines} sin/cos"
    )  # fmt: skip
    return f"one {outputs}: {1e6 * seconds:.3g} µs, {operations}"
