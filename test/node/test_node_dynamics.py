"""What comes beside each matrix: right against Pinocchio; bad inputs leave the matrix alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

pin = pytest.importorskip("pinocchio", reason="needs Pinocchio")
pytest.importorskip("delassus_msgs", reason="the message package delassus_msgs is not installed")

import robots  # noqa: E402
from delassus_msgs.msg import ActiveContacts, ContactDynamics, DelassusMatrix  # noqa: E402
from delassus_msgs_py import DynamicsReader, dynamics_to_numpy, matrix_to_numpy  # noqa: E402
from nav_msgs.msg import Odometry  # noqa: E402
from pinocchio_motion import Peer, relative  # noqa: E402
from pipeline_support import DEGRADED, INVALID, MS, OK, START, to_message  # noqa: E402
from rclpy.serialization import deserialize_message, serialize_message  # noqa: E402
from sensor_msgs.msg import Imu, JointState  # noqa: E402

from delassus_ros import Contact, DelassusSolver, Problem, Robot  # noqa: E402
from delassus_ros.node.inputs.motion import MotionInput  # noqa: E402
from delassus_ros.node.inputs.orientation import OrientationInput  # noqa: E402
from delassus_ros.node.live.pipeline import Pipeline  # noqa: E402
from delassus_ros.node.outputs.dynamics import DynamicsOutput  # noqa: E402
from delassus_ros.node.outputs.matrix import make_layout  # noqa: E402
from delassus_ros.node.reasons import Limits, Reason  # noqa: E402
from delassus_ros.outputs import secondary_outputs  # noqa: E402

FEET = ("LF", "RF", "LH", "RH")
SECONDARY = tuple(secondary_outputs())
TURNED = np.array([0.1, -0.2, 0.3, np.sqrt(1.0 - 0.14)])
TWIST = np.array([0.3, -0.1, 0.2, 0.4, -0.5, 0.6])


class Rig:
    """A pipeline of the quadruped with all outputs; velocities and efforts are random."""

    def __init__(
        self,
        axes: str = "world",
        torques: str = "effort",
        base: str = "floating",
        algorithm: str = "pv_osimr",
        frame: str = "",
        limits: Limits | None = None,
    ) -> None:
        robot = Robot.from_urdf(robots.unlimited(), base=base)
        contacts = [Contact(foot, frame=f"{foot}_FOOT") for foot in FEET]
        outputs = [name for name in SECONDARY if name not in ("Lambda", "Jbar")]
        self.problem = Problem(robot, contacts, axes=axes, outputs=outputs)
        self.joints = list(robot.joint_names)
        self.now = START
        self.warnings: list[tuple[str, str]] = []
        source = OrientationInput(robot, frame, "odom") if base == "floating" else None
        motion = MotionInput(self.problem, torques, (0.0, 0.0, -9.81), source, 0.5)
        layout = make_layout(self.problem, to_message(START), "odom")
        self.layout = layout
        self.pipeline = Pipeline(
            DelassusSolver(self.problem, algorithm), layout, False, lambda: self.now,
            lambda kind, text: self.warnings.append((kind, text)), limits or Limits(),
            orientation=source, motion=motion,
            secondary=DynamicsOutput(self.problem, layout, SECONDARY),
        )  # fmt: skip
        random = np.random.default_rng(3)
        n = len(self.joints)
        self.q, self.rates = random.uniform(-1, 1, n), random.uniform(-2, 2, n)
        self.efforts = random.uniform(-20, 20, n)
        self.touch(*FEET)
        if base == "floating":
            self.odometry()

    def touch(self, *names: str) -> None:
        message = ActiveContacts(names=list(names), status=[ActiveContacts.ACTIVE] * len(names))
        message.header.stamp = to_message(self.now)
        self.pipeline.set_contacts(message)

    def odometry(self, twist: Sequence[float] = TWIST, child: str = "base") -> None:
        message = Odometry(child_frame_id=child)
        message.header.frame_id = "odom"
        message.header.stamp = to_message(self.now)
        o, t = message.pose.pose.orientation, message.twist.twist
        o.x, o.y, o.z, o.w = TURNED.tolist()
        t.linear.x, t.linear.y, t.linear.z = map(float, twist[:3])
        t.angular.x, t.angular.y, t.angular.z = map(float, twist[3:])
        self.pipeline.read("odometry", message)

    def send(self, part: slice = slice(None), **changes: Any) -> list[Any]:
        """Send a joint state; return matrix and what comes beside it."""
        message = JointState(
            name=self.joints[part], position=self.q[part], velocity=self.rates[part],
            effort=self.efforts[part],
        )  # fmt: skip
        for field, values in changes.items():
            setattr(message, field, values)
        message.header.stamp = to_message(self.now)
        data = self.pipeline.answer(serialize_message(message))
        if data is None:
            return []
        secondary = self.pipeline.secondary_outputs()
        assert secondary is not None
        matrix = deserialize_message(data, DelassusMatrix)
        dynamics = deserialize_message(secondary, ContactDynamics)
        assert (dynamics.sequence, dynamics.header) == (matrix.sequence, matrix.header)
        assert dynamics.layout_id == matrix.layout_id == self.layout.layout_id
        return [matrix, dynamics]

    def inputs(self, twist: Sequence[float] = TWIST, **changes: Any) -> dict[str, np.ndarray]:
        """Return the inputs of what was sent, for a solver or a peer."""
        floating = self.problem.robot.base == "floating"
        efforts = changes.get("efforts", self.efforts)
        found = {"q": self.q, "rates": self.rates, "torques": efforts}
        gravity = np.array([0.0, 0.0, -9.81])
        if floating:
            found["rates"] = np.r_[twist, self.rates]
            found["torques"] = np.r_[np.zeros(6), efforts]
            if self.problem.axes == "world":
                found["base_orientation"] = TURNED
            else:
                gravity = pin.Quaternion(TURNED).toRotationMatrix().T @ gravity
        return {**found, "gravity": gravity}


def assert_right(
    rig: Rig, dynamics: ContactDynamics, inputs: dict[str, np.ndarray], active=FEET
) -> None:
    """Compare each block with Pinocchio; Λ and J̄ with their definitions."""
    found = dynamics_to_numpy(dynamics)
    expected = Peer(rig.problem).at(inputs)
    rows = [r for k, foot in enumerate(FEET) if foot in active for r in range(3 * k, 3 * k + 3)]
    for name in ("a0", "JdotV"):
        assert relative(getattr(found, name), expected[name][rows]) < 1e-10, name
    for name in ("M", "h"):
        assert relative(getattr(found, name), expected[name]) < 1e-10, name
    J = expected["J"][rows]
    assert relative(found.J, J) < 1e-10
    assert relative(found.MinvJT, np.linalg.solve(expected["M"], J.T)) < 1e-9
    qdd0 = np.linalg.solve(expected["M"], inputs["torques"] - expected["h"])
    assert relative(found.qdd0, qdd0) < 1e-9
    G = found.J @ found.MinvJT
    assert relative(found.Lambda @ G, np.eye(len(rows))) < 1e-9
    assert relative(found.Jbar, found.MinvJT @ found.Lambda) < 1e-12


@pytest.mark.parametrize("axes", ["contact", "world"])
@pytest.mark.parametrize("base", ["floating", "fixed"])
@pytest.mark.parametrize("algorithm", ["pv_osimr", "efpa"])
def test_every_block_against_pinocchio(axes, base, algorithm) -> None:
    rig = Rig(axes, base=base, algorithm=algorithm)
    matrix, dynamics = rig.send()
    assert (matrix.validity, dynamics.validity, dynamics.reasons) == (OK, OK, 0)
    assert tuple(dynamics.velocities) == rig.problem.velocities
    assert_right(rig, dynamics, rig.inputs())
    found = dynamics_to_numpy(dynamics)
    assert relative(found.J @ found.MinvJT, matrix_to_numpy(matrix)) < 1e-12


def test_contacts_come_and_go_and_a_reader_follows() -> None:
    rig, reader = Rig(), DynamicsReader()
    for active in (("LF", "RH"), FEET, ("RF",), ("LF", "RH")):
        rig.touch(*active)
        _, dynamics = rig.send()
        assert tuple(dynamics.contacts) == active
        assert_right(rig, dynamics, rig.inputs(), active)
        data = serialize_message(dynamics)
        expected = dynamics_to_numpy(dynamics)
        for _ in range(2):
            for name in (*SECONDARY, "sequence", "stamp", "contacts", "validity"):
                np.testing.assert_array_equal(
                    getattr(reader.read(data), name), getattr(expected, name)
                )


def test_without_contacts_the_joints_blocks_are_there() -> None:
    rig = Rig()
    rig.touch()
    _, dynamics = rig.send()
    found = dynamics_to_numpy(dynamics)
    assert (dynamics.validity, found.a0, found.J) == (OK, None, None)
    assert found.M is not None and found.h is not None and found.h.shape == (18,)


def test_joints_in_another_order_and_in_parts() -> None:
    rig = Rig()
    order = np.random.default_rng(1).permutation(len(rig.joints))
    _, dynamics = rig.send(
        name=[rig.joints[k] for k in order], position=rig.q[order], velocity=rig.rates[order],
        effort=rig.efforts[order],
    )  # fmt: skip
    assert_right(rig, dynamics, rig.inputs())
    parts = Rig()
    assert parts.send(slice(5))[0].reasons == Reason.JOINT_MISSING
    _, dynamics = parts.send(slice(5, None))
    assert_right(parts, dynamics, parts.inputs())


@pytest.mark.parametrize(
    ("changes", "reason", "words"),
    [
        ({"velocity": []}, Reason.VELOCITY_MISSING, "do not have a velocity for each"),
        ({"velocity": [0.0] * 3}, Reason.VELOCITY_MISSING, "do not have a velocity for each"),
        ({"velocity": 1, "at": np.nan}, Reason.VELOCITY_NOT_FINITE, "'LF_HFE' is nan"),
        ({"velocity": 1, "at": np.inf}, Reason.VELOCITY_NOT_FINITE, "'LF_HFE' is inf"),
        ({"velocity": 1, "at": 2e6}, Reason.VELOCITY_NOT_FINITE, "'LF_HFE' is 2e+06"),
        ({"effort": []}, Reason.TORQUE_MISSING, "do not have an effort for each"),
        ({"effort": 1, "at": np.nan}, Reason.TORQUE_INVALID, "'LF_HFE' is nan"),
    ],
)
def test_what_is_wrong_with_a_joint_leaves_the_matrix_alone(changes, reason, words) -> None:
    rig = Rig()
    good, _ = rig.send()
    at = changes.pop("at", None)
    ((field, values),) = changes.items()
    if at is not None:
        own = {"velocity": rig.rates, "effort": rig.efforts}[field].copy()
        own[values], values = at, own
    matrix, dynamics = rig.send(**{field: list(values)})
    assert (matrix.validity, matrix.reasons, matrix.matrix) == (OK, 0, good.matrix)
    assert (dynamics.validity, Reason(dynamics.reasons)) == (INVALID, reason)
    assert all(not len(getattr(dynamics, f)) for f in ("jacobian", "mass_matrix", "contacts"))
    assert any(words in text for _, text in rig.warnings), rig.warnings
    validity, reasons, text = rig.pipeline.secondary_state
    assert (validity, reasons) == (INVALID, reason) and words in text
    assert rig.send()[1].validity == OK


@pytest.mark.parametrize("axes", ["contact", "world"])
def test_without_a_twist_there_is_the_matrix_alone(axes) -> None:
    rig = Rig(axes)
    rig.odometry([np.nan, 0, 0, 0, 0, 0])
    matrix, dynamics = rig.send()
    assert (matrix.validity, dynamics.validity, Reason(dynamics.reasons)) == (
        OK,
        INVALID,
        Reason.TWIST_INVALID,
    )
    imu = Imu()
    imu.header.frame_id, imu.header.stamp = "base", to_message(rig.now)
    imu.orientation.w = 1.0
    imu.angular_velocity_covariance[0] = -1.0
    rig.pipeline.read("odometry", imu)
    matrix, dynamics = rig.send()
    assert (matrix.validity, dynamics.validity, Reason(dynamics.reasons)) == (
        OK,
        INVALID,
        Reason.TWIST_INVALID,
    )
    assert any("Imu without angular velocity" in text for _, text in rig.warnings)


def test_a_stale_orientation_counts_where_it_is_needed() -> None:
    for axes in ("contact", "world"):
        rig = Rig(axes)
        rig.now += 200 * MS
        rig.touch(*FEET)
        matrix, dynamics = rig.send()
        expected = (INVALID, OK)[axes == "contact"]
        assert matrix.validity == expected
        assert dynamics.validity == INVALID
        assert Reason(dynamics.reasons) & Reason.ORIENTATION_STALE


def test_an_imu_is_enough_with_world_axes() -> None:
    """By Galilei's principle: contacts accelerate alike in a frame that moves with the base."""
    rig = Rig("world")
    imu = Imu()
    imu.header.frame_id, imu.header.stamp = "base", to_message(rig.now)
    o, w = imu.orientation, imu.angular_velocity
    o.x, o.y, o.z, o.w = TURNED.tolist()
    w.x, w.y, w.z = TWIST[3:].tolist()
    rig.pipeline.read("odometry", imu)
    _, dynamics = rig.send()
    assert_right(rig, dynamics, rig.inputs(np.r_[0.0, 0.0, 0.0, TWIST[3:]]))
    free = Peer(rig.problem).at(rig.inputs())["a0"]
    assert relative(dynamics_to_numpy(dynamics).a0, free) < 1e-10


def torques_of(rig: Rig, names=None, efforts=None) -> JointState:
    return JointState(
        name=rig.joints if names is None else names,
        effort=rig.efforts if efforts is None else efforts,
    )


def test_torques_of_a_topic_count_until_they_are_too_old() -> None:
    rig = Rig(torques="topic")
    _, dynamics = rig.send(effort=[])
    assert Reason(dynamics.reasons) == Reason.TORQUE_MISSING
    own = np.zeros(len(rig.joints))
    own[:2] = 3.0, -4.0
    rig.pipeline.read("joint_torques", torques_of(rig, rig.joints[:2], own[:2]))
    _, dynamics = rig.send(effort=[])
    assert_right(rig, dynamics, rig.inputs(efforts=own))
    for _ in range(6):
        rig.now += 90 * MS
        rig.touch(*FEET)
        rig.odometry()
        matrix, dynamics = rig.send(effort=[])
    assert (matrix.validity, dynamics.validity, Reason(dynamics.reasons)) == (
        OK,
        INVALID,
        Reason.TORQUE_STALE,
    )
    assert rig.pipeline.healths()["joint_torques"].received


@pytest.mark.parametrize(
    ("names", "efforts", "words"),
    [
        (["LF_HFF"], [1.0], "'LF_HFE'"),
        (["LF_HFE"], [np.nan], "'LF_HFE' is nan"),
        (["LF_HFE"], [], "1 names but 0 efforts"),
        (["LF_HFE", "LF_HFE"], [1.0, 1.0], "more than once"),
    ],
)
def test_bad_torques_of_a_topic_are_refused_by_name(names, efforts, words) -> None:
    rig = Rig(torques="topic")
    rig.pipeline.read("joint_torques", torques_of(rig, names, efforts))
    matrix, dynamics = rig.send()
    assert (matrix.validity, dynamics.validity, Reason(dynamics.reasons)) == (
        OK,
        INVALID,
        Reason.TORQUE_INVALID,
    )
    assert any(words in text for _, text in rig.warnings), rig.warnings
    assert words in rig.pipeline.healths()["joint_torques"].warning


def test_zero_torques_ask_for_nothing() -> None:
    rig = Rig(torques="zero")
    _, dynamics = rig.send(effort=[])
    assert_right(rig, dynamics, rig.inputs(efforts=np.zeros(len(rig.joints))))


def test_where_there_is_no_matrix_there_is_nothing_beside_it() -> None:
    rig = Rig()
    matrix, dynamics = rig.send(position=[np.nan] * len(rig.joints))
    assert matrix.validity == dynamics.validity == INVALID
    assert dynamics.reasons == matrix.reasons == Reason.JOINT_NOT_FINITE
    rig.pipeline.fault("something")
    assert rig.pipeline.secondary_outputs() is not None


def test_degraded_matrices_have_degraded_company() -> None:
    rig = Rig()
    rig.now += 2 * MS
    message = JointState(name=rig.joints, position=rig.q, velocity=rig.rates, effort=rig.efforts)
    rig.pipeline.answer(serialize_message(message))
    dynamics = deserialize_message(rig.pipeline.secondary_outputs(), ContactDynamics)
    assert dynamics.validity == DEGRADED
    assert Reason(dynamics.reasons) == Reason.STAMP_INVALID


def test_layouts_do_not_depend_on_outputs() -> None:
    rig = Rig()
    alone = Problem(rig.problem.robot, rig.problem.contacts, rig.problem.axes)
    assert make_layout(alone, to_message(0), "odom").layout_id == rig.layout.layout_id
