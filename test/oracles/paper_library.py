"""Robots of the cluster paper's C++ library, rebuilt from its printed numbers.

The files lie in a folder beside the repository; tests skip, with that reason, where it is absent.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from benchmarks import oracle
from benchmarks.cases import AbsentError
from delassus.model.clusters import velocity_offsets
from delassus.model.spatial import Array
from delassus.problem import Problem
from oracles import responses

CONSTANT = (
    "chain_GT_2", "chain_GT_12", "chain_PBT_4", "mini_cheetah_1ee", "mini_cheetah_4ee",
    "mit_humanoid_1ee", "urdf_mini_cheetah_4ee", "urdf_mit_humanoid_leg",
    "urdf_revolute_rotor_chain",
)  # fmt: skip
"""Robots whose loop Jacobian is constant: gears and belts."""
VARYING = ("tello_with_arms_1ee", "urdf_four_bar", "urdf_planar_leg_linkage")
"""Robots whose loop Jacobian depends on the configuration."""
FILES = oracle.URDFS
"""Robots that the library read from URDF+."""


def data(name: str) -> dict[str, Any]:
    """Return the content of a file."""
    try:
        return oracle.data(name)
    except AbsentError as error:
        pytest.skip(str(error))


def problem_of(name: str, state: int = 0) -> Problem:
    """Return a robot with its end effectors, its loops as couplings that hold at that state."""
    data(name)
    robot = oracle.robot(name, state, differentials=False)
    return Problem(robot, oracle.contacts_of(name))


@cache
def from_urdf(name: str) -> Problem:
    """Return a robot read from URDF+ with its end effectors."""
    data(name)
    return oracle.problem_of(name)


def positions_from_urdf(problem: Problem, name: str, state: int) -> Array:
    """Return q of a state in the order of the robot that was read."""
    return oracle.states(name, problem.robot)[state][0]


def with_differentials(problem: Problem) -> Problem:
    """Return Tello with its differentials as functions of the positions, not as couplings."""
    tello = oracle.robot(problem.robot.name)
    return Problem(tello, problem.contacts, problem.axes, [p.name for p in problem.outputs])


def positions(name: str, state: int) -> Array:
    """Return q of a state."""
    content = data(name)
    q = np.array(content["states"][state]["q_span"], float)
    return np.array([q[b["q_index"]] for b in content["bodies"] if b["joint"] != "free"])


def expected(name: str, state: int, key: str = "inv_osim_projection") -> Array:
    """Return the library's matrix of a state, rows of each contact linear first."""
    return oracle.matrix(data(name)["states"][state], key)


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
