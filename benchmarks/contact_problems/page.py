"""The page about contact problems: what the data set has, and solvers side by side."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine
from benchmarks.contact_problems.fuzz import WRONG, Findings
from benchmarks.contact_problems.measure import CALLS, PUBLIC, Outcome, steps_of_sequences
from benchmarks.contact_problems.peers import MOST_STEPS, PEERS
from benchmarks.contact_problems.solutions import LAWS, Solved
from benchmarks.pages import row, table, table_head

_PACKAGES = ("numpy", "pin", "daqp", "proxsuite", "clarabel", "h5py", "pyarrow")
_LAW_NAMES = {"coulomb": "Coulomb's law", "convex": "The convex law"}


def page(
    solved: Sequence[Solved], outcomes: dict[tuple[str, str], Outcome], findings: Findings | None
) -> str:
    """Return the text of the page."""
    problems = [item.problem for item in solved]
    absent = sorted({p.package for p in PEERS} - {o.peer.package for o in outcomes.values()})
    lines = [
        "# Benchmark: solvers of contact problems with friction",
        "",
        "Written by `make contact-problems`, which also writes the data set to",
        "`build/contact_problems`. "
        f"{machine.processor()}; {machine.versions(_PACKAGES)}; {datetime.date.today()}.",
        "",
        f"The data set has {len(problems)} problems of this project's robots, as",
        "`contact_problems.parquet` (rows of a contact x, y, z) and as one file of FCLib's HDF5",
        "per problem (rows normal, x, y), with solutions. A generator with a seed makes them;",
        "`benchmarks/contact_problems/generator.py` is read in one sitting.",
        "",
        _families(solved),
        "",
        "Residuals are those of `benchmarks/contact_problems/residual.py`, which shares no code "
        "with the",
        "solver: in scaled rows, relative to the norm of a0, the norm of penetration, pull and",
        "complementarity, min(f_N, u_N), and of what friction lacks of its law, each on its own "
        "scale.",
        "",
    ]
    for law in LAWS:
        lines += [f"## {_LAW_NAMES[law]}", "", _overall(law, outcomes), ""]
        lines += ["Share to 1e-6 / to 1e-10 in %, and time:", "", _by_family(law, outcomes), ""]
    lines += [
        "Time is the median over problems of the ratio to ours of the same law and tolerance: "
        f"{CALLS} calls",
        "in turns in one process, their median, each after one that warms its caches. Ours is",
        "`ForceSolver.solve`, from Python like the other solvers. Siconos",
        "runs in a process of its own, in turns with the other solvers. Peers stop after "
        f"{MOST_STEPS} steps. Times hold",
        "for solved and unsolved problems alike. daqp and ProxQP solve inner pyramids; their "
        "residuals are of",
        "the exact cones, and are large where a contact slides. The "
        f"{PUBLIC} are of the Siconos project; some have",
        "matrices that are asymmetric by 1e-5, for which the convex law has no minimum.",
        "",
    ]
    if absent:
        lines += [f"Not installed, and left out: {', '.join(absent)}.", ""]
    lines += ["## Sequences", "", _SEQUENCES, "", _sequences(solved), ""]
    if findings is not None:
        lines += ["## Fuzzed problems", "", *_fuzzed(findings), ""]
    return "\n".join(lines)


def _percent(values: object) -> str:
    return f"{round(100.0 * float(np.mean(np.asarray(values, float))), 1):g}"


def _families(solved: Sequence[Solved]) -> str:
    head = ("family", "problems", "rows m", "largest m less the rank of G", "contacts",
            "solutions to 1e-10: Coulomb", "convex")  # fmt: skip
    lines = []
    for family in dict.fromkeys(item.problem.family for item in solved):
        items = [item for item in solved if item.problem.family == family]
        sizes = [len(item.problem.a0) for item in items]
        ranks = [int(np.linalg.matrix_rank(item.problem.G)) for item in items]
        missing = max(size - rank for size, rank in zip(sizes, ranks, strict=True))
        modes = ", ".join(Counter(item.problem.mode for item in items))
        shares = [
            f"{_percent([item.solutions[law].residual <= 1e-10 for item in items])} %"
            for law in LAWS
        ]
        rows = f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else f"{sizes[0]}"
        lines.append((family, len(items), rows, missing, modes, *shares))
    return table(head, lines, None)


def _reference(outcome: Outcome, outcomes: dict[tuple[str, str], Outcome]) -> Outcome:
    return outcomes[
        outcome.peer.law, f"ours, {'1e-6' if outcome.peer.tolerance > 1e-8 else '1e-10'}"
    ]


def _overall(law: str, outcomes: dict[tuple[str, str], Outcome]) -> str:
    head = ("solver", "share to 1e-6", "to 1e-10", "median residual", "steps: median", "95 %",
            "max", "time")  # fmt: skip
    lines = []
    for outcome in (o for o in outcomes.values() if o.peer.law == law):
        which = ~outcome.of(PUBLIC)
        r, steps = np.array(outcome.residuals)[which], np.array(outcome.steps)[which]
        ratio = np.array(outcome.times) / np.array(_reference(outcome, outcomes).times)
        shares = (f"{_percent(r <= limit)} %" for limit in (1e-6, 1e-10))
        taken = (f"{np.percentile(steps, share):.0f}" for share in (50, 95, 100))
        time = f"{np.median(ratio[which]):.2f}"
        lines.append((outcome.peer.name, *shares, f"{np.median(r):.0e}", *taken, time))
    return table(head, lines, None)


def _by_family(law: str, outcomes: dict[tuple[str, str], Outcome]) -> str:
    """Return the table of shares to 1e-6 and 1e-10, and the ratio of times, by family."""
    chosen = [o for o in outcomes.values() if o.peer.law == law]
    lines = []
    for family in dict.fromkeys(chosen[0].families):
        cells = []
        for outcome in chosen:
            which = outcome.of(family)
            r = np.array(outcome.residuals)[which]
            ratio = np.array(outcome.times) / np.array(_reference(outcome, outcomes).times)
            cells.append(
                f"{_percent(r <= 1e-6)} / {_percent(r <= 1e-10)}; {np.median(ratio[which]):.1f}"
            )
        lines.append([family, *cells])
    return table(["family", *(o.peer.name for o in chosen)], lines, None)


_SEQUENCES = """\
Coulomb's law to 1e-10, problems 1 ms apart, from zero and from the forces of the same
contacts one tick ago:"""


def _sequences(solved: Sequence[Solved]) -> str:
    problems = [item.problem for item in solved]
    both = [steps_of_sequences(problems, start) for start in (False, True)]
    lines = [
        [family, *chain.from_iterable(_steps(*found[family]) for found in both)]
        for family in both[0]
    ]
    head = ("family", "solved, cold", "steps: median", "max", "solved, warm", "steps: median",
            "max")  # fmt: skip
    return table(head, lines, None)


def _steps(steps: NDArray[np.int64], share: object) -> tuple[str, ...]:
    """Return cells: the share that is solved, and the median and largest number of steps."""
    return f"{_percent(share)} %", f"{np.median(steps):.0f}", f"{steps.max()}"


def _fuzzed(found: Findings) -> list[str]:
    statuses = list(dict.fromkeys(status for _, status in found.statuses))
    longest, count = 1e3 * found.longest, f"{found.count:,}".replace(",", " ")
    lines = [
        f"{count} random problems of 1 to 7 contacts, rows scaled by 1e-3 to 1e3, mu 0 to 5,",
        "both laws, points and single rows, at rest in half of the problems and with contacts",
        "that slide, leave and strike in half, by",
        "`python -m benchmarks.contact_problems --fuzz N`:",
        "",
        "| | |",
        "|---|---|",
        row((f"SOLVED with an independent residual above {WRONG:g}", len(found.wrong))),
        row(("NaN or infinite forces with SOLVED", len(found.not_finite))),
        row(("more steps than the bound", len(found.over_budget))),
        row(("hangs", f"0; the longest call took {longest:.0f} ms on a shared machine")),
        row(("largest independent residual with SOLVED", f"{found.worst:.1e}")),
        "",
        *table_head(["extreme argument", *statuses], None),
    ]
    for twist in dict.fromkeys(twist for twist, _ in found.statuses):
        lines.append(row((twist, *(found.statuses[twist, status] for status in statuses))))
    return lines
