"""Rotor redistribution: a geared robot as the ordinary tree that moves exactly like it.

A rotor is a leaf body whose centre of mass lies on its joint's axis and for which that axis is a
principal axis. Let J be the rotor's inertia about the axis a, p the body that carries the rotor
and q̇_r the rate of its joint. The only term of the rotor's kinetic energy that depends on q̇_r is
½ J (a·ω_p + q̇_r)². So the rotor's mass and inertia are added to the carrier, except the part that
differs between directions across the axis, and its spin is an armature J with the moment J·a on
the carrier.

Where a chain of links with axes parallel to a gives q̇_r = Σ g_j q̇_j by the links' rates,
the spin disappears as well: a·ω of these links is a·ω_p plus sums of q̇_j, and with g_{n+1} = 0

    (a·ω_p + Σ g_j q̇_j)² = (1 − g_1)(a·ω_p)² + Σ_j (g_j − g_{j+1})(a·ω_j)² + q̇ᵀ A q̇,
    A_ij = g_i g_j − g_max(i,j).

For one gear of ratio g: the inertia gJ about the axis moves from the carrier to the link, and the
armature is g(g−1)J, not g²J. The resulting inertias need not be physical (positive definite).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np

from delassus.errors import RobotError
from delassus.model.clusters import Cluster, clusters_of
from delassus.model.robot import WORLD, Frame, Joint, JointKind, Robot
from delassus.model.spatial import Array, Inertia
from delassus.rbda.constraints import loop_jacobian

_RELATIVE_ROUNDING = 1e-12
"""Relative deviation below which axes are parallel, rotors balanced and round, ratios zero."""

_INDEPENDENT_SINE = 1e-3
"""Sine of the angle between rates below which the rates do not count as independent."""


@dataclass(frozen=True, eq=False)
class Coupled:
    """Joints of a rewritten robot that stay coupled, or a joint whose motion has no effect.

    Attributes
    ----------
    joints : indices of the joints in the rewritten robot, increasing.
    cluster : the cluster of the original robot.
    jacobian : (joints, freedoms), the rates of the joints per independent rate; None where the
        rates depend on the configuration, with one row per joint of the cluster.
    armature : (joints, joints) inertia between joints in addition to the joints' armatures.
    couples : (joints, 3) moment on the joint's carrier, in the carrier's axes, per acceleration
        of the joint.
    """

    joints: tuple[int, ...]
    cluster: Cluster
    jacobian: Array | None
    armature: Array
    couples: Array


@dataclass(frozen=True, eq=False)
class Redistribution:
    """A robot without the rotors whose inertia was moved to other bodies.

    Attributes
    ----------
    robot : the rewritten spanning tree, without constraints.
    kept : per joint of `robot`, the index of the joint in the original robot.
    coupled : joints that stay coupled; all remaining joints are ordinary.
    """

    robot: Robot
    kept: tuple[int, ...]
    coupled: tuple[Coupled, ...]

    @property
    def is_ordinary(self) -> bool:
        """Whether the rewritten robot is an open tree, without coupled joints."""
        return not self.coupled


def spanning(robot: Robot) -> Redistribution:
    """Return the robot's spanning tree without redistribution of rotors."""
    return _Rewriting(robot, frozenset(range(len(robot.joints)))).result()


def redistribute(robot: Robot, held: Container[int] = frozenset()) -> Redistribution:
    """Return the robot with the inertia of its rotors redistributed, exactly.

    Parameters
    ----------
    held : leaf bodies that must stay: bodies with contacts.
    """
    return _Rewriting(robot, held).result()


def lock(robot: Robot, held: Container[int] = frozenset()) -> Redistribution:
    """Return the usual approximation: rotors locked to their carriers, g²J as armatures."""
    return _Locking(robot, held).result()


def pruned(
    robot: Robot, gone: Container[int], inertias: Sequence[Inertia], armatures: Sequence[float]
) -> tuple[Robot, tuple[int, ...]]:
    """Return a robot's spanning tree without some leaves, and the joints that are kept.

    Parameters
    ----------
    gone : joints to leave out, with the frames on their bodies.
    inertias, armatures : the new values, for all joints.
    """
    kept = [i for i in range(len(robot.joints)) if i not in gone]
    new = {WORLD: WORLD, **{i: k for k, i in enumerate(kept)}}
    joints = [
        replace(robot.joints[i], parent=new[robot.joints[i].parent], armature=armatures[i])
        for i in kept
    ]
    frames = [
        Frame(frame.name, new[frame.body], frame.placement)
        for frame in robot.frames.values()
        if frame.body in new
    ]
    bodies = [replace(robot.bodies[i], inertia=inertias[i]) for i in kept]
    rewritten = Robot(robot.name, joints, bodies, frames, row_loops=robot.row_loops)
    return rewritten, tuple(kept)


class _Rewriting:
    """Inertias and armatures of a robot while rotors are redistributed."""

    def __init__(self, robot: Robot, held: Container[int]) -> None:
        self._robot = robot
        carriers = {joint.parent for joint in robot.joints}
        self._leaves = [i not in carriers and i not in held for i in range(len(robot.joints))]
        self._inertias = [body.inertia for body in robot.bodies]
        self._armatures = [joint.armature for joint in robot.joints]
        self._couples: dict[int, Array] = {}
        self._gone: set[int] = set()
        # Joint-side inertia between the joints of the cluster that is being rewritten.
        self._between: dict[tuple[int, int], float] = {}
        self._coupled: list[Coupled] = []
        for cluster in clusters_of(robot):
            if not cluster.is_ordinary:
                self._rewrite(cluster)

    def result(self) -> Redistribution:
        """Return the rewritten robot."""
        robot, kept = pruned(self._robot, self._gone, self._inertias, self._armatures)
        coupled = tuple(
            replace(group, joints=tuple(kept.index(i) for i in group.joints))
            for group in self._coupled
        )
        return Redistribution(robot, kept, coupled)

    def _rewrite(self, cluster: Cluster) -> None:
        rotors = [i for i in cluster.joints if self._leaves[i] and self._is_balanced(i)]
        if not cluster.is_constant:
            for i in rotors:
                self._split_off_spin(i)
            self._keep(cluster, cluster.joints, None)
            return
        E = loop_jacobian(cluster, self._robot.neutral().tolist())
        ratios = {i: np.array(row) for i, row in zip(cluster.joints, E, strict=True)}
        links = [i for i in cluster.joints if i not in rotors]
        independent = independent_links(ratios, links)
        if not independent:
            # A wheel without contacts is treated as a rotor.
            links = [i for i in cluster.joints if i in links or i in cluster.independent]
            rotors = [i for i in rotors if i not in links]
            independent = independent_links(ratios, links)
        for i in rotors:
            self._split_off_spin(i)
        to_links = np.linalg.inv(np.array([ratios[i] for i in independent]))
        ratios = {i: clean(row @ to_links) for i, row in ratios.items()}
        for i in independent:
            ratios[i] = np.eye(len(independent))[independent.index(i)]
        self._between = {}
        by_link = {r: dict(zip(independent, ratios[r].tolist(), strict=True)) for r in rotors}
        spun = [r for r in rotors if self._absorb(r, cluster, by_link[r])]
        left = [i for i in cluster.joints if i not in spun]
        for i in links:
            self._armatures[i] += self._between.pop((i, i), 0.0)
        if left != independent or any(self._between.values()):
            self._keep(cluster, left, ratios)
        for i in spun:
            if self._robot.joints[i].parent == WORLD or self._is_round(i):
                self._gone.add(i)
            else:
                self._keep(cluster, [i], {i: np.zeros(0)})

    def _keep(
        self, cluster: Cluster, joints: Iterable[int], ratios: dict[int, Array] | None
    ) -> None:
        """Keep joints of a cluster coupled."""
        joints = tuple(joints)
        armature = [[self._between.get((i, j), 0.0) for j in joints] for i in joints]
        self._coupled.append(
            Coupled(
                joints,
                cluster,
                None if ratios is None else np.array([ratios[i] for i in joints]),
                np.array(armature),
                np.array([self._couples.get(i, np.zeros(3)) for i in joints]),
            )
        )
        self._between = {}

    def _is_balanced(self, i: int) -> bool:
        """Return whether a body turns about a principal axis through its centre of mass.

        The weight of a rotor with gravity compensation cannot be moved to its carrier.
        """
        joint, inertia = self._robot.joints[i], self._inertias[i]
        if joint.kind is not JointKind.REVOLUTE or self._robot.bodies[i].is_compensated:
            return False
        a, size = joint.axis, float(np.abs(inertia.rotational).max())
        principal = np.abs(inertia.rotational @ a - _spin(joint, inertia) * a).max()
        across = np.abs(inertia.moment - (inertia.moment @ a) * a).max()
        moment = max(float(np.abs(inertia.moment).max()), float(np.sqrt(abs(inertia.mass) * size)))
        return bool(
            principal <= _RELATIVE_ROUNDING * size and across <= _RELATIVE_ROUNDING * moment
        )

    def _is_round(self, i: int) -> bool:
        """Return whether a rotor's inertia is equal about all axes across its joint's axis."""
        inertia = self._inertias[i]
        return inertia.mass == 0.0 and not inertia.rotational.any()

    def _split_off_spin(self, i: int) -> None:
        """Move a rotor's inertia to its carrier, except the spin and parts that are not round."""
        joint, inertia = self._robot.joints[i], self._inertias[i]
        J, a = _spin(joint, inertia), joint.axis
        axial, across = np.outer(a, a), np.eye(3) - np.outer(a, a)
        mean = float(np.trace(inertia.rotational) - J) / 2
        rest = inertia.rotational - J * axial - mean * across
        if np.abs(rest).max() <= _RELATIVE_ROUNDING * np.abs(inertia.rotational).max():
            rest = np.zeros((3, 3))
        whole = Inertia(inertia.mass, inertia.moment, J * axial + mean * across)
        self._inertias[i] = Inertia(0.0, np.zeros(3), rest)
        self._armatures[i] += J
        if joint.parent != WORLD:
            self._add(joint.parent, whole.in_parent(joint.placement))
            self._couples[i] = J * (joint.placement.rotation @ a)

    def _absorb(self, rotor: int, cluster: Cluster, ratios: dict[int, float]) -> bool:
        """Move a rotor's spin to the links that turn it; return False if that is not exact."""
        ratios = {i: g for i, g in ratios.items() if g != 0.0}
        carrier, armature = self._robot.joints[rotor].parent, self._armatures[rotor]
        J = 0.0
        if carrier != WORLD:
            chain = self._parallel(rotor, cluster, ratios)
            if chain is None:
                return False
            J = _spin(self._robot.joints[rotor], self._robot.bodies[rotor].inertia)
            along = _unit(self._couples.pop(rotor))
            g = [sign * ratios.get(i, 0.0) for i, sign in chain] + [0.0]
            self._add_axial(carrier, along, -J * g[0])
            for k, (i, sign) in enumerate(chain):
                self._add_axial(i, self._robot.joints[i].axis, J * (g[k] - g[k + 1]))
                for h, (j, other) in enumerate(chain):
                    self._add_between(i, j, -sign * other * J * g[max(k, h)])
        for i, gi in ratios.items():
            for j, gj in ratios.items():
                self._add_between(i, j, armature * gi * gj)
        self._armatures[rotor] = 0.0
        return True

    def _parallel(
        self, rotor: int, cluster: Cluster, ratios: Iterable[int]
    ) -> list[tuple[int, float]] | None:
        """Return the links from a rotor's carrier to the last of `ratios`, if all are parallel.

        Every link is paired with the sign of its axis along the rotor's axis.
        """
        joints = self._robot.joints
        chain: list[int] = []
        i = max(ratios, default=joints[rotor].parent)
        while i != joints[rotor].parent:
            if i not in cluster.joints or joints[i].kind is not JointKind.REVOLUTE:
                return None
            chain.append(i)
            i = joints[i].parent
        if not set(ratios) <= set(chain):
            return None
        axis = joints[rotor].placement.rotation @ joints[rotor].axis
        turn, found = np.eye(3), []
        for i in reversed(chain):
            turn = turn @ joints[i].placement.rotation
            direction = turn @ joints[i].axis
            if np.abs(np.cross(direction, axis)).max() > _RELATIVE_ROUNDING:
                return None
            found.append((i, 1.0 if direction @ axis > 0 else -1.0))
        return found

    def _add(self, i: int, inertia: Inertia) -> None:
        self._inertias[i] = self._inertias[i] + inertia

    def _add_axial(self, i: int, axis: Array, amount: float) -> None:
        self._add(i, Inertia(0.0, np.zeros(3), amount * np.outer(axis, axis)))

    def _add_between(self, i: int, j: int, amount: float) -> None:
        self._between[i, j] = self._between.get((i, j), 0.0) + amount


class _Locking(_Rewriting):
    """Rewriting in which the rotors' spin is an armature g²J, as if the carriers stood still."""

    def _absorb(self, rotor: int, cluster: Cluster, ratios: dict[int, float]) -> bool:
        for i, g in ratios.items():
            self._add_between(i, i, g * g * self._armatures[rotor])
        return True


def _spin(joint: Joint, inertia: Inertia) -> float:
    """Return the inertia of a body about its joint's axis."""
    return float(joint.axis @ inertia.rotational @ joint.axis)


def _unit(v: Array) -> Array:
    length = float(np.linalg.norm(v))
    return v / length if length else v


def clean(row: Array) -> Array:
    """Return `row` without rounding noise around zero."""
    return np.where(np.abs(row) <= _RELATIVE_ROUNDING * np.abs(row).max(initial=0.0), 0.0, row)


def independent_links(ratios: dict[int, Array], links: list[int]) -> list[int]:
    """Return links that determine all joints, as many as freedoms, or an empty list.

    Links are chosen greedily, the most independent of the links chosen before first, so that a
    ratio of 1:100 does not lead to the slow side.
    """
    freedoms = len(next(iter(ratios.values())))
    rest = {i: ratios[i] / max(float(np.linalg.norm(ratios[i])), 1e-300) for i in links}
    chosen: list[int] = []
    while len(chosen) < freedoms and rest:
        best = max(rest, key=lambda i: float(np.linalg.norm(rest[i])))
        direction = rest.pop(best)
        length = float(np.linalg.norm(direction))
        if length <= _INDEPENDENT_SINE:
            return []
        chosen.append(best)
        unit = direction / length
        rest = {i: row - (row @ unit) * unit for i, row in rest.items()}
    return sorted(chosen) if len(chosen) == freedoms else []


def reflect(robot: Robot, held: Container[int] = frozenset()) -> Redistribution:
    """Return the tree of a robot's independent joints, with g²J of dependent joints as armatures.

    Parameters
    ----------
    held : bodies with contacts.

    Raises
    ------
    RobotError
        If a dependent joint is not a rotor: its body carries bodies or contacts, or its rate
        depends on the configuration. Names the joint.
    """
    for cluster in clusters_of(robot):
        if not (cluster.is_constant or cluster.is_ordinary):
            _refuse(robot, cluster, cluster.dependent[0], "its rate depends on the configuration")
    return independent_tree(robot, held)


def independent_tree(
    robot: Robot, held: Container[int] = frozenset(), reflected: bool = True
) -> Redistribution:
    """Return the tree of a robot's independent joints, without dependent joints and their bodies.

    The approximate and unconstrained methods of the cluster paper, section II-C.

    Parameters
    ----------
    held : bodies with contacts or wrenches.
    reflected : g²J of dependent joints with constant ratios g becomes an armature of the joints
        that turn them; where ratios depend on the configuration, nothing is added.

    Raises
    ------
    RobotError
        If the body of a dependent joint carries bodies or contacts. Names the joint.
    """
    carriers = {joint.parent for joint in robot.joints}
    armatures = [joint.armature for joint in robot.joints]
    left_out: set[int] = set()
    for cluster in clusters_of(robot):
        if cluster.is_ordinary:
            continue
        for i in cluster.dependent:
            if i in carriers:
                _refuse(robot, cluster, i, "it carries other bodies")
            if i in held:
                _refuse(robot, cluster, i, "it has a contact")
        left_out.update(cluster.dependent)
        if not (reflected and cluster.is_constant):
            continue
        E = loop_jacobian(cluster, robot.neutral().tolist())
        for i in cluster.dependent:
            joint, inertia = robot.joints[i], robot.bodies[i].inertia
            spin = inertia.mass
            if joint.kind is JointKind.REVOLUTE:
                spin = float(joint.axis @ inertia.rotational @ joint.axis)
            ratios = E[cluster.joints.index(i)]
            for k, ratio in zip(cluster.independent, ratios, strict=True):
                armatures[k] += float(ratio) ** 2 * (spin + armatures[i])
    inertias = [body.inertia for body in robot.bodies]
    tree, kept = pruned(robot, left_out, inertias, armatures)
    return Redistribution(tree, kept, ())


def _refuse(robot: Robot, cluster: Cluster, i: int, reason: str) -> NoReturn:
    """Refuse a dependent joint that is not a rotor."""
    constraints = ", ".join(map(repr, cluster.constraint_names))
    raise RobotError(
        f"joint {robot.joints[i].name!r} cannot be approximated by a reflected inertia: it "
        f"depends on other joints by {constraints}, and {reason}"
    )
