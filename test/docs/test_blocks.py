"""Blocks of code on the pages: Python runs, YAML is read, C compiles, commands are typed.

The blocks of a page share their names, in the order of the page. Comments that no reader of the
site sees, ``<!-- invisible-code-block: python``, define the names that an example takes from its
reader, and assert results. A text after a block of Python is what the block prints.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots
import yaml
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser

from delassus.errors import DelassusError
from delassus.model.reading.yaml import read_side_file
from delassus_ros.adapter import settings as adapter_settings
from delassus_ros.node.parameters import Operation, Settings
from delassus_ros.verbs import main as cli
from delassus_ros.verbs.parameter_files import parameters_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
PROGRAMS = set(re.findall(r'"(\w+)": "delassus_ros\.', (ROOT / "setup.py").read_text()))
TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
LIVE = {"watch", "contacts", "record", "run", "view"}
"""Verbs that talk to a node or show a page; tests of the verbs run them."""
FOREIGN = set("cd colcon export git python python3 ros2 rosdep rviz2 source sudo".split())
"""Commands of other packages."""


def run_python(example: Example) -> None:
    """Run a block and keep what it prints; the options of a notebook's cell are no code."""
    code = re.sub(r"^:tags:.*", "", str(example.parsed), flags=re.MULTILINE)
    if "spin(" in code:
        return  # a program that runs until it is stopped, see test_page_programs
    names = example.namespace
    names.setdefault("__name__", "page")
    before = sorted(Path.cwd().rglob("*"))
    lines = "\n" * (example.line + example.parsed.line_offset)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(lines + code, f"<{example.path}>", "exec", dont_inherit=True), names)
    names["_printed"] = printed.getvalue()
    assert sorted(Path.cwd().rglob("*")) == before, "a block leaves files behind"


def compare_text(example: Example) -> None:
    """Compare a text with what the block of Python before it printed, if there is one."""
    assert example.namespace.pop("_printed", example.parsed) == example.parsed


def read_yaml(example: Example) -> None:
    """Read YAML by its reader: the node, the adapter, a file of loops, or a message."""
    content = yaml.safe_load(example.parsed)
    if any(key in content for key in ("loops", "couplings")) and content.get("loops") != (
        "/opt/robot/loops.yaml"
    ):
        assert read_side_file(example.parsed)
    elif "status" in content:
        import delassus_msgs.msg as messages

        schedule = messages.ContactSchedule(
            **{name: value for name, value in content.items() if name != "header"}
        )
        assert content.keys() <= schedule.get_fields_and_field_types().keys()
        assert len(schedule.status) == len(schedule.names) * len(schedule.times)
    elif "lifecycle_manager_delassus" not in content:  # a node of Nav2
        (node,) = content if "ros__parameters" in next(iter(content.values())) else [""]
        if node.endswith("delassus_adapter"):
            given = dict(flat(content[node]["ros__parameters"]))
            assert given.keys() <= adapter_settings.PARAMETERS.keys()
            assert adapter_settings.settings_of(
                {n: given.get(n, s.default) for n, s in adapter_settings.PARAMETERS.items()}
            )
        else:
            parameters = content if node else {"/**": {"ros__parameters": content}}
            Path("parameters.yaml").write_text(yaml.safe_dump(parameters))
            values = parameters_of("parameters.yaml")
            assert values
            if "contacts.names" not in values:
                values |= {"contacts.names": ["LF"], "contacts.LF.frame": "LF_FOOT"}
            Settings.from_parameters(values)
            Operation.from_parameters(values)


def flat(content: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def compile_c(example: Example) -> None:
    """Compile a block of C with the headers of an exported robot."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    feet = ("--contact", "LF=LF_FOOT", "--contact", "RF=RF_FOOT")
    more = ("--outputs", "a0", "--friction", "--dynamics", "inverse", "-o", "quadruped.o")
    if not Path("quadruped.o").exists():
        assert cli.main(["export", "quadruped.urdf", *feet, *more]) == 0
    block = str(example.parsed)
    (include,) = re.findall(r"^#include .*$", block, re.MULTILINE)
    arguments = (
        "const double *G, const double *a0, const double *v, double *forces, "
        "double *accelerations, double *work, int64_t *indices"
    )
    # A block has its own work array, or takes that of the function around it.
    given = arguments.replace(" double *work,", "") if "double work[" in block else arguments
    source = f"#include <stdint.h>\n#include <stddef.h>\n{include}\nvoid page({given}) {{\n"
    Path("page.c").write_text(source + block.replace(include, "") + "(void)status; }\n")
    command = [compiler, "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused-variable", "page.c"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def type_lines(example: Example) -> None:
    """Type the lines of a block of commands, without comments, continued ones joined."""
    for line in str(example.parsed).replace("\\\n", " ").splitlines():
        command = re.sub(r"(^|\s)#.*", "", line).strip().replace(".venv/bin/", "")
        if "delassus plot" in command:
            importlib.import_module("matplotlib")
        if "mcap" in command or "parquet" in command:
            record(command)
        for part in command.split(" && ") if command else ():
            type_words(shlex.split(part))


def record(line: str) -> None:
    """Write the recordings and tables that a line needs."""
    for package in ("mcap", "pyarrow", "rclpy", "delassus_msgs"):
        importlib.import_module(package)
    from recordings_support import PARAMETERS, walk, write

    from delassus_ros.recordings.episode import Task, map_episode

    for folder in ("data", "out", "walks"):
        shutil.rmtree(folder, ignore_errors=True)
    for path in ("run.mcap", "data/one.mcap"):
        Path(path).parent.mkdir(exist_ok=True)
        write(Path(path), walk(20))
    if "walks/" in line:
        importlib.import_module("daqp")
        from mining.walks import record as record_walk

        Path("walks").mkdir()
        record_walk(0, Path("walks"), 0.1)
    for folder, name in (("out", "run"), ("out", "walk000"), (".", "a"), (".", "b")):
        write(Path(f"{name}.mcap"), walk(20))
        task = Task(PARAMETERS, folder, formats=("parquet",))
        assert not map_episode(Path(f"{name}.mcap"), task).error


def type_words(words: list[str]) -> None:
    """Run the words of one command as a shell would, as far as it can be done here."""
    match words:
        case ["delassus", verb, *rest] if verb in LIVE:
            cli._parser().parse_args([verb, *rest])
        case ["delassus", *arguments]:
            expanded = [sorted(glob(word)) if "*" in word else [word] for word in arguments]
            arguments = [word for words in expanded for word in words]
            target = ""
            if ">" in arguments:
                *arguments, _, target = arguments
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                assert cli.main(arguments) == 0, words
            assert printed.getvalue()
            if target:
                Path(target).write_text(printed.getvalue())
        case ["ros2", "run", "delassus_ros", *program]:
            type_words(program)
        case ["ros2", "launch", "delassus_ros", file, *arguments]:
            text = (ROOT / "launch" / file).read_text()
            declared = set(re.findall(r'DeclareLaunchArgument\(\s*"(\w+)"', text))
            assert {argument.partition(":=")[0] for argument in arguments} <= declared
        case ["python", "-c", program, ">", target]:
            made = subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, check=True
            )
            # The folder has the same robot, by the same name.
            assert made.stdout.strip() == Path(target).read_text().strip()
        case ["make", target, *_]:
            assert target in TARGETS
        case [assignment, *rest] if re.match(r"\w+=", assignment):
            if rest and "$(" not in assignment:
                type_words(rest)
        case [first, *_]:
            assert first in PROGRAMS | FOREIGN, words


EVALUATORS: dict[str, dict[str, Callable[[Example], None]]] = {
    "python": {"python": run_python, "{code-cell}": run_python, "text": compare_text},
    "yaml": {"yaml": read_yaml},
    "c": {"c": compile_c},
    "commands": {"bash": type_lines, "console": type_lines},
}
SYBILS = {
    kind: Sybil([CodeBlockParser(*each) for each in blocks.items()])
    for kind, blocks in EVALUATORS.items()
}
BLOCKS = [(page, kind) for page in PAGES for kind in SYBILS if [*SYBILS[kind].parse(page)]]


@pytest.fixture(name="desk")
def make_desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_algorithms: None) -> Path:
    """Return a folder with the files that pages speak of, where the blocks run.

    An algorithm that a page registers is known to this page alone.
    """
    desk = tmp_path / "desk"
    (desk / "docs").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "geared_leg.urdf", desk / "docs")
    for name in ("quadruped.urdf", "my_robot.urdf"):
        (desk / name).write_text(robots.quadruped().read_text())
    np.save(desk / "q.npy", np.zeros((5, 12)))
    for name in ("my_robot.yaml", "robot.yaml"):
        shutil.copy(ROOT / "config" / "quadruped.yaml", desk / name)
    (desk / "mining").symlink_to(ROOT / "examples" / "mining")
    monkeypatch.chdir(desk)
    return desk


@pytest.mark.parametrize(
    ("page", "kind"), BLOCKS, ids=[f"{page.relative_to(ROOT)}-{kind}" for page, kind in BLOCKS]
)
def test_blocks_of_page(page: Path, kind: str, desk: Path) -> None:
    if "talos.urdf" in page.read_text("utf-8"):
        shutil.copy(robots.talos(), desk / "talos.urdf")
    for example in SYBILS[kind].parse(page):
        example.evaluate()


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("python", "assert 1 == 2"),
        ("python", "open('file', 'w').close()"),
        ("python", "print(1)\n```\n\n```text\n2"),
        ("python", "pass\n```\n<!-- invisible-code-block: python\nassert False\n-->\n```text"),
        ("yaml", "loops:\n  - {name: lift}"),
        ("yaml", "delassus_node: {ros__parameters: {contacts: {names: [LF], LF: {fram: foot}}}}"),
        ("yaml", "conditioning: {weak: 1.0e+6, singular: 1.0e+4}"),
        ("yaml", "contacts: {names: [LF], LF: {frame: foot, normal: up}}"),
        ("c", '#include "quadruped.h"\nint status = nothing();'),
        ("bash", "delassus compute nowhere.urdf --contact LF_FOOT"),
        ("bash", "ros2 launch delassus_ros delassus.launch.py robots:=mine"),
        ("console", "make nothing"),
        ("bash", "# comment\ndelassus_nothing"),
    ],
)
def test_wrong_block_is_found(language: str, text: str, desk: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```{language}\n{text}\n```\n")
    (kind,) = [kind for kind, blocks in EVALUATORS.items() if language in blocks]
    with pytest.raises((AssertionError, DelassusError)):
        for example in SYBILS[kind].parse(page):
            example.evaluate()
