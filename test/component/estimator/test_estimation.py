"""What the estimator says of sensors that are old, of another frame, stuck or contradict."""

from __future__ import annotations

import numpy as np
import pytest
from estimator_support import DEGRADED, INVALID, MS, OK, START, Standing, header
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from delassus.errors import InputError
from delassus_ros.estimator.estimation import Estimation, LastEstimate
from delassus_ros.estimator.settings import EstimatorSettings
from delassus_ros.inputs.findings import Reason


@pytest.fixture(name="standing")
def make_standing() -> Standing:
    return Standing()


def test_good_sensors_make_a_good_estimate(standing: Standing) -> None:
    answer = standing.settle()
    assert (answer.validity, answer.reasons) == (OK, Reason.NONE), answer.text
    named = standing.estimation.system.named(answer.numbers)
    assert named.squared < 1e-6 and named.redundant == 12
    total = sum((values**2).sum() for values in named.residuals.values())
    assert named.squared == pytest.approx(total, rel=1e-12)


def test_an_older_message_does_not_replace_a_newer_one(standing: Standing) -> None:
    standing.settle()
    standing.now += 2 * MS
    standing.sense()
    standing.wrench(100.0, 0.0, 0.0, stamp=standing.now - 100 * MS)
    answer = standing.joints()
    assert (answer.validity, answer.reasons) == (DEGRADED, Reason.STAMP_JUMPED_BACK)
    forces = standing.estimation.sensors[0].values[:3]
    np.testing.assert_allclose(forces, standing.force)


@pytest.mark.parametrize("sensor", ["wrench", "imu"])
def test_two_publishers_of_a_sensor_that_take_turns_are_told(
    standing: Standing, sensor: str
) -> None:
    """Both send the same; nothing but the middleware's count tells them apart."""
    standing.settle()
    topic = {"wrench": "wrenches/LF_FOOT", "imu": "imu"}[sensor]
    read = standing.read

    def hear(count: int) -> LastEstimate:
        standing.now += 2 * MS
        counts = {topic: count}
        standing.read = lambda name, message, delay=0: read(  # type: ignore
            name, message, delay, counts.get(name, 0)
        )
        standing.sense()
        return standing.joints()

    for count in (1, 2, 3, 1, 2, 3):
        assert hear(count).validity == OK
    for count in (700, 4, 701, 5, 702, 6):
        answer = hear(count)
    assert (answer.validity, answer.reasons) == (DEGRADED, Reason.SOURCES_CONTRADICT)
    assert f"two publishers of {topic} send the numbers of the" in answer.text


def test_after_a_jump_of_the_clock_all_inputs_have_to_come_anew(standing: Standing) -> None:
    standing.settle()
    standing.now -= 3600_000 * MS
    standing.estimation.clock_jumped()
    answer = standing.joints()
    assert (answer.validity, answer.reasons) == (INVALID, Reason.ORIENTATION_MISSING)
    assert standing.settle().validity == OK


def test_the_twist_of_the_base_grows_old(standing: Standing) -> None:
    standing.settle()
    for _ in range(400):
        standing.now += 2 * MS
        standing.wrench()
        standing.imu()
        answer = standing.joints()
    assert answer.validity == INVALID and answer.reasons & Reason.ORIENTATION_STALE
    assert "at most 0.5 s are allowed (input_timeout)" in answer.text


def test_accelerations_are_not_told_across_a_pause(standing: Standing) -> None:
    standing.settle()
    standing.now += 450 * MS
    standing.sense()
    answer = standing.joints()
    assert (answer.validity, answer.reasons) == (INVALID, Reason.NO_ACCELERATION)
    assert standing.settle().validity == OK


def test_velocities_beyond_their_limits_make_no_accelerations(standing: Standing) -> None:
    """Neither of their joint state, nor of the next ones."""
    standing.settle()
    said = []
    for velocity in (500.0, 0.0, 0.0, 0.0, 0.0):
        standing.now += 2 * MS
        standing.sense()
        answer = standing.joints(velocities=velocity * (np.arange(12) == 3))
        said.append((answer.validity, answer.reasons))
    assert said[0] == (INVALID, Reason.JOINT_OUTSIDE_LIMITS)
    assert said[1] == (INVALID, Reason.NO_ACCELERATION) and said[-1] == (OK, Reason.NONE)


def test_what_is_said_once_is_said_of_the_next_estimate_of_a_rate() -> None:
    standing = Standing(rate=100.0)
    for _ in range(4):
        standing.now += 2 * MS
        standing.sense()
        standing.state()
        standing.answer()
    said = []
    for k in range(40):
        standing.now += 2 * MS
        standing.sense()
        stamp = standing.now - (30 * MS if k % 8 == 3 else 0)
        standing.state(stamp)
        answer = standing.answer()
        if answer is not None:
            said.append(answer.reasons)
    assert any(each & Reason.STAMP_JUMPED_BACK for each in said)


def test_the_newest_of_several_joint_states_is_answered(standing: Standing) -> None:
    """The older ones count for its accelerations, and what is wrong with them is told with it."""
    for _ in range(4):
        standing.now += 2 * MS
        standing.sense()
        standing.state()
    answer = standing.answer()
    assert answer is not None and (answer.stamp, answer.validity) == (standing.now, OK)
    assert standing.answer() is None
    stamps = [standing.now + k * MS for k in (2, 4, -30, 6, 8, 10, 12, 14, 16)]
    for stamp in stamps:
        standing.now += 2 * MS
        standing.sense()
        standing.state(stamp)
    answer = standing.answer()
    assert answer is not None and answer.stamp == stamps[-1]
    assert answer.reasons & Reason.STAMP_JUMPED_BACK and answer.validity == DEGRADED


def test_two_wrenches_on_one_frame_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="'wrenches.A.frame' and 'wrenches.B.frame' are both"):
        EstimatorSettings.from_parameters(
            {"wrenches.names": ("A", "B"), "wrenches.A.frame": "F", "wrenches.B.frame": "F"}
        )


def test_joints_that_couplings_tie_are_closed_before_they_count() -> None:
    """Two encoders of a gripper never agree to a millionth; what is far off is doubtful."""
    urdf = """<robot name="gripper">
      <link name="base"/>
      <link name="left"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <link name="right"><inertial><mass value="1"/><origin xyz="0.1 0 0"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
      <joint name="f1" type="revolute"><parent link="base"/><child link="left"/>
        <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="8"/></joint>
      <joint name="f2" type="revolute"><parent link="base"/><child link="right"/>
        <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="1" velocity="8"/>
        <mimic joint="f1" multiplier="-1"/></joint>
    </robot>"""
    settings = EstimatorSettings.from_parameters({"base": "fixed", "acceleration.window": 0.004})
    now = START
    estimation = Estimation(settings.robot(urdf), settings, lambda: now, lambda kind, text: None)
    for second, validity in ((-0.3001, OK), (0.2, DEGRADED)):
        for _ in range(4):
            now += 2 * MS
            state = JointState(name=["f1", "f2"], position=[0.3, second], header=header(now))
            state.velocity, state.effort = [0.0, 0.0], [0.0, 0.0]
            estimation.read("joint_states", serialize_message(state))
            ((_, message),) = estimation.answer()
        assert message.validity == validity, message.text


def test_no_silence_is_reported_between_estimates_of_a_rate() -> None:
    """Joint states that the rate omits are no silence: nothing is published or logged."""
    standing = Standing(rate=100.0)
    for k in range(12):
        standing.now += 2 * MS
        standing.sense()
        standing.state()
        standing.answer()
        if k == 5:
            standing.warnings.clear()
        assert k < 5 or not list(standing.estimation.watch())
    assert not standing.warnings
