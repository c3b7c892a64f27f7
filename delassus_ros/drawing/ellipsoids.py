"""Effective masses of a robot at its contacts, as ellipsoids, and which contacts move together.

A force f at one contact alone makes it accelerate by G f, along an eigenvector of its block by
f/m: m is the effective mass there (O. Khatib, "A unified approach for motion and force control of
robot manipulators", IEEE J. Robotics and Automation, 1987). Other contacts are free meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from delassus_ros.errors import InputError
from delassus_ros.model.spatial import Array

SINGULAR = 1e14
"""A condition number from which on it says nothing but that there is none."""
_HEAVY = 1e9
"""Effective mass [kg] above which nothing moves: rounding has that of a singular direction."""


@dataclass(frozen=True)
class EffectiveMass:
    """The effective masses of a contact, in the order of growing mass.

    Attributes
    ----------
    masses : (3,) along the directions [kg]; infinite where nothing moves.
    directions : (3, 3), as columns, a right-handed frame in the axes of the block.
    """

    masses: Array
    directions: Array

    @classmethod
    def of(cls, block: Array) -> EffectiveMass:
        """Return the effective masses of a contact's linear block (3, 3) of G [1/kg].

        Raises
        ------
        InputError
            If an entry is NaN or infinite.
        """
        if not np.isfinite(block).all():
            raise InputError("the matrix of a contact has an entry that is not finite")
        inverse, directions = np.linalg.eigh(0.5 * (block + block.T))
        # Ascending masses are descending eigenvalues.
        inverse, directions = inverse[::-1], directions[:, ::-1].copy()
        directions[:, 2] *= np.sign(np.linalg.det(directions))
        return cls(_inverted(inverse), directions)

    @property
    def roots(self) -> Array:
        """The directions (3, 3) times √m, zero where nothing moves: G^-½, but turned."""
        roots: Array = self.directions * np.sqrt(np.where(self.masses < np.inf, self.masses, 0.0))
        return roots

    def semi_axes(self, scale: float, longest: float) -> Array:
        """Return the semi-axes (3,) [m] of its ellipsoid.

        Parameters
        ----------
        scale : length per mass [m/kg].
        longest : of any of them [m]; also the shortest is a hundredth of it, so as to be seen.
        """
        return np.clip(scale * self.masses, 0.01 * longest, longest)


@dataclass(frozen=True)
class Lengths:
    """How effective masses are drawn.

    Attributes
    ----------
    scale : length of a semi-axis per mass [m/kg].
    longest : semi-axis of what is heavier [m].
    """

    scale: float
    longest: float

    @classmethod
    def fitting(cls, size: float, masses: Sequence[EffectiveMass]) -> Lengths:
        """Return lengths by which ellipsoids are seen on a robot and do not hide it.

        The lightest direction of all is a twelfth of the robot, the heaviest at most a quarter;
        round numbers, which are said beside the picture.

        Parameters
        ----------
        size : of the robot [m].
        """
        lightest = min((m for each in masses for m in each.masses if m < np.inf), default=1.0)
        return cls(float(f"{size / 12.0 / lightest:.2g}"), float(f"{size / 4.0:.2g}"))

    def cuts(self, masses: Sequence[EffectiveMass]) -> bool:
        """Whether an axis would be longer than the longest."""
        return any(self.scale * each.masses[-1] > self.longest for each in masses)


def effective_masses(blocks: Array) -> Array:
    """Return the effective masses (N, 3) of many linear blocks (N, 3, 3) [kg], lightest first."""
    inverse = np.linalg.eigvalsh(0.5 * (blocks + np.swapaxes(blocks, 1, 2)))
    return _inverted(np.asarray(inverse[:, ::-1], dtype=np.float64))


def _inverted(inverse: Array) -> Array:
    """Return masses; infinite where nothing moves."""
    masses = np.full(inverse.shape, np.inf)
    moves = inverse > 1.0 / _HEAVY
    masses[moves] = 1.0 / inverse[moves]
    return masses


def linear_blocks(
    G: Array, row_offsets: tuple[int, ...], kinds: tuple[str, ...]
) -> dict[int, slice]:
    """Return the linear rows of each contact that has all three, by its number.

    Contacts of kind ``"selection"`` may mix rows and are left out.
    """
    return {
        i: slice(first, first + 3)
        for i, (first, kind) in enumerate(zip(row_offsets, kinds, strict=False))
        if kind in ("point", "surface") and first + 3 <= len(G)
    }


def coupling(one: EffectiveMass, other: EffectiveMass, block: Array) -> float:
    """Return how much two contacts move with each other, from 0 to 1.

    That is the largest singular value of G₁₁^-½ G₁₂ G₂₂^-½: 1 where a force at one moves the other
    in some direction as it moves itself, 0 where it does not move it at all.

    Parameters
    ----------
    block : G₁₂ (3, 3), rows of `one` and columns of `other`, each along the axes of theirs.
    """
    shares: Array = one.roots.T @ block @ other.roots
    largest: float = np.linalg.svd(shares, compute_uv=False)[0]
    return min(float(largest), 1.0)
