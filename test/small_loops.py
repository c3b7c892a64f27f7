"""Small planar robots with couplings and loops, for the tests of clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from delassus_ros.model import (
    WORLD,
    Body,
    Coupling,
    Inertia,
    Joint,
    JointKind,
    Loop,
    LoopKind,
    Robot,
    Transform,
    clusters_of,
)

BOX = Inertia.from_com(1.0, (0.1, 0.02, 0.0), np.diag([0.01, 0.02, 0.03]))
Z = np.array([0.0, 0.0, 1.0])


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Transform:
    """Return a translation."""
    return Transform(translation=np.array([x, y, z]))


def hinge(name: str, parent: int, x: float = 0.0, kind: JointKind = JointKind.REVOLUTE) -> Joint:
    """Return a joint about or along z, at x on its parent."""
    return Joint(name, kind, parent, at(x), Z)


def assembled(joints: list[Joint], **constraints: object) -> Robot:
    """Return a robot of these joints, each with the same body."""
    bodies = [Body(f"{joint.name} body", BOX) for joint in joints]
    return Robot("test", joints, bodies, [], **constraints)  # type: ignore[arg-type]


def independent(robot: Robot) -> list[str]:
    """Return the names of the independent joints, by clusters."""
    return [robot.joints[j].name for cluster in clusters_of(robot) for j in cluster.independent]


def four_bar(
    kind: LoopKind = LoopKind.HINGE, independent: tuple[str, ...] = (), rod: float = 1.0
) -> Robot:
    """Return a four-bar in the plane; with rod 1 it is stretched, hence singular, at q = 0."""
    joints = [hinge("crank", WORLD), hinge("rod", 0, 0.5), hinge("rocker", WORLD, 1.0)]
    loop = Loop("bar", kind, 1, 2, at(rod), at(0.5), Z)
    return assembled(joints, loops=[loop], independent=independent)


def actuator(
    lead: float = 0.0, gear: float = 0.0, independent: tuple[str, ...] = ("boom",)
) -> Robot:
    """Return a boom on a rod that slides out of a barrel, closed by a pin at the boom's end.

    The rod's screw has a motor that turns by `lead` [rad/m], the boom a rotor behind a gear;
    0 for none. At q = 0 the rod is in, and the loop is open.
    """
    joints = [
        hinge("boom", WORLD),
        Joint("barrel", JointKind.REVOLUTE, WORLD, at(y=-1.0), Z),
        Joint("rod", JointKind.PRISMATIC, 1, at(), np.array([1.0, 0.0, 0.0])),
    ]
    couplings = []
    if lead:
        joints.append(Joint("motor", JointKind.REVOLUTE, 1, at(), np.array([1.0, 0.0, 0.0])))
        couplings.append(Coupling("screw", (("motor", -1.0), ("rod", lead))))
    if gear:
        joints.append(hinge("rotor", WORLD))
        couplings.append(Coupling("gear", (("rotor", -1.0), ("boom", gear))))
    pin = Loop("pin", LoopKind.HINGE, 2, 0, at(), at(1.0), Z)
    return assembled(joints, couplings=couplings, loops=[pin], independent=independent)


def closed_actuator(boom: float, lead: float = 0.0, gear: float = 0.0) -> dict[str, float]:
    """Return the positions of an actuator's joints by trigonometry, the rod out."""
    x, y = np.cos(boom), np.sin(boom) + 1.0
    rod = float(np.hypot(x, y))
    q = {"boom": boom, "barrel": float(np.arctan2(y, x)), "rod": rod}
    return q | ({"motor": lead * rod} if lead else {}) | ({"rotor": gear * boom} if gear else {})


def geared_chain(count: int, floating: bool = True) -> Robot:
    """Return a chain of links with a rotor each, ratio 6: link 2i + 1, rotor 2i + 2."""
    joints = [Joint("root", JointKind.ROOT, WORLD)] if floating else []
    couplings, parent = [], len(joints) - 1
    for i in range(count):
        joints += [hinge(f"link{i}", parent, 0.3), hinge(f"rotor{i}", parent, 0.3)]
        parent = len(joints) - 2
        couplings.append(Coupling(f"gear{i}", ((f"rotor{i}", -1.0), (f"link{i}", 6.0))))
    return assembled(joints, couplings=couplings)


def within(robot: Robot, middles: tuple[float, ...], reach: float = 0.3) -> Robot:
    """Return the same robot with limits so far to both sides of these positions."""
    joints = [
        replace(joint, lower=middle - reach, upper=middle + reach)
        for joint, middle in zip(robot.joints, middles, strict=True)
    ]
    frames = list(robot.frames.values())
    return Robot(robot.name, joints, robot.bodies, frames, loops=robot.loops)
