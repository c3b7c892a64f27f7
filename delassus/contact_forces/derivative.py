"""The derivative of contact forces with respect to a0, G and R."""

from __future__ import annotations

import numpy as np

from delassus.contact_forces.cones import BILATERAL, UNILATERAL
from delassus.contact_forces.motion import LEAVING, SLIDING
from delassus.contact_forces.rows import ConeRows
from delassus.model.spatial import Array

_RANK = 1e-10
"""Directions of the reduced matrix below this share of the largest one have no force."""


def derivative(
    rows: ConeRows, H: Array, a: Array, f: Array, law: str, motion: Array
) -> tuple[Array, float]:
    """Return (k, k) D with df = D (da + dH f), and the margin to the nearest other regime.

    At a solution each contact is open (f = 0), holds (u = 0) or slides along n = f_T / norm(f_T).
    With the columns E of the forces that remain, x, y, z or (mu n, 1) and t, the rows E_r of the
    conditions, x, y, z or (0, 0, 1) under Coulomb's law, (mu n, 1) under the convex law, and t,
    and d = norm(u_T) / norm(f_T) for the turn t of a sliding contact, else 0:

    D = -E (E_r' H E + diag(d))^-1 E_r'

    A contact whose velocity v slides has the column e_N - mu v_T / norm(v_T) and the row e_N.

    Parameters
    ----------
    H, a, f : (k, k), (k,), (k,): G with R, a0 and forces in the rows of the cones.
    motion : (cones, 3), see :func:`~delassus.contact_forces.motion.find_motion`.
    """
    u = H @ f + a
    force_scale, speed_scale = max(np.abs(f).max(), 1e-300), max(np.abs(a).max(), 1e-300)
    E: list[Array] = []
    conditions: list[Array] = []
    turning: list[float] = []
    margin = np.inf
    at = 0
    for kind, mu, (moves, vx, vy) in zip(
        rows.cones.tolist(), rows.friction.tolist(), motion.tolist(), strict=True
    ):
        size = max(kind, 1)
        unit = np.eye(len(f))[at : at + size]
        force, speed = f[at : at + size], u[at : at + size]
        at += size
        if moves == LEAVING:
            continue
        if kind == BILATERAL:
            new, asked, d = list(unit), list(unit), [0.0]
        elif moves == SLIDING:
            pushes = force[2] / force_scale > max(speed[2], 0.0) / speed_scale
            new = [unit[2] - mu * (vx * unit[0] + vy * unit[1])] if pushes else []
            asked, d = [unit[2]] * len(new), [0.0] * len(new)
            margin = min(margin, abs(force[2] / force_scale - speed[2] / speed_scale))
        elif kind == UNILATERAL or mu == 0:
            pushes = force[-1] / force_scale > max(speed[-1], 0.0) / speed_scale
            new = asked = list(unit[-1:]) if pushes else []
            d = [0.0] * len(new)
            margin = min(margin, abs(force[-1] / force_scale - speed[-1] / speed_scale))
        else:
            t, slip = float(np.hypot(*force[:2])), float(np.hypot(*speed[:2]))
            lift = speed[2] - (mu * slip if law == "convex" else 0.0)
            room = mu * force[2] - t
            if force[2] / force_scale <= max(speed[2], slip) / speed_scale and t == 0.0:
                new, asked, d = [], [], []
                margin = min(margin, lift / speed_scale)
            elif room / force_scale > slip / speed_scale:
                new, asked, d = list(unit), list(unit), [0.0] * 3
                margin = min(margin, room / force_scale)
            else:
                n = force[:2] / t
                along = mu * (n @ unit[:2]) + unit[2]
                turn = n[0] * unit[1] - n[1] * unit[0]
                new = [along, turn]
                asked = [unit[2] if law == "coulomb" else along, turn]
                d = [0.0, slip / t]
                margin = min(margin, slip / speed_scale, force[2] / force_scale)
        E += new
        conditions += asked
        turning += d
    if not E:
        return np.zeros_like(H), float(margin)
    columns, tests = np.array(E).T, np.array(conditions)
    reduced = tests @ H @ columns + np.diag(turning)
    return -columns @ np.linalg.pinv(reduced, rcond=_RANK) @ tests, float(margin)
