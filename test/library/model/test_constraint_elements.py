"""What a URDF says beyond its tree: read, or refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from urdf_text import INERTIAL, joint, link, robot_xml

from delassus.errors import RobotError
from delassus.model import LoopKind
from delassus.model.reading.check import checked
from delassus.model.reading.description import (
    Description,
    LinkCoupling,
    LinkLoop,
    Mimic,
    TransmissionEnd,
    describe,
)
from delassus.model.reading.xml import parse_xml

ENDS = '<predecessor link="a"/><successor link="b"/>'


def described(*parts: str, namespace: str = "") -> Description:
    """Return the checked content of a document of these elements."""
    text = robot_xml(*parts)
    if namespace:
        text = text.replace("<robot ", f'<robot xmlns="{namespace}" ')
    return describe(checked(parse_xml(text)))


def loop_xml(inside: str = ENDS, loop_type: str = "revolute") -> str:
    return f'<loop name="bar" type="{loop_type}">{inside}</loop>'


def loop(inside: str = ENDS, loop_type: str = "revolute") -> LinkLoop:
    return described(loop_xml(inside, loop_type)).loops["bar"]


def coupling_xml(inside: str, attributes: str = "") -> str:
    return f'<coupling name="gear" {attributes}>{inside}</coupling>'


def coupling(inside: str, attributes: str = "") -> LinkCoupling:
    return described(coupling_xml(inside, attributes)).couplings["gear"]


def mimic_xml(inside: str) -> str:
    return link("a") + link("b") + joint("k", "a", "b", inside=inside)


def mimic(inside: str) -> Mimic | None:
    return described(mimic_xml(inside)).joints["k"].mimic


# --- couplings --------------------------------------------------------------------------------


def test_coupling() -> None:
    read = coupling(ENDS + '<ratio value="-6.5"/>')
    assert (read.predecessor, read.successor, read.ratio) == ("a", "b", -6.5)


def test_the_type_that_published_couplings_have_changes_nothing() -> None:
    plain = ENDS + '<ratio value="2"/>'
    assert coupling(plain, 'type="rolling"') == coupling(plain)


def test_elements_of_other_namespaces_dropped() -> None:
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


# --- mimic ------------------------------------------------------------------------------------


def test_mimic_and_its_defaults() -> None:
    full = mimic('<mimic joint="j" multiplier="-2" offset="0.5"/>')
    assert full == Mimic("j", -2.0, 0.5)
    assert mimic('<mimic joint="j"/>') == Mimic("j", 1.0, 0.0)
    assert mimic("") is None


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


# --- refusals ---------------------------------------------------------------------------------

RATIO = '<ratio value="1"/>'
TO_B = '<successor link="b"/>'
GEAR = f'<coupling name="x">{ENDS}{RATIO}</coupling>'
BAR = f'<loop name="x" type="fixed">{ENDS}</loop>'
REFUSED = [
    *(
        (coupling_xml(inside), f"coupling 'gear'.*{words}")
        for inside, words in (
            (ENDS, "has no <ratio>"),
            (ENDS + "<ratio/>", "<ratio> has no attribute 'value'"),
            (ENDS + '<ratio value="six"/>', "ratio: 'six' is not a number"),
            (ENDS + '<ratio value="1_0"/>', "ratio: '1_0' is not a number"),
            (ENDS + '<ratio value="1 2"/>', "ratio: expected 1 number, got 2"),
            (ENDS + '<ratio value="nan"/>', "ratio: numbers must be finite"),
            (ENDS * 2 + RATIO, "<predecessor> appears 2 times"),
            (TO_B + RATIO, "has no <predecessor>"),
            (f"<predecessor/>{TO_B}{RATIO}", "has no attribute 'link'"),
        )
    ),
    *(
        (coupling_xml(inside), f"coupling 'gear': {words}")
        for inside, words in (
            (f'{ENDS}{RATIO}<offset value="0.3"/>',
             "<coupling>: unknown element 'offset'; elements: predecessor, successor, ratio"),
            (ENDS + '<ratio value="6" offset="0.2"/>',
             "<ratio>: unknown attribute 'offset'; attributes: value"),
            (f'<predecesor link="a"/>{TO_B}{RATIO}',
             "<coupling>: unknown element 'predecesor'; did you mean 'predecessor'"),
            (f'<predecessor link="a"><origin/></predecessor>{TO_B}{RATIO}',
             "<predecessor>: unknown element 'origin'; elements: none"),
        )
    ),
    (coupling_xml(ENDS + RATIO, 'offset="1"'),
     "<coupling>: unknown attribute 'offset'; attributes: na"),
    *(
        (loop_xml(inside), f"loop 'bar'.*{words}")
        for inside, words in (
            ('<predecessor link="a"/>', "has no <successor>"),
            (ENDS + "<axis/>", "<axis> has no attribute 'xyz'"),
            (ENDS + '<axis xyz="0 0 0"/>', "the axis must not be zero"),
            (ENDS + '<axis xyz="0 0"/>', "axis: expected 3 numbers, got 2"),
            (f'<predecessor link="a"><origin quat="1 0 0 0"/></predecessor>{TO_B}',
             "predecessor: <origin>: unknown attribute 'quat'; did you mean 'quat_xyzw'"),
            (f'<predecessor link="a"><origin xyz="1 0 inf"/></predecessor>{TO_B}',
             "predecessor: <origin xyz=…>: numbers must be finite"),
        )
    ),
    *(
        (loop_xml(inside), f"loop 'bar': {words}")
        for inside, words in (
            (ENDS + '<origin xyz="1 0 0"/>',
             "<loop>: unknown element 'origin'; elements: predecessor, successor, axis"),
            (f'<predecessor link="a" xyz="1 0 0"/>{TO_B}',
             "<predecessor>: unknown attribute 'xyz'; attributes: link"),
            (f'<predecessor link="a"><orgin/></predecessor>{TO_B}',
             "<predecessor>: unknown element 'orgin'; did you mean 'origin'"),
            ('<predecessor link="a"/><successor link="b"><origin xzy="1 0 0"/></successor>',
             "successor: <origin>: unknown attribute 'xzy'; did you mean 'xyz'"),
            ('<predecessor link="a"/><successor link="b"><origin><x/></origin></successor>',
             "successor: <origin>: unknown element 'x'; elements: none"),
            (ENDS + '<axis xyz="0 0 1" frame="world"/>',
             "<axis>: unknown attribute 'frame'; attributes: xyz"),
        )
    ),
    (loop_xml(loop_type="revolut"),
     "loop 'bar': unknown type 'revolut'; did you mean 'revolute'"),
    *(
        (mimic_xml(inside), f"joint 'k'.*{words}")
        for inside, words in (
            ("<mimic/>", "mimic: <mimic> has no attribute 'joint'"),
            ('<mimic joint="j" multiplier="0"/>', 'multiplier="0".*make it fixed'),
            ('<mimic joint="j" offset="x"/>', "mimic offset: 'x' is not a number"),
            ('<mimic joint="j"/><mimic joint="j"/>', "<mimic> appears 2 times"),
        )
    ),
    (GEAR * 2, "coupling 'x' appears twice"),
    (GEAR + BAR, "loop 'x' appears twice"),
    (BAR * 2, "loop 'x' appears twice"),
    (BAR.replace(' name="x"', ""), "a <loop> has no name"),
]  # fmt: skip


@pytest.mark.parametrize("namespace", ["", "http://drake.mit.edu"])
@pytest.mark.parametrize(("text", "words"), REFUSED)
def test_refused(text: str, words: str, namespace: str) -> None:
    with pytest.raises(RobotError, match=words):
        described(text, namespace=namespace)
