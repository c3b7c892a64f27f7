"""Closures by set of measured joints: they compute the positions of the remaining joints."""

from __future__ import annotations

from delassus.closure import BoundClosure, Closure, ClosureStatus
from delassus.recent import Recent
from delassus_ros.inputs.findings import Finding, Reason

_FINDINGS = {
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
_MOST = 64
"""Sets of joints, besides the usual ones, that are stored; a robot has a few publishers."""


def finding_of(bound: BoundClosure, closure_status: ClosureStatus) -> Finding | None:
    """Return the finding for a status of :meth:`BoundClosure.solve`; None for OK."""
    if closure_status is ClosureStatus.OK:
        return None
    reason, text = _FINDINGS[closure_status]
    return Finding(reason, text.format(bound.about))


class BoundClosures:
    """Bound closures of a robot, by set of measured joints.

    The closures for the independent joints and for all joints are bound at construction. The
    closure for any other set is compiled at its first use, which delays one answer by some 10 to
    100 ms, or by less if the disk cache has the code.

    Raises
    ------
    CompilerError
        If the code for the usual joints cannot be made.
    """

    def __init__(self, closure: Closure) -> None:
        self._closure = closure
        usual = (closure.independent, closure.robot.joint_names)
        self._usual = {joints: closure.bind(joints) for joints in usual}
        self._unusual: Recent[tuple[str, ...], BoundClosure] = Recent(_MOST)

    def of(self, joints: tuple[str, ...]) -> BoundClosure:
        """Return the closure for these joints, in model order.

        Raises
        ------
        InputError
            If the joints do not determine the remaining joints; names the loop.
        DelassusError
            If the closure could not be compiled; the next call tries again.
        """
        found = self._usual.get(joints) or self._unusual.get(joints)
        if found is None:
            found = self._closure.bind(joints)
            self._unusual.put(joints, found)
        return found
