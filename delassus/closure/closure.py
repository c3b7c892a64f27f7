"""Positions of closed loops: from measured joints to q of the spanning tree.

A four-bar closes in two ways, and the mirrored closure is another machine. A *reference
configuration* selects the branch: a q is a result only if a path leads from the reference to q
along which the measured joints always determine the unknown joints.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from delassus import arguments
from delassus.closure.bound import BoundClosure
from delassus.closure.path import ClosureStatus
from delassus.closure.plan import Plan, held_joints, motions_of
from delassus.closure.reference import reference_configuration
from delassus.closure.step import ClosureStep
from delassus.compiler.newton import Newton, newton_for
from delassus.errors import InputError, RobotError
from delassus.model.clusters import clusters_of
from delassus.model.robot import FROM_URDF, JointKind, Robot
from delassus.model.spatial import Array
from delassus.problem import Problem
from delassus.recent import Recent
from delassus.solver.inputs import check_unit

_MOST_COMPILED = 64
"""Number of sets of measured joints whose code is cached; a robot has a few publishers."""

__all__ = ["BoundClosure", "Closure", "ClosureResult", "ClosureStatus"]


@dataclass(frozen=True, eq=False)
class ClosureResult:
    """Positions of all joints; compared by identity.

    Attributes
    ----------
    q : (nq,) configuration of the spanning tree [rad, m]; NaN unless the status is valid.
    residual : largest constraint row at q, in its unit [m, sine of an angle, or of a coupling].
    status : whether q is valid; see :class:`ClosureStatus`.
    about : loop or joint at fault, with numbers; empty for OK.
    """

    q: Array
    residual: float
    status: ClosureStatus
    about: str = ""


class Closure:
    """Computes the positions of all joints of a robot with closed loops; thread-safe.

    A copied or pickled closure is constructed anew with the same arguments.

    Measured joints may be the independent joints, the motors, or all joints. Per cluster, as many
    measured joints as degrees of freedom are held, the independent joints if all of them are
    measured; the remaining joints follow by a compiled Newton iteration, and remaining joints that
    are measured are compared with the result.

    Parameters
    ----------
    robot : the robot, or a problem with it; loops that are closed by rows count as well.
    reference : joint positions [rad, m] of a configuration on the desired branch; joints that
        are not named start at 0, or at their nearest limit, and dependent joints are moved to
        close the loops.
    tolerance : largest constraint row of a closed loop, in its unit.
    agreement : largest distance of a measured dependent joint from its computed position without
        a warning [rad or m].
    cache : use the disk cache of compiled code.

    Raises
    ------
    RobotError
        If the robot's constraints contradict each other, or a loop does not close at the
        reference or is singular there; names the loop. If `robot` is no Robot, or the reference
        no mapping to numbers.
    InputError
        For a tolerance that is not positive, a negative agreement, or values that are no numbers.
    """

    def __init__(
        self,
        robot: Robot | Problem,
        reference: Mapping[str, float] | None = None,
        tolerance: float = 1e-8,
        agreement: float = 0.02,
        cache: bool = True,
    ) -> None:
        candidate = robot.robot if isinstance(robot, Problem) else robot
        self._robot = arguments.instance(
            "robot", candidate, Robot, FROM_URDF, RobotError
        ).clustered
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
        # Computed here, since control loops that bind other joints have no time for it.
        self._motions = {
            number: motions_of(cluster, self._reference)
            for number, cluster in enumerate(self._clusters)
            if not cluster.is_ordinary
        }
        self._indices = {
            joint.name: i for i, joint in enumerate(self._robot.joints) if joint.kind.nq
        }
        self._compiled: Recent[tuple[int, ...], tuple[Newton, ClosureStep]] = Recent(
            _MOST_COMPILED
        )
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
    def stated(self) -> Mapping[str, float]:
        """Positions of the reference that were stated, by joint name [rad, m]."""
        return self._stated

    @property
    def independent(self) -> tuple[str, ...]:
        """Names of the joints that determine all other joints, in model order."""
        robot = self._robot
        chosen = sorted(joint for cluster in self._clusters for joint in cluster.independent)
        return tuple(robot.joints[joint].name for joint in chosen if robot.joints[joint].kind.nq)

    def solve(self, measured: Mapping[str, ArrayLike] | ArrayLike) -> ClosureResult:
        """Compute the positions of all joints.

        The iteration starts from the last result of the calling thread for the same set of
        measured joints.

        Parameters
        ----------
        measured : positions by joint name [rad, m] (a list for joints with several entries in
            q), or all of q (nq,).

        Raises
        ------
        InputError
            For an unknown joint, values that are no numbers, a joint with more or fewer values
            than entries in q, a q of wrong shape, a quaternion that is not of unit norm, or if the
            measured joints do not determine the remaining joints; names the joint or loop.
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
        """Return a closure with separate buffers for these measured joints, in this order.

        Raises
        ------
        InputError
            If `names` is no list of names, a joint is unknown or named twice, or the joints do not
            determine the remaining joints; names the loop.
        """
        joints = self._joints(arguments.names("measured joints", names))
        held = held_joints(self._robot, joints, self._motions)
        moved = tuple(
            joint for cluster in self._clusters for joint in cluster.joints if joint not in held
        )
        # Compiled code is returned without waiting for a thread that compiles other code.
        newton, step = self._compiled.get(moved) or self._code(moved)
        plan = Plan(self._robot, joints, held, self._reference, self._tolerance, self._agreement)
        return BoundClosure(newton, step, plan)

    def check(self, names: Iterable[str]) -> None:
        """Raise the errors of :meth:`bind` for these measured joints, without compiling.

        Raises
        ------
        InputError
            As for :meth:`bind`.
        """
        joints = self._joints(arguments.names("measured joints", names))
        held_joints(self._robot, joints, self._motions)

    def __reduce__(self) -> tuple[type[Closure], tuple[object, ...]]:
        """Pickle by the arguments of the constructor; machine code is not pickled."""
        parameters = self._robot, self._stated, self._tolerance, self._agreement, self._cache
        return type(self), parameters

    def _code(self, moved: tuple[int, ...]) -> tuple[Newton, ClosureStep]:
        """Return the iteration that moves these joints, compiled unless another thread did."""
        with self._lock:
            found = self._compiled.get(moved)
            if found is None:
                step = ClosureStep(self._robot, moved, self._reference)
                found = newton_for(step, self._cache), step
                self._compiled.put(moved, found)
        return found

    def _check_sizes(self, names: Sequence[str], parts: Sequence[Array]) -> None:
        """Refuse joints measured with more or fewer numbers than entries of q."""
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
                raise InputError(self._robot.unknown_joint(name))
        twice = next((name for k, name in enumerate(names) if name in names[:k]), None)
        if twice is not None:
            raise InputError(f"joint {twice!r} is measured more than once")
        return [self._indices[name] for name in names]

    def _thread_bound(self, names: tuple[str, ...]) -> BoundClosure:
        bounds: dict[tuple[str, ...], BoundClosure] | None
        bounds = getattr(self._local, "bounds", None)
        if bounds is None:
            bounds = self._local.bounds = {}
        if names not in bounds:
            bounds[names] = self.bind(names)
        return bounds[names]
