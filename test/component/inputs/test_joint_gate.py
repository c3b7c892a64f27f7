"""Joint states in whole and in parts, late, early, out of order, and with nonsense in them."""

from __future__ import annotations

import math

import numpy as np
import pytest
import robots
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from tick_support import MS, START, GateRig

from delassus import Robot
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.joints import Gate, JointGate


@pytest.fixture(name="robot", scope="module")
def make_robot() -> Robot:
    return Robot.from_urdf(robots.unlimited())


@pytest.fixture(name="source")
def make_source(robot) -> GateRig:
    return GateRig(robot)


def is_ready(status) -> bool:
    return status.gate is Gate.READY and status.reasons == Reason.NONE and not status.text


# --- whole joint states -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_any_order_with_extra_joints_anywhere(source, seed) -> None:
    rng = np.random.default_rng(seed)
    names = [*source.joints, "gripper", "wheel"]
    names = [names[i] for i in rng.permutation(len(names))]
    for step in range(3):
        values = rng.uniform(-1, 1, len(names))
        status = source.send(names, values, stamp=step, now=step + 2)
        assert is_ready(status)
        assert status.stamp == START + step * MS
        assert status.age == pytest.approx(0.002)
        assert source.q.tolist() == [values[names.index(joint)] for joint in source.joints]


def test_same_names_in_a_new_list_each_time(source) -> None:
    for stamp in range(5):
        assert is_ready(source.send(list(source.joints), stamp=stamp))
    assert len(source.gate._layouts) == 1


def test_positions_beyond_the_bound_are_far_and_many_below_are_not(source) -> None:
    assert is_ready(source.send(values=np.full(12, 0.99e6)))
    values = np.where(np.arange(12) == 7, -1e12, 1.0)
    status = source.send(values=values, stamp=1)
    assert (status.gate, status.reasons) == (Gate.READY, Reason.JOINT_FAR)
    source.send(source.joints[:6], values[:6], stamp=600)
    status = source.send(source.joints[6:], values[6:], stamp=600)
    assert (status.gate, status.reasons) == (Gate.READY, Reason.JOINT_FAR)


def test_without_a_timeout_parts_get_their_turn_when_whole_ones_stop(robot) -> None:
    source = GateRig(robot, timeout=math.inf)
    half = source.joints[:6], source.joints[6:]
    assert is_ready(source.send(stamp=0))
    for stamp in range(10, 1000, 10):
        assert source.send(half[stamp // 10 % 2], stamp=stamp).gate is Gate.IGNORED
    # The first one completes a part that has waited for too long; from then on pairs are.
    source.send(half[0], stamp=1010)
    for stamp in range(1020, 3000, 20):
        assert source.send(half[0], stamp=stamp).gate is Gate.IGNORED
        assert is_ready(source.send(half[1], stamp=stamp + 1))


def test_joint_states_that_make_no_matrix(robot) -> None:
    """Whoever sends what: where nothing goes out, that is said, with what is missing."""
    source = GateRig(robot, timeout=math.inf)
    front, hind = source.joints[:6], source.joints[6:]
    source.send(front, stamp=0)
    assert is_ready(source.send(hind, stamp=0))
    source.send(front, stamp=1100)
    # It came before the last message that went out.
    assert source.gate.silence(START + 1105 * MS, 5 * MS) is None
    status = source.gate.silence(START + 1105 * MS, 900 * MS)
    assert (status.gate, status.reasons) == (Gate.REFUSED, Reason.INPUT_STALE)
    assert status.text == (
        "joint states come, but no matrix follows from them: joints 'LH_HAA', 'LH_HFE', "
        "'LH_KFE', 'RH_HAA', 'RH_HFE' and 1 more did not come for 1.1 s"
    )
    # Nothing comes any more, which the user has allowed.
    assert source.gate.silence(START + 9000 * MS, 8000 * MS) is None


def test_joints_that_came_in_whole_joint_states_alone_have_no_age(source) -> None:
    """The reason for the silence is that parts were ignored, not the age of parts."""
    source.send(stamp=0)
    source.send(source.joints[:6], stamp=400)
    status = source.gate.silence(START + 500 * MS, 500 * MS)
    assert (status.gate, status.reasons) == (Gate.REFUSED, Reason.JOINT_MISSING)
    assert "no matrix follows from them: the joint state lacks joints 'LH_HAA', " in status.text
    assert "ignored, as another publisher sends all joints" in status.text


def test_stamps_of_parts_that_jump_back_are_said_for_every_order(source) -> None:
    rng = np.random.default_rng(7)
    front, hind = source.joints[:6], source.joints[6:]
    jumps = 0
    for k in range(200):
        # A stamp goes back by 10 ms each time.
        stamp = 20 * k - 30 * (k % 2)
        names = [str(name) for name in rng.permutation(front)]
        assert source.send(names, stamp=stamp).gate in (Gate.IGNORED, Gate.REFUSED)
        status = source.send(hind, stamp=stamp)
        jumps += bool(status.reasons & Reason.STAMP_JUMPED_BACK)
    assert jumps == 100


def test_parts_that_have_waited_are_as_old_as_they_are(source) -> None:
    front, hind = source.joints[:6], source.joints[6:]
    values = np.zeros(6)
    source.gate.read(front, 0, values, START, source.q, 600 * MS)
    status = source.gate.read(hind, 0, values, START, source.q)
    assert (status.gate, status.reasons) == (Gate.REFUSED, Reason.INPUT_STALE)
    assert "did not come for 0.6 s" in status.text


def test_a_long_name_without_a_position_is_cut(source) -> None:
    status = source.send([*source.joints, 10_000 * "x"], np.zeros(12))
    assert status.text.endswith(f"; the first joint without one is '{100 * 'x'}'")


@pytest.mark.parametrize("count", range(4))
def test_joints_of_another_robot_ignored_whatever_their_sizes(source, count) -> None:
    status = source.send(["finger", "thumb"], np.zeros(count))
    assert (status.gate, status.reasons) == (Gate.IGNORED, Reason.NONE)
    assert "none of the robot's joints; it has 'finger', 'thumb'" in status.text
    assert source.gate.last_arrival.since(START) is None


def without_positions(source: GateRig) -> list[list[str]]:
    """Names in joint states of velocities or efforts alone, and in one of nothing."""
    joints = source.joints
    return [joints, joints[:3], [*joints, "x"], [*joints, "LF_HAA"], []]


@pytest.mark.parametrize("which", range(5))
def test_without_positions_beside_parts_is_passed_over(source, which) -> None:
    names = without_positions(source)[which]
    front, hind = halves(source)
    source.send(front, stamp=0)
    source.send(hind, stamp=0)
    for stamp in range(1, 30):
        source.send(front, stamp=stamp)
        status = source.send(names, [], stamp=stamp)
        assert (status.gate, status.reasons) == (Gate.IGNORED, Reason.NONE)
        assert "the message is ignored, as other publishers send positions" in status.text
        assert is_ready(source.send(hind, stamp=stamp))
    assert source.send(names, [], stamp=530).gate is Gate.REFUSED


def test_without_positions_before_time_began(source) -> None:
    front, hind = halves(source)
    for first in (source.joints, front, hind):
        source.gate.read(first, START, np.zeros(len(first)), 0, source.q)
    nothing = np.zeros(0)
    for now, gate in ((START, Gate.IGNORED), (START + 501 * MS, Gate.REFUSED)):
        assert source.gate.read(source.joints, START, nothing, now, source.q).gate is gate


# --- stamps and clocks ------------------------------------------------------------------------


def test_without_timeout_nothing_is_old(robot) -> None:
    source = GateRig(robot, timeout=math.inf)
    assert is_ready(source.send(stamp=0, now=1e9))
    assert source.gate.silence(START + 10**18, 0) is None


def test_ahead_of_simulated_time(source) -> None:
    source.gate.set_clock_step(25 * MS)
    assert is_ready(source.send(stamp=30, now=0))
    # Limits that are set do not change that.
    source.gate.set_limits(0.01, 0.5)
    assert is_ready(source.send(stamp=35, now=0))
    status = source.send(stamp=36, now=0)
    assert (status.gate, status.reasons) == (Gate.READY, Reason.STAMP_IN_FUTURE)
    assert status.age == pytest.approx(-0.036)
    source.gate.set_clock_step(0)
    status = source.send(stamp=47, now=36)
    assert status.reasons == Reason.STAMP_IN_FUTURE
    assert "0.011 s ahead of this node's clock" in status.text


# --- parts ------------------------------------------------------------------------------------


def halves(source: GateRig) -> tuple[list[str], list[str]]:
    return source.joints[:5], source.joints[5:]


def test_parts_make_one_q(source) -> None:
    front, hind = halves(source)
    status = source.send(front, np.arange(5), stamp=0)
    assert (status.gate, status.reasons) == (Gate.REFUSED, Reason.JOINT_MISSING)
    assert "lacks joints 'RF_KFE'" in status.text
    status = source.send(hind, np.arange(5, 12), stamp=2, now=3)
    assert is_ready(status)
    assert status.stamp == START
    assert status.age == pytest.approx(0.003)
    assert source.q.tolist() == list(range(12))
    # Once per set, whichever comes first.
    assert source.send(hind, np.arange(7), stamp=4).gate is Gate.IGNORED
    status = source.send(front, np.arange(5), stamp=5)
    assert is_ready(status)
    assert status.stamp == START + 4 * MS
    assert source.q.tolist() == [*range(5), *range(7)]


def test_newer_part_takes_the_place_of_an_older_one(source) -> None:
    front, hind = halves(source)
    source.send(front, np.zeros(5), stamp=0)
    source.send(hind, np.zeros(7), stamp=0)
    for stamp in range(1, 8):
        assert source.send(front, np.full(5, stamp), stamp=stamp).gate is Gate.IGNORED
    status = source.send(hind, np.zeros(7), stamp=8)
    assert is_ready(status)
    assert status.stamp == START + 7 * MS
    assert source.q[:5].tolist() == [7.0] * 5


def test_a_part_beside_whole_ones_is_passed_over(source) -> None:
    front, hind = halves(source)
    for stamp in range(0, 2000, 100):
        assert is_ready(source.send(stamp=stamp))
        status = source.send(front, stamp=stamp + 1)
        assert (status.gate, status.reasons) == (Gate.IGNORED, Reason.NONE)
        assert "lacks joints 'RF_KFE'" in status.text
        assert "the message is ignored, as another publisher sends all joints" in status.text
    # Nonsense is refused all the same.
    assert source.send(front, np.full(5, math.nan), stamp=1950).gate is Gate.REFUSED
    # Also where parts complete each other: there would be two streams, with stamps of their own.
    assert source.send(front, np.zeros(5), stamp=1960).gate is Gate.IGNORED
    assert source.send(hind, np.ones(7), stamp=1961).gate is Gate.IGNORED
    # Once the whole ones are gone, they make a q.
    assert is_ready(source.send(stamp=2300))
    assert source.send(front, np.zeros(5), stamp=2800).gate is Gate.IGNORED
    assert source.send(hind, np.ones(7), stamp=2800).gate is Gate.IGNORED
    status = source.send(front, np.zeros(5), stamp=2801)
    assert status.gate is Gate.READY
    assert source.q.tolist() == [0.0] * 5 + [1.0] * 7
    status = source.send(front, stamp=3400)
    assert (status.gate, status.reasons) == (Gate.REFUSED, Reason.INPUT_STALE)


def test_parts_too_far_apart_are_refused(source) -> None:
    front, hind = halves(source)
    source.send(front, stamp=0)
    status = source.send(hind, stamp=6)
    assert (status.gate, status.reasons) == (Gate.REFUSED, Reason.INPUT_SKEWED)
    assert status.stamp == START
    assert "joints 'LF_HAA', 'LF_HFE', 'LF_KFE', 'RF_HAA', 'RF_HFE' came 6 ms older" in (
        status.text
    )
    assert "at most 5 ms are allowed (max_skew)" in status.text
    # The recent part is kept.
    assert is_ready(source.send(front, stamp=7))


def test_publisher_that_dies_is_named(source) -> None:
    front, hind = halves(source)
    source.send(front, stamp=0)
    source.send(hind, stamp=0)
    gates = [source.send(front, stamp=stamp).gate for stamp in range(10, 501, 10)]
    assert set(gates) == {Gate.IGNORED}
    status = source.send(front, stamp=510)
    assert (status.gate, status.reasons) == (Gate.REFUSED, Reason.INPUT_STALE)
    assert "joints 'RF_KFE', " in status.text and "did not come for 0.51 s" in status.text
    assert is_ready(source.send(hind, stamp=511))


def test_a_part_without_stamp_is_not_kept_for_others_to_come(source) -> None:
    """However long ago it came, it would make a whole q with the next part."""
    front, hind = halves(source)
    source.gate.read(front, 0, np.ones(len(front)), START, source.q)
    at = START + 501 * MS
    status = source.gate.read(hind, 0, np.ones(len(hind)), at, source.q)
    assert (status.gate, status.reasons) == (Gate.REFUSED, Reason.INPUT_STALE)
    assert "joints 'LF_HAA', " in status.text and "did not come for 0.501 s" in status.text
    status = source.gate.read(front, 0, np.zeros(len(front)), at + MS, source.q)
    assert (status.gate, status.reasons) == (Gate.READY, Reason.STAMP_INVALID)
    assert source.q.tolist() == [float(name in hind) for name in source.joints]


def test_nonsense_in_a_part_spoils_it_alone(source) -> None:
    front, hind = halves(source)
    source.send(front, stamp=0)
    source.send(hind, stamp=0)
    source.send(front, stamp=1)
    status = source.send(hind, [0, 0, math.nan, 0, 0, 0, 0], stamp=1)
    assert (status.gate, status.reasons) == (Gate.REFUSED, Reason.JOINT_NOT_FINITE)
    assert "'LH_HFE' is nan" in status.text
    assert is_ready(source.send(hind, stamp=2))


def test_bad_part_does_not_leave_its_joints_fresh(source) -> None:
    front, hind = halves(source)
    source.send(front, stamp=0)
    source.send(hind, stamp=0)
    source.send(front, stamp=1)
    source.send(front, np.full(5, math.nan), stamp=2)
    assert source.send(hind, stamp=2).gate is Gate.IGNORED


def test_reset_of_a_simulation_mixes_no_times(source) -> None:
    front, hind = halves(source)
    for stamp in (100, 101):
        source.send(front, stamp=stamp)
        source.send(hind, stamp=stamp)
    source.send(front, np.full(5, 9.0), stamp=102)
    # Everything starts again at 0: the front part that waits is from the old time.
    assert source.send(hind, np.zeros(7), stamp=1, now=102).gate is Gate.IGNORED
    status = source.send(front, np.zeros(5), stamp=1, now=102)
    assert (status.gate, status.reasons) == (Gate.READY, Reason.STAMP_JUMPED_BACK)
    assert source.q.tolist() == [0.0] * 12
    source.send(front, stamp=2, now=103)
    assert is_ready(source.send(hind, stamp=2, now=103))


# --- silence ----------------------------------------------------------------------------------


def test_clock_set_back_is_no_silence(source) -> None:
    source.send(stamp=1000)
    assert source.gate.silence(START, 0) is None
    assert source.gate.silence(START + 400 * MS, 0) is None
    assert source.gate.silence(START + 501 * MS, 0).reasons == Reason.INPUT_STALE


def test_clock_set_back_keeps_nothing_alive(source) -> None:
    """What others have sent before is not of late for as long as the clock was set back."""
    front, hind = halves(source)
    hour = 3_600_000
    source.send(stamp=hour)
    assert source.send(front, stamp=0).gate is Gate.IGNORED
    assert source.send([], [], stamp=1).gate is Gate.IGNORED
    assert source.send([], [], stamp=501).gate is Gate.REFUSED
    assert source.send(front, stamp=502).gate is Gate.REFUSED
    source.gate.reset(START)
    for names in (front, hind):
        source.send(names, stamp=hour)
    assert source.send(front, stamp=0).gate is Gate.IGNORED
    assert source.send([], [], stamp=1).gate is Gate.IGNORED
    status = source.send(front, stamp=501)
    assert (status.gate, status.reasons) == (Gate.REFUSED, Reason.INPUT_STALE)
    assert source.send([], [], stamp=502).gate is Gate.REFUSED


# --- limits -----------------------------------------------------------------------------------


def test_limits_may_change(source) -> None:
    front, hind = halves(source)
    source.gate.set_limits(0.1, 0.5)
    source.send(front, stamp=0)
    assert is_ready(source.send(hind, stamp=90))


# --- anything ---------------------------------------------------------------------------------

NAMES = ("LF_HAA", "LF_HFE", "LF_KFE", "RF_HAA", "RF_HFE", "RF_KFE",
         "LH_HAA", "LH_HFE", "LH_KFE", "RH_HAA", "RH_HFE", "RH_KFE")  # fmt: skip
parts = st.sampled_from(
    [NAMES, NAMES[:4], NAMES[4:], NAMES[4:8], NAMES[8:], ("x",), (), (*NAMES, "x"),
     (*NAMES[:4], "LF_HAA"), NAMES[::-1]]
)  # fmt: skip
messages = st.tuples(
    parts,
    st.one_of(st.integers(-20, 40), st.sampled_from([-(10**6), 10**6])),  # stamp - now [ms]
    st.integers(-50, 400),  # now - now before [ms]
    st.sampled_from([0, 0, 0, 0, 0, 1, -1]),  # positions too many
    st.sampled_from([0.0] * 6 + [math.nan, math.inf]),
)


@examples(max_examples=200)
@given(st.lists(messages, max_size=40))
def test_whatever_comes_q_is_what_was_sent(robot, sequence) -> None:
    gate, q = JointGate(robot), np.zeros(12)
    now, serial = START, 0.0
    newest: dict[str, tuple[float, int]] = {}
    since: set[str] = set()
    gate.reset(now)
    for names, offset, passed, surplus, spoil in sequence:
        now += passed * MS
        values = np.arange(serial, serial + max(len(names) + surplus, 0)) + 1.0
        serial += 100.0
        if values.size:
            values[-1] += spoil
        stamp = max(now + offset * MS, 0)
        status = gate.read(names, stamp, values, now, q)
        bad = len(values) != len(names) or len(set(names)) < len(names)
        complete = not bad and set(NAMES) <= set(names)
        if not bad:
            sent = dict(zip(names, values, strict=True))
            mine = {joint: sent[joint] for joint in names if joint in NAMES}
            if np.isfinite(list(mine.values())).all():
                if not complete:
                    newest.update({joint: (value, stamp) for joint, value in mine.items()})
                    since |= set(mine)
            elif mine:
                assert status.gate is Gate.REFUSED
        elif not names or not values.size:
            # Of no robot, or without positions: that depends on what others send.
            assert status.gate is not Gate.READY
        else:
            foreign = not set(NAMES) & set(names)
            assert status.gate is (Gate.IGNORED if foreign else Gate.REFUSED)
        assert bool(status.text) or status.reasons == Reason.NONE
        if status.gate is Gate.READY:
            assert np.isfinite(q).all()
            if complete:
                assert q.tolist() == [sent[joint] for joint in NAMES]
                assert status.stamp == stamp
            else:
                assert q.tolist() == [newest[joint][0] for joint in NAMES]
                assert status.stamp == min(newest[joint][1] for joint in NAMES)
                assert since == set(NAMES)
                since = set()
            assert status.stamp == 0 or status.age <= 0.5
        elif status.gate is Gate.REFUSED:
            assert status.reasons
