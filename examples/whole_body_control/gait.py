"""Targets of the walk: a timetable of gaits, positions of the trunk, and footholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from control.kinematics import smooth

Array = npt.NDArray[np.float64]
LEGS = ("LF", "RF", "LH", "RH")


@dataclass(frozen=True)
class Act:
    """A piece of the timetable.

    Attributes
    ----------
    name : for people.
    duration : how long [s].
    velocity : of the trunk along its heading and to its left [m/s].
    turning : of the heading [rad/s].
    height : of the trunk above the feet at the end, as a change [m].
    shift : of the trunk from the middle of its feet at the end, along its heading and left [m].
    lifted : feet in the air.
    trotting : whether diagonal pairs of feet step in turn.
    """

    name: str
    duration: float
    velocity: tuple[float, float] = (0.0, 0.0)
    turning: float = 0.0
    height: float = 0.0
    shift: tuple[float, float] = (0.0, 0.0)
    lifted: tuple[str, ...] = ()
    trotting: bool = False


TIMETABLE = (
    Act("stand", 1.0),
    Act("squat", 1.0, height=-0.06),
    Act("rise", 1.0),
    Act("shift", 1.0, shift=(-0.035, -0.03)),
    Act("lift the left fore foot", 1.0, shift=(-0.035, -0.03), lifted=("LF",)),
    Act("come back", 1.0),
    Act("trot in place", 2.0, trotting=True),
    Act("trot forward", 4.0, velocity=(0.3, 0.0), trotting=True),
    Act("turn", 3.0, velocity=(0.15, 0.0), turning=0.5, trotting=True),
    Act("trot sideways", 2.0, velocity=(0.0, 0.12), trotting=True),
    Act("stop", 1.0, trotting=True),
    Act("stand again", 1.0),
)
"""About nineteen seconds; then it begins again."""

GAIT_PERIOD_S = 0.36
"""Time of a whole step of all feet [s]."""
STANCE = 0.56
"""Share of it in which a foot stands."""
_PHASE = {"LF": 0.0, "RH": 0.0, "RF": 0.5, "LH": 0.5}
_LATE = 0.1  # of a period
_CLEARANCE = 0.05  # m
_LIFT_TIME = 0.25  # s, of a foot that is lifted and put down by itself
_CATCH = 0.12  # s; how far a foot steps out for a velocity that is not wanted


@dataclass
class Swing:
    """A foot in the air: where it comes from, and how far it has gone."""

    start: Array
    landing: Array
    began: float
    duration: float


@dataclass
class Plan:
    """Targets of trunk and feet at one moment, along the axes of the world.

    Attributes
    ----------
    position, velocity, acceleration : of the trunk (3,).
    heading, turning : of the trunk [rad], [rad/s].
    stands : which feet stand.
    feet, foot_velocities, foot_accelerations : of those in the air (k, 3).
    act : name of the act.
    """

    position: Array
    velocity: Array
    acceleration: Array
    heading: float
    turning: float
    stands: list[bool]
    feet: Array
    foot_velocities: Array
    foot_accelerations: Array
    act: str


@dataclass
class Walk:
    """Follows the timetable; where feet step depends on how the robot really moves.

    Attributes
    ----------
    hips : places of the feet under the trunk (k, 2), in its axes [m].
    height : of the trunk above the floor when it stands [m].
    acts : the timetable; it repeats.
    """

    hips: Array
    height: float
    acts: Sequence[Act] = TIMETABLE
    _position: Array = field(default_factory=lambda: np.zeros(2))
    _heading: float = 0.0
    _time: float = 0.0
    _swings: dict[int, Swing] = field(default_factory=dict)

    def begin(self, position: Array, heading: float) -> None:
        """Begin here."""
        self._position, self._heading = position[:2].copy(), heading

    def plan(
        self, dt: float, position: Array, velocity: Array, feet: Array, touches: Sequence[bool]
    ) -> Plan:
        """Go on by a time [s]; return what is wanted then.

        Parameters
        ----------
        position, velocity : of the trunk (3,).
        feet : where they are (k, 3).
        touches : which of them feel the floor.
        """
        self._time += dt
        act, before, s = self._act()
        c, si = np.cos(self._heading), np.sin(self._heading)
        turn = np.array([[c, -si], [si, c]])
        wanted = turn @ np.array(act.velocity)
        self._heading += act.turning * dt
        self._position += wanted * dt
        # The reference does not run away from a robot that was pushed.
        behind = position[:2] - self._position
        self._position += behind * max(0.0, 1.0 - 0.05 / max(float(np.linalg.norm(behind)), 1e-9))
        share, rate, bend = smooth(s / min(act.duration, 1.0))
        scale = 1.0 / min(act.duration, 1.0)
        from_, to = (np.array([*a.shift, a.height]) for a in (before, act))
        moved = from_ + (to - from_) * share
        place, speed, push = (
            np.array([*(turn @ d[:2]), d[2]])
            for d in (moved, (to - from_) * rate * scale, (to - from_) * bend * scale**2)
        )
        at = np.array([*self._position, self.height]) + place
        going = np.array([*wanted, 0.0]) + speed
        plan = Plan(
            at, going, push, self._heading, act.turning, [True] * len(LEGS), feet.copy(),
            np.zeros_like(feet), np.zeros_like(feet), act.name,
        )  # fmt: skip
        for k, leg in enumerate(LEGS):
            self._foot(k, leg, act, plan, position, velocity, feet, touches, turn)
        return plan

    def _act(self) -> tuple[Act, Act, float]:
        """Return the present act, the one before it, and the time since it began."""
        rest = self._time % sum(act.duration for act in self.acts)
        before = self.acts[-1]
        for act in self.acts:
            if rest < act.duration:
                return act, before, rest
            rest -= act.duration
            before = act
        return self.acts[-1], self.acts[-2], 0.0

    def _foot(
        self,
        k: int,
        leg: str,
        act: Act,
        plan: Plan,
        position: Array,
        velocity: Array,
        feet: Array,
        touches: Sequence[bool],
        turn: Array,
    ) -> None:
        """Plan a foot: begin, follow or end its way through the air."""
        phase = (self._time / GAIT_PERIOD_S + _PHASE[leg]) % 1.0
        aloft = act.trotting and phase > STANCE
        held = leg in act.lifted
        swing = self._swings.get(k)
        if swing is None:
            # Not in the middle of the time for it, as where trotting begins.
            late = phase > STANCE + _LATE
            if not held and (late or not aloft):
                return
            duration = (1.0 - STANCE) * GAIT_PERIOD_S if aloft else _LIFT_TIME
            swing = self._swings[k] = Swing(feet[k].copy(), feet[k].copy(), self._time, duration)
        s = (self._time - swing.began) / swing.duration
        if held and s > 0.5:
            # At the top, for as long as it lasts.
            swing.began = self._time - 0.5 * swing.duration
            s = 0.5
        if s >= 1.0 or (s > 0.7 and touches[k] and not held):
            del self._swings[k]
            return
        plan.stands[k] = False
        if aloft:
            swing.landing = self._landing(k, plan, position, velocity, turn, 1.0 - s)
        share, rate, bend = smooth(s)
        way = swing.landing - swing.start
        rise = _CLEARANCE * np.sin(np.pi * s) ** 2
        rise_rate = _CLEARANCE * np.pi * np.sin(2.0 * np.pi * s)
        rise_bend = 2.0 * _CLEARANCE * np.pi**2 * np.cos(2.0 * np.pi * s)
        T = swing.duration
        plan.feet[k] = swing.start + way * share + [0.0, 0.0, rise]
        plan.foot_velocities[k] = (way * rate + [0.0, 0.0, rise_rate]) / T
        plan.foot_accelerations[k] = (way * bend + [0.0, 0.0, rise_bend]) / T**2

    def _landing(
        self,
        k: int,
        plan: Plan,
        position: Array,
        velocity: Array,
        turn: Array,
        rest: float,
    ) -> Array:
        """Return where a foot steps: under its hip in the middle of its stance."""
        ahead = rest * (1.0 - STANCE) * GAIT_PERIOD_S
        stance = STANCE * GAIT_PERIOD_S
        hip = position[:2] + turn @ self.hips[k] + velocity[:2] * ahead
        arm = turn @ self.hips[k]
        spin = plan.turning * np.array([-arm[1], arm[0]])
        step = 0.5 * stance * (plan.velocity[:2] + spin)
        catch = _CATCH * (velocity[:2] - plan.velocity[:2])
        return np.array([*(hip + step + catch), self._floor(k)])

    def _floor(self, k: int) -> float:
        """Return the height of the floor there: that of the foot when it began to step."""
        return float(self._swings[k].start[2])
