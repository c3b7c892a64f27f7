"""What pages tell a reader to type: `delassus` runs it, and all else names what exists."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from glob import glob
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import robots

from delassus_ros.cli import main as cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
PROGRAMS = set(re.findall(r'"(\w+)": "delassus_ros\.', (ROOT / "setup.py").read_text()))
TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
LIVE = {"watch", "contacts", "record", "run", "view"}
"""Verbs that talk to a node or show a page; other tests run them."""
OTHERS = set("cd colcon export git python python3 ros2 rosdep rviz2 source sudo".split())


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
    np.save(tmp_path / "q.npy", np.zeros((5, 12)))
    for config in ("my_robot.yaml", "robot.yaml"):
        shutil.copy(ROOT / "config" / "quadruped.yaml", tmp_path / config)
    (tmp_path / "mining").symlink_to(ROOT / "examples" / "mining")
    monkeypatch.chdir(tmp_path)


def recorded(desk: Path, line: str) -> None:
    """Put recordings and tables on the desk, where a line speaks of them."""
    for package in ("mcap", "pyarrow", "rclpy", "delassus_msgs"):
        import_module(package)
    from recordings_support import PARAMETERS, walk, write

    from delassus_ros.recordings.episode import Task, map_episode

    for path in ("run.mcap", "data/one.mcap"):
        (desk / path).parent.mkdir(exist_ok=True)
        write(desk / path, walk(20))
    if "walks/" in line:
        import_module("daqp")
        from mining.walks import record

        (desk / "walks").mkdir()
        record(0, desk / "walks", 0.1)
    for folder, name in (("out", "run"), ("out", "walk000"), (".", "a"), (".", "b")):
        write(desk / f"{name}.mcap", walk(20))
        task = Task(PARAMETERS, folder, formats=("parquet",))
        assert not map_episode(desk / f"{name}.mcap", task).error


def typed(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Do what a shell would with the words of one command, as far as it can be done here."""
    match words:
        case ["delassus", verb, *rest] if verb in LIVE:
            cli._parser().parse_args([verb, *rest])
        case ["delassus", *arguments]:
            expanded = [sorted(glob(word)) if "*" in word else [word] for word in arguments]
            arguments = [word for words in expanded for word in words]
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
        case ["python", "-c", program, ">", target]:
            made = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, check=True
            )
            # The desk has the same robot, by the same name.
            assert made.stdout.strip() == Path(target).read_text().strip()
        case ["make", target, *_]:
            assert target in TARGETS
        case [assignment, *rest] if re.match(r"\w+=", assignment):
            if rest and "$(" not in assignment:
                typed(rest, capsys)
        case [first, *_]:
            assert first in PROGRAMS | OTHERS, words


@pytest.mark.parametrize(("page", "line"), LINES, ids=lambda value: getattr(value, "stem", None))
def test_each_line_works(page, line, capsys, tmp_path):
    if "delassus plot" in line:
        import_module("matplotlib")
    if "mcap" in line or "parquet" in line:
        recorded(tmp_path, line)
    for part in line.replace(".venv/bin/", "").split(" && "):
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
        ["ros2", "launch", "delassus_ros", "delassus.launch.py", "robots:=mine"],
        ["make", "nothing"],
        ["delassus_nothing"],
    ):
        with pytest.raises(AssertionError):
            typed(words, capsys)
