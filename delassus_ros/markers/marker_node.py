"""``delassus_markers``: matrices as RViz and Foxglove show them, on the robot that moves."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from delassus_msgs.msg import DelassusMatrix
from delassus_msgs_py import ReceivedMatrix
from geometry_msgs.msg import Point
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.node import Node
from sensor_msgs.msg import Image
from visualization_msgs.msg import Marker, MarkerArray

from delassus.drawing.ellipsoids import Lengths
from delassus.drawing.force_cones import PlacedForce, cone_surface
from delassus.drawing.heat_map import heat_map
from delassus.drawing.scene import DrawnRobot, Scene, quaternion_of
from delassus.errors import DelassusError, InputError, unknown
from delassus.model.spatial import Array
from delassus_ros.markers.received import NodeTopics, facts_of, words_of_forces
from delassus_ros.node.parameters import PARAMETERS
from delassus_ros.ros.arrival import write_stamp
from delassus_ros.ros.logs import LoopLog, Throttle
from delassus_ros.ros.parameters import overrides_of
from delassus_ros.ros.program import Program
from delassus_ros.ros.setting import RCLPY_PREFIXES

_HELP = """\
usage: delassus_markers [--ros-args ...]

Draws the matrices of delassus_node for RViz and Foxglove: an ellipsoid of effective mass at each
contact, lines between contacts that move together, and rank and condition in words. Where the
outputs of delassus_node have forces: an arrow per contact force in its friction cone, red where it
is at the boundary of the cone.

subscribes  delassus_node/delassus   delassus_msgs/DelassusMatrix
            delassus_node/dynamics   delassus_msgs/ContactDynamics: contact forces
            delassus_node/layout     delassus_msgs/Layout (latched)
            joint_states             sensor_msgs/JointState
            robot_description        std_msgs/String (latched)
            contact_placements       delassus_msgs/ContactPlacements: of moving contacts
            odometry, imu            nav_msgs/Odometry, sensor_msgs/Imu: of a floating base, with
                                     axes "world"
publishes   ~/markers                visualization_msgs/MarkerArray
            ~/heat_map               sensor_msgs/Image: of the matrix, 5 times per second

parameters  rate     markers per second (default 30)
            scale    length of an ellipsoid's semi-axis per effective mass [m/kg]; 0, the default:
                     the smallest mass of the first matrix is a sixteenth of the robot's size
            longest  longest semi-axis [m]; 0, the default: a sixth of the robot's size
            force    length of an arrow per contact force [m/N]; 0, the default: an arrow of the
                     robot's weight is as long as the robot

example     delassus_markers --ros-args -p scale:=0.05
"""
_PARAMETERS = {
    "rate": (30.0, 1.0, 200.0), "scale": (0.0, 1e-6, 1e3), "longest": (0.0, 1e-3, 1e2),
    "force": (0.0, 1e-9, 1e3),
}  # fmt: skip
"""Per parameter: default (0: derived from the robot), least and largest value."""
_OTHERS = ("contacts.", *RCLPY_PREFIXES)
"""Prefixes of parameters of delassus_node and rclpy, which are ignored."""
_COLOURS = {
    DelassusMatrix.VALIDITY_OK: (0.15, 0.75, 0.35),
    DelassusMatrix.VALIDITY_DEGRADED: (0.95, 0.65, 0.1),
    DelassusMatrix.VALIDITY_INVALID: (0.9, 0.15, 0.15),
}
_CLEAR, _CONE = 0.75, 0.25
"""Opacity of ellipsoids, through which the robot is visible, and of friction cones."""
_SLIDING = (0.9, 0.15, 0.15)
"""Colour of forces at the boundary of their cones."""
_SHAFT = 0.01
"""Diameter of the arrows of forces, as a share of the robot's size."""
_THICKEST, _THINNEST = 0.05, 0.005
"""Line widths for coupling 1 and for faint couplings, as shares of the robot's size."""
_LIFETIME = 1  # s, after which markers that are not repeated disappear
_PICTURE_PERIOD = 0.2  # s
_CELL, _LARGEST_PICTURE = 8, 2048
"""Side of an entry, and largest side of the picture, for which entries become smaller [pixels]."""


class MarkerNode(Node):
    """Draws the latest matrix on the robot in its latest joint positions.

    The node reads messages when a drawing is due and belongs to no executor: messages that
    arrive at 1 kHz in between stay in the middleware. The node offers no parameter services.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__("delassus_markers", start_parameter_services=False, **options)
        logger = self.get_logger()
        self._warn = Throttle(LoopLog(logger).warning)
        for name in overrides_of(self):
            # Parameter files for all nodes also hold parameters of delassus_node.
            if name not in (*_PARAMETERS, *PARAMETERS) and not name.startswith(_OTHERS):
                logger.warning(f"{unknown('parameter', name, _PARAMETERS)}; it is ignored")
        values = {name: self._number(name) for name in _PARAMETERS}
        self.period = 1.0 / values["rate"]
        self._scale, self._longest = values["scale"], values["longest"]
        self._lengths: Lengths | None = None
        self._markers = self.create_publisher(MarkerArray, "~/markers", 10)
        self._pictures = self.create_publisher(Image, "~/heat_map", 10)
        self._topics = NodeTopics(self, self._warn)
        self._drawn: dict[tuple[str, int], Marker] = {}
        self._lengths_of_robot: DrawnRobot | None = None
        self._next_picture = 0.0
        self._force_scale = values["force"]

    def _number(self, name: str) -> float:
        """Declare a parameter and return its value; 1 is a number as 1.0 is."""
        default, low, high = _PARAMETERS[name]
        value = self.declare_parameter(
            name, default, ParameterDescriptor(dynamic_typing=True)
        ).value
        suits = isinstance(value, int | float) and not isinstance(value, bool)
        if not suits or not (low <= value <= high or value == default):
            chosen = "" if default else " or 0"
            raise InputError(
                f"parameter {name!r} is {value!r}; expected {low:g} to {high:g}{chosen}"
            )
        return float(value)

    def draw(self) -> bool:
        """Publish markers of the latest matrix if it is new; return whether this was done.

        Data that cannot be drawn, such as a position that is NaN, is logged.
        """
        try:
            return self._draw()
        except (DelassusError, ValueError) as error:
            self._warn("drawing", f"nothing is drawn: {error}")
            return False

    def _draw(self) -> bool:
        watched = self._watched(self._markers) or self._watched(self._pictures)
        received, drawn_robot = self._topics.latest(watched), self._topics.drawn_robot
        if received is None or drawn_robot is None:
            return False
        if self._watched(self._markers):
            self._markers.publish(MarkerArray(markers=list(self._shown(received, drawn_robot))))
        now = time.monotonic()
        if received.matrix.size and now >= self._next_picture and self._watched(self._pictures):
            self._next_picture = now + _PICTURE_PERIOD
            self._pictures.publish(_picture(received))
        return True

    @staticmethod
    def _watched(publisher: Any) -> bool:
        return bool(publisher.get_subscription_count())

    # Published messages.

    def _shown(self, received: ReceivedMatrix, drawn_robot: DrawnRobot) -> Iterator[Marker]:
        """Yield the markers of a matrix, and deletions of markers that are no longer drawn."""
        self._stamp = received.stamp
        scene = self._topics.scene(received)
        before, self._drawn = self._drawn, {}
        colour = _COLOURS[received.validity]
        lengths = self._lengths_of(scene, drawn_robot)
        for k, contact in enumerate(scene.contacts):
            marker = self._marker(before, "effective mass", k, Marker.SPHERE, (*colour, _CLEAR))
            _place(marker, contact.centre, quaternion_of(contact.directions))
            axes = 2.0 * lengths.semi_axes(contact.mass)
            marker.scale.x, marker.scale.y, marker.scale.z = axes.tolist()
            yield marker
        for number, (ends, share) in enumerate(scene.lines):
            blue = (0.3, 0.5, 0.95, 0.8)
            marker = self._marker(before, "couplings", number, Marker.LINE_LIST, blue)
            marker.points = [Point(x=x, y=y, z=z) for x, y, z in ends.tolist()]
            marker.scale.x = drawn_robot.size * (_THINNEST + (_THICKEST - _THINNEST) * share)
            yield marker
        forces = self._topics.forces(received)
        if forces is not None:
            colour_of_forces = _COLOURS[forces[0].forces_validity]
            yield from self._shown_forces(before, forces[1], colour_of_forces, drawn_robot)
        text = self._marker(before, "state", 0, Marker.TEXT_VIEW_FACING, (*colour, 1.0))
        text.scale.z = 0.05
        text.pose.position.z = 0.5
        text.text = self._words(received, lengths)
        if forces is not None:
            text.text += f"\nforces {words_of_forces(forces[0])}"
        yield text
        for key in before.keys() - self._drawn.keys():
            before[key].action = Marker.DELETE
            yield before[key]

    def _shown_forces(
        self,
        before: dict[tuple[str, int], Marker],
        placed: Sequence[PlacedForce],
        colour: tuple[float, ...],
        drawn_robot: DrawnRobot,
    ) -> Iterator[Marker]:
        """Yield an arrow and a friction cone for each contact that pushes."""
        scale = self._force_scale or drawn_robot.size / drawn_robot.weight
        shaft = _SHAFT * drawn_robot.size
        for k, each in enumerate(placed):
            if not scale * each.parts.normal > 0.0:
                # A contact that does not push has neither an arrow nor a cone.
                continue
            own = _SLIDING if each.parts.slides else colour
            arrow = self._marker(before, "contact forces", k, Marker.ARROW, (*own, 1.0))
            ends = np.array([each.point, each.point + scale * each.force])
            arrow.points = [Point(x=x, y=y, z=z) for x, y, z in ends.tolist()]
            arrow.scale.x, arrow.scale.y, arrow.scale.z = shaft, 2.0 * shaft, 0.0
            yield arrow
            cone = self._marker(before, "friction cones", k, Marker.TRIANGLE_LIST, (*own, _CONE))
            _place(cone, each.point, quaternion_of(each.upright))
            height = scale * each.parts.normal
            cone.scale.x = cone.scale.y = cone.scale.z = height
            cone.points = _cone(each.friction)
            yield cone

    def _lengths_of(self, scene: Scene, drawn_robot: DrawnRobot) -> Lengths:
        """Return the scale of masses of the robot's first matrix, so that drawings compare."""
        if self._lengths is not None and self._lengths_of_robot is drawn_robot:
            return self._lengths
        fitting = Lengths.fitting(drawn_robot.size, [contact.mass for contact in scene.contacts])
        lengths = Lengths(self._scale or fitting.scale, self._longest or fitting.longest)
        self._lengths = lengths if scene.contacts else None
        self._lengths_of_robot = drawn_robot
        return lengths

    @staticmethod
    def _words(received: ReceivedMatrix, lengths: Lengths) -> str:
        """Return the caption of a matrix, and the scale of its lengths."""
        facts = facts_of(received)
        lines = [facts["state"]]
        if received.matrix.size:
            lines.append("rank {rank}, condition {condition}, {algorithm}".format(**facts))
            low, high = 10.0 * lengths.longest, 1e3 * lengths.longest
            scale = 1e3 * lengths.scale
            lines.append(f"semi-axes: 1 kg is {scale:.3g} mm, cut to {low:.3g} to {high:.3g} mm")
        return "\n".join(lines)

    def _marker(
        self, before: dict[tuple[str, int], Marker], group: str, number: int, kind: int,
        colour: tuple[float, ...],
    ) -> Marker:  # fmt: skip
        """Return the marker of a name that is drawn now; used again from one time to the next."""
        marker = before.get((group, number))
        if marker is None:
            marker = Marker(ns=group, id=number, type=kind)
            marker.pose.orientation.w = 1.0
            marker.lifetime.sec = _LIFETIME
        self._drawn[group, number] = marker
        marker.action = Marker.ADD
        marker.header.frame_id = self._topics.root
        write_stamp(marker.header.stamp, self._stamp)
        c = marker.color
        c.r, c.g, c.b, c.a = colour
        return marker


@lru_cache(maxsize=64)
def _cone(friction: float) -> list[Point]:
    """Return the corners of the triangles of a cone of height 1 m."""
    vertices, faces = cone_surface(1.0, friction)
    return [Point(x=x, y=y, z=z) for x, y, z in vertices[faces.ravel()].tolist()]


def _place(marker: Marker, position: Array, quaternion: Array) -> None:
    p, o = marker.pose.position, marker.pose.orientation
    p.x, p.y, p.z = position.tolist()
    o.x, o.y, o.z, o.w = quaternion.tolist()


def _picture(received: ReceivedMatrix) -> Image:
    cell = max(1, min(_CELL, _LARGEST_PICTURE // len(received.matrix)))
    pixels = heat_map(np.array(received.matrix), received.row_offsets, cell)
    height, width, _ = pixels.shape
    image = Image(height=height, width=width, encoding="rgb8", step=3 * width)
    # An array, as rclpy checks the elements of bytes one by one.
    image.data = array("B", pixels.tobytes())
    write_stamp(image.header.stamp, received.stamp)
    return image


def draw_until(node: MarkerNode, stopping: Callable[[], bool]) -> int:
    """Draw at the node's rate until it is time to stop; return the exit status."""
    due = time.monotonic()
    while not stopping():
        node.draw()
        now = time.monotonic()
        # Missed instants are skipped.
        due = max(due + node.period, now)
        time.sleep(due - now)
    return 0


main = Program("delassus_markers", MarkerNode, draw_until, _HELP)

if __name__ == "__main__":
    main.end_process()
