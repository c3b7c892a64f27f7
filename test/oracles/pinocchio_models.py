"""Pinocchio's numbers of a robot that moves, in this package's order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pinocchio as pin

from benchmarks import models
from benchmarks.pinocchio_peer import PinocchioRobot
from delassus import Problem, Robot
from delassus.algorithms.pinocchio_model import PinocchioModel
from delassus.model.spatial import Transform
from oracles import GRAVITY, responses, symmetric


class PinocchioDynamics:
    """Pinocchio's dynamics of a robot at positions q (nq,).

    Armatures count in `inverse` and `forward`, whatever RNEA of a version makes of them.

    Parameters
    ----------
    gravity : acceleration (3,), along the axes of the base [m/s²].
    """

    def __init__(self, robot: Robot, q: np.ndarray, gravity: np.ndarray = GRAVITY) -> None:
        self._robot, self._built = robot, PinocchioModel(robot)
        self.model = self._built.model
        self.model.gravity.linear = np.asarray(gravity)
        self.data, self.q = self.model.createData(), self._built.configuration({"q": q})
        self._armature = self.model.armature.copy()

    def place(self, body: int, placement: Transform) -> tuple[int, pin.SE3]:
        """Return Pinocchio's joint of a body, and the pose in it of a placement on the body."""
        pose = self._built.body_frame[body] @ placement
        return self._built.joint_of[body], pin.SE3(pose.rotation, pose.translation)

    def frame(self, name: str) -> tuple[int, pin.SE3]:
        """Return Pinocchio's joint of a frame, and the pose of the frame in it."""
        return self.place(self._robot.frames[name].body, self._robot.frames[name].placement)

    def inverse(
        self, rates: np.ndarray, accelerations: np.ndarray, wrenches: Mapping = {}
    ) -> np.ndarray:
        """Return the torques (nv,) of a motion; `wrenches` (6,) by frame, along its axes."""
        self.model.armature = 0.0 * self._armature
        torques = pin.rnea(
            self.model, self.data, self.q, rates, accelerations, self._forces(wrenches)
        )
        self.model.armature = self._armature
        return np.asarray(torques + self._armature * accelerations)

    def forward(
        self, rates: np.ndarray, torques: np.ndarray, wrenches: Mapping = {}
    ) -> np.ndarray:
        """Return the accelerations (nv,) by torques and wrenches."""
        forces = self._forces(wrenches)
        return np.array(pin.aba(self.model, self.data, self.q, rates, torques, forces))

    def _forces(self, wrenches: Mapping) -> pin.StdVec_Force:
        found = pin.StdVec_Force([pin.Force.Zero() for _ in range(self.model.njoints)])
        for frame, wrench in wrenches.items():
            joint, pose = self.frame(frame)
            found[joint] = found[joint] + pose.act(pin.Force(wrench))
        return found


class Peer:
    """Pinocchio's model of ours and its numbers in our order."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.robot = problem, PinocchioRobot(problem.robot)
        self.model, self.joints = self.robot.model, self.robot.joints
        order = self.robot.motion(np.arange(self.model.nv, dtype=float)[None])[0]
        self.indices = np.argsort(order)
        for contact in problem.contacts:
            joint, pose = self.robot.place_of(contact)
            name = f"contact {contact.name}"
            self.model.addFrame(pin.Frame(name, joint, 0, pose, pin.FrameType.OP_FRAME))
        self.data = self.model.createData()

    def state(self, inputs: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return Pinocchio's q, v and torques at our inputs, and set gravity."""
        model = self.model
        q = self.robot.configurations(np.array(inputs["q"], dtype=float)[None])[0]
        if self.problem.robot.base == "floating":
            q[3:7] = inputs.get("base_orientation", [0, 0, 0, 1])
        v, torques = np.zeros(model.nv), np.zeros(model.nv)
        v[self.indices] = inputs.get("rates", v)
        torques[self.indices] = inputs.get("torques", torques)
        model.gravity.linear = inputs.get("gravity", np.zeros(3))
        return q, v, torques

    def at(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs at our inputs."""
        model, data = self.model, self.data
        q, v, torques = self.state(inputs)
        M = symmetric(pin.crba(model, data, q))
        h = pin.nle(model, data, q, v).copy()
        free = pin.aba(model, data, q, v, torques).copy()
        J = self._jacobian(q)[:, self.indices]
        return responses(M[np.ix_(self.indices, self.indices)], J) | {
            "h": h[self.indices],
            "JdotV": self._accelerations(q, v, 0.0 * v),
            "a0": self._accelerations(q, v, free),
            "material": self._accelerations(q, v, free, material=True),
            "v": J @ v[self.indices],
        }

    def _jacobian(self, q: np.ndarray) -> np.ndarray:
        axes = pin.LOCAL_WORLD_ALIGNED if self.problem.axes == "world" else pin.LOCAL
        found = []
        for contact in self.problem.contacts:
            number = self.model.getFrameId(f"contact {contact.name}")
            J = pin.computeFrameJacobian(self.model, self.data, q, number, axes)
            found.append(contact.selection @ J)
        return np.vstack(found)

    def _accelerations(
        self, q: np.ndarray, v: np.ndarray, a: np.ndarray, material: bool = False
    ) -> np.ndarray:
        """Of contacts: spatial ones in their own axes, classical ones in those of the world.

        Parameters
        ----------
        material : classical ones in all axes.
        """
        world = self.problem.axes == "world"
        pin.forwardKinematics(self.model, self.data, q, v, a)
        pin.updateFramePlacements(self.model, self.data)
        found = []
        for contact in self.problem.contacts:
            number = self.model.getFrameId(f"contact {contact.name}")
            is_classical = world or material
            of = pin.getFrameClassicalAcceleration if is_classical else pin.getFrameAcceleration
            axes = pin.LOCAL_WORLD_ALIGNED if world else pin.LOCAL
            found.append(contact.selection @ of(self.model, self.data, number, axes).vector)
        return np.concatenate(found)


def outputs(problem: Problem, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return G, J, M⁻¹Jᵀ, M and the outputs of the motion of an open robot."""
    return Peer(problem).at(inputs)


def dynamics_of_frames(
    model: pin.Model, q: np.ndarray, v: np.ndarray, frames: Sequence[str]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return M, h, J and J̇v, six rows a frame along the axes of the world, of Pinocchio's v."""
    data = model.createData()
    M, h = symmetric(pin.crba(model, data, q)), pin.nle(model, data, q, v).copy()
    pin.forwardKinematics(model, data, q, v, 0.0 * v)
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    axes, numbers = pin.LOCAL_WORLD_ALIGNED, [model.getFrameId(name) for name in frames]
    J = [pin.getFrameJacobian(model, data, k, axes) for k in numbers]
    bias = [pin.getFrameClassicalAcceleration(model, data, k, axes).vector for k in numbers]
    return M, h, np.vstack(J), np.concatenate(bias)


def of_pinocchio(model, frames: list[str], positions: dict[str, float]) -> np.ndarray:
    """Return G of frames of a model, along their axes."""
    q = pin.neutral(model)
    for name, value in positions.items():
        joint = model.joints[model.getJointId(name)]
        if joint.nq == 2:
            q[joint.idx_q : joint.idx_q + 2] = np.cos(value), np.sin(value)
        else:
            q[joint.idx_q] = value
    return models.of_pinocchio(model, frames, q)
