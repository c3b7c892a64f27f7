"""Parameters and descriptions from which nothing can be computed are refused in words."""

from __future__ import annotations

from typing import Any

import pytest
import robots
from tick_support import START
from urdf_text import joint, link, robot_xml

from delassus.errors import DelassusError
from delassus_ros.inputs.limits import Limits
from delassus_ros.node.computation import Computation
from delassus_ros.node.parameters import Settings

BELTS = """
couplings:
  - {name: LF_BELT, joints: {LF_HFE: 1, LF_KFE: 2}, offset: 0.7}
"""
XML_EXPECTED = (
    "'/opt/robots/quadruped.urdf' is not how XML starts; expected the text of a URDF, which "
    "starts with '<robot'. It looks like a path: give what the file contains, or start a launch "
    "file with robot_description_file:=PATH"
)
NO_VELOCITY = "needs the linear velocity of the base, and an Imu does not tell it"


def sliding(kind: str) -> str:
    """Return a description with a joint of several positions."""
    parts = link("LF_FOOT"), link("b"), joint("slide", "LF_FOOT", "b", kind)
    return robot_xml(*parts)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"robot_description": "<robot"}, "XML"),
    ({"robot_description": "/opt/robots/quadruped.urdf"}, XML_EXPECTED),
    *(
        (
            {"robot_description": sliding(kind), "base": "fixed", "contacts.LF.frame": "b"},
            f"joint 'slide' is {kind}",
        )
        for kind in ("planar", "floating")
    ),
    ({"contacts.LF.frame": ""}, "'contacts.LF.frame' is not set"),
    ({"contacts.LF.frame": "LF_FOT"}, "unknown frame 'LF_FOT'; did you mean 'LF_FOOT'?"),
    ({"contacts.LF.kind": "flat"}, "contact 'LF': unknown contacts.LF.kind 'flat'"),
    ({"contacts.LF.moving": "it"}, "contact 'LF': unknown contacts.LF.moving 'it'"),
    ({"algorithm": "denze"}, "unknown algorithm 'denze'; did you mean 'dense'?"),
    ({"base": "flying"}, "unknown base 'flying'"),
    ({"axes": "world", "orientation.frame": "imu_lnk"}, "unknown frame 'imu_lnk'"),
    ({"loops": "/no/such/file.yaml"}, "the loops file '/no/such/file.yaml'"),
    ({"loops": BELTS, "algorithm": "kjr"}, "algorithm 'kjr' cannot solve this problem"),
    (
        {"loops": BELTS, "reference.names": ["LF"], "reference.values": [0.1]},
        "reference: unknown joint 'LF'; joints: LF_HAA, ",
    ),
    (
        {"reference.names": ["LF_HAA"], "reference.values": [0.1]},
        "parameter 'reference.names' is given, but robot",
    ),
    ({"outputs": ["G", "a"]}, "unknown output 'a'"),
    ({"outputs": ["h"], "gravity": [0.0, 9.81]}, "'gravity' is [0.0, 9.81]; expected 3"),
    ({"outputs": ["h"], "algorithm": "pinocchio"}, "h"),
    *(
        ({"outputs": ["G", name], "axes": axes, "orientation.source": "imu"}, NO_VELOCITY)
        for axes, names in (
            ("contact", ("h", "qdd0", "JdotV", "a0", "forces")),
            ("world", ("h", "qdd0", "JdotV")),
        )
        for name in names
    ),
    (
        {"outputs": ["forces"], "contacts.LF.kind": "surface"},
        "contact 'LF' is a surface and has no dimensions; expected length and width in m",
    ),
    (
        {
            "outputs": ["forces"],
            "contacts.LF.kind": "selection",
            "contacts.LF.selection": [0.0] * 5 + [1.0],
        },
        "contact 'LF' is of kind 'selection'; friction needs points and surfaces",
    ),
    (
        {"contacts.LF.moving": "pose", "contacts.source": "force"},
        "'force', which needs contacts that stay where they are, but 'contacts.LF.moving'",
    ),
    ({"armature.names": ["LF"], "armature.values": [0.1]}, "unknown joint 'LF'"),
    ({"armature.names": ["LF_HAA"], "armature.values": [-1.0]}, ">= 0"),
    ({"base": "fixed", "contacts.LF.frame": "base"}, "'base' is fixed to the world"),
]
"""Parameters besides those of one contact of the quadruped, and words of the refusal."""


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_configuration_refused(changes: dict[str, Any], words: str) -> None:
    parameters = {"contacts.names": ["LF"], "contacts.LF.frame": "LF_FOOT", **changes}
    description = parameters.pop("robot_description", robots.unlimited())
    with pytest.raises(DelassusError) as refused:
        Computation.make(
            Settings.from_parameters(parameters), description, Limits(), lambda: START,
            lambda kind, text: None,
        )  # fmt: skip
    assert words in str(refused.value)
