"""Sweeps, Newton steps and the interior point, in the subset of Python that is compiled."""

from __future__ import annotations

from delassus.compiler.codegen.loops import Doubles, Ints
from delassus.contact_forces.cones import INTERIOR, NEWTON, SWEEPS, acceleration, residual
from delassus.contact_forces.interior import interior
from delassus.contact_forces.newton import newton
from delassus.contact_forces.sweeps import sweep

SWEEPS_MOST, SWEEP_GAIN, ROUND_STEPS, NEWTON_STEPS = 8, 0.05, 12, 10
"""Sweeps end where one leaves more than this share of the residual; largest numbers of steps."""


def steps_taken(info: Doubles) -> int:
    """Return the number of steps so far."""
    return int(info[SWEEPS] + info[NEWTON] + info[INTERIOR])


def stages(
    k: int, contacts: int, law: int, budget: int, tolerance: float, kinds: Ints, mu: Doubles,
    H: Doubles, a: Doubles, weights: Doubles, f: Doubles, u: Doubles, best: Doubles,
    trial: Doubles, info: Doubles, rest: Doubles, sweeps: bool,
) -> float:  # fmt: skip
    """Go on from the best forces so far; return the residual of the best forces.

    Parameters
    ----------
    budget : number of all steps at which this ends.
    sweeps : whether Newton steps follow sweeps, which depend on the order of the contacts.
    """
    first = steps_taken(info)
    for i in range(k):
        f[i] = best[i]
    acceleration(k, H, a, f, u)
    least = residual(contacts, law, kinds, mu, f, u)
    for attempt in range(1, 3 if sweeps else 2):
        if least <= tolerance or steps_taken(info) >= min(first + ROUND_STEPS, budget):
            break
        r = least
        if attempt > 1:
            for i in range(k):
                f[i] = best[i]
            acceleration(k, H, a, f, u)
        for j in range(min(SWEEPS_MOST, budget - steps_taken(info)) if sweeps else 0):
            before = r
            sweep(k, contacts, law, kinds, mu, H, f, u)
            # Sweeps change u step by step, and large forces leave rounding errors in it.
            acceleration(k, H, a, f, u)
            r = residual(contacts, law, kinds, mu, f, u)
            info[SWEEPS] += 1.0
            if r <= tolerance or (j + 1 >= attempt and r > SWEEP_GAIN * before):
                break
        if r < least:
            least = r
            for i in range(k):
                best[i] = f[i]
        if not r <= tolerance:
            most = min(NEWTON_STEPS, budget - steps_taken(info))
            least = newton(
                k, contacts, law, most, tolerance, kinds, mu, H, a, weights, f, r, u, best, least,
                trial, info, rest,
            )  # fmt: skip
    if not least <= tolerance:
        least = interior(
            k, contacts, law, budget, tolerance, kinds, mu, H, a, weights, f, u, best, least,
            trial, info, rest,
        )  # fmt: skip
    return least
