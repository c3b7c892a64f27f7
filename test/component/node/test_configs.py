"""The parameter files in config/: each fits its robot, and means for ROS what it means here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
from hanging import HANG_S
from oracles.textbook import frame_poses

from delassus import algorithms
from delassus.problem import Problem
from delassus.robots.built_in import demo_urdf
from delassus_ros.node.parameters import Settings
from delassus_ros.verbs.parameter_files import settings_of

CONFIG = Path(__file__).resolve().parents[3] / "config"
ROBOTS: dict[str, list[Callable[[], str | Path]]] = {
    "anymal": [robots.anymal, lambda: robots.shared("anymal_c")],
    "atlas": [lambda: robots.shared("atlas_v5")],
    "g1": [
        lambda: robots.example("g1_description/urdf/g1_29dof_rev_1_0.urdf"),
        lambda: robots.shared("g1_29dof"),
    ],
    "geared": [lambda: demo_urdf("geared")],
    "go1": [
        lambda: robots.example("go1_description/urdf/go1.urdf"),
        lambda: robots.shared("go1_unitree"),
    ],
    "panda": [lambda: robots.example("panda_description/urdf/panda.urdf")],
    "quadruped": [robots.quadruped],
    "solo12": [robots.solo12],
    "talos": [robots.talos],
    "ur5": [
        lambda: robots.example("ur_description/urdf/ur5_robot.urdf"),
        lambda: robots.shared("ur5"),
    ],
}
CASES = [
    pytest.param(name, load, id=f"{name}-{i}")
    for name, loaders in ROBOTS.items()
    for i, load in enumerate(loaders)
]
FEET = [case for case in CASES if case.values[0] not in ("panda", "ur5")]


def settings(name: str) -> Settings:
    return settings_of(str(CONFIG / f"{name}.yaml"))


def problem_of(name: str, load: Callable[[], str | Path]) -> Problem:
    source = load()
    text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
    return settings(name).problem(text)


def test_every_file_has_its_robot() -> None:
    assert sorted(ROBOTS) == sorted(file.stem for file in CONFIG.glob("*.yaml"))


def test_the_geared_robot_is_made_as_its_file_says(tmp_path: Path) -> None:
    (command,) = re.findall(r"^#   python3 (.*)$", (CONFIG / "geared.yaml").read_text(), re.M)
    # The package's own folder in front, as the shell's is the one of the test.
    subprocess.run(
        f"{sys.executable} {command}",
        shell=True, cwd=tmp_path, check=True, timeout=HANG_S,
        env={**os.environ, "PYTHONPATH": str(CONFIG.parent)},
    )  # fmt: skip
    assert (tmp_path / "geared.urdf").read_text().rstrip() == demo_urdf("geared")


@pytest.mark.parametrize(("name", "load"), CASES)
def test_the_contacts_are_on_the_robot(name: str, load: Callable[[], str | Path]) -> None:
    """An unknown frame would be an error of the problem."""
    problem = problem_of(name, load)
    assert problem.contacts.rows == {"atlas": 18, "g1": 18, "talos": 18, "panda": 6, "ur5": 6}.get(
        name, 12
    )


@pytest.mark.parametrize(("name", "load"), CASES)
def test_the_algorithm_takes_the_robot(name: str, load: Callable[[], str | Path]) -> None:
    """The robot is that of the published file, as it is."""
    assert algorithms.get(settings(name).algorithm).supports(problem_of(name, load)) is None


@pytest.mark.parametrize(("name", "load"), FEET)
def test_the_feet_stand_level_and_are_mirror_images(
    name: str, load: Callable[[], str | Path]
) -> None:
    """At zero, with the base level: a wrong placement on one side shows."""
    problem = problem_of(name, load)
    robot = problem.robot
    poses = frame_poses(robot, robot.neutral())
    feet = np.array(
        [
            (poses[contact.frame] @ contact.placement).translation
            for contact in problem.contacts
            if "hand" not in contact.name
        ]
    )
    assert len(feet) in (2, 4)
    assert np.ptp(feet[:, 2]) < 1e-9
    assert np.all(feet[:, 2] < -0.2)
    assert abs(feet[:, 1].sum()) < 1e-9
    assert np.abs(feet[:, 1]).min() > 0.05


def as_ros_reads(file: Path) -> dict[str, Any]:
    import rclpy
    context = rclpy.Context()
    rclpy.init(args=["--ros-args", "--params-file", str(file)], context=context)
    try:
        node = rclpy.create_node(
            "reader",
            context=context,
            automatically_declare_parameters_from_overrides=True,
            enable_rosout=False,
        )
        given = {key: value.value for key, value in node.get_parameters_by_prefix("").items()}
        node.destroy_node()
    finally:
        rclpy.shutdown(context=context)
    return given


def test_ros_reads_the_same_numbers(tmp_path: Path) -> None:
    """Those of C: whole ones also in octal and hexadecimal, and 09 is none."""
    numbers = "0 7 -7 +7 010 -010 09 0x10 -0XfF 1.5 1. .5 -.5e-3 1e-3 1E3 1e+2 010.5".split()
    file = tmp_path / "numbers.yaml"
    listed = ", ".join(f"n{k}: {number}" for k, number in enumerate(numbers))
    file.write_text(f"/**: {{ros__parameters: {{{listed}}}}}")
    given = as_ros_reads(file)
    for k, number in enumerate(numbers):
        file.write_text(
            "/**: {ros__parameters: {contacts: {names: [LF], LF: {frame: foot}}, "
            f"reference: {{names: [knee], values: [{number}]}}}}}}"
        )
        read = settings_of(str(file)).reference
        assert read == {"knee": float(given[f"n{k}"])}, number


@pytest.mark.parametrize("name", ROBOTS)
def test_ros_reads_the_same_values(name: str) -> None:
    given = as_ros_reads(CONFIG / f"{name}.yaml")
    read = settings(name)
    assert given["autostart"] is True
    assert given["base"] == read.base
    assert given["axes"] == read.axes
    assert given.get("algorithm", read.algorithm) == read.algorithm
    assert given["contacts.names"] == list(read.contacts.names)
    for contact in read.contacts:
        prefix = f"contacts.{contact.name}"
        assert given[f"{prefix}.frame"] == contact.frame
        assert given[f"{prefix}.kind"] == contact.kind_name
        place = given.get(f"{prefix}.xyz", (0.0, 0.0, 0.0))
        assert list(place) == contact.placement.translation.tolist()
