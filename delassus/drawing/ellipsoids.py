"""Effective masses of a robot at its contacts, as ellipsoids, and couplings between contacts.

A force f at one contact accelerates the contact by G f, along an eigenvector of its block by
f/m: m is the effective mass (O. Khatib, "A unified approach for motion and force control of
robot manipulators", IEEE J. Robotics and Automation, 1987). Other contacts are free meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from delassus.errors import InputError
from delassus.model.spatial import Array

_HEAVY = 1e9
"""Effective mass [kg] above which a direction counts as immobile: rounding of singular blocks."""


@dataclass(frozen=True)
class EffectiveMass:
    """The effective masses of a contact, in the order of growing mass.

    Attributes
    ----------
    masses : (3,) along the directions [kg]; infinite for immobile directions.
    directions : (3, 3), columns of a right-handed frame in the axes of the block.
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
        """Directions (3, 3) times √m, zero for immobile directions: G^-½ up to a rotation."""
        roots: Array = self.directions * np.sqrt(np.where(self.masses < np.inf, self.masses, 0.0))
        return roots


@dataclass(frozen=True)
class Lengths:
    """Scale of drawn effective masses.

    Attributes
    ----------
    scale : length of a semi-axis per mass [m/kg].
    longest : longest semi-axis, for all larger masses [m]; the shortest is at least a hundredth,
        so as to be visible.
    """

    scale: float
    longest: float

    @classmethod
    def fitting(cls, size: float, masses: Sequence[EffectiveMass]) -> Lengths:
        """Return lengths with which ellipsoids are visible and do not hide the robot.

        The semi-axis of the lightest direction is a sixteenth of the robot, the longest at most a
        sixth; both are round numbers, which captions show.

        Parameters
        ----------
        size : size of the robot [m].
        """
        lightest = min((m for mass in masses for m in mass.masses if m < np.inf), default=1.0)
        return cls(float(f"{size / 16.0 / lightest:.2g}"), float(f"{size / 6.0:.2g}"))

    def times(self, factor: float) -> Lengths:
        """Return the lengths times a factor."""
        return Lengths(factor * self.scale, factor * self.longest)

    def semi_axes(self, mass: EffectiveMass) -> Array:
        """Return the semi-axes (3,) of an ellipsoid [m]."""
        return np.clip(self.scale * mass.masses, 0.01 * self.longest, self.longest)

    def cuts(self, masses: Sequence[EffectiveMass]) -> bool:
        """Return whether a semi-axis is cut at :attr:`longest`."""
        return any(self.scale * mass.masses[-1] > self.longest for mass in masses)


def effective_masses(blocks: Array) -> Array:
    """Return the effective masses (N, 3) of many linear blocks (N, 3, 3) [kg], lightest first."""
    inverse = np.linalg.eigvalsh(0.5 * (blocks + np.swapaxes(blocks, 1, 2)))
    return _inverted(np.asarray(inverse[:, ::-1], dtype=np.float64))


def _inverted(inverse: Array) -> Array:
    """Return masses from inverse masses; infinite for immobile directions."""
    masses = np.full(inverse.shape, np.inf)
    moves = inverse > 1.0 / _HEAVY
    masses[moves] = 1.0 / inverse[moves]
    return masses


def linear_blocks(
    G: Array, row_offsets: tuple[int, ...], kinds: tuple[str, ...]
) -> dict[int, slice]:
    """Return the linear rows of contacts with all three, by number of the contact.

    Contacts of kind ``"selection"`` may mix rows and are left out.
    """
    return {
        i: slice(first, first + 3)
        for i, (first, kind) in enumerate(zip(row_offsets, kinds, strict=False))
        if kind in ("point", "surface") and first + 3 <= len(G)
    }


def coupling(one: EffectiveMass, other: EffectiveMass, block: Array) -> float:
    """Return the coupling of the motions of two contacts, from 0 to 1.

    The coupling is the largest singular value of G₁₁^-½ G₁₂ G₂₂^-½: 1 where, for some direction, a
    force at one contact moves both contacts alike, 0 where the force does not move the other
    contact.

    Parameters
    ----------
    block : G₁₂ (3, 3), rows in the axes of `one` and columns in the axes of `other`.
    """
    shares: Array = one.roots.T @ block @ other.roots
    largest: float = np.linalg.svd(shares, compute_uv=False)[0]
    return min(float(largest), 1.0)
