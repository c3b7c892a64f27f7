"""A robot from a compiled MuJoCo model: its joints, bodies, sites and equalities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from delassus.errors import RobotError
from delassus.model.chains import BALL, chain
from delassus.model.constraints import Coupling, Loop, LoopKind
from delassus.model.edit import locked
from delassus.model.joint import WORLD, Joint, JointKind, root_name
from delassus.model.mechanism import Body, Frame, MechanismT
from delassus.model.reading.mjcf import compiled
from delassus.model.reading.passive import (
    MujocoPassive,
    of_joints,
    uncounted,
    warn_of_uncounted,
)
from delassus.model.spatial import Array, Inertia, Transform, rotation_from_quaternion

SAME_POSITION_TOLERANCE = 1e-9
"""How far two equalities may put a joint apart [rad, m]."""
TORQUE_SCALE_INDEX = 10
"""Index among the data of a weld: the anchor, position and quaternion come before it."""


def read_mujoco(source: Any, robot_type: type[MechanismT], passive: bool = True) -> MechanismT:
    """Return the robot of a mujoco.MjModel or MjSpec, or of MJCF or URDF, a path or the text.

    A free joint of the first body is the floating base; others are floating joints inside the
    tree. Joints and bodies without a name are called by their number, ``joint0``, ``body1``. Of a
    body with several joints, all but the last move bodies without inertia. A ball joint is a chain
    of three revolute joints ``name_X``, ``name_Y``, ``name_Z``, see
    :mod:`~delassus.model.chains`. Frames are bodies and
    sites; a site with the name of a body is ``name/site``. Active equalities become loops
    (connect, weld) and couplings (joint and tendon, if linear); an equality of a single joint
    locks the joint, see :func:`~delassus.model.edit.locked`. Mocap bodies belong to the world,
    at the pose in the model. Armatures and damping of actuators count at their joints, times the
    squares of their gears. Springs (``stiffness``, ``springref``, ``springdamper``) and dampers of
    hinges and slides, and gravity compensation of bodies (``gravcomp``, with or without
    ``actuatorgravcomp`` of joints), are those of the robot, unless the model's flags disable them;
    a warning names further elements that make forces, such as servos, dry friction
    (``frictionloss``) and tendons.

    Parameters
    ----------
    passive : whether to read springs, dampers and gravity compensation.

    Raises
    ------
    RobotError
        If there is an equality that cannot be said here (of a flex, or of what floats with a
        mocap body), or an armature of something else than a hinge or slide; names it.
        If MuJoCo cannot compile the source, it is something else, or the model would be too large,
        see :mod:`delassus.model.reading.mjcf_size`. A file of a mesh or image may be absent, see
        :func:`~delassus.model.reading.mjcf.compiled`.
    """
    model = compiled(source)
    robot = _Reading(model).robot(robot_type)
    if not passive:
        return robot.without_passive()
    warn_of_uncounted(robot.name, uncounted(model, joint_names(model)))
    return robot


class _Reading:
    def __init__(self, model: Any) -> None:
        self._model = model
        self._joints: list[Joint] = []
        self._bodies: list[Body] = []
        # Per body of MuJoCo, the body that it is part of, and where it is in that one.
        self._place: dict[int, tuple[int, Transform]] = {0: (WORLD, Transform())}
        self._armatures = self._armature_of_joints()
        self._joint_names = joint_names(model)
        self._body_names = body_names(model)
        self._passive = MujocoPassive.of(model)

    def robot(self, robot_type: type[MechanismT]) -> MechanismT:
        for b in range(1, self._model.nbody):
            self._add(b)
        name = bytes(self._model.names).split(b"\0", 1)[0].decode() or "robot"
        couplings, loops = self._equalities()
        held, tied = _held_by(couplings)
        robot = robot_type(name, self._joints, self._bodies, self._frames(), tied, loops)
        return locked(robot, held) if held else robot

    def _armature_of_joints(self) -> Array:
        """Return the armature of each hinge and slide, those of its actuators included."""
        import mujoco

        model = self._model
        # Models of MuJoCo before 3.3.1 have none.
        for t in np.flatnonzero(getattr(model, "tendon_armature", ())):
            raise RobotError(
                f"tendon {model.tendon(t).name!r} has an armature, which has no counterpart here; "
                "expected armatures of joints"
            )
        found, elsewhere = of_joints(model, "armature")
        for a in elsewhere:
            name = model.actuator(a).name or f"actuator{a}"
            kind = mujoco.mjtTrn(int(model.actuator_trntype[a])).name
            raise RobotError(
                f"actuator {name!r} has an armature and is a {kind}, which has no counterpart "
                "here; expected armatures of actuators of joints"
            )
        return found

    def _add(self, b: int) -> None:
        model = self._model
        above, pose = self._place[model.body_parentid[b]]
        pose = pose @ pose_of(model.body_pos[b], model.body_quat[b])
        first, count = model.body_jntadr[b], model.body_jntnum[b]
        for j in range(first, first + count):
            above, pose = self._add_joint(b, j, above, pose)
        self._place[b] = above, pose
        if above == WORLD:
            return
        about, mass = np.diag(model.body_inertia[b]), float(model.body_mass[b])
        own = pose_of(model.body_ipos[b], model.body_iquat[b])
        inertia = Inertia.from_com(mass, np.zeros(3), about)
        held = Inertia(mass * float(self._passive.compensation[b]))
        part = Body(self._body_names[b], inertia, held)
        self._bodies[above] = self._bodies[above].lumped(part, pose @ own)

    def _add_joint(self, b: int, j: int, above: int, pose: Transform) -> tuple[int, Transform]:
        """Append a joint; return its body, and where the body of MuJoCo is in that one."""
        import mujoco

        model, types = self._model, mujoco.mjtJoint
        name = self._joint_names[j]
        kind = int(model.jnt_type[j])
        if kind == int(types.mjJNT_BALL):
            return self._add_ball(b, j, above, pose)
        self._bodies.append(Body(self._body_names[b], Inertia()))
        number = len(self._joints)
        armature = float(self._armatures[j])
        if kind == int(types.mjJNT_FREE):
            if armature:
                raise RobotError(
                    f"joint {name!r} is a free joint with an armature of {armature:g}, which has "
                    "no counterpart here; write <freejoint/>, which takes no defaults"
                )
            root = number == 0
            joint = JointKind.ROOT if root else JointKind.FLOATING
            own = root_name(self._joint_names) if root else name
            self._joints.append(Joint(own, joint, WORLD))
            return number, Transform()
        axis = model.jnt_axis[j] / np.linalg.norm(model.jnt_axis[j])
        at = Transform(translation=model.jnt_pos[j])
        revolute = kind == int(types.mjJNT_HINGE)
        limits = model.jnt_range[j] if model.jnt_limited[j] else (-np.inf, np.inf)
        passive = self._passive
        joint_ = Joint(
            name,
            JointKind.REVOLUTE if revolute else JointKind.PRISMATIC,
            above,
            Transform(),
            axis,
            armature,
            float(limits[0]),
            float(limits[1]),
            stiffness=float(passive.stiffness[j]),
            spring_reference=float(passive.reference[j]),
            damping=float(passive.damping[j]),
        )
        # Where its position is qpos0 the model is as it was written.
        back = joint_.motion(-float(model.qpos0[model.jnt_qposadr[j]]))
        self._joints.append(replace(joint_, placement=pose @ at @ back))
        return number, at.inverse()

    def _add_ball(self, b: int, j: int, above: int, pose: Transform) -> tuple[int, Transform]:
        """Append the chain of a ball joint; see :meth:`_add_joint`."""
        name = self._joint_names[j]
        if self._armatures[j]:
            raise RobotError(
                f"joint {name!r} is a ball joint with an armature of {self._armatures[j]:g}, "
                "which has no counterpart here: write armature='0', and add the inertia to the "
                "bodies"
            )
        at = Transform(translation=self._model.jnt_pos[j])
        joints = chain(name, BALL, above, pose @ at, len(self._joints))
        self._joints += joints
        self._bodies += [Body(self._body_names[b], Inertia())] * len(joints)
        return len(self._joints) - 1, at.inverse()

    def _frames(self) -> list[Frame]:
        import mujoco

        model, bodies = self._model, self._body_names
        found = [Frame(bodies[b], *self._place[b]) for b in range(1, model.nbody)]
        names = _named(model, mujoco.mjtObj.mjOBJ_SITE, model.nsite, "site")
        for s, name in enumerate(names):
            own = f"{name}/site" if name in bodies else name
            body, pose = self._place[model.site_bodyid[s]]
            at = pose_of(model.site_pos[s], model.site_quat[s])
            found.append(Frame(own, body, pose @ at))
        return found

    def _equalities(self) -> tuple[list[Coupling], list[Loop]]:
        import mujoco

        model = self._model
        kinds = mujoco.mjtEq
        joint, tendon, connect, weld = map(
            int, (kinds.mjEQ_JOINT, kinds.mjEQ_TENDON, kinds.mjEQ_CONNECT, kinds.mjEQ_WELD)
        )
        couplings: list[Coupling] = []
        loops: list[Loop] = []
        for e in range(model.neq):
            if not model.eq_active0[e]:
                continue
            name, kind = model.equality(e).name or f"equality{e}", int(model.eq_type[e])
            if kind in (joint, tendon):
                length = self._of_joint if kind == joint else self._of_tendon
                couplings.append(self._coupling(e, name, length))
            elif kind in (connect, weld):
                loops.append(self._loop(e, name, weld=kind == weld))
            else:
                raise RobotError(
                    f"equality {name!r} is a {mujoco.mjtEq(kind).name}, which has no counterpart "
                    "here; expected connect, weld, joint and tendon"
                )
        return couplings, loops

    def _coupling(
        self, e: int, name: str, length: Callable[[int], tuple[dict[str, float], float]]
    ) -> Coupling:
        """Return x − x₀ = c₀ + c₁ (y − y₀), of joints or of tendons that are sums of joints."""
        model = self._model
        first, second = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
        constant, slope, *higher = model.eq_data[e, :5].tolist()
        if second >= 0 and any(higher):
            raise RobotError(f"equality {name!r} is a polynomial; expected a linear one")
        ratios, zero = length(first)
        offset = -zero - constant
        if second >= 0 and slope:
            others, zero = length(second)
            offset += slope * zero
            for joint, factor in others.items():
                ratios[joint] = ratios.get(joint, 0.0) - slope * factor
        return Coupling(name, tuple((j, r) for j, r in ratios.items() if r), offset)

    def _of_joint(self, j: int) -> tuple[dict[str, float], float]:
        """Return a joint's position as a sum of joints, and its value as it was written."""
        model = self._model
        return {self._joint_names[j]: 1.0}, float(model.qpos0[model.jnt_qposadr[j]])

    def _of_tendon(self, t: int) -> tuple[dict[str, float], float]:
        """Return the length of a tendon likewise."""
        import mujoco

        model = self._model
        own = range(model.tendon_adr[t], model.tendon_adr[t] + model.tendon_num[t])
        if any(int(model.wrap_type[k]) != int(mujoco.mjtWrap.mjWRAP_JOINT) for k in own):
            raise RobotError(
                f"tendon {model.tendon(t).name!r} goes by way of sites, which has no counterpart "
                "here; expected sums of joints"
            )
        ratios = {
            self._joint_names[int(model.wrap_objid[k])]: float(model.wrap_prm[k]) for k in own
        }
        return ratios, float(model.tendon_length0[t])

    def _floats(self, body: int) -> bool:
        """Return whether a free joint carries a body."""
        while body != WORLD:
            if self._joints[body].kind in (JointKind.ROOT, JointKind.FLOATING):
                return True
            body = self._joints[body].parent
        return False

    def _loop(self, e: int, name: str, weld: bool) -> Loop:
        import mujoco

        model = self._model
        data = model.eq_data[e]
        objects = [int(model.eq_obj1id[e]), int(model.eq_obj2id[e])]
        sites = int(model.eq_objtype[e]) == int(mujoco.mjtObj.mjOBJ_SITE)
        bodies = [int(model.site_bodyid[k]) for k in objects] if sites else objects
        (first, at), (second, there) = (self._place[b] for b in bodies)
        if sites:
            at, there = (
                pose @ pose_of(model.site_pos[k], model.site_quat[k])
                for pose, k in zip((at, there), objects, strict=True)
            )
        elif weld:
            # The anchor is in the second body, the pose that of the second in the first.
            at = at @ pose_of(data[3:6], data[6:10])
            there = there @ Transform(translation=data[:3])
        else:
            at, there = (
                pose @ Transform(translation=data[k : k + 3]) for pose, k in ((at, 0), (there, 3))
            )
        mocap = [self._body_names[b] for b in bodies if model.body_mocapid[b] >= 0]
        if mocap and (self._floats(first) or self._floats(second)):
            raise RobotError(
                f"equality {name!r} ties what floats to {mocap[0]!r}, a mocap body, which no "
                "joint moves; expected bodies of the robot: make the equality active='false'"
            )
        # Without torque a weld holds positions alone.
        kind = LoopKind.WELD if weld and data[TORQUE_SCALE_INDEX] else LoopKind.POINT
        return Loop(name, kind, first, second, at, there)


def held_joints(model: Any) -> set[int]:
    """Return the joints that active equalities hold: alone, or tied to held joints alone."""
    import mujoco

    joint, tendon = int(mujoco.mjtEq.mjEQ_JOINT), int(mujoco.mjtEq.mjEQ_TENDON)
    tied: list[set[int]] = []
    for e in range(model.neq):
        if not model.eq_active0[e] or int(model.eq_type[e]) not in (joint, tendon):
            continue
        second = int(model.eq_obj2id[e]) if any(model.eq_data[e, 1:5]) else -1
        objects = {int(model.eq_obj1id[e]), second} - {-1}
        if int(model.eq_type[e]) == tendon:
            wraps = [(int(model.tendon_adr[t]), int(model.tendon_num[t])) for t in objects]
            objects = {int(model.wrap_objid[k]) for at, n in wraps for k in range(at, at + n)}
        tied.append(objects)
    held: set[int] = set()
    # Each round holds at least one joint more, or is the last.
    for _ in tied:
        held.update(*(objects for objects in tied if len(objects - held) == 1))
    return held


def joint_names(model: Any) -> list[str]:
    """Return the names of a model's joints; those without one are called ``joint0`` and so on."""
    import mujoco

    return _named(model, mujoco.mjtObj.mjOBJ_JOINT, model.njnt, "joint")


def body_names(model: Any) -> list[str]:
    """Return the names of a model's bodies likewise, ``body1`` and so on."""
    import mujoco

    return _named(model, mujoco.mjtObj.mjOBJ_BODY, model.nbody, "body")


def _named(model: Any, kind: Any, count: int, what: str) -> list[str]:
    """Return names, those that are missing by number, with underscores where another has that."""
    import mujoco

    given = [mujoco.mj_id2name(model, kind, k) or "" for k in range(count)]
    taken, found = set(given), []
    for k, name in enumerate(given):
        own = name or f"{what}{k}"
        while not name and own in taken:
            own += "_"
        found.append(own)
    return found


def pose_of(position: Array, quaternion: Array) -> Transform:
    """Return a pose by MuJoCo's position and quaternion w, x, y, z."""
    rotation = rotation_from_quaternion(np.roll(quaternion, -1))
    return Transform(rotation, np.array(position))


def _held_by(couplings: Sequence[Coupling]) -> tuple[dict[str, float], list[Coupling]]:
    """Return where equalities of one joint hold joints, and the equalities that tie joints."""
    tied: list[Coupling] = []
    held: dict[str, float] = {}
    by: dict[str, str] = {}
    for each in couplings:
        if len(each.ratios) > 1:
            tied.append(each)
            continue
        ((name, ratio),) = each.ratios
        off = each.offset + ratio * held.setdefault(name, -each.offset / ratio)
        if abs(off) > SAME_POSITION_TOLERANCE:
            raise RobotError(
                f"equalities {by[name]!r} and {each.name!r} hold joint {name!r} at different "
                f"places: at {held[name]:g} the latter is off by {abs(off):.3g}"
            )
        by.setdefault(name, each.name)
    return held, tied
