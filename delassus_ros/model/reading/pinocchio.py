"""A robot from a Pinocchio model: the same joints, bodies and frames."""

from __future__ import annotations

from typing import Any

import numpy as np

from delassus_ros.arguments import sized
from delassus_ros.errors import RobotError
from delassus_ros.model.constraints import Coupling
from delassus_ros.model.robot import WORLD, Body, Frame, Joint, JointKind, Robot
from delassus_ros.model.spatial import Array, Inertia, Transform

_MIMIC = "JointModelMimic"
_EXACT = 1e-12
"""Of the parts of a joint's direction: less is none."""


def read_pinocchio(model: Any) -> Robot:
    """Return the robot of a pinocchio.Model.

    Joints have their names, bodies are called after them; frames are those of links, sensors and
    operation, and of joints where no other has the name. Joints without armature have that of
    their rotors times the squares of their ratios, which Pinocchio's crba leaves out. Positions of
    joints without bounds are angles here, where Pinocchio has cosine and sine.

    Raises
    ------
    RobotError
        If a joint has no counterpart: helical, spherical, universal, composite and the like, or
        one of several freedoms with armature; names it and its type.
    """
    import pinocchio as pin

    data = model.createData()
    pin.forwardKinematics(model, data, pin.neutral(model))
    joints: list[Joint] = []
    bodies: list[Body] = []
    couplings: list[Coupling] = []
    body_of = {0: WORLD}
    for j in range(1, model.njoints):
        name, joint = model.names[j], model.joints[j]
        parent, pose = body_of[model.parents[j]], model.jointPlacements[j]
        placement = Transform(pose.rotation, pose.translation)
        kind, axis = _kind(name, joint, data.joints[j], first=not joints and parent == WORLD)
        armature, lower, upper = 0.0, -np.inf, np.inf
        own = slice(joint.idx_v, joint.idx_v + joint.nv)
        rotors = model.rotorInertia[own] * model.rotorGearRatio[own] ** 2
        armatures = np.where(model.armature[own] != 0.0, model.armature[own], rotors)
        if joint.nv > 1 and armatures.any():
            raise RobotError(
                f"joint {name!r} is a {joint.shortname()} with armature {armatures.tolist()}, "
                "which has no counterpart here; expected those of revolute and prismatic joints"
            )
        if joint.nv == 1:
            armature = float(armatures[0])
            if joint.nq == 1:
                q = joint.idx_q
                lower, upper = model.lowerPositionLimit[q], model.upperPositionLimit[q]
        body_of[j] = len(joints)
        limits = (float(lower), float(upper)) if lower <= upper else (-np.inf, np.inf)
        joints.append(Joint(name, kind, parent, placement, axis, armature, *limits))
        inertia = model.inertias[j]
        bodies.append(Body(name, Inertia.from_com(inertia.mass, inertia.lever, inertia.inertia)))
        if joint.shortname() == _MIMIC:
            couplings.append(_mimic(model, j, joint))
    return Robot(model.name or "robot", joints, bodies, _frames(model, body_of), couplings)


def _kind(name: str, joint: Any, data: Any, first: bool) -> tuple[JointKind, np.ndarray]:
    """Return the kind of a joint and its axis."""
    z, short = np.array([0.0, 0.0, 1.0]), joint.shortname()
    if short == "JointModelFreeFlyer":
        return (JointKind.ROOT if first else JointKind.FLOATING), z
    if short == "JointModelPlanar":
        return JointKind.PLANAR, z
    S = np.asarray(data.S, dtype=float).reshape(6, -1)
    if short == _MIMIC:
        # Its own motion, of which Pinocchio has that by its primary's position.
        S = S / joint.extract().scaling
    if S.shape[1] == 1 and short not in ("JointModelComposite", "JointModelEllipsoid"):
        linear, angular = S[:3, 0], S[3:, 0]
        if np.abs(linear).max() < _EXACT:
            return JointKind.REVOLUTE, angular / np.linalg.norm(angular)
        if np.abs(angular).max() < _EXACT:
            return JointKind.PRISMATIC, linear / np.linalg.norm(linear)
    raise RobotError(
        f"joint {name!r} is a {short}, which has no counterpart here; expected revolute, "
        "prismatic and planar joints and free-flyers"
    )


def _mimic(model: Any, j: int, joint: Any) -> Coupling:
    """Return what couples a mimicking joint to its primary."""
    pairs = zip(model.mimicking_joints, model.mimicked_joints, strict=True)
    primary = next(model.names[first] for second, first in pairs if second == j)
    own = joint.extract()
    ratios = ((model.names[j], 1.0), (primary, -float(own.scaling)))
    return Coupling(f"{model.names[j]} mimics {primary}", ratios, -float(own.offset))


def _frames(model: Any, body_of: dict[int, int]) -> list[Frame]:
    import pinocchio as pin

    kinds = pin.FrameType
    found: dict[str, Frame] = {}
    # Links first: joints may be called as they are.
    for wanted in ((kinds.BODY, kinds.OP_FRAME, kinds.SENSOR), (kinds.JOINT, kinds.FIXED_JOINT)):
        for frame in model.frames:
            if frame.type in wanted and frame.name not in found and frame.name != "universe":
                pose = frame.placement
                place = Transform(pose.rotation, pose.translation)
                found[frame.name] = Frame(frame.name, body_of[frame.parentJoint], place)
    return list(found.values())


def positions_from(robot: Robot, model: Any, q: Array) -> tuple[Array, Array | None]:
    """Return a robot's q (nq,), and the pose of its floating base (7,): x, y, z, quaternion xyzw.

    Parameters
    ----------
    q : Pinocchio's configuration (model.nq,).

    Raises
    ------
    RobotError
        If the configuration has another size, or the model lacks one of the robot's joints.
    """
    taken = sized("q", q, model.nq, "the model's", RobotError)
    found, base = robot.neutral(), None
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        own = _place(robot, model, joint)
        values = taken[own.idx_q : own.idx_q + own.nq]
        if joint.kind is JointKind.ROOT:
            base = values.copy()
        elif own.shortname() == _MIMIC:
            # It has no position of its own: that is its primary's.
            mimic = own.extract()
            found[offset] = mimic.scaling * taken[own.idx_q] + mimic.offset
        elif joint.kind.nq == own.nq:
            found[offset : offset + own.nq] = values
        else:
            # An angle as its cosine and sine, in the plane behind x and y.
            angle = np.arctan2(values[-1], values[-2])
            found[offset : offset + joint.kind.nq] = [*values[:-2], angle]
    return found, base


def positions_to(robot: Robot, model: Any, q: Array, base: Array | None = None) -> Array:
    """Return Pinocchio's configuration (model.nq,); the inverse of :func:`positions_from`.

    Joints of the model that the robot lacks stay neutral, and so does a base that is not given;
    what mimics follows its primary.

    Raises
    ------
    RobotError
        If q has another size, or the model lacks one of the robot's joints.
    """
    import pinocchio as pin

    given = sized("q", q, robot.nq, "the robot's", RobotError)
    found: Array = pin.neutral(model)
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        own = _place(robot, model, joint)
        if own.shortname() == _MIMIC:
            continue
        values = given[offset : offset + joint.kind.nq]
        if joint.kind is JointKind.ROOT:
            values = found[own.idx_q : own.idx_q + 7] if base is None else np.asarray(base)
        elif joint.kind.nq != own.nq:
            values = np.array([*values[:-1], np.cos(values[-1]), np.sin(values[-1])])
        found[own.idx_q : own.idx_q + own.nq] = values
    return found


def velocities_from(robot: Robot, model: Any, q: Array, v: Array) -> Array:
    """Return a robot's velocities (nv,); see :meth:`Robot.v_from_pinocchio`."""
    at = sized("q", q, model.nq, "the model's", RobotError)
    taken = sized("v", v, model.nv, "the model's", RobotError)
    found = np.zeros(robot.nv)
    for joint, offset in zip(robot.joints, robot.v_offsets, strict=True):
        own = _place(robot, model, joint)
        values = taken[own.idx_v : own.idx_v + own.nv].copy()
        if own.shortname() == _MIMIC:
            values = own.extract().scaling * taken[own.idx_v : own.idx_v + 1]
        elif joint.kind is JointKind.PLANAR:
            values[:2] = _axes_in_plane(own, at) @ values[:2]
        found[offset : offset + joint.kind.nv] = values
    return found


def velocities_to(robot: Robot, model: Any, q: Array, v: Array) -> Array:
    """Return Pinocchio's velocities (model.nv,) at its q; the inverse of :func:`velocities_from`.

    Joints of the model that the robot lacks are at rest.
    """
    at = sized("q", q, model.nq, "the model's", RobotError)
    given = sized("v", v, robot.nv, "the robot's", RobotError)
    found = np.zeros(model.nv)
    for joint, offset in zip(robot.joints, robot.v_offsets, strict=True):
        own = _place(robot, model, joint)
        if own.shortname() == _MIMIC:
            continue
        values = given[offset : offset + joint.kind.nv].copy()
        if joint.kind is JointKind.PLANAR:
            values[:2] = _axes_in_plane(own, at).T @ values[:2]
        found[own.idx_v : own.idx_v + own.nv] = values
    return found


def _axes_in_plane(joint: Any, q: Array) -> Array:
    """Return the axes of what a planar joint moves, along which its velocities are, as columns."""
    cosine, sine = q[joint.idx_q + 2 : joint.idx_q + 4].tolist()
    return np.array([[cosine, -sine], [sine, cosine]])


def _place(robot: Robot, model: Any, joint: Joint) -> Any:
    """Return Pinocchio's joint of this name; of a floating base its first one."""
    if joint.kind is JointKind.ROOT:
        return model.joints[1]
    if not model.existJointName(joint.name):
        raise RobotError(
            f"the model has no joint {joint.name!r} of robot {robot.name!r}; it has: "
            f"{', '.join(list(model.names)[1:])}"
        )
    return model.joints[model.getJointId(joint.name)]
