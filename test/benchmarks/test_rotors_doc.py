"""The page about rotors: its numbers, its report and its example are those of the code."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from cli_support import output

from benchmarks import rotor_errors
from delassus import Closure, Contact, DelassusSolver, Problem
from delassus.errors import InputError, ProblemError
from delassus.rotor_report import (
    approximation_error,
    rotor_report,
    usual_error,
)

ROOT = Path(__file__).resolve().parents[2]

PAGE = (ROOT / "docs" / "rotors.md").read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_script():
    for line in rotor_errors.table().splitlines():
        assert line in PAGE, line


def test_no_rotors_is_worse_than_g2J_and_a_belt_worse_than_a_gear():
    gear, belt = (rotor_errors.matrix_errors(each) for each in ("gear", "belt"))
    for errors in (gear, belt):
        assert (errors["no rotors"] > 5 * errors["g²J"]).all()
    assert (belt["g²J"] > 2 * gear["g²J"]).all()


def test_torques_of_the_exact_leg_are_those_of_its_rotors_as_bodies():
    """Energy: what the joints do in a whole swing is what gravity and motion give back, none."""
    times, _, rates, _ = rotor_errors.swing(200)
    for transmission in rotor_errors.TRANSMISSIONS:
        exact, approximate = rotor_errors.torques(transmission)
        for each in (exact, *approximate.values()):
            power = np.sum(each * rates, axis=1)
            # By trapezia; numpy 2 has another name for it than numpy 1.
            work = np.sum((power[1:] + power[:-1]) / 2 * np.diff(times))
            assert abs(work) < 1e-3 * np.abs(power).max()


def test_the_belt_is_made_from_the_gear(monkeypatch, tmp_path):
    assert 'parent link="thigh"/>\n    <child link="ankle_rotor"' in rotor_errors.leg("belt")
    other = tmp_path / "other.urdf"
    other.write_text("<robot/>")
    monkeypatch.setattr(rotor_errors, "LEG", other)
    with pytest.raises(ValueError, match="other.urdf has no ankle_rotor"):
        rotor_errors.leg("belt")


@pytest.mark.needs("matplotlib")
def test_the_picture_is_drawn(tmp_path):
    from PIL import Image

    for name in ("one", "two"):
        rotor_errors.draw(tmp_path / f"{name}.png")
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()
    words = []
    for path in (tmp_path / "one.png", ROOT / "docs" / "rotors.png"):
        with Image.open(path) as picture:
            words.append(set(picture.info["Description"].splitlines()))
    assert words[0] == words[1] and "legend: no rotors, ankle by belt" in words[0]


def test_the_report_is_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    (shown,) = re.findall(r"```\n\$ delassus (.*?)\n(.*?)```", PAGE, re.DOTALL)
    printed = output(capsys, *shown[0].split()).splitlines()
    for line in shown[1].splitlines():
        assert line == "..." or line in printed, line


@pytest.mark.parametrize("transmission", rotor_errors.TRANSMISSIONS)
def test_the_usual_error_is_that_of_the_table_belts_included(transmission):
    """The table's is by the dense definition, of robots whose rotors are locked."""
    expected = rotor_errors.matrix_errors(transmission)["g²J"]
    robot = rotor_errors.models(transmission).exact
    closure = Closure(robot)
    for kind in ("nothing", "pose"):
        problem = Problem(robot, [Contact("sole", "sole", moving=kind)])
        for knee, error in list(zip(rotor_errors.SQUAT, expected, strict=True))[::10]:
            joints = zip(rotor_errors.JOINTS, (0.0, -knee / 2, knee, -knee / 2), strict=True)
            q = closure.solve(dict(joints)).q
            assert usual_error(problem, {"q": q}) == pytest.approx(error, rel=1e-10)
            assert approximation_error(problem, {"q": q}) > 1.03 * error


def test_the_usual_error_agrees_with_the_report_s_and_refuses_what_is_no_configuration():
    robot = rotor_errors.models("gear").exact
    report = rotor_report(robot)
    contacts = [Contact("sole", "sole")]
    q = np.linspace(-1.0, 1.0, robot.nq)
    kept = [robot.joint_names.index(name) for name in report.robot.joint_names]
    exact, usual = (
        DelassusSolver(Problem(each, contacts), "dense").solve(q[kept]).matrix
        for each in (report.robot, report.usual)
    )
    error = np.linalg.norm(usual - exact) / np.linalg.norm(exact)
    problem = Problem(robot, contacts)
    assert usual_error(problem, {"q": q}) == pytest.approx(error, rel=1e-10)
    assert usual_error(Problem(report.robot, contacts), {"q": q[kept]}) < 1e-14
    with pytest.raises(InputError, match=r"input 'q' has shape \(1,\), expected \(8,\)"):
        usual_error(problem, {"q": [0.0]})
    with pytest.raises(ProblemError, match="expected a Problem"):
        usual_error(robot, {"q": q})
