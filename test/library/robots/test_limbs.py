"""Limbs: ends, hands, feet and wheels of published robots, and of closed loops."""

from __future__ import annotations

import json

import numpy as np
import pytest
import robots
from linkages import four_bar
from parallel_ankle import parallel_ankles
from urdf_text import INERTIAL, joint, link, robot_xml

from delassus import Problem, Robot
from delassus.algorithms.dense import definition
from delassus.robots.description import described_by
from delassus.robots.limbs import Limbs
from delassus.robots.pose import default_posture

ONE_PER_LIMB = {
    "alex_description/urdf/alex_sake_hands.urdf": (
        "LeftSakePalmLink:surface RightSakePalmLink:surface", 4, 0,
    ),
    "alexander_description/urdf/alexander_v1.lowerBodyOnly.urdf": (
        "LEFT_FOOT:surface RIGHT_FOOT:surface", 0, 0,
    ),
    "allegro_hand_description/urdf/allegro_left_hand.urdf": (
        "link_11.0_tip link_7.0_tip link_3.0_tip link_15.0_tip", 0, 0,
    ),
    "anymal_b_simple_description/robots/anymal-kinova.urdf": (
        "LF_FOOT RF_FOOT LH_FOOT RH_FOOT j2s6s200_end_effector", 0, 0,
    ),
    "baxter_description/urdf/baxter.urdf": ("right_hand_link left_hand_link", 4, 0),
    "bolt_description/robots/bolt.urdf": ("FL_FOOT FR_FOOT", 0, 0),
    "centauro_description/urdf/centauro.urdf": (
        "arm1_8 arm2_8 wheel_1 wheel_2 wheel_3 wheel_4", 0, 4,
    ),
    "g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf": (
        "left_ankle_roll_link:surface right_ankle_roll_link:surface left_hand_palm_link:surface "
        "right_hand_palm_link:surface", 14, 0,
    ),
    "go2_description/urdf/go2.urdf": ("FL_foot FR_foot RL_foot RR_foot", 0, 0),
    "icub_description/robots/icub_reduced.urdf": (
        "l_sole:surface r_sole:surface l_hand r_hand", 0, 0,
    ),
    "iris_description/robots/iris.urdf": ("", 0, 0),
    "panda_description/urdf/panda.urdf": ("panda_hand_tcp", 2, 0),
    "pr2_description/urdf/pr2.urdf": ("r_gripper_tool_frame l_gripper_tool_frame", 12, 0),
    "romeo_description/urdf/romeo_small.urdf": (
        "l_sole:surface r_sole:surface l_wrist r_wrist", 0, 0,
    ),
    "simple_humanoid_description/urdf/simple_humanoid.urdf": (
        "r_ankle:surface l_ankle:surface r_wrist l_wrist", 0, 0,
    ),
    "talos_data/robots/talos_full_v2.urdf": (
        "wrist_left_ft_tool_link wrist_right_ft_tool_link left_sole_link:surface "
        "right_sole_link:surface", 14, 0,
    ),
    "tiago_description/robots/tiago.urdf": ("arm_tool_link", 36, 2),
    "ur_description/urdf/ur5_robot.urdf": ("tool0:surface", 0, 0),
    "z1_description/urdf/z1.urdf": ("link06", 1, 0),
}  # fmt: skip
"""Per published robot: proposed contacts, points but for surfaces; joints of fingers; wheels."""


@pytest.mark.parametrize("name", ONE_PER_LIMB)
def test_limb_has_one_contact_before_its_fingers(name: str) -> None:
    description = described_by(str(robots.example(name)), None, None)
    limbs, found = description.limbs, description.proposals
    chosen = [end.frame + f":{end.kind}" * (end.kind == "surface") for end in found if end.chosen]
    assert (" ".join(chosen), len(limbs.fingers), len(limbs.wheels)) == ONE_PER_LIMB[name]
    held = description.locked(description.fingers(), "--lock fingers")
    assert held.robot.nv == description.robot.nv - len(limbs.fingers)
    assert held.proposals == found


SHARED = {
    "atlas_v5": ("l_hand r_hand l_foot:surface r_foot:surface", 0),
    "epr_digit_like_2legs": ("foot:surface foot_left:surface", 0),
    "grbda_jvrc1_humanoid": (
        "left-wrist-yaw right-wrist-yaw left-ankle-pitch:surface right-ankle-pitch:surface", 0,
    ),
    "grbda_mit_humanoid": (
        "right_ankle_link left_ankle_link right_elbow_link left_elbow_link", 0,
    ),
    "shadow_hand_right": ("rh_fftip rh_mftip rh_rftip rh_lftip rh_thtip", 0),
}  # fmt: skip


@pytest.mark.parametrize("name", SHARED)
def test_ends_of_robots_with_rotors_and_rods(name: str) -> None:
    path = robots.shared(name)
    loops = path.with_suffix(".yaml")
    description = described_by(str(path), None, str(loops) if loops.exists() else None)
    chosen = [end.frame + f":{end.kind}" * (end.kind == "surface")
              for end in description.proposals if end.chosen]  # fmt: skip
    assert (" ".join(chosen), len(description.limbs.fingers)) == SHARED[name]


@pytest.mark.parametrize("foot", ["foot_", "pad_"])
@pytest.mark.parametrize("looped", [True, False])
def test_parallel_ankle_is_no_hand_and_its_rods_are_no_ends(foot: str, looped: bool) -> None:
    text, loops = parallel_ankles(foot)
    robot = Robot.from_urdf(text, loops=loops if looped else None)
    limbs = Limbs(robot)
    assert not limbs.fingers and not limbs.wheels
    found = {limbs.frame(i) for i in limbs.ends if limbs.touches(i)}
    if looped or foot == "foot_":
        assert found == {f"{foot}left", f"{foot}right"}
    else:
        # Without loops and names, rods are leaves; cuts of loops are no ends even so.
        assert not any("closedloop" in name for name in found)


def test_names_alone_make_a_hand() -> None:
    def robot(wrist: str, *carried: str) -> Robot:
        bodies = [f"{name}_link" for name in carried]
        return Robot.from_urdf(robot_xml(
            link("trunk", INERTIAL.replace("1.5", "15")), *map(link, ("forearm", wrist, *bodies)),
            joint("elbow", "trunk", "forearm"), joint("turn", "forearm", wrist),
            *(joint(name, wrist, body) for name, body in zip(carried, bodies, strict=True)),
        ))  # fmt: skip

    for wrist, carried, fingers in (
        ("wrist", ("thumb", "index", "ring"), 3),
        ("wrist", ("index", "ring"), 0),
        ("palm", ("a", "b"), 2),
        ("palm", ("a", "left_toe"), 0),
        ("shank", ("finger_of_the_foot", "thumb_of_the_foot"), 0),
        ("wrist", ("a", "b"), 0),
        ("palm", ("left_wheel", "right_wheel"), 0),
    ):
        assert len(Limbs(robot(wrist, *carried)).fingers) == fingers, (wrist, carried)


def test_body_of_a_loop_is_no_hand() -> None:
    made = four_bar()
    assert Limbs(made).ends == [1] and not Limbs(made).fingers


def test_locked_fingers_change_g_and_nothing_is_locked_unasked(capsys) -> None:
    """Locked fingers change G at the palm of a G1 by some 4 %."""
    from delassus_ros.verbs.main import main

    file = str(robots.example("g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf"))
    description = described_by(file, None, None)
    robot, contacts = description.robot, [e.contact() for e in description.proposals if e.chosen]
    q = default_posture(robot).q
    expected = definition(Problem(robot, contacts), {"q": q})
    matrices = {}
    for lock in ((), ("--lock", "none"), ("--lock", "fingers")):
        assert main(["compute", file, *lock, "--json"]) == 0
        captured = capsys.readouterr()
        matrices[lock] = np.array(json.loads(captured.out)["G"])
        said = "14 joints are locked by --lock fingers: 'left_hand_thumb_0_joint', "
        assert (said in captured.err) == (lock[1:] == ("fingers",))
    error = np.abs(matrices[()] - expected).max() / np.abs(expected).max()
    assert error < 1e-10 and np.array_equal(matrices[()], matrices["--lock", "none"])
    palm = slice(12, 15)
    change = matrices["--lock", "fingers"][palm, palm] - expected[palm, palm]
    assert np.abs(change).max() > 0.03 * np.abs(expected[palm, palm]).max()
