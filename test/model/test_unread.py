"""What would change a robot if it were dropped unread: refused by name, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from urdf_text import INERTIAL, joint, link, robot_xml

from delassus_ros.errors import RobotError
from delassus_ros.model import Robot

XACRO = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
SOUND = robot_xml(link("a"), link("b"), joint("knee", "a", "b"))
ENDS = '<predecessor link="a"/><successor link="b"/>'


def replaced(old: str, new: str, declared: str = XACRO) -> str:
    """Return a sound URDF with something else in it, and a namespace declared."""
    assert old in SOUND
    return SOUND.replace(old, new, 1).replace("<robot ", f"<robot {declared} ")


def refuses(words: str, text: str) -> None:
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(text)


# --- xacro ------------------------------------------------------------------------------------


def test_a_declaration_alone_is_no_xacro() -> None:
    """The program xacro leaves it there."""
    assert Robot.from_urdf(replaced("a", "a")).to_bytes() == Robot.from_urdf(SOUND).to_bytes()


PROGRAM = "xacro robot.urdf.xacro > robot.urdf"
LEFT_OVER = "is a left-over of xacro, which cannot expand it, as nothing defines"
BIND = ("xacro", "http://www.ros.org/wiki/xacro")

PLACES = [
    ("</robot>", "{}</robot>", "^"),
    ('<origin xyz="0.1 -0.2 0.3" rpy="0.4 0.5 -0.6"/>', "{}", "^joint 'knee': "),
    ('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1">{}</axis>', "^joint 'knee': "),
    ('<axis xyz="0 0 1"/>', '<axis xyz="0 0 1"/>{}', "^joint 'knee': "),
    (INERTIAL, "{}", "^link 'a': "),
    ('<origin xyz="0.1 0.02 -0.03" rpy="0.3 -0.2 0.1"/>', "{}", "^link 'a': "),
    ("</robot>", f'<coupling name="c">{ENDS}{{}}</coupling></robot>', "^coupling 'c': "),
]
"""Where in a document xacro may be left that matters: what is replaced, by what, what is named."""


@pytest.mark.parametrize(("old", "new", "where"), PLACES)
@pytest.mark.parametrize(
    ("prefix", "uri"),
    [
        BIND,
        ("xacro", "http://ros.org/wiki/xacro"),
        ("x", "http://wiki.ros.org/xacro"),
        # The program goes by the prefix.
        ("xacro", "urn:any"),
    ],
)
def test_refuses_xacro_in_what_is_read(
    old: str, new: str, where: str, prefix: str, uri: str
) -> None:
    """What the program xacro would expand, and what it would refuse."""
    declared = f'xmlns:{prefix}="{uri}"'
    whole = replaced(old, new.format(f'<{prefix}:if value="0"/>'), declared)
    refuses(f"{where}<xacro:if> is xacro: expand the file first with '{PROGRAM}'$", whole)
    part = replaced(old, new.format(f'<{prefix}:box mass="1"/>'), declared)
    refuses(f"{where}<xacro:box> {LEFT_OVER} <xacro:box>; delete this element$", part)


def expanded(text: str, folder: Path) -> str:
    """Return what the program xacro makes of a document; raises what it raises."""
    xacro = pytest.importorskip("xacro", reason="needs the program xacro")
    file = folder / "robot.urdf.xacro"
    file.write_text(text)
    return str(xacro.process_file(str(file)).toxml())


DEFINED = [
    '<xacro:if value="1"><axis xyz="0 0 1"/></xacro:if>',
    '<xacro:property name="z" value="1"/><axis xyz="0 0 ${z}"/>',
    '<xacro:macro name="along"><axis xyz="0 0 1"/></xacro:macro><xacro:along/>',
    '<xacro:macro name="along"><axis xyz="0 0 1"/></xacro:macro><xacro:call macro="along"/>',
    '<xacro:property name="z"><axis xyz="0 0 1"/></xacro:property><xacro:insert_block name="z"/>',
    '<xacro:arg name="z" default="1"/><axis xyz="0 0 $(arg z)"/>',
    '<xacro:element xacro:name="axis" xyz="0 0 1"/>',
    '<axis><xacro:attribute name="xyz" value="0 0 1"/></axis>',
]
UNDEFINED = [
    "<xacro:along/>",
    '<xacro:call macro="along"/>',
    '<xacro:insert_block name="z"/>',
    '<axis xyz="0 0 ${z}"/>',
    '<axis xyz="0 0 $(arg z)"/>',
    '<xacro:if value="1"><xacro:along/></xacro:if>',
]


@pytest.mark.parametrize("axis", DEFINED)
def test_what_xacro_can_expand_is_to_be_expanded(axis: str, tmp_path: Path) -> None:
    text = replaced('<axis xyz="0 0 1"/>', axis)
    refuses(f"^joint 'knee': .* is xacro: expand the file first with '{PROGRAM}'$", text)
    read = Robot.from_urdf(expanded(text, tmp_path))
    assert read.to_bytes() == Robot.from_urdf(SOUND).to_bytes()


@pytest.mark.parametrize("axis", UNDEFINED)
def test_what_xacro_cannot_expand_is_to_be_deleted(axis: str, tmp_path: Path) -> None:
    text = replaced('<axis xyz="0 0 1"/>', axis)
    refuses("^joint 'knee': .*(; delete this element|write its value, which nothing.*)$", text)
    with pytest.raises(Exception, match="unknown macro|Undefined|not defined"):
        expanded(text, tmp_path)


def test_what_is_included_may_define_anything() -> None:
    text = replaced("</robot>", '<xacro:include filename="legs.xacro"/><xacro:leg/></robot>')
    refuses(f"^<xacro:include> is xacro: expand the file first with '{PROGRAM}'$", text)


# --- left-overs that cannot matter ------------------------------------------------------------


UNREAD = [
    ('<link name="a">', '<link name="a"><visual>{}</visual>', "link 'a'"),
    (
        '<link name="a">',
        '<link name="a"><collision><geometry>{}</geometry></collision>',
        "link 'a'",
    ),
    ("</robot>", '<gazebo reference="a"><p>{}</p></gazebo></robot>', "a <gazebo>"),
    ("</robot>", '<transmission name="t">{}</transmission></robot>', "transmission 't'"),
    ("</robot>", '<ros2_control name="c">{}</ros2_control></robot>', "ros2_control 'c'"),
    ("<axis ", "<calibration>{}</calibration><axis ", "joint 'knee'"),
]


@pytest.mark.parametrize(("old", "new", "where"), UNREAD)
@pytest.mark.parametrize("namespace", ["", ' xmlns="http://drake.mit.edu"'])
@pytest.mark.parametrize(
    "left_over",
    ["<xacro:grey/>", '<xacro:if value="1"/>', '<sensor:camera name="rgb"/>', "<a:b:c/>"],
)
def test_left_overs_in_what_is_not_read_are_ignored(
    old: str,
    new: str,
    where: str,
    left_over: str,
    namespace: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    text = replaced(old, new.format(left_over), XACRO + namespace)
    assert Robot.from_urdf(text).to_bytes() == Robot.from_urdf(SOUND).to_bytes()
    tag = left_over.partition("/")[0].partition(" ")[0]
    assert caplog.messages == [f"ignored, as no joint or inertia depends on it: {tag}> in {where}"]


def test_many_left_overs_make_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    links = [link(f"l{i}", f"{INERTIAL}<visual>{'<xacro:grey/>' * 2}</visual>") for i in range(7)]
    joints = [joint(f"j{i}", f"l{i}", f"l{i + 1}") for i in range(6)]
    Robot.from_urdf(robot_xml(*links, *joints).replace("<robot ", f"<robot {XACRO} "))
    (message,) = caplog.messages
    assert message.endswith("<xacro:grey> in link 'l4' (2 times), and 2 more")


def test_calls_of_macros_for_sensors_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    why = "ignored, as nothing defines this left-over of xacro, by its name a sensor"
    text = replaced("</robot>", '<xacro:v1_pelvis_Sensors_usb port="none"/></robot>')
    assert Robot.from_urdf(text).to_bytes() == Robot.from_urdf(SOUND).to_bytes()
    assert caplog.messages == [f"{why}: <xacro:v1_pelvis_Sensors_usb>"]
    caplog.clear()
    many = "".join(f"<xacro:sensor{i}/>" for i in range(90_000))
    assert Robot.from_urdf(replaced("</robot>", f"{many}</robot>")).nq == 1
    names = ", ".join(f"<xacro:sensor{i}>" for i in range(5))
    assert caplog.messages == [f"{why}: {names}, and 89995 more"]


def test_macros_for_sensors_that_can_be_expanded_are_to_be_expanded() -> None:
    macro = '<xacro:macro name="sensor"><link name="c"/></xacro:macro>'
    refuses(
        "^<xacro:macro> is xacro: expand", replaced("</robot>", macro + "<xacro:sensor/></robot>")
    )
    refuses(
        "^<xacro:sensor> is xacro: expand", replaced("</robot>", f"<xacro:sensor/>{macro}</robot>")
    )


def test_a_left_over_for_sensors_inside_of_what_is_read_is_refused() -> None:
    text = replaced(INERTIAL, "<xacro:sensor_inertia/>")
    refuses("^link 'a': <xacro:sensor_inertia> is a left-over .*delete this element$", text)


@pytest.mark.parametrize(("old", "new", "where"), PLACES)
@pytest.mark.parametrize("prefix", ["xacro", "sensor"])
def test_refuses_prefixes_that_nothing_declares(
    old: str, new: str, where: str, prefix: str, tmp_path: Path
) -> None:
    """Xacro refuses such a document, too."""
    text = replaced(old, new.format(f"<{prefix}:if value='1'/>"), "")
    refuses(
        f"{where}<{prefix}:if>: the XML declares no prefix '{prefix}'; delete this element, or "
        f"declare the prefix in <robot xmlns:{prefix}=…>$",
        text,
    )
    with pytest.raises(Exception, match="unbound prefix"):
        expanded(text, tmp_path)


def test_refuses_attributes_with_a_prefix_that_nothing_declares() -> None:
    refuses(
        "^joint 'knee': <axis d:xyz=…>: the XML declares no prefix 'd'; delete this attribute, or",
        replaced("<axis ", '<axis d:xyz="1 0 0" ', ""),
    )
    inside = '<link name="a"><visual><box d:size="1"/></visual>'
    text = replaced('<link name="a">', inside, "")
    assert Robot.from_urdf(text).to_bytes() == Robot.from_urdf(SOUND).to_bytes()


def test_prefixes_hold_where_they_are_declared() -> None:
    other = "<gazebo><o:a xmlns:o='urn:o'><o:b/></o:a></gazebo>"
    text = replaced("</robot>", f"{other}<o:link name='c'/></robot>", "")
    refuses("^<o:link>: the XML declares no prefix 'o'", text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name="test"', 'name="${robot}"', '^<robot name="${robot}"> is xacro: write its value'),
        ('name="knee"', 'name="${p}knee"', '^joint .*<joint name="${p}knee"> is xacro'),
        ('name="knee"', 'name="$(arg p)knee"', '^joint .*<joint name="$.arg p.knee"> is xacro'),
        ('parent link="a"', 'parent link="${a}"', "^joint 'knee': <parent link=\"${a}\"> is"),
        ('"0 0 1"', '"0 0 ${reflect}"', "^joint 'knee': <axis xyz=\"0 0 ${reflect}\"> is"),
        ('value="1.5"', 'value="${m}"', "^link 'a': <mass value=\"${m}\"> is xacro"),
    ],
)
def test_refuses_expressions_that_are_left(old: str, new: str, words: str) -> None:
    refuses(words.replace("$", r"\$").replace("{", r"\{"), replaced(old, new))


@pytest.mark.parametrize(
    "inside",
    [
        '<visual><geometry><mesh filename="$(find x)/a.stl"/></geometry></visual>',
        '<collision name="${a}"/>',
        '<self_collide value="${c}"/>',
    ],
)
def test_expressions_in_what_is_not_read_change_nothing(inside: str) -> None:
    text = replaced('<link name="a">', f'<link name="a">{inside}')
    assert Robot.from_urdf(text).to_bytes() == Robot.from_urdf(SOUND).to_bytes()
    outside = '<gazebo><plugin filename="$(arg file)">${x}</plugin></gazebo>'
    text = replaced("</robot>", f"{outside}</robot>")
    assert Robot.from_urdf(text).to_bytes() == Robot.from_urdf(SOUND).to_bytes()


# --- names that are nearly read ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "intended"),
    [
        ("Loop", "loop"), ("loops", "loop"), ("LOOP", "loop"), ("lop", "loop"),
        ("Coupling", "coupling"), ("couplings", "coupling"), ("copling", "coupling"),
        ("Joint", "joint"), ("joints", "joint"), ("Link", "link"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("namespace", ["", 'xmlns="http://drake.mit.edu"'])
def test_refuses_elements_that_are_nearly_called_as_ours(
    written: str, intended: str, namespace: str
) -> None:
    text = replaced("</robot>", f'<{written} name="bar">{ENDS}</{written}></robot>', namespace)
    refuses(f"^{written} 'bar': <{written}> is not read; did you mean <{intended}>", text)


@pytest.mark.parametrize(
    "tag",
    [
        "material", "gazebo", "transmission", "sensor", "ros2_control", "mujoco", "frame", "group",
        "line", "couple", "loop_joint", "virtual_joint", "disable_collisions", "link_group",
        "joint_properties", "joint_state_publisher", "collision_filter_group",
    ],
)  # fmt: skip
def test_other_elements_are_dropped(tag: str) -> None:
    text = replaced("</robot>", f'<{tag} name="x"><link name="y"/></{tag}></robot>')
    assert Robot.from_urdf(text).to_bytes() == Robot.from_urdf(SOUND).to_bytes()


def test_elements_of_another_namespace_may_be_called_anything() -> None:
    text = replaced("</robot>", '<o:Loop name="x"/></robot>', 'xmlns:o="o"')
    assert Robot.from_urdf(text).to_bytes() == Robot.from_urdf(SOUND).to_bytes()


# --- places -----------------------------------------------------------------------------------


@pytest.mark.parametrize("tag", ["loop", "coupling"])
@pytest.mark.parametrize("around", ["gazebo", "group", "ros2_control"])
@pytest.mark.parametrize("namespace", ["", 'xmlns="http://drake.mit.edu"'])
def test_refuses_closures_elsewhere(tag: str, around: str, namespace: str) -> None:
    inside = f'<{around}><p><{tag} name="bar">{ENDS}</{tag}></p></{around}></robot>'
    refuses(
        f"^{tag} 'bar' stands in <{around}>, where it is not read; put it directly under <robot>",
        replaced("</robot>", inside, namespace),
    )


def test_other_loops_are_dropped_elsewhere() -> None:
    text = replaced("</robot>", "<gazebo><actor><loop>true</loop></actor></gazebo></robot>")
    assert Robot.from_urdf(text).to_bytes() == Robot.from_urdf(SOUND).to_bytes()


# --- parts of links and joints ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("<inertial>", "<inertail>", "^link 'a': <inertail> .* did you mean <inertial>"),
        ("<mass ", "<Mass ", "^link 'a': <Mass> is not read; did you mean <mass>"),
        ("<inertia ", "<intertia ", "^link 'a': <intertia> .* did you mean <inertia>"),
        ('ixx="', 'Ixx="', "^link 'a': <inertia Ixx=…> is not read; did you mean ixx=…"),
        ('<origin xyz="0.1 -0.2', '<orign xyz="0.1 -0.2', "^joint 'knee': <orign> .* <origin>"),
        ("<axis ", "<axes ", "^joint 'knee': <axes> is not read; did you mean <axis>"),
        ("<axis ", "<Axis ", "^joint 'knee': <Axis> is not read; did you mean <axis>"),
        ("<axis ", '<limits upper="1"/><axis ', "^joint 'knee': <limits> .* <limit>"),
        ("<axis ", '<limit low="-1"/><axis ', "^joint 'knee': <limit low=…> .* lower=…"),
        ("<axis ", '<mimc joint="a"/><axis ', "^joint 'knee': <mimc> .* <mimic>"),
        (
            "<axis ",
            '<mimic joint="a" multipler="2"/><axis ',
            "^joint 'knee': <mimic multipler=…> .* multiplier=…",
        ),
    ],
)
@pytest.mark.parametrize("namespace", ["", 'xmlns="http://drake.mit.edu"'])
def test_refuses_parts_that_are_nearly_called_as_ours(
    old: str, new: str, words: str, namespace: str
) -> None:
    text = replaced(old, new, namespace)
    if old == "<inertial>":
        text = text.replace("</inertial>", "</inertail>", 1)
    refuses(words, text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<inertial>", "<self_collide/><sensor/><contact/><material/><inertial>"),
        ("<axis ", "<dynamics/><safety_controller/><calibration/><physics/><axis "),
        ("<axis ", '<limit effort="1" velocity="2" acceleration="3" jerk="4"/><axis '),
        ("<axis ", '<limit xmlns:o="urn:o" o:low="1" effort="1"/><o:axes xmlns:o="urn:o"/><axis '),
    ],
)
def test_other_parts_are_dropped(old: str, new: str) -> None:
    assert Robot.from_urdf(replaced(old, new)).to_bytes() == Robot.from_urdf(SOUND).to_bytes()
