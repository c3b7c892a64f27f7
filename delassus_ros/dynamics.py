"""Inverse and forward dynamics of a robot with its gears, belts and loops, compiled; its rates."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.arguments import instance
from delassus_ros.compiler.function import CompiledFunction
from delassus_ros.errors import NumericalError, RobotError
from delassus_ros.model.clusters import clusters_of, velocity_offsets
from delassus_ros.model.robot import FROM_URDF, Robot
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Port
from delassus_ros.rbda.constraints import loop_jacobian
from delassus_ros.rbda.dynamics import ClusterMotion, c_aba, c_rnea
from delassus_ros.scalars.functions import Vector
from delassus_ros.scalars.ports import Inputs, Status

GRAVITY = (0.0, 0.0, -9.81)
"""[m/s²]"""
_FUNCTIONS = {"inverse": (c_rnea, "accelerations"), "forward": (c_aba, "torques")}
"""Function over scalars, and what it takes besides positions, rates and gravity."""


class Dynamics:
    """C-RNEA and C-ABA of a robot; each is compiled when it is first called. For any thread.

    Copied or pickled it becomes another one of the same robot.

    Rates, accelerations and torques are those of :attr:`joints`, the independent ones: torques
    of other joints are counted at these. A floating base comes first with six numbers: the root
    link's twist in its own axes, linear first, its spatial acceleration, and the wrench on it.

    Parameters
    ----------
    robot : any robot without floating joints inside the tree.
    cache : read and write the disk cache of compiled code; off, it is compiled once per object.

    Attributes
    ----------
    joints : names of the joints with independent rates, in their order.
    size : number of independent rates.

    Raises
    ------
    RobotError
        If a joint inside the tree is floating; names it. If `robot` is no Robot.
    """

    def __init__(self, robot: Robot, cache: bool = True) -> None:
        instance("robot", robot, Robot, FROM_URDF, RobotError)
        self._motion = ClusterMotion(robot)
        self.joints, self.size = self._motion.joints, self._motion.size
        self._robot, self._cache = robot, cache
        self._compiled: dict[str, CompiledFunction] = {}
        self._lock = threading.Lock()

    def _function(self, name: str) -> CompiledFunction:
        """Return C-RNEA or C-ABA, compiled; another thread that needs it waits for it."""
        with self._lock:
            if name not in self._compiled:
                function, port = _FUNCTIONS[name]
                shape = (self.size,)
                ports = (
                    Port("q", (self._robot.nq,)),
                    Port("rates", shape),
                    Port(port, shape),
                    Port("gravity", (3,)),
                )
                self._compiled[name] = CompiledFunction(
                    partial(function, self._motion), ports, self._key(name)
                )
            return self._compiled[name]

    def _key(self, name: str) -> bytes | None:
        """Return what C-RNEA or C-ABA depends on, or None without the disk cache."""
        if not self._cache:
            return None
        # Which joints are independent also follows from limits, which the robot's bytes lack.
        return "\0".join([name, *self.joints, ""]).encode() + self._robot.to_bytes()

    def inverse(
        self,
        q: ArrayLike,
        rates: ArrayLike,
        accelerations: ArrayLike,
        gravity: ArrayLike = GRAVITY,
    ) -> Array:
        """Return the torques (size,) that a motion needs [N·m, N].

        Parameters
        ----------
        q : (nq,) of the spanning tree; its loops must be closed.
        rates, accelerations : (size,).
        gravity : (3,) in the world's axes, of a floating base in the root link's.

        Raises
        ------
        InputError
            If an array is no numbers or has another shape; names it.
        NumericalError
            If a loop is singular there, or an input is not finite.
        """
        torques, status = self._function("inverse")(q, rates, accelerations, gravity)
        return _checked(torques, status)

    def forward(
        self, q: ArrayLike, rates: ArrayLike, torques: ArrayLike, gravity: ArrayLike = GRAVITY
    ) -> Array:
        """Return the accelerations (size,) that torques cause; as for :meth:`inverse`.

        Raises
        ------
        InputError
            If an array is no numbers or has another shape; names it.
        NumericalError
            If the mass matrix is not positive definite there, a loop is singular, or an input
            is not finite.
        """
        accelerations, status = self._function("forward")(q, rates, torques, gravity)
        return _checked(accelerations, status)

    def __reduce__(self) -> tuple[type[Dynamics], tuple[object, ...]]:
        """Pickle by the arguments of the constructor: machine code stays in its process."""
        return type(self), (self._robot, self._cache)


class LoopRates:
    """Rates and torques of the joints of a robot with loops, as those of its independent ones.

    For robots whose joints, the base apart, have one velocity each.

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
                own = loop_jacobian(robot, cluster, x["q"])
                for joint, row in zip(cluster.joints, own, strict=True):
                    for column, value in zip(cluster.independent, row, strict=True):
                        E[rows[joint]][place[column]] = value
            return [value for row in E for value in row]

        key = "\0".join(["loop rates", *self.joints, ""]).encode() + robot.to_bytes()
        self._function = CompiledFunction(jacobian, (Port("q", (robot.nq,)),), key)
        self._shape = shape

    def jacobian(self, q: ArrayLike) -> Array:
        """Return E (joints, independent joints): q̇ = E ẏ, in model order.

        Raises
        ------
        NumericalError
            If a loop is singular at q (nq,).
        """
        values, status = self._function(q)
        return _checked(values, status).reshape(self._shape)

    def independent(self, names: Sequence[str], rates: ArrayLike, q: ArrayLike) -> Array:
        """Return the rates of the independent joints that those of measured ones tell.

        Where more are measured than needed, the independent ones count if they are among them.

        Parameters
        ----------
        names : (k,) the measured joints, from which all others follow.
        rates : (k,) their rates.

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
        """Return the torques at the independent joints that do the work of those at some joints.

        Parameters
        ----------
        names : (k,) these joints; others have none.
        torques : (k,) theirs.

        Raises
        ------
        NumericalError
            If a loop is singular at q (nq,).
        """
        E = self.jacobian(q)[[self._row[name] for name in names]]
        return np.asarray(np.asarray(torques) @ E)


def _checked(values: Array, status: Status) -> Array:
    if status is not Status.OK:
        reason = status.name.lower().replace("_", " ")
        raise NumericalError(f"the dynamics cannot be computed at this configuration: {reason}")
    return values
