"""`delassus config`: what it proposes is what the node takes, unchanged."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
import yaml
from cli_support import QUADRUPED, output, refusal
from linkages import four_bar
from urdf_text import joint, link, robot_xml, without_geometry

from delassus_ros import DelassusSolver, Robot
from delassus_ros.cli.main import main
from delassus_ros.drawing.skeleton import Skeleton
from delassus_ros.model.reading.xml import parse_xml
from delassus_ros.node.settings import PARAMETERS, Settings
from delassus_ros.robots.base import base_of
from delassus_ros.robots.limbs import Limbs, proposals
from delassus_ros.robots.pose import pose_of


def parameters(text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def walk(tree: dict[str, Any], prefix: str) -> None:
        for key, value in tree.items():
            if isinstance(value, dict):
                walk(value, f"{prefix}{key}.")
            else:
                found[f"{prefix}{key}"] = value

    walk(yaml.safe_load(text)["/**"]["ros__parameters"], "")
    return found


@pytest.mark.parametrize("name", robots.TEN)
def test_what_is_proposed_starts_unchanged(name: str, capsys) -> None:
    load, base, least = robots.TEN[name]
    file = load()
    text = output(capsys, "config", str(file), "--base", base)
    values = parameters(text)
    of_contacts = tuple(f"contacts.{each}." for each in values["contacts.names"])
    assert all(key in PARAMETERS or key.startswith(of_contacts) for key in values)
    settings = Settings.from_parameters(values)
    assert settings.algorithm == "auto" and len(settings.contacts) >= least
    problem = settings.problem(file.read_bytes())
    G = DelassusSolver(problem, "ltl").solve(problem.robot.neutral() + 0.1).matrix
    assert np.isfinite(G).all() and len(G) == problem.contacts.rows


def test_kinds_follow_shapes(tmp_path: Path, capsys) -> None:
    kinds = {"LF_FOOT": "<sphere radius='0.02'/>", "RF_FOOT": "<box size='1 1 1'/>"}
    text = without_geometry(robots.quadruped().read_text(encoding="utf-8"))
    for foot, kind in kinds.items():
        collision = f"<collision><geometry>{kind}</geometry></collision>"
        for head in (f'<link name="{foot}"/>', f'<link name="{foot}">'):
            body = f'<link name="{foot}">{collision}' + ("</link>" if head.endswith("/>") else "")
            text = text.replace(head, body)
    file = tmp_path / "robot.urdf"
    file.write_text(text, encoding="utf-8")
    values = parameters(output(capsys, "config", str(file), "--lock", "RH_KFE=-1.2"))
    assert values["contacts.LF_FOOT.kind"] == "point"
    assert values["contacts.RF_FOOT.kind"] == "surface"
    assert values["lock.names"] == ["RH_KFE"] and values["lock.values"] == [-1.2]
    assert Settings.from_parameters(values).problem(file.read_bytes()).robot.nq == 11


FIXED = {
    "TwoDofs", "allegro_left_hand", "allegro_right_hand", "baxter", "double_pendulum",
    "double_pendulum_continuous", "double_pendulum_simple", "finger_edu", "kinova", "panda",
    "panda_collision", "pr2", "so100", "so101", "talos_left_arm", "tiago", "tiago_dual",
    "tiago_no_hand", "tiago_pro", "ur10_joint_limited_robot", "ur10_robot", "ur3_gripper",
    "ur3_joint_limited_robot", "ur3_robot", "ur5_gripper", "ur5_joint_limited_robot",
    "ur5_robot", "xarm7", "z1",
}  # fmt: skip
"""Published robots with one limb, with arms and no legs, and on wheels."""
FLYING = {"borinot_flying_arm_2", "hextilt_flying_arm_5"}
"""Arms on drones, which nothing in their description says."""


def test_arms_are_fixed_and_what_walks_floats() -> None:
    folder = robots.example("panda_description/urdf/panda.urdf").parents[2]
    documents = {path.stem: parse_xml(path) for path in folder.glob("**/*.urdf")}
    found = {name for name, document in documents.items() if base_of(document).base == "fixed"}
    assert found == (FIXED | FLYING) & documents.keys()
    assert {"panda", "ur5_robot", "xarm7"} <= found < documents.keys()


ONE_PER_LIMB = {
    "baxter_description/urdf/baxter.urdf": (["right_hand_link", "left_hand_link"], 4, 0),
    "g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf": (
        ["left_ankle_roll_link", "right_ankle_roll_link", "left_hand_palm_link",
         "right_hand_palm_link"], 14, 0,
    ),
    "icub_description/robots/icub_reduced.urdf": (["l_sole", "r_sole", "l_hand", "r_hand"], 0, 0),
    "panda_description/urdf/panda.urdf": (["panda_hand_tcp"], 2, 0),
    "pr2_description/urdf/pr2.urdf": (["r_gripper_tool_frame", "l_gripper_tool_frame"], 12, 0),
    "talos_data/robots/talos_full_v2.urdf": (
        ["wrist_left_ft_tool_link", "wrist_right_ft_tool_link", "left_sole_link",
         "right_sole_link"], 14, 0,
    ),
    "tiago_description/robots/tiago.urdf": (["arm_tool_link"], 36, 2),
    "z1_description/urdf/z1.urdf": (["link06"], 1, 0),
    "allegro_hand_description/urdf/allegro_left_hand.urdf": (
        ["link_11.0_tip", "link_7.0_tip", "link_3.0_tip", "link_15.0_tip"], 0, 0,
    ),
}  # fmt: skip
"""Per published robot: proposed contacts, number of joints of fingers, number of wheels."""


@pytest.mark.parametrize("name", ONE_PER_LIMB)
def test_a_limb_has_one_contact_before_its_fingers(name: str) -> None:
    file = robots.example(name)
    document = parse_xml(file)
    robot = Robot.from_urdf(file, base_of(document).base)
    limbs = Limbs(robot)
    chosen = [end.frame for end in proposals(robot, document) if end.chosen]
    assert (chosen, len(limbs.fingers), len(limbs.wheels)) == ONE_PER_LIMB[name]
    pose = pose_of(robot)
    held = robot.lock({finger: pose[finger] for finger in limbs.fingers})
    assert held.nv == robot.nv - len(limbs.fingers)


def test_fingers_are_locked_and_wheels_are_said(capsys) -> None:
    file = str(robots.example("tiago_description/robots/tiago.urdf"))
    assert main(["config", file]) == 0
    text = capsys.readouterr().out
    values = parameters(text)
    assert values["contacts.names"] == ["arm_tool_link"] and len(values["lock.names"]) == 36
    assert "    lock:  # fingers, which move without these lines\n" in text
    assert "Wheels, which roll and are no contacts: wheel_right_link, wheel_left_link" in text
    assert "# or floating; link 'wheel_right_link' looks like a wheel" in text
    robot = Settings.from_parameters(values).problem(Path(file).read_bytes()).robot
    assert not any("hand" in name for name in robot.joint_names)


def test_the_pose_is_inside_the_limits() -> None:
    robot = Robot.from_urdf(robots.panda(), "fixed")
    pose = pose_of(robot)
    assert all(joint.lower <= pose[joint.name] <= joint.upper for joint in robot.joints)
    assert pose["panda_joint1"] == 0.0 and pose["panda_joint4"] == pytest.approx(-1.5708)


def test_pose_ends_and_bones_are_the_same_however_loops_are_closed() -> None:
    made = four_bar()
    # A coupler that must bend turns the crank back, unless the joints are tied by a loop.
    joints = [
        replace(each, lower=0.5, upper=1.5) if each.name == "coupler" else each
        for each in made.joints
    ]
    robot = made.replaced(joints=joints)
    rows = robot.with_loops_as("rows")
    assert pose_of(rows) == pose_of(robot) == {"crank": 0.0, "coupler": 1.0, "rocker": 0.0}
    assert Limbs(rows).proposals({}) == Limbs(robot).proposals({})
    lines = [
        np.array(each.bones(each.poses(robot.neutral()))) for each in map(Skeleton, (robot, rows))
    ]
    assert np.array_equal(*lines)


@pytest.mark.parametrize(
    ("name", "feet"),
    [
        ("go1_description/urdf/go1.urdf", ("FR_foot", "FL_foot", "RR_foot", "RL_foot")),
        ("a1_description/urdf/a1.urdf", ("FR_foot", "FL_foot", "RR_foot", "RL_foot")),
    ],
)
def test_a_quadruped_whose_knees_must_bend_stands_below_its_hips(
    name: str, feet: tuple[str, ...]
) -> None:
    robot = Robot.from_urdf(robots.example(name))
    pose = pose_of(robot)
    assert all(joint.lower <= pose[joint.name] <= joint.upper for joint in robot.joints[1:])
    skeleton = Skeleton(robot)
    poses = skeleton.poses(robot.q(pose))
    names = [joint.name for joint in robot.joints]
    for foot in feet:
        hip = poses[names.index(f"{foot[:2]}_thigh_joint"), :3, 3]
        below = hip - skeleton.frame(poses, foot)[:3, 3]
        # Thigh and shank are about equally long.
        assert abs(below[0]) < 0.05 and below[2] > 0.2


def test_the_base_that_is_assumed_is_said_with_the_other_one(tmp_path: Path, capsys) -> None:
    ends = ("trunk", "left", "right")
    limbs = [joint(f"to_{end}", "base", end) for end in ends[1:]]
    for parts, base, words in (
        (limbs, "floating", "# or fixed; 2 limbs move on the root link 'base'"),
        (limbs[:1], "fixed", "# or floating; one limb alone moves on the root link 'base'"),
        (
            [joint("to_left", "bare", "left"), joint("to_right", "bare", "right")],
            "fixed",
            "# the root link 'bare' has no mass",
        ),
        (
            [
                joint("weld", "bare", "trunk", "fixed", ""),
                joint("to_left", "trunk", "left"),
                joint("to_right", "trunk", "right"),
            ],
            "floating",
            "# or fixed; 2 limbs move on the root link 'bare'",
        ),
        (
            [joint("free", "bare", "trunk", "floating", ""), joint("to_left", "trunk", "left")],
            "floating",
            "# joint 'free' is floating",
        ),
        (
            [joint("weld", "base", "trunk", "fixed", ""), joint("to_left", "trunk", "left")],
            "fixed",
            "# or floating; one limb alone moves on the root link 'base'",
        ),
    ):
        names = ("base", "bare", *ends)
        used = [name for name in names if any(f'link="{name}"' in part for part in parts)]
        links = [link(name, *[""] * (name == "bare")) for name in used]
        path = tmp_path / "robot.urdf"
        path.write_text(robot_xml(*links, *parts))
        assert main(["config", str(path)]) == 0
        captured = capsys.readouterr()
        assert parameters(captured.out)["base"] == base
        assert f"    base: {base}  {words}\n" in captured.out
        assert ("taken as --base fixed" in captured.err) == (base == "fixed")


def test_links_in_a_ring_are_refused_and_not_gone_round_for_ever(tmp_path: Path, capsys) -> None:
    path = tmp_path / "ring.urdf"
    names = ("base", "trunk", "left")
    ring = [joint(f"j{k}", names[k], names[k % 2 + 1], "fixed", "") for k in range(3)]
    path.write_text(robot_xml(*map(link, names), *ring))
    assert "two parents" in refusal(capsys, "inspect", str(path))


def test_small_values_are_numbers_in_json_too(capsys) -> None:
    found = json.loads(output(capsys, "config", QUADRUPED, "--lock", "LF_KFE=0.00001", "--json"))
    assert found["/**"]["ros__parameters"]["lock"]["values"] == [1e-05]


def shape(kind: str, xyz: str = "0 0 0") -> str:
    return f"<collision><origin xyz='{xyz}'/><geometry>{kind}</geometry></collision>"


def limb(name: str, inside: str = "", *fixed: str) -> str:
    """Return a link that moves on the trunk, with others fixed to it."""
    parts = [link(name).replace("</link>", f"{inside}</link>"), joint(name, "trunk", name)]
    parts += [link(end) + joint(f"{end}_weld", name, end, "fixed", "") for end in fixed]
    return "".join(parts)


def test_spheres_in_a_plane_are_a_sole_under_the_joint() -> None:
    ball = '<sphere radius="0.005"/>'
    corners = ("-0.05 0.025 -0.03", "-0.05 -0.025 -0.03", "0.12 0.03 -0.03", "0.12 -0.03 -0.03")
    text = robot_xml(
        link("trunk"),
        limb("flat", "".join(shape(ball, at) for at in corners)),
        limb("in_a_row", "".join(shape(ball, f"{x} 0 -0.03") for x in (0.0, 0.1, 0.2))),
        limb("round", "".join(shape(ball, at) for at in (*corners, "0 0 0.1"))),
        limb("unreadable", "".join(shape(ball, at) for at in (*corners, "0 0"))),
    )
    found = {each.frame: each for each in proposals(Robot.from_urdf(text), parse_xml(text))}
    assert (found["flat"].kind, found["flat"].why) == ("surface", "spheres in a plane")
    assert found["flat"].xyz == (0.035, 0.0, -0.035)
    np.testing.assert_allclose(found["flat"].contact().placement.translation, [0.035, 0, -0.035])
    for other in ("in_a_row", "round", "unreadable"):
        assert (found[other].kind, found[other].xyz) == ("point", (0.0, 0.0, 0.0))


def test_a_ball_at_the_end_of_a_leg_touches_at_its_centre() -> None:
    foot, box = shape('<sphere radius="0.03"/>', "0 0 -0.3"), shape('<box size="1 1 1"/>')
    mesh = shape('<mesh filename="leg.stl"/>')
    text = robot_xml(
        link("trunk"), limb("ball", foot), limb("leg", mesh + foot), limb("boot", box + foot),
        limb("two", mesh + foot + foot),
    )  # fmt: skip
    found = {each.frame: each for each in proposals(Robot.from_urdf(text), parse_xml(text))}
    for name in ("ball", "leg"):
        assert (found[name].why, found[name].xyz) == ("a sphere", (0.0, 0.0, -0.3))
    for name in ("boot", "two"):
        assert (found[name].why, found[name].xyz) == ("no shape says it", (0.0, 0.0, 0.0))


def test_a_humanoids_feet_are_the_soles_that_its_spheres_span(capsys) -> None:
    file = robots.example("g1_description/urdf/g1_29dof_rev_1_0.urdf")
    values = parameters(output(capsys, "config", str(file)))
    foot = "contacts.left_ankle_roll_link"
    assert values[f"{foot}.kind"] == "surface" and values[f"{foot}.xyz"] == [0.035, 0.0, -0.035]
    settings = Settings.from_parameters(values)
    placement = settings.problem(file.read_bytes()).contacts[0].placement
    np.testing.assert_allclose(placement.translation, [0.035, 0.0, -0.035])


def test_what_is_not_meant_to_touch_is_no_contact(tmp_path: Path, capsys) -> None:
    sensors = ("d435_optical_frame", "IMU_link", "front_lidar", "ft_sensor")
    path = tmp_path / "robot.urdf"
    path.write_text(robot_xml(
        link("trunk"), limb("left_foot", "", "left_foot_imu"), limb("head_2", "", "jaw"),
        limb("simulated_toe"), limb("rotor_0"), limb("left_propeller"), *map(limb, sensors),
    ))  # fmt: skip
    text = output(capsys, "config", str(path))
    assert parameters(text)["contacts.names"] == ["left_foot", "simulated_toe"]
    assert "# Other ends: jaw, rotor_0, left_propeller, d435_optical_frame, IMU_link" in text
    words = "further sensors, heads and\n# rotors are excluded. Of more than 8 ends"
    assert words in text


def test_where_nothing_is_meant_to_touch_frames_are_asked_for(tmp_path: Path, capsys) -> None:
    path = tmp_path / "drone.urdf"
    path.write_text(robot_xml(link("trunk"), limb("rotor_0"), limb("rotor_1")))
    text = output(capsys, "config", str(path))
    assert "names: []  # none found; delassus inspect shows all frames\n" in text
    assert refusal(capsys, "compare", str(path)) == (
        "nothing of robot 'test' looks as if it touched; add --contact FRAME, of frames "
        "'trunk', 'rotor_0', 'rotor_1'\n"
    )
