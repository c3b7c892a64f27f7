"""Measured state of a robot with a free base, and positions of its feet, by Pinocchio."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pinocchio as pin

Array = npt.NDArray[np.float64]


def smooth(s: float) -> tuple[float, float, float]:
    """Return a rise from 0 to 1 over s in 0 to 1, with its first two derivatives by s."""
    s = min(max(s, 0.0), 1.0)
    return (
        s**3 * (10.0 + s * (6.0 * s - 15.0)),
        30.0 * s**2 * (1.0 - s) ** 2,
        60.0 * s * (1.0 - s) * (1.0 - 2.0 * s),
    )


@dataclass(frozen=True)
class State:
    """The measured state of a robot.

    Attributes
    ----------
    q, velocity : of the joints by the order of the robot's description [rad], [rad/s].
    position, orientation : of the base [m], unit quaternion x, y, z, w.
    twist : twist of the base in its body axes, linear first [m/s], [rad/s].
    touches : which feet feel the floor (k,).
    """

    q: Array
    velocity: Array
    position: Array
    orientation: Array
    twist: Array
    touches: Sequence[bool]


class Kinematics:
    """Where trunk and feet are and how they move, by Pinocchio.

    Parameters
    ----------
    urdf : text of the description.
    frames : of the feet.
    joints : names of the joints in the order of q.
    """

    def __init__(self, urdf: str, frames: Sequence[str], joints: Sequence[str]) -> None:
        self.model = pin.buildModelFromXML(urdf, pin.JointModelFreeFlyer())
        self.data = self.model.createData()
        ids = [self.model.getJointId(name) for name in joints]
        self.q_places = [self.model.joints[i].idx_q for i in ids]
        self.v_places = [self.model.joints[i].idx_v for i in ids]
        self.frames = [self.model.getFrameId(frame) for frame in frames]
        self.mass = pin.computeTotalMass(self.model)

    def configuration(self, state: State) -> tuple[Array, Array]:
        """Return Pinocchio's q and v."""
        q, v = np.zeros(self.model.nq), np.zeros(self.model.nv)
        q[:3], q[3:7], q[self.q_places] = state.position, state.orientation, state.q
        v[:6], v[self.v_places] = state.twist, state.velocity
        return q, v

    def update(self, state: State) -> None:
        """Compute where all frames of :attr:`data` are, and how fast."""
        q, v = self.configuration(state)
        pin.forwardKinematics(self.model, self.data, q, v)
        pin.updateFramePlacements(self.model, self.data)

    def feet(self, state: State) -> tuple[Array, Array]:
        """Return positions and velocities of the feet (k, 3) in the world."""
        self.update(state)
        axes = pin.LOCAL_WORLD_ALIGNED
        places = [self.data.oMf[i].translation for i in self.frames]
        rates = [pin.getFrameVelocity(self.model, self.data, i, axes).linear for i in self.frames]
        return np.array(places), np.array(rates)

    def soles(self, state: State) -> tuple[Array, Array, Array]:
        """Return positions (k, 3), axes (k, 3, 3) and twists (k, 6) of the feet in the world."""
        self.update(state)
        axes = pin.LOCAL_WORLD_ALIGNED
        places = [self.data.oMf[i] for i in self.frames]
        twists = [pin.getFrameVelocity(self.model, self.data, i, axes).vector for i in self.frames]
        return (
            np.array([place.translation for place in places]),
            np.array([place.rotation for place in places]),
            np.array(twists),
        )

    def centre_of_mass(self) -> tuple[Array, Array]:
        """Return position and velocity of the centre of mass (3,) in the world, after update."""
        place = pin.centerOfMass(self.model, self.data, pin.VELOCITY)
        return place.copy(), self.data.vcom[0].copy()
