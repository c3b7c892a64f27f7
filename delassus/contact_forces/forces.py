"""Contact forces under friction: problems on any Delassus matrix, and what comes of them.

The iteration is in :mod:`~delassus.contact_forces.iteration`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, TypedDict, get_args

import numpy as np
from numpy.typing import ArrayLike

from delassus.arguments import count as whole
from delassus.arguments import names, number, numbers, sized
from delassus.contact_forces import cones, iteration, motion
from delassus.contact_forces.derivative import derivative
from delassus.contact_forces.machine_code import BUDGET, SPEED, TOLERANCE, machine_code
from delassus.contact_forces.results import (
    LAW_NAMES,
    STATUSES,
    BatchContactForces,
    ContactForces,
    ForceDerivative,
    ForceStatus,
    Law,
)
from delassus.contact_forces.rows import ROWS, ConeRows, SurfaceCone, kinds_of, per_contact
from delassus.errors import InputError
from delassus.model.spatial import Array
from delassus.recent import Recent

if TYPE_CHECKING:
    from typing_extensions import Unpack

_LAWS: dict[Law, int] = {
    "coulomb": cones.COULOMB, "convex": cones.CONVEX, "auto": cones.COULOMB,
}  # fmt: skip


class ForceOptions(TypedDict, total=False):
    """Arguments by name that all solvers of contact forces have in common.

    Attributes
    ----------
    dimensions : length and width of surfaces, m, of all or of each contact.
    normals : per contact the direction in which it pushes, name of an axis ("x", "-z", …) or
        vector (3,); z for all but points.
    law : "coulomb", the default: friction opposes sliding, and sliding contacts do not lift off.
        "convex": its convex neighbour, with u_z = μ norm(u_T) where a contact slides. "auto" is
        another name of "coulomb", of parameter files that have it.
    compliance : R of all contacts, or one for each: m/s² per N, in u = (G + R) f + a0; default 0.
    surface_cone : "corners", the default: exact friction cones at the four corners of a surface.
        "wrench": the wrench cone of 16 faces, of inner pyramids of four sides at the corners; a
        convex problem without sliding laws, whose number of steps varies less.
    tolerance : residual at which forces are SOLVED, above 0 and up to 0.01; default 1e-10.
    budget : largest number of steps, 0 or more; default 240.
    slip_speed, leave_speed, strike_speed : velocity along the surface above which a contact
        slides, and normal velocities above which a contact leaves and strikes; default 0.1 m/s
        each. Slower contacts are at rest: their velocity is noise of sensors.
    """

    dimensions: ArrayLike | None
    normals: Sequence[str | ArrayLike] | None
    law: Law
    compliance: ArrayLike
    surface_cone: SurfaceCone
    tolerance: float
    budget: int
    slip_speed: float
    leave_speed: float
    strike_speed: float


class SolverOptions(ForceOptions, total=False):
    """Arguments by name of solvers on any matrices, at the level of accelerations or velocities.

    Attributes
    ----------
    restitution : at the velocity level, e of all contacts, or one for each, from 0 to 1; default
        0. A contact that approaches and is hit leaves with -e times its normal velocity.
    """

    restitution: ArrayLike


class ForceSolver:
    """Contact forces of problems with the same contacts, without allocation but for the result.

    Thread-safe but for :meth:`solve_in_place`, whose result the next call of any thread
    overwrites: calls of :meth:`solve` wait for each other, those of :meth:`solve_batch` do not.

    Row i of a point is x, y, z in turn: z is the normal and pushes, f_z >= 0, unless `normals`
    name another. A surface has force and torque at its middle, six rows; its law holds at its four
    corners.

    Parameters
    ----------
    kinds : per contact "point", "surface", "unilateral" (one row, f >= 0) or "bilateral" (one row
        that holds: a weld, a loop, a task).
    friction : coefficient μ, 0 to 1e4, of all contacts, or one for each.
    dimensions, normals, law, compliance, restitution, surface_cone, tolerance, budget : those of
        :class:`SolverOptions`.
    slip_speed, leave_speed, strike_speed : those of :class:`SolverOptions`, m/s.

    Attributes
    ----------
    rows : the rows of the cones.
    result : the result of :meth:`solve_in_place`.

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
        normals: Sequence[str | ArrayLike] | None = None,
        law: Law = "coulomb",
        compliance: ArrayLike = 0.0,
        restitution: ArrayLike = 0.0,
        surface_cone: SurfaceCone = "corners",
        tolerance: float = TOLERANCE,
        budget: int = BUDGET,
        slip_speed: float = SPEED,
        leave_speed: float = SPEED,
        strike_speed: float = SPEED,
    ) -> None:
        self.kinds = names("kinds", kinds)
        if not isinstance(law, str) or law not in _LAWS:
            raise InputError(f"unknown law {law!r}; expected one of {', '.join(get_args(Law))}")
        self.law: Law = law
        self.rows = rows = ConeRows.of(self.kinds, friction, dimensions, normals, surface_cone)
        self.tolerance = number("tolerance", tolerance)
        if not 0.0 < self.tolerance <= iteration.MOST_TOLERANCE:
            raise InputError(
                f"tolerance is {self.tolerance:g}; expected a residual above 0 and up to "
                f"{iteration.MOST_TOLERANCE:g}: a larger one says nothing about the forces"
            )
        self.budget = whole("budget", budget, least=0)
        n, k = rows.size, rows.count
        self._soft = self._within("compliance", compliance, sys.float_info.max)
        self._bounce = self._within("restitution", restitution, 1.0)
        self._corners: Array | None = None
        if surface_cone == "wrench":
            self._check_wrenches()
            self._corners = ConeRows.of(self.kinds, friction, dimensions, normals).matrix()
        self._compliance = rows.spread(self._soft)
        speeds = {
            "slip_speed": slip_speed, "leave_speed": leave_speed, "strike_speed": strike_speed,
        }  # fmt: skip
        self._speeds = np.array([number(*each) for each in speeds.items()])
        for name, speed in zip(speeds, self._speeds, strict=True):
            if not speed >= 0.0:
                raise InputError(f"{name} is {speed:g}; expected a velocity of 0 or more, m/s")
        known = (
            np.array([self.tolerance]), self._speeds, rows.friction, self._bounce[rows.owner],
            rows.weights, self._compliance,
        )  # fmt: skip
        start = sum(part.size for part in known)
        header = (n, k, len(rows.cones), _LAWS[law], self.budget, start)
        self._whole = np.concatenate([header, rows.cones, rows.starts, rows.columns])
        sizes = (n * n, n, n, k, n, n, cones.INFO + k, iteration.work_size(k, n))
        self._values = np.concatenate([*known, np.zeros(sum(sizes))])
        (*_, G, self._a0, self._v, self._f, forces, accelerations, record, _) = np.split(
            self._values, np.cumsum([*(part.size for part in known), *sizes])[:-1]
        )
        self._G = G.reshape(n, n)
        # As of a problem that is NOT_FINITE.
        accelerations.fill(np.nan)
        record[cones.RESIDUAL] = -1.0
        self.result = ContactForces(
            forces, accelerations, ForceStatus.NOT_FINITE, self._f, rows.offsets, record,
            self._G, self._a0, self._v,
        )  # fmt: skip
        self._lock = threading.Lock()
        self._call = machine_code().calls["solve_block"]
        self._blocks = self._whole.ctypes.data, self._values.ctypes.data

    def solve(
        self,
        G: ArrayLike,
        a0: ArrayLike,
        start: ArrayLike | None = None,
        velocities: ArrayLike | None = None,
    ) -> ContactForces:
        """Return the forces of one problem.

        Parameters
        ----------
        G : (n, n), 1/kg for rows of forces.
        a0 : (n,) accelerations of the contacts without contact forces; at the velocity level,
            velocities without impulses.
        start : (k,) ``cone_forces`` of a problem nearby; by default 0.
        velocities : (n,) J ẏ of the contacts, which decide whether they slide, leave or strike; by
            default 0, contacts at rest.

        Raises
        ------
        InputError
            If a shape is wrong, or contacts have velocities and restitution or a wrench cone.
        """
        matrix, vector = numbers("G", G), numbers("a0", a0)
        if matrix.shape != self._G.shape or vector.shape != self._a0.shape:
            n = self.rows.size
            raise InputError(
                f"G has shape {matrix.shape} and a0 {vector.shape}; expected ({n}, {n}) and "
                f"({n},), {self._whose}"
            )
        if start is not None:
            start = self._start(start)
        if velocities is not None:
            velocities = sized("velocities", velocities, len(vector), self._whose, InputError)
            self._check_moving(velocities)
        with self._lock:
            return self.solve_in_place(matrix, vector, start, velocities).copy()

    def solve_in_place(
        self, G: Array, a0: Array, start: Array | None = None, velocities: Array | None = None
    ) -> ContactForces:
        """Return the forces of one problem without a new array: the next call overwrites them.

        Parameters
        ----------
        G, a0, start, velocities : arrays like those of :meth:`solve`; they are not checked, and
            ``start`` may be the ``cone_forces`` of the last result.
        """
        self._G[...] = G
        self._a0[...] = a0
        self._v[...] = 0.0 if velocities is None else velocities
        if start is None:
            self._f.fill(0.0)
        elif start is not self._f:
            self._f[...] = start
        found = self.result
        found.status = STATUSES[self._call(*self._blocks)]
        if self._corners is not None and velocities is not None and self._moves(velocities):
            found.status = ForceStatus.REFUSED
            found.forces[...], found.cone_forces[...], found.accelerations[...] = 0.0, 0.0, np.nan
            found.record[cones.RESIDUAL] = -1.0
        return found

    def solve_batch(
        self,
        G: ArrayLike,
        a0: ArrayLike,
        start: ArrayLike | None = None,
        velocities: ArrayLike | None = None,
    ) -> BatchContactForces:
        """Return the forces of N problems, with the bits of N calls of :meth:`solve`.

        The loop over the problems is machine code, and the interpreter's lock is released.

        Parameters
        ----------
        G, a0, start, velocities : (N, n, n), (N, n), (N, k) or one start (k,) for all, (N, n),
            like those of :meth:`solve`.

        Raises
        ------
        InputError
            If a shape is wrong, or contacts have velocities and restitution or a wrench cone.
        """
        n, k = self.rows.size, self.rows.count
        matrices, vectors = numbers("G", G), numbers("a0", a0)
        count = len(vectors) if vectors.ndim else 0
        if matrices.shape != (count, n, n) or vectors.shape != (count, n):
            raise InputError(
                f"G has shape {matrices.shape} and a0 {vectors.shape}; expected (N, {n}, {n}) and "
                f"(N, {n}), {self._whose}"
            )
        first = np.zeros(k) if start is None else numbers("start", start)
        if first.shape not in ((k,), (count, k)):
            raise InputError(
                f"start has shape {first.shape}; expected ({count}, {k}) or ({k},), "
                "the cone_forces of the same contacts"
            )
        v = np.zeros((count, n))
        if velocities is not None:
            v = np.ascontiguousarray(numbers("velocities", velocities))
            if v.shape != vectors.shape:
                raise InputError(f"velocities have shape {v.shape}; expected {vectors.shape}")
            self._check_moving(v)
        f = np.array(np.broadcast_to(first, (count, k)), order="C")
        forces, accelerations = np.empty((count, n)), np.empty((count, n))
        rays, infos = np.empty((count, k)), np.empty((count, cones.INFO))
        status = np.empty(count, np.int64)
        matrices, vectors = np.ascontiguousarray(matrices), np.ascontiguousarray(vectors)
        arrays = (matrices, vectors, v, f, forces, accelerations, rays, infos, status)
        # Another thread may write to the work area of this solver.
        blocks = self._whole, self._values.copy()
        machine_code().calls["solve_batch"](
            count, *(array.ctypes.data for array in (*blocks, *arrays))
        )
        marked = (rays != 0.0) & (status <= ForceStatus.INACCURATE)[:, np.newaxis]
        return BatchContactForces(
            forces=forces,
            accelerations=accelerations,
            residual=infos[:, cones.RESIDUAL].copy(),
            status=status,
            law=np.array(LAW_NAMES)[infos[:, cones.LAW].astype(int)],
            steps=infos[:, : cones.INTERIOR + 1].astype(int),
            cone_forces=f,
            redundant=np.logical_or.reduceat(marked, self.rows.offsets[:-1], axis=1),
        )

    @property
    def _whose(self) -> str:
        return f"the rows of {', '.join(f'{ROWS[kind]} ({kind})' for kind in self.kinds)}"

    def _start(self, start: ArrayLike) -> Array:
        whose = "the cone_forces of the same contacts"
        return sized("start", start, self.rows.count, whose, InputError)

    def _within(self, what: str, values: ArrayLike, most: float) -> Array:
        found = per_contact(what, values, len(self.kinds))
        if not ((found >= 0.0) & (found <= most)).all():
            upper = "or more, but finite" if most > 1.0 else f"to {most:g}"
            raise InputError(f"{what} is {np.asarray(values)}; expected numbers of 0 {upper}")
        return found

    def _check_wrenches(self) -> None:
        for c, kind in enumerate(self.kinds):
            if kind == "surface" and (self._soft[c] > 0.0 or self._bounce[c] > 0.0):
                what = "compliance" if self._soft[c] > 0.0 else "restitution"
                raise InputError(
                    f"contact {c} is a surface with {what}, which acts at its corners; expected "
                    f"surface_cone 'corners', or {what} 0"
                )

    def _check_moving(self, velocities: Array) -> None:
        if self._bounce.any():
            raise InputError(
                "velocities decide the law of accelerations, and restitution is a law of "
                "velocities; expected velocities as a0, or restitution 0"
            )
        if self._moves(velocities):
            raise InputError(
                "a surface moves, and surface_cone 'wrench' is the law of surfaces at rest; "
                "expected 'corners', which slide or lift off one by one"
            )

    def _moves(self, velocities: Array) -> bool:
        """Return whether a surface with a wrench cone is not at rest."""
        if self._corners is None:
            return False
        return bool((np.abs(velocities @ self._corners) > self._speeds.min()).any())

    def _motion(self, v: Array) -> Array:
        """Return how each cone moves at velocities v (n,), (cones, 3)."""
        rows = self.rows
        found, marks = np.zeros((len(rows.cones), motion.MOTION)), np.zeros(rows.count)
        slip, leave, strike = self._speeds.tolist()
        motion.find_motion(
            len(rows.cones), rows.cones, rows.starts, rows.columns, rows.weights, v, slip,
            leave, strike, found.ravel(), marks,
        )  # fmt: skip
        return found

    def derivative(self, found: ContactForces) -> ForceDerivative:
        """Return the derivative of the forces of a problem, which may be any that was solved.

        Formula by differentiation of the conditions at the rows that touch, which Newton's method
        solves. Contacts with surfaces have no derivative of their corners' forces; that of their
        wrenches exists.

        Parameters
        ----------
        found : its result by this solver, SOLVED.

        Raises
        ------
        InputError
            If the result is not SOLVED or of another solver, or a contact has restitution.
        """
        # All results of a solver share one tuple.
        if found.cone_offsets is not self.result.cone_offsets:
            raise InputError("forces are of another solver; expected a result of this one")
        if found.status != ForceStatus.SOLVED:
            raise InputError(f"forces are {found.status.name}; their derivative needs SOLVED ones")
        if self._bounce.any():
            raise InputError("derivatives of impulses with restitution are not known; expected 0")
        W = self.rows.matrix()
        H, margin = derivative(
            self.rows, W.T @ found.G @ W + np.diag(self._compliance), W.T @ found.a0,
            found.cone_forces, found.law, self._motion(found.v),
        )  # fmt: skip
        return ForceDerivative(W @ H @ W.T, margin)


def solve_contacts(
    G: ArrayLike,
    a0: ArrayLike,
    *,
    friction: ArrayLike,
    kinds: str | Sequence[str] = "point",
    start: ArrayLike | None = None,
    velocities: ArrayLike | None = None,
    **options: Unpack[SolverOptions],
) -> ContactForces:
    """Return the contact forces f with u = (G + R) f + a0 in their friction cones.

    :class:`ForceSolver` describes the parameters, and is faster for several problems with the
    same contacts.

    Parameters
    ----------
    kinds : of all contacts, or per contact.
    options : arguments by name, those of :class:`SolverOptions`.

    Raises
    ------
    InputError
        Names the argument, what was expected and what exists.
    """
    return solver_for(kinds_of(kinds, a0), friction, options).solve(G, a0, start, velocities)


def solve_contacts_batch(
    G: ArrayLike,
    a0: ArrayLike,
    *,
    friction: ArrayLike,
    kinds: str | Sequence[str] = "point",
    start: ArrayLike | None = None,
    velocities: ArrayLike | None = None,
    **options: Unpack[SolverOptions],
) -> BatchContactForces:
    """Return the contact forces of N problems with the same contacts.

    Parameters are those of :func:`solve_contacts`, with G (N, n, n), a0 and velocities (N, n), and
    start (N, k).

    Raises
    ------
    InputError
        Names the argument, what was expected and what exists.
    """
    return solver_for(kinds_of(kinds, a0), friction, options).solve_batch(G, a0, start, velocities)


def solver_for(kinds: Sequence[str], friction: ArrayLike, options: SolverOptions) -> ForceSolver:
    """Return this thread's solver for such contacts; parameters are those of ForceSolver."""
    values = {"friction": friction, **options}
    key = (tuple(kinds), *((name, _exact(name, values[name])) for name in sorted(values)))
    solver = _solvers.kept.get(key)
    if solver is None:
        solver = ForceSolver(kinds, friction, **options)
        _solvers.kept.put(key, solver)
    return solver


def _exact(name: str, value: object) -> Hashable:
    """Return an argument as part of a key: text and single numbers, or the bytes of an array."""
    if value is None or isinstance(value, (str, int, float)):
        return type(value), value
    if name == "normals" and isinstance(value, Iterable):
        return tuple(_exact("normal", normal) for normal in value)
    array = numbers(name, value)
    return array.shape, array.tobytes()


class _Solvers(threading.local):
    def __init__(self) -> None:
        self.kept: Recent[Hashable, ForceSolver] = Recent(64)
        """Solvers of this thread; each has buffers of some kilobytes."""


_solvers = _Solvers()
