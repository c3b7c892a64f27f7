"""`delassus plot`: files that are pictures, and numbers that are right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import robots
from cli_support import LEG, QUADRUPED, answer, main, output, refusal

from delassus import Contact, DelassusSolver, Problem, Robot
from delassus.robots.pose import pose_of

pytestmark = pytest.mark.needs("matplotlib")

FEET = ("--contact", "LF_FOOT", "--contact", "RH_FOOT")


def test_a_figure_of_a_quadruped(capsys, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = answer(capsys, "plot", QUADRUPED, *FEET, "--to", "LF_KFE=-2.0")
    assert found["figure"] == "quadruped.svg"
    assert (tmp_path / "quadruped.svg").read_text(encoding="utf-8").startswith("<?xml")
    robot = Robot.from_urdf(QUADRUPED)
    problem = Problem(robot, [Contact("LF", "LF_FOOT"), Contact("RH", "RH_FOOT")])
    solver = DelassusSolver(problem, "dense")
    G = solver.solve(robot.q(pose_of(robot))).matrix
    masses = 1.0 / np.linalg.eigvalsh(G[:3, :3])[::-1]
    np.testing.assert_allclose(found["masses"]["LF_FOOT"], masses, rtol=1e-9)
    assert len(found["conditions"]) == 200
    bent = robot.q({**pose_of(robot), "LF_KFE": -2.0})
    values = np.linalg.eigvalsh(solver.solve(bent).matrix)
    assert found["conditions"][-1] == pytest.approx(values[-1] / values[0], rel=1e-6)
    assert [count for count, _ in found["seconds"]["auto"]] == [1, 2]
    assert set(found["seconds"]) == {"auto", "ltl"}


@pytest.mark.parametrize("end", ["png", "pdf"])
def test_other_formats(capsys, tmp_path: Path, end: str) -> None:
    path = tmp_path / f"figure.{end}"
    out = output(capsys, "plot", QUADRUPED, *FEET, "-o", str(path))
    assert f"figure     {path}" in out and "share of random configurations" in out
    assert path.read_bytes()[:5] in (b"\x89PNG\r", b"%PDF-")


def test_closed_loops_and_world_axes(capsys, tmp_path: Path) -> None:
    path = tmp_path / "leg.svg"
    way = ("--to", "knee=0.8", "--axes", "world")
    sole = (LEG, "--base", "fixed", "--contact", "sole:surface")
    out = output(capsys, "plot", *sole, "-o", str(path), *way)
    assert "from --q to --to" in out and path.is_file()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--axes world", "needs the orientation of the root link: add --orientation"),
        ("-o figure.xyz", "figure.xyz' cannot be written: Format 'xyz' is not supported"),
        ("-o no/figure.png", "cannot be written: [Errno 2] No such file"),
        ("--to LF_KFE=x", "--to: joint 'LF_KFE': 'x' is not a number"),
        ("--to 1,2", "--to: 2 numbers, expected 12: LF_HAA"),
        ("--to LF_KFE=1e308", "--to: joint 'LF_KFE': numbers must be finite and at most 1e+09 in "
         "SI units"),
    ],
)  # fmt: skip
def test_plot_refused(capsys, tmp_path: Path, monkeypatch, options: str, words: str) -> None:
    monkeypatch.chdir(tmp_path)
    assert words in refusal(capsys, "plot", QUADRUPED, *FEET, *options.split())


def test_positions_beyond_any_joint_refused(capsys) -> None:
    """After the warning that they are outside of limits."""
    assert main(["plot", QUADRUPED, *FEET, "--to", "LF_KFE=1e9"]) == 2
    assert "(joint 'LF_KFE') is 1e+09, beyond 1e+06 rad or m" in capsys.readouterr().err


def test_contacts_that_constrain_each_other_are_singular_everywhere(capsys, tmp_path) -> None:
    twice = ("--contact", "LF_FOOT", "--contact", "again=LF_FOOT")
    twice += ("-o", str(tmp_path / "twice.svg"))
    assert answer(capsys, "plot", QUADRUPED, *twice)["conditions"] == [None] * 200
    out = output(capsys, "plot", QUADRUPED, *twice)
    assert "condition  singular everywhere, share of random configurations\n" in out


def test_an_arm_whose_gripper_is_shut_at_the_reference(capsys, tmp_path: Path) -> None:
    arm = str(robots.example("panda_description/urdf/panda.urdf"))
    path = tmp_path / "panda.svg"
    held = ("--base", "fixed", "--contact", "panda_link8")
    found = answer(capsys, "plot", arm, *held, "-o", str(path))
    assert len(found["conditions"]) == 200 and path.is_file()
