"""Closed robots in MuJoCo: equality constraints as constraint rows, exact to rounding.

Its equality constraints are soft in simulation. Their Jacobian efc_J, its mass matrix and its bias
forces are not, and these say everything about rigid constraints.
"""

from __future__ import annotations

import mujoco
import numpy as np
from mujoco_oracle import contact_rows, set_positions, specification, wxyz

from delassus_ros.model import WORLD, Body, Inertia, Loop, LoopKind, Robot
from delassus_ros.problem import Problem

_AXIAL = 0.3  # m, between the two points that make a hinge


def acceptable(robot: Robot) -> Robot:
    """Return the robot with inertias that MuJoCo takes: some published ones are no bodies'."""
    bodies = []
    for body in robot.bodies:
        inertia = body.inertia
        mass = max(inertia.mass, 1e-3)
        com = inertia.moment / inertia.mass if inertia.mass else np.zeros(3)
        c = np.cross(np.eye(3), com)
        principal, axes = np.linalg.eigh(inertia.rotational + inertia.mass * c @ c)
        principal = np.maximum(principal, 1e-6)
        principal[2] = min(principal[2], 0.99 * (principal[0] + principal[1]))
        principal[2] = max(principal)
        about_com = axes @ np.diag(principal) @ axes.T
        bodies.append(Body(body.name, Inertia.from_com(mass, com, about_com)))
    return Robot(
        robot.name, robot.joints, bodies, list(robot.frames.values()), robot.couplings,
        robot.loops, robot.independent, robot.functions,
    )  # fmt: skip


class ClosedModel:
    """A robot with couplings and loops in MuJoCo, at one configuration.

    Attributes
    ----------
    K : (rows, nv) the Jacobian of its equality constraints.
    M : (nv, nv) its mass matrix.
    bias : (nv,) forces at rest of all joints' accelerations, less the passive ones.

    All in the order of the robot's joints.
    """

    def __init__(self, robot: Robot) -> None:
        spec = specification(robot)
        for coupling in robot.couplings:
            tendon = spec.add_tendon(name=coupling.name)
            for joint, ratio in coupling.ratios:
                tendon.wrap_joint(joint, ratio)
            equality = spec.add_equality(
                name=coupling.name, type=mujoco.mjtEq.mjEQ_TENDON, name1=coupling.name
            )
            equality.objtype = mujoco.mjtObj.mjOBJ_TENDON
        for loop in robot.loops:
            self._add_loop(spec, loop)
        spec.option.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        self.robot, self.model = robot, spec.compile()
        self.data = mujoco.MjData(self.model)
        # Bodies come depth first there.
        self._order = np.concatenate([
            self.model.joint(joint.name).dofadr[0] + np.arange(joint.kind.nv)
            for joint in robot.joints
        ])  # fmt: skip

    def _add_loop(self, spec: mujoco.MjSpec, loop: Loop) -> None:
        points = {
            LoopKind.POINT: [np.zeros(3)],
            LoopKind.HINGE: [np.zeros(3), _AXIAL * loop.axis],
            LoopKind.WELD: [np.zeros(3), *np.eye(3)[:2]],
        }[loop.kind]
        for k, point in enumerate(points):
            ends = []
            for body, placement in (
                (loop.predecessor, loop.predecessor_placement),
                (loop.successor, loop.successor_placement),
            ):
                owner = spec.worldbody if body == WORLD else spec.body(f"body{body}")
                ends.append(f"{loop.name} {k} {body}")
                place = placement.translation + placement.rotation @ point
                owner.add_site(name=ends[-1], pos=place.tolist(), quat=wxyz(placement.rotation))
            spec.add_equality(
                name=f"{loop.name} {k}", type=mujoco.mjtEq.mjEQ_CONNECT, name1=ends[0],
                name2=ends[1], objtype=mujoco.mjtObj.mjOBJ_SITE,
            )  # fmt: skip

    def move(self, q: np.ndarray, qvel: np.ndarray | None = None) -> None:
        """Go to a configuration; the base stays at the origin."""
        set_positions(self.data, self.robot, q)
        self.data.qvel[self._order] = 0.0 if qvel is None else qvel
        mujoco.mj_forward(self.model, self.data)
        nv = self.model.nv
        self.K = self.data.efc_J[: self.data.nefc * nv].reshape(-1, nv)[:, self._order]
        columns = np.zeros((nv, nv))
        for column, unit in zip(columns, np.eye(nv), strict=True):
            mujoco.mj_mulM(self.model, self.data, column, unit)
        self.M = columns[np.ix_(self._order, self._order)]
        self.bias = (self.data.qfrc_bias - self.data.qfrc_passive)[self._order]

    def gap(self) -> float:
        """Return the largest distance between the ends of a loop [m]."""
        model, places = self.model, self.data.site_xpos
        loops = model.eq_type == mujoco.mjtEq.mjEQ_CONNECT
        ends = places[model.eq_obj1id[loops]] - places[model.eq_obj2id[loops]]
        return float(np.abs(ends).max(initial=0.0))

    def contacts(self, problem: Problem) -> np.ndarray:
        """Return the contacts' rows J (m, nv)."""
        return contact_rows(problem, self.model, self.data)[:, self._order]

    def delassus(self, problem: Problem) -> np.ndarray:
        """Return G: the Schur complement of the equality rows in [J; K] M⁻¹ [J; K]ᵀ."""
        J = contact_rows(problem, self.model, self.data)
        K = np.zeros_like(self.K)
        K[:, self._order] = self.K
        rows = np.ascontiguousarray(np.vstack([J, K]))
        solved = np.zeros_like(rows)
        mujoco.mj_solveM(self.model, self.data, solved, rows)
        A, m = rows @ solved.T, len(J)
        # Redundant rows of loops in a plane: as many singular values as the rows have rank.
        rank = np.linalg.matrix_rank(self.K, tol=1e-8)
        values, vectors = np.linalg.eigh(A[m:, m:])
        kept = vectors[:, len(values) - rank :]
        reduced = kept.T @ A[m:, :m]
        return A[:m, :m] - reduced.T @ np.linalg.solve(kept.T @ A[m:, m:] @ kept, reduced)
