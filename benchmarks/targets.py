"""Targets: ratios to Pinocchio in the same run, start-up times, exponents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks import ours
from benchmarks.measure import MANY, RESIDENT, Result, best, is_cpp, threaded
from benchmarks.scaling import PEER, Growth, exponent
from benchmarks.startup import StartUp
from benchmarks.timing import Timing

# By family; humanoids with few and with many rows apart.
_WARM = {"quadruped": 20.0, "humanoid": 10.0, "humanoid 24": 8.0, "hands": 4.0, "arm": 6.0}
_PYTHON = {"quadruped": 10.0, "humanoid": 8.0, "humanoid 24": 8.0, "hands": 5.0, "arm": 6.0}
_COLD = 4.0
_RESIDENT = 20.0
_MANY = 10.0
_THREADS = 1.7
_START_UP = {"quadruped": 0.15, "humanoid": 0.5, "hands": 3.0, "arm": 0.15}
_CACHED = 0.02
_COUNT_SLACK = 0.05
_TIME_SLACK = 0.15
COUNT_EXPONENT = "exponent of the count"
"""What the claim about growing operation counts is called."""


@dataclass(frozen=True)
class Claim:
    """A target and what was measured.

    Attributes
    ----------
    what : the claim.
    where : the case or series.
    target : in words.
    found : in words.
    holds : None if there is nothing to compare with, or no clang to compare by.
    """

    what: str
    where: str
    target: str
    found: str
    holds: bool | None


def speeds(claims: Sequence[Claim], core: str) -> str:
    """Return the sentences about speed that README, home page and report share.

    Parameters
    ----------
    claims : all claims of a run.
    core : the processor, as :func:`benchmarks.machine.core` returns it.

    Raises
    ------
    ValueError
        If the run has no ratio of a kind.
    """
    medians: dict[str, list[float]] = {"warm": [], "cold": []}
    large: dict[str, tuple[int, list[float]]] = {}
    for claim in claims:
        kind = re.match(r"kernel / best C\+\+, (warm|cold)", claim.what)
        if kind and (found := re.fullmatch(r"[\d.]+ / ([\d.]+)", claim.found)):
            medians[kind[1]].append(float(found[1]))
        elif kind and (found := re.fullmatch(r"([\d.]+) at (\d+)", claim.found)):
            unit = "rows" if claim.where.startswith("contacts") else "joints"
            largest, ratios = large.get(unit, (0, []))
            large[unit] = max(largest, int(found[2])), [*ratios, float(found[1])]
    sizes = " or ".join(f"{large[unit][0]} {unit}" for unit in sorted(large))
    return (
        f"On one core ({core}), a kernel for an arm, a quadruped or a humanoid is "
        f"{_range(medians['warm'])} times as fast as Pinocchio's C++ in warm caches, and "
        f"{_range(medians['cold'])} times in cold caches (medians). At {sizes}, a kernel is "
        f"{_range([ratio for _, ratios in large.values() for ratio in ratios])} times as fast."
    )


def _range(ratios: Sequence[float]) -> str:
    return f"{min(ratios):.2g} to {max(ratios):.2g}"


def _ratio_claim(
    what: str, where: str, target: float, one: Timing | None, peer: Timing | None, counts: bool
) -> Claim:
    if one is None or peer is None:
        return Claim(what, where, f"≥ {target:g}", "no peer", None)
    ratio = one.ratio(peer)
    found = f"{ratio.minimum:.1f} / {ratio.median:.1f}"
    holds = min(ratio.minimum, ratio.median) >= target
    return Claim(what, where, f"≥ {target:g}", found, holds if counts else None)


def case_claims(result: Result, is_clang: bool) -> list[Claim]:
    """Return the claims about a case; ratios to C++ count only with clang."""
    family, where = result.case.family, result.case.label
    group = "humanoid 24" if family == "humanoid" and result.rows > 12 else family
    chosen = ours.CHOSEN
    claims = [
        _ratio_claim(
            "kernel / best C++, warm", where, _WARM[group],
            result.warm.get(chosen), best(result.warm, is_cpp), is_clang,
        ),
        _ratio_claim(
            "called from Python / best of pin", where, _PYTHON[group],
            result.python.get("BoundSolver.solve"),
            best(result.python, lambda name: name.startswith("pin.")), True,
        ),
    ]  # fmt: skip
    for size, times in result.cold.items():
        what = f"kernel / best C++, cold ({size >> 20} MB walked)"
        pair = times.get(chosen), best(times, is_cpp)
        claims.append(_ratio_claim(what, where, _COLD, *pair, is_clang))
    for what, times, target, prefix in (
        (f"batch of {RESIDENT} / C++ loop", result.resident, _RESIDENT, "batch, rows"),
        (f"batch of {MANY} / C++ loop", result.many, _MANY, threaded("rows", 1)),
    ):
        claims.append(
            _ratio_claim(what, where, target, times.get(prefix), best(times, is_cpp), is_clang)
        )
    pair = result.many.get(threaded("rows", 2)), result.many.get(threaded("rows", 1))
    claims.append(_ratio_claim("two threads / one, 4096", where, _THREADS, *pair, True))
    return claims


def start_up_claims(start: StartUp) -> list[Claim]:
    """Return the claims about a start-up."""
    where = f"{start.case.label}, {start.algorithm}"
    limit = _START_UP[start.case.family]
    return [
        Claim("start-up, empty cache", where, f"< {limit:g} s", f"{start.first:.2f} s",
              start.first < limit),
        Claim("start-up, from the cache", where, f"< {_CACHED * 1e3:g} ms",
              f"{start.cached * 1e3:.0f} ms", start.cached < _CACHED),
    ]  # fmt: skip


def growth_claims(growth: Growth) -> list[Claim]:
    """Return the claims about a series: exponents at most those of the theory, and speed.

    They hold only if the curve goes on to the largest size of the series.
    """
    claims = []
    expected, largest = growth.series.expected, growth.series.sizes[-1]
    peer = growth.curves.get(PEER)
    for name, curve in growth.curves.items():
        if name == PEER:
            continue
        where = f"{growth.series.name} up to {largest}, {name}"
        for what, points, slack in (
            (COUNT_EXPONENT, curve.counts, _COUNT_SLACK),
            ("exponent of the time", curve.minima, _TIME_SLACK),
        ):
            slope, reached = exponent(points), max(points, default=0)
            found = "too few sizes" if slope is None else f"{slope:.2f}"
            if reached < largest:
                found += f", ends at {reached}"
            holds = slope is not None and slope <= expected + slack and reached == largest
            claims.append(Claim(what, where, f"≤ {expected:g} + {slack:g}", found, holds))
        both = sorted(curve.minima.keys() & peer.minima.keys()) if peer else []
        if peer and both:
            ratio = peer.minima[both[-1]] / curve.minima[both[-1]]
            found = f"{ratio:.1f} at {both[-1]}"
            holds = ratio > 1.0 and both[-1] == largest
            claims.append(Claim("kernel / best C++, warm", where, "> 1", found, holds))
    return claims
