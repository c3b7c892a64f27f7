"""`delassus record`: what is published is in the file, as it was, with its times."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from processes import Program, python
from recordings_support import FEET, positions

from delassus_msgs.msg import ActiveContacts  # isort: skip
from rcl_interfaces.srv._get_parameters import GetParameters_Event
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from ros_support import LATCHED, Graph, graph_of_programs
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from delassus import Robot
from delassus.errors import DelassusError
from delassus.robots.built_in import demo_urdf
from delassus_ros.recordings import recorder
from delassus_ros.recordings.recording import Recording
from delassus_ros.verbs.main import main

JOINTS = list(Robot.from_urdf(demo_urdf().encode()).joint_names)


make_graph = pytest.fixture(name="graph")(graph_of_programs)


def record(path: Path, *options: str) -> Program:
    """Record to a file; the recorder is killed at the end of the block."""
    command = ("-m", "delassus_ros.verbs.main", "record", "-o", path)
    return python(*command, *options, apart=True)


def last_state(path: Path) -> JointState | None:
    """Return the last joint state in a file that may still be written."""
    if not path.exists() or not path.stat().st_size:
        return None
    found = [m.data for m in Recording(path).messages() if m.topic == "/joint_states"]
    return deserialize_message(found[-1], JointState) if found else None


def test_topics_are_recorded_as_they_are(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    # What is there before it: latched messages reach the recorder, too.
    graph.describe(demo_urdf())
    graph.touch(FEET[:2])
    with record(path, "--json") as recorder:
        graph.until(lambda: graph.peer.count_subscribers("/joint_states"), "recorder")
        graph.until(lambda: graph.peer.count_subscribers("/active_contacts"), "recorder")
        # Lost to discovery, some of them.
        for _ in range(50):
            graph.move(JOINTS, positions(0).tolist())
            graph.executor.spin_once(timeout_sec=0.01)
        stamp = graph.move(JOINTS, positions(1).tolist())
        expected = JointState(name=JOINTS, position=positions(1).tolist())
        expected.header.stamp.sec, expected.header.stamp.nanosec = divmod(stamp, 10**9)
        graph.until(lambda: last_state(path) == expected, "last joint state in the file")
        assert (recorder.stop(), recorder.errors) == (0, "")
        seen = time.time_ns()
        found = json.loads(recorder.output)
    recording = Recording(path)
    assert recording.scan()["/joint_states"] == "sensor_msgs/msg/JointState"
    messages = list(recording.messages())
    counts = {topic: sum(m.topic == topic for m in messages) for topic in found["counts"]}
    assert counts == found["counts"] and counts["/joint_states"] > 10
    assert counts["/robot_description"] == 1
    (touching,) = [m for m in messages if m.topic == "/active_contacts"]
    assert deserialize_message(touching.data, ActiveContacts).names == list(FEET[:2])
    assert last_state(path) == expected
    last = [m for m in messages if m.topic == "/joint_states"][-1]
    assert stamp <= last.sent <= last.time < seen


def test_each_topic_with_what_its_publishers_offer_and_all_of_it_though_killed(
    graph: Graph, tmp_path: Path
) -> None:
    path = tmp_path / "run.mcap"
    offers = {
        "/two/active_contacts": QoSProfile(depth=10),
        "/map_static": LATCHED,
        "/lossy": QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT),
    }
    publishers = {t: graph.peer.create_publisher(String, t, qos) for t, qos in offers.items()}
    publishers["/map_static"].publish(String(data="before"))
    with record(path):
        for topic in offers:
            graph.until(lambda topic=topic: graph.peer.count_subscribers(topic), "recorder")

        def all_there() -> bool:
            for topic in ("/two/active_contacts", "/lossy"):
                publishers[topic].publish(String(data=4000 * "x"))
            graph.executor.spin_once(timeout_sec=0.02)
            recording = Recording(path)
            return {m.topic for m in recording.messages()} >= offers.keys()

        graph.until(lambda: path.exists() and path.stat().st_size > 8, "file")
        graph.until(all_there, "messages in the file that is being written")
    recording = Recording(path)
    found = [m for m in recording.messages() if m.topic == "/map_static"]
    assert [deserialize_message(m.data, String).data for m in found] == ["before"]
    (damage,) = recording.damage
    assert "ends" in damage


def test_publishers_that_offer_less_later_and_topics_without_a_definition(
    graph: Graph, tmp_path: Path
) -> None:
    path = tmp_path / "run.mcap"
    first = graph.peer.create_publisher(String, "/said", LATCHED)
    strange = graph.peer.create_publisher(GetParameters_Event, "/strange", 10)
    with record(path, "--json") as recorder:
        graph.until(lambda: first.get_subscription_count() == 1, "recorder")
        graph.peer.destroy_publisher(first)
        quick = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
        second = graph.peer.create_publisher(String, "/said", quick)
        graph.until(lambda: second.get_subscription_count() == 1, "recorder that asks for less")

        def recorded() -> bool:
            second.publish(String(data=4000 * "x"))
            graph.executor.spin_once(timeout_sec=0.02)
            return any(m.topic == "/said" for m in Recording(path).messages())

        graph.until(recorded, "messages of the second publisher")
        assert recorder.stop() == 0
        said = json.loads(recorder.output)
    assert not strange.get_subscription_count()
    assert said["unknown"]["/strange"] == "rcl_interfaces/srv/GetParameters_Event"
    assert said["counts"]["/said"] > 0


@pytest.mark.parametrize("name", ["harm/msg/Foo", "harm/msg/..", "../msg/A", "harm/sub/Foo", "x"])
def test_only_packages_of_messages_are_imported(tmp_path: Path, monkeypatch, name: str) -> None:
    """Names of types come from whoever publishes, and any package may be called so."""
    harm = tmp_path / "harm"
    harm.mkdir()
    code = f"from pathlib import Path\nPath({str(tmp_path / 'done')!r}).touch()\nFoo = object\n"
    for file in ("__init__", "msg", "sub"):
        (harm / f"{file}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises((DelassusError, ValueError)):
        recorder._kind(name)
    assert not (tmp_path / "done").exists() and "harm" not in sys.modules
    assert recorder._kind("std_msgs/msg/String") is String


def test_a_disk_that_is_full_takes_nothing_of_what_came(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "run.mcap"
    publisher = graph.peer.create_publisher(String, "/noise", 10)
    # Without -B, Python would write a part of a module's bytecode beside the module.
    record = f"{sys.executable} -B -m delassus_ros.verbs.main record -o {path}"
    command = f"ulimit -f 200; exec {record}"
    random = np.random.default_rng(0)
    with Program("bash", "-c", command) as recorder:

        def ended() -> bool:
            publisher.publish(String(data=random.bytes(3000).hex()))
            graph.executor.spin_once(timeout_sec=0.01)
            return recorder.fault() is not None

        graph.until(ended, "end of the recorder")
        assert recorder.wait() == 2
        words = "cannot be written on: File too large; what has come before is in it"
        assert f"{path} {words}" in recorder.output
    assert len(list(Recording(path).messages())) > 20


def test_what_cannot_be_recorded_is_refused(capfd, tmp_path: Path) -> None:
    assert main(["record", "-o", str(tmp_path / "run.bag")]) == 2
    assert "run.bag: expected a name that ends in .mcap" in capfd.readouterr().err
    assert main(["record", "-o", "/proc/run.mcap"]) == 2
    assert "/proc/run.mcap cannot be written: " in capfd.readouterr().err
    there = tmp_path / "there.mcap"
    there.write_text("notes")
    assert main(["record", "-o", str(there)]) == 2
    assert "is there already, and recordings replace nothing" in capfd.readouterr().err
    assert there.read_text() == "notes"
    assert main(["record", "-o", str(tmp_path / "no" / "run.mcap")]) == 2
    assert "there is no folder" in capfd.readouterr().err
    assert main(["record", "-o", str(tmp_path / "run.mcap"), "--topics", "("]) == 2
    assert "--topics '(' is no regular expression" in capfd.readouterr().err
