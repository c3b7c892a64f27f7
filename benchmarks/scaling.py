"""How operation counts and times grow with the chain, the stem and the number of contacts."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks import ours, pinocchio_peer
from benchmarks.cases import pool, quadruped
from benchmarks.compare import compare, in_c
from benchmarks.mechanisms import chain, stem
from benchmarks.pinocchio_peer import PinocchioProblem
from benchmarks.timing import Routine
from delassus import Contact, Problem, Transform
from delassus.errors import DelassusError
from delassus.model.spatial import Array

ALGORITHMS = ("auto", "pv_osimr")
PEER = "Pinocchio C++, best"
PEERS = {
    name: pinocchio_peer.ROUTES[name]
    for name in ("computeDelassusMatrix", "computePvDelassusMatrix")
}
"""The routes that are not cubic in the size."""
QUICK_SIZES = 2
"""Sizes of each series in a quick run, too few for an exponent."""
_POOL = 16


@dataclass(frozen=True)
class Series:
    """A family of problems.

    Attributes
    ----------
    name : what grows.
    axis : label of x, with what stays fixed.
    make : returns the problem of size x.
    sizes : values of x.
    expected : exponent that linear or quadratic cost has.
    algorithms : those of ours.
    configurations : returns some of a problem's, (count, nq).
    """

    name: str
    axis: str
    make: Callable[[int], Problem]
    sizes: tuple[int, ...]
    expected: float
    algorithms: tuple[str, ...] = ALGORITHMS
    configurations: Callable[[Problem, int], Array] = pool


def contacts_on_feet(rows: int) -> Problem:
    """Return our quadruped with rows/3 points spread over its four feet."""
    robot = quadruped().robot
    rng = np.random.default_rng(0)
    feet = ("LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT")
    points = [
        Contact(f"c{k}", feet[k % 4], "point", Transform(np.eye(3), rng.uniform(-0.05, 0.05, 3)))
        for k in range(rows // 3)
    ]
    return Problem(robot, points)


SERIES = (
    Series(
        "chain", "joints of a chain on a floating base (6D at its tip, m=6)",
        lambda n: chain(n, "tip"), (8, 16, 32, 64, 128, 192, 256, 384, 500), 1.0,
    ),
    Series(
        "stem", "length of a stem with two branches of 7 links at each end (m=24)",
        lambda n: stem(n, 2, rotated=True), (4, 8, 16, 32, 64, 128, 192, 256, 384, 472), 1.0,
    ),
    Series(
        "contacts", "rows m, points on the feet of our quadruped (12 joints)",
        contacts_on_feet, (12, 24, 48, 96, 144, 192, 240, 300), 2.0,
    ),
)  # fmt: skip


@dataclass
class Curve:
    """Sizes with counts and times [s] of one contender; times may end earlier."""

    counts: dict[int, float] = field(default_factory=dict)
    minima: dict[int, float] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class Growth:
    """A series with the curves of its contenders, by name."""

    series: Series
    curves: dict[str, Curve]


def exponent(points: dict[int, float]) -> float | None:
    """Return the slope on log axes of the larger half of the sizes; None below three points."""
    sizes = sorted(points)
    tail = sizes[-max(3, (len(sizes) + 1) // 2) :]
    if len(tail) < 3:
        return None
    slope = np.polyfit(np.log(tail), np.log([points[x] for x in tail]), 1)[0]
    return float(slope)


def growth(
    series: Series,
    sizes: Sequence[int],
    library: ctypes.CDLL | None,
    limit: float,
    seconds: float,
    say: Callable[[str], None],
) -> Growth:
    """Trace, compile and time a series.

    Parameters
    ----------
    sizes : values of x.
    library : Pinocchio's routes; no peer if None.
    limit : a kernel that is expected to take longer to trace or build [s] ends its curve.
    seconds : per contender and size [s].
    say : told each size before its kernels are compiled and timed.
    """
    names = series.algorithms
    curves = {name: Curve() for name in (*names, *([PEER] if library else []))}
    traced: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
    built: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
    for x in sizes:
        say(f"growth with the {series.name}: {x}")
        problem = series.make(x)
        inputs = series.configurations(problem, _POOL)
        routines: dict[str, Routine] = {}
        for name in names:
            curve = curves[name]
            if _expected(traced[name], x) > limit:
                curve.note = curve.note or f"ends before {x}: tracing takes too long"
                continue
            start = time.perf_counter()
            curve.counts[x] = ours.operations(problem, name).total
            traced[name].append((x, time.perf_counter() - start))
            if curve.note or _expected(built[name], x) > limit:
                curve.note = curve.note or f"times end before {x}: compiling takes too long"
                continue
            start = time.perf_counter()
            try:
                routines[name] = ours.build(problem, name, inputs, use_cache=False).routine
            except DelassusError as error:
                curve.note = f"times end before {x}: {error}"
                continue
            built[name].append((x, time.perf_counter() - start))
        peers = _peers(problem, inputs, library)
        # Small sizes are compared with the definition elsewhere.
        contenders = {name: in_c(each) for name, each in (routines | peers).items()}
        times = compare(f"{series.name} {x}", contenders, seconds, states=(1,))
        for name in routines:
            curves[name].minima[x] = times[name].minimum
        if peers:
            curves[PEER].minima[x] = min(times[name].minimum for name in peers)
    return Growth(series, curves)


def _expected(history: Sequence[tuple[int, float]], x: int) -> float:
    """Return how long size x is expected to take [s], a little worse than the last step."""
    if not history:
        return 0.0
    last, seconds = history[-1]
    return seconds * float((x / last) ** 1.5)


def _peers(
    problem: Problem, inputs: Array, library: ctypes.CDLL | None
) -> dict[str, Routine]:
    if library is None:
        return {}
    peer = PinocchioProblem(problem)
    return pinocchio_peer.routines(
        library, peer, problem.contacts.rows, peer.configurations(inputs), PEERS
    )
