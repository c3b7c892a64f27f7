"""The robot that comes out of a URDF: its joints, its bodies, its frames."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from on_floats import matrix
from oracles import relative
from oracles.pinocchio_models import of_pinocchio
from oracles.textbook import mass_matrix
from urdf_text import INERTIAL, inertial, joint, link, robot_xml

from delassus.errors import RobotError
from delassus.model import WORLD, JointKind, Robot
from delassus.model.reading.xml import parse_xml
from delassus.model.robot import Base

# --- tree -------------------------------------------------------------------------------------


def test_joints_come_depth_first_in_document_order() -> None:
    robot = Robot.from_urdf(
        robot_xml(
            joint("b2", "base", "lb2"),
            joint("c1", "lb1", "lc1"),
            joint("b1", "base", "lb1"),
            joint("c2", "lb2", "lc2"),
            *(link(name) for name in ("lc1", "base", "lb1", "lb2", "lc2")),
        ),
        "fixed",
    )
    assert robot.joint_names == ("b2", "c2", "b1", "c1")
    assert [body.name for body in robot.bodies] == ["lb2", "lc2", "lb1", "lc1"]
    assert [item.parent for item in robot.joints] == [WORLD, 0, WORLD, 2]


def test_order_goes_through_fixed_joints() -> None:
    robot = Robot.from_urdf(
        robot_xml(
            *(link(name) for name in ("base", "plate", "arm", "leg")),
            joint("weld", "base", "plate", "fixed"),
            joint("leg_joint", "base", "leg"),
            joint("arm_joint", "plate", "arm"),
        )
    )
    assert [item.name for item in robot.joints] == ["root", "arm_joint", "leg_joint"]
    assert [item.parent for item in robot.joints] == [WORLD, 0, 0]


def test_kinds_limits_and_axes() -> None:
    limit = '<limit lower="-0.5" upper="1.5" effort="1" velocity="1"/>'
    robot = Robot.from_urdf(
        robot_xml(
            *(link(name) for name in "abcdefgh"),
            joint("turn", "a", "b", "revolute", '<axis xyz="0 3 4"/>' + limit),
            joint("spin", "b", "c", "continuous", '<axis xyz="0 0 -2"/>' + limit),
            joint("slide", "c", "d", "prismatic", limit),
            joint("plane", "d", "e", "planar", '<axis xyz="0 0 1"/>'),
            joint("free", "e", "f", "floating"),
            joint("open", "f", "g", "revolute", ""),
            joint("driven", "g", "h", "revolute", '<limit effort="3" velocity="2"/>'),
        ),
        "fixed",
    )
    turn, spin, slide, plane, free, open_, driven = robot.joints
    assert [item.kind for item in robot.joints] == [
        JointKind.REVOLUTE, JointKind.REVOLUTE, JointKind.PRISMATIC, JointKind.PLANAR,
        JointKind.FLOATING, JointKind.REVOLUTE, JointKind.REVOLUTE,
    ]  # fmt: skip
    assert turn.axis.tolist() == [0.0, 0.6, 0.8]
    assert spin.axis.tolist() == [0.0, 0.0, -1.0]
    assert slide.axis.tolist() == [1.0, 0.0, 0.0]  # what URDF says a missing axis is
    assert (turn.lower, turn.upper) == (slide.lower, slide.upper) == (-0.5, 1.5)
    for unlimited in (spin, plane, free, open_, driven):
        assert (unlimited.lower, unlimited.upper) == (-np.inf, np.inf)


def test_origins_with_quaternions_turn_joints_and_inertias_as_pinocchio_has_it() -> None:
    import pinocchio as pin
    text = robot_xml(
        *(link(name, re.sub("rpy=.[^>]*/>", 'quat_xyzw="0.1 -0.7 0.5 0.5"/>', INERTIAL, count=1))
          for name in "abc"),
        *(re.sub("rpy=.[^>]*/>", f'quat_xyzw="{turn}"/>', joint(f"to_{b}", a, b, "continuous"),
                 count=1)
          for a, b, turn in (("a", "b", "0.5 0.5 0.5 0.5"), ("b", "c", "0.7071 0 -0.7071 0"))),
        head='name="test" version="1.1"',
    )  # fmt: skip
    assert text.count("quat_xyzw") == 5 and "rpy" not in text
    try:
        model = pin.buildModelFromXML(text)
    except ValueError:
        pytest.skip("this Pinocchio reads URDF 1.0 alone")
    robot = Robot.from_urdf(text, "fixed")
    expected = Robot.from_pinocchio(model)
    for ours, theirs in zip(robot.joints, expected.joints, strict=True):
        np.testing.assert_allclose(
            ours.placement.rotation, theirs.placement.rotation, rtol=0, atol=1e-15
        )
    positions = {"to_b": 0.4, "to_c": -1.1}
    G = matrix(robot, ["c"], positions)
    assert relative(G, of_pinocchio(model, ["c"], positions)) < 1e-10


@pytest.mark.parametrize(
    ("written", "limits"),
    [
        # What URDF says a missing bound is; and unlimited bounds.
        ('upper="1.5"', (0.0, 1.5)),
        ('lower="-inf" upper="1e16"', (-np.inf, 1e16)),
    ],
)
def test_limits(written: str, limits: tuple[float, float]) -> None:
    limit = f'<limit {written} effort="1" velocity="1"/>'
    text = robot_xml(link("a"), link("b"), joint("j", "a", "b", "revolute", limit))
    moved = Robot.from_urdf(text, "fixed").joints[0]
    assert (moved.lower, moved.upper) == limits


def test_fixed_joints_are_lumped_and_their_links_stay_as_frames() -> None:
    parts = [*(link(name) for name in ("base", "arm", "hand")), joint("shoulder", "base", "arm")]
    apart = Robot.from_urdf(robot_xml(*parts, joint("wrist", "arm", "hand", "revolute")), "fixed")
    lumped = Robot.from_urdf(robot_xml(*parts, joint("wrist", "arm", "hand", "fixed")), "fixed")
    assert lumped.joint_names == ("shoulder",)
    hand = lumped.frames["hand"]
    assert hand.body == 0
    # At q = 0 the moving wrist is where the fixed one is.
    wrist = apart.joints[1].placement
    assert hand.placement.to_bytes() == wrist.to_bytes()
    expected = apart.bodies[0].inertia + apart.bodies[1].inertia.in_parent(wrist)
    assert np.allclose(lumped.bodies[0].inertia.matrix(), expected.matrix(), rtol=0, atol=1e-15)
    assert lumped.bodies[0].inertia.mass == 3.0


def test_frame_of_a_moving_link_is_its_joint_frame() -> None:
    robot = Robot.from_urdf(robot_xml(link("a"), link("b"), joint("j", "a", "b")), "fixed")
    assert robot.frames["b"].body == 0
    assert np.array_equal(robot.frames["b"].placement.rotation, np.eye(3))
    assert np.array_equal(robot.frames["b"].placement.translation, np.zeros(3))


def test_links_may_lack_inertia_where_others_have_it() -> None:
    robot = Robot.from_urdf(
        robot_xml(
            *(link(name, "") for name in ("footprint", "shoulder_1", "tool")),
            *(link(name) for name in ("base", "arm")),
            joint("stand", "footprint", "base", "fixed"),
            joint("yaw", "base", "shoulder_1"),
            joint("pitch", "shoulder_1", "arm"),
            joint("mount", "arm", "tool", "fixed"),
        )
    )
    assert [item.name for item in robot.joints] == ["root", "yaw", "pitch"]
    assert [body.inertia.mass for body in robot.bodies] == [1.5, 0.0, 1.5]
    assert set(robot.frames) == {"footprint", "base", "shoulder_1", "arm", "tool"}


AB = (link("a"), joint("j", "a", "b"))


def test_a_rotor_may_have_inertia_without_mass() -> None:
    rotor = inertial(0, ixx="1e-5", iyy="1e-5", izz="2e-5")
    robot = Robot.from_urdf(robot_xml(*AB, link("b", rotor)))
    assert robot.bodies[1].inertia.rotational[2, 2] == 2e-5


def test_inertia_may_break_the_triangle_inequality() -> None:
    broken = INERTIAL.replace('izz="0.04"', 'izz="0.4"')
    assert Robot.from_urdf(robot_xml(link("a", broken))).bodies[0].inertia.mass == 1.5


def test_point_masses_may_carry_rounding_noise() -> None:
    noisy = inertial(1, '<origin xyz="0.1 0 0"/>', ixz="2.4e-35")
    Robot.from_urdf(robot_xml(*AB, link("b", noisy)))


def test_a_small_bad_link_does_not_spoil_a_sound_body() -> None:
    antenna = inertial(0.01, ixx="3e-8", ixz="6e-8", iyy="3e-8", izz="3e-8")
    parts = [link("a"), link("antenna", antenna), joint("weld", "a", "antenna", "fixed")]
    assert Robot.from_urdf(robot_xml(*parts)).bodies[0].inertia.mass == pytest.approx(1.51)


# --- base -------------------------------------------------------------------------------------

FREE = (
    link("world", ""),
    link("trunk"),
    link("leg"),
    joint("free", "world", "trunk", "floating", ""),
    joint("hip", "trunk", "leg"),
)


def test_floating_base_puts_a_free_flyer_under_the_root_link() -> None:
    robot = Robot.from_urdf(robot_xml(link("a"), link("b"), joint("j", "a", "b")), "floating")
    assert (robot.base, robot.nq, robot.nv) == ("floating", 1, 7)
    assert (robot.joints[0].name, robot.joints[0].kind) == ("root", JointKind.ROOT)
    assert robot.bodies[0].name == "a"
    assert robot.frames["a"].body == 0


def test_fixed_base_welds_the_root_link_and_drops_its_inertia() -> None:
    text = robot_xml(
        link("table"), link("a"), link("b"),
        joint("mount", "table", "a", "fixed"), joint("j", "a", "b"),
    )  # fmt: skip
    robot = Robot.from_urdf(text, "fixed")
    assert (robot.base, robot.nq, robot.nv) == ("fixed", 1, 1)
    assert [body.name for body in robot.bodies] == ["b"]
    assert robot.bodies[0].inertia.mass == 1.5
    assert robot.frames["table"].body == robot.frames["a"].body == WORLD
    mount = robot.frames["a"].placement
    assert mount.translation.tolist() == [0.1, -0.2, 0.3]
    assert robot.joints[0].placement.to_bytes() == (mount @ mount).to_bytes()


def test_a_floating_joint_on_the_root_link_is_the_free_flyer() -> None:
    robot = Robot.from_urdf(robot_xml(*FREE), "floating")
    assert [item.name for item in robot.joints] == ["root", "hip"]
    assert (robot.nq, robot.nv) == (1, 7)
    assert robot.frames["world"].body == WORLD
    assert robot.frames["trunk"].body == 0
    assert np.array_equal(robot.joints[0].placement.rotation, np.eye(3))


def test_with_a_fixed_base_a_floating_joint_has_entries_in_q() -> None:
    robot = Robot.from_urdf(robot_xml(*FREE), "fixed")
    assert [item.name for item in robot.joints] == ["free", "hip"]
    assert robot.joints[0].kind is JointKind.FLOATING
    assert (robot.base, robot.nq, robot.nv) == ("fixed", 8, 7)
    assert robot.joints[0].placement.translation.tolist() == [0.1, -0.2, 0.3]


def test_a_floating_joint_beside_others_stays_inside_the_tree() -> None:
    robot = Robot.from_urdf(
        robot_xml(
            link("ship"), link("boat"), link("crane"),
            joint("free", "ship", "boat", "floating", ""), joint("slew", "ship", "crane"),
        )
    )  # fmt: skip
    assert [item.kind for item in robot.joints] == [
        JointKind.ROOT, JointKind.FLOATING, JointKind.REVOLUTE
    ]  # fmt: skip


def test_root_floating_joint_gives_the_same_dynamics_as_a_free_flyer() -> None:
    floating = Robot.from_urdf(robot_xml(*FREE), "floating")
    fixed = Robot.from_urdf(robot_xml(*FREE), "fixed")
    q = np.array([0.7])
    inner = np.concatenate([np.zeros(6), [1.0], q])
    assert np.allclose(mass_matrix(floating, q), mass_matrix(fixed, inner), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("taken", "chosen"),
    [((), "root"), (("root",), "root_joint"), (("root", "root_joint"), "root_joint_2")],
)
def test_the_free_flyer_never_takes_the_name_of_a_joint(
    taken: tuple[str, ...], chosen: str
) -> None:
    names = (*taken, "other")
    links = [link("base"), *(link(f"l{i}") for i in range(len(names)))]
    joints = [joint(name, "base", f"l{i}") for i, name in enumerate(names)]
    robot = Robot.from_urdf(robot_xml(*links, *joints))
    assert robot.joints[0].name == chosen
    assert robot.joint_names == names


def test_a_single_body_can_float() -> None:
    robot = Robot.from_urdf(robot_xml(link("drone")))
    assert (robot.nq, robot.nv, robot.joint_names) == (0, 6, ())


def test_long_chains_do_not_exhaust_the_stack() -> None:
    count = sys.getrecursionlimit() + 200
    links = (link(f"l{i}") for i in range(count + 1))
    joints = (joint(f"j{i}", f"l{i}", f"l{i + 1}") for i in range(count))
    assert Robot.from_urdf(robot_xml(*links, *joints)).nq == count


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize("lacking", ["", inertial(0)])
@pytest.mark.parametrize("base", ["floating", "fixed"])
def test_refuses_a_moving_leaf_without_inertia(lacking: str, base: Base) -> None:
    text = robot_xml(
        link("a"), link("b", lacking), link("tip", lacking),
        joint("elbow", "a", "b"), joint("weld", "b", "tip", "fixed"),
    )  # fmt: skip
    with pytest.raises(
        RobotError, match="link 'b': no inertia on the last link that joint 'elbow' moves.*give it"
    ):
        Robot.from_urdf(text, base)


@pytest.mark.parametrize(
    "moving",
    [
        [joint("hip", "base", "b")],
        [joint("hip", "base", "b"), joint("neck", "base", "c")],
        [joint("hip", "base", "b", "floating", ""), joint("neck", "base", "c", "floating", "")],
    ],
)
def test_refuses_a_floating_base_without_inertia(moving: list[str]) -> None:
    links = [link("base", ""), link("b"), link("c")][: len(moving) + 1]
    words = r"link 'base': the base floats but has no inertia.*'hip'.*base='fixed'.*--base fixed"
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(robot_xml(*links, *moving))
    assert Robot.from_urdf(robot_xml(*links, *moving), "fixed").base == "fixed"


INDEFINITE = (
    "link 'b': the inertia of the body that joint 'j' moves must be positive semidefinite, or "
    "some motion would have negative energy; principal inertias of this link: -"
)


@pytest.mark.parametrize(
    ("parts", "base", "words"),
    [
        ([link("base", "")], "floating", "link 'base': the base floats .* move on it: none"),
        (
            [*AB, link("b", INERTIAL.replace('iyz="0.002"', 'iyz="0.2"'))],
            "floating", INDEFINITE,
        ),
        # The link is named that spoils the inertia of what is lumped.
        (
            [*AB, link("b"), link("c", INERTIAL.replace('iyz="0.002"', 'iyz="9"')),
             joint("weld", "b", "c", "fixed")],
            "floating", "link 'c': .* 'j'",
        ),
        ([link("a")], "free", "base must be 'floating' or 'fixed', got 'free'"),
    ],
)  # fmt: skip
def test_refused(parts: list[str], base: Base, words: str) -> None:
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(robot_xml(*parts), base)


def test_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    noisy = (
        '<gazebo reference="a"><sensor name="s" type="imu"/></gazebo>'
        '<transmission name="t"><joint name="j"/></transmission>'
        '<ros2_control name="c" type="system"><joint name="j"/></ros2_control>'
        '<material name="m"/><sensor name="s"/><unheard_of attribute="x"/>'
    )
    odd = '<limit effort="1" rate="2"/><safety_controller/><unheard_of/>'
    body = link("b", INERTIAL + "<visual/><collision/><self_collision_checking/>")
    Robot.from_urdf(robot_xml(link("a"), body, joint("j", "a", "b", inside=odd), noisy))
    assert capfd.readouterr() == ("", "")


def test_from_urdf_reads_paths_text_and_bytes_alike(tmp_path: Path) -> None:
    text = robot_xml(link("a"), link("b"), joint("j", "a", "b"))
    path = tmp_path / "robot.urdf"
    path.write_text(text, encoding="utf-8")
    expected = Robot.from_urdf(text).to_bytes()
    for source in (path, str(path), text.encode(), parse_xml(text)):
        assert Robot.from_urdf(source).to_bytes() == expected
    armed = Robot.from_urdf(path, base="fixed", armature={"j": 0.01})
    assert armed.joints[0].armature == 0.01
