"""Robots with couplings and loops on the command line: their groups, and positions that close."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from delassus_ros.cli.options import NEUTRAL, configuration_of, given_joints
from delassus_ros.closure import Closure
from delassus_ros.errors import InputError, RobotError
from delassus_ros.model.clusters import Cluster, clusters_of
from delassus_ros.model.robot import Robot
from delassus_ros.model.spatial import Array

_CLOSED = 1e-9
"""Change of a given position below which it closed the loops as it was [rad or m]."""


def closure_of(options: argparse.Namespace, robot: Robot) -> Closure:
    """Return what closes a robot's loops, by the reference of the options.

    Raises
    ------
    InputError
        If a loop does not close at the reference or is singular there; names it.
    """
    values = {} if options.reference is None else given_joints("--reference", options.reference)
    try:
        return Closure(robot, values)
    except RobotError as error:
        raise InputError(f"{error}; here: --reference joint=position,…") from error


def refuse_reference(options: argparse.Namespace, robot: Robot) -> None:
    """Refuse a reference for a robot without loops.

    Raises
    ------
    InputError
        If the options have one.
    """
    if options.reference is not None:
        raise InputError(
            f"--reference is given, but robot {robot.name!r} has no loops or couplings; leave it "
            "out, or say with --loops what closes"
        )


def closed_configuration(options: argparse.Namespace, robot: Robot) -> tuple[Array, str]:
    """Return q (nq,) of what --q says with its loops closed, and what was done for that.

    Raises
    ------
    InputError
        If the positions do not close, or do not say how; names the loop.
    """
    closure = closure_of(options, robot)
    if options.q == NEUTRAL or "=" in options.q:
        named = {} if options.q == NEUTRAL else given_joints("--q", options.q)
        wanted = configuration_of(options, robot)
        measured: Mapping[str, Any] | Array = _measured(robot, closure, named, wanted)
    else:
        measured = configuration_of(options, robot)
    result = closure.solve(measured)
    if not result.status.is_valid:
        raise InputError(
            f"--q: the loops cannot be closed: {result.status.name.lower().replace('_', ' ')}: "
            f"{result.about}"
        )
    return result.q, _what_was_done(robot, measured, result.q, result.residual, result.about)


def closed_rows(robot: Robot) -> list[tuple[object, ...]]:
    """Return a row for each group of joints that are tied together, after a headline."""
    rows: list[tuple[object, ...]] = [("independent", "follow", "tied by", "ratios")]
    for cluster in clusters_of(robot):
        if not cluster.is_ordinary:
            rows.append((
                ", ".join(robot.joints[i].name for i in cluster.independent),
                ", ".join(robot.joints[i].name for i in cluster.dependent),
                ", ".join(cluster.constraint_names),
                "constant" if cluster.is_constant else "depend on q",
            ))  # fmt: skip
    return rows


def _measured(
    robot: Robot, closure: Closure, named: Mapping[str, float], wanted: Array
) -> dict[str, Array]:
    """Return the joints that are named, and of other groups the independent ones."""
    measured: dict[str, Array] = {}
    for cluster in clusters_of(robot):
        own = {robot.joints[i].name for i in cluster.joints}
        some = named.keys() & own
        if not cluster.is_ordinary and some - _names(robot, cluster):
            # Dependent ones are named: with these, the others have to follow.
            measured.update({name: np.atleast_1d(named[name]) for name in some})
            continue
        for i in cluster.independent:
            joint = robot.joints[i]
            at = slice(robot.q_offsets[i], robot.q_offsets[i] + joint.kind.nq)
            source = wanted if cluster.is_ordinary or joint.name in named else closure.reference
            if joint.kind.nq:
                measured[joint.name] = source[at]
    return measured


def _names(robot: Robot, cluster: Cluster) -> set[str]:
    return {robot.joints[i].name for i in cluster.independent}


def _what_was_done(
    robot: Robot, measured: Mapping[str, Array] | Array, q: Array, residual: float, about: str
) -> str:
    moved = []
    for i, (joint, offset) in enumerate(zip(robot.joints, robot.q_offsets, strict=True)):
        if joint.kind.nq != 1:
            continue
        if isinstance(measured, Mapping):
            given = measured.get(joint.name)
            known = None if given is None else float(given[0])
        else:
            known = float(measured[offset])
        if known is None or abs(known - q[offset]) > _CLOSED:
            moved.append(f"{robot.joints[i].name}={q[offset]:.6g}")
    done = f"solved for {', '.join(moved)}" if moved else "closed as given"
    return f"{done}; residual {residual:.1e}" + (f"; warning: {about}" if about else "")
