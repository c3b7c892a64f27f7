"""Every block of Python on every page runs as it was copied, one page after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import robots

from delassus_ros import algorithms
from delassus_ros.algorithms import registry

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
            pytest.importorskip(package, reason=f"{package} is not installed")
    # Around a page is what it takes from the repository.
    folder = tmp_path / page.relative_to(ROOT).parent
    folder.mkdir(parents=True)
    leg = (ROOT / "docs" / "geared_leg.urdf").read_text(encoding="utf-8")
    (tmp_path / "docs" / "geared_leg.urdf").write_text(leg)
    is_notebook = "mystnb" in page.read_text(encoding="utf-8")
    desk = folder if is_notebook else tmp_path
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
        assert names["closed"].q[names["leg"].joint_names.index("knee_rotor")] == 12.0
    if page.name == "closed_loop_positions.md":
        assert names["result"].status.is_valid
    if page.name == "clusters.md":
        assert round(names["error"], 3) == 0.044


def test_the_other_pages_are_run_elsewhere() -> None:
    for page, test in ELSEWHERE.items():
        assert blocks(ROOT / page), page
        assert Path(page).name in (ROOT / "test" / test).read_text(encoding="utf-8"), page
