"""Parameters that may be set while the node runs: each changes what comes out."""

from __future__ import annotations

import gc
import time
import weakref
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import DelassusMatrix, Summary
from delassus_msgs_py import matrix_to_numpy
from diagnostic_msgs.msg import DiagnosticArray
from hanging import HANG_S
from node_support import (
    FEET,
    INVALID,
    OK,
    refused,
    relative_error,
    set_parameters,
    solve,
)
from ros_support import stamp_of

from delassus_ros.node.parameters import OPERATION_PARAMETERS
from delassus_ros.ros import realtime as collection

PLAIN, WEAK = DelassusMatrix.CONDITIONING_OK, DelassusMatrix.CONDITIONING_WEAK
ILL = DelassusMatrix.REASON_ILL_CONDITIONED


# --- inputs -----------------------------------------------------------------------------------


def ask_in_parts(graph, robot, q, apart: float):
    """Publish the halves of a joint state with stamps `apart` [s]; return the answer to it."""
    names, half = list(robot.joint_names), robot.nq // 2
    already = len(graph.matrices)
    # Of the very first part the others are unknown. While whole joint states are still awaited
    # parts are passed over, and if that takes long, the node reports silence.
    no_answer = DelassusMatrix.REASON_JOINT_MISSING, DelassusMatrix.REASON_INPUT_STALE
    again = 0.0

    def answer() -> Any:
        nonlocal again
        if time.monotonic() > again:
            again = time.monotonic() + 0.5
            now = time.time_ns()
            graph.move(names[:half], q[:half], stamp=now - round(apart * 1e9))
            graph.move(names[half:], q[half:], stamp=now)
        answers = graph.matrices[already:]
        return answers[-1] if any(m.reasons not in no_answer for m in answers) else None

    return graph.until(answer, "answer to both parts")


def test_max_skew(graph, ready, urdf, robot, q) -> None:
    node = ready()
    answer = ask_in_parts(graph, robot, q, apart=0.05)
    assert (answer.validity, answer.reasons) == (INVALID, DelassusMatrix.REASON_INPUT_SKEWED)
    set_parameters(node, max_skew=0.2)
    answer = ask_in_parts(graph, robot, q, apart=0.05)
    assert answer.validity == OK
    assert relative_error(matrix_to_numpy(answer), solve(urdf, q)) < 1e-12


def test_input_timeout_says_that_joint_states_have_stopped(graph, ready, robot, q) -> None:
    # Longer than the machine may pause.
    node = ready(input_timeout=0.6)
    graph.ask(robot.joint_names, q)
    stale = DelassusMatrix.REASON_INPUT_STALE
    # The answer to a joint state that was sent again may come before.
    graph.until(lambda: graph.matrices[-1].reasons == stale, "word about silence")
    answer, already = graph.matrices[-1], len(graph.matrices)
    assert answer.validity == INVALID
    assert not answer.matrix
    graph.wait_for_log("no joint state")
    # Again and again, as a heartbeat.
    graph.until(lambda: len(graph.matrices) >= already + 3, "more of the same")
    assert {m.reasons for m in graph.matrices[already:]} == {stale}
    graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    set_parameters(node, input_timeout=0.1)
    graph.until(lambda: graph.matrices[-1].reasons == stale, "word about silence")


def test_contacts_timeout(graph, ready, robot, q) -> None:
    node = ready()
    set_parameters(node, contacts_timeout=0.1)
    answer = graph.ask_until(lambda m: m.validity == INVALID, robot.joint_names, q)
    assert answer.reasons == DelassusMatrix.REASON_CONTACTS_STALE
    # Before that it says whether it is so by its stamp, or since none has come.
    graph.wait_for_log("at most 0.1 s are allowed (contacts_timeout)")
    graph.ask_touching(FEET, robot.joint_names, q)
    graph.ask_until(lambda m: m.validity == INVALID, robot.joint_names, q)
    set_parameters(node, contacts_timeout=0.0)
    assert graph.ask(robot.joint_names, q).validity == OK


# --- conditioning and damping -----------------------------------------------------------------


def test_thresholds_and_hysteresis(graph, ready, robot, q) -> None:
    node = ready()

    def ask():
        return graph.ask(robot.joint_names, q)

    plain = ask()
    c = plain.condition
    assert c > 2.0
    assert (plain.conditioning, plain.reasons) == (DelassusMatrix.CONDITIONING_OK, 0)
    assert (plain.rank, plain.structural_rank) == (12, 12)
    set_parameters(node, conditioning__weak=0.9 * c)
    answer = ask()
    assert (answer.conditioning, answer.reasons) == (DelassusMatrix.CONDITIONING_WEAK, ILL)
    assert answer.validity == OK
    limits = {"weak": 1.0 + 1e-6, "singular": 0.95 * c, "hysteresis": 1.0}
    set_parameters(node, **{f"conditioning.{name}": value for name, value in limits.items()})
    assert ask().conditioning == DelassusMatrix.CONDITIONING_SINGULAR
    # Coming from a worse posture it stays within the hysteresis, without it does not.
    worse = [0.0] * robot.nq
    ratio = graph.ask(robot.joint_names, worse).condition / c
    assert ratio > 1.1
    for hysteresis, then in ((1.5 * ratio, WEAK), (1.0, PLAIN)):
        limits = {"weak": c * (0.5 + 0.5 * ratio), "singular": 1e9, "hysteresis": hysteresis}
        set_parameters(node, **{f"conditioning.{name}": value for name, value in limits.items()})
        assert ask().conditioning == PLAIN
        assert graph.ask(robot.joint_names, worse).conditioning == WEAK
        assert ask().conditioning == then


def test_characteristic_length(graph, ready, robot, q) -> None:
    node = ready(contacts__LF__kind="surface")
    long = graph.ask(robot.joint_names, q).condition
    set_parameters(node, conditioning__characteristic_length=0.01)
    short = graph.ask(robot.joint_names, q).condition
    assert abs(long / short - 1.0) > 0.1


def test_damping(graph, ready, urdf, robot, q) -> None:
    node = ready()
    G = solve(urdf, q)
    largest = np.linalg.eigvalsh(G)[-1]
    for ratio in (0.1, 0.01):
        set_parameters(node, damping__mode="uniform", damping__ratio=ratio)
        answer = graph.ask(robot.joint_names, q)
        assert answer.damping_mode == DelassusMatrix.DAMPING_UNIFORM
        assert answer.damping == pytest.approx(ratio * largest, rel=0.02)
        assert answer.reasons & DelassusMatrix.REASON_DAMPED
        expected = G + answer.damping * np.eye(12)
        assert relative_error(matrix_to_numpy(answer), expected) < 1e-12
    set_parameters(node, damping__mode="selective", damping__ratio=0.2)
    answer = graph.ask(robot.joint_names, q)
    assert answer.damping_mode == DelassusMatrix.DAMPING_SELECTIVE
    damped = np.linalg.eigvalsh(matrix_to_numpy(answer))
    assert damped[0] == pytest.approx(0.2 * largest, rel=0.05)
    assert damped[-1] == pytest.approx(largest, rel=1e-6)
    set_parameters(node, damping__mode="none")
    answer = graph.ask(robot.joint_names, q)
    assert (answer.damping_mode, answer.damping, answer.reasons) == (0, 0.0, 0)
    assert relative_error(matrix_to_numpy(answer), G) < 1e-12


# --- timing -----------------------------------------------------------------------------------


def test_deadline(graph, ready, robot, q) -> None:
    node = ready(diagnostics_period=0.1)
    heard: list[DiagnosticArray] = []
    graph.peer.create_subscription(DiagnosticArray, "/diagnostics", heard.append, 10)
    set_parameters(node, deadline=1e-7)
    answer = graph.ask(robot.joint_names, q)
    assert answer.validity == OK
    assert answer.reasons == DelassusMatrix.REASON_OVERRUN

    def counted() -> bool:
        graph.move(robot.joint_names, q)
        texts = [s.message for m in heard for s in m.status if s.name.endswith(": timing")]
        return any("overruns of the deadline of 0.0001 ms" in text for text in texts)

    graph.until(counted, "overruns in the diagnostics")
    set_parameters(node, deadline=0.0)
    assert graph.ask(robot.joint_names, q).reasons == 0


def test_diagnostics_period(graph, start) -> None:
    heard: list[DiagnosticArray] = []
    graph.peer.create_subscription(DiagnosticArray, "/diagnostics", heard.append, 100)
    node = start(diagnostics_period=0.05)
    graph.until(lambda: len(heard) > 5, "diagnostics")
    # They may come late, and then close together; on average they never come too often.
    first, *_, last = map(stamp_of, heard)
    assert last - first > (len(heard) - 3) * 50_000_000
    assert node._configuration._diagnostics._timer.timer_period_ns == 50_000_000
    set_parameters(node, diagnostics_period=0.0)
    latest = [len(heard), time.monotonic()]

    def silent() -> bool:
        """For ten periods; what is under way may still come."""
        if len(heard) != latest[0]:
            latest[:] = len(heard), time.monotonic()
        return time.monotonic() > latest[1] + 0.5

    graph.until(silent, "silence")


def test_rate(graph, ready, robot, q, urdf) -> None:
    """Many joint states make as many matrices as there are instants, of the newest each."""
    expected = solve(urdf, q)
    node = ready(rate=50.0)
    already, first = len(graph.matrices), graph.matrices[-1].sequence
    begin = time.monotonic()
    stamps = []
    # However long a turn takes: several come in each.
    while time.monotonic() < begin + 1.0 or len(graph.matrices) < already + 10:
        assert time.monotonic() < begin + HANG_S
        stamps += [graph.move(robot.joint_names, q) for _ in range(3)]
        for _ in range(6):
            graph.executor.spin_once(timeout_sec=0.001)
    took = time.monotonic() - begin
    graph.until(lambda: stamp_of(graph.matrices[-1]) == stamps[-1], "answer to the last one")
    answers = graph.matrices[already:]
    assert len(answers) <= 50 * took + 3
    # All others are accounted for, in order, but for what the middleware lost.
    assert answers[-1].sequence - first <= len(stamps) + 1
    assert [stamp_of(m) for m in answers] == sorted(stamp_of(m) for m in answers)
    assert relative_error(matrix_to_numpy(answers[-1]), expected) < 1e-12
    # Nothing new, nothing said.
    already = len(graph.matrices)
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        graph.executor.spin_once(timeout_sec=0.02)
    assert len(graph.matrices) == already
    assert node._configuration.stream.timing.jitter.count > 5


def test_instants_are_those_of_one_timer(ready) -> None:
    """At rates that are no whole number of nanoseconds, and whatever changes meanwhile."""
    node = ready(rate=300.0)
    stream = node._configuration.stream
    timer = stream._rate_timer
    assert stream._schedule._period == pytest.approx(timer.timer_period_ns * 1e-9, rel=1e-12)
    watch = stream._watch_timer
    set_parameters(node, input_timeout=0.3)
    assert stream._watch_timer is not watch
    assert stream._rate_timer is timer


@pytest.mark.parametrize("hold", [True, False])
def test_hold_garbage(graph, start, hold) -> None:
    node = start(realtime__hold_garbage=hold)
    assert gc.isenabled() is not hold
    node.trigger_deactivate()
    assert gc.isenabled()


# --- all of them ------------------------------------------------------------------------------


def test_garbage_is_collected_without_joint_states(graph, start) -> None:
    start(realtime__hold_garbage=True)

    class Node:
        def __init__(self) -> None:
            self.itself = self

    garbage = Node()
    gone = weakref.ref(garbage)
    del garbage
    enough = [[] for _ in range(3000)]
    assert gone() is not None
    graph.until(lambda: gone() is None, "collection")
    assert len(enough) == 3000


def test_garbage_that_outlived_many_collections_is_collected(graph, start, monkeypatch) -> None:
    monkeypatch.setattr(collection, "_FULL_PERIOD_S", 0.5)
    start(realtime__hold_garbage=True)

    class Node:
        def __init__(self) -> None:
            self.itself = self

    garbage = Node()
    gone = weakref.ref(garbage)
    # Into the oldest generation.
    gc.collect(0)
    gc.collect(1)
    del garbage
    graph.until(lambda: gone() is None, "collection")


def test_ranges_and_choices_are_in_the_descriptors(start) -> None:
    node = start(autostart=False)
    for name, setting in OPERATION_PARAMETERS.items():
        descriptor = node.describe_parameter(name)
        ranges = [*descriptor.floating_point_range, *descriptor.integer_range]
        if setting.low is not None:
            (range_,) = ranges
            assert (range_.from_value, range_.to_value) == (setting.low, setting.high)
        else:
            assert not ranges
        if setting.least:
            assert descriptor.additional_constraints == setting.range
        for choice in setting.choices:
            assert choice in descriptor.additional_constraints
        assert descriptor.description == setting.description
    assert node.describe_parameter("autostart").read_only


def test_values_out_of_range_are_refused_and_change_nothing(graph, ready, robot, q) -> None:
    node = ready()
    for name, value, words in (
        ("max_skew", 2.0, "max_skew"),
        ("input_timeout", float("nan"), "input_timeout"),
        ("diagnostics_period", 1e-6, "'diagnostics_period' is 1e-06; expected 0, or 0.05 to 60"),
        ("damping.mode", "much", "unknown damping.mode 'much'"),
        ("conditioning.weak", 1e6, "thresholds out of order"),
    ):
        before = node.get_parameter(name).value
        assert words in refused(node, damping__ratio=0.3, **{name: value})
        assert node.get_parameter(name).value == before
        assert node.get_parameter("damping.ratio").value == 1e-4
    # In order only together.
    set_parameters(node, conditioning__weak=1e6, conditioning__singular=1e8)
    assert graph.ask(robot.joint_names, q).validity == OK


def test_summary_has_the_numbers_of_the_matrix(graph, ready, robot, q) -> None:
    heard: list[Summary] = []
    graph.peer.create_subscription(Summary, "delassus_node/summary", heard.append, 100)
    node = ready(diagnostics_period=0.0, input_timeout=0.2)

    def both() -> tuple[Summary, DelassusMatrix] | None:
        graph.ask(robot.joint_names, q)
        numbered = {message.sequence: message for message in graph.matrices}
        good = (s for s in heard if s.validity == OK and s.sequence in numbered)
        return next(((s, numbered[s.sequence]) for s in good), None)

    summary, matrix = graph.until(both, "summary")
    for name in ("sequence", "validity", "reasons", "conditioning", "rank", "structural_rank",
                 "condition", "damping_mode", "damping", "compute_time", "input_age"):  # fmt: skip
        assert getattr(summary, name) == getattr(matrix, name), name
    assert summary.rows == 12
    eigenvalues = np.linalg.eigvalsh(matrix_to_numpy(matrix))
    assert summary.largest_eigenvalue == pytest.approx(eigenvalues[-1], rel=0.02)
    assert summary.smallest_eigenvalue == pytest.approx(eigenvalues[0], rel=0.02)
    assert summary.characteristic_length == 0.1
    assert 0.0 < summary.latency < 1.0
    assert summary.published > 0
    # The length that goes with them may change.
    set_parameters(node, conditioning__characteristic_length=0.2)
    graph.ask(robot.joint_names, q)
    graph.until(lambda: heard[-1].characteristic_length == 0.2, "summary with the new length")
    # Plots show silence, too.
    silence = graph.until(lambda: heard[-1].latency == -1.0 and heard[-1], "silence")
    assert silence.reasons & DelassusMatrix.REASON_INPUT_STALE
    assert (silence.validity, silence.rows) == (INVALID, 0)
    assert silence.invalid > summary.invalid


def test_latency_counts_from_the_arrival_at_a_fixed_rate(graph, ready, robot, q) -> None:
    """A joint state may wait for its instant."""
    node = ready(rate=5.0, deadline=1e-3)
    stream = node._configuration.stream
    before, already = stream.timing.overruns, len(graph.matrices)

    # It is answered at once when its instant comes, but some of 200 ms late, unless a machine
    # that holds the test up has it come just before.
    def late() -> list[DelassusMatrix]:
        graph.ask(robot.joint_names, q)
        return [m for m in graph.matrices[already:] if m.reasons & DelassusMatrix.REASON_OVERRUN]

    graph.until(lambda: len(late()) >= 4, "matrices that are late")
    assert stream.timing.overruns >= before + 4
    assert stream.timing.latency.largest > 5e-3
