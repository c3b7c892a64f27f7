"""Conversion of rates and torques between all joints and the independent joints of loops."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from delassus.arguments import numbers
from delassus.compiler.function import CompiledFunction
from delassus.dynamics.methods import FAILURE
from delassus.model.clusters import clusters_of, velocity_offsets
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.rbda.constraints import loop_jacobian
from delassus.scalars.functions import Vector
from delassus.scalars.ports import Inputs, Port


class LoopRates:
    """Conversion of joint rates and torques of a robot with loops to its velocities.

    Velocities are those of independent joints; where loops are closed by rows, of all joints of
    these loops. Supports robots whose joints, except the base, have one velocity.

    Parameters
    ----------
    robot : the robot.

    Attributes
    ----------
    joints : names of the joints that are independent in closed loops.
    """

    def __init__(self, robot: Robot) -> None:
        self._opened = None
        if robot.row_loops:
            self._opened, robot = LoopRates(robot.replaced(row_loops=())), robot.clustered
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
                of_cluster = loop_jacobian(cluster, x["q"])
                for joint, row in zip(cluster.joints, of_cluster, strict=True):
                    for column, value in zip(cluster.independent, row, strict=True):
                        E[rows[joint]][place[column]] = value
            return [value for row in E for value in row]

        key = "\0".join(["loop rates", *self.joints, ""]).encode() + robot.to_bytes()
        self._function = CompiledFunction(jacobian, (Port("q", (robot.nq,)),), key, robot)
        self._shape = shape

    def jacobian(self, q: ArrayLike) -> Array:
        """Return E (joints, independent joints): q̇ = E ẏ, in model order.

        Raises
        ------
        NumericalError
            If a loop is singular at q (nq,).
        """
        return self._function.compute(FAILURE, q).reshape(self._shape)

    def independent(self, names: Sequence[str], rates: ArrayLike, q: ArrayLike) -> Array:
        """Return the robot's velocities from rates of measured joints.

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
        if self._opened is None:
            return self._independent(names, rates, q)
        moved = self.of_joints(names, rates, q)
        return np.array([moved[self._row[name]] for name in self._opened.joints])

    def of_joints(self, names: Sequence[str], rates: ArrayLike, q: ArrayLike) -> Array:
        """Return the rates of all joints, in model order, from those of measured joints.

        Parameters
        ----------
        names, rates : as for :meth:`independent`.

        Raises
        ------
        NumericalError
            If a loop is singular at q (nq,).
        """
        return np.asarray(self.jacobian(q) @ self._independent(names, rates, q))

    def _independent(self, names: Sequence[str], rates: ArrayLike, q: ArrayLike) -> Array:
        given = numbers("rates", rates)
        measured = dict(zip(names, given.tolist(), strict=True))
        if measured.keys() >= set(self.joints):
            return np.array([measured[name] for name in self.joints])
        E = self.jacobian(q)[[self._row[name] for name in names]]
        return np.asarray(np.linalg.lstsq(E, given, rcond=None)[0])

    def torques(self, names: Sequence[str], torques: ArrayLike, q: ArrayLike) -> Array:
        """Return torques along the robot's velocities, equivalent to torques at named joints.

        Parameters
        ----------
        names : (k,) the joints with torques; other joints have zero torque.
        torques : (k,) torques of the named joints.

        Raises
        ------
        NumericalError
            If a loop is singular at q (nq,).
        """
        if self._opened is not None:
            return self._opened.torques(names, torques, q)
        E = self.jacobian(q)[[self._row[name] for name in names]]
        return np.asarray(numbers("torques", torques) @ E)
