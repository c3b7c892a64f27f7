"""The parameters of an adapter: the meanings of the fields of a maker's message.

Knows no ROS.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from delassus.errors import InputError
from delassus_ros.ros.setting import Setting, parse_all

UNITS: Mapping[str, float] = {"rad": 1.0, "deg": 0.017453292519943295, "turn": 6.283185307179586}
"""Size of a unit of joint positions [rad]."""

PARAMETERS: Mapping[str, Setting] = {
    "direction": Setting(
        "from_maker",
        "Whether messages of the maker are converted to standard messages, or made of them.",
        choices=("from_maker", "to_maker"),
    ),
    "source.type": Setting("", "Type of the messages, e.g. unitree_go/msg/LowState."),
    "source.topic": Setting("robot_state", "Topic of these messages."),
    "source.package": Setting(
        "", "Origin of the message package, for the error if it is missing."
    ),
    "stamp.field": Setting("", "Field with the stamp: a time or a header. Empty: the tick."),
    "stamp.tick": Setting("", "Field with a counter. Empty: the time of arrival."),
    "stamp.tick_period": Setting(0.001, "Time between two ticks [s].", 1e-9, 1.0),
    "joints.names": Setting(
        (), "Joints in the order of the entries; an empty name leaves an entry out.", holds="names"
    ),
    "joints.names_field": Setting("", "Field with the names of joints, instead of a list."),
    "joints.count": Setting(
        0, "Number of names in that field; a message with another number is refused. 0: any.",
        0, 1000,
    ),
    "joints.position": Setting("", "Field of the positions. Empty: no joint states."),
    "joints.velocity": Setting("", "Field of the velocities. Empty: none."),
    "joints.effort": Setting("", "Field of the torques [N m, N]. Empty: none."),
    "joints.unit": Setting(
        "rad", "Unit of positions, and per second of velocities.", choices=tuple(UNITS)
    ),
    "joints.mode_field": Setting("", "Field that tells joints from motors. Empty: none."),
    "joints.joint_mode": Setting(0, "Value of that field with values of joints.", 0, 255),
    "joints.motor_mode": Setting(1, "Value of that field with values of motors.", 0, 255),
    "joints.motor_names": Setting(
        (),
        "Joints of the robot description that the motors turn, for motor_mode; an empty name "
        "keeps that of joints.names.",
        holds="names",
    ),
    "joints.machine_field": Setting("", "Field with the kind of the robot. Empty: none."),
    "joints.machines": Setting(
        (), "Values of that field for robots with these joints; other values are refused.",
        holds="whole numbers",
    ),
    "imu.orientation": Setting("", "Field of the quaternion. Empty: imu.rpy, or no orientation."),
    "imu.order": Setting("xyzw", "Order of a quaternion in an array.", choices=("xyzw", "wxyz")),
    "imu.rpy": Setting("", "Field of roll, pitch and yaw [rad]."),
    "imu.angular_velocity": Setting("", "Field of the angular velocity [rad/s]."),
    "imu.rates_along": Setting("body", "Axes of the angular velocity.", choices=("body", "world")),
    "imu.linear_acceleration": Setting("", "Field of the accelerometer's values [m/s^2]."),
    "imu.frame": Setting("", "Link that the sensor is mounted on, for frame_id."),
    "odometry.pose": Setting("", "Field of the base's pose. Empty: no odometry."),
    "odometry.twist": Setting("", "Field of the base's twist, in the axes of the base."),
    "odometry.frame": Setting("base_link", "Link that the pose is of, for child_frame_id."),
    "odometry.world_frame": Setting("odom", "Reference frame of the pose, for frame_id."),
    "contacts.names": Setting(
        (), "Contacts in the order of the entries; an empty name leaves one out.", holds="names"
    ),
    "contacts.names_field": Setting("", "Field with the names of contacts, instead of a list."),
    "contacts.force": Setting("", "Field of the normal forces [any unit]."),
    "contacts.force_on": Setting(20.0, "Force above which a contact becomes active.", 0.0, 1e6),
    "contacts.force_off": Setting(10.0, "Force below which it becomes inactive.", 0.0, 1e6),
    "contacts.status": Setting("", "Field of the status, instead of forces."),
    "contacts.inactive": Setting((0,), "Values of the status: no contact.", holds="whole numbers"),
    "contacts.active": Setting((1,), "Values of the status: contact.", holds="whole numbers"),
    "contacts.slipping": Setting((), "Values of the status: sliding.", holds="whole numbers"),
}
"""All parameters by name."""


def settings_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of all parameters, checked as far as possible without a message type.

    Raises
    ------
    InputError
        For a value of another type or out of range, an unknown choice, or parameters that do not
        fit together; names the parameters.
    """
    found = parse_all(PARAMETERS, values)
    if not found["source.type"]:
        raise InputError(
            "parameter 'source.type' is empty; set it to the type of the robot's messages, e.g. "
            "with a file of config/robots"
        )
    outputs = ("joints.position", "imu.orientation", "imu.rpy", "odometry.pose")
    contacts = ("contacts.force", "contacts.status")
    if not any(found[name] for name in (*outputs, *contacts)):
        raise InputError(
            f"nothing to convert: all of {', '.join((*outputs, *contacts))} are empty"
        )
    _exclusive(found, "imu.orientation", "imu.rpy")
    _exclusive(found, "stamp.field", "stamp.tick")
    _exclusive(found, *contacts)
    if found["joints.position"]:
        _named(found, "joints")
    if found["contacts.force"] or found["contacts.status"]:
        _named(found, "contacts")
    if not found["contacts.force_off"] <= found["contacts.force_on"]:
        raise InputError(
            f"parameter 'contacts.force_off' is {found['contacts.force_off']:g}, above "
            f"'contacts.force_on' {found['contacts.force_on']:g}; expected a lower force"
        )
    if found["joints.count"] and not found["joints.names_field"]:
        raise InputError(
            "parameter 'joints.count' is set without 'joints.names_field', whose names it counts"
        )
    if bool(found["joints.machine_field"]) != bool(found["joints.machines"]):
        raise InputError(
            "parameters 'joints.machine_field' and 'joints.machines' belong together: one is empty"
        )
    if found["joints.mode_field"]:
        names, motors = found["joints.names"], found["joints.motor_names"]
        if len(motors) != len(names):
            raise InputError(
                f"parameter 'joints.motor_names' has {len(motors)} entries, 'joints.names' "
                f"{len(names)}; expected one for each entry"
            )
        if found["joints.joint_mode"] == found["joints.motor_mode"]:
            raise InputError("parameters 'joints.joint_mode' and 'joints.motor_mode' are equal")
    if found["direction"] == "to_maker":
        _check_writable(found)
    return found


def _check_writable(found: Mapping[str, Any]) -> None:
    """Refuse parameters without the values that a message to the maker needs."""
    only_read = ("stamp.tick", "joints.mode_field", "joints.machine_field", "imu.rpy")
    for name in (*only_read, "contacts.force"):
        if found[name]:
            raise InputError(
                f"parameter {name!r} can only be read; leave it out for direction 'to_maker'"
            )
    if not found["joints.position"]:
        raise InputError(
            "parameter 'joints.position' is empty; with direction 'to_maker' a message is made of "
            "each joint state"
        )
    if found["contacts.status"] and not (found["contacts.active"] and found["contacts.inactive"]):
        raise InputError(
            "parameters 'contacts.active' and 'contacts.inactive' are needed to write a status"
        )


def _exclusive(found: Mapping[str, Any], *names: str) -> None:
    given = [name for name in names if found[name]]
    if len(given) > 1:
        raise InputError(f"parameters {given[0]!r} and {given[1]!r} exclude each other")


def _named(found: Mapping[str, Any], what: str) -> None:
    names, field = found[f"{what}.names"], found[f"{what}.names_field"]
    if bool(names) == bool(field):
        raise InputError(f"expected one of the parameters '{what}.names' and '{what}.names_field'")
    listed = [name for name in names if name]
    twice = next((name for name in listed if listed.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"parameter '{what}.names' has {twice!r} more than once")
