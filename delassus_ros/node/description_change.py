"""Following the robot description while the node runs."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rclpy.node import Node

from delassus_ros.errors import AlgorithmError
from delassus_ros.node.computation import Computation
from delassus_ros.node.exchange import make_solver, refusal
from delassus_ros.node.handover import Handover
from delassus_ros.node.settings import Settings
from delassus_ros.solver import DelassusSolver


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
        self._make = make
        self._give_up = give_up
        self._wanted = ""
        self._handover = Handover(node, between, adopt, self._failed)

    @property
    def building(self) -> bool:
        """Whether a change has begun and not ended."""
        return self._handover.building

    def follow(self, description: str, settings: Settings) -> None:
        """Begin to change to another description, instead of one that was begun with.

        Parameters
        ----------
        description : the URDF text.
        settings : what to make of it.
        """
        if self.building and description == self._wanted:
            return
        self.failure = ""
        self._wanted = description
        self._handover.begin(
            "making another robot",
            lambda unwanted: self._made(description, settings, unwanted),
        )

    def stay(self) -> None:
        """Want the present description; a change that has begun is given up."""
        self.failure = ""
        self._handover.give_up()

    def close(self) -> None:
        """Give up a change that has begun, and end its thread and process."""
        self._handover.close()

    def _made(
        self, description: str, settings: Settings, unwanted: threading.Event
    ) -> Computation:
        """Return all that follows from a description; called by another thread."""
        problem = settings.problem(description)
        # Of a closed robot the closure is compiled as well.
        warm = settings.closure if problem.robot.is_closed else None
        solvers: dict[str, DelassusSolver] = {}
        for algorithm in dict.fromkeys((settings.algorithm, settings.fallback)):
            if algorithm:
                reason = refusal(algorithm, problem)
                if reason is not None:
                    raise AlgorithmError(reason)
                solvers[algorithm] = make_solver(problem, algorithm, unwanted, warm)
                warm = None
        fallback = solvers.get(settings.fallback)
        return self._make(settings, description, solvers[settings.algorithm], fallback)

    def _failed(self, error: Exception) -> None:
        self._give_up(str(error))
        # Last, as the parameter may be set back, which is followed, too: then what comes of that
        # is to be said, unless it is the description in use.
        if not self.building:
            self.failure = str(error)
