"""What a URDF says beyond its tree: read, or refused by name."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from urdf_text import INERTIAL, joint, link, robot_xml

from delassus_ros.errors import RobotError
from delassus_ros.model import LoopKind
from delassus_ros.model.reading.description import (
    Mimic,
    coupling_of,
    describe,
    loop_of,
    mimic_of,
    transmissions_of,
)
from delassus_ros.model.reading.xml import parse_xml

ENDS = '<predecessor link="a"/><successor link="b"/>'


def element(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def loop(inside: str = ENDS, loop_type: str = "revolute") -> ElementTree.Element:
    return element(f'<loop name="bar" type="{loop_type}">{inside}</loop>')


def coupling(inside: str) -> ElementTree.Element:
    return element(f'<coupling name="gear">{inside}</coupling>')


# --- couplings --------------------------------------------------------------------------------


def test_coupling() -> None:
    read = coupling_of(coupling(ENDS + '<ratio value="-6.5"/>'), "", "gear")
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
        coupling_of(coupling(inside), "", "gear")


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
    declared = f'xmlns="{namespace}"' if namespace else ""
    odd = element(f'<coupling name="gear" {declared}>{inside}</coupling>')
    with pytest.raises(RobotError, match=f"coupling 'gear': {words}"):
        coupling_of(odd, f"{{{namespace}}}" if namespace else "", "gear")


def test_refuses_attributes_that_a_coupling_does_not_have() -> None:
    odd = element(f'<coupling name="gear" offset="1">{ENDS}<ratio value="1"/></coupling>')
    with pytest.raises(RobotError, match="<coupling>: unknown attribute 'offset'; attributes: na"):
        coupling_of(odd, "", "gear")


def test_the_type_that_published_couplings_have_changes_nothing() -> None:
    odd = element(f'<coupling name="gear" type="rolling">{ENDS}<ratio value="2"/></coupling>')
    assert coupling_of(odd, "", "gear") == coupling_of(
        coupling(ENDS + '<ratio value="2"/>'), "", "gear"
    )


def test_what_others_add_in_their_namespaces_is_dropped() -> None:
    text = '<coupling name="gear" xmlns:o="o" o:offset="1"><o:offset/>{}</coupling>'
    plain = ENDS + '<ratio value="2"/>'
    assert coupling_of(element(text.format(plain)), "", "gear") == coupling_of(
        coupling(plain), "", "gear"
    )


# --- loops ------------------------------------------------------------------------------------


def test_loop() -> None:
    read = loop_of(
        loop(
            '<predecessor link="a"><origin xyz="1 2 3" rpy="0 0 0.5"/></predecessor>'
            '<successor link="b"><origin rpy="0.5 0 0"/></successor><axis xyz="0 3 4"/>'
        ),
        "",
        "bar",
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
    read = loop_of(loop(loop_type=loop_type), "", "bar")
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
            "predecessor: <origin>: unknown attribute 'quat'; attributes: xyz, rpy",
        ),
        (
            '<predecessor link="a"><origin xyz="1 0 inf"/></predecessor><successor link="b"/>',
            "predecessor: origin xyz: numbers must be finite",
        ),
    ],
)
def test_refuses_broken_loops(inside: str, words: str) -> None:
    with pytest.raises(RobotError, match=f"loop 'bar'.*{words}"):
        loop_of(loop(inside), "", "bar")


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
        loop_of(loop(inside), "", "bar")


def test_refuses_unknown_types_of_loops() -> None:
    with pytest.raises(
        RobotError, match="loop 'bar': unknown type 'revolut'; did you mean 'revolute'"
    ):
        loop_of(loop(loop_type="revolut"), "", "bar")


# --- mimic ------------------------------------------------------------------------------------


def test_mimic_and_its_defaults() -> None:
    full = element('<joint><mimic joint="j" multiplier="-2" offset="0.5"/></joint>')
    assert mimic_of(full, "", "joint 'k'") == Mimic("j", -2.0, 0.5)
    assert mimic_of(element('<joint><mimic joint="j"/></joint>'), "", "") == Mimic("j", 1.0, 0.0)
    assert mimic_of(element("<joint/>"), "", "") is None


@pytest.mark.parametrize(
    ("mimic", "words"),
    [
        ("<mimic/>", "mimic: <mimic> has no attribute 'joint'"),
        ('<mimic joint="j" multiplier="0"/>', 'multiplier="0".*make it fixed'),
        ('<mimic joint="j" offset="x"/>', "mimic offset: 'x' is not a number"),
        ('<mimic joint="j"/><mimic joint="j"/>', "<mimic> appears 2 times"),
    ],
)
def test_refuses_broken_mimic(mimic: str, words: str) -> None:
    with pytest.raises(RobotError, match=f"joint 'k'.*{words}"):
        mimic_of(element(f"<joint>{mimic}</joint>"), "", "joint 'k'")


# --- transmissions and documents --------------------------------------------------------------


def test_transmissions_are_kept_as_they_are() -> None:
    root = element(
        '<robot><transmission name="t"><type>Simple</type><joint name="knee"/><actuator '
        'name="motor"><mechanicalReduction> 50 </mechanicalReduction></actuator></transmission>'
        '<transmission name="t"/><transmission/></robot>'
    )
    first, second = transmissions_of(root, "")
    assert (first.name, first.joints, first.actuators) == ("t", ("knee",), ("motor",))
    assert first.reductions == (" 50 ",)
    assert (second.joints, second.actuators, second.reductions) == ((), (), ())


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
            describe(parse_xml(robot_xml(*parts, twice)))


def test_a_default_namespace_reaches_closures() -> None:
    text = robot_xml(
        f'<link name="a">{INERTIAL}</link><link name="b">{INERTIAL}</link>',
        joint("j", "a", "b", inside='<mimic joint="j"/>'),
        f'<coupling name="gear">{ENDS}<ratio value="2"/></coupling>',
        f'<loop name="bar" type="fixed">{ENDS}</loop>',
        '<transmission name="t"><joint name="j"/></transmission>',
    ).replace("<robot ", '<robot xmlns="http://drake.mit.edu" ')
    read = describe(parse_xml(text))
    assert list(read.couplings) == ["gear"] and list(read.loops) == ["bar"]
    assert read.joints["j"].mimic == Mimic("j", 1.0, 0.0)
    assert read.transmissions[0].joints == ("j",)
