"""Robots of the cluster paper's C++ library, rebuilt from its printed numbers.

The files lie in a folder beside the repository; tests skip, with that reason, where it is absent.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots

from delassus_ros.contacts import Contact
from delassus_ros.model import WORLD, Body, Frame, Inertia, Joint, JointKind, Robot, Transform
from delassus_ros.model.clusters import velocity_offsets
from delassus_ros.model.constraints import Coupling
from delassus_ros.model.robot import Base
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem
from delassus_ros.testing.tello import differential
from oracles import responses

ORACLE = Path(__file__).resolve().parents[3] / "shared" / "oracle"
CONSTANT = (
    "chain_GT_2", "chain_GT_12", "chain_PBT_4", "mini_cheetah_1ee", "mini_cheetah_4ee",
    "mit_humanoid_1ee", "urdf_mini_cheetah_4ee", "urdf_mit_humanoid_leg",
    "urdf_revolute_rotor_chain",
)  # fmt: skip
"""Robots whose loop Jacobian is constant: gears and belts."""
VARYING = ("tello_with_arms_1ee", "urdf_four_bar", "urdf_planar_leg_linkage")
"""Robots whose loop Jacobian depends on the configuration."""

FILES: dict[str, tuple[str, Base]] = {
    "urdf_four_bar": ("grbda_four_bar", "fixed"),
    "urdf_mini_cheetah_4ee": ("grbda_mini_cheetah", "floating"),
    "urdf_mit_humanoid_leg": ("grbda_mit_humanoid_leg", "fixed"),
    "urdf_planar_leg_linkage": ("grbda_planar_leg_linkage", "fixed"),
    "urdf_revolute_rotor_chain": ("grbda_revolute_rotor_chain", "fixed"),
}
"""Oracle file → URDF+ file and base."""


@cache
def data(name: str) -> dict[str, Any]:
    """Return the content of a file."""
    path = ORACLE / f"grbda_{name}.json"
    if not path.is_file():
        pytest.skip(f"no ../shared/oracle/{path.name} beside the repository")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def problem_of(name: str, state: int = 0) -> Problem:
    """Return a robot with its end effectors, its loops as couplings that hold at that state."""
    content = data(name)
    joints, bodies = [], []
    for body in content["bodies"]:
        placement = Transform(np.array(body["Xtree_E"], float).T, np.array(body["Xtree_r"], float))
        parent = WORLD if body["parent"] < 0 else body["parent"]
        if body["joint"] == "free":
            joints.append(Joint(body["name"], JointKind.ROOT, WORLD))
        else:
            axis = np.array(body["S"], float)[:3, 0]
            joints.append(Joint(body["name"], JointKind.REVOLUTE, parent, placement, axis))
        bodies.append(Body(body["name"], _inertia(np.array(body["I"], float))))
    frames = [Frame(f"f{i}", i, Transform()) for i in range(len(bodies))]
    robot = Robot(name, joints, bodies, frames, couplings=_couplings(content, state))
    return Problem(robot, contacts_of(name))


@cache
def from_urdf(name: str) -> Problem:
    """Return a robot read from URDF+ with its end effectors."""
    file, base = FILES[name]
    robot = Robot.from_urdf(robots.shared(file), base)
    content = data(name)
    contacts = [
        Contact(
            f"ee{end['index']}", content["bodies"][end["body"]]["name"], "surface",
            Transform(np.eye(3), np.array(end["offset"], float)),
        )
        for end in content["end_effectors"]
    ]  # fmt: skip
    return Problem(robot, contacts)


def positions_from_urdf(problem: Problem, name: str, state: int) -> Array:
    """Return q of a state in the order of the robot that was read."""
    content = data(name)
    given = content["states"][state]["q_span"]
    by_link = {b["name"]: given[b["q_index"]] for b in content["bodies"] if b["joint"] != "free"}
    robot = problem.robot
    return np.array([
        by_link[body.name]
        for joint, body in zip(robot.joints, robot.bodies, strict=True)
        if joint.kind.nq
    ])  # fmt: skip


def with_differentials(problem: Problem) -> Problem:
    """Return Tello with its differentials as functions of the positions, not as couplings."""
    robot, content = problem.robot, data("tello_with_arms_1ee")
    functions, independent, tied = [], [], set()
    for cluster in content["clusters"]:
        if not cluster["type"].startswith("Tello"):
            continue
        joints = tuple(content["bodies"][i]["name"] for i in cluster["bodies"])
        functions.append(differential(cluster["name"], joints))
        independent += joints[:2]  # the rotors
        tied.update(joints)
    couplings = [c for c in robot.couplings if tied.isdisjoint(dict(c.ratios))]
    frames = list(robot.frames.values())
    tello = Robot(
        robot.name, robot.joints, robot.bodies, frames, couplings=couplings,
        functions=functions, independent=independent,
    )  # fmt: skip
    return Problem(tello, problem.contacts, problem.axes, [p.name for p in problem.outputs])


def contacts_of(name: str) -> list[Contact]:
    """Return the end effectors of a robot."""
    return [
        Contact(
            f"ee{end['index']}", f"f{end['body']}", "surface",
            Transform(np.eye(3), np.array(end["offset"], float)),
        )
        for end in data(name)["end_effectors"]
    ]  # fmt: skip


def positions(name: str, state: int) -> Array:
    """Return q of a state."""
    content = data(name)
    q = np.array(content["states"][state]["q_span"], float)
    return np.array([q[b["q_index"]] for b in content["bodies"] if b["joint"] != "free"])


def expected(name: str, state: int, key: str = "inv_osim_projection") -> Array:
    """Return the library's matrix of a state, rows of each contact linear first."""
    G = np.array(data(name)["states"][state][key], float)
    order = [6 * (r // 6) + (r % 6 + 3) % 6 for r in range(len(G))]
    return np.asarray(G[np.ix_(order, order)])


def outputs(problem: Problem, name: str, state: int) -> dict[str, Array]:
    """Return G, and J and M⁻¹Jᵀ in the independent velocities of the problem.

    The library's are in rates of its own; independent velocities are rows of its explicit
    Jacobian. A robot that was read from URDF+ has its joints in another order: G alone.
    """
    content = data(name)
    found = {"G": expected(name, state)}
    if problem.robot.name != name:
        return found
    given = {k: np.array(content["states"][state][k], float) for k in ("G", "M_projected")}
    rows = []
    for i in velocity_offsets(problem.robot):
        body = content["bodies"][i]
        own = given["G"][body["v_index"] : body["v_index"] + body["nv"]]
        rows.append(own if body["nv"] == 1 else np.roll(own, 3, axis=0))
    change, size = np.vstack(rows), given["M_projected"].shape[0]
    jacobian = np.array(content["states"][state]["J_body"], float).reshape(-1, 2, 3, size)
    theirs = responses(given["M_projected"], jacobian[:, ::-1].reshape(-1, size))
    back = np.linalg.inv(change)
    return found | {"J": theirs["J"] @ back, "MinvJT": change @ theirs["MinvJT"]}


def states(name: str) -> range:
    """Return the indices of the states."""
    return range(len(data(name)["states"]))


def _inertia(spatial: Array) -> Inertia:
    h = spatial[:3, 3:]
    return Inertia(spatial[5, 5], np.array([h[2, 1], h[0, 2], h[1, 0]]), spatial[:3, :3])


def _couplings(content: dict[str, Any], state: int) -> list[Coupling]:
    """Return one coupling per dependent joint: its rate by those of the cluster's chosen ones."""
    G = np.array(content["states"][state]["G"], float)
    found = []
    for cluster in content["clusters"]:
        bodies = [content["bodies"][i] for i in cluster["bodies"]]
        if len(bodies) == 1:
            continue
        columns = slice(cluster["yd_index"], cluster["yd_index"] + cluster["nyd"])
        rows = {b["name"]: G[b["v_index"], columns] for b in bodies}
        chosen = _basis(rows, cluster["nyd"])
        to_chosen = np.linalg.inv(np.array([rows[n] for n in chosen]))
        for joint, row in rows.items():
            if joint in chosen:
                continue
            ratios = row @ to_chosen
            terms = [(n, -float(r)) for n, r in zip(chosen, ratios, strict=True) if abs(r) > 1e-14]
            found.append(Coupling(f"{joint} follows", ((joint, 1.0), *terms)))
    return found


def _basis(rows: dict[str, Array], size: int) -> list[str]:
    """Return joints whose rates determine the others', those with a rate of their own first."""
    chosen: list[str] = []
    for joint in sorted(rows, key=lambda n: (np.count_nonzero(rows[n]), "otor" in n)):
        trial = np.array([rows[n] for n in (*chosen, joint)])
        if np.linalg.svd(trial, compute_uv=False)[-1] > 1e-6:
            chosen.append(joint)
        if len(chosen) == size:
            break
    return chosen
