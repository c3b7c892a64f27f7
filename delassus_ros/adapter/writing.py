"""From joint states, orientation, odometry and contacts to a maker's message, without ROS.

The inverse of :mod:`delassus_ros.adapter.conversion`, by the same parameters.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from delassus.model.spatial import rotation_from_quaternion
from delassus_ros.adapter.conversion import (
    ACTIVE,
    INACTIVE,
    SLIPPING,
    UNKNOWN,
    Adapter,
    BaseState,
    Converted,
    Inertial,
    Joints,
    Refused,
)
from delassus_ros.adapter.fields import message_type
from delassus_ros.adapter.settings import UNITS
from delassus_ros.ros.arrival import write_stamp

_Part = TypeVar("_Part")


class Writer:
    """Makes messages of one type.

    Raises
    ------
    InputError
        If a parameter is wrong, the message package is missing, or the type has no such field.
    """

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.adapter = Adapter(parameters)
        self._settings, self._fields = self.adapter.settings, self.adapter.fields

    def message(self, given: Converted) -> Any:
        """Return the message of the maker, of :attr:`Adapter.type`.

        Raises
        ------
        Refused
            If a part is missing, or the message has no room for it.
        """
        message = self.adapter.type()
        try:
            self._stamp(message, given.stamp)
            if given.joints is not None:
                self._joints(message, given.joints)
            if self.adapter.converts_orientation:
                self._inertial(message, _needed(given.inertial, "orientation"))
            if self.adapter.converts_base:
                self._base(message, _needed(given.base, "odometry"))
            if self.adapter.converts_contacts:
                self._contacts(message, given.contacts or {})
        except ValueError as error:
            raise Refused(str(error)) from error
        return message

    def _write(self, name: str, message: Any, value: Any) -> None:
        """Write a field, if the message has it."""
        if name in self._fields:
            self._fields[name].write(message, value)

    def _stamp(self, message: Any, stamp: int) -> None:
        if "stamp.field" in self._fields:
            at = self._fields["stamp.field"].read(message)
            write_stamp(getattr(at, "stamp", at), stamp)

    def _joints(self, message: Any, joints: Joints) -> None:
        names = self._settings["joints.names"]
        if "joints.names_field" in self._fields:
            names = joints.names
            self._write("joints.names_field", message, names)
        place = {name: k for k, name in enumerate(joints.names)}
        missing = next((name for name in names if name and name not in place), None)
        if missing is not None:
            raise Refused(f"the joint state lacks joint {missing!r}")
        scale = UNITS[self._settings["joints.unit"]]
        for key, factor in (("position", scale), ("velocity", scale), ("effort", 1.0)):
            values = getattr(joints, key)
            if values and len(values) != len(joints.names):
                raise Refused(
                    f"the joint state has {len(joints.names)} names, {len(values)} {key}"
                )
            # NaN is written for an unknown value, and 0 for an entry of no joint.
            numbers = [
                (values[place[name]] / factor if values else math.nan) if name else 0.0
                for name in names
            ]
            self._write(f"joints.{key}", message, numbers)

    def _inertial(self, message: Any, inertial: Inertial) -> None:
        self._vector("imu.orientation", message, inertial.orientation)
        rates = inertial.angular_velocity
        if rates is not None and self._settings["imu.rates_along"] == "world":
            rates = (rotation_from_quaternion(inertial.orientation) @ np.array(rates)).tolist()
        for name, values in (
            ("imu.angular_velocity", rates),
            ("imu.linear_acceleration", inertial.linear_acceleration),
        ):
            if values is None and name in self._fields:
                raise Refused(f"the orientation comes without {name.partition('.')[2]}")
            if values is not None:
                self._vector(name, message, values)

    def _base(self, message: Any, base: BaseState) -> None:
        pose = self._fields["odometry.pose"].read(message)
        spell(pose.position, base.position)
        spell(pose.orientation, base.orientation)
        if "odometry.twist" in self._fields:
            twist = self._fields["odometry.twist"].read(message)
            values = _needed(base.twist, "twist of the odometry")
            spell(twist.linear, values[:3])
            spell(twist.angular, values[3:])

    def _contacts(self, message: Any, contacts: Mapping[str, int]) -> None:
        names: Sequence[str] = self._settings["contacts.names"]
        if "contacts.names_field" in self._fields:
            names = list(contacts)
            self._write("contacts.names_field", message, names)
        field = self._fields["contacts.status"]
        field.write(
            message, [self._status(contacts.get(name, UNKNOWN), field.kind) for name in names]
        )

    def _status(self, status: int, kind: str) -> int | bool:
        """Return the value of a status in the maker's message."""
        named = {INACTIVE: "inactive", ACTIVE: "active", SLIPPING: "slipping"}
        values = {key: self._settings[f"contacts.{name}"] for key, name in named.items()}
        if status == SLIPPING and not values[SLIPPING]:
            status = ACTIVE
        if status != UNKNOWN:
            value = int(values[status][0])
            return bool(value) if kind == "boolean" else value
        listed = {int(value) for each in values.values() for value in each}
        free = [value for value in range(2 if kind == "boolean" else 256) if value not in listed]
        if not free:
            raise Refused("a contact is unknown, for which the message has no value")
        return free[0]

    def _vector(self, name: str, message: Any, values: Sequence[float]) -> None:
        """Write numbers to an array, or to a message with x, y, z and perhaps w."""
        if name not in self._fields:
            return
        field = self._fields[name]
        if "/" in field.kind:
            target = message_type(field.kind)()
            spell(target, values)
            field.write(message, target)
            return
        if len(values) == len("xyzw") and self._settings["imu.order"] == "wxyz":
            values = [values[3], *values[:3]]
        field.write(message, list(values))


def _needed(part: _Part | None, what: str) -> _Part:
    """Return a part of the message; raise Refused without it."""
    if part is None:
        raise Refused(f"no {what} has come that belongs to the joint state")
    return part


def spell(message: Any, values: Sequence[float]) -> None:
    """Write x, y, z and, of a quaternion, w."""
    for name, value in zip("xyzw", values, strict=False):
        setattr(message, name, value)
