"""Contact forces of one problem and of batches: status, residual, division, and derivative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from delassus.contact_forces import cones, division, iteration
from delassus.errors import listed
from delassus.model.spatial import Array

Law: TypeAlias = Literal["auto", "coulomb", "convex"]
LAW_NAMES: tuple[Law, ...] = ("coulomb", "convex")
"""Laws by their number in the iteration."""


class ForceStatus(IntEnum):
    """How far contact forces obey their law; from NOT_FINITE on there are none, and they are 0."""

    SOLVED = iteration.SOLVED
    """The residual is at most the tolerance."""
    INACCURATE = iteration.INACCURATE
    """The residual is at most 1e-6."""
    FAILED = iteration.FAILED
    """The residual is larger, and no contradiction was found: the budget did not do."""
    INFEASIBLE = iteration.INFEASIBLE
    """No forces obey the law; ``contradiction`` names contacts that contradict each other."""
    NOT_FINITE = iteration.NOT_FINITE
    """G, a0 or a velocity has NaN or infinite numbers, or a force exceeds the range of doubles."""
    REFUSED = iteration.REFUSED
    """An argument is out of its range; an error from Python, a status of C."""
    STRIKING = iteration.STRIKING
    """Contacts approach faster than ``strike_speed``: no finite force stops them.
    ``contradiction`` names them; ``contact_impulses`` computes the impact."""
    JAMMED = iteration.JAMMED
    """Contacts that slide press themselves on (Painlevé): the law has no forces, or is not known
    to have only one solution. ``contradiction`` names them."""


STATUSES = tuple(ForceStatus)
"""Statuses by their number; calling an enumeration takes longer."""
_STARTS = (ForceStatus.SOLVED, ForceStatus.INACCURATE)
"""Statuses of forces that begin the next problem."""
_NAMING = (ForceStatus.INFEASIBLE, ForceStatus.STRIKING, ForceStatus.JAMMED)
"""Statuses that name contacts."""


@dataclass(frozen=True, slots=True)
class Division:
    """The division of forces among redundant contacts, one of many that obey the law.

    Attributes
    ----------
    contacts : indices of the contacts whose forces could be divided otherwise.
    rank, rows : number of rows of forces that push, and their rank.
    equal : whether the division is that of equal compliance; else the contacts' accelerations
        contradict each other, as those of points of a body that turns, and the division is that
        of the interior point.
    """

    contacts: tuple[int, ...]
    rank: int
    rows: int
    equal: bool


@dataclass(slots=True, eq=False, repr=False)
class ContactForces:
    """Forces of one problem; valid where the status is SOLVED.

    The arrays are data of their own, and threads may share a result; that of a bound solver or of
    :meth:`ForceSolver.solve_in_place` is overwritten by the next call, and belongs to one thread.

    Attributes
    ----------
    forces : (n,), in the rows of G; N and N m.
    accelerations : (n,), G f + a0; of velocity-level problems, the velocities afterwards. NaN
        where there are no forces: from NOT_FINITE on.
    status : how far the forces obey the law.
    cone_forces : (k,), at the corners of surfaces, or along the edges of their wrench cones; a
        start for the next problem.
    cone_offsets : first row of ``cone_forces`` per contact, then k.
    record : numbers of sweeps, Newton steps and interior-point steps, residual, law, division,
        rank and rows; then (k,), 1 at rows of the contacts that ``contradiction`` or ``division``
        names, else 0. The properties read them.
    G, a0, v : (n, n), (n,), (n,), the problem, for :meth:`ForceSolver.derivative`.
    contacts : names of the contacts, of the forces of a Solution.
    """

    forces: Array
    accelerations: Array
    status: ForceStatus
    cone_forces: Array
    cone_offsets: tuple[int, ...]
    record: Array
    G: Array
    a0: Array
    v: Array
    contacts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return status, forces, law, residual and steps."""
        return (
            f"<ContactForces {self.status.name}, {self.law}, residual {self.residual:.1e} after "
            f"{sum(self.steps)} steps, forces {self.forces}>"
        )

    @property
    def residual(self) -> float:
        """How far the forces are from their law, in scaled rows, as a share of the norm of a0.

        The norm of penetration, friction and complementarity, an error of accelerations. The error
        of forces is up to some 1000 times larger where G is regular, and not bounded where G is
        singular. -1 where there are no forces: from NOT_FINITE on.
        """
        return float(self.record[cones.RESIDUAL])

    @property
    def law(self) -> Law:
        """Law that the forces obey, "coulomb" or "convex"."""
        return LAW_NAMES[int(self.record[cones.LAW])]

    @property
    def contradiction(self) -> tuple[int, ...]:
        """Indices of contacts: that contradict each other, strike or jam, as the status has it."""
        return self._marked() if self.status in _NAMING else ()

    @property
    def fault(self) -> str:
        """Why there are no forces, with the names of contacts; empty where none is named."""
        indices = self.contradiction
        names = [self.contacts[i] if self.contacts else str(i) for i in indices]
        many = len(names) > 1
        does = {
            ForceStatus.INFEASIBLE: "cannot be held",
            ForceStatus.STRIKING: "strike" if many else "strikes",
            ForceStatus.JAMMED: "slide and jam" if many else "slides and jams",
        }
        return f"{listed('contact', names)} {does[self.status]}" if names else ""

    @property
    def division(self) -> Division | None:
        """How redundant contacts share their forces; None where the forces are the only ones.

        The forces are the only ones where G is regular, and where the contacts that push are not
        redundant.
        """
        contacts = self._marked() if self.status in _STARTS else ()
        if not contacts:
            return None
        rank, rows = self.record[[cones.RANK, cones.ROWS]].astype(int).tolist()
        return Division(contacts, rank, rows, bool(self.record[cones.DIVISION] == division.EQUAL))

    def _marked(self) -> tuple[int, ...]:
        """Return the contacts whose rows are marked."""
        rows = np.flatnonzero(self.record[cones.INFO :])
        found = np.searchsorted(self.cone_offsets, rows, side="right") - 1
        return tuple(np.unique(found).tolist())

    @property
    def steps(self) -> tuple[int, int, int]:
        """Numbers of sweeps, Newton steps and interior-point steps."""
        sweeps, newton, interior = self.record[: cones.INTERIOR + 1].tolist()
        return int(sweeps), int(newton), int(interior)

    @property
    def is_start(self) -> bool:
        """Whether the forces can begin the next problem: those SOLVED or INACCURATE."""
        return self.status in _STARTS

    def copy(self) -> ContactForces:
        """Return forces with separate arrays, which no other computation changes."""
        # By position: keywords take as long as half of the machine code.
        return ContactForces(
            self.forces.copy(), self.accelerations.copy(), self.status, self.cone_forces.copy(),
            self.cone_offsets, self.record.copy(), self.G.copy(), self.a0.copy(), self.v.copy(),
            self.contacts,
        )  # fmt: skip

    def start(self, contacts: Sequence[str], offsets: Sequence[int]) -> Array:
        """Return forces to begin the next problem with: those of the contacts that go on.

        Forces that are neither SOLVED nor INACCURATE begin nothing: the result is 0.

        Parameters
        ----------
        contacts, offsets : names of the next problem's contacts, and first rows of their cones.
        """
        found = np.zeros(offsets[-1])
        if not self.is_start:
            return found
        for index, name in enumerate(contacts):
            if name in self.contacts:
                before = self.contacts.index(name)
                old = self.cone_forces[self.cone_offsets[before] : self.cone_offsets[before + 1]]
                found[offsets[index] : offsets[index + 1]] = old
        return found


@dataclass(frozen=True, eq=False)
class BatchContactForces:
    """Forces of N problems with the same contacts; valid where the status is SOLVED.

    The arrays are data of their own; threads may share a result.

    Attributes
    ----------
    forces, accelerations : (N, n), in the rows of G, like those of :class:`ContactForces`.
    residual : (N,).
    status : (N,) int64, a :class:`ForceStatus` per problem.
    law : (N,) "coulomb" or "convex".
    steps : (N, 3) numbers of sweeps, Newton steps and interior-point steps.
    cone_forces : (N, k), at the corners of surfaces; a start for the next problems.
    redundant : (N, contacts), whether the force of a contact could be divided otherwise.
    contacts : names of the contacts, of the forces of a BatchSolution.
    """

    forces: Array
    accelerations: Array
    residual: Array
    status: NDArray[np.int64]
    law: NDArray[np.str_]
    steps: NDArray[np.int64]
    cone_forces: Array = field(repr=False)
    redundant: NDArray[np.bool_]
    contacts: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ForceDerivative:
    """Derivative of contact forces.

    Attributes
    ----------
    H : (n, n); df = H (da0 + dG f + dR f). The gradient of a loss is dL/da0 = H' dL/df,
        dL/dG = (H' dL/df) f'.
    margin : distance to the nearest change of a contact between open, held and sliding, relative
        to the largest force or acceleration. At 0 there is no derivative.
    """

    H: Array
    margin: float
