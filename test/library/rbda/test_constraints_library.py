"""K and E against the reference library's published states."""

from __future__ import annotations

import numpy as np
import pytest
import robots
from linkages import (
    null_space,
    robot_of,
    spans,
    tied,
)
from oracles import paper_library

from delassus import Robot, Transform
from delassus.model import (
    WORLD,
    Cluster,
    Frame,
    Joint,
    JointKind,
)
from delassus.rbda.constraints import constraint_jacobian, loop_jacobian, residual
from delassus.testing.tello import differential


def tello(name: str) -> tuple[Robot, Cluster]:
    parents = (WORLD, WORLD, WORLD, 2)
    joints = [Joint(f"{name}{i}", JointKind.REVOLUTE, p) for i, p in enumerate(parents)]
    names = tuple(joint.name for joint in joints)
    frames, functions = (Frame("tip", 3, Transform()),), [differential(name, names)]
    robot = robot_of(joints, frames, functions=functions, independent=names[:2])
    return robot, Cluster(robot, (0, 1, 2, 3), functions=robot.functions, independent=(0, 1))


@pytest.mark.parametrize("name", ["four_bar", "planar_leg_linkage"])
def test_the_reference_library_on_loops(name):
    states = paper_library.data(f"urdf_{name}")
    robot = Robot.from_urdf(robots.shared(f"grbda_{name}"), base="fixed")
    cluster = tied(robot)
    bodies = {body["name"]: body for body in states["bodies"]}
    order = [bodies[robot.bodies[i].name] for i in range(len(robot.joints))]
    columns = [body["v_index"] for body in order]
    for state in states["states"]:
        q = [state["q_span"][body["q_index"]] for body in order]
        assert np.abs(residual(cluster, q)).max() <= 1e-10
        K = np.array(constraint_jacobian(cluster, q))
        other = np.array(state["K"])[:, [columns[j] for j in cluster.joints]]
        # Rows are in other axes: what counts is which motions they allow.
        assert spans(null_space(other), null_space(K)) <= 1e-9
        E = np.array(loop_jacobian(cluster, q))
        G = np.array(state["G"])[[columns[j] for j in cluster.joints]]
        ours = E @ np.linalg.pinv(E) @ G
        assert np.abs(ours - G).max() <= 1e-9


@pytest.mark.parametrize("name", ["hip", "knee-ankle"])
def test_the_reference_library_on_functions(name):
    """The differentials of Tello, from the functions their makers published."""
    states = paper_library.data("tello_with_arms_1ee")
    robot, cluster = tello(name)
    found = [c for c in states["clusters"] if c["name"].endswith(f"{name}-differential")]
    assert len(found) == 2
    for state in states["states"]:
        for reference in found:
            bodies = [states["bodies"][i] for i in reference["bodies"]]
            q = [state["q_span"][body["q_index"]] for body in bodies]
            assert np.abs(residual(cluster, q)).max() <= 1e-15
            E = np.array(loop_jacobian(cluster, q))
            rows = [body["v_index"] for body in bodies]
            first = reference["yd_index"]
            G = np.array(state["G"])[rows, first : first + 2]
            # Its independent velocities are those of the rotors behind the gears.
            assert np.abs(6.0 * E - G).max() <= 1e-10 * np.abs(G).max()
