"""The Newton step that closes all clusters of a robot at once, for the compiler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from delassus.compiler.newton import NewtonStep
from delassus.model.clusters import Cluster, clusters_of
from delassus.model.joint_group import joints_of
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.rbda import constraints
from delassus.scalars.functions import Scalar, Vector, absolute, select

_AROUND = 0.1
"""Largest distance of samples from the reference [rad or m]."""


class ClosureStep(NewtonStep):
    """A step of the joints `unknown` towards closed loops, with the other joints held.

    Behind q, the input holds the rows of clusters with redundant rows at the start of the
    iteration. The results are

    - the residuals of the clusters in order,
    - per cluster a determinant, of Kᵀ(before) K where rows are redundant; its sign changes where
      the held joints cease to determine the unknown joints,
    - per cluster the value that the determinant is compared with after the step,
    - the rows that are the input behind q in the next iteration.

    Parameters
    ----------
    robot : the robot.
    unknown : the joints to be moved, in any order.
    reference : (robot.nq,) a closed configuration.

    Attributes
    ----------
    clusters : those with constraints.
    unknown, coupled : entries of q that are moved; of these, the entries in no loop and no
        function, which follow from the held joints by linear equations.
    row_names : per row of the residual, the name of its constraint, as in messages.
    row_counts : number of rows per cluster.
    """

    def __init__(self, robot: Robot, unknown: Sequence[int], reference: Array) -> None:
        self.clusters = tuple(cluster for cluster in clusters_of(robot) if not cluster.is_ordinary)
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
            if joint not in curved_joints(cluster)
        )
        self.row_names = [name for cluster in self.clusters for name in cluster.row_names]
        self.row_counts = [len(cluster.row_names) for cluster in self.clusters]
        # Per cluster, the number of kept entries of redundant rows.
        self._kept = []
        for cluster, joints in zip(self.clusters, self._moved, strict=True):
            count = len(constraints.rows_that_count(cluster, joints)) if joints else 0
            self._kept.append(count * len(joints) if count > len(joints) else 0)
        self.nq = robot.nq + sum(self._kept)
        self.results = len(self.row_names) + 2 * len(self.clusters) + sum(self._kept)

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self._robot

    def evaluate(self, q: Sequence[Scalar]) -> Vector:
        """Return the steps, the longest step of joints in loops, and the results.

        Joints that are only coupled do not count for the longest step: their equations are
        linear. A step of a prismatic joint counts in units of the loop's size.
        """
        steps: Vector = []
        residuals: Vector = []
        determinants: Vector = []
        squared: Vector = []
        rows: Vector = []
        longest: Scalar = 0.0
        first = self._robot.nq
        for cluster, joints, kept in zip(self.clusters, self._moved, self._kept, strict=True):
            if not joints:
                residuals += constraints.residual(cluster, q)
                determinants.append(1.0)
                squared.append(1.0)
                continue
            found = constraints.newton_step(cluster, joints, q)
            curved = curved_joints(cluster)
            for joint, step in zip(joints, found.step, strict=True):
                if joint in curved:
                    size = absolute(step) * (1.0 / curved[joint])
                    longest = select(size - longest, size, longest)
            steps += found.step
            residuals += found.residual
            if not kept:
                determinants.append(found.determinant)
                squared.append(found.determinant)
                continue
            before = q[first : first + kept]
            first += kept
            going = constraints.continuation(cluster, joints, before, q)
            determinants.append(going.determinant)
            squared.append(going.squared)
            rows += going.rows
        return [*steps, longest, *residuals, *determinants, *squared, *rows]

    def at_reference(self) -> Array:
        """Return the results at the reference; compared determinants have arbitrary values."""
        before = np.random.default_rng(0).normal(size=sum(self._kept))
        q = np.concatenate([self._reference, before])
        values = np.array(self.evaluate(q.tolist()), dtype=np.float64)
        return values[len(self.unknown) + 1 :]

    def residuals(self, q: Array) -> Array:
        """Return the residuals of the clusters in order, on plain numbers."""
        at = q.tolist()
        rows = [value for cluster in self.clusters for value in constraints.residual(cluster, at)]
        return np.array(rows, dtype=np.float64)

    def sample(self, random: np.random.Generator) -> Array:
        """Return a configuration near the reference; see the base class."""
        q: Array = np.concatenate([self._reference, random.normal(size=sum(self._kept))])
        for cluster in self.clusters:
            q[cluster.entries] += random.uniform(-_AROUND, _AROUND, len(cluster.joints))
        return q

    def to_bytes(self) -> bytes:
        """Return canonical bytes; see the base class."""
        unknown = repr(self.unknown).encode()
        return b"closure\0" + self._robot.to_bytes() + unknown + self._reference.tobytes()


def curved_joints(cluster: Cluster) -> Mapping[int, float]:
    """Return the joints of loops and functions, and the length that counts as 1 [rad or m]."""
    robot = cluster.robot
    loops = {joint for loop in cluster.loops for joint in joints_of(robot, loop)}
    names = {name for function in cluster.functions for name in function.tied}
    return {
        joint: constraints.unit_of(cluster, joint)
        for joint in cluster.joints
        if joint in loops or robot.joints[joint].name in names
    }
