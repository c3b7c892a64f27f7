"""What would change a robot if it were dropped unread: refused by name, and nothing else."""

from __future__ import annotations

import pytest
from urdf_text import INERTIAL, joint, link, robot_xml

from delassus_ros.errors import RobotError
from delassus_ros.model.reading.urdf import read_urdf

XACRO = 'xmlns:xacro="http://www.ros.org/wiki/xacro"'
SOUND = robot_xml(link("a"), link("b"), joint("knee", "a", "b"))
ENDS = '<predecessor link="a"/><successor link="b"/>'


def replaced(old: str, new: str, declared: str = XACRO) -> str:
    """Return a sound URDF with something else in it, and a namespace declared."""
    assert old in SOUND
    return SOUND.replace(old, new, 1).replace("<robot ", f"<robot {declared} ")


def refuses(words: str, text: str) -> None:
    with pytest.raises(RobotError, match=words):
        read_urdf(text)


# --- xacro ------------------------------------------------------------------------------------


def test_a_declaration_alone_is_no_xacro() -> None:
    """The program xacro leaves it there."""
    assert read_urdf(replaced("a", "a")).to_bytes() == read_urdf(SOUND).to_bytes()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("</robot>", '<xacro:leg prefix="LF"/></robot>', "^<leg> is xacro"),
        (
            '<origin xyz="0.1 -0.2 0.3" rpy="0.4 0.5 -0.6"/>',
            '<xacro:insert_block name="origin"/>',
            "^joint 'knee': <insert_block> is xacro",
        ),
        (
            '<axis xyz="0 0 1"/>',
            '<xacro:if value="1"><axis xyz="0 0 1"/></xacro:if>',
            "^joint 'knee': <if> is xacro",
        ),
        (
            '<axis xyz="0 0 1"/>',
            '<axis xyz="0 0 1"/><xacro:unless value="0"><mimic joint="hip"/></xacro:unless>',
            "^joint 'knee': <unless> is xacro",
        ),
        (INERTIAL, "<xacro:box mass='1'/>", "^link 'a': <box> is xacro"),
        (
            '<origin xyz="0.1 0.02 -0.03" rpy="0.3 -0.2 0.1"/>',
            "<xacro:centre/>",
            "^link 'a': <centre> is xacro",
        ),
        (
            "</robot>",
            "<gazebo><xacro:plugin/></gazebo></robot>",
            "^a <gazebo>: <plugin> is xacro",
        ),
    ],
)
@pytest.mark.parametrize(
    ("prefix", "uri"),
    [
        ("xacro", "http://www.ros.org/wiki/xacro"),
        ("xacro", "http://ros.org/wiki/xacro"),
        ("x", "http://wiki.ros.org/xacro"),
        # The program goes by the prefix.
        ("xacro", "urn:any"),
    ],
)
def test_refuses_xacro_at_every_depth(
    old: str, new: str, words: str, prefix: str, uri: str
) -> None:
    new = new.replace("xacro:", f"{prefix}:")
    expand = ": expand the file first with 'xacro robot.urdf.xacro > robot.urdf'$"
    refuses(words + expand, replaced(old, new, f'xmlns:{prefix}="{uri}"'))


def test_a_prefix_that_is_not_declared_is_broken_xml() -> None:
    text = SOUND.replace("</robot>", "<xacro:leg/></robot>")
    refuses("unbound prefix; if it is xacro:, expand the file first with xacro", text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('name="test"', 'name="${robot}"', '^<robot name="${robot}"> is xacro'),
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
    ],
)
def test_expressions_in_what_is_not_read_change_nothing(inside: str) -> None:
    text = replaced('<link name="a">', f'<link name="a">{inside}')
    assert read_urdf(text).to_bytes() == read_urdf(SOUND).to_bytes()
    outside = '<gazebo><plugin filename="$(arg file)">${x}</plugin></gazebo>'
    text = replaced("</robot>", f"{outside}</robot>")
    assert read_urdf(text).to_bytes() == read_urdf(SOUND).to_bytes()


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
    assert read_urdf(text).to_bytes() == read_urdf(SOUND).to_bytes()


def test_elements_of_another_namespace_may_be_called_anything() -> None:
    text = replaced("</robot>", '<o:Loop name="x"/></robot>', 'xmlns:o="o"')
    assert read_urdf(text).to_bytes() == read_urdf(SOUND).to_bytes()


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
    assert read_urdf(text).to_bytes() == read_urdf(SOUND).to_bytes()


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
        ("<axis ", '<dynamics damping="1"/><safety_controller/><calibration/><physics/><axis '),
        ("<axis ", '<limit effort="1" velocity="2" acceleration="3" jerk="4"/><axis '),
        ("<axis ", '<limit xmlns:o="urn:o" o:low="1" effort="1"/><o:axes xmlns:o="urn:o"/><axis '),
    ],
)
def test_other_parts_are_dropped(old: str, new: str) -> None:
    assert read_urdf(replaced(old, new)).to_bytes() == read_urdf(SOUND).to_bytes()
