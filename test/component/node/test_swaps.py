"""Algorithms exchanged under load: nothing is missed, mixed or wrong, and nothing grows."""

from __future__ import annotations

import gc
import itertools
import threading
import time
import weakref

import numpy as np
import pytest
from allocated import allocated
from delassus_msgs_py import matrix_to_numpy
from hanging import HANG_S
from node_support import (
    FEET,
    OK,
    relative_error,
    set_parameters,
    solve,
)
from ros_support import children, stamp_of

from delassus.compiler.runtime.kernel import CompiledKernel
from delassus_ros.node import computation, configuration

PERIOD = 0.005  # s between joint states


FIVE = ("efpa", "ltl", "kjr", "pv_osim", "pv_osimr")
TWO = ("dense", "pv_osimr")


def kernels() -> int:
    """Count the kernels that there are in this process."""
    gc.collect()
    return sum(type(each) is CompiledKernel for each in gc.get_objects())


def swap(graph, start, urdf, robot, times: int, names: tuple[str, ...]) -> None:
    """Go through algorithms while joint states come; look at every matrix."""
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
        change = node._configuration.change
        # Also seen in a matrix, so that on a busy machine each change is.
        if change.building or graph.matrices[-1].algorithm != wanted:
            continue
        assert node._configuration.computation.tick.algorithm == wanted
        if swaps == times // 2:
            grown, there = allocated(), kernels()
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


def test_a_hundred_swaps_under_load(graph, start, urdf, robot) -> None:
    swap(graph, start, urdf, robot, 100, TWO)


def test_thirty_swaps_among_five_under_load(graph, start, urdf, robot) -> None:
    swap(graph, start, urdf, robot, 30, FIVE)


@pytest.mark.slow
@pytest.mark.parametrize("names", [TWO, FIVE], ids=["two", "five"])
def test_a_thousand_swaps_under_load(graph, start, urdf, robot, names: tuple[str, ...]) -> None:
    swap(graph, start, urdf, robot, 1000, names)


def test_an_algorithm_that_was_in_use_is_loaded_while_the_present_one_answers(
    graph, ready, robot, urdf, q, monkeypatch
) -> None:
    node = ready()
    change(graph, node, "efpa", robot, q)

    def fail(*_: object) -> None:
        raise AssertionError("compiled anew")

    monkeypatch.setattr(computation, "BackgroundBuild", fail)
    loading, make_solver = threading.Event(), configuration.make_solver

    def waiting(problem, algorithm, cancelled):
        assert loading.wait(HANG_S)
        return make_solver(problem, algorithm, cancelled)

    monkeypatch.setattr(configuration, "make_solver", waiting)
    for name, before in (("pv_osimr", "efpa"), ("efpa", "pv_osimr")):
        loading.clear()
        set_parameters(node, algorithm=name)
        present = graph.ask(robot.joint_names, q)
        assert (present.algorithm, present.validity) == (before, OK)
        loading.set()
        answer = graph.ask_until(lambda m, n=name: m.algorithm == n, robot.joint_names, q)
        assert answer.validity == OK
        assert relative_error(matrix_to_numpy(answer), solve(urdf, q)) < 1e-10


def test_the_old_kernel_is_freed(graph, start, robot, q) -> None:
    """With the next change, and not before nobody holds it."""
    node = start(rows="all")
    graph.ask(robot.joint_names, q)
    change(graph, node, "dense", robot, q)
    solver = node._configuration.computation.solver
    holder, old = solver.bind(), weakref.ref(solver._kernel)
    del solver
    for name in ("pv_osimr", "ltl"):
        change(graph, node, name, robot, q)
    gc.collect()
    # Somebody may still be in it: it has to compute as before.
    holder.inputs["q"][...] = q
    assert holder.solve().status == 0
    del holder
    gc.collect()
    assert old() is None
    # The one before the present one goes with the activation.
    last = weakref.ref(node._configuration.computation.solver._kernel)
    change(graph, node, "dense", robot, q)
    node.trigger_deactivate()
    gc.collect()
    assert last() is None


def change(graph, node, name: str, robot, q) -> None:
    """Change the algorithm, and wait until that has ended."""
    set_parameters(node, algorithm=name)
    graph.ask_until(lambda m: m.algorithm == name, robot.joint_names, q)
    graph.until(lambda: not node._configuration.change.building, "end of the change")
