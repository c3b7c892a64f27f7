"""For the tests of the command `delassus`: run it, and look at what it prints."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
from urdf_text import robot_xml

from delassus_ros.verbs.main import main

ROOT = Path(__file__).resolve().parents[1]
QUADRUPED = str(robots.quadruped())
CONFIG = str(ROOT / "config" / "quadruped.yaml")
"""Parameters of a node of the quadruped."""
LEG = str(ROOT / "docs" / "geared_leg.urdf")


def urdf_file(folder: Path, *parts: str) -> str:
    """Return the file of a robot of these parts of a URDF."""
    path = folder / "robot.urdf"
    path.write_text(robot_xml(*parts), encoding="utf-8")
    return str(path)


def output(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run the command, which must succeed and print no error."""
    assert main(argv) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert all(line == line.rstrip() for line in captured.out.splitlines())
    return captured.out


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> Any:
    """Return what the command answers with ``--json``; it must succeed and print no error."""
    return json.loads(output(capsys, *argv, "--json"))


def refusal(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run the command, which must fail with the text of the error alone."""
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err and captured.err.count("\n") == 1
    return captured.err


def usage_error(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """Run the command, whose words must be refused with one line that names ``--help``."""
    with pytest.raises(SystemExit) as ended:
        main(argv)
    captured = capsys.readouterr()
    assert (ended.value.code, captured.out) == (2, "")
    assert captured.err.count("\n") == 1 and "--help" in captured.err
    return captured.err


def field(out: str, name: str) -> str:
    """Return what stands beside a name, in a line of its own."""
    (found,) = re.findall(rf"^{name} +(\S.*)$", out, re.MULTILINE)
    return str(found)


def printed_matrix(out: str, rows: int) -> np.ndarray:
    """Return the matrix in the output of `compute`."""
    lines = out.split("\n\n")[1].splitlines()
    assert len(lines) == rows
    return np.array([[float(word) for word in line.split()[-rows:]] for line in lines])


def needs_programs(*names: str) -> None:
    """Skip the test where one of these programs is not installed."""
    for name in names:
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed")
