"""A robot from a Pinocchio model: the same joints, bodies and frames."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from delassus.arguments import instance
from delassus.errors import RobotError
from delassus.model.chains import BALL, chain
from delassus.model.constraints import Coupling
from delassus.model.joint import SINGLE, WORLD, Joint, JointKind
from delassus.model.mechanism import Body, Frame, MechanismT
from delassus.model.reading.pinocchio_joints import Leading, Part, parts_of
from delassus.model.spatial import Array, Inertia, Transform

_NO_LIMIT = sys.float_info.max
"""Size of the position limits of a joint without limits, in models built joint by joint."""


def read_pinocchio(
    model: Any, robot_type: type[MechanismT], passive: bool = False
) -> MechanismT:
    """Return the robot of a pinocchio.Model, or of the one of a pinocchio.RobotWrapper.

    Joints have their names, bodies are called after them; frames are those of links, operation,
    sensors and joints. Of those with the same name the first of these has it, the others are
    ``name/op_frame``, ``name/joint`` and so on. Joints without armature have that of
    their rotors times the squares of their ratios, which Pinocchio's crba leaves out. Positions of
    joints without bounds are angles here, where Pinocchio has cosine and sine.

    Joints of several freedoms become single joints, one after the other: a universal joint
    ``name_1`` and ``name_2``, SphericalZYX ``name_Z``, ``name_Y``, ``name_X``, a translation
    ``name_PX`` and so on, a spherical joint ``name_X``, ``name_Y``, ``name_Z`` (see
    :mod:`~delassus.model.chains`), the parts of a composite joint ``name_1`` and so on. A
    helical joint is a revolute one on a prismatic one, ``name_slide``, that follows its angle. A
    composite of a translation and a rotation on the universe is a floating joint.

    Pinocchio's algorithms do not count ``model.damping`` and the limits of dry friction.

    Parameters
    ----------
    passive : whether dampers of single freedoms count, ``model.damping``.

    Raises
    ------
    RobotError
        If a joint has no counterpart: ellipsoids, or a joint with six, planar or spherical
        freedoms and an armature; names it and its type. If it is no model.
    """
    import pinocchio as pin

    model = model_of(model)
    neutral = pin.neutral(model)
    joints: list[Joint] = []
    bodies: list[Body] = []
    couplings: list[Coupling] = []
    body_of = {0: WORLD}
    for j in range(1, model.njoints):
        body, pose = body_of[model.parents[j]], model.jointPlacements[j]
        placement = Transform(pose.rotation, pose.translation)
        for part in parts_of(model, j, neutral):
            own = _joints(model, part, body, placement @ part.placement, len(joints))
            joints += own
            bodies += [Body(each.name, Inertia()) for each in own]
            body, placement = len(joints) - 1, Transform()
            if part.leading is not None:
                couplings.append(_following(part.name, part.leading))
        body_of[j] = body
        inertia = model.inertias[j]
        total = Inertia.from_com(inertia.mass, inertia.lever, inertia.inertia)
        bodies[body] = Body(model.names[j], total)
    frames = _frames(model, body_of)
    robot = robot_type(model.name or "robot", joints, bodies, frames, couplings)
    return robot if passive else robot.without_passive()


def _joints(model: Any, part: Part, parent: int, placement: Transform, first: int) -> list[Joint]:
    """Return the joints of a part, the first of which has the index `first`."""
    armatures = _armatures(model, part)
    single = part.kind in SINGLE
    if not single and armatures.any():
        raise RobotError(
            f"joint {part.name!r} is a {part.what} with armature {armatures.tolist()}, "
            "which has no counterpart here; expected those of single freedoms: set it to 0, and "
            "add the inertia to the bodies"
        )
    if part.kind is None:
        return chain(part.name, BALL, parent, placement, first)
    kind = part.kind
    if kind is JointKind.FLOATING and not first:
        kind = JointKind.ROOT
    armature, damping, limits = 0.0, 0.0, (-np.inf, np.inf)
    if single and part.leading is None:
        armature, damping = float(armatures[0]), float(model.damping[part.v][0])
        if part.q.stop - part.q.start == 1:
            q = part.q.start
            lower, upper = float(model.lowerPositionLimit[q]), float(model.upperPositionLimit[q])
            # Pinocchio's value for a joint without limits is the largest number.
            lower = -math.inf if lower == -_NO_LIMIT else lower
            upper = math.inf if upper == _NO_LIMIT else upper
            limits = (lower, upper) if lower <= upper else limits
    axis = np.array(part.axis)
    return [
        Joint(part.name, kind, parent, placement, axis, armature, *limits, damping=damping)
    ]


def _armatures(model: Any, part: Part) -> Array:
    """Return the armature of each freedom of a part; without one, that of its rotor."""
    rotors = model.rotorInertia[part.v] * model.rotorGearRatio[part.v] ** 2
    found: Array = np.where(model.armature[part.v] != 0.0, model.armature[part.v], rotors)
    return found


def _following(name: str, leading: Leading) -> Coupling:
    """Return what couples a joint to the one that it follows."""
    ratios = ((name, 1.0), (leading.joint, -leading.scaling))
    return Coupling(f"{name} mimics {leading.joint}", ratios, -leading.offset)


def model_of(given: Any) -> Any:
    """Return the pinocchio.Model that a caller gives."""
    import pinocchio as pin

    model = given.model if isinstance(given, pin.RobotWrapper) else given
    return instance("model", model, pin.Model, "pinocchio.buildModelFromUrdf(path)", RobotError)


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
