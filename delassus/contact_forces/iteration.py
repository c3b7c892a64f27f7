"""Contact forces under friction, in the subset of Python that is compiled.

The forces f of one problem obey, with u = (G + R) f + a0 and K the product of the cones
|f_T| <= mu f_N of points, of f >= 0 for unilateral rows and of all f for bilateral rows,

- Coulomb's law with Signorini's (``COULOMB``): f_N >= 0 and u_N >= 0, one of them 0, and f_T is
  the point of the disc of radius mu f_N nearest to f_T - u_T,
- its convex neighbour (``CONVEX``): f = P_K(f - u), the minimum of f'(G + R) f / 2 + a0'f over K.

Contacts that move obey other laws (:mod:`~delassus.contact_forces.motion`).

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

Where G is singular, the first three solve a problem with a small compliance, whose forces are
moved to those without (:mod:`~delassus.contact_forces.division`), before they begin on G
itself.

All quantities inside are scaled: a factor per contact, so that cones stay cones, gives G a mean
diagonal of 1 and |a0| = 1. Matrices but G are column-major: row i of column j stands at
``j * k + i``.
Rows of a point are x, y and the normal.
"""

from __future__ import annotations

from math import isfinite, nan, sqrt

from delassus.compiler.codegen.loops import Doubles, Ints
from delassus.contact_forces.cones import (
    BILATERAL,
    CONVEX,
    COULOMB,
    DIVISION,
    INFO,
    LAW,
    RESIDUAL,
    SPEEDS,
    TINY,
    acceleration,
    residual,
)
from delassus.contact_forces.division import (
    EQUAL,
    OTHER,
    divided,
    is_regular,
    redundant_rows,
    shares,
)
from delassus.contact_forces.elimination import cholesky, solved
from delassus.contact_forces.motion import (
    MOTION,
    SLIDING,
    add_friction,
    find_motion,
    is_decided,
    slant,
    uncouple,
)
from delassus.contact_forces.newton import HOLDS, OPEN, PROXIMAL, find_regimes
from delassus.contact_forces.proximal import proximal
from delassus.contact_forces.stages import stages
from delassus.contacts import LARGEST_FRICTION

SOLVED, INACCURATE, FAILED, INFEASIBLE, NOT_FINITE, REFUSED, STRIKING, JAMMED = (
    0, 1, 2, 3, 4, 5, 6, 7,
)  # fmt: skip
NAN = nan
"""Accelerations where there are no forces: from NOT_FINITE on."""
ACCEPTED = 1e-6
"""Residual up to which forces are INACCURATE and not FAILED."""
MOST_TOLERANCE = 1e-2
"""Largest tolerance: a larger residual says nothing about forces."""
IMMOVABLE = 1e-16
"""Mean diagonal of a contact that nothing moves, as a share of the largest diagonal."""
CONTRADICTION, NULL = 1e-6, 1e-10
"""Sizes of scaled quantities at which a contradiction counts, and below which they are zero."""


def solve(
    n: int, k: int, contacts: int, law: int, budget: int, tolerance: float,
    kinds: Ints, mu: Doubles, restitution: Doubles, starts: Ints, columns: Ints,
    weights: Doubles, speeds: Doubles, G: Doubles, a0: Doubles, v: Doubles, R: Doubles, f: Doubles,
    forces: Doubles, accelerations: Doubles, ray: Doubles, info: Doubles, work: Doubles,
) -> int:  # fmt: skip
    """Solve one problem and return its status.

    Parameters
    ----------
    n : number of rows of G; k : number of rows of the cones, 3 per point and 1 per other contact.
    kinds, mu, restitution : (contacts,), in the order of the rows of the cones.
    starts, columns, weights : the rows of the cones as sums of rows of G, row i by the entries
        starts[i] to starts[i + 1]: the corners of a surface, or rows in other order.
    speeds : (SPEEDS,) velocities above which a contact slides, leaves and strikes.
    G : (n, n) row-major; a0, v : (n,); R : (k,) compliance.
    f : (k,) forces at the rows of the cones to begin with, and the result.
    forces, accelerations : (n,) results at the rows of G: W f, and G W f + a0.
    ray : (k,) marks, 1 or 0: where INFEASIBLE of rows that contradict each other, where STRIKING
        or JAMMED of the rows of such contacts, else of rows whose forces could be divided
        otherwise.
    info : (INFO,), see SWEEPS to ROWS.
    work : at least :func:`work_size` numbers.
    """
    status = iterated(
        n, k, contacts, law, budget, tolerance, kinds, mu, restitution, starts, columns, weights,
        speeds, G, a0, v, R, f, ray, info, work,
    )  # fmt: skip
    total = 0.0
    for i in range(n):
        forces[i] = 0.0
    for i in range(k):
        for e in range(starts[i], starts[i + 1]):
            forces[columns[e]] += weights[e] * f[i]
        total += abs(f[i])
    if status < NOT_FINITE and not isfinite(total):
        status = given_up(k, f, info, NOT_FINITE)
        for i in range(n):
            forces[i] = 0.0
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
    values : tolerance, speeds, mu, restitution, weights, R, G, a0, v, f, forces, accelerations,
        info, ray, work.
    """
    n, k = whole[0], whole[1]
    G = values[whole[5] :]
    f = G[n * n + 2 * n :]
    info = f[k + 2 * n :]
    return solve_with(
        whole, values, G, G[n * n :], G[n * n + n :], f, f[k:], f[k + n :], info[INFO:], info
    )


def solve_batch(
    count: int, whole: Ints, values: Doubles, G: Doubles, a0: Doubles, v: Doubles, f: Doubles,
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
            whole, values, G[i * n * n :], a0[i * n :], v[i * n :], f[i * k :], forces[i * n :],
            accelerations[i * n :], rays[i * k :], infos[i * INFO :],
        )  # fmt: skip
        if statuses[i] == SOLVED:
            many += 1
    return many


def solve_with(
    whole: Ints, values: Doubles, G: Doubles, a0: Doubles, v: Doubles, f: Doubles,
    forces: Doubles, accelerations: Doubles, ray: Doubles, info: Doubles,
) -> int:  # fmt: skip
    """Solve a problem with the contacts and the work of two blocks."""
    n, k, contacts = whole[0], whole[1], whole[2]
    kinds = whole[6:]
    starts = kinds[contacts:]
    mu = values[1 + SPEEDS :]
    restitution = mu[contacts:]
    weights = restitution[contacts:]
    R = weights[starts[k] :]
    work = values[whole[5] + n * n + 4 * n + 2 * k + INFO :]
    return solve(
        n, k, contacts, whole[3], whole[4], values[0], kinds, mu, restitution, starts,
        starts[k + 1 :], weights, values[1:], G, a0, v, R, f, forces, accelerations, ray, info,
        work,
    )  # fmt: skip


def iterated(
    n: int, k: int, contacts: int, law: int, budget: int, tolerance: float,
    kinds: Ints, mu: Doubles, restitution: Doubles, starts: Ints, columns: Ints,
    weights: Doubles, speeds: Doubles, G: Doubles, a0: Doubles, v: Doubles, R: Doubles, f: Doubles,
    ray: Doubles, info: Doubles, work: Doubles,
) -> int:  # fmt: skip
    """Write the forces at the rows of the cones, and return the status; :func:`solve` explains."""
    H, s, a, best, u, trial, D = (
        work[0:], work[k * k :], work[k * k + k :], work[k * k + 2 * k :], work[k * k + 3 * k :],
        work[k * k + 4 * k :], work[k * k + 5 * k :],
    )  # fmt: skip
    weight, friction, motion = (
        work[k * k + 6 * k :], work[k * k + 7 * k :], work[k * k + 8 * k :],
    )  # fmt: skip
    rest = work[k * k + 11 * k :]
    for i in range(INFO):
        info[i] = 0.0
    info[LAW] = float(law)
    for i in range(k):
        ray[i] = 0.0
    if not is_accepted(contacts, law, tolerance, mu, restitution, speeds, k, R):
        return given_up(k, f, info, REFUSED)
    if not assembled(n, k, starts, columns, weights, G, a0, v, R, H, a, rest):
        return given_up(k, f, info, NOT_FINITE)
    striking = find_motion(
        contacts, kinds, starts, columns, weights, v, speeds[0], speeds[1], speeds[2], motion, ray
    )  # fmt: skip
    if striking > 0:
        return given_up(k, f, info, STRIKING)
    bounced(contacts, kinds, restitution, a)
    sliding = uncouple(k, contacts, kinds, mu, motion, H, a, friction)
    sigma = scaled(k, contacts, kinds, H, s, a)
    regular = is_regular(k, H, rest)
    for i in range(k):
        f[i] = f[i] / (s[i] * sigma)
        weight[i] = PROXIMAL
    slant(k, contacts, kinds, mu, motion, H, f)
    if sliding > 0:
        for c in range(contacts):
            rest[c] = float(HOLDS) if kinds[c] == BILATERAL else float(OPEN)
        if not is_decided(
            k, contacts, law, kinds, friction, motion, H, a, f, u, rest, rest[k:], rest[4 * k :]
        ):
            return jammed(k, contacts, kinds, motion, f, ray, info)
    acceleration(k, H, a, f, u)
    if not isfinite(residual(contacts, law, kinds, friction, f, u)):
        for i in range(k):
            f[i] = 0.0
    for i in range(k):
        best[i] = f[i]
    least = 1.0
    if not regular:
        shares(k, contacts, kinds, s, D)
        least = divided(
            k, contacts, law, budget, tolerance, kinds, friction, H, a, weight, D, f, u, best,
            trial, info, rest,
        )  # fmt: skip
        info[DIVISION] = float(EQUAL) if least <= tolerance else float(OTHER)
    if regular or not least <= tolerance:
        least = stages(
            k, contacts, law, budget, tolerance, kinds, friction, H, a, weight, f, u, best, trial,
            info, rest, regular,
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
            mark_rows(k, s, ray)
        else:
            least = proximal(
                k, contacts, law, budget, tolerance, kinds, friction, H, a, weight, f, u, best,
                least, trial, info, rest,
            )  # fmt: skip
            if not least <= tolerance:
                status = INACCURATE if least <= ACCEPTED else FAILED
    acceleration(k, H, a, best, u)
    if status <= INACCURATE and not regular:
        redundant_rows(
            k, contacts, law, kinds, friction, H, a, best, u, weight, ray, info, rest
        )  # fmt: skip
    if sliding > 0:
        find_regimes(contacts, law, kinds, friction, best, u, rest, rest[k:])
        if not is_decided(
            k, contacts, law, kinds, friction, motion, H, a, best, weight, rest, rest[k:],
            rest[4 * k :],
        ):  # fmt: skip
            return jammed(k, contacts, kinds, motion, f, ray, info)
        add_friction(contacts, kinds, mu, motion, best)
    for i in range(k):
        f[i] = best[i] * s[i] * sigma
    info[RESIDUAL] = least
    return status


def mark_rows(k: int, s: Doubles, ray: Doubles) -> None:
    """Leave 1 at the rows along which a certificate, of scaled rows, has forces, else 0."""
    largest = 0.0
    for i in range(k):
        largest = max(largest, abs(ray[i] * s[i]))
    for i in range(k):
        ray[i] = 1.0 if abs(ray[i] * s[i]) > CONTRADICTION * largest else 0.0


def is_accepted(
    contacts: int, law: int, tolerance: float, mu: Doubles, restitution: Doubles, speeds: Doubles,
    k: int, R: Doubles,
) -> bool:  # fmt: skip
    """Return whether arguments are in their ranges."""
    accepted = 0.0 < tolerance and tolerance <= MOST_TOLERANCE
    accepted = accepted and (law == COULOMB or law == CONVEX)
    for c in range(contacts):
        accepted = accepted and 0.0 <= mu[c] and mu[c] <= LARGEST_FRICTION
        accepted = accepted and 0.0 <= restitution[c] and restitution[c] <= 1.0
    for i in range(SPEEDS):
        accepted = accepted and speeds[i] >= 0.0
    for i in range(k):
        accepted = accepted and R[i] >= 0.0 and isfinite(R[i])
    return accepted


def given_up(k: int, f: Doubles, info: Doubles, status: int) -> int:
    """Write that there are no forces, and return the status."""
    for i in range(k):
        f[i] = 0.0
    info[RESIDUAL] = -1.0
    return status


def jammed(
    k: int, contacts: int, kinds: Ints, motion: Doubles, f: Doubles, ray: Doubles, info: Doubles
) -> int:
    """Mark the rows of contacts that slide, write that there are no forces, return JAMMED."""
    at = 0
    for c in range(contacts):
        for i in range(at, at + max(kinds[c], 1)):
            ray[i] = 1.0 if motion[MOTION * c] == SLIDING else 0.0
        at += max(kinds[c], 1)
    return given_up(k, f, info, JAMMED)


def bounced(contacts: int, kinds: Ints, restitution: Doubles, a: Doubles) -> None:
    """Add to the normal velocities of contacts that approach what they leave with."""
    at = 0
    for c in range(contacts):
        at += max(kinds[c], 1)
        if kinds[c] != BILATERAL and a[at - 1] < 0.0:
            a[at - 1] *= 1.0 + restitution[c]


def assembled(
    n: int, k: int, starts: Ints, columns: Ints, weights: Doubles, G: Doubles, a0: Doubles,
    v: Doubles, R: Doubles, H: Doubles, a: Doubles, product: Doubles,
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
    for i in range(n):
        total += v[i] * v[i]
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
        largest = 1.0
    at = 0
    for c in range(contacts):
        size = max(kinds[c], 1)
        mean = 0.0
        for i in range(at, at + size):
            mean += H[i * k + i]
        mean /= size
        # Rows that nothing moves have the factor of those that move most, not a larger one, by
        # which their accelerations would hide all others.
        factor = 1.0 / sqrt(mean if mean > IMMOVABLE * largest else largest)
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
    for i in range(k):
        column = H[i * k :]
        for j in range(k):
            v[i] += column[j] * ray[j]
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
    return 4 * k * k + 32 * k + n + 16
