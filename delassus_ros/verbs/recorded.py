"""Recordings on the command line: the contacts of a recording, and its states for the viewer.

Needs ROS's messages and the package mcap.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from delassus.cli.component import Played
from delassus.cli.options import contacts_of, given_joints, warn
from delassus.contacts import Contact
from delassus.errors import InputError
from delassus.model.reading.xml import parse_xml
from delassus.model.robot import Robot
from delassus.model.spatial import rpy_from_rotation
from delassus.robots.base import Held, base_of
from delassus.robots.description import Description
from delassus.robots.proposals import Proposal, proposals
from delassus.robots.shapes import LinkShapes
from delassus.solver.friction import ForceSettings
from delassus_ros.recordings.contents import names_of_contacts, parameters_of_layout
from delassus_ros.recordings.moments import moments_of, parameters_of_motion, topics_by_type
from delassus_ros.recordings.recording import Recording


def parameters_of(
    recording: Recording, description: Callable[[], str], remap: Mapping[str, str]
) -> dict[str, Any]:
    """Return parameters for a recording: those of the recorded node, or ends of limbs as contacts.

    Parameters
    ----------
    description : returns the URDF of the robot.
    remap : full names of topics that differ from the node's.

    Raises
    ------
    InputError
        If contacts of the recording are no ends of limbs; names the option that defines them.
    """
    found = parameters_of_layout(recording)
    if found is not None:
        return found
    text = description()
    document = parse_xml(text.encode())
    held = _base_of(recording, document)
    robot = Robot.from_urdf(text.encode(), held.base)
    ends = proposals(robot, LinkShapes.of_urdf(robot, document))
    file = "--params names a file that does (delassus config writes one to begin with)"
    contacts = _contacts_of(recording, ends, remap, file)
    print(
        f"{recording.path}: base {held.base}, as {held.why}; --params says otherwise",
        file=sys.stderr,
    )
    return {"algorithm": "auto", "base": held.base, **contacts}


def played(options: argparse.Namespace, description: Description) -> Played | None:
    """Return the states of a recording as the node reads them; None where only positions are read.

    The reason why the positions alone are read is written to standard error.

    Raises
    ------
    DelassusError
        If the recording cannot be read, or the contacts of its messages are not known.
    """
    if description.model is not None:
        print("of an MJCF the recording moves the joints alone", file=sys.stderr)
        return None
    recording = Recording(Path(options.data))
    remap = topics_by_type(recording)
    text = ElementTree.tostring(description.document, encoding="unicode")
    parameters: dict[str, Any] = {}
    if not options.contacts:
        parameters = parameters_of_layout(recording) or {}
    if "base" not in parameters or options.base:
        parameters["base"] = options.base or _base_of(recording, description.document).base
    if options.contacts:
        parameters |= _stated(contacts_of(options, description))
    elif "contacts.names" not in parameters:
        remedy = "--contact NAME=FRAME[:KIND] does"
        parameters |= _contacts_of(recording, description.proposals, remap, remedy)
    parameters |= parameters_of_motion(
        recording, parameters["base"], remap, options.forces is not None
    )
    reference = given_joints("--reference", options.reference) if options.reference else {}
    for what, positions in (("lock", description.held), ("reference", reference)):
        parameters[f"{what}.names"] = list(positions)
        parameters[f"{what}.values"] = list(positions.values())
    # The robot that is named, whatever description was recorded.
    parameters |= {"robot_description": text}
    parameters |= {"loops": options.loops or "", "loops_as": options.loops_as or "clusters"}
    parameters |= {"algorithm": "auto", "friction": options.forces or ForceSettings.friction}
    seconds, moments, replay = moments_of(recording, parameters, text, remap)
    if all(moment.warning and moment.active == () for moment in moments):
        why = moments[0].warning if moments else "it has no joint state of the robot"
        print(f"the recording moves the joints alone: {why}", file=sys.stderr)
        return None
    warn(options, recording.faults)
    return Played(seconds, moments, replay.computation.solver)


def _base_of(recording: Recording, document: Element) -> Held:
    """Return the likely base of a recorded robot."""
    held = base_of(document)
    kinds = set(recording.scan().values())
    if not held.surely and {"nav_msgs/msg/Odometry", "sensor_msgs/msg/Imu"} & kinds:
        return Held("floating", "its odometry or IMU is recorded")
    return held


def _contacts_of(
    recording: Recording, ends: Sequence[Proposal], remap: Mapping[str, str], remedy: str
) -> dict[str, Any]:
    """Return the parameters of the proposed contacts, and of further ends in recorded messages."""
    named = names_of_contacts(recording, remap)
    # The recording of a robot on wheels rarely tells where their lowest points are.
    chosen = [end for end in ends
              if (end.chosen and end.moving == "nothing") or end.frame in named]  # fmt: skip
    strange = named - {end.frame for end in chosen}
    if strange:
        raise InputError(
            f"{recording.path}: nothing says where its contacts {', '.join(sorted(strange))} are "
            f"on the robot, whose limbs end in {', '.join(end.frame for end in ends)}; {remedy}"
        )
    found: dict[str, Any] = {"contacts.names": [end.frame for end in chosen]}
    for end in chosen:
        values = {"frame": end.frame, **end.parameters()}
        found |= {f"contacts.{end.frame}.{part}": value for part, value in values.items()}
    return found


def _stated(contacts: list[Contact]) -> dict[str, Any]:
    """Return the parameters of contacts."""
    found: dict[str, Any] = {"contacts.names": [contact.name for contact in contacts]}
    for contact in contacts:
        place = contact.placement
        values = {
            "frame": contact.frame, "kind": contact.kind_name,
            "xyz": place.translation.tolist(), "rpy": rpy_from_rotation(place.rotation).tolist(),
        }  # fmt: skip
        found |= {f"contacts.{contact.name}.{part}": value for part, value in values.items()}
    return found
