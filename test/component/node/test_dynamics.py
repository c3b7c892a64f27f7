"""What comes beside each matrix: right against Pinocchio; bad inputs leave the matrix alone."""

from __future__ import annotations

import numpy as np
import pytest
from delassus_msgs.msg import ContactDynamics
from delassus_msgs_py import DynamicsReader, dynamics_to_numpy, matrix_to_numpy
from motion_support import FEET, SECONDARY, STILL, TURNED, TWIST, MotionRig, torques_of
from oracles import relative
from oracles.pinocchio_models import Peer
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Imu, JointState
from tick_support import DEGRADED, INVALID, MS, OK, to_message

from delassus import Problem
from delassus_ros.inputs.findings import Reason
from delassus_ros.inputs.mounting import mountings
from delassus_ros.inputs.quaternions import times, turned_back
from delassus_ros.node.matrix import make_layout


def assert_right(
    rig: MotionRig, dynamics: ContactDynamics, inputs: dict[str, np.ndarray], active=FEET
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
    rig = MotionRig(
        axes, base=base, algorithm=algorithm, is_compiled=axes == "world", limits=STILL
    )
    matrix, dynamics = rig.send()
    assert (matrix.validity, dynamics.validity, dynamics.reasons) == (OK, OK, 0)
    assert tuple(dynamics.velocities) == rig.problem.velocities
    assert_right(rig, dynamics, rig.inputs())
    found = dynamics_to_numpy(dynamics)
    assert relative(found.J @ found.MinvJT, matrix_to_numpy(matrix)) < 1e-12


def test_contacts_come_and_go_and_a_reader_follows() -> None:
    rig, reader = MotionRig(), DynamicsReader()
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
    rig = MotionRig()
    rig.touch()
    _, dynamics = rig.send()
    found = dynamics_to_numpy(dynamics)
    assert (dynamics.validity, found.a0, found.J) == (OK, None, None)
    assert found.M is not None and found.h is not None and found.h.shape == (18,)


def test_joints_in_another_order_and_in_parts() -> None:
    rig = MotionRig()
    order = np.random.default_rng(1).permutation(len(rig.joints))
    _, dynamics = rig.send(
        name=[rig.joints[k] for k in order], position=rig.q[order], velocity=rig.rates[order],
        effort=rig.efforts[order],
    )  # fmt: skip
    assert_right(rig, dynamics, rig.inputs())
    parts = MotionRig()
    assert parts.send(slice(5))[0].reasons == Reason.JOINT_MISSING
    _, dynamics = parts.send(slice(5, None))
    assert_right(parts, dynamics, parts.inputs())


@pytest.mark.parametrize("axes", ["contact", "world"])
def test_odometry_of_a_foot_is_as_good_as_that_of_the_base(axes) -> None:
    """Its twist has that of the joints of the leg in it, gravity the turn of these joints."""
    rig = MotionRig(axes)
    rig.tick.clock_jumped()  # forgets the odometry of the base
    rig.touch(*FEET)
    foot = mountings(rig.problem.robot)["LF_FOOT"].at(rig.q, rig.rates)
    v, w = np.split(TWIST, 2)
    linear = v + np.cross(w, foot.place) + foot.velocity
    twist = [each for part in (linear, w + foot.rates)
             for each in turned_back(part, foot.rotation)]  # fmt: skip
    rig.odometry(twist, "LF_FOOT", orientation=times(TURNED, foot.rotation))
    matrix, dynamics = rig.send()
    assert (matrix.validity, dynamics.validity) == (OK, OK)
    assert_right(rig, dynamics, rig.inputs())
    _, dynamics = rig.send(velocity=[])
    assert (dynamics.validity, dynamics.reasons) == (INVALID, Reason.VELOCITY_MISSING)


@pytest.mark.parametrize("axes", ["contact", "world"])
def test_without_a_twist_there_is_the_matrix_alone(axes) -> None:
    rig = MotionRig(axes)
    imu = Imu()
    imu.header.frame_id, imu.header.stamp = "base", to_message(rig.now)
    imu.orientation.w = 1.0
    imu.angular_velocity_covariance[0] = -1.0
    rig.feel(imu)
    matrix, dynamics = rig.send()
    assert (matrix.validity, dynamics.validity, Reason(dynamics.reasons)) == (
        OK,
        INVALID,
        Reason.TWIST_INVALID,
    )
    assert any("Imu without angular velocity" in text for _, text in rig.warnings)


def test_a_stale_orientation_counts_where_it_is_needed() -> None:
    for axes in ("contact", "world"):
        rig = MotionRig(axes)
        rig.now += 200 * MS
        rig.touch(*FEET)
        matrix, dynamics = rig.send()
        expected = (INVALID, OK)[axes == "contact"]
        assert matrix.validity == expected
        assert dynamics.validity == INVALID
        assert Reason(dynamics.reasons) & Reason.ORIENTATION_STALE


def test_an_imu_is_enough_with_world_axes() -> None:
    """By Galilei's principle: contacts accelerate alike in a frame that moves with the base."""
    rig = MotionRig("world")
    imu = Imu()
    imu.header.frame_id, imu.header.stamp = "base", to_message(rig.now)
    o, w = imu.orientation, imu.angular_velocity
    o.x, o.y, o.z, o.w = TURNED.tolist()
    w.x, w.y, w.z = TWIST[3:].tolist()
    rig.feel(imu)
    _, dynamics = rig.send()
    assert_right(rig, dynamics, rig.inputs(np.r_[0.0, 0.0, 0.0, TWIST[3:]]))
    free = Peer(rig.problem).at(rig.inputs())["a0"]
    assert relative(dynamics_to_numpy(dynamics).a0, free) < 1e-10


def test_torques_of_a_topic_count_until_they_are_too_old() -> None:
    rig = MotionRig(torques="topic")
    _, dynamics = rig.send(effort=[])
    assert Reason(dynamics.reasons) == Reason.TORQUE_MISSING
    own = np.zeros(len(rig.joints))
    own[:2] = 3.0, -4.0
    rig.read("joint_torques", torques_of(rig, rig.joints[:2], own[:2]))
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
    assert rig.tick.healths()["joint_torques"].received


def test_zero_torques_ask_for_nothing() -> None:
    rig = MotionRig(torques="zero")
    _, dynamics = rig.send(effort=[])
    assert_right(rig, dynamics, rig.inputs(efforts=np.zeros(len(rig.joints))))


def test_where_there_is_no_matrix_there_is_nothing_beside_it() -> None:
    rig = MotionRig()
    matrix, dynamics = rig.send(position=[np.nan] * len(rig.joints))
    assert matrix.validity == dynamics.validity == INVALID
    assert dynamics.reasons == matrix.reasons == Reason.JOINT_NOT_FINITE
    assert "~/dynamics" in dict(rig.tick.fault("something"))


def test_degraded_matrices_have_degraded_company() -> None:
    rig = MotionRig()
    rig.now += 2 * MS
    message = JointState(name=rig.joints, position=rig.q, velocity=rig.rates, effort=rig.efforts)
    rig.answer(serialize_message(message))
    dynamics = deserialize_message(rig.following["~/dynamics"], ContactDynamics)
    assert dynamics.validity == DEGRADED
    assert Reason(dynamics.reasons) == Reason.STAMP_INVALID


def test_layouts_do_not_depend_on_outputs() -> None:
    rig = MotionRig()
    alone = Problem(rig.problem.robot, rig.problem.contacts, rig.problem.axes)
    assert make_layout(alone, to_message(0), "odom").layout_id == rig.layout.layout_id
