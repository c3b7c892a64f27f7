"""Descriptions in ROS packages, and as xacro."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import robots

from delassus_ros import Robot
from delassus_ros.errors import RobotError


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


def test_xacro_is_expanded(tmp_path: Path) -> None:
    pytest.importorskip("xacro", reason="xacro is not installed")
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
