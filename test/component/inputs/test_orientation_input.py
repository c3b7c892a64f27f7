"""The base's orientation from sensors mounted on it, and the ones that are refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
import robots
import small
from hypothesis import given
from hypothesis import strategies as st
from tick_support import sensed
from urdf_text import joint, link, robot_xml, without_geometry

from delassus import Contact, Problem, Robot, Transform
from delassus.closure import Closure
from delassus.drawing.skeleton import Skeleton
from delassus.errors import InputError
from delassus.model import Frame
from delassus.robots.built_in import demo_urdf
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.motion import MotionInput
from delassus_ros.inputs.mounting import mountings
from delassus_ros.inputs.orientation import OrientationInput

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
        message = sensed(quaternion, START + stamp * MS, frame, world, rates)
        warning = self.input.accept(message, at)
        self.input.write(0, self.target)
        return warning

    def as_of(self, stamp) -> np.ndarray:
        """The orientation at a stamp [ms]."""
        target = np.full(4, np.nan)
        self.input.write(START + stamp * MS, target)
        return target

    def at(self, now):
        return self.input.fault(START + now * MS)


@pytest.fixture(name="source")
def make_source(robot) -> Source:
    return Source(robot)


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


def carried(model, name: str, base: np.ndarray, q: np.ndarray, v: np.ndarray) -> dict[str, Any]:
    """Return what a sensor on a frame measures, by Pinocchio, for `sensed`."""
    data, number = model.createData(), model.getFrameId(name)
    q, v = (np.concatenate(pair) for pair in ((base, q), v))
    pin.forwardKinematics(model, data, q, v)
    pin.updateFramePlacements(model, data)
    twist = pin.getFrameVelocity(model, data, number, pin.LOCAL)
    return {
        "orientation": pin.Quaternion(data.oMf[number].rotation).coeffs(),
        "velocity": twist.linear, "rates": twist.angular,
    }  # fmt: skip


def on_slides() -> str:
    """Return a robot whose frame "eye" is carried by hinges and a slide, askew."""
    return robot_xml(
        *map(link, ("trunk", "waist", "mast", "head")), link("eye", ""),
        joint("turn", "trunk", "waist", "continuous", '<axis xyz="0 0.6 0.8"/>'),
        joint("lift", "waist", "mast", "prismatic",
              '<axis xyz="0.6 0 0.8"/><limit lower="-1" upper="1" effort="1" velocity="1"/>'),
        joint("nod", "mast", "head", "continuous", '<axis xyz="1 0 0"/>'),
        joint("weld", "head", "eye", "fixed"),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["eye", "g1"])
def test_joints_between_carry_orientation_and_twist_as_in_pinocchio(name: str) -> None:
    """A base that moves, and the Imu of G1's torso behind three joints of the waist."""
    frame = "eye" if name == "eye" else "imu_in_torso"
    text = on_slides() if name == "eye" else robots.shared("g1_29dof").read_text(encoding="utf-8")
    robot = Robot.from_urdf(text.encode())
    model = pin.buildModelFromXML(without_geometry(text), pin.JointModelFreeFlyer())
    mapping = [model.getJointId(each) for each in robot.joint_names]
    source, target, twist = OrientationInput(robot, frame), np.zeros(4), np.zeros(6)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        base, motion = np.r_[rng.normal(size=3), rng.normal(size=4)], rng.normal(size=6)
        base[3:] /= np.linalg.norm(base[3:])
        q, rates = rng.uniform(-1, 1, robot.nq), rng.uniform(-2, 2, robot.nq)
        theirs, speeds = pin.neutral(model)[7:], np.zeros(model.nv - 6)
        for value, rate, number in zip(q, rates, mapping, strict=True):
            each = model.joints[number]
            wide = each.nq == 2
            theirs[each.idx_q - 7 : each.idx_q - 7 + each.nq] = (
                (np.cos(value), np.sin(value)) if wide else value
            )
            speeds[each.idx_v - 6] = rate
        measured = carried(model, frame, base, theirs, (motion, speeds))
        assert source.accept(sensed(stamp=START, world="odom", **measured), START) is None
        assert source.write(START, target, q) is None
        assert rotation(target) == pytest.approx(rotation(base[3:]), abs=1e-13)
        assert source.write_twist(twist, q, rates) is None
        np.testing.assert_allclose(twist, motion, atol=1e-12)
    assert len(source.carrying) == 3
    warning = source.write(START, target)
    assert warning.reason is Reason.ORIENTATION_MISSING
    assert f"carried by joints '{source.carrying[0]}'," in warning.text
    assert warning.text.endswith("whose positions are unknown")
    warning = source.write_twist(twist, q)
    assert warning.reason is Reason.TWIST_INVALID and "or velocities are unknown" in warning.text


def test_joints_of_loops_carry_a_twist_though_some_are_not_measured() -> None:
    """A tool on a four-bar: its velocity is the difference of two closed positions."""
    robot = Robot.from_urdf(demo_urdf("geared").encode())
    problem = Problem(robot, [Contact("LF_FOOT")], axes="world", outputs=["a0"])
    closure, skeleton = Closure(robot), Skeleton(robot)
    source = OrientationInput(robot, "LIFT_TOOL")
    motion = MotionInput(problem, "zero", (0.0, 0.0, -9.81), source, math.inf)
    at = dict.fromkeys(closure.independent, 0.2)
    speeds = dict(zip(at, np.linspace(-0.5, 1.5, len(at)), strict=True))

    def tool(time: float) -> np.ndarray:
        moved = {name: value + time * speeds[name] for name, value in at.items()}
        return skeleton.frame(skeleton.poses(closure.solve(moved).q), "LIFT_TOOL")

    twist, step, pose = np.array([0.3, -0.1, 0.2, 0.4, -0.5, 0.6]), 1e-5, tool(0.0)
    slope = (tool(step) - tool(-step)) / (2.0 * step)
    R, W = pose[:3, :3], slope[:3, :3] @ pose[:3, :3].T
    spin = twist[3:] + (W[2, 1], W[0, 2], W[1, 0])
    speed = twist[:3] + np.cross(twist[3:], pose[:3, 3]) + slope[:3, 3]
    turned = Transform(R).quaternion()
    source.accept(sensed(turned, START, "", "odom", R.T @ spin, R.T @ speed), START)
    assert set(source.carrying) - at.keys()
    motion.accept(list(at), np.array([list(speeds.values()), [0.0] * len(at)]))
    inputs = {port.name: np.zeros(port.shape) for port in problem.inputs}
    inputs["q"][...] = closure.solve(at).q
    assert motion.write(START, START, inputs) is None
    # As good as the differences.
    np.testing.assert_allclose(inputs["rates"][:6], twist, atol=1e-7)


def test_refuses_a_frame_that_a_joint_of_several_freedoms_carries() -> None:
    parts = (link("trunk"), link("hip"), link("foot"), joint("plane", "trunk", "hip", "planar"))
    robot = Robot.from_urdf(robot_xml(*parts, joint("knee", "hip", "foot")))
    words = r"frame 'foot' is not carried .* revolute and prismatic joints .*: 'trunk'$"
    with pytest.raises(InputError, match=words):
        OrientationInput(robot, frame="foot")
    with pytest.raises(InputError, match="unknown frame 'trunc'; did you mean 'trunk'"):
        OrientationInput(robot, frame="trunc")


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


def test_older_orientation_is_used_and_in_doubt(robot) -> None:
    source = Source(robot)
    assert source.send((0.0, 0.0, 0.0, 1.0), stamp=20) is None
    assert source.send((1.0, 0.0, 0.0, 0.0), stamp=10, now=21) is None
    assert source.target.tolist() == [1.0, 0.0, 0.0, 0.0]
    doubt = source.input.doubt(START + 21 * MS, 0.005)
    assert doubt.reason is Reason.STAMP_JUMPED_BACK
    assert "jumped back by 0.01 s" in doubt.text


def test_the_twist_of_a_mounted_frame_is_turned_and_carried_to_the_root_link(robot) -> None:
    """ω and v at the frame's origin follow from those of the root link by hand."""
    source = OrientationInput(robot)
    twist = np.full(6, np.nan)
    assert source.write_twist(twist).reason is Reason.TWIST_INVALID
    v, w = np.array([0.3, -1.0, 0.5]), np.array([2.0, 0.7, -0.4])
    R = TILTED.rotation
    velocity = R.T @ (v + np.cross(w, TILTED.translation))
    source.accept(sensed((0, 0, 0, 1), START, "imu", "odom", R.T @ w, velocity), START)
    assert source.write_twist(twist) is None
    np.testing.assert_allclose(twist, [*v, *w], atol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -2e3])
@pytest.mark.parametrize("part", ["rates", "velocity"])
def test_a_twist_that_no_base_has_is_refused(robot, part, bad) -> None:
    source, twist = OrientationInput(robot), np.zeros(6)
    numbers = {"rates": (0.0, 0.0, 0.0), "velocity": (0.0, 0.0, 0.0), part: (0.0, bad, 0.0)}
    message = sensed((0, 0, 0, 1), START, "base", "odom", **numbers)
    assert source.accept(message, START) is None
    warning = source.write_twist(twist)
    assert warning.reason is Reason.TWIST_INVALID and f"{bad:.6g}" in warning.text
    assert source.fault(START) is None and not twist.any()


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
def test_orientation_extrapolated_to_the_stamp_of_the_joints(robot, frame, later) -> None:
    source = Source(robot)
    measured = TILTED.rotation @ robot.frames[frame].placement.rotation
    quaternion = Transform(measured, np.zeros(3)).quaternion()
    assert source.send(quaternion, stamp=5, frame=frame, rates=RATES) is None
    assert rotation(source.target) == pytest.approx(TILTED.rotation, abs=1e-14)
    found = rotation(source.as_of(5 + later))
    assert found == pytest.approx(turning(robot, frame, later), abs=1e-14)


def test_orientation_extrapolated_by_a_tenth_of_a_second_at_most(source) -> None:
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


def test_implausible_angular_velocity_makes_the_orientation_doubtful(source) -> None:
    """It is not carried on, and nobody knows how far it has turned since."""
    base = source.input
    stale = Reason.ORIENTATION_STALE
    for rates, reason in (
        ((math.nan, 1.0, 1.0), stale), ((0.0, 2e3, 0.0), stale), ((0.0, 0.0, 0.0), None),
        (RATES, None), (None, None),
    ):  # fmt: skip
        base.accept(sensed((0, 0, 0, 1), START, "base", None, rates), START)
        found = base.doubt(START, 0.005, 0, START)
        assert (found and found.reason) == reason
    base.accept(sensed((0, 0, 0, 1), START, "base", None, (math.inf, 0.0, 0.0)), START)
    assert "angular velocity of the base is refused" in base.doubt(START, 0.005).text
    base.reset()
    base.accept(sensed((0, 0, 0, 1), START, "base", None, None), START)
    assert base.doubt(START, 0.005) is None


def test_without_stamps_it_stays(source) -> None:
    source.send(rates=RATES)
    target = np.full(4, np.nan)
    source.input.write(0, target)
    assert target.tolist() == [0, 0, 0, 1]
    source.input.accept(sensed((0, 0, 0, 1), 0, "base", None, RATES), START)
    assert source.as_of(50).tolist() == [0, 0, 0, 1]
