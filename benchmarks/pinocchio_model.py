"""Pinocchio's model of a problem, in the form in which Pinocchio is fastest.

Joints come depth first, and every joint frame is turned until its axis is x, y or z, for
Pinocchio's joints about these axes are faster than those about any axis.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.cases import AbsentError
from delassus_ros import Problem
from delassus_ros.model import WORLD, Inertia, Joint, JointKind, Transform
from delassus_ros.model.spatial import Array, rotation_between


def pinocchio() -> ModuleType:
    """Return the package, or raise :class:`AbsentError`."""
    try:
        import pinocchio as pin
    except ImportError as error:
        raise AbsentError(f"the Python package pin is not installed ({error})") from error
    module: ModuleType = pin
    return module


def _se3(placement: Transform) -> Any:
    return pinocchio().SE3(np.array(placement.rotation), np.array(placement.translation))


def _inertia(inertia: Inertia) -> Any:
    pin = pinocchio()
    com = inertia.moment / inertia.mass if inertia.mass else np.zeros(3)
    about_com = inertia.rotational + inertia.mass * pin.skew(com) @ pin.skew(com)
    return pin.Inertia(inertia.mass, com, about_com)


def _kind(joint: Joint) -> tuple[str, Transform]:
    """Return Pinocchio's joint, and the turn from its child frame to the body's frame."""
    if joint.kind is JointKind.ROOT:
        return "JointModelFreeFlyer", Transform()
    letters = {JointKind.REVOLUTE: "R", JointKind.PRISMATIC: "P"}
    if joint.kind not in letters:
        raise AbsentError(f"joint {joint.name!r}: no peer for {joint.kind.label} joints")
    for k, name in enumerate("XYZ"):
        if np.array_equal(joint.axis, np.eye(3)[k]):
            return f"JointModel{letters[joint.kind]}{name}", Transform()
    turn = Transform(rotation_between((0, 0, 1), joint.axis))
    return f"JointModel{letters[joint.kind]}Z", turn


class PinocchioProblem:
    """A problem for Pinocchio.

    Parameters
    ----------
    problem : with contacts that are points or surfaces, in contact axes.

    Attributes
    ----------
    model : the pinocchio.Model.
    contacts, contact_data : rigid constraints, made once.
    """

    def __init__(self, problem: Problem) -> None:
        pin = pinocchio()
        robot = problem.robot
        self.model = pin.Model()
        self._kinds: list[str] = []
        self._entries: list[int] = []
        joint_of = {WORLD: 0}
        body_frame = {WORLD: Transform()}
        armature: list[float] = []
        children: dict[int, list[int]] = {}
        for i, joint in enumerate(robot.joints):
            children.setdefault(joint.parent, []).append(i)
        ahead = children[WORLD][::-1]
        while ahead:
            i = ahead.pop()
            ahead += children.get(i, [])[::-1]
            joint = robot.joints[i]
            kind, turn = _kind(joint)
            place = _se3(body_frame[joint.parent] @ joint.placement @ turn)
            joint_of[i] = self.model.addJoint(
                joint_of[joint.parent], getattr(pin, kind)(), place, joint.name
            )
            body_frame[i] = turn.inverse()
            self.model.appendBodyToJoint(
                joint_of[i], _inertia(robot.bodies[i].inertia), _se3(body_frame[i])
            )
            self._kinds.append(kind)
            armature += [joint.armature] + [0.0] * (joint.kind.nv - 1)
            if joint.kind.nq:
                self._entries.append(robot.q_offsets[i])
        self.model.armature = np.array(armature)
        self.contacts = pin.StdVec_RigidConstraintModel()
        self.contact_data = pin.StdVec_RigidConstraintData()
        self._poses: list[tuple[int, int, Any]] = []
        for contact in problem.contacts:
            if contact.kind_name == "selection":
                raise AbsentError(f"contact {contact.name!r}: no peer for selections")
            frame = robot.frames[contact.frame]
            pose = _se3(body_frame[frame.body] @ frame.placement @ contact.placement)
            kind = pin.ContactType.CONTACT_3D if contact.rows == 3 else pin.ContactType.CONTACT_6D
            joint_index = joint_of[frame.body]
            self._poses.append((joint_index, contact.rows, pose))
            rigid = pin.RigidConstraintModel(kind, self.model, joint_index, pose)
            self.contacts.append(rigid)
            self.contact_data.append(rigid.createData())

    def configurations(self, inputs: Array) -> Array:
        """Return Pinocchio's q, (count, model.nq), for ours, (count, nq)."""
        result = np.tile(self._neutral(), (inputs.shape[0], 1))
        result[:, result.shape[1] - len(self._entries) :] = inputs[:, self._entries]
        return result

    def motion(self, values: Array) -> Array:
        """Return rates or torques in Pinocchio's order, (count, model.nv), for ours."""
        first = values.shape[1] - len(self._entries)
        return np.hstack([values[:, :first], values[:, first:][:, self._entries]])

    def _neutral(self) -> Array:
        neutral: Array = pinocchio().neutral(self.model)
        return neutral

    def text(self) -> str:
        """Return the model and its contacts as numbers, for pinocchio_peer.cpp."""
        lines = [str(len(self._kinds))]
        for i, kind in enumerate(self._kinds, start=1):
            body = self.model.inertias[i]
            inertia = [body.mass, *body.lever, *body.inertia.ravel()]
            numbers = [*_pose_numbers(self.model.jointPlacements[i]), *inertia]
            lines.append(f"{kind} {self.model.parents[i]} {_numbers(numbers)}")
        lines.append(_numbers(self.model.armature))
        lines.append(str(len(self._poses)))
        for joint, rows, pose in self._poses:
            lines.append(f"{joint} {rows} {_numbers(_pose_numbers(pose))}")
        return "\n".join(lines) + "\n"


def _pose_numbers(pose: Any) -> list[float]:
    return [*pose.rotation.ravel(), *pose.translation]


def _numbers(values: Any) -> str:
    return " ".join(repr(float(value)) for value in values)
