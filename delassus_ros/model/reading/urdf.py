"""From a URDF to a :class:`~delassus_ros.model.robot.Robot`: moving joints, what closes the tree.

What is written by names of links and joints becomes couplings, loops, rotors and coordinates of
the joints of the tree, each checked against the joints and bodies that it names, and the bodies
have to be such as can be: with a positive inertia, and so that every motion moves some.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from delassus_ros.errors import RobotError, unknown
from delassus_ros.model.clusters import clusters_of, groups_of, independent_joints, null_motions
from delassus_ros.model.constraints import Coupling, FunctionConstraint, Loop
from delassus_ros.model.joint import WORLD, Joint, JointKind, root_name
from delassus_ros.model.joint_group import JointGroup
from delassus_ros.model.mechanism import Base, Body, Frame, Mechanism, MechanismT
from delassus_ros.model.reading.check import checked
from delassus_ros.model.reading.description import (
    Description,
    JointDescription,
    LinkCoupling,
    LinkLoop,
    Mimic,
    Transmission,
    describe,
)
from delassus_ros.model.reading.link_tree import LinkTree, listed
from delassus_ros.model.reading.numbers import floats
from delassus_ros.model.reading.source import located
from delassus_ros.model.reading.xml import parse_xml
from delassus_ros.model.reading.yaml import SideFile, read_side_file
from delassus_ros.model.spatial import Array, Inertia, Transform, skew


def read_urdf(
    source: str | bytes | Path,
    base: Base,
    loops: str | Path | Mapping[str, Any] | None,
    armature: Mapping[str, float] | None,
    functions: Sequence[FunctionConstraint],
    robot_type: type[MechanismT],
) -> MechanismT:
    """Read a URDF.

    Joints come depth first; at each link, in the order in which the document has them; rotors
    of transmissions come last.
    Links on fixed joints are lumped into the body that carries them; every link stays as a
    frame. The frame of a moving link is the frame of its joint.

    With ``base="floating"`` the root link, with what is fixed to it, becomes body 0 on a
    free-flyer named ``"root"``. If the only joint that moves on it is a ``floating`` one, that
    joint already is the free-flyer: the root link is then the world. With ``base="fixed"`` the
    root link is welded to the world, and a ``floating`` joint has entries in q.

    Parameters
    ----------
    source : path of a file, one in a ROS package (``package://my_robot/urdf/my_robot.urdf``) or
        one of xacro, where that is installed; or the XML itself (bytes, or text that starts with
        ``<``).
    base : ``"floating"`` or ``"fixed"``.
    loops : what the URDF cannot say, see :mod:`~delassus_ros.model.reading.yaml`.
    armature : see :meth:`~delassus_ros.model.mechanism.Mechanism.with_armature`.
    functions : constraints besides those of the files.

    Raises
    ------
    RobotError
        If the XML is broken or hostile, the joints do not make a tree, the robot is not
        physical, or what closes the tree or the armature does not fit it; the message names the
        link, joint, coupling or loop.
    """
    if base not in ("floating", "fixed"):
        raise RobotError(f"base must be 'floating' or 'fixed', got {base!r}")
    side = SideFile() if loops is None else read_side_file(loops)
    description = with_joint_types(describe(checked(parse_xml(located(source)))), side)
    assembly = _Assembly(description, LinkTree(description), base)
    robot = closed(assembly.tree(robot_type), description, side, functions)
    if armature is not None:
        robot = robot.with_armature(armature)
    check_bodies(robot, assembly.lumped, [joint.name for joint in assembly.moving_on_root()])
    if robot.is_closed:
        clusters_of(robot)  # raises, if the loops or the coordinates are wrong
    return robot


class _Assembly:
    """Moving joints, the links lumped on each of them and frames, put together depth first.

    Attributes
    ----------
    lumped : for each joint, the links it moves with their inertias in its frame.
    """

    def __init__(self, description: Description, tree: LinkTree, base: Base) -> None:
        self._description = description
        self._tree = tree
        self._joints: list[Joint] = []
        self.lumped: list[list[tuple[str, Inertia]]] = []
        self._frames: list[Frame] = []
        moving = self.moving_on_root()
        self._free_flyer = None
        if base == "floating" and [joint.kind for joint in moving] == [JointKind.FLOATING]:
            self._free_flyer = moving[0]
        body = WORLD
        if base == "floating" and self._free_flyer is None:
            body = self._add_root()
        self._add_link(tree.root, body, Transform())
        self._walk(body)

    def tree(self, robot_type: type[MechanismT]) -> MechanismT:
        """Return the robot without what closes it."""
        bodies = []
        for joint, lumped in zip(self._joints, self.lumped, strict=True):
            # Between the joints of a chain there is no link.
            name = lumped[0][0] if lumped else joint.name
            bodies.append(Body(name, sum((inertia for _, inertia in lumped), Inertia())))
        return robot_type(self._description.name, self._joints, bodies, self._frames)

    def moving_on_root(self) -> list[JointDescription]:
        """Return the joints that move on the root link or on what is fixed to it."""
        moving, pending = [], [self._tree.root]
        while pending:
            for joint in self._tree.joints_on[pending.pop()]:
                if joint.kind is None:
                    pending.append(joint.child)
                else:
                    moving.append(joint)
        return moving

    def _walk(self, root_body: int) -> None:
        # A stack, not recursion: a chain may be longer than Python's call stack.
        pending = [(joint, root_body, Transform()) for joint in self._on(self._tree.root)]
        while pending:
            joint, body, link_placement = pending.pop()
            placement = link_placement @ joint.origin
            if joint is self._free_flyer:
                body, placement = self._add_root(), Transform()
            elif joint.kind is not None:
                body, placement = self._add_joint(joint, joint.kind, body, placement), Transform()
            self._add_link(joint.child, body, placement)
            pending.extend((after, body, placement) for after in self._on(joint.child))

    def _on(self, link: str) -> Iterable[JointDescription]:
        """Return the joints on a link, last first, to be pushed on a stack."""
        return reversed(self._tree.joints_on[link])

    def _add_root(self) -> int:
        """Add the free-flyer; its pose is free, so its placement is the identity."""
        return self._add_body(Joint(root_name(self._description.joints), JointKind.ROOT, WORLD))

    def _add_joint(
        self, joint: JointDescription, kind: JointKind, parent: int, placement: Transform
    ) -> int:
        for letter in joint.chain:
            axis = np.eye(3)["XYZ".index(letter)]
            parent = self._add_body(Joint(f"{joint.name}_{letter}", kind, parent, placement, axis))
            placement = Transform()
        if joint.chain:
            return parent
        limits = {"lower": joint.lower, "upper": joint.upper, "velocity": joint.velocity}
        return self._add_body(Joint(joint.name, kind, parent, placement, joint.axis, **limits))

    def _add_body(self, joint: Joint) -> int:
        self._joints.append(joint)
        self.lumped.append([])
        return len(self._joints) - 1

    def _add_link(self, link: str, body: int, placement: Transform) -> None:
        self._frames.append(Frame(link, body, placement))
        if body != WORLD:
            inertia = self._description.links[link].inertia
            self.lumped[body].append((link, inertia.in_parent(placement)))


_log = logging.getLogger(__name__)

PSD_TOLERANCE = 1e-6
"""How negative a body's principal inertia may be, relative to the largest one: published
inertias are rounded to a few digits."""
TRIANGLE_TOLERANCE = 0.01
"""How far the largest principal inertia may exceed the sum of the others, relative to it, without
a word: published inertias of rods and plates are rounded, too."""
NOISE = 1e-12
"""Rotational inertia [kg·m²] taken for rounding, per kg and per kg·m² about the body's origin:
point masses come with noise of either sign."""
SMALLEST = 1e-12
"""Inertia of a cluster's least inert motion, relative to its most inert one."""


def check_bodies(
    robot: Mechanism, lumped: Sequence[Sequence[tuple[str, Inertia]]], on_root: Sequence[str]
) -> None:
    """Refuse bodies that cannot be.

    Every body must have a positive semidefinite inertia; where it breaks the triangle inequality,
    as in some published models, there is a warning. The floating base and bodies that carry none
    must have some inertia, or, but for the base, their joint an armature. A body that a coupling
    or loop ties to others need not, if every motion that the constraints of its cluster leave
    moves inertia, armatures included; what the cluster carries counts as being fixed to it.

    Parameters
    ----------
    robot : the robot.
    lumped : for each of its first bodies, its links with their inertias in the body's frame.
    on_root : names of the joints that move on the base, for messages.

    Raises
    ------
    RobotError
        Names the link, or the constraints of the cluster.
    """
    carrying = {joint.parent for joint in robot.joints}
    massless = []
    for i, parts in enumerate(lumped):
        inertia = robot.bodies[i].inertia
        if not (inertia.mass or inertia.rotational.any()):
            if robot.joints[i].kind is JointKind.ROOT:
                raise RobotError(_no_base(robot.bodies[i].name, on_root))
            if i not in carrying:
                massless.append(i)
        _check_semidefinite(robot.joints[i].name, inertia, parts)
    if massless:
        for group in groups_of(robot):
            _check_massless(group, sorted(set(massless).intersection(group.joints)))


def _no_base(link: str, on_root: Sequence[str]) -> str:
    return (
        f"link {link!r}: the base floats but has no inertia, nor has any link fixed to it "
        f"(joints that move on it: {listed(list(on_root)) or 'none'}); give it an <inertial> or "
        "have it fixed: base='fixed', on the command line --base fixed"
    )


def _check_massless(group: JointGroup, massless: list[int]) -> None:
    """Refuse bodies without inertia that carry none, where the mass matrix would be singular."""
    if not massless:
        return
    robot, first = group.robot, massless[0]
    if group.is_ordinary:
        if robot.joints[first].armature > 0.0:
            return
        raise RobotError(
            f"link {robot.bodies[first].name!r}: no inertia on the last link that joint "
            f"{robot.joints[first].name!r} moves, nor on links fixed to it; give it an "
            "<inertial>, or the joint an armature, or make the joint fixed"
        )
    closure, q, motions = null_motions(group)
    inertia = motions.T @ closure.inertia(q) @ motions
    values = np.linalg.eigvalsh(inertia)
    if not values[0] > SMALLEST * values[-1]:
        raise RobotError(
            f"{group.described()}: some motion of joints {group.names(group.joints)} moves "
            f"no inertia; give link {robot.bodies[first].name!r} an <inertial>, or joint "
            f"{robot.joints[group.joints[0]].name!r} an armature"
        )


def _check_semidefinite(
    joint: str, inertia: Inertia, lumped: Sequence[tuple[str, Inertia]]
) -> None:
    """Refuse a body that some rotation about its centre of mass would not resist.

    Single links are not judged: those on fixed joints act through their body alone.
    """
    if _is_semidefinite(inertia):
        _warn_of_triangle(joint, inertia, lumped)
        return
    link, worst = min(lumped, key=lambda part: float(_principal(part[1])[0]))
    shown = ", ".join(f"{value:.3g}" for value in _principal(worst))
    raise RobotError(
        f"link {link!r}: the inertia of the body that joint {joint!r} moves must be "
        f"positive semidefinite, or some motion would have negative energy; principal inertias "
        f"of this link: {shown} kg m^2"
    )


def _warn_of_triangle(joint: str, inertia: Inertia, lumped: Sequence[tuple[str, Inertia]]) -> None:
    """Warn of a body that no mass can have: principal inertias with a + b < c."""
    a, b, c = _principal(inertia)
    noise = NOISE * (inertia.mass + np.abs(inertia.rotational).max())
    if a + b >= c * (1.0 - TRIANGLE_TOLERANCE) - noise:
        return
    link, worst = min(lumped, key=lambda part: _spread(part[1]))
    shown = ", ".join(f"{value:.3g}" for value in _principal(worst))
    _log.warning(
        "link %r: no body has the inertia of what joint %r moves: the largest principal inertia "
        "is more than the sum of the others; of this link they are %s kg m^2",
        link, joint, shown,
    )  # fmt: skip


def _spread(inertia: Inertia) -> float:
    a, b, c = _principal(inertia)
    return float(a + b - c)


def _principal(inertia: Inertia) -> Array:
    """Return the principal inertias (3,) [kg·m²] about the centre of mass, smallest first."""
    h = skew(inertia.moment)
    about_com = inertia.rotational + (h @ h / inertia.mass if inertia.mass else 0.0)
    return np.asarray(np.linalg.eigvalsh(about_com), dtype=np.float64)


def _is_semidefinite(inertia: Inertia) -> bool:
    principal = _principal(inertia)
    noise = NOISE * (inertia.mass + np.abs(inertia.rotational).max())
    return bool(principal[0] >= -PSD_TOLERANCE * np.abs(principal).max() - noise)


def with_joint_types(description: Description, side: SideFile) -> Description:
    """Return the description with the joints as the side file has them."""
    joints = dict(description.joints)
    for name, chain in side.chains.items():
        if name not in joints:
            raise RobotError(f"joints: {unknown('joint', name, joints)}")
        if joints[name].mimic is not None:
            raise RobotError(f"joints: {name!r} has a <mimic>; it cannot be of another type")
        kind = JointKind.REVOLUTE if chain else None
        joints[name] = replace(joints[name], kind=kind, chain=chain, lower=-np.inf, upper=np.inf)
    return replace(description, joints=joints)


def closed(
    robot: MechanismT,
    description: Description,
    side: SideFile,
    functions: Sequence[FunctionConstraint],
) -> MechanismT:
    """Return the tree `robot` with what closes it by the URDF, the side file and `functions`.

    Rotors come after all other joints. Their inertia about the axis is all they have: their
    mass is that of the link that carries them.

    Raises
    ------
    RobotError
        If a link or joint is unknown, a loop is between links of one body, a coupling is not
        between two branches, mimic joints follow each other in a circle, a transmission
        with a rotor is not of one joint, one actuator and one reduction, or nothing determines
        a joint that is stated to be dependent.
    """
    joints, bodies, frames = list(robot.joints), list(robot.bodies), list(robot.frames.values())
    couplings = [_coupling(robot, each) for each in description.couplings.values()]
    couplings += _mimics(robot, description.joints)
    for name, inertia in side.rotors.items():
        transmission = _transmission(name, description.transmissions)
        joint, coupling = _geared(robot, transmission)
        about_axis = inertia * np.outer(joint.axis, joint.axis)
        joints.append(joint)
        bodies.append(Body(joint.name, Inertia(rotational=about_axis)))
        couplings.append(coupling)
    loops = [_loop(robot.frames, each) for each in (*description.loops.values(), *side.loops)]
    couplings += side.couplings
    named = side.independent
    whole = robot.replaced(
        joints=joints,
        bodies=bodies,
        frames=frames,
        couplings=couplings,
        loops=loops,
        independent=named,
        functions=functions,
    )
    _check_determined(whole, description.joints, named)
    independent = (*named, *_stated(whole, description.joints, named), *_led(whole, side.motors))
    return whole.with_constraints(independent=independent)


def _stated(
    robot: Mechanism, described: Mapping[str, JointDescription], named: Sequence[str]
) -> list[str]:
    """Return the joints that URDF+ states to be independent.

    Names of the side file count before them. URDF+'s default, true, counts only beside a
    joint of the same cluster that says something.
    """
    independent = []
    for group in groups_of(robot):
        names = [robot.joints[joint].name for joint in group.joints]
        stated = {name: described[name].independent for name in names if name in described}
        is_stated = any(value is not None for value in stated.values())
        if not group.is_ordinary and is_stated and not set(names) & set(named):
            others = [name for name, value in stated.items() if value is not False]
            if not others:
                raise RobotError(
                    f"{group.described()}: all joints of the description in it, "
                    f'{listed(list(stated))}, are independent="false"; say so of fewer, or name '
                    "the independent ones in the loops file"
                )
            independent += others
    return independent


def _check_determined(
    robot: Mechanism, described: Mapping[str, JointDescription], named: Sequence[str]
) -> None:
    """Refuse joints that are to follow from others, where there is nothing that they follow by.

    What should tie them is misspelt or was removed: read as it is, the robot would be open.
    """
    tied = {
        robot.joints[joint].name
        for group in groups_of(robot)
        if not group.is_ordinary
        for joint in group.joints
    }
    for joint in described.values():
        # On a fixed joint the statement means nothing; names of the side file count before it.
        if joint.independent is not False or joint.kind is None or joint.name in named:
            continue
        names = {f"{joint.name}_{letter}" for letter in joint.chain} or {joint.name}
        if not names <= tied:
            raise RobotError(
                f'joint {joint.name!r} is independent="false", but no loop, coupling or mimic '
                "determines it, and no function given to Robot.from_urdf; add what does, or take "
                "the statement away"
            )


def _led(robot: Mechanism, motors: Sequence[str]) -> list[str]:
    """Return independent joints of the clusters that have motors, these first of all."""
    indices = {joint.name: i for i, joint in enumerate(robot.joints)}
    for name in motors:
        if name not in indices:
            raise RobotError(f"name_mot: {unknown('joint', name, robot.joint_names)}")
    led = {indices[name] for name in motors}
    return [
        robot.joints[joint].name
        for group in groups_of(robot)
        if not group.is_ordinary and led.intersection(group.joints)
        for joint in independent_joints(group, led)
    ]


def _coupling(robot: Mechanism, described: LinkCoupling) -> Coupling:
    what = f"coupling {described.name!r}"
    paths = [
        robot.path(_frame(robot.frames, link, what).body)
        for link in (described.predecessor, described.successor)
    ]
    common = set(paths[0]) & set(paths[1])
    branches = [[robot.joints[body] for body in path if body not in common] for path in paths]
    if not (branches[0] and branches[1]):
        raise RobotError(
            f"{what}: no joint moves {described.predecessor!r} against {described.successor!r} "
            "on either side of what carries both; a coupling is between two branches"
        )
    # The successor's joints first: where nothing is stated, rotors are to be dependent.
    ratios = [(joint.name, -1.0) for joint in branches[1]]
    ratios += [(joint.name, described.ratio) for joint in branches[0]]
    return Coupling(described.name, tuple(ratios))


def _mimics(robot: Mechanism, described: Mapping[str, JointDescription]) -> list[Coupling]:
    single = [joint.name for joint in robot.joints if joint.kind.nv == 1]
    mimics = {name: joint.mimic for name, joint in described.items() if joint.mimic is not None}
    for name, mimic in mimics.items():
        what = f"joint {name!r}: <mimic>"
        if name not in single:
            raise RobotError(f"{what}: only revolute and prismatic joints can follow another")
        if mimic.joint in described and mimic.joint not in single:
            raise RobotError(f"{what}: joint {mimic.joint!r} is not revolute or prismatic")
        if mimic.joint not in single:
            raise RobotError(f"{what}: {unknown('joint', mimic.joint, single)}")
        _check_ends(name, mimics)
    for name in mimics:
        _warn_of_limits(name, mimics, {joint.name: joint for joint in robot.joints})
    return [
        Coupling(
            f"{name} mimics {mimic.joint}",
            ((name, 1.0), (mimic.joint, -mimic.multiplier)),
            -mimic.offset,
        )
        for name, mimic in mimics.items()
    ]


def _check_ends(name: str, mimics: Mapping[str, Mimic]) -> None:
    """Refuse a joint that follows itself, over others or not."""
    chain = [name]
    while chain[-1] in mimics:
        chain.append(mimics[chain[-1]].joint)
        if chain[-1] in chain[:-1]:
            shown = " -> ".join(repr(each) for each in chain[chain.index(chain[-1]) :])
            raise RobotError(f"joint {name!r}: <mimic>: joints follow each other: {shown}")


LIMIT_TOLERANCE = 1e-6
"""How far outside its limits another joint may put a joint, without a warning [rad or m]."""


def _warn_of_limits(name: str, mimics: Mapping[str, Mimic], joints: Mapping[str, Joint]) -> None:
    """Warn of a follower that the limits of the joint that it follows put outside its own.

    Published grippers have followers that turn the other way, with the limits of their leader.
    """
    own, multiplier, offset = joints[name], 1.0, 0.0
    while name in mimics:
        offset += multiplier * mimics[name].offset
        multiplier *= mimics[name].multiplier
        name = mimics[name].joint
    leader = joints[name]
    low, high = sorted(multiplier * end + offset for end in (leader.lower, leader.upper))
    if max(own.lower - low, high - own.upper) > LIMIT_TOLERANCE:
        _log.warning(
            "joint %r: limits [%g, %g] are not kept: it follows joint %r, whose limits put it in "
            "[%g, %g]",
            own.name, own.lower, own.upper, leader.name, low, high,
        )  # fmt: skip


def _transmission(name: str, transmissions: Iterable[Transmission]) -> Transmission:
    """Return the transmission that a rotor belongs to."""
    found = [each for each in transmissions if each.name == name]
    if not found:
        names = [each.name for each in transmissions]
        raise RobotError(f"rotors: {unknown('transmission', name, names)}")
    if len(found) > 1:
        raise RobotError(f"transmission {name!r} appears {len(found)} times; one is meant")
    transmission = found[0]
    for part, values in (
        ("<joint>", transmission.joints),
        ("<actuator>", transmission.actuators),
        ("<mechanicalReduction>", transmission.reductions),
    ):
        if len(values) != 1:
            raise RobotError(
                f"transmission {name!r} has {len(values)} {part}: a rotor is geared to one joint "
                "by one actuator with one reduction; write others as couplings"
            )
    return transmission


def _geared(robot: Mechanism, transmission: Transmission) -> tuple[Joint, Coupling]:
    """Return the joint of a transmission's rotor, and what couples it to the driven joint."""
    what = f"transmission {transmission.name!r}"
    single = {joint.name: joint for joint in robot.joints if joint.kind.nv == 1}
    (driven,), (actuator,), (text,) = (
        transmission.joints, transmission.actuators, transmission.reductions
    )  # fmt: skip
    if driven not in single:
        raise RobotError(f"{what}: {unknown('joint', driven, single)} (of one freedom)")
    if not actuator or actuator in single:
        raise RobotError(
            f"{what}: the rotor takes the name of the actuator, {actuator!r}; it must be that of "
            "no joint"
        )
    reduction = float(floats(text, 1, f"{what}: mechanicalReduction")[0])
    joint = single[driven]
    rotor = Joint(actuator, JointKind.REVOLUTE, joint.parent, joint.placement, joint.axis)
    return rotor, Coupling(transmission.name, ((actuator, -1.0), (driven, reduction)))


def _loop(frames: Mapping[str, Frame], described: LinkLoop) -> Loop:
    what = f"loop {described.name!r}"
    ends = [_frame(frames, link, what) for link in (described.predecessor, described.successor)]
    if ends[0].body == ends[1].body:
        first, second = described.predecessor, described.successor
        links = f"link {first!r}" if first == second else f"links {first!r} and {second!r}"
        raise RobotError(f"{what} is between a body and itself: {links} cannot move apart")
    return Loop(
        described.name,
        described.kind,
        ends[0].body,
        ends[1].body,
        ends[0].placement @ described.predecessor_placement,
        ends[1].placement @ described.successor_placement,
        described.axis,
    )


def _frame(frames: Mapping[str, Frame], link: str, what: str) -> Frame:
    if link not in frames:
        raise RobotError(f"{what}: {unknown('link', link, frames)}")
    return frames[link]
