"""Robots with gears, belts and loops, a part of the benchmarks: what is measured.

Times beside those of the C++ library of the cluster paper's authors, measured on another machine
and taken to this one by a peer that was measured on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks import machine_speed, ours, timing
from benchmarks.cases import AbsentError
from benchmarks.cluster_cases import (
    Closed,
    ClusterCase,
    closed_configurations,
)
from benchmarks.compare import agree
from benchmarks.machine_speed import MachineSpeed
from benchmarks.measure import Times
from benchmarks.mechanisms import geared_chain
from benchmarks.scaling import QUICK_SIZES, Growth, Series, growth
from delassus.algorithms.dense import definition
from delassus.compiler.ir.trace import trace
from delassus.errors import DelassusError
from delassus.model.clusters import clusters_of
from delassus.model.spatial import Array

ALGORITHMS = ("efpa", "pv_osimr", "ltl", "auto")
BATCH = 8
_CHECKED = (3, 40)
"""Configurations of the pool at which every kernel is compared with the definition."""
_LONGEST_BUILD = 20.0
"""Kernels of a growing chain that are expected to take longer [s] are not built."""
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"


@dataclass
class ClusterResult:
    """Measurements of a case."""

    case: ClusterCase
    joints: int = 0
    freedoms: int = 0
    generic: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Operations with the robot's constants unknown, and folded."""
    warm: Times = field(default_factory=dict)
    batch: Times = field(default_factory=dict)
    """A batch of 8, called in C [s per configuration]."""


@dataclass
class Run:
    """All results of a run.

    Attributes
    ----------
    left_out : a line per absent robot, with the reason.
    """

    is_quick: bool
    speed: MachineSpeed
    results: list[ClusterResult] = field(default_factory=list)
    growths: list[Growth] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)


CHAIN = Series(
    "geared chain", "links of a fixed geared chain (6D at its tip, m=6)",
    geared_chain, (2, 6, 12, 25, 50, 100, 200), 1.0,
    ("efpa", "pv_osimr", "ltl"), closed_configurations,
)  # fmt: skip
ROWS = Series(
    "geared chain's contacts", "rows m, 6D contacts at the tip of a geared chain of 6 links",
    lambda rows: geared_chain(6, rows // 6), (6, 12, 24, 48, 96, 192), 2.0,
    ("efpa", "pv_osimr"), closed_configurations,
)  # fmt: skip


def measured(case: ClusterCase, seconds: float) -> ClusterResult:
    """Compile, check and time a case.

    Raises
    ------
    AbsentError
        If the robot is not on this machine.
    WrongResultError
        If a kernel differs from the definition or from the paper's library.
    """
    closed = case.load()
    problem, inputs = closed.problem, closed.pool()
    clusters = clusters_of(problem.robot)
    result = ClusterResult(
        case,
        joints=len(problem.robot.joint_names),
        freedoms=sum(problem.robot.joints[i].kind.nv for c in clusters for i in c.independent),
    )
    warm, batches = {}, {}
    for name in ALGORITHMS:
        algorithm = ours.traced(name)
        result.generic[name] = trace(problem, algorithm, generic=True).operations.total
        built = ours.build(problem, name, inputs)
        result.counts[name] = built.kernel.operations.total
        _check(closed, name, built.routine.matrix, inputs)
        _check_states(closed, name)
        warm[name] = timing.warm(built.routine)
        matrices, sampler = ours.Batch(problem, name).resident(inputs[:BATCH], "rows")
        sampler(1)
        _check(closed, f"batch, {name}", matrices.__getitem__, inputs[:BATCH])
        batches[name] = sampler
    result.warm = timing.measure(warm, seconds)
    result.batch = timing.measure(batches, seconds)
    return result


def _check(closed: Closed, name: str, matrix: Callable[[int], Array], inputs: Array) -> None:
    for i in (k for k in _CHECKED if k < len(inputs)):
        expected = definition(closed.problem, {"q": inputs[i]})
        where = f"{closed.problem.robot.name}: {name}"
        agree(where, "the definition", matrix(i), expected)


def _check_states(closed: Closed, name: str) -> None:
    robot = closed.problem.robot
    if closed.states:
        configurations = np.array([q for q, _ in closed.states])
        routine = ours.build(closed.problem, name, configurations).routine
        for i, (_, expected) in enumerate(closed.states):
            agree(f"{robot.name}: {name}", "the paper's library", routine.matrix(i), expected)


def run(
    cases: Iterable[ClusterCase],
    seconds: float,
    quick: bool,
    say: Callable[[str], None],
) -> Run:
    """Measure cases, then the growth with links and contacts; the machine's speed around both.

    Parameters
    ----------
    seconds : per contender and measurement [s].
    quick : end the growth after a few sizes.
    """
    run = Run(quick, MachineSpeed(reason="a quick run does not time it"))
    if not quick:
        say("Pinocchio in C++, to compare this machine with that of the library's times")
        run.speed = machine_speed.measured(seconds)
    for case in cases:
        say(f"{case.label}: compiling and measuring")
        try:
            run.results.append(measured(case, seconds))
        except (AbsentError, DelassusError) as error:
            run.left_out.append(f"- {case.label}: {error}")
    for series in (CHAIN, ROWS):
        sizes = series.sizes[: QUICK_SIZES if quick else None]
        run.growths.append(growth(series, sizes, None, _LONGEST_BUILD, seconds, say))
    if not quick:
        run.speed = run.speed.least(machine_speed.measured(seconds))
    return run
