"""Random contact problems, most of them nasty, to see that SOLVED is never wrong.

Each problem follows from its number alone, so that a finding can be had again.
"""

from __future__ import annotations

import faulthandler
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from benchmarks.contact_problems.residual import residual
from delassus.contact_forces import ForceSolver, ForceStatus
from delassus.contact_forces.machine_code import BUDGET
from delassus.contact_forces.results import Law
from delassus.model.spatial import Array

WRONG = 1e-9
"""Independent residual above which SOLVED is wrong; the solver's tolerance is 1e-10."""
HANG_S = 60.0
"""A thousand problems that take longer end the process with a traceback, s."""
_CHUNK = 1000
TWISTS = (
    "none", "range", "grazing", "infeasible", "zero rows", "zero a0", "not finite", "tiny rows",
    "ceiling",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class FuzzProblem:
    """Arguments of one solve, and what is odd about it."""

    twist: str
    kinds: tuple[str, ...]
    mu: Array
    G: Array
    a0: Array
    law: Law
    compliance: Array
    velocities: Array


@dataclass
class Findings:
    """Counts of a run."""

    statuses: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[int] = field(default_factory=list)
    not_finite: list[int] = field(default_factory=list)
    over_budget: list[int] = field(default_factory=list)
    worst: float = 0.0
    longest: float = 0.0
    seconds: float = 0.0
    count: int = 0


def fuzz_problem(number: int) -> FuzzProblem:
    """Return a problem: 1 to 6 contacts, rows scaled by 1e-3 to 1e3, mu 0 to 5, of any rank.

    In half of the problems contacts slide, leave and strike.
    """
    random = np.random.default_rng([number, 42])
    contacts = int(random.integers(1, 7))
    kinds = tuple(
        random.choice(["point", "unilateral", "bilateral"], contacts, p=[0.8, 0.1, 0.1]).tolist()
    )
    sizes = [3 if kind == "point" else 1 for kind in kinds]
    n = sum(sizes)
    mu = np.where(random.random(contacts) < 0.2, 0.0, random.uniform(0.0, 5.0, contacts))
    J = random.normal(size=(n, int(random.integers(1, n + 7))))
    motion = random.normal(size=J.shape[1])
    twist = str(random.choice(TWISTS))
    a0 = random.normal(size=n) if twist == "none" else J @ motion
    if twist == "zero rows":
        J[np.repeat(random.random(contacts) < 0.5, sizes)] = 0.0
        J[random.random(n) < 0.1] = 0.0
    if twist == "ceiling":  # the last contact is the first one turned over, or is it again
        J = np.vstack([J, random.choice([-1.0, 1.0]) * J[: sizes[0]]])
        a0 = np.concatenate([a0, random.normal(size=sizes[0])])
        kinds, mu, sizes = (*kinds, kinds[0]), np.append(mu, mu[0]), [*sizes, sizes[0]]
        n += sizes[0]
    if twist == "infeasible":  # nothing moves, and something has to
        J[-1] = 0.0
        a0[-1] = -abs(a0[-1])
    if twist == "zero a0":
        a0 = np.where(random.random(n) < random.choice([0.5, 1.0]), 0.0, a0)
    G = J @ J.T
    if twist == "grazing":  # f on the border of its cone, and u = 0 or nearly so
        f = random.normal(size=n)
        at = 0
        for kind, size, friction in zip(kinds, sizes, mu, strict=True):
            if kind == "point":
                f[at : at + 2] *= friction * abs(f[at + 2]) / np.hypot(f[at], f[at + 1])
                f[at + 2] = abs(f[at + 2])
            elif kind == "unilateral":
                f[at] = 0.0
            f[at : at + size] *= random.random() < 0.8
            at += size
        a0 = -G @ f + random.choice([0.0, 1e-12, 1e-8]) * random.normal(size=n)
    scale = 10.0 ** random.uniform(-3.0, 3.0, len(kinds))
    if twist == "tiny rows":
        scale[random.random(len(kinds)) < 0.5] *= 1e-9
    rows = np.repeat(scale, [3 if kind == "point" else 1 for kind in kinds])
    G, a0 = rows[:, None] * G * rows, rows * a0 * 10.0 ** random.uniform(-3.0, 3.0)
    if twist == "not finite":
        spoilt = random.choice([np.nan, np.inf, -np.inf])
        if random.random() < 0.5:
            a0[random.integers(n)] = spoilt
        else:
            G[random.integers(n), random.integers(n)] = spoilt
    law: Law = ("coulomb", "convex", "auto")[int(random.integers(3))]
    soft, v = np.zeros(len(kinds)), np.zeros(n)
    first = np.cumsum([0, *sizes[:-1]])
    if random.random() < 0.1 and twist not in ("not finite", "zero rows", "infeasible"):
        share = 10.0 ** random.uniform(-12.0, 0.0)
        soft += np.add.reduceat(np.diag(G), first) * share
    if random.random() < 0.5:
        for kind, at, size in zip(kinds, first, sizes, strict=True):
            v[at : at + size] = random.choice([0.0, 0.05, 1.0, 1e3]) * random.normal(size=size)
            if kind != "bilateral" and random.random() < 0.9:
                v[at + size - 1] = random.choice([0.0, 0.05, 1.0], p=[0.7, 0.2, 0.1])
        if twist == "infeasible":  # a contact that leaves is held by nothing
            v[-1] = 0.0
        if random.random() < 0.02:
            v[random.integers(n)] = random.choice([np.nan, np.inf])
            twist = "not finite"
    return FuzzProblem(twist, kinds, mu, G, a0, law, soft, v)


def fuzz(first: int, count: int) -> Findings:
    """Solve the problems from number ``first`` on."""
    found = Findings(count=count)
    began = time.perf_counter()
    for number in range(first, first + count):
        if (number - first) % _CHUNK == 0:
            faulthandler.dump_traceback_later(HANG_S, exit=True)
        p = fuzz_problem(number)
        solver = ForceSolver(p.kinds, p.mu, law=p.law, compliance=p.compliance)
        start = time.perf_counter()
        forces = solver.solve(p.G, p.a0, velocities=p.velocities)
        found.longest = max(found.longest, time.perf_counter() - start)
        found.statuses[p.twist, forces.status.name] += 1
        if sum(forces.steps) > BUDGET:
            found.over_budget.append(number)
        if forces.status != ForceStatus.SOLVED:
            continue
        if p.twist == "not finite" or not np.isfinite(forces.forces).all():
            found.not_finite.append(number)
            continue
        soft = np.repeat(p.compliance, [3 if kind == "point" else 1 for kind in p.kinds])
        r = residual(
            p.G + np.diag(soft), p.a0, p.kinds, p.mu, forces.forces, forces.law, p.velocities
        )
        found.worst = max(found.worst, r)
        if not r <= WRONG:
            found.wrong.append(number)
    faulthandler.cancel_dump_traceback_later()
    found.seconds = time.perf_counter() - began
    return found
