"""Stage 3: an interior point, in the subset of Python that is compiled.

Scaling of Nesterov and Todd, Mehrotra's predictor and corrector. Under Coulomb's law De Saxce's
term mu |u_T| is renewed in each step, with as much centring as its change asks for.
"""

from __future__ import annotations

from math import isfinite, sqrt

from delassus.compiler.codegen.loops import Doubles, Ints
from delassus.contact_forces.cones import (
    BILATERAL,
    COULOMB,
    INTERIOR,
    NEWTON,
    POINT,
    SWEEPS,
    TINY,
    acceleration,
    project,
    residual,
)
from delassus.contact_forces.elimination import cholesky, solved
from delassus.contact_forces.newton import newton

INTERIOR_STEPS, HAND_STEPS = 100, 6
"""Largest number of steps, and of Newton steps at each hand-over."""
HAND_FROM, HAND_FACTOR = 0.1, 0.1
"""Newton's method takes over at this residual first, then whenever it has fallen by the factor."""
CENTRE, STEP_BACK = 0.01, 0.99
"""Centring under Coulomb's law, and the share of the way to the boundary of the cones."""
GROWN = 1e100
"""Scaled forces from which on steps end, before they overflow: forces grow without end where
contacts contradict each other, and their direction is the certificate."""
SMALLEST_FRICTION, SHIFT, SHIFT_MOST = 1e-6, 1e-11, 1e-4
"""Lower bound of mu; shift of the diagonal, and the largest one after failed factorisations."""


def interior(
    k: int, contacts: int, law: int, budget: int, tolerance: float, kinds: Ints, mu: Doubles,
    H: Doubles, a: Doubles, weights: Doubles, f: Doubles, u: Doubles, best: Doubles, least: float,
    trial: Doubles, info: Doubles, rest: Doubles,
) -> float:  # fmt: skip
    """Follow the central path; forces x = (f_T, mu f_N) lie in cones |x_T| <= x_N.

    Returns the residual of the best forces.
    """
    K = rest[0:]
    x, s, wrong, right, dx, ds, scale, target, correction = (
        rest[k * k :], rest[k * k + k :], rest[k * k + 2 * k :], rest[k * k + 3 * k :],
        rest[k * k + 4 * k :], rest[k * k + 5 * k :], rest[k * k + 6 * k :], rest[k * k + 7 * k :],
        rest[k * k + 8 * k :],
    )  # fmt: skip
    W = rest[k * k + 9 * k :]
    part = rest[k * k + 12 * k :]
    step_vector = rest[k * k + 12 * k + 3 :]
    newtons = rest[k * k + 12 * k + 6 :]
    cones = 0
    size = TINY
    for i in range(k):
        scale[i], x[i], s[i] = 1.0, 0.0, 0.0
        correction[i] = 0.0
    at = 0
    for c in range(contacts):
        if kinds[c] == POINT:
            scale[at + 2] = 1.0 / max(mu[c], SMALLEST_FRICTION)
        at += max(kinds[c], 1)
        if kinds[c] != BILATERAL:
            cones += 1
    for i in range(k):
        size = max(size, abs(a[i] * scale[i]))
    at = 0
    for c in range(contacts):
        at += max(kinds[c], 1)
        if kinds[c] != BILATERAL:
            x[at - 1], s[at - 1] = size, size
    shift, hand = SHIFT, HAND_FROM
    most = min(INTERIOR_STEPS, budget - int(info[SWEEPS] + info[NEWTON] + info[INTERIOR]))
    for _iteration in range(most):
        info[INTERIOR] += 1.0
        gap = 0.0
        for i in range(k):
            gap += x[i] * s[i]
            wrong[i] = a[i] * scale[i] - s[i]
        gap /= max(cones, 1)
        for j in range(k):
            force = x[j] * scale[j]
            for i in range(k):
                wrong[i] += H[j * k + i] * force * scale[i]
                # H is not symmetric where contacts move.
                K[j * k + i] = 0.5 * (H[j * k + i] + H[i * k + j]) * scale[i] * scale[j]
            K[j * k + j] *= 1.0 + shift
        at = 0
        for c in range(contacts):
            d = max(kinds[c], 1)
            if kinds[c] == POINT and law == COULOMB:
                vx, vy = wrong[at] + s[at], wrong[at + 1] + s[at + 1]
                wrong[at + 2] += sqrt(vx * vx + vy * vy)
            if kinds[c] != BILATERAL:
                scaling(d, x[at:], s[at:], W[3 * at :], part)
                for j in range(d):
                    for i in range(d):
                        value = 0.0
                        for other_row in range(d):
                            value += W[3 * at + i * d + other_row] * W[3 * at + other_row * d + j]
                        K[(at + j) * k + at + i] += value
            at += d
        if not cholesky(k, K):
            shift *= 100.0
            if shift > SHIFT_MOST:
                break
            continue
        centre = 0.0
        length = 1.0
        for phase in range(2):
            at = 0
            for c in range(contacts):
                d = max(kinds[c], 1)
                for i in range(at, at + d):
                    right[i] = -wrong[i]
                if kinds[c] != BILATERAL:
                    up = W[3 * at :]
                    times(d, up, x[at:], part)
                    product(d, part, part, step_vector)
                    for i in range(d):
                        step_vector[i] = -step_vector[i] - phase * correction[at + i]
                    step_vector[d - 1] += centre * gap
                    quotient(d, part, step_vector, target[at:])
                    times(d, up, target[at:], part)
                    for i in range(d):
                        right[at + i] += part[i]
                at += d
            solved(k, K, right, dx)
            length = -1.0
            at = 0
            for c in range(contacts):
                d = max(kinds[c], 1)
                if kinds[c] != BILATERAL:
                    up = W[3 * at :]
                    times(d, up, dx[at:], step_vector)
                    for i in range(d):
                        part[i] = target[at + i] - step_vector[i]
                    times(d, up, part, ds[at:])
                    product(d, part, step_vector, correction[at:])
                    length = shorter(length, longest(d, x[at:], dx[at:]))
                    length = shorter(length, longest(d, s[at:], ds[at:]))
                else:
                    ds[at] = 0.0
                at += d
            if phase == 0 and cones > 0:
                length = shorter(length, 1.0)
                after = 0.0
                for i in range(k):
                    after += (x[i] + length * dx[i]) * (s[i] + length * ds[i])
                ratio = max(after / max(gap * cones, TINY), 0.0)
                centre = min(ratio * ratio * ratio, 1.0)
                if law == COULOMB:
                    head = 0.0
                    off = 0.0
                    at = 0
                    for c in range(contacts):
                        at += max(kinds[c], 1)
                        if kinds[c] != BILATERAL:
                            head = max(head, x[at - 1])
                    for i in range(k):
                        off = max(off, abs(wrong[i]))
                    needed = min(1.0, CENTRE * off * head / max(gap * cones, TINY))
                    centre = max(max(centre, 1e-4), needed)
        length = 1.0 if length < 0.0 else min(1.0, STEP_BACK * length)
        largest = 0.0
        for i in range(k):
            x[i] += length * dx[i]
            s[i] += length * ds[i]
            largest = max(largest, abs(x[i] * scale[i]))
        if not largest < GROWN:
            break
        for i in range(k):
            f[i] = x[i] * scale[i]
        project(contacts, kinds, mu, f)
        acceleration(k, H, a, f, u)
        r = residual(contacts, law, kinds, mu, f, u)
        if not isfinite(r):
            break
        if r < least:
            least = r
            for i in range(k):
                best[i] = f[i]
        if r < hand:
            hand = HAND_FACTOR * r
            steps = min(HAND_STEPS, budget - int(info[SWEEPS] + info[NEWTON] + info[INTERIOR]))
            least = newton(
                k, contacts, law, steps, tolerance, kinds, mu, H, a, weights, f, r, u, best, least,
                trial, info, newtons,
            )  # fmt: skip
        if least <= tolerance or (cones > 0 and gap < 1e-28 * size * size):
            break
        if info[SWEEPS] + info[NEWTON] + info[INTERIOR] >= budget:
            break
    return least


def shorter(a: float, b: float) -> float:
    """Return the smaller of two lengths; a negative one is none."""
    if a < 0.0:
        return b
    if b < 0.0:
        return a
    return min(a, b)


def determinant(d: int, x: Doubles) -> float:
    """Return x_N^2 - |x_T|^2, not below a tiny number."""
    t = 0.0
    for i in range(d - 1):
        t += x[i] * x[i]
    t = sqrt(t)
    return float(max((x[d - 1] - t) * (x[d - 1] + t), 1e-40))


def product(d: int, a: Doubles, b: Doubles, c: Doubles) -> None:
    """Write c = a o b, the Jordan product of the cone; c is another array than a and b."""
    head = 0.0
    for i in range(d):
        head += a[i] * b[i]
    for i in range(d - 1):
        c[i] = a[d - 1] * b[i] + b[d - 1] * a[i]
    c[d - 1] = head


def quotient(d: int, a: Doubles, b: Doubles, x: Doubles) -> None:
    """Write x with a o x = b."""
    head = a[d - 1] * b[d - 1]
    for i in range(d - 1):
        head -= a[i] * b[i]
    head /= determinant(d, a)
    for i in range(d - 1):
        x[i] = (b[i] - head * a[i]) / a[d - 1]
    x[d - 1] = head


def scaling(d: int, x: Doubles, s: Doubles, W: Doubles, v: Doubles) -> None:
    """Write the symmetric W (d, d) of Nesterov and Todd with W x = W^-1 s."""
    rx, rs = sqrt(determinant(d, x)), sqrt(determinant(d, s))
    along = 0.0
    for i in range(d):
        along += x[i] * s[i]
    size = 2.0 * sqrt(0.5 * (1.0 + along / (rx * rs)))
    for i in range(d):
        v[i] = (s[i] / rs - x[i] / rx) / size
    v[d - 1] = (s[d - 1] / rs + x[d - 1] / rx) / size + 1.0
    length = sqrt(2.0 * v[d - 1])
    for i in range(d):
        v[i] /= length
    factor = sqrt(rs / rx)
    for i in range(d):
        for j in range(d):
            W[i * d + j] = factor * 2.0 * v[i] * v[j]
        W[i * d + i] += -factor if i == d - 1 else factor


def times(d: int, W: Doubles, x: Doubles, y: Doubles) -> None:
    """Write y = W x; y is another array than x."""
    for i in range(d):
        value = 0.0
        for j in range(d):
            value += W[i * d + j] * x[j]
        y[i] = value


def longest(d: int, x: Doubles, step: Doubles) -> float:
    """Return how far x can go along a step within the cone; -1 without an end."""
    a, b, c = step[d - 1] * step[d - 1], x[d - 1] * step[d - 1], x[d - 1] * x[d - 1]
    for i in range(d - 1):
        a -= step[i] * step[i]
        b -= x[i] * step[i]
        c -= x[i] * x[i]
    found = -1.0
    if step[d - 1] < 0.0:
        found = -x[d - 1] / step[d - 1]
    if b * b > a * c and (a < 0.0 or b < 0.0):
        root = sqrt(b * b - a * c)
        if a != 0.0:
            far = (-b - root) / a
            if far > 0.0:
                found = shorter(found, far)
        if b != root:
            far = c / (root - b)
            if far > 0.0:
                found = shorter(found, far)
    return found
