"""delassus_node with world axes and a floating base: the orientation comes on a topic."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from delassus_msgs.msg import DelassusMatrix, Layout
from delassus_msgs_py import matrix_to_numpy
from nav_msgs.msg import Odometry
from node_support import (
    FEET,
    INVALID,
    OK,
    relative_error,
    set_parameters,
    state_of,
)
from processes import wait_until
from rclpy.parameter import Parameter
from sensor_msgs.msg import Imu

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus_ros.node.delassus_node import DelassusNode

QUATERNION = (0.18257418583505536, 0.3651483716701107, 0.5477225575051661, 0.7302967433402214)
TURN = (0.0, 0.0, np.sin(0.2), np.cos(0.2))


def times(a, b) -> tuple[float, ...]:
    """Return the product of quaternions x, y, z, w."""
    v, w = np.array(a[:3]), np.array(b[:3])
    return (*(a[3] * w + b[3] * v + np.cross(v, w)), a[3] * b[3] - v @ w)


def conjugate(a) -> tuple[float, ...]:
    return (-a[0], -a[1], -a[2], a[3])


class Base:
    """Publishes joint states and, with each, the orientation of the base."""

    def __init__(self, graph, robot, q, urdf: str) -> None:
        self._graph = graph
        self._names, self._q = list(robot.joint_names), q
        self._odometry = graph.peer.create_publisher(Odometry, "odometry", 10)
        self._imu = graph.peer.create_publisher(Imu, "imu", 10)
        contacts = [Contact(foot, frame=f"{foot}_FOOT") for foot in FEET]
        problem = Problem(Robot.from_urdf(urdf), contacts, axes="world")
        self._solver = DelassusSolver(problem)

    def expected(self, quaternion) -> np.ndarray:
        return self._solver.solve(self._q, base_orientation=quaternion).matrix

    def ask(
        self, quaternion=None, frame="base", world="odom", imu=False, late=0.0, **imu_fields: Any
    ):
        """Publish an orientation and joint states until one is answered; return the answer."""
        already = len(self._graph.matrices)

        def publish() -> None:
            now = time.time_ns()
            if quaternion is not None:
                message = Imu(**imu_fields) if imu else Odometry(child_frame_id=frame)
                message.header.frame_id = frame if imu else world
                stamp = now - round(late * 1e9)
                message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp, 10**9)
                o = message.orientation if imu else message.pose.pose.orientation
                o.x, o.y, o.z, o.w = (float(value) for value in quaternion)
                (self._imu if imu else self._odometry).publish(message)
            for _ in range(5):
                self._graph.executor.spin_once(timeout_sec=0.005)
            self._graph.move(self._names, self._q)
            for _ in range(5):
                self._graph.executor.spin_once(timeout_sec=0.01)

        wait_until(lambda: len(self._graph.matrices) > already, "answer", idle=publish)
        return self._graph.matrices[-1]

    def until(self, condition, *arguments: Any, **options: Any):
        """Ask until a condition holds for the answer; return it."""
        answers = [self.ask(*arguments, **options)]
        wait_until(
            lambda: condition(answers[-1]),
            "such an answer",
            report=lambda: f"the last one: {answers[-1]}",
            idle=lambda: answers.append(self.ask(*arguments, **options)),
        )
        return answers[-1]


@pytest.fixture(name="base")
def make_base(graph, robot, q, urdf) -> Base:
    graph.touch(FEET)
    return Base(graph, robot, q, urdf)


def good(message: DelassusMatrix) -> bool:
    return bool(message.validity == OK)


def reason(bits: int):
    return lambda m: m.validity == INVALID and m.reasons == bits


def test_odometry(graph, start, base) -> None:
    start(axes="world", orientation__timeout=5.0)
    graph.wait_for_log("active: from /active_contacts and /odometry and /joint_states")
    missing = DelassusMatrix.REASON_ORIENTATION_MISSING
    base.until(reason(missing))
    for quaternion in (QUATERNION, TURN, (0.0, 0.0, 0.0, 1.0)):
        expected = base.expected(quaternion)
        answer = base.until(
            lambda m, e=expected: good(m) and relative_error(matrix_to_numpy(m), e) < 1e-12,
            quaternion,
        )
        assert answer.header.frame_id == "odom"
        assert answer.axes == DelassusMatrix.AXES_WORLD
    graph.until(lambda: graph.layouts, "layout")
    layout: Layout = graph.layouts[-1]
    assert layout.header.frame_id == "odom"


def test_timeout(graph, start, base) -> None:
    start(axes="world", orientation__timeout=0.2)
    base.until(good, QUATERNION)
    stale = DelassusMatrix.REASON_ORIENTATION_STALE
    base.until(reason(stale), QUATERNION, late=0.5)
    graph.wait_for_log("the orientation of the base is ")
    base.until(good, QUATERNION)
    # None at all any more.
    base.until(reason(stale))


def test_never_too_old(start, base) -> None:
    start(axes="world", orientation__timeout=0.0)
    base.until(good, QUATERNION, late=30.0)


def test_world_frame(graph, start, base) -> None:
    start(axes="world", orientation__world_frame="map", orientation__timeout=5.0)
    base.until(reason(DelassusMatrix.REASON_ORIENTATION_INVALID), QUATERNION, world="odom")
    line = graph.wait_for_log("the orientation of the base is refused: it is in frame 'odom'")
    assert "'map' (orientation.world_frame)" in line
    assert base.until(good, QUATERNION, world="map").header.frame_id == "map"


@pytest.fixture(name="with_imu")
def make_with_imu(urdf, robot) -> str:
    """Return the quadruped with a link that is turned by 0.4 rad about z."""
    imu = (
        '<link name="other_imu"/><joint name="other_imu_joint" type="fixed">'
        '<parent link="{root}"/><child link="other_imu"/><origin rpy="0 0 0.4"/></joint></robot>'
    )
    return urdf.replace("</robot>", imu.format(root=next(iter(robot.frames))))


def test_imu_at_a_link_of_its_own(graph, start, with_imu, base) -> None:
    """Its orientation is turned into that of the root link."""
    # As the link is turned by 0.4 rad about z: base = imu * conjugate of that turn.
    measured = times(QUATERNION, TURN)
    node = start(
        robot_description=with_imu, axes="world", orientation__source="imu",
        orientation__timeout=5.0,
    )  # fmt: skip
    assert state_of(node) == "active"
    expected = base.expected(QUATERNION)
    answer = base.until(good, measured, frame="other_imu", imu=True)
    assert relative_error(matrix_to_numpy(answer), expected) < 1e-9
    # One that says that it has no orientation.
    none = np.zeros(9)
    none[0] = -1.0
    base.until(
        reason(DelassusMatrix.REASON_ORIENTATION_INVALID), measured, frame="other_imu", imu=True,
        orientation_covariance=none,
    )  # fmt: skip
    graph.wait_for_log("the Imu says that it has none")
    assert times(measured, conjugate(TURN)) == pytest.approx(QUATERNION)


def test_frame_for_messages_that_name_none(start, with_imu, base) -> None:
    start(
        robot_description=with_imu, axes="world", orientation__source="imu",
        orientation__frame="other_imu", orientation__timeout=5.0,
    )  # fmt: skip
    answer = base.until(good, times(QUATERNION, TURN), frame="", imu=True)
    assert relative_error(matrix_to_numpy(answer), base.expected(QUATERNION)) < 1e-9


WORLD_FRAME = "matrices are labelled with frame 'odom', the default of 'orientation.world_frame'"


def test_what_an_inertial_sensor_is_relative_to_is_asked_for(graph, start) -> None:
    node = start(axes="world", orientation__source="imu")
    assert "set 'orientation.world_frame' to that frame" in graph.wait_for_log(WORLD_FRAME)
    # Once, and no more when it has been set, if only to the same.
    node.trigger_deactivate()
    node.trigger_cleanup()
    set_parameters(node, orientation__world_frame="odom")
    node.trigger_configure()
    graph.until(lambda: sum("ready in" in line for line in graph.log) == 2, "configuration")
    assert sum(WORLD_FRAME in line for line in graph.log) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"axes": "world", "orientation__source": "imu", "orientation__world_frame": "odom"},
        {"axes": "world"},
        {"orientation__source": "imu"},
        {"axes": "world", "orientation__source": "imu", "base": "fixed"},
    ],
)
def test_it_is_not_asked_for_where_it_is_known_or_does_not_matter(graph, start, options) -> None:
    start(**options)
    graph.wait_for_log("active: from")
    assert not any("orientation.world_frame" in line for line in graph.log)


def test_odometry_of_another_topic_by_a_remap(graph, urdf) -> None:
    """As docs/reference/topics.md says: many bases publish odom."""
    contacts = ["-p", "contacts.names:=[LF]", "-p", "contacts.LF.frame:=LF_FOOT"]
    node = graph.add(
        DelassusNode(
            context=graph.context,
            cli_args=["--ros-args", "-r", "odometry:=odom", "-p", "axes:=world", *contacts],
            parameter_overrides=[Parameter("robot_description", value=urdf)],
        )
    )
    node.trigger_configure()
    node.trigger_activate()
    assert state_of(node) == "active"
    topics = {subscription.topic_name for subscription in node.subscriptions}
    assert "/odom" in topics and "/odometry" not in topics
