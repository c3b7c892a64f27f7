"""What this project finds of the cluster paper's claims: by operations, with the times beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.papers import leg
from benchmarks.papers.clusters import CLOSE, NAMES, ROBOTS, Found, between
from benchmarks.papers.page import Findings, percent
from benchmarks.scaling import exponent

LINEAR = 1.15
"""Largest exponent over chains of up to 24 links that counts as linear."""
CUBIC = 2.7
"""Least exponent that counts as cubic."""
_SIGNIFICANT = 10.0
"""Least share of the largest torque that counts as a significant error [%]."""
_NEGLIGIBLE = 5.0
"""Largest increase of a cost that counts as negligible [%]."""
_SLOWER = (
    (0, "projected", "Projected RNEA", "sparse"), (1, "projection", "Projection Method", "sparse"),
    (1, "lagrange", "Lagrange Multiplier Method", "sparse"),
    (2, "projection", "Projection Method", "factorisation"),
)  # fmt: skip
"""Table, method, its name and the key of a reason for each method that costs more."""
_VARIANTS = {"dense_inverse": "with a dense inverse", "dense_cholesky": "with dense factors"}
"""Methods that are the projection by dense matrices."""
_SCALING = (
    (11, "forward", "c_aba", "C-ABA", 1),
    (11, "forward", "projection", "Projection Method", 3),
    (11, "forward", "lagrange", "Lagrange Multiplier Method", 3),
    (13, "matrix", "efpa", "C-EFPA", 1), (13, "matrix", "projection", "Projection Method", 3),
)  # fmt: skip
"""Figure, quantity, method, its name and the claimed exponent."""


def of_tables(tables: Sequence[Found], printed: Mapping[str, Any]) -> Findings:
    """Yield the findings about the robots of figures 9, 10 and 12."""
    reasons = printed["reasons"]
    for table, method, name, reason in _SLOWER:
        words = {
            "figure": str(tables[table].table.figure), "method": name,
            "reference": NAMES[tables[table].table.reference], "reason": reasons[reason],
        }  # fmt: skip
        yield "outperforms", *_on_all(tables[table], method), words
        yield _range(tables[table], method, name, printed, reasons[reason])
    for found in tables:
        name = f"approximate {NAMES[found.table.reference][2:]}"
        yield _range(found, "approximate", name, printed, reasons["rotors"])
    extra, exact = [], []
    for counts in tables[0].robots.values():
        cost, least, base = (counts[m] for m in ("approximate", "unconstrained", "c_rnea"))
        extra.append(100.0 * (cost / least - 1.0))
        exact.append(100.0 * (base / cost - 1.0))
    yield "negligibly more", max(extra) < _NEGLIGIBLE, f"operations: {between(extra)}"
    free = sum(value < _NEGLIGIBLE for value in exact)
    yield (
        "exactness", max(exact) < _NEGLIGIBLE or (free > 0 and "the rotors"),
        f"C-RNEA beside the approximate RNEA, operations: {between(exact)}; below "
        f"{_NEGLIGIBLE:g} % on {free} of {len(exact)} robots",
        {"reason": reasons["rotors"]},
    )  # fmt: skip


def _on_all(found: Found, method: str) -> tuple[bool | str, str]:
    """Return whether the reference costs less than a method on all robots."""
    parts, holding = [], []
    for name, words in _variants(found, method).items():
        values = _relative(found, name)
        against = [f"{ROBOTS[robot]} {percent(v)}" for robot, v in values.items() if v <= 0.0]
        count = f"{words}: on {len(values) - len(against)} of {len(values)}"
        parts.append(count + (f", not on {', '.join(against)}" if against else ""))
        holding.append(not against)
    slower = [{value > 0.0 for value in found.slower(robot, method)} for robot in found.robots]
    disagree = slower.count({True, False})
    undecided = f", processes disagree on {disagree}" if disagree else ""
    parts.append(f"times: on {slower.count({True})} of {len(slower)}{undecided}")
    return holding[0] or (any(holding) and "the factorisation"), "; ".join(parts)


def _range(
    found: Found, method: str, name: str, printed: Mapping[str, Any], reason: str
) -> tuple[str, bool | str, str, Mapping[str, str]]:
    """Return whether the relative costs of a method are within a range."""
    told = [printed[found.table.number][method][printed["columns"].index(r)] for r in found.robots]
    variants = _variants(found, method)
    parts = [f"{words}: {between(_relative(found, each).values())}"
             for each, words in variants.items()]  # fmt: skip
    slower = between(value for robot in found.robots for value in found.slower(robot, method))
    parts.append(f"times: {slower}")
    values = _relative(found, method).values()
    ends = ((min(told), min(values)), (max(told), max(values)))
    holds = all(abs(a - b) <= CLOSE for a, b in ends)
    words = {
        "table": found.table.number, "method": name, "reference": NAMES[found.table.reference],
        "range": between(told), "reason": reason,
    }  # fmt: skip
    return "range", holds or (len(variants) > 1 and "the factorisation"), "; ".join(parts), words


def _variants(found: Found, method: str) -> dict[str, str]:
    """Return the methods that stand for one of the paper's, with their measure in words."""
    dense = _VARIANTS if found.table.quantity == "matrix" and method == "projection" else {}
    return {method: "operations", **dense}


def _relative(found: Found, method: str) -> dict[str, float]:
    return {robot: found.relative(robot, method) for robot in found.robots}


def of_chains(table: Mapping[str, Any]) -> Findings:
    """Yield the findings about the chains of figures 11 and 13; `table` is by kind of chain."""
    for figure, quantity, method, name, power in _SCALING:
        slopes = {
            measure: {
                kind: _slope(told[quantity][measure][method]) for kind, told in table.items()
            }
            for measure in ("operations", "times")
        }
        counted = slopes["operations"].values()
        holds = (
            max(counted) <= LINEAR if power == 1
            else min(counted) >= CUBIC or "the number of links"
        )  # fmt: skip
        found = "; ".join(
            f"{measure}: {', '.join(f'{slope:.2f} ({kind})' for kind, slope in each.items())}"
            for measure, each in slopes.items()
        )
        how = "linearly" if power == 1 else "cubically"
        yield how, holds, f"exponents of {found}", {"figure": str(figure), "method": name}
    yield "crossing", *_crossing(table)
    apart = max(
        value
        for kind in table.values()
        for told in kind.values()
        for value in told["apart"].values()
    )
    yield (
        "exact", apart < 1e-6,
        f"the methods and a second implementation differ by at most {apart:.0e} (relative)",
    )  # fmt: skip


def _slope(points: dict[int, float]) -> float:
    found = exponent(points)
    return float("nan") if found is None else found


def crossing(told: Mapping[str, Mapping[int, float]]) -> int | None:
    """Return the links from which on C-EFPA costs less than the projection, None if nowhere."""
    sizes = sorted(told["efpa"])
    dearer = [n for n in sizes if told["efpa"][n] >= told["projection"][n]]
    return next((n for n in sizes if n > max(dearer, default=0)), None)


def _crossing(table: Mapping[str, Any]) -> tuple[bool, str]:
    parts, holding = [], []
    for measure in ("operations", "times"):
        firsts = {kind: crossing(told["matrix"][measure]) for kind, told in table.items()}
        words = [f"from {n} links on ({kind})" if n else f"not up to 24 links ({kind})"
                 for kind, n in firsts.items()]  # fmt: skip
        parts.append(f"{measure}: {', '.join(words)}")
        holding.append(all(firsts.values()))
    return holding[0], "; ".join(parts)


def of_leg(found: Mapping[str, Any]) -> Findings:
    """Yield the findings about figure 14."""
    frequency, ankle = str(leg.PLOTTED), leg.JOINTS.index("ankle")
    rms, largest = found["rms"][frequency], found["largest"][frequency]
    shares = {
        method: [100.0 * error / most for error, most in zip(rms[method], largest, strict=True)]
        for method in ("unconstrained", "approximate")
    }
    without, less = (rms[method][ankle] for method in shares)
    of_without, of_less = (each[ankle] for each in shares.values())
    yield (
        "neglecting", of_without > _SIGNIFICANT,
        f"rms {without:.2g} N·m, {of_without:.0f} % of the largest torque",
    )  # fmt: skip
    yield (
        "approximating", of_less > _SIGNIFICANT and less < without,
        f"rms {less:.2g} N·m, {of_less:.0f} %; {percent(100.0 * (less / without - 1.0))} beside "
        "unconstrained",
    )  # fmt: skip
    others = {method: max(each[:ankle]) for method, each in shares.items()}
    listed = ", ".join(f"{method} {share:.0f} %" for method, share in others.items())
    yield (
        "ankle", all(each[ankle] > others[method] for method, each in shares.items()),
        f"largest shares at other joints: {listed}",
    )  # fmt: skip
