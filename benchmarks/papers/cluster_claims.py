"""What the cluster paper claims, with what this project finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.papers import leg
from benchmarks.papers.claim import DEPENDS, DOES_NOT, REPRODUCES, Claim
from benchmarks.papers.clusters import CLOSE, MEASURES, NAMES, ROBOTS, Found
from benchmarks.papers.markdown import percent
from benchmarks.scaling import exponent

LINEAR = 1.15
"""Largest exponent over chains of up to 24 links that counts as linear."""
CUBIC = 2.7
"""Least exponent that counts as cubic."""
_SIGNIFICANT = 10.0
"""Least share of the largest torque that counts as a significant error [%]."""
_NEGLIGIBLE = 5.0
"""Largest increase of a cost that counts as negligible [%]."""
_ROTORS = (
    "a rotor that is round and parallel to the joint that it turns is redistributed over the "
    "links before the kernel is made, so that it costs nothing"
)
_SPARSE = (
    "products with E and with structural zeros cost nothing here, so that methods on the spanning "
    "tree lose less"
)


def by_measure(holding: Sequence[bool]) -> str:
    """Return the verdict on what holds, or not, by each of :data:`MEASURES`."""
    if all(holding):
        return REPRODUCES
    if not any(holding):
        return DOES_NOT
    kept = next(measure for measure, holds in zip(MEASURES, holding, strict=True) if holds)
    return f"{DEPENDS}the measure: by {kept} alone"


def of_tables(tables: Sequence[Found], printed: Mapping[str, Any]) -> Iterator[Claim]:
    """Yield the claims about the robots of figures 9, 10 and 12."""
    inverse, forward, matrix = tables
    slower = (
        (inverse, "projected", "Projected RNEA", _SPARSE),
        (forward, "projection", "Projection Method", _SPARSE),
        (forward, "lagrange", "Lagrange Multiplier Method", _SPARSE),
        (matrix, "projection", "Projection Method", "the mass matrices are small and sparse, and "
         "times of small matrices depend on what a compiler makes of them"),
    )  # fmt: skip
    for found, method, name, reason in slower:
        yield _on_all(found, method, name, reason)
        yield _range(found, method, name, printed, reason)
    for found in tables:
        name = f"approximate {NAMES[found.table.reference][2:]}"
        yield _range(found, "approximate", name, printed, _ROTORS)
    yield from _of_approximation(inverse)


def _on_all(found: Found, method: str, name: str, reason: str) -> Claim:
    """Return the claim that the reference costs less than a method on all robots."""
    parts, holding = [], []
    for measure in MEASURES:
        values = _relative(found, method, measure)
        against = {robot: value for robot, value in values.items() if value <= 0.0}
        listed = ", ".join(f"{ROBOTS[robot]} {percent(value)}" for robot, value in against.items())
        count = f"{measure}: on {len(values) - len(against)} of {len(values)}"
        parts.append(count + (f", not on {listed}" if listed else ""))
        holding.append(not against)
    reference = NAMES[found.table.reference]
    claim = f"figure {found.table.figure}: {reference} outperforms the {name} on all robots"
    verdict = by_measure(holding)
    return Claim(claim, "all", "; ".join(parts), verdict, _needed(verdict, reason))


def _range(found: Found, method: str, name: str, printed: Mapping[str, Any], reason: str) -> Claim:
    """Return the claim that the relative costs of a method are within a range."""
    taken = [robot for robot in found.robots if found.relative(robot, method) is not None]
    told = [printed[found.table.number][method][printed["columns"].index(r)] for r in taken]
    parts, holding = [], []
    for measure in MEASURES:
        values = _relative(found, method, measure).values()
        parts.append(f"{measure}: {_between(values)}")
        ends = ((min(told), min(values)), (max(told), max(values)))
        holding.append(all(abs(a - b) <= CLOSE for a, b in ends))
    claim = f"table {found.table.number}: {name} beside {NAMES[found.table.reference]}"
    refusing = [ROBOTS[robot] for robot in found.robots if robot not in taken]
    if refusing:
        claim += f", without {', '.join(refusing)}, which it refuses"
    verdict = by_measure(holding)
    return Claim(claim, _between(told), "; ".join(parts), verdict, _needed(verdict, reason))


def _of_approximation(inverse: Found) -> Iterator[Claim]:
    """Yield the claims about the price of exactness and of an approximation."""
    extra, exact = [], []
    for counts in inverse.robots.values():
        cost, least, base = (counts[m] for m in ("approximate", "unconstrained", "c_rnea"))
        if isinstance(cost, int) and isinstance(least, int) and isinstance(base, int):
            extra.append(100.0 * (cost / least - 1.0))
            exact.append(100.0 * (base / cost - 1.0))
    yield Claim(
        "section IX-B: the approximate RNEA needs negligibly more computation than the "
        "unconstrained", "", f"operations: {_between(extra)}",
        REPRODUCES if max(extra) < _NEGLIGIBLE else DOES_NOT, "",
    )  # fmt: skip
    free = sum(value < _NEGLIGIBLE for value in exact)
    verdict = f"{DEPENDS}the rotors" if free else DOES_NOT
    yield Claim(
        "section I-B: modeling errors are reduced without a significant increase of the solve "
        "time", "", f"C-RNEA beside the approximate RNEA, operations: {_between(exact)}; below "
        f"{_NEGLIGIBLE:g} % on {free} of {len(exact)} robots",
        REPRODUCES if max(exact) < _NEGLIGIBLE else verdict, _ROTORS,
    )  # fmt: skip


def _relative(found: Found, method: str, measure: str) -> dict[str, float]:
    every = {robot: found.relative(robot, method) for robot in found.robots}
    return {robot: value[measure] for robot, value in every.items() if value is not None}


def _between(values: Sequence[float] | Any) -> str:
    least, most = percent(min(values)), percent(max(values))
    return least if least == most else f"{least} to {most}"


def _needed(verdict: str, reason: str) -> str:
    return "" if verdict == REPRODUCES else reason


def of_chains(table: Mapping[str, Any]) -> Iterator[Claim]:
    """Yield the claims about the chains of figures 11 and 13; `table` is by kind of chain."""
    scaling = (
        (11, "forward", "c_aba", "C-ABA", 1),
        (11, "forward", "projection", "Projection Method", 3),
        (11, "forward", "lagrange", "Lagrange Multiplier Method", 3),
        (13, "matrix", "efpa", "C-EFPA", 1), (13, "matrix", "projection", "Projection Method", 3),
    )  # fmt: skip
    for figure, quantity, method, name, power in scaling:
        slopes = {
            measure: [_slope(table[kind][quantity][measure][method]) for kind in table]
            for measure in MEASURES
        }
        if power == 1:
            verdict = by_measure([max(values) <= LINEAR for values in slopes.values()])
            reason = "code of longer chains leaves the processor's cache for instructions"
        else:
            reached = min(map(min, slopes.values())) >= CUBIC
            verdict = REPRODUCES if reached else f"{DEPENDS}the number of links"
            reason = "terms of lower order weigh more up to 24 links; the limit is 3"
        words = "linearly" if power == 1 else "cubically"
        found = "; ".join(f"{m}: {_both(table, values)}" for m, values in slopes.items())
        yield Claim(
            f"figure {figure}: the {name} scales {words} with the links", f"exponent {power}",
            f"exponents of {found}", verdict, _needed(verdict, reason),
        )  # fmt: skip
    yield _crossing(table)
    apart = max(
        value
        for kind in table.values()
        for told in kind.values()
        for value in told["apart"].values()
    )
    yield Claim(
        "section IX-A2: C-ABA obtains the exact solution", "",
        f"the methods and a second implementation differ by at most {apart:.0e} (relative)",
        REPRODUCES if apart < 1e-6 else DOES_NOT, "",
    )  # fmt: skip


def _slope(points: dict[int, float]) -> float:
    found = exponent(points)
    return float("nan") if found is None else found


def _both(table: Mapping[str, Any], values: Sequence[float]) -> str:
    return ", ".join(f"{value:.2f} ({kind})" for kind, value in zip(table, values, strict=True))


def crossing(told: Mapping[str, Mapping[int, float]]) -> int | None:
    """Return the links from which on C-EFPA costs less than the projection, None if nowhere."""
    sizes = sorted(told["efpa"])
    dearer = [n for n in sizes if told["efpa"][n] >= told["projection"][n]]
    return next((n for n in sizes if n > max(dearer, default=0)), None)


def _crossing(table: Mapping[str, Any]) -> Claim:
    parts, holding = [], []
    for measure in MEASURES:
        firsts = {kind: crossing(told["matrix"][measure]) for kind, told in table.items()}
        words = [f"from {n} links on ({kind})" if n else f"not up to 24 links ({kind})"
                 for kind, n in firsts.items()]  # fmt: skip
        parts.append(f"{measure}: {', '.join(words)}")
        holding.append(all(firsts.values()))
    verdict = by_measure(holding)
    return Claim(
        "figure 13: with more links C-EFPA eventually performs better than the projection", "",
        "; ".join(parts), verdict, "",
    )  # fmt: skip


def of_leg(found: Mapping[str, Any]) -> Iterator[Claim]:
    """Yield the claims about figure 14."""
    frequency, ankle = str(leg.PLOTTED), leg.JOINTS.index("ankle")
    rms, largest = found["rms"][frequency], found["largest"][frequency][ankle]
    without, less = rms["unconstrained"][ankle], rms["approximate"][ankle]
    shares = [100.0 * value / largest for value in (without, less)]
    lost = "the printed rms values are not in the text that this page was made from"
    yield Claim(
        "section IX-B: neglecting loop constraints leads to significant errors of the ankle's "
        "torque", "", f"rms {without:.2g} N·m, {shares[0]:.0f} % of the largest torque",
        REPRODUCES if shares[0] > _SIGNIFICANT else DOES_NOT, lost,
    )  # fmt: skip
    yield Claim(
        "section IX-B: so does their approximation, which reduces the error", "",
        f"rms {less:.2g} N·m, {shares[1]:.0f} %; {percent(100.0 * (less / without - 1.0))} beside "
        "unconstrained",
        REPRODUCES if shares[1] > _SIGNIFICANT and less < without else DOES_NOT, lost,
    )  # fmt: skip
    shares = [
        100.0 * max(rms[method][k] / found["largest"][frequency][k] for k in range(ankle))
        for method in ("unconstrained", "approximate")
    ]
    hardest = 100.0 * without / largest > shares[0] and 100.0 * less / largest > shares[1]
    yield Claim(
        "section IX-B: the ankle is especially difficult for approximate algorithms", "",
        f"largest shares at other joints: unconstrained {shares[0]:.0f} %, approximate "
        f"{shares[1]:.0f} %",
        REPRODUCES if hardest else DOES_NOT, "",
    )  # fmt: skip
