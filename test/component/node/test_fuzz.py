"""Whatever comes on topics, services and parameters, the node lives and says nothing wrong.

The tick alone meets many more messages in test_tick.py; here they travel through ROS.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from builtin_interfaces.msg import Time
from delassus_msgs.msg import ActiveContacts
from delassus_msgs.srv import Compute, ListAlgorithms
from delassus_msgs_py import matrix_to_numpy
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st
from nav_msgs.msg import Odometry
from node_support import (
    FEET,
    INVALID,
    OK,
    relative_error,
    state_of,
)
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterValue
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from ros_support import Graph, stamp_of
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus import Contact, DelassusSolver, Problem, Robot

JOINTS = [f"{foot}_{joint}" for foot in FEET for joint in ("HAA", "HFE", "KFE")]
fuzzing = examples(suppress_health_check=list(HealthCheck), max_examples=60)
MANY = examples(fuzzing, max_examples=1000)

floats = st.one_of(
    st.floats(-3.0, 3.0), st.floats(), st.sampled_from([math.nan, math.inf, 1e300, 5e-324])
)
words = st.one_of(
    st.sampled_from([*JOINTS, *FEET, "", "LF_FOOT", "base", "odom", "map"]), st.text(max_size=8)
)
stamps = st.one_of(
    st.none(),
    st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1)),
)


def now() -> Time:
    sec, nanosec = divmod(time.time_ns(), 10**9)
    return Time(sec=sec, nanosec=nanosec)


def at(stamp: tuple[int, int] | None) -> Time:
    return now() if stamp is None else Time(sec=stamp[0], nanosec=stamp[1])


@st.composite
def joint_states(draw: Any) -> JointState:
    names = draw(st.one_of(st.permutations(JOINTS), st.lists(words, max_size=14)))
    size = draw(st.one_of(st.just(len(names)), st.integers(0, 14)))
    message = JointState(name=names)
    message.position = draw(st.lists(floats, min_size=size, max_size=size))
    message.velocity = draw(st.lists(floats, max_size=3))
    message.header.stamp = at(draw(stamps))
    return message


@st.composite
def contact_sets(draw: Any) -> ActiveContacts:
    names = draw(st.one_of(st.lists(st.sampled_from(FEET), unique=True), st.lists(words)))
    size = draw(st.one_of(st.just(len(names)), st.integers(0, 6)))
    message = ActiveContacts(names=names)
    message.status = draw(st.lists(st.integers(0, 5), min_size=size, max_size=size))
    message.header.stamp = at(draw(stamps))
    return message


@st.composite
def odometries(draw: Any) -> Odometry:
    message = Odometry(child_frame_id=draw(st.one_of(st.just("base"), words)))
    message.header.frame_id = draw(st.one_of(st.just("odom"), words))
    message.header.stamp = at(draw(stamps))
    values = np.array(draw(st.lists(st.floats(-1, 1), min_size=4, max_size=4)))
    norm = float(np.linalg.norm(values))
    if norm > 0.1 and draw(st.booleans()):
        values /= norm
    else:
        values = np.array(draw(st.lists(floats, min_size=4, max_size=4)))
    o = message.pose.pose.orientation
    o.x, o.y, o.z, o.w = map(float, values)
    return message


@st.composite
def damaged(draw: Any) -> bytes:
    """Bytes that were a message before something happened to them."""
    data = bytearray(serialize_message(draw(st.one_of(joint_states(), contact_sets()))))
    for place, value in draw(
        st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6)
    ):
        # The first four bytes say how the rest is written.
        data[place % len(data)] = value
    return bytes(data[: draw(st.integers(4, len(data)))])


EVENTS = st.one_of(
    st.tuples(st.just("joints"), joint_states()),
    st.tuples(st.just("contacts"), contact_sets()),
    st.tuples(st.just("odometry"), odometries()),
    st.tuples(st.just("description"), st.one_of(st.text(), st.just("<robot/>"))),
    st.tuples(st.sampled_from(["joints", "contacts", "odometry", "description"]), damaged()),
    st.tuples(st.just("joints"), st.binary(min_size=4, max_size=60)),
    st.tuples(st.just("algorithm"), words),
)


class Truth:
    """What was sent, by stamp, and which matrices are right for it."""

    def __init__(self, urdf: str) -> None:
        contacts = [Contact(foot, frame=f"{foot}_FOOT") for foot in FEET]
        problem = Problem(Robot.from_urdf(urdf), contacts, axes="world")
        self._solver = DelassusSolver(problem, "dense")
        self.positions: dict[int, list[list[float]]] = {}
        self.orientations: list[list[float]] = []

    def is_right(self, message: Any) -> bool:
        """Whether it follows from a joint state of its stamp and an orientation that came."""
        found = matrix_to_numpy(message)
        return any(
            relative_error(found, self._solver.solve(q, message.contacts, o).matrix) < 1e-9
            for q in self.positions.get(stamp_of(message), [])
            for o in self.orientations
        )


def throw(graph: Graph, start: Callable[..., Any], urdf: str, much: Any) -> None:
    """Send whatever comes, see that what is answered is right, and that good input still is."""
    node = start(axes="world", orientation__timeout=0.0, input_timeout=0.0)
    odometry = graph.peer.create_publisher(Odometry, "odometry", 10)
    outputs = {
        "joints": graph.joints, "contacts": graph.contacts, "odometry": odometry,
        "description": graph.descriptions,
    }  # fmt: skip
    truth = Truth(urdf)
    graph.until(lambda: all(p.get_subscription_count() for p in outputs.values()), "subscribers")

    def send(kind: str, message: Any) -> None:
        if kind == "joints" and isinstance(message, JointState):
            order = [message.name.index(j) if j in message.name else None for j in JOINTS]
            whole = None not in order and len(message.name) == len(message.position)
            if whole:
                q = [message.position[i] for i in order if i is not None]
                stamp = stamp_of(message) if message.header.stamp.nanosec < 10**9 else 0
                truth.positions.setdefault(max(stamp, 0), []).append(q)
        elif isinstance(message, Odometry):
            o = message.pose.pose.orientation
            values = np.array([o.x, o.y, o.z, o.w])
            norm = math.hypot(*values)
            if abs(norm - 1.0) < 1e-3:
                truth.orientations.append((values / norm).tolist())
        outputs[kind].publish(message)

    def good() -> None:
        """Ask for what has one answer."""
        q = [0.1 * i for i in range(12)]
        o = Odometry(child_frame_id="base")
        o.header.frame_id, o.header.stamp = "odom", now()
        o.pose.pose.orientation.w = 1.0

        def answered() -> Any:
            send("odometry", o)
            graph.touch(FEET)
            message = JointState(name=JOINTS, position=q)
            message.header.stamp = now()
            send("joints", message)
            graph.executor.spin_once(timeout_sec=0.02)
            return any(m.validity == OK and len(m.contacts) == 4 for m in graph.matrices)

        graph.until(answered, "matrix")

    @much
    @given(st.lists(EVENTS, min_size=1, max_size=12))
    def run(events: list[tuple[str, Any]]) -> None:
        graph.matrices.clear()
        truth.positions.clear()
        # The last one may still be in use.
        del truth.orientations[:-1]
        for kind, message in events:
            if kind == "algorithm":
                node.set_parameters([Parameter("algorithm", value=message)])
            elif kind == "description" and isinstance(message, str):
                send(kind, String(data=message.replace("\0", "")))
            else:
                send(kind, message)
            graph.executor.spin_once(timeout_sec=0.0)
        good()
        assert state_of(node) == "active"
        for answer in graph.matrices:
            if answer.validity == INVALID:
                assert answer.reasons and not answer.matrix
            else:
                assert truth.is_right(answer) or from_damaged(answer, truth)

    run()
    assert not [line for line in graph.log if "a fault of this program" in line]


def from_damaged(message: Any, truth: Truth) -> bool:
    """Whether it answers a damaged joint state, whose numbers nobody but the node knows."""
    return stamp_of(message) not in truth.positions


def test_whatever_comes_on_topics(graph, start, urdf) -> None:
    throw(graph, start, urdf, fuzzing)


@pytest.mark.slow
def test_whatever_comes_on_topics_at_length(graph, start, urdf) -> None:
    throw(graph, start, urdf, MANY)


# --- parameters and services ------------------------------------------------------------------

values = st.one_of(
    st.builds(ParameterValue, type=st.just(0)),
    st.builds(ParameterValue, type=st.just(1), bool_value=st.booleans()),
    st.builds(
        ParameterValue, type=st.just(2), integer_value=st.integers(-(2**63), 2**63 - 1)
    ),
    st.builds(ParameterValue, type=st.just(3), double_value=floats),
    st.builds(ParameterValue, type=st.just(4), string_value=words),
    st.builds(ParameterValue, type=st.just(5), byte_array_value=st.just([b"a"])),
    st.builds(
        ParameterValue, type=st.just(7),
        integer_array_value=st.lists(st.integers(-(2**63), 2**63 - 1), max_size=7),
    ),
    st.builds(
        ParameterValue, type=st.just(8), double_array_value=st.lists(floats, max_size=7)
    ),
    st.builds(
        ParameterValue, type=st.just(9), string_array_value=st.lists(words, max_size=5)
    ),
)  # fmt: skip


contact_names = st.builds(
    ParameterValue, type=st.just(9),
    string_array_value=st.lists(st.sampled_from([*FEET, "toe", "heel", "tip"]), max_size=3),
)  # fmt: skip
FOR_OTHERS = {
    "contacts__toe__kind": "pont",
    "contacts__heel__xyz": "up",
    "contacts__tip__frame": 3,
}
"""Given for contacts that are not listed at first."""


def change_parameters(graph: Graph, node: Any, much: Any) -> None:
    """Set anything to anything; what is refused changes nothing."""
    service = "delassus_node/set_parameters_atomically"
    # Those of rclpy itself are not the node's to guard.
    names = [
        name
        for name in node.list_parameters([], 0).names
        if not name.startswith(("qos_overrides", "use_sim_time", "start_type"))
    ]
    before_state = state_of(node)

    def present() -> dict[str, str]:
        names = node.list_parameters([], 0).names
        return {name: repr(node.get_parameter_or(name).value) for name in names}

    anything = st.tuples(st.one_of(st.sampled_from(names), words), values)
    contacts = st.tuples(st.just("contacts.names"), contact_names)

    @much
    @given(st.lists(st.one_of(anything, anything, contacts), min_size=1, max_size=4))
    def run(changes: list[tuple[str, ParameterValue]]) -> None:
        before = present()
        request = SetParametersAtomically.Request()
        request.parameters = [
            ParameterMessage(name=name.replace("\0", ""), value=value) for name, value in changes
        ]
        result = graph.call(SetParametersAtomically, service, request).result
        assert result.successful or result.reason
        if not result.successful:
            assert present() == before
        assert state_of(node) == before_state

    run()


def test_whatever_parameters_are_set_while_active(graph, start, robot, q) -> None:
    node = start(rows="all", **FOR_OTHERS)
    graph.ask(robot.joint_names, q)
    change_parameters(graph, node, examples(fuzzing, max_examples=150))
    assert graph.ask(robot.joint_names, q).validity in (INVALID, 1)


def test_whatever_parameters_are_set_while_unconfigured(graph, start) -> None:
    node = start(autostart=False, **FOR_OTHERS)
    change_parameters(graph, node, examples(fuzzing, max_examples=150))
    # Whatever they are now, configuring is a matter of words.
    node.trigger_configure()
    assert state_of(node) in ("inactive", "unconfigured")


@st.composite
def questions(draw: Any) -> Compute.Request:
    request = Compute.Request()
    request.joints = draw(st.one_of(st.permutations(JOINTS), st.lists(words, max_size=14)))
    size = draw(st.one_of(st.just(len(request.joints)), st.integers(0, 14)))
    request.positions = draw(st.lists(floats, min_size=size, max_size=size))
    request.which_contacts = draw(st.integers(0, 4))
    request.contacts = draw(st.lists(words, max_size=4))
    o = request.base_orientation
    o.x, o.y, o.z, o.w = draw(st.tuples(floats, floats, floats, floats))
    return request


def test_whatever_is_asked(graph, start, urdf) -> None:
    node = start(axes="world")
    contacts = [Contact(foot, frame=f"{foot}_FOOT") for foot in FEET]
    solver = DelassusSolver(Problem(Robot.from_urdf(urdf), contacts, axes="world"), "dense")

    @fuzzing
    @given(questions())
    def run(request: Compute.Request) -> None:
        answer = graph.compute(request)
        assert answer.success or answer.message
        if answer.success:
            by_name = dict(zip(request.joints, request.positions, strict=True))
            o = request.base_orientation
            expected = solver.solve(
                [by_name[j] for j in JOINTS], answer.matrix.contacts, (o.x, o.y, o.z, o.w)
            )
            assert relative_error(matrix_to_numpy(answer.matrix), expected.matrix) < 1e-9

    run()
    service, request = "delassus_node/list_algorithms", ListAlgorithms.Request()
    assert graph.call(ListAlgorithms, service, request).active == "pv_osimr"
    assert state_of(node) == "active"
