"""Closures bound to measured joints; what was not expected is made by a thread."""

from __future__ import annotations

from delassus_ros.closure import BoundClosure, Closure
from delassus_ros.errors import DelassusError
from delassus_ros.node.background import BackgroundTask
from delassus_ros.node.joint_names import listed

_MOST = 64
"""Sets of joints besides the usual ones that are kept; a robot has a few publishers."""


class BeingMadeError(DelassusError):
    """What follows from these measured joints is being made; it is to be asked for again."""


class BoundClosures:
    """Bound closures of a robot, one for each set of measured joints.

    Those for the independent joints and for all joints are made at once. Another one, for which
    code may have to be compiled, is made by a thread when it is first asked for, one at a time.
    Not by a process, as kernels are: that takes a second to begin, where all of this takes some
    hundredths for most robots, and can hand its code over only where there is a disk cache. Most
    of the time is LLVM's, which works without Python's lock.

    Parameters
    ----------
    closure : what is bound.

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
        self._task: BackgroundTask[BoundClosure] | None = None
        self._wanted: tuple[str, ...] = ()

    def is_usual(self, joints: tuple[str, ...]) -> bool:
        """Whether the one for these joints was made at once."""
        return joints in self._usual

    def of(self, joints: tuple[str, ...]) -> BoundClosure:
        """Return the one for these joints, in model order; the same one as before.

        Raises
        ------
        BeingMadeError
            If it is being made, or its turn comes when another one is there.
        InputError
            If the joints do not determine the others; names the loop.
        DelassusError
            If it could not be made; who asks again has it tried again.
        """
        self._take_in(joints)
        found = self._usual.get(joints) or self._others.get(joints)
        if found is not None:
            return found
        if self._task is None or joints != self._wanted:
            self._closure.check(joints)
        if self._task is None:
            self._wanted = joints
            # LLVM must not be at work when the process ends: that waits for it.
            self._task = BackgroundTask(
                "closing loops", lambda _: self._bound(joints), daemon=False
            )
        raise BeingMadeError(
            f"what follows from measured {listed('joint', joints)} is being made; ask again"
        )

    @property
    def tasks(self) -> list[BackgroundTask[BoundClosure]]:
        """What is being made, if anything is."""
        return [] if self._task is None or self._task.ended else [self._task]

    def _bound(self, joints: tuple[str, ...]) -> BoundClosure:
        """Return a new one; called by another thread."""
        return self._closure.bind(joints)

    def _take_in(self, joints: tuple[str, ...]) -> None:
        """Take in what has been made; raise what making it raised, if it is what is asked for."""
        task = self._task
        if task is None or not task.ended:
            return
        self._task = None
        try:
            made = task.result()
        except Exception:
            if joints == self._wanted:
                raise
        else:
            if len(self._others) >= _MOST:
                del self._others[next(iter(self._others))]
            self._others[self._wanted] = made
