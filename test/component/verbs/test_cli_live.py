"""`delassus watch` and `delassus contacts` beside a running node; `ros2 delassus`."""

from __future__ import annotations

import argparse
import array
import copy
import json
import re
import time
from collections.abc import Callable

import numpy as np
import pytest
import robots
from delassus_msgs.msg import ContactDynamics, DelassusMatrix
from delassus_msgs_py import ReceivedDynamics, ReceivedMatrix, contact_block
from node_support import start_node
from processes import Program, python
from ros_support import Graph, graph_of_programs

from delassus import Robot
from delassus_ros.monitor.latency import MessageRate
from delassus_ros.node.delassus_node import DelassusNode
from delassus_ros.verbs.live import _Strange, _view, contact_forces_of
from delassus_ros.verbs.main import main
from delassus_ros.verbs.ros2 import DelassusCommand

FEET = ("LF", "RF", "LH", "RH")


make_graph = pytest.fixture(name="graph")(graph_of_programs)


def command(*argv: str) -> Program:
    """Run a command beside what the test does."""
    return python("-m", "delassus_ros.verbs.main", *argv, apart=True)


def watched(
    graph: Graph, step: Callable[[], object], enough: Callable[[str, str], object], *argv: str
) -> tuple[int, str, str]:
    """Return status, output and errors of watch, during which a step is repeated.

    On a busy machine messages reach the command late: it is run for longer until they are enough.
    """
    for seconds in ("3", "30", "300"):
        with command("watch", "--seconds", seconds, *argv) as watch:

            def has_ended(watch: Program = watch) -> bool:
                step()
                return watch.fault() is not None

            graph.until(has_ended, "end of watch")
            status, out, error = watch.wait(), watch.output, watch.errors
        if enough(out, error):
            break
    return status, out, error


@pytest.fixture(name="node")
def make_node(graph: Graph) -> DelassusNode:
    return start_node(graph, robots.unlimited())


def test_contacts_by_hand_make_a_matrix_and_watch_shows_it(graph, node, capfd) -> None:
    robot = Robot.from_urdf(robots.unlimited())
    q = np.random.default_rng(2).uniform(-0.5, 0.5, robot.nq).tolist()
    with command("contacts", "LF", "RH", "--json") as by_hand:

        def has_matrix() -> bool:
            graph.move(robot.joint_names, q)
            return any(list(m.contacts) == ["LF", "RH"] for m in graph.matrices)

        graph.until(has_matrix, "matrix of these contacts")
        status, out, error = watched(
            graph, lambda: graph.move(robot.joint_names, q), lambda out, _: out, "--json"
        )
        assert (status, error) == (0, "")
        shown = json.loads(out)
        assert (by_hand.stop(), by_hand.errors) == (0, "")
        said = json.loads(by_hand.output)
    assert said["names"] == ["LF", "RH"] and said["sent"] > 2 and said["readers"] == 1
    assert said["unknown"] == []
    assert shown["algorithm"] == "pv_osimr" and shown["matrices"] > 0
    good = [m for m in graph.matrices if list(m.contacts) == ["LF", "RH"]]
    masses = 1.0 / np.linalg.eigvalsh(contact_block(good[-1], "LF"))[::-1]
    np.testing.assert_allclose(shown["masses"]["LF"], masses, rtol=1e-9)


@pytest.mark.parametrize("after", [True, False])
def test_watch_goes_on_after_messages_that_cannot_be_read(graph, node, after: bool) -> None:
    """With others it shows these, and says how many are not read; alone it names the first."""
    robot = Robot.from_urdf(robots.quadruped())
    graph.touch(["LF"])

    def matrices_of_a_foot() -> list[DelassusMatrix]:
        graph.move(robot.joint_names, robot.neutral().tolist())
        return [m for m in graph.matrices if list(m.contacts) == ["LF"] and m.validity == 2]

    good = graph.until(matrices_of_a_foot, "matrix")[-1]
    odd = graph.peer.create_publisher(DelassusMatrix, "odd/delassus", 10)
    wrong = [copy.deepcopy(good) for _ in range(3)]
    wrong[0].validity = 77
    wrong[1].row_offsets = [0, 4]
    wrong[2].matrix = array.array("d", [np.nan] * 9)
    beside = graph.peer.create_publisher(ContactDynamics, "odd/dynamics", 10)
    forces = ContactDynamics(
        validity=2, contacts=["LF"], row_offsets=[0, 3], forces=[0.3, 0.4, 2.0],
        friction=[0.5], normals=[0.0, 0.0, 1.0], forces_residual=1e-11, forces_validity=2,
        forces_status=ContactDynamics.FORCES_SOLVED, forces_law=ContactDynamics.LAW_COULOMB,
    )  # fmt: skip

    def publish() -> None:
        # Discovery may lose messages: alone, each message that can be the first is the same one.
        for message in wrong if after else wrong[:1]:
            odd.publish(message)
        beside.publish(forces)

    def enough(out: str, error: str) -> bool:
        found = json.loads(out or "{}")
        shown = found.get("unreadable", 0) >= 2 and "forces" in found
        return shown if after else "not read" in error

    status, out, error = watched(graph, publish, enough, "--node", "odd", "--json")
    assert "Traceback" not in error
    if not after:
        first = "first: DelassusMatrix has the validity 77; expected INVALID=0"
        assert status == 2 and f"messages are not read; {first}" in error
        return
    found = json.loads(out)
    assert status == 1 and found["unreadable"] >= 2 and found["matrices"] >= 1
    assert found["masses"] == {"LF": [None, None, None]} and found["validity"] == "OK"
    assert found["forces"] == {
        "validity": "OK", "status": "SOLVED", "law": "coulomb", "residual": 1e-11,
        "contacts": {"LF": {"normal": 2.0, "sideways": 0.5, "share": 0.5}},
    }  # fmt: skip


def test_first_unreadable_message_named() -> None:
    strange = _Strange("/delassus")
    for words in ("no validity", "no rows", "no rows"):
        strange.add(words)
    assert strange.count == 3
    assert strange.words == ["/delassus: 3 messages are not read; first: no validity"]


def test_forces_are_shown_with_their_share_of_the_cone() -> None:
    received = ReceivedDynamics(
        0, "", "", 1, 2, 0, ("LF", "RF", "LH"), (0, 3, 6, 9), 0, (),
        forces=np.array([0.3, 0.4, 2.0, 0.0, 0.0, 0.0, 1.0, 0.0, -2.0]),
        friction=np.array([0.5, 0.5, 0.5]),
        normals=np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]),
        forces_residual=2e-7, forces_validity=1, forces_status=2, forces_law=2,
    )  # fmt: skip
    matrix = ReceivedMatrix.of(DelassusMatrix())
    pace = MessageRate()
    pace.update(0.0, 0)
    lines = _view(matrix, pace, "topic", received).splitlines()
    at = lines.index("forces DEGRADED: INACCURATE, residual 2e-07, law convex")
    rows = [line.split() for line in lines[at + 2 : at + 5]]
    assert rows == [
        ["LF", "2", "0.5", "50"], ["RF", "0", "0", "-"], ["LH", "2", "1", "100"],
    ]  # fmt: skip
    received.forces = None
    assert contact_forces_of(received) == {}


def test_watch_reports_absent_messages(graph, capfd) -> None:
    assert main(["watch", "--seconds", "0.3", "--node", "nobody"]) == 2
    said = capfd.readouterr().err
    assert "nothing came on /nobody/delassus, whose publishers are 0; is the node active" in said


def test_watch_reports_duration_of_silence(graph, node, capfd) -> None:
    robot = Robot.from_urdf(robots.unlimited())
    graph.touch(["LF"])
    last = graph.ask(robot.joint_names, robot.neutral().tolist())
    gone = graph.peer.create_publisher(DelassusMatrix, "gone/delassus", 10)
    # Three times the pause before the last one is a silence; machines make pauses of their own.
    sent: list[float] = []

    def die() -> None:
        """Publish for a second after the command has subscribed, and no more."""
        if not gone.get_subscription_count():
            sent.clear()
        elif not sent or time.monotonic() < sent[0] + 1.0:
            sent.append(time.monotonic())
            gone.publish(last)

    _, out, _ = watched(graph, die, lambda out, _: "SILENT" in out, "--node", "gone")
    head = out.splitlines()[0]
    validity = {DelassusMatrix.VALIDITY_OK: "OK", DelassusMatrix.VALIDITY_INVALID: "INVALID"}
    assert re.match(r"/gone/delassus: SILENT for \d+\.\d s \(the last one was ", head), head
    assert validity[last.validity] in head and "per second" not in head


def test_contacts_that_the_node_has_not_are_named(graph, node) -> None:
    graph.until(lambda: graph.layouts, "layout")
    with command("contacts", "LF_FOOT", "RH", "--json") as by_hand:
        by_hand.wait_for("layout: unknown contact 'LF_FOOT'; contacts: LF, RF")
        assert by_hand.stop() == 1
        assert json.loads(by_hand.output)["unknown"] == ["LF_FOOT"]
        assert by_hand.errors.count("\n") == 1


@pytest.mark.parametrize("verb", [("contacts", "LF"), ("watch",)])
@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "1_0", "soon"])
def test_seconds_that_cannot_be(capfd, verb: tuple[str, ...], seconds: str) -> None:
    with pytest.raises(SystemExit):
        main([*verb, "--seconds", seconds])
    assert f"--seconds: '{seconds}' is not a positive number of seconds" in capfd.readouterr().err


@pytest.mark.parametrize(
    "argv",
    [("contacts", "LF", "--topic", ""), ("contacts", "LF", "--node", "a b"),
     ("watch", "--node", "*")],
)  # fmt: skip
def test_names_that_ros_refuses(capfd, argv: tuple[str, ...]) -> None:
    assert main([*argv, "--seconds", "0.1"]) == 2
    assert capfd.readouterr().err.startswith("Invalid topic name: topic name must not ")


def test_a_rate_that_cannot_be(capfd) -> None:
    assert main(["contacts", "LF", "--rate", "0"]) == 2
    assert "--rate is 0; expected 0.1 to 1000" in capfd.readouterr().err


def test_as_an_extension_of_ros2_it_passes_all_words_on(capfd) -> None:
    extension, parser = DelassusCommand(), argparse.ArgumentParser()
    extension.add_arguments(parser, "ros2 delassus")
    words = ["compute", str(robots.quadruped()), "--contact", "LF_FOOT", "--axes", "contact"]
    status = extension.main(parser=parser, args=parser.parse_args(words))
    assert status == 0 and "3 rows in contact axes: LF_FOOT" in capfd.readouterr().out
