"""Every output of a robot with joints of several freedoms, by the model of another library.

The library's mass matrix, bias forces, Jacobians and constraint rows are changed to the velocities
of the robot's joints, u = T v with T by ``Robot.v_to_…``, and constraints are eliminated.
Derivatives along the motion are differences of eighth order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pinocchio as pin

from delassus import Problem, Robot
from oracles import (
    coupling_rows,
    dependent,
    eliminate,
    independent_columns,
    responses,
    symmetric,
)

STEP_S = 3e-3
WEIGHTS = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}


def derivative(function) -> np.ndarray:
    """Return the derivative at 0 of a function of the time."""
    return sum(
        w * (function(k * STEP_S) - function(-k * STEP_S)) / STEP_S for k, w in WEIGHTS.items()
    )


class Library(ABC):
    """A model of another library, with its numbers at positions x and velocities u."""

    def __init__(self, robot: Robot, model) -> None:
        self.robot, self.model = robot, model

    @abstractmethod
    def positions(self, q, base) -> np.ndarray: ...
    @abstractmethod
    def velocities(self, x, v) -> np.ndarray: ...
    @abstractmethod
    def mass(self, x) -> np.ndarray: ...
    @abstractmethod
    def bias(self, x, u, gravity) -> np.ndarray: ...
    @abstractmethod
    def jacobian(self, x, frame: str, axes: str) -> np.ndarray:
        """Return the rows (6, nu) of a frame, linear first, along its axes or the world's."""

    def constraints(self, x) -> np.ndarray:
        return np.zeros((0, len(self.velocities(x, np.zeros(self.robot.nv)))))

    def change(self, x) -> np.ndarray:
        """Return T (nu, nv)."""
        return np.array([self.velocities(x, unit) for unit in np.eye(self.robot.nv)]).T


class Pinocchio(Library):
    def positions(self, q, base):
        return self.robot.q_to_pinocchio(self.model, q, base)

    def velocities(self, x, v):
        return self.robot.v_to_pinocchio(self.model, x, v)

    def mass(self, x):
        return symmetric(pin.crba(self.model, self.model.createData(), x))

    def bias(self, x, u, gravity):
        self.model.gravity.linear = gravity
        return pin.nle(self.model, self.model.createData(), x, u).copy()

    def jacobian(self, x, frame, axes):
        number = self.model.getFrameId(frame)
        along = pin.LOCAL if axes == "contact" else pin.LOCAL_WORLD_ALIGNED
        return pin.computeFrameJacobian(self.model, self.model.createData(), x, number, along)


class Mujoco(Library):
    def _at(self, x, u=None):
        import mujoco

        data = mujoco.MjData(self.model)
        data.qpos[:] = x
        if u is not None:
            data.qvel[:] = u
        mujoco.mj_forward(self.model, data)
        return data

    def positions(self, q, base):
        return self.robot.q_to_mujoco(self.model, q, base)

    def velocities(self, x, v):
        return self.robot.v_to_mujoco(self.model, x, v)

    def mass(self, x):
        import mujoco

        data, columns = self._at(x), np.zeros((self.model.nv, self.model.nv))
        for column, unit in zip(columns, np.eye(self.model.nv), strict=True):
            mujoco.mj_mulM(self.model, data, column, unit)
        return columns

    def bias(self, x, u, gravity):
        self.model.opt.gravity[:] = gravity
        return self._at(x, u).qfrc_bias.copy()

    def jacobian(self, x, frame, axes):
        import mujoco

        data, rows = self._at(x), np.zeros((2, 3, self.model.nv))
        number = self.model.body(frame).id
        mujoco.mj_jacBody(self.model, data, rows[0], rows[1], number)
        R = data.xmat[number].reshape(3, 3) if axes == "contact" else np.eye(3)
        return np.vstack([R.T @ rows[0], R.T @ rows[1]])

    def constraints(self, x):
        data = self._at(x)
        return data.efc_J.reshape(-1, self.model.nv)[: data.ne].copy()


def expected(
    library: Library, problem: Problem, q, base, rates, torques, gravity
) -> dict[str, np.ndarray]:
    """Return the outputs of a problem at a configuration at which its loops are closed.

    Parameters
    ----------
    base : pose (7,) of a floating base, or None.
    rates, torques : (n,) of the independent velocities.
    """
    robot = problem.robot
    free = independent_columns(problem)

    def at(v, time):
        pose = base
        if base is not None:
            moved = pin.XYZQUATToSE3(base) * pin.exp6(v[:6] * time)
            pose = pin.SE3ToXYZQUAT(moved)
        moving = v[6:] if base is not None else v
        return library.positions(q + time * moving, pose)

    def J(x):
        frames = [
            contact.selection @ library.jacobian(x, contact.frame, problem.axes)
            for contact in problem.contacts
        ]
        return np.vstack(frames) @ library.change(x)

    def K(x):
        return np.vstack([coupling_rows(robot), library.constraints(x) @ library.change(x)])

    x = at(np.zeros(robot.nv), 0.0)
    rows = K(x)
    E = eliminate(rows, free)
    v = E @ rates
    T = library.change(x)
    M_L = library.mass(x)
    # du/dt of constant velocities of the joints.
    turning = derivative(lambda time: library.change(at(v, time))) @ v
    bias = T.T @ (M_L @ turning + library.bias(x, T @ v, gravity))
    gamma = dependent(rows, free, derivative(lambda time: K(at(v, time))) @ v)
    M_v = T.T @ M_L @ T
    found = responses(E.T @ M_v @ E, J(x) @ E)
    found["h"] = E.T @ (M_v @ gamma + bias)
    found["JdotV"] = J(x) @ gamma + derivative(lambda time: J(at(v, time))) @ v
    found["qdd0"] = np.linalg.solve(found["M"], torques - found["h"])
    found["a0"] = found["J"] @ found["qdd0"] + found["JdotV"]
    return found
