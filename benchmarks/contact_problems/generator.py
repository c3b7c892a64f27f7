"""Contact problems of robots: matrices, accelerations and friction, the same for the same seed.

Each family below is a function of random numbers that yields problems without end. All contacts
are points in the axes of the world, with rows x, y, z; soles have four points, palms three.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count, islice
from typing import Any

import numpy as np

from delassus import Closure, Contact, DelassusSolver, Problem, Robot
from delassus.model.spatial import Array, Transform
from delassus.robots.built_in import demo_urdf
from delassus.robots.built_in.arm import TOOL, arm_urdf
from delassus.robots.built_in.humanoid import FEET, HANDS, POSTURE, SOLE, humanoid_urdf
from delassus_ros.sim.gait import LEGS
from delassus_ros.sim.quadruped import stepping_quadruped

GRAVITY = [0.0, 0.0, -9.81]
MODES = ("mixed", "holding", "sliding", "separating")
FRICTION = (0.1, 0.3, 0.6, 0.8, 1.2)
WALK_TICKS = 100
"""Problems of one sequence, 1 ms apart."""
_PALM = ((0.04, 0.0), (-0.03, 0.03), (-0.03, -0.03))  # m
_LEVEL = [0.0, 0.0, 0.0, 1.0]


@dataclass(frozen=True, eq=False)
class ContactProblem:
    """One problem: u = G f + a0, with forces in friction cones.

    Attributes
    ----------
    family, mode : key of FAMILIES, and what its contacts do, one of MODES or "walking".
    contacts : names of the contacts, n.
    G : (3n, 3n), 1/kg. a0 : (3n,), m/s². mu : (n,).
    sequence, tick : number of the sequence in its family and place in it; -1 and 0 outside.
    """

    family: str
    mode: str
    contacts: tuple[str, ...]
    G: Array
    a0: Array
    mu: Array
    sequence: int = -1
    tick: int = 0


@cache
def solver(robot: str) -> DelassusSolver:
    """Return the solver of a robot with all its contacts; compiled once per process."""
    if robot in ("quadruped", "geared"):
        model = Robot.from_urdf(demo_urdf(robot).encode())
        contacts = [Contact(leg, f"{leg}_FOOT") for leg in LEGS]
    elif robot == "arm":
        model = Robot.from_urdf(arm_urdf().encode(), base="fixed")
        contacts = [Contact("tool", TOOL)]
    else:
        model = Robot.from_urdf(humanoid_urdf().encode())
        sole = [(x * SOLE[0] / 2, y * SOLE[1] / 2) for x in (1, -1) for y in (1, -1)]
        contacts = [
            Contact(f"{name}{i}", frame, placement=Transform.from_xyz_rpy((x, y, 0.0), (0, 0, 0)))
            for frames, points in ((FEET, sole), (HANDS, _PALM))
            for name, frame in frames.items()
            for i, (x, y) in enumerate(points)
        ]
    return DelassusSolver(Problem(model, contacts, axes="world", outputs=["a0", "J", "h"]))


def carried(
    robot: str, family: str, mode: str, active: Sequence[str], q: Array, rates: Array,
    turned: Sequence[float] | None, mu: float, load: Array, noise: Array,
) -> ContactProblem:  # fmt: skip
    """Return the problem of a robot whose motors would carry a load, but for noise.

    Parameters
    ----------
    load : (contacts, 3) forces that the motors' torques are for, N.
    noise : added to the torques, N m; the base has no motors.
    turned : orientation of the base, x, y, z, w; None where it is fixed.
    """
    at = solver(robot)
    place = {} if turned is None else {"base_orientation": turned}
    state: dict[str, Any] = {"active": active, "rates": rates, "gravity": GRAVITY, **place}
    s = at.solve(q, torques=np.zeros(len(rates)), **state)
    torques = s.output("h") - s.output("J").T @ load.ravel() + noise
    if turned is not None:
        torques[:6] = 0.0
    s = at.solve(q, torques=torques, **state)
    G = 0.5 * (s.matrix + s.matrix.T)
    return ContactProblem(
        family, mode, tuple(active), G, s.output("a0").copy(), np.full(len(active), mu)
    )


def random_load(random: np.random.Generator, contacts: int, mode: str, mu: float) -> Array:
    """Return forces (contacts, 3) at which contacts hold, slide or separate, N."""
    normal = random.dirichlet(np.ones(contacts)) * random.uniform(50.0, 400.0)
    aside = {"mixed": 0.5, "holding": 0.1, "sliding": 3.0, "separating": 0.5}[mode]
    load = np.column_stack(
        [random.normal(0.0, aside * mu, (contacts, 2)) * normal[:, None], normal]
    )
    if mode == "separating":
        load[random.random(contacts) < 0.5, 2] *= -1.0
    return load


def modes(random: np.random.Generator) -> Iterator[tuple[str, float, float]]:
    """Yield modes in turn, with random friction and random size of the rates."""
    for i in count():
        yield MODES[i % 4], float(random.choice(FRICTION)), float(random.choice([0.0, 0.05, 0.5]))


def quadruped(random: np.random.Generator) -> Iterator[ContactProblem]:
    """Quadruped on one to four feet: G is regular, m = 3 to 12."""
    for mode, mu, speed in modes(random):
        chosen = random.choice(4, random.integers(1, 5), replace=False)
        active = [leg for k, leg in enumerate(LEGS) if k in chosen]
        q = np.tile([0.0, 0.7, -1.4], 4) + random.normal(0.0, 0.15, 12)
        turned = np.append(random.normal(0.0, 0.04, 3), 1.0)
        yield carried(
            "quadruped", "quadruped", mode, active, q, random.normal(0.0, 1.0, 18) * speed,
            (turned / np.linalg.norm(turned)).tolist(), mu,
            random_load(random, len(active), mode, mu), random.normal(0.0, 2.0, 18),
        )  # fmt: skip


def doubled(random: np.random.Generator) -> Iterator[ContactProblem]:
    """Quadruped with each contact twice: redundant, G of half the rank."""
    for p in quadruped(random):
        twice = np.vstack([np.eye(len(p.a0))] * 2)
        names = (*p.contacts, *(f"{name}_again" for name in p.contacts))
        G, a0, mu = twice @ p.G @ twice.T, twice @ p.a0, np.tile(p.mu, 2)
        yield ContactProblem("doubled", p.mode, names, G, a0, mu)


def arm(random: np.random.Generator, stretched: bool = False) -> Iterator[ContactProblem]:
    """Arm with its tool on a table, m = 3."""
    for mode, mu, speed in modes(random):
        q = random.uniform(-1.5, 1.5, 6)
        if stretched:
            q[1:] = [np.pi / 2, 0.0, 0.0, 0.0, 0.0]
        yield carried(
            "arm", "stretched arm" if stretched else "arm", mode, ["tool"], q,
            random.normal(0.0, 1.0, 6) * speed, None, mu, random_load(random, 1, mode, mu),
            random.normal(0.0, 2.0, 6),
        )  # fmt: skip


def stretched_arm(random: np.random.Generator) -> Iterator[ContactProblem]:
    """Arm stretched to its full reach, along which it cannot move: singular, G of rank 2."""
    return arm(random, stretched=True)


def stance(bend: Sequence[float], arms: Array) -> Array:
    """Return joint positions of the humanoid with its soles level.

    Parameters
    ----------
    bend : of the left and right leg, rad. arms : (30,) added to the joints above the hips, rad.
    """
    names = solver("humanoid").problem.robot.joint_names
    q = np.array([POSTURE.get(name, 0.0) for name in names])
    for side, angle in zip(("left", "right"), bend, strict=True):
        for joint, share in (("thigh", -1.0), ("shank", 2.0), ("ankle", -1.0)):
            q[names.index(f"{side}_{joint}_joint")] = share * angle
    legs = ("hip", "thigh", "shank", "ankle", "foot")
    return q + np.where([any(part in name for part in legs) for name in names], 0.0, arms)


def humanoid(
    random: np.random.Generator, family: str = "soles", points: int = 8
) -> Iterator[ContactProblem]:
    """Humanoid on two soles, m = 24: redundant, G of rank 12."""
    active = solver("humanoid").problem.contacts[:points]
    names = [contact.name for contact in active]
    for mode, mu, speed in modes(random):
        q = stance(random.uniform(0.05, 0.6, 2).tolist(), random.normal(0.0, 0.2, 30))
        yield carried(
            "humanoid", family, mode, names, q, random.normal(0.0, 1.0, 36) * speed, _LEVEL, mu,
            2.0 * random_load(random, points, mode, mu), random.normal(0.0, 2.0, 36),
        )  # fmt: skip


def palms(random: np.random.Generator) -> Iterator[ContactProblem]:
    """Humanoid on two soles and two palms, m = 42: redundant, G of rank 24."""
    return humanoid(random, "soles and palms", 14)


def swaying(random: np.random.Generator) -> Iterator[ContactProblem]:
    """Sequences of the humanoid that shifts its weight while its arms swing, m = 24."""
    names = [contact.name for contact in solver("humanoid").problem.contacts[:8]]
    for sequence in count():
        phase, rate = random.uniform(0.0, 6.28, 30), 6.28 * random.uniform(0.3, 1.0, 30)
        mu, begin = float(random.choice(FRICTION)), random.uniform(0.0, 2.0)
        for tick in range(WALK_TICKS):
            t = begin + 1e-3 * tick
            q = stance([0.4, 0.4], 0.3 * np.sin(rate * t + phase))
            share = 0.5 + 0.45 * np.sin(4.4 * t)
            normal = np.repeat([share, 1.0 - share], 4) * 157.0
            load = np.column_stack([0.2 * normal * np.sin(5.0 * t), 0.1 * normal, normal])
            p = carried("humanoid", "swaying", "walking", names, q, np.zeros(36), _LEVEL, mu,
                        load, random.normal(0.0, 0.3, 36))  # fmt: skip
            yield ContactProblem(p.family, p.mode, p.contacts, p.G, p.a0, p.mu, sequence, tick)


def walking(
    random: np.random.Generator, robot: str = "quadruped", family: str = "walking"
) -> Iterator[ContactProblem]:
    """Sequences of the simulated quadruped that steps on its servos, m = 6 to 12."""
    plant, at = stepping_quadruped(robot), solver(robot)
    closure = Closure(at.problem.robot)
    for sequence in count():
        for _ in range(int(random.integers(100, 300))):
            plant.step()
        mu, tick = float(random.choice(FRICTION[2:])), 0
        while tick < WALK_TICKS:
            plant.step()
            active = plant.active_contacts
            if not active:
                continue
            truth = plant.truth()
            q = closure.solve(dict(zip(plant.joint_names, truth.q, strict=True))).q
            s = at.solve(
                q, active=active, rates=np.concatenate([truth.twist, truth.velocity]),
                torques=np.concatenate([np.zeros(6), truth.effort]), gravity=GRAVITY,
                base_orientation=truth.orientation,
            )  # fmt: skip
            G = 0.5 * (s.matrix + s.matrix.T)
            yield ContactProblem(family, "walking", active, G, s.output("a0").copy(),
                                 np.full(len(active), mu), sequence, tick)  # fmt: skip
            tick += 1


def geared(random: np.random.Generator) -> Iterator[ContactProblem]:
    """Sequences of the quadruped with rotors and a four-bar, a robot with closed loops."""
    return walking(random, "geared", "closed loops")


Family = Callable[[np.random.Generator], Iterator[ContactProblem]]
FAMILIES: dict[str, tuple[Family, float]] = {
    "quadruped": (quadruped, 0.2), "walking": (walking, 0.2), "closed loops": (geared, 0.1),
    "arm": (arm, 0.05), "stretched arm": (stretched_arm, 0.05), "doubled": (doubled, 0.1),
    "soles": (humanoid, 0.15), "swaying": (swaying, 0.1), "soles and palms": (palms, 0.05),
}  # fmt: skip
"""Families, and the share that each has in the data set."""


def problems(total: int = 2000, seed: int = 0) -> Iterator[ContactProblem]:
    """Yield the data set's problems, family after family.

    A family has its own random numbers, so that the first problems of a longer data set are those
    of a shorter one.
    """
    for index, (family, share) in enumerate(FAMILIES.values()):
        random = np.random.default_rng([seed, index])
        yield from islice(family(random), max(1, round(share * total)))
