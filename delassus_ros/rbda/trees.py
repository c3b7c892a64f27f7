"""The tree of a problem; couplings and loops become redistributed rotors and clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from delassus_ros.model.robot import WORLD, Robot
from delassus_ros.problem import Problem
from delassus_ros.rbda.constraints import loop_jacobian
from delassus_ros.rbda.frame_choice import snap
from delassus_ros.rbda.frames import Placed, built
from delassus_ros.rbda.rotors import Coupled, Redistribution, redistribute, spanning
from delassus_ros.rbda.tree import Link, LinkCluster, Tree
from delassus_ros.rbda.unknown_constants import specific_constants
from delassus_ros.scalars.functions import Matrix
from delassus_ros.scalars.ports import Inputs


@lru_cache(maxsize=8)
def tree_of(problem: Problem) -> Tree:
    """Return the tree of a problem (cached for the last few problems)."""
    return closed_tree(problem) if problem.robot.is_closed else built(problem)[0]


def spanning_tree(problem: Problem, regrouped: bool = True) -> Tree:
    """Return the tree of a problem with all joints of the robot, no rotor redistributed.

    Parameters
    ----------
    regrouped : as for :func:`delassus_ros.rbda.frames.built`.
    """
    if not problem.robot.is_closed:
        return built(problem, regrouped)[0]
    return closed_tree(problem, lambda robot, held: spanning(robot), regrouped)


def closed_tree(
    problem: Problem,
    rewrite: Callable[[Robot, frozenset[int]], Redistribution] = redistribute,
    regrouped: bool = True,
) -> Tree:
    """Return the tree of a problem whose robot is closed.

    Parameters
    ----------
    rewrite : (robot, bodies with contacts) → the robot with redistributed rotors.
    regrouped : as for :func:`delassus_ros.rbda.frames.built`.
    """
    robot = problem.robot
    felt = (*(contact.frame for contact in problem.contacts), *problem.wrenches)
    held = frozenset(robot.frames[frame].body for frame in felt)
    with specific_constants():
        new = rewrite(robot, held)
    tree, placed = built(
        Problem(new.robot, problem.contacts, problem.axes, wrenches=problem.wrenches), regrouped
    )
    position = {}
    for k, i in enumerate(new.kept):
        for entry in range(robot.joints[i].kind.nq):
            position[new.robot.q_offsets[k] + entry] = robot.q_offsets[i] + entry
    links = [
        replace(link, q_index=position.get(link.q_index, link.q_index)) for link in tree.links
    ]
    clusters = []
    for coupled in new.coupled:
        clusters.append(_cluster(problem, coupled, placed, links))
        for joint, couple in zip(coupled.joints, coupled.couples, strict=True):
            carrier = new.robot.joints[joint].parent
            if carrier != WORLD and couple.any():
                i = placed[joint][0]
                in_link = links[i].sign * placed[carrier][1].rotation.T @ couple
                in_link = snap(in_link, float(np.abs(in_link).max()))
                links[i] = replace(links[i], couple=tuple(in_link.tolist()))
    return Tree(tuple(links), tree.rows, tuple(clusters))


def _cluster(problem: Problem, coupled: Coupled, placed: Placed, links: list[Link]) -> LinkCluster:
    """Return the cluster of links that corresponds to coupled joints."""
    indices = [placed[joint][0] for joint in coupled.joints]
    signs = [links[i].sign for i in indices]
    parents = {links[i].parent for i in indices} - set(indices)
    armature = np.outer(signs, signs) * coupled.armature
    robot, cluster = problem.robot, coupled.cluster

    def at(x: Inputs) -> Matrix:
        E = loop_jacobian(robot, cluster, x["q"])
        return [[sign * e for e in row] for sign, row in zip(signs, E, strict=True)]

    jacobian = coupled.jacobian
    return LinkCluster(
        links=tuple(indices),
        parent=parents.pop(),
        freedoms=len(cluster.independent) if jacobian is None else jacobian.shape[1],
        jacobian=at if jacobian is None else (np.array(signs)[:, None] * jacobian + 0.0).tolist(),
        armature=(armature + 0.0).tolist(),
    )
