"""The motion of a tree with clusters at positions and rates: velocities, bias accelerations.

Joint rates are q̇ = E ẏ and joint accelerations q̈ = E ÿ + γ, γ = Ė ẏ, with the loop Jacobian E:
equation (3) of M. Chignoli, N. Adrian, S. Kim, P. Wensing, "Recursive Rigid-Body Dynamics
Algorithms for Systems with Kinematic Loops". Their motion subspaces of clusters (24) and the
derivatives (25), (26) are products of E with the joints' own; here joints are taken one by one.
Everything is written over scalars, in the frames of :mod:`delassus.rbda.tree`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

from delassus.model.robot import WORLD
from delassus.problem import Problem
from delassus.rbda.spatial import JointTransform, RigidInertia, cross, world_rotations
from delassus.rbda.tree import Tree
from delassus.rbda.velocities import Velocities, motion_of_link
from delassus.scalars.functions import Matrix, Scalar, Vector, dot, plus, transpose
from delassus.scalars.ports import Inputs
from delassus.scalars.steps import step


class Accelerations(NamedTuple):
    """Accelerations of a tree.

    Attributes
    ----------
    links : spatial accelerations of the links less that of gravity, angular first.
    independent : ÿ (n,).
    """

    links: list[Vector]
    independent: Vector


class ClusterMotion:
    """The links of a problem's tree at positions and rates.

    Parameters
    ----------
    x : ``q`` (nq,), closed, and ``rates`` ẏ (n,); where forces are computed ``gravity`` (3,)
        [m/s²], in the axes of the world, of a floating base whose orientation is no input in those
        of its root link, and ``wrenches`` (w, 6) on the problem's frames, in their axes, linear
        first.

    Attributes
    ----------
    problem, tree, x : the arguments.
    velocities : the columns of the independent velocities.
    rows : per link its joint's rate, as factors of ẏ by column.
    transforms : between each link and its parent.
    rate : per link the rate of its joint, along its coordinate axis.
    gamma : per link γ = Ė ẏ of its joint.
    v : velocities of the links.
    c : accelerations that joints give the links while ÿ = 0 and the parents are at rest.
    bias : accelerations of the links while ÿ = 0.
    """

    def __init__(self, problem: Problem, tree: Tree, x: Inputs) -> None:
        self.problem, self.tree, self.x = problem, tree, x
        self.velocities = Velocities(problem, tree)
        self.rows = self.velocities.rows(x)
        self.gamma = self.velocities.biases(x)
        self.transforms = [JointTransform(link, x) for link in tree.links]
        self.rate: list[Scalar] = []
        self.v: list[Vector] = []
        self.c: list[Vector] = []
        self.bias: list[Vector] = []
        rest = [0.0] * 6
        for i, link in enumerate(tree.links):
            if link.motion == "free":
                self.rate.append(0.0)
                self.v.append(motion_of_link(link, self.base(i, x["rates"])))
                self.c.append(list(rest))
                self.bias.append(list(rest))
                continue
            rate = self.of_joint(i, x["rates"])
            v_parent, bias_parent = rest, rest
            if link.parent != WORLD:
                v_parent, bias_parent = self.v[link.parent], self.bias[link.parent]
            v, c, bias = _after_joint(
                self.transforms[i], v_parent, bias_parent, rate, self.gamma[i], link.axis,
                link.motion == "revolute",
            )  # fmt: skip
            self.rate.append(rate)
            self.v.append(v)
            self.c.append(c)
            self.bias.append(bias)

    def of_joint(self, i: int, independent: Sequence[Scalar]) -> Scalar:
        """Return link i's joint's part E ẏ (or E ÿ) of independent rates (or accelerations)."""
        return dot(list(self.rows[i].values()), [independent[k] for k in self.rows[i]])

    def of_joints(self, independent: Sequence[Scalar]) -> Vector:
        """Return the joints' accelerations E ÿ + γ at independent accelerations, by link."""
        return [self.of_joint(i, independent) + g for i, g in enumerate(self.gamma)]

    def base(self, i: int, independent: Sequence[Scalar]) -> Vector:
        """Return the six independent velocities (or torques) of a free body, linear first."""
        first = self.velocities.first[i]
        return list(independent[first : first + 6])

    def accelerations(self, independent: Vector) -> Accelerations:
        """Return the accelerations of the links at independent accelerations ÿ (n,): (33)."""
        a: list[Vector] = []
        for i, link in enumerate(self.tree.links):
            if link.motion == "free":
                a.append(self.base_acceleration(i, independent))
            else:
                a_parent = self.ground if link.parent == WORLD else a[link.parent]
                a.append(self.acceleration(i, a_parent, self.of_joint(i, independent)))
        return Accelerations(a, independent)

    def acceleration(self, i: int, a_parent: Vector, rate: Scalar) -> Vector:
        """Return the acceleration of link i from that of its parent and its joint's E ÿ."""
        a = plus(self.transforms[i].motion_to_child(a_parent), self.c[i])
        S = self.tree.links[i].freedom
        a[S] = a[S] + rate
        return a

    def base_acceleration(self, i: int, independent: Vector) -> Vector:
        """Return the acceleration of free body i less that of gravity, at ÿ (n,)."""
        a = motion_of_link(self.tree.links[i], self.base(i, independent))
        return a[:3] + [b - g for b, g in zip(a[3:], self.gravity[i], strict=True)]

    @cached_property
    def ground(self) -> Vector:
        """Acceleration of the world less that of gravity; points upwards [m/s²]."""
        return [0.0] * 3 + [-g for g in self.x["gravity"]]

    @cached_property
    def gravity(self) -> list[Vector]:
        """Acceleration of gravity (3,) per link, in its axes."""
        tree, ground = self.tree, list(self.x["gravity"])
        found: list[Vector] = []
        rotations = world_rotations(tree, self.x) if "base_orientation" in self.x else {}
        for i, link in enumerate(tree.links):
            if link.motion != "free":
                g_parent = ground if link.parent == WORLD else found[link.parent]
                found.append(self.transforms[i].motion_to_child([0.0] * 3 + g_parent)[3:])
            elif i in rotations:
                found.append([dot(column, ground) for column in transpose(rotations[i])])
            else:
                found.append(motion_of_link(link, ground + [0.0] * 3)[3:])
        return found

    @cached_property
    def external_forces(self) -> dict[int, Vector]:
        """External forces by link: those of the input ``wrenches``."""
        found: dict[int, Vector] = {}
        for i, link in enumerate(self.tree.links):
            for index, K in link.wrenches:
                wrench = list(self.x["wrenches"][6 * index : 6 * index + 6])
                force = [dot(column, wrench) for column in transpose(K)]
                found[i] = plus(found[i], force) if i in found else force
        return found

    @cached_property
    def momentum(self) -> Vector:
        """Momentum (6,) of the robot, at its free link or the world."""
        links = self.tree.links
        total: Vector = [0.0] * 6
        carried = []
        for link, v in zip(links, self.v, strict=True):
            H = RigidInertia.of(link)
            carried.append(_momentum(v, H.mass, H.moment, H.rotational))
        for i in reversed(range(len(links))):
            link = links[i]
            if link.motion == "free":
                total = plus(total, carried[i])
                continue
            moved = self.transforms[i].force_to_parent(carried[i])
            moved = plus(moved, [k * self.rate[i] for k in link.couple] + [0.0] * 3)
            if link.parent == WORLD:
                total = plus(total, moved)
            else:
                carried[link.parent] = plus(carried[link.parent], moved)
        return total

    def gyroscopic_force(self, i: int) -> Vector:
        """Return v ×* H v, the force on link i without acceleration."""
        H = RigidInertia.of(self.tree.links[i])
        return _gyroscopic_force(self.v[i], H.mass, H.moment, H.rotational)

    def inertia_force(self, i: int, a: Vector, g: Vector) -> Vector:
        """Return H (a − g) + v ×* H v, the force on link i at its acceleration a."""
        H = RigidInertia.of(self.tree.links[i])
        return _inertia_force(self.v[i], a, g, H.mass, H.moment, H.rotational)

    def spin_force(self, i: int, acceleration: Scalar) -> Vector:
        """Return the force on the parent of link i by the remaining spin of a redistributed rotor.

        The rotor's angular momentum, ``couple`` times the joint's rate, turns with the parent.

        Parameters
        ----------
        acceleration : of the joint.
        """
        link = self.tree.links[i]
        couple = list(link.couple)
        turning = cross(self.v[link.parent][:3], [k * self.rate[i] for k in couple])
        return [t + k * acceleration for t, k in zip(turning, couple, strict=True)] + [0.0] * 3


@step
def _after_joint(
    transform: JointTransform,
    v_parent: Vector,
    bias_parent: Vector,
    rate: Scalar,
    gamma: Scalar,
    axis: int,
    revolute: bool,
) -> tuple[Vector, Vector, Vector]:
    """Return v, c and the bias acceleration of a link from those of its parent."""
    v = transform.motion_to_child(v_parent)
    S = axis if revolute else 3 + axis
    v[S] = v[S] + rate
    joint_rate = [rate if k == axis else 0.0 for k in range(3)]
    turned = cross(v[:3], joint_rate)
    c = [*turned, *cross(v[3:], joint_rate)] if revolute else [0.0, 0.0, 0.0, *turned]
    c[S] = c[S] + gamma
    return v, c, plus(transform.motion_to_child(bias_parent), c)


@step
def _gyroscopic_force(v: Vector, mass: Scalar, moment: Vector, rotational: Matrix) -> Vector:
    """Return v ×* H v of a rigid body."""
    momentum = _momentum(v, mass, moment, rotational)
    turning = plus(cross(v[:3], momentum[:3]), cross(v[3:], momentum[3:]))
    return turning + cross(v[:3], momentum[3:])


@step
def _inertia_force(
    v: Vector, a: Vector, g: Vector, mass: Scalar, moment: Vector, rotational: Matrix
) -> Vector:
    """Return H (a − g) + v ×* H v of a rigid body."""
    momentum = _momentum(v, mass, moment, rotational)
    turning = plus(cross(v[:3], momentum[:3]), cross(v[3:], momentum[3:]))
    felt = a[:3] + [b - w for b, w in zip(a[3:], g, strict=True)]
    accelerated = _momentum(felt, mass, moment, rotational)
    return plus(accelerated, turning + cross(v[:3], momentum[3:]))


def _momentum(v: Vector, mass: Scalar, moment: Vector, rotational: Matrix) -> Vector:
    """Return H v of a rigid body."""
    angular = [dot(row, v[:3]) for row in rotational]
    linear = cross(v[:3], moment)
    return plus(angular, cross(moment, v[3:])) + [
        mass * b + w for b, w in zip(v[3:], linear, strict=True)
    ]
