"""The tree of ASIMO Next-Generation, recovered from the sparsity that the EFPA paper prints.

A floating torso carries the head (3 joints), two arms of 7 joints with a thumb and a forefinger
of one joint each, and a waist joint, which carries two legs of 6 joints: 35 bodies and 40
freedoms. With the base at the torso, 55.7 % of the mass matrix and 67.5 % of the Jacobian of hands
and feet are zero, which are the 56 % and 67 % of the paper; with the base at the pelvis 54.6 % of
the mass matrix would be. The paper gives no axes, lengths and inertias: those here are of
:class:`~benchmarks.mechanisms.Links`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.mechanisms import SKEW, Links, rotation, surfaces
from delassus_ros import Problem, Robot
from delassus_ros.model import WORLD

_FORWARD = np.array([1.0, 0.0, 0.0])
AXES = {
    "general": rotation(SKEW, 1.0),
    "as of Denavit and Hartenberg": rotation((1.0, 0.0, 0.0), np.pi / 2),
}
"""Rotation of each joint's frame in its parent link, by name."""


@dataclass(frozen=True)
class Humanoid:
    """A variant of the humanoid.

    Attributes
    ----------
    arm, leg : joints of each limb.
    pairs : pairs of arms, and of legs.
    fingers : joints of each finger of a hand.
    """

    arm: int = 7
    leg: int = 6
    pairs: int = 1
    fingers: tuple[int, ...] = (1, 1)

    def problem(self, ends: str, axes: str) -> Problem:
        """Return the humanoid with surface contacts.

        Parameters
        ----------
        ends : letters of the operational space: ``H`` head, ``h`` hands, ``f`` feet, ``t`` thumbs
            and forefingers.
        axes : a name of :data:`AXES`.
        """
        links, turn = Links(), AXES[axes]
        places: dict[str, list[int]] = {"h": [], "f": [], "t": []}
        places["H"] = [links.chain(0, 3, turn, _FORWARD)]
        for _ in range(2 * self.pairs):
            hand = links.chain(0, self.arm, turn, _FORWARD)
            places["h"].append(hand)
            tips = [links.chain(hand, count, turn, _FORWARD) for count in self.fingers]
            places["t"] += tips[:2]
        waist = links.chain(0, 1, turn, _FORWARD)
        places["f"] = [links.chain(waist, self.leg, turn, _FORWARD) for _ in range(2 * self.pairs)]
        bodies = [body for end in ends for body in places[end]]
        return Problem(links.robot("humanoid"), surfaces([f"link{body}" for body in bodies]))


VARIANTS = {
    "hands and feet": (Humanoid(), "hf"),
    "hands, feet and head": (Humanoid(), "hfH"),
    "forefingers, thumbs and feet": (Humanoid(), "tf"),
    "arms of 10 and legs of 9 joints, hands and feet": (Humanoid(arm=10, leg=9), "hf"),
    "two more arms and legs, hands and feet": (Humanoid(pairs=2), "hf"),
    "hands of four fingers with 3 joints each, hands and feet": (
        Humanoid(fingers=(3, 3, 3, 3)), "hf",
    ),
}  # fmt: skip
"""Humanoids and operational spaces of the paper's figures 5 and 6, by name."""


def zeros(problem: Problem) -> tuple[float, float]:
    """Return the shares of structural zeros of the mass matrix and of the Jacobian [%].

    A pair of freedoms is zero in the mass matrix unless one moves the other's body; a freedom is
    zero in a contact's rows unless it moves the contact's body.
    """
    robot = problem.robot
    freedoms = [i for i, joint in enumerate(robot.joints) for _ in range(joint.kind.nv)]
    moved = [{i, *_above(robot, i)} for i in range(len(robot.joints))]
    H = sum(a in moved[b] or b in moved[a] for a in freedoms for b in freedoms)
    bodies = [robot.frames[contact.frame].body for contact in problem.contacts]
    J = sum(a in moved[body] for body in bodies for a in freedoms)
    n = len(freedoms)
    return 100.0 * (1.0 - H / n**2), 100.0 * (1.0 - J / (n * len(bodies)))


def _above(robot: Robot, body: int) -> list[int]:
    path = []
    while robot.joints[body].parent != WORLD:
        body = robot.joints[body].parent
        path.append(body)
    return path
