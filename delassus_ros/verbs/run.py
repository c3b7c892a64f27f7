"""``delassus run`` and ``delassus view --node``: a running node in the browser."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delassus.cli.options import (
    add_reference,
    add_robot,
    described,
    tell_proposed,
)
from delassus.cli.page import (
    add_first_pose,
    add_page,
    announce,
    dials,
    first_pose,
    named_positions,
    q_at,
    shapes_of,
)
from delassus.cli.parsing import Verb
from delassus.cli.posture import closure_of
from delassus.cli.report import Report
from delassus.closure import Closure
from delassus.contacts import ContactSet
from delassus.drawing.skeleton import Skeleton
from delassus.errors import DelassusError, InputError
from delassus.model.edit import to_lock
from delassus.model.reading.mjcf import MJCF, compiled_text
from delassus.model.reading.xml import parse_xml
from delassus.model.robot import Robot
from delassus.model.spatial import Array
from delassus.programs.processes import Command, Programs
from delassus.programs.stopping import StopRequest
from delassus.robots.description import Description
from delassus.robots.wheels import lowest_points
from delassus_ros.ros.needs import ROS, require_ros
from delassus_ros.verbs import config
from delassus_ros.verbs.parameter_files import settings_of

if TYPE_CHECKING:
    from delassus.drawing.viewer import Viewer
    from delassus_ros.markers.received import NodeTopics

_PERIOD_S = 0.02
"""Period of published joint states and of queries for matrices [s]."""
_SILENCE_S = 1.0
"""Time without a matrix after which the page shows a notice [s]."""
_FIRST_LIMIT_S = 300.0
"""Longest wait for a running node, and for the first matrix where an end is wanted [s]."""
_NEEDED = ("viser", "trimesh")


def _add_options(parser: argparse.ArgumentParser) -> None:
    """Add the robot, the parameters of the node, and the page."""
    add_robot(parser)
    add_reference(parser)
    parser.add_argument(
        "--params",
        metavar="PARAMS.yaml",
        help="parameters of the node (default: the proposal of `delassus config`)",
    )
    parser.add_argument(
        "--own-joint-states",
        action="store_true",
        help="publish no joint states; another program publishes them on joint_states",
    )
    add_first_pose(parser)
    add_page(parser)


def run(options: argparse.Namespace) -> Report:
    """Start a node for a robot, publish its inputs, and show its matrices in the browser."""
    require_ros("delassus run", *_NEEDED, ros=(*ROS, "threadpoolctl"))
    from delassus_ros.ros.program import peer

    description = described(options)
    text = description.text
    with tempfile.TemporaryDirectory(prefix="delassus_run_") as folder:
        file = options.params
        if file is None:
            tell_proposed(description)
            file = f"{folder}/params.yaml"
            proposed = config.proposed(options, description).text
            Path(file).write_text(f"{proposed}\n", encoding="utf-8")
        settings = settings_of(file)
        if not settings.contacts:
            raise InputError(
                f"nothing of robot {description.robot.name!r} looks as if it touched; name "
                "contacts in a file of --params"
            )
        # Refused here, a problem has a short message and starts no node.
        problem = settings.problem(text)
        # Locked joints stay in the page's robot, which is that of the description.
        robot = description.robot
        closure = closure_of(options, robot)
        start = first_pose(options, robot, closure, tuple(problem.contacts))
        held = {} if options.lock else to_lock(robot, settings.lock)
        start |= {name: held[name] for name in held.keys() & start.keys()}
        moved = {name: value for name, value in start.items() if name in problem.robot.joint_names}
        node = [sys.executable, "-m", "delassus_ros.node.main", "--ros-args", "--params-file"]
        node += [os.path.abspath(file), "-p", "autostart:=true"]
        commands = [Command("delassus_node", node)]
        with (
            StopRequest() as stop,
            Programs(commands, os.environ) as children,
            peer("delassus_run") as graph,
        ):
            print(f"delassus_node starts in ROS domain {os.environ.get('ROS_DOMAIN_ID', '0')}",
                  file=sys.stderr, flush=True)  # fmt: skip
            wheels = {description.limbs.frame(body) for body in description.limbs.wheels}
            inputs = _NodeInputs(graph, text, settings.contacts, wheels)
            viewer = _viewer(description, robot, inputs.contacts, options)
            try:
                if not options.own_joint_states:
                    viewer.add_dials(dials(robot, moved), named_positions(robot, closure))
                announce(viewer, options)

                def step() -> bool:
                    if children.dead():
                        raise DelassusError(children.report())
                    if not options.own_joint_states:
                        inputs.publish(robot, closure, {**start, **viewer.positions})
                    inputs.touch(viewer.active)
                    return stop.requested

                count = _follow(inputs.topics, viewer, step, options.seconds)
            finally:
                viewer.close()
    data = {"robot": robot.name, "address": viewer.address, "contacts": inputs.contacts,
            "matrices": count}  # fmt: skip
    return Report(f"{robot.name}: {count} matrices were shown", data)


RUN = Verb(
    "run",
    "start a node for a robot, and show the robot with sliders",
    "my_robot.urdf",
    run,
    _add_options,
)


def view_node(options: argparse.Namespace) -> Report:
    """Show the matrices of a running node in the browser."""
    require_ros("delassus view", *_NEEDED, ros=(*ROS, "threadpoolctl"))
    from delassus_ros.markers.received import NodeTopics
    from delassus_ros.ros.program import peer

    with StopRequest() as stop, peer("delassus_run") as graph:
        topics = NodeTopics(graph, lambda _, words: None, options.node)
        deadline = time.monotonic() + _FIRST_LIMIT_S
        while topics.robot is None and not stop.requested:
            topics.latest()
            if time.monotonic() > deadline:
                raise InputError(f"{topics.lacking()} within {_FIRST_LIMIT_S:g} s")
            time.sleep(_PERIOD_S)
        if topics.robot is None or topics.layout is None:
            return Report("nothing was shown", {"matrices": 0})
        folder = None if options.robot is None else Path(os.path.realpath(options.robot)).parent
        document = parse_xml(topics.description.encode())
        model = compiled_text(topics.description) if document.tag == MJCF else None
        description = Description(topics.robot, document, folder, model)
        viewer = _viewer(description, topics.robot, (), options)
        try:
            announce(viewer, options)
            count = _follow(topics, viewer, lambda: stop.requested, options.seconds)
        finally:
            viewer.close()
    return Report(f"{topics.robot.name}: {count} matrices were shown", {"matrices": count})


def _viewer(
    description: Description, robot: Robot, contacts: Any, options: argparse.Namespace
) -> Viewer:
    from delassus.drawing.viewer import Viewer

    shapes = shapes_of(description, robot)
    return Viewer(robot, shapes, contacts, options.port)


def _follow(
    topics: NodeTopics, viewer: Viewer, step: Callable[[], bool], seconds: float | None
) -> int:
    """Show matrices of a node until `step` returns True; return the number of shown matrices.

    A line is written to standard error when the page shows the first matrix; `seconds` is the time
    from then to the end [s], None for no end.
    """
    from delassus.drawing.snapshot import Snapshot, positions_of
    from delassus_ros.markers.received import facts_of

    count, shown = 0, viewer.neutral()
    begin = start = last = drawn = time.monotonic()
    while not step():
        now = time.monotonic()
        received = topics.latest()
        robot, drawn_robot = topics.robot, topics.drawn_robot
        if received is not None and robot is not None and drawn_robot is not None:
            q = topics.q()
            shown = Snapshot(
                drawn_robot.poses(q), topics.scene(received), facts_of(received),
                positions=positions_of(robot, q),
            )  # fmt: skip
            viewer.show(shown)
            if not count:
                print(f"first matrix after {now - begin:.1f} s", file=sys.stderr, flush=True)
                start = now
            count, last, drawn = count + 1, now, now
        elif now - drawn > _SILENCE_S:
            drawn, silent = now, f"no matrix for {now - last:.0f} s"
            viewer.show(shown, silent if count else f"{silent}; {topics.lacking()}")
        if seconds is not None and now - start > (seconds if count else _FIRST_LIMIT_S):
            if not count:
                raise InputError(f"no matrix within {_FIRST_LIMIT_S:g} s; {topics.lacking()}")
            break
        time.sleep(_PERIOD_S)
    return count


class _NodeInputs:
    """The publishers that a node needs: robot description, joint states and active contacts."""

    def __init__(
        self, node: Any, description: str, contacts: ContactSet, wheels: Collection[str]
    ) -> None:
        from delassus_msgs.msg import ActiveContacts, ContactPlacements
        from sensor_msgs.msg import JointState
        from std_msgs.msg import String

        from delassus_ros.markers.received import NodeTopics
        from delassus_ros.ros.topics import LATCHED

        self._node = node
        self._moving = [c for c in contacts if c.moving == "pose" and c.frame in wheels]
        self.contacts = list(contacts.names)
        self.topics = NodeTopics(node, lambda _, words: None)
        self._description = node.create_publisher(String, "robot_description", LATCHED)
        self._description.publish(String(data=description))
        self._states = node.create_publisher(JointState, "joint_states", 10)
        self._active = node.create_publisher(ActiveContacts, "active_contacts", LATCHED)
        self._places = node.create_publisher(ContactPlacements, "contact_placements", 10)

    def publish(
        self, robot: Robot, closure: Closure | None, positions: Mapping[str, Any]
    ) -> None:
        """Publish joint positions and lowest points of wheels; nothing where loops are open."""
        from sensor_msgs.msg import JointState

        try:
            q = q_at(robot, closure, positions)
        except InputError:
            return  # the page keeps the latest pose
        joints = zip(robot.joints, robot.q_offsets, strict=True)
        found = {joint.name: float(q[offset]) for joint, offset in joints if joint.kind.nq == 1}
        message = JointState(name=list(found), position=list(found.values()))
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._states.publish(message)
        if self._moving:
            self._place(robot, q, message.header)

    def _place(self, robot: Robot, q: Array, header: Any) -> None:
        """Publish where wheels touch."""
        from delassus_msgs.msg import ContactPlacements
        from geometry_msgs.msg import Point, Pose, Quaternion

        skeleton = Skeleton(robot)
        poses = skeleton.poses(q)
        frames = {c.frame: skeleton.frame(poses, c.frame) for c in self._moving}
        places = lowest_points(robot, self._moving, frames)
        self._places.publish(ContactPlacements(
            header=header, names=list(places),
            poses=[
                Pose(position=Point(**dict(zip("xyz", place.translation.tolist(), strict=True))),
                     orientation=Quaternion(
                         **dict(zip("xyzw", place.quaternion().tolist(), strict=True))))
                for place in places.values()
            ],
        ))  # fmt: skip

    def touch(self, names: list[str]) -> None:
        """Publish the active contacts."""
        from delassus_msgs.msg import ActiveContacts

        message = ActiveContacts(names=names, status=[ActiveContacts.ACTIVE] * len(names))
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._active.publish(message)
