"""Bodies without inertia: where they can be, and where not."""

from __future__ import annotations

import numpy as np
import pytest
from urdf_text import INERTIAL, joint, link, robot_xml

from delassus_ros import Contact, DelassusSolver, Problem, Robot
from delassus_ros.errors import RobotError

GEAR = (
    '<coupling name="gear"><predecessor link="arm"/><successor link="rotor"/>'
    '<ratio value="6"/></coupling>'
)


def geared(arm: str, rotor: str, *parts: str) -> str:
    return robot_xml(
        link("base"), link("arm", arm), link("rotor", rotor),
        joint("shoulder", "base", "arm"), joint("spin", "base", "rotor"), *parts,
    )  # fmt: skip


@pytest.mark.parametrize("inertias", [(INERTIAL, ""), ("", INERTIAL)])
def test_one_of_two_coupled_bodies_may_lack_inertia(inertias: tuple[str, str]) -> None:
    robot = Robot.from_urdf(geared(*inertias, GEAR))
    assert sorted(body.inertia.mass for body in robot.bodies) == [0.0, 1.5, 1.5]
    lacking = "rotor" if inertias[0] else "arm"
    with pytest.raises(RobotError, match=f"link '{lacking}': no inertia on the last link that"):
        Robot.from_urdf(geared(*inertias))


def test_refuses_coupled_bodies_that_all_lack_inertia() -> None:
    with pytest.raises(
        RobotError,
        match="coupling 'gear': some motion of joints 'shoulder', 'spin' moves no inertia; "
        "give link 'arm' an <inertial>",
    ):
        Robot.from_urdf(geared("", "", GEAR))


@pytest.mark.parametrize("parts", [(), (GEAR,)])
def test_an_armature_is_inertia_too(parts: tuple[str, ...]) -> None:
    """Of a joint of its own, and of one that a coupling ties to another."""
    arm, rotor = (INERTIAL, "") if not parts else ("", "")
    text = geared(arm, rotor, *parts)
    robot = Robot.from_urdf(text, armature={"spin": 0.01})
    joint = next(joint for joint in robot.joints if joint.name == "spin")
    assert joint.armature == 0.01
    if not parts:
        solution = DelassusSolver(Problem(robot, [Contact("tip", "rotor")]))
        assert np.linalg.eigvalsh(solution.solve([0.1, 0.2]).matrix)[-1] > 0.0
    for armature in (None, {}, {"spin": 0.0}, {"shoulder": 0.01} if not parts else {}):
        with pytest.raises(RobotError, match="no inertia"):
            Robot.from_urdf(text, armature=armature)


def test_an_armature_of_what_is_no_joint_is_named_first() -> None:
    with pytest.raises(RobotError, match="unknown joint 'spinn'; did you mean 'spin'"):
        Robot.from_urdf(geared(INERTIAL, ""), armature={"spinn": 0.01})


def test_inertia_carried_by_a_cluster_counts() -> None:
    hand = (link("hand"), joint("wrist", "arm", "hand"))
    assert len(Robot.from_urdf(geared("", "", GEAR, *hand)).bodies) == 4


def test_each_motion_of_a_cluster_must_move_inertia() -> None:
    second = (link("idle", ""), joint("idler", "base", "idle"))
    belt = (
        '<coupling name="belt"><predecessor link="arm"/><successor link="idle"/>'
        '<ratio value="2"/></coupling>'
    )
    # Idle follows the arm: fine. With a joint of its own between, it turns freely.
    assert Robot.from_urdf(geared(INERTIAL, "", GEAR, belt, *second)).is_closed
    free = (link("lever", ""), joint("lever", "idle", "lever"))
    summed = belt.replace('link="idle"', 'link="lever"')
    with pytest.raises(RobotError, match="couplings 'gear', 'belt': some motion .* no inertia"):
        Robot.from_urdf(geared(INERTIAL, "", GEAR, summed, *second, *free))


def test_semidefiniteness_is_asked_of_tied_bodies_too() -> None:
    broken = INERTIAL.replace('iyz="0.002"', 'iyz="0.2"')
    with pytest.raises(RobotError, match="link 'rotor': .* must be positive semidefinite"):
        Robot.from_urdf(geared(INERTIAL, broken, GEAR))
    # The triangle inequality is not: published rotors break it.
    Robot.from_urdf(geared(INERTIAL, INERTIAL.replace('izz="0.04"', 'izz="4"'), GEAR))


def test_principal_inertias_may_be_negative_by_rounding_alone() -> None:
    def rotor(smallest: float) -> str:
        return robot_xml(link("base"), link("rotor", (
            f'<inertial><mass value="1.5"/><inertia ixx="{smallest!r}" ixy="0" ixz="0" iyy="2" '
            'iyz="0" izz="2"/></inertial>'
        )), joint("spin", "base", "rotor"))  # fmt: skip

    Robot.from_urdf(rotor(-1.8e-6))
    with pytest.raises(RobotError, match="link 'rotor': .* must be positive semidefinite"):
        Robot.from_urdf(rotor(-2.2e-6))


def test_a_loop_may_close_over_links_without_inertia() -> None:
    def flat(name: str, ends: tuple[str, str], x: float) -> str:
        return (
            f'<joint name="{name}" type="continuous"><origin xyz="{x} 0 0"/><axis xyz="0 0 1"/>'
            f'<parent link="{ends[0]}"/><child link="{ends[1]}"/></joint>'
        )

    def bars(rocker: str) -> str:
        return robot_xml(
            link("base"), link("crank", ""), link("rod", ""), link("rocker", rocker),
            flat("a", ("base", "crank"), 0.0), flat("b", ("crank", "rod"), 0.5),
            flat("c", ("base", "rocker"), 1.0),
            '<loop name="bar" type="revolute"><predecessor link="rod"><origin xyz="0.8 0 0"/>'
            '</predecessor><successor link="rocker"><origin xyz="0.5 0 0"/></successor>'
            '<axis xyz="0 0 1"/></loop>',
        )  # fmt: skip

    assert Robot.from_urdf(bars(INERTIAL), "fixed").bodies[0].inertia.mass == 0.0
    with pytest.raises(RobotError, match="loop 'bar': some motion .*'a', 'b', 'c' moves no"):
        Robot.from_urdf(bars(""), "fixed")


def test_an_inertia_that_no_body_has_gets_a_warning_that_names_the_link(caplog) -> None:
    """Of principal inertias 1, 1 and 3 kg m^2 the largest is more than the sum of the others."""

    def read(izz: float) -> str:
        caplog.clear()
        inertial = (
            '<inertial><mass value="1"/><inertia ixx="1" iyy="1" ixy="0" ixz="0" iyz="0" '
            f'izz="{izz}"/></inertial>'
        )
        text = robot_xml(link("base"), link("arm", inertial), joint("shoulder", "base", "arm"))
        Robot.from_urdf(text, base="fixed")
        return caplog.text

    assert "link 'arm': no body has the inertia of what joint 'shoulder' moves" in read(3.0)
    assert "1, 1, 3 kg m^2" in caplog.text
    assert not read(2.0)  # a plate
    assert not read(2.01)  # a plate, rounded
