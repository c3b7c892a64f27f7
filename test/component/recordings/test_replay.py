"""A recording gives what the live node publishes when it is played, to the last bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings_support import BEGIN, PARAMETERS, STEP, clock, description, state, touching, write

from delassus_msgs.msg import ActiveContacts, DelassusMatrix  # isort: skip
from delassus_msgs_py import MatrixReader
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from ros_support import Graph, overrides
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from delassus.robots.built_in import demo_urdf
from delassus_ros.inputs.findings import Reason
from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.node.parameters import Operation, Settings
from delassus_ros.node.present_contacts import PresentContacts
from delassus_ros.node.tick import DelassusTick
from delassus_ros.recordings.recorded_file import Recorded
from delassus_ros.recordings.recording import Recording
from delassus_ros.recordings.replay import Replay
from delassus_ros.ros import stream

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
KINDS = {"/joint_states": JointState, "/active_contacts": ActiveContacts}
TAKEN = {"/joint_states": "answer", "/active_contacts": "read"}
TIMEOUTS = {"input_timeout": 0.195, "contacts_timeout": 0.095}
"""No multiples of the step: where a message has waited for a moment, it decides at those."""


def ticks(times: range) -> Iterator[Recorded]:
    for time in times:
        yield clock(time)
        if (time - BEGIN) // STEP % 4 == 0:
            yield touching(time, "LF", "RH")
        yield state(time)


def clean() -> Iterator[Recorded]:
    yield description()
    yield from ticks(range(BEGIN, BEGIN + 60 * STEP, STEP))


def faulty() -> Iterator[Recorded]:
    """Drop-outs, a simulation that is reset, contacts that come late or do not exist, a NaN."""
    yield description()
    end = BEGIN + 20 * STEP
    yield from ticks(range(BEGIN, end, STEP))
    yield clock(end)
    yield state(end, np.full(12, np.nan))
    # Neither joints nor contacts for half a second.
    yield from map(clock, range(end + STEP, end + 50 * STEP, STEP))
    # Joints alone: the contacts are late.
    for time in range(end + 50 * STEP, end + 56 * STEP, STEP):
        yield clock(time)
        yield state(time)
    yield touching(time, "LF", "LEFT")
    yield state(time + 1)
    yield from ticks(range(end + 60 * STEP, end + 64 * STEP, STEP))
    yield from ticks(range(BEGIN, BEGIN + 8 * STEP, STEP))


@pytest.fixture(name="graph")
def make_graph(capfd: pytest.CaptureFixture[str], monkeypatch) -> Iterator[Graph]:
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    with Graph(capfd) as graph:
        yield graph


def played(graph: Graph, monkeypatch, messages: list[Recorded]) -> list[bytes]:
    """Return what a node publishes while messages are played to it, each once it is taken in."""
    calls: Counter[str] = Counter()

    def counted(kind: type, name: str) -> Callable[..., Any]:
        original = getattr(kind, name)

        def call(self: Any, *arguments: Any) -> Any:
            found = original(self, *arguments)
            calls[name] += 1
            return found

        return call

    for kind, name in ((DelassusTick, "answer"), (DelassusTick, "watch"),
                       (PresentContacts, "read")):  # fmt: skip
        monkeypatch.setattr(kind, name, counted(kind, name))
    # Time is simulated: what the machine takes to deliver a message is none of it.
    monkeypatch.setattr(stream, "delay_since", lambda sent, now: 0)
    values = {
        "use_sim_time": True, "autostart": True, "robot_description": demo_urdf(),
        "realtime.hold_garbage": False, **TIMEOUTS, **PARAMETERS,
    }  # fmt: skip
    node = DelassusNode(context=graph.context, parameter_overrides=overrides(values))
    graph.add(node)
    node.start()
    heard: list[bytes] = []
    qos = QoSProfile(depth=1000)
    graph.peer.create_subscription(
        DelassusMatrix, "delassus_node/delassus", heard.append, qos, raw=True
    )
    clocks = graph.peer.create_publisher(Clock, "/clock", 10)
    publishers = {
        topic: graph.peer.create_publisher(kind, topic, LATCHED if kind is ActiveContacts else qos)
        for topic, kind in KINDS.items()
    }
    graph.until(
        lambda: (
            clocks.get_subscription_count()
            and all(each.get_subscription_count() for each in publishers.values())
        ),
        "subscriptions",
    )
    for message in messages:
        if message.topic == "/clock":
            clocks.publish(deserialize_message(message.data, Clock))
            graph.until(lambda m=message: node.get_clock().now().nanoseconds == m.time, "time")
            # Twice, as it may have been at it.
            seen = calls["watch"]
            graph.until(lambda n=seen: calls["watch"] >= n + 2, "look for silence")
        elif message.topic in publishers:
            taken = TAKEN[message.topic]
            seen = calls[taken]
            publishers[message.topic].publish(message.data)
            graph.until(lambda n=seen, t=taken: calls[t] > n, message.topic)
    return heard


def without_times(data: bytes) -> tuple[DelassusMatrix, int]:
    """Return all that a message holds but the compute time; bytes between fields hold anything."""
    message = deserialize_message(data, DelassusMatrix)
    message.compute_time = 0.0
    return message, len(data)


@pytest.mark.parametrize("run", [clean, faulty])
def test_the_live_node_and_the_recording_say_the_same(run, graph, monkeypatch, tmp_path: Path):
    messages = list(run())
    recording = Recording(write(tmp_path / "run.mcap", messages))
    parameters = {**PARAMETERS, **TIMEOUTS, "robot_description": demo_urdf()}
    replay = Replay(
        recording, Settings.from_parameters(parameters), Operation.from_parameters(parameters),
        demo_urdf(),
    )  # fmt: skip
    answers = [answer.matrix for answer in replay.answers()]
    live = played(graph, monkeypatch, messages)
    last = MatrixReader().read(answers[-1]).sequence
    graph.until(lambda: MatrixReader().read(live[-1]).sequence >= last, "last answer")
    assert len(live) == len(answers)
    for mine, theirs in zip(answers, live, strict=True):
        assert without_times(mine) == without_times(theirs)
    reasons = {Reason(MatrixReader().read(each).reasons) for each in answers}
    if run is clean:
        assert reasons == {Reason.NONE} and len(answers) == 60
    else:
        said = Reason.NONE
        for each in reasons:
            said |= each
        for reason in ("JOINT_NOT_FINITE", "INPUT_STALE", "CONTACTS_STALE", "UNKNOWN_CONTACT"):
            assert Reason[reason] in said, reason
