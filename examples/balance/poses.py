"""Targets of the balance example: positions of the weight, and steps of a foot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from control.kinematics import smooth

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pose:
    """A piece of the timetable.

    Attributes
    ----------
    name : for people.
    duration : how long [s].
    over : where the weight is at the end: 0 between the feet, 1 over the left, -1 over the right.
    height : of the centre of mass above how it stood first, at the end [m].
    lifted : number of the foot in the air, None for neither.
    step : how far that is put down from where it was, forward and left [m].
    """

    name: str
    duration: float
    over: float = 0.0
    height: float = 0.0
    lifted: int | None = None
    step: tuple[float, float] = (0.0, 0.0)


TIMETABLE = (
    Pose("stand", 1.0),
    Pose("squat", 1.5, height=-0.12),
    Pose("rise", 1.5),
    Pose("shift left", 1.5, over=1.0),
    Pose("lift the right foot", 1.5, over=1.0, lifted=1),
    Pose("shift right", 2.5, over=-1.0),
    Pose("lift the left foot", 1.5, over=-1.0, lifted=0),
    Pose("shift left again", 2.5, over=1.0),
    Pose("step right", 1.0, over=1.0, lifted=1, step=(0.1, 0.0)),
    Pose("shift onto the right", 2.0, over=-1.0),
    Pose("step left", 1.0, over=-1.0, lifted=0, step=(0.2, 0.0)),
    Pose("shift onto the left", 2.0, over=1.0),
    Pose("close up", 1.0, over=1.0, lifted=1, step=(0.1, 0.0)),
    Pose("come back", 1.5),
)
"""Some twenty seconds; then it begins again, a step ahead."""

_CLEARANCE = 0.05  # m
_EASE = 0.3  # s, in which a foot that was put down begins to bear, or ceases to


@dataclass
class Plan:
    """Targets at one moment, along the axes of the world.

    Attributes
    ----------
    centre : of mass: position, velocity, acceleration (3, 3).
    feet : of a foot in the air: position, velocity, acceleration of each (2, 3, 3).
    bears : share of the weight that each foot may bear; 0 in the air.
    pose : name of the pose.
    """

    centre: Array
    feet: Array
    bears: list[float]
    pose: str


@dataclass
class Poser:
    """Follows the timetable; begins each pose from where the feet really are.

    Attributes
    ----------
    height : of the centre of mass above the soles at first [m].
    centre : of mass, where it is first (3,).
    heading : which way is forward [rad].
    poses : the timetable; it repeats.
    """

    height: float
    centre: Array
    heading: float
    poses: Sequence[Pose] = TIMETABLE
    _number: int = -1
    _since: float = 0.0
    _goal: Array = field(default_factory=lambda: np.zeros(3))
    _start: Array = field(default_factory=lambda: np.zeros(3))
    _feet: Array = field(default_factory=lambda: np.zeros((2, 3)))

    def plan(self, dt: float, feet: Array) -> Plan:
        """Go on by a time [s]; return what is wanted then, with the feet (2, 3) where they are."""
        self._since += dt
        if self._number < 0 or self._since >= self.poses[self._number].duration:
            self._begin(feet)
        pose = self.poses[self._number]
        s = self._since / pose.duration
        way = self._goal - self._start
        share, rate, bend = smooth(s)
        T = pose.duration
        centre = np.array([self._start + way * share, way * rate / T, way * bend / T**2])
        plan = Plan(centre, np.zeros((2, 3, 3)), [1.0, 1.0], pose.name)
        if pose.lifted is None:
            self._ease(plan, pose)
        else:
            plan.bears[pose.lifted] = 0.0
            plan.feet[pose.lifted] = self._swing(pose, s)
        return plan

    def _begin(self, feet: Array) -> None:
        """Begin the next pose."""
        first = self._number < 0
        self._number = (self._number + 1) % len(self.poses)
        self._since = 0.0
        pose = self.poses[self._number]
        self._start = self.centre.copy() if first else self._goal
        self._feet = feet.copy()
        left = 0.5 * (1.0 + pose.over)
        place = left * feet[0] + (1.0 - left) * feet[1]
        height = feet[:, 2].mean() if pose.lifted is None else feet[1 - pose.lifted, 2]
        self._goal = np.array([place[0], place[1], height + self.height + pose.height])
        if pose.lifted is not None:
            # Over the foot that stands, however the other one moves.
            self._goal[:2] = feet[1 - pose.lifted, :2]

    def _ease(self, plan: Plan, pose: Pose) -> None:
        """Unload a foot that is to be lifted next, and load one that was put down, bit by bit."""
        after = self.poses[(self._number + 1) % len(self.poses)].lifted
        before = self.poses[self._number - 1].lifted
        least = 0.02
        if after is not None:
            plan.bears[after] = max(min((pose.duration - self._since) / _EASE, 1.0), least)
        if before is not None:
            plan.bears[before] *= max(min(self._since / _EASE, 1.0), least)

    def _swing(self, pose: Pose, s: float) -> Array:
        """Return position, velocity and acceleration of the foot in the air."""
        assert pose.lifted is not None
        c, si = np.cos(self.heading), np.sin(self.heading)
        x, y = pose.step
        # Down to the height of the other one.
        start = self._feet[pose.lifted]
        down = self._feet[1 - pose.lifted, 2] - start[2]
        way = np.array([c * x - si * y, si * x + c * y, down])
        share, rate, bend = smooth(s)
        up = np.array([0.0, 0.0, _CLEARANCE])
        T = pose.duration
        return np.array(
            [
                start + way * share + up * np.sin(np.pi * s) ** 2,
                (way * rate + up * np.pi * np.sin(2.0 * np.pi * s)) / T,
                (way * bend + up * 2.0 * np.pi**2 * np.cos(2.0 * np.pi * s)) / T**2,
            ]
        )
