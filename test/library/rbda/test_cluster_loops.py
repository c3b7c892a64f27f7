"""Cluster algorithms on robots read from URDF+: couplings, and loops that depend on q."""

from __future__ import annotations

import numpy as np
import pytest
from on_floats import solver_on_floats
from oracles import paper_library

from delassus import Contact, Problem
from delassus.rbda.trees import tree_of

EXACT = ("auto", "efpa", "pv_osimr", "ltl")


@pytest.mark.parametrize("algorithm", EXACT)
@pytest.mark.parametrize("name", ["urdf_four_bar", "urdf_planar_leg_linkage"])
def test_both_ends_of_a_loop_accelerate_alike(name: str, algorithm: str) -> None:
    robot = paper_library.from_urdf(name).robot
    (loop,) = robot.loops
    frame_of = {frame.body: frame for frame in robot.frames.values()}
    contacts = []
    for end, body, placement in (
        ("predecessor", loop.predecessor, loop.predecessor_placement),
        ("successor", loop.successor, loop.successor_placement),
    ):
        frame = frame_of[body]
        on_frame = frame.placement.inverse() @ placement
        contacts.append(Contact(end, frame.name, "point", on_frame))
    problem = Problem(robot, contacts, axes="world")
    solver = solver_on_floats(problem, algorithm)
    for state in paper_library.states(name):
        G = solver.solve(paper_library.positions_from_urdf(problem, name, state)).matrix
        assert np.linalg.norm(G) > 0.0
        assert np.linalg.norm(G[:3] - G[3:]) < 1e-8 * np.linalg.norm(G)


def test_a_planar_leg_has_one_cluster_of_three_links() -> None:
    (cluster,) = tree_of(paper_library.from_urdf("urdf_planar_leg_linkage")).clusters
    assert len(cluster.links) == 3 and cluster.freedoms == 1 and callable(cluster.jacobian)
