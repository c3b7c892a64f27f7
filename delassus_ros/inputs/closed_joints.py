"""The gate for robots with closed loops: a closure computes the joints that are not measured.

Knows no ROS, as the gate for open chains. A closure is bound to the measured joints.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from delassus_ros.closure import BoundClosure, Closure, ClosureStatus
from delassus_ros.errors import DelassusError, InputError, listed
from delassus_ros.inputs.findings import Finding, Reason
from delassus_ros.inputs.joints import Gate, InputStatus, JointGate, Motion, size_mismatch
from delassus_ros.inputs.limits import Limits
from delassus_ros.inputs.sources import PublisherWatch, two_publishers
from delassus_ros.model.spatial import Array
from delassus_ros.ros.arrival import Arrival, age_of

_WARNINGS = {
    ClosureStatus.CONTRADICTION: (Reason.LOOP_INCONSISTENT, "{}"),
    ClosureStatus.NOT_FINITE: (Reason.JOINT_NOT_FINITE, "{}; expected finite numbers"),
    ClosureStatus.UNREACHABLE: (
        Reason.LOOP_NOT_CLOSED,
        "{}: does not close at the measured positions on the branch of the reference",
    ),
    ClosureStatus.SINGULAR: (
        Reason.LOOP_SINGULAR,
        "{}: is singular there: its other joints do not follow from the measured ones",
    ),
    ClosureStatus.WRONG_BRANCH: (
        Reason.LOOP_WRONG_BRANCH,
        "{}; reference.names and reference.values say which one is meant",
    ),
    ClosureStatus.OUTSIDE_LIMITS: (Reason.LOOP_NOT_CLOSED, "{}, its limits, where it closes"),
    ClosureStatus.NOT_CLOSED: (
        Reason.LOOP_NOT_CLOSED, "{}: does not close; its constraints may contradict each other"
    ),
}  # fmt: skip
_MOST_ROUTES = 64
"""Sets of measured joints with a route; a robot has a few publishers."""


@dataclass(frozen=True, eq=False)
class _Route:
    """Gate and closure for one set of measured joints."""

    joints: frozenset[str]
    gate: JointGate
    bound: BoundClosure


@dataclass(frozen=True)
class _Aside:
    """A joint state that is ignored while other publishers make matrices."""

    warning: Finding | None = None


@dataclass(frozen=True, eq=False)
class _Message:
    """A joint state whose route is not known yet; fields as in :meth:`JointGate.read`."""

    names: Sequence[str]
    stamp: int
    values: Array
    motion: Motion
    arrival: Arrival

    def read_by(self, gate: JointGate, now: int, q: Array) -> InputStatus:
        """Return the status that a gate gives the message, at its arrival or later."""
        delay = self.arrival.since(now) or 0
        return gate.read(self.names, self.stamp, self.values, now, q, delay, self.motion)


class ClosedGate:
    """Lets joint states through from which the positions of all joints follow.

    A message whose joints determine all remaining joints is used alone; while such messages come,
    insufficient messages are ignored. Otherwise the joints of several publishers are merged, as
    by :class:`~delassus_ros.inputs.joints.JointGate`.

    The code for measured joints other than the independent ones or all of them is compiled at
    their first message; see :class:`~delassus_ros.inputs.closed_joints.BoundClosures`. A set
    of joints whose code cannot be compiled is refused until :meth:`reset`.

    Parameters
    ----------
    closure : computes the joints that are not measured.
    max_skew, timeout : as for :class:`~delassus_ros.inputs.joints.JointGate` [s].

    Raises
    ------
    RobotError
        If a joint has several positions (planar, floating); names it.
    InputError
        If a time is negative or not a number, or the timeout is zero.
    """

    def __init__(
        self,
        closure: Closure,
        max_skew: float = Limits.max_skew,
        timeout: float = Limits.input_timeout,
    ) -> None:
        self._bounds = BoundClosures(closure)
        self._robot = closure.robot
        # Refuses joints of which none can be measured.
        JointGate(self._robot, max_skew, timeout)
        # In use until the first message shows which joints are measured.
        self._first = JointGate(self._robot, max_skew, timeout, closure.independent)
        self._limits = max_skew, timeout
        self._clock_step, self._topic = 0, self._first.sources.topic
        self._routes: dict[tuple[str, ...], _Route | Finding] = {}
        self._status = InputStatus(Gate.IGNORED, 0, math.nan, Reason.NONE, "")
        self._route: _Route | None = None
        # Routes of the most likely sets of joints are made before the first joint state.
        for joints in (closure.independent, closure.robot.joint_names):
            self._route_of(joints)
        self.reset(0)

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints that are measured at present."""
        return self._gate.joints

    @property
    def motion(self) -> Array:
        """Velocities and efforts of the measured joints, as in :class:`JointGate`."""
        return self._gate.motion

    @property
    def heard(self) -> Arrival:
        """Arrival of the last joint state with joints of the robot."""
        return self._gate.heard

    @property
    def others(self) -> float:
        """Time for which the present publishers are relied on [ns]."""
        return self._gate.others

    @property
    def strangers(self) -> str:
        """Joints of messages that have none of the robot's, in words, as in :class:`JointGate`."""
        return self._gate.strangers

    def set_limits(self, max_skew: float, timeout: float) -> None:
        """Change the limits [s], as in :class:`JointGate`."""
        for gate in self._gates():
            gate.set_limits(max_skew, timeout)
        self._limits = max_skew, timeout

    def set_clock_step(self, step: int) -> None:
        """Set the longest step of simulated time [ns], as in :class:`JointGate`."""
        for gate in self._gates():
            gate.set_clock_step(step)
        self._clock_step = step

    def set_topic(self, topic: str) -> None:
        """Set the name of the topic in messages."""
        for gate in self._gates():
            gate.set_topic(topic)
        self._topic = topic

    def reset(self, now: int) -> None:
        """Return to the state before the first message, at the reference configuration."""
        routes = {joints: r for joints, r in self._routes.items() if isinstance(r, _Route)}
        self._routes = {**routes}
        self._gate = self._first
        for gate in self._gates():
            gate.reset(now)
        for route in routes.values():
            route.bound.reset()
        self._names: Sequence[str] | None = None
        self._route = None
        self._whole = True
        self._passed = Arrival()
        self._publishers = PublisherWatch()
        self._parts: dict[tuple[str, ...], _Message] = {}

    def read(
        self,
        names: Sequence[str],
        stamp: int,
        values: Array,
        now: int,
        q: Array,
        delay: int = 0,
        motion: Motion = (),
        count: int = 0,
    ) -> InputStatus:
        """Return the status of the next joint state, as :meth:`JointGate.read` does.

        The route of a list of names is looked up when the list first comes.

        Parameters
        ----------
        names, stamp, values, now, delay, motion, count : as in :meth:`JointGate.read`.
        q : (nq,) is written if the status is READY, and then holds all joints.
        """
        route = self._route
        if route is None or names is not self._names:
            message = _Message(names, stamp, values, motion, Arrival(now, delay))
            if not (names and len(values)):
                return self._without_positions(message, now, q, delay)
            found = self._choose(message, now)
            if not isinstance(found, _Route):
                return self._without(found, message, now, q, delay)
            route = found
        measured = route.bound.measured
        status = route.gate.read(names, stamp, values, now, measured, delay, motion, count)
        if status.gate is Gate.READY:
            self._passed.note(now, delay)
            _close(route.bound, status, q)
            if self._whole:
                self._publishers.note(now, count, route)
            if self._publishers.two(now) and status.gate is Gate.READY:
                status.reasons |= Reason.SOURCES_CONTRADICT
                what = "joints from which all remaining joints follow"
                status.text = status.text or two_publishers(self._topic, what)
        return status

    def silence(self, now: int, since: float) -> InputStatus | None:
        """Return why no matrix was published for long, as :meth:`JointGate.silence` does."""
        return self._gate.silence(now, since)

    def _gates(self) -> Iterator[JointGate]:
        yield self._first
        for route in self._routes.values():
            if isinstance(route, _Route):
                yield route.gate

    def _choose(self, message: _Message, now: int) -> _Route | Finding | _Aside:
        """Return the route of a joint state, or why it has none."""
        # Routes are looked up by the list of names only where nothing but the names matters.
        self._names = None
        names, present = message.names, set(message.names)
        measured = tuple(joint for joint in self._robot.joint_names if joint in present)
        found = self._route_of(measured) if measured else None
        if isinstance(found, _Route):
            if self._whole and self._route is not None:
                # The missing joints may come from another publisher.
                found.gate.whole_stamp = self._route.gate.whole_stamp
            self._names, self._whole = names, True
            return self._use(found)
        if found is None:
            return _Aside()
        route, timeout = self._route, 1e9 * self._limits[1]
        if route is not None and self._passed.within(self._gate.others, now):
            if not route.joints.issuperset(measured):
                return _Aside(found)
            # A publisher of complete messages does not turn into a publisher of parts.
            return found if self._whole else route
        others = {
            part: held
            for part, held in self._parts.items()
            if part != measured and held.arrival.within(timeout, now)
        }
        self._parts = {**others, measured: message}
        recent = set().union(*self._parts)
        merged = self._route_of(tuple(j for j in self._robot.joint_names if j in recent))
        if isinstance(merged, _Route):
            self._whole = False
            if merged is not route:
                # The messages so far are parts of the first q.
                merged.gate.reset(now)
                for held in others.values():
                    held.read_by(merged.gate, now, merged.bound.measured)
            return self._use(merged)
        return merged

    def _route_of(self, joints: tuple[str, ...]) -> _Route | Finding:
        """Return the route of these measured joints, or why they have none."""
        found = self._routes.get(joints)
        if found is not None:
            return found
        try:
            bound = self._bounds.of(joints)
        except InputError as error:
            text = f"the joint states have {listed('joint', joints)} alone: {error}"
            found = Finding(Reason.JOINT_MISSING, text)
        except DelassusError as error:
            what = listed("joint", joints)
            text = f"the remaining joints cannot be computed from measured {what}: {error}"
            found = Finding(Reason.NOT_CONFIGURED, text)
        else:
            # The binding may have been used by a route that was evicted since.
            bound.reset()
            gate = JointGate(self._robot, *self._limits, joints)
            gate.set_clock_step(self._clock_step)
            gate.set_topic(self._topic)
            found = _Route(frozenset(joints), gate, bound)
        self._routes[joints] = found
        if len(self._routes) > _MOST_ROUTES:
            # Never evict the route in use: set_limits() and reset() must reach it.
            oldest = next(
                joints
                for joints, route in self._routes.items()
                if route is not self._route and not self._bounds.is_usual(joints)
            )
            del self._routes[oldest]
        return found

    def _use(self, route: _Route) -> _Route:
        self._route, self._gate = route, route.gate
        return route

    def _without_positions(self, message: _Message, now: int, q: Array, delay: int) -> InputStatus:
        """Return the status of a joint state that has no names or no positions."""
        names = message.names
        if set(names).intersection(self._robot.joint_names):
            # The status does not depend on which of its joints are measured elsewhere.
            return self._gate.pass_over(message.stamp, now, delay, *size_mismatch(names, 0))
        return message.read_by(self._gate, now, q)

    def _without(
        self, found: Finding | _Aside, message: _Message, now: int, q: Array, delay: int
    ) -> InputStatus:
        """Return the status of a joint state that has no route."""
        known = set(message.names).intersection(self._robot.joint_names)
        if isinstance(found, _Aside) and not known:
            # None of the robot's joints: the text is that of every gate.
            return message.read_by(self._gate, now, q)
        self._gate.heard.note(now, delay)
        status = self._status
        status.stamp = max(message.stamp, 0)
        status.age = age_of(message.stamp, now)
        status.gate, status.reasons, status.text = Gate.IGNORED, Reason.NONE, ""
        if isinstance(found, Finding):
            status.gate = Gate.REFUSED
            status.reasons, status.text = found.reason, found.text
        elif found.warning is not None:
            self._gate.aside = found.warning
            if found.warning.reason is Reason.NOT_CONFIGURED:
                status.reasons = found.warning.reason
                why = "the message is ignored, as other messages give matrices"
                status.text = f"{found.warning.text}; {why}"
        return status


def warning_of(bound: BoundClosure, closure_status: ClosureStatus) -> Finding | None:
    """Return the warning for a status of :meth:`BoundClosure.solve`; None for OK."""
    if closure_status is ClosureStatus.OK:
        return None
    reason, words = _WARNINGS[closure_status]
    return Finding(reason, words.format(bound.about))


def _close(bound: BoundClosure, status: InputStatus, q: Array) -> None:
    """Write q from measured joints, or refuse them."""
    closure_status = bound.solve()
    if closure_status.is_valid:
        np.copyto(q, bound.q)
    warning = warning_of(bound, closure_status)
    if warning is None:
        return
    status.reasons |= warning.reason
    status.text = warning.text
    if not closure_status.is_valid:
        status.gate = Gate.REFUSED


_MOST = 64
"""Sets of joints, besides the usual ones, that are kept; a robot has a few publishers."""


class BoundClosures:
    """Bound closures of a robot, by set of measured joints.

    The closures for the independent joints and for all joints are bound at construction. The
    closure for any other set is compiled at its first use, which delays one answer by some 10 to
    100 ms, or by less if the disk cache has the code.

    Parameters
    ----------
    closure : closure of the robot.

    Raises
    ------
    CompilerError
        If the code for the usual joints cannot be made.
    """

    def __init__(self, closure: Closure) -> None:
        self._closure = closure
        usual = (closure.independent, closure.robot.joint_names)
        self._usual = {joints: closure.bind(joints) for joints in usual}
        self._others: dict[tuple[str, ...], BoundClosure] = {}

    def is_usual(self, joints: tuple[str, ...]) -> bool:
        """Whether the closure for these joints was bound at construction."""
        return joints in self._usual

    def of(self, joints: tuple[str, ...]) -> BoundClosure:
        """Return the closure for these joints, in model order; always the same object.

        Raises
        ------
        InputError
            If the joints do not determine the others; names the loop.
        DelassusError
            If the closure could not be compiled; the next call tries again.
        """
        found = self._usual.get(joints) or self._others.get(joints)
        if found is None:
            found = self._closure.bind(joints)
            if len(self._others) >= _MOST:
                del self._others[next(iter(self._others))]
            self._others[joints] = found
        return found
