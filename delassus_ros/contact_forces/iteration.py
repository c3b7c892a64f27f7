"""Contact forces under friction, in the subset of Python that is compiled.

The forces f of one problem obey, with u = (G + R) f + a0 and K the product of the cones
|f_T| <= mu f_N of points, of f >= 0 for unilateral rows and of all f for bilateral rows,

- Coulomb's law with Signorini's (``COULOMB``, in De Saxce's form):
  f = P_K(f - (u + mu |u_T| e_N)),
- its convex neighbour (``CONVEX``): f = P_K(f - u), the minimum of f'(G + R) f / 2 + a0'f over K.

At the velocity level, a0 are velocities before impulses, and a contact of restitution e that
approaches leaves with u_N = -e a0_N: what stands for u above has e a0_N added to its normal row
(Newton's law of impact).

Four stages follow each other, and a later one starts only where the tolerance is not reached:

1. sweeps of block Gauss-Seidel, with the exact solution of each contact (Jourdan, Alart and Jean,
   1998, with a root of one variable for the sliding contact),
2. Newton steps on the rows that touch (Alart and Curnier, 1991), from the sweeps' result; both
   twice at most,
3. an interior point with the scaling of Nesterov and Todd and Mehrotra's predictor, which hands
   over to Newton whenever its residual has fallen tenfold. Under Coulomb's law De Saxce's term
   mu |u_T| is renewed in each step,
4. proximal points: Newton steps with a compliance that acts on the change of the forces alone,
   with what is left of the budget.

All quantities inside are scaled: a factor per contact, so that cones stay cones, gives G a mean
diagonal of 1 and |a0| = 1. Matrices but G are column-major: row i of column j stands at
``j * k + i``.
Rows of a point are x, y and the normal.
"""

from __future__ import annotations

from math import isfinite, nan, sqrt

from delassus_ros.compiler.codegen.loops import Doubles, Ints
from delassus_ros.contact_forces.cones import (
    AUTO,
    BILATERAL,
    CONVEX,
    COULOMB,
    LAW,
    NEWTON,
    RESIDUAL,
    SWEEPS,
    TINY,
    acceleration,
    residual,
)
from delassus_ros.contact_forces.elimination import cholesky, solved
from delassus_ros.contact_forces.interior import interior
from delassus_ros.contact_forces.newton import newton
from delassus_ros.contact_forces.proximal import proximal
from delassus_ros.contact_forces.sweeps import sweep

SOLVED, INACCURATE, FAILED, INFEASIBLE, NOT_FINITE, REFUSED = 0, 1, 2, 3, 4, 5
NAN = nan
"""Accelerations where NOT_FINITE or REFUSED."""
ACCEPTED = 1e-6
"""Residual up to which forces are INACCURATE and not FAILED."""
REGULAR = 1e-9
"""Smallest eigenvalue of a regular H, whose mean diagonal is 1."""
LEAST_COMPLIANCE = 1e-3
"""Smallest compliance under Coulomb's law where G is singular, as a share of the mean diagonal of
the cone's block. Smaller ones make the problem harder than none does."""
SWEEPS_MOST, SWEEP_GAIN, ROUND_STEPS, NEWTON_STEPS = 8, 0.05, 12, 10
"""Sweeps end where one leaves more than this share of the residual; largest numbers of steps."""
CONTRADICTION, NULL = 1e-6, 1e-10
"""Sizes of scaled quantities at which a contradiction counts, and below which they are zero."""


def solve(
    n: int, k: int, contacts: int, law: int, budget: int, tolerance: float,
    kinds: Ints, mu: Doubles, restitution: Doubles, starts: Ints, columns: Ints,
    weights: Doubles, G: Doubles, a0: Doubles, R: Doubles, f: Doubles, forces: Doubles,
    accelerations: Doubles, ray: Doubles, info: Doubles, work: Doubles,
) -> int:  # fmt: skip
    """Solve one problem and return its status.

    Parameters
    ----------
    n : number of rows of G; k : number of rows of the cones, 3 per point and 1 per other contact.
    kinds, mu, restitution : (contacts,), in the order of the rows of the cones.
    starts, columns, weights : the rows of the cones as sums of rows of G, row i by the entries
        starts[i] to starts[i + 1]: the corners of a surface, or rows in other order.
    G : (n, n) row-major, a0 : (n,), R : (k,) compliance.
    f : (k,) forces at the rows of the cones to begin with, and the result.
    forces, accelerations : (n,) results at the rows of G: W f, and G W f + a0.
    ray : (k,), where INFEASIBLE forces along which the contradiction shows.
    info : (5,), see SWEEPS to LAW.
    work : at least :func:`work_size` numbers.
    """
    status = iterated(
        n, k, contacts, law, budget, tolerance, kinds, mu, restitution, starts, columns, weights,
        G, a0, R, f, ray, info, work,
    )  # fmt: skip
    for i in range(n):
        forces[i] = 0.0
    for i in range(k):
        for e in range(starts[i], starts[i + 1]):
            forces[columns[e]] += weights[e] * f[i]
    for i in range(n):
        value = a0[i]
        row = G[i * n :]
        for j in range(n):
            value += row[j] * forces[j]
        accelerations[i] = value if status < NOT_FINITE else NAN
    return status


def solve_block(whole: Ints, values: Doubles) -> int:
    """Solve the problem whose arrays lie in two blocks: a call from Python pays per argument.

    Parameters
    ----------
    whole : n, k, contacts, law, budget, the place of G in `values`, then kinds, starts, columns,
        those of :func:`solve`.
    values : tolerance, mu, restitution, weights, R, G, a0, f, forces, accelerations, ray, info,
        work.
    """
    n, k = whole[0], whole[1]
    G = values[whole[5] :]
    f = G[n * n + n :]
    return solve_with(
        whole, values, G, G[n * n :], f, f[k:], f[k + n :], f[k + 2 * n :], f[2 * k + 2 * n :]
    )


def solve_batch(
    count: int, whole: Ints, values: Doubles, G: Doubles, a0: Doubles, f: Doubles,
    forces: Doubles, accelerations: Doubles, rays: Doubles, infos: Doubles, statuses: Ints,
) -> int:  # fmt: skip
    """Solve problems with the same contacts in turn; return how many are SOLVED.

    Parameters
    ----------
    count : number of problems; their arrays follow each other.
    whole, values : those of :func:`solve_block`, for the contacts and the work.
    """
    n, k = whole[0], whole[1]
    many = 0
    for i in range(count):
        statuses[i] = solve_with(
            whole, values, G[i * n * n :], a0[i * n :], f[i * k :], forces[i * n :],
            accelerations[i * n :], rays[i * k :], infos[i * 5 :],
        )  # fmt: skip
        if statuses[i] == SOLVED:
            many += 1
    return many


def solve_with(
    whole: Ints, values: Doubles, G: Doubles, a0: Doubles, f: Doubles, forces: Doubles,
    accelerations: Doubles, ray: Doubles, info: Doubles,
) -> int:  # fmt: skip
    """Solve a problem with the contacts and the work of two blocks."""
    n, k, contacts = whole[0], whole[1], whole[2]
    kinds = whole[6:]
    starts = kinds[contacts:]
    restitution = values[1 + contacts :]
    weights = restitution[contacts:]
    R = weights[starts[k] :]
    work = values[whole[5] + n * n + 3 * n + 2 * k + 5 :]
    return solve(
        n, k, contacts, whole[3], whole[4], values[0], kinds, values[1:], restitution, starts,
        starts[k + 1 :], weights, G, a0, R, f, forces, accelerations, ray, info, work,
    )  # fmt: skip


def iterated(
    n: int, k: int, contacts: int, law: int, budget: int, tolerance: float,
    kinds: Ints, mu: Doubles, restitution: Doubles, starts: Ints, columns: Ints,
    weights: Doubles, G: Doubles, a0: Doubles, R: Doubles, f: Doubles, ray: Doubles,
    info: Doubles, work: Doubles,
) -> int:  # fmt: skip
    """Write the forces at the rows of the cones, and return the status; :func:`solve` explains."""
    H, s, a, best, u, trial = (
        work[0:], work[k * k :], work[k * k + k :], work[k * k + 2 * k :], work[k * k + 3 * k :],
        work[k * k + 4 * k :],
    )  # fmt: skip
    rest = work[k * k + 5 * k :]
    for i in range(4):
        info[i] = 0.0
    info[LAW] = float(law)
    if not assembled(n, k, starts, columns, weights, G, a0, R, H, a, rest):
        return given_up(k, f, info, NOT_FINITE)
    bounced(contacts, kinds, restitution, a)
    sigma = scaled(k, contacts, kinds, H, s, a)
    if law == AUTO:
        law = COULOMB if is_regular(k, contacts, kinds, H, s, R, rest) else CONVEX
        info[LAW] = float(law)
    elif law == COULOMB and is_soft(k, contacts, kinds, H, s, R):
        if not is_regular(k, contacts, kinds, H, s, R, rest):
            return given_up(k, f, info, REFUSED)
    for i in range(k):
        f[i] = f[i] / (s[i] * sigma)
        best[i] = f[i]
    acceleration(k, H, a, f, u)
    least = residual(contacts, law, kinds, mu, f, u)
    if not isfinite(least):
        for i in range(k):
            f[i], best[i], u[i] = 0.0, 0.0, a[i]
        least = residual(contacts, law, kinds, mu, f, u)
    for attempt in range(1, 3):
        if least <= tolerance or info[SWEEPS] + info[NEWTON] >= min(ROUND_STEPS, budget):
            break
        r = least
        if attempt > 1:
            for i in range(k):
                f[i] = best[i]
            acceleration(k, H, a, f, u)
        for j in range(min(SWEEPS_MOST, budget - int(info[SWEEPS] + info[NEWTON]))):
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
            most = min(NEWTON_STEPS, budget - int(info[SWEEPS] + info[NEWTON]))
            least = newton(
                k, contacts, law, most, tolerance, kinds, mu, H, a, f, r, u, best, least, trial,
                info, rest,
            )  # fmt: skip
    if not least <= tolerance:
        least = interior(
            k, contacts, law, budget, tolerance, kinds, mu, H, a, f, u, best, least, trial, info,
            rest,
        )  # fmt: skip
    status = SOLVED
    if not least <= tolerance:
        # Before the next stage: the interior point's last forces are the certificate.
        if not least <= ACCEPTED and (
            works(k, H, a, f, ray, trial)
            or works(k, H, a, best, ray, trial)
            or clash(k, contacts, kinds, H, a, ray, rest)
        ):
            status = INFEASIBLE
            for i in range(k):
                ray[i] = ray[i] * s[i]
        else:
            least = proximal(
                k, contacts, law, budget, tolerance, kinds, mu, H, a, f, u, best, least, trial,
                info, rest,
            )  # fmt: skip
            if not least <= tolerance:
                status = INACCURATE if least <= ACCEPTED else FAILED
    for i in range(k):
        f[i] = best[i] * s[i] * sigma
    info[RESIDUAL] = least
    return status


def given_up(k: int, f: Doubles, info: Doubles, status: int) -> int:
    """Write that there are no forces, and return the status."""
    for i in range(k):
        f[i] = 0.0
    info[RESIDUAL] = -1.0
    return status


def bounced(contacts: int, kinds: Ints, restitution: Doubles, a: Doubles) -> None:
    """Add to the normal velocities of contacts that approach what they leave with."""
    at = 0
    for c in range(contacts):
        at += max(kinds[c], 1)
        if kinds[c] != BILATERAL and a[at - 1] < 0.0:
            a[at - 1] *= 1.0 + restitution[c]


def small_compliance(size: int, k: int, H: Doubles, s: float, R: Doubles) -> float:
    """Return the scaled compliance of a cone if it is too small for Coulomb's law, else 0.

    Parameters
    ----------
    H, R : from the cone's block and its rows on; s : factor of the rows.
    """
    soft = R[0] * s * s
    mean = 0.0
    for i in range(size):
        mean += (H[i * k + i] - soft) / size
    return soft if soft < LEAST_COMPLIANCE * mean else 0.0


def is_soft(k: int, contacts: int, kinds: Ints, H: Doubles, s: Doubles, R: Doubles) -> bool:
    """Return whether a compliance is too small for Coulomb's law where G is singular."""
    at = 0
    for c in range(contacts):
        if R[at] > 0.0:
            size = max(kinds[c], 1)
            if small_compliance(size, k, H[at * k + at :], s[at], R[at:]) > 0.0:
                return True
        at += max(kinds[c], 1)
    return False


def is_regular(
    k: int, contacts: int, kinds: Ints, H: Doubles, s: Doubles, R: Doubles, K: Doubles
) -> bool:
    """Return whether H without the compliances that are too small is regular."""
    for i in range(k * k):
        K[i] = H[i]
    at = 0
    for c in range(contacts):
        size = max(kinds[c], 1)
        soft = 0.0
        if R[at] > 0.0:
            soft = small_compliance(size, k, H[at * k + at :], s[at], R[at:])
        for i in range(at, at + size):
            K[i * k + i] -= soft + REGULAR
        at += size
    return cholesky(k, K)


def assembled(
    n: int, k: int, starts: Ints, columns: Ints, weights: Doubles, G: Doubles, a0: Doubles,
    R: Doubles, H: Doubles, a: Doubles, product: Doubles,
) -> bool:  # fmt: skip
    """Write H = W'G W + R and a = W'a0; return whether all are finite.

    The inner loops run over neighbours in memory, but for those that write `product`, (k, n) W'G
    column-major.
    """
    for i in range(k):
        value = 0.0
        for e in range(starts[i], starts[i + 1]):
            value += weights[e] * a0[columns[e]]
        a[i] = value
        first = starts[i]
        w = weights[first]
        row = G[columns[first] * n :]
        for c in range(n):
            product[c * k + i] = w * row[c]
        for e in range(first + 1, starts[i + 1]):
            w = weights[e]
            row = G[columns[e] * n :]
            for c in range(n):
                product[c * k + i] += w * row[c]
    for j in range(k):
        column = H[j * k :]
        first = starts[j]
        w = weights[first]
        part = product[columns[first] * k :]
        for i in range(k):
            column[i] = w * part[i]
        for e in range(first + 1, starts[j + 1]):
            w = weights[e]
            part = product[columns[e] * k :]
            for i in range(k):
                column[i] += w * part[i]
    total = 0.0
    for i in range(k):
        total += abs(a[i])
    for i in range(k * k):
        total += abs(H[i])
    for j in range(k):
        H[j * k + j] += R[j]
    return isfinite(total)


def scaled(k: int, contacts: int, kinds: Ints, H: Doubles, s: Doubles, a: Doubles) -> float:
    """Scale H and a in place, write the factors s of the rows, and return |S a0|."""
    largest = 0.0
    for i in range(k):
        largest = max(largest, H[i * k + i])
    if not largest > TINY:
        largest = 1e16  # the factor of rows that nothing moves is 1 where nothing moves at all
    at = 0
    for c in range(contacts):
        size = max(kinds[c], 1)
        mean = 0.0
        for i in range(at, at + size):
            mean += H[i * k + i]
        mean /= size
        factor = 1.0 / sqrt(mean) if mean > 1e-16 * largest else 1e8 / sqrt(largest)
        for i in range(at, at + size):
            s[i] = factor
        at += size
    for j in range(k):
        for i in range(k):
            H[j * k + i] *= s[i] * s[j]
    peak = 0.0
    for i in range(k):
        a[i] *= s[i]
        peak = max(peak, abs(a[i]))
    if not peak > 0.0:
        return 1.0
    square = 0.0
    for i in range(k):
        a[i] /= peak
        square += a[i] * a[i]
    norm = sqrt(square)
    inverse = 1.0 / norm
    for i in range(k):
        a[i] *= inverse
    return peak * norm


def works(k: int, H: Doubles, a: Doubles, f: Doubles, ray: Doubles, v: Doubles) -> bool:
    """Write the direction of forces; return whether they move nothing though a0 works along them.

    Where no forces obey the law, those of the interior point grow along such a direction.
    """
    norm = 0.0
    for i in range(k):
        norm += f[i] * f[i]
    norm = sqrt(norm)
    if not norm > 0.0:
        return False
    work = 0.0
    for i in range(k):
        ray[i] = f[i] / norm
        work += a[i] * ray[i]
        v[i] = 0.0
    for j in range(k):
        for i in range(k):
            v[i] += H[j * k + i] * ray[j]
    moves = 0.0
    for i in range(k):
        moves += v[i] * v[i]
    return work < -CONTRADICTION and sqrt(moves) < CONTRADICTION


def clash(
    k: int, contacts: int, kinds: Ints, H: Doubles, a: Doubles, ray: Doubles, rest: Doubles
) -> bool:
    """Write the part of a0 in the null space of the bilateral rows; return whether it is there."""
    K, b = rest[0:], rest[k * k :]
    j = 0
    for c in range(contacts):
        size = max(kinds[c], 1)
        for other_row in range(j, j + size):
            i = 0
            for e in range(contacts):
                many = max(kinds[e], 1)
                for m in range(i, i + many):
                    held = kinds[c] == BILATERAL and kinds[e] == BILATERAL
                    K[other_row * k + m] = H[other_row * k + m] if held else 0.0
                i += many
            K[other_row * k + other_row] += NULL if kinds[c] == BILATERAL else 1.0
            b[other_row] = -NULL * a[other_row] if kinds[c] == BILATERAL else 0.0
        j += size
    if not cholesky(k, K):
        return False
    solved(k, K, b, ray)
    norm = 0.0
    for i in range(k):
        norm += ray[i] * ray[i]
    return sqrt(norm) > CONTRADICTION


def work_size(k: int, n: int) -> int:
    """Return how many numbers of work :func:`solve` needs."""
    return 4 * k * k + 24 * k + n + 16
