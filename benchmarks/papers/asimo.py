"""The tree of ASIMO Next-Generation, recovered from the sparsity that the EFPA paper prints.

A floating torso carries the head (3 joints), two arms of 7 joints with a thumb and a forefinger
of one joint each, and a waist joint, which carries two legs of 6 joints: 35 bodies and 40
freedoms. With the base at the torso, 55.7 % of the mass matrix and 67.5 % of the Jacobian of hands
and feet are zero, which are the 56 % and 67 % of the paper; with the base at the pelvis 54.6 % of
the mass matrix would be. The paper gives no axes, lengths and inertias: those here are of
:class:`~benchmarks.mechanisms.Links`, with limbs at different places of torso and waist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.mechanisms import SKEW, Links, rotation
from delassus import Contact, Problem, Transform
from delassus.model import WORLD

_X = (1.0, 0.0, 0.0)
_TOOL = Transform(rotation(np.array([1.0, 2.0, 3.0]) / 14.0**0.5, 0.7), np.array([0.1, 0.2, 0.3]))


class Axes(NamedTuple):
    """How each joint's frame lies in its parent link: the rotation, and the offset along z [m]."""

    turn: np.ndarray
    along: float


AXES = {
    "general": Axes(rotation(SKEW, 1.0), 0.0),
    "as of Denavit and Hartenberg": Axes(rotation(_X, 1.0), 0.3),
    "as of Denavit and Hartenberg, at right angles": Axes(rotation(_X, np.pi / 2), 0.0),
}
"""Choices of joint axes, by name."""


@dataclass(frozen=True)
class Humanoid:
    """A variant of the humanoid.

    Attributes
    ----------
    arm, leg : joints of each limb.
    pairs : pairs of arms, and of legs.
    fingers : joints of each finger of a hand.
    on_foot : whether the first foot is fixed to the world; otherwise the torso floats.
    """

    arm: int = 7
    leg: int = 6
    pairs: int = 1
    fingers: tuple[int, ...] = (1, 1)
    on_foot: bool = False

    def problem(self, ends: str, axes: str, tools: bool = False) -> Problem:
        """Return the humanoid with six-row contacts.

        Parameters
        ----------
        ends : letters of the operational space: ``H`` head, ``h`` hands, ``f`` feet, ``t`` thumbs
            and forefingers.
        axes : a name of :data:`AXES`.
        tools : whether end effectors have axes and origins of their own in their links.
        """
        links, (turn, along) = Links(not self.on_foot), AXES[axes]

        def limb(parent: int, joints: int, *at: float) -> int:
            return links.chain(parent, joints, turn, np.array(at), along)

        places: dict[str, list[int]] = {"H": [], "h": [], "f": [], "t": []}
        feet = range(2 * self.pairs)
        torso = 0
        if self.on_foot:
            waist = limb(WORLD, self.leg, 0.0, 0.0, 0.0)
            feet = feet[1:]
            torso = limb(waist, 1, 0.05, 0.0, 0.2)
        places["H"].append(limb(torso, 3, 0.1, 0.0, 0.6))
        for k in range(2 * self.pairs):
            hand = limb(torso, self.arm, 0.1 * k, 0.3 * (-1) ** k, 0.5 + 0.1 * k)
            places["h"].append(hand)
            tips = [
                limb(hand, joints, 0.1 + 0.1 * j, 0.05 + 0.05 * j, 0.1)
                for j, joints in enumerate(self.fingers)
            ]
            places["t"] += tips[:2]
        if not self.on_foot:
            waist = limb(torso, 1, 0.05, 0.0, -0.2)
        for k in feet:
            places["f"].append(limb(waist, self.leg, 0.1, 0.2 * (-1) ** k + 0.05 * k, -0.1))
        place = _TOOL if tools else Transform()
        names = [f"link{body}" for end in ends for body in places[end]]
        contacts = [Contact(name, name, "surface", place) for name in names]
        return Problem(links.robot("humanoid"), contacts)


class Variant(NamedTuple):
    """A mechanism with an operational space, and the label of its bars."""

    humanoid: Humanoid
    ends: str
    label: str


HANDS_AND_FEET = "hands and feet"
VARIANTS = {
    HANDS_AND_FEET: Variant(Humanoid(), "hf", "HF"),
    "hands, feet and head": Variant(Humanoid(), "hfH", "HFH"),
    "forefingers, thumbs and feet": Variant(Humanoid(), "tf", "FTF"),
    "arms of 10 and legs of 9 joints, hands and feet": Variant(
        Humanoid(arm=10, leg=9), "hf", "longer\nlimbs"
    ),
    "two more arms and legs, hands and feet": Variant(Humanoid(pairs=2), "hf", "+2 arms\n+2 legs"),
    "hands of four fingers with 3 joints each, hands and feet": Variant(
        Humanoid(fingers=(3, 3, 3, 3)), "hf", "four\nfingers"
    ),
    "on one foot, hands and the other foot": Variant(
        Humanoid(on_foot=True), "hf", "one foot\nfixed"
    ),
}
"""Humanoids and operational spaces of the paper's figures 5 and 6, by name."""


def zeros(problem: Problem) -> tuple[float, float]:
    """Return the shares of structural zeros of the mass matrix and of the Jacobian [%].

    A pair of freedoms is zero in the mass matrix unless one moves the other's body; a freedom is
    zero in a contact's rows unless it moves the contact's body.
    """
    robot = problem.robot
    freedoms = [i for i, joint in enumerate(robot.joints) for _ in range(joint.kind.nv)]
    moved = [set(robot.path(i)) for i in range(len(robot.joints))]
    H = sum(a in moved[b] or b in moved[a] for a in freedoms for b in freedoms)
    bodies = [robot.frames[contact.frame].body for contact in problem.contacts]
    J = sum(a in moved[body] for body in bodies for a in freedoms)
    n = len(freedoms)
    return 100.0 * (1.0 - H / n**2), 100.0 * (1.0 - J / (n * len(bodies)))
