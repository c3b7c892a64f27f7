"""The gait: a fixed cycle of foot positions, and the leg angles.

The cycle is a function of time without feedback from the physics, so runs are repeatable. Contact
states follow from contact force and foot speed, with hysteresis against chatter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

LEGS: tuple[str, ...] = ("LF", "RF", "LH", "RH")
"""Order of the legs in all lists of this package."""

Vector3 = tuple[float, float, float]


@dataclass(frozen=True)
class Phase:
    """A phase of the cycle.

    Attributes
    ----------
    duration
        Length, s.
    trunk
        Position (x, y) of the trunk at the end of the phase, from the middle of the feet [m].
    unloaded
        Indices in `LEGS` of the feet without load at the end of the phase.
    lift
        Height of the unloaded feet at the middle of the phase [m].
    """

    duration: float
    trunk: tuple[float, float] = (0.0, 0.0)
    unloaded: tuple[int, ...] = ()
    lift: float = 0.0


@dataclass(frozen=True)
class Stance:
    """The targets of the gait at one moment.

    Attributes
    ----------
    feet
        Foot positions in the trunk frame, one (3,) tuple per leg, m.
    share
        Largest share of the weight per foot, 0 to 1.
    """

    feet: tuple[Vector3, ...]
    share: tuple[float, ...]


@dataclass(frozen=True)
class LegGeometry:
    """Lengths of a leg with joints about x, y, y.

    Attributes
    ----------
    hip
        Position of the abduction joint in the trunk, m.
    offset
        Distance along y from the abduction joint to the hip joint, m; negative on the right.
    thigh, shank
        Distances between hip and knee, knee and foot, m.
    """

    hip: Vector3
    offset: float
    thigh: float
    shank: float

    def angles(self, foot: Sequence[float]) -> Vector3:
        """Return the angles of abduction, hip and knee [rad] that put the foot at a point.

        The point (3,) is in the trunk frame [m]; the knee is bent backwards. For a point out of
        reach the leg is stretched in the direction of the point.
        """
        x = foot[0] - self.hip[0]
        y = foot[1] - self.hip[1]
        z = foot[2] - self.hip[2]
        # In the plane that the abduction joint turns, the foot is at (offset, -depth).
        depth = math.sqrt(max(y * y + z * z - self.offset * self.offset, 0.0))
        abduction = math.atan2(z, y) - math.atan2(-depth, self.offset)
        abduction = math.remainder(abduction, 2.0 * math.pi)
        cosine = (x * x + depth * depth - self.thigh**2 - self.shank**2) / (
            2.0 * self.thigh * self.shank
        )
        knee = -math.acos(min(max(cosine, -1.0), 1.0))
        hip = math.atan2(-x, depth) - math.atan2(
            self.shank * math.sin(knee), self.thigh + self.shank * math.cos(knee)
        )
        return abduction, hip, knee

    def torques(self, angles: Sequence[float], load: float) -> Vector3:
        """Return the torques [N m] with which the foot presses straight down with a load [N].

        Angles [rad] and torques are those of abduction, hip and knee.
        """
        abduction, hip, knee = angles
        bend = math.sin(hip + knee) * self.shank
        depth = math.cos(hip) * self.thigh + math.cos(hip + knee) * self.shank
        # The derivatives of the foot's height by the three angles, times the force from below.
        side = math.cos(abduction) * self.offset + math.sin(abduction) * depth
        cosine = math.cos(abduction)
        swing = (math.sin(hip) * self.thigh + bend) * cosine
        return -load * side, -load * swing, -load * bend * cosine


def smoothstep(s: float) -> float:
    """Rise from 0 at ``s = 0`` to 1 at ``s = 1`` with zero first and second derivative at both."""
    return s * s * s * (10.0 + s * (6.0 * s - 15.0))


def stepping_cycle(feet: Sequence[Vector3]) -> tuple[Phase, ...]:
    """Return the demo's cycle: four single steps, each after a shift of weight, and two diagonals.

    The cycle lasts about 5 s and ends where it began.

    Parameters
    ----------
    feet
        Standing positions of the feet in the trunk frame, in the order of `LEGS`, m.
    """
    middle = [sum(foot[axis] for foot in feet) / len(feet) for axis in (0, 1)]
    phases = [Phase(0.30)]
    for pair in ((0, 3), (1, 2)):
        phases += [Phase(0.15, unloaded=pair), Phase(0.18, unloaded=pair, lift=0.03), Phase(0.20)]
    for leg in (0, 1, 3, 2):
        # The centroid of the three standing feet is a third as far from the middle as the lifted
        # foot, on the other side; 0.45 of that distance is well inside their triangle.
        lean = (
            -0.45 * (feet[leg][0] - middle[0]) / 3.0,
            -0.45 * (feet[leg][1] - middle[1]) / 3.0,
        )
        phases += [
            Phase(0.50, lean, (leg,)),
            Phase(0.35, lean, (leg,), 0.05),
            Phase(0.10, lean),
        ]
    phases.append(Phase(0.40))
    return tuple(phases)


class Gait:
    """Foot positions in the trunk frame as a periodic function of time.

    Parameters
    ----------
    feet
        Standing positions of the feet in the trunk frame, in the order of `LEGS`, m.
    """

    def __init__(self, feet: Sequence[Vector3], cycle: Sequence[Phase]) -> None:
        self._feet = tuple(feet)
        self._cycle = tuple(cycle)
        self.period = sum(phase.duration for phase in self._cycle)
        """Length of the cycle, s."""

    def stance(self, time: float) -> Stance:
        """Return the targets at a time since the start [s]."""
        rest = math.fmod(time, self.period)
        before = self._cycle[-1]
        for phase in self._cycle:
            if rest < phase.duration:
                break
            rest -= phase.duration
            before = phase
        s = min(rest / phase.duration, 1.0)
        blend = smoothstep(s)
        x = before.trunk[0] + blend * (phase.trunk[0] - before.trunk[0])
        y = before.trunk[1] + blend * (phase.trunk[1] - before.trunk[1])
        height = phase.lift * math.sin(math.pi * s) ** 2
        return Stance(
            tuple(
                (foot[0] - x, foot[1] - y, foot[2] + (height if leg in phase.unloaded else 0.0))
                for leg, foot in enumerate(self._feet)
            ),
            tuple(
                (1.0 - blend) * (leg not in before.unloaded) + blend * (leg not in phase.unloaded)
                for leg in range(len(self._feet))
            ),
        )


class TouchState(IntEnum):
    """State of a contact; the values are those of ``delassus_msgs/ActiveContacts``."""

    UNKNOWN = 0
    INACTIVE = 1
    ACTIVE = 2
    SLIPPING = 3

    @property
    def touches(self) -> bool:
        """Whether the contact carries force: the state is ACTIVE or SLIPPING."""
        return self >= TouchState.ACTIVE


class TouchFilter:
    """Contact state of one foot, with hysteresis on the force and a debounce on every change.

    Parameters
    ----------
    force_on, force_off
        Normal force above which a contact begins, and below which it ends [N].
    slip_speed
        Speed of the contact point along the floor above which the state is SLIPPING [m/s].
    debounce
        Number of consecutive updates that a new state must last before it is returned.
    """

    def __init__(
        self,
        force_on: float = 2.0,
        force_off: float = 0.5,
        slip_speed: float = 0.05,
        debounce: int = 5,
    ) -> None:
        self._force_on = force_on
        self._force_off = force_off
        self._slip_speed = slip_speed
        self._debounce = debounce
        self._candidate = TouchState.UNKNOWN
        self._count = 0
        self.state = TouchState.UNKNOWN

    def update(self, force: float, speed: float) -> TouchState:
        """Process a normal force [N] and a speed along the floor [m/s]; return the state."""
        threshold = self._force_off if self.state.touches else self._force_on
        if force <= threshold:
            seen = TouchState.INACTIVE
        elif speed > self._slip_speed:
            seen = TouchState.SLIPPING
        else:
            seen = TouchState.ACTIVE
        if seen != self._candidate:
            self._candidate = seen
            self._count = 0
        self._count += 1
        if self._count >= self._debounce:
            self.state = seen
        return self.state
