"""From a maker's message to joint states, orientation, odometry and contacts, without ROS."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from delassus.errors import InputError
from delassus.model.spatial import (
    Array,
    Transform,
    rotation_from_quaternion,
    rotation_from_rpy,
)
from delassus_ros.adapter.clock import Stamp, TickClock
from delassus_ros.adapter.fields import NUMBERS, TEXTS, WHOLE, Field, field_of, message_type
from delassus_ros.adapter.settings import UNITS, settings_of
from delassus_ros.ros.arrival import stamp_of

UNKNOWN, INACTIVE, ACTIVE, SLIPPING = range(4)
"""Status of a contact, as ``delassus_msgs/ActiveContacts`` has it."""
UNIT_TOLERANCE = 0.01
"""Largest difference between 1 and a quaternion's norm; single precision is within 1e-6."""
STANDARD_GRAVITY_M_S2 = 9.81
_REST_M_S2 = 2.0
"""Largest difference of an accelerometer's norm from gravity at which it shows up [m/s²]."""
_ALONG, _NOT_ALONG = 0.9, 0.5
"""Cosines between directions of two sensors that agree, and that do not."""
_TURNING_RAD_S = 0.5
"""Least angular velocity at which its axis is compared [rad/s]."""
_SHORTLY_NS = 50_000_000
"""Longest time between two orientations whose difference is compared with it [ns]."""


@dataclass(frozen=True)
class Joints:
    """Joint positions [rad, m], velocities and torques; the latter two may be empty."""

    names: list[str]
    position: list[float]
    velocity: list[float]
    effort: list[float]


@dataclass(frozen=True)
class Inertial:
    """A unit quaternion x, y, z, w, angular velocity and acceleration, None where not measured."""

    orientation: list[float]
    angular_velocity: list[float] | None
    linear_acceleration: list[float] | None


@dataclass(frozen=True)
class BaseState:
    """Position [m], unit quaternion x, y, z, w and twist (6,), linear first; None without one."""

    position: list[float]
    orientation: list[float]
    twist: list[float] | None


@dataclass
class Converted:
    """The converted parts of a message, and the faults of the remaining parts.

    Attributes
    ----------
    stamp : time of the message [ns].
    joints, inertial, base : None where not configured, or refused.
    contacts : status by name; None likewise.
    faults : texts by kind: ``stamp``, ``joints``, ``orientation``, ``odometry``, ``contacts``.
    """

    stamp: int
    joints: Joints | None = None
    inertial: Inertial | None = None
    base: BaseState | None = None
    contacts: dict[str, int] | None = None
    faults: dict[str, str] = field(default_factory=dict)


class Refused(Exception):
    """A part of a message cannot be converted; the text is the reason."""


class Adapter:
    """Converts messages of one type, one after the other.

    Attributes
    ----------
    fields : the fields that parameters name, by the parameter.

    Raises
    ------
    InputError
        If a parameter is wrong, the message package is missing, or the type has no such field.
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.settings = settings_of(parameters)
        settings = self.settings
        self.type = message_type(settings["source.type"], settings["source.package"])
        self.fields = {
            name: field_of(self.type, settings[name], f"parameter {name!r}")
            for name in _EXPECTED
            if settings[name]
        }
        for name, one in self.fields.items():
            _check_kind(name, one)
        self._clock = TickClock(settings["stamp.tick_period"])
        self._touching: dict[str, bool] = {}
        # Stamp, and rotation as configured and in the other order, of the last orientation.
        self._before: tuple[int, list[Array]] | None = None
        self.converts_joints = "joints.position" in self.fields
        self.converts_orientation = bool({"imu.orientation", "imu.rpy"} & self.fields.keys())
        self.converts_base = "odometry.pose" in self.fields
        self.converts_contacts = bool({"contacts.force", "contacts.status"} & self.fields.keys())

    def convert(self, message: Any, arrival: int) -> Converted:
        """Return the parts of a message.

        Parameters
        ----------
        arrival : time of arrival [ns].
        """
        stamp = self._stamp(message, arrival)
        found = Converted(stamp.nanoseconds)
        if stamp.fault:
            found.faults["stamp"] = stamp.fault
        for is_converted, kind, convert in (
            (self.converts_joints, "joints", self._joints),
            (self.converts_orientation, "orientation", self._inertial),
            (self.converts_base, "odometry", self._base),
            (self.converts_contacts, "contacts", self._contacts),
        ):
            if is_converted:
                try:
                    convert(message, found)
                except Refused as reason:
                    found.faults[kind] = str(reason)
        return found

    def _value(self, name: str, message: Any) -> Any:
        """Return the value of a field, None without one; raise Refused if an array lacks it."""
        one = self.fields.get(name)
        if one is None:
            return None
        try:
            return one.read(message)
        except IndexError as error:
            raise Refused(f"the message lacks {one.path}: an array is too short") from error

    def _numbers(self, name: str, message: Any, size: int) -> list[float] | None:
        """Return the numbers of an array, or of x, y, z and w; None without the field."""
        given = self._value(name, message)
        if given is None:
            return None
        values = given if self.fields[name].many else numbers_of(given, "xyzw"[:size])
        if len(values) != size:
            path = self.fields[name].path
            raise Refused(f"{path} has {len(values)} entries; expected {size}")
        return [float(value) for value in values]

    # --- time ---------------------------------------------------------------------------------

    def _stamp(self, message: Any, arrival: int) -> Stamp:
        try:
            given = self._value("stamp.field", message)
            tick = self._value("stamp.tick", message)
        except Refused as reason:
            return Stamp(arrival, f"{reason}: the time of arrival is taken")
        if given is not None:
            time = getattr(given, "stamp", given)
            found = stamp_of(int(time.sec), int(time.nanosec))
            if found <= 0:
                fault = "the stamp is zero or negative, or has more ns than a second"
                return Stamp(arrival, f"{fault}: the time of arrival is taken")
            return Stamp(found)
        return Stamp(arrival) if tick is None else self._clock.stamp(int(tick), arrival)

    # --- joints -------------------------------------------------------------------------------

    def _joints(self, message: Any, found: Converted) -> None:
        names = self._joint_names(message)
        scale = UNITS[self.settings["joints.unit"]]
        columns: list[list[float]] = []
        for name, factor in (("position", scale), ("velocity", scale), ("effort", 1.0)):
            values = self._value(f"joints.{name}", message)
            if values is None:
                columns.append([])
                continue
            _check_count(values, names, self.fields[f"joints.{name}"], "joints")
            columns.append(
                [factor * float(v) for v, own in zip(values, names, strict=False) if own]
            )
        position, velocity, effort = columns
        found.joints = Joints([name for name in names if name], position, velocity, effort)

    def _joint_names(self, message: Any) -> Sequence[str]:
        settings = self.settings
        machine = self._value("joints.machine_field", message)
        if machine is not None and machine not in settings["joints.machines"]:
            known = ", ".join(map(str, settings["joints.machines"]))
            raise Refused(
                f"{settings['joints.machine_field']} is {machine}; expected {known} "
                "(joints.machines): the message is of another kind of robot"
            )
        listed = self._value("joints.names_field", message)
        if listed is not None:
            count = settings["joints.count"]
            if count and len(listed) != count:
                raise Refused(
                    f"{settings['joints.names_field']} has {len(listed)} names; expected {count} "
                    "(joints.count): the message is of another robot"
                )
            return list(listed)
        names: Sequence[str] = settings["joints.names"]
        mode = self._value("joints.mode_field", message)
        if mode is None or int(mode) == settings["joints.joint_mode"]:
            return names
        if int(mode) != settings["joints.motor_mode"]:
            raise Refused(
                f"{settings['joints.mode_field']} is {int(mode)}; expected "
                f"{settings['joints.joint_mode']} for joints or {settings['joints.motor_mode']} "
                "for motors"
            )
        pairs = zip(names, settings["joints.motor_names"], strict=True)
        return [motor or name for name, motor in pairs]

    # --- base ---------------------------------------------------------------------------------

    def _inertial(self, message: Any, found: Converted) -> None:
        angles = self._numbers("imu.rpy", message, 3)
        acceleration = self._numbers("imu.linear_acceleration", message, 3)
        rates = self._numbers("imu.angular_velocity", message, 3)
        if angles is not None:
            if not np.isfinite(angles).all():
                raise Refused(f"{self.fields['imu.rpy'].path} is not finite: {angles}")
            quaternion = Transform(rotation_from_rpy(angles)).quaternion().tolist()
        else:
            one = self.fields["imu.orientation"]
            order = self.settings["imu.order"] if one.many else "xyzw"
            values = self._numbers("imu.orientation", message, 4) or []
            quaternion = unit_quaternion(values, one.path, order)
            self._check_order(quaternion, rates, acceleration, found)
        if rates is not None and self.settings["imu.rates_along"] == "world":
            rates = (rotation_from_quaternion(quaternion).T @ rates).tolist()
        found.inertial = Inertial(quaternion, rates, acceleration)

    def _check_order(
        self,
        quaternion: list[float],
        rates: list[float] | None,
        acceleration: list[float] | None,
        found: Converted,
    ) -> None:
        """Note an orientation that contradicts another sensor, if another order would not.

        At rest the accelerometer shows up. While the sensor turns, the gyroscope shows the axis:
        for an upright robot the wrong order is a half turn about the vertical.
        """
        order = self.settings["imu.order"]
        x, y, z, w = quaternion
        other = [y, z, w, x] if order == "xyzw" else [w, x, y, z]
        right = "wxyz" if order == "xyzw" else "xyzw"
        both = [rotation_from_quaternion(q) for q in (quaternion, other)]
        before, self._before = self._before, (found.stamp, both)
        advice = f"as {right} both agree: set imu.order to {right!r}"
        if acceleration is not None:
            size = math.hypot(*acceleration)
            if abs(size - STANDARD_GRAVITY_M_S2) < _REST_M_S2:
                up = np.array(acceleration) / size
                cosine, swapped = (float((R @ up)[2]) for R in both)
                if cosine < _NOT_ALONG and swapped > _ALONG:
                    found.faults["orientation"] = (
                        f"the quaternion contradicts the accelerometer, whose direction it turns "
                        f"{math.degrees(math.acos(max(-1.0, cosine))):.0f}° from the vertical; "
                        f"{advice}"
                    )
                    return
        if rates is None or before is None or self.settings["imu.rates_along"] == "world":
            return
        if math.hypot(*rates) < _TURNING_RAD_S or not 0 < found.stamp - before[0] < _SHORTLY_NS:
            return
        cosine, swapped = (
            _cosine(_turned(R0, R1), np.array(rates))
            for R0, R1 in zip(before[1], both, strict=True)
        )
        if cosine < _NOT_ALONG and swapped > _ALONG:
            found.faults["orientation"] = (
                "the quaternion turns about another axis than the gyroscope; " + advice
            )

    def _base(self, message: Any, found: Converted) -> None:
        pose = self._value("odometry.pose", message)
        twist = self._value("odometry.twist", message)
        path = self.fields["odometry.pose"].path
        position = numbers_of(pose.position, "xyz")
        quaternion = unit_quaternion(
            numbers_of(pose.orientation, "xyzw"), f"{path}.orientation"
        )
        both = None
        if twist is not None:
            both = [*numbers_of(twist.linear, "xyz"), *numbers_of(twist.angular, "xyz")]
        found.base = BaseState(position, quaternion, both)

    # --- contacts -----------------------------------------------------------------------------

    def _contacts(self, message: Any, found: Converted) -> None:
        by_field = self._value("contacts.names_field", message)
        names = self.settings["contacts.names"] if by_field is None else list(by_field)
        by_force = "contacts.force" in self.fields
        key = "contacts.force" if by_force else "contacts.status"
        one, values = self.fields[key], self._value(key, message)
        _check_count(values, names, one, "contacts")
        status = self._by_force if by_force else self._by_status
        pairs = [(name, value) for name, value in zip(names, values, strict=False) if name]
        found.contacts = {name: status(name, value) for name, value in pairs}
        lost = [name for name, value in pairs if by_force and not math.isfinite(value)]
        if lost:
            found.faults["contacts"] = (
                f"{one.path} is not finite for {', '.join(map(repr, lost))}: unknown contacts"
            )

    def _by_force(self, name: str, force: float) -> int:
        if not math.isfinite(force):
            # A contact that was unknown begins at the upper threshold again.
            self._touching.pop(name, None)
            return UNKNOWN
        touched = self._touching.get(name, False)
        threshold = self.settings["contacts.force_off" if touched else "contacts.force_on"]
        self._touching[name] = force >= threshold if touched else force > threshold
        return ACTIVE if self._touching[name] else INACTIVE

    def _by_status(self, name: str, value: Any) -> int:
        settings = self.settings
        for status, key in ((INACTIVE, "inactive"), (ACTIVE, "active"), (SLIPPING, "slipping")):
            if int(value) in settings[f"contacts.{key}"]:
                return status
        return UNKNOWN


_TEXTS, _VALUES = (True, TEXTS, "an array of texts"), (True, NUMBERS, "an array of numbers")
_MODE = (False, WHOLE | {"boolean"}, "a whole number")
_VECTOR = (True, NUMBERS, "an array of numbers, or a message with x, y, z")
_EXPECTED: Mapping[str, tuple[bool, Collection[str], str]] = {
    "stamp.field": (False, {"builtin_interfaces/Time", "std_msgs/Header"}, "a time or a header"),
    "stamp.tick": (False, WHOLE, "a whole number"),
    "joints.names_field": _TEXTS,
    "joints.position": _VALUES, "joints.velocity": _VALUES, "joints.effort": _VALUES,
    "joints.mode_field": _MODE, "joints.machine_field": _MODE,
    "imu.orientation": _VECTOR, "imu.rpy": _VECTOR, "imu.angular_velocity": _VECTOR,
    "imu.linear_acceleration": _VECTOR,
    "odometry.pose": (False, {"geometry_msgs/Pose"}, "a geometry_msgs/Pose"),
    "odometry.twist": (False, {"geometry_msgs/Twist"}, "a geometry_msgs/Twist"),
    "contacts.names_field": _TEXTS, "contacts.force": _VALUES,
    "contacts.status": (True, WHOLE | {"boolean"}, "an array of whole numbers"),
}  # fmt: skip
"""By parameter that is the path of a field: whether the field has many values, their types, and
a text about both."""


def _check_kind(name: str, one: Field) -> None:
    """Refuse a field whose values cannot be those of a parameter."""
    many, kinds, words = _EXPECTED[name]
    fits = one.many is many and one.kind in kinds
    if _EXPECTED[name] is _VECTOR and not one.many and "/" in one.kind:
        axes = "xyzw" if name == "imu.orientation" else "xyz"
        fits = set(axes) <= set(message_type(one.kind).get_fields_and_field_types())
    if not fits:
        shown = f"an array of {one.kind}" if one.many else f"a single {one.kind}"
        raise InputError(f"parameter {name!r}: {one.path} is {shown}; expected {words}")


def _check_count(values: Sequence[Any], names: Sequence[str], one: Field, what: str) -> None:
    """Refuse an array with more or fewer entries than names.

    An array of fixed size may have more: its type has room for other robots.
    """
    missing = [name for name in names[len(values) :] if name]
    if missing:
        raise Refused(
            f"{one.path} has {len(values)} entries, fewer than the {len(names)} {what}: "
            f"{missing[0]!r} is missing"
        )
    if len(values) > len(names) and not one.is_fixed:
        raise Refused(
            f"{one.path} has {len(values)} entries, more than the {len(names)} {what}: the "
            "message is of another robot, or empty names have to leave entries out"
        )


def numbers_of(message: Any, axes: str) -> list[float]:
    """Return the numbers of a message with x, y, z and perhaps w."""
    return [float(getattr(message, axis)) for axis in axes]


def _turned(before: Array, after: Array) -> Array:
    """Return a vector (3,) along the axis of a small rotation, in the axes of the body."""
    step = before.T @ after
    return np.array([step[2, 1] - step[1, 2], step[0, 2] - step[2, 0], step[1, 0] - step[0, 1]])


def _cosine(a: Array, b: Array) -> float:
    """Return the cosine of the angle between two vectors; 1 if one is zero."""
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0.0 else 1.0


def unit_quaternion(values: Sequence[float], what: str, order: str = "xyzw") -> list[float]:
    """Return four numbers in this order as x, y, z, w; refuse another norm than 1."""
    if order == "wxyz":
        values = [*values[1:], values[0]]
    norm = math.hypot(*values)
    if not abs(norm - 1.0) <= UNIT_TOLERANCE:
        raise Refused(f"{what} has norm {norm:.4g}; expected a unit quaternion")
    return [value / norm for value in values]
