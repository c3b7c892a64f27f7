"""MuJoCo as an oracle: models made from a robot's data, and models of its own.

Its equality constraints are soft in simulation. Their Jacobian efc_J, its mass matrix and its bias
forces are not, and these say everything about rigid constraints, exact to rounding.
"""

from __future__ import annotations

import mujoco
import numpy as np

from benchmarks import models
from delassus.model import WORLD, Body, Inertia, JointKind, Loop, LoopKind, Robot, Transform
from delassus.problem import Problem
from delassus_ros.sim.quadruped import stepping_quadruped
from oracles import eliminate, independent_columns, responses

_AXIAL = 0.3  # m, between the two points that make a hinge


def wxyz(rotation: np.ndarray) -> list[float]:
    """Return MuJoCo's quaternion of a rotation."""
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(rotation).ravel())
    return quaternion.tolist()


def specification(robot: Robot) -> mujoco.MjSpec:
    """Return the MjSpec of a robot with revolute, prismatic and free root joints."""
    spec = mujoco.MjSpec()
    spec.compiler.degree = False
    spec.compiler.balanceinertia = False
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    bodies = {WORLD: spec.worldbody}
    for i, joint in enumerate(robot.joints):
        placement = joint.placement
        body = bodies[joint.parent].add_body(
            name=f"body{i}", pos=placement.translation.tolist(), quat=wxyz(placement.rotation)
        )
        inertia = robot.bodies[i].inertia
        com = inertia.moment / inertia.mass
        c = np.cross(np.eye(3), com)
        about_com = inertia.rotational + inertia.mass * c @ c
        principal, axes = np.linalg.eigh(about_com)
        axes[:, 0] *= np.linalg.det(axes)
        body.mass, body.ipos = inertia.mass, com.tolist()
        body.inertia, body.iquat = principal.tolist(), wxyz(axes)
        body.explicitinertial = True
        compensated = robot.bodies[i].compensated
        body.gravcomp = compensated.mass / inertia.mass
        np.testing.assert_allclose(compensated.moment, body.gravcomp * inertia.moment, rtol=1e-12)
        kind = {
            JointKind.ROOT: mujoco.mjtJoint.mjJNT_FREE,
            JointKind.REVOLUTE: mujoco.mjtJoint.mjJNT_HINGE,
            JointKind.PRISMATIC: mujoco.mjtJoint.mjJNT_SLIDE,
        }[joint.kind]
        if joint.kind is JointKind.ROOT:
            body.add_joint(name=joint.name, type=kind)
        else:
            # From MuJoCo 4 on, coefficients of polynomials.
            own = body.add_joint(
                name=joint.name, type=kind, axis=joint.axis.tolist(), armature=joint.armature
            )
            own.springref = joint.spring_reference
            own.stiffness = np.eye(1, np.size(own.stiffness))[0] * joint.stiffness
            own.damping = np.eye(1, np.size(own.damping))[0] * joint.damping
        bodies[i] = body
    return spec


def set_positions(data: mujoco.MjData, robot: Robot, q: np.ndarray) -> None:
    """Write q; a free root stays where it is."""
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.kind.nq:
            data.joint(joint.name).qpos[0] = q[offset]


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


class MujocoModel:
    """A robot in MuJoCo, its couplings and loops equality constraints, at one configuration.

    Attributes
    ----------
    K : (rows, nv) the Jacobian of its equality constraints.
    M : (nv, nv) its mass matrix.
    bias : (nv,) forces at rest of all joints' accelerations, less the passive ones.
    turning : (nv,) accelerations of MuJoCo's velocities at rest of all joints' accelerations.
    qacc : (nv,) accelerations of unconstrained joints under the torques.

    All in the velocities of the robot's joints, the base's twist in the axes of its link.
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

    def move(
        self,
        q: np.ndarray,
        v: np.ndarray | None = None,
        torques: np.ndarray | None = None,
        orientation: np.ndarray | None = None,
    ) -> None:
        """Go to a configuration and velocities v; the base stays at the origin."""
        model, data, nv = self.model, self.data, self.model.nv
        set_positions(data, self.robot, q)
        v = np.zeros(nv) if v is None else v
        # MuJoCo's velocities of ours: in its order, the base's linear one in the world's axes.
        self._change = np.zeros((nv, nv))
        self._change[self._order, np.arange(nv)] = 1.0
        self.turning = np.zeros(nv)
        if self.robot.base == "floating":
            R = np.eye(3)
            if orientation is not None:
                R = rotation_of(orientation)
                data.joint(self.robot.joints[0].name).qpos[3:] = wxyz(R)
            self._change[self._order[:3], :3] = R
            self.turning[self._order[:3]] = R @ np.cross(v[3:6], v[:3])
        data.qvel[:] = self._change @ v
        data.qfrc_applied[:] = 0.0 if torques is None else self._change @ torques
        mujoco.mj_forward(model, data)
        self.K = data.efc_J[: data.nefc * nv].reshape(-1, nv) @ self._change
        mass = np.zeros((nv, nv))
        for column, unit in zip(mass, np.eye(nv), strict=True):
            mujoco.mj_mulM(model, data, column, unit)
        self.M = self._change.T @ mass @ self._change
        forces = data.qfrc_bias - data.qfrc_passive
        self.bias = self._change.T @ (mass @ self.turning + forces)
        self.qacc = self._change.T @ (data.qacc - self.turning)

    def gap(self) -> float:
        """Return the largest distance between the ends of a loop [m]."""
        model, places = self.model, self.data.site_xpos
        loops = model.eq_type == mujoco.mjtEq.mjEQ_CONNECT
        ends = places[model.eq_obj1id[loops]] - places[model.eq_obj2id[loops]]
        return float(np.abs(ends).max(initial=0.0))

    def contact_rows(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """Return J (m, nv) in the problem's axes, and J̇ v (m,) of rows in the world's axes."""
        model, data = self.model, self.data
        rows, bias = [], []
        for contact in problem.contacts:
            frame = problem.robot.frames[contact.frame]
            pose = frame.placement @ contact.placement
            body = model.body(f"body{frame.body}").id
            turn = data.xmat[body].reshape(3, 3)
            point = data.xpos[body] + turn @ pose.translation
            own, moving = np.zeros((6, model.nv)), np.zeros((6, model.nv))
            mujoco.mj_jac(model, data, own[:3], own[3:], point, body)
            mujoco.mj_jacDot(model, data, moving[:3], moving[3:], point, body)
            axes = np.eye(3) if problem.axes == "world" else (turn @ pose.rotation).T
            rows.append(contact.selection @ np.kron(np.eye(2), axes) @ own @ self._change)
            bias.append(contact.selection @ (moving @ data.qvel + own @ self.turning))
        return np.vstack(rows), np.concatenate(bias)


def outputs(problem: Problem, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return G, J, M⁻¹Jᵀ and M; of open robots with world axes and rates all of the motion."""
    model = MujocoModel(problem.robot)
    if "gravity" in inputs:
        model.model.opt.gravity[:] = inputs["gravity"]
    rates, torques = inputs.get("rates"), inputs.get("torques")
    model.move(inputs["q"], rates, torques, inputs.get("base_orientation"))
    assert model.gap() < 1e-10
    E = eliminate(model.K, independent_columns(problem))
    J, JdotV = model.contact_rows(problem)
    found = responses(E.T @ model.M @ E, J @ E)
    if rates is not None:
        assert problem.axes == "world"
        assert not model.data.nefc
        free = np.linalg.solve(model.M, torques - model.bias)
        found |= {"h": model.bias, "JdotV": JdotV, "qdd0": model.qacc, "a0": J @ free + JdotV}
    return found


def rotation_of(quaternion: np.ndarray) -> np.ndarray:
    found = np.zeros(9)
    mujoco.mju_quat2Mat(found, np.roll(quaternion, 1))
    return found.reshape(3, 3)


def of_mujoco(model, frames: list[str], positions: dict[str, float], qpos=None) -> np.ndarray:
    """Return G of a model at bodies or sites of these names, along their axes, loops counted.

    Parameters
    ----------
    positions : of joints with a name; the others are at `qpos`.
    """
    qpos = np.array(model.qpos0 if qpos is None else qpos)
    for name, value in positions.items():
        qpos[model.joint(name).qposadr[0]] = value
    return models.of_mujoco(model, frames, qpos)


def standing_quadruped() -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return MuJoCo's quadruped, settled on its feet, with rigid contacts in dense rows."""
    model = stepping_quadruped()._model
    model.opt.solver = mujoco.mjtSolver.mjSOL_PGS
    model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    model.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    data = mujoco.MjData(model)
    data.qpos[7:] = data.ctrl[:] = (0.0, 0.7, -1.4) * 4
    data.qpos[2] = 0.5
    for _ in range(2000):
        mujoco.mj_step(model, data)
    return model, data


def own_contacts(
    model: mujoco.MjModel, data: mujoco.MjData
) -> tuple[dict[str, Transform], dict[str, np.ndarray], np.ndarray]:
    """Return by leg MuJoCo's contact in the foot's frame and its axes in the world, and its G."""
    places, axes, rows = {}, {}, []
    for k in range(data.ncon):
        found = data.contact[k]
        assert found.dim == 3
        body = max(model.geom_bodyid[found.geom1], model.geom_bodyid[found.geom2])
        leg = model.body(body).name.partition("_")[0]
        foot = model.body(f"{leg}_FOOT").id
        world = Transform(data.xmat[foot].reshape(3, 3), data.xpos[foot])
        # Rows of contact.frame are the contact's axes in the world: normal, two tangents.
        axes[leg] = found.frame.reshape(3, 3)
        places[leg] = world.inverse() @ Transform(axes[leg].T, found.pos)
        rows += range(found.efc_address, found.efc_address + 3)
    full = data.efc_AR.reshape(data.nefc, data.nefc) - np.diag(data.efc_R)
    return places, axes, full[np.ix_(rows, rows)]
