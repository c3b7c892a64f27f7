"""Joint states of robots with closed loops: which joints they hold, and what does not close."""

from __future__ import annotations

import math
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from closed_rigs import FEET, LEGS, LIFT, Bar, Geared
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from linkages import REFERENCE, assembled
from tick_support import DEGRADED, INVALID, MS, OK, START, Rig, said

from delassus import Contact, DelassusSolver, Problem, Robot, Transform
from delassus.closure import Closure
from delassus.closure import closure as closure_module
from delassus.errors import CompilerError, ProblemError, RobotError
from delassus.model import Body, Coupling, Frame, Inertia, Joint, JointKind
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.joints import Gate, JointGate
from delassus_ros.inputs.limits import Limits


def gate_of(rig: Rig) -> JointGate:
    return rig.tick.inputs.gate


def closed_gate(geared: Geared) -> JointGate:
    return JointGate(geared.robot, closure=geared.closure)


@pytest.fixture(name="geared", scope="module")
def make_geared() -> Geared:
    return Geared()


@pytest.fixture(name="rig")
def make_rig(geared) -> Rig:
    return geared.rig()


# --- which joints joint states hold -------------------------------------------------------------


def test_the_independent_joints_do(rig) -> None:
    for _ in range(50):
        message = rig.send([*reversed(LEGS), "gripper", "LIFT_CRANK"])
        assert said(message) == (OK, Reason.NONE)
        rig.wait(1)
    assert rig.warnings == []
    assert (message.rank, message.structural_rank) == (12, 12)


def test_motors_do_and_names_may_change_at_any_time(rig) -> None:
    motors = [f"{name}_ROTOR" for name in LEGS]
    lists = [
        list(dict.fromkeys([*joints, lift]))
        for joints in (LEGS, motors, LEGS[:6] + motors[6:], rig.joints, motors)
        for lift in LIFT
    ]
    for names in lists:
        assert said(rig.send(names)) == (OK, Reason.NONE)
        rig.wait(1)
    assert rig.warnings == []


def test_no_joints_and_foreign_ones(rig) -> None:
    assert said(rig.send([])) == (INVALID, Reason.JOINT_MISSING)
    assert "LIFT_CRANK" not in rig.tick.last.text
    assert rig.send(["gripper"]) is None
    rig.wait(600)
    message = rig.publish(rig.watch())
    assert said(message)[1] & Reason.INPUT_STALE
    assert said(rig.send(LEGS + LIFT[:1]))[1] & Reason.CONTACTS_STALE


# --- several publishers -------------------------------------------------------------------------


def test_two_publishers_are_merged(rig) -> None:
    parts = LEGS[:6], [*LEGS[6:], "LIFT_CRANK"]
    answers = []
    for _ in range(20):
        answers += [rig.send(part) for part in parts]
        rig.wait(1)
    found = [said(each) for each in answers if each is not None]
    # Until both publishers and all of their joints are known.
    begin = found.index((OK, Reason.NONE))
    assert begin <= 3 and set(found[:begin]) == {(INVALID, Reason.JOINT_MISSING)}
    assert set(found[begin:]) == {(OK, Reason.NONE)} and len(found) - begin >= 17


def test_joint_states_before_the_clock_began_are_new_when_it_begins(geared) -> None:
    front, hind = LEGS[:6], [*LEGS[6:], "LIFT_CRANK"]
    for first, second in ((front, hind), (front + hind, ["LIFT_ROCKER"])):
        rig = geared.rig(limits=Limits(contacts_timeout=math.inf))
        rig.now = 0
        rig.tick.begin()
        rig.touch(*FEET)
        for _ in range(3):
            rig.send(first, stamp=START)
            rig.send(second, stamp=START)
        rig.now = START
        answers = [rig.send(second), rig.send(first)]
        assert [said(each) for each in answers if each is not None] == [(OK, Reason.NONE)]


def test_other_joints_beside_such_that_do_are_passed_over(rig) -> None:
    names = [*LEGS, "LIFT_CRANK"]
    for _ in range(5):
        assert said(rig.send(names)) == (OK, Reason.NONE)
        assert rig.send(["LIFT_ROCKER", "LIFT_COUPLER"]) is None
        rig.wait(10)
    # Once the first ones do not come any more, it has to be said.
    for _ in range(60):
        rig.wait(10)
        rig.touch(*FEET)
        message = rig.send(["LIFT_ROCKER", "LIFT_COUPLER"])
        if message is not None:
            break
    assert said(message) == (INVALID, Reason.JOINT_MISSING)


def test_part_beside_sufficient_joint_states_is_ignored_and_compared(rig) -> None:
    """As for an open chain; it was used alone before."""
    names = [*LEGS, "LIFT_CRANK"]
    for _ in range(5):
        assert said(rig.send(names)) == (OK, Reason.NONE)
        assert rig.send(LEGS[:6]) is None
        assert "ignored, as another publisher sends joints from which all" in rig.warnings[-1][1]
        rig.wait(10)
    assert said(rig.send(LEGS[:6], LF_HAA=math.nan)) == (INVALID, Reason.JOINT_NOT_FINITE)
    assert rig.send(LEGS[:6], LF_HAA=9.0) is None
    assert said(rig.send(names)) == (DEGRADED, Reason.SOURCES_CONTRADICT)
    assert "joint 'LF_HAA' is at " in rig.tick.last.text


def test_joints_that_no_matrix_needs_may_be_anything(rig) -> None:
    for names in ([[*LEGS, "LIFT_CRANK"]], [LEGS, ["LIFT_CRANK"]]):
        rig.tick.clock_jumped()
        rig.touch(*FEET)
        for _ in range(5):
            answers = [rig.send(part) for part in names]
            assert said(answers[-1]) == (OK, Reason.NONE)
            assert rig.send(["LIFT_ROCKER"], LIFT_ROCKER=math.nan) is None
            assert rig.send(["LIFT_ROCKER"], at=-100) is None
            rig.wait(10)
    assert not any("'LIFT_ROCKER' alone" in text for _, text in rig.warnings)


def test_parts_that_came_beside_sufficient_joint_states_take_over(rig) -> None:
    """As for an open chain, where the first part completes one that has waited for too long."""
    parts = [LEGS[6:], [*LEGS[:6], "LIFT_CRANK"]]
    for _ in range(5):
        rig.send([*LEGS, "LIFT_CRANK"])
        assert [rig.send(part) for part in parts] == [None, None]
        rig.wait(10)
    answers = []
    for _ in range(60):
        rig.touch(*FEET)
        answers += [rig.send(part) for part in parts]
        rig.wait(10)
    first, *published = [said(message) for message in answers if message is not None]
    assert first == (INVALID, Reason.INPUT_SKEWED)
    assert published and set(published) == {(OK, Reason.NONE)}


def test_part_that_ends_is_not_waited_for_if_the_rest_suffices(rig) -> None:
    rocker, *parts = [["LIFT_ROCKER"], ["LIFT_CRANK"], LEGS]
    for _ in range(5):
        answers = [rig.send(part) for part in (rocker, *parts)]
        rig.wait(10)
    assert said(answers[-1]) == (OK, Reason.NONE)
    assert "LIFT_ROCKER" in gate_of(rig).measured.joints
    for _ in range(60):
        rig.touch(*FEET)
        answers = [rig.send(part) for part in parts]
        rig.wait(10)
    assert said(answers[-1]) == (OK, Reason.NONE)
    assert gate_of(rig).measured.joints == gate_of(rig)._first.joints


def test_part_that_waited_longer_than_the_timeout_is_refused_by_its_joints(rig) -> None:
    gate, q = gate_of(rig), np.zeros(len(rig.joints))
    status = gate.read(["LIFT_CRANK"], rig.now, np.zeros(1), rig.now, q, 600 * MS)
    assert (status.gate, status.reasons) == (Gate.REFUSED, Reason.JOINT_MISSING)
    assert "the joint states have joint 'LIFT_CRANK' alone: " in status.text


def test_measured_joint_that_moves_too_fast_is_named(rig) -> None:
    gate, q = gate_of(rig), np.zeros(len(rig.joints))
    names, truth = [*LEGS, "LIFT_CRANK"], rig.truth(rig.now)
    for shift in (0.0, -0.5):
        values = np.array([truth[name] + (shift if name == "RH_HFE" else 0.0) for name in names])
        status = gate.read(names, rig.now, values, rig.now, q)
        rig.wait(1)
    assert (status.gate, status.reasons) == (Gate.READY, Reason.SOURCES_CONTRADICT)
    assert "joint 'RH_HFE' moved by -0.5 within 0.001 s" in status.text


def test_motion_is_that_of_the_measured_joints(rig) -> None:
    gate, q = gate_of(rig), np.zeros(len(rig.joints))
    truth = rig.truth(rig.now)
    parts = [LEGS[6:][::-1], ["gripper", "LIFT_CRANK", *LEGS[:6]]]
    for lists in ([["LIFT_CRANK", *LEGS]], parts, [[*LEGS, "LIFT_ROCKER"]]):
        gate.reset(rig.now)
        motion = {name: float(k) for k, name in enumerate(rig.joints)}
        for names in lists:
            values, speeds = (
                np.array([of.get(name, 0.0) for name in names]) for of in (truth, motion)
            )
            status = gate.read(names, rig.now, values, rig.now, q, 0, (speeds, -speeds))
        assert status.gate is Gate.READY
        assert {*gate.measured.joints, "gripper"} == {"gripper"}.union(*lists)
        expected = [motion[name] for name in gate.measured.joints]
        assert len(expected) == 13 and gate.measured.motion[0].tolist() == expected
        assert (-gate.measured.motion[1]).tolist() == expected


def test_a_part_dies_and_a_whole_one_takes_over(rig) -> None:
    front, hind = LEGS[:6], [*LEGS[6:], "LIFT_CRANK"]
    for _ in range(5):
        rig.send(front)
        rig.send(hind)
        rig.wait(1)
    found = []
    for _ in range(80):
        rig.wait(10)
        rig.touch(*FEET)
        found.append(rig.send(hind))
    published = [said(each) for each in found if each is not None]
    assert published and {validity for validity, _ in published} == {INVALID}
    assert {reason for _, reason in published} <= {Reason.INPUT_STALE, Reason.JOINT_MISSING}
    assert said(rig.send(front + hind)) == (OK, Reason.NONE)
    rig.wait(501)
    rig.touch(*FEET)
    assert said(rig.send(front + hind)) == (OK, Reason.NONE)


def test_whole_ones_are_not_superseded_by_those_of_another_robot(rig) -> None:
    names = [*LEGS, "LIFT_CRANK"]
    assert said(rig.send(names)) == (OK, Reason.NONE)
    for other in (["gripper"], ["LIFT_ROCKER"]):
        rig.wait(1)
        assert rig.read("joint_states", rig.state(names))
        assert not rig.read("joint_states", rig.state(other))
        assert said(rig.publish(rig.answer())) == (OK, Reason.NONE)
        assert rig.tick.last.stamp_ns == rig.now


def test_two_that_do_by_different_joints_go_back_in_time(rig) -> None:
    for k in range(5):
        # Known to be two from when the first one goes on.
        two = Reason.SOURCES_CONTRADICT if k else Reason.NONE
        expected = (DEGRADED if k else OK, two)
        assert said(rig.send([*LEGS, "LIFT_CRANK"])) == expected
        assert said(rig.send(at=-100)) == (DEGRADED, two | Reason.STAMP_JUMPED_BACK)
        if not k:
            assert "jumped back by 0.1 s" in rig.tick.last.text
        rig.wait(10)


def test_clock_set_back_keeps_nothing_alive(rig) -> None:
    rig.wait(3_600_000)
    rig.touch(*FEET)
    assert said(rig.send([*LEGS, "LIFT_CRANK"])) == (OK, Reason.NONE)
    rig.wait(-3_600_000)
    rig.touch(*FEET)
    assert rig.send(["LIFT_ROCKER"]) is None
    rig.wait(501)
    rig.touch(*FEET)
    assert said(rig.send(["LIFT_ROCKER"])) == (INVALID, Reason.JOINT_MISSING)


def test_steps_of_simulated_time_are_no_skew(rig) -> None:
    rig.tick.inputs.set_clock_step(25 * MS)
    # Whatever joints are measured, also where that comes up later.
    for names in ([*LEGS, "LIFT_CRANK"], rig.joints, [*LEGS, "LIFT_ROCKER"]):
        assert said(rig.send(names, at=30)) == (OK, Reason.NONE)
    assert said(rig.send(names, at=31)) == (DEGRADED, Reason.STAMP_IN_FUTURE)
    assert "ahead of /clock" in rig.tick.last.text


@pytest.mark.parametrize("lift", [[], ["LIFT_ROCKER"]])
def test_without_positions_beside_others_is_passed_over(rig, lift) -> None:
    """Joint states of velocities or efforts alone; the others send all, or parts of it."""
    parts = [[*LEGS, "LIFT_CRANK"]] if not lift else [LEGS, lift]
    nothing = np.zeros(0)
    gate, q = gate_of(rig), np.zeros(len(rig.joints))
    foreign = gate.read(["gripper"], rig.now, nothing, rig.now, q)
    assert (foreign.gate, foreign.reasons) == (Gate.IGNORED, Reason.NONE)
    for _ in range(5):
        answers = [rig.send(part) for part in parts]
        rig.wait(1)
    assert said(answers[-1]) == (OK, Reason.NONE)
    for names in ([*LEGS, "LIFT_CRANK"], rig.joints, LEGS[:3], ["gripper"], []):
        for part in parts:
            rig.read("joint_states", rig.state(part))
        before = gate.measured
        status = gate.read(names, rig.now, nothing, rig.now, q)
        assert (status.gate, status.reasons) == (Gate.IGNORED, Reason.NONE)
        assert gate.measured is before
        assert said(rig.publish(rig.answer())) == (OK, Reason.NONE)
        rig.wait(1)
    rig.wait(501)
    status = gate.read(LEGS, rig.now, nothing, rig.now, q)
    assert (status.gate, status.reasons) == (Gate.REFUSED, Reason.JOINT_SIZE_MISMATCH)
    assert "12 names but 0 positions" in status.text


# --- what does not close ------------------------------------------------------------------------


@pytest.fixture(name="bar", scope="module")
def make_bar() -> Bar:
    return Bar()


def test_positions_are_those_of_the_closed_form(bar) -> None:
    rig = bar.rig()
    for _ in range(100):
        assert said(rig.send(["crank", "arm"]))[0] == OK
        rig.touch("tip")
        rig.wait(5)
    assert not any(kind.startswith("LOOP") for kind, _ in rig.warnings)


def test_limits_of_a_joint_that_is_not_measured() -> None:
    rig = Bar(rocker_limits=(1.0, 1.6)).rig()
    found = set()
    for k in range(60):
        crank = 0.1 * k
        inside = 1.0 <= assembled(crank)[1] <= 1.6
        rig.wait(0.1)
        message = None if inside else rig.send(["crank", "arm"], crank=crank)
        if message is not None:
            found.add(said(message))
            assert "loop 'knee': joint 'rocker': " in rig.tick.last.text
            assert "not in [1, 1.6], its limits" in rig.tick.last.text
    assert found == {(INVALID, Reason.LOOP_NOT_CLOSED)}


# --- the rest -----------------------------------------------------------------------------------


def test_the_approximation_is_said() -> None:
    rotor = Inertia.from_com(0.3, (0.0, 0.0, 0.02), np.diag([1e-4, 1e-4, 2e-4]))
    arm = Inertia.from_com(2.0, (0.2, 0.0, 0.0), np.diag([0.02, 0.03, 0.04]))
    elbow = Transform.from_xyz_rpy((0.3, 0.0, 0.0), (0.0, 0.0, 0.0))
    joints = [
        Joint("shoulder", JointKind.REVOLUTE, -1),
        Joint("elbow", JointKind.REVOLUTE, 0, elbow),
        Joint("motor", JointKind.REVOLUTE, 0, elbow),
    ]
    bodies = [Body("upper", arm), Body("lower", arm), Body("rotor", rotor)]
    tip = Frame("tip", 1, elbow)
    gear = Coupling("gear", (("motor", 1.0), ("elbow", -6.0)))
    robot = Robot("arm", joints, bodies, [tip], (gear,), independent=("shoulder", "elbow"))
    problem = Problem(robot, [Contact("tip", "tip", np.eye(2, 6))])
    solver = DelassusSolver(problem, "pv_osimr")

    def truth(stamp: int) -> dict[str, float]:
        angle = 0.5 + 1e-9 * (stamp - START)
        return {"shoulder": 0.2, "elbow": angle, "motor": 6.0 * angle}

    rig = Rig(solver, truth, closure=Closure(problem))
    rig.touch("tip")
    assert said(rig.send(["shoulder", "elbow"])) == (OK, Reason.NONE)
    exact = np.array(rig.messages[-1].matrix)
    rig.check = lambda message: None  # that it is not exact is what is to be said
    rig.tick.set_solver(DelassusSolver(problem, "reflected_inertia"))
    message = rig.send(["shoulder", "elbow"])
    assert said(message) == (DEGRADED, Reason.APPROXIMATE_ALGORITHM)
    assert message.algorithm == "reflected_inertia"
    assert "reflected_inertia" in rig.tick.last.text
    assert 1e-6 < np.linalg.norm(message.matrix - exact) / np.linalg.norm(exact) < 0.5


def test_a_closed_robot_needs_a_closure(geared) -> None:
    with pytest.raises(ProblemError, match="has loops or couplings"):
        Rig(geared.solver)


def test_limits_reach_all_gates(rig) -> None:
    names = [*LEGS, "LIFT_CRANK"]
    rig.send(names)
    rig.tick.limits = replace(rig.tick.limits, input_timeout=0.05)
    rig.wait(60)
    assert said(rig.send(names, at=-60)) == (INVALID, Reason.INPUT_STALE)
    assert said(rig.send(at=-60)) == (INVALID, Reason.INPUT_STALE)


def test_planar_joint_refused_by_the_closed_gate(bar) -> None:
    robot = bar.problem.robot
    planar = Robot(
        "planar", [*robot.joints, Joint("slide", JointKind.PLANAR, 3)],
        [*robot.bodies, Body("slide", robot.bodies[0].inertia)],
        list(robot.frames.values()), (), robot.loops, ("crank",),
    )  # fmt: skip
    with pytest.raises(RobotError, match="joint 'slide' is planar"):
        JointGate(planar, closure=Closure(planar, REFERENCE))


def test_the_independent_joints_are_expected(geared, monkeypatch) -> None:
    """And all joints: the first joint state need not wait for what can be prepared."""
    for names in ([*LEGS, "LIFT_CRANK"], geared.robot.joint_names):
        gate = closed_gate(geared)
        truth, q = geared.truth(START), np.zeros(geared.robot.nq)
        with monkeypatch.context() as patch:
            patch.setattr(geared.closure, "bind", None)
            status = gate.read(names, START, np.array([truth[n] for n in names]), START, q)
        assert status.gate is Gate.READY


def test_code_for_measured_joints_that_cannot_be_compiled(geared, monkeypatch) -> None:
    """The set of joints is refused, tried once, and tried again after a reset."""
    rig = geared.rig()
    names, asked = [*LEGS, "LIFT_ROCKER"], []

    def fail(joints):
        asked.append(joints)
        raise CompilerError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(gate_of(rig)._closures._closure, "bind", fail)
        for _ in range(100):
            assert said(rig.send(names)) == (INVALID, Reason.NOT_CONFIGURED)
            rig.wait(1)
        text = rig.tick.last.text
        assert "cannot be computed from measured joints 'LF_HAA', " in text and "no room" in text
        assert len(asked) == 1
        # Beside joint states that give matrices they are ignored.
        assert said(rig.send([*LEGS, "LIFT_CRANK"])) == (OK, Reason.NONE)
        assert rig.send(names) is None
        assert "ignored, as other messages give matrices" in rig.warnings[-1][1]
    rig.tick.clock_jumped()
    rig.touch(*FEET)
    assert said(rig.send(names)) == (OK, Reason.NONE)


def test_unusual_measured_joints_are_compiled_once(geared, monkeypatch) -> None:
    rig = geared.rig()
    compiling = Mock(wraps=closure_module.newton_for)
    monkeypatch.setattr(closure_module, "newton_for", compiling)
    motors = [f"{name}_ROTOR" for name in LEGS]
    sets = [[*motors[:k], *LEGS[k:], "LIFT_COUPLER"] for k in range(1, 6)]
    for _ in range(3):
        for names in sets:
            assert said(rig.send(names)) == (OK, Reason.NONE)
            rig.wait(1)
    assert compiling.call_count == len(sets)


def test_many_lists_of_names_are_not_remembered_for_ever(geared, monkeypatch) -> None:
    gate = closed_gate(geared)
    bound: list[int] = []
    bind = geared.closure.bind
    monkeypatch.setattr(
        geared.closure, "bind", lambda joints: (bound.append(len(joints)), bind(joints))[1]
    )
    truth = geared.truth(START)
    q = np.zeros(geared.robot.nq)
    names = list(geared.robot.joint_names)
    for k in range(200):
        own = [*LEGS, "LIFT_CRANK", *(n for i, n in enumerate(names) if k >> (i % 8) & 1)]
        own = list(dict.fromkeys(own))
        status = gate.read(own, START + k, np.array([truth[n] for n in own]), START + k, q)
        assert status.gate is Gate.READY
        np.testing.assert_allclose(q, geared.full(START), atol=1e-9)
    assert len(gate._sets) <= 64
    assert len(gate._closures._unusual) <= 64
    # The usual ones are never made again, others once while they are remembered.
    assert min(bound) > 13
    assert len(bound) < 200
    before = len(bound)
    for names in ([*LEGS, "LIFT_CRANK"], geared.robot.joint_names, own):
        values = np.array([truth[n] for n in names])
        assert gate.read(names, START, values, START, q).gate is Gate.READY
    assert len(bound) == before


def test_gate_in_use_is_not_forgotten(geared) -> None:
    """Limits reach it, however many lists of names have come since its own."""
    gate, q = closed_gate(geared), np.zeros(geared.robot.nq)
    truth, names = geared.truth(START), [*LEGS, "LIFT_CRANK"]
    others = [name for name in geared.robot.joint_names if name not in names]

    def send(own, now):
        return gate.read(own, START, np.array([truth[n] for n in own]), now, q)

    assert send(names, START).gate is Gate.READY
    for k in range(100):
        # Not enough to compute from, and so not used.
        send([name for i, name in enumerate(others) if (k + 1) >> i & 1], START)
    gate.set_limits(0.005, 2.0)
    assert gate.silence(START + 1999 * MS, 0) is None
    assert gate.silence(START + 2001 * MS, 0).reasons == Reason.INPUT_STALE


GRID = 10  # ms: parts of one q, less than max_skew apart, are then of the same instant
PUBLISHERS = (
    [*LEGS, "LIFT_CRANK"],
    [f"{name}_ROTOR" for name in LEGS] + ["LIFT_ROCKER"],
    LEGS[:6],
    [*LEGS[6:], "LIFT_COUPLER"],
    LEGS[4:] + ["LIFT_CRANK"],
    ["LF_HAA_ROTOR", "LIFT_ROCKER"],
    ["gripper"],
)
EVENTS = st.one_of(
    st.tuples(st.just("wait"), st.integers(0, 60)),
    st.tuples(st.just("send"), st.sampled_from(PUBLISHERS), st.integers(-3, 1)),
    st.tuples(st.just("some"), st.sets(st.integers(0, 26))),
    st.tuples(st.just("bad"), st.sampled_from(PUBLISHERS[:2]), st.integers(0, 12)),
    st.tuples(st.just("drain"), st.lists(st.sampled_from(PUBLISHERS), max_size=4)),
    st.tuples(st.just("watch"), st.booleans()),
    st.tuples(st.just("jump"), st.integers(-200, 200)),
)


@examples(max_examples=60)
@given(st.lists(EVENTS, max_size=40))
def test_whatever_publishers_send_is_answered_right_or_marked(geared, events) -> None:
    """The check of each message is in Rig."""
    rig = geared.rig(limits=Limits(contacts_timeout=math.inf))
    for kind, *what in events:
        if kind == "wait":
            rig.wait(GRID * what[0])
        elif kind == "send":
            rig.send(what[0], at=GRID * what[1])
        elif kind == "some":
            rig.send([rig.joints[i] for i in what[0]])
        elif kind == "bad":
            assert said(rig.send(what[0], **{what[0][what[1]]: math.nan}))[0] == INVALID
        elif kind == "drain":
            for part in what[0]:
                rig.read("joint_states", rig.state(part))
            rig.publish(rig.answer())
        elif kind == "watch":
            rig.publish(rig.watch())
        else:
            rig.wait(GRID * what[0])
            rig.tick.clock_jumped()
