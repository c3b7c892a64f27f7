"""Parameter files of the node, read as ROS reads them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from delassus.cli.options import outputs_of
from delassus.errors import InputError, RobotError
from delassus.model.reading.yaml import INT, StrictLoader, load_yaml
from delassus.model.robot import Robot
from delassus.problem import Problem
from delassus_ros.node.parameters import Settings, misspelt, setting_of

_SECTION = "ros__parameters"
_OF_ROBOTS = {"contacts": "--contact", "axes": "--axes", "base": "--base", "lock": "--lock"}
"""Options whose values are also in the parameter file of the node."""


class _RosLoader(StrictLoader):
    """Reads whole numbers as ROS and C do: 010 is 8, and 0x10 is 16."""


def _whole(loader: _RosLoader, node: yaml.ScalarNode) -> int | float:
    text = str(loader.construct_scalar(node)).lower()
    digits = text.lstrip("+-")
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
    try:
        whole = int(text, base)
    except ValueError:
        return float(text)  # 09, which is a fraction where 07 is not
    return whole if -(2**63) <= whole < 2**63 else float(text)


_RosLoader.add_implicit_resolver(INT, re.compile(r"[-+]?0[xX][0-9a-fA-F]+$"), list("-+0"))
_RosLoader.add_constructor(INT, _whole)


def settings_of(path: str) -> Settings:
    """Return the settings of a file like those in ``config/``."""
    return Settings.from_parameters(parameters_of(path))


def exported(options: argparse.Namespace) -> tuple[Problem, str]:
    """Return problem and algorithm of a parameter file and a robot, for ``delassus export``.

    Raises
    ------
    InputError
        If an option contradicts the file, or as for :func:`parameters_of`.
    """
    for name, option in _OF_ROBOTS.items():
        if getattr(options, name) is not None:
            raise InputError(
                f"{option} is given, but with --urdf that is said by {options.robot}: change it "
                "there, or export from the robot description alone"
            )
    settings = settings_of(options.robot)
    loops = options.loops or settings.loops or None
    robot = Robot.from_urdf(
        Path(options.urdf), settings.base, settings.armature, loops,
        loops_as=options.loops_as or settings.loops_as, lock=settings.lock,
        xacro_arguments=options.xacro, passive=settings.passive and not options.no_passive,
    )  # fmt: skip
    problem = Problem(robot, settings.contacts, settings.axes, outputs_of(options))
    return problem, options.algorithm or settings.algorithm


def parameters_of(path: str) -> dict[str, Any]:
    """Return the parameters in a file like those in ``config/``, by full name.

    Raises
    ------
    InputError
        If the file cannot be read, is not YAML of this form or has a duplicate key, a value has a
        wrong type, or the node lacks a parameter, of which the node itself only warns.
    """
    try:
        content = load_yaml(Path(path), "parameter file", _RosLoader)
    except RobotError as error:  # the reader's, whatever it reads
        raise InputError(str(error)) from error
    parameters = _flat(_section(path, content))
    values: dict[str, Any] = {}
    for name, value in parameters:
        if name in values:  # nested and with dots
            raise InputError(f"parameter file {path!r}: {name!r} appears twice")
        values[name] = _typed(path, name, value)
    contacts = values.get("contacts.names")
    complaints = misspelt(values, contacts) if contacts else ()
    if complaints:
        raise InputError(f"parameter file {path!r}: {complaints[0]}")
    return values


def _section(path: str, content: Any) -> Mapping[Any, Any]:
    """Return the parameters of the one node in the file, or of delassus_node among several."""
    found = dict(_sections("", content))
    own = {name: found[name] for name in found if name.rpartition("/")[2] == "delassus_node"}
    found = own if len(found) > 1 and len(own) == 1 else found
    if len(found) != 1:
        names = ", ".join(found) or "none"
        raise InputError(
            f"parameter file {path!r} must have the parameters of one node, as in "
            f"'/**: {{{_SECTION}: {{…}}}}'; nodes: {names}"
        )
    (parameters,) = found.values()
    if not isinstance(parameters, Mapping):
        raise InputError(f"parameter file {path!r}: {_SECTION} holds no parameters")
    return parameters


def _sections(node: str, content: Any) -> list[tuple[str, Any]]:
    """Return all nodes with their parameters; namespaces nest."""
    if not isinstance(content, Mapping):
        return []
    if _SECTION in content:
        return [(node, content[_SECTION])]
    return [
        section
        for name, inner in content.items()
        for section in _sections(f"{node}/{name}" if node else str(name), inner)
    ]


def _flat(values: Mapping[Any, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Return parameters by full name, whose dots stand for nested keys."""
    flat: list[tuple[str, Any]] = []
    for name, value in values.items():
        full = f"{prefix}{name}"
        flat += _flat(value, f"{full}.") if isinstance(value, Mapping) else [(full, value)]
    return flat


def _typed(path: str, name: str, value: Any) -> Any:
    """Return a value in the type that ROS would use for this parameter."""
    setting = setting_of(name)
    if setting is None:
        return value
    try:
        return setting.parse(name, value)
    except InputError as error:
        raise InputError(f"parameter file {path!r}: {error}") from error
