"""Matrices at requested configurations: computations of the services, without rclpy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from delassus.conditioning.monitor import (
    ConditionMonitor,
    ConditionSettings,
    Damping,
    Examination,
)
from delassus.dynamics import GRAVITY
from delassus.errors import InputError
from delassus.model.spatial import Array
from delassus.solver.inputs import check_unit
from delassus.solver.solution import Solution
from delassus.solver.solver import DelassusSolver
from delassus_ros.inputs.closed_joints import BoundClosures, finding_of
from delassus_ros.inputs.findings import Finding, Findings, Reason, Validity
from delassus_ros.inputs.joint_names import JointNames, missing, size_mismatch
from delassus_ros.inputs.motion import MotionPorts
from delassus_ros.inputs.quaternions import Quaternion

Places = Mapping[str, Mapping[str, Sequence[float]]]
"""By name of the solver's input: positions [m] or quaternions by name of the contact."""


@dataclass(frozen=True)
class Answer:
    """Answer to a request for a matrix, with the exact condition and the findings."""

    solution: Solution
    examination: Examination
    findings: Findings


@dataclass(frozen=True)
class Motion:
    """Motion of a robot in a request.

    Attributes
    ----------
    velocities, torques : velocities [rad/s, m/s] and torques [N·m, N] of the joints of the
        request; empty for zeros.
    twist : (6,) twist of a floating base's root link in the link's axes, linear part first.
    orientation : unit quaternion x, y, z, w of the root link.
    """

    velocities: ArrayLike
    torques: ArrayLike
    twist: Sequence[float]
    orientation: Quaternion

    @classmethod
    def of(cls, velocities: ArrayLike, torques: ArrayLike, twist: Any, orientation: Any) -> Motion:
        """Return a motion from a geometry_msgs/Twist and a geometry_msgs/Quaternion."""
        v, w, o = twist.linear, twist.angular, orientation
        return cls(velocities, torques, (v.x, v.y, v.z, w.x, w.y, w.z), (o.x, o.y, o.z, o.w))


def _by_joint(what: str, numbers: ArrayLike, found: JointNames) -> Array:
    """Return the numbers of the robot's joints among the named joints; zeros if empty."""
    values = np.asarray(numbers, dtype=np.float64)
    if values.size not in (0, found.count):
        raise InputError(f"there are {found.count} joints but {values.size} {what}")
    return values[found.places] if values.size else np.zeros(len(found.places))


class OnDemand:
    """Computes matrices at requested configurations.

    Parameters
    ----------
    structural : matrices of all contacts at generic configurations; see
        :class:`~delassus.conditioning.monitor.ConditionMonitor`.
    settings : thresholds; the damping is not applied.
    closures : compute the joints that a request leaves out, for a robot with couplings or loops;
        no other thread or object may use them.
    gravity : (3,) gravity in the axes of the world [m/s²].
    """

    def __init__(
        self,
        solver: DelassusSolver,
        structural: Array,
        settings: ConditionSettings,
        closures: BoundClosures | None = None,
        gravity: Sequence[float] = GRAVITY,
    ) -> None:
        self._solver = solver
        self._closures = closures
        self._joints = solver.problem.robot.joint_names
        self._latest = JointNames((), self._joints)
        self._ports = MotionPorts(solver.problem, gravity)
        self._turns_rows = any(port.name == "base_orientation" for port in solver.problem.inputs)
        # Without hysteresis: requested configurations are not successive states.
        plain = ConditionSettings(
            settings.characteristic_length, settings.weak, settings.singular, hysteresis=1.0,
            damping=Damping.NONE,
        )  # fmt: skip
        self._monitor = ConditionMonitor(solver.problem, structural, plain)

    def compute(
        self,
        names: Sequence[str],
        positions: ArrayLike,
        active: Iterable[str],
        motion: Motion | None = None,
        places: Places | None = None,
    ) -> Answer:
        """Return the matrix with its condition.

        Parameters
        ----------
        names, positions : joints in any order, and their positions [rad, m]: all joints, or, with
            couplings or loops, joints from which the remaining ones follow. Joints that the robot
            lacks are ignored.
        motion : motion of the robot; those parts are ignored that neither rows nor outputs need.
        places : contact_positions and contact_orientations of
            :meth:`~delassus.solver.solver.DelassusSolver.solve`; contacts left out are where
            the problem has them.

        Raises
        ------
        InputError
            If a joint is missing or listed twice, numbers are missing or not finite, a contact
            is unknown, the orientation is missing or no unit quaternion, or no positions of the
            other joints close the loops on the branch of the reference.
        NumericalError
            If the matrix cannot be computed at this configuration.
        """
        q, finding = self._q(names, np.asarray(positions, dtype=np.float64).ravel())
        wanted = list(active)
        more: dict[str, Any] = {} if motion is None else self._moving(names, q, motion)
        more |= {name: values for name, values in (places or {}).items() if values}
        if motion is not None and self._turns_rows:
            more["base_orientation"] = motion.orientation
        solution = self._solver.solve(q, wanted, **more)
        self._monitor.activate(wanted)
        seen = self._monitor.examine(solution.matrix)
        findings = Findings()
        if finding is not None:
            findings.add(finding.reason, finding.text, Validity.DEGRADED)
        if self._solver.is_approximate:
            findings.add(Reason.APPROXIMATE_ALGORITHM, "", Validity.DEGRADED)
        if seen.conditioning >= seen.conditioning.WEAK:
            findings.add(Reason.ILL_CONDITIONED, "", Validity.OK)
        return Answer(solution, seen, findings)

    def _places(self, names: Sequence[str]) -> JointNames:
        """Return the places of the joints; fastest if it is the same list object as before."""
        if names is not self._latest.names:
            self._latest = JointNames(names, self._joints)
        return self._latest

    def _moving(self, names: Sequence[str], q: Array, motion: Motion) -> dict[str, Any]:
        """Return those of rates, torques and gravity that the outputs need."""
        ports = self._ports
        if not ports.needed:
            return {}
        found = self._places(names)
        velocities = _by_joint("velocities", motion.velocities, found)
        efforts = _by_joint("torques", motion.torques, found)
        rates = ports.rates(found.joints, velocities, q)
        torques = ports.torques(found.joints, efforts, q)
        if ports.first:
            rates = np.concatenate([motion.twist, rates])
            torques = np.concatenate([np.zeros(ports.first), torques])
        if ports.turns_gravity:
            check_unit("base_orientation", np.reshape(motion.orientation, (4, 1)), "")
        gravity = np.array(ports.gravity(motion.orientation))
        values = {"rates": rates, "torques": torques, "gravity": gravity}
        return {name: values[name] for name in ports.needed}

    def _q(self, names: Sequence[str], positions: Array) -> tuple[Array, Finding | None]:
        """Return the positions of all joints, and the finding about them, if any."""
        found = self._places(names)
        if found.refusal is not None:
            raise InputError(found.refusal.text)
        if positions.size != found.count:
            raise InputError(size_mismatch(names, positions.size).text)
        if self._closures is None and not found.is_complete:
            raise InputError(missing(names, self._joints).text)
        measured = positions[found.places]
        if not np.isfinite(measured).all():
            raise InputError(found.not_finite(measured).text)
        if self._closures is None:
            return measured, None
        bound = self._closures.of(found.joints)
        # The answer must not depend on earlier requests.
        bound.reset()
        bound.measured[...] = measured
        status = bound.solve()
        finding = finding_of(bound, status)
        if finding is not None and not status.is_valid:
            raise InputError(finding.text)
        return bound.q.copy(), finding
