"""Descriptions in ROS packages, and as xacro."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import robots
from urdf_text import link, robot_xml

from delassus import Robot
from delassus.errors import RobotError


def package(folder: Path) -> None:
    (folder / "urdf").mkdir(parents=True)
    text = robots.quadruped().read_text(encoding="utf-8")
    (folder / "urdf" / "robot.urdf").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("variable", "inside", "named"),
    [
        ("AMENT_PREFIX_PATH", "share/my_robot", "."),
        ("ROS_PACKAGE_PATH", "my_robot", "."),
        ("ROS_PACKAGE_PATH", "my_robot", "my_robot"),
    ],
)
def test_a_file_in_a_package_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, inside: str, named: str
) -> None:
    package(tmp_path / inside)
    monkeypatch.delenv("AMENT_PREFIX_PATH", raising=False)
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    with pytest.raises(RobotError, match="neither AMENT_PREFIX_PATH nor ROS_PACKAGE_PATH is set"):
        Robot.from_urdf("package://my_robot/urdf/robot.urdf")
    monkeypatch.setenv(variable, f"/nowhere:{tmp_path / named}")
    assert Robot.from_urdf("package://my_robot/urdf/robot.urdf").nq == 12
    with pytest.raises(RobotError, match=r"other.urdf is in none of: /nowhere.*my_robot"):
        Robot.from_urdf("package://my_robot/urdf/other.urdf")


def test_xacro_that_is_absent_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(RobotError, match="is xacro, which is not installed: pip install xacro"):
        Robot.from_urdf(tmp_path / "robot.urdf.xacro")


@pytest.mark.needs("xacro")
def test_xacro_is_expanded(tmp_path: Path) -> None:
    text = robots.quadruped().read_text(encoding="utf-8")
    head, _, rest = text.partition("<robot ")
    file = tmp_path / "robot.urdf.xacro"
    file.write_text(
        f'{head}<robot xmlns:xacro="http://www.ros.org/wiki/xacro" {rest}', encoding="utf-8"
    )
    assert Robot.from_urdf(file).nq == 12
    file.write_text('<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="${1 / 0}"/>')
    with pytest.raises(RobotError, match=r"xacro cannot expand .*robot.urdf.xacro"):
        Robot.from_urdf(file)
    with pytest.raises(RobotError, match="there is no file /no.xacro"):
        Robot.from_urdf("/no.xacro")


XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="side" default="left"/><xacro:arg name="reach" default="1"/>
  <link name="base"/><link name="$(arg side)_tip"/>
  <joint name="weld" type="fixed"><parent link="base"/><child link="$(arg side)_tip"/>
    <origin xyz="${2 * float('$(arg reach)')} 0 0"/></joint></robot>"""


@pytest.mark.needs("xacro")
def test_arguments_of_xacro_are_passed_on_and_unknown_ones_refused(tmp_path: Path) -> None:
    file = tmp_path / "arm.urdf.xacro"
    file.write_text(XACRO, encoding="utf-8")
    assert set(Robot.from_urdf(file, "fixed").frames) == {"base", "left_tip"}
    given = {"side": "right", "reach": 0.5}
    robot = Robot.from_urdf(file, "fixed", xacro_arguments=given)
    assert robot.frames["right_tip"].placement.translation[0] == 1.0
    words = "arm.urdf.xacro: unknown xacro argument 'sid'; did you mean 'side'. xacro arguments:"
    with pytest.raises(RobotError, match=words):
        Robot.from_urdf(file, "fixed", xacro_arguments={"sid": "right"})
    for source in (tmp_path / "arm.urdf", "<robot name='r'/>"):
        with pytest.raises(RobotError, match="xacro arguments 'side' are given, but .* no xacro"):
            Robot.from_urdf(source, xacro_arguments={"side": "right"})


def test_a_robot_without_name_is_called_as_its_file(tmp_path: Path, caplog) -> None:
    file = tmp_path / "my.robot.urdf"
    file.write_text(robot_xml(link("a"), head=""), encoding="utf-8")
    assert Robot.from_urdf(file).name == "my"
    assert "my.robot.urdf: a <robot> has no name; it is called 'my'" in caplog.text
    with pytest.raises(RobotError, match="a <robot> has no name"):
        Robot.from_urdf(file.read_bytes())
