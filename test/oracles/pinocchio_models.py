"""Pinocchio's numbers of a robot that moves, in this package's order."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from benchmarks import models
from benchmarks.pinocchio_peer import PinocchioRobot
from delassus_ros import Problem
from oracles import responses, symmetric


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
