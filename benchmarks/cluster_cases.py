"""Robots with gears, belts and loops, and what the cluster paper's C++ library needs for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks import mechanisms, oracle
from benchmarks.cases import beside
from benchmarks.timing import Timing
from delassus import Closure, Contact, Problem, Robot, Transform
from delassus.closure.samples import closed_inputs
from delassus.model.spatial import Array

POOL = 64
"""Random closed configurations that calls cycle through."""


@dataclass(frozen=True)
class Published:
    """Medians of the paper's C++ library [s] on another machine: C-EFPA, and its projection."""

    efpa: float
    ltl: float

    def timing(self, name: str) -> Timing:
        """Return one of them as a minimum and a median."""
        return Timing(*2 * (getattr(self, name),))


@dataclass(frozen=True)
class Closed:
    """A problem whose robot has loops.

    Attributes
    ----------
    problem : the problem.
    states : pairs q, G that the paper's library printed; empty where it printed none.
    reference : joint positions of the closure's reference.
    """

    problem: Problem
    states: list[tuple[Array, Array]] = field(default_factory=list)
    reference: Mapping[str, float] = field(default_factory=dict)

    def pool(self, count: int = POOL) -> Array:
        """Return random closed configurations (count, nq)."""
        closure = Closure(self.problem.robot, self.reference)
        return closed_configurations(self.problem, count, closure)


def closed_configurations(
    problem: Problem, count: int, closure: Closure | None = None
) -> Array:
    """Return random closed configurations (count, nq)."""
    return np.array([inputs["q"] for inputs in closed_inputs(problem, count, closure=closure)])


@dataclass(frozen=True)
class ClusterCase:
    """A robot with its contacts.

    Attributes
    ----------
    name : what ``--robots`` takes.
    label : robot and contacts, as in the tables.
    load : returns the problem, or raises :class:`AbsentError`.
    published : times of the paper's library; None where there are none.
    best : how many times faster the best of ours shall be than its C-EFPA.
    beats_projection : whether pv_osimr shall need fewer operations than ltl: humanoids,
        and geared chains from 15 links on.
    prototype : operations of the first, untuned pv_osimr, which it shall not exceed.
    """

    name: str
    label: str
    load: Callable[[], Closed]
    published: Published | None = None
    best: float = 40.0
    beats_projection: bool = False
    prototype: int | None = None


def _from_oracle(name: str, *more: str) -> Callable[[], Closed]:
    """Load a robot of the oracle; with more contacts it has no states to compare with."""

    def load() -> Closed:
        problem = oracle.problem_of(name, *more)
        states = oracle.states(name, problem.robot)
        reference = dict(zip(problem.robot.joint_names, states[0][0].tolist(), strict=True))
        return Closed(problem, [] if more else states, reference)

    return load


def _jvrc(ends: int) -> Callable[[], Closed]:
    """Load JVRC-1 with the left foot's toe, or toes and heels of both feet."""

    def load() -> Closed:
        robot = Robot.from_urdf(beside("grbda_jvrc1_humanoid"))
        places = [
            (f"{side} {end}", f"{side}-ankle-pitch", Transform(np.eye(3), np.array([x, 0, -0.1])))
            for side in ("left", "right")
            for end, x in (("toe", 0.15), ("heel", -0.05))
        ]
        contacts = [Contact(name, frame, "surface", at) for name, frame, at in places]
        return Closed(Problem(robot, contacts[:ends]))

    return load


def _us(efpa: float, ltl: float) -> Published:
    return Published(1e-6 * efpa, 1e-6 * ltl)


CLUSTER_CASES = (
    ClusterCase("chain2", "geared chain 2, m=6", _from_oracle("chain_GT_2")),
    ClusterCase(
        "chain12", "geared chain 12, m=6", _from_oracle("chain_GT_12"), _us(41.0, 29.0),
        prototype=7510,
    ),
    ClusterCase(
        "chain15", "geared chain 15, m=6", lambda: Closed(mechanisms.geared_chain(15)),
        beats_projection=True,
    ),
    ClusterCase(
        "chain24", "geared chain 24, m=6", lambda: Closed(mechanisms.geared_chain(24)),
        beats_projection=True,
    ),
    ClusterCase("belts4", "belt chain 4, m=6", _from_oracle("chain_PBT_4")),
    ClusterCase(
        "belts12", "belt chain 12, m=6", lambda: Closed(mechanisms.belt_chain(12)),
        _us(59.0, 28.0), prototype=7767,
    ),
    ClusterCase(
        "cheetah6", "Mini Cheetah, 1 foot 6D, m=6", _from_oracle("mini_cheetah_1ee"),
        _us(40.0, 26.0), prototype=2085,
    ),
    ClusterCase(
        "cheetah24", "Mini Cheetah, 4 feet 6D, m=24", _from_oracle("mini_cheetah_4ee"),
        _us(45.5, 28.8), best=120.0, prototype=6624,
    ),
    ClusterCase(
        "mit6", "MIT Humanoid, toe 6D, m=6", _from_oracle("mit_humanoid_1ee"), _us(65.6, 41.0),
        beats_projection=True, prototype=4008,
    ),
    ClusterCase(
        "mit24", "MIT Humanoid, toes and heels 6D, m=24",
        _from_oracle(
            "mit_humanoid_1ee", "right_heel_contact", "left_toe_contact", "left_heel_contact"
        ),
        _us(72.5, 45.0), beats_projection=True, prototype=6220,
    ),
    ClusterCase(
        "mitleg", "MIT Humanoid's leg, URDF+, m=6",
        _from_oracle("urdf_mit_humanoid_leg"),
    ),
    ClusterCase(
        "jvrc6", "JVRC-1, URDF+, toe 6D, m=6", _jvrc(1), _us(105.0, 97.0), beats_projection=True,
        prototype=5498,
    ),
    ClusterCase(
        "jvrc24", "JVRC-1, URDF+, toes and heels 6D, m=24", _jvrc(4),
        _us(115.0, 104.0), beats_projection=True, prototype=7581,
    ),
    ClusterCase(
        "tello6", "Tello, toe 6D, m=6", _from_oracle("tello_with_arms_1ee"), _us(76.0, 44.0),
        beats_projection=True,
    ),
    ClusterCase(
        "tello24", "Tello, toes and heels 6D, m=24",
        _from_oracle(
            "tello_with_arms_1ee", "left-heel_contact", "right-toe_contact", "right-heel_contact"
        ),
        _us(82.5, 47.6), beats_projection=True,
    ),
    ClusterCase("fourbar", "four-bar, URDF+, m=6", _from_oracle("urdf_four_bar")),
    ClusterCase("planarleg", "planar leg, URDF+, m=6", _from_oracle("urdf_planar_leg_linkage")),
)  # fmt: skip
