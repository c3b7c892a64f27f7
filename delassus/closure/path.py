"""The path of a configuration to measured positions beyond the reach of one Newton iteration.

At every point of the path the measured joints determine the unknown joints, so the end of the path
belongs to the branch of its start.

A crank after a whole turn is at its first position, with all links that it moves; a motor geared
to the crank is some turns ahead. Where such a turn is possible from the reference, a path leads
from every configuration on the branch to the same configuration any number of turns ahead: back to
the reference, round as many times, and forth again. So whole turns are skipped without iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from math import ceil, inf, tau

import numpy as np

from delassus.closure.plan import Plan
from delassus.closure.step import curved_joints
from delassus.compiler.newton import BoundNewton
from delassus.model.clusters import Cluster, clusters_of
from delassus.model.robot import JointKind, Robot
from delassus.model.spatial import Array
from delassus.scalars.ports import Status


class ClosureStatus(IntEnum):
    """Outcome of a call; q is valid only for OK and CONTRADICTION."""

    OK = 0
    CONTRADICTION = 1
    """A warning: the loops are closed, but a measured dependent joint contradicts the result."""
    NOT_FINITE = 2
    """A measured position is NaN or infinite."""
    UNREACHABLE = 3
    """The measured positions cannot be closed on the branch of the reference."""
    SINGULAR = 4
    """The measured joints do not determine the unknown joints at this configuration."""
    WRONG_BRANCH = 5
    """The measured positions close the loops on another branch than the reference: mirrored."""
    OUTSIDE_LIMITS = 6
    """An unknown joint of a loop or function would be outside its limits."""
    NOT_CLOSED = 7
    """A loop does not close to the tolerance, for example as redundant rows contradict."""

    @property
    def is_valid(self) -> bool:
        """Whether q is valid."""
        return self <= ClosureStatus.CONTRADICTION


_SHORTEST = 1e-6
"""Share of the reach below which a part of the path is not divided further."""
_NEAR = 1e-4
"""Remaining share of the reach below which the end of the path counts as singular."""
MOST_CALLS = 400
"""Largest number of Newton iterations of one path, and its longest length [reaches]."""
_MOST_TURNS = 1e6
"""Largest number of turns that are skipped; more would be rounded by 1e-9 rad and more."""
_DETERMINANT_SHARE = 0.5
"""Smallest ratio of a determinant at the end of a part of the path to that at its begin."""


class Branch:
    """Test whether a configuration is on the branch of the previous configuration.

    The determinants of the unknown joints' equations vanish where branches meet; a determinant
    that keeps its sign and most of its size has not passed through zero. See
    :class:`~delassus.closure.step.ClosureStep`.

    Parameters
    ----------
    results : results of the last step besides residuals; an array that the iteration updates.
    kept : the step's input behind q.
    reference : the results at the reference.

    Attributes
    ----------
    state : determinants and rows of the configuration that was accepted last.
    reference : determinants and rows of the reference.
    """

    def __init__(self, results: Array, kept: Array, reference: Array) -> None:
        count = (len(results) - len(kept)) // 2
        self._determinants, self._own, self._rows = np.split(results, [count, 2 * count])
        self._kept = kept
        squared = reference[count : 2 * count]
        self._signs = np.sign(squared)
        self.reference = np.concatenate([np.abs(squared), reference[2 * count :]])
        self.state = self.reference.copy()
        self._before, self._rows_before = self.state[:count], self.state[count:]
        self._least = np.zeros(count)
        self._sizes = np.zeros(count)
        self._enough = np.zeros(count, dtype=np.bool_)
        self.resume(self.reference)

    def goes_on(self) -> bool:
        """Return True if the iteration is on the branch of the last accepted configuration."""
        np.multiply(self._determinants, self._signs, self._sizes)
        np.greater(self._sizes, self._least, self._enough)
        return bool(self._enough.all())

    def accept(self) -> None:
        """Accept the present configuration as the start of the next part."""
        np.multiply(self._own, self._signs, self._before)
        np.copyto(self._rows_before, self._rows)
        self._begin()

    def resume(self, state: Array) -> None:
        """Continue from an earlier state."""
        np.copyto(self.state, state)
        self._begin()

    def worst(self) -> int:
        """Return the index of the determinant that is nearest to another branch."""
        return int(np.argmin(self._determinants * self._signs / self._before))

    def _begin(self) -> None:
        np.multiply(self._before, _DETERMINANT_SHARE, self._least)
        np.copyto(self._kept, self._rows_before)


@dataclass(frozen=True, eq=False)
class WholeTurns:
    """Whole turns of held positions after which the moved joints are as before.

    Attributes
    ----------
    periods : (k,) change of the held position per whole turn [rad or m]; infinite where no
        whole turn is possible.
    shifts : (k, nq) change of q per whole turn.
    """

    periods: Array
    shifts: Array


@dataclass(frozen=True, eq=False)
class Path:
    """The path to measured positions.

    Attributes
    ----------
    plan : the roles of the entries of q.
    newton : the iteration, run once per part of the path.
    q : the robot's configuration in ``newton.q``.
    branch : test whether the iteration is on the branch.
    whole : whole turns of held positions that are skipped; None while these are computed.
    """

    plan: Plan
    newton: BoundNewton
    q: Array
    branch: Branch
    whole: WholeTurns | None = None

    def go(self, start: Array, measured: Array, around: bool = False) -> ClosureStatus:
        """Go from a closed configuration to `measured`; `q` is then the end of the path.

        The path takes at most 400 Newton iterations, and none if its length without whole turns
        exceeds 400 reaches.

        Parameters
        ----------
        start : (nq,) closed, on the branch.
        measured : all measured positions, finite.
        around : turn the continuous joint with the longest path in the other direction.

        Returns
        -------
        OK, SINGULAR or UNREACHABLE.
        """
        return self.walk(*self._ends(start, measured, around))

    def too_far(self, start: Array, measured: Array) -> int | None:
        """Return the index of a held position out of reach of a closed configuration, or None."""
        good, wanted = self._ends(start, measured, False)
        lengths = self._lengths(good, wanted)
        return None if lengths.max(initial=0.0) <= MOST_CALLS else int(np.argmax(lengths))

    def walk(self, start: Array, wanted: Array) -> ClosureStatus:
        """Go straight from a closed configuration to wanted positions; see :meth:`go`.

        Parameters
        ----------
        start : (nq,) closed, on the branch.
        wanted : (k,) the held positions.
        """
        newton, good, held = self.newton, start.copy(), self.plan.held
        first = good[self.plan.entries]
        length = float(self._lengths(start, wanted).max(initial=1e-300))
        if not length <= MOST_CALLS:
            return ClosureStatus.UNREACHABLE
        done, part = 0.0, 1.0 / ceil(length)
        longest = part
        for _ in range(MOST_CALLS):
            until = min(1.0, done + part)
            at = wanted if until == 1.0 else first + until * (wanted - first)
            newton.measured[held] = at
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
        """Return the start of the path, whole turns from `start`, and the wanted positions."""
        good, entries, turns = start.copy(), self.plan.entries, self.plan.turns
        wanted = measured[self.plan.held]
        # Overflow of a float: no path.
        with np.errstate(over="ignore", invalid="ignore"):
            # Positions of a continuous joint are measured within one turn.
            good[entries] += tau * np.round((wanted - good[entries]) / tau) * turns
            if around:
                k = int(np.argmax(np.abs(wanted - good[entries]) * turns))
                good[entries[k]] += tau * np.sign(wanted[k] - good[entries[k]]) * turns[k]
            if self.whole is not None:
                count = np.trunc((wanted - good[entries]) / self.whole.periods)
                good += np.where(np.abs(count) <= _MOST_TURNS, count, 0.0) @ self.whole.shifts
        return good, wanted

    def _lengths(self, start: Array, wanted: Array) -> Array:
        """Return per held position the distance from `start` to `wanted` [reaches]."""
        with np.errstate(over="ignore"):
            return np.asarray(np.abs(wanted - start[self.plan.entries]) / self.plan.reach)


_SAME = 1e-9
"""Largest deviation of a joint from a completed whole turn [rad or m]; deviations accumulate."""
_TIED = 1e-9
"""Share of a joint's motion below which the share is rounding."""


def whole_turns(way: Path, robot: Robot) -> WholeTurns:
    """Return the possible whole turns of the held positions.

    For every held position the search goes at most 400 reaches from the reference, with the other
    positions fixed. Continuous joints outside couplings get none: they need no path.

    Parameters
    ----------
    way : path to held positions; its branch is at the reference before and after the call.
    robot : the robot.
    """
    plan = way.plan
    count, room = len(plan.entries), (plan.upper - plan.lower)[plan.entries]
    found = WholeTurns(np.full(count, inf), np.zeros((count, robot.nq)))
    for cluster in clusters_of(robot):
        if cluster.is_constant:
            continue  # Without loops a path takes one iteration.
        around = _Around(cluster)
        held = [joint for joint in cluster.joints if robot.q_offsets[joint] in plan.entries]
        for joint in held:
            entry = robot.q_offsets[joint]
            k = plan.entries.index(entry)
            unit = inf if plan.turns[k] else around.unit(joint, held)
            if unit == inf or unit > room[k]:
                continue
            shift = around.shift(way, k, unit)
            if shift is not None:
                found.periods[k] = shift[entry]
                # The other positions stay near 0 where possible.
                found.shifts[k] = np.where(plan.revolving, 0.0, shift)
                found.shifts[k, entry] = shift[entry]
    way.branch.resume(way.branch.reference)
    return found


class _Around:
    """Conditions for whole turns of the joints of a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._robot = robot = cluster.robot
        self._cluster = cluster
        functions = {name for function in cluster.functions for name in function.tied}
        curved = curved_joints(cluster)
        # Revolute joints of loops may be whole turns ahead; other joints must be as before.
        self._turning = [
            joint
            for joint in curved
            if robot.joints[joint].kind is JointKind.REVOLUTE
            and robot.joints[joint].name not in functions
        ]
        self._still = [joint for joint in curved if joint not in self._turning]

    def unit(self, joint: int, held: Sequence[int]) -> float:
        """Return the change of a held joint per turn of a loop joint that it moves [rad or m].

        Infinite if the held joint moves no loop joint by couplings alone, or a prismatic one.
        """
        if joint in self._turning or joint in self._still:
            return tau if joint in self._turning else inf
        rates = self._rates(joint, held)
        if any(rates.get(other, 0.0) > _TIED for other in self._still):
            return inf
        turns = [rates[other] for other in self._turning if rates.get(other, 0.0) > _TIED]
        return tau / max(turns, default=0.0) if turns else inf

    def shift(self, way: Path, k: int, unit: float) -> Array | None:
        """Go in steps of `unit` from the reference until all joints are as before.

        Returns
        -------
        (nq,) the change of loop joints and of the held joint, or None if no whole turn is
        possible. Joints that are only coupled, and not held, follow from any start.
        """
        entries, reference = way.plan.entries, way.plan.reference
        turning = [self._robot.q_offsets[joint] for joint in self._turning]
        still = [self._robot.q_offsets[joint] for joint in self._still]
        good, wanted = reference.copy(), reference[entries]
        way.branch.resume(way.branch.reference)
        for count in range(1, 1 + int(MOST_CALLS * way.plan.reach[k] / unit)):
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
        """Return the rates of joints tied to held joints by couplings alone, per held rate."""
        joints, rows = self._cluster.joints, self._cluster.coupling_rows()[:, :-1]
        every = np.eye(len(joints))
        equations = np.concatenate([every[[joints.index(index) for index in held]], rows]).T
        # Joints as sums of held joints and couplings, where such a sum exists.
        shares = np.linalg.lstsq(equations, every, rcond=None)[0]
        left = np.abs(equations @ shares - every).max(axis=0)
        rates = np.abs(shares[list(held).index(joint)])
        return {index: float(rates[i]) for i, index in enumerate(joints) if left[i] <= _TIED}
