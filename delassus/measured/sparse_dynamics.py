"""Dynamics from measurements: observability, estimates and their covariances.

F. Nori, "Inverse, forward and other dynamic computations computationally optimized with sparse
matrix factorizations", equation (17): D d + b = 0 of :mod:`delassus.measured.system` and
Y d = y of the sensors. With known accelerations the order makes the system triangular (Property
1). Observability, at random postures and at named postures, and the order of elimination are
decided once, when the problem is posed; compiled code solves the system.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from delassus.arguments import instance, numbers
from delassus.compiler.function import CompiledFunction
from delassus.dynamics import GRAVITY
from delassus.errors import InputError, ProblemError, RobotError, unknown
from delassus.measured.least_squares import LeastSquares
from delassus.measured.observability import Observability
from delassus.measured.quantities import (
    ForceTorqueSensor,
    JointAcceleration,
    JointTorque,
    Measurement,
    Quantity,
)
from delassus.measured.system import System
from delassus.model.robot import FROM_URDF, Robot
from delassus.model.spatial import Array
from delassus.scalars.counts import OperationCount
from delassus.scalars.ports import Port

_FAILURE = (
    "the measurements are not sufficient at this configuration, a loop is singular, or an input "
    "cannot be used"
)
"""Message of a NumericalError, before the status."""
_POSTURES = 3
"""Number of random postures for observability and the order of elimination."""


@dataclass(frozen=True)
class Estimate:
    """Quantities estimated from the measurements.

    Attributes
    ----------
    values : values of the wanted quantities, by quantity.
    covariances : covariances of the values; zero if all measurements are exact. Empty if not
        requested.
    squared : sum of the squared residuals over their variances.
    redundant : degrees of freedom of `squared`, its mean for correct deviations.
    residuals : (estimated − measured) / sigma, by measured quantity with a deviation.
    """

    values: Mapping[Quantity, Array]
    covariances: Mapping[Quantity, Array]
    squared: float
    redundant: int
    residuals: Mapping[Quantity, Array]


class SparseDynamics:
    """The dynamics of a robot from known to wanted quantities; thread-safe.

    Torques on a floating base are zero unless they are known or wanted. Wrenches act only on
    frames of an ExternalWrench or Resting; rows without measurement are unknown. The code is
    compiled at the first call of :meth:`solve`.

    Parameters
    ----------
    robot : any robot without floating joints inside the tree.
    known : measurements and their accuracy.
    wanted : quantities to be computed.
    postures : further positions (k, nq) at which observability is required, such as feet on
        level ground, in addition to random positions.
    covariances : compute the covariances of wanted quantities.
    cache : read and write the disk cache of compiled code.

    Attributes
    ----------
    known, wanted : the arguments.
    kind : ``square`` or ``overdetermined``.
    unknowns, equations : size of d, and of D d + b = 0 with the measurements.
    order : order of elimination.
    given : measured quantities without constant value, in the order of y → number of values.
    sizes : wanted quantities, in the order of the values → number of values.
    redundant : as of :class:`Estimate`.
    squared_at : index of the sum of squared residuals in the result of :meth:`solve_flat`.
    residuals_at : slices of the residuals in that result, by quantity.

    Raises
    ------
    UnobservableError
        If the measurements are not sufficient; names the open direction.
    ProblemError
        If a quantity is known or wanted twice, or its joint or frame is unknown; if exact
        measurements are redundant, or a sensor is inside a loop, whose forces are undetermined.
    """

    def __init__(
        self,
        robot: Robot,
        known: Iterable[Measurement],
        wanted: Iterable[Quantity],
        postures: ArrayLike = (),
        covariances: bool = True,
        cache: bool = True,
    ) -> None:
        instance("robot", robot, Robot, FROM_URDF, RobotError)
        self.known, self.wanted = tuple(known), tuple(wanted)
        if not self.wanted:
            raise ProblemError("nothing is wanted; expected at least one quantity")
        quantities = [*(measurement.quantity for measurement in self.known), *self.wanted]
        self._system = system = System(robot, quantities)
        self._robot, self._cache, self._covariances = robot, cache, covariances
        joints = system.spanning.columns_by_joint
        for quantity in quantities:
            if isinstance(quantity, JointTorque | JointAcceleration):
                if quantity.joint not in joints:
                    raise ProblemError(unknown("joint", quantity.joint, joints))
            if isinstance(quantity, ForceTorqueSensor):
                system.check_sensor(quantity)
        measured = [measurement.quantity for measurement in self.known]
        twice = next((q for q in measured if measured.count(q) > 1), None)
        if twice is not None:
            raise ProblemError(f"{twice} is known twice")
        twice = next((q for q in self.wanted if self.wanted.count(q) > 1), None)
        if twice is not None:
            raise ProblemError(f"{twice} is wanted twice")
        zero = self._without_torques(quantities)
        count = sum(map(system.size_of, measured))
        self.unknowns, self.equations = (
            system.columns.size, system.rows + len(zero) + count
        )  # fmt: skip
        self.kind = "square" if self.equations == self.unknowns else "overdetermined"
        self.redundant = self.equations - self.unknowns
        self.sizes = {quantity: system.size_of(quantity) for quantity in self.wanted}
        self.given: Mapping[Quantity, int] = {
            m.quantity: system.size_of(m.quantity) for m in self.known if m.value is None
        }
        sizes = self.sizes.values()
        triangles = sum(size * (size + 1) // 2 for size in sizes) if covariances else 0
        self.squared_at = end = sum(sizes) + triangles
        self.residuals_at: dict[Quantity, slice] = {}
        for m in self.known:
            if m.sigma:
                first, end = end + 1, end + system.size_of(m.quantity)
                self.residuals_at[m.quantity] = slice(first, end + 1)
        random = np.random.default_rng(0)
        some = [random.uniform(-1.0, 1.0, robot.nq) for _ in range(_POSTURES)]
        self._named = named = numbers("postures", postures).reshape(-1, robot.nq)
        Observability(system, self.known, zero).check(some, [*named])
        self._squares = LeastSquares(system, self.known, self.wanted, zero)
        self.order = self._squares.order(self._ports(), [*some, *named])
        self._function: CompiledFunction | None = None
        self._lock = threading.Lock()

    def solve(
        self,
        q: ArrayLike,
        rates: ArrayLike,
        values: Mapping[Quantity, ArrayLike],
        gravity: ArrayLike = GRAVITY,
    ) -> Estimate:
        """Return the wanted quantities of the most likely d that obeys D d + b = 0.

        Parameters
        ----------
        q, rates : positions (nq,), independent rates.
        values : values of all known quantities without a constant value.
        gravity : (3,) in the world's axes, of a floating base in the root link's [m/s²].

        Raises
        ------
        InputError
            If a value is missing, has another size or is not finite.
        NumericalError
            If the measurements are not sufficient at this configuration, a loop is singular, a
            coupling does not hold, a position is beyond 10⁶ rad or m, or a result is not finite.
        """
        return self.named(self.solve_flat(q, rates, self._values(values), gravity))

    def solve_flat(
        self, q: ArrayLike, rates: ArrayLike, y: ArrayLike, gravity: ArrayLike = GRAVITY
    ) -> Array:
        """Return the results of :meth:`solve` as one array.

        The order is: values, lower triangles of covariances by row, squared, residuals.

        Parameters
        ----------
        q, rates, gravity : as for :meth:`solve`.
        y : values, in the order of :attr:`given`.

        Raises
        ------
        InputError
            If an array has another size.
        NumericalError
            As for :meth:`solve`.
        """
        arguments = (q, rates, gravity, y) if self.given else (q, rates, gravity)
        return self._compiled().compute(_FAILURE, *arguments)

    @property
    def operations(self) -> OperationCount:
        """Operation count of one solution."""
        return self._compiled().operations

    def named(self, flat: Array) -> Estimate:
        """Return the result of :meth:`solve_flat` by name."""
        values, covariances, k = {}, {}, 0
        for quantity, size in self.sizes.items():
            values[quantity] = flat[k : k + size]
            k += size
        if self._covariances:
            for quantity, size in self.sizes.items():
                rows, columns = _LOWER[size]
                covariances[quantity] = matrix = np.empty((size, size))
                matrix[rows, columns] = matrix[columns, rows] = flat[k : k + len(rows)]
                k += len(rows)
        residuals = {quantity: flat[place] for quantity, place in self.residuals_at.items()}
        squared = float(flat[self.squared_at])
        return Estimate(values, covariances, squared, self.redundant, residuals)

    def _ports(self) -> list[Port]:
        n, count = self._system.spanning.size, sum(self.given.values())
        ports = [Port("q", (self._robot.nq,)), Port("rates", (n,)), Port("gravity", (3,))]
        return [*ports, Port("y", (count,))] if count else ports

    def _compiled(self) -> CompiledFunction:
        with self._lock:
            if self._function is None:
                function = partial(self._squares.answer, self.order, self._covariances)
                self._function = CompiledFunction(
                    function, self._ports(), self._key(), self._robot
                )
            return self._function

    def _key(self) -> bytes | None:
        """Return the cache key of the code, or None without the disk cache."""
        if not self._cache:
            return None
        what = repr((self.known, self.wanted, self._covariances, self._system.spanning.joints))
        order = hashlib.sha256(repr(self.order).encode()).digest()
        return b"measured\0" + what.encode() + b"\0" + order + self._robot.to_bytes()

    def _without_torques(self, quantities: Sequence[Quantity]) -> list[int]:
        """Return columns of d that are zero: torques of a floating base that is not held."""
        spanning = self._system.spanning
        if spanning.tree.links[0].motion != "free":
            return []
        base = spanning.joints[0]
        if JointTorque(base) in quantities:
            return []
        return self._system.columns.torques[:6]

    def _values(self, values: Mapping[Quantity, ArrayLike]) -> Array:
        found = []
        for quantity, size in self.given.items():
            if quantity not in values:
                raise InputError(f"the value of {quantity} is missing")
            array = numbers(f"the value of {quantity}", values[quantity]).ravel()
            if array.size != size:
                raise InputError(_not(quantity, array, size))
            found.append(array)
        if len(values) > len(found):
            extra = next(quantity for quantity in values if quantity not in self.given)
            raise InputError(f"{extra} has a value, but is not a measurement of this system")
        y = np.concatenate(found) if found else np.empty(0)
        if not np.isfinite(y).all():
            for (quantity, size), array in zip(self.given.items(), found, strict=True):
                if not np.isfinite(array).all():
                    raise InputError(_not(quantity, array, size))
        return y

    def __reduce__(self) -> tuple[type[SparseDynamics], tuple[object, ...]]:
        """Pickle by the arguments of the constructor; machine code is not pickled."""
        return type(self), (
            self._robot, self.known, self.wanted, self._named, self._covariances, self._cache
        )  # fmt: skip


def _not(quantity: Quantity, array: Array, size: int) -> str:
    return f"the value of {quantity} is {array.tolist()}; expected {size} finite numbers"


_LOWER = {size: np.tril_indices(size) for size in range(1, 7)}
