"""What is refused, dropped or tolerated in the links and joints of a URDF."""

from __future__ import annotations

import re

import numpy as np
import pytest
from urdf_text import INERTIAL, joint, link, robot_xml

from delassus.errors import RobotError
from delassus.model import Robot
from delassus.model.reading.check import checked
from delassus.model.reading.description import describe
from delassus.model.reading.elements import MAX_NAME
from delassus.model.reading.xml import parse_xml


def knee(
    inside: str = "", kind: str = "revolute", head: str = 'name="test"', stated: str = ""
) -> str:
    """Return a URDF of a joint 'knee' with this content besides its links."""
    ends = '<parent link="a"/><child link="b"/>'
    written = f'<joint name="knee"{stated} type="{kind}">{ends}{inside}</joint>'
    return robot_xml(link("a"), link("b"), written, head=head)


def shank(old: str, new: str, head: str = 'name="test"') -> str:
    """Return a URDF of a link 'shank' whose inertial differs from a sound one."""
    assert old in INERTIAL
    return robot_xml(link("shank", INERTIAL.replace(old, new)), head=head)


def version(number: str) -> str:
    """Return the attributes of a robot of a version of URDF; quaternions are of 1.1."""
    return f'name="test" version="{number}"'


ENDS = {"parent": "a", "child": "b"}
ODD_NUMBERS = ["2_0", "\u0662", "\uff12", "1,5", "0x2", "1d0", "2kg", "1/2", "--1", "1e", ".e5"]
"""What Python or others take for a number, and XML does not."""

ROBOTS = [
    (
        '<sdf version="1.9"><model name="m"/></sdf>',
        "root element is <sdf>, expected <robot>; SDF is not read.* or its MJCF",
    ),
    (f"<robot>{link('a')}</robot>", "a <robot> has no name"),
    (robot_xml(link("a"), link("a")), "link 'a' appears twice; names must be unique"),
    (
        robot_xml(*map(link, "abc"), joint("j", "a", "b"), joint("j", "b", "c")),
        "joint 'j' appears twice; names must be unique",
    ),
    (robot_xml("<link/>"), "a <link> has no name"),
    (robot_xml(link("a"), '<joint type="fixed" name=""/>'), "a <joint> has no name"),
    *(
        (robot_xml(link("a"), head=version(odd)),
         f"unknown version of URDF '{odd}'; .*versions: 1.0, 1.1, 1.2")
        for odd in ("1", "2.0", "")
    ),
]  # fmt: skip
JOINTS = [
    (
        knee(kind="ball"),
        "joint 'knee': unknown joint type 'ball'; types: fixed, revolute, continuous, prismatic, "
        "planar, floating",
    ),
    (knee().replace(' type="revolute"', ""), "joint 'knee': unknown joint type ''; types: fixed"),
    *(
        (knee(stated=f" {stated}"), f"joint 'knee': {words}")
        for stated, words in (
            ('independent="no"', "independent must be 'true' or 'false', got 'no'"),
            ('independent="FALSE"', "independent must be 'true' or 'false', got 'FALSE'"),
            ('Independent="false"', "Independent=… is not read; did you mean independent=…"),
            ('independant="false"', "independant=… is not read; did you mean independent=…"),
        )
    ),
    *(
        (knee().replace(f'<{end} link="{ENDS[end]}"/>', ""),
         f"joint 'knee': Required element not set in XML: {end}")
        for end in ENDS
    ),
    *(
        (knee().replace(f'<{end} link="{ENDS[end]}"/>', nothing),
         f"joint 'knee': <{end}> has no attribute 'link'")
        for end in ENDS for nothing in (f"<{end}/>", f'<{end} link=""/>')
    ),
]  # fmt: skip
AXES = [
    *(
        (knee(f'<axis xyz="{zero}"/>', kind),
         "joint 'knee': the axis must not be zero; give its direction in <axis xyz>")
        for kind in ("revolute", "continuous", "prismatic", "planar")
        for zero in ("0 0 0", "1e-200 0 0")
    ),
    *(
        (knee(inside), words)
        for inside, words in (
            ('<axis xyz="nan 0 1"/>', "joint 'knee': axis: numbers must be finite .* got nan 0 1"),
            ('<axis xyz="inf 0 1"/>', "joint 'knee': axis: numbers must be finite .* got inf 0 1"),
            ('<axis xyz="0 1"/>', "^joint 'knee': <axis xyz=…>: expected 3 numbers, got 2$"),
            ('<axis xyz="x y z"/>', "joint 'knee': <axis xyz=…>: 'x' is not a number"),
            ('<axis xyz="0\xa00 1"/>', "<axis xyz=…>: '0\\\\xa00' is not a number"),
            ("<axis/>", "joint 'knee': <axis> has no attribute 'xyz'"),
            ('<axis xyz="0 0 1"/><axis xyz="0 1 0"/>', "joint 'knee': <axis> appears 2 times"),
        )
    ),
]  # fmt: skip
ORIGINS = [
    *(
        (knee(inside, head=version("1.1")), words)
        for inside, words in (
            ('<origin xyz="0 nan 0"/>', "joint 'knee': <origin xyz=…>: numbers must be finite"),
            ('<origin rpy="0 0 -inf"/>', "joint 'knee': <origin rpy=…>: numbers must be finite"),
            ('<origin xyz="1e300 0 0"/>', "<origin xyz=…>: .* at most 1e.09 in SI units"),
            ('<origin xyz="1 2"/>', "^joint 'knee': <origin xyz=…>: expected 3 numbers, got 2$"),
            ('<origin rpy="1 2 3 4"/>', "^joint 'knee': <origin rpy=…>: expected 3 numbers, got "
             "4$"),
            ('<origin xyz=""/>', "^joint 'knee': <origin xyz=…>: expected 3 numbers, got 0$"),
            ('<origin rpy="a b c"/>', "joint 'knee': <origin rpy=…>: 'a' is not a number"),
            ("<origin/><origin/>", "joint 'knee': <origin> appears 2 times; one is meant"),
            ('<origin quat="0 0 0 1"/>', "joint 'knee': <origin>: unknown attribute 'quat'"),
            ('<origin quat_xyzw="1 2 3"/>', "<origin quat_xyzw=…>: expected 4 numbers, got 3"),
            ('<origin quat_xyzw="0 0 nan 1"/>', "<origin quat_xyzw=…>: numbers must be finite"),
            ('<origin quat_xyzw="0 0 1 1"/>', "<origin quat_xyzw=…> has norm 1.41421; expected a"),
            ('<origin quat_xyzw="0 0 0 0"/>', "joint 'knee': <origin quat_xyzw=…> has norm 0;"),
            ('<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>', "'knee': <origin> has both rpy and "
             "quat"),
        )
    ),
    *(
        (text, f"{where}: <origin quat_xyzw=…> needs <robot version=\"1.1\">")
        for head in ('name="test"', version("1.0"))
        for text, where in (
            (knee('<origin quat_xyzw="0 0 0 1"/>', head=head), "joint 'knee'"),
            (shank("rpy=", "quat_xyzw=", head), "link 'shank'"),
        )
    ),
]  # fmt: skip
LIMITS = [
    (
        knee('<limit lower="nan" upper="1"/>'),
        "joint 'knee': limits must be numbers, got nan and 1",
    ),
    (knee('<limit lower="0 1" upper="2"/>'), "<limit lower=…>: expected 1 number, got 2$"),
    (knee('<limit lower="x"/>'), "joint 'knee': <limit lower=…>: 'x' is not a number"),
]
INERTIALS = [
    *(
        (shank(old, new), words)
        for old, new, words in (
            ('value="1.5"', 'value="-1.5"', "link 'shank': mass must be >= 0 kg, got -1.5"),
            ('value="1.5"', 'value="nan"', "link 'shank': mass: numbers must be finite .*got nan"),
            ('value="1.5"', 'value="inf"', "link 'shank': mass: numbers must be finite .*got inf"),
            ('value="1.5"', 'value="heavy"', "link 'shank': <mass value=…>: 'heavy' is not a "
             "number"),
            ('value="1.5"', "", "link 'shank': <mass> has no attribute 'value'"),
            ('<mass value="1.5"/>', "", "link 'shank': Required element not set in XML: mass"),
            ('ixx="0.02"', 'ixx="nan"', "link 'shank': inertia: numbers must be finite"),
            ('ixx="0.02"', "", "link 'shank': Required attribute not set in XML: ixx .*inertia"),
            ('ixx="0.02"', 'ixx=""', "link 'shank': <inertia ixx=…>: expected 1 number, got 0"),
            ('"0.1 0.02 -0.03"', '"0 nan 0"', "link 'shank': <origin xyz=…>: .* got 0 nan 0"),
            ('"0.3 -0.2 0.1"', '"0 0 inf"', "link 'shank': <origin rpy=…>: .* got 0 0 inf"),
            ("<mass", '<mass value="1"/><mass', "link 'shank': <mass> appears 2 times"),
        )
    ),
    (robot_xml(link("shank", INERTIAL * 2)), "link 'shank': <inertial> appears 2 times"),
]  # fmt: skip
NUMBERS = [
    (text, f"{where}: {re.escape(repr(odd))} is not a number")
    for odd in ODD_NUMBERS
    for text, where in (
        (knee(f'<axis xyz="0 {odd} 1"/>'), "joint 'knee': <axis xyz=…>"),
        (knee(f'<origin rpy="0 0 {odd}"/>'), "joint 'knee': <origin rpy=…>"),
        (knee(f'<limit upper="{odd}"/>'), "joint 'knee': <limit upper=…>"),
        (knee(f'<mimic joint="knee" multiplier="{odd}"/>'), "joint 'knee': mimic multiplier"),
        (shank('"1.5"', f'"{odd}"'), "link 'shank': <mass value=…>"),
        (shank('ixx="0.02"', f'ixx="{odd}"'), "link 'shank': <inertia ixx=…>"),
    )
]


@pytest.mark.parametrize(
    ("text", "words"), ROBOTS + JOINTS + AXES + ORIGINS + LIMITS + INERTIALS + NUMBERS
)
def test_refused(text: str, words: str) -> None:
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(text)


def test_endless_name_refused_in_a_short_message() -> None:
    with pytest.raises(RobotError, match=r"names may have at most 1000 characters") as caught:
        Robot.from_urdf(robot_xml(link("x" * (MAX_NAME + 1))))
    assert len(str(caught.value)) < 200


# --- robot ------------------------------------------------------------------------------------


def test_default_namespace_without_effect() -> None:
    parts = (link("a"), link("b"), joint("j", "a", "b"))
    plain = robot_xml(*parts)
    drake = plain.replace("<robot ", '<robot xmlns="http://drake.mit.edu" ')
    assert Robot.from_urdf(drake).to_bytes() == Robot.from_urdf(plain).to_bytes()


# --- joints -----------------------------------------------------------------------------------


@pytest.mark.parametrize("stated", ["true", "True", "false", "False"])
def test_independence_may_be_written_as_python_does(stated: str) -> None:
    text = knee(stated=f' independent="{stated}"')
    read = describe(checked(parse_xml(text))).joints["knee"]
    assert read.independent is (stated in ("true", "True"))


def test_mimic_on_a_fixed_joint_without_effect() -> None:
    assert Robot.from_urdf(knee('<mimic joint="other"/>', "fixed")).joint_names == ()


@pytest.mark.parametrize("kind", ["fixed", "floating"])
def test_axis_of_fixed_and_floating_joints_without_effect(kind: str) -> None:
    Robot.from_urdf(knee('<axis xyz="0 0 0"/>', kind))


def test_further_limits_of_newer_versions_without_effect() -> None:
    more = '<limit lower="-1" upper="2"{}/>'
    plain, newer = (
        Robot.from_urdf(knee(more.format(text), head=version("1.2")))
        for text in ("", ' acceleration="3" deceleration="2" jerk="9"')
    )
    assert newer.to_bytes() == plain.to_bytes() and newer.joints[1].upper == 2.0


def test_missing_parts_of_an_origin_are_zero() -> None:
    def placement(origin: str) -> list[float]:
        pose = Robot.from_urdf(knee(origin)).joints[1].placement
        return [*pose.translation, *pose.rotation.ravel()]

    identity = [0, 0, 0, *np.eye(3).ravel()]
    assert placement("") == placement("<origin/>") == identity
    assert placement('<origin xyz="1 2 3"/>') == [1, 2, 3, *np.eye(3).ravel()]
    assert placement('<origin rpy="0 0 0.5"/>')[:3] == [0, 0, 0]
    assert placement('<origin rpy="0 0 0.5"/>')[3] == np.cos(0.5)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ('lower="2" upper="1"', "lower is above upper: 2 and 1"),
        ('upper="-1"', "lower is above upper: 0 and -1 (lower is not given, which means 0)"),
        ('lower="1"', "lower is above upper: 1 and 0 (upper is not given, which means 0)"),
    ],
)
def test_limits_that_no_position_is_between_are_ignored(
    limit: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    moved = Robot.from_urdf(knee(f"<limit {limit}/>")).joints[1]
    assert (moved.lower, moved.upper) == (-np.inf, np.inf)
    assert caplog.messages == [f"joint 'knee': limits are ignored, as {words}"]


@pytest.mark.parametrize("name", ["effort", "velocity"])
@pytest.mark.parametrize(
    ("written", "limit"),
    [("35", 35.0), ("0", np.inf), ("-1", np.inf), ("x", np.inf), ("", np.inf)],
)
def test_limits_of_effort_and_velocity_are_not_needed(
    name: str, written: str, limit: float
) -> None:
    text = knee(f'<limit lower="-1" upper="2" {name}="{written}"/>')
    moved = Robot.from_urdf(text).joints[1]
    assert (moved.lower, moved.upper, getattr(moved, name)) == (-1.0, 2.0, limit)


def test_white_space_of_xml_separates_numbers() -> None:
    origin = '<origin xyz="&#9;+2\n.5 &#13;1e-3 "/>'
    placement = Robot.from_urdf(knee(origin)).joints[1].placement
    assert placement.translation.tolist() == [2.0, 0.5, 0.001]


# --- inertia ----------------------------------------------------------------------------------


def test_mass_without_inertia_is_a_point_mass() -> None:
    point = '<inertial><origin xyz="0 0 2"/><mass value="3"/></inertial>'
    inertia = Robot.from_urdf(robot_xml(link("a", point))).bodies[0].inertia
    assert inertia.moment.tolist() == [0, 0, 6]
    assert inertia.rotational.tolist() == [[12, 0, 0], [0, 12, 0], [0, 0, 0]]


def test_inertia_is_turned_by_its_origin() -> None:
    def quarter_turned(rpy: str) -> Robot:
        return Robot.from_urdf(robot_xml(link("a", INERTIAL.replace("0.3 -0.2 0.1", rpy))))

    plain = quarter_turned("0 0 0").bodies[0].inertia
    turned = quarter_turned(f"0 0 {np.pi / 2}").bodies[0].inertia
    assert np.array_equal(plain.moment, turned.moment)
    swapped = np.array([[0.03, -0.001, -0.002], [-0.001, 0.02, 0.0], [-0.002, 0.0, 0.04]])
    unturned = np.array([[0.02, 0.001, 0.0], [0.001, 0.03, 0.002], [0.0, 0.002, 0.04]])
    assert np.allclose(
        turned.rotational - plain.rotational, swapped - unturned, rtol=0, atol=1e-15
    )
