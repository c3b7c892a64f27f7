"""Limbs of a robot: the bodies at their ends, hands with fingers, feet and wheels."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from delassus.drawing.skeleton import Skeleton, size_of
from delassus.model.clusters import clusters_of
from delassus.model.joint import WORLD, JointKind
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.rbda.rotors import redistribute
from delassus.robots.base import WHEEL

_UNTOUCHED = re.compile(
    r"camera|optical|lidar|velodyne|laser|sensor|ranger|radar|sonar|stereo|xtion|rgb|depth|display"
    r"|gaze|sellion|propeller|torso|trunk|chest|hub(?![a-z])|not_?used?|unused"
    r"|(?<![a-z])(imu|head|neck|rotor|led)",
    re.IGNORECASE,
)
"""Names of links that are not meant to touch."""
_CUT = re.compile(r"loop|constraint", re.IGNORECASE)
"""Names of frames where a loop is cut."""
_PART = re.compile(
    rf"crank|piston|cardan|motor|actuator|servo|spring|(?<![a-z])rod(?![a-z])|{_CUT.pattern}",
    re.IGNORECASE,
)
"""Names of parts of mechanisms; feet are not called so."""
_BEST = (
    "sole", "foot", "tcp|tool", "palm",
    "(?<![a-z])(ee|eef)(?![a-z])|effector|grasp|grip_site", "hand", "gripper", "wrist",
)  # fmt: skip
"""Names of the frames of a limb's last body, best first; the frame that touches is called so."""
_SOLE = re.compile(r"foot|(?<!con)sole", re.IGNORECASE)
"""Names of frames of the last body of a leg."""
FOOT = re.compile(r"foot|(?<!con)sole|ankle|toes?(?![a-z])", re.IGNORECASE)
"""Names of links and joints at the end of a leg."""
_FINGER = re.compile(
    r"finger|thumb|knuckle|jaw|gripper(?!_?(base|link$|frame|palm|tool|center|yaw|roll|pitch))",
    re.IGNORECASE,
)
"""Names of joints and links of fingers and of the jaws of grippers."""
_DIGIT = re.compile(r"index|little|pinky|(?<![a-z])(middle|ring)(?![a-z])", re.IGNORECASE)
"""Names of the joints of fingers that stand beside a joint called as in :data:`_FINGER`."""
_HAND = re.compile(r"hand|palm|gripper", re.IGNORECASE)
"""Names of links that carry fingers."""
_MOST = 0.5
"""Share of the robot's mass from which on a body with all that it carries is no hand."""
_NEAR = 0.1
"""Largest distance between the axes of an ankle, as a share of the robot's size."""
_CROSSED = 0.9
"""Cosine of the angle between two axes below which these are two axes of an ankle."""
_ROUND = 0.05
"""Largest relative difference of a wheel's moments of inertia across its axle."""
_CENTRED_M = 5e-3
"""Largest distance of a wheel's centre of mass from its axle [m]."""


class Limbs:
    """The ends of a robot's limbs, its hands, feet and wheels.

    A limb ends before its fingers, and a leg at its foot. Names alone make a hand: all joints that
    a body carries are called as fingers, or the body is called a hand and carries several joints.
    A body above a foot, an ankle, a toe or a sole is no hand, and neither is a part of a closed
    loop. Of a closed loop that carries no further body, one body is an end.

    Attributes
    ----------
    robot : the robot, with its loops as clusters of joints.
    ends : bodies at the ends of limbs.
    fingers : names of the joints of fingers, in the order of the robot's joints.
    wheels : bodies of wheels, which are no ends.
    """

    def __init__(self, robot: Robot) -> None:
        # Without the frames of loops closed by rows: ends do not depend on how loops are closed.
        self.robot = robot = robot.clustered
        self.skeleton = Skeleton(robot)
        kept = set(redistribute(robot).kept if robot.is_closed else range(len(robot.bodies)))
        self._frames: dict[int, list[str]] = {}
        for frame in robot.frames.values():
            self._frames.setdefault(frame.body, []).append(frame.name)
        self._children: dict[int, list[int]] = {i: [] for i in (WORLD, *range(len(robot.joints)))}
        for i, joint in enumerate(robot.joints):
            if i in kept:
                self._children[joint.parent].append(i)
        self._loops = [set(each.joints) & kept for each in clusters_of(robot) if each.loops]
        looped = set[int]().union(*self._loops)
        hands = {i for i in sorted(kept) if i not in looped and self._is_hand(i)}
        hands -= {i for i in hands if hands & set(self._above(i))}
        below = {body for hand in hands for body in self._below(hand)}
        self.fingers = [robot.joints[i].name for i in sorted(below) if robot.joints[i].kind.nq]
        leaves = {
            i for i in kept - below - looped
            if not self._children[i] and i in self._frames and not self._is_separate(i)
        }  # fmt: skip
        self.wheels = [i for i in sorted(leaves) if self.rolls(i)]
        feet = self._feet(kept - set(self.wheels))
        ends = (leaves - set(self.wheels)) | set(self._ends_of_loops())
        self.ends = sorted((ends - self._legs(feet, hands)) | feet | hands)

    def _is_hand(self, body: int) -> bool:
        """Return whether a body carries fingers, by names."""
        robot, carried = self.robot, self._children[body]
        joint, below = robot.joints[body], self._below(body)
        if joint.kind is JointKind.ROOT or not carried or self._is_named(FOOT, (body, *below)):
            return False
        total = sum(each.inertia.mass for each in robot.bodies)
        if sum(robot.bodies[k].inertia.mass for k in (body, *below)) >= _MOST * total:
            return False
        names = [robot.joints[k].name for k in carried]
        fingers = [name for name in names if _FINGER.search(name)]
        gripping = all(name in fingers or _DIGIT.search(name) for name in names)
        if fingers and gripping and not _FINGER.search(joint.name):
            return True
        wheeled = self._is_named(WHEEL, (body, *below))
        return len(carried) > 1 and not wheeled and self._is_named(_HAND, (body,))

    def _feet(self, bodies: Iterable[int]) -> set[int]:
        """Return the bodies with a frame called foot or sole: the heaviest of those in a line."""
        called = {i for i in bodies if any(map(_is_sole, self._frames.get(i, [])))}
        masses = [body.inertia.mass for body in self.robot.bodies]
        return {
            i for i in called
            if not any(masses[k] > masses[i] for k in called.intersection(self._below(i)))
            and not any(masses[k] >= masses[i] for k in called.intersection(self._above(i)))
        }  # fmt: skip

    def _legs(self, feet: set[int], hands: set[int]) -> set[int]:
        """Return the bodies of legs, which carry one foot and no hand, and all bodies on them.

        Other ends of these bodies, such as rods of a parallel ankle, touch nothing.
        """
        found = set[int]()
        for foot in feet:
            for top in (foot, *self._above(foot)):
                carried = {top, *self._below(top)}
                others = carried & (feet | hands) - {foot}
                if others or self.robot.joints[top].kind is JointKind.ROOT:
                    break
                found |= carried
        return found

    def _ends_of_loops(self) -> list[int]:
        """Return one body per closed loop that carries no body outside of it.

        The body with the best name for a frame that touches, else the one farthest from the root.
        """
        found = []
        poses = self.skeleton.poses(self.robot.neutral())
        for loop in self._loops:
            if any(set(self._children[i]) - loop for i in loop):
                continue
            able = [i for i in loop if i in self._frames and not self._is_separate(i)]

            def merit(i: int) -> tuple[int, float]:
                name = self.frame(i)
                named = (k for k, word in enumerate(_BEST) if re.search(word, name, re.IGNORECASE))
                far = float(np.linalg.norm(self.skeleton.frame(poses, name)[:3, 3]))
                return -next(named, len(_BEST)), far

            found += [max(able, key=merit)] if able else []
        return found

    def _above(self, body: int) -> list[int]:
        found = []
        while (body := self.robot.joints[body].parent) != WORLD:
            found.append(body)
        return found

    def _below(self, body: int) -> list[int]:
        """Return the bodies that a body carries."""
        found = list(self._children[body])
        for each in found:  # grows meanwhile
            found += self._children[each]
        return found

    def _is_separate(self, body: int) -> bool:
        """Return whether a body floats beside the robot, as a ball of a scene does."""
        kinds = {self.robot.joints[i].kind for i in (body, *self._above(body))}
        return JointKind.FLOATING in kinds

    def _is_named(self, pattern: re.Pattern[str], bodies: Iterable[int]) -> bool:
        """Return whether the joint or a frame of one of the bodies has such a name."""
        names = (name for i in bodies
                 for name in (self.robot.joints[i].name, *self._frames.get(i, ())))  # fmt: skip
        return any(map(pattern.search, names))

    def rolls(self, body: int) -> bool:
        """Return whether a body is a wheel: by its names, or as a round foot without limits."""
        joint, first = self.robot.joints[body], self._frames.get(body, [])[:1]
        if any(WHEEL.search(name) for name in (joint.name, *first)):
            return True
        if joint.kind is not JointKind.REVOLUTE or np.isfinite((joint.lower, joint.upper)).any():
            return False
        return any(map(_is_sole, self._frames.get(body, []))) and self._is_round(body)

    def _is_round(self, body: int) -> bool:
        """Return whether the mass of a body is symmetric about the axis of its joint."""
        axis, inertia = self.robot.joints[body].axis, self.robot.bodies[body].inertia
        if not inertia.mass:
            return False
        com = inertia.moment / inertia.mass
        about = inertia.rotational - inertia.mass * (com @ com * np.eye(3) - np.outer(com, com))
        values, directions = np.linalg.eigh(about)
        along = int(np.argmax(np.abs(axis @ directions)))
        first, second = np.delete(values, along)
        off_axle = np.linalg.norm(com - (com @ axis) * axis)
        turned = abs(axis @ directions[:, along]) > 1.0 - _ROUND
        return bool(turned and second - first <= _ROUND * second and off_axle <= _CENTRED_M)

    def frame(self, body: int) -> str:
        """Return the frame of a body that touches: the shortest of the best names, else the last.

        A shorter name is that of the body, a longer name that of a part of the body.
        """
        names = self._frames.get(body) or [self.robot.joints[body].name]
        # A site with the name of its body is "name/site".
        names = [name for name in names if not name.endswith("/site")] or names
        touching = [name for name in names if not _UNTOUCHED.search(name)] or names
        able = [name for name in touching if not _PART.search(name)] or touching
        plain = [name for name in able if not _FINGER.search(name)]
        for word in _BEST:
            called = [name for name in plain if re.search(word, name, re.IGNORECASE)]
            if called:
                return min(called, key=len)
        return (plain or able)[-1]

    def touches(self, body: int) -> bool:
        """Return whether a body is meant to touch: it is no sensor, head or cut of a loop."""
        frames = self._frames.get(body, [])
        if not frames or _UNTOUCHED.search(frames[0]):
            return False
        return not any(map(_CUT.search, frames)) or self._is_named(FOOT, (body,))

    def ankle_axes(self, body: int) -> int:
        """Return the number of axes, in different directions, that meet at the joint of a foot.

        A single axis counts if joint or link are called so: that of a foot which is fixed to a
        shank, as a quadruped's, is a knee.
        """
        robot = self.robot
        if not self._is_named(FOOT, (body,)):
            return 0
        poses = self.skeleton.poses(robot.neutral())
        near = _NEAR * size_of(self.skeleton.bones(poses))
        axes = list[Array]()
        for i in (body, *self._above(body)):
            joint = robot.joints[i]
            if joint.kind is not JointKind.REVOLUTE:
                break
            if np.linalg.norm(poses[i, :3, 3] - poses[body, :3, 3]) > near:
                break
            axis = poses[i, :3, :3] @ joint.axis
            if all(abs(axis @ other) < _CROSSED for other in axes):
                axes.append(axis)
        names = (robot.joints[body].name, *self._frames.get(body, [])[:1])
        return len(axes) if len(axes) > 1 or any(map(FOOT.search, names)) else 0


def is_finger(name: str) -> bool:
    """Return whether a link or joint is called as a finger or the jaw of a gripper."""
    return bool(_FINGER.search(name))


def _is_sole(frame: str) -> bool:
    return bool(_SOLE.search(frame)) and not (_PART.search(frame) or _UNTOUCHED.search(frame))
