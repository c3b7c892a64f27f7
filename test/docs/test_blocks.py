"""Every block of Python, YAML and C on every page works as it was copied, page by page."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import robots
import yaml

from delassus_ros import algorithms
from delassus_ros.adapter import settings as adapter_settings
from delassus_ros.algorithms import registry
from delassus_ros.cli import main as cli
from delassus_ros.cli.options import parameters_of
from delassus_ros.model.reading.yaml import read_side_file

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {
    "docs/library.md": "docs/test_readme.py",
    "docs/controllers.md": "docs/test_controllers_doc.py",
    "docs/measured.md": "docs/test_measured_doc.py",
    "docs/friction.md": "docs/test_friction_doc.py",
    "docs/elimination.md": "docs/test_elimination_doc.py",
    "docs/howto/casadi_jax_torch.md": "docs/test_gradients_doc.py",
    "docs/task_inertia.md": "docs/test_task_inertia_doc.py",
}
"""Pages whose blocks are run by another test, which looks at their results as well."""
PAGES = sorted(ROOT.glob("docs/**/*.md"))


def blocks(page: Path) -> list[str]:
    """Return the blocks of Python of a page, those of notebooks too."""
    text = page.read_text(encoding="utf-8")
    fence = re.compile(r"^```(?:python|\{code-cell\}.*?)\n(.*?)^```", re.DOTALL | re.MULTILINE)
    found = fence.findall(text)
    return [re.sub(r"^:tags:.*\n", "", block) for block in found]


WITH_BLOCKS = [page for page in PAGES if blocks(page)]
HERE = [page for page in WITH_BLOCKS if str(page.relative_to(ROOT)) not in ELSEWHERE]


def is_program(block: str) -> bool:
    """Return whether a block runs until it is stopped, as nodes do; see test_page_programs."""
    return "spin(" in block


@pytest.mark.parametrize("page", HERE, ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_every_block_of_python_runs(page: Path, monkeypatch, tmp_path: Path) -> None:
    code = blocks(page)
    for package in ("mujoco", "qpsolvers", "rosbags", "delassus_msgs_py", "rclpy"):
        if any(re.search(rf"^(?:import|from) {package}\b", block, re.MULTILINE) for block in code):
            import_module(package)
    # Around a page is what it takes from the repository.
    folder = tmp_path / page.relative_to(ROOT).parent
    folder.mkdir(parents=True)
    leg = (ROOT / "docs" / "geared_leg.urdf").read_text(encoding="utf-8")
    (tmp_path / "docs" / "geared_leg.urdf").write_text(leg)
    is_notebook = "mystnb" in page.read_text(encoding="utf-8")
    # A notebook that was downloaded runs in any folder.
    desk = tmp_path / "elsewhere" if is_notebook else tmp_path
    desk.mkdir(exist_ok=True)
    for name in ("quadruped.urdf", "my_robot.urdf"):
        (desk / name).write_text(robots.quadruped().read_text())
    monkeypatch.chdir(desk)
    before = sorted(tmp_path.rglob("*"))
    algorithms.names()  # which fills the registry
    # What a page registers is there for this page alone.
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    names: dict[str, object] = {"__name__": "page"}
    for block in code:
        if not is_program(block):
            exec(block, names)
    assert sorted(tmp_path.rglob("*")) == before, "a page leaves files behind"
    if page.name == "closed_loops.md":
        assert names["G"].shape == (3, 3)
        assert names["q"]["LF_KFE_ROTOR"] == pytest.approx(-1.4 * 12, abs=0.01)
    if page.name == "closed_loop_positions.md":
        assert names["result"].status.is_valid
    if page.name == "clusters.md":
        assert round(names["error"], 3) == 0.044


def test_the_other_pages_are_run_elsewhere() -> None:
    for page, test in ELSEWHERE.items():
        assert blocks(ROOT / page), page
        assert Path(page).name in (ROOT / "test" / test).read_text(encoding="utf-8"), page


def yaml_blocks() -> list[tuple[Path, str]]:
    fence = re.compile(r"^```yaml\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return [(page, found) for page in PAGES for found in fence.findall(page.read_text("utf-8"))]


OTHER_NODES = {"lifecycle_manager_delassus"}
"""Nodes of other packages whose parameters pages show."""


@pytest.mark.parametrize(
    ("page", "block"), yaml_blocks(), ids=lambda value: getattr(value, "stem", None)
)
def test_every_block_of_yaml_is_read(page: Path, block: str, tmp_path: Path) -> None:
    """By what reads it: the node, the adapter, a file of loops, or a message."""
    content = yaml.safe_load(block)
    if any(key in content for key in ("loops", "couplings")) and content.get("loops") != (
        "/opt/robot/loops.yaml"
    ):
        assert read_side_file(block)
    elif "status" in content:
        import delassus_msgs.msg as messages
        schedule = messages.ContactSchedule(
            **{name: value for name, value in content.items() if name != "header"}
        )
        assert content.keys() <= schedule.get_fields_and_field_types().keys()
        assert len(schedule.status) == len(schedule.names) * len(schedule.times)
    else:
        (node,) = content if "ros__parameters" in next(iter(content.values())) else [""]
        if node in OTHER_NODES:
            return
        file = tmp_path / "parameters.yaml"
        file.write_text(block if node else yaml.safe_dump({"/**": {"ros__parameters": content}}))
        if node.endswith("delassus_adapter"):
            given = dict(flat(content[node]["ros__parameters"]))
            assert given.keys() <= adapter_settings.PARAMETERS.keys()
            assert adapter_settings.settings_of(
                {n: given.get(n, s.default) for n, s in adapter_settings.PARAMETERS.items()}
            )
        else:
            assert parameters_of(str(file))


def flat(content: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def test_every_block_of_c_compiles_with_the_exported_headers(tmp_path: Path, capsys) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    fence = re.compile(r"^```c\n(.*?)^```", re.DOTALL | re.MULTILINE)
    code = [block for page in PAGES for block in fence.findall(page.read_text("utf-8"))]
    assert len(code) == 2
    robot = str(robots.quadruped())
    feet = ("--contact", "LF=LF_FOOT", "--contact", "RF=RF_FOOT")
    more = ("--outputs", "a0", "--friction", "--dynamics", "inverse")
    file = str(tmp_path / "quadruped.o")
    assert cli.main(["export", robot, *feet, *more, "-o", file]) == 0, capsys.readouterr().err
    arguments = (
        "const double *G, const double *a0, double *forces, double *accelerations, double *work, "
        "int64_t *indices"
    )
    for block in code:
        (include,) = re.findall(r"^#include .*$", block, re.MULTILINE)
        # A block has its own work array, or takes that of the function around it.
        given = arguments.replace(" double *work,", "") if "double work[" in block else arguments
        source = f"#include <stdint.h>\n#include <stddef.h>\n{include}\nvoid page({given}) {{\n"
        (tmp_path / "page.c").write_text(source + block.replace(include, "") + "(void)status; }\n")
        command = [compiler, "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused-variable", "page.c"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
