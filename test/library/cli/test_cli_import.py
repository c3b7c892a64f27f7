"""``--import`` of algorithms from a file or module, and the figure of ``delassus compare``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cli_support import QUADRUPED, ROOT, answer, output, refusal

from delassus.algorithms import registry

PAGE = ROOT / "docs" / "tutorials" / "your_own_algorithm.md"
(ALGORITHM,) = (
    block.replace("by_cholesky", "my_algorithm")
    for block in re.findall(r"```{code-cell}\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    if '@register("by_cholesky")' in block
)
ROBOT = (QUADRUPED, "--contact", "LF_FOOT")


@pytest.fixture(name="folder", autouse=True)
def make_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield a folder with modules, which are forgotten after the test.

    Two have names of the standard library.
    """
    for name in ("my_algorithm", "json"):
        (tmp_path / f"{name}.py").write_text(ALGORITHM, encoding="utf-8")
    (tmp_path / "pyclbr.py").write_text("raise RuntimeError('not that of Python')")
    (tmp_path / "uses_pyclbr.py").write_text("import pyclbr\n" + ALGORITHM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    registry.names()
    monkeypatch.setattr(registry, "_registry", dict(registry._registry))
    yield tmp_path
    for name in ("my_algorithm", "uses_pyclbr"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    "named", ["my_algorithm", "my_algorithm.py", "./json.py", "uses_pyclbr", "uses_pyclbr.py"]
)
def test_an_algorithm_of_a_module_is_listed_and_computes(capsys, named: str) -> None:
    assert "my_algorithm" in output(capsys, "list", "--import", named)
    own, theirs = (
        answer(capsys, "compute", *ROBOT, "--algorithm", name) for name in ("my_algorithm", "ltl")
    )
    np.testing.assert_allclose(own["G"], theirs["G"], rtol=1e-10)
    assert own["algorithm"] == "my_algorithm" and own["operations"] > 0
    assert sys.modules["json"] is json


@pytest.mark.needs("matplotlib")
def test_compare_draws_all_algorithms_with_the_imported_one(capsys, folder: Path) -> None:
    argv = ["compare", *ROBOT, "--import", "my_algorithm", "--calls", "20", "--plot", "found.svg"]
    shown = output(capsys, *argv)
    assert "my_algorithm" in shown and shown.rstrip().endswith("wrote found.svg")
    drawn = (folder / "found.svg").read_text(encoding="utf-8")
    # Letters are text, not outlines.
    for words in ("my_algorithm", "pv_osimr", "operations of the kernel", "median time of a call"):
        assert f">{words}" in drawn, words


@pytest.mark.needs("matplotlib")
def test_failed_import_reported(capsys, folder: Path) -> None:
    (folder / "broken.py").write_text("import nowhere_to_be_found\n")
    (folder / "ended.py").write_text("import sys\nsys.exit('no more')\n")
    before = set(sys.modules)
    cases = {
        "nothing": "--import nothing: no module of this name is installed or in",
        "nothing.py": "--import nothing.py: there is no such file",
        "broken": "--import broken: it raises ModuleNotFoundError: No module named 'nowhere_to",
        "broken.py": "--import broken.py: it raises ModuleNotFoundError",
        "ended.py": "--import ended.py: it raises SystemExit: no more",
    }
    for name, words in cases.items():
        assert words in refusal(capsys, "list", "--import", name)
    assert not {name for name in set(sys.modules) - before if "broken" in name or "ended" in name}
    argv = ["compare", *ROBOT, "--calls", "5", "--plot", "found.nothing"]
    assert "'found.nothing' cannot be written" in refusal(capsys, *argv)
