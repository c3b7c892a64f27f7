"""All that is timed on one case, each checked against the definition before."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from benchmarks import casadi_peer, ours, pinocchio_peer
from benchmarks.cases import POOL, AbsentError, Case, pool
from benchmarks.compare import TOLERANCE, Contender, WrongResultError, from_python, in_c
from benchmarks.compilers import Compilation
from benchmarks.pinocchio_peer import PinocchioProblem
from benchmarks.timing import Routine
from delassus import Problem
from delassus.errors import DelassusError
from delassus.model.spatial import Array
from delassus.testing.conformance import relative_error, textbook

CASADI = "CasADi"
CPP = "C++ "
"""What the names of Pinocchio's C++ routes begin with."""
_CHECKED = (3, POOL - 1)
"""Configurations of the pool at which every contender is checked."""


class Contenders:
    """Ours and the peers on one case.

    Making it compiles; nothing may be timed meanwhile. :meth:`finish` waits for the compilers.

    Parameters
    ----------
    case : the case, whose problem is `problem`.
    algorithms : names of those of ours.
    most_operations : those with more are not compiled, except the chosen one.

    Raises
    ------
    DelassusError
        If the chosen algorithm cannot be compiled.

    Attributes
    ----------
    operations : operation count per algorithm of ours.
    routines : by name, all with the C ABI.
    python : by name, calls from Python.
    notes : missing contenders, with the reasons.
    """

    def __init__(
        self, case: Case, problem: Problem, algorithms: tuple[str, ...], most_operations: int
    ) -> None:
        self.case, self.problem = case, problem
        self.inputs = pool(problem)
        self.rows = problem.contacts.rows
        self.operations: dict[str, int] = {}
        self.routines: dict[str, Routine] = {}
        self.python: dict[str, Contender] = {}
        self.notes: list[str] = []
        self._expected = {i: textbook(problem, {"q": self.inputs[i]}) for i in _CHECKED}
        self._casadi = self._start_casadi()
        for name in algorithms:
            self._add_ours(name, most_operations)
        self.batch = ours.Batch(problem, ours.CHOSEN)

    def finish(
        self, pinocchio_library: ctypes.CDLL | None, say: Callable[[str], None] = lambda _: None
    ) -> None:
        """Add the peers and check everything.

        Parameters
        ----------
        say : told how long the compiler of CasADi's code is waited for.

        Raises
        ------
        WrongResultError
            If one differs from the definition.
        """
        self._finish_casadi(say)
        self._add_pinocchio(pinocchio_library)
        results = {name: each.results for name, each in self.python.items() if each.results}
        results |= {name: in_c(routine).results for name, routine in self.routines.items()}
        for name, of_state in results.items():
            for i, expected in self._expected.items():
                self._check(name, of_state(i)[0], expected)

    def _add_ours(self, name: str, most_operations: int) -> None:
        try:
            if name != ours.CHOSEN:
                count = ours.operations(self.problem, name).total
                self.operations[name] = count
                if count > most_operations:
                    self.notes.append(f"{name}: not compiled, {count} operations")
                    return
            built = ours.build(self.problem, name, self.inputs)
        except DelassusError as error:
            if name == ours.CHOSEN:
                raise
            self.notes.append(f"{name}: {error}")
            return
        self.operations[name] = built.kernel.operations.total
        self.routines[name] = built.routine
        if name != ours.CHOSEN:
            return
        for label, call in ours.python_calls(self.problem, built, name).items():
            self.python[label] = from_python(call, self.inputs, lambda G: [G])

    def _start_casadi(self) -> Compilation | None:
        try:
            return casadi_peer.compilation(self.problem)
        except AbsentError as error:
            self.notes.append(f"{CASADI}: {error}")
            return None

    def _finish_casadi(self, say: Callable[[str], None]) -> None:
        if self._casadi is None:
            return
        try:
            library = self._casadi.library(lambda text: say(f"{CASADI}: {text}"))
        except AbsentError as error:
            self.notes.append(f"{CASADI}: {error}")
            return
        self.routines[CASADI] = casadi_peer.routine(library, self.inputs, self.rows)

    def _add_pinocchio(self, library: ctypes.CDLL | None) -> None:
        try:
            peer = PinocchioProblem(self.problem)
        except AbsentError as error:
            self.notes.append(f"Pinocchio: {error}")
            return
        inputs = peer.configurations(self.inputs)
        for name, route in pinocchio_peer.routes(peer).items():
            self.python[name] = from_python(
                route.call, inputs, lambda G, read=route.read: [read(G)]
            )
        if library is not None:
            for name, routine in pinocchio_peer.routines(library, peer, self.rows, inputs).items():
                self.routines[CPP + name] = routine

    def _check(self, name: str, matrix: Array, expected: Array) -> None:
        error = relative_error(self.problem, matrix, expected)
        if not error <= TOLERANCE:
            raise WrongResultError(
                f"{self.case.label}: {name} differs from the definition by {error:.1e}"
            )
