"""`delassus config`: what it proposes is what the node takes, unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
import yaml
from cli_support import QUADRUPED, answer, output, refusal, urdf_file
from parallel_ankle import parallel_ankles
from urdf_text import joint, limb, link, without_geometry

from delassus import Closure, Contact, DelassusSolver, Problem, Robot
from delassus.algorithms.dense import definition
from delassus_ros.node.parameters import PARAMETERS, Settings
from delassus_ros.verbs.main import main


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
def test_proposed_parameters_are_valid_settings(name: str, capsys) -> None:
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
    values = parameters(output(capsys, "config", str(file), "--lock", "R?_KFE=-1.2,LF_HAA=0"))
    assert values["lock.names"] == ["RF_KFE", "RH_KFE", "LF_HAA"]
    assert Settings.from_parameters(values).problem(file.read_bytes()).robot.nq == 9


def test_a_robot_that_is_refused_for_its_hands_is_proposed_without_them(capsys) -> None:
    file = str(robots.example("romeo_description/urdf/romeo.urdf"))
    assert "--lock LHand=0" in refusal(capsys, "config", file)
    assert main(["config", file, "--lock", "?Hand=0"]) == 0
    values = parameters(capsys.readouterr().out)
    assert values["lock.names"] == ["LHand", "RHand"] and values["contacts.names"]
    problem = Settings.from_parameters(values).problem(Path(file).read_bytes())
    assert problem.robot.nq == 31


def test_joints_of_fingers_are_counted_and_locked_on_request(capsys) -> None:
    file = str(robots.example("tiago_description/robots/tiago.urdf"))
    assert main(["config", file]) == 0
    text = capsys.readouterr().out
    values = parameters(text)
    assert values["contacts.names"] == ["arm_tool_link"] and "lock.names" not in values
    assert "    # 36 joints of fingers move; --lock fingers locks them, which changes the" in text
    assert "# Wheels of a base that is fixed: wheel_right_link, wheel_left_link" in text
    assert "# or floating; link 'wheel_right_link' looks like a wheel" in text
    assert main(["config", file, "--lock", "fingers"]) == 0
    text = capsys.readouterr().out
    values = parameters(text)
    assert len(values["lock.names"]) == 36
    assert "    lock:  # 36 joints are locked by --lock fingers\n" in text
    robot = Settings.from_parameters(values).problem(Path(file).read_bytes()).robot
    assert not any("hand" in name for name in robot.joint_names)
    words = refusal(capsys, "config", QUADRUPED, "--lock", "fingers")
    assert words == (
        "--lock fingers: no joint of robot 'delassus_quadruped' is called as one of a finger\n"
    )


def test_parallel_ankles_stay_free_and_feet_are_proposed(tmp_path: Path, capsys) -> None:
    """A rigid ankle would make G of the feet several times smaller."""
    text, loops = parallel_ankles()
    urdf, side = tmp_path / "biped.urdf", tmp_path / "loops.yaml"
    urdf.write_text(text)
    side.write_text(loops)
    values = parameters(output(capsys, "config", str(urdf), "--loops", str(side)))
    assert values["contacts.names"] == ["foot_left", "foot_right"] and "lock.names" not in values
    problem = Settings.from_parameters(values).problem(text.encode())
    robot = Robot.from_urdf(text, loops=loops)
    assert problem.robot.nv == robot.nv
    found = answer(capsys, "compute", str(urdf), "--loops", str(side))
    contacts = [Contact(name, name, "surface") for name in ("foot_left", "foot_right")]
    q = Closure(robot).reference
    expected = definition(Problem(robot, contacts), {"q": q})
    assert np.abs(np.array(found["G"]) - expected).max() < 1e-10 * np.abs(expected).max()
    ankles = {name: 0.0 for name in robot.joint_names if "hip" not in name and "knee" not in name}
    rigid = definition(Problem(robot.lock(ankles), contacts), {"q": np.zeros(4)})
    assert expected[4, 4] > 2.0 * rigid[4, 4]


def test_lowest_points_of_wheels_come_on_a_topic(tmp_path: Path, capsys) -> None:
    file = robots.example("centauro_description/urdf/centauro.urdf")
    assert main(["config", str(file)]) == 0
    text = capsys.readouterr().out
    values = parameters(text)
    assert values["contacts.wheel_1.moving"] == "pose" and len(values["contacts.names"]) == 6
    assert "# The topic contact_placements has to tell the lowest points of wheels." in text
    problem = Settings.from_parameters(values).problem(file.read_bytes())
    assert problem.turning == tuple(f"wheel_{k}" for k in (1, 2, 3, 4))


def weld(parent: str, child: str) -> str:
    return joint("weld", parent, child, "fixed", "")


def limbs(parent: str, *ends: str) -> list[str]:
    return [joint(f"to_{end}", parent, end) for end in ends]


@pytest.mark.parametrize(
    ("parts", "base", "words"),
    [
        (limbs("base", "left", "right"), "floating",
         "# or fixed; 2 limbs move on the root link 'base'"),
        (limbs("base", "left"), "fixed",
         "# or floating; one limb alone moves on the root link 'base'"),
        (limbs("bare", "left", "right"), "fixed", "# the root link 'bare' has no mass"),
        ([weld("bare", "trunk"), *limbs("trunk", "left", "right")], "floating",
         "# or fixed; 2 limbs move on the root link 'bare'"),
        ([joint("free", "bare", "trunk", "floating", ""), *limbs("trunk", "left")], "floating",
         "# joint 'free' is floating"),
        ([weld("base", "trunk"), *limbs("trunk", "left")], "fixed",
         "# or floating; one limb alone moves on the root link 'base'"),
    ],
)  # fmt: skip
def test_assumed_base_written_with_the_other_one(
    tmp_path: Path, capsys, parts: list[str], base: str, words: str
) -> None:
    names = ("base", "bare", "trunk", "left", "right")
    used = [name for name in names if any(f'link="{name}"' in part for part in parts)]
    links = (link(name, *[""] * (name == "bare")) for name in used)
    assert main(["config", urdf_file(tmp_path, *links, *parts)]) == 0
    captured = capsys.readouterr()
    assert parameters(captured.out)["base"] == base
    assert f"    base: {base}  {words}\n" in captured.out
    assert ("taken as --base fixed" in captured.err) == (base == "fixed")


def test_links_in_a_ring_are_refused_and_not_gone_round_for_ever(tmp_path: Path, capsys) -> None:
    names = ("base", "trunk", "left")
    ring = [joint(f"j{k}", names[k], names[k % 2 + 1], "fixed", "") for k in range(3)]
    path = urdf_file(tmp_path, *map(link, names), *ring)
    assert "two parents" in refusal(capsys, "inspect", path)


def test_small_values_are_numbers_in_json_too(capsys) -> None:
    found = answer(capsys, "config", QUADRUPED, "--lock", "LF_KFE=0.00001")
    assert found["/**"]["ros__parameters"]["lock"]["values"] == [1e-05]


def test_a_humanoids_feet_are_the_soles_that_its_spheres_span(capsys) -> None:
    file = robots.example("g1_description/urdf/g1_29dof_rev_1_0.urdf")
    values = parameters(output(capsys, "config", str(file)))
    foot = "contacts.left_ankle_roll_link"
    assert values[f"{foot}.kind"] == "surface" and values[f"{foot}.xyz"] == [0.035, 0.0, -0.035]
    settings = Settings.from_parameters(values)
    placement = settings.problem(file.read_bytes()).contacts[0].placement
    np.testing.assert_allclose(placement.translation, [0.035, 0.0, -0.035])


def test_sensors_heads_and_rotors_not_proposed(tmp_path: Path, capsys) -> None:
    sensors = ("d435_optical_frame", "IMU_link", "front_lidar", "ft_sensor")
    path = urdf_file(
        tmp_path, link("trunk"), limb("left_foot", "", "left_foot_imu"), limb("head_2", "", "jaw"),
        limb("simulated_toe"), limb("rotor_0"), limb("left_propeller"), *map(limb, sensors),
    )  # fmt: skip
    text = output(capsys, "config", path)
    assert parameters(text)["contacts.names"] == ["left_foot", "simulated_toe"]
    assert "# Other ends: jaw, rotor_0, left_propeller, d435_optical_frame, IMU_link" in text
    words = "further sensors, heads, torsos and\n# rotors are excluded. Of more than 8 ends"
    assert words in text


def test_where_nothing_is_meant_to_touch_frames_are_asked_for(tmp_path: Path, capsys) -> None:
    path = urdf_file(tmp_path, link("trunk"), limb("rotor_0"), limb("rotor_1"))
    text = output(capsys, "config", path)
    assert "names: []  # none found; delassus inspect shows all frames\n" in text
    assert refusal(capsys, "compare", path) == (
        "nothing of robot 'test' looks as if it touched; add --contact FRAME, of frames "
        "'trunk', 'rotor_0', 'rotor_1'\n"
    )
