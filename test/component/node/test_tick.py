"""Faults of joint states, contacts, clocks and kernels: right against dense, or marked."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import robots
import small
from delassus_msgs.msg import ActiveContacts, DelassusMatrix
from failing import make_fail
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState
from small import flat_foot
from tick_support import (
    DEGRADED,
    INVALID,
    MS,
    OK,
    START,
    Rig,
    said,
    to_message,
)

from delassus import Contact, DelassusSolver, Problem, Robot, algorithms
from delassus.algorithms import NumericAlgorithm, registry
from delassus.conditioning.monitor import ConditionSettings, Damping
from delassus.errors import AlgorithmError
from delassus.scalars.ports import Status
from delassus_ros.inputs.findings import Reason, Validity
from delassus_ros.inputs.limits import Limits
from delassus_ros.ros.messages import UnreadableError

FEET = ("LF", "RF", "LH", "RH")


@pytest.fixture(name="solver", scope="module")
def make_solver() -> DelassusSolver:
    robot = Robot.from_urdf(robots.unlimited())
    contacts = [Contact(foot, f"{foot}_FOOT") for foot in FEET]
    return DelassusSolver(Problem(robot, contacts))


@pytest.fixture(name="rig")
def make_rig(solver) -> Rig:
    rig = Rig(solver)
    rig.touch(*FEET)
    return rig


def halves(rig: Rig) -> tuple[list[str], list[str]]:
    return rig.joints[:5], rig.joints[5:]


# --- numerical status ---------------------------------------------------------------------------


def test_a_good_joint_state(rig) -> None:
    message = rig.send()
    assert said(message) == (OK, Reason.NONE)
    assert (message.rank, message.structural_rank) == (12, 12)
    assert message.conditioning == DelassusMatrix.CONDITIONING_OK
    eigenvalues = np.linalg.eigvalsh(rig.matrix(START, FEET))
    assert message.condition == pytest.approx(eigenvalues[-1] / eigenvalues[0], rel=1e-9)
    last = rig.tick.last
    assert (last.rows, last.contacts, last.text) == (12, FEET, "")
    assert (last.validity, last.stamp_ns, last.age) == (Validity.OK, START, 0.0)
    assert last.examination is not None and last.examination.rank == 12


def test_condition_follows_the_motion(rig) -> None:
    for _ in range(300):
        message = rig.send()
        eigenvalues = np.linalg.eigvalsh(rig.matrix(rig.now, FEET))
        expected = eigenvalues[-1] / eigenvalues[0]
        assert message.condition == pytest.approx(expected, rel=1e-9)
        rig.wait(1)
        rig.touch(*FEET)


@pytest.mark.parametrize("mode", [Damping.UNIFORM, Damping.SELECTIVE])
def test_damping_is_published_and_said(rig, mode) -> None:
    settings = ConditionSettings(damping=mode, damping_ratio=0.5)
    rig.tick.limits = replace(rig.tick.limits, condition=settings)
    message = rig.send()
    assert said(message) == (OK, Reason.DAMPED)
    assert (message.damping_mode, message.damping > 0) == (int(mode), True)
    found = np.reshape(message.matrix, (12, 12))
    G = rig.matrix(START, FEET)
    if mode is Damping.UNIFORM:
        np.testing.assert_allclose(found, G + message.damping * np.eye(12), rtol=1e-12)
    else:
        values, expected = np.linalg.eigvalsh(found), np.linalg.eigvalsh(G)
        floor = 0.5 * expected[-1]
        np.testing.assert_allclose(values, np.maximum(expected, floor), rtol=1e-9)
    rig.tick.limits = replace(rig.tick.limits, condition=ConditionSettings())
    message = rig.send(at=1)
    assert said(message) == (OK, Reason.NONE)
    assert (message.damping_mode, message.damping) == (DelassusMatrix.DAMPING_NONE, 0.0)


def test_a_damping_amount_is_that_of_its_own_message(rig) -> None:
    """Messages are filled in place: an amount must not stay from one to the next."""
    settings = ConditionSettings(damping=Damping.UNIFORM, damping_ratio=0.1)
    rig.tick.limits = replace(rig.tick.limits, condition=settings)
    amounts = []
    for active in (FEET, ("LF",), FEET, ("LF",)):
        rig.touch(*active)
        message = rig.send()
        m = 3 * len(active)
        difference = np.reshape(message.matrix, (m, m)) - rig.matrix(rig.now, active)
        np.testing.assert_allclose(difference, message.damping * np.eye(m), atol=1e-12)
        amounts.append(message.damping)
        rig.wait(1)
    assert len(set(amounts)) == 4


def test_ill_conditioned_is_said_and_stays_right(rig) -> None:
    rig.tick.limits = Limits(condition=ConditionSettings(weak=1.1, singular=1.5e3))
    message = rig.send()
    assert said(message) == (OK, Reason.ILL_CONDITIONED)
    assert message.conditioning == DelassusMatrix.CONDITIONING_WEAK


def test_four_points_on_one_foot_are_no_fault() -> None:
    """Twelve rows of a rigid foot have rank six, in any posture."""
    contacts = flat_foot(4)
    rig = Rig(DelassusSolver(Problem(small.walker(), contacts)))
    rig.touch(*(contact.name for contact in contacts))
    message = rig.send()
    assert said(message) == (OK, Reason.NONE)
    assert (message.rank, message.structural_rank) == (6, 6)
    assert message.conditioning == DelassusMatrix.CONDITIONING_OK


def test_late_is_said_of_the_late_message_itself(rig) -> None:
    rig.tick.due = -math.inf
    assert said(rig.send()) == (OK, Reason.OVERRUN)
    rig.tick.due = math.inf
    assert said(rig.send(at=1)) == (OK, Reason.NONE)


# --- joint states -------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [True, False])
def test_without_positions_behind_whole_ones_that_wait(rig, names) -> None:
    """The good one of a drained batch is answered."""
    message = deserialize_message(rig.state(names=None if names else []), JointState)
    message.position, message.velocity = [], [0.1] * len(message.name)
    without = serialize_message(message)
    assert rig.read("joint_states", rig.state())
    assert not rig.read("joint_states", without)
    assert said(rig.publish(rig.answer())) == (OK, Reason.NONE)
    # Nor is there an answer where it does not wait.
    assert rig.answer(without) is None
    rig.wait(501)
    rig.touch(*FEET)
    reason = Reason.JOINT_SIZE_MISMATCH if names else Reason.JOINT_MISSING
    assert said(rig.publish(rig.answer(without))) == (INVALID, reason)


def test_a_stamp_at_the_end_of_time(rig) -> None:
    end = (2**31 - 1) * 10**9 + 999_999_999
    assert said(rig.send(stamp=end)) == (DEGRADED, Reason.STAMP_IN_FUTURE)
    assert said(rig.send()) == (DEGRADED, Reason.STAMP_JUMPED_BACK)


def test_a_fault_of_the_program_itself(rig) -> None:
    message = rig.publish(rig.taken(rig.tick.fault("it broke")))
    assert said(message) == (INVALID, Reason.SOLVER_FAILED)
    assert rig.tick.last.text == "it broke"
    assert said(rig.send()) == (INVALID, Reason.NO_CONTACTS_RECEIVED)
    assert said(rig.good()) == (OK, Reason.NONE)


def test_contacts_without_a_timeout_survive_unreadable_bytes_and_a_fault(solver) -> None:
    """A latched set comes once: broken bytes after it do not replace it."""
    rig = Rig(solver, limits=Limits(contacts_timeout=math.inf))
    rig.touch("LF", "RH")
    with pytest.raises(UnreadableError):
        rig.read("active_contacts", b"no set")
    assert said(rig.publish(rig.taken(rig.tick.fault("it broke")))) == (
        INVALID, Reason.SOLVER_FAILED,
    )  # fmt: skip
    assert said(rig.send()) == (OK, Reason.NONE)


def test_contacts_that_fail_again_after_a_fault_are_dropped(solver, monkeypatch) -> None:
    rig = Rig(solver, limits=Limits(contacts_timeout=math.inf))
    rig.touch("LF", "RH")
    accept = rig.tick.inputs.accept

    def fail(*message: object) -> None:
        accept(*message)
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr(rig.tick.inputs, "accept", fail)
        with pytest.raises(ZeroDivisionError):
            list(rig.tick.fault("it broke"))
    assert said(rig.send()) == (INVALID, Reason.NO_CONTACTS_RECEIVED)
    assert said(rig.good()) == (OK, Reason.NONE)


def test_parts_of_one_instant_are_right(rig) -> None:
    front, hind = halves(rig)
    answers = []
    for _ in range(20):
        answers += [rig.send(front), rig.send(hind)]
        rig.wait(1)
    first, *others = (each for each in answers if each is not None)
    assert said(first) == (INVALID, Reason.JOINT_MISSING)
    assert {said(each) for each in others} == {(OK, Reason.NONE)}
    assert len(others) == 20


def test_parts_out_of_step_are_merged_with_the_oldest_stamp(rig) -> None:
    """The positions of the newer parts are newer than the stamp, by less than max_skew."""
    front, hind = halves(rig)
    rig.truth = lambda stamp: dict.fromkeys(rig.joints, 0.3)
    rig.send(front)
    answers = []
    for k in range(20):
        rig.wait(2)
        answers.append(rig.send((hind, front)[k % 2]))
        if answers[-1] is not None:
            assert said(answers[-1]) == (OK, Reason.NONE)
            assert rig.tick.last.stamp_ns == rig.now - 2 * MS
    assert rig.tick.published == 10


def test_drained_parts_are_each_taken_in(rig) -> None:
    front, hind = halves(rig)
    rig.send(front)
    rig.send(hind)
    before = rig.tick.sequence
    for _ in range(3):
        rig.wait(1)
        rig.read("joint_states", rig.state(front))
        rig.read("joint_states", rig.state(hind))
    rig.read("joint_states", rig.state(front))
    message = rig.publish(rig.answer())
    assert said(message) == (OK, Reason.NONE)
    assert rig.tick.last.stamp_ns == rig.now
    assert rig.tick.superseded == 2
    assert message.sequence == before + 3
    assert rig.answer() is None


def test_joint_states_of_another_robot_do_not_supersede_those_of_this_one(rig) -> None:
    """A queue with both has to be taken in one by one."""
    for _ in range(3):
        rig.wait(1)
        rig.read("joint_states", rig.state())
        rig.read("joint_states", rig.state(["gripper"]))
        message = rig.publish(rig.answer())
        assert said(message) == (OK, Reason.NONE)
        assert rig.tick.last.stamp_ns == rig.now
    assert rig.tick.superseded == 0


def test_a_jump_is_said_though_a_newer_joint_state_is_there(rig) -> None:
    rig.send()
    rig.read("joint_states", rig.state(at=-20))
    rig.read("joint_states", rig.state(at=-19))
    message = rig.publish(rig.answer())
    assert said(message) == (DEGRADED, Reason.STAMP_JUMPED_BACK)
    assert "jumped back by 0.02 s" in rig.tick.last.text
    assert said(rig.send(at=-18)) == (OK, Reason.NONE)


def test_kept_joint_state_grows_old(rig) -> None:
    rig.read("joint_states", rig.state())
    rig.wait(20)
    message = rig.publish(rig.answer())
    assert message.input_age == pytest.approx(0.02)
    rig.read("joint_states", rig.state())
    rig.wait(600)
    rig.touch(*FEET)
    message = rig.publish(rig.answer())
    assert said(message) == (INVALID, Reason.INPUT_STALE)
    assert "0.6 s old when their turn came" in rig.tick.last.text


# --- silence and clocks -------------------------------------------------------------------------


def test_something_goes_out_at_least_every_input_timeout(rig) -> None:
    assert rig.watch() is None
    rig.wait(600)
    message = rig.publish(rig.watch())
    assert said(message)[0] == INVALID
    assert said(message)[1] & Reason.NO_JOINT_STATE
    assert "no joint state for 0.6 s" in rig.tick.last.text
    # Again and again, as a heartbeat; looked for ten times per timeout.
    for _ in range(3):
        rig.wait(440)
        assert rig.watch() is None
        rig.wait(50)
        assert said(rig.publish(rig.watch()))[1] & Reason.NO_JOINT_STATE
    rig.touch(*FEET)
    assert said(rig.send()) == (OK, Reason.NONE)
    stamp = rig.now
    rig.wait(600)
    message = rig.publish(rig.watch())
    assert said(message)[1] & Reason.INPUT_STALE
    assert rig.tick.last.stamp_ns == stamp
    rig.wait(490)
    assert said(rig.publish(rig.watch()))[1] & Reason.INPUT_STALE


@pytest.mark.parametrize("paused", ["before", "between", "not"])
def test_a_pause_of_this_process_makes_no_message_younger(rig, paused) -> None:
    """After it has taken a message, before it has noted when: it may be stopped at any point."""
    message = ActiveContacts(names=list(FEET), status=[ActiveContacts.ACTIVE] * len(FEET))
    sent, system = rig.now, rig.now

    def system_now() -> int:
        # Read after the node's clock.
        return system + (600 * MS if paused == "between" else 0)

    rig.tick.system_now = system_now
    if paused == "before":
        rig.wait(600)
        system += 600 * MS
    rig.read("active_contacts", message, sent)
    expected = (OK, Reason.NONE) if paused == "not" else (INVALID, Reason.CONTACTS_STALE)
    assert said(rig.send()) == expected


def test_contacts_that_never_grow_old_outlive_a_jump(solver) -> None:
    """Nobody need repeat them."""
    rig = Rig(solver, limits=Limits(contacts_timeout=math.inf))
    rig.wait(10_000)
    rig.touch(*FEET)
    rig.now = START
    rig.tick.clock_jumped()
    assert said(rig.send()) == (OK, Reason.NONE)
    assert rig.tick.healths()["active_contacts"].age == 0.0


def test_counts_begin_with_the_activation_and_go_on_with_another_robot(rig, solver) -> None:
    rig.send()
    rig.send(at=1)
    rig.read("joint_states", rig.state())
    other = Rig(solver)
    other.touch(*FEET)
    other.tick.take_over(rig.tick)
    # What waited for its answer has none any more.
    assert (other.tick.published, other.tick.superseded) == (2, 1)
    assert other.send().sequence == 4
    other.tick.begin()
    counts = other.tick.published, other.tick.refused, other.tick.superseded
    assert counts == (0, 0, 0)
    assert other.tick.sequence == 4


def test_a_clock_without_time_yet(solver) -> None:
    """Simulation: nothing is too old before the first message of the clock."""
    rig = Rig(solver)
    rig.now = 0
    rig.tick.begin()
    rig.touch(*FEET)
    message = rig.send(stamp=START)
    assert said(message) == (OK, Reason.NONE)
    assert math.isnan(message.input_age)
    assert rig.watch() is None
    # It begins: what has come until then is new, and grows old from now on.
    rig.now = START
    assert rig.watch() is None
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.wait(600)
    assert said(rig.send()) == (INVALID, Reason.CONTACTS_STALE)
    rig.wait(600)
    message = rig.publish(rig.watch())
    assert said(message) == (INVALID, Reason.INPUT_STALE | Reason.CONTACTS_STALE)
    assert rig.tick.last.text.startswith("no joint state any more for 0.6 s")


def test_parts_from_before_time_begins(solver) -> None:
    rig = Rig(solver)
    rig.now = 0
    rig.tick.begin()
    rig.touch(*FEET)
    assert said(rig.send(rig.joints[:6], stamp=START)) == (INVALID, Reason.JOINT_MISSING)
    assert said(rig.send(rig.joints[6:], stamp=START)) == (OK, Reason.NONE)
    rig.now = START
    assert rig.send(rig.joints[:6]) is None
    assert said(rig.send(rig.joints[6:])) == (OK, Reason.NONE)


def test_silence_before_and_after_time_begins(solver) -> None:
    rig = Rig(solver)
    rig.now = 0
    rig.tick.begin()
    assert rig.watch() is None
    rig.now = START
    assert rig.watch() is None
    rig.wait(600)
    assert Reason.NO_JOINT_STATE in said(rig.publish(rig.watch()))[1]
    assert "no joint state for 0.6 s" in rig.tick.last.text


def test_begin_forgets_everything(rig) -> None:
    rig.send()
    rig.tick.begin()
    assert rig.tick.last.stamp_ns == 0
    assert said(rig.send()) == (INVALID, Reason.NO_CONTACTS_RECEIVED)


# --- contacts -----------------------------------------------------------------------------------


def test_contacts_that_are_not_repeated_become_stale(rig) -> None:
    rig.wait(499)
    assert said(rig.send()) == (OK, Reason.NONE)
    rig.wait(2)
    assert said(rig.send()) == (INVALID, Reason.CONTACTS_STALE)
    assert "repeat it at 10 Hz" in rig.tick.last.text
    assert rig.tick.present_contacts is None
    rig.touch(*FEET)
    assert said(rig.send()) == (OK, Reason.NONE)
    assert rig.tick.present_contacts == FEET
    rig.wait(1999)
    rig.tick.limits = Limits(contacts_timeout=2.0)
    assert said(rig.send()) == (OK, Reason.NONE)


def test_all_rows_stay_right_while_contacts_are_stale(solver) -> None:
    rig = Rig(solver, all_rows=True)
    rig.touch("LF")
    inactive, active = ActiveContacts.INACTIVE, ActiveContacts.ACTIVE
    assert list(rig.send().status) == [active, inactive, inactive, inactive]
    rig.wait(501)
    message = rig.send()
    assert said(message) == (DEGRADED, Reason.CONTACTS_STALE)
    assert list(message.status) == [ActiveContacts.UNKNOWN] * 4
    rig.touch("LF")
    message = rig.send()
    assert said(message) == (OK, Reason.NONE)
    assert list(message.status) == [active, inactive, inactive, inactive]


def test_contacts_without_a_timeout(solver) -> None:
    rig = Rig(solver, limits=Limits(contacts_timeout=math.inf))
    rig.touch(*FEET)
    rig.wait(3_600_000)
    assert said(rig.send()) == (OK, Reason.NONE)


@pytest.mark.parametrize("times", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_switches_of_contacts(rig, times: int) -> None:
    """The matrix of each is the block of the whole one, with a robot that stands still."""
    subsets = [c for k in range(5) for c in itertools.combinations(FEET, k)]
    rows = {foot: range(3 * i, 3 * i + 3) for i, foot in enumerate(FEET)}
    full = rig.matrix(rig.now, FEET)
    positions = rig.truth(rig.now)
    rig.truth = lambda stamp: positions
    rig.matrix = lambda stamp, names: full[np.ix_(*[[r for n in names for r in rows[n]]] * 2)]
    rng = np.random.default_rng(0)
    for _ in range(times):
        rig.touch(*subsets[rng.integers(len(subsets))])
        rig.wait(0.1)
        assert said(rig.send()) == (OK, Reason.NONE)
        rig.messages.clear()
    assert len(rig.tick._output._made) <= 256


# --- kernels ------------------------------------------------------------------------------------


def test_a_failing_kernel_and_its_stand_in(rig, solver, monkeypatch) -> None:
    make_fail(monkeypatch, rig.tick._solver, Status.NOT_POSITIVE_DEFINITE)
    assert said(rig.send()) == (INVALID, Reason.SOLVER_FAILED)
    assert "pv_osimr failed: NOT_POSITIVE_DEFINITE" in rig.tick.last.text
    other = DelassusSolver(solver.problem, "dense")
    rig.tick.set_solver(other, Reason.FALLBACK_ALGORITHM)
    message = rig.send(at=1)
    assert said(message) == (OK, Reason.FALLBACK_ALGORITHM)
    assert message.algorithm == "dense"
    rig.tick.set_solver(DelassusSolver(solver.problem, "pv_osimr"))
    assert said(rig.send(at=2)) == (OK, Reason.NONE)


def test_a_back_end_that_says_ok_to_nonsense(rig, solver, monkeypatch) -> None:
    class Nonsense(NumericAlgorithm):
        def prepare(self, problem):
            def run(inputs, outputs) -> Status:
                outputs["G"][...] = np.eye(12)
                if inputs["q"][0] > value[0]:
                    outputs["G"][1, 7] = math.inf
                return Status.OK

            return run

    value = [math.inf]
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    registry.register("nonsense")(Nonsense)
    rig.tick.set_solver(DelassusSolver(solver.problem, "nonsense"))
    value[0] = -math.inf
    assert said(rig.send()) == (INVALID, Reason.RESULT_NOT_FINITE)
    assert "nonsense failed: NOT_FINITE at q" in rig.tick.last.text


def test_an_approximate_algorithm_of_somebody_else_is_never_ok(rig, solver, monkeypatch) -> None:
    class Rough(type(algorithms.get("dense"))):
        def approximates(self, problem) -> bool:
            return True

    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    registry.register("rough")(Rough)
    rig.tick.set_solver(DelassusSolver(solver.problem, "rough"))
    assert said(rig.send()) == (DEGRADED, Reason.APPROXIMATE_ALGORITHM)
    assert "rough is an approximation for this robot" in rig.tick.last.text


def test_an_exchange_that_fails_changes_nothing(rig, solver, monkeypatch) -> None:
    class Unlicensed(NumericAlgorithm):
        def prepare(self, problem):
            raise ZeroDivisionError

    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    registry.register("unlicensed")(Unlicensed)
    words = "algorithm 'unlicensed' cannot be prepared for this problem: ZeroDivisionError"
    with pytest.raises(AlgorithmError, match=words):
        rig.tick.set_solver(DelassusSolver(solver.problem, "unlicensed"))
    message = rig.send()
    assert said(message) == (OK, Reason.NONE)
    assert message.algorithm == rig.tick.algorithm == "pv_osimr"


def test_a_kept_joint_state_survives_an_exchange(rig, solver) -> None:
    rig.read("joint_states", rig.state())
    rig.tick.set_solver(DelassusSolver(solver.problem, "dense"))
    message = rig.publish(rig.answer())
    assert said(message) == (OK, Reason.NONE)
    assert message.algorithm == "dense"


# --- limits, reports ----------------------------------------------------------------------------


def test_limits_change_between_two_ticks(rig) -> None:
    assert said(rig.send(at=-100)) == (OK, Reason.NONE)
    rig.tick.limits = Limits(input_timeout=0.05)
    assert said(rig.send(at=-99)) == (INVALID, Reason.INPUT_STALE)


def test_health_of_the_inputs(rig) -> None:
    health = rig.tick.healths()["joint_states"]
    assert not health.received and math.isnan(health.age)
    rig.send()
    rig.wait(100)
    health = rig.tick.healths()["joint_states"]
    assert health.received and health.age == pytest.approx(0.1) and health.timeout == 0.5
    rig.send(LF_HAA=math.nan)
    assert "'LF_HAA' is nan" in rig.tick.healths()["joint_states"].warning
    contacts = rig.tick.healths()["active_contacts"]
    assert contacts.received
    assert contacts.age == pytest.approx(0.1)
    assert "odometry" not in rig.tick.healths()


def test_joint_states_that_are_refused_are_no_silence(rig) -> None:
    """Until they stop: then what was wrong with the last one is not what there is to do."""
    rig.send()
    for _ in range(10):
        rig.wait(100)
        rig.send(LF_HAA=math.nan)
        assert rig.watch() is None
    health = rig.tick.healths()["joint_states"]
    assert "'LF_HAA' is nan" in health.warning
    assert (health.age, health.silence) == (0.0, 0.0)
    rig.wait(600)
    rig.publish(rig.watch())
    health = rig.tick.healths()["joint_states"]
    assert health.silence == pytest.approx(0.6)
    assert not health.warning


def test_joint_states_of_another_robot_are_the_reason_for_silence(rig) -> None:
    rig.send(["x", "y"])
    health = rig.tick.healths()["joint_states"]
    assert not health.received
    assert health.warning == "the joint states have 'x', 'y', none of the robot's joints"
    rig.send()
    assert not rig.tick.healths()["joint_states"].warning
    rig.wait(600)
    rig.send(["x"])
    health = rig.tick.healths()["joint_states"]
    assert health.received and health.silence == pytest.approx(0.6)
    assert health.warning == "the joint states have 'x', none of the robot's joints"


def test_a_set_of_contacts_that_is_refused_has_come(rig) -> None:
    rig.touch("LF", "LF")
    rig.wait(700)
    assert said(rig.send()) == (INVALID, Reason.DUPLICATE_CONTACT)
    health = rig.tick.healths()["active_contacts"]
    assert health.received and health.silence == pytest.approx(0.7)
    assert "'LF' is listed more than once" in health.warning


# --- everything at once -------------------------------------------------------------------------

GRID = 10  # ms: parts of one matrix, less than max_skew apart, are then of the same instant

EVENTS = st.one_of(
    st.tuples(st.just("wait"), st.integers(0, 70)),
    st.tuples(st.just("send"), st.integers(-80, 40), st.sets(st.integers(0, 11))),
    st.tuples(st.just("half"), st.booleans(), st.integers(-3, 1)),
    st.tuples(st.just("whole"), st.integers(-80, 40)),
    st.tuples(st.just("bad"), st.integers(0, 11), st.sampled_from([math.nan, math.inf])),
    st.tuples(st.just("twice"), st.integers(0, 11)),
    st.just(("unstamped",)),
    st.tuples(st.just("touch"), st.lists(st.sampled_from([*FEET, "XX"]), max_size=5)),
    st.just(("watch",)),
    st.tuples(st.just("jump"), st.integers(-200, 200)),
    st.tuples(st.just("drain"), st.lists(st.sets(st.integers(0, 11)), max_size=4)),
)


@examples(max_examples=250)
@given(st.lists(EVENTS, max_size=60))
def test_whatever_comes_is_answered_right_or_marked(solver, events) -> None:
    """The check of each message is in Rig."""
    rig = Rig(solver)
    rig.touch(*FEET)
    for kind, *what in events:
        if kind == "wait":
            rig.wait(GRID * what[0])
        elif kind == "send":
            rig.send([rig.joints[i] for i in what[1]], at=GRID * what[0])
        elif kind == "half":
            rig.send(halves(rig)[what[0]], at=GRID * what[1])
        elif kind == "whole":
            rig.send(at=GRID * what[0])
        elif kind == "bad":
            message = rig.send(**{rig.joints[what[0]]: what[1]})
            assert said(message)[0] == INVALID
        elif kind == "twice":
            assert said(rig.send([*rig.joints, rig.joints[what[0]]]))[0] == INVALID
        elif kind == "unstamped":
            rig.send(stamp=0)
        elif kind == "touch":
            rig.touch(*what[0])
        elif kind == "watch":
            rig.publish(rig.watch())
        elif kind == "drain":
            for part in what[0]:
                rig.read("joint_states", rig.state([rig.joints[i] for i in part]))
            rig.publish(rig.answer())
        else:
            rig.now += GRID * MS * what[0]
            rig.tick.clock_jumped()


def test_a_set_out_of_order_is_in_doubt_for_a_second_alone(solver) -> None:
    """Where sets need not be repeated, none may come that ends the doubt."""
    rig = Rig(solver, limits=Limits(contacts_timeout=math.inf))
    rig.touch("LF")
    late = ActiveContacts(names=["RF"], status=[ActiveContacts.ACTIVE])
    late.header.stamp = to_message(rig.now - 1000)
    rig.read("active_contacts", late)
    assert said(rig.send()) == (DEGRADED, Reason.STAMP_JUMPED_BACK)
    rig.wait(1001)
    assert said(rig.send()) == (OK, Reason.NONE)
