"""Solutions: the matrix at one configuration, and quantities that controllers derive from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from delassus.arguments import names, number, numbers
from delassus.contact_forces.forces import ForceOptions, ForceSolver
from delassus.contact_forces.results import ContactForces
from delassus.contacts import row_scales
from delassus.errors import InputError, NumericalError, listed
from delassus.model.spatial import CHARACTERISTIC_LENGTH_M as LENGTH
from delassus.model.spatial import Array
from delassus.outputs import OutputArrays
from delassus.problem import Problem
from delassus.scalars.ports import Status
from delassus.solver import contact_space
from delassus.solver.contact_space import Impact
from delassus.solver.friction import accelerations_and_velocities, active_solver
from delassus.solver.structural_rank import Structure
from delassus.task_inertia import HeldOutputs

if TYPE_CHECKING:
    from typing_extensions import Unpack

_OK = Status.OK
_new = object.__new__


@dataclass(slots=True, eq=False, repr=False)
class Solution(OutputArrays):
    """The Delassus matrix of the active contacts; compared by identity.

    The arrays are data of their own, and threads may share a solution; that of a bound solver is
    overwritten by its next call, and belongs to its thread.

    Attributes
    ----------
    matrix : (k, k) G = J M⁻¹ Jᵀ [1/kg for linear rows]; filled with NaN unless status is OK.
    status : outcome of the computation.
    contacts : the active contacts, in the order of their rows.
    row_offsets : first row of each active contact, then k; len(contacts) + 1.
    algorithm : name of the algorithm.
    compute_time : wall time of the computation [s].
    secondary : the problem's outputs besides G by name, for the active contacts;
        also the properties ``J``, ``MinvJT``, ``M``, ``h``, ``v``, ``JdotV``, ``a0``, ``turning``
        and ``qdd0``.
    problem : the problem.
    structure : computes :meth:`structural_rank`.
    """

    matrix: Array
    status: Status
    contacts: tuple[str, ...]
    row_offsets: tuple[int, ...]
    algorithm: str
    compute_time: float
    secondary: dict[str, Array] = field(default_factory=dict)
    problem: Problem | None = None
    structure: Structure | None = None

    def __repr__(self) -> str:
        """Return a summary in one line: status, shape, contacts, algorithm and time."""
        k, _ = self.matrix.shape
        return (
            f"<Solution {self.status.name}, ({k}, {k}) for {listed('contact', self.contacts)}, by "
            f"{self.algorithm} in {1e6 * self.compute_time:.1f} us>"
        )

    def copy(self) -> Solution:
        """Return a solution with separate arrays, which no other computation changes."""
        # Without __init__, whose time equals that of the kernel of a quadruped.
        found = _new(Solution)
        found.matrix = self.matrix.copy()
        found.status = self.status
        found.contacts = self.contacts
        found.row_offsets = self.row_offsets
        found.algorithm = self.algorithm
        found.compute_time = self.compute_time
        found.secondary = self.secondary
        if self.secondary:
            found.secondary = {name: array.copy() for name, array in self.secondary.items()}
        found.problem = self.problem
        found.structure = self.structure
        return found

    def block(self, row: str, column: str) -> Array:
        """Return the block that maps forces at contact `column` to accelerations at `row`.

        Raises
        ------
        InputError
            For a contact that is not active.
        """
        return self.matrix[self._rows_of(row), self._rows_of(column)]

    def structural_rank(self) -> int:
        """Return the largest rank that the matrix of the active contacts has in any posture.

        The rank is below k where contacts are redundant, such as four points on one flat foot. It
        is computed at the first call from matrices at random configurations, within
        milliseconds; the result is k where no such matrix can be computed.
        """
        k = len(self.matrix)
        return k if self.structure is None else self.structure.rank(self.contacts)

    def task(self, task: Iterable[str] | str, given: Iterable[str] | str = ()) -> TaskSolution:
        """Return the quantities of a task while contacts are held.

        A task is a contact of the problem that touches nothing, such as a frame of kind "surface"
        on the pelvis. The result has the methods of this class, for the robot whose held contacts
        keep their acceleration at zero: its matrix is G_tt − G_tc G_cc⁺ G_ct, at the structural
        rank of G_cc, and ``inertia()``, ``jbar()``, ``null_space()``, ``bias_force()`` and ``a0``
        follow.

        Parameters
        ----------
        task : names of the active contacts that are the task.
        given : names of the active contacts that are held; none: the free robot.

        Raises
        ------
        NumericalError
            If the status is not OK.
        InputError
            If a contact is not active, is named twice, or is task and held.
        """
        tasks, held = task_names(task, given, self.contacts)
        return _task_solution(self, tasks, held)

    def inertia(self, damping: float = 0.0, characteristic_length: float = LENGTH) -> Array:
        """Return Λ = G⁻¹ (k, k), the apparent inertia at the active contacts [kg].

        Parameters
        ----------
        damping : directions weaker than this fraction of the strongest direction are raised to
            this fraction, all other directions are unchanged: Λ is bounded near singular postures.
            0: Λ grows there, at a singular posture up to some 10¹⁵ times its value in strong
            directions, the limit by rounding. Only directions in which contacts cannot move by
            structure are then left out, as in a pseudo-inverse: see :meth:`structural_rank`.
        characteristic_length : weight of angular against linear rows [m].

        Raises
        ------
        NumericalError
            If the status is not OK, or the result overflows.
        InputError
            If an argument is out of range.
        """
        if not 0.0 <= number("damping", damping) < 1.0:
            raise InputError(f"damping is {damping}; expected a fraction, 0 or more and below 1")
        scales = self.scales(characteristic_length)
        found = contact_space.inertia(self.valid(), scales, damping, self.structural_rank)
        return _finite("the inertia", found)

    def jbar(self, damping: float = 0.0, characteristic_length: float = LENGTH) -> Array:
        """Return J̄ = M⁻¹ Jᵀ Λ (n, k), the dynamically consistent inverse of J.

        Arguments and errors are those of :meth:`inertia`; needs the output ``MinvJT``.
        """
        Lambda = self.inertia(damping, characteristic_length)
        return _finite("the inverse", self.output("MinvJT") @ Lambda)

    def null_space(self, damping: float = 0.0, characteristic_length: float = LENGTH) -> Array:
        """Return N = 1 − J̄ J (n, n): the projection on motions without contact velocity.

        Torques are projected by the transpose, τ − Jᵀ J̄ᵀ τ = Nᵀ τ. Arguments and errors are those
        of :meth:`inertia`; needs the outputs ``J`` and ``MinvJT``.
        """
        J, inverse = self.output("J"), self.jbar(damping, characteristic_length)
        return _finite("the projector", np.eye(len(inverse)) - inverse @ J)

    def bias_force(self, damping: float = 0.0, characteristic_length: float = LENGTH) -> Array:
        """Return μ + p = J̄ᵀ h − Λ J̇ ẏ (k,): effects of velocity and gravity in operational space.

        At rest the result is p. Arguments and errors are those of :meth:`inertia`; needs the
        outputs ``MinvJT``, ``h`` and ``JdotV``.
        """
        response, h, JdotV = (self.output(name) for name in ("MinvJT", "h", "JdotV"))
        force = self.inertia(damping, characteristic_length) @ (response.T @ h - JdotV)
        return _finite("the bias force", force)

    def forces(
        self,
        acceleration: ArrayLike = 0.0,
        regularization: ArrayLike = 0.0,
        characteristic_length: float = LENGTH,
    ) -> Array:
        """Return the contact forces f (k,) that give contact accelerations a: (G + R) f + a⁰ = a.

        Constrained forward dynamics; :meth:`accelerations` returns the robot's accelerations under
        these forces. For redundant contacts the result are the smallest forces.

        Parameters
        ----------
        acceleration : a, (k,) or one number for all rows; 0 for contacts that are fixed on their
            links, −ω × ṗ for rolling contacts that move over their links at ṗ, in the axes of the
            rows.
        regularization : R, compliance of the rows, (k,) or one number for all rows [1/kg].
        characteristic_length : weight of angular against linear rows [m].

        Raises
        ------
        NumericalError
            If the status is not OK, no forces give these accelerations, or the forces overflow.
        InputError
            If an output or argument is missing or of wrong shape; needs ``a0``.
        """
        G, a0 = self.valid(), self.output("a0")
        wanted = self.by_row("acceleration", acceleration) - a0
        R = self.regularization_by_row(regularization)
        found = contact_space.forces(G, self.scales(characteristic_length), wanted, R)
        return _finite("contact forces", found)

    def contact_forces(
        self,
        friction: ArrayLike | Mapping[str, float] | None = None,
        *,
        start: ContactForces | None = None,
        **options: Unpack[ForceOptions],
    ) -> ContactForces:
        """Return the forces of the active contacts under friction.

        Friction, normal and dimensions are those of the contacts; where a contact has none, those
        of the arguments, and z is the normal and pushes.

        Points and surfaces, in contact axes, or in world axes on level ground; needs the output
        ``a0``. The contacts' velocities J ẏ at the rates of the solution decide whether they
        slide, leave or strike. ``accelerations`` of the result are those of material points, which
        in contact axes differ from G f + a⁰ by the output ``turning``.

        Parameters
        ----------
        friction : coefficient μ of contacts that have none; or one for each active contact, or by
            name, instead of the contacts'.
        start : forces of an earlier instant, which begin those of the contacts that still touch.
        options : arguments by name, those of
            :class:`~delassus.contact_forces.forces.ForceOptions`.

        Raises
        ------
        NumericalError
            If the status is not OK.
        InputError
            If ``a0`` or a coefficient is missing, an argument is of wrong shape, or a contact is a
            selection.
        """
        solver = active_solver(self.problem, self.contacts, friction, options)
        a0, v = accelerations_and_velocities(self)
        return self._with_friction(solver, a0, start, v)

    def contact_impulses(
        self,
        rates: ArrayLike | None = None,
        friction: ArrayLike | Mapping[str, float] | None = None,
        restitution: ArrayLike | Mapping[str, float] = 0.0,
        *,
        start: ContactForces | None = None,
        **options: Unpack[ForceOptions],
    ) -> ContactForces:
        """Return the impulses of an impact of the active contacts under friction.

        The result's ``forces`` are impulses p [N s], its ``accelerations`` the velocities of the
        contacts afterwards, v⁺ = J ẏ + G p [m/s]; the rates afterwards are
        ``rates + solution.MinvJT @ p``, and the kinetic energy changes by pᵀ(J ẏ + v⁺) / 2. A
        contact that approaches and is hit leaves with −e times its normal velocity (Newton's
        law); the law of friction holds for the velocities afterwards. With e = 0 energy never
        grows. With friction and e near 1 it can, as Newton's law does not prevent it.

        Parameters
        ----------
        rates : (n,) the independent velocities ẏ before the impact; None for those of the
            solution, which needs the output ``v`` (with ``a0``) instead of ``J``.
        friction : as in :meth:`contact_forces`.
        restitution : e from 0 to 1 of all contacts, one for each active contact, or by name.
        start, options : those of :meth:`contact_forces`.

        Raises
        ------
        NumericalError
            If the status is not OK, or the velocities overflow.
        InputError
            If ``J``, ``v`` or a coefficient is missing, an argument is of wrong shape or out of
            range, or a contact is a selection.
        """
        solver = active_solver(self.problem, self.contacts, friction, options, restitution)
        return self._with_friction(solver, self._velocities(rates), start)

    def _with_friction(
        self,
        solver: ForceSolver,
        free: Array,
        start: ContactForces | None,
        velocities: Array | None = None,
    ) -> ContactForces:
        begin = None if start is None else start.start(self.contacts, solver.rows.offsets)
        found = solver.solve(self.valid(), free, begin, velocities)
        found.contacts = self.contacts
        return found

    def _velocities(self, rates: ArrayLike | None) -> Array:
        """Return the velocities (k,) of the contacts at these rates, or at the solution's."""
        if rates is None:
            return self.output("v")
        J = self.output("J")
        before = numbers("rates", rates)
        if before.shape != (J.shape[1],):
            raise InputError(f"rates has shape {before.shape}, expected ({J.shape[1]},)")
        # An overflow is an error of this method, not a warning of numpy's.
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite("the velocities of the contacts", J @ before)

    def accelerations(self, forces: ArrayLike) -> Array:
        """Return ÿ (n,) under the torques and these contact forces (k,), without a factorisation.

        Needs the outputs ``qdd0`` and ``MinvJT``.

        Raises
        ------
        NumericalError
            If the status is not OK, or the result overflows.
        InputError
            If an output is missing, or the forces are not numbers of this shape.
        """
        self.valid()
        free, response = self.output("qdd0"), self.output("MinvJT")
        # An overflow is an error of this method, not a warning of numpy's.
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite("the accelerations", free + response @ self.by_row("forces", forces))

    def impact(
        self,
        rates: ArrayLike,
        restitution: ArrayLike = 0.0,
        damping: float = 0.0,
        characteristic_length: float = LENGTH,
    ) -> Impact:
        """Return the effects of an impact of the active contacts at the velocities `rates`.

        Parameters
        ----------
        rates : (n,) the independent velocities before the impact.
        restitution : e, (k,) or one number for all rows: contacts leave with −e times their
            velocity.
        damping, characteristic_length : as for :meth:`inertia`.

        Raises
        ------
        NumericalError
            If the status is not OK, or a result overflows.
        InputError
            If an output or argument is missing or of wrong shape; needs ``J`` and ``MinvJT``.
        """
        J, response = self.output("J"), self.output("MinvJT")
        velocity = self._velocities(rates)
        bounce = self.by_row("restitution", restitution)
        Lambda = self.inertia(damping, characteristic_length)
        # An overflow is an error of this method, not a warning of numpy's.
        with np.errstate(over="ignore", invalid="ignore"):
            impulse = Lambda @ (-(1.0 + bounce) * velocity)
            results = (
                velocity, self.valid() @ impulse, impulse, response @ impulse, J.T @ impulse
            )  # fmt: skip
        return Impact(*(_finite("an impact", result) for result in results))

    def effective_mass(self, contact: str, direction: ArrayLike, locked: bool = False) -> float:
        """Return the effective mass of a contact along a direction, 1 / (dᵀ G d) [kg].

        Infinite where the contact cannot move in this direction.

        Parameters
        ----------
        direction : d in the rows of the contact, of any nonzero length.
        locked : treat the robot as one rigid body with all joints locked; only with a floating
            base and the outputs ``J`` and ``M``.

        Raises
        ------
        NumericalError
            If the status is not OK.
        InputError
            If the contact is not active, the direction is zero, not finite or of wrong shape, or
            the robot's base is fixed and `locked` is set.
        """
        rows = self._rows_of(contact)
        d, count = numbers("direction", direction), rows.stop - rows.start
        largest = float(np.abs(d).max(initial=0.0))
        if d.shape != (count,) or not 0.0 < largest < np.inf:
            linear = d.shape == (3,) and count == 6
            write = f": write {[*d.ravel().tolist(), 0.0, 0.0, 0.0]}, linear before angular"
            raise InputError(
                f"direction is {d.tolist()}; expected {count} finite numbers, not all zero, for "
                f"the rows of contact {contact!r}{write if linear else ''}"
            )
        # The norm of large entries overflows to infinity.
        d = d / largest
        G = self.valid()
        if locked:
            if self.problem is not None and self.problem.robot.base != "floating":
                raise InputError("a robot on a fixed base cannot move with its joints locked")
            G = contact_space.locked(self.output("J"), self.output("M"))
        d = d / np.linalg.norm(d)
        mobility = float(d @ G[rows, rows] @ d)
        return 1.0 / mobility if mobility > 0.0 else np.inf

    def rows(self, contacts: Iterable[str]) -> list[int]:
        """Return the numbers of the rows of active contacts.

        Raises
        ------
        InputError
            For a contact that is not active.
        """
        slices = [self._rows_of(name) for name in contacts]
        return [row for part in slices for row in range(part.start, part.stop)]

    def valid(self) -> Array:
        """Return the matrix, or raise if the status is not OK.

        Raises
        ------
        NumericalError
            If the status is not OK.
        """
        if self.status is not _OK:
            raise NumericalError(f"there is no matrix: the status is {self.status.name}")
        return self.matrix

    def by_row(self, what: str, values: ArrayLike) -> Array:
        """Return (k,) numbers for the rows of the active contacts from (k,) numbers or one number.

        Raises
        ------
        InputError
            If the values are not numbers of this shape.
        """
        array, k = numbers(what, values), len(self.matrix)
        if array.shape not in ((), (k,)):
            flat = f": write {what}.ravel()" if array.size == k else ""
            raise InputError(
                f"{what} has shape {array.shape}, expected ({k},) or one number{flat}"
            )
        return np.broadcast_to(array, (k,))

    def regularization_by_row(self, values: ArrayLike) -> Array:
        """Return :meth:`by_row` of a regularization.

        Raises
        ------
        InputError
            If a number is negative or not finite, or as for :meth:`by_row`.
        """
        R = self.by_row("regularization", values)
        wrong = R[~((R >= 0.0) & (R < np.inf))]
        if wrong.size:
            raise InputError(f"regularization is {wrong[0]} in a row; expected 0 or more, finite")
        return R

    def scales(self, characteristic_length: float = LENGTH) -> Array:
        """Return the factors (k,) that give all rows the unit of linear rows."""
        if self.problem is None:
            return np.ones(len(self.matrix))
        by_name = {contact.name: contact for contact in self.problem.contacts}
        return row_scales([by_name[name] for name in self.contacts], characteristic_length)

    def _rows_of(self, contact: str) -> slice:
        if contact not in self.contacts:
            active = ", ".join(self.contacts) or "none"
            if self.problem is not None and contact not in self.problem.contacts.names:
                raise InputError(f"{self.problem.contacts.unknown(contact)}; active: {active}")
            raise InputError(f"contact {contact!r} is not active; active contacts: {active}")
        i = self.contacts.index(contact)
        return slice(self.row_offsets[i], self.row_offsets[i + 1])


@dataclass(slots=True, eq=False, repr=False)
class TaskSolution(Solution):
    """Quantities of a task while contacts are held; made by :meth:`Solution.task`.

    G, J, M⁻¹Jᵀ, a⁰, J̇ẏ and ÿ are those of the robot whose held contacts keep their acceleration at
    zero: ``J`` has no part along the contacts' rows, so that J M⁻¹ Jᵀ is the matrix, and ``qdd0``
    are the accelerations under the torques and the forces of the contacts. The output M is
    missing unless no contact is held: motions that the contacts allow have no inverse inertia.

    Attributes
    ----------
    given : the held contacts.
    held_rank : structural rank of the held contacts.
    held_motions : (n, n) projection on motions that the contacts allow; None without the
        outputs ``J`` and ``MinvJT``.
    """

    given: tuple[str, ...] = ()
    held_rank: int = 0
    held_motions: Array | None = None

    def copy(self) -> TaskSolution:
        """Return the solution itself, whose arrays no other computation changes."""
        return self

    def structural_rank(self) -> int:
        """Return the largest rank that the task's matrix has in any posture."""
        if self.structure is None:
            return len(self.matrix)
        return self.structure.rank((*self.given, *self.contacts)) - self.held_rank

    def null_space(self, damping: float = 0.0, characteristic_length: float = LENGTH) -> Array:
        """Return N (n, n), the projection on motions that move neither task nor held contacts.

        N = N_c − J̄ J, with the motions N_c that the contacts allow. Arguments and errors are those
        of :meth:`Solution.null_space`.
        """
        J, inverse = self.output("J"), self.jbar(damping, characteristic_length)
        held = np.eye(len(inverse)) if self.held_motions is None else self.held_motions
        return _finite("the projector", held - inverse @ J)


def task_names(
    task: Iterable[str] | str, given: Iterable[str] | str, active: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names of task and held contacts after a check.

    Raises
    ------
    InputError
        If a contact is not active, is named twice, or is task and held.
    """
    tasks, held = (
        (words,) if isinstance(words, str) else names(what, words, InputError)
        for what, words in (("task", task), ("given", given))
    )
    for name in (*tasks, *held):
        if name not in active:
            shown = ", ".join(active) or "none"
            raise InputError(f"contact {name!r} is not active; active contacts: {shown}")
        if (*tasks, *held).count(name) > 1:
            raise InputError(
                f"contact {name!r} is named twice; expected each contact once, in the task or "
                "among the held contacts"
            )
    return tasks, held


def _task_solution(s: Solution, task: tuple[str, ...], given: tuple[str, ...]) -> TaskSolution:
    """Return the quantities of a task; see :meth:`Solution.task`."""
    rows, contacts = s.rows(task), s.rows(given)
    rank = len(contacts) if s.structure is None else s.structure.rank(given)
    G = s.valid()
    held = HeldOutputs(G, rows, contacts, s.scales(), rank)
    secondary: dict[str, Array] = {}
    motions: Array | None = None
    found = s.secondary
    y: Array | None = None
    for name in ("JdotV", "v", "turning", "a0"):
        if name in found:
            y, secondary[name] = held.vector(found[name])
    if "J" in found:
        Y, secondary["J"] = held.rows(found["J"])
    if "MinvJT" in found:
        W, secondary["MinvJT"] = held.columns(found["MinvJT"])
        if "J" in found:
            motions = held.motions(W, Y)
        if "qdd0" in found and "a0" in found and y is not None:
            secondary["qdd0"] = found["qdd0"] - W.T @ y
    secondary |= {name: found[name].copy() for name in ("h",) if name in found}
    if not given:
        secondary |= {name: found[name].copy() for name in ("M", "qdd0") if name in found}
    offsets = [0]
    for name in task:
        offsets.append(offsets[-1] + len(s.rows((name,))))
    return TaskSolution(
        held.matrix, s.status, task, tuple(offsets), s.algorithm, s.compute_time, secondary,
        s.problem, s.structure, given, rank, motions,
    )  # fmt: skip


def _finite(what: str, values: Array) -> Array:
    """Return values if all of them are finite.

    Raises
    ------
    NumericalError
        If a value is not finite.
    """
    if not np.isfinite(values).all():
        raise NumericalError(f"{what} would not be finite: inputs or arguments are too large")
    return np.asarray(values)
