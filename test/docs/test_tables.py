"""Tables and lists of the pages are complete: outputs, parameters, topics, programs, extras."""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path
from typing import get_args

import pytest

import delassus
from delassus.dynamics.methods import FORWARD, INVERSE
from delassus.measured.quantities import Quantity
from delassus.outputs import OUTPUTS, kernel_outputs
from delassus_ros.node.contact_parameters import CONTACT_PARAMETERS
from delassus_ros.node.parameters import PARAMETERS
from delassus_ros.verbs import main as cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def text_of(page: str) -> str:
    return (DOCS / f"{page}.md").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text_of(page), re.DOTALL)


def section(page: str, heading: str) -> str:
    """Return the text below a heading of a page of the reference."""
    pattern = rf"^## `{heading}`.*\n((?:(?!## ).*\n)*)"
    (found,) = re.findall(pattern, text_of(f"reference/{page}"), re.MULTILINE)
    return str(found)


def first_column(text: str) -> set[str]:
    """Return the names in the first column of tables; `.values` goes on from the name before."""
    names = set()
    for line in text.splitlines():
        full = ""
        for name in re.findall(r"`([^`]+)`", line.split("|")[1] if line.startswith("| `") else ""):
            full = full.rpartition(".")[0] + name if name.startswith(".") else name
            names.add(full)
    return names


def test_errors_derive_from_the_error_that_pages_name() -> None:
    text = text_of("library") + text_of("tutorials/closed_loops")
    for name in ("DelassusError", "Status", "Solution", "Closure"):
        assert f"`{name}`" in text
        assert hasattr(delassus, name)
    errors = vars(delassus.errors).values()
    raised = [each for each in errors if isinstance(each, type) and issubclass(each, Exception)]
    raised = [each for each in raised if not issubclass(each, Warning)]
    assert len(raised) > 5
    assert all(issubclass(each, delassus.DelassusError) for each in raised)


@pytest.mark.parametrize(
    ("page", "row", "expected"),
    [
        ("dynamics", r"^\| (?:`\w+`)? ?\| `(\w+)` \|", [*INVERSE, *FORWARD]),
        ("measured", r"^\| `(\w+)\(", [kind.__name__ for kind in get_args(Quantity)]),
    ],
)
def test_rows_of_table(page: str, row: str, expected: list[str]) -> None:
    assert re.findall(row, text_of(page), re.MULTILINE) == expected


def test_outputs_with_shape_and_inputs() -> None:
    row = r"^\| `(\w+)` \| ([kn × ]+) \| [^|]* \|([^|]*)\|$"
    rows = re.findall(row, text_of("controllers"), re.MULTILINE)
    assert {name for name, _, _ in rows} == set(kernel_outputs())
    for name, shape, needs in rows:
        output = OUTPUTS[name]
        assert shape.split(" × ") == list(output.axes.replace("m", "k")), name
        # External wrenches have a paragraph of their own.
        assert re.findall(r"\w+", needs) == [i for i in output.needs if i != "wrenches"], name


def test_packages_of_the_demo() -> None:
    lines = (ROOT / "requirements" / "sim.txt").read_text().splitlines()
    wanted = {line for line in lines if line and not line.startswith("#")}
    (command,) = re.findall(r".*mujoco.*", "".join(blocks("tutorials/installing", "bash")))
    assert set(re.findall(r"'([^']+)'", command)) == wanted


def test_extras() -> None:
    extras = {file.stem for file in ROOT.glob("requirements/*.txt")}
    assert first_column(text_of("tutorials/installing")) == extras


def test_programs() -> None:
    setup = (ROOT / "setup.py").read_text()
    programs = set(re.findall(r'"(\w+)": "delassus_ros\.', setup))
    parts = text_of("tutorials/installing").split("\n\n")
    paragraph = next(part for part in parts if "not on `PATH`" in part)
    assert set(re.findall(r"`(delassus_\w+)`", paragraph)) | {"delassus"} == programs
    assert "install_scripts=$base/lib/delassus_ros" in (ROOT / "setup.cfg").read_text()


def test_verbs_of_the_command() -> None:
    (shown,) = re.findall(r"for verb in \((.*?)\):", text_of("reference/commands"), re.DOTALL)
    (verbs,) = [a.choices for a in cli._parser()._actions if isinstance(a.choices, dict)]
    assert set(re.findall(r'"(\w+)"', shown)) == set(verbs)


PROGRAMS = {
    "delassus_markers": "markers.marker_node",
    "delassus_estimator": "estimator.node",
    "delassus_monitor": "monitor.monitor_node",
    "delassus_compare": "monitor.compare_node",
    "delassus_simulator": "sim.simulator_node",
    "delassus_plant": "sim.plant_node",
}


@pytest.mark.needs("rclpy", "delassus_msgs")
@pytest.mark.parametrize("program", PROGRAMS)
def test_topics_and_parameters_in_help(program: str) -> None:
    text = importlib.import_module(f"delassus_ros.{PROGRAMS[program]}")._HELP
    topics, _, parameters = text.partition("\nparameters")
    for name in first_column(section("topics", program)) - {"/clock", "~/contact_force/<contact>"}:
        assert re.search(rf"(?<![\w/~]){re.escape(name)}(?![\w/])", topics), name
    for kind in set(re.findall(r"\b\w+_msgs/\w+", topics)):
        assert f"`{kind}`" in section("topics", program), kind
    if parameters:
        heading = "delassus_monitor" if program == "delassus_compare" else program
        for name in first_column(section("parameters", heading)):
            assert re.search(rf"\b{name}\b", parameters), name


@pytest.mark.needs("rclpy", "delassus_msgs", "mujoco")
def test_parameters_of_markers_estimator_and_plant() -> None:
    from delassus_ros.estimator import settings as of_estimator
    from delassus_ros.markers import marker_node
    from delassus_ros.sim.plant import PlantSettings

    assert first_column(section("parameters", "delassus_markers")) == set(marker_node._PARAMETERS)
    wrenches = {f"wrenches.<name>.{key}" for key in of_estimator.OF_WRENCH}
    shown = first_column(section("parameters", "delassus_estimator"))
    assert shown == {*of_estimator.PARAMETERS, *wrenches}
    source = (ROOT / "delassus_ros" / "sim" / "plant_node.py").read_text()
    plant = set(re.findall(r'self\._read\("(\w+)"', source))
    plant |= {field.name for field in dataclasses.fields(PlantSettings)}
    assert first_column(section("parameters", "delassus_plant")) == plant


def test_parameters_of_the_node_with_defaults() -> None:
    rows: dict[str, str] = {}
    for line in section("parameters", "delassus_node").splitlines():
        if line.startswith("| `"):
            named, default = line.split("|")[1:3]
            full, *others = re.findall(r"`([^`]+)`", named)
            names = [full, *(full.rpartition(".")[0] + other for other in others)]
            shown = default.split(",")
            defaults = shown if len(shown) == len(names) else [default] * len(names)
            for name, own in zip(names, defaults, strict=True):
                rows[name] = own + ("*" if "*" in named else "")
    contacts = {f"contacts.<name>.{key}" for key in CONTACT_PARAMETERS}
    assert set(rows) == {*PARAMETERS, *contacts}
    for name, setting in PARAMETERS.items():
        assert rows[name].endswith("*") is setting.live, name
        value = rows[name].strip(" *`")
        if isinstance(setting.default, (int, float)) and value:
            assert float({"true": 1, "false": 0}.get(value, value)) == setting.default, name
        elif isinstance(setting.default, str) and value:
            assert value == setting.default, name
