"""Pinocchio models of robots, and G of a problem by Pinocchio.

Works with Pinocchio 3 and 4. The model is built joint by joint from the robot, so that both
use the same tree.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pinocchio as pin

from delassus.contacts import Contact
from delassus.model.robot import WORLD, Joint, JointKind, Robot
from delassus.model.spatial import Array, Inertia, Transform, rotation_between
from delassus.problem import Problem
from delassus.scalars.ports import Arrays, Status


def _se3(placement: Transform) -> pin.SE3:
    return pin.SE3(np.array(placement.rotation), np.array(placement.translation))


def _pin_inertia(inertia: Inertia) -> pin.Inertia:
    if inertia.mass == 0.0:
        return pin.Inertia(0.0, np.zeros(3), np.array(inertia.rotational))
    com = inertia.moment / inertia.mass
    about_com = inertia.rotational + inertia.mass * pin.skew(com) @ pin.skew(com)
    # For a point mass only rounding errors remain, and Pinocchio requires symmetry.
    return pin.Inertia(inertia.mass, com, 0.5 * (about_com + about_com.T))


def _joint_model(joint: Joint) -> tuple[object, Transform]:
    """Return Pinocchio's joint, and the rotation of the robot's body frame in its child frame."""
    axis = np.array(joint.axis)
    if joint.kind is JointKind.REVOLUTE:
        return pin.JointModelRevoluteUnaligned(*axis), Transform()
    if joint.kind is JointKind.PRISMATIC:
        return pin.JointModelPrismaticUnaligned(*axis), Transform()
    if joint.kind is JointKind.PLANAR:
        # Pinocchio's plane has normal z.
        return pin.JointModelPlanar(), Transform(rotation_between((0, 0, 1), axis))
    return pin.JointModelFreeFlyer(), Transform()


def _unit(quaternion: Array) -> Array:
    """Return a quaternion scaled to norm 1, as Pinocchio expects; NaN for norm zero."""
    return quaternion / (math.hypot(*quaternion) or math.nan)


class PinocchioModel:
    """A Pinocchio model of a robot, and the relation of its joints to the robot's bodies.

    Attributes
    ----------
    model : the pinocchio.Model.
    joint_of : Pinocchio joint index per body of the robot, WORLD included.
    body_frame : pose of the robot's body frame in the Pinocchio joint frame, per body.
    """

    def __init__(self, robot: Robot) -> None:
        self.model = pin.Model()
        self.joint_of = {WORLD: 0}
        self.body_frame = {WORLD: Transform()}
        self._robot = robot
        armature = []
        for i, joint in enumerate(robot.joints):
            kind, turn = _joint_model(joint)
            placement = self.body_frame[joint.parent] @ joint.placement @ turn
            self.joint_of[i] = self.model.addJoint(
                self.joint_of[joint.parent], kind, _se3(placement), joint.name
            )
            self.body_frame[i] = turn.inverse()
            self.model.appendBodyToJoint(
                self.joint_of[i],
                _pin_inertia(robot.bodies[i].inertia),
                _se3(self.body_frame[i]),
            )
            armature += [joint.armature] + [0.0] * (joint.kind.nv - 1)
        self.model.armature = np.array(armature)
        self._q: Array = pin.neutral(self.model)

    def configuration(self, inputs: Arrays) -> Array:
        """Return Pinocchio's q for the inputs of a kernel; calls share one array."""
        for i, (joint, offset) in enumerate(
            zip(self._robot.joints, self._robot.q_offsets, strict=True)
        ):
            start = self.model.idx_qs[self.joint_of[i]]
            entries = inputs["q"][offset : offset + joint.kind.nq]
            if joint.kind is JointKind.ROOT:
                orientation = inputs.get("base_orientation")
                if orientation is not None:
                    self._q[start + 3 : start + 7] = _unit(orientation)
            elif joint.kind is JointKind.PLANAR:
                x, y, angle = entries
                self._q[start : start + 4] = x, y, np.cos(angle), np.sin(angle)
            else:
                self._q[start : start + joint.kind.nq] = entries
                if joint.kind is JointKind.FLOATING:
                    self._q[start + 3 : start + 7] = _unit(entries[3:])
        return self._q


def computation(problem: Problem) -> Callable[[Arrays, Arrays], Status]:
    """Return the function that computes G of a problem by ``pinocchio.computeDelassusMatrix``.

    Parameters
    ----------
    problem : a problem with G as its only output.
    """
    robot = PinocchioModel(problem.robot)
    model, data = robot.model, robot.model.createData()
    constraints = pin.StdVec_RigidConstraintModel()
    joints: list[int] = []
    for contact in problem.contacts:
        frame = problem.robot.frames[contact.frame]
        pose = _se3(robot.body_frame[frame.body] @ frame.placement @ contact.placement)
        kind = (
            pin.ContactType.CONTACT_3D
            if contact.kind_name == "point"
            else pin.ContactType.CONTACT_6D
        )
        joint = robot.joint_of[frame.body]
        joints.append(joint)
        constraints.append(pin.RigidConstraintModel(kind, model, joint, pose))
    constraint_data = pin.StdVec_RigidConstraintData()
    for constraint in constraints:
        constraint_data.append(constraint.createData())
    turned = problem.axes == "world" or any(
        contact.kind_name == "selection" for contact in problem.contacts
    )

    placements = [_Placement(problem, contact, robot) for contact in problem.contacts
                  if contact.moving != "nothing"]  # fmt: skip

    def compute(inputs: Arrays, outputs: Arrays) -> Status:
        q = robot.configuration(inputs)
        for placement in placements:
            constraints[placement.index].joint1_placement = placement(inputs)
        upper = np.triu(pin.computeDelassusMatrix(model, data, q, constraints, constraint_data))
        G = upper + np.triu(upper, 1).T
        if turned:
            pin.forwardKinematics(model, data, q)
            poses = zip(joints, (c.joint1_placement for c in constraints), strict=True)
            T = _to_axes(problem, [(data.oMi[j] * pose).rotation for j, pose in poses])
            G = T @ G @ T.T
        if not np.isfinite(G).all():
            return Status.NOT_FINITE
        outputs["G"][...] = (G + G.T) / 2
        return Status.OK

    return compute


class _Placement:
    """The pose of a moving contact in its Pinocchio joint.

    Attributes
    ----------
    index : position of the contact in the contact set.
    """

    def __init__(self, problem: Problem, contact: Contact, robot: PinocchioModel) -> None:
        frame = problem.robot.frames[contact.frame]
        turns = contact.name in problem.turning
        self.index = problem.contacts.names.index(contact.name)
        self._frame = _se3(robot.body_frame[frame.body] @ frame.placement)
        self._position = problem.moving.index(contact.name)
        self._orientation = problem.turning.index(contact.name) if turns else None
        self._rotation: Array = contact.placement.rotation

    def __call__(self, inputs: Arrays) -> pin.SE3:
        """Return the pose for `inputs`."""
        rotation = self._rotation
        if self._orientation is not None:
            quaternion = pin.Quaternion(_unit(inputs["contact_orientations"][self._orientation]))
            rotation = quaternion.toRotationMatrix()
        return self._frame * pin.SE3(rotation, inputs["contact_positions"][self._position])


def _to_axes(problem: Problem, rotations: list[Array]) -> Array:
    """Return T (m, m'): Pinocchio's rows in contact axes → the problem's rows."""
    widths = [3 if contact.kind_name == "point" else 6 for contact in problem.contacts]
    T = np.zeros((problem.contacts.rows, sum(widths)))
    column = 0
    for i, (contact, width) in enumerate(zip(problem.contacts, widths, strict=True)):
        turn = np.eye(6)
        if problem.axes == "world":
            turn[:3, :3] = turn[3:, 3:] = rotations[i]
        row = problem.contacts.row_offsets[i]
        block = (contact.selection @ turn)[:, :width]
        T[row : row + contact.rows, column : column + width] = block
        column += width
    return T
