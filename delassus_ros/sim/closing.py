"""Gears and linkages of a demo robot in MuJoCo: equalities, exact positions, velocities.

MuJoCo's equality constraints are soft: they hold to some 1e-4. This module computes positions that
satisfy all constraints to machine precision, from MuJoCo's kinematics.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from delassus.errors import RobotError
from delassus.model import Loop, LoopKind, Robot
from delassus.model.clusters import clusters_of
from delassus_ros.sim.reference import FloatArray, IntArray

_STIFF = (0.004, 1.0)  # time constant [s] and damping ratio of the equalities
_TOLERANCE = 1e-13  # m, at which a loop counts as closed
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

    Couplings and loops are rows of one system of equations, whose gaps are zero where all of them
    close: first a row per coupling [rad], then three rows per loop [m].

    Parameters
    ----------
    model : the compiled model of :func:`add_equalities`, with a free base as first joint.
    robot : the same robot.
    """

    def __init__(self, model: mujoco.MjModel, robot: Robot) -> None:
        self._model, self._data = model, mujoco.MjData(model)
        self._ratios = np.zeros((len(robot.couplings), model.nv))
        for row, coupling in zip(self._ratios, robot.couplings, strict=True):
            for name, ratio in coupling.ratios:
                row[model.joint(name).dofadr] = ratio
        self._offsets = np.array([coupling.offset for coupling in robot.couplings])
        self._loops = {loop.name: _ends(model, robot, loop) for loop in robot.loops}
        dependent = [int(model.joint(name).dofadr[0]) for name in dependent_joints(robot)]
        self._dependent = np.array(sorted(dependent), dtype=np.intp)
        self._free = np.setdiff1d(np.arange(model.nv), self._dependent)
        self._positions: IntArray = model.jnt_qposadr[model.dof_jntid]

    @property
    def is_trivial(self) -> bool:
        """Whether the robot has no couplings and loops."""
        return not len(self._dependent)

    def close(self, qpos: FloatArray) -> None:
        """Write the dependent positions into MuJoCo's generalised positions, (nq,).

        Raises
        ------
        RobotError
            If a loop cannot be closed near `qpos`.
        """
        if self.is_trivial:
            return
        model, data, places = self._model, self._data, self._positions[self._dependent]
        data.qpos[:] = qpos
        # In the base's frame, where numbers are small.
        data.qpos[:7] = 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0
        for _ in range(_MOST_ITERATIONS):
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            gaps = self._gaps(data)
            if np.abs(gaps).max() < _TOLERANCE:
                qpos[places] = data.qpos[places]
                return
            K = self._jacobian(data)[:, self._dependent]
            data.qpos[places] -= np.linalg.lstsq(K, gaps, rcond=None)[0]
        of_loops = dict(zip(self._loops, gaps[len(self._offsets) :].reshape(-1, 3), strict=True))
        name, gap = max(of_loops.items(), key=lambda item: float(np.abs(item[1]).max()))
        raise RobotError(f"linkage {name!r} does not close; gap {gap} m")

    def velocity_map(self, data: mujoco.MjData) -> FloatArray:
        """Return E (nv, n): independent velocities → all; `data` has its kinematics computed."""
        K = self._jacobian(data)
        E = np.zeros((self._model.nv, len(self._free)))
        E[self._free, range(len(self._free))] = 1.0
        solved, *_ = np.linalg.lstsq(K[:, self._dependent], K[:, self._free], rcond=None)
        E[self._dependent] = -solved
        return E

    def _gaps(self, data: mujoco.MjData) -> FloatArray:
        """Return the gaps of couplings [rad] and between the ends of loops [m]."""
        couplings = self._ratios @ data.qpos[self._positions] + self._offsets
        loops = [a.position(data) - b.position(data) for a, b in self._loops.values()]
        return np.concatenate([couplings, *loops])

    def _jacobian(self, data: mujoco.MjData) -> FloatArray:
        """Return the derivative of the gaps by the velocities, (rows, nv)."""
        rows = [self._ratios]
        for ends in self._loops.values():
            first, second = np.zeros((2, 3, self._model.nv))
            for out, end in zip((first, second), ends, strict=True):
                mujoco.mj_jac(self._model, data, out, None, end.position(data), end.body)
            rows.append(first - second)
        return np.concatenate(rows)


@dataclass(frozen=True)
class _End:
    body: int
    point: FloatArray

    def position(self, data: mujoco.MjData) -> FloatArray:
        place: FloatArray = data.xpos[self.body] + data.xmat[self.body].reshape(3, 3) @ self.point
        return place


def _ends(model: mujoco.MjModel, robot: Robot, loop: Loop) -> tuple[_End, _End]:
    first, second = (
        _End(model.body(robot.bodies[body].name).id, np.array(placement.translation))
        for body, placement in (
            (loop.predecessor, loop.predecessor_placement),
            (loop.successor, loop.successor_placement),
        )
    )
    return first, second
