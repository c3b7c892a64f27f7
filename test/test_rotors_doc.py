"""The page about rotors: its numbers, its report and its example are those of the code."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from cli_support import output

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT))

from benchmarks import rotor_errors  # noqa: E402

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


def test_the_picture_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    rotor_errors.draw(tmp_path / "one.svg")
    rotor_errors.draw(tmp_path / "two.svg")
    drawn = (tmp_path / "one.svg").read_bytes()
    assert drawn == (tmp_path / "two.svg").read_bytes()
    assert b"<svg" in drawn and (ROOT / "docs" / "rotors.svg").read_bytes().count(b"<path") > 10


def test_the_report_is_what_the_command_prints(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    (shown,) = re.findall(r"```\n\$ delassus (.*?)\n(.*?)```", PAGE, re.DOTALL)
    printed = output(capsys, *shown[0].split()).splitlines()
    for line in shown[1].splitlines():
        assert line == "..." or line in printed, line


def test_the_example_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(example, names)
    assert set(names["report"].armatures) == {"hip_pitch", "hip_roll", "knee", "ankle"}
