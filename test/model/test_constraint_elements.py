"""What a URDF says beyond its tree: read, or refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from urdf_text import INERTIAL, joint, link, robot_xml

from delassus_ros.errors import RobotError
from delassus_ros.model import LoopKind
from delassus_ros.model.reading.check import checked
from delassus_ros.model.reading.description import (
    Description,
    LinkCoupling,
    LinkLoop,
    Mimic,
    TransmissionEnd,
    describe,
)
from delassus_ros.model.reading.xml import parse_xml

ENDS = '<predecessor link="a"/><successor link="b"/>'


def described(*parts: str, namespace: str = "") -> Description:
    """Return the checked content of a document of these elements."""
    text = robot_xml(*parts)
    if namespace:
        text = text.replace("<robot ", f'<robot xmlns="{namespace}" ')
    return describe(checked(parse_xml(text)))


def loop(inside: str = ENDS, loop_type: str = "revolute") -> LinkLoop:
    return described(f'<loop name="bar" type="{loop_type}">{inside}</loop>').loops["bar"]


def coupling(inside: str, attributes: str = "", namespace: str = "") -> LinkCoupling:
    text = f'<coupling name="gear" {attributes}>{inside}</coupling>'
    return described(text, namespace=namespace).couplings["gear"]


def mimic(inside: str) -> Mimic | None:
    parts = (link("a"), link("b"), joint("k", "a", "b", inside=inside))
    return described(*parts).joints["k"].mimic


# --- couplings --------------------------------------------------------------------------------


def test_coupling() -> None:
    read = coupling(ENDS + '<ratio value="-6.5"/>')
    assert (read.predecessor, read.successor, read.ratio) == ("a", "b", -6.5)


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (ENDS, "has no <ratio>"),
        (ENDS + "<ratio/>", "<ratio> has no attribute 'value'"),
        (ENDS + '<ratio value="six"/>', "ratio: 'six' is not a number"),
        (ENDS + '<ratio value="1_0"/>', "ratio: '1_0' is not a number"),
        (ENDS + '<ratio value="1 2"/>', "ratio: expected 1 number, got 2"),
        (ENDS + '<ratio value="nan"/>', "ratio: numbers must be finite"),
        (ENDS * 2 + '<ratio value="1"/>', "<predecessor> appears 2 times"),
        ('<successor link="b"/><ratio value="1"/>', "has no <predecessor>"),
        ('<predecessor/><successor link="b"/><ratio value="1"/>', "has no attribute 'link'"),
    ],
)
def test_refuses_broken_couplings(inside: str, words: str) -> None:
    with pytest.raises(RobotError, match=f"coupling 'gear'.*{words}"):
        coupling(inside)


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (
            ENDS + '<ratio value="6"/><offset value="0.3"/>',
            "<coupling>: unknown element 'offset'; elements: predecessor, successor, ratio",
        ),
        (
            ENDS + '<ratio value="6" offset="0.2"/>',
            "<ratio>: unknown attribute 'offset'; attributes: value",
        ),
        (
            '<predecesor link="a"/><successor link="b"/><ratio value="6"/>',
            "<coupling>: unknown element 'predecesor'; did you mean 'predecessor'",
        ),
        (
            '<predecessor link="a"><origin/></predecessor><successor link="b"/><ratio value="6"/>',
            "<predecessor>: unknown element 'origin'; elements: none",
        ),
    ],
)
@pytest.mark.parametrize("namespace", ["", "http://drake.mit.edu"])
def test_refuses_what_a_coupling_does_not_have(inside: str, words: str, namespace: str) -> None:
    with pytest.raises(RobotError, match=f"coupling 'gear': {words}"):
        coupling(inside, namespace=namespace)


def test_refuses_attributes_that_a_coupling_does_not_have() -> None:
    with pytest.raises(RobotError, match="<coupling>: unknown attribute 'offset'; attributes: na"):
        coupling(ENDS + '<ratio value="1"/>', 'offset="1"')


def test_the_type_that_published_couplings_have_changes_nothing() -> None:
    plain = ENDS + '<ratio value="2"/>'
    assert coupling(plain, 'type="rolling"') == coupling(plain)


def test_what_others_add_in_their_namespaces_is_dropped() -> None:
    plain = ENDS + '<ratio value="2"/>'
    odd = coupling("<o:offset/>" + plain, 'xmlns:o="o" o:offset="1"')
    assert odd == coupling(plain)


# --- loops ------------------------------------------------------------------------------------


def test_loop() -> None:
    read = loop(
        '<predecessor link="a"><origin xyz="1 2 3" rpy="0 0 0.5"/></predecessor>'
        '<successor link="b"><origin rpy="0.5 0 0"/></successor><axis xyz="0 3 4"/>'
    )
    assert (read.kind, read.predecessor, read.successor) == (LoopKind.HINGE, "a", "b")
    assert read.predecessor_placement.translation.tolist() == [1.0, 2.0, 3.0]
    assert read.predecessor_placement.rotation[0, 0] == np.cos(0.5)
    assert read.successor_placement.translation.tolist() == [0.0, 0.0, 0.0]
    assert read.successor_placement.rotation[1, 1] == np.cos(0.5)
    assert read.axis.tolist() == [0.0, 0.6, 0.8]


@pytest.mark.parametrize(
    ("loop_type", "kind"),
    [
        ("revolute", LoopKind.HINGE), ("continuous", LoopKind.HINGE),
        ("prismatic", LoopKind.SLIDER), ("planar", LoopKind.PLANAR), ("fixed", LoopKind.WELD),
        ("spherical", LoopKind.POINT), ("universal", LoopKind.POINT),
    ],
)  # fmt: skip
def test_types_of_loops(loop_type: str, kind: LoopKind) -> None:
    read = loop(loop_type=loop_type)
    assert read.kind is kind
    assert read.axis.tolist() == [1.0, 0.0, 0.0]  # what URDF says a missing axis is


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ('<predecessor link="a"/>', "has no <successor>"),
        (ENDS + "<axis/>", "<axis> has no attribute 'xyz'"),
        (ENDS + '<axis xyz="0 0 0"/>', "the axis must not be zero"),
        (ENDS + '<axis xyz="0 0"/>', "axis: expected 3 numbers, got 2"),
        (
            '<predecessor link="a"><origin quat="1 0 0 0"/></predecessor><successor link="b"/>',
            "predecessor: <origin>: unknown attribute 'quat'; did you mean 'quat_xyzw'",
        ),
        (
            '<predecessor link="a"><origin xyz="1 0 inf"/></predecessor><successor link="b"/>',
            "predecessor: <origin xyz=…>: numbers must be finite",
        ),
    ],
)
def test_refuses_broken_loops(inside: str, words: str) -> None:
    with pytest.raises(RobotError, match=f"loop 'bar'.*{words}"):
        loop(inside)


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        (
            ENDS + '<origin xyz="1 0 0"/>',
            "<loop>: unknown element 'origin'; elements: predecessor, successor, axis",
        ),
        (
            '<predecessor link="a" xyz="1 0 0"/><successor link="b"/>',
            "<predecessor>: unknown attribute 'xyz'; attributes: link",
        ),
        (
            '<predecessor link="a"><orgin/></predecessor><successor link="b"/>',
            "<predecessor>: unknown element 'orgin'; did you mean 'origin'",
        ),
        (
            '<predecessor link="a"/><successor link="b"><origin xzy="1 0 0"/></successor>',
            "successor: <origin>: unknown attribute 'xzy'; did you mean 'xyz'",
        ),
        (
            '<predecessor link="a"/><successor link="b"><origin><x/></origin></successor>',
            "successor: <origin>: unknown element 'x'; elements: none",
        ),
        (
            ENDS + '<axis xyz="0 0 1" frame="world"/>',
            "<axis>: unknown attribute 'frame'; attributes: xyz",
        ),
    ],
)
def test_refuses_what_a_loop_does_not_have(inside: str, words: str) -> None:
    with pytest.raises(RobotError, match=f"loop 'bar': {words}"):
        loop(inside)


def test_refuses_unknown_types_of_loops() -> None:
    with pytest.raises(
        RobotError, match="loop 'bar': unknown type 'revolut'; did you mean 'revolute'"
    ):
        loop(loop_type="revolut")


# --- mimic ------------------------------------------------------------------------------------


def test_mimic_and_its_defaults() -> None:
    full = mimic('<mimic joint="j" multiplier="-2" offset="0.5"/>')
    assert full == Mimic("j", -2.0, 0.5)
    assert mimic('<mimic joint="j"/>') == Mimic("j", 1.0, 0.0)
    assert mimic("") is None


@pytest.mark.parametrize(
    ("inside", "words"),
    [
        ("<mimic/>", "mimic: <mimic> has no attribute 'joint'"),
        ('<mimic joint="j" multiplier="0"/>', 'multiplier="0".*make it fixed'),
        ('<mimic joint="j" offset="x"/>', "mimic offset: 'x' is not a number"),
        ('<mimic joint="j"/><mimic joint="j"/>', "<mimic> appears 2 times"),
    ],
)
def test_refuses_broken_mimic(inside: str, words: str) -> None:
    with pytest.raises(RobotError, match=f"joint 'k'.*{words}"):
        mimic(inside)


# --- transmissions and documents --------------------------------------------------------------


def test_transmissions_are_kept_as_they_are() -> None:
    first, second = described(
        '<transmission name="t"><type>Simple</type><joint name="knee"/><actuator '
        'name="motor"><mechanicalReduction> 50 </mechanicalReduction></actuator></transmission>'
        '<transmission name="t"/><transmission/>'
    ).transmissions
    assert (first.name, first.kind, first.in_ros2_control) == ("t", "Simple", False)
    assert first.joints == (TransmissionEnd("knee"),)
    assert first.actuators == (TransmissionEnd("motor", reductions=(" 50 ",)),)
    assert (second.joints, second.actuators, second.direct) == ((), (), TransmissionEnd("t"))


def test_transmissions_of_ros2_control_are_kept_as_well() -> None:
    (read,) = described(
        '<ros2_control name="c" type="system"><joint name="j"/><transmission name="t">'
        '<plugin> x/SimpleTransmission </plugin><joint name="j" role="joint1">'
        "<mechanical_reduction>9</mechanical_reduction><offset>0.5</offset></joint>"
        "</transmission></ros2_control>"
    ).transmissions
    assert (read.kind, read.in_ros2_control) == ("x/SimpleTransmission", True)
    assert read.joints == (TransmissionEnd("j", "joint1", ("9",), ("0.5",)),)


def test_names_of_couplings_and_loops_are_their_own() -> None:
    gear = f'<coupling name="x">{ENDS}<ratio value="1"/></coupling>'
    bar = f'<loop name="x" type="fixed">{ENDS}</loop>'
    parts = (link("a"), link("b"), joint("j", "a", "b"))
    for twice, words in (
        (gear + gear, "coupling 'x' appears twice"),
        (gear + bar, "loop 'x' appears twice"),
        (bar + bar, "loop 'x' appears twice"),
        (bar.replace(' name="x"', ""), "a <loop> has no name"),
    ):
        with pytest.raises(RobotError, match=words):
            described(*parts, twice)


def test_a_default_namespace_reaches_closures() -> None:
    read = described(
        f'<link name="a">{INERTIAL}</link><link name="b">{INERTIAL}</link>',
        joint("j", "a", "b", inside='<mimic joint="j"/>'),
        f'<coupling name="gear">{ENDS}<ratio value="2"/></coupling>',
        f'<loop name="bar" type="fixed">{ENDS}</loop>',
        '<transmission name="t"><joint name="j"/></transmission>',
        namespace="http://drake.mit.edu",
    )
    assert list(read.couplings) == ["gear"] and list(read.loops) == ["bar"]
    assert read.joints["j"].mimic == Mimic("j", 1.0, 0.0)
    assert read.transmissions[0].joints == (TransmissionEnd("j"),)
