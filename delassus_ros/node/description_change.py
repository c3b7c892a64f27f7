"""Following the robot description while the node runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from rclpy.node import Node

from delassus_ros.errors import AlgorithmError
from delassus_ros.node.clocks import STEADY
from delassus_ros.node.computation import Computation
from delassus_ros.node.exchange import Making, make_solver, refusal, yielding
from delassus_ros.settings import Settings
from delassus_ros.solver import DelassusSolver

_POLL = 0.02  # s between looks at what is in the making


class DescriptionChange:
    """Brings the node to another robot, while it goes on with the present one.

    It is read by another thread, and kernels are built in a process of their own; the exchange
    happens between two joint states. A description that cannot be used changes nothing.

    Parameters
    ----------
    node : to make timers with.
    between : calls a function after the next matrix is published, if one is.
    make : returns what follows from a description, given settings and solvers; called by
        another thread.
    adopt : called with that, to use it from now on.
    give_up : called with the reason, if the description cannot be used.

    Attributes
    ----------
    failure : why the last change failed; empty if it did not.
    """

    def __init__(
        self,
        node: Node,
        between: Callable[[Callable[[], None]], None],
        make: Callable[[Settings, str, DelassusSolver, DelassusSolver | None], Computation],
        adopt: Callable[[Computation], object],
        give_up: Callable[[str], object],
    ) -> None:
        self.failure = ""
        self._node = node
        self._between = between
        self._make = make
        self._adopt = adopt
        self._give_up = give_up
        self._wanted = ""
        self._making: Making[Computation] | None = None
        self._timer: Any = None
        self._offered = False

    @property
    def building(self) -> bool:
        """Whether a change has begun and not ended."""
        return self._making is not None

    def follow(self, description: str, settings: Settings) -> None:
        """Begin to change to another description, instead of one that was begun with."""
        if self.building and description == self._wanted:
            return
        self.close()
        self.failure = ""
        self._wanted, self._offered = description, False
        self._making = Making(
            "making another robot", lambda closed: self._made(description, settings, closed)
        )
        self._timer = self._node.create_timer(_POLL, self._poll, clock=STEADY)

    def close(self) -> None:
        """Give up a change that has begun, and end its process."""
        if self._making is not None:
            self._making.close()
        self._making = None
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None

    def _made(
        self, description: str, settings: Settings, closed: threading.Event
    ) -> Computation:
        """Return all that follows from a description; called by another thread."""
        with yielding():
            problem = settings.problem(description)
        # Of a closed robot the closure is compiled as well.
        warm = settings.closure if problem.robot.is_closed else None
        solvers: dict[str, DelassusSolver] = {}
        for algorithm in dict.fromkeys((settings.algorithm, settings.fallback)):
            if algorithm:
                reason = refusal(algorithm, problem)
                if reason is not None:
                    raise AlgorithmError(reason)
                solvers[algorithm] = make_solver(problem, algorithm, closed, warm)
                warm = None
        with yielding():
            fallback = solvers.get(settings.fallback)
            return self._make(settings, description, solvers[settings.algorithm], fallback)

    def _poll(self) -> None:
        making = self._making
        if making is None or not making.ready():
            return
        if self._offered:
            # No matrix has come since the last look.
            self._finish(making)
        else:
            self._offered = True
            self._between(lambda: self._finish(making))

    def _finish(self, making: Making[Computation]) -> None:
        """Make the exchange, unless it was given up meanwhile."""
        if making is not self._making:
            return
        try:
            computation = making.result()
        except Exception as error:
            # A plug-in is somebody else's code: whatever it raises, the old robot goes on.
            self._fail(error)
            return
        self.close()
        self._adopt(computation)

    def _fail(self, error: Exception) -> None:
        self.close()
        self._give_up(str(error))
        # Last, as the parameter may be set back, which is followed, too.
        self.failure = str(error)
