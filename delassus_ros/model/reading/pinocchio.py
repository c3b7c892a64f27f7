"""A robot from a Pinocchio model: the same joints, bodies and frames."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros.arguments import instance, sized
from delassus_ros.errors import RobotError
from delassus_ros.model.constraints import Coupling
from delassus_ros.model.reading.states import (
    base_pose,
    check_alike,
    kept,
    links_of_base,
    no_base,
    number_of,
    on_base,
)
from delassus_ros.model.robot import WORLD, Body, Frame, Joint, JointKind, Robot
from delassus_ros.model.spatial import Array, Inertia, Transform

_MIMIC = "JointModelMimic"
_FREE = "JointModelFreeFlyer"
_EXACT = 1e-12
"""Of the parts of a joint's direction: less is none."""


def read_pinocchio(model: Any) -> Robot:
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

    model = _model_of(model)
    neutral = pin.neutral(model)
    joints: list[Joint] = []
    bodies: list[Body] = []
    couplings: list[Coupling] = []
    body_of = {0: WORLD}
    for j in range(1, model.njoints):
        name, joint = model.names[j], model.joints[j]
        parent, pose = body_of[model.parents[j]], model.jointPlacements[j]
        placement = Transform(pose.rotation, pose.translation)
        kind, axis = _kind(name, joint, neutral)
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
        if joint.shortname() == _MIMIC:
            couplings.append(_mimic(model, j, joint))
    return Robot(model.name or "robot", joints, bodies, _frames(model, body_of), couplings)


def _model_of(given: Any) -> Any:
    """Return the pinocchio.Model that a caller gives."""
    import pinocchio as pin

    model = given.model if isinstance(given, pin.RobotWrapper) else given
    return instance("model", model, pin.Model, "pinocchio.buildModelFromUrdf(path)", RobotError)


def _unit(direction: list[float]) -> list[float]:
    return [each / math.hypot(*direction) for each in direction]


def _kind(name: str, joint: Any, neutral: Array) -> tuple[JointKind, list[float]]:
    """Return the kind of a joint and its axis."""
    z, short = [0.0, 0.0, 1.0], joint.shortname()
    if short == _FREE:
        return JointKind.FLOATING, z
    if short == "JointModelPlanar":
        return JointKind.PLANAR, z
    data = joint.createData()
    joint.calc(data, neutral)
    S = np.asarray(data.S, dtype=float).reshape(6, -1)
    if short == _MIMIC:
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
        if max(map(abs, linear)) < _EXACT:
            return JointKind.REVOLUTE, _unit(angular)
        if max(map(abs, angular)) < _EXACT:
            return JointKind.PRISMATIC, _unit(linear)
    raise RobotError(
        f"joint {name!r} is a {short}, which has no counterpart here; expected revolute, "
        "prismatic and planar joints and free-flyers"
    )


def _mimic(model: Any, j: int, joint: Any) -> Coupling:
    """Return what couples a mimicking joint to its primary."""
    primary = model.names[_primary(model, j)]
    own = joint.extract()
    ratios = ((model.names[j], 1.0), (primary, -float(own.scaling)))
    return Coupling(f"{model.names[j]} mimics {primary}", ratios, -float(own.offset))


def _primary(model: Any, j: int) -> int:
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


def positions_from(robot: Robot, model: Any, q: ArrayLike) -> tuple[Array, Array | None]:
    """Return a robot's q (nq,), and the pose of its floating base (7,): x, y, z, quaternion xyzw.

    Parameters
    ----------
    q : Pinocchio's configuration (model.nq,).

    Raises
    ------
    RobotError
        If the configuration has another size, or the model lacks one of the robot's joints, has it
        of another kind or about another axis, or has nothing that floats where the robot's base
        does.
    """
    model = _model_of(model)
    numbers = _joint_numbers(robot, model)
    taken = sized("q", q, model.nq, "the model's", RobotError)
    found, base = robot.neutral(), None
    for joint, offset, j in zip(robot.joints, robot.q_offsets, numbers, strict=True):
        own = model.joints[j]
        values = taken[own.idx_q : own.idx_q + own.nq]
        if joint.kind is JointKind.ROOT:
            base = values.copy()
        elif own.shortname() == _MIMIC:
            # It has no position of its own: that is its primary's.
            mimic, primary = own.extract(), model.joints[_primary(model, j)]
            values = taken[primary.idx_q : primary.idx_q + primary.nq]
            found[offset] = mimic.scaling * _with_angle(values, 1)[0] + mimic.offset
        else:
            found[offset : offset + joint.kind.nq] = _with_angle(values, joint.kind.nq)
    return found, base


def positions_to(
    robot: Robot, model: Any, q: ArrayLike, base: ArrayLike | None = None
) -> Array:
    """Return Pinocchio's configuration (model.nq,); the inverse of :func:`positions_from`.

    Joints of the model that the robot lacks stay neutral, and so does a base that is not given;
    what mimics follows its primary.

    Raises
    ------
    RobotError
        If q has another size, the base is no pose or not there, or the model does not fit as in
        :func:`positions_from`.
    """
    import pinocchio as pin

    model = _model_of(model)
    numbers = _joint_numbers(robot, model)
    given = sized("q", q, robot.nq, "the robot's", RobotError)
    of_base = base_pose(robot, base)
    found: Array = pin.neutral(model)
    for joint, offset, j in zip(robot.joints, robot.q_offsets, numbers, strict=True):
        own = model.joints[j]
        if own.shortname() == _MIMIC:
            continue
        values = given[offset : offset + joint.kind.nq]
        if joint.kind is JointKind.ROOT:
            values = found[own.idx_q : own.idx_q + 7] if of_base is None else of_base
        elif joint.kind.nq != own.nq:
            values = np.array([*values[:-1], np.cos(values[-1]), np.sin(values[-1])])
        found[own.idx_q : own.idx_q + own.nq] = values
    return found


def velocities_from(robot: Robot, model: Any, q: ArrayLike, v: ArrayLike) -> Array:
    """Return a robot's velocities (nv,); see :meth:`Robot.v_from_pinocchio`."""
    model = _model_of(model)
    numbers = _joint_numbers(robot, model)
    at = sized("q", q, model.nq, "the model's", RobotError)
    taken = sized("v", v, model.nv, "the model's", RobotError)
    found = np.zeros(robot.nv)
    for joint, offset, j in zip(robot.joints, robot.v_offsets, numbers, strict=True):
        own = model.joints[j]
        values = taken[own.idx_v : own.idx_v + own.nv].copy()
        if own.shortname() == _MIMIC:
            primary = model.joints[_primary(model, j)].idx_v
            values = own.extract().scaling * taken[primary : primary + 1]
        elif joint.kind is JointKind.PLANAR:
            values[:2] = _axes_in_plane(own, at) @ values[:2]
        found[offset : offset + joint.kind.nv] = values
    return found


def velocities_to(robot: Robot, model: Any, q: ArrayLike, v: ArrayLike) -> Array:
    """Return Pinocchio's velocities (model.nv,) at its q; the inverse of :func:`velocities_from`.

    Joints of the model that the robot lacks are at rest.
    """
    model = _model_of(model)
    numbers = _joint_numbers(robot, model)
    at = sized("q", q, model.nq, "the model's", RobotError)
    given = sized("v", v, robot.nv, "the robot's", RobotError)
    found = np.zeros(model.nv)
    for joint, offset, j in zip(robot.joints, robot.v_offsets, numbers, strict=True):
        own = model.joints[j]
        if own.shortname() == _MIMIC:
            continue
        values = given[offset : offset + joint.kind.nv].copy()
        if joint.kind is JointKind.PLANAR:
            values[:2] = _axes_in_plane(own, at).T @ values[:2]
        found[own.idx_v : own.idx_v + own.nv] = values
    return found


def _with_angle(values: Array, count: int) -> Array:
    """Return positions of a joint, the last as an angle where they are one more than `count`."""
    if len(values) == count:
        return values
    # An angle as its cosine and sine, in the plane behind x and y.
    return np.array([*values[:-2], np.arctan2(values[-1], values[-2])])


def _axes_in_plane(joint: Any, q: Array) -> Array:
    """Return the axes of what a planar joint moves, along which its velocities are, as columns."""
    cosine, sine = q[joint.idx_q + 2 : joint.idx_q + 4].tolist()
    return np.array([[cosine, -sine], [sine, cosine]])


@kept
def _joint_numbers(robot: Robot, model: Any) -> list[int]:
    """Return Pinocchio's number of each of the robot's joints."""
    import pinocchio as pin

    numbers = {name: j for j, name in enumerate(model.names) if j}
    neutral = pin.neutral(model)
    found = []
    for joint in robot.joints:
        if joint.kind is JointKind.ROOT:
            found.append(_floating_base(robot, model, numbers))
            continue
        j = number_of(robot, joint.name, numbers)
        own = model.joints[j]
        kind, axis = _kind(joint.name, own, neutral)
        check_alike(joint, kind, axis, own.shortname())
        found.append(j)
    return found


def _floating_base(robot: Robot, model: Any, numbers: Mapping[str, int]) -> int:
    """Return the free-flyer that carries what the robot's base carries."""

    def floats(j: int) -> bool:
        return bool(model.joints[j].shortname() == _FREE)

    carried = on_base(robot)
    if carried is not None:
        j = int(model.parents[number_of(robot, carried, numbers)])
        while j and not floats(j):
            j = int(model.parents[j])
        if j:
            return j
    else:
        links = links_of_base(robot)
        for frame in model.frames:
            if frame.name in links and floats(frame.parentJoint):
                return int(frame.parentJoint)
    raise no_base(robot, [name for name, j in numbers.items() if floats(j)])
