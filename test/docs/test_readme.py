"""The README is true: its links exist, and its library example runs."""

from __future__ import annotations

import ast
import dataclasses
import hashlib
import importlib
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import robots

import delassus_ros
from delassus_ros.cli import main as cli
from delassus_ros.doors import MissingPackageError
from delassus_ros.model.reading.yaml import read_side_file

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    if not path.name.startswith(".")
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_exist(page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_is_imported_exists(page):
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("delassus_ros"):
                try:
                    module = importlib.import_module(str(node.module))
                except MissingPackageError as error:
                    pytest.skip(str(error))
                assert [n.name for n in node.names if not hasattr(module, n.name)] == []


def test_the_errors_are_those_that_the_pages_name():
    text = (ROOT / "docs/library.md").read_text() + CLOSED.read_text()
    for name in ("DelassusError", "Status", "Solution", "Closure"):
        assert f"`{name}`" in text
        assert hasattr(delassus_ros, name)
    errors = vars(delassus_ros.errors).values()
    raised = [each for each in errors if isinstance(each, type) and issubclass(each, Exception)]
    raised = [each for each in raised if not issubclass(each, Warning)]
    assert len(raised) > 5
    assert all(issubclass(each, delassus_ros.DelassusError) for each in raised)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_drawings_are_of_the_diagrams(page):
    """`scripts/diagrams.py` draws them, and writes down of which text each is."""
    for number, text in enumerate(blocks(page, "mermaid")):
        drawing = ROOT / "docs" / "pictures" / f"{page.stem}_{number}.svg"
        digest = hashlib.sha256(text.encode()).hexdigest()
        assert drawing.read_text().endswith(f"<!-- {digest} -->\n"), f"draw {drawing.name} anew"


CLOSED = ROOT / "docs" / "tutorials" / "closed_loops.md"
INSTALLING = ROOT / "docs" / "tutorials" / "installing.md"
GEARED_LEG = ROOT / "docs" / "geared_leg.urdf"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


def test_the_readme_is_short_and_prints_what_it_says(capsys):
    page = ROOT / "README.md"
    assert len(page.read_text().splitlines()) <= 130
    names: dict[str, Any] = {}
    for block in blocks(page, "python"):
        exec(block, names)
    (shown,) = blocks(page, "text")
    assert capsys.readouterr().out == shown
    assert (names["found"].forces[2::3] > 0.0).all()


def test_the_library_examples_run(monkeypatch, tmp_path, capsys):
    examples = [b for b in blocks(ROOT / "docs" / "library.md", "python") if ".solve(" in b]
    (tmp_path / "quadruped.urdf").write_text(robots.quadruped().read_text())
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for example in examples:
        exec(example, names)  # as a reader would paste them, one after the other
    assert names["solution"].matrix.shape == (6, 6)
    assert names["many"].matrix.shape == (4096, 12, 12)
    assert np.isfinite(names["many"].matrix).all()
    assert "operations" in capsys.readouterr().out
    assert names["response"].J.shape == (12, len(names["problem"].velocities)) == (12, 18)
    product = names["response"].J @ names["response"].MinvJT
    assert np.allclose(product, names["response"].matrix, rtol=1e-10, atol=1e-12)
    place = {"LF": (0.004, 0.0, -0.018)}
    rolled = names["rolling"].solve(names["q"], contact_positions=place).matrix
    assert np.array_equal(names["bound"].solve(names["q"]).matrix, rolled)
    assert names["G"].shape == (3, 3)


def test_the_demo_packages_are_those_of_the_extra():
    lines = (ROOT / "requirements" / "sim.txt").read_text().splitlines()
    wanted = {line for line in lines if line and not line.startswith("#")}
    (command,) = re.findall(r".*mujoco.*", "".join(blocks(INSTALLING, "bash")))
    assert set(re.findall(r"'([^']+)'", command)) == wanted


def test_the_extras_are_those_of_the_requirements():
    table = first_column((ROOT / "docs" / "library.md").read_text())
    assert table == {file.stem for file in ROOT.glob("requirements/*.txt")}


def test_the_programs_are_those_of_the_package():
    setup = (ROOT / "setup.py").read_text()
    programs = set(re.findall(r'"(\w+)": "delassus_ros\.', setup))
    text = INSTALLING.read_text()
    paragraph = next(part for part in text.split("\n\n") if "not on `PATH`" in part)
    named = set(re.findall(r"`(delassus_\w+)`", paragraph))
    assert named | {"delassus"} == programs
    assert "install_scripts=$base/lib/delassus_ros" in (ROOT / "setup.cfg").read_text()


def test_the_loops_file_says_what_its_comments_say():
    (text,) = [block for block in blocks(CLOSED, "yaml") if block.startswith("loops:")]
    side = read_side_file(text)
    assert [loop.name for loop in side.loops] == ["lift"]
    assert dict(side.couplings[0].ratios) == {"ankle_rotor": -1.0, "knee": 12.0, "ankle": 12.0}
    assert side.independent == ("crank",)


def section(page: str, heading: str) -> str:
    """Return what stands below a heading of a page of the reference."""
    text = (ROOT / "docs" / "reference" / f"{page}.md").read_text()
    (found,) = re.findall(rf"^## `{heading}`.*\n((?:(?!## ).*\n)*)", text, re.MULTILINE)
    return found


def first_column(text: str) -> set[str]:
    """Return the names in the first column of tables; `.values` goes on from the name before."""
    names = set()
    for line in text.splitlines():
        full = ""
        for name in re.findall(r"`([^`]+)`", line.split("|")[1] if line.startswith("| `") else ""):
            full = full.rpartition(".")[0] + name if name.startswith(".") else name
            names.add(full)
    return names


OTHERS = {
    "delassus_markers": "drawing.marker_node",
    "delassus_estimator": "estimator.node",
    "delassus_monitor": "monitor.monitor_node",
    "delassus_compare": "monitor.compare_node",
    "delassus_simulator": "sim.simulator_node",
    "delassus_plant": "sim.plant_node",
}


@pytest.mark.parametrize("program", OTHERS)
def test_the_topics_of_the_other_nodes_are_those_of_their_help(program):
    for package in ("rclpy", "delassus_msgs"):
        import_module(package)
    text = importlib.import_module(f"delassus_ros.{OTHERS[program]}")._HELP
    topics, _, parameters = text.partition("\nparameters")
    named = first_column(section("topics", program))
    for name in named - {"/clock", "~/contact_force/<contact>"}:
        assert re.search(rf"(?<![\w/~]){re.escape(name)}(?![\w/])", topics), name
    for kind in set(re.findall(r"\b\w+_msgs/\w+", topics)):
        assert f"`{kind}`" in section("topics", program), kind
    if parameters:
        heading = "delassus_monitor" if program == "delassus_compare" else program
        shown = section("parameters", heading)
        for name in first_column(shown):
            assert re.search(rf"\b{name}\b", parameters), name


@pytest.mark.needs("mujoco")
def test_the_parameters_of_markers_estimator_and_plant_are_complete():
    for package in ("rclpy", "delassus_msgs"):
        import_module(package)
    from delassus_ros.drawing import marker_node
    from delassus_ros.estimator import settings

    assert first_column(section("parameters", "delassus_markers")) == set(marker_node._PARAMETERS)
    wrenches = {f"wrenches.<name>.{key}" for key in settings.OF_WRENCH}
    shown = first_column(section("parameters", "delassus_estimator"))
    assert shown == {*settings.PARAMETERS, *wrenches}
    source = (ROOT / "delassus_ros" / "sim" / "plant_node.py").read_text()
    plant = set(re.findall(r'self\._read\("(\w+)"', source))
    from delassus_ros.sim.plant import PlantSettings

    plant |= {field.name for field in dataclasses.fields(PlantSettings)}
    assert first_column(section("parameters", "delassus_plant")) == plant


def test_the_verbs_are_all_on_the_page_of_commands():
    text = (ROOT / "docs" / "reference" / "commands.md").read_text()
    (shown,) = re.findall(r"for verb in \((.*?)\):", text, re.DOTALL)
    (verbs,) = [a.choices for a in cli._parser()._actions if isinstance(a.choices, dict)]
    assert set(re.findall(r'"(\w+)"', shown)) == set(verbs)


def test_the_parameters_are_those_of_the_node():
    from delassus_ros.node import settings
    parameters = settings.PARAMETERS
    table = section("parameters", "delassus_node")
    rows: dict[str, str] = {}
    for line in table.splitlines():
        if line.startswith("| `"):
            named, default = line.split("|")[1:3]
            full, *others = re.findall(r"`([^`]+)`", named)
            all_names = [full, *(full.rpartition(".")[0] + other for other in others)]
            shown = default.split(",")
            defaults = shown if len(shown) == len(all_names) else [default] * len(all_names)
            for name, own in zip(all_names, defaults, strict=True):
                rows[name] = own + ("*" if "*" in named else "")
    contacts = {f"contacts.<name>.{key}" for key in settings.CONTACT_PARAMETERS}
    assert set(rows) == {*parameters, *contacts}
    for name, setting in parameters.items():
        assert rows[name].endswith("*") is setting.live, name
        shown = rows[name].strip(" *`")
        if isinstance(setting.default, (int, float)) and shown:
            assert float({"true": 1, "false": 0}.get(shown, shown)) == setting.default, name
        elif isinstance(setting.default, str) and shown:
            assert shown == setting.default, name
