"""Robots of the cluster paper's own C++ library, rebuilt from the numbers that it printed.

M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics Algorithms for Systems
with Kinematic Loops". The numbers may lie in a folder beside the repository.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np

from benchmarks.cases import BESIDE, AbsentError
from delassus_ros import Contact, Problem, Robot, Transform
from delassus_ros.model import (
    WORLD,
    Body,
    Coupling,
    Frame,
    FunctionConstraint,
    Inertia,
    Joint,
    JointKind,
)
from delassus_ros.model.spatial import Array
from delassus_ros.testing.tello import differential

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


def problem(name: str, *more: str) -> Problem:
    """Return a robot with its end effectors.

    Parameters
    ----------
    more : other contact points of the library that touch as well, all six rows.
    """
    content = data(name)
    points = {point["name"]: point for point in content["contact_points_not_ee"]}
    ends = [*content["end_effectors"], *(points[point] for point in more)]
    contacts = [
        Contact(
            f"contact {k}", content["bodies"][end["body"]]["name"], "surface",
            Transform(np.eye(3), np.array(end["offset"], float)),
        )
        for k, end in enumerate(ends)
    ]  # fmt: skip
    return Problem(_robot(content), contacts)


def from_urdf(name: str, robot: Robot) -> Problem:
    """Return the end effectors of a robot on the same one, read from its URDF."""
    content = data(name)
    return Problem(robot, [
        Contact(
            f"contact {k}", content["bodies"][end["body"]]["name"], "surface",
            Transform(np.eye(3), np.array(end["offset"], float)),
        )
        for k, end in enumerate(content["end_effectors"])
    ])  # fmt: skip


def states(name: str, robot: Robot) -> list[tuple[Array, Array]]:
    """Return pairs q, G of the library; G has the end effectors' rows, each linear first."""
    content = data(name)
    index = {body["name"]: body["q_index"] for body in content["bodies"]}
    entries = [
        index[body.name]
        for joint, body in zip(robot.joints, robot.bodies, strict=True)
        if joint.kind.nq
    ]
    found = []
    for state in content["states"]:
        G = np.array(state["inv_osim_projection"], float)
        order = [6 * (r // 6) + (r % 6 + 3) % 6 for r in range(len(G))]
        found.append((np.array(state["q_span"], float)[entries], G[np.ix_(order, order)]))
    return found


def _robot(content: dict[str, Any]) -> Robot:
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
    G = np.array(content["states"][0]["G"], float)
    for cluster in content["clusters"]:
        members = [content["bodies"][i] for i in cluster["bodies"]]
        names = tuple(body["name"] for body in members)
        if "Differential" in cluster["type"]:
            functions.append(differential(cluster["name"], names))
            independent += names[:2]
        elif len(members) > 1:
            columns = slice(cluster["yd_index"], cluster["yd_index"] + cluster["nyd"])
            rates = {body["name"]: G[body["v_index"], columns] for body in members}
            couplings += _couplings(rates, cluster["nyd"])
    return Robot(
        content["name"], joints, bodies, frames, couplings, (), independent, functions
    )


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
