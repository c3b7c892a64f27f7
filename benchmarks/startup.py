"""Start-up cost: from a ready robot to a solver, in fresh processes with separate caches.

``python -m benchmarks.startup CASE ALGORITHM`` is one such process: it prints JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks import ours
from benchmarks.arguments import parser_of
from benchmarks.cases import CASES, AbsentError, Case
from delassus import DelassusSolver, Problem, algorithms
from delassus.compiler.build import checked_positions, splits
from delassus.compiler.codegen import emit
from delassus.compiler.ir.trace import trace
from delassus.compiler.passes.vectorize import vectorized
from delassus.compiler.runtime.jit import compile_ir

STAGES = ("trace", "vectorize", "emit", "compile")
_REPEATED = 3


@dataclass(frozen=True)
class StartUp:
    """Times [s] of one (case, algorithm).

    Attributes
    ----------
    first : to a solver with an empty cache, checks and storing included.
    cached : to a solver from the cache.
    stages : by name, measured after `first` in the same process.

    Each is the least of a few processes.
    """

    case: Case
    algorithm: str
    first: float
    cached: float
    stages: dict[str, float]


def start_up(case: Case, algorithm: str) -> StartUp:
    """Measure in fresh processes."""
    runs = []
    for _ in range(_REPEATED):
        with tempfile.TemporaryDirectory() as cache:
            first, cached = (_process(case, algorithm, cache) for _ in range(2))
        runs.append(first | {"cached": cached["solver"]})
    least = {name: min(run[name] for run in runs) for name in runs[0]}
    stages = {name: least[name] for name in STAGES}
    return StartUp(case, algorithm, least["solver"], least["cached"], stages)


def _process(case: Case, algorithm: str, cache: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.startup", case.name, algorithm],
        cwd=Path(__file__).parents[1],
        env=os.environ | {"XDG_CACHE_HOME": cache},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise AbsentError(f"start-up of {case.label} failed: {done.stderr[-1000:]}")
    times: dict[str, float] = json.loads(done.stdout)
    return times


def stages(problem: Problem, name: str) -> dict[str, float]:
    """Return the time of each stage [s]."""
    times: dict[str, float] = {}
    last = time.perf_counter()

    def done(stage: str) -> None:
        nonlocal last
        now = time.perf_counter()
        times[stage] = now - last
        last = now

    traced = trace(problem, ours.traced(name))
    done("trace")
    program = vectorized(problem, traced, checked_positions(problem))
    done("vectorize")
    texts = [emit.module(code).ir for code in splits(program)]
    done("emit")
    for ir in texts:
        compile_ir(ir)
    done("compile")
    return times


def main() -> None:
    """Time one start-up; the stages too if the cache was empty."""
    parser = parser_of(".startup", __doc__)
    parser.add_argument("case", choices=[case.name for case in CASES])
    parser.add_argument("algorithm", choices=algorithms.names())
    options = parser.parse_args()
    case = next(case for case in CASES if case.name == options.case)
    problem, algorithm = case.load(), options.algorithm
    algorithms.get(algorithm)  # imports
    cached = any(Path(os.environ["XDG_CACHE_HOME"]).rglob("*.kernel"))
    start = time.perf_counter()
    DelassusSolver(problem, algorithm)
    times = {"solver": time.perf_counter() - start}
    if not cached:
        times |= stages(problem, algorithm)
    print(json.dumps(times))


if __name__ == "__main__":
    main()
