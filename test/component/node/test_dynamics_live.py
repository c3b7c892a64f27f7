"""The node with outputs besides the matrix: topics, service, parameters, closed robots."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from delassus_msgs.msg import ContactDynamics
from delassus_msgs.srv import Compute
from delassus_msgs_py import dynamics_to_numpy, matrix_to_numpy
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from node_support import DEGRADED, FEET, INVALID, OK, Start
from oracles import relative
from oracles.pinocchio_models import Peer
from ros_support import Graph, stamp_of
from sensor_msgs.msg import JointState

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.closure import Closure
from delassus.model import WORLD
from delassus.robots.built_in import demo_urdf
from delassus_ros.inputs.findings import Reason

OUTPUTS = ["G", "a0", "JdotV", "J", "MinvJT", "h"]
TWIST = np.array([0.3, -0.1, 0.2, 0.4, -0.5, 0.6])
GRAVITY = np.array([0.0, 0.0, -9.81])


@pytest.fixture(name="beside")
def make_beside(graph: Graph) -> list[ContactDynamics]:
    """All that comes beside the matrices."""
    found: list[ContactDynamics] = []
    graph.peer.create_subscription(ContactDynamics, "delassus_node/dynamics", found.append, 100)
    return found


def odometry() -> Odometry:
    message = Odometry(child_frame_id="base")
    message.header.frame_id = "odom"
    message.pose.pose.orientation.w = 1.0
    linear, angular = message.twist.twist.linear, message.twist.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = TWIST.tolist()
    return message


def answered(graph: Graph, beside: list[ContactDynamics], stamp: int) -> ContactDynamics:
    """Return what goes with the matrix of a stamp."""

    def found() -> Any:
        return next((m for m in beside if stamp_of(m) == stamp), None)

    return graph.until(found, "message beside the matrix")


def with_outputs(robot: Robot, outputs: list[str] = OUTPUTS) -> Problem:
    return Problem(robot, [Contact(foot, f"{foot}_FOOT") for foot in FEET], outputs=outputs)


def test_beside_each_matrix_comes_the_rest(graph, start: Start, robot, q, beside) -> None:
    base = graph.peer.create_publisher(Odometry, "odometry", 1)
    start(outputs=OUTPUTS, orientation__timeout=0.0)
    graph.touch(FEET)
    rates = np.random.default_rng(1).uniform(-2, 2, robot.nq)
    efforts = np.random.default_rng(2).uniform(-9, 9, robot.nq)
    # Without odometry there is the matrix alone.
    matrix = graph.ask(robot.joint_names, q, velocity=rates.tolist(), effort=efforts.tolist())
    graph.until(lambda: beside, "message beside the matrix")
    matrix = graph.ask_until(lambda m: m.validity == OK, robot.joint_names, q)
    assert answered(graph, beside, stamp_of(matrix)).validity == INVALID
    graph.until(lambda: base.get_subscription_count(), "subscription")

    def moved() -> Any:
        base.publish(odometry())
        answer = graph.ask(robot.joint_names, q, velocity=rates.tolist(), effort=efforts.tolist())
        return answer, answered(graph, beside, stamp_of(answer))

    def valid() -> Any:
        pair = moved()
        return pair if pair[1].validity != INVALID else None

    matrix, dynamics = graph.until(valid, "odometry at the node")
    assert matrix.validity == OK
    assert (dynamics.sequence, dynamics.layout_id) == (matrix.sequence, matrix.layout_id)
    # Without a stamp the odometry's age cannot be told.
    assert (dynamics.validity, dynamics.reasons) == (DEGRADED, Reason.STAMP_INVALID)
    problem = with_outputs(robot)
    inputs = {
        "q": np.array(q), "rates": np.r_[TWIST, rates], "torques": np.r_[np.zeros(6), efforts],
        "gravity": GRAVITY,
    }  # fmt: skip
    expected, found = Peer(problem).at(inputs), dynamics_to_numpy(dynamics)
    for name in ("a0", "JdotV", "J", "h"):
        assert relative(getattr(found, name), expected[name]) < 1e-10, name
    assert relative(found.J @ found.MinvJT, matrix_to_numpy(matrix)) < 1e-12
    assert found.M is None and found.Lambda is None


def test_nobody_asks_nothing_comes(graph, start: Start) -> None:
    node = start()
    names = [publisher.topic_name for publisher in node.publishers]
    assert not any(name.endswith("/dynamics") for name in names)


def test_diagnostics_have_a_line(graph, ready) -> None:
    reports: list[DiagnosticArray] = []
    graph.peer.create_subscription(DiagnosticArray, "/diagnostics", reports.append, 10)
    ready(outputs=["h"], base="fixed", diagnostics_period=0.1)

    def line() -> Any:
        found = [s for r in reports for s in r.status if s.name.endswith(": dynamics")]
        return next((s for s in found if "VELOCITY_MISSING" in str(s.values)), None)

    found = graph.until(line, "line about it")
    assert "do not have a velocity for each" in found.message and found.level == b"\x02"


def test_torques_by_topic(graph, start: Start, urdf, robot, q, beside) -> None:
    publisher = graph.peer.create_publisher(JointState, "joint_torques", 1)
    moon = [0.0, 0.0, -1.62]
    start(outputs=["qdd0"], base="fixed", torques="topic", input_timeout=0.0, gravity=moon)
    graph.touch(FEET)
    graph.until(lambda: publisher.get_subscription_count(), "subscription")
    wanted = dict.fromkeys(robot.joint_names[:3], 2.0)
    zeros = [0.0] * robot.nq

    def valid() -> Any:
        torques = JointState(name=list(wanted), effort=list(wanted.values()))
        torques.header.stamp = graph.peer.get_clock().now().to_msg()
        publisher.publish(torques)
        answer = graph.ask(robot.joint_names, q, velocity=zeros)
        dynamics = answered(graph, beside, stamp_of(answer))
        return dynamics if dynamics.validity == OK else None

    dynamics = graph.until(valid, "torques at the node")
    problem = Problem(
        Robot.from_urdf(urdf, base="fixed"), [Contact("LF", "LF_FOOT")], outputs=["qdd0"]
    )
    torques = [wanted.get(name, 0.0) for name in robot.joint_names]
    inputs = {"q": q, "rates": zeros, "torques": torques, "gravity": moon}
    expected = Peer(problem).at({name: np.array(values) for name, values in inputs.items()})
    free = np.linalg.solve(expected["M"], np.array(torques) - expected["h"])
    assert relative(dynamics_to_numpy(dynamics).qdd0, free) < 1e-10


def test_compute_answers_too(graph, start: Start, robot, q) -> None:
    start(outputs=[*OUTPUTS, "Lambda"])
    rates = np.random.default_rng(1).uniform(-2, 2, robot.nq)
    efforts = np.random.default_rng(2).uniform(-9, 9, robot.nq)
    request = Compute.Request(
        joints=[*robot.joint_names, "stranger"], positions=[*q, 0.0],
        which_contacts=Compute.Request.CONTACTS_LISTED, contacts=["RH", "LF"],
        joint_velocities=[*rates, 9.0], joint_torques=[*efforts, 9.0],
    )  # fmt: skip
    linear, angular = request.base_twist.linear, request.base_twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = TWIST.tolist()
    turned = pin.Quaternion(np.array([0.1, -0.2, 0.3, np.sqrt(0.86)]))
    o = request.base_orientation
    o.x, o.y, o.z, o.w = turned.coeffs().tolist()

    answer = graph.compute(request)
    assert answer.success, answer.message
    found = dynamics_to_numpy(answer.dynamics)
    inputs = {
        "q": np.array(q), "rates": np.r_[TWIST, rates], "torques": np.r_[np.zeros(6), efforts],
        "gravity": turned.toRotationMatrix().T @ GRAVITY,
    }  # fmt: skip
    expected = Peer(with_outputs(robot)).at(inputs)
    rows = [0, 1, 2, 9, 10, 11]
    assert (found.validity, found.contacts) == (OK, ("LF", "RH"))
    for name in ("a0", "JdotV", "J"):
        assert relative(getattr(found, name), expected[name][rows]) < 1e-10, name
    assert relative(found.h, expected["h"]) < 1e-10
    assert relative(found.Lambda @ matrix_to_numpy(answer.matrix), np.eye(6)) < 1e-9
    request.joint_velocities = [1.0]
    answer = graph.compute(request)
    assert not answer.success
    assert f"there are {robot.nq + 1} joints but 1 velocities" in answer.message


def test_a_geared_robot_whose_rotors_are_measured(graph, start: Start, beside) -> None:
    """Rates of independent joints follow from those of rotors, torques from those at them."""
    text = demo_urdf("geared")
    robot = Robot.from_urdf(text)
    problem = with_outputs(robot, ["G", "h", "qdd0"])
    closure = Closure(problem)
    random = np.random.default_rng(4)
    middle = {"HFE": 0.7, "KFE": -1.4}
    own = {
        name: middle.get(name.rpartition("_")[2], 0.0) + random.uniform(-0.2, 0.2)
        for name in closure.independent
    }
    solved = closure.solve(own)
    assert solved.status.is_valid
    step = 1e-6
    y = np.array(list(own.values()))
    rates = random.uniform(-1, 1, len(y))
    ahead, behind = (
        closure.solve(dict(zip(own, y + sign * step * rates, strict=True))).q for sign in (1, -1)
    )
    places = {
        joint.name: offset
        for joint, offset in zip(robot.joints, robot.q_offsets, strict=True)
        if joint.parent != WORLD
    }
    velocity = {name: (ahead - behind)[k] / (2 * step) for name, k in places.items()}
    position = {name: solved.q[k] for name, k in places.items()}
    rotors = [name for name in robot.joint_names if name.endswith("_ROTOR")]
    driven = {name.removesuffix("_ROTOR") for name in rotors}
    measured = [n for n in robot.joint_names if n in rotors or n in own and n not in driven]
    base = graph.peer.create_publisher(Odometry, "odometry", 1)
    start(robot_description=text, outputs=["h", "qdd0"], orientation__timeout=0.0)
    graph.touch(FEET)
    graph.until(lambda: base.get_subscription_count(), "subscription")
    efforts = dict(zip(measured, random.uniform(-2, 2, len(measured)), strict=True))

    def valid() -> Any:
        base.publish(odometry())
        answer = graph.ask(
            measured, [position[n] for n in measured],
            velocity=[velocity[n] for n in measured], effort=[efforts[n] for n in measured],
        )  # fmt: skip
        dynamics = answered(graph, beside, stamp_of(answer))
        return dynamics if dynamics.validity != INVALID else None

    dynamics = graph.until(valid, "odometry at the node")
    found = dynamics_to_numpy(dynamics)
    # Virtual work: torques at rotors through the same differences.
    moved = []
    for k in range(len(y)):
        delta = np.zeros(len(y))
        delta[k] = step
        pair = [closure.solve(dict(zip(own, y + s * delta, strict=True))).q for s in (1, -1)]
        moved.append(
            sum(e * (pair[0] - pair[1])[places[n]] / (2 * step) for n, e in efforts.items())
        )
    solver = DelassusSolver(problem, "ltl")
    order = [problem.velocities.index(name) for name in own]
    full, torques = np.r_[TWIST, np.zeros(len(y))], np.zeros(6 + len(y))
    full[order], torques[order] = rates, moved
    expected = solver.solve(solved.q, rates=full, torques=torques, gravity=GRAVITY)
    assert relative(found.h, expected.h) < 1e-8  # of differences
    assert relative(found.qdd0, expected.qdd0) < 1e-7
    assert not Reason(dynamics.reasons) & Reason.VELOCITY_MISSING
