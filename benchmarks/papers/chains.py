"""Figures 11 and 13 of the cluster paper: random chains of growing length, by gears and by belts.

Protocol of the authors' released benchmark: chains of 2 to 24 links, 300 robots of each length at
10 states each. Links are turned by geared transmissions, or in pairs by parallel belts. Positions,
axes, inertias and ratios are random, as there: turns about three axes and shifts within ±1, joints
about coordinate axes, an inertia A Aᵀ about a centre of mass within ±1, masses below 1, rotors
with all of that times 1e-4, ratios of gears and belts from 1 to 5. The end effector has six rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.linalg import norm
from scipy.spatial.transform import Rotation

from benchmarks.mechanisms import Builder
from benchmarks.pages import table
from benchmarks.papers.arrays import at_all
from benchmarks.papers.batched import evaluated, ratios_of
from benchmarks.papers.kept import Kept
from benchmarks.papers.methods import APPROXIMATIONS, contenders, measured_here, times_of
from benchmarks.papers.page import under_headings
from benchmarks.scaling import exponent
from delassus import Contact, Problem, Transform
from delassus.model import WORLD, Frame, Inertia
from delassus.model.spatial import Array
from delassus.scalars.functions import Vector

KINDS = ("gears", "belts")
QUANTITIES = {
    "forward": ("c_aba", "approximate", "projection", "lagrange"),
    "matrix": ("efpa", "approximate", "projection", "pv_osimr"),
}
"""Quantities of figures 11 and 13 with their methods, the paper's own first."""
COUNTED = 25
"""Robots of each kind and length on which all methods are counted and compared, the first ones.
Counts depend on the structure alone, but for axes that are the same by chance."""
TIMED_STATES = 10
"""States that kernels are called with in turn."""
_ROTOR = 1e-4
_LARGEST_RATIO = 5


def _body(chain: Builder, rng: np.random.Generator, parent: int, scale: float = 1.0) -> int:
    """Add a random body with its joint; return its index."""
    turn = Rotation.from_euler("xyz", rng.uniform(-1.0, 1.0, 3)).as_matrix()
    place = Transform(turn, rng.uniform(-1.0, 1.0, 3))
    axis = np.eye(3)[rng.integers(3)]
    A = rng.uniform(-1.0, 1.0, (3, 3))
    inertia = Inertia.from_com(
        scale * rng.uniform(), scale * rng.uniform(-1.0, 1.0, 3), scale * A @ A.T
    )
    return chain.add(parent, place, inertia, axis)


def random_chain(kind: str, links: int, seed: int) -> Problem:
    """Return a random chain.

    Parameters
    ----------
    kind : ``"gears"``, a geared transmission for each link; ``"belts"``, parallel belts for each
        pair of links, the second of which turns with the first.
    links : even for belts.
    seed : number of the robot.
    """
    rng = np.random.default_rng([seed, links, KINDS.index(kind)])
    chain, tip = Builder(), WORLD

    def ratios(count: int) -> list[float]:
        return [float(rng.integers(1, _LARGEST_RATIO + 1)) for _ in range(count)]

    def rotor(parent: int, turned_by: Mapping[int, float]) -> None:
        chain.couple(_body(chain, rng, parent, _ROTOR), turned_by)

    for _ in range(links if kind == "gears" else links // 2):
        parent, tip = tip, _body(chain, rng, tip)
        if kind == "gears":
            rotor(parent, {tip: ratios(1)[0]})
            continue
        first, tip = tip, _body(chain, rng, tip)
        gears, belts = ratios(2), ratios(2)
        rotor(parent, {first: gears[0] * belts[0]})
        rotor(parent, {first: gears[1] * belts[0], tip: gears[1] * belts[1]})
    frame = Frame("tip", tip, Transform(np.eye(3), rng.uniform(-1.0, 1.0, 3)))
    robot = chain.robot(f"{kind} {links}, robot {seed}", [frame])
    return Problem(robot, [Contact("tip", "tip", "surface")])


class States(NamedTuple):
    """Random states of robots, all within ±1 (robots, states, n), of the independent joints."""

    y: Array
    rates: Array
    torques: Array

    @classmethod
    def random(cls, links: int, robots: int, states: int) -> States:
        """Return those of chains of a length; of fewer robots, the same of the first ones."""
        given = [np.random.default_rng([links, k]) for k in range(robots)]
        return cls(
            *np.stack([rng.uniform(-1.0, 1.0, (3, states, links)) for rng in given], axis=1)
        )

    def of(self, problem: Problem, k: int) -> list[dict[str, Vector]]:
        """Return the states of robot k as inputs of its dynamics."""
        q = self.y[k] @ ratios_of(problem.robot).T
        names = {"q": q, "rates": self.rates[k], "torques": self.torques[k]}
        return [
            {"gravity": [0.0, 0.0, -9.81]} | {name: v[s].tolist() for name, v in names.items()}
            for s in range(len(q))
        ]  # fmt: skip


def errors(kind: str, links: int, robots: int, states: int) -> dict[str, float]:
    """Return the mean relative errors of the approximate model by quantity, over all states."""
    problems = [random_chain(kind, links, seed) for seed in range(robots)]
    found = evaluated(problems, *States.random(links, robots, states))
    exact, near = found["exact"], found["approximate"]
    by_quantity = {
        "forward": norm(near.accelerations - exact.accelerations, axis=-1)
        / norm(exact.accelerations, axis=-1),
        "matrix": norm(near.G - exact.G, axis=(-2, -1)) / norm(exact.G, axis=(-2, -1)),
    }
    return {quantity: float(each.mean()) for quantity, each in by_quantity.items()}


def counted(kind: str, links: int, robots: int, states: int) -> dict[str, Any]:
    """Return ``operations`` by quantity and method, of each robot, and ``apart``.

    The latter is the largest relative difference, by quantity, of a method's results from those of
    the second implementation, :mod:`benchmarks.papers.batched`.
    """
    problems = [random_chain(kind, links, seed) for seed in range(robots)]
    given = States.random(links, robots, states)
    expected = evaluated(problems, *given)
    operations: dict[str, dict[str, list[int]]] = {quantity: {} for quantity in QUANTITIES}
    apart = dict.fromkeys(QUANTITIES, 0.0)
    for k, problem in enumerate(problems):
        inputs = given.of(problem, k)
        for quantity, names in QUANTITIES.items():
            for name, method in contenders(problem, quantity, names):
                operations[quantity].setdefault(name, []).append(method.count())
                model = expected["approximate" if name in APPROXIMATIONS else "exact"]
                results = model.G if quantity == "matrix" else model.accelerations
                right = results[k].reshape(states, -1)
                wrong = norm(at_all(method.evaluate, inputs) - right, axis=1) / norm(right, axis=1)
                apart[quantity] = max(apart[quantity], float(wrong.max()))
    return {"operations": operations, "apart": apart}


def timed(kind: str, links: int, seed: int, seconds: float) -> dict[str, Any]:
    """Return the minima of the methods' times [s] of a robot by quantity, with machine and day.

    Parameters
    ----------
    seconds : to measure each method.
    """
    problem = random_chain(kind, links, seed)
    states = States.random(links, seed + 1, TIMED_STATES).of(problem, seed)
    found: dict[str, Any] = {
        quantity: times_of(problem, quantity, states, seconds, names)
        for quantity, names in QUANTITIES.items()
    }
    return {"times": found, "measured": measured_here()}


@dataclass(frozen=True)
class Size:
    """What a run has.

    Attributes
    ----------
    links : lengths of the chains.
    robots, states : of each kind and length, and of each robot.
    timed : robots of each kind and length that are compiled and timed, the first ones.
    seconds : to measure each method.
    """

    links: tuple[int, ...] = (2, 4, 6, 8, 12, 16, 20, 24)
    robots: int = 300
    states: int = 10
    timed: int = 3
    seconds: float = 0.1


QUICK = Size((2, 4), 1, 2, 1, 0.002)


def found(kept: Kept, size: Size) -> dict[str, Any]:
    """Return ``kinds``: means by kind, quantity, what is told, method and number of links.

    Told by method are ``operations`` and ``times`` [s]; by number of links alone the ``errors`` of
    the approximate model, the largest relative differences of all methods from the second
    implementation, ``apart``, and of a robot's count from another's, ``spread``. ``measured`` has
    machines and days of the times.
    """
    pairs = [(kind, links) for kind in KINDS for links in size.links]
    few = min(COUNTED, size.robots)
    many, states = f"{size.robots} robots at {size.states} states", size.states
    means = kept.all_of(
        {f"errors of {k} {n}, {many}": (k, n, size.robots, states) for k, n in pairs}, errors
    )
    counts = kept.all_of(
        {f"methods on {few} of {k} {n}, {many}": (k, n, few, states) for k, n in pairs}, counted
    )
    told = ("operations", "times", "errors", "apart", "spread")
    table: dict[str, Any] = {
        kind: {quantity: {what: {} for what in told} for quantity in QUANTITIES} for kind in KINDS
    }
    for kind, links in pairs:
        every = counts[f"methods on {few} of {kind} {links}, {many}"]
        for quantity, place in table[kind].items():
            place["errors"][links] = means[f"errors of {kind} {links}, {many}"][quantity]
            place["apart"][links] = every["apart"][quantity]
            of_methods = every["operations"][quantity]
            place["spread"][links] = max(max(c) / min(c) - 1.0 for c in of_methods.values())
            for name, each in of_methods.items():
                place["operations"].setdefault(name, {})[links] = sum(each) / len(each)
    measured = set()
    for kind, links in pairs:
        for seed in range(size.timed):
            one = kept.of(
                f"times of {kind} {links}, robot {seed}, {size.seconds:g} s",
                partial(timed, kind, links, seed, size.seconds),
            )
            measured.add(one["measured"])
            for quantity, minima in one["times"].items():
                for name, value in minima.items():
                    mean = table[kind][quantity]["times"].setdefault(name, {})
                    mean[links] = mean.get(links, 0.0) + value / size.timed
    return {"kinds": table, "measured": sorted(measured)}


def results(means: Mapping[str, Any], size: Size) -> list[object]:
    """Return the tables of both figures, and the errors of approximate methods."""
    links = [f"{n} links" for n in size.links]
    sections = {}
    for figure, quantity in ((11, "forward"), (13, "matrix")):
        for kind in KINDS:
            rows = []
            told = means[kind][quantity]
            for name, counts in told["operations"].items():
                rows.append(_row(f"`{name}`", "operations", counts, "{:.0f}", 1.0))
                rows.append(_row("", "µs", told["times"][name], "{:.3g}", 1e6))
            heads = ("method", "", *links, "exponent")
            sections[f"Figure {figure}: {kind}"] = table(heads, rows, 2)
    errors = [
        (kind, what, *(f"{100.0 * value:.3g} %" for value in told["errors"].values()))
        for kind in KINDS
        for what, told in (
            ("ÿ, approximate ABA", means[kind]["forward"]),
            ("G, approximate EFPA", means[kind]["matrix"]),
        )
    ]
    sections["Errors of the approximate methods"] = table(("chain", "of", *links), errors, 2)
    spreads = {
        n: max(told["spread"][n] for each in means.values() for told in each.values())
        for n in (size.links[0], size.links[-1])
    }
    apart = " and ".join(f"{100.0 * value:.1f} % with {n} links" for n, value in spreads.items())
    words = (
        f"Counts are means over {min(COUNTED, size.robots)} robots of each length, which differ "
        f"by at most {apart}, where axes are parallel by chance. Times are means over "
        f"{size.timed}, errors over {size.robots} robots at {size.states} states each. On the "
        "robots that were counted all methods were compared with a second implementation at "
        "these states."
    )
    return [*under_headings(sections, "###"), words]


def _row(
    label: str, unit: str, means: Mapping[int, float], form: str, scale: float
) -> tuple[str, ...]:
    slope = exponent(dict(means))
    cells = (form.format(scale * value) for value in means.values())
    return (label, unit, *cells, "" if slope is None else f"{slope:.2f}")
