"""Dynamics from what is measured: is it enough, and what follows, with its covariance.

F. Nori, "Sparse factorization for robot dynamics": D d + b = 0 of
:mod:`delassus_ros.measured.system` and Y d = y of the sensors. Whether they are enough is decided
when the problem is posed, at random postures and at those that are named, not when it is solved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.arguments import instance
from delassus_ros.dynamics import GRAVITY
from delassus_ros.errors import InputError, NumericalError, ProblemError, RobotError, unknown
from delassus_ros.measured.quantities import (
    ALL,
    WRENCH_ROWS,
    Accelerometer,
    ExternalWrench,
    JointAcceleration,
    JointTorque,
    Measurement,
    Quantity,
    Resting,
)
from delassus_ros.measured.system import Instant, System
from delassus_ros.model.robot import FROM_URDF, Robot
from delassus_ros.model.spatial import Array

_TOLERANCE = 1e-9
"""Of singular values, over the largest: less counts as zero."""
_CONTRADICTION = 1e-6
"""Of exact values, over the largest: more is no rounding."""
_TOLD = 0.3
"""Share of the largest part of an unobservable direction that is worth a word."""
_POSTURES = 3


class UnobservableError(ProblemError):
    """What is known does not determine everything; says what is left open, and what would do."""


@dataclass(frozen=True)
class Estimate:
    """What follows from the measurements.

    Attributes
    ----------
    values : by quantity that was wanted.
    covariances : of these; zero where all that is known is exact.
    squared : sum of the squared residuals over their variances.
    redundant : degrees of freedom of that sum; its mean where the deviations are right.
    """

    values: Mapping[Quantity, Array]
    covariances: Mapping[Quantity, Array]
    squared: float
    redundant: int


class SparseDynamics:
    """The dynamics of a robot with some quantities known and others wanted.

    A floating base feels no torques but those that are known or wanted by name. Wrenches act on
    the frames of an ExternalWrench or Resting alone; rows that are not known are unknown.

    Parameters
    ----------
    robot : any robot without floating joints inside the tree.
    known : what is measured, and how well.
    wanted : what is asked for.
    postures : further positions (k, nq) at which all has to be observable, as with feet on level
        ground; random ones always count.

    Attributes
    ----------
    kind : ``square`` or ``overdetermined``.
    unknowns, equations : size of d, and of D d + b = 0 with the measurements.

    Raises
    ------
    UnobservableError
        If what is known is not enough; names the direction that is left open.
    ProblemError
        If a quantity is known twice, or its joint or frame is unknown.
    """

    def __init__(
        self,
        robot: Robot,
        known: Iterable[Measurement],
        wanted: Iterable[Quantity],
        postures: ArrayLike = (),
    ) -> None:
        instance("robot", robot, Robot, FROM_URDF, RobotError)
        self.known, self.wanted = tuple(known), tuple(wanted)
        quantities = [*(measurement.quantity for measurement in self.known), *self.wanted]
        frames = dict.fromkeys(
            q.frame for q in quantities if isinstance(q, ExternalWrench | Resting)
        )
        watched = dict.fromkeys(
            q.frame for q in quantities if isinstance(q, Resting | Accelerometer)
        )
        self._system = System(robot, [*frames], [*watched])
        self._robot = robot
        self._joints = self._system.motion.columns_by_joint
        for quantity in quantities:
            if isinstance(quantity, JointTorque | JointAcceleration):
                if quantity.joint not in self._joints:
                    raise ProblemError(unknown("joint", quantity.joint, self._joints))
        measured = [measurement.quantity for measurement in self.known]
        twice = next((q for q in measured if measured.count(q) > 1), None)
        if twice is not None:
            raise ProblemError(f"{twice} is known twice")
        self._loose = self._without_torques(quantities)
        self._slices: dict[Quantity, slice] = {}
        count = 0
        for measurement in self.known:
            size = self._size(measurement.quantity)
            self._slices[measurement.quantity] = slice(count, count + size)
            count += size
        self._sigma = np.concatenate(
            [np.full(self._size(m.quantity), m.sigma) for m in self.known] or [np.empty(0)]
        )
        self.unknowns = self._system.columns.size
        rows = self.unknowns - len(self._system.columns.free)
        self.equations = rows + len(self._loose) + count
        given = np.asarray(postures, dtype=np.float64).reshape(-1, robot.nq)
        self._check(given)
        self.kind = "square" if self.equations == self.unknowns else "overdetermined"

    def solve(
        self,
        q: ArrayLike,
        rates: ArrayLike,
        values: Mapping[Quantity, ArrayLike],
        gravity: ArrayLike = GRAVITY,
    ) -> Estimate:
        """Return what is wanted: the most likely d that obeys D d + b = 0.

        Parameters
        ----------
        q, rates : positions (nq,), independent rates.
        values : of all quantities that are known.
        gravity : (3,) in the world's axes, of a floating base in the root link's [m/s²].

        Raises
        ------
        InputError
            If a value is missing, has another size or is not finite, or exact ones contradict
            each other.
        NumericalError
            If what is known is not enough there.
        """
        y = self._values(values)
        numbers = [np.asarray(each, dtype=np.float64) for each in (q, rates, gravity)]
        instant = self._system.at(*numbers)
        N, d0 = self._followers(instant)
        Y, offset = self._rows([m.quantity for m in self.known], instant)
        A, residual = Y @ N, y - offset - Y @ d0
        exact = self._sigma == 0.0
        loose = self._loose
        E = np.vstack([N[loose], A[exact]])
        e = np.concatenate([-d0[loose], residual[exact]])
        U, s, Vt = np.linalg.svd(E, full_matrices=True)
        rank = int((s > _TOLERANCE * max(float(s.max(initial=0.0)), 1.0)).sum())
        u = Vt[:rank].T @ ((U[:, :rank].T @ e) / s[:rank])
        if np.abs(E @ u - e).max(initial=0.0) > _CONTRADICTION * (
            1.0 + np.abs(e).max(initial=0.0)
        ):
            raise InputError(
                "what is known exactly contradicts itself: give a sigma to what is measured"
            )
        Z = Vt[rank:].T
        weight = 1.0 / self._sigma[~exact]
        B = weight[:, np.newaxis] * (A[~exact] @ Z)
        rest = weight * (residual[~exact] - A[~exact] @ u)
        if np.linalg.matrix_rank(B, _TOLERANCE * max(np.abs(B).max(initial=0.0), 1e-300)) < len(
            Z.T
        ):
            raise NumericalError("what is known is not enough at this configuration")
        z = np.linalg.lstsq(B, rest, rcond=None)[0]
        spread = Z @ np.linalg.inv(B.T @ B) @ Z.T if len(z) else np.zeros((len(u), len(u)))
        d = d0 + N @ (u + Z @ z)
        found, covariances = {}, {}
        for quantity in self.wanted:
            rows, shift = self._rows([quantity], instant)
            found[quantity] = rows @ d + shift
            reach = rows @ N
            covariances[quantity] = reach @ spread @ reach.T
        squared = float(((rest - B @ z) ** 2).sum())
        return Estimate(found, covariances, squared, len(rest) - len(z))

    def _without_torques(self, quantities: Sequence[Quantity]) -> list[int]:
        """Return columns of d that are zero: of a floating base that nothing holds."""
        motion = self._system.motion
        if motion.tree.links[0].motion != "free":
            return []
        base = motion.joints[0]
        if JointTorque(base) in quantities:
            return []
        return self._system.columns.torques[:6]

    def _size(self, quantity: Quantity) -> int:
        if isinstance(quantity, JointTorque | JointAcceleration):
            return len(self._joints[quantity.joint])
        if isinstance(quantity, ExternalWrench):
            return len(quantity.rows)
        return 3 if isinstance(quantity, Accelerometer) else 6

    def _rows(self, quantities: Sequence[Quantity], instant: Instant) -> tuple[Array, Array]:
        """Return Y (k, size) and y0 (k,) of quantities: they are Y d + y0."""
        system, at = self._system, self._system.columns
        found = [(np.zeros((0, at.size)), np.zeros(0))]
        for quantity in quantities:
            if isinstance(quantity, Accelerometer):
                found.append(system.specific_force(quantity.frame, instant))
                continue
            if isinstance(quantity, Resting):
                found.append(system.acceleration(quantity.frame, instant))
                continue
            if isinstance(quantity, ExternalWrench):
                first = at.wrenches[system.frames.index(quantity.frame)]
                columns = [first + row for row in quantity.rows]
            else:
                own = at.torques if isinstance(quantity, JointTorque) else at.accelerations
                columns = [own[k] for k in self._joints[quantity.joint]]
            found.append((np.eye(at.size)[columns], np.zeros(len(columns))))
        return np.vstack([rows for rows, _ in found]), np.concatenate([y for _, y in found])

    def _followers(self, instant: Instant) -> tuple[Array, Array]:
        """Return N and d0 with d = N u + d0, for ÿ and wrenches u."""
        at, free = self._system.columns, self._system.columns.free
        others = np.setdiff1d(np.arange(at.size), free)
        right = np.column_stack([-instant.D[:, free], -instant.b])
        both = np.linalg.solve(instant.D[:, others], right)
        N, d0 = np.zeros((at.size, len(free))), np.zeros(at.size)
        N[free] = np.eye(len(free))
        N[others], d0[others] = both[:, :-1], both[:, -1]
        return N, d0

    def _values(self, values: Mapping[Quantity, ArrayLike]) -> Array:
        y = np.zeros(len(self._sigma))
        for quantity, place in self._slices.items():
            if quantity not in values:
                raise InputError(f"the value of {quantity} is missing")
            given = np.asarray(values[quantity], dtype=np.float64).ravel()
            if given.shape != y[place].shape or not np.isfinite(given).all():
                raise InputError(
                    f"the value of {quantity} is {given.tolist()}; expected "
                    f"{len(y[place])} finite numbers"
                )
            y[place] = given
        extra = [quantity for quantity in values if quantity not in self._slices]
        if extra:
            raise InputError(f"{extra[0]} is given, but not among what is known")
        return y

    def _check(self, postures: Array) -> None:
        """Refuse what is not enough, at random postures or at those that are named."""
        random = np.random.default_rng(0)
        some = [random.uniform(-1.0, 1.0, self._robot.nq) for _ in range(_POSTURES)]
        # One of them may happen to be singular.
        directions, N = min(map(self._open, some), key=lambda each: len(each[0]))
        if len(directions):
            raise UnobservableError(self._words(directions, N, ""))
        for q in postures:
            directions, N = self._open(q)
            if len(directions):
                raise UnobservableError(self._words(directions, N, " at a posture that was named"))

    def _open(self, q: Array) -> tuple[Array, Array]:
        """Return directions (k, free) of ÿ and wrenches that nothing known sees, and N."""
        instant = self._system.at(q, np.zeros(self._system.motion.size), np.array(GRAVITY))
        N, _ = self._followers(instant)
        Y, _ = self._rows([m.quantity for m in self.known], instant)
        seen = np.vstack([N[self._loose], Y @ N])
        # Rows of different units alike.
        size = np.linalg.norm(seen, axis=1, keepdims=True)
        _, s, Vt = np.linalg.svd(seen / np.where(size > 0.0, size, 1.0), full_matrices=True)
        rank = int((s > _TOLERANCE * s.max(initial=0.0)).sum())
        return Vt[rank:], N

    def _words(self, directions: Array, N: Array, where: str) -> str:
        """Say which direction is open, and which single measurements would see it."""
        labels = self._labels()
        first = directions[0] / np.abs(directions[0]).max()
        # The largest first; of equal ones, whatever rounding says, in the order of the robot.
        order = np.argsort(-np.round(np.abs(first), 6), kind="stable")
        parts = [labels[k] for k in order if abs(first[k]) > _TOLD]
        at = self._system.columns
        moved = N @ directions.T
        cures = []
        for joint, own in self._joints.items():
            for kind, columns in (("torque", at.torques), ("acceleration", at.accelerations)):
                rows = [columns[k] for k in own if columns[k] not in self._loose]
                if rows and np.abs(moved[rows]).max() > _TOLERANCE * np.abs(moved).max():
                    cures.append(f"{kind} of {joint}")
        for frame, start in zip(self._system.frames, at.wrenches, strict=True):
            cures += [
                f"{WRENCH_ROWS[row]} on {frame}"
                for row in ALL
                if np.abs(moved[start + row]).max() > _TOLERANCE * np.abs(moved).max()
            ]
        more = f" (and {len(directions) - 1} directions more)" if len(directions) > 1 else ""
        shown = ", ".join(cures[:8]) + (" ..." if len(cures) > 8 else "")
        return (
            f"what is known is not enough{where}: it does not tell {' against '.join(parts[:6])}"
            f"{more}; what would: {shown}"
        )

    def _labels(self) -> list[str]:
        """Return names of ÿ and wrenches, in their order."""
        names: dict[int, str] = {}
        for joint, own in self._joints.items():
            for k in own:
                names[k] = f"acceleration of {joint}"
        found = [names[k] for k in sorted(names)]
        for frame in self._system.frames:
            found += [f"{words} on {frame}" for words in WRENCH_ROWS]
        return found
