"""Parameters as plain values: what they describe, what is wrong with them, and config/."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
import yaml

from delassus_ros.errors import ContactError, DelassusError, ProblemError, RobotError
from delassus_ros.settings import Settings

CONFIG = Path(__file__).resolve().parents[1] / "config"


def feet(**changes: Any) -> dict[str, Any]:
    """Parameters of two feet of the quadruped; double underscores in `changes` stand for dots."""
    parameters = {
        "contacts.names": ["LF", "RH"],
        "contacts.LF.frame": "LF_FOOT",
        "contacts.RH.frame": "RH_FOOT",
    }
    return parameters | {key.replace("__", "."): value for key, value in changes.items()}


def urdf() -> str:
    return robots.quadruped().read_text(encoding="utf-8")


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return parameters by full name, as ROS has them."""
    found = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = value
    return found


def config(name: str) -> dict[str, Any]:
    tree = yaml.safe_load((CONFIG / f"{name}.yaml").read_text(encoding="utf-8"))
    assert list(tree) == ["/**"]
    return flat(tree["/**"]["ros__parameters"])


def test_defaults() -> None:
    settings = Settings.from_parameters(feet())
    assert (settings.base, settings.axes, settings.rows) == ("floating", "contact", "active")
    assert settings.algorithm == "pv_osimr"
    problem = settings.problem(urdf())
    assert problem.contacts.names == ("LF", "RH")
    assert problem.contacts.rows == 6
    assert problem.robot.base == "floating"


def test_every_contact_parameter_reaches_the_contact() -> None:
    selection = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    settings = Settings.from_parameters(
        feet(
            contacts__LF__kind="surface",
            contacts__LF__xyz=[0.1, 0.2, 0.3],
            contacts__LF__rpy=[0.0, 0.0, np.pi / 2],
            contacts__RH__kind="selection",
            contacts__RH__selection=selection,
            contacts__RH__moving="position",
        )
    )
    left, right = settings.contacts
    assert left.kind_name == "surface"
    np.testing.assert_allclose(left.placement.translation, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(left.placement.rotation @ [1, 0, 0], [0, 1, 0], atol=1e-15)
    assert right.kind_name == "selection"
    assert right.selection.tolist() == [selection[:6], selection[6:]]
    assert (left.moving, right.moving) == ("nothing", "position")


def test_armature_reaches_the_robot() -> None:
    settings = Settings.from_parameters(feet(armature__names=["RH_KFE"], armature__values=[0.02]))
    joints = {joint.name: joint for joint in settings.problem(urdf()).robot.joints}
    assert joints["RH_KFE"].armature == 0.02
    assert joints["LF_KFE"].armature == 0.0


def test_world_axes_with_a_fixed_base() -> None:
    problem = Settings.from_parameters(feet(base="fixed", axes="world")).problem(urdf())
    assert (problem.axes, problem.robot.base) == ("world", "fixed")


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"base": "flying"}, ProblemError, "unknown base 'flying'.*floating, fixed"),
        ({"axes": "body"}, ProblemError, "unknown axes 'body'.*contact, world"),
        ({"rows": "some"}, ProblemError, "unknown rows 'some'.*active, all"),
        ({"contacts__names": []}, ContactError, "'contacts.names' is empty"),
        ({"contacts__names": ["LF", "LF"]}, ContactError, "'LF' appears twice"),
        ({"contacts__LF__frame": ""}, ContactError, "'contacts.LF.frame' is not set"),
        ({"contacts__names": ["LF", "X"]}, ContactError, "'contacts.X.frame' is not set"),
        ({"contacts__LF__kind": "flat"}, ContactError, "'LF': unknown kind 'flat'"),
        ({"contacts__LF__moving": "pos"}, ContactError, "'LF': unknown moving 'pos'.*'pose'"),
        ({"contacts__LF__kind": "selection"}, ContactError, "LF.selection' has 0 values"),
        (
            {"contacts__LF__kind": "selection", "contacts__LF__selection": [1.0] * 7},
            ContactError,
            "LF.selection' has 7 values; expected the rows of a",
        ),
        (
            {"contacts__LF__kind": "selection", "contacts__LF__selection": [1.0] * 12},
            ContactError,
            "rank 1",
        ),
        ({"contacts__LF__selection": [1.0] * 6}, ContactError, "its kind is 'point'"),
        ({"contacts__LF__xyz": [1.0, 2.0]}, ContactError, "LF.xyz' is .*expected 3"),
        ({"contacts__LF__rpy": [0.0, np.nan, 0.0]}, ContactError, "LF.rpy' is .*expected 3"),
        ({"armature__names": ["LF_HAA"]}, RobotError, "has 1 entries but .* has 0"),
        (
            {"armature__names": ["LF_HAA"] * 2, "armature__values": [0.1, 0.2]},
            RobotError,
            "joint 'LF_HAA' more than once",
        ),
    ],
)
def test_bad_parameters(changes, error, words) -> None:
    with pytest.raises(error, match=words):
        Settings.from_parameters(feet(**changes))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"axes": "world"}, "axes 'world' with base 'floating' needs the orientation"),
        (
            {"contacts__RH__moving": "pose"},
            "'contacts.RH.moving' needs the placement of the contact at run time",
        ),
        ({"contacts__LF__frame": "LF_FOT"}, "unknown frame 'LF_FOT'; did you mean 'LF_FOOT'"),
        ({"armature__names": ["LF"], "armature__values": [0.1]}, "unknown joint 'LF'"),
        ({"armature__names": ["LF_HAA"], "armature__values": [-1.0]}, "LF_HAA.*>= 0"),
        ({"base": "fixed", "contacts__LF__frame": "base"}, "'base' is fixed to the world"),
    ],
)
def test_parameters_that_do_not_fit_the_robot(changes, words) -> None:
    with pytest.raises(DelassusError, match=words):
        Settings.from_parameters(feet(**changes)).problem(urdf())


def test_a_description_that_is_no_xml_is_not_taken_for_a_path() -> None:
    with pytest.raises(RobotError, match="XML"):
        Settings.from_parameters(feet()).problem(str(robots.quadruped()))
