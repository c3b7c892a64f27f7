"""Faults put into delassus_node: each is survived, and no wrong matrix goes unmarked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from delassus_msgs.msg import DelassusMatrix
from delassus_msgs.srv import Compute
from delassus_msgs_py import matrix_to_numpy
from diagnostic_msgs.msg import DiagnosticArray
from hanging import HANG_S
from node_support import (
    DEGRADED,
    FEET,
    INVALID,
    OK,
    refused,
    relative_error,
    set_parameters,
    set_when_joined,
    solve,
    state_of,
)
from rclpy.clock_type import ClockType
from ros_support import SimulatedTime, nanoseconds, stamp_of
from std_msgs.msg import String

from delassus.algorithms import registry
from delassus.algorithms.registry import NumericAlgorithm
from delassus.compiler.cache import disk as cache_module
from delassus.compiler.runtime import packing
from delassus.scalars.ports import Status
from delassus_ros.node.tick import MATRIX, SUMMARY

FALLBACK = DelassusMatrix.REASON_FALLBACK_ALGORITHM
MS, S = 10**6, 10**9
"""Millisecond and second [ns]."""


def check(messages, expected: np.ndarray, tolerance: float = 1e-10) -> None:
    """Every matrix is right, and every other message says that it has none."""
    for message in messages:
        if message.validity == INVALID:
            assert message.reasons
            assert not message.matrix
        else:
            assert relative_error(matrix_to_numpy(message), expected) < tolerance


# --- plug-ins ---------------------------------------------------------------------------------


class Moody(NumericAlgorithm):
    """A plug-in that is right as long as it is well."""

    name = "moody"
    version = "1"

    def __init__(self) -> None:
        self.mood: Callable[[np.ndarray], Status] = lambda G: Status.OK
        self.G: np.ndarray | None = None
        self.prepared = 0
        self.refuse: Exception | None = None

    def supports(self, problem) -> str | None:
        if self.refuse is not None:
            raise self.refuse
        return None

    def prepare(self, problem):
        self.prepared += 1

        def compute(inputs, outputs) -> Status:
            outputs["G"][...] = self.G
            return self.mood(outputs["G"])

        return compute


@pytest.fixture(name="moody")
def make_moody(monkeypatch, urdf, q) -> Moody:
    moody = Moody()
    moody.G = solve(urdf, q)
    monkeypatch.setitem(registry._registry, "moody", moody)
    return moody


def raising(G: np.ndarray) -> Status:
    raise KeyError("a fault of the plug-in")


def not_finite(G: np.ndarray) -> Status:
    G[3, 4] = np.nan
    return Status.OK


def infinite(G: np.ndarray) -> Status:
    G[0, 0] = np.inf
    return Status.OK


def failing(G: np.ndarray) -> Status:
    G[...] = 7.0
    return Status.NOT_POSITIVE_DEFINITE


def nonsense(G: np.ndarray) -> Status:
    return 77  # type: ignore[return-value]


FAILED = DelassusMatrix.REASON_SOLVER_FAILED
NOT_FINITE = DelassusMatrix.REASON_RESULT_NOT_FINITE
MOODS = [
    (raising, FAILED), (failing, FAILED), (nonsense, FAILED),
    (not_finite, NOT_FINITE), (infinite, NOT_FINITE),
]  # fmt: skip


@pytest.mark.parametrize(("mood", "reason"), MOODS, ids=[mood.__name__ for mood, _ in MOODS])
def test_a_failing_plug_in(graph, ready, urdf, robot, q, moody, mood, reason) -> None:
    ready(algorithm="moody")
    moody.mood = mood
    answer = graph.ask(robot.joint_names, q)
    assert (answer.validity, answer.reasons) == (INVALID, reason)
    graph.wait_for_log("moody failed: ")
    moody.mood = lambda G: Status.OK
    assert graph.ask(robot.joint_names, q).validity == OK
    check(graph.matrices, solve(urdf, q))


@pytest.mark.parametrize("mood", [raising, failing, not_finite])
def test_a_fallback_stands_in(graph, start, urdf, robot, q, moody, mood) -> None:
    node = start(algorithm="moody", fallback="dense")
    graph.touch(FEET)
    good = graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    assert (good.algorithm, good.reasons) == ("moody", 0)
    moody.mood = mood
    graph.ask(robot.joint_names, q)
    answer = graph.ask_until(lambda m: m.validity != INVALID, robot.joint_names, q)
    assert (answer.algorithm, answer.reasons) == ("dense", FALLBACK)
    line = graph.wait_for_log("'moody' failed: 'dense' stands in for it")
    assert "until the parameter 'algorithm' is set again" in line
    # Also for who asks.
    everything = Compute.Request.CONTACTS_ALL
    asked = graph.compute(
        Compute.Request(joints=robot.joint_names, positions=q, which_contacts=everything)
    )
    assert asked.success and asked.matrix.algorithm == "dense"
    prepared = moody.prepared
    # Set again, the configured one is tried again, and fails again ...
    set_parameters(node, algorithm="moody")
    graph.ask_until(lambda m: m.validity == INVALID, robot.joint_names, q)
    # ... until it is well.
    moody.mood = lambda G: Status.OK
    assert graph.ask(robot.joint_names, q).algorithm == "dense"
    set_parameters(node, algorithm="moody")
    answer = graph.ask_until(lambda m: m.algorithm == "moody", robot.joint_names, q)
    assert (answer.algorithm, answer.reasons) == ("moody", 0)
    # Made anew each time, as a back end may have been left in any state.
    assert moody.prepared == prepared + 4
    check(graph.matrices, solve(urdf, q))


def test_a_fallback_that_fails_as_well_leaves_invalid(graph, start, robot, q, moody) -> None:
    start(algorithm="pv_osimr", fallback="moody", rows="all")
    graph.ask(robot.joint_names, q)
    moody.mood = raising
    # Of the configured one nothing has failed.
    assert graph.ask(robot.joint_names, q).algorithm == "pv_osimr"


def test_activating_tries_the_configured_algorithm_again(graph, start, robot, q, moody) -> None:
    node = start(algorithm="moody", fallback="dense", rows="all")
    moody.mood = raising
    graph.ask_until(lambda m: m.algorithm == "dense", robot.joint_names, q)
    moody.mood = lambda G: Status.OK
    node.trigger_deactivate()
    node.trigger_activate()
    graph.ask_until(lambda m: m.algorithm == "moody", robot.joint_names, q)


def test_plug_ins_are_prepared_beside_the_stream(
    graph, start, robot, q, moody, monkeypatch
) -> None:
    """It may take many periods: never in the thread that answers joint states."""
    threads = []
    prepare = moody.prepare

    def noted(problem):
        threads.append(threading.current_thread())
        return prepare(problem)

    monkeypatch.setattr(moody, "prepare", noted)
    node = start(algorithm="pv_osimr", rows="all")
    set_parameters(node, algorithm="moody")
    graph.ask_until(lambda m: m.algorithm == "moody", robot.joint_names, q)
    # Once for the stream, and once for questions beside it.
    assert len(threads) == 2
    questions = node._configuration._compute
    assert questions.answering().compute(robot.joint_names, q, FEET).solution.algorithm == "moody"
    assert len(threads) == 2
    assert threading.current_thread() not in threads


def test_an_algorithm_that_cannot_be_tried_again_leaves_the_fallback(
    graph, start, robot, q, moody, monkeypatch
) -> None:
    """One attempt each time, and the parameter stays with what is configured."""
    node = start(algorithm="moody", fallback="dense", rows="all")
    moody.mood = raising
    graph.ask_until(lambda m: m.algorithm == "dense", robot.joint_names, q)
    change = node._configuration.change
    attempts = []

    def prepare(problem):
        attempts.append(problem)
        raise ZeroDivisionError("no licence")

    monkeypatch.setattr(moody, "prepare", prepare)
    for wanted in ("moody", "efpa", "moody"):
        moody.mood = raising
        set_parameters(node, algorithm=wanted)
        graph.until(lambda: not change.building, "end of the change")
        if wanted == "efpa":
            # It is the configured one now, and nothing stands in for it.
            assert graph.ask(robot.joint_names, q).algorithm == "efpa"
            continue
        assert "cannot change to 'moody': " in change.failures["algorithm"]
        assert "no licence" in change.failures["algorithm"]
        going_on = "efpa" if attempts[1:] else "dense"
        assert graph.ask(robot.joint_names, q).algorithm == going_on
    assert len(attempts) == 2
    # In the log once, as the second comes within seconds.
    graph.wait_for_log("cannot change the algorithm to 'moody', 'dense' goes on")
    assert node.get_parameter("algorithm").value == "efpa"


def begin_slowly(graph, node, moody) -> threading.Event:
    """Begin to change to the plug-in; its preparation goes on when the event is set."""
    going, on = threading.Event(), threading.Event()
    prepare = moody.prepare

    def slow(problem):
        going.set()
        on.wait(60)
        return prepare(problem)

    moody.prepare = slow
    set_parameters(node, algorithm="moody")
    graph.until(going.is_set, "preparation")
    return on


def test_a_change_that_is_given_up_is_not_waited_for(graph, start, robot, q, moody) -> None:
    """What a plug-in does there may take long, and the loop has no time for it."""
    node = start(rows="all")
    on = begin_slowly(graph, node, moody)
    set_parameters(node, algorithm="dense")
    assert not on.is_set()
    graph.ask_until(lambda m: m.algorithm == "dense", robot.joint_names, q)
    on.set()
    graph.until(lambda: not threads("making moody"), "end of the thread")
    assert graph.ask(robot.joint_names, q).algorithm == "dense"
    assert node.get_parameter("algorithm").value == "dense"


def test_the_end_of_a_change_is_waited_for_where_nothing_is_to_be_left_behind(
    graph, start, moody, monkeypatch
) -> None:
    monkeypatch.setattr("delassus_ros.ros.background.CANCEL_LIMIT_S", 60.0)
    node = start(rows="all")
    on = begin_slowly(graph, node, moody)
    (thread,) = threads("making moody")
    set_when_joined(monkeypatch, thread, on)
    node.trigger_deactivate()
    assert not thread.is_alive()
    assert node.get_parameter("algorithm").value == "moody"


def threads(name: str) -> list[threading.Thread]:
    """Return the threads of this name."""
    return [thread for thread in threading.enumerate() if thread.name == name]


def test_a_plug_in_that_hangs_holds_up_nothing_for_long(
    graph, start, robot, q, moody, monkeypatch
) -> None:
    monkeypatch.setattr("delassus_ros.ros.background.CANCEL_LIMIT_S", 0.1)
    node = start(rows="all")
    going, on = threading.Event(), threading.Event()

    def hang(problem):
        going.set()
        on.wait(20)
        raise ZeroDivisionError("nobody is there any more")

    moody.prepare = hang
    set_parameters(node, algorithm="moody")
    graph.until(going.is_set, "preparation")
    node.trigger_deactivate()
    assert not on.is_set()
    graph.wait_for_log("making moody was given up but has not ended within 0.1 s")
    set_parameters(node, algorithm="pv_osimr")
    node.trigger_activate()
    assert graph.ask(robot.joint_names, q).algorithm == "pv_osimr"
    on.set()

    graph.until(lambda: not threads("making moody"), "end of the thread")


def test_a_plug_in_that_hangs_holds_up_no_other_algorithm(
    graph, start, robot, q, moody, monkeypatch
) -> None:
    """However often another one is asked for, and each of those that follow."""
    node = start(rows="all")
    on = begin_slowly(graph, node, moody)
    monkeypatch.setattr("delassus_ros.ros.background.CANCEL_LIMIT_S", 0.5)
    wanted = ["ltl", "kjr"]
    words = "making moody was given up but has not ended within 0.5 s: its thread is left alone"

    def left_alone() -> bool:
        set_parameters(node, algorithm=wanted[0])
        wanted.reverse()
        return any(words in line for line in graph.log)

    graph.until(left_alone, "words that nobody waits any more")
    # Those that are asked for from now on need not wait at all: they have no second chance here.
    monkeypatch.setattr("delassus_ros.ros.background.CANCEL_LIMIT_S", 600.0)
    for name in ("ltl", "efpa", "kjr"):
        set_parameters(node, algorithm=name)
        graph.ask_until(lambda m, name=name: m.algorithm == name, robot.joint_names, q)
    assert not on.is_set()
    assert sum(words in line for line in graph.log) == 1
    on.set()


def test_a_fault_in_a_summary_ends_nothing(graph, start, robot, q, monkeypatch) -> None:
    node = start(rows="all")
    graph.ask(robot.joint_names, q)
    tick = node._configuration.computation.tick
    with monkeypatch.context() as patch:
        patch.setattr(node._configuration._publishers, "wanted", {SUMMARY})
        patch.setattr(tick._summary, "fill", lambda *_: 1 / 0)
        graph.move(robot.joint_names, q)
        graph.wait_for_log("ZeroDivisionError")
    assert graph.ask(robot.joint_names, q).validity == DEGRADED


def test_a_fallback_is_prepared_before_it_is_needed(graph, start, robot, q, moody) -> None:
    node = start(algorithm="pv_osimr", fallback="moody", rows="all")
    assert moody.prepared == 1
    configuration = node._configuration
    configuration.stand_in()
    assert graph.ask(robot.joint_names, q).algorithm == "moody"
    assert moody.prepared == 1


def test_a_fallback_that_cannot_be_prepared_is_found_at_once(graph, start, moody) -> None:
    def prepare(problem):
        raise ZeroDivisionError("no licence")

    moody.prepare = prepare
    node = start(algorithm="pv_osimr", fallback="moody")
    assert state_of(node) == "unconfigured"
    line = graph.wait_for_log("cannot configure: ")
    assert "algorithm 'moody' cannot be prepared for this problem: Zero" in line
    assert "no licence" in line


@pytest.mark.parametrize("error", [ZeroDivisionError, SystemExit])
def test_unpreparable_plug_in_is_not_taken(graph, start, robot, q, moody, error) -> None:
    """Also one that would end the process."""
    node = start(rows="all")
    graph.ask(robot.joint_names, q)

    def prepare(problem):
        raise error("no licence")

    moody.prepare = prepare
    set_parameters(node, algorithm="moody")
    line = graph.wait_for_log("cannot change the algorithm to 'moody', 'pv_osimr' goes on")
    assert f"{error.__name__}: no licence" in line
    answer = graph.ask(robot.joint_names, q)
    assert (answer.algorithm, answer.validity) == ("pv_osimr", DEGRADED)
    assert node.get_parameter("algorithm").value == "pv_osimr"


def test_a_plug_in_that_cannot_say_what_it_supports_is_refused(graph, start, moody) -> None:
    node = start()
    moody.refuse = ZeroDivisionError("nobody knows")
    assert "it cannot say: ZeroDivisionError: nobody knows" in refused(node, algorithm="moody")
    assert state_of(node) == "active"


# --- this program -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("answer", ZeroDivisionError), ("answer", RuntimeError),
        ("_set", ZeroDivisionError), ("watch", ZeroDivisionError),
    ],
)  # fmt: skip
def test_a_fault_of_the_program_ends_nothing(
    graph, ready, urdf, robot, q, monkeypatch, where, error
) -> None:
    def fail(*_: object) -> None:
        raise error("a fault")

    node = ready(input_timeout=0.2)
    tick = node._configuration.computation.tick
    with monkeypatch.context() as patch:
        patch.setattr(tick._contacts if where == "_set" else tick, where, fail)
        already = len(graph.matrices)

        def said() -> bool:
            if where == "_set":
                graph.touch(FEET)
            elif where == "answer":
                graph.move(robot.joint_names, q)
            return any(m.reasons == FAILED for m in graph.matrices[already:])

        graph.until(said, "INVALID")
    line = graph.wait_for_log("a fault of this program; inputs are forgotten")
    assert line
    graph.wait_for_log(f"{error.__name__}: a fault")
    if where == "_set":
        # It may have been any set. Others are taken in again, as nobody has to repeat them.
        graph.touch(FEET)
    graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    assert state_of(node) == "active"
    check(graph.matrices, solve(urdf, q))


def test_a_message_that_cannot_be_published_ends_nothing(
    graph, start, robot, q, monkeypatch
) -> None:
    node = start(rows="all")
    graph.ask(robot.joint_names, q)
    publisher = node._configuration._publishers._by_topic[MATRIX]

    def refuse(_: bytes) -> None:
        raise RuntimeError("out of resources")

    with monkeypatch.context() as patch:
        patch.setattr(publisher, "publish", refuse)
        graph.move(robot.joint_names, q)
        graph.wait_for_log("a message on /delassus_node/delassus is lost: out of resources")
    assert graph.ask(robot.joint_names, q).validity == DEGRADED


def test_a_description_by_a_volatile_publisher_is_said(graph, start, urdf) -> None:
    """Nothing comes from it, and the log says why."""
    publisher = graph.peer.create_publisher(String, "robot_description", 1)
    start(robot_description="")
    line = graph.wait_for_log("no messages on /robot_description with node '/peer': ")
    assert line.endswith("a publisher of it offers an incompatible QoS (DURABILITY)")
    assert publisher.topic_name == "/robot_description"


# --- inputs -----------------------------------------------------------------------------------


def test_a_simulation_that_is_reset(graph, start, urdf, robot, q) -> None:
    """Time jumps back: what came before is forgotten, what comes after is answered."""
    node = start(use_sim_time=True, input_timeout=0.5)
    clock = SimulatedTime(graph, node)
    already, sent = 0, 0

    def run(begin: int) -> Callable[[], bool]:
        """Return a function that goes on from a time [ns] and says whether that is answered."""
        now = begin

        def answered() -> bool:
            nonlocal now, sent
            graph.touch(FEET, stamp=now - 20 * MS)
            now += 10 * MS
            clock.publish(now)
            # On its way it may overtake the clock.
            sent = graph.move(robot.joint_names, q, stamp=now - 20 * MS)
            return any(
                m.validity == OK and 0 <= stamp_of(m) - begin < 50 * S
                for m in graph.matrices[already:]
            )

        return answered

    graph.until(run(100 * S), "matrix in simulated time")
    assert node.get_clock().now().nanoseconds < 1000e9
    # What is under way from before is answered before the clock jumps.
    graph.until(lambda: stamp_of(graph.matrices[-1]) == sent, "answer to the last one")
    already = len(graph.matrices)
    graph.until(run(S), "matrix after the reset")
    line = graph.wait_for_log("the clock jumped by -")
    assert "inputs from before are forgotten" in line
    assert all(stamp_of(m) < 100e9 for m in graph.matrices[already:] if m.validity == OK)
    check(graph.matrices, solve(urdf, q))
    # Silence is noticed in the new time, too.
    already = len(graph.matrices)
    now = 2 * S + node.get_clock().now().nanoseconds

    def said() -> bool:
        nonlocal now
        now += 50 * MS
        clock.publish(now)
        return any(m.reasons & DelassusMatrix.REASON_INPUT_STALE for m in graph.matrices[already:])

    graph.until(said, "word about silence after the reset")
    assert graph.matrices[-1].validity == INVALID


@pytest.mark.parametrize(
    ("method", "times"),
    [("clock_jumped", [100 * S, S]), ("inputs.set_clock_step", [100 * S, 100 * S + 250 * MS])],
)
def test_a_fault_while_the_clock_jumps_or_steps(
    graph, start, robot, q, monkeypatch, method, times
) -> None:
    node = start(use_sim_time=True, rows="all")
    clock = SimulatedTime(graph, node)
    tick = node._configuration.computation.tick
    *owner, name = method.split(".")

    def fail(*_: object) -> None:
        raise KeyError(f"a fault of {method}")

    clock.run_to(times[0])
    with monkeypatch.context() as broken:
        broken.setattr(tick.inputs if owner else tick, name, fail)
        clock.run_to(times[1])
        graph.wait_for_log(f"a fault of {method}")
    # The next step finds everything at work.
    clock.run_to(times[1] + 250 * MS)

    def answered() -> bool:
        stamp = node.get_clock().now().nanoseconds
        graph.move(robot.joint_names, q, stamp=stamp)
        return any(m.validity != INVALID and stamp_of(m) == stamp for m in graph.matrices)

    graph.until(answered, "matrix after the fault")


def test_stamps_between_two_steps_of_simulated_time(graph, start, robot, q) -> None:
    """A simulation publishes joint states more often than its time."""
    node = start(use_sim_time=True, rows="all")
    clock = SimulatedTime(graph, node)
    step = 25 * MS

    def ask(stamp: int) -> DelassusMatrix:
        graph.move(robot.joint_names, q, stamp=stamp)
        graph.until(
            lambda: bool(graph.matrices) and stamp_of(graph.matrices[-1]) == stamp, "matrix"
        )
        return graph.matrices[-1]

    for now in range(100 * S, 100 * S + 20 * step, step):
        clock.run_to(now)
        for offset in (0, 10 * MS, 24 * MS):
            assert not ask(now + offset).reasons & DelassusMatrix.REASON_STAMP_IN_FUTURE
    assert ask(now + 100 * MS).reasons & DelassusMatrix.REASON_STAMP_IN_FUTURE
    graph.wait_for_log("s ahead of /clock, which goes on by up to 0.025 s at once")
    # The clock of the machine has no steps.
    set_parameters(node, use_sim_time=False)
    stamp = time.time_ns() + 10 * S
    assert ask(stamp).reasons & DelassusMatrix.REASON_STAMP_IN_FUTURE


def test_simulated_time_that_stands_still_makes_nothing_old(graph, start, robot, q) -> None:
    node = start(use_sim_time=True, input_timeout=0.05, rows="all")
    clock = SimulatedTime(graph, node)

    def answered() -> bool:
        clock.publish(50 * S)
        graph.move(robot.joint_names, q, stamp=50 * S)
        return any(stamp_of(m) == 50 * S and m.matrix for m in graph.matrices)

    graph.until(answered, "matrix")
    already = len(graph.matrices)
    # Ten times the timeout, by the clock of the machine.
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        graph.executor.spin_once(timeout_sec=0.02)
    assert {m.validity for m in graph.matrices[already:]} <= {DEGRADED}


def test_diagnostics_go_on_while_simulated_time_stands_still(graph, start) -> None:
    start(use_sim_time=True, diagnostics_period=0.05)
    seen: list[DiagnosticArray] = []
    graph.peer.create_subscription(DiagnosticArray, "/diagnostics", seen.append, 10)
    graph.until(lambda: len(seen) > 3, "diagnostics")


@pytest.mark.parametrize("sim", [False, True])
def test_no_timer_waits_for_a_clock_that_can_be_set_back(start, sim: bool) -> None:
    """It would be silent for as long as the step: no watchdog, no diagnostics, no fixed rate."""
    node = start(use_sim_time=sim, rate=50.0, input_timeout=0.5)
    timers = list(node.timers)
    assert len(timers) > 2
    assert {timer.clock.clock_type for timer in timers} == {ClockType.STEADY_TIME}


def test_changes_are_made_while_simulated_time_stands_still(graph, start, urdf) -> None:
    """Nor does it have to have begun."""
    node = start(use_sim_time=True, rows="all")
    set_parameters(node, algorithm="dense")
    graph.wait_for_log("algorithm changed from 'pv_osimr' to 'dense'")
    renamed = urdf.replace('<robot name="', '<robot name="other_', 1)
    set_parameters(node, robot_description=renamed)
    graph.wait_for_log("robot description changed from that of")


def switch_contacts(graph, start, urdf, robot, q, times: int) -> None:
    """Each set that is heard is used as a whole, and its rows are right."""
    start()
    rng = np.random.default_rng(2)
    full = solve(urdf, q)
    rows = {foot: range(3 * i, 3 * i + 3) for i, foot in enumerate(FEET)}
    graph.touch(FEET)
    graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    already = len(graph.matrices)
    sets: dict[int, list[str]] = {}
    used: set[int] = set()
    looked, deadline = already, time.monotonic() + HANG_S
    # However many sets are replaced before a joint state is answered.
    while len(sets) < times or len(used) <= times // 3:
        assert time.monotonic() < deadline, f"{len(used)} of {len(sets)} sets were used"
        chosen = [foot for foot in FEET if rng.random() < 0.6]
        sets[graph.touch(chosen)] = chosen
        graph.move(robot.joint_names, q)
        for _ in range(4):
            graph.executor.spin_once(timeout_sec=0.0005)
        used |= sets.keys() & {nanoseconds(m.contacts_stamp) for m in graph.matrices[looked:]}
        looked = len(graph.matrices)
    answer = graph.ask(robot.joint_names, q)
    assert list(answer.contacts) == chosen
    for message in graph.matrices[already:]:
        stamp = nanoseconds(message.contacts_stamp)
        assert message.validity == OK
        if stamp in sets:
            assert list(message.contacts) == sets[stamp]
        places = [row for contact in message.contacts for row in rows[contact]]
        np.testing.assert_allclose(
            matrix_to_numpy(message), full[np.ix_(places, places)], rtol=0, atol=1e-12
        )


def test_contacts_that_switch_all_the_time(graph, start, urdf, robot, q) -> None:
    switch_contacts(graph, start, urdf, robot, q, times=300)


@pytest.mark.slow
def test_ten_thousand_contact_switches(graph, start, urdf, robot, q) -> None:
    switch_contacts(graph, start, urdf, robot, q, times=10_000)


# --- the cache --------------------------------------------------------------------------------


def kernels(cache: Path) -> list[Path]:
    return [path for path in (cache / "delassus").rglob("*") if path.is_file()]


@pytest.fixture(name="cache")
def make_cache(tmp_path, monkeypatch) -> Path:
    """A cache of its own, with the kernel of another algorithm in it."""
    tmp_path.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("how", "begins", "words"),
    # Each builds a kernel twice; test_cache_trust.py has them all, without a node.
    [
        pytest.param(
            "flipped", "kernel cache not used: ", "is damaged; it will be replaced",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "truncated", "kernel cache not used: ", "is damaged; it will be replaced",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "writable", "kernel cache not used: ", "must belong to you with mode 0600",
            marks=pytest.mark.slow,
        ),
        ("other results", "cached kernel of efpa compiled anew: ", "not reproduce its stored"),
    ],
)  # fmt: skip
def test_a_cache_that_was_tampered_with(
    graph, start, urdf, robot, q, cache, how, begins, words, monkeypatch
) -> None:
    """What is in it is not run, as the log says; the kernel is built anew, and replaces it."""
    node = start()

    def change(algorithm: str) -> None:
        set_parameters(node, algorithm=algorithm)
        graph.ask_until(lambda m: m.algorithm == algorithm, robot.joint_names, q)

    def forget() -> None:
        """Have the node keep no solver but the one in use."""
        node.trigger_deactivate()
        node.trigger_activate()

    graph.touch(FEET)
    graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    change("efpa")
    change("pv_osimr")
    forget()
    found = kernels(cache)
    assert found
    for path in found:
        data = bytearray(path.read_bytes())
        if how == "flipped":
            data[len(data) // 2] ^= 1
            path.write_bytes(data)
        elif how == "truncated":
            path.write_bytes(data[: len(data) // 2])
        elif how == "other results":
            *parts, last = packing.unpack(cache_module.load(path.stem) or b"")
            changed = last[:-1] + bytes([last[-1] ^ 1])
            cache_module.store(path.stem, packing.pack(*parts, changed))
        else:
            path.chmod(0o666)
    set_parameters(node, algorithm="efpa")
    line = graph.wait_for_log(begins)
    assert words in line
    assert begins != "kernel cache not used: " or str(cache) in line
    graph.ask_until(lambda m: m.algorithm == "efpa", robot.joint_names, q)
    change("dense")
    forget()
    monkeypatch.setattr("delassus_ros.node.computation.BackgroundBuild", None)
    change("efpa")
    assert {m.validity for m in graph.matrices} <= {OK, INVALID}
    check(graph.matrices, solve(urdf, q))


def test_a_cache_that_cannot_be_written(graph, ready, urdf, robot, q, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nothing")
    node = ready()
    set_parameters(node, algorithm="efpa")
    graph.ask_until(lambda m: m.algorithm == "efpa", robot.joint_names, q)
    check(graph.matrices, solve(urdf, q))


def test_the_plug_in_of_these_tests_is_right_when_well(urdf, q, moody) -> None:
    """Or nothing here would show anything."""
    assert relative_error(moody.G, solve(urdf, q, algorithm="dense")) < 1e-12
