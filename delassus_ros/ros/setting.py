"""A parameter: its type, default, range and description, and dataclasses of parameters.

Knows no ROS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

from delassus.errors import InputError, RobotError, unknown

_ACCEPTED: Mapping[type, type] = {str: str, bool: bool, int: Integral, float: Real}
"""Accepted types for texts, flags, whole numbers and numbers; a flag is not a number."""
_WORDS: Mapping[type, str] = {
    str: "text", bool: "true or false", int: "a whole number", float: "a number",
}  # fmt: skip
_ENTRIES: Mapping[str, type] = {"names": str, "numbers": float, "whole numbers": int}
"""Type of a list's entries, by :attr:`Setting.holds`."""
RCLPY_PREFIXES = ("qos_overrides.", "use_sim_time", "start_type_description_service")
"""Beginnings of the names of parameters that rclpy declares itself."""


@dataclass(frozen=True)
class Setting:
    """Type, default, range and description of a parameter.

    Attributes
    ----------
    default : value of a parameter that is not set; its type is the parameter's.
    low, high : range of a number, both ends included; None for no range.
    least : lower bound of nonzero values, where 0 disables the feature; 0 for no such bound.
    choices : possible values of a text; empty for any text.
    holds : type of a list's entries: ``"names"``, ``"numbers"`` or ``"whole numbers"``; empty
        for a parameter that is no list.
    live : whether the parameter may be set in any state of the node and takes effect from the
        next instant on; other parameters are read when the node is configured.
    """

    default: Any
    description: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    least: float = 0.0
    holds: str = ""
    live: bool = False

    @property
    def range(self) -> str:
        """Return the range in words; empty if there is none."""
        if self.low is None or self.high is None:
            return ""
        none = "0, or " if self.least else ""
        return f"{none}{self.least or self.low:g} to {self.high:g}"

    def parse(self, name: str, value: Any) -> Any:
        """Return a value in the parameter's type: a list as a tuple, an integer as a number.

        Raises
        ------
        InputError
            For a value of another type, out of range, or an unknown choice; names the parameter.
        """
        try:
            parsed = self._typed(value)
        except (TypeError, OverflowError):
            expected = f"a list of {self.holds}" if self.holds else _WORDS[type(self.default)]
            text = f"parameter {name!r} is {value!r:.60}; expected {expected}"
            raise InputError(text) from None
        if self.choices and parsed not in self.choices:
            raise InputError(unknown(name, parsed, self.choices, plural=name))
        if self.holds == "whole numbers" and any(number < 0 for number in parsed):
            raise InputError(f"parameter {name!r} is {list(parsed)}; expected numbers from 0 on")
        if self.low is None or self.high is None:
            return parsed
        # Written so that NaN is refused.
        if not self.low <= parsed <= self.high or (self.least and 0 != parsed < self.least):
            raise InputError(f"parameter {name!r} is {parsed}; expected {self.range}")
        return parsed

    def _typed(self, value: Any) -> Any:
        """Return a value in the parameter's type; raise TypeError if it has another."""
        if not self.holds:
            return _converted(type(self.default), value)
        if isinstance(value, (str, bytes, Mapping)):
            raise TypeError
        return tuple(_converted(_ENTRIES[self.holds], entry) for entry in value)


def _converted(kind: type, value: Any) -> Any:
    if not isinstance(value, _ACCEPTED[kind]) or (isinstance(value, bool) and kind is not bool):
        raise TypeError
    return kind(value)


def parse_all(
    settings: Mapping[str, Setting], values: Mapping[str, Any], prefix: str = ""
) -> dict[str, Any]:
    """Return the values of parameters, by their names without the prefix.

    The errors are those of :meth:`Setting.parse`.

    Parameters
    ----------
    settings : the parameters, by name without the prefix.
    values : values by full name; a parameter that is absent has its default.
    """
    return {
        name: setting.parse(prefix + name, values.get(prefix + name, setting.default))
        for name, setting in settings.items()
    }


def parameter(
    default: Any,
    description: str,
    low: float | None = None,
    high: float | None = None,
    name: str = "",
    make: Callable[[str, Any], Any] | None = None,
    **more: Any,
) -> Any:
    """Return the field of a dataclass that has the value of a parameter.

    Parameters
    ----------
    name : name of the parameter; empty for the name of the field.
    make : returns the value of the field for name and value of the parameter, or raises
        InputError; None for the value itself.
    **more : further attributes of the :class:`Setting`.
    """
    setting = Setting(default, description, low, high, **more)
    return field(metadata={"setting": setting, "name": name, "make": make})


def settings_by_name(kind: Any) -> dict[str, Setting]:
    """Return the parameters in the fields of a dataclass, by name."""
    return {
        entry.metadata["name"] or entry.name: entry.metadata["setting"]
        for entry in fields(kind) if entry.metadata
    }  # fmt: skip


def field_values(
    kind: Any, parameters: Mapping[str, Any], prefix: str = ""
) -> dict[str, Any]:
    """Return the values of the fields that are parameters, by field; see :func:`parse_all`."""
    values = parse_all(settings_by_name(kind), parameters, prefix)
    found = {}
    for entry in fields(kind):
        if entry.metadata:
            name, make = entry.metadata["name"] or entry.name, entry.metadata["make"]
            value = values[name]
            found[entry.name] = value if make is None else make(prefix + name, value)
    return found


def part_of(kind: Any, whole: object) -> Any:
    """Return a dataclass with the values of the attributes of the same names of an object."""
    return kind(**{entry.name: getattr(whole, entry.name) for entry in fields(kind)})


def by_joint(name: str, joints: Sequence[str], numbers: Sequence[float]) -> dict[str, float]:
    """Return numbers by joint, from the parameters ``<name>.names`` and ``<name>.values``.

    Raises
    ------
    RobotError
        If the two lists differ in length, or a joint is listed twice.
    """
    if len(joints) != len(numbers):
        raise RobotError(
            f"parameter '{name}.names' has {len(joints)} entries but '{name}.values' has "
            f"{len(numbers)}; expected one value for each joint"
        )
    if len(set(joints)) != len(joints):
        twice = next(joint for i, joint in enumerate(joints) if joint in joints[:i])
        raise RobotError(f"parameter '{name}.names' has joint {twice!r} more than once")
    return {joint: float(number) for joint, number in zip(joints, numbers, strict=True)}
