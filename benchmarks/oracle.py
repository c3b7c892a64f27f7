"""Robots of the cluster paper's own C++ library, rebuilt from the numbers that it printed.

M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for Systems
with Kinematic Loops". The numbers may lie in a folder beside the repository.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from benchmarks.cases import BESIDE, AbsentError, beside
from delassus import Contact, Problem, Robot, Transform
from delassus.model import (
    WORLD,
    Body,
    Coupling,
    Frame,
    FunctionConstraint,
    Inertia,
    Joint,
    JointKind,
)
from delassus.model.robot import Base
from delassus.model.spatial import Array
from delassus.testing.tello import differential

URDFS: Mapping[str, tuple[str, Base]] = {
    "urdf_four_bar": ("grbda_four_bar", "fixed"),
    "urdf_mini_cheetah_4ee": ("grbda_mini_cheetah", "floating"),
    "urdf_mit_humanoid_leg": ("grbda_mit_humanoid_leg", "fixed"),
    "urdf_planar_leg_linkage": ("grbda_planar_leg_linkage", "fixed"),
    "urdf_revolute_rotor_chain": ("grbda_revolute_rotor_chain", "fixed"),
}
"""URDF+ file and base of the robots that the library read."""
_NOISE = 1e-14
_REGULAR = 1e-6
"""Smallest singular value with which rates may be independent."""


@cache
def data(name: str) -> dict[str, Any]:
    """Return what the library printed of a robot.

    Raises
    ------
    AbsentError
        If it is not at hand.
    """
    file = BESIDE.parent / "oracle" / f"grbda_{name}.json"
    if not file.is_file():
        raise AbsentError(f"no ../shared/oracle/{file.name} beside the repository")
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return content


def contacts_of(name: str, *more: str) -> list[Contact]:
    """Return the end effectors of a robot, on the frames of its bodies.

    Parameters
    ----------
    more : other contact points of the library that touch as well, all six rows.
    """
    content = data(name)
    points = {point["name"]: point for point in content["contact_points_not_ee"]}
    ends = [*content["end_effectors"], *(points[point] for point in more)]
    return [
        Contact(
            f"contact {k}", content["bodies"][end["body"]]["name"], "surface",
            Transform(np.eye(3), np.array(end["offset"], float)),
        )
        for k, end in enumerate(ends)
    ]  # fmt: skip


def states(name: str, robot: Robot) -> list[tuple[Array, Array]]:
    """Return pairs q, G of the library, q in the order of the robot's joints."""
    content = data(name)
    index = {body["name"]: body["q_index"] for body in content["bodies"]}
    entries = [
        index[body.name]
        for joint, body in zip(robot.joints, robot.bodies, strict=True)
        if joint.kind.nq
    ]
    return [
        (np.array(state["q_span"], float)[entries], matrix(state))
        for state in content["states"]
    ]


def matrix(state: Mapping[str, Any], key: str = "inv_osim_projection") -> Array:
    """Return G of a state, with the end effectors' rows, each linear first."""
    G = np.array(state[key], float)
    order = [6 * (r // 6) + (r % 6 + 3) % 6 for r in range(len(G))]
    return np.asarray(G[np.ix_(order, order)])


def problem_of(name: str, *more: str) -> Problem:
    """Return a robot, read from URDF+ if the library read it, with its end effectors.

    Parameters
    ----------
    more : as of :func:`contacts_of`.
    """
    contacts = contacts_of(name, *more)
    if name not in URDFS:
        return Problem(robot(name), contacts)
    file, base = URDFS[name]
    return Problem(Robot.from_urdf(beside(file), base), contacts)


def robot(
    name: str, state: int = 0, differentials: bool = True, by_links: bool = False
) -> Robot:
    """Return a robot with its loops as couplings that hold at a state.

    Parameters
    ----------
    differentials : those of Tello are functions of the positions instead.
    by_links : the independent joints of differentials are those of the links, as the library's
        approximate methods have them; otherwise those of the rotors.
    """
    content = data(name)
    joints, bodies = [], []
    for body in content["bodies"]:
        place = Transform(np.array(body["Xtree_E"], float).T, np.array(body["Xtree_r"], float))
        parent = WORLD if body["parent"] < 0 else body["parent"]
        if body["joint"] == "free":
            joints.append(Joint(body["name"], JointKind.ROOT, WORLD))
        else:
            axis = np.array(body["S"], float)[:3, 0]
            joints.append(Joint(body["name"], JointKind.REVOLUTE, parent, place, axis))
        bodies.append(Body(body["name"], _inertia(np.array(body["I"], float))))
    frames = [Frame(body.name, i, Transform()) for i, body in enumerate(bodies)]
    couplings: list[Coupling] = []
    functions: list[FunctionConstraint] = []
    independent: list[str] = []
    G = np.array(content["states"][state]["G"], float)
    for cluster in content["clusters"]:
        members = [content["bodies"][i] for i in cluster["bodies"]]
        names = tuple(body["name"] for body in members)
        if differentials and "Differential" in cluster["type"]:
            functions.append(differential(cluster["name"], names))
            independent += names[2:] if by_links else names[:2]
        elif len(members) > 1:
            columns = slice(cluster["yd_index"], cluster["yd_index"] + cluster["nyd"])
            rates = {body["name"]: G[body["v_index"], columns] for body in members}
            couplings += _couplings(rates, cluster["nyd"])
    return Robot(name, joints, bodies, frames, couplings, (), independent, functions)


def _inertia(spatial: Array) -> Inertia:
    h = spatial[:3, 3:]
    return Inertia(spatial[5, 5], np.array([h[2, 1], h[0, 2], h[1, 0]]), spatial[:3, :3])


def _couplings(rates: dict[str, Array], freedoms: int) -> list[Coupling]:
    """Return one coupling per joint of a cluster whose rate follows from chosen ones."""
    chosen: list[str] = []
    # Links before rotors, and those with a rate of their own first.
    for joint in sorted(rates, key=lambda n: (np.count_nonzero(rates[n]), "otor" in n)):
        trial = np.array([rates[n] for n in (*chosen, joint)])
        if len(chosen) < freedoms and np.linalg.svd(trial)[1][-1] > _REGULAR:
            chosen.append(joint)
    to_chosen = np.linalg.inv(np.array([rates[n] for n in chosen]))
    found = []
    for joint, row in rates.items():
        if joint not in chosen:
            ratios = zip(chosen, row @ to_chosen, strict=True)
            terms = [(n, -float(ratio)) for n, ratio in ratios if abs(ratio) > _NOISE]
            found.append(Coupling(f"{joint} follows", ((joint, 1.0), *terms)))
    return found
