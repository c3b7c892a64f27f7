"""The base's orientation from sensors mounted on it, and the ones that are refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import small
from hypothesis import given
from hypothesis import strategies as st

from delassus_ros import Robot, Transform
from delassus_ros.errors import InputError
from delassus_ros.model import Frame
from delassus_ros.node.inputs.orientation import OrientationInput, mountings
from delassus_ros.node.reasons import Reason

MS = 1_000_000
START = 1_700_000_000 * 1000 * MS
TILTED = Transform.from_xyz_rpy((0.1, 0, 0.2), (0.3, -1.2, 2.5))


def rotation(quaternion) -> np.ndarray:
    """Rotation matrix of a unit quaternion x, y, z, w."""
    x, y, z, w = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


@pytest.fixture(name="robot", scope="module")
def make_robot() -> Robot:
    walker = small.walker()
    frames = [*walker.frames.values(), Frame("imu", 0, TILTED)]
    return Robot("walker", walker.joints, walker.bodies, frames)


class Source:
    def __init__(self, robot: Robot, **options) -> None:
        self.input = OrientationInput(robot, **options)
        self.target = np.full(4, np.nan)

    def send(
        self, quaternion=(0.0, 0.0, 0.0, 1.0), stamp=0, now=None, frame="base", world=None,
        rates=(0.0, 0.0, 0.0),
    ):  # fmt: skip
        at = START + (stamp if now is None else now) * MS
        warning = self.input.read(quaternion, START + stamp * MS, at, frame, world, rates)
        self.input.write(0, self.target)
        return warning

    def as_of(self, stamp) -> np.ndarray:
        """The orientation at a stamp [ms]."""
        target = np.full(4, np.nan)
        self.input.write(START + stamp * MS, target)
        return target

    def at(self, now):
        return self.input.warning(START + now * MS)


@pytest.fixture(name="source")
def make_source(robot) -> Source:
    return Source(robot)


def test_nothing_before_the_first(source) -> None:
    warning = source.at(0)
    assert warning.reason is Reason.ORIENTATION_MISSING
    assert source.send() is None
    assert source.at(1) is None
    source.input.reset()
    assert source.at(1).reason is Reason.ORIENTATION_MISSING


def test_an_orientation_from_before_time_began_grows_old_from_then_on(source) -> None:
    assert source.send(now=-START // MS, stamp=0) is None
    assert source.input.warning(0) is None
    assert source.at(0) is None
    assert source.at(99) is None
    assert source.at(101).reason is Reason.ORIENTATION_STALE


def test_odometry_of_the_root_link_is_taken_as_it_is(source) -> None:
    q = (0.1, -0.7, 0.5, math.sqrt(1 - 0.75))
    assert source.send(q, frame="base", world="odom") is None
    assert source.target == pytest.approx(q, abs=1e-15)


@given(st.integers(0, 2**32 - 1))
def test_sensor_on_the_root_link(robot, seed) -> None:
    """R(world from sensor) = R(world from base) R(base from sensor)."""
    source = Source(robot)
    sensed = np.random.default_rng(seed).normal(size=4)
    sensed /= np.linalg.norm(sensed)
    assert source.send(sensed.tolist(), frame="imu") is None
    expected = rotation(sensed) @ TILTED.rotation.T
    assert rotation(source.target) == pytest.approx(expected, abs=1e-12)
    assert np.linalg.norm(source.target) == pytest.approx(1.0, abs=1e-15)


def test_frame_may_be_stated_where_messages_are_wrong(robot) -> None:
    stated, told = Source(robot, frame="imu"), Source(robot)
    q = (0.5, 0.5, 0.5, 0.5)
    for frame in ("", "imu_link_17"):
        assert stated.send(q, frame=frame) is None
    told.send(q, frame="imu")
    assert np.array_equal(stated.target, told.target)


def test_frame_that_moves_on_the_root_link(robot) -> None:
    with pytest.raises(InputError, match="'foot1' can move"):
        OrientationInput(robot, frame="foot1")
    with pytest.raises(InputError, match="unknown frame 'inu'; did you mean 'imu'"):
        OrientationInput(robot, frame="inu")


def test_other_world(robot) -> None:
    # An inertial sensor does not name its world.
    assert Source(robot, world="odom").send(world=None) is None
    text = Source(robot, world="odom").send(world=10_000 * "x").text
    assert f"it is in frame '{100 * 'x'}', expected" in text
    for world in ("", "map", None):
        assert Source(robot, world="").send(world=world) is None


def test_almost_unit_is_made_unit(source) -> None:
    assert source.send((0, 0, 0, 0.9995)) is None
    assert source.target.tolist() == [0, 0, 0, 1]


def test_own_timeout(robot) -> None:
    source = Source(robot, timeout=0.05)
    source.send(stamp=10)
    assert source.at(60) is None
    warning = source.at(61)
    assert warning.reason is Reason.ORIENTATION_STALE
    assert "0.051 s old, at most 0.05 s are allowed" in warning.text
    assert Source(robot, timeout=math.inf).input.warning(START).reason is (
        Reason.ORIENTATION_MISSING
    )
    with pytest.raises(InputError, match="timeout is 0"):
        OrientationInput(robot, timeout=0.0)


def test_a_stamp_ahead_of_the_clock_keeps_nothing_alive(source) -> None:
    """A source whose clock is an hour ahead dies: its last orientation is no younger for that."""
    source.input.read((0, 0, 0, 1), START + 3600 * 10**9, START, "base")
    assert source.at(99) is None
    assert source.input.latest.age(START + 2 * 10**9) == 2.0
    assert source.at(101).reason is Reason.ORIENTATION_STALE


@pytest.mark.parametrize("stamp", [0, START + 3600 * 10**9])
def test_clock_set_back_keeps_nothing_alive(source, stamp) -> None:
    later = START + 3600 * 10**9
    source.input.read((0, 0, 0, 1), stamp, later, "base")
    assert source.input.warning(later) is None
    assert source.input.latest.age(START) == 0.0
    assert source.at(0) is None
    assert source.at(100) is None
    assert source.at(101).reason is Reason.ORIENTATION_STALE
    source.input.read((0, 0, 0, 0), 0, later, "base")
    assert source.input.latest.silence(START) == 0.0
    assert source.input.latest.silence(START + 2 * 10**9) == 2.0


def test_without_a_stamp_the_arrival_counts(source) -> None:
    source.input.read((0, 0, 0, 1), 0, START, "base")
    assert source.at(99) is None
    assert source.at(101).reason is Reason.ORIENTATION_STALE


def test_simulated_clock_that_has_not_begun(source) -> None:
    source.send()
    assert source.input.warning(0) is None


def test_the_twist_of_a_mounted_frame_is_turned_and_carried_to_the_root_link(robot) -> None:
    """ω and v at the frame's origin follow from those of the root link by hand."""
    source = OrientationInput(robot)
    twist = np.full(6, np.nan)
    assert source.write_twist(twist).reason is Reason.TWIST_INVALID
    v, w = np.array([0.3, -1.0, 0.5]), np.array([2.0, 0.7, -0.4])
    R = TILTED.rotation
    source.read(
        (0.0, 0.0, 0.0, 1.0), START, START, "imu", None, R.T @ w,
        velocity=R.T @ (v + np.cross(w, TILTED.translation)),
    )  # fmt: skip
    assert source.write_twist(twist) is None
    np.testing.assert_allclose(twist, [*v, *w], atol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -2e3])
@pytest.mark.parametrize("part", ["rates", "velocity"])
def test_a_twist_that_no_base_has_is_refused(robot, part, bad) -> None:
    source, twist = OrientationInput(robot), np.zeros(6)
    numbers = {"rates": (0.0, 0.0, 0.0), "velocity": (0.0, 0.0, 0.0), part: (0.0, bad, 0.0)}
    assert source.read((0.0, 0.0, 0.0, 1.0), START, START, "base", None, **numbers) is None
    warning = source.write_twist(twist)
    assert warning.reason is Reason.TWIST_INVALID and f"{bad:.6g}" in warning.text
    assert source.warning(START) is None and not twist.any()


def test_fixed_base_has_no_mountings() -> None:
    assert mountings(small.walker(floating=False)) == {}


RATES = np.array([0.8, -1.7, 2.3])


def turning(robot, frame: str, at: float) -> np.ndarray:
    """The rotation of the base at a time [ms] after it was TILTED, at RATES in a frame's axes."""
    axes = robot.frames[frame].placement.rotation
    ω = axes @ RATES * 1e-3 * at
    angle = np.linalg.norm(ω) or 1.0
    K = np.array([[0, -ω[2], ω[1]], [ω[2], 0, -ω[0]], [-ω[1], ω[0], 0]]) / angle
    return TILTED.rotation @ (np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K)


@pytest.mark.parametrize("frame", ["base", "imu"])
@pytest.mark.parametrize("later", [-30, 0, 1, 99])
def test_it_is_carried_on_to_the_stamp_of_the_joints(robot, frame, later) -> None:
    source = Source(robot)
    measured = TILTED.rotation @ robot.frames[frame].placement.rotation
    quaternion = Transform(measured, np.zeros(3)).quaternion()
    assert source.send(quaternion, stamp=5, frame=frame, rates=RATES) is None
    assert rotation(source.target) == pytest.approx(TILTED.rotation, abs=1e-14)
    found = rotation(source.as_of(5 + later))
    assert found == pytest.approx(turning(robot, frame, later), abs=1e-14)


def test_it_is_carried_on_by_a_tenth_of_a_second_at_most(source) -> None:
    source.send(rates=RATES)
    assert np.array_equal(source.as_of(100), source.as_of(100_000))
    assert np.array_equal(source.as_of(-100), source.as_of(-100_000))
    assert not np.array_equal(source.as_of(100), source.as_of(99))


@pytest.mark.parametrize(
    "rates",
    [
        (0.0, 0.0, 0.0), (5e-324, 0.0, 0.0), (1e-323, 1e-323, 1e-323), (math.nan, 1.0, 1.0),
        (math.inf, 0.0, 0.0), (1e308, 1e308, 0.0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("frame", ["base", "imu"])
def test_without_rates_that_can_be_it_stays(source, rates, frame) -> None:
    source.send(rates=rates, frame=frame)
    assert np.array_equal(source.as_of(50), source.target)


def test_what_turns_in_a_way_that_no_base_does_is_doubtful(source) -> None:
    """It is not carried on, and nobody knows how far it has turned since."""
    base = source.input
    stale = Reason.ORIENTATION_STALE
    for rates, reason in (
        ((math.nan, 1.0, 1.0), stale), ((0.0, 2e3, 0.0), stale), ((0.0, 0.0, 0.0), None),
        (RATES, None), (None, None),
    ):  # fmt: skip
        base.read((0, 0, 0, 1), START, START, "base", None, rates)
        found = base.caveat(START, 0.005, 0, START)
        assert (found and found.reason) == reason
    base.read((0, 0, 0, 1), START, START, "base", None, (math.inf, 0.0, 0.0))
    assert "angular velocity of the base is refused" in base.caveat(START, 0.005).text
    base.reset()
    base.read((0, 0, 0, 1), START, START, "base", None)
    assert base.caveat(START, 0.005) is None


def test_without_stamps_it_stays(source) -> None:
    source.send(rates=RATES)
    target = np.full(4, np.nan)
    source.input.write(0, target)
    assert target.tolist() == [0, 0, 0, 1]
    source.input.read((0, 0, 0, 1), 0, START, "base", None, RATES)
    assert source.as_of(50).tolist() == [0, 0, 0, 1]
