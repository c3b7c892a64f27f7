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

from delassus.robots.built_in.humanoid import FEET, SOLE

from .poses import TIMETABLE, Plan, Pose, Poser
from .qp import Matrices, Wanted, Weights, torques

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Gains:
    """Stiffness and damping of the tasks, per axis where they have three [1/s²], [1/s]."""

    centre: tuple[Array, Array] = field(
        default_factory=lambda: (np.array([40.0, 40.0, 80.0]), np.array([12.0, 12.0, 18.0]))
    )
    turning: tuple[float, float] = (120.0, 22.0)
    swing: tuple[float, float] = (300.0, 35.0)
    posture: tuple[float, float] = (60.0, 15.0)
    stance: float = 5.0
    """Damping of feet that stand, whose velocity is to be zero [1/s]."""
    fallback: float = 5.0
    """Of joints where there are no forces to be had [N m s/rad]."""


class Controller:
    """Takes one pose after the other.

    Parameters
    ----------
    urdf : text of the description.
    joints : names of the joints in the order of q and torques.
    limits : largest torques (n,) [N m].
    poses : the timetable.
    gains, weights : of the tasks.
    solver : of qpsolvers.
    """

    def __init__(
        self,
        urdf: str,
        joints: Sequence[str],
        limits: Array,
        poses: Sequence[Pose] = TIMETABLE,
        gains: Gains | None = None,
        weights: Weights | None = None,
        solver: str = "daqp",
    ) -> None:
        self.kinematics = Kinematics(urdf, [*FEET.values()], joints)
        self.gains = Gains() if gains is None else gains
        self.weights = Weights() if weights is None else weights
        self.unsolved = 0
        self._limits, self._poses, self._solver = limits, poses, solver
        self._poser: Poser | None = None
        self._posture = np.empty(0)

    def wanted(self, state: State, dt: float) -> tuple[Wanted, Plan, Array, Array]:
        """Return the tasks of an instant, their plan, and where centre of mass and soles are."""
        gains, log = self.gains, pin.log3
        places, axes, twists = self.kinematics.soles(state)
        centre, velocity = self.kinematics.centre_of_mass()
        R = pin.Quaternion(state.orientation).toRotationMatrix()
        if self._poser is None:
            heading = float(np.arctan2(R[1, 0], R[0, 0]))
            height = float(centre[2] - places[:, 2].mean())
            self._poser = Poser(height, centre, heading, self._poses)
            self._posture = state.q.copy()
        plan = self._poser.plan(dt, places)
        upright = pin.utils.rotate("z", self._poser.heading)
        stiffness, damping = gains.centre
        to, going, push = plan.centre
        acceleration = push + stiffness * (to - centre) + damping * (going - velocity)
        stiff, damp = gains.turning
        turning = stiff * R @ log(R.T @ upright) - damp * R @ state.twist[3:]
        feet = -gains.stance * twists
        for k, share in enumerate(plan.bears):
            if share == 0.0:
                stiff, damp = gains.swing
                to, going, push = plan.feet[k]
                feet[k, :3] = push + stiff * (to - places[k]) + damp * (going - twists[k, :3])
                off = axes[k] @ log(axes[k].T @ upright)
                feet[k, 3:] = stiff * off - damp * twists[k, 3:]
        stiff, damp = gains.posture
        posture = stiff * (self._posture - state.q) - damp * state.velocity
        mass = self.kinematics.mass
        wanted = Wanted(acceleration, turning, feet, posture, plan.bears, axes, mass, self._limits)
        return wanted, plan, centre, places

    def command(self, state: State, given: Matrices, dt: float) -> Command:
        """Return the torques for an instant, `dt` after the one before [s]."""
        wanted, plan, centre, soles = self.wanted(state, dt)
        try:
            solved = torques(given, wanted, self.weights, self._solver)
            found, wrenches = np.clip(solved.torques, -self._limits, self._limits), solved.wrenches
        except UnsolvedError:
            self.unsolved += 1
            found, wrenches = -self.gains.fallback * state.velocity, np.full((2, 6), np.nan)
        bears = [share > 0.0 for share in plan.bears]
        return Command(found, wrenches, centre, plan.centre[0], soles, bears, plan.pose)


def predicted_wrenches(
    given: Matrices, torques: Array, touches: Sequence[bool], friction: float
) -> Array:
    """Return the wrenches of the feet under torques of the joints, (2, 6) [N, N m]."""
    feet = slice(6, None)  # after the pelvis
    applied = np.concatenate([np.zeros(6), torques])
    free = np.linalg.solve(given.M, applied - given.h)
    a0 = given.J[feet] @ free + given.JdotV[feet]
    return predicted(given.G[feet, feet], a0, "surface", touches, friction, dimensions=SOLE)
