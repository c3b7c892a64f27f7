"""Projection of a task on the motions that held contacts allow, in the compiled subset of Python.

The matrix of tasks t and contacts c is ((G_tt, G_tc), (G_ct, G_cc)). A Cholesky factorisation of
G_cc with pivots, S G_pp S = L L', takes the r independent rows p of the contacts; their other rows
follow from these. With V = L^-1 S G_pt, Y = L^-1 S J_p, W = L^-1 S J_p M^-1 and y = L^-1 S a_p:

    G_t|c = G_tt - V'V,  J_t|c = J_t - V'Y,  M^-1 J_t|c' = M^-1 J_t' - W'V,  a_t|c = a_t - V'y
    N_c = 1 - W'Y

S scales rows, so that rows of different units are compared.
"""

from __future__ import annotations

from math import sqrt

from delassus.compiler.codegen.loops import Doubles, Ints

NOISE = 1e-13
"""Pivots below this fraction of the largest scaled diagonal entry are rounding."""
FLOOR = 2.220446049250313e-16
"""Least pivot of an inertia, per row and as a fraction of the largest scaled diagonal entry, in
directions in which a task moves by structure."""
FINITE = 1.7976931348623157e308
"""Sums of finite results are below this number."""
DONE, NOT_FINITE = 0, 2
"""Results; the latter is the number of the solution's status."""
INERTIA, JBAR, NULL_SPACE, BIAS, FREE = 1, 2, 4, 8, 16
"""Bits of the results of `task_space`."""


def factorised(k: int, limit: int, noise: float, floor: float, A: Doubles, order: Ints) -> int:
    """Factorise P A P' = L L' in place in the lower triangle, with pivots; return the rank.

    Parameters
    ----------
    k : size of A, row-major.
    limit : largest rank.
    noise : the factorisation ends at pivots up to this size.
    floor : smaller pivots, above the noise, are raised to this value.
    order : (k) the rows by pivot, a result.
    """
    for i in range(k):
        order[i] = i
    for p in range(limit):
        best = p
        for i in range(p + 1, k):
            if A[i * k + i] > A[best * k + best]:
                best = i
        pivot = A[best * k + best]
        if not pivot > noise:
            return p
        if best != p:
            order[p], order[best] = order[best], order[p]
            for j in range(p):
                A[p * k + j], A[best * k + j] = A[best * k + j], A[p * k + j]
            for j in range(p + 1, best):
                A[j * k + p], A[best * k + j] = A[best * k + j], A[j * k + p]
            for j in range(best + 1, k):
                A[j * k + p], A[j * k + best] = A[j * k + best], A[j * k + p]
            A[best * k + best] = A[p * k + p]
        root = sqrt(max(pivot, floor))
        A[p * k + p] = root
        inverse = 1.0 / root
        for i in range(p + 1, k):
            A[i * k + p] *= inverse
        for i in range(p + 1, k):
            factor = A[i * k + p]
            for j in range(p + 1, i + 1):
                A[i * k + j] -= factor * A[j * k + p]
    return limit


def substituted(k: int, r: int, L: Doubles, n: int, B: Doubles) -> None:
    """Overwrite B (r, n), row-major, by L^-1 B; rows of L have k entries."""
    for i in range(r):
        row = B[i * n :]
        for j in range(i):
            factor = L[i * k + j]
            above = B[j * n :]
            for c in range(n):
                row[c] -= factor * above[c]
        inverse = 1.0 / L[i * k + i]
        for c in range(n):
            row[c] *= inverse


def largest_diagonal(m: int, k: int, rows: Ints, scales: Doubles, G: Doubles) -> float:
    """Return the largest scaled diagonal entry of rows of G (m, m)."""
    found = 0.0
    for i in range(k):
        row = rows[i]
        found = max(found, G[row * m + row] * scales[row] * scales[row])
    return found


def hold(
    m: int, t: int, c: int, limit: int, rows: Ints, scales: Doubles, G: Doubles,
    held: Doubles, L: Doubles, V: Doubles, order: Ints,
) -> int:  # fmt: skip
    """Compute G_t|c; return the number of independent rows of the contacts.

    Parameters
    ----------
    rows : (t + c) rows of G: of the task, then of the contacts.
    limit : the structural rank of the contacts.
    scales : (m) factors of rows.
    held : (t, t) G_t|c, a result.
    L, V, order : (c, c), (c, t), (c) the factorisation, its first rows; results.
    """
    contacts = rows[t:]
    for i in range(c):
        row = contacts[i]
        for j in range(c):
            column = contacts[j]
            L[i * c + j] = G[row * m + column] * scales[row] * scales[column]
    noise = NOISE * largest_diagonal(m, c, contacts, scales, G)
    r = factorised(c, limit, noise, 0.0, L, order)
    for i in range(r):
        row = contacts[order[i]]
        for j in range(t):
            V[i * t + j] = G[row * m + rows[j]] * scales[row]
    substituted(c, r, L, t, V)
    for i in range(t):
        for j in range(i + 1):
            value = G[rows[i] * m + rows[j]]
            for p in range(r):
                value -= V[p * t + i] * V[p * t + j]
            held[i * t + j] = value
            held[j * t + i] = value
    return r


def held_vector(
    t: int, c: int, r: int, rows: Ints, scales: Doubles, L: Doubles, V: Doubles, order: Ints,
    a: Doubles, y: Doubles, out: Doubles,
) -> None:  # fmt: skip
    """Write y = L^-1 S a_p (r) and a_t|c (t) for values a of all rows."""
    for i in range(r):
        row = rows[t + order[i]]
        y[i] = a[row] * scales[row]
    substituted(c, r, L, 1, y)
    for i in range(t):
        value = a[rows[i]]
        for p in range(r):
            value -= V[p * t + i] * y[p]
        out[i] = value


def held_rows(
    n: int, t: int, c: int, r: int, rows: Ints, scales: Doubles, L: Doubles, V: Doubles,
    order: Ints, J: Doubles, Y: Doubles, out: Doubles,
) -> None:  # fmt: skip
    """Write Y = L^-1 S J_p (r, n) and J_t|c (t, n) for J (m, n)."""
    for i in range(r):
        row = rows[t + order[i]]
        for j in range(n):
            Y[i * n + j] = J[row * n + j] * scales[row]
    substituted(c, r, L, n, Y)
    for i in range(t):
        for j in range(n):
            value = J[rows[i] * n + j]
            for p in range(r):
                value -= V[p * t + i] * Y[p * n + j]
            out[i * n + j] = value


def held_columns(
    m: int, n: int, t: int, c: int, r: int, rows: Ints, scales: Doubles, L: Doubles, V: Doubles,
    order: Ints, response: Doubles, W: Doubles, out: Doubles,
) -> None:  # fmt: skip
    """Write W (r, n) and M^-1 J_t|c' (n, t) for M^-1 J' (n, m)."""
    for i in range(r):
        row = rows[t + order[i]]
        for j in range(n):
            W[i * n + j] = response[j * m + row] * scales[row]
    substituted(c, r, L, n, W)
    for j in range(n):
        for i in range(t):
            value = response[j * m + rows[i]]
            for p in range(r):
                value -= W[p * n + j] * V[p * t + i]
            out[j * t + i] = value


def held_motions(n: int, r: int, W: Doubles, Y: Doubles, out: Doubles) -> None:
    """Write N_c = 1 - W'Y (n, n), the projection on motions that the contacts allow."""
    for i in range(n):
        for j in range(n):
            value = 1.0 if i == j else 0.0
            for p in range(r):
                value -= W[p * n + i] * Y[p * n + j]
            out[i * n + j] = value


def task_inertia(
    m: int, t: int, limit: int, rows: Ints, scales: Doubles, G: Doubles, held: Doubles,
    inertia: Doubles, A: Doubles, B: Doubles, order: Ints,
) -> int:  # fmt: skip
    """Write the inertia (t, t), the inverse of G_t|c; return the rank of the task.

    Where rows of the task depend on other rows, or contacts hold them, the inertia is the
    pseudo-inverse of the scaled matrix: with S G_t|c S = L L', L of t rows and r columns,
    S L (L'L)^-1 (L'L)^-1 L' S.

    Parameters
    ----------
    limit : the structural rank of the task under the contacts.
    A, B : scratch (t, t), order (t).
    """
    for i in range(t):
        for j in range(t):
            A[i * t + j] = held[i * t + j] * scales[rows[i]] * scales[rows[j]]
    largest = largest_diagonal(m, t, rows, scales, G)
    floor = t * FLOOR * largest
    # In directions of the structure the inertia grows up to rounding, as at singular postures.
    r = factorised(t, limit, -FINITE, floor, A, order)
    for i in range(r):
        for j in range(t):
            B[i * t + j] = 0.0
    if r == t:
        # Rows of L^-1 P.
        for i in range(t):
            B[i * t + order[i]] = 1.0
        substituted(t, t, A, t, B)
    else:
        # Rows of (L'L)^-1 L' P, by the Cholesky factors of L'L in `inertia`.
        for i in range(r):
            for k in range(i, t):
                B[i * t + order[k]] = A[k * t + i]
            for j in range(i + 1):
                value = 0.0
                for k in range(i, t):
                    value += A[k * t + i] * A[k * t + j]
                inertia[i * t + j] = value
        for p in range(r):
            root = sqrt(max(inertia[p * t + p], floor))
            inertia[p * t + p] = root
            for i in range(p + 1, r):
                inertia[i * t + p] /= root
            for i in range(p + 1, r):
                for j in range(p + 1, i + 1):
                    inertia[i * t + j] -= inertia[i * t + p] * inertia[j * t + p]
        substituted(t, r, inertia, t, B)
        for i in range(r - 1, -1, -1):
            for k in range(i + 1, r):
                factor = inertia[k * t + i]
                for j in range(t):
                    B[i * t + j] -= factor * B[k * t + j]
            for j in range(t):
                B[i * t + j] /= inertia[i * t + i]
    for i in range(t):
        for j in range(i + 1):
            value = 0.0
            for p in range(r):
                value += B[p * t + i] * B[p * t + j]
            value *= scales[rows[i]] * scales[rows[j]]
            inertia[i * t + j] = value
            inertia[j * t + i] = value
    return r


def task_space(
    wanted: int, m: int, n: int, t: int, c: int, contact_rank: int, task_rank: int, rows: Ints,
    scales: Doubles, G: Doubles, J: Doubles, response: Doubles, h: Doubles, JdotV: Doubles,
    a0: Doubles, held: Doubles, inertia: Doubles, jbar: Doubles, null_space: Doubles,
    bias_force: Doubles, free: Doubles, work: Doubles, order: Ints,
) -> int:  # fmt: skip
    """Compute the quantities of a task under held contacts; return the status.

    Parameters
    ----------
    wanted : sum of the bits of the results; arrays that no wanted result needs are not read.
    m, n, t, c : numbers of rows of G, of velocities, of rows of the task and of the contacts.
    contact_rank, task_rank : structural ranks of the contacts, and of the task under them.
    rows : (t + c) rows of G: of the task, then of the contacts.
    scales : (m) factors that give all rows the unit of linear rows.
    G, J, response, h, JdotV, a0 : (m, m), (m, n), (n, m), (n), (m), (m) outputs of the kernel;
        response is M^-1 J'.
    held, inertia : (t, t) G_t|c and its inverse.
    jbar : (n, t), M^-1 J_t|c' times the inertia.
    null_space : (n, n), projection on motions that move neither task nor contacts.
    bias_force : (t), effects of velocity and gravity.
    free : (t), accelerations of the task without task forces.
    work : scratch of `work_size` doubles. order : scratch of c + t integers.
    """
    L = work
    V = work[c * c :]
    A = V[c * t :]
    B = A[t * t :]
    y = B[t * t :]
    rates = y[c + t :]
    Y = rates[t + t :]
    W = Y[c * n :]
    columns = W[c * n :]
    lines = columns[n * t :]
    r = hold(m, t, c, contact_rank, rows, scales, G, held, L, V, order)
    task_inertia(m, t, task_rank, rows, scales, G, held, inertia, A, B, order[c:])
    finite = 0.0
    for i in range(t + c):
        # A pivot that is not a number would count as a row that depends on other rows.
        for j in range(t + c):
            finite += G[rows[i] * m + rows[j]]
    for i in range(t * t):
        finite += held[i] + inertia[i]
    bits = wanted
    is_free = bits >= FREE
    if is_free:
        bits -= FREE
        held_vector(t, c, r, rows, scales, L, V, order, a0, y, free)
        for i in range(t):
            finite += free[i]
    is_biased = bits >= BIAS
    if is_biased:
        bits -= BIAS
    is_null = bits >= NULL_SPACE
    if is_null:
        bits -= NULL_SPACE
    if is_biased or is_null or bits >= JBAR:
        held_columns(m, n, t, c, r, rows, scales, L, V, order, response, W, columns)
        for i in range(n):
            for j in range(t):
                value = 0.0
                for k in range(t):
                    value += columns[i * t + k] * inertia[k * t + j]
                jbar[i * t + j] = value
                finite += value
    if is_biased:
        held_vector(t, c, r, rows, scales, L, V, order, JdotV, y, rates)
        for i in range(t):
            value = -rates[i]
            for j in range(n):
                value += columns[j * t + i] * h[j]
            rates[t + i] = value
        for i in range(t):
            value = 0.0
            for j in range(t):
                value += inertia[i * t + j] * rates[t + j]
            bias_force[i] = value
            finite += value
    if is_null:
        held_rows(n, t, c, r, rows, scales, L, V, order, J, Y, lines)
        held_motions(n, r, W, Y, null_space)
        for i in range(n):
            for j in range(n):
                value = null_space[i * n + j]
                for k in range(t):
                    value -= jbar[i * t + k] * lines[k * n + j]
                null_space[i * n + j] = value
                finite += value
    return DONE if abs(finite) < FINITE else NOT_FINITE


def work_size(n: int, t: int, c: int) -> int:
    """Return the number of doubles of scratch of `task_space`."""
    return c * c + c * t + 2 * t * t + c + 3 * t + 2 * c * n + 2 * n * t


def task_space_at(sizes: Ints, base: Doubles, rows: Ints, order: Ints) -> int:
    """Call `task_space`: seven sizes, then the places of its arrays of doubles from `base` on.

    Parameters
    ----------
    base : the first of the arrays that the places count from; a place may be negative.
    """
    return task_space(
        sizes[0], sizes[1], sizes[2], sizes[3], sizes[4], sizes[5], sizes[6], rows,
        base[sizes[7] :], base[sizes[8] :], base[sizes[9] :], base[sizes[10] :],
        base[sizes[11] :], base[sizes[12] :], base[sizes[13] :], base[sizes[14] :],
        base[sizes[15] :], base[sizes[16] :], base[sizes[17] :], base[sizes[18] :],
        base[sizes[19] :], base[sizes[20] :], order,
    )  # fmt: skip
