"""The latest messages of a running node, as scenes on its robot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from delassus_msgs.msg import ContactDynamics, ContactPlacements, DelassusMatrix, Layout
from delassus_msgs_py import (
    DynamicsReader,
    MatrixReader,
    MessageError,
    ReceivedDynamics,
    ReceivedMatrix,
)
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from delassus.drawing.force_cones import PlacedForce
from delassus.drawing.scene import DrawnRobot, Scene
from delassus.drawing.skeleton import completed
from delassus.errors import DelassusError, InputError, RobotError, listed
from delassus.model.reading.mjcf import MJCF
from delassus.model.reading.xml import parse_xml
from delassus.model.robot import Robot
from delassus.model.spatial import Array, Transform, rotation_from_quaternion
from delassus_ros.inputs.findings import Reason, Validity, names_of
from delassus_ros.inputs.orientation import OrientationInput
from delassus_ros.node.forces import LAW_NAMES, STATUS_NAMES
from delassus_ros.ros.queue import pop
from delassus_ros.ros.topics import FEW, LATCHED, LATEST

_APART_NS = 100_000_000
"""Largest difference between the stamps of a matrix and of forces that are drawn with it [ns]."""


class NodeTopics:
    """The topics of a running node, whose messages are read when a drawing is due.

    Messages that arrive at 1 kHz in between stay in the middleware.

    Parameters
    ----------
    warn : called with a kind and a text about what cannot be drawn.
    source : name of the node whose matrices are drawn.

    Attributes
    ----------
    layout : layout of the matrices; None before the first.
    drawn_robot : robot on which matrices are drawn; None before its description and the layout.
    description : its URDF.
    positions : latest positions of joints by name [rad, m].
    """

    def __init__(
        self, node: Node, warn: Callable[[str, str], object], source: str = "delassus_node"
    ) -> None:
        self._node, self._warn = node, warn
        self._sources: dict[str, Subscription] = {}
        for name, kind, qos in (
            ("robot_description", String, LATCHED), ("layout", Layout, LATCHED),
            ("joint_states", JointState, LATEST), ("odometry", Odometry, LATEST),
            ("imu", Imu, LATEST), ("contact_placements", ContactPlacements, FEW),
            ("delassus", DelassusMatrix, LATEST), ("dynamics", ContactDynamics, LATEST),
        ):  # fmt: skip
            of_node = name in ("layout", "delassus", "dynamics")
            topic = f"{source}/{name}" if of_node else name
            raw = kind in (DelassusMatrix, ContactDynamics)
            self._sources[name] = node.create_subscription(kind, topic, _ignore, qos, raw=raw)
        self._reader, self._dynamics_reader = MatrixReader(), DynamicsReader()
        self._dynamics: ReceivedDynamics | None = None
        self._orientation: OrientationInput | None = None
        self.layout: Layout | None = None
        self.drawn_robot: DrawnRobot | None = None
        self.robot: Robot | None = None
        self.root = ""
        self.description = ""
        self.positions: dict[str, float] = {}

    def latest(self, wanted: bool = True) -> ReceivedMatrix | None:
        """Receive all messages; return the latest matrix if it is new and can be drawn.

        The matrix is not parsed unless it is `wanted`.
        """
        self._take_all()
        data = self._taken("delassus")
        if data is None or not wanted:
            return None
        try:
            received = self._reader.read(data)
        except MessageError as error:
            self._warn("matrix", str(error))
            return None
        layout = self.layout
        if layout is None or self.drawn_robot is None or layout.layout_id != received.layout_id:
            self._warn("layout", self.lacking())
            return None
        return received

    def scene(self, received: ReceivedMatrix) -> Scene:
        """Return the scene of a matrix on its robot at the latest joint positions.

        Raises
        ------
        DelassusError
            If an input cannot be drawn, such as a position that is NaN.
        """
        if self.drawn_robot is None or not received.matrix.size:
            return Scene()
        world = None
        if received.axes == DelassusMatrix.AXES_WORLD:
            world = self._world(received.stamp)
            if world is None:
                return Scene()
        scene = self.drawn_robot.scene(
            self.positions, received.contacts, received.row_offsets, received.kinds,
            np.array(received.matrix), world,
        )  # fmt: skip
        if scene.unknown:
            topic = self._sources["joint_states"].topic_name
            names = listed("joint", scene.unknown)
            self._warn("joints", f"{names}: no positions on {topic}; drawn at 0")
        return scene

    def forces(
        self, received: ReceivedMatrix
    ) -> tuple[ReceivedDynamics, list[PlacedForce]] | None:
        """Return the contact forces beside a matrix, on the robot; None without forces.

        The list is empty where the forces are INVALID.

        Raises
        ------
        DelassusError
            If an input cannot be drawn, such as a position that is NaN.
        """
        found = self._dynamics
        if found is None or found.forces is None or self.drawn_robot is None:
            return None
        if found.layout_id != received.layout_id or abs(found.stamp - received.stamp) > _APART_NS:
            return None
        nothing = found, list[PlacedForce]()
        if found.friction is None or found.normals is None or not found.forces_validity:
            return nothing
        world = None
        if found.axes == DelassusMatrix.AXES_WORLD:
            world = self._world(found.stamp)
            if world is None:
                return nothing
        placed = self.drawn_robot.forces(
            self.positions, found.contacts, found.row_offsets, found.forces, found.friction,
            found.normals, world,
        )  # fmt: skip
        return found, placed

    def q(self) -> Array:
        """Return the latest positions (nq,) of the robot's joints; unknown ones are neutral.

        Raises
        ------
        InputError
            If there is no robot yet.
        """
        if self.robot is None:
            raise InputError(self.lacking())
        return completed(self.robot, self.positions)[0]

    def lacking(self) -> str:
        """Return a text about the messages that are missing for a robot."""
        if not self.description:
            topic = self._sources["robot_description"].topic_name
            return f"no robot description has come on {topic}"
        topic = self._sources["layout"].topic_name
        return f"no layout of the matrices that come has come on {topic}"

    def _taken(self, name: str) -> Any:
        """Return the oldest message of a topic since the last call, or None."""
        found = pop(self._sources[name])
        return None if found is None else found[0]

    def _take_all(self) -> None:
        layout, description = self._taken("layout"), self._taken("robot_description")
        self.layout = layout or self.layout
        if description is not None:
            self.description = description.data
        if self.layout is not None and (layout is not None or description is not None):
            self._read_robot(self.layout)
        state = self._taken("joint_states")
        if state is not None and len(state.name) == len(state.position):
            self.positions.update(zip(state.name, state.position, strict=True))
        while (placements := self._taken("contact_placements")) is not None:
            for name, pose in zip(placements.names, placements.poses, strict=False):
                if self.drawn_robot is not None and name in self.drawn_robot.frames:
                    self.drawn_robot.move(name, _transform(pose))
        dynamics = self._taken("dynamics")
        if dynamics is not None:
            try:
                self._dynamics = self._dynamics_reader.read(dynamics)
            except MessageError as error:
                self._warn("dynamics", str(error))
        for name in ("odometry", "imu"):
            message = self._taken(name)
            if message is not None and self._orientation is not None:
                self._orientation.accept(message, self._node.get_clock().now().nanoseconds)

    def _read_robot(self, layout: Layout) -> None:
        if not self.description:
            return
        try:
            robot = self._robot_of(layout)
        except DelassusError as error:
            self._warn("robot", f"the robot cannot be drawn: {error}")
            return
        # A contact of several frames is drawn at its first frame, whose axes its rows have; rows
        # of the whole robot have no frame.
        frames = [
            frame.partition(" ")[0] if kind in ("relative", "weighted_sum") else frame
            for frame, kind in zip(layout.frames, layout.kinds, strict=True)
        ]
        absent = [name for name in frames if name and name not in robot.frames]
        if absent:
            names = listed("frame", absent)
            self._warn("robot", f"the robot description is of another robot: it has no {names}")
            return
        places = zip(layout.contacts, frames, layout.placements, strict=True)
        placed = {name: (frame, _transform(pose)) for name, frame, pose in places if frame}
        self.drawn_robot = DrawnRobot(robot, placed)
        self.robot, self.root = robot, next(iter(robot.frames))
        self.positions.clear()
        self._orientation = OrientationInput(robot) if layout.base == "floating" else None

    def _robot_of(self, layout: Layout) -> Robot:
        """Return the robot; joints that the node locks are locked if they cannot move alone."""
        try:
            return Robot.from_description(self.description, layout.base)
        except RobotError:
            document = parse_xml(self.description.encode())
            if document.tag == MJCF:
                raise
            single = ("revolute", "continuous", "prismatic")
            joints = [each for each in document.iter("joint") if each.get("type") in single]
            names = {joint.get("name", "") for joint in joints} - {*layout.joints}
            return Robot.from_urdf(document, layout.base, lock=dict.fromkeys(names, 0.0))

    def _world(self, stamp: int) -> Array | None:
        """Return the axes of the world in the root link, as columns; None if unknown."""
        source = self._orientation
        if source is None or self.robot is None:
            return np.eye(3)
        quaternion = np.empty(4)
        q, unknown = completed(self.robot, self.positions)
        known = set(source.carrying).isdisjoint(unknown)
        warning = source.fault(self._node.get_clock().now().nanoseconds)
        warning = warning or source.write(stamp, quaternion, q if known else None)
        if warning is not None:
            self._warn("orientation", f"{warning.text}: ellipsoids along the world need it")
            return None
        axes: Array = rotation_from_quaternion(quaternion).T
        return axes


def facts_of(received: ReceivedMatrix) -> dict[str, str]:
    """Return texts about the state of a matrix, its rank and its condition."""
    state = Validity(received.validity).name
    if received.reasons:
        state += f": {names_of(Reason(received.reasons))}"
    facts = {"state": state}
    if received.matrix.size:
        facts["rank"] = f"{received.rank} of {len(received.matrix)}"
        facts["condition"] = "-" if received.condition < 0 else f"{received.condition:.4g}"
        facts["algorithm"] = received.algorithm
    return facts


def words_of_forces(received: ReceivedDynamics) -> str:
    """Return a text about validity, status, residual and law of a message's contact forces."""
    status = STATUS_NAMES.get(received.forces_status, "no status")
    words = f"{Validity(received.forces_validity).name}: {status}"
    law = LAW_NAMES.get(received.forces_law)
    return words if law is None else f"{words}, residual {received.forces_residual:.2g}, law {law}"


def _transform(pose: Any) -> Transform:
    p, o = pose.position, pose.orientation
    turn = np.array([o.x, o.y, o.z, o.w])
    rotation = rotation_from_quaternion(turn) if turn.any() else np.eye(3)
    return Transform(rotation, np.array([p.x, p.y, p.z]))


def _ignore(_message: object) -> None:
    """Stand in for the callback that a subscription has to have."""
