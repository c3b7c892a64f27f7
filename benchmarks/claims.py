"""Stated figures of performance beside measured ones: ``python -m benchmarks.claims``.

``claims.yaml`` lists the statements of README, CHANGELOG and documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from benchmarks import timing
from benchmarks.arguments import parser_of
from benchmarks.cases import AbsentError, chosen, pool
from benchmarks.pinocchio_peer import PinocchioProblem, routes
from delassus import DelassusSolver

LIST = Path(__file__).with_name("claims.yaml")
_SECONDS = 0.1
"""Time per contender of a comparison [s]."""
_US = 1e6
"""Microseconds per second."""


@dataclass(frozen=True)
class Statement:
    """A figure of performance that a page states.

    Attributes
    ----------
    file : page, relative to the repository.
    text : the words of the page.
    high, low : range of the figure, in the unit of the text.
    measure : name in :data:`MEASURES`; empty where `command` gives the figure.
    command : command line that gives the figure; empty where it is measured here.
    tolerance : by which fraction a measured figure may be outside of the range.
    """

    file: str
    text: str
    high: float
    low: float = 0.0
    measure: str = ""
    command: str = ""
    tolerance: float = 0.0

    def holds(self, found: float) -> bool:
        """Return whether a measured figure is in the range, with its tolerance."""
        return self.low * (1 - self.tolerance) <= found <= self.high * (1 + self.tolerance)

    @property
    def stated(self) -> str:
        """The range of the figure, in words."""
        return f"{self.low:g} to {self.high:g}" if self.low else f"{self.high:g}"


def statements() -> list[Statement]:
    """Return all statements of the list."""
    return [Statement(**entry) for entry in yaml.safe_load(LIST.read_text(encoding="utf-8"))]


@cache
def _calls(case: str) -> dict[str, float]:
    """Return medians of calls from Python by name, taken in turns in this process [us]."""
    problem = chosen(case)[0].load()
    inputs = pool(problem)
    solver = DelassusSolver(problem, "auto")
    bound = solver.bind()
    samplers = {
        "solve": timing.python(solver.solve, inputs),
        "bound": timing.python(bound.solve, inputs),
    }
    try:
        peer = PinocchioProblem(problem)
    except AbsentError:
        pass
    else:
        call = routes(peer)["pin.computeDelassusMatrix"].call
        samplers["pin"] = timing.python(call, peer.configurations(inputs))
    found = timing.measure(samplers, _SECONDS)
    return {name: _US * times.median for name, times in found.items()}


def _to_pinocchio(case: str) -> float:
    calls = _calls(case)
    if "pin" not in calls:
        raise AbsentError("Pinocchio is not installed")
    return calls["solve"] / calls["pin"]


def _solve_to_pinocchio() -> float:
    """Return the largest ratio over the robots of the suite that are present."""
    found = []
    for case in chosen(None):
        try:
            found.append(_to_pinocchio(case.name))
        except AbsentError:
            continue
    if not found:
        raise AbsentError("no robot of the suite, or no Pinocchio, is on this machine")
    return max(found)


@cache
def _estimates() -> dict[str, float]:
    """Return medians of the estimate that docs/measured.md poses, by kind of call [us]."""
    page = (LIST.parents[1] / "docs" / "measured.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    system, values, q = names["system"], names["values"], np.zeros(names["robot"].nq)
    rates = np.zeros(6 + q.size)
    y = np.concatenate([np.ravel(values[quantity]) for quantity in system.given])
    samplers = {
        "flat": timing.once(lambda: system.solve_flat(q, rates, y), 1),
        "named": timing.once(lambda: system.solve(q, rates, values), 1),
    }
    return {name: _US * t.median for name, t in timing.measure(samplers, _SECONDS).items()}


@cache
def _reading() -> dict[str, float]:
    """Return medians of the time that reading a matrix of 24 rows takes, by function [us]."""
    try:
        from delassus_msgs.msg import DelassusMatrix
        from delassus_msgs_py import MatrixReader, matrix_to_numpy
        from rclpy.serialization import deserialize_message, serialize_message
    except ImportError as error:
        raise AbsentError(f"the messages are not installed: {error}") from error
    feet = ["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"]
    message = DelassusMatrix(
        contacts=feet, kinds=["surface"] * 4, status=[2] * 4, row_offsets=range(0, 25, 6),
        matrix=np.random.default_rng(0).random(576), algorithm="pv_osimr", rank=24,
        validity=DelassusMatrix.VALIDITY_OK,
    )  # fmt: skip
    data, reader = serialize_message(message), MatrixReader()
    samplers = {
        "bytes": timing.once(lambda: reader.read(data), 1),
        "message": timing.once(
            lambda: matrix_to_numpy(deserialize_message(data, DelassusMatrix)), 1
        ),
    }
    return {name: _US * t.median for name, t in timing.measure(samplers, _SECONDS).items()}


MEASURES: dict[str, Callable[[], float]] = {
    "solve_quadruped": lambda: _calls("quadruped")["solve"],
    "solve_quadruped_to_pinocchio": lambda: _to_pinocchio("quadruped"),
    "solve_suite_to_pinocchio": _solve_to_pinocchio,
    "bound_solve_quadruped": lambda: _calls("quadruped")["bound"],
    "bound_solve_talos": lambda: _calls("talos")["bound"],
    "estimate_flat": lambda: _estimates()["flat"],
    "estimate_named": lambda: _estimates()["named"],
    "matrix_reader": lambda: _reading()["bytes"],
    "matrix_message": lambda: _reading()["message"],
}
"""What gives a figure within seconds, in the unit of the texts."""


def report(listed: Iterable[Statement]) -> list[str]:
    """Return a line per statement: whether it holds, what is stated, measured, and where."""
    lines = []
    for statement in listed:
        words = " ".join(statement.text.split())
        if statement.command:
            verdict, found = "not tried", f"run: {statement.command}"
        else:
            try:
                value = MEASURES[statement.measure]()
            except AbsentError as error:
                verdict, found = "not tried", str(error)
            else:
                verdict = "holds" if statement.holds(value) else "DOES NOT HOLD"
                found = f"measured {value:.3g}"
        lines.append(f"{verdict}: stated {statement.stated}, {found} ({statement.file}: {words})")
    return lines


if __name__ == "__main__":
    parser_of(".claims", __doc__).parse_args()
    print("\n".join(report(statements())))
