"""Bodies without inertia: where they can be, and where not."""

from __future__ import annotations

import numpy as np
import pytest
from linkages import four_bar_urdf
from urdf_text import INERTIAL, coupling, inertial, joint, link, robot_xml

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.errors import RobotError

GEAR = coupling("gear", "arm", "rotor")


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
    belt = coupling("belt", "arm", "idle", 2.0)
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
        turned = link("rotor", inertial(1.5, ixx=smallest, iyy=2, izz=2))
        return robot_xml(link("base"), turned, joint("spin", "base", "rotor"))

    Robot.from_urdf(rotor(-1.8e-6))
    with pytest.raises(RobotError, match="link 'rotor': .* must be positive semidefinite"):
        Robot.from_urdf(rotor(-2.2e-6))


def test_a_loop_may_close_over_links_without_inertia() -> None:
    bar = (
        '<loop name="bar" type="revolute"><predecessor link="coupler_end"/><successor '
        'link="rocker_end"/><axis xyz="0 0 1"/></loop>'
    )
    text = four_bar_urdf(bar)
    for name in ("crank", "coupler"):
        text = text.replace(link(name), link(name, ""))
    assert Robot.from_urdf(text, "fixed").bodies[0].inertia.mass == 0.0
    words = "loop 'bar': some motion .*'crank', 'coupler', 'rocker' moves no"
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(text.replace(link("rocker"), link("rocker", "")), "fixed")


def test_an_inertia_that_no_body_has_gets_a_warning_that_names_the_link(caplog) -> None:
    """Of principal inertias 1, 1 and 3 kg m^2 the largest is more than the sum of the others."""

    def read(izz: float) -> str:
        caplog.clear()
        arm = link("arm", inertial(1, ixx=1, iyy=1, izz=izz))
        text = robot_xml(link("base"), arm, joint("shoulder", "base", "arm"))
        Robot.from_urdf(text, base="fixed")
        return caplog.text

    assert "link 'arm': no body has the inertia of what joint 'shoulder' moves" in read(3.0)
    assert "1, 1, 3 kg m^2" in caplog.text
    assert not read(2.0)  # a plate
    assert not read(2.01)  # a plate, rounded
