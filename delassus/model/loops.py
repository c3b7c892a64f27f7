"""Clusters on plain numbers: gaps of constraints, their Jacobian, configurations that close.

Used once per robot, to find how many rows of the loops are independent; see
:mod:`~delassus.model.clusters`. Lengths of a loop are relative to the size of that loop: the
result depends neither on the place of the loop nor on the size of other loops in the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from delassus.errors import NumericalError
from delassus.model.constraint_rows import ROWS, function_rows, loop_rows, size_of, vectors
from delassus.model.joint import WORLD, JointKind
from delassus.model.joint_group import JointGroup, joints_of
from delassus.model.spatial import Array
from delassus.scalars.functions import Scalar, Vector

CLOSED_GAP = 2e-5
"""Largest gap of a closed loop: an angle [rad], or a share of the loop's size. Published
angles are rounded, as 1.5708, so that hinges in a plane are not quite parallel."""
CONVERGED_GAP = 1e-10
"""Gap or step [rad, or the loop's size] at which iterations end."""
MAX_ITERATIONS = 100
"""Most steps of one attempt to close a cluster."""
STUCK_ITERATIONS = 20
"""Iterations in which the gap must shrink by a thousandth; else the attempt ends."""
LONGEST_STEP = 0.5
"""Longest step of one iteration [rad, or the loop's size], of joints that are not linear."""
START_DISTANCES_RAD = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 3.0, 3.0, 3.0)
"""Distances of the starts from the reference [rad]. Near starts come first, as they are on the
branch of the reference."""
ENOUGH_CONFIGURATIONS = 5
"""Closed configurations after which the search ends."""


class LoopClosure:
    """The constraints of one cluster as functions of its q.

    Lengths of a loop are in units of its size, so that rows and columns of revolute and
    prismatic joints are comparable; `q` and the results are in these units. A prismatic joint
    has the unit of the smallest loop that contains the joint; without such a loop, the unit of
    the largest loop of the cluster, else the length of the longest link between its joints.

    Parameters
    ----------
    group : the cluster; its joints are revolute and prismatic.

    Attributes
    ----------
    units : (joints,) the unit of each joint [rad or m].
    """

    def __init__(self, group: JointGroup) -> None:
        self._group = group
        self._robot = group.robot
        self._joints = group.joints
        self._loops = group.loops
        self._sizes = [size_of(self._robot, loop) for loop in self._loops]
        self.units = self._units_of_joints()
        self._linear = group.coupling_rows() * np.append(self.units, 1.0)
        self._linear /= np.abs(self._linear[:, :-1]).max(axis=1, initial=0.0, keepdims=True)
        self._is_linear = group.is_linear
        self._best = (np.inf, "", np.inf)

    def reference(self) -> Array:
        """Return the neutral q, moved into the joint limits where outside."""
        limits = [self._robot.joints[joint] for joint in self._joints]
        neutral: Array = np.array([min(max(0.0, each.lower), each.upper) for each in limits])
        return neutral / self.units

    def gap(self, q: Array) -> Array:
        """Return the constraint rows: of couplings, of loops, of functions."""
        return self._rows(q)[0]

    def jacobian(self, q: Array) -> Array:
        """Return the derivative of :meth:`gap` by q; exact where the loops are closed."""
        return self._rows(q)[1]

    def inertia(self, q: Array) -> Array:
        """Return the mass matrix of the cluster's joints; joints outside are at 0."""
        robot = self._robot
        composite = [body.inertia for body in robot.bodies]
        for i in reversed(range(len(composite))):
            joint = robot.joints[i]
            if i not in self._joints and joint.parent != WORLD:
                composite[joint.parent] += composite[i].in_parent(joint.placement)
        mass: Array = np.diag([robot.joints[joint].armature for joint in self._joints])
        twists: dict[int, Array] = {}  # of the bodies, in their own axes
        for k, (body, value) in enumerate(zip(self._joints, q * self.units, strict=True)):
            joint = robot.joints[body]
            to_body = (joint.placement @ joint.motion(value)).motion_to_child()
            above = twists.get(joint.parent, np.zeros((6, len(self._joints))))
            twists[body] = to_body @ above
            first = 3 if joint.kind is JointKind.PRISMATIC else 0
            twists[body][first : first + 3, k] = joint.axis
            mass += twists[body].T @ composite[body].matrix() @ twists[body]
        mass *= np.outer(self.units, self.units)
        return mass

    def close(self, q: Array) -> Array | None:
        """Return a closed configuration near `q`, by Levenberg-Marquardt, or None.

        Linear joints, see :attr:`JointGroup.is_linear`, follow the other joints, however far. The
        attempt also ends where a function is not defined.
        """
        try:
            return self._closed(q)
        except (ArithmeticError, ValueError, NumericalError):
            return None

    def _closed(self, q: Array) -> Array | None:
        sizes: list[float] = []
        for _ in range(MAX_ITERATIONS):
            gap, jacobian = self._rows(q)
            size = float(np.linalg.norm(gap))
            sizes.append(size)
            stuck = len(sizes) > STUCK_ITERATIONS and size > 0.999 * sizes[-1 - STUCK_ITERATIONS]
            if size < CONVERGED_GAP or stuck:
                break
            step = closing_step(gap, jacobian, self._is_linear, LONGEST_STEP)
            q = q + step
            if np.linalg.norm(step[~self._is_linear]) < CONVERGED_GAP:
                break
        self._note(q)
        return q if np.abs(self.gap(q)).max() <= CLOSED_GAP else None

    def worst(self) -> tuple[str, float]:
        """Return the constraint with the largest gap, and that gap [m or rad], at the best q."""
        return self._best[1], self._best[2]

    def _note(self, q: Array) -> None:
        gap = np.abs(self.gap(q))
        if gap.max() >= self._best[0]:
            return
        units = np.ones(len(gap))
        first = len(self._linear)
        for loop, size in zip(self._loops, self._sizes, strict=True):
            for k in ROWS[loop.kind]:
                units[first] = 1.0 if k < 3 else size
                first += 1
        worst = (self._group.described(), -1.0)
        for what, rows in self._group.blocks()[len(self._linear) :]:
            worst = max(worst, (what, float((gap * units)[rows].max())), key=lambda each: each[1])
        self._best = (float(gap.max()), *worst)

    def _units_of_joints(self) -> Array:
        """Return the unit of each joint (joints,) [rad or m]."""
        joints = [self._robot.joints[joint] for joint in self._joints]
        links = [each.placement.translation for each in joints if each.parent in self._joints]
        largest = max(self._sizes or [float(np.linalg.norm(link)) for link in links], default=0.0)
        units = np.ones(len(joints))
        for k, (number, joint) in enumerate(zip(self._joints, joints, strict=True)):
            if joint.kind is JointKind.PRISMATIC:
                through = [
                    size
                    for size, loop in zip(self._sizes, self._loops, strict=True)
                    if number in joints_of(self._robot, loop)
                ]
                units[k] = min(through, default=largest) or 1.0
        return units

    def _rows(self, q: Array) -> tuple[Array, Array]:
        gaps, jacobians = [self._linear[:, :-1] @ q + self._linear[:, -1]], [self._linear[:, :-1]]
        values = self._values(q)
        rows = [self._loop_rows(number, values) for number in range(len(self._loops))]
        rows += [function_rows(self._robot, each, values) for each in self._group.functions]
        for gap, slopes in rows:
            gaps.append(np.array(gap))
            by_joint = [[row.get(joint, 0.0) for joint in self._joints] for row in slopes]
            jacobians.append(np.array(by_joint) * self.units)
        return np.concatenate(gaps), np.concatenate(jacobians)

    def _values(self, q: Array) -> list[float]:
        """Return the robot's q (nq,) [rad or m]; joints outside of the cluster are at 0."""
        values = np.zeros(self._robot.nq)
        values[self._group.entries] = q * self.units
        return list(values.tolist())

    def _loop_rows(
        self, number: int, q: Sequence[float]
    ) -> tuple[Vector, list[dict[int, Scalar]]]:
        """Return the rows of a loop; lengths in units of its size."""
        return loop_rows(self._robot, self._loops[number], q, self._sizes[number], vectors)


def closed_jacobians(closure: LoopClosure) -> list[tuple[Array, Array]]:
    """Return a few closed configurations, the nearest to the reference first, with Jacobians.

    More than one, for the reference itself may be singular (a four-bar that is stretched).
    """
    # A fixed seed: the same robot must always get the same coordinates.
    random = np.random.default_rng(0)
    reference = closure.reference()
    jacobians: list[tuple[Array, Array]] = []
    for scale in START_DISTANCES_RAD:
        start = reference + scale * random.uniform(-1.0, 1.0, len(reference))
        closed = closure.close(start)
        if closed is not None:
            jacobians.append((closed, closure.jacobian(closed)))
        if len(jacobians) == ENOUGH_CONFIGURATIONS:
            break
    return jacobians


SINGULAR_TOLERANCE = 1e-10
"""Singular values of linear columns, relative to the largest, that count as 0."""


def closing_step(
    gap: Array,
    jacobian: Array,
    linear: NDArray[np.bool_],
    longest: float,
    each: bool = False,
) -> Array:
    """Return a step that makes the gap of constraints smaller.

    Linear joints take up as much of the gap as possible, however far they move: a rotor behind a
    gear, or the motor of a screw, turns hundreds of radians while the loop moves by one, and must
    not hold the loop back. The remaining gap is left to the other joints, in a damped step.

    Parameters
    ----------
    gap : (rows,) constraint rows.
    jacobian : (rows, joints) their derivative.
    linear : (joints,) True for joints whose columns are the same in every configuration.
    longest : longest step of the other joints together, in the units of their columns.
    each : whether `longest` bounds the step of a single joint instead.

    Returns
    -------
    (joints,) the step; the smallest one where columns of linear joints depend on each other.
    """
    columns, curved = jacobian[:, linear], jacobian[:, ~linear]
    # At equal length: what turns a fine screw counts as much as what it moves.
    lengths = np.linalg.norm(columns, axis=0)
    lengths[lengths == 0.0] = 1.0
    columns = columns / lengths
    solve = np.linalg.pinv(columns, rcond=SINGULAR_TOLERANCE)
    left = gap - columns @ (solve @ gap)
    curved_left = curved - columns @ (solve @ curved)
    # Damping by the squared gap keeps convergence quadratic at redundant rows.
    damping = min(float(left @ left), 1.0) * np.eye(curved.shape[1])
    normal = curved_left.T @ curved_left + damping
    moved = -np.linalg.lstsq(normal, curved_left.T @ left, rcond=1e-15)[0]
    length = float(np.abs(moved).max(initial=0.0) if each else np.linalg.norm(moved))
    if length > longest:
        moved *= longest / length
    step = np.zeros(len(linear))
    step[~linear] = moved
    step[linear] = -(solve @ (gap + curved @ moved)) / lengths
    return step
