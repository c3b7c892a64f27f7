"""The page about contact problems: what the data set has, and solvers side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from benchmarks import machine
from benchmarks.contact_problems.fuzz import WRONG, Findings
from benchmarks.contact_problems.measure import CALLS, PUBLIC, Outcome, steps_of_sequences
from benchmarks.contact_problems.peers import MOST_STEPS, PEERS
from benchmarks.contact_problems.solutions import LAWS, Solved
from benchmarks.pages import Block, Places, Table, table

_PACKAGES = ("numpy", "pin", "daqp", "proxsuite", "clarabel", "h5py", "pyarrow")

Outcomes = Mapping[tuple[str, str], Outcome]
"""By law and name of the solver."""


def places(solved: Sequence[Solved], outcomes: Outcomes, findings: Findings) -> Places:
    """Return the results of the page by place."""
    absent = sorted({p.package for p in PEERS} - {o.peer.package for o in outcomes.values()})
    known = machine.processor(), machine.versions(_PACKAGES), machine.day()
    return {
        "machine": "; ".join(known), "remarks": "",
        "count": len(solved), "calls": CALLS, "steps": MOST_STEPS, "public": PUBLIC,
        "families": _families(solved), **{law: _solvers(law, outcomes) for law in LAWS},
        "absent": f"Not installed, and left out: {', '.join(absent)}." if absent else "",
        "sequences": _sequences(solved), **_fuzzed(findings),
    }  # fmt: skip


def _percent(values: object) -> str:
    return f"{round(100.0 * float(np.mean(np.asarray(values, float))), 1):g}"


def _families(solved: Sequence[Solved]) -> Table:
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


def _solvers(law: str, outcomes: Outcomes) -> list[Block]:
    """Return two tables of the solvers of a law: of all problems, and by family."""
    chosen = [outcome for outcome in outcomes.values() if outcome.peer.law == law]
    families = list(dict.fromkeys(chosen[0].families))
    rows, cells = [], []
    for outcome in chosen:
        ours = "ours, 1e-6" if outcome.peer.tolerance > 1e-8 else "ours, 1e-10"
        ratio = np.array(outcome.times) / np.array(outcomes[law, ours].times)
        residuals, which = np.array(outcome.residuals), ~outcome.of(PUBLIC)
        r, steps = residuals[which], np.array(outcome.steps)[which]
        shares = (f"{_percent(r <= limit)} %" for limit in (1e-6, 1e-10))
        taken = (f"{np.percentile(steps, share):.0f}" for share in (50, 95, 100))
        time = f"{np.median(ratio[which]):.2f}"
        rows.append((outcome.peer.name, *shares, f"{np.median(r):.0e}", *taken, time))
        column = []
        for r, times in ((residuals[w], ratio[w]) for w in map(outcome.of, families)):
            solved = " / ".join(_percent(r <= limit) for limit in (1e-6, 1e-10))
            column.append(f"{solved}; {np.median(times):.1f}")
        cells.append(column)
    head = ("solver", "share to 1e-6", "to 1e-10", "median residual", "steps: median", "95 %",
            "max", "time")  # fmt: skip
    by_family = table(
        ["family", *(outcome.peer.name for outcome in chosen)],
        zip(families, *cells, strict=True), None,
    )  # fmt: skip
    words = "Share to 1e-6 / to 1e-10 in %, and time:"
    return [table(head, rows, None), words, by_family]


def _sequences(solved: Sequence[Solved]) -> Table:
    problems = [item.problem for item in solved]
    both = [steps_of_sequences(problems, start) for start in (False, True)]
    lines = []
    for family in both[0]:
        cells = (
            (f"{_percent(share)} %", f"{np.median(steps):.0f}", f"{steps.max():.0f}")
            for steps, share in (found[family] for found in both)
        )
        lines.append((family, *chain.from_iterable(cells)))
    head = ("family", "solved, cold", "steps: median", "max", "solved, warm", "steps: median",
            "max")  # fmt: skip
    return table(head, lines, None)


def _fuzzed(found: Findings) -> Places:
    """Return the results of fuzzed problems by place."""
    statuses = list(dict.fromkeys(status for _, status in found.statuses))
    longest = f"0; the longest call took {1e3 * found.longest:.0f} ms on a shared machine"
    outcome = (
        (f"SOLVED with an independent residual above {WRONG:g}", len(found.wrong)),
        ("NaN or infinite forces with SOLVED", len(found.not_finite)),
        ("more steps than the bound", len(found.over_budget)),
        ("hangs", longest),
        ("largest independent residual with SOLVED", f"{found.worst:.1e}"),
    )
    rows = (
        (twist, *(found.statuses[twist, status] for status in statuses))
        for twist in dict.fromkeys(twist for twist, _ in found.statuses)
    )
    return {
        "fuzzed": f"{found.count:,}".replace(",", " "), "numbers": f"0 to {found.count - 1}",
        "outcome": table(("", ""), outcome, None),
        "statuses": table(("extreme argument", *statuses), rows, None),
    }
