"""Markers read back: axes of ellipsoids are eigenvectors, places those of the contacts."""

from __future__ import annotations

import array
import copy
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
import robots
from builtin_interfaces.msg import Time
from delassus_msgs.msg import ContactDynamics, ContactPlacements, DelassusMatrix
from delassus_msgs_py import matrix_to_numpy
from geometry_msgs.msg import Pose
from hanging import HANG_S
from nav_msgs.msg import Odometry
from ros_support import LATCHED, Graph, overrides
from sensor_msgs.msg import Image
from std_msgs.msg import Header, String
from visualization_msgs.msg import Marker, MarkerArray

from delassus import Robot
from delassus.drawing.scene import DrawnRobot
from delassus.drawing.skeleton import Skeleton
from delassus.errors import InputError
from delassus.model.spatial import rotation_from_quaternion
from delassus_ros.markers import received
from delassus_ros.markers.marker_node import MarkerNode
from delassus_ros.node.delassus_node import DelassusNode

SOLES = {"LF": "surface", "RF": "point", "LH": "point"}
TURN = np.array([0.1, -0.5, 0.3, 0.8]) / np.linalg.norm([0.1, -0.5, 0.3, 0.8])
OK, DEGRADED = DelassusMatrix.VALIDITY_OK, DelassusMatrix.VALIDITY_DEGRADED
INVALID = DelassusMatrix.VALIDITY_INVALID
GREEN, AMBER, RED = (0.15, 0.75, 0.35), (0.95, 0.65, 0.1), (0.9, 0.15, 0.15)


class Drawn:
    """A node of the quadruped, the markers of its matrices, and what came of them."""

    def __init__(
        self, graph: Graph, remap: Sequence[str] = (), drawn: dict[str, Any] | None = None,
        **parameters: Any,
    ) -> None:  # fmt: skip
        self.graph = graph
        self.urdf = robots.unlimited()
        self.robot = Robot.from_urdf(self.urdf)
        self.q = np.random.default_rng(3).uniform(-0.6, 0.6, self.robot.nq)
        self.stamped = True
        self.arrays: list[MarkerArray] = []
        self.images: list[Image] = []
        peer = graph.peer
        peer.create_subscription(MarkerArray, "delassus_markers/markers", self.arrays.append, 10)
        peer.create_subscription(Image, "delassus_markers/heat_map", self.images.append, 10)
        self.odometry = peer.create_publisher(Odometry, "odometry", 10)
        self.matrices = peer.create_publisher(DelassusMatrix, "delassus_node/delassus", 10)
        self.dynamics = peer.create_publisher(ContactDynamics, "delassus_node/dynamics", 10)
        values: dict[str, Any] = {
            "autostart": True, "contacts.names": list(SOLES), "input_timeout": 0.0,
            "contacts_timeout": 0.0, "realtime.hold_garbage": False, "orientation.timeout": 0.0,
            **parameters,
        }  # fmt: skip
        for name, kind in SOLES.items():
            values[f"contacts.{name}.frame"] = f"{name}_FOOT"
            values[f"contacts.{name}.kind"] = kind
        # By topic, as the markers have it from there.
        peer.create_publisher(String, "robot_description", LATCHED).publish(String(data=self.urdf))
        node = DelassusNode(context=graph.context, parameter_overrides=overrides(values))
        graph.add(node)
        node.start()
        self.markers = MarkerNode(
            context=graph.context,
            cli_args=["--ros-args", *remap],
            parameter_overrides=overrides(
                {"scale": 0.05, "longest": 0.4} if drawn is None else drawn
            ),
        )
        graph.nodes.append(self.markers)

    def until(self, condition: Any, what: str) -> Any:
        """Move the robot and draw until markers fulfil a condition; return them and the matrix."""

        def found() -> Any:
            self.turn()
            self.graph.move(self.robot.joint_names, self.q.tolist())
            self.graph.executor.spin_once(timeout_sec=0.02)
            self.markers.draw()
            self.graph.executor.spin_once(timeout_sec=0.02)
            return self.arrays and self.graph.matrices and condition(self.arrays[-1].markers)

        self.graph.until(found, what)
        return self.arrays[-1].markers

    def beside(
        self, make: Callable[[DelassusMatrix], ContactDynamics], condition: Any, what: str
    ) -> Any:
        """Draw the latest matrix beside forces until markers fulfil a condition; return them.

        The peer publishes both again and again while the robot stands still: forces are drawn
        with a matrix whose stamp is theirs or nearly theirs, however long a drawing takes.
        """
        matrix = self.graph.matrices[-1]

        def found() -> Any:
            self.turn()
            self.matrices.publish(matrix)
            self.dynamics.publish(make(matrix))
            self.graph.executor.spin_once(timeout_sec=0.02)
            self.markers.draw()
            self.graph.executor.spin_once(timeout_sec=0.02)
            return condition(self.arrays[-1].markers)

        self.graph.until(found, what)
        return self.arrays[-1].markers

    def turn(self) -> None:
        message = Odometry(child_frame_id="base")
        message.header.frame_id = "odom"
        if self.stamped:
            message.header.stamp = self.graph.peer.get_clock().now().to_msg()
        o = message.pose.pose.orientation
        o.x, o.y, o.z, o.w = TURN.tolist()
        self.odometry.publish(message)


@pytest.fixture(name="graph")
def make_graph(capfd: pytest.CaptureFixture[str], monkeypatch):
    monkeypatch.setenv("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
    # The markers' 0.1 s may pass between an orientation and the drawing on a busy machine.
    patient = partial(received.OrientationInput, timeout=HANG_S)
    monkeypatch.setattr(received, "OrientationInput", patient)
    with Graph(capfd) as graph:
        yield graph


def of(markers: list[Marker], group: str) -> list[Marker]:
    return [m for m in markers if m.ns == group and m.action == Marker.ADD]


def colour(marker: Marker) -> tuple[float, float, float]:
    return tuple(round(value, 5) for value in (marker.color.r, marker.color.g, marker.color.b))


def axes_of(marker: Marker) -> np.ndarray:
    o = marker.pose.orientation
    return rotation_from_quaternion([o.x, o.y, o.z, o.w])


def test_contacts_of_several_frames_are_beside_those_with_ellipsoids(graph: Graph) -> None:
    """A mass in three directions belongs to points and surfaces; other rows have no ellipsoid."""
    of_several = {
        "contacts.names": [*SOLES, "grip", "middle", "com"],
        "contacts.grip.kind": "relative",
        "contacts.grip.frame": "LF_FOOT",
        "contacts.grip.second_frame": "RH_FOOT",
        "contacts.middle.kind": "weighted_sum",
        "contacts.middle.frames": ["LF_FOOT", "RF_FOOT"],
        "contacts.middle.weights": [0.5, 0.5],
        "contacts.com.kind": "center_of_mass",
    }
    drawn = Drawn(graph, **of_several)
    graph.touch(["com", "grip", "LF", "middle", "RF"])
    markers = drawn.until(lambda m: len(of(m, "effective mass")) == 2, "two ellipsoids")
    assert tuple(graph.matrices[-1].contacts) == ("LF", "RF", "grip", "middle", "com")
    poses = Skeleton(drawn.robot).poses(drawn.q)
    for marker, foot in zip(of(markers, "effective mass"), ("LF", "RF"), strict=True):
        place = marker.pose.position
        pose = Skeleton(drawn.robot).frame(poses, f"{foot}_FOOT")
        np.testing.assert_allclose([place.x, place.y, place.z], pose[:3, 3], atol=1e-9)


@pytest.mark.parametrize("axes", ["contact", "world"])
def test_ellipsoids_are_the_contacts_blocks_where_these_are(graph: Graph, axes: str) -> None:
    drawn = Drawn(graph, axes=axes)
    graph.touch(["LF", "RF", "LH"])
    markers = drawn.until(lambda m: len(of(m, "effective mass")) == 3, "three ellipsoids")
    G = matrix_to_numpy(graph.matrices[-1])
    offsets = graph.matrices[-1].row_offsets
    skeleton = Skeleton(drawn.robot)
    poses = skeleton.poses(drawn.q)
    for marker, foot, first in zip(of(markers, "effective mass"), SOLES, offsets, strict=False):
        pose = skeleton.frame(poses, f"{foot}_FOOT")
        place = marker.pose.position
        np.testing.assert_allclose([place.x, place.y, place.z], pose[:3, 3], atol=1e-9)
        assert marker.header.frame_id == "base" and colour(marker) == GREEN
        block = G[first : first + 3, first : first + 3]
        # The block along the axes of the root link.
        turn = pose[:3, :3] if axes == "contact" else rotation_from_quaternion(TURN).T
        inverse = turn @ block @ turn.T
        for k, length in enumerate((marker.scale.x, marker.scale.y, marker.scale.z)):
            direction = axes_of(marker)[:, k]
            moved = inverse @ direction
            mass = 1.0 / np.linalg.norm(moved)
            np.testing.assert_allclose(moved, direction / mass, atol=1e-6 / mass)
            assert length == pytest.approx(2.0 * np.clip(0.05 * mass, 0.004, 0.4), rel=1e-6)


def _beside(matrix: DelassusMatrix, forces: np.ndarray, **fields: Any) -> ContactDynamics:
    """Return a message with forces beside a matrix of contacts LF (a surface) and RF."""
    message = ContactDynamics(
        header=matrix.header, layout_id=matrix.layout_id, sequence=matrix.sequence,
        validity=OK, contacts=["LF", "RF"], row_offsets=[0, 6, 9], axes=matrix.axes,
        forces=forces, friction=[0.5, 0.8], normals=[0.0, 0.0, 1.0, 0.0, -0.6, 0.8],
        forces_residual=1e-11, forces_validity=OK, forces_status=ContactDynamics.FORCES_SOLVED,
        forces_law=ContactDynamics.LAW_COULOMB,
    )  # fmt: skip
    for name, value in fields.items():
        setattr(message, name, value)
    return message


@pytest.mark.parametrize("axes", ["contact", "world"])
def test_forces_are_arrows_in_their_cones(graph: Graph, axes: str) -> None:
    drawn = Drawn(graph, axes=axes, drawn={"force": 0.01})
    graph.touch(["LF", "RF"])
    drawn.until(lambda m: len(of(m, "effective mass")) == 2, "ellipsoids")
    # The first force is inside its cone, the second one, along its normal and x, at the boundary.
    normal = np.array([0.0, -0.6, 0.8])
    forces = np.concatenate([[3.0, 4.0, 20.0, -1.0, 0.5, 0.1], 10.0 * normal + [8.0, 0.0, 0.0]])

    def has(marked: Any, **fields: Any) -> Any:
        return drawn.beside(
            lambda matrix: _beside(matrix, forces, **fields), marked, "markers of forces"
        )

    markers = has(lambda m: len(of(m, "contact forces")) == 2)
    arrows, cones = of(markers, "contact forces"), of(markers, "friction cones")
    assert [m.type for m in arrows] == [Marker.ARROW] * 2
    assert [m.type for m in cones] == [Marker.TRIANGLE_LIST] * 2
    assert [colour(m) for m in arrows] == [colour(m) for m in cones] == [GREEN, RED]
    assert all(m.color.a == 1.0 for m in arrows) and all(0.0 < m.color.a < 0.5 for m in cones)
    skeleton = Skeleton(drawn.robot)
    poses = skeleton.poses(drawn.q)
    # The centre of pressure of the surface.
    offsets = np.array([[-0.5 / 20.0, -1.0 / 20.0, 0.0], [0.0, 0.0, 0.0]])
    along = [np.array([0.0, 0.0, 1.0]), normal]
    for k, (foot, mu, pushes) in enumerate((("LF", 0.5, 20.0), ("RF", 0.8, 10.0))):
        pose = skeleton.frame(poses, f"{foot}_FOOT")
        turn = pose[:3, :3] if axes == "contact" else rotation_from_quaternion(TURN).T
        begin, end = (np.array([p.x, p.y, p.z]) for p in arrows[k].points)
        first = (0, 6)[k]
        np.testing.assert_allclose(begin, pose[:3, 3] + turn @ offsets[k], atol=1e-9)
        np.testing.assert_allclose(end - begin, 0.01 * turn @ forces[first : first + 3], atol=1e-9)
        cone = cones[k]
        place = cone.pose.position
        np.testing.assert_allclose([place.x, place.y, place.z], begin, atol=1e-9)
        np.testing.assert_allclose(axes_of(cone)[:, 2], turn @ along[k], atol=1e-9)
        corners = np.array([[p.x, p.y, p.z] for p in cone.points])
        corners *= [cone.scale.x, cone.scale.y, cone.scale.z]
        assert len(corners) % 3 == 0 and cone.header.frame_id == "base"
        rim = corners[corners[:, 2] > 0.0]
        np.testing.assert_allclose(rim[:, 2], 0.01 * pushes)
        np.testing.assert_allclose(np.hypot(rim[:, 0], rim[:, 1]), mu * 0.01 * pushes)
    words = of(markers, "state")[0].text.splitlines()[-1]
    assert words == "forces OK: SOLVED, residual 1e-11, law coulomb"
    # A contact that lets go loses its arrow and its cone.
    forces[6:] = 0.0
    markers = has(lambda m: len(of(m, "contact forces")) == 1)
    assert len(of(markers, "friction cones")) == 1
    doubtful = {"validity": DEGRADED, "forces_validity": DEGRADED}
    status = ContactDynamics.FORCES_INACCURATE
    markers = has(
        lambda m: "INACCURATE" in of(m, "state")[0].text, forces_status=status, **doubtful
    )
    assert colour(of(markers, "contact forces")[0]) == AMBER
    # INVALID forces are words alone.
    forces[:] = np.nan
    failed = {"forces_status": ContactDynamics.FORCES_INFEASIBLE, "forces_validity": INVALID}
    markers = has(lambda m: "forces INVALID: INFEASIBLE" in of(m, "state")[0].text, **failed)
    assert not of(markers, "contact forces") and not of(markers, "friction cones")
    assert len(of(markers, "effective mass")) == 2


def test_forces_of_another_time_or_robot_are_not_drawn(graph: Graph) -> None:
    drawn = Drawn(graph)
    graph.touch(["LF", "RF"])
    drawn.until(lambda m: len(of(m, "effective mass")) == 2, "ellipsoids")
    forces = np.array([0.0, 0.0, 20.0, 0.0, 0.0, 0.0, 0.0, 0.0, 20.0])
    drawn.beside(lambda m: _beside(m, forces), lambda m: of(m, "contact forces"), "arrows")
    for fields in ({"layout_id": "another"}, {"header": Header(stamp=Time(sec=1))}):
        drawn.beside(
            lambda m, f=fields: _beside(m, forces, **f),
            lambda m: not of(m, "contact forces"),
            "no arrows",
        )
        assert "forces" not in of(drawn.arrays[-1].markers, "state")[0].text


def test_what_is_degraded_is_amber(graph: Graph) -> None:
    drawn = Drawn(graph, axes="world")
    drawn.stamped = False
    graph.touch(["LF"])
    markers = drawn.until(lambda m: of(m, "effective mass"), "an ellipsoid")
    assert colour(of(markers, "effective mass")[0]) == colour(of(markers, "state")[0]) == AMBER
    assert of(markers, "state")[0].text.startswith("DEGRADED: STAMP_INVALID\nrank 6 of 6, ")


def test_lines_words_and_what_disappears(graph: Graph) -> None:
    drawn = Drawn(graph)
    graph.touch(["LF", "RF", "LH"])
    markers = drawn.until(lambda m: len(of(m, "couplings")) == 3, "three lines")
    centres = {
        m.id: (m.pose.position.x, m.pose.position.y, m.pose.position.z)
        for m in of(markers, "effective mass")
    }
    size = DrawnRobot(drawn.robot, {}).size
    for line in of(markers, "couplings"):
        start, end = ((p.x, p.y, p.z) for p in line.points)
        assert {start, end} <= set(centres.values()) and start != end
        # Whom it moves is not said: it is symmetric.
        assert line.type == Marker.LINE_LIST
        assert 0.005 * size < line.scale.x <= 0.05 * size
    (text,) = of(markers, "state")
    message = graph.matrices[-1]
    assert text.text.splitlines()[0].startswith("OK") and colour(text) == GREEN
    assert f"rank {message.rank} of 12, condition {message.condition:.4g}, pv_osimr" in text.text
    assert "semi-axes: 1 kg is 50 mm, cut to 4 to 400 mm" in text.text
    # One contact less: its ellipsoid and lines are deleted, once.
    before = len(drawn.arrays)
    graph.touch(["LF", "RF"])
    drawn.until(lambda m: len(of(m, "effective mass")) == 2, "two ellipsoids")
    later = [m for array in drawn.arrays[before:] for m in array.markers]
    gone = [(m.ns, m.id) for m in later if m.action == Marker.DELETE]
    assert sorted(gone) == [("couplings", 1), ("couplings", 2), ("effective mass", 2)]


def test_what_is_invalid_is_red_words_alone(graph: Graph) -> None:
    drawn = Drawn(graph)
    graph.touch(["LF", "LF"])
    markers = drawn.until(lambda m: "DUPLICATE_CONTACT" in of(m, "state")[0].text, "red words")
    (text,) = of(markers, "state")
    assert text.text == "INVALID: DUPLICATE_CONTACT" and colour(text) == RED
    assert not of(markers, "effective mass")


def test_a_heat_map_is_an_image_of_the_matrix(graph: Graph) -> None:
    drawn = Drawn(graph)
    graph.touch(["LF", "RF"])
    drawn.until(lambda m: drawn.images and len(of(m, "effective mass")) == 2, "image")
    drawn.images.clear()
    drawn.until(lambda m: drawn.images, "image")
    image = drawn.images[-1]
    assert (image.height, image.width, image.encoding) == (72, 72, "rgb8")
    pixels = np.frombuffer(bytes(image.data), np.uint8).reshape(72, 72, 3)
    assert (pixels[48] == 255).all() and pixels[3, 3].astype(int).sum() > pixels[3, 60].sum()


def test_world_axes_without_an_orientation_draw_words_and_say_why(graph: Graph) -> None:
    drawn = Drawn(graph, remap=["-r", "odometry:=elsewhere"], axes="world")
    graph.touch(["LF"])
    markers = drawn.until(lambda m: of(m, "state")[0].text.startswith("OK"), "words")
    assert not of(markers, "effective mass")
    assert graph.wait_for_log("no orientation of the base has arrived yet: ellipsoids along")


def test_what_cannot_be_drawn_is_said_and_the_next_is_drawn(graph: Graph) -> None:
    drawn = Drawn(graph)
    graph.touch(["LF"])
    drawn.until(lambda m: of(m, "effective mass"), "an ellipsoid")
    place = graph.peer.create_publisher(ContactPlacements, "contact_placements", 10)
    graph.until(lambda: place.get_subscription_count(), "subscription")
    words = "nothing is drawn: translation"
    for x in (np.nan, 0.02):
        message = ContactPlacements(names=["LF"], poses=[Pose()])
        message.poses[0].position.x = x
        message.poses[0].orientation.w = 1.0
        place.publish(message)
        if np.isnan(x):
            drawn.until(lambda m: any(words in line for line in graph.log), "words")
    before = len(drawn.arrays)
    drawn.until(lambda m: len(drawn.arrays) > before, "markers again")
    pose = Skeleton(drawn.robot)
    foot = pose.frame(pose.poses(drawn.q), "LF_FOOT") @ [0.02, 0.0, 0.0, 1.0]

    def moved(markers: list[Marker]) -> bool:
        p = of(markers, "effective mass")[0].pose.position
        return bool(np.allclose([p.x, p.y, p.z], foot[:3], atol=1e-9))

    drawn.until(moved, "an ellipsoid there")


HARMFUL = {
    "validity 77; expected INVALID=0": lambda m: setattr(m, "validity", 77),
    "nothing is drawn: unknown contact 'hand'; contacts: LF, RF, LH": lambda m: setattr(
        m, "contacts", ["hand"]
    ),
    "nothing is drawn: the matrix of a contact has an entry": lambda m: setattr(
        m, "matrix", array.array("d", [np.nan, *m.matrix[1:]])
    ),
    "nothing is drawn: the stamp is 2147483651 s": lambda m: setattr(
        m.header, "stamp", Time(sec=2**31 - 1, nanosec=2**32 - 1)
    ),
    "expected 49": lambda m: setattr(m, "row_offsets", [0, 7]),
}
"""What is done to a matrix, by the words in the log."""


def test_no_message_ends_the_markers(graph: Graph) -> None:
    drawn = Drawn(graph)
    graph.touch(["LF"])
    drawn.until(lambda m: of(m, "effective mass"), "an ellipsoid")
    good = graph.matrices[-1]
    # The node itself says nothing meanwhile, as no joint states come.
    for words, harm in HARMFUL.items():
        wrong = copy.deepcopy(good)
        harm(wrong)

        def said(wrong: DelassusMatrix = wrong, words: str = words) -> bool:
            drawn.markers.draw()
            drawn.matrices.publish(wrong)
            return any(words in line for line in graph.log)

        graph.until(said, words)
    for reasons, algorithm in ((2**64 - 1, "x" * 1000), (2**63, "\x1b[2J\u202e")):
        drawn.matrices.publish(copy_with(good, reasons=reasons, algorithm=algorithm))
        drawn.markers.draw()
    before = len(drawn.arrays)
    drawn.until(lambda m: len(drawn.arrays) > before and of(m, "effective mass"), "an ellipsoid")


def copy_with(message: DelassusMatrix, **fields: Any) -> DelassusMatrix:
    made = copy.deepcopy(message)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_without_a_scale_the_robot_says_it_and_it_stays(graph: Graph) -> None:
    drawn = Drawn(graph, drawn={})
    graph.touch(["LF", "RF"])
    markers = drawn.until(lambda m: len(of(m, "effective mass")) == 2, "two ellipsoids")
    size = DrawnRobot(drawn.robot, {}).size
    axes = np.array([(m.scale.x, m.scale.y, m.scale.z) for m in of(markers, "effective mass")]) / 2
    assert axes.min() == pytest.approx(size / 16, rel=0.06)
    assert axes.max() == pytest.approx(size / 6, rel=0.06)
    (words,) = (m.text.splitlines()[-1] for m in of(markers, "state"))
    drawn.q = 0.2 * drawn.q
    before = len(drawn.arrays)
    markers = drawn.until(lambda m: len(drawn.arrays) > before + 2, "another pose")
    assert of(markers, "state")[0].text.splitlines()[-1] == words


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rate": 0.0}, "parameter 'rate' is 0.0; expected 1 to 200$"),
        ({"scale": -1}, "parameter 'scale' is -1; expected 1e-06 to 1000 or 0$"),
        ({"longest": "1"}, "parameter 'longest' is '1'; expected 0.001 to 100 or 0$"),
        ({"scale": True}, "parameter 'scale' is True; expected 1e-06 to 1000 or 0$"),
    ],
)
def test_parameters_that_cannot_be_are_refused(graph: Graph, values, words: str) -> None:
    with pytest.raises(InputError, match=words):
        MarkerNode(context=graph.context, parameter_overrides=overrides(values))


def test_whole_numbers_are_numbers_and_misspelt_parameters_are_named(graph: Graph) -> None:
    given = {"rate": 50, "scale": 1, "scle": 1.0, "autostart": True, "contacts.LF.frame": "LF"}
    node = MarkerNode(context=graph.context, parameter_overrides=overrides(given))
    graph.nodes.append(node)
    assert node.period == 0.02
    named = graph.wait_for_log("unknown parameter 'scle'; did you mean 'scale'?")
    assert named.endswith("parameters: rate, scale, longest, force; it is ignored")
    assert not any("autostart" in line or "contacts" in line for line in graph.log)
