"""Random robots with random contacts: every joint kind, every contact kind, all physical."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from delassus.contacts import MOVING, Contact, ContactSet
from delassus.model import WORLD, Body, Frame, Inertia, Joint, JointKind, Robot, Transform
from delassus.model.spatial import Array
from delassus.problem import Axes, Problem

SIMPLE: tuple[JointKind, ...] = (
    JointKind.REVOLUTE, JointKind.REVOLUTE, JointKind.REVOLUTE, JointKind.PRISMATIC,
)  # fmt: skip
"""Kinds of one-freedom joints; drawn uniformly, so mostly revolute."""
ALL = (*SIMPLE, JointKind.PLANAR, JointKind.FLOATING)
"""Also planar joints and floating ones inside the tree."""


def random_rotation(rng: np.random.Generator) -> Array:
    """Return a rotation matrix, uniform."""
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return np.asarray(q if np.linalg.det(q) > 0 else -q)


def random_transform(rng: np.random.Generator) -> Transform:
    """Return a pose within 0.4 m; some without rotation, as in many robots."""
    turn = np.eye(3) if rng.random() < 0.4 else random_rotation(rng)
    return Transform(turn, rng.uniform(-0.4, 0.4, 3))


def random_inertia(rng: np.random.Generator) -> Inertia:
    """Return a solid box of random size at a random pose: physical by construction."""
    mass = rng.uniform(0.3, 8.0)
    a, b, c = rng.uniform(0.05, 0.4, 3)
    box = mass / 12 * np.diag([b * b + c * c, a * a + c * c, a * a + b * b])
    turn = random_rotation(rng)
    return Inertia.from_com(mass, rng.uniform(-0.2, 0.2, 3), turn @ box @ turn.T)


def random_axis(rng: np.random.Generator) -> Array:
    """Return a unit vector, half of the time along a coordinate axis."""
    if rng.random() < 0.5:
        return np.asarray(np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0]))
    axis = rng.normal(size=3)
    return np.asarray(axis / np.linalg.norm(axis))


def random_robot(
    rng: np.random.Generator,
    kinds: tuple[JointKind, ...] = SIMPLE,
    largest: int = 14,
    floating: bool | None = None,
) -> Robot:
    """Return a tree of 3 to `largest` joints of `kinds`; the base is drawn if None."""
    floating = bool(rng.integers(2)) if floating is None else floating
    joints: list[Joint] = []
    if floating:
        joints.append(Joint("root", JointKind.ROOT, WORLD))
    for k in range(int(rng.integers(3, largest + 1))):
        # Near the last body, so that chains, branches and deep trees all appear.
        last = len(joints) - 1
        first = max(last - 3, 0 if floating else WORLD)
        parent = WORLD if last < 0 else int(rng.integers(first, last + 1))
        kind = kinds[rng.integers(len(kinds))]
        simple = kind in (JointKind.REVOLUTE, JointKind.PRISMATIC)
        armature = rng.uniform(0.01, 0.5) if simple and rng.random() < 0.3 else 0.0
        axis = random_axis(rng)
        joints.append(Joint(f"j{k}", kind, parent, random_transform(rng), axis, armature))
    bodies = [Body(f"b{i}", random_inertia(rng)) for i in range(len(joints))]
    frames = [Frame("world", WORLD, Transform())] if not floating else []
    frames += [Frame(f"f{i}", i, random_transform(rng)) for i in range(len(joints))]
    return Robot("random", joints, bodies, frames)


def random_contacts(rng: np.random.Generator, robot: Robot, most: int = 5) -> ContactSet:
    """Return several contacts, some on the same body, some on ancestors of other bodies."""
    contacts = []
    for k in range(int(rng.integers(1, most + 1))):
        frame = f"f{rng.integers(len(robot.bodies))}"
        draw = rng.random()
        kind: str | ArrayLike = "point" if draw < 0.5 else "surface"
        if draw > 0.85:
            kind = rng.normal(size=(int(rng.integers(1, 6)), 6))
        contacts.append(Contact(f"c{k}", frame, kind, random_transform(rng)))
    return ContactSet(contacts)


def random_problem(
    seed: int,
    kinds: tuple[JointKind, ...] = SIMPLE,
    axes: Axes = "contact",
    largest: int = 14,
    moving: bool = False,
) -> Problem:
    """Return the problem of a seed.

    Parameters
    ----------
    moving : the first contact's pose and positions or poses of most other contacts are inputs.
    """
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, kinds, largest)
    contacts = random_contacts(rng, robot)
    return Problem(robot, set_moving(rng, contacts) if moving else contacts, axes)


def set_moving(rng: np.random.Generator, contacts: ContactSet) -> ContactSet:
    """Return the contacts with the first pose and most other positions as inputs."""
    draws = ["pose", *(MOVING[rng.integers(3)] for _ in contacts[1:])]
    return ContactSet(
        Contact(c.name, c.frame, kind_of(c), c.placement, moves)
        for c, moves in zip(contacts, draws, strict=True)
    )


def kind_of(contact: Contact) -> str | ArrayLike:
    """Return the argument `kind` that makes another contact of the same kind."""
    return contact.selection if contact.kind_name == "selection" else contact.kind_name
