"""Torques of a robot on flat feet, from its matrices: one program with twelve unknowns.

Pelvis and feet are contacts of six rows each, along the axes of the world. Of all motions in
which pelvis and feet accelerate by a, Gauss's principle takes the one nearest to what the posture
wants, ẏ̇ₚ: virtual forces λ at the contacts lead to it,

    M ẏ̇ = M ẏ̇ₚ + Jᵀ λ,    λ = G⁻¹ (a - J ẏ̇ₚ - J̇ ẏ)                        (1)

The feet's part of a is wanted. The floor's forces f fix the pelvis's part, as nothing drives the
base: its six rows of M ẏ̇ + h = Sᵀ τ + Jᵀ f have no τ. What is left to choose are the forces, six
per foot that stands: for the acceleration of the centre of mass, which is Σ f / m + g, for that of
the pelvis's orientation, and within cones and limits. All else, torques too, is linear in them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from control.program import least

Array = npt.NDArray[np.float64]
BASE = 6
"""Rows of the pelvis, which come first, of each foot, and velocities of the base."""
_GRAVITY = np.array([0.0, 0.0, -9.81])


@dataclass(frozen=True)
class Weights:
    """Weights of the program, and bounds of forces.

    Attributes
    ----------
    centre : of the error of the centre of mass's acceleration (3,).
    turning : of the error of the pelvis's angular acceleration (3,).
    force : of the forces of a foot, about its share of the weight (6,) [1/N²], [1/(N m)²].
    friction : half of the cone's width over its height; the cone is a pyramid inside of it.
    half : of the sole's length and width within which the centre of pressure stays [m].
    twisting : largest moment about the normal over the normal force [m].
    least : normal force of a foot that bears [N].
    """

    centre: Array = field(default_factory=lambda: np.array([4.0, 4.0, 4.0]))
    turning: Array = field(default_factory=lambda: np.array([1.0, 1.0, 0.5]))
    force: Array = field(default_factory=lambda: np.array([2e-6] * 3 + [2e-4] * 3))
    friction: float = 0.5
    half: tuple[float, float] = (0.095, 0.042)
    twisting: float = 0.03
    least: float = 5.0


@dataclass(frozen=True)
class Matrices:
    """Outputs of delassus_node at an instant: pelvis and both feet, axes of the world.

    Attributes
    ----------
    G, M, h, J, JdotV : (18, 18), (n + 6, n + 6), (n + 6,), (18, n + 6), (18,).
    """

    G: Array
    M: Array
    h: Array
    J: Array
    JdotV: Array


@dataclass(frozen=True)
class Wanted:
    """Targets of the program at an instant.

    Attributes
    ----------
    centre, turning : acceleration of the centre of mass (3,) [m/s²], of the pelvis's orientation
        (3,) [rad/s²].
    feet : accelerations of the feet (2, 6), linear first.
    posture : accelerations of the joints (n,) [rad/s²].
    bears : share of the weight that each foot may bear; 0 where it is in the air.
    axes : of the feet in the world (2, 3, 3).
    mass : of the robot [kg].
    limits : largest torques (n,) [N m].
    """

    centre: Array
    turning: Array
    feet: Array
    posture: Array
    bears: Sequence[float]
    axes: Array
    mass: float
    limits: Array


@dataclass(frozen=True)
class Solved:
    """Torques (n,), wrenches of both feet (2, 6), the pelvis's acceleration (6,)."""

    torques: Array
    wrenches: Array
    pelvis: Array


def torques(given: Matrices, wanted: Wanted, weights: Weights, solver: str = "daqp") -> Solved:
    """Solve for the wrenches of the feet that bear.

    Raises
    ------
    UnsolvedError
        If the solver fails.
    """
    J, h, base = given.J, given.h, slice(None, BASE)
    joints = slice(BASE, None)
    standing = [k for k, share in enumerate(wanted.bears) if share > 0.0]
    rows = [BASE * (k + 1) + row for k in standing for row in range(BASE)]
    posture = np.concatenate([np.zeros(BASE), wanted.posture])
    # (1): λ = slope a_pelvis + start.
    off = np.concatenate([np.zeros(BASE), wanted.feet.ravel()]) - J @ posture - given.JdotV
    first = np.eye(len(off))[:, base]
    both = np.linalg.solve(given.G, np.column_stack([first, off]))
    slope, start = both[:, :BASE], both[:, BASE]
    inertia = given.M @ posture + h
    # The base's rows: Jᵀ slope a_pelvis = Jᵀ f - inertia - Jᵀ start.
    right = np.column_stack([J[rows][:, base].T, -inertia[base] - J[:, base].T @ start])
    both = np.linalg.solve(J[:, base].T @ slope, right)
    A, c = both[:, :-1], both[:, -1]
    into = J[:, joints].T @ slope
    T = into @ A - J[rows][:, joints].T
    t = inertia[joints] + into @ c + J[:, joints].T @ start
    # The centre of mass, and how the pelvis turns.
    total = np.tile(np.eye(3, BASE), len(standing)) / wanted.mass
    tasks = np.vstack([total, A[3:]])
    error = np.concatenate([wanted.centre - _GRAVITY, wanted.turning - c[3:]])
    W = np.concatenate([weights.centre, weights.turning])
    bears = np.array([wanted.bears[k] for k in standing])
    rest = np.zeros((len(standing), BASE))
    weight = -wanted.mass * _GRAVITY[2]
    rest[:, 2] = weight * bears / bears.sum()
    small = np.tile(weights.force, len(standing))
    P = tasks.T @ (W[:, np.newaxis] * tasks) + np.diag(small)
    p = -tasks.T @ (W * error) - small * rest.ravel()
    cone, bound = _cone([wanted.axes[k] for k in standing], 2.0 * weight * bears, weights)
    f = least(P, p, cone, bound, T, t, wanted.limits, None, None, solver)
    wrenches = np.zeros((len(wanted.bears), BASE))
    wrenches[standing] = f.reshape(-1, BASE)
    return Solved(T @ f + t, wrenches, A @ f + c)


def _cone(axes: Sequence[Array], most: Array, weights: Weights) -> tuple[Array, Array]:
    """Return C and c with C f <= c for wrenches that soles can pass on."""
    mu, (x, y), z = weights.friction / np.sqrt(2.0), weights.half, weights.twisting
    one = np.zeros((12, BASE))
    for k, (axis, width) in enumerate(((0, mu), (1, mu), (3, y), (4, x), (5, z))):
        one[2 * k : 2 * k + 2, axis] = 1.0, -1.0
        one[2 * k : 2 * k + 2, 2] = -width
    one[10:, 2] = 1.0, -1.0
    cone = np.zeros((12 * len(axes), BASE * len(axes)))
    bound = np.zeros(len(cone))
    for k, R in enumerate(axes):
        here, part = slice(12 * k, 12 * k + 12), BASE * k
        cone[here, part : part + 3] = one[:, :3] @ R.T
        cone[here, part + 3 : part + 6] = one[:, 3:] @ R.T
        bound[12 * k + 10 : 12 * k + 12] = most[k], -weights.least
    return cone, bound
