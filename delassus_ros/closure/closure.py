"""Positions of closed loops: from the joints that are measured to q of the spanning tree.

A four-bar closes in two ways, and mirrored it is another machine. Which one is meant is said by
a *reference configuration*; a q is an answer only if a path leads there along which the
unknown joints always follow from the measured ones.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from delassus_ros import arguments
from delassus_ros.closure.bound import BoundClosure, Plan
from delassus_ros.closure.path import ClosureStatus
from delassus_ros.closure.reference import (
    determining_joints,
    motions_of,
    reference_configuration,
)
from delassus_ros.closure.step import ClosureStep, reaches
from delassus_ros.compiler.newton import Newton, newton_for
from delassus_ros.errors import InputError, RobotError, unknown
from delassus_ros.model.clusters import clusters_of
from delassus_ros.model.robot import FROM_URDF, JointKind, Robot
from delassus_ros.model.spatial import Array
from delassus_ros.problem import Problem
from delassus_ros.rbda import constraints
from delassus_ros.solver.inputs import check_unit

_MOST_COMPILED = 64
"""Different sets of measured joints whose code is kept; a robot has a few publishers."""

__all__ = ["BoundClosure", "Closure", "ClosureResult", "ClosureStatus"]


@dataclass(frozen=True, eq=False)
class ClosureResult:
    """Positions of all joints; equal to itself alone.

    Attributes
    ----------
    q : (nq,) configuration of the spanning tree [rad, m]; NaN unless the status is valid.
    residual : largest constraint row at q, in its unit [m, sine of an angle, or of a coupling].
    status : whether q is an answer; see :class:`ClosureStatus`.
    about : the loop or joint that the status is about, with numbers; empty for OK.
    """

    q: Array
    residual: float
    status: ClosureStatus
    about: str = ""


class Closure:
    """Finds the positions of all joints of a robot with closed loops; safe to use from threads.

    Copied or pickled it becomes another one with the same arguments.

    Measured may be the independent joints, the motors, or everything. As many joints of each
    cluster as it has degrees of freedom are held, the independent ones if all of them are
    measured; the others follow by a compiled Newton iteration, and those among them that are
    measured as well are compared with the result.

    Parameters
    ----------
    robot : the robot, or a problem with it.
    reference : joint positions [rad, m] of a configuration on the branch that is meant; joints
        that are not named start at 0, or at their nearest limit, and dependent ones are moved
        to close the loops.
    tolerance : largest constraint row of a closed loop, in its unit.
    agreement : farthest that a measured dependent joint may be from where the loop puts it,
        without a warning [rad or m].
    cache : use the disk cache of compiled code.

    Raises
    ------
    RobotError
        If the robot's constraints contradict each other, or a loop does not close at the
        reference or is singular there; names it. If `robot` is no Robot, or the reference no
        mapping to numbers.
    InputError
        For a tolerance that is not positive, a negative agreement, or what is no number.
    """

    def __init__(
        self,
        robot: Robot | Problem,
        reference: Mapping[str, float] | None = None,
        tolerance: float = 1e-8,
        agreement: float = 0.02,
        cache: bool = True,
    ) -> None:
        given = robot.robot if isinstance(robot, Problem) else robot
        self._robot = arguments.instance("robot", given, Robot, FROM_URDF, RobotError)
        if not 0.0 < arguments.number("tolerance", tolerance) < np.inf:
            raise InputError(f"tolerance is {tolerance}; expected a positive number")
        if not arguments.number("agreement", agreement) >= 0.0:
            raise InputError(f"agreement is {agreement}; expected a number from 0 on")
        self._tolerance = tolerance
        self._agreement = agreement
        self._cache = cache
        positions = {} if reference is None else reference
        stated = arguments.by_joint("reference", positions, RobotError)
        self._stated = stated
        self._reference = reference_configuration(self._robot, stated, tolerance)
        self._reference.setflags(write=False)
        self._clusters = clusters_of(self._robot)
        # Here, for a control loop that asks what other joints determine has no time for it.
        self._motions = {
            number: motions_of(self._robot, cluster, self._reference)
            for number, cluster in enumerate(self._clusters)
            if not cluster.is_ordinary
        }
        self._indices = {
            joint.name: i for i, joint in enumerate(self._robot.joints) if joint.kind.nq
        }
        self._compiled: dict[tuple[int, ...], tuple[Newton, ClosureStep]] = {}
        self._lock = threading.Lock()
        self._local = threading.local()

    @property
    def robot(self) -> Robot:
        """The robot."""
        return self._robot

    @property
    def reference(self) -> Array:
        """The closed reference configuration (nq,)."""
        return self._reference

    @property
    def independent(self) -> tuple[str, ...]:
        """Names of the joints that all others follow from, in model order."""
        robot = self._robot
        chosen = sorted(joint for cluster in self._clusters for joint in cluster.independent)
        return tuple(robot.joints[joint].name for joint in chosen if robot.joints[joint].kind.nq)

    def solve(self, measured: Mapping[str, ArrayLike] | ArrayLike) -> ClosureResult:
        """Find the positions of all joints.

        Each thread, and each set of measured joints, starts from its own last result.

        Parameters
        ----------
        measured : positions by joint name [rad, m] (a list for joints with several entries in
            q), or all of q (nq,).

        Raises
        ------
        InputError
            For an unknown joint, what is not numbers, a joint with more or fewer of them than it
            has entries in q, a q of wrong shape, a quaternion that is not of unit norm, or if the
            measured joints do not determine the others; names the joint or loop.
        """
        if isinstance(measured, Mapping):
            names = arguments.names("measured joints", measured)
            parts = [
                np.ravel(arguments.numbers(f"joint {name!r}", measured[name])) for name in names
            ]
            bound = self._thread_bound(names)
            self._check_sizes(names, parts)
            values = np.concatenate([np.zeros(0), *parts])
        else:
            names = self._robot.joint_names
            values = arguments.numbers("measured", measured, "positions by joint, or all of q")
            bound = self._thread_bound(names)
            if values.shape != bound.measured.shape:
                raise InputError(
                    f"measured has shape {values.shape}, expected {bound.measured.shape}: one "
                    f"number for each entry of q of the joints {', '.join(names)}"
                )
        self._check_quaternions(names, values)
        bound.measured[...] = values
        status = bound.solve()
        return ClosureResult(bound.q.copy(), bound.residual, status, bound.about)

    def bind(self, names: Iterable[str]) -> BoundClosure:
        """Return a closure with buffers of its own for these measured joints, in this order.

        Raises
        ------
        InputError
            For what is no list of names, an unknown joint or one given twice, or if the joints
            do not determine the others; names the loop.
        """
        joints = self._joints(arguments.names("measured joints", names))
        given = self._given(joints)
        moved = tuple(
            joint for cluster in self._clusters for joint in cluster.joints if joint not in given
        )
        # Whoever asks for what there is does not wait for a thread that compiles.
        newton, step = self._compiled.get(moved) or self._code(moved)
        return BoundClosure(newton, step, self._plan(joints, given))

    def check(self, names: Iterable[str]) -> None:
        """Raise what :meth:`bind` has to say against these measured joints; compiles nothing.

        Raises
        ------
        InputError
            As that.
        """
        self._given(self._joints(arguments.names("measured joints", names)))

    def __reduce__(self) -> tuple[type[Closure], tuple[object, ...]]:
        """Pickle by the arguments of the constructor: machine code stays in its process."""
        given = self._robot, self._stated, self._tolerance, self._agreement, self._cache
        return type(self), given

    def _code(self, moved: tuple[int, ...]) -> tuple[Newton, ClosureStep]:
        """Return what moves these joints, compiled unless another thread has done so meanwhile."""
        with self._lock:
            found = self._compiled.get(moved)
            if found is None:
                step = ClosureStep(self._robot, moved, self._reference)
                found = newton_for(step, self._cache), step
                if len(self._compiled) >= _MOST_COMPILED:
                    del self._compiled[next(iter(self._compiled))]
                self._compiled[moved] = found
        return found

    def _check_sizes(self, names: Sequence[str], parts: Sequence[Array]) -> None:
        """Refuse joints measured with more or fewer numbers than their entries of q."""
        for name, part in zip(names, parts, strict=True):
            expected = self._robot.joints[self._indices[name]].kind.nq
            if part.size != expected:
                plural = "" if part.size == 1 else "s"
                raise InputError(
                    f"joint {name!r} is measured with {part.size} number{plural}, expected "
                    f"{expected}: its entries of q"
                )

    def _check_quaternions(self, names: Sequence[str], values: Array) -> None:
        """Refuse floating joints whose quaternions are not of unit norm."""
        start = 0
        for name in names:
            kind = self._robot.joints[self._indices[name]].kind
            if kind is JointKind.FLOATING:
                check_unit(f"joint {name!r}", values[start + 3 : start + 7, np.newaxis], "")
            start += kind.nq

    def _joints(self, names: tuple[str, ...]) -> list[int]:
        for name in names:
            if name not in self._indices:
                raise InputError(unknown("joint", name, self._indices))
        twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
        if twice is not None:
            raise InputError(f"joint {twice!r} is measured more than once")
        return [self._indices[name] for name in names]

    def _given(self, measured: Sequence[int]) -> set[int]:
        """Return the measured joints that are held; all of the others follow from them."""
        robot = self._robot
        given: set[int] = set()
        free = [cluster.joints[0] for cluster in self._clusters if cluster.is_ordinary]
        missing = [
            repr(robot.joints[joint].name)
            for joint in free
            if robot.joints[joint].kind.nq and joint not in measured
        ]
        if missing:
            what = "joint" if len(missing) == 1 else "joints"
            are = "is" if len(missing) == 1 else "are"
            raise InputError(f"{what} {', '.join(missing)} {are} in no loop and must be measured")
        given.update(free)
        for number, cluster in enumerate(self._clusters):
            if not cluster.is_ordinary:
                motions = self._motions[number]
                given.update(determining_joints(robot, cluster, measured, motions))
        return given

    def _plan(self, joints: Sequence[int], given: set[int]) -> Plan:
        robot, entries = self._robot, self._entries
        slots = [entry for joint in joints for entry in entries(joint)]
        held = {entry for joint in given for entry in entries(joint)}
        owner = {entry: i for i in range(len(robot.joints)) for entry in entries(i)}
        data = [robot.joints[owner[entry]] for entry in range(robot.nq)]
        # A whole turn of one of these is another configuration.
        tied = {name for each in robot.couplings for name, _ in each.ratios}
        tied.update(name for each in robot.functions for name in each.tied)
        revolving = [j.kind is JointKind.REVOLUTE and j.name not in tied for j in data]
        endless = [j.lower == -np.inf and j.upper == np.inf for j in data]
        chosen = [k for k, slot in enumerate(slots) if slot in held]
        far = reaches(robot, given, self._reference)
        return Plan(
            names=[joint.name for joint in data],
            slots=slots,
            given=chosen,
            reach=np.array([far[owner[slots[k]]] for k in chosen]),
            turning=np.array(revolving) & np.array(endless),
            revolving=np.array(revolving),
            lower=np.array([joint.lower for joint in data]),
            upper=np.array([joint.upper for joint in data]),
            clusters=[
                ([e for joint in each.joints for e in entries(joint)], constraints.described(each))
                for each in self._clusters
                if not each.is_ordinary
            ],
            reference=self._reference,
            tolerance=self._tolerance,
            agreement=self._agreement,
        )

    def _entries(self, joint: int) -> range:
        first = self._robot.q_offsets[joint]
        return range(first, first + self._robot.joints[joint].kind.nq)

    def _thread_bound(self, names: tuple[str, ...]) -> BoundClosure:
        bounds: dict[tuple[str, ...], BoundClosure] | None
        bounds = getattr(self._local, "bounds", None)
        if bounds is None:
            bounds = self._local.bounds = {}
        if names not in bounds:
            bounds[names] = self.bind(names)
        return bounds[names]
