"""Contact forces under friction: problems on any Delassus matrix, and what comes of them.

The iteration is in :mod:`~delassus_ros.contact_forces.iteration`.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.arguments import number, numbers, sized, whole
from delassus_ros.compiler.loops import CompiledLoops, compiled_loops
from delassus_ros.contact_forces import cones, elimination, interior, iteration, newton, sweeps
from delassus_ros.contact_forces.derivative import derivative
from delassus_ros.contact_forces.rows import ROWS, ConeRows, Kind
from delassus_ros.errors import InputError
from delassus_ros.model.spatial import Array

Law: TypeAlias = Literal["auto", "coulomb", "convex"]
_LAWS: dict[Law, int] = {
    "coulomb": cones.COULOMB, "convex": cones.CONVEX, "auto": cones.AUTO,
}  # fmt: skip
_LAW_NAMES: dict[int, Law] = {number: name for name, number in _LAWS.items()}
TOLERANCE = 1e-10
"""Residual at which forces are SOLVED, as a share of the norm of a0."""
LEAST_COMPLIANCE = 1e-3
"""Smallest compliance under Coulomb's law, as a share of the mean diagonal of the contact's block.
Smaller ones make the problem harder than none does."""
BUDGET = 172
"""Largest number of steps by construction: 12 sweeps and Newton steps, 100 steps of the interior
point and 10 times 6 steps of Newton between them."""
_MODULES = (cones, elimination, sweeps, newton, interior, iteration)
_TYPES = [
    *[ctypes.c_int64] * 5, ctypes.c_double, *[ctypes.c_void_p] * 12,
]  # fmt: skip


class ForceStatus(IntEnum):
    """How far contact forces obey their law."""

    SOLVED = iteration.SOLVED
    """The residual is at most the tolerance."""
    INACCURATE = iteration.INACCURATE
    """The residual is at most 1e-6."""
    FAILED = iteration.FAILED
    """The residual is larger, and no contradiction was found: the budget did not do."""
    INFEASIBLE = iteration.INFEASIBLE
    """No forces obey the law; ``contradiction`` names contacts that contradict each other."""
    NOT_FINITE = iteration.NOT_FINITE
    """G or a0 has NaN or infinite numbers; forces are zero."""


@dataclass(frozen=True, eq=False)
class ContactForces:
    """Forces of one problem; valid where the status is SOLVED.

    Attributes
    ----------
    forces : (n,), in the rows of G; N and N m.
    accelerations : (n,), G f + a0; of velocity-level problems, the velocities afterwards. NaN
        where NOT_FINITE.
    residual : norm of the natural map over that of a0, of scaled rows: an error of accelerations.
        The error of forces is up to some 1000 times larger where G is regular, and not bounded
        where G is singular.
    law : that the forces obey, "coulomb" or "convex".
    steps : number of sweeps, Newton steps and interior-point steps.
    contradiction : indices of the contacts that contradict each other, where INFEASIBLE.
    cone_forces : (k,), at the corners of surfaces; a start for the next problem.
    cone_offsets : first row of ``cone_forces`` per contact, then k.
    contacts : names of the contacts, of the forces of a Solution.
    """

    forces: Array
    accelerations: Array
    residual: float
    status: ForceStatus
    law: Law
    steps: tuple[int, int, int]
    contradiction: tuple[int, ...]
    cone_forces: Array = field(repr=False)
    cone_offsets: tuple[int, ...] = field(repr=False)
    contacts: tuple[str, ...] = ()

    def start(self, contacts: Sequence[str], offsets: Sequence[int]) -> Array:
        """Return forces to begin the next problem with: those of the contacts that go on.

        Parameters
        ----------
        contacts, offsets : names of the next problem's contacts, and first rows of their cones.
        """
        found = np.zeros(offsets[-1])
        for index, name in enumerate(contacts):
            if name in self.contacts:
                before = self.contacts.index(name)
                old = self.cone_forces[self.cone_offsets[before] : self.cone_offsets[before + 1]]
                found[offsets[index] : offsets[index + 1]] = old
        return found


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


class ForceSolver:
    """Contact forces of problems with the same contacts, without allocation but for the result.

    Row i of a point is x, y, z in turn: z is the normal and pushes, f_z >= 0. A surface has force
    and torque at its middle, six rows; its law holds at its four corners.

    Parameters
    ----------
    kinds : per contact "point", "surface", "unilateral" (one row, f >= 0) or "bilateral" (one row
        that holds: a weld, a loop, a task).
    friction : coefficient μ of all contacts, or one for each.
    dimensions : length and width of surfaces, m, of all or of each contact.
    law : "coulomb": friction opposes sliding, and sliding contacts do not lift off. "convex": its
        convex neighbour, with u_z = μ norm(u_T) where a contact slides; unique accelerations even
        where contacts are redundant. "auto": Coulomb's law where G is regular, else the convex
        law; the result says which.
    compliance : R of all contacts, or one for each: m/s² per N, in u = (G + R) f + a0.
    tolerance : residual at which forces are SOLVED.
    budget : largest number of steps.

    Raises
    ------
    InputError
        Names the argument, what was expected and what exists.
    """

    def __init__(
        self,
        kinds: Sequence[str],
        friction: ArrayLike,
        *,
        dimensions: ArrayLike | None = None,
        law: Law = "auto",
        compliance: ArrayLike = 0.0,
        tolerance: float = TOLERANCE,
        budget: int = BUDGET,
    ) -> None:
        self.kinds = tuple(kinds)
        if law not in _LAWS:
            raise InputError(f"unknown law {law!r}; expected one of {', '.join(get_args(Law))}")
        self.law: Law = law
        self.rows = rows = ConeRows.of(self.kinds, friction, dimensions)
        self.tolerance = number("tolerance", tolerance)
        self.budget = whole("budget", budget, "a number of steps")
        n, k = rows.size, rows.count
        soft = numbers("compliance", compliance)
        if soft.shape not in ((), (len(self.kinds),)) or not (soft >= 0).all():
            raise InputError(
                f"compliance is {soft}; expected a number of 0 or more, or one per contact, "
                f"{len(self.kinds)}"
            )
        self._soft = np.array(np.broadcast_to(soft, (len(self.kinds),)))
        self._compliance = rows.spread(self._soft)
        self._G, self._a0 = np.zeros((n, n)), np.zeros(n)
        self._f, self._ray, self._info = np.zeros(k), np.zeros(k), np.zeros(5)
        self._work = np.zeros(iteration.work_size(k, n))
        self._W, self._offsets = rows.matrix(), rows.offsets
        arrays = (
            rows.cones, rows.friction, rows.starts, rows.columns, rows.weights, self._G, self._a0,
            self._compliance, self._f, self._ray, self._info, self._work,
        )  # fmt: skip
        self._arguments = (
            n, k, len(rows.cones), _LAWS[law], self.budget, self.tolerance,
            *(array.ctypes.data for array in arrays),
        )  # fmt: skip
        self._call = _machine_code().call

    def solve(self, G: ArrayLike, a0: ArrayLike, start: ArrayLike | None = None) -> ContactForces:
        """Return the forces of one problem.

        Parameters
        ----------
        G : (n, n), 1/kg for rows of forces.
        a0 : (n,) accelerations of the contacts without contact forces; at the velocity level,
            velocities without impulses.
        start : (k,) ``cone_forces`` of a problem nearby; by default 0.

        Raises
        ------
        InputError
            If a shape is wrong, or a compliance is too small for Coulomb's law.
        """
        n = self.rows.size
        matrix, vector = numbers("G", G), numbers("a0", a0)
        if matrix.shape != (n, n) or vector.shape != (n,):
            raise InputError(
                f"G has shape {matrix.shape} and a0 {vector.shape}; expected ({n}, {n}) and "
                f"({n},), the rows of {', '.join(f'{ROWS[kind]} ({kind})' for kind in self.kinds)}"
            )
        self._G[:] = matrix.T
        self._a0[:] = vector
        self._f[:] = 0.0 if start is None else self._start(start)
        if self.law != "convex" and self._compliance.any():
            self._check_compliance(matrix)
        status = ForceStatus(self._call(*self._arguments))
        finite = status != ForceStatus.NOT_FINITE
        forces = self._W @ self._f
        *steps, residual, law = self._info.tolist()
        return ContactForces(
            forces=forces,
            accelerations=matrix @ forces + vector if finite else np.full(n, np.nan),
            residual=residual,
            status=status,
            law=_LAW_NAMES[int(law)],
            steps=(int(steps[0]), int(steps[1]), int(steps[2])),
            contradiction=self._contradiction() if status == ForceStatus.INFEASIBLE else (),
            cone_forces=self._f.copy(),
            cone_offsets=self._offsets,
        )

    def _start(self, start: ArrayLike) -> Array:
        whose = "the cone_forces of the same contacts"
        return sized("start", start, self.rows.count, whose, InputError)

    def _check_compliance(self, G: Array) -> None:
        at = 0
        for c, (kind, soft) in enumerate(zip(self.kinds, self._soft, strict=True)):
            linear = np.arange(at, at + min(ROWS[kind], 3))
            at += ROWS[kind]
            least = LEAST_COMPLIANCE * G[linear, linear].mean()
            if 0 < soft < least:
                raise InputError(
                    f"compliance of contact {c} is {soft:g}; expected 0 or at least {least:.3g}, "
                    f"{LEAST_COMPLIANCE:g} of the mean diagonal of its block: smaller ones make "
                    "Coulomb's law harder to solve; the convex law takes any"
                )

    def _contradiction(self) -> tuple[int, ...]:
        """Return the contacts along whose rows the certificate has forces."""
        size = np.abs(self._ray)
        per_row = np.repeat(self.rows.owner, np.maximum(self.rows.cones, 1))
        return tuple(np.unique(per_row[size > 1e-6 * size.max()]).tolist())

    def derivative(self, found: ContactForces) -> ForceDerivative:
        """Return the derivative of the forces of the last problem that was solved.

        Formula by differentiation of the conditions at the rows that touch, which Newton's method
        solves. Contacts with surfaces have no derivative of their corners' forces; that of their
        wrenches exists.

        Parameters
        ----------
        found : its result, SOLVED.

        Raises
        ------
        InputError
            If the result is not SOLVED.
        """
        if found.status != ForceStatus.SOLVED:
            raise InputError(f"forces are {found.status.name}; their derivative needs SOLVED ones")
        H, margin = derivative(
            self.rows, self._W.T @ self._G.T @ self._W + np.diag(self._compliance),
            self._W.T @ self._a0, found.cone_forces, found.law,
        )  # fmt: skip
        return ForceDerivative(self._W @ H @ self._W.T, margin)


def solve_contacts(
    G: ArrayLike,
    a0: ArrayLike,
    *,
    friction: ArrayLike,
    kinds: str | Sequence[str] = "point",
    dimensions: ArrayLike | None = None,
    law: Law = "auto",
    compliance: ArrayLike = 0.0,
    start: ArrayLike | None = None,
    tolerance: float = TOLERANCE,
    budget: int = BUDGET,
) -> ContactForces:
    """Return the contact forces f with u = (G + R) f + a0 in their friction cones.

    :class:`ForceSolver` describes the parameters, and is faster for several problems with the
    same contacts.

    Parameters
    ----------
    kinds : of all contacts, or per contact.

    Raises
    ------
    InputError
        Names the argument, what was expected and what exists.
    """
    if isinstance(kinds, str):
        if kinds not in ROWS:
            raise InputError(
                f"unknown kind {kinds!r}; expected one of {', '.join(get_args(Kind))}"
            )
        rows = len(numbers("a0", a0))
        if rows % ROWS[kinds]:
            raise InputError(
                f"a0 has {rows} rows; expected a multiple of {ROWS[kinds]}, the rows of a {kinds}"
            )
        kinds = [kinds] * (rows // ROWS[kinds])
    solver = solver_for(
        kinds, friction, dimensions=dimensions, law=law, compliance=compliance,
        tolerance=tolerance, budget=budget,
    )  # fmt: skip
    return solver.solve(G, a0, start)


def solver_for(kinds: Sequence[str], friction: ArrayLike, **options: Any) -> ForceSolver:
    """Return this thread's solver for such contacts; parameters are those of ForceSolver."""
    key = repr((kinds, np.asarray(friction).tolist(), options))
    solver = _solvers.kept.get(key)
    if solver is None:
        solver = ForceSolver(kinds, friction, **options)
        if len(_solvers.kept) >= _MOST_SOLVERS:
            _solvers.kept.clear()
        _solvers.kept[key] = solver
    return solver


class _Solvers(threading.local):
    def __init__(self) -> None:
        self.kept: dict[str, ForceSolver] = {}


_solvers = _Solvers()
_MOST_SOLVERS = 64
"""Solvers kept per thread; each has buffers of some kilobytes."""


@cache
def _machine_code() -> CompiledLoops:
    return compiled_loops(_MODULES, "solve", _TYPES, _sample)


def _sample(call: Callable[..., int], seed: int) -> bytes:
    """Return the result of a random problem of four points, as bytes."""
    random = np.random.default_rng(seed)
    J = random.normal(size=(12, 18))
    G, a0 = J @ J.T / 18, random.normal(size=12)
    G[:] = 0.5 * (G + G.T)
    n = k = 12
    f, ray, info = np.zeros(k), np.zeros(k), np.zeros(5)
    arrays: list[Any] = [
        np.full(4, cones.POINT, np.int64), np.full(4, 0.5), np.arange(k + 1), np.arange(k),
        np.ones(k), G, a0, np.zeros(k), f, ray, info, np.zeros(iteration.work_size(k, n)),
    ]  # fmt: skip
    status = call(n, k, 4, seed % 2, BUDGET, TOLERANCE, *(array.ctypes.data for array in arrays))
    return bytes([status]) + f.tobytes() + info.tobytes()
