"""Named poses on the command line: --q, the first posture, --srdf, and the list of inspect."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pytest
import robots
from cli_support import answer, field, output, refusal
from linkages import assembled, closed_four_bar, four_bar_urdf

from delassus import Closure, InputError, Robot
from delassus.cli.page import dials, first_pose, q_at
from delassus_ros.verbs.main import main

SRDF = """<robot name="arm">
  <group_state name="home" group="arm"><joint name="elbow_joint" value="1.5"/></group_state>
  <group_state name="up" group="arm"><joint name="elbow_joint" value="0.5"/></group_state>
</robot>"""
MJCF = """<mujoco><worldbody><body name="arm"><joint name="hip" axis="0 1 0"/>
  <geom size="0.1" pos="0.3 0 0"/><site name="tip" pos="0.5 0 0"/></body></worldbody>
  <keyframe><key qpos="0.25"/></keyframe></mujoco>"""
TOOL = ("--base", "fixed", "--contact", "tool0")


@pytest.fixture(name="arm")
def _arm(tmp_path: Path) -> str:
    """The file of an arm without poses, in a folder of its own."""
    path = tmp_path / "urdf" / "arm.urdf"
    path.parent.mkdir()
    path.write_text(Path(robots.shared("ur5")).read_text())
    return str(path)


def test_file_beside_the_urdf_has_the_first_posture_and_the_poses_of_q(capsys, arm: str) -> None:
    elbow = Robot.from_urdf(arm, "fixed").joint_names.index("elbow_joint")
    command = ("compute", arm, *TOOL)
    computed = output(capsys, *command)
    Path(arm).with_suffix(".srdf").write_text(SRDF)
    first = output(capsys, *command)
    assert field(first, "posture") == "pose 'home' of the robot description"
    assert output(capsys, *command, "--q", "home") == first
    assert output(capsys, *command, "--q", "pose") == computed
    assert not any(answer(capsys, *command, "--q", "neutral")["q"])
    assert answer(capsys, *command, "--q", "up")["q"][elbow] == 0.5
    # Joints that --q leaves out are as in the first posture; --degrees is about numbers alone.
    some = answer(capsys, *command, "--q", "wrist_1_joint=0.25", "--degrees")["q"]
    assert some[elbow] == 1.5 and np.rad2deg(some).max() < 90
    assert answer(capsys, *command, "--q", "up", "--degrees")["q"][elbow] == 0.5


def test_inspect_lists_poses(capsys, arm: str) -> None:
    assert "Poses" not in output(capsys, "inspect", arm, "--base", "fixed")
    srdf = Path(arm).parents[1] / "srdf" / "any.srdf"
    srdf.parent.mkdir()
    srdf.write_text(SRDF)
    out = output(capsys, "inspect", arm, "--base", "fixed")
    listed = "  home  1 of 6 joints  the first posture\n  up    1 of 6 joints\n"
    assert f"\n\nPoses for --q:\n{listed}" in out
    assert answer(capsys, "inspect", arm, "--base", "fixed")["poses"] == ["home", "up"]


def test_srdf_option_comes_before_the_file_beside(capsys, arm: str, tmp_path: Path) -> None:
    Path(arm).with_suffix(".srdf").write_text(SRDF)
    other = tmp_path / "other.srdf"
    other.write_text(SRDF.replace("home", "rest").replace('"up"', '"reach"'))
    found = answer(capsys, "inspect", arm, "--base", "fixed", "--srdf", str(other))
    assert found["poses"] == ["rest", "reach"]


def test_unreadable_srdf_beside_is_a_warning_and_of_the_option_an_error(capsys, arm) -> None:
    srdf = Path(arm).with_suffix(".srdf")
    srdf.write_text("<robot>")
    assert main(["inspect", arm, "--base", "fixed"]) == 0
    out, err = capsys.readouterr()
    assert "Poses" not in out and err.startswith(f"warning: SRDF file '{srdf}': broken XML at ")
    assert err.endswith("; its poses are left out\n") and err.count("\n") == 1
    words = refusal(capsys, "inspect", arm, "--base", "fixed", "--srdf", str(srdf))
    assert words.startswith(f"SRDF file '{srdf}': broken XML at line 1")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hom", "--q: unknown pose 'hom'; did you mean 'home'? poses: home, up, pose, neutral\n"),
        ("postur", "--q: unknown pose 'postur'; did you mean 'pose'? poses: home, up, pose, neut"),
        ("elbow_joint", "--q: 'elbow_joint' is not a list of numbers like 0.1,-0.2: "),
    ],
)
def test_unknown_pose_refused(capsys, arm: str, text: str, words: str) -> None:
    Path(arm).with_suffix(".srdf").write_text(SRDF)
    assert refusal(capsys, "compute", arm, *TOOL, "--q", text).startswith(words)


def test_pose_outside_limits_is_a_warning(capsys, arm: str) -> None:
    Path(arm).with_suffix(".srdf").write_text(SRDF.replace("1.5", "90"))
    assert main(["compute", arm, *TOOL]) == 0
    err = capsys.readouterr().err
    assert err.startswith("warning: pose 'home': the position of joint 'elbow_joint' is 90 rad, ")


def test_line_of_poses_ends_at_a_named_one(capsys, arm: str, tmp_path: Path) -> None:
    Path(arm).with_suffix(".srdf").write_text(SRDF)
    figure = ("-o", str(tmp_path / "arm.svg"))
    ends = [
        answer(capsys, "plot", arm, *TOOL, *figure, "--to", to)["conditions"]
        for to in ("up", "elbow_joint=0.5", "pose")
    ]
    assert ends[0] == ends[1] != ends[2]


def test_page_starts_at_the_pose_and_says_so(capsys) -> None:
    robot = Robot.from_urdf(robots.shared("ur5"), "fixed", srdf=SRDF)
    starts = {}
    for text in (None, "home", "up", "pose", "elbow_joint=0.25"):
        options = argparse.Namespace(q=text, warnings=())
        starts[text] = first_pose(options, robot, None)["elbow_joint"]
        why = {"up": "pose 'up' of the robot description", "pose": "joints at 0"}
        expected = why.get(text or "", "pose 'home' of the robot description")
        assert capsys.readouterr().err == f"posture: {expected}\n"
    assert list(starts.values()) == [1.5, 1.5, 0.5, 0.0, 0.25]


def test_page_whose_first_pose_is_outside_limits_ends_with_success(capsys, arm: str) -> None:
    Path(arm).with_suffix(".srdf").write_text(SRDF.replace("1.5", "90"))
    page = ("--seconds", "0.1", "--port", "0", "--no-browser")
    for more in ((), ("--q", "home")):
        assert main(["view", arm, *TOOL, *page, *more]) == 0
        err = capsys.readouterr().err
        assert "warning: pose 'home': the position of joint 'elbow_joint' is 90 rad, " in err
        assert "; 3.14159 is taken\n" in err


def test_page_starts_with_free_bodies_where_the_keyframe_has_them() -> None:
    cube = '<body name="cube"><freejoint name="cube"/><geom size="0.1"/></body></worldbody>'
    text = MJCF.replace("</worldbody>", cube).replace("0.25", "0.25 1 2 3 0 1 0 0")
    robot = Robot.from_mujoco(text)
    start = first_pose(argparse.Namespace(q=None, warnings=()), robot, None)
    assert q_at(robot, None, start).tolist() == [0.25, 1, 2, 3, 1, 0, 0, 0]
    (sliders,) = dials(robot, start).values()
    assert [slider.joint for slider in sliders] == ["hip"]
    with pytest.raises(InputError, match="--q: unknown joint 'cube'. joints: hip"):
        first_pose(argparse.Namespace(q="cube=1", warnings=()), robot, None)


def test_page_of_a_closed_robot_starts_with_free_bodies_where_the_keyframe_has_them() -> None:
    more = (
        '<body name="b"><joint name="knee" axis="0 1 0"/><geom size="0.1"/></body>'
        '<body name="cube"><freejoint name="cube"/><geom size="0.1"/></body></worldbody>'
        '<equality><joint joint1="knee" joint2="hip" polycoef="0 2 0 0 0"/></equality>'
    )
    text = MJCF.replace("</worldbody>", more).replace("0.25", "0.25 0.5 1 2 3 0 1 0 0")
    robot = Robot.from_mujoco(text)
    closure = Closure(robot)
    start = first_pose(argparse.Namespace(q=None, warnings=()), robot, closure)
    assert q_at(robot, closure, start) == pytest.approx([0.25, 0.5, 1, 2, 3, 1, 0, 0, 0])


def test_keyframe_without_a_name_is_the_first_posture(capsys, tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(MJCF)
    command = ("compute", str(path), "--contact", "tip")
    found = answer(capsys, *command)
    assert found["q"] == [0.25] and found == answer(capsys, *command, "--q", "key 0")
    assert refusal(capsys, *command, "--srdf", "arm.srdf") == (
        f"--srdf is of use with URDF alone; keyframes of {path} are its poses\n"
    )


def test_pose_of_a_closed_robot_is_closed(capsys, tmp_path: Path) -> None:
    """A pose with six digits is closed on its branch of the loop, if that is the reference's."""
    joints = zip(("crank", "coupler", "rocker"), closed_four_bar(0.9, -1.0), strict=True)
    state = "".join(f'<joint name="{name}" value="{value:.6f}"/>' for name, value in joints)
    urdf, loops = tmp_path / "bar.urdf", tmp_path / "loops.yaml"
    urdf.write_text(four_bar_urdf())
    urdf.with_suffix(".srdf").write_text(
        f'<robot name="bar"><group_state name="folded" group="all">{state}</group_state></robot>'
    )
    loops.write_text(
        "loops:\n  - {name: pin, frames: [coupler_end, rocker_end], type: point}\n"
        "independent: [crank]\n"
    )
    command = ("compute", str(urdf), "--base", "fixed", "--loops", str(loops), "--contact",
               "coupler_end", "--q", "folded", "--reference")  # fmt: skip
    other, same = (
        "crank=0.8,coupler={},rocker={}".format(*assembled(0.8, side)) for side in (1.0, -1.0)
    )
    found = answer(capsys, *command, same)
    assert found["q"] == pytest.approx(closed_four_bar(0.9, -1.0), abs=1e-5)
    words = refusal(capsys, *command, other)
    assert "pose 'folded' of the robot description: the loops do not close: " in words
    assert "another branch than the reference" in words
    out = output(capsys, *command, same)
    assert field(out, "posture") == "pose 'folded' of the robot description; loops closed"
    assert field(out, "loops").startswith("closed as given; residual ")
