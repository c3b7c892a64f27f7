"""The Newton step that closes all clusters of a robot at once, for the compiler."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from delassus_ros.compiler.newton import NewtonStep
from delassus_ros.model.clusters import Cluster, clusters_of
from delassus_ros.model.robot import JointKind, Robot
from delassus_ros.model.spatial import Array
from delassus_ros.rbda import constraints
from delassus_ros.scalars.functions import Scalar, Vector, absolute, select

_REACH = 0.1
"""How far joints of loops move in one Newton iteration [rad, or the loop's size]."""
_AROUND = 0.1
"""Samples are this near to the reference [rad or m]."""


class ClosureStep(NewtonStep):
    """A step of the joints `unknown` towards closed loops, the other joints held.

    Behind q its input has the rows of clusters with redundant rows as they were where the
    iteration begins. Its results are

    - the residual of each cluster in turn,
    - per cluster a determinant, of Kᵀ(before) K where rows are redundant; it changes its sign
      where the unknown joints cease to follow from the others,
    - per cluster what that determinant is to be compared with after the step,
    - the rows that go behind q then.

    Parameters
    ----------
    robot : the robot.
    unknown : the joints to be moved, in any order.
    reference : (robot.nq,) a closed configuration.

    Attributes
    ----------
    clusters : those with constraints.
    unknown, coupled : entries of q that are moved, and those of them that are in no loop and no
        function: they follow from the others by linear equations.
    row_names : per row of the residual, the constraint it belongs to, as in messages.
    row_counts : rows of each cluster.
    """

    def __init__(self, robot: Robot, unknown: Sequence[int], reference: Array) -> None:
        self.clusters = tuple(each for each in clusters_of(robot) if not each.is_ordinary)
        self._robot = robot
        self._reference = reference
        self._moved = [
            tuple(joint for joint in cluster.joints if joint in unknown)
            for cluster in self.clusters
        ]
        self.unknown = tuple(robot.q_offsets[j] for joints in self._moved for j in joints)
        self.coupled = tuple(
            robot.q_offsets[joint]
            for cluster, joints in zip(self.clusters, self._moved, strict=True)
            for joint in joints
            if joint not in curved_joints(robot, cluster)
        )
        self.row_names = [n for each in self.clusters for n in constraints.row_names(each)]
        self.row_counts = [len(constraints.row_names(each)) for each in self.clusters]
        # Per cluster, how many entries of redundant rows are kept.
        self._kept = []
        for cluster, joints in zip(self.clusters, self._moved, strict=True):
            count = len(constraints.rows_that_count(robot, cluster, joints)) if joints else 0
            self._kept.append(count * len(joints) if count > len(joints) else 0)
        self.nq = robot.nq + sum(self._kept)
        self.results = len(self.row_names) + 2 * len(self.clusters) + sum(self._kept)

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self._robot

    def evaluate(self, q: Sequence[Scalar]) -> Vector:
        """Return steps, the longest of those in loops, and the results.

        Joints that are only coupled do not count for the longest one: their equations are
        linear, whatever the length. A step of a prismatic joint counts in units of its loop.
        """
        steps: Vector = []
        residuals: Vector = []
        determinants: Vector = []
        own: Vector = []
        rows: Vector = []
        longest: Scalar = 0.0
        first = self._robot.nq
        for cluster, joints, kept in zip(self.clusters, self._moved, self._kept, strict=True):
            if not joints:
                residuals += constraints.residual(self._robot, cluster, q)
                determinants.append(1.0)
                own.append(1.0)
                continue
            found = constraints.newton_step(self._robot, cluster, joints, q)
            curved = curved_joints(self._robot, cluster)
            for joint, step in zip(joints, found.step, strict=True):
                if joint in curved:
                    size = absolute(step) * (1.0 / curved[joint])
                    longest = select(size - longest, size, longest)
            steps += found.step
            residuals += found.residual
            if not kept:
                determinants.append(found.determinant)
                own.append(found.determinant)
                continue
            before = q[first : first + kept]
            first += kept
            going = constraints.continuation(self._robot, cluster, joints, before, q)
            determinants.append(going.determinant)
            own.append(going.squared)
            rows += going.rows
        return [*steps, longest, *residuals, *determinants, *own, *rows]

    def at_reference(self) -> Array:
        """Return the results at the reference; of determinants to be compared, any number."""
        before = np.random.default_rng(0).normal(size=sum(self._kept))
        q = np.concatenate([self._reference, before])
        values = np.array(self.evaluate(q.tolist()), dtype=np.float64)
        return values[len(self.unknown) + 1 :]

    def residuals(self, q: Array) -> Array:
        """Return the residual of each cluster in turn, on plain numbers."""
        at = q.tolist()
        rows = [
            value
            for cluster in self.clusters
            for value in constraints.residual(self._robot, cluster, at)
        ]
        return np.array(rows, dtype=np.float64)

    def sample(self, random: np.random.Generator) -> Array:
        """Return a configuration near the reference; see the base class."""
        q: Array = np.concatenate([self._reference, random.normal(size=sum(self._kept))])
        for cluster in self.clusters:
            for joint in cluster.joints:
                q[self._robot.q_offsets[joint]] += random.uniform(-_AROUND, _AROUND)
        return q

    def to_bytes(self) -> bytes:
        """Return canonical bytes; see the base class."""
        unknown = repr(self.unknown).encode()
        return b"closure\0" + self._robot.to_bytes() + unknown + self._reference.tobytes()


def curved_joints(robot: Robot, cluster: Cluster) -> Mapping[int, float]:
    """Return the joints of loops and functions, each with what counts as 1 of it [rad or m]."""
    loops = {joint for loop in cluster.loops for joint in constraints.joints_of(robot, loop)}
    names = {name for each in cluster.functions for name in each.tied}
    return {
        joint: (
            constraints.size(robot, cluster, joint)
            if robot.joints[joint].kind is JointKind.PRISMATIC
            else 1.0
        )
        for joint in cluster.joints
        if joint in loops or robot.joints[joint].name in names
    }


def reaches(robot: Robot, given: Collection[int], reference: Array) -> dict[int, float]:
    """Return for each given joint how far it may move in one Newton iteration [rad or m].

    That is as far as moves joints of loops by 0.1 rad, or by 0.1 of the loop's size; joints
    that move none in a loop have no end of it but one that NaN and infinity do not pass.
    """
    far = {joint: sys.float_info.max for joint in given}
    for cluster in clusters_of(robot):
        curved = {} if cluster.is_ordinary else curved_joints(robot, cluster)
        held = [joint for joint in cluster.joints if joint in given]
        if not curved:
            continue
        E = np.array(constraints.loop_jacobian(robot, cluster, reference.tolist()), float)
        rows = {joint: E[k] for k, joint in enumerate(cluster.joints)}
        # Rates of all joints by those of the held ones.
        rates = E @ np.linalg.inv(np.array([rows[joint] for joint in held]))
        for column, joint in enumerate(held):
            if joint in curved:
                far[joint] = _REACH * curved[joint]
                continue
            moved = [
                abs(rates[k, column]) / curved[other]
                for k, other in enumerate(cluster.joints)
                if other in curved
            ]
            if max(moved) > 0.0:
                far[joint] = _REACH / max(moved)
    return far
