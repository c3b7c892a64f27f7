"""Compiled inverse, forward and hybrid dynamics of robots with gears and loops; loop rates."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.arguments import instance, names
from delassus_ros.compiler.function import CompiledFunction
from delassus_ros.errors import InputError, NumericalError, ProblemError, RobotError, unknown
from delassus_ros.model.clusters import clusters_of, velocity_offsets
from delassus_ros.model.couplings import open_coupling
from delassus_ros.model.robot import FROM_URDF, Robot
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Port
from delassus_ros.rbda.constraints import loop_jacobian
from delassus_ros.rbda.dynamics import c_aba, c_rnea, hybrid
from delassus_ros.rbda.robot_tree import RobotTree
from delassus_ros.scalars.functions import Vector
from delassus_ros.scalars.ports import Inputs, Status

_NONE: frozenset[int] = frozenset()
GRAVITY = (0.0, 0.0, -9.81)
"""Gravity in world axes [m/s²]."""
_PORTS = {"inverse": "accelerations", "forward": "torques", "hybrid": "known"}
"""Inputs of the functions besides positions, rates, gravity and wrenches."""


def _inverse(tree: RobotTree, accelerated: frozenset[int], x: Inputs) -> Vector:
    motion = tree.motion(x)
    return c_rnea(motion, motion.accelerations(list(x["accelerations"])))


def _forward(tree: RobotTree, accelerated: frozenset[int], x: Inputs) -> Vector:
    return c_aba(tree.motion(x), list(x["torques"])).independent


def _hybrid(tree: RobotTree, accelerated: frozenset[int], x: Inputs) -> Vector:
    return hybrid(tree.motion(x), list(x["known"]), accelerated)


_FUNCTIONS = {"inverse": _inverse, "forward": _forward, "hybrid": _hybrid}


class Dynamics:
    """C-RNEA, C-ABA and their hybrid, compiled at the first call of a method; thread-safe.

    A copied or pickled object is constructed anew for the same robot.

    Rates, accelerations and torques are those of :attr:`joints`, the independent joints: torques
    of dependent joints are converted to equivalent torques of independent joints. A floating base
    is first with six numbers: the root link's twist in its body axes, linear first, its spatial
    acceleration, or the wrench on the link.

    Parameters
    ----------
    robot : any robot without floating joints inside the tree or another tree on the world beside a
        floating base.
    cache : read and write the disk cache of compiled code; if False, code is compiled per object.
    wrenches : names of frames that external wrenches act on.

    Attributes
    ----------
    joints : names of the joints with independent rates, in the order of rates.
    size : number of independent rates.
    wrenches : the argument.

    Raises
    ------
    RobotError
        If a joint inside the tree is floating, or on the world beside a floating base; names the
        joint. If `robot` is no Robot.
    ProblemError
        If a frame of `wrenches` is unknown, named twice or fixed to the world; names the frame.
    """

    def __init__(self, robot: Robot, cache: bool = True, wrenches: Iterable[str] = ()) -> None:
        instance("robot", robot, Robot, FROM_URDF, RobotError)
        self.wrenches = names("wrenches", wrenches, ProblemError)
        self._tree = RobotTree(robot, self.wrenches)
        self.joints, self.size = self._tree.joints, self._tree.size
        self._robot, self._cache = robot, cache
        self._compiled: dict[tuple[str, frozenset[int]], CompiledFunction] = {}
        self._lock = threading.Lock()

    def _function(self, name: str, accelerated: frozenset[int] = _NONE) -> CompiledFunction:
        """Return a compiled function; other threads wait for the compiler."""
        with self._lock:
            if (name, accelerated) not in self._compiled:
                function = partial(_FUNCTIONS[name], self._tree, accelerated)
                shape = (self.size,)
                ports = [
                    Port("q", (self._robot.nq,)),
                    Port("rates", shape),
                    Port(_PORTS[name], shape),
                    Port("gravity", (3,)),
                ]
                if self.wrenches:
                    ports.append(Port("wrenches", (len(self.wrenches), 6)))
                key = self._key(name, *map(str, sorted(accelerated)))
                self._compiled[name, accelerated] = CompiledFunction(
                    function, ports, key, self._robot
                )
            return self._compiled[name, accelerated]

    def _key(self, *what: str) -> bytes | None:
        """Return the cache key of a function, or None without the disk cache."""
        if not self._cache:
            return None
        # The choice of independent joints also depends on limits, which the robot's bytes lack.
        parts = [*what, "", *self.joints, "", *self.wrenches, ""]
        return "\0".join(parts).encode() + self._robot.to_bytes()

    def _call(
        self, function: CompiledFunction, *arrays: ArrayLike, wrenches: ArrayLike | None
    ) -> Array:
        if self.wrenches:
            forces = np.zeros((len(self.wrenches), 6)) if wrenches is None else wrenches
            arrays = *arrays, forces
        elif wrenches is not None:
            raise InputError(
                "wrenches are given, but this Dynamics has no frames for them: make it with "
                "wrenches=[...]"
            )
        return _checked(self._robot, arrays[0], *function(*arrays))

    def inverse(
        self,
        q: ArrayLike,
        rates: ArrayLike,
        accelerations: ArrayLike,
        gravity: ArrayLike = GRAVITY,
        wrenches: ArrayLike | None = None,
    ) -> Array:
        """Return the torques (size,) that a motion needs [N·m, N].

        Parameters
        ----------
        q : (nq,) of the spanning tree; must close the loops. Couplings are checked.
        rates, accelerations : (size,).
        gravity : (3,) in world axes; for a floating base, in the axes of the root link [m/s²].
        wrenches : on the frames of :attr:`wrenches` (w, 6), in their axes, linear first [N, N·m];
            zero by default.

        Raises
        ------
        InputError
            If an array is no numbers or has another shape; names it.
        NumericalError
            If a loop is singular at q, a coupling does not hold, an input is not finite, a
            position is beyond 10⁶ rad or m, or a result overflows.
        """
        function = self._function("inverse")
        return self._call(function, q, rates, accelerations, gravity, wrenches=wrenches)

    def forward(
        self,
        q: ArrayLike,
        rates: ArrayLike,
        torques: ArrayLike,
        gravity: ArrayLike = GRAVITY,
        wrenches: ArrayLike | None = None,
    ) -> Array:
        """Return the accelerations (size,) caused by torques; see :meth:`inverse`.

        Raises
        ------
        InputError
            If an array is no numbers or has another shape; names it.
        NumericalError
            If the mass matrix is not positive definite at q, or as for :meth:`inverse`.
        """
        function = self._function("forward")
        return self._call(function, q, rates, torques, gravity, wrenches=wrenches)

    def hybrid(
        self,
        q: ArrayLike,
        rates: ArrayLike,
        known: ArrayLike,
        accelerated: Iterable[str],
        gravity: ArrayLike = GRAVITY,
        wrenches: ArrayLike | None = None,
    ) -> Array:
        """Return the unknown entries (size,): torques or accelerations of joints.

        The function is compiled at the first call for a set of accelerated joints.

        Parameters
        ----------
        q, rates, gravity, wrenches : as for :meth:`inverse`.
        known : (size,) accelerations of the joints in `accelerated`, torques of all other joints.
        accelerated : names of joints of :attr:`joints`; of joints that share a loop or coupling,
            all or none.

        Raises
        ------
        InputError
            If an array is no numbers or has another shape, a joint is unknown, or only some of
            the joints that share a loop are accelerated; names them.
        NumericalError
            As for :meth:`forward`.
        """
        function = self._function("hybrid", self._indices(accelerated))
        return self._call(function, q, rates, known, gravity, wrenches=wrenches)

    def _indices(self, accelerated: Iterable[str]) -> frozenset[int]:
        """Return the indices of the rates of accelerated joints."""
        columns = self._tree.columns_by_joint
        found: set[int] = set()
        for name in names("accelerated", accelerated, InputError):
            if name not in columns:
                raise InputError(f"accelerated: {unknown('joint', name, columns)}")
            found.update(columns[name])
        by_column = {k: name for name, indices in columns.items() for k in indices}
        for shared in self._tree.velocities.shared:
            known = found.intersection(shared)
            if known and len(known) < len(shared):
                together = [by_column[k] for k in shared]
                raise InputError(
                    f"accelerated: joints {together} share a loop or coupling; expected all of "
                    f"them or none, not {[by_column[k] for k in shared if k in known]} alone"
                )
        return frozenset(found)

    def __reduce__(self) -> tuple[type[Dynamics], tuple[object, ...]]:
        """Pickle by the arguments of the constructor; machine code is not pickled."""
        return type(self), (self._robot, self._cache, self.wrenches)


class LoopRates:
    """Conversion of joint rates and torques of a robot with loops to independent joints.

    Supports robots whose joints, except the base, have one velocity.

    Parameters
    ----------
    robot : the robot.
    """

    def __init__(self, robot: Robot) -> None:
        moved = [i for i, joint in enumerate(robot.joints) if joint.kind.nq]
        self._row = {robot.joints[i].name: k for k, i in enumerate(moved)}
        columns = [i for i in velocity_offsets(robot) if robot.joints[i].kind.nq]
        self.joints = tuple(robot.joints[i].name for i in columns)
        shape = (len(moved), len(columns))
        rows = {i: k for k, i in enumerate(moved)}
        place = {i: k for k, i in enumerate(columns)}

        def jacobian(x: Inputs) -> Vector:
            E: list[Vector] = [[0.0] * shape[1] for _ in range(shape[0])]
            for cluster in clusters_of(robot):
                if cluster.is_ordinary and cluster.joints[0] not in rows:
                    continue
                of_cluster = loop_jacobian(robot, cluster, x["q"])
                for joint, row in zip(cluster.joints, of_cluster, strict=True):
                    for column, value in zip(cluster.independent, row, strict=True):
                        E[rows[joint]][place[column]] = value
            return [value for row in E for value in row]

        key = "\0".join(["loop rates", *self.joints, ""]).encode() + robot.to_bytes()
        self._robot = robot
        self._function = CompiledFunction(jacobian, (Port("q", (robot.nq,)),), key, robot)
        self._shape = shape

    def jacobian(self, q: ArrayLike) -> Array:
        """Return E (joints, independent joints): q̇ = E ẏ, in model order.

        Raises
        ------
        NumericalError
            If a loop is singular at q (nq,).
        """
        values, status = self._function(q)
        return _checked(self._robot, q, values, status).reshape(self._shape)

    def independent(self, names: Sequence[str], rates: ArrayLike, q: ArrayLike) -> Array:
        """Return the rates of the independent joints from rates of measured joints.

        Measured independent joints have precedence over redundant measured joints.

        Parameters
        ----------
        names : (k,) the measured joints, which must determine all joints.
        rates : (k,) rates of the measured joints.

        Raises
        ------
        NumericalError
            If a loop is singular at q (nq,).
        """
        measured = dict(zip(names, np.asarray(rates).tolist(), strict=True))
        if measured.keys() >= set(self.joints):
            return np.array([measured[name] for name in self.joints])
        E = self.jacobian(q)[[self._row[name] for name in names]]
        return np.asarray(np.linalg.lstsq(E, np.asarray(rates), rcond=None)[0])

    def torques(self, names: Sequence[str], torques: ArrayLike, q: ArrayLike) -> Array:
        """Return the torques of independent joints that are equivalent to torques at named joints.

        Parameters
        ----------
        names : (k,) the joints with torques; other joints have zero torque.
        torques : (k,) torques of the named joints.

        Raises
        ------
        NumericalError
            If a loop is singular at q (nq,).
        """
        E = self.jacobian(q)[[self._row[name] for name in names]]
        return np.asarray(np.asarray(torques) @ E)


def _checked(robot: Robot, q: ArrayLike, values: Array, status: Status) -> Array:
    if status is not Status.OK:
        reason = status.name.lower().replace("_", " ")
        if status is Status.NOT_CLOSED:
            reason = f"{reason}: {open_coupling(robot, np.ravel(q).tolist())}"
        raise NumericalError(f"the dynamics cannot be computed at this configuration: {reason}")
    return values
