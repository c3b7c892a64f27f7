"""Published robots with loops, couplings and mimic joints: read, grouped, and their loops checked.

The reference is what the cluster paper's own library printed for them, where that is at hand.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots

from delassus import Contact, DelassusSolver, Problem
from delassus.algorithms.dense import definition
from delassus.errors import RobotError
from delassus.model import Robot, clusters_of
from delassus.model.clusters import groups_of
from delassus.model.loops import LoopClosure
from delassus.model.robot import Base

ORACLE = robots.SHARED.parent / "oracle"
ORACLES: dict[str, tuple[str, Base]] = {
    "grbda_four_bar": ("urdf_four_bar", "fixed"),
    "grbda_planar_leg_linkage": ("urdf_planar_leg_linkage", "fixed"),
    "grbda_mini_cheetah": ("urdf_mini_cheetah_4ee", "floating"),
    "grbda_mit_humanoid_leg": ("urdf_mit_humanoid_leg", "fixed"),
    "grbda_revolute_rotor_chain": ("urdf_revolute_rotor_chain", "fixed"),
}


def oracle(name: str) -> Any:
    path = ORACLE / f"grbda_{name}.json"
    if not path.is_file():
        pytest.skip(f"no ../shared/oracle/{path.name} beside the repository")
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ORACLES)
def test_constraints_are_those_of_the_reference(name: str) -> None:
    """Its states close our loops, and its loop Jacobian keeps them closed."""
    file, base = ORACLES[name]
    robot, data = Robot.from_urdf(robots.shared(name), base), oracle(file)
    bodies = {body["name"]: body for body in data["bodies"]}
    theirs = {frozenset(bodies_of(data, cluster)) for cluster in data["clusters"]}
    ours = {
        frozenset(robot.bodies[joint].name for joint in cluster.joints)
        for cluster in clusters_of(robot)
    }
    assert ours == theirs
    for group, cluster in zip(groups_of(robot), clusters_of(robot), strict=True):
        if group.is_ordinary:
            continue
        closure = LoopClosure(group)
        described = [bodies[robot.bodies[joint].name] for joint in group.joints]
        for state in data["states"]:
            q = np.array([state["q_span"][body["q_index"]] for body in described])
            loop_jacobian = np.array([state["G"][body["v_index"]] for body in described])
            columns = np.abs(loop_jacobian).max(axis=0) > 0
            assert np.count_nonzero(columns) == len(cluster.independent)
            # It closes its loops to 1e-11.
            assert np.abs(closure.gap(q)).max() < 1e-10
            assert np.abs(closure.jacobian(q) @ loop_jacobian).max() < 1e-14
            rows = [group.joints.index(joint) for joint in cluster.independent]
            assert np.array_equal(loop_jacobian[rows][:, columns], np.eye(len(rows)))


def bodies_of(data: Any, cluster: Any) -> list[str]:
    return [body["name"] for body in data["bodies"] if body["index"] in cluster["bodies"]]


@pytest.mark.parametrize(
    ("name", "base", "sizes"),
    [
        ("grbda_six_bar", "fixed", {(5, 3): 1}),
        ("grbda_mit_humanoid", "floating", {(1, 1): 1, (2, 1): 14, (4, 2): 2}),
        ("grbda_jvrc1_humanoid", "floating", {(1, 1): 8, (2, 1): 25}),
        ("grbda_mit_humanoid_leg", "fixed", {(2, 1): 3, (4, 2): 1}),
    ],
)
def test_sizes_of_clusters(name: str, base: Base, sizes: dict[tuple[int, int], int]) -> None:
    clusters = clusters_of(Robot.from_urdf(robots.shared(name), base))
    found = [(len(cluster.joints), len(cluster.independent)) for cluster in clusters]
    assert {size: found.count(size) for size in found} == sizes


def test_the_digit_like_robot_closes_its_six_loops_by_its_motors() -> None:
    path = robots.shared("epr_digit_like_2legs")
    robot = Robot.from_urdf(path, loops=path.with_suffix(".yaml"))
    # Six spherical joints are three each, six universal ones two each.
    assert (robot.nq, len(robot.loops)) == (30 + 6 * 2 + 6 * 1, 6)
    clusters = [cluster for cluster in clusters_of(robot) if not cluster.is_ordinary]
    found = sorted((len(each.joints), len(each.independent), len(each.loops)) for each in clusters)
    assert found == [(8, 2, 1), (8, 2, 1), (14, 2, 2), (14, 2, 2)]
    for cluster in clusters:
        assert all(robot.joints[joint].name.startswith("motor") for joint in cluster.independent)
    for group in groups_of(robot):
        if not group.is_ordinary:
            closure = LoopClosure(group)
            closed = closure.close(closure.reference())
            assert closed is not None
            assert np.abs(closure.gap(closed)).max() < 1e-8
            rank = np.linalg.matrix_rank(closure.jacobian(closed), tol=1e-4)
            assert rank == len(group.joints) - 2


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("panda_description/urdf/panda.urdf", [(2, 1)]),
        ("baxter_description/urdf/baxter.urdf", [(2, 1), (2, 1)]),
        ("talos_data/robots/talos_full_v2.urdf", [(7, 1), (7, 1)]),
        ("tiago_pro_description/robots/tiago_pro.urdf", [(6, 1), (6, 1)]),
        ("talos_data/robots/talos_reduced.urdf", []),
    ],
)
def test_mimic_joints_follow_the_joints_that_they_name(
    name: str, sizes: list[tuple[int, int]]
) -> None:
    robot = Robot.from_urdf(Path(robots.example(name)))
    clusters = [cluster for cluster in clusters_of(robot) if not cluster.is_ordinary]
    assert [(len(each.joints), len(each.independent)) for each in clusters] == sizes
    for cluster in clusters:
        (leader,) = (robot.joints[joint].name for joint in cluster.independent)
        assert all(coupling.ratios[-1][0] == leader for coupling in cluster.couplings)


def test_a_mimic_of_a_joint_that_does_not_exist_is_refused_by_name() -> None:
    path = robots.example("alex_description/urdf/alex_psyonic_hands.urdf")
    with pytest.raises(
        RobotError, match="'Left_index_q2': <mimic>: unknown joint 'index_q1'; did you mean"
    ):
        Robot.from_urdf(path)


def test_the_default_algorithm_takes_mimic_fingers() -> None:
    """As `DelassusSolver(Problem(robot, contacts))` is the first call that everybody writes."""
    robot = Robot.from_urdf(Path(robots.example("panda_description/urdf/panda.urdf")), "fixed")
    problem = Problem(robot, [Contact("hand", "panda_hand", "surface")])
    q = robot.neutral()
    q[:7] = 0.3
    G = DelassusSolver(problem).solve(q).matrix
    expected = definition(problem, {"q": q})
    assert np.abs(G - expected).max() < 1e-11 * np.abs(expected).max()
