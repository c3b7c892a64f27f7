"""Real-time mode: all that makes a process keep its rate, done, and undone among several nodes.

None of it is needed, and most of it needs permission. What is refused is said in words, and the
rest goes on without.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from delassus_ros.node.blas import limit_blas_threads
from delassus_ros.node.garbage import GarbageKeeper
from delassus_ros.node.memory_lock import lock_memory, unlock_memory
from delassus_ros.node.outcome import Outcome
from delassus_ros.node.scheduling import (
    restore_processors,
    set_priority,
    set_processors,
    thread_priority,
)
from delassus_ros.node.wakeup import WakeupLimit

_OF_EACH = ("garbage", "wakeup")
"""What each node asks for by itself, whatever others of the process have asked for."""


@dataclass(frozen=True)
class RealtimeSettings:
    """What is asked for; nothing by default but what needs no permission.

    Attributes
    ----------
    priority : of SCHED_FIFO, 1 to 99; 0 for normal scheduling.
    processors : numbers of the processors to run on; all if empty.
    lock_memory : keep the process from being swapped out.
    hold_garbage : collect garbage between joint states only.
    wakeup_latency : most that idle processors take to wake up [µs]; -1 for what is set.
    """

    priority: int = 0
    processors: tuple[int, ...] = ()
    lock_memory: bool = False
    hold_garbage: bool = True
    wakeup_latency: int = -1


class RealtimeMode:
    """Takes the process into real-time mode and back.

    All of it is the process's: where several nodes of one process ask for the same thing, the
    latest counts, and what the first found is restored when the last one leaves.
    """

    _entered: ClassVar[list[RealtimeMode]] = []
    """Those in real-time mode, in the order in which they entered."""

    def __init__(self) -> None:
        self._undo: dict[str, Callable[[], Outcome]] = {}
        self._garbage = GarbageKeeper()
        self._wakeup = WakeupLimit()
        self.idle = self._garbage.idle
        """To be called after each tick, when the answer is on its way."""
        self.rest = self._garbage.rest
        """To be called about once a second, between two ticks."""

    def enter(self, settings: RealtimeSettings) -> list[Outcome]:
        """Do all that is asked for; go back first from what an earlier call did.

        Memory is locked and garbage collected before the priority is raised, as both take long.
        What an earlier call did and cannot be undone comes first among the outcomes.
        """
        outcomes = [outcome for outcome in self.leave() if not outcome.done]
        processors = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()
        priority = thread_priority()
        locked = any("memory" in other._undo for other in self._entered)
        steps: list[tuple[str, bool, Callable[[], Outcome], Callable[[], Outcome] | None]] = [
            ("algebra", True, limit_blas_threads, None),
            ("garbage", settings.hold_garbage, self._garbage.hold, self._garbage.release),
            (
                "memory",
                settings.lock_memory,
                lock_memory,
                (lambda: Outcome(True, "memory stays locked")) if locked else unlock_memory,
            ),
            (
                "wakeup",
                settings.wakeup_latency >= 0,
                lambda: self._wakeup.hold(settings.wakeup_latency),
                self._wakeup.release,
            ),
            (
                "processors",
                bool(settings.processors),
                lambda: set_processors(settings.processors),
                lambda: restore_processors(processors),
            ),
            (
                "priority",
                settings.priority != 0,
                lambda: set_priority(settings.priority),
                lambda: set_priority(priority),
            ),
        ]
        for name, wanted, do, undo in steps:
            if wanted:
                outcome = do()
                outcomes.append(outcome)
                if outcome.done and undo is not None:
                    self._undo[name] = undo
        RealtimeMode._entered.append(self)
        return outcomes

    def leave(self) -> list[Outcome]:
        """Undo what :meth:`enter` did, last things first; return what became of each."""
        if self not in RealtimeMode._entered:
            return []
        place = RealtimeMode._entered.index(self)
        later = RealtimeMode._entered[place + 1 :]
        del RealtimeMode._entered[place]
        outcomes = []
        while self._undo:
            name, undo = self._undo.popitem()
            others = () if name in _OF_EACH else later
            heir = next((mode for mode in others if name in mode._undo), None)
            if heir is None:
                outcomes.append(undo())
            else:
                # What it would go back to is gone by then: it goes back to what was before both.
                heir._undo[name] = undo
        return outcomes
