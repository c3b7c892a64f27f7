"""The measurements of one case: warm, cold, from Python, many at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from benchmarks import ours, timing
from benchmarks.cases import Case
from benchmarks.compare import agree
from benchmarks.contenders import CPP, Contenders
from benchmarks.timing import Routine, Sampler, Timing
from delassus.compiler.runtime.batch_kernel import Layout
from delassus.model.spatial import Array

RESIDENT = 64
MANY = 4096
LAYOUTS: tuple[Layout, ...] = ("rows", "columns")

Times = dict[str, Timing]
"""By contender."""


@dataclass(frozen=True)
class Effort:
    """How long to measure.

    Attributes
    ----------
    seconds : per contender and measurement [s].
    algorithms : those of ours that are compiled; all if None.
    most_operations : those with more are not compiled, except the chosen one.
    """

    seconds: float
    algorithms: tuple[str, ...] | None
    most_operations: int


@dataclass
class Result:
    """Measurements of a case."""

    case: Case
    joints: int = 0
    rows: int = 0
    operations: dict[str, int] = field(default_factory=dict)
    warm: Times = field(default_factory=dict)
    cold: dict[int, Times] = field(default_factory=dict)
    """By bytes walked."""
    python: Times = field(default_factory=dict)
    resident: Times = field(default_factory=dict)
    """A batch of 64, called in C; peers in a loop [s per configuration]."""
    many: Times = field(default_factory=dict)
    """A batch of 4096: ours from numpy, peers in a C loop [s per configuration]."""
    notes: list[str] = field(default_factory=list)


def best(times: Times, belongs: Callable[[str], bool]) -> Timing | None:
    """Return the least minimum and the least median of some contenders; None without any."""
    return timing.fastest(t for name, t in times.items() if belongs(name))


def is_cpp(name: str) -> bool:
    """Tell whether a contender is one of Pinocchio's C++ routes."""
    return name.startswith(CPP)


def measured(contenders: Contenders, effort: Effort) -> Result:
    """Time all contenders of a case."""
    result = Result(
        contenders.case,
        joints=len(contenders.problem.robot.joint_names),
        rows=contenders.rows,
        operations=contenders.operations,
        notes=contenders.notes,
    )
    routines = contenders.routines
    seconds = effort.seconds
    result.warm = timing.measure({n: timing.warm(r) for n, r in routines.items()}, seconds)
    kept = _two_fastest_cpp(result.warm)
    some = {n: r for n, r in routines.items() if n == ours.CHOSEN or n in kept}
    for size, longer in timing.COLD_BYTES.items():
        samplers = {n: timing.cold(r, size) for n, r in some.items()}
        result.cold[size] = timing.measure(samplers, longer * seconds)
    calls = {name: each.sampler for name, each in contenders.python.items()}
    result.python = timing.measure(calls, seconds)
    result.resident = _resident(contenders, some, seconds)
    result.many = _many(contenders, some, seconds)
    return result


def _two_fastest_cpp(times: Times) -> list[str]:
    names = [name for name in times if is_cpp(name)]
    return sorted(names, key=lambda name: times[name].median)[:2]


def _peers(some: dict[str, Routine], count: int) -> dict[str, Sampler]:
    samplers: dict[str, Sampler] = {}
    rows = some[ours.CHOSEN].rows
    out = np.zeros((count, rows, rows))
    for name, routine in some.items():
        inputs = np.resize(routine.inputs, (count, routine.inputs.shape[1]))
        samplers[f"{name}, loop"] = timing.each(routine, inputs, out)
    return samplers


def _resident(contenders: Contenders, some: dict[str, Routine], seconds: float) -> Times:
    samplers = _peers(some, RESIDENT)
    for layout in LAYOUTS:
        matrices, sampler = contenders.batch.resident(contenders.inputs, layout)
        _checked(contenders, matrices, sampler)
        samplers[f"batch, {layout}"] = sampler
    return timing.measure(samplers, seconds)


def _many(contenders: Contenders, some: dict[str, Routine], seconds: float) -> Times:
    samplers = _peers(some, MANY)
    inputs = np.resize(contenders.inputs, (MANY, contenders.inputs.shape[1]))
    for layout in LAYOUTS:
        for threads in (1, 2):
            matrices, sampler = contenders.batch.from_numpy(inputs, layout, threads)
            _checked(contenders, matrices, sampler)
            samplers[threaded(layout, threads)] = sampler
    return timing.measure(samplers, seconds)


def threaded(layout: str, threads: int) -> str:
    """Return the name of a batch of ours called from numpy."""
    return f"solve_batch, {layout}, {threads} thread{'s' if threads > 1 else ''}"


def _checked(contenders: Contenders, matrices: Array, sampler: Sampler) -> None:
    """Run a batch once and compare with the single kernel, the last configuration too."""
    sampler(1)
    single = contenders.routines[ours.CHOSEN]
    count = len(matrices)
    for i in (0, count // 2 + 1, count - 1):
        expected = single.matrix(i % len(single.inputs))
        what = f"{contenders.case.label}: matrix {i} of a batch of {count}"
        agree(what, "that of the single kernel", matrices[i], expected)
