"""D(q) d + b(q, ẏ) = 0: the equations of motion of a robot as one sparse linear system.

F. Nori, "Inverse, forward and other dynamic computations computationally optimized with sparse
matrix factorizations", equation (6) with its blocks (5), extended by rotor inertias, floating
bases, couplings and loops. Per link i, in the frames of :mod:`delassus.rbda.tree`, equations
(3a), (3f) and (3τ) are

    a_i − X_i a_p − S_i q̈_i = c_i
    f_i − H_i a_i − Σ X_jᵀ f_j + Σ K_eᵀ w_e = p_i
    τ + Eᵀ τ_p − Eᵀ (Sᵀ f + A q̈) = 0,    q̈ = E ÿ + γ

with accelerations a less that of gravity and velocity products c, γ and p; w are the external
wrenches on frames, K_e maps the link's twist to the frame's. Springs and dampers have the torques
τ_p, and forces of gravity compensation are part of p; τ are torques of motors. The unknowns d are
a, f, τ of all links and joints, and ÿ and w, which determine them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from delassus.errors import ProblemError
from delassus.measured.quantities import (
    Accelerometer,
    ExternalWrench,
    ForceTorqueSensor,
    JointAcceleration,
    JointTorque,
    Quantity,
    Resting,
)
from delassus.model.robot import WORLD, Robot
from delassus.rbda.cluster_motion import ClusterMotion
from delassus.rbda.passive import compensation_forces, joint_torques
from delassus.rbda.robot_tree import RobotTree
from delassus.rbda.spatial import JointTransform, SpatialInertia, cross
from delassus.rbda.tree import Link
from delassus.rbda.trees import spanning_tree
from delassus.rbda.velocities import force_on_body, motion_of_link
from delassus.scalars.functions import (
    Matrix,
    Scalar,
    Vector,
    dot,
    identity,
    is_zero,
    plus,
    transpose,
)
from delassus.scalars.ports import Inputs

Rows: TypeAlias = "list[dict[int, Scalar]]"


@dataclass(frozen=True)
class Columns:
    """Indices of the unknowns in d.

    Attributes
    ----------
    a, f : per link, the first of six indices.
    torques, accelerations : indices of τ and ÿ by independent rate.
    wrenches : per frame, the first of six indices.
    size : size of d.
    """

    a: list[int]
    f: list[int]
    torques: list[int]
    accelerations: list[int]
    wrenches: list[int]

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return 12 * len(self.a) + 2 * len(self.torques) + 6 * len(self.wrenches)

    @property
    def free(self) -> list[int]:
        """Columns of ÿ and w, which determine all other unknowns."""
        return [*self.accelerations, *(k + row for k in self.wrenches for row in range(6))]


class Equation(NamedTuple):
    """Σ row_k d_k + constant: a row of D d + b (zero), or of Y d + y₀ (a sensor's reading)."""

    row: dict[int, Scalar]
    constant: Scalar


class Between(NamedTuple):
    """A component of motion or force after a turn or shift between two links.

    Attributes
    ----------
    node : number of this place on the way from the link to its parent.
    equation : the component in terms of previous unknowns; the component has factor −1.
    """

    node: int
    unknown: int
    equation: Equation


class Factored(NamedTuple):
    """The system with unknowns between links.

    Attributes
    ----------
    equations : rows of D d + b = 0.
    between : equations of the unknowns between links.
    parents : per place (links, then places between links), the next place towards the root.
    """

    equations: list[Equation]
    between: list[Between]
    parents: list[int]


class System:
    """The system of a robot.

    Parameters
    ----------
    robot : any robot without floating joints inside the tree.
    quantities : known or wanted quantities; external wrenches act on the frames of
        ExternalWrench and Resting.

    Attributes
    ----------
    spanning : tree and independent rates; inertia that a joint cannot feel is moved to the parent,
        unless a sensor inside the tree measures its effect.
    columns : columns of d.
    frames : frames with unknown wrenches.
    owners : per unknown of d, the link of the unknown; for τ and ÿ the first link of the joint.
    """

    def __init__(self, robot: Robot, quantities: Sequence[Quantity]) -> None:
        outside = [q.frame for q in quantities if isinstance(q, ExternalWrench | Resting)]
        others = [q.frame for q in quantities if isinstance(q, Accelerometer | ForceTorqueSensor)]
        inside = any(isinstance(q, ForceTorqueSensor) for q in quantities)
        self.frames = tuple(dict.fromkeys(outside))
        every = tuple(dict.fromkeys([*outside, *others]))
        self.spanning = RobotTree(robot, every, partial(spanning_tree, regrouped=not inside))
        links, n = self.spanning.tree.links, self.spanning.size
        N, F = len(links), len(self.frames)
        self.columns = Columns(
            [6 * i for i in range(N)],
            [6 * (N + i) for i in range(N)],
            list(range(12 * N, 12 * N + n)),
            list(range(12 * N + n, 12 * N + 2 * n)),
            [12 * N + 2 * n + 6 * e for e in range(F)],
        )
        # Per frame: the link and rows K.
        self._places = {
            every[index]: (i, K) for i, link in enumerate(links) for index, K in link.wrenches
        }
        self.owners = self._owners()

    @property
    def rows(self) -> int:
        """Number of equations D d + b = 0."""
        return 12 * len(self.columns.a) + self.spanning.size

    @property
    def owners_of_rows(self) -> list[int]:
        """The link of every equation."""
        return self.owners[: self.rows]

    def size_of(self, quantity: Quantity) -> int:
        """Return the number of components of a quantity."""
        if isinstance(quantity, JointTorque | JointAcceleration):
            return len(self.spanning.columns_by_joint[quantity.joint])
        return 3 if isinstance(quantity, Accelerometer) else len(quantity.rows)

    def check_sensor(self, sensor: ForceTorqueSensor) -> None:
        """Refuse a sensor whose wrench is not among the unknowns.

        Raises
        ------
        ProblemError
            If the sensor is on a floating base, or on a link of a loop or coupling; names the
            frame.
        """
        i, _ = self._places[sensor.frame]
        link = self.spanning.tree.links[i]
        coupled = any(i in cluster.links for cluster in self.spanning.tree.clusters)
        if coupled or link.motion == "free":
            where = (
                f"a link of a loop or coupling (joint {link.name!r})" if coupled else "the base"
            )
            raise ProblemError(
                f"the force and torque sensor at {sensor.frame!r} is on {where}; expected a link "
                "with a joint outside loops and couplings"
            )

    def _owners(self) -> list[int]:
        at, spanning = self.columns, self.spanning
        owners = [k // 6 for k in range(6 * len(at.a))] * 2 + [0] * (at.size - 12 * len(at.a))
        for joint in spanning.tree.joints:
            for k in spanning.velocities.columns[joint.i]:
                owners[at.torques[k]] = owners[at.accelerations[k]] = joint.i
        for frame, first in zip(self.frames, at.wrenches, strict=True):
            owners[first : first + 6] = [self._places[frame][0]] * 6
        return owners

    def at(self, x: Inputs) -> Instant:
        """Return the system at ``q``, ``rates`` and ``gravity``, as for forward dynamics."""
        return Instant(self, self.spanning.motion(x))

    def place(self, frame: str) -> tuple[int, Matrix]:
        """Return a frame's link and (6, 6) link twist, angular first → twist, linear first."""
        return self._places[frame]


class Instant:
    """The system of a robot at an instant.

    Attributes
    ----------
    motion : motion of the links at these positions and rates.
    """

    def __init__(self, system: System, motion: ClusterMotion) -> None:
        self._system, self.motion = system, motion

    def equations(self) -> list[Equation]:
        """Return the rows of D d + b = 0, (6): per link (3a) and (3f), then (3τ)."""
        return self._equations(_Products(self._system))

    def factored(self, first: int) -> Factored:
        """Return the system with additional unknowns between links, numbered from `first`."""
        stages = _Stages(self._system, first)
        return Factored(self._equations(stages), stages.between, stages.parents)

    def _equations(self, way: _Products | _Stages) -> list[Equation]:
        at, tree = self._system.columns, self._system.spanning.tree
        motion, n = self.motion, self._system.spanning.size
        accelerations: list[list[Equation]] = []
        forces: list[list[Equation]] = []
        passive, held = joint_torques(motion.problem, motion.x), compensation_forces(motion)
        torques = [Equation({at.torques[k]: 1.0}, passive.get(k, 0.0)) for k in range(n)]
        for i, link in enumerate(tree.links):
            inertia = SpatialInertia.of(link)
            own = [{at.a[i] + k: 1.0} for k in range(6)]
            force = [{at.f[i] + k: 1.0} for k in range(6)]
            _add(force, range(at.a[i], at.a[i] + 6), inertia.matrix(), -1.0)
            if link.motion == "free":
                base = range(at.accelerations[0], at.accelerations[0] + 6)
                _add(own, base, _matrix(motion_of_link, link), -1.0)
                c = _minus([0.0] * 3 + motion.gravity[i])
                rows = [torque.row for torque in torques[:6]]
                _add(rows, range(at.f[i], at.f[i] + 6), _matrix(force_on_body, link), -1.0)
            else:
                c = motion.c[i]
                self._joint(i, own, torques)
                if link.parent == WORLD:
                    c = plus(motion.transforms[i].motion_to_child(motion.ground), c)
                else:
                    above = [equation.row for equation in forces[link.parent]]
                    way.connect(i, motion.transforms[i], own, above)
            accelerations.append([Equation(*pair) for pair in zip(own, _minus(c), strict=True)])
            bias = _minus(motion.gyroscopic_force(i))
            bias = plus(bias, held[i]) if i in held else bias
            forces.append([Equation(*pair) for pair in zip(force, bias, strict=True)])
        for frame, first in zip(self._system.frames, at.wrenches, strict=True):
            i, K = self._system.place(frame)
            rows = [equation.row for equation in forces[i]]
            _add(rows, range(first, first + 6), transpose(K), 1.0)
        return [*(e for rows in (*accelerations, *forces) for e in rows), *torques]

    def _joint(self, i: int, own: Rows, torques: list[Equation]) -> None:
        """Add the joint's acceleration to that of link i, and the link's force to the torques."""
        at, motion = self._system.columns, self.motion
        link, factors = self._system.spanning.tree.links[i], motion.rows[i]
        for k, factor in factors.items():
            own[link.freedom][at.accelerations[k]] = -factor
            row, constant = torques[k]
            row[at.f[i] + link.freedom] = -factor
            for j, other in factors.items():
                reflected = factor * link.armature * other
                row[at.accelerations[j]] = row.get(at.accelerations[j], 0.0) - reflected
            torques[k] = Equation(row, constant - factor * link.armature * motion.gamma[i])

    def reading(self, quantity: Quantity) -> list[Equation]:
        """Return a quantity in terms of d."""
        system, at = self._system, self._system.columns
        if isinstance(quantity, Accelerometer):
            return self._specific_force(quantity.frame)
        if isinstance(quantity, Resting):
            i, K = system.place(quantity.frame)
            gravity = [dot(row[3:], self.motion.gravity[i]) for row in K]
            return [Equation(_nonzero(at.a[i], K[row]), gravity[row]) for row in quantity.rows]
        if isinstance(quantity, ForceTorqueSensor):
            i, K = system.place(quantity.frame)
            # A wrench w on the frame is Kᵀ w on the link; K of a frame is regular and constant.
            back = np.linalg.inv(np.array(K, dtype=float)).T
            return [Equation(_nonzero(at.f[i], back[row].tolist()), 0.0) for row in quantity.rows]
        if isinstance(quantity, ExternalWrench):
            first = at.wrenches[system.frames.index(quantity.frame)]
            return [Equation({first + row: 1.0}, 0.0) for row in quantity.rows]
        own = at.torques if isinstance(quantity, JointTorque) else at.accelerations
        columns = system.spanning.columns_by_joint[quantity.joint]
        return [Equation({own[k]: 1.0}, 0.0) for k in columns]

    def _specific_force(self, frame: str) -> list[Equation]:
        i, K = self._system.place(frame)
        twist = [dot(row, self.motion.v[i]) for row in K]
        # The acceleration of a material point is larger than the spatial one by ω × v.
        turning = cross(twist[3:], twist[:3])
        a = self._system.columns.a[i]
        return [Equation(_nonzero(a, K[row]), turning[row]) for row in range(3)]


class _Products:
    """Links and their parents connected by whole transforms."""

    def __init__(self, system: System) -> None:
        self._columns = system.columns
        self._parents = [link.parent for link in system.spanning.tree.links]

    def connect(self, i: int, transform: JointTransform, own: Rows, above: Rows) -> None:
        """Add the parent's acceleration to that of link i, and i's force to its parent's."""
        a, f = self._columns.a[self._parents[i]], self._columns.f[i]
        units = identity(6)
        X = transpose([transform.motion_to_child(unit) for unit in units])
        _add(own, range(a, a + 6), X, -1.0)
        back = transpose([transform.force_to_parent(unit) for unit in units])
        _add(above, range(f, f + 6), back, -1.0)


class _Stages:
    """Links and their parents connected by turns and shifts, with unknowns between them."""

    def __init__(self, system: System, first: int) -> None:
        self._columns = system.columns
        self._links = system.spanning.tree.links
        self._unknown = first
        self.between: list[Between] = []
        self.parents = [WORLD] * len(self._links)

    def connect(self, i: int, transform: JointTransform, own: Rows, above: Rows) -> None:
        """Add the parent's acceleration to that of link i, and i's force to its parent's."""
        a, f = self._columns.a[self._links[i].parent], self._columns.f[i]
        *first, last = transform.motion_stages()
        nodes = list(range(len(self.parents), len(self.parents) + len(first)))
        self.parents += [self._links[i].parent, *nodes][: len(first)]
        self.parents[i] = nodes[-1] if nodes else self._links[i].parent
        motion, force = list(range(a, a + 6)), list(range(f, f + 6))
        for node, stage in zip(nodes, first, strict=True):
            motion = self._through(node, stage, motion)
        _add(own, motion, last, -1.0)
        for node, stage in zip(reversed(nodes), reversed([*first, last][1:]), strict=True):
            force = self._through(node, transpose(stage), force)
        _add(above, force, transpose(first[0] if first else last), -1.0)

    def _through(self, node: int, stage: Matrix, before: list[int]) -> list[int]:
        """Return the unknowns after a stage; unchanged components keep their unknowns."""
        after = []
        for k, row in enumerate(stage):
            kept = row[k]
            if sum(map(is_zero, row)) == 5 and type(kept) is float and kept == 1.0:
                after.append(before[k])
                continue
            equation = Equation({self._unknown: -1.0}, 0.0)
            _add([equation.row], before, [row], 1.0)
            self.between.append(Between(node, self._unknown, equation))
            after.append(self._unknown)
            self._unknown += 1
        return after


def _minus(values: Vector) -> Vector:
    return [-value for value in values]


def _nonzero(first: int, row: Sequence[Scalar]) -> dict[int, Scalar]:
    return {first + k: value for k, value in enumerate(row) if not is_zero(value)}


def _add(rows: Rows, columns: Sequence[int], block: Matrix, sign: float) -> None:
    """Set columns of rows to a block times `sign`."""
    for row, values in zip(rows, block, strict=True):
        for column, value in zip(columns, values, strict=True):
            if not is_zero(value):
                row[column] = sign * value


def _matrix(function: Callable[[Link, Vector], Vector], link: Link) -> Matrix:
    """Return the matrix of a linear function of six numbers of a link."""
    return transpose([function(link, unit) for unit in identity(6)])
