"""How much Python a call runs and how much memory it takes: numbers that may not grow unnoticed.

Nothing is timed here, so that a busy machine fails no test. A call from Python costs some 50 ns, a
call of a built-in function 20 ns and a block of memory 50 ns: what makes `solve` slow by a
microsecond shows in these numbers.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from friction import feet_problem, standing_inputs
from friction import random_problem as contact_problem
from linkages import REFERENCE, assembled, four_bar
from robots import LEGS
from small import feed, problem, walker

from delassus import BoundSolver, Closure, Contact, DelassusSolver, ForceSolver, Problem
from delassus.closure import ClosureStatus
from delassus.samples import random_inputs

WARM = 1100
"""Calls before counting: Python 3.10 gives a function its caches at its 1024th call."""
COUNTED = 64
"""Calls whose results are kept while memory is counted, so that free lists do not hide blocks."""


@dataclass(frozen=True)
class Work:
    """What one call takes, counted or as the largest number that is allowed.

    Attributes
    ----------
    calls : calls of Python functions, the outermost one included.
    built_ins : calls of functions that are written in C.
    blocks : blocks of memory that the result keeps.
    kept : bytes that the result keeps.
    peak : bytes that are in use at most during the call, beside those before it.
    """

    calls: int
    built_ins: int
    blocks: float
    kept: float
    peak: float


LIMITS = {
    "solve": Work(2, 3, 5, 1150, 1200),
    "solve, contacts named": Work(2, 4, 5, 450, 500),
    "solve, all outputs": Work(52, 37, 35, 5100, 5400),
    "bound.solve": Work(1, 1, 0, 0, 256),
    "bound.solve, all outputs": Work(10, 3, 0, 0, 256),
    "bound.solve, moving contacts": Work(2, 1, 0, 0, 256),
    "bound.constrained_dynamics": Work(4, 1, 0, 0, 200),
    "bound.task": Work(3, 1, 0, 0, 400),
    "bound closure": Work(24, 16, 0, 0, 1200),
    "solve_batch of 64": Work(31, 38, 10, 52_400, 53_600),
    "ForceSolver.solve": Work(9, 9, 22, 2700, 2800),
    "bound.contact_forces": Work(5, 1, 0, 0, 256),
    "tick of the node": Work(60, 34, 1.5, 1200, 1400),
    "tick with a schedule": Work(81, 40, 1.5, 1250, 1400),
}
"""The largest numbers that hold with Python 3.10 to 3.14. Later ones run comprehensions without a
call, and their objects differ by some bytes, so that a count may be smaller."""
ADVICE = (
    "Look at what was added to this path and take it out, or move it behind the first failure. If "
    "it has to stay, measure the call before and after (make bench ARGS=--quick), write both "
    "times into the commit, and raise the number in LIMITS of this file."
)


def work_of(call: Callable[[], Any]) -> Work:
    """Count the work of a call."""
    for _ in range(WARM):
        call()
    counts = {"call": 0, "c_call": 0}

    def profile(frame: Any, event: str, argument: Any) -> None:
        if event in counts:
            counts[event] += 1

    # Others may have put functions beside the collector, which would be counted.
    gc.collect()
    gc.disable()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        gc.enable()
    kept: list[Any] = [None] * COUNTED
    tracemalloc.start()
    try:
        call()
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        call()
        peak = tracemalloc.get_traced_memory()[1] - before
        tracemalloc.clear_traces()
        for k in range(COUNTED):
            kept[k] = call()
        traces = tracemalloc.take_snapshot().traces
        size = sum(trace.size for trace in traces)
    finally:
        tracemalloc.stop()
    # The closing call of setprofile is counted, too.
    return Work(
        counts["call"], counts["c_call"] - 1, len(traces) / COUNTED, size / COUNTED, float(peak)
    )


def solve() -> Callable[[], Any]:
    solver, q = DelassusSolver(problem()), np.array([0.3, -1.1, 0.7])
    return lambda: solver.solve(q)


def solve_named() -> Callable[[], Any]:
    solver, q, names = DelassusSolver(problem()), np.array([0.3, -1.1, 0.7]), ("c0", "c2")
    return lambda: solver.solve(q, names)


def _everything() -> tuple[DelassusSolver, dict[str, Any]]:
    this = problem(outputs=["J", "JdotV", "M", "MinvJT", "a0", "h", "qdd0"])
    return DelassusSolver(this), random_inputs(this, 1)


def solve_everything() -> Callable[[], Any]:
    solver, inputs = _everything()
    return lambda: solver.solve(**inputs)


def bound_solve() -> Callable[[], Any]:
    bound, q = DelassusSolver(problem()).bind(), np.array([0.3, -1.1, 0.7])
    return lambda: bound.solve(q)


def bound_solve_everything() -> Callable[[], Any]:
    solver, inputs = _everything()
    bound, q = solver.bind(), inputs["q"]
    feed(bound, inputs)
    return lambda: bound.solve(q)


def bound_solve_moving() -> Callable[[], Any]:
    contacts = [
        Contact("rolls", "foot0", moving="position"), Contact("turns", "foot2", moving="pose"),
    ]  # fmt: skip
    bound = DelassusSolver(Problem(walker(), contacts)).bind()
    bound.inputs["q"] = [0.3, -1.1, 0.7]
    position, turn = bound.contact_positions["rolls"], bound.contact_orientations["turns"]

    def call() -> Any:
        position[0], turn[0] = 0.1, 0.01
        return bound.solve()

    return call


def bound_solved(active: Sequence[str] = LEGS) -> BoundSolver:
    """Return a bound solver of the quadruped's dynamics after a call of `solve`."""
    feet, outputs = feet_problem(), ["a0", "qdd0", "J", "MinvJT", "h", "JdotV"]
    this = Problem(feet.robot, feet.contacts, "world", outputs)
    bound = feed(DelassusSolver(this).bind(), standing_inputs(this))
    bound.activate(active)
    bound.solve()
    return bound


def constrained_dynamics() -> Callable[[], Any]:
    bound = bound_solved()
    bound.constrained_dynamics(np.ones(12))
    return bound.constrained_dynamics


def task() -> Callable[[], Any]:
    return bound_solved().task("LF", ["RF", "LH"]).compute


def bound_closure() -> Callable[[], Any]:
    pairs = [np.array([angle, assembled(angle)[1]]) for angle in np.linspace(0.8, 0.9, 50)]
    bound, coming = Closure(four_bar(), REFERENCE).bind(["crank", "rocker"]), cycle(pairs)

    def call() -> ClosureStatus:
        bound.measured[:] = next(coming)
        status = bound.solve()
        assert status is ClosureStatus.OK
        return status

    return call


def batch() -> Callable[[], Any]:
    solver, Q = DelassusSolver(problem()), np.full((64, 3), 0.3)
    return lambda: solver.solve_batch(Q)


def forces() -> Callable[[], Any]:
    solver, (G, a0) = ForceSolver(["point"] * 4, 0.6), contact_problem(1)
    return lambda: solver.solve(G, a0)


def bound_forces() -> Callable[[], Any]:
    bound = bound_solved(["RH", "LF", "RF"])
    bound.set_friction(0.6)
    return bound.contact_forces


def tick(scheduled: bool = False) -> Callable[[], Any]:
    """Return what the node does between a joint state's bytes and a matrix's."""
    import_module("delassus_msgs")
    import_module("sensor_msgs")
    from delassus_msgs.msg import ActiveContacts, ContactSchedule
    from tick_support import OK, Rig, to_message

    from delassus_ros.inputs.schedule import ScheduleInput

    rig = Rig(DelassusSolver(problem()), schedule=ScheduleInput(60.0) if scheduled else None)
    names = list(rig.problem.contacts.names)
    if scheduled:
        # The mode of each joint state is that of the one before.
        plan = ContactSchedule(names=names, times=[0.0], end=60.0)
        plan.status, plan.header.stamp = [ActiveContacts.ACTIVE] * len(names), to_message(rig.now)
        rig.read("contact_schedule", plan)
        rig.touching = tuple(names)
    else:
        rig.touch(*names)
    states: list[tuple[int, bytes]] = []
    for _ in range(WARM + COUNTED + 8):
        # All within the time that contacts are believed.
        rig.wait(0.01)
        state = rig.state()
        # But for the stamp the same bytes: those between fields are what was in memory before, and
        # a comparison without them takes more calls.
        first = states[0][1] if states else state
        states.append((rig.now, first[:4] + state[4:12] + first[12:]))
    coming, tick = iter(states), rig.tick

    def call() -> bytes:
        rig.now, state = next(coming)
        tick.read("joint_states", state)
        ((_, data),) = tick.answer((), True)
        return data

    published = rig.publish(call())
    assert published is not None and published.validity == OK
    return call


CALLS: dict[str, Callable[[], Callable[[], Any]]] = {
    "solve": solve,
    "solve, contacts named": solve_named,
    "solve, all outputs": solve_everything,
    "bound.solve": bound_solve,
    "bound.solve, all outputs": bound_solve_everything,
    "bound.solve, moving contacts": bound_solve_moving,
    "bound.constrained_dynamics": constrained_dynamics,
    "bound.task": task,
    "bound closure": bound_closure,
    "solve_batch of 64": batch,
    "ForceSolver.solve": forces,
    "bound.contact_forces": bound_forces,
    "tick of the node": tick,
    "tick with a schedule": lambda: tick(scheduled=True),
}


@pytest.mark.parametrize("name", LIMITS)
def test_a_call_takes_no_more_than_it_did(name: str) -> None:
    found, limit = work_of(CALLS[name]()), LIMITS[name]
    more = {
        what: (getattr(found, what), getattr(limit, what))
        for what in Work.__dataclass_fields__
        if getattr(found, what) > getattr(limit, what)
    }
    words = ", ".join(f"{what} {now:g}, at most {most:g}" for what, (now, most) in more.items())
    assert not more, f"{name} takes more than it did: {words}. {ADVICE}\n{found}"


def test_what_is_counted_is_what_is_there() -> None:
    """The counter sees calls, built-in functions and memory that a call adds."""
    array = np.zeros(1000)

    def inner() -> np.ndarray:
        return array.copy()

    plain = work_of(lambda: array)
    found = work_of(lambda: (inner(), len("abc"))[0])
    assert (plain.calls, plain.built_ins, plain.kept) == (1, 0, 0.0)
    assert (found.calls, found.built_ins) == (2, 2)
    assert found.kept >= 8000 and found.peak >= 8000 and 2 <= found.blocks <= 3


def test_a_solution_that_solve_copies_itself_has_what_a_copy_has() -> None:
    solver = DelassusSolver(problem())
    found = solver.solve(random_inputs(solver.problem, 0)["q"])
    again = found.copy()
    for name in (slot for kind in type(found).__mro__ for slot in getattr(kind, "__slots__", ())):
        value, copied = getattr(found, name), getattr(again, name)
        assert value is copied or np.array_equal(value, copied) or value == copied, name
