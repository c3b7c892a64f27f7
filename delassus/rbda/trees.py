"""The tree of a problem; couplings and loops become redistributed rotors and clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

import numpy as np

from delassus.model.robot import WORLD, Robot
from delassus.problem import Problem
from delassus.rbda.constraints import loop_jacobian
from delassus.rbda.frame_choice import snap
from delassus.rbda.frames import built
from delassus.rbda.roots import possible_roots, rerooted
from delassus.rbda.rotors import Coupled, Redistribution, redistribute, spanning
from delassus.rbda.tree import NO_BASE, Link, LinkCluster, Tree
from delassus.rbda.unknown_constants import specific_constants
from delassus.scalars.functions import Matrix
from delassus.scalars.ports import Inputs

LIGHTEST_ROOT = 2e-4
"""Least share of a root in the robot's mass. With a fingertip of 17 g (share 1e-4) as root of a
humanoid G is off by 4e-11, with heavier roots by 4e-12 at most (relative errors)."""


def tree_of(problem: Problem, root: int = 0, on_child_axis: bool = False) -> Tree:
    """Return the tree of a problem (cached for the last few trees).

    Parameters
    ----------
    root : body of the robot that the free joint of the tree moves; see :func:`roots_of`.
    on_child_axis : put the frame of each free body on the axis of a child: the privileged child of
        S. McMillan, D. Orin, R. McGhee (1995) and of the appendix of P. Wensing, R. Featherstone,
        D. E. Orin, "A Reduced-Order Recursive Algorithm for the Computation of the
        Operational-Space Inertia Matrix", 2012.
    """
    return _cached_tree(problem, root, on_child_axis)


@lru_cache(maxsize=24)
def _cached_tree(problem: Problem, root: int, on_child_axis: bool) -> Tree:
    return rewritten_tree(problem, root=root, on_child_axis=on_child_axis)


def roots_of(problem: Problem) -> tuple[int, ...]:
    """Return the bodies of the robot from which its floating base's tree can be built.

    A root is no redistributed rotor, has at least :data:`LIGHTEST_ROOT` of the robot's mass, and
    neither a planar joint nor a joint with a rotor's spin lies between it and the base. G exists
    from every root if it exists from one: a root of which a motion needs no energy means the same
    of M.
    """
    robot = problem.robot
    new = _redistributed(problem, redistribute)
    spinning = {
        joint
        for coupled in new.coupled
        for joint, couple in zip(coupled.joints, coupled.couples, strict=True)
        if couple.any()
    }
    found = [new.kept[k] for k in possible_roots(new.robot, spinning)]
    masses = [body.inertia.mass for body in robot.bodies]
    return tuple(i for i in found if i == 0 or masses[i] >= LIGHTEST_ROOT * sum(masses))


def _redistributed(
    problem: Problem, rewrite: Callable[[Robot, frozenset[int]], Redistribution]
) -> Redistribution:
    """Return the robot of a problem with rewritten rotors; bodies with contacts stay."""
    robot = problem.robot
    felt = (*(contact.frame for _, contact in problem.ends), *problem.wrenches)
    with specific_constants():
        return rewrite(robot, frozenset(robot.frames[frame].body for frame in felt))


def spanning_tree(problem: Problem, regrouped: bool = True) -> Tree:
    """Return the tree of a problem with all joints of the robot, no rotor redistributed.

    Parameters
    ----------
    regrouped : as for :func:`delassus.rbda.frames.built`.
    """
    return rewritten_tree(problem, lambda robot, held: spanning(robot), regrouped)


def rewritten_tree(
    problem: Problem,
    rewrite: Callable[[Robot, frozenset[int]], Redistribution] = redistribute,
    regrouped: bool = True,
    root: int = 0,
    on_child_axis: bool = False,
) -> Tree:
    """Return the tree of a problem; an open chain from its base has nothing to rewrite.

    Parameters
    ----------
    rewrite : (robot, bodies with contacts) → the robot with redistributed rotors.
    regrouped : as for :func:`delassus.rbda.frames.built`.
    root, on_child_axis : as for :func:`tree_of`.
    """
    if not problem.robot.is_closed and not root:
        return built(problem, regrouped, on_child_axis)[0]
    robot = problem.robot
    new = _redistributed(problem, rewrite)
    turned = rerooted(new.robot, new.kept.index(root))
    tree, placed = built(
        Problem(turned.robot, problem.contacts, problem.axes, wrenches=problem.wrenches),
        regrouped,
        on_child_axis,
    )
    position = {}
    moved_by = {}  # per joint of the redistributed robot, its link
    for k, joint in enumerate(turned.joints):
        i = new.kept[joint]
        moved_by[joint] = placed[k][0]
        for entry in range(robot.joints[i].kind.nq):
            position[turned.robot.q_offsets[k] + entry] = robot.q_offsets[i] + entry
    links = [
        replace(link, q_index=position.get(link.q_index, link.q_index)) for link in tree.links
    ]
    clusters = []
    for coupled in new.coupled:
        clusters.append(_cluster(problem, coupled, moved_by, links))
        for joint, couple in zip(coupled.joints, coupled.couples, strict=True):
            carrier = new.robot.joints[joint].parent
            if carrier != WORLD and couple.any():
                i = moved_by[joint]
                axes = (turned.shifts[carrier] @ placed[turned.bodies[carrier]][1]).rotation
                in_link = links[i].sign * axes.T @ couple
                in_link = snap(in_link, float(np.abs(in_link).max()))
                links[i] = replace(links[i], couple=tuple(in_link.tolist()))
    base = NO_BASE
    if root:
        base, pose = placed[turned.bodies[0]]
        axes = (turned.shifts[0] @ pose).rotation
        links[base] = replace(links[base], axes=snap(axes, 1.0).tolist())
    return replace(tree, links=tuple(links), clusters=tuple(clusters), base=base)


def _cluster(
    problem: Problem, coupled: Coupled, moved_by: dict[int, int], links: list[Link]
) -> LinkCluster:
    """Return the cluster of links that corresponds to coupled joints."""
    # Joints that were reversed for another root are not in the order of their links.
    order = sorted(range(len(coupled.joints)), key=lambda k: moved_by[coupled.joints[k]])
    indices = [moved_by[coupled.joints[k]] for k in order]
    signs = [links[i].sign for i in indices]
    parents = {links[i].parent for i in indices} - set(indices)
    armature = np.outer(signs, signs) * coupled.armature[np.ix_(order, order)]
    cluster = coupled.cluster

    def at(x: Inputs) -> Matrix:
        E = loop_jacobian(cluster, x["q"])
        return [[sign * e for e in E[k]] for sign, k in zip(signs, order, strict=True)]

    jacobian = None if coupled.jacobian is None else coupled.jacobian[order]
    return LinkCluster(
        links=tuple(indices),
        parent=parents.pop(),
        freedoms=len(cluster.independent) if jacobian is None else jacobian.shape[1],
        jacobian=at if jacobian is None else (np.array(signs)[:, None] * jacobian + 0.0).tolist(),
        armature=(armature + 0.0).tolist(),
    )
