"""What pages tell a reader to type: `delassus` runs it, and all else names what exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import robots

from delassus_ros.cli import main as cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PROGRAMS = set(re.findall(r'"(\w+)": "delassus_ros\.', (ROOT / "setup.py").read_text()))
TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
LIVE = {"watch", "contacts"}
"""Verbs that talk to a node; test_ros_tutorial.py runs them."""
OTHERS = {"cd", "colcon", "export", "git", "python3", "ros2", "rosdep", "rviz2", "source", "sudo"}


def commands(page: Path) -> list[str]:
    """Return the lines of a page's shell blocks, without comments, continued ones joined."""
    text = page.read_text()
    blocks = re.findall(r"^ *```(?:bash|console)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    stripped = (re.sub(r"(^|\s)#.*", "", line).strip() for line in lines)
    return [line for line in stripped if line]


LINES = [(page, line) for page in PAGES for line in commands(page)]


@pytest.fixture(name="desk", autouse=True)
def make_desk(tmp_path, monkeypatch):
    """A folder with the robots that the pages speak of."""
    for name in ("quadruped.urdf", "my_robot.urdf"):
        (tmp_path / name).write_text(robots.quadruped().read_text())
    monkeypatch.chdir(tmp_path)


def typed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Do what a shell would with the words of one command, as far as it can be done here."""
    match words:
        case ["delassus", verb, *rest] if verb in LIVE:
            cli._parser().parse_args([verb, *rest])
        case ["delassus", *arguments]:
            if ">" in arguments:
                *arguments, _, target = arguments
            else:
                target = ""
            assert cli.main(arguments) == 0, capsys.readouterr().err
            shown = capsys.readouterr().out
            assert shown
            if target:
                Path(target).write_text(shown)
        case ["ros2", "run", "delassus_ros", *program]:
            typed(program, capsys)
        case ["ros2", "launch", "delassus_ros", file, *arguments]:
            text = (ROOT / "launch" / file).read_text()
            declared = set(re.findall(r'DeclareLaunchArgument\(\s*"(\w+)"', text))
            assert {argument.partition(":=")[0] for argument in arguments} <= declared
        case ["make", target, *_]:
            assert target in TARGETS
        case [assignment, *rest] if re.match(r"\w+=", assignment):
            if rest and "$(" not in assignment:
                typed(rest, capsys)
        case [first, *_]:
            assert first in PROGRAMS | OTHERS, words


@pytest.mark.parametrize(("page", "line"), LINES, ids=lambda value: getattr(value, "stem", None))
def test_each_line_works(page, line, capsys):
    if "delassus plot" in line:
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    for part in line.split(" && "):
        typed(shlex.split(part), capsys)


def test_there_are_lines_to_try():
    tried = [line for _, line in LINES if "delassus" in line]
    assert len(tried) > 15
    assert {"plot", "export", "compare", "config", "watch", "contacts"} <= {
        word for line in tried for word in line.split()
    }


def test_a_line_that_does_not_work_is_seen(capsys):
    for words in (
        ["delassus", "compute", "nowhere.urdf", "--contact", "LF_FOOT"],
        ["ros2", "launch", "delassus_ros", "delassus.launch.py", "robot:=mine"],
        ["make", "nothing"],
        ["delassus_nothing"],
    ):
        with pytest.raises(AssertionError):
            typed(words, capsys)
