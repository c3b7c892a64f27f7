"""The robots and mechanisms of the PV-OSIMr paper, and geared chains, as problems.

A. S. Sathya, W. Decré, J. Swevers, "PV-OSIMr", IEEE RA-L, 2024, section IV: Atlas with contacts
on feet and hands, Shadow hands alone and on Atlas' wrists, stems with branches at both ends,
chains. The paper does not give the rotations, inertias and axes of its synthetic mechanisms;
here inertias are dense and links 1 m long.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from delassus import Contact, Problem, Robot, Transform
from delassus.model import WORLD, Body, Coupling, Frame, Inertia, Joint, JointKind

SKEW = np.array([1.0, 1.0, 1.0]) / np.sqrt(3.0)
FINGERS = ("ffdistal", "mfdistal", "rfdistal", "lfdistal", "thdistal")


def rotation(axis: Sequence[float], angle: float) -> np.ndarray:
    """Return the rotation about a unit axis [rad]."""
    x, y, z = axis
    a = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.asarray(np.eye(3) + np.sin(angle) * a + (1.0 - np.cos(angle)) * a @ a)


def dense_inertia(seed: int) -> Inertia:
    """Return a physical inertia without zeros."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    about_com = turn @ np.diag(rng.uniform(0.08, 0.12, 3)) @ turn.T
    return Inertia.from_com(rng.uniform(0.8, 1.2), rng.uniform(0.1, 0.6, 3), about_com)


class Builder:
    """A robot of revolute joints under construction.

    Parameters
    ----------
    floating : whether body 0 moves freely; otherwise the first bodies are on the world.
    """

    def __init__(self, floating: bool = False) -> None:
        self.joints = [Joint("root", JointKind.ROOT, WORLD)] if floating else []
        self.bodies = [Body("body0", dense_inertia(0))] if floating else []
        self.couplings: list[Coupling] = []

    def add(
        self,
        parent: int,
        place: Transform,
        inertia: Inertia | None = None,
        axis: ArrayLike = (0.0, 0.0, 1.0),
    ) -> int:
        """Add a joint with its body; return their index."""
        i = len(self.joints)
        self.joints.append(Joint(f"joint{i}", JointKind.REVOLUTE, parent, place, axis))
        self.bodies.append(Body(f"body{i}", inertia or dense_inertia(i)))
        return i

    def couple(self, joint: int, turned_by: Mapping[int, float]) -> None:
        """Let a joint turn by Σ ratio · angle of the joints in `turned_by`."""
        terms = [(self.joints[k].name, -ratio) for k, ratio in turned_by.items()]
        self.couplings.append(Coupling(f"gear{joint}", ((self.joints[joint].name, 1.0), *terms)))

    def robot(self, name: str, frames: Sequence[Frame] = ()) -> Robot:
        """Return the robot; without `frames`, frame ``link<i>`` is at the origin of body i."""
        links = [Frame(f"link{i}", i, Transform()) for i in range(len(self.joints))]
        return Robot(name, self.joints, self.bodies, frames or links, self.couplings)


class Links(Builder):
    """A robot under construction: joints about z, each 1 m from the last one."""

    def __init__(self, floating: bool = True) -> None:
        super().__init__(floating)

    def chain(
        self, parent: int, count: int, turn: np.ndarray, first: np.ndarray, along: float = 0.0
    ) -> int:
        """Append `count` links below `parent`, the first at `first` [m]; return the last.

        Parameters
        ----------
        along : offset of each following link along its own joint axis, besides 1 m [m].
        """
        step = np.array([1.0, 0.0, 0.0]) + along * turn[:, 2]
        for k in range(count):
            parent = self.add(parent, Transform(turn, first if k == 0 else step))
        return parent


def surfaces(frames: Sequence[str]) -> list[Contact]:
    """Return 6D contacts at the origins of frames: K is the identity."""
    return [Contact(frame, frame, "surface") for frame in frames]


def points(frames: Sequence[str]) -> list[Contact]:
    """Return 3D contacts at the origins of frames: K is [0 I]."""
    return [Contact(frame, frame, "point") for frame in frames]


def stem(length: int, branches: int, rotated: bool) -> Problem:
    """Return a stem of `length` links with `branches` of 7 links at both ends, 6D at the tips.

    Parameters
    ----------
    rotated : turn every stem link by 1 rad about a skew axis and every branch link by π/3
        about x; otherwise all joint axes are parallel.
    """
    links = Links()
    turn = rotation(SKEW, 1.0) if rotated else np.eye(3)
    tip_turn = rotation((1.0, 0.0, 0.0), np.pi / 3) if rotated else np.eye(3)
    forward = np.array([1.0, 0.0, 0.0])
    top = links.chain(0, length - 1, turn, forward)
    tips = []
    for end, direction in ((0, -forward), (top, forward)):
        for k in range(branches):
            side = direction if rotated or branches == 1 else np.array([direction[0], 0.1 * k, 0])
            tips.append(links.chain(end, 7, tip_turn, side))
    return Problem(links.robot(f"stem {length}"), surfaces([f"link{tip}" for tip in tips]))


def chain(joints: int, where: str) -> Problem:
    """Return a floating base with a rotated chain of `joints` links and 6D contacts.

    Parameters
    ----------
    where : ``"every moving link"``, ``"tip"``, ``"both ends"``, ``"last half of links"`` or
        ``"last <k> links"``.
    """
    links = Links()
    links.chain(0, joints, rotation(SKEW, 1.0), np.array([1.0, 0.0, 0.0]))
    last = {
        "every moving link": joints,
        "tip": 1,
        "both ends": 1,
        "last half of links": joints // 2,
    }
    count = last[where] if where in last else int(where.split()[1])
    at = [*range(joints + 1 - count, joints + 1), *([0] if where == "both ends" else [])]
    return Problem(links.robot(f"chain {joints}"), surfaces([f"link{i}" for i in at]))


def mounted(arm: Robot, hand: Robot, frame: str, prefix: str) -> Robot:
    """Return `arm` with `hand`, a fixed-base robot, welded to one of its frames.

    Names of the hand's joints and frames get the prefix. Bodies of the hand that are fixed to
    its base are not part of its model and add no inertia.
    """
    mount = arm.frames[frame]
    first = len(arm.joints)
    joints, frames = list(arm.joints), list(arm.frames.values())
    for joint in hand.joints:
        fixed = joint.parent == WORLD
        joints.append(
            replace(
                joint,
                name=prefix + joint.name,
                parent=mount.body if fixed else first + joint.parent,
                placement=mount.placement @ joint.placement if fixed else joint.placement,
            )
        )
    for item in hand.frames.values():
        fixed = item.body == WORLD
        body = mount.body if fixed else first + item.body
        placement = mount.placement @ item.placement if fixed else item.placement
        frames.append(Frame(prefix + item.name, body, placement))
    return Robot(f"{arm.name} + hand", joints, [*arm.bodies, *hand.bodies], frames)


def fingertips(prefix: str = "rh_") -> list[Contact]:
    """Return 3D contacts at the five distal links of a Shadow hand."""
    return points([prefix + finger for finger in FINGERS])


def corners(frame: str) -> list[Contact]:
    """Return four 3D contacts at the corners of a foot: K is [−p× I]."""
    return [
        Contact(f"{frame} {k}", frame, "point", Transform(np.eye(3), np.array([x, y, -0.08])))
        for k, (x, y) in enumerate(((0.17, 0.06), (0.17, -0.06), (-0.09, 0.06), (-0.09, -0.06)))
    ]


def dense(frame: str, count: int) -> list[Contact]:
    """Return `count` contacts of six dense rows each, of no particular meaning."""
    rng = np.random.default_rng(0)
    return [Contact(f"{frame} {k}", frame, rng.normal(size=(6, 6))) for k in range(count)]


def moved(problem: Problem) -> Problem:
    """Return the problem with its point contacts off their frames' origins: K is [−p× I]."""
    off = Transform(np.eye(3), np.array([0.011, -0.007, 0.023]))
    contacts = [
        Contact(c.name, c.frame, "point", off) if c.kind == "point" else c
        for c in problem.contacts
    ]
    return Problem(problem.robot, contacts)


class Geared(Builder):
    """A fixed-base robot under construction whose links are turned by rotors on their parents.

    Parameters
    ----------
    loose : rotors are any bodies on any axes, as in the cluster paper's random chains; otherwise
        they are round and parallel to the joint that they turn, as gears are.
    """

    def __init__(self, loose: bool) -> None:
        super().__init__()
        self._loose = loose

    def link(self, parent: int) -> int:
        """Add a link that turns about z, about 1 m from the last one; return its index."""
        place = np.zeros(3) if parent == WORLD else np.array([0.9, 0.3, -0.2])
        return self.add(parent, Transform(rotation(SKEW, 1.0), place))

    def rotor(self, link: int, parent: int, turns: dict[int, float]) -> None:
        """Add a rotor beside a link's joint; it turns Σ ratio · angle of the links in `turns`."""
        turn = self.joints[link].placement.rotation
        inertia = Inertia.from_com(0.3, np.zeros(3), np.diag([3e-4, 3e-4, 5e-4]))
        if self._loose:
            turn = turn @ rotation((0.6, 0.0, 0.8), 0.5)
            body = dense_inertia(link)
            inertia = Inertia(0.01 * body.mass, 0.01 * body.moment, 0.01 * body.rotational)
        self.couple(self.add(parent, Transform(turn, np.array([0.8, 0.2, 0.1])), inertia), turns)

    def at_tip(self, name: str, tip: int, contacts: int) -> Problem:
        """Return the problem with 6D contacts around the end of a link."""
        frame = Frame("tip", tip, Transform(np.eye(3), np.array([0.9, 0.3, -0.2])))
        rng = np.random.default_rng(0)
        places = [
            Transform(rotation(SKEW, angle), rng.uniform(-0.1, 0.1, 3))
            for angle in rng.uniform(-3.0, 3.0, contacts)
        ]
        return Problem(
            self.robot(name, [frame]),
            [Contact(f"tip {k}", "tip", "surface", place) for k, place in enumerate(places)],
        )


def geared_chain(links: int, contacts: int = 1, loose: bool = False) -> Problem:
    """Return a chain in which a gear of ratio 6 or 9 turns each link, 6D contacts at its tip."""
    build, tip = Geared(loose), WORLD
    for k in range(links):
        parent, tip = tip, build.link(tip)
        build.rotor(tip, parent, {tip: 6.0 if k % 2 else 9.0})
    return build.at_tip(f"geared chain {links}", tip, contacts)


def belt_chain(links: int) -> Problem:
    """Return a chain of pairs of links; a belt turns the second from the first one's parent.

    Parameters
    ----------
    links : even.
    """
    build, tip = Geared(True), WORLD
    for _ in range(links // 2):
        parent, first = tip, build.link(tip)
        tip = build.link(first)
        build.rotor(first, parent, {first: 6.0})
        build.rotor(first, parent, {first: 9.0, tip: 9.0})
    return build.at_tip(f"belt chain {links}", tip, 1)
