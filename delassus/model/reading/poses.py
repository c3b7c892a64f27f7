"""Named poses of robots: keyframes of MuJoCo, configurations of Pinocchio, states of SRDF."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from delassus.errors import DelassusWarning, RobotError
from delassus.model.mechanism import Mechanism, MechanismT
from delassus.model.positions import q_of
from delassus.model.reading.mujoco_state import MujocoMap
from delassus.model.reading.numbers import numbers, numbers_in
from delassus.model.reading.pinocchio import model_of
from delassus.model.reading.pinocchio_state import PinocchioMap
from delassus.model.reading.states import StateMap
from delassus.model.reading.xml import MAX_BYTES, MOST_SHOWN, parse_xml, path_of, read_regular_file
from delassus.model.spatial import Array

Positions = dict[str, float | list[float]]
"""Positions by the names of joints [rad, m]: numbers, or lists for several entries in q."""


def with_poses(robot: MechanismT, poses: Mapping[str, Mapping[str, ArrayLike]]) -> MechanismT:
    """Return a robot with named poses; joints that the robot lacks are left out of them.

    Raises
    ------
    RobotError
        If a joint has another count of numbers, or a quaternion is not of unit norm; names the
        pose and the joint.
    """
    found = robot.replaced(named_poses=poses)
    for name, positions in found.named_poses.items():
        try:
            q_of(found, positions)
        except RobotError as error:
            raise RobotError(f"pose {name!r}: {error}") from error
    return found


def keyframes(robot: Mechanism, model: Any) -> dict[str, Positions]:
    """Return the positions of all joints at the keyframes of a mujoco.MjModel, by name.

    A keyframe without a name is ``key 0``, with its number. The pose of the floating base is left
    out, and so are keyframes that contradict a joint which an equality holds; a warning names
    these.

    Parameters
    ----------
    robot : the robot that was read from the model.
    """
    if not model.nkey:
        return {}
    keys = ((model.key(k).name or f"key {k}", model.key_qpos[k]) for k in range(model.nkey))
    return _poses(robot, MujocoMap(robot, model), keys, "keyframe")


def reference_configurations(robot: Mechanism, model: Any) -> dict[str, Positions]:
    """Return the positions of all joints at the ``referenceConfigurations`` of a pinocchio.Model.

    The pose of the floating base is left out, and so are configurations that the robot cannot
    have; a warning names these.

    Parameters
    ----------
    robot : the robot that was read from the model.
    """
    entries = [(entry.key(), entry.data()) for entry in model_of(model).referenceConfigurations]
    if not entries:
        return {}
    return _poses(robot, PinocchioMap(robot, model), entries, "reference configuration")


def _poses(
    robot: Mechanism, states: StateMap, configurations: Iterable[tuple[str, Array]], what: str
) -> dict[str, Positions]:
    """Return the positions of all joints at configurations of another library, by name."""
    found: dict[str, Positions] = {}
    for name, configuration in configurations:
        try:
            q, _ = states.positions_from(configuration)
        except RobotError as error:
            warnings.warn(f"{what} {name!r} is left out: {error}", DelassusWarning, stacklevel=5)
            continue
        found[name] = {
            joint.name: _position(q[offset : offset + joint.kind.nq])
            for joint, offset in zip(robot.joints, robot.q_offsets, strict=True)
            if joint.kind.nq
        }
    return found


def group_states(source: str | Path) -> dict[str, Positions]:
    """Return the positions of joints in the group states of an SRDF, by name.

    States of several groups with one name are one pose; of a joint in several of them the last
    position counts.

    Parameters
    ----------
    source : path of the file, or the XML itself.

    Raises
    ------
    RobotError
        If the file cannot be read, the XML is broken, hostile or no SRDF, or a state or one of
        its joints lacks a name or finite numbers; names the file.
    """
    path = path_of(source)
    what = "SRDF" if path is None else f"SRDF file {str(path)[:MOST_SHOWN]!r}"
    try:
        root = parse_xml(source if path is None else read_regular_file(path, MAX_BYTES))
        if root.tag != "robot":
            raise RobotError(f"the root is <{root.tag[:MOST_SHOWN]}>; expected <robot>")
        found: dict[str, Positions] = {}
        for state in root.findall("group_state"):
            name = state.get("name", "")
            if not name:
                raise RobotError("a <group_state> has no name")
            positions = found.setdefault(name, {})
            for joint in state.findall("joint"):
                where = f"joint {joint.get('name', '')!r} of group state {name!r}"
                values = numbers_in(joint.get("value", ""))
                position = _position(numbers(values, len(values), where))
                positions[joint.get("name", "")] = position
    except OSError as error:
        raise RobotError(f"{what} cannot be read: {error.strerror or error}") from error
    except (RobotError, ValueError) as error:
        raise RobotError(f"{what}: {error}") from error
    return found


def _position(entries: Array) -> float | list[float]:
    return float(entries[0]) if len(entries) == 1 else entries.tolist()


def srdf_beside(file: Path) -> Path | None:
    """Return the SRDF file of a URDF file by its place; None without one.

    The file has the stem of the URDF, or is the only one, in the folder of the URDF or in the
    folder ``srdf`` beside this one.
    """
    for folder in (file.parent, file.parent.parent / "srdf"):
        found = sorted(folder.glob("*.srdf"))
        named = [each for each in found if each.stem == file.name.partition(".")[0]]
        if named or len(found) == 1:
            return (named or found)[0]
    return None
