"""The soak run: its books, its robot, its echo node, and a short run of all of it."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from processes import Program, children_of, python
from ros_domains import new_domain
from soak import __main__ as soak
from soak.accounting import (
    STRETCH,
    Account,
    Arrivals,
    MatrixGaps,
    NodeCounts,
)
from soak.accounting import account as account_for
from soak.control import Control, PublisherCommand, Receiver
from soak.humanoid import CONTACTS, TWIST, JointSwing, problem, recomputed
from soak.run import (
    SoakError,
    Swapper,
    ended_readers,
    node_arguments,
    node_counts,
)
from soak.verdict import EndedReaders, Limits, Result

from delassus import DelassusSolver
from delassus_ros.monitor.latency import Percentiles

ROOT = Path(__file__).resolve().parents[2]
TOOLS = str(ROOT / "tools")

# --- the robot --------------------------------------------------------------------------------


def test_humanoid_has_thirty_joints_and_24_independent_rows() -> None:
    humanoid = problem()
    assert len(humanoid.robot.joint_names) == 30
    assert humanoid.contacts.rows == 24
    q = JointSwing(humanoid.robot.joint_names).at(123_456)
    matrix = DelassusSolver(humanoid).solve(q).matrix
    assert np.linalg.cond(matrix) < 1e6


def test_motion_is_within_the_limits_smooth_and_the_same_each_time() -> None:
    motion = JointSwing(problem().robot.joint_names)
    for number in (0, 123_456):
        assert np.array_equal(motion.at(number), motion.at(number))
        step = motion.at(number + 1) - motion.at(number)
        assert 0.0 < np.abs(step).max() < 0.01
        assert np.abs(motion.at(number)).max() < 2.5


def test_matrices_are_recomputed_from_the_number_of_their_joint_state() -> None:
    humanoid = problem()
    motion, solver = JointSwing(humanoid.robot.joint_names), DelassusSolver(humanoid, "efpa")
    sent = np.array([5, 9, 14, 20])
    matrices = np.array([solver.solve(motion.at(k)).matrix.ravel() for k in (1, 3)])
    assert recomputed(sent, sent[[1, 3]], matrices) == (2, 0)
    # Those of other joint states are wrong.
    assert recomputed(sent, sent[[1, 2]], matrices) == (2, 1)
    assert recomputed(sent, sent[:0], matrices[:0]) == (0, 0)


def test_what_is_beside_matrices_is_recomputed_by_output() -> None:
    names = ("a0", "h")
    humanoid = problem(names)
    motion, solver = JointSwing(humanoid.robot.joint_names), DelassusSolver(humanoid, "efpa")
    moving = np.r_[TWIST, motion.rates(2)]
    solution = solver.solve(
        motion.at(2), rates=moving, torques=np.zeros(36), gravity=[0.0, 0.0, -9.81]
    )
    kept = np.concatenate([solution.output(name) for name in names])
    sent = np.array([5, 9, 14])
    assert recomputed(sent, sent[[2]], kept[np.newaxis], names) == (1, 0)
    # A wrong number counts, however small the output that it is in.
    kept[-1] += 1e-6
    assert recomputed(sent, sent[[2]], kept[np.newaxis], names) == (1, 1)


def test_velocities_are_the_derivatives_of_the_positions() -> None:
    motion = JointSwing(problem().robot.joint_names)
    step = 1e-3 * motion.rates(500)
    ahead = motion.at(501) - motion.at(499)
    assert np.allclose(ahead, 2.0 * step, rtol=1e-4, atol=1e-9)


# --- the books --------------------------------------------------------------------------------


def arrivals_of(*rows: tuple[int, int, bool]) -> Arrivals:
    """Arrivals with these stamps, numbers and validities, each after 5 ns."""
    arrivals = Arrivals(100)
    for stamp, sequence, good in rows:
        arrivals.note(stamp, stamp + 5, sequence, good)
    return arrivals


SENT = np.arange(10, 110, 10)


def test_all_answered() -> None:
    arrivals = arrivals_of(*((10 * k, k, True) for k in range(1, 11)))
    assert account_for(SENT, arrivals, NodeCounts(10, 0, 0)) == Account(10, 10, 0, 0, 0, 0, 0)


def test_books_begin_with_the_first_good_answer() -> None:
    arrivals = arrivals_of((20, 1, False), *((10 * k, k - 1, True) for k in range(4, 11)))
    # The first was lost to discovery, the second refused, the answer to the third lost.
    assert account_for(SENT, arrivals, NodeCounts(8, 1, 0)) == Account(7, 7, 0, 0, 0, 0, 0)


def test_superseded_lost_and_refused_are_told_apart() -> None:
    rows = [(10, 1, True), (40, 4, True), (50, 5, False), (60, 6, True), (100, 9, True)]
    # 20 and 30 superseded, 70 lost before the node, the answers to 80 and 90 lost after it.
    count = account_for(SENT, arrivals_of(*rows), NodeCounts(6, 1, 2))
    assert count == Account(10, 4, 1, 2, 1, 2, 0)
    assert count.superseded_share == 0.2


def test_a_loss_at_the_very_end_is_seen() -> None:
    arrivals = arrivals_of(*((10 * k, k, True) for k in range(1, 9)))
    assert account_for(SENT, arrivals, NodeCounts(9, 0, 0)) == Account(10, 8, 0, 0, 1, 1, 0)


def test_notices_of_silence_are_no_answers() -> None:
    rows = [(10 * k, k, True) for k in range(1, 11)]
    arrivals = arrivals_of(*rows, (100, 11, False))
    assert account_for(SENT, arrivals, NodeCounts(10, 1, 0)) == Account(10, 10, 0, 0, 0, 0, 0)


def test_strange_answers_are_counted() -> None:
    rows = [(10 * k, k, True) for k in range(1, 11)]
    arrivals = arrivals_of(*rows, (55, 11, True), (100, 12, True))
    assert account_for(SENT, arrivals, NodeCounts(12, 0, 0)).strange == 2


def test_messages_beyond_the_capacity_are_a_fault() -> None:
    arrivals = Arrivals(1)
    arrivals.note(10, 15, 1, True)
    arrivals.note(20, 25, 2, True)
    assert (arrivals.count, arrivals.overflow) == (1, 1)
    assert account_for(SENT, arrivals, NodeCounts(2, 0, 0)).strange == 1


def test_latency_leaves_out_the_warm_up_and_what_is_not_good() -> None:
    arrivals = arrivals_of((10, 1, True), (20, 2, False), (30, 3, True), (40, 4, True))
    assert arrivals.latency(30) == pytest.approx([5e-9, 5e-9])
    assert Percentiles.of(np.array([1e-3, 2e-3, 3e-3])).words() == (
        "p50 2.000, p99 2.980, p99.9 2.998, max 3.00 ms"
    )


GOOD = Result(
    rate=1000.0,
    sent_rate=999.0,
    account=Account(1000, 998, 0, 2, 0, 0, 0),
    node=Percentiles(1e-4, 3e-4, 3e-4, 2e-3),
    echo=Percentiles(0.9e-4, 2.9e-4, 2.9e-4, 2e-3),
    cpu=0.15,
    echo_cpu=0.1,
    memory=(100.0, 100.5),
    checked=10,
    wrong=0,
    node_gaps=MatrixGaps(3, 0.003, 0.001),
    echo_gaps=MatrixGaps(2, 0.002, 0.001),
)


def test_a_good_run_has_no_faults() -> None:
    assert GOOD.faults(Limits()) == []
    assert "1000 joint states: 998 answered, 2 superseded (0.200 %)" in GOOD.report()[0]
    assert GOOD.report()[-1] == (
        "from one matrix to the next: node at most 3 periods, 3.00 ms by arrival; echo at most "
        "2 periods, 2.00 ms by arrival; joint states at most 1.00 and 1.00 ms apart"
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"account": Account(1000, 997, 0, 2, 1, 0, 0)}, "1 joint states lost between publisher"),
        ({"account": Account(1000, 997, 0, 2, 0, 1, 0)}, "1 answers lost between node and"),
        ({"account": Account(1000, 997, 1, 2, 0, 0, 0)}, "1 joint states without a valid"),
        ({"account": Account(1000, 998, 0, 2, 0, 0, 1)}, "1 answers to joint states that were"),
        ({"account": Account(1000, 994, 0, 6, 0, 0, 0)}, "superseded [%] 0.600, limit 0.5"),
        ({"wrong": 1}, "1 of 10 answers wrong"),
        ({"checked": 0}, "998 matrices arrived, 0 were recomputed"),
        ({"echo": Percentiles(0.7e-4, 3e-4, 3e-4, 1.0)}, "median to that of echo 1.429, limit"),
        ({"echo": Percentiles(1e-4, 2e-4, 2e-4, 1.0)}, "99th percentile to that of echo 1.500"),
        ({"echo": Percentiles.of(np.empty(0))}, "median to that of echo nan"),
        ({"cpu": 0.21}, "processor time [% at 1 kHz] 21.021, limit 20"),
        ({"sent_rate": 970.0}, "only 970 joint states per second instead of 1000: the machine"),
        ({"memory": (100.0, 102.5)}, "memory growth [MB] 2.500, limit 2"),
    ],
)
def test_each_fault_is_named(changes: dict[str, object], words: str) -> None:
    faults = Result(**{**vars(GOOD), **changes}).faults(Limits())  # type: ignore[arg-type]
    assert [fault for fault in faults if words in fault], faults


def test_times_are_judged_beside_the_echo_node_and_by_themselves_on_request() -> None:
    """On a slow machine the echo node, which computes nothing, is as slow."""
    slow = {
        "node": Percentiles(6e-4, 3e-3, 4e-3, 1.0),
        "echo": Percentiles(5.5e-4, 2.9e-3, 3e-3, 1.0),
    }
    result = Result(**{**vars(GOOD), **slow})
    assert result.faults(Limits()) == []
    faults = result.faults(Limits(p50=0.15, p99=0.5))
    assert "median [ms] 0.600, limit 0.15" in faults
    assert "99th percentile [ms] 3.000, limit 0.5" in faults


def test_readers_that_were_killed_are_counted(tmp_path: Path) -> None:
    assert ended_readers(tmp_path / "none") == EndedReaders(0, 0, 0)
    (tmp_path / "counts").write_text("12 4 1")
    result = Result(**{**vars(GOOD), "readers": ended_readers(tmp_path / "counts")})
    assert result.report()[-1] == (
        "12 other readers killed, 4 of them stopped before; 1 had got no matrix"
    )


def test_processor_time_is_judged_per_joint_state() -> None:
    result = Result(**{**vars(GOOD), "rate": 3000.0, "sent_rate": 3000.0, "cpu": 0.55})
    assert result.faults(Limits()) == []


# --- what run and publisher share -------------------------------------------------------------


def test_control_is_seen_from_both_sides(tmp_path: Path) -> None:
    run = Control(tmp_path / "control", 3)
    publisher = Control(tmp_path / "control")
    assert (publisher.command, publisher.ready, publisher.full) == (
        PublisherCommand.WAIT,
        False,
        False,
    )
    run.order(PublisherCommand.SEND, Receiver.ECHO)
    assert (publisher.command, publisher.target) == (PublisherCommand.SEND, Receiver.ECHO)
    publisher.ready = True
    publisher.late = 4
    assert (run.ready, run.late) == (True, 4)
    for stamp in (7, 8, 9):
        assert not publisher.full
        publisher.add(Receiver.ECHO, stamp)
    publisher.add(Receiver.NODE, 5)
    assert publisher.full
    assert run.sent(Receiver.ECHO).tolist() == [7, 8, 9]
    assert run.sent(Receiver.NODE).tolist() == [5]


def test_node_counts_are_read_from_its_last_words() -> None:
    output = (
        "[INFO] inactive: published 5 matrices and 0 times INVALID; 1 joint states were "
        "superseded by newer ones\n[INFO] inactive: published 12 matrices and 3 times INVALID; "
        "2 joint states were superseded by newer ones"
    )
    counts = node_counts(output)
    assert counts == NodeCounts(12, 3, 2)
    assert counts.seen == 17
    with pytest.raises(SoakError, match="it said:\nnothing of use"):
        node_counts("nothing of use")


# --- the run ----------------------------------------------------------------------------------


def start(*arguments: str, **variables: str) -> Program:
    import_module("rclpy")
    import_module("delassus_msgs")
    return python("-m", "soak", *arguments, apart=True, domain=new_domain(), environment=variables)


def whole_run(*arguments: str) -> tuple[int, str, str]:
    """Return exit status, output and errors of a run at a low rate, as the machine may be busy.

    What is sent is never too old; where the peer was kept from running as long as its turns are,
    there is nothing to compare with, and it is done again.
    """
    patient = ("input_timeout", "contacts_timeout", "orientation.timeout")
    ros = [word for name in patient for word in ("-p", f"{name}:=60.0")]
    for _ in range(3):
        with start("--rate=100", "--superseded=99", *arguments, "--", *ros) as program:
            status, output, errors = program.wait(), program.output, program.errors
        if not re.search(r"^(echo|G alone) +p50 nan", output, re.MULTILINE):
            break
    return status, output, errors


def faults_of_the_run(errors: str) -> list[str]:
    """Return the faults, but for that the machine was too busy even for a low rate."""
    busy = "the machine was too busy for the publisher"
    return [line for line in errors.splitlines() if not line.endswith(busy)]


def test_a_short_run_accounts_for_every_joint_state() -> None:
    """One limit nobody can keep."""
    loose = [f"--{name}=1e9" for name in ("p99", "ratio", "cpu", "growth")]
    status, output, errors = whole_run("--seconds=3", "--p50=1e-6", *loose)
    assert status == 1, output + errors
    found = re.search(r"(\d+) joint states: (\d+) answered, (\d+) superseded", output)
    assert found is not None, output + errors
    sent, answered, superseded = map(int, found.groups())
    assert sent == answered + superseded > 100
    assert "0 refused, 0 lost before and 0 after the node\n" in output
    assert re.search(r"^[1-9]\d* answers recomputed, 0 of them wrong$", output, re.MULTILINE)
    faults = faults_of_the_run(errors)
    assert len(faults) == 1, errors
    assert faults[0].startswith("fault: median [ms] ")
    assert output.splitlines()[-1] == "FAIL"


@pytest.mark.slow
def test_a_run_with_outputs_is_compared_with_the_matrix_alone() -> None:
    loose = [f"--{name}=1e9" for name in ("p99", "cpu", "growth")]
    _, output, errors = whole_run("--seconds=3", "--outputs=a0,h", *loose)
    assert "0 refused, 0 lost before and 0 after the node\n" in output, output + errors
    assert re.search(r"^[1-9]\d* answers recomputed, 0 of them wrong$", output, re.MULTILINE)
    assert re.search(r"^node to G alone: p50 \d", output, re.MULTILINE)


def test_an_interrupted_run_ends_its_processes_and_says_so() -> None:
    with start(SOAK_SECONDS="1000") as program:
        program.wait_for("1000 s at 1000 Hz, m = 24")

        def three() -> list[int]:
            found = children_of(program.process.pid)
            return found if len(found) >= 3 else []

        children = program.until(three, "three processes")
        assert program.stop() == 1
        assert "interrupted" in program.errors
        assert "Traceback" not in program.errors
        assert len(children) == 3
        assert not [child for child in children if Path(f"/proc/{child}").exists()]


@pytest.mark.parametrize("seconds", ["-1", "nan", "soon"])
def test_bad_times_are_refused(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        soak.main([f"--seconds={seconds}"])
    assert f"'{seconds}' is not a positive number" in capsys.readouterr().err


def test_node_arguments_describe_the_contacts() -> None:
    arguments = " ".join(node_arguments(["-p", "algorithm:=efpa"]))
    for name, frame in CONTACTS.items():
        assert f"contacts.{name}.frame:={frame}" in arguments
        assert f"contacts.{name}.kind:=surface" in arguments
    assert arguments.endswith("-p algorithm:=efpa")


@pytest.mark.needs("delassus_msgs")
def test_the_soak_consumer_notes_a_message_that_contradicts_itself() -> None:
    """And goes on: the run says so at its next look."""
    from delassus_msgs.msg import DelassusMatrix
    from rclpy.serialization import serialize_message
    from ros_support import node_in_own_domain
    from soak.consumer import SoakNode

    with node_in_own_domain(lambda: SoakNode(9, 6)) as node:
        good = DelassusMatrix(
            sequence=3, contacts=["LF"], kinds=["surface"], status=[2], row_offsets=[0, 6],
            matrix=[1.0] * 36, validity=DelassusMatrix.VALIDITY_OK,
        )  # fmt: skip
        wrong = DelassusMatrix(matrix=[1.0], validity=DelassusMatrix.VALIDITY_OK)
        for on_message in (node._on_matrix, node._on_echo):
            for message in (good, wrong, good):
                on_message(serialize_message(message))
        assert [arrivals.count for arrivals in node.arrivals.values()] == [2, 2]
        assert node.malformed is not None and "1 matrix values" in node.malformed


# --- changes of the algorithm -----------------------------------------------------------------

MS = 1_000_000


def answers(stamps: list[int], delay: int = MS // 10) -> Arrivals:
    """Return arrivals of good answers to these stamps [ms]."""
    arrivals = Arrivals(100)
    for number, stamp in enumerate(stamps):
        arrivals.note(MS * stamp, MS * stamp + delay, number + 1, True)
    return arrivals


def test_the_longest_gap() -> None:
    sent = MS * np.arange(1000, 1020, dtype=np.int64)
    answered = [stamp for stamp in range(1000, 1020) if stamp not in (1007, 1008)]
    gaps = MatrixGaps.of(sent, answers(answered), 0.3)
    assert gaps.periods == 3
    assert gaps.arrival == pytest.approx(0.003)
    assert gaps.sent == pytest.approx(0.001)
    assert gaps.stretches == ()


def test_each_stretch_has_its_longest_gap() -> None:
    sent = MS * np.arange(1000, 1030, dtype=np.int64)
    missing = (1002, 1003, 1004, 1012, 1027, 1028)
    answered = [stamp for stamp in range(1000, 1030) if stamp not in missing]
    # What ends before the first mark belongs to none; the last stretch goes on to the end.
    gaps = MatrixGaps.of(
        sent, answers(answered), 0.3, [MS * mark for mark in (1006, 1011, 1020, 1026)]
    )
    assert (gaps.periods, gaps.stretches) == (4, (1, 2, 1, 3))


def test_a_pause_of_the_publisher_is_no_gap() -> None:
    stamps = [*range(1000, 1010), *range(4000, 4010)]
    sent = MS * np.array(stamps, dtype=np.int64)
    gaps = MatrixGaps.of(sent, answers(stamps), 0.3)
    assert (gaps.periods, gaps.arrival) == (1, pytest.approx(0.001))
    # What is not answered around it is not counted either: nothing came after it.
    gaps = MatrixGaps.of(sent, answers([s for s in stamps if s not in (1009, 4000)]), 0.3)
    assert gaps.periods == 1


def test_nothing_answered_is_no_gap() -> None:
    gaps = MatrixGaps.of(MS * np.arange(5, dtype=np.int64), Arrivals(10), 0.3)
    assert gaps.periods == 0 and np.isnan(gaps.arrival)


def test_a_gap_beyond_the_limit_is_a_fault_while_the_algorithm_changes() -> None:
    result = replace(GOOD, changes=2500, node_gaps=MatrixGaps(3, 0.003, 0.001, (2, 3, 1)))
    assert any("periods between two matrices 3.000, limit 2" in f for f in result.faults(Limits()))
    assert result.report()[-1] == (
        "2500 changes of the algorithm; at most 2, 3 periods in each 1000 of them, 1 periods in "
        "the rest"
    )
    result = replace(GOOD, changes=10, node_gaps=MatrixGaps(2, 0.002, 0.001, (2,)))
    assert result.faults(Limits()) == []
    assert result.report()[-1] == "10 changes of the algorithm; at most 2 periods in the time"


def test_no_change_where_some_were_asked_for_is_a_fault() -> None:
    faults = replace(GOOD, changes=0).faults(Limits())
    assert "the algorithm has not changed once after the warm-up" in faults
    # The gap is judged as well.
    assert any("periods between two matrices 3.000" in fault for fault in faults)


class FakeConsumer:
    """Changes its algorithm when it is asked, one look later."""

    def __init__(self) -> None:
        self.algorithm = ""
        self.asked: list[str] = []

    def set_algorithm(self, name: str) -> SimpleNamespace:
        self.asked.append(name)
        result = SimpleNamespace(successful=True, reason="")
        return SimpleNamespace(done=lambda: True, result=lambda: SimpleNamespace(results=[result]))


def test_the_swapper_waits_for_each_change() -> None:
    consumer = FakeConsumer()
    swapper = Swapper(consumer, ["efpa", "ltl"], pause=0.0)
    swapper.look()
    assert consumer.asked == [] and swapper.is_used
    consumer.algorithm = "pv_osimr"
    for _ in range(3):
        swapper.look()
    assert consumer.asked == ["efpa"] and swapper.count == 0
    for k in range(1, 7):
        consumer.algorithm = consumer.asked[-1]
        swapper.look()
        swapper.look()
        assert swapper.count == k
    assert consumer.asked == [*["efpa", "ltl", "pv_osimr"] * 2, "efpa"]
    begun = swapper.marks[0]
    for _ in range(2 * STRETCH):
        consumer.algorithm = consumer.asked[-1]
        swapper.look()
    assert swapper.count == 6 + 2 * STRETCH
    assert swapper.marks == sorted(swapper.marks) and len(swapper.marks) == 3
    swapper.restart()
    assert swapper.count == 0 and len(swapper.marks) == 1 and swapper.marks[0] > begun
    same = Swapper(consumer, ["ltl", consumer.algorithm])
    same.look()
    assert "already" in same.refusal


def test_the_swapper_leaves_the_node_alone() -> None:
    consumer = FakeConsumer()
    consumer.algorithm = "pv_osimr"
    swapper = Swapper(consumer, [])
    swapper.look()
    assert (consumer.asked, swapper.count, swapper.is_used) == ([], 0, False)


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_change_that_does_not_come_about_is_a_fault(monkeypatch, is_answered: bool) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    consumer = FakeConsumer()
    answer = SimpleNamespace(done=lambda: False)
    if not is_answered:
        monkeypatch.setattr(consumer, "set_algorithm", lambda _: answer)
    consumer.algorithm = "pv_osimr"
    swapper = Swapper(consumer, ["efpa"])
    for _ in range(3):
        swapper.look()
    now += 29.0
    swapper.look()
    # The time in which no matrices come does not count.
    swapper.pause()
    now += 29.0
    swapper.look()
    now += 29.0
    swapper.look()
    assert swapper.refusal == ""
    now += 1.0
    swapper.look()
    assert swapper.refusal == "'efpa' is not in use 30 s after it was asked for"


@pytest.mark.parametrize("text", ["", "efpa,", "efpa,ltl,efpa"])
def test_algorithms_to_go_through_are_checked(text: str, capsys) -> None:
    with pytest.raises(SystemExit):
        soak.main(["--swap", text])
    assert "expected different names with commas between them" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_in_which_other_readers_are_killed() -> None:
    loose = [f"--{name}=1e9" for name in ("ratio", "cpu", "growth")]
    _, output, errors = whole_run("--seconds=8", "--kill-readers", *loose)
    assert faults_of_the_run(errors) == [], output + errors
    assert "0 refused, 0 lost before and 0 after the node\n" in output, output + errors
    found = re.search(r"(\d+) other readers killed, (\d+) of them stopped before", output)
    assert found is not None, output + errors
    assert int(found[1]) > 3 and int(found[2]) > 0
