"""Robots with couplings and loops for the tests, closed by construction or by a formula."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from oracles.textbook import axis_rotation, body_poses
from urdf_text import INERTIAL, link, robot_xml, straight

from delassus import Robot, Transform
from delassus.model import (
    WORLD,
    Body,
    Coupling,
    Frame,
    Inertia,
    Joint,
    JointKind,
    Loop,
    LoopKind,
)
from delassus.model.clusters import Cluster, clusters_of

BOX = Inertia.from_com(1.0, (0.05, 0.02, -0.1), np.diag([0.02, 0.03, 0.04]))
Z = np.array([0.0, 0.0, 1.0])
GROUND, CRANK, COUPLER, ROCKER = 1.0, 0.35, 0.9, 0.7
"""Lengths of the four-bar [m]: its crank turns all the way round."""


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> Transform:
    """Return a translation [m]."""
    return Transform(translation=np.array([x, y, z]))


def hinge(name: str, parent: int, x: float = 0.0, kind: JointKind = JointKind.REVOLUTE) -> Joint:
    """Return a joint about or along z, at x on its parent."""
    return Joint(name, kind, parent, at(x), Z)


def robot_of(
    joints: list[Joint],
    frames: tuple[Frame, ...] = (),
    name: str = "test",
    **constraints: object,
) -> Robot:
    """Return a robot of these joints, each with the same body."""
    bodies = [Body(joint.name, BOX) for joint in joints]
    return Robot(name, joints, bodies, frames, **constraints)  # type: ignore[arg-type]


def independent(robot: Robot) -> list[str]:
    """Return the names of the independent joints, by clusters."""
    return [robot.joints[j].name for cluster in clusters_of(robot) for j in cluster.independent]


def four_bar(
    kind: LoopKind = LoopKind.POINT,
    mount: Transform | None = None,
    independent: tuple[str, ...] = ("crank",),
    rocker_limits: tuple[float, float] = (-np.inf, np.inf),
    couplings: tuple[Coupling, ...] = (),
    extra: tuple[Joint, ...] = (),
) -> Robot:
    """Return a crank and rocker about parallel axes; a weld needs one more joint at the rocker."""
    mount = mount or Transform()
    joints = [
        Joint("crank", JointKind.REVOLUTE, WORLD, mount),
        Joint("coupler", JointKind.REVOLUTE, 0, at(CRANK)),
        Joint(
            "rocker", JointKind.REVOLUTE, WORLD, mount @ at(GROUND),
            lower=rocker_limits[0], upper=rocker_limits[1],
        ),
    ]  # fmt: skip
    successor, placement = 2, at(ROCKER)
    if kind is LoopKind.WELD:
        joints.append(Joint("pin", JointKind.REVOLUTE, 2, at(ROCKER)))
        successor, placement = 3, Transform()
    joints += extra
    loop = Loop("knee", kind, 1, successor, at(COUPLER), placement)
    frames = (Frame("tip", 1, at(COUPLER)),)
    return robot_of(
        joints, frames, "four_bar", couplings=couplings, loops=[loop], independent=independent
    )


def four_bar_urdf(*parts: str) -> str:
    """Return the four-bar as URDF with frames coupler_end and rocker_end, which nothing closes."""
    joints = (
        ("crank", "ground", 0.0, "continuous"),
        ("coupler", "crank", CRANK, "continuous"),
        ("rocker", "ground", GROUND, "continuous"),
        ("coupler_end", "coupler", COUPLER, "fixed"),
        ("rocker_end", "rocker", ROCKER, "fixed"),
    )
    links = (link(name, "" if name.endswith("end") else INERTIAL) for name, *_ in joints)
    tree = (straight(n, parent, n, f"{x} 0 0", kind=kind) for n, parent, x, kind in joints)
    return robot_xml(link("ground", ""), *links, *tree, *parts, head='name="four_bar"')


def assembled(crank: float, side: float = 1.0) -> tuple[float, float]:
    """Return coupler and rocker of the four-bar in closed form; `side` ±1 picks the branch."""
    tip = CRANK * np.array([np.cos(crank), np.sin(crank)])
    to = np.array([GROUND, 0.0]) - tip
    far = float(np.linalg.norm(to))
    along = (COUPLER**2 - ROCKER**2 + far**2) / (2.0 * far)
    height = side * np.sqrt(COUPLER**2 - along**2)
    pin = tip + along * to / far + height * np.array([-to[1], to[0]]) / far
    coupler = np.arctan2(*(pin - tip)[::-1]) - crank
    rocker = np.arctan2(pin[1], pin[0] - GROUND)
    return float(np.arctan2(np.sin(coupler), np.cos(coupler))), float(rocker)


REFERENCE = {"crank": 0.8, "coupler": assembled(0.8)[0], "rocker": assembled(0.8)[1]}


def same_turn(a, b) -> bool:
    """Return True if angles are equal but for whole turns."""
    difference = np.asarray(a) - np.asarray(b)
    return bool(np.abs(difference - 2 * np.pi * np.round(difference / (2 * np.pi))).max() < 1e-9)


def reach_of_the_rocker() -> tuple[float, float]:
    """Return the rocker's angles where crank and coupler are in line, on this branch."""
    ends = []
    for reach in (COUPLER + CRANK, COUPLER - CRANK):
        cosine = (GROUND**2 + ROCKER**2 - reach**2) / (2 * GROUND * ROCKER)
        ends.append(np.pi - np.arccos(cosine))
    return min(ends), max(ends)


BENNETT = (0.4, 0.5), (0.7, float(np.arcsin(0.7 / 0.4 * np.sin(0.5))))
"""Length and twist of the links of Bennett's linkage: sines of twists are as the lengths."""


def bennett() -> Robot:
    """Return a spatial four-bar that moves although the six rows of its weld count for three."""
    first, second = (Transform.from_xyz_rpy((a, 0, 0), (alpha, 0, 0)) for a, alpha in BENNETT)
    joints = [
        Joint("j0", JointKind.REVOLUTE, WORLD),
        Joint("j1", JointKind.REVOLUTE, 0, first),
        Joint("j2", JointKind.REVOLUTE, 1, second),
        Joint("j3", JointKind.REVOLUTE, 2, first),
    ]
    loop = Loop("bennett", LoopKind.WELD, 3, WORLD, second)
    return robot_of(joints, loops=[loop], independent=("j0",))


def closed_bennett(angle: float) -> list[float]:
    """Return q by the textbook's formula."""
    (_, alpha), (_, beta) = BENNETT
    factor = np.sin((alpha + beta) / 2) / np.sin((beta - alpha) / 2)
    other = 2 * np.arctan(factor / np.tan(angle / 2))
    return [angle, other, -angle, -other]


def closed_four_bar(crank: float, side: float = 1.0) -> list[float]:
    return [crank, *assembled(crank, side)]


def null_space(K: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the motions that K allows."""
    _, sizes, vectors = np.linalg.svd(K)
    rank = int(np.sum(sizes > 1e-9 * sizes[0]))
    return vectors[rank:].T


def spans(E: np.ndarray, basis: np.ndarray) -> float:
    """Return how far the columns of E are from the basis, relative; their number must agree."""
    assert E.shape == basis.shape
    assert np.linalg.matrix_rank(E) == E.shape[1]
    return float(np.linalg.norm(E - basis @ (basis.T @ E)) / np.linalg.norm(E))


def random_pose(rng: np.random.Generator, length: float = 0.3) -> Transform:
    return Transform.from_xyz_rpy(rng.uniform(-length, length, 3), rng.uniform(-3.0, 3.0, 3))


def random_axis(rng: np.random.Generator) -> np.ndarray:
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def random_linkage(
    kind: LoopKind,
    seed: int,
    spare: int = 2,
    slides: tuple[int, ...] = (2,),
    length: float = 0.3,
) -> tuple[Robot, Cluster, np.ndarray]:
    """Return a spatial loop in general position, its cluster, and a q that closes it.

    It has as many joints as rows, and `spare` more, which are independent: 1 to `spare`. The
    joints `slides` are prismatic, the links up to `length` long in each direction [m].
    """
    rng = np.random.default_rng(seed)
    count = kind.rows + spare
    first = count // 2
    parents = [WORLD, *range(first), 0, *range(first + 1, count)]
    joints = [
        Joint(
            f"j{i}", JointKind.PRISMATIC if i in slides else JointKind.REVOLUTE, parents[i],
            random_pose(rng, length), random_axis(rng),
        )
        for i in range(count + 1)
    ]  # fmt: skip
    q = rng.uniform(-1.5, 1.5, count + 1)
    q[list(slides)] = rng.uniform(-0.3, 0.3, len(slides))
    placed = body_poses(robot_of(joints), q)
    ends, frame = (first, count), random_pose(rng, length)
    closing = placed[ends[1]].inverse() @ placed[ends[0]] @ frame
    loop = Loop("ring", kind, *ends, frame, closing, random_axis(rng))
    independent = tuple(range(1, 1 + spare))
    names = tuple(joints[i].name for i in independent)
    robot = robot_of(joints, (Frame("tip", 1, frame),), loops=[loop], independent=names)
    members = tuple(range(1, count + 1))
    return robot, Cluster(robot, members, loops=(loop,), independent=independent), q


def turn(axis: np.ndarray, angle: float) -> Transform:
    return Transform(axis_rotation(axis, angle))


def shift(axis: np.ndarray, length: float) -> Transform:
    return Transform(translation=length * axis)


def motions(kind: LoopKind, axes: np.ndarray) -> tuple[Transform, list[Transform]]:
    """Return a motion that a loop of this kind leaves free, and some that open it.

    Parameters
    ----------
    axes : x, y and z as columns; z is the axis of the loop.
    """
    x, y, z = axes.T
    return {
        LoopKind.POINT: (turn(x, 0.4) @ turn(y, 0.3), [shift(x, 0.1)]),
        LoopKind.HINGE: (turn(z, 0.7), [shift(z, 0.1), turn(x, 0.1)]),
        LoopKind.SLIDER: (shift(z, 0.3), [shift(x, 0.1), turn(z, 0.1)]),
        LoopKind.PLANAR: (
            shift(x, 0.2) @ shift(y, -0.4) @ turn(z, 0.9), [shift(z, 0.1), turn(y, 0.1)]
        ),
        LoopKind.WELD: (Transform(), [shift(y, 0.1), turn(x, 0.1), turn(z, 0.1)]),
    }[kind]  # fmt: skip


def tied(robot: Robot) -> Cluster:
    """Return the first cluster with constraints."""
    return next(cluster for cluster in clusters_of(robot) if not cluster.is_ordinary)


def stretched_four_bar(
    kind: LoopKind = LoopKind.HINGE, independent: tuple[str, ...] = (), rod: float = 1.0
) -> Robot:
    """Return a four-bar whose crank, rod and rocker are in line, hence singular, at q = 0.

    With another `rod` than 1 m it is open there.
    """
    joints = [hinge("crank", WORLD), hinge("rod", 0, 0.5), hinge("rocker", WORLD, 1.0)]
    loop = Loop("bar", kind, 1, 2, at(rod), at(0.5), Z)
    return robot_of(joints, loops=[loop], independent=independent)


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
    return robot_of(joints, couplings=couplings, loops=[pin], independent=independent)


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
    return robot_of(joints, couplings=couplings)


def within(robot: Robot, middles: tuple[float, ...], reach: float = 0.3) -> Robot:
    """Return the same robot with limits so far to both sides of these positions."""
    joints = [
        replace(joint, lower=middle - reach, upper=middle + reach)
        for joint, middle in zip(robot.joints, middles, strict=True)
    ]
    frames = list(robot.frames.values())
    return Robot(robot.name, joints, robot.bodies, frames, loops=robot.loops)
