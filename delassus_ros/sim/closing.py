"""Gears and linkages of a demo robot in MuJoCo: equalities, exact positions, velocities.

MuJoCo's equality constraints are soft: they hold to some 1e-4. This module computes positions that
satisfy all constraints to machine precision, from MuJoCo's kinematics.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from delassus_ros.errors import RobotError
from delassus_ros.model import Loop, LoopKind, Robot
from delassus_ros.model.clusters import Cluster, clusters_of
from delassus_ros.sim.reference import FloatArray

_STIFF = (0.004, 1.0)  # time constant [s] and damping ratio of the equalities
_TOLERANCE = 1e-13  # m, at which a linkage counts as closed
_MOST_ITERATIONS = 20


def add_equalities(spec: mujoco.MjSpec, robot: Robot) -> None:
    """Add the couplings and loops of a robot to its MuJoCo description.

    Raises
    ------
    RobotError
        If a coupling is not between two joints, or a loop is not a point or a hinge.
    """
    for coupling in robot.couplings:
        if len(coupling.ratios) != 2:
            raise RobotError(
                f"coupling {coupling.name!r} is between {len(coupling.ratios)} joints; "
                "MuJoCo couples two"
            )
        (first, a), (second, b) = coupling.ratios
        equality = spec.add_equality(name=coupling.name, type=mujoco.mjtEq.mjEQ_JOINT)
        equality.objtype = mujoco.mjtObj.mjOBJ_JOINT
        equality.name1, equality.name2 = first, second
        equality.data[:2] = -coupling.offset / a, -b / a
        equality.solref = _STIFF
    for loop in robot.loops:
        if loop.kind not in (LoopKind.POINT, LoopKind.HINGE):
            raise RobotError(
                f"loop {loop.name!r} is of kind {loop.kind.label}; expected point or hinge"
            )
        equality = spec.add_equality(name=loop.name, type=mujoco.mjtEq.mjEQ_CONNECT)
        equality.objtype = mujoco.mjtObj.mjOBJ_BODY
        equality.name1 = robot.bodies[loop.predecessor].name
        equality.name2 = robot.bodies[loop.successor].name
        equality.data[:3] = loop.predecessor_placement.translation
        equality.solref = _STIFF


def dependent_joints(robot: Robot) -> set[str]:
    """Return the names of the joints that couplings and loops determine."""
    clusters = [cluster for cluster in clusters_of(robot) if not cluster.is_ordinary]
    return {robot.joints[joint].name for cluster in clusters for joint in cluster.dependent}


class Closing:
    """Dependent positions and velocities of a robot from its independent ones.

    Parameters
    ----------
    model : the compiled model of :func:`add_equalities`, with a free base as first joint.
    robot : the same robot.
    """

    def __init__(self, model: mujoco.MjModel, robot: Robot) -> None:
        self._model = model
        self._data = mujoco.MjData(model)
        clusters = [cluster for cluster in clusters_of(robot) if not cluster.is_ordinary]
        self._gears = [_Gear(model, robot, c) for c in clusters if not c.loops]
        self._linkages = [_Linkage(model, robot, c) for c in clusters if c.loops]
        parts: list[_Part] = [*self._gears, *self._linkages]
        dependent = [int(dof) for part in parts for dof in part.dependent_dofs]
        free = [dof for dof in range(model.nv) if dof not in dependent]
        self._columns = [
            np.array([free.index(int(dof)) for dof in linkage.independent_dofs])
            for linkage in self._linkages
        ]
        self._map = np.zeros((model.nv, len(free)))
        self._map[free, range(len(free))] = 1.0
        for gear in self._gears:
            columns = np.array([free.index(int(dof)) for dof in gear.independent_dofs])
            self._map[np.ix_(gear.dependent_dofs, columns)] = gear.ratio

    @property
    def is_trivial(self) -> bool:
        """Whether the robot has no couplings and loops."""
        return not (self._gears or self._linkages)

    def close(self, qpos: FloatArray) -> None:
        """Write the dependent positions into MuJoCo's generalised positions, (nq,).

        Raises
        ------
        RobotError
            If a linkage cannot be closed near `qpos`.
        """
        for gear in self._gears:
            qpos[gear.dependent] = gear.ratio @ qpos[gear.independent] + gear.offset
        for linkage in self._linkages:
            self._close_linkage(linkage, qpos)

    def velocity_map(self, data: mujoco.MjData) -> FloatArray:
        """Return E (nv, n): independent velocities → all; `data` has its kinematics computed."""
        E: FloatArray = self._map.copy()
        for linkage, columns in zip(self._linkages, self._columns, strict=True):
            K = linkage.jacobian(data)
            E[np.ix_(linkage.dependent_dofs, columns)] = -np.linalg.lstsq(
                K[:, linkage.dependent_dofs], K[:, linkage.independent_dofs], rcond=None
            )[0]
        return E

    def _close_linkage(self, linkage: _Linkage, qpos: FloatArray) -> None:
        model, data = self._model, self._data
        data.qpos[:] = qpos
        # In the base's frame, where numbers are small.
        data.qpos[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
        for _ in range(_MOST_ITERATIONS):
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            gap = linkage.gap(data)
            if np.abs(gap).max() < _TOLERANCE:
                qpos[linkage.dependent] = data.qpos[linkage.dependent]
                return
            K = linkage.jacobian(data)[:, linkage.dependent_dofs]
            data.qpos[linkage.dependent] -= np.linalg.lstsq(K, gap, rcond=None)[0]
        raise RobotError(f"linkage {linkage.name!r} does not close; gap {gap} m")


class _Part:
    """Addresses of a cluster's joints in MuJoCo's positions and velocities."""

    def __init__(self, model: mujoco.MjModel, robot: Robot, cluster: Cluster) -> None:
        self.name = ", ".join(cluster.constraint_names)
        joints = robot.joints
        independent = [model.joint(joints[i].name) for i in cluster.independent]
        dependent = [model.joint(joints[i].name) for i in cluster.dependent]
        self.independent = np.array([int(j.qposadr[0]) for j in independent])
        self.dependent = np.array([int(j.qposadr[0]) for j in dependent])
        self.independent_dofs = np.array([int(j.dofadr[0]) for j in independent])
        self.dependent_dofs = np.array([int(j.dofadr[0]) for j in dependent])


class _Gear(_Part):
    """A cluster of couplings: dependent = ratio · independent + offset."""

    def __init__(self, model: mujoco.MjModel, robot: Robot, cluster: Cluster) -> None:
        super().__init__(model, robot, cluster)
        names = [joint.name for joint in robot.joints]
        K = np.zeros((len(cluster.couplings), len(names)))
        for row, coupling in zip(K, cluster.couplings, strict=True):
            for name, ratio in coupling.ratios:
                row[names.index(name)] = ratio
        solve = -np.linalg.inv(K[:, list(cluster.dependent)])
        self.ratio = solve @ K[:, list(cluster.independent)]
        self.offset = solve @ [coupling.offset for coupling in cluster.couplings]


@dataclass(frozen=True)
class _End:
    body: int
    point: FloatArray

    def position(self, data: mujoco.MjData) -> FloatArray:
        place: FloatArray = data.xpos[self.body] + data.xmat[self.body].reshape(3, 3) @ self.point
        return place


class _Linkage(_Part):
    """A cluster closed at points."""

    def __init__(self, model: mujoco.MjModel, robot: Robot, cluster: Cluster) -> None:
        super().__init__(model, robot, cluster)
        self._model = model
        self._ends = [_ends(model, robot, loop) for loop in cluster.loops]

    def gap(self, data: mujoco.MjData) -> FloatArray:
        """Return the gaps between the ends of loops (3 · loops,) [m]."""
        return np.concatenate([a.position(data) - b.position(data) for a, b in self._ends])

    def jacobian(self, data: mujoco.MjData) -> FloatArray:
        """Return the derivative of the gaps (3 · loops, nv)."""
        rows = []
        for ends in self._ends:
            first, second = np.zeros((2, 3, self._model.nv))
            for out, end in zip((first, second), ends, strict=True):
                mujoco.mj_jac(self._model, data, out, None, end.position(data), end.body)
            rows.append(first - second)
        return np.concatenate(rows)


def _ends(model: mujoco.MjModel, robot: Robot, loop: Loop) -> tuple[_End, _End]:
    first, second = (
        _End(model.body(robot.bodies[body].name).id, np.array(placement.translation))
        for body, placement in (
            (loop.predecessor, loop.predecessor_placement),
            (loop.successor, loop.successor_placement),
        )
    )
    return first, second
