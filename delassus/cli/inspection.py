"""``delassus inspect``: a robot as a tree, with coupled and passive joints and contacts."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict

import numpy as np

from delassus.cli import report as text
from delassus.cli.options import add_robot, described
from delassus.cli.parsing import Verb
from delassus.cli.report import Report
from delassus.model.clusters import clusters_of
from delassus.model.robot import WORLD, JointKind, Robot
from delassus.robots.pose import first_pose_name
from delassus.visible import visible


def inspect_robot(options: argparse.Namespace) -> Report:
    """Return the joints of a robot as a tree, its masses and frames, and possible contacts."""
    description = described(options)
    robot = description.robot.clustered
    mass = sum(body.inertia.mass for body in robot.bodies)
    parts = [
        f"{visible(robot.name)}: {robot.base} base, {len(robot.joint_names)} joints, "
        f"nq {robot.nq}, nv {robot.nv}, {mass:.6g} kg that moves",
        "",
        text.table(list(_rows(robot)), numeric=(0, 3, 4, 5)),
    ]
    if robot.is_closed:
        tied = text.table(closed_rows(robot), indent="  ")
        parts += ["", "Joints that are tied together:", tied]
    if robot.is_passive:
        parts += ["", "Springs, dampers and gravity compensation:"]
        parts += [text.table(list(_passive_rows(robot)), numeric=(1, 2, 3, 4), indent="  ")]
    poses = robot.named_poses
    if poses:
        first = first_pose_name(robot)
        count = len(robot.joint_names)
        named = [
            (name, f"{len(at)} of {count} joints", "the first posture" if name == first else "")
            for name, at in poses.items()
        ]
        parts += ["", "Poses for --q:", text.table(named, indent="  ")]
    found = description.proposals
    if found:
        rows = [(f"{end.frame}:{end.kind}", end.why) for end in found if end.chosen]
        parts += ["", "At the ends of limbs, candidates for --contact:"]
        parts += [text.table(rows, indent="  ")]
        left = [proposal.frame for proposal in found if not proposal.chosen]
        if left:
            parts += [f"  and {len(left)} other ends: {visible(', '.join(left))}"]
    data = {
        "robot": robot.name,
        "base": robot.base,
        "nq": robot.nq,
        "nv": robot.nv,
        "mass": mass,
        "joints": [_about(robot, i) for i in range(len(robot.joints))],
        "links": {
            name: "world" if frame.body == WORLD else robot.joints[frame.body].name
            for name, frame in robot.frames.items()
        },
        "tied": [
            dict(zip(("independent", "follow", "by", "ratios"), row, strict=True))
            for row in closed_rows(robot)[1:]
        ],
        "poses": list(poses),
        "contacts": [asdict(proposal) for proposal in found],
    }
    return Report("\n".join(parts), data)


INSPECT = Verb(
    "inspect",
    "show its joints as a tree, with places in q, and likely contacts",
    "quadruped.urdf",
    inspect_robot,
    add_robot,
)


def _about(robot: Robot, i: int) -> dict[str, object]:
    """Return a joint as data."""
    joint = robot.joints[i]
    return {
        "name": joint.name,
        "kind": joint.kind.label,
        "carried_by": None if joint.parent == WORLD else robot.joints[joint.parent].name,
        "q": robot.q_offsets[i],
        "positions": joint.kind.nq,
        "lower": joint.lower,
        "upper": joint.upper,
        "mass": robot.bodies[i].inertia.mass,
        "stiffness": joint.stiffness,
        "spring_reference": joint.spring_reference,
        "damping": joint.damping,
        "compensated_mass": robot.bodies[i].compensated.mass,
    }


def closed_rows(robot: Robot) -> list[tuple[object, ...]]:
    """Return a headline and rows for the groups of coupled joints."""
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


def _passive_rows(robot: Robot) -> Iterator[tuple[object, ...]]:
    """Yield a headline, then rows for the joints and bodies with passive elements."""
    yield "joint", "stiffness", "at rest", "damping", "held kg"
    for joint, body in zip(robot.joints, robot.bodies, strict=True):
        if joint.is_passive or body.is_compensated:
            law = joint.stiffness, joint.spring_reference, joint.damping
            held = body.compensated.mass
            yield joint.name, *(f"{value:.4g}" if value else "-" for value in (*law, held))


def _rows(robot: Robot) -> Iterator[tuple[object, ...]]:
    """Yield a headline, then rows for the bodies, below the body that carries them."""
    yield "q", "joint", "kind", "lower", "upper", "body kg", "links"
    children: dict[int, list[int]] = {}
    for i, joint in enumerate(robot.joints):
        children.setdefault(joint.parent, []).append(i)

    def below(body: int, stem: str) -> Iterator[tuple[object, ...]]:
        carried = children.get(body, [])
        for i in carried:
            last = i == carried[-1]
            yield _row(robot, i, stem + ("└ " if last else "├ "))
            yield from below(i, stem + ("  " if last else "│ "))

    if robot.base == "fixed":
        yield "", "world", "", "", "", "", _links(robot, WORLD)
        yield from below(WORLD, "")
    else:
        yield _row(robot, 0, "")
        yield from below(0, "")


def _row(robot: Robot, i: int, stem: str) -> tuple[object, ...]:
    joint, offset = robot.joints[i], robot.q_offsets[i]
    last = offset + joint.kind.nq - 1
    place = "" if joint.kind.nq == 0 else offset if joint.kind.nq == 1 else f"{offset}-{last}"
    unit = {JointKind.REVOLUTE: " rad", JointKind.PRISMATIC: " m"}.get(joint.kind, "")
    limits = [f"{v:.4g}{unit}" if np.isfinite(v) else "-" for v in (joint.lower, joint.upper)]
    mass = f"{robot.bodies[i].inertia.mass:.4g}"
    return place, stem + joint.name, joint.kind.label, *limits, mass, _links(robot, i)


def _links(robot: Robot, body: int) -> str:
    return ", ".join(frame.name for frame in robot.frames.values() if frame.body == body)
