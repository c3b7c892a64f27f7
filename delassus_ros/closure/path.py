"""The way of a configuration to measured positions that one Newton iteration does not reach.

Along the way the unknown joints follow from the measured ones at every point, which is what
makes the end of it belong to the branch of its start.

A crank that goes all the way round comes back to where it was, with all that hangs on it; a motor
geared to it is then some turns on. Where that way can be gone from the reference, a path leads
from every configuration on the branch to the same one any number of turns on: back to the
reference, round as often, and forth again. So nobody has to go it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import ceil, inf, tau

import numpy as np

from delassus_ros.closure.step import curved_joints
from delassus_ros.compiler.newton import BoundNewton
from delassus_ros.model.clusters import Cluster, clusters_of
from delassus_ros.model.robot import JointKind, Robot
from delassus_ros.model.spatial import Array
from delassus_ros.scalars.ports import Status


class ClosureStatus(IntEnum):
    """Outcome of a call; only OK and CONTRADICTION come with a q that may be used."""

    OK = 0
    CONTRADICTION = 1
    """A warning: the loops are closed, but a measured dependent joint is elsewhere."""
    NOT_FINITE = 2
    """A measured position is NaN or infinite."""
    UNREACHABLE = 3
    """The measured positions cannot be closed on the branch of the reference."""
    SINGULAR = 4
    """The unknown joints do not follow from the measured ones there."""
    WRONG_BRANCH = 5
    """The measured positions close the loops on another branch than the reference: mirrored."""
    OUTSIDE_LIMITS = 6
    """An unknown joint of a loop or function would be outside its limits."""
    NOT_CLOSED = 7
    """A loop does not close to the tolerance, as when its redundant rows contradict."""

    @property
    def is_valid(self) -> bool:
        """Whether q may be used."""
        return self <= ClosureStatus.CONTRADICTION


_SHORTEST = 1e-6
"""Share of the reach below which a part of the way is not divided further."""
_NEAR = 1e-4
"""Where only this share of the reach is left, the end itself is what cannot be reached."""
MOST_CALLS = 400
"""Newton iterations of one way, and its longest length in reaches."""
_MOST_TURNS = 1e6
"""Turns that are taken out of a way; of more, rounding would be 1e-9 rad and more."""
_DETERMINANT_SHARE = 0.5
"""Share of a determinant that is left at the end of each part of the way."""


class Branch:
    """Whether a configuration is on the branch of the one before.

    The determinants of the unknown joints' equations vanish where branches meet; one that
    keeps its sign and most of its size has not gone through zero. See
    :class:`~delassus_ros.closure.step.ClosureStep`.

    Parameters
    ----------
    results : what a step returns besides residuals, where Newton is; changes with it.
    kept : the step's input behind q.
    reference : the results at the reference.

    Attributes
    ----------
    state : what is remembered of the configuration that was accepted last.
    reference : the same of the reference.
    """

    def __init__(self, results: Array, kept: Array, reference: Array) -> None:
        count = (len(results) - len(kept)) // 2
        self._determinants, self._own, self._rows = np.split(results, [count, 2 * count])
        self._kept = kept
        own = reference[count : 2 * count]
        self._signs = np.sign(own)
        self.reference = np.concatenate([np.abs(own), reference[2 * count :]])
        self.state = self.reference.copy()
        self._before, self._rows_before = self.state[:count], self.state[count:]
        self._least = np.zeros(count)
        self._sizes = np.zeros(count)
        self._enough = np.zeros(count, dtype=np.bool_)
        self.resume(self.reference)

    def goes_on(self) -> bool:
        """Return True if Newton is on the branch of what was accepted last."""
        np.multiply(self._determinants, self._signs, self._sizes)
        np.greater(self._sizes, self._least, self._enough)
        return bool(self._enough.all())

    def accept(self) -> None:
        """Go on from here."""
        np.multiply(self._own, self._signs, self._before)
        np.copyto(self._rows_before, self._rows)
        self._begin()

    def resume(self, state: Array) -> None:
        """Go on from where this was the state."""
        np.copyto(self.state, state)
        self._begin()

    def worst(self) -> int:
        """Return which determinant is nearest to another branch."""
        return int(np.argmin(self._determinants * self._signs / self._before))

    def _begin(self) -> None:
        np.multiply(self._before, _DETERMINANT_SHARE, self._least)
        np.copyto(self._kept, self._rows_before)


@dataclass(frozen=True, eq=False)
class WholeTurns:
    """Turns of one given position after which what it moves is as it was.

    Attributes
    ----------
    periods : (k,) per given position how far it goes in one [rad or m]; infinite where nothing
        comes round.
    shifts : (k, nq) how far q is then on.
    """

    periods: Array
    shifts: Array


@dataclass(frozen=True, eq=False)
class Path:
    """How to go to measured positions.

    Attributes
    ----------
    newton : is run once per part of the way.
    q : the robot's configuration in ``newton.q``.
    entries : entries of q of the positions that hold.
    sources : their entries of ``newton.measured``.
    reach : how far each of them goes at once [rad or m].
    turns : which of them are in loops and may make whole turns without an end.
    branch : whether what Newton found is on the branch.
    whole : whole turns of the others, which need not be gone; None while they are looked for.
    """

    newton: BoundNewton
    q: Array
    entries: Sequence[int]
    sources: Sequence[int]
    reach: Array
    turns: Array
    branch: Branch
    whole: WholeTurns | None = None

    def go(self, start: Array, measured: Array, around: bool = False) -> ClosureStatus:
        """Go from a closed configuration to `measured`; `q` is then where that led.

        That is at most 400 Newton iterations, and none where the way, without whole turns, is
        longer than 400 reaches.

        Parameters
        ----------
        start : (nq,) closed, on the branch.
        measured : all measured positions, finite.
        around : of the joints that turn without an end, turn the one with the longest way in
            the other direction.

        Returns
        -------
        OK, SINGULAR or UNREACHABLE.
        """
        return self.walk(*self._ends(start, measured, around))

    def too_far(self, start: Array, measured: Array) -> int | None:
        """Return which given position is too far from a closed configuration, if one is."""
        good, wanted = self._ends(start, measured, False)
        lengths = self._lengths(good, wanted)
        return None if lengths.max(initial=0.0) <= MOST_CALLS else int(np.argmax(lengths))

    def walk(self, start: Array, wanted: Array) -> ClosureStatus:
        """Go straight from a closed configuration to wanted positions; as :meth:`go`.

        Parameters
        ----------
        start : (nq,) closed, on the branch.
        wanted : (k,) the given positions.
        """
        newton, good = self.newton, start.copy()
        entries, sources = list(self.entries), list(self.sources)
        first = good[entries]
        length = float(self._lengths(start, wanted).max(initial=1e-300))
        if not length <= MOST_CALLS:
            return ClosureStatus.UNREACHABLE
        done, part = 0.0, 1.0 / ceil(length)
        longest = part
        for _ in range(MOST_CALLS):
            until = min(1.0, done + part)
            at = wanted if until == 1.0 else first + until * (wanted - first)
            newton.measured[sources] = at
            np.copyto(self.q, good)
            code = newton.run()
            if code == Status.OK and self.branch.goes_on():
                if until == 1.0:
                    return ClosureStatus.OK
                self.branch.accept()
                np.copyto(good, self.q)
                done, part = until, min(2.0 * part, longest)
                continue
            part *= 0.5
            if part * length < _SHORTEST:
                if (1.0 - done) * length < _NEAR:
                    return ClosureStatus.SINGULAR
                break
        return ClosureStatus.UNREACHABLE

    def _ends(self, start: Array, measured: Array, around: bool) -> tuple[Array, Array]:
        """Return where the way begins, whole turns on from `start`, and the positions wanted."""
        good, entries = start.copy(), list(self.entries)
        wanted = measured[list(self.sources)]
        # Where there is more than a float holds, there is no way.
        with np.errstate(over="ignore", invalid="ignore"):
            # A joint that turns on and on is measured within one turn.
            good[entries] += tau * np.round((wanted - good[entries]) / tau) * self.turns
            if around:
                k = int(np.argmax(np.abs(wanted - good[entries]) * self.turns))
                good[entries[k]] += tau * np.sign(wanted[k] - good[entries[k]]) * self.turns[k]
            if self.whole is not None:
                turns = np.trunc((wanted - good[entries]) / self.whole.periods)
                good += np.where(np.abs(turns) <= _MOST_TURNS, turns, 0.0) @ self.whole.shifts
        return good, wanted

    def _lengths(self, start: Array, wanted: Array) -> Array:
        """Return per given position how many reaches it is from `start` to `wanted`."""
        with np.errstate(over="ignore"):
            return np.asarray(np.abs(wanted - start[list(self.entries)]) / self.reach)


_SAME = 1e-9
"""Joints this near to a whole turn have made it; what is left adds up over turns [rad or m]."""
_TIED = 1e-9
"""Share of a joint's motion that is rounding."""


def whole_turns(
    way: Path, robot: Robot, reference: Array, room: Array, revolving: Array
) -> WholeTurns:
    """Return the whole turns of each given position, as far as they can be gone.

    Goes at most 400 reaches from the reference for each one, the others held. Positions of joints
    that turn without an end, in no coupling, get none: they need no path.

    Parameters
    ----------
    way : goes to given positions; its branch is at the reference before and behind.
    robot : the robot.
    reference : (nq,) closed.
    room : (k,) how far apart the limits of the given positions are [rad or m].
    revolving : (nq,) to which entries of q whole turns make no difference.
    """
    count = len(way.entries)
    found = WholeTurns(np.full(count, inf), np.zeros((count, robot.nq)))
    for cluster in clusters_of(robot):
        if cluster.is_constant:
            continue  # Without loops any way is gone at once.
        around = _Around(robot, cluster)
        held = [joint for joint in cluster.joints if robot.q_offsets[joint] in way.entries]
        for joint in held:
            entry = robot.q_offsets[joint]
            k = list(way.entries).index(entry)
            unit = inf if way.turns[k] else around.unit(joint, held)
            if unit == inf or unit > room[k]:
                continue
            shift = around.shift(way, reference, k, unit)
            if shift is not None:
                found.periods[k] = shift[entry]
                # Others stay near 0 where they may.
                found.shifts[k] = np.where(revolving, 0.0, shift)
                found.shifts[k, entry] = shift[entry]
    way.branch.resume(way.branch.reference)
    return found


class _Around:
    """What it is for the joints of a cluster to come round."""

    def __init__(self, robot: Robot, cluster: Cluster) -> None:
        self._robot, self._cluster = robot, cluster
        functions = {name for each in cluster.functions for name in each.tied}
        curved = curved_joints(robot, cluster)
        # Revolute joints of loops may be whole turns on, others have to be where they were.
        self._turning = [
            joint
            for joint in curved
            if robot.joints[joint].kind is JointKind.REVOLUTE
            and robot.joints[joint].name not in functions
        ]
        self._still = [joint for joint in curved if joint not in self._turning]

    def unit(self, joint: int, held: Sequence[int]) -> float:
        """Return how far a held joint goes while one in a loop makes a turn [rad or m].

        Infinite if it moves none by couplings alone, or one that cannot come round.
        """
        if joint in self._turning or joint in self._still:
            return tau if joint in self._turning else inf
        rates = self._rates(joint, held)
        if any(rates.get(other, 0.0) > _TIED for other in self._still):
            return inf
        turns = [rates[other] for other in self._turning if rates.get(other, 0.0) > _TIED]
        return tau / max(turns, default=0.0) if turns else inf

    def shift(self, way: Path, reference: Array, k: int, unit: float) -> Array | None:
        """Go units from the reference until all is as it was.

        Returns
        -------
        (nq,) how far joints of loops and the given one are then on, or None if they do not get
        there. What is only coupled, and not held, follows from anywhere.
        """
        entries = list(way.entries)
        turning = [self._robot.q_offsets[joint] for joint in self._turning]
        still = [self._robot.q_offsets[joint] for joint in self._still]
        good, wanted = reference.copy(), reference[entries]
        way.branch.resume(way.branch.reference)
        for count in range(1, 1 + int(MOST_CALLS * way.reach[k] / unit)):
            wanted[k] = reference[entries[k]] + count * unit
            if way.walk(good, wanted) is not ClosureStatus.OK:
                return None
            way.branch.accept()
            np.copyto(good, way.q)
            moved = good - reference
            shift = np.zeros(len(reference))
            shift[turning] = tau * np.rint(moved[turning] / tau)
            if np.abs((moved - shift)[turning + still]).max() <= _SAME:
                shift[entries[k]] = count * unit
                return shift
        return None

    def _rates(self, joint: int, held: Sequence[int]) -> dict[int, float]:
        """Return by how much a held joint moves those that couplings alone tie to held ones."""
        joints = self._cluster.joints
        column = {self._robot.joints[each].name: i for i, each in enumerate(joints)}
        rows = np.zeros((len(self._cluster.couplings), len(joints)))
        for row, coupling in zip(rows, self._cluster.couplings, strict=True):
            largest = max(abs(factor) for _, factor in coupling.ratios)
            for name, factor in coupling.ratios:
                row[column[name]] = factor / largest
        every = np.eye(len(joints))
        equations = np.concatenate([every[[joints.index(each) for each in held]], rows]).T
        # Each joint as a sum of held ones and couplings, where it is one.
        shares = np.linalg.lstsq(equations, every, rcond=None)[0]
        left = np.abs(equations @ shares - every).max(axis=0)
        own = np.abs(shares[list(held).index(joint)])
        return {each: float(own[i]) for i, each in enumerate(joints) if left[i] <= _TIED}
