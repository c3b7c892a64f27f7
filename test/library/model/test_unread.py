"""What would change a robot if it were dropped unread: refused by name, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from urdf_text import INERTIAL, joint, link, robot_xml

from delassus.errors import RobotError
from delassus.model import Robot

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
    import xacro
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
def test_expandable_xacro_refused_with_the_program(axis: str, tmp_path: Path) -> None:
    text = replaced('<axis xyz="0 0 1"/>', axis)
    refuses(f"^joint 'knee': .* is xacro: expand the file first with '{PROGRAM}'$", text)
    read = Robot.from_urdf(expanded(text, tmp_path))
    assert read.to_bytes() == Robot.from_urdf(SOUND).to_bytes()


@pytest.mark.parametrize("axis", UNDEFINED)
def test_other_xacro_refused_with_its_deletion(axis: str, tmp_path: Path) -> None:
    text = replaced('<axis xyz="0 0 1"/>', axis)
    refuses("^joint 'knee': .*(; delete this element|write its value, which nothing.*)$", text)
    with pytest.raises(Exception, match="unknown macro|Undefined|not defined"):
        expanded(text, tmp_path)


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


# --- refused and dropped ----------------------------------------------------------------------

MACRO = '<xacro:macro name="sensor"><link name="c"/></xacro:macro>'
DRAKE = 'xmlns="http://drake.mit.edu"'


def beside(inside: str, declared: str = XACRO) -> str:
    """Return the sound URDF with further elements at its end."""
    return replaced("</robot>", f"{inside}</robot>", declared)


def escaped(words: str) -> str:
    return words.replace("$", r"\$").replace("{", r"\{")


REFUSED = [
    (beside('<xacro:include filename="legs.xacro"/><xacro:leg/>'),
     f"^<xacro:include> is xacro: expand the file first with '{PROGRAM}'$"),
    (beside(f"{MACRO}<xacro:sensor/>"), "^<xacro:macro> is xacro: expand"),
    (beside(f"<xacro:sensor/>{MACRO}"), "^<xacro:sensor> is xacro: expand"),
    (replaced(INERTIAL, "<xacro:sensor_inertia/>"),
     "^link 'a': <xacro:sensor_inertia> is a left-over .*delete this element$"),
    (replaced("<axis ", '<axis d:xyz="1 0 0" ', ""),
     "^joint 'knee': <axis d:xyz=…>: the XML declares no prefix 'd'; delete this attribute, or"),
    # A prefix holds where it is declared.
    (beside("<gazebo><o:a xmlns:o='urn:o'><o:b/></o:a></gazebo><o:link name='c'/>", ""),
     "^<o:link>: the XML declares no prefix 'o'"),
    *(
        (replaced(old, new), escaped(words))
        for old, new, words in (
            ('name="test"', 'name="${robot}"', '^<robot name="${robot}"> is xacro: write its '
             "value"),
            ('name="knee"', 'name="${p}knee"', '^joint .*<joint name="${p}knee"> is xacro'),
            ('name="knee"', 'name="$(arg p)knee"', '^joint .*<joint name="$.arg p.knee"> is '
             "xacro"),
            ('parent link="a"', 'parent link="${a}"', "^joint 'knee': <parent link=\"${a}\"> is"),
            ('"0 0 1"', '"0 0 ${reflect}"', "^joint 'knee': <axis xyz=\"0 0 ${reflect}\"> is"),
            ('value="1.5"', 'value="${m}"', "^link 'a': <mass value=\"${m}\"> is xacro"),
        )
    ),
]  # fmt: skip
NEARLY = [
    *(
        ("</robot>", f'<{written} name="bar">{ENDS}</{written}></robot>',
         f"^{written} 'bar': <{written}> is not read; did you mean <{meant}>")
        for meant, words in {
            "loop": "Loop loops LOOP lop",
            "coupling": "Coupling couplings copling",
            "joint": "Joint joints",
            "link": "Link",
        }.items()
        for written in words.split()
    ),
    (INERTIAL, INERTIAL.replace("inertial>", "inertail>"),
     "^link 'a': <inertail> .* did you mean <inertial>"),
    ("<mass ", "<Mass ", "^link 'a': <Mass> is not read; did you mean <mass>"),
    ("<inertia ", "<intertia ", "^link 'a': <intertia> .* did you mean <inertia>"),
    ('ixx="', 'Ixx="', "^link 'a': <inertia Ixx=…> is not read; did you mean ixx=…"),
    ('<origin xyz="0.1 -0.2', '<orign xyz="0.1 -0.2', "^joint 'knee': <orign> .* <origin>"),
    ("<axis ", "<axes ", "^joint 'knee': <axes> is not read; did you mean <axis>"),
    ("<axis ", "<Axis ", "^joint 'knee': <Axis> is not read; did you mean <axis>"),
    ("<axis ", '<limits upper="1"/><axis ', "^joint 'knee': <limits> .* <limit>"),
    ("<axis ", '<limit low="-1"/><axis ', "^joint 'knee': <limit low=…> .* lower=…"),
    ("<axis ", '<mimc joint="a"/><axis ', "^joint 'knee': <mimc> .* <mimic>"),
    ("<axis ", '<mimic joint="a" multipler="2"/><axis ',
     "^joint 'knee': <mimic multipler=…> .* multiplier=…"),
    *(
        ("</robot>", f'<{around}><p><{tag} name="bar">{ENDS}</{tag}></p></{around}></robot>',
         f"^{tag} 'bar' stands in <{around}>, where it is not read; put it directly under <robot>")
        for tag in ("loop", "coupling")
        for around in ("gazebo", "group", "ros2_control")
    ),
]  # fmt: skip
"""Names that are nearly read, and closures where they are not read."""


@pytest.mark.parametrize(
    ("text", "words"),
    REFUSED
    + [(replaced(*row[:2], namespace), row[2]) for row in NEARLY for namespace in ("", DRAKE)],
)
def test_refused(text: str, words: str) -> None:
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(text)


OTHER_ELEMENTS = """
    material gazebo transmission sensor ros2_control mujoco frame group line couple loop_joint
    virtual_joint disable_collisions link_group joint_properties joint_state_publisher
    collision_filter_group
""".split()
DROPPED = [
    # The program xacro leaves its declaration there.
    replaced("a", "a"),
    *(beside(f'<{tag} name="x"><link name="y"/></{tag}>') for tag in OTHER_ELEMENTS),
    beside('<gazebo reference="a"><kp>1</kp></gazebo>'),
    beside('<transmission name="t"><joint name="j"><x/></joint></transmission>'),
    beside('<ros2_control name="c" type="system"><joint name="j"/></ros2_control>'),
    beside("<gazebo><actor><loop>true</loop></actor></gazebo>"),
    beside('<gazebo><plugin filename="$(arg file)">${x}</plugin></gazebo>'),
    beside('<o:Loop name="x"/>', 'xmlns:o="o"'),
    beside('<o:link name="c"/>', 'xmlns:o="o"'),
    *(
        replaced('<link name="a">', f'<link name="a">{inside}', declared)
        for inside, declared in (
            ('<visual><box d:size="1"/></visual>', ""),
            ('<visual><geometry><mesh filename="$(find x)/a.stl"/></geometry></visual>', XACRO),
            ('<collision name="${a}"/>', XACRO),
            ('<self_collide value="${c}"/>', XACRO),
        )
    ),
    replaced("<inertial>", "<self_collide/><sensor/><contact/><material/><inertial>"),
    *(
        replaced("<axis ", f"{inside}<axis ")
        for inside in (
            "<dynamics/><safety_controller/><calibration/><physics/>",
            '<limit effort="1" velocity="2" acceleration="3" jerk="4"/>',
            '<limit xmlns:o="urn:o" o:low="1" effort="1"/><o:axes xmlns:o="urn:o"/>',
        )
    ),
]


@pytest.mark.parametrize("text", DROPPED)
def test_dropped(text: str) -> None:
    assert Robot.from_urdf(text).to_bytes() == Robot.from_urdf(SOUND).to_bytes()
