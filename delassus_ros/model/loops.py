"""Loops on plain numbers: the gap between their ends, its Jacobian, configurations that close.

Used once per robot, to find how many rows of the loops are independent; see
:mod:`~delassus_ros.model.clusters`. Lengths of a loop are relative to the size of that loop: the
result depends neither on the place of the loop nor on the size of other loops in the cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from delassus_ros.errors import RobotError
from delassus_ros.model.constraints import FunctionConstraint, Loop, LoopKind
from delassus_ros.model.joint import WORLD, JointKind
from delassus_ros.model.joint_group import JointGroup
from delassus_ros.model.mechanism import Mechanism
from delassus_ros.model.spatial import Array, Transform, rotation_between, skew

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
DIFFERENCE_STEP = 1e-5
"""Step [rad, or the loop's size] of numerical derivatives."""


class LoopClosure:
    """The constraints of one cluster as functions of its q.

    Lengths of a loop are in units of its size, so that rows and columns of revolute and
    prismatic joints are comparable; `q` and the results are in these units. A prismatic joint
    has the unit of the smallest loop that contains the joint; without such a loop, the unit of
    the largest loop of the cluster, else the length of the longest link between its joints.

    Parameters
    ----------
    group : the cluster; its joints are revolute and prismatic.
    """

    def __init__(self, group: JointGroup) -> None:
        self._group = group
        self._robot = group.robot
        self._joints = group.joints
        self._loops = group.loops
        self._column = {joint: i for i, joint in enumerate(group.joints)}
        self._ways = [branches_of(self._robot, loop) for loop in self._loops]
        self._sizes = [size_of(self._robot, loop) for loop in self._loops]
        self._units = self._units_of_joints()
        self._linear = group.coupling_rows() * np.append(self._units, 1.0)
        self._linear /= np.abs(self._linear[:, :-1]).max(axis=1, initial=0.0, keepdims=True)
        self._is_linear = group.is_linear
        self._best = (np.inf, "", np.inf)

    def reference(self) -> Array:
        """Return the neutral q, moved into the joint limits where outside."""
        limits = [self._robot.joints[joint] for joint in self._joints]
        neutral: Array = np.array([min(max(0.0, each.lower), each.upper) for each in limits])
        return self.in_units(neutral)

    def in_units(self, q: Array) -> Array:
        """Return the cluster's q [rad, m] in the units used here."""
        return q / self._units

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
            if i not in self._column and joint.parent != WORLD:
                composite[joint.parent] += composite[i].in_parent(joint.placement)
        values = self._values(q)
        mass: Array = np.diag([robot.joints[joint].armature for joint in self._joints])
        for body in self._joints:
            carriers = self._carriers(body)
            placements = (*(robot.joints[joint].placement for joint in carriers), Transform())
            poses = poses_along(robot, LoopBranch(carriers, placements, 0.0), values)
            twists = self._twists(carriers, poses, poses[-1])
            turned = np.kron(np.eye(2), poses[-1].rotation.T) @ twists
            mass += turned.T @ composite[body].matrix() @ turned
        mass *= np.outer(self._units, self._units)
        return mass

    def close(self, q: Array) -> Array | None:
        """Return a closed configuration near `q`, by Levenberg-Marquardt, or None.

        Linear joints, see :attr:`JointGroup.is_linear`, follow the other joints, however far. The
        attempt also ends where a function is not defined.
        """
        try:
            return self._closed(q)
        except (ArithmeticError, ValueError):
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
            kinds = np.array(ROWS[loop.kind])
            units[first : first + len(kinds)] = np.where(kinds < 3, 1.0, size)
            first += len(kinds)
        worst = (self._group.described(), -1.0)
        for what, rows in self._group.blocks()[len(self._linear) :]:
            worst = max(worst, (what, float((gap * units)[rows].max())), key=lambda each: each[1])
        self._best = (float(gap.max()), *worst)

    def _units_of_joints(self) -> Array:
        """Return the unit of each joint (joints,) [rad or m]."""
        joints = [self._robot.joints[joint] for joint in self._joints]
        links = [each.placement.translation for each in joints if each.parent in self._column]
        largest = max(self._sizes or [float(np.linalg.norm(link)) for link in links], default=0.0)
        units = np.ones(len(joints))
        for k, (number, joint) in enumerate(zip(self._joints, joints, strict=True)):
            if joint.kind is JointKind.PRISMATIC:
                through = [
                    size
                    for size, ways in zip(self._sizes, self._ways, strict=True)
                    if any(number in way.joints for way in ways)
                ]
                units[k] = min(through, default=largest) or 1.0
        return units

    def _rows(self, q: Array) -> tuple[Array, Array]:
        gaps, jacobians = [self._linear[:, :-1] @ q + self._linear[:, -1]], [self._linear[:, :-1]]
        for number in range(len(self._loops)):
            gap, jacobian = self._loop_rows(number, self._values(q))
            gaps.append(gap)
            jacobians.append(jacobian)
        for function in self._group.functions:
            gaps.append(self._function_gap(function, q))
            jacobians.append(self._function_slopes(function, q))
        return np.concatenate(gaps), np.concatenate(jacobians)

    def _function_gap(self, constraint: FunctionConstraint, q: Array) -> Array:
        columns, values = self._group.columns, q * self._units
        results = constraint.function([float(values[columns[name]]) for name in constraint.joints])
        if len(results) != constraint.rows:
            raise RobotError(
                f"constraint {constraint.name!r}: its function returned {len(results)} numbers, "
                f"expected {constraint.rows}"
            )
        gap = np.array([float(each) for each in results])
        if constraint.dependent:
            gap = values[[columns[name] for name in constraint.dependent]] - gap
        return gap

    def _function_slopes(self, constraint: FunctionConstraint, q: Array) -> Array:
        """Return central differences: errors of 1e-9 are far below the rank tolerance of 1e-4.

        Slopes of dependent joints are exact, so that steps of any length are.
        """
        slopes = np.zeros((constraint.rows, len(q)))
        for row, name in enumerate(constraint.dependent):
            slopes[row, self._group.columns[name]] = self._units[self._group.columns[name]]
        for name in constraint.joints:
            column = self._group.columns[name]
            step = np.zeros(len(q))
            step[column] = DIFFERENCE_STEP
            ahead = self._function_gap(constraint, q + step)
            behind = self._function_gap(constraint, q - step)
            slopes[:, column] = (ahead - behind) / (2.0 * DIFFERENCE_STEP)
        return slopes

    def _values(self, q: Array) -> dict[int, float]:
        """Return the position of each joint by its index [rad or m]."""
        return dict(zip(self._joints, (q * self._units).tolist(), strict=True))

    def _carriers(self, body: int) -> tuple[int, ...]:
        """Return the joints of the cluster that move a body, the outermost last."""
        carriers: list[int] = []
        while body in self._column:
            carriers.insert(0, body)
            body = self._robot.joints[body].parent
        return tuple(carriers)

    def _loop_rows(self, number: int, q: dict[int, float]) -> tuple[Array, Array]:
        """Return gap and Jacobian in the axes of the predecessor's frame, the loop's last."""
        loop, size, ways = self._loops[number], self._sizes[number], self._ways[number]
        first, second = (poses_along(self._robot, way, q) for way in ways)
        predecessor, successor = first[-1], second[-1]
        axes = predecessor.rotation @ rotation_between((0.0, 0.0, 1.0), loop.axis)
        twists = self._twists(ways[1].joints, second, successor)
        twists -= self._twists(ways[0].joints, first, successor)
        twists = np.concatenate([axes.T @ twists[:3], axes.T @ twists[3:] / size])
        rows = (twists * self._units)[ROWS[loop.kind]]
        return loop_gap(loop, predecessor, successor, size), rows

    def _twists(self, joints: Iterable[int], poses: Iterable[Transform], at: Transform) -> Array:
        """Return the twist, angular first, that a unit rate of each joint makes at a point."""
        twists = np.zeros((6, len(self._joints)))
        for joint, pose in zip(joints, poses, strict=False):
            data = self._robot.joints[joint]
            axis = pose.rotation @ data.axis
            arm = at.translation - pose.translation
            slides = data.kind is JointKind.PRISMATIC
            twists[:3, self._column[joint]] = 0.0 if slides else axis
            twists[3:, self._column[joint]] = axis if slides else skew(axis) @ arm
        return twists


ROWS: dict[LoopKind, list[int]] = {
    LoopKind.POINT: [3, 4, 5],
    LoopKind.HINGE: [3, 4, 5, 0, 1],
    LoopKind.SLIDER: [0, 1, 2, 3, 4],
    LoopKind.PLANAR: [5, 0, 1],
    LoopKind.WELD: [0, 1, 2, 3, 4, 5],
}
"""Rows that a kind closes, of rotation about and translation along x, y, z; z is the axis."""


def loop_gap(loop: Loop, predecessor: Transform, successor: Transform, size: float = 1.0) -> Array:
    """Return by how much the frames of a loop are off, angles first [rad, `size`]; 0 if closed."""
    basis = rotation_between((0.0, 0.0, 1.0), loop.axis)
    axes = predecessor.rotation @ basis
    between = basis.T @ (predecessor.rotation.T @ successor.rotation) @ basis
    offset = axes.T @ (successor.translation - predecessor.translation) / size
    if loop.kind in (LoopKind.HINGE, LoopKind.PLANAR):
        angles = _rotation_vector(rotation_between((0.0, 0.0, 1.0), between[:, 2]))
    else:
        angles = _rotation_vector(between)
    return np.concatenate([angles, offset])[ROWS[loop.kind]]


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


def _rotation_vector(rotation: Array) -> Array:
    """Return axis times angle of a rotation matrix, also near a half turn."""
    x, y, z, w = Transform(rotation).quaternion()
    vector = np.array([x, y, z])
    sine = float(np.linalg.norm(vector))
    return vector * (2.0 * np.arctan2(sine, w) / sine if sine > 0.0 else 2.0)


POSITION_ROUNDING = 2e-15
"""Rounding error of a position that is a sum over fixed joints, relative to its size."""
SIZE_CONFIGURATIONS = 8
"""Random configurations from which the size of a loop is taken."""
ARM_ROUNDING = 1e-12
"""Length of an arm, relative to the constant distances along a loop, below which the arm is a
rounding error."""


@dataclass(frozen=True, eq=False)
class LoopBranch:
    """The joints from the body that carries a loop to one of its ends.

    Attributes
    ----------
    joints : their indices, the carrier's child first.
    placements : the pose of each joint's frame in the body before it, then that of the loop's
        frame in the last body. The first is relative to the loop's origin: the carrier's axes at
        the first joint of the loop.
    rounding : error of lengths [m] from positions that are far from the carrier's origin.
    """

    joints: tuple[int, ...]
    placements: tuple[Transform, ...]
    rounding: float


def branches_of(robot: Mechanism, loop: Loop) -> tuple[LoopBranch, LoopBranch]:
    """Return the ways to the predecessor's and to the successor's frame."""
    first, second = (robot.path(body)[::-1] for body in (loop.predecessor, loop.successor))
    while first and second and first[0] == second[0]:
        del first[0], second[0]
    origin = robot.joints[(first or second)[0]].placement.translation
    rounding = POSITION_ROUNDING * float(np.abs(origin).max())

    def way(joints: list[int], end: Transform) -> LoopBranch:
        placements = [*(robot.joints[joint].placement for joint in joints), end]
        at = placements[0].translation - origin
        # A rounding error instead of a zero would be taken for a length.
        at[np.abs(at) <= rounding] = 0.0
        placements[0] = Transform(placements[0].rotation, at)
        return LoopBranch(tuple(joints), tuple(placements), rounding)

    return way(first, loop.predecessor_placement), way(second, loop.successor_placement)


def poses_along(robot: Mechanism, way: LoopBranch, q: Mapping[int, float]) -> list[Transform]:
    """Return the poses of the bodies on a way, then of the loop's frame, from the loop's origin.

    Parameters
    ----------
    q : position of each joint by its index [rad or m].
    """
    poses = []
    pose = Transform()
    for joint, placement in zip(way.joints, way.placements, strict=False):
        pose = pose @ placement @ robot.joints[joint].motion(q[joint])
        poses.append(pose)
    return [*poses, pose @ way.placements[-1]]


@lru_cache(maxsize=256)
def size_of(robot: Mechanism, loop: Loop) -> float:
    """Return a typical length of a loop [m]: its longest lever arm, rounded to a power of two.

    A lever arm is the distance of a joint's axis from the frame at the end of the branch; the
    largest of a few configurations counts. Without arms the size is the longest constant distance,
    or 1 m. Distances that no motion shows do not count: the place of the loop, shifts along axes,
    the zero of a slide. Lengths are exact in units of a power of two.
    """
    # A fixed seed: the same loop must always have the same size.
    random = np.random.default_rng(0)
    arms, ways = [0.0], branches_of(robot, loop)
    for way in ways:
        joints = [robot.joints[joint] for joint in way.joints]
        for _ in range(SIZE_CONFIGURATIONS):
            q = {
                i: random.uniform(-np.pi, np.pi)
                if joint.kind is JointKind.REVOLUTE
                else min(max(0.0, joint.lower), joint.upper)
                for i, joint in zip(way.joints, joints, strict=True)
            }
            *bodies, end = poses_along(robot, way, q)
            for joint, body in zip(joints, bodies, strict=True):
                if joint.kind is JointKind.REVOLUTE:
                    arm = np.cross(body.rotation @ joint.axis, end.translation - body.translation)
                    arms.append(float(np.linalg.norm(arm)))
    constant = [float(np.linalg.norm(p.translation)) for way in ways for p in way.placements]
    longest = max(arms)
    if longest <= ARM_ROUNDING * max(constant):
        longest = max(constant)
    return 2.0 ** round(math.log2(longest)) if longest > 0.0 else 1.0


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
