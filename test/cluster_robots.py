"""Random robots with gears, belts, differentials and mimic joints, and their properties."""

from __future__ import annotations

import numpy as np

from delassus import Contact, Problem, Robot
from delassus.model import WORLD, Body, Frame, Inertia, Joint, JointKind, Transform
from delassus.model.constraints import Coupling
from delassus.model.couplings import follow
from delassus.testing.random_trees import (
    random_axis,
    random_contacts,
    random_inertia,
    random_rotation,
    random_transform,
)

ROUND, OVAL, LOOSE = "round", "oval", "loose"
"""Rotors: the same across the axis; balanced only; any body."""


class Builder:
    """Grows a robot joint by joint.

    Parameters
    ----------
    alike : let no rotation or axis be a special one, so that all links cost the same.
    """

    def __init__(self, seed: int, alike: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self._alike = alike
        self.joints: list[Joint] = []
        self.bodies: list[Body] = []
        self.couplings: list[Coupling] = []

    def add(
        self,
        parent: int,
        axis: np.ndarray | None = None,
        placement: Transform | None = None,
        inertia: Inertia | None = None,
        kind: JointKind = JointKind.REVOLUTE,
        armature: float = 0.0,
    ) -> int:
        """Add a joint with its body; return its index. What is not given is random."""
        i = len(self.joints)
        axis = self.axis() if axis is None else axis
        placement = self.placement() if placement is None else placement
        self.joints.append(Joint(f"j{i}", kind, parent, placement, axis, armature))
        self.bodies.append(Body(f"b{i}", random_inertia(self.rng) if inertia is None else inertia))
        return i

    def axis(self) -> np.ndarray:
        """Return a random axis."""
        v = self.rng.normal(size=3)
        return v / np.linalg.norm(v) if self._alike else random_axis(self.rng)

    def placement(self) -> Transform:
        """Return a random pose."""
        if not self._alike:
            return random_transform(self.rng)
        return Transform(random_rotation(self.rng), self.rng.uniform(-0.4, 0.4, 3))

    def rotor(self, link: int, shape: str = ROUND, parallel: bool = True) -> int:
        """Add a rotor beside a link, on the same body."""
        joint, rng = self.joints[link], self.rng
        placement, axis = self.placement(), self.axis()
        if parallel:
            # The same line of action in another frame, either way round.
            turn = random_rotation(rng)
            placement = Transform(joint.placement.rotation @ turn, rng.uniform(-0.2, 0.2, 3))
            axis = turn.T @ joint.axis * rng.choice([-1.0, 1.0])
        armature = float(rng.choice([0.0, 2e-4]))
        inertia = rotor_inertia(rng, axis, shape)
        return self.add(joint.parent, axis, placement, inertia, armature=armature)

    def couple(self, *ratios: tuple[int, float]) -> None:
        """Tie joints together: Σ ratio · q = 0."""
        terms = tuple((self.joints[i].name, float(ratio)) for i, ratio in ratios)
        self.couplings.append(Coupling(f"c{len(self.couplings)}", terms))

    def gear(self, parent: int, shape: str = ROUND, parallel: bool = True) -> int:
        """Add a link with a rotor that turns faster, or slower."""
        link = self.add(parent)
        self.couple((self.rotor(link, shape, parallel), 1.0), (link, -self.ratio()))
        return link

    def belt(self, parent: int, shape: str = ROUND) -> int:
        """Add two links with parallel axes and two rotors, the second turned by both links."""
        first = self.add(parent)
        axis = self.joints[first].axis
        second = self.add(first, axis, Transform(np.eye(3), self.rng.uniform(-0.3, 0.3, 3)))
        ratio = self.ratio()
        self.couple((self.rotor(first, shape), 1.0), (first, -self.ratio()))
        self.couple((self.rotor(first, shape), 1.0), (first, -ratio), (second, -0.7 * ratio))
        return second

    def differential(self, parent: int) -> int:
        """Add two links with crossing axes that two rotors turn together."""
        first = self.add(parent)
        second = self.add(first)
        for _ in range(2):
            rotor = self.rotor(first, parallel=False)
            self.couple((rotor, 1.0), (first, -self.ratio()), (second, -self.ratio()))
        return second

    def mimic(self, parent: int) -> int:
        """Add two links of which one follows the other."""
        first, second = self.add(parent), self.add(parent, kind=JointKind.PRISMATIC)
        self.couple((second, 1.0), (first, self.rng.uniform(-0.5, 0.5)))
        return int(self.rng.choice([first, second]))

    def screw(self, parent: int) -> int:
        """Add a sliding link that a rotor moves."""
        link = self.add(parent, kind=JointKind.PRISMATIC)
        self.couple((self.rotor(link), 1.0), (link, -self.ratio(40.0)))
        return link

    def ratio(self, largest: float = 12.0) -> float:
        """Return a ratio of either sign, also below 1."""
        return float(np.exp(self.rng.uniform(-1.0, np.log(largest))) * self.rng.choice([-1, 1]))

    def robot(self) -> Robot:
        """Return the robot, with a frame on every body."""
        frames = [Frame(f"f{i}", i, random_transform(self.rng)) for i in range(len(self.bodies))]
        return Robot("random", self.joints, self.bodies, frames, self.couplings)


def rotor_inertia(rng: np.random.Generator, axis: np.ndarray, shape: str) -> Inertia:
    """Return the inertia of a rotor."""
    if shape == LOOSE:
        body = random_inertia(rng)
        return Inertia(0.01 * body.mass, 0.01 * body.moment, 0.01 * body.rotational)
    mass, J = rng.uniform(0.0, 0.5), rng.uniform(1e-4, 2e-3)
    first = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    first /= np.linalg.norm(first)
    second = np.cross(axis, first)
    across = J * rng.uniform(0.55, 1.5)
    other = across if shape == ROUND else across * rng.uniform(0.7, 0.9)
    inertia = np.outer(axis, axis) * J + np.outer(first, first) * across
    inertia += np.outer(second, second) * other
    return Inertia.from_com(mass, rng.normal() * 0.1 * axis, inertia)


PARTS = ("joint", "gear", "skew gear", "belt", "differential", "mimic", "screw")


def grown(build: Builder, part: str, parent: int, shape: str) -> int:
    """Add a part to a robot; return the body that may carry more."""
    if part == "joint":
        return build.add(parent)
    if part in ("gear", "skew gear"):
        return build.gear(parent, shape, parallel=part == "gear")
    if part == "belt":
        return build.belt(parent, shape)
    if part == "differential":
        return build.differential(parent)
    return build.mimic(parent) if part == "mimic" else build.screw(parent)


def random_problem(seed: int) -> Problem:
    """Return a random robot with clusters of every kind, and contacts, some on rotors."""
    build = Builder(seed)
    rng, outputs = build.rng, [WORLD]
    if rng.random() < 0.5:
        build.joints.append(Joint("root", JointKind.ROOT, WORLD))
        build.bodies.append(Body("base", random_inertia(rng)))
        outputs = [0]
    for _ in range(int(rng.integers(2, 7))):
        parent = int(rng.choice(outputs[-3:]))
        shape = str(rng.choice([ROUND, ROUND, OVAL, LOOSE]))
        outputs.append(grown(build, str(rng.choice(PARTS)), parent, shape))
    robot = build.robot()
    axes = "world" if rng.random() < 0.3 else "contact"
    return Problem(robot, random_contacts(rng, robot), axes)


def geared_chain(links: int, contacts: int = 1, shape: str = ROUND, seed: int = 1) -> Problem:
    """Return a fixed chain of geared links, all alike, with surface contacts at its end."""
    build, tip = Builder(seed, alike=True), WORLD
    for _ in range(links):
        tip = build.gear(tip, shape, parallel=True)
    robot = build.robot()
    places = [Contact(f"c{k}", f"f{tip}", "surface", build.placement()) for k in range(contacts)]
    return Problem(robot, places)


def coupled(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Return q with dependent joints at the positions that couplings determine."""
    q = q.copy()
    follow(robot, q, ())
    return q
