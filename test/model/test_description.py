"""What is refused, dropped or tolerated in the links and joints of a URDF."""

from __future__ import annotations

import re

import numpy as np
import pytest
from urdf_text import INERTIAL, joint, link, robot_xml

from delassus_ros.errors import RobotError
from delassus_ros.model import Robot
from delassus_ros.model.reading.check import checked
from delassus_ros.model.reading.description import describe
from delassus_ros.model.reading.elements import MAX_NAME
from delassus_ros.model.reading.xml import parse_xml


def refuses(words: str, *parts: str, head: str = 'name="test"') -> None:
    """Assert that this URDF is refused with these words."""
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(robot_xml(*parts, head=head))


def with_joint(inside: str = "", kind: str = "revolute") -> tuple[str, ...]:
    """Return two links and a joint 'knee' with this content besides its links."""
    ends = '<parent link="a"/><child link="b"/>'
    return link("a"), link("b"), f'<joint name="knee" type="{kind}">{ends}{inside}</joint>'


NEWER = 'name="test" version="1.1"'
"""Attributes of a robot of URDF 1.1, which has quaternions."""


def with_inertial(old: str, new: str) -> str:
    """Return a link 'shank' whose inertial differs from a sound one."""
    assert old in INERTIAL
    return link("shank", INERTIAL.replace(old, new))


# --- robot ------------------------------------------------------------------------------------


def test_refuses_another_root_element() -> None:
    with pytest.raises(
        RobotError, match="root element is <sdf>, expected <robot>; SDF is not read.* or its MJCF"
    ):
        Robot.from_urdf('<sdf version="1.9"><model name="m"/></sdf>')


def test_refuses_a_robot_without_name() -> None:
    with pytest.raises(RobotError, match="a <robot> has no name"):
        Robot.from_urdf(f"<robot>{link('a')}</robot>")


def test_a_default_namespace_changes_nothing() -> None:
    parts = (link("a"), link("b"), joint("j", "a", "b"))
    plain = robot_xml(*parts)
    drake = plain.replace("<robot ", '<robot xmlns="http://drake.mit.edu" ')
    assert Robot.from_urdf(drake).to_bytes() == Robot.from_urdf(plain).to_bytes()


def test_elements_of_another_namespace_are_dropped() -> None:
    plain = robot_xml(link("a"))
    foreign = plain.replace("<robot ", '<robot xmlns:c="urn:x" ').replace(
        "</robot>", '<c:link name="b"/></robot>'
    )
    assert Robot.from_urdf(foreign).to_bytes() == Robot.from_urdf(plain).to_bytes()


@pytest.mark.parametrize(
    "dropped",
    [
        '<gazebo reference="a"><kp>1</kp></gazebo>',
        '<transmission name="t"><joint name="j"><x/></joint></transmission>',
        '<ros2_control name="c" type="system"><joint name="j"/></ros2_control>',
        '<sensor name="s" type="camera"/>',
        '<material name="grey"/>',
    ],
)
def test_other_tags_are_dropped(dropped: str) -> None:
    assert Robot.from_urdf(robot_xml(link("a"), dropped)).to_bytes() == (
        Robot.from_urdf(robot_xml(link("a"))).to_bytes()
    )


# --- names ------------------------------------------------------------------------------------


def test_refuses_repeated_and_missing_names() -> None:
    refuses("link 'a' appears twice; names must be unique", link("a"), link("a"))
    refuses(
        "joint 'j' appears twice; names must be unique",
        *(link(name) for name in "abc"), joint("j", "a", "b"), joint("j", "b", "c"),
    )  # fmt: skip
    refuses("a <link> has no name", "<link/>")
    refuses("a <joint> has no name", link("a"), '<joint type="fixed" name=""/>')


def test_refuses_endless_names_without_repeating_them() -> None:
    with pytest.raises(RobotError, match=r"names may have at most 1000 characters") as caught:
        Robot.from_urdf(robot_xml(link("x" * (MAX_NAME + 1))))
    assert len(str(caught.value)) < 200


# --- joints -----------------------------------------------------------------------------------


def test_refuses_unknown_joint_types() -> None:
    known = "types: fixed, revolute, continuous, prismatic, planar, floating"
    refuses(f"joint 'knee': unknown joint type 'ball'; {known}", *with_joint(kind="ball"))
    text = robot_xml(*with_joint()).replace(' type="revolute"', "")
    with pytest.raises(RobotError, match="joint 'knee': unknown joint type ''; types: fixed"):
        Robot.from_urdf(text)


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        ('independent="no"', "independent must be 'true' or 'false', got 'no'"),
        ('independent="FALSE"', "independent must be 'true' or 'false', got 'FALSE'"),
        ('Independent="false"', "Independent=… is not read; did you mean independent=…"),
        ('independant="false"', "independant=… is not read; did you mean independent=…"),
    ],
)
def test_refuses_a_statement_about_independence_that_is_none(stated: str, words: str) -> None:
    odd = robot_xml(*with_joint()).replace('type="revolute"', f'type="revolute" {stated}')
    with pytest.raises(RobotError, match=f"joint 'knee': {words}"):
        Robot.from_urdf(odd)


@pytest.mark.parametrize("stated", ["true", "True", "false", "False"])
def test_independence_may_be_written_as_python_does(stated: str) -> None:
    text = robot_xml(*with_joint()).replace('type="re', f'independent="{stated}" type="re')
    read = describe(checked(parse_xml(text))).joints["knee"]
    assert read.independent is (stated in ("true", "True"))


def test_mimic_on_a_fixed_joint_means_nothing() -> None:
    robot = Robot.from_urdf(robot_xml(*with_joint('<mimic joint="other"/>', "fixed")))
    assert robot.joint_names == ()


@pytest.mark.parametrize("kind", ["revolute", "continuous", "prismatic", "planar"])
@pytest.mark.parametrize("axis", ["0 0 0", "1e-200 0 0"])
def test_refuses_a_zero_axis(kind: str, axis: str) -> None:
    refuses(
        "joint 'knee': the axis must not be zero; give its direction in <axis xyz>",
        *with_joint(f'<axis xyz="{axis}"/>', kind),
    )


@pytest.mark.parametrize(
    ("axis", "words"),
    [
        ('<axis xyz="nan 0 1"/>', "joint 'knee': axis: numbers must be finite .* got nan 0 1"),
        ('<axis xyz="inf 0 1"/>', "joint 'knee': axis: numbers must be finite .* got inf 0 1"),
        ('<axis xyz="0 1"/>', "^joint 'knee': <axis xyz=…>: expected 3 numbers, got 2$"),
        ('<axis xyz="x y z"/>', "joint 'knee': <axis xyz=…>: 'x' is not a number"),
        ("<axis/>", "joint 'knee': <axis> has no attribute 'xyz'"),
        ('<axis xyz="0 0 1"/><axis xyz="0 1 0"/>', "joint 'knee': <axis> appears 2 times"),
    ],
)
def test_refuses_unreadable_axes(axis: str, words: str) -> None:
    refuses(words, *with_joint(axis))


@pytest.mark.parametrize("kind", ["fixed", "floating"])
def test_the_axis_of_fixed_and_floating_joints_means_nothing(kind: str) -> None:
    Robot.from_urdf(robot_xml(*with_joint('<axis xyz="0 0 0"/>', kind)))


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ('<origin xyz="0 nan 0"/>', "joint 'knee': <origin xyz=…>: numbers must be finite"),
        ('<origin rpy="0 0 -inf"/>', "joint 'knee': <origin rpy=…>: numbers must be finite"),
        ('<origin xyz="1e300 0 0"/>', "<origin xyz=…>: .* at most 1e.09 in SI units"),
        ('<origin xyz="1 2"/>', "^joint 'knee': <origin xyz=…>: expected 3 numbers, got 2$"),
        ('<origin rpy="1 2 3 4"/>', "^joint 'knee': <origin rpy=…>: expected 3 numbers, got 4$"),
        ('<origin xyz=""/>', "^joint 'knee': <origin xyz=…>: expected 3 numbers, got 0$"),
        ('<origin rpy="a b c"/>', "joint 'knee': <origin rpy=…>: 'a' is not a number"),
        ("<origin/><origin/>", "joint 'knee': <origin> appears 2 times; one is meant"),
        ('<origin quat="0 0 0 1"/>', "joint 'knee': <origin>: unknown attribute 'quat'"),
        ('<origin quat_xyzw="1 2 3"/>', "<origin quat_xyzw=…>: expected 4 numbers, got 3"),
        ('<origin quat_xyzw="0 0 nan 1"/>', "<origin quat_xyzw=…>: numbers must be finite"),
        ('<origin quat_xyzw="0 0 1 1"/>', r"<origin quat_xyzw=…> has norm 1.41421; expected a"),
        ('<origin quat_xyzw="0 0 0 0"/>', "joint 'knee': <origin quat_xyzw=…> has norm 0;"),
        ('<origin rpy="0 0 0" quat_xyzw="0 0 0 1"/>', "'knee': <origin> has both rpy and quat"),
    ],
)
def test_refuses_unreadable_origins(origin: str, words: str) -> None:
    refuses(words, *with_joint(origin), head=NEWER)


def test_refuses_quaternions_of_older_versions_and_unknown_versions() -> None:
    origin = '<origin quat_xyzw="0 0 0 1"/>'
    words = "<origin quat_xyzw=…> needs <robot version=\"1.1\">"
    for head in ('name="test"', 'name="test" version="1.0"'):
        refuses(f"joint 'knee': {words}", *with_joint(origin), head=head)
        refuses(f"link 'shank': {words}", with_inertial("rpy=", "quat_xyzw="), head=head)
    for version in ("1", "2.0", ""):
        words = f"unknown version of URDF '{version}'; .*versions: 1.0, 1.1, 1.2"
        refuses(words, link("a"), head=f'name="test" version="{version}"')


def test_further_limits_of_newer_versions_change_nothing() -> None:
    more = '<limit lower="-1" upper="2"{}/>'
    plain, newer = (
        Robot.from_urdf(robot_xml(*with_joint(more.format(text)), head='name="t" version="1.2"'))
        for text in ("", ' acceleration="3" deceleration="2" jerk="9"')
    )
    assert newer.to_bytes() == plain.to_bytes() and newer.joints[1].upper == 2.0


def test_missing_parts_of_an_origin_are_zero() -> None:
    def placement(origin: str) -> list[float]:
        pose = Robot.from_urdf(robot_xml(*with_joint(origin))).joints[1].placement
        return [*pose.translation, *pose.rotation.ravel()]

    identity = [0, 0, 0, *np.eye(3).ravel()]
    assert placement("") == placement("<origin/>") == identity
    assert placement('<origin xyz="1 2 3"/>') == [1, 2, 3, *np.eye(3).ravel()]
    assert placement('<origin rpy="0 0 0.5"/>')[:3] == [0, 0, 0]
    assert placement('<origin rpy="0 0 0.5"/>')[3] == np.cos(0.5)


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ('<limit lower="nan" upper="1"/>', "joint 'knee': limits must be numbers, got nan and 1"),
        ('<limit lower="0 1" upper="2"/>', "<limit lower=…>: expected 1 number, got 2$"),
        ('<limit lower="x"/>', "joint 'knee': <limit lower=…>: 'x' is not a number"),
    ],
)
def test_refuses_unreadable_limits(limit: str, words: str) -> None:
    refuses(words, *with_joint(limit))


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
    moved = Robot.from_urdf(robot_xml(*with_joint(f"<limit {limit}/>"))).joints[1]
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
    text = robot_xml(*with_joint(f'<limit lower="-1" upper="2" {name}="{written}"/>'))
    moved = Robot.from_urdf(text).joints[1]
    assert (moved.lower, moved.upper, getattr(moved, name)) == (-1.0, 2.0, limit)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<joint name="knee" type="fixed"><child link="b"/></joint>', "parent"),
        ('<joint name="knee" type="fixed"><parent link="a"/></joint>', "child"),
    ],
)
def test_refuses_joints_without_ends(text: str, words: str) -> None:
    refuses(f"joint 'knee': Required element not set in XML: {words}", link("a"), link("b"), text)


@pytest.mark.parametrize("end", ["parent", "child"])
def test_refuses_ends_without_link(end: str) -> None:
    text = robot_xml(*with_joint())
    for nothing in (f"<{end}/>", f'<{end} link=""/>'):
        name = {"parent": "a", "child": "b"}[end]
        with pytest.raises(RobotError, match=f"joint 'knee': <{end}> has no attribute 'link'"):
            Robot.from_urdf(text.replace(f'<{end} link="{name}"/>', nothing))


ODD_NUMBERS = ["2_0", "\u0662", "\uff12", "1,5", "0x2", "1d0", "2kg", "1/2", "--1", "1e", ".e5"]


@pytest.mark.parametrize("odd", ODD_NUMBERS)
def test_refuses_numbers_that_xml_does_not_have(odd: str) -> None:
    words = f"{re.escape(repr(odd))} is not a number"
    axis = f'<axis xyz="0 {odd} 1"/>'
    refuses(f"joint 'knee': <axis xyz=…>: {words}", *with_joint(axis))
    refuses(f"joint 'knee': <origin rpy=…>: {words}", *with_joint(f'<origin rpy="0 0 {odd}"/>'))
    refuses(f"joint 'knee': <limit upper=…>: {words}", *with_joint(f'<limit upper="{odd}"/>'))
    mimic = f'<mimic joint="knee" multiplier="{odd}"/>'
    refuses(f"joint 'knee': mimic multiplier: {words}", *with_joint(mimic))
    refuses(f"link 'shank': <mass value=…>: {words}", with_inertial('"1.5"', f'"{odd}"'))
    refuses(f"link 'shank': <inertia ixx=…>: {words}", with_inertial('ixx="0.02"', f'ixx="{odd}"'))


def test_only_the_white_space_of_xml_separates_numbers() -> None:
    refuses("<axis xyz=…>: '0\\\\xa00' is not a number", *with_joint('<axis xyz="0\xa00 1"/>'))
    origin = '<origin xyz="&#9;+2\n.5 &#13;1e-3 "/>'
    placement = Robot.from_urdf(robot_xml(*with_joint(origin))).joints[1].placement
    assert placement.translation.tolist() == [2.0, 0.5, 0.001]


# --- inertia ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('value="1.5"', 'value="-1.5"', "link 'shank': mass must be >= 0 kg, got -1.5"),
        ('value="1.5"', 'value="nan"', "link 'shank': mass: numbers must be finite .*got nan"),
        ('value="1.5"', 'value="inf"', "link 'shank': mass: numbers must be finite .*got inf"),
        ('value="1.5"', 'value="heavy"', "link 'shank': <mass value=…>: 'heavy' is not a number"),
        ('value="1.5"', "", "link 'shank': <mass> has no attribute 'value'"),
        ('<mass value="1.5"/>', "", "link 'shank': Required element not set in XML: mass"),
        ('ixx="0.02"', 'ixx="nan"', "link 'shank': inertia: numbers must be finite"),
        ('ixx="0.02"', "", "link 'shank': Required attribute not set in XML: ixx .*inertia"),
        ('ixx="0.02"', 'ixx=""', "link 'shank': <inertia ixx=…>: expected 1 number, got 0"),
        ('xyz="0.1 0.02 -0.03"', 'xyz="0 nan 0"', "link 'shank': <origin xyz=…>: .* got 0 nan 0"),
        ('rpy="0.3 -0.2 0.1"', 'rpy="0 0 inf"', "link 'shank': <origin rpy=…>: .* got 0 0 inf"),
        ("<mass", '<mass value="1"/><mass', "link 'shank': <mass> appears 2 times"),
    ],
)
def test_refuses_unreadable_inertials(old: str, new: str, words: str) -> None:
    refuses(words, with_inertial(old, new))


def test_refuses_two_inertials() -> None:
    refuses("link 'shank': <inertial> appears 2 times", link("shank", INERTIAL * 2))


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
