"""Robots with closed loops for the tests, closed by construction or by a formula."""

from __future__ import annotations

import numpy as np
from urdf_text import INERTIAL, link, robot_xml, straight

from delassus_ros import Robot, Transform
from delassus_ros.model import (
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
from delassus_ros.model.clusters import Cluster, clusters_of
from delassus_ros.model.spatial import skew

BOX = Inertia.from_com(1.0, (0.05, 0.02, -0.1), np.diag([0.02, 0.03, 0.04]))
GROUND, CRANK, COUPLER, ROCKER = 1.0, 0.35, 0.9, 0.7
"""Lengths of the four-bar [m]: its crank turns all the way round."""


def along_x(length: float) -> Transform:
    return Transform(np.eye(3), np.array([length, 0.0, 0.0]))


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
        Joint("coupler", JointKind.REVOLUTE, 0, along_x(CRANK)),
        Joint(
            "rocker", JointKind.REVOLUTE, WORLD, mount @ along_x(GROUND),
            lower=rocker_limits[0], upper=rocker_limits[1],
        ),
    ]  # fmt: skip
    successor, placement = 2, along_x(ROCKER)
    if kind is LoopKind.WELD:
        joints.append(Joint("pin", JointKind.REVOLUTE, 2, along_x(ROCKER)))
        successor, placement = 3, Transform()
    joints += extra
    loop = Loop("knee", kind, 1, successor, along_x(COUPLER), placement)
    bodies = [Body(joint.name, BOX) for joint in joints]
    tip = Frame("tip", 1, along_x(COUPLER))
    return Robot("four_bar", joints, bodies, [tip], couplings, [loop], independent)


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
    bodies = [Body(joint.name, BOX) for joint in joints]
    return Robot("bennett", joints, bodies, [], (), [loop], ("j0",))


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


def poses(robot: Robot, q: np.ndarray) -> list[Transform]:
    """Return the pose of every body in the world; revolute and prismatic joints."""
    found: list[Transform] = []
    for joint, offset in zip(robot.joints, robot.q_offsets, strict=True):
        if joint.kind is JointKind.PRISMATIC:
            moved = shift(joint.axis, q[offset])
        else:
            moved = turn(joint.axis, float(q[offset]))
        above = Transform() if joint.parent == WORLD else found[joint.parent]
        found.append(above @ joint.placement @ moved)
    return found


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
    bodies = [Body(f"b{i}", BOX) for i in range(count + 1)]
    q = rng.uniform(-1.5, 1.5, count + 1)
    q[list(slides)] = rng.uniform(-0.3, 0.3, len(slides))
    tree = Robot("tree", joints, bodies, [])
    at = poses(tree, q)
    ends, frame = (first, count), random_pose(rng, length)
    closing = at[ends[1]].inverse() @ at[ends[0]] @ frame
    loop = Loop("ring", kind, *ends, frame, closing, random_axis(rng))
    independent = tuple(range(1, 1 + spare))
    names = tuple(joints[i].name for i in independent)
    robot = Robot("linkage", joints, bodies, [Frame("tip", 1, frame)], (), [loop], names)
    members = tuple(range(1, count + 1))
    return robot, Cluster(robot, members, loops=(loop,), independent=independent), q


def turn(axis: np.ndarray, angle: float) -> Transform:
    w = skew(axis)
    return Transform(np.eye(3) + np.sin(angle) * w + (1 - np.cos(angle)) * w @ w)


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
