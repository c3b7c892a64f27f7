"""A robot from a Pinocchio model: the same joints, bodies and frames."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from delassus_ros.arguments import instance
from delassus_ros.errors import RobotError
from delassus_ros.model.constraints import Coupling
from delassus_ros.model.joint import WORLD, Joint, JointKind
from delassus_ros.model.mechanism import Body, Frame, MechanismT
from delassus_ros.model.spatial import Array, Inertia, Transform

MIMIC = "JointModelMimic"
FREE_FLYER = "JointModelFreeFlyer"
DIRECTION_ROUNDING = 1e-12
"""Of the parts of a joint's direction: less is none."""


def read_pinocchio(model: Any, robot_type: type[MechanismT]) -> MechanismT:
    """Return the robot of a pinocchio.Model, or of the one of a pinocchio.RobotWrapper.

    Joints have their names, bodies are called after them; frames are those of links, operation,
    sensors and joints. Of those with the same name the first of these has it, the others are
    ``name/op_frame``, ``name/joint`` and so on. Joints without armature have that of
    their rotors times the squares of their ratios, which Pinocchio's crba leaves out. Positions of
    joints without bounds are angles here, where Pinocchio has cosine and sine.

    Raises
    ------
    RobotError
        If a joint has no counterpart: helical, spherical, universal, composite and the like, or
        one of several freedoms with armature; names it and its type. If it is no model.
    """
    import pinocchio as pin

    model = model_of(model)
    neutral = pin.neutral(model)
    joints: list[Joint] = []
    bodies: list[Body] = []
    couplings: list[Coupling] = []
    body_of = {0: WORLD}
    for j in range(1, model.njoints):
        name, joint = model.names[j], model.joints[j]
        parent, pose = body_of[model.parents[j]], model.jointPlacements[j]
        placement = Transform(pose.rotation, pose.translation)
        kind, axis = kind_and_axis(name, joint, neutral)
        if kind is JointKind.FLOATING and not joints:
            kind = JointKind.ROOT
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
        joints.append(Joint(name, kind, parent, placement, np.array(axis), armature, *limits))
        inertia = model.inertias[j]
        bodies.append(Body(name, Inertia.from_com(inertia.mass, inertia.lever, inertia.inertia)))
        if joint.shortname() == MIMIC:
            couplings.append(_mimic(model, j, joint))
    return robot_type(model.name or "robot", joints, bodies, _frames(model, body_of), couplings)


def model_of(given: Any) -> Any:
    """Return the pinocchio.Model that a caller gives."""
    import pinocchio as pin

    model = given.model if isinstance(given, pin.RobotWrapper) else given
    return instance("model", model, pin.Model, "pinocchio.buildModelFromUrdf(path)", RobotError)


def _unit(direction: list[float]) -> list[float]:
    return [each / math.hypot(*direction) for each in direction]


def kind_and_axis(name: str, joint: Any, neutral: Array) -> tuple[JointKind, list[float]]:
    """Return the kind of a joint and its axis."""
    z, short = [0.0, 0.0, 1.0], joint.shortname()
    if short == FREE_FLYER:
        return JointKind.FLOATING, z
    if short == "JointModelPlanar":
        return JointKind.PLANAR, z
    data = joint.createData()
    joint.calc(data, neutral)
    S = np.asarray(data.S, dtype=float).reshape(6, -1)
    if short == MIMIC:
        # Its own motion, of which Pinocchio has that by its primary's position.
        scaling = joint.extract().scaling
        if not scaling:
            raise RobotError(
                f"joint {name!r} mimics another with multiplier 0, so that it does not move; "
                "expected another multiplier, or a fixed joint"
            )
        S = S / scaling
    if S.shape[1] == 1 and short not in ("JointModelComposite", "JointModelEllipsoid"):
        linear, angular = S[:3, 0].tolist(), S[3:, 0].tolist()
        if max(map(abs, linear)) < DIRECTION_ROUNDING:
            return JointKind.REVOLUTE, _unit(angular)
        if max(map(abs, angular)) < DIRECTION_ROUNDING:
            return JointKind.PRISMATIC, _unit(linear)
    raise RobotError(
        f"joint {name!r} is a {short}, which has no counterpart here; expected revolute, "
        "prismatic and planar joints and free-flyers"
    )


def _mimic(model: Any, j: int, joint: Any) -> Coupling:
    """Return what couples a mimicking joint to its primary."""
    primary = model.names[primary_of(model, j)]
    own = joint.extract()
    ratios = ((model.names[j], 1.0), (primary, -float(own.scaling)))
    return Coupling(f"{model.names[j]} mimics {primary}", ratios, -float(own.offset))


def primary_of(model: Any, j: int) -> int:
    """Return the number of the joint that joint j mimics."""
    pairs = zip(model.mimicking_joints, model.mimicked_joints, strict=True)
    return next(int(first) for second, first in pairs if second == j)


def _frames(model: Any, body_of: dict[int, int]) -> list[Frame]:
    import pinocchio as pin

    kinds = pin.FrameType
    found: list[Frame] = []
    taken: set[str] = set()
    # Links first: joints may be called as they are.
    for kind in (kinds.BODY, kinds.OP_FRAME, kinds.SENSOR, kinds.JOINT, kinds.FIXED_JOINT):
        for frame in model.frames:
            if frame.type != kind or frame.name == "universe":
                continue
            own = f"{frame.name}/{kind.name.lower()}" if frame.name in taken else frame.name
            taken.add(frame.name)
            pose = frame.placement
            place = Transform(pose.rotation, pose.translation)
            found.append(Frame(own, body_of[frame.parentJoint], place))
    return found
