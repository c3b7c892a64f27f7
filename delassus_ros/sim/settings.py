"""Settings of a simulated robot: drives, sensors and floor; the period of its steps."""

from __future__ import annotations

import math
from dataclasses import dataclass

from delassus.errors import InputError, unknown

STEP_S = 1e-3
"""Simulated time of one step of the plant [s]."""
ON_SILENCE = ("damp", "hold")
"""Behaviour of drives without commands: brake the joints, or hold their last positions."""


@dataclass(frozen=True)
class PlantSettings:
    """Settings of drives, sensors and floor.

    Attributes
    ----------
    friction : friction coefficient of the floor and the feet.
    armature : rotor inertia at the joints [kg m^2].
    joint_friction : Coulomb friction of the joints [N m], in addition to the URDF's.
    joint_damping : viscous friction of the joints [N m s], in addition to the URDF's.
    torque_limit : largest torque of drives, as a share of the effort limits of the URDF.
    torque_noise : standard deviation of the torque of a drive [N m].
    effort_noise : standard deviation of reported torques from true torques [N m].
    position_noise, velocity_noise : standard deviations of the encoders [rad], [rad/s].
    base_noise : standard deviation of the base's velocity [m/s], [rad/s]; that of position and
        orientation is a tenth of this number [m], [rad].
    silence : time without a command after which drives brake or hold [s].
    on_silence : behaviour of the drives without commands, of :data:`ON_SILENCE`.
    holding, braking : largest stiffness and damping of drives without commands [N m/rad],
        [N m s/rad]; less for light links, which would oscillate.
    """

    friction: float = 0.8
    armature: float = 0.0
    joint_friction: float = 0.0
    joint_damping: float = 0.0
    torque_limit: float = 1.0
    torque_noise: float = 0.0
    effort_noise: float = 0.0
    position_noise: float = 0.0
    velocity_noise: float = 0.0
    base_noise: float = 0.0
    silence: float = 0.02
    on_silence: str = "damp"
    holding: float = 300.0
    braking: float = 6.0
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the settings."""
        if self.on_silence not in ON_SILENCE:
            raise InputError(unknown("on_silence", self.on_silence, ON_SILENCE, "choices"))
        for name, value in vars(self).items():
            if not isinstance(value, str) and not 0.0 <= value < math.inf:
                raise InputError(f"{name} is {value}; expected a finite number, 0 or more")
