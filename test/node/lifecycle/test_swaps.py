"""Algorithms exchanged under load: nothing is missed, mixed or wrong, and nothing grows."""

from __future__ import annotations

import gc
import itertools
import time
import weakref

import numpy as np
import pytest
from allocated import allocated
from delassus_msgs_py import matrix_to_numpy
from node_support import (
    FEET,
    OK,
    relative_error,
    set_parameters,
    solve,
)
from ros_support import children, stamp_of

from delassus_ros.compiler.runtime.kernel import CompiledKernel
from delassus_ros.node.lifecycle import changes as live_changes

PERIOD = 0.005  # s between joint states


MADE = ("efpa", "ltl", "kjr", "pv_osim", "pv_osimr")
"""More than are kept: each is made anew when its turn comes."""
KEPT = ("dense", "pv_osimr")


def kernels() -> int:
    """Count the kernels that there are in this process."""
    gc.collect()
    return sum(type(each) is CompiledKernel for each in gc.get_objects())


def swap(graph, start, urdf, robot, monkeypatch, times: int, names: tuple[str, ...]) -> int:
    """Go through algorithms while joint states come; look at every matrix.

    Returns
    -------
    How many solvers were made in the second half of the changes.
    """
    make_solver, made = live_changes.make_solver, []

    def counted(problem, algorithm, cancelled):
        made.append(algorithm)
        return make_solver(problem, algorithm, cancelled)

    monkeypatch.setattr(live_changes, "make_solver", counted)
    # That the machine pauses for a while is not what is looked at.
    node = start(contacts_timeout=0.0, input_timeout=10.0)
    graph.touch(FEET)
    rng = np.random.default_rng(8)
    postures = rng.uniform(-1, 1, (20, robot.nq)).tolist()
    expected = [solve(urdf, q) for q in postures]
    graph.ask_until(lambda m: m.validity == OK, robot.joint_names, postures[0])
    # All are in the cache and have been loaded, before memory is looked at.
    for name in names:
        set_parameters(node, algorithm=name)
        graph.ask_until(lambda m, name=name: m.algorithm == name, robot.joint_names, postures[0])
    already, first = len(graph.matrices), graph.matrices[-1].sequence
    sent: dict[int, int] = {}
    swaps, wanted, grown, there, due = 0, names[-1], 0, 0, time.monotonic()
    for k in itertools.count():
        which = k % len(postures)
        sent[graph.move(robot.joint_names, postures[which])] = which
        due = max(due + PERIOD, time.monotonic())
        graph.spin(due)
        change = node._configuration.algorithm
        # Also seen in a matrix, so that on a busy machine each change is.
        if change.building or graph.matrices[-1].algorithm != wanted:
            continue
        assert node._configuration.computation.pipeline.algorithm == wanted
        if swaps == times // 2:
            grown, there = allocated(), kernels()
            made.clear()
        if swaps == times:
            break
        wanted = names[swaps % len(names)]
        swaps += 1
        set_parameters(node, algorithm=wanted)
    last = max(sent)
    graph.until(lambda: stamp_of(graph.matrices[-1]) >= last, "answer to the last one")
    answers = graph.matrices[already:]
    assert {m.validity for m in answers} == {OK}
    assert {m.reasons for m in answers} == {0}
    assert {m.algorithm for m in answers} == set(names)
    for message in answers:
        error = relative_error(matrix_to_numpy(message), expected[sent[stamp_of(message)]])
        assert error < 1e-10
    # None missed: each is answered, or counted as superseded by a newer one.
    numbers = [m.sequence for m in answers]
    assert numbers[-1] - first == len(sent)
    assert numbers == sorted(set(numbers))
    changes = sum(a.algorithm != b.algorithm for a, b in itertools.pairwise(answers))
    assert changes == times
    growth = allocated() - grown
    assert growth < 3_000_000 + 20_000 * times, f"{growth} bytes in {times // 2} swaps"
    # Machine code is not among those bytes.
    assert kernels() == there
    assert children() == set()
    return len(made)


def test_a_hundred_swaps_under_load(graph, start, urdf, robot, monkeypatch) -> None:
    assert swap(graph, start, urdf, robot, monkeypatch, 100, KEPT) == 0


def test_thirty_swaps_whose_solvers_are_made(graph, start, urdf, robot, monkeypatch) -> None:
    assert swap(graph, start, urdf, robot, monkeypatch, 30, MADE) == 15


@pytest.mark.slow
@pytest.mark.parametrize("names", [KEPT, MADE], ids=["kept", "made"])
def test_a_thousand_swaps_under_load(
    graph, start, urdf, robot, monkeypatch, names: tuple[str, ...]
) -> None:
    made = swap(graph, start, urdf, robot, monkeypatch, 1000, names)
    assert made == (500 if names == MADE else 0)


def test_an_algorithm_that_was_in_use_comes_back_at_the_next_tick(
    graph, ready, robot, urdf, q, monkeypatch
) -> None:
    """Nothing is made anew: the change has ended when the next matrix is there."""
    node = ready()
    change(graph, node, "efpa", robot, q)

    def fail(*_: object) -> None:
        raise AssertionError("made anew")

    monkeypatch.setattr(live_changes, "make_solver", fail)
    # Nor does it end before, because none comes for a while.
    monkeypatch.setattr(live_changes, "_HANDOVER_POLL_S", 3600.0)
    for name in ("pv_osimr", "efpa", "pv_osimr"):
        set_parameters(node, algorithm=name)
        # Once: of one that is sent again, the answer would be by the new one.
        already = len(graph.matrices)
        graph.move(robot.joint_names, q)
        graph.until(lambda n=already: len(graph.matrices) > n, "answer")
        assert graph.matrices[already].algorithm != name
        second = graph.ask(robot.joint_names, q)
        assert (second.algorithm, second.validity) == (name, OK)
        assert not node._configuration.algorithm.building
        assert relative_error(matrix_to_numpy(second), solve(urdf, q)) < 1e-10


def test_the_old_kernel_is_freed(graph, start, robot, q) -> None:
    """When three others were in use since and one is made; and not before nobody holds it."""
    node = start(rows="all")
    graph.ask(robot.joint_names, q)
    changed = node._configuration.algorithm
    change(graph, node, "dense", robot, q)
    holder = changed._solver.bind()
    old = weakref.ref(changed._solver._kernel)
    for name in ("pv_osimr", "ltl", "kjr", "efpa"):
        change(graph, node, name, robot, q)
        gc.collect()
        assert old() is not None
    change(graph, node, "pv_osim", robot, q)
    gc.collect()
    # Somebody may still be in it: it has to compute as before.
    holder.inputs["q"][...] = q
    assert holder.solve().status == 0
    del holder
    gc.collect()
    assert old() is None
    # Those that are kept for a change back, or for nothing, go with the activation.
    change(graph, node, "dense", robot, q)
    kept = [weakref.ref(changed._kept["kjr"]._kernel), weakref.ref(changed._dropped[0]._kernel)]
    node.trigger_deactivate()
    gc.collect()
    assert [each() for each in kept] == [None, None]


def change(graph, node, name: str, robot, q) -> None:
    """Change the algorithm, and wait until that has ended."""
    set_parameters(node, algorithm=name)
    graph.ask_until(lambda m: m.algorithm == name, robot.joint_names, q)
    graph.until(lambda: not node._configuration.algorithm.building, "end of the change")
