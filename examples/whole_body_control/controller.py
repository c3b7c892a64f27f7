"""From a state and the matrices of the same instant to torques, 500 times a second."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pinocchio as pin
from control.kinematics import Kinematics, State
from control.prediction import predicted
from control.program import UnsolvedError
from control.standing import Command

from .gait import LEGS, TIMETABLE, Act, Plan, Walk
from .qp import Wanted, Weights, reduced

Array = npt.NDArray[np.float64]
_GRAVITY = 9.81


@dataclass(frozen=True)
class Rows:
    """Outputs of delassus_node at an instant, with all contacts, world axes and no torques.

    Attributes
    ----------
    G : (18, 18).
    a0 : (18,) free accelerations.
    response : (6 + n, 18) M⁻¹ Jᵀ.
    """

    G: Array
    a0: Array
    response: Array


@dataclass(frozen=True)
class Gains:
    """Stiffness and damping of the tasks, per axis where they have three [1/s²], [1/s]."""

    position: Array = field(default_factory=lambda: np.array([40.0, 40.0, 120.0]))
    velocity: Array = field(default_factory=lambda: np.array([12.0, 12.0, 22.0]))
    rotation: Array = field(default_factory=lambda: np.array([180.0, 180.0, 80.0]))
    spin: Array = field(default_factory=lambda: np.array([26.0, 26.0, 18.0]))
    swing: tuple[float, float] = (500.0, 40.0)
    stance: float = 5.0
    """Damping of feet that stand, whose velocity is to be zero [1/s]."""
    fallback: float = 2.0
    """Of joints where there are no forces to be had [N m s/rad]."""


class Controller:
    """Walks by a timetable.

    Parameters
    ----------
    urdf : text of the description of a quadruped with feet LF_FOOT, RF_FOOT, LH_FOOT, RH_FOOT.
    joints : names of the joints in the order of q and torques.
    limits : largest torques (n,) [N m].
    acts : the timetable.
    gains, weights : of the tasks.
    solver : of qpsolvers.
    """

    def __init__(
        self,
        urdf: str,
        joints: Sequence[str],
        limits: Array,
        acts: Sequence[Act] = TIMETABLE,
        gains: Gains | None = None,
        weights: Weights | None = None,
        solver: str = "daqp",
    ) -> None:
        self.kinematics = Kinematics(urdf, [f"{leg}_FOOT" for leg in LEGS], joints)
        self.gains = Gains() if gains is None else gains
        self.weights = Weights() if weights is None else weights
        self.unsolved = 0
        self._limits, self._acts, self._solver = limits, acts, solver
        self._walk: Walk | None = None
        self._first: Array | None = None

    def wanted(self, state: State, dt: float) -> tuple[Wanted, Plan, Array]:
        """Return the tasks of an instant, the plan behind them and where the feet are."""
        gains = self.gains
        feet, rates = self.kinematics.feet(state)
        R = pin.Quaternion(state.orientation).toRotationMatrix()
        velocity, spin = R @ state.twist[:3], R @ state.twist[3:]
        if self._walk is None:
            under = feet[:, :2] - feet[:, :2].mean(axis=0)
            heading = float(np.arctan2(R[1, 0], R[0, 0]))
            self._walk = Walk(under, float(state.position[2]), self._acts)
            self._walk.begin(np.array([*feet[:, :2].mean(axis=0), 0.0]), heading)
        plan = self._walk.plan(dt, state.position, velocity, feet, state.touches)
        c, s = np.cos(plan.heading), np.sin(plan.heading)
        upright = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        linear = (
            plan.acceleration
            + gains.position * (plan.position - state.position)
            + gains.velocity * (plan.velocity - velocity)
        )
        off = R @ pin.log3(R.T @ upright)
        angular = gains.rotation * off + gains.spin * (np.array([0.0, 0.0, plan.turning]) - spin)
        stiffness, damping = gains.swing
        accelerations = np.where(
            np.array(plan.stands)[:, np.newaxis],
            -gains.stance * rates,
            plan.foot_accelerations
            + stiffness * (plan.feet - feet)
            + damping * (plan.foot_velocities - rates),
        )
        share = self.kinematics.mass * _GRAVITY / max(sum(plan.stands), 1)
        trunk = np.concatenate([linear, angular])
        return Wanted(trunk, accelerations, plan.stands, share, self._limits), plan, feet

    def command(self, state: State, rows: Rows, dt: float) -> Command:
        """Return the torques for an instant, `dt` after the one before [s]."""
        wanted, plan, feet = self.wanted(state, dt)
        B = rows.response[6:].T
        try:
            solved = reduced(rows.G, rows.a0, B, wanted, self.weights, self._solver)
            torques, forces = np.clip(solved.torques, -self._limits, self._limits), solved.forces
        except UnsolvedError:
            self.unsolved += 1
            torques, forces = -self.gains.fallback * state.velocity, np.full((4, 3), np.nan)
        return Command(
            torques, forces, state.position, plan.position, feet, plan.stands, plan.act
        )


def predicted_forces(
    rows: Rows, torques: Array, touches: Sequence[bool], friction: float
) -> Array:
    """Return the forces of the feet under torques of the joints, (4, 3) [N]."""
    feet = slice(6, None)  # after the trunk
    applied = np.concatenate([np.zeros(6), torques])
    a0 = rows.a0[feet] + rows.response[:, feet].T @ applied
    return predicted(rows.G[feet, feet], a0, "point", touches, friction)
