"""MJCF without the files of its meshes, and as the text of a robot description."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mujoco")

from delassus import Robot
from delassus.errors import RobotError
from delassus.robots.description import described_by

LEG = """<body name="leg" pos="0 0.1 -0.5">{inertia}<joint name="knee" axis="0 1 0"/>
<geom type="mesh" mesh="shell" material="steel"/><site name="foot" pos="0 0 -0.4"/></body>"""
INERTIAL = '<inertial pos="0 0 -0.2" mass="0.7" diaginertia="0.03 0.02 0.02"/>'


def text(leg: str, assets: str = "", compiler: str = "") -> str:
    return f"""<mujoco model="hopper"><compiler meshdir="meshes" {compiler}/>{assets}
<worldbody><body name="trunk" pos="0 0 1"><freejoint/><geom type="box" size="0.1 0.2 0.1"/>{leg}
</body></worldbody><keyframe><key name="home" qpos="0 0 1 1 0 0 0 0.4"/></keyframe></mujoco>"""


ASSETS = """<asset><mesh file="shell.stl"/><texture name="noise" type="2d" file="noise.png"/>
<material name="steel" texture="noise"/></asset>"""


def expected() -> Robot:
    """The robot without shapes of files."""
    bare = LEG.replace('<geom type="mesh" mesh="shell" material="steel"/>', "")
    return Robot.from_mujoco(text(bare.format(inertia=INERTIAL)))


def test_absent_meshes_are_left_out_where_the_inertia_is_stated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = text(LEG.format(inertia=INERTIAL), ASSETS)
    file = tmp_path / "hopper.xml"
    file.write_text(given, encoding="utf-8")
    assert Robot.from_mujoco(given).to_bytes() == expected().to_bytes()
    robot = Robot.from_mujoco(file)
    assert robot.to_bytes() == expected().to_bytes()
    assert robot.named("home")[-1] == 0.4
    assert "shapes of files are left out" in caplog.text and "shell.stl" in caplog.text


@pytest.mark.parametrize(("inertia", "compiler"), [("", ""), (INERTIAL, 'inertiafromgeom="true"')])
def test_a_body_with_the_inertia_of_an_absent_mesh_is_named(inertia: str, compiler: str) -> None:
    given = text(LEG.format(inertia=inertia), ASSETS, compiler)
    words = r"body 'leg' is that of the mesh shell.stl, .* expected <inertial> in the body"
    for read in (Robot.from_mujoco, Robot.from_description):
        with pytest.raises(RobotError, match=words):
            read(given)


def test_meshes_in_the_text_are_read() -> None:
    vertices = '<asset><mesh name="shell" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>'
    leg = LEG.replace(' material="steel"', "").format(inertia="")
    robot = Robot.from_description(text(leg, vertices))
    assert robot.to_bytes() == Robot.from_mujoco(text(leg, vertices)).to_bytes()


def test_a_description_is_of_either_kind() -> None:
    given = text(LEG.format(inertia=INERTIAL), ASSETS)
    assert Robot.from_description(given).to_bytes() == expected().to_bytes()
    held = Robot.from_description(given.encode(), lock={"knee": 0.3})
    assert held.nv == 6 and "foot" in held.frames
    inertia = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    inertial = f'<inertial><mass value="1"/>{inertia}</inertial>'
    urdf = f'<robot name="r"><link name="l">{inertial}</link></robot>'
    assert Robot.from_description(urdf).nv == 6 and Robot.from_description(urdf, "fixed").nv == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"base": "fixed"}, "base fixed: the first body of 'hopper' has a free joint"),
        ({"armature": {"knee": 0.1}}, "armature is of use with URDF alone"),
        ({"loops": "loops.yaml"}, "loops is of use with URDF alone"),
    ],
)
def test_arguments_that_contradict_mjcf_are_refused(options: dict, words: str) -> None:
    with pytest.raises(RobotError, match=words):
        Robot.from_description(text(LEG.format(inertia=INERTIAL), ASSETS), **options)


def test_a_description_reads_no_other_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    leg = LEG.format(inertia=INERTIAL)
    (tmp_path / "leg.xml").write_text(f"<mujocoinclude>{leg}</mujocoinclude>")
    (tmp_path / "hopper.xml").write_text(text('<include file="leg.xml"/>', ASSETS))
    with pytest.raises(RobotError, match="<include> of an MJCF stands for"):
        Robot.from_description((tmp_path / "hopper.xml").read_text())
    described = described_by("hopper.xml", None, None)
    assert Robot.from_description(described.text).to_bytes() == described.robot.to_bytes()
    # Meshes that exist are not opened either: this one is broken.
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "shell.stl").write_text("no mesh")
    assert Robot.from_description(described.text).to_bytes() == expected().to_bytes()
    with pytest.raises(RobotError, match="cannot compile"):
        Robot.from_mujoco(tmp_path / "hopper.xml")


def test_matrices_are_those_of_the_same_robot() -> None:
    from delassus import Contact, DelassusSolver, Problem

    found, other = Robot.from_description(text(LEG.format(inertia=INERTIAL), ASSETS)), expected()
    G, H = (
        DelassusSolver(Problem(robot, [Contact("foot", "foot")])).solve(robot.named("home")).matrix
        for robot in (found, other)
    )
    assert np.array_equal(G, H)
